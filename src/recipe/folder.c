/* SPDX-License-Identifier: MIT
**
** folder.c - which files a recipe may name: those at or below the folder of the recipe that the host has loaded. No
** answer reveals whether anything exists outside of it: links are followed here, one by one, and a path that leaves the
** folder is refused before the system is asked where it leads.
*/
#include "recipe/prelude.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

/* A path is shorter than the system's limit, so that the length of the folder's own path cannot be detected. */
enum { LONGEST = 1024 };

typedef struct walk {
  const char *root;
  bool        inside;        /* so far */
  char        way[LONGEST];  /* the path from the root, without links and dots */
  char        rest[LONGEST]; /* the rest of the path */
  char        path[PATH_MAX], link[PATH_MAX], step[LONGEST];
} walk;

/* Go one step up; the root has none. */
static void leave(walk *w) {
  char *last = strrchr(w->way, '/');
  w->inside = w->inside && *w->way;
  *(last ? last : w->way) = '\0';
}

/* Append to one of the texts; a path that is too long leads nowhere. */
static void append(walk *w, char *text, size_t room, const char *more) {
  size_t n = strlen(text), len = strlen(more);
  if (n + len >= room)
    w->inside = false;
  else
    memcpy(text + n, more, len + 1);
}

/* If the path ends at a link, follow it. */
static bool follow(walk *w) {
  size_t len = strlen(w->root);
  *w->path = '\0';
  append(w, w->path, sizeof w->path, w->root);
  append(w, w->path, sizeof w->path, "/");
  append(w, w->path, sizeof w->path, w->way);
  ssize_t n = w->inside ? readlink(w->path, w->link, sizeof w->link - 1) : -1;
  if (n < 0) return false;
  w->link[n] = '\0';
  leave(w);
  const char *to = w->link;
  if (*to == '/') {
    if (strncmp(to, w->root, len) != 0 || to[len] != '/')
      w->inside = false;
    else
      to += len, *w->way = '\0';
  }
  *w->path = '\0';
  append(w, w->path, sizeof w->path, to);
  append(w, w->path, sizeof w->path, "/");
  append(w, w->path, sizeof w->path, w->rest);
  *w->rest = '\0';
  append(w, w->rest, sizeof w->rest, w->path);
  return true;
}

const char *mgrid_folder_find(lua_State *L, const char *root, const char *path) {
  enum { LINKS = 40 };
  walk *w = lua_newuserdatauv(L, sizeof *w, 0); /* large for a stack on which recipes nest */
  w->root = root;
  w->inside = *path != '/';
  *w->way = *w->rest = '\0';
  append(w, w->rest, sizeof w->rest, path);
  for (int links = 0; w->inside && *w->rest;) {
    size_t len = strcspn(w->rest, "/"), next = len + (w->rest[len] == '/');
    memcpy(w->step, w->rest, len);
    w->step[len] = '\0';
    memmove(w->rest, w->rest + next, strlen(w->rest + next) + 1);
    if (len == 0 || strcmp(w->step, ".") == 0) continue;
    if (strcmp(w->step, "..") == 0) {
      leave(w);
      continue;
    }
    if (*w->way) append(w, w->way, sizeof w->way, "/");
    append(w, w->way, sizeof w->way, w->step);
    if (w->inside && follow(w)) w->inside = w->inside && ++links <= LINKS;
  }
  if (w->inside)
    lua_pushstring(L, w->way);
  else
    lua_pushnil(L);
  lua_remove(L, -2);
  return lua_tostring(L, -1);
}
