/* report_svg.c - plots as inline SVG.
 *
 * One drawing has a value axis and a position axis.  Upright plots put positions to the right and
 * values up; horizontal ones put positions down and values to the right (coefficient plots).
 * Colours come from the page's CSS variables.  Grid lines run across the value axis alone.
 *
 *      -o- name of series 1   --s-- name of series 2
 *      y label
 *      1.0 |------------------------------------
 *      0.5 |------------------------------------
 *          +-----+-----+-----+-----+-----+-----
 *          0     10    20    30    40    50
 *                                        x label
 */
#include <math.h>
#include <string.h>

#include "report/report_svg.h"

const char frgi_svg_style[] =
    "svg{display:block;width:100%;height:auto;overflow:visible}\n"
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
    "svg .link{stroke-width:.8;stroke-opacity:.4;fill:none}\n"
    "svg .band{fill-opacity:.16;stroke:none}\n"
    ".s1{stroke:var(--s1);fill:var(--s1)}.s2{stroke:var(--s2);fill:var(--s2)}.s3{stroke:var(--s3);"
    "fill:var(--s3)}\n"
    "@media screen and (max-width:34rem){svg text{font-size:19px}}\n"
    ".s4{stroke:var(--s4);fill:var(--s4)}.s5{stroke:var(--s5);fill:var(--s5)}.s6{stroke:var(--s6);"
    "fill:var(--s6)}\n";

enum { HEIGHT = 260, MAP_LEAST = 120, MAP_MOST = 560, ROW = 27, TEXT_AT_MOST = 270 };
/* Texts are 12.5 units high, and 19 on a narrow page, where the drawing is half as large: there is
 * room for the latter. */
static const double CHARACTER = 9.5; /* mean width of one at 19 */

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

/* ---- words ----------------------------------------------------------------------------------- */

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

static void put_segment(frgi_sink *k, const char *class, frgi_point a, frgi_point b)
{
    frgi_putf(k, "<path class=\"%s\" d=\"", class);
    frgi_put_point(k, "M", a);
    frgi_put_point(k, "L", b);
    frgi_put(k, "\"/>\n");
}

/* ---- axes ------------------------------------------------------------------------------------ */

/** The pixel of tick i of an axis that lies between two edges. */
static double tick_at(const frgi_axis *a, int i, double from, double to)
{
    return from + (a->at[i] - a->low) / (a->high - a->low) * (to - from);
}

/** Ticks below the drawing. */
static void put_bottom_axis(frgi_sink *k, const frgi_drawing *d, const frgi_axis *a, bool grid)
{
    for (int i = 0; i < a->n + a->n_minor; i++) {
        const double x = round(tick_at(a, i, d->left, d->right)) + 0.5;
        if (grid && i < a->n)
            put_segment(k, "grid", (frgi_point){x, d->top}, (frgi_point){x, d->bottom});
        put_segment(k, "axis", (frgi_point){x, d->bottom},
                    (frgi_point){x, d->bottom + (i < a->n ? 5 : 3)});
        if (i >= a->n)
            continue;
        open_text(k, x, d->bottom + 21, "middle", "");
        frgi_put_tick_label(k, a, i);
        frgi_put(k, "</text>\n");
    }
    put_segment(k, "axis", (frgi_point){d->left, d->bottom + 0.5},
                (frgi_point){d->right, d->bottom + 0.5});
}

static void put_left_axis(frgi_sink *k, const frgi_drawing *d, const frgi_axis *a)
{
    for (int i = 0; i < a->n + a->n_minor; i++) {
        const double y = round(tick_at(a, i, d->bottom, d->top)) + 0.5;
        if (i >= a->n) {
            put_segment(k, "axis", (frgi_point){d->left - 4, y}, (frgi_point){d->left, y});
            continue;
        }
        put_segment(k, "grid", (frgi_point){d->left, y}, (frgi_point){d->right, y});
        open_text(k, d->left - 8, y + 4, "end", "");
        frgi_put_tick_label(k, a, i);
        frgi_put(k, "</text>\n");
    }
}

/** Names at the positions 1..n: beside the rows of a horizontal plot, below the columns of an
 *  upright one. */
static void put_categories(frgi_sink *k, const frgi_drawing *d)
{
    const frgi_plot *const p = d->p;
    const double slot = (d->right - d->left) / (p->n_categories > 0 ? p->n_categories : 1);
    const int every = p->horizontal ? 1 : (int)ceil(5 * CHARACTER / slot);
    const int64_t available = p->horizontal ? (int64_t)(TEXT_AT_MOST / CHARACTER)
                                            : (int64_t)(slot * every / CHARACTER) - 1;
    /* a name stands amid the room of `every` positions */
    for (int c = every / 2; c + every / 2 < p->n_categories; c += every) {
        const double share = frgi_axis_place(&d->positions, c + 1);
        if (p->horizontal)
            open_text(k, d->left - 12, d->top + share * (d->bottom - d->top) + 4, "end", "name");
        else
            open_text(k, d->left + share * (d->right - d->left), d->bottom + 21, "middle", "name");
        frgi_put_elided(k, &frgi_escapes_html, p->categories[c], available > 3 ? available : 3);
        frgi_put(k, "</text>\n");
    }
    if (!p->horizontal)
        put_segment(k, "axis", (frgi_point){d->left, d->bottom + 0.5},
                    (frgi_point){d->right, d->bottom + 0.5});
}

static void put_frame(frgi_sink *k, const frgi_drawing *d)
{
    const frgi_point corners[] = {
        {d->left, d->top}, {d->right, d->top}, {d->right, d->bottom}, {d->left, d->bottom}};
    for (int c = 0; c < 4; c++)
        put_segment(k, "grid", corners[c], corners[(c + 1) % 4]);
}

static void put_axes(frgi_sink *k, const frgi_drawing *d)
{
    const bool horizontal = d->p->horizontal;
    if (d->p->map) {
        put_frame(k, d);
        return;
    }
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

static void put_labels(frgi_sink *k, const frgi_drawing *d)
{
    const frgi_plot *const p = d->p;
    const frgi_axis *const across = p->horizontal ? &d->values : &d->positions;
    const frgi_axis *const up = p->horizontal ? &d->positions : &d->values;
    if (p->y_label || up->power) {
        open_text(k, 0, d->top - 18, "start", "label");
        frgi_put_elided(k, &frgi_escapes_html, p->y_label ? p->y_label : "", 60);
        put_power(k, up);
        frgi_put(k, "</text>\n");
    }
    if (p->x_label || across->power) {
        open_text(k, d->right, d->bottom + 45, "end", "label");
        frgi_put_elided(k, &frgi_escapes_html, p->x_label ? p->x_label : "", 68);
        put_power(k, across);
        frgi_put(k, "</text>\n");
    }
}

static void put_reference(frgi_sink *k, const frgi_drawing *d)
{
    const double share = frgi_axis_place(&d->values, d->p->reference);
    if (!(share >= 0 && share <= 1))
        return;
    if (d->p->horizontal) {
        const double x = round(d->left + share * (d->right - d->left)) + 0.5;
        put_segment(k, "reference", (frgi_point){x, d->top}, (frgi_point){x, d->bottom});
    } else {
        const double y = round(d->bottom - share * (d->bottom - d->top)) + 0.5;
        put_segment(k, "reference", (frgi_point){d->left, y}, (frgi_point){d->right, y});
    }
}

/* ---- legend ---------------------------------------------------------------------------------- */

enum { SAMPLE = 30, LEGEND_GAP = 22, LEGEND_ROW = 24 };

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
        if (x > 0 && x + w > FRGI_SVG_WIDTH) {
            rows++;
            x = 0;
        }
        x += w;
    }
    return rows;
}

static void put_legend(frgi_sink *k, const frgi_plot *p, double top)
{
    double x = 0, y = top;
    for (int s = 0; s < p->n_series && p->n_series > 1; s++) {
        const double w = legend_width(&p->series[s]);
        if (x > 0 && x + w > FRGI_SVG_WIDTH) {
            y += LEGEND_ROW;
            x = 0;
        }
        frgi_put_sample(k, &p->series[s], s % FRGI_SVG_STYLES, x + 1, y + 10.5);
        open_text(k, x + SAMPLE, y + 15, "start", "name");
        frgi_put_elided(k, &frgi_escapes_html, p->series[s].name,
                        (int64_t)(TEXT_AT_MOST / CHARACTER));
        frgi_put(k, "</text>\n");
        x += w;
    }
}

/* ---- the drawing ----------------------------------------------------------------------------- */

/** What the axes must hold; false when no point can be drawn. */
static bool spans(const frgi_plot *p, span *values, span *positions)
{
    *values = *positions = (span){INFINITY, -INFINITY};
    for (int s = 0; s < p->n_series; s++) {
        const frgi_series *const series = &p->series[s];
        const double *const parts[] = {series->y, series->low, series->high};
        for (int64_t i = 0; i < series->n; i++) {
            widen(positions, frgi_position(series, i), false);
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
    const double margin = (s.high / 2 - s.low / 2) * 2 * share;
    return isfinite(margin) ? (span){s.low - margin, s.high + margin} : s;
}

static double label_width(const frgi_drawing *d)
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
        return 54;
    const double largest = fmax(fabs(a->low), fabs(a->high)) / pow(10, a->power);
    const int whole = largest >= 10 ? (int)floor(log10(largest)) + 1 : 1;
    return (whole + a->decimals + (a->decimals > 0) + (a->low < 0)) * CHARACTER + 14;
}

static void stretch(frgi_axis *a, double length)
{
    const double middle = a->low / 2 + a->high / 2;
    a->low = middle - length / 2;
    a->high = middle + length / 2;
}

/** One unit is as long on both axes; the one that is too short for the page has room at its
 *  ends. */
static void lay_out_map(frgi_drawing *d)
{
    d->values.power = d->positions.power = 0;
    d->left = 8;
    const double width = d->right - d->left, across = d->positions.high - d->positions.low,
                 up = d->values.high - d->values.low;
    const double height = fmin(fmax(width * (up / across), MAP_LEAST), MAP_MOST);
    if (height < MAP_MOST)
        stretch(&d->values, across * (height / width));
    else
        stretch(&d->positions, up * (width / height));
    d->bottom = d->top + height;
    d->height = d->bottom + (d->p->x_label ? 52 : 12);
}

static frgi_drawing lay_out(const frgi_plot *p, span values, span positions)
{
    frgi_drawing d = {.p = p};
    d.values = p->log_y ? frgi_axis_make(values.low, values.high, true, 8)
                        : frgi_axis_make(padded(values, 0.04).low, padded(values, 0.04).high, false,
                                         p->horizontal ? 7 : 6);
    const span range = p->categories ? positions : padded(positions, 0.02);
    d.positions = frgi_axis_make(range.low, range.high, false, 8);
    if (p->categories) { /* names instead of ticks, at their places */
        d.positions.low = positions.low;
        d.positions.high = positions.high;
        d.positions.power = 0;
    }
    d.left = fmax(label_width(&d), 24);
    d.right = FRGI_SVG_WIDTH - 8;
    const int rows = legend_rows(p);
    const bool label_above = p->y_label || (p->horizontal ? d.positions.power : d.values.power);
    d.top = 8 + rows * LEGEND_ROW + (label_above ? 30 : 0);
    const int series = frgi_point_series(p, p->n_series);
    const int row = ROW + (series > 1 ? (series - 1) * 9 : 0);
    d.bottom = d.top + (p->horizontal && p->categories ? row * p->n_categories : HEIGHT);
    const bool label_below = p->x_label || (p->horizontal ? d.values.power : d.positions.power);
    d.height = d.bottom + (label_below ? 52 : 30);
    if (p->map)
        lay_out_map(&d);
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
        [FRG_LINE] = "line", [FRG_POINTS] = "points", [FRG_BAND] = "band", [FRG_LINKS] = "links"};
    frgi_putf(k, "%d series:", p->n_series);
    for (int s = 0; s < p->n_series; s++) {
        frgi_put(k, s ? ", " : " ");
        frgi_put_elided(k, &frgi_escapes_html, p->series[s].name, 80);
        frgi_putf(k, " (%s%s, %lld)", kinds[p->series[s].style],
                  p->series[s].low ? " with intervals" : "",
                  (long long)p->series[s].n / (p->series[s].style == FRG_LINKS ? 2 : 1));
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
    const frgi_drawing d = lay_out(p, values, positions);
    frgi_putf(k,
              "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"f%da f%db\">\n<title "
              "id=\"f%da\">",
              FRGI_SVG_WIDTH, (int)ceil(d.height), number, number, number);
    frgi_put_escaped(k, caption[0] ? caption : "Plot", &frgi_escapes_html, true);
    frgi_putf(k, "</title>\n<desc id=\"f%db\">", number);
    put_description(k, p, values, positions, any);
    frgi_put(k, "</desc>\n");
    if (any) {
        put_legend(k, p, 0);
        put_axes(k, &d);
        put_reference(k, &d);
        for (int s = 0; s < p->n_series && k->status >= 0; s++)
            frgi_put_series(k, &d, s);
        put_labels(k, &d);
    } else {
        open_text(k, FRGI_SVG_WIDTH / 2.0, 40, "middle", "label");
        frgi_put(k, "no finite values</text>\n");
    }
    frgi_put(k, "</svg>\n");
}
