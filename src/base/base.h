/* SPDX-License-Identifier: MIT
**
** base.h - what every stage stands on: errors, growing text, nearest names, the clock.
*/
#ifndef MG_BASE_H
#define MG_BASE_H

#include "moongrid.h"

#include <stdarg.h>
#include <stdio.h>

#define MG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum { MG_NAME_MAX = 31 }; /* longest name of a dim, grid or family */
#define MG_WORLD_MAX INT64_C(2147483647)

/* Fill *err (when there is one) and return the status. */
mg_status mg_fail(mg_error *err, mg_status status, const char *fmt, ...) MG_PRINTF(3, 4);
mg_status mg_oom(mg_error *err);
/* The same for constructors: always NULL. */
void *mg_null(mg_error *err, mg_status status, const char *fmt, ...) MG_PRINTF(3, 4);
void *mg_null_oom(mg_error *err);

/* Growing text. After a failed allocation `failed` stays set and further calls do
** nothing, so that a long text is checked once, at its end. */
typedef struct mg_text {
  char  *data; /* NULL or 0-terminated */
  size_t len, cap;
  bool   failed;
} mg_text;

void mg_text_add(mg_text *t, const char *fmt, ...) MG_PRINTF(2, 3);
void mg_text_put(mg_text *t, const char *s, size_t len);
void mg_text_str(mg_text *t, const char *s);
void mg_text_int(mg_text *t, int64_t n); /* as "%" PRId64, several times faster */
char *mg_digits(int64_t n, char *end); /* written before `end`; where they begin */
void mg_text_free(mg_text *t);
/* Copy to (buf, len) as snprintf does, free t, return the whole length. */
size_t mg_text_finish(mg_text *t, char *buf, size_t len);

char *mg_strdup(const char *s); /* NULL when out of memory */

/* Is it a name of a dim, grid or family? */
bool mg_is_name(const char *s);
void mg_sort_names(const char **names, size_t n); /* by their bytes, not by the locale */
/* The candidate that is most like `word`, or NULL when none is alike. */
const char *mg_nearest(const char *word, const char *const *candidates, size_t n);
/* "; nearest is 'tp' (tp, cp, dp)": the tail of every unknown-name message. */
void mg_suggest(char *buf, size_t len, const char *word, const char *const *candidates, size_t n);

/* clock.c, host.c */
double   mg_now(void); /* seconds of a clock that goes forward */
void     mg_pause(int look); /* between two looks at something, the 0th and the next: soon, later every millisecond */
uint64_t mg_machine_id(void); /* equal for all processes of a machine */

#endif
