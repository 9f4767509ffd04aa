-- SPDX-License-Identifier: MIT
--
-- elements.lua - check the elements of an XML text, and make a machine of the parts of a node that hold GPUs. The
-- grammar has for each element the names of the elements that may be in it, and of its attributes, as "a b". An unknown
-- element is refused; an unknown attribute is a note.

local file = ...
local M = {}

-- Return the names in a text, as a list and as a set.
function M.names(text)
  local all = {}
  for name in text:gmatch "%S+" do all[#all + 1], all[name] = name, true end
  return all
end

-- Check an element and all elements in it. see(element) is called before the elements inside it are checked,
-- after(element) after that.
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

-- Refuse a GPU whose number is below that of the GPU before it. Ranks go to GPUs by number, so a part must have GPUs
-- with consecutive numbers.
function M.in_order(last, number, where)
  if last and number < last then
    file.fault(where, "GPU %d is behind GPU %d: GPUs of one part do not follow each other", number, last)
  end
  return number
end

-- Return the machine whose nodes are all like this one, with levels { { name, number }, ... }.
function M.node(levels, notes)
  local list = { { name = "node", counts = { 0 } } }
  for _, of in ipairs(levels) do list[#list + 1] = { name = of[1], counts = { of[2] } } end
  return { levels = list, notes = notes }
end

-- Return the machine node:* PART:n HELD:g, for n parts that hold g GPUs (or cores) each. `counts` has the number that
-- each part holds; parts without any are left out.
function M.parts(counts, part, held, notes)
  local n, each = 0, nil
  for _, count in ipairs(counts) do
    if count > 0 then
      n, each = n + 1, each or count
      if count ~= each then file.fault(nil, "its %ss hold different numbers of %ss", part, held) end
    end
  end
  if n == 0 then file.fault(nil, "no %s is in it", held) end
  return M.node({ { part, n }, { held, each } }, notes)
end

return M
