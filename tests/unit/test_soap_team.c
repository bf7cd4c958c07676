/* test_soap_team.c - factors and parameters that all threads share: the bits of one thread, which
 * tasks are shared, and what is too small for several threads. */
#include "fourge/soap.h"
#include "soap/soap_state.h"
#include "test.h"

enum { PARAMS = 3 };

/** One parameter that is most of the work, and two small ones. */
typedef struct {
    int64_t rows, columns;
    int frequency, adaptive, kl, powers, update_first;
    frg_qr_method method;
    int64_t block_dim;
} scene;

static frg_array view(const float *x, const scene *s, int i)
{
    const int64_t rows[PARAMS] = {s->rows, 40, 33}, columns[PARAMS] = {s->columns, 30, 70};
    return frg_matrix(x, FRG_F32, rows[i], columns[i], columns[i]);
}

/** W after three steps, one parameter after the other. */
static void run(const scene *s, int threads, uint64_t seed, float *w, int64_t *shared)
{
    static float g[3][1 << 19];
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, s->update_first ? FRG_SOAP_NIKHILVYAS : FRG_SOAP_EMERGING);
    o.lr = 0.01;
    o.precondition_frequency = s->frequency;
    o.use_adaptive_criteria = s->adaptive;
    o.adaptive_tolerance = 1e-3;
    o.use_kl_shampoo = s->kl;
    o.power_iter_steps = s->powers;
    o.qr_method = s->method;
    o.block_dim = s->block_dim;
    frg_soap *soap = NULL;
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o));
    frg_array grads[PARAMS];
    test_now.random = seed;
    for (int i = 0; i < PARAMS; i++) {
        grads[i] = view(g[i], s, i);
        const frg_array at = view(w, s, i);
        const int64_t count = at.shape[0] * at.shape[1];
        for (int64_t k = 0; k < count; k++)
            w[k] = (float)test_normal();
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, at, NULL, NULL));
        w += count;
    }
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < PARAMS; i++)
            for (int64_t k = 0; k < grads[i].shape[0] * grads[i].shape[1]; k++)
                g[i][k] = (float)test_normal();
        frg_soap_report report;
        CHECK_OK(ctx, frg_soap_step(soap, grads, PARAMS, &report));
        CHECK(!(report.orthogonality > 1e-3)); /* a probe sums `rows` entries of 1e-6 */
        const double parts[] = {report.factors_seconds, report.refresh_seconds,
                                report.project_seconds, report.update_seconds};
        double sum = 0;
        for (int k = 0; k < 4; k++) {
            CHECK(parts[k] >= 0);
            sum += parts[k];
        }
        CHECK(sum <= threads * report.seconds); /* the same clock, read in between */
    }
    *shared = soap->threading.tasks_shared;
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

static void bits_of_one_thread(void)
{
    const int64_t large = test_size(560, 260);
    const scene scenes[] = {
        {large, 260, 1, 0, 0, 1, 0, FRG_QR_AUTO, 0},
        {260, large, 2, 0, 0, 2, 0, FRG_QR_AUTO, 0}, /* the moment lives in the bases */
        {large, 260, 1, 1, 0, 1, 0, FRG_QR_AUTO, 0},
        {large, 260, 1, 0, 1, 1, 0, FRG_QR_AUTO, 0},
        {large, 260, 1, 0, 0, 1, 1, FRG_QR_CHOLESKY, 0},
        {large, 260, 1, 0, 0, 1, 0, FRG_QR_AUTO, 257},
    };
    static float one[1 << 19], many[1 << 19];
    for (size_t s = 0; s < sizeof scenes / sizeof *scenes; s++) {
        if (!test_turn((int64_t)s, 3))
            continue;
        int64_t shared = 0;
        const uint64_t seed = test_random();
        const size_t bytes =
            (size_t)(scenes[s].rows * scenes[s].columns + 40 * 30 + 33 * 70) * sizeof *one;
        run(&scenes[s], 1, seed, one, &shared);
        CHECK_INT(shared, 0);
        for (int threads = 2; threads < 4; threads++) {
            run(&scenes[s], threads, seed, many, &shared);
            CHECK_SAYS(shared > 0, "scene %d, %d threads: no task was shared", (int)s, threads);
            CHECK_SAYS(memcmp(one, many, bytes) == 0, "scene %d, %d threads: other bits", (int)s,
                       threads);
        }
    }
}

/** The largest tasks are shared where that ends sooner: one that is most of the work, one left
 *  over; never an eigendecomposition, nothing where the work deals evenly. */
static void which_tasks(void)
{
    static const struct {
        int threads;
        double cost[6];
        int64_t n, shared;
    } rows[] = {
        {1, {9, 1}, 2, 0},
        {2, {9, -1}, 2, 1},
        {2, {9, 1}, 2, 2},
        {2, {-9, 1}, 2, 0},
        {2, {4, 4}, 2, 0},
        {2, {8, 8, 8}, 3, 1},
        {2, {8, 8, 8, 8, 8, 8}, 6, 0},
        {2, {100}, 1, 1},
        {4, {100, -10, 10, 10, 10, 10}, 6, 1},
        {4, {100, 90}, 2, 2},
        {2, {0, 0}, 2, 0},
        {2, {5}, 0, 0},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const int64_t shared = frgi_soap_shared_tasks(rows[r].threads, rows[r].n, rows[r].cost);
        CHECK_SAYS(shared == rows[r].shared, "row %d: %d are shared", (int)r, (int)shared);
    }
}

/** Loops that were dealt to several threads in four steps of two square layers with biases. */
static int64_t dealt(int threads, int64_t order)
{
    static float w[2][1 << 18], b[2][1 << 9], g[1 << 18];
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    frg_soap *soap = NULL;
    frg_array grads[4];
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, NULL));
    for (int64_t i = 0; i < order * order; i++)
        g[i] = (float)test_normal();
    for (int l = 0; l < 2; l++) {
        grads[2 * l] = frg_matrix(g, FRG_F32, order, order, order);
        grads[2 * l + 1] = frg_vector(g, FRG_F32, order);
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, frg_matrix(w[l], FRG_F32, order, order, order),
                                         NULL, NULL));
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, frg_vector(b[l], FRG_F32, order), NULL, NULL));
    }
    for (int t = 0; t < 4; t++)
        CHECK_OK(ctx, frg_soap_step(soap, grads, 4, NULL));
    const int64_t count = soap->threading.loops_dealt;
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
    return count;
}

/** A thread that is not woken waits for nobody: small work is one thread's, and loops without work
 *  are none. */
static void small_work(void)
{
    static const struct {
        int most;
        double work;
        int team;
    } rows[] = {{8, 0, 1}, {8, 8e6, 1}, {8, 9e6, 2}, {8, 1.3e7, 3}, {8, 1e12, 8}, {1, 1e12, 1}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        CHECK_INT(frgi_team_for(rows[r].most, rows[r].work), rows[r].team);
    CHECK_INT(dealt(3, 16), 0);
    CHECK_INT(dealt(3, 48), 0);
    CHECK_INT(dealt(1, 256), 0);
    /* at least the factors, with their bases from the second step on, and the updates */
    CHECK(dealt(3, 256) >= 8);
}

static const test_case cases[] = {{"bits of one thread", bits_of_one_thread},
                                  {"which tasks", which_tasks},
                                  {"small work", small_work}};
TEST_MAIN(cases)
