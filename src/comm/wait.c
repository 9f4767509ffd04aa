/* SPDX-License-Identifier: MIT
**
** wait.c - the one loop that waits for other ranks. Linked into the core and into every backend with
** deadlines.
*/
#include "comm/backend.h"

enum { BUSY_LOOKS = 17 }; /* after which one that is busy gives way: mgrid_pause does so from the 17th look on */

mgrid_outcome mgrid_wait(mgrid_look *look, void *ud, double until, mgrid_backend *carrier, int64_t *who) {
  for (int turn = 0;; turn++) {
    mgrid_outcome outcome = look(ud);
    if (outcome != MGRID_NOT_YET && outcome != MGRID_BUSY) return outcome;
    if (mgrid_now() > until) return MGRID_LATE;
    int64_t told = carrier ? carrier->ops->carrier->heard(carrier) : -1;
    if (told >= 0) {
      *who = told;
      return MGRID_GAVE_UP;
    }
    mgrid_pause(outcome == MGRID_BUSY ? turn % BUSY_LOOKS : turn);
  }
}
