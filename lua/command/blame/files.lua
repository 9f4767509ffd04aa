-- SPDX-License-Identifier: MIT
--
-- files: read what the words of the command line name: files, folders, archives (tar, tar.gz, which are not unpacked on
-- the disk), "-" for standard input, and "ncclras", a command that is run unless a file has this name. Return a list of
-- { path, text, at }, where `at` is when the file was written, in seconds since 1970, or nil.

local host = require "host"
local sorted = require "command.base.sorted"
local text = require "command.base.text"

local MOST = 1 << 30    -- most bytes of a file, and of all files in an archive
local FILES = 1 << 17   -- most files of a folder or an archive
local BLOCK = 512       -- bytes of a block of tar

local function too_large(path, bytes)
  text.refuse(1, "%s has %s; %s at most are read", path, text.bytes(bytes), text.bytes(MOST))
end

local function read(path, size)
  if size and size > MOST then too_large(path, size) end
  local file, why = io.open(path, "rb")
  local all = file and file:read(MOST + 1)
  if file then file:close() end
  if not file then
    local remedy = path:find "^%s*[%[{]" and "; give the path of a file, or - and this text on standard input" or ""
    text.refuse(1, "cannot read %s%s", why, remedy)
  end
  if all and #all > MOST then too_large(path, #all) end
  return all or ""
end

-- Return what a command prints, or nil if it fails.
local function output(command)
  local pipe = io.popen(command, "r")
  local all = pipe and pipe:read(MOST + 1) or ""
  local done = pipe and pipe:close()
  if #all > MOST then too_large("the output of " .. command, #all) end
  return done and all or nil
end

local function quoted(path) return "'" .. path:gsub("'", "'\\''") .. "'" end

-- Append the files of a tar. Names are only printed; a name that leads out of the archive is refused nevertheless,
-- because no dump has such a name.
local function untar(path, all, list)
  local at, long, found = 1, nil, false
  while at + BLOCK - 1 <= #all do
    local head = all:sub(at, at + BLOCK - 1)
    if not head:find "[^\0]" then break end
    local name, kind, prefix = head:sub(1, 100):match "^[^\0]*", head:sub(157, 157), head:sub(346, 500):match "^[^\0]*"
    local size = tonumber(head:sub(125, 136):match "[0-7]+" or "", 8)
    local written = tonumber(head:sub(137, 148):match "[0-7]+" or "0", 8)
    if not size or head:sub(258, 262) ~= "ustar" then
      text.refuse(1, "%s is not a tar from byte %d on", path, at - 1)
    end
    local body = all:sub(at + BLOCK, at + BLOCK + size - 1)
    at = at + BLOCK + (size + BLOCK - 1) // BLOCK * BLOCK
    if kind == "L" then
      long = body:match "^[^\0]*"
    elseif kind == "x" then
      long = body:match "%d+ path=([^\n]*)\n" or long
    else
      name, long = long or (prefix ~= "" and prefix .. "/" .. name or name), nil
      if ("/" .. name .. "/"):find "/%.%./" or name:find "^/" or name:find "%c" then
        text.refuse(1, "%s holds '%s', a name outside of the archive", path, name)
      end
      if kind == "0" or kind == "\0" then
        found = true
        if #list == FILES then text.refuse(1, "%s holds more than %d files", path, FILES) end
        list[#list + 1] = { path = path .. ":" .. name, text = body, at = written }
      end
    end
  end
  if not found then text.refuse(1, "%s holds no file", path) end
end

-- Split the text of torch's debug server: each dump follows a line "=== Rank 3: http://host:port ===".
local function split(list, path, all, at)
  local from, rank = 1, nil
  for stop, next_rank, start in all:gmatch "()=== Rank (%d+): [^\n]* ===\n()" do
    if rank then list[#list + 1] = { path = path .. ":rank_" .. rank, text = all:sub(from, stop - 1), at = at } end
    from, rank = start, next_rank
  end
  list[#list + 1] = { path = path .. (rank and ":rank_" .. rank or ""), text = all:sub(from), at = at }
end

local unread = { xz = "^\xFD7zXZ", zip = "^PK\3\4", bzip2 = "^BZh%d", zstd = "^\x28\xB5\x2F\xFD" }

-- Append the files of a text that is compressed, an archive, or a dump itself.
local function add(list, path, all, at)
  for name, magic in sorted(unread) do
    if all:find(magic) then
      text.refuse(1, "%s is compressed by %s: give a tar, a tar.gz, or the folder", path, name)
    end
  end
  if all:find "^\x1f\x8b" then
    all = output("gzip -dc -- " .. quoted(path) .. " 2>/dev/null") or text.refuse(1, "gzip cannot read %s", path)
  end
  if all:sub(258, 262) == "ustar" then return untar(path, all, list) end
  split(list, path, all, at)
end

-- A folder without files stands for the one folder in it, or for the folders of its ranks, as torchrun makes them.
local function add_folder(list, path)
  local names = host.folder(path) or text.refuse(1, "cannot read the folder %s", path)
  local before, inner, of_ranks = #list, {}, true
  table.sort(names)
  for _, name in ipairs(names) do
    local one = path:gsub("/*$", "/") .. name
    local kind, size, at = host.kind(one)
    if (kind == "file" or kind == "link") and size and not host.folder(one) and not name:find "^%." then
      if #list == FILES then text.refuse(1, "%s holds more than %d files", path, FILES) end
      add(list, one, read(one, size), at)
    elseif kind == "folder" and not name:find "^%." then
      inner[#inner + 1], of_ranks = one, of_ranks and name:find "^%d+$" ~= nil
    end
  end
  if #list > before then return end
  if #inner > 1 and not of_ranks then
    text.refuse(1, "the folder %s holds %d folders and no file: give one of them, as %s", path, #inner, inner[1])
  end
  for _, one in ipairs(inner) do add_folder(list, one) end
  if #inner == 0 then text.refuse(1, "the folder %s holds no file; give the folder with the dumps", path) end
end

return function(words)
  local list = {}
  for _, word in ipairs(words) do
    local kind, size, at = host.kind(word)
    if word == "-" then
      split(list, "standard input", io.read "a" or "")
    elseif not kind and word == "ncclras" then
      local all = output "ncclras -v -f json 2>/dev/null" or output "ncclras -v 2>/dev/null"
      if not all then text.refuse(1, "ncclras cannot be run, or reaches no job; it comes with NCCL 2.24 and newer") end
      list[#list + 1] = { path = "ncclras", text = all }
    elseif host.folder(word) then
      add_folder(list, word)
    elseif kind == "other" then -- reading a pipe without a writer would never end
      text.refuse(1, "%s is neither a file nor a folder", word)
    else
      add(list, word, read(word, size), at)
    end
  end
  return list
end
