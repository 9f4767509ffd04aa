-- SPDX-License-Identifier: MIT
--
-- Arithmetic on sizes that the prelude and more than one bundled recipe need. Every recipe file gets these functions
-- as its argument: `local arithmetic = ...` at its top.

local M = {}

function M.gcd(a, b) return b == 0 and a or M.gcd(b, a % b) end

-- Return whether the product of the sizes is n. Divides, since a product might not fit an integer.
function M.multiply_to(n, sizes)
  for _, size in ipairs(sizes) do
    if size < 1 or n % size ~= 0 then return false end
    n = n // size
  end
  return n == 1
end

-- Return the divisors of `whole` that are nearest to n, one on each side, as messages offer them: "4 or 6"; nil: none
-- fits. fits(divisor) says which would do; left out, all but n itself.
function M.nearest(n, whole, fits)
  local below, above
  local function look_at(k)
    if k < n and k > (below or 0) and (not fits or fits(k)) then below = k end
    if k > n and k < (above or math.huge) and (not fits or fits(k)) then above = k end
  end
  for d = 1, math.floor(math.sqrt(whole)) do
    if whole % d == 0 then
      look_at(d)
      look_at(whole // d)
    end
  end
  return below and above and below .. " or " .. above or below or above
end

return M
