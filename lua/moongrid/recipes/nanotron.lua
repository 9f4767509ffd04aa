-- nanotron's ParallelContext: one grid, tp fastest, then cp, dp, pp, ep. Every family has its own
-- order of groups. Equal groups are one communicator in nanotron and here.
-- Source: huggingface/nanotron at commit 2411b022, src/nanotron/parallel/context.py.
-- As in the source: ep is 1. nanotron's grid has the dim ep, but its check of the sizes ignores ep, so other sizes
-- never fit.
-- Not as there: groups that an earlier family also has are in the order of their own family; LOCAL_WORLD_SIZE also
-- counts in worlds of at most 8 ranks.
-- Recorded: 47 cases of 1 to 64 ranks, 8 of them refused: tests/golden/nanotron.json.

-- The families in the order of creation. Each has the dims of its members, and in `index` the dims that number its
-- groups, fastest first. The first two cannot have nanotron's short names: `state.world` is a number, `local` a keyword
-- of Lua.
local families = {
  { "world_pg", { "tp", "cp", "dp", "pp", "ep" } },
  { "local_pg" }, -- the ranks of a node
  { "tp", { "tp", index = { "cp", "dp", "pp", "ep" } } },
  { "cp", { "cp", index = { "dp", "pp", "ep", "tp" } } },
  { "dp", { "dp", index = { "pp", "ep", "tp", "cp" } } },
  { "pp", { "pp", index = { "ep", "tp", "cp", "dp" } } },
  { "ep", { "ep", index = { "tp", "cp", "dp", "pp" } } },
  { "mp", { "tp", "pp", "ep", index = { "dp", "cp" } } }, -- one replica of the model
  { "dp_cp", { "cp", "dp", index = { "ep", "pp", "tp" } } }, -- gradients are averaged over both
  { "tp_and_ep", { "tp", "ep", index = { "dp", "pp", "cp" } } },
}

-- Return the coordinates that q has (q.tp_rank, ...), and those of this rank for the other dims.
local function coords_of(s, q)
  local coords = {}
  for dim, own in pairs(s.grid) do
    local asked = q[dim .. "_rank"]
    coords[dim] = asked == nil and own or asked
  end
  return coords
end

local function group(s, q) return s[q.group or error "group is missing; a family such as tp would do"] end

local queries = {
  get_rank = function(s, q) return group(s, q).position end,
  get_size = function(s, q) return group(s, q).size end,
  get_local_ranks = function(s, q) return s.plan:grid "grid":coords(q.world_rank or s.rank) end,
  get_global_rank = function(s, q) return s.plan:grid "grid":rank(coords_of(s, q)) end,
}
for _, dim in ipairs { "tp", "cp", "dp", "pp", "ep" } do
  queries[dim .. "_rank"] = function(s) return s.grid[dim] end
end

return recipe {
  doc = "nanotron's ParallelContext: tensor, context, data, pipeline",
  params = {
    tensor_parallel_size = param.size(1, "tensor-parallel size", "tp"),
    pipeline_parallel_size = param.size(1, "pipeline stages", "pp"),
    data_parallel_size = param.size(nil, "data-parallel size; default: what the other sizes leave", "dp"),
    context_parallel_size = param.size(1, "context-parallel size", "cp"),
    expert_parallel_size = param.size(1, "only 1: nanotron's own checks contradict any other size", "ep"),
    local_world_size = param.size(nil, "ranks of a node; default: 8, or all if there are fewer", "LOCAL_WORLD_SIZE"),
    backend = param.text("nccl", "only nccl"),
  },
  build = function(world, p)
    if p.expert_parallel_size > 1 then
      error(string.format("expert_parallel_size %d: nanotron's grid counts it, its size check does not, so no world "
        .. "would fit; 1 would do", p.expert_parallel_size))
    end
    if p.backend ~= "nccl" then error("backend '" .. p.backend .. "': nanotron runs on nccl only; 'nccl' would do") end

    local g = grid(world, "tp-cp-dp-pp-ep", {
      tp = p.tensor_parallel_size, cp = p.context_parallel_size, dp = p.data_parallel_size or fill,
      pp = p.pipeline_parallel_size, ep = p.expert_parallel_size,
    })
    local nodes = grid(world, "local_world_size-node",
      { local_world_size = p.local_world_size or math.min(8, #world), node = fill })
    local t = topology(world)
    t.grid = g
    for _, family in ipairs(families) do
      local name, dims = family[1], family[2]
      t[name] = dims and g:along(dims) or nodes "local_world_size"
    end
    return t
  end,
  queries = queries,
  getters = {
    world_pg = "world_pg", local_pg = "local_pg", tp_pg = "tp", cp_pg = "cp", dp_pg = "dp", pp_pg = "pp", ep_pg = "ep",
    mp_pg = "mp", dp_cp_pg = "dp_cp", tp_and_ep_pg = "tp_and_ep",
  },
  arguments = {
    group = param.text(nil, "a family"),
    world_rank = param.index(nil, "a rank; default: this rank"),
    tp_rank = param.index(nil, "coordinate along tp; default: that of this rank"),
    cp_rank = param.index(nil, "the same along cp"),
    dp_rank = param.index(nil, "the same along dp"),
    pp_rank = param.index(nil, "the same along pp"),
    ep_rank = param.index(nil, "the same along ep"),
  },
}
