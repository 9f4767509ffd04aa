-- SPDX-License-Identifier: MIT
--
-- Layouts of layers.device_mesh, `(sizes):(strides)`: the places of one group, the last size
-- fastest. (2,2):(4,1) has the places 0, 1, 4, 5; over 8 places its groups start at 0 and 2. Layouts are
-- canonical, without sizes of 1 and with joined runs ((2,2):(2,1) is (4):(1)), and never change.
-- A place is a position in the mesh's list of ranks.

local mg = require "moongrid"
local layer = require "layers.layer"

local refuse = layer.refuse

local MOST = 0x7fffffff -- the most ranks of a world

---@class moongrid.MeshLayout
---@field sizes integer[] each 2 or more, slowest first
---@field strides integer[] one for each size
local MeshLayout = {}
MeshLayout.__index = MeshLayout

-- Make a layout of valid sizes and strides.
local function canonical(sizes, strides)
  local self = setmetatable({ sizes = {}, strides = {} }, MeshLayout)
  for i, size in ipairs(sizes) do
    local n = #self.sizes
    if n > 0 and self.strides[n] == size * strides[i] then
      self.sizes[n], self.strides[n] = self.sizes[n] * size, strides[i]
    elseif size > 1 then
      self.sizes[n + 1], self.strides[n + 1] = size, strides[i]
    end
  end
  return self
end

-- Return the strides that make the places of these sizes contiguous; invalid sizes are refused later.
local function contiguous(sizes)
  local strides, stride = {}, 1
  for i = #sizes, 1, -1 do
    strides[i] = stride
    local size = sizes[i]
    if math.type(size) == "integer" and size > 0 and size <= MOST // stride then stride = stride * size end
  end
  return strides
end

-- Parse "(2,4)", "(2,)" or "2" to a list.
local function numbers(text)
  local list = {}
  if not text:find "^%(?[%d, ]*%)?$" then return nil end
  for number in text:gmatch "%d+" do list[#list + 1] = math.tointeger(tonumber(number)) end
  return list
end

---@param sizes integer[]|string each 1 or more, slowest first, at most 2147483647 places in all; or a
--- whole layout as text, "(2,2):(4,1)"
---@param strides? integer[] for each size 1 to 2147483647; default: contiguous places
---@return moongrid.MeshLayout
function MeshLayout.new(sizes, strides)
  if type(sizes) == "string" then
    local before, after = sizes:match "^([^:]*):([^:]*)$"
    local text = sizes
    sizes, strides = before and numbers(before), after and numbers(after)
    if not sizes or not strides then refuse("layout '%s' is not (sizes):(strides), as (2,2):(4,1)", text) end
  end
  layer.check("sizes of a layout", sizes, "table", "a list of sizes")
  if strides == nil then strides = contiguous(sizes) end
  layer.check("strides of a layout", strides, "table", "a list of strides")
  if #sizes ~= #strides then
    refuse("%d sizes and %d strides in a layout; give one stride for each size", #sizes, #strides)
  end
  local places = 1
  for i, size in ipairs(sizes) do
    layer.check_size(size, "a layout")
    local stride = strides[i]
    if math.type(stride) ~= "integer" or stride < 1 or stride > MOST then
      refuse("stride %s of a layout is none; strides are 1 to %d", layer.shown(stride), MOST)
    end
    if size > MOST // places then refuse("a layout has more than %d places", MOST) end
    places = places * size
  end
  return canonical(sizes, strides)
end

---Combine several layouts into one, the first slowest.
---@param layouts moongrid.MeshLayout[]
---@return moongrid.MeshLayout
function MeshLayout.join(layouts)
  local sizes, strides = {}, {}
  for _, layout in ipairs(layouts) do
    table.move(layout.sizes, 1, #layout.sizes, #sizes + 1, sizes)
    table.move(layout.strides, 1, #layout.strides, #strides + 1, strides)
  end
  return canonical(sizes, strides)
end

---@return integer places in a group
function MeshLayout:numel()
  local n = 1
  for _, size in ipairs(self.sizes) do n = n * size end
  return n
end

---@return boolean # whether the places of a group ascend
function MeshLayout:check_sorted()
  for i = 2, #self.strides do
    if self.strides[i] > self.strides[i - 1] then return false end
  end
  return true
end

-- Return its (size, stride), smallest stride first.
local function ascending(self)
  local modes = {}
  for i, size in ipairs(self.sizes) do modes[i] = { size = size, stride = self.strides[i] } end
  table.sort(modes, function(a, b) return a.stride < b.stride end)
  return modes
end

---Return whether shifted copies cover each of `places` once. Then each stride is a multiple of the next
---smaller stride times its size, and `places` is a multiple of the largest such product.
---@param places? integer default: for some number of places
---@return boolean
function MeshLayout:check_orthogonal(places)
  local run = 1 -- the next stride is a multiple of this
  for _, mode in ipairs(ascending(self)) do
    if mode.stride % run ~= 0 then return false end
    run = mode.size * mode.stride
  end
  return not places or places % run == 0
end

---Refuse a number of places that shifted copies do not cover exactly once: `check_orthogonal`.
---@param places integer
function MeshLayout:fill(places)
  if not self:check_orthogonal(places) then
    refuse("layout %s does not fill %d places, each once; strides are multiples of smaller ones times their sizes",
      self, places)
  end
end

---Return the layout of the starts of the groups: together with this layout it covers `places`, rounded up. Where
---`check_orthogonal` does not hold, groups leave places out, as in torch: (2,2,2):(1,12,4) has (2):(2).
---@param places integer 1 or more
---@return moongrid.MeshLayout # refused where places of one group coincide
function MeshLayout:complement(places)
  layer.check_size(places, "the places to fill")
  local sizes, strides, run = {}, {}, 1
  for _, mode in ipairs(ascending(self)) do
    if mode.stride < run then
      refuse("layout %s has no complement; each stride must be at least the next smaller one times its size", self)
    end
    table.insert(sizes, 1, mode.stride // run)
    table.insert(strides, 1, run)
    run = mode.size * mode.stride
  end
  table.insert(sizes, 1, (places + run - 1) // run)
  table.insert(strides, 1, run)
  return canonical(sizes, strides)
end

---Cut one group into dims, slowest first.
---@param sizes integer[] each 1 or more; their product is `numel()`, and each meets the boundaries of the layout
---@return moongrid.MeshLayout[] # a layout for each size
function MeshLayout:composition(sizes)
  layer.check("sizes", sizes, "table", "a list of sizes")
  for _, size in ipairs(sizes) do layer.check_size(size, "a part of layout " .. tostring(self)) end
  local text, parts = table.concat(sizes, " x "), {}
  local left, index = canonical(self.sizes, self.strides), #self.sizes
  for i = #sizes, 1, -1 do
    local size, taken, strides = sizes[i], {}, {}
    while size > 1 do
      local mode = left.sizes[index] or 1
      local part = math.min(size, mode)
      if part == 1 or size % part ~= 0 or mode % part ~= 0 then
        refuse("%s does not meet the boundaries of layout %s; use its sizes, divisors or products of them", text, self)
      end
      table.insert(taken, 1, part)
      table.insert(strides, 1, left.strides[index])
      size, left.sizes[index], left.strides[index] = size // part, mode // part, left.strides[index] * part
      if left.sizes[index] == 1 then index = index - 1 end
    end
    parts[i] = canonical(taken, strides)
  end
  if index > 0 then refuse("%s leaves places of layout %s out; their product is %d", text, self, self:numel()) end
  return parts
end

---Return the places of the group that starts at 0. O(places).
---@return integer[]
function MeshLayout:all_ranks_from_zero()
  local places = { 0 }
  for i, size in ipairs(self.sizes) do
    local longer = {}
    for _, place in ipairs(places) do
      for step = 0, size - 1 do longer[#longer + 1] = place + step * self.strides[i] end
    end
    places = longer
  end
  return places
end

---Return the places of all groups, rounded up as `complement` does. O(places).
---@param places integer 1 or more
---@return integer[][]
function MeshLayout:global_ranks(places)
  local groups, first = {}, self:all_ranks_from_zero()
  for g, start in ipairs(self:complement(places):all_ranks_from_zero()) do
    groups[g] = {}
    for i, place in ipairs(first) do groups[g][i] = start + place end
  end
  return groups
end

---Return all groups over a world or window, as a rule: O(modes) for any number of ranks.
---@param world moongrid.World `check_orthogonal(world.size)` holds
---@return moongrid.Family # numbered by their first rank, which ascends
function MeshLayout:family(world)
  self:fill(world.size)
  local modes, order, sizes, names = {}, {}, {}, { {}, {} }
  for part, layout in ipairs { self, self:complement(world.size) } do
    for i = #layout.sizes, 1, -1 do
      modes[#modes + 1] = { part = part, size = layout.sizes[i], stride = layout.strides[i] }
      modes[#modes].name = "mode_" .. #modes
      table.insert(names[part], modes[#modes].name)
    end
  end
  table.sort(modes, function(a, b) return a.stride < b.stride end)
  for i, mode in ipairs(modes) do order[i], sizes[mode.name] = mode.name, mode.size end
  names[1].index = names[2]
  return mg.grid(world, order, sizes):along(names[1])
end

MeshLayout.__tostring = function(self)
  return ("(%s):(%s)"):format(table.concat(self.sizes, ","), table.concat(self.strides, ","))
end

MeshLayout.__eq = function(self, other) return tostring(self) == tostring(other) end

return MeshLayout
