-- vLLM's parallel state: one grid, tp fastest, then pcp (prefill context), pp, dp, and independent
-- replicas. Every group has a twin on the CPU (gloo there).
-- Source: vllm-project/vllm 0.33, vllm/distributed/parallel_state.py.
-- Not as there: nothing known.
-- Recorded: 64 cases of 1 to 64 ranks, 5 of them refused: tests/golden/vllm.json.

local arithmetic = ...

-- Return the groups of n ranks inside the product of two dims, `fast` varying fastest. The dims `rest` number the
-- groups.
local function blocks(g, name, n, fast, slow, rest)
  local size = g[fast] * g[slow]
  if size % n > 0 then
    error(string.format("%s %d does not divide %s %d x %s %d; %s would do", name, n, fast, g[fast], slow, g[slow],
      arithmetic.nearest(n, size)))
  end
  return (g:along { fast, slow, index = rest }:split(n, { table = true }))
end

local queries = {
  get_tensor_model_parallel_world_size = function(s) return s.tp.size end,
  get_tensor_model_parallel_rank = function(s) return s.tp.position end,
  get_pipeline_model_parallel_rank = function(s) return s.pp.position end,
  get_dcp_world_size_and_rank = function(s, q)
    if not q.enabled then return { 1, 0 } end
    return { s.dcp.size, s.dcp.position }
  end,
  get_engram_dp_size = function(s) return s:has "engram_dp" and s.engram_dp.size or 1 end,
}

return recipe {
  doc = "vLLM's parallel state: tensor, prefill and decode context, pipeline, data, experts",
  base = "xdit.coordinator",
  params = {
    tensor_model_parallel_size = param.size(1, "tensor-parallel size", "tp"),
    pipeline_model_parallel_size = param.size(1, "pipeline stages", "pp"),
    prefill_context_model_parallel_size = param.size(1, "context-parallel size during prefill", "pcp"),
    decode_context_model_parallel_size = param.size(1, "ranks that share a KV cache during decode; divides pcp x tp",
      "dcp"),
    data_parallel_size = param.size(1, "engines that run in step; the other ranks are further replicas", "dp"),
    is_moe = param.flag(true, "the model has experts: ep spans tp, pcp and dp"),
    enable_eplb = param.flag(false, "make a twin of ep that moves experts to balance their load", "eplb"),
    engram_tensor_parallel_size = param.size(nil, "ranks that share Engram's embeddings; left out, tp", "etp"),
    engram_data_parallel_size = param.size(1, "engines that share Engram's table; divides dp", "engram_dp"),
  },
  build = function(world, p)
    local g = grid(world, "tp-pcp-pp-dp-replica", {
      tp = p.tensor_model_parallel_size, pcp = p.prefill_context_model_parallel_size,
      pp = p.pipeline_model_parallel_size, dp = p.data_parallel_size, replica = fill,
    })
    local dcp, etp, engram = p.decode_context_model_parallel_size, p.engram_tensor_parallel_size or g.tp,
      p.engram_data_parallel_size
    local t = topology(world)
    t.grid = g

    -- Add a family and its twin on the CPU.
    local function add(name, family)
      t[name] = family
      t[name .. "_cpu"] = family:with { backend = "mpi" }
    end

    add("world_group", g:except())
    add("tp", g "tp")
    if etp == g.tp then
      add("etp", g "tp")
    else
      add("etp", blocks(g, "engram_tensor_parallel_size", etp, "tp", "dp", { "pcp", "pp", "replica" }))
    end
    if g.dp % engram > 0 then
      error(string.format("engram_data_parallel_size %d does not divide dp %d; %s would do", engram, g.dp,
        arithmetic.nearest(engram, g.dp)))
    end
    if engram > 1 and engram < g.dp then
      add("engram_dp", (g:along { "dp", index = { "tp", "pcp", "pp", "replica" } }:split(engram)))
    end
    if dcp > 1 then
      add("dcp", blocks(g, "decode_context_model_parallel_size", dcp, "pcp", "tp", { "pp", "dp", "replica" }))
    else
      add("dcp", g())
    end
    add("pcp", g "pcp")
    add("pp", g:along { "pp", index = { "pcp", "tp", "dp", "replica" } })
    add("dp", g:along { "dp", index = { "pcp", "pp", "tp", "replica" } })
    if engram > 1 and engram == g.dp then add("engram_dp", t.dp) end
    if p.is_moe then
      add("ep", g("tp", "pcp", "dp"))
      if p.enable_eplb then add("eplb", g("tp", "pcp", "dp"):twin()) end -- may be used at the same time as ep
    end
    return t
  end,
  queries = queries,
  getters = {
    get_world_group = "world_group", get_tp_group = "tp", get_etp_group = "etp", get_dcp_group = "dcp",
    get_pcp_group = "pcp", get_pp_group = "pp", get_dp_group = "dp", get_ep_group = "ep", get_eplb_group = "eplb",
    get_engram_dp_group = "engram_dp",
  },
  families = {
    ["ep*"] = "is_moe", ["eplb*"] = "is_moe and enable_eplb", ["engram_dp*"] = "engram_data_parallel_size above 1",
  },
  arguments = {
    enabled = param.flag(true, "false: answer as if dcp were 1"),
  },
}
