/* SPDX-License-Identifier: MIT
**
** file.c - run the readers of machines, which are written in Lua (lua/machine/). A reader gets an
** object `file`, whose methods return the lines of the text, or tables made from its JSON, YAML or
** XML. Readers refuse a text by file_refuse, so that each message names file and line. At the end
** the machine is made from the table that the reader returns.
*/
#include "machine/lua/machine_words.h"
#include "machine/readers.h"
#include "recipe/bundle.h"
#include "recipe/value_file.h"
#include "recipe/runtime.h"
#include "recipe/values.h"

#include <expat.h>
#include <lualib.h>
#include <string.h>

static int file_xml(lua_State *L);
/* Make the machine of the table at i, then apply the words that follow the file's name. */
static void make_machine(lua_State *L, int i, const char *words, mgrid_machine_file *f);

/* ========================================================== text, JSON, YAML */

/* Return the file that is being read; it is the first upvalue of each method. */
static mgrid_machine_file *file_of(lua_State *L) { return lua_touserdata(L, lua_upvalueindex(1)); }

/* End the reader. The error is in file->why, so the Lua error has no message. */
static int unwind(lua_State *L) {
  lua_pushnil(L);
  return lua_error(L);
}

/* Refuse the file. Argument 1 is the place: a line number, a path as "items[3].status", or nil for
** the whole file. Then come a format for string.format and its values. */
static int file_refuse(lua_State *L, mgrid_status status) {
  mgrid_machine_file *f = file_of(L);
  lua_getglobal(L, LUA_STRLIBNAME);
  lua_getfield(L, -1, "format");
  lua_replace(L, -2);
  lua_insert(L, 2);
  lua_call(L, lua_gettop(L) - 2, 1);
  const char *message = lua_tostring(L, 2);
  const bool line = lua_isinteger(L, 1);
  const char *place = luaL_optstring(L, 1, "");
  if (line)
    mgrid_fail(&f->why, status, "%s:%s: %s", f->name, place, message);
  else
    mgrid_fail(&f->why, status, "%s: %s%s%s", f->name, place, *place ? ": " : "", message);
  return unwind(L);
}

/* file.fault(where, format, ...): bad value. file.limit(...): the file is too large. */
static int file_fault(lua_State *L) { return file_refuse(L, MGRID_BAD_VALUE); }
static int file_limit(lua_State *L) { return file_refuse(L, MGRID_LIMIT); }

/* Go to the next line; return it without its end, and push its number. Return false after the last
** line. Upvalues: the file, the next byte, the last number. */
static bool file_step(lua_State *L, const char **line, size_t *len) {
  const mgrid_machine_file *f = file_of(L);
  const size_t from = (size_t)lua_tointeger(L, lua_upvalueindex(2));
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
  size_t len;
  if (!file_step(L, &line, &len)) return 0;
  lua_pushlstring(L, line, len);
  return 2;
}

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Go to the next line that is not blank. Push its first word, and the rest of the line without
** blanks at its ends. */
static int next_words(lua_State *L) {
  const char *line;
  size_t len, from, to;
  for (from = len = 0; from == len;) {
    lua_settop(L, 0);
    if (!file_step(L, &line, &len)) return 0;
    for (from = 0; from < len && is_blank(line[from]); from++) continue;
  }
  for (to = from; to < len && !is_blank(line[to]); to++) continue;
  lua_pushlstring(L, line + from, to - from);
  while (to < len && is_blank(line[to])) to++;
  while (len > to && is_blank(line[len - 1])) len--;
  lua_pushlstring(L, line + to, len - to);
  return 3;
}

/* Push an iterator with the upvalues of file_step. */
static int iterate(lua_State *L, lua_CFunction next) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushinteger(L, 0);
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, next, 3);
  return 1;
}

/* for number, line in file.lines(); for number, first word, rest in file.words() */
static int file_lines(lua_State *L) { return iterate(L, next_line); }
static int file_words(lua_State *L) { return iterate(L, next_words); }

/* file.has(words): whether the text contains these bytes */
static int file_has(lua_State *L) {
  const mgrid_machine_file *f = file_of(L);
  size_t len;
  const char *words = luaL_checklstring(L, 1, &len);
  mgrid_lua_charge(L, (int64_t)(f->length / 16));
  lua_pushboolean(L, memmem(f->text, f->length, words, len) != NULL);
  return 1;
}

/* file.check(what, name, where): refuse a name that is not one line of text */
static int file_check(lua_State *L) {
  size_t len;
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

/* file.suggest(name, known names): the end of a message about an unknown name */
static int file_suggest(lua_State *L) {
  enum { MOST = 32 };
  const char *known[MOST];
  char tail[512];
  size_t n = 0;
  lua_settop(L, 2);
  mgrid_lua_stack(L, MOST);
  for (lua_Integer i = 1; n < MOST && lua_rawgeti(L, 2, i) == LUA_TSTRING; i++)
    known[n++] = lua_tostring(L, -1);
  mgrid_suggest(tail, sizeof tail, luaL_checkstring(L, 1), known, n);
  lua_pushstring(L, tail);
  return 1;
}

/* Push a JSON value as a Lua value. In a list, null becomes false; in an object, a field that is
** null is left out. The names of an object's fields are a list at index 0, in the order of the
** text; the table of a list has no index 0. */
static void file_push(lua_State *L, const json_t *v) {
  const char *key;
  json_t *item;
  size_t i;

  mgrid_lua_stack(L, 4);
  if (json_is_array(v)) {
    lua_createtable(L, (int)json_array_size(v), 0);
    json_array_foreach(v, i, item) {
      file_push(L, item);
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
        file_push(L, item);
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
  file_push(L, lua_touserdata(L, 1));
  return 1;
}

/* Push a parsed value, and free it even if pushing raises. */
static int file_take(lua_State *L, json_t *v) {
  if (!v) return unwind(L);
  lua_pushcfunction(L, push_all);
  lua_pushlightuserdata(L, v);
  int raised = lua_pcall(L, 1, 1, 0);
  json_decref(v);
  return raised ? lua_error(L) : 1;
}

static int file_json(lua_State *L) {
  mgrid_machine_file *f = file_of(L);
  json_error_t why;
  mgrid_lua_charge(L, (int64_t)f->length);
  json_t *v = mgrid_json_parse(f->text, f->length, JSON_REJECT_DUPLICATES, &why);
  if (!v && !*why.text)
    mgrid_oom(&f->why);
  else if (!v)
    mgrid_fail(&f->why, MGRID_BAD_VALUE, "%s:%d: %s", f->name, why.line > 0 ? why.line : 1,
               why.text);
  return file_take(L, v);
}

static int file_yaml(lua_State *L) {
  mgrid_machine_file *f = file_of(L);
  mgrid_lua_charge(L, (int64_t)f->length);
  return file_take(L, mgrid_read_yaml(f->name, f->text, f->length, &f->why));
}

/* file.run(name, ...): what lua/machine/NAME.lua returns for `file` and these values */
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
  static const luaL_Reg words[] = { { "fault", file_fault },     { "limit", file_limit },
                                    { "lines", file_lines },     { "words", file_words },
                                    { "has", file_has },         { "check", file_check },
                                    { "suggest", file_suggest }, { "json", file_json },
                                    { "yaml", file_yaml },       { "xml", file_xml },
                                    { "run", file_run },         { NULL, NULL } };
  mgrid_machine_file *f = lua_touserdata(L, 1);

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
  make_machine(L, lua_gettop(L) - 1, lua_tostring(L, -1), f);
  return 0;
}

/* The limits of one reader: a fixed part, which is enough for short texts, and a part for each
** byte, which is enough for long texts even if each line is only a name. */
static mgrid_limits limits_of(const mgrid_machine_file *f) {
  mgrid_limits l = MGRID_LIMITS_INIT;
  l.memory = ((size_t)160 << 20) + 160 * f->length;
  l.instructions = UINT64_C(200000000) + 4000 * (uint64_t)f->length;
  l.seconds = 10 + 4e-5 * (double)f->length;
  return l;
}

mgrid_status mgrid_lua_machine_serve(mgrid_runtime *rt, void *request, mgrid_error *err) {
  static const char recipe[] = "the recipe ";
  mgrid_machine_file *f = request;
  mgrid_limits limits = limits_of(f);
  mgrid_error mine = MGRID_ERROR_INIT;
  const char *zero = f->length ? memchr(f->text, 0, f->length) : NULL;
  (void)rt;
  if (zero)
    return mgrid_fail(err, MGRID_BAD_VALUE, "%s: byte %td is zero: this is not text", f->name,
                      zero - f->text + 1);
  /* skip a byte order mark */
  if (f->length >= 3 && memcmp(f->text, "\xEF\xBB\xBF", 3) == 0) f->text += 3, f->length -= 3;
  mgrid_status s = mgrid_runtime_apart(&limits, read_body, f, &mine);
  /* the error of an exhausted budget says "the recipe ...": reword it */
  const bool spent = strncmp(mine.message, recipe, sizeof recipe - 1) == 0;
  if (s && s != MGRID_NO_MEMORY)
    mgrid_error_reword(&mine, "%s: %s%s", f->name, spent ? "reading it " : "",
                       mine.message + (spent ? sizeof recipe - 1 : 0));
  if (s) mgrid_error_pass(err, &mine);
  return s;
}

/* ======================================================================= XML */

/* XML as tables, parsed by expat. An element is { name, line, of = its attributes, its elements ...
** }. Text between elements is left out. A text that declares entities is refused, because entities
** can make a small file huge. */

enum { DEPTH = 64 };

typedef struct parsing {
  lua_State *L;
  XML_Parser parser;
  mgrid_machine_file *file;
  int depth;
} parsing;

/* Return the number of the line that is being parsed. expat 2.9 has another function for this. */
static lua_Integer xml_line(const parsing *p) {
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
  return (lua_Integer)XML_GetCurrentLineNumber64(p->parser);
#else
  return (lua_Integer)XML_GetCurrentLineNumber(p->parser);
#endif
}

/* Refuse the file at the parser's present line, and stop the parser. */
static void xml_refuse(parsing *p, mgrid_status status, const char *what, const char *name) {
  mgrid_fail(&p->file->why, status, "%s:%d: %s%.40s", p->file->name, (int)xml_line(p), what, name);
  XML_StopParser(p->parser, false);
}

/* Called at the start of an element. The table at 1 has the open elements: the element at depth d
** is its field d. */
static void file_begin(void *ud, const XML_Char *name, const XML_Char **attributes) {
  parsing *p = ud;
  lua_State *L = p->L;

  if (p->depth == DEPTH) {
    xml_refuse(p, MGRID_LIMIT, "elements nest deeper than 64: ", name);
    return;
  }
  mgrid_lua_charge(L, 16);
  lua_createtable(L, 0, 3);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "name");
  lua_pushinteger(L, xml_line(p));
  lua_setfield(L, -2, "line");
  lua_newtable(L);
  for (; *attributes; attributes += 2) {
    lua_pushstring(L, attributes[1]);
    lua_setfield(L, -2, attributes[0]);
  }
  lua_setfield(L, -2, "of");
  if (p->depth > 0) {
    lua_rawgeti(L, 1, p->depth);
    lua_pushvalue(L, -2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
  }
  lua_rawseti(L, 1, ++p->depth);
}

static void end(void *ud, const XML_Char *name) {
  parsing *p = ud;
  (void)name;
  p->depth--;
}

static void entity(void *ud, const XML_Char *name, int parameter, const XML_Char *value, int length,
                   const XML_Char *base, const XML_Char *system, const XML_Char *public,
                   const XML_Char *notation) {
  (void)parameter, (void)value, (void)length, (void)base, (void)system, (void)public,
      (void)notation;
  xml_refuse(ud, MGRID_REFUSED, "entities are not read: ", name);
}

/* Run the parser in a protected call, so that the parser is freed after an error. */
static int file_parse(lua_State *L) {
  enum { PIECE = 1 << 16 };
  parsing *p = lua_touserdata(L, 1);

  lua_settop(L, 0);
  lua_newtable(L);
  for (size_t at = 0, n; at == 0 || at < p->file->length; at += n) {
    const size_t left = p->file->length - at;
    n = left < PIECE ? left : PIECE;
    mgrid_lua_charge(L, (int64_t)n / 4);
    if (XML_Parse(p->parser, p->file->text + at, (int)n, at + n == p->file->length)
        == XML_STATUS_ERROR) {
      const enum XML_Error code = XML_GetErrorCode(p->parser);
      if (code == XML_ERROR_NO_MEMORY) mgrid_oom(&p->file->why);
      const bool ends = code == XML_ERROR_NO_ELEMENTS || code == XML_ERROR_UNCLOSED_TOKEN
                        || code == XML_ERROR_PARTIAL_CHAR;
      if (!p->file->why.status)
        xml_refuse(p, MGRID_BAD_VALUE, XML_ErrorString(code),
                   ends ? ": the text may be cut short" : "");
      return unwind(L);
    }
    if (n == 0) break;
  }
  lua_rawgeti(L, 1, 1);
  return 1;
}

static int file_xml(lua_State *L) {
  parsing p = { L, XML_ParserCreate(NULL), file_of(L), 0 };
  if (!p.parser) {
    mgrid_oom(&p.file->why);
    return unwind(L);
  }
  XML_SetUserData(p.parser, &p);
  XML_SetElementHandler(p.parser, file_begin, end);
  XML_SetEntityDeclHandler(p.parser, entity);
  lua_pushcfunction(L, file_parse);
  lua_pushlightuserdata(L, &p);
  int raised = lua_pcall(L, 1, 1, 0);
  XML_ParserFree(p.parser);
  return raised ? lua_error(L) : 1;
}

/* =============================================================== the machine */

/* Make a machine from a table. Readers return such a table, and machine_item.c writes it as JSON:
**   { levels = { { name, counts = { 2, 3 }, bandwidth, latency, domains = { "n0", false } }, ... },
**     crossings = { { name, of, share, in, bandwidth, latency }, ... }, ranks = { 8, 9 } }
** A reader may add more fields. hosts: a list of domains of the level with the number `node`, whose
** places the ranks fill in this order. notes: a list of lines. nccl: whether the file is a topology
** that NCCL can read, too. lua/machine/machine_json.lua checks tables that come from files. */

typedef struct making {
  lua_State *L;
  mgrid_machine_file *file;
  mgrid_machine_model *m;
  mgrid_error why;
} making;

/* Raise the error of the last call, if it failed. */
static void machine_lua_file_check(making *k) {
  if (!k->why.status) return;
  mgrid_error_reword(&k->why, "%s: %s", k->file->name, k->why.message);
  mgrid_error_pass(&k->file->why, &k->why);
  unwind(k->L);
}

static const char *file_text(lua_State *L, const char *field) {
  lua_getfield(L, -1, field);
  const char *t = lua_tostring(L, -1);
  lua_pop(L, 1); /* the string stays valid, because the table holds it */
  return t;
}

static double file_number(lua_State *L, const char *field) {
  lua_getfield(L, -1, field);
  double n = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return n;
}

static mgrid_link link_of(lua_State *L) {
  return (mgrid_link){ file_number(L, "bandwidth"), file_number(L, "latency") };
}

/* Name the domains by the list on the top of the stack. */
static void name_domains(making *k) {
  const size_t tier = k->m->ntiers - 1;
  for (int64_t d = 0; d < k->m->tier[tier].domains; d++) {
    if (lua_rawgeti(k->L, -1, d + 1) == LUA_TSTRING)
      mgrid_machine_name_domain(k->m, tier, d, lua_tostring(k->L, -1), &k->why);
    lua_pop(k->L, 1);
    machine_lua_file_check(k);
  }
}

/* Add the level on the top of the stack. */
static void file_add_level(making *k) {
  const char *name = file_text(k->L, "name");
  const mgrid_link link = link_of(k->L);
  size_t n;
  lua_getfield(k->L, -1, "counts");
  int64_t *counts = mgrid_lua_check_integers(k->L, lua_gettop(k->L), &n);
  lua_pop(k->L, 1);
  mgrid_machine_add(k->m, name, n, counts, link, &k->why);
  mgrid_release(counts);
  machine_lua_file_check(k);
  if (lua_getfield(k->L, -1, "domains") == LUA_TTABLE) name_domains(k);
  lua_pop(k->L, 1);
}

static void add_crossing(making *k) {
  int64_t share = (int64_t)file_number(k->L, "share");
  mgrid_machine_add_crossing(k->m, file_text(k->L, "name"), file_text(k->L, "of"),
                             share ? share : 1, file_text(k->L, "in"), link_of(k->L), &k->why);
  machine_lua_file_check(k);
}

static void file_each(making *k, int table, const char *list, void (*add)(making *k)) {
  if (lua_getfield(k->L, table, list) == LUA_TTABLE)
    for (lua_Integer i = 1; lua_rawgeti(k->L, -1, i) == LUA_TTABLE; i++, lua_pop(k->L, 1)) add(k);
  lua_settop(k->L, table);
}

/* Set the places of the ranks: the places in the list `ranks`, or all places of the domains in the
** list `hosts`. */
static void file_add_ranks(making *k, int table) {
  size_t n = 0;
  int64_t node = -1, places = 0, r = 0;

  if (lua_getfield(k->L, table, "ranks") == LUA_TNIL
      && lua_getfield(k->L, table, "hosts") == LUA_TTABLE) {
    lua_getfield(k->L, table, "node");
    node = lua_tointeger(k->L, -1);
    lua_pop(k->L, 1);
  }
  int64_t *list = lua_istable(k->L, -1) ? mgrid_lua_check_integers(k->L, lua_gettop(k->L), &n)
                                        : NULL;
  lua_settop(k->L, table);
  if (!list) return;
  const mgrid_tier *tier = &k->m->tier[node < 0 ? 0 : node];
  for (size_t i = 0; i < n; i++)
    places += node < 0 ? 1 : mgrid_tier_start(tier, list[i] + 1) - mgrid_tier_start(tier, list[i]);
  int32_t *at = mgrid_allocate(NULL, NULL, 0, (size_t)(places + 1) * sizeof *at);
  if (!at) mgrid_oom(&k->why);
  for (size_t i = 0; i < n && at; i++) {
    const int64_t first = node < 0 ? list[i] : mgrid_tier_start(tier, list[i]);
    const int64_t last = node < 0 ? list[i] + 1 : mgrid_tier_start(tier, list[i] + 1);
    for (int64_t place = first; place < last; place++) at[r++] = (int32_t)place;
  }
  mgrid_release(list);
  if (at) mgrid_machine_set_ranks(k->m, places, at, &k->why);
  machine_lua_file_check(k);
}

static void add_notes(making *k, int table) {
  mgrid_text t = { 0 };
  if (lua_getfield(k->L, table, "notes") == LUA_TTABLE)
    for (lua_Integer i = 1; lua_rawgeti(k->L, -1, i) == LUA_TSTRING; i++, lua_pop(k->L, 1))
      mgrid_text_add(&t, "%s\n", lua_tostring(k->L, -1));
  lua_settop(k->L, table);
  if (t.failed || (t.len && !(k->m->notes = mgrid_strdup(t.data)))) mgrid_oom(&k->why);
  mgrid_text_free(&t);
  machine_lua_file_check(k);
}

static void make_machine(lua_State *L, int i, const char *words, mgrid_machine_file *f) {
  making k = { L, f, f->made = mgrid_machine_alloc(&f->why), MGRID_ERROR_INIT };
  if (!k.m) unwind(L);
  lua_pushvalue(L, i);
  i = lua_gettop(L);
  file_each(&k, i, "levels", file_add_level);
  if (lua_getfield(L, i, "crossings") == LUA_TTABLE) mgrid_machine_finish(k.m, &k.why);
  machine_lua_file_check(&k);
  file_each(&k, i, "crossings", add_crossing);
  add_notes(&k, i);
  mgrid_machine_more(k.m, words, &k.why);
  machine_lua_file_check(&k);
  if (!k.m->at) file_add_ranks(&k, i);
  lua_getfield(L, i, "nccl");
  k.m->topology = lua_toboolean(L, -1);
}
