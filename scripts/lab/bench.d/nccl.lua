-- SPDX-License-Identifier: MIT
--
-- The part `nccl` of scripts/lab/bench: creation of Megatron-core's communicators on NCCL's own host code, over the
-- CUDA runtime without a GPU (tests/cuda), beside plain code. MOONGRID_NCCL: an NCCL that links the shared CUDA
-- runtime.

local WAYS = {
  { "ours", "moongrid" },
  { "plain", "plain NCCL, the same communicators" },
  { "split", "a communicator of the world, a split per family" },
  { "group", "every group of every family, one at a time" },
}

local COMPILE = "${CC:-cc} -std=c11 -D_GNU_SOURCE -Isrc -O2 -Wall -Wextra -isystem %s "
  .. "$(pkg-config --cflags $(scripts/mpi --module)) scripts/lab/bench.d/nccl.c -o %s/nccl -Lbuild -lmoongrid_mpi "
  .. "-lmoongrid -Wl,-rpath,$PWD/build $(pkg-config --libs $(scripts/mpi --module)) -ldl"
local RUN = "CUDARIG_MACHINE=%s LD_LIBRARY_PATH=$PWD/build/cuda:%s NCCL_DEBUG= scripts/launch %d %s/nccl %s megatron "
  .. "tp=2 pp=2 cp=2 2>/dev/null"
local CUDA = [[echo "${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")}/include"]]

return function(B)
  local nccl = os.getenv "MOONGRID_NCCL"
  if not nccl then
    local why = "skipped: MOONGRID_NCCL names no NCCL that links the shared CUDA runtime"
    B.table("creating NCCL's communicators", "s"):note(why)
    return { skipped = "no MOONGRID_NCCL" }
  end
  local _, code = B.run(COMPILE:format(B.first_line(CUDA), B.dir))
  if code ~= 0 then return { skipped = "cannot build" } end
  B.run(("ln -sfn $(realpath %s) %s/libnccl.so.2"):format(nccl, B.dir))
  local measured = {}
  for _, ranks in ipairs(B.quick and { 8 } or { 8, 16 }) do
    local data = {}
    for _ = 1, B.quick and 1 or 3 do -- in turn, so that other load on the machine affects all of them
      for _, way in ipairs(WAYS) do
        B.samples(data, RUN:format(ranks > 8 and "gpus=16" or "nvswitch", B.dir, ranks, B.dir, way[1]), way[1] .. " ")
      end
    end
    local t = B.table(("creating the NCCL communicators of megatron tp=2 pp=2 cp=2, %d ranks"):format(ranks), "s",
      { "moongrid" })
    for _, way in ipairs(WAYS) do
      local comms = data[way[1] .. " comms"]
      t:row(way[2], data[way[1] .. " seconds"], comms and { way = way[1], comms = comms[1],
        remark = ("%d communicators on rank 0"):format(comms[1]) })
    end
    measured[ranks] = data
  end
  return { nccl = measured }
end
