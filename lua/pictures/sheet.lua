-- SPDX-License-Identifier: MIT
--
-- sheet: the arrangement in which ranks are drawn: one grid; or a few grids that share no ranks, such as those of an
-- encoder and a decoder; or a machine. A sheet has
--   parts    for each grid { name, levels, cells, ranks, last, machine }; ranks: the rank of each drawn cell, the first
--            level fastest, -1 for none; last: the largest possible rank of the part; machine: nil for a grid
--   cells    the number of drawn cells of all parts
--   sampled  true if ranks are left out
-- The levels of a part are the dims with sizes above 1, the fastest first: { name, size, base, stride, shown, kept }.
-- `shown` coordinates are drawn: the first ones and the last; `kept` is another coordinate that must be drawn; `base`
-- is the number of the first one. The first level goes along a row, the second along a column of rows; both make a
-- tile, and further levels arrange tiles.

local moongrid = require "moongrid"

local M = { WHOLE = 4096 } -- without another limit, a sheet of more ranks is sampled

local SAMPLE, PARTS = 256, 8 -- the most ranks of a sampled sheet; the most grids of a sheet
local LOOK = 64              -- the most groups of a family, and members of a group, that are checked to choose a grid

-- Cells --------------------------------------------------------------------------

-- Return whether the kept coordinate is neither among the first ones nor the last one, so that it is drawn before the
-- last.
local function keeps(level)
  return level.kept > level.shown - 2 and level.kept < level.size - (level.shown > 1 and 1 or 0)
end

-- Return the i-th drawn coordinate of a level; i counts from 0.
function M.coord(level, i)
  if i + 1 == level.shown and level.shown > 1 then return level.size - 1 end
  return keeps(level) and i == math.max(0, level.shown - 2) and level.kept or i
end

-- Return the number of the i-th drawn coordinate.
function M.label(level, i) return level.base + M.coord(level, i) end

-- Return a list of a cell's index among the drawn coordinates of each level.
function M.index(part, cell)
  local index = {}
  for k, level in ipairs(part.levels) do
    index[k] = cell % level.shown
    cell = cell // level.shown
  end
  return index
end

local function new_part(name, dims)
  local part, stride = { name = name, levels = {}, size = 1 }, 1
  for _, dim in ipairs(dims) do
    if dim[2] > 1 then
      part.levels[#part.levels + 1] = { name = dim[1], size = dim[2], base = dim[3] or 0, stride = stride,
                                        shown = dim[2], kept = 0 }
    end
    stride = stride * dim[2]
  end
  if #part.levels == 0 then
    part.levels[1] = { name = dims[1] and dims[1][1] or "rank", size = 1, base = 0, stride = 1, shown = 1, kept = 0 }
  end
  part.size, part.cells = stride, stride
  return part
end

-- Return a grid with facts about it that are needed often. `line` is a family of one group, which has all ranks of the
-- grid; `low` and `high` are the lowest and highest rank; `packed` is true if the grid has all ranks between these.
local function known_grid(name, grid)
  local dims, names = grid:dims(), {}
  for i, dim in ipairs(dims) do names[i] = dim[1] end
  local line = grid:along(table.unpack(names))
  return { name = name, grid = grid, dims = dims, line = line, low = line.low, high = line.high,
           packed = line.high - line.low + 1 == #grid }
end

local function position(known, rank)
  local group, at = known.line:locate(rank)
  return group and at
end

local function grid_part(known)
  local part = new_part(known.name, known.dims)
  part.known, part.last = known, known.high
  return part
end

-- Draw fewer coordinates of the level with the most drawn ones. Of several such levels take the first, or the last if
-- three coordinates or fewer are drawn.
local function show_less(sheet)
  local at, most
  for _, part in ipairs(sheet.parts) do
    for _, level in ipairs(part.levels) do
      local more = not most or level.shown > most.shown or (level.shown == most.shown and most.shown <= 3)
      if level.shown > 1 and more then at, most = part, level end
    end
  end
  local shown = most.shown > 3 and (most.shown + 1) // 2 or 1
  sheet.cells = sheet.cells - at.cells
  at.cells = at.cells // most.shown * shown
  sheet.cells = sheet.cells + at.cells
  most.shown = shown
end

local function rank_position(part, rank)
  if not part.rank_at then return position(part.known, rank) end
  for at = 0, part.size - 1 do
    if part.rank_at[at] == rank then return at end
  end
end

local function list_ranks(part)
  local known, coords = part.known, {}
  part.ranks = known and part.cells == part.size and known.line:ranks(0) or {}
  for cell = #part.ranks, part.cells - 1 do
    local at, rest = 0, cell
    for _, level in ipairs(part.levels) do
      local coord = M.coord(level, rest % level.shown)
      at, rest = at + coord * level.stride, rest // level.shown
      if level.size > 1 then coords[level.name] = coord end
    end
    part.ranks[cell + 1] = known and known.grid:rank(coords) or part.rank_at[at] or -1
  end
  part.top = 0 -- the largest rank that is drawn
  for _, rank in ipairs(part.ranks) do part.top = math.max(part.top, rank) end
end

-- Choose the coordinates of a sheet to draw: for at most `most` ranks (nil: all, or SAMPLE of a sheet above WHOLE),
-- with those of `rank` if it is given.
local function sample(sheet, rank, most)
  if sheet.cells > (most or M.WHOLE) then
    sheet.sampled = true
    while sheet.cells > (most or SAMPLE) do show_less(sheet) end
    for _, part in ipairs(sheet.parts) do
      local at = rank and rank_position(part, rank)
      for _, level in ipairs(at and part.levels or {}) do level.kept = at // level.stride % level.size end
    end
  end
  for _, part in ipairs(sheet.parts) do list_ranks(part) end
end

-- Return a text about the drawn coordinates of a sampled sheet: "dp 0 to 6 and 63 of 64".
function M.sampled_text(sheet)
  local words = {}
  for _, part in ipairs(sheet.parts) do
    for _, level in ipairs(part.levels) do
      local first = level.shown - (level.shown > 1 and 1 or 0) - (keeps(level) and 1 or 0) -- the first coordinates
      local text, low = level.name, level.base
      if first > 0 then text = text .. " " .. low end
      if first > 1 then text = text .. (first > 2 and " to " or ", ") .. low + first - 1 end
      if keeps(level) then text = text .. (first > 0 and ", " or " ") .. low + level.kept end
      if level.shown > 1 then text = text .. " and " .. low + level.size - 1 end
      if level.shown < level.size then words[#words + 1] = text .. " of " .. level.size end
    end
  end
  return table.concat(words, ", ")
end

-- A grid from strides ---------------------------------------------------------------

-- Insert a stride, or a stride times its size, into an ascending list in which each number divides the next. Return
-- whether it fits, or is there already.
local function add_edge(edges, at)
  local i = 1
  while edges[i] and edges[i] < at do i = i + 1 end
  if not edges[i] then return false end -- beyond the world
  if edges[i] == at then return true end
  if at % edges[i - 1] ~= 0 or edges[i] % at ~= 0 then return false end
  table.insert(edges, i, at)
  return true
end

-- Make a grid of all ranks from the strides of the families. A family whose strides do not fit the families before it
-- changes nothing. A dim is named after the first family whose groups run along this dim only.
local function common_grid(families, world)
  local edges, named = world > 1 and { 1, world } or { 1 }, {}
  for _, entry in ipairs(families) do
    local modes = entry.family:modes()
    if modes and entry.family.coverage == "partition" then
      local next_edges, fits = { table.unpack(edges) }, true
      for _, list in ipairs { modes.inside, modes.index } do
        for _, mode in ipairs(list) do
          if mode[1] > 1 then
            fits = fits and add_edge(next_edges, mode[2]) and add_edge(next_edges, mode[1] * mode[2])
          end
        end
      end
      if fits then edges = next_edges end
    end
    if modes and #modes.inside == 1 then
      local key = modes.inside[1][1] .. " " .. modes.inside[1][2]
      named[key] = named[key] or entry.name
    end
    named[entry.name] = true
  end
  local order, sizes, from_family = {}, {}, nil
  for k = 1, #edges - 1 do
    local size = edges[k + 1] // edges[k]
    local family = named[size .. " " .. edges[k]]
    local name = family or #edges == 2 and "rank" or "dim" .. k - 1
    while not family and named[name] do name = name .. "_" end -- a family has this name
    order[k], sizes[name], from_family = name, size, from_family or family
  end
  local known = known_grid("", moongrid.grid(moongrid.world(world), order, sizes))
  known.from_family = from_family
  return known
end

-- Choosing grids ----------------------------------------------------------------------

-- Return whether seen(rank) is true for the first members of the first groups; stop at the first other result.
local function look(family, seen)
  for group = 0, math.min(family.count, LOOK) - 1 do
    local _, size = family:member(group, 0)
    for at = 0, math.min(size, LOOK) - 1 do
      if not seen((family:member(group, at))) then return false end
    end
  end
  return true
end

-- Return whether the grid has the ranks of the family. Of many ranks, only those that `look` checks are compared.
local function holds(known, family)
  if not family.low then return true end
  if not position(known, family.low) or not position(known, family.high) then return false end
  return known.packed or look(family, function(rank) return position(known, rank) end)
end

-- Return whether the first group runs along whole dims of the grid: the sizes of the dims in which its first and last
-- member differ multiply to its size.
local function aligned(known, family)
  if family.count == 0 then return true end
  local first, size = family:member(0, 0)
  local last, made = family:member(0, -1), 1
  for _, dim in ipairs(known.dims) do
    if dim[2] > 1 and known.grid:coord(first, dim[1]) ~= known.grid:coord(last, dim[1]) then made = made * dim[2] end
  end
  return made == size
end

-- Return how well a grid suits a family: 0 if the grid lacks ranks of the family, 1 if it has them, 2 if the groups run
-- along whole dims of the grid, 3 if a dim also has the name and the size of the family.
local function suits(known, entry)
  if not holds(known, entry.family) then return 0 end
  if not aligned(known, entry.family) then return 1 end
  for _, dim in ipairs(known.dims) do
    if dim[1] == entry.name and dim[2] == entry.family.size then return 3 end
  end
  return 2
end

-- Return grids without common ranks that together have all ranks of the family, or nil if there are none.
local function choose_several(grids, family, world)
  local chosen, here = {}, 0
  for _, known in ipairs(grids) do
    local apart = #chosen < PARTS
    for _, other in ipairs(chosen) do apart = apart and (known.high < other.low or other.high < known.low) end
    if apart then chosen[#chosen + 1], here = known, here + #known.grid end
  end
  local all = here == world or #chosen > 0 and look(family, function(rank) -- other ranks may be idle
    for _, known in ipairs(chosen) do
      if position(known, rank) then return true end
    end
  end)
  return all and chosen or nil
end

local function choose(grids, entry, world, common)
  local best, most = nil, 0
  for _, known in ipairs(grids) do
    local is = suits(known, entry)
    if is > most then best, most = known, is end
  end
  if best and #best.grid == world then return { best } end
  -- prefer several grids, each over a window, that together show the world to one grid that shows a part of it
  return choose_several(grids, entry.family, world) or { best or common }
end

-- On a machine ------------------------------------------------------------------------

-- Return the sheet of a machine. It has the levels of which a domain of the level above has several domains.
local function machine_sheet(machine, world)
  local at, dims, cells = {}, {}, 1
  for rank = 0, world - 1 do at[rank] = 0 end
  for l, level in ipairs(machine.levels) do
    local parents, domains, first = machine.domains[l - 1], machine.domains[l], machine.first[l]
    local index, low, high = {}, math.huge, 0 -- index: of the domain of each rank, in the domain of the level before
    for rank = 0, world - 1 do
      local i = domains[rank] - first[parents and parents[rank] or 0]
      index[rank], low, high = i, math.min(low, i), math.max(high, i)
    end
    local size = high - low + 1
    for rank = 0, world - 1 do at[rank] = at[rank] * size + index[rank] - low end
    table.insert(dims, 1, { level, size, low })
    cells = cells * size
    if cells > 1 << 24 then error("the machine has too many places to draw; draw a smaller world", 0) end
  end
  local large = {}
  for _, dim in ipairs(dims) do
    if dim[2] > 1 then large[#large + 1] = dim end
  end
  local part = new_part("", large)
  part.machine, part.last, part.rank_at = machine, cells - 1, {}
  for rank = 0, world - 1 do part.rank_at[at[rank]] = rank end
  return { parts = { part }, cells = part.cells }
end

-- All --------------------------------------------------------------------------------

-- Return a text that explains the names of dims if they are not those of a grid, else nil.
function M.dims_text(sheets)
  for _, sheet in ipairs(sheets) do
    local name = sheet.parts[1].known and sheet.parts[1].known.from_family
    if name then return ('No grid has a name here: "%s 1" is position 1 of a group of %s.'):format(name, name) end
  end
end

-- Return the sheets of a drawing, without duplicates, and a table, name of a family -> its sheet. `most` is the largest
-- number of ranks to draw of a sheet, or nil.
function M.make(drawing, most)
  local sheets, of, by_grids = {}, {}, {}
  if drawing.machine then
    sheets[1] = machine_sheet(drawing.machine, drawing.world)
    for _, entry in ipairs(drawing.entries) do of[entry.name] = sheets[1] end
  else
    local common, grids = common_grid(drawing.entries, drawing.world), {}
    for i, name in ipairs(drawing.plan.grids) do grids[i] = known_grid(name, drawing.plan:grid(name)) end
    local function add(chosen)
      for _, other in ipairs(by_grids) do
        local same = #other == #chosen
        for i, known in ipairs(chosen) do same = same and other[i].grid == known.grid end
        if same then return other.sheet end
      end
      local sheet = { parts = {}, cells = 0 }
      for i, known in ipairs(chosen) do
        sheet.parts[i] = grid_part(known)
        sheet.cells = sheet.cells + sheet.parts[i].cells
      end
      chosen.sheet, by_grids[#by_grids + 1], sheets[#sheets + 1] = sheet, chosen, sheet
      return sheet
    end
    for _, entry in ipairs(drawing.entries) do
      of[entry.name] = add(choose(grids, entry, drawing.world, common))
    end
    if #sheets == 0 then add { common } end -- only the ranks
  end
  for i, sheet in ipairs(sheets) do
    sheet.number = i - 1
    sample(sheet, drawing.rank, most)
  end
  return sheets, of
end

return M
