/* SPDX-License-Identifier: MIT
**
** shell.c - moongrid shell: a prompt with a topology in scope. Lines are edited by libedit or readline where one is here,
** which is looked for when the prompt starts; without it lines are read as they are.
*/
#include "command/cli.h"
#include "base/output.h"
#include "recipe/runtime.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HISTORY = 1000 }; /* lines kept */

/* ------------------------------------------------------------------- editing */

/* The functions of libedit, which has those of readline. */
typedef struct editor {
  void *library; /* NULL: none */
  char *(*readline)(const char *prompt);
  int (*add_history)(const char *line);
  void (*stifle_history)(int lines);
  int (*read_history)(const char *path);
  int (*write_history)(const char *path);
  char **(*matches)(const char *word, char *(*each)(const char *word, int state));
  char ***(*complete)(const char *word, int start, int end); /* what its variable points to */
  char **line;                                               /* as typed so far */
  char   history[4096];                                      /* the file; "": none */
} editor;

/* Completion has no argument for data of its own. */
static struct {
  mgrid_runtime *rt;
  editor        *e;
  mgrid_text     words;
  const char    *next;
} completing;

/* Give the next candidate, on the heap; NULL: no more. */
static char *next_word(const char *word, int state) {
  (void)word;
  if (state == 0) completing.next = mgrid_text_chars(&completing.words);
  size_t n = strcspn(completing.next, "\n");
  if (n == 0) return NULL;
  char *copy = strndup(completing.next, n);
  completing.next += n + (completing.next[n] == '\n');
  return copy;
}

static char **complete(const char *word, int start, int end) {
  (void)start;
  char *line = strndup(*completing.e->line, (size_t)end);
  mgrid_text_free(&completing.words);
  if (line) mgrid_runtime_complete(completing.rt, line, &completing.words, NULL);
  free(line);
  return completing.e->matches(word, next_word);
}

/* Find a symbol; NULL: a library without it is not used. */
static bool find(void *library, const char *name, void *to) {
  void *symbol = dlsym(library, name);
  memcpy(to, &symbol, sizeof symbol); /* ISO C has no conversion to a function */
  return symbol;
}

static bool open_editor(editor *e, const char *name) {
  void *over = NULL, *append = NULL, *breaks = NULL, *completion = NULL;
  char **(*own)(const char *word, int start, int end) = complete;
  static char marks[] = " \t\n\"'(){}[]+-*/%,;=<>~#|&^";
  char       *at = marks;
  if (!(e->library = dlopen(name, RTLD_LAZY | RTLD_LOCAL))) return false;
  bool all = find(e->library, "readline", &e->readline) && find(e->library, "add_history", &e->add_history)
             && find(e->library, "stifle_history", &e->stifle_history)
             && find(e->library, "read_history", &e->read_history)
             && find(e->library, "write_history", &e->write_history)
             && find(e->library, "rl_completion_matches", &e->matches) && find(e->library, "rl_line_buffer", &e->line)
             && find(e->library, "rl_attempted_completion_function", &completion)
             && find(e->library, "rl_attempted_completion_over", &over)
             && find(e->library, "rl_completion_append_character", &append)
             && find(e->library, "rl_completer_word_break_characters", &breaks);
  if (all) {
    memcpy(completion, &own, sizeof own);
    memcpy(append, &(int){ 0 }, sizeof(int));
    memcpy(breaks, &at, sizeof at);
    return true;
  }
  dlclose(e->library);
  e->library = NULL;
  return false;
}

/* Find the file of the history, in a folder that is made if needed: $XDG_STATE_HOME/moongrid, else ~/.local/state/moongrid. */
static void find_history(editor *e) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  bool        own = state && *state == '/';
  if (!own && (!home || *home != '/')) return;
  int n =
      snprintf(e->history, sizeof e->history, "%s%s/moongrid/shell", own ? state : home, own ? "" : "/.local/state");
  if (n < 0 || (size_t)n >= sizeof e->history) {
    *e->history = '\0';
    return;
  }
  for (char *slash = e->history + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
    *slash = '\0';
    mkdir(e->history, 0700);
  }
}

static void begin(editor *e, mgrid_runtime *rt) {
  static const char *const libraries[] = { "libedit.so.2", "libreadline.so.8", "libedit.so.0" };
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !e->library; i++) open_editor(e, libraries[i]);
  if (!e->library) return;
  completing.rt = rt, completing.e = e;
  find_history(e);
  e->stifle_history(HISTORY);
  if (*e->history) e->read_history(e->history);
}

static void finish(editor *e) {
  mgrid_output *file = e->library && *e->history ? mgrid_output_file(e->history, MGRID_WRITE_OVER, NULL) : NULL;
  const char   *place = file ? mgrid_output_place(file) : NULL;
  bool          good = file && e->write_history(place) == 0;
  if (good && strcmp(place, e->history) != 0) good = chmod(place, 0600) == 0; /* not a device */
  mgrid_output_end(file, good ? MGRID_OK : MGRID_OUTPUT, NULL);
  mgrid_text_free(&completing.words);
}

/* Return the next line without its newline, on the heap; NULL at the end. */
static char *read_line(const editor *e, const char *prompt, bool asks) {
  char  *line = NULL;
  size_t room = 0;
  if (e->library) return e->readline(prompt);
  if (asks) fputs(prompt, stdout), fflush(stdout);
  ssize_t n = getline(&line, &room, stdin);
  if (n > 0 && line[n - 1] == '\n') line[n - 1] = '\0';
  if (n >= 0) return line;
  free(line);
  return NULL;
}

/* -------------------------------------------------------------------- prompt */

/* Run what was typed; *more: it is unfinished. */
static mgrid_status run_typed(const cli *c, mgrid_runtime *rt, const char *typed, bool *more) {
  mgrid_error  err = MGRID_ERROR_INIT;
  mgrid_text   out = { 0 };
  mgrid_status s = mgrid_runtime_run(rt, typed, &out, more, &err);
  if (s) {
    const char *text = strncmp(err.message, "line:", 5) == 0 ? strstr(err.message, ": ") : NULL;
    if (text) mgrid_error_reword(&err, "%s", text + 2); /* a position in what is on the screen says nothing */
    cli_say(c, &err);
  } else if (out.len) {
    mgrid_text shown = { 0 };
    mgrid_text_shown_lines(&shown, out.data);
    printf("%s\n", mgrid_text_chars(&shown));
    mgrid_text_free(&shown);
  }
  fflush(stdout);
  mgrid_text_free(&out);
  return s;
}

extern char **environ;

/* Run ":why 0 8" as `moongrid why` of this recipe, world and arguments, in a process of its own. */
static mgrid_status run_subcommand(const cli *c, char *typed) {
  enum { FIXED = 12, WORDS = 64 };
  char        world[24], self[] = "/proc/self/exe";
  const char *argv[FIXED + CLI_ARGS_MAX + WORDS];
  size_t      n = 0, words = 0;
  char       *rest = NULL, *word = strtok_r(typed, " \t", &rest);
  if (!word) return cli_usage(c, "a colon takes a subcommand of moongrid for this recipe, as :why 0 1");
  if (strcmp(word, c->command->name) == 0) return cli_usage(c, "this is a shell already");
  snprintf(world, sizeof world, "%" PRId64, c->world);
  const struct {
    const char *name, *value;
  } given[] = { { "--world", world }, { "--params", c->params }, { "--machine", c->machine }, { "--color", c->color } };
  argv[n++] = "moongrid", argv[n++] = word, argv[n++] = c->recipe;
  for (size_t i = 0; i < sizeof given / sizeof *given; i++)
    if (given[i].value) argv[n++] = given[i].name, argv[n++] = given[i].value;
  for (size_t i = 0; i < c->nargs; i++) argv[n++] = c->args[i];
  while ((word = strtok_r(NULL, " \t", &rest)) && words++ < WORDS - 1) argv[n++] = word;
  argv[n] = NULL;
  if (word) return cli_usage(c, "a line has at most %d words", WORDS);
  pid_t child;
  int   how = 0;
  if (posix_spawn(&child, self, NULL, NULL, (char *const *)argv, environ) || waitpid(child, &how, 0) < 0)
    return cli_usage(c, "moongrid cannot be started again: %s", self);
  return WIFEXITED(how) ? (mgrid_status)(100 * WEXITSTATUS(how)) : MGRID_LIMIT;
}

/* Read and run lines up to the end. At a terminal mistakes are shown and the prompt goes on; else the first one ends it. */
static mgrid_status converse(const cli *c, mgrid_runtime *rt, bool asks) {
  editor       e = { 0 };
  mgrid_text   typed = { 0 };
  mgrid_status s = MGRID_OK;
  if (asks) begin(&e, rt);
  for (char *line; (asks || !s) && (line = read_line(&e, typed.len ? ">> " : "> ", asks)); free(line)) {
    bool more = false;
    if (typed.len && !*line && asks) mgrid_text_free(&typed), *line = '\0'; /* an empty line gives up */
    if (e.library && *line) e.add_history(line);
    if (typed.len) mgrid_text_str(&typed, "\n");
    mgrid_text_str(&typed, line);
    char *begins = typed.len ? typed.data + strspn(typed.data, " \t\n") : NULL;
    if (begins && *begins == ':' && begins[1] != ':')
      s = run_subcommand(c, begins + 1);
    else if (begins && *begins)
      s = run_typed(c, rt, typed.data, &more);
    if (!more) mgrid_text_free(&typed);
  }
  if (asks) printf("\n");
  if (!asks && !s && typed.len) s = cli_usage(c, "the last lines are unfinished: %s", typed.data);
  mgrid_text_free(&typed);
  finish(&e);
  return asks ? MGRID_OK : s;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  cli         c = { 0 };
  mgrid_error err = MGRID_ERROR_INIT;
  if (!cli_parse(&c, self, argc, argv)) return c.code;
  if (cli_needs(&c, c.world)) return MGRID_USAGE;
  if (c.ranks > 1) return cli_usage(&c, "shell is for one process, without a launcher");
  if (cli_from_stdin(&c)) return cli_usage(&c, "shell reads its lines from standard input; write the recipe to a file");
  mgrid_runtime *rt = cli_load(&c, &err);
  mgrid_plan    *p = rt ? cli_plan(&c, rt, c.world, &err) : NULL;
  mgrid_status   s = p ? MGRID_OK : cli_say(&c, &err);
  bool           asks = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  if (p && asks) {
    cli_show_head(&c, p, "", false);
    printf("t is its topology, with world and p; families and grids have their names; :why 0 1, :draw and the\n"
           "other subcommands are for it. Tab completes, Ctrl-D ends.\n");
  }
  mgrid_plan_free(p);
  if (p) s = converse(&c, rt, asks);
  mgrid_runtime_free(rt);
  return cli_finish(&c, s);
}

const cli_command command_shell = {
  .name = "shell",
  .takes = "RECIPE --world N [...]",
  .does = "a prompt with its families in scope",
  .usage = "moongrid shell RECIPE --world N [NAME=VALUE ...]",
  .about =
      "Read lines of Lua and print what they return, with the words of recipes and what build of this one has made:\n"
      "its families and grids by name, the topology t, the world, the parameters p. A name that is assigned stays.\n"
      "A line that begins with a colon is a subcommand for this recipe: ':why 0 8', ':draw --family tp', ':diff vs "
      "tp=4'.\n"
      "At a terminal lines are edited, completed by Tab and kept in a history, if libedit or readline is here; in a\n"
      "pipe the first mistake ends.",
  .sample = "moongrid shell megatron --world 16 tp=2 pp=2",
  .recipe = true,
  .options = { CLI_WORLD("ranks in the world") },
  .run = run,
};
