/* SPDX-License-Identifier: MIT
**
** pasted.c - lists of ranks as Python prints them, "[[0, 1], [2, 3]]", turned into a Lua table: a user who ports a
** system pastes what its loops print. Also accepted: lists in sequence, one a line; tuples; range(0, 8, 2); the words
** around an array or a tensor; and numpy's blanks instead of commas.
*/
#include "recipe/bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
  lua_State  *L;
  const char *text, *p;
  int64_t     world; /* ranks are below it */
  int         words; /* open words such as list(tuple(... around the current value */
} reader;

/* Raise with the position in the text, as Python's parser would: its line and the text there. */
static int stuck(const reader *r, const char *expected) {
  int line = 1;
  for (const char *p = r->text; p < r->p; p++) line += *p == '\n';
  return mgrid_lua_raise(r->L, "line %d of the lists: %s expected %s%.20s%s", line, expected,
                         *r->p ? "at '" : "at the end", r->p, *r->p ? "'" : "");
}

/* Skip what separates values. */
static void skip(reader *r) { r->p += strspn(r->p, " \t\r\n,"); }

static bool word(reader *r, const char *name) {
  size_t len = strlen(name);
  if (strncmp(r->p, name, len) != 0 || mgrid_is_letter(r->p[len]) || mgrid_is_digit(r->p[len])) return false;
  r->p += len;
  skip(r);
  return true;
}

static lua_Integer integer(reader *r) {
  char *end;
  errno = 0;
  long long n = strtoll(r->p, &end, 10);
  if (end == r->p || *end == '.' || errno) stuck(r, "a rank");
  r->p = end;
  skip(r);
  return n;
}

/* Append the numbers of "(0, 8, 2)", after the word range, to the table on the top. */
static void range(reader *r) {
  lua_Integer n[3] = { 0, 0, 1 }, given = 0, at = (lua_Integer)lua_rawlen(r->L, -1);
  if (*r->p++ != '(') r->p--, stuck(r, "'(' of range");
  for (skip(r); given < 3 && *r->p != ')'; given++) n[given] = integer(r);
  if (*r->p != ')' || given == 0) stuck(r, "')' of range");
  if (given == 1) n[1] = n[0], n[0] = 0;
  if (n[2] == 0) stuck(r, "a step other than 0 of range");
  if (n[0] < 0 || n[0] > r->world || n[1] > r->world) stuck(r, "a range within the world");
  for (lua_Integer i = n[0]; n[2] > 0 ? i < n[1] : i > n[1] && i >= 0;) {
    mgrid_lua_charge(r->L, 16);
    lua_pushinteger(r->L, i);
    lua_rawseti(r->L, -2, ++at);
    if (n[2] > r->world || n[2] < -r->world) break;
    i += n[2];
  }
  r->p++;
  skip(r);
}

/* Append the values up to `close` to the table on the top: numbers, and at the first level tables. */
static void items(reader *r, char close, int level) {
  for (skip(r); *r->p != close;) {
    bool wrapped = word(r, "list") || word(r, "tuple") || word(r, "array") || word(r, "tensor");
    char open = *r->p;
    mgrid_lua_charge(r->L, 16);
    if (word(r, "range")) {
      if (level < 2) lua_createtable(r->L, 0, 0);
      range(r);
      if (level < 2) lua_rawseti(r->L, -2, (lua_Integer)lua_rawlen(r->L, -2) + 1);
    } else if (wrapped && open == '(') {
      if (++r->words > 4) stuck(r, "a rank");
      r->p++;
      items(r, ')', level);
      r->words--;
    } else if (open == '[' || open == '(' || open == '{') {
      if (level == 3) stuck(r, "a rank");
      r->p++;
      lua_createtable(r->L, 0, 0);
      items(r, open == '[' ? ']' : open == '(' ? ')' : '}', level + 1);
      lua_rawseti(r->L, -2, (lua_Integer)lua_rawlen(r->L, -2) + 1);
    } else if (level == 0 || *r->p == '\0') {
      stuck(r, *r->p ? "'['" : "the end of a list");
    } else {
      lua_pushinteger(r->L, integer(r));
      lua_rawseti(r->L, -2, (lua_Integer)lua_rawlen(r->L, -2) + 1);
    }
  }
  if (close) r->p++;
  skip(r);
}

void mgrid_lua_pasted(lua_State *L, int i, int64_t world) {
  reader r = { L, lua_tostring(L, i), NULL, world, 0 };
  mgrid_lua_charge(L, (int64_t)lua_rawlen(L, i));
  mgrid_lua_stack(L, 8);
  r.p = r.text + strspn(r.text, " \t\r\n");
  if (mgrid_is_digit(*r.p)
      && r.p[strcspn(r.p, "]\n")] != '\n') { /* in world:table [[0, 1], [2, 3]] Lua took the outer ones */
    lua_pushfstring(L, "[[%s]]", r.text);
    r.text = r.p = lua_tostring(L, -1);
    lua_replace(L, i);
  }
  lua_createtable(L, 0, 0);
  items(&r, '\0', 0);
  int  all = lua_gettop(L);
  bool around = lua_rawlen(L, all) == 1 && lua_rawgeti(L, all, 1) == LUA_TTABLE
                && lua_rawgeti(L, all + 1, 1) == LUA_TTABLE;
  lua_pushvalue(L, around ? all + 1 : all); /* a list around the groups is not a group */
  lua_replace(L, i);
  lua_settop(L, all - 1);
}
