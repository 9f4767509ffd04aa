-- SPDX-License-Identifier: MIT
--
-- Megatron-core's HyperCommGrid on moongrid, for stock Lua: its operations under its names, on
-- rules instead of rank lists. The original creates groups at once; here they are collected in a
-- topology, whose plan shares equal groups and becomes real communicators:
--
--   local HyperCommGrid = require "layers.hyper_comm_grid"
--   local grid = HyperCommGrid.new(job.world, { 2, 3, 4, 5 }, { "tp", "cp", "pp", "dp" })
--   grid:create_pg("dp")
--   grid:create_pg({ "cp", "dp" }, { nccl = { max_ctas = 8 }, group_desc = "weight_gradient" })
--   local state = assert(job:materialize(mg.plan(grid:topology())))
--   print(state.dp.position, state.weight_gradient.size)      -- nil on a rank outside the grid
--
-- There is no current rank: every rank makes the same calls, and questions name the rank.

local mg = require "moongrid"
local layer = require "layers.layer"

local refuse, attempt, list, shown = layer.refuse, layer.attempt, layer.list, layer.shown

---@class moongrid.HyperCommGrid
---@field shape integer[] sizes, fastest first
---@field dim_names string[] names of the dims, fastest first
---@field rank_offset integer first rank, counted from the start of the world or window
---@field size integer ranks of the grid
---@field backend "mpi"|"nccl"|nil of all groups of the grid
---@field views table<string, { grid: moongrid.Grid }> the grid of each view, for coordinates; "base" is one
local HyperCommGrid = {}
HyperCommGrid.__index = HyperCommGrid

---Options of a call that names groups, including those of `Family:with`.
---@class moongrid.HyperCommGrid.Options: moongrid.Options
---@field view? string a registered view; default: "base"
---@field group_desc? string name in the topology; default: the dims joined by "_", after view and "_"

local function factorization(what, window, shape, dim_names)
  if #shape ~= #dim_names then
    refuse("%s: %d sizes for %d dim_names; give one size for each name", what, #shape, #dim_names)
  end
  local sizes = {}
  for i, name in ipairs(dim_names) do sizes[name] = shape[i] end
  return attempt(what, mg.grid, window, dim_names, sizes)
end

local function check_options(options)
  if type(options or {}) ~= "table" then refuse("options are %s; write { view = NAME }", type(options)) end
end

-- Return the groups of a call: key, rule, and default name. If all dims are shared, the groups are
-- the base's, in every view.
local function resolve(self, dims, options)
  check_options(options)
  for option in pairs(options or {}) do
    if option ~= "view" then refuse("unknown option '%s'; here is only view", shown(option)) end
  end
  local asked = options and options.view or "base"
  local view, shared = self.views[asked], true
  if not view then
    refuse("view '%s' is not registered; there are %s", shown(asked), table.concat(self.view_names, ", "))
  end
  dims = type(dims) == "string" and { dims } or list("dims", dims)
  local named, ordered = {}, {}
  for _, dim in ipairs(dims) do
    named[dim] = true
    shared = shared and view.shared[dim]
  end
  if shared then asked, view = "base", self.views.base end
  local family = attempt("view '" .. asked .. "'", view.grid.along, view.grid, dims)
  for _, dim in ipairs(view.grid:dims()) do
    if named[dim[1]] then ordered[#ordered + 1] = dim[1] end
  end
  local name = ordered[1] and table.concat(ordered, "_") or "ranks"
  return asked .. ":" .. table.concat(ordered, "-"), family, asked == "base" and name or asked .. "_" .. name
end

---Make a grid over some ranks of a world.
---@param world moongrid.World|integer the world (or a window of it) that the grid lies on, or its size
---@param shape integer[] sizes, each 1 or more; their product is at most the ranks from rank_offset on
---@param dim_names string[] as many different names as sizes, the first varies fastest
---@param rank_offset? integer first rank of the grid, 0 (default) or more
---@param backend? "nccl"|"gloo"|"mpi" of all its groups ("gloo" is the same as "mpi": groups on the CPU)
---@return moongrid.HyperCommGrid # refused where one of these does not hold
function HyperCommGrid.new(world, shape, dim_names, rank_offset, backend)
  world, rank_offset = layer.world_of(world), rank_offset or 0
  shape, dim_names = list("shape", shape), list("dim_names", dim_names)
  if math.type(rank_offset) ~= "integer" or rank_offset < 0 or rank_offset >= world.size then
    refuse("rank_offset is %s; it is 0 to %d in %d ranks", shown(rank_offset), world.size - 1, world.size)
  end
  backend = layer.backend_of(backend)
  local size, room = 1, world.size - rank_offset
  for i, n in ipairs(shape) do
    layer.check_size(n, "dim '" .. shown(dim_names[i]) .. "'")
    if n > room // size then
      refuse("shape %s is larger than the %d ranks from rank_offset %d on; make a size smaller or the world larger",
        table.concat(shape, " x "), room, rank_offset)
    end
    size = size * n
  end
  local self = setmetatable({
    shape = shape, dim_names = dim_names, rank_offset = rank_offset, size = size, backend = backend,
    window = world:window(rank_offset, size), views = {}, view_names = { "base" },
  }, HyperCommGrid)
  self.views.base = { grid = factorization("HyperCommGrid", self.window, shape, dim_names), shared = {} }
  self:destroy()
  return self
end

---Register another factorization of the same ranks. Proves by the rules that shared dims have the same
---groups in both: equal rules for each dim make every product of them equal as well.
---@param name string not registered yet; prefix of the names of its groups
---@param shape integer[] sizes whose product is the size of the grid
---@param dim_names string[] as many different names as sizes, the first varies fastest
---@param shared_dims? string[] dims of both views, each once; their groups are the base's
function HyperCommGrid:register_view(name, shape, dim_names, shared_dims)
  if type(name) ~= "string" then refuse("the name of a view is %s; it is a string", type(name)) end
  if self.views[name] then refuse("view '%s' is registered already; choose another name", name) end
  local what = "view '" .. name .. "'"
  local grid = factorization(what, self.window, list("shape", shape), list("dim_names", dim_names))
  local base, shared = self.views.base.grid, {}
  for _, dim in ipairs(list("shared_dims", shared_dims or {})) do
    layer.check("shared dim of " .. what, dim, "string", "a name")
    if shared[dim] then refuse("shared dim '%s' of %s is named twice; name it once", dim, what) end
    local in_base = attempt("shared dim of " .. what .. ", in view 'base'", base.along, base, dim)
    local in_view = attempt("shared dim of " .. what, grid.along, grid, dim)
    attempt(("shared dim '%s' of %s has other groups than in 'base'"):format(dim, what), mg.same, in_base, in_view)
    shared[dim] = true
  end
  layer.add(self.collected, name, grid, "view '" .. name .. "' needs another name")
  self.views[name] = { grid = grid, shared = shared }
  self.view_names[#self.view_names + 1] = name
end

---Return the rule of some dims without creating groups, to derive others: `grid:family("pp"):pick(0, -1)`.
---@param dims string|string[] names of dims in any order, each once; none: a group for each rank
---@param options? moongrid.HyperCommGrid.Options only `view` matters
---@return moongrid.Family # ranks ascend in a group; refused: an unknown view or dim
function HyperCommGrid:family(dims, options)
  local _, family = resolve(self, dims, options)
  return family
end

---Create the groups of some dims: add them to the topology. A second call is harmless, and with another
---`group_desc` gives them a second name; options that differ from the first call's are refused.
---@param dims string|string[] as for `family`
---@param options? moongrid.HyperCommGrid.Options
---@return moongrid.Family # all groups; `locate(rank)` is nil for a rank outside
function HyperCommGrid:create_pg(dims, options)
  check_options(options)
  local wanted = { backend = self.backend }
  for option, value in pairs(options or {}) do wanted[option] = value end
  local name, view = wanted.group_desc, wanted.view
  wanted.group_desc, wanted.view = nil, nil
  local key, family, default = resolve(self, dims, { view = view })
  local pg, asked = self.pgs[key], layer.text(wanted)
  if not pg then
    family = attempt("options of group '" .. default .. "'", family.with, family, wanted)
    pg = { name = name or default, options = asked, names = {}, family = family }
  elseif pg.options ~= asked then
    refuse("group '%s' exists with options %s, not %s; use the same, or destroy first", pg.name, pg.options, asked)
  end
  name = name or pg.name
  layer.check("group_desc", name, "string", "a name")
  if not pg.names[name] then
    layer.add(self.collected, name, pg.family, "give these groups another group_desc")
    pg.names[name], self.pgs[key] = true, pg
  end
  return pg.family
end

local function created(self, dims, options)
  local key, _, name = resolve(self, dims, options)
  return self.pgs[key] or refuse("group '%s' has not been created; call create_pg first", name)
end

---Return the groups that `create_pg` made; refused if it has not.
---@param dims string|string[] as for `family`
---@param options? moongrid.HyperCommGrid.Options only `view` matters
---@return moongrid.Family # the identical value
function HyperCommGrid:get_pg(dims, options) return created(self, dims, options).family end

---Return their name in the topology: `state[grid:name { "cp", "dp" }]` is this rank's group.
---@param dims string|string[] as for `family`
---@param options? moongrid.HyperCommGrid.Options only `view` matters
---@return string # refused if they have not been created
function HyperCommGrid:name(dims, options) return created(self, dims, options).name end

---Return the ranks of all groups of some dims, created or not. O(ranks of the grid).
---@param dims string|string[] as for `family`
---@param options? moongrid.HyperCommGrid.Options only `view` matters
---@return integer[][]
function HyperCommGrid:get_rank_enum(dims, options)
  local lists = {}
  for group, ranks in pairs(self:family(dims, options)) do lists[group + 1] = ranks end
  return lists
end

---@param rank integer the rank that asks; required
---@return boolean
function HyperCommGrid:is_current_rank_in_grid(rank)
  layer.check_rank(rank)
  return rank >= self.window.offset and rank < self.window.offset + self.size
end

---Return everything created, in that order, and the grids under the names of their views.
---@param into? moongrid.Topology to add to, for several grids in one job; default: a new one
---@param prefix? string put before each name
---@return moongrid.Topology
function HyperCommGrid:topology(into, prefix)
  local topology, add = layer.topology(self.window, into, prefix)
  for _, name in ipairs(self.view_names) do add(name, self.views[name].grid) end
  for name, family in pairs(self.collected) do add(name, family) end
  return topology
end

---Forget all groups; views stay. Collective if a state is given.
---@param state? moongrid.State made of this grid's topology, to close
function HyperCommGrid:destroy(state)
  layer.close(state)
  self.pgs, self.collected = {}, mg.topology(self.window)
  for _, name in ipairs(self.view_names) do self.collected[name] = self.views[name].grid end
end

return HyperCommGrid
