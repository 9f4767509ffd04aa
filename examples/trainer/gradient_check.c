/* SPDX-License-Identifier: MIT
**
** gradient_check.c - compares gradients with differences of the loss, for 6 values of every
** parameter.
**
** It runs on one rank; the script `check` compares layouts. In single precision the differences
** need a step so wide that tokens change experts: then use --moe-every 0.
*/
#include "model.h"

#include <math.h>
#include <stdio.h>

int gradient_check(model *m, int rank) {
#ifdef TRAINER_F32
  const double h = 1e-2, allowed = 5e-3;
#else
  const double h = 1e-5, allowed = 1e-5;
#endif
  int bad = 0, tried = 0;
  double worst = 0;
  for (int i = 0; i < m->nparams; i++) {
    param *p = &m->params[i];
    size_t n = (size_t)p->nrows * (size_t)p->ncols;
    for (uint64_t k = 0; k < 6; k++) {
      size_t at = (size_t)(data_mix(k, (uint64_t)i) % n);
      real w = p->w[at];
      pipeline_step(m, 0);
      double told = p->g[at], size = 0;
      for (size_t j = 0; j < n; j++) size += (double)p->g[j] * p->g[j];
      size = sqrt(size / (double)n);
      p->w[at] = (real)(w + h);
      double up = pipeline_loss(m, pipeline_step(m, 0)), above = p->w[at];
      p->w[at] = (real)(w - h);
      double down = pipeline_loss(m, pipeline_step(m, 0)), below = p->w[at];
      p->w[at] = w;
      double seen = (up - down) / (above - below),
             off = fabs(seen - told) / (fabs(told) + size + 1e-6);
      tried++;
      worst = off > worst ? off : worst;
      if (off <= allowed) continue;
      bad++;
      if (rank == 0) printf("# %s[%zu]: gradient %.9g, difference %.9g\n", p->name, at, told, seen);
    }
  }
  if (rank == 0)
    printf("%sok - gradients: %d values of %d parameters, worst %.1e, %d beyond %.0e\n",
           bad ? "not " : "", tried, m->nparams, worst, bad, allowed);
  return bad;
}
