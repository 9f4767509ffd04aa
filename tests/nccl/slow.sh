#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# slow.sh [SEED N]: of each two ranks one waits before each message to the other one (SLOW, trainer.h), so what a third rank
# sends meanwhile overtakes it. In each case a call of NCCL fails on one rank, and the rest hear of it by a notice: they end
# alike and in time whatever comes first. Each pair of ranks in each case takes minutes; with a seed, N of them. On the stand-in.
# Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
[ -e build/standin/libnccl.so.2 ] || { echo "1..0 # SKIP no headers of NCCL" && exit; }
make -s build/tests/nccl/survivors build/tests/nccl/elastic build/tests/nccl/recovery build/tests/nccl/trainer || exit 1
export LD_LIBRARY_PATH=$PWD/build/standin STANDIN_TAG=o$$ STANDIN_DEADLINE=30 MOONGRID_TEST_HOSTS=8
out=$(mktemp)
trap 'rm -f "$out" /dev/shm/mg-standin-o$$-*' EXIT

# tests, then the environment, then the program
cases=(
  "6 STANDIN_FAIL_INIT=4:7 SHRUNK=6 survivors list between shrink"
  "6 STANDIN_FAIL_INIT=4:8 SHRUNK=9 survivors list between shrink"
  "6 STANDIN_FAIL_INIT=4:8 SHRUNK=9 survivors list between shrink blocks"
  "8 STANDIN_FAIL_INIT=4:9 SHRUNK=0 FAILS=train/ survivors list between shrink"
  "8 STANDIN_FAIL_INIT=4:7 SHRUNK=0 FAILS=train/ survivors list between"
  "2 STANDIN_FAIL_INIT=4:3 recovery worse"
  "2 STANDIN_FAIL_INIT=4:3 STANDIN_ASYNC_ERROR=4:1 recovery worse"
  "2 STANDIN_ASYNC_ERROR=4:1 CUDARIG_FAIL=6:cudaDeviceSynchronize:2 recovery worse"
  "5 STANDIN_NCCL_VERSION=22907 NCCL_COMM_BLOCKING=0 STANDIN_FAIL_INIT=6:2 elastic failing"
  "5 STANDIN_NCCL_VERSION=22907 STANDIN_FAIL_INIT=6:2 elastic failing"
  "10 STANDIN_NCCL_VERSION=22907 elastic grow"
  "3 STANDIN_FAIL_INIT=3:3 trainer failing"
)
pairs=()
for i in "${!cases[@]}"; do
  for from in {0..7}; do for to in {0..7}; do [ "$from" = "$to" ] || pairs+=("$from:$to ${cases[i]}"); done; done
done
RANDOM=${1:-0} number=0 failed=0
for ((i = 0; i < ${2:-${#pairs[@]}}; i++)); do
  read -r slow tests words <<< "${pairs[$# > 0 ? (RANDOM << 15 | RANDOM) % ${#pairs[@]} : i]}"
  words=$(sed -E 's|(survivors\|recovery\|elastic\|trainer) |build/tests/nccl/&|' <<< "$words")
  rm -f /dev/shm/mg-standin-o$$-*
  # shellcheck disable=SC2086
  scripts/launch 8 env "SLOW=$slow" $words > "$out" 2>&1
  number=$((number + 1))
  if grep -qx "1\.\.$tests" "$out" && ! grep -q '^not ok' "$out"; then
    echo "ok $number - SLOW=$slow $words"
  else
    echo "not ok $number - SLOW=$slow $words"
    grep -E '^(not ok|# )' "$out" | sed 's/^/# /'
    failed=1
  fi
done
echo "1..$number"
exit $failed
