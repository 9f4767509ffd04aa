/* SPDX-License-Identifier: MIT
**
** options.c - read the command line of a subcommand, by the options in its row.
*/
#include "command/cli.h"

#include "base/base.h"
#include "plan/plan.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---------------------------------------------------------------- launcher */

void cli_find_launcher(cli *c) {
  mgrid_launched l = mgrid_launcher();
  c->launched = l.by != NULL;
  c->me = l.rank;
  c->ranks = l.size;
}

/* ------------------------------------------------------------------ values */

mgrid_status cli_flag(const cli *c, const char *name, const char *value, void *to) {
  (void)c, (void)name, (void)value;
  *(bool *)to = true;
  return MGRID_OK;
}

mgrid_status cli_text(const cli *c, const char *name, const char *value, void *to) {
  (void)c, (void)name;
  *(const char **)to = value;
  return MGRID_OK;
}

mgrid_status cli_number(const cli *c, const char *name, const char *value, void *to) {
  char     *end;
  long long n = strtoll(value, &end, 10);
  if (*value == '\0' || *end != '\0' || n < 1 || n > MGRID_WORLD_MAX)
    return cli_usage(c, "%s is an integer from 1 to %" PRId64 ", not '%s'", name, MGRID_WORLD_MAX, value);
  *(int64_t *)to = n;
  return MGRID_OK;
}

mgrid_status cli_world(const cli *c, const char *name, const char *value, void *to) {
  size_t digits = strspn(value, "0123456789");
  bool   list = digits > 0 && value[digits] == ',';
  return list || *(int64_t *)to ? cli_usage(c, "%s takes one size", name) : cli_number(c, name, value, to);
}

bool cli_range(const char **at, int64_t *first, int64_t *last) {
  char *end;
  *first = *last = strtoll(*at, &end, 10);
  if (end == *at || *first < 0) return false;
  if (strncmp(end, "..", 2) == 0) {
    *at = end + 2;
    *last = strtoll(*at, &end, 10);
    if (end == *at || *last < *first) return false;
  }
  *at = end;
  return !*end || *end == ',';
}

/* ----------------------------------------------------------------- options */

static mgrid_status add_argument(cli *c, const char *word) {
  if (c->nargs == CLI_ARGS_MAX) return cli_usage(c, "more than %d arguments", CLI_ARGS_MAX);
  c->args[c->nargs++] = word;
  return MGRID_OK;
}

/* Read --option FAMILY.OPTION=VALUE, an argument like NAME=VALUE, recognized by its dot. */
static mgrid_status read_choice(const cli *c, const char *name, const char *value, void *to) {
  const char *dot = strchr(value, '.'), *eq = strchr(value, '=');
  if (!dot || !eq || eq < dot)
    return cli_usage(c, "%s is FAMILY.OPTION=VALUE, as tp.max_ctas=8, not '%s'", name, value);
  return add_argument(to, value);
}

static const cli_option common[] = {
  { "machine", cli_machine, offsetof(cli, machine), "MACHINE",
    .help = "where ranks run: levels, as \"node:4 gpu:8\", a preset, a file, or the ranks of a machine",
    .agreed = true },
  { "params", cli_text, offsetof(cli, params), "FILE",
    .help = "parameters: JSON, YAML, or Lua that returns a table; NAME=VALUE overrides them", .side = true },
  { "option", read_choice, 0, "FAMILY.OPTION=VALUE",
    .help = "an option of a family, as tp.max_ctas=8; * matches any: '*.timeout=600'", .side = true },
  { "color", cli_text, offsetof(cli, color), "auto|always|never",
    .help = "when to use colour; every command accepts it, even if it prints none" },
  { .name = "help", .read = cli_flag, .at = offsetof(cli, help) },
};
enum { COMMON = sizeof common / sizeof common[0] };
_Static_assert((int)COMMON <= (int)CLI_COMMON_MAX, "CLI_KNOWN_MAX has room for all");

size_t cli_options_of(const cli_command *command, const cli_option *known[CLI_KNOWN_MAX]) {
  size_t n = 0;
  for (const cli_option *o = command->options; n < CLI_OPTIONS_MAX && o->name; o++) known[n++] = o;
  for (size_t i = 0; i < COMMON; i++) known[n++] = &common[i];
  return n;
}

enum { VALUES_LEN = 64 };

/* List all values that an option may have. Return how many; 0: other values are allowed, too. `room` is for their
** text. */
static size_t values_of(const cli_option *o, const char *values[CLI_VALUES_MAX], char room[VALUES_LEN]) {
  size_t n = 0;
  char  *save = NULL;
  if (o->values) return o->values(values);
  if (!o->value || !strchr(o->value, '|')) return 0;
  snprintf(room, VALUES_LEN, "%s", o->value);
  for (char *word = strtok_r(room, "|", &save); word && n < CLI_VALUES_MAX; word = strtok_r(NULL, "|", &save))
    values[n++] = word;
  return n;
}

/* Refuse a value that is not one of those allowed. */
static mgrid_status check_value(const cli *c, const cli_option *o, const char *value) {
  const char *known[CLI_VALUES_MAX];
  char        room[VALUES_LEN], tail[128];
  size_t      n = values_of(o, known, room);
  mgrid_text  all = { 0 };
  for (size_t i = 0; i < n; i++)
    if (strcmp(known[i], value) == 0) return MGRID_OK;
  if (n == 0) return MGRID_OK;
  mgrid_suggest(tail, sizeof tail, value, known, n);
  if (o->values) return cli_usage(c, "unknown %s '%s'%s", o->name, value, tail);
  for (size_t i = 0; i < n; i++) mgrid_text_add(&all, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", known[i]);
  cli_usage(c, "--%s is %s, not '%s'", o->name, mgrid_text_chars(&all), value);
  mgrid_text_free(&all);
  return MGRID_USAGE;
}

/* Read an option, for both sides of "A vs B" unless each side has its own. */
static mgrid_status read_option(cli *c, const cli_option *o, const char *value) {
  char name[64];
  snprintf(name, sizeof name, "--%s", o->name);
  mgrid_status s = value ? check_value(c, o, value) : MGRID_OK;
  if (!s) s = o->read(c, name, value, (char *)c + o->at);
  if (!s && c->other && !o->side) s = o->read(c, name, value, (char *)c->other + o->at);
  return s;
}

void cli_agreed(const cli *c, mgrid_text *t) {
  const cli_option *known[CLI_KNOWN_MAX];
  size_t            n = cli_options_of(c->command, known);
  for (size_t i = 0; i < n; i++) {
    const cli_option *o = known[i];
    const void       *at = (const char *)c + o->at;
    if (!o->agreed) continue;
    if (o->read == cli_flag && *(const bool *)at) mgrid_text_add(t, " --%s", o->name);
    if ((o->read == cli_text || o->read == cli_machine) && *(const char *const *)at)
      mgrid_text_add(t, " --%s %s", o->name, *(const char *const *)at);
    if (o->read == cli_number && *(const int64_t *)at)
      mgrid_text_add(t, " --%s %" PRId64, o->name, *(const int64_t *)at);
  }
}

static mgrid_status unknown_option(const cli *c, const char *option) {
  const cli_option *known[CLI_KNOWN_MAX];
  const char       *names[CLI_KNOWN_MAX];
  size_t            n = cli_options_of(c->command, known);
  char              tail[256], word[64];
  for (size_t i = 0; i < n; i++) names[i] = known[i]->name;
  snprintf(word, sizeof word, "%.*s", (int)strcspn(option, "="), option);
  for (size_t i = 0; i < n && option[strlen(word)] == '='; i++)
    if (strcmp(word, names[i]) == 0) return cli_usage(c, "option '--%s' takes no value", word);
  mgrid_suggest(tail, sizeof tail, word, names, n);
  bool parameter = !mgrid_nearest(word, names, n);
  return cli_usage(c, "unknown option '--%s' of %s%s%s%s%s", word, c->command->name, tail,
                   parameter ? "; parameters are written " : "", parameter ? word : "", parameter ? "=VALUE" : "");
}

/* `next` is the next word, "" if there is none. */
static mgrid_status positional(cli *c, const char *word, const char *next) {
  const char *eq = strchr(word, '=');
  bool        argument = eq && !memchr(word, '/', (size_t)(eq - word));
  if (!argument && !c->recipe) {
    c->recipe = word;
    return MGRID_OK;
  }
  const char *last = c->nargs ? c->args[c->nargs - 1] : "";
  bool blanks = *next == '=' || (*last && last[strlen(last) - 1] == '='); /* tp = 2 is three words, tp= 2 is two */
  if (!argument)
    return cli_usage(c, "argument '%s' is not of the form NAME=VALUE%s, and the recipe is '%s'%s", word,
                     blanks ? ", without blanks" : "", c->recipe,
                     c->other && !blanks ? "; 'vs' stands between two sides, unless both are saved plans" : "");
  return add_argument(c, word);
}

static mgrid_status parse(cli *c, int argc, char **argv) {
  enum { POSITIONAL = 1, LONG }; /* getopt_long returns 1 for a word that is not an option */
  const cli_option *known[CLI_KNOWN_MAX];
  struct option     longs[CLI_KNOWN_MAX + 1] = { 0 };
  char              letters[2 * CLI_KNOWN_MAX + 4] = "-:h";
  size_t            n = cli_options_of(c->command, known), end = strlen(letters);
  for (size_t i = 0; i < n; i++) {
    longs[i] =
        (struct option){ known[i]->name, known[i]->read == cli_flag ? no_argument : required_argument, NULL, LONG };
    if (!known[i]->letter) continue;
    letters[end++] = *known[i]->name;
    letters[end++] = ':';
  }
  opterr = 0;
  optind = 1;
  mgrid_status s = MGRID_OK;
  while (!s) {
    int at = optind, nth = 0, o = getopt_long(argc, argv, letters, longs, &nth);
    if (o == -1) break;
    const char *word = argv[at];
    if (o == ':') return cli_usage(c, "option '%s' needs a value", argv[optind - 1]);
    if (o == '?' && word[0] == '-' && word[1] != '-')
      return cli_usage(c, "unknown option '%s' of %s%s", word, c->command->name,
                       strchr("nw", word[1])              ? "; --world N is the number of ranks"
                       : word[1] >= '0' && word[1] <= '9' ? "; ranks are 0 or more"
                                                          : "");
    if (o == '?') return unknown_option(c, argv[optind - 1] + 2);
    if (o == 'h') c->help = true;
    if (o == POSITIONAL) s = positional(c, optarg, optind < argc ? argv[optind] : "");
    for (size_t i = 0; i < n; i++)
      if (known[i]->letter && o == *known[i]->name) nth = (int)i, o = LONG;
    if (o == LONG) s = read_option(c, known[nth], optarg);
  }
  for (; optind < argc && !s; optind++)
    s = positional(c, argv[optind], optind + 1 < argc ? argv[optind + 1] : ""); /* after "--" */
  return s || c->help ? s : cli_check_output(c, argc, argv);
}

static void find_terminal(cli *c) {
  struct winsize size;
  bool           known = isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  c->columns = known ? (size.ws_col < 40 ? 40 : size.ws_col) : 80;
}

static void begin(cli *c, const cli_command *command, cli *other) {
  c->command = command, c->other = other;
  cli_find_launcher(c);
  find_terminal(c);
}

/* Finish cli_parse with this result of reading the words. */
static bool end(cli *c, mgrid_status s) {
  c->code = s || !c->help ? s : cli_help(c);
  return !s && !c->help;
}

bool cli_parse(cli *c, const cli_command *command, int argc, char **argv) {
  begin(c, command, NULL);
  return end(c, parse(c, argc, argv));
}

mgrid_status cli_needs(const cli *c, int64_t world) {
  if (!c->recipe)
    return cli_usage(c, "%s needs a recipe: a file, or one that 'moongrid recipes' lists", c->command->name);
  const char *hint = "", *json = strrchr(c->recipe, '.');
  for (size_t i = 0; i < c->nargs; i++)
    if (strncmp(c->args[i], "world=", 6) == 0) hint = "; world=N would be a parameter of the recipe";
  if (world || cli_is_saved(c)) return MGRID_OK;
  if (json && strcmp(json, ".json") == 0)
    return cli_usage(c, "%s needs --world N, the number of ranks: %s is not a saved plan", c->command->name, c->recipe);
  return cli_usage(c, "%s needs --world N, the number of ranks%s", c->command->name, hint);
}

bool cli_parse_sides(cli *a, cli *b, const cli_command *command, int argc, char **argv) {
  int vs = 1;
  while (strcmp(argv[vs], "vs") != 0) vs++;
  begin(a, command, b);
  begin(b, command, a);
  mgrid_status s = parse(a, vs, argv);
  if (!s && !a->help && vs + 1 == argc && cli_is_saved(a)) /* of a recipe it is that one with its defaults */
    s = cli_usage(a, "nothing stands after 'vs', and %s is a saved plan, which has no parameters to change", a->recipe);
  if (!s && !a->help) {
    argv[vs] = argv[0]; /* getopt expects the program's name there */
    s = parse(b, argc - vs, argv + vs);
  }
  if (!end(a, s)) return false;
  if (!b->recipe) b->recipe = a->recipe;
  a->code = cli_needs(a, 1);
  return !a->code;
}
