#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# host.sh: the nccl backend on NCCL's own host code, over the CUDA runtime without a GPU (../cuda). MOONGRID_NCCL is the
# path of a libnccl.so.2 that is linked with the shared CUDA runtime. Prints TAP; survivors.sh does the part on lost
# ranks. CYCLES=500 and FAULTS_EVERY=1 are what a record is made with (100 and 20). FEW=1: only one recipe as two hosts, and
# not blocking.
set -u
cd "$(dirname "$0")/../.." || exit 1
skip() { echo "1..0 # SKIP $*" && exit; }
nccl=${MOONGRID_NCCL:-}
[ -n "$nccl" ] || skip "MOONGRID_NCCL names no NCCL that is linked with the shared CUDA runtime"
[ -f "$nccl" ] || { echo "not ok 1 MOONGRID_NCCL: no file $nccl" && exit 1; }
[ -e build/cuda/selftest ] || skip "no headers of CUDA 13"
[ -e build/tests/nccl/host ] || skip "no nccl backend in this build"
runtime=$(readelf -d "$nccl" 2> /dev/null | sed -n 's/.*NEEDED.*\[\(libcudart[^]]*\)\]/\1/p')
case $runtime in
  libcudart.so.13) ;;
  "") echo "not ok 1 MOONGRID_NCCL: $nccl is linked with no shared CUDA runtime: with the one inside, it runs on a driver alone" && exit 1 ;;
  *) echo "not ok 1 MOONGRID_NCCL: $nccl is linked with $runtime; the runtime here is libcudart.so.13" && exit 1 ;;
esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ln -s "$(realpath "$nccl")" "$dir/libnccl.so.2"
export LD_LIBRARY_PATH=$PWD/build/cuda:$dir NCCL_DEBUG="" MOONGRID_TEST_NO_KERNELS=1
n=0 rc=0

ok() { echo "ok $((++n)) - $*"; }
not_ok() { rc=1 && echo "not ok $((++n)) - $*"; }

# on RANKS [NAME=VALUE ...] -- PROGRAM WORD ...: a program of build/tests/nccl, its tests numbered on
on() {
  local ranks=$1 environment=() line good=0 bad=0
  shift
  while [ "$1" != -- ]; do environment+=("$1") && shift; done
  shift
  local how=${environment[*]:-}
  env "${environment[@]}" scripts/launch "$ranks" "build/tests/nccl/$1" "${@:2}" > "$dir/out" 2> "$dir/err"
  local code=$?
  while read -r line; do
    case $line in
      "ok "*) good=$((good + 1)) && ok "${line#*- }${how:+ ($how)}" ;;
      "not ok "*) bad=$((bad + 1)) && not_ok "${line#*- }${how:+ ($how)}" ;;
    esac
  done < "$dir/out"
  if [ $bad -eq 0 ] && { [ $code -ne 0 ] || [ "$good" -eq 0 ]; }; then bad=1 && not_ok "$*: exit code $code"; fi
  [ $bad -eq 0 ] || grep -v '^moongrid CUDA rig' "$dir/err" | head -n 40
}

# unproved WHAT N COMMAND...: it ends with the status of the backend, and N ranks say that no kernel ran
unproved() {
  local what=$1 ranks=$2 said
  shift 2
  said=$("$@" 2>&1 | grep -c 'is not proved: no kernel ran (ncclAllReduce ended and wrote nothing)')
  if [ "$said" -ge "$ranks" ]; then ok "$what: created, and not proved"; else not_ok "$what: said by $said of $ranks"; fi
}

doctor=$(timeout -k 5 60 build/moongrid doctor 2> /dev/null)
if [[ $doctor == *"nccl       yes  NCCL "*" CUDA 13."*" 8 GPUs"* ]]; then
  ok "doctor:$(sed -n 's/^nccl *yes / /p' <<< "$doctor")"
else
  not_ok doctor && echo "$doctor"
fi
version=$(sed -n 's/^nccl *yes *NCCL 2\.\([0-9]*\)\..*/\1/p' <<< "$doctor")

# every bundled recipe, on one host of 8 and on two
recipes=("deepspeed tp=2 pp=2" "deepspeed_moe ep=2" "deepspeed_topology tp=2 pp=2" "jax_mesh" "megatron tp=2 pp=2 cp=2" "megatron_deepspeed tp=2 pp=2"
         "nanotron tp=2 pp=2" "optimum_habana tp=2 pp=2" "picotron tp=2 pp=2" "sglang pp=2" "torchtitan tp=2 pp=2" "vllm tp=2 pp=2" "examples/moe.lua")
for recipe in "${recipes[@]}"; do
  read -ra words <<< "$recipe"
  on 8 -- host made "${words[@]}"
  if [ -n "${FEW:-}" ] && [ "$recipe" != examples/moe.lua ]; then continue; fi
  on 8 NCCL_COMM_BLOCKING=0 -- host made "${words[@]}"
  on 16 MOONGRID_TEST_HOSTS=2 CUDARIG_MACHINE=hosts -- host made "${words[@]}"
done
on 4 CUDARIG_MACHINE=pairs -- host made picotron tp=2
on 8 CUDARIG_MACHINE=pcie -- host made picotron tp=2 pp=2

# carriers; several ranks on a GPU
unproved "carrier mpi" 1 scripts/launch 8 build/moongrid run picotron tp=2 --backend nccl --timeout 40
[ ! -e build/libmoongrid_pmix.so ] || unproved "carrier pmix" 1 scripts/launch 8 build/moongrid run picotron tp=2 --backend nccl --carrier pmix --timeout 40
# shellcheck disable=SC2317
folder_job() {
  for rank in 0 1 2 3; do PMI_RANK=$rank CARRIER_TIMEOUT=40 timeout 100 build/tests/carrier "$dir" "$rank" 4 nccl picotron tp=2 & done
  wait
}
unproved "a host's own carrier" 4 folder_job
unproved "two ranks on a GPU" 1 env CUDARIG_MACHINE=gpus=2 scripts/launch 4 build/moongrid run picotron tp=2 --backend nccl --share-gpu --timeout 40

# the stand-in of standin/ returns the same, call by call
scripts/launch 2 build/tests/nccl/compare > "$dir/real" 2> "$dir/err"
code=$(sed -n 's/^nccl *yes *NCCL 2\.\([0-9]*\)\.\([0-9]*\) .*/2 \1 \2/p' <<< "$doctor" | awk '{print $1 * 10000 + $2 * 100 + $3}')
LD_LIBRARY_PATH=$PWD/build/standin STANDIN_NCCL_VERSION=$code scripts/launch 2 build/tests/nccl/compare > "$dir/standin" 2> "$dir/err"
calls=$(wc -l < "$dir/real")
if [ "$calls" -gt 70 ] && diff "$dir/real" "$dir/standin"; then ok "$calls calls return what they return from the stand-in"; else not_ok "the stand-in, call by call"; fi

# what a family can ask for, and what becomes of states
on 4 -- host fields
on 8 -- host scalable
on 4 -- host memory
on 8 -- predicted split
for algorithm in Ring Tree; do
  on 8 NCCL_ALGO=$algorithm -- predicted 2 8
  on 8 NCCL_ALGO=$algorithm MOONGRID_TEST_HOSTS=2 CUDARIG_MACHINE=hosts -- predicted 2 8
done
on 8 NCCL_ALGO=NVLS CUDARIG_MACHINE=nvls -- predicted 2 8
on 8 CUDARIG_MACHINE=nvls -- host made megatron tp=2 pp=2 cp=2
on 4 -- host split
on 8 -- elastic windows
on 8 -- elastic device
on 4 -- host gathered
on 4 CUDARIG_MACHINE=nvls -- host gathered
on 4 -- host shrink
on 4 -- host revoked
if [ "$version" -ge 30 ]; then
  on 4 -- elastic suspend
  on 8 -- elastic grow
  on 8 GROWN_SAYS='created again, because ' -- elastic reordered
else
  on 4 -- elastic old
  on 8 "GROWN_SAYS=created again, because it needs ncclCommGrow, which came with NCCL 2.29.2; this is NCCL 2.28.9" -- elastic grow
fi
on 2 LAUNCH_SECONDS=600 -- host cycles

# the names of families, in what NCCL says
said=$(NCCL_DEBUG=INFO scripts/launch 4 build/tests/nccl/host made picotron tp=2 2>&1)
if [[ $said == *"Comm name set to tp[1]"* && $said == *"Comm name set to dp[0]"* ]]; then
  ok "NCCL says the names of families"
else
  not_ok "NCCL says the names of families"
fi

# what goes wrong
mkdir "$dir/without" && ln -s "$PWD"/build/cuda/libcud* "$dir/libnccl.so.2" "$dir/without"
said=$(LD_LIBRARY_PATH=$dir/without scripts/launch 2 build/moongrid run picotron tp=2 --backend nccl --timeout 20 2>&1)
if [[ $said == *"nccl: creation for run/tp[0]: "*libnvidia-ml* ]]; then ok "NVML is missing: named"; else not_ok "NVML is missing" && echo "$said"; fi
mkdir "$dir/older"
${CC:-cc} -x c -shared -fPIC -Wl,-soname,libcudart.so.12 -o "$dir/older/libcudart.so.12" - <<< 'int an_older_runtime;'
said=$(LD_PRELOAD=$dir/older/libcudart.so.12 timeout -k 5 60 build/moongrid doctor 2>&1)
if [[ $said == *"two CUDA runtimes are in this process, libcudart.so.12 beside the one here: every call fails"* \
      && $said == *"nccl       no   nccl: cudaGetDeviceCount on host "*": cudaErrorInitializationError"* ]]; then
  ok "two runtimes in a process: named, refused"
else
  not_ok "two runtimes in a process" && echo "$said"
fi
on 4 CUDARIG_MEMORY=2:100 -- host denied
on 4 CUDARIG_DELAY=3:cuMemCreate:100 -- host stopped # the creation of rank 3 lasts for a second
every=${FAULTS_EVERY:-20}
for ((from = 0; from < (every < 5 ? 5 / every : 1); from++)); do
  on 3 LAUNCH_SECONDS=1800 -- faults $((every < 5 ? 5 : every)) $from
done
on 3 LAUNCH_SECONDS=1800 -- faults 60 0 blocking # a creation that blocks leaves threads in NCCL, which spin
while read -r line; do
  case $line in
    "ok "*) ok "${line#*- }" ;;
    "not ok "*) not_ok "${line#*- }" ;;
    "# "* | "1..0 "*) echo "# ${line#\# }" ;;
  esac
done < <(env -u LD_LIBRARY_PATH tests/nccl/survivors.sh)
echo "1..$n"
exit $rc
