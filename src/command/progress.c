/* SPDX-License-Identifier: MIT
**
** progress.c - shows what the command is doing, on the last line of a terminal, if it takes more
** than a second. The library does not call back while it works, so a separate thread watches the
** clock.
*/
#include "command/cli.h"

#include <errno.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static struct {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t ended;
  bool started, done, shown;
  double begun;
  char what[160];
  int64_t bytes; /* written so far */
} now = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char CLEAR[] = "\r\033[K";

static void progress_say(const char *text, size_t len) {
  ssize_t put = write(STDERR_FILENO, text, len);
  (void)put;
}

/* Format the number of bytes written so far: ", 1.5 GiB". */
static void put_bytes(char *to, size_t len) {
  static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
  double n = (double)now.bytes;
  int i = 0;
  while (n >= 1024 && i < 6) n /= 1024, i++;
  mgrid_format(to, len, i == 0 ? ", %.0f %s" : n < 10 ? ", %.2f %s" : ", %.1f %s", n, unit[i]);
}

/* Write the line again, cut to the width of the terminal. The caller holds the lock. */
static void show(void) {
  struct winsize size;
  char line[256], written[48] = "";
  int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  if (now.bytes) put_bytes(written, sizeof written);
  int n = mgrid_format(line, sizeof line, "%smoongrid: %s%s, %.0f s", CLEAR, now.what, written,
                       mgrid_now() - now.begun);
  int most = columns - 1 + (int)sizeof CLEAR - 1;
  progress_say(line, (size_t)(n < most ? n : most));
  now.shown = true;
}

/* Remove the line. The caller holds the lock. */
static void hide(void) {
  if (now.shown) progress_say(CLEAR, sizeof CLEAR - 1);
  now.shown = false;
}

static void *progress_watch(void *unused) {
  struct timespec next;
  (void)unused;
  clock_gettime(CLOCK_MONOTONIC, &next);
  pthread_mutex_lock(&now.lock);
  while (!now.done) {
    next.tv_sec += 1;
    while (!now.done && pthread_cond_timedwait(&now.ended, &now.lock, &next) != ETIMEDOUT) {}
    if (!now.done) show();
  }
  pthread_mutex_unlock(&now.lock);
  return NULL;
}

void cli_progress(const char *what) {
  pthread_condattr_t a;
  if (mgrid_launcher().rank != 0 || !isatty(STDERR_FILENO)) return;
  pthread_mutex_lock(&now.lock);
  snprintf(now.what, sizeof now.what, "%s", what);
  pthread_mutex_unlock(&now.lock);
  if (now.started) return;
  now.begun = mgrid_now(), now.bytes = 0, now.done = false;
  pthread_condattr_init(&a);
  pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
  pthread_cond_init(&now.ended, &a);
  pthread_condattr_destroy(&a);
  /* if there is no thread, nothing is shown */
  now.started = pthread_create(&now.thread, NULL, progress_watch, NULL) == 0;
}

void cli_progress_wrote(size_t bytes) {
  if (!now.started) return;
  pthread_mutex_lock(&now.lock);
  now.bytes += (int64_t)bytes;
  pthread_mutex_unlock(&now.lock);
}

void cli_progress_end(void) {
  if (!now.started) return;
  pthread_mutex_lock(&now.lock);
  now.done = true;
  hide();
  pthread_cond_signal(&now.ended);
  pthread_mutex_unlock(&now.lock);
  pthread_join(now.thread, NULL);
  pthread_cond_destroy(&now.ended);
  now.started = false;
}
