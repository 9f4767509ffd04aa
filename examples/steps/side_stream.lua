-- A side stream beside sends and receives: the first stage starts the broadcast of sampled tokens on a side stream
-- before its send, the other stages after their receive. On two streams both can proceed. But if the broadcast takes
-- the SMs that the send needs, each waits for the other. Reported as vllm#56956. With `fixed=true` the send is first.
return recipe {
  params = { pp = 2, fixed = false },
  build = function(world, p)
    local g = grid(world, "tp-pp", { tp = fill, pp = p.pp })
    local t = topology(world)
    t.model = g("tp", "pp") t.pp = g "pp" t.tp = g "tp"
    return t
  end,
  step = function(s, p)
    local first = s.pp.position == 0
    if first and not p.fixed then s:on("sample"):broadcast(s.model, 4096) end
    if s.pp:prev() then s:recv(s.pp, s.pp:prev(), 1 << 20) end
    if s.pp:next() then s:send(s.pp, s.pp:next(), 1 << 20) end
    if p.fixed then s:on("sample"):wait(s:event()) end
    if not first or p.fixed then s:on("sample"):broadcast(s.model, 4096) end
    s:wait "sample"
  end,
}
