/* SPDX-License-Identifier: MIT
**
** nccl_demand.c - what one NCCL communicator takes: GPU memory, thread blocks, multicast objects,
** file descriptors. plan/nccl_options.h and src/comm/README.md explain the formulas. The table of
** backends points to these functions, so they are linked into every backend.
*/
#include "plan/nccl_options.h"

/* Sizes in NCCL 2.28.9; src/comm/README.md says where they are in its source. */
enum {
  GRANULE = 2 << 20,      /* of a cuMem allocation */
  STEP_BUFFERS = 8 << 17, /* NVLink SHARP: 8 steps of 128 KiB */
  P2P_PAIR = 12 << 20,    /* one peer on this machine, both directions of a channel: 2 and 10 MiB */
  NET_PAIR = 20 << 20,    /* one peer on another machine */
  NET_SHARED = 4 << 20,   /* all peers on other machines, both directions: 2 x 16 x 128 KiB */
  NVLS_CHANNELS = 16,     /* of Hopper */
  FILES = 14,             /* file descriptors of a communicator */
  FILES_CHANNEL = 4       /* file descriptors of a channel to another machine and back */
};

static int64_t channels(const mgrid_nccl_values *v) {
  if (v->given[MGRID_NCCL_MAX_CTAS]) return v->number[MGRID_NCCL_MAX_CTAS];
  int64_t least = v->given[MGRID_NCCL_MIN_CTAS] ? v->number[MGRID_NCCL_MIN_CTAS] : 1;
  return least > MGRID_NCCL_CHANNELS ? least : MGRID_NCCL_CHANNELS;
}

static int64_t granules(int64_t bytes) { return (bytes + GRANULE - 1) / GRANULE; }

int64_t mgrid_nccl_granules(int64_t bytes) { return granules(bytes) * GRANULE; }

int64_t mgrid_nccl_memory(const mgrid_nccl_values *v, int64_t n) {
  if (n < 2) return 0; /* a group of one rank has no communicator */
  int64_t blocks = channels(v) * (granules(8 * n) + granules(600 * n) + granules(4 * n)) + 2;
  return blocks * GRANULE + v->windows;
}

/* Return the bytes of n channels to a neighbour and back from one. The buffers of a direction need
** 0.5 MiB for LL, 4.7 for LL128 and 4 for Simple, and take 10 MiB: whole granules. On one machine
** they belong to the receiver, and the sender has one granule. */
static int64_t nccl_demand_pairs(int64_t n, bool spans) {
  return n * (spans ? NET_PAIR : P2P_PAIR);
}

static int64_t at_most(int64_t n, int64_t most) { return n < most ? n : most; }

static int64_t power_of_2_from(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

/* Return the number of channels for NVLink SHARP: nvls_ctas, within the bounds for all channels. */
static int64_t nvls_channels(const mgrid_nccl_values *v) {
  int64_t wanted = v->given[MGRID_NCCL_NVLS_CTAS] ? v->number[MGRID_NCCL_NVLS_CTAS] : NVLS_CHANNELS;
  int64_t least = v->number[MGRID_NCCL_MIN_CTAS];
  return at_most(wanted > least ? wanted : least,
                 v->given[MGRID_NCCL_MAX_CTAS] ? v->number[MGRID_NCCL_MAX_CTAS] : 64);
}

void mgrid_nccl_demand(const mgrid_nccl_values *v, int64_t n, int64_t local, bool nvls,
                       mgrid_demand *out) {
  *out = (mgrid_demand){ 0 };
  if (n < 2) return;
  bool spans = local < n;
  int64_t c = channels(v), p2p_channels = power_of_2_from(c), per_peer = p2p_channels;
  int64_t machines = (n + local - 1) / local;
  out->created = mgrid_nccl_memory(v, n);
  out->ring = nccl_demand_pairs(c, spans);

  /* 1 neighbour up and at most 3 down; the ring already has one pair */
  out->tree = nccl_demand_pairs(c * (at_most(spans ? 4 : 2, n - 1) - 1), spans);
  if (spans) {
    int64_t asked = v->given[MGRID_NCCL_N_CHANNELS_PER_NET_PEER]
                        ? v->number[MGRID_NCCL_N_CHANNELS_PER_NET_PEER]
                        : 2;
    per_peer = at_most(power_of_2_from(asked), p2p_channels);
    out->p2p = p2p_channels * NET_SHARED;
  }
  out->p2p += (local - 1) * per_peer * P2P_PAIR;
  out->blocks = c;
  out->files = FILES + (spans ? FILES_CHANNEL * c : 0);
  if (!nvls || local < 2) return;
  int64_t k = nvls_channels(v);
  out->nvls_created = (k + 1) * GRANULE;

  /* a head for each rank of the machine, at most 32 */
  out->nvls = k * 2 * STEP_BUFFERS * at_most(local, 32);

  /* a tree over machines */
  if (spans) out->nvls += nccl_demand_pairs(k * at_most(3, machines - 1), true);
  out->multicast = 2; /* one for the credits at creation, one for the buffers at first use */
}
