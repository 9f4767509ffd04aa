-- SPDX-License-Identifier: MIT
--
-- Files of tensors for specs: written from lists of numbers, and read as such.

local json = require "dkjson"
local M = {}

local formats = { F64 = "<d", F32 = "<f", BF16 = "<I2", F16 = "<I2", U8 = "<I1", I32 = "<i4" }

function M.pack(dtype, numbers)
  local list = {}
  for i, x in ipairs(numbers) do list[i] = string.pack(formats[dtype], x) end
  return table.concat(list)
end

-- header({ { name, dtype, shape }, ... }): what a file starts with
function M.header(tensors)
  local header, at = {}, 0
  for _, t in ipairs(tensors) do
    local size = string.packsize(formats[t[2]])
    for _, n in ipairs(t[3]) do size = size * n end
    header[t[1]] = {
      dtype = t[2], shape = setmetatable(t[3], { __jsontype = "array" }), data_offsets = { at, at + size },
    }
    at = at + size
  end
  local text = json.encode(header)
  return string.pack("<I8", #text) .. text
end

-- write(PATH, { { name, dtype, shape, numbers }, ... })
function M.write(path, tensors)
  local data = {}
  for i, t in ipairs(tensors) do data[i] = M.pack(t[2], t[4]) end
  local f = assert(io.open(path, "wb"))
  f:write(M.header(tensors), table.concat(data))
  f:close()
  return path
end

-- read(PATH): name -> { dtype, shape, numbers }
function M.read(path)
  local f = assert(io.open(path, "rb"))
  local text, list = f:read "a", {}
  f:close()
  local n = string.unpack("<I8", text)
  for name, t in pairs(json.decode(text:sub(9, 8 + n))) do
    local numbers, format = {}, formats[t.dtype] -- "__metadata__" has none
    for at = 1, format and (t.data_offsets[2] - t.data_offsets[1]) // string.packsize(format) or 0 do
      numbers[at] = string.unpack(format, text, 9 + n + t.data_offsets[1] + (at - 1) * string.packsize(format))
    end
    if format then list[name] = { t.dtype, setmetatable(t.shape, nil), numbers } end
  end
  return list
end

return M
