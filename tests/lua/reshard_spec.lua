-- SPDX-License-Identifier: MIT
--
-- moongrid reshard: checkpoints of safetensors files through several layouts and back, byte for byte. Every kind of
-- wrong checkpoint gets one message, and leaves nothing behind.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local moongrid = require "moongrid"
local run = support.run

local recipe = support.file [[
return recipe { doc = "tensors", params = { tp = 2, pp = 1, cut = "even", flat = 0, wide = 640 }, build = function(world, p)
  local g = grid(world, "tp-pp-dp", { tp = p.tp, pp = p.pp, dp = fill })
  local t = topology(world)
  t.dense = g
  local how = { even = { "tp" }, ceil = { "tp", sizes = "ceil" }, cyclic = { "tp", cyclic = 3 }, parts = { "tp", parts = { 7, 3, 3 } } }
  local up = tensor { axes = { { "row", p.wide }, { "column", 1037 } }, type = "f32", cut = { row = "pp", column = "tp" } }
  t.up = p.flat > 0 and flat { up, over = "dp", pad = p.flat } or up
  t.layers_qkv = tensor { axes = { { "layer", 4 }, { "qkv", 13 }, { "hidden", 6 } }, type = "bf16",
    cut = { layer = "pp", qkv = how[p.cut] } }
  t.bias = tensor { axes = { { "n", 5 } }, type = "u8" }
  return t
end }
]]
local folder = support.folder()
local function at(name) return folder .. "/" .. name end

local function write(name, text)
  local f = assert(io.open(at(name), "wb"))
  f:write(text)
  f:close()
  return at(name)
end

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read "a"
  f:close()
  return text
end

local function file_of(header, data)
  if type(header) ~= "string" then header = json.encode(header) end
  return string.pack("<I8", #header) .. header .. data
end

-- whole(TENSORS): a file of { name, dtype, shape, bytes }
local function whole(tensors)
  local header, data, n = {}, {}, 0
  for i, t in ipairs(tensors) do
    header[t[1]] = { dtype = t[2], shape = setmetatable(t[3], { __jsontype = "array" }), data_offsets = { n, n + #t[4] } }
    data[i], n = t[4], n + #t[4]
  end
  return file_of(header, table.concat(data))
end

-- tensors(PATH): name -> dtype and bytes
local function tensors(path)
  local text = read(path)
  local n, list = string.unpack("<I8", text), {}
  for name, t in pairs(json.decode(text:sub(9, 8 + n))) do
    if name ~= "__metadata__" then
      list[name] = { t.dtype, text:sub(9 + n + t.data_offsets[1], 8 + n + t.data_offsets[2]) }
    end
  end
  return list
end

local function noise(n, seed)
  local piece = {}
  for i = 1, n do
    seed = (seed * 1103515245 + 12345) % 2147483648
    piece[i] = string.char(seed >> 16 & 255)
  end
  return table.concat(piece)
end

local up, qkv, bias = noise(640 * 1037 * 4, 1), noise(4 * 13 * 6 * 2, 2), noise(5, 3)
local original = {
  { "bias", "U8", { 5 }, bias }, { "layers.qkv", "BF16", { 4, 13, 6 }, qkv }, { "up", "F32", { 640, 1037 }, up },
}
local single = write("single.safetensors", whole(original))
-- as Hugging Face has it: each tensor in one of several files
write("a.safetensors", whole { original[3], original[1] })
write("b.safetensors", whole { original[2] })
write("hf.json", json.encode {
  metadata = { total_size = 1 },
  weight_map = { bias = "a.safetensors", up = "a.safetensors", ["layers.qkv"] = "b.safetensors" },
})

local function reshard(from, to, line)
  return run(("build/moongrid reshard %s --to %s -o %s %s"):format(from, recipe, at(to), line))
end

local function files(name)
  local list = {}
  for file in io.popen(("ls -A %s"):format(at(name))):lines() do list[#list + 1] = file end
  return list
end

describe("moongrid reshard", function()
  teardown(function()
    os.execute("rm -rf " .. folder)
  end)

  for _, case in ipairs {
    { "hf.json", "--world 4", "--world 6 tp=3 cut=cyclic" },
    { "single.safetensors", "--world 4 pp=2 cut=parts", "--world 8 flat=64 cut=ceil", "--world 5 tp=5 --window 1" },
    { "single.safetensors", "--world 7 tp=7 cut=ceil --window 1", "--world 6 tp=1 pp=3 flat=1 --window 1" },
    { "hf.json", "--world 4 tp=2 flat=1000 --window 1", "--world 12 tp=4 flat=7 pp=3 cut=cyclic", "--world 2 cut=cyclic" },
    { "hf.json", "--world 1 tp=1" },
  } do
    it(("through %s, and back: %s"):format(table.concat(case, "; ", 2), case[1]), function()
      local from = at(case[1])
      for i = 2, #case + 1 do
        local to = "step" .. i
        local out, err, code = reshard(from, to, case[i] or "--world 1 tp=1")
        assert.same({ "", 0 }, { err, code })
        assert.truthy(out:find "^3 tensors, 2.53 MiB, in %d+ files? of ", out)
        from = i % 2 == 0 and at(to) or at(to .. "/model.safetensors.index.json") -- a folder, or the index in it
      end
      local last = "step" .. #case + 1
      assert.same({ "model-00001-of-00001.safetensors", "model.safetensors.index.json" }, files(last))
      local list = tensors(at(last .. "/model-00001-of-00001.safetensors"))
      for _, t in ipairs(original) do
        assert.equal(t[2], list[t[1]][1])
        assert.is_true(t[4] == list[t[1]][2], t[1])
        list[t[1]] = nil
      end
      assert.is_nil(next(list))
      for i = 2, #case + 1 do os.execute("rm -r " .. at("step" .. i)) end
    end)
  end

  it("writes a file for each rank with a first copy, and keeps what the index says beside", function()
    assert.equal(0, select(3, reshard(at "hf.json", "cut", "--world 8 tp=2 pp=2")))
    local index = json.decode(read(at "cut/model.safetensors.index.json"))
    assert.equal(5, #files "cut") -- dp has copies
    assert.equal(#up + #qkv + #bias, index.metadata.total_size)
    assert.same({ file = "model-00004-of-00004.safetensors", runs = { { 320, 320 }, { 519, 518 } } }, index.parts.up.parts[4])
    assert.same({ { file = "model-00001-of-00004.safetensors", runs = { { 0, 5 } } } }, index.parts.bias.parts)
    os.execute("rm -r " .. at "cut")
  end)

  it("is words of the module: a checkpoint's tensors, a copy step by step, of which nothing stays if it is closed", function()
    local plan = moongrid.load(recipe):plan(4)
    local from = moongrid.checkpoint(at "hf.json")
    local names = {}
    for i, t in ipairs(from.tensors) do names[i] = ("%s %s %s"):format(t.name, t.type, table.concat(t.shape, "x")) end
    table.sort(names)
    assert.same({ "bias u8 5", "layers.qkv bf16 4x13x6", "up f32 640x1037" }, names)
    assert.equal("Checkpoint of 3 tensors", tostring(from))
    local line = ("build/moongrid reshard %s --to %s --world 4 -o %s"):format(at "hf.json", recipe, at "by_command")
    assert.equal(0, select(3, run(line)))
    local copy = from:reshard(plan, at "by_module", { window = 1 << 16 })
    local steps, done = 0, 0
    while copy:step() do
      steps = steps + 1
      assert.truthy(copy.progress.done > done)
      done = copy.progress.done
    end
    assert.same({ tensors = 3, bytes = done, files = 2, done = done, made = 2 }, copy.progress)
    assert.truthy(steps > done // (1 << 16))
    assert.equal("", (run(("diff -r %s %s"):format(at "by_command", at "by_module"))))
    local out, err, code = run(("LUA_CPATH_5_4='build/?.so;;' lua5.4 examples/recut.lua %s %s 4 %s tp=2"):format(at "hf.json",
      recipe, at "by_example"))
    assert.equal(0, code, err)
    assert.truthy(("\n" .. out):find "\nup\tf32\t640 x 1037\n" and out:find "\n3 tensors in 2 files\n$", out)
    assert.equal("", (run(("diff -r %s %s; rm -r %s"):format(at "by_command", at "by_example", at "by_example"))))
    assert.is_false(copy:step())
    do
      local closed <close> = from:reshard(plan, at "closed")
      assert.truthy(closed:step())
      assert.truthy(tostring(closed):find "^Resharding: %d+ of %d+ bytes$")
    end
    assert.is_nil((io.open(at "closed")))
    assert.is_nil((io.open(at "closed.part")))
    for message, ask in pairs {
      ["names:1: NAMES -> NAMES, or a pattern of names and a tensor of the recipe, are expected"] = { names = "x" },
      ["window has 1024 bytes or more"] = { window = 0 },
      ["names_from is not a text without zero bytes"] = { names = "x", names_from = "a\0" },
      ["unknown option of reshard 'name'; nearest is 'names' (convert, empty, names, names_from, recipe, recipe_names, window)"]
        = { name = 1 },
    } do
      local ok, why = pcall(from.reshard, from, plan, at "none", ask)
      assert.same({ false, message }, { ok, (tostring(why):gsub("^[^ ]+:%d+: ", "")) })
    end
    assert.is_nil((io.open(at "none")))
    os.execute(("rm -r %s %s"):format(at "by_command", at "by_module"))
  end)

  it("pairs tensors by a file of names", function()
    local stored = write("long.safetensors", whole {
      { "model.layers.0.mlp.up_proj.weight.of.a.long.name", "F32", { 640, 1037 }, up },
      { "model.layers.1.mlp.up_proj.weight", "F32", { 640, 1037 }, up:reverse() },
      { "bias", "U8", { 5 }, bias }, { "x", "BF16", { 4, 13, 6 }, qkv },
    })
    local names = write("names", "# comment\nmodel.layers.*.mlp.up_proj.*  up\r\n\nx layers_qkv # that\n")
    assert.equal(0, select(3, reshard(stored, "paired", "--world 4 --names " .. names)))
    assert.equal(0, select(3, reshard(at "paired", "back", "--world 1 tp=1 --names " .. names)))
    local list = tensors(at "back/model-00001-of-00001.safetensors")
    assert.is_true(list["model.layers.1.mlp.up_proj.weight"][2] == up:reverse())
    assert.is_true(list["model.layers.0.mlp.up_proj.weight.of.a.long.name"][2] == up)
    os.execute("rm -r " .. at "paired" .. " " .. at "back")
    for _, case in ipairs {
      { "up", "1: NAMES -> NAMES, or a pattern of names and a tensor of the recipe, are expected" },
      { "\na b c", "2: NAMES -> NAMES, or a pattern of names and a tensor of the recipe, are expected" },
      { "x bia", "1: no tensor 'bia'; nearest is 'bias' (up, layers_qkv, bias)" },
    } do
      write("names", case[1])
      local _, err, code = reshard(stored, "paired", "--world 4 --names " .. names)
      assert.same({ ("moongrid: %s:%s\n"):format(names, case[2]), 1 }, { err, code })
    end
  end)

  it("tells how far it is on a terminal, and only there", function()
    if os.execute "command -v script > /dev/null" == nil then return pending "no script" end
    local line = ("build/moongrid reshard %s --to %s -o %s --world 2"):format(single, recipe, at "told")
    local out = run(("script -qec '%s' /dev/null"):format(line))
    assert.truthy(out:find "\r\27%[K[%d.]+ %a+ of 2.53 MiB, %d+ %%\r", out)
    assert.truthy(out:find "\r\27%[K3 tensors, 2.53 MiB, in 2 files of ", out)
    os.execute("rm -r " .. at "told")
  end)

  it("holds no more than the window", function()
    if not io.open "/proc/self/status" then return pending "no /proc" end
    local big = write("big.safetensors", whole {
      { "up", "F32", { 16384, 1037 }, ("\1\2\3\4"):rep(16384 * 1037) }, original[1], original[2],
    })
    local line = ("build/moongrid reshard %s --to %s -o %s --world 2 wide=16384 --window "):format(big, recipe, at "big")
    local peak = {}
    for _, window in ipairs { 1, 48 } do
      local out, err = run("/usr/bin/env time -f %M " .. line .. window)
      if not out:find "tensors" then return pending("no time: " .. err) end
      peak[#peak + 1] = tonumber(err:match "%d+")
      os.execute("rm -r " .. at "big")
    end
    assert.truthy(peak[1] < 24 * 1024, "KiB: " .. peak[1]) -- of 65 MiB
    assert.truthy(peak[2] > peak[1] + 24 * 1024 and peak[2] < peak[1] + 50 * 1024, "KiB: " .. peak[2])
  end)

  it("writes out what a terminal would obey of the name of the folder", function()
    local out, err, code = reshard(single, "odd\27[2J", "--world 4")
    assert.same({ "", 0 }, { err, code })
    assert.truthy(out:find "/odd\\x1b%[2J\n$")
    os.execute("rm -r '" .. at "odd\27[2J" .. "'")
  end)

  it("takes away what one left that was killed", function()
    local big = write("killed.safetensors", whole {
      { "up", "F32", { 65536, 1037 }, ("\1\2\3\4"):rep(65536 * 1037) }, original[1], original[2],
    })
    local line = ("build/moongrid reshard %s --to %s -o %s --world 2 wide=65536 --window 1"):format(big, recipe, at "left")
    -- stopped as soon as it writes, so that it is killed on the way however fast it is
    local _, _, code = run(("bash -c '%s & while [ ! -e %s/model-00001-of-00002.safetensors ]; do :; done; "
      .. "kill -STOP $!; kill -KILL $!; wait $!'"):format(line, at "left.part"))
    assert.equal(137, code)
    assert.same({ "model-00001-of-00002.safetensors" }, files "left.part")
    local out, err
    out, err, code = reshard(single, "left", "--world 4")
    assert.same({ "", 0 }, { err, code })
    assert.truthy(out:find "in 2 files of ")
    assert.same({ "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json" },
      files "left")
    assert.is_nil((io.open(at "left.part")))
    os.execute("rm -r " .. at "left" .. " " .. big)
  end)

  describe("refuses", function()
    -- wrong(FROM, MESSAGE[, LINE[, CODE]]): one message, and nothing is left behind; %s of the message is the file
    local function wrong(from, message, line, code)
      local _, err, got = reshard(from, "none", line or "--world 4")
      assert.same({ "moongrid: " .. message:gsub("FILE", (from:gsub("%%", "%%%%"))) .. "\n", code or 1 }, { err, got })
      assert.is_nil((io.open(at "none")))
      assert.is_nil((io.open(at "none.part")))
    end
    local function bad(name, text, message) wrong(write(name .. ".safetensors", text), message) end
    local one = { dtype = "U8", shape = { 5 }, data_offsets = { 0, 5 } }
    local function other(changes)
      local t = {}
      for k, v in pairs(one) do t[k] = v end
      for k, v in pairs(changes) do t[k] = v end
      return t
    end

    it("files that are none", function()
      bad("empty", "", "FILE: has 0 bytes; a safetensors file has 8 or more")
      bad("short", "1234567", "FILE: has 7 bytes; a safetensors file has 8 or more")
      bad("beyond", string.pack("<I8", 100) .. "{}",
        "FILE: its header has 100 bytes, and the file has 10; is it a safetensors file, and whole?")
      bad("huge", ("\255"):rep(8) .. "{}",
        "FILE: its header has 18446744073709551615 bytes, and the file has 10; is it a safetensors file, and whole?")
      bad("text", file_of("{x}", ""), "FILE: its header is not a JSON object: string or '}' expected near 'x'")
      bad("list", file_of("[]", ""), "FILE: its header is not a JSON object")
      bad("twice", file_of('{"a":1,"a":1}', ""), "FILE: its header is not a JSON object: duplicate object key near '\"a\"'")
      wrong(at "not.safetensors", "FILE: cannot be opened: No such file or directory")
      wrong(at "not.json", "cannot open FILE: No such file or directory")
      os.execute("mkdir " .. at "bare")
      wrong(at "bare", "FILE has neither model.safetensors.index.json nor model.safetensors")
      os.execute("mkfifo " .. at "pipe.safetensors")
      wrong(at "pipe.safetensors", "FILE: is not a regular file")
    end)

    it("tensors that are wrong", function()
      local data = "12345"
      bad("cut", whole(original):sub(1, -2),
        "FILE: tensor 'up' ends at byte 2655349 of the data, and the file has 2655348 of them; is it truncated?")
      bad("dtype", file_of({ a = other { dtype = "F7" } }, data), "FILE: tensor 'a' has the dtype 'F7', which is not known")
      bad("lacks", file_of({ a = { dtype = "U8" } }, data), "FILE: tensor 'a' needs dtype, shape and two data_offsets")
      bad("none", file_of({ a = 1 }, data), "FILE: tensor 'a' needs dtype, shape and two data_offsets")
      bad("minus", file_of({ a = other { shape = { -5 } } }, data), "FILE: tensor 'a' has a shape that is not a list of lengths")
      bad("size", file_of({ a = other { shape = { 4 } } }, data),
        "FILE: tensor 'a' has data_offsets 0 to 5, which is not the size of its shape")
      bad("many", file_of({ a = other { shape = { 1 << 40, 1 << 40 } } }, data),
        "FILE: tensor 'a' has data_offsets 0 to 5, which is not the size of its shape")
      bad("axes", file_of({ a = other { shape = { 5, 1, 1, 1, 1, 1, 1, 1, 1 } } }, data),
        "FILE: tensor 'a' has 9 axes; 8 are the most")
      bad("overlap", file_of('{"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},'
        .. '"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}', "12345678"), "FILE: tensors 'a' and 'b' overlap")
      bad("hole", file_of({ a = other { data_offsets = { 2, 7 } } }, "1234567"),
        "FILE: nothing says what bytes 0 to 2 of the data are")
      bad("more", file_of({ a = one }, data .. "6"), "FILE: 1 bytes follow the last tensor")
    end)

    it("what recipe and checkpoint do not both have", function()
      wrong(write("lack.safetensors", whole { original[1], original[2] }), "the checkpoint has no tensor that is 'up' of the recipe")
      wrong(write("extra.safetensors", whole { original[1], original[2], original[3], { "b.ias", "U8", { 5 }, bias } }),
        recipe .. ": no tensor 'b.ias'; nearest is 'bias'; --names with the rule 'b.ias -> -' leaves it out")
      wrong(single, "tensor 'up' is f32 640 x 1037 in the checkpoint, and 'up' of the recipe is f32 641 x 1037",
        "--world 4 wide=641")
      wrong(write("type.safetensors", whole { { "bias", "I8", { 5 }, bias }, original[2], original[3] }),
        "tensor 'bias' is i8 in the checkpoint, and 'bias' of the recipe is u8")
      wrong(write("scalar.safetensors", whole { { "bias", "U8", {}, "1" }, original[2], original[3] }),
        "tensor 'bias' is u8 in the checkpoint, and 'bias' of the recipe is u8 5")
      wrong(write("shown.safetensors", whole { { "b\27[1m", "U8", { 5 }, bias } }),
        recipe .. ": no tensor 'b\\x1b[1m'; known: up, layers_qkv, bias")
    end)

    it("cuts that leave ranks without anything of a tensor, but where lists or --empty say so", function()
      local layout = write("heads.lua", [[
return recipe { params = { tp = 8, cut = "heads" }, build = function(world, p)
  local t, how = topology(world), { heads = { "tp", unit = 2 }, ceil = { "tp", sizes = "ceil" }, cyclic = { "tp", cyclic = 3 },
    parts = { "tp", parts = { 4, 2, 2 } }, sizes = { "tp", sizes = { 4, 0, 4 } }, owners = { "tp", owners = { 0, 0, 0, 0, 2, 2, 2, 2 } } }
  t.g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
  t.x = t.g "tp"
  t.k = tensor { axes = { { "head", 8 } }, type = "u8", cut = { head = how[p.cut] } }
  return t
end }]])
      local from = write("heads.safetensors", whole { { "k", "U8", { 8 }, "12345678" } })
      local line = "build/moongrid reshard %s --to %s -o %s --world %s"
      for _, case in ipairs {
        { "16", "axis 'head' has 4 units of 2 for tp 8, so ranks 4..7, 12..15 (8 of 16) have nothing of it; nearest: tp 4, or copies = true" },
        { "5 tp=5 cut=ceil", "axis 'head' has 8 elements, rounded up, for tp 5, so rank 4 (1 of 5) has nothing of it; nearest: tp 4" },
        { "8 cut=cyclic", "axis 'head' has 3 blocks of 3 for tp 8, so ranks 3..7 (5 of 8) have nothing of it; nearest: tp 3" },
        { "4 tp=4 cut=parts", "part 1 of axis 'head' has 2 elements for tp 4, so ranks 2..3 (2 of 4) have nothing of it; nearest: tp 2" },
      } do
        local out, err, code = run(line:format(from, layout, at "heads", case[1]))
        assert.same({ "", ("moongrid: %s: tensor 'k': %s; --empty allows this\n"):format(layout, case[2]), 1 }, { out, err, code })
        assert.is_nil((io.open(at "heads")))
        local note = ("moongrid: note: tensor 'k': %s\n"):format(case[2])
        err, code = select(2, run(line:format(from, layout, at "heads", case[1]) .. " --empty"))
        assert.same({ note, 0 }, { err, code })
        os.execute("rm -r " .. at "heads")
      end
      for how, word in pairs { sizes = "bounds", owners = "owners" } do
        local _, err, code = run(line:format(from, layout, at "heads", "3 tp=3 cut=" .. how))
        assert.same({ ("moongrid: note: tensor 'k': axis 'head' has %s that leave pieces of tp 3 empty, so rank 1 (1 of 3) "
          .. "has nothing of it\n"):format(word), 0 }, { err, code })
        os.execute("rm -r " .. at "heads")
      end
      assert.same({ "", 0 }, { select(2, run(line:format(from, layout, at "heads", "8 tp=4"))) })
      os.execute("rm -r " .. at "heads")
    end)

    it("indices that are wrong", function()
      local map = { bias = "a.safetensors", up = "a.safetensors", ["layers.qkv"] = "b.safetensors" }
      local function index(change, message, parts)
        local mine = {}
        for k, v in pairs(map) do mine[k] = v end
        for k, v in pairs(change) do mine[k] = v end
        wrong(write("wrong.json", json.encode { weight_map = mine, parts = parts }), message)
      end
      wrong(write("wrong.json", "{"), "FILE: line 1: string or '}' expected near end of file; an index, or a file *.safetensors, is expected")
      wrong(write("wrong.json", "{}"), "FILE has no weight_map: it is not an index of safetensors files")
      index({ bias = "../a.safetensors" }, "the index names '../a.safetensors', which is not the name of a file beside it")
      index({ bias = 1 }, "the index on tensor 'bias': the name of a file is wanted")
      index({ bias = "b.safetensors" }, at "b.safetensors" .. " has no tensor 'bias', which the index says")
      index({ bias = "c.safetensors" }, at "c.safetensors" .. " is missing; the index names it")
      local function parts(message, ...)
        index({}, message, { bias = { type = "u8", shape = { 5 }, parts = { ... } } })
      end
      local half = { file = "a.safetensors", runs = { { 0, 3 } } }
      index({}, "the index on tensor 'bias': type, shape and parts are wanted", { bias = {} })
      parts("the index on tensor 'bias': no part has element [0]")
      parts("the index on tensor 'bias': a part without its file", { runs = { { 0, 5 } } })
      parts("the index on tensor 'bias': a part has not as many axes as the tensor", { file = "a.safetensors", runs = {} })
      parts("the index on tensor 'bias': runs of a part are not ascending, or beyond the shape",
        { file = "a.safetensors", runs = { { 2, 2, 1, 1 } } })
      parts("the index on tensor 'bias': runs of a part are not ascending, or beyond the shape",
        { file = "a.safetensors", runs = { { 1, 5 } } })
      parts("the index on tensor 'bias': a slice that is beyond its part",
        { file = "a.safetensors", runs = { { 0, 5 } }, first = 3, elements = 3 })
      parts(at "a.safetensors" .. " has another shape or type of tensor 'bias' than the index says", half)
      local all = { file = "a.safetensors", runs = { { 0, 5 } } }
      parts("the index on tensor 'bias': two parts are in " .. at "a.safetensors" .. ", which has one", all, all)
      parts("the index on tensor 'bias': the runs of a part are not a list of a start and a length each",
        { file = "a.safetensors", runs = { { 0, 5, 1 } } })
      parts("the index on tensor 'bias': the runs of a part are not a list of a start and a length each",
        { file = "a.safetensors", runs = { 5 } })
      parts("the index on tensor 'bias': the runs of a part are not all integers",
        { file = "a.safetensors", runs = { { "0", 5 } } })
      parts("the index on tensor 'bias': first and elements of a part are integers",
        { file = "a.safetensors", runs = { { 0, 5 } }, first = "0" })
      index({}, "the index on tensor 'bias': the shape is wrong", { bias = { type = "u8", shape = { "5" }, parts = {} } })
      index({}, at "wrong.json" .. ": its parts are not an object with a tensor's name each", "none")
    end)

    it("parts that overlap, or leave a gap, also of as many elements", function()
      local function parts(message, shape, ...)
        local list = {}
        for i, runs in ipairs { ... } do
          local stored, slice = {}, runs.first
          for axis, has in ipairs(runs) do stored[axis] = has[2] + (has[4] or 0) end
          local n = 1
          for _, length in ipairs(stored) do n = n * length end
          if slice then stored, n = { runs.elements }, runs.elements end
          write("part" .. i, whole { { "w", "U8", stored, noise(n, i) } })
          list[i] = { file = "part" .. i, runs = { table.unpack(runs) }, first = slice, elements = runs.elements }
        end
        wrong(write("wrong.json", json.encode { weight_map = { w = "part1" },
          parts = { w = { type = "u8", shape = shape, parts = list } } }), "the index on tensor 'w': " .. message)
      end
      parts("the parts in part1 and part2 both have element [2]", { 8 }, { { 0, 4 } }, { { 2, 4 } })
      parts("no part has element [4]", { 8 }, { { 0, 4 } }, { { 5, 3 } })
      parts("no part has element [7]", { 8 }, { { 0, 4 } }, { { 4, 3 } })
      parts("the parts in part1 and part2 both have element [0, 0]", { 2, 4 }, { { 0, 1 }, { 0, 4 } }, { { 0, 1 }, { 0, 4 } })
      parts("no part has element [1, 2]", { 2, 4 }, { { 0, 1 }, { 0, 4 } }, { { 1, 1 }, { 0, 2 } })
      parts("the parts in part1 and part2 both have element [0, 1]", { 2, 4 }, { { 0, 2 }, { 0, 2 } }, { { 0, 2 }, { 1, 1, 3, 1 } })
      parts("no part has element [1, 0]", { 3, 2 }, { { 0, 1, 2, 1 }, { 0, 2 } })
      parts("no part has element [1, 1]", { 2, 4 }, { { 0, 2 }, { 0, 4 }, first = 0, elements = 5 },
        { { 0, 2 }, { 0, 4 }, first = 6, elements = 2 })
      parts("the parts in part1 and part2 both have element [1, 0]", { 2, 4 }, { { 0, 2 }, { 0, 4 }, first = 0, elements = 5 },
        { { 0, 2 }, { 0, 4 }, first = 4, elements = 3 })
    end)

    it("headers and indices with bytes that are anything, or takes them", function()
      math.randomseed(17)
      local index = { weight_map = { bias = "noise.safetensors" },
        parts = { bias = { type = "u8", shape = { 5 }, parts = { { file = "noise.safetensors", runs = { { 0, 5 } } } } } } }
      local texts = { whole { original[1] }, json.encode(index) }
      local wanted = write("bias.lua", [[return recipe { doc = "one", build = function(world)
        local t = topology(world)
        t.g = grid(world, "dp")
        t.bias = tensor { axes = { { "n", 5 } }, type = "u8" }
        return t
      end }]])
      for round = 1, 120 do
        local mine = { texts[1], texts[2] }
        local k, n = round % 2 + 1, math.random(3)
        for _ = 1, n do
          local i = math.random(#mine[k])
          mine[k] = mine[k]:sub(1, i - 1) .. (math.random(2) == 1 and string.char(math.random(0, 255)) or "") .. mine[k]:sub(i + 1)
        end
        write("noise.safetensors", mine[1])
        write("noise.json", mine[2])
        local out, err, code = run(("build/moongrid reshard %s --to %s --world 2 -o %s"):format(at "noise.json", wanted, at "noise"))
        assert.truthy(code == 0 and err == "" or code == 1 and out == "" and err:find "^moongrid: [^\n]+\n$", mine[k] .. err)
        assert.equal(code == 0, os.execute(("test -d %s"):format(at "noise")) == true)
        os.execute("rm -rf " .. at "noise")
      end
    end)

    it("lines that are not whole, and a folder that is there", function()
      local function line(words, message)
        local _, err, code = run("build/moongrid reshard " .. words)
        assert.same({ "moongrid: " .. message .. "\n", 2 }, { err, code })
      end
      line("", "reshard needs a checkpoint: an index, its folder, or a .safetensors file")
      line("x", "reshard needs --to RECIPE, whose tensors have the new layout")
      line("x --to y", "reshard needs -o FOLDER, where the files go")
      line("x --to y --world 4 z", "unexpected argument 'z': moongrid reshard CHECKPOINT --to RECIPE [...] -o FOLDER")
      line("x --to y --world 4 --window 0", "--window is an integer from 1 to 2147483647, the number of MiB, not '0'")
      local _, err, code = reshard(single, "b.safetensors", "--world 4")
      assert.same({ ("moongrid: %s is there already; nothing is written over\n"):format(at "b.safetensors"), 1 }, { err, code })
      _, err, code = reshard(single, "no/where", "--world 4")
      assert.same({ ("moongrid: cannot make %s: No such file or directory\n"):format(at "no/where"), 3 }, { err, code })
    end)

    it("a folder that another process makes, or that is not its own", function()
      if os.execute "command -v flock > /dev/null" == nil then return pending "no flock" end
      local line = ("build/moongrid reshard %s --to %s -o %s --world 4"):format(single, recipe, at "both")
      local function stays(with, message)
        local _, err, code = run(line)
        assert.same({ ("moongrid: %s %s\n"):format(at "both.part", message), 1 }, { err, code })
        assert.same(with, files "both.part/")
      end
      local somebodys = "is there already, and moongrid has not made it; take it away, or write " .. at "both" .. " under another name"
      os.execute("mkdir " .. at "both.part")
      stays({}, somebodys)
      write("both.part/model-00001-of-00002.safetensors", "half")
      stays({ "model-00001-of-00002.safetensors" }, somebodys)
      os.execute("chmod +t " .. at "both.part")
      local _, err, code = run(("flock %s %s"):format(at "both.part", line))
      assert.same({ ("moongrid: another process is making %s just now\n"):format(at "both"), 1 }, { err, code })
      assert.same({ "model-00001-of-00002.safetensors" }, files "both.part")
      write("both.part/notes", "of somebody")
      stays({ "model-00001-of-00002.safetensors", "notes" }, "is there already, with a file 'notes' in it; take it away")
      os.execute("rm -r " .. at "both.part")
      write("both.part", "a file")
      _, err, code = run(line)
      assert.same({ ("moongrid: %s %s\n"):format(at "both.part", somebodys), 1, "a file" }, { err, code, support.read(at "both.part") })
      os.execute(("rm %s; mkdir -m 1700 %s; ln -s %s %s"):format(at "both.part", at "elsewhere", at "elsewhere", at "both.part"))
      stays({}, somebodys)
      os.execute(("rm -r %s %s"):format(at "both.part", at "elsewhere"))
    end)

    it("to write over, into or around what it reads", function()
      local _, _, code = reshard(single, "in.part", "--world 2")
      assert.equal(0, code)
      os.execute(("ln -s in.part %s; ln -s %s %s"):format(at "link", at ".", at "here"))
      for _, case in ipairs {
        { "in.part", "in", "in would be written over in.part" },
        { "link", "in", "in would be written over link" },
        { "in.part/model-00001-of-00002.safetensors", "in", "in would be written over in.part/model-00001-of-00002.safetensors" },
        { "in.part", "here/in", "here/in would be written over in.part" },
        { "in.part", "in.part", "in.part would be in in.part" },
        { "in.part", "in.part/out", "in.part/out would be in in.part" },
        { "link", "in.part/out", "in.part/out would be in link" },
        { "in.part", "here/link/out", "here/link/out would be in in.part" },
        { "in.part", ".", ". would be written over in.part" },
        { "in.part/model.safetensors.index.json", "in.part/out", "in.part/out would be in in.part" },
        { "link/model.safetensors.index.json", "here/in.part/out", "here/in.part/out would be in link" },
      } do
        for _, mark in ipairs { "chmod -t ", "chmod +t " } do -- that of a killed process changes nothing
          os.execute(mark .. at "in.part")
          local was = files "in.part"
          local _, err
          _, err, code = run(("cd %s && %s/build/moongrid reshard %s --to %s --world 1 -o %s"):format(at ".", os.getenv "PWD",
            case[1], recipe, case[2]))
          assert.same({ ("moongrid: %s, which is read; take another name\n"):format(case[3]), 1 }, { err, code })
          assert.same(was, files "in.part")
        end
      end
      os.execute(("rm -r %s %s %s"):format(at "in.part", at "link", at "here"))
    end)

    it("a disk that is full, and leaves nothing behind", function()
      local _, err = run(("bash -c 'trap \"\" XFSZ; ulimit -f 900; exec build/moongrid reshard %s --to %s -o %s --world 4'"):format(
        single, recipe, at "none"))
      assert.equal(("moongrid: cannot write %s/model-00001-of-00002.safetensors: File too large\n"):format(at "none.part"), err)
      assert.is_nil((io.open(at "none")))
      assert.is_nil((io.open(at "none.part")))
    end)
  end)
end)
