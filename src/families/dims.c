/* SPDX-License-Identifier: MIT
**
** dims.c - check the names and sizes of dims: whether their product fits, and if not, which sizes would.
*/
#include "families/grid.h"

#include <inttypes.h>
#include <string.h>

mgrid_status mgrid_dims_check(size_t n, const mgrid_dim *dims, mgrid_error *err) {
  if (n > MGRID_DIMS_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "a grid has at most %d dims, not %zu", MGRID_DIMS_MAX, n);
  if (mgrid_lacks_list(n, dims, "dims", err)) return MGRID_USAGE;
  const char *fill = NULL;
  for (size_t i = 0; i < n; i++) {
    const char *name = dims[i].name;
    if (!mgrid_is_name(name))
      return mgrid_fail(err, MGRID_BAD_VALUE,
                        "'%s' is not a dim name (a letter or _, then letters, digits or _; at most %d)",
                        name ? name : "", MGRID_NAME_MAX);
    for (size_t j = 0; j < i; j++)
      if (strcmp(dims[j].name, name) == 0)
        return mgrid_fail(err, MGRID_DUPLICATE, "dim '%s' occurs twice in the grid", name);
    if (dims[i].size == MGRID_FILL) {
      if (fill)
        return mgrid_fail(err, MGRID_DUPLICATE, "dims '%s' and '%s' are both to be inferred; only one can be", fill,
                          name);
      fill = name;
    } else if (dims[i].size < 1 || dims[i].size > MGRID_WORLD_MAX) {
      return mgrid_fail(err, MGRID_OUT_OF_RANGE, "dim '%s' has size %" PRId64 "; sizes are 1 to %" PRId64, name,
                        dims[i].size, MGRID_WORLD_MAX);
    }
  }
  return MGRID_OK;
}

/* Append "tp 3 x pp 2 = 6"; sizes of 1 are left out where there are larger ones. */
static void product_text(mgrid_text *t, size_t n, const mgrid_dim *dims, int64_t product) {
  size_t shown = 0;
  for (size_t i = 0; i < n; i++)
    if (dims[i].size != MGRID_FILL && (dims[i].size != 1 || product == 1))
      mgrid_text_add(t, "%s%s %" PRId64, shown++ ? " x " : "", dims[i].name, dims[i].size);
  if (shown == 0) mgrid_text_add(t, "1");
  if (shown > 1) mgrid_text_add(t, " = %" PRId64, product);
}

/* Append the sizes that would fit (0: none): "; nearest: tp 2 or 4" for a dim, ", or a world of 6 or 9 ranks" for a
** place. `said`: the message has such a text already. Return whether a size was added. */
static bool nearest_text(mgrid_text *t, int said, const char *dim, const char *place, int64_t below, int64_t above) {
  if (!below && !above) return false;
  mgrid_text_add(t, said ? ", or " : "; nearest: ");
  if (dim)
    mgrid_text_add(t, "%s ", dim);
  else
    mgrid_text_add(t, "%s %s of ", *place == 'o' ? "an" : "a", place);
  if (below) mgrid_text_add(t, "%" PRId64, below);
  if (below && above) mgrid_text_add(t, " or ");
  if (above) mgrid_text_add(t, "%" PRId64, above);
  if (!dim) mgrid_text_add(t, " ranks");
  return true;
}

/* Refuse the sizes. The message names the first dim that could be resized to fit, and wholes that fit. */
static mgrid_status refuse_product(const mgrid_whole *whole, size_t n, const mgrid_dim *dims, int64_t product,
                                   bool fill, mgrid_error *err) {
  mgrid_text t = { 0 };
  product_text(&t, n, dims, product);
  mgrid_text_add(&t, fill ? " does not divide " : " does not make ");
  if (whole->dim)
    mgrid_text_add(&t, "%s %" PRId64, whole->dim, whole->size);
  else
    mgrid_text_add(&t, "the %" PRId64 " rank%s", whole->size, mgrid_s_of(whole->size));
  if (!whole->dim && strcmp(whole->place, "world") != 0) mgrid_text_add(&t, " of the %s", whole->place);
  int near = 0;
  for (size_t i = 0; i < n && !near; i++) {
    if (dims[i].size == MGRID_FILL || (fill && dims[i].size == 1)) continue;
    int64_t others = product / dims[i].size, below = 0, above = 0;
    if (whole->size % others != 0) continue;
    if (fill)
      mgrid_nearest_divisors(whole->size / others, dims[i].size, &below, &above);
    else
      below = whole->size / others;
    near += nearest_text(&t, near, dims[i].name, NULL, below, above);
  }
  int64_t down = fill ? whole->size / product * product : product;
  int64_t up = fill && product <= MGRID_WORLD_MAX - down ? down + product : 0;
  nearest_text(&t, near, whole->dim, whole->place, down <= MGRID_WORLD_MAX ? down : 0, up);
  mgrid_status s = t.failed ? mgrid_oom(err) : mgrid_fail(err, MGRID_REFUSED, "%s", t.data);
  mgrid_text_free(&t);
  return s;
}

int64_t mgrid_dims_fill(const mgrid_whole *whole, size_t n, const mgrid_dim *dims, mgrid_error *err) {
  int64_t product = 1;
  bool    fill = false;
  for (size_t i = 0; i < n; i++) {
    if (dims[i].size == MGRID_FILL) {
      fill = true;
    } else if (__builtin_mul_overflow(product, dims[i].size, &product)) {
      mgrid_fail(err, MGRID_OVERFLOW, "the product of the sizes overflows 64 bits at dim '%s'", dims[i].name);
      return 0;
    }
  }
  if (fill ? whole->size % product == 0 : product == whole->size) return whole->size / product;
  refuse_product(whole, n, dims, product, fill, err);
  return 0;
}
