/* test_soap_effects.c - what options and guards are for, by what they do: the noise floor, first
 * bases, merged and blocked axes, one Cholesky pass on a hint, memory, options and gradients that
 * are refused. */
#include "soap_data.h"

static frg_soap_opts options(void)
{
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, FRG_SOAP_EMERGING);
    o.lr = 0.1;
    o.weight_decay = 0;
    return o;
}

/* ---- the noise floor ------------------------------------------------------------------------- */

enum { FLOOR_MOST = 128 };

/** norm(-W / lr - U V') / norm(U V') after one step from W = 0 on G = U diag(s) V' of order n, s
 *  from 2 to 2 / n, or all 2. */
static double first_step(int n, double floor, bool equal)
{
    enum { N2 = FLOOR_MOST * FLOOR_MOST };
    test_now.random = test_now.seed + (uint64_t)n; /* the same G for every floor */
    frg_context *ctx = test_context();
    static float factors[2][N2], g[N2], w[N2];
    static double polar[N2];
    frg_qr_item items[2];
    for (int k = 0; k < 2; k++) {
        gaussian(1, factors[k], n * n);
        items[k] = (frg_qr_item){.a = matrix(factors[k], n, n), .q = matrix(factors[k], n, n)};
    }
    frg_qr *qr = NULL;
    CHECK_OK(ctx, frg_qr_create(&qr, ctx, 2, items, NULL));
    CHECK_OK(ctx, frg_qr_run(qr, items, NULL, NULL));
    frg_qr_destroy(qr);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0, unit = 0;
            for (int k = 0; k < n; k++) {
                const double uv = (double)factors[0][i * n + k] * (double)factors[1][j * n + k];
                sum += (equal ? 2 : 2 - 2 * (double)k / n) * uv;
                unit += uv;
            }
            g[i * n + j] = (float)sum;
            polar[i * n + j] = unit;
        }
    memset(w, 0, sizeof w);
    frg_soap_opts o = options();
    o.denom_floor = floor;
    frg_soap *soap = optimizer(ctx, &o, matrix(w, n, n));
    const frg_array grad = matrix(g, n, n);
    CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
    double off = 0;
    for (int i = 0; i < n * n; i++) {
        const double rest = -(double)w[i] / o.lr - polar[i];
        off += rest * rest / n; /* norm(U V')^2 = n */
    }
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
    return sqrt(off);
}

/** P of the first step is diagonal but for residues r, which Adam makes r / (|r| + eps), n - 1 in a
 *  row of length 1 that is right: some sqrt(n - 1).  They are up to 2 u max|P| each, from a product
 *  and a factorisation, where the second basis follows the first, however close singular values lie
 *  (two decompositions of equal ones give any P), so that over a floor of 16 u sqrt(n) max|P| all
 *  n^2 of them come to 2 n / (16 sqrt(n)) of norm(U V') = sqrt(n), an eighth whatever n is, and are
 *  linear in it.  Seen: 0.11 at most at order 16 (4000 draws), 0.05 to 0.07 at orders 64 to 128. */
static void noise_floor(void)
{
    static const int orders[] = {16, 64, 96, FLOOR_MOST};
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
        for (int equal = 0; equal < 2; equal++) {
            const int n = orders[k];
            const double without = first_step(n, 0, equal), with = first_step(n, 16, equal),
                         high = first_step(n, 64, equal);
            CHECK_SAYS(without >= 2, "order %d without the floor: %g", n, without);
            CHECK_SAYS(with <= 1.0 / 8, "order %d with 16 off by %g", n, with);
            CHECK_SAYS(high <= 0.4 * with, "order %d: with 64 off by %g, with 16 by %g", n, high,
                       with);
        }
}

/* ---- first bases ----------------------------------------------------------------------------- */

/** norm of Q'KQ - diag(lambda) over norm(K), of an axis. */
static double off_diagonal(frg_context *ctx, frg_soap *soap, int axis, int64_t n)
{
    enum { MOST = 12 };
    static const char *const keys[2][3] = {{"GG.0", "Q.0", "eig.0"}, {"GG.1", "Q.1", "eig.1"}};
    float k[MOST * MOST], q[MOST * MOST], lambda[MOST];
    CHECK_OK(ctx, frg_soap_state_get(soap, 0, keys[axis][0], matrix(k, n, n)));
    CHECK_OK(ctx, frg_soap_state_get(soap, 0, keys[axis][1], matrix(q, n, n)));
    CHECK_OK(ctx, frg_soap_state_get(soap, 0, keys[axis][2], frg_vector(lambda, FRG_F32, n)));
    double off = 0, norm = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double rest = in_basis(n, q, k, i, j) - (i == j ? (double)lambda[i] : 0);
            off += rest * rest;
            norm += (double)k[i * n + j] * (double)k[i * n + j];
        }
    return sqrt(off / norm);
}

/** First bases are eigenvectors with their values, whichever way they are made (backward error:
 *  some n u), and made the way that the options allow: the second one follows where both factors
 *  are those of one gradient. */
static void first_bases(void)
{
    enum { M = 12, N = 7 };
    static const struct {
        const char *name;
        int kl, eigh, warmup, bias;
        enum {
            FULL,
            COLUMNS,
            ROWS,
            DIAGONAL
        } kind; /* what is orthogonal, the short way and the long */
        int by_eigh, by_qr;
    } rows[] = {{"one gradient", 0, 0, 0, 1, FULL, 1, 1},
                {"KL weights, two scales", 1, 0, 0, 1, FULL, 2, 0},
                {"use_eigh", 0, 1, 0, 1, FULL, 2, 0},
                {"two gradients", 0, 0, 1, 1, FULL, 2, 0},
                {"no correction of the bias", 0, 0, 0, 0, FULL, 1, 1},
                {"a gradient of zero before", 0, 0, -1, 1, FULL, 1, 1},
                {"the shorter factor is diagonal", 0, 0, 0, 1, COLUMNS, 1, 1},
                {"the longer factor is diagonal", 0, 0, 0, 1, ROWS, 1, 1},
                {"both are", 0, 0, 0, 1, DIAGONAL, 2, 0}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int turned = 0; turned < 2; turned++) {
            const int64_t m = turned ? N : M, n = turned ? M : N;
            frg_context *ctx = test_context();
            frg_soap_opts o = options();
            o.use_kl_shampoo = rows[r].kl;
            o.use_eigh = rows[r].eigh;
            const bool zero = rows[r].warmup < 0;
            o.adam_warmup_steps = zero ? 0 : rows[r].warmup;
            o.correct_shampoo_beta_bias = rows[r].bias;
            o.eps = 0.1; /* the weights of KL */
            float w[M * N] = {0}, g[M * N];
            frg_soap *soap = optimizer(ctx, &o, matrix(w, m, n));
            const frg_array grad = matrix(g, m, n);
            frg_soap_report report = {0};
            for (int t = 0; t <= (zero ? 1 : rows[r].warmup); t++) {
                gaussian(zero && t == 0 ? 0 : 1, g, M * N);
                for (int i = 0; i < M; i++)
                    for (int j = 0; j < N; j++) {
                        const bool stays[] = {true, i / 2 == j, j / 2 == i && i < 3, i == j};
                        float *const x = &g[turned ? j * M + i : i * N + j];
                        *x = stays[rows[r].kind] ? *x : 0;
                    }
                CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, &report));
            }
            CHECK_SAYS(report.eigh == rows[r].by_eigh && report.householder == rows[r].by_qr,
                       "%s: %lld and %lld", rows[r].name, (long long)report.eigh,
                       (long long)report.householder);
            for (int axis = 0; axis < 2; axis++) {
                const double off = off_diagonal(ctx, soap, axis, axis == 0 ? m : n);
                CHECK_SAYS(off <= 8 * M * 0x1p-24, "%s: axis %d is off by %g", rows[r].name, axis,
                           off);
            }
            frg_soap_destroy(soap);
            frg_context_destroy(ctx);
        }
}

/* ---- merged and blocked axes ----------------------------------------------------------------- */

/** A tensor of four axes whose axes are merged, up to the limit of a factor, is the tensor of the
 *  shape that they merge to, to the bit. */
static void merged(void)
{
    static const int64_t shape[4] = {2, 3, 4, 2};
    static const struct {
        frg_soap_merge rule;
        int64_t limit;
        int axes;
        int64_t to[4];
    } rows[] = {{FRG_MERGE_LEFT, 8, 2, {6, 8}},      /* 2 3 | 4 2 */
                {FRG_MERGE_LEFT, 6, 3, {6, 4, 2}},   /* 2 3 | 4 | 2, which is no more 8 */
                {FRG_MERGE_LEFT, 100, 1, {48}},      /* all */
                {FRG_MERGE_FAN_IN, 24, 2, {2, 24}},  /* the first stays by itself */
                {FRG_MERGE_FAN_IN, 100, 2, {2, 24}}, /* always */
                {FRG_MERGE_FAN_IN, 8, 3, {2, 3, 8}}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        frg_context *ctx = test_context();
        frg_soap_opts o = options();
        o.precondition_1d = 1;
        o.max_precond_dim = rows[r].limit;
        float w[2][48], g[48];
        gaussian(1, w[0], 48);
        memcpy(w[1], w[0], sizeof w[0]);
        frg_soap *plain = optimizer(ctx, &o, tensor(w[0], rows[r].axes, rows[r].to));
        o.merge_dims = 1;
        o.merge_rule = rows[r].rule;
        o.precondition_1d = 0; /* which is about parameters of one axis, not about axes that become
                                  one */
        frg_soap *soap = optimizer(ctx, &o, tensor(w[1], 4, shape));
        for (int k = 0; k < rows[r].axes; k++) {
            char key[16];
            frg_array has;
            snprintf(key, sizeof key, "GG.%d", k);
            CHECK_OK(ctx, frg_soap_state_shape(soap, 0, key, &has));
            CHECK_INT(has.ndim, 2);
            CHECK_INT(has.shape[0], rows[r].to[k]);
        }
        for (int t = 0; t < 5; t++) {
            gaussian(1, g, 48);
            const frg_array a = tensor(g, rows[r].axes, rows[r].to), b = tensor(g, 4, shape);
            CHECK_OK(ctx, frg_soap_step(plain, &a, 1, NULL));
            CHECK_OK(ctx, frg_soap_step(soap, &b, 1, NULL));
            CHECK_SAYS(memcmp(w[0], w[1], sizeof w[0]) == 0, "row %d, step %d", (int)r, t + 1);
        }
        frg_soap_destroy(plain);
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
}

/** A stack of b matrices m x n steps as the matrix b m x n, or m x b n where n <= m, to the bit,
 *  with KL weights and without; its moments and factors have that shape.  A matrix made of parts of
 *  rows has gaps, as the one it is held against: W without gaps is written in f32. */
static void stacked(void)
{
    enum { MOST = 96, STEPS = 8 };
    static const struct {
        int64_t shape[3], merged[2];
        bool sideways;
        int kl;
    } rows[] = {{{3, 4, 6}, {12, 6}, false, 0},
                {{3, 6, 4}, {6, 12}, true, 0},
                {{2, 5, 5}, {5, 10}, true, 1},
                {{3, 4, 6}, {12, 6}, false, 1}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const int64_t b = rows[r].shape[0], m = rows[r].shape[1], n = rows[r].shape[2];
        const int64_t high = rows[r].merged[0], wide = rows[r].merged[1];
        const int64_t apart = wide + rows[r].sideways;
        frg_context *ctx = test_context_with(2, NULL, NULL);
        frg_soap_opts o;
        frg_soap_defaults(&o, sizeof o, FRG_SOAP_EMERGING_04);
        o.use_kl_shampoo = rows[r].kl;
        o.weight_decay_method = FRG_DECAY_L2; /* which reads W as well */
        float w[MOST], g[MOST], one_w[MOST], one_g[MOST], moment[MOST], one_moment[MOST];
        gaussian(1, w, b * m * n);
        frg_soap *stack = optimizer(ctx, &o, tensor(w, 3, rows[r].shape));
        frg_soap *one = optimizer(ctx, &o, frg_matrix(one_w, FRG_F32, high, wide, apart));
        for (int t = 0; t <= STEPS; t++) {
            gaussian(1, g, b * m * n);
            for (int64_t k = 0; k < b * m * n; k++) {
                const int64_t at = k / (m * n), i = k / n % m, j = k % n;
                const int64_t row = rows[r].sideways ? i : at * m + i;
                const int64_t column = rows[r].sideways ? at * n + j : j;
                float *const same = &one_w[row * apart + column];
                one_g[row * wide + column] = g[k];
                *same = t == 0 ? w[k] : *same;
                CHECK_BITS(same, &w[k], sizeof *w);
            }
            const frg_array grads[2] = {tensor(g, 3, rows[r].shape), matrix(one_g, high, wide)};
            CHECK_OK(ctx, frg_soap_step(stack, &grads[0], 1, NULL));
            CHECK_OK(ctx, frg_soap_step(one, &grads[1], 1, NULL));
        }
        CHECK_OK(ctx, frg_soap_state_get(stack, 0, "exp_avg", matrix(moment, high, wide)));
        CHECK_OK(ctx, frg_soap_state_get(one, 0, "exp_avg", matrix(one_moment, high, wide)));
        CHECK_BITS(moment, one_moment, (size_t)(b * m * n) * sizeof *moment);
        static const int64_t high_stack[3] = {1 << 20, 1000, 900}; /* a factor of order 1e9 */
        CHECK_STATUS(frg_soap_add_param(stack, 0, tensor(moment, 3, high_stack), NULL, NULL),
                     FRG_BAD_ARG);
        CHECK(strstr(frg_message(ctx), "stack") != NULL);
        frg_soap_destroy(one);
        frg_soap_destroy(stack);
        frg_context_destroy(ctx);
    }
}

/** Blocks of rows of a matrix whose columns have no factor are matrices of their own, the last one
 *  shorter. */
static void blocked(void)
{
    enum { ROWS = 8, COLUMNS = 9, BLOCK = 3, PARTS = 3 };
    frg_context *ctx = test_context();
    frg_soap_opts o = options();
    o.max_precond_dim = ROWS; /* columns are longer */
    float w[2][ROWS * COLUMNS], g[ROWS * COLUMNS];
    gaussian(1, w[0], ROWS * COLUMNS);
    memcpy(w[1], w[0], sizeof w[0]);
    o.eps = 0.05; /* residues, as in test_soap.c */
    frg_soap *part[PARTS];
    for (int k = 0; k < PARTS; k++)
        part[k] = optimizer(
            ctx, &o,
            matrix(w[1] + k * BLOCK * COLUMNS, k < PARTS - 1 ? BLOCK : ROWS - 2 * BLOCK, COLUMNS));
    o.block_dim = BLOCK;
    frg_soap *whole = optimizer(ctx, &o, matrix(w[0], ROWS, COLUMNS));
    for (int t = 0; t < 8; t++) {
        gaussian(1, g, ROWS * COLUMNS);
        const frg_array grad = matrix(g, ROWS, COLUMNS);
        CHECK_OK(ctx, frg_soap_step(whole, &grad, 1, NULL));
        for (int k = 0; k < PARTS; k++) {
            const frg_array mine =
                matrix(g + k * BLOCK * COLUMNS, k < PARTS - 1 ? BLOCK : ROWS - 2 * BLOCK, COLUMNS);
            CHECK_OK(ctx, frg_soap_step(part[k], &mine, 1, NULL));
        }
        for (int i = 0; i < ROWS * COLUMNS; i++)
            CHECK_NEAR((double)w[0][i], (double)w[1][i], 1e-5);
    }
    frg_soap_destroy(whole);
    for (int k = 0; k < PARTS; k++)
        frg_soap_destroy(part[k]);
    frg_context_destroy(ctx);
}

/* ---- one Cholesky pass on a hint ------------------------------------------------------------- */

/** A basis of order 1536 whose K Q is nearly orthogonal is refreshed by one Cholesky pass, one that
 *  is not by Householder; both within the bounds of qr.h (of a probe: sums of SIZE entries, here a
 *  tenth of that). */
static void one_pass(void)
{
    const int64_t size = test_size(1536, 96), columns = size + 1;
    for (int far = 0; far < 2; far++) {
        frg_context *ctx = test_context_with(2, NULL, NULL);
        frg_soap_opts o = options();
        o.max_precond_dim = size; /* of the rows alone */
        float *const w = calloc((size_t)(size * columns), sizeof *w);
        float *const g = calloc((size_t)(size * columns), sizeof *g);
        for (int64_t i = 0; i < size; i++)
            g[i * columns + i] = 1;
        frg_soap *soap = optimizer(ctx, &o, matrix(w, size, columns));
        const frg_array grad = matrix(g, size, columns);
        frg_soap_report report;
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, &report)); /* K = I: a permutation */
        CHECK_INT(report.eigh, 1);
        for (int64_t i = 0; i < size * columns; i++) /* K = I (1 + ..) + sums of size entries */
            g[i] += (float)((far ? 1 : 0.1 / sqrt((double)size)) * test_normal());
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, &report));
        CHECK_INT(report.single_pass, !far && size >= 1536);
        CHECK_INT(report.householder, far || size < 1536);
        CHECK_SAYS(report.orthogonality <= 1e-6 * (double)size, "orthogonality %g",
                   report.orthogonality);
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
        free(w);
        free(g);
    }
}

/** A pass that suffices is taken as it is from 1e-5 on, verified below, where the second one mends
 *  what it left (some u sqrt(n), more than a quarter of 1e-6), and what no pass reaches is
 *  Householder's. */
static void ortho_tol(void)
{
    enum { SIZE = 64 };
    static const struct {
        double tol;
        int single, second, householder;
    } rows[] = {{1e-5, 2, 0, 0}, {1e-6, 0, 2, 0}, {1e-7, 0, 0, 2}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        test_now.random = 3;
        frg_context *ctx = test_context();
        frg_soap_opts o = options();
        o.qr_method = FRG_QR_CHOLESKY;
        o.ortho_tol = rows[r].tol;
        static float w[SIZE * SIZE], g[SIZE * SIZE];
        frg_soap *soap = optimizer(ctx, &o, matrix(w, SIZE, SIZE));
        const frg_array grad = matrix(g, SIZE, SIZE);
        frg_soap_report report = {0};
        for (int t = 0; t < 2; t++) { /* K = I first, then nearly */
            gaussian(0.3 * t / sqrt(SIZE), g, SIZE * SIZE);
            for (int i = 0; i < SIZE; i++)
                g[i * SIZE + i] += 1;
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, &report));
        }
        CHECK_INT(report.single_pass, rows[r].single);
        CHECK_INT(report.second_pass, rows[r].second);
        CHECK_INT(report.householder, rows[r].householder);
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
}

/** Factors of gradients of rank 2 have quotients of 0, which rounding makes negative, by no more
 *  than a column's sum of SIZE products, u SIZE; those of I and more have none. */
static void indefinite(void)
{
    enum { SIZE = 24, STEPS = 6 };
    for (int full = 0; full < 2; full++) {
        frg_context *ctx = test_context();
        const frg_soap_opts o = options();
        static float w[SIZE * SIZE], g[SIZE * SIZE];
        float u[2 * SIZE], v[2 * SIZE];
        frg_soap *soap = optimizer(ctx, &o, matrix(w, SIZE, SIZE));
        const frg_array grad = matrix(g, SIZE, SIZE);
        int64_t told = 0;
        for (int t = 0; t < STEPS; t++) {
            gaussian(1, u, 2 * SIZE);
            gaussian(1, v, 2 * SIZE);
            for (int i = 0; i < SIZE; i++)
                for (int j = 0; j < SIZE; j++)
                    g[i * SIZE + j] =
                        u[i] * v[j] + u[SIZE + i] * v[SIZE + j] + (full && i == j ? 100 : 0);
            frg_soap_report report;
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, &report));
            told += report.indefinite;
            CHECK((report.lowest_quotient < 0) == (report.indefinite > 0));
            CHECK_SAYS(report.lowest_quotient >= -0x1p-24 * SIZE, "%g", report.lowest_quotient);
        }
        CHECK_SAYS((told > 0) == !full, "%lld factors of rank %s", (long long)told,
                   full ? "24" : "2");
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

/** Everything of a handle over 12 layers is at most 1.25 times the factors, bases and moments, by
 *  two threads, after the eigendecompositions of the first step. */
static void memory(void)
{
    enum { H = 64, LAYERS = 12 };
    static const int64_t shapes[4][2] = {{3 * H, H}, {H, H}, {4 * H, H}, {H, 4 * H}};
    frg_context *ctx = test_context_with(2, NULL, NULL);
    const frg_soap_opts o = options();
    static float w[LAYERS * 4][4 * H * H], g[LAYERS * 4][4 * H * H];
    frg_array grads[LAYERS * 4];
    frg_soap *soap = NULL;
    size_t least = 0;
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o));
    for (int p = 0; p < LAYERS * 4; p++) {
        const int64_t m = shapes[p % 4][0], n = shapes[p % 4][1];
        gaussian(1, g[p], m * n);
        grads[p] = matrix(g[p], m, n);
        least += sizeof(float) * (size_t)(2 * m * n + 2 * m * m + 2 * n * n);
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(w[p], m, n), NULL, NULL));
    }
    for (int t = 0; t < 2; t++)
        CHECK_OK(ctx, frg_soap_step(soap, grads, LAYERS * 4, NULL));
    const double all = (double)frg_soap_bytes(soap), state = (double)frg_soap_state_bytes(soap);
    CHECK(state >= (double)least && state <= 1.05 * (double)least);
    CHECK_SAYS(all <= 1.25 * (double)least, "%g bytes for %g", all, (double)least);
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

/* ---- what is refused ------------------------------------------------------------------------- */

/** Every option with a range is refused outside it, by name, by a new handle and by a group that is
 *  changed; the group stays as it was. */
static void every_option(void)
{
    enum kind { REAL, WORD, LONG };
    static const struct {
        const char *name;
        size_t at;
        enum kind kind;
        double value;
    } rows[] = {
#define ROW(f, kind, value) {#f, offsetof(frg_soap_opts, f), kind, value}
        ROW(lr, REAL, INFINITY),
        ROW(beta1, REAL, -0.1),
        ROW(beta2, REAL, 1),
        ROW(shampoo_beta, REAL, -0.5),
        ROW(eps, REAL, NAN),
        ROW(weight_decay, REAL, NAN),
        ROW(max_update_rms, REAL, NAN),
        ROW(denom_floor, REAL, -1),
        ROW(adaptive_tolerance, REAL, -1e-9),
        ROW(adaptive_tolerance, REAL, 2),
        ROW(ridge_c, REAL, INFINITY),
        ROW(ortho_tol, REAL, 1e-8),
        ROW(ortho_tol, REAL, 1),
        ROW(profile, WORD, 3),
        ROW(weight_decay_method, WORD, 5),
        ROW(adaptive_scope, WORD, 2),
        ROW(adaptive_form, WORD, 2),
        ROW(kl_init, WORD, -1),
        ROW(sort_when, WORD, 2),
        ROW(moment2_order, WORD, 3),
        ROW(order, WORD, 2),
        ROW(warmup_v, WORD, 3),
        ROW(moment1_basis, WORD, 3),
        ROW(qr_method, WORD, 4),
        ROW(nonfinite, WORD, 3),
        ROW(merge_rule, WORD, 3),
        ROW(power_iter_steps, WORD, 0),
        ROW(precondition_frequency, LONG, 0),
        ROW(precondition_warmup_steps, LONG, -1),
        ROW(adam_warmup_steps, LONG, -1),
        ROW(max_precond_dim, LONG, -2),
        ROW(block_dim, LONG, -1),
        ROW(n_frequencies, LONG, -1),
#undef ROW
    };
    frg_context *ctx = test_context();
    frg_soap *soap = NULL, *none;
    frg_soap_opts before, after;
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, NULL));
    CHECK_OK(ctx, frg_soap_get_group(soap, 0, &before, sizeof before));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        frg_soap_opts o = before;
        const int word = rows[i].kind == WORD ? (int)rows[i].value : 0;
        const int64_t whole = rows[i].kind == LONG ? (int64_t)rows[i].value : 0;
        char *const to = (char *)&o + rows[i].at;
        if (rows[i].kind == REAL)
            memcpy(to, &rows[i].value, sizeof(double));
        else if (rows[i].kind == WORD)
            memcpy(to, &word, sizeof word);
        else
            memcpy(to, &whole, sizeof whole);
        for (int change = 0; change < 2; change++) {
            CHECK_STATUS(change ? frg_soap_set_group(soap, 0, &o) : frg_soap_create(&none, ctx, &o),
                         FRG_BAD_ARG);
            CHECK_SAYS(strstr(frg_message(ctx), rows[i].name) != NULL, "'%s' does not name %s",
                       frg_message(ctx), rows[i].name);
        }
    }
    static const int64_t bad[3][2][2] = {{{0, 4}, {0, 1}}, {{5, 4}, {3, 1}}, {{0, 4}, {7, 0}}};
    for (int i = 0; i < 3; i++) {
        frg_soap_opts o = before;
        o.frequencies = bad[i];
        o.n_frequencies = 2;
        CHECK_STATUS(frg_soap_create(&none, ctx, &o), FRG_BAD_ARG);
        CHECK(strstr(frg_message(ctx), "row 2 of frequencies") != NULL);
    }
    CHECK_OK(ctx, frg_soap_get_group(soap, 0, &after, sizeof after));
    CHECK_BITS(&after, &before, sizeof before);
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

/** A gradient in the memory of another parameter would be read while that is written. */
static void anothers_memory(void)
{
    enum { PARAMS = 3, SIZE = 12 };
    frg_context *ctx = test_context_with(2, NULL, NULL);
    const frg_soap_opts o = options();
    float all[2 * PARAMS * SIZE], before[2 * PARAMS * SIZE];
    gaussian(1, all, 2 * PARAMS * SIZE);
    memcpy(before, all, sizeof all);
    frg_soap *soap = NULL;
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o));
    for (int p = PARAMS - 1; p >= 0; p--) /* W and G lie in turns, the last is added first */
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(all + 2 * p * SIZE, 4, 3), NULL, NULL));
    for (int p = 0; p < PARAMS; p++)
        for (int at = 0; at < PARAMS; at++)
            for (int side = at == 0; side < 2;
                 side++) { /* one number of it from below, from above */
                frg_array grads[PARAMS] = {{0}};
                grads[p] = matrix(all + 2 * at * SIZE + (side ? 1 : -1) * (SIZE - 1), 4, 3);
                CHECK_STATUS(frg_soap_step(soap, grads, PARAMS, NULL), FRG_BAD_ARG);
                CHECK_TEXT(frg_error_code(ctx), "FRG-SOAP-002");
            }
    CHECK_BITS(all, before, sizeof all);
    frg_array grads[PARAMS];
    for (int p = 0; p < PARAMS; p++) /* between them there is room */
        grads[p] = matrix(all + (2 * p + 1) * SIZE, 4, 3);
    CHECK_OK(ctx, frg_soap_step(soap, grads, PARAMS, NULL));
    for (int p = 0; p < PARAMS; p++)
        CHECK_BITS(all + (2 * p + 1) * SIZE, before + (2 * p + 1) * SIZE, SIZE * sizeof *all);
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

/** The same where a parameter reaches beyond one that begins after it. */
static void between_the_rows(void)
{
    enum { ROWS = 4, COLUMNS = 3, APART = 12 };
    frg_context *ctx = test_context();
    const frg_soap_opts o = options();
    float all[ROWS * APART], before[ROWS * APART], g[ROWS * COLUMNS];
    gaussian(1, all, ROWS * APART);
    gaussian(1, g, ROWS * COLUMNS);
    memcpy(before, all, sizeof all);
    frg_soap *soap = optimizer(ctx, &o, frg_matrix(all, FRG_F32, ROWS, COLUMNS, APART));
    CHECK_OK(ctx, frg_soap_add_param(soap, 0, frg_vector(all + COLUMNS, FRG_F32, 2), NULL, NULL));
    const frg_array grads[2] = {matrix(g, ROWS, COLUMNS),
                                frg_vector(all + (ROWS - 1) * APART, FRG_F32, 2)};
    CHECK_STATUS(frg_soap_step(soap, grads, 2, NULL), FRG_BAD_ARG);
    CHECK_TEXT(frg_error_code(ctx), "FRG-SOAP-002");
    CHECK_BITS(all, before, sizeof all);
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

/** Blocks of columns of one matrix, W and its gradient, reach over each other and share nothing. */
static void between_the_columns(void)
{
    enum { ROWS = 5, COLUMNS = 12 };
    frg_context *ctx = test_context();
    const frg_soap_opts o = options();
    float all[ROWS * COLUMNS], apart[2][ROWS * COLUMNS / 4], before[ROWS * COLUMNS / 4];
    gaussian(1, all, ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS / 4; i++)
        for (int k = 0; k < 2; k++)
            apart[k][i] = all[i / 3 * COLUMNS + 4 * k + i % 3];
    frg_soap *soap = optimizer(ctx, &o, frg_matrix(all, FRG_F32, ROWS, 3, COLUMNS));
    CHECK_OK(ctx, frg_soap_add_param(soap, 0, frg_matrix(all + 8, FRG_F32, ROWS, 3, COLUMNS), NULL,
                                     NULL));
    const frg_array grads[2] = {frg_matrix(all + 4, FRG_F32, ROWS, 3, COLUMNS), {0}};
    CHECK_OK(ctx, frg_soap_step(soap, grads, 2, NULL));
    frg_soap_destroy(soap);
    soap = optimizer(ctx, &o, frg_matrix(apart[0], FRG_F32, ROWS, 3, 3));
    const frg_array grad = matrix(apart[1], ROWS, 3);
    memcpy(before, apart[0], sizeof before);
    CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
    for (int i = 0; i < ROWS * 3;
         i++) /* W with gaps is written from doubles: roundings of W and of its move */
        CHECK_NEAR(all[i / 3 * COLUMNS + i % 3], apart[0][i],
                   1e-6 * (fabs((double)before[i]) + fabs((double)apart[0][i])));
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

/** Marks the bytes of an array, one by one. */
static void mark(const frg_array *a, const char *from, bool *bytes)
{
    const size_t size = a->dtype == FRG_F64 ? 8 : a->dtype == FRG_F32 ? 4 : 2;
    for (int64_t i = 0; i < a->shape[0]; i++)
        for (int64_t j = 0; j < a->shape[1]; j++)
            for (int64_t k = 0; k < a->shape[2]; k++) {
                const int64_t at = i * a->stride[0] + j * a->stride[1] + k * a->stride[2];
                const char *const x = (const char *)a->data + at * (int64_t)size;
                memset(bytes + (x - from), true, size);
            }
}

/** Two parameters are refused just where they have a byte in common: arrays with random strides,
 *  forwards and backwards, of three types, against marks on the bytes. */
static void shared_bytes(void)
{
    enum { ROOM = 2048, MIDDLE = 1024, ROUNDS = 4000 }; /* a reach is at most 3 3 12 8 bytes */
    static const frg_dtype types[3] = {FRG_F32, FRG_F64, FRG_F16};
    static double room[ROOM / 8];
    frg_context *ctx = test_context();
    const frg_soap_opts o = options();
    int shared = 0;
    for (int round = 0; round < ROUNDS; round++) {
        frg_array a[2];
        bool bytes[2][ROOM] = {{false}}, common = false;
        for (int k = 0; k < 2; k++) {
            a[k] = (frg_array){
                .dtype = types[test_uniform() * 3 < 2 ? 0 : 1 + (test_uniform() < 0.5)], .ndim = 3};
            for (int d = 0; d < 3; d++) {
                a[k].shape[d] = 1 + (int64_t)(4 * test_uniform());
                const int64_t stride = 1 + (int64_t)(12 * test_uniform() * test_uniform());
                a[k].stride[d] = test_uniform() < 0.3 ? -stride : stride;
            }
            a[k].data = (char *)room + MIDDLE + 8 * (int64_t)(12 * test_uniform());
            mark(&a[k], (const char *)room, bytes[k]);
        }
        for (int b = 0; b < ROOM; b++)
            common = common || (bytes[0][b] && bytes[1][b]);
        frg_soap *soap = optimizer(ctx, &o, a[0]);
        const frg_status status = frg_soap_add_param(soap, 0, a[1], "second", NULL);
        CHECK_SAYS(status == (common ? FRG_BAD_ARG : FRG_OK), "round %d: %d", round, common);
        if (common)
            CHECK_TEXT(frg_error_code(ctx), "FRG-SOAP-002");
        shared += common;
        frg_soap_destroy(soap);
    }
    CHECK_SAYS(shared > ROUNDS / 10 && shared < ROUNDS - ROUNDS / 10, "%d of %d", shared, ROUNDS);
    frg_context_destroy(ctx);
}

/** A parameter that is skipped for NaN keeps all of its state, not its weights alone. */
static void skipped_state(void)
{
    enum { SIZE = 6, BYTES = 4096 };
    frg_context *ctx = test_context();
    const frg_soap_opts o = options();
    float w[SIZE * SIZE], g[SIZE * SIZE];
    static char before[BYTES], after[BYTES];
    int64_t bytes[2] = {0};
    gaussian(1, w, SIZE * SIZE);
    frg_soap *soap = optimizer(ctx, &o, matrix(w, SIZE, SIZE));
    const frg_array grad = matrix(g, SIZE, SIZE);
    for (int t = 0; t < 6; t++) {
        gaussian(1, g, SIZE * SIZE);
        const bool bad = t % 2;
        if (bad)
            g[t] = t == 1 ? NAN : -INFINITY;
        CHECK_OK(ctx, frg_soap_save_bytes(soap, before, BYTES, &bytes[0]));
        CHECK_STATUS(frg_soap_step(soap, &grad, 1, NULL), bad ? FRG_PARTIAL : FRG_OK);
        CHECK_OK(ctx, frg_soap_save_bytes(soap, after, BYTES, &bytes[1]));
        CHECK_INT(bytes[1], bytes[0]);
        CHECK((memcmp(before, after, (size_t)bytes[0]) == 0) == bad);
    }
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"noise floor", noise_floor},
    {"first bases", first_bases},
    {"merged", merged},
    {"stacked", stacked},
    {"blocked", blocked},
    {"one pass", one_pass},
    {"ortho_tol", ortho_tol},
    {"indefinite", indefinite},
    {"memory", memory},
    {"every option", every_option},
    {"another's memory", anothers_memory},
    {"between the rows", between_the_rows},
    {"between the columns", between_the_columns},
    {"shared bytes", shared_bytes},
    {"skipped state", skipped_state},
};
TEST_MAIN(cases)
