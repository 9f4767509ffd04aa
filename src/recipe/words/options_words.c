/* SPDX-License-Identifier: MIT
**
** options_words.c - the options of a family for Lua: family:with reads them, the prelude sets
** single ones by core.choose, moongrid.options() lists them. All use the tables of plan/options.h
** and plan/nccl_options.h.
*/
#include "recipe/bind.h"

#include <string.h>

/* ----------------------------------------------------------- family:with{ ... } */

static void read_seconds(lua_State *L, const char *name, double *out) {
  if (lua_type(L, -1) != LUA_TNUMBER)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "option '%s' is a number of seconds above 0, not %s",
                       name, mgrid_lua_kind(L, -1));
  *out = mgrid_lua_number(L, -1);
  if (!(*out > 0))
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "option '%s' is a number of seconds above 0, not %g",
                       name, *out);
}

static void options_read_word(lua_State *L, const mgrid_option *row, const char **out) {
  if (lua_type(L, -1) == LUA_TSTRING) {
    *out = lua_tostring(L, -1); /* mgrid_choice_make checks the word */
    return;
  }
  lua_pushfstring(L, "option '%s' is", row->name);
  const char *words[MGRID_WORDS_MAX];
  size_t n = row->words(words);
  for (size_t i = 0; i < n; i++) {
    lua_pushfstring(L, "%s \"%s\"", i == 0 ? "" : " or", words[i]);
    lua_concat(L, 2);
  }
  mgrid_lua_raise(L, "%s", lua_tostring(L, -1));
}

/* Read a text, which a message describes by `is`. mgrid_choice_make parses it. */
static void options_read_text(lua_State *L, const char *name, const char *is, const char **out) {
  if (lua_type(L, -1) != LUA_TSTRING)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "option '%s' is %s, not %s", name, is,
                       mgrid_lua_kind(L, -1));
  *out = lua_tostring(L, -1);
}

/* Read the text "kv=4194304", or a table { kv = 4194304 }, which the text replaces on the stack.
** mgrid_choice_make parses and sorts it. */
static void options_read_numbers(lua_State *L, const mgrid_option *row, const char **out) {
  if (lua_istable(L, -1)) {
    int at = lua_gettop(L), keys = at + 1;
    lua_Integer n = 0;
    mgrid_lua_keys(L, at);
    lua_pushliteral(L, "");

    while (mgrid_lua_step(L, at, keys, &n)) {
      if (lua_type(L, -2) != LUA_TSTRING)
        mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                           "each number of option '%s' needs a name as its key, not %s", row->name,
                           mgrid_lua_kind(L, -2));
      if (lua_isboolean(L, -1)) {
        lua_pushinteger(L, lua_toboolean(L, -1));
        lua_replace(L, -2);
      }
      if (!lua_isinteger(L, -1))
        mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "'%s' of option '%s' is a whole number, not %s",
                           lua_tostring(L, keys + 2), row->name, mgrid_lua_kind(L, -1));
      if (n > MGRID_NUMBERS_MAX + 1) break; /* mgrid_choice_make refuses so many */
      lua_pushfstring(L, "%s %s=%I", lua_tostring(L, -3), lua_tostring(L, -2),
                      (LUAI_UACINT)lua_tointeger(L, -1));
      lua_replace(L, -4);
      lua_pop(L, 2);
    }

    lua_settop(L, keys + 1);
    lua_replace(L, at);
    lua_settop(L, at);
  }

  options_read_text(L, row->name, "a table such as { name = number }", out);
}

/* Read the value on the top as a field of `nccl`. */
static void options_read_field(lua_State *L, int field, mgrid_nccl_values *v) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_status s = MGRID_OK;
  if (lua_isboolean(L, -1))
    s = mgrid_nccl_set(v, field, lua_toboolean(L, -1), &e);
  else if (lua_isinteger(L, -1))
    s = mgrid_nccl_set(v, field, lua_tointeger(L, -1), &e);
  else if (lua_type(L, -1) == LUA_TSTRING)
    s = mgrid_nccl_set_text(v, field, lua_tostring(L, -1), &e);
  else
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "nccl field '%s' is %s", mgrid_nccl_fields[field].name,
                       mgrid_lua_kind(L, -1));
  if (s) mgrid_lua_raise_error(L, &e);
}

static void read_fields(lua_State *L, const char *name, mgrid_nccl_values *v) {
  const char *known[MGRID_NCCL_FIELDS];
  if (!lua_istable(L, -1))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "option '%s' is %s, not a table of fields", name,
                       mgrid_lua_kind(L, -1));
  for (int i = 0; i < MGRID_NCCL_FIELDS; i++) known[i] = mgrid_nccl_fields[i].name;
  mgrid_lua_check_keys(L, -1, "nccl field", known, MGRID_NCCL_FIELDS, false);
  memset(v, 0, sizeof *v);
  for (int i = 0; i < MGRID_NCCL_FIELDS; i++) {
    if (lua_getfield(L, -1, known[i]) != LUA_TNIL) options_read_field(L, i, v);
    lua_pop(L, 1);
  }
}

static void read_option(lua_State *L, const mgrid_option *row, mgrid_options *o,
                        mgrid_nccl_values *nccl) {
  void *at = mgrid_option_at(o, row);
  switch (row->kind) {
  case MGRID_OPTION_FLAG:
    if (!lua_isboolean(L, -1))
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "option '%s' is true or false, not %s", row->name,
                         mgrid_lua_kind(L, -1));
    *(bool *)at = lua_toboolean(L, -1);
    return;
  case MGRID_OPTION_SECONDS: read_seconds(L, row->name, at); return;
  case MGRID_OPTION_WORD: options_read_word(L, row, at); return;
  case MGRID_OPTION_FIELDS: read_fields(L, row->name, nccl); return;
  case MGRID_OPTION_SHAPE:
    options_read_text(L, row->name, "text such as \"x:4:periodic y:2\"", at);
    return;
  case MGRID_OPTION_NUMBERS: options_read_numbers(L, row, at); return;
  case MGRID_OPTION_NAME: options_read_text(L, row->name, "the name of a family", at); return;
  }
}

void mgrid_lua_check_options(lua_State *L, int i, const mgrid_choice *on, mgrid_choice **out) {
  const char *known[MGRID_OPTIONS_MAX];
  size_t n = 0;
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_nccl_values nccl = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  int top = lua_gettop(L);
  if (on) o = on->asked, nccl = on->nccl;
  for (const mgrid_option *row = mgrid_option_table; row->name; row++) known[n++] = row->name;
  mgrid_lua_check_keys(L, i, "option", known, n, false);
  mgrid_lua_stack(L, MGRID_OPTIONS_MAX + 8);
  /* the words stay on the stack, which keeps them alive */
  for (const mgrid_option *row = mgrid_option_table; row->name; row++)
    if (lua_getfield(L, i, row->name) != LUA_TNIL) read_option(L, row, &o, &nccl);
  if (mgrid_choice_make(&o, &nccl, out, &e)) mgrid_lua_raise_error(L, &e);
  lua_settop(L, top);
}

/* ------------------------------------------------- choose(topology, family, ...) */

/* If the value at i is text, as from a command line, and the option is a flag or a number of
** seconds, replace the text by the flag or number that it means. */
static void parse_value(lua_State *L, int i, const mgrid_option *row) {
  static const char *const flags[] = { "false", "0", "true", "1" };
  if (lua_type(L, i) != LUA_TSTRING) return;
  if (row->kind == MGRID_OPTION_FLAG)
    for (int k = 0; k < 4; k++)
      if (lua_type(L, i) == LUA_TSTRING && strcmp(lua_tostring(L, i), flags[k]) == 0) {
        lua_pushboolean(L, k / 2);
        lua_replace(L, i);
      }
  if (row->kind == MGRID_OPTION_SECONDS && lua_isnumber(L, i)) {
    lua_pushnumber(L, lua_tonumber(L, i));
    lua_replace(L, i);
  }
}

int mgrid_lua_choose(lua_State *L) {
  const char *known[MGRID_OPTIONS_MAX + MGRID_NCCL_FIELDS];
  size_t n = 0, at = 0;
  mgrid_topology *t = mgrid_lua_check_topology(L, 1);
  const char *family = luaL_checkstring(L, 2), *name = luaL_checkstring(L, 3);
  mgrid_choice *choice = NULL;
  mgrid_error e = MGRID_ERROR_INIT;

  lua_settop(L, 4);
  int entry = mgrid_content_find(&t->content, family);
  if (entry < 0)
    return mgrid_lua_raise_as(L, MGRID_UNKNOWN_NAME, "the topology has no family '%s'", family);
  mgrid_options o = t->content.entry[entry].choice->asked;
  mgrid_nccl_values nccl = t->content.entry[entry].choice->nccl;
  for (const mgrid_option *row = mgrid_option_table; row->name; row++) known[n++] = row->name;
  size_t rows = n;
  for (int i = 0; i < MGRID_NCCL_FIELDS; i++) known[n++] = mgrid_nccl_fields[i].name;
  while (at < n && strcmp(known[at], name) != 0) at++;
  if (at == n) return mgrid_lua_unknown(L, "option", name, known, n);
  if (at < rows) {
    parse_value(L, 4, &mgrid_option_table[at]);
    read_option(L, &mgrid_option_table[at], &o, &nccl);
  } else {
    options_read_field(L, (int)(at - rows), &nccl);
  }
  if (mgrid_choice_make(&o, &nccl, &choice, &e)) return mgrid_lua_raise_error(L, &e);
  mgrid_status s = mgrid_topology_choose(t, family, choice, &e);
  mgrid_choice_free(choice);
  return s ? mgrid_lua_raise_error(L, &e) : 0;
}

/* ---------------------------------------------------------- moongrid.options() */

static void push_option(lua_State *L, const mgrid_option *row) {
  static const char *const kinds[] = { "flag",  "seconds", "word", "fields",
                                       "shape", "numbers", "name" };
  char text[MGRID_BACKENDS_TEXT];
  lua_createtable(L, 0, 8);
  mgrid_lua_set_string(L, "name", row->name);
  mgrid_lua_set_string(L, "kind", kinds[row->kind]);
  mgrid_lua_set_string(L, "backends", mgrid_backends_heeding(text, row->name));
  mgrid_lua_set_string(L, "unset", row->unset);
  mgrid_lua_set_string(L, "doc", row->doc);
  mgrid_lua_set_boolean(L, "apart", row->apart);
  if (!row->words) return;
  const char *words[MGRID_WORDS_MAX];
  size_t n = row->words(words);
  MGRID_LUA_LIST(L, n, lua_pushstring(L, words[i]));
  lua_setfield(L, -2, "words");
}

static void push_field(lua_State *L, const mgrid_nccl_field *f) {
  static const char *const kinds[] = { "flag", "integer", "text" };
  lua_createtable(L, 0, 6);
  mgrid_lua_set_string(L, "name", f->name);
  mgrid_lua_set_string(L, "kind", kinds[f->kind]);
  mgrid_lua_set_string(L, "doc", f->doc);
  mgrid_lua_set_integer(L, "version", f->version);
  if (f->kind == MGRID_NCCL_IS_TEXT) return;
  mgrid_lua_set_integer(L, "low", f->low);
  if (f->high < INT32_MAX) mgrid_lua_set_integer(L, "high", f->high);
}

static void options_push_backend(lua_State *L, const mgrid_descriptor *d) {
  lua_createtable(L, 0, 7);
  mgrid_lua_set_string(L, "name", d->name);
  mgrid_lua_set_string(L, "doc", d->doc);
  mgrid_lua_set_integer(L, "timeout", MGRID_TIMEOUT);
  mgrid_lua_set_boolean(L, "makes", d->native != MGRID_NATIVE_NONE);
  mgrid_lua_set_boolean(L, "carries", d->carries);
  mgrid_lua_set_boolean(L, "carried", d->carried);
  mgrid_lua_set_boolean(L, "exchanges", d->exchanges);
}

/* moongrid.options() -> three tables: the options of family:with, the fields of its `nccl`, and the
** backends that are opened by name */
static int options(lua_State *L) {
  lua_newtable(L);
  for (const mgrid_option *row = mgrid_option_table; row->name; row++) {
    push_option(L, row);
    lua_rawseti(L, -2, row - mgrid_option_table + 1);
  }
  lua_newtable(L);
  for (int i = 0; i < MGRID_NCCL_FIELDS; i++) {
    push_field(L, &mgrid_nccl_fields[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_newtable(L);
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++) {
    if (!d->library) continue;
    options_push_backend(L, d);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
  return 3;
}

void mgrid_lua_open_options(lua_State *L) {
  static const luaL_Reg functions[] = { { "options", options }, { NULL, NULL } };
  luaL_setfuncs(L, functions, 0);
}
