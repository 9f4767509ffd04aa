-- SPDX-License-Identifier: MIT
--
-- moongrid draw: draw the groups of a recipe, in the terminal or in a file.

local host = require "host"
local line = require "command.base.line"
local mg = require "moongrid"
local pictures = require "pictures.init"
local recipe = require "command.base.line_recipe"
local text = require "command.base.text"
local words = require "pictures.words"

local PLANS = 64                 -- most plans of a page
local LEAST, LEAST_OF_MANY = 8, 32 -- least ranks of a grid on a screen: with one picture, with several
local MORE = "more: | less -R, or -o FILE.txt, .svg, .html; a part: --family F,G, --rank R"

-- The screen -----------------------------------------------------------------------

-- Return how many lines of the screen a line of text takes.
local function height(row)
  local wide = text.width((row:gsub("\27.[%d;]*m", "")))
  return math.max(1, (wide + text.columns - 1) // text.columns)
end

local function total(rows)
  local n = 0
  for _, row in ipairs(rows) do n = n + height(row) end
  return n
end

-- Draw as much as fits the screen: fewer ranks of each grid; if that is still too much, only the first lines.
local function draw_screen(plan, options)
  local screen = text.lines - 1 -- the prompt takes a line
  local room = screen - (#MORE - 1 + text.columns) // text.columns
  local many = options.families and #options.families or options.all and #plan.families or 0
  local list = many > 0 and 0 or #plan.families -- lines of the families, below the grids: at most half of the screen
  local function rows_of()
    local rows = {}
    for row in pictures.text(plan, options):gmatch "([^\n]*)\n" do rows[#rows + 1] = row end
    return rows
  end
  local rows = rows_of()
  if total(rows) > screen then
    options.most = 4096
    local least = many > 1 and LEAST_OF_MANY or LEAST
    while total(rows) - list > room - math.min(list, room // 2) and options.most > least do
      options.most = options.most // 2
      rows = rows_of()
    end
    local kept, used = {}, 0
    if total(rows) > room then
      for _, row in ipairs(rows) do
        used = used + height(row)
        if used > room - 1 then break end
        kept[#kept + 1] = row
      end
      kept[#kept + 1] = ("  ... %d lines more"):format(#rows - #kept)
      rows = kept
    end
    rows[#rows + 1] = MORE
  end
  text.put(table.concat(rows, "\n"), "\n")
end

-- Pages ----------------------------------------------------------------------------

local NUMERIC = { size = true, index = true, integer = true, number = true, flag = true }

-- Return the axes of a page, which are the worlds and the numeric parameters with several values; and, by the index of
-- the axis of a parameter, the index of this parameter in of.args.
local function axes_of(of, info)
  local axes, args = {}, {}
  if #of.world > 1 then
    axes[1] = { name = "world", values = {} }
    for i, size in ipairs(of.world) do axes[1].values[i] = tostring(size) end
  end
  for i, argument in ipairs(of.args) do
    local name, list = argument:match "^([^=]*)=(.*)$"
    local param = recipe.declared(info.params, name)
    if list:find "," and param and NUMERIC[param.kind] then
      local values = {}
      for value in (list .. ","):gmatch "([^,]*)," do values[#values + 1] = value end
      axes[#axes + 1] = { name = name, values = values }
      args[#axes] = i
    end
  end
  return axes, args
end

-- Return the plan for choice number `which` (from 0) of a page, and true; or a message, and false.
local function plan_choice(of, loaded, axes, at, which)
  local args, world = table.move(of.args, 1, #of.args, 1, {}), of.world[1]
  for i = #axes, 1, -1 do
    local axis = axes[i]
    local value = axis.values[which % #axis.values + 1]
    which = which // #axis.values
    if at[i] then args[at[i]] = axis.name .. "=" .. value else world = math.tointeger(tonumber(value)) end
  end
  local one = setmetatable({ args = args }, { __index = of })
  local done, plan = pcall(recipe.plan, one, loaded, world)
  return plan, done
end

-- If no plan of the page can be made with one value of an axis, raise the first error for this value.
local function refuse_values(axes, frames, failed)
  local below = #frames -- distance in `frames` between neighbouring values of an axis
  for _, axis in ipairs(#axes > 0 and axes or { { values = { "" } } }) do
    below = below // #axis.values
    for value = 0, #axis.values - 1 do
      local said, fits
      for i, frame in ipairs(frames) do
        if (i - 1) // below % #axis.values == value then
          fits = fits or not failed[i]
          said = said or failed[i] and frame
        end
      end
      if not fits then text.refuse(1, "%s", said) end
    end
  end
end

local function draw_page(of)
  local loaded = recipe.load(of)
  local axes, at = axes_of(of, loaded:info())
  local frames, failed, n = {}, {}, 1
  for _, axis in ipairs(axes) do n = math.min(n * #axis.values, PLANS + 1) end
  if n > PLANS then text.refuse(3, "a page has up to %d plans; fewer values would do", PLANS) end
  for i = 1, n do
    host.progress(("planning for the page, %d of %d"):format(i, n))
    local done
    frames[i], done = plan_choice(of, loaded, axes, at, i - 1)
    failed[i] = not done
  end
  refuse_values(axes, frames, failed)
  host.progress "drawing the page"
  local page = { recipe = line.from_stdin(of) and "stdin" or of.recipe, axes = axes, frames = frames }
  if of.machine then page.machine = function(plan) return recipe.machine(of, plan) end end
  host.write(of.output, function(put) pictures.page(page, put) end)
  host.progress()
end

-- The playground --------------------------------------------------------------------

-- Return the text of the page that `make wasm` made, found beside the program in the build or installation folder.
local function playground()
  local folder = host.program():match "^(.*)/"
  for _, path in ipairs { folder .. "/wasm/playground.html", folder .. "/../share/moongrid/playground.html" } do
    local file <close> = io.open(path, "rb")
    if file then return file:read "a" end
  end
  text.refuse(4, "--live needs the page of the playground, and this moongrid was installed without it: scripts/setup "
              .. "--site, make wasm and make install add it")
end

-- Return the text of the recipe for the page, and its name. For a bundled recipe the text is nil.
local function source(of)
  if line.from_stdin(of) then return line.stdin(), "stdin.lua" end
  if mg.recipes(of.recipe) then return nil, of.recipe end
  return assert(host.read(of.recipe)), of.recipe:match "[^/]+$"
end

local function draw_live(of)
  if line.is_saved(of) then text.usage "--live takes a recipe, not a saved plan" end
  local plan = recipe.plan(of)
  local whole, name = source(of)
  local done, why = pcall(function() mg.load(name, { text = whole }):plan(plan.world, of.args, of.params) end)
  if not done then text.refuse(1, "--live takes a recipe that reads no other file; a page would say: %s", why) end
  local given = words.given(plan)
  for _, argument in ipairs(of.args) do
    if argument:find "^[^=]*%." then given[#given + 1] = argument end -- an option of a family
  end
  for i, argument in ipairs(given) do given[i] = words.quoted(argument) end
  local start = ('{"name":%s,"world":%d,"params":[%s]%s}'):format(words.quoted(name), plan.world,
    table.concat(given, ","), whole and ',"text":' .. words.quoted(whole) or "")
  local before, after = playground():match "^(.-)@START@(.*)$"
  host.write(of.output, before .. start .. after)
end

-- ----------------------------------------------------------------------------------

local function draw(of, svg)
  local plan = recipe.plan(of)
  local options = { families = of.family and recipe.families(plan, of.family), all = svg or of.rank ~= nil,
                    rank = of.rank, machine = of.machine and recipe.machine(of, plan),
                    columns = of.output and 80 or text.columns, unicode = text.unicode,
                    color = text.on ~= "" and not of.output }
  if not of.output and text.lines > 0 then return draw_screen(plan, options) end
  local function put_all(put) pictures[svg and "svg" or "text"](plan, options, put) end
  if of.output then host.write(of.output, put_all) else put_all(text.put) end
end

local function run(of)
  line.needs(of, of.world)
  local world, ending = of.world and of.world[1], of.output and of.output:match ".(%.%a+)$"
  line.beyond(of.rank or 0, world)
  if of.output and ending ~= ".svg" and ending ~= ".html" and ending ~= ".txt" then
    text.usage("--output is a file that ends with .svg, .html or .txt, not '%s'", of.output)
  end
  if ending == ".html" and (of.family or of.rank) then
    text.usage "a page takes no --family and no --rank: it shows all"
  end
  if of.live and ending ~= ".html" then text.usage "--live makes a page: -o FILE.html" end
  if of.live and of.machine then text.usage "a live page takes no --machine: the recipe names it, machine = ..." end
  if ending == ".html" and not of.live then return draw_page(of) end
  if world and #of.world > 1 then
    text.usage("several worlds go into a page%s", of.live and " that is not live" or ": -o FILE.html")
  end
  of = setmetatable({ world = world }, { __index = of })
  if of.live then return draw_live(of) end
  draw(of, ending == ".svg")
end

return {
  name = "draw",
  place = 20,
  takes = "RECIPE --world N [...] [-o FILE.svg]",
  summary = "a picture of a recipe's groups",
  usage = "moongrid draw RECIPE --world N [NAME=VALUE ...] [--family F,G] [--rank R] [--machine M] [-o FILE.svg]",
  about = "Draw the grids of a recipe and the groups in them: in the terminal, or as SVG, a panel per family.\n"
    .. "Without --family the terminal gets the grids, and the groups of all families below. Worlds above\n"
    .. "4096 ranks are drawn in part, as are pictures that do not fit the terminal; a note says so.\n"
    .. "With --machine ranks are drawn where they run, in boxes of nodes and racks, and groups that cross\n"
    .. "them are coloured: in the terminal yellow for a node, red for more.",
  example = "moongrid draw megatron --world 16 tp=2 pp=2 --family tp,pp",
  recipe = true,
  options = {
    { "world", "N", line.worlds, help = "ranks in the world" },
    { "family", "F,G", help = "these families alone; in the terminal lines separate their groups" },
    { "rank", "R", line.index, help = "make the groups of one rank stand out" },
    { "output", "FILE", letter = true,
      help = "write a file: .svg; .txt for what the terminal gets; .html, a page without network, in which families "
             .. "are chosen, two ranks show why they communicate, and --world 8,16 and NAME=1,2,4 become sliders" },
    { "live", help = "make the page of -o FILE.html a playground, in which the recipe is edited" },
  },
  run = run,
}
