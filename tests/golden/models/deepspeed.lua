-- SPDX-License-Identifier: MIT
--
-- DeepSpeed pull request 7726, ParallelState: two grids with one order, as its RankGenerator counts them.

local ranks = require "models.ranks"

local names = { "tp", "sp", "cp", "ep", "dp", "pp" }

local function draw()
  local world = ranks.one_of { 4, 6, 8, 12, 16, 24, 32 }
  local tp, pp, cp, rest = ranks.product(world, 4)
  local p = { tp = tp, pp = pp, cp = cp }
  if math.random(4) == 1 then p = { sp = ranks.divisor(world), cp = ranks.one_of { 1, 1, 2 } } end
  if math.random(2) == 1 then p.etp = ranks.divisor(world // (p.pp or 1)) end
  if math.random(2) == 1 then p.ep = ranks.divisor(world // (p.pp or 1)) end
  if math.random(3) == 1 then p.instances = ranks.divisor(rest * cp) end
  if math.random(4) == 1 then p.create_gloo_process_groups = true end
  local order = { table.unpack(names) }
  for i = #order, 2, -1 do
    local j = math.random(i)
    order[i], order[j] = order[j], order[i]
  end
  if math.random(2) == 1 then -- pp last, as most have it
    for i, name in ipairs(order) do
      if name == "pp" then table.insert(order, table.remove(order, i)) break end
    end
  end
  if math.random(4) == 1 then table.remove(order, math.random(#order)) end
  p.order = table.concat(order, "-")
  return world, p
end

-- Nil: DeepSpeed refuses, or the recipe does on purpose; then why.
local function families(world, p)
  local tp, pp, sp, cp, ep, n = p.tp or 1, p.pp or 1, p.sp or 1, p.cp or 1, p.ep or 1, p.instances or 1
  local etp = p.etp or tp
  if sp > 1 and math.max(tp, pp, ep, etp) > 1 then return nil, "sp excludes tp, pp and ep" end
  if world % (tp * pp * sp * cp) > 0 or world % (etp * ep * pp) > 0 then return nil, "sizes do not divide the world" end
  local dense = { tp = tp, sp = sp, cp = cp, ep = 1, dp = world // (tp * pp * sp * cp), pp = pp }
  local expert = { tp = etp, sp = 1, cp = 1, ep = ep, dp = world // (etp * ep * pp), pp = pp }
  local order, seen = {}, {}
  for name in p.order:gmatch "%a+" do order[#order + 1], seen[name] = name, true end
  for _, name in ipairs(names) do
    if not seen[name] and math.max(dense[name], expert[name]) > 1 then return nil, "order lacks " .. name end
    if not seen[name] then order[#order + 1] = name end
  end
  local function of(...) return ranks.groups(order, dense, ...) end
  local function of_experts(...) return ranks.groups(order, expert, ...) end
  if ranks.as_set(of "pp") ~= ranks.as_set(of_experts "pp") and (ep > 1 or etp ~= tp) then
    return nil, "experts cross stages"
  end
  local dp_cp, ep_dp = of("dp", "cp"), of_experts "dp"
  if #dp_cp[1] % n > 0 or #ep_dp[1] % n > 0 then return nil, "instances do not divide" end
  local shard, expert_shard = #dp_cp[1] // n, #ep_dp[1] // n
  local inter = ranks.across(ep_dp, expert_shard)
  if n > 1 and ranks.as_set(ranks.across(dp_cp, shard)) ~= ranks.as_set(inter) then return nil, "instances differ" end
  local model = of_experts("tp", "ep", "pp")
  local instances, each = {}, #model // n
  for i = 1, #model, each do
    local own = {}
    for g = i, i + each - 1 do table.move(model[g], 1, #model[g], #own + 1, own) end
    instances[#instances + 1] = own
  end
  local made = {
    dp_cp = dp_cp, intra_dp_cp = ranks.runs(dp_cp, shard), dp = of "dp", cp = of "cp", mp = of("tp", "pp"),
    tp = of "tp", pp = of "pp", embd = ranks.picked(of "pp", { 0, -1 }), pos_embd = ranks.picked(of "pp", { 0 }),
    tp_dp_cp = of("tp", "dp", "cp"), tp_dp = of("tp", "dp"), tp_cp = of("tp", "cp"), ep = of_experts "ep",
    ep_tp = of_experts "tp", tp_ep_mp = of_experts("tp", "ep"), tp_ep_pp = model, ep_dp = ep_dp,
    intra_ep_dp = ranks.runs(ep_dp, expert_shard), inter_ep_dp = n > 1 and inter or nil, intra_dist_opt = instances,
    sp = of "sp", sp_dp = of("sp", "dp"),
  }
  if p.create_gloo_process_groups then
    ranks.with_cpu(made, "_gloo", { "dp_cp", "intra_dp_cp", "dp", "ep_dp", "intra_ep_dp" })
  end
  return made
end

return { draw = draw, families = families }
