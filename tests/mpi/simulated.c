/* SPDX-License-Identifier: MIT
**
** simulated.c - the time of a message from rank 0 to ranks 1 and 16 on simulated ranks, for
** tests/lua/simulate_spec.lua.
*/
#include <mpi.h>
#include <stdio.h>

enum { TURNS = 10 };

int main(int argc, char **argv) {
  int rank, size, word = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int to = 1; to < size && to <= 16; to += 15) {
    double began = MPI_Wtime();
    for (int i = 0; i < TURNS && (rank == 0 || rank == to); i++) {
      int peer = rank ? 0 : to;
      if (rank == 0) MPI_Send(&word, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
      MPI_Recv(&word, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank != 0) MPI_Send(&word, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("rank %d: %.2f us\n", to, (MPI_Wtime() - began) / (2 * TURNS) * 1e6);
  }
  MPI_Finalize();
  return 0;
}
