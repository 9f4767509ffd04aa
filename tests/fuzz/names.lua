-- SPDX-License-Identifier: MIT
--
-- names.lua: rules between names, read and matched anew for names.c: by the patterns of Lua, which try every way.
-- Returns { read = function, fits = function }.

local oracle = {}

-- What stands in a name: a letter, true for any text, or the number of a capture.
local function items_of(rule, word, any)
  local items, at = {}, 1
  while at <= #word do
    local kind = word:match("^%(%%([daw])%+%)", at) or word:match("^%((%.)%+%)", at)
    local letter, nth = word:sub(at, at), word:match("^%%([1-9])", at)
    if kind then
      if #rule.kind == 4 then return nil end
      rule.kind[#rule.kind + 1] = kind
      items[#items + 1] = #rule.kind
      at = at + (kind == "." and 4 or 5)
    elseif letter == "%" then
      if not nth or tonumber(nth) > #rule.kind then return nil end
      items[#items + 1] = tonumber(nth)
      at = at + 2
    elseif letter:find "[()\1-\5]" then
      return nil
    else
      items[#items + 1] = letter == "*" and any or letter
      at = at + 1
    end
  end
  return items
end

local function name_of(rule, side, word, any)
  if #side == 16 then return nil end
  local rest, index = word:match "^(.+)%[%%(.)%]$"
  if index and not index:find "[1-9]" then return nil end
  local items = items_of(rule, rest or word, any)
  if not items then return nil end
  local has, slice = {}, tonumber(index)
  for _, item in ipairs(items) do has[item] = true end
  if slice and (rule.kind[slice] ~= "d" or has[slice]) then return nil end
  if slice then has[slice] = true end
  if #side > 0 and side.slice ~= slice then return nil end
  side.slice = slice
  side[#side + 1] = { items = items, has = has }
  return true
end

local function side_of(rule, side, words, any)
  if #words % 2 == 0 then return nil end
  for i, word in ipairs(words) do
    if (word == "+") ~= (i % 2 == 0) then return nil end
    if i % 2 == 1 and not name_of(rule, side, word, any) then return nil end
  end
  return true
end

local function how(words, i)
  while i <= #words do
    if words[i] == "by" and words[i + 1] then
      i = i + 2
      if words[i] == "or" and words[i + 1] then i = i + 2 end
    elseif words[i] == "axis" and words[i + 1] then
      local n = words[i + 1]:match "^[\v\f]*([+-]?%d+)$"
      n = n and tonumber(n:gsub("^%+", "") .. ".0")
      if not n or n < 0 or n > 7 then return nil end
      i = i + 2
    elseif words[i] == "transposed" then
      i = i + 1
    else
      return nil
    end
  end
  return true
end

local function rule_of(words)
  local rule, arrow = { kind = {}, {}, {} }, 1
  if #words >= 64 then return nil end
  while words[arrow] and words[arrow] ~= "->" do arrow = arrow + 1 end
  if arrow > #words then return #words == 2 and { kind = {}, {}, {}, layout = true } or nil end
  local last = arrow + 1
  while words[last] and not ({ by = true, axis = true, transposed = true })[words[last]] do last = last + 1 end
  if arrow == 1 or last == arrow + 1 then return nil end
  local left, right = table.move(words, 1, arrow - 1, 1, {}), table.move(words, arrow + 1, last - 1, 1, {})
  if #right == 1 and right[1] == "-" then
    return #left == 1 and last > #words and side_of(rule, rule[1], left, true) and rule or nil
  end
  local ok
  if table.concat(left):find("(", 1, true) then
    ok = side_of(rule, rule[1], left) and side_of(rule, rule[2], right)
  else
    ok = side_of(rule, rule[2], right) and side_of(rule, rule[1], left)
  end
  if not ok or (#rule[1] > 1 and #rule[2] > 1) then return nil end
  for _, side in ipairs(rule) do
    for _, name in ipairs(side) do
      for k = 1, #rule.kind do
        if not name.has[k] then return nil end
      end
    end
  end
  return how(words, last) and rule
end

-- The rules of a text; nil: it is refused.
function oracle.read(text)
  local rules = {}
  if text:find "\0" then return nil end
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    local words = {}
    for word in line:match("^[^#\r]*"):gmatch "[^ \t]+" do words[#words + 1] = word end
    if #words > 0 then
      local rule = rule_of(words)
      if not rule then return nil end
      rules[#rules + 1] = rule
    end
  end
  return rules
end

-- Whether a name fits name i of a side, and a list of what its captures stand for, false for one that is not in it;
-- nil: that would take too long.
function oracle.fits(rule, side, i, name)
  local pattern, nth, order, stars = { "^" }, {}, {}, 0
  for _, item in ipairs(rule[side][i].items) do
    if item == true then
      if pattern[#pattern] ~= ".-" then pattern[#pattern + 1], stars = ".-", stars + 1 end
    elseif type(item) == "string" then
      pattern[#pattern + 1] = item:gsub("%W", "%%%0")
    elseif nth[item] then
      pattern[#pattern + 1] = "%" .. nth[item]
    else
      local kind = rule.kind[item]
      order[#order + 1] = item
      nth[item] = #order
      pattern[#pattern + 1] = "(" .. (kind == "." and "." or "%" .. kind) .. "+)"
    end
  end
  if #name > 20 or stars > 4 then return nil end
  local found = { name:match(table.concat(pattern) .. "()$") }
  local bound = { false, false, false, false }
  for k, capture in ipairs(order) do bound[capture] = found[k] or false end
  return #found > 0, bound
end

return oracle
