/* test_soap_limits.c - the optimizer at the ends of its options and of the numbers' range, and
 * dealt to other handles. */
#include "soap_data.h"

enum { M = 12, N = 7, SIZE = M * N };

static frg_array weights_of(const void *x)
{
    return matrix(x, M, N);
}

static bool all_finite(const float *x, int64_t n)
{
    bool fine = true;
    for (int64_t i = 0; i < n; i++)
        fine = fine && isfinite(x[i]);
    return fine;
}

/** Rates and betas at their ends: W is finite, bases are orthogonal (a probe sums M entries); at lr
 *  0 W stays to the bit. */
static void ends_of_options(void)
{
    static const struct {
        double lr, beta1, beta2, shampoo_beta, eps;
        int correct_bias;
    } rows[] = {
        {0, 0.9, 0.95, 0.95, 1e-8, 1},
        {0.1, 0, 0, 0, 1e-8, 1},
        {0.1, 0, 0, 0, 0, 0},
        {0.1, 0.9, 0.999999, 0.999999, 1e-8, 1},
        {0.1, 0.999999, 0.999999, 0, 0, 1},
        {0.1, 0, 0.95, 0.999999, 1, 0},
        {1e30, 0.9, 0.95, 0.95, 1e-8, 1},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (int profile = 0; profile < 3; profile++) {
            frg_context *ctx = test_context();
            frg_soap_opts o;
            frg_soap_defaults(&o, sizeof o, (frg_soap_profile)profile);
            o.lr = rows[r].lr;
            o.beta1 = rows[r].beta1;
            o.beta2 = rows[r].beta2;
            o.shampoo_beta = rows[r].shampoo_beta;
            o.eps = rows[r].eps;
            o.correct_bias = rows[r].correct_bias;
            o.weight_decay = 0;
            o.precondition_frequency = 1;
            float w[SIZE], before[SIZE], g[SIZE];
            gaussian(1, w, SIZE);
            memcpy(before, w, sizeof w);
            frg_soap *soap = optimizer(ctx, &o, weights_of(w));
            const frg_array grad = weights_of(g);
            for (int t = 0; t < 12; t++) {
                frg_soap_report report;
                gaussian(1, g, SIZE);
                CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, &report));
                CHECK(!(report.orthogonality > 1e-5 * M));
            }
            CHECK_SAYS(all_finite(w, SIZE), "row %d, profile %d", (int)r, profile);
            if (o.lr == 0)
                CHECK_BITS(w, before, sizeof w);
            frg_soap_destroy(soap);
            frg_context_destroy(ctx);
        }
    }
}

/** A hundred steps without a gradient after five with one: moments and factors decay into
 *  denormals, nothing is NaN, W comes to rest, and gradients that come again are followed. */
static void long_silence(void)
{
    for (int profile = 0; profile < 3; profile++) {
        frg_context *ctx = test_context();
        frg_soap_opts o;
        frg_soap_defaults(&o, sizeof o, (frg_soap_profile)profile);
        o.weight_decay = 0;
        o.precondition_frequency = 1;
        float w[SIZE], g[SIZE], rest[SIZE];
        gaussian(1, w, SIZE);
        frg_soap *soap = optimizer(ctx, &o, weights_of(w));
        const frg_array grad = weights_of(g);
        for (int t = 0; t < 1105; t++) {
            gaussian(t < 5 ? 1e-6 : 0, g, SIZE);
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
            if (t == 1000)
                memcpy(rest, w, sizeof w);
        }
        CHECK(all_finite(w, SIZE));
        for (int i = 0; i < SIZE; i++)
            CHECK_NEAR((double)w[i], (double)rest[i], 1e-4);
        memcpy(rest, w, sizeof w);
        for (int t = 0; t < 5; t++) {
            gaussian(1, g, SIZE);
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        }
        CHECK(all_finite(w, SIZE) && memcmp(w, rest, sizeof w) != 0);
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
}

/** With eps 0 the update does not see the scale of the gradients: powers of two change no bit as
 *  long as squares of what matters stay in range (LAPACK scales matrices of norms beyond 3e-16 ..
 *  3e15 by what is no power of two, and has thresholds that do not scale). At the ends of the range
 *  W is finite; where gradients are large it moves by lr a step and entry, in the mean by more than
 *  one lr in eight steps. */
static void scales(void)
{
    static const double scale[] = {1,       0x1p-4,  0x1p20,  0x1p60,   0x1p80,
                                   0x1p100, 0x1p120, 0x1p-60, 0x1p-120, 0x1p-140};
    float first[SIZE] = {0};
    for (size_t s = 0; s < sizeof scale / sizeof *scale; s++) {
        frg_context *ctx = test_context_with(1, NULL, NULL);
        frg_soap_opts o;
        frg_soap_defaults(&o, sizeof o, FRG_SOAP_EMERGING);
        o.eps = 0;
        o.weight_decay = 0;
        o.lr = 0.01;
        float w[SIZE] = {0}, g[SIZE];
        frg_soap *soap = optimizer(ctx, &o, weights_of(w));
        const frg_array grad = weights_of(g);
        uint64_t z = 9;
        for (int t = 0; t < 8; t++) {
            for (int i = 0; i < SIZE; i++) {
                z = z * 6364136223846793005u + 1442695040888963407u;
                g[i] = (float)(scale[s] * ((double)(z >> 40) * 0x1p-24 - 0.5));
            }
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        }
        CHECK_SAYS(all_finite(w, SIZE), "scale %g", scale[s]);
        double moved = 0;
        for (int i = 0; i < SIZE; i++)
            moved += fabs((double)w[i]) / SIZE;
        CHECK_SAYS(scale[s] < 1 || moved > o.lr, "scale %g: moved by %g", scale[s], moved);
        if (s == 0)
            memcpy(first, w, sizeof w);
        if (s == 1 || s == 2)
            CHECK_BITS(w, first, sizeof w);
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
}

/** Parameters of one handle go to two, to four, and back, in the middle of a run: the bits of the
 *  run in one. */
static void dealt_anew(void)
{
    enum { PARAMS = 4, STEPS = 12 };
    static const int handles[] = {1, 2, 4, 1};
    for (int kind = 0; kind < 2; kind++) {
        frg_context *ctx = test_context_with(2, NULL, NULL);
        frg_soap_opts o;
        frg_soap_defaults(&o, sizeof o, kind ? FRG_SOAP_NIKHILVYAS : FRG_SOAP_EMERGING);
        o.precondition_frequency = 5;
        float w[2][PARAMS][SIZE], g[PARAMS][SIZE];
        gaussian(1, w[0][0], PARAMS * SIZE);
        memcpy(w[1], w[0], sizeof w[0]);
        frg_soap *whole = NULL, *part[PARAMS] = {NULL};
        char *state[PARAMS] = {NULL};
        int64_t bytes[PARAMS] = {0};
        CHECK_OK(ctx, frg_soap_create(&whole, ctx, &o));
        for (int p = 0; p < PARAMS; p++)
            CHECK_OK(ctx, frg_soap_add_param(whole, 0, weights_of(w[0][p]), NULL, NULL));
        for (int t = 0; t < STEPS; t++) {
            const int count = handles[t / 3];
            if (t % 3 == 0) { /* parameter p belongs to handle p % count */
                for (int h = 0; h < PARAMS; h++) {
                    frg_soap_destroy(part[h]);
                    part[h] = NULL;
                }
                for (int p = 0; p < PARAMS; p++) {
                    if (!part[p % count])
                        CHECK_OK(ctx, frg_soap_create(&part[p % count], ctx, &o));
                    int64_t id;
                    CHECK_OK(ctx, frg_soap_add_param(part[p % count], 0, weights_of(w[1][p]), NULL,
                                                     &id));
                    CHECK_INT(id, p / count);
                    if (t)
                        CHECK_OK(ctx, frg_soap_load_param(part[p % count], id, state[p], bytes[p],
                                                          NULL));
                }
            }
            frg_array grads[PARAMS];
            gaussian(1, g[0], PARAMS * SIZE);
            for (int p = 0; p < PARAMS; p++)
                grads[p] = weights_of(g[p]);
            CHECK_OK(ctx, frg_soap_step(whole, grads, PARAMS, NULL));
            for (int h = 0; h < count; h++) {
                frg_array mine[PARAMS];
                int n = 0;
                for (int p = h; p < PARAMS; p += count)
                    mine[n++] = grads[p];
                CHECK_OK(ctx, frg_soap_step(part[h], mine, n, NULL));
            }
            CHECK_BITS(w[1], w[0], sizeof w[0]);
            for (int p = 0; p < PARAMS; p++) {
                CHECK_OK(ctx, frg_soap_save_param(part[p % count], p / count, NULL, 0, &bytes[p]));
                free(state[p]);
                state[p] = malloc((size_t)bytes[p]);
                CHECK_OK(ctx, frg_soap_save_param(part[p % count], p / count, state[p], bytes[p],
                                                  &bytes[p]));
            }
        }
        CHECK_STATUS(frg_soap_load_param(whole, 0, state[0], bytes[0] - 1, NULL), FRG_MISMATCH);
        CHECK_STATUS(frg_soap_load_param(whole, PARAMS, state[0], bytes[0], NULL), FRG_BAD_ARG);
        CHECK_STATUS(frg_soap_load_param(whole, -1, state[0], bytes[0], NULL), FRG_BAD_ARG);
        CHECK_STATUS(frg_soap_load_param(NULL, 0, state[0], bytes[0], NULL), FRG_BAD_ARG);
        CHECK_STATUS(frg_soap_save_param(whole, 9, NULL, 0, &bytes[0]), FRG_BAD_ARG);
        CHECK_STATUS(frg_soap_load_bytes(whole, state[0], bytes[0], NULL), FRG_MISMATCH);
        for (int p = 0; p < PARAMS; p++) {
            frg_soap_destroy(part[p]);
            free(state[p]);
        }
        frg_soap_destroy(whole);
        frg_context_destroy(ctx);
    }
}

/** Every bit of a state: a load fails and nothing has changed.  Another byte order and version,
 *  too. */
static void every_bit(void)
{
    frg_context *ctx = test_context();
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, FRG_SOAP_EMERGING);
    float w[6], g[6];
    gaussian(1, w, 6);
    gaussian(1, g, 6);
    frg_soap *soap = optimizer(ctx, &o, frg_matrix(w, FRG_F32, 3, 2, 2));
    const frg_array grad = frg_matrix(g, FRG_F32, 3, 2, 2);
    for (int t = 0; t < 3; t++)
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
    unsigned char bytes[2048], after[2048];
    int64_t count;
    CHECK_OK(ctx, frg_soap_save_bytes(soap, bytes, sizeof bytes, &count));
    for (int64_t bit = 0; bit < 8 * count; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CHECK_STATUS(frg_soap_load_bytes(soap, bytes, count, "x"), FRG_MISMATCH);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (int64_t cut = 0; cut < count; cut++)
        CHECK_STATUS(frg_soap_load_bytes(soap, bytes, cut, "x"), FRG_MISMATCH);
    unsigned char turned[2048];
    memcpy(turned, bytes, sizeof turned);
    for (int i = 0; i < 4; i++) /* the mark as a machine of the other byte order writes it */
        turned[8 + i] = bytes[8 + 3 - i];
    CHECK_STATUS(frg_soap_load_bytes(soap, turned, count, "x"), FRG_MISMATCH);
    CHECK(strstr(frg_message(ctx), "byte order"));
    memcpy(turned, bytes, sizeof turned);
    turned[7] = '0';
    CHECK_STATUS(frg_soap_load_bytes(soap, turned, count, "x"), FRG_MISMATCH);
    CHECK(strstr(frg_message(ctx), "version"));
    CHECK_OK(ctx, frg_soap_save_bytes(soap, after, sizeof after, &count));
    CHECK_BITS(after, bytes, (size_t)count);
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

/** Shapes with axes of length one and none, up to the four axes of an array: finite, whatever is
 *  merged or blocked. */
static void shapes(void)
{
    static const struct {
        int ndim;
        int64_t shape[4];
    } rows[] = {
        {0, {0}},          {1, {0}},          {1, {1}},          {1, {9}},
        {2, {1, 1}},       {2, {1, 9}},       {2, {9, 1}},       {2, {0, 4}},
        {2, {2, 33}},      {3, {2, 1, 3}},    {3, {1, 1, 1}},    {3, {3, 0, 2}},
        {3, {4, 3, 5}},    {4, {2, 3, 2, 3}}, {4, {1, 5, 1, 4}}, {4, {1, 1, 1, 1}},
        {4, {3, 2, 1, 0}}, {4, {7, 1, 1, 2}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (int kind = 0; kind < 5; kind++) {
            frg_context *ctx = test_context();
            frg_soap_opts o;
            frg_soap_defaults(&o, sizeof o, kind == 4 ? FRG_SOAP_NIKHILVYAS : FRG_SOAP_EMERGING);
            o.precondition_1d = 1;
            o.merge_dims = kind == 1;
            o.max_precond_dim = kind == 1 ? 8 : kind == 3 ? 2 : -1;
            o.block_dim = kind == 2 ? 2 : 0;
            o.moment2_order = kind == 2 ? FRG_MOMENT2_ROTATE : FRG_MOMENT2_FOLLOW;
            float w[72], g[72];
            gaussian(1, w, 72);
            frg_array x = {.data = w, .dtype = FRG_F32, .ndim = rows[r].ndim};
            int64_t stride = 1;
            for (int d = x.ndim - 1; d >= 0; d--) {
                x.shape[d] = rows[r].shape[d];
                x.stride[d] = stride;
                stride *= x.shape[d];
            }
            frg_soap *soap = optimizer(ctx, &o, x);
            frg_array grad = x;
            grad.data = g;
            for (int t = 0; t < 5; t++) {
                gaussian(1, g, 72);
                CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
            }
            CHECK_SAYS(all_finite(w, 72), "row %d, kind %d", (int)r, kind);
            frg_soap_destroy(soap);
            frg_context_destroy(ctx);
        }
    }
    frg_context_opts limited;
    frg_context_defaults(&limited, sizeof limited);
    limited.memory_limit =
        1 << 30; /* sanitizers end the program for less than what is asked for below */
    frg_context *ctx = NULL;
    CHECK(frg_context_create(&ctx, &limited) == FRG_OK);
    frg_soap *soap = NULL;
    float one = 1;
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, NULL));
    frg_array many = frg_vector(&one, FRG_F32, 1);
    many.ndim = 5;
    CHECK_STATUS(frg_soap_add_param(soap, 0, many, NULL, NULL), FRG_BAD_ARG);
    many.ndim = -1;
    CHECK_STATUS(frg_soap_add_param(soap, 0, many, NULL, NULL), FRG_BAD_ARG);
    many = frg_vector(&one, FRG_F32, INT64_C(1) << 40);
    CHECK_STATUS(frg_soap_add_param(soap, 0, many, NULL, NULL), FRG_BAD_ARG);
    many = frg_matrix(&one, FRG_F32, 1 << 24, 1 << 24, 1 << 24);
    CHECK(frg_soap_add_param(soap, 0, many, NULL, NULL) < 0);
    many = frg_vector(&one, FRG_F32, -1);
    CHECK_STATUS(frg_soap_add_param(soap, 0, many, NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_soap_step(soap, NULL, -1, NULL), FRG_BAD_ARG);
    CHECK_OK(ctx, frg_soap_step(soap, NULL, 0, NULL)); /* what was refused left nothing */
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

/* ---- sizes before the steps ------------------------------------------------------------------ */

static frg_context *context_with(int64_t limit)
{
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.threads = 2;
    c.memory_limit = limit;
    frg_context *ctx = NULL;
    CHECK(frg_context_create(&ctx, &c) == FRG_OK);
    return ctx;
}

/** Axes longer than the limit of every profile have no factor and are counted; the state is that of
 *  the factors there are. */
static void long_axes(void)
{
    enum { LONG = 10001, SHORT = 3 };
    static float w[2][LONG * SHORT], vector[LONG], g[LONG * SHORT];
    gaussian(1, g, LONG * SHORT);
    for (int profile = 0; profile < 2; profile++) {
        frg_context *ctx = context_with(0);
        frg_soap_opts o;
        frg_soap_defaults(&o, sizeof o, profile ? FRG_SOAP_NIKHILVYAS : FRG_SOAP_EMERGING);
        CHECK_INT(o.max_precond_dim, 10000);
        frg_soap *soap = NULL;
        CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o));
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(w[0], LONG, SHORT), "rows", NULL));
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(w[1], SHORT, LONG), "columns", NULL));
        CHECK_OK(ctx,
                 frg_soap_add_param(soap, 0, frg_vector(vector, FRG_F32, LONG), "vector", NULL));
        frg_soap_size size;
        CHECK_OK(ctx, frg_soap_estimate(soap, &size));
        CHECK_INT(size.parameters, 3);
        CHECK_INT(size.numbers, LONG * (2 * SHORT + 1));
        CHECK_INT(size.factors, 2);
        CHECK_INT(size.long_axes, 2); /* a vector has none, of any length */
        CHECK_INT(size.largest_factor, SHORT);
        CHECK_TEXT(size.largest_of, "rows");
        CHECK_INT(size.largest_axis, 1);
        const frg_array grads[3] = {
            matrix(g, LONG, SHORT), {.data = NULL}, frg_vector(g, FRG_F32, LONG)};
        frg_soap_report r;
        CHECK_OK(ctx, frg_soap_step(soap, grads, 3, &r));
        CHECK_INT(r.long_axes, 1); /* of those with a gradient */
        frg_array shape;
        CHECK_OK(ctx, frg_soap_state_shape(soap, 0, "GG.0", &shape));
        CHECK_INT(shape.ndim, 0);
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
}

/** Where no axis has a factor for its length, the step is that of plain Adam, to the bit; blocks do
 *  not change which axes are too long, and 0 is no limit of length. */
static void limits_of_length(void)
{
    static const struct {
        int64_t limit, block, factors, long_axes;
    } rows[] = {{4, 0, 0, 2}, {7, 0, 1, 1}, {12, 0, 2, 0}, {-1, 0, 2, 0},
                {0, 0, 0, 0}, {4, 4, 0, 2}, {7, 4, 2, 1},  {-1, 4, 5, 0}};
    float adam[SIZE], w[SIZE], g[SIZE];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        frg_context *ctx = context_with(0);
        frg_soap_opts o;
        frg_soap_defaults(&o, sizeof o, FRG_SOAP_EMERGING);
        gaussian(1, w, SIZE);
        memcpy(adam, w, sizeof w);
        o.max_precond_dim = rows[i].limit;
        o.block_dim = rows[i].block;
        frg_soap *soap = optimizer(ctx, &o, weights_of(w));
        o.max_precond_dim = 0;
        frg_soap *plain = optimizer(ctx, &o, weights_of(adam));
        frg_soap_size size;
        CHECK_OK(ctx, frg_soap_estimate(soap, &size));
        CHECK_INT(size.factors, rows[i].factors);
        CHECK_INT(size.long_axes, rows[i].long_axes);
        gaussian(1, g, SIZE);
        const frg_array grad = weights_of(g);
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        CHECK_OK(ctx, frg_soap_step(plain, &grad, 1, NULL));
        CHECK((memcmp(w, adam, sizeof w) == 0) == (rows[i].factors == 0));
        frg_soap_destroy(soap);
        frg_soap_destroy(plain);
        frg_context_destroy(ctx);
    }
}

/** What is said before the first step is what is there after it: state and workspaces to the byte,
 *  the most while bases are decomposed.  Nothing is taken for it. */
static void sizes(void)
{
    for (int profile = 0; profile < 3; profile++) {
        frg_context *ctx = context_with(0);
        frg_soap_opts o;
        frg_soap_defaults(&o, sizeof o, (frg_soap_profile)profile);
        o.use_eigh = profile == FRG_SOAP_EMERGING_04; /* keeps the room for eigenvectors */
        float w[2][SIZE], g[SIZE];
        gaussian(1, w[0], SIZE);
        gaussian(1, w[1], SIZE);
        gaussian(1, g, SIZE);
        frg_soap *soap = NULL;
        CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o));
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(w[0], M, N), NULL, NULL));
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(w[1], 2, SIZE / 2), NULL, NULL));
        frg_soap_size before, after;
        const size_t held = frg_bytes_held(ctx);
        CHECK_OK(ctx, frg_soap_estimate(soap, &before));
        CHECK(frg_bytes_held(ctx) == held && frg_soap_bytes(soap) == 0);
        CHECK(before.state_bytes == frg_soap_state_bytes(soap));
        const frg_array grads[2] = {matrix(g, M, N), matrix(g, 2, SIZE / 2)};
        CHECK_OK(ctx, frg_soap_prepare(soap));
        CHECK(frg_soap_bytes(soap) == before.bytes);
        CHECK_OK(ctx, frg_soap_step(soap, grads, 2, NULL));
        CHECK(frg_soap_bytes(soap) == (o.use_eigh ? before.peak_bytes : before.bytes));
        CHECK_OK(ctx, frg_soap_estimate(soap, &after));
        CHECK(after.bytes == before.bytes && after.state_bytes == before.state_bytes);
        /* the first bases are decomposed, later ones where use_eigh is set alone */
        CHECK(before.peak_bytes > before.bytes);
        CHECK((after.peak_bytes > after.bytes) == (o.use_eigh != 0));
        CHECK(before.plain_seconds > 0 && before.refresh_seconds > before.plain_seconds);
        CHECK_INT(frg_warning_count(ctx), 0);
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
}

static void count_lines(int level, const char *line, void *user)
{
    int *const lines = user;
    *lines += level == 0 && strstr(line, "will take about") != NULL;
}

/** A step of more than a second is warned of when the memory is taken, once until a parameter is
 *  added; one of less is not. Nothing of the size is computed here: memory that is not touched is
 *  none. */
static void slow_steps(void)
{
    enum { LONG = 3000 };
    int lines = 0;
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.on_log = count_lines;
    c.user = &lines;
    c.threads = 1;
    c.memory_limit = 1 << 26; /* the state alone has 2 LONG^2 numbers */
    frg_context *ctx = NULL;
    CHECK(frg_context_create(&ctx, &c) == FRG_OK);
    static float w[LONG * 2], few[2];
    frg_soap *soap = NULL;
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, NULL));
    CHECK_STATUS(frg_soap_add_param(soap, 0, matrix(w, LONG, 2), "embedding", NULL), FRG_NO_MEMORY);
    CHECK(strstr(frg_message(ctx), "'embedding'") != NULL);
    CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(few, 1, 2), NULL, NULL));
    CHECK_OK(ctx, frg_soap_prepare(soap));
    CHECK_INT(lines, 0);
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
    if (test_size(1, 0) == 0) {
        return; /* the state below is cleared: 72 MB */
    }
    c.memory_limit = 0;
    CHECK(frg_context_create(&ctx, &c) == FRG_OK);
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, NULL));
    CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(w, LONG, 2), "embedding", NULL));
    frg_soap_size size;
    CHECK_OK(ctx, frg_soap_estimate(soap, &size));
    CHECK_INT(lines, 0); /* asking is not warned of */
    CHECK(size.refresh_seconds > 1);
    for (int t = 0; t < 2; t++) {
        CHECK_OK(ctx, frg_soap_prepare(soap));
        CHECK_INT(lines, 1);
    }
    CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-SOAP-103");
    CHECK(strstr(frg_warning_message(ctx, 0), "order 3000 (axis 0 of 'embedding')") != NULL);
    CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(few, 1, 2), NULL, NULL));
    CHECK_OK(ctx, frg_soap_prepare(soap));
    CHECK_INT(lines, 2);
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

/** Lists grow as parameters and groups are added: each keeps its own rate.  One number is Adam's: w
 *  = -lr g / |g|. */
static void many(void)
{
    enum { PARAMS = 100, GROUPS = 20 };
    frg_context *ctx = test_context();
    frg_soap *soap = NULL;
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, NULL));
    float w[PARAMS] = {0}, g[PARAMS];
    frg_array grads[PARAMS];
    for (int i = 0; i < GROUPS; i++) {
        frg_soap_opts o;
        frg_soap_defaults(&o, sizeof o, FRG_SOAP_EMERGING);
        o.lr = 0.01 * (i + 1);
        int group = 0;
        CHECK_OK(ctx, frg_soap_add_group(soap, &o, &group));
        CHECK_INT(group, i + 1);
    }
    for (int i = 0; i < PARAMS; i++) {
        int64_t id = -1;
        g[i] = i % 3 ? 1.0f : -1.0f;
        grads[i] = frg_vector(&g[i], FRG_F32, 1);
        CHECK_OK(ctx, frg_soap_add_param(soap, 1 + i % GROUPS, frg_vector(&w[i], FRG_F32, 1), NULL,
                                         &id));
        CHECK_INT(id, i);
    }
    CHECK_OK(ctx, frg_soap_step(soap, grads, PARAMS, NULL));
    for (int i = 0; i < PARAMS; i++) {
        CHECK_NEAR((double)w[i], -0.01 * (i % GROUPS + 1) * (double)g[i], 1e-6);
    }
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"ends of options", ends_of_options},
    {"long silence", long_silence},
    {"scales", scales},
    {"dealt anew", dealt_anew},
    {"every bit", every_bit},
    {"shapes", shapes},
    {"long axes", long_axes},
    {"limits of length", limits_of_length},
    {"sizes", sizes},
    {"slow steps", slow_steps},
    {"many", many},
};
TEST_MAIN(cases)
