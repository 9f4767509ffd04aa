-- SPDX-License-Identifier: MIT
--
-- trace: write the trace event format of Chrome, which Perfetto and chrome://tracing read. A trace has processes with
-- threads; a thread has slices that do not overlap. Times are microseconds. Callers convert the names of slices to JSON
-- (trace.text) once, because most names occur many times.

local words = require "pictures.words"

local M = {}
local Trace = {}
Trace.__index = Trace

-- Return a user's text as JSON.
function M.text(text)
  local json
  words.json(text, function(piece) json = piece end)
  return json
end

function Trace:event(event)
  self.put(self.comma .. event)
  self.comma = ",\n"
end

-- Name a process or a thread: `what` is "process_name" or "thread_name".
function Trace:name(what, process, thread, name)
  self:event(('{"ph":"M","name":"%s","pid":%d,"tid":%d,"args":{"name":%s}}'):format(what, process, thread,
                                                                                   M.text(name)))
end

-- Write a slice of `took` microseconds. `name` and `category` are JSON, `arguments` the members of a JSON object.
function Trace:slice(name, category, process, thread, from, took, arguments)
  self:event(('{"ph":"X","name":%s,"cat":%s,"pid":%d,"tid":%d,"ts":%.15g,"dur":%.15g,"args":{%s}}'):format(
    name, category, process, thread, from, took, arguments))
end

-- Write a mark over all processes.
function Trace:mark(name, from, took)
  self:event(('{"ph":"i","name":%s,"pid":0,"tid":0,"ts":%.15g,"dur":%.15g,"s":"g"}'):format(M.text(name), from, took))
end

function Trace:close() self.put "\n]}\n" end

-- Begin a trace. `about` is an object that describes it.
function M.open(about, put)
  put '{"displayTimeUnit":"ms","otherData":'
  words.json(about, put)
  put ',"traceEvents":[\n'
  return setmetatable({ put = put, comma = "" }, Trace)
end

return M
