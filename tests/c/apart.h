/* SPDX-License-Identifier: MIT
**
** apart.h - tests that take something from their process: each in one of its own.
*/
#ifndef TEST_APART_H
#define TEST_APART_H

#include "base/base.h"
#include "program.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run it in a child, whose limits end with it; what it says is an error of the test. */
static inline void apart(void (*what)(mgrid_error *said)) {
  int ends[2], status;
  mgrid_error said = MGRID_ERROR_INIT;
  assert_int_equal(0, pipe(ends));
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    what(&said);
    _exit(write(ends[1], &said, sizeof said) != sizeof said);
  }
  close(ends[1]);
  ssize_t got = read(ends[0], &said, sizeof said);
  close(ends[0]);
  assert_int_equal(child, waitpid(child, &status, 0));
  assert_int_equal(0, status);
  assert_int_equal(sizeof said, got);
  if (*said.message) fail_msg("%s", said.message);
}

static inline void limit(int resource, rlim_t most) {
  struct rlimit now;
  getrlimit(resource, &now);
  now.rlim_cur = most;
  setrlimit(resource, &now);
}

/* Run apart what limits its memory, where such a limit is kept: processes of qemu have none. */
static inline void apart_limited(void (*what)(mgrid_error *said)) {
  struct rlimit was, now;
  getrlimit(RLIMIT_AS, &was);
  rlim_t most = was.rlim_max == RLIM_INFINITY ? (rlim_t)100 << 40 : was.rlim_max;
  limit(RLIMIT_AS, most);
  getrlimit(RLIMIT_AS, &now);
  setrlimit(RLIMIT_AS, &was);
  if (now.rlim_cur != most) skip();
  apart(what);
}

/* Say so if it does. */
static inline bool differs(mgrid_error *said, const char *wanted, const char *got) {
  bool same = strcmp(wanted, got) == 0;
  if (!same)
    snprintf(said->message, sizeof said->message, "wanted '%.400s', got '%.400s'", wanted, got);
  return !same;
}

#endif
