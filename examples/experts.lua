-- The experts of a mixture-of-experts model, placed by their loads: each rank of ep gets the same number of experts,
-- and about the same number of tokens. When loads change, the experts are divided into new pieces, and `relabel`
-- decides which rank gets which piece, so that as few experts as possible move.
--
--   moongrid move examples/experts.lua --world 8 vs loads=31,12,20,17,25,28,14,13,40,11,19,16,52,15,18,21
--   with relabel=false at the end                            piece i goes to rank i of ep, and more experts move

-- Assign each expert, the heaviest first, to the lightest piece that is not full.
local function balance(loads, pieces)
  local order, load, count, owners = {}, {}, {}, {}
  for i = 1, #loads do order[i] = i end
  table.sort(order, function(a, b) return loads[a] > loads[b] end)
  for k = 1, pieces do load[k], count[k] = 0, 0 end
  for _, i in ipairs(order) do
    local best
    for k = 1, pieces do
      if count[k] < #loads // pieces and (not best or load[k] < load[best]) then best = k end
    end
    owners[i], load[best], count[best] = best - 1, load[best] + loads[i], count[best] + 1
  end
  return owners
end

return recipe {
  doc = "Experts placed on ranks by their loads",
  params = {
    ep = param.size(4, "ranks that share the experts; each such group of ranks has a copy of all experts"),
    experts = param.size(16, "experts of a layer, a multiple of ep"),
    layers = param.size(4, "layers with experts"),
    hidden = param.size(1024, "elements of a token"),
    ffn = param.size(2048, "elements between the two halves of an expert"),
    owners = param.list(nil, "for each expert the rank of ep that has it now; without it experts are in order"),
    loads = param.list(nil, "recent tokens of each expert, to choose new owners; without it the owners stay"),
    relabel = param.flag(true, "number the new pieces so that the fewest experts move"),
  },
  build = function(world, p)
    if p.experts % p.ep ~= 0 then
      error(string.format("experts %d is not a multiple of ep %d", p.experts, p.ep))
    end
    local g = grid(world, "ep-dp", { ep = p.ep, dp = fill })
    local t = topology(world)
    t.grid = g
    t.ep = g "ep"
    t.dp = g "dp"
    local owners = p.owners or {}
    if not p.owners then
      for i = 0, p.experts - 1 do owners[i + 1] = i // (p.experts // p.ep) end
    end
    if p.loads then
      if #p.loads ~= p.experts then error(string.format("%d loads for %d experts", #p.loads, p.experts)) end
      local new = balance(p.loads, p.ep)
      owners = p.relabel and relabel(owners, new, { pieces = p.ep }) or new
    end
    local cut = { expert = { "ep", owners = owners } }
    local layer, expert = { "layer", p.layers }, { "expert", p.experts }
    local hidden, ffn = { "hidden", p.hidden }, { "ffn", p.ffn }
    t.up = tensor { axes = { layer, expert, { "gate_up", 2 * p.ffn }, hidden }, type = "bf16", cut = cut }
    t.down = tensor { axes = { layer, expert, hidden, ffn }, type = "bf16", cut = cut }
    return t
  end,
}
