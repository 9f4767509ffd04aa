-- SPDX-License-Identifier: MIT
--
-- headers.lua: read the public headers, whose comments are the manual, for the manual page (man3.lua) and the site
-- (site.lua).

local headers = { names = {} }
for _, part in ipairs { "", "_families", "_plan", "_backend", "_carrier", "_state", "_recipe", "_tensor", "_machine",
  "_step", "_survive", "_mpi", "_nccl", "_lua" } do
  headers.names[#headers.names + 1] = "moongrid" .. part
end

-- Return the rows of some lines of a header: { code, comment }, one row for each declaration of any number of lines.
local function rows_of(lines)
  local rows, open, depth, body = {}, nil, 0, false -- open: in a comment; depth: of parentheses
  for _, line in ipairs(lines) do
    local last = rows[#rows]
    if body then -- of an inline function, whose declaration is enough
      body = line ~= "}"
    elseif open then
      last.comment = last.comment .. " " .. line:gsub("%*/", ""):gsub("^%s*%*%*", "")
      open = not line:find("*/", 1, true)
    else
      local code, comment = line:match "^(.-)%s*/%*(.*)$"
      code = code or line
      open = comment and not comment:find("*/", 1, true)
      comment = comment and comment:gsub("%*/%s*", "")
      local goes_on = last and (depth > 0 or last.code:find "\\$")
      local indent = line:match "^%s*"
      code = code:gsub("^%s+", ""):gsub("%s+$", ""):gsub("%s+", " "):gsub("^MGRID_API ", "")
      local _, opened = code:gsub("%(", "")
      local _, closed = code:gsub("%)", "")
      depth = depth + opened - closed
      if goes_on then
        last.code, last.comment = last.code:gsub("%s*\\$", "") .. " " .. code, comment or last.comment
      else
        rows[#rows + 1] = { code = indent .. code, comment = comment }
      end
      last = rows[#rows]
      body = last.code:find "^MGRID_INLINE.*{$" ~= nil
      if body then last.code = last.code:gsub("^MGRID_INLINE ", ""):gsub(" {$", ";") end
    end
  end
  return rows
end

-- Return the items of a part of a header: { comment = lines of text, code = rows }; either may be missing.
function headers.items_of(text)
  local items, comment, code = {}, nil, {}
  local function close()
    if comment or #code > 0 then items[#items + 1] = { comment = comment, code = rows_of(code) } end
    comment, code = nil, {}
  end
  local inside, deep = false, false -- in a comment that begins a line; in braces
  for written in (text .. "\n"):gmatch "([^\n]*)\n" do
    local line = written
    if not inside and line:find "^/%*" then
      close()
      comment, inside = {}, true
      line = "** " .. line:gsub("^/%*%s*", "")
    end
    if inside then
      inside = not line:find("*/", 1, true)
      comment[#comment + 1] = line:gsub("%s*%*/.*$", ""):gsub("^%*%* ?", "")
    elseif line == "" and not deep then
      close()
    else
      code[#code + 1] = line
      deep = deep and not line:find "^}" or line:find "{$" ~= nil
    end
  end
  close()
  return items
end

-- Return the comment at the top of a header, and its declarations.
function headers.header_of(name)
  local file = assert(io.open("src/" .. name .. ".h"))
  local text = file:read "a"
  file:close()
  local lines, words = {}, {}
  for line in (text:match "^/%*(.-)%*/" .. "\n"):gmatch "([^\n]*)\n" do
    lines[#lines + 1] = line:gsub("^%*%* ?", "")
  end
  for i = 3, #lines do words[#words + 1] = lines[i]:gsub("^moongrid[%w_]*%.h %- ", "") end
  words[1] = words[1]:gsub("^%l", string.upper)
  return words, text:match 'extern "C" {\n#endif\n(.*)\n#ifdef __cplusplus\n}'
end

return headers
