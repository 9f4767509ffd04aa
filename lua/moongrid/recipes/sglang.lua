-- SGLang's parallel state: tensor-parallel blocks inside each pipeline stage, which attention and the experts
-- cut in two ways of their own. Every group has a twin on the CPU (gloo there).
-- Source: sgl-project/sglang 0.5.23, sglang/srt/distributed/parallel_state.py.
-- Not as there: nothing known.
-- Recorded: 60 cases of 1 to 64 ranks, 9 of them refused: tests/golden/sglang.json.

local arithmetic = ...

-- Return tp divided by the sizes p[a] and p[b]. Refuse sizes that do not divide it.
local function remains(tp, p, a, b)
  if tp % p[a] == 0 and tp // p[a] % p[b] == 0 then return tp // p[a] // p[b] end
  local name, other = a, b -- the size to blame: the one that alone can be corrected, or the first
  if tp % p[b] > 0 and tp % p[a] == 0 then name, other = b, a end
  local near = arithmetic.nearest(p[name], tp, function(n) return tp // n % p[other] == 0 end)
    or arithmetic.nearest(p[name], tp)
  error(string.format("%s %d x %s %d does not divide tp_size %d; %s %s would do", a, p[a], b, p[b], tp, name, near))
end

-- Refuse a size that does not divide another.
local function check_divides(name, n, of, size)
  if size % n > 0 then
    error(string.format("%s %d does not divide %s %d; %s would do", name, n, of, size, arithmetic.nearest(n, size)))
  end
end

local function build(world, p)
  local g = grid(world, "tp-pp", { tp = p.tp_size or fill, pp = p.pp_size })
  local tp, shared = g.tp, p.shared_experts_tp_size or 1
  local attn_tp = remains(tp, p, "attn_dp_size", "attn_cp_size")
  local moe_tp = remains(tp, p, "moe_ep_size", "moe_dp_size")
  check_divides("attn_dcp_size", p.attn_dcp_size, "tp_size", tp)
  check_divides("shared_experts_tp_size", shared, "attn_tp_size", attn_tp)
  local attention = grid(world, "tp-cp-dp-pp",
    { tp = attn_tp, cp = p.attn_cp_size, dp = p.attn_dp_size, pp = p.pp_size })
  local moe = grid(world, "tp-ep-dp-pp", { tp = moe_tp, ep = p.moe_ep_size, dp = p.moe_dp_size, pp = p.pp_size })
  local t = topology(world)
  t.grid = g
  t.attention = attention
  t.moe = moe

  -- Add a family and its twin on the CPU. A family of the same groups has the same communicators.
  local function add(name, family)
    t[name] = family
    t[name .. "_cpu"] = family:with { backend = "mpi" }
  end

  add("world_group", g:except())
  add("tp", g "tp")
  if p.duplicate_tp_group then add("pdmux_prefill_tp", g "tp":twin()) end -- prefill runs beside decode
  if p.attn_dcp_size > 1 then add("dcp", (g "tp":split(p.attn_dcp_size))) end
  add("attn_cp", attention "cp")
  add("attn_tp", attention "tp")
  if shared > 1 then add("shared_experts_tp", (attention "tp":split(shared))) end
  -- ranks that share a context exchange their tokens before the experts
  add("moe_dp", p.attn_cp_size > p.moe_dp_size and attention "cp" or moe "dp")
  add("moe_ep", moe "ep")
  add("moe_tp", moe "tp")
  add("pp", g "pp")
  add("self_pp", g()) -- a draft model of one stage
  return t
end

local queries = {
  get_world_size = function(s) return s.world end,
  get_world_rank = function(s) return s.rank end,
  get_dcp_world_size = function(s) return s:has "dcp" and s.dcp.size or 1 end,
  get_dcp_rank = function(s) return s:has "dcp" and s.dcp.position or 0 end,
}
for getter, family in pairs {
  tensor_model = "tp", attn_tensor_model = "attn_tp", attn_context_model = "attn_cp", pipeline_model = "pp",
  moe_data = "moe_dp", moe_expert = "moe_ep", moe_tensor = "moe_tp",
} do
  queries["get_" .. getter .. "_parallel_world_size"] = function(s) return s[family].size end
  queries["get_" .. getter .. "_parallel_rank"] = function(s) return s[family].position end
end

return recipe {
  doc = "SGLang's parallel state: attention and experts each cut the tensor-parallel ranks anew",
  base = "xdit.coordinator",
  params = {
    tp_size = param.size(nil, "ranks of a pipeline stage; left out, the ranks divided by pp", "tp"),
    pp_size = param.size(1, "pipeline stages", "pp"),
    attn_dp_size = param.size(1, "data-parallel size of attention; divides tp", "attn_dp"),
    attn_cp_size = param.size(1, "context-parallel size of attention; divides tp / attn_dp", "attn_cp"),
    attn_dcp_size = param.size(1, "ranks that share a KV cache during decode; divides tp", "dcp"),
    moe_ep_size = param.size(1, "expert-parallel size; divides tp", "ep"),
    moe_dp_size = param.size(1, "data-parallel size of the experts; divides tp / ep", "moe_dp"),
    shared_experts_tp_size = param.size(nil, "tensor-parallel size of shared experts; divides tp / attn_dp / attn_cp",
      "shared_tp"),
    duplicate_tp_group = param.flag(false, "make a twin of tp for prefill beside decode", "pdmux"),
  },
  build = build,
  queries = queries,
  getters = {
    get_world_group = "world_group", get_tp_group = "tp", get_attn_tp_group = "attn_tp",
    get_attn_cp_group = "attn_cp", get_dcp_group = "dcp", get_moe_dp_group = "moe_dp", get_moe_ep_group = "moe_ep",
    get_moe_tp_group = "moe_tp", get_shared_experts_tp_group = "shared_experts_tp", get_pp_group = "pp",
    get_self_pp_group = "self_pp", pdmux_prefill_tp_group = "pdmux_prefill_tp",
  },
  families = {
    ["dcp*"] = "attn_dcp_size above 1", ["shared_experts_tp*"] = "shared_experts_tp_size above 1",
    ["pdmux_prefill_tp*"] = "duplicate_tp_group",
  },
}
