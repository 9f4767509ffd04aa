-- SPDX-License-Identifier: MIT
--
-- The bundled policies: `policies.NAME { settings }` makes a policy for the table `policy` of a
-- recipe. A setting is a value, or a function (state, q, p) that gives it when the policy is asked.
-- What each takes from a trainer (q) and returns is told in meta.lua, for who writes the trainer.
--
-- A policy means the same on every machine: only + - * / and sqrt touch a float, which IEEE 754
-- fixes to the last bit, so that ranks of unlike machines agree on it.

local core, show = ...

-- Kinds of settings and arguments: what is expected, and whether a value is that.
local function whole(v, least) return math.type(v) == "integer" and v >= least end
local function finite(v) return type(v) == "number" and v >= 0 and v < math.huge end

local kinds = {
  size = { "an integer of 1 or more", function(v) return whole(v, 1) end },
  count = { "an integer of 0 or more", function(v) return whole(v, 0) end },
  number = { "a number of 0 or more", finite },
  flag = { "true or false", function(v) return type(v) == "boolean" end },
  text = { "text", function(v) return type(v) == "string" end },
  names = {
    "a list of names",
    function(v)
      if type(v) ~= "table" then return false end
      local n = 0
      for _, name in pairs(v) do
        n = n + 1
        if type(name) ~= "string" then return false end
      end
      return n == #v
    end,
  },
}

local function one_of(...)
  local known = { ... }
  return { "'" .. table.concat(known, "', '") .. "'", function(v)
    for _, name in ipairs(known) do
      if name == v then return true end
    end
    return false
  end }
end

-- Each: settings and arguments in the order in which they are checked, { name, kind, default }; a
-- setting without a default may be left out unless it says `needed`. answer(s, q, state, refuse)
-- has all of them.
local library = {}

-- Layers of each pipeline stage. The one with the least work gets the next layer, the first of
-- several, so what does not divide goes to the front. The input matrix and the loss count as so many
-- layers of the first and the last stage; `first` and `last` say how many layers those get.
library.layers = {
  settings = { { "first", "count" }, { "last", "count" }, { "embedding", "number", 0 }, { "loss", "number", 0 } },
  arguments = { { "layers", "count" }, { "stages", "size" } },
  answer = function(s, q, _, refuse)
    local n, left = q.stages, q.layers
    local each, work = {}, {}
    for stage = 1, n do each[stage], work[stage] = 0, 0 end
    work[1] = work[1] + s.embedding
    work[n] = work[n] + s.loss
    if n == 1 and s.first and s.last then refuse("one stage is both the first and the last") end
    local function fix(stage, fixed)
      if fixed then each[stage], work[stage], left = fixed, math.huge, left - fixed end
    end
    fix(1, s.first)
    fix(n, s.last)
    local open = {}
    for stage = 1, n do
      if work[stage] < math.huge then open[#open + 1] = stage end
    end
    if left < 0 or left > 0 and #open == 0 then
      refuse("%d layers on %d stages, of which the first has %s and the last %s", q.layers, n, s.first or "any",
        s.last or "any")
    end
    for _ = 1, left do
      local least = open[1]
      for _, stage in ipairs(open) do
        if work[stage] < work[least] then least = stage end
      end
      each[least], work[least] = each[least] + 1, work[least] + 1
    end
    return each
  end,
}

-- How the samples of a replica go through a pipeline. `bubble` is the part of the ideal time that a
-- stage waits, (ranks - 1) / (chunks x microbatches): Narayanan et al. 2021, section 2.2.
library.schedule = {
  settings = { { "chunks", "size", 1 }, { "order", one_of("1f1b", "gpipe", "interleaved") }, { "microbatch", "size" },
               { "per_rank", "size", 2 } },
  arguments = { { "samples", "size" }, { "ranks", "size" } },
  answer = function(s, q, _, refuse)
    local order = s.order or (s.chunks > 1 and "interleaved" or "1f1b")
    if (order == "interleaved") ~= (s.chunks > 1) then
      refuse("the order '%s' with %d chunk%s per rank; 'interleaved' alone has several", order, s.chunks,
        s.chunks == 1 and "" or "s")
    end
    local round = order == "interleaved" and q.ranks or 1
    local step = round * (s.microbatch or 1)
    if q.samples % step ~= 0 then
      local below = q.samples // step * step
      refuse("%d samples do not divide into %smicrobatches%s; nearest: %s%d", q.samples,
        round > 1 and "rounds of " .. round .. " " or "", s.microbatch and " of " .. s.microbatch or "",
        below > 0 and below .. " or " or "", below + step)
    end
    local n = s.microbatch and q.samples // s.microbatch or math.min(s.per_rank * q.ranks, q.samples)
    while q.samples % n ~= 0 or n % round ~= 0 do n = n - 1 end -- a round divides
    return { microbatches = n, order = order, chunks = s.chunks, bubble = (q.ranks - 1) / (s.chunks * n) }
  end,
}

-- Megatron-core's default, max(40e6, 1e6 x ranks) parameters (DistributedDataParallelConfig), of 4
-- bytes: a bucket of many ranks is larger, so that latency does not show.
library.bucket_bytes = {
  settings = { { "least", "size", 160000000 }, { "per_rank", "count", 4000000 } },
  arguments = { { "ranks", "size" } },
  answer = function(s, q) return math.max(s.least, s.per_rank * q.ranks) end,
}

local function known_family(state, name, refuse_unknown)
  if state:has(name) then return name end
  local known = {}
  for family in pairs(state) do known[#known + 1] = family end
  return refuse_unknown(name, known)
end

-- The family over which a parameter's gradient is summed.
library.gradient_family = {
  settings = { { "dense", "text", "dp_cp" }, { "expert", "text", "expert_data" } },
  arguments = { { "expert", "flag" } },
  answer = function(s, q, state, _, unknown) return known_family(state, q.expert and s.expert or s.dense, unknown) end,
}

-- cos(pi x) for x in [0, 1]: the series from its smallest term up, in the half where it is short.
local function cos_pi(x)
  if x > 0.5 then return -cos_pi(1 - x) end
  local t, sum = (3.141592653589793 * x) * (3.141592653589793 * x), 1.0
  for k = 12, 1, -1 do sum = 1 - sum * t / ((2 * k - 1) * (2 * k)) end
  return sum
end

-- A linear warm-up to `peak`, then down to `least` over the last `decay` steps (all after the warm-up):
-- along half a cosine (Loshchilov and Hutter 2017, equation 5), a line, or not at all. inverse_sqrt is
-- peak x sqrt(warmup / step) (Vaswani et al. 2017, section 5.3), and not below `least`.
library.learning_rate = {
  settings = { { "peak", "number", needed = true }, { "least", "number", 0 }, { "warmup", "count", 0 },
               { "decay", "count" }, { "shape", one_of("cosine", "linear", "constant", "inverse_sqrt"), "cosine" } },
  arguments = { { "step", "count" }, { "steps", "size" } },
  answer = function(s, q, _, refuse)
    if s.least > s.peak then refuse("its least, %s, is above its peak, %s", s.least, s.peak) end
    if q.step < s.warmup then return s.peak * (q.step + 1) / s.warmup end
    if s.shape == "constant" then return s.peak end
    if s.shape == "inverse_sqrt" then
      local warmup = math.max(s.warmup, 1)
      return math.max(s.least, s.peak * math.sqrt(warmup / math.max(q.step, warmup)))
    end
    local decay = math.min(s.decay or q.steps, q.steps - s.warmup)
    local begins = q.steps - decay
    if q.step < begins then return s.peak end
    if q.step >= q.steps then return s.least end
    local done = (q.step - begins) / decay
    return s.least + (s.peak - s.least) * (s.shape == "linear" and 1 - done or (1 + cos_pi(done)) / 2)
  end,
}

-- Save after this step? Steps count from 0.
library.checkpoint = {
  settings = { { "every", "size", 1000 }, { "last", "flag", true } },
  arguments = { { "step", "count" }, { "steps", "size" } },
  answer = function(s, q) return (q.step + 1) % s.every == 0 or s.last and q.step + 1 == q.steps end,
}

-- A call over a family failed. `keep`: families that the trainer can do without; `shrink`: those whose
-- groups go on without the lost, where at least `least` ranks of a group remain.
library.on_lost = {
  settings = { { "keep", "names", {} }, { "shrink", "names", {} }, { "least", "size", 1 } },
  arguments = { { "family", "text" }, { "ranks", "size" }, { "lost", "count", 1 } },
  answer = function(s, q, state, _, unknown)
    local function has(list)
      local found = false
      for _, name in ipairs(list) do found = known_family(state, name, unknown) == q.family or found end
      return found
    end
    local keeps, shrinks = has(s.keep), has(s.shrink)
    return keeps and "keep" or shrinks and q.ranks - q.lost >= s.least and "shrink" or "stop"
  end,
}

-- Making them -------------------------------------------------------------------

local made = setmetatable({}, { __mode = "k" }) -- policy -> "file:line: " of the recipe that made it

local function kind_of(kind) return type(kind) == "table" and kind or kinds[kind] end

local function check(where, policy, what, name, kind, value)
  local wanted = kind_of(kind)
  if wanted[2](value) then return value end
  core.raise_at(where, string.format("policy '%s': %s '%s' is %s, not %s", policy, what, name, wanted[1], show(value)))
end

-- The settings that a recipe gives, with defaults; those that are functions are listed as well.
local function read_settings(name, policy, given, where)
  local settings, asked, known = {}, {}, {}
  if type(given) ~= "table" then
    core.raise_at(where, string.format("policies.%s takes a table of settings, not %s", name, show(given)))
  end
  for i, setting in ipairs(policy.settings) do known[i] = setting[1] end
  for _, key in ipairs(core.keys(given)) do
    local found = false
    for _, setting in ipairs(known) do found = found or setting == key end
    if not found then core.unknown("setting of policies." .. name, tostring(key), known, where) end
  end
  for _, setting in ipairs(policy.settings) do
    local key, value = setting[1], given[setting[1]]
    if value == nil then value = setting[3] end
    if setting.needed and value == nil then
      core.raise_at(where, string.format("policies.%s needs '%s', %s", name, key, kind_of(setting[2])[1]))
    end
    if type(value) == "function" then
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
    local settings, asked = read_settings(name, policy, given == nil and {} or given, where)
    local function refuse(message, ...)
      core.raise_at(where, string.format("policy '%s': " .. message, name, ...))
    end
    local function unknown(family, families)
      core.unknown("family", family, families, where .. "policy '" .. name .. "': ")
    end
    local function settings_now(state, q, p)
      local now = {}
      for key, value in pairs(settings) do now[key] = value end
      for _, setting in ipairs(asked) do
        local key, optional = setting[1], setting[3] == nil and not setting.needed
        local value = settings[key](state, q, p)
        if value ~= nil or not optional then check(where, name, "setting", key, setting[2], value) end
        now[key] = value
      end
      return now
    end
    local function policy_of_recipe(state, q, p)
      local s, arguments = #asked > 0 and settings_now(state, q, p) or settings, {}
      for _, argument in ipairs(policy.arguments) do
        local key = argument[1]
        local value = q[key]
        if value == nil then value = argument[3] end
        arguments[key] = check(where, name, "argument", key, argument[2], value)
      end
      return policy.answer(s, arguments, state, refuse, unknown)
    end
    made[policy_of_recipe] = where
    return policy_of_recipe
  end
end

local makers = {}
for name, policy in pairs(library) do makers[name] = maker(name, policy) end

return makers, made
