-- SPDX-License-Identifier: MIT
--
-- playground.lua MODULE.js MODULE.wasm.gz: print the page of the playground, with the module and the examples in it.
-- Its mark "@START@" stays; draw --live replaces it by the recipe to show first. Run in the project's root by make.

local pages = dofile "scripts/make/pages.lua"
local words = dofile "lua/pictures/words.lua"

local function whole(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- Examples: { group, title, name, text, world, params } -------------------------------------------------------------

local examples = {}

local function example(group, path, title, world, params, text)
  local list = {}
  for word in params:gmatch "%S+" do list[#list + 1] = word end
  examples[#examples + 1] = { group, title, path:match "[^/]+$", text or whole(path), world, list }
end

-- The recipe in README.md.
local readme = whole "README.md":match "```lua\n(return recipe.-)```"
example("First steps", "layout.lua", "Three kinds of parallelism", 16, "", readme)
for _, row in ipairs {
  { "moe.lua", "A mixture of experts", 16, "tp=2 pp=2" }, { "encoder_decoder.lua", "An encoder and a decoder", 12, "" },
  { "pools.lua", "Images, pools, groups of bands", 16, "" }, { "prefill_decode.lua", "Prefill and decode", 16, "" },
  { "fsdp_tp.lua", "FSDP and tensor parallelism", 16, "" },
} do
  example("First steps", "examples/" .. row[1], row[2], row[3], row[4])
end

-- The recipes of the cookbook, with the parameters that its page draws.
local title
for line in io.lines "examples/cookbook/README.md" do
  title = line:match "^## (.*)$" or title
  local file, world, params = line:match "^moongrid draw (examples/cookbook/%S+) %-%-world (%d+)(.*)$"
  if file then example("Cookbook", file, title, tonumber(world), params) end
end

-- Published models: the title is the first line.
for _, row in ipairs {
  { "gpt3", 768 }, { "megatron_1t", 3072 }, { "mt_nlg_530b", 2240 }, { "bloom", 384 }, { "falcon_180b", 4096 },
  { "mixtral_8x7b", 16 }, { "llama3_405b", 16384 }, { "nemotron4_340b", 6144 }, { "deepseek_v3", 2048 },
  { "qwen3_235b", 256 },
} do
  local path = "examples/published/" .. row[1] .. ".lua"
  example("Published models", path, whole(path):match "^%-%- ([^:]+):", row[2], "")
end

-- For each bundled recipe, a recipe that has it as its base.
for _, row in ipairs {
  { "megatron", 64, "tp = 4, pp = 4" }, { "megatron_bridge", 32, "tp = 2, pp = 2, ep = 4" },
  { "megatron_deepspeed", 16, "tp = 2, pp = 2" }, { "mindspeed", 16, "tp = 2, cp = 2" },
  { "deepspeed", 16, "tp = 2, pp = 2" },
  { "deepspeed_moe", 16, "ep = { 4 }" },
  { "accelerate", 16, "dp_replicate_size = 2, dp_shard_size = 4, tp_size = 2" },
  { "torchtitan", 32, "dp_replicate = 2, dp_shard = 4, tp = 4" }, { "nanotron", 16, "tp = 2, pp = 2" },
  { "picotron", 16, "tp = 2, pp = 2" }, { "optimum_habana", 16, "tp = 2, pp = 2" },
  { "paddle_fleet", 16, "dp_degree = 2, mp_degree = 2, pp_degree = 2, sharding_degree = 2" },
  { "ms_swift", 16, "sequence_parallel_size = 8, num_attention_heads = 4, padding_free = true" },
  { "verl", 16, "fsdp_size = 8, ulysses_sequence_parallel_size = 2" }, { "vllm", 16, "tp = 4, pp = 2" },
  { "sglang", 16, "tp_size = 8, pp_size = 2" }, { "xdit", 16, "cfg = 2, ulysses = 2, ring = 2, pp = 2" },
  { "sglang_diffusion", 16, "cfg = 2, ulysses = 2, ring = 2, tp = 2" },
  { "deepspeed_topology", 16, "num_pp = 2, num_mp = 2, num_dp = 4" },
  { "jax_mesh", 16, 'mesh_shape = { 4, 4 }, axis_names = param.names({ "data", "model" })' },
} do
  local text = ('return recipe {\n  base = "%s",\n  params = { %s },\n}\n'):format(row[1], row[3])
  example("Bundled recipes", row[1], row[1], row[2], "", text)
end

-- The page ------------------------------------------------------------------------------------------------------------

-- Return a text that is safe in a <script>.
local function inside(text) return (text:gsub("</(%a)", "<\\/%1")) end

local function json(value)
  if type(value) == "number" then return tostring(value) end
  if type(value) == "string" then return words.quoted(value) end
  local list = {}
  for i, one in ipairs(value) do list[i] = json(one) end
  return "[" .. table.concat(list, ",") .. "]"
end

local viewer = pages.page "page.html":gsub("@TITLE@", "moongrid"):gsub("@DATA@", '{"recipe":"","axes":[],"frames":[]}')
local parts = { EXAMPLES = json(examples), VIEWER = inside(viewer), MODULE = inside(whole(arg[1])),
                WASM = pages.base64(whole(arg[2])) }
io.write((pages.page "playground.html":gsub("@(%u+)@", parts)), "\n")
