-- SPDX-License-Identifier: MIT
--
-- moongrid recipes: list the bundled recipes, or the parameters of one recipe.

local host = require "host"
local json = require "command.base.json"
local line = require "command.base.line"
local mg = require "moongrid"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"

-- Return the families with default parameters in the smallest power of two of ranks that the recipe accepts, or nil.
local function default_families(loaded)
  for power = 0, 12 do
    local done, plan = pcall(loaded.plan, loaded, 1 << power)
    if done then return plan.families end
  end
end

-- Return the comment at the start of a bundled recipe as a list of paragraphs: the system, its source, what differs.
local function head_of(name)
  local lines = {}
  for row in (mg.recipes(name) or ""):gmatch "([^\n]*)\n" do
    local words = row:match "^%-%- ?(.*)$"
    if not words then break end
    local starts = #lines == 0 or words == "" or words:find "^ " or words:find "^[%u][%l ]+: "
                   or lines[#lines]:find "^ " or lines[#lines] == ""
    if starts then lines[#lines + 1] = words else lines[#lines] = lines[#lines] .. " " .. words end
  end
  return lines
end

local function describe(of)
  local loaded = recipe.load(of)
  local info, head = loaded:info(), head_of(of.recipe)
  if of.json then
    info.default_families, info.about = default_families(loaded), #head > 0 and table.concat(head, "\n") or nil
    return json.put(info)
  end
  local first, rest = tostring(info):match "^(.-\n)(.*)$"
  text.put_lines(first)
  for _, paragraph in ipairs(head) do text.put_lines(paragraph) end
  text.put_lines(rest .. "\n")
  local families = default_families(loaded)
  if families then text.put_lines("\nfamilies at the defaults\n  " .. table.concat(families, " ")) end
end

-- Print the text of a recipe. On a terminal escape the characters that would control the terminal.
local function put_source(source)
  text.put((text.is_terminal and source:gsub("[^\n\t]+", host.shown) or source))
end

-- Print the text of a file, or of a bundled recipe and its parts, each part after a line that names it.
local function show_source(of)
  local source, parts = mg.recipes(of.recipe)
  if not source then
    recipe.load(of) -- raises the error of the name or the file
    return put_source(line.from_stdin(of) and line.stdin() or host.read(of.recipe) or "")
  end
  text.put(source)
  for _, part in ipairs(parts) do text.put("\n-- ", part, "\n", (mg.recipes(part))) end
end

-- Print a line for each family that a getter returns, "get_x(with_cp=true) -> dp_cp". These lines are not folded, for
-- grep.
local function show_getters(of)
  local info = recipe.load(of):info()
  if #info.getters == 0 then
    text.refuse(1, "recipe '%s' models no getters of groups; its families have only their names", of.recipe)
  end
  if of.json then return json.put(info.getters) end
  for _, getter in ipairs(info.getters) do
    for _, one in ipairs(getter.gives) do
      text.printf("%s(%s) -> %s\n", getter.name, one.arguments:gsub(" ", ", "), one.family)
    end
    if #getter.gives == 0 then text.printf("%s: needs arguments that have no default\n", getter.name) end
  end
  if #info.families > 0 then text.put "\nfamilies that exist with\n" end
  for _, family in ipairs(info.families) do text.put_lines(("  %-36s %s\n"):format(family.name, family.with)) end
end

-- The use of the bundled recipes; all others are for training.
local of_use = {
  sglang = "inference", sglang_diffusion = "inference", vllm = "inference", xdit = "inference",
  deepspeed_topology = "meshes", jax_mesh = "meshes",
}

local function list_all(of)
  local all = {}
  for i, name in ipairs(mg.recipes()) do
    all[i] = mg.load(name):info()
    all[i].name, all[i].use = name, of_use[name] or "training"
  end
  if of.json then return json.put(all) end
  for _, use in ipairs { "training", "inference", "meshes" } do
    text.put(use == "training" and "" or "\n", "for ", use, "\n")
    for _, one in ipairs(all) do
      if one.use == use then text.put_lines(("  %-22s %s"):format(one.name, one.doc)) end
    end
  end
end

local function run(of)
  if #of.args > 0 then text.usage "recipes takes one recipe and no NAME=VALUE" end
  if (of.source or of.getters) and not of.recipe then
    text.usage("--%s needs a recipe: a file, or one that 'moongrid recipes' lists", of.source and "source" or "getters")
  end
  if of.source and (of.getters or of.json) then text.usage "--source takes no --getters and no --json" end
  if of.source then return show_source(of) end
  if of.getters then return show_getters(of) end
  if of.recipe then return describe(of) end
  list_all(of)
end

return {
  name = "recipes",
  place = 180,
  takes = "[RECIPE]",
  summary = "the bundled recipes, and their parameters",
  usage = "moongrid recipes [RECIPE] [--json | --source | --getters]",
  about = "Without RECIPE: the bundled recipes by what they are for, a line each. With RECIPE (bundled, or a file):\n"
    .. "its parameters and settings with their defaults and other names, its policies and which ranks agree on them,\n"
    .. "its queries, and its families.",
  example = "moongrid recipes megatron --getters",
  recipe = true,
  bare = true,
  options = {
    { "json", help = "one JSON object, or a list of all recipes" },
    { "source", help = "the text of the recipe, and of the other files of a bundled one" },
    { "getters", help = "the system's own getters of groups, with the family that each returns for its arguments; and "
                        .. "the parameters with which some families exist" },
  },
  run = run,
}
