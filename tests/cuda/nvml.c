/* SPDX-License-Identifier: MIT
**
** nvml.c - NVML's view of the machine: GPUs, what they are linked to. The types are NVML's public
** ones, as far as needed.
*/
#include "rig.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef enum result { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 } result;
typedef struct device_st *device; /* the number + 1 */

typedef struct pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
} pci;

typedef struct field {
  unsigned id, scope;
  long long time, latency;
  int type, result;
  union {
    unsigned ui;
    unsigned long long ull;
    double d;
  } value;
} field;

enum { LINK_SPEED = 90, LINK_COUNT = 91, LINK_STATE = 165, UNSIGNED = 1, MBYTES_A_LINK = 26562 };

#define FN RIG_API result
#define PROTO(name, ...) \
  FN name(__VA_ARGS__); \
  FN name(__VA_ARGS__)

/* A fault of a name is NVML's "unknown error", 999, as well. */
#define ENTER RIG_ENTER(result)

static int number(device d) { return (int)(uintptr_t)d - 1; }
static bool known(device d) { return number(d) >= 0 && number(d) < rig_the_machine()->gpus; }
static int links(void) { return rig_the_machine()->links; }

static int other(int d) { return rig_the_machine()->pairs ? (d ^ 1) : -1; }

PROTO(nvmlInit, void) {
  ENTER;
  return OK;
}
PROTO(nvmlInit_v2, void) {
  ENTER;
  return OK;
}
PROTO(nvmlShutdown, void) {
  ENTER;
  return OK;
}

RIG_API const char *nvmlErrorString(result r);
RIG_API const char *nvmlErrorString(result r) {
  return r == OK              ? "Success"
         : r == INVALID       ? "Invalid Argument"
         : r == NOT_SUPPORTED ? "Not Supported"
         : r == NOT_FOUND     ? "Not Found"
                              : "Unknown Error";
}

PROTO(nvmlDeviceGetCount_v2, unsigned *n) {
  ENTER;
  if (!n) return INVALID;
  *n = (unsigned)rig_the_machine()->gpus;
  return OK;
}
PROTO(nvmlDeviceGetCount, unsigned *n) { return nvmlDeviceGetCount_v2(n); }

PROTO(nvmlDeviceGetHandleByIndex_v2, unsigned i, device *d) {
  ENTER;
  if (!d || i >= (unsigned)rig_the_machine()->gpus) return INVALID;
  *d = (device)(uintptr_t)(i + 1);
  return OK;
}
PROTO(nvmlDeviceGetHandleByIndex, unsigned i, device *d) {
  return nvmlDeviceGetHandleByIndex_v2(i, d);
}

PROTO(nvmlDeviceGetHandleByPciBusId_v2, const char *id, device *d) {
  unsigned domain, bus;
  ENTER;
  if (!id || !d || sscanf(id, "%x:%x", &domain, &bus) != 2) return INVALID;
  for (int i = 0; i < rig_the_machine()->gpus; i++)
    if (!domain && (unsigned)rig_bus(i) == bus) return *d = (device)(uintptr_t)(i + 1), OK;
  return NOT_FOUND;
}
PROTO(nvmlDeviceGetHandleByPciBusId, const char *id, device *d) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, d);
}

PROTO(nvmlDeviceGetIndex, device d, unsigned *i) {
  ENTER;
  if (!i || !known(d)) return INVALID;
  *i = (unsigned)number(d);
  return OK;
}

PROTO(nvmlDeviceGetCudaComputeCapability, device d, int *major, int *minor) {
  ENTER;
  if (!known(d) || !major || !minor) return INVALID;
  *major = rig_the_machine()->capability / 10, *minor = rig_the_machine()->capability % 10;
  return OK;
}

/* -------------------------------------------------------------------------------- links */

PROTO(nvmlDeviceGetNvLinkState, device d, unsigned link, int *on) {
  ENTER;
  if (!known(d) || !on || link >= 18) return INVALID;
  *on = link < (unsigned)links();
  return OK;
}

PROTO(nvmlDeviceGetNvLinkCapability, device d, unsigned link, int capability, unsigned *value) {
  ENTER;
  (void)capability;
  if (!known(d) || !value || link >= 18) return INVALID;
  *value = link < (unsigned)links();
  return OK;
}

static void name(pci *p, unsigned bus, unsigned slot) {
  p->bus = bus, p->device = slot;
  snprintf(p->legacy, sizeof p->legacy, "0000:%02X:%02X.0", bus, slot);
  snprintf(p->bus_id, sizeof p->bus_id, "00000000:%02X:%02X.0", bus, slot);
}

/* The other GPU of a pair, or one of four switches. */
PROTO(nvmlDeviceGetNvLinkRemotePciInfo_v2, device d, unsigned link, pci *p) {
  ENTER;
  if (!known(d) || !p || link >= (unsigned)links()) return INVALID;
  memset(p, 0, sizeof *p);
  int to = other(number(d));
  if (to >= 0)
    name(p, (unsigned)rig_bus(to), 0);
  else
    name(p, 5, link % 4);
  return OK;
}

/* The older form of the structure is shorter. */
/* NCCL takes no link without it, from 2.31 on. */
PROTO(nvmlDeviceGetNvLinkRemoteDeviceType, device d, unsigned link, int *type) {
  enum { A_GPU, A_SWITCH = 2 };
  ENTER;
  if (!known(d) || !type || link >= (unsigned)links()) return INVALID;
  *type = other(number(d)) >= 0 ? A_GPU : A_SWITCH;
  return OK;
}
PROTO(nvmlDeviceGetNvLinkRemotePciInfo, device d, unsigned link, void *p) {
  pci full;
  result r = nvmlDeviceGetNvLinkRemotePciInfo_v2(d, link, &full);
  if (r != OK) return r;
  memset(p, 0, 52);
  memcpy(p, &full, offsetof(pci, bus_id));
  return OK;
}

PROTO(nvmlDeviceGetPciInfo_v3, device d, pci *p) {
  ENTER;
  if (!known(d) || !p) return INVALID;
  memset(p, 0, sizeof *p);
  name(p, (unsigned)rig_bus(number(d)), 0);
  p->id = 0x233010de, p->subsystem = 0x16c110de;
  return OK;
}

/* 0: reads, 1: writes, 2: NVLink, 3: atomics, 4: a property of PCI; 0 of status is yes, 1 is
** "chipset not supported" */
PROTO(nvmlDeviceGetP2PStatus, device a, device b, int what, int *status) {
  ENTER;
  if (!known(a) || !known(b) || !status || what < 0 || what > 4) return INVALID;
  bool yes = what == 2 || what == 3 ? rig_linked(number(a), number(b))
                                    : rig_peers(number(a), number(b));
  *status = yes ? 0 : 1;
  return OK;
}

PROTO(nvmlDeviceGetFieldValues, device d, int n, field *f) {
  ENTER;
  if (!known(d) || n < 1 || !f) return INVALID;
  for (int i = 0; i < n; i++) {
    f[i].result = OK, f[i].type = UNSIGNED, f[i].value.ull = 0;
    switch (f[i].id) {
    case LINK_SPEED: f[i].value.ui = MBYTES_A_LINK; break;
    case LINK_COUNT: f[i].value.ui = (unsigned)links(); break;
    case LINK_STATE: f[i].value.ui = f[i].scope < (unsigned)links(); break;
    default: f[i].result = NOT_SUPPORTED;
    }
  }
  return OK;
}

PROTO(nvmlDeviceGetCurrPcieLinkWidth, device d, unsigned *v) {
  ENTER;
  if (!known(d) || !v) return INVALID;
  *v = 16;
  return OK;
}
PROTO(nvmlDeviceGetCurrPcieLinkGeneration, device d, unsigned *v) {
  ENTER;
  if (!known(d) || !v) return INVALID;
  *v = 5;
  return OK;
}
PROTO(nvmlDeviceGetPcieLinkMaxSpeed, device d, unsigned *v) {
  ENTER;
  if (!known(d) || !v) return INVALID;
  *v = 32000;
  return OK;
}

/* NCCL 2.30 calls these where /sys does not show a GPU, and crashes where they are missing. */
typedef struct pci_ext {
  unsigned version, domain, bus, device, id, subsystem, class, subclass;
  char bus_id[32];
} pci_ext;

PROTO(nvmlDeviceGetPciInfoExt, device d, pci_ext *p) {
  pci q;
  if (!p) return INVALID;
  result r = nvmlDeviceGetPciInfo_v3(d, &q);
  if (r != OK) return r;
  *p = (pci_ext){ p->version, 0, q.bus, 0, q.id, q.subsystem, 3, 2, "" };
  memcpy(p->bus_id, q.bus_id, sizeof p->bus_id);
  return OK;
}

/* ---------------------------------------------------------------------- not modelled, none */

PROTO(nvmlDeviceGetGpuFabricInfoV, device d, void *info) {
  ENTER;
  (void)d, (void)info;
  return NOT_SUPPORTED;
}
PROTO(nvmlDeviceGetPlatformInfo, device d, void *info) {
  ENTER;
  (void)d, (void)info;
  return NOT_SUPPORTED;
}
PROTO(nvmlSystemGetConfComputeState, unsigned *state) {
  ENTER;
  if (!state) return INVALID;
  state[0] = state[1] = state[2] = 0;
  return OK;
}
PROTO(nvmlSystemGetConfComputeSettings, unsigned *settings) {
  ENTER;
  (void)settings;
  return NOT_SUPPORTED;
}
