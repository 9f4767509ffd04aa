/* SPDX-License-Identifier: MIT
**
** optimizer.c - AdamW, on this rank's slices.
*/
#include "model.h"

#include <math.h>

void optimizer_update(model *m, int64_t step, double rate) {
  const double keep1 = 0.9, keep2 = 0.99, small = 1e-8, decay = 0.01;
  double full1 = 1 - pow(keep1, (double)step + 1), full2 = 1 - pow(keep2, (double)step + 1);
  for (int i = 0; i < m->nparams; i++) {
    param *p = &m->params[i];
    if (i == m->nparams / 2) fault_at("update");
    for (size_t k = 0; k < p->n; k++) {
      double g = p->g[p->first + k], w = p->w[p->first + k];
      p->m[k] = (real)(keep1 * p->m[k] + (1 - keep1) * g);
      p->v[k] = (real)(keep2 * p->v[k] + (1 - keep2) * g * g);
      if (p->rows > 1) w -= rate * decay * w; /* matrices decay, norms do not */
      p->w[p->first + k] = (real)(w - rate * (p->m[k] / full1) / (sqrt(p->v[k] / full2) + small));
    }
  }
}
