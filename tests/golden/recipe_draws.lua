-- SPDX-License-Identifier: MIT
--
-- draw(recipe name) -> a random plan of a bundled recipe, and it as words; nil: nothing drawn was accepted. Values are
-- drawn from what the recipe declares, without knowing it, until it accepts them and makes groups.

local json = require "dkjson"
local mg = require "moongrid"
local shuffled = require "models.ranks".shuffled

local WORLDS <const> = { 8, 12, 16, 16, 24, 32, 32, 48, 64, 64, 64, 1024 }
local TRIES <const> = 4000
local loaded = {}

local function one_of(list) return list[math.random(#list)] end
local function chance(n) return math.random(n) == 1 end

local function divisor(n)
  local list = { 1 }
  for size = 2, math.min(n, 16) do list[#list + 1] = n % size == 0 and size or nil end
  return one_of(list)
end

-- The words of "tp-dp-pp" in any order; nil: it is no such text.
local function order_of(text)
  local words = {}
  for word in (text or ""):gsub('[%[%]"]', ""):gsub(",", "-"):gmatch "[^-]+" do
    if not word:find "^[%a_][%w_]*$" then return nil end
    words[#words + 1] = word
  end
  return #words > 1 and table.concat(shuffled(words), "-") or nil
end

-- By the kind of a parameter: a value, or nil to leave it out; and what the value divides the world by.
local of_kind = {}

function of_kind.size(_, rest)
  local size = divisor(rest)
  if chance(2) then return size, size end
end
of_kind.integer, of_kind.index = of_kind.size, of_kind.size

function of_kind.flag(param) if chance(6) then return param.default ~= "true" end end

function of_kind.list(_, rest)
  local list = {}
  for i = 1, math.random(4) do
    list[i] = divisor(rest)
    rest = rest // list[i]
  end
  if chance(2) then return list end
end

function of_kind.any() if chance(6) then return one_of { "0,-1", "0", "-1", "1", "0,1,-1", "all" } end end

function of_kind.names()
  local names = one_of { { "pipe", "data" }, { "data", "pipe", "model" }, { "a", "b", "c", "d" } }
  if chance(2) then return table.concat(shuffled(names), "-") end
end

function of_kind.text(param)
  local words = {}
  for word in param.doc:gmatch "[^ ,;:()]+" do words[#words + 1] = word end
  if chance(5) then return one_of(words) end
end

local function values_of(params, world)
  local values, rest, list = {}, world, shuffled(table.move(params, 1, #params, 1, {}))
  for _, param in ipairs(list) do
    local order = order_of(param.default or param.doc:match "default ([^ ;,]+[^ ;]*)")
    local draw = of_kind[param.kind]
    if order then
      values[param.name] = chance(3) and order or nil
    elseif draw then
      local value, by = draw(param, rest)
      values[param.name], rest = value, rest // (by and not chance(4) and by or 1)
    end
  end
  return values
end

return function(name)
  local recipe = loaded[name] or mg.load(name)
  loaded[name] = recipe
  local params = recipe:info().params
  for _ = 1, TRIES do
    local world = one_of(WORLDS)
    local values = values_of(params, world)
    local done, plan = pcall(recipe.plan, recipe, world, values)
    if done and #plan.families > 0 then
      for _, param in ipairs(plan.params) do
        if param.unread then values[param.name] = nil end -- it has no effect
      end
      return plan, ("%s --world %d %s"):format(name, world, json.encode(values))
    end
  end
end
