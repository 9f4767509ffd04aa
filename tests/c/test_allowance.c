/* SPDX-License-Identifier: MIT
**
** test_allowance.c - errors name the limit of the system that caused them. Each test is a process
** of its own, which limits itself.
*/
#include "base/base.h"
#include "apart.h"
#include "program.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void without(mgrid_error *said) {
  char buf[MGRID_ALLOWED];
  mgrid_error e = MGRID_ERROR_INIT;
  limit(RLIMIT_AS, RLIM_INFINITY), limit(RLIMIT_DATA, RLIM_INFINITY), limit(RLIMIT_NOFILE, 4096);
  mgrid_oom(&e);
  if (differs(said, "out of memory", e.message)) return;
  if (differs(said, "", mgrid_allowed_by(ENOENT, buf))) return;
  differs(said, ": the process may have 4096 open files (ulimit -n)",
          mgrid_allowed_by(EMFILE, buf));
}

#ifndef __SANITIZE_ADDRESS__
/* MiB that this process has, as it would be said. */
static int mib_of(const char *text) {
  const char *has = strstr(text, " and has ");
  return has ? atoi(has + strlen(" and has ")) : -1;
}

static void addresses(mgrid_error *said) {
  mgrid_error e = MGRID_ERROR_INIT;
  char wanted[MGRID_ALLOWED];
  limit(RLIMIT_AS, (rlim_t)300 << 20);
  if (mgrid_realloc(NULL, NULL, 0, (size_t)1 << 30)) abort();
  mgrid_oom(&e);
  int has = mib_of(e.message);
  if (has <= 0 || has > 300) has = 0;
  snprintf(wanted, sizeof wanted,
           "out of memory: the process may have 300 MiB (ulimit -v) and has %d", has);
  differs(said, wanted, e.message);
}
#endif

/* Of two limits, the one that leaves less. */
static void two(mgrid_error *said) {
  char a[MGRID_ALLOWED], b[MGRID_ALLOWED];
  const rlim_t large = (rlim_t)100 << 40; /* more than ASan takes */
  limit(RLIMIT_AS, large), limit(RLIMIT_DATA, (rlim_t)200 << 20);
  mgrid_allowed(MGRID_SCARCE_MEMORY, a);
  limit(RLIMIT_DATA, 4 * large);
  mgrid_allowed(MGRID_SCARCE_MEMORY, b);
  if (strncmp(a, ": the process may have 200 MiB (ulimit -d) and has ", 51))
    differs(said, "200 by -d", a);
  if (strncmp(b, ": the process may have 104857600 MiB (ulimit -v) and has ", 57))
    differs(said, "104857600 by -v", b);
}

/* The first error stays. */
static void first(mgrid_error *said) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_fail(&e, MGRID_REFUSED, "another");
  limit(RLIMIT_AS, (rlim_t)300 << 20);
  mgrid_oom(&e);
  if (differs(said, "another", e.message)) return;
  if (mgrid_oom(NULL) != MGRID_NO_MEMORY || mgrid_null_oom(NULL))
    differs(said, "no memory", "something else");
}

static void files(mgrid_error *said) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_text t = { 0 };
  char wanted[256];
  limit(RLIMIT_NOFILE, 32);
  while (dup(STDERR_FILENO) >= 0) continue;
  mgrid_read_file("/etc/hostname", &t, &e);
  snprintf(wanted, sizeof wanted,
           "cannot open /etc/hostname: %s: the process may have 32 open files (ulimit -n)",
           strerror(EMFILE)); /* its words differ between C libraries */
  if (differs(said, wanted, e.message)) return;
  mgrid_error_clear(&e);
  limit(RLIMIT_AS, (rlim_t)300 << 20);
  mgrid_oom(&e); /* what it has cannot be read now */
  differs(said, "out of memory: the process may have 300 MiB (ulimit -v)", e.message);
}

static void *nothing(void *ud) { return ud; }

static void threads(mgrid_error *said) {
  char text[MGRID_ALLOWED];
  pthread_t t;
  limit(RLIMIT_NPROC, 0);
  if (getuid() == 0 && setuid(65534) != 0) return; /* root may start any number */
  if (pthread_create(&t, NULL, nothing, NULL) != EAGAIN) {
    differs(said, "no thread", "one");
    return;
  }
  if (differs(said, ": the user may have 0 threads (ulimit -u)",
              mgrid_allowed(MGRID_SCARCE_THREADS, text)))
    return;
  limit(RLIMIT_NPROC, RLIM_INFINITY);
}

/* A stack for a thread is memory. */
static void stacks(mgrid_error *said) {
  char text[MGRID_ALLOWED];
  limit(RLIMIT_AS, (rlim_t)1 << 20);
  mgrid_allowed_by(EAGAIN, text);
  if (strncmp(text, ": the process may have 1 MiB (ulimit -v) and has ", 49))
    differs(said, "1 by -v", text);
}

static void test_without(void **state) { (void)state, apart(without); }
static void test_addresses(void **state) {
  (void)state;
#ifdef __SANITIZE_ADDRESS__
  skip(); /* it has terabytes of addresses, and ends a process to which it cannot give memory */
#else
  apart_limited(addresses);
#endif
}
static void test_two(void **state) { (void)state, apart_limited(two); }
static void test_first(void **state) { (void)state, apart(first); }
static void test_files(void **state) { (void)state, apart_limited(files); }
static void test_threads(void **state) { (void)state, apart(threads); }
static void test_stacks(void **state) { (void)state, apart_limited(stacks); }

static void test_all(void **state) {
  mgrid_allowance all[MGRID_ALLOWANCES];
  char words[MGRID_ALLOWED];
  size_t n = mgrid_allowances(all);
  (void)state;
  assert_true(n <= MGRID_ALLOWANCES);
  for (size_t i = 0; i < n; i++) {
    mgrid_allowance_words(&all[i], words, sizeof words);
    assert_true(strlen(words) < sizeof words - 1);
    assert_true(all[i].most >= 0 && all[i].has >= -1);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_without), cmocka_unit_test(test_addresses),
    cmocka_unit_test(test_two),     cmocka_unit_test(test_first),
    cmocka_unit_test(test_files),   cmocka_unit_test(test_threads),
    cmocka_unit_test(test_stacks),  cmocka_unit_test(test_all),
  };
  return run_program("allowance", tests, argc, argv);
}
