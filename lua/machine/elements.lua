-- SPDX-License-Identifier: MIT
--
-- elements.lua - check the elements of an XML text, and make a machine from the parts of a node that hold GPUs or
-- cores. A grammar maps the name of an element to two texts of names, "a b": the elements that may be in it, and its
-- attributes. Unknown elements are refused; unknown attributes are noted.

local file = ...
local M = {}

-- Return a table that is both the list and the set of the names in a text.
function M.names(text)
  local all = {}
  for name in text:gmatch "%S+" do all[#all + 1], all[name] = name, true end
  return all
end

-- Check the element `root` and all elements in it. Call see(element) before the elements inside an element are checked,
-- and after(element), if it is given, when they have been. `notes` gets a line for each unknown attribute.
function M.walk(root, grammar, notes, see, after)
  local known = {}
  for name, rule in pairs(grammar) do known[name] = { elements = M.names(rule[1]), attributes = M.names(rule[2]) } end
  local function visit(e)
    local rule = known[e.name]
    local unknown = {}
    for name in pairs(e.of) do
      local noted = e.name .. " " .. name
      if not rule.attributes[name] and not notes[noted] then unknown[#unknown + 1], notes[noted] = name, true end
    end
    table.sort(unknown)
    for _, name in ipairs(unknown) do
      notes[#notes + 1] = ("line %d: attribute '%.60s' of <%s> is not read"):format(e.line, name, e.name)
    end
    see(e)
    for _, child in ipairs(e) do
      if not rule.elements[child.name] then
        file.fault(child.line, "unknown element <%.40s> in <%s>%s", child.name, e.name,
          file.suggest(child.name, rule.elements))
      end
      visit(child)
    end
    if after then after(e) end
  end
  visit(root)
end

-- Refuse a GPU whose number is below `last`, the number of the GPU before it (nil: none). Ranks go to GPUs in the order
-- of their numbers, so the GPUs of a part must have consecutive numbers.
function M.in_order(last, number, where)
  if last and number < last then
    file.fault(where, "GPU %d is listed after GPU %d: the GPUs of a part must have consecutive numbers", number, last)
  end
  return number
end

-- Return a machine of any number of equal nodes. `levels` has the levels inside a node, { { name, number }, ... }.
function M.node(levels, notes)
  local list = { { name = "node", counts = { 0 } } }
  for _, of in ipairs(levels) do list[#list + 1] = { name = of[1], counts = { of[2] } } end
  return { levels = list, notes = notes }
end

-- Return the machine node:* PART:n HELD:g, in which n parts hold g GPUs (or cores) each. `counts` has the number of
-- GPUs of each part; a part without GPUs is left out. Refuse parts with different numbers.
function M.parts(counts, part, held, notes)
  local n, each = 0, nil
  for _, count in ipairs(counts) do
    if count > 0 then
      n, each = n + 1, each or count
      if count ~= each then file.fault(nil, "the %ss of the node hold different numbers of %ss", part, held) end
    end
  end
  if n == 0 then file.fault(nil, "there is no %s in it", held) end
  return M.node({ { part, n }, { held, each } }, notes)
end

return M
