! pools.F90 - a Fortran program on the groups of examples/pools.lua: sums over k-points, bands and plane waves, as a
! plane-wave code makes them. Sizes are arguments, as nk=2 nb=2. The communicators are MPI's: with mpi_f08, or with
! mpif.h (-DMPIF).
!
!   mpifort moongrid.f90 pools.F90 -o pools $(pkg-config --libs moongrid_mpi)      (moongrid.f90 is beside moongrid.h)
!   mpirun -n 8 pools examples/pools.lua nk=2 nb=2
program pools
  use moongrid
#ifndef MPIF
  use mpi_f08
  implicit none
  type(MPI_Comm) :: world, pool, across
#else
  implicit none
  include 'mpif.h'
  integer :: world, pool, across
#endif
  character(len=256)               :: word
  character(len=256), allocatable  :: args(:)
  type(mgrid_error_t)              :: err
  type(c_ptr)                      :: state, intra, inter
  integer                          :: i, ierr, rank, ranks, members(2)
  real(8)                          :: mine, energy

  call MPI_Init(ierr)
  allocate (args(max(0, command_argument_count() - 1)))
  do i = 1, size(args)
    call get_command_argument(i + 1, args(i))
  end do
  call get_command_argument(1, word)
  world = MPI_COMM_WORLD
#ifndef MPIF
  state = mgrid_open_comm(world%mpi_val, trim(word), args, err)
#else
  state = mgrid_open_comm(world, trim(word), args, err)
#endif
  intra = mgrid_group_of(state, "intra_pool", err) ! this rank's group, a handle for mgrid_group_size and others
  inter = mgrid_group_of(state, "inter_pool", err)
  if (err%status /= MGRID_OK) then
    write (*, '(a)') mgrid_message(err) ! every rank has the same error, and nothing was made
    flush (6)
    call MPI_Abort(world, 1, ierr)
  end if
#ifndef MPIF
  pool%mpi_val = mgrid_comm(intra)
  across%mpi_val = mgrid_comm(inter)
#else
  pool = mgrid_comm(intra)
  across = mgrid_comm(inter)
#endif

  call MPI_Comm_rank(world, rank, ierr)
  call MPI_Comm_size(world, ranks, ierr)
  mine = rank + 1
  call MPI_Allreduce(mine, energy, 1, MPI_DOUBLE_PRECISION, MPI_SUM, pool, ierr)   ! over bands and plane waves
  mine = energy
  call MPI_Allreduce(mine, energy, 1, MPI_DOUBLE_PRECISION, MPI_SUM, across, ierr) ! over k-points
  call MPI_Comm_size(pool, members(1), ierr)
  call MPI_Comm_size(across, members(2), ierr)
  if (any(members /= [mgrid_group_size(intra), mgrid_group_size(inter)])) stop 2
  if (rank == 0) write (*, '(a, i0, a, i0, a, f0.1)') "pools of ", members(1), ", ", members(2), " of them: sum ", energy
  if (abs(energy - sum([(real(i, 8), i = 1, ranks)])) > 1d-9 .and. members(1) * members(2) == ranks) stop 3
  call mgrid_state_free(state)
  call MPI_Finalize(ierr)
end program
