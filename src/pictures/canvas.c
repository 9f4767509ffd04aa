/* SPDX-License-Identifier: MIT
**
** canvas.c - a rectangle of characters.
*/
#include "pictures/canvas.h"

#include <stdlib.h>
#include <string.h>

bool mgrid_canvas_make(mgrid_canvas *c, int width, int height) {
  size_t n = (size_t)width * (size_t)height + 1;
  *c = (mgrid_canvas){ width, height, calloc(n, 1), calloc(n, 1) };
  if (c->what && c->style) return true;
  mgrid_canvas_free(c);
  return false;
}

void mgrid_canvas_free(mgrid_canvas *c) {
  free(c->what);
  free(c->style);
  memset(c, 0, sizeof *c);
}

static size_t place(const mgrid_canvas *c, int x, int y) { return (size_t)y * (size_t)c->width + (size_t)x; }

void mgrid_canvas_put(mgrid_canvas *c, int x, int y, const char *text, unsigned char style) {
  for (; *text && x < c->width && y < c->height; text++, x++) {
    c->what[place(c, x, y)] = (unsigned char)*text;
    c->style[place(c, x, y)] = style;
  }
}

void mgrid_canvas_line(mgrid_canvas *c, int x, int y, int arms) { c->what[place(c, x, y)] |= (unsigned char)arms; }

static void put_line(int arms, bool unicode, mgrid_text *out) {
  static const char *const lines[] = { " ", "│", "│", "│", "─", "┘", "┐", "┤", "─", "└", "┌", "├", "─", "┴", "┬", "┼" };
  bool                     across = arms & (MGRID_LEFT | MGRID_RIGHT), down = arms & (MGRID_UP | MGRID_DOWN);
  mgrid_text_str(out, unicode ? lines[arms] : across && down ? "+" : across ? "-" : "|");
}

static void put_style(unsigned char style, mgrid_text *out) {
  mgrid_text_str(out, "\033[0");
  if (style & MGRID_BOLD) mgrid_text_str(out, ";1");
  if (style & MGRID_FAINT) mgrid_text_str(out, ";2");
  if (style % 8) mgrid_text_add(out, ";%d", 30 + style % 8);
  mgrid_text_str(out, "m");
}

void mgrid_canvas_text(const mgrid_canvas *c, bool unicode, bool colour, mgrid_text *out) {
  for (int y = 0; y < c->height; y++) {
    unsigned char style = 0;
    int           end = c->width;
    while (end > 0 && (c->what[place(c, end - 1, y)] == 0 || c->what[place(c, end - 1, y)] == ' ')) end--;
    for (int x = 0; x < end; x++) {
      unsigned char what = c->what[place(c, x, y)], next = c->style[place(c, x, y)];
      if (colour && next != style) put_style(style = next, out);
      if (what == 0 || what >= ' ')
        mgrid_text_put(out, what ? (const char *)&what : " ", 1);
      else
        put_line(what, unicode, out);
    }
    if (style) put_style(0, out);
    mgrid_text_str(out, "\n");
  }
}
