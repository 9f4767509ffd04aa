-- SPDX-License-Identifier: MIT
--
-- Every kind of name x hostile text x every output of the command: a name is refused where it enters, with one error, or
-- each output shows it harmless. A new kind of name is a row of `kinds`, a new output a row of `outputs`.

local support = require "support"
local json = require "dkjson"

-- What a terminal obeys, a line that is not ours, what is not UTF-8, markup, quotes.
local texts = {
  ["what a terminal obeys"] = "a\27[31m\27]0;pwn\7b", ["a line of ours"] = "a\nverdict proved FORGED",
  ["controls of several bytes"] = "a\u{9B}2J\u{202E}b", ["bytes that are not UTF-8"] = "a\xFF\xFEb", ["a zero"] = "a\0b",
  ["markup and quotes"] = [=[a</script><script>alert(1)</script>&lt;-->]]>'b"c\d e]=],
  ["an equals sign"] = "a = b", ["characters of several bytes, which may be cut"] = ("\u{E4}"):rep(300),
}

-- Parts of the recipe that all share; each kind sets some of them, or the files and arguments around it.
local function recipe(x)
  return ([[return recipe { doc = %s, params = { n = 1%s }, build = function(w, p)
    local g = grid(w, "a-b", { a = 2, b = fill }) local t = topology(w)
    t.g, t.a, t.b = g, g "a", g "b"
    t.weights = tensor { axes = { { "row", 8 } }, type = "f32", cut = { row = "a" } }
    %s
    return t end,
    step = function(s, p) s:compute { seconds = 1e-6 } s:all_reduce(s.b, 8) %s end, %s }]]):format(x.doc or "'d'",
    x.params and ", " .. x.params or "", x.build or "", x.step or "", x.fields or "")
end

local q = function(text) return ("%q"):format(text) end

local kinds = {
  ["the doc of a recipe"] = function(h) return { doc = q(h) } end,
  ["a parameter"] = function(h) return { params = "[" .. q(h) .. "] = 2" } end,
  ["the text of a parameter"] = function(h) return { params = "s = param.text(" .. q(h) .. ")" } end,
  ["the doc of a parameter"] = function(h) return { params = "s1 = param.size(1, " .. q(h) .. ")" } end,
  ["a choice of a parameter"] = function(h) return { params = "s2 = param.choice('x', { 'x', " .. q(h) .. " })" } end,
  ["a value on the command line"] = function(h) return { params = "s3 = param.text 'x'", args = "s3=" .. h } end,
  ["a parameter on the command line"] = function(h) return { args = h .. "=1" } end,
  ["a family"] = function(h) return { build = "t[" .. q(h) .. "] = g 'a'" } end,
  ["a grid"] = function(h) return { build = "t[" .. q(h) .. "] = g" } end,
  ["a dim"] = function(h) return { build = "t.h = grid(w, {" .. q(h) .. ", 'b'}, { [" .. q(h) .. "] = 2, b = fill })" } end,
  ["a tensor"] = function(h) return { build = "t[" .. q(h) .. "] = tensor { axes = { { 'x', 8 } }, type = 'f32', over = g }" } end,
  ["an axis of a tensor"] = function(h) return { build = "t.w = tensor { axes = { { " .. q(h) .. ", 8 } }, type = 'f32', over = g }" } end,
  ["the type of a tensor"] = function(h) return { build = "t.w2 = tensor { axes = { { 'x', 8 } }, type = " .. q(h) .. ", over = g }" } end,
  ["an option"] = function(h) return { build = "t.o1 = g 'a':with { [" .. q(h) .. "] = true }" } end,
  ["a backend"] = function(h) return { build = "t.o2 = g 'a':with { backend = " .. q(h) .. " }" } end,
  ["a window"] = function(h) return { build = "t.o3 = g 'a':with { windows = { [" .. q(h) .. "] = 64 } }" } end,
  ["the parent of a family"] = function(h) return { build = "t.o4 = g 'a':with { parent = " .. q(h) .. " }" } end,
  ["a level of a machine"] = function(h) return { build = "t.m = machine(" .. q(h .. ":4") .. ")" } end,
  ["traffic"] = function(h) return { build = "t.m = machine 'node:* gpu:2' t.traffic = { [" .. q(h) .. "] = '1 GiB all_reduce' }" } end,
  ["a mark"] = function(h) return { step = "s:mark(" .. q(h) .. ")" } end,
  ["a compute"] = function(h) return { step = "s:compute { seconds = 1e-6, name = " .. q(h) .. " }" } end,
  ["a stream"] = function(h) return { step = "s:on(" .. q(h) .. "):all_reduce(s.a, 8)" } end,
  ["a stream that is waited for"] = function(h) return { step = "s:wait(" .. q(h) .. ")" } end,
  ["memory"] = function(h) return { step = "s:alloc(" .. q(h) .. ", 5)" } end,
  ["memory that is freed"] = function(h) return { step = "s:free(" .. q(h) .. ")" } end,
  ["a type of elements"] = function(h) return { step = "s:all_reduce(s.a, 8, { type = " .. q(h) .. " })" } end,
  ["an operation"] = function(h) return { step = "s[" .. q(h) .. "](s, s.a)" } end,
  ["an error"] = function(h) return { build = "error(" .. q(h) .. ", 0)" } end,
  ["an error of the step"] = function(h) return { step = "error(" .. q(h) .. ", 0)" } end,
  ["what is printed"] = function(h) return { build = "print(" .. q(h) .. ")" } end,
  ["a query"] = function(h) return { fields = "queries = { [" .. q(h) .. "] = function() return 1 end }" } end,
  ["a policy"] = function(h) return { fields = "policies = { [" .. q(h) .. "] = function() return 1 end }" } end,
  ["a setting"] = function(h) return { fields = "settings = { [" .. q(h) .. "] = 1 }" } end,
  ["a law"] = function(h) return { fields = "laws = { [" .. q(h) .. "] = function() return true end }" } end,
  ["a field of a recipe"] = function(h) return { fields = "[" .. q(h) .. "] = 1" } end,
  ["the base of a recipe"] = function(h) return { fields = "base = " .. q(h) } end,
  ["what a rank loses"] = function(h) return { fields = "lost = function() return { stop = " .. q(h) .. " } end" } end,
  ["the path of a recipe"] = function(h) return { path = h .. ".lua" } end,
  ["the path of a recipe whose step does not end"] = function(h) -- the counterexample names it
    return { path = h .. ".lua", step = "if s.a.position == 0 then s:barrier(s.a) end" }
  end,
  ["the path of a step"] = function(h) return { other = h .. ".lua" } end,
  ["a host"] = function(h) return { hosts = h .. " slots=2\nnode2 slots=2\n" } end,
  ["a switch"] = function(h) return { hosts = "SwitchName=" .. h .. " Nodes=n[1-2]\nNodeName=n[1-2] Gres=gpu:2\n", ending = ".conf" } end,
  ["the source of costs"] = function(h)
    local text = json.encode(h):gsub("[\x80-\xFF\x7F]+", function(s) return s end)
    return { costs = '{ "flops": 1e12, "source": ' .. text .. " }" }
  end,
  ["the recipe of a saved plan"] = function(h) return { saved = h } end,
}

-- Each output: its command, $R the recipe, $A what goes with it, and how its text is read.
local STEP = "step $R --world 4 $A $S"
local PRICED = STEP .. " --machine 'node:*[50GB/s] gpu:2[100GB/s]' $C"
local outputs = {
  -- of each kind alone
  { "plan $R --world 4 $A --json", "json" }, { STEP .. " --json $C1", "json" }, { "place $R --world 4 $A --machine $M" },
  -- of all that these accept, together
  { "plan $R --world 4 $A" }, { "plan $R --world 4 $A --text" }, { "plan $R --world 4 $A --schedule" },
  { "plan $R --world 4 $A --json --rank 1", "json" },
  { STEP }, { STEP .. " --rank 0" }, { PRICED }, { PRICED .. " -o $O.svg", "svg" }, { PRICED .. " -o $O.html", "html" },
  { PRICED .. " -o $O.json --json", "json file" },
  { "draw $R --world 4 $A" }, { "draw $R --world 4 $A -o $O.svg", "svg" }, { "draw $R --world 4 $A -o $O.html", "html" },
  { "check $R --world 4 $A" }, { "check $R --world 4 $A --json", "json" },
  { "explain $R --world 4 $A" }, { "why $R --world 4 $A 0 1" }, { "why $R --world 4 $A 0 1 --json", "json" },
  { "diff $R --world 4 $A vs n=2" }, { "diff $R --world 4 $A vs picotron" }, { "diff $R --world 4 $A vs picotron --json", "json" },
  { "diff $R --world 4 $A vs n=2 --step $S" },
  { "place $R --world 4 $A --json --machine $M", "json" }, { "move $R --world 4 $A vs n=2" }, { "move $R --world 4 $A vs n=2 --json", "json" },
  { "lose $R --world 4 $A --ranks 1" }, { "lose $R --world 4 $A --ranks 1 --json", "json" },
  { "recipes $R" }, { "recipes $R --json", "json" }, { "run $R --world 4 --backend dry $A" },
}
local ALONE = 3

local folder

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- Write the files of a case; return what the variables of a command are, nil where no file can be.
local function prepared(x)
  local path = folder .. "/" .. (x.path or "r.lua")
  if (x.path or x.other or ""):find "[/%z]" or #(x.path or x.other or "") > 200 or (x.args or ""):find "%z" then return nil end
  local vars = { R = quoted(path), A = x.args and quoted(x.args) or "", S = "", C = "", C1 = "", O = folder .. "/out", M = "'node:* gpu:2'" }
  support.write(path, recipe(x))
  if x.other then
    support.write(folder .. "/" .. x.other, "return function(s) if s.a.position == 0 then s:barrier(s.a) end end")
    vars.S = "--step " .. quoted(folder .. "/" .. x.other)
  end
  if x.hosts then
    vars.M = folder .. "/hosts" .. (x.ending or "")
    support.write(vars.M, x.hosts)
  end
  if x.costs then
    vars.C = "--costs " .. folder .. "/costs.json"
    vars.C1 = "--machine 'node:*[50GB/s] gpu:2[100GB/s]' " .. vars.C
    support.write(folder .. "/costs.json", x.costs)
  end
  if x.saved then
    local text = support.run("build/moongrid plan " .. vars.R .. " --world 4 --save " .. folder .. "/s.json; cat " .. folder .. "/s.json")
    support.write(folder .. "/s.json", (text:gsub('"recipe": "[^"]*"', function() return '"recipe": ' .. json.encode(x.saved) end)))
    vars.R = folder .. "/s.json"
  end
  return vars
end

-- All commands in one shell: { text, errors, code, file } by output.
local function said(vars, from, to)
  local lines = { "export MPI= ; rm -f " .. folder .. "/out.*" }
  for i = from, to do
    local command = outputs[i][1]:gsub("%$(%u%d?)", function(name) return vars[name] end)
    local at = folder .. "/" .. i
    lines[#lines + 1] = ("build/moongrid %s > %s.1 2> %s.2 < /dev/null; echo $? > %s.rc; cat %s/out.* > %s.file 2> /dev/null; rm -f %s/out.*"):format(
      command, at, at, at, folder, at, folder)
  end
  support.run(table.concat(lines, "\n"))
end

local function read(i, what)
  local f = io.open(folder .. "/" .. i .. what, "rb")
  local text = f and f:read "a" or ""
  if f then f:close() end
  return text
end

-- Text for a terminal or a reader: UTF-8, no controls but the end of a line, no line that a name made.
local function unsafe(text)
  if not utf8.len(text) then return "bytes that are not UTF-8" end
  if text:find "[%c]" and text:gsub("[\n\t]", ""):find "%c" then return "control characters" end
  if text:find "\u{9B}" or text:find "\u{202E}" then return "control characters of 8 bits, or of direction" end
  if text:find "\nverdict proved FORGED" then return "a forged line" end
end

-- What is wrong with an output, nil: nothing.
local function wrong(i, code, x)
  local out, err, how = read(i, ".1"), read(i, ".2"), outputs[i][2]
  local bad = unsafe(err) or unsafe(out)
  if bad then return bad .. ": " .. ("%q"):format(out .. err) end
  if code > 3 or (code == 2 and not x.args) then return "exit code " .. code .. err end
  if (how == "json" or how == "json file") and out ~= "" then
    local value, _, why = json.decode(out)
    if not value then return "no JSON: " .. tostring(why) .. out end
    if value.verdict and value.verdict ~= "proved" and #value.counterexample == 0 then return "a verdict without its counterexample" end
  end
  if how == "json" and out == "" and err == "" then return "no output, and no error" end
  local text = read(i, ".file")
  if text ~= "" then
    bad = unsafe(text)
    if bad then return bad .. " in the file" end
    if how ~= "json file" and text:find("<script>alert", 1, true) then return "a script of a name" end
    if how == "json file" and not json.decode(text) then return "no JSON in the file" end
    if how == "svg" and text:find("a</script>", 1, true) then return "markup in the picture" end
  elseif (how == "svg" or how == "html" or how == "json file") and code == 0 then
    return "no file"
  end
end

local function ordered(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- The parts of several kinds in one recipe.
local function together(parts)
  local all = {}
  for _, x in ipairs(parts) do
    for field, text in pairs(x) do
      local between = (field == "params" or field == "fields") and ", " or " "
      local one = field == "doc" or field == "path" or field == "other" or field == "costs" or field == "hosts" or field == "ending"
      all[field] = (all[field] and not one) and all[field] .. between .. text or text
    end
  end
  return all
end

describe("hostile names:", function()
  setup(function() folder = support.folder() end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  -- Make a case and note the faults of these outputs; false: some output was refused, which
  -- with `whole` is a fault.
  local function try(x, first, last, what, faults, whole)
    local vars, accepted = prepared(x), true
    if not vars then return false end
    said(vars, first, last)
    for i = first, last do
      local code = tonumber(read(i, ".rc"))
      local fault = wrong(i, code, x) or whole and code ~= 0 and "refused, though each of its names was accepted: " .. read(i, ".2")
      accepted = accepted and code == 0
      if fault then faults[#faults + 1] = ("%s, in '%s': %s"):format(what, outputs[i][1], fault) end
    end
    for _, name in ipairs { x.path or "r.lua", x.other } do os.remove(folder .. "/" .. name) end
    return accepted
  end

  for _, text in ipairs(ordered(texts)) do
    local h = texts[text]
    it(text, function()
      local faults, accepted = {}, {}
      for _, kind in ipairs(ordered(kinds)) do
        local x = kinds[kind](h)
        if try(x, 1, ALONE, kind, faults) then accepted[#accepted + 1] = x end
      end
      try(together(accepted), ALONE + 1, #outputs, "all that are accepted", faults, true)
      assert.equal("", table.concat(faults, "\n"))
    end)
  end
end)
