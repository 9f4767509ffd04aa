-- SPDX-License-Identifier: MIT
--
-- Arithmetic on sizes that more than one bundled recipe needs. Every recipe file gets these functions
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

-- Return the fewest pipeline stages above 1 that divide n ranks; nil for 1 rank.
function M.fewest_stages(n)
  for pp = 2, math.floor(math.sqrt(n)) do
    if n % pp == 0 then return pp end
  end
  return n > 1 and n or nil
end

return M
