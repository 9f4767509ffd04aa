-- SPDX-License-Identifier: MIT
--
-- man.lua 1|3 OUT COMMAND: write a manual page: moongrid.1 from the --help of the command and the annotations of Lua,
-- moongrid.3 from the headers, by man3.lua.

local section, path, moongrid = arg[1], arg[2], arg[3]
local out = {}

local function put(...) out[#out + 1] = string.format(...) end

-- Escape text, so that nothing in it is a roff command.
local function plain(text)
  return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("\n([.'])", "\n\\&%1"):gsub("^([.'])", "\\&%1"))
end

-- Wrap text to lines of at most 72 characters; each line but the first begins with `deeper`.
local function folded(text, deeper)
  local lines = { "" }
  for word in text:gmatch "%S+" do
    local line = lines[#lines]
    if #line + 1 + #word > 72 and line:find "%S" then
      lines[#lines + 1] = deeper .. word
    else
      lines[#lines] = line == "" and word or line .. " " .. word
    end
  end
  return plain(table.concat(lines, "\n"))
end

local function read(name)
  local file = assert(io.open(name))
  local text = file:read "a"
  file:close()
  return text
end

local function output(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read "a"
  assert(pipe:close(), command)
  return (text:gsub("%s+$", ""))
end

local version = read "src/moongrid.h":match 'MGRID_VERSION +"([%d.]+)"'
local date = read "src/CHANGES.md":match "%((%d%d%d%d%-%d%d%-%d%d)%)" -- of the last release, so that builds are equal
put('.\\" Made by scripts/make/man.lua; do not edit.')
put('.TH MOONGRID %s "%s" "moongrid %s" "moongrid"', section, date, version)
put ".nh\n.ad l\n.SH NAME" -- do not hyphenate names

-- Return the head of an option in a help text, and the text after it, which follows a gap of two blanks or more.
local function option_of(line) return line:match "^  (%-.-)%s%s+(.+)$" end

-- Write a help text: usage, paragraphs, and options whose texts continue in indented lines.
local function help(text)
  local usage, rest = text:match "^usage: (.-)\n\n(.*)$"
  put ".nf"
  local lines = {}
  for written in usage:gmatch "[^\n]+" do
    local line = written:gsub("^ +", "")
    local begins = line:find "^m" -- moongrid, mpirun
    lines[#lines + (begins and 1 or 0)] = begins and line or lines[#lines] .. " " .. line
  end
  for _, line in ipairs(lines) do put("%s", folded(line, "    ")) end
  put ".fi"
  local prose = false -- the last line was of a paragraph
  for line in (rest .. "\n"):gmatch "([^\n]*)\n" do
    local head, about = option_of(line)
    if line == "" then
      prose = false
    elseif head then
      put(".TP 16\n.B %s\n%s", plain(head), folded(about, ""))
      prose = false
    else
      if not prose and not line:find "^%s%s%s" then
        put ".PP"
        prose = true
      end
      put("%s", folded(line, ""))
    end
  end
end

local examples = {
  { "what groups a recipe makes for 64 ranks", "moongrid plan layout.lua --world 64 tp=4 pp=2" },
  { "why ranks 3 and 7 talk", "moongrid why layout.lua --world 64 tp=4 pp=2 3 7" },
  { "a picture, and a page to look around in", "moongrid draw layout.lua --world 16 -o layout.svg",
    "moongrid draw layout.lua --world 8,16 tp=1,2,4 -o layout.html" },
  { "refuse a layout whose tensor-parallel groups leave their node",
    "moongrid check layout.lua --world 8-4096 --law \"within(tp, node)\"" },
  { "create and prove the communicators on 8 ranks", "mpirun -n 8 moongrid run layout.lua tp=2" },
  { "what changes, and which bytes go where",
    "moongrid diff layout.lua --world 64 tp=2 vs tp=4", "moongrid move layout.lua --world 64 tp=2 vs tp=4" },
  { "a recipe that another program writes", "generate | moongrid plan - --world 64" },
}

local codes = { "all is well", "the recipe or the sizes are refused", "the command line is wrong", "a limit is hit",
  "a backend failed", "the ranks disagree" }

if section == "1" then
  put "moongrid \\- process groups of parallel training, from a recipe to communicators"
  local own = output(moongrid .. " --help")
  put ".SH SYNOPSIS\n.nf"
  for name, takes in own:gmatch "\n  (%l+) (.-)  " do put(".BI \"moongrid %s\" \" %s\"", name, plain(takes)) end
  put ".B moongrid \\-\\-help\n.B moongrid \\-\\-version\n.fi\n.SH DESCRIPTION"
  put("%s", folded("A recipe is a Lua file that says which ranks of a job form which groups. moongrid plans it for a "
    .. "world of any size, without a GPU or a launcher, shows it, checks it, and creates and proves its communicators "
    .. "under a launcher. RECIPE is a file, the name of a bundled one, or - for standard input; NAME=VALUE sets a "
    .. "parameter.", ""))
  put ".SH COMMANDS"
  for name in own:gmatch "\n  (%l+) " do
    put(".SS %s", name)
    help(output(moongrid .. " " .. name .. " --help"))
  end
  local annotations = dofile "scripts/make/annotations.lua"
  for _, class in ipairs { { "Options", "OPTIONS OF A FAMILY" }, { "Nccl", "FIELDS OF THE OPTION nccl" } } do
    put(".SH %s", class[2])
    for _, field in ipairs(annotations.fields(class[1])) do
      put(".TP 16\n.B %s\n%s", field.name, folded(field.doc, ""))
    end
  end
  put ".SH VERBS OF A RECIPE"
  put("%s", folded('The groups of 8 ranks. g is grid(world, "tp-dp-pp", { tp = 2, dp = 2, pp = 2 }); low and high are '
    .. 'grids "x-y" of 2 x 2 over the lower and the upper half.', ""))
  for _, one in ipairs(annotations.examples()) do put(".TP 4\n\\fB%s\\fR\n%s", plain(one.code), plain(one.groups)) end
  put ".SH EXIT STATUS"
  for code, meaning in ipairs(codes) do put(".TP 4\n.B %d\n%s", code - 1, meaning) end
  put ".SH EXAMPLES"
  for _, example in ipairs(examples) do
    put(".TP\n%s:\n.nf", plain((example[1]:gsub("^%l", string.upper))))
    for i = 2, #example do put("%s", plain(example[i])) end
    put ".fi"
  end
  put ".SH SEE ALSO"
  put ".BR moongrid (3)"
else
  put "moongrid \\- the C library of moongrid"
  dofile "scripts/make/man3.lua"(put, plain, read)
  put ".SH SEE ALSO"
  put ".BR moongrid (1)"
end

local file = assert(io.open(path, "w"))
file:write((table.concat(out, "\n"):gsub("(\n%.S[HS] [^\n]*)\n%.PP\n", "%1\n")), "\n") -- a section begins a paragraph
file:close()
