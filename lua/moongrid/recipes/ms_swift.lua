-- ms-swift's sequence parallelism: one mesh of the dims sequence (the fastest), ring and data. `sequence` is Ulysses:
-- its size is the greatest common divisor of sequence_parallel_size and the heads. The size of `ring` is
-- sequence_parallel_size divided by that.
-- Source: modelscope/ms-swift 4.6.0, swift/sequence_parallel/sequence_parallel.py (SequenceParallel.prepare,
-- _init_device_mesh). Trainers with Megatron have `megatron`'s groups.
-- As in the source: without sequence parallelism there is no mesh, and a ring needs padding_free.
-- Not as there: a size that leaves ranks out of the mesh is refused.
-- Recorded: nothing. It follows the source; a second program agrees on random parameters:
-- tests/golden/models/ms_swift.lua.

local arithmetic = ...

-- Return the numbers of ranks of Ulysses and of the ring, or nil without sequence parallelism.
local function sizes_of(p)
  local size, heads = p.sequence_parallel_size, p.num_attention_heads
  if size == 1 then return nil end
  local ulysses = arithmetic.gcd(heads or size, size)
  return ulysses, size // ulysses
end

-- Return a query that answers with `field` of this rank's group of a family: its size, or the rank's position in it. If
-- there is no such group, the query answers with `without`.
local function of(family, field, without)
  return function(s)
    if not s:has(family) then return without end
    return s[family][field]
  end
end

return recipe {
  doc = "ms-swift's sequence parallelism: Ulysses as the heads allow, and a ring over the rest",
  params = {
    sequence_parallel_size = param.size(1, "ranks that share a sequence", "sp"),
    num_attention_heads = param.size(nil, "heads of the model; needed with sequence_parallel_size above 1", "heads"),
    padding_free = param.flag(false, "sequences are packed without padding; needed for a ring"),
  },
  idle = "allow",
  build = function(world, p)
    local t = topology(world)
    local ulysses, ring = sizes_of(p)
    if not ulysses then return t end
    if not p.num_attention_heads then
      error(string.format("sequence_parallel_size %d needs num_attention_heads; the model's number of heads would do",
        p.sequence_parallel_size))
    end
    if #world % p.sequence_parallel_size > 0 then
      error(string.format("sequence_parallel_size %d does not divide the %d ranks; %s would do",
        p.sequence_parallel_size, #world, arithmetic.nearest(p.sequence_parallel_size, #world)))
    end
    if ring > 1 and not p.padding_free then
      error(string.format("sequence_parallel_size %d with %d heads needs a ring of %d ranks, and a ring needs "
        .. "padding_free; sequence_parallel_size %d, or padding_free=true, would do", p.sequence_parallel_size,
        p.num_attention_heads, ring, ulysses))
    end
    local g = grid(world, "sequence-ring-data", { sequence = ulysses, ring = ring, data = fill })
    t.mesh = g:squeeze "ring"
    t.data = g "data"
    if ring > 1 then t.ring = g "ring" end
    t.sequence = g "sequence"
    return t
  end,
  queries = {
    enabled = function(_, _, p) return p.sequence_parallel_size > 1 end,
    sp_rank = of("sequence", "position", 0), dp_rank = of("data", "position", 0), rp_rank = of("ring", "position", -1),
    sp_world_size = of("sequence", "size"), dp_world_size = of("data", "size"),
    rp_world_size = function(_, _, p) return select(2, sizes_of(p)) end,
  },
  getters = { sp_group = "sequence", dp_group = "data", rp_group = "ring" },
  families = {
    data = "sequence_parallel_size above 1", sequence = "sequence_parallel_size above 1",
    ring = "a sequence_parallel_size that does not divide the heads",
  },
}
