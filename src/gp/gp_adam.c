/* gp_adam.c - Adam on raw parameters, step by step what torch.optim.Adam does.
 *
 * The step is that of gp_optimise.h; the last point is the result, as there.  Two things are added
 * that torch lacks: the box (of no effect where it is infinite, as for softplus parameters), and a
 * step into a point without a value is halved instead of ending the run.
 *
 * Kingma and Ba (2015), ICLR; torch/optim/adam.py, the single-tensor form.
 */
#include <string.h>

#include "gp/gp_optimise.h"

enum { MAX_HALVINGS = 12 };

typedef struct {
    double *m, *v, *g, *from;
} moments;

static void lay_out(frgi_arena *a, moments *w, int n)
{
    w->m = TAKE(a, double, n);
    w->v = TAKE(a, double, n);
    w->g = TAKE(a, double, n);
    w->from = TAKE(a, double, n);
}

static void step(const frgi_gp_objective *o, moments *w, double rate, int64_t t, double *x)
{
    const frgi_gp_adam_step now = frgi_gp_adam_at(rate, t);
    for (int i = 0; i < o->n; i++) {
        w->from[i] = x[i];
        x[i] -= frgi_gp_adam_move(&now, w->g[i], &w->m[i], &w->v[i]);
        x[i] = frgi_gp_clip(o, i, x[i]);
    }
}

/** The value at x, which moves back towards `from` while there is none. */
static frg_status value_near(const frgi_gp_objective *o, const moments *w, double *x,
                             frgi_gp_found *out)
{
    frg_status status = frgi_gp_ask_value(o, x, &out->f, out);
    for (int k = 1; status == FRG_NOT_POSDEF && k <= MAX_HALVINGS; k++) {
        for (int i = 0; i < o->n; i++) {
            x[i] = k < MAX_HALVINGS ? 0.5 * (x[i] + w->from[i]) : w->from[i];
        }
        status = frgi_gp_ask_value(o, x, &out->f, out);
    }
    return status;
}

static frg_status run(const frgi_gp_objective *o, const frgi_gp_search *s, moments *w, double *x,
                      frgi_gp_found *out)
{
    for (int i = 0; i < o->n; i++) {
        w->m[i] = w->v[i] = 0;
        w->from[i] = x[i] = frgi_gp_clip(o, i, x[i]);
    }
    frg_status status = frgi_gp_ask_value(o, x, &out->f, out);
    for (int64_t t = 1; status == FRG_OK && t <= s->max_iter; t++) {
        status = frgi_gp_ask_gradient(o, w->g, out);
        if (status != FRG_OK) {
            break;
        }
        out->norm = frgi_gp_projected_norm(o, x, w->g);
        status = o->accepted ? o->accepted(o->user, x, out->f, out->norm) : FRG_OK;
        if (status != FRG_OK) {
            break;
        }
        step(o, w, s->rate, t, x);
        out->iterations++;
        status = value_near(o, w, x, out);
        if (status > 0) { /* a limit: the last point with a value */
            memcpy(x, w->from, (size_t)o->n * sizeof *x);
            out->iterations--;
        }
    }
    return status;
}

frg_status frgi_gp_adam(frg_context *ctx, const frgi_gp_objective *o, const frgi_gp_search *s,
                        double *x, frgi_gp_found *out)
{
    moments w;
    frgi_arena a = {0};
    lay_out(&a, &w, o->n);
    TRY(frgi_arena_open(&a, ctx, "work memory of Adam"));
    lay_out(&a, &w, o->n);
    const frg_status status = run(o, s, &w, x, out);
    frgi_arena_close(&a, ctx);
    return status;
}
