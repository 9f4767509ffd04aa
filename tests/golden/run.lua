-- SPDX-License-Identifier: MIT
--
-- run.lua DIR [SYSTEM]: every recorded case of the tables in DIR (cases.lua says what is
-- compared). A case that cannot be interpreted is a failure; nothing is skipped in silence.

local adapter = require "adapter"
local cases = require "cases"

local dir, only = arg[1], arg[2]
local deviations = cases.read(dir .. "/deviations.json") or {}
local total = { pass = 0, fail = 0, skip = 0 }
for _, key in ipairs(cases.tables(dir)) do
  if not only or only == key then
    local table_ = cases.read(dir .. "/" .. key .. ".json")
    local system, count = adapter.of(key), { pass = 0, fail = 0, skip = 0 }
    for _, case in ipairs(table_.cases or {}) do
      local done, verdict, problem
      if system then
        done, verdict, problem = pcall(cases.check, system, case, (deviations[key] or {})[case.id] or {})
        if not done then verdict, problem = "fail", verdict end
      else
        verdict, problem = "fail", "nothing of ours speaks for this system"
      end
      count[verdict] = count[verdict] + 1
      if problem then print(("FAIL %s %s: %s"):format(key, tostring(case.id), problem)) end
    end
    print(("%-22s %d passed, %d failed, %d skipped by deviation"):format(key, count.pass, count.fail, count.skip))
    for verdict, n in pairs(count) do total[verdict] = total[verdict] + n end
  end
end
print(("%d passed, %d failed"):format(total.pass, total.fail))
os.exit(total.fail == 0 and total.pass > 0 and 0 or 1)
