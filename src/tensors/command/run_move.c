/* SPDX-License-Identifier: MIT
**
** run_move.c - moongrid run A vs B --move: move the tensors of one plan to the layout of another, and prove it.
*/
#include "comm/backend.h"
#include "tensors/command/words.h"
#include "tensors/between_plans.h"

#include <inttypes.h>
#include <stdlib.h>

/* Parse "8..15,0,1": which rank each rank of a world of `most` is, as a list that the caller frees. */
static mgrid_status read_map(const char *text, int64_t most, int64_t **out, size_t *n, mgrid_error *err) {
  const char *p = text;
  int64_t    *list = malloc((size_t)most * sizeof *list);
  if (!list) return mgrid_oom(err);
  for (*n = 0;; p++) {
    int64_t first, last;
    if (!cli_range(&p, &first, &last) || last > MGRID_WORLD_MAX) {
      free(list);
      return mgrid_fail(err, MGRID_BAD_VALUE,
                        "--map '%.100s', character %zu: expected a rank, or a range such as 8..15", text,
                        (size_t)(p - text) + 1);
    }
    if (last - first >= most - (int64_t)*n) {
      free(list);
      return mgrid_fail(err, MGRID_REFUSED, "the map has more than the %" PRId64 " ranks of the world after the move",
                        most);
    }
    while (first <= last) list[(*n)++] = first++;
    if (!*p) break;
  }
  *out = list;
  return MGRID_OK;
}

/* Print "moved 2 tensors: 1.50 GiB sent, 512 MiB stayed, in 0.52 s; every element proved on all 8 ranks". */
static mgrid_status tell(const mgrid_pairs *p, const mgrid_backend *b, double seconds, mgrid_error *err) {
  char         sent[32], stay[32], crossing[32], between[64] = "";
  int64_t      world = mgrid_backend_world(b);
  mgrid_tally *tally = malloc((p->n + 1) * sizeof *tally);
  mgrid_status s = tally ? mgrid_pairs_tally(p, NULL, tally, err) : mgrid_oom(err);
  if (!s && p->machine)
    snprintf(between, sizeof between, ", %s between machines",
             cli_bytes(tally[p->n].crossing, crossing, sizeof crossing));
  if (!s)
    printf("moved          %zu tensor%s on %s: %s sent%s, %s stayed, in %.3g s; every element proved on %s%" PRId64
           " rank%s\n",
           p->n, mgrid_s_of(p->n), mgrid_backend_name(b), cli_bytes(tally[p->n].sent, sent, sizeof sent), between,
           cli_bytes(tally[p->n].stay, stay, sizeof stay), seconds, world == 1 ? "" : "all ", world, mgrid_s_of(world));
  fflush(stdout);
  free(tally);
  return s;
}

mgrid_status cli_run_move(const cli *c, mgrid_backend *b, const mgrid_plan *from, const mgrid_plan *to, int64_t machine,
                          mgrid_error *planning, mgrid_error *err) {
  mgrid_move_options     what = MGRID_MOVE_OPTIONS_INIT;
  mgrid_move_run_options options = MGRID_MOVE_RUN_OPTIONS_INIT;
  const char            *tensor = cli_added_text(c, "tensor"), *map = cli_added_text(c, "map");
  int64_t                window = cli_added_number(c, "window");
  int64_t               *ranks = NULL;
  what.rounds = cli_added_flag(c, "rounds"), what.convert = cli_added_flag(c, "convert"), what.machine = machine;
  options.timeout = (double)cli_added_number(c, "timeout");
  if (window) options.window = window << 20;
  if (map && to) read_map(map, mgrid_plan_world(to), &ranks, &what.nranks, planning);
  what.ranks = ranks;
  mgrid_move *m = NULL;
  if (!planning->status) m = mgrid_move_new(from, to, mgrid_backend_rank(b), tensor ? 1 : 0, &tensor, &what, planning);
  mgrid_error_clear(err);
  if (!m) *err = *planning; /* this rank takes part without a move; all get its error */
  double       begun = mgrid_now();
  mgrid_status s = mgrid_move_prove(m, b, &options, err);
  double       seconds = mgrid_now() - begun;
  if (!s && mgrid_backend_rank(b) == 0) s = tell(&m->pairs, b, seconds, err);
  mgrid_move_free(m);
  free(ranks);
  return s;
}
