/* SPDX-License-Identifier: MIT
**
** memory.c - GPU memory of one NCCL communicator; plan/nccl.h explains the formula.
*/
#include "plan/nccl.h"

static int64_t channels(const mgrid_nccl_values *v) {
  if (v->given[MGRID_NCCL_MAX_CTAS]) return v->number[MGRID_NCCL_MAX_CTAS];
  int64_t least = v->given[MGRID_NCCL_MIN_CTAS] ? v->number[MGRID_NCCL_MIN_CTAS] : 1;
  return least > MGRID_NCCL_CHANNELS ? least : MGRID_NCCL_CHANNELS;
}

static int64_t granules(int64_t bytes) { return (bytes + (INT64_C(2) << 20) - 1) / (INT64_C(2) << 20); }

int64_t mgrid_nccl_memory(const mgrid_nccl_values *v, int64_t n) {
  if (n < 2) return 0; /* a group of one rank has none */
  int64_t blocks = channels(v) * (granules(8 * n) + granules(600 * n) + granules(4 * n)) + 2;
  return blocks * (INT64_C(2) << 20);
}

int64_t mgrid_nccl_buffers(const mgrid_nccl_values *v, int64_t n) {
  return n < 2 ? 0 : channels(v) * (INT64_C(184) << 20) / 10;
}
