/* SPDX-License-Identifier: MIT
**
** slicing.c - how an axis is cut into pieces; where each piece starts and ends; which pieces of two
** slicings overlap. A run is a range of consecutive indices of the axis; a piece has one or more
** runs. In this file, a part is one of several arrays side by side on the axis, each cut by itself,
** as q in a fused qkv. Divisions and loops over runs answer the questions, not loops over elements.
*/
#include "tensors/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ================================================================== the rule */

enum { BLOCKS_MAX = 1 << 24 }; /* blocks of a cyclic axis */

void mgrid_slicing_free(mgrid_slicing *s) {
  free(s->starts);
  free(s->bounds);
  free(s->owners);
  free(s->first);
  free(s->runs);
}

size_t mgrid_slicing_held(const mgrid_slicing *s) {
  size_t bytes = (s->nparts + 1) * sizeof *s->starts, pieces = (size_t)s->pieces + 1;
  if (s->bounds) bytes += pieces * sizeof *s->bounds;
  if (s->owners)
    bytes += (size_t)(s->length / s->unit) * sizeof *s->owners + pieces * sizeof *s->first
             + (size_t)s->first[s->pieces] * sizeof *s->runs;
  return bytes;
}

void mgrid_slicing_dims(const mgrid_slicing *s, const mgrid_grid *g, mgrid_text *t) {
  for (size_t i = 0; i < s->ndims; i++)
    mgrid_text_add(t, "%s%s %" PRId64, i ? " x " : "", g->axis[s->dim[i]].name, s->size[i]);
  if (s->ndims > 1) mgrid_text_add(t, " = %" PRId64, s->pieces);
}

static mgrid_status set_parts(mgrid_slicing *s, size_t n, const int64_t *parts, mgrid_error *err) {
  s->nparts = n ? n : 1;
  s->starts = calloc(s->nparts + 1, sizeof *s->starts);
  if (!s->starts) return mgrid_oom(err);
  s->starts[s->nparts] = s->length;

  int64_t sum = 0;
  for (size_t i = 0; i < n; i++) {
    if (parts[i] < 1)
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "axis '%s': part %zu has %" PRId64 " elements; parts have 1 or more",
                        s->name, i, parts[i]);
    s->starts[i] = sum;
    if (__builtin_add_overflow(sum, parts[i], &sum))
      return mgrid_fail(err, MGRID_OVERFLOW, "axis '%s': the sum of its parts overflows 64 bits",
                        s->name);
    if (sum > s->length) break;
  }

  if (n && sum != s->length)
    return mgrid_fail(err, MGRID_REFUSED,
                      "axis '%s': its parts sum to %s%" PRId64 ", but its length is %" PRId64,
                      s->name, sum > s->length ? "at least " : "", sum, s->length);
  return MGRID_OK;
}

static mgrid_status set_bounds(mgrid_slicing *s, const mgrid_grid *g, size_t n,
                               const int64_t *bounds, mgrid_error *err) {
  mgrid_text t = { 0 };
  mgrid_status status = MGRID_OK;

  mgrid_slicing_dims(s, g, &t);
  if (t.failed)
    status = mgrid_oom(err);
  else if (n != (size_t)s->pieces + 1)
    status = mgrid_fail(err, MGRID_REFUSED,
                        "axis '%s' has %zu bounds, but its %" PRId64 " pieces (%s) need %" PRId64,
                        s->name, n, s->pieces, t.data, s->pieces + 1);
  mgrid_text_free(&t);
  if (status) return status;
  for (size_t i = 0; i < n; i++) {
    int64_t low = i ? bounds[i - 1] : 0, high = i + 1 < n ? s->length : bounds[i];
    bool end = i == 0 || i + 1 == n;
    if (end && bounds[i] != (i ? s->length : 0))
      return mgrid_fail(err, MGRID_REFUSED,
                        "axis '%s': its bounds go from %" PRId64 " to %" PRId64
                        ", but must go from 0 to %" PRId64,
                        s->name, bounds[0], bounds[n - 1], s->length);
    if (bounds[i] < low || bounds[i] > high)
      return mgrid_fail(err, MGRID_REFUSED,
                        "axis '%s': bound %zu is %" PRId64 ", and the bound before it is %" PRId64
                        "; bounds must ascend to %" PRId64,
                        s->name, i, bounds[i], low, s->length);
  }
  s->bounds = malloc(n * sizeof *bounds);
  if (!s->bounds) return mgrid_oom(err);
  memcpy(s->bounds, bounds, n * sizeof *bounds);
  return MGRID_OK;
}

/* Return whether this unit is the first of a run. */
static bool slicing_begins(const mgrid_slicing *s, int64_t unit) {
  return unit == 0 || s->owners[unit] != s->owners[unit - 1];
}

/* Find the runs of each piece, in one list, piece by piece. Count them first: the loops set first[k
** + 1] to the index of the first run of piece k. Then write each run of piece k at index first[k +
** 1], and add 1 to first[k + 1]. At the end first[k + 1] is the index after the last run of piece
** k, where piece k + 1 begins. */
static mgrid_status set_runs(mgrid_slicing *s, mgrid_error *err) {
  int64_t units = s->length / s->unit;
  /* pieces + 1 numbers, and one more for counting */
  s->first = calloc((size_t)s->pieces + 2, sizeof *s->first);
  if (!s->first) return mgrid_oom(err);
  for (int64_t i = 0; i < units; i++) s->first[s->owners[i] + 2] += slicing_begins(s, i);
  for (int64_t k = 1; k <= s->pieces; k++) s->first[k + 1] += s->first[k];
  s->runs = malloc((size_t)s->first[s->pieces + 1] * sizeof *s->runs);
  if (!s->runs) return mgrid_oom(err);
  for (int64_t i = 0; i < units; i++) {
    /* the index of the piece's next run */
    int64_t *at = &s->first[s->owners[i] + 1];
    if (slicing_begins(s, i)) s->runs[(*at)++] = (mgrid_run){ i * s->unit, 0 };
    s->runs[*at - 1].length += s->unit;
  }
  return MGRID_OK;
}

static mgrid_status set_owners(mgrid_slicing *s, const mgrid_grid *g, size_t n,
                               const int64_t *owners, mgrid_error *err) {
  int64_t units = s->length / s->unit;

  if ((int64_t)n != units)
    return mgrid_fail(err, MGRID_REFUSED,
                      "axis '%s' has %zu owners, but its %" PRId64 " %s need one each", s->name, n,
                      units, s->unit > 1 ? "units" : "elements");
  s->owners = malloc(n * sizeof *s->owners);
  if (!s->owners) return mgrid_oom(err);
  for (size_t i = 0; i < n; i++) {
    if (owners[i] < 0 || owners[i] >= s->pieces) {
      mgrid_text t = { 0 };
      mgrid_slicing_dims(s, g, &t);
      mgrid_status status = t.failed ? mgrid_oom(err)
                                     : mgrid_fail(err, MGRID_OUT_OF_RANGE,
                                                  "axis '%s': the owner of %s %zu is %" PRId64
                                                  ", but its pieces (%s) are 0 to %" PRId64,
                                                  s->name, s->unit > 1 ? "unit" : "element", i,
                                                  owners[i], t.data, s->pieces - 1);
      mgrid_text_free(&t);
      return status;
    }
    s->owners[i] = (int32_t)owners[i];
  }
  return set_runs(s, err);
}

/* Refuse too many blocks, because walks go from block to block. */
static mgrid_status check_blocks(const mgrid_slicing *s, mgrid_error *err) {
  int64_t sum = 0;
  for (size_t i = 0; i < s->nparts; i++)
    sum += mgrid_slicing_blocks(s, s->starts[i + 1] - s->starts[i]);
  if (sum <= BLOCKS_MAX) return MGRID_OK;
  return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                    "axis '%s': with %" PRId64 " elements in a block there are %" PRId64
                    " blocks; at most %d are allowed",
                    s->name, s->block, sum, BLOCKS_MAX);
}

/* Return the greatest common divisor of the lengths of all parts. */
static int64_t divides_all(const mgrid_slicing *s) {
  int64_t a = s->starts[1];
  for (size_t i = 1; i < s->nparts; i++)
    for (int64_t b = s->starts[i + 1] - s->starts[i]; b;) {
      int64_t rest = a % b;
      a = b, b = rest;
    }
  return a;
}

/* Refuse a unit that does not divide each part. The error names the nearest units that do. */
static mgrid_status check_unit(const mgrid_slicing *s, mgrid_error *err) {
  for (size_t i = 0; i < s->nparts; i++) {
    int64_t n = s->starts[i + 1] - s->starts[i], below, above;
    char where[32] = "", other[32] = "";
    if (n % s->unit == 0) continue;
    mgrid_nearest_divisors(divides_all(s), s->unit, &below, &above); /* 1 is always below */
    if (s->nparts > 1) snprintf(where, sizeof where, "part %zu, ", i);
    if (above) snprintf(other, sizeof other, " or %" PRId64, above);
    return mgrid_fail(err, MGRID_REFUSED,
                      "axis '%s': unit %" PRId64 " does not divide %s%" PRId64
                      " elements; nearest: %" PRId64 "%s",
                      s->name, s->unit, where, n, below, other);
  }
  return MGRID_OK;
}

/* Return how many neighbouring pieces get the same unit of a part; 0 if the units would have
** different numbers of copies. */
static int64_t copies_of(const mgrid_slicing *s, size_t part) {
  int64_t units = mgrid_slicing_units(s, part);
  return units >= s->pieces ? 1 : s->pieces % units ? 0 : s->pieces / units;
}

/* Divide the sizes of the dims by the number of copies. The copies of a piece are neighbours, so
** they fill the last dim, then the dim before it, and so on. Example: with cp 6 x tp 4, 8 copies of a
** piece fill tp and 2 coordinates of cp. Return false if the copies do not divide a dim that they do
** not fill, as 3 copies and tp 4. */
static bool share_dims(mgrid_slicing *s) {
  int64_t left = s->copies;
  for (size_t k = s->ndims; k-- > 0 && left > 1;) {
    int64_t here = left % s->size[k] == 0 ? s->size[k] : left;
    if (s->size[k] % here) return false;
    s->size[k] /= here;
    left /= here;
  }
  s->pieces /= s->copies;
  return true;
}

/* If there are fewer units than pieces, neighbouring pieces get the same unit. Make them one piece
** with several copies. */
static mgrid_status set_copies(mgrid_slicing *s, const mgrid_grid *g, mgrid_error *err) {
  const char *what = s->unit > 1 ? "units" : "elements";
  mgrid_text dims = { 0 };
  mgrid_status status = MGRID_OK;

  mgrid_slicing_dims(s, g, &dims);
  if (dims.failed) status = mgrid_oom(err);
  s->copies = copies_of(s, 0);
  for (size_t i = 0; i < s->nparts && !status; i++) {
    int64_t n = mgrid_slicing_units(s, i), copies = copies_of(s, i);
    char part[32] = "";
    if (s->nparts > 1) snprintf(part, sizeof part, " of part %zu", i);
    if (copies == 0)
      status = mgrid_fail(
          err, MGRID_REFUSED,
          "axis '%s': %" PRId64 " %s%s cannot have equally many copies for %s; nearest: %" PRId64
          " or %" PRId64 " pieces",
          s->name, n, what, part, dims.data, s->pieces / n * n, (s->pieces / n + 1) * n);
    else if (copies != s->copies)
      status = mgrid_fail(err, MGRID_REFUSED,
                          "axis '%s': %" PRId64 " %s of part 0 and %" PRId64 "%s have %" PRId64
                          " and %" PRId64 " copies for %s; make each part a tensor",
                          s->name, mgrid_slicing_units(s, 0), what, n, part, s->copies, copies,
                          dims.data);
  }
  if (!status && !share_dims(s))
    status = mgrid_fail(err, MGRID_REFUSED,
                        "axis '%s': %" PRId64 " copies of each of %" PRId64
                        " %s do not fit into %s; the last dims are "
                        "filled first",
                        s->name, s->copies, mgrid_slicing_units(s, 0), what, dims.data);
  mgrid_text_free(&dims);
  return status;
}

/* Return whether each piece is one run, and only the last pieces may be empty. */
static bool slicing_is_plain(const mgrid_slicing *s) {
  if (s->pieces == 1) return true;
  if (s->nparts > 1 || s->cutting == MGRID_CUT_CYCLIC || s->owners) return false;
  int64_t n = s->length / s->unit, empty = 0;
  if (s->cutting == MGRID_CUT_BOUNDS) {
    for (int64_t i = 0; i < s->pieces; i++) {
      if (s->bounds[i + 1] == s->bounds[i])
        empty++;
      else if (empty)
        return false;
    }
    return true;
  }
  return s->ndims == 1 || n % s->pieces == 0 || (s->cutting == MGRID_CUT_EVEN && n >= s->pieces);
}

mgrid_status mgrid_slicing_init(mgrid_slicing *s, const mgrid_grid *g,
                                const mgrid_tensor_axis *given, mgrid_error *err) {
  s->cutting = s->ndims ? given->cutting : MGRID_CUT_EVEN;
  s->unit = s->ndims && given->unit ? given->unit : 1;
  s->block = s->ndims && s->cutting == MGRID_CUT_CYCLIC ? given->block : 1;
  s->copies = 1;
  mgrid_status status = set_parts(s, s->ndims ? given->nparts : 0, given->parts, err);
  if (status) return status;

  if (s->unit < 1)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "axis '%s': the unit is %" PRId64 "; it must be 1 to %" PRId64, s->name,
                      s->unit, s->length);
  if (s->block < 1)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "axis '%s': a block has %" PRId64 " elements; it must have 1 to %" PRId64,
                      s->name, s->block, s->length);
  if (s->block > s->length) s->block = s->length; /* the first block has all elements */

  bool copies = s->ndims && given->copies;
  if (copies && s->cutting != MGRID_CUT_EVEN && s->cutting != MGRID_CUT_CEIL)
    return mgrid_fail(err, MGRID_REFUSED,
                      "axis '%s': %s say what every piece has, so they cannot have copies", s->name,
                      s->cutting == MGRID_CUT_CYCLIC   ? "cyclic blocks"
                      : s->cutting == MGRID_CUT_BOUNDS ? "bounds"
                                                       : "owners");

  if (s->cutting == MGRID_CUT_BOUNDS) {
    if (s->nparts > 1 || s->unit > 1)
      return mgrid_fail(err, MGRID_REFUSED,
                        "axis '%s': bounds say where every piece ends, so they cannot have %s",
                        s->name, s->unit > 1 ? "a unit" : "parts");
    status = set_bounds(s, g, given->nbounds, given->bounds, err);
  } else if (s->cutting == MGRID_CUT_CYCLIC) {
    if (s->unit > 1)
      return mgrid_fail(
          err, MGRID_REFUSED,
          "axis '%s': its cyclic blocks are its units, so it cannot have another unit", s->name);
    status = check_blocks(s, err);
  } else if (s->cutting == MGRID_CUT_OWNERS) {
    if (s->nparts > 1)
      return mgrid_fail(err, MGRID_REFUSED,
                        "axis '%s': owners say where every element goes, so they cannot have parts",
                        s->name);
    status = check_unit(s, err);
    if (!status) status = set_owners(s, g, given->nowners, given->owners, err);
  } else if (s->cutting == MGRID_CUT_EVEN || s->cutting == MGRID_CUT_CEIL) {
    status = check_unit(s, err);
  } else {
    status =
        mgrid_fail(err, MGRID_USAGE, "axis '%s': %d is not a way to cut", s->name, (int)s->cutting);
  }

  if (!status && copies) status = set_copies(s, g, err);
  s->plain = !status && slicing_is_plain(s);
  return status;
}

void mgrid_slicing_text(const mgrid_slicing *s, const mgrid_grid *g, mgrid_text *t) {
  mgrid_text_str(t, s->name);
  mgrid_text_str(t, " ");
  mgrid_text_int(t, s->length);
  for (size_t i = 0; i < s->ndims; i++) {
    mgrid_text_str(t, i ? "," : " by ");
    mgrid_text_str(t, g->axis[s->dim[i]].name);
  }

  if (s->ndims == 0) return;
  if (s->cutting == MGRID_CUT_CEIL) mgrid_text_str(t, " ceil");
  if (s->cutting == MGRID_CUT_CYCLIC) mgrid_text_add(t, " cyclic %" PRId64, s->block);
  if (s->unit > 1) mgrid_text_add(t, " unit %" PRId64, s->unit);
  if (s->nparts > 1) {
    mgrid_text_str(t, " parts");
    for (size_t i = 0; i < s->nparts; i++)
      mgrid_text_add(t, "%s%" PRId64, i ? "," : " ", s->starts[i + 1] - s->starts[i]);
  }

  if (s->copies > 1) mgrid_text_str(t, " copies");
  for (int64_t i = 0; s->bounds && i <= s->pieces; i++) {
    mgrid_text_str(t, i ? "," : " bounds ");
    mgrid_text_int(t, s->bounds[i]);
  }
  for (int64_t i = 0; s->owners && i < s->length / s->unit; i++) {
    mgrid_text_str(t, i ? "," : " owners ");
    mgrid_text_int(t, s->owners[i]);
  }
}

void mgrid_slicing_json(const mgrid_slicing *s, const mgrid_grid *g, mgrid_text *t) {
  mgrid_text_add(t, "{\"name\":\"%s\",\"length\":%" PRId64, s->name, s->length);
  for (size_t i = 0; i < s->ndims; i++) {
    mgrid_text_str(t, i ? "," : ",\"by\":[");
    mgrid_text_quoted(t, g->axis[s->dim[i]].name);
  }
  if (s->ndims > 0) mgrid_text_str(t, "]");

  if (s->cutting == MGRID_CUT_CEIL) mgrid_text_str(t, ",\"ceil\":true");
  if (s->cutting == MGRID_CUT_CYCLIC) mgrid_text_add(t, ",\"cyclic\":%" PRId64, s->block);
  if (s->unit > 1) mgrid_text_add(t, ",\"unit\":%" PRId64, s->unit);

  for (size_t i = 0; i < s->nparts && s->nparts > 1; i++) {
    mgrid_text_str(t, i ? "," : ",\"parts\":[");
    mgrid_text_int(t, s->starts[i + 1] - s->starts[i]);
  }
  if (s->nparts > 1) mgrid_text_str(t, "]");
  if (s->copies > 1) mgrid_text_str(t, ",\"copies\":true");

  if (s->bounds)
    mgrid_text_str(t, ",\"bounds\":"), mgrid_text_numbers(t, (size_t)s->pieces + 1, s->bounds);
  for (int64_t i = 0; s->owners && i < s->length / s->unit; i++) {
    mgrid_text_str(t, i ? "," : ",\"owners\":[");
    mgrid_text_int(t, s->owners[i]);
  }
  mgrid_text_str(t, s->owners ? "]}" : "}");
}

/* ==================================================================== pieces */

/* ---------------------------------------------------------- pieces of a part */

/* Divide n elements into k shares. Return share c. */
static mgrid_run share(mgrid_cutting cutting, int64_t n, int64_t k, int64_t c) {
  if (cutting == MGRID_CUT_CEIL) {
    int64_t each = n / k + (n % k > 0), start = mgrid_min(c * each, n);
    return (mgrid_run){ start, mgrid_min(each, n - start) };
  }
  return (mgrid_run){ c * (n / k) + mgrid_min(c, n % k), n / k + (c < n % k) };
}

/* Return which of the k shares of n elements has element x. */
static int64_t slicing_share_of(mgrid_cutting cutting, int64_t n, int64_t k, int64_t x) {
  if (cutting == MGRID_CUT_CEIL) return x / (n / k + (n % k > 0));
  int64_t each = n / k, larger = n % k, before = larger * (each + 1);
  return x < before ? x / (each + 1) : larger + (x - before) / each;
}

/* Return the run of a piece in a part of n elements. The first dim cuts the part, the next dim cuts
** each share of the first, and so on. The axis is neither cyclic nor listed by owners. */
static mgrid_run run_in(const mgrid_slicing *s, int64_t n, int64_t piece) {
  if (s->cutting == MGRID_CUT_BOUNDS)
    return (mgrid_run){ s->bounds[piece], s->bounds[piece + 1] - s->bounds[piece] };
  int64_t below = s->pieces;
  mgrid_run r = { 0, n / s->unit };
  for (size_t i = 0; i < s->ndims; i++) {
    below /= s->size[i];
    mgrid_run in = share(s->cutting, r.length, s->size[i], piece / below % s->size[i]);
    r = (mgrid_run){ r.start + in.start, in.length };
  }
  return (mgrid_run){ r.start * s->unit, r.length * s->unit };
}

/* Return the piece that has element x of a part of n elements: the inverse of run_in. */
static int64_t piece_in(const mgrid_slicing *s, int64_t n, int64_t x) {
  int64_t piece = 0;

  if (s->cutting == MGRID_CUT_BOUNDS) { /* find the last piece that starts at x or before */
    int64_t high = s->pieces;
    while (high - piece > 1) {
      int64_t middle = piece + (high - piece) / 2;
      if (s->bounds[middle] <= x)
        piece = middle;
      else
        high = middle;
    }
    return piece;
  }
  x /= s->unit;
  n /= s->unit;
  for (size_t i = 0; i < s->ndims; i++) {
    int64_t c = slicing_share_of(s->cutting, n, s->size[i], x);
    mgrid_run in = share(s->cutting, n, s->size[i], c);
    piece = piece * s->size[i] + c;
    x -= in.start;
    n = in.length;
  }
  return piece;
}

/* Return the first block of a piece of a cyclic axis. From this block on, the piece has every
** `pieces`-th block. The first dim deals the blocks to its coordinates in turn; the next dim deals
** the blocks of each of these coordinates, and so on. */
static int64_t first_block(const mgrid_slicing *s, int64_t piece) {
  int64_t below = s->pieces, before = 1, block = 0;
  for (size_t i = 0; i < s->ndims; i++) {
    below /= s->size[i];
    block += piece / below % s->size[i] * before;
    before *= s->size[i];
  }
  return block;
}

/* Return the piece that has a block: the inverse of first_block. */
static int64_t piece_dealt(const mgrid_slicing *s, int64_t block) {
  int64_t piece = 0;
  for (size_t i = 0; i < s->ndims; i++) {
    piece = piece * s->size[i] + block % s->size[i];
    block /= s->size[i];
  }
  return piece;
}

/* ------------------------------------------------------------------- walking */

/* Go to the next run of the piece, which may touch the run before it. */
static bool slicing_step(mgrid_walk *w, mgrid_run *run) {
  const mgrid_slicing *s = w->s;

  if (s->owners) {
    if (w->block < 0) w->block = s->first[w->piece];
    if (w->block == s->first[w->piece + 1]) return false;
    *run = s->runs[w->block++];
    return true;
  }
  for (; w->part < s->nparts; w->part++, w->block = -1) {
    int64_t from = s->starts[w->part], n = s->starts[w->part + 1] - from;
    if (s->pieces == 1 || s->cutting != MGRID_CUT_CYCLIC) {
      *run = s->pieces == 1 ? (mgrid_run){ 0, n } : run_in(s, n, w->piece);
      run->start += from;
      if (run->length == 0) continue;
      w->part++;
      return true;
    }
    if (w->block < 0) w->block = first_block(s, w->piece);
    if (w->block >= mgrid_slicing_blocks(s, n)) continue;
    *run = (mgrid_run){ from + w->block * s->block, mgrid_min(s->block, n - w->block * s->block) };
    w->block += s->pieces;
    return true;
  }
  return false;
}

mgrid_walk mgrid_walk_begin(const mgrid_slicing *s, int64_t piece) {
  mgrid_walk w = { s, piece, 0, -1, { 0, 0 } };
  if (!slicing_step(&w, &w.next)) w.next.length = 0;
  return w;
}

bool mgrid_walk_next(mgrid_walk *w, mgrid_run *run) {
  if (w->next.length == 0) return false;
  *run = w->next;
  while (slicing_step(w, &w->next)) {
    if (w->next.start != run->start + run->length) return true;
    run->length += w->next.length;
  }
  w->next.length = 0;
  return true;
}

/* ----------------------------------------------------------------- questions */

static mgrid_run only_run(const mgrid_slicing *s, int64_t piece) {
  return s->pieces == 1 ? (mgrid_run){ 0, s->length } : run_in(s, s->length, piece);
}

/* Return how many indices two runs have in common. */
static int64_t both(mgrid_run x, mgrid_run y) {
  return mgrid_max(0,
                   mgrid_min(x.start + x.length, y.start + y.length) - mgrid_max(x.start, y.start));
}

int64_t mgrid_piece_in_part(const mgrid_slicing *s, size_t part, int64_t piece) {
  int64_t n = s->starts[part + 1] - s->starts[part], sum = 0;
  if (s->pieces == 1) return n;
  if (s->owners) {
    for (int64_t i = s->first[piece]; i < s->first[piece + 1]; i++) sum += s->runs[i].length;
    return sum;
  }
  if (s->cutting != MGRID_CUT_CYCLIC) return run_in(s, n, piece).length;
  /* whole blocks first, then the rest of the last block */
  int64_t first = first_block(s, piece), blocks = n / s->block;
  sum = (blocks / s->pieces + (first < blocks % s->pieces)) * s->block;
  return first == blocks % s->pieces ? sum + n % s->block : sum;
}

int64_t mgrid_piece_size(const mgrid_slicing *s, int64_t piece) {
  int64_t sum = 0;
  if (s->pieces == 1) return s->length;
  for (size_t i = 0; i < s->nparts; i++) sum += mgrid_piece_in_part(s, i, piece);
  return sum;
}

int64_t mgrid_pieces_common(const mgrid_slicing *a, int64_t p, const mgrid_slicing *b, int64_t q) {
  if (a->plain && b->plain) return both(only_run(a, p), only_run(b, q));
  mgrid_walk wa = mgrid_walk_begin(a, p), wb = mgrid_walk_begin(b, q);
  mgrid_run x, y;
  int64_t sum = 0;
  bool more = mgrid_walk_next(&wa, &x) && mgrid_walk_next(&wb, &y);
  while (more) {
    sum += both(x, y);
    more = x.start + x.length < y.start + y.length ? mgrid_walk_next(&wa, &x)
                                                   : mgrid_walk_next(&wb, &y);
  }
  return sum;
}

/* ----------------------------------------------------------------- overlaps */

static int64_t slicing_piece_at(const mgrid_slicing *s, int64_t x) {
  return s->pieces == 1 ? 0 : piece_in(s, s->length, x);
}

/* Set room[k] for each piece k that has elements of a run. */
static void slicing_mark(const mgrid_slicing *s, mgrid_run run, int64_t *room) {
  if (s->owners) {
    for (int64_t k = run.start / s->unit; k <= (run.start + run.length - 1) / s->unit; k++)
      room[s->owners[k]] = 1;
    return;
  }
  for (size_t i = 0; i < s->nparts; i++) {
    int64_t from = s->starts[i], n = s->starts[i + 1] - from;
    int64_t low = mgrid_max(run.start, from) - from,
            high = mgrid_min(run.start + run.length, from + n) - from;
    if (low >= high) continue;

    if (s->pieces > 1 && s->cutting == MGRID_CUT_CYCLIC) {
      /* `pieces` consecutive blocks are one of each piece, so more need not be marked */
      int64_t first = low / s->block,
              last = first + mgrid_min((high - 1) / s->block - first, s->pieces - 1);
      for (int64_t k = first; k <= last; k++) room[piece_dealt(s, k % s->pieces)] = 1;
      continue;
    }

    int64_t last = s->pieces == 1 ? 0 : piece_in(s, n, high - 1);
    for (int64_t k = s->pieces == 1 ? 0 : piece_in(s, n, low); k <= last; k++)
      if (s->pieces == 1 || run_in(s, n, k).length > 0) room[k] = 1;
  }
}

bool mgrid_overlaps_find(mgrid_overlaps *m, const mgrid_slicing *a, int64_t p,
                         const mgrid_slicing *b) {
  m->list = NULL;
  m->n = m->low = 0;
  if (a->plain && b->plain) {
    mgrid_run r = only_run(a, p);
    if (r.length == 0) return true;
    m->low = slicing_piece_at(b, r.start);
    m->n = slicing_piece_at(b, r.start + r.length - 1) - m->low + 1;
    return true;
  }

  int64_t *room = realloc(m->room, (size_t)b->pieces * sizeof *room);
  if (!room) return false;
  m->room = room;
  memset(room, 0, (size_t)b->pieces * sizeof *room);

  mgrid_run run;
  mgrid_walk w = mgrid_walk_begin(a, p);
  while (mgrid_walk_next(&w, &run)) slicing_mark(b, run, room);
  for (int64_t k = 0; k < b->pieces; k++)
    if (room[k]) room[m->n++] = k;

  m->low = m->n ? room[0] : 0;
  if (m->n && room[m->n - 1] - room[0] != m->n - 1) m->list = room;
  return true;
}

int64_t mgrid_overlaps_index(const mgrid_overlaps *m, int64_t piece) {
  if (!m->list) return piece >= m->low && piece - m->low < m->n ? piece - m->low : -1;
  int64_t low = 0, high = m->n;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (m->list[middle] <= piece)
      low = middle;
    else
      high = middle;
  }
  return m->n && m->list[low] == piece ? low : -1;
}
