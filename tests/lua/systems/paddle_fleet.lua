-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe paddle_fleet for systems_spec.lua, which explains the fields.

local pp_first = { "pp", "dp", "moe_sharding", "sharding", "sep", "cp", "ep", "mp" }
local pp_last = { "dp", "moe_sharding", "sharding", "pp", "sep", "cp", "ep", "mp" }

-- With experts, sharding takes what remains; ep is of the size that fits.
local function experts(params)
  return function(world)
    local all = { dp = 1 }
    for name, value in pairs(params) do all[name] = value end
    all.sharding = world // ((params.pp or 1) * (params.mp or 1))
    all.ep = all.sharding * (params.mp or 1) // (params.moe_sharding or 1)
    return all
  end
end

local moe = experts { order = pp_first, mp = 2, moe_sharding = 2 }(8) -- sharding 4, ep 4

local function changed(overrides)
  local all = {}
  for name, value in pairs(moe) do all[name] = value end
  for name, value in pairs(overrides) do all[name] = value end
  return all
end

return {
  refused = {
    { "an unknown axis (pf-007)", { order = { "dp", "pp", "sharding", "sep", "mp", "xx" } },
      "order: 'xx' is not an axis; name axes of dp-pp-sharding-mp-sep-cp-ep-moe_sharding",
      would = { { order = { "dp", "pp", "sharding", "sep", "mp" } } } },
    { "an order without sep (pf-006)", { order = { "dp", "pp", "sharding", "mp" } },
      "order lacks 'sep'; it needs dp, pp, sharding, mp and sep", would = { { order = { "dp", "pp", "sharding", "mp", "sep" } } } },
    { "sharding beside all data parallelism (pf-004)", { sharding = 2 }, "dp_degree -1 takes all that mp and pp leave, so "
      .. "sharding_degree 2 and sep_degree 1 do not fit; dp_degree 4 would do", would = { { dp = 4 } } },
    { "the same where nothing fits", { sep = 3 }, "dp_degree -1 takes all that mp and pp leave, so sharding_degree 1 and "
      .. "sep_degree 3 do not fit; sharding_degree 1 and sep_degree 1 would do", would = { { sep = 1 } } },
    { "degrees that make another world", { dp = 2, mp = 2 }, words = { "mp 2 x dp 2 = 4 does not make the 8 ranks" }, would = { { mp = 4 } } },
    { "context parallelism without experts (pf-005)", { dp = 4, cp = 2 },
      "cp_degree 2 needs experts; set it to 1, or ep_degree above 1 with ep in the order",
      would = { { dp = 8, cp = 1 } } },
    { "experts in an order without their sharding (pf-013)", { dp = 1, sharding = 8, ep = 8, order = { "pp", "dp", "sharding", "sep", "cp", "ep", "mp" } },
      "order lacks 'moe_sharding', which experts need; add it", would = { { order = pp_first } } },
    { "experts with data parallelism (pf-012)", changed { dp = 2 }, "with experts dp_degree and sep_degree are 1, not 2 and 1",
      would = { { dp = 1 } } },
    { "a context that does not divide", changed { cp = 3 }, "cp_degree 3 does not divide sharding_degree 4; 2 or 4 would do",
      would = { { cp = 2 }, { cp = 4 } } },
    { "two grids of different sizes", changed { ep = 2 }, "mp_degree 2 x sharding_degree 4 is not ep_degree 2 x moe_sharding_degree 2; "
      .. "ep_degree 4 would do", would = { { ep = 4 } } },
    { "a question without its stage", ask = "rank_from_stage", message = "stage_id is missing; 0 would do" },
  },
  layouts = {
    experts { order = pp_first, mp = 2, pp = 2, moe_sharding = 2, cp = 2, four_directions = true }, {}, { mp = 2, pp = 2, four_directions = true },
    function(world) return { sharding = 2, sep = 2, dp = world // 4 } end, experts { order = pp_last, cp = 4, moe_sharding = 2 },
    experts { order = pp_last, pp = 4, moe_sharding = 1, four_directions = true }, { pp = 4, order = { "sharding", "pp", "mp", "sep", "dp" } },
  },
  asks = { { { stage_id = 0 } }, sharding_parallel_rank = { {}, { with_context_parallel = true } } },
  values = {
    dp_degree = { 4, { mp = 2 } }, mp_degree = { 2 }, pp_degree = { 2 }, sharding_degree = { 2, { dp = 4 }, {} },
    sep_degree = { 2, { dp = 4 }, {} }, cp_degree = { 2, moe },
    ep_degree = { 4, { dp = 1, sharding = 8, moe_sharding = 2, order = pp_last }, {} },
    moe_sharding_degree = { 4, { dp = 1, sharding = 8, ep = 2, order = pp_last }, {} }, four_directions = { true, { pp = 2 } },
  },
}
