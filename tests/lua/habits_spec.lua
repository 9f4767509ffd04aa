-- SPDX-License-Identifier: MIT
--
-- Habits from other commands and libraries: lines that people type first, and the answers.

local support = dofile "tests/lua/support.lua"
local run, file = support.run, support.file

local function said(arguments)
  local out, err, code = run("build/moongrid " .. arguments)
  return { code, (err:gsub("\n$", "")) }, out
end

describe("habits of command lines:", function()
  -- A line; what its answer has; its exit code, 2 if none is given. R is a recipe, examples/moe.lua.
  for _, row in ipairs {
    -- options of other commands, of another spelling, of other dashes; parameters written as options
    { "plan R --json=1", "option '--json' takes no value" },
    { "plan R --jsn=1", "unknown option '--jsn' of plan; nearest is 'json' (world, rank, family, groups, all, json, " },
    { "plan R --world-size 8", "nearest is 'world' (" }, { "plan R --worldsize 8", "nearest is 'world' (" },
    { "plan R --no-color", "nearest is 'color' (" },
    { "plan R --world 8 --tp 2", "unknown option '--tp' of plan; it is a parameter: tp=2" },
    { "plan --tp=2 R", "it is a parameter: tp=2" }, { "plan R -tp 2", "unknown option '-tp' of plan; it is a parameter: tp=2" },
    { "plan R --tp2", "the nearest parameter is tp=VALUE" },
    { "plan megatron --tensor-model-parallel-size 2", "it is a parameter: tensor_model_parallel_size=2" },
    { "plan megatron --tensor-parallel 2", "the nearest parameter is tensor_model_parallel_size=2" },
    { "plan --quux 2", "parameters are written quux=VALUE" }, { "recipes --quux", "known: json, source, getters, color, help$" },
    { "plan R --law x", "; check has it" }, { "check R --family tp", "; plan, draw, place, explain have it" },
    { "explain R --rank 3", "; other commands have it" },
    { "run R --dry-run", "; write --backend dry" },
    { "plan R --format json", "; write --json" }, { "plan --recipe R", "; write RECIPE without an option: moongrid plan RECIPE" },
    { "diff R --vs tp=2", "'vs' has no dashes" },
    { "plan R -world 8", "unknown option '-world' of plan; it has two dashes: --world" },
    { "reshard x --to R -out y", "it has two dashes: --output" },
    { "plan R \u{2014}world 8", "begins with a dash of a word processor; write --world" },
    { "plan R -n 8", "unknown option '-n' of plan; --world N is the number of ranks" }, { "plan R -w8", "--world N is the number" },
    { "plan R --nproc_per_node 8", "; --world N is the number of ranks" }, { "plan R -N 8", "; --world N is the number of ranks" },
    { "plan R --config c.json", "; --params c.json reads parameters" }, { "draw R --html", "; write -o FILE.html" },
    { "step R --steps 2", "nearest is 'step' (" }, { "step R --steps 2", "; run has it" },
    { "run R -n 8", "mpirun -n N starts N ranks" }, { "why R --world 8 1 -2", "ranks are 0 or more" },
    { "plan R -j", "--json has no short form" }, { "plan R -o x", "> FILE writes the output to a file" },
    { "plan R --rank 1 --rank 2", "--rank is given twice, '1' and '2'" },
    { "draw R --family tp --family dp", "a list is one word: --family tp,dp" },
    { "plan R --params tp=2", "--params is a file, JSON, YAML or Lua, not 'tp=2'; a parameter is written tp=2" },
    { "run R --scale 2", "--scale is for --steps" },
    -- values
    { "plan R --world 64GPUs", "--world is an integer from 1 to 2147483647, not '64GPUs'" },
    { "plan R --world 8-16", "--world is one number of ranks, in digits, not '8-16'" }, { "plan R --world 1,024", "is one number of ranks" },
    { "plan R --world", "option '--world' needs a value: N" }, { "run R --timeout 10s", "the number of seconds, not '10s'" },
    { "run R --gpu-memory 8GB", "the number of MiB, not '8GB'" },
    { "check R --world 8,,16", "a list as 8,16 without blanks, or a range as 8-64; not '8,,16'" },
    { "check R --world 8,", "not '8,'" }, { "check R --world 8-", "not '8-'" }, { "check R --world 8..64", "not '8..64'" },
    { "check R --world 8-x", "not '8-x'" }, { "check R --world 64-8", "--world 64-8 ends before it starts" },
    { "check R --world 0-8", "--world is an integer from 1 to 2147483647, not '0'" },
    { "diff R --world 8 vs --rank 9", "rank 9 is out of range; ranks are 0 to 7" },
    { "move llama --world 8 vs --rank 9", "rank 9 is out of range; ranks are 0 to 7" },
    -- words
    { "plan R --world 8 tp = 2", "argument 'tp' is not of the form NAME=VALUE, without blanks, and the recipe is 'R'$" },
    { "plan R --world 8 tp= 2", "argument '2' is not of the form NAME=VALUE, without blanks" },
    { "plan R --world 8 tp 2", "argument 'tp' is not of the form NAME=VALUE, and the recipe is 'R'; write tp=2" },
    { "plan R --world 8 tp:2", "; write tp=2" }, { "plan R --world 8 tp: 2", "; write tp=2" },
    { "plan R --world 8 tp=2 , pp=2", "put only blanks between parameters" },
    { "plan R --world 8 vs", "plan takes no 'vs'; " }, { "diff R --world 8 vs vs", "write 'vs' once, between the two sides" },
    { "lose R --world 8 5,6", "; write --ranks 5,6" }, { "draw R --world 8 x.svg", "a file is written by -o x.svg" },
    { "check R --world 8 16", "a list has no blanks: --world 8,16" }, { "lose R --ranks 5, 6", "a list has no blanks: --ranks 5,6" },
    { "plan R --machine node:2 gpu:4", 'quotes make one word: --machine "node:2 gpu:4"' },
    { "check R --world 8 'a(b)'", "argument 'a(b)' is not of the form NAME=VALUE, and the recipe is 'R'$" },
    { "plan 8 R", "the recipe goes before '8': moongrid plan R --world 8" },
    { "explain tp R --world 8", "the recipe goes before 'tp': moongrid explain R tp --world 8" },
    { "recipes R x", "recipes takes one recipe and no further word 'x'" },
    { "plan R world=8", "plan needs --world N, the number of ranks; world=N means a parameter of the recipe" },
    { "plan R tp=8", "plan needs --world N, the number of ranks$" }, { "plan help", "usage: moongrid plan", 0 },
    { "explain R --world 8 tp dp", "unexpected argument 'dp': moongrid explain RECIPE --world N [...] [FAMILY]" },
    { "ask picotron --world 8 --rank 0 tp_rank tp=2", "tp is a parameter: write it before tp_rank; what follows is an argument of tp_rank" },
    { "ask picotron --world 8 --rank 0 tp", "tp is a family, not a query: moongrid plan --rank 0 shows its group" },
    { "run R --backend dry --world 8 --bandwidth", "--bandwidth needs a backend that makes communicators: "
      .. support.either(support.makers) .. ", not dry" },
    -- what was refused by the recipe
    { "plan R --world 8 'tp=2 pp=2'", "put blanks between parameters, and no quotes around several", 1 },
    { "plan R --world 8 tp=2,pp=2", "put blanks between parameters", 1 }, { "plan R --world 8 tp==2", "write one = only", 1 },
    { "plan R --world 8 tp=2,4", "several values are for draw -o FILE.html and place --search order", 1 },
    -- names of recipes and files
    { "plan xyz", "no recipe 'xyz'", 1 }, { "ask xyz --world 8 --rank 0", "no recipe 'xyz'", 1 },
    { "plan megatron.lua --world 8", "; the bundled recipe is 'megatron'", 1 },
    { "plan examples --world 8", "; examples is a folder, a recipe is a file", 1 },
    { "plan tests/golden/accelerate.json", "this is not a saved plan, which moongrid plan RECIPE --world N --rules writes", 1 },
    { "machine tests/golden/accelerate.json", "JSON of a machine has levels", 1 }, { "machine R", "a host of a list expected, as 'n0 slots=8', not '--'", 1 },
    { "machine 'node:4, gpu:8'", "a number after ',' expected, not ' gpu:8'" },
    { "machine node=4", "character 6: a name of at most 31 letters, digits and _, as in node:4[400GB/s], expected" },
    { "machine 'dgx-h100 nodes=4'", "character 16: " }, { "machine dgx-h100:4", "nearest is 'dgx-h100' (" },
    { "init R", "init takes a folder, and R is a file" }, { "calibrate", "calibrate needs measured steps" },
    -- commands
    { "-V", "unknown option '-V'; --version tells the version" }, { "version", "unknown command 'version'; --version tells" },
    { "--verson", "unknown option '--verson'; nearest is 'version' (help, version); other options go after a command" },
    { "-help", "unknown option '-help'; nearest is 'help'" }, { "--plan R", "a command has no dashes: moongrid plan R" },
    { "--world 8 plan picotron", "unknown option '--world'; the command goes first: moongrid plan --world 8 picotron" },
    { "--world 8 picotron", "unknown option '--world'; known: help, version; other options go after a command" },
    { "R --world 8", "'R' is a recipe; the command goes first: moongrid plan R --world 8" },
    { "validate R --world 8", "unknown command 'validate'; write moongrid check R --world 8" },
    { "frob R", "; moongrid --help says what each does" }, { "megatorn --world 8", "; recipe 'megatron' goes after a command" },
  } do
    local arguments, wanted = row[1], (row[2]:gsub("%f[%w]R%f[^%w]", "examples/moe.lua"))
    it(arguments, function()
      local answer, out = said((arguments:gsub("%f[%w-]R%f[^%w]", "examples/moe.lua")))
      local text = answer[2] .. out
      local found = wanted:find "%$$" and text:sub(1 - #wanted) == wanted:sub(1, -2) or text:find(wanted, 1, true)
      assert.is_truthy(found, text)
      assert.are.equal(row[3] or 2, answer[1], text)
    end)
  end

  it("no subcommand fails by itself without an argument", function()
    for name in run("build/moongrid --help"):gmatch "\n  (%l+) " do
      local answer = said((name == "init" and "init README.md" or name) .. " < /dev/null")
      assert.is_nil(answer[2]:find "moongrid%.%l", answer[2])
      assert.is_true(answer[1] == 2 or answer[2] == "", name .. answer[2])
    end
  end)

  it("a range of worlds doubles, up to its end", function()
    local _, out = said "check picotron --world 6-50,7"
    local worlds = {}
    for world in out:gmatch "\n? +(%d+)  ok" do worlds[#worlds + 1] = tonumber(world) end
    assert.are.same({ 6, 12, 24, 48, 7 }, worlds)
  end)

  it("a range of worlds that does not double to its end says so", function()
    assert.are.same({ 0, "moongrid: note: --world 8-100 takes doubled sizes, the last of them 64; to include 100, write 8-100,100" },
      (said "check picotron --world 8-100"))
    assert.are.same({ 0, "" }, (said "check picotron --world 8-64"))
  end)

  it("run without a launcher says what starts several ranks, also where the recipe needs more", function()
    local note = "moongrid: note: this is one rank, because no launcher started it: mpirun -n N moongrid run ..."
    assert.are.same({ 0, note }, (said "run picotron"))
    local got = said "run picotron tp=2"
    assert.are.equal(1, got[1])
    assert.is_truthy(got[2]:find(note, 1, true), got[2])
    assert.are.same({ 0, "" }, (said "run picotron --backend dry --world 4"))
    assert.are.same({ 2, "moongrid: --world 8 was asked for, and this is one rank; mpirun -n 8 moongrid run starts as many, "
      .. "--backend dry rehearses them" },
      (said "run picotron --world 8"))
  end)
end)

describe("families are chosen by --family in", function()
  for command, others in pairs { plan = "--groups dp", explain = "dp" } do
    it(command, function()
      local line = command .. " picotron --world 8 tp=2 "
      local _, own = said(line .. "--family dp")
      assert.are.equal((select(2, said(line .. others))), own)
      local got, both = said(line .. "--family dp,tp,dp")
      assert.are.same({ 0, "" }, got)
      assert.are.equal(own .. "\n" .. select(2, said(line .. "--family tp")), both)
      assert.are.same({ 1, "moongrid: unknown family 'x'; known: tp, cp, pp, dp, cp_dp, pp_dp, world_group" },
        (said(line .. "--family tp,x")))
      assert.are.same({ 2, "moongrid: --family is a list of families, F,G; not ','" }, (said(line .. "--family ,")))
    end)
  end
end)

describe("the help of", function()
  for command in (run "build/moongrid --help"):gmatch "\n  (%l+) [%u%[][^\n]*  " do
    it(command .. " ends with an example", function()
      local _, help = said(command .. " --help")
      local example = help:match "\nexample: moongrid ([^\n]+)\n$"
      assert.is_truthy(example or help:find "\nexample: mpirun %-n 8 moongrid run [^\n]+\n$", help)
      if not example or example:find "%u%u" or command == "doctor" then return end -- words to fill in; RAS of a job
      assert.are.same({ 0, "" }, (said(example)))
    end)
  end
end)

describe("the ranks of a machine are", function()
  for arguments, ranks in pairs {
    ["gpus_per_node=4"] = 4, ["gpus_per_node=4 --machine 2"] = 2, ["--machine 2"] = 2, [""] = 8,
  } do
    it(ranks .. " with " .. arguments, function()
      local _, out = said("plan examples/compose.lua --world 16 tp=2 " .. arguments)
      assert.is_truthy(out:gsub("%s+", " "):find(("with %d ranks a node"):format(ranks), 1, true), out)
    end)
  end
end)

describe("an argument of a policy or query under another name", function()
  it("is named where it is read", function()
    local path = file([[return recipe { build = function(world) local t = topology(world)
      t.all = grid(world, "x", { x = fill })() return t end, policy = { it = function(_, q)
      return q.global_batch // 2 end } }]])
    local got = said("policy " .. path .. " --world 8 --rank 0 it gloabl_batch=64")
    local _, right = said("policy " .. path .. " --world 8 --rank 0 it global_batch=64")
    assert.are.same({ 1, ("moongrid: %s:3: attempt to perform arithmetic on a nil value (field 'global_batch'); 'q' has "
      .. "'gloabl_batch'"):format(path) }, got)
    assert.are.equal("32\n", right)
  end)
end)

describe("a parameter under another system's name", function()
  for given, nearest in pairs {
    tensor_parallel = "tensor_model_parallel_size", pipeline = "pipeline_model_parallel_size",
    context_parallel = "context_parallel_size", expert_parallel = "expert_model_parallel_size",
    ["tensor-model-parallel-size"] = "tensor_model_parallel_size", tp_size = "tp",
  } do
    it(given .. " is answered with the nearest", function()
      local got = said("plan megatron --world 8 " .. given .. "=2")
      assert.are.equal(1, got[1])
      assert.is_truthy(got[2]:find(("unknown parameter '%s'; nearest is '%s' ("):format(given, nearest), 1, true), got[2])
    end)
  end
end)

describe("a file of parameters", function()
  for what, text in pairs {
    ["JSON"] = '{"tp": 2}', ["YAML"] = "tp: 2\n", ["YAML with a comment"] = "# sizes\ntp: 2\n",
    ["a document of YAML"] = "---\ntp: 2\n", ["Lua"] = "return { tp = 2 }", ["Lua with a comment"] = "-- sizes\nreturn { tp = 2 }",
    ["Lua with a local"] = "\n local n = 1\nreturn { tp = 2 * n }",
  } do
    it("without a suffix is what its text is: " .. what, function()
      local path = os.tmpname()
      support.write(path, text)
      local result, plan = said("plan picotron --world 8 --params " .. path)
      os.remove(path)
      assert.are.same({ 0, "" }, result)
      assert.is_truthy(plan:find("picotron over 8 ranks: tp_size=2\n", 1, true))
    end)
  end

  it("whose first name is a word of Lua is YAML all the same", function()
    local path = os.tmpname()
    os.execute("printf 'local: 2\\n' > " .. path)
    local result = said("plan picotron --world 8 --params " .. path)
    os.remove(path)
    assert.is_truthy(result[2]:find("unknown parameter 'local'", 1, true), result[2])
  end)
end)

describe("diff", function()
  local decode = require("dkjson").decode

  it("--json has the changes, and the communicators of the rank", function()
    local got, out = said "diff picotron --world 8 tp=2 vs tp=4 --json"
    assert.are.same({ 0, "" }, got)
    local diff = decode(out)
    assert.is_true(diff.differ)
    local of = {}
    for _, change in ipairs(diff.changes) do of[change.what .. " " .. change.name] = change end
    assert.are.same({ kind = "~", what = "param", name = "tp_size", from = "2", to = "4" }, of["param tp_size"])
    assert.are.same({ { offset = 0, size = 8, dims = { { "tp", 2 }, { "cp", 1 }, { "pp", 1 }, { "dp", 4 } } },
      { offset = 0, size = 8, dims = { { "tp", 4 }, { "cp", 1 }, { "pp", 1 }, { "dp", 2 } } } },
      { of["grid grid"].from, of["grid grid"].to })
    assert.are.same({ kind = "~", what = "family", name = "tp", from = { count = 4, size = 2, rule = "(2:1) x (4:2)", options = "" },
      to = { count = 2, size = 4, rule = "(4:1) x (2:4)", options = "" } }, of["family tp"])
    assert.are.same({ "number", "number", "number" }, { type(diff.kept), type(diff.created), type(diff.dropped) })
    diff = decode(select(2, said "diff picotron --world 8 vs --json"))
    assert.are.same({ false, 0 }, { diff.differ, #diff.changes })
    diff = decode(select(2, said "diff picotron --world 8 vs nanotron --world 16 --json"))
    assert.is_nil(diff.kept)
    assert.are.same({ kind = "~", what = "world", name = "size", from = 8, to = 16 }, diff.changes[1])
    local signs = {}
    for _, change in ipairs(diff.changes) do
      signs[change.kind] = true
      assert.are.same({ change.kind ~= "+", change.kind ~= "-" }, { change.from ~= nil, change.to ~= nil })
    end
    assert.are.same({ ["+"] = true, ["-"] = true, ["~"] = true }, signs)
  end)

  it("--json is as long at any world", function()
    local small = select(2, said "diff megatron --world 64 tp=2 vs tp=4 --json")
    local large = select(2, said "diff megatron --world 1048576 tp=2 vs tp=4 --json")
    assert.is_true(#large < 1.3 * #small)
  end)

  it("--exit-code tells a script whether there are any", function()
    assert.are.same({ 0, "" }, (said "diff picotron --world 8 tp=2 vs tp=4"))
    assert.are.same({ 1, "" }, (said "diff picotron --world 8 tp=2 vs tp=4 --exit-code"))
    assert.are.same({ 1, "" }, (said "diff picotron --world 8 tp=2 --exit-code vs tp=4"))
    assert.are.same({ 0, "" }, (said "diff picotron --world 8 tp=2 vs tp=2 --exit-code"))
  end)

  it("says so where equal things are in another order, or a value looks like a line of its own", function()
    local function of(body)
      return file("return recipe { params = { s = 'x' }, build = function(w) local g, t = grid(w, 'a-b', { a = 2, b = fill }), topology(w) "
        .. body .. " return t end }")
    end
    local one, other = of "t.a = g 'a' t.b = g 'b'", of "t.b = g 'b' t.a = g 'a'"
    local line = ("diff %s --world 8 %%s vs %s %%s --exit-code"):format(one, other)
    local result, out = said(line:format("", ""))
    assert.are.same({ 1, "" }, result)
    assert.equal("~ digest   differs: equal things in another order, or equal groups by another rule\n", out:match "^[^\n]*\n")
    assert.are.same({ 0, "" }, (said(("diff %s --world 8 's=~ x' vs %s 's=~ x' --exit-code"):format(one, one))))
  end)
end)

describe("recipes --json", function()
  it("has the families at the defaults, as the text has", function()
    local decode = require("dkjson").decode
    local text = select(2, said "recipes picotron"):match ".*\nfamilies at the defaults\n ([^\n]*)"
    assert.are.equal(text, " " .. table.concat(decode(select(2, said "recipes picotron --json")).default_families, " "))
  end)
end)

describe("a recipe without memory", function()
  it("is told at its line", function()
    local path = file "local t = {}\nreturn recipe { build = function()\n  while true do t = { t } end\nend }"
    local got = said("plan --world 8 " .. path)
    assert.are.same({ 3, ("moongrid: %s:3: the recipe needs more than 64 MiB of memory"):format(path) }, got)
  end)
end)
