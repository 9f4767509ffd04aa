/* SPDX-License-Identifier: MIT
**
** slicing.c - the rule that cuts one axis: making it, its refusals, its text. axis.c divides by it.
*/
#include "tensors/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* Append "tp 3", or "dp 2 x tp 3 = 6". */
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
      return mgrid_fail(err, MGRID_OUT_OF_RANGE, "axis '%s': part %zu has %" PRId64 " elements; parts have 1 or more",
                        s->name, i, parts[i]);
    s->starts[i] = sum;
    if (__builtin_add_overflow(sum, parts[i], &sum))
      return mgrid_fail(err, MGRID_OVERFLOW, "axis '%s': the sum of its parts overflows 64 bits", s->name);
    if (sum > s->length) break;
  }
  if (n && sum != s->length)
    return mgrid_fail(err, MGRID_REFUSED, "axis '%s': its parts sum to %s%" PRId64 ", its length is %" PRId64, s->name,
                      sum > s->length ? "at least " : "", sum, s->length);
  return MGRID_OK;
}

static mgrid_status set_bounds(mgrid_slicing *s, const mgrid_grid *g, size_t n, const int64_t *bounds,
                               mgrid_error *err) {
  mgrid_text   t = { 0 };
  mgrid_status status = MGRID_OK;
  mgrid_slicing_dims(s, g, &t);
  if (t.failed)
    status = mgrid_oom(err);
  else if (n != (size_t)s->pieces + 1)
    status = mgrid_fail(err, MGRID_REFUSED, "axis '%s': %zu bounds; %s pieces have %" PRId64, s->name, n, t.data,
                        s->pieces + 1);
  mgrid_text_free(&t);
  if (status) return status;
  for (size_t i = 0; i < n; i++) {
    int64_t low = i ? bounds[i - 1] : 0, high = i + 1 < n ? s->length : bounds[i];
    bool    end = i == 0 || i + 1 == n;
    if (end && bounds[i] != (i ? s->length : 0))
      return mgrid_fail(err, MGRID_REFUSED,
                        "axis '%s': its bounds go from %" PRId64 " to %" PRId64 ", not from 0 to %" PRId64, s->name,
                        bounds[0], bounds[n - 1], s->length);
    if (bounds[i] < low || bounds[i] > high)
      return mgrid_fail(err, MGRID_REFUSED,
                        "axis '%s': bound %zu is %" PRId64 " after %" PRId64 "; bounds ascend to %" PRId64, s->name, i,
                        bounds[i], low, s->length);
  }
  s->bounds = malloc(n * sizeof *bounds);
  if (!s->bounds) return mgrid_oom(err);
  memcpy(s->bounds, bounds, n * sizeof *bounds);
  return MGRID_OK;
}

/* Return whether this unit is the first of a run. */
static bool begins(const mgrid_slicing *s, int64_t unit) { return unit == 0 || s->owners[unit] != s->owners[unit - 1]; }

/* Find the runs of each piece, by counting them. */
static mgrid_status set_runs(mgrid_slicing *s, mgrid_error *err) {
  int64_t units = s->length / s->unit;
  s->first = calloc((size_t)s->pieces + 2, sizeof *s->first); /* one more, for counting */
  if (!s->first) return mgrid_oom(err);
  for (int64_t i = 0; i < units; i++) s->first[s->owners[i] + 2] += begins(s, i);
  for (int64_t k = 1; k <= s->pieces; k++) s->first[k + 1] += s->first[k];
  s->runs = malloc((size_t)s->first[s->pieces + 1] * sizeof *s->runs);
  if (!s->runs) return mgrid_oom(err);
  for (int64_t i = 0; i < units; i++) {
    int64_t *at =
        &s->first[s->owners[i] + 1]; /* where the piece's next run goes; at the end, where the next piece's start */
    if (begins(s, i)) s->runs[(*at)++] = (mgrid_run){ i * s->unit, 0 };
    s->runs[*at - 1].length += s->unit;
  }
  return MGRID_OK;
}

static mgrid_status set_owners(mgrid_slicing *s, const mgrid_grid *g, size_t n, const int64_t *owners,
                               mgrid_error *err) {
  int64_t units = s->length / s->unit;
  if ((int64_t)n != units)
    return mgrid_fail(err, MGRID_REFUSED, "axis '%s': %zu owners; its %" PRId64 " %s have one each", s->name, n, units,
                      s->unit > 1 ? "units" : "elements");
  s->owners = malloc(n * sizeof *s->owners);
  if (!s->owners) return mgrid_oom(err);
  for (size_t i = 0; i < n; i++) {
    if (owners[i] < 0 || owners[i] >= s->pieces) {
      mgrid_text t = { 0 };
      mgrid_slicing_dims(s, g, &t);
      mgrid_status status = t.failed ? mgrid_oom(err)
                                     : mgrid_fail(err, MGRID_OUT_OF_RANGE,
                                                  "axis '%s': owner %zu is %" PRId64 "; %s pieces are 0 to %" PRId64,
                                                  s->name, i, owners[i], t.data, s->pieces - 1);
      mgrid_text_free(&t);
      return status;
    }
    s->owners[i] = (int32_t)owners[i];
  }
  return set_runs(s, err);
}

/* Refuse too many blocks: walks over pieces go from block to block. */
static mgrid_status check_blocks(const mgrid_slicing *s, mgrid_error *err) {
  int64_t sum = 0;
  for (size_t i = 0; i < s->nparts; i++) sum += mgrid_slicing_blocks(s, s->starts[i + 1] - s->starts[i]);
  if (sum <= BLOCKS_MAX) return MGRID_OK;
  return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                    "axis '%s': blocks of %" PRId64 " elements are %" PRId64 " in all; there are at most %d", s->name,
                    s->block, sum, BLOCKS_MAX);
}

/* Return the largest size that divides all parts. */
static int64_t divides_all(const mgrid_slicing *s) {
  int64_t a = s->starts[1];
  for (size_t i = 1; i < s->nparts; i++)
    for (int64_t b = s->starts[i + 1] - s->starts[i]; b;) {
      int64_t rest = a % b;
      a = b, b = rest;
    }
  return a;
}

/* Refuse a unit that does not divide each part, and name units that would. */
static mgrid_status check_unit(const mgrid_slicing *s, mgrid_error *err) {
  for (size_t i = 0; i < s->nparts; i++) {
    int64_t n = s->starts[i + 1] - s->starts[i], below, above;
    char    where[32] = "", other[32] = "";
    if (n % s->unit == 0) continue;
    mgrid_nearest_divisors(divides_all(s), s->unit, &below, &above); /* 1 is always below */
    if (s->nparts > 1) snprintf(where, sizeof where, "part %zu, ", i);
    if (above) snprintf(other, sizeof other, " or %" PRId64, above);
    return mgrid_fail(err, MGRID_REFUSED,
                      "axis '%s': unit %" PRId64 " does not divide %s%" PRId64 " elements; nearest: %" PRId64 "%s",
                      s->name, s->unit, where, n, below, other);
  }
  return MGRID_OK;
}

/* Return into how many neighbouring pieces each unit of a part goes; 0: not all units into equally many. */
static int64_t copies_of(const mgrid_slicing *s, size_t part) {
  int64_t units = mgrid_slicing_units(s, part);
  return units >= s->pieces ? 1 : s->pieces % units ? 0 : s->pieces / units;
}

/* Divide the sizes of the dims by the copies, the innermost first. False: the copies of a piece would begin or end
** inside of a coordinate of an outer dim. */
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

/* Where there are fewer units than pieces, give neighbouring pieces the same unit: make them one piece with copies. */
static mgrid_status set_copies(mgrid_slicing *s, const mgrid_grid *g, mgrid_error *err) {
  const char  *what = s->unit > 1 ? "units" : "elements";
  mgrid_text   dims = { 0 };
  mgrid_status status = MGRID_OK;
  mgrid_slicing_dims(s, g, &dims);
  if (dims.failed) status = mgrid_oom(err);
  s->copies = copies_of(s, 0);
  for (size_t i = 0; i < s->nparts && !status; i++) {
    int64_t n = mgrid_slicing_units(s, i), copies = copies_of(s, i);
    char    part[32] = "";
    if (s->nparts > 1) snprintf(part, sizeof part, " of part %zu", i);
    if (copies == 0)
      status = mgrid_fail(err, MGRID_REFUSED,
                          "axis '%s': %" PRId64 " %s%s cannot have equally many copies for %s; nearest: %" PRId64
                          " or %" PRId64 " pieces",
                          s->name, n, what, part, dims.data, s->pieces / n * n, (s->pieces / n + 1) * n);
    else if (copies != s->copies)
      status = mgrid_fail(err, MGRID_REFUSED,
                          "axis '%s': %" PRId64 " %s of part 0 and %" PRId64 "%s have %" PRId64 " and %" PRId64
                          " copies for %s; make each part a tensor",
                          s->name, mgrid_slicing_units(s, 0), what, n, part, s->copies, copies, dims.data);
  }
  if (!status && !share_dims(s))
    status = mgrid_fail(err, MGRID_REFUSED,
                        "axis '%s': %" PRId64 " copies of each of %" PRId64 " %s do not fit into %s; the last dims are "
                        "filled first",
                        s->name, s->copies, mgrid_slicing_units(s, 0), what, dims.data);
  mgrid_text_free(&dims);
  return status;
}

/* Return whether each piece is one run, and only the last ones are empty. */
static bool is_plain(const mgrid_slicing *s) {
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

mgrid_status mgrid_slicing_init(mgrid_slicing *s, const mgrid_grid *g, const mgrid_tensor_axis *given,
                                mgrid_error *err) {
  s->cutting = s->ndims ? given->cutting : MGRID_CUT_EVEN;
  s->unit = s->ndims && given->unit ? given->unit : 1;
  s->block = s->ndims && s->cutting == MGRID_CUT_CYCLIC ? given->block : 1;
  s->copies = 1;
  mgrid_status status = set_parts(s, s->ndims ? given->nparts : 0, given->parts, err);
  if (status) return status;
  if (s->unit < 1)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "axis '%s': unit %" PRId64 "; units are 1 to %" PRId64, s->name, s->unit,
                      s->length);
  if (s->block < 1)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "axis '%s': blocks of %" PRId64 " elements; blocks are 1 to %" PRId64,
                      s->name, s->block, s->length);
  if (s->block > s->length) s->block = s->length; /* all in the first block */
  bool copies = s->ndims && given->copies;
  if (copies && s->cutting != MGRID_CUT_EVEN && s->cutting != MGRID_CUT_CEIL)
    return mgrid_fail(err, MGRID_REFUSED, "axis '%s': %s say what every piece has, so they cannot have copies", s->name,
                      s->cutting == MGRID_CUT_CYCLIC   ? "cyclic blocks"
                      : s->cutting == MGRID_CUT_BOUNDS ? "bounds"
                                                       : "owners");
  if (s->cutting == MGRID_CUT_BOUNDS) {
    if (s->nparts > 1 || s->unit > 1)
      return mgrid_fail(err, MGRID_REFUSED, "axis '%s': bounds say where every piece ends, so they cannot have %s",
                        s->name, s->unit > 1 ? "a unit" : "parts");
    status = set_bounds(s, g, given->nbounds, given->bounds, err);
  } else if (s->cutting == MGRID_CUT_CYCLIC) {
    if (s->unit > 1)
      return mgrid_fail(err, MGRID_REFUSED, "axis '%s': cyclic blocks are the unit, so they cannot have another",
                        s->name);
    status = check_blocks(s, err);
  } else if (s->cutting == MGRID_CUT_OWNERS) {
    if (s->nparts > 1)
      return mgrid_fail(err, MGRID_REFUSED, "axis '%s': owners say where every element goes, so they cannot have parts",
                        s->name);
    status = check_unit(s, err);
    if (!status) status = set_owners(s, g, given->nowners, given->owners, err);
  } else if (s->cutting == MGRID_CUT_EVEN || s->cutting == MGRID_CUT_CEIL) {
    status = check_unit(s, err);
  } else {
    status = mgrid_fail(err, MGRID_USAGE, "axis '%s': %d is not a way to cut", s->name, (int)s->cutting);
  }
  if (!status && copies) status = set_copies(s, g, err);
  s->plain = !status && is_plain(s);
  return status;
}

static void list_text(size_t n, const int64_t *list, mgrid_text *t) {
  for (size_t i = 0; i < n; i++) {
    mgrid_text_str(t, i ? "," : " ");
    mgrid_text_int(t, list[i]);
  }
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
  if (s->cutting == MGRID_CUT_BOUNDS) {
    mgrid_text_str(t, " bounds");
    list_text((size_t)s->pieces + 1, s->bounds, t);
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
  if (s->bounds) mgrid_text_str(t, ",\"bounds\":"), mgrid_text_numbers(t, (size_t)s->pieces + 1, s->bounds);
  for (int64_t i = 0; s->owners && i < s->length / s->unit; i++) {
    mgrid_text_str(t, i ? "," : ",\"owners\":[");
    mgrid_text_int(t, s->owners[i]);
  }
  mgrid_text_str(t, s->owners ? "]}" : "}");
}
