-- SPDX-License-Identifier: MIT
--
-- moongrid init: write a folder with a first recipe, its tests, and the annotations of recipes' words for editors.

local host = require "host"
local text = require "command.base.text"

local ANNOTATIONS = ".moongrid"

-- The settings of the Lua language server: the annotations are a library, and recipes are Lua 5.4.
local LUARC = '{\n  "runtime.version": "Lua 5.4",\n  "workspace.library": ["' .. ANNOTATIONS
              .. '"],\n  "workspace.checkThirdParty": false\n}\n'

-- Make a folder, and those above it.
local function make_folders(path)
  for stop in path:gmatch "()/" do
    if stop > 1 then host.make_folder(path:sub(1, stop - 1)) end
  end
  host.make_folder(path)
end

-- Write a file of the folder, and print its name. If it is there already, leave it, and print `otherwise`.
local function put(folder, name, content, otherwise)
  local path = folder .. "/" .. name
  local kept = host.kind(path)
  if not kept then host.write(path, content, true) end
  text.printf("%-15s %s\n", name, kept and otherwise or "written")
end

local function put_annotations(folder)
  local path, n = folder .. "/" .. ANNOTATIONS, 0
  if host.kind(path) == "link" then
    text.refuse(1, "%s is a link; nothing is written behind it; take it away", path)
  end
  make_folders(path)
  for _, name in ipairs(host.text()) do
    if name:find "^meta" then
      host.write(path .. "/" .. name, host.text(name), true)
      n = n + 1
    end
  end
  text.printf("%-15s written: %d files of annotations\n", ANNOTATIONS, n)
end

local function run(of)
  local folder = of.words[1] or "."
  if host.kind(folder) == "file" then text.usage("init takes a folder, and %s is a file", folder) end
  if #folder > 2048 then text.usage "the name of the folder is longer than 2048 bytes" end
  make_folders(folder)
  for _, name in ipairs { "layout.lua", "layout_spec.lua", of.c and "trainer.c", of.c and "Makefile" } do
    put(folder, name, host.text(name), "is there already, and stays")
  end
  put(folder, ".luarc.json", LUARC, ('is there already, and stays; "workspace.library" with "%s" shows the annotations')
    :format(ANNOTATIONS))
  put_annotations(folder)
  if of.c then return text.put("next: ", of.words[1] and "cd " .. folder .. " && " or "", "make run\n") end
  text.put("next: moongrid draw ", of.words[1] and folder .. "/" or "", "layout.lua --world 8\n")
end

return {
  name = "init",
  place = 170,
  takes = "[FOLDER]",
  summary = "a folder to write recipes in",
  usage = "moongrid init [FOLDER] [--c]",
  about = "Make a folder to write recipes in, or add to this one: layout.lua, a first recipe; layout_spec.lua, its "
    .. "tests\nfor busted; and for editors with the Lua language server .luarc.json and annotations of all words, in\n"
    .. ".moongrid. Files that are there already stay, except for these annotations: after an update of moongrid\n"
    .. "run init again.",
  example = "moongrid init FOLDER",
  words = 1,
  options = { { "c", help = "also a trainer in C over MPI: trainer.c, and a Makefile" } },
  run = run,
}
