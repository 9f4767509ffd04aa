/* SPDX-License-Identifier: MIT
**
** minimum.c - the minimum of a few words over all ranks, by messages along a tree: up to rank 0 and down again. Ranks that
** share cores wait for each other's time slices; here each rank waits twice, in an MPI_Iallreduce log2(ranks) times, which
** takes two to three times as long (scripts/README.md).
*/
#include "comm/mpi/mpi.h"

#include <string.h>

static int64_t first_child(const mpi_backend *m) { return m->base.rank * MGRID_TREE_CHILDREN + 1; }

static int from_child(mpi_backend *m, int i, size_t n) {
  return MPI_Irecv(m->tree.child[i], (int)n, MPI_UINT64_T, (int)first_child(m) + i, MGRID_TAG_RISE, m->comm,
                   &m->tree.children[i]);
}

mpi_request mgrid_mpi_tree_begin(mpi_backend *m, const uint64_t *words, size_t n) {
  mpi_tree   *t = &m->tree;
  int64_t     left = m->base.world - first_child(m);
  mpi_request call = { .tree = m };
  t->phase = MGRID_TREE_RISES, t->n = n;
  t->nchildren = left < 0 ? 0 : left < MGRID_TREE_CHILDREN ? (int)left : MGRID_TREE_CHILDREN;
  t->own[0] = t->own[1] = MPI_REQUEST_NULL;
  memcpy(t->words, words, n * sizeof *words);
  for (int i = 0; i < t->nchildren; i++) t->children[i] = MPI_REQUEST_NULL;
  for (int i = 0; i < t->nchildren && !call.rc; i++) call.rc = from_child(m, i, n);
  return call;
}

/* All children have reported: report to the parent and wait for its answer. */
static int rise(mpi_backend *m, mpi_tree *t) {
  for (int i = 0; i < t->nchildren; i++)
    for (size_t k = 0; k < t->n; k++)
      if (t->child[i][k] < t->words[k]) t->words[k] = t->child[i][k];
  t->phase = MGRID_TREE_FALLS;
  if (m->base.rank == 0) return MPI_SUCCESS;
  int n = (int)t->n, parent = (int)((m->base.rank - 1) / MGRID_TREE_CHILDREN);
  int rc = MPI_Irecv(t->answer, n, MPI_UINT64_T, parent, MGRID_TAG_FALL, m->comm, &t->own[0]);
  return rc ? rc : MPI_Isend(t->words, n, MPI_UINT64_T, parent, MGRID_TAG_RISE, m->comm, &t->own[1]);
}

static int fall(mpi_backend *m, mpi_tree *t) {
  int rc = MPI_SUCCESS;
  t->phase = MGRID_TREE_ENDS;
  if (m->base.rank > 0) memcpy(t->words, t->answer, t->n * sizeof *t->words);
  for (int i = 0; i < t->nchildren && !rc; i++)
    rc =
        MPI_Isend(t->words, (int)t->n, MPI_UINT64_T, (int)first_child(m) + i, MGRID_TAG_FALL, m->comm, &t->children[i]);
  return rc;
}

mgrid_outcome mgrid_mpi_tree_through(mpi_backend *m, int *rc) {
  mpi_tree *t = &m->tree;
  int       done = 1;
  while (!*rc && done) {
    bool falls = t->phase == MGRID_TREE_FALLS;
    *rc = MPI_Testall(falls ? 2 : t->nchildren, falls ? t->own : t->children, &done, MPI_STATUSES_IGNORE);
    if (*rc || !done) break;
    if (t->phase == MGRID_TREE_ENDS) return MGRID_OK;
    *rc = falls ? fall(m, t) : rise(m, t);
  }
  return *rc ? MGRID_BACKEND : MGRID_NOT_YET;
}
