/* report_spark.c - line plots in one line of block characters each.
 *
 *     residual  █▇▆▅▅▄▃▃▂▁  1 → 2.1e-11
 *
 * A curve longer than the line is averaged over equal stretches, on the log scale where the plot
 * has one. Points that are missing, and values without a logarithm, leave a blank.
 */
#include <math.h>

#include "report/report_parts.h"

enum { LONGEST = 60, SHORTEST = 8, NUMBERS_WIDTH = 24 };

static double height(const frgi_plot *p, double y)
{
    const double h = p->log_y ? (y > 0 ? log10(y) : (double)NAN) : y;
    return isfinite(h) ? h : (double)NAN;
}

/** Mean height of the points of stretch i of `cells`; NaN where there is none. */
static double stretch(const frgi_plot *p, const frgi_series *s, int64_t i, int64_t cells)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t a = i * s->n / cells; a < (i + 1) * s->n / cells; a++) {
        const double h = height(p, s->y[a]);
        if (!isnan(h)) {
            count++;
            sum += (h - sum) / (double)count; /* a running mean does not overflow */
        }
    }
    return count ? sum : (double)NAN;
}

static double finite_from(const frgi_series *s, int64_t at, int64_t step)
{
    for (; at >= 0 && at < s->n; at += step)
        if (isfinite(s->y[at]))
            return s->y[at];
    return NAN;
}

static void put_line(frgi_sink *k, const frgi_plot *p, const frgi_series *s, int64_t cells)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double values[LONGEST], low = INFINITY, high = -INFINITY;
    if (cells > s->n)
        cells = s->n;
    for (int64_t i = 0; i < cells; i++) {
        values[i] = stretch(p, s, i, cells);
        low = fmin(low, values[i]); /* NaN loses */
        high = fmax(high, values[i]);
    }
    for (int64_t i = 0; i < cells; i++) {
        /* halves: high - low may overflow */
        const double share = high > low ? (values[i] / 2 - low / 2) / (high / 2 - low / 2) : 0.5;
        frgi_put(k, isnan(values[i]) ? " " : blocks[(int)fmin(7, floor(share * 8))]);
    }
    char from[32], to[32];
    frg_format_short(finite_from(s, 0, 1), 3, from);
    frg_format_short(finite_from(s, s->n - 1, -1), 3, to);
    frgi_putf(k, "  %s → %s", from, to);
}

bool frgi_has_text(const frgi_element *e)
{
    bool lines = e->kind != ELEMENT_PLOT;
    for (int s = 0; !lines && s < e->plot.n_series; s++)
        lines = e->plot.series[s].style == FRG_LINE;
    return lines;
}

void frgi_put_sparks(frgi_sink *k, const frgi_plot *p, const frgi_escapes *e, int width,
                     const char *indent)
{
    const int64_t longest = width / 3;
    int64_t names = 0;
    for (int s = 0; s < p->n_series; s++) {
        const int64_t w = frgi_escaped_width(k, p->series[s].name, e);
        names = w > names ? w : names;
        names = names < longest ? names : longest;
    }
    const int64_t available = width - names - NUMBERS_WIDTH;
    const int64_t cells = available > LONGEST    ? LONGEST
                          : available < SHORTEST ? SHORTEST
                                                 : available;
    for (int s = 0; s < p->n_series; s++) {
        const frgi_series *const series = &p->series[s];
        if (series->style != FRG_LINE || series->n == 0)
            continue;
        frgi_put(k, indent);
        frgi_put_elided(k, e, series->name, longest);
        const int64_t w = frgi_escaped_width(k, series->name, e);
        frgi_put_times(k, " ", 2 + (w < names ? names - w : 0));
        put_line(k, p, series, cells);
        frgi_put(k, "\n");
    }
}
