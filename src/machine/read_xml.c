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
  for (const char *p = e->name + e->len; p + len + 2 < e->end; p++) {
    if (!strchr(" \t\r\n", *p) || memcmp(p + 1, name, len) != 0 || p[1 + len] != '=') continue;
    char        quote = p[2 + len];
    const char *from = p + 3 + len, *to = memchr(from, quote, (size_t)(e->end - from));
    if (!to || to - from >= VALUE) return false;
    memcpy(value, from, (size_t)(to - from));
    value[to - from] = '\0';
    return true;
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
   while (!s && next(&at, &e, &broken)) {
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
} seen;

/* --------------------------------------------------------------------- NCCL */

static bool is_nccl(const char *text, size_t length) {
  (void)length;
  return starts_with_element(text, "system");
}

static mgrid_status see_nccl(void *ud, const element *e) {
  seen *x = ud;
  if (is_element(e, "cpu") && !add_part(&x->gpus)) return mgrid_oom(x->t->err);
  if (is_element(e, "gpu") && x->gpus.n) x->gpus.held[x->gpus.n - 1]++;
  return MGRID_OK;
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

static mgrid_status see_hwloc(void *ud, const element *e) {
  seen *x = ud;
  char  type[VALUE], value[VALUE];
  if (!is_element(e, "object") || !attribute(e, "type", type)) return MGRID_OK;
  if (strcmp(type, "Package") == 0 || strcmp(type, "Socket") == 0) {
    if (!add_part(&x->gpus) || !add_part(&x->cuda) || !add_part(&x->cores)) return mgrid_oom(x->t->err);
  } else if (strcmp(type, "Core") == 0 && x->cores.n) {
    x->cores.held[x->cores.n - 1]++;
  } else if (strcmp(type, "OSDev") == 0 && x->gpus.n && attribute(e, "name", value)) {
    x->gpus.held[x->gpus.n - 1] += strncmp(value, "nvml", 4) == 0 || strncmp(value, "rsmi", 4) == 0;
    x->cuda.held[x->cuda.n - 1] += strncmp(value, "cuda", 4) == 0;
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
  seen         x = { .t = t };
  mgrid_status s = walk(t, text, see_hwloc, &x);
  (void)choice, (void)length;
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
