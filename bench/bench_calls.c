/* bench_calls.c - tiny calls through the C interface: what bench/python/py_calls.py subtracts from
 * the same calls in Python.
 *
 *     build/bench_calls [BATCHES [REPEATS]]
 *
 * One JSON line a call: the median over batches of the microseconds of a call, with a context of
 * its own where the call of Python makes one ("fresh"). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "fourge/fe.h"
#include "fourge/gp.h"
#include "fourge/gw.h"

enum { MOST = 999 };

static const double x[8] = {0, 1, 2, 3, 4, 5, 6, 7}; /* 4 x 2 */
static const double y[4] = {0, 2, 4, 6};
static frg_context *kept;
static frg_gp *process;

static void check(frg_status status, const char *what)
{
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", what, frg_status_name(status));
        exit(1);
    }
}

static frg_context *context(void)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.threads = 1;
    frg_context *ctx = NULL;
    check(frg_context_create(&ctx, &o), "context");
    return ctx;
}

static void empty_context(void)
{
    frg_context_destroy(context());
}

static void invquad(void)
{
    static const double k[4] = {2, 0.5, 0.5, 1}, r[2] = {1, 2};
    double q, ld, solved[2] = {0, 0};
    const frg_array a = frg_vector(solved, FRG_F64, 2);
    check(frg_gp_invquad_logdet(kept, frg_matrix(k, FRG_F64, 2, 2, 2), frg_vector(r, FRG_F64, 2),
                                &q, &ld, &a, NULL),
          "invquad");
}

static void likelihood(void)
{
    static const double theta[3] = {1, 1, 0.1};
    frg_gp_value v;
    check(frg_gp_update_parameters(process, theta), "theta");
    check(frg_gp_eval(process, &v), "value");
}

static void gradient(void)
{
    double g[3];
    frg_gp_value v;
    check(frg_gp_eval_gradient(process, g, NULL, NULL, &v), "gradient");
}

static void demean(void)
{
    static const int32_t codes[4] = {0, 0, 1, 1};
    double out[8];
    frg_demean_column columns[2];
    frg_context *const ctx = context();
    frg_demean_opts o;
    frg_demean_defaults(&o, sizeof o);
    frg_demean *plan = NULL;
    check(frg_demean_create(&plan, ctx, frg_matrix(codes, FRG_I32, 4, 1, 1), NULL, NULL, 0, 0, &o),
          "demean");
    check(frg_demean_run(plan, frg_matrix(x, FRG_F64, 4, 2, 2), frg_matrix(out, FRG_F64, 4, 2, 2),
                         columns, NULL),
          "demean");
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
}

static void lsmr(void)
{
    static const int64_t starts[5] = {0, 2, 4, 6, 8};
    static const int32_t at[8] = {0, 1, 0, 1, 0, 1, 0, 1};
    const frg_csr a = {.m = 4, .n = 2, .starts = starts, .columns = at, .values = x};
    double out[2];
    frg_lsmr_column column;
    frg_context *const ctx = context();
    frg_lsmr_opts o;
    frg_lsmr_defaults(&o, sizeof o);
    check(frg_lsmr_solve(ctx, NULL, &a, frg_matrix(y, FRG_F64, 4, 1, 1), NULL,
                         frg_matrix(out, FRG_F64, 2, 1, 1), &o, &column, NULL),
          "lsmr");
    frg_context_destroy(ctx);
}

static void distances(double *d)
{
    for (int i = 0; i < 16; i++) {
        d[i] = fabs(y[i / 4] - y[i % 4]);
    }
}

static void transport(void)
{
    double cost[16];
    distances(cost);
    frg_context *const ctx = context();
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = 0.5;
    o.max_iter = 1;
    frg_sinkhorn *s = NULL;
    check(frg_sinkhorn_create(&s, ctx, frg_matrix(cost, FRG_F64, 4, 4, 4), NULL, NULL, &o),
          "transport");
    check(frg_sinkhorn_run(s, NULL), "transport");
    frg_sinkhorn_destroy(s);
    frg_context_destroy(ctx);
}

static void energy(void)
{
    double d[16], plan[16], e;
    distances(d);
    for (int i = 0; i < 16; i++) {
        plan[i] = 1.0 / 16;
    }
    frg_context *const ctx = context();
    const frg_array side = frg_matrix(d, FRG_F64, 4, 4, 4);
    check(frg_gw_energy(ctx, side, side, frg_matrix(plan, FRG_F64, 4, 4, 4), &e), "energy");
    frg_context_destroy(ctx);
}

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {{"context", empty_context},
             {"extension invquad_logdet, again", invquad},
             {"GP.log_likelihood n=4, again", likelihood},
             {"GP.gradient n=4, again", gradient},
             {"fe.demean 4 rows, fresh", demean},
             {"fe.lsmr 4 x 2, fresh", lsmr},
             {"gw.transport 4 x 4, fresh", transport},
             {"gw.energy 4 x 4, fresh", energy}};

static double median(void (*call)(void), int batches, int repeats)
{
    double times[MOST];
    call();
    for (int b = 0; b < batches; b++) {
        const double start = bench_now();
        for (int k = 0; k < repeats; k++) {
            call();
        }
        times[b] = (bench_now() - start) / repeats * 1e6;
    }
    bench_sort(times, batches);
    return times[batches / 2];
}

int main(int argc, char **argv)
{
    const int batches = argc > 1 ? atoi(argv[1]) : 15, repeats = argc > 2 ? atoi(argv[2]) : 200;
    if (batches < 1 || batches > MOST || repeats < 1) {
        fprintf(stderr, "bench_calls [BATCHES (1 to %d) [REPEATS]]\n", MOST);
        return 2;
    }
    kept = context();
    check(frg_gp_create(&process, kept, frg_matrix(x, FRG_F64, 4, 2, 2), frg_vector(y, FRG_F64, 4),
                        "1*rbf(l=1) + noise(0.1)", NULL),
          "process");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        printf("{\"call\": \"%s\", \"microseconds\": %.3f}\n", calls[i].name,
               median(calls[i].call, batches, repeats));
    }
    frg_gp_destroy(process);
    frg_context_destroy(kept);
    return 0;
}
