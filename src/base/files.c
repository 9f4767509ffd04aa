/* SPDX-License-Identifier: MIT
**
** files.c - writes files and folders under another name, then renames them (files.h). All files and
** folders of the library and the command are written here (lint). The example trainer is built with
** this file, too, so the file calls only functions that libmoongrid exports.
*/
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_IN "file" /* the name of a file inside its folder PATH.part */
enum { MARK = 01000 }; /* the sticky bit */

struct mgrid_output {
  mgrid_text path, name, part; /* as given; with links followed; NAME.part */
  mgrid_text place;            /* where the file is until it has its name */
  int fd, lock;                /* of the file; of NAME.part, for its lock; -1: none */
  FILE *stream;
  const char *const *files; /* patterns of the files that may be in NAME.part */
  bool folder, made;        /* made: written under its own name, as MGRID_WRITE_NEW */
  mode_t mode;              /* of the file that this one replaces; 0: none */
  int why;                  /* errno of the call that failed; 0: none */
};

static mgrid_status cannot_write(const mgrid_output *o, int why, mgrid_error *err) {
  return mgrid_fail(err, MGRID_OUTPUT, "cannot %s %s: %s", o->folder ? "make" : "write",
                    o->path.data, strerror(why));
}

static bool files_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* ------------------------------------------------------------------- names */

/* Set *name to the path, with links of its last part followed. The last part may be missing. False:
** errno says why. */
static bool files_resolve(const char *path, bool folder, mgrid_text *name) {
  enum { LINKS = 40 }; /* as many as the kernel follows */
  mgrid_text_str(name, path);
  while (folder && name->len > 1 && name->data[name->len - 1] == '/')
    name->data[--name->len] = '\0';
  for (int i = 0; i < LINKS; i++) {
    char to[PATH_MAX];
    ssize_t n = name->failed || folder ? -1 : readlink(name->data, to, sizeof to);
    if (name->failed) errno = ENOMEM;
    if (n < 0) return !name->failed;
    const char *slash = strrchr(name->data, '/');
    name->len = *to == '/' || !slash ? 0 : (size_t)(slash + 1 - name->data);
    mgrid_text_put(name, to, (size_t)n);
  }
  errno = ELOOP;
  return false;
}

/* --------------------------------------------------------- the folder NAME.part */

static bool is_mine(const mgrid_output *o, const char *name) {
  for (const char *const *p = o->files; *p; p++)
    if (fnmatch(*p, name, 0) == 0) return true;
  return false;
}

/* Check that every file in the folder fits a pattern. With `take`, remove these files. */
static mgrid_status files_walk(const mgrid_output *o, bool take, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  int fd = dup(o->lock);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);

  if (!dir) {
    s = cannot_write(o, errno, err);
    if (fd >= 0) close(fd);
    return s;
  }
  rewinddir(dir); /* all users of the open folder share one read position */
  for (const struct dirent *e; !s && (e = readdir(dir));) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (!is_mine(o, e->d_name))
      s = mgrid_fail(err, MGRID_REFUSED,
                     "%s is there already, with a file '%.200s' in it; take it away", o->part.data,
                     e->d_name);
    else if (take && unlinkat(o->lock, e->d_name, 0))
      s = mgrid_fail(err, MGRID_OUTPUT, "cannot remove %s/%.200s: %s", o->part.data, e->d_name,
                     strerror(errno));
  }
  closedir(dir);
  return s;
}

/* Remove the folder with its files. It belongs to this process. */
static void remove_part(const mgrid_output *o) {
  if (!files_walk(o, true, NULL)) rmdir(o->part.data);
}

static mgrid_status not_mine(const mgrid_output *o, mgrid_error *err) {
  return mgrid_fail(err, MGRID_REFUSED,
                    "%s is there already, and moongrid has not made it; take it away, or write %s "
                    "under another name",
                    o->part.data, o->path.data);
}

/* Remove the files that a dead process left in the folder. */
static mgrid_status take_over(const mgrid_output *o, mgrid_error *err) {
  struct stat about;
  bool mine = fstat(o->lock, &about) == 0 && about.st_mode & MARK && about.st_uid == geteuid();
  mgrid_status s = mine ? files_walk(o, false, err) : not_mine(o, err);
  return s ? s : files_walk(o, true, err);
}

/* Lock the open folder. If this process has just made it, wait for the lock: another process may
** have locked the folder first, and taken it over. */
static mgrid_status lock(const mgrid_output *o, bool made, mgrid_error *err) {
  if (flock(o->lock, made ? LOCK_EX : LOCK_EX | LOCK_NB) == 0) return MGRID_OK;
  if (errno == EWOULDBLOCK)
    return mgrid_fail(err, MGRID_REFUSED, "another process is making %s just now", o->path.data);
  /* the file system has no locks: assume that no other process works here */
  if (made) return MGRID_OK;
  return mgrid_fail(err, MGRID_REFUSED,
                    "%s is there already; if no process is making %s, take it away", o->part.data,
                    o->path.data);
}

/* Make the folder, or take it over from a dead process. *again: another process has just renamed or
** removed it, so try again. */
static mgrid_status make_part(mgrid_output *o, bool *again, mgrid_error *err) {
  struct stat open_one, named;
  bool made = mkdir(o->part.data, MARK | (o->folder ? 0777 : 0700)) == 0;
  mgrid_status s;
  *again = false;
  if (!made && errno != EEXIST) return cannot_write(o, errno, err);
  o->lock = open(o->part.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (o->lock < 0 && errno == ENOENT) return *again = true, MGRID_OK;
  if (o->lock < 0 && made) return s = cannot_write(o, errno, err), rmdir(o->part.data), s;
  if (o->lock < 0) return not_mine(o, err); /* it is a file, a link, or another user's folder */
  s = lock(o, made, err);
  if (!s
      && (fstat(o->lock, &open_one) || lstat(o->part.data, &named)
          || !files_same(&open_one, &named)))
    *again = true;
  if (!s && !*again && !made) s = take_over(o, err);
  if (!s && !*again) return MGRID_OK;
  close(o->lock); /* another process holds the lock, or the folder is not ours */
  o->lock = -1;
  return s;
}

/* Flush the folder above, which makes the name survive a crash of the machine. Some file systems
** cannot flush a folder, and a folder may be writable but not readable. This is the last step: it
** cuts the last part off o->name. */
static mgrid_status sync_above(mgrid_output *o, mgrid_error *err) {
  char *slash = strrchr(o->name.data, '/');
  if (slash) slash[1] = '\0';
  int fd = open(slash ? o->name.data : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool good = fd >= 0 ? fsync(fd) == 0 || errno == EINVAL : errno == EACCES;
  mgrid_status s = good ? MGRID_OK : cannot_write(o, errno, err);
  if (fd >= 0) close(fd);
  return s;
}

/* -------------------------------------------------------------- to start with */

static void free_output(mgrid_output *o) {
  if (o->stream)
    fclose(o->stream);
  else if (o->fd >= 0)
    close(o->fd);
  if (o->lock >= 0) close(o->lock);
  mgrid_text_free(&o->path), mgrid_text_free(&o->name);
  mgrid_text_free(&o->part), mgrid_text_free(&o->place);
  free(o);
}

static mgrid_output *new_output(const char *path, bool folder, mgrid_error *err) {
  mgrid_output *o = calloc(1, sizeof *o);
  if (!o) return mgrid_null_oom(err);
  *o = (mgrid_output){ .fd = -1, .lock = -1, .folder = folder };
  mgrid_text_str(&o->path, path);
  bool found = files_resolve(path, folder, &o->name);
  int why = errno;
  mgrid_text_add(&o->part, "%s.part", mgrid_text_chars(&o->name));
  mgrid_text_add(&o->place, folder ? "%s" : "%s/" FILE_IN, mgrid_text_chars(&o->part));
  if (o->path.failed || o->name.failed || o->part.failed || o->place.failed)
    mgrid_oom(err);
  else if (!found)
    cannot_write(o, why, err);
  else
    return o;
  free_output(o);
  return NULL;
}

/* Make NAME.part, or take it over. */
static mgrid_status files_begin(mgrid_output *o, const char *const *files, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  o->files = files;
  for (bool again = true; again && !s;) s = make_part(o, &again, err);
  return s;
}

mgrid_output *mgrid_output_folder(const char *path, const char *const *files, mgrid_error *err) {
  struct stat about;
  mgrid_output *o = new_output(path, true, err);
  if (!o) return NULL;
  if (lstat(o->name.data, &about) == 0)
    mgrid_fail(err, MGRID_REFUSED, "%s is there already; nothing is written over", o->name.data);
  else if (!files_begin(o, files, err))
    return o;
  free_output(o);
  return NULL;
}

const char *mgrid_output_place(const mgrid_output *o) {
  return o->lock >= 0 ? o->place.data : o->path.data;
}

/* Open a file that must be written in place: a file that is not regular, or the file of this
** process's stdout or stderr, where writing goes on at the present position. Return whether it is
** such a file; o->fd may still be -1. */
static bool open_as_it_is(mgrid_output *o, const struct stat *about) {
  struct stat own;
  for (int fd = 1; fd <= 2 && o->fd < 0; fd++)
    if (fstat(fd, &own) == 0 && files_same(&own, about)) o->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (o->fd < 0 && !S_ISREG(about->st_mode))
    o->fd = open(o->path.data, O_WRONLY | O_NOCTTY | O_CLOEXEC);
  return o->fd >= 0 || !S_ISREG(about->st_mode);
}

static mgrid_status open_beside(mgrid_output *o, mgrid_error *err) {
  static const char *const files[] = { FILE_IN, NULL };
  mgrid_status s = files_begin(o, files, err);
  if (s) return s;
  o->fd = openat(o->lock, FILE_IN, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (o->fd >= 0) return MGRID_OK;
  s = cannot_write(o, errno, err);
  remove_part(o);
  return s;
}

static mgrid_status open_file(mgrid_output *o, mgrid_writes how, mgrid_error *err) {
  struct stat about;
  if (how == MGRID_WRITE_NEW) {
    o->fd = open(o->path.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    o->made = o->fd >= 0;
    return o->made ? MGRID_OK : cannot_write(o, errno, err);
  }
  if (how == MGRID_WRITE_HERE && lstat(o->path.data, &about) == 0 && S_ISLNK(about.st_mode))
    return mgrid_fail(err, MGRID_REFUSED,
                      "%s is a link; nothing is written behind it; take it away", o->path.data);
  if (stat(o->path.data, &about)) return open_beside(o, err);
  if (S_ISDIR(about.st_mode)) return cannot_write(o, EISDIR, err);
  if (open_as_it_is(o, &about)) return o->fd >= 0 ? MGRID_OK : cannot_write(o, errno, err);
  /* rename would replace even a file that this user may not write */
  if (access(o->path.data, W_OK)) return cannot_write(o, errno, err);
  o->mode = about.st_mode & 0777;
  return open_beside(o, err);
}

mgrid_output *mgrid_output_file(const char *path, mgrid_writes how, mgrid_error *err) {
  mgrid_output *o = new_output(path, false, err);
  if (!o || !open_file(o, how, err)) return o;
  free_output(o);
  return NULL;
}

/* ------------------------------------------------------------------ to write */

mgrid_status mgrid_output_write(mgrid_output *o, const void *data, size_t n, mgrid_error *err) {
  for (const char *p = data; n > 0;) {
    ssize_t done = write(o->fd, p, n);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return o->why = errno, cannot_write(o, o->why, err);
    p += done, n -= (size_t)done;
  }
  return MGRID_OK;
}

FILE *mgrid_output_stream(mgrid_output *o) {
  if (!(o->stream = fdopen(o->fd, "w"))) o->why = errno;
  return o->stream;
}

/* Flush the file to the disk, and close it. */
static mgrid_status files_flush(mgrid_output *o, mgrid_error *err) {
  bool beside = o->lock >= 0 || o->made;
  errno = 0;
  if (o->stream && (fflush(o->stream) || ferror(o->stream)))
    return cannot_write(o, errno ? errno : EIO, err);
  if (o->mode) fchmod(o->fd, o->mode);
  if (beside && fsync(o->fd)) return cannot_write(o, errno, err);
  bool closed = (o->stream ? fclose(o->stream) : close(o->fd)) == 0;
  o->stream = NULL, o->fd = -1;
  return closed ? MGRID_OK : cannot_write(o, errno, err);
}

/* Give the file or folder its name, and take the mark off a folder. */
static mgrid_status files_name_it(const mgrid_output *o, mgrid_error *err) {
  struct stat about;
  if (o->lock < 0) return MGRID_OK;
  if (o->folder && (fstat(o->lock, &about) || (fsync(o->lock) && errno != EINVAL)))
    return cannot_write(o, errno, err);
  int rc = o->folder ? rename(o->part.data, o->name.data)
                     : renameat(o->lock, FILE_IN, AT_FDCWD, o->name.data);
  if (rc) return cannot_write(o, errno, err);
  if (o->folder) fchmod(o->lock, about.st_mode & 07777 & ~MARK);
  return MGRID_OK;
}

mgrid_status mgrid_output_end(mgrid_output *o, mgrid_status before, mgrid_error *err) {
  if (!o) return before;
  mgrid_status s = before ? before : o->why ? cannot_write(o, o->why, err) : MGRID_OK;
  if (!s && o->fd >= 0) s = files_flush(o, err);
  if (!s) s = files_name_it(o, err);
  if (s && o->made) unlink(o->path.data);
  if (o->lock >= 0 && (s || !o->folder)) remove_part(o);
  if (!s && (o->lock >= 0 || o->made)) s = sync_above(o, err);
  free_output(o);
  return s;
}

mgrid_status mgrid_write_file(const char *path, mgrid_writes how, const char *text, size_t len,
                              mgrid_error *err) {
  mgrid_error own = MGRID_ERROR_INIT;
  mgrid_output *o = mgrid_output_file(path, how, &own);
  mgrid_status s =
      mgrid_output_end(o, o ? mgrid_output_write(o, text, len, &own) : own.status, &own);
  return s ? mgrid_error_pass(err, &own) : MGRID_OK;
}
