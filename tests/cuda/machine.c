/* SPDX-License-Identifier: MIT
**
** machine.c - the machine that CUDARIG_MACHINE describes: a name, or words that change the default.
*/
#include "rig.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name, *text;
} machines[] = {
  { "nvswitch", "gpus=8 links=18" },       { "nvls", "gpus=8 links=18 multicast=1" },
  { "pairs", "gpus=4 links=4 to=pair" },   { "pcie", "gpus=8 links=0" },
  { "hosts", "gpus=16 links=18 hosts=2" },
};

rig_manner rig_the_manner = { .runtime = CUDA_VERSION, .needed = CUDA_VERSION, .major = 1000 };

static rig_machine machine = {
  .gpus = 8, .hosts = 1, .capability = 90, .links = 18, .driver = RIG_SAME, .memory = 80LL << 30
};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool read_word(const char *word) {
  char *end;
  if (!strcmp(word, "to=pair")) return machine.pairs = true;
  if (!strcmp(word, "to=switch")) return machine.pairs = false, true;
  if (!strcmp(word, "driver=stub")) return machine.driver = RIG_STUB, true;
  const char *value = strchr(word, '=');
  if (!value) return false;
  size_t key = (size_t)(value - word);
  long long n = strtoll(++value, &end, 10);
  if (end == value || *end || n < 0) return false;
  if (!strncmp(word, "gpus", key) && n <= RIG_DEVICES) return machine.gpus = (int)n, true;
  if (!strncmp(word, "links", key) && n <= 18) return machine.links = (int)n, true;
  if (!strncmp(word, "hosts", key) && n > 0) return machine.hosts = (int)n, true;
  if (!strncmp(word, "capability", key)) return machine.capability = (int)n, true;
  if (!strncmp(word, "driver", key)) return machine.driver = (int)n, true;
  if (!strncmp(word, "multicast", key)) return machine.multicast = n != 0, true;
  if (!strncmp(word, "memory", key)) return machine.memory = n * (1LL << 20), true;
  return false;
}

/* A machine that cannot be read has no device, so that nothing runs on another one than was
** meant. */
static bool read_words(const char *text) {
  char *copy = strdup(text), *save = NULL;
  bool ok = copy;
  for (char *w = ok ? strtok_r(copy, " ,", &save) : NULL; w && ok;
       w = strtok_r(NULL, " ,", &save)) {
    bool known = false;
    for (size_t i = 0; i < sizeof machines / sizeof *machines && !known; i++)
      if (!strcmp(w, machines[i].name)) known = ok = read_words(machines[i].text);
    if (known) continue;
    ok = read_word(w);
    if (!ok)
      rig_say(
          "CUDARIG_MACHINE: '%s' is neither a machine nor a word of one: the machine has no GPU",
          w);
  }
  free(copy);
  return ok;
}

static void read_machine(void) {
  const char *text = getenv("CUDARIG_MACHINE");
  if (!text) text = rig_the_manner.machine;
  if (text && !read_words(text)) machine.gpus = 0;
}

const rig_machine *rig_the_machine(void) {
  pthread_once(&once, read_machine);
  return &machine;
}

int rig_driver(void) {
  int driver = rig_the_machine()->driver;
  return driver == RIG_SAME ? rig_the_manner.runtime : driver == RIG_STUB ? 0 : driver;
}

/* The numbers are those of the runtime, which the driver does not know. */
int rig_refuses(void) {
  enum { STUB_LIBRARY = 34, INSUFFICIENT_DRIVER = 35 };
  if (rig_the_machine()->driver == RIG_STUB) return STUB_LIBRARY;
  if (rig_driver() / rig_the_manner.major < rig_the_manner.needed / rig_the_manner.major)
    return INSUFFICIENT_DRIVER;
  return rig_devices() ? 0 : CUDA_ERROR_NO_DEVICE;
}

int rig_physical(int device) {
  const char *at = getenv("CUDA_VISIBLE_DEVICES");
  int n = rig_the_machine()->gpus;
  if (device < 0) return -1;
  if (!at) return device < n ? device : -1;
  for (int i = 0;; i++) { /* the list ends at the first that is not a device */
    char *end;
    long d = strtol(at, &end, 10);
    if (end == at || d < 0 || d >= n) return -1;
    if (i == device) return (int)d;
    at = end + (*end == ',');
  }
}

int rig_devices(void) {
  int n = 0;
  while (rig_physical(n) >= 0) n++;
  return n;
}

int rig_bus(int physical) { return 0x10 + physical; }

bool rig_peers(int a, int b) {
  const rig_machine *m = rig_the_machine();
  int each = m->gpus / m->hosts;
  return a != b && (each == 0 || a / each == b / each);
}

bool rig_linked(int a, int b) {
  return rig_the_machine()->links && rig_peers(a, b)
         && (!rig_the_machine()->pairs || a / 2 == b / 2);
}
