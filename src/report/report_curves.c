/* report_curves.c - what a plot shows: lines, bands, intervals and markers.
 *
 * Colours come from the page's CSS; every series also has its own dash pattern and marker, so that
 * the plot reads in grey.  Long curves are thinned to the first, lowest, highest and last point of
 * each pixel column, which draws the same picture: a million points make a page of some tens of
 * kilobytes.
 */
#include <math.h>

#include "report/report_svg.h"

enum { MARKED_AT_MOST = 40 };

static const char *const dashes[FRGI_SVG_STYLES] = {"",         "7 4",  "2 3",
                                                    "10 3 2 3", "12 5", "5 2 1 2"};

/* ---- points ---------------------------------------------------------------------------------- */

/** Series of points among the first n. */
int frgi_point_series(const frgi_plot *p, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += p->series[i].style == FRG_POINTS;
    return count;
}

/** Series side by side on a category axis: the shift of series s, in positions. */
static double dodge(const frgi_plot *p, int s)
{
    const int points = frgi_point_series(p, p->n_series), before = frgi_point_series(p, s);
    if (!p->categories || points < 2 || p->series[s].style != FRG_POINTS)
        return 0;
    const double step = 0.72 / points;
    return (before - (points - 1) / 2.0) * step;
}

/** The pixel of (position, value); NaN where either has none. */
static frgi_point place(const frgi_drawing *d, double position, double value)
{
    const double along = frgi_axis_place(&d->positions, position),
                 up = frgi_axis_place(&d->values, value);
    const double w = d->right - d->left, h = d->bottom - d->top;
    if (!(along >= 0 && along <= 1)) /* a position beyond the categories */
        return (frgi_point){(double)NAN, (double)NAN};
    if (d->p->horizontal)
        return (frgi_point){d->left + up * w, d->top + along * h};
    return (frgi_point){d->left + along * w, d->bottom - up * h};
}

static bool is_point(frgi_point q)
{
    return isfinite(q.x) && isfinite(q.y);
}

void frgi_put_point(frgi_sink *k, const char *letter, frgi_point q)
{
    frgi_put(k, letter);
    frgi_put_fixed(k, q.x, 1, true);
    frgi_put(k, " ");
    frgi_put_fixed(k, q.y, 1, true);
}

/* ---- curves ---------------------------------------------------------------------------------- */

typedef struct {
    frgi_sink *k;
    bool pen_down;
    bool along_y;                     /* columns of pixels are rows in horizontal plots */
    double column;                    /* of the points held back */
    int64_t held;                     /* how many */
    frgi_point lowest, highest, last; /* of them, the first has been drawn */
    int64_t lowest_at, highest_at;
} pen;

static void draw(pen *n, frgi_point q)
{
    frgi_put_point(n->k, n->pen_down ? "L" : "M", q);
    n->pen_down = true;
}

/** Draws what is left of a column of pixels, in the order in which it came. */
static void end_column(pen *n)
{
    if (n->held > 1) {
        const bool lowest_first = n->lowest_at < n->highest_at;
        draw(n, lowest_first ? n->lowest : n->highest);
        draw(n, lowest_first ? n->highest : n->lowest);
    }
    if (n->held > 0)
        draw(n, n->last);
    n->held = 0;
    n->column = NAN;
}

static void curve_to(pen *n, frgi_point q, bool thin)
{
    const double column = floor(n->along_y ? q.y : q.x), height = n->along_y ? q.x : q.y;
    if (!thin || column != n->column) {
        end_column(n);
        draw(n, q);
        n->column = column;
        return;
    }
    const double lowest = n->along_y ? n->lowest.x : n->lowest.y,
                 highest = n->along_y ? n->highest.x : n->highest.y;
    if (n->held == 0 || height < lowest) {
        n->lowest = q;
        n->lowest_at = n->held;
    }
    if (n->held == 0 || height > highest) {
        n->highest = q;
        n->highest_at = n->held;
    }
    n->last = q;
    n->held++;
}

/** The curve of `values`, last to first when `backwards`; a missing point lifts the pen unless
 *  `joined`. */
static void put_curve(pen *n, const frgi_drawing *d, int s, const double *values, bool backwards,
                      bool joined)
{
    const frgi_series *const series = &d->p->series[s];
    for (int64_t j = 0; j < series->n; j++) {
        const int64_t i = backwards ? series->n - 1 - j : j;
        const frgi_point q = place(d, frgi_position(series, i), values[i]);
        if (is_point(q)) {
            curve_to(n, q, series->n > 2 * FRGI_SVG_WIDTH);
        } else if (!joined) {
            end_column(n);
            n->pen_down = false;
        }
    }
    end_column(n);
}

static void put_line(frgi_sink *k, const frgi_drawing *d, int s)
{
    const int style = s % FRGI_SVG_STYLES;
    frgi_putf(k, "<path class=\"line s%d\"", style + 1);
    if (dashes[style][0])
        frgi_putf(k, " stroke-dasharray=\"%s\"", dashes[style]);
    frgi_put(k, " d=\"");
    pen n = {.k = k, .column = NAN, .along_y = d->p->horizontal};
    put_curve(&n, d, s, d->p->series[s].y, false, false);
    frgi_put(k, n.pen_down || k->status < 0 ? "\"/>\n" : "M0 0\"/>\n");
}

static void put_band(frgi_sink *k, const frgi_drawing *d, int s)
{
    frgi_putf(k, "<path class=\"band s%d\" d=\"", s % FRGI_SVG_STYLES + 1);
    pen n = {.k = k, .column = NAN, .along_y = d->p->horizontal};
    put_curve(&n, d, s, d->p->series[s].high, false, true);
    put_curve(&n, d, s, d->p->series[s].low, true, true);
    frgi_put(k, n.pen_down ? "Z\"/>\n" : "M0 0\"/>\n");
}

static void put_links(frgi_sink *k, const frgi_drawing *d, int s)
{
    const frgi_series *const series = &d->p->series[s];
    frgi_putf(k, "<path class=\"link s%d\" d=\"M0 0", s % FRGI_SVG_STYLES + 1);
    for (int64_t i = 0; i < series->n; i += 2) {
        const frgi_point a = place(d, frgi_position(series, i), series->y[i]),
                         b = place(d, frgi_position(series, i + 1), series->y[i + 1]);
        if (is_point(a) && is_point(b)) {
            frgi_put_point(k, "M", a);
            frgi_put_point(k, "L", b);
        }
    }
    frgi_put(k, "\"/>\n");
}

/* ---- markers --------------------------------------------------------------------------------- */

/** One marker as a subpath: disc, open square, diamond, open triangle, cross, open diamond. */
static void put_marker(frgi_sink *k, frgi_point q, int style, double r)
{
    typedef struct {
        int corners;
        double at[8]; /* x, y in units of r */
    } shape;
    static const shape shapes[FRGI_SVG_STYLES] = {
        {0, {0}},
        {4, {-0.9, -0.9, 0.9, -0.9, 0.9, 0.9, -0.9, 0.9}},
        {4, {0, -1.25, 1.25, 0, 0, 1.25, -1.25, 0}},
        {3, {0, -1.2, 1.15, 0.85, -1.15, 0.85}},
        {2, {-0.95, -0.95, 0.95, 0.95}},
        {4, {0, -1.25, 1.25, 0, 0, 1.25, -1.25, 0}},
    };
    const shape *const f = &shapes[style];
    if (f->corners == 0) {
        frgi_put_point(k, "M", (frgi_point){q.x - r, q.y});
        for (int half = 0; half < 2; half++) {
            frgi_put(k, "a");
            frgi_put_fixed(k, r, 1, true);
            frgi_put(k, " ");
            frgi_put_fixed(k, r, 1, true);
            frgi_put(k, " 0 1 0 ");
            frgi_put_fixed(k, half ? -2 * r : 2 * r, 1, true);
            frgi_put(k, " 0");
        }
        frgi_put(k, "z");
        return;
    }
    for (int c = 0; c < f->corners; c++)
        frgi_put_point(k, c ? "L" : "M",
                       (frgi_point){q.x + r * f->at[2 * c], q.y + r * f->at[2 * c + 1]});
    if (f->corners > 2) {
        frgi_put(k, "z");
    } else {
        frgi_put_point(k, "M", (frgi_point){q.x - r * 0.95, q.y + r * 0.95});
        frgi_put_point(k, "L", (frgi_point){q.x + r * 0.95, q.y - r * 0.95});
    }
}

static bool open_marker(int style)
{
    return style % 2 == 1;
}

static void put_markers(frgi_sink *k, const frgi_drawing *d, int s, double r)
{
    const frgi_series *const series = &d->p->series[s];
    const int style = s % FRGI_SVG_STYLES;
    const double shift = dodge(d->p, s);
    frgi_putf(k, "<path class=\"mark s%d%s\" d=\"M0 0", style + 1,
              open_marker(style) ? " open" : "");
    for (int64_t i = 0; i < series->n; i++) {
        const frgi_point q = place(d, frgi_position(series, i) + shift, series->y[i]);
        if (is_point(q))
            put_marker(k, q, style, r);
    }
    frgi_put(k, "\"/>\n");
}

static void put_whiskers(frgi_sink *k, const frgi_drawing *d, int s)
{
    const frgi_series *const series = &d->p->series[s];
    const double shift = dodge(d->p, s);
    frgi_putf(k, "<path class=\"whisker s%d\" d=\"M0 0", s % FRGI_SVG_STYLES + 1);
    for (int64_t i = 0; i < series->n; i++) {
        const double position = frgi_position(series, i) + shift;
        const frgi_point a = place(d, position, series->low[i]),
                         b = place(d, position, series->high[i]);
        if (is_point(a) && is_point(b)) {
            frgi_put_point(k, "M", a);
            frgi_put_point(k, "L", b);
        }
    }
    frgi_put(k, "\"/>\n");
}

void frgi_put_series(frgi_sink *k, const frgi_drawing *d, int s)
{
    const frgi_series *const series = &d->p->series[s];
    if (series->style == FRG_BAND && series->low)
        put_band(k, d, s);
    if (!series->y)
        return;
    if (series->style == FRG_POINTS && series->low)
        put_whiskers(k, d, s);
    if (series->style == FRG_LINKS)
        put_links(k, d, s);
    else if (series->style != FRG_POINTS)
        put_line(k, d, s);
    if (series->style == FRG_POINTS)
        put_markers(k, d, s, series->n > 400 ? 1.6 : 3.6);
    else if (series->style == FRG_LINE && series->n <= MARKED_AT_MOST)
        put_markers(k, d, s, 2.2);
}

/* ---- the legend's samples -------------------------------------------------------------------- */

void frgi_put_sample(frgi_sink *k, const frgi_series *s, int style, double x, double y)
{
    if (s->style == FRG_BAND) {
        frgi_putf(k, "<path class=\"band s%d\" d=\"", style + 1);
        frgi_put_point(k, "M", (frgi_point){x, y - 5});
        frgi_put_point(k, "L", (frgi_point){x + 22, y - 5});
        frgi_put_point(k, "L", (frgi_point){x + 22, y + 5});
        frgi_put_point(k, "L", (frgi_point){x, y + 5});
        frgi_put(k, "z\"/>\n");
    }
    if (s->y && (s->style != FRG_POINTS || s->low)) {
        const bool is_link = s->style == FRG_LINKS;
        const bool dashed = s->style != FRG_POINTS && !is_link && dashes[style][0];
        frgi_putf(k, "<path class=\"%s s%d\"%s%s%s d=\"", is_link ? "link" : "line", style + 1,
                  dashed ? " stroke-dasharray=\"" : "", dashed ? dashes[style] : "",
                  dashed ? "\"" : "");
        frgi_put_point(k, "M", (frgi_point){x, y});
        frgi_put_point(k, "L", (frgi_point){x + 22, y});
        frgi_put(k, "\"/>\n");
    }
    if (s->style == FRG_POINTS || (s->style == FRG_LINE && s->n <= MARKED_AT_MOST)) {
        frgi_putf(k, "<path class=\"mark s%d%s\" d=\"", style + 1,
                  open_marker(style) ? " open" : "");
        put_marker(k, (frgi_point){x + 11, y}, style, s->style == FRG_POINTS ? 3.4 : 2.2);
        frgi_put(k, "\"/>\n");
    }
}
