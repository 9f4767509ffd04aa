-- SPDX-License-Identifier: MIT
--
-- Options of families from outside of the recipe, given among its parameters: ["tp.max_ctas"] = 8, or for several
-- families ["*.timeout"] = 600. A field of NCCL's goes by its own name. This file is loaded where there are some.

local core, shared = ...
local sorted_pairs, fits = shared.sorted_pairs, shared.fits

-- The families that a name or a pattern means.
local function families_of(t, meant, what)
  local chosen, known = {}, {}
  for family in pairs(t) do
    known[#known + 1] = family
    if fits(family, meant) then chosen[#chosen + 1] = family end
  end
  if #chosen == 0 and meant ~= "*" then core.unknown("family", meant, known, what) end
  return chosen
end

-- Put them on top of what the recipe has chosen, in the order of their names: a * comes before letters, so a
-- family's own option wins over one for several.
return function(t, given)
  for name, value in sorted_pairs(given) do
    local what = "option '" .. name .. "': "
    local meant, option = string.match(name, "^([%w_*]+)%.([%w_]+)$")
    if not meant then core.raise_at(what, "FAMILY.OPTION would do, as tp.max_ctas or *.timeout") end
    for _, family in ipairs(families_of(t, meant, what)) do
      local ok, said = pcall(core.choose, t, family, option, value)
      if not ok then core.raise_at(what, said) end
    end
  end
end
