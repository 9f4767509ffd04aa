# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # sourced by run.sh, which shares its variables
#
# pieces.sh - the checks after those of ladder.sh, in pieces that each end within ten minutes. The first checks of moongrid
# itself have 2, 4 and 8 ranks; each needs that the check before has passed.

few=(env NCCL_MAX_CTAS=2)

# recipe RANKS NAME PATTERN RECIPE WORD...: create and prove every communicator of a recipe
recipe() {
  local n=$1 name=$2 pattern=$3 below=ranks
  shift 3
  [ "$n" -le 2 ] || below=grid$((n / 2))
  share "$n"
  ranks "$n" "$moongrid" run "$@" --backend nccl --timeout 30 "${shared[@]}"
  step "grid$n" "$below nccl ranks" "$name, $n ranks" 0 "$pattern" "${few[@]}" "${launch[@]}"
}

moe() { # RANKS SIZE...
  recipe "$1" "a mixture of experts" "*proved *on all $1 ranks*, nccl)*" "$dir/examples/moe.lua" "${@:2}"
}

# ------------------------------------------------------------------------ smoke

piece_smoke() {
  broken[nccl]=${broken[libmoongrid_nccl]:-}
  check_doctor
  moe 2 tp=2 ep=2
  step - "one" "NCCL's own calls on communicators of one rank" 0 "*every call did what it says*" "$dir/probe" calls
  memory_alone
  step - "pair" "4 ranks, one plain communicator, no MPI" 0 "*all ranks ended well*" "$dir/plain" pair 4
}

memory_alone() {
  step - "one" "memory of a communicator of one rank" 0 "*memory is what its host code takes*" "$dir/probe" memory
}

check_doctor() {
  step - "moongrid gpu" "moongrid doctor" 0 "*nccl       yes *" "$moongrid" doctor
}

# --ranks 1: nothing here needs a second process on the GPU.
piece_one() {
  broken[nccl]=${broken[libmoongrid_nccl]:-}
  step - "one" "NCCL's own calls on communicators of one rank" 0 "*every call did what it says*" "$dir/probe" calls
  memory_alone
  check_doctor
  mpi_starts 1
  ranks 1 "$moongrid" run "$dir/examples/moe.lua" --backend nccl --timeout 30
  step - "one nccl mpi" "moongrid with one rank" 0 "*proved *nccl)*" "${launch[@]}"
}

# ----------------------------------------------------------------- run and eight

piece_run() {
  local config='nccl_communicator_config={"tp":{"min_ctas":2,"max_ctas":4},"dp":{"max_ctas":1,"cga_cluster_size":1}}'
  moe 4 tp=2 pp=2 ep=2
  local few=() # NCCL_MAX_CTAS would override these fields
  recipe 4 "megatron with options of NCCL" "*nccl{max_ctas=4 min_ctas=2}*proved *, nccl)*" megatron tp=2 pp=2 \
    "$config" high_priority_stream_groups=pp
  recipe 4 "megatron with a blocking family" "*nccl{blocking=1}*proved *, nccl)*" megatron tp=2 pp=2 \
    'nccl_communicator_config={"tp":{"blocking":1}}'
  carried
  furnished
  moved
  stepped
}

# The same without MPI: ranks reach each other over PMIx.
carried() {
  share 2
  ranks 2 "$moongrid" run "$dir/examples/moe.lua" tp=2 --backend nccl --carrier pmix --timeout 30 "${shared[@]}"
  step - "ranks nccl libmoongrid_pmix" "2 ranks over PMIx, without MPI" 0 "*proved *on all 2 ranks*, nccl)*" "${launch[@]}"
}

# Windows and device communicators of families. On a GPU that ranks share NCCL may lack symmetric memory, and then refuses
# them; the record has its message.
furnished() {
  local looked="a refusal has no variants"
  share 2
  ranks 2 "$moongrid" run "$dir/examples/furnish.lua" --backend nccl --timeout 30 "${shared[@]}"
  step - "ranks nccl" "windows, a device communicator, a parent: 2 ranks" 0 \
    "*@(proved *on all 2 ranks|nccl: ncclCommWindowRegister|nccl: ncclDevCommCreate)*ended with [04]*" \
    bash -c '"$@"; echo "ended with $?"' furnish "${launch[@]}"
}

# Every element of every tensor that arrives is checked; parts are in GPU memory.
moved() {
  share 4
  ranks 4 "$moongrid" run "$dir/examples/weights.lua" tp=2 vs tp=4 --move --backend nccl --timeout 30 "${shared[@]}"
  step - "grid4 nccl" "weights to another layout, 4 ranks" 0 "*proved*" "${few[@]}" "${launch[@]}"
}

# A training step: all-reduces of tp, and gradients and weights of dp on a stream of their own.
stepped() {
  share 4
  ranks 4 "$moongrid" run megatron tp=2 layers=4 hidden=512 global_batch=8 zero=1 overlap=true --steps 5 --backend nccl --timeout 30 \
    "${shared[@]}"
  step - "grid4 nccl" "a training step, five times, 4 ranks" 0 "*step *times on 4 ranks*" "${few[@]}" "${launch[@]}"
}

piece_eight() {
  moe 8 tp=2 pp=2 ep=2
  recipe 8 "megatron" "*proved *on all 8 ranks*, nccl)*" megatron tp=2 cp=2 pp=2 ep=2 etp=2
  memory 8 "min_ctas=2 max_ctas=2"
  create 8
}

# ----------------------------------------------------------------------- refuse

piece_refuse() {
  local looked="a refusal has no variants"
  ranks 2 "$moongrid" run "$dir/examples/moe.lua" tp=2 --backend nccl --timeout 30 --devices 0,0
  step - "ranks nccl" "2 ranks on one GPU without --share-gpu" 4 "*--share-gpu*" "${launch[@]}"
  share 2
  ranks 2 "$moongrid" run "$dir/examples/moe.lua" tp=2 --backend nccl --timeout 30 "${shared[@]}" --devices 63,63
  step - "ranks nccl" "a GPU that is not there" 2 "*is to use GPU 63*" "${launch[@]}"
  ranks 2 "$moongrid" run "$dir/examples/moe.lua" tp=2 --backend nccl --timeout 30 "${shared[@]}" --gpu-memory 1
  step - "ranks nccl" "a plan above --gpu-memory" 3 "*the budget is 1 MiB*" "${launch[@]}"
}

# ------------------------------------------------------------- memory and creation

# NCCL may choose few channels; min_ctas forces the number that the prediction uses, so that the formula
# itself is compared with the GPU. One launch for all options.
piece_memory() {
  memory 2 max_ctas=1 "min_ctas=2 max_ctas=2" "min_ctas=4 max_ctas=4" "min_ctas=16 max_ctas=16" max_ctas=16 ""
}

memory() { # RANKS OPTIONS...
  local n=$1 limit=$((limit * 3 / 2))
  shift
  ranks "$n" "$dir/measure" memory "$@"
  step - "ranks nccl measure" "memory of a communicator: $n ranks" 0 "*predicted_first_use*" "${launch[@]}"
  [ -z "$found_text" ] || report_memory "$n" <<< "$found_text"
  found_text=""
}

piece_create() {
  create 2
  create 4
}

create() { # RANKS: one launch for all ways and turns; what it has measured counts even if it hangs later
  local n=$1 limit=$((limit * 2))
  ranks "$n" "$dir/measure" create "$turns"
  step - "ranks nccl measure" "creation, five ways: $n ranks" 0 "*split_all.again*" "${few[@]}" "${launch[@]}"
  [ -z "$found_text" ] || report_create "$n" <<< "$found_text"
  found_text=""
}

# ----------------------------------------------------------------------- faults

# Faults on purpose, to learn what the real NCCL does: first by NCCL's own calls, then by moongrid, whose
# checks test what moongrid.h documents.
piece_faults() {
  local lenient=yes survive=(--mca orte_enable_recovery 1)
  local dead=(env) # a stand-in ends its waits itself: soon enough
  [ -z "$standin_dir" ] || dead=(env STANDIN_STRICT=0 STANDIN_DEADLINE=4)
  step - "pair" "what a call costs, blocking and not: 2 ranks" 0 "*all ranks ended well*" "$dir/plain" cost 2
  step - "pair" "20 communicators, one after the other: 2 ranks" 0 "*all ranks ended well*" "$dir/plain" cycles 2 20
  step - "pair" "a rank never joins a creation, which is aborted" 0 "*all ranks ended well*" "$dir/plain" missing 2
  step - "pair" "kernels wait for a rank; one group of aborts" 0 "*all ranks ended well*" "$dir/plain" abort 2
  step - "pair" "kill -9 of a rank after use: an error, then abort" 0 "*all ranks ended well*" "${dead[@]}" "$dir/plain" killed 2
  broken[nccl]=${broken[libmoongrid_nccl]:-}
  ranks 2 "$dir/recover" cycles 20
  step - "ranks nccl recover" "moongrid: 20 states, one after the other: 2 ranks" 0 "*done*" "${launch[@]}"
  ranks 2 "${survive[@]}" "$dir/recover" late
  step - "ranks nccl recover" "moongrid: a rank that does not come is named" 0 "*named, and ended*" "${dead[@]}" "${launch[@]}"
  ranks 4 "${survive[@]}" "$dir/recover" lost
  step - "ranks nccl recover" "moongrid: a rank stays away: revoke, shrink, go on" 0 "*went on without it*" "${dead[@]}" "${launch[@]}"
  ranks 4 "${survive[@]}" "$dir/recover" remade
  step - "ranks nccl recover" "moongrid: a rank stays away: recover by new ids, and by shrink" 0 "*went on without it*" "${dead[@]}" "${launch[@]}"
  ranks 4 "${survive[@]}" "$dir/recover" killed
  step - "ranks nccl recover" "moongrid: kill -9 of a rank: revoke, shrink, go on" 0 "*went on without it*" "${dead[@]}" "${launch[@]}"
}
