-- SPDX-License-Identifier: MIT
--
-- Arithmetic on sizes for the prelude and several bundled recipes. Every recipe file receives a table of these
-- functions as its first argument, as in `local arithmetic = ...`.

local M = {}

function M.gcd(a, b) return b == 0 and a or M.gcd(b, a % b) end

-- Return whether the product of the sizes is n. Divide n by each size, because the product might overflow.
function M.multiply_to(n, sizes)
  for _, size in ipairs(sizes) do
    if size < 1 or n % size ~= 0 then return false end
    n = n // size
  end
  return n == 1
end

-- Return the nearest divisor of `whole` below n and the nearest above n, as text for messages: "4 or 6". If only one of
-- them exists, return it as a number; if none exists, nil. If `fits` is given, fits(divisor) must be true.
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
