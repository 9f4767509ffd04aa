/* SPDX-License-Identifier: MIT
**
** backend_list.c - the table of backends, and questions about it. It is linked into every backend.
*/
#include "plan/backend_row.h"

#include <stdio.h>

/* The name of a backend's library, as the Makefile builds it, and the name that MGRID_ENTRY exports
** in that library. */
#define ROW(backend, ...) \
  { .name = #backend, \
    .library = "libmoongrid_" #backend ".so." MGRID_SOVER, \
    .entry = "mgrid_" #backend "_entry", \
    __VA_ARGS__ },
#define BUILT_IN(backend, ...) { .name = #backend, __VA_ARGS__ },

const mgrid_descriptor mgrid_backends[] = {
#include "plan/backend_table.h"
  { .name = NULL },
};
_Static_assert(sizeof mgrid_backends / sizeof mgrid_backends[0] <= MGRID_BACKENDS_MAX + 1,
               "MGRID_BACKENDS_MAX");

const mgrid_descriptor *mgrid_backend_named(const char *name) {
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++)
    if (strcmp(d->name, name) == 0) return d;
  return NULL;
}

const mgrid_descriptor *mgrid_backend_usual(void) {
  const mgrid_descriptor *d = mgrid_backends;
  while (!d->usual) d++;
  return d;
}

static bool backend_list_is_of(const mgrid_descriptor *d, mgrid_backends_of which) {
  if (!d->library) return false;
  return which == MGRID_BACKENDS_MAKERS    ? d->native != MGRID_NATIVE_NONE
         : which == MGRID_BACKENDS_CARRIED ? d->carried
                                           : which == MGRID_BACKENDS_OPENED || d->carries;
}

size_t mgrid_backend_names(const char *names[], mgrid_backends_of which) {
  size_t n = 0;
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++)
    if (backend_list_is_of(d, which)) names[n++] = d->name;
  return n;
}

/* Join names with ", ", but put `last` before the last name. */
static const char *join(char text[MGRID_BACKENDS_TEXT], const char *const names[], size_t n,
                        const char *last) {
  size_t at = 0;
  *text = '\0';
  for (size_t i = 0; i < n && at < MGRID_BACKENDS_TEXT; i++)
    at += (size_t)snprintf(text + at, MGRID_BACKENDS_TEXT - at, "%s%s",
                           i == 0      ? ""
                           : i + 1 < n ? ", "
                                       : last,
                           names[i]);
  return text;
}

const char *mgrid_backend_list(char text[MGRID_BACKENDS_TEXT], mgrid_backends_of which) {
  const char *names[MGRID_BACKENDS_MAX];
  return join(text, names, mgrid_backend_names(names, which), " or ");
}

/* ------------------------------------------------------------------------ options */

/* Return whether the option is one of the words in d->heeds. */
static bool names(const mgrid_descriptor *d, const char *option) {
  size_t len = strlen(option);
  for (const char *at = d->heeds; at && *at; at += strspn(at, " ")) {
    size_t word = strcspn(at, " ");
    if (word == len && strncmp(at, option, len) == 0) return true;
    at += word;
  }
  return false;
}

static size_t heeding(const char *found[], const char *option) {
  size_t n = 0;
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++)
    if (names(d, option)) found[n++] = d->name;
  return n;
}

bool mgrid_backend_heeds(const mgrid_descriptor *d, const char *option) {
  const char *found[MGRID_BACKENDS_MAX];
  return names(d, option) || heeding(found, option) == 0;
}

const char *mgrid_backends_heeding(char text[MGRID_BACKENDS_TEXT], const char *option) {
  const char *found[MGRID_BACKENDS_MAX] = { "all" };
  size_t n = heeding(found, option);
  return join(text, found, n ? n : 1, ", ");
}
