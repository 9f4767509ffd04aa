/* SPDX-License-Identifier: MIT
**
** pool.c - the pool: this rank's communicators of a backend. Groups with the same members and
** options share one communicator, in one state or in several. Ranks need no messages to agree which
** groups share: all members see the same plans in the same order, so each finds the same
** communicator in its own pool.
*/
#include "comm/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static size_t ranks_bytes(const mgrid_shared *c) { return (size_t)c->size * sizeof *c->ranks; }

static void pool_drop(mgrid_backend *b, mgrid_shared *c) {
  mgrid_family_free(c->family);
  mgrid_choice_free(c->options);
  free(c->name);
  if (c->ranks) mgrid_realloc(&b->hooks, c->ranks, ranks_bytes(c), 0);
  mgrid_realloc(&b->hooks, c, sizeof *c, 0);
}

static bool pool_same_members(const mgrid_shared *a, const mgrid_shared *b) {
  return a->hash == b->hash && a->size == b->size
         && mgrid_same_group(a->family, a->group, b->family, b->group);
}

static mgrid_shared *pool_find(mgrid_backend *b, const mgrid_shared *wanted) {
  /* with such options (`unique`, windows, ...) a group shares with no other group */
  if (!mgrid_choice_shares(wanted->options, wanted->options)) return NULL;
  for (mgrid_shared *c = b->pool; c; c = c->next)
    if (mgrid_choice_shares(c->options, wanted->options) && pool_same_members(c, wanted)) return c;
  return NULL;
}

static uint64_t pool_hash_of(const mgrid_shared *c) {
  const int64_t some[3] = { c->size, mgrid_family_rank(c->family, c->group, 0),
                            mgrid_family_rank(c->family, c->group, c->size - 1) };
  return XXH3_64bits(some, sizeof some);
}

mgrid_shared *mgrid_pool_take(mgrid_backend *b, const mgrid_plan *p, const mgrid_creation *made,
                              const char *state, mgrid_error *err) {
  const mgrid_entry *e = &p->content.entry[made->entry];
  mgrid_shared *c = mgrid_zeroed(&b->hooks, sizeof *c);
  mgrid_text name = { 0 };

  if (!c) return mgrid_null_oom(err);
  mgrid_text_add(&name, "%s%s%s[%" PRId64 "]", state, *state ? "/" : "", e->name, made->group);
  c->users = 1;
  c->name = name.data; /* pool_drop frees it */
  c->options = mgrid_choice_ref(e->choice);
  c->family = mgrid_family_ref(e->family);
  c->group = made->group;
  c->size = made->size, c->position = made->position;
  c->tag = (int)((made->entry * 64 + made->round) % 32768); /* MPI promises tags only up to 32767 */
  c->backend = e->choice->backend ? e->choice->backend : b->kind;
  c->hash = pool_hash_of(c);
  mgrid_shared *there = b->whole ? NULL : pool_find(b, c);
  if (!there && b->kind->lists) c->ranks = mgrid_realloc(&b->hooks, NULL, 0, ranks_bytes(c));
  if (name.failed || (!there && b->kind->lists && !c->ranks)) {
    pool_drop(b, c);
    return mgrid_null_oom(err);
  }
  if (there) {
    there->users++;
    pool_drop(b, c);
    return there;
  }
  if (c->ranks) mgrid_family_group(c->family, c->group, c->ranks);
  c->next = b->pool;
  if (b->pool) b->pool->before = c;
  b->pool = c;
  return c;
}

size_t mgrid_backend_ncomms(const mgrid_backend *b) {
  size_t n = 0;
  for (const mgrid_shared *c = b ? b->pool : NULL; c; c = c->next) n += c->real;
  return n;
}

/* ------------------------------------------------------------------- creation */

mgrid_status mgrid_batch_init(mgrid_batch *batch, const mgrid_hooks *h, size_t room,
                              mgrid_error *err) {
  batch->n = 0, batch->room = room + 1;
  batch->entry = mgrid_realloc(h, NULL, 0, batch->room * sizeof *batch->entry);
  batch->spec = mgrid_realloc(h, NULL, 0, batch->room * sizeof *batch->spec);
  batch->native = mgrid_realloc(h, NULL, 0, batch->room * sizeof *batch->native);
  return batch->entry && batch->spec && batch->native ? MGRID_OK : mgrid_oom(err);
}

void mgrid_batch_free(mgrid_batch *batch, const mgrid_hooks *h) {
  if (batch->entry) mgrid_realloc(h, batch->entry, batch->room * sizeof *batch->entry, 0);
  if (batch->spec) mgrid_realloc(h, batch->spec, batch->room * sizeof *batch->spec, 0);
  if (batch->native) mgrid_realloc(h, batch->native, batch->room * sizeof *batch->native, 0);
  memset(batch, 0, sizeof *batch);
}

static mgrid_comm_spec pool_spec_of(const mgrid_shared *c) {
  return (mgrid_comm_spec){ c->name,     c->backend, c->options, c->ranks,  c->size,
                            c->position, c->group,   c->tag,     .turn = -1 };
}

void mgrid_batch_add(mgrid_batch *batch, mgrid_shared *c, int64_t turn) {
  if (c->real) return;
  size_t n = batch->n++;
  batch->entry[n] = c;
  batch->spec[n] = pool_spec_of(c);
  batch->spec[n].turn = turn;
  batch->native[n] = NULL;
}

void mgrid_batch_add_absent(mgrid_batch *batch, const mgrid_entry *family,
                            const mgrid_descriptor *backend) {
  size_t n = batch->n++;
  batch->entry[n] = NULL;
  batch->spec[n] = (mgrid_comm_spec){
    .name = family->name, .backend = backend, .options = family->choice, .position = -1, .group = -1
  };
  batch->native[n] = NULL;
}

mgrid_status mgrid_pool_check(mgrid_backend *b, mgrid_batch *batch, mgrid_error *err) {
  return b->ops->check(b, batch->n, batch->spec, err);
}

void mgrid_pool_count(mgrid_backend *b) { b->epoch = ++(b->carrier ? b->carrier : b)->creations; }

mgrid_outcome mgrid_batch_keep(mgrid_batch *batch, size_t n, mgrid_outcome s) {
  for (size_t i = 0; i < n; i++) {
    if (!batch->entry[i]) continue;
    batch->entry[i]->native = batch->native[i];
    batch->entry[i]->real = s == MGRID_OK || batch->native[i];
  }
  return s;
}

mgrid_outcome mgrid_pool_create(mgrid_backend *b, mgrid_batch *batch, mgrid_error *err) {
  mgrid_pool_count(b);
  mgrid_outcome s = b->ops->create(b, batch->n, batch->spec, batch->native, err);
  return mgrid_batch_keep(batch, batch->n, s);
}

mgrid_status mgrid_pool_single(mgrid_backend *b, mgrid_shared *c, mgrid_error *err) {
  mgrid_comm_spec spec = pool_spec_of(c);
  if (c->real) return MGRID_OK;
  mgrid_status s = b->single(b, &spec, &c->native, err);
  c->real = s == MGRID_OK;
  return s;
}

void mgrid_pool_log(mgrid_backend *b, const mgrid_batch *batch) {
  for (size_t i = 0; i < batch->n; i++)
    if (batch->entry[i])
      mgrid_log(&b->hooks, MGRID_LOG_DEBUG, "%s: made by %s, %" PRId64 " of %" PRId64,
                batch->spec[i].name, batch->spec[i].backend->name, batch->spec[i].position,
                batch->spec[i].size);
}

void mgrid_pool_undo(mgrid_backend *b, mgrid_batch *batch) {
  size_t made = 0;
  for (size_t i = batch->n; i > 0; i--) {
    mgrid_shared *c = batch->entry[i - 1];
    if (!c) continue;
    if (c->real && c->native) batch->native[made++] = c->native;
    c->real = false;
    c->native = NULL;
  }
  if (made > 0) (b->ops->abort ? b->ops->abort : b->ops->destroy)(b, made, batch->native);
}

mgrid_status mgrid_pool_shrink(mgrid_backend *b, mgrid_shared *c, const mgrid_shared *from, int n,
                               const int *positions, mgrid_error *err) {
  mgrid_comm_spec spec = pool_spec_of(c);
  if (!b->ops->shrink || !c->backend->shrinks)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "%s: a communicator of %s cannot shrink, only NCCL's can", c->name,
                      c->backend->name);
  if (!from->real || !from->native)
    return mgrid_fail(err, MGRID_NOT_NOW, "%s: there is no communicator to shrink", c->name);
  mgrid_outcome s = MGRID_OK;
  /* communicators that are not lazy were checked with their state */
  if (c->options->asked.lazy) s = b->ops->check(b, 1, &spec, err);
  if (!s) s = b->ops->shrink(b, &spec, from->native, n, positions, &c->native, err);
  c->real = s == MGRID_OK;
  return mgrid_status_of(s);
}

mgrid_status mgrid_pool_revoke(mgrid_backend *b, size_t n, mgrid_shared **c, mgrid_batch *batch,
                               mgrid_error *err) {
  size_t some = 0;
  for (size_t i = 0; i < n; i++)
    if (c[i]->real && c[i]->native && c[i]->backend->revokes
        && mgrid_same_backend(c[i]->backend, b->kind))
      batch->native[some++] = c[i]->native;
  return some > 0 ? b->ops->revoke(b, some, batch->native, err) : MGRID_OK;
}

mgrid_outcome mgrid_pool_prove(mgrid_backend *b, const mgrid_shared *c, mgrid_error *err) {
  mgrid_comm_spec spec = pool_spec_of(c);
  return b->ops->prove(b, &spec, c->native, err);
}

mgrid_status mgrid_pool_work(mgrid_backend *b, const mgrid_shared *c, const mgrid_work *w,
                             mgrid_error *err) {
  mgrid_comm_spec spec = pool_spec_of(c);
  return mgrid_status_of(b->ops->collective(b, &spec, c->native, w, err));
}

mgrid_outcome mgrid_pool_together(mgrid_backend *b, size_t n, mgrid_shared *const *c,
                                  const mgrid_work *w, double seconds, mgrid_error *err) {
  mgrid_comm_spec spec[MGRID_TOGETHER_MAX];
  mgrid_together call[MGRID_TOGETHER_MAX];
  if (!b->ops->together)
    return mgrid_fail(err, MGRID_UNSUPPORTED, "%s begins no calls together", b->kind->name);
  if (n > MGRID_TOGETHER_MAX)
    return mgrid_fail(err, MGRID_LIMIT, "%zu calls together; at most %d", n, MGRID_TOGETHER_MAX);
  for (size_t i = 0; i < n; i++) {
    spec[i] = pool_spec_of(c[i]);
    call[i] = (mgrid_together){ &spec[i], c[i]->native, w[i] };
  }
  return b->ops->together(b, n, call, seconds, err);
}

mgrid_outcome mgrid_pool_begin(mgrid_backend *b, int stream, size_t n, mgrid_shared *const *c,
                               const mgrid_work *w, uint64_t tag, double seconds,
                               mgrid_error *err) {
  mgrid_comm_spec spec[MGRID_TOGETHER_MAX];
  mgrid_together call[MGRID_TOGETHER_MAX];
  for (size_t i = 0; i < n; i++) {
    spec[i] = pool_spec_of(c[i]);
    call[i] = (mgrid_together){ &spec[i], c[i]->native, w[i] };
  }
  return b->ops->streams->begin(b, stream, n, call, tag, seconds, err);
}

void mgrid_pool_lose(mgrid_backend *b, mgrid_shared *c) {
  if (c->real && c->native && b->ops->lose) b->ops->lose(b, c->native);
}

static void unlink_entry(mgrid_backend *b, const mgrid_shared *c) {
  *(c->before ? &c->before->next : &b->pool) = c->next;
  if (c->next) c->next->before = c->before;
}

void mgrid_pool_release(mgrid_backend *b, size_t n, mgrid_shared **c, mgrid_batch *batch) {
  size_t made = 0;
  for (size_t i = n; i > 0; i--) { /* in the reverse order of creation */
    mgrid_shared *one = c[i - 1];
    if (!one || --one->users > 0) continue;
    unlink_entry(b, one);
    if (one->real && one->native) batch->native[made++] = one->native;
    mgrid_log(&b->hooks, MGRID_LOG_DEBUG, "%s: freed by its last user", one->name);
    pool_drop(b, one);
  }
  if (made > 0) b->ops->destroy(b, made, batch->native);
}
