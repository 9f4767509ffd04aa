#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# build.sh OUTDIR: libcudart.so.13, libcudart.so.12 and libnccl.so.2, the stand-ins, against the real headers.
# CUDA_HOME (/usr/local/cuda-13.0) or CUDA_INCLUDE says where these are; CC, OPT (-O2 -g) and
# SAN (address,undefined or thread) as usual.
set -eu
out=${1:?build.sh OUTDIR}
here=$(cd "$(dirname "$0")" && pwd)
include=${CUDA_INCLUDE:-${CUDA_HOME:-/usr/local/cuda-13.0}/include}
cc=${CC:-cc}
read -ra opt <<< "${OPT:--O2 -g}"
[ -z "${SAN:-}" ] || opt+=("-fsanitize=$SAN" -fno-omit-frame-pointer)
warn=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes
      -Wmissing-prototypes -Wvla -Wwrite-strings -Werror)
[ -f "$include/nccl.h" ] || { echo "build.sh: no nccl.h in $include (CUDA_HOME, CUDA_INCLUDE)" >&2; exit 2; }
mkdir -p "$out"
out=$(cd "$out" && pwd)

flags=(-std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -pthread "${opt[@]}" "${warn[@]}" -isystem "$include")
link=(-shared -pthread "-Wl,-z,nodelete" "-Wl,-z,defs")
# a sanitizer brings its symbols with the program
[ -z "${SAN:-}" ] || link=(-shared -pthread "-Wl,-z,nodelete")

cd "$here"
"$cc" "${flags[@]}" "${link[@]}" -Wl,-soname,libcudart.so.13 -Wl,--version-script=cudart.map \
  -o "$out/libcudart.so.13" common.c cudart.c strided.c stream.c
"$cc" "${flags[@]}" "${link[@]}" -Wl,-soname,libcudart.so.12 -Wl,-rpath,"\$ORIGIN" -o "$out/libcudart.so.12" \
  cudart12.c "$out/libcudart.so.13"
# the shared memory needs librt where the C library is older than 2.34
"$cc" "${flags[@]}" "${link[@]}" -Wl,-soname,libnccl.so.2 -Wl,-rpath,"\$ORIGIN" -o "$out/libnccl.so.2" \
  comm.c config.c group.c create.c extra.c ras.c end.c collectives.c launch.c run.c reduce.c shm.c "$out/libcudart.so.13" -lrt
ln -sf libcudart.so.13 "$out/libcudart.so"
ln -sf libnccl.so.2 "$out/libnccl.so"
