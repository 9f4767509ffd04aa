/* trainer.c: a trainer on the groups of layout.lua. NAME=VALUE on its command line sets a parameter of the layout. */
#include <moongrid_mpi.h>
#include <stdio.h>

/* Return whether *e has no error. If it has one, rank 0 prints it. */
static bool is_well(const mgrid_error *e, int rank) {
  if (e->status && rank == 0) fprintf(stderr, "trainer: %s\n", e->message);
  return !e->status;
}

/* One step: the mean of a gradient over the data-parallel ranks. */
static double step(const mgrid_group *dp, double gradient) {
  double sum = 0;
  MPI_Allreduce(&gradient, &sum, 1, MPI_DOUBLE, MPI_SUM, mgrid_mpi_comm(dp));
  return sum / (double)mgrid_group_size(dp);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  mgrid_error e = MGRID_ERROR_INIT; /* calls after an error do nothing, so one check is enough */
  const char *const *args = (const char *const *)argv + 1;
  mgrid_state *state = mgrid_mpi_open(MPI_COMM_WORLD, "layout.lua", argc - 1, args, NULL, NULL, &e);
  const mgrid_group *tp = mgrid_state_group(state, "tp", &e);
  const mgrid_group *dp = mgrid_state_group(state, "dp", &e);
  bool well = is_well(&e, rank);
  if (well) {
    int t = (int)mgrid_group_position(tp), d = (int)mgrid_group_position(dp);
    printf("rank %d: tp %d, dp %d, mean over dp %g\n", rank, t, d, step(dp, rank));
  }
  mgrid_state_free(state);
  MPI_Finalize();
  return well ? 0 : 1;
}
