/* SPDX-License-Identifier: MIT
**
** new_folder.c - make a folder under a temporary name, then rename it.
*/
#include "checkpoints/new_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static mgrid_status cannot(const char *path, mgrid_error *err) {
  return mgrid_fail(err, MGRID_OUTPUT, "cannot make %s: %s", path, strerror(errno));
}

static bool is_mine(const beside *b, const char *name) {
  for (const char **p = b->mine; *p; p++)
    if (fnmatch(*p, name, 0) == 0) return true;
  return false;
}

/* Check that every file in the folder fits a pattern; with `take` remove the files. */
static mgrid_status walk(const beside *b, bool take, mgrid_error *err) {
  int  file = dup(b->lock);
  DIR *dir = file < 0 ? NULL : fdopendir(file);
  if (!dir) {
    if (file >= 0) close(file);
    return mgrid_fail(err, MGRID_OUTPUT, "cannot read %s: %s", b->path.data, strerror(errno));
  }
  rewinddir(dir); /* the open folder has one read position for all its readers */
  for (const struct dirent *e; (e = readdir(dir)) && !err->status;) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (!is_mine(b, e->d_name))
      mgrid_fail(err, MGRID_REFUSED, "%s is there already, with a file '%.200s' in it; take it away", b->path.data,
                 e->d_name);
    else if (take && unlinkat(b->lock, e->d_name, 0))
      mgrid_fail(err, MGRID_OUTPUT, "cannot remove %s/%.200s: %s", b->path.data, e->d_name, strerror(errno));
  }
  closedir(dir);
  return err->status;
}

/* Make the folder, or take over what a dead process left. *again: try again, another process has just renamed or removed it. */
static mgrid_status take_folder(beside *b, bool *again, mgrid_error *err) {
  struct stat open_one, named;
  bool        made = mkdir(b->path.data, 0777) == 0;
  *again = false;
  if (!made && errno != EEXIST) return cannot(b->path.data, err);
  b->lock = open(b->path.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (b->lock < 0 && errno == ENOENT) return *again = true, MGRID_OK;
  if (b->lock < 0) return cannot(b->path.data, err);
  if (flock(b->lock, LOCK_EX | LOCK_NB)) {
    if (errno == EWOULDBLOCK)
      mgrid_fail(err, MGRID_REFUSED, "another process is making %s just now", b->name.data);
    else if (!made) /* the file system has no locks: assume that nobody else is at work */
      mgrid_fail(err, MGRID_REFUSED, "%s is there already; if no process is making it, take it away", b->path.data);
  }
  if (!err->status && (fstat(b->lock, &open_one) || lstat(b->path.data, &named) || open_one.st_ino != named.st_ino))
    *again = true;
  if (!err->status && !*again && !made && !walk(b, false, err)) walk(b, true, err);
  if (!err->status && !*again) return MGRID_OK;
  close(b->lock); /* another process holds it */
  b->lock = -1;
  return err->status;
}

mgrid_status beside_open(beside *b, const char *folder, const char **mine, mgrid_error *err) {
  struct stat about;
  bool        again = true;
  *b = (beside){ .lock = -1, .mine = mine };
  mgrid_text_str(&b->name, folder);
  while (b->name.len > 1 && b->name.data[b->name.len - 1] == '/') b->name.data[--b->name.len] = '\0';
  mgrid_text_add(&b->path, "%s.part", mgrid_text_chars(&b->name));
  if (b->name.failed || b->path.failed) return mgrid_oom(err);
  if (lstat(b->name.data, &about) == 0)
    return mgrid_fail(err, MGRID_REFUSED, "%s is there already; nothing is written over", b->name.data);
  while (again && !take_folder(b, &again, err)) {}
  return err->status;
}

mgrid_status beside_close(beside *b, mgrid_error *err) {
  if (b->lock >= 0 && !err->status && rename(b->path.data, b->name.data)) cannot(b->name.data, err);
  if (b->lock >= 0 && err->status) {
    mgrid_error other = MGRID_ERROR_INIT;
    if (!walk(b, true, &other)) rmdir(b->path.data);
  }
  if (b->lock >= 0) close(b->lock);
  mgrid_text_free(&b->name), mgrid_text_free(&b->path);
  b->lock = -1;
  return err->status;
}
