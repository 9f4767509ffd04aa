/* SPDX-License-Identifier: MIT
**
** fit.c - the latency of a level and the share of its bandwidth from times that somebody measured:
** a line through them, by least squares of relative errors. Each is of a group with one member in
** each domain, which has the links for itself.
*/
#include "step/price.h"

#include <math.h>
#include <string.h>

/* What the fastest of many bytes takes: hops and bytes over one link, as in cost.c: rings, and
** messages all at once. */
static bool travel_of(step_kind kind, double n, double bytes, double *hops, double *over) {
  double part = (n - 1) / n * bytes;
  switch (kind) {
  case STEP_ALL_REDUCE: return *hops = 2 * (n - 1), *over = 2 * part, true;
  case STEP_ALL_GATHER:
  case STEP_REDUCE_SCATTER: return *hops = n - 1, *over = part, true;
  case STEP_BROADCAST:
  case STEP_REDUCE: return *hops = n - 1, *over = bytes, true;
  case STEP_ALL_TO_ALL: return *hops = 1, *over = part, true;
  case STEP_SEND: return *hops = 1, *over = bytes, true;
  default: return false;
  }
}

bool mgrid_step_fits(step_kind kind) {
  double hops, over;
  return travel_of(kind, 2, 1, &hops, &over);
}

static double seconds_of(const step_measured *x, double call, double latency, double each) {
  double hops = 0, over = 0;
  travel_of(x->kind, x->members, x->bytes, &hops, &over);
  return call + hops * latency + over * each;
}

void mgrid_step_fit(const step_measured *all, size_t n, double call, double bandwidth,
                    step_fit *out) {
  double hh = 0, hb = 0, bb = 0, ht = 0, bt = 0; /* the normal equations, in hops and bytes */
  for (size_t i = 0; i < n; i++) {
    double h = 0, b = 0, t = all[i].seconds;
    travel_of(all[i].kind, all[i].members, all[i].bytes, &h, &b);
    h /= t, b /= t, t = (t - call) / t;
    hh += h * h, hb += h * b, bb += b * b, ht += h * t, bt += b * t;
  }
  /* each: seconds a byte */
  double det = hh * bb - hb * hb, latency = 0, each = bb > 0 ? bt / bb : 0;
  if (det > 1e-12 * hh * bb) {
    latency = (ht * bb - bt * hb) / det, each = (bt * hh - ht * hb) / det;
    if (latency < 0) latency = 0, each = bt / bb;
  }
  if (!(each > 1 / bandwidth)) { /* no faster than the link */
    each = 1 / bandwidth;
    latency = fmax(0, hh > 0 ? (ht - each * hb) / hh : 0);
  }
  *out = (step_fit){ .n = n, .latency = latency, .share = 1 / (each * bandwidth) };
  double error[STEP_MEASURED_MAX];
  for (size_t i = 0; i < n; i++) {
    double e = fabs(seconds_of(&all[i], call, latency, each) / all[i].seconds - 1);
    size_t k = i;
    for (; k > 0 && error[k - 1] > e; k--) error[k] = error[k - 1];
    error[k] = e;
  }
  out->median = n ? error[(n - 1) / 2] : 0, out->worst = n ? error[n - 1] : 0;
}
