/* SPDX-License-Identifier: MIT
**
** read.c - machines from files of other tools: libmoongrid_lua has the readers.
*/
#include "machine/readers.h"

#include <string.h>

mgrid_machine_model *mgrid_machine_read_by(const mgrid_recipe_entry *entry, const char *text, size_t length,
                                           const char *name, const char *words, mgrid_error *err) {
  if (mgrid_lacks_list(length, text, "bytes of text", err)) return NULL;
  mgrid_error        mine = MGRID_ERROR_INIT;
  mgrid_machine_file f = { text, length, name ? name : "machine", words ? words : "", NULL, MGRID_ERROR_INIT };
  mgrid_status       s = mgrid_serve_by(entry, "machine", &f, &mine);
  if (s == MGRID_MISSING)
    mgrid_error_reword(&mine, "%s: without libmoongrid_lua only machines as words, 'node:4 gpu:8', are read: %s",
                       f.name, mine.message);
  if (!s && !f.made->source && !(f.made->source = mgrid_strdup(f.name))) s = mgrid_oom(&mine);
  if (!s) return f.made;
  mgrid_machine_free(f.made);
  mgrid_error_pass(err, f.why.status ? &f.why : &mine);
  return NULL;
}

mgrid_machine_model *mgrid_machine_read(const char *text, size_t length, const char *name, const char *words,
                                        mgrid_error *err) {
  return mgrid_machine_read_by(NULL, text, length, name, words, err);
}
