#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# build.sh OUTDIR: libcuda.so.1, libcudart.so.13 and libnvidia-ml.so.1 of the rig, and its self test.
# CUDA_HOME (/usr/local/cuda-13.0) or CUDA_INCLUDE says where the headers are; CC, OPT (-O2 -g) and SAN as usual.
set -eu
out=${1:?build.sh OUTDIR}
here=$(cd "$(dirname "$0")" && pwd)
include=${CUDA_INCLUDE:-${CUDA_HOME:-/usr/local/cuda-13.0}/include}
cc=${CC:-cc}
read -ra opt <<< "${OPT:--O2 -g}"
[ -f "$include/cuda.h" ] || { echo "build.sh: no cuda.h in $include (CUDA_HOME, CUDA_INCLUDE)" >&2; exit 2; }
grep -qE 'define CUDART_VERSION +13' "$include/cuda_runtime_api.h" || { echo "build.sh: the headers are not of CUDA 13" >&2; exit 2; }
flags=(-std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -pthread "${opt[@]}" -Wall -Wextra -Wpedantic -Wshadow -Wconversion
       -Wno-sign-conversion -Wstrict-prototypes -Wvla -Wwrite-strings -Werror -isystem "$include")
link=(-shared -pthread "-Wl,-z,nodelete" "-Wl,-rpath,\$ORIGIN")
if [ -n "${SAN:-}" ]; then
  flags+=("-fsanitize=$SAN" -fno-omit-frame-pointer)
else
  link+=("-Wl,-z,defs")
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)

cd "$here"
"$cc" "${flags[@]}" "${link[@]}" -Wl,-soname,libcuda.so.1 -o "$out/libcuda.so.1" \
  account.c machine.c device.c memory.c stream.c copy.c vmm.c multicast.c driver.c -ldl
"$cc" "${flags[@]}" "${link[@]}" -Wl,-soname,libcudart.so.13 -Wl,--version-script=cudart.map -o "$out/libcudart.so.13" \
  runtime.c extra.c kernels.c "$out/libcuda.so.1"
"$cc" "${flags[@]}" "${link[@]}" -Wl,-soname,libnvidia-ml.so.1 -o "$out/libnvidia-ml.so.1" nvml.c "$out/libcuda.so.1"
"$cc" "${flags[@]}" "-Wl,-rpath,\$ORIGIN" -o "$out/selftest" selftest.c selftest_multicast.c "$out/libcudart.so.13" "$out/libcuda.so.1" \
  "$out/libnvidia-ml.so.1"
