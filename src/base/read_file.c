/* SPDX-License-Identifier: MIT
**
** read_file.c - reads a file whole, or its beginning. Pipes and devices are refused: they may never
** end, or give each process other bytes. Standard input may be one of these, because the user of
** the command chose it.
*/
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static mgrid_status cannot_read(const char *what, const char *path, const char *why,
                                mgrid_error *err) {
  return mgrid_fail(err, MGRID_REFUSED, "cannot %s %s: %s", what, path, why);
}

/* Append the bytes of fd until its end; more than `most` are refused. Messages call the file
** `path`. */
static mgrid_status read_all(int fd, const char *path, size_t most, mgrid_text *t,
                             mgrid_error *err) {
  char piece[4096];
  ssize_t n;
  while ((n = read(fd, piece, sizeof piece)) != 0) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot_read("read", path, strerror(errno), err);
    mgrid_text_put(t, piece, (size_t)n);
    if (t->failed) return mgrid_oom(err);
    if (t->len > most)
      return mgrid_fail(err, MGRID_REFUSED, "cannot read %s: it has more than %zu bytes", path,
                        most);
  }
  return MGRID_OK;
}

static mgrid_status check_regular(int fd, const char *path, mgrid_error *err) {
  struct stat about;
  if (fstat(fd, &about) != 0) return cannot_read("read", path, strerror(errno), err);
  if (S_ISDIR(about.st_mode)) return cannot_read("read", path, strerror(EISDIR), err);
  if (!S_ISREG(about.st_mode)) return cannot_read("read", path, "it is not a regular file", err);
  return MGRID_OK;
}

static mgrid_status read_regular_file(const char *path, const char *name, size_t most,
                                      mgrid_text *t, mgrid_error *err) {
  /* O_NONBLOCK: opening a pipe must not wait for its other end */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    char why[256], allowed[MGRID_ALLOWED];
    int number = errno;
    snprintf(why, sizeof why, "%.100s%s", strerror(number), mgrid_allowed_by(number, allowed));
    return cannot_read("open", name, why, err);
  }
  mgrid_status s = check_regular(fd, name, err);
  if (!s) s = read_all(fd, name, most, t, err);
  close(fd);
  return s;
}

mgrid_status mgrid_read_file_as(const char *path, const char *name, mgrid_text *t,
                                mgrid_error *err) {
  return read_regular_file(path, name, MGRID_TEXT_MAX, t, err);
}

mgrid_status mgrid_read_file(const char *path, mgrid_text *t, mgrid_error *err) {
  return read_regular_file(path, path, MGRID_TEXT_MAX, t, err);
}

mgrid_status mgrid_read_file_up_to(const char *path, size_t most, mgrid_text *t, mgrid_error *err) {
  return read_regular_file(path, path, most, t, err);
}

mgrid_status mgrid_read_stdin(size_t most, mgrid_text *t, mgrid_error *err) {
  return read_all(STDIN_FILENO, "standard input", most, t, err);
}

size_t mgrid_file_begins(const char *path, char *buf, size_t room) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  ssize_t n = fd >= 0 && !check_regular(fd, path, NULL) ? read(fd, buf, room) : -1;
  if (fd >= 0) close(fd);
  return n > 0 ? (size_t)n : 0;
}
