-- SPDX-License-Identifier: MIT
--
-- Options of families may be given among the recipe's parameters: ["tp.max_ctas"] = 8, or for several families
-- ["*.timeout"] = 600. Fields of `nccl` have no prefix. This file is loaded only if such options are given.

local core, shared = ...
local sorted_pairs, fits = shared.sorted_pairs, shared.fits

-- Return the families that a name or a pattern matches. Raise if there are none, except for "*".
local function families_of(t, meant, what)
  local chosen, known = {}, {}
  for family in pairs(t) do
    known[#known + 1] = family
    if fits(family, meant) then chosen[#chosen + 1] = family end
  end
  if #chosen == 0 and meant ~= "*" then core.unknown("family", meant, known, what) end
  return chosen
end

-- Apply the options on top of the recipe's own, in the order of their names. A * sorts before letters, so an option for
-- one family overrides the same option for several families.
return function(t, given)
  for name, value in sorted_pairs(given) do
    local what = "option '" .. name .. "': "
    local meant, option = string.match(name, "^([%w_*]+)%.([%w_]+)$")
    if not meant then core.raise_at(what, "write FAMILY.OPTION, as tp.max_ctas or *.timeout") end
    for _, family in ipairs(families_of(t, meant, what)) do
      local ok, said = pcall(core.choose, t, family, option, value)
      if not ok then core.raise_at(what, said) end
    end
  end
end
