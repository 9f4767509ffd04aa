/* SPDX-License-Identifier: MIT
**
** files.c - file descriptors for NCCL: raise the soft limit of this process to the hard limit if communicators may
** need more, and log it. NCCL raises it only in a process that serves a unique id.
*/
#include "comm/nccl/nccl.h"

#include <dirent.h>
#include <inttypes.h>
#include <sys/resource.h>

/* Return the number of open descriptors; 0 without /proc. */
static int64_t open_now(void) {
  DIR    *list = opendir("/proc/self/fd");
  int64_t n = 0;
  while (list && readdir(list)) n++;
  if (list) closedir(list);
  return n > 3 ? n - 3 : 0; /* without ".", ".." and the list */
}

/* Return how many files these communicators may open. Ranks that share a GPU are on different hosts for NCCL, and with
** several machines a group may be spread over them. */
static int64_t needed_by(const nccl_backend *m, size_t n, const mgrid_comm_spec *spec) {
  bool    spread = m->options.share_gpu || m->local_size < m->base.world;
  int64_t files = 0;
  for (size_t i = 0; i < n; i++) {
    mgrid_demand d;
    if (spec[i].size < 2 || !mgrid_nccl_makes(spec[i].backend)) continue;
    mgrid_nccl_demand(&spec[i].options->nccl, spec[i].size, spread ? 1 : spec[i].size, false, &d);
    files += d.files;
  }
  return files;
}

void mgrid_nccl_files(const nccl_backend *m, size_t n, const mgrid_comm_spec *spec) {
  struct rlimit limit;
  int64_t       files = needed_by(m, n, spec), needed = open_now() + files;
  if (files == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= (rlim_t)needed) return;
  rlim_t was = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (was < limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) == 0)
    mgrid_log(&m->base.hooks, MGRID_LOG_INFO,
              MAKER ": the limit of open files is raised from %" PRIu64 " to %" PRIu64
                    ": communicators may need %" PRId64,
              (uint64_t)was, (uint64_t)limit.rlim_max, needed);
  if (limit.rlim_max < (rlim_t)needed)
    mgrid_log(&m->base.hooks, MGRID_LOG_WARN,
              MAKER ": communicators of rank %" PRId64 " may need %" PRId64
                    " open files, and the hard limit is %" PRIu64
                    ": raise it (ulimit -Hn), or let families use fewer channels (nccl = { max_ctas = ... })",
              m->base.rank, needed, (uint64_t)limit.rlim_max);
}
