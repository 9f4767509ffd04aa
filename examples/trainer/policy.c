/* SPDX-License-Identifier: MIT
**
** policy.c - what this trainer decides, one small function of plain values each, so that a
** recipe can take a decision over without the trainer being compiled again.
*/
#include "model.h"

#include <math.h>

/* Layers of a pipeline stage. What does not divide goes to the front: the last stage has the
** output matrix and the loss besides. */
int policy_layers(int layers, int stages, int stage) { return layers / stages + (stage < layers % stages); }

/* Parts that a replica's share of the batch is cut into: twice as many as stages keep a pipeline
** busy; the nearest divisor below that is taken. */
int policy_microbatches(int samples, int stages) {
  int n = 2 * stages < samples ? 2 * stages : samples;
  while (samples % n) n--;
  return n;
}

const char *policy_schedule(int stages, int microbatches) {
  (void)stages, (void)microbatches;
  return "1f1b";
}

/* Gradients are summed in buckets of so many bytes. */
size_t policy_bucket_bytes(const char *family, int ranks) {
  (void)family, (void)ranks;
  return (size_t)256 << 10;
}

/* The family over which a parameter's gradient is summed. */
const char *policy_group_of(const char *parameter, bool expert) {
  (void)parameter;
  return expert ? "expert_data" : "dp_cp";
}

/* A short warm-up, then half a cosine down to a tenth. */
double policy_lr(int64_t step, int64_t steps) {
  const double top = 3e-3, warm = 10;
  if ((double)step < warm) return top * ((double)step + 1) / warm;
  double done = ((double)step - warm) / ((double)steps - warm);
  return top * (0.55 + 0.45 * cos(3.14159265358979323846 * done));
}

/* Asked after every step, where the user named a file. */
bool policy_checkpoint(int64_t step, int64_t steps) { return (step + 1) % 50 == 0 || step + 1 == steps; }

/* A call over `family` failed. MPI's communicators cannot go on without a lost rank. */
lost_action policy_on_lost(const char *family, int ranks) {
  (void)family, (void)ranks;
  return LOST_ABORT;
}
