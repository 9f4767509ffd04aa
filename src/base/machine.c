/* SPDX-License-Identifier: MIT
**
** machine.c - identify the machine of this process; its processors.
*/
#include "base/base.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* Identify a machine by host name and boot id, as NCCL does: several machines may have the same name, and containers on one
** machine may have different names. */
uint64_t mgrid_machine_id(void) {
  char    text[160] = "";
  size_t  len;
  ssize_t n = 0;
  gethostname(text, 64);
  len = strnlen(text, 64);
  int boot = open("/proc/sys/kernel/random/boot_id",
                  O_RDONLY | O_CLOEXEC); /* no stdio: every rank runs this, and it is faster */
  if (boot >= 0) {
    n = read(boot, text + len, sizeof text - len);
    close(boot);
  }
  return XXH3_64bits(text, len + (n > 0 ? (size_t)n : 0));
}

int64_t mgrid_cores(int64_t *usable) {
  cpu_set_t set;
  int64_t   online = sysconf(_SC_NPROCESSORS_ONLN);
  if (usable) *usable = sched_getaffinity(0, sizeof set, &set) ? online : CPU_COUNT(&set);
  return online;
}
