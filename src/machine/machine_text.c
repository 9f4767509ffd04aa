/* SPDX-License-Identifier: MIT
**
** machine_text.c - make a machine from the text of a user: words, or a preset or the file of
** another tool, which more words may follow. Words are read into a list, in which a later word
** replaces an earlier word about the same level. Then the machine is made from the list. A preset
** is only a text that is read before the words after it.
*/
#include "machine/model.h"
#include "machine/readers.h"
#include "moongrid_machine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ===================================================================== units */

/* Units of bandwidths and latencies in text: 400GB/s, 400Gb/s, 3us. */

typedef struct unit {
  const char *name;
  double of; /* the unit in bytes per second or in seconds */
} unit;

/* bandwidth_text and latency_text write only the first units of these tables. */
static const unit of_bandwidth[] = {
  { "GB/s", 1e9 },       { "TB/s", 1e12 },       { "MB/s", 1e6 },
  { "kB/s", 1e3 },       { "B/s", 1 },           { "GiB/s", 1073741824 },
  { "MiB/s", 1048576 },  { "KiB/s", 1024 },      { "TiB/s", 1099511627776 },
  { "Gb/s", 1e9 / 8 },   { "Tb/s", 1e12 / 8 },   { "Mb/s", 1e6 / 8 },
  { "Gbit/s", 1e9 / 8 }, { "Tbit/s", 1e12 / 8 }, { "Mbit/s", 1e6 / 8 },
  { "Gbps", 1e9 / 8 },   { "Tbps", 1e12 / 8 },   { "Mbps", 1e6 / 8 },
  { NULL, 0 },
};
static const unit of_latency[] = {
  { "us", 1e-6 }, { "ns", 1e-9 }, { "ms", 1e-3 }, { "s", 1 }, { NULL, 0 }
};

/* Return the unit of this name, which has `len` characters; NULL: none. */
static const unit *unit_at(const unit *units, const char *text, size_t len) {
  for (; units->name; units++)
    if (strlen(units->name) == len && memcmp(units->name, text, len) == 0) return units;
  return NULL;
}

/* Read "400GB/s" or "3us" at *at into the link. Otherwise set *why to the expected text, and return
** false. */
static bool take_link(const char **at, mgrid_link *link, const char **why) {
  char *end;
  double n = **at >= '0' && **at <= '9' ? mgrid_read_double(*at, &end) : -1;

  *why = "a bandwidth or a latency, as 400GB/s or 3us";
  if (!(n >= 0)) return false;
  end += strspn(end, " ");
  size_t len = strcspn(end, " ,]\t\r\n");
  const unit *of = unit_at(of_bandwidth, end, len),
             *late = of ? NULL : unit_at(of_latency, end, len);
  *why = "a unit after the number, as 400GB/s, 400Gb/s, 3us or 900ns,";
  if (!of && !late) {
    *at = end;
    return false;
  }
  *why = "a bandwidth above 0 and below 1e18 B/s, or a latency of up to 1000 s";
  if (of ? !(n > 0 && n * of->of < 1e18) : !(n * late->of <= 1000)) return false;
  if (of)
    link->bandwidth = n * of->of;
  else
    link->latency = n * late->of;
  *at = end + len;
  return true;
}

/* Write the value as a number of units, with the fewest digits that are read back as the same
** value. Return false if 17 digits without an exponent do not suffice. */
static bool put_in(double value, const unit *of, mgrid_text *t) {
  char digits[40];
  for (int n = 1; n <= 17; n++) {
    mgrid_format(digits, sizeof digits, "%.*g", n, value / of->of);
    if (strchr(digits, 'e') || mgrid_read_double(digits, NULL) * of->of != value) continue;
    mgrid_text_add(t, "%s%s", digits, of->name);
    return true;
  }
  return false;
}

/* Write the value in the unit `which`. If no number of these units gives exactly the value, write
** it with 17 digits, which are exact, in the unit `one`: bytes per second, or seconds. So machines
** that differ have different texts. */
static void machine_text_put(double value, const unit *units, int which, int one, mgrid_text *t) {
  if (!put_in(value, &units[which], t)) mgrid_text_add(t, "%.17g%s", value, units[one].name);
}

static void bandwidth_text(double bandwidth, mgrid_text *t) {
  enum { GB, TB, MB, ONE = 4 };
  machine_text_put(bandwidth, of_bandwidth,
                   bandwidth >= 1e14  ? TB
                   : bandwidth >= 1e8 ? GB
                   : bandwidth >= 1e5 ? MB
                                      : ONE,
                   ONE, t);
}

static void latency_text(double latency, mgrid_text *t) {
  enum { US, NS, ONE = 3 };
  machine_text_put(latency, of_latency, latency < 5e-7 ? NS : latency < 0.1 ? US : ONE, ONE, t);
}

void mgrid_link_text(mgrid_link link, mgrid_text *t) {
  if (link.bandwidth <= 0 && link.latency <= 0) return;
  mgrid_text_str(t, "[");
  if (link.bandwidth > 0) bandwidth_text(link.bandwidth, t);
  if (link.latency > 0 && link.bandwidth > 0) mgrid_text_str(t, ",");
  if (link.latency > 0) latency_text(link.latency, t);
  mgrid_text_str(t, "]");
}

/* =================================================================== presets */

/* Machines from public data sheets. The link of a level has the bandwidth of one of its domains, in
** one direction: of a gpu its share of NVLink or xGMI, of a node the sum of its network ports. */

static const struct preset {
  const char *name, *text, *source;
} presets[] = {
  /* sorted by name; the last name is NULL. step/costs.c has the flops and memory of each preset */
  { "dgx-a100", "node:*[200GB/s] gpu:8[300GB/s] rail = gpu[25GB/s]",
    "NVIDIA DGX A100 data sheet: 8 A100 with NVLink 3 at 600 GB/s (both directions), 8 ConnectX-6 "
    "ports of 200 Gb/s" },
  { "dgx-b200", "node:*[400GB/s] gpu:8[900GB/s] rail = gpu[50GB/s]",
    "NVIDIA DGX B200 data sheet: 8 B200 with NVLink 5 at 1.8 TB/s (both directions), 8 ConnectX-7 "
    "ports of 400 Gb/s" },
  { "dgx-h100", "node:*[400GB/s] gpu:8[450GB/s] rail = gpu[50GB/s]",
    "NVIDIA DGX H100 data sheet: 8 H100 with NVLink 4 at 900 GB/s (both directions), 8 ConnectX-7 "
    "ports of 400 Gb/s" },
  { "dgx-h200", "node:*[400GB/s] gpu:8[450GB/s] rail = gpu[50GB/s]",
    "NVIDIA DGX H200 data sheet: 8 H200 with NVLink 4 at 900 GB/s (both directions), 8 ConnectX-7 "
    "ports of 400 Gb/s" },
  { "gb200-nvl72", "rack:*[3600GB/s] node:18[3600GB/s] gpu:4[900GB/s] rail = gpu[50GB/s]",
    "NVIDIA GB200 NVL72 data sheet: a rack is one NVLink domain of 18 compute trays with 4 B200 "
    "each, NVLink 5 at 1.8 TB/s a GPU (both directions); network: 4 ConnectX-7 ports of 400 Gb/s a "
    "tray" },
  { "mi300x", "node:*[400GB/s] gpu:8[448GB/s] rail = gpu[50GB/s]",
    "AMD Instinct MI300X platform data sheet: 8 MI300X, each with 7 links of Infinity Fabric at "
    "128 GB/s (both directions); network: 8 ports of 400 Gb/s, as the platform's reference designs "
    "have" },
  { NULL, NULL, NULL },
};

bool mgrid_machine_preset(size_t i, const char **name, const char **text, const char **source) {
  size_t n = sizeof presets / sizeof *presets - 1;
  bool there = i < n;
  if (name) *name = there ? presets[i].name : NULL;
  if (text) *text = there ? presets[i].text : NULL;
  if (source) *source = there ? presets[i].source : NULL;
  return there;
}

/* ===================================================================== words */

enum { WORDS_MAX = 2 * MGRID_LEVELS_MAX };

typedef struct word {
  char name[MGRID_NAME_MAX + 1];
  /* 0: the word gives only the link of a level, or makes domains that cross levels */
  size_t ncounts;
  int64_t *counts;
  char of[MGRID_NAME_MAX + 1], in[MGRID_NAME_MAX + 1]; /* of domains that cross levels; else "" */
  int64_t share;
  mgrid_link link;
} word;

typedef struct word_list {
  size_t n;
  int64_t ncounts; /* numbers of domains read so far, over all levels */
  word at[WORDS_MAX];
  int64_t nranks;
  int32_t *ranks;
} word_list;

static void free_words(word_list *w) {
  for (size_t i = 0; i < w->n; i++) free(w->at[i].counts);
  free(w->ranks);
}

/* ------------------------------------------------------------------- reading */

/* The state of reading a text. After the first error the functions below read nothing more. So a
** function that reads many pieces checks `failed` only once, at its end. */
typedef struct scan {
  const char *text, *at; /* at: where the next piece begins */
  mgrid_error *err;      /* gets the first error */
  mgrid_budget *budget;  /* pays for the memory of the numbers read */
  bool failed;
} scan;

/* Fail with MGRID_BAD_VALUE: "character 12: `expected` expected, not 'x y'". */
static void machine_text_fault(scan *s, const char *expected) {
  if (s->failed) return;
  s->failed = true;
  if (!*s->at)
    mgrid_fail(s->err, MGRID_BAD_VALUE, "it ends where %s is expected", expected);
  else
    mgrid_fail(s->err, MGRID_BAD_VALUE, "character %zu: %s expected, not '%.20s'",
               (size_t)(s->at - s->text) + 1, expected, s->at);
}

static void machine_text_skip_blanks(scan *s) {
  if (!s->failed) s->at += strspn(s->at, " \t\r\n");
}

static bool at_end(scan *s) {
  machine_text_skip_blanks(s);
  return s->failed || !*s->at;
}

static bool is_next(const scan *s, const char *text) {
  return !s->failed && strncmp(s->at, text, strlen(text)) == 0;
}

/* If the next characters are `text`, skip them and return true. */
static bool machine_text_take(scan *s, const char *text) {
  if (!is_next(s, text)) return false;
  s->at += strlen(text);
  return true;
}

/* As machine_text_take, but skip blanks before `text`. */
static bool take_word(scan *s, const char *text) {
  const char *from = s->at;
  machine_text_skip_blanks(s);
  if (machine_text_take(s, text)) return true;
  s->at = from;
  return false;
}

/* Read a number, 0 or more. Return 0 after an error. */
static int64_t machine_text_read_number(scan *s) {
  int64_t n = 0;
  const char *from = s->at;
  if (s->failed) return 0;
  while (mgrid_is_digit(*s->at)) {
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *s->at - '0', &n)) {
      s->at = from;
      machine_text_fault(s, "a number below 2^63");
      return 0;
    }
    s->at++;
  }
  if (s->at == from)
    machine_text_fault(s, from > s->text && from[-1] == ',' ? "a number after ','" : "a number");
  return n;
}

/* Read the name of a level; "" after an error. */
static void machine_text_read_name(scan *s, char name[MGRID_NAME_MAX + 1]) {
  size_t n = 0;
  name[0] = '\0';
  if (s->failed) return;
  while (n <= MGRID_NAME_MAX
         && (mgrid_is_letter(s->at[n]) || s->at[n] == '_' || (n > 0 && mgrid_is_digit(s->at[n]))))
    n++;
  if (n == 0 || n > MGRID_NAME_MAX) {
    machine_text_fault(s, "a name of at most 31 letters, digits and _, as in node:4[400GB/s],");
    return;
  }
  memcpy(name, s->at, n);
  name[n] = '\0';
  s->at += n;
}

/* Read "[400GB/s,3us]", or nothing. */
static void read_link(scan *s, mgrid_link *link) {
  const char *why = NULL;
  if (!take_word(s, "[")) return;
  *link = (mgrid_link){ 0, 0 };
  do {
    machine_text_skip_blanks(s);
    if (!s->failed && !take_link(&s->at, link, &why)) machine_text_fault(s, why);
  } while (take_word(s, ","));
  if (!take_word(s, "]")) machine_text_fault(s, "',' or ']'");
}

/* Charge the budget for the memory of these numbers. */
static void machine_text_pay_for(scan *s, int64_t numbers) {
  if (!s->failed && !mgrid_spend(s->budget, 64 * numbers)) s->failed = true;
}

/* Read the numbers of a level: "4", "*", "3x18,17". "*" is stored as 0. */
static void read_counts(scan *s, word_list *all, word *w) {
  machine_text_skip_blanks(s);
  do {
    const char *from = s->at;
    int64_t times = 1, n = machine_text_take(s, "*") ? 0 : machine_text_read_number(s);
    if (n && machine_text_take(s, "x")) times = n, n = machine_text_read_number(s);
    if (!s->failed && ((n == 0 && *from != '*') || times < 1 || n > MGRID_WORLD_MAX)) {
      s->at = from;
      machine_text_fault(s, "a number from 1 to 2147483647");
    }
    if (!s->failed && times > MGRID_COUNTS_MAX - all->ncounts) {
      s->at = from;
      machine_text_fault(s, "at most 4194304 numbers in all levels");
    }
    machine_text_pay_for(s, times);
    all->ncounts += s->failed ? 0 : times;
    for (int64_t i = 0; i < times && !s->failed; i++) {
      if (!MGRID_GROW(w->counts, w->ncounts, 1)) mgrid_oom(s->err), s->failed = true;
      if (!s->failed) w->counts[w->ncounts++] = n;
    }
  } while (take_word(s, ","));
}

/* Read the places of ranks: "8..15,0..7". */
static void machine_text_read_ranks(scan *s, word_list *w) {
  free(w->ranks);
  w->ranks = NULL;
  w->nranks = 0;
  do {
    machine_text_skip_blanks(s);
    const char *from = s->at;
    int64_t first = machine_text_read_number(s),
            last = machine_text_take(s, "..") ? machine_text_read_number(s) : first;
    if (!s->failed
        && (last < first || last >= MGRID_WORLD_MAX
            || last - first >= MGRID_PLACED_MAX - w->nranks)) {
      s->at = from;
      machine_text_fault(s, "places from low to high, at most 16777216,");
    }
    machine_text_pay_for(s, last - first + 1);
    for (int64_t place = first; place <= last && !s->failed; place++) {
      if (!MGRID_GROW(w->ranks, (size_t)w->nranks, 1)) mgrid_oom(s->err), s->failed = true;
      if (!s->failed) w->ranks[w->nranks++] = (int32_t)place;
    }
  } while (take_word(s, ","));
}

/* Return the word about a level: the word that is in the list already, or a new word. */
static word *word_of(word_list *w, const char *name, scan *s, const char *from) {
  for (size_t i = 0; i < w->n; i++)
    if (strcmp(w->at[i].name, name) == 0) return &w->at[i];
  if (w->n == WORDS_MAX) {
    s->at = from;
    machine_text_fault(s, "at most 32 levels");
    return NULL;
  }
  word *one = &w->at[w->n++];
  snprintf(one->name, sizeof one->name, "%s", name);
  return one;
}

/* Read the text after "rail =", as "gpu / 2 in rack". */
static void read_crossing(scan *s, word *one) {
  char in[MGRID_NAME_MAX + 1] = "";
  machine_text_skip_blanks(s);
  machine_text_read_name(s, one->of);
  one->share = 1;
  *one->in = '\0';
  if (take_word(s, "/")) {
    machine_text_skip_blanks(s);
    one->share = machine_text_read_number(s);
  }
  const char *from = s->at;
  if (take_word(s, "in ")) {
    machine_text_skip_blanks(s);
    machine_text_read_name(s, in);
    memcpy(one->in, in, sizeof in);
  } else {
    s->at = from;
  }
}

/* Read one word. fresh[i]: no word of this text has defined level i of the list yet. So a text may
** redefine a level of a preset, but not a level that it has defined itself. */
static void machine_text_read_word(scan *s, word_list *w, bool fresh[WORDS_MAX]) {
  char name[MGRID_NAME_MAX + 1];
  const char *from = s->at;

  machine_text_read_name(s, name);
  if (s->failed) return;
  bool level = take_word(s, ":"), crosses = !level && take_word(s, "=");
  if (crosses && strcmp(name, "ranks") == 0) {
    machine_text_read_ranks(s, w);
    return;
  }
  machine_text_skip_blanks(s);
  if (!level && !crosses && !is_next(s, "["))
    machine_text_fault(s, "':' and a number, as in node:4,");
  word *one = s->failed ? NULL : word_of(w, name, s, from);
  if (!one) return;
  if (!fresh[one - w->at] && (level || crosses)) {
    s->at = from;
    machine_text_fault(s, "a level that is not there yet");
    return;
  }
  fresh[one - w->at] = false;
  if (level) {
    free(one->counts);
    one->counts = NULL;
    one->ncounts = 0;
    read_counts(s, w, one);
  } else if (crosses) {
    read_crossing(s, one);
  }
  read_link(s, &one->link);
}

static void read_words(scan *s, word_list *w) {
  bool fresh[WORDS_MAX];
  memset(fresh, true, sizeof fresh);
  while (!at_end(s)) machine_text_read_word(s, w, fresh);
}

/* ---------------------------------------------------------------- the machine */

/* Return whether the word sets the number of domains of a first level that has as many as the ranks
** need: after a file that describes one node, "node:8" makes 8 such nodes. */
static bool tells_number(const mgrid_machine_model *m, const word *one) {
  return m->ntiers && m->tier[0].counts[0] == 0 && one->ncounts == 1
         && strcmp(m->tier[0].name, one->name) == 0;
}

/* Add the words to a machine, which may have levels already. */
static mgrid_status machine_text_build(mgrid_machine_model *m, word_list *w, mgrid_error *err) {
  mgrid_status s = MGRID_OK;

  for (size_t i = 0; i < w->n && !s; i++) {
    const word *one = &w->at[i];
    int64_t there = one->ncounts || *one->of ? -1 : mgrid_machine_require(m, one->name, err);
    if (tells_number(m, one))
      s = mgrid_machine_number(m, one->counts[0], one->link, err);
    else if (one->ncounts)
      s = mgrid_machine_add(m, one->name, one->ncounts, one->counts, one->link, err);
    else if (!*one->of && there < 0)
      s = MGRID_UNKNOWN_NAME;
    else if (!*one->of && (size_t)there < m->ntiers)
      m->tier[there].link = one->link;
    else if (!*one->of)
      m->crossing[(size_t)there - m->ntiers].link = one->link;
  }
  if (!s) s = mgrid_machine_finish(m, err);
  for (size_t i = 0; i < w->n && !s; i++) {
    const word *one = &w->at[i];
    if (*one->of)
      s = mgrid_machine_add_crossing(m, one->name, one->of, one->share, *one->in ? one->in : NULL,
                                     one->link, err);
  }
  if (s || !w->ranks) return s;
  int32_t *ranks = w->ranks;
  w->ranks = NULL;
  return mgrid_machine_set_ranks(m, w->nranks, ranks, err);
}

static mgrid_machine_model *machine_text_made(word_list *w, mgrid_error *err) {
  mgrid_machine_model *m = mgrid_machine_alloc(err);
  if (m && !machine_text_build(m, w, err)) return m;
  mgrid_machine_free(m);
  return NULL;
}

mgrid_status mgrid_machine_more(mgrid_machine_model *m, const char *text, mgrid_error *err) {
  word_list *w = calloc(1, sizeof *w);
  scan s = { .text = text, .at = text, .err = err };
  mgrid_status status = MGRID_BAD_VALUE;
  if (!w) return mgrid_oom(err);
  read_words(&s, w);
  if (!s.failed) status = machine_text_build(m, w, err);
  free_words(w);
  free(w);
  return s.failed && err && err->status ? err->status : status;
}

/* Return the preset whose name is the first word of a text. *rest: the text after it. */
static const struct preset *preset_at(const char *text, const char **rest) {
  size_t len = strcspn(text, " \t\r\n");
  *rest = text + len;
  for (const struct preset *p = presets; p->name; p++)
    if (strlen(p->name) == len && memcmp(p->name, text, len) == 0) return p;
  *rest = text;
  return NULL;
}

static mgrid_status machine_text_refuse_name(const char *text, mgrid_error *err) {
  enum { SHOWN = 40, KNOWN = 64 };
  const char *known[KNOWN];
  char first[SHOWN + 1], tail[512];
  size_t n = 0;
  snprintf(first, sizeof first, "%.*s", (int)strcspn(text, " \t\r\n"), text);
  for (const struct preset *p = presets; p->name && n < KNOWN; p++) known[n++] = p->name;
  mgrid_suggest(tail, sizeof tail, first, known, n);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME,
                    "unknown machine '%s': it is neither a file nor a preset%s; levels are written "
                    "as 'node:4 gpu:8'",
                    first, tail);
}

static bool machine_text_is_number(const char *text) {
  return *text && text[strspn(text, "0123456789")] == '\0';
}

mgrid_machine_model *mgrid_machine_words(const char *text, const char *what, mgrid_budget *budget,
                                         mgrid_error *err) {
  const char *rest;
  char plain[64];
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_machine_model *m = NULL;

  text += strspn(text, " \t\r\n");
  const struct preset *preset = preset_at(text, &rest);
  if (machine_text_is_number(text) && strlen(text) < 12) {
    snprintf(plain, sizeof plain, "node:* gpu:%s", text);
    rest = text = plain;
  }
  if (!preset && *text && (!strpbrk(text, ":=") || text[strcspn(text, "-:= ")] == '-')) {
    machine_text_refuse_name(text, err);
    return NULL;
  }
  word_list *w = calloc(1, sizeof *w);
  if (!w) return mgrid_null_oom(err);
  const char *first = preset ? preset->text : "";
  scan s = { .text = first, .at = first, .err = &why };
  read_words(&s, w);
  s = (scan){ .text = text, .at = rest, .err = &why, .budget = budget, .failed = s.failed };
  read_words(&s, w);
  if (!s.failed) m = machine_text_made(w, &why);
  if (m && preset && !(m->source = mgrid_strdup(preset->name))) {
    mgrid_machine_free(m);
    m = mgrid_null_oom(&why);
  }
  if (why.status && why.status != MGRID_NO_MEMORY)
    mgrid_error_reword(&why, "%s '%.60s%s': %s", what, text, strlen(text) > 60 ? "..." : "",
                       why.message);
  mgrid_error_pass(err, &why);
  free_words(w);
  free(w);
  return m;
}

mgrid_machine_model *mgrid_machine_parse(const char *text, mgrid_error *err) {
  if (mgrid_lacks(text, "the text of the machine", err)) return NULL;
  if (strlen(text) > MGRID_MACHINE_TEXT)
    return mgrid_null(err, MGRID_LIMIT,
                      "the text of a machine has at most %d bytes; a file may have more",
                      MGRID_MACHINE_TEXT);
  return mgrid_machine_words(text, "machine", NULL, err);
}

/* ----------------------------------------------------------- canonical text */

/* Append a list of numbers; equal neighbours are written as "3x18". */
static void counts_text(const mgrid_tier *tier, mgrid_text *t) {
  for (int64_t i = 0, run; i < tier->ncounts; i += run) {
    for (run = 1; i + run < tier->ncounts && tier->counts[i + run] == tier->counts[i]; run++)
      continue;
    if (i) mgrid_text_str(t, ",");
    if (run > 1) mgrid_text_int(t, run), mgrid_text_str(t, "x");
    if (tier->counts[i])
      mgrid_text_int(t, tier->counts[i]);
    else
      mgrid_text_str(t, "*");
  }
}

void mgrid_machine_text(const mgrid_machine_model *m, mgrid_text *t) {
  for (size_t i = 0; i < m->ntiers; i++) {
    mgrid_text_add(t, "%s%s:", i ? " " : "", m->tier[i].name);
    counts_text(&m->tier[i], t);
    mgrid_link_text(m->tier[i].link, t);
  }
  for (size_t i = 0; i < m->ncrossings; i++) {
    const mgrid_crossing *x = &m->crossing[i];
    mgrid_text_add(t, " %s = %s", x->name, m->tier[x->of].name);
    if (x->share > 1) mgrid_text_add(t, " / %" PRId64, x->share);
    if (x->in >= 0) mgrid_text_add(t, " in %s", m->tier[x->in].name);
    mgrid_link_text(x->link, t);
  }
  if (m->at) mgrid_text_str(t, " ranks = ");
  for (int64_t r = 0, last; m->at && r < m->nranks; r = last + 1) {
    for (last = r; last + 1 < m->nranks && m->at[last + 1] == m->at[last] + 1; last++) continue;
    if (r) mgrid_text_str(t, ",");
    mgrid_text_int(t, m->at[r]);
    if (last > r) mgrid_text_str(t, ".."), mgrid_text_int(t, m->at[last]);
  }
}

size_t mgrid_machine_describe(const mgrid_machine_model *m, char *buf, size_t len) {
  mgrid_text t = { 0 };
  if (m) mgrid_machine_text(m, &t);
  return mgrid_text_finish(&t, buf, len);
}

/* ====================================================== files of other tools */

/* As mgrid_machine_read, with the reader of mgrid_machine_open_by. */
static mgrid_machine_model *read_by(const mgrid_recipe_entry *entry, const char *text,
                                    size_t length, const char *name, const char *words,
                                    mgrid_error *err) {
  if (mgrid_lacks_list(length, text, "bytes of text", err)) return NULL;
  mgrid_error mine = MGRID_ERROR_INIT;
  mgrid_machine_file f = { text, length,          name ? name : "machine", words ? words : "",
                           NULL, MGRID_ERROR_INIT };
  mgrid_status s = mgrid_serve_by(entry, "machine", &f, &mine);
  if (s == MGRID_MISSING)
    mgrid_error_reword(
        &mine, "%s: without libmoongrid_lua only machines as words, 'node:4 gpu:8', are read: %s",
        f.name, mine.message);
  if (!s && !f.made->source && !(f.made->source = mgrid_strdup(f.name))) s = mgrid_oom(&mine);
  if (!s) return f.made;
  mgrid_machine_free(f.made);
  mgrid_error_pass(err, f.why.status ? &f.why : &mine);
  return NULL;
}

mgrid_machine_model *mgrid_machine_read(const char *text, size_t length, const char *name,
                                        const char *words, mgrid_error *err) {
  return read_by(NULL, text, length, name, words, err);
}

/* ============================================================ a command line */

/* Text, a preset, or a file with more words. */

/* bytes; a file with a line for each of a million nodes is much smaller */
enum { FILE_MAX = 1 << 30 };

/* Return the length of the file name at the start of a source: the whole source if there is such a
** file, or the text up to the first blank; 0 if neither is a file. */
static size_t machine_text_name_of(const char *source, char *name, size_t room) {
  struct stat at;
  size_t whole = strlen(source), first = strcspn(source, " \t\r\n");
  for (size_t n = whole;; n = first) {
    if (n < room) {
      memcpy(name, source, n);
      name[n] = '\0';
      if (n > 0 && stat(name, &at) == 0 && !S_ISDIR(at.st_mode)) return n;
    }
    if (n == first) return 0;
  }
}

static mgrid_machine_model *from_file(const mgrid_recipe_entry *entry, const char *name,
                                      const char *words, mgrid_error *err) {
  mgrid_text t = { 0 };
  mgrid_machine_model *m = NULL;
  if (!mgrid_read_file_up_to(name, FILE_MAX, &t, err))
    m = read_by(entry, mgrid_text_chars(&t), t.len, name, words, err);
  mgrid_text_free(&t);
  return m;
}

/* Return the machine of the Slurm job in which this process runs. */
static mgrid_machine_model *from_environment(const mgrid_recipe_entry *entry, const char *words,
                                             mgrid_error *err) {
  static const char *const names[] = { "SLURM_JOB_NODELIST", "SLURM_NODELIST",
                                       "SLURM_TASKS_PER_NODE", "SLURM_TOPOLOGY_ADDR",
                                       "SLURM_TOPOLOGY_ADDR_PATTERN" };
  mgrid_text t = { 0 };
  mgrid_machine_model *m = NULL;
  const char *list = getenv(names[0]) ? getenv(names[0]) : getenv(names[1]);
  /* the topology address is that of this node alone, so it is used only if the job has one node */
  bool one = list && !strpbrk(list, ",[");
  if (!list)
    return mgrid_null(err, MGRID_MISSING,
                      "slurm: this process is in no job of Slurm: SLURM_JOB_NODELIST is not set");
  for (size_t i = 0; i < (one ? 5 : 3); i++)
    if (getenv(names[i])) mgrid_text_add(&t, "%s=%s\n", names[i], getenv(names[i]));
  if (t.failed)
    mgrid_oom(err);
  else
    m = read_by(entry, mgrid_text_chars(&t), t.len, "slurm", words, err);
  mgrid_text_free(&t);
  return m;
}

/* Return whether the first word looks like the name of a file. There is no such file, and the error
** of opening it explains this best. */
static bool looks_like_file(const char *source, char *name, size_t room) {
  size_t n = strcspn(source, " \t\r\n");
  if (n == 0 || n >= room) return false;
  memcpy(name, source, n);
  name[n] = '\0';
  return strpbrk(name, "./") && !strpbrk(name, ":=[");
}

mgrid_machine_model *mgrid_machine_open_by(const mgrid_recipe_entry *entry, const char *source,
                                           mgrid_error *err) {
  char name[4096];
  if (mgrid_lacks(source, "the source of the machine", err)) return NULL;
  size_t n = machine_text_name_of(source, name, sizeof name);
  if (n) return from_file(entry, name, source + n, err);
  if (strncmp(source, "slurm", 5) == 0 && (source[5] == '\0' || source[5] == ' '))
    return from_environment(entry, source + 5, err);
  return looks_like_file(source, name, sizeof name)
             ? from_file(entry, name, "", err)
             : mgrid_machine_words(source, "machine", NULL, err);
}

mgrid_machine_model *mgrid_machine_open(const char *source, mgrid_error *err) {
  return mgrid_machine_open_by(NULL, source, err);
}
