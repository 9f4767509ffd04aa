/* SPDX-License-Identifier: MIT
**
** meaning.c - fuzz target: a recipe means the same in every process. Each input, as of recipe.c, is
** evaluated here and in a twin, another process of this program with addresses, a process id, an
** environment and folders of its own, and both must say the same: errors, those that the recipe
** catches by pcall, what it prints, plan and digest.
*/
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

enum { ROOM = 1 << 18, MOST = 1 << 16 }; /* bytes of what is said, and of an input */

typedef struct said {
  uint32_t n;
  char text[ROOM];
} said;

static said ours, theirs;
static int twin = -1; /* a socket */

static int say(void *ud, const char *text, size_t len) {
  said *s = ud;
  if (len > ROOM - s->n) len = ROOM - s->n;
  memcpy(s->text + s->n, text, len);
  s->n += (uint32_t)len;
  return 0;
}

static void log_line(void *ud, mgrid_level level, const char *message) {
  if (level != MGRID_LOG_RECIPE) return;
  say(ud, message, strlen(message));
  say(ud, "\n", 1);
}

static void say_error(said *s, const mgrid_error *e) {
  char text[sizeof e->message + 64];
  say(s, text,
      (size_t)snprintf(text, sizeof text, "%d %d %s\n", (int)e->status, e->line, e->message));
}

static void plan(said *s, mgrid_runtime *rt, int64_t world) {
  char digest[33] = "";
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = mgrid_runtime_plan(rt, world, NULL, 0, NULL, &e);
  say_error(s, &e);
  if (p) {
    mgrid_plan_digest(p, digest);
    say(s, digest, strlen(digest));
    mgrid_plan_print(p, say, s, &e);
    mgrid_plan_print_json(p, world - 1, say, s, &e);
  }
  mgrid_plan_free(p);
}

static void evaluate(said *s, const uint8_t *data, size_t size) {
  /* on the recipe's first line, so that lines stay what they are */
  static const char recorder[] =
      "local pcall = (function(call) return function(...) local all = table.pack(call(...)) if not "
      "all[1] then print(all[2]) end return table.unpack(all, 1, all.n) end end)(pcall) ";
  static char text[sizeof recorder + MOST];
  static const int64_t worlds[] = { 8, 1, 12, 64 };
  size_t skip = strlen(recorder);
  mgrid_limits limits = MGRID_LIMITS_INIT;
  mgrid_hooks hooks = MGRID_HOOKS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  if (size > MOST) size = MOST;
  memcpy(text, recorder, skip);
  if (size > 1) memcpy(text + skip, data + 1, size - 1);
  const char *path = fuzz_file(".lua", text, skip + (size > 1 ? size - 1 : 0));
  char folder[128];
  /* the host has the same path for the recipe, in another folder */
  int back = open(".", O_RDONLY | O_DIRECTORY);
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  if (back < 0 || chdir(folder) != 0) abort();
  s->n = 0;
  limits.memory = 8 << 20, limits.instructions = 300000, limits.seconds = limits.call_seconds = 5;
  hooks.ud = s, hooks.log = log_line;
  mgrid_runtime *rt = mgrid_runtime_new(&limits, &hooks, &e);
  if (mgrid_runtime_load(rt, "./input.lua", NULL, 0, &e) == MGRID_OK) {
    mgrid_runtime_describe(rt, false, say, s, &e);
    plan(s, rt, worlds[size ? data[0] & 3 : 0]);
  }
  say_error(s, &e);
  mgrid_runtime_free(rt);
  if (fchdir(back) != 0 || close(back) != 0) abort();
}

/* ------------------------------------------------------------------ the twin */

static void move_all(int fd, void *data, size_t size, bool out) {
  for (char *at = data; size > 0;) {
    ssize_t n = out ? write(fd, at, size) : read(fd, at, size);
    if (n < 0 && errno == EINTR) continue; /* libFuzzer looks at the clock */
    if (n <= 0) {
      CHECK(twin < 0); /* it has ended by the input */
      _exit(0);
    }
    at += n, size -= (size_t)n;
  }
}

_Noreturn static void serve(int fd) {
  static uint8_t input[MOST];
  for (uint32_t size = 0;;) {
    move_all(fd, &size, sizeof size, false);
    move_all(fd, input, size, false);
    evaluate(&ours, input, size);
    move_all(fd, &ours.n, sizeof ours.n, true);
    move_all(fd, ours.text, ours.n, true);
  }
}

static void start_twin(void) {
  static const char *const argv[] = { "a-twin-with-a-longer-name", NULL };
  static char socket_of[32], asan[] = "ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1",
                             in[128];
  const char *const env[] = { socket_of,       asan,         in,  "LC_ALL=C.UTF-8", "LANG=de_DE",
                              "TZ=Asia/Tokyo", "HOME=/none", NULL };
  int pair[2];
  const char *const at = getenv("FUZZ_FOLDER");
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) abort();
  snprintf(in, sizeof in, "FUZZ_FOLDER=%.100s", at ? at : "/tmp");
  snprintf(socket_of, sizeof socket_of, "FUZZ_TWIN=%d", pair[1]);
  if (fork() == 0) {
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    close(pair[0]);
    if (self >= 0 && chdir("/") == 0)
      fexecve(self, (char **)(uintptr_t)argv, (char **)(uintptr_t)env);
    _exit(1);
  }
  close(pair[1]);
  twin = pair[0];
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  const char *fd = getenv("FUZZ_TWIN");
  (void)argc, (void)argv;
  if (fd) serve(atoi(fd));
  return 0;
}

/* Where the clock has stopped one of them, it may have let the other go on. */
static bool is_slow(const said *s) {
  return memmem(s->text, s->n, "processor time", strlen("processor time"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t n = size > MOST ? MOST : (uint32_t)size;
  if (twin < 0) start_twin();
  move_all(twin, &n, sizeof n, true);
  move_all(twin, (void *)(uintptr_t)data, n, true);
  evaluate(&ours, data, n);
  move_all(twin, &theirs.n, sizeof theirs.n, false);
  CHECK(theirs.n <= ROOM);
  move_all(twin, theirs.text, theirs.n, false);
  if (getenv("FUZZ_SAYS"))
    fprintf(stderr, "here:\n%.*s\nthere:\n%.*s\n", (int)ours.n, ours.text, (int)theirs.n,
            theirs.text);
  CHECK(is_slow(&ours) || is_slow(&theirs)
        || (ours.n == theirs.n && memcmp(ours.text, theirs.text, ours.n) == 0));
  return 0;
}
