/* SPDX-License-Identifier: MIT
**
** read_hostfile.c - the hosts of mpirun: "n0 slots=8", "n0:8" (MPICH), "n0". # begins a comment.
*/
#include "machine/tree.h"

#include <stdlib.h>
#include <string.h>

static bool is(const char *text, size_t length) {
  (void)text;
  return length > 0;
}

static mgrid_status read_line(mgrid_tree *t, char *line, int number) {
  char  value[32], *end;
  char *hash = strchr(line, '#');
  if (hash) *hash = '\0';
  line += strspn(line, " \t");
  if (!*line) return MGRID_OK;
  size_t n = strcspn(line, " \t");
  char  *rest = line + n + (line[n] != '\0');
  long   slots = 0;
  line[n] = '\0';
  char *colon = strrchr(line, ':');
  if (colon && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == '\0' && strchr(line, ':') == colon) {
    slots = strtol(colon + 1, NULL, 10);
    *colon = '\0';
  }
  if (strpbrk(line, "=,{}<>\"'()") || (unsigned char)*line < '0')
    return mgrid_tree_fault(t, number, MGRID_BAD_VALUE, "a host expected, as 'n0 slots=8', not '%.40s'", line);
  if (mgrid_line_value(rest, "slots", value, sizeof value)
      || mgrid_line_value(rest, "max_slots", value, sizeof value)) {
    slots = strtol(value, &end, 10);
    if (*end || end == value) return mgrid_tree_fault(t, number, MGRID_BAD_VALUE, "slots=%s is no number", value);
  } else if (rest[strspn(rest, " \t")] && !strchr(rest, '=')) {
    return mgrid_tree_fault(t, number, MGRID_BAD_VALUE,
                            "'slots=8' or nothing expected behind host '%.40s', not '%.40s'", line, rest);
  }
  return mgrid_tree_add_host(t, line, -1, slots, number);
}

static mgrid_status read(mgrid_tree *t, const char *text, size_t length, const char *choice,
                         mgrid_machine_model **made) {
  char        *copy = strndup(text, length);
  mgrid_status s = copy ? MGRID_OK : mgrid_oom(t->err);
  mgrid_lines  l = mgrid_lines_begin(copy, copy ? length : 0);
  (void)choice, (void)made;
  while (!s && mgrid_lines_next(&l)) s = read_line(t, l.line, l.number);
  free(copy);
  return s;
}

extern const mgrid_machine_reader mgrid_reads_hostfile;
const mgrid_machine_reader        mgrid_reads_hostfile = { "hostfile", "hosts and slots, as for mpirun", is, read };
