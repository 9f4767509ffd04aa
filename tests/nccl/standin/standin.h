/* SPDX-License-Identifier: MIT
**
** standin.h - the log, the faults and the trace of the stand-in. They are in libcudart.so.13, which
** is the CUDA runtime without a GPU of ../../cuda, so that a process has one log and one count of
** violations.
**
** These libraries are not CUDA and no NCCL: a collective goes over POSIX shared memory. They exist
** so that the CPU side of moongrid can be tested where there is no GPU, and they say so in every
** line they write.
*/
#ifndef STANDIN_H
#define STANDIN_H

#include "../../cuda/rig.h"

#include <cuda_runtime_api.h>

#define STANDIN_NAME "moongrid NCCL stand-in (not NCCL, no GPU)"

/* On CUDA, or under other names on HIP: build.sh renames the functions. */
#ifdef STANDIN_HIP
#define STANDIN_LIBRARY "librccl.so.1"
#define STANDIN_RUNTIME 60300000
#define STANDIN_MAJOR   10000000
#else
#define STANDIN_LIBRARY "libnccl.so.2"
#define STANDIN_RUNTIME CUDART_VERSION
#define STANDIN_MAJOR   1000
#endif

/* The phrase that tests look for, where the real library would block for ever. */
#define STANDIN_HANG "real NCCL would hang here"

#define SI_API       __attribute__((visibility("default")))
#define SI_PRINTF(f) __attribute__((format(printf, f, f + 1)))
#define SI_TEXT      1024 /* the longest line */

/* One line in one write(), to stderr or to the file of STANDIN_LOG. */
SI_API void standin_log(const char *format, ...) SI_PRINTF(1);

/* The same, and counted: with STANDIN_STRICT=1 the process ends with 99. */
SI_API void standin_violation(const char *format, ...) SI_PRINTF(1);

/* One line in STANDIN_TRACE.<rank>, if that is set. */
SI_API void standin_trace(const char *format, ...) SI_PRINTF(1);

SI_API double standin_now(void);      /* seconds of a clock that only goes forward */
SI_API double standin_deadline(void); /* STANDIN_DEADLINE: no wait is longer, default 10 */
SI_API int standin_rank(void); /* in the job, from the launcher's environment; 0 without one */
SI_API long standin_env(const char *name, long otherwise);
SI_API void standin_nap(double seconds);

/* Does the fault "rank[:number]" of the environment strike this process's nth call (from 1)? Number
** 0: each. */
SI_API bool standin_fault(const char *name, long nth);

/* "rank:seconds": the seconds, 0 for another rank. */
SI_API double standin_fault_seconds(const char *name);

#endif
