/* SPDX-License-Identifier: MIT
**
** base.h - what every stage uses: errors, growing text, nearest names, the clock, which machine this is, who
** started this process, what the system lets it have.
*/
#ifndef MGRID_BASE_H
#define MGRID_BASE_H

#include "moongrid.h"

#include <stdarg.h>
#include <stdio.h>

#define MGRID_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum { MGRID_NAME_MAX = 31 };      /* longest name of a dim, grid or family */
enum { MGRID_TEXT_MAX = 1 << 20 }; /* bytes of a file that is read, and of a text in a recipe */
#define MGRID_WORLD_MAX INT64_C(2147483647)

/* Put status and message into *err (which may be NULL) unless it holds an error already: of a chain of
** calls the first error stays. Return the status. error.c */
mgrid_status mgrid_fail(mgrid_error *err, mgrid_status status, const char *fmt, ...) MGRID_PRINTF(3, 4);
mgrid_status mgrid_oom(mgrid_error *err);
mgrid_status mgrid_unwritten(mgrid_error *err); /* a sink, or a file, took no more */
/* MGRID_OUT_OF_RANGE where a world of so many has no such rank. */
mgrid_status mgrid_check_rank(int64_t rank, int64_t world, mgrid_error *err);
/* The same for constructors: always NULL. */
void *mgrid_null(mgrid_error *err, mgrid_status status, const char *fmt, ...) MGRID_PRINTF(3, 4);
void *mgrid_null_oom(mgrid_error *err);
/* Copy the error `from` to *err: _pass only where *err holds none, _replace always. Return its status. */
mgrid_status mgrid_error_pass(mgrid_error *err, const mgrid_error *from);
mgrid_status mgrid_error_replace(mgrid_error *err, const mgrid_error *from);
/* A function of the host gets an error of its own to fill, not one on the stack, since recipes can put hundreds of them
** into each other. NULL after filling *err. _close frees it, and passes on what a function that failed says: `what` is
** "the function of a map". */
mgrid_error *mgrid_error_open(mgrid_error *err);
void         mgrid_error_close(mgrid_error *own, bool failed, const char *what, mgrid_error *err);
/* Is a pointer NULL that no program should pass as NULL? MGRID_USAGE then, "WHAT is NULL". _list: of n elements. An
** object that an earlier call failed to make is no such pointer: that call has filled *err. */
bool mgrid_lacks(bool given, const char *what, mgrid_error *err);
bool mgrid_lacks_list(size_t n, bool given, const char *what, mgrid_error *err);
/* Change the message of *err; the arguments may point to the old message. Return its status. */
mgrid_status mgrid_error_reword(mgrid_error *err, const char *fmt, ...) MGRID_PRINTF(2, 3);

/* Structs that a host allocates begin with their size, which grows with versions of moongrid.h. `known`
** is the size in this version, `what` names the struct in the error. */
enum { MGRID_STRUCT_MAX = 4096 }; /* a larger size was never set by the INIT macro */
/* Check that the struct has a size, and that the bytes behind `known`, if there are any, are zero. */
mgrid_status mgrid_struct_check(const void *given, size_t known, const char *what, mgrid_error *err);
/* Check it, and copy its fields over the defaults in *own; `given` NULL leaves the defaults. */
mgrid_status mgrid_struct_read(void *own, size_t known, const void *given, const char *what, mgrid_error *err);
/* Copy results to a struct that was checked; `given` NULL: do nothing. */
void mgrid_struct_write(void *given, const void *own, size_t known);

/* Who pays for long work that a recipe asks for: each part is paid before it is done. Where `pay` says no, `spent` is set
** and the work ends, without an error of its own. NULL: a host asks, and it is free. */
typedef struct mgrid_payer {
  bool (*pay)(void *ud, int64_t work); /* about so many instructions of Lua */
  void   *ud;
  int64_t owed; /* little work is paid together */
  bool    spent;
} mgrid_payer;

static inline bool mgrid_pay(mgrid_payer *p, int64_t work) {
  if (!p || p->spent) return !p;
  p->owed = work < INT64_MAX - p->owed ? p->owed + work : INT64_MAX;
  if (p->owed < 4096) return true;
  p->spent = !p->pay(p->ud, p->owed);
  p->owed = 0;
  return !p->spent;
}

/* Memory from the host's allocator if it has set one, else from realloc and free. `was` is the size of
** `block`; bytes 0 frees it. mgrid_zeroed gives zeroed memory, bytes 1 or more. hooks.c */
void *mgrid_realloc(const mgrid_hooks *h, void *block, size_t was, size_t bytes);
void *mgrid_zeroed(const mgrid_hooks *h, size_t bytes);
/* free. types/ and script/ call this and mgrid_realloc, never malloc and free: they may be bound to another
** allocator than the rest of the process (comm/recipe.c). */
void mgrid_release(void *block);
/* Write a line to the host's log, if it has set one. h may be NULL. */
void mgrid_log(const mgrid_hooks *h, mgrid_level level, const char *fmt, ...) MGRID_PRINTF(3, 4);

/* Growing text; { 0 } is an empty one. After a failed allocation `failed` stays set and further calls do
** nothing, so a caller that adds many pieces checks it once, at the end. text.c */
typedef struct mgrid_text {
  char  *data;     /* NULL or 0-terminated */
  size_t len, cap; /* characters in data without the final 0; bytes that it has room for */
  bool   failed;   /* there was no memory: the text is not whole */
} mgrid_text;

void  mgrid_text_add(mgrid_text *t, const char *fmt, ...) MGRID_PRINTF(2, 3);
void  mgrid_text_put(mgrid_text *t, const char *s, size_t len);
void  mgrid_text_str(mgrid_text *t, const char *s);
void  mgrid_text_int(mgrid_text *t, int64_t n); /* as "%" PRId64, several times faster */
char *mgrid_digits(int64_t n, char *end);       /* write n so that it ends before `end`; returns where it begins */
void  mgrid_text_free(mgrid_text *t);
/* The text as C has it: "" where there is none. */
static inline const char *mgrid_text_chars(const mgrid_text *t) { return t->data ? t->data : ""; }
/* The end of a noun: "s", or "" for one. */
static inline const char *mgrid_s_of(int64_t n) { return n == 1 ? "" : "s"; }
/* An mgrid_sink into an mgrid_text, which says itself whether there was memory. */
int mgrid_text_sink(void *text, const char *s, size_t len);
/* Give what there is to a sink, and empty the text, whose memory is used again. */
mgrid_status mgrid_text_flush(mgrid_text *t, mgrid_sink sink, void *ud, mgrid_error *err);
/* Copy to (buf, len) as snprintf does, free t, return the whole length. Where there was no memory the text says so. */
size_t mgrid_text_finish(mgrid_text *t, char *buf, size_t len);

/* End the text in (buf, len) by "..." if its whole length did not fit. */
void mgrid_text_ellipsis(char *buf, size_t len, size_t whole);

/* Numbers, letters and order of text as in C in this thread, whatever the locale of the host, until mgrid_locale_back
** gets what mgrid_locale_plain gave. locale.c */
typedef struct mgrid_locale {
  void *was; /* the locale of the thread */
} mgrid_locale;

mgrid_locale mgrid_locale_plain(void);
void         mgrid_locale_back(mgrid_locale of);

char *mgrid_strdup(const char *s); /* NULL when out of memory */

/* Text as a terminal may see it: control characters, newlines too, and bytes that are not UTF-8 are written out, \x1b.
** _is_shown: it is so already; _shown writes to (out, room), whole characters as far as there is room, and returns how
** many bytes; _text_shown appends, and _text_shown_lines leaves newlines as they are. shown.c */
bool   mgrid_is_shown(const char *s, size_t len);
bool   mgrid_is_utf8(const char *s, size_t len); /* control characters are */
size_t mgrid_shown(char *out, size_t room, const char *s, size_t len);
void   mgrid_text_shown(mgrid_text *t, const char *s);
/* A number of 17 digits in the fewest that give it back: in buf, of `len` bytes; other texts as they are. */
const char *mgrid_shortest(const char *number, char *buf, size_t len);
/* In place, in a buffer of `room` bytes, at most those of a message: also one that is not ended. */
void mgrid_show(char *text, size_t room);
void mgrid_text_shown_lines(mgrid_text *t, const char *s);

/* Append what is in a regular file. A text that was not empty or an error leaves some behind. file.c */
mgrid_status mgrid_read_file(const char *path, mgrid_text *t, mgrid_error *err);
mgrid_status mgrid_read_file_as(const char *path, const char *name, mgrid_text *t,
                                mgrid_error *err); /* name: in messages */
/* The same of what is on standard input up to its end. For the command: a library leaves it alone. */
mgrid_status mgrid_read_stdin(mgrid_text *t, mgrid_error *err);

/* May a dim, grid or family have this name? */
bool mgrid_is_name(const char *s);
void mgrid_sort_names(const char **names, size_t n); /* by their bytes, not by the locale */
/* The candidate that is most like `word`, or NULL when none is alike. */
const char *mgrid_nearest(const char *word, const char *const *candidates, size_t n);
/* Write the tail of a message about an unknown name: "; nearest is 'tp' (tp, cp, dp)". */
void mgrid_suggest(char *buf, size_t len, const char *word, const char *const *candidates, size_t n);

/* Seconds of a clock that never goes back; only differences mean anything. clock.c */
double mgrid_now(void);
double mgrid_processor_now(void); /* seconds that this thread has had the processor; a call of the kernel */
/* Wait a little before looking again whether something has happened. `look` counts the looks so far: the
** first 200 pauses only let other processes run, those up to the 1000th take 50 us, later ones 1 ms. */
void mgrid_pause(int look);
/* Equal for all processes of a machine, different on different machines. machine.c */
uint64_t mgrid_machine_id(void);

/* Who started this process, as the environment says; `by` NULL: no launcher that is known, rank 0 of 1. A launcher
** that says no size leaves 1. What is no rank of its size is no launcher's. launcher.c */
typedef struct mgrid_launched {
  const char *by;
  int64_t     rank, size;
  bool        sized; /* it says the size */
  bool        pmix;  /* it speaks PMIx alone, not PMI */
} mgrid_launched;
mgrid_launched mgrid_launcher(void);
/* The variable of the i-th launcher that has a process's rank; NULL: there are no more. */
const char *mgrid_launcher_rank(size_t i);

/* What the system lets this process have, by ulimit and by its cgroup. Nothing here allocates. allowance.c */
typedef enum mgrid_scarce { MGRID_SCARCE_MEMORY, MGRID_SCARCE_THREADS, MGRID_SCARCE_FILES } mgrid_scarce;
typedef struct mgrid_allowance {
  mgrid_scarce of;
  const char  *whose, *name; /* "process", "ulimit -v" */
  int64_t      most, has;    /* bytes or a number; -1: nobody says what it has */
} mgrid_allowance;
enum { MGRID_ALLOWANCES = 6, MGRID_ALLOWED = 128 };
size_t mgrid_allowances(mgrid_allowance all[MGRID_ALLOWANCES]); /* those that are set; their number */
void   mgrid_allowance_words(const mgrid_allowance *a, char *buf, size_t room);
/* The tail of a message where there was no more of something: ": the process may have 512 MiB (ulimit -v) and has 498",
** or "" where nothing is set that refuses it. Returns buf. */
const char *mgrid_allowed(mgrid_scarce of, char buf[MGRID_ALLOWED]);
/* The same after a call that left this errno. */
const char *mgrid_allowed_by(int number, char buf[MGRID_ALLOWED]);
/* What of the kernel keeps processes from reading the memory of others of their user. ptrace.c */
typedef struct mgrid_guards {
  int  scope;    /* Yama's kernel.yama.ptrace_scope; 0: no such module, or it lets all */
  bool capable;  /* has CAP_SYS_PTRACE, whom Yama lets below 3 */
  bool filtered; /* calls go through a filter of seccomp */
} mgrid_guards;
enum { MGRID_REFUSAL = 256 };
mgrid_guards mgrid_guards_here(void);
/* The tail of a message where the kernel refused it with this errno: which of them did, and what allows it; or "".
** Returns buf. */
const char *mgrid_refused_by(int number, char buf[MGRID_REFUSAL]);
const char *mgrid_refused_of(const mgrid_guards *g, int number, char buf[MGRID_REFUSAL]);

/* How many processes of this one's cgroup the kernel has ended for want of memory; false: nobody counts. */
bool mgrid_cgroup_kills(int64_t *killed);

#endif
