/* SPDX-License-Identifier: MIT
**
** selftest_multicast.c - multicast objects against what CUDA documents, in one process and in two.
*/
#include "selftest.h"

#include <sys/wait.h>
#include <unistd.h>

#define N ((size_t)4 << 20)

static CUmulticastObjectProp object_of(unsigned devices) {
  return (CUmulticastObjectProp){ .numDevices = devices,
                                  .size = N,
                                  .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };
}

/* Memory of a device, mapped; its handle is of no more use. */
static char *memory_of(int device, CUmemGenericAllocationHandle *h) {
  CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                               .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device } };
  CUmemAccessDesc access = { .location = prop.location,
                             .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  CUdeviceptr p = 0;
  if (cuMemCreate(h, N, &prop, 0) || cuMemAddressReserve(&p, N, 0, 0, 0) || cuMemMap(p, N, 0, *h, 0)
      || cuMemSetAccess(p, N, &access, 1))
    return NULL;
  return (char *)(uintptr_t)p;
}

static CUdeviceptr mapped(CUmemGenericAllocationHandle h) {
  CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
                             .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  CUdeviceptr p = 0;
  if (cuMemAddressReserve(&p, N, 0, 0, 0) || cuMemMap(p, N, 0, h, 0)
      || cuMemSetAccess(p, N, &access, 1))
    return 0;
  return p;
}

static void unmap(char *p, CUmemGenericAllocationHandle h) {
  OK(cuMemUnmap((uintptr_t)p, N));
  OK(cuMemAddressFree((uintptr_t)p, N));
  OK(cuMemRelease(h));
}

static void one_process(void) {
  CUmemGenericAllocationHandle team, first, second, stranger;
  CUmulticastObjectProp prop = object_of(2), none = object_of(0), odd = object_of(2);
  size_t granule = 0;
  char word[8] = "several", back[8];
  long long live = cudarig_count("cumem");
  OK(cuMulticastGetGranularity(&granule, &prop, CU_MULTICAST_GRANULARITY_MINIMUM));
  check(granule == 2 << 20, "granule of 2 MiB");
  IS(cuMulticastCreate(&team, &none), CUDA_ERROR_INVALID_VALUE);
  odd.size--;
  IS(cuMulticastCreate(&team, &odd), CUDA_ERROR_INVALID_VALUE);
  odd.size++, odd.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  IS(cuMulticastCreate(&team, &odd), CUDA_ERROR_NOT_SUPPORTED);
  OK(cuMulticastCreate(&team, &prop));
  char *a = memory_of(0, &first), *b = memory_of(1, &second), *c = memory_of(2, &stranger);
  check(a && b && c && cudarig_count("cumem") == live + 3 * (long long)N,
        "the object itself takes no memory");
  OK(cuMulticastAddDevice(team, 0));
  IS(cuMulticastAddDevice(team, 0), CUDA_ERROR_INVALID_VALUE);
  IS(cuMulticastAddDevice(team, 8), CUDA_ERROR_INVALID_DEVICE);
  IS(cuMulticastAddDevice(first, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuMulticastAddDevice(team, 1));
  IS(cuMulticastAddDevice(team, 2), CUDA_ERROR_INVALID_VALUE);
  OK(cuMulticastBindMem(team, 0, first, 0, N, 0));
  IS(cuMulticastBindMem(team, 0, first, 0, N, 0), CUDA_ERROR_INVALID_VALUE);
  IS(cuMulticastBindMem(team, 0, second, 0, 2 * N, 0), CUDA_ERROR_INVALID_VALUE);
  IS(cuMulticastBindMem(team, 0, second, 4096, granule, 0), CUDA_ERROR_INVALID_VALUE);
  IS(cuMulticastBindMem(team, 0, stranger, 0, N, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMulticastBindAddr(team, granule, (uintptr_t)b + granule, granule, 0));
  CUdeviceptr all = mapped(team);
  check(all != 0, "a multicast object is mapped");
  char *to = (char *)(uintptr_t)all;
  OK(cudaMemcpy(to + granule - 4, word, 8, cudaMemcpyHostToDevice));
  check(!memcmp(a + granule - 4, word, 8) && !memcmp(b + granule, word + 4, 4) && !b[granule - 1],
        "a copy to it reaches what is bound there, and nothing else");
  OK(cudaMemset(to, 7, N));
  check(a[0] == 7 && a[N - 1] == 7 && !b[0] && b[granule] == 7 && b[N - 1] == 7 && !c[0],
        "so does a fill");
  IS(cudaMemcpy(back, to, 8, cudaMemcpyDeviceToHost), cudaErrorNotSupported);
  OK(cuMulticastUnbind(team, 1, granule, granule));
  IS(cuMulticastUnbind(team, 1, granule, granule), CUDA_ERROR_INVALID_VALUE);
  OK(cudaMemset(to, 9, N));
  check(a[granule] == 9 && b[granule] == 7, "what is unbound is reached no more");
  OK(cuMemUnmap(all, N));
  OK(cuMemAddressFree(all, N));
  unmap(a, first);
  check(cudarig_count("cumem") == live + 3 * (long long)N, "memory that is bound lives on");
  OK(cuMemRelease(team));
  unmap(b, second);
  unmap(c, stranger);
  check(cudarig_count("cumem") == live, "and ends with the object");
}

/* The child joins by the descriptor, binds memory of device 1, and waits for the value that the
** parent writes to all. */
static void two_processes(void) {
  CUmemGenericAllocationHandle team, mine;
  CUmulticastObjectProp prop = object_of(2);
  int file = -1, status = -1;
  OK(cuMulticastCreate(&team, &prop));
  OK(cuMemExportToShareableHandle(&file, team, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  pid_t child = fork();
  if (!child) {
    CUmemGenericAllocationHandle same, theirs;
    char *p = memory_of(1, &theirs);
    void *handle = (void *)(intptr_t)file;
    if (!p
        || cuMemImportFromShareableHandle(&same, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
      _exit(1);
    usleep(50000); /* the parent binds, and waits for this device */
    if (cuMulticastAddDevice(same, 1) || cuMulticastBindMem(same, 0, theirs, 0, N, 0)) _exit(2);
    p[0] = 1; /* bound */
    for (int i = 0;
         i < 2000 && __atomic_load_n((unsigned *)(void *)(p + 64), __ATOMIC_ACQUIRE) != 5; i++)
      usleep(1000);
    _exit(*(unsigned *)(void *)(p + 64) == 5 ? 0 : 3);
  }
  char *p = memory_of(0, &mine);
  OK(cuMulticastAddDevice(team, 0));
  OK(cuMulticastBindMem(team, 0, mine, 0, N, 0));
  CUdeviceptr all = mapped(team);
  usleep(300000); /* the child binds */
  OK(cuStreamWriteValue32(NULL, all + 64, 5, 0));
  OK(cudaDeviceSynchronize());
  waitpid(child, &status, 0);
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0 && p && p[64] == 5,
        "a value reaches memory of two processes");
  close(file);
  OK(cuMemUnmap(all, N));
  OK(cuMemAddressFree(all, N));
  OK(cuMemRelease(team));
  unmap(p, mine);
}

void multicast(void) {
  one_process();
  two_processes();
}
