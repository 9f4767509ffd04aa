/* SPDX-License-Identifier: MIT
**
** open.h - what the command and the Lua module need besides mgrid_backend_open.
*/
#ifndef MGRID_OPEN_H
#define MGRID_OPEN_H

#include "comm/backend.h"

/* Describe what a backend finds on this machine (its library's version, GPUs) in buf, without opening it; or fail and name
** what is missing. MGRID_MISSING: its library is not installed. Local. */
mgrid_status mgrid_backend_probe(const mgrid_descriptor *d, char *buf, size_t len, mgrid_error *err);

/* Return the first backend with a GPU that every rank can open, over this carrier, else the carrier itself with one more
** reference; NULL: ranks are missing. Collective. */
mgrid_backend *mgrid_backend_best(mgrid_backend *carrier, const mgrid_nccl_options *options, mgrid_error *err);

#endif
