-- SPDX-License-Identifier: MIT
--
-- Bundled steps beside recorded steps of the real systems (tests/golden/steps): each rank's program has the recorded
-- calls, with their bytes, ranks and peers, in the recorded order. Two things are not compared: attention over cp of
-- Megatron-core (Transformer Engine's, not recorded), and the bytes of dropless experts, which follow the data.

local json = require "dkjson"
local support = dofile "tests/lua/support.lua"
local mg = require "moongrid"

-- The family of a group that has a name; the others are known by their ranks alone.
local families = {
  TENSOR_MODEL_PARALLEL_GROUP = "tp", PIPELINE_MODEL_PARALLEL_GROUP = "pp", DATA_PARALLEL_GROUP_WITH_CP = "dp_cp",
  EXPERT_MODEL_PARALLEL_GROUP = "ep", EXPERT_DATA_PARALLEL_GROUP = "expt_dp", EMBEDDING_GROUP = "embd",
  MODEL_PARALLEL_GROUP = "mp", EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP = "tp_ep", EXPERT_TENSOR_PARALLEL_GROUP = "expt_tp",
  EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP = "tp_ep_pp", TENSOR_AND_CONTEXT_PARALLEL_GROUP = "tp_cp",
  INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP = "intra_dp_cp", TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP = "tp_dp_cp",
  INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP = "intra_dist_opt", default_pg = "default_pg",
  HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_L1 = "inter_dist_opt",
  EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP_WITH_EGTP = "tp_ep_pp",
}

local arguments = {}
function arguments.megatron(a, m)
  local overlap = {}
  if a.overlap_grad then overlap[1] = "gradients" end
  if a.overlap_param then overlap[#overlap + 1] = "weights" end
  return {
    tp = a.tp, pp = a.pp, cp = a.cp, ep = a.ep, etp = a.etp, vpp = a.vpp, instances = a.instances > 1 and a.instances or nil,
    layers = m.layers, hidden = m.hidden, heads = m.heads, kv_heads = m.kv_heads, ffn = m.ffn, vocab = m.vocab, seq = m.seq,
    micro_batch = a.micro_batch, tied = m.tied, gated = m.gated, bias = m.bias, norm = m.norm, positions = m.positions,
    qk_norm = m.qk_norm, experts = m.experts, topk = m.experts and m.topk, moe_ffn = m.moe_ffn, moe_every = m.moe_every,
    shared_ffn = m.shared_ffn, aux_loss = m.aux and true, expert_bias = m.expert_bias, dispatcher = a.dispatcher,
    dropless = m.experts and a.dispatcher == "alltoall" and not a.capacity and true, sequence_parallel = a.sp,
    first_stage_layers = a.first, last_stage_layers = a.last, recompute = a.recompute, zero = a.distopt and 1 or 0,
    overlap = #overlap > 0 and overlap or nil, overlap_p2p = a.overlap_p2p, bucket = a.bucket,
    per_token_loss = m.per_token, fused_loss = m.fused_ce, weight_type = m.bf16 and "bf16" or m.fp16 and "fp16" or "fp32",
    stage_layers = a.stage_layers, dense_layers = m.dense_layers, mtp_num_layers = m.mtp, kv_lora_rank = m.kv_lora_rank,
    q_lora_rank = m.q_lora_rank, qk_head_dim = m.qk_head_dim, qk_pos_emb_head_dim = m.qk_pos_emb_head_dim,
    v_head_dim = m.v_head_dim, transformer_impl = m.transformer_impl,
    grad_type = (m.grad_fp32 or not (m.bf16 or m.fp16)) and "fp32" or "bf16",
  }
end
function arguments.picotron(a, m)
  return { tp = a.tp, pp = a.pp, cp = a.cp, layers = m.layers, hidden = m.hidden, heads = m.heads, kv_heads = m.kv_heads,
           ffn = m.ffn, vocab = m.vocab, seq = m.seq, micro_batch = a.micro_batch, schedule = a.engine, weight_type = "fp32" }
end
function arguments.torchtitan(a, m)
  return { tp = a.tp, dp_replicate = a.hsdp, layers = m.layers, hidden = m.hidden, heads = m.heads, ffn = m.ffn,
           vocab = m.vocab, seq = m.seq, micro_batch = a.micro_batch, sequence_parallel = a.sp, reshard = a.reshard,
           clip = m.clip > 0, weight_type = m.bf16 and "bf16" or "fp32" }
end

local function sorted(ranks) -- torch sorts the ranks of some groups
  local list = table.move(ranks, 1, #ranks, 1, {})
  table.sort(list)
  return table.concat(list, ",")
end

-- Calls that start together have no order: sort them.
local function add_together(list, together)
  table.sort(together)
  table.move(together, 1, #together, #list + 1, list)
end

-- The recorded calls of a rank as lines; what a batch has is sorted.
local function recorded(case, rank, names)
  local list, batch = {}, {}
  local function take(i)
    local op, g, bytes, peer, _, _, _, together = table.unpack(case.calls[i + 1], 1, 8)
    local name, ranks = table.unpack(case.groups[g + 1])
    if op == "all_gather" then bytes = bytes * #ranks end
    local family = names and (families[name] or error("group " .. name)) or ""
    local line = ("%s(%s {%s}) %d bytes%s"):format(op, family, sorted(ranks), bytes,
      peer == json.null and "" or ", rank " .. peer)
    if together ~= 2 or peer == json.null then -- collectives over one group have an order
      add_together(list, batch)
      batch = {}
    end
    batch[#batch + 1] = line
  end
  local function walk(items)
    for _, item in ipairs(items) do
      if type(item) == "table" then
        for _ = 1, item[1] do walk(item[2]) end
      else
        take(item)
      end
    end
  end
  walk(case.ranks[tostring(rank)])
  add_together(list, batch)
  return list
end

local rooted = { broadcast = true, reduce = true }

-- The calls of a rank's program as such lines.
local function planned(plan, step, rank, names)
  local list = {}
  local function line(e)
    local family = plan:family(e.family)
    local ranks = family:ranks(family:locate(rank))
    local peer = e.to or e.from or rooted[e.operation] and e.root
    return ("%s(%s {%s}) %d bytes%s"):format(e.operation, names and e.family or "", sorted(ranks), e.bytes,
      peer and ", rank " .. ranks[peer + 1] or "")
  end
  local function walk(entries, into)
    for _, e in ipairs(entries) do
      if e.operation == "loop" then
        for _ = 1, e.times do walk(e.body, into) end
      elseif e.body then
        local together = {}
        walk(e.body, together)
        add_together(into, together)
      elseif e.family then
        into[#into + 1] = line(e)
      end
    end
  end
  walk(step:program(rank), list)
  return list
end

-- Return the first difference of two lists of calls; nil: they are equal.
local function difference(a, b)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then return ("call %d is %s, and was recorded as %s"):format(i, tostring(a[i]), tostring(b[i])) end
  end
end

-- Leave out what is not compared.
local function comparable(lines, recipe, dropless)
  local list = {}
  for _, line in ipairs(lines) do
    local family = line:match "%((%w*)"
    if not (recipe == "megatron" and family == "cp") then
      local free = dropless and (family == "ep" or line:find("(expt_tp", 1, true))
      list[#list + 1] = free and line:gsub("%d+ bytes", "loads") or line
    end
  end
  return list
end

local function params_of(recipe, case)
  local a = case.layout
  local params = arguments[recipe](a, case.model)
  for key, value in pairs(params) do
    if value == json.null or value == false and recipe ~= "torchtitan" and (key == "topk" or key == "aux_loss" or key == "dropless") then
      params[key] = nil
    end
  end
  params.global_batch = a.microbatches * a.micro_batch * case.world // (a.tp * a.pp * a.cp)
  return params
end

for file, cases in pairs { megatron = 39, megatron_0_16 = 40, picotron = 8, torchtitan = 5 } do
  local recipe = file:match "^%a+"
  describe("the step of " .. recipe .. " is the recorded one:", function()
    local r, named = mg.load(recipe), recipe == "megatron"
    local all = json.decode(support.read("tests/golden/steps/" .. file .. ".json"), 1, json.null)
    assert(#all.cases == cases)
    for _, case in ipairs(all.cases) do
      it(case.id, function()
        local params = params_of(recipe, case)
        local plan = r:plan(case.world, params)
        local step, ranks = plan:step(), 0
        for rank in pairs(case.ranks) do
          rank = math.tointeger(tonumber(rank))
          local mine = comparable(planned(plan, step, rank, named), recipe, params.dropless)
          local real = comparable(recorded(case, rank, named), recipe, params.dropless)
          assert.is_nil(difference(mine, real), "rank " .. rank)
          ranks = ranks + 1
        end
        assert.equal(case.world, ranks)
        assert.is_true((step:prove()))
      end)
    end
  end)
end

-- Each runtime has a Lua state of its own, in which pairs() goes another way through a table.
it("a step has one digest in all Lua states", function()
  for zero = 0, 3 do
    for _, more in ipairs { {}, { vpp = 2 }, { ep = 2, experts = 4, topk = 2 }, { ep = 2, experts = 4, topk = 2, overlap = "gradients" } } do
      local params = { pp = 2, layers = 4, hidden = 64, heads = 4, ffn = 128, vocab = 128, seq = 64, zero = zero }
      for name, value in pairs(more) do params[name] = value end
      local digest
      for _ = 1, 5 do
        local step = mg.load "megatron":plan(16, params):step()
        digest = digest or step.digest
        assert.equal(digest, step.digest)
      end
    end
  end
end)

it("a step that lacks one call differs, at that call", function()
  local case = json.decode(support.read "tests/golden/steps/megatron.json", 1, json.null).cases[3]
  local plan = mg.load "megatron":plan(case.world, params_of("megatron", case))
  local mine, real = planned(plan, plan:step(), 0, true), recorded(case, 0, true)
  table.remove(mine, 18) -- of the cross entropy
  assert.equal("call 20 is all_reduce(tp {0,1}) 8192 bytes, and was recorded as all_reduce(tp {0,1}) 256 bytes", difference(mine, real))
end)

-- Layouts that were recorded beside those of the files, in the same way: calls of one rank, equal ones counted.
describe("a layout that was recorded apart has its calls:", function()
  local function told(recipe, world, rank, params)
    local list = {}
    local plan, counted = mg.load(recipe):plan(world, params), {}
    local function walk(entries)
      for _, e in ipairs(entries) do
        if e.operation == "loop" then
          for _ = 1, e.times do walk(e.body) end
        elseif e.operation == "mark" then
          counted[#counted + 1] = e.name:sub(1, 1):upper()
        elseif e.body then
          local together = {}
          for i, one in ipairs(e.body) do together[i] = one.to and ">" .. one.to or "<" .. one.from end
          counted[#counted + 1] = table.concat(together)
        elseif e.family then
          counted[#counted + 1] = e.family .. e.bytes
        end
      end
    end
    walk(plan:step():program(rank))
    local i = 1
    while i <= #counted do
      local n = 1
      while counted[i + n] == counted[i] do n = n + 1 end
      list[#list + 1] = n > 1 and n .. "x" .. counted[i] or counted[i]
      i = i + n
    end
    return table.concat(list, " ")
  end

  it("as many microbatches as stages, of several chunks: the middle stage warms up with 5 of 6 passes", function()
    assert.equal("<0 F >2<0 F >2<0 F >2<0 F >2<0 F >2<0<2 F B >2>0<2 B >0<2 B >0<2 B >0<2 B >0<2 B >0 O mp4",
      told("megatron", 3, 1, { pp = 3, vpp = 2, layers = 6, hidden = 32, heads = 4, vocab = 64, seq = 16, global_batch = 3 }))
  end)
  it("the experts have equal capacities, the mean of their tokens, rounded up", function()
    local params = { ep = 2, experts = 6, topk = 1, layers = 1, hidden = 32, heads = 4, vocab = 64, seq = 16 }
    assert.truthy(told("megatron", 2, 0, params):find(" ep1152 ", 1, true)) -- 3 tokens for each of 6
  end)
  it("biases of experts and of the router are summed over tp", function()
    local params = { tp = 2, ep = 2, etp = 1, experts = 4, layers = 1, hidden = 32, heads = 4, vocab = 64, seq = 16 }
    local norms, after_attention, router, experts = 3 * 64, 32, 4 * 33, 2 * 32
    local sum = (" tp%d "):format(4 * (norms + after_attention + router + experts))
    assert.truthy(told("megatron", 4, 0, params):find(sum, 1, true))
  end)
  it("fp16 with experts: each optimizer checks that gradients are finite", function()
    local params = { ep = 2, experts = 2, layers = 1, hidden = 32, heads = 4, vocab = 64, seq = 16, zero = 1, weight_type = "fp16" }
    assert.truthy(told("megatron", 2, 0, params):find " 3xintra_dist_opt4 ")
    params.weight_type = "bf16"
    assert.truthy(told("megatron", 2, 0, params):find " intra_dist_opt4 ")
  end)
  it("picotron's buckets go between the sums of a layer, and one that has a last stage without layers once", function()
    local params = { tp = 2, layers = 4, hidden = 1024, heads = 8, ffn = 512, vocab = 512, seq = 16, global_batch = 2,
                     weight_type = "fp32" }
    assert.equal("F 9xtp65536 tp32768 B 10xtp65536 cp_dp24129536 11xtp65536 cp_dp24141824 O cp_dp4", told("picotron", 4, 0, params))
    params = { layers = 1, hidden = 2048, heads = 8, ffn = 512, vocab = 4096, seq = 16, global_batch = 2, weight_type = "fp32" }
    assert.truthy(told("picotron", 2, 0, params):find "B cp_dp33554432 ") -- the head is before the last norm
    params.pp, params.vocab = 2, 512
    assert.equal("world_group131072 F B cp_dp4202496 world_group131072 O cp_dp4", told("picotron", 4, 1, params))
  end)
end)

it("entries are written again only as a whole, and not too deep", function()
  local head = "local t = topology(world) t.all = grid(world, 'x', { x = fill }) 'x' return t end, step = function(s) "
  local function told(body)
    local r = mg.load("again", { text = "return recipe { build = function(world) " .. head .. body .. " end }" })
    local done, why = pcall(function() return r:plan(2):step() end)
    return done or tostring(why)
  end
  local loop = "s:loop(2, function() s:all_reduce(s.all, 4) end) "
  assert.is_true(told(loop .. "s:again(0, 2)"))
  for _, range in ipairs { "0, 1", "0, 3", "-1, 1", "2, 1" } do
    assert.truthy(told(loop .. "s:again(" .. range .. ")"):find("entries", 1, true), range)
  end
  assert.truthy(told(loop .. "s:group(function() s:again(0, 2) end)"):find("no such entries", 1, true))
  assert.truthy(told("s:loop(2, function() s:all_reduce(s.all, 4) s:again(0, 2) end)"):find("parts of entries", 1, true))
  local deep = "local function nest(n, f) if n == 0 then f() else s:loop(2, function() nest(n - 1, f) end) end end "
    .. "nest(10, function() s:all_reduce(s.all, 4) end) "
  assert.truthy(told(deep .. "nest(10, function() s:again(0, 11) end)"):find("too deep", 1, true))
end)
