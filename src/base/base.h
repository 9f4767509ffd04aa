/* SPDX-License-Identifier: MIT
**
** base.h - what all other folders use: errors, budgets, memory, growing text, the C locale, files,
** nearest names, the clock, this machine, the launcher, the limits of this process.
*/
#ifndef MGRID_BASE_H
#define MGRID_BASE_H

#include "moongrid.h"

#include <stdarg.h>
#include <stdio.h>

#define MGRID_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum { MGRID_NAME_MAX = 31 };       /* longest name of a dim, grid, family and the like */
enum { MGRID_ITEM_NAME_MAX = 255 }; /* longest name of an item, such as a tensor */
enum { MGRID_TEXT_MAX = 1 << 20 };  /* most bytes of a recipe, and of a string in it */
#define MGRID_WORLD_MAX INT64_C(2147483647)

/* Set *err (which may be NULL) to a status and a message. If *err holds an error already, leave it:
** the first error of a chain of calls stays. Return the status. error.c */
mgrid_status mgrid_fail(mgrid_error *err, mgrid_status status, const char *fmt, ...)
    MGRID_PRINTF(3, 4);
/* Do the same for an error about a file. The message begins with "FILE: ", or with "FILE:LINE: " if
** line is 1 or more. */
mgrid_status mgrid_fail_at(mgrid_error *err, mgrid_status status, const char *file, int line,
                           const char *fmt, ...) MGRID_PRINTF(5, 6);
mgrid_status mgrid_oom(mgrid_error *err);
/* Fail with MGRID_OUTPUT, because a sink or file accepts no more. */
mgrid_status mgrid_unwritten(mgrid_error *err);
/* Return MGRID_OUT_OF_RANGE unless a world of that size has the rank. */
mgrid_status mgrid_check_rank(int64_t rank, int64_t world, mgrid_error *err);
/* mgrid_fail for constructors: return NULL. */
void *mgrid_null(mgrid_error *err, mgrid_status status, const char *fmt, ...) MGRID_PRINTF(3, 4);
void *mgrid_null_oom(mgrid_error *err);
/* Copy the error `from` to *err, unless *err holds one. Return the status of `from`. */
mgrid_status mgrid_error_pass(mgrid_error *err, const mgrid_error *from);
/* Copy the error `from` to *err, also if *err holds one. Return the status of `from`. */
mgrid_status mgrid_error_replace(mgrid_error *err, const mgrid_error *from);
/* Allocate an error for a call of a function of the host. It is on the heap, because recipes can
** nest hundreds of such calls. NULL: out of memory, and *err is set. */
mgrid_error *mgrid_error_open(mgrid_error *err);
/* Free this error. If the function failed, first copy the error to *err; if it is empty, say that
** `what` failed ("the function of a map"). */
void mgrid_error_close(mgrid_error *own, bool failed, const char *what, mgrid_error *err);
/* Return whether a required pointer is missing. `given`: whether the pointer is not NULL. If it is
** missing, *err becomes MGRID_USAGE, "WHAT is NULL". Do not check objects in this way: if one is
** NULL, the call that should have made it has filled *err. */
bool mgrid_lacks(bool given, const char *what, mgrid_error *err);
/* Do the same for a list of n elements. */
bool mgrid_lacks_list(size_t n, bool given, const char *what, mgrid_error *err);
/* Replace the message of *err. The arguments may point into the old message. Return the status of
** *err. */
mgrid_status mgrid_error_reword(mgrid_error *err, const char *fmt, ...) MGRID_PRINTF(2, 3);

/* Structs that a host allocates start with their size. The size grows with versions of moongrid.h;
** `known` is the size in this version. `what` names the struct in the error. */
enum { MGRID_STRUCT_MAX = 4096 }; /* no INIT macro sets a larger size */
/* Check that the struct is there and has a size, and that all its bytes after `known` are zero. */
mgrid_status mgrid_struct_check(const void *given, size_t known, const char *what,
                                mgrid_error *err);
/* Check the struct and copy its fields over the defaults in *own. `given` NULL: keep the
** defaults. */
mgrid_status mgrid_struct_read(void *own, size_t known, const void *given, const char *what,
                               mgrid_error *err);
/* Copy results to a struct that was checked. `given` NULL: do nothing. */
void mgrid_struct_write(void *given, const void *own, size_t known);

/* What long work may cost: an amount of work, and seconds of processor time (0: any). One unit of
** work takes about as long as one instruction of Lua. Work is charged before it is done. If it
** exceeds the limit or takes too long, the budget is exhausted, and stays so. The work then ends
** without an error, and the function that made the budget makes the error. With a NULL budget
** nothing is charged: calls of a host pass NULL. memory.c */
typedef struct mgrid_budget {
  uint64_t limit, used;
  uint64_t look;         /* read the clock again when `used` reaches this */
  double seconds, spent; /* `spent`: seconds used before `began` */
  double began, looked;  /* mgrid_now() */
  /* mgrid_processor_now() at the first look at the clock; below 0: there was no look yet */
  double processor;
  bool exhausted, slow; /* slow: it took too long */
} mgrid_budget;

mgrid_budget mgrid_budget_new(uint64_t limit, double seconds);
/* Charge work, and look at the clock now. Negative work exceeds any limit. */
bool mgrid_budget_look(mgrid_budget *b, int64_t work);
/* Do not count the time from pause to resume. */
void mgrid_budget_pause(mgrid_budget *b);
void mgrid_budget_resume(mgrid_budget *b);

/* Charge work. False: the budget is exhausted. */
static inline bool mgrid_spend(mgrid_budget *b, int64_t work) {
  if (!b) return true;
  if (b->exhausted || (uint64_t)work >= b->look - b->used) return mgrid_budget_look(b, work);
  b->used += (uint64_t)work;
  return true;
}

/* Resize `block` from `was` bytes to `bytes` bytes, with the host's allocator if it has set one,
** else with realloc. bytes 0: free the block. mgrid_zeroed returns new memory of `bytes` bytes (1
** or more), all zero. memory.c */
void *mgrid_realloc(const mgrid_hooks *h, void *block, size_t was, size_t bytes);
/* The allocator in use if the host sets none. */
void *mgrid_allocate(void *ud, void *block, size_t was, size_t bytes);
void *mgrid_zeroed(const mgrid_hooks *h, size_t bytes);
/* Make room for `more` elements after the n elements of an array on the heap, which may be NULL.
** The capacity is always n rounded up to a power of two, so it need not be stored. False: no
** memory, and the array is unchanged. memory.c */
#define MGRID_GROW(array, n, more) mgrid_grow(&(array), n, more, sizeof *(array))
bool mgrid_grow(void *array, size_t n, size_t more, size_t each);
/* Make room for n elements in an array whose length may also fall. `room` stores the capacity,
** which never falls. */
#define MGRID_ROOM(array, room, n) mgrid_room(&(array), &(room), n, sizeof *(array))
bool mgrid_room(void *array, size_t *room, size_t n, size_t each);
/* Free memory of realloc or malloc. The code of libmoongrid_lua calls this and mgrid_realloc, never
** malloc and free, because it may be bound to another allocator than the rest of the process
** (comm/recipe.c). */
void mgrid_release(void *block);
char *mgrid_strdup(const char *s); /* NULL: out of memory */
/* Write a line to the host's log, if it has set one. h may be NULL. */
void mgrid_log(const mgrid_hooks *h, mgrid_level level, const char *fmt, ...) MGRID_PRINTF(3, 4);

/* A growing string; { 0 } is empty. After a failed allocation `failed` is set, and further calls do
** nothing. So a caller checks it once, at the end. text.c */
typedef struct mgrid_text {
  char *data;      /* NULL or 0-terminated */
  size_t len, cap; /* characters without the final 0; allocated bytes */
  bool failed;     /* out of memory, or vsnprintf failed: the text is incomplete */
} mgrid_text;

void mgrid_text_add(mgrid_text *t, const char *fmt, ...) MGRID_PRINTF(2, 3);
void mgrid_text_put(mgrid_text *t, const char *s, size_t len);
void mgrid_text_str(mgrid_text *t, const char *s);
void mgrid_text_int(mgrid_text *t, int64_t n); /* as "%" PRId64, several times faster */
/* Append a text as JSON. It must be UTF-8 on one line (mgrid_check_line). */
void mgrid_text_quoted(mgrid_text *t, const char *s);
void mgrid_text_numbers(mgrid_text *t, size_t n, const int64_t *list);
/* write n in decimal, so that the text ends before `end`; return its first character */
char *mgrid_digits(int64_t n, char *end);
void mgrid_text_free(mgrid_text *t);
/* Return the text as a C string, "" if it is empty. */
static inline const char *mgrid_text_chars(const mgrid_text *t) { return t->data ? t->data : ""; }
/* Return the plural ending of a noun: "s", or "" for one. */
static inline const char *mgrid_s_of(int64_t n) { return n == 1 ? "" : "s"; }
/* An mgrid_sink that appends to an mgrid_text. Its `failed` tells whether memory ran out. */
int mgrid_text_sink(void *text, const char *s, size_t len);
/* Give the text to a sink, and empty the text. The text keeps its memory. */
mgrid_status mgrid_text_flush(mgrid_text *t, mgrid_sink sink, void *ud, mgrid_error *err);
/* Copy the text to (buf, len) as snprintf does, free t, and return the length of the whole text.
** After a failure the text says so. */
size_t mgrid_text_finish(mgrid_text *t, char *buf, size_t len);

/* End the text in (buf, len) with "..." if it was cut: `whole` is the length of the uncut text. */
void mgrid_text_ellipsis(char *buf, size_t len, size_t whole);

/* Formats print numbers with a decimal point, whatever the host's locale is. These functions work
** as snprintf, vsnprintf and strtod do in the C locale. Everything here that takes a format uses
** them: mgrid_text_add, mgrid_fail, mgrid_log. Lint refuses other code that prints or reads
** floating point. chars.c */
int mgrid_format(char *buf, size_t len, const char *fmt, ...) MGRID_PRINTF(3, 4);
int mgrid_vformat(char *buf, size_t len, const char *fmt, va_list args) MGRID_PRINTF(3, 0);
double mgrid_read_double(const char *text, char **end);

/* Kinds of characters, in ASCII. The functions of ctype.h follow the host's locale, so lint refuses
** them. */
static inline bool mgrid_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool mgrid_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool mgrid_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Switch this thread from the host's locale to the C locale. mgrid_locale_back takes the result of
** mgrid_locale_plain and switches back. */
typedef struct mgrid_locale {
  void *was; /* the thread's locale */
} mgrid_locale;

mgrid_locale mgrid_locale_plain(void);
void mgrid_locale_back(mgrid_locale of);

/* Return whether text is safe for a terminal: it is UTF-8, and has no control characters, not even
** newlines, and none that change the direction of text. chars.c */
bool mgrid_is_shown(const char *s, size_t len);
/* Check a name, or another text of one line, when it enters the library. Only safe text gets in, so
** code that prints it need not escape it. `what` names the text in the error: "the name of a
** mark". */
mgrid_status mgrid_check_line(const char *what, const char *s, size_t len, mgrid_error *err);
bool mgrid_is_utf8(const char *s, size_t len); /* control characters count as UTF-8 */
/* Copy text to (out, room), with unsafe bytes escaped, as \x1b, for a terminal. Stop before a
** character that does not fit. Return the number of bytes written, without the final 0. */
size_t mgrid_shown(char *out, size_t room, const char *s, size_t len);
/* Append text with unsafe bytes escaped. text.c */
void mgrid_text_shown(mgrid_text *t, const char *s);
/* Shorten a number that was printed with 17 digits: write to buf the fewest digits that read back
** as the same number, and return buf. Return any other text as it is. */
const char *mgrid_shortest(const char *number, char *buf, size_t len);
/* Do the same as mgrid_shown, in place. The buffer has `room` bytes, at most as many as a message.
** The text may lack its final 0. */
void mgrid_show(char *text, size_t room);

/* Append the contents of a regular file. After an error, part of the contents may have been
** appended. read_file.c */
mgrid_status mgrid_read_file(const char *path, mgrid_text *t, mgrid_error *err);
mgrid_status mgrid_read_file_as(const char *path, const char *name, mgrid_text *t,
                                mgrid_error *err); /* `name`: what messages call the file */
/* Append a file of up to `most` bytes; the other functions stop at MGRID_TEXT_MAX. */
mgrid_status mgrid_read_file_up_to(const char *path, size_t most, mgrid_text *t, mgrid_error *err);
/* Append all of standard input. Only for the command, because a library must not read it. */
mgrid_status mgrid_read_stdin(size_t most, mgrid_text *t, mgrid_error *err);
/* Read the first bytes of a regular file, at most `room`. Return how many they are. */
size_t mgrid_file_begins(const char *path, char *buf, size_t room);

/* Return whether s is a letter or _, then letters, digits or _, at most 31 characters in all: a
** name of a dim, a grid, a family and the like. */
bool mgrid_is_name(const char *s);
/* Return whether an item may have this name: letters, digits, _ . - and /, at most 255, as
** checkpoints name tensors. */
bool mgrid_is_item_name(const char *s);
/* Return the candidate nearest to `word`, or NULL if none is near. */
const char *mgrid_nearest(const char *word, const char *const *candidates, size_t n);
/* Write the end of a message about an unknown name: "; nearest is 'tp' (tp, cp, dp)". */
void mgrid_suggest(char *buf, size_t len, const char *word, const char *const *candidates,
                   size_t n);

/* Return the seconds of a monotonic clock. Only differences between two calls mean anything.
** system.c */
double mgrid_now(void);
double mgrid_processor_now(void); /* processor time of this thread, seconds; a system call */
/* Pause in a loop that polls. `look` counts the polls before this one: the first 16 pauses do
** nothing, those up to the 200th give up the processor, those up to the 1000th take 50 us, later
** ones 1 ms. */
void mgrid_pause(int look);
/* Return a number that all processes of this machine share, and that differs between machines.
** system.c */
uint64_t mgrid_machine_id(void);
/* Return how many logical processors are online. *usable (may be NULL): how many of them this
** process may use. system.c */
int64_t mgrid_cores(int64_t *usable);

/* The launcher of this process, as the environment describes it. `by` NULL: no known launcher; this
** is rank 0 of 1. If the launcher gives no size, `size` is 1. A launcher whose rank is not below
** its size is ignored. system.c */
typedef struct mgrid_launched {
  const char *by;
  int64_t rank, size;
  bool sized; /* the launcher gives the size */
  bool pmix;  /* the launcher offers only PMIx, not PMI */
} mgrid_launched;
mgrid_launched mgrid_launcher(void);

/* A limit of this process, from ulimit or from its cgroup. These functions allocate nothing.
** system.c */
typedef enum mgrid_scarce {
  MGRID_SCARCE_MEMORY,
  MGRID_SCARCE_THREADS,
  MGRID_SCARCE_FILES
} mgrid_scarce;
typedef struct mgrid_allowance {
  mgrid_scarce of;
  const char *whose, *name; /* "process", "ulimit -v" */
  int64_t most, has;        /* limit; use, or -1 if it is not known: in bytes or as a count */
} mgrid_allowance;
enum { MGRID_ALLOWANCES = 6, MGRID_ALLOWED = 128 };
/* list the limits that are set, and return how many they are */
size_t mgrid_allowances(mgrid_allowance all[MGRID_ALLOWANCES]);
void mgrid_allowance_words(const mgrid_allowance *a, char *buf, size_t room);
/* Write the end of a message about something that ran out: ": the process may have 512 MiB (ulimit
** -v) and has 498", or "" if no limit explains it. Return buf. */
const char *mgrid_allowed(mgrid_scarce of, char buf[MGRID_ALLOWED]);
/* Do the same for the errno of a failed call. */
const char *mgrid_allowed_by(int number, char buf[MGRID_ALLOWED]);
/* Count the processes of this cgroup that the kernel has killed for lack of memory. False: there is
** no such count. */
bool mgrid_cgroup_kills(int64_t *killed);

#endif
