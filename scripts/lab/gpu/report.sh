# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by run.sh, which shares its variables
#
# report.sh - write the tables of run.sh, and its record: what was measured where, with what.

standin_name="moongrid NCCL stand-in (not NCCL, no GPU)"

# ---------------------------------------------------------------------- numbers

tenths() { # 12.3 -> 123; bash counts in integers
  local v=$1 sign=""
  case $v in -*) sign=- v=${v#-} ;; esac
  echo $((${sign}10#${v/./}))
}

# values FILE KEY: print all values of a key, least first
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

# report_memory RANKS < LOG: a row for each of the options, and a check of its own.
memory_rows=()
report_memory() {
  local n=$1 key value
  local -A m=()
  while IFS=$'\t' read -r key value; do
    [ "$key" != options ] || m=([options]=$value)
    case $key in *" "* | "" | *[!a-z_]*) ;; *) m[$key]=$value ;; esac
    [ "$key" != predicted_first_use ] || memory_row
  done
}

# Check the memory: at most a tenth and one granule of 2 MiB above the prediction; and, where the channels are given, at
# least three quarters of it.
memory_row() {
  local created predicted used more why="" options=${m[options]}
  memory_rows+=("| $n | ${options:-(none)} | ${m[seen]%.*} | ${m[created]} | ${m[predicted_created]} | ${m[first_use]} | ${m[predicted_first_use]} | ${m[host_created]} | ${m[host_first_use]} | ${m[kept]} |")
  created=$(tenths "${m[created]}") predicted=$(tenths "${m[predicted_created]}")
  used=$(tenths "${m[first_use]}") more=$(tenths "${m[predicted_first_use]}")
  if [ "$created" -gt $((predicted * 11 / 10 + 20)) ]; then
    why="${m[created]} MiB at creation, predicted ${m[predicted_created]}"
  elif [[ $options == min_ctas* ]] && [ "$created" -lt $((predicted * 3 / 4)) ]; then
    why="only ${m[created]} MiB at creation, predicted ${m[predicted_created]}"
  elif [ $((created + used)) -gt $(((predicted + more) * 11 / 10 + 20)) ]; then
    why="${m[first_use]} MiB more with the first use, predicted ${m[predicted_first_use]}"
  fi
  verdict "memory as predicted: $n ranks, ${options:-no option}" "$why" 0 measure memory "\"$options\""
}

# report_create RANKS < LOG
report_create() {
  local key value
  while IFS=$'\t' read -r key value; do
    case $key in *.cold | *.again | *.first | *.open | *.comms) printf '%s\t%s\n' "$key" "$value" ;; esac
  done > "$work/create.$1"
  write_record
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
  echo "| ranks | way | communicators of rank 0 | first turn, ms | later turns, ms | first all-reduce of all, ms |"
  echo "|---|---|---|---|---|---|"
  for n in 2 4 8; do
    file=$work/create.$n
    [ -s "$file" ] || continue
    for way in ours serial serial_all split split_all; do
      echo "| $n | ${way_name[$way]} | $(middle "$file" $way.comms) | $(middle "$file" $way.cold) | $(middle "$file" $way.again) | $(middle "$file" $way.first) |"
    done
  done
}

open_text() {
  local n text=""
  for n in 2 4 8; do
    [ ! -s "$work/create.$n" ] || text="$text${text:+, }$(middle "$work/create.$n" ours.open) ms ($n ranks)"
  done
  echo "$text"
}

# ----------------------------------------------------------------------- record

machine_table() {
  local memory system
  read -r _ memory _ < /proc/meminfo
  # shellcheck source=/dev/null
  system=$(. /etc/os-release 2> /dev/null && echo "${PRETTY_NAME:-}")
  echo "| | |"
  echo "|---|---|"
  echo "| GPU | ${about[name]:-none} x ${about[devices]:-0}, compute capability ${about[compute]:--}, ${about[memory]:--} MiB, ${about[free]:--} MiB free at the start; compute mode ${machine[mode]:-not told} |"
  echo "| driver | ${machine[driver]:-not told}, knows CUDA ${about[driver]:--} |"
  echo "| CUDA runtime | ${about[runtime]:--}, \`${about[cudart_file]:-none}\` |"
  echo "| NCCL | ${about[nccl]:--} (built with the headers of ${about[headers]:--}), \`${about[nccl_file]:-none}\` |"
  local launcher=${mpirun:-none}
  echo "| Open MPI | ${packed[mpi]:-none}, \`${launcher#"$dir/"}\` |"
  echo "| moongrid | commit ${packed[commit]:-unknown}, made on ${packed[packed]:-an unknown day} |"
  echo "| machine | $(nproc) cores, $((memory / 1024)) MiB, ${machine[nodes]:-?} NUMA nodes, ${system:-unknown system}, $(uname -srm) |"
  echo "| limits | open files ${machine[files]:-?}; /dev/shm ${machine[shm]:-?} |"
  echo "| tools | ${machine[tools]:-none} |"
  echo "| environment | $(env | sort | while IFS= read -r text; do
    case $text in NCCL_* | CUDA_VISIBLE_DEVICES=*) printf '\x60%s\x60 ' "$text" ;; esac
  done)|"
}

rows_of() { # TITLE HEAD ROW...: a table under a title, if it has rows
  [ $# -gt 2 ] || return
  printf '\n## %s\n\n%s\n' "$1" "$2"
  printf '%s\n' "${@:3}"
}

record_text() {
  local line name=${about[name]:-}
  case $kind in
    record) line="${name:-GPU}, ${began%% *}" ;;
    rehearsal) line="A REHEARSAL WITHOUT A GPU: nothing below is a result of NCCL" ;;
    *) line="NO GPU WAS REACHED: nothing below is a result of NCCL" ;;
  esac
  echo "# $line: $passed passed, $failed failed, $left_out left out"
  echo
  echo "Made by \`scripts/gpu-test\`, begun ${began}, $SECONDS s. Pieces: ${pieces[*]}. Logs: \`${logs##*/}\`."
  if [ -n "$running" ]; then
    echo "**Not ended:** running was: $running. What it wrote: \`${log##*/}\`."
  elif [ -z "${done_at:-}" ]; then
    echo "**Not ended:** it stopped between two checks."
  fi
  for line in "${notes[@]}"; do echo "$line"; done
  printf '\n## Machine\n\n'
  machine_table
  rows_of "Checks" $'| | check | s | command |\n|---|---|---|---|' "${rows[@]}"
  rows_of "Variants of the environment: $looked" $'| | result | s |\n|---|---|---|' "${variant_rows[@]}"
  rows_of "Numbers of rank 0" $'| check | what | |\n|---|---|---|' "${numbers[@]}"
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
  if [ -n "$(open_text)" ]; then
    printf '\n## Creation of the megatron layout\n\n'
    echo "\`tp\` 2; with 4 ranks \`pp\` 2, with 8 \`cp\` 2 too; \`ep\` 2; without the families on the host. From the first rank"
    echo "that began to the last that was done; one launch for all ways, one after the other, in $turns turns after a first"
    echo "one; medians (least to largest). In the first turn NCCL starts, for all of them with moongrid's. NCCL_MAX_CTAS=2;"
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

# A new file replaces the old one, so the record is always whole. It is called a record only if the libraries and
# the driver have identified themselves.
write_record() {
  kind=record
  if [ -z "${about[name]:-}" ] || [ "${about[name]}" = unknown ]; then kind=failure; fi
  [ -z "$standin_dir" ] || kind=rehearsal
  if [ -n "$standin_dir" ]; then
    record_text | while IFS= read -r line; do printf '%s: %s\n' "$standin_name" "$line"; done > "$record.new"
  else
    record_text > "$record.new"
  fi
  mv -f "$record.new" "$record"
}
