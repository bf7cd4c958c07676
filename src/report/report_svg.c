/* report_svg.c - plots as inline SVG.
 *
 * One drawing has a value axis and a position axis.  Upright plots put positions to the right and values
 * up; horizontal ones put positions down and values to the right (coefficient plots).  Colours come from
 * the page's CSS variables; every series also has its own dash pattern and marker, so that the plot reads
 * in grey.  Grid lines run across the value axis alone.
 *
 *      y label          -o- name of series 1   --s-- name of series 2
 *      1.0 |------------------------------------
 *      0.5 |------------------------------------
 *          +-----+-----+-----+-----+-----+-----
 *          0     10    20    30    40    50
 *                                        x label
 *
 * Long curves are thinned to the first, lowest, highest and last point of each pixel column, which draws
 * the same picture; a million points make a page of some tens of kilobytes.
 */
#include <math.h>
#include <string.h>

#include "report/report_parts.h"

const char frgi_svg_style[] =
    "svg{display:block;width:100%;min-width:30rem;height:auto;overflow:visible}\n"
    "svg text{font-size:12.5px;fill:var(--soft);font-variant-numeric:lining-nums tabular-nums}\n"
    "svg .label{font-style:italic}\n"
    "svg .name{fill:var(--ink)}\n"
    "svg .grid{stroke:var(--hair);stroke-width:1;fill:none}\n"
    "svg .axis{stroke:var(--rule);stroke-width:1;fill:none}\n"
    "svg .reference{stroke:var(--soft);stroke-width:1;stroke-dasharray:3 3;fill:none}\n"
    "svg .line{stroke-width:1.6;fill:none;stroke-linejoin:round}\n"
    "svg .whisker{stroke-width:1.4;fill:none}\n"
    "svg .mark{stroke-width:1.4}\n"
    "svg .open{fill:var(--paper)}\n"
    "svg .band{fill-opacity:.16;stroke:none}\n"
    ".s1{stroke:var(--s1);fill:var(--s1)}.s2{stroke:var(--s2);fill:var(--s2)}.s3{stroke:var(--s3);"
    "fill:var(--s3)}\n"
    ".s4{stroke:var(--s4);fill:var(--s4)}.s5{stroke:var(--s5);fill:var(--s5)}.s6{stroke:var(--s6);"
    "fill:var(--s6)}\n";

enum { WIDTH = 680, HEIGHT = 340, ROW = 27, STYLES = 6, MARKED_AT_MOST = 40, TEXT_AT_MOST = 200 };
static const double CHARACTER = 6.3; /* mean width of one at 12.5 px */

static const char *const dashes[STYLES] = {"", "7 4", "2 3", "10 3 2 3", "12 5", "5 2 1 2"};

typedef struct {
    const frgi_plot *p;
    frgi_axis values, positions;
    double left, right, top, bottom; /* edges of the plot's area, pixels */
    double height;                   /* of the whole drawing */
} drawing;

typedef struct {
    double low, high;
} span;

static void widen(span *s, double v, bool log)
{
    if (!isfinite(v) || (log && v <= 0))
        return;
    s->low = fmin(s->low, v);
    s->high = fmax(s->high, v);
}

/* ---- points ------------------------------------------------------------------------------------- */

static double position_of(const frgi_series *s, int64_t i)
{
    return s->x ? s->x[i] : (double)(i + 1);
}

/** Series side by side on a category axis: the shift of series s, in positions. */
static double dodge(const frgi_plot *p, int s)
{
    int points = 0, before = 0;
    for (int i = 0; i < p->n_series; i++) {
        before += i < s && p->series[i].style == FRG_POINTS;
        points += p->series[i].style == FRG_POINTS;
    }
    if (!p->categories || points < 2 || p->series[s].style != FRG_POINTS)
        return 0;
    const double step = fmin(0.22, 0.7 / points);
    return (before - (points - 1) / 2.0) * step;
}

typedef struct {
    double x, y;
} point;

/** The pixel of (position, value); NaN where either has none. */
static point place(const drawing *d, double position, double value)
{
    const double along = frgi_axis_place(&d->positions, position),
                 up = frgi_axis_place(&d->values, value);
    const double w = d->right - d->left, h = d->bottom - d->top;
    if (d->p->horizontal)
        return (point){d->left + up * w, d->top + along * h};
    return (point){d->left + along * w, d->bottom - up * h};
}

static bool is_point(point q)
{
    return isfinite(q.x) && isfinite(q.y) && fabs(q.x) < 1e6 && fabs(q.y) < 1e6;
}

static void put_point(frgi_sink *k, const char *letter, point q)
{
    frgi_put(k, letter);
    frgi_put_fixed(k, q.x, 1, true);
    frgi_put(k, " ");
    frgi_put_fixed(k, q.y, 1, true);
}

/* ---- curves ------------------------------------------------------------------------------------- */

typedef struct {
    frgi_sink *k;
    bool pen_down;
    bool along_y;                /* columns of pixels are rows in horizontal plots */
    double column;               /* of the points held back */
    int64_t held;                /* how many */
    point lowest, highest, last; /* of them, the first has been drawn */
    int64_t lowest_at, highest_at;
} pen;

static void draw(pen *n, point q)
{
    put_point(n->k, n->pen_down ? "L" : "M", q);
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

static void curve_to(pen *n, point q, bool thin)
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

/** The curve of `values`, last to first when `backwards`; a missing point lifts the pen unless `joined`. */
static void put_curve(pen *n, const drawing *d, int s, const double *values, bool backwards,
                      bool joined)
{
    const frgi_series *const series = &d->p->series[s];
    for (int64_t j = 0; j < series->n; j++) {
        const int64_t i = backwards ? series->n - 1 - j : j;
        const point q = place(d, position_of(series, i), values[i]);
        if (is_point(q)) {
            curve_to(n, q, series->n > 2 * WIDTH);
        } else if (!joined) {
            end_column(n);
            n->pen_down = false;
        }
    }
    end_column(n);
}

static void put_line(frgi_sink *k, const drawing *d, int s)
{
    const int look = s % STYLES;
    frgi_putf(k, "<path class=\"line s%d\"", look + 1);
    if (dashes[look][0])
        frgi_putf(k, " stroke-dasharray=\"%s\"", dashes[look]);
    frgi_put(k, " d=\"");
    pen n = {.k = k, .column = NAN, .along_y = d->p->horizontal};
    put_curve(&n, d, s, d->p->series[s].y, false, false);
    frgi_put(k, n.pen_down || k->status < 0 ? "\"/>\n" : "M0 0\"/>\n");
}

static void put_band(frgi_sink *k, const drawing *d, int s)
{
    frgi_putf(k, "<path class=\"band s%d\" d=\"", s % STYLES + 1);
    pen n = {.k = k, .column = NAN, .along_y = d->p->horizontal};
    put_curve(&n, d, s, d->p->series[s].high, false, true);
    put_curve(&n, d, s, d->p->series[s].low, true, true);
    frgi_put(k, n.pen_down ? "Z\"/>\n" : "M0 0\"/>\n");
}

/* ---- markers ------------------------------------------------------------------------------------ */

/** One marker as a subpath: disc, open square, diamond, open triangle, cross, open diamond. */
static void put_marker(frgi_sink *k, point q, int look, double r)
{
    typedef struct {
        int corners;
        double at[8]; /* x, y in units of r */
    } shape;
    static const shape shapes[STYLES] = {
        {0, {0}},
        {4, {-0.9, -0.9, 0.9, -0.9, 0.9, 0.9, -0.9, 0.9}},
        {4, {0, -1.25, 1.25, 0, 0, 1.25, -1.25, 0}},
        {3, {0, -1.2, 1.15, 0.85, -1.15, 0.85}},
        {2, {-0.95, -0.95, 0.95, 0.95}},
        {4, {0, -1.25, 1.25, 0, 0, 1.25, -1.25, 0}},
    };
    const shape *const f = &shapes[look];
    if (f->corners == 0) {
        put_point(k, "M", (point){q.x - r, q.y});
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
        put_point(k, c ? "L" : "M", (point){q.x + r * f->at[2 * c], q.y + r * f->at[2 * c + 1]});
    if (f->corners > 2) {
        frgi_put(k, "z");
    } else {
        put_point(k, "M", (point){q.x - r * 0.95, q.y + r * 0.95});
        put_point(k, "L", (point){q.x + r * 0.95, q.y - r * 0.95});
    }
}

static bool open_marker(int look)
{
    return look % 2 == 1;
}

static void put_marks(frgi_sink *k, const drawing *d, int s, double r)
{
    const frgi_series *const series = &d->p->series[s];
    const int look = s % STYLES;
    const double shift = dodge(d->p, s);
    frgi_putf(k, "<path class=\"mark s%d%s\" d=\"M0 0", look + 1, open_marker(look) ? " open" : "");
    for (int64_t i = 0; i < series->n; i++) {
        const point q = place(d, position_of(series, i) + shift, series->y[i]);
        if (is_point(q))
            put_marker(k, q, look, r);
    }
    frgi_put(k, "\"/>\n");
}

static void put_whiskers(frgi_sink *k, const drawing *d, int s)
{
    const frgi_series *const series = &d->p->series[s];
    const double shift = dodge(d->p, s);
    frgi_putf(k, "<path class=\"whisker s%d\" d=\"M0 0", s % STYLES + 1);
    for (int64_t i = 0; i < series->n; i++) {
        const double position = position_of(series, i) + shift;
        const point a = place(d, position, series->low[i]), b = place(d, position, series->high[i]);
        if (is_point(a) && is_point(b)) {
            put_point(k, "M", a);
            put_point(k, "L", b);
        }
    }
    frgi_put(k, "\"/>\n");
}

static void put_series(frgi_sink *k, const drawing *d, int s)
{
    const frgi_series *const series = &d->p->series[s];
    if (series->style == FRG_BAND && series->low)
        put_band(k, d, s);
    if (!series->y)
        return;
    if (series->style == FRG_POINTS && series->low)
        put_whiskers(k, d, s);
    if (series->style != FRG_POINTS)
        put_line(k, d, s);
    if (series->style == FRG_POINTS)
        put_marks(k, d, s, series->n > 400 ? 1.6 : 3.6);
    else if (series->style == FRG_LINE && series->n <= MARKED_AT_MOST)
        put_marks(k, d, s, 2.2);
}

/* ---- words -------------------------------------------------------------------------------------- */

/** Escapes at most `room` cells of a text, with an ellipsis for the rest. */
static void put_elided(frgi_sink *k, const char *s, int64_t room)
{
    frgi_sink scratch = {.ctx = k->ctx, .status = k->status};
    const char *p = s;
    int64_t used = 0;
    while (*p && used < room)
        used += frgi_utf8_width(frgi_utf8_next(&p));
    frgi_put_bytes(&scratch, s, (size_t)(p - s));
    if (scratch.status >= 0)
        frgi_put_escaped(k, scratch.text.text, &frgi_escapes_html, false);
    else
        k->status = scratch.status;
    frgi_put(k, *p ? "…" : "");
    frgi_text_free(k->ctx, &scratch.text);
}

static int64_t cells_of(const char *s)
{
    return frgi_text_width(s, strlen(s));
}

static void open_text(frgi_sink *k, double x, double y, const char *anchor, const char *class)
{
    frgi_put(k, "<text x=\"");
    frgi_put_fixed(k, x, 1, true);
    frgi_put(k, "\" y=\"");
    frgi_put_fixed(k, y, 1, true);
    frgi_putf(k, "\" text-anchor=\"%s\"%s%s%s>", anchor, class[0] ? " class=\"" : "", class,
              class[0] ? "\"" : "");
}

static void put_segment(frgi_sink *k, const char *class, point a, point b)
{
    frgi_putf(k, "<path class=\"%s\" d=\"", class);
    put_point(k, "M", a);
    put_point(k, "L", b);
    frgi_put(k, "\"/>\n");
}

/* ---- axes --------------------------------------------------------------------------------------- */

/** The pixel of tick i of an axis that lies between two edges. */
static double tick_at(const frgi_axis *a, int i, double from, double to)
{
    return from + (a->at[i] - a->low) / (a->high - a->low) * (to - from);
}

/** Ticks below the drawing. */
static void put_bottom_axis(frgi_sink *k, const drawing *d, const frgi_axis *a, bool grid)
{
    for (int i = 0; i < a->n + a->n_minor; i++) {
        const double x = round(tick_at(a, i, d->left, d->right)) + 0.5;
        if (grid && i < a->n)
            put_segment(k, "grid", (point){x, d->top}, (point){x, d->bottom});
        put_segment(k, "axis", (point){x, d->bottom}, (point){x, d->bottom + (i < a->n ? 5 : 3)});
        if (i >= a->n)
            continue;
        open_text(k, x, d->bottom + 19, "middle", "");
        frgi_put_tick_label(k, a, i);
        frgi_put(k, "</text>\n");
    }
    put_segment(k, "axis", (point){d->left, d->bottom + 0.5}, (point){d->right, d->bottom + 0.5});
}

static void put_left_axis(frgi_sink *k, const drawing *d, const frgi_axis *a)
{
    for (int i = 0; i < a->n + a->n_minor; i++) {
        const double y = round(tick_at(a, i, d->bottom, d->top)) + 0.5;
        if (i >= a->n) {
            put_segment(k, "axis", (point){d->left - 4, y}, (point){d->left, y});
            continue;
        }
        put_segment(k, "grid", (point){d->left, y}, (point){d->right, y});
        open_text(k, d->left - 8, y + 4, "end", "");
        frgi_put_tick_label(k, a, i);
        frgi_put(k, "</text>\n");
    }
}

/** Names at the positions 1..n: beside the rows of a horizontal plot, below the columns of an upright one. */
static void put_categories(frgi_sink *k, const drawing *d)
{
    const frgi_plot *const p = d->p;
    const double slot = (d->right - d->left) / (p->n_categories > 0 ? p->n_categories : 1);
    const int every = p->horizontal ? 1 : (int)ceil(30 / slot);
    const int64_t room = p->horizontal ? (int64_t)(TEXT_AT_MOST / CHARACTER)
                                       : (int64_t)(slot * every / CHARACTER) - 1;
    for (int c = 0; c < p->n_categories; c += every) {
        const double share = frgi_axis_place(&d->positions, c + 1);
        if (p->horizontal)
            open_text(k, d->left - 12, d->top + share * (d->bottom - d->top) + 4, "end", "name");
        else
            open_text(k, d->left + share * (d->right - d->left), d->bottom + 19, "middle", "name");
        put_elided(k, p->categories[c], room > 3 ? room : 3);
        frgi_put(k, "</text>\n");
    }
    if (!p->horizontal)
        put_segment(k, "axis", (point){d->left, d->bottom + 0.5},
                    (point){d->right, d->bottom + 0.5});
}

static void put_axes(frgi_sink *k, const drawing *d)
{
    const bool horizontal = d->p->horizontal;
    if (d->p->categories)
        put_categories(k, d);
    if (horizontal) {
        put_bottom_axis(k, d, &d->values, true);
        if (!d->p->categories)
            put_left_axis(k, d, &d->positions);
    } else {
        put_left_axis(k, d, &d->values);
        if (!d->p->categories)
            put_bottom_axis(k, d, &d->positions, false);
    }
}

static void put_power(frgi_sink *k, const frgi_axis *a)
{
    if (a->power)
        frgi_putf(k, " ×10<tspan dy=\"-0.4em\" font-size=\"75%%\">%s%d</tspan>",
                  a->power < 0 ? "−" : "", a->power < 0 ? -a->power : a->power);
}

static void put_labels(frgi_sink *k, const drawing *d)
{
    const frgi_plot *const p = d->p;
    const frgi_axis *const across = p->horizontal ? &d->values : &d->positions;
    const frgi_axis *const up = p->horizontal ? &d->positions : &d->values;
    if (p->y_label || up->power) {
        open_text(k, 0, 13, "start", "label");
        put_elided(k, p->y_label ? p->y_label : "", 60);
        put_power(k, up);
        frgi_put(k, "</text>\n");
    }
    if (p->x_label || across->power) {
        open_text(k, d->right, d->bottom + 40, "end", "label");
        put_elided(k, p->x_label ? p->x_label : "", 100);
        put_power(k, across);
        frgi_put(k, "</text>\n");
    }
}

static void put_reference(frgi_sink *k, const drawing *d)
{
    const double share = frgi_axis_place(&d->values, d->p->reference);
    if (!(share >= 0 && share <= 1))
        return;
    if (d->p->horizontal) {
        const double x = round(d->left + share * (d->right - d->left)) + 0.5;
        put_segment(k, "reference", (point){x, d->top}, (point){x, d->bottom});
    } else {
        const double y = round(d->bottom - share * (d->bottom - d->top)) + 0.5;
        put_segment(k, "reference", (point){d->left, y}, (point){d->right, y});
    }
}

/* ---- legend ------------------------------------------------------------------------------------- */

enum { SAMPLE = 30, LEGEND_GAP = 22, LEGEND_ROW = 20 };

static double legend_width(const frgi_series *s)
{
    const double text = (double)cells_of(s->name) * CHARACTER;
    return SAMPLE + fmin(text, TEXT_AT_MOST + CHARACTER) + LEGEND_GAP;
}

static int legend_rows(const frgi_plot *p)
{
    if (p->n_series < 2)
        return 0;
    double x = 0;
    int rows = 1;
    for (int s = 0; s < p->n_series; s++) {
        const double w = legend_width(&p->series[s]);
        if (x > 0 && x + w > WIDTH) {
            rows++;
            x = 0;
        }
        x += w;
    }
    return rows;
}

static void put_sample(frgi_sink *k, const frgi_series *s, int look, double x, double y)
{
    if (s->style == FRG_BAND) {
        frgi_putf(k, "<path class=\"band s%d\" d=\"", look + 1);
        put_point(k, "M", (point){x, y - 5});
        put_point(k, "L", (point){x + 22, y - 5});
        put_point(k, "L", (point){x + 22, y + 5});
        put_point(k, "L", (point){x, y + 5});
        frgi_put(k, "z\"/>\n");
    }
    if (s->y && (s->style != FRG_POINTS || s->low)) {
        const bool dashed = s->style != FRG_POINTS && dashes[look][0];
        frgi_putf(k, "<path class=\"line s%d\"%s%s%s d=\"", look + 1,
                  dashed ? " stroke-dasharray=\"" : "", dashed ? dashes[look] : "",
                  dashed ? "\"" : "");
        put_point(k, "M", (point){x, y});
        put_point(k, "L", (point){x + 22, y});
        frgi_put(k, "\"/>\n");
    }
    if (s->style == FRG_POINTS || (s->style == FRG_LINE && s->n <= MARKED_AT_MOST)) {
        frgi_putf(k, "<path class=\"mark s%d%s\" d=\"", look + 1, open_marker(look) ? " open" : "");
        put_marker(k, (point){x + 11, y}, look, s->style == FRG_POINTS ? 3.4 : 2.2);
        frgi_put(k, "\"/>\n");
    }
}

static void put_legend(frgi_sink *k, const frgi_plot *p, double top)
{
    double x = 0, y = top;
    for (int s = 0; s < p->n_series && p->n_series > 1; s++) {
        const double w = legend_width(&p->series[s]);
        if (x > 0 && x + w > WIDTH) {
            y += LEGEND_ROW;
            x = 0;
        }
        put_sample(k, &p->series[s], s % STYLES, x + 1, y + 8.5);
        open_text(k, x + SAMPLE, y + 13, "start", "name");
        put_elided(k, p->series[s].name, (int64_t)(TEXT_AT_MOST / CHARACTER));
        frgi_put(k, "</text>\n");
        x += w;
    }
}

/* ---- the drawing -------------------------------------------------------------------------------- */

/** What the axes must hold; false when no point can be drawn. */
static bool spans(const frgi_plot *p, span *values, span *positions)
{
    *values = *positions = (span){INFINITY, -INFINITY};
    for (int s = 0; s < p->n_series; s++) {
        const frgi_series *const series = &p->series[s];
        const double *const parts[] = {series->y, series->low, series->high};
        for (int64_t i = 0; i < series->n; i++) {
            widen(positions, position_of(series, i), false);
            for (int q = 0; q < 3; q++)
                if (parts[q])
                    widen(values, parts[q][i], p->log_y);
        }
    }
    const bool any = values->low <= values->high && positions->low <= positions->high;
    if (any && isfinite(p->reference))
        widen(values, p->reference, p->log_y);
    if (p->categories)
        *positions = (span){0.5, p->n_categories + 0.5};
    return any;
}

/** A little room on both sides, so that markers do not sit on the edge. */
static span padded(span s, double share)
{
    const double room = (s.high / 2 - s.low / 2) * 2 * share;
    return isfinite(room) ? (span){s.low - room, s.high + room} : s;
}

static double label_width(const drawing *d)
{
    const frgi_axis *const a = d->p->horizontal ? &d->positions : &d->values;
    int64_t cells = 0;
    if (d->p->horizontal && d->p->categories) {
        for (int c = 0; c < d->p->n_categories; c++) {
            const int64_t w = cells_of(d->p->categories[c]);
            cells = w > cells ? w : cells;
        }
        return fmin((double)cells * CHARACTER, TEXT_AT_MOST + CHARACTER) + 14;
    }
    if (a->log)
        return 42;
    const double largest = fmax(fabs(a->low), fabs(a->high)) / pow(10, a->power);
    const int whole = largest >= 10 ? (int)floor(log10(largest)) + 1 : 1;
    return (whole + a->decimals + (a->decimals > 0) + (a->low < 0)) * CHARACTER + 14;
}

static drawing lay_out(const frgi_plot *p, span values, span positions)
{
    drawing d = {.p = p};
    d.values = p->log_y ? frgi_axis_make(values.low, values.high, true, 8)
                        : frgi_axis_make(padded(values, 0.04).low, padded(values, 0.04).high, false,
                                         p->horizontal ? 7 : 6);
    const span room = p->categories ? positions : padded(positions, 0.02);
    d.positions = frgi_axis_make(room.low, room.high, false, 8);
    if (p->categories) { /* names instead of ticks, at their places */
        d.positions.low = positions.low;
        d.positions.high = positions.high;
        d.positions.power = 0;
    }
    d.left = fmax(label_width(&d), 24);
    d.right = WIDTH - 8;
    const int rows = legend_rows(p);
    const bool label_above = p->y_label || (p->horizontal ? d.positions.power : d.values.power);
    d.top = 8 + (label_above ? 18 : 0) + rows * LEGEND_ROW;
    d.bottom = d.top + (p->horizontal && p->categories ? ROW * p->n_categories : HEIGHT - 80);
    const bool label_below = p->x_label || (p->horizontal ? d.values.power : d.positions.power);
    d.height = d.bottom + (label_below ? 48 : 28);
    return d;
}

static void put_range(frgi_sink *k, const char *what, span s)
{
    char low[32], high[32];
    frg_format_short(s.low, 4, low);
    frg_format_short(s.high, 4, high);
    frgi_putf(k, " %s from %s to %s.", what, low, high);
}

/** What a reader who does not see the plot should know. */
static void put_description(frgi_sink *k, const frgi_plot *p, span values, span positions, bool any)
{
    static const char *const kinds[] = {
        [FRG_LINE] = "line", [FRG_POINTS] = "points", [FRG_BAND] = "band"};
    frgi_putf(k, "%d series:", p->n_series);
    for (int s = 0; s < p->n_series; s++) {
        frgi_put(k, s ? ", " : " ");
        put_elided(k, p->series[s].name, 80);
        frgi_putf(k, " (%s%s, %lld)", kinds[p->series[s].style],
                  p->series[s].low ? " with intervals" : "", (long long)p->series[s].n);
    }
    frgi_put(k, ".");
    if (!any)
        return;
    put_range(k, p->log_y ? "Values, on a logarithmic scale," : "Values", values);
    if (!p->categories)
        put_range(k, "Positions", positions);
}

void frgi_put_svg(frgi_sink *k, const frgi_plot *p, const char *caption, int number)
{
    span values, positions;
    const bool any = spans(p, &values, &positions);
    if (!any)
        values = positions = (span){1, 10};
    const drawing d = lay_out(p, values, positions);
    frgi_putf(k,
              "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"f%da f%db\">\n<title "
              "id=\"f%da\">",
              WIDTH, (int)ceil(d.height), number, number, number);
    frgi_put_escaped(k, caption[0] ? caption : "Plot", &frgi_escapes_html, true);
    frgi_putf(k, "</title>\n<desc id=\"f%db\">", number);
    put_description(k, p, values, positions, any);
    frgi_put(k, "</desc>\n");
    if (any) {
        put_legend(k, p, 0);
        put_axes(k, &d);
        put_reference(k, &d);
        for (int s = 0; s < p->n_series && k->status >= 0; s++)
            put_series(k, &d, s);
        put_labels(k, &d);
    } else {
        open_text(k, WIDTH / 2.0, 40, "middle", "label");
        frgi_put(k, "no finite values</text>\n");
    }
    frgi_put(k, "</svg>\n");
}
