-- SPDX-License-Identifier: MIT
--
-- How the recorded tables of a system map to our recipe. systems/SYSTEM.lua returns an adapter; most
-- are a recipe with a translation of names:
--
--   recipe    name of the bundled recipe; its parameters carry the system's argument names
--   kinds     recorded kind of group -> family: a table, or a function of the kind
--   unrecorded  families that the system has but the tables lack: name -> true
--   query     recorded column -> name of the query, its arguments (default: the column's own)
--   calls     what other calls do: name -> function(job, arguments)
--   arguments function(args, case): what of the first call's is for the recipe (default: all)
--   list      function(job, name, want): the value of a recorded list (default: the query of that name, at rank 0)
--   backend   the system's name of the backend of groups on the GPU, where it says one: text, or a function(case,
--             kind, backend, job) that returns the recorded one of a kind; `backend` is "gloo" on the CPU, else nil
--   unheld    the backend of groups that nobody holds (default: nccl)
--   free      function(case, kind, groups): are these groups there before, so that none is created?
--   ask       function(job, column, rank) in place of `query`, for columns of other forms
--
-- Other adapters have a function `open(case)` that returns a job (M.job makes most of it) with:
--
--   job:kinds()             set of the kinds that exist: kind -> true
--   job:about(kind)         { id = of its communicator, options = as text }; nil: no such kind
--   job:list(name, want)    the value of a recorded list
--   job:groups(kind)        list of the groups of a kind, each a list of ranks; nil: no such kind
--   job:plans(), or job.plan  the plans that exist at the end, for real communicators
--   job:ask(column, rank)   the value of a recorded column; nil: none; raises if it is unknown

local json = require "dkjson"
local mg = require "moongrid"

local M = {}

-- "getter(flag=True)@virtual_rank=1" -> "getter", { flag = true, virtual_rank = 1 }
function M.query(column)
  local name, args = column:match("^[%w_]+"), {}
  for key, value in column:gmatch("([%w_]+)=([%w_]+)") do
    if value == "True" or value == "False" then
      args[key] = value == "True"
    else
      args[key] = math.tointeger(tonumber(value)) or value
    end
  end
  return name, args
end

-- Perform the recorded operations of a case in order. One that `may_fail` is refused exactly where the system refused
-- it, which `lists.refused` has as { index, message }; any other is never refused. accepts(op, message): is it one that
-- is taken here on purpose?
function M.perform(ops, lists, perform, accepts)
  local refused = {}
  for _, at in ipairs(lists.refused or {}) do refused[at[1]] = at[2] end
  for i, op in ipairs(ops) do
    local want, ok, message = refused[i - 1], true, nil
    local what = ("operation %d, %s"):format(i - 1, op.call)
    if op.may_fail then ok, message = pcall(perform, op) else perform(op) end
    assert(not want or op.may_fail, what .. ", is recorded as refused, and may not fail")
    assert(want or ok, ("%s: %s"):format(what, message))
    assert(not (want and ok) or accepts and accepts(op, want), ("%s, should be refused: %s"):format(what, want))
    assert(ok or type(message) == "string" and #message >= 20, what .. ", is refused without a clear message")
    refused[i - 1] = nil
  end
  assert(next(refused) == nil, "an operation is recorded as refused that is not there")
end

-- A job made by a recipe.
local Job = {}
Job.__index = Job

-- A second initialization makes another plan; destroy leaves none.
function Job:initialize(args)
  self.plan = self.recipe:plan(self.world, args)
  self.states = {}
end

function Job:destroy() self.plan, self.states = nil, {} end

function Job:family_of(kind)
  local kinds = self.adapter.kinds
  if type(kinds) == "function" then return kinds(kind) end
  return kinds[kind]
end

-- The families of the plan under their recorded names; one that no expected kind speaks of
-- keeps its own.
function Job:kinds(expected)
  local kind_of, set = {}, {}
  for kind in pairs(expected) do kind_of[self:family_of(kind) or kind] = kind end
  local unrecorded = self.adapter.unrecorded or {}
  for _, name in ipairs(self.plan and self.plan.families or {}) do
    if not unrecorded[name] then set[kind_of[name] or "family " .. name] = true end
  end
  return set
end

function Job:groups(kind)
  local name = self:family_of(kind)
  if not self.plan or not name then return nil end
  local ok, family = pcall(self.plan.family, self.plan, name)
  if not ok then return nil end
  local groups = {}
  for g, ranks in family:groups() do groups[g + 1] = ranks end
  return groups
end

function Job:state(rank)
  self.states[rank] = self.states[rank] or self.plan:dry(rank)
  return self.states[rank]
end

function Job:query(rank, name, args) return self.recipe:ask(self:state(rank), name, args) end

function Job:ask(column, rank)
  if not self.plan then return nil end -- destroyed: no plan to ask
  if self.adapter.ask then return self.adapter.ask(self, column, rank) end
  return self:query(rank, (self.adapter.query or M.query)(column))
end

-- A job of an adapter: `kinds` and the rest as above; `plan` comes later.
function M.job(adapter, fields)
  local job = { adapter = adapter, states = {}, listed = {} }
  for name, value in pairs(fields or {}) do job[name] = value end
  return setmetatable(job, Job)
end

-- What a plan says of the communicators of a family. Groups of one rank need none, so all of these are alike.
function M.about(plan, name)
  local made = plan:communicators(name)
  return { id = made.needed and (made.shares or name) or "none", options = made.options }
end

function Job:about(kind)
  local name = self:family_of(kind)
  return self.plan and name and M.about(self.plan, name) or nil
end

-- Lists that the operations of a case return are in `listed`.
function Job:list(name, want)
  local own = self.listed and self.listed[name]
  if own ~= nil then return own end
  if self.adapter.list then return self.adapter.list(self, name, want) end
  return self:query(0, name)
end

local calls = {
  destroy_model_parallel = function(job) job:destroy() end,
  initialize_model_parallel = function(job, args) job:initialize(args) end,
}

local function arguments(from)
  local args = {}
  for key, value in pairs(from) do -- a null is an argument that was left out
    if key ~= "call" and value ~= json.null then args[key] = value end
  end
  return args
end

-- The recorded calls, in order; what is left at the end is what the tables show.
local function open_recipe(adapter, case)
  local job = M.job(adapter, { recipe = mg.load(adapter.recipe), world = case.world })
  local function perform(call, args)
    local fn = (adapter.calls or {})[call] or calls[call]
    if not fn then error("unknown call '" .. tostring(call) .. "'", 0) end
    fn(job, args)
  end
  perform(case.args.call or "initialize_model_parallel", arguments((adapter.arguments or arguments)(case.args, case)))
  for _, call in ipairs(case["then"] or {}) do perform(call.call, arguments(call)) end
  return job
end

-- The adapter of a system, or nil when there is none.
function M.of(system)
  if not package.searchpath("systems." .. system, package.path) then return nil end
  local adapter = require("systems." .. system)
  adapter.open = adapter.open or function(case) return open_recipe(adapter, case) end
  return adapter
end

return M
