-- SPDX-License-Identifier: MIT
--
-- pages.lua: functions that make the HTML pages of lua/pictures.

local M = {}

-- Return a page of lua/pictures with the files that its lines "@NAME@" name, without indentation and comments.
function M.page(name)
  local lines = {}
  local function add(file)
    for line in io.lines("lua/pictures/" .. file) do
      local part = line:match "^@([%w_]+%.%l+)@$"
      line = line:gsub("^%s+", "")
      if part then
        add(part)
      elseif not (line == "" or line == "*/" or line:find "^/[/*]" or line:find "^%*%*") then
        lines[#lines + 1] = line
      end
    end
  end
  add(name)
  return table.concat(lines, "\n")
end

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

function M.base64(bytes)
  local out = {}
  for i = 1, #bytes, 3 do
    local a, b, c = bytes:byte(i, i + 2)
    local n = a << 16 | (b or 0) << 8 | (c or 0)
    for k = 3, 0, -1 do
      local at = n >> 6 * k & 63
      out[#out + 1] = (k > 1 or k == 1 and b or k == 0 and c) and ALPHABET:sub(at + 1, at + 1) or "="
    end
  end
  return table.concat(out)
end

-- Return the part of an address after "#" with which the playground opens a recipe: base64url of a deflate stream,
-- which is stored without compression.
function M.address(name, text, world)
  local quoted = dofile "lua/pictures/words.lua".quoted
  local json = ('[[%s,%s,%d,[]],[],null,""]'):format(quoted(name), quoted(text), world)
  assert(#json < 65536, "too long for one block")
  local packed = M.base64("\1" .. string.pack("<I2I2", #json, ~#json & 0xffff) .. json)
  return "r=" .. packed:gsub("[+/=]", { ["+"] = "-", ["/"] = "_", ["="] = "" })
end

return M
