/* SPDX-License-Identifier: MIT
**
** readers.h - how libmoongrid asks for a machine from the file of another tool: the readers are Lua
** (lua/machine/), which libmoongrid_lua runs (lua/file.c).
*/
#ifndef MGRID_MACHINE_READERS_H
#define MGRID_MACHINE_READERS_H

#include "comm/recipe.h"
#include "machine/model.h"

/* A text, and the words behind the name of its file. */
typedef struct mgrid_machine_file {
  const char *text;
  size_t length;
  const char *name, *words;
  mgrid_machine_model *made; /* by the reader; also after an error, for the caller to free */
  /* what the reader refused; of the status 0: none did, but the call may have failed */
  mgrid_error why;
} mgrid_machine_file;

/* mgrid_machine_open for the Lua libraries, which serve themselves; NULL: libmoongrid_lua does.
** machine_text.c */
mgrid_machine_model *mgrid_machine_open_by(const mgrid_recipe_entry *entry, const char *source,
                                           mgrid_error *err);
/* The same for mgrid_machine_read. */
mgrid_machine_model *mgrid_machine_read_by(const mgrid_recipe_entry *entry, const char *text,
                                           size_t length, const char *name, const char *words,
                                           mgrid_error *err);

#endif
