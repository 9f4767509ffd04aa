/* SPDX-License-Identifier: MIT
**
** embed.c - a C host from its start to a plan of a recipe, with the library that a trainer links.
** `embed alone`: the same host without a recipe, so that no Lua is loaded.
*/
#include "moongrid.h"

#include <stdio.h>

int main(int argc, char **argv) {
  static const char *const args[] = { "tp=8", "cp=2", "pp=8", "ep=8", "etp=1" };
  mgrid_error e = MGRID_ERROR_INIT;
  (void)argv;
  if (argc > 1) return mgrid_world(8).size != 8;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, "megatron", NULL, 0, &e);
  mgrid_plan *p = mgrid_runtime_plan(rt, 1048576, NULL, 5, args, &e);
  if (e.status) fprintf(stderr, "%s\n", e.message);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return e.status != 0;
}
