#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# host.sh: the nccl backend on NCCL's own host code, over the CUDA runtime without a GPU (../cuda). MOONGRID_NCCL is the
# path of a libnccl.so.2 that is linked with the shared CUDA runtime. Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
skip() { echo "1..0 # SKIP $*" && exit; }
nccl=${MOONGRID_NCCL:-}
[ -n "$nccl" ] || skip "MOONGRID_NCCL names no NCCL that is linked with the shared CUDA runtime"
[ -f "$nccl" ] || { echo "not ok 1 MOONGRID_NCCL: no file $nccl" && exit 1; }
[ -e build/cuda/selftest ] || skip "no headers of CUDA 13"
[ -e build/tests/nccl/host ] || skip "no nccl backend in this build"
readelf -d "$nccl" | grep -q 'NEEDED.*libcudart\.so\.13' || {
  echo "not ok 1 MOONGRID_NCCL: $nccl has the CUDA runtime inside, or that of another major version: it runs with a driver alone"
  exit 1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ln -s "$(realpath "$nccl")" "$dir/libnccl.so.2"
export LD_LIBRARY_PATH=$PWD/build/cuda:$dir NCCL_DEBUG=
n=0 rc=0

# on RANKS [NAME=VALUE ...] -- WORD ...: build/tests/nccl/host WORD ..., its tests numbered on
on() {
  local ranks=$1 environment=() line ok=0 bad=0
  shift
  while [ "$1" != -- ]; do environment+=("$1") && shift; done
  shift
  local how=${environment[*]:-}
  env "${environment[@]}" timeout -k 5 100 scripts/launch "$ranks" build/tests/nccl/host "$@" > "$dir/out" 2> "$dir/err"
  local code=$?
  while read -r line; do
    case $line in
      "ok "*) ok=$((ok + 1)) && echo "ok $((++n)) - ${line#*- }${how:+ ($how)}" ;;
      "not ok "*) bad=$((bad + 1)) && echo "not ok $((++n)) - ${line#*- }${how:+ ($how)}" ;;
    esac
  done < "$dir/out"
  if [ $bad -eq 0 ] && { [ $code -ne 0 ] || [ $ok -eq 0 ]; }; then bad=1 && echo "not ok $((++n)) - $*: exit code $code"; fi
  [ $bad -eq 0 ] || { rc=1 && grep -v '^moongrid CUDA rig' "$dir/err" | head -n 40; }
}

doctor=$(timeout -k 5 60 build/moongrid doctor 2> /dev/null)
if [[ $doctor == *"nccl       yes  NCCL "*" CUDA 13."*" 8 GPUs"* ]]; then
  echo "ok $((++n)) - doctor:$(sed -n 's/^nccl *yes / /p' <<< "$doctor")"
else
  echo "not ok $((++n)) - doctor" && rc=1 && echo "$doctor"
fi

recipes=("deepspeed tp=2 pp=2" "deepspeed_moe ep=2" "deepspeed_topology tp=2 pp=2" "jax_mesh" "megatron tp=2 pp=2 cp=2" "megatron_deepspeed tp=2 pp=2"
         "nanotron tp=2 pp=2" "optimum_habana tp=2 pp=2" "picotron tp=2 pp=2" "torchtitan tp=2 pp=2" "examples/moe.lua")
for recipe in "${recipes[@]}"; do
  read -ra words <<< "$recipe"
  on 8 -- made "${words[@]}"
  on 8 NCCL_COMM_BLOCKING=0 -- made "${words[@]}"
done
for recipe in "megatron tp=2 pp=2 cp=2" "examples/moe.lua"; do
  read -ra words <<< "$recipe"
  on 8 MOONGRID_TEST_HOSTS=2 -- made "${words[@]}"
done
on 4 -- memory
on 2 -- cycles
on 4 CUDARIG_MEMORY=2:100 -- denied
on 4 -- shrink
on 4 -- split
echo "1..$n"
exit $rc
