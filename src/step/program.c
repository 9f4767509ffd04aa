/* SPDX-License-Identifier: MIT
**
** program.c - programs while they are written; the tree of questions that finds the class of a
** rank; budgets; the text and the digest of a step. src/promises.md says what the digest covers.
*/
#include "step/step.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ========================================================= what it may cost */

void mgrid_step_budget_begin(step_budget *b, const mgrid_limits *limits, const char *what) {
  *b = (step_budget){ mgrid_budget_new(limits->instructions, limits->seconds),
                      mgrid_budget_new(STEP_MEMORY_MAX, 0), limits, what };
}

bool mgrid_step_budget_hold(step_budget *b, size_t bytes) {
  b->work.exhausted |= !mgrid_spend(&b->memory, (int64_t)bytes);
  return !b->memory.exhausted;
}

mgrid_status mgrid_step_budget_spent(const step_budget *b, mgrid_error *err) {
  if (b->memory.exhausted)
    return mgrid_fail(err, MGRID_LIMIT, "%s needs more than %zu MiB of memory", b->what,
                      STEP_MEMORY_MAX >> 20);
  if (b->work.slow)
    return mgrid_fail(err, MGRID_LIMIT, "%s takes more than %g s of processor time", b->what,
                      b->limits->seconds);
  return mgrid_fail(err, MGRID_LIMIT, "%s takes more than %" PRIu64 " instructions", b->what,
                    b->limits->instructions);
}

/* ============================================== lists of numbers, each once */

void mgrid_step_lists_free(step_lists *x) {
  free(x->start);
  free(x->data);
  mgrid_index_free(&x->index);
}

int32_t mgrid_step_lists_put(step_lists *x, const int32_t *list, size_t n) {
  uint64_t hash = XXH3_64bits(list, n * sizeof *list);
  size_t at = 0;
  for (int32_t i; (i = mgrid_index_next(&x->index, hash, &at)) >= 0;)
    if (x->start[i + 1] - x->start[i] == n
        && memcmp(&x->data[x->start[i]], list, n * sizeof *list) == 0)
      return i;
  if (!MGRID_GROW(x->start, x->n ? x->n + 1 : 0, 2) || !MGRID_GROW(x->data, x->used, n)) return -1;
  if (!mgrid_index_put(&x->index, hash, (int32_t)x->n)) return -1;
  if (n) memcpy(&x->data[x->used], list, n * sizeof *list);
  x->start[0] = 0;
  x->start[x->n + 1] = x->used += n;
  return (int32_t)x->n++;
}

/* ================================================================= programs */

/* ---------------------------------------------------------------- the step */

mgrid_step *mgrid_step_alloc(const mgrid_plan *plan, mgrid_error *err) {
  mgrid_step *s = calloc(1, sizeof *s);
  if (s) s->of = malloc((size_t)plan->content.world * sizeof *s->of);
  if (!s || !s->of || mgrid_step_word(s, "") < 0 || mgrid_step_word(s, "main") < 0) {
    if (s) free(s->of), free(s->word), mgrid_index_free(&s->words);
    free(s);
    return mgrid_null_oom(err);
  }
  s->refs = 1;
  s->plan = mgrid_plan_ref((mgrid_plan *)(uintptr_t)plan);
  return s;
}

mgrid_step *mgrid_step_ref(const mgrid_step *s) {
  mgrid_step *own = (mgrid_step *)(uintptr_t)s;
  if (own) atomic_fetch_add(&own->refs, 1);
  return own;
}

void mgrid_step_free(mgrid_step *s) {
  if (!s || atomic_fetch_sub(&s->refs, 1) > 1) return;
  for (size_t i = 0; i < s->nwords; i++) free(s->word[i]);
  for (size_t i = 0; i < s->nprograms; i++) free(s->program[i].node);
  mgrid_plan_free(s->plan);
  free(s->word);
  free(s->slot);
  free(s->program);
  free(s->class);
  free(s->branch);
  free(s->edge);
  free(s->of);
  mgrid_index_free(&s->words);
  mgrid_index_free(&s->programs);
  mgrid_index_free(&s->edges);
  mgrid_step_lists_free(&s->reads);
  free(s);
}

int32_t mgrid_step_word(mgrid_step *s, const char *text) {
  uint64_t hash = XXH3_64bits(text, strlen(text));
  size_t at = 0;
  for (int32_t i; (i = mgrid_index_next(&s->words, hash, &at)) >= 0;)
    if (strcmp(s->word[i], text) == 0) return i;
  char *own = MGRID_GROW(s->word, s->nwords, 1) ? mgrid_strdup(text) : NULL;
  if (!own || !mgrid_index_put(&s->words, hash, (int32_t)s->nwords)) return free(own), -1;
  s->word[s->nwords] = own;
  return (int32_t)s->nwords++;
}

int32_t mgrid_step_slot_of(mgrid_step *s, int32_t entry, int32_t nth) {
  for (size_t i = 0; i < s->nslots; i++)
    if (s->slot[i].entry == entry && s->slot[i].nth == nth) return (int32_t)i;
  if (!MGRID_GROW(s->slot, s->nslots, 1)) return -1;
  s->slot[s->nslots] = (step_slot){ entry, nth };
  return (int32_t)s->nslots++;
}

/* -------------------------------------------------------------- the writer */

void mgrid_step_writer_begin(step_writer *w, mgrid_step *s, int64_t rank) {
  w->step = s, w->rank = rank;
  w->now.n = 0, w->now.nstreams = 1, w->now.stream[0] = 1; /* "main" */
  w->now.leaves = w->now.calls = 0;
  w->depth = 0, w->grouped = false, w->nreads = 0;
}

void mgrid_step_writer_free(step_writer *w) {
  free(w->now.node);
  free(w->read);
  free(w->value);
}

step_node *mgrid_step_write(step_writer *w, step_kind kind) {
  step_program *p = &w->now;
  if (w->step->nodes + p->n >= STEP_NODES_MAX) return NULL;
  if (!MGRID_ROOM(p->node, w->room, p->n + 1)) return NULL;
  step_node *n = &p->node[p->n++];
  memset(n, 0, sizeof *n);
  n->kind = (uint8_t)kind;
  n->slot = n->other = -1;
  n->end = (uint32_t)p->n;
  return n;
}

void mgrid_step_open(step_writer *w) {
  w->open[w->depth++] = (uint32_t)w->now.n - 1;
  w->grouped = w->now.node[w->now.n - 1].kind != STEP_LOOP;
}

void mgrid_step_close(step_writer *w) {
  w->now.node[w->open[--w->depth]].end = (uint32_t)w->now.n;
  w->grouped = w->depth && w->now.node[w->open[w->depth - 1]].kind != STEP_LOOP;
}

/* Count the operations from entry `at` to `end`. A group is one of the *leaves, but each of its
** calls is one of the *calls. Return `end`, or the entry at which there are too many leaves. */
static uint32_t program_count(const step_program *p, uint32_t at, uint32_t end, int64_t *leaves,
                              int64_t *calls) {
  *leaves = *calls = 0;
  while (at < end) {
    const step_node *n = &p->node[at];
    int64_t inside = 1, talks = n->slot >= 0 || n->kind == STEP_SENDRECV, times = 1;
    if (n->kind == STEP_LOOP) {
      uint32_t within = program_count(p, at + 1, n->end, &inside, &talks);
      if (within < n->end) return within;
      times = n->number;
    } else if (n->kind == STEP_GROUP) {
      for (uint32_t i = at + 1; i < n->end; i = p->node[i].end) talks++;
    }
    if (inside && times > (STEP_LEAVES_MAX - *leaves) / inside) return at;
    *leaves += inside * times;
    *calls += talks * times;
    at = n->end;
  }
  return end;
}

uint32_t mgrid_step_count(step_program *p) {
  return program_count(p, 0, (uint32_t)p->n, &p->leaves, &p->calls);
}

static bool same_program(const step_program *p, const step_program *q) {
  return q->n == p->n && q->nstreams == p->nstreams
         && memcmp(q->stream, p->stream, p->nstreams * sizeof *p->stream) == 0
         && (p->n == 0 || memcmp(q->node, p->node, p->n * sizeof *p->node) == 0);
}

int32_t mgrid_step_keep(step_writer *w) {
  mgrid_step *s = w->step;
  step_program *p = &w->now;
  uint64_t hash = p->n ? XXH3_64bits(p->node, p->n * sizeof *p->node) : 0;
  size_t at = 0;
  for (int32_t i; (i = mgrid_index_next(&s->programs, hash, &at)) >= 0;)
    if (same_program(p, &s->program[i])) return i;
  if (!MGRID_GROW(s->program, s->nprograms, 1)
      || !mgrid_index_put(&s->programs, hash, (int32_t)s->nprograms))
    return -1;
  s->program[s->nprograms] = *p;
  s->nodes += p->n;
  p->node = NULL, w->room = 0;
  return (int32_t)s->nprograms++;
}

/* -------------------------------------------------------------------- text */

const char *mgrid_step_family_of(const mgrid_step *s, const step_node *n) {
  return n->slot < 0 ? "" : s->plan->content.entry[s->slot[n->slot].entry].name;
}

void mgrid_step_node_text(const mgrid_step *s, const step_node *n, mgrid_text *t) {
  const step_operation *o = &mgrid_step_rows[n->kind];
  mgrid_text_str(t, o->name);
  if (n->kind == STEP_SEND)
    mgrid_text_add(t, "(%s to %" PRId64 ")", mgrid_step_family_of(s, n), n->number);
  else if (n->kind == STEP_RECV)
    mgrid_text_add(t, "(%s from %" PRId64 ")", mgrid_step_family_of(s, n), n->number);
  else if (o->role == STEP_TOGETHER)
    mgrid_text_add(t, "(%s)", mgrid_step_family_of(s, n));
}

static void put_node(const mgrid_step *s, const step_program *p, uint32_t at, mgrid_text *t) {
  const step_node *n = &p->node[at];
  const step_operation *o = &mgrid_step_rows[n->kind];
  mgrid_step_node_text(s, n, t);
  if (n->slot >= 0 && s->slot[n->slot].nth) mgrid_text_add(t, " group %d", s->slot[n->slot].nth);
  if (n->kind == STEP_LOOP) mgrid_text_add(t, " %" PRId64, n->number);
  if (o->sized && n->kind != STEP_SENDRECV) mgrid_text_add(t, " %" PRId64 " bytes", n->bytes);
  if (n->listed && n->kind == STEP_ALL_TO_ALL) mgrid_text_str(t, " by position");
  if (o->rooted) mgrid_text_add(t, " root %" PRId64, n->number);
  if (n->type) mgrid_text_add(t, " %s", s->word[n->type]);
  if (n->name) mgrid_text_add(t, " '%s'", s->word[n->name]);
  if (n->kind == STEP_COMPUTE && n->flops > 0) mgrid_text_add(t, " %.17g flops", n->flops);
  if (n->kind == STEP_COMPUTE && n->bytes > 0) mgrid_text_add(t, " %" PRId64 " bytes", n->bytes);
  if (n->kind == STEP_COMPUTE && n->seconds > 0) mgrid_text_add(t, " %.17g s", n->seconds);
  if (o->role == STEP_ORDER && n->other >= 0)
    n->listed ? mgrid_text_add(t, " event %d", n->other)
              : mgrid_text_add(t, " %s", s->word[p->stream[n->other]]);
  if (n->kind == STEP_EVENT) mgrid_text_add(t, " %u", at);
  if (n->stream) mgrid_text_add(t, " on %s", s->word[p->stream[n->stream]]);
}

void mgrid_step_program_text(const mgrid_step *s, const step_program *p, bool lines,
                             mgrid_text *t) {
  uint32_t end[STEP_DEPTH_MAX + 2];
  int depth = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const step_node *n = &p->node[i];
    while (depth && i >= end[depth - 1]) depth--;
    size_t at = t->len;
    mgrid_text_add(t, "%*s", 2 * depth, "");
    put_node(s, p, i, t);
    if (lines && n->line)
      mgrid_text_add(t, "%*s%s:%d", t->len - at < 58 ? 58 - (int)(t->len - at) : 2, "",
                     s->word[n->file], n->line);
    mgrid_text_str(t, "\n");
    if (mgrid_step_rows[n->kind].role == STEP_BLOCK) end[depth++] = n->end;
  }
}

/* ------------------------------------------------------------------ digest */

static void put_words(XXH3_state_t *x, size_t n, const char *const *words) {
  for (size_t i = 0; i < n; i++) {
    uint64_t len = strlen(words[i]);
    XXH3_128bits_update(x, &len, sizeof len);
    XXH3_128bits_update(x, words[i], len);
  }
}

/* Hash every field of an entry except its file and line: numbers by their bits, names by their
** length and text, a reference by the name or number to which it refers. */
static void put_entry(const mgrid_step *s, const step_program *p, uint32_t at, XXH3_state_t *x) {
  const step_node *n = &p->node[at];
  bool waits = mgrid_step_rows[n->kind].role == STEP_ORDER && n->other >= 0,
       event = waits && n->listed;
  double amounts[] = { n->flops, n->seconds };
  int64_t numbers[] = { n->kind,
                        n->listed,
                        n->end - at,
                        n->bytes,
                        n->number,
                        n->slot < 0 ? -1 : s->slot[n->slot].nth,
                        event ? n->other : -1 };
  const char *words[] = { mgrid_step_family_of(s, n), s->word[n->name], s->word[n->type],
                          s->word[p->stream[n->stream]],
                          waits && !event ? s->word[p->stream[n->other]] : "" };
  XXH3_128bits_update(x, numbers, sizeof numbers);
  XXH3_128bits_update(x, amounts, sizeof amounts);
  put_words(x, sizeof words / sizeof *words, words);
}

static void hash_program(const mgrid_step *s, const step_program *p, XXH3_state_t *x,
                         uint64_t out[2]) {
  uint64_t n = p->n;
  XXH3_128bits_reset(x);
  XXH3_128bits_update(x, &n, sizeof n);
  for (uint32_t i = 0; i < p->n; i++) put_entry(s, p, i, x);
  XXH128_hash_t hash = XXH3_128bits_digest(x);
  out[0] = hash.high64, out[1] = hash.low64;
}

/* Two steps are equal if each rank has the same program in both, whatever their classes are and
** whatever they read. So hash runs of consecutive ranks with equal programs. */
mgrid_status mgrid_step_take_digest(mgrid_step *s, mgrid_error *err) {
  XXH3_state_t *x = XXH3_createState();

  uint64_t(*of)[2] = malloc((s->nprograms + 1) * sizeof *of);
  if (!x || !of) {
    XXH3_freeState(x);
    free(of);
    return mgrid_oom(err);
  }
  for (size_t i = 0; i < s->nprograms; i++) hash_program(s, &s->program[i], x, of[i]);
  XXH3_128bits_reset(x);
  for (int64_t r = 0, world = s->plan->content.world, next; r < world; r = next) {
    const uint64_t *mine = of[s->class[s->of[r]].program];
    for (next = r + 1; next < world; next++) {
      const uint64_t *other = of[s->class[s->of[next]].program];
      if (other != mine && memcmp(other, mine, sizeof *of) != 0) break;
    }
    uint64_t run[] = { (uint64_t)(next - r), mine[0], mine[1] };
    XXH3_128bits_update(x, run, sizeof run);
  }
  XXH128_hash_t hash = XXH3_128bits_digest(x);
  XXH3_freeState(x);
  free(of);
  s->digest[0] = hash.high64, s->digest[1] = hash.low64;
  return MGRID_OK;
}

/* ================================================================== classes */

/* A program depends only on the answers to what the step reads. So the reads are a tree: a node has
** a question, each answer leads to another node, and a leaf is a class. A rank follows its own
** answers from the root. If an answer leads nowhere yet, the step is evaluated for this rank. */

/* ------------------------------------------------------------------ answers */

int64_t mgrid_step_answer(const mgrid_plan *p, const step_read *read, int64_t rank) {
  if (read->asked == STEP_ASKED_RANK) return rank;
  if (read->asked == STEP_ASKED_COORD)
    return mgrid_grid_coord(p->content.grid[read->of].grid, rank, (size_t)read->nth);
  const mgrid_family *f = p->content.entry[read->of].family;
  int64_t group, position;
  if (!mgrid_family_locate(f, rank, read->nth, &group, &position)) return -1;
  if (read->asked == STEP_ASKED_POSITION) return position;
  return read->asked == STEP_ASKED_INDEX ? group : mgrid_family_size(f, group);
}

/* Return whether all ranks certainly give the same answer. Such a question distinguishes no ranks,
** so it is not kept. */
static bool answers_alike(const mgrid_plan *p, const step_read *read) {
  if (read->asked == STEP_ASKED_RANK) return p->content.world == 1;
  if (read->asked == STEP_ASKED_COORD) {
    const mgrid_grid *g = p->content.grid[read->of].grid;
    return g->size == p->content.world && g->axis[read->nth].size == 1;
  }
  const mgrid_family *f = p->content.entry[read->of].family;
  if (f->overlapping || f->size < 0 || f->total != p->content.world || read->nth > 0) return false;
  return read->asked == STEP_ASKED_SIZE
         || (read->asked == STEP_ASKED_POSITION ? f->size : f->count) == 1;
}

bool mgrid_step_ask(step_writer *w, const step_read *read, int64_t *answer) {
  *answer = mgrid_step_answer(w->step->plan, read, w->rank);
  if (answers_alike(w->step->plan, read)) return true;
  for (size_t i = 0; i < w->nreads; i++)
    if (memcmp(&w->read[i], read, sizeof *read) == 0) return true;
  size_t room = w->reads_room;
  if (!MGRID_ROOM(w->read, room, w->nreads + 1)
      || !MGRID_ROOM(w->value, w->reads_room, w->nreads + 1))
    return false;
  w->read[w->nreads] = *read;
  w->value[w->nreads++] = *answer;
  return true;
}

/* ----------------------------------------------------------------- the tree */

static uint64_t program_hash_of(int32_t node, int64_t value) {
  uint64_t x = ((uint64_t)value + 1) * UINT64_C(0x9E3779B97F4A7C15)
               ^ ((uint64_t)node + 1) * UINT64_C(0xC2B2AE3D27D4EB4F);
  return x ^ x >> 29;
}

static step_edge *program_find(const mgrid_step *s, int32_t node, int64_t value) {
  size_t at = 0;
  for (int32_t i; (i = mgrid_index_next(&s->edges, program_hash_of(node, value), &at)) >= 0;)
    if (s->edge[i].node == node && s->edge[i].value == value) return &s->edge[i];
  return NULL;
}

int32_t mgrid_step_find_class(mgrid_step *s, int64_t rank) {
  if (!s->nbranches) return s->nclasses ? 0 : -1;
  for (int32_t at = 0;;) {
    step_branch *b = &s->branch[at];
    int64_t value = mgrid_step_answer(s->plan, &b->read, rank);
    if (value != b->value || b->child == INT32_MIN) {
      const step_edge *e = program_find(s, at, value);
      if (!e) return -1;
      b->value = value, b->child = e->child;
    }
    if (b->child < 0) return ~b->child;
    at = b->child;
  }
}

static mgrid_status impure(mgrid_error *err) {
  return mgrid_fail(err, MGRID_REFUSED,
                    "the step asks other questions after the same answers: it is evaluated for one "
                    "rank after the other, "
                    "and may not change anything that the next evaluation sees");
}

mgrid_status mgrid_step_add_class(step_writer *w, int32_t program, mgrid_error *err) {
  mgrid_step *s = w->step;

  if (!MGRID_GROW(s->class, s->nclasses, 1)) return mgrid_oom(err);
  /* for earlier ranks the step read something, now nothing */
  if (!w->nreads && s->nclasses) return impure(err);
  int32_t leaf = ~(int32_t)s->nclasses, at = 0;
  for (size_t i = 0; i < w->nreads; i++) {
    if (i == 0 && !s->nbranches && s->nclasses) return impure(err);
    if ((size_t)at == s->nbranches) {
      if (!MGRID_GROW(s->branch, s->nbranches, 1)) return mgrid_oom(err);
      if (mgrid_step_lists_put(&s->reads, (const int32_t *)&w->read[i], 3) < 0)
        return mgrid_oom(err);
      s->branch[s->nbranches++] = (step_branch){ w->read[i], 0, INT32_MIN };
    }
    if (memcmp(&s->branch[at].read, &w->read[i], sizeof w->read[i]) != 0) return impure(err);
    const step_edge *e = program_find(s, at, w->value[i]);
    bool last = i + 1 == w->nreads;
    if (!e) {
      if (!MGRID_GROW(s->edge, s->nedges, 1)
          || !mgrid_index_put(&s->edges, program_hash_of(at, w->value[i]), (int32_t)s->nedges))
        return mgrid_oom(err);
      s->edge[s->nedges] = (step_edge){ at, last ? leaf : (int32_t)s->nbranches, w->value[i] };
      e = &s->edge[s->nedges++];
    } else if (last || e->child < 0) {
      return impure(err);
    }
    at = e->child;
  }
  s->class[s->nclasses++] = (step_class){ program, w->rank, 0 };
  return MGRID_OK;
}

void mgrid_step_reads_text(const mgrid_step *s, mgrid_text *t) {
  for (size_t i = 0; i < s->reads.n; i++) {
    const step_read *r = mgrid_step_read_of(s, i);
    if (t->len) mgrid_text_str(t, ", ");
    if (r->asked == STEP_ASKED_RANK) {
      mgrid_text_str(t, "rank");
    } else if (r->asked == STEP_ASKED_COORD) {
      const mgrid_named_grid *g = &s->plan->content.grid[r->of];
      mgrid_text_add(t, "%s.%s", g->name, g->grid->axis[r->nth].name);
    } else {
      static const char *const what[] = { "", ".position", ".index" };
      mgrid_text_add(t, "%s%s", s->plan->content.entry[r->of].name, what[r->asked]);
    }
  }
}
