/* SPDX-License-Identifier: MIT
**
** selftest.h - what the files of the self test share.
*/
#ifndef RIG_SELFTEST_H
#define RIG_SELFTEST_H

#include "rig.h"

#include <cuda_runtime_api.h>
#include <string.h>

void check(bool ok, const char *what); /* a line of TAP */

#define IS(call, error) check((int)(call) == (int)(error), #call " is " #error)
#define OK(call)        IS(call, 0)

void multicast(void);

#endif
