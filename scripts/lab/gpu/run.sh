#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh [-o OUT] [--part PIECE] [--ranks 1] [--standin FOLDER]: test the nccl backend on the GPUs of this
# machine, several ranks on one GPU if there are fewer GPUs than ranks. It is in a folder that
# `scripts/gpu-test` made, and needs bash, coreutils, a driver, libnccl.so.2 and the CUDA runtime.
#
#   -o OUT       the folder for the record (DATE-PIECE.md) and the logs; default: record/ of this folder
#   --part P     run one piece, which ends within ten minutes (may be repeated); by default all, in this order:
#                smoke run memory create refuse eight faults
#   --ranks 1    only checks that need one rank: communicators of one rank, NCCL's own calls
#   --standin F a rehearsal with libraries in F that imitate NCCL; every line of the record says so
#
# The record is replaced after every check. The last line is "N passed, M failed, K left out".
#   GPU_SECONDS=45  of one check at most     GPU_TOTAL=540  of all: what comes later is left out
#   GPU_TURNS=2     of each way of `create`
# shellcheck source-path=SCRIPTDIR
set -u
export LC_ALL=C
dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=find.sh
. "$dir/find.sh"
# shellcheck source=check.sh
. "$dir/check.sh"
# shellcheck source=why.sh
. "$dir/why.sh"
# shellcheck source=ladder.sh
. "$dir/ladder.sh"
# shellcheck source=pieces.sh
. "$dir/pieces.sh"
# shellcheck source=report.sh
. "$dir/report.sh"

# --------------------------------------------------------------------- options
wrong() {
  echo "gpu-test: $1" >&2
  exit 2
}

all_pieces=(smoke run memory create refuse eight faults)
out=$dir/record pieces=() alone="" standin_dir=""
while [ $# -gt 0 ]; do
  case $1 in
    -o | --part | --ranks | --standin) [ $# -ge 2 ] || wrong "$1 needs a value; --help says which" ;;
  esac
  case $1 in
    -o) out=$2 && shift ;;
    --part)
      [[ " ${all_pieces[*]} " == *" $2 "* ]] || wrong "no piece '$2'; the pieces are ${all_pieces[*]}"
      pieces+=("$2") && shift
      ;;
    --ranks)
      [ "$2" = 1 ] || wrong "--ranks takes 1, not '$2': the pieces choose 2, 4 and 8 themselves"
      alone=1 && shift
      ;;
    --standin)
      [ -f "$2/libnccl.so.2" ] || wrong "no stand-in libraries in '$2'; tests/nccl/standin/build.sh makes them"
      standin_dir=$(cd "$2" && pwd) && shift
      ;;
    --help)
      while IFS= read -r line; do
        case $line in "#!"* | "# SPDX"* | "# shellcheck"*) ;; "#"*) echo "${line#"#"}" ;; *) break ;; esac
      done < "$dir/run.sh"
      exit 0
      ;;
    *) wrong "unknown option '$1'; --help tells all" ;;
  esac
  shift
done
[ -z "$alone" ] || [ ${#pieces[@]} -eq 0 ] || wrong "--ranks 1 is a piece of its own: no --part with it"
limit=${GPU_SECONDS:-45} total=${GPU_TOTAL:-540} turns=${GPU_TURNS:-2}
for word in "$limit" "$total" "$turns"; do
  [[ $word =~ ^[1-9][0-9]{0,5}$ ]] || wrong "GPU_SECONDS, GPU_TOTAL and GPU_TURNS are whole numbers from 1, not '$word'"
done

# ---------------------------------------------------------------------- places
began=$(date -u '+%Y-%m-%d %H:%M UTC')
mkdir -p "$out" || wrong "the folder '$out' cannot be made"
out=$(cd "$out" && pwd)
piece=${alone:+one}
[ -n "$piece" ] || piece=$(IFS=-; echo "${pieces[*]:-all}")
[ ${#pieces[@]} -gt 0 ] || pieces=("${all_pieces[@]}")
[ -z "$alone" ] || pieces=(one)
base=$out/${standin_dir:+rehearsal-}${began%% *}-$piece
record=$base.md
for ((n = 2; ; n++)); do
  [ -e "$record" ] || break # an older record stays
  record=$base-$n.md
done
logs=${record%.md}.log log=${record%.md}.now.log
work=$(mktemp -d) || exit 1
mkdir "$work/libraries" "$work/mpi"
: > "$logs"
if [ -n "$standin_dir" ]; then # one GPU; faults count; a tag marks our objects in shared memory
  export STANDIN_STRICT=1 STANDIN_DEVICES=${STANDIN_DEVICES:-1} STANDIN_TAG=${STANDIN_TAG:-g$$}
fi
trap 'interrupted TERM' TERM
trap 'interrupted INT' INT
trap 'interrupted HUP' HUP

# ------------------------------------------------------------------------- run
# A copied folder may be read-only, and its programs not executable.
chmod +x "$dir"/{moongrid,probe,plain,measure,recover} "$dir"/usr/bin/* 2> /dev/null
if [ -f "$dir/probe" ] && [ ! -x "$dir/probe" ]; then
  cp -r "$dir" "$work/copy" && dir=$work/copy
  chmod +x "$dir"/{moongrid,probe,plain,measure,recover} "$dir"/usr/bin/* 2> /dev/null
fi
files=$(ulimit -Hn) # no more than this: a launcher closes every number up to it
if [ "$files" = unlimited ] || [ "$files" -gt 65536 ]; then files=65536; fi
ulimit -Sn "$files"
ground
for part in "${pieces[@]}"; do "piece_$part"; done
finish
[ $failed -eq 0 ]
