-- SPDX-License-Identifier: MIT
--
-- Files that the command writes: src/base/files.c writes all of them, and whatever happens meanwhile, either the old
-- file stays whole or the new one is complete. Each subcommand that writes has a row here; the first test fails for one
-- that has none.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local run, read, write = support.run, support.read, support.write
local here = run "pwd":gsub("\n", "")

-- A new folder, in memory where there is one: each file is flushed to its disk.
local function new_folder()
  local name = run "mktemp -d -p /dev/shm 2> /dev/null || mktemp -d":gsub("\n", "")
  return name
end
local folder = new_folder()
local spoil = folder .. "/spoil.so"
run("mkdir " .. folder .. "/disk")

local recipe = write(folder .. "/one.lua", [[return recipe { build = function(world)
  local t, g = topology(world), grid(world, "tp", { tp = fill })
  t.grid, t.tp = g, g "tp"
  t.w = tensor { axes = { { "x", 64 } }, type = "f32", cut = { x = "tp" } }
  return t end, step = function(s) s:all_reduce(s.tp, 64) end }
]])
local groups = write(folder .. "/groups.json", "[[0, 1], [2, 3]]")
local runs = write(folder .. "/runs.csv", "recipe,machine,world,seconds,layers,hidden,heads,micro_batch\n"
  .. "megatron,dgx-h100,1,0.4,2,8192,64,1\nmegatron,dgx-h100,1,0.9,2,8192,64,2\n")
local header = '{"w":{"dtype":"F32","shape":[64],"data_offsets":[0,256]}}'
local checkpoint = write(folder .. "/in.safetensors", string.pack("<s8", header) .. ("\1\2\3\4"):rep(64))

-- name, line: a command line with what it writes as T; file: the source that calls files.h; old: what was there, if not
-- "old"; folder: T is one; times: differs from run to run.
local rows = {
  { name = "draw", file = "src/command/host_words.c", line = "draw " .. recipe .. " --world 8 -o T.svg" },
  { name = "draw", file = "src/command/host_words.c", line = "draw " .. recipe .. " --world 4,8 -o T.html" },
  { name = "step", file = "src/command/host_words.c",
    line = "step " .. recipe .. " --world 8 --machine 'node:4[50GB/s] gpu:2[300GB/s]' -o T.json" },
  { name = "place", file = "src/command/host_words.c", line = "place " .. recipe .. " --world 8 --machine 'node:4 gpu:2' -o T.json" },
  { name = "calibrate", file = "src/command/host_words.c",
    line = "calibrate " .. runs .. " -o T.json" },
  { name = "run", file = "src/command/host_words.c", line = "run " .. recipe .. " --steps 1 -o T.json", times = true },
  { name = "reshard", file = "src/checkpoints/reshard.c", folder = true,
    line = "reshard " .. checkpoint .. " --to " .. recipe .. " --world 2 -o T" },
  { name = "infer", file = "src/command/host_words.c", line = "infer " .. groups .. " -o T.lua",
    old = "" },
  { name = "blame", file = "src/command/host_words.c", line = "blame " .. here .. "/tests/blame/skip.tgz -o T.html" },
  { name = "init", file = "src/command/host_words.c", folder = true, line = "init T" },
}
-- These write for others, or where there is no command line; what tests them.
local elsewhere = {
  ["src/checkpoints/shards.c"] = "reshard", ["src/checkpoints/safetensors.c"] = "reshard",
  ["src/command/editor.c"] = "shell_spec", ["src/python/moongrid/_library.py"] = "below",
  ["examples/trainer/checkpoint.c"] = "tests/trainer/checkpoints", ["examples/trainer/main.c"] = "tests/trainer/checkpoints",
  ["examples/trainer/plot.c"] = "tests/trainer/checkpoints",
}

local function lines(command)
  local list = {}
  for line in run(command):gmatch "[^\n]+" do list[#list + 1] = line end
  return list
end

-- The end of the name that a row writes: ".svg", or "" for a folder.
local function ending(row) return row.line:match "T(%.?%w*)$" end

-- Run a row in a folder, with words before the command.
local function make(row, at, before)
  return run(("cd '%s' && %s %s/build/moongrid %s"):format(at, before or "", here, (row.line:gsub("T(%.?%w*)$", "out%1"))))
end

-- Everything in a folder: of each file its bytes, of each link its target, true of each folder.
local function content(at)
  local all = {}
  for _, line in ipairs(lines(("cd '%s' && find . -mindepth 1 -printf '%%y %%P\\n'"):format(at))) do
    local kind, path = line:match "^(.) (.*)$"
    all[path] = kind == "f" and read(at .. "/" .. path) or kind == "l" and "-> " .. run(("readlink '%s/%s'"):format(at, path)) or true
  end
  return all
end

-- What a row makes where nothing was; of one with times in it that it is whole.
local made = {}
local function complete(row)
  local at = new_folder()
  local _, err, code = make(row, at)
  assert.equal(0, code, err)
  local all = content(at)
  run("rm -r " .. at)
  return all
end
local function is_complete(row, all)
  if not row.times then return assert.same(made[row], all) end
  assert.same({ "out.json" }, (function() local list = {} for path in pairs(all) do list[#list + 1] = path end return list end)())
  assert.truthy(json.decode(all["out.json"]), all["out.json"])
end

-- Put an old file under the name that a row writes; of a folder nothing.
local function with_old(row)
  local at = new_folder()
  if not row.folder then write(at .. "/out" .. ending(row), row.old or "old") end
  return at, content(at)
end

describe("what is written to disk", function()
  setup(function()
    local _, err, code = run(("cc -shared -fPIC -O1 -o %s tests/trainer/spoil.c -ldl"):format(spoil))
    assert.equal(0, code, err)
    for _, row in ipairs(rows) do made[row] = complete(row) end
  end)
  teardown(function() run("rm -r " .. folder) end)

  it("is known to this test: each subcommand with --output, and each file that calls files.h", function()
    local listed, found = {}, { init = true } -- it has no option for its folder
    for _, row in ipairs(rows) do listed[row.name] = true end
    for _, line in ipairs(lines "build/moongrid --help") do
      local name = line:match "^  (%l+) " or line:match "^  (%l+)$"
      if name and run(("build/moongrid %s --help"):format(name)):find "%-%-output" then found[name] = true end
    end
    assert.same(listed, found)
    local sources, callers = {}, {}
    for path in pairs(elsewhere) do sources[path] = true end
    for _, row in ipairs(rows) do sources[row.file] = true end
    for _, path in ipairs(lines("grep -rlE '(mgrid_write_file|mgrid_output_(file|folder)|cli_write_(file|ranks)|st_create|shards_index_write)\\(' "
      .. "src examples --include=*.c --include=*.py")) do callers[path] = true end
    callers["src/base/files.c"] = nil
    assert.same(sources, callers)
  end)

  for _, row in ipairs(rows) do
    local name = row.name .. " " .. (ending(row) == "" and "FOLDER" or ending(row))

    it(name .. ": killed at any call, the old one stays or the new one is complete, and the next run mends all", function()
      local calls, code = 0, 137
      math.randomseed(7)
      local few = (row.name == "init" or row.times) and 12 -- which have many, or take long: some, by a fixed seed
      while code == 137 do
        local at, old = with_old(row)
        code = select(3, make(row, at, ("SPOIL='call %d kill' SPOIL_UNDER=%s LD_PRELOAD=%s"):format(calls, at, spoil)))
        local now, whole, target = content(at), true, "out" .. ending(row)
        if code == 137 then
          for path, bytes in pairs(made[row]) do whole = whole and now[path] == bytes end
          if row.name == "init" then -- its files, one by one
            for path, bytes in pairs(now) do assert.truthy(path:find "%.part" or made[row][path] == bytes, calls .. ": " .. path) end
          elseif row.times then
            assert.truthy(now[target] == old[target] or json.decode(now[target]), calls .. ": " .. tostring(now[target]))
          else
            assert.truthy(whole or now[target] == old[target], ("call %d: half made"):format(calls))
          end
        end
        local kept = row.name == "reshard" or row.name == "infer" -- they write over nothing
        if code == 137 and kept and whole then run(("rm -r %s/%s"):format(at, target)) end
        local _, err, again = make(row, at)
        if code == 137 then
          assert.equal(0, again, ("call %d: %s"):format(calls, err))
          is_complete(row, content(at))
        end
        run(("rm -r '%s'"):format(at))
        calls = calls + (few and calls >= few and math.random(9) or 1)
      end
      assert.truthy(calls > 4, "few calls were seen: " .. calls)
    end)

    -- MPI has files of its own; a link to /dev/full is below
    local unless_mpi = row.times and function() end or it
    unless_mpi(name .. ": on a disk that is full everything stays as it was", function()
      local at, old = with_old(row)
      local _, err, code = run(("cd '%s'; (trap '' XFSZ; ulimit -f 0; exec %s/build/moongrid %s) 2>&1 | cat >&2; exit ${PIPESTATUS[0]}"):format(
        at, here, (row.line:gsub("T(%.?%w*)$", "out%1"))))
      assert.equal(3, code, err)
      assert.truthy(err:find("cannot write out[^\n]*: File too large\n"), err)
      if row.name ~= "init" then assert.same(old, content(at)) end
      for path, bytes in pairs(content(at)) do assert.truthy(bytes == true or bytes == old[path], path) end
      run(("rm -r '%s'"):format(at))
      -- a real one, which only a user who may mount has: full to the last page, and with room for one more
      for _, free in ipairs { 0, 1 } do
        local text, _, mounted = run(([[unshare -m bash -c 'mount -t tmpfs -o size=128k none %s && cd %s || exit 77
          %s
          dd if=/dev/zero of=fill bs=4k 2>&- ; truncate -s -%dk fill
          %s/build/moongrid %s > /dev/null; echo $?
          rm fill; find . -type f -exec tail -n +1 {} +; find . -name "*.part"']]):format(folder .. "/disk", folder .. "/disk",
          row.folder and "" or ("printf '%s' > out%s"):format(row.old or "old", ending(row)), 4 * free, here, (row.line:gsub("'", '"'):gsub("T(%.?%w*)$", "out%1"))))
        if mounted ~= 0 then return pending "no mount" end
        assert.truthy(text:find "^3\n" or free == 1 and row.name ~= "init", text)
        local left = row.folder and "" or row.old or "old"
        if text:find "^3\n" and row.name ~= "init" then assert.equal("3\n" .. left, text) end
      end
    end)

    it(name .. ": refuses a folder that may not be written, and a folder with that name", function()
      local at = with_old(row)
      local _, err, code = run(([[unshare -m bash -c 'mount -t tmpfs none %s && cp -a %s/. %s && mount -o remount,ro %s || exit 77
        cd %s && %s/build/moongrid %s']]):format(folder .. "/disk", at, folder .. "/disk", folder .. "/disk", folder .. "/disk", here,
        (row.line:gsub("'", '"'):gsub("T(%.?%w*)$", "out%1"))))
      if code ~= 77 then
        assert.equal(3, code, err)
        assert.truthy(err:find "moongrid: [^\n]*cannot %l+ out[^\n]*: Read%-only file system\n", err)
      end
      run(("cd '%s' && rm -rf out* && mkdir out%s && touch out%s/mine"):format(at, ending(row), ending(row)))
      _, err, code = make(row, at)
      if row.name == "init" then
        assert.equal(0, code, err)
        assert.equal("", content(at)["out/mine"])
      else
        assert.truthy(code ~= 0 and err:find(row.folder and "is there already" or "Is a directory"), err)
        assert.same({ ["out" .. ending(row)] = true, ["out" .. ending(row) .. "/mine"] = "" }, content(at))
      end
      run(("rm -r '%s'"):format(at))
    end)

    local unless_init = row.name == "init" and function() end or it -- of whose files this is below
    unless_init(name .. ": leaves a .part of the user alone", function()
      local part = "out" .. ending(row) .. ".part"
      for _, how in ipairs { "echo mine > %s", "mkdir %s", "mkdir %s; echo mine > %s/file", "ln -s nothing %s",
                             "mkdir -m 1777 real; ln -s real %s", "mkfifo %s" } do
        local at = with_old(row)
        run(("cd '%s'; "):format(at) .. how:gsub("%%s", part))
        local old = content(at)
        local _, err, code = make(row, at)
        assert.equal(1, code, err)
        assert.truthy(err:find(part .. " is there already, and moongrid has not made it; take it away", 1, true), err)
        assert.same(old, content(at))
        run(("rm -r '%s'"):format(at))
      end
    end)
  end

  for _, row in ipairs(rows) do
    if not row.folder then
      it(row.name .. " " .. ending(row) .. ": goes through a link, which stays, and to what is not a file", function()
        local at = new_folder()
        local out = "out" .. ending(row)
        run(("cd '%s' && mkdir real && printf '%s' > real/file && chmod 640 real/file && ln -s real/file %s"):format(at, row.old or "old", out))
        local _, err, code = make(row, at)
        assert.equal(0, code, err)
        local now = content(at)
        assert.equal("-> real/file\n", now[out])
        is_complete(row, { [out] = now["real/file"] })
        assert.equal("640\n", (run(("stat -c %%a %s/real/file"):format(at))))
        run(("cd '%s' && ln -sfn nothing %s"):format(at, out)) -- a link to what is not there yet
        assert.equal(0, select(3, make(row, at)))
        is_complete(row, { [out] = content(at).nothing })
        run(("cd '%s' && ln -sfn /dev/full %s"):format(at, out))
        _, err, code = make(row, at)
        assert.equal(3, code)
        assert.truthy(err:find("cannot write " .. out .. ": No space left on device", 1, true), err)
        run(("cd '%s' && rm real/* %s && mkfifo %s && (cat %s > got &)"):format(at, out, out, out))
        _, err, code = make(row, at)
        assert.equal(0, code, err)
        run(("cd '%s' && rm -r real nothing %s; for i in $(seq 100); do [ -s got ] && break; sleep 0.05; done"):format(at, out))
        is_complete(row, { [out] = content(at).got })
        run(("cd '%s' && ln -s /dev/stdout %s"):format(at, out)) -- which is a file, and has more in it
        local _, _, appended = make(row, at, "exec >> got;")
        local refused = row.name == "infer" and 1 or 0 -- a Lua file is not written over
        assert.equal(refused, appended)
        assert.truthy(refused == 1 or #content(at).got > #(made[row][out] or "") + 5)
        run(("rm -r '%s'"):format(at))
      end)
    end
  end

  it("is never what is read: recipes, parameters, machines, standard input, by any name", function()
    local at = new_folder()
    local text = read(recipe)
    write(at .. "/r.svg", text)
    write(at .. "/h.hosts", "n0\nn1\n")
    write(at .. "/p.svg", "{}")
    run(("cd '%s' && ln -s r.svg link.svg && ln r.svg hard.svg && mkdir sub && ln -s ../r.svg sub/far.svg"):format(at))
    local old = content(at)
    for _, line in ipairs {
      "draw r.svg --world 8 -o r.svg", "draw r.svg --world 8 --output=./r.svg", "draw r.svg --world 8 -o link.svg",
      "draw r.svg --world 8 -o hard.svg", "draw link.svg --world 8 -o sub/far.svg", "draw - --world 8 -o r.svg < r.svg",
      "draw /dev/stdin --world 8 -or.svg < r.svg", "draw r.svg --world 8 --params p.svg -o p.svg",
      "draw r.svg --world 8 --params=p.svg -o p.svg", "draw r.svg --world 4,8 x=p.svg -o p.svg",
      "place r.svg --world 2 --machine h.hosts -o h.hosts", "place r.svg --world 8 --machine 'h.hosts gpu:4' -o ./h.hosts",
    } do
      local out, err, code = run(("cd '%s' && %s/build/moongrid %s"):format(at, here, line))
      assert.same({ "", 1 }, { out, code }, line .. "\n" .. err)
      assert.truthy(err:find "^moongrid: [%w/.]+ would be written over [%w/.]+, which is read; take another name\n$", err)
      assert.same(old, content(at), line)
    end
    run(("rm -r '%s'"):format(at))
  end)

  it("is never a Lua file that has anything in it, because people edit recipes", function()
    local at = new_folder()
    write(at .. "/mine.lua", read(recipe))
    run(("cd '%s' && ln -s mine.lua link.lua"):format(at))
    local old = content(at)
    for _, line in ipairs {
      ("infer %s -o mine.lua"):format(groups), ("infer %s --output=link.lua"):format(groups),
      ("place %s --world 8 --machine 'node:4 gpu:2' -o ./mine.lua"):format(recipe),
      ("calibrate %s -o mine.lua"):format(runs), ("run %s --steps 1 -omine.lua"):format(recipe),
    } do
      local out, err, code = run(("cd '%s' && %s/build/moongrid %s"):format(at, here, line))
      assert.same({ "", 1 }, { out, code }, line .. "\n" .. err)
      assert.truthy(err:find "^moongrid: %S+%.lua is there already; no Lua file is written over: take it away, or take another name\n$", err)
      assert.same(old, content(at), line)
    end
    run(("rm -r '%s'"):format(at))
  end)

  it("of init never leads out of its folder", function()
    for _, how in ipairs { "mkdir in/.moongrid; ln -s ../../victim in/.moongrid/meta.lua", "mkdir away; ln -s ../away in/.moongrid",
                           "mkdir in/.moongrid away; ln -s ../../away in/.moongrid/meta.lua.part" } do
      local at = new_folder()
      run(("cd '%s' && mkdir in && echo precious > victim && %s"):format(at, how))
      local _, err, code = run(("cd '%s' && %s/build/moongrid init in"):format(at, here))
      assert.equal(1, code)
      assert.truthy(err:find "moongrid: in/.moongrid[%w/.]* is " and err:find "take it away", err)
      local now = content(at)
      assert.equal("precious\n", now.victim)
      for path in pairs(now) do assert.is_nil((path:find "^away/"), path) end
      run(("rm -r '%s'"):format(at))
    end
  end)

  it("by Python's save stays whole, too", function()
    local at = new_folder()
    local function save(before)
      return run(("cd '%s' && %s PYTHONPATH=%s/build/python python3 -c \"import moongrid; moongrid.plan('%s', world=8).save('out.json')\"")
        :format(at, before or "", here, recipe))
    end
    assert.equal(0, select(3, save()))
    local whole = content(at)
    assert.truthy(json.decode(whole["out.json"]))
    local calls, killed = 0, 137
    while killed == 137 do
      write(at .. "/out.json", "old")
      killed, calls = select(3, save(("SPOIL='call %d kill' SPOIL_UNDER=%s LD_PRELOAD=%s"):format(calls, at, spoil))), calls + 1
      local now = content(at)["out.json"]
      assert.truthy(now == "old" or now == whole["out.json"], now)
    end
    assert.same({ 0, true }, { killed, calls > 4 })
    assert.same(whole, content(at))
    write(at .. "/out.json.part", "mine")
    local _, err, code = save()
    assert.equal(1, code)
    assert.truthy(err:find("out.json.part is there already, and moongrid has not made it", 1, true), err)
    assert.equal("mine", read(at .. "/out.json.part"))
    run(("rm -r '%s'"):format(at))
  end)
end)
