#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh [-o OUT] [PART ...]: the nccl backend on the GPUs of this machine, several ranks on one
# where there are fewer than ranks. It lies in a folder that `scripts/gpu-test pack` made, and needs
# bash, coreutils, a driver, libnccl.so.2 and the CUDA runtime. Parts, in this order without any:
#
#   start   Open MPI of this folder, moongrid doctor      memory  GPU memory of a communicator
#   run     recipes on 2 to 8 ranks, every one proved     create  time of creation, three ways
#   refuse  what must be refused, and soon
#
# Writes DATE-GPU.md to OUT (this folder), prints it, and ends with "N passed, M failed".
#   GPU_SECONDS=240   of one command at most       GPU_TOTAL=3000  of all: what comes later is left out
#   GPU_LAUNCHES=3    of each row of `create`      NCCL_MAX_CTAS   is set where a command says so
# shellcheck disable=SC1091,SC2034 # report.sh is beside this file, and reads variables of it
set -u
export LC_ALL=C
dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$dir/report.sh"

out=$dir
parts=()
while [ $# -gt 0 ]; do
  case $1 in
    -o) out=${2:?-o wants a folder} && shift ;;
    start | run | refuse | memory | create) parts+=("$1") ;;
    *)
      while IFS= read -r line; do
        case $line in "#!"* | "# SPDX"*) ;; "#"*) echo "${line#"#"}" ;; *) break ;; esac
      done < "$dir/run.sh"
      [ "$1" = --help ] && exit 0
      exit 2
      ;;
  esac
  shift
done
asked=${#parts[@]}
[ "$asked" -gt 0 ] || parts=(start run refuse memory create)
limit=${GPU_SECONDS:-240} total=${GPU_TOTAL:-3000} launches=${GPU_LAUNCHES:-3}
began=$(date -u '+%Y-%m-%d %H:%M UTC')
work=$(mktemp -d) || exit 1
mkdir "$work/libraries" "$work/mpi"

# ------------------------------------------------------------------- libraries

# Folders that may have a file, the ones that were asked for first.
places() {
  local IFS=: folder line
  for folder in ${LD_LIBRARY_PATH:-}; do echo "$folder"; done
  if command -v python3 > /dev/null; then # where pip puts them
    timeout 20 python3 -c 'import sys; print("\n".join(p for p in sys.path if p))' 2> /dev/null \
      | while read -r line; do
        for folder in nccl cu13 cu12 cuda_runtime; do echo "$line/nvidia/$folder/lib"; done
      done
  fi
  for folder in /usr/local/cuda*/lib64 /usr/local/cuda*/lib /usr/local/cuda*/targets/*/lib /usr/lib/*-linux-gnu \
    /usr/lib64 /usr/local/lib ${CONDA_PREFIX:+"$CONDA_PREFIX/lib"} \
    {/usr/local,/usr,/opt/*,/opt/*/*,"${HOME:-/root}/.local"}/lib/python3*/{site,dist}-packages/nvidia/*/lib; do
    [ -d "$folder" ] && echo "$folder"
  done
}

find_library() { # NAME: where it is, every one once
  local folder path known=:
  places | while IFS= read -r folder; do
    [ -f "$folder/$1" ] || continue
    path=$(readlink -f "$folder/$1")
    case $known in *":$path:"*) continue ;; esac
    known=$known$path:
    echo "$path"
  done
}

declare -A about packed # keys and values of `measure about`, and of the folder's own file
while IFS=$'\t' read -r key value; do packed[${key:-none}]=$value; done < "$dir/about"

# The first of each that works together is taken. moongrid asks for the CUDA runtime by the version
# of its headers; the few functions it calls are the same in the one before, which may stand in.
missing="" notes=() candidates=()
find_libraries() {
  local nccl cudart wanted spare="" text
  wanted=libcudart.so.$((packed[cuda] / 1000))
  path_before=${LD_LIBRARY_PATH:-}
  nccl=$(find_library libnccl.so.2 | head -n 1)
  if [ -z "$nccl" ]; then
    missing="libnccl.so.2 is in none of the places where it is looked for; LD_LIBRARY_PATH says where it is"
  else
    ln -sf "$nccl" "$work/libraries/libnccl.so.2"
  fi
  mapfile -t candidates < <(find_library "$wanted"; find_library libcudart.so.13; find_library libcudart.so.12
    [ -f "$dir/spare/$wanted" ] && echo "$dir/spare/$wanted")
  for cudart in "${candidates[@]}"; do
    ln -sf "$cudart" "$work/libraries/$wanted"
    [ -n "$nccl" ] || break
    for spare in "" ":$dir/spare"; do
      export LD_LIBRARY_PATH=$work/libraries:$dir:$dir/lib${path_before:+:$path_before}$spare
      text=$(timeout -k 5 120 "$dir/measure" about 2>&1) && found_all "$text" "$cudart" "$wanted" "$spare" && return
      case $missing in "" | *libstdc++* | *libgcc_s*) missing=$text ;; esac # the first candidate's
      [[ $text == *libstdc++* || $text == *libgcc_s* ]] || break
    done
  done
  [ ${#candidates[@]} -gt 0 ] || missing="$missing; there is no $wanted"
}

found_all() { # TEXT CUDART WANTED SPARE
  local key value
  while IFS=$'\t' read -r key value; do about[${key:-none}]=$value; done <<< "$1"
  [ -n "${about[success]:-}" ] || return 1
  missing=""
  [ "${2##*/}" = "$3" ] || [[ $2 == *"/$3."* ]] || notes+=("$2 was opened under the name $3.")
  case $2 in "$dir"/*) notes+=("The CUDA runtime is the packed one: none was found here.") ;; esac
  [ -z "$4" ] || notes+=("The C++ library is the packed one: none was found here.")
}

# ----------------------------------------------------------------- environment

# Use the packed Open MPI on this machine alone, whatever is installed: find modules and messages by the
# prefixes, do not read settings of the machine, do not look for ssh.
set_environment() {
  local pmix
  for pmix in "$dir"/usr/lib/*/pmix2; do
    export PMIX_PKGLIBDIR=$pmix/lib/pmix PMIX_PKGDATADIR=$pmix/share/pmix
  done
  export LD_LIBRARY_PATH=$work/libraries:$dir:$dir/lib${path_before:+:$path_before}${1:-}
  export OPAL_PREFIX=$dir/usr OMPI_MCA_mca_base_param_files=none OMPI_MCA_plm=isolated
  export PMIX_MCA_mca_base_param_files=none OMPI_MCA_orte_default_hostfile=none HWLOC_PLUGINS_PATH=$dir/none
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
  # files of a killed run are removed with the folder; and /dev/shm of a container may be small
  export OMPI_MCA_btl_vader_backing_directory=$work/mpi OMPI_MCA_orte_tmpdir_base=$work/mpi
  export OMPI_MCA_oob_tcp_if_include=lo PMIX_MCA_pcompress_base_silence_warning=1
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
  export OMPI_MCA_mpi_yield_when_idle=1
  # to NCCL ranks that share a GPU are on different machines (set by moongrid); connect them by loopback
  unset NCCL_HOSTID NCCL_MAX_CTAS NCCL_MIN_CTAS
  export NCCL_DEBUG=WARN
  if [ "${about[devices]:-1}" -lt 8 ]; then
    export NCCL_SOCKET_IFNAME=lo NCCL_NET=Socket NCCL_NET_PLUGIN=none
  fi
  export STANDIN_STRICT=1 # a rehearsal with the stand-ins of tests/nccl: faults count
}

# ---------------------------------------------------------------------- checks

# check NAME EXIT-CODE PATTERN COMMAND...: PATTERN is the shell's, of the whole output.
passed=0 failed=0 runs=0 late=0
checks=() failures=() warnings=()
check() {
  local name=$1 want=$2 pattern=$3 rc text bad why="" start=$SECONDS most=$limit left=$((total - SECONDS))
  shift 3
  runs=$((runs + 1))
  log=$work/$runs.log
  [ $left -ge "$most" ] || most=$left
  if [ "$most" -lt 5 ]; then
    late=$((late + 1))
    verdict "$name" "not run: the $total seconds are over" 0 "$@"
    return 1
  fi
  timeout -k 5 "$most" "$@" > "$log" 2>&1 < /dev/null
  rc=$?
  text=$(< "$log")
  # shellcheck disable=SC2053 # it is a pattern
  if [ $rc -eq 124 ] || [ $rc -eq 137 ]; then
    why="not done after $most seconds"
  elif [ $rc -ne "$want" ]; then
    why="exit code $rc, not $want"
  elif [[ $text != $pattern ]]; then
    why="its output has not $pattern"
  fi
  for bad in "not allowed in the same group" "never destroyed" "would hang here" "would fault here"; do
    [[ $text != *"$bad"* ]] || why=${why:-"its output has '$bad'"}
  done
  [[ $text != *stand-in* ]] || standin=1
  keep_warnings <<< "$text"
  verdict "$name" "$why" $((SECONDS - start)) "$@"
}

verdict() { # NAME WHY-NOT SECONDS COMMAND...
  local name=$1 why=$2 seconds=$3 line tail
  shift 3
  line="${*@Q}"
  line=${line//"$dir/usr/bin/"/}
  line=${line//"$dir/"/}
  line=${line//"'"/}
  checks+=("| ${why:+**FAIL**: }${why:-pass} | $name | $seconds | \`${line//|/\\|}\` |")
  if [ -z "$why" ]; then
    passed=$((passed + 1))
    printf 'pass  %-66s %4d s\n' "$name" "$seconds"
    return 0
  fi
  failed=$((failed + 1))
  printf 'FAIL  %-66s %4d s: %s\n' "$name" "$seconds" "$why"
  [ "$seconds" = 0 ] && [ ! -s "$log" ] && return 1
  tail=$(tail -n 25 "$log")
  failures+=("$name: $why"$'\n\n```\n'"$tail"$'\n```')
  printf '%s\n' "$tail"
  return 1
}

keep_warnings() { # of NCCL, once each, without what tells processes apart
  local line seen
  while IFS= read -r line; do
    [[ $line == *"NCCL WARN"* ]] || continue
    line="NCCL WARN${line#*NCCL WARN}"
    for seen in "${warnings[@]}"; do [ "$seen" != "$line" ] || continue 2; done
    [ ${#warnings[@]} -ge 30 ] || warnings+=("$line")
  done
}

ranks() { # N COMMAND...: as check wants it
  launch=("$dir/usr/bin/mpirun" -n "$1" "${@:2}")
}
moongrid=$dir/moongrid

# share N: --share-gpu where ranks outnumber GPUs
share() {
  shared=()
  [ "$1" -le "${about[devices]}" ] || shared=(--share-gpu)
}

# ----------------------------------------------------------------------- parts

part_start() {
  ranks 4 "$moongrid" run "$dir/examples/moe.lua" tp=2 pp=2 ep=2 --backend mpi
  check "Open MPI of this folder: 4 ranks, by mpi" 0 "*proved *on all 4 ranks*, mpi)*" "${launch[@]}"
  check "moongrid doctor" 0 "*nccl       yes *" "$moongrid" doctor
}

part_run() {
  local n sizes config few=(env NCCL_MAX_CTAS=2) megatron=("$moongrid" run megatron tp=2 cp=2 pp=2 ep=2 etp=2)
  for n in 2 4 8; do
    share $n
    sizes=(tp=2 ep=2)
    [ $n = 2 ] || sizes=(tp=2 pp=2 ep=2)
    ranks $n "$moongrid" run "$dir/examples/moe.lua" "${sizes[@]}" --backend nccl "${shared[@]}"
    check "a mixture of experts, $n ranks" 0 "*proved *on all $n ranks*, nccl)*" "${few[@]}" "${launch[@]}"
  done
  share 8
  ranks 8 "${megatron[@]}" --backend nccl "${shared[@]}"
  check "megatron, 8 ranks" 0 "*proved *on all 8 ranks*, nccl)*" "${few[@]}" "${launch[@]}"
  config='nccl_communicator_config={"tp":{"min_ctas":2,"max_ctas":4},"dp_cp":{"max_ctas":1,"cga_cluster_size":1}}'
  ranks 8 "${megatron[@]}" "$config" high_priority_stream_groups=pp --backend nccl "${shared[@]}"
  check "megatron with nccl options, 8 ranks" 0 "*nccl{max_ctas=4 min_ctas=2}*proved *, nccl)*" "${launch[@]}"
  ranks 8 "${megatron[@]}" 'nccl_communicator_config={"tp":{"blocking":1}}' --backend nccl "${shared[@]}"
  check "megatron with a blocking family, 8 ranks" 0 "*nccl{blocking=1}*proved *, nccl)*" "${few[@]}" "${launch[@]}"
}

part_refuse() {
  local limit=40 # seconds of one command, because refusals must come soon
  if [ "${about[devices]}" = 1 ]; then
    ranks 2 "$moongrid" run "$dir/examples/moe.lua" tp=2 --backend nccl
    check "2 ranks on one GPU without --share-gpu" 4 "*has 1 GPU for 2 ranks*--share-gpu*" "${launch[@]}"
  fi
  ranks 2 "$moongrid" run "$dir/examples/moe.lua" tp=2 --backend nccl --devices 0,0
  check "2 ranks sent to one GPU without --share-gpu" 4 "*both are on GPU *--share-gpu*" "${launch[@]}"
  share 2
  ranks 2 "$moongrid" run "$dir/examples/moe.lua" tp=2 --backend nccl "${shared[@]}" --devices 63,63
  check "a GPU that is not there" 2 "*is to use GPU 63*" "${launch[@]}"
  ranks 2 "$moongrid" run "$dir/examples/moe.lua" tp=2 --backend nccl "${shared[@]}" --gpu-memory 1
  check "a plan above --gpu-memory" 3 "*the budget is 1 MiB*" "${launch[@]}"
}

# NCCL may choose few channels; min_ctas forces the number that the prediction uses, so that the formula
# itself is compared with the GPU.
part_memory() {
  local n options
  for n in 2 8; do
    for options in max_ctas=1 "min_ctas=2 max_ctas=2" "min_ctas=4 max_ctas=4" "min_ctas=16 max_ctas=16" max_ctas=16 ""; do
      [ $n = 2 ] || [[ $options == *=2 ]] || continue
      ranks $n "$dir/measure" memory "$options"
      if check "memory: $n ranks, ${options:-no option}" 0 "*predicted_first_use*" "${launch[@]}"; then
        report_memory $n "$options" "$log"
      fi
    done
  done
}

part_create() {
  local n way launched rc
  for ((launched = 1; launched <= launches; launched++)); do
    for n in 2 4 8; do
      for way in ours serial split serial_all split_all; do
        ranks $n "$dir/measure" create $way
        if [ $launched = 1 ]; then
          check "create: $n ranks, $way" 0 "*again*" env NCCL_MAX_CTAS=2 "${launch[@]}" && report_create $n $way "$log"
        elif [ -f "$work/$n.$way" ] && [ $((total - SECONDS)) -gt 60 ]; then
          NCCL_MAX_CTAS=2 timeout -k 5 "$limit" "${launch[@]}" > "$work/again.log" 2>&1 < /dev/null
          rc=$?
          if [ $rc -eq 0 ]; then
            report_create $n $way "$work/again.log"
          else
            log=$work/again.log
            verdict "create: $n ranks, $way, launch $launched" "exit code $rc" 1 "${launch[@]}"
          fi
        fi
      done
    done
  done
}

# ------------------------------------------------------------------------ main

standin=0
log=$work/libraries.log
find_libraries
printf '%s\n' "$missing" > "$log"
spare=""
case ${LD_LIBRARY_PATH:-} in *":$dir/spare") spare=:$dir/spare ;; esac
set_environment "$spare"
if [ -z "$missing" ]; then
  case ${about[success]}${about[name]} in *stand-in*) standin=1 ;; esac
  verdict "NCCL ${about[nccl]}, CUDA ${about[runtime]}, ${about[devices]} GPU: ${about[name]}" "" 0 measure about
else
  verdict "NCCL and a GPU" "$missing" 1 measure about
  parts=(start)
fi
trap 'finish; exit 1' INT TERM
for part in "${parts[@]}"; do "part_$part"; done
finish
[ $failed -eq 0 ]
