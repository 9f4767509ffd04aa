-- Megatron's grids over the same ranks: for dense layers, for experts, and for Engram's embeddings. All have the dims
-- of `order` in this order, under their own names, and share the pipeline stages.

local part = select(2, ...)
local releases = part "releases"

local dims = { "tp", "cp", "ep", "dp", "pp" }
local is_dim = { tp = true, cp = true, ep = true, dp = true, pp = true }

-- For names in the order, the names of the dims of a grid, if they differ or not every grid has the dim. If the order
-- lacks gtp_remat, gtp_remat follows the dim `gtp_after`.
local dense = { gtp_remat = "gtp_remat", gtp_after = "tp" }
local expert = { tp = "etp", dp = "edp", gtp_remat = "egtp_remat", gtp_after = "ep" }
local engram = { tp = "engram", dp = "engram_dp" }

-- Return a list with pp moved to its end, as an order.
local function order_of(list)
  local order = {}
  for _, name in ipairs(list) do
    if name ~= "pp" then order[#order + 1] = name end
  end
  return table.concat(order, "-") .. "-pp"
end

-- Make one of the grids. Upper and lower case are equal in the order; a missing name is added at the end, and must have
-- size 1.
local function lay(window, p, sizes, names)
  local list, written, order = {}, {}, p.order
  for _, name in ipairs(string.split(string.lower(order), "-")) do
    local known = is_dim[name] or name == "gtp_remat" and releases.has_remat(p)
    if not known or written[name] then
      error(string.format("order '%s' has '%s'%s; it takes each of %s once, as 'tp-cp-ep-dp-pp'", order, name,
        written[name] and " twice" or ", which is not a dim", table.concat(dims, ", ")))
    end
    written[name], list[#list + 1] = true, name
  end
  for _, name in ipairs(dims) do
    if not written[name] then list[#list + 1] = name end
  end
  local placed, gtp_after = {}, not written.gtp_remat and names.gtp_after
  for _, name in ipairs(list) do
    if is_dim[name] or names[name] then placed[#placed + 1] = names[name] or name end
    if name == gtp_after then placed[#placed + 1] = names.gtp_remat end
  end
  local g = grid(window, placed, sizes)
  for _, name in ipairs(dims) do
    local dim = names[name] or name
    if not written[name] and g[dim] > 1 then
      error(string.format("order '%s' does not say where %s of size %d goes; '%s' would do",
        order, dim, g[dim], order_of(list)))
    end
  end
  return g
end

local function dense_of(window, p)
  return lay(window, p, { tp = p.tensor_model_parallel_size, gtp_remat = p.gtp_remat_size,
    cp = p.context_parallel_size, pp = p.pipeline_model_parallel_size, dp = fill }, dense)
end

local function expert_of(window, p)
  return lay(window, p, { etp = p.expert_tensor_parallel_size or p.tensor_model_parallel_size,
    ep = p.expert_model_parallel_size, egtp_remat = p.expert_gtp_remat_size, pp = p.pipeline_model_parallel_size,
    edp = fill }, expert)
end

local function engram_of(window, p)
  return lay(window, p, { engram = p.engram_embedding_parallel_size, pp = p.pipeline_model_parallel_size,
    engram_dp = fill }, engram)
end

local function window_of(world, offset, size)
  if offset < 0 or offset >= world.size then
    error(string.format("rank_offset is a rank from 0 to %d, not %d", world.size - 1, offset))
  end
  if size and size > world.size - offset then
    error(string.format("local_world_size %d is more than the %d ranks from rank_offset %d on; %d would do",
      size, world.size - offset, offset, world.size - offset))
  end
  return world:window(offset, size)
end

-- Refuse grids whose pipeline groups differ from the dense grid's.
local function check_stages(p, g, other, what)
  if g "pp" ~= other "pp" then
    error(string.format("order '%s' gives the dense and the %s grid different pipeline groups; "
      .. "an order that ends in pp would do", p.order, what))
  end
end

return { dense = dense_of, expert = expert_of, engram = engram_of, window = window_of, check_stages = check_stages }
