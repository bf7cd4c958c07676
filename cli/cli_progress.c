/* cli_progress.c - the line that shows how far a run is, and the trace for the convergence curve.
 *
 * Krylov residuals fall about geometrically, so log10(residual) is a line in time; its slope,
 * measured over the intervals between two displays and smoothed, gives the time at which the target
 * is crossed:
 *
 *     eta = (log10(target) - log10(residual)) / slope
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const double interval = 0.1; /* seconds between two displays */

void progress_start(progress_state *p, const cli *c)
{
    memset(p, 0, sizeof *p);
    p->keep_trace = c->set.report != NULL;
    p->trace.stride = 1;
    p->mode = c->set.quiet ? PROGRESS_NONE : (progress_mode)c->set.progress;
    if (p->mode == PROGRESS_AUTO && !isatty(STDERR_FILENO)) {
        p->mode = PROGRESS_NONE;
    }
}

static void keep_point(trace *t, double iteration, double residual)
{
    if (t->seen++ % t->stride) {
        return;
    }
    if (t->n == TRACE_ROOM) {
        for (int64_t i = 0; i < TRACE_ROOM / 2; i++) {
            t->iteration[i] = t->iteration[2 * i];
            t->residual[i] = t->residual[2 * i];
        }
        t->n = TRACE_ROOM / 2;
        t->stride *= 2;
    }
    t->iteration[t->n] = iteration;
    t->residual[t->n++] = residual;
}

static void measure(progress_state *p, const frg_progress *now)
{
    const double passed = now->seconds - p->slope_time;
    const double level = now->residual > 0 ? log10(now->residual) : (double)NAN;
    const char *const phase = now->phase ? now->phase : "";
    if (now->done < p->last_done || passed < 0 || p->slope_time <= 0 ||
        strncmp(p->phase, phase, sizeof p->phase - 1) != 0) { /* another phase, or the first */
        p->slope = p->rate = 0;
    } else if (passed > 0) {
        p->rate = (double)(now->done - p->last_done) / passed;
        const double slope = (level - p->slope_log) / passed;
        if (isfinite(slope)) {
            p->slope = p->slope < 0 ? 0.7 * p->slope + 0.3 * slope : slope;
        }
    }
    snprintf(p->phase, sizeof p->phase, "%s", phase);
    p->last_done = now->done;
    p->slope_time = now->seconds;
    p->slope_log = level;
}

/** Seconds to go, NaN where that is not known. */
static double eta(const progress_state *p, const frg_progress *now)
{
    if (now->residual > 0 && now->target > 0 && p->slope < 0) {
        const double left = (log10(now->target) - log10(now->residual)) / p->slope;
        return left > 0 ? left : 0;
    }
    if (now->total > 0 && now->done > 0 && p->rate > 0) {
        return (double)(now->total - now->done) / p->rate;
    }
    return NAN;
}

static void json_number_or_null(const char *key, double x)
{
    if (isfinite(x)) {
        fprintf(stderr, ",\"%s\":%.6g", key, x);
    } else {
        fprintf(stderr, ",\"%s\":null", key);
    }
}

static void show_json(const progress_state *p, const frg_progress *now)
{
    fputs("{\"progress\":{\"solver\":", stderr);
    write_json_string(stderr, now->solver ? now->solver : "");
    fputs(",\"phase\":", stderr);
    write_json_string(stderr, now->phase ? now->phase : "");
    fprintf(stderr, ",\"done\":%lld,\"total\":%lld,\"unit\":\"%s\"", (long long)now->done,
            (long long)now->total, now->in_bytes ? "bytes" : "steps");
    json_number_or_null("residual", now->residual);
    json_number_or_null("target", now->target);
    json_number_or_null("seconds", now->seconds);
    json_number_or_null("eta", eta(p, now));
    fputs("}}\n", stderr);
}

static const char *amount_text(int bytes, double amount, char text[32])
{
    if (bytes) {
        return bytes_text(amount, text);
    }
    snprintf(text, 32, "%.0f", amount);
    return text;
}

static void show_line(progress_state *p, const frg_progress *now)
{
    const int bytes = now->in_bytes;
    char line[160], time[32], a[32];
    int used = snprintf(line, sizeof line, "%s %s", now->phase ? now->phase : "",
                        amount_text(bytes, (double)now->done, a));
    const size_t room = sizeof line;
    if (now->total > 0) {
        used += snprintf(line + used, room - (size_t)used, " of %s",
                         amount_text(bytes, (double)now->total, a));
    }
    if (now->residual >= 0) {
        used += snprintf(line + used, room - (size_t)used, ", residual %s",
                         short_text(now->residual, 2, a));
        if (now->target > 0) {
            used += snprintf(line + used, room - (size_t)used, " (target %s)",
                             short_text(now->target, 1, a));
        }
    }
    if (p->rate > 0) {
        const char *const rate = bytes ? bytes_text(p->rate, a) : NULL;
        used += rate ? snprintf(line + used, room - (size_t)used, ", %s/s", rate)
                     : snprintf(line + used, room - (size_t)used, ", %.3g/s", p->rate);
    }
    const double left = eta(p, now);
    if (isfinite(left)) {
        snprintf(line + used, room - (size_t)used, ", %s to go",
                 left < 1 ? "under 1 s" : seconds_text(left, time));
    }
    fprintf(stderr, "\r\033[K%.78s", line);
    fflush(stderr);
    p->shown = 1;
}

int progress_report(const frg_progress *now, void *user)
{
    cli *c = user;
    progress_state *p = &c->progress;
    if (p->keep_trace && now->residual > 0 && now->target > 0) {
        keep_point(&p->trace, ++p->steps, now->residual);
    }
    if (cli_signalled()) {
        return 1;
    }
    const double time = now_seconds();
    if (p->mode == PROGRESS_NONE || time - p->last < interval) {
        return 0;
    }
    p->last = time;
    measure(p, now);
    if (p->mode == PROGRESS_JSON) {
        show_json(p, now);
    } else {
        show_line(p, now);
    }
    return 0;
}

void progress_clear(progress_state *p)
{
    if (p->shown) {
        fputs("\r\033[K", stderr);
        p->shown = 0;
    }
}

/** Warnings (level 0) are shown from the context's list when the run is over. */
void progress_log(int level, const char *line, void *user)
{
    cli *c = user;
    if (level > 0 && level <= c->set.verbose) {
        progress_clear(&c->progress);
        fputs("fourge: ", stderr);
        write_visible(stderr, line);
        putc('\n', stderr);
    }
}
