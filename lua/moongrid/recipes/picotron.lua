-- picotron's ProcessGroupManager: one grid, tp fastest, six families over its dims, and the group of all ranks.
-- Source: huggingface/picotron at commit 59714b1b, picotron/process_group_manager.py.
-- Not as there: local_rank is the index among the ranks of the node, since no recipe can read LOCAL_RANK.
-- Recorded: 58 cases of 1 to 64 ranks, 8 of them refused: tests/golden/picotron.json.

local queries = {
  global_rank = function(s) return s.rank end,
  world_size = function(s) return s.world end,
  local_rank = function(s) return s.machine.local_rank end,
  cp_send_rank = function(s) return s.cp:next("wrap") end,
  cp_recv_rank = function(s) return s.cp:prev("wrap") end,
  pp_next_rank = function(s) return s.pp:next() end, -- nil at the last stage
  pp_prev_rank = function(s) return s.pp:prev() end,
  pp_is_first_stage = function(s) return s.pp.position == 0 end,
  pp_is_last_stage = function(s) return s.pp.position == s.pp.size - 1 end,
  cp_dp_group_ids = function(s) return s.cp_dp.ranks end,
  cp_dp_world_size = function(s) return s.cp_dp.size end,
  str = function(s)
    return string.format("TP(%d)-CP(%d)-PP(%d)-DP(%d)-Rank(%d)", s.tp.size, s.cp.size, s.pp.size, s.dp.size, s.rank)
  end,
}
for _, dim in ipairs { "tp", "cp", "pp", "dp" } do
  queries[dim .. "_rank"] = function(s) return s[dim].position end
  queries[dim .. "_world_size"] = function(s) return s[dim].size end
  queries[dim .. "_group_ids"] = function(s) return s[dim].ranks end
  queries[dim .. "_first_rank"] = function(s) return s[dim].first end
  queries[dim .. "_last_rank"] = function(s) return s[dim].last end
end

return recipe {
  doc = "picotron's ProcessGroupManager: tensor, context, pipeline, data",
  params = {
    tp_size = param.size(1, "tensor-parallel size", "tp"),
    cp_size = param.size(1, "context-parallel size", "cp"),
    pp_size = param.size(1, "pipeline-parallel size", "pp"),
    dp_size = param.size(nil, "data-parallel size; default: what the other sizes leave", "dp"),
  },
  build = function(world, p)
    local g = grid(world, "tp-cp-pp-dp", { tp = p.tp_size, cp = p.cp_size, pp = p.pp_size, dp = p.dp_size or fill })
    local t = topology(world)
    t.grid = g
    t.tp = g "tp"
    t.cp = g "cp"
    t.pp = g "pp"
    t.dp = g "dp"
    t.cp_dp = g("cp", "dp") -- gradients are averaged over both
    t.pp_dp = g("pp", "dp")
    t.world_group = g:except():with { lazy = true } -- torch's default group
    return t
  end,
  queries = queries,
  getters = {
    tp_group = "tp", cp_group = "cp", pp_group = "pp", dp_group = "dp", cp_dp_group = "cp_dp", pp_dp_group = "pp_dp",
    world_group = "world_group",
  },
  step = steps.picotron(),
}
