-- MindSpeed, which trains Megatron's models on Ascend: Megatron's groups, and besides them rings inside cp (in windows,
-- or beside Ulysses), tensor parallelism in two dims and twins for what overlaps. Families are named
-- by their keys of --hccl-group-buffer, if they have one: cp2, cp_ulysses, nd1_dim1, ...
-- Source: Ascend/MindSpeed 0.12.1 (26.0.0), mindspeed/core/context_parallel/model_parallel_utils.py,
-- core/tensor_parallel/tp_2d/parallel_state_2d.py, core/tensor_parallel_y_union_cp.py,
-- core/pipeline_parallel/optimize_send_recv_comm/parallel_state.py, core/transformer/moe/moe_feature/balanced_moe/
-- parallel_state.py; the checks: features_manager.
-- Not as there: heads and sequences are not checked; Megatron's own groups are those of core 0.16, not 0.12; with
-- another order than Megatron's default the groups still are inside groups of tp, cp and pp; every rank makes all
-- groups of tp_y_cp, where each rank stops after its own.
-- Recorded: nothing. It follows the source; a second program agrees on random parameters:
-- tests/golden/models/mindspeed.lua.

local arithmetic = ...

-- For each algorithm: whether it cuts cp into Ulysses and a ring, and whether the ring has windows.
local algorithms = {
  megatron_cp_algo = { windows = true }, hybrid_cp_algo = { ulysses = true, windows = true },
  hybrid_adaptive_cp_algo = { ulysses = true }, ulysses_cp_algo = {}, adaptive_cp_algo = {}, kvallgather_cp_algo = {},
}
local known = "megatron_cp_algo, ulysses_cp_algo, hybrid_cp_algo, adaptive_cp_algo, hybrid_adaptive_cp_algo or "
  .. "kvallgather_cp_algo"

-- Return the divisors of `whole` that are nearest to n, except `whole` itself, as text.
local function below(n, whole)
  return arithmetic.nearest(n, whole, function(size) return size < whole end)
end

-- Check how cp is used. Return the number of ranks for Ulysses (nil: not a hybrid algorithm), and whether the ring has
-- windows.
local function check_context(p, cp)
  local name, ulysses = p.context_parallel_algo, p.ulysses_degree_in_cp
  local algorithm = algorithms[name] or error(string.format("context_parallel_algo '%s' is unknown; %s would do", name,
    known))
  if cp == 1 then return end
  if algorithm.ulysses and not ulysses then
    error(string.format("%s needs ulysses_degree_in_cp; %s would do", name, below(3, cp)))
  end
  if algorithm.ulysses and (ulysses >= cp or cp % ulysses > 0) then
    error(string.format("ulysses_degree_in_cp %d leaves no ring of 2 ranks or more in context_parallel_size %d; %s "
      .. "would do", ulysses, cp, below(ulysses, cp)))
  end
  local ring, window = algorithm.ulysses and cp // ulysses or cp, p.cp_window_size
  if algorithm.windows and (window >= ring or ring % window > 0) then
    error(string.format("cp_window_size %d does not cut a ring of %d ranks into 2 windows or more; %s would do", window,
      ring, below(window, ring)))
  end
  return algorithm.ulysses and ulysses, algorithm.windows and not p.tp_2d
end

local function check_2d(p, tp)
  if tp ~= p.tp_x * p.tp_y then
    local x = tp % p.tp_x == 0 and p.tp_x or tp
    error(string.format("tp_x %d x tp_y %d is not tensor_model_parallel_size %d; tp_x %d with tp_y %d would do", p.tp_x,
      p.tp_y, tp, x, tp // x))
  end
  if p.expert_model_parallel_size > 1 then
    error(string.format("tp_2d takes no experts; expert_model_parallel_size 1 would do instead of %d",
      p.expert_model_parallel_size))
  end
  local algo = p.context_parallel_algo
  if algo ~= "megatron_cp_algo" and algo ~= "ulysses_cp_algo" then
    error(string.format("tp_2d does not go with context_parallel_algo '%s'; megatron_cp_algo or ulysses_cp_algo would "
      .. "do", algo))
  end
end

-- Add the families of cp. Keys and values go around a window of neighbours in the ring, and then from window to window.
local function add_context(t, p, cp)
  local ulysses, windows = check_context(p, t.dense.cp)
  local overlap, ring = p.use_cp_send_recv_overlap, cp
  if overlap and t.dense.cp > 1 and not (p.tp_2d and p.tp_y > 1) then t.cp2 = cp:twin() end
  if ulysses then
    local inside, between = cp:split(ulysses)
    t.cp_ulysses = inside
    t.cp_ring = between
    ring = between
  end
  if windows then
    t.cp_ring_intra = (ring:split(p.cp_window_size))
    if overlap then t.cp_ring_intra_overlap = t.cp_ring_intra:twin() end
  end
end

-- Add the families of tensor parallelism in two dims. The weights of a layer are cut into tp_x by tp_y, those of the
-- next (nd2) into tp_y by tp_x.
local function add_2d(t, p, tp)
  check_2d(p, t.dense.tp)
  local x, y = tp:split(p.tp_x)
  t.nd1_dim1 = x
  t.nd1_dim2 = y
  if p.enable_overlap_ag_with_matmul or p.enable_backward_overlap_ag_with_matmul then
    t.ag_x_sd_rcv_overlap = x:twin()
    t.ag_y_sd_rcv_overlap = y:twin()
  end
  x, y = tp:split(p.tp_y)
  t.nd2_dim1 = x
  t.nd2_dim2 = y
  t.tp_y_cp = t.dense:unflatten("tp", { tp_x = p.tp_x, tp_y = fill })("tp_y", "cp")
  t.tp_y_cp_overlap = t.tp_y_cp:twin()
end

-- Return this rank's ring, its position in it and the number of ranks of a window, or nil without windows.
local function ring_of(s, p)
  if s:has "cp_ring_intra" then
    local ring = s:has "cp_ring" and s.cp_ring or s.cp
    return ring.ranks, ring.position, p.cp_window_size
  end
end

-- Return the ranks at this rank's position in each window of the ring.
local function between_windows(s, _, p)
  local ring, at, window = ring_of(s, p)
  local list = {}
  for i = at and at % window or 1, ring and #ring - 1 or 0, window do list[#list + 1] = ring[i + 1] end
  return ring and list
end

-- Return the ring of the gradients of keys and values: each step goes to the next window, one position further.
local function ring_of_gradients(s, _, p)
  local ring, at, window = ring_of(s, p)
  if not ring then return nil end
  local windows, list = #ring // window, {}
  local common = arithmetic.gcd(windows, window)
  local first = (at % window - at // window) % common
  for i = 0, #ring // common - 1 do list[i + 1] = ring[i % windows * window + (first + i) % window + 1] end
  return list
end

local function held(family, field)
  return function(s) return s:has(family) and s[family][field] or nil end
end

return recipe {
  doc = "MindSpeed: Megatron's groups, hybrid and double rings, 2D tensor parallelism, twins that overlap",
  base = "megatron",
  params = {
    version = "0.16",
    context_parallel_algo = param.text("megatron_cp_algo", "how cp is used: " .. known, "cp_algo"),
    ulysses_degree_in_cp = param.size(nil, "ranks that exchange heads in a hybrid algorithm", "ulysses"),
    cp_window_size = param.size(1, "ranks of a window of the double ring", "window"),
    use_cp_send_recv_overlap = param.flag(false, "make twins of cp and of the windows", "cp_overlap"),
    tp_2d = param.flag(false, "cut weights in two dims; tp is tp_x x tp_y"),
    tp_x = param.size(1, "first dim of tp_2d"),
    tp_y = param.size(1, "second dim of tp_2d"),
    enable_overlap_ag_with_matmul = param.flag(false, "make twins of the groups of tp_x and tp_y", "ag_overlap"),
    enable_backward_overlap_ag_with_matmul = param.flag(false, "make the same twins", "backward_ag_overlap"),
    optimize_send_recv_comm = param.flag(false, "make a twin of pp, unless there are virtual stages", "pp_overlap"),
    balanced_moe_experts = param.flag(false, "make twins of ep, over which hot experts are copied", "balanced_moe"),
    trans_hot_expert_group_num = param.size(3, "twins of balanced_moe; at most 8, and hot_experts", "hot_groups"),
    balanced_moe_hot_expert_num = param.size(3, "hot experts", "hot_experts"),
  },
  build = function(_, p, t)
    add_context(t, p, t.dense "cp")
    if p.tp_2d then add_2d(t, p, t.dense "tp") end
    if p.optimize_send_recv_comm and not p.virtual_pipeline_model_parallel_size then
      t.pp_new_stream = t.dense "pp":twin()
    end
    if p.balanced_moe_experts then
      local n = math.min(p.trans_hot_expert_group_num, p.balanced_moe_hot_expert_num, 8)
      for i = 0, n - 1 do t["hot_expert_" .. i] = t.expert "ep":twin() end
    end
    return t
  end,
  queries = {
    context_parallel_for_hybrid_ulysses_world_size = held("cp_ulysses", "size"),
    context_parallel_for_hybrid_ulysses_rank = held("cp_ulysses", "position"),
    context_parallel_for_hybrid_ring_world_size = held("cp_ring", "size"),
    context_parallel_for_hybrid_ring_rank = held("cp_ring", "position"),
    context_parallel_for_hybrid_ring_global_ranks = held("cp_ring", "ranks"),
    ring_ranks_for_intra_window = held("cp_ring_intra", "ranks"),
    ring_ranks_for_inter_window_kv = between_windows,
    ring_ranks_for_inter_window_dkv = ring_of_gradients,
    tp_x_ring_global_ranks = held("nd1_dim1", "ranks"),
    tp_y_ring_global_ranks = held("nd1_dim2", "ranks"),
  },
  getters = {
    get_context_parallel_group_for_send_recv_overlap = "cp2",
    get_context_parallel_group_for_hybrid_ulysses = "cp_ulysses",
    get_context_parallel_group_for_hybrid_ring = "cp_ring",
    get_ring_group_for_intra_window = "cp_ring_intra",
    get_ring_group_for_intra_window_send_recv_overlap = "cp_ring_intra_overlap",
    get_tensor_model_parallel_group_for_nd1_dim1 = "nd1_dim1",
    get_tensor_model_parallel_group_for_nd1_dim2 = "nd1_dim2",
    get_tensor_model_parallel_group_for_nd2_dim1 = "nd2_dim1",
    get_tensor_model_parallel_group_for_nd2_dim2 = "nd2_dim2",
    get_tp_x_sd_rcv_overlap_group = "ag_x_sd_rcv_overlap",
    get_tp_y_sd_rcv_overlap_group = "ag_y_sd_rcv_overlap",
    get_pipeline_parallel_group_for_new_stream = "pp_new_stream",
  },
  families = {
    cp2 = "use_cp_send_recv_overlap, context_parallel_size above 1, and tp_y 1",
    cp_ulysses = "a hybrid context_parallel_algo and context_parallel_size above 1",
    cp_ring = "a hybrid context_parallel_algo and context_parallel_size above 1",
    cp_ring_intra = "megatron_cp_algo or hybrid_cp_algo and context_parallel_size above 1, without tp_2d",
    cp_ring_intra_overlap = "use_cp_send_recv_overlap with cp_ring_intra", ["nd*"] = "tp_2d", ["tp_y_cp*"] = "tp_2d",
    ["ag_*"] = "tp_2d with enable_overlap_ag_with_matmul or enable_backward_overlap_ag_with_matmul",
    pp_new_stream = "optimize_send_recv_comm without virtual stages",
    ["hot_expert_*"] = "balanced_moe_experts",
  },
  step = false, -- its calls were not recorded
}
