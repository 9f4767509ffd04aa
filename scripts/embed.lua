-- SPDX-License-Identifier: MIT
--
-- embed.lua OUT [WITHOUT...]: write the prelude, the readers of machines and the bundled recipes, except those named
-- WITHOUT, as C, so that the library needs no files beside it: as text, and compiled by this Lua, which is ten times
-- faster to load. The library uses the compiled form only with the release of Lua that made it; see bundle.h.
-- Pictures are text alone: they are loaded by need, and then work longer than that takes.
-- embed.lua --command OUT: the same of lua/command, for the command, and the page of a step, which it alone makes.
-- Run in the project's root by make.

local function numbers(bytes)
  local list = {}
  for i = 1, #bytes, 24 do
    list[#list + 1] = table.concat({ bytes:byte(i, math.min(i + 23, #bytes)) }, ",")
  end
  return table.concat(list, ",\n  ")
end

-- Remove from a file's text what no message shows: indentation, comments, blanks. Keep the lines, so
-- that line numbers in messages stay right. From a line with a string remove only the indentation. (Refuse a long
-- string that spans lines.)
local function read(path)
  local lines = {}
  for written in io.lines(path) do
    assert(not written:find("%[=*%["), path .. ": a long string would lose its indentation")
    local line = written:gsub("^%s+", ""):gsub("^%-%-.*", ""):gsub("^([^\"']-)%s+%-%-%s.*$", "%1")
    if not line:find("[\"']") then
      line = line:gsub("%s+", " "):gsub("([,{]) ", "%1"):gsub(" }", "}"):gsub("([^>]) = ", "%1=") -- local x <close> = y
    end
    lines[#lines + 1] = line
  end
  return table.concat(lines, "\n") .. "\n"
end

-- The release of the interpreter that runs this: "Lua 5.4.4 ", as lua_ident has it.
local function release()
  local said = io.popen(("'%s' -v 2>&1"):format(arg[-1])):read("a")
  return assert(said:match("^Lua %d+%.%d+%.%d+ "), "no release in: " .. said)
end

local stripped = (os.getenv "COV" or "") == ""
local of_command = arg[1] == "--command" and table.remove(arg, 1)
local without = {}
for i = 2, #arg do without[arg[i]] = true end

-- The Lua files of a folder: { name in error messages, path, name of the file without .lua }
local function files(folder, prefix, suffix)
  local list = {}
  for path in io.popen(("ls %s/*.lua | LC_ALL=C sort"):format(folder)):lines() do
    local name = path:match("([^/]+)%.lua$")
    if not without[name] then list[#list + 1] = { prefix .. name .. suffix, path, name } end
  end
  return list
end

-- The Lua files of its folders, each named FOLDER.FILE: the parts of a recipe, of a subcommand.
local function parts_of(folder, prefix)
  local list = {}
  for path in io.popen(("ls -d %s/*/ 2> /dev/null | LC_ALL=C sort"):format(folder)):lines() do
    local name = path:match("([^/]+)/$")
    for _, file in ipairs(without[name] and {} or files(path, prefix .. name .. ".", "")) do list[#list + 1] = file end
  end
  return list
end

local prelude, recipes = files("lua/prelude", "moongrid/", ".lua"), files("lua/moongrid/recipes", "", "")
local parts = parts_of("lua/moongrid/recipes", "")

-- Check that every file that the prelude loads by name, core.library("x"), exists.
local there = {}
for _, file in ipairs(prelude) do there[file[3]] = true end
for _, file in ipairs(prelude) do
  for name in io.open(file[2]):read("a"):gmatch "core%.library[ (]+[\"']([^\"']*)[\"']" do
    if not there[name] then
      io.stderr:write(("%s asks for '%s', and there is no lua/prelude/%s.lua\n"):format(file[2], name, name))
      os.exit(1)
    end
  end
end

local out = assert(io.open(arg[1], "wb"))
out:write(('/* Made by scripts/embed.lua; do not edit. */\n#include "%s"\n\n')
  :format(of_command and "command/words.h" or "recipe/bundle.h"))
if not of_command then out:write(('const char mgrid_bundle_release[] = "%s";\n\n'):format(release())) end

-- The texts of the files, and the initializer of a chunk each. With `texts_alone`, and of a page, without the compiled
-- form.
local function write_texts(label, list, stripped, texts_alone)
  local chunks = {}
  for i, file in ipairs(list) do
    local text = file.text or read(file[2])
    local binary = string.dump(assert(load(text, "=" .. file[1], "t")), stripped) -- with its line numbers
    out:write(("static const unsigned char %s_text%d[] = {\n  %s };\n"):format(label, i, numbers(text)))
    if texts_alone or file.text then
      chunks[i] = ('{ "%s", %s_text%d, %d, NULL, 0 }'):format(file[1], label, i, #text)
      goto next
    end
    out:write(("static const unsigned char %s_binary%d[] = {\n  %s };\n\n"):format(label, i, numbers(binary)))
    chunks[i] = ('{ "%s", %s_text%d, %d, %s_binary%d, sizeof %s_binary%d }')
      :format(file[1], label, i, #text, label, i, label, i)
    ::next::
  end
  return chunks
end

local function write_list(name, chunks)
  local rows = table.concat(chunks, ",\n  ")
  out:write(("const mgrid_chunk %s[] = {\n  %s,\n  { NULL, NULL, 0, NULL, 0 }\n};\n\n"):format(name, rows))
end

-- A page with the scripts that its lines "@NAME.js@" name, as a chunk that returns it. `short`: without indentation and
-- comments.
local function page(name, short)
  local lines = {}
  local function add(file)
    for line in io.lines("lua/pictures/" .. file) do
      local script = line:match "^@(.+%.js)@$"
      if short then line = line:gsub("^%s+", "") end
      if script then
        add(script)
      elseif not short or not (line == "" or line == "*/" or line:find "^/[/*]" or line:find "^%*%*") then
        lines[#lines + 1] = line
      end
    end
  end
  add(name .. ".html")
  return { ("moongrid.pictures.%s_html"):format(name), text = ("return %q\n"):format(table.concat(lines, "\n")) }
end

if of_command then -- moongrid.command.why, which `require "command.why"` finds
  local list = files("lua/command", "moongrid.command.", "")
  for _, file in ipairs(parts_of("lua/command", "moongrid.command.")) do list[#list + 1] = file end
  list[#list + 1] = page "chart"
  write_list("cli_lua", write_texts("command", list, stripped))
  out:close()
  os.exit(0)
end

-- mgrid_prelude_NAME, so that C code which uses a missing file does not link
local texts = write_texts("prelude", prelude, stripped)
local pointers = {}
for i, file in ipairs(prelude) do
  out:write(("const mgrid_chunk mgrid_prelude_%s = %s;\n"):format(file[3], texts[i]))
  pointers[i] = ("  &mgrid_prelude_%s,\n"):format(file[3])
end
out:write(("\nconst mgrid_chunk *const mgrid_prelude[] = {\n%s  NULL\n};\n\n"):format(table.concat(pointers)))

write_list("mgrid_machine_lua", write_texts("machine", files("lua/machine", "moongrid/machine/", ".lua"), true))

texts = write_texts("recipe", recipes)
for _, chunk in ipairs(write_texts("part", parts)) do texts[#texts + 1] = chunk end
write_list("mgrid_bundled", texts)

local pictures = files("lua/pictures", "moongrid.pictures.", "")
pictures[#pictures + 1] = page("page", true)
write_list("mgrid_pictures", write_texts("picture", pictures, false, true))
out:write("const char *const mgrid_bundled_names[] = {\n")
for _, recipe in ipairs(recipes) do out:write(('  "%s",\n'):format(recipe[3])) end
out:write("  NULL\n};\n")
out:close()
