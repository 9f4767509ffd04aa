-- SPDX-License-Identifier: MIT
--
-- verl's meshes of torch, the last axis fastest, as its engine workers make them.

local ranks = require "models.ranks"

local function draw()
  local world = math.random(24)
  local p = { role = ranks.one_of { "actor", "rollout", "ref", "actor_rollout", "actor_rollout_ref" } }
  if math.random(2) == 1 then p.fsdp_size = ranks.one_of { -1, math.random(world + 2), ranks.divisor(world) } end
  local sp = ranks.one_of { math.random(4), ranks.divisor(world) }
  if math.random(2) == 1 then p.ulysses_sequence_parallel_size = sp end
  p.tensor_model_parallel_size = ranks.divisor(world)
  if math.random(3) == 1 then p.data_parallel_size = math.random(2) end
  if math.random(3) == 1 then p.pipeline_model_parallel_size = math.random(2) end
  return world, p
end

-- The groups of a mesh, axis by axis; nil where it leaves ranks out.
local function mesh(world, names, shape)
  local sizes, order, size, made = {}, {}, 1, {}
  for i, name in ipairs(names) do
    sizes[name], size = shape[i], size * shape[i]
    table.insert(order, 1, name)
  end
  if size ~= world then return nil end
  for _, name in ipairs(names) do made[name] = ranks.groups(order, sizes, name) end
  return made
end

local function families(world, p)
  local made, sp, size = {}, p.ulysses_sequence_parallel_size or 1, p.fsdp_size or -1
  local all = {}
  for rank = 0, world - 1 do all[rank + 1] = rank end
  made.world_group = { all }
  if p.role ~= "rollout" then
    if size < 0 or size >= world then
      made.fsdp = { all }
    else
      local dense = mesh(world, { "ddp", "fsdp" }, { world // size, size })
      if not dense then return nil, "fsdp leaves ranks out" end
      made.ddp, made.fsdp = dense.ddp, dense.fsdp
    end
    if sp > 1 then
      local ulysses = mesh(world, { "dp", "sp" }, { world // sp, sp })
      if not ulysses then return nil, "ulysses leaves ranks out" end
      made.dp, made.sp = ulysses.dp, ulysses.sp
    end
  end
  if p.role:find "rollout" then
    local tp = p.tensor_model_parallel_size * (p.data_parallel_size or 1)
    local pp = p.pipeline_model_parallel_size or 1
    local rollout = mesh(world, { "dp", "infer_tp", "infer_pp" }, { world // (tp * pp), tp, pp })
    if not rollout then return nil, "the rollout does not divide the world" end
    made.rollout_dp, made.infer_tp, made.infer_pp = rollout.dp, rollout.infer_tp, rollout.infer_pp
  end
  return made
end

return { draw = draw, families = families }
