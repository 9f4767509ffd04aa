/* SPDX-License-Identifier: MIT
**
** environ.c - what NCCL will read from the environment. Its variables override ncclConfig_t. They also come from
** files, which NCCL reads when it makes its first unique id or communicator, too late to ask NCCL.
*/
#include "comm/nccl/nccl.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The variables that override a field of ncclConfig_t (envConfigOverride in NCCL's init.cc), and the identity of the
** host. */
static const char *const overriding[] = {
  "NCCL_COMM_BLOCKING",
  "NCCL_MAX_CTAS",
  "NCCL_MIN_CTAS",
  "NCCL_CGA_CLUSTER_SIZE",
  "NCCL_NET",
  "NCCL_COLLNET_ENABLE",
  "NCCL_CTA_POLICY",
  "NCCL_NVLS_NCHANNELS",
  "NCCL_NCHANNELS_PER_NET_PEER",
  "NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE",
  "NCCL_COMM_SPLIT_SHARE_RESOURCES",
  "NCCL_COMM_SHRINK_SHARE_RESOURCES",
  "NCCL_HOSTID",
};

/* Find the first line NAME=VALUE of a file. */
static bool in_file(const char *path, const char *name, char value[NCCL_SETTING]) {
  FILE  *file = fopen(path, "re");
  char   line[1024];
  size_t len = strlen(name);
  bool   found = false;
  while (file && !found && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    found = strncmp(line, name, len) == 0 && line[len] == '=';
    if (found) snprintf(value, NCCL_SETTING, "%.*s", NCCL_SETTING - 1, line + len + 1);
  }
  if (file) fclose(file);
  return found;
}

static bool in_home(const char *name, char value[NCCL_SETTING]) {
  const char   *file = getenv("NCCL_CONF_FILE");
  struct passwd entry, *user = NULL;
  char          room[1024], path[1024];
  if (file && *file) return in_file(file, name, value);
  if (getpwuid_r(getuid(), &entry, room, sizeof room, &user) != 0 || !user) return false;
  snprintf(path, sizeof path, "%s/." MAKER_SETTINGS, user->pw_dir);
  return in_file(path, name, value);
}

bool mgrid_nccl_setting(const char *name, char value[NCCL_SETTING]) {
  const char *set = getenv(name);
  if (!set) return in_home(name, value) || in_file("/etc/" MAKER_SETTINGS, name, value);
  snprintf(value, NCCL_SETTING, "%s", set);
  return true;
}

void mgrid_nccl_overridden(mgrid_text *t) {
  char value[NCCL_SETTING];
  for (size_t i = 0; i < sizeof overriding / sizeof *overriding; i++)
    if (mgrid_nccl_setting(overriding[i], value) && *value)
      mgrid_text_add(t, "%s%s=%s", t->len ? ", " : "", overriding[i], value);
}

bool mgrid_nccl_blocks(const nccl_backend *n, const mgrid_nccl_values *v) {
  char value[NCCL_SETTING];
  if (mgrid_nccl_setting("NCCL_COMM_BLOCKING", value) && *value) {
    char *end;
    long  number = strtol(value, &end, 0);
    if (number == 0 || number == 1) return number == 1; /* NCCL accepts no other values */
  }
  return v->given[MGRID_NCCL_BLOCKING] ? v->number[MGRID_NCCL_BLOCKING] != 0 : !n->options.nonblocking;
}
