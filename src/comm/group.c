/* SPDX-License-Identifier: MIT
**
** group.c - the functions by which a trainer asks its state: for this rank's groups, their ranks,
** this rank's position and communicator in each, and its coordinates in the grids of the plan. They
** need no other rank, except mgrid_group_work, which runs a collective. Only the function that
** returns a grid allocates memory.
*/
#include "comm/state.h"

#include <string.h>

/* ================================================================= the state */

const mgrid_plan *mgrid_state_plan(const mgrid_state *s) { return s ? s->plan : NULL; }
int64_t mgrid_state_rank(const mgrid_state *s) { return s ? s->view.rank : -1; }

size_t mgrid_state_ncomms(const mgrid_state *s) {
  size_t n = 0;
  for (size_t i = 0; s && i < s->view.ncomms; i++) n += s->comm[i]->real;
  return n;
}

const mgrid_group *mgrid_state_group_nth(const mgrid_state *s, const char *family, size_t nth,
                                         mgrid_error *err) {
  if (!s) return NULL;
  int entry = mgrid_content_require(&s->plan->content, "", family, err);
  if (entry < 0) return NULL;
  return nth < s->first[entry + 1] - s->first[entry] ? &s->group[s->first[entry] + nth] : NULL;
}

const mgrid_group *mgrid_state_group(const mgrid_state *s, const char *family, mgrid_error *err) {
  return mgrid_state_group_nth(s, family, 0, err);
}

/* =================================================================== a group */

const char *mgrid_group_family(const mgrid_group *g) { return g ? g->name : NULL; }
int64_t mgrid_group_position(const mgrid_group *g) { return g ? g->position : -1; }
int64_t mgrid_group_size(const mgrid_group *g) { return g ? g->size : -1; }
int64_t mgrid_group_index(const mgrid_group *g) { return g ? g->index : -1; }

int64_t mgrid_group_at(const mgrid_group *g, int64_t position) {
  return g ? mgrid_family_rank(g->family, g->index, position) : -1;
}

int64_t mgrid_group_beside(const mgrid_group *g, int64_t steps, bool wrap) {
  if (!g) return -1;
  if (wrap) return mgrid_group_at(g, (g->position + steps % g->size + g->size) % g->size);
  return steps < -g->position || steps >= g->size - g->position
             ? -1
             : mgrid_group_at(g, g->position + steps);
}

int64_t mgrid_group_position_of(const mgrid_group *g, int64_t rank) {
  int64_t group, position;
  for (int64_t nth = 0; g && mgrid_family_locate(g->family, rank, nth, &group, &position); nth++)
    if (group == g->index) return position;
  return -1;
}

mgrid_status mgrid_group_segment(const mgrid_group *g, size_t n, const int64_t *sizes,
                                 mgrid_segment *out, mgrid_error *err) {
  if (!g) return MGRID_USAGE;
  mgrid_segment s = MGRID_SEGMENT_INIT;
  int64_t fill;
  mgrid_status status = mgrid_struct_check(out, sizeof s, "mgrid_segment", err);
  if (!status) status = mgrid_segments_check(g->size, n, sizes, &fill, err);
  if (status) return status;
  s.start = s.index = 0;
  for (s.members = sizes[0] == MGRID_FILL ? fill : sizes[0]; s.start + s.members <= g->position;) {
    s.start += s.members;
    s.members = sizes[++s.index] == MGRID_FILL ? fill : sizes[s.index];
  }
  s.position = g->position - s.start;
  s.first = mgrid_group_at(g, s.start);
  s.last = mgrid_group_at(g, s.start + s.members - 1);
  s.next = mgrid_group_at(g, s.start + (s.position + 1) % s.members);
  s.prev = mgrid_group_at(g, s.start + (s.position + s.members - 1) % s.members);
  mgrid_struct_write(out, &s, sizeof s);
  return MGRID_OK;
}

mgrid_status mgrid_group_shift(const mgrid_group *g, const char *dim, int64_t displacement,
                               int64_t *source, int64_t *dest, mgrid_error *err) {
  if (source) *source = -1;
  if (dest) *dest = -1;
  if (!g || mgrid_lacks(dim, "the dim", err)) return MGRID_USAGE;
  const mgrid_content *c = &g->state->plan->content;
  const mgrid_shape *shape = c->entry[mgrid_content_find(c, g->name)].choice->shape;
  if (!shape)
    return mgrid_fail(err, MGRID_REFUSED,
                      "family '%s' has no Cartesian shape: it lacks the option 'cartesian'",
                      g->name);
  int i = mgrid_shape_find(shape, dim, err);
  if (i < 0) return MGRID_UNKNOWN_NAME;
  if (source) *source = mgrid_shape_step(shape, g->position, i, displacement, true);
  if (dest) *dest = mgrid_shape_step(shape, g->position, i, displacement, false);
  return MGRID_OK;
}

int64_t mgrid_group_launch_order(const mgrid_group *g) {
  return g ? mgrid_plan_launch(g->state->plan, g->state->view.member[g - g->state->group].entry,
                               g->index)
           : -1;
}

int64_t mgrid_group_ranks(const mgrid_group *g, size_t cap, int64_t *out) {
  return g ? mgrid_family_members(g->family, g->index, 1, cap, out) : -1;
}

void *mgrid_group_native(const mgrid_group *g) {
  return g && g->comm && g->comm->real ? g->comm->native : NULL;
}

mgrid_native mgrid_group_native_kind(const mgrid_group *g) {
  return mgrid_group_native(g) ? g->comm->backend->native : MGRID_NATIVE_NONE;
}

const char *mgrid_group_backend(const mgrid_group *g) {
  return !g ? "" : g->none ? "none" : g->comm ? g->comm->backend->name : "";
}

mgrid_status mgrid_group_window(const mgrid_group *g, const char *name, mgrid_nccl_window *out,
                                mgrid_error *err) {
  if (!g || mgrid_lacks(name, "the name of the window", err)) return MGRID_USAGE;
  mgrid_nccl_window w = MGRID_NCCL_WINDOW_INIT;
  const mgrid_content *c = &g->state->plan->content;
  const mgrid_numbers *known = c->entry[mgrid_content_find(c, g->name)].choice->windows;
  const char *names[MGRID_NUMBERS_MAX];
  size_t n = known ? known->n : 0, i = 0;
  mgrid_status s = mgrid_struct_check(out, sizeof w, "mgrid_nccl_window", err);
  if (s) return s;
  for (size_t k = 0; k < n; k++) names[k] = known->at[k].name;
  while (i < n && strcmp(names[i], name) != 0) i++;
  if (i == n) {
    char tail[512] = "";
    mgrid_suggest(tail, sizeof tail, name, names, n);
    return mgrid_fail(err, MGRID_UNKNOWN_NAME, "family '%s' has no window '%s'%s", g->name, name,
                      tail);
  }
  if (mgrid_group_native(g) && g->comm->backend->has_windows)
    g->state->backend->ops->window(g->state->backend, g->comm->native, i, &w);
  mgrid_struct_write(out, &w, sizeof w);
  return MGRID_OK;
}

const void *mgrid_group_device(const mgrid_group *g, int *version) {
  int which = 0;
  const void *device =
      mgrid_group_native(g) && g->comm->backend->has_windows
          ? g->state->backend->ops->device(g->state->backend, g->comm->native, &which)
          : NULL;
  if (version) *version = which;
  return device;
}

const mgrid_descriptor *mgrid_group_kind(const mgrid_group *g) {
  return g->comm ? g->comm->backend : g->state->backend->kind;
}

mgrid_status mgrid_group_work(const mgrid_group *g, const mgrid_work *w, mgrid_error *err) {
  mgrid_backend *b = g->state->backend;
  if (g->none)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "%s has no communicator: the backend of its family is 'none'", g->name);
  if (!b->ops->collective)
    return mgrid_fail(err, MGRID_UNSUPPORTED, "%s: a %s state has no communicators", g->name,
                      b->kind->name);
  if (g->comm && !g->comm->real)
    return mgrid_fail(
        err, MGRID_NOT_NOW,
        "%s is lazy and not created yet; state:create, in C mgrid_state_create, makes it", g->name);
  if (g->comm) return mgrid_pool_work(b, g->comm, w, err);
  const mgrid_comm_spec alone = { .name = g->name, .backend = b->kind, .size = 1 };
  return mgrid_status_of(b->ops->collective(b, &alone, NULL, w, err));
}

/* ====================================================== coordinates in grids */

/* Return the grid of this name. If there is none, fail and suggest the nearest name. */
static const mgrid_grid *named_grid(const mgrid_state *s, const char *name, mgrid_error *err) {
  const mgrid_grid *g = mgrid_plan_grid(s->plan, name);
  if (g || mgrid_lacks(name, "the name of the grid", err)) return g;
  const mgrid_content *c = &s->plan->content;
  const char *known[MGRID_DIMS_MAX];
  char tail[512];
  size_t n = 0;
  for (; n < c->ngrids && n < MGRID_DIMS_MAX; n++) known[n] = c->grid[n].name;
  mgrid_suggest(tail, sizeof tail, name, known, n);
  return mgrid_null(err, MGRID_UNKNOWN_NAME, "unknown grid '%s'%s", name, tail);
}

int64_t mgrid_state_coord(const mgrid_state *s, const char *grid, const char *dim,
                          mgrid_error *err) {
  const mgrid_grid *g = s ? named_grid(s, grid, err) : NULL;
  int64_t d = g ? mgrid_grid_require(g, dim, err) : -1;
  return d < 0 ? -1 : mgrid_grid_coord(g, s->view.rank, (size_t)d);
}

mgrid_grid *mgrid_state_submesh(const mgrid_state *s, const char *grid, size_t n,
                                const char *const *dims, mgrid_error *err) {
  const mgrid_grid *g = s ? named_grid(s, grid, err) : NULL;
  int64_t coords[MGRID_DIMS_MAX];
  if (!g || mgrid_grid_around(g, s->view.rank, n, dims, coords, err)) return NULL;
  return mgrid_grid_position(g, s->view.rank) < 0 ? NULL : mgrid_grid_at(g, coords, err);
}
