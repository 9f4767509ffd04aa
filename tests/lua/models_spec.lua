-- SPDX-License-Identifier: MIT
--
-- Random configurations of recipes against models of their own (tests/golden/models), which count ranks without moongrid:
-- all families, their groups and members in order, refusals, and some answers. MOONGRID_DRAWS=500: so many of each
-- recipe, with MOONGRID_SEED=n for others.

package.path = "tests/golden/?.lua;" .. package.path
local mg = require "moongrid"
local json = require "dkjson"
local run = dofile("tests/lua/support.lua").run

local draws, seed = tonumber(os.getenv "MOONGRID_DRAWS" or 200), tonumber(os.getenv "MOONGRID_SEED" or 41)

local function groups_of(family)
  local list = {}
  for g, ranks in family:groups() do list[g + 1] = ranks end
  return list
end

-- What differs, nil: nothing.
local function difference(plan, made)
  for name, groups in pairs(made) do
    local done, family = pcall(plan.family, plan, name)
    if not done then return "no family " .. name end
    local got, want = json.encode(groups_of(family)), json.encode(groups)
    if got ~= want then return ("%s is %s, and %s in the model"):format(name, got, want) end
  end
  for _, name in ipairs(plan.families) do
    if not made[name] then return "family " .. name .. " is not in the model" end
  end
end

for path in io.popen "LC_ALL=C ls tests/golden/models/*.lua":lines() do
  local name = path:match "([%w_]+)%.lua$"
  if name ~= "ranks" then
    it(name .. " is as its model", function()
      local model, recipe, accepted = require("models." .. name), mg.load(name), 0
      math.randomseed(seed)
      for _ = 1, draws do
        local world, params = model.draw()
        local made, why, answers = model.families(world, params)
        local done, plan = pcall(recipe.plan, recipe, world, params)
        local what = ("seed %d, --world %d %s: "):format(seed, world, json.encode(params))
        if made then
          assert.is_true(done, what .. tostring(plan))
          local differs = difference(plan, made)
          assert.is_nil(differs, differs and what .. differs)
          for query, by_rank in pairs(answers or {}) do
            for rank, answer in pairs(by_rank) do
              assert.are.same(answer, recipe:ask(plan:dry(rank), query), what .. query .. " of rank " .. rank)
            end
          end
          accepted = accepted + 1
        else
          assert.is_false(done, what .. "accepted, but " .. why)
        end
      end
      assert.is_true(accepted > draws // 4, accepted .. " were accepted")
    end)
  end
end

-- What a head has to say of a table: "Recorded: 58 cases of 1 to 64 ranks, 8 of them refused: tests/golden/picotron.json."
local function recorded(path)
  local file = assert(io.open(path))
  local cases, least, most, refused = json.decode(file:read "a").cases, math.huge, 0, 0
  file:close()
  for _, case in ipairs(cases) do
    least, most = math.min(least, case.world), math.max(most, case.world)
    refused = refused + (case.error and 1 or 0)
  end
  return ("%d cases of %d to %d ranks, %d of them refused: %s."):format(#cases, least, most, refused, path)
end

describe("the head of each recipe", function()
  local named = {} -- tables and models, by path

  for _, name in ipairs(mg.recipes()) do
    it("says what it is, where which release makes the groups, what differs, what is recorded: " .. name, function()
      local about = json.decode((run("build/moongrid recipes " .. name .. " --json"))).about .. "\n"
      local source = about:match "\nSource: ([^\n]*)\n"
      assert.truthy(source, "Source: is missing")
      assert.truthy(source:find "%f[%w_/]%w[%w_/{},*]+%.py", "no file of its source")
      assert.truthy(source:find "%d+%.%d+" or source:find "commit %x%x%x%x%x%x%x%x", "no release or commit")
      assert.truthy(about:find "\nNot as there: %S" or about:find "\nAs in the source: %S", "As in the source: or Not as there: is missing")
      local all = 0
      for words in about:gmatch "\nRecorded: ([^\n]*)" do
        local path, from = words:match "(tests/golden/[%w_/]+%.%a+)%.$", words:match "^nothing%. "
        if path then named[path] = name end
        if not from then assert.equal(recorded(path), words) end
        all = all + 1
      end
      assert.is_true(all > 0, "Recorded: is missing")
      local shown = run("build/moongrid recipes " .. name):gsub("\n? +", " ")
      assert.truthy(shown:find(source, 1, true), "moongrid recipes does not show it")
    end)
  end

  it("names each table and model of its system", function()
    local has_table = {}
    for _, folder in ipairs { "systems", "models" } do -- a recipe with a table may have a model besides
      for path in io.popen("LC_ALL=C ls tests/golden/" .. folder .. "/*.lua"):lines() do
        local file, own = assert(io.open(path)), path:match "([%w_]+)%.lua$"
        local text = file:read "a"
        file:close()
        local recipe = folder == "systems" and (text:match 'recipe = "([%w_]+)"' or text:match 'mg%.load "([%w_]+)"')
        if recipe then assert.equal(recipe, named["tests/golden/" .. own .. ".json"], own) end
        if recipe then has_table[recipe] = true end
        if folder == "models" and own ~= "ranks" then assert.truthy(has_table[own] or named[path] == own, own) end
      end
    end
  end)
end)

describe("parameters of each recipe", function()
  for _, name in ipairs(mg.recipes()) do
    local recipe, taken = mg.load(name), {}
    local params = recipe:info().params
    it("have names and other names, each of one: " .. name, function()
      for _, param in ipairs(params) do
        for i = 0, #param.aliases do
          local own = param.aliases[i] or param.name
          assert.is_nil(taken[own], own .. " is also that of " .. tostring(taken[own]))
          taken[own] = param.name
          local known, why = pcall(recipe.plan, recipe, 8, { [own .. "x"] = 1 })
          assert.is_false(known, own .. "x is taken")
          assert.truthy(why:find(("unknown parameter '%sx'; nearest is '"):format(own), 1, true), why)
        end
      end
    end)

    for _, param in ipairs(params) do
      if param.name == "version" then
        it("refuse an unknown version with the known ones: " .. name, function()
          math.randomseed(seed)
          local known = {}
          local function refusal(version)
            local done, why = pcall(recipe.plan, recipe, 8, { version = version })
            return not done and why or nil
          end
          local listed = assert(refusal "none"):match "version 'none' is unknown; ([^;]*) would do$"
          for version in listed:gmatch "'([^']*)'" do
            assert.is_nil(refusal(version))
            assert.truthy(param.doc:find(version, 1, true), version .. " is not in the documentation of version")
            known[#known + 1], known[version] = version, true
          end
          assert.is_true(#known > 1 and known[param.default])
          for _ = 1, 40 do -- a character more, less, or another
            local version, letters = known[math.random(#known)], "0123456789.abcdefmainv-"
            local at, letter = math.random(#version), math.random(#letters)
            version = version:sub(1, at - math.random(0, 1)) .. letters:sub(letter, letter - math.random(0, 1))
                      .. version:sub(at + math.random(0, 1))
            local why = refusal(version)
            assert.equal(known[version] == nil, why ~= nil, version)
            if why then assert.truthy(why:find(("version '%s' is unknown; %s would do"):format(version, listed), 1, true), why) end
          end
        end)
      end
    end
  end
end)
