-- SPDX-License-Identifier: MIT
--
-- The tutorials of examples/tutorial: every command in them is run, in order, in one folder and one shell, and prints
-- what the page shows. `...` stands for lines that are left out. A block whose first line is a comment with the name of a
-- file is that file; "NAME, before TEXT" goes into the file, before the first line that has the text. A block that begins
-- with ">>> " is a session of Python, which goes on from block to block.

local support = dofile "tests/lua/support.lua"

-- The comment of a block's first line.
local function comment(line) return line:match "^%-%- (.*)$" or line:match "^# (.*)$" or line:match "^/%* (.*) %*/$" end

-- The blocks of a page that are run: { { line, file, before, text } or { line, command, wanted }, ... }; a session of Python
-- is a command that prints nothing where all is as written.
local function steps(path)
  local list, n, kind, open, command = {}, 0, nil, nil, nil
  for line in io.lines(path) do
    n = n + 1
    local fence = line:match "^```(%w*)"
    if fence and open then
      local head = kind ~= "console" and open[1] and comment(open[1]) or ""
      local file, before = head:match "^(%S+%.%w+), before (.+)$"
      file = file or head:match "^%S+%.%w+$"
      if file then
        local text = table.concat(open, "\n", before and 2 or 1) .. "\n"
        list[#list + 1] = { line = open.line, file = file, before = before, text = text }
      elseif (open[1] or ""):find "^>>> " then
        local session = ("cat >> .session <<'END OF FILE'\n%s\n\nEND OF FILE\npython3 -m doctest .session")
        list[#list + 1] = { line = open.line, command = session:format(table.concat(open, "\n")), wanted = {} }
      end
      open, command = nil, nil
    elseif fence then
      open, kind = { line = n }, fence
    elseif open and kind == "console" and line:find "^%$ " then
      command = { line = n, command = line:sub(3), wanted = {} }
      list[#list + 1] = command
    elseif open and kind == "console" then
      table.insert(assert(command, path .. ":" .. n .. ": output without a command").wanted, line)
    elseif open then
      open[#open + 1] = line
    end
  end
  return list
end

-- Whether lines are as wanted: `...` is any number of lines.
local function fits(lines, wanted, i, k)
  i, k = i or 1, k or 1
  if not wanted[k] then return not lines[i] end
  if wanted[k] ~= "..." then return lines[i] == wanted[k] and fits(lines, wanted, i + 1, k + 1) end
  for from = i, #lines + 1 do
    if fits(lines, wanted, from, k + 1) then return true end
  end
  return false
end

local function lines_of(text)
  local list = {}
  for line in text:gmatch "([^\n]*)\n?" do list[#list + 1] = line end
  while list[#list] == "" do list[#list] = nil end
  return list
end

local python = os.getenv "MOONGRID_PYTHON" or "python3"

-- What a page needs besides the build: a command that fails where it is missing.
local needs = { ["examples/tutorial/README.md"] = "scripts/mpi --module",
  ["examples/tutorial/c.md"] = "scripts/mpi --module", ["examples/tutorial/python.md"] = python .. " -c 'import torch'" }

-- Put .part into a file before the first line that has a text.
local INSERT = [[awk 'NR == FNR { part = part $0 "\n"; next } !done && index($0, "%s") { printf "%%s", part; done = 1 } 1' ]]
  .. ".part %s > .whole && mv .whole %s"

describe("a tutorial", function()
  for path in io.popen "ls examples/tutorial/*.md":lines() do
    it("works as it is written: " .. path, function()
      if needs[path] and select(3, support.run(needs[path])) ~= 0 then return pending("no: " .. needs[path]) end
      local folder, list = support.folder(), steps(path)
      assert.is_true(#list > 5)
      local root = io.popen("pwd"):read "l"
      local own = support.read(path):match "\n(export M=[^\n]*)" or "export M=$PWD PATH=$PWD/build:$PATH" -- as the page has it
      local script = { ("unset LUA_PATH_5_4 LUA_CPATH_5_4; %s; export PATH=$M/build:$(dirname $(command -v %s)):$PATH PYTHONPATH=%s/build/python "
        .. "LC_ALL=C.UTF-8; cd %s"):format(own, python, root, folder) }
      for i, step in ipairs(list) do
        if step.file then
          script[#script + 1] = ("cat > %s <<'END OF FILE'\n%sEND OF FILE"):format(step.before and ".part" or step.file,
            step.text)
          script[#script + 1] = step.before and INSERT:format(step.before, step.file, step.file)
        else
          script[#script + 1] = ("{ %s\n} > %s/.out.%d 2>&1 < /dev/null"):format(step.command, folder, i)
        end
      end
      local name = support.write(os.tmpname(), table.concat(script, "\n") .. "\n")
      os.execute(("timeout 300 bash %s"):format(name))
      os.remove(name)
      for i, step in ipairs(list) do
        if step.command then
          local out = support.read(("%s/.out.%d"):format(folder, i))
          assert.is_true(fits(lines_of(out), step.wanted), ("%s:%d: %s printed\n%s"):format(path, step.line, step.command, out))
        end
      end
      os.execute("rm -r " .. folder)
    end)
  end
end)
