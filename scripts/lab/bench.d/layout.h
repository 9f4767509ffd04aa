/* SPDX-License-Identifier: MIT
**
** layout.h - the layouts of the benchmark, written down twice: as families by moongrid's C
** functions, and as bare (size, stride) pairs for the plain C loops beside them.
**
** MEGATRON has the families of the bundled recipe `megatron` with its defaults, in its order;
** the programs check that. FACTS has the 17 kinds of facts.lua, SMALL is a job of four families,
** GRID3D and PENCIL are grids of processes in scientific codes.
*/
#ifndef LAYOUT_H
#define LAYOUT_H

#include "bench.h"
#include "moongrid.h"

typedef struct sizes {
  int64_t world, tp, cp, pp, ep, etp;
} sizes;

enum { DENSE, EXPERT, GRIDS, AXES = 6, RULES_MAX = 40 };
enum { WHOLE, ENDS, FIRST, BUNDLE }; /* what is done to the groups along the dims */

typedef struct rule {
  const char *name, *same; /* same: name of an earlier rule whose family this is */
  int grid;
  const char *dims[4];
  int then;
  bool gloo; /* with the option backend = "mpi": gloo in Megatron */
} rule;

typedef struct layout {
  const rule *rule;
  int n;
} layout;

static const rule megatron_rules[] = {
  { "gtp_remat", NULL, DENSE, { "gtp_remat" }, WHOLE, false },
  { "dp_cp", NULL, DENSE, { "cp", "dp" }, WHOLE, false },
  { "dp_cp_gtp_remat", "dp_cp", 0, { NULL }, WHOLE, false },
  { "dp", NULL, DENSE, { "dp" }, WHOLE, false },
  { "dp_gtp_remat", "dp", 0, { NULL }, WHOLE, false },
  { "expt_gtp_remat", NULL, EXPERT, { "egtp_remat" }, WHOLE, false },
  { "expt_dp", NULL, EXPERT, { "edp" }, WHOLE, false },
  { "expt_dp_gtp_remat", "expt_dp", 0, { NULL }, WHOLE, false },
  { "intra_dp_cp", "dp_cp", 0, { NULL }, WHOLE, false },
  { "intra_dp_cp_gtp_remat", "dp_cp", 0, { NULL }, WHOLE, false },
  { "intra_expt_dp", "expt_dp", 0, { NULL }, WHOLE, false },
  { "intra_expt_dp_gtp_remat", "expt_dp", 0, { NULL }, WHOLE, false },
  { "intra_dist_opt", NULL, EXPERT, { "etp", "ep", "pp" }, BUNDLE, false },
  { "dp_cp_gloo", NULL, DENSE, { "cp", "dp" }, WHOLE, true },
  { "intra_dp_cp_gloo", NULL, DENSE, { "cp", "dp" }, WHOLE, true },
  { "dp_gloo", NULL, DENSE, { "dp" }, WHOLE, true },
  { "expt_dp_gloo", NULL, EXPERT, { "edp" }, WHOLE, true },
  { "intra_expt_dp_gloo", NULL, EXPERT, { "edp" }, WHOLE, true },
  { "cp", NULL, DENSE, { "cp" }, WHOLE, false },
  { "mp", NULL, DENSE, { "tp", "gtp_remat", "pp" }, WHOLE, false },
  { "tp", NULL, DENSE, { "tp" }, WHOLE, false },
  { "pp", NULL, DENSE, { "pp" }, WHOLE, false },
  { "embd", NULL, DENSE, { "pp" }, ENDS, false },
  { "pos_embd", NULL, DENSE, { "pp" }, FIRST, false },
  { "tp_dp_cp", NULL, DENSE, { "tp", "gtp_remat", "cp", "dp" }, WHOLE, false },
  { "tp_dp", NULL, DENSE, { "tp", "gtp_remat", "dp" }, WHOLE, false },
  { "tp_cp", NULL, DENSE, { "tp", "cp" }, WHOLE, false },
  { "ep", NULL, EXPERT, { "ep" }, WHOLE, false },
  { "expt_tp", NULL, EXPERT, { "etp" }, WHOLE, false },
  { "tp_ep", NULL, EXPERT, { "etp", "ep" }, WHOLE, false },
  { "tp_ep_pp", NULL, EXPERT, { "etp", "ep", "pp" }, WHOLE, false },
  { "tp_ep_pp_with_egtp_remat", NULL, EXPERT, { "etp", "ep", "egtp_remat", "pp" }, WHOLE, false },
};

static const rule facts_rules[] = {
  { "tp", NULL, DENSE, { "tp" }, WHOLE, false },
  { "cp", NULL, DENSE, { "cp" }, WHOLE, false },
  { "pp", NULL, DENSE, { "pp" }, WHOLE, false },
  { "dp", NULL, DENSE, { "dp" }, WHOLE, false },
  { "dp_cp", NULL, DENSE, { "cp", "dp" }, WHOLE, false },
  { "tp_pp", NULL, DENSE, { "tp", "pp" }, WHOLE, false },
  { "tp_dp", NULL, DENSE, { "tp", "dp" }, WHOLE, false },
  { "tp_dp_cp", NULL, DENSE, { "tp", "cp", "dp" }, WHOLE, false },
  { "tp_cp", NULL, DENSE, { "tp", "cp" }, WHOLE, false },
  { "emb", NULL, DENSE, { "pp" }, ENDS, false },
  { "pos", NULL, DENSE, { "pp" }, FIRST, false },
  { "amax", NULL, DENSE, { "tp", "cp", "dp" }, WHOLE, false },
  { "ep", NULL, EXPERT, { "ep" }, WHOLE, false },
  { "etp", NULL, EXPERT, { "etp" }, WHOLE, false },
  { "ep_dp", NULL, EXPERT, { "edp" }, WHOLE, false },
  { "tp_ep", NULL, EXPERT, { "etp", "ep" }, WHOLE, false },
  { "tp_ep_pp", NULL, EXPERT, { "etp", "ep", "pp" }, WHOLE, false },
};

static const rule small_rules[] = {
  { "tp", NULL, DENSE, { "tp" }, WHOLE, false },
  { "dp", NULL, DENSE, { "dp" }, WHOLE, false },
  { "pp", NULL, DENSE, { "pp" }, WHOLE, false },
  { "mp", NULL, DENSE, { "tp", "pp" }, WHOLE, false },
};

/* Rows, columns, layers and the depth of a 3D grid of processes, as sparse direct solvers have
** it. */
static const rule grid3d_rules[] = {
  { "row", NULL, DENSE, { "tp" }, WHOLE, false },
  { "column", NULL, DENSE, { "dp" }, WHOLE, false },
  { "layer", NULL, DENSE, { "tp", "dp" }, WHOLE, false },
  { "depth", NULL, DENSE, { "pp" }, WHOLE, false },
};

/* The two subcommunicators of an FFT by pencils. */
static const rule pencil_rules[] = {
  { "row", NULL, DENSE, { "tp" }, WHOLE, false },
  { "column", NULL, DENSE, { "dp" }, WHOLE, false },
};

#define COUNT(a) ((int)(sizeof(a) / sizeof(a)[0]))
static const layout MEGATRON = { megatron_rules, COUNT(megatron_rules) };
static const layout FACTS = { facts_rules, COUNT(facts_rules) };
static const layout SMALL = { small_rules, COUNT(small_rules) };
static const layout GRID3D = { grid3d_rules, COUNT(grid3d_rules) };
static const layout PENCIL = { pencil_rules, COUNT(pencil_rules) };

/* The sizes that planning is measured with. */
static inline sizes plan_sizes(int64_t world) {
  return world == 64 ? (sizes){ world, 4, 2, 4, 4, 1 } : (sizes){ world, 8, 2, 8, 8, 1 };
}

static inline void layout_dims(sizes s, mgrid_dim dims[GRIDS][AXES]) {
  const mgrid_dim made[GRIDS][AXES] = {
    { { "tp", s.tp },
      { "gtp_remat", 1 },
      { "cp", s.cp },
      { "ep", 1 },
      { "dp", s.world / (s.tp * s.cp * s.pp) },
      { "pp", s.pp } },
    { { "etp", s.etp },
      { "cp", 1 },
      { "ep", s.ep },
      { "egtp_remat", 1 },
      { "edp", s.world / (s.etp * s.ep * s.pp) },
      { "pp", s.pp } },
  };
  memcpy(dims, made, sizeof made);
}

static inline size_t rule_ndims(const rule *r) {
  size_t n = 0;
  while (n < 4 && r->dims[n]) n++;
  return n;
}

/* ------------------------------------------------------------ by moongrid */

/* Return the layout as a topology, or NULL with *err. */
static inline mgrid_topology *layout_topology(const layout *l, sizes s, bool gloo,
                                              mgrid_error *err) {
  static const int64_t ends[] = { 0, -1 };
  mgrid_dim dims[GRIDS][AXES];
  mgrid_family *made[RULES_MAX];
  mgrid_options on_cpu = MGRID_OPTIONS_INIT;
  mgrid_topology *t = mgrid_topology_new(s.world, err);
  layout_dims(s, dims);
  mgrid_grid *grid[GRIDS] = { mgrid_grid_new(mgrid_world(s.world), AXES, dims[DENSE], err),
                              mgrid_grid_new(mgrid_world(s.world), AXES, dims[EXPERT], err) };
  mgrid_status status = mgrid_topology_add_grid(t, "dense", grid[DENSE], err);
  if (!status) status = mgrid_topology_add_grid(t, "expert", grid[EXPERT], err);
  on_cpu.backend = "mpi";
  int n = 0;
  for (int i = 0; i < l->n && !status; i++) {
    const rule *r = &l->rule[i];
    made[n] = NULL;
    if (r->gloo && !gloo) {
      n++;
      continue;
    }
    if (r->same) {
      for (int k = 0; k < i; k++)
        if (strcmp(l->rule[k].name, r->same) == 0) made[n] = mgrid_family_ref(made[k]);
    } else {
      mgrid_family *f =
          mgrid_grid_along(grid[r->grid], rule_ndims(r), r->dims, MGRID_GRID_ORDER, err);
      if (r->then == WHOLE) {
        made[n] = f;
      } else {
        made[n] = r->then == BUNDLE ? mgrid_family_bundle(f, mgrid_family_count(f), err)
                                    : mgrid_family_pick(f, r->then == ENDS ? 2 : 1, ends, err);
        mgrid_family_free(f);
      }
    }
    status = mgrid_topology_add(t, r->name, made[n++], r->gloo ? &on_cpu : NULL, err);
  }
  while (n > 0) mgrid_family_free(made[--n]);
  for (int g = 0; g < GRIDS; g++) mgrid_grid_free(grid[g]);
  if (!status) return t;
  mgrid_topology_free(t);
  return NULL;
}

/* ------------------------------------------------------------- in plain C */

typedef struct axis {
  int64_t size, stride;
} axis;

typedef struct bare { /* group i, position p -> index[i] + inside[p]; runs are merged */
  int ninside, nindex;
  axis inside[AXES], index[AXES];
} bare;

static inline void bare_push(axis *list, int *n, int64_t size, int64_t stride) {
  if (size == 1) return;
  if (*n > 0 && list[*n - 1].size * list[*n - 1].stride == stride)
    list[*n - 1].size *= size;
  else
    list[(*n)++] = (axis){ size, stride };
}

static inline bare bare_rule(const layout *l, const rule *r, mgrid_dim dims[GRIDS][AXES]) {
  while (r->same) {
    const rule *of = l->rule;
    while (strcmp(of->name, r->same) != 0) of++;
    r = of;
  }
  bare b = { 0 };
  int64_t stride = 1;
  axis left[AXES];
  int nleft = 0;
  for (int a = 0; a < AXES; a++) {
    int64_t size = dims[r->grid][a].size;
    bool in = false;
    for (size_t d = 0; d < rule_ndims(r); d++) in |= strcmp(r->dims[d], dims[r->grid][a].name) == 0;
    if (!in)
      left[nleft++] = (axis){ size, stride };
    else if (r->then == ENDS && size > 1)
      bare_push(b.inside, &b.ninside, 2, stride * (size - 1));
    else if (r->then != FIRST)
      bare_push(b.inside, &b.ninside, size, stride);
    stride *= size;
  }
  for (int i = 0; i < nleft; i++)
    bare_push(r->then == BUNDLE ? b.inside : b.index, r->then == BUNDLE ? &b.ninside : &b.nindex,
              left[i].size, left[i].stride);
  return b;
}

/* The ith family of a plan. */
static inline const mgrid_family *family_of(const mgrid_plan *p, size_t i) {
  return mgrid_plan_family(p, mgrid_plan_family_name(p, i));
}

#endif
