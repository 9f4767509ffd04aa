/* SPDX-License-Identifier: MIT
**
** host.c - which machine this is.
*/
#include "base/base.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* Machines may have one name, and containers of one machine several: a name and a boot are one
** machine, as they are to NCCL. */
uint64_t mgrid_machine_id(void) {
  char    text[160] = "";
  size_t  len;
  ssize_t n = 0;
  gethostname(text, 64);
  len = strnlen(text, 64);
  int boot = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); /* every rank does: no stdio */
  if (boot >= 0) {
    n = read(boot, text + len, sizeof text - len);
    close(boot);
  }
  return XXH3_64bits(text, len + (n > 0 ? (size_t)n : 0));
}
