-- SPDX-License-Identifier: MIT
--
-- groups: write the groups of a family in a limited number of columns.

local M = {}

-- Return a group as text, "{0,8,16}". If this has more than `width` columns (nil: no limit), leave out members in the
-- middle: "{0,8,...,1016}".
function M.one(family, group, width)
  local member, list, at, columns = family.member, {}, {}, 0 -- at[i]: columns of the first i members
  local last, n = member(family, group, -1)
  width = n > 2 and width or math.maxinteger
  while #list < n and (columns < width or #list == 0) do
    list[#list + 1] = tostring((member(family, group, #list)))
    columns = columns + 1 + #list[#list]
    at[#list] = columns
  end
  if #list == n and columns < width then return "{" .. table.concat(list, ",") .. "}" end
  local tail, shown = ",...," .. last .. "}", 1
  while shown + 2 < n and at[shown + 1] and at[shown + 1] + #tail <= width do shown = shown + 1 end
  return "{" .. table.concat(list, ",", 1, shown) .. tail
end

-- Return the groups of a family as text. If this has more than `width` columns, leave out groups before the last group:
-- "{0,1} {2,3} ... 60 more ... {126,127}".
function M.all(family, width)
  local count, third = family.count, width >= 3 and width // 3 or nil
  local list, columns, at = {}, -1, {} -- at[i]: columns of the first i groups
  if count == 0 then return "none" end
  for g = 0, count - 1 do
    list[g + 1] = M.one(family, g, third)
    columns = columns + 1 + #list[g + 1]
    at[g + 1] = columns
    if g > 0 and columns > width then break end
  end
  if #list == count and columns <= width or count == 1 then return table.concat(list, " ") end
  local last, shown = M.one(family, count - 1, third), 1
  while shown + 1 < count and at[shown + 1] do -- show one more group while the text after it fits, too
    if at[shown + 1] + #(" ... %d more ... "):format(count - shown - 2) + #last > width then break end
    shown = shown + 1
  end
  local more = shown < count - 1 and (" ... %d more ..."):format(count - shown - 1) or ""
  return table.concat(list, " ", 1, shown) .. more .. " " .. last
end

-- Return the number and the size of a family's groups: "4 groups of 2", "1 group of 8", "4 groups of up to 3".
function M.count(family)
  return ("%d group%s of %s%d"):format(family.count, family.count == 1 and "" or "s", family.size and "" or "up to ",
                                       family.largest)
end

-- Return whether arrows show the groups of a family, because they are pairs that share ranks.
function M.are_arrows(family) return family.coverage == "cover" and family.largest <= 2 end

return M
