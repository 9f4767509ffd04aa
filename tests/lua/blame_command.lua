-- SPDX-License-Identifier: MIT
--
-- Shared by the specs of `moongrid blame`: run it, read its verdict, and make a folder of dumps.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local assert = require "luassert"

-- Return the output, the errors and the exit code.
local function blame(words) return support.run("build/moongrid blame " .. words) end

local function verdict(words)
  local out, err, code = blame(words .. " --json")
  assert.equal("", err)
  assert.equal(0, code)
  return json.decode(out)
end

-- A folder with files by name.
local function folder_of(files)
  local folder = support.folder()
  for name, text in pairs(files) do support.write(folder .. "/" .. name, text) end
  return folder
end

return { blame = blame, verdict = verdict, folder_of = folder_of }
