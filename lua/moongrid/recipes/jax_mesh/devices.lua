-- The devices as JAX lists them: check their records, and find the box that the chips of TPUs fill.

local arithmetic = ...

local function refuse(...) error(string.format(...), 2) end

-- Return the stride of each axis, the last axis fastest.
local function steps(sizes)
  local list, step = {}, 1
  for i = #sizes, 1, -1 do list[i], step = step, step * sizes[i] end
  return list, step
end

local three = "a list of three integers"
local attributes = { id = "an integer", platform = "text", device_kind = "text", coords = three,
                     core_on_chip = "an integer", process_index = "an integer", slice_index = "an integer" }

local function kind_of(value)
  if math.type(value) == "integer" then return "an integer" end
  if type(value) == "string" then return "text" end
  if type(value) ~= "table" then return "a " .. type(value) end
  for i = 1, 3 do
    if math.type(value[i]) ~= "integer" then return "a table" end
  end
  return #value == 3 and three or "a table"
end

-- Other names of kinds, which JAX knows since 0.12.
local named_since = { ["TPU v5e"] = "TPU v5 lite", ["TPU v5"] = "TPU v5p" }

-- Check the records, and return a device for each, with defaults for missing fields.
local function devices_of(world, records, p)
  if type(records) ~= "table" or #records ~= #world then
    refuse("devices has %d records for the %d ranks; a list with a record for each rank would do",
      type(records) == "table" and #records or 0, #world)
  end
  local devices, seen = {}, {}
  for i, record in ipairs(records) do
    if type(record) ~= "table" then
      refuse("devices: item %d is a %s; { id = %d } would do", i - 1, type(record), i - 1)
    end
    for name, value in pairs(record) do
      if not attributes[name] then
        refuse("devices: item %d has '%s'; id, platform, device_kind, coords, core_on_chip, process_index and "
          .. "slice_index are known", i - 1, tostring(name))
      end
      if kind_of(value) ~= attributes[name] then
        refuse("devices: %s of item %d is %s; %s would do", name, i - 1, kind_of(value), attributes[name])
      end
    end
    local id = record.id or i - 1
    if id < 0 or id >= #world then refuse("devices: item %d has id %d; 0 to %d would do", i - 1, id, #world - 1) end
    if seen[id] then refuse("devices: items %d and %d have id %d; different ids would do", seen[id], i - 1, id) end
    seen[id] = i - 1
    devices[i] = {
      id = id, rank = world:rank(id), coords = record.coords, core = record.core_on_chip or 0,
      platform = record.platform or record.coords and "tpu" or "cpu",
      kind = p.version ~= "0.10.2" and named_since[record.device_kind] or record.device_kind or "",
      slice_index = record.slice_index, process_index = record.process_index or 0,
    }
  end
  return devices
end

-- Return the lowest and the highest x, y, z and core of some devices.
local function extent(devices)
  local low, high = {}, {}
  for _, device in ipairs(devices) do
    local coords = device.coords
    if not coords then refuse("device %d is a TPU without coords; its x, y and z would do", device.id) end
    for i, place in ipairs { coords[1], coords[2], coords[3], device.core } do
      low[i], high[i] = math.min(low[i] or place, place), math.max(high[i] or place, place)
    end
  end
  return low, high
end

-- Kinds in which each core of a chip is a device; in other kinds each chip is one device.
local two_cores = { ["TPU v5p"] = true, ["TPU7"] = true, ["TPU7x"] = true, ["TPU8i"] = true }

-- Return the devices in the order of their places in the box that they fill (core fastest, then z, y, x), and the axes
-- of the box.
local function box_of(devices)
  local low, high = extent(devices)
  local sizes, places = {}, {}
  for i = 1, 4 do sizes[i] = high[i] - low[i] + 1 end
  if sizes[4] > 1 and not two_cores[devices[1].kind] then
    refuse("devices of kind '%s' are on %d cores of a chip; a device for each chip, core_on_chip 0, would do",
      devices[1].kind, sizes[4])
  end
  local step = arithmetic.multiply_to(#devices, sizes) and steps(sizes)
  if not step then
    refuse("%d devices do not fill their box of %d x %d x %d chips with %d core%s each; coords without a gap would do",
      #devices, sizes[1], sizes[2], sizes[3], sizes[4], sizes[4] == 1 and "" or "s")
  end
  for _, device in ipairs(devices) do
    local place = 1 + (device.core - low[4]) * step[4]
    for i = 1, 3 do place = place + (device.coords[i] - low[i]) * step[i] end
    if places[place] then
      refuse("devices %d and %d are in one place; different coords would do", places[place].id, device.id)
    end
    places[place] = device
  end
  local torus = {}
  for i = 1, 4 do torus[i] = { size = sizes[i], step = step[i] } end
  return places, torus
end

return { devices_of = devices_of, extent = extent, box_of = box_of, steps = steps }
