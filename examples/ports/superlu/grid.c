/* SPDX-License-Identifier: MIT
 *
 * grid.c - the process grid of SuperLU_DIST on superlu.lua, or the recipe that SUPERLU_RECIPE names. A program that links
 * this file, or loads it as a library by LD_PRELOAD, calls these two functions instead of those of libsuperlu_dist:
 *
 *     cc -shared -fPIC grid.c -o libgrid.so $(pkg-config --cflags --libs superlu_dist moongrid_mpi)
 *     LD_PRELOAD=$PWD/libgrid.so SUPERLU_RECIPE=superlu.lua mpirun -n 4 pddrive -r 2 -c 2 big.rua
 */
#include <moongrid_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <superlu_defs.h>

/* begin of the port */
static struct kept {
  const gridinfo_t *grid;
  mgrid_state *state;
  struct kept *next;
} * all; /* the states of the open grids: a gridinfo_t has no field for its state */

/* Return the argument "ranks=...", which lists ranks row by row; `map` has them by columns. */
static char *ranks_of(int nprow, int npcol, const int *map, int ldmap) {
  char *text = malloc(8 + 12 * (size_t)nprow * (size_t)npcol), *at = text;
  if (!text) return NULL;
  at += sprintf(at, "ranks=");
  for (int i = 0; i < nprow; i++)
    for (int j = 0; j < npcol; j++) at += sprintf(at, "%s%d", i + j ? "," : "", map[j * ldmap + i]);
  return text;
}

static superlu_scope_t scope_of(const mgrid_group *g) {
  return (superlu_scope_t){ mgrid_mpi_comm(g), (int)mgrid_group_size(g),
                            (int)mgrid_group_position(g) };
}

void superlu_gridmap(MPI_Comm comm, int nprow, int npcol, int map[], int ldmap, gridinfo_t *grid) {
  char rows[24], columns[24], *ranks = ranks_of(nprow, npcol, map, ldmap);
  struct kept *kept = malloc(sizeof *kept);
  if (!ranks || !kept) MPI_Abort(comm, 1);
  sprintf(rows, "nprow=%d", nprow), sprintf(columns, "npcol=%d", npcol);
  const char *args[] = { rows, columns, ranks }, *recipe = getenv("SUPERLU_RECIPE");
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_state *state =
      mgrid_mpi_open(comm, recipe ? recipe : "superlu.lua", 3, args, NULL, NULL, &e);
  const mgrid_group *whole = mgrid_state_group(state, "grid", &e);
  const mgrid_group *row = mgrid_state_group(state, "row", &e);
  const mgrid_group *column = mgrid_state_group(state, "column", &e);
  if (e.status) fprintf(stderr, "SuperLU_DIST: %s\n", e.message), MPI_Abort(comm, 1);
  *kept = (struct kept){ grid, state, all }, all = kept;
  free(ranks);
  grid->nprow = nprow, grid->npcol = npcol;
  grid->comm = mgrid_mpi_comm(whole), grid->iam = whole ? (int)mgrid_group_position(whole) : -1;
  if (whole) grid->rscp = scope_of(row), grid->cscp = scope_of(column);
}

void superlu_gridexit(gridinfo_t *grid) {
  for (struct kept **at = &all; *at; at = &(*at)->next) {
    struct kept *one = *at;
    if (one->grid != grid) continue;
    *at = one->next;
    mgrid_state_free(one->state);
    free(one);
    return;
  }
}
/* end of the port */
