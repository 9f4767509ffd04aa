/* SPDX-License-Identifier: MIT
**
** apart.c - checks that the outputs of a command line would not replace its inputs.
*/
#include "command/cli.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool apart_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Return the path with links followed, on the heap. If the file does not exist yet, return the path
** of its folder. */
static char *behind_links(const char *path) {
  char *found = realpath(path, NULL);
  const char *slash = strrchr(path, '/');
  char *above = found ? NULL : slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup(".");
  if (above) found = realpath(above, NULL);
  free(above);
  return found;
}

/* Return whether a path is the folder `folder`, or lies in it. */
static bool lies_in(const char *path, const struct stat *folder) {
  struct stat about;
  char *at = behind_links(path);
  bool found = false;
  while (at && *at && !found) {
    char *slash = strrchr(at, '/');
    found = stat(at, &about) == 0 && apart_same(&about, folder);
    slash[slash == at && slash[1]] = '\0'; /* "/a" becomes "/", and "/" becomes "" */
  }
  free(at);
  return found;
}

/* Return whether a path is the input `about`, or a folder that contains `input`, its path. */
static bool apart_takes(const char *path, const char *input, const struct stat *about) {
  struct stat there;
  return stat(path, &there) == 0
         && (apart_same(&there, about) || (S_ISDIR(there.st_mode) && lies_in(input, &there)));
}

mgrid_status cli_apart(const char *output, const char *input, bool tree, mgrid_error *err) {
  struct stat about;
  mgrid_text part = { 0 };
  if (stat(input, &about) || !(S_ISREG(about.st_mode) || S_ISDIR(about.st_mode))) return MGRID_OK;
  char *real = realpath(output, NULL);
  size_t n = strlen(output);
  while (n > 1 && output[n - 1] == '/') n--;
  mgrid_text_put(&part, real ? real : output, real ? strlen(real) : n);
  mgrid_text_str(&part, ".part");
  free(real);
  if (part.failed)
    mgrid_oom(err);
  else if (tree && S_ISDIR(about.st_mode) && lies_in(output, &about))
    mgrid_fail(err, MGRID_REFUSED, "%s would be in %s, which is read; take another name", output,
               input);
  else if (apart_takes(output, input, &about) || apart_takes(part.data, input, &about))
    mgrid_fail(err, MGRID_REFUSED, "%s would be written over %s, which is read; take another name",
               output, input);
  mgrid_text_free(&part);
  return err->status;
}
