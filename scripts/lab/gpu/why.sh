# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by run.sh, which shares its variables
#
# why.sh - diagnose the first hang or failure while the machine is available: run the check again with NCCL's full
# log and the stacks of all threads, then with each setting that is known to help.

looked="" # the check that was diagnosed; one is enough, to leave time for the others
variant_rows=()
variants=(NCCL_CUMEM_ENABLE=0 NCCL_CUMEM_HOST_ENABLE=0 NCCL_RUNTIME_CONNECT=0 NCCL_PROTO=Simple NCCL_ALGO=Ring
  NCCL_RAS_ENABLE=0)

# look_why CHECK...: true if a setting makes the check pass; it then stays set
look_why() {
  local name=$1 want=$2 pattern=$3 setting rc start short=$((limit < 20 ? limit : 20)) mended="" text
  [ -z "$looked" ] || return 1
  looked=$name
  shift 3
  [ $((total - SECONDS)) -gt $((short + 10)) ] || return 1
  running="$name, once more with NCCL_DEBUG=INFO, since second $SECONDS"
  write_record
  once_more "$short" "$name" "$@"
  # its own switch for ranks that share a GPU, instead of NCCL_HOSTID; moongrid does not know it
  if [ "${about[nccl_code]:-0}" -ge 23003 ] && [[ "$*" == */plain* ]]; then
    variants+=(NCCL_MULTI_RANK_GPU_ENABLE=1)
  fi
  for setting in "${variants[@]}"; do
    if [ $((total - SECONDS)) -lt $((short + 10)) ]; then
      variant_rows+=("| $setting | not tried: the $total seconds are over | - |")
      continue
    fi
    running="$name with $setting, since second $SECONDS"
    start=$SECONDS
    write_record
    limited "$short" "$log" env "$setting" "$@"
    rc=$?
    text=$(tr -d '\0' < "$log")
    printf '\n===== %s with %s: exit code %s\n%s\n' "$name" "$setting" $rc "$text" >> "$logs"
    # shellcheck disable=SC2053 # it is a pattern
    if [ $rc -eq "$want" ] && [[ $text == $pattern ]]; then
      variant_rows+=("| $setting | **passes** | $((SECONDS - start)) |")
      mended=${mended:-$setting}
    elif [ $rc -eq 124 ] || [ $rc -eq 137 ]; then
      variant_rows+=("| $setting | not done after $short seconds | $((SECONDS - start)) |")
    else
      variant_rows+=("| $setting | exit code $rc | $((SECONDS - start)) |")
    fi
    printf '%s      with %-61s %4d s: exit code %s\n' "$mark" "$setting" $((SECONDS - start)) $rc
  done
  running=""
  write_record
  [ -n "$mended" ] || return 1
  export "${mended?}"
  notes+=("\`$mended\` mends '$name', and is set in all that comes after it.")
}

# once_more SECONDS NAME COMMAND...: NCCL's own log of each process, and stacks shortly before the end
once_more() {
  local most=$1 name=$2 pid file
  shift 2
  rm -f "$work"/nccl.*
  env NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,PROXY NCCL_DEBUG_FILE="$work/nccl.%p" \
    ${with_stacks:+LD_PRELOAD="$with_stacks"} timeout -k 5 "$most" "$@" > "$log" 2>&1 < /dev/null &
  child=$!
  for ((pid = 0; pid < (most - 4) * 5; pid++)); do
    kill -0 "$child" 2> /dev/null || break
    sleep 0.2
  done
  {
    printf '\n===== %s: once more with NCCL_DEBUG=INFO\n$ %s\n' "$name" "$*"
    for pid in $(started); do
      if [ "$pid" != "$holder" ] && grep -q libnccl "/proc/$pid/maps" 2> /dev/null; then threads_of "$pid"; fi
    done
  } >> "$logs"
  wait "$child"
  child=""
  end_started
  {
    cat "$log"
    for file in "$work"/nccl.*; do
      [ -f "$file" ] || continue
      printf '\n----- NCCL of process %s\n' "${file##*.}"
      tail -c 200000 "$file"
    done
  } >> "$logs"
}

# threads_of PID: what each waits for, as the kernel has it; and its stack, by stacks.so, in the command's output
threads_of() {
  local task
  printf '\n----- threads of process %s: %s\n' "$1" "$(tr '\0' ' ' < "/proc/$1/cmdline")"
  for task in "/proc/$1/task"/*; do
    printf '%s  %-20s %s  %s  %s\n' "${task##*/}" "$(cat "$task/comm" 2> /dev/null)" \
      "$(sed -n 's/^State:\t//p' "$task/status" 2> /dev/null)" "$(cat "$task/wchan" 2> /dev/null)" \
      "$(cut -d ' ' -f 1 "$task/syscall" 2> /dev/null)"
  done
  [ -z "$with_stacks" ] || kill -USR2 "$1" 2> /dev/null
  sleep 0.5
}
