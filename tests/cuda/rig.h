/* SPDX-License-Identifier: MIT
**
** rig.h - what the three libraries share. All state is in libcuda.so.1, which the other two link.
** Numbers of errors are the same in the driver and in the runtime, so an int stands for both.
*/
#ifndef RIG_H
#define RIG_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RIG_API  __attribute__((visibility("default")))
#define RIG_NAME "moongrid CUDA rig (no GPU, no kernel runs)"
#ifndef RIG_GPU
#define RIG_GPU "cuda" /* what names of errors begin with */
#endif
#define RIG_DEVICES      64
#define RIG_GRANULE      ((size_t)2 << 20) /* of cuMem handles */
#define RIG_PAGE         ((size_t)4096)
#define RIG_ROUND(n, to) (((n) + (to)-1) / (to) * (to))

/* ------------------------------------------------------------------------ account.c */

/* One in each function that is called from outside. */
typedef struct rig_site {
  struct rig_site *next;
  const char *name;
  atomic_long calls;
} rig_site;

/* Count a call, write it to the log, wait or fail as the environment says. Return 0 or the
** error. */
RIG_API int rig_enter(rig_site *site, const char *name);

#define RIG_ENTER(type) \
  do { \
    static rig_site site_; \
    int e_ = rig_enter(&site_, __func__); \
    if (e_) return (type)e_; \
  } while (0)

typedef enum rig_kind { RIG_DEVICE, RIG_CUMEM, RIG_HOST, RIG_KINDS } rig_kind;

/* Count bytes of a kind on a device; negative: given back. False: the device has not so much. */
RIG_API bool rig_take(rig_kind kind, int device, long long bytes);

RIG_API long long rig_free_bytes(int device);
RIG_API void rig_launched(const char *what);
RIG_API void rig_alive(const char *what, int change); /* "streams", "events" */
RIG_API void rig_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
RIG_API int rig_rank(void);
RIG_API void rig_note(const char *text); /* a line of the log */

/* What has been counted, by name: "device", "cumem", "host" (bytes now), "device peak", "cumem
** peak", "host peak", "launches", "streams", "events", or a function's calls. -1: no such name
** yet. */
RIG_API long long cudarig_count(const char *name);

/* From now on the nth call of that function fails, once; 0: every one, and name "*": of every
** function, as of a device that is lost. NULL: none. It takes the place of what was asked
** before. */
RIG_API void cudarig_fail(const char *name, long nth, int error);

/* A function that was called, the latest first, and how often; NULL: there are no more. */
RIG_API const char *cudarig_function(int i, long *calls);

/* A call broke a rule of CUDA: tell whom `wrong` of the manner names. */
RIG_API void rig_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* the same for memory of devices, pinned memory, streams and events that are still there */
RIG_API void rig_leaks(void);

/* ------------------------------------------------------------------------ machine.c */

/* What a library that has the rig inside (../nccl/standin) changes, before the first call. */
typedef struct rig_manner {
  const char *machine;             /* where CUDARIG_MACHINE is not set */
  void (*wrong)(const char *text); /* NULL: nobody is told */
  /* the runtime's version; that of the driver, at least; what of both makes a major one */
  int runtime, needed, major;
} rig_manner;

RIG_API extern rig_manner rig_the_manner;

#define RIG_SAME (-1) /* a driver of the runtime's version */
#define RIG_STUB (-2) /* the toolkit's stub library */

typedef struct rig_machine {
  int gpus, hosts, capability, links;
  int driver; /* its version; 0: none, RIG_SAME, RIG_STUB */
  bool multicast;
  bool pairs;       /* links go to the other one of a pair, not to switches */
  long long memory; /* bytes of a GPU */
} rig_machine;

RIG_API const rig_machine *rig_the_machine(void);
RIG_API int rig_driver(void);  /* its version, 0 without one */
RIG_API int rig_refuses(void); /* what every call of the runtime returns: 0, no driver, no device */
RIG_API int rig_devices(void); /* that CUDA_VISIBLE_DEVICES shows */
RIG_API int rig_physical(int device);  /* of a visible one; -1: none */
RIG_API int rig_bus(int physical);     /* its PCI bus */
RIG_API bool rig_peers(int a, int b);  /* may physical a reach the memory of b? */
RIG_API bool rig_linked(int a, int b); /* by NVLink */

/* ------------------------------------------------------------------------- memory.c */

typedef struct rig_block {
  struct rig_block *next;
  char *at;
  size_t bytes;
  rig_kind kind;
  int device;      /* of host memory: the one that was current */
  off_t place;     /* in the process's file of device memory; -1: not there */
  void *physical;  /* the cuMem handle that is mapped here */
  bool registered; /* host memory of the program's own */
  bool foreign;    /* opened by an IPC handle */
  /* Multicast: write there instead; without `from` that value in each byte. */
  int (*write)(void *physical, size_t at, const void *from, int value, size_t bytes);
} rig_block;

RIG_API int rig_device(void); /* current on this thread */
RIG_API int rig_set_device(int device);
RIG_API bool rig_find(const void *p, rig_block *out);
/* in one allocation; -1: of any device */
RIG_API bool rig_on_device(const void *p, size_t bytes, int device);
RIG_API bool rig_add(rig_block what);
RIG_API bool rig_remove(const void *at, rig_block *out); /* the block that begins there */
RIG_API int rig_alloc(void **p, size_t bytes);
RIG_API int rig_free(void *p);
RIG_API int rig_host_alloc(void **p, size_t bytes);
RIG_API int rig_host_free(void *p);
RIG_API int rig_host_register(void *p, size_t bytes);
RIG_API int rig_host_unregister(void *p);
RIG_API int rig_ipc_get(void *handle, const void *p); /* 64 bytes */
RIG_API int rig_ipc_open(void **p, const void *handle);
RIG_API int rig_ipc_close(void *p);

RIG_API void rig_memory_leaks(void);

/* ------------------------------------------------------------------------- stream.c */

/* Run work after everything before it on the stream; it frees arg. Work that may wait never runs on
** the caller. */
RIG_API int rig_submit(CUstream stream, void (*run)(void *), void *arg, bool may_wait);

RIG_API int rig_stream_create(CUstream *stream, unsigned flags);
RIG_API int rig_stream_end(CUstream stream);
RIG_API int rig_stream_wait(CUstream stream);
RIG_API int rig_stream_query(CUstream stream);
RIG_API int rig_stream_id(CUstream stream, unsigned long long *id);
RIG_API int rig_wait_event(CUstream stream, CUevent event);
RIG_API void rig_stream_leaks(void);
RIG_API int rig_drain(int device); /* wait, and return the first error that its streams keep */
RIG_API bool rig_busy(int device); /* is there work on its streams that is not done? */
RIG_API int rig_stream_device(CUstream stream); /* -1: no stream */
RIG_API void rig_stream_fail(CUstream stream,
                             /* the stream keeps the error, as after a kernel that faults */
                             int error);
RIG_API int rig_event_create(CUevent *event, unsigned flags);
RIG_API int rig_event_end(CUevent event);
RIG_API int rig_event_record(CUevent event, CUstream stream);
RIG_API int rig_event_state(CUevent event, bool wait);
RIG_API int rig_event_ms(float *ms, CUevent from, CUevent to);

/* --------------------------------------------------------------------------- copy.c */

typedef struct rig_slab {
  char *to;
  const char *from;         /* NULL: set to value */
  size_t row, rows, planes; /* bytes, and how many */
  size_t to_pitch, from_pitch, to_plane, from_plane;
  int value;
} rig_slab;

RIG_API int rig_copy(rig_slab slab, CUstream stream, bool wait);
RIG_API int rig_copy_line(void *to, const void *from, size_t bytes, CUstream stream, bool wait);
RIG_API int rig_set(void *at, int value, size_t bytes, CUstream stream, bool wait);
RIG_API int rig_host_function(CUstream stream, void (*function)(void *), void *arg);
RIG_API int rig_value(CUstream stream, uint64_t at, uint64_t value, unsigned flags, int bits,
                      bool write);

/* --------------------------------------------------------------- device.c, driver.c */

RIG_API int rig_attribute(int *value, int attribute, int device);
RIG_API int rig_bus_id(char *id, int room, int device);
RIG_API int rig_by_bus_id(int *device, const char *id);
RIG_API int rig_pointer(void *out, CUpointer_attribute attribute, const void *p);
RIG_API void *rig_entry(const char *name); /* the newest version of an entry point of the driver */

#endif
