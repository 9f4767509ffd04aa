-- SPDX-License-Identifier: MIT
--
-- MindSpeed's functions that make groups after Megatron-core's, loop by loop; and what they keep of ranks, by rank.

local ranks = require "models.ranks"

local function draw()
  local world = ranks.one_of { 4, 8, 8, 12, 16, 16, 24, 32 }
  local tp, cp, pp = ranks.product(world, 4)
  if math.random(2) == 1 then cp, tp = math.max(tp, cp), math.min(tp, cp) end
  local p = { tp = tp, cp = cp, pp = pp, gloo = false, cp_overlap = math.random(2) == 1 }
  p.cp_algo = ranks.one_of { "megatron_cp_algo", "megatron_cp_algo", "hybrid_cp_algo", "hybrid_cp_algo",
    "hybrid_adaptive_cp_algo", "ulysses_cp_algo", "kvallgather_cp_algo" }
  if p.cp_algo:find "hybrid" and math.random(8) > 1 then p.ulysses = ranks.divisor(cp) end
  if math.random(2) == 1 then p.window = ranks.divisor(cp) end
  if math.random(4) == 1 then
    p.tp_2d, p.tp_x = true, ranks.divisor(tp)
    p.tp_y = tp // p.tp_x + (math.random(8) == 1 and 1 or 0)
    p.enable_overlap_ag_with_matmul = math.random(3) == 1
    p.enable_backward_overlap_ag_with_matmul = math.random(3) == 1
    p.cp_algo = ranks.one_of { "megatron_cp_algo", "ulysses_cp_algo", p.cp_algo }
  end
  if math.random(3) == 1 then p.ep = ranks.divisor(world // (tp * pp)) end
  if math.random(3) == 1 then p.optimize_send_recv_comm = true end
  if pp > 1 and math.random(4) == 1 then p.vpp = 2 end
  if math.random(4) == 1 then
    p.balanced_moe, p.hot_groups, p.hot_experts = true, math.random(10), math.random(10)
  end
  return world, p
end

-- What initialize_model_parallel of Megatron-core makes, with its default order.
local function megatron(world, p)
  local ep = p.ep or 1
  local order = { "tp", "cp", "dp", "pp" }
  local dense = { tp = p.tp, cp = p.cp, dp = world // (p.tp * p.cp * p.pp), pp = p.pp }
  local expert = { tp = p.tp, cp = ep, dp = world // (p.tp * ep * p.pp), pp = p.pp } -- ep has cp's place
  local function of(...) return ranks.groups(order, dense, ...) end
  local function of_experts(...) return ranks.groups(order, expert, ...) end
  local model, all = of_experts("tp", "cp", "pp"), {}
  for _, group in ipairs(model) do table.move(group, 1, #group, #all + 1, all) end
  return {
    tp = of "tp", cp = of "cp", dp = of "dp", pp = of "pp", mp = of("tp", "pp"), dp_cp = of("dp", "cp"),
    intra_dp_cp = of("dp", "cp"), tp_cp = of("tp", "cp"), tp_dp = of("tp", "dp"), tp_dp_cp = of("tp", "dp", "cp"),
    embd = ranks.picked(of "pp", { 0, -1 }), pos_embd = ranks.picked(of "pp", { 0 }), ep = of_experts "cp",
    expt_tp = of_experts "tp", tp_ep = of_experts("tp", "cp"), tp_ep_pp = model, expt_dp = of_experts "dp",
    intra_expt_dp = of_experts "dp", intra_dist_opt = { all },
  }
end

local function range(from, to, step)
  local list = {}
  for rank = from, to - 1, step or 1 do list[#list + 1] = rank end
  return list
end

-- The loops over pipeline stages, replicas and tensor ranks that each function starts with: the ranks of each ring.
local function context_groups(world, p)
  local list, dp = {}, world // (p.tp * p.pp * p.cp)
  for i = 0, p.pp - 1 do
    for j = 0, dp - 1 do
      local first = i * (world // p.pp) + j * p.tp * p.cp
      for k = 0, p.tp - 1 do list[#list + 1] = range(first + k, first + p.tp * p.cp, p.tp) end
    end
  end
  return list
end

-- initialize_context_parallel_group_for_hybrid_cp
local function hybrid(made, rings, ulysses)
  made.cp_ulysses, made.cp_ring = {}, {}
  for _, own in ipairs(rings) do
    for m = 0, #own // ulysses - 1 do
      made.cp_ulysses[#made.cp_ulysses + 1] = table.move(own, m * ulysses + 1, (m + 1) * ulysses, 1, {})
    end
    for m = 1, ulysses do
      local ring = {}
      for at = m, #own, ulysses do ring[#ring + 1] = own[at] end
      made.cp_ring[#made.cp_ring + 1] = ring
    end
  end
end

-- initialize_context_parallel_group_for_double_ring: _initialize_helper, for all ranks of a ring.
local function windows(made, kept, ring, window)
  local count = #ring // window
  for w = 0, count - 1 do
    made[#made + 1] = table.move(ring, w * window + 1, (w + 1) * window, 1, {})
    for _, rank in ipairs(made[#made]) do kept.ring_ranks_for_intra_window[rank] = made[#made] end
  end
  for inner = 0, window - 1 do
    local between = {}
    for at = inner, #ring - 1, window do between[#between + 1] = ring[at + 1] end
    for _, rank in ipairs(between) do kept.ring_ranks_for_inter_window_kv[rank] = between end
    local way, seen, at, w = {}, {}, inner, 0
    while not seen[ring[at + 1]] do
      seen[ring[at + 1]], way[#way + 1] = true, ring[at + 1]
      w = (w + 1) % count
      at = w * window + (at + 1) % window
    end
    for _, rank in ipairs(way) do
      local own = kept.ring_ranks_for_inter_window_dkv
      own[rank] = own[rank] or way
    end
  end
end

-- initialize_ndmm_parallel_group and TensorParallelYUnionCP.init_group
local function two_dims(made, world, p, rings)
  local function cut(inner)
    local near, far = {}, {}
    for i = 0, world // p.tp - 1 do
      for j = 0, p.tp // inner - 1 do near[#near + 1] = range(i * p.tp + j * inner, i * p.tp + (j + 1) * inner) end
      for j = 0, inner - 1 do far[#far + 1] = range(i * p.tp + j, (i + 1) * p.tp, inner) end
    end
    return near, far
  end
  made.nd1_dim1, made.nd1_dim2 = cut(p.tp_x)
  made.nd2_dim1, made.nd2_dim2 = cut(p.tp_y)
  if p.enable_overlap_ag_with_matmul or p.enable_backward_overlap_ag_with_matmul then
    made.ag_x_sd_rcv_overlap, made.ag_y_sd_rcv_overlap = made.nd1_dim1, made.nd1_dim2
  end
  made.tp_y_cp = {}
  for _, ring in ipairs(rings) do
    local union, seen = {}, {}
    for _, rank in ipairs(ring) do
      for _, group in ipairs(made.nd1_dim2) do
        for _, member in ipairs(group) do
          if member == rank then table.move(group, 1, #group, #union + 1, union) end
        end
      end
    end
    for _, group in ipairs(made.tp_y_cp) do seen[table.concat(group, ",")] = true end
    if not seen[table.concat(union, ",")] then made.tp_y_cp[#made.tp_y_cp + 1] = union end
  end
  made.tp_y_cp_overlap = made.tp_y_cp
end

-- validate_args of the features
local function refusal(world, p)
  local ring, algo, window = p.cp, p.cp_algo, p.window or 1
  if world % (p.tp * (p.ep or 1) * p.pp) > 0 then return "experts do not fit" end
  if p.cp > 1 and algo:find "hybrid" then
    if not p.ulysses then return "ulysses_degree_in_cp must be specified" end
    ring = p.cp // p.ulysses
    if ring == 1 or p.cp % p.ulysses > 0 then return "there is no ring" end
  end
  if p.cp > 1 and (algo == "megatron_cp_algo" or algo == "hybrid_cp_algo") then
    if window >= ring or ring % window > 0 then return "windows do not cut the ring" end
  end
  if not p.tp_2d then return nil end
  if p.tp ~= p.tp_x * p.tp_y then return "tp is not tp_x * tp_y" end
  if (p.ep or 1) > 1 then return "2d tp does not support moe" end
  if algo ~= "megatron_cp_algo" and algo ~= "ulysses_cp_algo" then return "2d tp does not support the algorithm" end
end

local function families(world, p)
  local why = refusal(world, p)
  if why then return nil, why end
  local made, kept, rings = megatron(world, p), {}, context_groups(world, p)
  if p.cp > 1 then -- else the wrapper that calls these is not there
    if p.cp_overlap and not (p.tp_2d and p.tp_y > 1) then made.cp2 = rings end
    if p.cp_algo:find "hybrid" then hybrid(made, rings, p.ulysses) end
    if not p.tp_2d and (p.cp_algo == "megatron_cp_algo" or p.cp_algo == "hybrid_cp_algo") then
      made.cp_ring_intra = {}
      for _, name in ipairs { "intra_window", "inter_window_kv", "inter_window_dkv" } do
        kept["ring_ranks_for_" .. name] = {}
      end
      for _, ring in ipairs(p.cp_algo == "hybrid_cp_algo" and p.ulysses > 1 and made.cp_ring or rings) do
        windows(made.cp_ring_intra, kept, ring, p.window or 1)
      end
      made.cp_ring_intra_overlap = p.cp_overlap and made.cp_ring_intra or nil
    end
  end
  if p.tp_2d then two_dims(made, world, p, rings) end
  if p.optimize_send_recv_comm and not p.vpp then
    made.pp_new_stream = {}
    local stage = world // p.pp
    for i = 0, stage - 1 do made.pp_new_stream[i + 1] = range(i, world, stage) end
  end
  local hot = p.balanced_moe and math.min(p.hot_groups, p.hot_experts, 8) or 0
  for i = 0, hot - 1 do made["hot_expert_" .. i] = made.ep end
  return made, nil, kept
end

return { draw = draw, families = families }
