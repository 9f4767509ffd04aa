/* SPDX-License-Identifier: MIT
**
** check.c - moongrid check: check the laws of a recipe's families at several world sizes.
*/
#include "command/slice.h"
#include "plan/json.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

/* Of the command line; what slices prove; of recipes. */
enum { LAWS_MAX = 16, PROOFS_MAX = 4, CLAIMS_MAX = 32, VERDICTS = 1 + LAWS_MAX + PROOFS_MAX + CLAIMS_MAX };

typedef struct options {
  cli         cli;
  cli_sizes   worlds;
  bool        json;
  size_t      nlaws;
  const char *law[LAWS_MAX];
} options;

/* A cli_reader of --law, which may be given several times. */
static mgrid_status read_law(const cli *c, const char *name, const char *value, void *to) {
  options *o = to;
  if (o->nlaws == LAWS_MAX) return cli_usage(c, "%s is given more than %d times", name, LAWS_MAX);
  o->law[o->nlaws++] = value;
  return MGRID_OK;
}

/* Return whether a law was checked and does not hold; not so if it cannot be read or names something unknown. */
static bool is_broken(mgrid_status s) { return s == MGRID_REFUSED || s == MGRID_UNPROVED; }

/* A law and the worlds in which it was checked. */
typedef struct verdict {
  const char *law;
  char        claim[128]; /* its text, if the recipe claims it */
  bool        proof;      /* of a slice: said only where it was checked */
  size_t      nheld;
  mgrid_text  held, broken; /* "8, 16" */
} verdict;

/* Note whether a law holds in a world. `laws` is the JSON of that world. */
static void note(verdict *v, int64_t world, mgrid_status s, json_t *laws) {
  mgrid_text *t = s ? &v->broken : &v->held;
  if (s && !is_broken(s)) return;
  v->nheld += !s;
  mgrid_text_add(t, "%s%" PRId64, t->len ? ", " : "", world);
  json_object_set_new(laws, v->law, json_boolean(!s));
}

/* Note the laws that the recipe claims: a plan is only made where they hold. */
static void note_claims(verdict *of, int64_t world, const mgrid_plan *p, json_t *laws) {
  mgrid_text lines = { 0 };
  for (const cli_slice *const *s = cli_slices; *s; s++)
    if ((*s)->claims) (*s)->claims(p, &lines);
  for (const char *at = mgrid_text_chars(&lines), *end; (end = strchr(at, '\n')); at = end + 1) {
    size_t k = 0, length = (size_t)(end - at);
    while (k < CLAIMS_MAX && of[k].law && (strlen(of[k].law) != length || memcmp(of[k].law, at, length) != 0)) k++;
    if (k == CLAIMS_MAX || length >= sizeof of[k].claim) continue;
    if (!of[k].law) memcpy(of[k].claim, at, length), of[k].law = of[k].claim;
    note(&of[k], world, MGRID_OK, laws);
  }
  mgrid_text_free(&lines);
}

/* Name the verdicts but the claims. */
static void name_verdicts(const options *c, verdict *of) {
  size_t n = 0;
  of[n++].law = "positions, partitions, schedule";
  for (size_t i = 0; i < c->nlaws; i++) of[n++].law = c->law[i];
  for (const cli_slice *const *s = cli_slices; *s && n <= c->nlaws + PROOFS_MAX; s++)
    if ((*s)->holds) of[n].proof = true, of[n++].law = (*s)->proves;
}

/* Check what slices prove, beginning with that verdict; return the one after them. */
static verdict *prove(verdict *of, int64_t world, mgrid_runtime *rt, const mgrid_plan *p, json_t *laws, mgrid_status *s,
                      mgrid_error *err) {
  for (const cli_slice *const *slice = cli_slices; *slice && of->proof; slice++) {
    if (!(*slice)->holds) continue;
    mgrid_error  e = MGRID_ERROR_INIT;
    bool         has = false;
    mgrid_status is = (*slice)->holds(rt, p, &has, &e);
    if (has) note(of, world, is, laws);
    if (has && is && !*s) *s = is, mgrid_error_replace(err, &e);
    of++;
  }
  return of;
}

/* Check the laws of every plan (verdict 0), those of the command line, and what slices prove. The first error counts. */
static mgrid_status check_plan(const options *c, int64_t world, mgrid_runtime *rt, const mgrid_plan *p,
                               mgrid_plan_checked *v, verdict *of, json_t *laws, mgrid_error *err) {
  mgrid_status s = mgrid_plan_check(p, v, err);
  note(&of[0], world, s, laws);
  for (size_t i = 0; i < c->nlaws; i++) {
    mgrid_error  e = MGRID_ERROR_INIT;
    mgrid_status is = cli_law(&c->cli, p, c->law[i], &e);
    note(&of[i + 1], world, is, laws);
    if (is && !s) s = is, mgrid_error_replace(err, &e);
  }
  note_claims(prove(&of[c->nlaws + 1], world, rt, p, laws, &s, err), world, p, laws);
  return s;
}

/* Print a line for each law: where it held, and where not. */
static void print_verdicts(const options *c, const verdict *of) {
  int    width = 0;
  size_t n = 0;
  for (; n < VERDICTS && of[n].law; n++)
    if ((int)strlen(of[n].law) > width) width = (int)strlen(of[n].law);
  for (size_t i = 0; i < n; i++) {
    const verdict *v = &of[i];
    if (v->proof && !v->nheld && !v->broken.len) continue;
    printf("%-*s ", width, v->law);
    if (v->nheld == c->worlds.n) printf(" held");
    if (v->nheld && v->nheld < c->worlds.n)
      printf(" held at %s%s", mgrid_text_chars(&v->held), v->broken.len ? ";" : "");
    if (v->broken.len) printf(" BROKEN at %s", mgrid_text_chars(&v->broken));
    printf("%s\n", !v->nheld && !v->broken.len ? " not checked" : "");
  }
}

static void print_line(int64_t world, const mgrid_plan *p, const mgrid_plan_checked *v) {
  char digest[33];
  mgrid_plan_digest(p, digest);
  size_t n = mgrid_plan_nfamilies(p);
  printf("%10" PRId64 "  ok       %zu famil%s, %" PRId64 " member%s %s, ", world, n, n == 1 ? "y" : "ies", v->members,
         mgrid_s_of(v->members), v->sampled ? "sampled" : "checked");
  if (v->sampled)
    printf("schedule sampled");
  else
    printf("%" PRId64 " communicator%s in order", v->communicators, mgrid_s_of(v->communicators));
  printf("  %s\n", digest);
}

/* Add the notes of items. */
static void json_notes(json_t *line, const mgrid_plan *p) {
  mgrid_text notes = { 0 };
  json_t    *list = json_array();
  mgrid_plan_notes(p, true, &notes);
  for (const char *at = mgrid_text_chars(&notes), *end; (end = strchr(at, '\n')); at = end + 1)
    json_array_append_new(list, json_stringn(at, (size_t)(end - at)));
  if (json_array_size(list)) json_object_set(line, "notes", list);
  json_decref(list);
  mgrid_text_free(&notes);
}

static json_t *json_line(int64_t world, const mgrid_plan *p, const mgrid_plan_checked *v, json_t *laws, mgrid_status s,
                         const mgrid_error *err) {
  char digest[33];
  if (s)
    return mgrid_json_pack("{sIsbsisssO}", "world", (json_int_t)world, "ok", 0, "status", (int)s, "message",
                           err->message, "laws", laws);
  mgrid_plan_digest(p, digest);
  json_t *line = mgrid_json_pack("{sIsbsIsIsbsosssO}", "world", (json_int_t)world, "ok", 1, "families",
                                 (json_int_t)mgrid_plan_nfamilies(p), "members", (json_int_t)v->members, "sampled",
                                 v->sampled, "communicators", v->sampled ? json_null() : json_integer(v->communicators),
                                 "digest", digest, "laws", laws);
  json_notes(line, p);
  return line;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options      c = { 0 };
  mgrid_error  err = MGRID_ERROR_INIT;
  mgrid_status worst = MGRID_OK;
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (cli_needs(&c.cli, 1)) return MGRID_USAGE;
  if (!c.worlds.n && !cli_is_saved(&c.cli))
    return cli_usage(&c.cli, "check needs --world N[,N...], the numbers of ranks");
  mgrid_runtime *rt;
  mgrid_plan    *first = NULL;
  worst = cli_open(&c.cli, &rt, &err);
  if (!worst && !c.worlds.n) worst = (first = cli_plan(&c.cli, rt, 0, &err)) ? MGRID_OK : err.status;
  if (worst) return cli_finish(&c.cli, cli_say(&c.cli, &err));
  if (first) c.worlds.n = 1, c.worlds.at[0] = mgrid_plan_world(first);
  mgrid_plan_free(first);
  json_t *lines = json_array();
  verdict of[VERDICTS] = { { 0 } };
  name_verdicts(&c, of);
  bool misspelt = false; /* a law, which is not repeated for each world */
  for (size_t i = 0; i < c.worlds.n && !misspelt; i++) {
    mgrid_plan_checked v = MGRID_PLAN_CHECKED_INIT;
    mgrid_error_clear(&err); /* of the previous world */
    cli_progress(&c.cli, "checking %" PRId64 " ranks, world %zu of %zu", c.worlds.at[i], i + 1, c.worlds.n);
    mgrid_plan  *p = cli_plan(&c.cli, rt, c.worlds.at[i], &err);
    json_t      *laws = json_object();
    mgrid_status s = p ? check_plan(&c, c.worlds.at[i], rt, p, &v, of, laws, &err) : err.status;
    cli_progress_end();
    misspelt = i == 0 && s && p && !is_broken(s);
    if (!s) cli_tell(&c.cli, "notes", p, NULL, NULL);
    if (misspelt)
      cli_say(&c.cli, &err);
    else if (c.json)
      json_array_append_new(lines, json_line(c.worlds.at[i], p, &v, laws, s, &err));
    else if (!s)
      print_line(c.worlds.at[i], p, &v);
    else
      printf("%10" PRId64 "  %-8s %s\n", c.worlds.at[i], p && is_broken(s) ? "BROKEN" : "refused", err.message);
    if (s && !worst) worst = s;
    json_decref(laws);
    mgrid_plan_free(p);
  }
  mgrid_error_clear(&err);
  if (c.json && !misspelt && cli_put_json(lines, &err)) worst = cli_say(&c.cli, &err);
  if (!c.json && !misspelt) print_verdicts(&c, of);
  for (size_t i = 0; i < VERDICTS; i++) mgrid_text_free(&of[i].held), mgrid_text_free(&of[i].broken);
  json_decref(lines);
  mgrid_runtime_free(rt);
  return cli_finish(&c.cli, worst);
}

const cli_command command_check = {
  .name = "check",
  .takes = "RECIPE --world N,N,... [NAME=VALUE ...]",
  .does = "its laws at several sizes",
  .usage = "moongrid check RECIPE --world N[,N...] [NAME=VALUE ...] [--law LAW ...] [--json]",
  .about = "Check a recipe at several world sizes: every family asked by rank gives the groups that\n"
           "it lists, partitions hold each rank once, and the creation schedule lets every rank\n"
           "through. Worlds above 1048576 ranks are sampled, and this is printed. Then the laws, with the\n"
           "sizes at which they hold, and the step of a recipe that has one (moongrid step). A saved plan has its\n"
           "world, and needs no --world.",
  .sample = "moongrid check megatron --world 16-64 tp=2 pp=2 --law \"within(tp, mp)\"",
  .recipe = true,
  .options = { { "world", cli_worlds, offsetof(options, worlds), "N,...",
                 .help = "worlds to check; 8-64 is 8, 16, 32, 64" },
               { "law", read_law, 0, "LAW",
                 .help = "also this of every world: within(a, b), every group of a inside one of b; disjoint(a, b), "
                         "same(a, b), covers(a); may be given several times" },
               { "json", cli_flag, offsetof(options, json), .help = "an array with one object per world" } },
  .run = run,
};
