/* SPDX-License-Identifier: MIT
**
** checkpoint.c - the whole model in one file, whose bytes do not depend on the layout.
**
** A parameter's place in the file is its place in the whole model: three arrays (weights and the
** optimizer's two moments) of doubles after a head. Every rank writes the rows that it has; if
** several ranks have the same rows, only one writes them. Reading goes through the same steps, so a model
** saved under one layout can go on under another.
*/
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct head {
  char     magic[8];
  uint64_t whole;
  int64_t  step;
} head;

static const char magic[8] = "mgtrain1";

static int transfer(int file, bool write_it, void *data, size_t n, size_t at) {
  ssize_t done = write_it ? pwrite(file, data, n, (off_t)at) : pread(file, data, n, (off_t)at);
  return done == (ssize_t)n ? 0 : done < 0 ? errno : EIO;
}

static int walk(model *m, int file, bool write_it) {
  int     code = 0;
  double *row = room((size_t)m->c.width + (size_t)m->c.hidden, sizeof *row);
  for (int i = 0; i < m->nparams && !code; i++) {
    param       *p = &m->params[i];
    const group *copies = p->expert ? &m->l.expert_data : &m->l.dp_cp;
    if (write_it && copies->rank > 0) continue;
    if (write_it && m->l.tp.rank > 0 && p->nrows == p->rows && p->ncols == p->cols) continue; /* not cut */
    if (write_it && p == m->embedding && !m->first) continue;
    real *arrays[] = { p->w, p->m, p->v };
    for (int k = 0; k < 3; k++)
      for (int r = 0; r < p->nrows && !code; r++) {
        real  *mine = arrays[k] + (size_t)r * p->ncols;
        size_t at = (size_t)k * m->whole + p->place + (size_t)(p->row0 + r) * (size_t)p->cols + (size_t)p->col0;
        for (int c = 0; c < p->ncols; c++) row[c] = mine[c];
        code = transfer(file, write_it, row, (size_t)p->ncols * sizeof *row, sizeof(head) + at * sizeof *row);
        for (int c = 0; c < p->ncols && !write_it && !code; c++) mine[c] = (real)row[c];
      }
  }
  free(row);
  return code;
}

int checkpoint_write(model *m, const char *path, int64_t step) {
  int file = open(path, O_WRONLY | O_CREAT, 0666);
  if (file < 0) return errno;
  head h = { .whole = m->whole, .step = step };
  memcpy(h.magic, magic, sizeof magic);
  int code = walk(m, file, true);
  if (!code && m->first && m->l.dp_cp.rank == 0 && m->l.tp.rank == 0) code = transfer(file, true, &h, sizeof h, 0);
  if (close(file) && !code) code = errno;
  return code;
}

int checkpoint_read(model *m, const char *path, int64_t *step) {
  int file = open(path, O_RDONLY);
  if (file < 0) return errno;
  head h;
  int  code = transfer(file, false, &h, sizeof h, 0);
  if (!code && (memcmp(h.magic, magic, sizeof magic) || h.whole != m->whole)) code = EINVAL;
  if (!code) code = walk(m, file, false);
  if (!code) *step = h.step;
  close(file);
  return code;
}
