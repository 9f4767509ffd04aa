-- SPDX-License-Identifier: MIT
--
-- site.lua OUT: write the documents as the pages of a site, in OUT/docs, with OUT/mkdocs.yml for mkdocs
-- (scripts/release/site). Each document is a page, and each source file that a page links. The headers, the annotations
-- of Lua and the help of the command become references; three recipes are drawn. If `make wasm` has made the
-- playground, the site has it, and each recipe on a page has a link that opens the recipe in the playground.

local out = ...
local headers = dofile "scripts/make/headers.lua"

-- The contents of the site, in the order of its menu: { title, file } or { title, { ... } }.
local menu = {
  { "Start", "README.md" },
  { "The first quarter of an hour", { { "With the command", "examples/tutorial/README.md" },
    { "In C", "examples/tutorial/c.md" }, { "In Python with torch", "examples/tutorial/python.md" } } },
  { "Installing", "scripts/installing.md" },
  { "Recipes", { { "Writing recipes", "lua/README.md" }, { "Cookbook", "examples/cookbook/README.md" },
    { "The playground", "examples/playground.md" }, { "My job hangs", "examples/cookbook/hangs.md" },
    { "Bringing your own layout", "examples/porting/README.md" }, { "Pictures", "examples/pictures/README.md" },
    { "Three recipes to click in", "draw.md" } } },
  { "The command", { { "The command", "src/command/README.md" },
    { "The fields of plan --json", "src/command/plan-json.md" } } },
  { "Layouts in use", { { "What travels in a step", "src/step/README.md" },
    { "Steps that hang", "examples/steps/README.md" }, { "Recorded steps", "tests/golden/steps/README.md" },
    { "Published models", "examples/published/README.md" }, { "Published runs", "tests/golden/runs/README.md" },
    { "Where ranks run", "src/machine/README.md" }, { "Lost ranks", "src/survive/README.md" },
    { "Ranks that join", "src/survive/joining.md" },
    { "Moving tensors", "src/tensors/README.md" }, { "Checkpoints", "src/checkpoints/README.md" } } },
  { "In a C program", { { "Embedding", "src/embedding.md" }, { "MPI and NCCL", "src/comm/README.md" },
    { "Fortran", "src/fortran/README.md" }, { "A trainer", "examples/trainer/README.md" },
    { "Ports", "examples/ports/README.md" }, { "Ten adoptions", "examples/ports/adoptions.md" } } },
  { "Python", "src/python/README.md" },
  { "torch", "examples/torch/README.md" },
  { "Promises and limits", { { "Promises and limits", "src/promises.md" }, { "What stays", "src/stability.md" } } },
  { "What it costs", "scripts/lab/costs.md" },
  { "Reference", { { "Words", "src/glossary.md" }, { "The command", "reference/command.md" },
    { "Verbs and options", "reference/verbs.md" }, { "C", "reference/c.md" }, { "Lua", "reference/lua.md" } } },
  { "Inside", { { "Where things are", "src/README.md" }, { "Families", "src/families/README.md" },
    { "Plans", "src/plan/README.md" }, { "Recipes", "src/recipe/README.md" }, { "The backends", "src/comm/inside.md" },
    { "MPI", "src/comm/mpi/README.md" }, { "NCCL", "src/comm/nccl/README.md" },
    { "Steps", "src/step/inside.md" }, { "Recovery", "src/survive/inside.md" },
    { "The command in Lua", "lua/command/README.md" }, { "Pictures in Lua", "lua/pictures/README.md" },
    { "Scripts", "scripts/README.md" }, { "The laboratory", "scripts/lab/README.md" },
    { "Tests", "tests/README.md" }, { "What it withstands", "tests/trust.md" },
    { "Fuzzing", "tests/fuzz/README.md" }, { "The stand-in for NCCL", "tests/nccl/standin/README.md" },
    { "A CUDA runtime without a GPU", "tests/cuda/README.md" }, { "Records on it", "tests/cuda/records.md" },
    { "On a GPU", "tests/gpu/README.md" }, { "Record of an H200", "tests/gpu/2026-11-27.md" },
    { "Record of lost ranks", "tests/survive/2026-11-29-openmpi5.md" } } },
  { "Changes", "src/CHANGES.md" },
}
local drawn = { { "moe", "examples/moe.lua", "8,16,64" }, { "megatron", "megatron", "8,16,64" },
  { "nvl72", "examples/nvl72.lua", "72,144" } }

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a" -- nil for a folder
  file:close()
  return text
end

local function write(path, text)
  path = out .. "/" .. path
  os.execute(("mkdir -p '%s'"):format(path:match "^(.*)/"))
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local pages = {}
local function gather(list)
  for _, entry in ipairs(list) do
    if type(entry[2]) == "table" then gather(entry[2]) else pages[entry[2]] = true end
  end
end
gather(menu)

-- ------------------------------------------------------------------------ links

-- Return a path without "..": "a/c" for "a/b/../c".
local function plain(path)
  local parts = {}
  for part in path:gmatch "[^/]+" do
    if part == ".." and #parts > 0 then
      parts[#parts] = nil
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  return table.concat(parts, "/")
end

local function relative(from, to)
  local _, depth = from:gsub("/", "")
  return ("../"):rep(depth) .. to
end

local languages = { c = "c", h = "c", lua = "lua", py = "python", sh = "bash", json = "json" }
local linked = {} -- source files that some page links

-- Return the target on the site of a link on the page at `from`.
local function target(from, link)
  if link:find "^%a+:" or link:find "^#" then return link end
  local path, anchor = link:match "^([^#]*)(#?.*)$"
  path = plain((from:match "^(.*/)" or "") .. path)
  if pages[path] then return relative(from, path) .. anchor end
  if pages[path .. "/README.md"] then return relative(from, path .. "/README.md") .. anchor end
  local text = read(path)
  if not text then error(("%s links %s, which is not there"):format(from, link), 0) end
  if path:find "%.svg$" or path:find "%.png$" then
    write("docs/" .. path, text)
    return relative(from, path)
  end
  linked[path] = text
  return relative(from, "code/" .. path .. ".md")
end

-- Return the link that opens a recipe in the playground, for a page at `from`, with the first of some worlds that the
-- recipe accepts; or "" if there is no playground, or if the text is not a recipe that can be planned alone.
local playground = read "build/wasm/playground.html"
local address = dofile "scripts/make/pages.lua".address
local function try_it(from, name, text, world)
  if not playground or not ("\n" .. text):find "\nreturn recipe" then return "" end
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
  file:flush()
  local works
  for _, n in ipairs { world or 16, 16, 12, 64, 72, 96, 128, 256, 280, 384, 512, 2048 } do
    local command = ("build/moongrid plan - --world %d < '%s' > /dev/null 2>&1"):format(n, path)
    works = works or os.execute(command) and n
  end
  os.remove(path)
  local link = works and relative(from, "playground.html") .. "#" .. address(name, text, works)
  return link and ("\n[Try it in the playground](%s){target=_blank}\n"):format(link) or ""
end

local function with_links(path, text)
  local shown
  local world = text:match "%-%-world (%d+)"
  return (text:gsub("[^\n]*\n?", function(line)
    local fence = line:find "^%s*```"
    if shown and fence then
      local recipe = table.concat(shown)
      shown = nil
      return line .. try_it(path, "layout.lua", recipe, world)
    elseif shown then
      shown[#shown + 1] = line
    elseif fence then
      shown = {}
    else
      return (line:gsub("%]%(([^)%s]+)%)", function(link) return "](" .. target(path, link) .. ")" end))
    end
  end))
end

-- ------------------------------------------------------------------- references

-- Write the reference of C from the headers: each comment under its declarations.
local function c_reference()
  local t = { "# C\n\nThe public headers, whose comments are the manual." }
  local function put(...) t[#t + 1] = string.format(...) end
  -- Indented lines with columns are copied; others are prose. A word in capitals at the left begins a chapter.
  local function put_text(lines)
    local run, columns = {}, false
    local function close()
      local prose = table.concat(run, "\n"):gsub("[<>*_]", "\\%0"):gsub("%f[^\n%z] +", "")
      if #run > 0 then put("\n%s\n", columns and "```text\n" .. table.concat(run, "\n") .. "\n```" or prose) end
      run, columns = {}, false
    end
    for _, line in ipairs(lines) do
      local chapter, rest = line:match "^(%u%u[%u ]+)%f[^%u ](.*)$"
      if chapter and (rest == "" or rest:find "^%.") then
        close()
        put("\n**%s**%s\n", chapter, rest)
      elseif line == "" or (#run > 0 and (line:find "^  " == nil) ~= (run[1]:find "^  " == nil)) then
        close()
        run[1] = line ~= "" and line or nil
      else
        run[#run + 1] = line
      end
      columns = columns or line:find "^  +%S.-  +%S" ~= nil or line:find "^    %S" ~= nil
    end
    close()
  end
  for _, name in ipairs(headers.names) do
    local words, text = headers.header_of(name)
    put("\n## %s.h\n", name)
    put_text(words)
    for _, item in ipairs(headers.items_of(text)) do
      local code = {}
      for _, row in ipairs(item.code) do
        local comment = row.comment and row.comment:gsub("^%s+", ""):gsub("%s+$", "")
        code[#code + 1] = row.code .. (comment and "  /* " .. comment .. " */" or "")
      end
      local all = table.concat(code, "\n")
      local first = all:match "(mgrid_[%w_]+)%s*%(" or all:match "}%s*(mgrid_[%w_]+);" or all:match "(MGRID_[%w_]+)"
      local title = item.comment and item.comment[1]:match "^%-%-%-+ ([%l ]*%l)"
      if title then table.remove(item.comment, 1) end
      if title then put("\n### %s\n", title) elseif first then put("\n#### %s\n", first) end
      if #all > 0 then put("```c\n%s\n```\n", all) end
      if item.comment then put_text(item.comment) end
    end
  end
  return table.concat(t, "\n")
end

-- Write the annotations of Lua: a heading for each class and function, its text, its parameters and results.
local function lua_reference()
  local t = { "# Lua\n\nWhat recipes and `require \"moongrid\"` have, from the annotations for editors." }
  local files = { { "meta_recipe", "The language of recipes" }, { "meta_families", "Worlds, grids and families" },
    { "meta", "The module" }, { "meta_plan", "Plans" }, { "meta_state", "States" }, { "meta_tensor", "Tensors" },
    { "meta_losses", "Losses" }, { "meta_step", "Steps" }, { "meta_machine", "Machines" },
    { "meta_checkpoint", "Checkpoints" }, { "meta_pictures", "Pictures" } }
  local function put(...) t[#t + 1] = string.format(...) end
  local there = io.popen "ls lua/moongrid/meta*.lua | wc -l"
  assert(there:read "n" == #files, "each lua/moongrid/meta*.lua has a title here")
  there:close()
  for _, file in ipairs(files) do
    local text, tags = {}, {}
    put("\n## %s\n", file[2])
    for line in (read("lua/moongrid/" .. file[1] .. ".lua") .. "\n"):gmatch "([^\n]*)\n" do
      local tag, said = line:match "^%-%-%-@(%a+) ?(.*)$"
      local name = line:match "^function ([^)]*%))" or line:match "^(%a+) = "
      if tag == "class" then
        put("\n### %s\n", said:gsub("^moongrid%.", ""):gsub(":.*$", ""))
        put("%s\n", table.concat(text, "\n"))
        text, tags = {}, {}
      elseif tag == "field" then
        put("* `%s` %s", said:match "^(%S+) ?(.*)$")
      elseif tag and tag ~= "meta" then
        tags[#tags + 1] = ("* *%s* `%s`"):format(tag == "param" and "takes" or tag == "return" and "gives" or tag, said)
      elseif line:find "^%-%-%-" then
        text[#text + 1] = line:sub(4)
      elseif name and (#text > 0 or #tags > 0) then
        put("\n#### %s\n\n%s\n\n%s\n", name, table.concat(text, "\n"), table.concat(tags, "\n"))
        text, tags = {}, {}
      elseif line == "" then
        text, tags = {}, {}
      end
    end
  end
  return table.concat(t, "\n")
end

-- The verbs of families with the groups that they make, and the options of families.
local function verbs_reference()
  local annotations = dofile "scripts/make/annotations.lua"
  local t = { "# Verbs and options", "",
    'The groups that each verb makes of 8 ranks. `g` is `grid(world, "tp-dp-pp", { tp = 2, dp = 2, pp = 2 })`; `low`',
    'and `high` are grids "x-y" of 2 x 2 over the lower and the upper half.', "",
    "| expression | groups | [word](lua.md) |", "|---|---|---|" }
  for _, one in ipairs(annotations.examples()) do
    t[#t + 1] = ("| `%s` | `%s` | `%s` |"):format(one.code, one.groups, one.verb)
  end
  for _, class in ipairs { { "Options", "Options of a family", "option" }, { "Nccl", "Fields of `nccl`", "field" } } do
    t[#t + 1] = ("\n## %s\n\n| %s | what it is |\n|---|---|"):format(class[2], class[3])
    for _, field in ipairs(annotations.fields(class[1])) do
      t[#t + 1] = ("| `%s` | %s |"):format(field.name, field.doc)
    end
  end
  return table.concat(t, "\n") .. "\n"
end

-- The help of each subcommand.
local function command_reference()
  local function said(line)
    local pipe = assert(io.popen("build/moongrid " .. line))
    local text = pipe:read "a"
    assert(pipe:close(), line)
    return text
  end
  local own = said "--help"
  local t = { "# The command\n\n```text\n" .. own .. "```" }
  for name in own:gmatch "\n  (%l+) " do
    t[#t + 1] = ("\n## %s\n\n```text\n%s```"):format(name, said(name .. " --help"))
  end
  return table.concat(t, "\n") .. "\n"
end

-- ------------------------------------------------------------------------ write

-- Return what the home page has before the first section of README: a link to the playground, and the pictures.
local function home()
  local gallery = {}
  for file in read "examples/pictures/README.md":gmatch "%]%(([%w_]+%.svg)%)" do
    local picture = "[![%s](examples/pictures/%s){width=32%% align=top}](examples/pictures/README.md)"
    if file ~= "moe.svg" then gallery[#gallery + 1] = picture:format(file, file) end -- README has moe.svg
  end
  return (playground and "[Open the playground](playground.html){target=_blank}, " or "")
    .. "[three recipes to click in](draw.md)\n\n" .. table.concat(gallery, "\n") .. "\n\n"
end

os.execute(("rm -rf '%s/docs'"):format(out))
for path in pairs(pages) do
  local text = read(path)
  if text and path == "README.md" then
    local first, rest = with_links(path, text):match "^(.-\n)(\n## .*)"
    write("docs/" .. path, first .. "\n" .. home() .. rest)
  elseif text then
    write("docs/" .. path, with_links(path, text))
  end
end
if playground then write("docs/playground.html", playground) end
write("docs/reference/c.md", c_reference())
write("docs/reference/lua.md", lua_reference())
write("docs/reference/verbs.md", verbs_reference())
write("docs/reference/command.md", command_reference())
local list = { "# Three recipes to click in\n\nMade by `moongrid draw -o x.html`: choose a size, or a rank.\n" }
for _, one in ipairs(drawn) do list[#list + 1] = ("* [%s](draw/%s.html){target=_blank}"):format(one[2], one[1]) end
write("docs/draw.md", table.concat(list, "\n") .. "\n")
for _, one in ipairs(drawn) do
  os.execute(("mkdir -p '%s/docs/draw'"):format(out))
  local command = ("build/moongrid draw %s --world %s -o '%s/docs/draw/%s.html'"):format(one[2], one[3], out, one[1])
  assert(os.execute(command), command)
end
for path, text in pairs(linked) do
  local fence = text:find("```", 1, true) and "~~~~~" or "```"
  local page = "code/" .. path .. ".md"
  write("docs/" .. page, ("# %s\n%s\n%s%s\n%s\n%s\n"):format(path, try_it(page, path:match "[^/]+$", text), fence,
    languages[path:match "%.(%a+)$" or ""] or "text", text:gsub("\n$", ""), fence))
end

local config = { [[
site_name: moongrid
site_description: The process groups of parallel training, as a text file
docs_dir: docs
site_dir: site
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.top, navigation.tracking, search.suggest, search.highlight, content.code.copy]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      primary: indigo
      toggle: { icon: material/weather-night, name: Dark }
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      primary: indigo
      toggle: { icon: material/weather-sunny, name: Light }
markdown_extensions:
  - attr_list
  - tables
  - pymdownx.highlight
  - pymdownx.superfences
  - toc: { permalink: true, toc_depth: 4 }
plugins: [search]
validation: { links: { anchors: warn, not_found: warn, unrecognized_links: warn, absolute_links: warn } }
nav:]] }
local function nav(entries, indent)
  for _, entry in ipairs(entries) do
    if type(entry[2]) == "table" then
      config[#config + 1] = ("%s- %s:"):format(indent, entry[1])
      nav(entry[2], indent .. "    ")
    else
      config[#config + 1] = ("%s- %s: %s"):format(indent, entry[1], entry[2])
    end
  end
end
nav(menu, "  ")
config[#config + 1] = "not_in_nav: /code/\n"
write("mkdocs.yml", table.concat(config, "\n"))
