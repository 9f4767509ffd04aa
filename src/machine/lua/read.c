/* SPDX-License-Identifier: MIT
**
** read.c - `file`, what the readers of machines in Lua (lua/machine/) get: the lines of a text, or the tables that it
** holds as JSON, YAML or XML; refusals; and the machine that is made from what they return.
*/
#include "machine/lua/read.h"

#include "recipe/bundle.h"
#include "recipe/read.h"
#include "recipe/runtime.h"
#include "recipe/values.h"

#include <lualib.h>
#include <string.h>

mgrid_machine_file *mgrid_lua_machine_file(lua_State *L) { return lua_touserdata(L, lua_upvalueindex(1)); }

/* What was refused is in file->why; Lua only unwinds. */
int mgrid_lua_refused(lua_State *L) {
  lua_pushnil(L);
  return lua_error(L);
}

/* Refuse the file at a line, or at a path as items[3].status, or as a whole: the place is at 1, a format for string.format and
** its values behind it. */
static int refuse(lua_State *L, mgrid_status status) {
  mgrid_machine_file *f = mgrid_lua_machine_file(L);
  lua_getglobal(L, LUA_STRLIBNAME);
  lua_getfield(L, -1, "format");
  lua_replace(L, -2);
  lua_insert(L, 2);
  lua_call(L, lua_gettop(L) - 2, 1);
  const char *message = lua_tostring(L, 2);
  const bool  line = lua_isinteger(L, 1);
  const char *place = luaL_optstring(L, 1, "");
  if (line)
    mgrid_fail(&f->why, status, "%s:%s: %s", f->name, place, message);
  else
    mgrid_fail(&f->why, status, "%s: %s%s%s", f->name, place, *place ? ": " : "", message);
  return mgrid_lua_refused(L);
}

/* fault(where, format, ...), and limit(...): it is too large */
static int file_fault(lua_State *L) { return refuse(L, MGRID_BAD_VALUE); }
static int file_limit(lua_State *L) { return refuse(L, MGRID_LIMIT); }

/* Step to the next line, without its end, and push its number. Upvalues: the file, the next byte, the last number. False: there
** is none. */
static bool step(lua_State *L, const char **line, size_t *len) {
  const mgrid_machine_file *f = mgrid_lua_machine_file(L);
  const size_t              from = (size_t)lua_tointeger(L, lua_upvalueindex(2));
  if (from >= f->length) return false;
  *line = f->text + from;
  const char *end = memchr(*line, '\n', f->length - from);
  *len = end ? (size_t)(end - *line) : f->length - from;
  lua_pushinteger(L, (lua_Integer)(from + *len + 1));
  lua_replace(L, lua_upvalueindex(2));
  lua_pushinteger(L, lua_tointeger(L, lua_upvalueindex(3)) + 1);
  lua_copy(L, -1, lua_upvalueindex(3));
  if (*len && (*line)[*len - 1] == '\r') --*len;
  return true;
}

static int next_line(lua_State *L) {
  const char *line;
  size_t      len;
  if (!step(L, &line, &len)) return 0;
  lua_pushlstring(L, line, len);
  return 2;
}

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The next line that is not blank: its first word, and the others without blanks around. */
static int next_words(lua_State *L) {
  const char *line;
  size_t      len, from, to;
  for (from = len = 0; from == len;) {
    lua_settop(L, 0);
    if (!step(L, &line, &len)) return 0;
    for (from = 0; from < len && is_blank(line[from]); from++) continue;
  }
  for (to = from; to < len && !is_blank(line[to]); to++) continue;
  lua_pushlstring(L, line + from, to - from);
  while (to < len && is_blank(line[to])) to++;
  while (len > to && is_blank(line[len - 1])) len--;
  lua_pushlstring(L, line + to, len - to);
  return 3;
}

static int iterate(lua_State *L, lua_CFunction next) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushinteger(L, 0);
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, next, 3);
  return 1;
}

/* for number, line in lines(); for number, first word, others in words() */
static int file_lines(lua_State *L) { return iterate(L, next_line); }
static int file_words(lua_State *L) { return iterate(L, next_words); }

/* has(words): are these bytes in the text? */
static int file_has(lua_State *L) {
  const mgrid_machine_file *f = mgrid_lua_machine_file(L);
  size_t                    len;
  const char               *words = luaL_checklstring(L, 1, &len);
  mgrid_lua_charge(L, (int64_t)(f->length / 16));
  lua_pushboolean(L, memmem(f->text, f->length, words, len) != NULL);
  return 1;
}

/* check(what, name, where): refuse a name that is not one line of text */
static int file_check(lua_State *L) {
  size_t      len;
  const char *what = luaL_checkstring(L, 1), *name = luaL_checklstring(L, 2, &len);
  mgrid_error e = MGRID_ERROR_INIT;
  if (!mgrid_check_line(what, name, len, &e)) return 0;
  lua_settop(L, 3);
  lua_replace(L, 1);
  lua_pushliteral(L, "%s");
  lua_replace(L, 2);
  lua_pushstring(L, e.message);
  return file_fault(L);
}

/* suggest(name, known names): the end of a message about an unknown name */
static int file_suggest(lua_State *L) {
  enum { MOST = 32 };
  const char *known[MOST];
  char        tail[512];
  size_t      n = 0;
  lua_settop(L, 2);
  mgrid_lua_stack(L, MOST);
  for (lua_Integer i = 1; n < MOST && lua_rawgeti(L, 2, i) == LUA_TSTRING; i++) known[n++] = lua_tostring(L, -1);
  mgrid_suggest(tail, sizeof tail, luaL_checkstring(L, 1), known, n);
  lua_pushstring(L, tail);
  return 1;
}

/* Push JSON as Lua's values: null in a list is false, and a field that is null is not there. The names of the fields are a list
** at 0, in the order of the text; a list has nothing there. */
static void push(lua_State *L, const json_t *v) {
  const char *key;
  json_t     *item;
  size_t      i;
  mgrid_lua_stack(L, 4);
  if (json_is_array(v)) {
    lua_createtable(L, (int)json_array_size(v), 0);
    json_array_foreach(v, i, item) {
      push(L, item);
      lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
  } else if (json_is_object(v)) {
    lua_Integer n = 0;
    lua_createtable(L, 0, (int)json_object_size(v) + 1);
    lua_newtable(L);
    json_object_foreach((json_t *)(uintptr_t)v, key, item) {
      lua_pushstring(L, key);
      lua_pushvalue(L, -1);
      lua_rawseti(L, -3, ++n);
      if (json_is_null(item))
        lua_pushnil(L);
      else
        push(L, item);
      lua_rawset(L, -4);
    }
    lua_rawseti(L, -2, 0);
  } else if (json_is_null(v)) {
    lua_pushboolean(L, false);
  } else {
    mgrid_push_json(L, v);
  }
}

static int push_all(lua_State *L) {
  push(L, lua_touserdata(L, 1));
  return 1;
}

/* Push what was parsed, and free it in every case. */
static int take(lua_State *L, json_t *v) {
  if (!v) return mgrid_lua_refused(L);
  lua_pushcfunction(L, push_all);
  lua_pushlightuserdata(L, v);
  int raised = lua_pcall(L, 1, 1, 0);
  json_decref(v);
  return raised ? lua_error(L) : 1;
}

static int file_json(lua_State *L) {
  mgrid_machine_file *f = mgrid_lua_machine_file(L);
  json_error_t        why;
  mgrid_lua_charge(L, (int64_t)f->length);
  json_t *v = mgrid_json_parse(f->text, f->length, JSON_REJECT_DUPLICATES, &why);
  if (!v && !*why.text)
    mgrid_oom(&f->why);
  else if (!v)
    mgrid_fail(&f->why, MGRID_BAD_VALUE, "%s:%d: %s", f->name, why.line > 0 ? why.line : 1, why.text);
  return take(L, v);
}

static int file_yaml(lua_State *L) {
  mgrid_machine_file *f = mgrid_lua_machine_file(L);
  mgrid_lua_charge(L, (int64_t)f->length);
  return take(L, mgrid_read_yaml(f->name, f->text, f->length, &f->why));
}

/* run(name, ...): what lua/machine/NAME.lua returns for `file` and these values */
static int file_run(lua_State *L) {
  char name[64];
  snprintf(name, sizeof name, "moongrid/machine/%s.lua", luaL_checkstring(L, 1));
  const mgrid_chunk *c = mgrid_bundle_find(mgrid_machine_lua, name);
  if (!c) return luaL_error(L, "there is no %s", name);
  if (mgrid_bundle_load(L, c)) return lua_error(L);
  lua_replace(L, 1);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_insert(L, 2);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

static int read_body(lua_State *L) {
  static const luaL_Reg words[] = { { "fault", file_fault },     { "limit", file_limit }, { "lines", file_lines },
                                    { "words", file_words },     { "has", file_has },     { "check", file_check },
                                    { "suggest", file_suggest }, { "json", file_json },   { "yaml", file_yaml },
                                    { "xml", mgrid_lua_xml },    { "run", file_run },     { NULL, NULL } };
  mgrid_machine_file   *f = lua_touserdata(L, 1);
  mgrid_budget_no_home(L);
  luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
  luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
  luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 1);
  luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 1);
  lua_settop(L, 1);
  lua_newtable(L);
  for (const luaL_Reg *w = words; w->name; w++) {
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, w->func, 2);
    lua_setfield(L, 2, w->name);
  }
  lua_pushinteger(L, (lua_Integer)f->length);
  lua_setfield(L, 2, "length");
  lua_getfield(L, 2, "run");
  lua_pushliteral(L, "read");
  lua_pushstring(L, f->words);
  lua_call(L, 2, 2);
  mgrid_lua_make_machine(L, lua_gettop(L) - 1, lua_tostring(L, -1), f);
  return 0;
}

/* Half the memory that a short text may take, and for a long one what lines of a name each become. */
static mgrid_limits limits_of(const mgrid_machine_file *f) {
  mgrid_limits l = MGRID_LIMITS_INIT;
  l.memory = ((size_t)160 << 20) + 160 * f->length;
  l.instructions = UINT64_C(200000000) + 4000 * (uint64_t)f->length;
  l.seconds = 10 + 4e-5 * (double)f->length;
  return l;
}

mgrid_status mgrid_lua_machine_serve(mgrid_runtime *rt, void *request, mgrid_error *err) {
  static const char   recipe[] = "the recipe ";
  mgrid_machine_file *f = request;
  mgrid_limits        limits = limits_of(f);
  mgrid_error         mine = MGRID_ERROR_INIT;
  const char         *zero = f->length ? memchr(f->text, 0, f->length) : NULL;
  (void)rt;
  if (zero)
    return mgrid_fail(err, MGRID_BAD_VALUE, "%s: byte %td is zero: this is no text", f->name, zero - f->text + 1);
  if (f->length >= 3 && memcmp(f->text, "\xEF\xBB\xBF", 3) == 0) f->text += 3, f->length -= 3; /* a byte order mark */
  mgrid_status s = mgrid_runtime_apart(&limits, read_body, f, &mine);
  const bool   spent = strncmp(mine.message, recipe, sizeof recipe - 1) == 0; /* a budget, in the words for recipes */
  if (s && s != MGRID_NO_MEMORY)
    mgrid_error_reword(&mine, "%s: %s%s", f->name, spent ? "reading it " : "",
                       mine.message + (spent ? sizeof recipe - 1 : 0));
  if (s) mgrid_error_pass(err, &mine);
  return s;
}
