/* SPDX-License-Identifier: MIT
**
** spawn.c - measure a process: spawn ROUNDS COMMAND... prints the milliseconds from fork to the end
** of COMMAND, and its largest resident set in KiB. The output of COMMAND goes to /dev/null.
*/
#include "bench.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc < 3) die("spawn ROUNDS COMMAND...");
  for (int round = -1; round < atoi(argv[1]); round++) {
    double t0 = now();
    pid_t child = vfork(); /* fork would count the pages of this process as the child's */
    if (child == 0) {
      int null = open("/dev/null", O_WRONLY);
      dup2(null, 1);
      execvp(argv[2], argv + 2);
      _exit(127);
    }
    int status;
    struct rusage used;
    if (child < 0 || wait4(child, &status, 0, &used) < 0 || status != 0) die("the command failed");
    if (round < 0) continue;
    sample(1e3 * (now() - t0), "ms");
    sample((double)used.ru_maxrss, "KiB");
  }
  return 0;
}
