/* SPDX-License-Identifier: MIT
**
** hooks.c - memory and log lines through the host's hooks, if set.
*/
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

void *mgrid_allocate(void *ud, void *block, size_t was, size_t bytes) {
  (void)ud, (void)was;
  if (bytes > 0) return block ? realloc(block, bytes) : malloc(bytes); /* realloc(NULL) is slower */
  free(block);
  return NULL;
}

void *mgrid_realloc(const mgrid_hooks *h, void *block, size_t was, size_t bytes) {
  return h && h->allocate ? h->allocate(h->ud, block, was, bytes) : mgrid_allocate(NULL, block, was, bytes);
}

void *mgrid_zeroed(const mgrid_hooks *h, size_t bytes) {
  if (!h || !h->allocate) return calloc(1, bytes);
  void *block = h->allocate(h->ud, NULL, 0, bytes);
  return block ? memset(block, 0, bytes) : NULL;
}

void mgrid_release(void *block) { free(block); }

void mgrid_log(const mgrid_hooks *h, mgrid_level level, const char *fmt, ...) {
  char    line[1024];
  va_list args;
  if (!h || !h->log) return;
  va_start(args, fmt);
  mgrid_vformat(line, sizeof line, fmt, args);
  va_end(args);
  if (level != MGRID_LOG_RECIPE) mgrid_show(line, sizeof line); /* a recipe's output goes to the host unchanged */
  h->log(h->ud, level, line);
}
