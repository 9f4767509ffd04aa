-- SPDX-License-Identifier: MIT
--
-- The layout of the trainer in this folder: tensor, context, data and pipeline parallelism, and
-- experts that have a grid of their own over the same ranks.
--
--   moongrid plan examples/trainer/layout.lua --world 8 tp=2 pp=2
--   scripts/launch 8 build/trainer/trainer examples/trainer/layout.lua ep=4

return recipe {
  doc = "A dense and an expert grid that share tensor and pipeline parallelism",
  params = {
    tp = param.size(1, "ranks that share every matrix"),
    cp = param.size(1, "ranks that share every sequence"),
    pp = param.size(1, "pipeline stages"),
    vpp = param.size(1, "runs of layers per pipeline stage; more than 1 is the interleaved schedule"),
    ep = param.size(1, "ranks that share the experts of a layer; divides what tp and pp leave"),
  },
  build = function(world, p)
    local dense = grid(world, "tp-cp-dp-pp", { tp = p.tp, cp = p.cp, pp = p.pp, dp = fill })
    local expert = grid(world, "tp-ep-edp-pp", { tp = p.tp, ep = p.ep, pp = p.pp, edp = fill })
    same(dense "tp", expert "tp") -- an expert's matrices are cut as the dense ones are
    same(dense "pp", expert "pp") -- and the stages are the same

    local t = topology(world)
    t.dense = dense
    t.expert = expert
    t.tp = dense "tp"
    t.cp = dense "cp"
    t.dp = dense "dp"
    t.pp = dense "pp"
    t.dp_cp = dense("cp", "dp")           -- gradients of dense parameters
    t.ep = expert "ep"                    -- tokens to experts
    t.expert_data = expert "edp"          -- gradients of expert parameters
    t.job = dense("tp", "cp", "dp", "pp") -- everybody: what a reload asks and carries
    t.embedding = dense "pp":pick(0, -1)  -- one matrix is the first stage's input and the last one's output
    return t
  end,

  -- What the trainer asks (policy.c). q has the arguments by name.
  policy = {
    -- Layers of each stage, in the order of the model; with vpp each rank has vpp of these stages. What
    -- does not divide goes to the front: the last stage has the output matrix and the loss besides.
    layers = function(_, q)
      local each = {}
      for stage = 1, q.stages do
        each[stage] = q.layers // q.stages + (stage <= q.layers % q.stages and 1 or 0)
      end
      return each
    end,
    -- Parts of a replica's samples: twice as many as ranks keep a pipeline busy; the nearest
    -- divisor below. order: "1f1b", "gpipe" or "interleaved", which wants whole rounds of the ranks.
    schedule = function(_, q, p)
      local n, round = math.min(2 * q.ranks, q.samples), p.vpp > 1 and q.ranks or 1
      while n > 0 and (q.samples % n ~= 0 or n % round ~= 0) do n = n - 1 end
      if n == 0 then error(("%d samples do not divide into rounds of %d microbatches"):format(q.samples, round)) end
      return { microbatches = n, order = p.vpp > 1 and "interleaved" or "1f1b", chunks = p.vpp }
    end,
    -- Gradients are summed in buckets of so many bytes.
    bucket_bytes = function() return 256 << 10 end,
    -- The family over which a parameter's gradient is summed.
    gradient_family = function(_, q) return q.expert and "expert_data" or "dp_cp" end,
    -- A short warm-up, then a smooth fall to a tenth. (Recipes have no cosine: it is not the same
    -- on every machine.)
    learning_rate = function(_, q)
      local top, warm = 3e-3, 10
      if q.step < warm then return top * (q.step + 1) / warm end
      local done = (q.step - warm) / (q.steps - warm)
      return top * (1 - 0.9 * done * done * (3 - 2 * done))
    end,
    -- Asked after every step, where the user named a file.
    checkpoint = function(_, q) return (q.step + 1) % 50 == 0 or q.step + 1 == q.steps end,
    -- A call over q.family failed: "stop" is all that MPI can do.
    on_lost = function() return "stop" end,
  },
  -- Compared before they count: no rank can cut, sum or stop otherwise than the others.
  agreed = {
    layers = "world", schedule = "world", bucket_bytes = "world", gradient_family = "dp_cp",
    learning_rate = "world", checkpoint = "world",
  },
}
