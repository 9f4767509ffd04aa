/* SPDX-License-Identifier: MIT
**
** base.h - what every stage stands on: errors, growing text, nearest names, the clock.
*/
#ifndef MGRID_BASE_H
#define MGRID_BASE_H

#include "moongrid.h"

#include <stdarg.h>
#include <stdio.h>

#define MGRID_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum { MGRID_NAME_MAX = 31 }; /* longest name of a dim, grid or family */
#define MGRID_WORLD_MAX INT64_C(2147483647)

/* Fill *err (when there is one) and return the status. */
mgrid_status mgrid_fail(mgrid_error *err, mgrid_status status, const char *fmt, ...) MGRID_PRINTF(3, 4);
mgrid_status mgrid_oom(mgrid_error *err);
/* The same for constructors: always NULL. */
void *mgrid_null(mgrid_error *err, mgrid_status status, const char *fmt, ...) MGRID_PRINTF(3, 4);
void *mgrid_null_oom(mgrid_error *err);

/* Growing text. After a failed allocation `failed` stays set and further calls do
** nothing, so that a long text is checked once, at its end. */
typedef struct mgrid_text {
  char  *data; /* NULL or 0-terminated */
  size_t len, cap;
  bool   failed;
} mgrid_text;

void  mgrid_text_add(mgrid_text *t, const char *fmt, ...) MGRID_PRINTF(2, 3);
void  mgrid_text_put(mgrid_text *t, const char *s, size_t len);
void  mgrid_text_str(mgrid_text *t, const char *s);
void  mgrid_text_int(mgrid_text *t, int64_t n); /* as "%" PRId64, several times faster */
char *mgrid_digits(int64_t n, char *end);       /* written before `end`; where they begin */
void  mgrid_text_free(mgrid_text *t);
/* Copy to (buf, len) as snprintf does, free t, return the whole length. */
size_t mgrid_text_finish(mgrid_text *t, char *buf, size_t len);

char *mgrid_strdup(const char *s); /* NULL when out of memory */

/* Is it a name of a dim, grid or family? */
bool mgrid_is_name(const char *s);
void mgrid_sort_names(const char **names, size_t n); /* by their bytes, not by the locale */
/* The candidate that is most like `word`, or NULL when none is alike. */
const char *mgrid_nearest(const char *word, const char *const *candidates, size_t n);
/* "; nearest is 'tp' (tp, cp, dp)": the tail of every unknown-name message. */
void mgrid_suggest(char *buf, size_t len, const char *word, const char *const *candidates, size_t n);

/* clock.c, host.c */
double mgrid_now(void);       /* seconds of a clock that goes forward */
void   mgrid_pause(int look); /* between two looks at something, the 0th and the next: soon, later every millisecond */
uint64_t mgrid_machine_id(void); /* equal for all processes of a machine */

#endif
