/* SPDX-License-Identifier: MIT
**
** members.c - lists of ranks for a host, which has them as 64-bit numbers: a piece at a time, which stays in the cache, as
** it is held inside, and then made wide.
*/
#include "families/family.h"

enum { PIECE = 2048 }; /* ranks that are made wide together */

static void widen(const int32_t *from, int64_t n, int64_t *to) {
  for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

/* As many of a group's members as there is room for. */
static void put_members(const mgrid_family *f, int64_t group, int64_t n, int64_t *out) {
  int32_t piece[PIECE];
  for (int64_t at = 0; at < n; at += PIECE) {
    int64_t some = n - at < PIECE ? n - at : PIECE;
    mgrid_family_slice(f, group, at, some, piece);
    widen(piece, some, out + at);
  }
}

int64_t mgrid_family_members(const mgrid_family *f, int64_t group, int64_t n, size_t cap, int64_t *out) {
  if (!f || group < 0 || n < 0 || n > f->count - group) return -1;
  int32_t piece[PIECE];
  int64_t written = 0, room = !out ? 0 : cap < INT64_MAX ? (int64_t)cap : INT64_MAX;
  int64_t together = f->max_size > 0 ? PIECE / f->max_size : 0; /* whole groups of a piece */
  for (int64_t g = group, some; g < group + n; g += some) {
    int64_t left = group + n - g, size = mgrid_family_size(f, g);
    some = together < 1 ? 1 : left < together ? left : together;
    if (together > 0 && some * f->max_size <= room - written) {
      size = mgrid_family_groups(f, g, some, piece);
      widen(piece, size, out + written);
    } else {
      some = 1;
      int64_t fits = room - written < size ? room - written : size;
      if (fits > 0) put_members(f, g, fits, out + written);
      if (fits <= 0 && f->size >= 0) return n * f->size;
    }
    written += size;
  }
  return written;
}
