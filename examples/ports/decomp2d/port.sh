#!/bin/sh
# SPDX-License-Identifier: MIT
#
# port.sh SOURCES: change a folder of 2DECOMP&FFT's sources so that its communicators are those of decomp.lua. Two calls
# replace the code that makes and frees them, and two files are added. INCLUDE: the folder of moongrid.f90.
#
#   INCLUDE=$PREFIX/include examples/ports/decomp2d/port.sh 2decomp-fft && cmake -S 2decomp-fft -B build -DBUILD_TESTING=ON \
#     -DCMAKE_Fortran_STANDARD_LIBRARIES="-lmoongrid_mpi -lmoongrid"
#   DECOMP_2D_RECIPE=examples/ports/decomp2d/decomp.lua mpirun -n 4 build/bin/halo_test
set -eu
here=$(dirname "$0") src=$1/src
cp "$INCLUDE/moongrid.f90" "$here/moongrid_grid.f90" "$src/"
sed -i 's/files_decomp factor.f90/files_decomp moongrid.f90 moongrid_grid.f90 factor.f90/' "$src/CMakeLists.txt"
echo 'set_source_files_properties(moongrid.f90 moongrid_grid.f90 PROPERTIES COMPILE_OPTIONS "-std=f2018")' >> "$src/CMakeLists.txt"
sed -i '0,/^   use decomp_2d_mpi$/s//&\n   use moongrid_grid/' "$src/decomp_2d.f90"
sed -i -e '/^     if (p_row <= 0 /,/"MPI_CART_SUB")$/{
  /^     if (p_row <= 0 /i\
     call grid_open(decomp_2d_comm, p_row, p_col, [periodic_x, periodic_y, periodic_z], dims, coord, \&\
                    DECOMP_2D_COMM_CART_X, DECOMP_2D_COMM_CART_Y, DECOMP_2D_COMM_CART_Z, \&\
                    DECOMP_2D_COMM_COL, DECOMP_2D_COMM_ROW)
  d
}' -e '/call MPI_CART_SUB/,/"MPI_CART_SUB")$/d' \
  -e '/decomp_2d_mpi_comm_free(DECOMP_2D_COMM_CART_Z)/i\     call grid_close()' -e '/decomp_2d_mpi_comm_free(DECOMP_2D_COMM/d' \
  -e '/^  subroutine best_2d_grid/,/^  end subroutine best_2d_grid/d' "$src/decomp_2d_init_fin.f90"
