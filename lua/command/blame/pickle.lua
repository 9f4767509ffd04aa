-- SPDX-License-Identifier: MIT
--
-- pickle: read the pickle of a flight recorder dump, without executing anything: every opcode that would name a class,
-- call a function or fetch an object is refused by name. Of an incomplete dump the beginning is read.
--
--   local top, whole = pickle(text, made)   -- whole: the text is complete
--
-- It raises { message, code = true } if the text would run code, { message } if it is wrong in another way. made(dict)
-- gets each complete dict and returns a value that replaces it, or nil; so a million entries take less memory. It never
-- gets an incomplete dict. In a list None becomes false, in a dict an item with None is left out.

local byte, sub, unpack, math_type = string.byte, string.sub, string.unpack, math.type

local NONE = {} -- None, on the stack
local CUT = {} -- raised at the end of an incomplete text

local function refuse(...) error({ string.format(...) }, 0) end

-- The refused opcodes, with their names in Python's pickletools.
local code = { c = "GLOBAL", ["\x93"] = "STACK_GLOBAL", R = "REDUCE", b = "BUILD", i = "INST", o = "OBJ", P = "PERSID",
               ["\x81"] = "NEWOBJ", ["\x92"] = "NEWOBJ_EX", Q = "BINPERSID", ["\x82"] = "EXT1", ["\x83"] = "EXT2",
               ["\x84"] = "EXT4" }

local function plain(value)
  if value == NONE then return nil end
  return value
end

local function item(value)
  if value == NONE then return false end
  return value
end

return function(text, made)
  local at, size = 1, #text
  local stack, top, marks, memo, puts, cut = {}, 0, {}, {}, 0, false

  -- The most frequent opcodes below call no function of this file, which makes reading twice as fast.
  local function push(value)
    top = top + 1
    stack[top] = value
  end
  local function pop()
    if top <= (marks[#marks] or 0) then refuse("byte %d: nothing is on the stack", at) end
    local value = stack[top]
    stack[top] = nil
    top = top - 1
    return value
  end
  local function mark() return table.remove(marks) or refuse("byte %d: no MARK", at) end
  local function take(n)
    local from = at
    at = at + n
    if at > size + 1 then error(CUT, 0) end
    return from
  end
  local function number(format, n) return (unpack(format, text, take(n))) end
  local function words(n)
    local from = take(n)
    return sub(text, from, at - 1)
  end
  local function get(i)
    local value = memo[i]
    if value == nil then refuse("byte %d: memo %d is empty", at, i) end
    push(value)
  end
  local function put(i)
    if top == 0 then refuse("byte %d: nothing is on the stack", at) end
    memo[i] = stack[top]
  end
  local function tuple(n)
    local list = {}
    for i = n, 1, -1 do list[i] = item(pop()) end
    push(list)
  end
  local function set(from) -- put the items above a dict on the stack into the dict
    local dict = stack[from]
    if type(dict) ~= "table" or dict == NONE or (top - from) % 2 == 1 then
      refuse("byte %d: items outside of a dict", at)
    end
    for i = from + 1, top, 2 do
      local key, value = stack[i], stack[i + 1]
      if type(key) ~= "string" and math_type(key) ~= "integer" then refuse("byte %d: a key that is not text", at) end
      if value ~= NONE then dict[key] = value else dict[key] = nil end
    end
    for i = top, from + 1, -1 do stack[i] = nil end
    top = from
    local value = not cut and made(dict)
    if value then stack[top] = value end
  end
  local function append(from)
    local list = stack[from]
    if type(list) ~= "table" or list == NONE then refuse("byte %d: an item outside of a list", at) end
    local n = #list
    for i = from + 1, top do
      n = n + 1
      list[n], stack[i] = item(stack[i]), nil
    end
    top = from
  end
  local ops = {
    ["\x80"] = function()
      local protocol = number("B", 1)
      if protocol > 5 then refuse("protocol %d; 2 to 5 are read", protocol) end
    end,
    ["\x95"] = function() take(8) end,
    ["}"] = function() push {} end,
    ["]"] = function() push {} end,
    [")"] = function() push {} end,
    ["("] = function() marks[#marks + 1] = top end,
    a = function() append(top - 1) end,
    e = function() append(mark()) end,
    s = function() set(top - 2) end,
    u = function() set(mark()) end,
    t = function() tuple(top - mark()) end,
    ["\x85"] = function() tuple(1) end,
    ["\x86"] = function() tuple(2) end,
    ["\x87"] = function() tuple(3) end,
    X = function()
      if at + 3 > size then error(CUT, 0) end
      local n = unpack("<I4", text, at)
      local from = at + 4
      at = from + n
      if at > size + 1 then error(CUT, 0) end
      top = top + 1
      stack[top] = sub(text, from, at - 1)
    end,
    ["\x8c"] = function() push(words(number("B", 1))) end,
    ["\x8d"] = function() push(words(math.min(number("<I8", 8) & math.maxinteger, size + 1))) end,
    q = function() put(number("B", 1)) end,
    r = function() put(number("<I4", 4)) end,
    ["\x94"] = function()
      put(puts)
      puts = puts + 1
    end,
    h = function()
      local value = memo[byte(text, at)]
      if value == nil then return get(number("B", 1)) end
      at, top = at + 1, top + 1
      stack[top] = value
    end,
    j = function() get(number("<I4", 4)) end,
    K = function()
      top = top + 1
      stack[top] = byte(text, at) or error(CUT, 0)
      at = at + 1
    end,
    M = function()
      local low, high = byte(text, at, at + 1)
      top, at = top + 1, at + 2
      stack[top] = high and low + 256 * high or error(CUT, 0)
    end,
    J = function() push(number("<i4", 4)) end,
    ["\x8a"] = function()
      local n = number("B", 1)
      if n > 8 then refuse("byte %d: an integer of %d bytes; 8 at most are read", at, n) end
      push(n == 0 and 0 or number("<i" .. n, n))
    end,
    G = function() push(number(">d", 8)) end,
    ["\x88"] = function() push(true) end,
    ["\x89"] = function() push(false) end,
    N = function() push(NONE) end,
  }
  local by = {}
  for i = 0, 255 do by[i] = ops[string.char(i)] end

  local function run()
    if byte(text) ~= 0x80 then refuse "not a pickle" end
    while true do
      local op = byte(text, at)
      if not op then error(CUT, 0) end
      at = at + 1
      if op == 46 then break end
      local f = by[op]
      if not f then
        local name = code[string.char(op)]
        if name then
          error({ ("byte %d: the opcode %s runs code, and a dump has only data; nothing of it was executed")
                    :format(at - 2, name), code = true }, 0)
        end
        refuse("byte %d: opcode 0x%02X is in no dump", at - 2, op)
      end
      f()
    end
  end

  local done, why = pcall(run)
  if done then
    if top ~= 1 then refuse "the end of the pickle leaves more than one value" end
    return plain(stack[1]), true
  end
  if why ~= CUT then error(why, 0) end
  cut = true
  while #marks > 0 do -- close the open lists and dicts, innermost first
    local from = marks[#marks]
    local of_dict = type(stack[from + 1]) == "string"
    if of_dict and (top - from) % 2 == 1 then pop() end
    if type(stack[from]) ~= "table" or stack[from] == NONE then break end
    ops[of_dict and "u" or "e"]()
  end
  return plain(stack[1]), false
end
