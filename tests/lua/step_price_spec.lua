-- SPDX-License-Identifier: MIT
--
-- The price of a step on a machine: its fields, costs, refusals, diff --step, and its pictures.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local shared = dofile "tests/lua/step_recipe.lua"
local run = support.run
local recipe, step = shared.recipe, shared.step

describe("the price of a step", function()
  local nodes = "'node:*[50GB/s,2us] gpu:4[300GB/s,1us]'"
  local text = "s:alloc('weights', 8) s:compute { name = 'layer', flops = 4e9 } s:all_gather(s.tp, 3e9) "
    .. "if s.pp.position == 0 then s:send(s.pp, 1, 10^9) else s:recv(s.pp, 0, 10^9) end"
  local costs = support.file '{ "call": 0, "flops": 4e12, "source": "a test" }'

  it("has the fields of --json", function()
    local all, code = step(text, 8, "tp=4 pp=2 --machine " .. nodes .. " --costs " .. costs)
    local seconds = 1e-3 + (3e-6 + 0.0075) + (2e-6 + 0.08)
    assert.equal(0, code)
    assert.near(seconds, all.seconds, 1e-12)
    assert.near(1e-3, all.compute, 1e-12)
    assert.near(seconds - 1e-3, all.exposed, 1e-12)
    assert.near(0, all.bubble, 1e-12)
    assert.same({ "node:*[50GB/s,2us] gpu:4[300GB/s,1us]", 4e12, "a test", 2, 0 },
      { all.machine, all.flops, all.source, all.types, all.hidden })
    assert.same({ link = "node 0", level = "node", domain = 0, bytes = 4e9, seconds = 0.08 }, all.busiest)
    assert.near(0.080002, all.families.pp.seconds, 1e-12)
    all.families.pp.seconds = nil
    assert.same({ calls = 1, bytes = 10 ^ 9, algorithms = { send = "direct", recv = "direct" },
      levels = { node = { calls = 4, bytes = 4e9 }, gpu = { calls = 4, bytes = 4e9 } } }, all.families.pp)
    assert.same({ gpu = { calls = 2, bytes = 8 * 3e9 * 3 / 4 } }, all.families.tp.levels)
    assert.same({ all_gather = "ring" }, all.families.tp.algorithms)
    local without = step(text, 8, "tp=4 pp=2")
    assert.same({ calls = 1, bytes = 10 ^ 9 }, without.families.pp)
    assert.same({ from = "a test" }, all.estimate)
    assert.same({ from = "data sheets", longer = { 1.3, 3 } },
      json.decode((run "build/moongrid step megatron --world 8 --machine dgx-h100 --json")).estimate)
    assert.truthy((run "build/moongrid diff megatron --world 8 vs tp=2 --step --machine dgx-h100"):find(
      "^times +estimate from data sheets; published runs took 1.3 to 3 times as%s+long, so they do not tell which step is faster\n"))
    for _, name in ipairs { "seconds", "exposed", "bubble", "busiest", "machine", "estimate" } do assert.is_nil(without[name]) end
  end)

  it("takes costs from a machine's JSON, and flops from the command line", function()
    local machine = support.file('{ "levels": [{ "name": "node", "counts": [2], "bandwidth": 50e9, "latency": 2e-6 },'
      .. ' { "name": "gpu", "counts": [4], "bandwidth": 300e9, "latency": 1e-6 }], "costs": { "call": 0, "flops": 4e12 } }')
    local all = step(text, 8, "tp=4 pp=2 --machine " .. machine)
    assert.near(0.088505, all.seconds, 1e-12)
    assert.near(0.088505 - 0.5e-3, step(text, 8, "tp=4 pp=2 --flops 8T --machine " .. machine).seconds, 1e-12)
  end)

  it("says to what it was fitted, and the error", function()
    local file = support.file('{ "call": 0, "flops": 4e12, "measured": [["send", "node", 2, 1e9, 0.025], '
      .. '["send", "node", 2, 1e9, 0.025], ["send", "node", 2, 2e9, 0.055]] }')
    local line = "build/moongrid step %s --world 8 tp=4 pp=2 --machine %s --costs %s"
    local recipe_file = recipe(text)
    local out = run(line:format(recipe_file, nodes, file))
    assert.equal("node fitted to 3 measured calls: latency of a hop 0, 0.777 of the bandwidth reached; error 2.9% at the median, at most 6.4%",
      out:match "node fitted[^\n]*")
    local fit = json.decode((run(line:format(recipe_file, nodes, file) .. " --json"))).fits.node
    assert.same({ 3, 0 }, { fit.measured, fit.latency })
    assert.near(1 - 0.0514623 / 0.055, fit.worst_error, 1e-4)
  end)

  it("is the same from Lua", function()
    local file = recipe(text)
    local moongrid = require "moongrid"
    local plan = moongrid.load(file):plan(8, { tp = 4, pp = 2 })
    local all = plan:step():price { machine = nodes:sub(2, -2), costs = { call = 0, flops = 4e12 } }
    assert.near(0.088505, all.seconds, 1e-12)
    assert.same({ peak = 8, at = "", rank = 0, by = { weights = 8 } }, all.memory)
    local mpi = plan:step():price { machine = nodes:sub(2, -2), costs = { call = 0 }, flops = 4e12, rules = "mpi" }
    assert.same({ all_gather = "doubling" }, mpi.families.tp.algorithms)
    assert.near(0.088504, mpi.seconds, 1e-12)
    local function message(...) return (select(2, pcall(plan:step().price, plan:step(), ...)):gsub("^.-:%d+: ", "")) end
    assert.equal('a price needs a machine: price { machine = "dgx-h100" }, or a recipe that has one', message {})
    assert.equal("unknown option of a price 'machin'; nearest is 'machine' (machine, rules, eager, flops, costs, timeline)", message { machin = "" })
    assert.equal("flops of a price is a number from 0 on", message { machine = "dgx-h100", flops = -1 })
    assert.equal("costs of a price are a table, as { flops = 4e14 }, or a file", message { machine = "dgx-h100", costs = print })
  end)

  it("takes a machine, and costs, that were read before, or a file", function()
    local moongrid = require "moongrid"
    local made = moongrid.load(recipe(text)):plan(8, { tp = 4, pp = 2 }):step()
    local machine = moongrid.open_machine(nodes:sub(2, -2))
    local given = { call = 0, flops = 4e12, source = "a test" }
    assert.same(made:price { machine = machine, costs = given }, made:price { machine = nodes:sub(2, -2), costs = costs })
    local file = support.file('{ "levels": [{ "name": "node", "counts": [2], "bandwidth": 50e9, "latency": 2e-6 },'
      .. ' { "name": "gpu", "counts": [4], "bandwidth": 300e9, "latency": 1e-6 }], "costs": { "call": 0, "flops": 4e12 } }')
    assert.near(0.088505, made:price { machine = file }.seconds, 1e-12)
    assert.near(0.088505, made:price { machine = moongrid.open_machine(file) }.seconds, 1e-12)
    local bad = support.file "{"
    assert.truthy(select(2, pcall(made.price, made, { machine = machine, costs = bad })):find("costs " .. bad .. ":1: ", 1, true))
  end)

  it("has what happens when", function()
    local moongrid = require "moongrid"
    local made = moongrid.load(recipe [[s:compute { name = "a", seconds = 1 }
      s:loop(1000, function() s:all_reduce(s.tp, 8) end)
      if s.pp.position == 0 then s:compute { seconds = 2 } s:on "side":compute { seconds = 1 } end s:all_reduce(s.pp, 8)]])
      :plan(8, { tp = 4, pp = 2 }):step()
    local price, all = made:price { machine = nodes:sub(2, -2), timeline = 10 }
    assert.same({ { rank = 0, ranks = 4, program = 1, streams = { "main", "side" } },
                  { rank = 4, ranks = 4, program = 2, streams = { "main" } } }, all.types)
    local last, began = 0, 0
    for i = 1, #all do
      local type, stream, number, wait, from, to, by = all:span(i)
      assert.is_true(wait <= from and from <= to and from >= began)
      assert.equal(wait < from, by ~= nil)
      assert.equal(stream == 2 and "side" or nil, made:entry(all.types[type].rank, number).stream)
      began, last = from, math.max(last, to)
    end
    assert.near(price.seconds, last / 1e12, 1e-12)
    local skipped = all.repeats
    assert.is_true(#skipped > 0 and #all < 1000)
    assert.is_true(skipped[1].times > 900 and skipped[1].to > skipped[1].from)
    assert.is_false(all.cut)
    assert.near(1, all:seconds(1, 1), 1e-12)
    assert.is_nil(select(2, made:price { machine = nodes:sub(2, -2) }))
    for _, call in ipairs { function() return all:span(0) end, function() return all:span(#all + 1) end,
                            function() return all:seconds(3, 1) end, function() return all:seconds(1, 99) end } do
      assert.has_error(call)
    end
  end)

  it("is asked by examples/waits.lua who waits for whom", function()
    local out, err, code = run "LUA_CPATH_5_4='build/?.so;;' lua5.4 examples/waits.lua megatron 64 dgx-h100 tp=8 pp=4 layers=32"
    assert.same({ "", 0 }, { err, code })
    assert.truthy(out:find "\n157[.,]289 ms on node:.-\nrank 0 and 15 others of its type\n +[%d.,]+ ms, 16 times, in recv%(pp%) for rank 16\n")
  end)

  it("has the bytes of groups that share ranks once, and names once what is read of them", function()
    local path = support.file [[
return recipe { idle = "allow", build = function(world)
  local t = topology(world)
  t.e = world:table({ { 0, 1, 2, 3 }, { 2, 3, 4, 5 } }, "cover")
  return t
end, step = function(s) for _, e in ipairs(s:groups "e") do s:all_to_all(e, 16e6) s:all_gather(e, 16e6) end end }]]
    local all = json.decode((run(("build/moongrid step %s --world 6 --machine 'node:6[50GB/s] gpu:1' --json"):format(path))))
    assert.equal("e", all.reads)
    assert.near(2 * 4 * 3 * 4e6 + 2 * 4 * 12e6, all.families.e.levels.node.bytes, 1)
  end)

  it("has groups that share a rank on a link one after another", function()
    local path = support.file [[
return recipe { idle = "allow", build = function(world)
  local t = topology(world)
  t.e = world:table({ { 0, 1, 4, 5 }, { 0, 2, 4, 6 } }, "cover")
  return t
end, step = function(s) for _, e in ipairs(s:groups "e") do s:all_gather(e, 16e6) end end }]]
    local line = "build/moongrid step %s --world 8 --machine 'node:2[50GB/s,2us] gpu:4[300GB/s,1us]' --json"
    local all = json.decode((run(line:format(path))))
    local ring = 3.6e-6 + 2e-6 + 2 * 1e-6 + 12e6 / 50e9
    assert.near(2 * ring, all.seconds, 1e-9)
  end)

  it("is JSON whose empty objects are objects", function()
    local out = run(("build/moongrid step %s --world 8 --json"):format(recipe "s:mark 'a'"))
    for _, name in ipairs { "families", "by" } do assert.truthy(out:find(('"%s": {}'):format(name), 1, true), name) end
    assert.truthy(out:find('"counterexample": []', 1, true))
  end)

  it("is printed", function()
    local out = run("build/moongrid step megatron --world 64 tp=8 pp=4 layers=32 --machine dgx-h100")
    local price = out:match "time of the step.-\n\ndigest"
    assert.equal([[time of the step 157 ms on node:*[400GB/s] gpu:8[450GB/s] rail = gpu[50GB/s], 989 TFLOP/s
estimate from data sheets; published runs took 1.3 to 3 times as long
  computes      68.8 ms  43.7%  of the mean rank
  exposed       64.0 ms  40.7%  bytes move, and nothing computes
  bubble        24.5 ms  15.6%  neither: the rank waits for others, or has ended
  hidden              0   0.0%  bytes move while it computes; part of computes

  family                           time  bytes out of domains, of all ranks; algorithms
  dp_cp                         18.9 ms  node 51.7 GiB, gpu 51.7 GiB; all_reduce by ring
  mp                            15.3 us  node 32 B, gpu 256 B; all_reduce by nvls
  tp                            37.1 ms  gpu 520.0 GiB; all_reduce by nvls
  pp                            21.9 ms  node 24.0 GiB, gpu 24.0 GiB; recv by direct, send by direct
  embd                          2.11 ms  node 3.12 GiB, gpu 3.12 GiB; all_reduce by ring

busiest link: out of node 2 10.0 GiB, 26.9 ms of the step at its bandwidth

digest]], price)
  end)

  it("is refused with what is missing", function()
    local file = recipe(text)
    local function refused(arguments, message, code)
      local _, err, got = run(("build/moongrid step %s --world 8 tp=4 pp=2 %s"):format(file, arguments))
      assert.equal("moongrid: " .. message .. "\n", (err:gsub("\nmoongrid step %-%-help.-\n", "\n")))
      assert.equal(code, got)
    end
    refused("--flops 4T", "--flops needs a machine: --machine dgx-h100, or levels, as 'node:*[50GB/s] gpu:8[300GB/s]'", 2)
    refused("-o x.svg", "--output needs a machine: --machine dgx-h100, or levels, as 'node:*[50GB/s] gpu:8[300GB/s]'", 2)
    refused("--machine dgx-h100 -o x.pdf", "--output is a file that ends with .svg, .html or .json, not 'x.pdf'", 2)
    refused("--machine dgx-h100 --flops fast", "--flops is the number of operations of a GPU in a second, as 400e12 or 400T, not 'fast'", 2)
    refused("--machine dgx-h100 -o /none/x.svg", "cannot write /none/x.svg: No such file or directory", 3)
    refused("--machine " .. nodes, "compute 'layer', line 8, has flops, but the flops of a GPU in a second are not known; "
      .. "--flops 400T gives them", 1)
  end)

  it("is compared by diff --step", function()
    local out, err, code = run "build/moongrid diff megatron --world 64 tp=8 pp=4 layers=32 vs tp=8 pp=4 layers=32 zero=1 --step --exit-code"
    assert.same({ "", 1 }, { err, code })
    assert.equal([[
families: calls, bytes and time of the rank with the most; bytes out of domains, of all ranks
~ dp_cp            calls                           1 -> 4            +300.0%
~ dp_cp            bytes                   900.9 MiB -> 1.32 GiB     +50.0%
- mp               calls                           1 -> 0
- mp               bytes                         4 B -> 0 B
+ intra_dist_opt   calls                           0 -> 1
+ intra_dist_opt   bytes                         0 B -> 4 B

memory of the rank with the most
~ peak             bytes                    7.21 GiB -> 5.89 GiB     -18.3%
~ optimizer        bytes                    2.64 GiB -> 1.32 GiB     -50.0%
]], (out:gsub(" +\n", "\n")))
    out = run "build/moongrid diff megatron --world 64 tp=8 pp=4 vs tp=8 pp=1 --step --machine dgx-h100 --json"
    local all, of = json.decode(out), {}
    for _, row in ipairs(all.changes) do of[row.name .. " " .. row.what] = row end
    assert.is_true(all.differ)
    assert.equal(all.from.seconds, of["seconds seconds"].from)
    assert.equal(all.to.seconds, of["seconds seconds"].to)
    assert.same({ all.from.families.pp.seconds, 0 }, { of["pp seconds"].from, of["pp seconds"].to })
    assert.same({ all.from.families.pp.levels.node.bytes, 0 }, { of["pp bytes out of node"].from, of["pp bytes out of node"].to })
    assert.equal("the steps cost the same\n", (run "build/moongrid diff megatron --world 64 tp=8 vs tp=8 --step"))
    assert.equal("", select(2, run "build/moongrid diff picotron --world 8 vs tp=2 --step"))
    local _, refused, failed = run "build/moongrid diff examples/moe.lua --world 8 vs examples/moe.lua --step"
    assert.same({ "moongrid: the recipe examples/moe.lua has no step: step = function(s, p) ... end makes one, or a file of its own\n", 1 },
      { refused, failed })
  end)

  it("has the flops of every preset", function()
    local n = 0
    for preset in support.run "build/moongrid machine":gmatch "%f[^%z\n](%l[%w-]+) +%l+:" do
      n = n + 1
      local out = support.run("build/moongrid step megatron --world 8 tp=2 --machine " .. preset)
      assert.truthy(out:find "%d TFLOP/s", preset .. "\n" .. out)
    end
    assert.is_true(n >= 6, n .. " presets")
  end)

  describe("is drawn", function()
    local function picture(ending, arguments)
      local name = os.tmpname() .. ending
      local out, err, code = run(("build/moongrid step megatron --world 64 tp=8 %s --machine dgx-h100 -o %s"):format(arguments or "pp=4", name))
      assert.same({ "", 0 }, { err, code })
      assert.is_truthy(out:find("verdict proved", 1, true))
      local all = support.read(name)
      os.remove(name)
      return all
    end

    it("as SVG with a row for each stage and stream", function()
      local svg = picture ".svg"
      local rows = {}
      for row in svg:gmatch 'class="row">(.-)</text>' do rows[#rows + 1] = row end
      assert.same({ "pp 0", "pp 1", "pp 2", "pp 3" }, rows)
      for _, kind in ipairs { "forward", "backward", "optimizer", "tp", "pp", "dp_cp", "waits for others" } do
        assert.is_truthy(svg:find('class="note">' .. kind .. "</text>", 1, true), kind)
      end
      local two = picture(".svg", "pp=4 overlap=true zero=1")
      assert.is_truthy(two:find('class="row">pp 3 data</text>', 1, true))
      -- no column holds more than the height of its row, and none is outside the chart
      for x, width in svg:gmatch "M([%d.]+) [%d.]+h(%d+)" do assert.is_true(tonumber(x) + width <= 1200 + 60) end
      local big = picture(".svg", "pp=8 layers=64 global_batch=4096")
      assert.is_true(#big < 2e6)
    end)

    it("with the ranks of rows whose words are equal", function()
      local name = os.tmpname() .. ".svg"
      local file = recipe "s:compute { name = 'c', seconds = 1 + s.rank } s:mark(tostring(s.pp.position)) s:barrier(s.tp)"
      local _, err, code = run(("build/moongrid step %s --world 4 tp=2 pp=2 --machine dgx-h100 -o %s"):format(file, name))
      assert.same({ "", 0 }, { err, code })
      local rows = {}
      for row in support.read(name):gmatch 'class="row">(.-)</text>' do rows[#rows + 1] = row end
      assert.same({ "pp 0, rank 0", "pp 0, rank 1", "pp 1, rank 2", "pp 1, rank 3" }, rows)
    end)

    it("as a page without network, whose data are escaped", function()
      local page = picture ".html"
      assert.is_nil(page:find "https?://")
      local all = json.decode((page:match('<script type="application/json" id="data">(.-)</script>')))
      local data = all.about
      assert.equal(4, #data.rows)
      assert.equal("pp 3", data.rows[4].label)
      local last, waited = 0, 0
      for i, bars in ipairs(all.bars) do
        local at = 0
        assert.equal(0, #bars % 5)
        for k = 1, #bars, 5 do
          at = at + bars[k] + bars[k + 1] + bars[k + 2]
          assert.is_true(bars[k + 1] >= 0 and bars[k + 2] >= 0 and bars[k + 3] < #data.texts and bars[k + 4] < #data.rows)
          if bars[k + 4] >= 0 then waited = waited + 1 end
          if bars[k + 1] > 0 then assert.is_true(bars[k + 4] >= 0 and bars[k + 4] ~= i - 1) end
        end
        last = math.max(last, at)
      end
      assert.near(data.seconds * 1e9, last, 1)
      assert.is_true(waited > 0)
    end)

    it("with names of any characters", function()
      local file = recipe [[s:compute { name = '</script><b>&"', seconds = 1 } s:all_reduce(s.dp, 8)]]
      for _, ending in ipairs { ".svg", ".html", ".json" } do
        local name = os.tmpname() .. ending
        local _, err, code = run(("build/moongrid step %s --world 8 --machine dgx-h100 -o %s"):format(file, name))
        assert.same({ "", 0 }, { err, code })
        local all = support.read(name)
        if ending == ".json" then
          assert.equal(4, #json.decode(all).traceEvents) -- names of a process and a thread, two slices
        else
          assert.is_nil(all:find("<b>", 1, true))
        end
        os.remove(name)
      end
    end)

    it("as events, whose slices do not overlap", function()
      local all = json.decode(picture ".json")
      local until_of, names, waits = {}, {}, 0
      for _, e in ipairs(all.traceEvents) do
        if e.ph == "M" and e.name == "process_name" then names[e.pid] = e.args.name end
        if e.ph == "X" then
          local thread = e.pid * 1000 + e.tid
          assert.is_true(e.ts >= (until_of[thread] or 0) - 1e-6)
          until_of[thread] = e.ts + e.dur
          if e.name == "waits" then waits = waits + 1 end
        end
      end
      assert.same({ [0] = "pp 0: 16 ranks from 0", "pp 1: 16 ranks from 16", "pp 2: 16 ranks from 32", "pp 3: 16 ranks from 48" }, names)
      assert.is_true(waits > 0)
    end)
  end)
end)
