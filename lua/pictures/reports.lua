-- SPDX-License-Identifier: MIT
--
-- reports: write text with folded lines, and words for numbers and verdicts. A writer has put(piece), fold (the last
-- column), on and off (which begin and end bold text), and shown(text), which makes a text safe to print.

local moongrid = require "moongrid"

local M = {}

local LABEL, VALUE = 15, 60 -- columns before the words after a label; the most bytes of a parameter's value
local RANKS, MOST = 8, 4096 -- the ranks of a node if they are unknown; the most ranks of a node

-- Return the columns of a text; each character of UTF-8 takes one.
function M.width(text) return #text - select(2, text:gsub("[\x80-\xbf]", "")) end

-- Return an ASCII word with blanks up to a width. (string.format allows widths up to 99 only.)
function M.padded(word, wide) return word .. (" "):rep(wide - #word) end

-- Return the plural ending for n things: "" or "s".
function M.plural(n) return n == 1 and "" or "s" end

-- Write words, each after a blank, and end the line. The line has `column` columns already; further lines begin with
-- `indent` blanks.
function M.put_words(w, words, column, indent)
  if words ~= "" and column + 1 + #words <= w.fold then
    w.put(" " .. words)
  elseif words ~= "" then
    for word in words:gmatch "([^ ]*) ?" do
      local wide = M.width(word)
      if column + 1 + wide > w.fold and column > indent then
        w.put("\n" .. (" "):rep(indent - 1))
        column = indent - 1
      end
      w.put(" " .. word)
      column = column + 1 + wide
    end
  end
  w.put "\n"
end

-- Write words after a label.
function M.wrap(w, label, words)
  label = M.padded(label, LABEL - 1)
  w.put(label)
  M.put_words(w, words, #label, LABEL)
end

-- Return a value, safe to print, in at most `most` bytes; a longer value ends in "...".
local function at_most(w, most, value)
  local shown = w.shown(value)
  if #shown <= most then return shown end
  most = most - 3
  while shown:find("^[\x80-\xbf]", most + 1) do most = most - 1 end -- cut at the end of a character
  return shown:sub(1, most) .. "..."
end

-- Write the first line of a report about a plan: the words `before`, then "megatron over 8 ranks: tp=2", with the
-- parameters that differ from their defaults; if `all` is true, with all parameters.
function M.head(w, plan, before, all)
  local name = plan.recipe == "" and "plan" or w.shown(plan.recipe)
  local about = (" over %d rank%s"):format(plan.world, M.plural(plan.world))
  before = before or ""
  local column, colon = #before + #name + #about, ":"
  w.put(before .. w.on .. name .. w.off .. about)
  for _, param in ipairs(plan.params) do
    if all or not param.usual then
      local word = param.name .. "=" .. at_most(w, VALUE, param.short)
      w.put(colon)
      column, colon = column + #colon, ""
      if column + #word + 1 > w.fold and column > LABEL then
        w.put("\n" .. (" "):rep(LABEL - 1))
        column = LABEL - 1
      end
      w.put(" " .. word)
      column = column + 1 + #word
    end
  end
  w.put "\n"
end

local NAMES = { gpus_per_node = true, ranks_per_node = true, nproc_per_node = true }

-- Return the machine that the recipe of the plan has read, or nil if there is none or this build has no machines.
function M.machine(plan)
  local done, read = pcall(function() return plan.machine end)
  if done and read and read ~= "" then return moongrid.open_machine(read) end
end

-- Return the number of ranks of a node: `known`, or if that is nil the number of the machine that the recipe read, or
-- the value of a parameter in NAMES. If this is not from 1 to MOST, or nothing gives it, return RANKS.
function M.machine_ranks(plan, known)
  local machine = not known and M.machine(plan)
  local ranks = known or machine and machine:node_size() or nil
  for _, param in ipairs(plan.params) do
    if not ranks and NAMES[param.name] then ranks = math.tointeger(tonumber(param.value:match "^%d+" or "0")) end
  end
  return ranks and ranks >= 1 and ranks <= MOST and ranks or RANKS
end

-- Return bytes as text: "1.50 GiB".
function M.bytes(n)
  local units, i = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" }, 1
  while n >= 1024 and i < 7 do n, i = n / 1024, i + 1 end
  return ((i == 1 and "%.0f" or n < 10 and "%.2f" or "%.1f") .. " %s"):format(n, units[i])
end

-- Return seconds as text: "12.3 ms".
function M.seconds(s)
  if s <= 0 then return "0" end
  local unit, by = "ns", 1e9
  if s >= 1 then
    unit, by = "s", 1
  elseif s >= 1e-3 then
    unit, by = "ms", 1e3
  elseif s >= 1e-6 then
    unit, by = "us", 1e6
  end
  return (s * by >= 100 and "%.0f %s" or s * by >= 10 and "%.1f %s" or "%.2f %s"):format(s * by, unit)
end

-- The meaning of each verdict of a step's proof.
M.verdicts = {
  proved = "every rank reaches the end of its program",
  mismatch = "two calls that meet are not the same",
  unmatched = "a rank waits for a call that is never made",
  cycle = "ranks wait for each other",
  hazard = "it ends only if kernels of two communicators run at the same time on a GPU, and these may take each "
           .. "other's SMs",
}

-- Return a text with the assumptions of a step's proof about pairs of families.
function M.assumes(pairs_of)
  local list = {}
  for i, pair in ipairs(pairs_of) do list[i] = pair[1] .. " and " .. pair[2] end
  return ("calls of %s fit on a GPU together, or start in one order on all ranks: they are under way at once, on two "
    .. "streams, and neither waits for the other. To assume nothing, put an event between them, use one stream, or set "
    .. "launch_order_implicit (NCCL 2.31). If they do fit, list the families in the recipe's field concurrent.")
    :format(table.concat(list, ", "))
end

return M
