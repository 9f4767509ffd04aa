/* SPDX-License-Identifier: MIT
**
** canvas.h - a rectangle of characters to draw on, for text.c: ASCII text, box lines, a style for each character.
*/
#ifndef MGRID_CANVAS_H
#define MGRID_CANVAS_H

#include "base/base.h"

enum { MGRID_PLAIN = 0, MGRID_BOLD = 64, MGRID_FAINT = 128 }; /* add these to a colour, 1 to 6, or to none */
enum { MGRID_UP = 1, MGRID_DOWN = 2, MGRID_LEFT = 4, MGRID_RIGHT = 8 };

typedef struct mgrid_canvas {
  int            width, height;
  unsigned char *what;  /* a character; below ' ' the arms of a line; 0: blank */
  unsigned char *style; /* of the same length */
} mgrid_canvas;

bool mgrid_canvas_make(mgrid_canvas *c, int width, int height);
void mgrid_canvas_free(mgrid_canvas *c);
/* Write text at (x, y), clipped to the canvas. */
void mgrid_canvas_put(mgrid_canvas *c, int x, int y, const char *text, unsigned char style);
/* Add arms of lines to a character. */
void mgrid_canvas_line(mgrid_canvas *c, int x, int y, int arms);
/* Append the lines, without trailing blanks. */
void mgrid_canvas_text(const mgrid_canvas *c, bool unicode, bool colour, mgrid_text *out);

#endif
