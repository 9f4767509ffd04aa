/* SPDX-License-Identifier: MIT
**
** ask.c - talk to NCCL's RAS: one deadline for the whole exchange and a limit on the answer's bytes, because anything may
** listen at that port.
*/
#include "ras/findings.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE = 15, LINE_MOST = 256 };

typedef struct wire {
  int    fd;
  double until; /* deadline, as mgrid_now counts */
} wire;

/* Wait until the socket can be read or written. Returns false at the deadline. */
static bool is_ready(const wire *w, short what, double until) {
  struct pollfd p = { w->fd, what, 0 };
  for (double left; (left = until - mgrid_now()) > 0;) {
    int n = poll(&p, 1, (int)(left * 1000) + 1);
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
  errno = ETIMEDOUT;
  return false;
}

static bool connects(const wire *w, const struct addrinfo *a, double until) {
  int       failed = 0;
  socklen_t len = sizeof failed;
  if (connect(w->fd, a->ai_addr, a->ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS || !is_ready(w, POLLOUT, until)) return false;
  if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &failed, &len) != 0) return false;
  errno = failed;
  return failed == 0;
}

/* Connect. False: with the reason in `why`. Each address gets a share of the time, so one that does not answer leaves
** some for the others. */
static bool dial(const char *address, wire *w, char *why, size_t room) {
  const double    each = PATIENCE / 3.0;
  char            host[256];
  const char     *colon = strrchr(address, ':');
  struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all = NULL;
  snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - address) : (int)strlen(address), address);
  int failed = getaddrinfo(host, colon ? colon + 1 : "28028", &hints, &all);
  snprintf(why, room, "%s", failed ? gai_strerror(failed) : "no address");
  *w = (wire){ -1, mgrid_now() + PATIENCE };
  for (struct addrinfo *a = failed ? NULL : all; a && w->fd < 0; a = a->ai_next) {
    double until = mgrid_now() + each;
    w->fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (w->fd < 0 || connects(w, a, until < w->until ? until : w->until)) continue;
    snprintf(why, room, "%s", strerror(errno));
    close(w->fd);
    w->fd = -1;
  }
  if (all) freeaddrinfo(all);
  return w->fd >= 0;
}

static bool tell(const wire *w, const char *line) {
  size_t len = strlen(line);
  return is_ready(w, POLLOUT, w->until) && send(w->fd, line, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Receive up to `most` bytes: one line, or with `whole` everything until the peer closes. *len: their number, 0 if the line
** is incomplete. The caller frees the result; NULL: out of memory. */
static char *hear(const wire *w, bool whole, size_t most, size_t *len) {
  size_t room = 0, n = 0, first = whole ? 4096 : LINE_MOST;
  char  *text = NULL;
  bool   ended = false;
  while (!ended && n < most && MGRID_ROOM(text, room, n ? n + 2 : first)) { /* one more, and the final 0 */
    size_t  want = room - 1 - n < most - n ? room - 1 - n : most - n;
    ssize_t got = is_ready(w, POLLIN, w->until) ? recv(w->fd, text + n, whole ? want : 1, 0) : -1;
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) n = 0;
    if (got > 0) n += (size_t)got;
    ended = got <= 0 || (!whole && text[n - 1] == '\n');
  }
  *len = ended || n == most ? n : 0;
  if (text) text[*len] = '\0';
  return text;
}

static bool answers(const wire *w, const char *line, const char *with) {
  size_t len = 0;
  char  *got = tell(w, line) ? hear(w, false, LINE_MOST, &len) : NULL;
  bool   yes = got && strncasecmp(got, with, strlen(with)) == 0;
  free(got);
  return yes;
}

mgrid_status ras_ask(const char *address, json_t **answer, char **text, mgrid_error *err) {
  char   why[128];
  wire   w;
  size_t len = 0;
  *answer = NULL, *text = NULL;
  if (!dial(address, &w, why, sizeof why))
    return mgrid_fail(err, MGRID_MISSING,
                      "no RAS of NCCL at %s (%s); a job of NCCL 2.24 or later on this machine has one, unless its "
                      "NCCL_RAS_ENABLE is 0; NCCL_RAS_ADDR says where",
                      address, why);
  bool  greets = answers(&w, "CLIENT PROTOCOL 2\n", "SERVER PROTOCOL ");
  bool  json = greets && answers(&w, "SET FORMAT json\n", "OK");
  char *got = greets && tell(&w, json ? "STATUS\n" : "VERBOSE STATUS\n") ? hear(&w, true, RAS_MOST + 1, &len) : NULL;
  close(w.fd);
  mgrid_status s = MGRID_OK;
  if (!got || len == 0)
    s = mgrid_fail(err, MGRID_TIMED_OUT, "%s is not the RAS of NCCL, or does not answer within %d seconds", address,
                   PATIENCE);
  else if (json)
    s = ras_read(address, got, len, answer, err);
  else if (len > RAS_MOST)
    s = mgrid_fail(err, MGRID_BACKEND, "the RAS of NCCL at %s gave more than %d MiB", address, RAS_MOST >> 20);
  else /* before 2.28.7 */
    *text = got, got = NULL;
  free(got);
  return s;
}
