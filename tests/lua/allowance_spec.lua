-- SPDX-License-Identifier: MIT
--
-- The command names the limit of the system that a job has reached. Limits are set by ulimit, and by a cgroup if the
-- user may make one.

local support = dofile "tests/lua/support.lua"
local run = support.run

local TABLE = support.file [[
  return recipe {
    build = function(world)
      local list, t = {}, topology(world)
      for i = 1, 2000000 do list[i] = i end
      t.x = grid(world, "a", { a = fill }) "a"
      return t
    end,
  }
]]
-- Explicit lists of half a million pairs.
local LISTS = support.file [[
  return recipe {
    build = function(world)
      local t = topology(world)
      t.x = grid(world, "a-b", { a = 2, b = fill }) "b":map(function(ranks) return ranks end)
      return t
    end,
  }
]]

teardown(function()
end)

-- What doctor says of a part, and whether it works.
local function doctor(part, before)
  local out = run(before .. "build/moongrid doctor")
  return out:match("\n" .. part .. " +(%a+) +([^\n]+)")
end
local function limits(before) return doctor("limits", before) end

local other_user = run "id -u" == "0\n" and "setpriv --reuid 65534 --clear-groups " or ""

describe("memory", function()
  for name, line in pairs { ["the recipe's own"] = TABLE .. " --world 8", ["lists of ranks"] = LISTS .. " --world 1048576" } do
    it("that is out names the limit: " .. name, function()
      local _, err, code = run("ulimit -v 30000; build/moongrid plan " .. line)
      assert.equal(3, code)
      local has = tonumber(err:match "^moongrid: out of memory: the process may have 29 MiB %(ulimit %-v%) and has (%d+)\n$")
      assert.truthy(has and has > 4 and has <= 29, err)
    end)
  end

  it("of a cgroup: doctor and run say what there is, and what was ended for want of it", function()
    local place = io.open "/proc/self/cgroup":read "a"
    local above = place:match "%d+:memory:(/[^\n]*)"
    local two = not above and place:match "0::(/[^\n]*)"
    local group = ("/sys/fs/cgroup%s%s/moongrid-test"):format(above and "/memory" or "", above or two or "")
    local file = above and "memory.limit_in_bytes" or "memory.max"
    local _, _, code = run(("mkdir %s && echo 62914560 > %s/%s"):format(group, group, file))
    if code ~= 0 then
      run("rmdir " .. group)
      return pending "no cgroup may be made here"
    end
    local within = ("echo $$ > %s/cgroup.procs; "):format(group)
    local works, text = limits(within)
    assert.equal("yes", works)
    assert.truthy(text:find("the cgroup may have 60 MiB (" .. file .. ") and has ", 1, true), text)
    local _, err = run(within .. "scripts/launch 8 build/moongrid run picotron --backend mpi")
    for rank = 0, 7 do
      assert.truthy(err:find(("moongrid: %%[rank %d/8%%] note: the cgroup may have 60 MiB %%(%s%%) and has %%d+, and 8 ranks need 128\n")
        :format(rank, file:gsub("%.", "%%."))), err)
    end
    -- one rank takes all of it: the kernel ends it, the launcher the others
    local turn = os.tmpname()
    local hungry = ("sh -c 'if rm %s; then sleep 1; exec tail /dev/zero; fi; exec build/moongrid run picotron tp=2 --timeout 5'"):format(turn)
    _, err = run(within .. "scripts/launch 2 " .. hungry)
    run(("sleep 0.3; rmdir %s"):format(group))
    assert.truthy(err:find(("moongrid: %%[rank [01]/2%%] out of memory: the cgroup may have 60 MiB %%(%s%%) and has %%d+; "
      .. "the kernel has ended 1 of its processes\n"):format(file:gsub("%.", "%%."))), err)
  end)
end)

describe("open files", function()
  it("are told by doctor, and before the job begins", function()
    local works, text = limits "ulimit -n 30; "
    assert.equal("no", works)
    assert.truthy(text:find("the process may have 30 open files (ulimit -n), and 1 rank needs 36", 1, true), text)
    local _, err = run "scripts/launch 2 sh -c 'ulimit -n 24; exec build/moongrid run picotron tp=2'"
    for rank = 0, 1 do
      assert.truthy(err:find(("moongrid: [rank %d/2] note: the process may have 24 open files (ulimit -n), and 2 ranks need 40\n")
        :format(rank), 1, true), err)
    end
    assert.falsy(select(2, run "scripts/launch 2 build/moongrid run picotron tp=2"):find("note: the ", 1, true))
  end)
end)

describe("threads", function()
  it("that PMIx lacks name the limit", function()
    local folder = run "mktemp -d":gsub("\n", "")
    run("chmod 777 " .. folder)
    local _, err = run(("HOME=%s TMPDIR=%s %sscripts/launch 1 bash -c 'ulimit -u 4; exec build/moongrid run picotron --backend pmix'")
      :format(folder, folder, other_user))
    run("rm -rf " .. folder)
    assert.truthy(err:find("moongrid: %[rank 0/1%] pmix: the launcher's PMIx cannot be joined %(PMIx_Init: [%w_]*ERROR%): "
      .. "the user may have 4 threads %(ulimit %-u%)\n"), err)
  end)
end)
