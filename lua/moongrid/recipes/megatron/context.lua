-- Parts of context parallel groups: levels of cp, and blocks of dp x cp for sequences of different lengths.

local arithmetic = ...

-- Return the levels into which cp is cut, innermost first.
local function levels(cp, sizes)
  if not arithmetic.multiply_to(cp.size, sizes) then
    error(string.format("hierarchical_context_parallel_sizes %s must be sizes that multiply to cp %d; %d would do",
      table.concat(sizes, ","), cp.size, cp.size))
  end
  return { cp:levels(sizes) }
end

-- Return the sizes of blocks into which n ranks are cut: the powers of 2 from `least` on of which n has 2 or more.
local function block_sizes(n, least, parameter)
  local sizes, block = {}, 1
  while 2 * block <= n do
    if block >= least then sizes[#sizes + 1] = block end
    block = 2 * block
  end
  local largest = math.max(sizes[#sizes] or 2, 2) -- an odd number of ranks is refused in any case
  if n % largest ~= 0 then
    local below = n - n % largest
    error(string.format("%s cuts the %d ranks of dp x cp into blocks of %d, which leaves %d over; %s%d would do",
      parameter, n, largest, n % largest, below > 0 and below .. " or " or "", below + largest))
  end
  return sizes
end

-- Return the families of blocks by their size. They may have no rule if another dim is between cp and dp.
local function blocks(data, least, parameter)
  local by_size = {}
  for _, size in ipairs(block_sizes(data.size, least, parameter)) do
    by_size[size] = data:split(size, { table = true })
  end
  return by_size
end

return { levels = levels, blocks = blocks }
