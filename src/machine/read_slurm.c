/* SPDX-License-Identifier: MIT
**
** read_slurm.c - Slurm's topology: topology.conf and `scontrol show topology`, trees of switches and blocks of nodes; and what
** a job knows, its lines SLURM_JOB_NODELIST=... and SLURM_TOPOLOGY_ADDR=... of `srun env`.
** https://slurm.schedmd.com/topology.conf.html
*/
#include "machine/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Return whether some line starts with a word, in any case. */
static bool has_line(const char *text, const char *word) {
  size_t len = strlen(word);
  for (const char *at = text; at; at = strchr(at, '\n')) {
    at += strspn(at, " \t\r\n");
    if (strncasecmp(at, word, len) == 0) return true;
  }
  return false;
}

static bool is(const char *text, size_t length) {
  (void)length;
  return has_line(text, "SwitchName=") || has_line(text, "BlockName=");
}

typedef struct below { /* names that go below a switch */
  mgrid_tree *t;
  int32_t     parent;
  int         line;
  bool        host;
} below;

static mgrid_status put_below(void *ud, const char *name) {
  below  *b = ud;
  int32_t i = mgrid_tree_node_of(b->t, b->host, name, b->line);
  return i < 0 ? b->t->err->status : mgrid_tree_put_below(b->t, i, b->parent, b->line);
}

static mgrid_status put_list(mgrid_tree *t, const char *list, int32_t parent, bool host, int line) {
  below        b = { t, parent, line, host };
  const char  *at;
  mgrid_status s;
  if (strcmp(list, "(null)") == 0 || !*list || mgrid_hostlist(t, line, list, &at, put_below, &b, &s))
    return *list && strcmp(list, "(null)") ? s : MGRID_OK;
  return mgrid_tree_fault(t, line, MGRID_BAD_VALUE, "a list of names, as n[1-4,08],m1, expected, not '%.40s'", at);
}

/* The whole value of a key, of any length, cut out of the line. */
static char *value_of(char *line, const char *key) {
  size_t len = strlen(key);
  for (char *at = line; *at; at += strcspn(at, " \t")) {
    at += strspn(at, " \t");
    if (strncasecmp(at, key, len) != 0 || at[len] != '=') continue;
    size_t n = strcspn(at + len + 1, " \t");
    char  *copy = strndup(at + len + 1, n);
    return copy;
  }
  return NULL;
}

static bool starts(const char *line, const char *word) { return strncasecmp(line, word, strlen(word)) == 0; }

/* Refuse blanks around = and quotes, which Slurm would allow: what they hold would be lost. */
static mgrid_status check_pairs(mgrid_tree *t, const char *line, int number) {
  for (line += strspn(line, " \t"); *line; line += strspn(line, " \t")) {
    size_t len = strcspn(line, " \t"), key = strcspn(line, "= \t");
    if (key == 0 || key >= len || line[key + 1] == '"' || line[key + 1] == '\'')
      return mgrid_tree_fault(t, number, MGRID_BAD_VALUE,
                              "Key=value expected, without blanks around = and without quotes, not '%.40s'", line);
    line += len;
  }
  return MGRID_OK;
}

/* A line "SwitchName=s0 Switches=s[1-2]" or "BlockName=b0 Nodes=n[1-18]". scontrol says both Nodes, which are all below, and
** Switches: then those are what is below. */
static mgrid_status read_above(mgrid_tree *t, char *line, int number, bool block) {
  char        *name = value_of(line, block ? "BlockName" : "SwitchName"), *nodes = value_of(line, "Nodes");
  char        *switches = value_of(line, "Switches");
  mgrid_status s = MGRID_OK;
  int32_t      i = -1;
  bool         has_switches = switches && *switches && strcmp(switches, "(null)") != 0;
  if (!name || !*name)
    s = mgrid_tree_fault(t, number, MGRID_BAD_VALUE, "%s= has no name", block ? "BlockName" : "SwitchName");
  else if ((!nodes || !*nodes) && (!switches || !*switches))
    s = mgrid_tree_fault(t, number, MGRID_BAD_VALUE, "%s '%.60s' has no Nodes=%s", t->above, name,
                         block ? "" : " and no Switches=");
  else if (mgrid_tree_find(t, false, name) >= 0 && t->node[mgrid_tree_find(t, false, name)].slots)
    s = mgrid_tree_fault(t, number, MGRID_DUPLICATE, "%s '%.60s' is there twice, first in line %d", t->above, name,
                         t->node[mgrid_tree_find(t, false, name)].line);
  else if ((i = mgrid_tree_node_of(t, false, name, number)) < 0)
    s = t->err->status;
  if (!s) {
    t->node[i].slots = 1; /* it has a line of its own */
    t->node[i].line = number;
    s = has_switches ? put_list(t, switches, i, false, number) : put_list(t, nodes ? nodes : "", i, true, number);
  }
  free(name);
  free(nodes);
  free(switches);
  return s;
}

/* Refuse a switch that is named by another and has no line: the file is cut short. */
static mgrid_status check_whole(mgrid_tree *t) {
  for (int32_t i = 0; i < t->n; i++)
    if (!t->node[i].host && !t->node[i].slots)
      return mgrid_tree_fault(t, t->node[i].line, MGRID_UNKNOWN_NAME,
                              "%s '%.60s' is named here and has no line of its own: the file may be cut short",
                              t->above, t->node[i].name);
  return MGRID_OK;
}

static mgrid_status read(mgrid_tree *t, const char *text, size_t length, const char *choice,
                         mgrid_machine_model **made) {
  char        *copy = strndup(text, length);
  mgrid_status s = copy ? MGRID_OK : mgrid_oom(t->err);
  mgrid_lines  l = mgrid_lines_begin(copy, copy ? length : 0);
  bool         blocks = has_line(text, "BlockName="), switches = has_line(text, "SwitchName=");
  (void)made;
  if (blocks && switches && !choice)
    s = mgrid_tree_fault(t, 0, MGRID_REFUSED,
                         "it has a tree of switches and blocks: topology=tree or topology=block behind the "
                         "file's name chooses");
  if (choice && strcmp(choice, "tree") != 0 && strcmp(choice, "block") != 0)
    s = mgrid_tree_fault(t, 0, MGRID_UNKNOWN_NAME, "unknown topology '%.60s'; known: tree, block", choice);
  if (choice) blocks = strcmp(choice, "block") == 0, switches = !blocks;
  if (blocks) t->above = "block";
  while (!s && mgrid_lines_next(&l)) {
    char *hash = strchr(l.line, '#'), *line = l.line + strspn(l.line, " \t");
    if (hash) *hash = '\0';
    if (starts(line, "SwitchName=") || starts(line, "BlockName=")) s = check_pairs(t, line, l.number);
    if (s) break;
    if (starts(line, "SwitchName="))
      s = switches ? read_above(t, line, l.number, false) : MGRID_OK;
    else if (starts(line, "BlockName="))
      s = blocks ? read_above(t, line, l.number, true) : MGRID_OK;
    else if (*line && !starts(line, "BlockSizes=") && !starts(line, "LinkSpeed=") && !starts(line, "AggregatedBlock="))
      s = mgrid_tree_fault(t, l.number, MGRID_BAD_VALUE, "SwitchName= or BlockName= expected, not '%.40s'", line);
  }
  if (!s) s = check_whole(t);
  free(copy);
  return s;
}

extern const mgrid_machine_reader mgrid_reads_slurm;
const mgrid_machine_reader        mgrid_reads_slurm = { "slurm", "topology.conf, scontrol show topology", is, read };

/* ------------------------------------------------------------------- a job */

static bool is_job(const char *text, size_t length) {
  (void)length;
  return strstr(text, "SLURM_JOB_NODELIST=") || strstr(text, "SLURM_TOPOLOGY_ADDR=")
         || has_line(text, "SLURM_NODELIST=");
}

static mgrid_status add_job_host(void *ud, const char *name) {
  below *b = ud;
  return mgrid_tree_add_host(b->t, name, -1, 0, b->line);
}

/* "s0.s4.tux1": switches from the top, then the node; a part may be a list of switches, of which the first counts. */
static mgrid_status read_address(mgrid_tree *t, char *address, int line) {
  int32_t above = -1;
  char   *save = NULL, *part = strtok_r(address, ".", &save), *next;
  if (!part) return mgrid_tree_fault(t, line, MGRID_BAD_VALUE, "SLURM_TOPOLOGY_ADDR= is empty");
  for (; (next = strtok_r(NULL, ".", &save)); part = next) {
    int32_t i = mgrid_tree_node_of(t, false, part, line);
    if (i < 0) return t->err->status;
    mgrid_status s = above >= 0 ? mgrid_tree_put_below(t, i, above, line) : MGRID_OK;
    if (s) return s;
    above = i;
  }
  int32_t host = mgrid_tree_node_of(t, true, part, line);
  if (host < 0) return t->err->status;
  return above < 0 ? MGRID_OK : mgrid_tree_put_below(t, host, above, line);
}

static mgrid_status read_job(mgrid_tree *t, const char *text, size_t length, const char *choice,
                             mgrid_machine_model **made) {
  char        *copy = strndup(text, length), *list = NULL;
  mgrid_status s = copy ? MGRID_OK : mgrid_oom(t->err);
  mgrid_lines  l = mgrid_lines_begin(copy, copy ? length : 0);
  int          listed = 0;
  (void)choice, (void)made;
  while (!s && mgrid_lines_next(&l)) {
    char *line = l.line + strspn(l.line, " \t"), *eq = strchr(line, '=');
    while (eq && line < eq && strchr(line, ':') && strchr(line, ':') < eq)
      line = strchr(line, ':') + 1; /* srun --label */
    line += strspn(line, " \t");
    if (starts(line, "SLURM_TOPOLOGY_ADDR=")) s = read_address(t, eq + 1, l.number);
    if (starts(line, "SLURM_TOPOLOGY_ADDR_PATTERN=") && strncmp(eq + 1, "block", 5) == 0) t->above = "block";
    if (!list && (starts(line, "SLURM_JOB_NODELIST=") || starts(line, "SLURM_NODELIST="))) {
      listed = l.number;
      if (!(list = mgrid_strdup(eq + 1))) s = mgrid_oom(t->err);
    }
  }
  const char *at;
  below       b = { t, -1, listed, true };
  int32_t     known = t->n;
  if (!s && list && known == 0) {
    if (!mgrid_hostlist(t, listed, list, &at, add_job_host, &b, &s))
      s = mgrid_tree_fault(t, listed, MGRID_BAD_VALUE, "a list of hosts, as n[1-4,08],m1, expected, not '%.40s'", at);
  } else if (!s && list) {
    s = mgrid_tree_order(t, list, listed); /* hosts without an address are named */
  }
  free(list);
  free(copy);
  return s;
}

extern const mgrid_machine_reader mgrid_reads_slurm_job;
const mgrid_machine_reader        mgrid_reads_slurm_job = { "slurm_job",
                                                            "SLURM_JOB_NODELIST= and SLURM_TOPOLOGY_ADDR= of srun env", is_job,
                                                            read_job };
