-- SPDX-License-Identifier: MIT
--
-- SGLang's diffusion parallel_state: RankGenerator "tp-sp-pp-cfg-dp", then which coordinators are used again.

local ranks = require "models.ranks"

local order = { "tp", "sp", "pp", "cfg", "dp" }

local function draw()
  local dit = ranks.one_of { 1, 2, 4, 6, 8, 12, 16, 24 }
  local tp, u, r, pp, cfg, dp = ranks.product(dit, 6)
  local p = { tp = tp, ulysses = u, ring = r, pp = pp, cfg = cfg, dp = dp }
  if math.random(3) == 1 then p.sequence_parallel_degree = u * r + (math.random(4) == 1 and 1 or 0) end
  local more = ranks.one_of { 0, 0, 1, 2 }
  if more > 0 then p.vae = math.random(2) end
  return dit + more, p
end

local function families(world, p)
  local sizes = { tp = p.tp, sp = p.ulysses * p.ring, pp = p.pp, cfg = p.cfg, dp = p.dp }
  local dit, all, vae = p.tp * sizes.sp * p.pp * p.cfg * p.dp, {}, {}
  if (p.sequence_parallel_degree or sizes.sp) ~= sizes.sp then return nil, "sp is not ulysses x ring" end
  if dit + (p.vae or 0) ~= world then return nil, "ranks are left over" end
  for rank = 0, world - 1 do
    all[#all + 1] = rank
    if rank >= dit then vae[#vae + 1] = rank end
  end
  local function of(...) return ranks.groups(order, sizes, ...) end
  local made = { world_group = { all }, tp = of "tp", sp = of "sp", pp = of "pp", cfg = of "cfg", dp = of "dp" }
  if p.cfg > 1 and sizes.sp == 1 then made.cfg_sp = made.cfg end
  local replica = of("tp", "sp", "pp", "cfg")
  made.replica, made.vae_decode = p.dp == 1 and { all } or replica, replica
  -- encoders are whole where tp is 1; else the ranks of equal tp share a batch
  if p.tp == 1 then
    made.encoder_dp = made.replica
  elseif sizes.sp * p.pp * p.cfg > 1 then
    made.encoder_dp = of("sp", "pp", "cfg")
  end
  local names = {}
  for name in pairs(made) do names[#names + 1] = name end
  ranks.with_cpu(made, "_cpu", names)
  made.ulysses, made.ring = ranks.runs(of "sp", p.ulysses), ranks.across(of "sp", p.ulysses)
  made.dit, made.vae = of("tp", "sp", "pp", "cfg", "dp"), p.vae and { vae } or nil
  return made
end

return { draw = draw, families = families }
