-- SPDX-License-Identifier: MIT
--
-- The part `losses` of scripts/lab/bench: the time to compute how a job goes on after a loss: for all 2016 losses of
-- two of 64 ranks with eight layouts, including the start of the command; then for random losses of 4096 ranks
-- (test_losses.c).

local LAYOUTS = { "megatron tp=4 pp=4", "deepspeed tp=4 pp=2", "megatron_deepspeed tp=4 pp=2", "picotron tp=4 pp=2",
  "torchtitan tp=4 pp=2", "nanotron tp=4 pp=2", "vllm tp=8", "llama tp=4 pp=2" }

-- Return the milliseconds that a command line takes.
local function timed(B, line)
  local seconds = B.run(("bash -c 'TIMEFORMAT=%%R; time %s >/dev/null' 2>&1"):format(line))
  return 1e3 * (tonumber(seconds:match "([%d.]+)%s*$") or error(line .. ": " .. seconds))
end

return function(B)
  local times, t = B.quick and 1 or 5, B.table("all losses of two of 64 ranks", "ms")
  local sum = 0
  for _, layout in ipairs(LAYOUTS) do
    local list = {}
    for i = 1, times do list[i] = timed(B, ("build/moongrid lose %s --world 64 --all 2"):format(layout)) end
    table.sort(list)
    sum = sum + list[(#list + 1) // 2]
    t:row(layout, list)
  end
  t:note("%d layouts in %.1f s", #LAYOUTS, sum / 1e3)
  local large, losses = B.table("random losses of 4096 ranks, megatron tp=8 pp=8", "ms"), B.quick and 100 or 10000
  B.run "make -s build/tests/test_losses"
  large:row(("%d losses, each checked"):format(losses),
    { timed(B, ("MOONGRID_LOSSES=%d build/tests/test_losses test_large_world"):format(losses)) })
end
