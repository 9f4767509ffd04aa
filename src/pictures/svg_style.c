/* SPDX-License-Identifier: MIT
**
** svg_style.c - the style sheet of an SVG, text in its classes, the colours and patterns of groups.
*/
#include "pictures/svg.h"

enum { COLOURS = 8, PATTERNS = MGRID_SVG_LOOKS / COLOURS };

/* Light colours that differ in lightness or between blue and yellow, so that colour-blind people can tell them apart (after
** Paul Tol's light scheme). Black text on each has a contrast above 9 to 1. The darker ones are for arrows. */
static const char *const light[COLOURS] = { "#8db8e3", "#f3b08f", "#eedd88", "#7fd1b9",
                                            "#f7b6c6", "#a8e2f5", "#cdd46a", "#c9b7e4" };
static const char *const dark[COLOURS] = { "#0b5394", "#b45309", "#7a6000", "#00664f",
                                           "#a8244f", "#00708f", "#5f6a00", "#5b3a9b" };
/* Lines and dots over a colour, faint enough to read numbers on. */
static const char *const pattern[PATTERNS] = { "", "<path d=\"M-2,2l4,-4M0,8l8,-8M6,10l4,-4\"/>",
                                               "<path d=\"M0,2h8M0,6h8\"/>", "<path d=\"M-2,6l4,4M0,0l8,8M6,-2l4,4\"/>",
                                               "<path d=\"M1,1h2v2h-2zM5,5h2v2h-2z\" fill=\"#000\" stroke=\"none\"/>" };

/* The colour and the pattern of a group. Neighbours differ in both. */
static int colour_of(int64_t group) { return (int)((group + group / COLOURS) % COLOURS); }
static int pattern_of(int64_t group) { return (int)((2 * (group / COLOURS % PATTERNS) + colour_of(group)) % PATTERNS); }

void mgrid_svg_fill(mgrid_text *t, int64_t group) {
  mgrid_text_add(t, "fill=\"url(#c%dp%d)\" ", colour_of(group), pattern_of(group));
}

const char *mgrid_svg_ink(int64_t group) { return dark[colour_of(group)]; }

void mgrid_svg_text(mgrid_text *t, double x, double y, const char *class, const char *text) {
  mgrid_text_add(t, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
  mgrid_draw_safe(t, text);
  mgrid_text_str(t, "</text>\n");
}

void mgrid_svg_style(mgrid_text *t) {
  mgrid_text_str(
      t, "<style type=\"text/css\">\n"
         "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#1b1f24}\n"
         ".title{font-size:18px;font-weight:bold}.note{font-size:11px;fill:#4b5563}\n"
         ".family{font-size:14px;font-weight:bold}.caption{font-size:11px;fill:#4b5563}\n"
         ".part{font-size:12px;font-weight:bold;fill:#374151}\n"
         ".tile{font-size:10px;font-weight:bold;fill:#374151}\n"
         ".row{font-size:9px;fill:#4b5563;text-anchor:end}.column{font-size:9px;fill:#4b5563;text-anchor:middle}\n"
         ".rank text{text-anchor:middle}\n"
         ".box{fill:#f6f7f9;stroke:#c3c9d2;stroke-width:1}\n"
         ".idle{fill:#ffffff;stroke:#c3c9d2;stroke-dasharray:2,2}\n"
         ".back{opacity:.38}.raised{stroke:#111111;stroke-width:1.6}.shadow{fill:#000000;opacity:.28}\n"
         ".chosen{fill:none;stroke:#111111;stroke-width:3.2}\n"
         ".arrow{stroke-width:1.5}.own{stroke-width:2.6}\n"
         "</style>\n");
  for (int i = 0; i < COLOURS * PATTERNS; i++)
    mgrid_text_add(t,
                   "<pattern id=\"c%dp%d\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect width=\"8\" "
                   "height=\"8\" fill=\"%s\"/><g stroke=\"#000\" fill=\"none\" stroke-opacity=\".16\" "
                   "fill-opacity=\".16\">%s</g></pattern>\n",
                   i % COLOURS, i / COLOURS, light[i % COLOURS], pattern[i / COLOURS]);
}
