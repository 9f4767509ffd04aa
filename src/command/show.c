/* SPDX-License-Identifier: MIT
**
** show.c - an overview of a plan.
*/
#include "command/group_lines.h"
#include "command/slice.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { LABEL = 15, VALUE_WIDTH = 60, EXACT_WORLD = 4096, LEAST_GROUP = 12 };

/* Return the columns of a text; a character of UTF-8 has one. */
static int width_of(const char *s, size_t n) {
  int width = 0;
  for (size_t i = 0; i < n; i++) width += ((unsigned char)s[i] & 0xc0) != 0x80;
  return width;
}

/* Print words after text that ends at `column`, each after a blank, folded to fit the terminal; further lines start at
** `indent`. */
static void print_words(const cli *c, const char *words, size_t len, int column, int indent) {
  for (const char *at = words, *end = words + len; at < end;) {
    const char *blank = memchr(at, ' ', (size_t)(end - at));
    size_t      n = (size_t)((blank ? blank : end) - at);
    int         width = width_of(at, n);
    if (column + 1 + width > c->fold && column > indent) column = printf("\n%*s", indent - 1, "") - 1;
    printf(" %.*s", (int)n, at);
    column += 1 + width;
    at += n + (blank != NULL);
  }
  printf("\n");
}

/* Print words after a label. */
static void wrap(const cli *c, const char *label, const char *words) {
  print_words(c, words, strlen(words), printf("%-*s", LABEL - 1, label), LABEL);
}

void cli_wrap(const cli *c, const char *label, mgrid_text *words) {
  if (words->data && !words->failed) wrap(c, label, words->data);
  mgrid_text_free(words);
}

/* Return where the last column of a line of a table starts, after a gap of two blanks or more; 0: there is only one. */
static size_t last_column(const char *line, size_t n) {
  size_t at = 0;
  for (size_t i = strspn(line, " ") + 3; i < n; i++)
    if (line[i] != ' ' && line[i - 1] == ' ' && line[i - 2] == ' ') at = i;
  return at;
}

/* Print a line. If the terminal is narrower, the words of its last column are folded under that column, or with too
** little room there, under the line. */
static void fold(const cli *c, const char *line, size_t n) {
  enum { ROOM = 36, DEEPER = 4 };
  size_t blanks = strspn(line, " "), at = last_column(line, n);
  int    indent = width_of(line, at);
  bool   beside = c->fold - indent >= ROOM;
  size_t head = at - 1; /* width of the line before it, unchanged */
  if (width_of(line, n) <= c->fold) {
    printf("%.*s\n", (int)n, line);
    return;
  }
  if (blanks > ROOM) { /* they belong to the last column */
    print_words(c, line + blanks, n - blanks, printf("%*s", 1 + DEEPER, ""), 2 + DEEPER);
    return;
  }
  if (at == 0) {
    head = blanks + strcspn(line + blanks, " "), at = head + 1, indent = (int)blanks + DEEPER;
  } else if (!beside) {
    while (line[head - 1] == ' ') head--;
    indent = (int)blanks + DEEPER;
  }
  printf("%.*s", (int)head, line);
  print_words(c, line + at, n - at, beside ? width_of(line, head) : printf("\n%*s", indent - 1, "") - 1, indent);
}

int cli_fold(void *of, const char *text, size_t len) {
  for (size_t at = 0; at < len;) {
    const char *end = memchr(text + at, '\n', len - at);
    size_t      n = end ? (size_t)(end - text) - at : len - at;
    fold(of, text + at, n);
    at += n + 1;
  }
  return ferror(stdout);
}

/* Append which family makes the communicators of family i. */
static void describe_communicator(const mgrid_plan *p, size_t i, mgrid_text *t) {
  const mgrid_entry  *e = &p->content.entry[i];
  const mgrid_family *f = e->family;
  int64_t             led;
  if (f->max_size < 2)
    mgrid_text_str(t, "none needed");
  else if (e->choice->none)
    mgrid_text_str(t, "none made");
  else if (p->shares[i] >= 0)
    mgrid_text_add(t, "shared with %s", p->content.entry[p->shares[i]].name);
  else if ((led = mgrid_plan_led(p, (int)i, -1, NULL)) < f->count && f->size > 1)
    mgrid_text_add(t, "%" PRId64 " own, %" PRId64 " shared", led, f->count - led);
  else
    mgrid_text_str(t, "own");
  mgrid_text_add(t, "%s%s", *e->choice->text ? "," : "", e->choice->text);
}

static void describe_size(const mgrid_family *f, char *buf, size_t len) {
  snprintf(buf, len, "%s%" PRId64, f->size < 0 ? "<=" : "", f->max_size);
}

static int wider(int width, int n) { return n > width ? n : width; }

/* Print a line per family; a communicator column that is too long gets its own line. */
static mgrid_status show_families(const cli *c, const mgrid_plan *p, mgrid_error *err) {
  const char *on = c->bold ? "\033[1m" : "", *off = c->bold ? "\033[0m" : "";
  int         name = 6, count = 6, size = 4, group = 11;
  char        sized[32];
  mgrid_text  t = { 0 };
  for (size_t i = 0; i < p->content.nentries; i++) {
    const mgrid_entry *e = &p->content.entry[i];
    describe_size(e->family, sized, sizeof sized);
    name = wider(name, (int)strlen(e->name));
    count = wider(count, snprintf(NULL, 0, "%" PRId64, e->family->count));
    size = wider(size, (int)strlen(sized));
    t.len = 0;
    if (e->family->count) cli_put_group(&t, e->family, 0, c->columns / 2);
    group = wider(group, (int)t.len);
  }
  int room = c->fold - name - count - size - 26; /* 26: the gaps, and most of what communicators are */
  if (group > room) group = room < LEAST_GROUP ? LEAST_GROUP : room;
  int before = name + count + size + group + 7;
  printf("\n%s%-*s  %*s  %*s  %-*s  %s%s\n", on, name, "family", count, "groups", size, "size", group, "first group",
         "communicator", off);
  if (p->content.nentries == 0) printf("none: the recipe makes no groups with these parameters\n");
  for (size_t i = 0; i < p->content.nentries && !t.failed; i++) {
    const mgrid_entry *e = &p->content.entry[i];
    describe_size(e->family, sized, sizeof sized);
    printf("%-*s  %*" PRId64 "  %*s  ", name, e->name, count, e->family->count, size, sized);
    t.len = 0;
    if (e->family->count)
      cli_put_group(&t, e->family, 0, group);
    else
      mgrid_text_str(&t, "-");
    printf("%-*s", group, mgrid_text_chars(&t));
    bool longer = (int)t.len > group;
    t.len = 0;
    describe_communicator(p, i, &t);
    if (longer || before + 1 + (int)t.len > c->fold) /* right-aligned on the next line */
      printf("\n%*s", wider(name + 2, c->fold - (int)t.len), "");
    else
      printf("  ");
    printf("%s\n", mgrid_text_chars(&t));
  }
  bool failed = t.failed;
  mgrid_text_free(&t);
  return failed ? mgrid_oom(err) : MGRID_OK;
}

/* Print how many communicators a rank holds: minimum and maximum over all ranks, or in a large world those of rank
** 0. */
static mgrid_status show_counts(const cli *c, const mgrid_plan *p, mgrid_error *err) {
  mgrid_plan_counts all = MGRID_PLAN_COUNTS_INIT, n = MGRID_PLAN_COUNTS_INIT;
  int64_t           world = p->content.world, shown = world <= EXACT_WORLD ? world : 1;
  int64_t           least = INT64_MAX, most = 0, least_groups = INT64_MAX, most_groups = 0;
  mgrid_status      s = mgrid_plan_count(p, &all, err);
  for (int64_t r = 0; r < shown && !s; r++) {
    if ((s = mgrid_plan_count_rank(p, r, &n, err))) break;
    int64_t groups = n.groups + n.singles;
    if (n.communicators < least) least = n.communicators;
    if (n.communicators > most) most = n.communicators;
    if (groups < least_groups) least_groups = groups;
    if (groups > most_groups) most_groups = groups;
  }
  if (s) return s;
  mgrid_text t = { 0 };
  mgrid_text_add(&t, "%" PRId64 " communicator%s for %" PRId64 " group%s; %" PRId64 " group%s of one rank need%s none",
                 all.communicators, mgrid_s_of(all.communicators), all.groups, mgrid_s_of(all.groups), all.singles,
                 mgrid_s_of(all.singles), all.singles == 1 ? "s" : "");
  printf("\n");
  cli_wrap(c, "in all", &t);
  mgrid_text_add(&t, least == most ? "%" PRId64 : "%" PRId64 " to %" PRId64, least, most);
  mgrid_text_add(&t, " communicator%s for ", mgrid_s_of(most));
  mgrid_text_add(&t, least_groups == most_groups ? "%" PRId64 : "%" PRId64 " to %" PRId64, least_groups, most_groups);
  mgrid_text_add(&t, " group%s", mgrid_s_of(most_groups));
  cli_wrap(c, shown == world ? "each rank" : "rank 0", &t);
  return MGRID_OK;
}

/* Print the functions of the host that the recipe names. */
static void show_called(const cli *c, const mgrid_plan *p) {
  mgrid_text t = { 0 };
  for (size_t i = 0; i < p->content.ncalled; i++)
    mgrid_text_add(&t, "%s%s = %s", i ? ", " : "", p->content.called[i].name, p->content.called[i].version);
  if (t.len) mgrid_text_str(&t, ", of the host that made the plan"), cli_wrap(c, "functions", &t);
  mgrid_text_free(&t);
}

/* Print ranks in no group among the facts. A note says that this may be a mistake. */
static void show_idle(const cli *c, const mgrid_plan *p) {
  mgrid_text which = { 0 }, t = { 0 };
  int64_t    n = mgrid_plan_idle(p, &which);
  if (n > 0) {
    mgrid_text_add(&t, "%" PRId64 " rank%s in no group: %s", n, mgrid_s_of(n), mgrid_text_chars(&which));
    cli_wrap(c, "idle", &t);
  }
  mgrid_text_free(&which);
}

void cli_note_items(const cli *c, const mgrid_plan *p, const char *when) {
  enum { SHOWN = 8 };
  mgrid_text notes = { 0 };
  size_t     n = 0;
  if (c->me != 0) return;
  mgrid_plan_notes(p, true, &notes);
  for (const char *line = mgrid_text_chars(&notes), *end; (end = strchr(line, '\n')); line = end + 1)
    if (n++ < SHOWN) fprintf(stderr, "moongrid: note: %s%.*s\n", when, (int)(end - line), line);
  if (n > SHOWN) fprintf(stderr, "moongrid: note: %s%zu more such cuts; --json lists all\n", when, n - SHOWN);
  mgrid_text_free(&notes);
}

void cli_note_plan(const cli *c, const mgrid_plan *p) {
  if (c->me != 0) return;
  mgrid_text which = { 0 };
  int64_t    n = p->content.idle ? 0 : mgrid_plan_idle(p, &which);
  if (n > 0)
    fprintf(stderr,
            "moongrid: note: %" PRId64 " of %" PRId64 " ranks %s in no group: %s; idle = \"allow\" in a recipe "
            "says that this is meant\n",
            n, p->content.world, n == 1 ? "is" : "are", mgrid_text_chars(&which));
  mgrid_text_free(&which);
  for (size_t i = 0; i < p->content.nparams; i++)
    if (p->content.param[i].unread && !p->content.param[i].usual)
      fprintf(stderr, "moongrid: note: build does not read parameter '%s', so no group depends on it\n",
              p->content.param[i].name);
  cli_note_items(c, p, "");
}

void cli_note_unheeded(const cli *c, const mgrid_plan *p, const char *backend) {
  mgrid_text t = { 0 };
  mgrid_plan_unheeded(p, mgrid_backend_named(backend), &t);
  if (t.len && !t.failed && c->me == 0) fprintf(stderr, "moongrid: note: without effect on %s: %s\n", backend, t.data);
  mgrid_text_free(&t);
}

/* Print which families share communicators and what that costs, and which are used at the same time. */
static mgrid_status show_sharing(const cli *c, const mgrid_plan *p, const mgrid_site *site, mgrid_error *err) {
  const mgrid_content *all = &p->content;
  mgrid_text           t = { 0 };
  bool                 some = false;
  for (size_t i = 0; i < all->nentries; i++) {
    mgrid_demand more;
    mgrid_entry_demand(&all->entry[i], all->entry[i].family->max_size, 1, site, &more);
    if (more.created == 0 || !mgrid_plan_sharers(p, (int)i, " ", &t)) continue; /* MPI's calls do not wait for others */
    mgrid_text_add(&t, ": %.0f MiB", (double)more.created / (1 << 20));
    printf("%s", some ? "" : "\n");
    if (t.failed) break;
    cli_wrap(c, some ? "" : "sharing", &t);
    some = true;
  }
  if (some)
    wrap(c, "",
         "with NCCL, calls on families of one line wait for each other; separate communicators need that much more "
         "memory: "
         "concurrent = { ... } in a recipe separates those that are used at the same time");
  for (size_t i = 0; i < all->nconcurrent && !t.failed; i++) {
    mgrid_concurrent_text(&all->concurrent[i], ", ", &t);
    mgrid_text_str(&t, ", launched in this order");
    if (i == 0) printf("\n");
    if (!t.failed) cli_wrap(c, i ? "" : "concurrent", &t);
  }
  bool failed = t.failed;
  mgrid_text_free(&t);
  return failed ? mgrid_oom(err) : MGRID_OK;
}

void cli_show_head(const cli *c, const mgrid_plan *p, const char *before, bool all) {
  const char *on = c->bold ? "\033[1m" : "", *off = c->bold ? "\033[0m" : "";
  char        name[4096];
  mgrid_shown(name, sizeof name, p->content.recipe, strlen(p->content.recipe));
  if (!*name) snprintf(name, sizeof name, "plan");
  printf("%s%s%s%s", before, on, name, off);
  int column = (int)(strlen(before) + strlen(name))
               + printf(" over %" PRId64 " rank%s", p->content.world, mgrid_s_of(p->content.world));
  const char *colon = ":";
  for (size_t i = 0; i < p->content.nparams; i++) {
    const mgrid_param *a = &p->content.param[i];
    if (a->usual && !all) continue;
    char        digits[40];
    const char *value = mgrid_shortest(a->value, digits, sizeof digits);
    bool        whole = strlen(value) <= VALUE_WIDTH; /* a table may be long; --text has all of it */
    char        shown[VALUE_WIDTH + 1];
    mgrid_shown(shown, whole ? sizeof shown : sizeof shown - 3, value, strlen(value)); /* whole characters */
    int length = (int)(strlen(a->name) + strlen(shown)) + (whole ? 2 : 5);
    column += printf("%s", colon);
    colon = "";
    if (column + length > c->fold && column > LABEL) column = printf("\n%*s", LABEL - 1, "") - 1;
    column += printf(" %s=%s%s", a->name, shown, whole ? "" : "...");
  }
  printf("\n");
}

mgrid_status cli_print_json(const cli *c, const mgrid_plan *p, int64_t rank, const mgrid_site *site, mgrid_error *err) {
  if (!isatty(STDOUT_FILENO)) cli_progress(c, "writing the groups of %" PRId64 " ranks", p->content.world);
  mgrid_status s = mgrid_plan_json_at(p, rank, site, cli_sink, stdout, err);
  cli_progress_end();
  return s;
}

mgrid_status cli_show_plan(const cli *c, const cli_budgets *b, const mgrid_plan *p, const mgrid_site *site, bool all,
                           mgrid_error *err) {
  char text[2048];
  cli_show_head(c, p, "", all);
  for (size_t i = 0; i < p->content.ngrids; i++) {
    mgrid_text_ellipsis(text, sizeof text, mgrid_grid_describe(p->content.grid[i].grid, text, sizeof text));
    if (i == 0) printf("\n");
    wrap(c, p->content.grid[i].name, text);
  }
  if (p->content.ngrids) wrap(c, "", "dims are listed fastest-varying first");
  mgrid_status s = show_families(c, p, err);
  if (s) return s;
  for (const cli_slice *const *slice = cli_slices; *slice; slice++)
    if ((*slice)->overview) (*slice)->overview(c, p);
  s = show_sharing(c, p, site, err);
  if (!s) s = show_counts(c, p, err);
  if (s) return s;
  show_idle(c, p);
  show_called(c, p);
  if ((s = cli_show_resources(c, b, p, site, err))) return s;
  mgrid_plan_digest(p, text);
  wrap(c, "digest", text);
  return MGRID_OK;
}
