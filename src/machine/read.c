/* SPDX-License-Identifier: MIT
**
** read.c - machines from files: the reader that knows a text reads it.
*/
#include "machine/tree.h"

#include <stdlib.h>
#include <string.h>

extern const mgrid_machine_reader mgrid_reads_json, mgrid_reads_kubectl, mgrid_reads_dlrover, mgrid_reads_nccl,
    mgrid_reads_hwloc, mgrid_reads_slurm_yaml, mgrid_reads_slurm, mgrid_reads_slurm_job, mgrid_reads_nvidia_topo,
    mgrid_reads_nvidia_q, mgrid_reads_hostfile;

/* Ends with NULL; the first that knows a text reads it. */
static const mgrid_machine_reader *const readers[] = {
  &mgrid_reads_json,        &mgrid_reads_kubectl,  &mgrid_reads_dlrover,   &mgrid_reads_nccl,
  &mgrid_reads_hwloc,       &mgrid_reads_slurm,    &mgrid_reads_slurm_job, &mgrid_reads_slurm_yaml,
  &mgrid_reads_nvidia_topo, &mgrid_reads_nvidia_q, &mgrid_reads_hostfile,  NULL,
};

/* --------------------------------------------------------------------- lines */

mgrid_lines mgrid_lines_begin(char *text, size_t length) { return (mgrid_lines){ text, text + length, NULL, 0, 1 }; }

bool mgrid_lines_next(mgrid_lines *l) {
  if (l->at >= l->end) return false;
  l->line = l->at;
  l->number = l->next;
  for (char *p = l->at;; p++) {
    if (p < l->end && *p != '\n') continue;
    l->next++;
    bool joins = p > l->line && p < l->end && (p[-1] == '\\' || (p - 1 > l->line && p[-1] == '\r' && p[-2] == '\\'));
    if (joins) {
      p[-1] = ' ', *p = ' ';
      if (p[-2] == '\\') p[-2] = ' ';
      continue;
    }
    l->at = p + 1;
    if (p < l->end) *p = '\0';
    if (p > l->line && p[-1] == '\r') p[-1] = '\0';
    return true;
  }
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c; }

char *mgrid_line_value(const char *line, const char *key, char *buf, size_t room) {
  size_t len = strlen(key);
  for (const char *at = line; *at;) {
    at += strspn(at, " \t");
    size_t i = 0;
    while (i < len && at[i] && lower(at[i]) == lower(key[i])) i++;
    if (i == len && at[i] == '=') {
      size_t n = strcspn(at + i + 1, " \t");
      if (n >= room) return NULL;
      memcpy(buf, at + i + 1, n);
      buf[n] = '\0';
      return buf;
    }
    at += strcspn(at, " \t");
  }
  return NULL;
}

/* --------------------------------------------------------------------- words */

/* Replace the word "key=value" with blanks, and keep the value; the last one counts. */
static void take(char *words, const char *key, char **value) {
  const char  *blanks = " \t\r\n";
  const size_t len = strlen(key);
  for (char *at = words; (at = strstr(at, key)); at++) {
    if (at > words && !strchr(blanks, at[-1])) continue;
    size_t n = strcspn(at + len, blanks);
    free(*value);
    *value = strndup(at + len, n);
    memset(at, ' ', len + n);
  }
}

/* Read the contents of a file; topology=NAME and nodes=LIST may be among the words. */
static mgrid_machine_model *from_text(const char *text, size_t length, const char *name, const char *words,
                                      mgrid_error *err) {
  mgrid_error          why = MGRID_ERROR_INIT;
  mgrid_tree           t = { .file = name, .above = "switch", .err = &why, .most = MGRID_NAMES_MAX + (int64_t)length };
  mgrid_machine_model *m = NULL;
  char                *topology = NULL, *nodes = NULL, *rest = strdup(words);
  if (!rest) return mgrid_null_oom(err);
  take(rest, "topology=", &topology), take(rest, "nodes=", &nodes);
  const mgrid_machine_reader *const *r = readers;
  while (*r && !(*r)->is(text, length)) r++;
  mgrid_status s = *r ? (*r)->read(&t, text, length, topology, &m)
                      : mgrid_tree_fault(&t, 0, MGRID_BAD_VALUE, "no reader of machines knows this text");
  if (!s && nodes && m) s = mgrid_tree_fault(&t, 0, MGRID_USAGE, "nodes= is for files that list hosts");
  if (!s && nodes) s = mgrid_tree_order(&t, nodes, 0);
  if (!s && !m)
    m = mgrid_tree_machine(&t, rest);
  else if (!s && mgrid_machine_more(m, rest, &why))
    s = why.status;
  if (why.status && strncmp(why.message, name, strlen(name)) != 0)
    mgrid_error_reword(&why, "%s: %s", name, why.message);
  if (s || why.status) {
    mgrid_machine_free(m);
    m = NULL;
  }
  if (m && !m->source) m->source = mgrid_strdup(name);
  if (m) m->topology = *r == &mgrid_reads_nccl;
  mgrid_tree_free(&t);
  free(topology);
  free(nodes);
  free(rest);
  mgrid_error_pass(err, &why);
  return m;
}

mgrid_machine_model *mgrid_machine_read(const char *text, size_t length, const char *name, const char *words,
                                        mgrid_error *err) {
  if (mgrid_lacks_list(length, text, "bytes of text", err)) return NULL;
  char *copy = malloc(length + 1); /* readers stop at a final 0 */
  if (!copy) return mgrid_null_oom(err);
  if (length) memcpy(copy, text, length);
  copy[length] = '\0';
  mgrid_machine_model *m = from_text(copy, strlen(copy), name ? name : "machine", words ? words : "", err);
  free(copy);
  return m;
}
