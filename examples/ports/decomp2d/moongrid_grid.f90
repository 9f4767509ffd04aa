! SPDX-License-Identifier: MIT
!
! moongrid_grid.f90 - the communicators of 2DECOMP&FFT, from decomp.lua or the recipe that DECOMP_2D_RECIPE names.
! port.sh puts it beside the library's sources, and its two calls into decomp_2d_init_fin.f90.
module moongrid_grid
  use moongrid
  implicit none
  private
  public :: grid_open, grid_close
  type(c_ptr), save :: state = c_null_ptr

contains

  ! ---- the port
  ! Make the communicators of a grid of p_row x p_col ranks; if one is 0, the recipe chooses both. Collective over comm.
  ! If the recipe refuses, every rank has its message, and the job ends, as after any error of this library.
  subroutine grid_open(comm, p_row, p_col, periodic, dims, coord, cart_x, cart_y, cart_z, col, row)
    integer, intent(in)    :: comm
    integer, intent(inout) :: p_row, p_col
    logical, intent(in)    :: periodic(3)
    integer, intent(out)   :: dims(2), coord(2), cart_x, cart_y, cart_z, col, row
    type(mgrid_error_t)    :: err
    character(len=24)      :: args(5)
    character(len=256)     :: recipe
    type(c_ptr)            :: across(2)
    integer                :: n, ierr
    write (args, '(a, i0)') "periodic_x=", merge(1, 0, periodic(1)), "periodic_y=", merge(1, 0, periodic(2)), &
      "periodic_z=", merge(1, 0, periodic(3))
    write (args(4:), '(a, i0)') "p_row=", p_row, "p_col=", p_col
    n = merge(5, 3, p_row > 0 .and. p_col > 0)
    call get_environment_variable("DECOMP_2D_RECIPE", recipe)
    if (recipe == "") recipe = "decomp.lua"
    state = mgrid_open_comm(comm, trim(recipe), args(:n), err)
    cart_x = mgrid_comm(mgrid_group_of(state, "cart_x", err))
    cart_y = mgrid_comm(mgrid_group_of(state, "cart_y", err))
    cart_z = mgrid_comm(mgrid_group_of(state, "cart_z", err))
    across = [mgrid_group_of(state, "col", err), mgrid_group_of(state, "row", err)]
    col = mgrid_comm(across(1))
    row = mgrid_comm(across(2))
    if (err%status /= MGRID_OK) then
      write (*, '(2a)') "2DECOMP&FFT: ", mgrid_message(err)
      flush (6)
      call MPI_Abort(comm, 1, ierr)
    end if
    dims = int([mgrid_group_size(across(1)), mgrid_group_size(across(2))])
    coord = int([mgrid_group_position(across(1)), mgrid_group_position(across(2))])
    p_row = dims(1)
    p_col = dims(2)
  end subroutine

  ! Free all communicators.
  subroutine grid_close()
    call mgrid_state_free(state)
    state = c_null_ptr
  end subroutine
  ! ---- end of the port
end module
