/* SPDX-License-Identifier: MIT
**
** draw.c - moongrid draw: the groups of a recipe as a picture, in the terminal or in a file.
*/
#include "pictures/draw.h"

#include "pictures/command/page.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

typedef struct options {
  cli         cli;
  cli_sizes   worlds; /* several only for a page */
  int64_t     rank;   /* -1: not given */
  const char *family, *output;
} options;

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n > m && strcmp(text + n - m, end) == 0;
}

/* Return whether an earlier family has the same groups. */
static bool drawn_already(const mgrid_plan *p, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (mgrid_family_equal(p->content.entry[i].family, p->content.entry[k].family)) return true;
  return false;
}

/* List the families that --family names; else all, without those that repeat another's groups. *n: their number. */
static mgrid_status choose(const options *c, const mgrid_plan *p, bool all, int *family, size_t *n, mgrid_error *err) {
  size_t count = mgrid_plan_nfamilies(p);
  *n = 0;
  if (!c->family) {
    for (size_t i = 0; i < count && all; i++)
      if (!drawn_already(p, i)) family[(*n)++] = (int)i;
    return MGRID_OK;
  }
  return cli_families(p, c->family, family, n, err);
}

/* How many lines of a screen the text takes. *fits, if it is not NULL: the bytes of the first lines that fit `room`. */
static int lines_of(const mgrid_text *t, int width, int room, size_t *fits) {
  int n = 0, column = 0;
  for (size_t i = 0; i < t->len; i++) {
    char ch = t->data[i];
    if (ch == '\033') { /* a colour, as "ESC[0;1m" */
      while (i + 1 < t->len && t->data[i] != 'm') i++;
    } else if (ch != '\n') {
      column += ((unsigned char)ch & 0xc0) != 0x80;
    } else {
      n += column > width ? (column + width - 1) / width : 1;
      column = 0;
      if (fits && n <= room) *fits = i + 1;
    }
  }
  return n;
}

/* Draw what fits the screen: fewer ranks of each grid, and where that is not enough, the first lines. */
static mgrid_status draw_screen(const options *c, mgrid_drawing *d, mgrid_text *t, mgrid_error *err) {
  static const char more[] = "more: | less -R, or -o FILE.txt, .svg, .html; a part: --family F,G, --rank R";
  enum { LEAST = 8, LEAST_OF_MANY = 32 };                         /* ranks of a grid: of one picture, of several */
  int          width = c->cli.columns, screen = c->cli.lines - 1; /* a line is the prompt's */
  int          room = screen - ((int)sizeof more - 2 + width) / width;
  size_t       fits = 0;
  int          list = d->n ? 0 : (int)mgrid_plan_nfamilies(d->plan); /* lines below the grids; these may take half */
  int          grids = room - (list < room / 2 ? list : room / 2);
  mgrid_status s = mgrid_draw_text(d, t, err);
  if (s || lines_of(t, width, 0, NULL) <= screen) return s;
  for (d->most = MGRID_DRAW_WHOLE; !s && lines_of(t, width, 0, NULL) - list > grids;) {
    if (d->most <= (d->n > 1 ? LEAST_OF_MANY : LEAST)) break;
    d->most /= 2;
    t->len = 0;
    s = mgrid_draw_text(d, t, err);
  }
  if (s) return s;
  if (lines_of(t, width, room - 1, &fits) > room) {
    int left = 0;
    for (size_t i = fits; i < t->len; i++) left += t->data[i] == '\n';
    t->len = fits;
    mgrid_text_add(t, "  ... %d lines more\n", left);
  }
  mgrid_text_add(t, "%s\n", more);
  return t->failed ? mgrid_oom(err) : MGRID_OK;
}

static mgrid_status draw_on(const options *c, const mgrid_plan *p, const mgrid_machine_model *m, mgrid_error *err) {
  bool          svg = c->output && ends_with(c->output, ".svg");
  mgrid_drawing d = { .plan = p,
                      .machine = m,
                      .rank = c->rank,
                      .columns = c->output ? 80 : c->cli.columns,
                      .unicode = c->cli.unicode,
                      .colour = c->cli.bold && !c->output };
  mgrid_text    t = { 0 };
  int          *family = malloc((mgrid_plan_nfamilies(p) + 1) * sizeof *family);
  if (!family) return mgrid_oom(err);
  d.family = family;
  mgrid_status s = choose(c, p, svg || c->rank >= 0, family, &d.n, err);
  bool         screen = !c->output && c->cli.lines;
  if (!s) s = svg ? mgrid_draw_svg(&d, &t, err) : screen ? draw_screen(c, &d, &t, err) : mgrid_draw_text(&d, &t, err);
  if (!s && c->output)
    s = cli_write_file(c->output, &t, err);
  else if (!s)
    cli_sink(stdout, mgrid_text_chars(&t), t.len);
  mgrid_text_free(&t);
  free(family);
  return s;
}

/* With --machine ranks are drawn where they run. A saved plan may not have the machine. */
static mgrid_status draw(const cli *c, mgrid_runtime *const rt[2], const mgrid_plan *const plan[2], mgrid_error *err) {
  const options *o = (const options *)c;
  (void)rt;
  if (!c->machine) return draw_on(o, plan[0], NULL, err);
  mgrid_machine_model *m = mgrid_machine_ref(mgrid_plan_machine(plan[0]));
  if (!m) m = mgrid_machine_open(c->machine, err);
  mgrid_status s = m ? draw_on(o, plan[0], m, err) : err->status;
  mgrid_machine_free(m);
  return s;
}

static mgrid_status draw_page(const options *c) {
  mgrid_text     t = { 0 };
  mgrid_error    err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = cli_load(&c->cli, &err);
  mgrid_status   s = rt ? cli_page(&c->cli, &c->worlds, rt, &t, &err) : err.status;
  if (!s) s = cli_write_file(c->output, &t, &err);
  if (s) cli_say(&c->cli, &err);
  mgrid_text_free(&t);
  mgrid_runtime_free(rt);
  return cli_finish(&c->cli, s);
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options c = { .rank = -1 };
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (cli_needs(&c.cli, c.worlds.at[0])) return MGRID_USAGE;
  int64_t world = c.worlds.at[0];
  bool    html = c.output && ends_with(c.output, ".html");
  if (cli_beyond(&c.cli, c.rank, world)) return MGRID_USAGE;
  if (c.output && !html && !ends_with(c.output, ".svg") && !ends_with(c.output, ".txt"))
    return cli_usage(&c.cli, "--output is a file that ends with .svg, .html or .txt, not '%s'", c.output);
  if (html && (c.family || c.rank >= 0)) return cli_usage(&c.cli, "a page takes no --family and no --rank: it has all");
  if (!html && c.worlds.n > 1) return cli_usage(&c.cli, "several worlds go into a page: -o FILE.html");
  c.cli.world = world;
  return html ? draw_page(&c) : cli_with_plans(&c.cli, NULL, draw);
}

const cli_command command_draw = {
  .name = "draw",
  .takes = "RECIPE --world N [...] [-o FILE.svg]",
  .does = "a picture of its groups",
  .usage = "moongrid draw RECIPE --world N [NAME=VALUE ...] [--family F,G] [--rank R] [--machine M] [-o FILE.svg]",
  .about = "Draw the grids of a recipe and the groups in them: in the terminal, or as SVG, a panel per family.\n"
           "Without --family the terminal gets the grids, and the groups of all families below. Worlds above\n"
           "4096 ranks are drawn in part, and said to be; so is, on a terminal, what does not fit the screen.\n"
           "With --machine ranks are drawn where they run, in boxes of nodes and racks, and what crosses them is\n"
           "coloured: in the terminal yellow for a node, red for more.",
  .sample = "moongrid draw megatron --world 16 tp=2 pp=2 --family tp,pp",
  .recipe = true,
  .options = { { "world", cli_worlds, offsetof(options, worlds), "N", .help = "ranks in the world" },
               { "family", cli_text, offsetof(options, family), "F,G",
                 .help = "these families alone; in the terminal lines go between their groups" },
               { "rank", cli_index, offsetof(options, rank), "R", .help = "make the groups of one rank stand out" },
               { "output", cli_text, offsetof(options, output), "FILE",
                 .help = "write a file: .svg; .txt for what the terminal gets; .html, a page without network for up "
                         "to 4096 ranks, in which families are chosen, ranks are asked why they talk, and --world "
                         "8,16 and NAME=1,2,4 become sliders",
                 .letter = true } },
  .run = run,
  .after = "plan",
};
