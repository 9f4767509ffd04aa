-- SPDX-License-Identifier: MIT
--
-- Several hosts, emulated on this machine by scripts/lab/cluster: ranks of different hosts create and prove
-- communicators, and are placed, with the MPI library of the build. When a cluster ends, all processes that it has
-- started end, too.

local support = dofile("tests/lua/support.lua")
local run = support.run

local skipped = run("scripts/lab/cluster 1 0 true"):match("# SKIP (.*)")

-- The same text as often as it is in the list.
local function counted(text)
  local count = {}
  for line in text:gmatch("[^\n]+") do count[line] = (count[line] or 0) + 1 end
  return count
end

describe("a cluster", function()
  if skipped then
    pending("of several hosts: " .. skipped)
    return
  end

  it("has hosts with names, boot ids and memory of their own", function()
    local names = run("scripts/lab/cluster 3 6 hostname")
    assert.same({ node0 = 2, node1 = 2, node2 = 2 }, counted(names))
    local boots, n = counted(run("scripts/lab/cluster 3 6 cat /proc/sys/kernel/random/boot_id")), 0
    for _, ranks in pairs(boots) do
      n = n + 1
      assert.equal(2, ranks)
    end
    assert.equal(3, n)
    assert.equal("0\n", (run("touch /dev/shm/moongrid-cluster; scripts/lab/cluster 1 0 ls /dev/shm | wc -l")))
    os.remove("/dev/shm/moongrid-cluster")
  end)

  it("proves every communicator between hosts", function()
    local out, err, code = run("scripts/lab/cluster 4 16 build/moongrid run examples/moe.lua tp=2 pp=2 ep=4")
    assert.equal(0, code, err)
    assert.truthy(out:find("\nproved +every communicator on all 16 ranks"), out)
  end)

  it("moves parts from the same host where it has them", function()
    local recipe = support.file [[return recipe { params = { tp = 2 }, build = function(world, p)
      local t = topology(world)
      t.grid = grid(world, "tp-dp", { tp = p.tp, dp = fill })
      t.w = tensor { axes = { { "a", 60 }, { "b", 70 } }, type = "i32", cut = { a = "tp" } }
      return t
    end }]]
    for line, crossing in pairs { ["tp=2 vs tp=1"] = "0 B", ["tp=4 vs tp=8"] = "0 B", ["tp=8 vs tp=4"] = "16.4 KiB" } do
      local out, err, code = run(("scripts/lab/cluster 2 8 build/moongrid run %s %s --move"):format(recipe, line))
      err = err:gsub("[^\n]*plm:rsh: Warning: setpgid[^\n]*\n", "") -- of mpirun, where a child was faster than its parent
      assert.same({ "", 0 }, { err, code })
      assert.equal(crossing, out:match "sent, (.-) between nodes, .* every element proved on all 8 ranks\n$", line .. ": " .. out)
    end
  end)

  describe("compares the machine with the hosts that the ranks find", function()
    local recipe = [[return recipe { params = { tp = 2 }, machine = "node:* gpu:4", build = function(world, p)
      local g, t = grid(world, "tp-dp", { tp = p.tp, dp = fill }), topology(world)
      t.tp, t.dp = g "tp", g "dp"
      %s
      return t
    end }]]
    local reads, blind = support.file(recipe:format "within(t.tp, machine.node)"), support.file(recipe:format "")
    local where = "rank %d: the ranks do not run where the machine says: %s; `moongrid machine --json` under the launcher "
      .. "writes the machine that a job has"

    it("and refuses a plan that has read another", function()
      local out, err, code = run(("scripts/lab/cluster 2 8 build/moongrid run %s"):format(reads))
      assert.equal(0, code, err)
      assert.truthy(out:find("\nproved +every communicator on all 8 ranks"), out)
      for machine, what in pairs {
        ["node:* gpu:8"] = "ranks 0 and 4 are in node 0, and run on two hosts; 4 ranks are so",
        ["node:* gpu:2"] = "ranks 0 and 2 run on one host, and are in node 0 and node 1; 4 ranks are so",
        ["node:2 gpu:4 ranks = 4..7,0..3"] = false,
      } do
        local _
        _, err, code = run(("scripts/lab/cluster 2 8 build/moongrid run %s --machine '%s'"):format(reads, machine))
        assert.equal(what and 1 or 0, code, err)
        if what then assert.truthy(err:find("moongrid: [rank 0/8] " .. where:format(0, what), 1, true), err) end
      end
    end)

    it("and notes what differs from one that the plan has not read", function()
      local out, err, code = run(("scripts/lab/cluster 2 8 build/moongrid run %s --machine 'node:* gpu:8'"):format(blind))
      assert.equal(0, code, err)
      assert.truthy(out:find("\nproved +every communicator on all 8 ranks"), out)
      assert.truthy(err:find("moongrid: note: " .. where:format(0,
        "ranks 0 and 4 are in node 0, and run on two hosts; 4 ranks are so") .. "\n", 1, true), err)
    end)

    it("whose GPUs and NVLink cliques NVML says", function()
      local source = support.file [[
        #include <stdio.h>
        #include <string.h>
        #include <unistd.h>
        int nvmlInit_v2(void) { return 0; }
        int nvmlShutdown(void) { return 0; }
        int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(long)(i + 1); return i > 3; }
        int nvmlDeviceGetPciInfo_v3(void *d, char *p) { return sprintf(p + 36, "00000000:%02lX:00.0", 16 * (long)d) < 0; }
        int nvmlDeviceGetGpuFabricInfo(void *d, unsigned char *f) {
          char     name[64] = "";
          unsigned clique;
          gethostname(name, 63);
          clique = (name[4] - '0') % 2;
          memset(f, getenv("NO_CLUSTER") ? 0 : 0xab, 16);
          memset(f + 16, 0, 4);
          memcpy(f + 20, &clique, 4);
          f[24] = 3;
          return 0;
        } ]]
      local dir = source .. ".d"
      support.run(("mkdir %s && sed '1i#include <stdlib.h>' %s > %s/nvml.c && cc -shared -fPIC -o %s/libnvidia-ml.so.1 %s/nvml.c"):format(
        dir, source, dir, dir, dir))
      local line = "LAUNCH_OPTIONS='-x LD_LIBRARY_PATH -x NO_CLUSTER' LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH %s scripts/lab/cluster 4 8 "
        .. "build/moongrid machine %s"
      local out, err, code = run(line:format(dir, "", ""))
      assert.same({ 0, "clique:2 node:2 gpu:2 ranks = 0..1,4..5,2..3,6..7" }, { code, out:match "^machine +(.-)\n" }, err)
      out = run(line:format(dir, "", "--json"))
      local cluster = ("ab"):rep(16)
      assert.truthy(out:find(('"domains": [\n      "%s.0", "%s.1"]'):format(cluster, cluster), 1, true), out)
      assert.truthy(out:find('"00000000:10:00.0", "00000000:20:00.0", "00000000:10:00.0"', 1, true), out)
      out = run(line:format(dir, "NO_CLUSTER=1", "")) -- NVLink that ends at the host
      assert.equal("node:4 gpu:2", out:match "^machine +(.-)\n")
      support.run("rm -r " .. dir .. " " .. source)
    end)

    it("which `moongrid machine` collects, names of hosts included", function()
      local out, err, code = run "LAUNCH_OPTIONS='--map-by node' scripts/lab/cluster 3 6 build/moongrid machine --json"
      assert.equal(0, code, err)
      local boots = {}
      for boot in out:match('"boot_ids": %[(.-)%]'):gmatch '"([%x-]+)"' do boots[#boots + 1] = boot end
      assert.equal(3, #boots)
      assert.is_true(boots[1] ~= boots[2] and boots[2] ~= boots[3] and boots[1] ~= boots[3])
      local path = support.file(out)
      os.rename(path, path .. ".json")
      local text, _, status = run(("build/moongrid machine --machine %s.json"):format(path))
      assert.same({ 0, "node:3 gpu:2 ranks = 0,2,4,1,3,5" }, { status, text:match "^machine +(.-)\n" })
      -- the same ranks again, and others: now hosts change places
      local line = "LAUNCH_OPTIONS='--map-by %s' scripts/lab/cluster 3 6 build/moongrid run %s --machine '%s.json'"
      _, err, code = run(line:format("node", blind, path))
      assert.same({ "", 0 }, { err:match "note: [^\n]*" or "", code })
      _, err = run(line:format("slot", blind, path))
      assert.truthy(err:find(where:format(0, "ranks 0 and 3 are in node 0 (node0), and run on two hosts; 3 ranks are so"), 1, true), err)
      os.remove(path .. ".json")
    end)
  end)

  it("runs ranks where place --search order says, by its files for launchers", function()
    local conf = support.file "SwitchName=s0 Nodes=node0,node2\nSwitchName=s1 Nodes=node1,node3\nSwitchName=top Switches=s[0-1]\n"
    local text = [[return recipe { traffic = { dp = "1 GB all_reduce" }, build = function(world)
      local g, t = grid(world, "tp-dp-pp", { tp = 2, dp = 2, pp = fill }), topology(world)
      t.tp, t.dp, t.pp = g "tp", g "dp", g "pp"
      %s
      return t
    end }]]
    local free, bound = support.file(text:format ""), support.file(text:format
      "within(t.tp, machine.node) within(t.dp, machine.switch)")
    local machine = ("'%s nodes=node0,node1,node2,node3 gpu:2'"):format(conf)
    for _, ending in ipairs { "rankfile", ".json" } do
      local _, err, code = run(("build/moongrid place %s --world 8 --machine %s --search order -o %s.%s"):format(free, machine,
        conf, (ending:gsub("%.", ""))))
      assert.same({ "", 0 }, { err, code })
    end
    local _, err, code = run(("build/moongrid plan %s --world 8 --machine %s"):format(bound, machine))
    assert.equal(1, code) -- as they are listed the law does not hold
    assert.truthy(err:find("within(a, machine.switch): 4 of 4 groups of the family cross: the first is group 0: its rank 0 is "
      .. "in switch 0 (s0) and rank 2 in switch 1 (s1)", 1, true), err)
    local out
    out, err, code = run(("LAUNCH_OPTIONS='--rankfile %s.rankfile' scripts/lab/cluster 4 8 build/moongrid machine --json"):format(conf))
    assert.equal(0, code, err)
    assert.truthy(out:find('"node0", "node2", "node1", "node3"', 1, true) and not out:find('"ranks"', 1, true), out)
    local line = ("scripts/lab/cluster 4 8 build/moongrid run %s --machine %s.json"):format(bound, conf)
    out, err, code = run(("LAUNCH_OPTIONS='--rankfile %s.rankfile' "):format(conf) .. line)
    assert.equal(0, code, err)
    assert.truthy(out:find("\nproved +every communicator on all 8 ranks"), out)
    _, err, code = run(line) -- without the file hosts two and three have changed places
    assert.equal(1, code)
    assert.truthy(err:find("moongrid: [rank 0/8] rank 2: the ranks do not run where the machine says: rank 2 runs on node1, "
      .. "and is in node 1 (node2);", 1, true), err)
    for _, path in ipairs { conf, free, bound, conf .. ".rankfile", conf .. ".json" } do os.remove(path) end
  end)

  it("tells that a host has another version, and names both", function()
    local _, failed, made = run([[set -e
      there=build/other; mkdir -p $there/build
      scripts/files | tar -ch -T - | tar -x -C $there
      for room in src/*/; do [ ! -d build/$(basename $room) ] || cp -a build/$(basename $room) $there/build/; done
      cp -a build/gen $there/build/
      cd $there
      sed -i 's/^#define MGRID_VERSION_PATCH .*/#define MGRID_VERSION_PATCH 99/; s/^\(#define MGRID_VERSION  .*\.\).*/\199"/' src/moongrid.h
      find build -name '*.o' -exec touch {} + # all are of this header, but for those that have the version in them
      grep -rlE 'MGRID_VERSION|MGRID_LAYOUT|_ENTRY' src --include='*.c' | xargs touch
      make -s build/moongrid build/libmoongrid_mpi.so.]] .. support.interface)
    assert.equal(0, made, failed)
    local program = support.file("#!/bin/sh\n[ $(hostname) = node0 ] || cd build/other\nexec build/moongrid run examples/moe.lua\n")
    local _, err, code = run("chmod +x " .. program .. "; scripts/lab/cluster 2 4 " .. program)
    run "rm -r build/other"
    assert.equal(5, code, err)
    assert.truthy(err:find("moongrid: [rank 0/4] ranks have unlike versions of moongrid: rank 0 has " .. support.version
      .. ", rank 2 has " .. support.version:gsub("%d+$", "99") .. "; install one version on all nodes\n", 1, true), err)
  end)

  it("gives the exit code of its command", function()
    local _, _, code = run("scripts/lab/cluster 2 0 bash -c 'exit 7'")
    assert.equal(7, code)
  end)

  for _, signal in ipairs { "TERM", "KILL" } do
    it("leaves nothing behind when it is sent SIG" .. signal, function()
      local out = run(([[
        scripts/lab/cluster 2 4 sleep 4711 & p=$!
        for i in $(seq 100); do [ "$(pgrep -fc '^sleep 4711$')" -eq 4 ] && break; sleep 0.1; done
        pgrep -fc '^sleep 4711$'
        kill -%s $p
        wait $p 2> /dev/null
        for i in $(seq 50); do pgrep -f '^sleep 4711$' > /dev/null || break; sleep 0.1; done
        pgrep -fc '^sleep 4711$']]):format(signal))
      assert.equal("4\n0\n", out)
    end)
  end

  for line, words in pairs {
    ["0 4 true"] = "'0' is not a number of hosts, 1 to 64",
    ["65 4 true"] = "'65' is not a number of hosts, 1 to 64",
    ["2 four true"] = "'four' is not a number of ranks, 0 to 1024",
    ["--gone node1"] = "no cluster here; only a command that scripts/lab/cluster runs can call this",
    ["--link sideways node1"] = "--link up|down HOST",
    ["1 0 scripts/lab/cluster --link down node1"] = "no host 'node1'; there are node0",
    ["2 0 bash -c 'scripts/lab/cluster --gone node1 && scripts/lab/cluster --gone node1'"] = "host 'node1' is gone",
    ["2 0 bash -c 'scripts/lab/cluster --gone node1 && scripts/lab/cluster --link up node1'"] = "host 'node1' is gone",
    ["2 0 scripts/lab/cluster --gone node0"] = "node0 has the command itself; another host can be gone",
  } do
    it("refuses " .. line, function()
      local _, err, code = run("scripts/lab/cluster " .. line)
      assert.equal("cluster: " .. words .. "\n", err)
      assert.equal(2, code)
    end)
  end

  it("refuses a folder with a blank in its name, which launchers would cut", function()
    local out, _, code = run [[folder=$(mktemp -d) && mkdir "$folder/a b" && cp -r scripts "$folder/a b"
      "$folder/a b/scripts/lab/cluster" 1 0 true 2>&1 | sed "s,$folder,FOLDER,"
      rm -r "$folder"]]
    assert.equal("cluster: launchers cut the path of their agent at blanks, and 'FOLDER/a b/build/cluster' has some\n", out)
    assert.equal(0, code)
  end)
end)
