/* SPDX-License-Identifier: MIT
**
** plot.c - loss curves as one SVG: the losses, and the distance of each curve from the first.
**
** Curves of layouts that train alike cover each other, so the lower half shows their differences:
** |loss - first| / first, in powers of ten.
*/
#include "model.h"
#include "base/files.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct curve {
  char name[100];
  size_t n, room;
  double *step, *loss;
} curve;

/* A part of the page, and the range of its values. */
typedef struct panel {
  double left, top, width, height;
  double x0, x1, y0, y1;
} panel;

static double px(const panel *p, double x) {
  return p->left + p->width * (x - p->x0) / (p->x1 - p->x0);
}
static double py(const panel *p, double y) {
  return p->top + p->height * (p->y1 - y) / (p->y1 - p->y0);
}

static const char *const colors[] = { "#1b6ca8", "#d1495b", "#2e8b57", "#e09f3e",
                                      "#6a4c93", "#00798c", "#8d5524", "#555555" };
enum { NCOLORS = sizeof colors / sizeof colors[0] };

static bool read_curve(const char *path, curve *c) {
  FILE *f = fopen(path, "r");
  char line[200];
  if (!f) {
    fprintf(stderr, "trainer: %s: %s\n", path, strerror(errno));
    return false;
  }
  snprintf(c->name, sizeof c->name, "%s", path);
  while (fgets(line, sizeof line, f)) {
    double step, loss;
    if (line[0] == '#') {
      line[strcspn(line, "\n")] = 0;
      snprintf(c->name, sizeof c->name, "%.99s", line + 1 + strspn(line + 1, " "));
    }
    if (sscanf(line, "%lf %lf", &step, &loss) != 2) continue;
    if (c->n == c->room) {
      c->room = c->room ? 2 * c->room : 128;
      c->step = realloc(c->step, c->room * sizeof(double));
      c->loss = realloc(c->loss, c->room * sizeof(double));
      if (!c->step || !c->loss) break;
    }
    c->step[c->n] = step;
    c->loss[c->n++] = loss;
  }
  fclose(f);
  if (!c->n) fprintf(stderr, "trainer: %s: no curve\n", path);
  return c->n > 0;
}

/* Return 1, 2 or 5 times a power of ten, so that about n steps of this size fill `range`. */
static double nice_step(double range, int n) {
  double raw = range / n, power = pow(10, floor(log10(raw)));
  return (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10) * power;
}

static void axes(FILE *f, const panel *p, double dx, double dy, bool powers, const char *title) {
  fprintf(f, "<text x='%.1f' y='%.1f' class='t'>%s</text>\n", p->left, p->top - 8, title);
  for (double y = ceil(p->y0 / dy - 1e-9) * dy; y <= p->y1 + dy * 1e-9; y += dy) {
    fprintf(f, "<path class='g' d='M%.1f %.1fh%.1f'/>", p->left, py(p, y), p->width);
    fprintf(f, "<text x='%.1f' y='%.1f' text-anchor='end'>", p->left - 6, py(p, y) + 4);
    if (powers)
      fprintf(f, "1e%.0f</text>\n", y);
    else
      fprintf(f, "%g</text>\n", fabs(y) < dy / 2 ? 0 : y);
  }
  for (double x = ceil(p->x0 / dx) * dx; x <= p->x1 + dx * 1e-9; x += dx)
    fprintf(f,
            "<path class='g' d='M%.1f %.1fv%.1f'/><text x='%.1f' y='%.1f' "
            "text-anchor='middle'>%g</text>\n",
            px(p, x), p->top, p->height, px(p, x), p->top + p->height + 16, x);
}

/* Curves of losses cover each other, so each of the n curves is drawn in dashes at places of its
** own. With `first` draw the difference from the first curve, as a solid line. */
static void line(FILE *f, const panel *p, const curve *c, const curve *first, size_t i, size_t n) {
  fprintf(f, "<polyline fill='none' stroke='%s' ", colors[i % NCOLORS]);
  if (first)
    fprintf(f, "stroke-width='1.2' points='");
  else
    fprintf(f, "stroke-width='2.5' stroke-dasharray='9 %zu' stroke-dashoffset='-%zu' points='",
            9 * (n - 1), 9 * i);
  for (size_t k = 0; k < c->n; k++) {
    double y = c->loss[k];
    if (first) {
      if (k >= first->n) break;
      y = fabs(y - first->loss[k]) / first->loss[k];
      y = y > 0 ? log10(y) : p->y0; /* equal values are at the bottom */
      y = y < p->y0 ? p->y0 : y > p->y1 ? p->y1 : y;
    }
    fprintf(f, "%.1f,%.1f ", px(p, c->step[k]), py(p, y));
  }
  fprintf(f, "'/>\n");
}

/* Names come from files: escape characters of XML. */
static void escape(FILE *f, const char *s) {
  for (; *s; s++) {
    if (*s == '<' || *s == '>' || *s == '&')
      fprintf(f, "&#%d;", *s);
    else if ((unsigned char)*s >= ' ')
      fputc(*s, f);
  }
}

static void draw(FILE *f, const curve *c, size_t n) {
  panel loss = { 60, 36, 560, 260, 0, 1, c[0].loss[0], c[0].loss[0] },
        off = { 60, 350, 560, 130, 0, 1, -17, -5 };
  size_t height = 520 + 20 * n;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < c[i].n; k++) {
      if (c[i].step[k] > loss.x1) loss.x1 = c[i].step[k];
      if (c[i].loss[k] < loss.y0) loss.y0 = c[i].loss[k];
      if (c[i].loss[k] > loss.y1) loss.y1 = c[i].loss[k];
    }
  if (loss.y1 <= loss.y0) loss.y1 = loss.y0 + 1;
  off.x1 = loss.x1;
  double dy = nice_step(loss.y1 - loss.y0, 6), dx = nice_step(loss.x1, 8);
  loss.y0 = floor(loss.y0 / dy) * dy, loss.y1 = ceil(loss.y1 / dy) * dy;

  fprintf(
      f,
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 640 %zu' width='640' height='%zu'>\n",
      height, height);
  fprintf(f, "<style>text{font:12px "
             "sans-serif;fill:#333}.t{font-weight:bold}.g{stroke:#ddd;fill:none}</style>\n");
  fprintf(f, "<rect width='640' height='%zu' fill='white'/>\n", height);
  axes(f, &loss, dx, dy, false, "loss by step; curves on each other take turns");
  for (size_t i = 0; i < n; i++) line(f, &loss, &c[i], NULL, i, n);
  axes(f, &off, dx, 3, true, "relative difference from the first curve");
  for (size_t i = 1; i < n; i++) line(f, &off, &c[i], &c[0], i, n);
  for (size_t i = 0; i < n; i++) {
    double y = 520 + 20 * (double)i;
    fprintf(f, "<path d='M60 %.0fh24' stroke='%s' stroke-width='4'/><text x='92' y='%.0f'>", y,
            colors[i % NCOLORS], y + 4);
    escape(f, c[i].name);
    fprintf(f, "</text>\n");
  }
  fprintf(f, "</svg>\n");
}

int plot(const char *path, int n, const char *const *curves) {
  curve *c = room((size_t)n, sizeof *c);
  bool ok = true;
  for (int i = 0; i < n && ok; i++) ok = read_curve(curves[i], &c[i]);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_output *out = ok ? mgrid_output_file(path, MGRID_WRITE_OVER, &e) : NULL;
  FILE *f = out ? mgrid_output_stream(out) : NULL;
  if (f) draw(f, c, (size_t)n);
  mgrid_output_end(out, e.status, &e);
  if (e.status) fprintf(stderr, "trainer: %s\n", e.message);
  ok &= !e.status;
  for (int i = 0; i < n; i++) free(c[i].step), free(c[i].loss);
  free(c);
  return ok ? 0 : exit_code(MGRID_USAGE);
}
