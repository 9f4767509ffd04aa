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
  mg_family_free(c->family);
  free(c->name);
  free(c->config);
  free(c->nccl);
  free(c->ranks);
  free(c);
}

static bool same_members(const mg_shared *a, const mg_shared *b) {
  return a->hash == b->hash && a->size == b->size && mg_same_group(a->family, a->group, b->family, b->group);
}

static mg_shared *find(mg_backend *b, const mg_shared *wanted) {
  for (mg_shared *c = b->pool; c; c = c->next)
    if (!c->unique && strcmp(c->config, wanted->config) == 0 && same_members(c, wanted)) return c;
  return NULL;
}

static char *text_of(mg_text *t) { return t->failed ? NULL : t->data ? t->data : mg_strdup(""); }

static uint64_t hash_of(const mg_shared *c) {
  const int64_t some[3] = { c->size, mg_family_rank(c->family, c->group, 0),
                            mg_family_rank(c->family, c->group, c->size - 1) };
  return XXH3_64bits(some, sizeof some);
}

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
  c->family = mg_family_ref(e->family);
  c->group = made->group;
  c->size = made->size, c->position = made->position;
  c->tag = (int)((made->entry * 64 + made->round) % 32768); /* MPI promises tags up to 32767 */
  c->backend = *e->choice.backend ? e->choice.backend : b->ops->name;
  c->nccl = mg_strdup(e->choice.nccl);
  c->timeout = (double)e->choice.timeout_us / 1e6;
  c->high_priority = e->choice.high_priority;
  c->hash = hash_of(c);
  c->name = text_of(&name);
  c->config = text_of(&config);
  mg_shared *there = c->unique || b->whole || !c->config ? NULL : find(b, c);
  if (!there && b->ops->lists) c->ranks = malloc((size_t)c->size * sizeof *c->ranks);
  if (!c->name || !c->config || !c->nccl || (!there && b->ops->lists && !c->ranks)) {
    if (!c->name) mg_text_free(&name);
    if (!c->config) mg_text_free(&config);
    drop(c);
    return mg_null_oom(err);
  }
  if (there) {
    there->users++;
    drop(c);
    return there;
  }
  if (c->ranks) mg_family_members(c->family, c->group, c->ranks);
  c->next = b->pool;
  b->pool = c;
  return c;
}

size_t mg_backend_ncomms(const mg_backend *b) {
  size_t n = 0;
  for (const mg_shared *c = b->pool; c; c = c->next) n += c->real;
  return n;
}

/* ------------------------------------------------------------------- creation */

mg_status mg_batch_init(mg_batch *batch, size_t room, mg_error *err) {
  batch->n = 0;
  batch->entry = malloc((room + 1) * sizeof *batch->entry);
  batch->spec = malloc((room + 1) * sizeof *batch->spec);
  batch->native = malloc((room + 1) * sizeof *batch->native);
  return batch->entry && batch->spec && batch->native ? MG_OK : mg_oom(err);
}

void mg_batch_free(mg_batch *batch) {
  free(batch->entry);
  free(batch->spec);
  free(batch->native);
  memset(batch, 0, sizeof *batch);
}

static mg_comm_spec spec_of(const mg_shared *c) {
  return (mg_comm_spec){ c->name, c->backend, c->nccl, c->timeout, c->high_priority, c->ranks, c->size, c->position,
                         c->group, c->tag };
}

void mg_batch_add(mg_batch *batch, mg_shared *c) {
  if (c->real) return;
  size_t n = batch->n++;
  batch->entry[n] = c;
  batch->spec[n] = spec_of(c);
  batch->native[n] = NULL;
}

void mg_batch_add_absent(mg_batch *batch, const char *family, const char *backend) {
  size_t n = batch->n++;
  batch->entry[n] = NULL;
  batch->spec[n] = (mg_comm_spec){ .name = family, .backend = backend, .nccl = "", .position = -1, .group = -1 };
  batch->native[n] = NULL;
}

mg_status mg_pool_check(mg_backend *b, mg_batch *batch, mg_error *err) {
  return b->ops->check(b, batch->n, batch->spec, err);
}

mg_status mg_pool_create(mg_backend *b, mg_batch *batch, mg_error *err) {
  b->epoch++;
  mg_status s = b->ops->create(b, batch->n, batch->spec, batch->native, err);
  for (size_t i = 0; i < batch->n; i++) {
    if (!batch->entry[i]) continue;
    batch->entry[i]->native = batch->native[i];
    batch->entry[i]->real = s == MG_OK || batch->native[i];
  }
  return s;
}

void mg_pool_undo(mg_backend *b, mg_batch *batch) {
  size_t made = 0;
  for (size_t i = batch->n; i > 0; i--) {
    mg_shared *c = batch->entry[i - 1];
    if (!c) continue;
    if (c->real && c->native) batch->native[made++] = c->native;
    c->real = false;
    c->native = NULL;
  }
  if (made > 0) (b->ops->abort ? b->ops->abort : b->ops->destroy)(b, made, batch->native);
}

/* MG_GAVE_UP is for verdicts: who asks for more has a failure of the backend. */
static mg_status own_status(mg_status s) { return s == MG_GAVE_UP ? MG_BACKEND : s; }

mg_status mg_pool_shrink(mg_backend *b, mg_shared *c, const mg_shared *from, int n, const int *positions,
                         mg_error *err) {
  mg_comm_spec spec = spec_of(c);
  if (!b->ops->shrink || strcmp(c->backend, "nccl") != 0)
    return mg_fail(err, MG_BACKEND, "%s: a communicator of %s cannot shrink, only NCCL's can", c->name, c->backend);
  if (!from->real || !from->native) return mg_fail(err, MG_USAGE, "%s: there is no communicator to shrink", c->name);
  mg_status s = b->ops->shrink(b, &spec, from->native, n, positions, &c->native, err);
  c->real = s == MG_OK;
  return own_status(s);
}

mg_status mg_pool_revoke(mg_backend *b, const mg_shared *c, mg_error *err) {
  mg_comm_spec spec = spec_of(c);
  if (!c->real || !c->native || strcmp(c->backend, "nccl") != 0 || !b->ops->revoke) return MG_OK;
  return own_status(b->ops->revoke(b, &spec, c->native, err));
}

mg_status mg_pool_prove(mg_backend *b, const mg_shared *c, mg_error *err) {
  mg_comm_spec spec = spec_of(c);
  return b->ops->prove(b, &spec, c->native, err);
}

mg_status mg_pool_work(mg_backend *b, const mg_shared *c, const mg_work *w, mg_error *err) {
  mg_comm_spec spec = spec_of(c);
  return own_status(b->ops->collective(b, &spec, c->native, w, err));
}

void mg_pool_lose(mg_backend *b, mg_shared *c) {
  if (c->real && c->native && b->ops->lose && strcmp(c->backend, b->ops->name) == 0) b->ops->lose(b, c->native);
}

static void unlink_entry(mg_backend *b, const mg_shared *c) {
  for (mg_shared **at = &b->pool; *at; at = &(*at)->next)
    if (*at == c) {
      *at = c->next;
      return;
    }
}

void mg_pool_release(mg_backend *b, size_t n, mg_shared **c, mg_batch *batch) {
  size_t made = 0;
  for (size_t i = n; i > 0; i--) { /* the last one made goes first */
    mg_shared *one = c[i - 1];
    if (!one || --one->users > 0) continue;
    unlink_entry(b, one);
    if (one->real && one->native) batch->native[made++] = one->native;
    drop(one);
  }
  if (made > 0) b->ops->destroy(b, made, batch->native);
}
