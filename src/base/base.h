/* SPDX-License-Identifier: MIT
**
** base.h - what every stage uses: errors, growing text, nearest names, the clock, this machine, the
** launcher, the limits of this process.
*/
#ifndef MGRID_BASE_H
#define MGRID_BASE_H

#include "moongrid.h"

#include <stdarg.h>
#include <stdio.h>

#define MGRID_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum { MGRID_NAME_MAX = 31 };       /* longest name of a dim, grid or family */
enum { MGRID_ITEM_NAME_MAX = 255 }; /* and of an item, as a tensor */
enum { MGRID_TEXT_MAX = 1 << 20 };  /* bytes of a file to read, and of a string in a recipe */
#define MGRID_WORLD_MAX INT64_C(2147483647)

/* Set *err (which may be NULL) to a status and a message, unless it holds an error already: the
** first error of a chain of calls stays. Return the status. error.c */
mgrid_status mgrid_fail(mgrid_error *err, mgrid_status status, const char *fmt, ...)
    MGRID_PRINTF(3, 4);
/* The same about a file: "FILE: ", or "FILE:LINE: " with a line of 1 or more, and the message. */
mgrid_status mgrid_fail_at(mgrid_error *err, mgrid_status status, const char *file, int line,
                           const char *fmt, ...) MGRID_PRINTF(5, 6);
mgrid_status mgrid_oom(mgrid_error *err);
mgrid_status mgrid_unwritten(mgrid_error *err); /* a sink or a file accepted no more */
/* MGRID_OUT_OF_RANGE unless a world of that size has the rank. */
mgrid_status mgrid_check_rank(int64_t rank, int64_t world, mgrid_error *err);
/* mgrid_fail for constructors: return NULL. */
void *mgrid_null(mgrid_error *err, mgrid_status status, const char *fmt, ...) MGRID_PRINTF(3, 4);
void *mgrid_null_oom(mgrid_error *err);
/* Copy the error `from` to *err where *err holds none. Return the status of `from`. */
mgrid_status mgrid_error_pass(mgrid_error *err, const mgrid_error *from);
/* The same, also where *err holds one. */
mgrid_status mgrid_error_replace(mgrid_error *err, const mgrid_error *from);
/* Return an mgrid_error on the heap for a function of the host: recipes can nest hundreds of such
** calls, too many for the stack. NULL: out of memory, *err is set. */
mgrid_error *mgrid_error_open(mgrid_error *err);
/* Free it, and pass on the error of a function that failed; `what` names it: "the function of a
** map". */
void mgrid_error_close(mgrid_error *own, bool failed, const char *what, mgrid_error *err);
/* Return true, with MGRID_USAGE "WHAT is NULL", if a pointer is NULL that must not be. Not for
** objects that an earlier call failed to make: that call has filled *err. */
bool mgrid_lacks(bool given, const char *what, mgrid_error *err);
/* The same for a list of n elements. */
bool mgrid_lacks_list(size_t n, bool given, const char *what, mgrid_error *err);
/* Replace the message of *err; the arguments may point into the old one. Return its status. */
mgrid_status mgrid_error_reword(mgrid_error *err, const char *fmt, ...) MGRID_PRINTF(2, 3);

/* Structs that a host allocates start with their size, which grows with versions of moongrid.h.
** `known` is the size in this version; `what` names the struct in the error. */
enum { MGRID_STRUCT_MAX = 4096 }; /* no INIT macro sets a larger size */
/* Check that the struct has a size, and that any bytes after `known` are zero. */
mgrid_status mgrid_struct_check(const void *given, size_t known, const char *what,
                                mgrid_error *err);
/* Check it and copy its fields over the defaults in *own. `given` NULL: keep the defaults. */
mgrid_status mgrid_struct_read(void *own, size_t known, const void *given, const char *what,
                               mgrid_error *err);
/* Copy results to a checked struct. `given` NULL: do nothing. */
void mgrid_struct_write(void *given, const void *own, size_t known);

/* What long work may cost: an amount of work, counted in about the instructions that Lua would
** need, and seconds of processor time (0: any). Work is charged before it is done. Once it is more
** than the limit, or takes too long, the budget is exhausted and stays so: the work ends without an
** error of its own, and whoever made the budget makes one. A NULL is work for a host, which is
** free. memory.c */
typedef struct mgrid_budget {
  uint64_t limit, used;
  uint64_t look;         /* the use at which the clock is looked at again */
  double seconds, spent; /* `spent`: of them before `began` */
  double began, looked;  /* mgrid_now() */
  double processor;      /* mgrid_processor_now() at the first look; below 0: there was none yet */
  bool exhausted, slow;  /* slow: for its time */
} mgrid_budget;

mgrid_budget mgrid_budget_new(uint64_t limit, double seconds);
/* Charge work and look at the clock at once. Negative work is more than any limit. */
bool mgrid_budget_look(mgrid_budget *b, int64_t work);
/* Keep the time between the two out of the count. */
void mgrid_budget_pause(mgrid_budget *b);
void mgrid_budget_resume(mgrid_budget *b);

/* Charge work; false: the budget is exhausted. */
static inline bool mgrid_spend(mgrid_budget *b, int64_t work) {
  if (!b) return true;
  if (b->exhausted || (uint64_t)work >= b->look - b->used) return mgrid_budget_look(b, work);
  b->used += (uint64_t)work;
  return true;
}

/* Memory from the host's allocator if it has set one, else from realloc and free. `was` is the size
** of `block`; bytes 0 frees it. mgrid_zeroed returns zeroed memory; bytes must be 1 or more.
** memory.c */
void *mgrid_realloc(const mgrid_hooks *h, void *block, size_t was, size_t bytes);
/* The allocator where the host sets none. */
void *mgrid_allocate(void *ud, void *block, size_t was, size_t bytes);
void *mgrid_zeroed(const mgrid_hooks *h, size_t bytes);
/* An array on the heap, NULL at first, gets room for `more` elements after its n. It doubles at
** powers of two, so no field keeps its capacity. False: no memory, and it stays as it is.
** memory.c */
#define MGRID_GROW(array, n, more) mgrid_grow(&(array), n, more, sizeof *(array))
bool mgrid_grow(void *array, size_t n, size_t more, size_t each);
/* The same for an array that shrinks, or is emptied and filled again: it gets memory for n
** elements, and `room` keeps its capacity. */
#define MGRID_ROOM(array, room, n) mgrid_room(&(array), &(room), n, sizeof *(array))
bool mgrid_room(void *array, size_t *room, size_t n, size_t each);
/* free. What speaks Lua calls this and mgrid_realloc, never malloc and free: it may be bound to
** another allocator than the rest of the process (comm/recipe.c). */
void mgrid_release(void *block);
/* Write a line to the host's log, if it has set one. h may be NULL. */
void mgrid_log(const mgrid_hooks *h, mgrid_level level, const char *fmt, ...) MGRID_PRINTF(3, 4);

/* A growing string; { 0 } is empty. After a failed allocation `failed` stays set and further calls
** do nothing, so a caller checks it once, at the end. text.c */
typedef struct mgrid_text {
  char *data;      /* NULL or 0-terminated */
  size_t len, cap; /* characters without the final 0; allocated bytes */
  bool failed;     /* out of memory, or vsnprintf failed: the text is incomplete */
} mgrid_text;

void mgrid_text_add(mgrid_text *t, const char *fmt, ...) MGRID_PRINTF(2, 3);
void mgrid_text_put(mgrid_text *t, const char *s, size_t len);
void mgrid_text_str(mgrid_text *t, const char *s);
void mgrid_text_int(mgrid_text *t, int64_t n); /* as "%" PRId64, several times faster */
/* Append JSON: a text, which is UTF-8 on one line (mgrid_check_line), or a list. */
void mgrid_text_quoted(mgrid_text *t, const char *s);
void mgrid_text_numbers(mgrid_text *t, size_t n, const int64_t *list);
/* write n so that it ends before `end`; returns its start */
char *mgrid_digits(int64_t n, char *end);
void mgrid_text_free(mgrid_text *t);
/* Return the text as a C string, "" if it is empty. */
static inline const char *mgrid_text_chars(const mgrid_text *t) { return t->data ? t->data : ""; }
/* Return the plural ending of a noun: "s", or "" for one. */
static inline const char *mgrid_s_of(int64_t n) { return n == 1 ? "" : "s"; }
/* An mgrid_sink into an mgrid_text, whose `failed` tells whether memory ran out. */
int mgrid_text_sink(void *text, const char *s, size_t len);
/* Write the text to a sink and empty it, keeping its memory. */
mgrid_status mgrid_text_flush(mgrid_text *t, mgrid_sink sink, void *ud, mgrid_error *err);
/* Copy to (buf, len) as snprintf does, free t, return the whole length. After a failure the text
** says so. */
size_t mgrid_text_finish(mgrid_text *t, char *buf, size_t len);

/* End the text in (buf, len) with "..." if its whole length does not fit. */
void mgrid_text_ellipsis(char *buf, size_t len, size_t whole);

/* Numbers have a decimal point, whatever the host's locale is. As snprintf, vsnprintf and strtod,
** in the C locale. All that takes a format here goes through it: mgrid_text_add, mgrid_fail,
** mgrid_log. Elsewhere lint refuses to print or read floating point. chars.c */
int mgrid_format(char *buf, size_t len, const char *fmt, ...) MGRID_PRINTF(3, 4);
int mgrid_vformat(char *buf, size_t len, const char *fmt, va_list args) MGRID_PRINTF(3, 0);
double mgrid_read_double(const char *text, char **end);

/* Kinds of characters, in ASCII. Those of ctype.h follow the host's locale, and lint refuses
** them. */
static inline bool mgrid_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool mgrid_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool mgrid_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Switch this thread to the C locale, whatever the host's is, until mgrid_locale_back gets the
** result of mgrid_locale_plain. */
typedef struct mgrid_locale {
  void *was; /* the thread's locale */
} mgrid_locale;

mgrid_locale mgrid_locale_plain(void);
void mgrid_locale_back(mgrid_locale of);

char *mgrid_strdup(const char *s); /* NULL: out of memory */

/* Return whether text is safe for a terminal: it has no control characters, newlines neither, and
** is UTF-8. chars.c */
bool mgrid_is_shown(const char *s, size_t len);
/* Check a name, or another text of one line, where it enters: only what is safe already gets in, so
** nothing that prints it escapes it. `what` names it in the error: "the name of a mark". */
mgrid_status mgrid_check_line(const char *what, const char *s, size_t len, mgrid_error *err);
bool mgrid_is_utf8(const char *s, size_t len); /* control characters count as UTF-8 */
/* Make text safe for a terminal: what is unsafe is written as \x1b. Write whole characters to (out,
** room) as long as they fit, and return the number of bytes. */
size_t mgrid_shown(char *out, size_t room, const char *s, size_t len);
/* Append it to a text likewise. text.c */
void mgrid_text_shown(mgrid_text *t, const char *s);
/* Shorten a number of 17 digits in buf to the fewest that read back as the same number; leave other
** texts alone. */
const char *mgrid_shortest(const char *number, char *buf, size_t len);
/* mgrid_shown in place, in a buffer of `room` bytes, at most those of a message. The text may lack
** its final 0. */
void mgrid_show(char *text, size_t room);

/* Append the contents of a regular file. After an error part of it may have been appended.
** read_file.c */
mgrid_status mgrid_read_file(const char *path, mgrid_text *t, mgrid_error *err);
mgrid_status mgrid_read_file_as(const char *path, const char *name, mgrid_text *t,
                                mgrid_error *err); /* its name in messages */
/* The same of files up to `most` bytes. Only for the command. */
mgrid_status mgrid_read_file_up_to(const char *path, size_t most, mgrid_text *t, mgrid_error *err);
/* The same of standard input up to its end, which a library must not read. */
mgrid_status mgrid_read_stdin(size_t most, mgrid_text *t, mgrid_error *err);
/* Read the first bytes of a regular file, as many as there is room for. Return how many. */
size_t mgrid_file_begins(const char *path, char *buf, size_t room);

/* Return whether a dim, grid or family may have this name. */
bool mgrid_is_name(const char *s);
/* The same of an item: as checkpoints name tensors, letters, digits, _ . - and /, at most 255. */
bool mgrid_is_item_name(const char *s);
/* Return the candidate nearest to `word`, or NULL if none is near. */
const char *mgrid_nearest(const char *word, const char *const *candidates, size_t n);
/* Write the end of a message about an unknown name: "; nearest is 'tp' (tp, cp, dp)". */
void mgrid_suggest(char *buf, size_t len, const char *word, const char *const *candidates,
                   size_t n);

/* Seconds of a monotonic clock; only differences mean anything. system.c */
double mgrid_now(void);
double mgrid_processor_now(void); /* processor time of this thread, seconds; a system call */
/* Pause in a loop that polls. `look` counts the polls before this one: the first 16 pauses do
** nothing, those up to the 200th give up the processor, those up to the 1000th take 50 us, later
** ones 1 ms. */
void mgrid_pause(int look);
/* Return a number that is identical for all processes of a machine and differs between machines.
** system.c */
uint64_t mgrid_machine_id(void);
/* Return the logical processors that are online, in *usable (may be NULL) those that this process
** may use. system.c */
int64_t mgrid_cores(int64_t *usable);

/* The launcher of this process, from the environment. `by` NULL: no known launcher, rank 0 of 1.
** Without a size from the launcher `size` is 1. A rank that is not below its size is ignored.
** system.c */
typedef struct mgrid_launched {
  const char *by;
  int64_t rank, size;
  bool sized; /* it gives the size */
  bool pmix;  /* it offers PMIx only, not PMI */
} mgrid_launched;
mgrid_launched mgrid_launcher(void);

/* A limit of this process, by ulimit or by its cgroup. Nothing here allocates. system.c */
typedef enum mgrid_scarce {
  MGRID_SCARCE_MEMORY,
  MGRID_SCARCE_THREADS,
  MGRID_SCARCE_FILES
} mgrid_scarce;
typedef struct mgrid_allowance {
  mgrid_scarce of;
  const char *whose, *name; /* "process", "ulimit -v" */
  int64_t most, has;        /* limit and use, in bytes or a number; use -1: unknown */
} mgrid_allowance;
enum { MGRID_ALLOWANCES = 6, MGRID_ALLOWED = 128 };
size_t mgrid_allowances(
    /* lists the limits that are set, returns their number */
    mgrid_allowance all[MGRID_ALLOWANCES]);
void mgrid_allowance_words(const mgrid_allowance *a, char *buf, size_t room);
/* Write the end of a message about something that ran out: ": the process may have 512 MiB (ulimit
** -v) and has 498", or "" if no limit explains it. Returns buf. */
const char *mgrid_allowed(mgrid_scarce of, char buf[MGRID_ALLOWED]);
/* The same, for the errno of a failed call. */
const char *mgrid_allowed_by(int number, char buf[MGRID_ALLOWED]);
/* Count the processes of this cgroup that the kernel has killed for lack of memory; false: no count
** is available. */
bool mgrid_cgroup_kills(int64_t *killed);

#endif
