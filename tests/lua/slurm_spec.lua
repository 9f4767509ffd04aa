-- SPDX-License-Identifier: MIT
--
-- Under Slurm, on four hosts emulated by this machine (scripts/lab/slurm): srun starts the command, the trainer and
-- jobs without MPI, and so does the mpirun of an allocation. Skipped where Slurm is not installed.

local run = dofile("tests/lua/support.lua").run

local skipped = run("scripts/lab/slurm 1 true"):match("# SKIP (.*)")

describe("under Slurm", function()
  if skipped then
    pending("the command and the trainer: " .. skipped)
    return
  end

  it("srun --mpi=pmix runs and proves a recipe over the hosts", function()
    local out, err, code = run("scripts/lab/slurm 4 srun --mpi=pmix -N 4 -n 16 build/moongrid run examples/moe.lua tp=2 pp=2 ep=4")
    assert.equal(0, code, err)
    assert.truthy(out:find("\nproved +every communicator on all 16 ranks"), out)
  end)

  it("srun executes a step over the hosts", function()
    local out, err, code = run("scripts/lab/slurm 4 srun --mpi=pmix -N 4 -n 8 build/moongrid run examples/trainer/layout.lua tp=2 pp=2 --steps 3")
    assert.equal(0, code, err)
    assert.truthy(out:find("step           3 times on 8 ranks: ", 1, true), out)
    assert.truthy(out:find("\n  tp +320 +320 "), out)
  end)

  it("an allocation's mpirun does the same", function()
    local out, err, code = run("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 scripts/lab/slurm 2 salloc -N 2 -n 4 "
      .. "scripts/launch 4 build/moongrid run examples/moe.lua tp=2")
    assert.equal(0, code, err)
    assert.truthy(out:find("\nproved +every communicator on all 4 ranks"), out)
  end)

  it("the trainer has the curve of one rank", function()
    os.execute("make -s -C examples/trainer")
    local function losses(line, arguments)
      local out, err, code = run(line .. " build/trainer/trainer --steps 5 examples/trainer/layout.lua " .. (arguments or ""))
      assert.equal(0, code, err)
      local last = out:match(".*loss +([0-9.]+)")
      return assert(last, out)
    end
    local one = losses("scripts/launch 1")
    local two = losses("scripts/lab/slurm 2 srun --mpi=pmix -N 2 -n 4", "tp=2")
    assert.is_true(math.abs(one - two) < 1e-9)
  end)

  it("a job without MPI finds its ranks by Slurm's PMIx", function()
    local _, err, code = run("scripts/lab/slurm 2 srun --mpi=pmix -N 2 -n 4 build/moongrid run examples/moe.lua --backend nccl --carrier pmix")
    assert.equal(4, code)
    assert.truthy(err:find("^moongrid: %[rank 0/4%] rank 0: nccl: "), err) -- it has met the others, and finds no GPU
  end)

  it("ranks come up where place --search order says, by SLURM_HOSTFILE", function()
    local support = dofile "tests/lua/support.lua"
    local conf = support.file "SwitchName=s0 Nodes=node0,node2\nSwitchName=s1 Nodes=node1,node3\nSwitchName=top Switches=s[0-1]\n"
    local recipe = support.file [[return recipe { traffic = { dp = "1 GB all_reduce" }, build = function(world)
      local g, t = grid(world, "tp-dp-pp", { tp = 2, dp = 2, pp = fill }), topology(world)
      t.tp, t.dp, t.pp = g "tp", g "dp", g "pp"
      return t
    end }]]
    local _, err, code = run(("build/moongrid place %s --world 8 --machine '%s nodes=node[0-3] gpu:2' --search order "
      .. "-o %s.hosts"):format(recipe, conf, conf))
    assert.equal(0, code, err)
    local out
    out, err, code = run(("SLURM_HOSTFILE=%s.hosts scripts/lab/slurm 4 srun --distribution=arbitrary -N 4 -n 8 -l "
      .. "hostname"):format(conf))
    assert.equal(0, code, err)
    local where = {}
    for rank, host in out:gmatch "(%d+): (%w+)\n" do where[tonumber(rank) + 1] = host end
    assert.same({ "node0", "node0", "node2", "node2", "node1", "node1", "node3", "node3" }, where)
    for _, path in ipairs { conf, recipe, conf .. ".hosts" } do os.remove(path) end
  end)

  it("a rank with other parameters is told", function()
    local _, err, code = run("scripts/lab/slurm 2 srun --mpi=pmix -N 2 -n 4 bash -c "
      .. "'[ $SLURM_PROCID = 3 ] && tp=tp=2; exec build/moongrid run examples/moe.lua $tp'")
    assert.equal(5, code)
    assert.truthy(err:find("moongrid: [rank 0/4]", 1, true), err)
  end)
end)
