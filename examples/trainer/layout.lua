-- SPDX-License-Identifier: MIT
--
-- The layout of the trainer in this folder: tensor, context, data and pipeline parallelism, and
-- a grid of experts over the same ranks.
--
--   moongrid plan examples/trainer/layout.lua --world 8 tp=2 pp=2
--   scripts/launch 8 build/trainer/trainer examples/trainer/layout.lua ep=4

local trainer = recipe.import "./step.lua"

-- If a smaller layout has too few ranks for `zero`, halve `zero` until it fits.
local bundled = policies.on_lost()
local function on_lost(s, q, p)
  local answer, tries, zero = bundled(s, q, p), {}, p.zero
  while zero > 0 do
    tries[#tries + 1] = { zero = zero }
    zero = zero // 2
  end
  return answer == "shrink" and { how = answer, params = tries } or answer
end

-- The policies that policy.c calls. All but on_lost are bundled; a policy can be any function (state, q, p).
local policy = {
  layers = policies.layers(), -- the first stages get the remainder, because the last stage also has the loss
  schedule = policies.schedule { chunks = function(_, _, p) return p.vpp end },
  bucket_bytes = policies.bucket_bytes { least = 64 << 10, per_rank = 0 }, -- about a layer of a small model
  gradient_family = policies.gradient_family { dense = "dp_cp", expert = "expert_data" },
  learning_rate = policies.learning_rate { peak = 3e-3, least = 3e-4, warmup = 10 },
  checkpoint = policies.checkpoint { every = 50 }, -- called only with --checkpoint
  on_lost = on_lost,
}

return recipe {
  doc = "A dense and an expert grid that share tensor and pipeline parallelism",
  params = {
    tp = param.size(1, "ranks that share every matrix"),
    cp = param.size(1, "ranks that share every sequence"),
    pp = param.size(1, "pipeline stages"),
    vpp = param.size(1, "runs of layers per pipeline stage; more than 1 is the interleaved schedule"),
    ep = param.size(1, "ranks that share the experts of a layer; divides cp x dp"),
    zero = param.size(1, "ranks that share the optimizer's state, a slice each (ZeRO-1); divides dp and cp x dp / ep"),
    batch = param.size(16, "sequences of a step, as --batch; dp divides the number"),
  },
  build = function(world, p)
    local dense = grid(world, "tp-cp-dp-pp", { tp = p.tp, cp = p.cp, pp = p.pp, dp = fill })
    local expert = grid(world, "tp-ep-edp-pp", { tp = p.tp, ep = p.ep, pp = p.pp, edp = fill })
    local dp = world.size // (p.tp * p.cp * p.pp)
    if p.batch % dp ~= 0 then error(("dp %d does not divide a batch of %d"):format(dp, p.batch), 0) end
    same(dense "tp", expert "tp") -- matrices of experts are cut like the dense ones
    same(dense "pp", expert "pp") -- and the stages are the same

    local t = topology(world)
    -- Neighbours share the optimizer's state, so copies of a slice are on distant ranks.
    local slices = { zero = p.zero, replica = fill }
    t.dense = dense:unflatten("dp", "zero-replica", slices)
    t.expert = expert:unflatten("edp", "zero-replica", slices)
    t.tp = dense "tp"
    t.cp = dense "cp"
    t.dp = dense "dp"
    t.pp = dense "pp"
    t.dp_cp = dense("cp", "dp")           -- gradients of dense parameters
    t.shard = t.dense "zero"              -- the slices of a parameter,
    t.copies = t.dense("cp", "replica")   -- and the copies of a slice
    t.ep = expert "ep"                    -- tokens to experts
    t.expert_data = expert "edp"          -- gradients of expert parameters
    t.expert_shard = t.expert "zero"
    t.expert_copies = t.expert "replica"
    t.job = dense("tp", "cp", "dp", "pp") -- all ranks
    t.embedding = dense "pp":pick(0, -1)  -- one matrix is the first stage's input and the last one's output
    return t
  end,

  policy = policy,
  -- What travels in a step: moongrid step examples/trainer/layout.lua --world 8 tp=2 pp=2
  step = function(s, p) trainer.step(s, p, policy) end,
  -- Ranks compare the results of these policies, so that no rank can cut, sum or stop differently from the others.
  agreed = {
    layers = "world", schedule = "world", bucket_bytes = "world", gradient_family = "dp_cp",
    learning_rate = "world", checkpoint = "world",
  },
}
