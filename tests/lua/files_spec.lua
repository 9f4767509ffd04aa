-- SPDX-License-Identifier: MIT
--
-- Files of values: the content of a parameter of kind `file`, JSON or YAML, and the names of a file of parameters
-- that go to one of them.

local recipes = assert(loadfile("tests/lua/recipes.lua", "t", _ENV))() -- with busted's names
local write, recipe, plain = recipes.write, recipes.recipe, recipes.plain

local text = [[return recipe {
  params = { f = param.file(nil, "values", "values"), number_of_ranks = 1 }, rest = "f",
  build = function(world) return topology(world) end,
  queries = { f = function(_, _, p) return p.f end, n = function(_, _, p) return p.number_of_ranks end },
}]]

-- What a recipe gets of a file with this text.
local function content(name, of_file)
  local r = recipe(text)
  return r:ask(r:plan(2, { f = write(name, of_file) }):dry(0), "f")
end

local function refusal(name, of_file)
  local ok, said = pcall(content, name, of_file)
  assert.is_false(ok)
  return plain(said)
end

describe("a parameter from a file", function()
  it("has what is in JSON or YAML", function()
    local want = { tp = { max_ctas = 8, fast = true, name = "IB" }, list = { 1, -2, 0.5 } }
    assert.are.same(want, content("a.json", '{"tp": {"max_ctas": 8, "fast": true, "name": "IB"}, "list": [1, -2, 0.5]}'))
    assert.are.same(want, content("a.yaml", "tp: # groups\n  max_ctas: 8\n  fast: true\n  name: IB\nlist: [1, -2, 0.5]\n"))
    assert.are.same(want, content("a", "tp: {max_ctas: 8, fast: true, name: 'IB'}\nlist:\n- 1\n- -2\n- 0.5\n"))
  end)

  it("is in YAML what a scalar looks like, and text in quotes", function()
    assert.are.same({ a = 10, b = -3, c = 16, d = 1.5, e = 1e3, f = "1", g = "true", h = "x y", i = false, k = "1.2.3",
                      l = "0x", m = "yes", n = "-", o = "9223372036854775808x" },
      content("a.yaml", "a: 10\nb: -3\nc: 0x10\nd: 1.5\ne: 1e3\nf: '1'\ng: \"true\"\nh: x y\ni: False\nj: ~\nk: 1.2.3\nl: 0x\n"
        .. "m: yes\nn: '-'\no: 9223372036854775808x\n"))
  end)

  it("is empty where the file is", function() -- libyaml ends a process that gives it NULL for no bytes
    assert.are.same({}, content("a.yaml", ""))
  end)

  it("takes anchors and aliases of YAML", function()
    assert.are.same({ tp = { max_ctas = 8 }, dp = { max_ctas = 8 } }, content("a.yaml", "tp: &few {max_ctas: 8}\ndp: *few\n"))
    assert.are.same({ a = { "b", "%TAG", { "b" } }, b = 1 }, content("a.yaml", "a: &a ['b', '%TAG', &c [&d b]]\n&e b: 1\n"))
    assert.are.same({ a = "b", b = "a" }, content("a.yaml", "&a a: &b b\nb: *a\n"))
  end)

  it("is the content for the plan: equal files at other places are equal, others are not", function()
    local r = recipe(text)
    local function digest(name, of_file) return r:plan(2, { f = write(name, of_file) }).digest end
    assert.are.equal(digest("a.yaml", "a: 1"), digest("b.json", '{"a": 1}'))
    assert.are.equal(digest("a.yaml", "a: 1"), r:plan(2, { f = { a = 1 } }).digest)
    assert.are.equal(digest("a.yaml", "a: 1"), r:plan(2, { f = '{"a": 1}' }).digest)
    assert.are_not.equal(digest("a.yaml", "a: 1"), digest("a.yaml", "a: 2"))
  end)

  it("is named by who plans alone: a recipe sees no file", function()
    write("a.yaml", "a: 1")
    write("inner.lua", text)
    local outer = recipe [[return recipe { params = { path = "" }, build = function(world, p)
      return recipe("./inner.lua").build(world, { f = p.path }) end }]]
    local ok, said = pcall(outer.plan, outer, 2, { path = recipes.folder .. "/a.yaml" })
    assert.is_false(ok)
    assert.is_truthy(said:find("inner.lua:2: parameter 'f' is a table with names as keys, or the path of a JSON or YAML file with such a table, not '", 1, true), said)
  end)

  local deep = ("["):rep(40) .. ("]"):rep(40)
  local laughs = { "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" }
  for i = 1, 9 do laughs[i + 1] = ("a%d: &a%d [%s]\n"):format(i, i, ("*a" .. i - 1 .. ", "):rep(9) .. "*a" .. i - 1) end
  for what, case in pairs {
    ["broken YAML"] = { "a.yaml", "a: 1\nb: {c: 2\n", "a.yaml:3: did not find expected ',' or '}'" },
    ["a tab"] = { "a.yaml", "a:\n\tb: 1\n", "a.yaml:2: found character that cannot start any token" },
    ["a key twice"] = { "a.yaml", "a: 1\nb: 2\na: 3\n", "a.yaml:3: the table has this key already" },
    ["a text that C would cut"] = { "a.yaml", 'a: "b\\0c"\n', "a.yaml:1: a text with a zero byte" },
    ["a key that C would cut"] = { "a.yaml", '"a\\0b": 1\n', "a.yaml:1: a key is not text" },
    ["a key that is not text"] = { "a.yaml", "? [1, 2]\n: 3\n", "a.yaml:1: a key is not text" },
    ["a list"] = { "a.yaml", "- 1\n", "a.yaml:1: lines of a name and a value are expected, as tp: 2" },
    ["deep nesting"] = { "a.yaml", "a: " .. deep, "a.yaml:1: nested too deep" },
    ["a file that unfolds without end"] = { "a.yaml", table.concat(laughs), "a.yaml:1: too many values" },
    ["texts that unfold"] = { "a.yaml", "a: &a " .. ("x"):rep(1000000) .. "\nb: [" .. ("*a, "):rep(4) .. "]\n",
                              "a.yaml:1: too many values" },
    ["an alias of itself"] = { "a.yaml", "a: &a\n  b: *a\n", "a.yaml:2: found undefined alias" },
    ["an anchor twice"] = { "a.yaml", "a: &a 1\n&a b: 2\n", "a.yaml:2: found duplicate anchor" },
    ["names of tags"] = { "a.yaml", "# x\n%TAG ! tag:x,2000:\n---\na: 1\n", "a.yaml:2: names of tags (%TAG) are not read" },
    ["a number beyond all"] = { "a.yaml", "a: 1\nb: -1e999\n", "a.yaml:2: a number that is too large" },
    ["UTF-16"] = { "a.yaml", "\xfe\xff\0a\0:", "a.yaml:1: invalid leading UTF-8 octet" },
    ["an unknown alias"] = { "a.yaml", "a: *b\n", "a.yaml:1: found undefined alias" },
    ["bytes that are not text"] = { "a.yaml", "a: \xff\n", "a.yaml:1: invalid leading UTF-8 octet" },
    ["broken JSON"] = { "a.json", '{"a": 1,\n', "a.json:2: string or '}' expected near end of file" },
    ["JSON that is not an object"] = { "a.json", "7", "a.json:1: a JSON object is expected" },
  } do
    it("refuses " .. what, function()
      local said = refusal(case[1], case[2])
      assert.are.equal("r.lua:2: parameter 'f': ", said:sub(1, 24))
      assert.are.equal(case[3], (said:sub(25):gsub("^(a%.%w+:)%d+(: too many)", "%11%2")))
    end)
  end
end)

describe("a file of parameters", function()
  local support = dofile "tests/lua/support.lua"

  local function plan(name, of_file, args)
    local path = write("r.lua", text)
    local out, err, code = support.run(("build/moongrid plan %s --world 2 --text --params %s %s"):format(path,
      write(name, of_file), args or ""))
    return code == 0 and out:match "param f = ([^\n]*)" or out:match "param number[^\n]*" or plain(err), out
  end

  it("gives names that no parameter has to the one for them", function()
    assert.are.equal('{"bf16":{"enabled":true},"lr":0.5}', (plan("a.yaml", "number_of_ranks: 3\nbf16: {enabled: true}\nlr: 0.5\n")))
    assert.is_truthy(select(2, plan("a.json", '{"number_of_ranks": 3, "lr": 1}')):find("param number_of_ranks = 3\n", 1, true))
    assert.are.equal("param number_of_ranks = 4", (plan("a.yml", "number_of_ranks: 3\n", "number_of_ranks=4")))
  end)

  it("gives way to an argument by any name of a parameter", function()
    assert.are.equal('{"a":2}', (plan("a.yaml", "f: {a: 1}\n", [['values={"a":2}']])))
  end)

  it("refuses a name that looks like a slip, and values given twice", function()
    assert.are.equal("moongrid: r.lua:1: unknown parameter 'number_of_rank'; nearest is 'number_of_ranks' (f, number_of_ranks)\n",
      (plan("a.yaml", "number_of_rank: 3\n")))
    assert.are.equal("moongrid: r.lua:1: parameter 'f' is given, and the file has names for it: 'lr'\n",
      (plan("a.yaml", "lr: 3\n", "f={}")))
  end)

  it("keeps refusing unknown names on the command line", function()
    assert.are.equal("moongrid: r.lua:1: unknown parameter 'lr'; known: f, values, number_of_ranks\n",
      (plan("a.yaml", "# nothing\n", "lr=3")))
  end)
end)

describe("rest", function()
  recipes.refuses {
    { "a parameter that there is not", "return recipe { base = 'picotron', rest = 'tp_siz' }",
      "r.lua:1: rest: unknown parameter 'tp_siz'; nearest is 'tp_size' (tp_size, tp, cp_size, cp, pp_size, pp, dp_size, dp, "
        .. "layers, num_layers, hidden, hidden_size, heads, num_attention_heads, kv_heads, num_query_groups, ffn, "
        .. "ffn_hidden_size, vocab, padded_vocab_size, seq, seq_length, causal, micro_batch, micro_batch_size, global_batch, "
        .. "global_batch_size, weight_type, schedule)" },
    { "what is not a name", "return recipe { base = 'picotron', rest = 5 }", "r.lua:1: field 'rest' of a recipe is a string, not a number" },
  }
end)

-- In the shape of DeepSpeed's public examples: stage 2 with a scheduler, stage 3 with offloading, pipelines with AutoTP.
local configs = {
  { "stage 2", 1, [[{ "train_batch_size": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": 1.0,
    "fp16": { "enabled": "auto", "loss_scale": 0, "initial_scale_power": 16, "hysteresis": 2 },
    "optimizer": { "type": "AdamW", "params": { "lr": "auto", "betas": "auto", "eps": 1e-8 } },
    "scheduler": { "type": "WarmupLR", "params": { "warmup_min_lr": 0, "warmup_num_steps": 1000 } },
    "zero_optimization": { "stage": 2, "overlap_comm": true, "reduce_bucket_size": 5e8, "contiguous_gradients": true },
    "zero_allow_untested_optimizer": true, "zero_force_ds_cpu_optimizer": false, "steps_per_print": 2000 }]] },
  { "stage 3", 1, [[{ "train_micro_batch_size_per_gpu": 4, "bf16": { "enabled": true }, "wall_clock_breakdown": false,
    "zero_optimization": { "stage": 3, "offload_optimizer": { "device": "cpu", "pin_memory": true }, "zero_hpz_partition_size": 8,
      "stage3_prefetch_bucket_size": "auto", "sub_group_size": 1000000000 },
    "seq_parallel_communication_data_type": "fp32", "communication_data_type": "bf16", "data_types": { "grad_accum_dtype": "fp32" },
    "activation_checkpointing": { "partition_activations": true }, "comms_logger": { "enabled": true, "prof_ops": [] } }]] },
  { "pipelines and AutoTP", 2, [[{ "train_batch_size": 256, "train_micro_batch_size_per_gpu": 8, "steps_per_print": 10,
    "pipeline": { "seed_layers": false, "activation_checkpoint_interval": 0, "pipe_partitioned": true },
    "tensor_parallel": { "autotp_size": 2 }, "sparse_attention": { "mode": "fixed", "block": 16 },
    "scheduler": { "type": "OneCycle", "params": { "cycle_min_lr": 0.00001 } }, "zero_optimization": { "stage": 1 },
    "curriculum_learning": { "enabled": true, "schedule_type": "fixed_linear" }, "flops_profiler": { "profile_step": 1 },
    "compile": { "deepcompile": false }, "checkpoint": { "tag_validation": "WARN" }, "zero_quantized_weights": 8 }]] },
}

describe("a DeepSpeed config", function()
  local run = dofile("tests/lua/support.lua").run
  for _, config in ipairs(configs) do
    it("of " .. config[1] .. " as a file of parameters is what it is as config", function()
      local path = write("ds_config.json", config[3])
      local out, err, code = run("build/moongrid plan deepspeed --world 16 --params " .. path)
      assert.are.same({ "", 0 }, { err, code })
      assert.are.equal(run("build/moongrid plan deepspeed --world 16 config=" .. path), out)
      assert.is_truthy(out:find(("tp %d x"):format(config[2]), 1, true), out)
    end)
  end

  it("is refused for what looks like a parameter of the recipe and has such a value", function()
    for given, message in pairs {
      ['{ "tensor_parallel_size": 2 }'] = "unknown parameter 'tensor_parallel_size'; nearest is 'tensor_model_parallel_size'",
      ['{ "pipeline": 4 }'] = "unknown parameter 'pipeline'", ['{ "tensor_parallel": 2 }'] = "unknown parameter 'tensor_parallel'",
      ['{ "tensor_parallel": "2" }'] = "config: tensor_parallel is 2, not a table",
    } do
      local _, err, code = run("build/moongrid plan deepspeed --world 16 --params " .. write("ds_config.json", given))
      assert.are.equal(1, code)
      assert.is_truthy(err:find(message, 1, true), err)
    end
  end)
end)
