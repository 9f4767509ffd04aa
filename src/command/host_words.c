/* SPDX-License-Identifier: MIT
**
** host_words.c - C functions for the Lua of the command: the terminal, the launcher, files, and
** texts that are built in.
*/
#include "command/cli.h"

#include "base/files.h"
#include "moongrid_lua.h"
#include "recipe/bind.h"
#include "recipe/values.h"

#include <dirent.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---------------------------------------------------------- this process */

static bool is_unicode(void) {
  locale_t host = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
  bool is = host && strcmp(nl_langinfo_l(CODESET, host), "UTF-8") == 0;
  if (host) freelocale(host);
  return is;
}

/* terminal() -> whether stdout is a terminal; its columns and lines (0: not known); whether its
** locale is UTF-8; whether stderr and stdin are terminals */
static int terminal(lua_State *L) {
  struct winsize size = { 0 };
  bool is = isatty(STDOUT_FILENO), known = is && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  lua_pushboolean(L, is);
  lua_pushinteger(L, known ? size.ws_col : 0);
  lua_pushinteger(L, known ? size.ws_row : 0);
  lua_pushboolean(L, is_unicode());
  lua_pushboolean(L, isatty(STDERR_FILENO));
  lua_pushboolean(L, isatty(STDIN_FILENO));
  return 6;
}

/* launcher() -> rank, ranks, the launcher's name or nil */
static int launcher(lua_State *L) {
  mgrid_launched l = mgrid_launcher();
  lua_pushinteger(L, l.rank);
  lua_pushinteger(L, l.size);
  lua_pushstring(L, l.by);
  return 3;
}

/* pause(seconds) */
static int pause_for(lua_State *L) {
  usleep((useconds_t)(luaL_checknumber(L, 1) * 1e6));
  return 0;
}

/* put(text): write it to stdout, and count it for the progress */
static int put_out(lua_State *L) {
  size_t len;
  const char *given = luaL_checklstring(L, 1, &len);
  mgrid_error e = MGRID_ERROR_INIT;
  cli_progress_wrote(len);
  return fwrite(given, 1, len, stdout) == len ? 0
                                              : (mgrid_unwritten(&e), mgrid_lua_raise_error(L, &e));
}

/* progress([text]): show on the last line of a terminal what takes more than a second. Without a
** text, end this; do so before anything is printed */
static int command_progress(lua_State *L) {
  if (lua_isnoneornil(L, 1))
    cli_progress_end();
  else
    cli_progress(luaL_checkstring(L, 1));
  return 0;
}

/* guard([Job | text]): if the launcher ends the job, print on ranks 0 and 1 what the rank is doing:
** the text, or what the Job does at that time. Without an argument: print nothing, because an error
** was printed, or all is done */
static int guard(lua_State *L) {
  const mgrid_backend *b = mgrid_lua_to(L, 1, "Job");
  lua_settop(L, 1);
  cli_guard(b ? b->doing : luaL_optstring(L, 1, NULL));
  /* keep the text or Job until the next call */
  lua_rawsetp(L, LUA_REGISTRYINDEX, (void *)(uintptr_t)guard);
  return 0;
}

/* alarm([seconds, what]): after that time print "after N seconds WHAT: ..." and end the process.
** Without arguments: stop the alarm */
static int alarm_at(lua_State *L) {
  if (lua_isnoneornil(L, 1))
    cli_guard_end();
  else
    cli_guard_alarm(luaL_checknumber(L, 1), luaL_checkstring(L, 2));
  return 0;
}

/* refuse(status, message): raise an error as the module does, with a message of any length */
static int command_refuse(lua_State *L) {
  mgrid_lua_note(L, (mgrid_status)luaL_checkinteger(L, 1), luaL_checkstring(L, 2));
  lua_settop(L, 2);
  return lua_error(L);
}

/* limits(all) -> whether the system's limits are high enough for the ranks of the launcher; the
** limits as text: those that are too low, or all */
static int limits(lua_State *L) {
  mgrid_text words = { 0 };
  lua_pushboolean(L, cli_limits(mgrid_launcher().size, lua_toboolean(L, 1), &words));
  mgrid_lua_push_text(L, &words);
  return 2;
}

/* start(words) -> the exit code of moongrid, run with these words in a new process */
static int command_start(lua_State *L) {
  enum { WORDS = 512 };
  char *argv[WORDS + 2] = { (char[]){ "moongrid" } };
  size_t n = (luaL_checktype(L, 1, LUA_TTABLE), lua_rawlen(L, 1));
  int how = 0;
  pid_t child;
  if (n > WORDS) return mgrid_lua_raise_as(L, MGRID_LIMIT, "more than %d words", WORDS);
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, 1, (lua_Integer)i);
    argv[i] = (char *)(uintptr_t)luaL_checkstring(L, -1);
    lua_pop(L, 1); /* the list keeps it */
  }
  fflush(stdout);
  if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ)
      || waitpid(child, &how, 0) < 0)
    return mgrid_lua_raise_as(L, MGRID_OUTPUT, "moongrid cannot be started again: %s",
                              strerror(errno));
  lua_pushinteger(L, WIFEXITED(how) ? WEXITSTATUS(how) : MGRID_LIMIT / 100);
  return 1;
}

/* ------------------------------------------------------------------ texts */

/* shown(text) -> the text, safe for a terminal */
static int shown(lua_State *L) {
  luaL_Buffer b;
  size_t len, room;
  const char *given = luaL_checklstring(L, 1, &len);
  char *to = luaL_buffinitsize(L, &b, room = 4 * len + 1);
  luaL_pushresultsize(&b, mgrid_shown(to, room, given, len));
  return 1;
}

/* nearest(word, names) -> the end of a message, "; nearest is 'why' (why, plan)"; the nearest name,
** or nil */
static int command_nearest(lua_State *L) {
  char tail[512];
  const char *word = luaL_checkstring(L, 1);
  size_t n = (luaL_checktype(L, 2, LUA_TTABLE), lua_rawlen(L, 2));
  const char **names = lua_newuserdatauv(L, (n + 1) * sizeof *names, 0);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, 2, (lua_Integer)i + 1);
    names[i] = luaL_checkstring(L, -1);
    lua_pop(L, 1); /* the list keeps it */
  }
  mgrid_suggest(tail, sizeof tail, word, names, n);
  lua_pushstring(L, tail);
  lua_pushstring(L, mgrid_nearest(word, names, n));
  return 2;
}

/* json(text) -> true and the value; nothing if the text is not JSON */
static int json_value(lua_State *L) {
  json_error_t why;
  size_t len;
  const char *given = luaL_checklstring(L, 1, &len);
  json_t *v = mgrid_json_parse(given, len, JSON_DECODE_ANY, &why);
  if (!v) return 0;
  lua_pushboolean(L, true);
  if (mgrid_take_json(L, v)) return lua_error(L);
  return 2;
}

/* text(name) -> a text that is built in, or nil. Without a name: the names of all */
static int built_in(lua_State *L) {
  lua_Integer n = 0;
  if (!lua_isnoneornil(L, 1)) {
    const mgrid_chunk *c = mgrid_bundle_find(cli_files, luaL_checkstring(L, 1));
    lua_pushlstring(L, c ? (const char *)c->text : "", c ? c->text_size : 0);
    return c ? 1 : 0;
  }
  lua_newtable(L);
  for (const mgrid_chunk *c = cli_files; c->name; c++)
    lua_pushstring(L, c->name), lua_rawseti(L, -2, ++n);
  return 1;
}

/* ------------------------------------------------------------------ files */

/* stdin() -> all of standard input */
static int read_stdin(lua_State *L) {
  mgrid_text t = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_read_stdin(MGRID_SAVED_MAX, &t, &e)) {
    mgrid_text_free(&t);
    return mgrid_lua_raise_error(L, &e);
  }
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* read(path) -> the contents of a regular file, up to 1 MiB; nil, message if it cannot be read */
static int command_read_file(lua_State *L) {
  mgrid_text t = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_read_file(luaL_checkstring(L, 1), &t, &e)) {
    mgrid_text_free(&t);
    return mgrid_lua_failure(L, &e);
  }
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* folder(path) -> the names in a folder, or nil. The folder is closed before the list is made,
** because making the list may raise */
static int folder(lua_State *L) {
  DIR *d = opendir(luaL_checkstring(L, 1));
  if (!d) return 0;
  mgrid_text names = { 0 };
  for (const struct dirent *e; (e = readdir(d));)
    mgrid_text_put(&names, e->d_name, strlen(e->d_name) + 1);
  closedir(d);
  mgrid_lua_push_text(L, &names);
  lua_newtable(L);
  size_t len;
  const char *all = lua_tolstring(L, -2, &len);
  for (const char *at = all; at < all + len; at += strlen(at) + 1) {
    lua_pushstring(L, at);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
  return 1;
}

/* kind(path) -> "link", "folder", "file" or "other"; its number of bytes, and when it was last
** written, in seconds since 1970 (of a link: those of its target). Nothing if nothing is there */
static int kind(lua_State *L) {
  struct stat about, behind;
  const char *path = luaL_checkstring(L, 1);
  if (lstat(path, &about)) return 0;
  lua_pushstring(L, S_ISLNK(about.st_mode)   ? "link"
                    : S_ISDIR(about.st_mode) ? "folder"
                    : S_ISREG(about.st_mode) ? "file"
                                             : "other");
  if (stat(path, &behind)) return 1;
  lua_pushinteger(L, behind.st_size);
  lua_pushnumber(L, (lua_Number)behind.st_mtim.tv_sec + (lua_Number)behind.st_mtim.tv_nsec * 1e-9);
  return 3;
}

/* make_folder(path [, private]): make a folder. It may exist already; the folder above it must */
static int make_folder(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  if (mkdir(path, lua_toboolean(L, 2) ? 0700 : 0777) == 0 || errno == EEXIST) return 0;
  return mgrid_lua_raise_as(L, MGRID_OUTPUT, "cannot make %s: %s", path, strerror(errno));
}

/* put(text), the argument of the function that `write` calls. Upvalues: a userdata with the stream,
** NULL once the file is closed; the path */
static int command_put(lua_State *L) {
  FILE *file = *(FILE **)lua_touserdata(L, lua_upvalueindex(1));
  size_t len;
  const char *text = luaL_checklstring(L, 1, &len);
  if (!file || fwrite(text, 1, len, file) == len) return 0;
  return mgrid_lua_raise_as(L, MGRID_OUTPUT, "cannot write %s: %s",
                            lua_tostring(L, lua_upvalueindex(2)), strerror(errno));
}

/* Write the text at index 2, or the texts that the function at 2 puts. */
static mgrid_status write_all(lua_State *L, const char *path, mgrid_writes how, mgrid_error *err) {
  size_t len;
  const char *data = lua_tolstring(L, 2, &len);
  if (data) return mgrid_write_file(path, how, data, len, err);
  FILE **file = lua_newuserdatauv(L, sizeof *file, 0);
  *file = NULL;
  lua_pushvalue(L, 2);
  lua_pushvalue(L, -2);
  lua_pushvalue(L, 1);
  lua_pushcclosure(L, command_put, 2);
  mgrid_output *o = mgrid_output_file(path, how, err);
  if (o && !(*file = mgrid_output_stream(o))) mgrid_oom(err);
  bool raised = *file && lua_pcall(L, 1, 0, 0);
  *file = NULL;
  mgrid_status status = o ? mgrid_output_end(o, raised ? MGRID_REFUSED : err->status, err)
                          : err->status;
  return raised ? lua_error(L), MGRID_REFUSED : status;
}

/* write(path, text | function(put) [, here]): write a whole file, or nothing. With `here`, refuse a
** link (base/files.h) */
static int write_file(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  mgrid_error e = MGRID_ERROR_INIT;
  fflush(stdout); /* because the file may be stdout */
  mgrid_writes how = lua_toboolean(L, 3) ? MGRID_WRITE_HERE : MGRID_WRITE_OVER;
  return write_all(L, path, how, &e) ? mgrid_lua_raise_error(L, &e) : 0;
}

/* apart(output, input, tree): refuse an output that would replace an input (apart.c) */
static int apart(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  if (cli_apart(luaL_checkstring(L, 1), luaL_checkstring(L, 2), lua_toboolean(L, 3), &e))
    return mgrid_lua_raise_error(L, &e);
  return 0;
}

/* Get the path of this program. Return its last slash. */
static char *own_path(char *path, size_t room) {
  ssize_t n = readlink("/proc/self/exe", path, room - 1);
  path[n > 0 ? n : 0] = '\0';
  return strrchr(path, '/');
}

/* program() -> the path of this program */
static int program(lua_State *L) {
  char path[4096];
  own_path(path, sizeof path);
  lua_pushstring(L, path);
  return 1;
}

/* Return the folder in MOONGRID_LUA, the lua/ of a source tree. Its files of the command are then
** used instead of those that are built in. NULL: it is not set, or this program is not where make
** built it. */
static const char *source_tree(void) {
  char path[4096], *slash;
  const char *folder = getenv("MOONGRID_LUA");
  if (!folder || !*folder || !(slash = own_path(path, sizeof path - 32))) return NULL;
  strcpy(slash, "/gen/command.c");
  return access(path, F_OK) == 0 ? folder : NULL;
}

/* source_tree() -> that folder, or nil */
static int push_source_tree(lua_State *L) {
  lua_pushstring(L, source_tree());
  return 1;
}

int cli_open_words(lua_State *L) {
  static const luaL_Reg words[] = { { "terminal", terminal },
                                    { "launcher", launcher },
                                    { "pause", pause_for },
                                    { "put", put_out },
                                    { "progress", command_progress },
                                    { "start", command_start },
                                    { "limits", limits },
                                    { "editor", cli_editor },
                                    { "guard", guard },
                                    { "alarm", alarm_at },
                                    { "refuse", command_refuse },
                                    { "shown", shown },
                                    { "nearest", command_nearest },
                                    { "json", json_value },
                                    { "text", built_in },
                                    { "stdin", read_stdin },
                                    { "read", command_read_file },
                                    { "folder", folder },
                                    { "kind", kind },
                                    { "make_folder", make_folder },
                                    { "write", write_file },
                                    { "apart", apart },
                                    { "program", program },
                                    { "source_tree", push_source_tree },
                                    { NULL, NULL } };

  luaL_newlib(L, words);
  return 1;
}

/* --------------------------------------------------------------- its files */

/* For "command.why" push the chunk of lua/command/why.lua, named "moongrid.command.why": errors of
** the module do not begin with a position in a chunk of such a name (mgrid_lua_where). */
static int load_source(lua_State *L, const char *root, const char *name) {
  mgrid_text file = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  luaL_gsub(L, name, ".", "/");
  const char *path = lua_pushfstring(L, "%s/%s.lua", root, lua_tostring(L, -1));
  if (mgrid_read_file(path, &file, &e)) return mgrid_lua_raise_error(L, &e);
  mgrid_lua_push_text(L, &file);
  size_t len;
  const char *data = lua_tolstring(L, -1, &len);
  return luaL_loadbufferx(L, data, len, lua_pushfstring(L, "=moongrid.%s", name), "t");
}

/* A searcher for `require`. HTML pages are always the built-in ones, because make assembles
** them. */
static int find_file(lua_State *L) {
  const char *name = luaL_checkstring(L, 1), *root = source_tree();
  const char *whole = lua_pushfstring(L, "moongrid.%s", name);
  const mgrid_chunk *c = mgrid_bundle_find(cli_files, whole);
  if (!c) c = mgrid_bundle_find(mgrid_pictures, whole);
  if (!c && !root) {
    lua_pushfstring(L, "no lua/%s.lua", name);
    return 1;
  }
  bool from_source = root && !strstr(name, "_html");
  if (from_source ? load_source(L, root, name) : mgrid_bundle_load(L, c)) return lua_error(L);
  return 1;
}

void cli_open_files(lua_State *L) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchers");
  lua_createtable(L, 2, 0);
  lua_rawgeti(L, -2, 1); /* package.preload */
  lua_rawseti(L, -2, 1);
  lua_pushcfunction(L, find_file);
  lua_rawseti(L, -2, 2);
  lua_setfield(L, -3, "searchers");
  lua_pop(L, 2);
}
