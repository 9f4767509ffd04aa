/* SPDX-License-Identifier: MIT
**
** cli.c - messages of the command; loading its recipe and plan.
*/
#include "command/slice.h"
#include "base/output.h"
#include "plan/plan.h"
#include "recipe/runtime.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* ----------------------------------------------------------------- messages */

mgrid_status cli_say(const cli *c, const mgrid_error *e) { return c->me == 0 ? cli_say_own(c, e) : e->status; }

mgrid_status cli_say_own(const cli *c, const mgrid_error *e) {
  if (c->me != 0) usleep(300000);
  if (c->launched)
    fprintf(stderr, "moongrid: [rank %" PRId64 "/%" PRId64 "] %s\n", c->me, c->ranks, e->message);
  else
    fprintf(stderr, "moongrid: %s\n", e->message);
  return e->status;
}

mgrid_status cli_usage(const cli *c, const char *fmt, ...) {
  mgrid_error e = MGRID_ERROR_INIT;
  char        text[sizeof e.message];
  va_list     args;
  va_start(args, fmt);
  mgrid_vformat(text, sizeof text, fmt, args);
  va_end(args);
  mgrid_fail(&e, MGRID_USAGE, "%s", text);
  return cli_say_own(c, &e);
}

mgrid_status cli_write_file(const char *path, const mgrid_text *t, mgrid_error *err) {
  if (t->failed) return mgrid_oom(err);
  fflush(stdout); /* which the file may be */
  return mgrid_write_file(path, MGRID_WRITE_OVER, mgrid_text_chars(t), t->len, err);
}

mgrid_status cli_put_json(const json_t *v, mgrid_error *err) {
  char        *text = v ? json_dumps(v, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
  mgrid_status s = text ? MGRID_OK
                   : v  ? mgrid_fail(err, MGRID_BAD_VALUE, "no JSON: a text in it is not UTF-8, or memory ran out")
                        : mgrid_oom(err);
  if (text) puts(text);
  free(text);
  return s;
}

mgrid_status cli_finish(const cli *c, mgrid_status s) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return s;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_unwritten(&e);
  cli_say(c, &e);
  return s ? s : e.status;
}

/* ------------------------------------------------------------------ recipes */

/* An mgrid_hooks log: print what recipes print on stderr, once. */
static void say_printed(void *ud, mgrid_level level, const char *message) {
  enum { KNOWN = 1024 };
  static uint64_t known[KNOWN]; /* hashes of what was printed: the recipe may be evaluated again for another world */
  static size_t   n;
  const cli      *c = ud;
  uint64_t        hash = XXH3_64bits(message, strlen(message));
  const char     *who = c->print ? c->print : "rank0";
  const bool      all = strcmp(who, "all") == 0;
  if (level != MGRID_LOG_RECIPE || strcmp(who, "none") == 0 || (c->me != 0 && !all)) return;
  for (size_t i = 0; i < n && i < KNOWN; i++)
    if (known[i] == hash) return;
  known[n++ % KNOWN] = hash;
  mgrid_text t = { 0 };
  mgrid_text_shown(&t, message);
  cli_progress_hide();
  if (all && c->ranks > 1)
    fprintf(stderr, "rank %" PRId64 ": %s\n", c->me, mgrid_text_chars(&t));
  else
    fprintf(stderr, "%s\n", mgrid_text_chars(&t));
  mgrid_text_free(&t);
}

#define STDIN "stdin"    /* the name of a recipe on standard input */
static mgrid_text typed; /* standard input, which can be read only once; `run - vs tp=2` loads it twice */

bool cli_from_stdin(const cli *c) {
  return c->recipe && (strcmp(c->recipe, "-") == 0 || strcmp(c->recipe, "/dev/stdin") == 0);
}

static mgrid_status read_stdin(const cli *c, mgrid_error *err) {
  if (c->ranks > 1)
    return mgrid_fail(err, MGRID_USAGE, "a launcher gives standard input to only one rank; write the recipe to a file");
  return typed.data ? MGRID_OK : mgrid_read_stdin(MGRID_SAVED_MAX, &typed, err);
}

static mgrid_status load_stdin(const cli *c, mgrid_runtime *rt, mgrid_error *err) {
  mgrid_status s = read_stdin(c, err);
  if (!s && typed.len > MGRID_TEXT_MAX)
    s = mgrid_fail(err, MGRID_REFUSED, "cannot read standard input: it has more than %d bytes", MGRID_TEXT_MAX);
  return s ? s : mgrid_runtime_load(rt, STDIN, mgrid_text_chars(&typed), typed.len, err);
}

bool cli_is_saved(const cli *c) {
  char head[64];
  if (!c->recipe) return false;
  if (cli_from_stdin(c)) return !read_stdin(c, NULL) && mgrid_plan_is_saved(mgrid_text_chars(&typed), typed.len);
  return mgrid_plan_is_saved(head, mgrid_file_begins(c->recipe, head, sizeof head));
}

static mgrid_plan *read_saved(const cli *c, int64_t world, mgrid_error *err) {
  mgrid_text  file = { 0 };
  mgrid_plan *p = NULL;
  bool        typed_in = cli_from_stdin(c);
  if (c->nargs || c->params)
    return mgrid_null(err, MGRID_USAGE, "%s is a saved plan; it takes no parameters and options of families",
                      c->recipe);
  if (!typed_in && mgrid_read_file_up_to(c->recipe, MGRID_SAVED_MAX, &file, err)) return NULL;
  const mgrid_text *t = typed_in ? &typed : &file;
  p = mgrid_plan_read(mgrid_text_chars(t), t->len, typed_in ? STDIN : c->recipe, err);
  mgrid_text_free(&file);
  if (p && world && world != mgrid_plan_world(p)) {
    mgrid_fail(err, MGRID_USAGE, "%s is a saved plan of %" PRId64 " ranks, not of %" PRId64, c->recipe,
               mgrid_plan_world(p), world);
    mgrid_plan_free(p);
    p = NULL;
  }
  return p;
}

/* For a recipe that is not a file: name the file of its folder with the nearest name. */
static void add_nearest_file(const char *path, mgrid_error *err) {
  enum { MOST = 256 };
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *known[MOST], *near = NULL;
  char       *folder = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup(".");
  size_t      n = 0;
  DIR        *d = folder && access(path, F_OK) ? opendir(folder) : NULL;
  for (const struct dirent *e; d && n < MOST && (e = readdir(d));) {
    size_t length = strlen(e->d_name);
    if (length > 4 && strcmp(e->d_name + length - 4, ".lua") == 0 && (known[n] = strdup(e->d_name))) n++;
  }
  mgrid_sort_names(known, n);
  near = mgrid_nearest(name, known, n);
  if (near) mgrid_error_reword(err, "%s; nearest is '%s%s'", err->message, slash ? folder : "", near);
  while (n > 0) free((char *)(uintptr_t)known[--n]);
  if (d) closedir(d);
  free(folder);
}

mgrid_runtime *cli_load(const cli *c, mgrid_error *err) {
  if (cli_is_saved(c))
    return mgrid_null(err, MGRID_BAD_VALUE,
                      "%s is a saved plan, which has no queries and policies; %s needs the recipe", c->recipe,
                      c->command->name);
  mgrid_hooks hooks = MGRID_HOOKS_INIT;
  hooks.ud = (void *)(uintptr_t)c, hooks.log = say_printed;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, &hooks, err);
  if (rt && !(cli_from_stdin(c) ? load_stdin(c, rt, err) : mgrid_runtime_load(rt, c->recipe, NULL, 0, err))
      && !cli_before_plans(c, rt, err))
    return rt;
  if (rt && err && strstr(c->recipe, ".lua")) add_nearest_file(c->recipe, err);
  mgrid_runtime_free(rt);
  return NULL;
}

mgrid_status cli_open(const cli *c, mgrid_runtime **rt, mgrid_error *err) {
  *rt = cli_is_saved(c) ? NULL : cli_load(c, err);
  return *rt || cli_is_saved(c) ? MGRID_OK : err->status;
}

mgrid_plan *cli_plan(const cli *c, mgrid_runtime *rt, int64_t world, mgrid_error *err) {
  mgrid_plan *p = rt ? mgrid_runtime_plan(rt, world, c->params, c->nargs, c->args, err) : read_saved(c, world, err);
  if (!p || !cli_after_plan(c, p, err)) return p;
  mgrid_plan_free(p);
  return NULL;
}

mgrid_plan *cli_evaluate(const cli *c, mgrid_runtime **rt, mgrid_error *err) {
  return cli_open(c, rt, err) ? NULL : cli_plan(c, *rt, c->world, err);
}

mgrid_status cli_unknown_family(const mgrid_plan *p, const char *name, mgrid_error *err) {
  char tail[512];
  mgrid_content_suggest(&p->content, name, tail, sizeof tail);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown family '%s'%s", name, tail);
}

mgrid_status cli_families(const mgrid_plan *p, const char *list, int *family, size_t *n, mgrid_error *err) {
  char *copy = mgrid_strdup(list), *save = NULL;
  *n = 0;
  if (!copy) return mgrid_oom(err);
  mgrid_status s = MGRID_OK;
  for (char *name = strtok_r(copy, ",", &save); name && !s; name = strtok_r(NULL, ",", &save)) {
    int64_t at = mgrid_content_find(&p->content, name);
    bool    again = false;
    for (size_t i = 0; i < *n; i++) again = again || family[i] == at;
    if (at >= 0 && !again) family[(*n)++] = (int)at;
    if (at < 0) s = cli_unknown_family(p, name, err);
  }
  free(copy);
  if (!s && *n == 0) s = mgrid_fail(err, MGRID_USAGE, "--family is a list of families, F,G; not '%s'", list);
  return s;
}

const char *cli_bytes(int64_t bytes, char *buf, size_t len) {
  static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
  double                   n = (double)bytes;
  int                      i = 0;
  while (n >= 1024 && i < 6) n /= 1024, i++;
  mgrid_format(buf, len, i == 0 ? "%.0f %s" : n < 10 ? "%.2f %s" : "%.1f %s", n, unit[i]);
  return buf;
}
