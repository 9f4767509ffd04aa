-- SPDX-License-Identifier: MIT
--
-- Which NCCL libraries tests/nccl/host.sh accepts and refuses. Its tests themselves need an NCCL that links the
-- shared CUDA runtime.

local support = require "support"

local present = support.exists "build/cuda/selftest" and support.exists "build/tests/nccl/host"

local function host(nccl) return support.run("MOONGRID_NCCL=" .. nccl .. " tests/nccl/host.sh") end

describe("NCCL's own host code", function()
  if not present then return pending "no headers of CUDA 13, or no nccl backend" end

  local dir
  setup(function() dir = support.run("mktemp -d"):gsub("%s+$", "") end)
  teardown(function() os.execute("rm -rf " .. dir) end)

  -- A library that is linked with that runtime; with none if there is no name.
  local function linked(runtime)
    local file, with = dir .. "/libnccl.so." .. (runtime or "none"), ""
    if runtime then
      with = "-x none " .. dir .. "/" .. runtime
      assert(os.execute(("echo 'int cuda_x;' | cc -x c -shared -Wl,-soname,%s -o %s/%s -"):format(runtime, dir, runtime)))
    end
    assert(os.execute(("echo 'extern int cuda_x; int *x(void) { return %s; }' | cc -x c -fPIC -shared -o %s - %s")
      :format(runtime and "&cuda_x" or "0", file, with)))
    return file
  end

  it("is skipped by name without one", function()
    local out, _, code = host ""
    assert.equal("1..0 # SKIP MOONGRID_NCCL names no NCCL that is linked with the shared CUDA runtime\n", out)
    assert.equal(0, code)
  end)

  it("refuses what is not a file", function()
    local out, _, code = host "/nowhere/libnccl.so.2"
    assert.equal("not ok 1 MOONGRID_NCCL: no file /nowhere/libnccl.so.2\n", out)
    assert.equal(1, code)
  end)

  it("refuses an NCCL that has the runtime inside", function()
    local file = linked()
    local out, _, code = host(file)
    assert.equal("not ok 1 MOONGRID_NCCL: " .. file .. " is linked with no shared CUDA runtime: with the one inside, it runs on a "
      .. "driver alone\n", out)
    assert.equal(1, code)
  end)

  it("refuses a runtime of another major version", function()
    local file = linked "libcudart.so.12"
    local out, _, code = host(file)
    assert.equal("not ok 1 MOONGRID_NCCL: " .. file .. " is linked with libcudart.so.12; the runtime here is libcudart.so.13\n", out)
    assert.equal(1, code)
  end)
end)
