-- SPDX-License-Identifier: MIT
--
-- The bundled policies: `policies.NAME { settings }` makes a policy for the field `policy` of a recipe. A setting is a
-- value, or a function (state, q, p) that returns the value at each call of the policy. meta_recipe.lua documents the
-- arguments (q) and the result of each policy.
--
-- Use only + - * / and sqrt on floats: IEEE 754 defines their results to the last bit, so ranks on different machines
-- get identical results.

local core, shared, kinds = ...
local show, word = shared.show, shared.word

local size = kinds.whole(1, 2147483647, "an integer of 1 to 2147483647")
local count = kinds.whole(0, 2147483647, "an integer of 0 to 2147483647")
local bytes = kinds.whole(1, 1 << 53, "an integer of 1 to 2^53")
local number = {
  what = "a number of 0 or more",
  check = function(v) return type(v) == "number" and v >= 0 and v < math.huge end,
}
local flag = kinds.declared.flag
local family_name = { what = "the name of a family", check = kinds.is_text }
local family_names = {
  what = "a list of names of families",
  check = function(v) return shared.is_list(v, kinds.is_text) end,
}
local one_of = kinds.one_of

-- Each entry has `settings` and `arguments`, lists of { name, kind, default } in the order of checks. A setting without
-- a default may be left out unless it has `needed`. verify(s, refuse) refuses settings that contradict each other.
-- answer(s, q, state, refuse, known) is the policy; known(family) returns the family's name, or refuses a family that
-- the state does not have. An entry with `bounds` can also cut the axis of a tensor: bounds(pieces, length) returns its
-- q.
local library = {}

-- Divide layers among pipeline stages. Each layer goes to the stage with the least work; of several such stages to the
-- first, so the first stages get the remainder. `embedding` and `loss` are the additional work of the first and the
-- last stage, in layers; `first` and `last` set the number of layers of these two stages.
library.layers = {
  settings = { { "first", count }, { "last", count }, { "embedding", number, 0 }, { "loss", number, 0 } },
  arguments = { { "layers", count }, { "stages", size } },
  bounds = function(pieces, length) return { stages = pieces, layers = length } end,
  verify = function(s, refuse)
    if s.first and s.embedding > 0 then refuse("'first' and 'embedding' both say what the first stage gets") end
    if s.last and s.loss > 0 then refuse("'last' and 'loss' both say what the last stage gets") end
  end,
  answer = function(s, q, _, refuse)
    local n, left, each, work, open = q.stages, q.layers, {}, {}, {}
    if n == 1 and s.first and s.last then refuse("one stage is both the first and the last") end
    for stage = 1, n do
      local fixed = stage == 1 and s.first or stage == n and s.last
      each[stage] = fixed or 0
      work[stage] = (stage == 1 and s.embedding or 0) + (stage == n and s.loss or 0)
      left = left - each[stage]
      if not fixed then open[#open + 1] = stage end
    end
    if left < 0 or left > 0 and #open == 0 then
      refuse("%d layers do not fit %d stages, of which the first has %s and the last %s", q.layers, n, s.first or "any",
        s.last or "any")
    end
    while left > 0 do -- a round gives a layer to each stage whose work is below the least work + 1
      local least, turn = math.huge, {}
      for _, stage in ipairs(open) do least = math.min(least, work[stage]) end
      for _, stage in ipairs(open) do
        if work[stage] < least + 1 or work[stage] == least then turn[#turn + 1] = stage end
      end
      table.sort(turn, function(a, b)
        if work[a] ~= work[b] then return work[a] < work[b] end
        return a < b
      end)
      local rounds = #turn == #open and left // #turn or 0 -- if all stages get a layer: many rounds at once
      for i, stage in ipairs(turn) do
        local more = rounds > 0 and rounds or i <= left and 1 or 0
        each[stage], work[stage] = each[stage] + more, work[stage] + more
      end
      left = left - (rounds > 0 and rounds * #turn or math.min(left, #turn))
    end
    return each
  end,
}

-- Return the largest divisor of n up to `most`, and the smallest divisor from `least` on, or n if there is none.
local function divisors(n, most, least)
  local below, above = 1, n
  for i = 1, math.floor(math.sqrt(n)) do
    for _, d in ipairs(n % i == 0 and { i, n // i } or {}) do
      if d <= most and d > below then below = d end
      if d >= least and d < above then above = d end
    end
  end
  return below, above
end

-- Choose how a replica's samples go through a pipeline. `bubble` is the idle time of a stage divided by its ideal time:
-- (ranks - 1) / (chunks x microbatches), as in Narayanan et al. 2021, section 2.2.
library.schedule = {
  settings = { { "chunks", size, 1 }, { "order", one_of("1f1b", "gpipe", "interleaved") }, { "microbatch", size },
               { "per_rank", size, 2 } },
  arguments = { { "samples", size }, { "ranks", size } },
  verify = function(s, refuse)
    if s.order and (s.order == "interleaved") ~= (s.chunks > 1) then
      refuse("the order '%s' with %d chunk%s per rank; only 'interleaved' has several", s.order, s.chunks,
        s.chunks == 1 and "" or "s")
    end
  end,
  answer = function(s, q, _, refuse)
    local interleaved = s.chunks > 1
    local round = interleaved and q.ranks or 1
    local step = round * (s.microbatch or 1)
    if q.samples % step ~= 0 then
      local below = q.samples // step * step
      refuse("%d samples do not divide into %smicrobatches%s; nearest: %s%d", q.samples,
        round > 1 and "rounds of " .. round .. " " or "", s.microbatch and " of " .. s.microbatch or "",
        below > 0 and below .. " or " or "", below + step)
    end
    local n = s.microbatch and q.samples // s.microbatch
    if not n then -- the largest divisor from ranks to per_rank x ranks, else the next larger divisor
      local below, above = divisors(q.samples // round, s.per_rank * q.ranks // round, (q.ranks - 1) // round + 1)
      n = round * (below * round >= q.ranks and below or above)
    end
    return { microbatches = n, order = s.order or interleaved and "interleaved" or "1f1b", chunks = s.chunks,
             bubble = (q.ranks - 1) / (s.chunks * n) }
  end,
}

-- Return the bytes of a bucket of gradients. Many ranks get larger buckets, so that latency stays a small part of the
-- time. The defaults are Megatron-core's: max(40e6, 1e6 x ranks) parameters of 4 bytes (DistributedDataParallelConfig).
library.bucket_bytes = {
  settings = { { "least", bytes, 160000000 }, { "per_rank", count, 4000000 } },
  arguments = { { "ranks", size } },
  answer = function(s, q) return math.max(s.least, s.per_rank * q.ranks) end,
}

-- The names that bundled recipes give the family over which gradients of experts are summed; the name in moongrid's
-- examples comes first. deepspeed_moe has one such family for each size of expert groups.
local expert_families = { "expert_data", "expt_dp", "ep_dp", "efsdp", "edp" }

local function expert_family(state, refuse)
  for _, name in ipairs(expert_families) do
    if state:has(name) then return name end
  end
  local sized, names = {}, {}
  for name in pairs(state) do
    if string.find(name, "^edp_size_%d+$") then sized[#sized + 1] = name end
    names[#names + 1] = name
  end
  if #sized == 1 then return sized[1] end
  if #sized > 1 then refuse("the setting 'expert' is one of %s", table.concat(sized, ", ")) end
  refuse("no family of experts' data parallelism (%s); name it in the setting 'expert': one of %s",
    table.concat(expert_families, ", "), table.concat(names, ", "))
end

-- Return the family over which to sum a parameter's gradient.
library.gradient_family = {
  settings = { { "dense", family_name, "dp_cp" }, { "expert", family_name } },
  arguments = { { "expert", flag } },
  answer = function(s, q, state, refuse, known)
    if not q.expert then return known(s.dense) end
    return s.expert and known(s.expert) or expert_family(state, refuse)
  end,
}

-- Return cos(pi x) for x in [0, 1]. Up to 0.5 the power series needs few terms; above 0.5 use symmetry.
local function cos_pi(x)
  if x > 0.5 then return -cos_pi(1 - x) end
  local t, sum = (3.141592653589793 * x) * (3.141592653589793 * x), 1.0
  for k = 12, 1, -1 do sum = 1 - sum * t / ((2 * k - 1) * (2 * k)) end
  return sum
end

-- Return the learning rate of a step. In the first `warmup` steps it rises linearly to `peak`. With the shapes cosine
-- (Loshchilov and Hutter 2017, equation 5) and linear it falls to `least` over the last `decay` steps (default: all
-- after the warm-up). With inverse_sqrt it is peak x sqrt(warmup / step) (Vaswani et al. 2017, section 5.3), but at
-- least `least`.
library.learning_rate = {
  settings = { { "peak", number, needed = true }, { "least", number, 0 }, { "warmup", count, 0 },
               { "decay", count }, { "shape", one_of("cosine", "linear", "constant", "inverse_sqrt"), "cosine" } },
  arguments = { { "step", count }, { "steps", size } },
  verify = function(s, refuse)
    if s.least > s.peak then refuse("'least', %s, is above 'peak', %s", s.least, s.peak) end
    if s.decay and (s.shape == "constant" or s.shape == "inverse_sqrt") then
      refuse("'decay' says when 'cosine' and 'linear' begin to fall, not '%s'", s.shape)
    end
  end,
  answer = function(s, q)
    if q.step < s.warmup then return s.peak * (q.step + 1) / s.warmup end
    if s.shape == "constant" then return s.peak end
    if s.shape == "inverse_sqrt" then
      local warmup = math.max(s.warmup, 1)
      return math.max(s.least, s.peak * math.sqrt(warmup / math.max(q.step, warmup)))
    end
    local decay = math.min(s.decay or q.steps, q.steps - s.warmup)
    local begins = q.steps - decay
    if q.step >= q.steps then return s.least end
    if q.step < begins then return s.peak end
    local done = (q.step - begins) / decay
    return s.least + (s.peak - s.least) * (s.shape == "linear" and 1 - done or (1 + cos_pi(done)) / 2)
  end,
}

-- Return whether to save a checkpoint after this step. Steps count from 0.
library.checkpoint = {
  settings = { { "every", size, 1000 }, { "last", flag, true } },
  arguments = { { "step", count }, { "steps", size } },
  answer = function(s, q) return (q.step + 1) % s.every == 0 or s.last and q.step + 1 == q.steps end,
}

-- Choose the reaction to lost ranks. With q.family, a call over this family failed: `keep` lists families that the
-- trainer can do without, `shrink` families whose groups continue without the lost ranks if `least` ranks or more
-- remain. Without q.family, the job lost the ranks: spares take their places if there are enough, else the layout
-- shrinks, with `params`, if `least` ranks or more remain, else the job stops. The setting `job` replaces this choice.
-- With `majority` the job stops unless more than half of the ranks remain, or half of them with rank 0, so that after a
-- cut link only one side goes on.
local ways = one_of("replace", "shrink", "stop")
local any_count = { what = count.what, check = function(v) return v == false or count.check(v) end }
local any_family = { what = family_name.what, check = function(v) return v == false or family_name.check(v) end }
local any_ranks = { what = "a list of ranks", check = function(v) return type(v) == "table" end }
library.on_lost = {
  settings = { { "keep", family_names, {} }, { "shrink", family_names, {} }, { "least", size, 1 }, { "job", ways },
               { "params", kinds.declared.table }, { "majority", flag, false } },
  arguments = { { "family", any_family, false }, { "ranks", size }, { "lost", count, 1 }, { "spares", count, 0 },
                { "places", any_count, false }, { "which", any_ranks, {} } },
  answer = function(s, q, _, refuse, known)
    if q.lost > q.ranks then refuse("%d lost ranks are more than the %d ranks there are", q.lost, q.ranks) end
    if not q.family then
      local rest = q.ranks - q.lost
      local most = rest > q.lost or rest == q.lost and #q.which == q.lost and q.which[1] ~= 0
      if s.majority and not most then return "stop" end
      local how = s.job or (q.places or q.lost) <= q.spares and "replace" or rest >= s.least and "shrink" or "stop"
      return how == "shrink" and s.params and { how = how, params = s.params } or how
    end
    known(q.family)
    local function has(list)
      for _, name in ipairs(list) do
        if name == q.family then return true end
      end
    end
    return has(s.keep) and "keep" or has(s.shrink) and q.ranks - q.lost >= s.least and "shrink" or "stop"
  end,
}

-- Make policies -----------------------------------------------------------------

local makers = {} -- name -> the function policies.NAME
-- policy -> { where, look }: `where` is the "file:line: " at which a recipe made the policy, and look(topology) refuses
-- a topology that lacks a family which a setting names.
local made = setmetatable({}, { __mode = "k" })

-- If the value is a maker, such as policies.layers, because the recipe forgot to call it, return the maker's name.
local function uncalled(value)
  for name, make in pairs(makers) do
    if make == value then return "policies." .. name end
  end
end

local function check(where, policy, what, name, kind, value)
  if kind.check(value) then return value end
  core.raise_at(where, string.format("policies.%s: %s '%s' is %s, not %s", policy, what, name, kind.what,
    uncalled(value) or show(value)), "bad value")
end

-- Return the settings, with defaults for those that were not given, and the list of settings that are functions.
local function read_settings(name, policy, given, where)
  local settings, asked, known = {}, {}, {}
  if type(given) ~= "table" then
    core.raise_at(where, string.format("policies.%s takes a table of settings, not %s", name, show(given)))
  end
  for i, setting in ipairs(policy.settings) do known[i] = setting[1] end
  for _, key in ipairs(core.keys(given)) do
    local found = false
    for _, setting in ipairs(known) do found = found or setting == key end
    if not found then
      core.unknown("setting of policies." .. name, word(key), known, where)
    end
  end
  for _, setting in ipairs(policy.settings) do
    local key, value = setting[1], given[setting[1]]
    if value == nil then value = setting[3] end
    if setting.needed and value == nil then
      core.raise_at(where, string.format("policies.%s needs '%s', %s", name, key, setting[2].what))
    end
    if type(value) == "function" and not uncalled(value) then
      asked[#asked + 1] = setting
    elseif value ~= nil then
      check(where, name, "setting", key, setting[2], value)
    end
    settings[key] = value
  end
  return settings, asked
end

local function maker(name, policy)
  return function(given)
    local where = core.where()
    given = given == nil and {} or given
    local settings, asked = read_settings(name, policy, given, where)

    local function refuse(message, ...)
      core.raise_at(where, string.format("policies.%s: " .. message, name, ...))
    end
    local function knower(families) -- `families` is a state or a topology; pairs gives the names
      return function(family)
        local known = {}
        for other in pairs(families) do
          if other == family then return family end
          known[#known + 1] = other
        end
        core.unknown("family", family, known, where .. "policies." .. name .. ": ")
      end
    end
    local function verify(s)
      if policy.verify then policy.verify(s, refuse) end
      return s
    end
    if #asked == 0 then verify(settings) end

    local function settings_now(state, q, p)
      local now = {}
      for key, value in pairs(settings) do now[key] = value end
      for _, setting in ipairs(asked) do
        local key, optional = setting[1], setting[3] == nil and not setting.needed
        local value = settings[key](state, q, p)
        if value ~= nil or not optional then check(where, name, "setting", key, setting[2], value) end
        now[key] = value
      end
      return verify(now)
    end

    local function policy_of_recipe(state, q, p)
      if policy.bounds and math.type(state) == "integer" then state, q = nil, policy.bounds(state, q) end
      if type(q) ~= "table" then refuse("a policy takes (state, q, p), and q is %s", show(q)) end
      local s, arguments = #asked > 0 and settings_now(state, q, p) or settings, {}
      for _, argument in ipairs(policy.arguments) do
        local key = argument[1]
        local value = q[key]
        if value == nil then value = argument[3] end
        if value == nil then
          local known = {}
          for _, name_given in ipairs(core.keys(q)) do
            if type(name_given) == "string" then known[#known + 1] = name_given end
          end
          refuse("argument '%s', %s, is missing; given: %s", key, argument[2].what,
            #known > 0 and table.concat(known, ", ") or "none")
        end
        arguments[key] = check(where, name, "argument", key, argument[2], value)
      end
      return policy.answer(s, arguments, state, refuse, knower(state))
    end

    local function look(topology)
      local known = knower(topology)
      for _, setting in ipairs(policy.settings) do
        local value = given[setting[1]]
        if value == setting[3] then value = nil end -- a default is checked only when the policy is called
        if type(value) == "string" and setting[2] == family_name then known(value) end
        local list = type(value) == "table" and setting[2] == family_names and value or {}
        for _, listed in ipairs(list) do known(listed) end
      end
    end
    made[policy_of_recipe] = { where = where, look = look }
    return policy_of_recipe
  end
end

for name, policy in pairs(library) do makers[name] = maker(name, policy) end

return makers, made, uncalled
