# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by run.sh, which shares its variables
#
# ladder.sh - the first checks of every piece: the machine, one process, one communicator, two ranks, all without MPI
# and without moongrid, then MPI without NCCL. If one of them fails, which is not moongrid's fault, the later checks are
# left out, and the record names the cause.

mark="" mpirun="" with_stacks=""
declare -A machine # what `surroundings` has seen

# ----------------------------------------------------------------- surroundings

# section TITLE COMMAND...: describe the machine in the log
section() {
  printf '\n----- %s\n' "$1"
  limited 20 "$work/section" "${@:2}"
  cat "$work/section"
}

surroundings() {
  local place smi="" text node="" tool size="" free=""
  for place in nvidia-smi /usr/local/nvidia/bin/nvidia-smi /usr/bin/nvidia-smi; do
    [ -n "$smi$standin_dir" ] || smi=$(command -v "$place") # a rehearsal knows of no GPU
  done
  {
    echo "===== the machine"
    [ -z "$smi" ] || section "nvidia-smi -q" "$smi" -q
    section "limits" bash -c 'ulimit -a'
    section "/dev/shm" df -h /dev/shm
    section "interfaces" bash -c 'cat /proc/net/dev'
    section "memory" head -n 5 /proc/meminfo
    section "processors" bash -c 'grep -m 1 "model name" /proc/cpuinfo; nproc; ls -d /sys/devices/system/node/node*'
    section "devices" bash -c 'ls -l /dev/nvidia* /proc/driver/nvidia'
    section "environment" bash -c 'env | grep -E "^(NCCL|CUDA|OMPI|PMIX|LD_|PATH)" | sort'
    printf '\n----- where NCCL is\n%s\n' "$(find_library libnccl.so.2)"
  } >> "$logs" 2> /dev/null
  if [ -n "$smi" ]; then
    limited 20 "$work/smi" "$smi" -q
    text=$(sed -n 's/^ *Compute Mode *: *//p' "$work/smi" | sort -u | head -n 1)
    machine[mode]=$text
    machine[driver]=$(sed -n 's/^ *Driver Version *: *//p' "$work/smi" | head -n 1)
  fi
  if [ -z "${machine[driver]:-}" ] && [ -r /proc/driver/nvidia/version ]; then
    read -r text < /proc/driver/nvidia/version
    machine[driver]=${text#NVRM version: }
  fi
  machine[files]="$(ulimit -Sn) of $(ulimit -Hn)"
  read -r -d '' _ _ size free < <(df -h --output=size,avail /dev/shm 2> /dev/null)
  machine[shm]=${size:+$size, $free free}
  machine[nodes]=$(for node in /sys/devices/system/node/node[0-9]*; do [ -d "$node" ] && echo "$node"; done | wc -l)
  machine[tools]=""
  for tool in cc make nvcc gdb cuda-gdb python3 mpirun; do
    if command -v "$tool" > /dev/null; then machine[tools]+="$tool "; fi
  done
}

# facts about the machine that can explain a failed check
judge_surroundings() {
  local why=""
  if [ ! -d /dev/shm ] || ! touch "/dev/shm/gpu-test-$$" 2> /dev/null; then
    why="/dev/shm is not there or cannot be written; NCCL needs it"
  fi
  rm -f "/dev/shm/gpu-test-$$"
  verdict "/dev/shm: ${machine[shm]:-size unknown}" "$why" 0 df -h /dev/shm
  [ -z "$why" ] || broken[shm]=$why
  why=""
  case ${machine[mode]:-} in
    Prohibited) why="compute mode Prohibited: no process may use the GPU" && broken[gpu]=$why ;;
    Exclusive_Process | Exclusive_Thread)
      why="compute mode ${machine[mode]}: one process for each GPU, so ranks cannot share one" && broken[shared]=$why
      ;;
  esac
  if [ -n "${machine[mode]:-}" ]; then
    verdict "compute mode: ${machine[mode]}" "$why" 0 nvidia-smi -q
  else
    leave_out "compute mode" "no nvidia-smi, or it does not print the mode" nvidia-smi -q
  fi
  step lo probe "the interface lo" 0 "*is up*" "$dir/probe" lo
}

# ------------------------------------------------------------------------ rungs

# share N: set `shared` to --share-gpu if there are fewer than N GPUs
share() {
  shared=()
  [ "$1" -le "${about[devices]:-1}" ] || shared=(--share-gpu)
}

ranks() { # N COMMAND...: set `launch`, the command that runs COMMAND on N ranks
  launch=("${mpirun:-mpirun}" -n "$1" "${@:2}")
}

libraries() {
  local spare=""
  find_libraries
  case ${LD_LIBRARY_PATH:-} in *":$dir/spare") spare=:$dir/spare ;; esac
  set_environment
  set_path "$spare"
  case ${about[success]:-} in
    *stand-in*) [ -n "$standin_dir" ] || missing="these are stand-in libraries; say --standin FOLDER, or gpu-test --rehearse" ;;
    *) [ -z "$standin_dir" ] || missing=${missing:-"the libraries in $standin_dir are not a stand-in"} ;;
  esac
  running=""
  if [ -z "$missing" ]; then
    verdict "NCCL ${about[nccl]}, CUDA ${about[runtime]}, ${about[devices]} GPU: ${about[name]}" "" 0 probe about
    return
  fi
  printf '%s\n' "$missing" >> "$log"
  verdict "NCCL and a GPU" "${missing%%$'\n'*}" 0 probe about
  broken[gpu]="no NCCL with a GPU here"
}

# Keep a context of CUDA, so that the driver is not loaded and unloaded for every check.
hold_gpu() {
  [ -z "${broken[copy]:-}${broken[shared]:-}" ] || return
  "$dir/probe" hold > "$work/hold.log" 2>&1 < /dev/null &
  holder=$!
  for ((n = 0; n < 50; n++)); do
    grep -q held "$work/hold.log" && return
    sleep 0.2
  done
  notes+=("No CUDA context could be held in the background.")
}

# NCCL's messages about its transports: sockets between ranks that share a GPU, because of NCCL_HOSTID.
path_of_pair() {
  local text=$1 why=""
  if [ -n "$standin_dir" ]; then
    leave_out "2 ranks: messages over NET/Socket, NCCL_HOSTID set" "the stand-in has no paths" plain pair 2
    return
  fi
  if [ "${about[devices]}" -lt 2 ]; then
    [[ $text == *"via NET/Socket"* ]] || why="NCCL says nothing of NET/Socket"
    [[ $text == *"NCCL_HOSTID moongrid-"* ]] || why=${why:-"NCCL_HOSTID was not set"}
    verdict "2 ranks: messages over NET/Socket, NCCL_HOSTID set" "$why" 0 plain pair 2
  else
    [[ $text == *" via "* ]] || why="NCCL says nothing of its path"
    text=$(grep -o ' via [A-Za-z/0-9]*' <<< "$text" | sort | uniq -c | sort -rn | head -n 1 | xargs)
    verdict "2 ranks on 2 GPUs: messages: $text" "$why" 0 plain pair 2
  fi
}

mpi_starts() { # RANKS
  local name="Open MPI alone: $1 rank" cause=${broken[mpi]:-${broken[moongrid]:-}}
  [ "$1" = 1 ] || name+=s
  ranks "$1" "$moongrid" run "$dir/examples/moe.lua" tp="$((${1} > 1 ? 2 : 1))" --backend mpi
  if [ -n "$cause" ]; then
    broken[mpi]=$cause
    leave_out "$name" "$cause" "${launch[@]}"
    return
  fi
  check "$name" 0 "*proved *mpi)*" "${launch[@]}" && return
  [ "$why" != late ] || return
  export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo
  if check "$name, over tcp" 0 "*proved *mpi)*" "${launch[@]}"; then
    notes+=("Open MPI's shared memory failed; its messages go over tcp.")
  else
    broken[mpi]="Open MPI does not start ranks here"
  fi
}

ground() {
  moongrid=$dir/moongrid
  [ -z "$standin_dir" ] || mark="$standin_name: "
  printf '%s%s\n' "$mark" "record: $record"
  running="what this machine is, since second $SECONDS"
  write_record
  surroundings
  libraries
  judge_surroundings
  [ ! -f "$dir/stacks.so" ] || with_stacks=$dir/stacks.so
  step copy "probe gpu" "one process: memory, there and back" 0 "*every byte came back*" "$dir/probe" copy
  hold_gpu
  step one "copy shm" "one process: a communicator of one rank" 0 "*made, used, destroyed*" "$dir/probe" one
  [ -z "$alone" ] || return
  if [ "${about[devices]:-1}" -ge 2 ]; then unset 'broken[shared]'; fi
  if step pair "one lo shared plain" "2 ranks, one plain communicator, no MPI" 0 "*all ranks ended well*" \
    env NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET "$dir/plain" pair 2; then
    path_of_pair "$found_text"
  fi
  mpi_starts 4
  broken[ranks]=${broken[pair]:-${broken[mpi]:-}}
}
