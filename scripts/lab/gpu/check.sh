# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2004,SC2034,SC2154 # sourced by run.sh, which shares its variables
#
# check.sh - run one command with a limit, judge it, and rewrite the record: before the command, which may be the
# last thing that this machine does, and after it. So the record is complete whatever ends this script.

passed=0 failed=0 left_out=0
rows=() failures=() numbers=() warnings=()
running="" child="" holder=""
export GPU_TEST_RUN=$$-${RANDOM} # in the environment of each process that is started here, and of no other

# started: the processes that this script has started, directly or indirectly
started() {
  local place
  for place in /proc/[0-9]*; do
    if grep -qzxF "GPU_TEST_RUN=$GPU_TEST_RUN" "$place/environ" 2> /dev/null; then
      [ "${place#/proc/}" = $$ ] || echo "${place#/proc/}"
    fi
  done
}

# limited SECONDS LOG COMMAND...: run COMMAND and return its exit code; 124 or 137 if it did not end in time
limited() {
  local most=$1 file=$2 rc
  shift 2
  timeout -k 5 "$most" "$@" > "$file" 2>&1 < /dev/null &
  child=$!
  wait "$child"
  rc=$?
  child=""
  case $rc in 124 | 137) end_started ;; esac # ranks that outlived their launcher
  return $rc
}

end_started() { # end all of them except `probe hold`, which holds the GPU
  local pid
  for pid in $(started); do
    [ "$pid" = "$holder" ] || kill -KILL "$pid" 2> /dev/null
  done
}

# check NAME EXIT-CODE PATTERN COMMAND...: run COMMAND, whose whole output must match PATTERN, a pattern of the shell. Sets
# $why to what was wrong.
why="" found_text=""
check() {
  local name=$1 want=$2 pattern=$3 rc bad start=$SECONDS most=$limit left=$((total - SECONDS))
  shift 3
  why="" found_text=""
  [ $left -ge "$most" ] || most=$left
  if [ "$most" -lt 5 ]; then
    leave_out "$name" "the $total seconds are over" "$@"
    why=late
    return 1
  fi
  running="$name, since second $SECONDS"
  write_record
  limited "$most" "$log" "$@"
  rc=$?
  running=""
  found_text=$(tr -d '\0' < "$log")
  # shellcheck disable=SC2053 # it is a pattern
  if [ $rc -eq 124 ] || [ $rc -eq 137 ]; then
    why="not done after $most seconds"
  elif [ $rc -ne "$want" ]; then
    why="exit code $rc, not $want"
  elif [[ $found_text != $pattern ]]; then
    why="its output does not match $pattern"
  fi
  for bad in "not allowed in the same group" "never destroyed" "would hang here" "would fault here"; do
    [ -n "${lenient:-}" ] || [[ $found_text != *"$bad"* ]] || why=${why:-"its output has '$bad'"}
  done
  keep_warnings <<< "$found_text"
  keep_numbers "$name" <<< "$found_text"
  verdict "$name" "$why" $((SECONDS - start)) "$@"
}

shown() { # COMMAND...: print the command without quotes and the folder of the package
  local line="${*@Q}"
  line=${line//"$dir/usr/bin/"/}
  line=${line//"$dir/"/}
  line=${line//"'"/}
  echo "${line//|/\\|}"
}

# verdict NAME WHY-NOT SECONDS COMMAND...: keep the log, rewrite the record, then print the line of the check
verdict() {
  local name=$1 why=$2 seconds=$3 tail=""
  shift 3
  rows+=("| ${why:+**FAIL**: }${why:-pass} | $name | $seconds | \`$(shown "$@")\` |")
  {
    printf '\n===== %s: %s, %s s\n$ %s\n' "$name" "${why:-pass}" "$seconds" "$*"
    cat "$log" 2> /dev/null
  } >> "$logs"
  if [ -z "$why" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    tail=$(tail -n 25 "$log" 2> /dev/null | tr -d '\0')
    failures+=("$name: $why"$'\n\n```\n'"$tail"$'\n```')
  fi
  : > "$log"
  write_record
  if [ -z "$why" ]; then
    printf '%spass  %-66s %4d s\n' "$mark" "$name" "$seconds"
    return 0
  fi
  printf '%sFAIL  %-66s %4d s: %s\n' "$mark" "$name" "$seconds" "$why"
  [ -z "$tail" ] || printf '%s\n' "$tail"
  return 1
}

leave_out() { # NAME CAUSE COMMAND...
  left_out=$((left_out + 1))
  rows+=("| left out: $2 | $1 | - | \`$(shown "${@:3}")\` |")
  write_record
  printf '%sleft  %-66s         %s\n' "$mark" "$1" "$2"
}

# step NAME NEEDS CHECK...: run a check that needs the steps NEEDS. If it fails, and passes in no variant of the environment,
# the steps that need NAME are left out. NAME "-": no step needs this step.
step() {
  local step=$1 needs=$2 need
  shift 2
  for need in $needs; do
    [ -n "${broken[$need]:-}" ] || continue
    leave_out "$1" "${broken[$need]}" "${@:4}"
    [ "$step" = - ] || broken[$step]=${broken[$need]}
    return 1
  done
  check "$@" && return 0
  [ "$why" != late ] || return 1
  look_why "$@" && return 1 # go on with the environment that makes it pass
  [ "$step" = - ] || broken[$step]="after the failure of: $1"
  return 1
}

# ------------------------------------------------------------ what the logs have

keep_warnings() { # keep each warning of NCCL once, without numbers that differ between processes
  local line seen
  while IFS= read -r line; do
    [[ $line == *"NCCL WARN"* ]] || continue
    line="NCCL WARN${line#*NCCL WARN}"
    for seen in "${warnings[@]}"; do [ "$seen" != "$line" ] || continue 2; done
    [ ${#warnings[@]} -ge 30 ] || warnings+=("$line")
  done
}

keep_numbers() { # CHECK: its lines "KEY<tab>NUMBER" that no table has
  local key value
  while IFS=$'\t' read -r key value; do
    if [[ $key == *" "* && $value =~ ^-?[0-9.]+$ ]]; then numbers+=("| $1 | $key | $value |"); fi
  done
}

# ------------------------------------------------------------------ the end

# On a signal: first the record, since there may be little time; then all that runs.
interrupted() { # SIGNAL
  trap '' TERM INT HUP
  local name=${running%, since*}
  running=""
  log=${log:-/dev/null}
  verdict "${name:-between two checks}" "interrupted (SIG$1)" 0 "${name:-gpu-test}" > /dev/null
  [ -z "$child" ] || kill -TERM "$child" 2> /dev/null
  for ((n = 0; n < 20; n++)); do
    [ -n "$(started)" ] || break
    [ $n -ne 5 ] || end_started
    [ -z "$holder" ] || kill -KILL "$holder" 2> /dev/null
    sleep 0.2
  done
  finish
  exit 1
}

finish() {
  trap '' TERM INT HUP
  running=""
  [ -z "$holder" ] || kill -KILL "$holder" 2> /dev/null
  [ -z "$holder" ] || wait "$holder" 2> /dev/null
  holder=""
  end_started
  done_at=$SECONDS
  write_record
  [ -s "$log" ] || rm -f "$log"
  rm -rf "$work"
  [ -z "$standin_dir" ] || rm -f /dev/shm/mg-standin-"$STANDIN_TAG"-*
  echo
  cat "$record"
  echo
  echo "$kind: $record"
  echo "$passed passed, $failed failed, $left_out left out"
}
