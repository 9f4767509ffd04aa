/* SPDX-License-Identifier: MIT
**
** selftest.h - what the parts of the self-test share: selftest.c shows what must work,
** selftest_wrong.c what must be found, selftest_hard.c where NCCL waits or does not forget.
*/
#ifndef STANDIN_SELFTEST_H
#define STANDIN_SELFTEST_H

#include <mpi.h>
#include <nccl.h>
#include <stdbool.h>

extern int me, world, failures;

void test_check(bool ok, const char *file, int line, const char *text);
#define CHECK(x) test_check((x), __FILE__, __LINE__, #x)

/* The last error of NCCL on this rank has this in it; its log has it, if STANDIN_LOG is set. */
bool said(const char *text);

typedef struct test {
  const char *name;
  void (*run)(void);
} test;

extern const test wrong_tests[], hard_tests[]; /* the last has no name */

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

void fresh_ids(ncclUniqueId *ids, int n); /* of rank 0, on all ranks */
ncclConfig_t config_of(int blocking, const char *name);
ncclComm_t world_comm(int blocking, const char *name);
ncclResult_t settle(ncclComm_t c);   /* polls until it is no longer in progress */
void *device_ints(int n, int first); /* n ints: first, first + 1, ... */
cudaStream_t new_stream(void);
void barrier(void);

#endif
