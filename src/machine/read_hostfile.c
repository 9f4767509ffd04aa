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

/* What may be behind a host: mpirun's, and Hydra's. */
static const char *const counts[] = { "slots", "count", "cpu", "cpus", NULL };
static const char *const most[] = { "max_slots", "max-slots", "slots_max", "slots-max", NULL };
static const char *const others[] = { "username", "user_name", "user-name", "user", "port", "ifname", "binding", NULL };

static bool is_one_of(const char *const *list, const char *word, size_t len) {
  for (; *list; list++)
    if (strlen(*list) == len && strncasecmp(*list, word, len) == 0) return true;
  return false;
}

/* Read "slots=8 max_slots=16": the slots, or else the most. Refuse what another reader could take for something else. */
static mgrid_status read_slots(mgrid_tree *t, const char *host, const char *rest, int number, long *slots) {
  for (rest += strspn(rest, " \t"); *rest; rest += strspn(rest, " \t")) {
    size_t len = strcspn(rest, " \t"), key = strcspn(rest, "= \t");
    bool   counted = is_one_of(counts, rest, key), at_most = is_one_of(most, rest, key);
    char   value[32], *end;
    if (rest[key] != '=' || (!counted && !at_most && !is_one_of(others, rest, key)))
      return mgrid_tree_fault(t, number, MGRID_BAD_VALUE,
                              "'slots=8' or nothing expected behind host '%.40s', not '%.40s'", host, rest);
    snprintf(value, sizeof value, "%.*s", (int)(len - key - 1 < 31 ? len - key - 1 : 31), rest + key + 1);
    if (counted || (at_most && *slots < 0)) {
      long n = strtol(value, &end, 10);
      if (*end || end == value)
        return mgrid_tree_fault(t, number, MGRID_BAD_VALUE, "%.*s is no number", (int)len, rest);
      *slots = n;
    }
    rest += len;
  }
  return MGRID_OK;
}

static mgrid_status read_line(mgrid_tree *t, char *line, int number) {
  char *hash = strchr(line, '#');
  if (hash) *hash = '\0';
  line += strspn(line, " \t");
  if (!*line) return MGRID_OK;
  size_t n = strcspn(line, " \t");
  char  *rest = line + n + (line[n] != '\0');
  long   slots = -1;
  line[n] = '\0';
  char *colon = strrchr(line, ':');
  if (colon && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == '\0' && strchr(line, ':') == colon) {
    slots = strtol(colon + 1, NULL, 10);
    *colon = '\0';
  }
  if (strcmp(line, "rank") == 0 && rest[strspn(rest, "0123456789")] == '=')
    return mgrid_tree_fault(t, number, MGRID_BAD_VALUE,
                            "this is a rankfile; its hosts are read from a hostfile, as 'n0 slots=8'");
  if (strpbrk(line, "=,{}<>\"'()[]") || (unsigned char)*line < '0')
    return mgrid_tree_fault(t, number, MGRID_BAD_VALUE, "a host expected, as 'n0 slots=8', not '%.40s'", line);
  mgrid_status s = read_slots(t, line, rest, number, &slots);
  if (s) return s;
  if (slots == 0)
    return mgrid_tree_fault(t, number, MGRID_OUT_OF_RANGE, "host '%.40s' has no slots: leave its line out", line);
  return mgrid_tree_add_host(t, line, -1, slots < 0 ? 0 : slots, number);
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
