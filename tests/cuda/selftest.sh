#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# selftest.sh OUTDIR: the self test of the rig that build.sh has made there, in every machine and with faults. Prints TAP.
set -u
dir=${1:?selftest.sh OUTDIR}
rc=0 n=0
# Each part numbers its checks from 1: number all of them in one sequence.
part() {
  local out
  out=$(env "${@:2}" timeout -k 2 60 "$dir/selftest" "$1" 2> /dev/null) || rc=1
  while read -r words; do
    case $words in
    "ok "*) echo "ok $((++n)) ${words#ok * }" ;;
    "not ok "*) echo "not ok $((++n)) ${words#not ok * }" ;;
    esac
  done <<< "$out"
}
part ""
for machine in pairs pcie hosts; do part $machine CUDARIG_MACHINE=$machine; done
part none CUDARIG_MACHINE=anything
part nvls CUDARIG_MACHINE=nvls
part missing CUDARIG_MACHINE=driver=0
part stub CUDARIG_MACHINE=driver=stub
part old CUDARIG_MACHINE=driver=12040
part faults CUDARIG_FAIL='*:cudaMalloc:2:700,7:cudaFree:0' CUDARIG_DELAY='*:cudaFree:100' CUDARIG_MEMORY=2
counts=$(mktemp -u)
part pairs CUDARIG_MACHINE=pairs CUDARIG_COUNTS="$counts" CUDARIG_LOG="$counts.log"
if grep -q '^call cudaGetDeviceCount 1$' "$counts.0" && grep -q '^cudaDeviceCanAccessPeer$' "$counts.log.0"; then
  echo "ok $((++n)) counts and log in files"
else
  echo "not ok $((++n)) counts and log in files" && rc=1
fi
rm -f "$counts".*
echo "1..$n"
exit $rc
