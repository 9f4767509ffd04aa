/* SPDX-License-Identifier: MIT
**
** files.c - write a file or a folder beside its name, then rename it. A full disk, a signal or a
** crash leaves what was there before. All files and folders of the library and the command are
** written here (lint). The example trainer is built with this file, too, so it calls nothing inside
** the library.
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

#define FILE_IN "file" /* the name of a file in its PATH.part */
enum { MARK = 01000 }; /* the sticky bit */

struct mgrid_output {
  mgrid_text path, name, part; /* as given; behind links; NAME.part */
  mgrid_text place;            /* of the file until it has its name */
  int fd, lock;                /* of the file; of NAME.part, locked; -1: none */
  FILE *stream;
  const char *const *files; /* patterns of the files in NAME.part */
  bool folder, made;        /* made: under its own name, MGRID_WRITE_NEW */
  mode_t mode;              /* of the file that it replaces; 0: none */
  int why;                  /* errno of what failed; 0: nothing */
};

static mgrid_status cannot_write(const mgrid_output *o, int why, mgrid_error *err) {
  return mgrid_fail(err, MGRID_OUTPUT, "cannot %s %s: %s", o->folder ? "make" : "write",
                    o->path.data, strerror(why));
}

static bool files_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* ------------------------------------------------------------------- names */

/* Set *name to what a path names behind links of its last part, which may be missing. False: errno
** says why. */
static bool files_resolve(const char *path, bool folder, mgrid_text *name) {
  enum { LINKS = 40 }; /* as the kernel */
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

/* Check that every file in the folder fits a pattern; with `take` remove these. */
static mgrid_status files_walk(const mgrid_output *o, bool take, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  int fd = dup(o->lock);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);

  if (!dir) {
    s = cannot_write(o, errno, err);
    if (fd >= 0) close(fd);
    return s;
  }
  rewinddir(dir); /* the open folder has one read position for all its readers */
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

/* Remove the folder, which is this process's, with its files. */
static void remove_part(const mgrid_output *o) {
  if (!files_walk(o, true, NULL)) rmdir(o->part.data);
}

static mgrid_status not_mine(const mgrid_output *o, mgrid_error *err) {
  return mgrid_fail(err, MGRID_REFUSED,
                    "%s is there already, and moongrid has not made it; take it away, or write %s "
                    "under another name",
                    o->part.data, o->path.data);
}

/* Take over what a dead process left. */
static mgrid_status take_over(const mgrid_output *o, mgrid_error *err) {
  struct stat about;
  bool mine = fstat(o->lock, &about) == 0 && about.st_mode & MARK && about.st_uid == geteuid();
  mgrid_status s = mine ? files_walk(o, false, err) : not_mine(o, err);
  return s ? s : files_walk(o, true, err);
}

/* Lock the open folder. One that this process has made is locked by others only as long as they
** look at it. */
static mgrid_status lock(const mgrid_output *o, bool made, mgrid_error *err) {
  if (flock(o->lock, made ? LOCK_EX : LOCK_EX | LOCK_NB) == 0) return MGRID_OK;
  if (errno == EWOULDBLOCK)
    return mgrid_fail(err, MGRID_REFUSED, "another process is making %s just now", o->path.data);
  if (made) return MGRID_OK; /* the file system has no locks: assume that nobody else is at work */
  return mgrid_fail(err, MGRID_REFUSED,
                    "%s is there already; if no process is making %s, take it away", o->part.data,
                    o->path.data);
}

/* Make the folder, or take it over. *again: try again, another process has just renamed or removed
** it. */
static mgrid_status make_part(mgrid_output *o, bool *again, mgrid_error *err) {
  struct stat open_one, named;
  bool made = mkdir(o->part.data, MARK | (o->folder ? 0777 : 0700)) == 0;
  mgrid_status s;
  *again = false;
  if (!made && errno != EEXIST) return cannot_write(o, errno, err);
  o->lock = open(o->part.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (o->lock < 0 && errno == ENOENT) return *again = true, MGRID_OK;
  if (o->lock < 0 && made) return s = cannot_write(o, errno, err), rmdir(o->part.data), s;
  if (o->lock < 0) return not_mine(o, err); /* a file, a link, or one of another user */
  s = lock(o, made, err);
  if (!s
      && (fstat(o->lock, &open_one) || lstat(o->part.data, &named)
          || !files_same(&open_one, &named)))
    *again = true;
  if (!s && !*again && !made) s = take_over(o, err);
  if (!s && !*again) return MGRID_OK;
  close(o->lock); /* another process holds it, or it belongs to somebody */
  o->lock = -1;
  return s;
}

/* A name survives a crash of the machine only if its folder is flushed, too. Some file systems
** cannot flush one, and one may be allowed to write where one may not read. The last step: cuts the
** name. */
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

/* Make or take over NAME.part. */
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

/* Open what is not a regular file, or is this process's own output already, which has a position in
** it. */
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
  if (access(o->path.data, W_OK)) return cannot_write(o, errno, err); /* a rename would not mind */
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

/* Bring every byte to the disk. */
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

/* Give it its name, and a folder the mode of others. */
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
