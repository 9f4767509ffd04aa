/* SPDX-License-Identifier: MIT
**
** runtime.h - how a function of the runtime begins and ends.
*/
#ifndef RIG_RUNTIME_H
#define RIG_RUNTIME_H

#include "rig.h"

#include <cuda_runtime_api.h>

#define FN RIG_API cudaError_t

/* Count the call; return a fault that somebody asked for, or that there is no driver or device. */
int rig_call(rig_site *site, const char *name, bool needs_driver);

/* The error as the call returns it, which cudaGetLastError gives once more. */
cudaError_t rig_answer(int e);

#define RIG_BEGIN(needs_driver) \
  do { \
    static rig_site site_; \
    int e_ = rig_call(&site_, __func__, needs_driver); \
    if (e_) return rig_answer(e_); \
  } while (0)
#define ENTER        RIG_BEGIN(true)
#define ENTER_ANYWAY RIG_BEGIN(false)
#define NEED(condition) \
  if (!(condition)) return rig_answer(cudaErrorInvalidValue)

#endif
