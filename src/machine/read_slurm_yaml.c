/* SPDX-License-Identifier: MIT
**
** read_slurm_yaml.c - Slurm's topology.yaml, with a tree or blocks, or several of them by name. It reads the block style that
** the manual writes, https://slurm.schedmd.com/topology.yaml.html: lines "key: value", and lists of these.
*/
#include "machine/tree.h"

#include <stdlib.h>
#include <string.h>

static bool is(const char *text, size_t length) {
  (void)length;
  return strstr(text, "- topology:") != NULL;
}

typedef struct reading {
  mgrid_tree *t;
  const char *choice;
  int         topologies;    /* that were found, and of which kinds is known */
  char        names[200];    /* of them, for messages */
  bool        taken, chosen; /* one was read; the lines are of it */
  int32_t     above;         /* the switch or block whose lines these are */
  bool        listed;        /* it has its nodes or children */
  int         line;
} reading;

typedef struct child {
  reading *r;
  int32_t  parent;
  bool     host;
} child;

static mgrid_status put_child(void *ud, const char *name) {
  child  *c = ud;
  int32_t i = mgrid_tree_node_of(c->r->t, c->host, name, c->r->line);
  return i < 0 ? c->r->t->err->status : mgrid_tree_put_below(c->r->t, i, c->parent, c->r->line);
}

static mgrid_status put_children(reading *r, const char *list, bool host) {
  child        c = { r, r->above, host };
  const char  *at;
  mgrid_status s;
  if (r->above < 0)
    return mgrid_tree_fault(r->t, r->line, MGRID_BAD_VALUE, "'nodes:' before the name of a switch or block");
  r->listed = true;
  if (mgrid_hostlist(r->t, r->line, list, &at, put_child, &c, &s)) return s;
  return mgrid_tree_fault(r->t, r->line, MGRID_BAD_VALUE, "a list of names, as n[1-4,08],m1, expected, not '%.40s'",
                          at);
}

/* Cut quotes and blanks from around a value. */
static char *plain(char *value) {
  value += strspn(value, " \t");
  size_t n = strlen(value);
  while (n && strchr(" \t\r", value[n - 1])) value[--n] = '\0';
  if (n > 1 && (*value == '"' || *value == '\'') && value[n - 1] == *value) value[n - 1] = '\0', value++;
  return value;
}

static mgrid_status begin_above(reading *r, const char *name, const char *kind) {
  int32_t i = mgrid_tree_find(r->t, false, name);
  r->t->above = kind;
  if (i >= 0 && r->t->node[i].slots)
    return mgrid_tree_fault(r->t, r->line, MGRID_DUPLICATE, "%s '%.60s' is there twice, first in line %d", kind, name,
                            r->t->node[i].line);
  i = mgrid_tree_node_of(r->t, false, name, r->line);
  if (i < 0) return r->t->err->status;
  r->t->node[i].slots = 1;
  r->t->node[i].line = r->line;
  r->above = i;
  return MGRID_OK;
}

static mgrid_status read_key(reading *r, const char *key, char *value) {
  if (strcmp(key, "topology") == 0) {
    size_t len = strlen(r->names);
    snprintf(r->names + len, sizeof r->names - len, "%s%s", len ? ", " : "", value);
    r->topologies++;
    r->chosen = r->choice ? strcmp(r->choice, value) == 0 : r->topologies == 1;
    r->taken |= r->chosen;
    r->above = -1;
    return MGRID_OK;
  }
  if (!r->chosen) return MGRID_OK;
  if (strcmp(key, "switch") == 0 || strcmp(key, "block") == 0)
    return begin_above(r, value, key[0] == 's' ? "switch" : "block");
  if (strcmp(key, "nodes") == 0) return put_children(r, value, true);
  if (strcmp(key, "children") == 0) return put_children(r, value, false);
  static const char *const known[] = { "tree", "switches",   "block", "blocks",  "block_sizes", "cluster_default",
                                       "flat", "link_speed", "ring",  "torus3d", "rings" };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i], key) == 0) return MGRID_OK;
  return mgrid_tree_fault(r->t, r->line, MGRID_UNKNOWN_NAME,
                          "unknown key '%.40s'; known: topology, tree, block, switches, blocks, "
                          "switch, block, children, nodes, block_sizes, cluster_default",
                          key);
}

static mgrid_status read_line(reading *r, char *line) {
  char *hash = strstr(line, " #");
  if (hash) *hash = '\0';
  line = plain(line);
  if (!*line || *line == '#' || strcmp(line, "---") == 0 || strcmp(line, "...") == 0) return MGRID_OK;
  bool item = false;
  while (line[0] == '-' && line[1] == ' ') line += 1 + strspn(line + 1, " \t"), item = true;
  line = plain(line);
  if (strcmp(line, "-") == 0) return MGRID_OK;
  char *colon = strchr(line, ':');
  if (!colon || (colon[1] && colon[1] != ' ')) {
    if (item && strspn(line, "0123456789") == strlen(line)) return MGRID_OK; /* of block_sizes */
    return mgrid_tree_fault(r->t, r->line, MGRID_BAD_VALUE, "'key: value' expected, not '%.40s'", line);
  }
  *colon = '\0';
  char *value = plain(colon + 1);
  if ((strcmp(line, "block") == 0 || strcmp(line, "tree") == 0) && !*value) return MGRID_OK; /* the kind */
  return read_key(r, line, value);
}

static mgrid_status read(mgrid_tree *t, const char *text, size_t length, const char *choice,
                         mgrid_machine_model **made) {
  char        *copy = strndup(text, length);
  reading      r = { .t = t, .choice = choice, .above = -1 };
  mgrid_status s = copy ? MGRID_OK : mgrid_oom(t->err);
  mgrid_lines  l = mgrid_lines_begin(copy, copy ? length : 0);
  (void)made;
  while (!s && mgrid_lines_next(&l)) {
    r.line = l.number;
    s = read_line(&r, l.line);
  }
  if (!s && choice && !r.taken)
    s = mgrid_tree_fault(t, 0, MGRID_UNKNOWN_NAME, "unknown topology '%.60s'; known: %s", choice, r.names);
  if (!s && !choice && r.topologies > 1)
    s = mgrid_tree_fault(t, 0, MGRID_REFUSED,
                         "it has %d topologies (%s): topology=NAME behind the file's name chooses one", r.topologies,
                         r.names);
  for (int32_t i = 0; i < t->n && !s; i++)
    if (!t->node[i].host && !t->node[i].slots)
      s = mgrid_tree_fault(t, t->node[i].line, MGRID_UNKNOWN_NAME,
                           "%s '%.60s' is named here and has no entry of its own: the file may be cut short", t->above,
                           t->node[i].name);
  free(copy);
  return s;
}

extern const mgrid_machine_reader mgrid_reads_slurm_yaml;
const mgrid_machine_reader        mgrid_reads_slurm_yaml = { "slurm_yaml", "topology.yaml", is, read };
