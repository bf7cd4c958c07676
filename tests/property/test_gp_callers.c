/* test_gp_callers.c - threads of a program that call at once, each with a context and processes of
 * its own: the bits of one caller alone.  Under the thread sanitizer this looks for anything that
 * calls share.
 */
#include <pthread.h>

#include "gp_data.h"

enum { CALLERS = 4, MEMBERS = 6, NEW = 12, N = 90, P = 8 };

/** What a caller computes, all of it compared. */
typedef struct {
    double value[4], gradient[3][P], theta[P], std_error[P];
    double mean[NEW], variance[NEW], draws[2 * NEW], prior[NEW];
    double left_out[N], density[P], information[P * P];
    double members[MEMBERS][P], dense[2], dk[N * N];
} answers;

typedef struct {
    const gp_data *data;
    uint64_t seed; /* of the context; also which kernel */
    answers *to;
    bool failed;
} caller;

#define TAKE_CARE(call)                                                                            \
    if ((call) < 0) {                                                                              \
        return false;                                                                              \
    }

static bool evaluate(const caller *c, frg_context *ctx)
{
    static const char *const kernels[] = {"1.2*rbf(ard) + noise(0.1)",
                                          "0.8*matern52(l=0.4)*periodic(l=1, p=0.7) + noise(0.1)"};
    answers *const to = c->to;
    for (int k = 0; k < 3; k++) {
        frg_gp_opts o = gp_data_opts(k == 2 ? "profiled" : "const");
        frg_gp *gp = NULL;
        frg_gp_value v;
        o.precision = (frg_gp_precision)k;
        o.profile_scale = k == 1;
        TAKE_CARE(frg_gp_create(&gp, ctx, gp_data_x(c->data), gp_data_y(c->data),
                                kernels[c->seed % 2], &o));
        const bool good =
            frg_gp_eval_gradient(gp, to->gradient[k], NULL, NULL, &v) >= 0 &&
            (k > 0 || (frg_gp_eval_loo(gp, to->left_out, NULL, to->density, NULL) >= 0 &&
                       frg_gp_eval_information(gp, to->information) >= 0));
        to->value[k] = v.log_likelihood;
        frg_gp_destroy(gp);
        if (!good) {
            return false;
        }
    }
    return true;
}

static bool fit_and_predict(const caller *c, frg_context *ctx)
{
    answers *const to = c->to;
    const frg_gp_opts o = gp_data_opts("const");
    const frg_array x = frg_matrix(c->data->x, FRG_F64, NEW, c->data->d, c->data->d);
    frg_array mean = frg_vector(to->mean, FRG_F64, NEW),
              variance = frg_vector(to->variance, FRG_F64, NEW);
    frg_gp_predict_opts p;
    frg_gp_fit_opts f;
    frg_gp_fit_result r;
    frg_gp *gp = NULL;
    frg_gp_predict_defaults(&p, sizeof p);
    p.mean = &mean;
    p.variance = &variance;
    frg_gp_fit_defaults(&f, sizeof f);
    f.starts = 3;
    f.max_iter = 5;
    TAKE_CARE(frg_gp_create(&gp, ctx, gp_data_x(c->data), gp_data_y(c->data),
                            "scale*matern32 + noise", &o));
    const bool good =
        frg_gp_fit(gp, &f, &r) >= 0 && frg_gp_predict(gp, x, &p) >= 0 &&
        frg_gp_sample(gp, x, 2, 0, 1, frg_matrix(to->draws, FRG_F64, 2, NEW, NEW)) >= 0 &&
        frg_gp_sample(gp, x, 1, 1, 0, frg_matrix(to->prior, FRG_F64, 1, NEW, NEW)) >= 0 &&
        frg_gp_update_remove(gp, 3) >= 0 && frg_gp_eval(gp, &r.value) >= 0;
    to->value[3] = good ? r.value.log_likelihood : 0;
    for (int i = 0; good && i < frg_gp_parameter_count(gp); i++) {
        frg_gp_parameter q;
        TAKE_CARE(frg_gp_get_parameter(gp, i, &q));
        to->theta[i] = q.value;
        to->std_error[i] = q.std_error;
    }
    frg_gp_destroy(gp);
    return good;
}

static bool many_and_dense(const caller *c, frg_context *ctx)
{
    answers *const to = c->to;
    const gp_data *const g = c->data;
    frg_gp_member members[MEMBERS];
    for (int64_t i = 0; i < MEMBERS; i++) {
        members[i] = (frg_gp_member){.x = frg_matrix(g->x, FRG_F64, 20 + i, g->d, g->d),
                                     .y = frg_vector(g->y + i, FRG_F64, 20 + i),
                                     .gradient = to->members[i]};
    }
    TAKE_CARE(frg_gp_batch_eval(ctx, MEMBERS, members, "1*rbf(l=0.4) + noise(0.1)", NULL));
    for (int64_t i = 0; i < N * N; i++) {
        const double gap = g->y[i / N] - g->y[i % N];
        to->dk[i] = exp(-gap * gap) + (i / N == i % N);
    }
    const frg_array k = frg_matrix(to->dk, FRG_F64, N, N, N);
    TAKE_CARE(frg_gp_invquad_logdet(ctx, k, frg_vector(g->y, FRG_F64, N), &to->dense[0],
                                    &to->dense[1], NULL, NULL));
    return true;
}

static void *call(void *user)
{
    caller *const c = user;
    frg_context_opts o;
    frg_context *ctx = NULL;
    frg_context_defaults(&o, sizeof o);
    o.threads = 2;
    o.seed = c->seed;
    c->failed = frg_context_create(&ctx, &o) < 0 || !evaluate(c, ctx) || !fit_and_predict(c, ctx) ||
                !many_and_dense(c, ctx);
    frg_context_destroy(ctx);
    return NULL;
}

static void callers(void)
{
    static gp_data data[CALLERS];
    static answers alone[CALLERS], together[CALLERS];
    pthread_t threads[CALLERS];
    caller c[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        gp_data_random(&data[i], N, 2, 1);
        c[i] = (caller){.data = &data[i], .seed = (uint64_t)i, .to = &alone[i]};
        call(&c[i]);
        CHECK(!c[i].failed);
        c[i].to = &together[i];
    }
    for (int i = 0; i < CALLERS; i++) {
        CHECK_INT(pthread_create(&threads[i], NULL, call, &c[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
        CHECK(!c[i].failed);
        CHECK_BITS(&together[i], &alone[i], sizeof together[i]);
    }
}

static const test_case cases[] = {
    {"callers", callers},
};
TEST_MAIN(cases)
