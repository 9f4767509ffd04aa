-- SPDX-License-Identifier: MIT
--
-- Every option of a family and every field of NCCL, from the library's own tables. New rows are tested
-- without a change here; a row that is not documented or that no backend uses fails. Reading from C and
-- sharing: tests/c/test_options.c. Whole messages: vocabulary_spec.lua.

local mg = require "moongrid"
local json = require "dkjson"
local support = dofile "tests/lua/support.lua"
local run, read = support.run, support.read

local options, fields = mg.options()
local family = mg.grid(mg.world(8), "tp-dp", { tp = 2, dp = 4 }) "tp"

local function plan_of(f)
  local t = mg.topology(mg.world(8))
  t.other = mg.grid(mg.world(8), "x", { x = 8 }) "x":with { unique = true } -- for options that name a family
  t.f = f
  return mg.plan(t)
end

-- The folder of a backend's files, which may be those of another one, as the Makefile has it.
local function folder_of(backend)
  return "src/comm/" .. (read "Makefile":match("\nSRC_" .. backend .. " *:= %$%(SRC_(%w+)%)") or backend)
end

local function text_of(f) return plan_of(f):text():match "family f: %S+ x %S+([^\n]*)\n" end

-- Of each kind: a value, as plan --json has it, as the canonical text has it, and a value of a wrong type.
local samples = {
  flag = function(o) return true, true, " " .. o.name, 1 end,
  seconds = function(o) return 2.5, 2.5, " " .. o.name .. "_us=2500000", true end,
  word = function(o) return o.words[1], o.words[1], (" %s=%s"):format(o.name, o.words[1]), 5 end,
  shape = function(o) return "x:2:periodic", "x:2:periodic", " " .. o.name .. "{x:2:periodic}", 5 end,
  numbers = function(o)
    local name = o.name == "device" and "barriers" or "kv"
    return { [name] = 4 }, name .. "=4", (" %s{%s=4}"):format(o.name, name), 5
  end,
  name = function(o) return "other", "other", " " .. o.name .. "=other", 5 end,
  fields = function(o) return { max_ctas = 4 }, "max_ctas=4", " " .. o.name .. "{max_ctas=4}", 5 end,
}

for _, o in ipairs(options) do
  describe("the option " .. o.name, function()
    local value, in_json, in_text, wrong = samples[o.kind](o)

    it("is read, and printed as text and as JSON", function()
      local p = plan_of(family:with { [o.name] = value })
      assert.are.equal(in_text, text_of(family:with { [o.name] = value }))
      assert.are.same({ [o.name] = in_json }, json.decode(p:json()).families.f.options)
    end)

    it("is not there unless it is given, and stays when others are added", function()
      assert.are.equal("", text_of(family))
      assert.are.equal("", text_of(family:with {}))
      assert.are.equal(in_text, text_of(family:with { [o.name] = value }:with {}))
      assert.truthy(plan_of(family:with { [o.name] = value }:lists()):text():find(in_text .. "\n", 1, true))
    end)

    it("of a wrong type is refused by name", function()
      local ok, message = pcall(family.with, family, { [o.name] = wrong })
      assert.is_false(ok)
      assert.truthy(message:find("option '" .. o.name .. "' is ", 1, true), message)
    end)

    it("keeps families apart exactly where the table says so", function()
      local t = mg.topology(mg.world(8))
      t.other = mg.grid(mg.world(8), "x", { x = 8 }) "x":with { unique = true }
      t.plain = family
      t.with = family:with { [o.name] = value }
      local p = mg.plan(t)
      assert.are.equal(o.apart, not p:shares "plain" and not p:shares "with")
    end)

    it("is heeded where the table says so", function()
      local folders = o.backends == "all" and { "src/plan src/comm" } or {}
      for name in (o.backends == "all" and "" or o.backends):gmatch "%w+" do folders[#folders + 1] = folder_of(name) end
      local parsed = { shape = "options->shape", numbers = "options->" .. o.name, name = "\\." .. o.name } -- as specs have it
      local field = parsed[o.kind] or "(asked\\.|choice->)" .. o.name
      for _, folder in ipairs(folders) do
        assert.are_not.equal("", (run(("grep -rlE --include=*.c '%s\\b' %s | grep -v plan/options.c"):format(field, folder))))
      end
    end)
  end)
end

for _, f in ipairs(fields) do
  describe("the field of nccl " .. f.name, function()
    local function with(value) return text_of(family:with { nccl = { [f.name] = value } }) end

    if f.kind == "text" then
      it("is read and printed", function() assert.are.equal((" nccl{%s=word}"):format(f.name), with "word") end)
    else
      it("is read and printed, up to its bounds", function()
        for _, n in ipairs { f.low, f.high } do assert.are.equal((" nccl{%s=%d}"):format(f.name, n), with(n)) end
        assert.is_false((pcall(with, f.low - 1)))
        assert.is_false((pcall(with, (f.high or 2147483647) + 1)))
        assert.is_false((pcall(with, 1.5)))
      end)

      it("takes true for 1, and numbers as text", function()
        if f.low <= 1 then
          assert.are.equal(with(1), with(true))
          assert.are.equal(with(1), with "1")
        end
      end)
    end

    it("reaches NCCL", function()
      local case = "case MGRID_NCCL_" .. f.name:upper() .. ":"
      assert.are.equal(f.version > 0, read "src/comm/nccl/comm.c":find(case, 1, true) ~= nil)
    end)
  end)
end

describe("the table of options", function()
  it("has the fields of mgrid_options, in their order", function()
    local body = read "src/moongrid_plan.h":match "typedef struct mgrid_options (%b{})":gsub("/%*.-%*/", "")
    local declared, rows = {}, {}
    for name in body:gmatch "([%w_]+);" do declared[#declared + 1] = name end
    for _, o in ipairs(options) do rows[#rows + 1] = o.name end
    assert.are.equal("size", table.remove(declared, 1))
    assert.are.same(declared, rows)
  end)

  it("has no row twice", function()
    for _, list in ipairs { options, fields } do
      local seen = {}
      for _, row in ipairs(list) do
        assert.is_nil(seen[row.name])
        seen[row.name] = true
      end
    end
  end)

  it("is not for recipes", function()
    local file = os.tmpname()
    local recipe = assert(io.open(file .. ".lua", "w"))
    recipe:write "return recipe { build = function() return options end }"
    recipe:close()
    local ok, message = pcall(function() return mg.load(file .. ".lua"):plan(8) end)
    os.remove(file)
    os.remove(file .. ".lua")
    assert.is_false(ok)
    assert.truthy(message:find("options", 1, true), message)
  end)
end)

describe("make docs", function()
  local here = run("pwd"):gsub("\n", "")
  local check = ("LUA_CPATH_5_4='%s/build/?.so' lua5.4 %s/scripts/make/docs.lua --check"):format(here, here)

  it("would change nothing", function()
    local _, err, code = run(check)
    assert.are.equal("", err)
    assert.are.equal(0, code)
  end)

  it("notices what was changed by hand, and a marker that is lost", function()
    local copy = run("mktemp -d"):gsub("\n", "")
    run(("cd %s && mkdir -p lua/moongrid && ln -s %s/build %s/tests . && cp %s/README.md . && cp %s/lua/moongrid/meta.lua lua/moongrid")
      :format(copy, here, here, here, here))
    run(("sed -i 's/seconds that its creation/hours that its creation/' %s/lua/moongrid/meta.lua"):format(copy))
    local _, err, code = run(("cd %s && %s"):format(copy, check))
    assert.are.equal("lua/moongrid/meta.lua is not what make docs writes\n", err)
    assert.are.equal(1, code)
    run(("sed -i 's/options: end//' %s/lua/moongrid/meta.lua"):format(copy))
    _, err, code = run(("cd %s && %s"):format(copy, check))
    assert.truthy(err:find("lua/moongrid/meta.lua has lost the marker lines of options", 1, true), err)
    assert.are.equal(1, code)
    run("rm -r " .. copy)
  end)
end)

describe("options from outside of the recipe", function()
  -- The text of a family in picotron's plan with these parameters and options.
  local function chosen(given, name)
    local picotron = mg.load "picotron"
    return picotron:plan(8, given):text():match("\nfamily " .. (name or "tp") .. ": [^\n]- x %([%d:()]+([^\n]*)\n")
  end

  it("are named by family and option, or a field of NCCL's", function()
    assert.are.equal(" nccl{max_ctas=8}", chosen { tp = 2, ["tp.max_ctas"] = 8 })
    assert.are.equal(" unique lazy timeout_us=1500000", chosen { ["tp.timeout"] = 1.5, ["tp.lazy"] = true, ["tp.unique"] = true })
    assert.are.equal("", chosen({ ["tp.max_ctas"] = 8 }, "dp"))
    assert.are.equal(" backend=mpi", chosen { ["tp.backend"] = "mpi" })
  end)

  it("may be text, as on a command line", function()
    assert.are.equal(" lazy timeout_us=600000000 nccl{max_ctas=8 net_name=IB}",
      chosen { ["tp.timeout"] = "600", ["tp.lazy"] = "true", ["tp.max_ctas"] = "8", ["tp.net_name"] = "IB" })
    assert.are.equal("", chosen { ["tp.lazy"] = "0" })
  end)

  it("are for several families with a *, and a family's own wins", function()
    local given = { ["*.timeout"] = 600, ["*p.max_ctas"] = 4, ["dp.max_ctas"] = 16, ["cp_*.lazy"] = true }
    assert.are.equal(" timeout_us=600000000 nccl{max_ctas=4}", chosen(given, "tp"))
    assert.are.equal(" timeout_us=600000000 nccl{max_ctas=16}", chosen(given, "dp"))
    assert.are.equal(" lazy timeout_us=600000000 nccl{max_ctas=4}", chosen(given, "cp_dp"))
    assert.are.equal(" lazy timeout_us=600000000 nccl{max_ctas=4}", chosen(given, "world_group"))
  end)

  it("are on top of those that the recipe chose", function()
    local p = mg.load("megatron"):plan(8, { tp = 2, nccl_communicator_config = { tp = { min_ctas = 2, max_ctas = 4 } },
      distributed_timeout_minutes = 1, ["tp.max_ctas"] = 8 })
    assert.truthy(p:text():find("\nfamily tp: (2:1) x (4:2) timeout_us=60000000 nccl{max_ctas=8 min_ctas=2}\n", 1, true))
  end)

  it("are taken by every bundled recipe, from a command line and from JSON as well", function()
    for _, name in ipairs(mg.recipes()) do
      local given = { ["*.max_ctas"] = 4 }
      for size, value in pairs(support.fitting[name] or {}) do given[size] = value end
      for line in mg.load(name):plan(8, given):text():gmatch "\nfamily [^\n]*" do
        assert.truthy(line:find("max_ctas=4", 1, true), name .. line)
      end
    end
    local file = os.tmpname()
    local params = assert(io.open(file .. ".json", "w"))
    params:write '{"tp": 2, "tp.max_ctas": 8, "*.timeout": 600}'
    params:close()
    local out = run("build/moongrid plan picotron --world 8 --text --option tp.max_ctas=4 --params " .. file .. ".json")
    assert.truthy(out:find("\nfamily tp: (2:1) x (4:2) timeout_us=600000000 nccl{max_ctas=4}\n", 1, true), out)
    assert.are.equal(out, (run "build/moongrid plan picotron --world 8 --text tp=2 tp.max_ctas=4 '--option=*.timeout=600'"))
    os.remove(file)
    os.remove(file .. ".json")
  end)

  for given, message in pairs {
    ["tpp.max_ctas"] = "unknown family 'tpp'; nearest is 'tp' (tp, cp, pp, dp, cp_dp, pp_dp, world_group)",
    ["tp*x.max_ctas"] = "unknown family 'tp*x'; known: tp, cp, pp, dp, cp_dp, pp_dp, world_group",
    ["tp.max_ctas"] = "nccl field 'max_ctas' is 1 to 64, not '0'",
    ["tp.lazy"] = "option 'lazy' is true or false, not a number",
    ["tp.timeout"] = "option 'timeout' is a number of seconds above 0, not 0",
    ["tp.backend"] = "option 'backend' is \"" .. table.concat(support.makers, '" or "') .. "\" or \"none\"",
    ["tp.nccl"] = "option 'nccl' is a number, not a table of fields",
    ["tp.x.y"] = "write FAMILY.OPTION, as tp.max_ctas or *.timeout",
    [".lazy"] = "write FAMILY.OPTION, as tp.max_ctas or *.timeout",
  } do
    it("refuse " .. given .. " = 0", function()
      local ok, said = pcall(function() mg.load("picotron"):plan(8, { [given] = 0 }) end)
      assert.is_false(ok)
      assert.are.equal("option '" .. given .. "': " .. message, (said:gsub("^tests/lua/options_spec.lua:%d+: ", "")))
    end)
  end

  it("name the nearest option", function()
    local _, err, code = run "build/moongrid plan picotron --world 8 --option tp.timeot=8"
    assert.truthy(err:find("^moongrid: option 'tp.timeot': unknown option 'timeot'; nearest is 'timeout' %(unique, "), err)
    assert.are.equal(1, code)
    _, err, code = run "build/moongrid plan picotron --world 8 --option timeout=8"
    assert.are.equal("moongrid: --option is FAMILY.OPTION=VALUE, as tp.max_ctas=8, not 'timeout=8'\n", err)
    assert.are.equal(2, code)
  end)

  it("are not parameters of a recipe that another builds", function()
    local file = os.tmpname()
    local recipe = assert(io.open(file .. ".lua", "w"))
    recipe:write "return recipe { build = function(world) return recipe 'picotron'.build(world, { ['tp.lazy'] = true }) end }"
    recipe:close()
    local ok, said = pcall(function() mg.load(file .. ".lua"):plan(8) end)
    assert.is_false(ok)
    assert.truthy(said:find("unknown parameter 'tp.lazy'", 1, true), said)
    os.remove(file)
    os.remove(file .. ".lua")
  end)
end)
