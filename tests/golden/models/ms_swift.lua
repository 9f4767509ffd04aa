-- SPDX-License-Identifier: MIT
--
-- ms-swift's SequenceParallel._init_device_mesh, the last axis fastest.

local ranks = require "models.ranks"

local function draw()
  local world = math.random(32)
  return world, {
    sequence_parallel_size = ranks.one_of { 1, ranks.divisor(world), ranks.divisor(world), math.random(8) },
    num_attention_heads = ranks.one_of { 1, 2, 4, 6, 8, 12, 14, 28 }, padding_free = math.random(3) > 1,
  }
end

local function families(world, p)
  local size, sequence = p.sequence_parallel_size, p.num_attention_heads
  if size == 1 then return {} end
  local rest = size
  while rest > 0 do sequence, rest = rest, sequence % rest end -- Euclid
  local ring = size // sequence
  if world % size > 0 then return nil, "ranks are left out" end
  if ring > 1 and not p.padding_free then return nil, "a ring needs padding_free" end
  local order, sizes = { "sequence", "ring", "data" }, { sequence = sequence, ring = ring, data = world // size }
  return {
    data = ranks.groups(order, sizes, "data"), sequence = ranks.groups(order, sizes, "sequence"),
    ring = ring > 1 and ranks.groups(order, sizes, "ring") or nil,
  }
end

return { draw = draw, families = families }
