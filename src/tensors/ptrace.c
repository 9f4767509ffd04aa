/* SPDX-License-Identifier: MIT
**
** ptrace.c - why the kernel does not let a process read the memory of another of its user, and what to do about it.
*/
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CAP_SYS_PTRACE_BIT = 19 };

/* Return the number after a word in a small file; 0: there is none. */
static uint64_t number_behind(const char *path, const char *word, int base) {
  char    text[4096];
  int     fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
  if (fd >= 0) close(fd);
  text[n > 0 ? n : 0] = '\0';
  const char *at = strstr(text, word);
  return at ? strtoull(at + strlen(word), NULL, base) : 0;
}

mgrid_guards mgrid_guards_here(void) {
  static const char status[] = "/proc/self/status";
  return (mgrid_guards){
    .scope = (int)number_behind("/proc/sys/kernel/yama/ptrace_scope", "", 10),
    .capable = number_behind(status, "\nCapEff:", 16) >> CAP_SYS_PTRACE_BIT & 1,
    .filtered = number_behind(status, "\nSeccomp:", 10) == 2,
  };
}

const char *mgrid_refused_of(const mgrid_guards *g, int number, char buf[MGRID_REFUSAL]) {
  *buf = '\0';
  if (number == ENOSYS)
    snprintf(
        buf, MGRID_REFUSAL,
        "; the kernel was built without it (CONFIG_CROSS_MEMORY_ATTACH), or a filter of system calls (seccomp), as "
        "in containers, refuses it: a profile with process_vm_readv allows it");
  else if (number == EPERM && g->scope >= 3)
    snprintf(buf, MGRID_REFUSAL, "; Yama allows nobody (kernel.yama.ptrace_scope = %d); only a reboot changes that",
             g->scope);
  else if (number == EPERM && g->scope > 0 && !g->capable)
    snprintf(buf, MGRID_REFUSAL,
             "; Yama allows it to %s (kernel.yama.ptrace_scope = %d): `sysctl kernel.yama.ptrace_scope=0` as root of "
             "the machine, "
             "or CAP_SYS_PTRACE for the ranks, allows it",
             g->scope == 1 ? "parents only" : "holders of CAP_SYS_PTRACE only", g->scope);
  else if (number == EPERM && g->filtered)
    snprintf(buf, MGRID_REFUSAL,
             "; a filter of system calls (seccomp), as in containers: --cap-add=SYS_PTRACE or a profile with "
             "process_vm_readv allows it");
  else if (number == EPERM || number == EACCES)
    snprintf(buf, MGRID_REFUSAL, "; a security module of the kernel, or the program has more rights than its user");
  return buf;
}

const char *mgrid_refused_by(int number, char buf[MGRID_REFUSAL]) {
  const mgrid_guards g = mgrid_guards_here();
  return mgrid_refused_of(&g, number, buf);
}
