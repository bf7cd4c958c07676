/* report_axis.c - axes: where the ticks stand and what they say.
 *
 * Linear: steps of 1, 2 or 5 times 10^m, the smallest that gives no more ticks than wanted.  A tick
 * is computed as (whole number) * step / 10^-m, so that 0.3 is 0.3 and not 0.30000000000000004.
 * Labels all have the decimals of the step; far from 1 they are divided by a power of ten that the
 * axis states once. Logarithmic: whole decades, every second or third where there are many; the
 * ends are decades too.
 *
 * Data may be anything finite: ranges too narrow for double arithmetic are widened, and those whose
 * length would overflow are cut.
 */
#include <math.h>
#include <stdio.h>

#include "report/report_parts.h"

static const double WIDEST = 8e307;

static int floor_log10(double v)
{
    return (int)floor(log10(v));
}

/** The step to use for ticks about `raw` apart, as factor * 10^*power. */
static int round_step(double raw, int *power)
{
    *power = floor_log10(raw);
    const double unit = raw / pow(10, *power);
    const int factor = unit <= 1.0000001 ? 1 : unit <= 2.0000001 ? 2 : unit <= 5.0000001 ? 5 : 10;
    if (factor < 10)
        return factor;
    (*power)++;
    return 1;
}

static double scaled(double v, int power)
{
    return power >= 0 ? v * pow(10, power) : v / pow(10, -power);
}

static void linear_ticks(frgi_axis *a, int wanted)
{
    int power;
    const int factor = round_step((a->high - a->low) / wanted, &power);
    a->step = scaled(factor, power);
    const double first = ceil(a->low / a->step - 1e-9), last = floor(a->high / a->step + 1e-9);
    for (double i = first; i <= last && a->n < FRGI_TICKS; i++)
        a->at[a->n++] = scaled(i * factor, power);
    const double largest = fmax(fabs(a->low), fabs(a->high));
    const int magnitude = floor_log10(largest);
    a->power = magnitude > 5 || magnitude < -3 ? magnitude : 0;
    a->decimals = a->power - power > 0 ? a->power - power : 0;
}

static frgi_axis linear_axis(double low, double high, int wanted)
{
    low = fmax(low, -WIDEST);
    high = fmin(high, WIDEST);
    const double largest = fmax(fabs(low), fabs(high));
    const double least = fmax(largest * 1e-9, 1e-290);
    if (!(high - low >= least)) { /* a constant: room for it in the middle */
        const double margin = fmax(largest * 0.1, least);
        low -= largest > 0 ? margin : 1;
        high += largest > 0 ? margin : 1;
    }
    frgi_axis a = {.low = low, .high = high};
    linear_ticks(&a, wanted);
    return a;
}

/** Ticks between the decades, where there are few enough of those to have room. */
static void minor_ticks(frgi_axis *a)
{
    if (a->high - a->low > 2)
        return;
    for (double decade = a->low; decade < a->high; decade++)
        for (int i = 2; i < 10 && a->n + a->n_minor < FRGI_TICKS; i++)
            a->at[a->n + a->n_minor++] = decade + log10(i);
}

static frgi_axis log_axis(double low, double high, int wanted)
{
    frgi_axis a = {.log = true, .low = floor(log10(low) + 1e-9), .high = ceil(log10(high) - 1e-9)};
    if (a.high <= a.low)
        a.high = a.low + 1;
    a.step = fmax(1, ceil((a.high - a.low) / wanted));
    a.low = a.high - a.step * ceil((a.high - a.low) / a.step);
    for (double d = a.low; d <= a.high && a.n < FRGI_TICKS; d += a.step)
        a.at[a.n++] = d;
    minor_ticks(&a);
    return a;
}

frgi_axis frgi_axis_make(double low, double high, bool log, int wanted)
{
    return log ? log_axis(low, high, wanted) : linear_axis(low, high, wanted);
}

double frgi_axis_place(const frgi_axis *a, double value)
{
    const double v = a->log ? (value > 0 ? log10(value) : (double)NAN) : value;
    return isfinite(v) ? (v - a->low) / (a->high - a->low) : (double)NAN;
}

/** A whole number in groups of three from five figures on, as the tables have it. */
static void put_grouped(frgi_sink *k, double whole)
{
    char figures[32];
    const int count = snprintf(figures, sizeof figures, "%.0f", whole);
    const int head = count < 5 ? count : (count - 1) % 3 + 1;
    frgi_put_bytes(k, figures, (size_t)head);
    for (int i = head; i < count; i += 3)
        frgi_putf(k, "<tspan dx=\"2.5\">%.3s</tspan>", figures + i);
}

void frgi_put_tick_label(frgi_sink *k, const frgi_axis *a, int i)
{
    const double v = a->at[i];
    const bool short_decades = a->log && a->at[0] >= -2 && a->at[a->n - 1] <= 3;
    if (short_decades) {
        frgi_put_fixed(k, pow(10, v), v < 0 ? (int)-v : 0, false);
    } else if (a->log) {
        frgi_putf(k, "10<tspan dy=\"-0.4em\" font-size=\"75%%\">%s%d</tspan>", v < 0 ? "−" : "",
                  (int)fabs(v));
    } else {
        const double shown = scaled(v, -a->power);
        frgi_put(k, v < 0 ? "−" : "");
        if (a->decimals == 0)
            put_grouped(k, fabs(shown));
        else
            frgi_put_fixed(k, fabs(shown), a->decimals < 12 ? a->decimals : 12, false);
    }
}
