#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# survivors.sh: kill ranks under Open MPI 5 with ULFM; the survivors recover over NCCL. Runs on the stand-in; or, if MOONGRID_NCCL
# names an NCCL linked with the shared CUDA runtime, on NCCL's own host code (../cuda), where no kernel runs. Prints TAP. host.sh
# has checked the library.
set -u
cd "$(dirname "$0")/../.." || exit 1
lacks=$(scripts/mpi --list | sed -n 's/^openmpi5 - //p')
[ -z "$lacks" ] || { echo "1..0 # SKIP Open MPI 5: $lacks" && exit; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
n=0 rc=0 root=$PWD real=${MOONGRID_NCCL:-}
export SURVIVORS_KILLED=1 LAUNCH_OPTIONS="--with-ft ulfm" LAUNCH_SECONDS=${LAUNCH_SECONDS:-240}
if [ -n "$real" ]; then
  [ -e "$dir/libnccl.so.2" ] || ln -s "$(realpath "$real")" "$dir/libnccl.so.2"
  libraries=$root/build/cuda:$dir
  # without RAS: it opens sockets when a process ends, and the test counts open files
  export MOONGRID_TEST_NO_KERNELS=1 NCCL_RAS_ENABLE=0 NCCL_DEBUG=""
else
  [ -e build/standin/libnccl.so.2 ] || { echo "1..0 # SKIP no headers of NCCL" && exit; }
  libraries=$root/build/standin
  export STANDIN_TAG=s$$ STANDIN_LOG=$dir/standin
fi

# case_of TESTS [NAME=VALUE ...] -- WORD ...: run survivors with these words; it must print TESTS tests, which are renumbered
case_of() {
  local tests=$1 environment=() line good=0 bad=0
  shift
  while [ "$1" != -- ]; do environment+=("$1") && shift; done
  shift
  local how="$*${environment[*]:+ (${environment[*]})}"
  # shellcheck disable=SC2016
  scripts/mpi openmpi5 sh -c 'make -s build/tests/nccl/survivors && scripts/launch 8 env "$@"' - "LD_LIBRARY_PATH=$libraries" \
    "${environment[@]}" build/tests/nccl/survivors "$@" > "$dir/out" 2> "$dir/err"
  while read -r line; do
    case $line in
      "ok "*) good=$((good + 1)) && echo "ok $((++n)) - $how: ${line#*- }" ;;
      "not ok "*) bad=$((bad + 1)) && rc=1 && echo "not ok $((++n)) - $how: ${line#*- }" ;;
    esac
  done < "$dir/out"
  if [ $((good + bad)) -ne "$tests" ]; then bad=1 rc=1 && echo "not ok $((++n)) - $how: $good of $tests tests"; fi
  [ $bad -eq 0 ] || grep '^# ' "$dir/err" | head -n 20
  sed -n 's/^# recovered/# recovered/p' "$dir/err"
}

if [ -z "$real" ]; then
  for way in ulfm list; do
    settles=$([ $way = list ] || echo 1)
    case_of $((6 + settles)) SHRUNK=12 -- $way between shrink
    case_of $((8 + settles)) SHRUNK=6 "BECAUSE=the old communicator has an error" -- $way running shrink
    case_of $((6 + settles)) STANDIN_LATE=3:1 -- $way creation
    for word in "" shrink; do # shellcheck disable=SC2086
      case_of 7 STANDIN_LATE=3:1 -- $way again $word
    done
  done
  if grep -q 'memory that it has freed' "$dir/standin"; then rc=1 && echo "not ok $((++n)) - calls that harm NCCL"; fi
  echo "1..$n"
  exit $rc
fi

# no kernel runs, so no rank waits in one; ranks wait for the lost rank while they connect or create
case_of 8 SHRUNK=0 -- ulfm between
case_of 8 SHRUNK=12 -- ulfm between shrink
case_of 8 SHRUNK=12 -- ulfm between shrink blocks
case_of 8 SHRUNK=12 -- ulfm fresh shrink
case_of 8 SHRUNK=12 -- ulfm running shrink
case_of 8 MOONGRID_TEST_HOSTS=2 CUDARIG_MACHINE=hosts -- ulfm running shrink
case_of 7 SHRUNK=0 -- list between blocks
case_of 7 SHRUNK=12 -- list between shrink
for word in "" shrink blocks; do # shellcheck disable=SC2086
  leaves=$([ "$word" = blocks ] || echo 1)
  case_of $((7 + leaves)) LEAVES=1 CUDARIG_DELAY=3:cuMemCreate:100 -- ulfm creation $word
  case_of $((7 + leaves)) LEAVES=1 AGAIN_AFTER=1.5 -- ulfm again $word
done
case_of 7 LEAVES=1 AGAIN_AFTER=1.5 -- ulfm again shrink blocks
case_of 8 LEAVES=1 AGAIN_AFTER=1.5 -- list again shrink
# a call of the CUDA runtime fails on rank 4: in ncclCommShrink, or in a creation
case_of 8 LEAVES=1 FAIL=4:cuMemCreate:1 SHRUNK=6 "BECAUSE=rank 4 gave up" -- ulfm between shrink
case_of 7 LEAVES=1 FAIL=4:cuMemCreate:1 SHRUNK=6 "BECAUSE=rank 4 gave up" -- ulfm between shrink blocks
case_of 9 LEAVES=1 FAIL=4:cuMemCreate:1 "FAILS=rank 4: nccl: creation for train/" -- ulfm between
case_of 8 LEAVES=1 FAIL=4:cuMemCreate:1 "FAILS=rank 4: nccl: creation for train/" -- ulfm between blocks
echo "1..$n"
exit $rc
