#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# tests/fortran.sh: moongrid.f90 and examples/pools.F90 with this machine's compiler of Fortran and the MPI of the build, by
# mpi_f08 and by mpif.h: structs as large as those of C, groups and sums on 8 ranks, refusals, handles of another MPI.
# MPIFC: the compiler (mpifort). TAP.
set -u
cd "$(dirname "$0")/.." || exit 1
fc=${MPIFC:-mpifort}
command -v "${fc%% *}" > /dev/null || { echo "1..0 # SKIP no $fc" && exit; }
[ -e build/libmoongrid_mpi.so ] || { echo "1..0 # SKIP no MPI in this build" && exit; }
make -s fortran || exit 1
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
n=0

# ok WHAT STATUS [FILE]: a line of TAP; on failure what FILE has
ok() {
  n=$((n + 1))
  if [ "$2" = 0 ]; then echo "ok $n - $1"; else
    echo "not ok $n - $1"
    [ -z "${3:-}" ] || sed 's/^/# /' "$3"
  fi
}

# built NAME FLAGS FILE: compile FILE with the module
built() {
  # shellcheck disable=SC2086
  $fc -O1 -std=f2018 $2 -J "$here" -o "$here/$1" build/fortran/moongrid.f90 "$3" -Lbuild -Wl,-rpath,"$PWD/build" -lmoongrid_mpi \
    -lmoongrid > "$here/said" 2>&1
}

# run RANKS PROGRAM ARGUMENTS...: its exit status; what it said is in $here/said
run() {
  LAUNCH_SECONDS=60 scripts/launch "$@" > "$here/said" 2>&1
}

# every struct of the module with an INIT macro has the size that C gives it
{
  echo 'program sizes'
  echo 'use moongrid'
  sed -n 's/^  type, bind(c) :: \(mgrid_[a-z_]*\)_t$/\1/p' build/fortran/moongrid.f90 | while read -r name; do
    echo "block; type($name"'_t) :: x; write (*, "(a, i0)") "'"$name"' ", c_sizeof(x); end block'
  done
  echo 'end program'
} > "$here/sizes.f90"
{
  echo '#include <stdio.h>'
  echo '#include "moongrid.h"'
  echo 'int main(void) {'
  sed -n 's/^  type, bind(c) :: \(mgrid_[a-z_]*\)_t$/\1/p' build/fortran/moongrid.f90 | while read -r name; do
    echo "printf(\"$name %zu\\n\", sizeof($name));"
  done
  echo 'return 0; }'
} > "$here/sizes.c"
if built sizes "" "$here/sizes.f90" && cc -Isrc -o "$here/sizes_c" "$here/sizes.c"; then
  "$here/sizes" > "$here/fortran.txt" && "$here/sizes_c" > "$here/c.txt"
  diff "$here/c.txt" "$here/fortran.txt" > "$here/said" && [ "$(wc -l < "$here/c.txt")" -gt 30 ]
  ok "structs are as large as in C" $? "$here/said"
  sed -n 's/^.*:: size = \([0-9]*\)_c_size_t$/\1/p' build/fortran/moongrid.f90 | sort > "$here/sizes.txt"
  [ -s "$here/sizes.txt" ] && ! cut -d' ' -f2 "$here/c.txt" | sort | comm -13 - <(sort -u "$here/sizes.txt") | grep .
  ok "and say so" $?
else
  ok "the module compiles" 1 "$here/said"
fi

for way in "" -DMPIF; do
  what=${way:+mpif.h} what=${what:-mpi_f08}
  built pools "$way" examples/pools.F90
  ok "$what: the example compiles" $? "$here/said"
  run 8 "$here/pools" examples/pools.lua nk=2 nb=2 && grep -q "^pools of 4, 2 of them: sum 36.0$" "$here/said"
  ok "$what: pools of 8 ranks" $? "$here/said"
  run 8 "$here/pools" examples/pools.lua ni=4 nk=2 && grep -q "^pools of 1, 2 of them: sum 3.0$" "$here/said"
  ok "$what: pools of one rank" $? "$here/said"
  ! run 8 "$here/pools" picotron && grep -q "unknown family 'intra_pool'; known: tp" "$here/said"
  ok "$what: a recipe without these families" $? "$here/said"
  ! run 8 "$here/pools" examples/pools.lua nk=3 && grep -q "pool 3 does not divide the 8 ranks" "$here/said"
  ok "$what: sizes that do not fit" $? "$here/said"
done

# numbers that are not communicators, such as handles of another MPI library
cat > "$here/handles.f90" << 'END'
program handles
  use moongrid
  implicit none
  include 'mpif.h'
  integer :: i, ierr, bad(5) = [-5, 77777, 201326592, 123456789, 268435457]
  type(mgrid_error_t) :: err
  type(c_ptr) :: backend
  call MPI_Init(ierr)
  do i = 1, size(bad)
    err = mgrid_error_t()
    backend = mgrid_mpi_backend_f(bad(i), err=err)
    if (bad(i) == MPI_COMM_WORLD .or. bad(i) == MPI_COMM_SELF) cycle
    if (c_associated(backend) .or. err%status /= MGRID_USAGE) stop 4
    if (index(mgrid_message(err), "is not a communicator of") == 0 .and. index(mgrid_message(err), "mpi: ") /= 1) stop 5
    if (i == 2) write (*, '(a)') mgrid_message(err)
  end do
  err = mgrid_error_t()
  backend = mgrid_mpi_backend_f(MPI_COMM_NULL, err=err)
  if (c_associated(backend) .or. err%status /= MGRID_USAGE) stop 6
  write (*, '(a)') mgrid_message(err)
  call MPI_Finalize(ierr)
end program
END
built handles "" "$here/handles.f90"
ok "handles compile" $? "$here/said"
run 1 "$here/handles" && grep -q "^mpi: 77777 is not a communicator of .*; was the program built with another MPI library?$" "$here/said"
ok "numbers that are not communicators" $? "$here/said"

# before MPI_Init and after MPI_Finalize: an error, where MPI would end the process
cat > "$here/times.f90" << 'END'
program times
  use moongrid
  implicit none
  include 'mpif.h'
  type(mgrid_error_t) :: err
  type(c_ptr) :: state, group
  integer :: ierr
  state = mgrid_open_comm(MPI_COMM_WORLD, "examples/pools.lua", err=err)
  if (c_associated(state) .or. err%status /= MGRID_USAGE) stop 4
  write (*, '(a)') mgrid_message(err)
  call MPI_Init(ierr)
  call mgrid_error_clear(err)
  state = mgrid_open_comm(MPI_COMM_WORLD, "examples/pools.lua", err=err)
  group = mgrid_group_of(state, "intra_pool", err)
  if (err%status /= 0) stop 5
  call MPI_Finalize(ierr)
  if (mgrid_comm(group) /= MPI_COMM_NULL) stop 6
  call mgrid_state_free(state)
  state = mgrid_open_comm(MPI_COMM_WORLD, "examples/pools.lua", err=err)
  if (c_associated(state) .or. err%status /= MGRID_USAGE) stop 7
  write (*, '(a)') mgrid_message(err)
end program
END
built times "" "$here/times.f90"
ok "times compile" $? "$here/said"
run 2 "$here/times" && grep -q "^mpi: MPI is not initialized yet" "$here/said" && grep -q "^mpi: MPI is finalized already" "$here/said"
ok "before MPI_Init, and after MPI_Finalize" $? "$here/said"
echo "1..$n"
