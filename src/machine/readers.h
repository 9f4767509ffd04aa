/* SPDX-License-Identifier: MIT
**
** readers.h - how libmoongrid makes a machine from a file of another tool. The readers are written
** in Lua (lua/machine/). libmoongrid_lua runs them (lua/file.c).
*/
#ifndef MGRID_MACHINE_READERS_H
#define MGRID_MACHINE_READERS_H

#include "comm/recipe.h"
#include "machine/model.h"

/* The request: a file's text, and the words that the user wrote after the file's name. */
typedef struct mgrid_machine_file {
  const char *text;
  size_t length;
  const char *name, *words;
  mgrid_machine_model *made; /* made by the reader; the caller frees it, also after an error */
  mgrid_error why; /* the reader's error; the call may fail without one, if no reader could run */
} mgrid_machine_file;

/* Do what mgrid_machine_open does, with the readers of the library that `entry` belongs to. The Lua
** libraries pass their own entry; NULL: load libmoongrid_lua. (machine_text.c) */
mgrid_machine_model *mgrid_machine_open_by(const mgrid_recipe_entry *entry, const char *source,
                                           mgrid_error *err);

#endif
