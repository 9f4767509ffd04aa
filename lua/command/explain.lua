-- SPDX-License-Identifier: MIT
--
-- moongrid explain: describe how each family was made.

local explain = require "pictures.explain"
local host = require "host"
local line = require "command.base.line"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"

local function run(of)
  line.needs(of, of.world)
  local loaded = not line.is_saved(of) and recipe.load(of, { lines = true }) or nil
  local plan, list = recipe.plan(of, loaded), of.family or of.words[1]
  local function read(file)
    if file == "stdin" and line.from_stdin(of) then return line.stdin() end
    return (host.read(file))
  end
  explain(plan, { families = list and recipe.families(plan, list), columns = text.columns, read = read, writer = text,
                  ranks = recipe.node_size(of, plan) })
end

return {
  name = "explain",
  place = 130,
  takes = "RECIPE --world N [...] [FAMILY]",
  summary = "how each family was made",
  usage = "moongrid explain RECIPE --world N [NAME=VALUE ...] [FAMILY | --family F,G]",
  about = "Describe how each family, or one of them, was made: its rule in words, the lines of the recipe that made\n"
    .. "it, the families with which it shares communicators and why, and what its communicators cost.",
  example = "moongrid explain megatron --world 16 tp=2 pp=2 --family dp",
  recipe = true,
  words = 1,
  asks = "families",
  options = { line.world "ranks in the world",
              { "family", "F,G", help = "only these families" } },
  run = run,
}
