/* SPDX-License-Identifier: MIT
**
** print.c - the plan as text: the canonical form, its digest, the schedule.
*/
#include "plan/plan.h"

#include <inttypes.h>
#include <xxhash.h>

mgrid_status mgrid_plan_head_text(const mgrid_plan *p, mgrid_text *t, mgrid_error *err) {
  const mgrid_content *c = &p->content;
  mgrid_text_str(t, "moongrid 1\nworld ");
  mgrid_text_int(t, c->world);
  for (size_t i = 0; i < c->nparams; i++) {
    mgrid_text_str(t, "\nparam ");
    mgrid_text_str(t, c->param[i].name);
    mgrid_text_str(t, " = ");
    mgrid_text_str(t, c->param[i].value);
  }
  for (size_t i = 0; i < c->ncalled; i++) {
    mgrid_text_str(t, "\nfunction ");
    mgrid_text_str(t, c->called[i].name);
    mgrid_text_str(t, " = ");
    mgrid_text_str(t, c->called[i].version);
  }
  for (size_t i = 0; i < c->ngrids; i++) {
    mgrid_text_str(t, "\ngrid ");
    mgrid_text_str(t, c->grid[i].name);
    mgrid_text_str(t, ": ");
    mgrid_grid_text(c->grid[i].grid, t);
  }
  for (size_t i = 0; i < c->nconcurrent; i++) {
    mgrid_text_str(t, "\nconcurrent ");
    mgrid_concurrent_text(&c->concurrent[i], " ", t);
  }
  for (size_t i = 0; i < c->nitems; i++) {
    if (mgrid_item_unread(&c->item[i])) continue;
    mgrid_text_str(t, "\n");
    mgrid_text_str(t, c->item[i].kind->name);
    mgrid_text_str(t, " ");
    mgrid_text_str(t, c->item[i].name);
    mgrid_text_str(t, ": ");
    c->item[i].kind->text(c->item[i].x, t);
  }
  mgrid_text_str(t, "\n");
  return t->failed ? mgrid_oom(err) : MGRID_OK;
}

mgrid_status mgrid_plan_entry_text(const mgrid_plan *p, size_t i, mgrid_text *t, mgrid_error *err) {
  const mgrid_entry *e = &p->content.entry[i];
  mgrid_text_str(t, "family ");
  mgrid_text_str(t, e->name);
  mgrid_text_str(t, ": ");
  mgrid_family_text(e->family, t);
  mgrid_text_str(t, e->choice->text);
  mgrid_text_str(t, "\n");
  return t->failed ? mgrid_oom(err) : MGRID_OK;
}

mgrid_status mgrid_plan_print(const mgrid_plan *p, mgrid_sink sink, void *ud, mgrid_error *err) {
  if (!p || mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  mgrid_text   t = { 0 };
  mgrid_status s = mgrid_plan_head_text(p, &t, err);
  if (!s) s = mgrid_text_flush(&t, sink, ud, err);
  for (size_t i = 0; i < p->content.nentries && !s; i++) {
    s = mgrid_plan_entry_text(p, i, &t, err);
    if (!s) s = mgrid_text_flush(&t, sink, ud, err);
  }
  mgrid_text_free(&t);
  return s;
}

int mgrid_plan_sharer(const mgrid_plan *p, int entry, int from) {
  for (size_t i = (size_t)from; i < p->content.nentries; i++)
    if (p->shares[i] == entry && p->content.entry[i].family->max_size > 1) return (int)i;
  return -1;
}

/* ------------------------------------------------------------------ digest */

static int hash_piece(void *state, const char *text, size_t len) {
  return XXH3_128bits_update(state, text, len) == XXH_OK ? 0 : 1;
}

mgrid_status mgrid_plan_take_digest(mgrid_plan *p, mgrid_error *err) {
  XXH3_state_t *state = XXH3_createState();
  if (!state) return mgrid_oom(err);
  XXH3_128bits_reset(state);
  mgrid_status  s = mgrid_plan_print(p, hash_piece, state, err);
  XXH128_hash_t h = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  p->digest[0] = h.high64;
  p->digest[1] = h.low64;
  return s;
}

void mgrid_plan_digest(const mgrid_plan *p, char out[33]) {
  if (out) snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, p ? p->digest[0] : 0, p ? p->digest[1] : 0);
}

/* ---------------------------------------------------------------- schedule */

static mgrid_status print_all_steps(const mgrid_plan *p, mgrid_sink sink, void *ud, mgrid_error *err) {
  int          step = 0;
  mgrid_text   t = { 0 };
  mgrid_status s = MGRID_OK;
  for (size_t k = 0; k < p->content.nentries && !s; k++) {
    const mgrid_entry  *e = &p->content.entry[p->order[k]];
    const mgrid_family *f = e->family;
    if (f->max_size < 2) {
      mgrid_text_add(&t, "       %-16s groups of one rank: no communicator\n", e->name);
    } else if (e->choice->none) {
      mgrid_text_add(&t, "       %-16s backend none: no communicator\n", e->name);
    } else if (p->shares[p->order[k]] >= 0) {
      mgrid_text_add(&t, "       %-16s shares with %s\n", e->name, p->content.entry[p->shares[p->order[k]]].name);
    } else {
      int64_t rounds = mgrid_family_rounds(f), of_round[MGRID_ROUNDS_MAX];
      mgrid_plan_led_by_round(p, p->order[k], of_round, NULL);
      for (int64_t r = 0; r < rounds; r++) {
        int64_t led = of_round[r];
        if (led == 0) continue; /* nothing to create: earlier groups lead the whole round */
        mgrid_text_add(&t, "%5d  %-16s ", step++, e->name);
        if (rounds > 1) mgrid_text_add(&t, "round %" PRId64 ": ", r);
        mgrid_text_add(&t, "%" PRId64 " communicator%s at once, ", led, mgrid_s_of(led));
        if (f->size >= 0)
          mgrid_text_add(&t, "%" PRId64 " ranks each%s\n", f->size, e->choice->asked.lazy ? ", when asked for" : "");
        else
          mgrid_text_add(&t, "up to %" PRId64 " ranks%s\n", f->max_size,
                         e->choice->asked.lazy ? ", when asked for" : "");
      }
    }
    s = mgrid_text_flush(&t, sink, ud, err);
  }
  mgrid_text_free(&t);
  return s;
}

static mgrid_status print_rank_steps(const mgrid_plan *p, int64_t rank, mgrid_sink sink, void *ud, mgrid_error *err) {
  mgrid_view   v;
  mgrid_text   t = { 0 };
  mgrid_status s = mgrid_view_init(&v, p, rank, err);
  for (size_t i = 0; i < v.ncomms && !s; i++) {
    const mgrid_creation *c = &v.comm[i];
    mgrid_text_add(&t, "%5zu  %s[%" PRId64 "] as %" PRId64 " of %" PRId64 ", for:", i, p->content.entry[c->entry].name,
                   c->group, c->position, c->size);
    for (size_t m = 0; m < v.nmembers; m++)
      if (v.member[m].comm == (int)i) mgrid_text_add(&t, " %s", p->content.entry[v.member[m].entry].name);
    mgrid_text_add(&t, "\n");
    s = mgrid_text_flush(&t, sink, ud, err);
  }
  mgrid_text_free(&t);
  mgrid_view_free(&v);
  return s;
}

mgrid_status mgrid_plan_print_schedule(const mgrid_plan *p, int64_t rank, mgrid_sink sink, void *ud, mgrid_error *err) {
  if (!p || mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  return rank < 0 ? print_all_steps(p, sink, ud, err) : print_rank_steps(p, rank, sink, ud, err);
}
