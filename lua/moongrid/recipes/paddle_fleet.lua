-- PaddlePaddle's fleet (PaddleNLP, ERNIE): one grid, whose dims are those of hybrid_configs["order"], slowest first.
-- With experts (ep_degree above 1) there are two grids: `moe` has pp, moe_sharding and ep; in the dense grid the dim
-- sharding is cut into moe_sharding and dense_sharding.
-- Source: PaddlePaddle 3.3.1, paddle/distributed/fleet/base/topology.py (HybridCommunicateGroup,
-- EPHybridCommunicateGroup) and fleet.py (_init_hybrid_parallel_env).
-- As in the source: a degree whose name is not in the order has no effect; a degree of 0 counts as 1 (sharding_degree 0
-- is refused). get_context_parallel_rank is a coordinate of a third grid, cp_mesh, which is not always the position in
-- the group of cp.
-- Not as there: with experts and an order in which an axis above 1 comes before moe_sharding, Paddle's sharding
-- groups overlap and its last ranks fail; here they are those of the dense grid. Degrees that leave ranks out are
-- refused, as is dp_degree -1, which is world / (mp x pp), if sharding x sep is above 1.
-- Recorded: 57 cases of 1 to 64 ranks, 12 of them refused: tests/golden/paddle_fleet.json.

local arithmetic = ...
local known = { "dp", "pp", "sharding", "mp", "sep", "cp", "ep", "moe_sharding" }

local function refuse(...) error(string.format(...), 2) end

local function has(list, name)
  for i, one in ipairs(list) do
    if one == name then return i end
  end
end

-- Return the degree of each name in the order, as Paddle counts them.
local function degrees(world, p)
  local sizes = {}
  for _, name in ipairs(p.order) do
    if not has(known, name) then
      refuse("order: '%s' is not an axis; name axes of %s", name, table.concat(known, "-"))
    end
    sizes[name] = p[name .. "_degree"]
    if sizes[name] < 1 and name ~= "dp" then sizes[name] = 1 end
  end
  for i = 1, 5 do
    if not sizes[known[i]] then refuse("order lacks '%s'; it needs dp, pp, sharding, mp and sep", known[i]) end
  end
  if sizes.dp < 0 then
    local beside, rest = sizes.sharding * sizes.sep, sizes.mp * sizes.pp * sizes.sharding * sizes.sep
    if beside > 1 then
      refuse("dp_degree -1 takes all that mp and pp leave, so sharding_degree %d and sep_degree %d do not fit; %s "
        .. "would do", sizes.sharding, sizes.sep,
        world % rest == 0 and "dp_degree " .. world // rest or "sharding_degree 1 and sep_degree 1")
    end
    sizes.dp = world // rest
  end
  sizes.dp = math.max(sizes.dp, 1)
  return sizes
end

-- Add the pairs of stages; each direction of a pair has its own communicators.
local function add_directions(t, pp)
  t.p2p_next = t.pp:pairs "wrap":twin()
  t.p2p_prev = t.pp:pairs "wrap":twin()
  if pp == 2 then
    t.p2p_next_back = t.pp:pairs "wrap":twin()
    t.p2p_prev_back = t.pp:pairs "wrap":twin()
  end
end

local function build_dense(world, p, sizes)
  for _, name in ipairs { "cp", "moe_sharding" } do
    if sizes[name] and sizes[name] > 1 then
      refuse("%s_degree %d needs experts; set it to 1, or ep_degree above 1 with ep in the order", name, sizes[name])
    end
  end
  if p.dp_degree < 0 then sizes.dp = fill end
  local g, t = grid(world, p.order, sizes, "slowest first"), topology(world)
  t.grid = g
  t.pp = g "pp"
  t.dp = g "dp"
  t.mp = g "mp"
  t.sharding = g "sharding"
  if sizes.sep > 1 then t.sep = g "sep" end
  t.check = g:except "dp" -- checks for infinity and the global norm
  if sizes.sharding > 1 then t.sharding_check = g:except "sharding" end
  if sizes.sep > 1 then
    t.dp_sep = g:ordered("sep", "dp")
    t.pp_mp = g:ordered("mp", "pp")
  end
  return t
end

-- Return the orders of the moe grid and of the dense one, slowest first.
local function orders_of(order)
  local moe, dense, before = {}, {}, has(order, "moe_sharding") < has(order, "pp")
  for _, name in ipairs(order) do
    if name == "pp" then
      table.insert(dense, before and "moe_sharding" or "pp")
      table.insert(dense, before and "pp" or "moe_sharding")
      table.insert(dense, "dense_sharding")
    elseif name == "dp" or name == "sep" or name == "mp" then
      table.insert(dense, name)
    end
    if name == "pp" or name == "moe_sharding" or name == "ep" then table.insert(moe, name) end
  end
  return moe, dense
end

local function check_experts(sizes)
  if not sizes.moe_sharding then refuse("order lacks 'moe_sharding', which experts need; add it") end
  if sizes.dp > 1 or sizes.sep > 1 then
    refuse("with experts dp_degree and sep_degree are 1, not %d and %d", sizes.dp, sizes.sep)
  end
  for _, name in ipairs { "moe_sharding", "cp" } do
    if sizes.sharding % (sizes[name] or 1) > 0 then
      refuse("%s_degree %d does not divide sharding_degree %d; %s would do", name, sizes[name], sizes.sharding,
        arithmetic.nearest(sizes[name], sizes.sharding))
    end
  end
  if sizes.mp * sizes.sharding ~= sizes.ep * sizes.moe_sharding then
    refuse("mp_degree %d x sharding_degree %d is not ep_degree %d x moe_sharding_degree %d; ep_degree %d would do",
      sizes.mp, sizes.sharding, sizes.ep, sizes.moe_sharding, sizes.mp * sizes.sharding // sizes.moe_sharding)
  end
end

local function build_experts(world, p, sizes)
  check_experts(sizes)
  local moe_order, dense_order = orders_of(p.order)
  local cp, pp, moe_sharding, t = sizes.cp or 1, sizes.pp, sizes.moe_sharding, topology(world)
  local moe = grid(world, moe_order, { pp = pp, moe_sharding = moe_sharding, ep = sizes.ep }, "slowest first")
  local g = grid(world, dense_order, {
    dp = sizes.dp, sep = sizes.sep, mp = sizes.mp, pp = pp, moe_sharding = moe_sharding,
    dense_sharding = sizes.sharding // moe_sharding,
  }, "slowest first")
  t.grid = g
  t.moe = moe
  t.cp_mesh = grid(world, "mp-cp-pp-cp_sharding", { mp = sizes.mp, cp = cp, pp = pp, cp_sharding = fill })
  t.pp = moe "pp"
  t.ep = moe "ep"
  t.moe_sharding = moe "moe_sharding"
  t.dp = g "dp"
  t.sep = g "sep"
  t.mp = g "mp"
  t.sharding = g("dense_sharding", "moe_sharding")
  local context, rest = t.sharding:split(cp, { table = true })
  t.cp = context
  if cp > 1 then t.cp_mp = closure(context, t.mp) end -- a group of cp, with all ranks of mp of its members
  t.cp_sharding = rest
  t.check = g:except "dp"
  t.sharding_check = g:except "moe_sharding"
  return t
end

-- Queries ---------------------------------------------------------------------

-- Return a query for a field of this rank's group, which answers nil if there is no group.
local function field(family, name)
  return function(s) return s:has(family) and s[family][name] or nil end
end

-- Return such a query that also answers nil if the degree is 1, as Paddle does.
local function above_one(family, dim, name)
  return function(s) return s:has(family) and s[dim].size > 1 and s[family][name] or nil end
end

-- Return a query for the pair of this rank and its neighbour in the next or the previous stage, in ascending order.
local function pair(step)
  return function(s)
    if not s:has "p2p_next" then return nil end
    local ranks = { s.rank, s.pp[step](s.pp, "wrap") }
    table.sort(ranks)
    return ranks
  end
end

local function parallel_mode(s)
  if s.pp.size > 1 then return 2 end
  if s.mp.size > 1 then return 1 end
  if s:has "sep" and s.sep.size > 1 then return 4 end
  if s.sharding.size > 1 then return 3 end
  return s.dp.size > 1 and 0 or nil
end

local function with_context(q) return q.with_context_parallel and "cp_sharding" or "sharding" end

local queries = {
  global_rank = function(s) return s.rank end,
  parallel_mode = parallel_mode, -- 0 data, 1 tensor, 2 pipeline, 3 sharding, 4 segment
  stage_id = field("pp", "position"),
  pipe_parallel_world_size = field("pp", "size"),
  is_first_stage = function(s) return s.pp.position == 0 end,
  is_last_stage = function(s) return s.pp.position == s.pp.size - 1 end,
  p2p_next_rank = function(s) if s.pp.size > 1 then return s.pp:next "wrap" end end,
  p2p_prev_rank = function(s) if s.pp.size > 1 then return s.pp:prev "wrap" end end,
  send_next_group = pair "next", recv_next_group = pair "next",
  send_prev_group = pair "prev", recv_prev_group = pair "prev",
  rank_from_stage = function(s, q)
    local coords, g = {}, s.plan:grid "grid"
    for dim, own in pairs(s.grid) do coords[dim] = own end
    coords.pp = q.stage_id or error "stage_id is missing; 0 would do"
    return g:rank(coords)
  end,
  sep_parallel_rank = function(s) return s:has "sep" and s.sep.position or 0 end,
  sep_parallel_world_size = function(s) return s:has "sep" and s.sep.size or 1 end,
  sep_parallel_group_src_rank = above_one("sep", "sep", "first"),
  sharding_parallel_rank = function(s, q) return s[with_context(q)].position end,
  sharding_parallel_world_size = function(s, q) return s[with_context(q)].size end,
  sharding_parallel_group_src_rank = field("sharding", "first"),
  moe_sharding_parallel_world_size = function(s) return s:has "moe_sharding" and s.moe_sharding.size or 0 end,
  context_parallel_rank = function(s) return s:has "cp" and s.cp_mesh.cp or nil end,
  context_parallel_world_size = field("cp", "size"),
  context_parallel_group_src_rank = above_one("cp", "cp", "first"),
  cp_sharding_parallel_group_src_rank = above_one("cp_sharding", "cp", "first"),
  cp_mp_parallel_group_src_rank = above_one("cp_mp", "cp", "first"),
  moe_sharding_parallel_rank = field("moe_sharding", "position"),
  moe_sharding_parallel_group_src_rank = field("moe_sharding", "first"),
  pipe_group_ranks = field("pp", "ranks"),
}
for name, family in pairs { data = "dp", model = "mp", expert = "ep" } do
  queries[name .. "_parallel_rank"] = field(family, "position")
  queries[name .. "_parallel_world_size"] = field(family, "size")
  queries[name .. "_parallel_group_src_rank"] = field(family, "first")
end
for name, family in pairs { data = "dp", model = "mp", sharding = "sharding" } do
  queries[name .. "_group_ranks"] = field(family, "ranks")
end

return recipe {
  doc = "PaddlePaddle's fleet: data, pipeline, sharding, segment, tensor parallelism; experts and context",
  params = {
    dp_degree = param.integer(-1, "data-parallel size; -1: world / (mp x pp)", "dp"),
    mp_degree = param.index(1, "tensor-parallel size", "mp"),
    pp_degree = param.index(1, "pipeline stages", "pp"),
    sharding_degree = param.size(1, "ranks that shard optimizer state and parameters", "sharding"),
    sep_degree = param.index(1, "segment-parallel size: ranks that share a sequence", "sep"),
    cp_degree = param.index(1, "context-parallel size; divides sharding, with experts only", "cp"),
    ep_degree = param.integer(1, "expert-parallel size; above 1: two grids", "ep"),
    moe_sharding_degree = param.integer(1, "sharding of the experts; divides sharding", "moe_sharding"),
    order = param.names({ "dp", "pp", "sharding", "sep", "cp", "mp" }, "axes, slowest first"),
    four_directions = param.flag(false, "make groups of two stages for each direction",
      "PADDLE_USE_FOUR_DIRECTIONS_P2P"),
  },
  build = function(world, p)
    local sizes = degrees(#world, p)
    local t = (sizes.ep or 1) > 1 and build_experts(world, p, sizes) or build_dense(world, p, sizes)
    if p.four_directions and sizes.pp > 1 then add_directions(t, sizes.pp) end
    return t
  end,
  queries = queries,
  getters = {
    get_pipe_parallel_group = "pp", get_data_parallel_group = "dp", get_model_parallel_group = "mp",
    get_sharding_parallel_group = "sharding", get_sep_parallel_group = "sep", get_expert_parallel_group = "ep",
    get_moe_sharding_parallel_group = "moe_sharding", get_context_parallel_group = "cp",
    get_cp_sharding_parallel_group = "cp_sharding", get_cp_mp_parallel_group = "cp_mp",
    get_dp_sep_parallel_group = "dp_sep", get_pp_mp_parallel_group = "pp_mp",
    get_check_parallel_group = function(_, q) return q.sharding and "sharding_check" or "check" end,
  },
  families = {
    sep = "sep_degree or ep_degree above 1", sharding_check = "sharding_degree or ep_degree above 1",
    dp_sep = "sep_degree above 1", pp_mp = "sep_degree above 1", ep = "ep_degree above 1",
    moe_sharding = "ep_degree above 1", cp = "ep_degree above 1", cp_sharding = "ep_degree above 1",
    cp_mp = "ep_degree and cp_degree above 1", ["p2p_*_back"] = "four_directions and pp_degree 2",
    ["p2p_*"] = "four_directions and pp_degree above 1",
  },
  arguments = {
    stage_id = param.index(nil, "a pipeline stage"),
    sharding = param.flag(false, "of get_check_parallel_group: the group over all dims but sharding (with experts: but "
      .. "moe_sharding), instead of all but dp"),
    with_context_parallel = param.flag(false, "of sharding_parallel_rank and _world_size: count only the ranks of a "
      .. "sharding group at one context-parallel position"),
  },
}
