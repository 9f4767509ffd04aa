/* SPDX-License-Identifier: MIT
**
** config.c - ncclConfig_t: the fields that the imitated version knows, the ranges that NCCL checks,
** values from the environment, and its text, which must be equal on all ranks of a communicator.
*/
#include "comm.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNDEF NCCL_CONFIG_UNDEF_INT

typedef struct field {
  const char *name;
  size_t at;
  int since; /* the version that brought it */
  int least, most, otherwise;
  const char *env;
} field;

#define FIELD(f) #f, offsetof(ncclConfig_t, f)

static const field fields[] = {
  { FIELD(blocking), 21400, 0, 1, 1, "NCCL_COMM_BLOCKING" },
  { FIELD(cgaClusterSize), 21700, 0, INT_MAX, 4, "NCCL_CGA_CLUSTER_SIZE" },
  { FIELD(minCTAs), 21700, 1, INT_MAX, 1, "NCCL_MIN_CTAS" },
  { FIELD(maxCTAs), 21700, 1, INT_MAX, 64, "NCCL_MAX_CTAS" },
  { FIELD(splitShare), 21800, 0, 1, 0, "NCCL_COMM_SPLIT_SHARE_RESOURCES" },
  { FIELD(trafficClass), 22600, INT_MIN, INT_MAX, UNDEF, NULL },
  { FIELD(collnetEnable), 22700, 0, 1, 0, "NCCL_COLLNET_ENABLE" },
  { FIELD(CTAPolicy), 22700, 0, 2, 0, NULL },
  { FIELD(shrinkShare), 22700, 0, 1, 0, "NCCL_COMM_SHRINK_SHARE_RESOURCES" },
  { FIELD(nvlsCTAs), 22700, 1, INT_MAX, UNDEF, NULL },
  { FIELD(nChannelsPerNetPeer), 22800, 1, 64, UNDEF, "NCCL_NCHANNELS_PER_NET_PEER" },
  { FIELD(nvlinkCentricSched), 22800, 0, 1, 0, NULL },
};

#define NFIELDS     (sizeof fields / sizeof *fields)
#define NAMES_SINCE 21700 /* netName */
#define NAME_SINCE  22700 /* commName */
#define CTAS_MOST   64

static int *value(ncclConfig_t *config, const field *f) { return (int *)((char *)config + f->at); }

static void undefine(ncclConfig_t *config) { *config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER; }

/* Copy the fields that both the caller's header and the imitated version know; leave the rest
** unset. */
static void known_part(ncclConfig_t *to, const ncclConfig_t *from) {
  ncclConfig_t copy;
  unsigned v = (unsigned)si_version() < from->version ? (unsigned)si_version() : from->version;
  undefine(&copy);
  undefine(to);
  memcpy(&copy, from, from->size < sizeof copy ? from->size : sizeof copy);
  for (size_t i = 0; i < NFIELDS; i++)
    if ((unsigned)fields[i].since <= v) *value(to, &fields[i]) = *value(&copy, &fields[i]);
  if (v >= NAMES_SINCE) to->netName = copy.netName;
  if (v >= NAME_SINCE) to->commName = copy.commName;
}

static ncclResult_t check(ncclConfig_t *config) {
  for (size_t i = 0; i < NFIELDS; i++) {
    const field *f = &fields[i];
    int v = *value(config, f);
    if (v == UNDEF || f->at == offsetof(ncclConfig_t, minCTAs)
        || f->at == offsetof(ncclConfig_t, maxCTAs))
      continue;
    if (v < f->least || v > f->most)
      return si_fail(ncclInvalidArgument, "Invalid config %s attribute value %d", f->name, v);
  }
  int min = config->minCTAs, max = config->maxCTAs;
  if ((min != UNDEF && min <= 0) || (max != UNDEF && max <= 0) || min > max)
    return si_fail(ncclInvalidArgument, "Invalid config min/max channels attribute value %d/%d",
                   min, max);
  if (min == UNDEF && max != UNDEF) /* NCCL takes it; the rule here is both or neither */
    return si_wrong(ncclInvalidArgument,
                    "Invalid config min/max channels attribute value unset/%d: set both or neither",
                    max);
  return ncclSuccess;
}

/* Fill in defaults, then override with the environment, as NCCL does. */
static void resolve(ncclConfig_t *config) {
  for (size_t i = 0; i < NFIELDS; i++) {
    int *v = value(config, &fields[i]);
    if (*v == UNDEF) *v = fields[i].otherwise;
    if (fields[i].env) *v = (int)standin_env(fields[i].env, *v);
  }
  if (config->minCTAs > CTAS_MOST) config->minCTAs = CTAS_MOST;
  if (config->maxCTAs > CTAS_MOST) config->maxCTAs = CTAS_MOST;
}

/* The fields of the imitated version without commName, which may differ between ranks. */
static void describe(ncclComm_t c) {
  size_t at = 0, room = sizeof c->config_text;
  int v = si_version();
  for (size_t i = 0; i < NFIELDS && at < room; i++) {
    int x = *value(&c->config, &fields[i]);
    if (fields[i].since > v) continue;
    if (x == UNDEF)
      at += (size_t)snprintf(c->config_text + at, room - at, "%s=auto ", fields[i].name);
    else
      at += (size_t)snprintf(c->config_text + at, room - at, "%s=%d ", fields[i].name, x);
  }
  if (at < room)
    snprintf(c->config_text + at, room - at, "netName=%.60s", c->net_name ? c->net_name : "-");
}

static void take(ncclComm_t c, const ncclConfig_t *config) {
  c->config = *config;
  c->net_name = config->netName ? strdup(config->netName) : NULL; /* NCCL copies this one */
  c->config.netName = c->net_name;
  c->name_kept = config->commName; /* and not this one */
  snprintf(c->name, sizeof c->name, "%s", config->commName ? config->commName : "");
  describe(c);
}

ncclResult_t si_config_parse(ncclComm_t c, const ncclConfig_t *config) {
  ncclConfig_t known;
  if (config->magic != 0xcafebeef || config->size < offsetof(ncclConfig_t, cgaClusterSize))
    return si_fail(ncclInvalidArgument,
                   "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
  known_part(&known, config);
  ncclResult_t r = check(&known);
  if (r) return r;
  resolve(&known);
  take(c, &known);
  return ncclSuccess;
}

void si_config_inherit(ncclComm_t c, const struct ncclComm *parent) { take(c, &parent->config); }

void si_config_free(ncclComm_t c) {
  free(c->net_name);
  c->net_name = NULL;
  c->config.netName = NULL;
}
