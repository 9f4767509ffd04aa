-- SPDX-License-Identifier: MIT
--
-- in_step: find where in the step of the recipe each rank is. It looks for the last calls of a dump in the rank's
-- program, and compares operation, members and peer. It does not compare bytes, because they depend on the model. Calls
-- that a framework makes outside of the recipe's step are not found.

local CALLS = 1 << 14          -- most calls of a program, loops unrolled
local RANKS = 1024             -- most ranks to look for
local LEAST, MOST = 4, 256     -- calls that must be found; most calls to look for
local FEW = 2                  -- most places to name as the next call

-- Return a text that names a call. A send and its recv have the same text, because steps do not say in which order a
-- batch has them.
local function name(op, ranks, peer, hidden)
  if peer then return ("peer %d of %s"):format(peer, ranks) end
  return (hidden and op == "reduce_scatter" and "all_reduce" or op) .. " of " .. ranks -- gloo writes all_reduce
end

-- Return the calls of a rank's step, { name, number, entry, mark } each, with loops unrolled; false if there are none,
-- or too many.
local function unroll(job, step, rank)
  local all, members, mark, number = {}, {}, nil, 0
  local function ranks_of(of)
    if members[of] == nil then
      local family = job.plan:family(of)
      local index = family:locate(rank)
      local list = index and family:ranks(index) or {}
      members[of] = #list > 1 and table.concat(list, ",")
    end
    return members[of]
  end
  local function walk(list)
    for _, entry in ipairs(list) do
      number = number + 1
      local ranks, peer, before = entry.family and ranks_of(entry.family), entry.to or entry.from, number
      if entry.operation == "mark" then mark = entry.name end
      if ranks and not (peer and job.hidden) then
        all[#all + 1] = { name = name(entry.operation, ranks, peer, not job.states), number = number, entry = entry,
                          mark = mark }
      end
      for _ = 1, entry.body and entry.times or 1 do
        number = entry.body and before or number
        if entry.body and #all <= CALLS then walk(entry.body) end
      end
    end
  end
  walk(step:program(rank))
  return #all <= CALLS and #all > 0 and all
end

-- Return the names of the last calls of a dump, up to the faulty call.
local function made(job, one)
  local all = {}
  for i = math.max(1, #one.calls - MOST), #one.calls do
    local call = one.calls[i]
    if one.left and call.id >= one.left then break end
    local ranks = call.group.ranks
    if #ranks > 1 and call.op ~= "coalesced" then
      all[#all + 1] = name(call.op, table.concat(ranks, ","), call.peer, not job.states)
    end
  end
  return all
end

-- Return the indices of a program at which the last of `calls` may be: those up to which the most calls match. After
-- its end the program begins again.
local function find(program, calls)
  local best, places = LEAST - 1, {}
  for at = 1, #program do
    local n = 0
    while n < #calls and program[(at - n - 1) % #program + 1].name == calls[#calls - n] do n = n + 1 end
    if n > best then best, places = n, {} end
    if n == best and n >= LEAST then places[#places + 1] = at end
  end
  return places
end

local function words(step, rank, call)
  local entry = call.entry
  local file = entry.line and step:entry(rank, call.number).file
  local place = file and (" (%s:%d)"):format(file:match "[^/]*$", entry.line)
                or call.mark and (" in '%s'"):format(call.mark)
  return ("%s on %s%s"):format(entry.operation, entry.family, place or "")
end

-- Return a list of { ranks, at, next }: `at` describes the last call of these ranks, `next` the one after it in the
-- step. Return nil if there is no step, or if the calls are not those of the step.
return function(job)
  local has, step = pcall(function() return job.plan:step() end)
  local by, list = {}, {}
  for i = 1, has and math.min(#job.list, RANKS) or 0 do
    local rank = job.list[i]
    local calls = made(job, job.ranks[rank])
    local program = #calls >= LEAST and unroll(job, step, rank)
    local at, following, known, n = nil, {}, {}, 0
    for _, place in ipairs(program and find(program, calls) or {}) do
      local here, after = words(step, rank, program[place]), words(step, rank, program[place % #program + 1])
      n = n + ((at or here) == here and 0 or FEW) -- two places are too many, unless they are rounds of one loop
      at = here
      if not known[after] then known[after], n, following[#following + 1] = true, n + 1, after end
    end
    if at and n <= FEW then
      local key = at .. "\n" .. table.concat(following, " or ")
      if not by[key] then
        by[key] = { ranks = {}, at = at, next = table.concat(following, " or ") }
        list[#list + 1] = by[key]
      end
      table.insert(by[key].ranks, rank)
    end
  end
  return list[1] and list
end
