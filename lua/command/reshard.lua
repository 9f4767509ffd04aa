-- SPDX-License-Identifier: MIT
--
-- moongrid reshard: write a checkpoint of safetensors files in another layout.

local host = require "host"
local line = require "command.base.line"
local mg = require "moongrid"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"

local WORLDS = 4096 -- without --world, try worlds up to this one

-- Return the plan for the smallest world that the recipe accepts with these sizes. The message that refuses a world
-- names a world that fits; any other message is an error.
local function smallest_plan(of, loaded)
  local first
  for world = 1, WORLDS do
    local done, plan = pcall(recipe.plan, of, loaded, world)
    if done then return plan end
    local status = type(plan) == "string" and mg.status(plan) or 0
    if status // 100 ~= 1 or not plan:find("a world of ", 1, true) then error(plan, 0) end
    first = first or plan
  end
  text.refuse(1, "%s; no world of up to %d ranks would do", first, WORLDS)
end

-- If the checkpoint is named by its index, refuse an output in its folder.
local function check_apart(of)
  local folder = ("/" .. of.words[1]):match "^/(.-)/?model%.safetensors%.index%.json$"
  if folder then host.apart(of.output, folder == "" and "." or folder, true) end
end

-- Return as text the recipe's rules that pair names, or nil if it has none. A recipe with rules is for checkpoints: its
-- parameters are the config in the checkpoint's folder, unless the command line has --params.
local function own_names(of, loaded)
  local names = loaded and loaded:info().names or {}
  if #names == 0 then return nil end
  local config = of.words[1] .. "/config.json"
  if not of.params and host.kind(config) then of.params = config end
  return table.concat(names, "\n")
end

-- Write the checkpoint; on a terminal show the progress.
local function write(resharding)
  local told = -1
  while resharding:step() do
    local so_far, now = resharding.progress, os.time()
    if text.stderr_is_terminal and now ~= told then
      told = now
      io.stderr:write(("\r\27[K%s of %s, %.0f %%"):format(text.bytes(so_far.done), text.bytes(so_far.bytes),
                                                         100 * so_far.done / so_far.bytes))
    end
  end
  if told >= 0 then io.stderr:write "\r\27[K" end
end

local function run(of)
  if #of.words == 0 then text.usage "reshard needs a checkpoint: an index, its folder, or a .safetensors file" end
  if not of.recipe then text.usage "reshard needs --to RECIPE, whose tensors have the new layout" end
  if not of.output then text.usage "reshard needs -o FOLDER, where the files go" end
  check_apart(of)
  local loaded = not line.is_saved(of) and recipe.load(of) or nil
  local names, why
  if of.names then names, why = host.read(of.names) end
  if why then error(why, 0) end
  local own = own_names(of, loaded)
  local plan = loaded and not of.world and smallest_plan(of, loaded) or recipe.plan(of, loaded)
  local resharding <close> = mg.checkpoint(of.words[1]):reshard(plan, of.output, {
    names = names, names_from = of.names, recipe = of.recipe, recipe_names = own, convert = of.convert,
    empty = of.empty, window = (of.window or 64) << 20,
  })
  write(resharding)
  recipe.note(plan, "")
  local all = resharding.progress
  text.printf("%d tensor%s, %s, in %d file%s of %s\n", all.tensors, text.plural(all.tensors), text.bytes(all.bytes),
              all.files, text.plural(all.files), host.shown(of.output))
end

local about = table.concat({
  "Write a checkpoint of safetensors files again, in the layout of a recipe's tensors. CHECKPOINT is a folder as",
  "Hugging Face has it or as moongrid wrote it for another layout, its model.safetensors.index.json, or a single",
  ".safetensors file. Each rank that has the first copy of a part gets a file; the index of the result says which",
  "part each file has, and can be resharded again. If the parts of an index do not have each element of a tensor",
  "exactly once, the index is refused before anything is written. The recipe llama reads the config.json of the",
  "folder; --params names another.",
  "",
  "A tensor of the checkpoint becomes the tensor of the recipe that has its name, or its name with _ for each",
  "dot and dash, and the same type and shape. Rules pair the other tensors. A rule is a line of a file",
  "(--names) or of the recipe, with names of the checkpoint on one side and of the recipe on the other side. A",
  "capture (%d+), (%a+), (%w+) or (.+) of one side is %1, %2, ... in the rest of the line:",
  "",
  "  model.layers.(%d+).mlp.down_proj.weight -> l%1_down                              # renamed",
  "  l.(%d+).q.weight + l.%1.k.weight + l.%1.v.weight -> l%1_qkv                      # concatenated, or cut",
  "  l.(%d+).q.weight + l.%1.k.weight + l.%1.v.weight -> l%1_qkv by 8                 # in 8 blocks of q, k, v",
  "  h.(%d+).mlp.c_fc.weight -> l%1_up transposed",
  "  l.(%d+).experts.(%d+).w1.weight -> l%1_w1[%2]                                    # slices of the first axis",
  "  l.(%d+).rotary_emb.inv_freq -> -                                                 # not wanted",
  "",
  "A line of two words, a pattern of the shell and a tensor of the recipe, gives each tensor that fits the",
  "pattern the layout of that tensor, and its own name stays. The first line that fits a tensor counts.",
}, "\n")

return {
  name = "reshard",
  place = 80,
  takes = "CHECKPOINT --to RECIPE [...] -o FOLDER",
  summary = "a checkpoint of safetensors files in another layout",
  usage = "moongrid reshard CHECKPOINT --to RECIPE [--world N] [NAME=VALUE ...] -o FOLDER [--names FILE]\n"
    .. "       [--convert] [--window MIB] [--empty]",
  about = about,
  example = "moongrid reshard CHECKPOINT --to examples/fsdp_tp.lua --world 8 -o FOLDER",
  recipe = true,
  recipe_from = "to",
  words = 1,
  options = {
    { "to", "RECIPE", help = "the recipe of the new layout" },
    line.world "ranks in the world; default: the smallest world that the recipe accepts",
    { "output", "FOLDER", letter = true, help = "a new folder for the files" },
    { "names", "FILE", help = "rules that pair tensors of the checkpoint with tensors of the recipe" },
    { "convert", help = "convert tensors whose type differs in the recipe, among f64, f32, f16 and bf16" },
    { "window", "MIB", line.number, help = "the most memory for elements; default: 64" },
    { "empty", help = "allow cuts that leave ranks without any element of a tensor, as of 4 heads over 8 ranks; "
                      .. "cuts by bounds or owners may do so without it" },
  },
  run = run,
}
