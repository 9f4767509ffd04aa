# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC1091,SC2034,SC2154 # the variables are run.sh's, which reads this file
#
# report.sh - the tables of run.sh, and its record: what was measured where, with what.

# ---------------------------------------------------------------------- numbers

tenths() { # 12.3 -> 123; bash counts in integers
  local v=$1 sign=""
  case $v in -*) sign=- v=${v#-} ;; esac
  echo $((${sign}10#${v/./}))
}

# values FILE KEY: all of a key, least first
values() {
  local key value
  while IFS=$'\t' read -r key value; do
    if [ "$key" = "$2" ]; then echo "$value"; fi
  done < "$1" | sort -g
}

middle() { # FILE KEY: "12.3", or "12.3 (11.0 to 14.2)" of several
  local all
  mapfile -t all < <(values "$1" "$2")
  case ${#all[@]} in
    0) echo "-" ;;
    1) echo "${all[0]}" ;;
    *) echo "${all[$(((${#all[@]} - 1) / 2))]} (${all[0]} to ${all[-1]})" ;;
  esac
}

# ----------------------------------------------------------------------- tables

memory_rows=()
# report_memory RANKS OPTIONS LOG: a row, and a check of its own. No more than predicted, but for a
# tenth and one granule of 2 MiB; and no less than three quarters, where the channels are given.
report_memory() {
  local n=$1 options=$2 file=$3 key value why=""
  local -A m=()
  while IFS=$'\t' read -r key value; do
    case $key in *" "* | "" | *[!a-z_]*) ;; *) m[$key]=$value ;; esac
  done < "$file"
  memory_rows+=("| $n | ${options:-(none)} | ${m[seen]%.*} | ${m[created]} | ${m[predicted_created]} | ${m[first_use]} | ${m[predicted_first_use]} | ${m[host_created]} | ${m[host_first_use]} | ${m[kept]} |")
  local created predicted used more
  created=$(tenths "${m[created]}") predicted=$(tenths "${m[predicted_created]}")
  used=$(tenths "${m[first_use]}") more=$(tenths "${m[predicted_first_use]}")
  if [ "$created" -gt $((predicted * 11 / 10 + 20)) ]; then
    why="${m[created]} MiB at creation, predicted ${m[predicted_created]}"
  elif [[ $options == min_ctas* ]] && [ "$created" -lt $((predicted * 3 / 4)) ]; then
    why="only ${m[created]} MiB at creation, predicted ${m[predicted_created]}"
  elif [ $((created + used)) -gt $(((predicted + more) * 11 / 10 + 20)) ]; then
    why="${m[first_use]} MiB more with the first use, predicted ${m[predicted_first_use]}"
  fi
  log=$file
  verdict "memory as predicted: $n ranks, ${options:-no option}" "$why" 0 measure memory "\"$options\""
}

# report_create RANKS WAY LOG: its samples go to those of earlier launches
report_create() {
  local key value
  while IFS=$'\t' read -r key value; do
    case $key in cold | again | first | open | comms) printf '%s\t%s\n' "$key" "$value" ;; esac
  done < "$3" >> "$work/$1.$2"
}

declare -A way_name=(
  [ours]="**moongrid**: \`mgrid_materialize\`"
  [serial]="\`ncclCommInitRankConfig\`, one after the other, the same communicators"
  [serial_all]="the same for every family, nothing shared"
  [split]="a world communicator, and \`ncclCommSplit\` for the same communicators"
  [split_all]="the same for every family, nothing shared"
)

create_table() {
  local n way file
  echo "| ranks | way | communicators of rank 0 | cold, ms | again, ms | first all-reduce of all, ms |"
  echo "|---|---|---|---|---|---|"
  for n in 2 4 8; do
    for way in ours serial serial_all split split_all; do
      file=$work/$n.$way
      [ -f "$file" ] || continue
      echo "| $n | ${way_name[$way]} | $(values "$file" comms | head -n 1) | $(middle "$file" cold) | $(middle "$file" again) | $(middle "$file" first) |"
    done
  done
}

open_text() {
  local n text=""
  for n in 2 4 8; do
    [ ! -f "$work/$n.ours" ] || text="$text${text:+, }$(middle "$work/$n.ours" open) ms ($n ranks)"
  done
  echo "$text"
}

# ----------------------------------------------------------------------- record

driver_text() {
  local text=""
  if command -v nvidia-smi > /dev/null; then
    # its own libraries, not those of this folder
    text=$(LD_LIBRARY_PATH=$path_before timeout 20 nvidia-smi --query-gpu=driver_version --format=csv,noheader 2> /dev/null | head -n 1)
  fi
  if [ -z "$text" ] && [ -r /proc/driver/nvidia/version ]; then
    read -r text < /proc/driver/nvidia/version
    text=${text#NVRM version: }
  fi
  echo "${text:-not told}"
}

machine_table() {
  local cpus memory system
  read -r _ memory _ < /proc/meminfo
  cpus=$(nproc)
  system=$(. /etc/os-release 2> /dev/null && echo "${PRETTY_NAME:-}")
  echo "| | |"
  echo "|---|---|"
  echo "| GPU | ${about[name]:-none} x ${about[devices]:-0}, compute capability ${about[compute]:--}, ${about[memory]:--} MiB, ${about[free]:--} MiB free at the start |"
  echo "| driver | $(driver_text), knows CUDA ${about[driver]:--} |"
  echo "| CUDA runtime | ${about[runtime]:--}, \`${about["cudart file"]:-none}\` |"
  echo "| NCCL | ${about[nccl]:--} (built with the headers of ${about[headers]:--}), \`${about["nccl file"]:-none}\` |"
  echo "| Open MPI | ${packed[mpi]}, of the packed folder |"
  echo "| moongrid | commit ${packed[commit]}, packed on ${packed[packed]} |"
  echo "| machine | $cpus cores, $((memory / 1024)) MiB, ${system:-unknown system}, $(uname -srm) |"
  echo "| environment | $(env | sort | while IFS= read -r text; do
    case $text in NCCL_* | CUDA_VISIBLE_DEVICES=*) printf '\x60%s\x60 ' "$text" ;; esac
  done)|"
}

write_record() {
  local line
  case $kind in
    record) echo "# ${about[name]}, ${began%% *}: $passed passed, $failed failed" ;;
    rehearsal) echo "# A REHEARSAL WITHOUT A GPU (stand-in libraries): nothing below is a result of NCCL; $passed passed, $failed failed" ;;
    *) echo "# NO GPU WAS REACHED: nothing below is a result of NCCL; $passed passed, $failed failed" ;;
  esac
  echo
  echo "Made by \`scripts/gpu-test\`, begun ${began}, $SECONDS s. Parts: ${parts[*]}."
  for line in "${notes[@]}"; do echo "$line"; done
  [ "$late" -eq 0 ] || echo "$late checks were left out: the $total seconds of GPU_TOTAL were over."
  printf '\n## Machine\n\n'
  machine_table
  printf '\n## Checks\n\n| | check | s | command |\n|---|---|---|---|\n'
  printf '%s\n' "${checks[@]}"
  if [ ${#memory_rows[@]} -gt 0 ]; then
    printf '\n## Memory of one communicator, MiB a rank\n\n'
    echo "Four communicators of all ranks are made, then used (an all-reduce of 512 KiB, every value checked), then"
    echo "destroyed; one before them is not counted. All ranks stand still while rank 0 reads \`cudaMemGetInfo\`; the"
    echo "difference is divided by four and by the ranks whose memory it sees. Predicted: \`mgrid_plan_gpu_memory\`. Between"
    echo "ranks that share a GPU messages go over sockets, whose buffers are on the host (MemAvailable, of the machine)."
    echo
    echo "| ranks | options | ranks seen | created | predicted | first use | predicted | host: created | host: first use | left at the end |"
    echo "|---|---|---|---|---|---|---|---|---|---|"
    printf '%s\n' "${memory_rows[@]}"
  fi
  if compgen -G "$work/[248].*[a-z]" > /dev/null && [ -n "$(open_text)" ]; then
    printf '\n## Creation of the megatron layout\n\n'
    echo "\`tp\` 2; with 4 ranks \`pp\` 2, with 8 \`cp\` 2 too; \`ep\` 2; without the families on the host. From the first rank"
    echo "that began to the last that was done, medians (least to largest) of $launches launches at most; CUDA has"
    echo "started. Cold: the first in a process; again: after all of them were destroyed. Every way with NCCL_MAX_CTAS=2;"
    echo "each communicator's size, rank and sum are checked. The backend's own opening is not in moongrid's time: $(open_text)."
    echo
    create_table
  fi
  if [ ${#warnings[@]} -gt 0 ]; then
    printf '\n## What NCCL warned of\n\n```\n'
    printf '%s\n' "${warnings[@]}"
    printf '```\n'
  fi
  if [ ${#failures[@]} -gt 0 ]; then
    printf '\n## Failures\n'
    for line in "${failures[@]}"; do printf '\n%s\n' "$line"; done
  fi
}

# Write a record only if the libraries and the driver have identified themselves. Anything else stays in
# this folder.
finish() {
  local name place=$out file n=1
  trap - INT TERM
  kind=record
  name=${about[name]:-}
  [ -n "$name" ] || kind=failure
  [ "$standin" -eq 0 ] || kind=rehearsal
  if [ $kind = record ] && [ "$name" = unknown ]; then kind=failure; fi # no driver has named the GPU
  name=${name//[!A-Za-z0-9]/-}
  if [ $kind != record ]; then
    place=$dir name=$kind
    [ -w "$place" ] || place=${TMPDIR:-/tmp}
  fi
  mkdir -p "$place"
  file=$place/${began%% *}-$name.md
  while [ $kind = record ] && [ -e "$file" ]; do
    n=$((n + 1))
    file=$place/${began%% *}-$name-$n.md
  done
  write_record > "$file"
  echo
  printf '%s\n' "$(< "$file")"
  rm -rf "$work"
  echo
  echo "$kind: $file"
  echo "$passed passed, $failed failed"
}
