/* SPDX-License-Identifier: MIT
**
** backend.c - a backend as its host holds it: what it is, its hooks, what slices keep with it, and its users, of which the
** last one closes it.
*/
#include "comm/backend.h"

#include "comm/state.h"

const char *mgrid_backend_name(const mgrid_backend *b) { return b ? b->kind->name : NULL; }
int64_t     mgrid_backend_rank(const mgrid_backend *b) { return b ? b->rank : -1; }
int64_t     mgrid_backend_world(const mgrid_backend *b) { return b ? b->world : -1; }

mgrid_backend *mgrid_backend_ref(mgrid_backend *b) {
  if (b) b->users++;
  return b;
}

mgrid_status mgrid_backend_set_hooks(mgrid_backend *b, const mgrid_hooks *hooks, mgrid_error *err) {
  if (!b) return MGRID_USAGE;
  mgrid_hooks  h = MGRID_HOOKS_INIT;
  mgrid_status s = mgrid_layout_check(b->layout, "the backend's library", err);
  if (!s && b->hooks_fixed)
    s = mgrid_fail(err, MGRID_NOT_NOW, "the %s backend has had a state: hooks come before", b->kind->name);
  if (!s) s = mgrid_struct_read(&h, sizeof h, hooks, "mgrid_hooks", err);
  if (!s) b->hooks = h;
  return s;
}

void mgrid_backend_free(mgrid_backend *b) {
  if (!b || --b->users > 0) return;
  while (b->states) { /* abandoned ones; each counts as a user while it is freed */
    b->users += 2;
    mgrid_state_end(b->states);
    b->users--;
  }
  b->ops->close(b);
}
