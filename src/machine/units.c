/* SPDX-License-Identifier: MIT
**
** units.c - bandwidths and latencies as text: 400GB/s, 400Gb/s, 3us. B is a byte, b or bit an eighth of it; k, M, G, T
** are powers of 1000, Ki, Mi, Gi, Ti of 1024.
*/
#include "machine/model.h"

#include <stdlib.h>
#include <string.h>

typedef struct unit {
  const char *name;
  double      of; /* bytes a second, seconds */
} unit;

/* Of each kind those that are written first. */
static const unit of_bandwidth[] = {
  { "GB/s", 1e9 },       { "TB/s", 1e12 },       { "MB/s", 1e6 },
  { "kB/s", 1e3 },       { "B/s", 1 },           { "GiB/s", 1073741824 },
  { "MiB/s", 1048576 },  { "KiB/s", 1024 },      { "TiB/s", 1099511627776 },
  { "Gb/s", 1e9 / 8 },   { "Tb/s", 1e12 / 8 },   { "Mb/s", 1e6 / 8 },
  { "Gbit/s", 1e9 / 8 }, { "Tbit/s", 1e12 / 8 }, { "Mbit/s", 1e6 / 8 },
  { "Gbps", 1e9 / 8 },   { "Tbps", 1e12 / 8 },   { "Mbps", 1e6 / 8 },
  { NULL, 0 },
};
static const unit of_latency[] = { { "us", 1e-6 }, { "ns", 1e-9 }, { "ms", 1e-3 }, { "s", 1 }, { NULL, 0 } };

/* Return the unit at the start of a text, which ends before a comma, a bracket, a blank or the end. */
static const unit *unit_at(const unit *units, const char *text, size_t len) {
  for (; units->name; units++)
    if (strlen(units->name) == len && memcmp(units->name, text, len) == 0) return units;
  return NULL;
}

bool mgrid_link_read(const char **at, mgrid_link *link, const char **why) {
  char  *end;
  double n = **at >= '0' && **at <= '9' ? mgrid_read_double(*at, &end) : -1;
  *why = "a bandwidth or a latency, as 400GB/s or 3us";
  if (!(n >= 0)) return false;
  end += strspn(end, " ");
  size_t      len = strcspn(end, " ,]\t\r\n");
  const unit *of = unit_at(of_bandwidth, end, len), *late = of ? NULL : unit_at(of_latency, end, len);
  *why = "a unit behind the number, as 400GB/s, 400Gb/s, 3us or 900ns,";
  if (!of && !late) {
    *at = end;
    return false;
  }
  *why = "a bandwidth above 0 and below 1e18 B/s, or a latency of up to 1000 s";
  if (of ? !(n > 0 && n * of->of < 1e18) : !(n * late->of <= 1000)) return false;
  if (of)
    link->bandwidth = n * of->of;
  else
    link->latency = n * late->of;
  *at = end + len;
  return true;
}

/* Write the number of units with the fewest digits; false: none of 17 digits is read back as the same value. */
static bool put_in(double value, const unit *of, mgrid_text *t) {
  char digits[40];
  for (int n = 1; n <= 17; n++) {
    mgrid_format(digits, sizeof digits, "%.*g", n, value / of->of);
    if (strchr(digits, 'e') || mgrid_read_double(digits, NULL) * of->of != value) continue;
    mgrid_text_add(t, "%s%s", digits, of->name);
    return true;
  }
  return false;
}

/* Write the value in units that fit it. Where the multiplication by a unit skips over it, 17 digits of the unit 1 are
** exact: different machines have different texts. */
static void put(double value, const unit *units, int which, int one, mgrid_text *t) {
  if (!put_in(value, &units[which], t)) mgrid_text_add(t, "%.17g%s", value, units[one].name);
}

static void bandwidth_text(double bandwidth, mgrid_text *t) {
  enum { GB, TB, MB, ONE = 4 };
  put(bandwidth, of_bandwidth, bandwidth >= 1e14 ? TB : bandwidth >= 1e8 ? GB : bandwidth >= 1e5 ? MB : ONE, ONE, t);
}

static void latency_text(double latency, mgrid_text *t) {
  enum { US, NS, ONE = 3 };
  put(latency, of_latency, latency < 5e-7 ? NS : latency < 0.1 ? US : ONE, ONE, t);
}

void mgrid_link_text(mgrid_link link, mgrid_text *t) {
  if (link.bandwidth <= 0 && link.latency <= 0) return;
  mgrid_text_str(t, "[");
  if (link.bandwidth > 0) bandwidth_text(link.bandwidth, t);
  if (link.latency > 0 && link.bandwidth > 0) mgrid_text_str(t, ",");
  if (link.latency > 0) latency_text(link.latency, t);
  mgrid_text_str(t, "]");
}
