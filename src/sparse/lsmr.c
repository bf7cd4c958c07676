/* lsmr.c - LSMR for a block of columns, step by step.
 *
 *     min ||b - A x||^2 + d^2 ||x||^2        for each column b of the block
 *
 * Golub-Kahan bidiagonalisation A V = U B, A' U = V L' and two rotations a step (Fong and Saunders
 * 2011); each column has its own scalars.  Names, after the paper (lsmr.h has them all):
 *
 *     be, al              norms that normalise u, v
 *     ab, zb, z           alpha bar, zeta bar, zeta
 *     rho, rb, cb, sb     diagonals of R and of R bar; the last rotation bar
 *     bdd, bd, rd, ...    the recurrence of ||r||: beta with two dots, beta dot, rho dot, ...
 *
 * With a preconditioner P ~ A'A (the same symmetric map every time) the v are P-orthonormal:
 *     p <- A'u - (be / al) p,   v <- P^-1 p,   al <- sqrt(v'p),   v <- v / al
 * one application a step, and all else unchanged; A stands for A P^-1/2 in norms and condition
 * then, and ||x|| is left out of the test for consistent systems, because the norm that belongs
 * there is not at hand.
 *
 * Stopping, with t1 = ||r|| / ||b||, t2 = ||A'r|| / (||A|| ||r||), t3 = 1 / cond and
 * t0 = ||A|| ||x|| / ||b||; the smallest code that holds is reported:
 *     1  t1 <= btol + atol t0       4  1 + t1 / (1 + t0) <= 1       7  max_iter
 *     2  t2 <= atol                 5  1 + t2 <= 1                  8  b = 0 or A'b = 0
 *     3  t3 <= 1 / cond_limit       6  1 + t3 <= 1
 *
 * A column that has stopped is frozen: its x is copied out and its lane is fed zeros, so that
 * nothing in it can become infinite; when half of the lanes are idle the vectors are packed.
 * Columns are scaled by a power of two at the start, which changes no digit and keeps squares of
 * 1e+-150 within range.
 *
 * Dot products are summed in chunks whose length is fixed, and these by one tree: any number of
 * threads and any width give the same bits.  Cost of a step: two products and 5 passes over
 * vectors.  Memory: layout(). */
#include "sparse/lsmr.h"

#include <math.h>
#include <string.h>

#include "core/tree_sum.h"
#include "sparse/lsmr_ops.h"

enum { PATTERN = SPAN * FRGI_LSMR_MAX_BLOCK, PATTERNS = 3, EXPONENT_MAX = 1000 };

const frgi_lsmr_ops *frgi_lsmr_ops_of(const frg_context *ctx)
{
    static const frgi_lsmr_ops *const table[ISA_COUNT] = EACH_LEVEL(&frgi_lsmr_ops);
    return table[frgi_context_isa(ctx)];
}

/* ---- vectors --------------------------------------------------------------------------------- */

static int64_t chunks_of(int64_t rows)
{
    return (rows + LSMR_CHUNK - 1) / LSMR_CHUNK;
}

static int64_t chunk_rows(int64_t rows, int64_t chunk)
{
    const int64_t left = rows - chunk * LSMR_CHUNK;
    return left < LSMR_CHUNK ? left : LSMR_CHUNK;
}

void frgi_lsmr_layout(frgi_arena *a, frgi_lsmr *s)
{
    s->u = TAKE(a, double, s->m * s->k);
    s->t = TAKE(a, double, s->m * s->k);
    double **const small[] = {&s->v, &s->p, &s->h, &s->hb, &s->x, &s->answer};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        *small[i] = TAKE(a, double, s->n * s->k);
    s->partial = TAKE(a, double, chunks_of(s->m > s->n ? s->m : s->n) * FRGI_LSMR_MAX_BLOCK);
    s->pattern = TAKE(a, double, PATTERNS *PATTERN);
}

/** Repeats the coefficients of the lanes for the kernels. */
static const double *repeat(const frgi_lsmr *s, int which, const double *values)
{
    double *const p = s->pattern + which * PATTERN;
    for (int64_t t = 0; t < SPAN * s->width; t++)
        p[t] = values[t % s->width];
    return p;
}

/** sums[c]: the partial sums of all chunks. */
static void add_chunks(const frgi_lsmr *s, int64_t rows, double *sums)
{
    frgi_tree_rows(s->partial, chunks_of(rows), FRGI_LSMR_MAX_BLOCK, s->width, sums);
}

static void dot(const frgi_lsmr *s, int64_t rows, const double *x, const double *y, double *sums)
{
    const int64_t w = s->width, chunks = chunks_of(rows);
#pragma omp parallel for schedule(static) num_threads(frg_threads(s->ctx)) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t at = i * LSMR_CHUNK * w;
        s->ops->dot(chunk_rows(rows, i), w, x + at, y + at, s->partial + i * FRGI_LSMR_MAX_BLOCK);
    }
    add_chunks(s, rows, sums);
}

/** y <- t - a y and its squared norms. */
static void step(const frgi_lsmr *s, int64_t rows, const double *a, const double *t, double *y,
                 double *sums)
{
    const int64_t w = s->width, chunks = chunks_of(rows);
    const double *const pattern = repeat(s, 0, a);
#pragma omp parallel for schedule(static) num_threads(frg_threads(s->ctx)) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t at = i * LSMR_CHUNK * w;
        s->ops->step(chunk_rows(rows, i), w, pattern, t + at, y + at,
                     s->partial + i * FRGI_LSMR_MAX_BLOCK);
    }
    add_chunks(s, rows, sums);
}

/** y <- a x */
static void scale(const frgi_lsmr *s, int64_t rows, const double *a, const double *x, double *y)
{
    const int64_t w = s->width, chunks = chunks_of(rows);
    const double *const pattern = repeat(s, 0, a);
#pragma omp parallel for schedule(static) num_threads(frg_threads(s->ctx)) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t at = i * LSMR_CHUNK * w;
        s->ops->scale(chunk_rows(rows, i), w, pattern, x + at, y + at);
    }
}

/** hb <- h - a hb;  x <- x + b hb;  h <- v - c h;  squared norms of x. */
static void update(const frgi_lsmr *s, const double *a, const double *b, const double *c,
                   double *sums)
{
    const int64_t w = s->width, chunks = chunks_of(s->n);
    const double *const pa = repeat(s, 0, a), *const pb = repeat(s, 1, b),
                        *const pc = repeat(s, 2, c);
#pragma omp parallel for schedule(static) num_threads(frg_threads(s->ctx)) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t at = i * LSMR_CHUNK * w;
        s->ops->update(chunk_rows(s->n, i), w, pa, pb, pc, s->v + at, s->h + at, s->hb + at,
                       s->x + at, s->partial + i * FRGI_LSMR_MAX_BLOCK);
    }
    add_chunks(s, s->n, sums);
}

/* ---- columns that stop ----------------------------------------------------------------------- */

static void report(const frgi_lsmr *s, const frgi_lsmr_scalars *q)
{
    if (!s->columns)
        return;
    s->columns[q->column] = (frg_lsmr_column){
        .stop = (frg_lsmr_stop)q->stop,
        .iterations = q->k,
        .norm_r = ldexp(q->norm.r, q->exponent),
        .norm_ar = ldexp(q->norm.ar, q->exponent),
        .norm_a = q->norm.a,
        .cond_a = q->norm.cond,
        .norm_x = ldexp(q->norm.x, q->exponent),
    };
}

static void copy_lane(const frgi_lsmr *s, int64_t lane, double *to)
{
    const frgi_lsmr_scalars *const q = &s->lane[lane];
    const double scale_back = ldexp(1, q->exponent);
    for (int64_t i = 0; i < s->n; i++)
        to[i * s->k + q->column] = scale_back * s->x[i * s->width + lane];
}

static void stop(frgi_lsmr *s, int64_t lane, frg_lsmr_stop why)
{
    s->lane[lane].stop = (int)why;
    s->ended[s->lane[lane].column] = s->lane[lane];
    copy_lane(s, lane, s->answer);
    report(s, &s->lane[lane]);
    s->active--;
}

/** Keeps the lanes listed, in place: row by row, forwards. */
static void pack_vector(double *x, int64_t rows, int64_t width, const int *kept, int64_t count)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < count; c++)
            x[i * count + c] = x[i * width + kept[c]];
}

static void pack(frgi_lsmr *s)
{
    if (s->active == 0 || 2 * s->active > s->width)
        return;
    int kept[FRGI_LSMR_MAX_BLOCK];
    int64_t count = 0;
    for (int c = 0; c < s->width; c++) {
        if (s->lane[c].stop)
            continue;
        kept[count] = c;
        s->lane[count++] = s->lane[c];
    }
    pack_vector(s->u, s->m, s->width, kept, count);
    double *const small[] = {s->v, s->p, s->h, s->hb, s->x};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        pack_vector(small[i], s->n, s->width, kept, count);
    s->width = count;
}

/* ---- start ----------------------------------------------------------------------------------- */

static double inverse(double x)
{
    return x > 0 ? 1 / x : 0;
}

/** u <- b 2^-exponent with the largest entry of every column between 1/2 and 1. */
static void scale_columns(frgi_lsmr *s, const double *b)
{
    double factor[FRGI_LSMR_MAX_BLOCK] = {0};
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t c = 0; c < s->k; c++)
            factor[c] = fmax(factor[c], fabs(b[i * s->k + c]));
    for (int64_t c = 0; c < s->k; c++) {
        int e = 0;
        frexp(factor[c], &e);
        e = e > EXPONENT_MAX ? EXPONENT_MAX : e < -EXPONENT_MAX ? -EXPONENT_MAX : e;
        s->lane[c].exponent = e;
        factor[c] = ldexp(1, -e);
    }
    scale(s, s->m, factor, b, s->u);
}

/** v from p = A'u, by the preconditioner or as it is, and its norms. */
static void first_v(frgi_lsmr *s, double *al)
{
    if (s->op.precond)
        s->op.precond(s->op.precond_data, s->width, s->p, s->v);
    else
        memcpy(s->v, s->p, (size_t)(s->n * s->width) * sizeof *s->v);
    dot(s, s->n, s->v, s->p, al);
    for (int64_t c = 0; c < s->width; c++)
        al[c] = sqrt(fmax(al[c], 0));
}

frgi_lsmr_scalars frgi_lsmr_begin(double be, double al)
{
    const double gradient = al * be;
    return (frgi_lsmr_scalars){
        .be = be,
        .al = al,
        .rot = {.ab = al, .zb = gradient, .rho = 1, .rb = 1, .cb = 1},
        .res = {.bdd = be, .rd = 1},
        .norm = {.b = be,
                 .r = be,
                 .ar = gradient,
                 .a = al,
                 .square = al * al,
                 .mn = HUGE_VAL,
                 .cond = 1,
                 .smallest = al},
    };
}

void frgi_lsmr_start(frgi_lsmr *s, frg_context *ctx, const frgi_lsmr_operator *op,
                     const frgi_lsmr_rule *rule, const double *b, frg_lsmr_column *columns)
{
    assert(s->k >= 1 && s->k <= FRGI_LSMR_MAX_BLOCK && (!op->precond || rule->damp == 0));
    s->ctx = ctx;
    s->ops = frgi_lsmr_ops_of(ctx);
    s->op = *op;
    s->rule = *rule;
    s->columns = columns;
    s->active = s->width = s->k;
    memset(s->lane, 0, sizeof s->lane);
    double be[FRGI_LSMR_MAX_BLOCK], al[FRGI_LSMR_MAX_BLOCK], factor[FRGI_LSMR_MAX_BLOCK];
    scale_columns(s, b);
    dot(s, s->m, s->u, s->u, be);
    for (int64_t c = 0; c < s->k; c++) {
        be[c] = sqrt(be[c]);
        factor[c] = inverse(be[c]);
    }
    scale(s, s->m, factor, s->u, s->u);
    s->op.transposed(s->op.data, s->width, s->u, s->p);
    first_v(s, al);
    for (int64_t c = 0; c < s->k; c++)
        factor[c] = inverse(al[c]);
    scale(s, s->n, factor, s->v, s->v);
    const size_t bytes = (size_t)(s->n * s->k) * sizeof(double);
    memcpy(s->h, s->v, bytes);
    memset(s->hb, 0, bytes);
    memset(s->x, 0, bytes);
    for (int c = 0; c < s->k; c++) {
        frgi_lsmr_scalars *const q = &s->lane[c];
        const int exponent = q->exponent;
        *q = frgi_lsmr_begin(be[c], al[c]);
        q->exponent = exponent;
        q->column = c;
        if (q->rot.zb == 0)
            stop(s, c, FRG_LSMR_ZERO);
    }
    pack(s);
}

/* ---- one iteration --------------------------------------------------------------------------- */

typedef struct {
    double c, s, r;
} rotation;

/** (c, s) with c a + s b = r >= 0, -s a + c b = 0; the identity for a = b = 0. */
static rotation rotate(double a, double b)
{
    const double r = hypot(a, b);
    return r > 0 ? (rotation){a / r, b / r, r} : (rotation){1, 0, 0};
}

/** 0 where the recurrence has ended in zeros. */
static double quotient(double a, double b)
{
    return b != 0 ? a / b : 0;
}

/** What a step's rotations leave for the recurrences of the norms. */
typedef struct {
    rotation hat, plain; /* that of the damping, that of R */
    double tb;           /* theta bar */
    double diagonal;     /* of R bar before its rotation: c bar of the step before times rho */
    double z, rb;        /* zeta and rho bar of the step before */
} rotated;

/** The rotations that make R of the bidiagonal matrix (and of the damping below it) and R bar of
 *  R; *left for the norms.  With ^ for a hat, _ for a bar and ' for the step before,
 *
 *      alpha^ = ||(alpha_, d)||                        c^ = alpha_ / alpha^,     s^ = d / alpha^
 *      rho    = ||(alpha^, beta)||                     c  = alpha^ / rho,        s  = beta / rho
 *      theta  = s alpha,      alpha_ <- c alpha
 *      theta_ = s_' rho,      rho_ = ||(c_' rho, theta)||
 *                                                      c_ = c_' rho / rho_,      s_ = theta / rho_
 *      zeta   = c_ zeta_,     zeta_ <- -s_ zeta_
 *      h_ <- h - theta_ rho / (rho' rho_') h_,   x <- x + zeta / (rho rho_) h_,
 *      h  <- v - theta / rho h
 *
 *  Returns the coefficients of hb = h_:  hb <- h - out.hb hb,  x <- x + out.x hb,
 *  h <- v - out.h h. */
static frgi_lsmr_coefficients rotate_step(frgi_lsmr_rotations *q, double be, double al, double damp,
                                          rotated *left)
{
    const rotation hat = rotate(q->ab, damp);
    const rotation plain = rotate(hat.r, be);
    const double tn = plain.s * al, tb = q->sb * plain.r, diagonal = q->cb * plain.r;
    const rotation bar = rotate(diagonal, tn);
    *left = (rotated){
        .hat = hat, .plain = plain, .tb = tb, .diagonal = diagonal, .z = q->z, .rb = q->rb};
    q->ab = plain.c * al;
    q->cb = bar.c;
    q->sb = bar.s;
    q->z = bar.c * q->zb;
    q->zb = -bar.s * q->zb;
    const frgi_lsmr_coefficients out = {
        .hb = quotient(tb * plain.r, q->rho * q->rb),
        .x = quotient(q->z, plain.r * bar.r),
        .h = quotient(tn, plain.r),
    };
    q->rho = plain.r;
    q->rb = bar.r;
    return out;
}

/** ||r||, by one more rotation that makes R bar's transpose triangular.  With ~ for a tilde, . for
 *  a dot, / for an acute accent, , for a check and the marks of rotate_step(),
 *
 *      beta/ = c^ beta..,     beta, = -s^ beta..,      beta^ = c beta/,     beta.. <- -s beta/
 *      rho~  = ||(rho.', theta_)||,   c~ = rho.' / rho~,   s~ = theta_ / rho~
 *      theta~ = s~ rho_,      rho. = c~ rho_,          beta. <- -s~ beta. + c~ beta^
 *      tau~  = (zeta' - theta~' tau~') / rho~,         tau. = (zeta - theta~ tau~) / rho.
 *      ||r||^2 = sum beta,^2 + (beta. - tau.)^2 + beta..^2 */
static double residual_norm(frgi_lsmr_residual *q, const frgi_lsmr_rotations *now,
                            const rotated *left)
{
    const double ba = left->hat.c * q->bdd, bc = -left->hat.s * q->bdd, bh = left->plain.c * ba;
    q->bdd = -left->plain.s * ba;
    const double th_old = q->th;
    const rotation tilde = rotate(q->rd, left->tb);
    q->th = tilde.s * now->rb;
    q->rd = tilde.c * now->rb;
    q->bd = -tilde.s * q->bd + tilde.c * bh;
    q->tt = quotient(left->z - th_old * q->tt, tilde.r);
    const double td = quotient(now->z - q->th * q->tt, q->rd);
    q->dd += bc * bc;
    return sqrt(q->dd + (q->bd - td) * (q->bd - td) + q->bdd * q->bdd);
}

/** ||A|| from B, its extreme singular values from the diagonal of R bar:
 *
 *      ||A||^2 = sum_k alpha_k^2 + beta_(k+1)^2
 *      cond(A) = max(rho_1 .. rho_(k-1), c_' rho) / min(the same),   all with a bar */
static void matrix_norms(frgi_lsmr_scalars *q, const rotated *left)
{
    frgi_lsmr_norms *const n = &q->norm;
    n->square += q->be * q->be;
    n->a = sqrt(n->square);
    n->square += q->al * q->al;
    n->mx = fmax(n->mx, left->rb);
    if (q->k > 1)
        n->mn = fmin(n->mn, left->rb);
    n->smallest = fmin(n->mn, left->diagonal);
    n->cond = fmax(n->mx, left->diagonal) / n->smallest;
}

frgi_lsmr_coefficients frgi_lsmr_advance(frgi_lsmr_scalars *q, double damp)
{
    rotated left;
    q->k++;
    const frgi_lsmr_coefficients out = rotate_step(&q->rot, q->be, q->al, damp, &left);
    q->norm.r = residual_norm(&q->res, &q->rot, &left);
    q->norm.ar = fabs(q->rot.zb);
    matrix_norms(q, &left);
    return out;
}

frg_lsmr_stop frgi_lsmr_why_stop(const frgi_lsmr_scalars *q, const frgi_lsmr_rule *rule)
{
    const double relative_x = q->norm.a * q->norm.x / q->norm.b;
    const double t1 = q->norm.r / q->norm.b, t3 = 1 / q->norm.cond;
    const double t2 = q->norm.a * q->norm.r > 0 ? q->norm.ar / (q->norm.a * q->norm.r)
                      : q->norm.ar > 0          ? HUGE_VAL
                                                : 0;
    const struct {
        bool holds;
        frg_lsmr_stop code;
    } tests[] = {
        {t1 <= rule->btol + rule->atol * relative_x, FRG_LSMR_CONSISTENT},
        {t2 <= rule->atol, FRG_LSMR_LEAST_SQUARES},
        {rule->cond_limit > 0 && t3 <= 1 / rule->cond_limit, FRG_LSMR_COND_LIMIT},
        {1 + t1 / (1 + relative_x) <= 1, FRG_LSMR_CONSISTENT_EPS},
        {1 + t2 <= 1, FRG_LSMR_LEAST_SQUARES_EPS},
        {rule->cond_limit > 0 && 1 + t3 <= 1, FRG_LSMR_COND_EPS},
        {q->k >= rule->max_iter, FRG_LSMR_MAX_ITER},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (tests[i].holds)
            return tests[i].code;
    return FRG_LSMR_RUNNING;
}

/** Normalises the block's vector y by the square roots of sums; norms[c] 0 for a lane that has
 *  stopped. */
static void normalise(const frgi_lsmr *s, int64_t rows, double *y, const double *sums,
                      double *norms)
{
    double factor[FRGI_LSMR_MAX_BLOCK];
    for (int64_t c = 0; c < s->width; c++) {
        norms[c] = s->lane[c].stop ? 0 : sqrt(fmax(sums[c], 0));
        factor[c] = inverse(norms[c]);
    }
    scale(s, rows, factor, y, y);
}

/** u <- A v - al u, then v from A'u: step 1, in the plain or the preconditioned form.  Where the
 *  run is stopped a product may be unfinished: what was made of it is of no use. */
static frg_status bidiagonalise(frgi_lsmr *s)
{
    double a[FRGI_LSMR_MAX_BLOCK] = {0}, sums[FRGI_LSMR_MAX_BLOCK], norms[FRGI_LSMR_MAX_BLOCK];
    const int64_t w = s->width;
    for (int64_t c = 0; c < w; c++)
        a[c] = s->lane[c].stop ? 0 : s->lane[c].al;
    s->op.times(s->op.data, w, s->v, s->t);
    if (frgi_stopped(s->ctx) != FRG_OK) {
        return frgi_stopped(s->ctx);
    }
    step(s, s->m, a, s->t, s->u, sums);
    normalise(s, s->m, s->u, sums, norms);
    for (int64_t c = 0; c < w; c++)
        s->lane[c].be = norms[c];
    if (s->op.precond) {
        s->op.transposed(s->op.data, w, s->u, s->v); /* the old v is not needed any more */
        for (int64_t c = 0; c < w; c++)
            a[c] = quotient(s->lane[c].be, a[c]);
        step(s, s->n, a, s->v, s->p, sums);
        s->op.precond(s->op.precond_data, w, s->p, s->v);
        dot(s, s->n, s->v, s->p, sums);
    } else {
        s->op.transposed(s->op.data, w, s->u, s->p);
        step(s, s->n, norms, s->p, s->v, sums);
    }
    normalise(s, s->n, s->v, sums, norms);
    for (int64_t c = 0; c < w; c++)
        s->lane[c].al = norms[c];
    return frgi_stopped(s->ctx);
}

static frg_status heartbeat(const frgi_lsmr *s)
{
    double worst = 0;
    int64_t done = 0;
    for (int64_t c = 0; c < s->width; c++) {
        const frgi_lsmr_scalars *const q = &s->lane[c];
        done = q->k > done ? q->k : done;
        worst = fmax(worst, quotient(q->norm.ar, q->norm.a * q->norm.r));
    }
    const frg_progress p = {
        .solver = s->rule.solver ? s->rule.solver : "lsmr",
        .phase = s->rule.phase ? s->rule.phase : "",
        .done = done,
        .total = s->rule.max_iter,
        .residual = worst,
        .target = s->rule.atol,
    };
    return frgi_heartbeat(s->ctx, &p);
}

frg_status frgi_lsmr_step(frgi_lsmr *s)
{
    if (s->active == 0)
        return FRG_OK;
    double a[FRGI_LSMR_MAX_BLOCK] = {0}, b[FRGI_LSMR_MAX_BLOCK] = {0};
    double c[FRGI_LSMR_MAX_BLOCK] = {0}, sums[FRGI_LSMR_MAX_BLOCK];
    const frg_status stopped = bidiagonalise(s);
    if (stopped != FRG_OK) {
        return stopped;
    }
    for (int64_t j = 0; j < s->width; j++) {
        if (s->lane[j].stop)
            continue;
        const frgi_lsmr_coefficients q = frgi_lsmr_advance(&s->lane[j], s->rule.damp);
        a[j] = q.hb;
        b[j] = q.x;
        c[j] = q.h;
    }
    update(s, a, b, c, sums);
    for (int64_t j = 0; j < s->width; j++) {
        frgi_lsmr_scalars *const q = &s->lane[j];
        if (q->stop)
            continue;
        q->norm.x = s->op.precond ? 0 : sqrt(sums[j]);
        const frg_lsmr_stop why = frgi_lsmr_why_stop(q, &s->rule);
        q->norm.x = sqrt(sums[j]);
        if (why)
            stop(s, j, why);
    }
    pack(s);
    return heartbeat(s);
}

void frgi_lsmr_finish(const frgi_lsmr *s, double *x)
{
    memcpy(x, s->answer, (size_t)(s->n * s->k) * sizeof *x);
    for (int64_t c = 0; c < s->width; c++) {
        if (s->active == 0 || s->lane[c].stop)
            continue;
        copy_lane(s, c, x);
        report(s, &s->lane[c]);
    }
}

/* ---- audit ----------------------------------------------------------------------------------- */

/** Does the true residual (norms r, g of A'r - d^2 x, all scaled) bear out a success?  10 times the
 *  asked for, because the recurrence's norms and the true ones differ a little, and the rounding of
 *  one product, which is all that a backward stable solver can promise. */
static bool sound(const frgi_lsmr_rule *rule, double r, double g, double x, double b, double na)
{
    const double floor_r = 1e3 * 0x1p-52 * (na * x + b);
    return r <= 10 * (rule->btol * b + rule->atol * na * x) + floor_r ||
           g <= 10 * rule->atol * na * r + na * floor_r;
}

void frgi_lsmr_audit(frgi_lsmr *s, const double *b, const double *x)
{
    assert(!s->op.precond && s->columns);
    double factor[FRGI_LSMR_MAX_BLOCK], r[FRGI_LSMR_MAX_BLOCK], g[FRGI_LSMR_MAX_BLOCK];
    double nx[FRGI_LSMR_MAX_BLOCK], nb[FRGI_LSMR_MAX_BLOCK];
    s->width = s->k;
    s->active = 0;
    scale_columns(s, b);
    for (int64_t c = 0; c < s->k; c++)
        factor[c] = ldexp(1, -s->lane[c].exponent);
    scale(s, s->n, factor, x, s->x);
    dot(s, s->m, s->u, s->u, nb);
    dot(s, s->n, s->x, s->x, nx);
    s->op.times(s->op.data, s->k, s->x, s->t);
    for (int64_t c = 0; c < s->k; c++)
        factor[c] = 1;
    step(s, s->m, factor, s->t, s->u, r); /* u = A x - b */
    s->op.transposed(s->op.data, s->k, s->u, s->p);
    for (int64_t c = 0; c < s->k; c++)
        factor[c] = -s->rule.damp * s->rule.damp;
    step(s, s->n, factor, s->p, s->x, g); /* x = A'(A x - b) + d^2 x */
    for (int64_t c = 0; c < s->k; c++) {
        frg_lsmr_column *const q = &s->columns[c];
        const bool success = q->stop == FRG_LSMR_CONSISTENT || q->stop == FRG_LSMR_LEAST_SQUARES ||
                             q->stop == FRG_LSMR_CONSISTENT_EPS ||
                             q->stop == FRG_LSMR_LEAST_SQUARES_EPS;
        const double damped = sqrt(r[c] + s->rule.damp * s->rule.damp * nx[c]);
        if (success && !sound(&s->rule, damped, sqrt(g[c]), sqrt(nx[c]), sqrt(nb[c]), q->norm_a))
            q->stop = FRG_LSMR_REFUSED;
    }
}
