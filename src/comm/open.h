/* SPDX-License-Identifier: MIT
**
** open.h - opening backends: what the command and the Lua module need beside mgrid_backend_open.
*/
#ifndef MGRID_OPEN_H
#define MGRID_OPEN_H

#include "comm/backend.h"

/* Write what a backend finds on this machine (version of its library, GPUs) to buf, without opening it; or
** fail and name what is missing. Local. MGRID_MISSING: its library is not installed. */
mgrid_status mgrid_backend_probe(const mgrid_descriptor *d, char *buf, size_t len, mgrid_error *err);

/* The nccl backend over this carrier if every rank can open it, else the carrier itself (with one owner
** more). Collective. */
mgrid_backend *mgrid_backend_best(mgrid_backend *carrier, const mgrid_nccl_options *options);

#endif
