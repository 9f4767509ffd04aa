/* SPDX-License-Identifier: MIT
**
** config.c - the NCCL options of a family as an ncclConfig_t for the NCCL that runs.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>

/* Set a field only if the header has it and the running library reads it: NCCL silently ignores fields that it
** does not know. */
static mgrid_status set(ncclConfig_t *c, const mgrid_nccl_values *v, int field) {
  int n = (int)v->number[field];
  switch ((mgrid_nccl_name)field) {
  case MGRID_NCCL_BLOCKING: c->blocking = n; return MGRID_OK;
  case MGRID_NCCL_CGA_CLUSTER_SIZE: c->cgaClusterSize = n; return MGRID_OK;
  case MGRID_NCCL_MAX_CTAS: c->maxCTAs = n; return MGRID_OK;
  case MGRID_NCCL_MIN_CTAS: c->minCTAs = n; return MGRID_OK;
  case MGRID_NCCL_NET_NAME: c->netName = v->net_name; return MGRID_OK;
  case MGRID_NCCL_SPLIT_SHARE: c->splitShare = n; return MGRID_OK;
#if NCCL_VERSION_CODE >= 22600
  case MGRID_NCCL_TRAFFIC_CLASS: c->trafficClass = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 22700
  case MGRID_NCCL_COLLNET_ENABLE: c->collnetEnable = n; return MGRID_OK;
  case MGRID_NCCL_CTA_POLICY: c->CTAPolicy = n; return MGRID_OK;
  case MGRID_NCCL_SHRINK_SHARE: c->shrinkShare = n; return MGRID_OK;
  case MGRID_NCCL_NVLS_CTAS: c->nvlsCTAs = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 22800
  case MGRID_NCCL_N_CHANNELS_PER_NET_PEER: c->nChannelsPerNetPeer = n; return MGRID_OK;
  case MGRID_NCCL_NVLINK_CENTRIC_SCHED: c->nvlinkCentricSched = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 22900
  case MGRID_NCCL_GRAPH_USAGE_MODE: c->graphUsageMode = n; return MGRID_OK;
  case MGRID_NCCL_NUM_RMA_CTX: c->numRmaCtx = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 23000
  case MGRID_NCCL_MAX_P2P_PEERS: c->maxP2pPeers = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 23007
  case MGRID_NCCL_GRAPH_STREAM_ORDERING: c->graphStreamOrdering = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 23100
  case MGRID_NCCL_HOST_CFT_MODE: c->hostCftMode = n; return MGRID_OK;
  case MGRID_NCCL_LAUNCH_ORDER_IMPLICIT: c->launchOrderImplicit = n; return MGRID_OK;
  case MGRID_NCCL_NUM_RMA_SIG: c->numRmaSig = n; return MGRID_OK;
  case MGRID_NCCL_RMA_EAGER_INIT: c->rmaEagerInit = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 23200
  case MGRID_NCCL_NVLS_HOST_MODE: c->nvlsHostMode = n; return MGRID_OK;
#endif
  default: return MGRID_REFUSED; /* newer than the headers of this build */
  }
}

static mgrid_status set_all(const nccl_backend *n, const mgrid_nccl_values *v, const char *name, ncclConfig_t *c,
                            mgrid_error *err) {
  char text[24], since[24];
  for (int i = 0; i < MGRID_NCCL_FIELDS; i++) {
    if (!v->given[i] || i == MGRID_NCCL_OPTIONAL) continue;
    const mgrid_nccl_field *f = &mgrid_nccl_fields[i];
    bool                    old = n->lib.version < f->version;
    if (!old && set(c, v, i) == MGRID_OK) continue;
    if (v->number[MGRID_NCCL_OPTIONAL]) continue;
    mgrid_nccl_library_text(old ? n->lib.version : NCCL_VERSION_CODE, text);
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "%s: nccl field '%s' came with NCCL %s; %s %s, which would ignore it (say "
                      "optional = true to leave it out there)",
                      name, f->name, mgrid_nccl_library_text(f->version, since),
                      old ? "this is " MAKER_TITLE : "moongrid was built with the headers of", text);
  }
  if (v->number[MGRID_NCCL_CTA_POLICY] > 2 && n->lib.version < 23000)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "%s: nccl field 'cta_policy' is 0 to 2 before NCCL 2.30, not %" PRId64,
                      name, v->number[MGRID_NCCL_CTA_POLICY]);
  return MGRID_OK;
}

/* Set both bounds of the CTAs or neither, because NCCL refuses a lower bound without an upper one. */
static void set_both_bounds(ncclConfig_t *c, const mgrid_nccl_values *v) {
  bool min = v->given[MGRID_NCCL_MIN_CTAS], max = v->given[MGRID_NCCL_MAX_CTAS];
  if (min && !max) c->maxCTAs = 64;
  if (max && !min) c->minCTAs = 1;
}

mgrid_status mgrid_nccl_config(const nccl_backend *n, const mgrid_comm_spec *spec, const char *name,
                               ncclConfig_t *config, mgrid_error *err) {
  static const ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
  const mgrid_nccl_values  *v = &spec->options->nccl;
  *config = initial;
  config->blocking = !n->options.nonblocking;
  mgrid_status s = set_all(n, v, spec->name, config, err);
  if (s) return s;
  set_both_bounds(config, v);
#if NCCL_VERSION_CODE >= 22703
  if (n->lib.version >= 22703) config->commName = name;
#else
  (void)name;
#endif
  return MGRID_OK;
}

static double mib(int64_t bytes) { return (double)bytes / (1 << 20); }

mgrid_status mgrid_nccl_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, mgrid_error *err) {
  nccl_backend *m = (nccl_backend *)b;
  int64_t       bytes = m->bytes;
  mgrid_status  s = MGRID_OK;
  if (m->leaks >= NCCL_LEAKS_MAX)
    return mgrid_fail(err, MGRID_LIMIT,
                      MAKER ": failed creations have left %d threads and sockets of NCCL in this process, which it "
                            "never ends; restart the process",
                      m->leaks);
  for (size_t i = 0; i < n && !s; i++) {
    ncclConfig_t config;
    if (spec[i].size == 0) continue; /* this rank is not a member */
    if (!mgrid_nccl_makes(spec[i].backend)) {
      s = m->carrier->ops->check(m->carrier, 1, &spec[i], err);
      continue;
    }
    s = mgrid_nccl_config(m, &spec[i], NULL, &config, err);
    if (!s) s = mgrid_nccl_can_furnish(m, &spec[i], err);
    if (!s) bytes += mgrid_nccl_memory(&spec[i].options->nccl, spec[i].size);
    if (!s && m->options.budget > 0 && bytes > m->options.budget)
      s = mgrid_fail(err, MGRID_LIMIT,
                     "%s would bring the communicators of rank %" PRId64 " to %.0f MiB of GPU memory, the "
                     "budget is %.0f MiB; %s",
                     spec[i].name, b->rank, mib(bytes), mib(m->options.budget),
                     spec[i].ranks == m->move.ranks /* no recipe has a family of these ranks */
                         ? "a larger budget has room for it, or MPI moves, where it is CUDA-aware"
                         : "fewer channels (nccl = { max_ctas = ... }) take less");
  }
  if (!s) mgrid_nccl_files(m, n, spec);
  return s;
}
