/* SPDX-License-Identifier: MIT
**
** source.c - a machine from what a command line has: text, a preset, or a file and more words.
*/
#include "machine/readers.h"
#include "moongrid_machine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MAX = 1 << 30 }; /* bytes; a line for each of a million hosts is far less */

/* The length of the file name at the start of a source: what is a file as a whole, or else up to the first blank. */
static size_t name_of(const char *source, char *name, size_t room) {
  struct stat at;
  size_t      whole = strlen(source), first = strcspn(source, " \t\r\n");
  for (size_t n = whole;; n = first) {
    if (n < room) {
      memcpy(name, source, n);
      name[n] = '\0';
      if (n > 0 && stat(name, &at) == 0 && !S_ISDIR(at.st_mode)) return n;
    }
    if (n == first) return 0;
  }
}

static mgrid_machine_model *from_file(const mgrid_recipe_entry *entry, const char *name, const char *words,
                                      mgrid_error *err) {
  mgrid_text           t = { 0 };
  mgrid_machine_model *m = NULL;
  if (!mgrid_read_file_up_to(name, FILE_MAX, &t, err))
    m = mgrid_machine_read_by(entry, mgrid_text_chars(&t), t.len, name, words, err);
  mgrid_text_free(&t);
  return m;
}

/* The job of Slurm that this process is in. */
static mgrid_machine_model *from_environment(const mgrid_recipe_entry *entry, const char *words, mgrid_error *err) {
  static const char *const names[] = { "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_TASKS_PER_NODE",
                                       "SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN" };
  mgrid_text               t = { 0 };
  mgrid_machine_model     *m = NULL;
  const char              *list = getenv(names[0]) ? getenv(names[0]) : getenv(names[1]);
  bool                     one = list && !strpbrk(list, ",["); /* the address is that of this node alone */
  if (!list)
    return mgrid_null(err, MGRID_MISSING, "slurm: this process is in no job of Slurm: SLURM_JOB_NODELIST is not set");
  for (size_t i = 0; i < (one ? 5 : 3); i++)
    if (getenv(names[i])) mgrid_text_add(&t, "%s=%s\n", names[i], getenv(names[i]));
  if (t.failed)
    mgrid_oom(err);
  else
    m = mgrid_machine_read_by(entry, mgrid_text_chars(&t), t.len, "slurm", words, err);
  mgrid_text_free(&t);
  return m;
}

/* Is the first word the name of a file that is not there? Then the error of opening it is the right one. */
static bool looks_like_file(const char *source, char *name, size_t room) {
  size_t n = strcspn(source, " \t\r\n");
  if (n == 0 || n >= room) return false;
  memcpy(name, source, n);
  name[n] = '\0';
  return strpbrk(name, "./") && !strpbrk(name, ":=[");
}

mgrid_machine_model *mgrid_machine_open_by(const mgrid_recipe_entry *entry, const char *source, mgrid_error *err) {
  char name[4096];
  if (mgrid_lacks(source, "the source of the machine", err)) return NULL;
  size_t n = name_of(source, name, sizeof name);
  if (n) return from_file(entry, name, source + n, err);
  if (strncmp(source, "slurm", 5) == 0 && (source[5] == '\0' || source[5] == ' '))
    return from_environment(entry, source + 5, err);
  return looks_like_file(source, name, sizeof name) ? from_file(entry, name, "", err)
                                                    : mgrid_machine_words(source, "machine", NULL, err);
}

mgrid_machine_model *mgrid_machine_open(const char *source, mgrid_error *err) {
  return mgrid_machine_open_by(NULL, source, err);
}
