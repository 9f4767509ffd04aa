/* SPDX-License-Identifier: MIT
**
** explain.c - moongrid explain: how each family was made, in words and numbers.
*/
#include "command/cli.h"
#include "command/built_in_texts.h"
#include "command/group_lines.h"
#include "plan/plan.h"
#include "recipe/runtime.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
  cli         cli;
  mgrid_site  site;
  const char *family; /* only these, F,G; NULL: not given */
} options;

/* Set the ranks of a machine: those of --machine or the recipe's machine, else its gpus_per_node, else unchanged. */
static void machine_of(const cli *c, const mgrid_plan *p, mgrid_site *site) {
  static const char *const names[] = { "gpus_per_node", "ranks_per_node", "nproc_per_node" };
  int64_t                  asked = cli_machine_ranks(c, p);
  for (size_t i = 0; i < p->content.nparams && !asked; i++)
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
      if (strcmp(p->content.param[i].name, names[k]) == 0) asked = strtoll(p->content.param[i].value, NULL, 10);
  site->machine_ranks = asked >= 1 && asked <= MGRID_MACHINE_RANKS_MAX ? asked : MGRID_SITE_RANKS;
}

/* -------------------------------------------------------------- lines of recipes */

/* Append line n of a text, without blanks at its ends. */
static void put_line(mgrid_text *t, const char *text, int64_t n) {
  for (; text && --n > 0; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL) {}
  if (!text) return;
  text += strspn(text, " \t");
  size_t len = strcspn(text, "\r\n");
  while (len && (text[len - 1] == ' ' || text[len - 1] == '\t')) len--;
  mgrid_text_put(t, text, len);
}

static void read_line(mgrid_text *t, const char *path, int64_t n) {
  mgrid_text all = { 0 };
  if (mgrid_read_file(path, &all, NULL) == MGRID_OK) put_line(t, all.data, n);
  mgrid_text_free(&all);
}

/* Print the line of "source:line", in a file or a part of a bundled recipe. */
static void put_place(const cli *c, const char *label, const char *at) {
  const char *colon = strrchr(at, ':');
  mgrid_text  t = { 0 }, safe = { 0 };
  size_t      len = colon ? (size_t)(colon - at) : 0;
  char       *source = colon ? mgrid_strdup(at) : NULL;
  if (source) {
    source[len] = '\0';
    const char *text = cli_text_of(source);
    if (text)
      put_line(&t, text, strtoll(colon + 1, NULL, 10));
    else
      read_line(&t, source, strtoll(colon + 1, NULL, 10));
  }
  free(source);
  mgrid_text_shown(&safe, at);
  mgrid_text_add(&safe, "  ");
  if (t.data && !t.failed) mgrid_text_shown(&safe, t.data);
  cli_wrap(c, label, &safe);
  mgrid_text_free(&t);
}

static void show_places(const cli *c, const json_t *places) {
  const char *last = "", *label = "  made by";
  for (size_t i = 0; i < json_array_size(places); i++) {
    const char *at = json_string_value(json_array_get(places, i));
    if (strcmp(at, last) == 0) continue;
    put_place(c, label, at);
    last = at, label = "";
  }
}

/* --------------------------------------------------------------- communicators */

/* Which family leads whose groups: entry k leads from[i * n + k] groups of entry i. */
typedef struct sharing {
  size_t   n;
  int64_t *from;
} sharing;

/* Append "2 groups are those of tp, 1 that of pp", for groups that an earlier family makes. */
static void say_leaders(mgrid_text *t, const mgrid_plan *p, const sharing *all, int i) {
  bool said = false;
  for (size_t k = 0; k < all->n; k++) {
    int64_t n = all->from[(size_t)i * all->n + k];
    if (n == 0 || (int)k == i) continue;
    const char *verb = said ? (n == 1 ? "that" : "those") : n == 1 ? "group is that" : "groups are those";
    mgrid_text_add(t, "%s %" PRId64 " %s of %s", said ? "," : ";", n, verb, p->content.entry[k].name);
    said = true;
  }
  if (said) mgrid_text_str(t, ", made before");
}

/* Append which communicators the family uses. */
static void say_communicators(mgrid_text *t, const mgrid_plan *p, const sharing *all, int i) {
  const mgrid_entry  *e = &p->content.entry[i];
  const mgrid_family *f = e->family;
  if (f->max_size < 2) {
    mgrid_text_str(t, "none: a group of one rank needs none");
    return;
  }
  if (e->choice->none) {
    mgrid_text_str(t, "none: the recipe asks for none");
    return;
  }
  if (p->shares[i] >= 0) {
    const mgrid_entry *head = &p->content.entry[p->shares[i]];
    mgrid_text_add(t, "those of %s, which is made before, has the same groups %s, and the same options", head->name,
                   mgrid_family_equal(f, head->family) ? "in the same order" : "among its own");
    return;
  }
  int64_t led = mgrid_plan_led(p, i, -1, NULL), again = all->from[(size_t)i * all->n + (size_t)i],
          ones = mgrid_family_singles(f);
  mgrid_text_add(t, led ? "%" PRId64 " of its own" : "none of its own", led);
  say_leaders(t, p, all, i);
  if (again) mgrid_text_add(t, "; %" PRId64 " group%s there before", again, again == 1 ? " was" : "s were");
  if (ones)
    mgrid_text_add(t, "; %" PRId64 " group%s of one rank need%s none", ones, mgrid_s_of(ones), ones == 1 ? "s" : "");
}

/* Print which families use them too, in full or in part. */
static void show_users(const cli *c, const mgrid_plan *p, const sharing *all, int i) {
  int        head = p->shares[i] >= 0 ? p->shares[i] : i, users = 0;
  mgrid_text list = { 0 }, t = { 0 };
  for (int k = 0; k < (int)all->n; k++) {
    if (k == i || (k != head && p->shares[k] != head)) continue;
    if (k != p->shares[i] && mgrid_family_equal(p->content.entry[k].family, p->content.entry[i].family))
      mgrid_text_add(&list, "%s%s", users++ ? ", " : "", p->content.entry[k].name);
  }
  if (users) {
    mgrid_text_add(&t, "%s ha%s the same groups and options, and share%s them", mgrid_text_chars(&list),
                   users == 1 ? "s" : "ve", users == 1 ? "s" : "");
    cli_wrap(c, "", &t);
  }
  mgrid_text_free(&list);
  for (int k = 0; k < (int)all->n; k++) {
    int64_t n = all->from[(size_t)k * all->n + (size_t)i];
    if (k == i || n == 0 || mgrid_family_equal(p->content.entry[k].family, p->content.entry[i].family)) continue;
    mgrid_text_add(&t, "%s shares %" PRId64 " of them", p->content.entry[k].name, n);
    cli_wrap(c, "", &t);
  }
}

/* Print which family makes the communicators, and which families have the same groups but other communicators. */
static void show_sharing(const cli *c, const mgrid_plan *p, const sharing *all, int i) {
  const mgrid_entry  *e = &p->content.entry[i];
  const mgrid_family *f = e->family;
  int                 head = p->shares[i] >= 0 ? p->shares[i] : i;
  mgrid_text          t = { 0 };
  say_communicators(&t, p, all, i);
  cli_wrap(c, "  communicator", &t);
  if (f->max_size < 2 || e->choice->none) return;
  show_users(c, p, all, i);
  for (int k = 0; k < (int)all->n; k++) {
    const mgrid_entry *o = &p->content.entry[k];
    if (k == head || p->shares[k] >= 0 || o->choice->none || !mgrid_family_equal(f, o->family)) continue;
    mgrid_text_add(&t, "%s has the same groups and communicators of its own: %s", o->name,
                   f->twin || o->family->twin ? "a twin is meant to be separate"
                   : strcmp(e->choice->text, o->choice->text) != 0
                       ? "its options differ"
                       : "the recipe separates families that are used at the same time");
    cli_wrap(c, "", &t);
  }
}

static void show_cost(const options *c, const mgrid_plan *p, int i) {
  const mgrid_entry *e = &p->content.entry[i];
  mgrid_text         t = { 0 };
  mgrid_demand       d = { 0 };
  int64_t            local = c->site.machine_ranks;
  if (e->family->max_size < 2 || e->choice->none) return;
  if (local > e->family->max_size) local = e->family->max_size;
  mgrid_entry_demand(e, e->family->max_size, local, &c->site, &d);
  if (d.created == 0)
    mgrid_text_str(&t, "nothing of a GPU: they are not NCCL's");
  else if (p->shares[i] >= 0)
    mgrid_text_add(&t, "nothing more; separate communicators would be %.0f MiB of each member's GPU",
                   (double)d.created / (1 << 20));
  else
    mgrid_text_add(&t, "with NCCL at most %.0f MiB of each member's GPU, %.0f MiB more with the first use",
                   (double)d.created / (1 << 20), (double)d.ring / (1 << 20));
  cli_wrap(&c->cli, "  cost", &t);
}

/* ------------------------------------------------------------------------- all */

static void show(const options *c, const mgrid_plan *p, const sharing *all, int i, const json_t *trail) {
  const char         *on = c->cli.bold ? "\033[1m" : "", *off = c->cli.bold ? "\033[0m" : "";
  const mgrid_entry  *e = &p->content.entry[i];
  const mgrid_family *f = e->family;
  mgrid_text          t = { 0 };
  cli_put_count(&t, f);
  printf("%s%s%s: %s%s\n", on, e->name, off, mgrid_text_chars(&t), f->overlapping ? " that share ranks" : "");
  t.len = 0;
  if (f->count) cli_put_groups(&t, f, c->cli.columns - 16);
  cli_wrap(&c->cli, "  groups", &t);
  mgrid_family_text(f, &t);
  cli_wrap(&c->cli, "  rule", &t);
  f->form->explain(f, &t);
  if (f->count) cli_wrap(&c->cli, "", &t);
  mgrid_text_free(&t);
  show_places(&c->cli, json_object_get(trail, e->name));
  if (*e->choice->text) {
    mgrid_text_str(&t, e->choice->text + 1);
    cli_wrap(&c->cli, "  options", &t);
  }
  show_sharing(&c->cli, p, all, i);
  show_cost(c, p, i);
}

static mgrid_status show_all(const options *c, const mgrid_plan *p, const json_t *trail, mgrid_error *err) {
  const char *list = c->family ? c->family : c->cli.nwords ? c->cli.words[0] : NULL;
  size_t      n = 0;
  sharing     all = { p->content.nentries, NULL };
  int        *family = malloc((all.n + 1) * sizeof *family);
  all.from = malloc((all.n * all.n + 1) * sizeof *all.from);
  mgrid_status s = !family || !all.from ? mgrid_oom(err) : list ? cli_families(p, list, family, &n, err) : MGRID_OK;
  for (; !s && !list && n < all.n; n++) family[n] = (int)n;
  for (size_t i = 0; i < all.n; i++) mgrid_plan_leaders(p, (int)i, all.from + i * all.n);
  if (!s && !list) cli_show_head(&c->cli, p, "", false);
  for (size_t i = 0; i < n && !s; i++) {
    if (i > 0 || !list) printf("\n");
    show(c, p, &all, family[i], trail);
  }
  free(family);
  free(all.from);
  return s;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options     c = { .site = MGRID_SITE_INIT };
  mgrid_error err = MGRID_ERROR_INIT;
  json_t     *trail = NULL;
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (cli_needs(&c.cli, c.cli.world)) return MGRID_USAGE;
  mgrid_runtime *rt;
  mgrid_status   s = cli_open(&c.cli, &rt, &err);
  if (rt) s = mgrid_runtime_trail(rt, &trail, &err);
  mgrid_plan *p = s ? NULL : cli_plan(&c.cli, rt, c.cli.world, &err);
  if (p) machine_of(&c.cli, p, &c.site);
  s = p ? show_all(&c, p, trail, &err) : err.status;
  if (s) cli_say(&c.cli, &err);
  json_decref(trail);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return cli_finish(&c.cli, s);
}

const cli_command command_explain = {
  .name = "explain",
  .takes = "RECIPE --world N [...] [FAMILY]",
  .does = "how each family was made",
  .usage = "moongrid explain RECIPE --world N [NAME=VALUE ...] [--family F,G]",
  .about =
      "How each family was made, or one of them: its rule in words, the lines of the recipe that made it, with which\n"
      "families it shares communicators and why, and what they cost.",
  .sample = "moongrid explain megatron --world 16 tp=2 pp=2 --family dp",
  .recipe = true,
  .words = 1,
  .options = { CLI_WORLD("ranks in the world"),
               { "family", cli_text, offsetof(options, family), "F,G",
                 .help = "only these; FAMILY without the option is one" } },
  .run = run,
};
