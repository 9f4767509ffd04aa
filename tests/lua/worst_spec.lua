-- SPDX-License-Identifier: MIT
--
-- Work is charged before it is done: every function that a recipe can call, with the worst values, every reader of
-- files, with the worst files of 1 MiB, and the worst steps stay within 1.5 times the limits of processor time and
-- memory (tests/c/worst.c). MOONGRID_SEED=N, WORST_CALLS=N and WORST_ROUNDS=N try others, and more. A file of a machine of 1 KiB takes at most a second and 256 MiB. Functions and files are
-- not listed here: the annotations have the names, which annotations_spec.lua compares with the library, and files are
-- made from the signs of each language.

local support = dofile "tests/lua/support.lua"
local read = support.read

local folder

lazy_setup(function()
  folder = support.folder()
end)
lazy_teardown(function() os.execute("rm -r " .. folder) end)

local function write(name, text) return support.write(folder .. "/" .. name, text) end

-- Every name that is annotated, and the globals of recipes.
local function annotated()
  local names, globals = {}, {}
  local env = setmetatable({}, {
    __index = function(_, name)
      return name == "string" and {} or name == "require" and function() return {} end or nil
    end,
    __newindex = function(_, name) globals[name] = true end,
  })
  for path in assert(io.popen "ls lua/moongrid/meta*.lua"):lines() do
    local meta = read(path)
    for name in meta:gmatch "%-%-%-@field ([%a_][%w_]*)" do names[name] = true end
    for name in meta:gmatch "\nfunction %w+[.:]([%w_]+)%(" do names[name] = true end
    for kind, list in meta:gmatch "\n%-%-   (%l+) +(%l[^\n]*)" do
      for name in list:gmatch "%w+" do
        names[name] = true
        if kind == "globals" then globals[name] = true end
      end
      if kind ~= "globals" then globals[kind] = true end
    end
    assert(loadfile(path, "t", env))()
  end
  return names, globals
end

local function sorted(set)
  local list = {}
  for name in pairs(set) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local seed = tonumber(os.getenv "MOONGRID_SEED") or 20261129
math.randomseed(seed)

-- Run them, and expect no fault: the whole output is told, with the seed.
local function stays_within(arguments, least)
  local out, err, code = support.run("build/tests/worst " .. arguments)
  out = ("MOONGRID_SEED=%d: %s%s"):format(seed, out, err)
  assert.are.equal(0, code, out)
  assert.is_true(tonumber(out:match "%l+ (%d+), longest") >= least, out)
end

describe("the worst values", function()
  local calls = tonumber(os.getenv "WORST_CALLS") or 150 -- 41 of them make the values
  for _, world in ipairs { "8", "1073741824" } do
    it("stay within the limits of any call: " .. world .. " ranks", function()
      local names, globals = annotated()
      local text = {}
      for _, name in ipairs(sorted(names)) do text[#text + 1] = ("%q"):format(name) end
      local given = {}
      for _, name in ipairs(sorted(globals)) do given[#given + 1] = ("%s = %s"):format(name, name) end
      local line = ("local NAMES, GLOBALS, SEED = { %s }, { %s }, %d"):format(
        table.concat(text, ", "), table.concat(given, ", "), seed)
      local recipe = read "tests/lua/worst.lua":gsub("local NAMES, GLOBALS, SEED = {}, {}, 1", function() return line end)
      stays_within(("recipe %s %s %d"):format(write("calls.lua", recipe), world, calls), calls)
    end)
  end
end)

-- Files -------------------------------------------------------------------------------

-- What begins a text of each language, and its signs: %d is another number each time.
local languages = {
  json = {
    begins = { "", '{"x": ', '{"x": [', '{"x": {' },
    signs = { "[", "{", "]", "}", '"', ":", ",", "1", "-", "9", ".", "e", "\\u0000", "\\", "null", "a", " ", "\n", "\0", '"a%d": ',
              '{"a":', '[1,', '"a%d",', '"a":1,', "1,", "[],", "{}," },
  },
  yaml = {
    begins = { "", "x: ", "x:\n", "x: [", "x: {", "x: '", "x: |\n" },
    signs = { "[", "{", "]", "}", "- ", "? ", ": ", "a%d: ", "a: ", "&a%d ", "*a%d ", "&a%d x, ", " - &a%d y\n", " - *a0\n", "!t%d ", "!<x%d> ",
              "%%TAG !%d! y\n", "%%YAML 1.1\n", "'", '"', "|", ">", "#", "\n", " ", "\t", "x", "9", ",", "x, ", "\\0", "\0", "---\n", "...\n",
              "<<: ", "\n ", "- \n", "a%d: 1\n", "a%d: &a%d {b: 1}\n", "\xff", "@", "`" },
  },
  lua = {
    begins = { "", "return ", "local x = ", "return {", "recipe ", "return recipe { doc = " },
    signs = { "(", ")", "{", "}", "[", "]", "'", '"', "[[", "]]", "--", "\n", " ", "a", ".a", ":a()", "a%d = ", "a%d ", "1", "9", "..", "1 .. ", "-", "not ",
              "and ", "1 + ", "1 ^ ", "a and ", "::a%d:: ", "goto a%d ", "local a%d ", "local a%d = 1 ", "if 1 then ", "do ", "while 1 do ",
              "function() ", "end ", "return ", "{1,", "{}, ", "1, ", "a = {", "'a%d', ", "f'' ", "f{} ", ";", "break ", "\\", "\0", "\xff",
              "[=", "=", "0x", "e", "repeat ", "until 1 ", "for i=1,1 do " },
  },
}

local SIZE = 2 ^ 20 - 64

-- begin, and then a unit as often as there is room.
local function fill(begin, unit)
  if not unit:find "%%" then return begin .. unit:rep((SIZE - #begin) // #unit | 0) end
  local parts, size, n = { begin }, #begin, 0
  local _, numbers = unit:gsub("%%d", "")
  while size < SIZE - 2 * #unit - 16 do
    n = n + 1
    parts[n + 1] = unit:format(table.unpack({ n, n, n, n, n, n }, 1, numbers))
    size = size + #parts[n + 1]
  end
  return table.concat(parts)
end

-- Every sign alone behind a begin, and some pairs; the paths in a file, a line each.
local function files_of(language, count)
  local l, list = languages[language], {}
  local function add(begin, unit)
    list[#list + 1] = write(("%d.%s"):format(#list, language), fill(begin, unit))
  end
  local function any(of) return of[math.random(#of)] end
  for _, sign in ipairs(l.signs) do add(any(l.begins), sign) end
  for _ = 1, count do add(any(l.begins), any(l.signs) .. any(l.signs)) end
  return write(language, table.concat(list, "\n") .. "\n"), #list, list
end

describe("the worst files", function()
  local recipe = [[return recipe { params = { f = param.file({}, "a file") }, build = function(world)
    local t = topology(world)
    t.a = grid(world, "a", { a = fill }) "a"
    return t
  end }]]

  for _, language in ipairs { "json", "yaml" } do
    it("stay within the limits of a recipe: " .. language, function()
      local paths, n, list = files_of(language, 20)
      stays_within(("files %s <%s"):format(write("recipe.lua", recipe), paths), n)
      for _, path in ipairs(list) do os.remove(path) end
    end)
  end

  it("stay within the limits of a recipe: recipes", function()
    local paths, n, list = files_of("lua", 20)
    stays_within("texts <" .. paths, n)
    for _, path in ipairs(list) do os.remove(path) end
  end)

  it("are read by reshard in a moment", function()
    local _, _, list = files_of("json", 10)
    write("to.lua", recipe)
    for _, path in ipairs(list) do
      local _, err, code = support.run(("ulimit -t 3 -v 400000; build/moongrid reshard %s --to %s/to.lua --world 8 -o %s/out"):format(
        path, folder, folder))
      assert.are.equal(1, code, ("MOONGRID_SEED=%d: %s: %s"):format(seed, read(path):sub(1, 60), err))
      os.remove(path)
    end
  end)
end)

-- Machines ----------------------------------------------------------------------------

-- The files of each reader: what begins a text, its signs, and what ends it. %d is a number of any size.
local machines = {
  words = {
    begins = { "node:4 gpu:8 ", "" },
    signs = { "a%d:%d ", "node:%d", ",%d", ",%dx%d", "gpu:%d ", "rail = gpu", " / %d", " in node ", "ranks = %d..%d", ",%d..%d", "[%dGB/s]", "0..%d",
              "*", "x", ":", "=", " " },
  },
  hostfile = { begins = { "" }, signs = { "n%d slots=%d\n", "n%d:%d\n", "n%d\n", "#", " slots=%d", "n[0-%d]", "max_slots=1 ", "\\\n", "n0", "\t" } },
  rankfile = { begins = { "rank 0=n0 slot=0\n" }, signs = { "rank %d=n%d slot=%d\n", "rank %d=n0 slot=0:0-3\n", "\n", "#", "rank ", "=" } },
  kubectl = {
    begins = { '{"items": [', '{"kind": "List", "items": [' },
    signs = { '{"metadata": {"name": "n%d", "labels": {"nvidia.com/gpu.clique": "c%d"}}, "status": {"allocatable": {"amd.com/gpu": "4"}}},', "[", "{",
              '{"metadata": {"name": "m%d"}, "status": {"allocatable": {"x.y/%d": "4"}}},' },
    ends = { '{"metadata": {"name": "z"}}]}', "" },
  },
  slurm = {
    begins = { "SwitchName=s Nodes=", "SwitchName=s Switches=", "SwitchName=s Nodes=n[", "BlockName=b Nodes=", "SwitchName=s Switches=s0\n" },
    signs = { "n[0-%d]", "[0-%d]", "[0-%d,0-%d]", "[%d", ",", "n%d,", "]", "0-%d,", "SwitchName=s%d Switches=s%d\n", "SwitchName=s%d Nodes=n%d\n", "\n",
              "SwitchName=s%d Nodes=n[0-%d]\n", " Nodes=n[0-%d]", "\\\n", "#", "0", "SwitchName=a%d Switches=a[0-%d]\n" },
  },
  slurm_job = {
    begins = { "SLURM_JOB_NODELIST=", "SLURM_TOPOLOGY_ADDR=s.n\n", "SLURM_TOPOLOGY_ADDR=" },
    signs = { "n[0-%d]", "[0-%d]", ",", "s%d.", ".", "SLURM_TOPOLOGY_ADDR=s%d.t%d.n%d\n", "SLURM_TOPOLOGY_ADDR=s%d.s%d\n", "0: ", ":", "=",
              "SLURM_JOB_NODELIST=n[0-%d]\n", "\n" },
  },
  slurm_yaml = {
    begins = { "- topology: a\n  tree:\n    switches:\n", "- topology: a\n", "- topology:\n - switch: a\n   nodes: " },
    signs = { "- switch: s%d\n  children: s[0-%d]\n", "- switch: s%d\n  nodes: n[0-%d]\n", "- ", "n[0-%d]", "[0-%d],", "nodes: n[0-%d][0-%d]\n", ":", "'",
              " #", "\n", "- topology: a%d\n", "  - %d\n", "children: s%d\n", "- block: b%d\n" },
  },
  json = {
    begins = { '{"levels": [', '{"levels": [{"name": "a", "counts": [', '{"levels": [{"name": "a", "counts": [9]}], "ranks": [', '{"items": [{"metadata": {"name": "a"}},', "{" },
    signs = { '{"name": "l%d", "counts": [%d]},', "%d,", "[", "{", '"a%d": "s%d",', '"a": ', "]}", '{"name": "b%d", "of": "a"},', "1,", '{"metadata": {"name": "n%d"}},',
              '"crossings": [', ']}], "ranks": [', '"metadata": {"name": "n%d"}', "9e9,", '"' },
    ends = { "", "]}", "1]}]}", '{"metadata": {"name": "z"}}]}', '"z": "s"}' },
  },
  nvidia_topo = {
    begins = { "\tGPU0\tGPU1\tCPU Affinity\n", "\tGPU0 X" },
    signs = { "\tGPU%d", "GPU%d\tX\tNV4\n", "\tNV4", "\tSYS", "\n", "\27[4m", "\27", "GPU", " " },
  },
  nvidia_q = {
    begins = { "NVSMI LOG\nAttached GPUs : 2\n" },
    signs = { "Attached GPUs : 1\n", "GPU %d\n", "CliqueId : %d\nClusterUUID : %d\n", "Attached GPUs : %d\nGPU 0\n", "\n", " " },
  },
  xml = {
    begins = { "<system><cpu>", "<topology>", "<system", '<topology><object type="Package">', "<system><!--",
               "<graphs><graph><channel>", '<!DOCTYPE a [<!ENTITY b "c">]><topology>' },
    signs = { "<cpu>", "<pci>", "<object type='Machine'>", "<gpu/>", ' a%d="1"', '<gpu dev="%d"/>',
              "</cpu>", '<object type="Package">', '<object type="Core"/>', "</object>", "<", ">", '"', " a=", "'", "<!--", "-->", "<a ",
              '<object type="OSDev" name="nvml%d"/>', " type=", '<cpu host_hash="%d"/>', "/", "\n", 'type="Core" ' },
    ends = { "", "</cpu></system>", "</object></topology>", "</topology>", "</channel></graph></graphs>" },
  },
}

-- A number of any size, mostly a large one.
local function number() return math.random(0, 10 ^ math.random(0, 10) // 1) end

-- About `size` bytes: a begin, and one to three units in turn, each with new numbers, or as often as there is room.
local function machine_file(of, size)
  local units, parts, at, fixed = {}, { of.begins[math.random(#of.begins)] }, 0, math.random(3) == 1
  for i = 1, math.random(3) do units[i] = of.signs[math.random(#of.signs)]:rep(math.random(4) == 1 and math.random(8) or 1) end
  local unit = table.concat(units)
  while at < size do
    parts[#parts + 1] = fixed and parts[2] or unit:gsub("%%d", number)
    at = at + #parts[#parts]
    if #parts > 2 and math.random(200) == 1 and size < 2000 then break end
  end
  parts[#parts + 1] = of.ends and of.ends[math.random(#of.ends)]
  return table.concat(parts)
end

local behind = { "", "", "gpu:2", " gpu:%d rail = gpu", "nodes=n[0-%d]", "topology=tree gpu:%d,%d", "ranks = %d..%d" }

describe("the worst machines", function()
  local rounds = tonumber(os.getenv "WORST_ROUNDS") or 1
  local function stay_within(name, size, count, mib, seconds)
    local lines, paths = {}, {}
    for i = 1, count * rounds do
      local text = machine_file(machines[name], size)
      if name == "words" and size < 4096 then
        lines[i] = text:gsub("\n", " ")
      else
        paths[i] = write(("%s%d.machine"):format(name, i), text)
        lines[i] = paths[i] .. " " .. behind[math.random(#behind)]:gsub("%%d", number)
      end
    end
    stays_within(("machines %d %g <%s"):format(mib, seconds, write("machines", table.concat(lines, "\n") .. "\n")), #lines)
    for _, path in pairs(paths) do os.remove(path) end
  end
  for _, name in ipairs(sorted(machines)) do
    it("of 1 KiB take a second and 256 MiB at most: " .. name, function() stay_within(name, 1000, 30, 256, 1) end)
    it("of 1 MiB end, too: " .. name, function() stay_within(name, 2 ^ 20, 1, 700, 4) end)
  end
end)

-- Steps -------------------------------------------------------------------------------

describe("the worst steps", function()
  local FAMILIES = [[
    local t, g = topology(world), grid(world, "a-b-c", { a = 2, b = fill, c = 2 })
    t.a, t.b, t.all, t.line = g "a", g "b", g("a", "b", "c"), g("b"):pairs()
    local path = { { 0 } }
    for i = 1, world.size - 2, 2 do path[#path + 1] = { i, i + 1 } end
    path[#path + 1] = { world.size - 1 }
    t.path = world:table(path)
    return t]]

  -- Operations, for each i of many.
  local units = {
    's:all_reduce(s.a, 8)', 's:on("x"):all_reduce(s.b, 8)', 's:all_gather(s.all, i)', 's:compute { seconds = 1e-6, name = "c" .. i }',
    's:compute { flops = i }', 'local e = s:event() s:on("x"):barrier(s.a) s:wait(e)', 'es[i] = s:event()', 's:mark("@m" .. i)',
    's:alloc("m" .. i % 50, i) s:free("m" .. i % 50)', 's:on("x"):barrier(s.path) s:wait "x"', 's:host_wait "main"', 's:on("s" .. i % 30):all_reduce(s.a, 8)',
    's:sendrecv(s.all, (s.all.position + 1) % s.all.size, (s.all.position - 1) % s.all.size, 8)', 's:loop(i, function() s:all_reduce(s.b, 8) end)',
    's:group(function() for _, g in ipairs(s:groups "line") do s:all_reduce(g, 8) end end)', 's:loop(2, function() s:alloc("x", 8) end)',
    's:all_to_all(s.b, 64)', 's:broadcast(s.path, 8)', 's:reduce_scatter(s.all, 8, { type = "t" .. i % 9 })',
  }

  -- Only with other units, or in worlds of other sizes, do these cost more than the length of the program.
  local dear = { 's:compute { flops = s.rank + 1 }', 'if s.rank == 5 then s:all_reduce(s.all, 8) end', 'if s.all.position % 3 == 1 then s:barrier(s.a) end',
                 's:send(s.all, (s.all.position + i) % s.all.size, 8) s:recv(s.all, (s.all.position - i) % s.all.size, 8)',
                 's:loop(1000000, function() s:compute { seconds = 1e-6 } s:all_reduce(s.a, 8) end)',
                 'local x = s:on "x" x:loop(1000001, function() x:compute { seconds = 1.37e-6 } x:barrier(s.b) end)' }

  local function recipe(name, count, body, behind_it)
    return write(name .. ".lua", ([[return recipe {
  build = function(world) %s end,
  step = function(s, p)
    local es = {}
    for i = 1, %d do %s end
    %s
  end,
}]]):format(FAMILIES, count, body, behind_it or ""))
  end

  it("are proved and priced in a time that is linear in the program", function()
    local lines = {}
    for k, unit in ipairs(units) do
      local uses = unit:find "es%[i%]" and 's:on("x") for i = #es, 1, -1 do s:on("x"):wait(es[i]) s:on("x"):all_reduce(s.a, 8) end'
      lines[k] = "linear 8 " .. recipe("linear" .. k, 12000, unit, uses)
    end
    stays_within(("steps dgx-h100 <%s"):format(write("steps", table.concat(lines, "\n") .. "\n")), #lines)
  end)

  it("end within their limits", function()
    local lines, worlds = {}, { 8, 64, 512, 4096, 32768 }
    for k = 1, 14 * (tonumber(os.getenv "WORST_ROUNDS") or 1) do
      local body = {}
      for i = 1, math.random(3) do
        local from = math.random(2) == 1 and dear or units
        body[i] = "do " .. from[math.random(#from)] .. " end"
        if math.random(3) == 1 then body[i] = ("s:loop(%d, function() %s end)"):format(math.random(1, 9), body[i]) end
      end
      local all = table.concat(body, " ")
      for _ = 1, math.random(0, 12) do all = ("s:loop(%d, function() %s end)"):format(math.random(2, 4), all) end
      lines[k] = ("any %d %s"):format(worlds[math.random(#worlds)], recipe("any" .. k, 10 ^ math.random(0, 3) // 1, all))
    end
    stays_within(("steps dgx-h100 <%s"):format(write("steps", table.concat(lines, "\n") .. "\n")), #lines)
  end)
end)
