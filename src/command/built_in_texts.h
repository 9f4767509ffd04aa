/* SPDX-License-Identifier: MIT
**
** built_in_texts.h - files that are built into the command (scripts/texts.lua makes gen/texts.c of them).
*/
#ifndef MGRID_BUILT_IN_TEXTS_H
#define MGRID_BUILT_IN_TEXTS_H

#include <stddef.h>

typedef struct cli_file {
  const char
      *name; /* of a bundled recipe "megatron", of its parts "megatron.grids"; ":meta.lua" and ":layout.lua" of what
                       ** `init` writes, which are no paths that anybody types */
  const char *text;
} cli_file;

extern const cli_file cli_files[]; /* ends with one without a name */

#endif
