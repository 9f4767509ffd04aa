/* SPDX-License-Identifier: MIT
**
** program.h - main of a test program: all of its tests, or those that its argument names.
**
**     build/tests/test_plan                   all
**     build/tests/test_plan test_large_plan   one
**     build/tests/test_plan 'test_dig*'       * is any text, ? any character
*/
#ifndef TEST_PROGRAM_H
#define TEST_PROGRAM_H

#include "../anew.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Leave only the tests that argv names. False, after a message, if there are none: cmocka itself
** would run no test and report success. */
static inline bool choose_tests(const struct CMUnitTest *tests, size_t n, int argc, char **argv) {
  if (argc < 2) return true;
  for (size_t i = 0; i < n && argc == 2; i++) {
    if (fnmatch(argv[1], tests[i].name, 0) != 0) continue;
    cmocka_set_test_filter(argv[1]);
    return true;
  }
  if (argc > 2)
    fprintf(stderr, "%s takes one name of a test, which may have * and ? in it\n", argv[0]);
  else
    fprintf(stderr, "%s has no test '%s'; known:\n", argv[0], argv[1]);
  for (size_t i = 0; i < n && argc == 2; i++) fprintf(stderr, "  %s\n", tests[i].name);
  return false;
}

/* What main returns; `tests` is an array of struct CMUnitTest. */
#define run_program(group, tests, argc, argv) \
  (choose_tests(tests, sizeof(tests) / sizeof(tests)[0], argc, argv) \
       ? cmocka_run_group_tests_name(group, tests, NULL, NULL) \
       : 2)

#endif
