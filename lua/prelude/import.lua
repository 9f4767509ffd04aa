-- SPDX-License-Identifier: MIT
--
-- recipe.import "./helpers.lua": return the functions of a file that several recipes of a folder share. The file runs
-- once, in the sandbox of recipe files. It must be in the folder of the recipe that the host loaded, or in a folder
-- below.

local core, shared = ...
local imported = {} -- key of a file -> { functions, text = a hash of its text and imports, called }

-- Return imported[key] of the file; run the file if it has not run yet. Paths in the file are relative to its folder.
local function run(name, running, where)
  local path, chunk, key, text, _, called = core.load(name, running[#running].path)
  if imported[key] then return imported[key] end
  for _, file in ipairs(running) do
    if file.key == key then core.raise_at(where, "'" .. name .. "' imports itself") end
  end
  local file = { path = path, text = text, key = key, called = called }
  running[#running + 1] = file
  local ok, value = xpcall(chunk, core.message)
  running[#running] = nil
  if not ok then error(value, 0) end
  if type(value) ~= "table" then
    core.raise_at(where, string.format("%s returned %s; end it with 'return { name = function, ... }'", path,
      value == nil and "nothing" or core.kind(value)))
  end
  for field, fn in shared.sorted_pairs(value) do
    if type(field) ~= "string" or type(fn) ~= "function" then
      core.raise_at(where, string.format("%s returned a table where '%s' is not a name with a function", path,
        shared.word(field)))
    end
  end
  local functions = shared.vocabulary("function of " .. path, function() return value end)
  imported[key] = { functions = functions, text = file.text, called = file.called }
  return imported[key]
end

-- `running` has the files that are running, the innermost last, each with the hash of its text.
return function(name, running, where)
  local file = running[#running]
  if not file then core.raise_at(where, "call recipe.import at the top of a file, outside of build") end
  if type(name) ~= "string" or string.sub(name, -4) ~= ".lua" then
    core.raise_at(where, "recipe.import takes the path of a file that ends with .lua, as in \"./helpers.lua\", not "
      .. shared.show(name))
  end
  local got = run(name, running, where)
  file.text = file.text * 31 + got.text -- so ranks compare the texts of imported files, too
  file.called = shared.joined(file.called, got.called)
  return got.functions
end
