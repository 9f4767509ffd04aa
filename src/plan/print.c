/* SPDX-License-Identifier: MIT
**
** print.c - the plan as text: the canonical form, its digest, the schedule.
*/
#include "plan/plan.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

/* Hand the text on; its memory is used again. */
static mg_status flush(mg_text *t, mg_sink sink, void *ud, mg_error *err) {
  if (t->failed) return mg_oom(err);
  if (t->len > 0 && sink(ud, t->data, t->len) != 0)
    return mg_fail(err, MG_LIMIT, "the output could not be written");
  t->len = 0;
  return MG_OK;
}

mg_status mg_plan_head_text(const mg_plan *p, mg_text *t, mg_error *err) {
  const mg_content *c = &p->content;
  char              grid[MG_DIMS_MAX * 64];
  mg_text_str(t, "moongrid 1\nworld ");
  mg_text_int(t, c->world);
  for (size_t i = 0; i < c->nparams; i++) {
    mg_text_str(t, "\nparam ");
    mg_text_str(t, c->param[i].name);
    mg_text_str(t, " = ");
    mg_text_str(t, c->param[i].value);
  }
  for (size_t i = 0; i < c->ngrids; i++) {
    mg_grid_describe(c->grid[i].grid, grid, sizeof grid);
    mg_text_str(t, "\ngrid ");
    mg_text_str(t, c->grid[i].name);
    mg_text_str(t, ": ");
    mg_text_str(t, grid);
  }
  mg_text_str(t, "\n");
  return t->failed ? mg_oom(err) : MG_OK;
}

mg_status mg_plan_entry_text(const mg_plan *p, size_t i, mg_text *t, mg_error *err) {
  const mg_entry *e = &p->content.entry[i];
  mg_text_str(t, "family ");
  mg_text_str(t, e->name);
  mg_text_str(t, ": ");
  mg_family_text(e->family, t);
  mg_choice_text(&e->choice, false, t);
  mg_text_str(t, "\n");
  return t->failed ? mg_oom(err) : MG_OK;
}

mg_status mg_plan_print(const mg_plan *p, mg_sink sink, void *ud, mg_error *err) {
  if (!p) return MG_USAGE;
  mg_text   t = { 0 };
  mg_status s = mg_plan_head_text(p, &t, err);
  if (!s) s = flush(&t, sink, ud, err);
  for (size_t i = 0; i < p->content.nentries && !s; i++) {
    s = mg_plan_entry_text(p, i, &t, err);
    if (!s) s = flush(&t, sink, ud, err);
  }
  mg_text_free(&t);
  return s;
}

/* ------------------------------------------------------------------ digest */

static int hash_piece(void *state, const char *text, size_t len) {
  return XXH3_128bits_update(state, text, len) == XXH_OK ? 0 : 1;
}

mg_status mg_plan_take_digest(mg_plan *p, mg_error *err) {
  XXH3_state_t *state = XXH3_createState();
  if (!state) return mg_oom(err);
  XXH3_128bits_reset(state);
  mg_status s = mg_plan_print(p, hash_piece, state, err);
  XXH128_hash_t h = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  p->digest[0] = h.high64;
  p->digest[1] = h.low64;
  return s;
}

void mg_plan_digest(const mg_plan *p, char out[33]) {
  snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, p->digest[0], p->digest[1]);
}

/* ---------------------------------------------------------------- schedule */

static mg_status print_all_steps(const mg_plan *p, mg_sink sink, void *ud, mg_error *err) {
  int       step = 0;
  mg_text   t = { 0 };
  mg_status s = MG_OK;
  for (size_t k = 0; k < p->content.nentries && !s; k++) {
    const mg_entry *e = &p->content.entry[p->order[k]];
    const mg_family *f = e->family;
    if (f->max_size < 2) {
      mg_text_add(&t, "       %-16s groups of one rank: no communicator\n", e->name);
    } else if (p->shares[p->order[k]] >= 0) {
      mg_text_add(&t, "       %-16s shares with %s\n", e->name, p->content.entry[p->shares[p->order[k]]].name);
    } else {
      int64_t rounds = mg_family_rounds(f);
      for (int64_t r = 0; r < rounds; r++) {
        int64_t led = mg_plan_led(p, p->order[k], rounds > 1 ? r : -1);
        if (led == 0) continue; /* every group of the round is led by an earlier one */
        mg_text_add(&t, "%5d  %-16s ", step++, e->name);
        if (rounds > 1) mg_text_add(&t, "round %" PRId64 ": ", r);
        mg_text_add(&t, "%" PRId64 " communicators at once, ", led);
        if (f->size >= 0)
          mg_text_add(&t, "%" PRId64 " ranks each%s\n", f->size, e->choice.lazy ? ", when asked for" : "");
        else
          mg_text_add(&t, "up to %" PRId64 " ranks%s\n", f->max_size, e->choice.lazy ? ", when asked for" : "");
      }
    }
    s = flush(&t, sink, ud, err);
  }
  mg_text_free(&t);
  return s;
}

static mg_status print_rank_steps(const mg_plan *p, int64_t rank, mg_sink sink, void *ud, mg_error *err) {
  mg_view   v;
  mg_text   t = { 0 };
  mg_status s = mg_view_init(&v, p, rank, err);
  for (size_t i = 0; i < v.ncomms && !s; i++) {
    const mg_creation *c = &v.comm[i];
    mg_text_add(&t, "%5zu  %s[%" PRId64 "] as %" PRId64 " of %" PRId64 ", for:", i, p->content.entry[c->entry].name,
                c->group, c->position, c->size);
    for (size_t m = 0; m < v.nmembers; m++)
      if (v.member[m].comm == (int)i) mg_text_add(&t, " %s", p->content.entry[v.member[m].entry].name);
    mg_text_add(&t, "\n");
    s = flush(&t, sink, ud, err);
  }
  mg_text_free(&t);
  mg_view_free(&v);
  return s;
}

mg_status mg_plan_print_schedule(const mg_plan *p, int64_t rank, mg_sink sink, void *ud, mg_error *err) {
  if (!p) return MG_USAGE;
  return rank < 0 ? print_all_steps(p, sink, ud, err) : print_rank_steps(p, rank, sink, ud, err);
}
