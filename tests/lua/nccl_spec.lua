-- SPDX-License-Identifier: MIT
--
-- The nccl backend. Without the backend, with the real NCCL but no driver, or without NCCL: the exact messages.
-- Everything else on the stand-in libraries (tests/nccl/standin), which are not GPUs and say so in every line.
-- nccl_failures_spec.lua has the failures.

local support = dofile "tests/lua/support.lua"
local exists = support.exists

local built, standin = exists "build/libmoongrid_nccl.so", exists "build/standin/libnccl.so.2"
local on = support.on_standin
local messages = support.of_rank_0

describe("without NCCL's headers", function()
  if built then return it("the backend is built here", function() assert.is_true(built) end) end
  it("says that the backend is not here", function()
    local out = support.run "build/moongrid doctor"
    assert.truthy(out:find("nccl +no +the nccl backend is not here: libmoongrid_nccl.so"), out)
    local _, err, code = support.run "scripts/launch 2 build/moongrid run examples/moe.lua --backend nccl"
    assert.equal(4, code)
    assert.truthy(messages(err):find("^rank 0: the nccl backend is not here: "), err)
  end)
end)

if not built then return end

describe("a step on the stand-in", function()
  if not standin then return it("needs NCCL's headers", function() pending "no stand-in" end) end
  local json = require "dkjson"
  local recipe

  setup(function()
    recipe = support.file [[return recipe { params = { tp = 2, pp = 2 }, build = function(world, p)
      local g = grid(world, 'tp-pp-dp', { tp = p.tp, pp = p.pp, dp = fill })
      local t = topology(world)
      t.tp, t.pp, t.dp, t.host = g 'tp', g 'pp', g 'dp', g 'dp':with { backend = "mpi" }
      return t end,
    step = function(s)
      for _, o in ipairs { "all_reduce", "all_gather", "reduce_scatter", "all_to_all" } do s[o](s, s.tp, 8192) end
      for _, o in ipairs { "broadcast", "reduce", "gather", "scatter" } do s[o](s, s.tp, 8192, { root = 1 }) end
      s:barrier(s.tp)
      s:loop(3, function() s:compute { seconds = 0.01 } s:on "side":all_reduce(s.dp, 4096) end)
      s:wait "side"
      local e = s:on "side":event()
      s:group(function() s:send(s.tp, s.tp:next "wrap", 8) s:recv(s.tp, s.tp:prev "wrap", 8) end)
      s:wait(e)
      s:host_wait "side"
      s:all_reduce(s.host, 64)
      s:sendrecv(s.pp, s.pp:next(true), s.pp:prev(true), 64)
    end }]]
  end)

  it("is executed on streams, and measured", function()
    local out, err, code = on(8, ("build/moongrid run %s --backend nccl --steps 2 --compute sleep --json"):format(recipe), "STANDIN_STRICT=1")
    assert.equal(0, code, err)
    local all = json.decode(out)
    assert.same({ 8 * 11, 8 * 11, 8 * 3, 8 }, { all.families.tp.calls, all.families.tp.planned_calls, all.families.dp.calls, all.families.host.calls })
    assert.is_true(all.seconds >= 0.03, "the computes of a stream follow one another")
  end)

  it("names who waited for whom when calls do not end, and refuses what is not proved", function()
    local _, err, code = on(4, "build/moongrid run examples/steps/family_order.lua --backend nccl --steps 1 --unproved --timeout 2")
    assert.equal(4, code)
    assert.truthy(messages(err):find("after 2 seconds calls of the step had not ended: rank 0 (dp 0, node 0) waits in reduce_scatter(dp) line "
      .. "15 for rank 2 (dp 1, node 0), which waits in all_to_all(node) line 18 for rank 3 (dp 1, node 1), which waits in reduce_scatter(dp) "
      .. "line 15 for rank 1 (dp 0, node 1), which waits in all_to_all(node) line 18 for rank 0", 1, true), err)
    _, err, code = on(4, "build/moongrid run examples/steps/family_order.lua --backend nccl --steps 1")
    assert.equal(1, code)
    assert.truthy(err:find("the step is not proved under the rules of NCCL (cycle), --unproved runs it: rank 0", 1, true), err)
    _, err, code = on(4, ("build/moongrid run %s tp=2 pp=2 --backend nccl --steps 1 --compute gemm"):format(recipe))
    assert.equal(4, code)
    assert.truthy(err:find("computes of a function run on the CPU; with nccl use \"sleep\"", 1, true), err)
  end)
end)

describe("without a GPU", function()
  it("a libnccl.so.2 that is none is told as the loader tells it", function()
    support.run "mkdir -p build/none && : > build/none/libnccl.so.2"
    local out = support.run "LD_LIBRARY_PATH=build/none build/moongrid doctor"
    assert.truthy(out:find("nccl       no   nccl: libnccl.so.2 was not found (is its folder in LD_LIBRARY_PATH?): "
      .. "build/none/libnccl.so.2: file too short", 1, true), out)
    local _, err, code = support.run "LD_LIBRARY_PATH=build/none scripts/launch 4 build/moongrid run examples/moe.lua --backend nccl"
    assert.equal(4, code)
    assert.truthy(messages(err):find("^rank 0: nccl: libnccl.so.2 was not found"), err)
  end)

  it("the real NCCL without a driver is told so, before any call of NCCL that needs one", function()
    local out = support.run "env -u LD_LIBRARY_PATH build/moongrid doctor"
    if not out:find "NCCL %d" then return pending "no libnccl.so.2 on this machine" end
    if out:find "nccl +yes" then return pending "this machine has a GPU" end
    local host = io.popen("hostname"):read "l"
    local want = ("nccl: no CUDA driver on host %s (cudaGetDeviceCount: cudaErrorInsufficientDriver, driver version 0); NCCL ")
      :format(host)
    assert.truthy(out:find(want, 1, true), out)
    local started = os.time()
    local _, err, code = support.run "env -u LD_LIBRARY_PATH scripts/launch 4 build/moongrid run examples/moe.lua --backend nccl"
    assert.equal(4, code)
    assert.truthy(messages(err):find("rank 0: " .. want, 1, true), err)
    assert.is_true(os.time() - started < 60)
  end)

  it("auto takes MPI", function()
    local out, err, code = support.run "LD_LIBRARY_PATH=build/none scripts/launch 4 build/moongrid run examples/moe.lua tp=2"
    assert.equal(0, code, err)
    assert.truthy(out:find("memberships, mpi)", 1, true), out)
  end)

  it("a job on MPI alone refuses a family that wants nccl", function()
    local recipe = support.file [[return recipe { build = function(world)
      local t = topology(world)
      t.all = grid(world, "a", { a = fill }) "a":with { backend = "nccl" }
      return t
    end }]]
    local _, err, code = support.run("scripts/launch 2 build/moongrid run " .. recipe .. " --backend mpi")
    assert.equal(1, code, err)
    assert.truthy(err:find("run/all[0] needs the backend 'nccl', and this job runs on mpi alone; start it with "
      .. "--backend nccl, or open that backend", 1, true), err)
  end)
end)

if not standin then return end

describe("on the stand-in", function()
  teardown(support.clean)

  it("names itself, so that nothing it gives can pass for a GPU's", function()
    local _, err = on(2, "build/moongrid run picotron --backend nccl")
    assert.truthy(err:find("moongrid NCCL stand-in (not NCCL, no GPU): rank 0: loaded as libnccl.so.2", 1, true), err)
  end)

  it("all families of megatron on 16 ranks are made, proved and destroyed, strictly", function()
    local trace = os.tmpname()
    local out, err, code = on(16, "build/moongrid run megatron tp=2 cp=2 pp=2 ep=2 etp=2 --backend nccl",
      "NCCL_COMM_BLOCKING=0 STANDIN_STRICT=1 STANDIN_DEVICES=16 STANDIN_TRACE=" .. trace) -- one call after the other
    assert.equal(0, code, err)
    assert.truthy(out:find("on all 16 ranks (208 memberships, nccl)", 1, true), out)
    local order, finalized, destroyed, first_destroy = {}, 0, 0, nil
    local n = 0
    for line in io.lines(trace .. ".5") do
      n = n + 1
      local name = line:match "^init .- name=run/([%w_]+)%["
      if name then order[#order + 1] = name end
      if line:find "^finalize" then
        finalized = finalized + 1
        assert.is_nil(first_destroy, "finalized after the first destroy")
      end
      if line:find "^destroy" then destroyed, first_destroy = destroyed + 1, first_destroy or n end
    end
    os.execute("rm -f " .. trace .. "*")
    -- the schedule without the gloo groups of megatron, which are on the CPU; no world communicator is added
    local schedule = support.run "build/moongrid plan megatron --world 16 tp=2 cp=2 pp=2 ep=2 etp=2 --schedule --rank 5"
    local want = {}
    for name in schedule:gmatch "%d+  ([%w_]+)%[" do
      if not name:find "gloo" then want[#want + 1] = name end
    end
    assert.are.same(want, order)
    assert.equal(#want, finalized)
    assert.equal(#want, destroyed)
  end)

  it("options reach ncclConfig_t, both bounds of the CTAs together", function()
    local recipe, trace = os.tmpname() .. ".lua", os.tmpname()
    support.write(recipe, [[return recipe { build = function(world)
      local g = grid(world, "tp-dp", { tp = 2, dp = fill })
      local t = topology(world)
      t.tp = g "tp":with { nccl = { max_ctas = 8, cga_cluster_size = 2, traffic_class = 3, net_name = "Socket",
                                    split_share = true }, high_priority = true }
      t.dp = g "dp":with { nccl = { min_ctas = 4, collnet_enable = true, n_channels_per_net_peer = 2,
                                    nvls_ctas = 6, cta_policy = 1, nvlink_centric_sched = 1 } }
      return t
    end }]])
    local _, err, code = on(4, "build/moongrid run " .. recipe .. " --backend nccl", "STANDIN_STRICT=1 STANDIN_TRACE=" .. trace)
    assert.equal(0, code, err)
    local config = {}
    for line in io.lines(trace .. ".0") do
      local name, text = line:match '^init .- name=run/(%w+)%[.- config="(.*)"'
      if name then config[name] = text end
    end
    os.execute("rm -f " .. trace .. "* " .. recipe)
    for _, part in ipairs { "blocking=1", "minCTAs=1 maxCTAs=8", "cgaClusterSize=2", "trafficClass=3", "netName=Socket",
      "splitShare=1" } do
      assert.truthy(config.tp:find(part, 1, true), config.tp)
    end
    for _, part in ipairs { "minCTAs=4 maxCTAs=64", "collnetEnable=1", "nChannelsPerNetPeer=2", "nvlsCTAs=6",
      "CTAPolicy=1", "nvlinkCentricSched=1" } do
      assert.truthy(config.dp:find(part, 1, true), config.dp)
    end
  end)

  it("a job says whether its communicators block, a family may say otherwise, and the environment overrides both", function()
    local script, trace = os.tmpname(), os.tmpname()
    support.write(script, [[
      local mg = require "moongrid"
      local job = assert(mg.nccl { blocking = arg[1] == "yes" })
      local state = assert(job:materialize(mg.load(arg[2]):plan(job.world, { other = arg[1] ~= "yes" }), "s"))
      state:close()
      job:close()
    ]])
    local recipe = support.file [[return recipe { params = { other = param.flag(false, "of dp") }, build = function(world, p)
      local g = grid(world, "tp-dp", { tp = 2, dp = fill })
      local t = topology(world)
      t.tp, t.dp = g "tp", g "dp":with { nccl = { blocking = p.other } }
      return t
    end }]]
    local function blocking(argument, env)
      local _, err, code = on(4, "lua5.4 " .. script .. " " .. argument .. " " .. recipe, "STANDIN_STRICT=1 STANDIN_TRACE=" .. trace .. " " .. env)
      assert.equal(0, code, err)
      local of = {}
      for line in io.lines(trace .. ".0") do
        local name, blocks = line:match '^init .- name=s/(%w+)%[.- config="blocking=(%d)'
        if name then of[name] = blocks end
      end
      os.execute("rm -f " .. trace .. "*")
      return "tp " .. of.tp .. ", dp " .. of.dp
    end
    assert.equal("tp 1, dp 0", blocking("yes", ""))
    assert.equal("tp 0, dp 1", blocking("no", ""))
    assert.equal("tp 1, dp 1", blocking("no", "NCCL_COMM_BLOCKING=1"))
    os.remove(script)
  end)

  it("a field that this NCCL would ignore is refused, or left out if that is said", function()
    for _, case in ipairs {
      { "nvls_ctas = 4", 22503, "field 'nvls_ctas' came with NCCL 2.27.0; this is NCCL 2.25.3, which would ignore it" },
      { "max_p2p_peers = 4", 23003, "field 'max_p2p_peers' came with NCCL 2.30.0; moongrid was built with the headers of" },
      { "cta_policy = 5", 22809, "field 'cta_policy' is 0 to 2 before NCCL 2.30, not 5" },
      { "nvls_ctas = 4, optional = true", 22503 },
    } do
      local recipe = support.file(([[return recipe { build = function(world)
        local t = topology(world)
        t.all = grid(world, "a", { a = fill }) "a":with { nccl = { %s } }
        return t
      end }]]):format(case[1]))
      local _, err, code = on(2, "build/moongrid run " .. recipe .. " --backend nccl", "STANDIN_NCCL_VERSION=" .. case[2])
      if case[3] then
        assert.truthy(err:find("run/all[0]: nccl " .. case[3], 1, true), err)
        assert.is_true(code ~= 0)
      else
        assert.equal(0, code, err)
      end
    end
  end)

  -- failure = { environment, message on every rank, longest time }
  for name, case in pairs {
    ["no driver"] = { "STANDIN_NO_DRIVER=1", "^rank 0: nccl: no CUDA driver on host %S+ %(cudaGetDeviceCount: "
      .. "cudaErrorInsufficientDriver, driver version 0%); NCCL 2.28.9 is present$" },
    ["a stub driver"] = { "STANDIN_STUB_DRIVER=1", "^rank 0: nccl: the CUDA driver on host %S+ is the toolkit's stub "
      .. "library, which works nowhere %(cudaGetDeviceCount: cudaErrorStubLibrary%); NCCL 2.28.9 is present$" },
    ["no GPU"] = { "STANDIN_DEVICES=0", "^rank 0: nccl: no GPU is visible on host %S+ %(CUDA_VISIBLE_DEVICES%?%); driver "
      .. "13.0 and NCCL 2.28.9 are present$" },
    ["fewer GPUs than ranks"] = { "STANDIN_DEVICES=3", "^rank 0: nccl: host %S+ has 3 GPUs for 8 ranks; start fewer, or let "
      .. "ranks share one %(%-%-share%-gpu, mgrid_nccl_options.share_gpu%)$" },
    ["an old NCCL"] = { "STANDIN_NCCL_VERSION=21605", "^rank 0: nccl: this is NCCL 2.16.5; moongrid needs 2.19.0 or later "
      .. "%(it was built with the headers of %d+%.%d+%.%d+%)$" },
    ["an NCCL in which aborts collide"] = { "STANDIN_NCCL_VERSION=21806", "^rank 0: nccl: this is NCCL 2.18.6; moongrid needs "
      .. "2.19.0 or later " },
    ["a creation that fails"] = { "NCCL_COMM_BLOCKING=0 STANDIN_FAIL_INIT=5:2", "^rank 5: nccl: creation for run/pp%[1%]: " },
    ["a rank that never joins"] = { "NCCL_COMM_BLOCKING=0 STANDIN_MISSING=3:2", "^rank [37]: nccl: run/pp%[3%] was not made within 3 seconds: "
      .. "rank [37] of it waits for some of its 2 ranks: 3 7$" },
    ["a machine where no kernel runs"] = { "STANDIN_NO_KERNEL=1", "^rank %d: nccl: run/tp%[0%] is not proved: no kernel ran "
      .. "%(ncclAllReduce ended and wrote nothing%)$" },
    ["a collective that fails"] = { "STANDIN_ASYNC_ERROR=1:3", "^rank 1: nccl: ncclBroadcast for run/tp%[0%]: " },
  } do
    it(name .. " is told, in time, and nothing stays behind", function()
      local started = os.time()
      -- every rank ends by itself: one that mpirun kills, because another has ended with a code, leaves its objects
      local _, err = on(8, "bash -c 'build/moongrid run examples/moe.lua tp=2 pp=2 ep=2 --backend nccl --timeout 3; echo code $? >&2'",
        case[1] .. " LAUNCH_TO_THE_END=1")
      assert.equal("4", err:match "code (%d+)", err)
      assert.falsy(err:gsub("code 4", ""):find "code %d", err)
      assert.truthy(messages(err):find(case[2]), err)
      assert.is_true(os.time() - started < 20)
      assert.equal("", (support.run("ls /dev/shm | grep mg-standin-" .. support.tag)))
    end)
  end

  -- Each rank has one GPU, as device 0: what launchers do.
  local function each_sees(devices, command)
    return ("sh -c 'set -- %s; shift ${PMIX_RANK:-$PMI_RANK}; CUDA_VISIBLE_DEVICES=$1 exec build/moongrid run "
      .. "examples/moe.lua tp=2 --backend nccl %s'"):format(devices, command)
  end

  it("a launcher that shows each rank one GPU is a normal case", function()
    local _, err, code = on(4, each_sees("0 1 2 3", ""), "STANDIN_STRICT=1")
    assert.equal(0, code, err)
    _, err, code = on(4, each_sees("0 1 1 3", ""))
    assert.equal(4, code)
    assert.truthy(messages(err):find("rank 1: nccl: host %S+ has 1 GPU for 4 ranks; start fewer, or let ranks share one "), err)
  end)

  it("all ranks let others share a GPU, or none; a GPU without memory is told", function()
    local script = support.file [[
      local mg = require "moongrid"
      local rank = tonumber(os.getenv "PMIX_RANK" or os.getenv "PMI_RANK")
      if arg[1] then
        print((select(2, mg.nccl(arg[1] == "share" and { share_gpu = rank == 1 } or { device = 99 }))))
        return
      end
      local job = assert(mg.nccl())
      local t = mg.topology(mg.world(2))
      t.all = mg.grid(mg.world(2), "a", { a = 2 }) "a"
      local state = assert(job:materialize(mg.plan(t)))
      local buffer, said = state.all:buffer(1 << 30)
      assert(not buffer and said:find("^nccl: cudaMalloc.* on GPU %d: cudaErrorMemoryAllocation %(.*%)$"), said)
      state:close()
      job:close()
      if rank == 0 then print "fine" end
    ]]
    local out, err, code = on(2, "env LUA_CPATH_5_4=build/?.so lua5.4 " .. script .. " share")
    local refused = "rank 0: nccl: rank 0 does not let ranks share a GPU, rank 1 does\n"
    assert.are.same({ refused .. refused, 0 }, { out, code }, err)
    out = on(2, "env LUA_CPATH_5_4=build/?.so lua5.4 " .. script .. " device")
    assert.truthy(out:find "^rank ([01]): nccl: rank %1 is to use GPU 99; host %S+ has GPUs 0 to 7\n", out)
    out, err, code = on(2, "env LUA_CPATH_5_4=build/?.so lua5.4 " .. script, "STANDIN_MEMORY=1024")
    assert.are.same({ "fine\n", 0 }, { out, code }, err)
  end)

  it("ranks are of different hosts only where they really share a GPU", function()
    local script = support.file [[
      assert(require "moongrid".nccl { share_gpu = true })
      local id = (os.getenv "NCCL_HOSTID" or ""):match "[^-]*$"
      io.write(os.getenv "PMIX_RANK" or os.getenv "PMI_RANK", "=", id, "\n")
    ]]
    local function ids(devices)
      local out, err = on(4, "lua5.4 " .. script, "STANDIN_DEVICES=" .. devices)
      local list = {}
      for rank, id in out:gmatch "(%d)=(%w*)" do list[tonumber(rank) + 1] = id end
      return table.concat(list, ","), err
    end
    for devices, want in pairs { [4] = ",,,", [2] = ",,1,1", [1] = ",1,2,3" } do
      local got, err = ids(devices)
      assert.equal(want, got, err)
    end
  end)

  it("ranks share a GPU where that is asked for, and have the ones they are given", function()
    local _, err, code = on(4, "build/moongrid run examples/moe.lua tp=2 --backend nccl --share-gpu",
      "STANDIN_DEVICES=1 STANDIN_STRICT=1")
    assert.equal(0, code, err)
    _, err, code = on(4, "build/moongrid run examples/moe.lua tp=2 --backend nccl --share-gpu",
      "STANDIN_DEVICES=2 STANDIN_STRICT=1")
    assert.equal(0, code, err)
    local trace = os.tmpname()
    _, err, code = on(4, "build/moongrid run examples/moe.lua tp=2 --backend nccl --devices 3,2,1,0",
      "STANDIN_STRICT=1 STANDIN_TRACE=" .. trace)
    assert.equal(0, code, err)
    assert.truthy(io.open(trace .. ".1"):read("a"):find("device=2", 1, true))
    os.execute("rm -f " .. trace .. "*")
    _, err, code = on(4, "build/moongrid run examples/moe.lua tp=2 --backend nccl --devices 0,1,1,2")
    assert.equal(4, code)
    assert.truthy(messages(err):find("ranks 1 and 2 both are on GPU", 1, true), err)
    _, err, code = on(4, "build/moongrid run examples/moe.lua tp=2 --backend nccl --devices 0,1,2,9")
    assert.truthy(messages(err):find("rank 3: nccl: rank 3 is to use GPU 9; host ", 1, true), err)
    _, err = on(4, "build/moongrid run examples/moe.lua tp=2 --backend nccl --devices 0,1")
    assert.truthy(messages(err):find("rank [23]: nccl: the list of GPUs has 2 for the 4 ranks of host "), err)
    assert.equal(2, code)
  end)

  it("a recipe's parameter says which GPUs", function()
    local recipe, trace = os.tmpname() .. ".lua", os.tmpname()
    support.write(recipe, [[return recipe {
      params = { devices = param.list({ 5, 4 }, "the GPU of each rank of a machine") },
      build = function(world)
        local t = topology(world)
        t.all = grid(world, "a", { a = fill }) "a"
        return t
      end }]])
    local _, err, code = on(2, "build/moongrid run " .. recipe .. " --backend nccl", "STANDIN_TRACE=" .. trace)
    assert.equal(0, code, err)
    assert.truthy(io.open(trace .. ".0"):read("a"):find("device=5", 1, true))
    os.execute("rm -f " .. trace .. "* " .. recipe)
    support.write(recipe, "return recipe { params = { devices = param.text '0;1' }, build = function(world) return topology(world) end }")
    _, err, code = on(1, "build/moongrid run " .. recipe .. " --backend nccl")
    assert.equal(1, code)
    assert.truthy(messages(err):find("parameter 'devices' is a list of GPUs, not '0;1'", 1, true), err)
    os.remove(recipe)
    _, err, code = on(1, "build/moongrid run picotron --devices 1,x")
    assert.equal(2, code)
    assert.truthy(messages(err):find("--devices is a list of GPUs, one for each rank of a node, as 0,1,2,3; not '1,x'", 1, true), err)
  end)

  it("a plan above the budget of memory is refused before anything is made", function()
    local _, err, code = on(4, "build/moongrid run examples/moe.lua tp=2 --backend nccl --gpu-memory 100")
    assert.is_true(code ~= 0)
    assert.truthy(err:find("would bring the communicators of rank 0 to 196 MiB of GPU memory, the budget is 100 MiB", 1,
      true), err)
  end)

  it("tells that it has no Cartesian topologies, and runs", function()
    local out, err, code = on(4, "build/moongrid run examples/ports/heat.lua --backend nccl", "STANDIN_STRICT=1")
    assert.equal(0, code, err)
    assert.truthy(err:find("moongrid: note: without effect on nccl: cartesian of 3 families\n", 1, true), err)
    assert.truthy(out:find "\nproved +every communicator on all 4 ranks", out)
  end)

  it("measures the bandwidth of every family", function()
    local out, err, code = on(4, "build/moongrid run picotron tp=2 --backend nccl --bandwidth", "STANDIN_STRICT=1")
    assert.equal(0, code, err)
    assert.truthy(out:find("\ntp +2 +nccl +[%d.]+ +[%d.]+ +[%d.]+ +[%d.]+\n"), out)
    assert.truthy(out:find("\ndp +2 +nccl +[%d.]+ +[%d.]+ +[%d.]+ +[%d.]+\n"), out)
  end)

  it("a script tests every collective, on NCCL as on MPI", function()
    local out, err, code = on(4, "lua5.4 examples/self_test.lua nccl", "STANDIN_STRICT=1")
    assert.equal(0, code, err)
    assert.equal("nccl: 4 ranks, 7 groups of rank 0 tested\n", out)
    out, err, code = on(4, "lua5.4 examples/self_test.lua mpi")
    assert.equal(0, code, err)
    assert.equal("mpi: 4 ranks, 7 groups of rank 0 tested\n", out)
  end)

  for mode, tests in pairs { use = 9, split = 6, shrink = 8, revoke = 2, blocking = 2, scalable = 3, owners = 3, files = 4 } do
    it("a C trainer: " .. mode, function()
      local out, err, code = on(8, "build/tests/nccl/trainer " .. mode, "STANDIN_STRICT=1")
      assert.equal(0, code, out .. err)
      assert.truthy(out:find(("1..%d\n"):format(tests), 1, true), out)
      assert.falsy(out:find "not ok", out)
    end)
  end

  it("of two CUDA runtimes it takes the one that the driver supports", function()
    local function doctor(env)
      return (support.run("LD_LIBRARY_PATH=build/standin " .. env .. " build/moongrid doctor"))
    end
    assert.truthy(doctor("STANDIN_LOG=/dev/null"):find("nccl +yes +NCCL 2.28.9 %(.-%), CUDA 13.0, driver 13.0, 8 GPUs\n"))
    local out = doctor("STANDIN_LOG=/dev/null STANDIN_DRIVER=12040")
    assert.truthy(out:find("nccl +yes +NCCL 2.28.9 %(.-%), CUDA 12.9, driver 12.4, 8 GPUs\n"), out)
    out = doctor("STANDIN_LOG=/dev/null STANDIN_DRIVER=11080")
    assert.truthy(out:find("nccl +no +nccl: the CUDA driver on host %S+ is too old: it knows CUDA 11.8, the runtime is 13.0; "
      .. "NCCL 2.28.9 is present\n"), out)
    local _, err, code = on(4, "build/moongrid run examples/moe.lua tp=2 --backend nccl", "STANDIN_DRIVER=12040 STANDIN_STRICT=1")
    assert.equal(0, code, err)
  end)

  it("the environment that overrides options is reported, from its files, too", function()
    local conf = support.file "# of the machine\nNCCL_NET=Socket\nNCCL_MAX_CTAS=4\n"
    local out = support.run("LD_LIBRARY_PATH=build/standin STANDIN_LOG=/dev/null NCCL_MAX_CTAS=2 NCCL_CONF_FILE=" .. conf
      .. " build/moongrid doctor")
    assert.truthy(out:find(" 8 GPUs; the environment overrides options: NCCL_MAX_CTAS=2, NCCL_NET=Socket\n", 1, true), out)
  end)

  it("the example of a trainer that exists gets its ncclComm_t", function()
    local out, err, code = on(8, "build/tests/multi_gpu nccl tp=2", "STANDIN_STRICT=1")
    assert.equal(0, code, err)
    assert.equal("rank 0 of 8 is 0 of 4 in dp, and has an ncclComm_t\n", out)
    out, err, code = on(8, "build/tests/multi_gpu nccl tp=3")
    assert.equal("", out)
    assert.equal(1, code)
    assert.truthy(err:find("multi_gpu: picotron:39: tp 3 does not divide the 8 ranks", 1, true), err)
  end)
end)
