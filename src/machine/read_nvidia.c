/* SPDX-License-Identifier: MIT
**
** read_nvidia.c - what nvidia-smi prints of a node: `topo -m`, whose GPUs are grouped by NVLink; and `-q` of one node or of
** several, one after the other, whose fabric says which nodes are of one NVLink domain (ClusterUUID and CliqueId).
*/
#include "machine/tree.h"

#include <stdlib.h>
#include <string.h>

enum { GPUS_MAX = 256 };

/* The next word of a line, which it cuts; colours of the terminal are left out. */
static char *word_of(char **line) {
  char *at = *line;
  for (;;) {
    at += strspn(at, " \t");
    if (*at != '\033') break;
    while (*at && *at != 'm') at++;
    if (*at) at++;
  }
  if (!*at) return NULL;
  char *end = at + strcspn(at, " \t\033");
  *line = *end ? end + 1 : end;
  if (*end == '\033') { /* keep what follows the colour */
    char *m = strchr(end + 1, 'm');
    *line = m ? m + 1 : end + 1 + strlen(end + 1);
  }
  *end = '\0';
  return at;
}

static bool is_gpu(const char *word) {
  return word && strncmp(word, "GPU", 3) == 0 && word[3] && word[3 + strspn(word + 3, "0123456789")] == '\0';
}

/* -------------------------------------------------------------------- topo -m */

static bool is_topo(const char *text, size_t length) {
  (void)length;
  const char *gpu = strstr(text, "GPU0");
  return gpu && (strstr(gpu, "CPU Affinity") || strstr(gpu, "Legend:") || strstr(gpu, " X ") || strstr(gpu, "\tX"))
         && !strstr(text, "<");
}

static int root_of(const int *parent, int i) {
  while (parent[i] != i) i = parent[i];
  return i;
}

typedef struct matrix {
  int n, rows;
  int parent[GPUS_MAX]; /* GPUs that NVLink connects */
} matrix;

static mgrid_status read_row(mgrid_tree *t, matrix *x, char *line, int number) {
  int row = x->rows++;
  if (row >= x->n)
    return mgrid_tree_fault(t, number, MGRID_BAD_VALUE, "more rows than the %d GPUs of the first line", x->n);
  for (int i = 0; i < x->n; i++) {
    const char *link = word_of(&line);
    if (!link)
      return mgrid_tree_fault(t, number, MGRID_BAD_VALUE, "GPU%d has %d links of %d: the text may be cut short", row, i,
                              x->n);
    bool                     nvlink = link[0] == 'N' && link[1] == 'V' && link[2] >= '0' && link[2] <= '9';
    static const char *const known[] = { "X", "SYS", "NODE", "PHB", "PXB", "PIX", "PXN", "N/A", "XGMI", "PCIE" };
    bool                     one = nvlink;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) one |= strcmp(link, known[k]) == 0;
    if (!one)
      return mgrid_tree_fault(t, number, MGRID_BAD_VALUE, "'%.20s' is no link of two GPUs, as NV18 or SYS", link);
    if (nvlink) x->parent[root_of(x->parent, row)] = root_of(x->parent, i);
  }
  return MGRID_OK;
}

static mgrid_status make_node(mgrid_tree *t, const matrix *x, mgrid_machine_model **made) {
  int64_t open = 0, cliques = 0, counts[GPUS_MAX] = { 0 }, of[GPUS_MAX];
  int     number[GPUS_MAX], seen = 0;
  if (x->rows < x->n)
    return mgrid_tree_fault(t, 0, MGRID_BAD_VALUE, "%d rows of %d GPUs: the text may be cut short", x->rows, x->n);
  memset(number, 0xff, sizeof number);
  for (int i = 0; i < x->n; i++) {
    int root = root_of(x->parent, i);
    if (number[root] < 0) number[root] = seen++;
    of[i] = number[root];
    counts[of[i]]++;
  }
  cliques = seen;
  for (int i = 1; i < x->n; i++) {
    int other = i - 1;
    if (of[i] >= of[i - 1]) continue;
    while (of[other] != of[i]) other--;
    return mgrid_tree_fault(t, 0, MGRID_REFUSED,
                            "GPUs of one NVLink domain do not follow each other: GPU%d is of that of GPU%d", i, other);
  }
  mgrid_link none = { 0, 0 };
  *made = mgrid_machine_alloc(t->err);
  if (!*made) return t->err->status;
  mgrid_status s = mgrid_machine_add(*made, "node", 1, &open, none, t->err);
  bool         same = true;
  for (int64_t i = 1; i < cliques; i++) same &= counts[i] == counts[0];
  if (!s && !same)
    return mgrid_tree_fault(t, 0, MGRID_REFUSED, "the NVLink domains of the node have different numbers of GPUs");
  if (!s) s = mgrid_machine_add(*made, "nvlink", 1, &cliques, none, t->err);
  return s ? s : mgrid_machine_add(*made, "gpu", 1, counts, none, t->err);
}

static mgrid_status read_topo(mgrid_tree *t, const char *text, size_t length, const char *choice,
                              mgrid_machine_model **made) {
  char        *copy = strndup(text, length), *word;
  matrix       x = { 0 };
  mgrid_status s = copy ? MGRID_OK : mgrid_oom(t->err);
  mgrid_lines  l = mgrid_lines_begin(copy, copy ? length : 0);
  (void)choice;
  for (int i = 0; i < GPUS_MAX; i++) x.parent[i] = i;
  while (!s && mgrid_lines_next(&l)) {
    char *rest = l.line;
    word = word_of(&rest);
    if (!is_gpu(word)) continue;
    if (x.n) {
      s = read_row(t, &x, rest, l.number);
      continue;
    }
    for (x.n = 1; is_gpu(word = word_of(&rest)) && x.n < GPUS_MAX;) x.n++;
  }
  if (!s && x.n == 0) s = mgrid_tree_fault(t, 0, MGRID_BAD_VALUE, "there is no line of GPUs");
  if (!s) s = make_node(t, &x, made);
  free(copy);
  return s;
}

extern const mgrid_machine_reader mgrid_reads_nvidia_topo;
const mgrid_machine_reader        mgrid_reads_nvidia_topo = { "nvidia_topo", "nvidia-smi topo -m, of one node", is_topo,
                                                              read_topo };

/* ------------------------------------------------------------------------- -q */

static bool is_q(const char *text, size_t length) {
  (void)length;
  return strstr(text, "NVSMI LOG") || strstr(text, "Attached GPUs");
}

/* The value of "    CliqueId    : 32766", NULL: another line. */
static char *q_value(char *line, const char *key) {
  line += strspn(line, " \t");
  size_t len = strlen(key);
  if (strncmp(line, key, len) != 0) return NULL;
  line += len + strspn(line + len, " \t");
  if (*line != ':') return NULL;
  line++;
  return line + strspn(line, " \t");
}

typedef struct node_q { /* the node that is being read */
  int  number, line, gpus;
  char clique[64], uuid[64], first[140];
} node_q;

/* The GPU before this line is complete: its clique is that of the node. */
static mgrid_status end_gpu(mgrid_tree *t, node_q *q, int line) {
  char whole[140] = "";
  if (*q->uuid && *q->clique && strcmp(q->uuid, "N/A") != 0 && strspn(q->uuid, "0-") != strlen(q->uuid))
    snprintf(whole, sizeof whole, "%s.%s", q->uuid, q->clique);
  if (q->gpus == 1) memcpy(q->first, whole, sizeof whole);
  if (q->gpus > 1 && strcmp(q->first, whole) != 0)
    return mgrid_tree_fault(t, line, MGRID_REFUSED, "GPUs of one node are of two NVLink domains, '%s' and '%s'",
                            q->first, whole);
  *q->uuid = *q->clique = '\0';
  return MGRID_OK;
}

static mgrid_status end_node(mgrid_tree *t, node_q *q, int line) {
  char    name[32];
  int32_t above = -1;
  if (q->gpus == 0) return MGRID_OK;
  mgrid_status s = end_gpu(t, q, line);
  if (s) return s;
  snprintf(name, sizeof name, "%d", q->number++);
  if (*q->first && (above = mgrid_tree_node_of(t, false, q->first, q->line)) < 0) return t->err->status;
  s = mgrid_tree_add_host(t, name, above, q->gpus, q->line);
  q->gpus = 0;
  return s;
}

static mgrid_status read_q(mgrid_tree *t, const char *text, size_t length, const char *choice,
                           mgrid_machine_model **made) {
  char        *copy = strndup(text, length), *value;
  node_q       q = { .line = 1 };
  mgrid_status s = copy ? MGRID_OK : mgrid_oom(t->err);
  mgrid_lines  l = mgrid_lines_begin(copy, copy ? length : 0);
  long         attached = 0;
  int          seen = 0;
  (void)choice, (void)made;
  t->above = "clique";
  while (!s && mgrid_lines_next(&l)) {
    if ((value = q_value(l.line, "Attached GPUs"))) {
      if (attached && seen < attached)
        s = mgrid_tree_fault(t, l.number, MGRID_BAD_VALUE, "%d of %ld GPUs: the text may be cut short", seen, attached);
      if (!s) s = end_node(t, &q, l.number);
      attached = strtol(value, NULL, 10);
      seen = 0;
      q.line = l.number;
    } else if (strncmp(l.line, "GPU ", 4) == 0) {
      if (q.gpus) s = end_gpu(t, &q, l.number);
      q.gpus++, seen++;
    } else if ((value = q_value(l.line, "CliqueId"))) {
      snprintf(q.clique, sizeof q.clique, "%.60s", value);
    } else if ((value = q_value(l.line, "ClusterUUID"))) {
      snprintf(q.uuid, sizeof q.uuid, "%.60s", value);
    }
  }
  if (!s && attached && seen < attached)
    s = mgrid_tree_fault(t, l.number, MGRID_BAD_VALUE, "%d of %ld GPUs: the text may be cut short", seen, attached);
  if (!s) s = end_node(t, &q, l.number);
  free(copy);
  return s;
}

extern const mgrid_machine_reader mgrid_reads_nvidia_q;
const mgrid_machine_reader        mgrid_reads_nvidia_q = { "nvidia_q",
                                                           "nvidia-smi -q, of one node or several one after the other", is_q,
                                                           read_q };
