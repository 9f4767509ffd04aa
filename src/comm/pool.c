/* SPDX-License-Identifier: MIT
**
** pool.c - the communicators of a backend on this rank, shared by equal groups of one state
** or of several. All members of a group share it alike: they see the same plans in the same
** order, so finding it here is the same answer on each of them.
*/
#include "comm/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static void drop(mg_shared *c) {
  free(c->name);
  free(c->config);
  free(c->ranks);
  free(c);
}

static mg_shared *find(mg_backend *b, const mg_shared *wanted) {
  for (mg_shared *c = b->pool; c; c = c->next)
    if (!c->unique && c->hash == wanted->hash && c->size == wanted->size && strcmp(c->config, wanted->config) == 0 &&
        memcmp(c->ranks, wanted->ranks, (size_t)c->size * sizeof *c->ranks) == 0)
      return c;
  return NULL;
}

static char *text_of(mg_text *t) { return t->failed ? NULL : t->data ? t->data : mg_strdup(""); }

mg_shared *mg_pool_take(mg_backend *b, const mg_plan *p, const mg_creation *made, const char *state,
                        mg_error *err) {
  const mg_entry *e = &p->content.entry[made->entry];
  mg_shared      *c = calloc(1, sizeof *c);
  mg_text         name = { 0 }, config = { 0 };
  if (!c) return mg_null_oom(err);
  mg_text_add(&name, "%s%s%s[%" PRId64 "]", state, *state ? "/" : "", e->name, made->group);
  mg_choice_text(&e->choice, true, &config);
  c->users = 1;
  c->unique = e->choice.unique;
  c->size = made->size, c->position = made->position;
  c->tag = (int)((made->entry * 64 + made->round) % 32768); /* MPI promises tags up to 32767 */
  c->name = text_of(&name);
  c->config = text_of(&config);
  c->ranks = malloc((size_t)c->size * sizeof *c->ranks);
  if (!c->name || !c->config || !c->ranks) {
    if (!c->name) mg_text_free(&name);
    if (!c->config) mg_text_free(&config);
    drop(c);
    return mg_null_oom(err);
  }
  mg_family_members(e->family, made->group, c->ranks);
  c->hash = XXH3_64bits(c->ranks, (size_t)c->size * sizeof *c->ranks);
  mg_shared *there = c->unique ? NULL : find(b, c);
  if (there) {
    there->users++;
    drop(c);
    return there;
  }
  c->next = b->pool;
  b->pool = c;
  return c;
}

size_t mg_backend_ncomms(const mg_backend *b) {
  size_t n = 0;
  for (const mg_shared *c = b->pool; c; c = c->next) n += c->real;
  return n;
}

static mg_comm_spec spec_of(const mg_shared *c) {
  return (mg_comm_spec){ c->name, c->config, c->ranks, c->size, c->position, c->tag };
}

mg_status mg_pool_create(mg_backend *b, mg_shared *c, mg_error *err) {
  if (c->real) return MG_OK;
  mg_comm_spec spec = spec_of(c);
  mg_status    s = b->ops->create(b, &spec, &c->native, err);
  c->real = s == MG_OK;
  return s;
}

mg_status mg_pool_prove(mg_backend *b, mg_shared *c, mg_error *err) {
  mg_comm_spec spec = spec_of(c);
  return b->ops->prove(b, &spec, c->native, err);
}

void mg_pool_release(mg_backend *b, mg_shared *c) {
  if (!c || --c->users > 0) return;
  for (mg_shared **at = &b->pool; *at; at = &(*at)->next)
    if (*at == c) {
      *at = c->next;
      break;
    }
  if (c->real) b->ops->destroy(b, c->native);
  drop(c);
}
