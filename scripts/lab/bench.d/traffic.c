/* SPDX-License-Identifier: MIT
**
** traffic.c - send the traffic of families as messages: traffic FILE. It runs under SimGrid's SMPI,
** which prints the time (congestion.lua). Each line of FILE is a call that all groups of a family
** make at once: "ring BYTES STEPS SIZE RANK...", or "chain BYTES 1 SIZE RANK...", with the ranks of
** all groups, SIZE to a group. In each step a rank of a ring sends BYTES to the next rank, and
** receives from the rank before. A call begins when the call before has ended on all ranks.
*/
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *room; /* one piece of memory for all ranks: nothing is copied */

static void send_on(int next, int before, int bytes) {
  MPI_Request r[2];
  int n = 0;
  if (before >= 0) MPI_Irecv(room, bytes, MPI_BYTE, before, 0, MPI_COMM_WORLD, &r[n++]);
  if (next >= 0) MPI_Isend(room, bytes, MPI_BYTE, next, 0, MPI_COMM_WORLD, &r[n++]);
  MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
  char kind[16];
  int rank, world, bytes, steps, size;
  FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (!file) MPI_Abort(MPI_COMM_WORLD, 2);
  room = SMPI_SHARED_MALLOC(64 << 20);
  while (fscanf(file, "%15s %d %d %d", kind, &bytes, &steps, &size) == 4) {
    int next = -1, before = -1;
    for (int first, at = 0, last = -1, i = 0; i < world; i++) {
      int r;
      if (fscanf(file, "%d", &r) != 1) MPI_Abort(MPI_COMM_WORLD, 3);
      if (i % size == 0) first = r, at = 0;
      if (at > 0 && r == rank) before = last;
      if (at > 0 && last == rank) next = r;
      if (at == size - 1 && strcmp(kind, "ring") == 0) {
        if (r == rank) next = first;
        if (first == rank) before = r;
      }
      last = r, at++;
    }
    for (int k = 0; k < steps; k++) send_on(next, before, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  SMPI_SHARED_FREE(room);
  fclose(file);
  MPI_Finalize();
  return 0;
}
