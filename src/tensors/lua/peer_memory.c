/* SPDX-License-Identifier: MIT
**
** peer_memory.c - find out whether ranks of this host may read each other's memory, as moves of tensors do. A child
** tries it.
*/
#include "tensors/peer_memory.h"
#include "tensors/lua/words.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static mgrid_status not_tried(const char *lacks, int number, mgrid_error *err) {
  char most[MGRID_ALLOWED];
  return mgrid_fail(err, MGRID_MISSING, "not tried, because it needs a %s: %s%s", lacks, strerror(number),
                    mgrid_allowed_by(number, most));
}

static mgrid_status find_out(mgrid_error *err) {
  char         why[MGRID_REFUSAL];
  mgrid_trial *t = mgrid_trial_new();
  if (!t) return not_tried("file in memory", errno, err);
  pid_t child = fork();
  int   number = errno;
  if (child == 0) {
    mgrid_trial_take(t);
    _exit(0);
  }
  while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
  int failed = mgrid_trial_end(t);
  if (child < 0) return not_tried("process", number, err);
  if (failed < 0)
    return mgrid_fail(err, MGRID_MISSING,
                      "the process that tried it was killed, as filters of system calls (seccomp) do");
  if (failed) return mgrid_fail(err, MGRID_MISSING, "%s%s", strerror(failed), mgrid_refused_by(failed, why));
  return MGRID_OK;
}

/* moongrid.peer_memory() -> true | false, why not */
int mgrid_lua_peer_memory(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  lua_pushboolean(L, find_out(&e) == MGRID_OK);
  lua_pushstring(L, e.status ? e.message : NULL);
  return 2;
}
