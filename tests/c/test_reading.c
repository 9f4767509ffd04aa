/* SPDX-License-Identifier: MIT
**
** test_reading.c - whether processes may read each other's memory: found by trying, also where the kernel refuses it or
** what the trial itself needs, and told with the reason.
*/
#include "tensors/command/words.h"
#include "apart.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* Answer a system call in this way from now on; false: no filter can be set. */
static bool filter(int call, uint32_t answer) {
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, answer),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = { sizeof code / sizeof *code, code };
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Try, and leave no child. "" is: they may. */
static void tries(mgrid_error *said, const char *wanted) {
  mgrid_error e = MGRID_ERROR_INIT;
  cli_reading(&e);
  if (differs(said, wanted, e.message)) return;
  if (waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD) differs(said, "no child", "one");
}

static void refused(mgrid_error *said, int call, int number, const char *wanted) {
  if (filter(call, SECCOMP_RET_ERRNO | (uint32_t)number)) tries(said, wanted);
}

static void filtered(mgrid_error *said) {
  char         who[MGRID_REFUSAL], wanted[512];
  mgrid_guards here = mgrid_guards_here();
  here.filtered = true;
  snprintf(wanted, sizeof wanted, "Operation not permitted%s", mgrid_refused_of(&here, EPERM, who));
  refused(said, SYS_process_vm_readv, EPERM, wanted);
}

static void without_call(mgrid_error *said) {
  refused(
      said, SYS_process_vm_readv, ENOSYS,
      "Function not implemented; the kernel was built without it (CONFIG_CROSS_MEMORY_ATTACH), or a filter of system "
      "calls (seccomp), as in containers, refuses it: a profile with process_vm_readv allows it");
}

static void without_files(mgrid_error *said) {
  refused(said, SYS_memfd_create, ENOSYS, "not tried, because it needs a file in memory: Function not implemented");
}

static void ended(mgrid_error *said) {
  if (filter(SYS_process_vm_readv, SECCOMP_RET_KILL))
    tries(said, "the process that tried it was killed, as filters of system calls (seccomp) do");
}

static void without_processes(mgrid_error *said) {
  if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) return;
  limit(RLIMIT_NPROC, 0);
  tries(said, "not tried, because it needs a process: Resource temporarily unavailable: the user may have 0 threads "
              "(ulimit -u)");
}

/* Who ignores its children is not told how they ended. */
static void unheard(mgrid_error *said) {
  signal(SIGCHLD, SIG_IGN);
  ended(said);
}

/* What the kernel of this machine says: refused or not, it is the same of processes that are no parent and child. */
static void as_it_is(mgrid_error *said) {
  mgrid_error  e = MGRID_ERROR_INIT;
  char         who[MGRID_REFUSAL], wanted[512] = "";
  bool         may = cli_reading(&e) == MGRID_OK;
  struct iovec own = { who, 1 };
  bool         there = process_vm_readv(getpid(), &own, 1, &own, 1, 0) >= 0 || errno != ENOSYS; /* qemu has it not */
  int          number = there ? EPERM : ENOSYS;
  mgrid_guards here = mgrid_guards_here();
  if (!may) snprintf(wanted, sizeof wanted, "%s%s", strerror(number), mgrid_refused_of(&here, number, who));
  tries(said, wanted);
}

#define APART(name) \
  static void test_##name(void **state) { \
    (void)state; \
    apart(name); \
  }
APART(as_it_is)
APART(filtered)
APART(without_call)
APART(without_files)
APART(without_processes)
APART(ended)
APART(unheard)

static void test_words(void **state) {
  static const struct {
    mgrid_guards guards;
    int          number;
    const char  *words;
  } rows[] = {
    { { .scope = 1 },
      EPERM,
      "; Yama allows it to parents only (kernel.yama.ptrace_scope = 1): `sysctl "
      "kernel.yama.ptrace_scope=0` "
      "as root of the machine, or CAP_SYS_PTRACE for the ranks, allows it" },
    { { .scope = 2, .filtered = true },
      EPERM,
      "; Yama allows it to holders of CAP_SYS_PTRACE only (kernel.yama.ptrace_scope = 2): `sysctl "
      "kernel.yama.ptrace_scope=0` "
      "as "
      "root of the machine, or CAP_SYS_PTRACE for the ranks, allows it" },
    { { .scope = 3, .capable = true },
      EPERM,
      "; Yama allows nobody (kernel.yama.ptrace_scope = 3); only a reboot changes that" },
    { { .scope = 1, .capable = true, .filtered = true },
      EPERM,
      "; a filter of system calls (seccomp), as in containers: --cap-add=SYS_PTRACE or a profile with "
      "process_vm_readv allows it" },
    { { .scope = 2, .capable = true },
      EPERM,
      "; a security module of the kernel, or the program has more rights than its user" },
    { { .filtered = true }, EACCES, "; a security module of the kernel, or the program has more rights than its user" },
    { { .scope = 1, .filtered = true }, ENOMEM, "" },
    { { .scope = 1, .filtered = true }, ESRCH, "" },
  };
  char buf[MGRID_REFUSAL];
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_string_equal(rows[i].words, mgrid_refused_of(&rows[i].guards, rows[i].number, buf));
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_as_it_is),          cmocka_unit_test(test_filtered),
    cmocka_unit_test(test_without_call),      cmocka_unit_test(test_without_files),
    cmocka_unit_test(test_without_processes), cmocka_unit_test(test_ended),
    cmocka_unit_test(test_unheard),           cmocka_unit_test(test_words),
  };
  return run_program("reading", tests, argc, argv);
}
