/* SPDX-License-Identifier: MIT
**
** xml.c - XML as tables, by expat: an element is { name, line, of = its attributes, its elements ... }. Text between
** elements is left out. Entities that a text declares are refused: they could make a small file huge.
*/
#include "machine/lua/read.h"

#include <expat.h>

enum { DEPTH = 64 };

typedef struct parsing {
  lua_State          *L;
  XML_Parser          parser;
  mgrid_machine_file *file;
  int                 depth;
} parsing;

/* Refuse at the place of the parser, and end it. */
static void refuse(parsing *p, mgrid_status status, const char *what, const char *name) {
  mgrid_fail(&p->file->why, status, "%s:%d: %s%.40s", p->file->name, (int)XML_GetCurrentLineNumber(p->parser), what,
             name);
  XML_StopParser(p->parser, false);
}

/* The table of open elements is at 1: at depth d its element d. */
static void begin(void *ud, const XML_Char *name, const XML_Char **attributes) {
  parsing   *p = ud;
  lua_State *L = p->L;
  if (p->depth == DEPTH) {
    refuse(p, MGRID_LIMIT, "elements nest deeper than 64: ", name);
    return;
  }
  mgrid_lua_charge(L, 16);
  lua_createtable(L, 0, 3);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "name");
  lua_pushinteger(L, (lua_Integer)XML_GetCurrentLineNumber(p->parser));
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
                   const XML_Char *base, const XML_Char *system, const XML_Char *public, const XML_Char *notation) {
  (void)parameter, (void)value, (void)length, (void)base, (void)system, (void)public, (void)notation;
  refuse(ud, MGRID_REFUSED, "entities are not read: ", name);
}

/* Run the parser in a protected call, so that it can be freed. */
static int parse(lua_State *L) {
  enum { PIECE = 1 << 16 };
  parsing *p = lua_touserdata(L, 1);
  lua_settop(L, 0);
  lua_newtable(L);
  for (size_t at = 0, n; at == 0 || at < p->file->length; at += n) {
    const size_t left = p->file->length - at;
    n = left < PIECE ? left : PIECE;
    mgrid_lua_charge(L, (int64_t)n / 4);
    if (XML_Parse(p->parser, p->file->text + at, (int)n, at + n == p->file->length) == XML_STATUS_ERROR) {
      const enum XML_Error code = XML_GetErrorCode(p->parser);
      if (code == XML_ERROR_NO_MEMORY) mgrid_oom(&p->file->why);
      const bool ends = code == XML_ERROR_NO_ELEMENTS || code == XML_ERROR_UNCLOSED_TOKEN
                        || code == XML_ERROR_PARTIAL_CHAR;
      if (!p->file->why.status)
        refuse(p, MGRID_BAD_VALUE, XML_ErrorString(code), ends ? ": the text may be cut short" : "");
      return mgrid_lua_refused(L);
    }
    if (n == 0) break;
  }
  lua_rawgeti(L, 1, 1);
  return 1;
}

int mgrid_lua_xml(lua_State *L) {
  parsing p = { L, XML_ParserCreate(NULL), mgrid_lua_machine_file(L), 0 };
  if (!p.parser) {
    mgrid_oom(&p.file->why);
    return mgrid_lua_refused(L);
  }
  XML_SetUserData(p.parser, &p);
  XML_SetElementHandler(p.parser, begin, end);
  XML_SetEntityDeclHandler(p.parser, entity);
  lua_pushcfunction(L, parse);
  lua_pushlightuserdata(L, &p);
  int raised = lua_pcall(L, 1, 1, 0);
  XML_ParserFree(p.parser);
  return raised ? lua_error(L) : 1;
}
