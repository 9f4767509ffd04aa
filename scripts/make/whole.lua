-- SPDX-License-Identifier: MIT
--
-- whole.lua: return a function that writes a file of the clone: as FILE.part, then renamed, so that a full disk or a
-- kill leaves the old one.
return function(path, text)
  if path:find "^/dev/" then return assert(io.open(path, "wb")):write(text):close() end -- a rename would replace it
  local part = path .. ".part"
  assert(not io.open(part), part .. " is there already; take it away")
  local file = assert(io.open(part, "wb"))
  local good, why = file:write(text)
  local closed, late = file:close()
  if good and closed then good, why = os.rename(part, path) end
  if good and closed then return end
  os.remove(part)
  error(("cannot write %s: %s"):format(path, why or late), 0)
end
