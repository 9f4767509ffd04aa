-- SPDX-License-Identifier: MIT
--
-- Models as their papers describe them (examples/published): parameters and flops of a token; stages with different
-- layers; and the bubble of each schedule, compared with the formula of its paper.

local json = require "dkjson"
local mg = require "moongrid"
local support = dofile "tests/lua/support.lua"
local run = support.run

-- What each paper says, with the table or section. `of` tells what its flops are: "weights" leaves out attention among
-- tokens, as 6 x parameters does; "all" has it.
local published = {
  { "gpt3", 768, parameters = 174.6e9, -- arXiv 2104.04473, table 2
    flops = 3.14e23 / 300e9, of = "weights" }, -- arXiv 2005.14165, table D.1: of 300 billion tokens
  { "bloom", 384, parameters = 176247271424 }, -- the model card at huggingface.co/bigscience/bloom
  { "llama3_405b", 16384, parameters = 405e9, -- arXiv 2407.21783, table 3
    flops = 3.8e25 / 15.6e12, of = "weights" }, -- section 3.2: of 15.6 T tokens
  { "deepseek_v3", 2048, parameters = 671e9, -- arXiv 2412.19437, section 4.2
    flops = 250e9, of = "all" }, -- arXiv 2505.09343, table 2
  { "qwen3_235b", 256, parameters = 235e9, active = 22e9 }, -- arXiv 2505.09388, section 2
  { "mt_nlg_530b", 2240, parameters = 530e9 }, -- arXiv 2201.11990, title
  { "megatron_1t", 3072, parameters = 1008e9 }, -- arXiv 2104.04473, table 1
  { "nemotron4_340b", 6144, parameters = 331.6e9 + 9.4e9 }, -- arXiv 2406.11704, table 1
  { "falcon_180b", 4096, parameters = 180e9 }, -- arXiv 2311.16867, title
  { "mixtral_8x7b", 16, parameters = 46.7e9, active = 12.9e9 }, -- mistral.ai/news/mixtral-of-experts
}

local function within(share, paper, mine, what)
  assert.is_true(math.abs(mine / paper - 1) <= share, ("%s: %.4g, and the paper has %.4g"):format(what, mine, paper))
end

describe("a published model", function()
  for _, paper in ipairs(published) do
    local name, world = paper[1], paper[2]
    it(name .. " has its paper's parameters and flops within 1%, and is proved", function()
      local line = ("examples/published/%s.lua --world %d"):format(name, world)
      local size = json.decode((run("build/moongrid ask " .. line .. " --rank 0 model_size")))
      within(0.01, paper.parameters, size.parameters, "parameters")
      if paper.active then within(0.01, paper.active, size.active, "parameters of a token") end
      if paper.flops then
        within(0.01, paper.flops, size.flops - (paper.of == "weights" and size.attention or 0), "flops of a token")
      end
      local out, err, code = run("build/moongrid step " .. line)
      assert.same({ "", 0 }, { err, code })
      assert.truthy(out:find "\nverdict proved ")
    end)
  end

  it("of DeepSeek's predicts one more token with the parameters that the paper counts apart", function()
    local function size(words)
      return json.decode((run("build/moongrid ask examples/published/deepseek_v3.lua --world 2048 " .. words .. " --rank 0 model_size")))
    end
    local main, both, ends = size "", size "mtp_num_layers=1", 2 * 129280 * 7168 -- copies of the embedding and of the head
    within(0.01, 11.5e9, both.parameters - main.parameters, "parameters of the module") -- README_WEIGHTS.md of the model
    within(0.01, 685e9, both.parameters + ends, "parameters in all") -- its README.md: 671 and 14
    local products = 6 * (both.active - main.active + 129280 * 7168) -- each weight but the embedding
    within(0.01, products + both.attention - main.attention, both.flops - main.flops, "flops of a token")
  end)

  it("of dense layers has the flops of Megatron's formula", function()
    for _, m in ipairs { { "gpt3", 96, 12288, 51200 }, { "bloom", 70, 14336, 250880 } } do
      local name, l, h, vocab = table.unpack(m)
      local size = json.decode((run("build/moongrid ask examples/published/" .. name .. ".lua --world 96 causal=false --rank 0 model_size")))
      -- arXiv 2104.04473, equation 3, without the forward pass that is computed again: 72 for 96, 12 for 16
      within(1e-9, 72 * l * h ^ 2 * (1 + 2048 / (6 * h) + vocab / (12 * l * h)), size.flops, name)
    end
  end)

  -- Return the bytes of weights, and the flops of a step, of all ranks.
  local function total(model, layout)
    local params = {}
    for _, part in ipairs { model, layout } do
      for key, value in pairs(part) do params[key] = value end
    end
    local world = (params.pp or 1) * (params.tp or 1)
    local step, weights, flops = mg.load "megatron":plan(world, params):step(), 0, 0
    local function walk(entries, times)
      for _, e in ipairs(entries) do
        if e.body then walk(e.body, times * (e.times or 1)) end
        if e.operation == "alloc" and e.name == "weights" then weights = weights + e.bytes end
        flops = flops + times * (e.flops or 0)
      end
    end
    for rank = 0, world - 1 do walk(step:program(rank), 1) end
    assert.is_true(weights > 0 and flops > 0)
    return weights, flops
  end

  local experts = { layers = 8, hidden = 256, heads = 8, head_dim = 64, kv_heads = 2, vocab = 1024, seq = 256, ffn = 512,
                    gated = true, experts = 4, moe_ffn = 128, shared_ffn = 128, dense_layers = 3, tied = false, bias = false,
                    norm = "rms", positions = "rope", global_batch = 8 }
  local latent = { layers = 8, hidden = 256, heads = 8, head_dim = 32, kv_lora_rank = 64, q_lora_rank = 96, v_head_dim = 48,
                   tied = false, vocab = 1024, seq = 256, global_batch = 8 }

  it("has the same weights and flops on any stages", function()
    for model, layouts in pairs {
      [experts] = { { pp = 2, stage_layers = { 3, 5 } }, { pp = 3, embedding_in_split = true }, { pp = 3, loss_in_split = true },
                    { pp = 4, stage_layers = { 0, 4, 3, 1 } }, { pp = 2, interleave = 2, stage_layers = { 1, 2, 2, 3 } },
                    { pp = 2, interleave = 4 } },
      [latent] = { { pp = 2, first_stage_layers = 3, last_stage_layers = 5 }, { pp = 5, embedding_in_split = true, loss_in_split = true } },
    } do
      local one = { total(model, {}) }
      for _, layout in ipairs(layouts) do assert.same(one, { total(model, layout) }, json.encode(layout)) end
    end
  end)

  it("of latent attention has the same flops on any tp, but for what is narrow and each rank makes", function()
    local function flops(layout) return select(2, total(latent, layout)) end
    local narrow = 3 * 2 * 8 * 256 * 8 * 256 * (96 + 64 + 64) -- of 8 x 256 tokens, 8 layers
    assert.equal(flops {}, flops { tp = 4, sequence_parallel = true })
    assert.equal(flops {} + 3 * narrow, flops { tp = 4 })
    assert.equal(flops {}, flops { tp = 4, transformer_impl = "local" })
  end)

  it("that predicts more tokens has one more embedding with stages, and the same flops", function()
    local model = { mtp_num_layers = 2 }
    for key, value in pairs(experts) do model[key] = value end
    local weights, flops = total(model, {})
    for _, layout in ipairs { { pp = 2 }, { pp = 2, stage_layers = { 8, 0 } }, { pp = 2, interleave = 2 }, { pp = 4, schedule = "zero_bubble" } } do
      assert.same({ weights + 2 * 1024 * 256, flops }, { total(model, layout) }, json.encode(layout))
    end
  end)

  it("has what its parameters say", function()
    local function flops(more) return select(2, total(experts, more)) end
    local tokens, matrices = 8 * 256, 256 * 64 * (8 + 2 * 2 + 8) -- of queries, keys, values and the projection
    local core, head = 3 * 8 * tokens * 256 * 4 * 512, 3 * 2 * tokens * 256 * 1024
    local products = 3 * 2 * tokens * (8 * matrices + 3 * 256 * (3 * 512 + 5 * (2 * 128 + 128)))
    assert.equal(products + core / 2 + head, flops {})
    assert.equal(products + core + head, flops { causal = false })
    assert.equal(products / 2 + core / 2 + head, flops { fp8 = "hybrid" })
    assert.equal(3 * 2 * tokens * 256 * 1024, flops { vocab = 2048 } - flops {})
    -- logits in 32 bits, kept by the last stage
    local function memory(more) return json.decode((run("build/moongrid step megatron --world 1 layers=2 hidden=256 heads=8 seq=256 " .. more
      .. " --json"))).memory.by.activations end
    assert.equal(4 * 256 * 1024, memory "vocab=2048" - memory "vocab=1024")
  end)

  it("has stages that are told in several ways", function()
    local function digest(words)
      local out, err = run("build/moongrid step megatron --world 16 layers=14 pp=4 " .. words .. " --json")
      assert.equal("", err)
      return json.decode(out).digest
    end
    local by_list = digest "stage_layers=3,4,4,3"
    assert.equal(by_list, digest "first_stage_layers=3 last_stage_layers=3")
    assert.equal(by_list, digest "embedding_in_split=true loss_in_split=true")
    assert.equal(by_list, digest "account_for_embedding_in_pipeline_split=true account_for_loss_in_pipeline_split=true")
    assert.are_not.equal(by_list, digest "stage_layers=4,3,3,4")
    assert.equal(digest "vpp=2 stage_layers=1,2,2,2,2,2,2,1", digest "vpp=2 embedding_in_split=true loss_in_split=true")
  end)
end)

-- The step in units of one forward pass, which each other pass takes, too: one rank with one microbatch takes 3, of which 2
-- are the backward pass. The vocabulary has one word, so the head takes no time.
describe("the bubble of", function()
  local megatron = mg.load "megatron"
  local function seconds(p, m, v, schedule)
    local plan = megatron:plan(p, { pp = p, layers = p * (v or 1), hidden = 4096, heads = 32, seq = 128, vocab = 1,
                                    global_batch = m, schedule = schedule, interleave = v })
    return plan:step():price {
      machine = "gpu:*[1000000GB/s]", costs = { call = 0, flops = 1e12, memory = 1e30, latency = { gpu = 0 } },
    }
  end
  local unit = seconds(1, 1).seconds / 3
  local function compare(p, m, v, schedule, bubble)
    local all, told = seconds(p, m, v, schedule), ("p %d, m %d, v %d"):format(p, m, v or 1)
    assert.near(3 * m * (v or 1), all.compute / unit, 0.05, told)
    assert.near(bubble, all.seconds / unit - 3 * m * (v or 1), 0.05, told)
    return 1
  end

  for schedule, bubble in pairs {
    gpipe = function(p) return 3 * (p - 1) end, -- Huang et al. 2019, arXiv 1811.06965, section 2.3
    ["1f1b"] = function(p) return 3 * (p - 1) end, -- Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1
    zero_bubble = function(p) return p - 1 end, -- ZB-H1: Qi et al. 2024, arXiv 2401.10241, table 2, for equal passes, m >= p
  } do
    it(schedule .. " is that of its paper", function()
      local n = 0
      for _, p in ipairs { 2, 3, 4, 6, 8, 12, 16 } do
        for _, m in ipairs { p, p + 1, 2 * p - 1, 2 * p, 2 * p + 1, 3 * p, 5 * p, 8 * p, 8 * p + 3 } do
          n = n + compare(p, m, nil, schedule, bubble(p))
        end
        if schedule ~= "zero_bubble" then n = n + compare(p, 1, nil, schedule, bubble(p)) end
      end
      assert.is_true(n >= 60)
    end)
  end

  it("the interleaved schedule is that of its paper", function() -- arXiv 2104.04473, section 2.2.2: (p - 1) / v rounds
    local n = 0
    for _, p in ipairs { 2, 3, 4, 8 } do
      for _, rounds in ipairs { 1, 2, 3, 5 } do
        for _, v in ipairs { 2, 3, 4, 6 } do n = n + compare(p, rounds * p, v, nil, 3 * (p - 1)) end
      end
    end
    assert.equal(64, n)
  end)

  it("zero_bubble with few microbatches leaves out no gradient", function()
    for p = 2, 9 do
      for m = 1, p - 1 do assert.near(3 * m, seconds(p, m, nil, "zero_bubble").compute / unit, 0.01) end
    end
  end)
end)
