#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# build.sh OUTDIR: libcudart.so.13, libcudart.so.12 and libnccl.so.2, the stand-ins, against the real headers; the same
# under the names of HIP and RCCL, libamdhip64.so.6 and librccl.so.1.
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
rig=../../cuda
runtime=(common.c "$rig"/account.c "$rig"/machine.c "$rig"/device.c "$rig"/memory.c "$rig"/stream.c "$rig"/copy.c "$rig"/runtime.c)
nccl=(comm.c config.c group.c create.c extra.c end.c collectives.c launch.c run.c reduce.c shm.c)
"$cc" "${flags[@]}" "${link[@]}" -Wl,-soname,libcudart.so.13 -Wl,--version-script=cudart.map \
  -o "$out/libcudart.so.13" "${runtime[@]}"
"$cc" "${flags[@]}" "${link[@]}" -Wl,-soname,libcudart.so.12 -Wl,-rpath,"\$ORIGIN" -o "$out/libcudart.so.12" \
  cudart12.c "$out/libcudart.so.13"
# the shared memory needs librt where the C library is older than 2.34
"$cc" "${flags[@]}" "${link[@]}" -Wl,-soname,libnccl.so.2 -Wl,-rpath,"\$ORIGIN" -o "$out/libnccl.so.2" \
  "${nccl[@]}" "$out/libcudart.so.13" -lrt

# each function of the runtime under HIP's name; types and values are the same
hip=(-DSTANDIN_HIP "-DRIG_GPU=\"hip\"")
mapfile -t names < <(nm -D "$out/libcudart.so.13" | sed -n 's/.* T cuda\([A-Z][A-Za-z0-9]*\).*/\1/p')
for name in "${names[@]}"; do hip+=("-Dcuda$name=hip$name"); done
sed 's/cuda/hip/g; s/libhiprt.so.13/libamdhip64.so.6/' cudart.map > "$out/hip.map"
"$cc" "${flags[@]}" "${hip[@]}" "${link[@]}" -Wl,-soname,libamdhip64.so.6 -Wl,--version-script="$out/hip.map" \
  -o "$out/libamdhip64.so.6" "${runtime[@]}"
"$cc" "${flags[@]}" "${hip[@]}" "${link[@]}" -Wl,-soname,librccl.so.1 -Wl,-rpath,"\$ORIGIN" -o "$out/librccl.so.1" \
  "${nccl[@]}" "$out/libamdhip64.so.6" -lrt
rm "$out/hip.map"
ln -sf libcudart.so.13 "$out/libcudart.so"
ln -sf libnccl.so.2 "$out/libnccl.so"
