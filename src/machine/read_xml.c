/* SPDX-License-Identifier: MIT
**
** read_xml.c - the XML of NCCL's topology (NCCL_TOPO_DUMP_FILE) and of hwloc (lstopo --of xml): of both the elements with
** their attributes are read, nothing else. A node becomes its parts, which hold GPUs or cores.
*/
#include "machine/tree.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 64, VALUE = 128 };

/* An element of the text: its name, and where its attributes are. */
typedef struct element {
  const char *name, *end; /* of the tag, behind its name and up to > */
  size_t      len;
  bool        opens, closes; /* <a>, </a>; <a/> is both */
  int         depth, line;
} element;

static int line_of(const char *text, const char *at) {
  int n = 1;
  for (; text < at; text++) n += *text == '\n';
  return n;
}

/* Find the next element; false: no more, or *broken. */
static bool next(const char **at, element *e, bool *broken) {
  for (;;) {
    const char *open = strchr(*at, '<');
    if (!open) return false;
    if (strncmp(open, "<!--", 4) == 0) {
      const char *end = strstr(open, "-->");
      *broken = !end;
      if (!end) return false;
      *at = end + 3;
      continue;
    }
    const char *p = open + 1;
    char        quote = 0;
    for (; *p && (quote || *p != '>'); p++)
      if (quote ? *p == quote : *p == '"' || *p == '\'') quote = quote ? 0 : *p;
    *broken = !*p;
    if (!*p) return false;
    *at = p + 1;
    if (open[1] == '?' || open[1] == '!') continue;
    e->closes = open[1] == '/' || p[-1] == '/';
    e->opens = open[1] != '/';
    e->name = open + 1 + (open[1] == '/');
    e->len = strcspn(e->name, " \t\r\n/>");
    e->end = p;
    return true;
  }
}

static bool is_element(const element *e, const char *name) {
  return e->len == strlen(name) && memcmp(e->name, name, e->len) == 0;
}

/* Copy the value of an attribute; false: there is none. */
static bool attribute(const element *e, const char *name, char value[VALUE]) {
  size_t len = strlen(name);
  for (const char *p = e->name + e->len; p < e->end;) {
    p += strspn(p, " \t\r\n");
    size_t      key = strcspn(p, "= \t\r\n/>"), n = 0;
    const char *from = p + key + 2, quote = p + key < e->end && p[key] == '=' ? p[key + 1] : 0;
    if (quote != '"' && quote != '\'') return false;
    while (from + n < e->end && from[n] != quote) n++;
    if (key == len && memcmp(p, name, len) == 0) {
      if (n >= VALUE) return false;
      memcpy(value, from, n);
      value[n] = '\0';
      return true;
    }
    p = from + n + 1;
  }
  return false;
}

static bool starts_with_element(const char *text, const char *name) {
  element e;
  bool    broken;
  text += strspn(text, " \t\r\n");
  return *text == '<' && next(&text, &e, &broken) && is_element(&e, name);
}

/* The parts that hold something: how many each holds, in order. */
typedef struct parts {
  int64_t *held;
  size_t   n;
} parts;

static bool add_part(parts *p) {
  int64_t *more = mgrid_grow(p->held, p->n, sizeof *more);
  if (!more) return false;
  p->held = more;
  p->held[p->n++] = 0;
  return true;
}

/* Make node:* PART:n gpu:g of parts that hold something. */
static mgrid_status make(mgrid_tree *t, const parts *p, const char *part, const char *held,
                         mgrid_machine_model **made) {
  int64_t open = 0, n = 0, each = 0;
  bool    same = true;
  for (size_t i = 0; i < p->n; i++) {
    if (!p->held[i]) continue;
    if (n++ == 0) each = p->held[i];
    same &= p->held[i] == each;
  }
  if (n == 0) return mgrid_tree_fault(t, 0, MGRID_REFUSED, "no %s is in it", held);
  if (!same) return mgrid_tree_fault(t, 0, MGRID_REFUSED, "its %ss hold different numbers of %ss", part, held);
  mgrid_link none = { 0, 0 };
  if (!(*made = mgrid_machine_alloc(t->err))) return t->err->status;
  mgrid_status s = mgrid_machine_add(*made, "node", 1, &open, none, t->err);
  if (!s) s = mgrid_machine_add(*made, part, 1, &n, none, t->err);
  return s ? s : mgrid_machine_add(*made, held, 1, &each, none, t->err);
}

/* Go through all elements; `see` gets each that opens. Refuse a text that does not close what it opens. */
typedef mgrid_status see_fn(void *ud, const element *e);
static mgrid_status  walk(mgrid_tree *t, const char *text, see_fn *see, void *ud) {
   element      e, open[DEPTH];
   int          depth = 0;
   bool         broken = false;
   mgrid_status s = MGRID_OK;
   const char  *at = text;
   int          line = 1;
   const char  *seen = text;
   while (!s && next(&at, &e, &broken)) {
     for (; seen < e.name; seen++) line += *seen == '\n';
    e.depth = depth, e.line = line;
     if (e.opens) s = see(ud, &e);
    if (e.opens && !e.closes) {
       if (depth == DEPTH)
        return mgrid_tree_fault(t, line_of(text, e.name), MGRID_LIMIT, "elements nest deeper than %d", DEPTH);
      open[depth++] = e;
    } else if (!e.opens) {
       if (depth == 0 || open[depth - 1].len != e.len || memcmp(open[depth - 1].name, e.name, e.len) != 0)
        return mgrid_tree_fault(t, line_of(text, e.name), MGRID_BAD_VALUE, "</%.*s> closes nothing",
                                 (int)(e.len < 40 ? e.len : 40), e.name);
      depth--;
    }
  }
   if (!s && (broken || depth))
    s = mgrid_tree_fault(
         t, line_of(text, text + strlen(text)), MGRID_BAD_VALUE, "it ends within <%.*s>: the text may be cut short",
        depth ? (int)(open[depth - 1].len < 40 ? open[depth - 1].len : 40) : 1, depth ? open[depth - 1].name : "");
  return s;
}

typedef struct seen {
  mgrid_tree *t;
  parts       gpus, cuda, cores; /* a GPU may be there by the names of several libraries: nvml0 and cuda0 */
  int         package;           /* the depth of the one that is open; -1: none */
  int         outside;           /* the line of a GPU in no package; 0: there is none */
  long        last, last_cuda;   /* GPU, by the number of the library */
  char        host[VALUE];
} seen;

/* Ranks go to GPUs in the order of their numbers, which must be the order of the text, or they would be in other parts. */
static mgrid_status check_order(seen *x, const element *e, const char *number, long *last) {
  long n = strtol(number, NULL, 10);
  if (n < *last)
    return mgrid_tree_fault(x->t, e->line, MGRID_REFUSED,
                            "GPU %ld is behind GPU %ld: GPUs of one part do not follow each other", n, *last);
  *last = n;
  return MGRID_OK;
}

/* --------------------------------------------------------------------- NCCL */

static bool is_nccl(const char *text, size_t length) {
  (void)length;
  return starts_with_element(text, "system");
}

static mgrid_status see_nccl(void *ud, const element *e) {
  seen *x = ud;
  char  value[VALUE];
  if (is_element(e, "cpu") && !add_part(&x->gpus)) return mgrid_oom(x->t->err);
  if (is_element(e, "cpu") && attribute(e, "host_hash", value)) {
    if (*x->host && strcmp(x->host, value) != 0)
      return mgrid_tree_fault(x->t, e->line, MGRID_REFUSED,
                              "CPUs of several hosts, %.40s and %.40s: a topology of one node is read", x->host, value);
    snprintf(x->host, sizeof x->host, "%s", value);
  }
  if (!is_element(e, "gpu") || !x->gpus.n) return MGRID_OK;
  x->gpus.held[x->gpus.n - 1]++;
  return attribute(e, "dev", value) ? check_order(x, e, value, &x->last) : MGRID_OK;
}

static mgrid_status read_nccl(mgrid_tree *t, const char *text, size_t length, const char *choice,
                              mgrid_machine_model **made) {
  seen         x = { .t = t };
  mgrid_status s = walk(t, text, see_nccl, &x);
  (void)choice, (void)length;
  if (!s) s = make(t, &x.gpus, "cpu", "gpu", made);
  free(x.gpus.held);
  return s;
}

extern const mgrid_machine_reader mgrid_reads_nccl;
const mgrid_machine_reader mgrid_reads_nccl = { "nccl", "an NCCL topology (NCCL_TOPO_DUMP_FILE), of one node", is_nccl,
                                                read_nccl };

/* -------------------------------------------------------------------- hwloc */

static bool is_hwloc(const char *text, size_t length) {
  (void)length;
  return starts_with_element(text, "topology");
}

static bool is_kind(const char *name, size_t len, const char *kind) {
  return strlen(kind) == len && memcmp(name, kind, len) == 0;
}

/* A device that may be a GPU: nvml0, rsmi0; or cuda0, and ze0 of Level Zero, whose tiles are ze0.0. One that is in no
** package is of the last one, if there is only one. */
static mgrid_status see_device(seen *x, const element *e, const char *name) {
  size_t kind = strcspn(name, "0123456789");
  bool   managed = is_kind(name, kind, "nvml") || is_kind(name, kind, "rsmi");
  if (!name[kind] || name[kind + strspn(name + kind, "0123456789")]
      || (!managed && !is_kind(name, kind, "cuda") && !is_kind(name, kind, "ze")))
    return MGRID_OK;
  if (x->package < 0 && !x->outside) x->outside = e->line;
  if (!x->gpus.n) return MGRID_OK;
  parts *p = managed ? &x->gpus : &x->cuda;
  p->held[p->n - 1]++;
  return check_order(x, e, name + kind, managed ? &x->last : &x->last_cuda);
}

static mgrid_status see_hwloc(void *ud, const element *e) {
  seen *x = ud;
  char  type[VALUE], value[VALUE];
  if (e->depth <= x->package) x->package = -1;
  if (!is_element(e, "object") || !attribute(e, "type", type)) return MGRID_OK;
  if (strcmp(type, "Package") == 0 || strcmp(type, "Socket") == 0) {
    x->package = e->depth;
    if (!add_part(&x->gpus) || !add_part(&x->cuda) || !add_part(&x->cores)) return mgrid_oom(x->t->err);
  } else if (strcmp(type, "Core") == 0 && x->cores.n) {
    x->cores.held[x->cores.n - 1]++;
  } else if (strcmp(type, "OSDev") == 0 && attribute(e, "name", value)) {
    return see_device(x, e, value);
  }
  return MGRID_OK;
}

static int64_t sum(const parts *p) {
  int64_t n = 0;
  for (size_t i = 0; i < p->n; i++) n += p->held[i];
  return n;
}

static mgrid_status read_hwloc(mgrid_tree *t, const char *text, size_t length, const char *choice,
                               mgrid_machine_model **made) {
  seen         x = { .t = t, .package = -1 };
  mgrid_status s = walk(t, text, see_hwloc, &x);
  (void)choice, (void)length;
  if (!s && x.outside && x.gpus.n != 1)
    s = mgrid_tree_fault(t, x.outside, MGRID_REFUSED, "a GPU is in none of the %zu packages: the nearest is not known",
                         x.gpus.n);
  const parts *held = sum(&x.gpus) ? &x.gpus : sum(&x.cuda) ? &x.cuda : &x.cores;
  if (!s) s = make(t, held, "package", held == &x.cores ? "core" : "gpu", made);
  free(x.gpus.held);
  free(x.cuda.held);
  free(x.cores.held);
  return s;
}

extern const mgrid_machine_reader mgrid_reads_hwloc;
const mgrid_machine_reader        mgrid_reads_hwloc = { "hwloc", "hwloc (lstopo --of xml), of one node", is_hwloc,
                                                        read_hwloc };
