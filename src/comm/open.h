/* SPDX-License-Identifier: MIT
**
** open.h - opening backends: what the command and the Lua module need beside mgrid_backend_open.
*/
#ifndef MGRID_OPEN_H
#define MGRID_OPEN_H

#include "comm/backend.h"

/* What a backend finds on this machine (its library's version, GPUs), or what is missing, without
** opening it. Local. MGRID_MISSING where its library is not here. */
mgrid_status mgrid_backend_probe(const mgrid_descriptor *d, char *buf, size_t len, mgrid_error *err);

/* nccl over this carrier where every rank can have it, else another owner of the carrier itself.
** Collective. */
mgrid_backend *mgrid_backend_best(mgrid_backend *carrier, const mgrid_nccl_options *options);

#endif
