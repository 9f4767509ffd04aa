/* SPDX-License-Identifier: MIT
**
** stepping.h - random steps as texts of recipes, and an executor of our own that goes rank by rank
** and entry by entry: what src/step concludes from classes, types and loops, it finds by doing. For
** test_step.c and tests/mpi/step_ends.
*/
#ifndef TEST_STEPPING_H
#define TEST_STEPPING_H

#include "random.h"

#include "base/base.h"

/* ----------------------------------------------------------------- recipes */

typedef struct stepping {
  rng *r;
  mgrid_text *t;
  int64_t tp, pp, dp;
  bool streams, covers, plain; /* plain: what hangs under MPI, too, where it hangs here */
  int mutate;                  /* percent of statements that some ranks see otherwise */
  int events;
  bool timed; /* with computes, and longer loops */
  bool lazy;  /* some communicators are made at first use */
} stepping;

static inline const char *any_family(stepping *x) {
  static const char *const names[] = { "tp", "pp", "dp", "all", "tpdp", "ends", "twin" };
  return names[rng_between(x->r, 0, x->plain ? 4 : 6)];
}

static inline void put_condition(stepping *x) {
  static const char *const dims[] = { "tp", "pp", "dp" };
  const int64_t sizes[] = { x->tp, x->pp, x->dp };
  int64_t d = rng_between(x->r, 0, 2);
  for (int i = 0; i < 2 && sizes[d] == 1; i++) d = (d + 1) % 3;
  mgrid_text_add(x->t, "s.%s.position %s %" PRId64, dims[d],
                 rng_chance(x->r, 50) ? "==" : "~=", rng_between(x->r, 0, sizes[d] - 1));
}

static inline void put_on(stepping *x) {
  static const char *const names[] = { "main", "side", "third" };
  if (x->streams && rng_chance(x->r, 40))
    mgrid_text_add(x->t, "s:on '%s':", names[rng_between(x->r, 0, 2)]);
  else
    mgrid_text_str(x->t, "s:");
}

/* One statement that all ranks could make together. */
static inline void put_statement(stepping *x, int depth) {
  static const char *const kinds[] = { "all_reduce",     "all_gather", "all_to_all",
                                       "reduce_scatter", "broadcast",  "reduce" };
  const char *f = any_family(x), *line = rng_chance(x->r, 50) ? "pp" : "dp";
  int64_t bytes = 8 * rng_between(x->r, 1, 3);
  if (x->timed && rng_chance(x->r, 30)) {
    put_on(x);
    mgrid_text_add(x->t, "compute { seconds = %" PRId64 "e-6 * (1 + s.%s.position) }\n",
                   rng_between(x->r, 0, 40), line);
    return;
  }
  switch (rng_between(x->r, 0, depth ? 9 : 7)) {
  default: /* a collective */
    mgrid_text_add(x->t, "if s.%s then ", f);
    put_on(x);
    if (rng_chance(x->r, 20))
      mgrid_text_add(x->t, "barrier(s.%s) end\n", f);
    else
      mgrid_text_add(x->t, "%s(s.%s, %" PRId64 ") end\n",
                     kinds[rng_between(x->r, 0, x->plain ? 2 : 5)], f, bytes);
    return;
  case 1: /* down a line, rank after rank */
    mgrid_text_add(x->t,
                   "do local g = s.%s if g:prev() then s:recv(g, g:prev(), %" PRId64 ") end\n",
                   line, bytes);
    if (rng_chance(x->r, 50)) mgrid_text_str(x->t, "s:compute { flops = 1 } ");
    mgrid_text_add(x->t, "if g:next() then s:send(g, g:next(), %" PRId64 ") end end\n", bytes);
    return;
  case 2: /* around a ring, all at once */
    put_on(x);
    mgrid_text_add(x->t, "sendrecv(s.%s, s.%s:next(true), s.%s:prev(true), %" PRId64 ")\n", line,
                   line, line, bytes);
    return;
  case 3: /* in turn */
    mgrid_text_add(x->t,
                   "do local g = s.%s if g.position %% 2 == 0 then if g:next() then s:send(g, "
                   "g:next(), %" PRId64 ") end elseif g:prev() then s:recv(g, g:prev(), %" PRId64
                   ") end end\n",
                   line, bytes, bytes);
    return;
  case 4: /* a group */
    mgrid_text_add(
        x->t,
        "do local g = s.%s s:group(function() if g:next() then s:send(g, g:next(), %" PRId64
        ") end if g:prev() then s:recv(g, g:prev(), %" PRId64 ") end end) end\n",
        line, bytes, bytes);
    return;
  case 5:
    if (!x->streams) break;
    if (rng_chance(x->r, 50))
      mgrid_text_add(x->t, "do local e = s:on 'side':event() s:wait(e) end\n");
    else
      mgrid_text_add(x->t, "s:on 'third':event() s:%s 'third'\n",
                     rng_chance(x->r, 70) ? "wait" : "host_wait");
    return;
  case 6:
    if (!x->covers) break;
    mgrid_text_add(
        x->t, "for _, g in ipairs(s:groups 'ring') do s:all_reduce(g, %" PRId64 ") end\n", bytes);
    return;
  case 7: /* collectives together, of one family or two */
    mgrid_text_add(x->t,
                   "s:group(function() s:all_reduce(s.%s, %" PRId64 ") s:all_gather(s.%s, 8) "
                   "s:all_reduce(s.%s, 8) end)\n",
                   line, bytes, rng_chance(x->r, 70) ? line : "tp", line);
    return;
  case 8:
  case 9: /* long ones are innermost: the executor goes through all */
    mgrid_text_add(x->t, "s:loop(%" PRId64 ", function()\n",
                   depth == 1 && rng_chance(x->r, 30) ? rng_between(x->r, 6, x->timed ? 60 : 14)
                                                      : rng_between(x->r, 1, 4));
    for (int64_t n = rng_between(x->r, 1, 3); n > 0; n--) put_statement(x, depth - 1);
    mgrid_text_str(x->t, "end)\n");
    return;
  }
  mgrid_text_add(x->t, "s:all_reduce(s.tp, %" PRId64 ")\n", bytes);
}

/* One or two statements, sometimes in another order, left out, or changed on some ranks. */
static inline void put_mutated(stepping *x, int depth) {
  mgrid_text *t = x->t, a = { 0 }, b = { 0 };
  if (!rng_chance(x->r, x->mutate)) {
    put_statement(x, depth);
    return;
  }
  x->t = &a;
  put_statement(x, depth);
  x->t = &b;
  put_statement(x, depth);
  x->t = t;
  mgrid_text_str(t, "if ");
  put_condition(x);
  const char *first = mgrid_text_chars(&a), *second = mgrid_text_chars(&b);
  if (x->streams && rng_chance(x->r, 40)) { /* two streams, in another order on some ranks */
    const char *f = any_family(x), *g = any_family(x);
    a.len = b.len = 0;
    mgrid_text_add(&a, "if s.%s then s:on 'side':all_reduce(s.%s, 8) end\n", f, f);
    mgrid_text_add(&b, "if s.%s then s:on 'third':all_reduce(s.%s, 8) end\n", g, g);
    first = mgrid_text_chars(&a), second = mgrid_text_chars(&b);
  }
  switch (rng_between(x->r, 0, 3)) {
  case 0: mgrid_text_add(t, " then\n%s%send\n", first, second); break; /* left out */
  case 1: mgrid_text_add(t, " then\n%selse\n%send\n", first, second); break;
  default: mgrid_text_add(t, " then\n%s%selse\n%s%send\n", first, second, second, first); break;
  }
  mgrid_text_free(&a);
  mgrid_text_free(&b);
}

/* Write a recipe; return its world. */
static inline int64_t draw_step(stepping *x) {
  static const int64_t sizes[] = { 1, 2, 2, 2, 3, 4 };
  static const char *const orders[] = { "tp-pp-dp", "dp-tp-pp", "pp-dp-tp" };
  do {
    x->tp = sizes[rng_between(x->r, 0, 5)], x->pp = sizes[rng_between(x->r, 0, 5)],
    x->dp = sizes[rng_between(x->r, 0, 5)];
  } while (x->tp * x->pp * x->dp > 16 || x->tp * x->pp * x->dp < 2);
  mgrid_text_add(x->t,
                 "return recipe { build = function(world)\n"
                 "local g = grid(world, '%s', { tp = %" PRId64 ", pp = %" PRId64 ", dp = %" PRId64
                 " })\n"
                 "local t = topology(world)\n"
                 "t.tp, t.pp, t.dp, t.all, t.tpdp = g 'tp', g 'pp', g 'dp', g('tp', 'pp', 'dp'), "
                 "g('tp', 'dp')\n"
                 "t.ends = g 'pp':pick(%s)\n"
                 "t.twin = g 'tp':twin()\n",
                 orders[rng_between(x->r, 0, 2)], x->tp, x->pp, x->dp, x->pp > 1 ? "0, -1" : "0");
  static const char *const may[] = { "pp", "dp", "all", "tpdp", "ends" };
  for (int i = 0; i < 5 && x->lazy; i++)
    if (rng_chance(x->r, 60))
      mgrid_text_add(x->t, "t.%s = t.%s:with { lazy = true }\n", may[i], may[i]);
  x->covers = x->covers && x->pp > 2;
  if (x->covers) mgrid_text_str(x->t, "t.ring = g 'pp':pairs 'wrap'\n");
  mgrid_text_str(x->t, "return t end, step = function(s)\n");
  for (int64_t n = rng_between(x->r, 1, 7); n > 0; n--) put_mutated(x, 2);
  mgrid_text_str(x->t, "end }\n");
  return x->tp * x->pp * x->dp;
}

#endif
