-- SPDX-License-Identifier: MIT
--
-- Megatron-Bridge's _create_pg_collection, once or, with a vision model, over two windows of the world.

local ranks = require "models.ranks"

local function sizes(world, prefix, p)
  local tp, cp, pp = ranks.product(world, 4)
  p[prefix .. "tp"], p[prefix .. "cp"], p[prefix .. "pp"] = tp, cp, pp
  if math.random(2) == 1 then p[prefix .. "etp"] = ranks.divisor(world // pp) end
  if math.random(2) == 1 then p[prefix .. "ep"] = ranks.divisor(world // pp) end
end

local function draw()
  local world, p, vision = ranks.one_of { 4, 8, 12, 16, 24 }, {}, 0
  if math.random(3) == 1 then
    vision = ranks.one_of { 2, 4, 8 }
    p.vision = vision
    sizes(vision, "vision_", p)
  end
  sizes(world, "", p)
  if math.random(3) == 1 then p.instances = ranks.one_of { 2, 2, 3 } end
  return world + vision, p
end

-- The collection of one model on `world` ranks from `offset` on; nil where its sizes do not fit.
local function collection(made, prefix, world, offset, p)
  local tp, cp, pp, ep = p[prefix .. "tp"], p[prefix .. "cp"], p[prefix .. "pp"], p[prefix .. "ep"] or 1
  local n = p.instances or 1
  local etp = p[prefix .. "etp"] or ep > 1 and 1 or tp -- _set_moe_expert_tensor_parallel_default
  if world % (tp * cp * pp) > 0 or world % (etp * ep * pp) > 0 then return false end
  local dp, edp = world // (tp * cp * pp), world // (etp * ep * pp)
  if edp % n > 0 then return false end
  local dense, shape = { "tp", "cp", "dp", "pp" }, { tp = tp, cp = cp, dp = dp, pp = pp }
  local order = { "tp", "ep", "inner", "outer", "pp" }
  local experts = { tp = etp, ep = ep, inner = edp // n, outer = n, pp = pp }
  local function put(name, groups)
    for _, group in ipairs(groups) do
      for i, rank in ipairs(group) do group[i] = rank + offset end
    end
    made[prefix .. name] = groups
  end
  for name, dims in pairs {
    tp = "tp", cp = "cp", pp = "pp", dp = "dp", mp = "tp pp", tp_cp = "tp cp", tp_dp_cp = "tp dp cp", dp_cp = "dp cp",
    intra_dp_cp = "dp cp",
  } do
    local list = {}
    for dim in dims:gmatch "%a+" do list[#list + 1] = dim end
    put(name, ranks.groups(dense, shape, table.unpack(list)))
  end
  put("embd", ranks.picked(ranks.groups(dense, shape, "pp"), { 0, -1 }))
  put("pos_embd", ranks.picked(ranks.groups(dense, shape, "pp"), { 0 }))
  for name, dims in pairs {
    ep = "ep", expt_tp = "tp", tp_ep = "tp ep", tp_ep_pp = "tp ep pp", expt_dp = "inner outer", intra_expt_dp = "inner",
    inter_dist_opt = n > 1 and "outer" or nil, intra_dist_opt = n > 1 and "tp ep inner pp" or nil,
  } do
    local list = {}
    for dim in dims:gmatch "%a+" do list[#list + 1] = dim end
    put(name, ranks.groups(order, experts, table.unpack(list)))
  end
  return true
end

local function families(world, p)
  local made, vision = {}, p.vision or 0
  if vision > 0 and not collection(made, "vision_", vision, 0, p) then return nil, "the vision model does not fit" end
  if not collection(made, "", world - vision, vision, p) then return nil, "the sizes do not fit" end
  return made
end

return { draw = draw, families = families }
