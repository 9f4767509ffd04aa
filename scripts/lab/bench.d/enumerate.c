/* SPDX-License-Identifier: MIT
**
** enumerate.c - every group of every family of `megatron` at a world, written into one warm
** buffer: by mgrid_family_members, and by plain C loops over the same sizes and strides.
**
**     enumerate ROUNDS WORLD
*/
#include "layout.h"

/* List all groups of a rule, as one would write it by hand: innermost loops first, runs merged. */
__attribute__((noipa)) static int64_t *plain(const bare *b, int64_t *out) {
  axis in[AXES], ix[AXES];
  for (int a = 0; a < AXES; a++) {
    in[a] = a < b->ninside ? b->inside[a] : (axis){ 1, 0 };
    ix[a] = a < b->nindex ? b->index[a] : (axis){ 1, 0 };
  }
  for (int64_t d = 0; d < ix[3].size; d++)
    for (int64_t c = 0; c < ix[2].size; c++)
      for (int64_t e = 0; e < ix[1].size; e++)
        for (int64_t g = 0; g < ix[0].size; g++) {
          int64_t start = d * ix[3].stride + c * ix[2].stride + e * ix[1].stride + g * ix[0].stride;
          for (int64_t k = 0; k < in[3].size; k++)
            for (int64_t j = 0; j < in[2].size; j++)
              for (int64_t i = 0; i < in[1].size; i++) {
                int64_t from = (start + k * in[3].stride + j * in[2].stride + i * in[1].stride);
                int64_t step = in[0].stride, n = in[0].size;
                for (int64_t p = 0; p < n; p++) out[p] = from + p * step;
                out += n;
              }
        }
  return out;
}

__attribute__((noipa)) static int64_t *ours(const mgrid_family *f, int64_t *out) {
  return out + mgrid_family_members(f, 0, mgrid_family_count(f), SIZE_MAX, out);
}

int main(int argc, char **argv) {
  if (argc != 3) die("enumerate ROUNDS WORLD");
  mgrid_error e = MGRID_ERROR_INIT;
  sizes s = plan_sizes(strtoll(argv[2], NULL, 10));
  mgrid_dim dims[GRIDS][AXES];
  mgrid_topology *t = layout_topology(&MEGATRON, s, true, &e);
  mgrid_plan *p = mgrid_plan_new(t, &e);
  if (!p) die(e.message);
  bare b[RULES_MAX];
  size_t most = 0, all = 0;
  layout_dims(s, dims);
  for (int i = 0; i < MEGATRON.n; i++) {
    b[i] = bare_rule(&MEGATRON, &MEGATRON.rule[i], dims);
    if (b[i].nindex > 4 || b[i].ninside > 4) die("a rule of more than four loops");
    size_t total = (size_t)mgrid_family_total(family_of(p, i));
    most = total > most ? total : most;
    all += total;
  }
  int64_t *mine = malloc(most * sizeof *mine), *theirs = malloc(most * sizeof *theirs);
  if (!mine || !theirs) die("no memory");
  double spent[RULES_MAX][2];
  for (int round = -1; round < atoi(argv[1]); round++) { /* the first warms up, and compares */
    double sum[3] = { 0, 0, 0 };
    for (int i = 0; i < MEGATRON.n; i++) {
      const mgrid_family *f = family_of(p, i);
      double t0 = now();
      int64_t *end = ours(f, mine);
      double t1 = now();
      int64_t *last = plain(&b[i], theirs);
      double t2 = now();
      size_t n = (size_t)(end - mine);
      if (round < 0 && (last - theirs != end - mine || memcmp(mine, theirs, n * sizeof *mine) != 0))
        die(mgrid_plan_family_name(p, (size_t)i));
      double t3 = now();
      memcpy(theirs, mine, n * sizeof *mine);
      sum[0] += t1 - t0, sum[1] += t2 - t1, sum[2] += now() - t3;
      if (round < 0 || t1 - t0 < spent[i][0]) spent[i][0] = t1 - t0;
      if (round < 0 || t2 - t1 < spent[i][1]) spent[i][1] = t2 - t1;
    }
    if (round < 0) continue;
    sample(1e3 * sum[0], "ours");
    sample(1e3 * sum[1], "plain");
    sample(1e3 * sum[2], "copy");
  }
  sample((double)all, "ranks");
  for (int i = 0; i < MEGATRON.n; i++) {
    sample(1e3 * spent[i][0], "ours %s", MEGATRON.rule[i].name);
    sample(1e3 * spent[i][1], "plain %s", MEGATRON.rule[i].name);
  }
  free(mine);
  free(theirs);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  return 0;
}
