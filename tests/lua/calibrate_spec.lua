-- SPDX-License-Identifier: MIT
--
-- moongrid calibrate: fits to published runs with their errors, refusals, and memory compared with Megatron-LM's
-- report. With MOONGRID_ROUNDS also the fits of the two tables with long pipelines, which take two minutes.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local run = support.run

describe("calibrate", function()
  local h100 = "tests/golden/runs/megatron-h100.csv"

  -- Mean errors of left-out runs, in percent, as measured.
  it("predicts published runs that it has not seen", function()
    local tables = { { "megatron-h100", 5.4, "1.00" } }
    if os.getenv "MOONGRID_ROUNDS" then
      tables[2], tables[3] = { "megatron-selene-2021", 5.8, "0.96" }, { "megatron-selene-2022", 3.2, "1.00" }
    end
    for _, one in ipairs(tables) do
      local out, err, code = run(("build/moongrid calibrate tests/golden/runs/%s.csv"):format(one[1]))
      assert.same({ "", 0 }, { err, code })
      assert.is_true(tonumber(out:match "error of left%-out runs ([%d.]+)%% in the mean") <= one[2] + 0.2, out)
      assert.truthy(out:find("Kendall's tau " .. one[3], 1, true), out)
      assert.truthy(out:find "\nmeasure next: ", out)
    end
  end)

  it("writes costs that step and diff take, with their error", function()
    local site = os.tmpname()
    assert.equal(0, (select(3, run(("build/moongrid calibrate %s -o %s"):format(h100, site)))))
    local costs = json.decode(support.read(site))
    assert.is_true(costs.flops > 6e14 and costs.flops < 9e14)
    local words = "megatron --world 96 tp=2 layers=30 hidden=4096 heads=32 vocab=131072 seq=4096 global_batch=192 zero=1 "
      .. "overlap=true sequence_parallel=true"
    local out = run(("build/moongrid step %s --machine dgx-h100 --calibration %s --json"):format(words, site))
    local price = json.decode(out)
    assert.near(0.8, price.seconds, 0.04)
    assert.same({ from = "9 measured steps", error = costs.error }, price.estimate)
    out = run(("build/moongrid diff %s vs tp=4 --step --machine dgx-h100 --calibration %s"):format(words, site))
    assert.truthy(out:find "^times +estimate from 9 measured steps, with a mean error of 5%.%d%%")
    assert.is_nil(out:find("do not tell", 1, true))
    os.remove(site)
  end)

  it("finds the numbers of which its runs were made, and leaves what they do not tell", function()
    local costs = support.file '{ "flops": 5e14, "memory": 1e12, "start": 0.002 }'
    local runs = {}
    for _, words in ipairs { "tp=1 hidden=1024 heads=8 micro_batch=1", "tp=1 hidden=8192 heads=64 micro_batch=1",
                             "tp=1 hidden=4096 heads=32 micro_batch=4", "tp=1 hidden=1024 heads=8 micro_batch=8",
                             "tp=1 hidden=2048 heads=16 micro_batch=2" } do
      local price = json.decode((run(("build/moongrid step megatron --world 1 layers=8 %s --machine dgx-h100 --costs %s --json")
        :format(words, costs))))
      local params = { layers = 8 }
      for name, value in words:gmatch "(%S+)=(%S+)" do params[name] = value end
      runs[#runs + 1] = json.encode { recipe = "megatron", machine = "dgx-h100", world = 1, params = params,
                                      seconds = price.seconds, memory = price.memory.peak + (3 << 30) }
    end
    local site = os.tmpname()
    local out, err = run(("build/moongrid calibrate %s -o %s"):format(support.file(table.concat(runs, "\n")), site))
    assert.equal("", err)
    local found = json.decode(support.read(site))
    assert.near(5e14, found.flops, 0.05 * 5e14)
    assert.near(0.002, found.start, 0.1 * 0.002)
    assert.near(3 << 30, found.beside, 1)
    assert.is_true(found.error < 0.05, out)
    assert.is_nil(out:find("seq=", 1, true), out) -- no run says its seq
    os.remove(site)
  end)

  it("refuses what is not a measured step, with its line", function()
    local head = "recipe,machine,world,seconds,tp\n"
    local function refused(rows, message)
      local _, err, code = run("build/moongrid calibrate " .. support.file(rows))
      assert.equal(1, code)
      assert.truthy(err:find(message, 1, true), err)
    end
    refused(head .. "megatron,dgx-h100,8,1,2\n", "has 1 run; a fit takes 2 to 20")
    refused(head .. "megatron,dgx-h100,8,1,2\nmegatron,dgx-h100,8,x,2\n", ":3: seconds is a number above 0, not 'x'")
    refused(head .. "megatron,dgx-h100,8,1,2\nmegatron,dgx-a100,8,1,2\n", ":3 has another machine")
    refused(head .. "megatron,dgx-h100,8,1,3\nmegatron,dgx-h100,8,1,2\n", ":2: megatron")
    refused(head .. "megatron,dgx-h100,8,1\nmegatron,dgx-h100,8,1,2\n", ":2: 4 cells, but the head has 5")
    refused("recipe;machine;world;seconds\nmegatron;dgx-h100;8;1\n", ":1: only one column; a CSV has commas between columns")
    refused(head .. "megatron,,8,1,2\nmegatron,,8,1,2\n", ":2 has no machine")
    refused(head:gsub("tp", "tq") .. "megatron,dgx-h100,8,1,2\nmegatron,dgx-h100,8,1,2\n", "unknown parameter 'tq'; nearest is 'tp'")
    local run_of = '{ "recipe": "megatron", "machine": "dgx-h100", "world": 8, "%s": 1 }'
    refused(run_of:format "second" .. run_of:format "seconds", "run 1: unknown key 'second'; nearest is 'seconds'")
    refused(run_of:format "seconds" .. run_of:format "tp", "run 2: unknown key 'tp'; known: ")
  end)

  it("refuses runs that it cannot predict from each other, and writes nothing", function()
    local site = os.tmpname()
    os.remove(site)
    local rows = "recipe,machine,world,layers,hidden,heads,micro_batch,seconds\n"
    for i, seconds in ipairs { 0.03, 0.2, 0.01, 0.5 } do
      rows = rows .. ("megatron,dgx-h100,1,4,1024,8,%d,%g\n"):format(i, seconds)
    end
    local out, err, code = run(("build/moongrid calibrate %s -o %s"):format(support.file(rows, ".csv"), site))
    assert.equal(1, code)
    assert.truthy(out:find "\nerror of left%-out runs %d+", out)
    assert.truthy(err:find("in the mean, above 20%: these runs are not of one site", 1, true), err)
    assert.is_nil(io.open(site))
  end)
end)

describe("the price of a step", function()
  it("says that a step does not fit, and ends with 1", function()
    local words = "build/moongrid step megatron --world 8 layers=96 hidden=12288 heads=96 --machine "
    local out, _, code = run(words .. "dgx-h100")
    assert.equal(1, code)
    assert.truthy(out:find "\ndoes not fit: [23]%.%d TiB of 80 GiB\n", out)
    assert.equal(0, (select(3, run(words .. "'node:*[400GB/s] gpu:8[450GB/s]' --flops 989T"))))
  end)

  it("names groups that straddle racks, and the machine in which they do not", function()
    local words = "build/moongrid step megatron --world 256 tp=32 layers=32 --machine "
    local out = run(words .. "gb200-nvl72"):gsub("%s+", " ")
    assert.truthy(out:find("groups of tp straddle a rack: its 72 ranks are not a whole number of groups of 32; add node:16 ", 1, true), out)
    assert.is_nil(run(words .. "'gb200-nvl72 node:16'"):find("straddle", 1, true))
  end)

  it("holds within 10 % the memory of Megatron-LM's own report", function()
    local n = 0
    for world, mib, words in support.read "tests/golden/runs/memory.csv":gmatch "\n(%d+),(%d+),([^\n]+)" do
      local memory = json.decode((run(("build/moongrid step megatron --world %s %s --json"):format(world, words)))).memory
      assert.is_true(math.abs(memory.peak / (1 << 20) / mib - 1) < 0.1, words)
      n = n + 1
    end
    assert.equal(21, n)
  end)
end)
