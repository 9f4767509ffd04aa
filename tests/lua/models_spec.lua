-- SPDX-License-Identifier: MIT
--
-- Random configurations of recipes against models of their own (tests/golden/models), which count ranks without moongrid:
-- all families, their groups and members in order, refusals, and some answers. MOONGRID_DRAWS=500: so many of each
-- recipe, with MOONGRID_SEED=n for others.

package.path = "tests/golden/?.lua;" .. package.path
local mg = require "moongrid"
local json = require "dkjson"

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

it("the head of each recipe says which release its source is, and where that makes the groups", function()
  for _, name in ipairs(mg.recipes()) do
    local file = assert(io.open("lua/moongrid/recipes/" .. name .. ".lua"))
    local head = file:read "a":match "^(.-)\n\n"
    file:close()
    assert.truthy(head:find("Source: ", 1, true), name)
    assert.truthy(head:find "%f[%w_/]%w[%w_/{},*]+%.py", name .. " names no file of its source")
    assert.truthy(head:find "%d+%.%d+" or head:find "commit %x%x%x%x%x%x%x%x", name .. " names no release or commit")
  end
end)
