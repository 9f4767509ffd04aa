-- The queries of GroupCoordinator, which vLLM, xDiT and SGLang share, about this rank's group of a family.

local function group(s, q)
  local name = q.group or error "group is missing; a family such as tp would do"
  return s[name] or error(string.format("rank %d is in no group of '%s'", s.rank, name))
end

return recipe {
  build = topology,
  queries = {
    rank_in_group = function(s, q) return group(s, q).position end,
    world_size = function(s, q) return group(s, q).size end,
    ranks = function(s, q) return group(s, q).ranks end,
    first_rank = function(s, q) return group(s, q).first end,
    last_rank = function(s, q) return group(s, q).last end,
    is_first_rank = function(s, q) return group(s, q).first == s.rank end,
    is_last_rank = function(s, q) return group(s, q).last == s.rank end,
    next_rank = function(s, q) return group(s, q):next "wrap" end,
    prev_rank = function(s, q) return group(s, q):prev "wrap" end,
    -- only in xDiT
    skip_rank = function(s, q) return group(s, q).ranks[group(s, q).size - group(s, q).position] end, -- mirrored
    group_next_rank = function(s, q) return (group(s, q).position + 1) % group(s, q).size end,
    group_prev_rank = function(s, q) return (group(s, q).position - 1) % group(s, q).size end,
    group_skip_rank = function(s, q) return group(s, q).size - 1 - group(s, q).position end,
  },
  arguments = { group = param.text(nil, "the name of a family") },
}
