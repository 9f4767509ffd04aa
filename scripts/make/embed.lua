-- SPDX-License-Identifier: MIT
--
-- embed.lua OUT [WITHOUT...]: write as C the Lua files that are inside the library: lua/prelude, lua/machine, the
-- bundled recipes except those named WITHOUT, and the pictures. embed.lua --command OUT [WITHOUT...]: write the files
-- that are only in the command: lua/command except the subcommands named WITHOUT, the charts of a step, and the files
-- that `init` writes. Each file is a row of bundle.h: its text, and for files that every start needs also bytecode,
-- which loads ten times faster. The library uses the bytecode only with the release of Lua that made it. make runs this
-- script in the root.

-- The files with bytecode: those that a plan needs, the subcommands that answer at once, and recipes that take half a
-- millisecond to parse. Other files are loaded for work that takes longer than parsing them, or after an error.
local COMPILED = {}
for name in ([[
  prelude/queries prelude/kinds prelude/options prelude/parameters prelude/policies prelude/recipe
  prelude/shared prelude/steps
  moongrid/recipes/megatron moongrid/recipes/megatron/ moongrid/recipes/deepspeed moongrid/recipes/jax_mesh
  pictures/groups pictures/reports command/base/ command/ask command/check command/diff command/draw command/explain
  command/init command/machine command/plan command/policy command/recipes command/step command/why
]]):gmatch "%S+" do COMPILED["lua/" .. name] = true end

local of = arg[1]:match "^%-%-" and table.remove(arg, 1)
local of_command, of_page = of == "--command", of == "--page"

local function is_compiled(path)
  return not of_page and (COMPILED[path:match "^(.*)%.lua$"] or COMPILED[path:match "^.*/"])
end

local pages = dofile((arg[0]:gsub("[^/]*$", "pages.lua")))
local keep_lines = (os.getenv "COV" or "") ~= "" -- the reached lines are recorded

local function numbers(bytes)
  local list = {}
  for i = 1, #bytes, 24 do
    list[#list + 1] = table.concat({ bytes:byte(i, math.min(i + 23, #bytes)) }, ",")
  end
  return table.concat(list, ",\n  ")
end

local function whole(path) return assert(io.open(path, "rb")):read "a" end

-- Remove indentation, comments and blanks from a file's text. Keep the lines, so that line numbers in messages stay
-- right. From a line with a string remove only the indentation. Refuse a file if the result compiles to other code, as
-- with a long string over indented lines.
local function shortened(path)
  local lines = {}
  for written in io.lines(path) do
    local line = written:gsub("^%s+", ""):gsub("^%-%-.*", ""):gsub("^([^\"']-)%s+%-%-%s.*$", "%1")
    if not line:find("[\"']") then
      line = line:gsub("%s+", " "):gsub("([,{]) ", "%1"):gsub(" }", "}"):gsub("([^>]) = ", "%1=") -- local x <close> = y
    end
    lines[#lines + 1] = line
  end
  local text = table.concat(lines, "\n") .. "\n"
  local meant, means = assert(load(whole(path), "@" .. path, "t")), load(text, "@" .. path, "t")
  assert(means and string.dump(means, true) == string.dump(meant, true), path .. ": its text means something else when "
    .. "its lines lose their indentation and comments; a long string may stand in the way")
  return text
end

-- The release of the interpreter that runs this: "Lua 5.4.4 ", as lua_ident has it.
local function release()
  local said = io.popen(("'%s' -v 2>&1"):format(arg[-1])):read("a")
  return assert(said:match("^Lua %d+%.%d+%.%d+ "), "no release in: " .. said)
end

local without = {}
for i = 2, #arg do without[arg[i]] = true end

local function paths(pattern) return io.popen(("ls -d %s | LC_ALL=C sort"):format(pattern)):lines() end

-- A row is { name, text, compiled, stripped }; stripped: without line numbers and names of variables, because no
-- message shows them.

-- Append the Lua files of a folder, and of its folders, whose names in messages are PREFIX .. FOLDER.FILE .. SUFFIX.
-- `make` returns the row of a file.
local function add_files(rows, folder, prefix, suffix, make)
  for path in paths(folder .. "/*") do
    local base = path:match "[^/]+$"
    local file = base:match "^(.+)%.lua$"
    if file and not without[file] then
      rows[#rows + 1] = make(prefix .. file .. suffix, path)
    elseif not base:find(".", 1, true) and not without[base] then
      add_files(rows, path, prefix .. base .. ".", suffix, make)
    end
  end
  return rows
end

local function text_row(name, path) return { name, shortened(path) } end

local function start_row(name, path)
  return { name, shortened(path), compiled = is_compiled(path), stripped = not keep_lines }
end

-- Keep the whole text of a recipe, because the command shows it, and its lines for messages.
local function recipe_row(name, path) return { name, whole(path), compiled = is_compiled(path) } end

-- A page, as a chunk that returns it.
local function page_row(name)
  return { ("moongrid.pictures.%s_html"):format(name), ("return %q\n"):format(pages.page(name .. ".html")) }
end

-- Return the files that pictures/init.lua requires, directly or through others: these are in the library. Charts are
-- only in the command, the playground only in the module for browsers.
local function of_library()
  local found = {}
  local function add(name)
    local path = ("lua/pictures/%s.lua"):format(name)
    if found[name] or not io.open(path) then return end
    found[name] = true
    for other in whole(path):gmatch "[\"']pictures%.([%w_]+)[\"']" do add(other) end
  end
  for _, name in ipairs { "init", "boxes", "svg", of_page and "playground" } do add(name) end
  return found
end

local function add_pictures(rows, in_library)
  local drawn = of_library()
  for _, row in ipairs(add_files({}, "lua/pictures", "moongrid.pictures.", "", start_row)) do
    local name = row[1]:match "[^.]+$"
    if (drawn[name] or false) == in_library and (of_page or name ~= "playground") then rows[#rows + 1] = row end
  end
  if not of_page then rows[#rows + 1] = page_row(in_library and "page" or "chart") end
  return rows
end

local HEAD = '/* Made by scripts/make/embed.lua; do not edit. */\n#include "%s"\n\n'
local out = assert(io.open(arg[1], "wb"))

-- Write a list of rows as a C array of this name.
local function write(list, rows)
  local chunks = {}
  for i, row in ipairs(rows) do
    local name, text = row[1], row[2]
    out:write(("static const unsigned char %s_text%d[] = {\n  %s };\n"):format(list, i, numbers(text)))
    chunks[i] = ('{ "%s", %s_text%d, %d, NULL, 0 }'):format(name, list, i, #text)
    if row.compiled then
      local binary = string.dump(assert(load(text, "=" .. name, "t")), row.stripped)
      out:write(("static const unsigned char %s_binary%d[] = {\n  %s };\n"):format(list, i, numbers(binary)))
      chunks[i] = ('{ "%s", %s_text%d, %d, %s_binary%d, %d }'):format(name, list, i, #text, list, i, #binary)
    end
  end
  chunks[#chunks + 1] = "{ NULL, NULL, 0, NULL, 0 }"
  out:write(("\nconst mgrid_chunk %s[] = {\n  %s\n};\n\n"):format(list, table.concat(chunks, ",\n  ")))
end

if of_command then -- moongrid.command.why, which `require "command.why"` finds
  out:write(HEAD:format "command/cli.h")
  local rows = add_pictures(add_files({}, "lua/command", "moongrid.command.", "", start_row), false)
  for path in paths "lua/moongrid/meta*.lua examples/layout.lua examples/init/*" do
    rows[#rows + 1] = { path:match "[^/]+$", whole(path) }
  end
  write("cli_files", rows)
  out:close()
  os.exit(0)
end

-- Check that every file that the prelude loads by name, core.library("x"), exists.
for path in paths "lua/prelude/*.lua" do
  for name in whole(path):gmatch "core%.library[ (]+[\"']([^\"']*)[\"']" do
    if not io.open(("lua/prelude/%s.lua"):format(name)) then
      io.stderr:write(("%s asks for '%s', and there is no lua/prelude/%s.lua\n"):format(path, name, name))
      os.exit(1)
    end
  end
end

out:write(HEAD:format "recipe/bundle.h")
out:write(('const char mgrid_bundle_release[] = "%s";\n\n'):format(release()))
write("mgrid_prelude", add_files({}, "lua/prelude", "moongrid/", ".lua", start_row))
write("mgrid_machine_lua", add_files({}, "lua/machine", "moongrid/machine/", ".lua", text_row))
local recipes = add_files({}, "lua/moongrid/recipes", "", "", recipe_row)
write("mgrid_bundled", recipes)
write("mgrid_pictures", add_pictures({}, true))
out:write "const char *const mgrid_bundled_names[] = {\n"
for _, row in ipairs(recipes) do
  if not row[1]:find(".", 1, true) then out:write(('  "%s",\n'):format(row[1])) end
end
out:write "  NULL\n};\n"
out:close()
