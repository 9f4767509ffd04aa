/* SPDX-License-Identifier: MIT
**
** canvas.h - a rectangle of characters to draw on, for text.c: ASCII letters, lines of boxes, a style for each.
*/
#ifndef MGRID_CANVAS_H
#define MGRID_CANVAS_H

#include "base/base.h"

enum { MGRID_PLAIN = 0, MGRID_BOLD = 64, MGRID_FAINT = 128 }; /* or one of 6 colours, 1 to 6, with these added */
enum { MGRID_UP = 1, MGRID_DOWN = 2, MGRID_LEFT = 4, MGRID_RIGHT = 8 };

typedef struct mgrid_canvas {
  int            width, height;
  unsigned char *what;  /* a letter, or below ' ' the arms of a line; 0: blank */
  unsigned char *style; /* as long */
} mgrid_canvas;

bool mgrid_canvas_make(mgrid_canvas *c, int width, int height);
void mgrid_canvas_free(mgrid_canvas *c);
/* Write text at (x, y); what lies outside is left out. */
void mgrid_canvas_put(mgrid_canvas *c, int x, int y, const char *text, unsigned char style);
/* Add arms of lines to a place. */
void mgrid_canvas_line(mgrid_canvas *c, int x, int y, int arms);
/* Append the lines, without blanks at their ends. */
void mgrid_canvas_text(const mgrid_canvas *c, bool unicode, bool colour, mgrid_text *out);

#endif
