#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# selftest.sh OUTDIR [good]: builds the stand-ins and their self-test and runs it: what must
# work, every rule that must be found, every fault. good: the first alone (for sanitizers and
# valgrind). SAN=address,undefined or thread as for build.sh; WRAP=valgrind... before the program.
set -u
out=${1:?selftest.sh OUTDIR [good]}
only=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
launch=${LAUNCH:-$here/../../../scripts/launch}
include=${CUDA_INCLUDE:-${CUDA_HOME:-/usr/local/cuda-13.0}/include}
export STANDIN_DEADLINE=${STANDIN_DEADLINE:-20} STANDIN_LOG=$out/log LAUNCH_SECONDS=${LAUNCH_SECONDS:-120}
# Open MPI's own leaks are known by frames that only a slow unwinding finds
export ASAN_OPTIONS=${ASAN_OPTIONS:-fast_unwind_on_malloc=0:malloc_context_size=50}
[ ! -f "$here/../../lsan.supp" ] ||
  export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$here/../../lsan.supp:print_suppressions=0}
failed=0 ran=0

"$here/build.sh" "$out" || exit 2
out=$(cd "$out" && pwd)
mpi=$("$here/../../../scripts/mpi" --module)
read -ra mpi_flags < <(pkg-config --cflags "$mpi" | sed 's/-I/-isystem /g')
read -ra mpi_libs < <(pkg-config --libs "$mpi")
read -ra wrap <<< "${WRAP:-}"
san=()
[ -z "${SAN:-}" ] || san=("-fsanitize=$SAN" -fno-omit-frame-pointer)
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Wpedantic -Wshadow -Wno-sign-conversion -Wstrict-prototypes \
  -Wmissing-prototypes -Wvla -Wwrite-strings -Werror "${san[@]}" -isystem "$include" "${mpi_flags[@]}" \
  "$here/selftest.c" "$here/selftest_wrong.c" "$here/selftest_hard.c" -o "$out/selftest" -L"$out" -lnccl -lcudart "${mpi_libs[@]}" \
  -Wl,-rpath,"$out" -pthread || exit 2

# run NAME EXIT RANKS [VARIABLE=VALUE...] -- TEST...: leaves the output in $out/said, the lines
# of the stand-ins in $out/log
run() {
  local name=$1 want=$2 ranks=$3 env=() rc
  shift 3
  while [ "$1" != -- ]; do env+=("$1"); shift; done
  shift
  rm -f "$out/log" "$out"/trace.*
  env "${env[@]}" "$launch" "$ranks" "${wrap[@]}" "$out/selftest" "$@" > "$out/said" 2>&1
  rc=$?
  ran=$((ran + 1))
  if [ "$rc" != "$want" ]; then
    failed=$((failed + 1))
    echo "FAIL $name: exit $rc, not $want"
    head -30 "$out/said"
    grep -hv 'loaded as' "$out/log" | head -20
  fi
}

# line TEXT [FILE]: the last run wrote it
line() {
  ran=$((ran + 1))
  grep -qF -- "$1" "${2:-$out/log}" && return
  failed=$((failed + 1))
  echo "FAIL: no line \"$1\" in ${2:-$out/log}:"
  head -20 "${2:-$out/log}"
}

export STANDIN_TAG=$$ # other tests may run on this machine
debris() { find /dev/shm -maxdepth 1 -name "mg-standin-$$-*" | wc -l; }
before=$(debris)

# ------------------------------------------------------------------------ what works
run right 0 4 STANDIN_STRICT=1 STANDIN_TRACE="$out/trace" -- blocking nonblocking group group_nonblocking overlapping \
  scalable one_rank split shrink values ring teardown revoke cuda strided many
line 'moongrid NCCL stand-in (not NCCL, no GPU): rank 0: loaded as libnccl.so.2, plays NCCL 2.28.9'
line 'name=nonblocking config="blocking=0 cgaClusterSize=4 minCTAs=1 maxCTAs=64 ' "$out/trace.1"
line 'nids=2 nranks=4 rank=3 device=3 name=scalable' "$out/trace.3"
line 'finalize id=' "$out/trace.2"
line 'ncclAllReduce id=' "$out/trace.0"
run sixteen 0 16 STANDIN_STRICT=1 STANDIN_DEVICES=16 -- many group overlapping ring split shrink teardown
grep -h 'communicators each' "$out/said"
run hostid 0 4 STANDIN_STRICT=1 STANDIN_DEVICES=1 -- hostid
if [ "$only" = good ]; then
  echo "standin: $((ran - failed)) of $ran good"
  [ "$failed" = 0 ]
  exit
fi

# ------------------------------------------------------------- what must be found in time
export STANDIN_DEADLINE=${STANDIN_SHORT:-0.8}
for t in nranks_differ rank_twice missing_rank opposite_creation id_again opposite_destroy opposite_first_use \
  opposite_on_a_stream mismatches parcels; do
  run "$t" 0 4 -- "$t"
  line 'real NCCL would hang here'
done
run pointers 0 4 -- pointers
line 'real NCCL would fault here'
run life 0 4 -- life
line 'the commName of short-lived has changed or was freed while the communicator lives'
run here 0 4 STANDIN_DEADLINE=20 -- ids_differ config_mismatch duplicate_gpu bad_config busy one_stuck group_stuck groups family abort_running
run strict 99 4 STANDIN_STRICT=1 -- mismatches
line 'ending with 99 (STANDIN_STRICT)'

# ----------------------------------------------------------------- where NCCL is hard
run hard 0 4 STANDIN_DEADLINE=20 STANDIN_STRICT=1 -- latched latched_nonblocking abort_late
line 'gets ncclRemoteError (a rank died)'
for t in abort_alone abort_kernel create_beside; do
  run "$t" 0 4 -- "$t"
  line 'real NCCL would hang here'
done
run abort_kernel_before_2.22 0 4 STANDIN_NCCL_VERSION=22105 -- abort_kernel
run connect_retry 0 4 STANDIN_DEADLINE=20 STANDIN_CONNECT_RETRY=1:0.5 -- connect_retry
line 'left: the root thread of a creation that did not end, and its socket'
run one_visible 0 4 STANDIN_DEADLINE=20 -- one_visible
run hosts_group 0 4 STANDIN_DEADLINE=20 -- hosts_group
run old_driver 0 1 STANDIN_DRIVER=12040 -- old_driver

# ---------------------------------------------------------------------------- faults
run no_driver 0 1 STANDIN_NO_DRIVER=1 -- no_driver
line "Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'"
run stub_driver 0 1 STANDIN_STUB_DRIVER=1 -- no_driver
line "Cuda failure 'CUDA driver is a stub library'"
run no_device 0 1 STANDIN_DEVICES=0 -- no_driver
line "Cuda failure 'no CUDA-capable device is detected'"
run fail_init 0 4 STANDIN_DEADLINE=20 STANDIN_FAIL_INIT=1:2 -- stuck_init
line 'fails (STANDIN_FAIL_INIT)'
run missing 0 4 STANDIN_DEADLINE=20 STANDIN_MISSING=1:2 -- stuck_init
line 'never joins (STANDIN_MISSING)'
run late 0 4 STANDIN_DEADLINE=20 STANDIN_LATE=2:0.3 -- late_init
line '0.3 s late (STANDIN_LATE)'
run async_error 0 4 STANDIN_DEADLINE=20 STANDIN_ASYNC_ERROR=1:2 -- async_error
line 'gets ncclRemoteError (STANDIN_ASYNC_ERROR)'
run dies 70 4 STANDIN_DIE=1 -- dies
line 'dies now (STANDIN_DIE)'
run no_memory 0 4 STANDIN_MEMORY=50 -- no_memory
run old 0 4 STANDIN_NCCL_VERSION=22603 STANDIN_STRICT=1 STANDIN_TRACE="$out/trace" -- old_version
line 'plays NCCL 2.26.3'
line 'name=- config="blocking=1 cgaClusterSize=4 minCTAs=1 maxCTAs=64 splitShare=0 trafficClass=auto netName=-"' "$out/trace.0"
run leaks 99 2 STANDIN_STRICT=1 -- leaks
# The first rank that ends so ends the other: either may be the one that is heard.
for l in 'forgotten (rank ' 'a stream on device ' \
  '4 bytes of memory on device 0 were never freed' 'an event was never destroyed' 'made and never used'; do
  line "leak: "; line "$l"
done

ran=$((ran + 1))
if [ "$(debris)" -gt $((before + 1)) ]; then # the run in which a rank dies may leave one
  failed=$((failed + 1))
  echo "FAIL: $(debris) objects in /dev/shm, $before before"
fi
echo "standin: $((ran - failed)) of $ran good"
[ "$failed" = 0 ]
