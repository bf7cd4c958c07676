/* report_svg.h - the frame of a plot (report_svg.c) and what is drawn into it (report_curves.c). */
#ifndef FRGI_REPORT_SVG_H
#define FRGI_REPORT_SVG_H

#include "report/report_parts.h"

#pragma GCC visibility push(hidden)

/** Pixels; styles of series (colour, dashes, marker) before they repeat. */
enum { FRGI_SVG_WIDTH = 680, FRGI_SVG_STYLES = 6 };

typedef struct {
    const frgi_plot *p;
    frgi_axis values, positions;
    double left, right, top, bottom; /* edges of the plot's area, pixels */
    double height;                   /* of the whole drawing */
} frgi_drawing;

typedef struct {
    double x, y;
} frgi_point;

static inline double frgi_position(const frgi_series *s, int64_t i)
{
    return s->x ? s->x[i] : (double)(i + 1);
}

/** "M12.5 7" and the like. */
void frgi_put_point(frgi_sink *k, const char *letter, frgi_point q);
/** How many of the first n series are points; they stand side by side on a category axis. */
int frgi_point_series(const frgi_plot *p, int n);
/** Series s of the drawing: band, intervals, line, markers. */
void frgi_put_series(frgi_sink *k, const frgi_drawing *d, int s);
/** The legend's sample of a series with its left end at (x, y). */
void frgi_put_sample(frgi_sink *k, const frgi_series *s, int style, double x, double y);

#pragma GCC visibility pop
#endif
