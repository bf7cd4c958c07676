/* qr_engine.tmpl.h - Cholesky QR in one to four passes, LAPACK's QR, signs and R; included once per
 * element type.
 *
 * Template parameters: real, SUF, UNIT, and GEMM, TRSV, GEQRF, ORGQR of the BLAS front. */

/** Upper triangle (whole blocks of it) of gram <- q'q. */
static void FN(form_gram)(const frgi_qr_workspace *work, const real *q)
{
    enum { WIDTH = 128 };
    const int m = small_int(work->x.m), n = small_int(work->x.n), ld = small_int(work->x.ld);
    real *const c = work->gram;
#pragma omp parallel for schedule(dynamic, 1) num_threads(work->x.team) if (work->x.team > 1)
    for (int j = 0; j < n; j += WIDTH) {
        const int width = n - j < WIDTH ? n - j : WIDTH;
        GEMM('T', 'N', j + width, width, m, 1, q, ld, q + (ptrdiff_t)j * ld, ld, 0,
             c + (ptrdiff_t)j * n, n);
    }
}

/** The width x width block at c (ld apart): upper R by rows in `r` and its inverse by columns in
 *  `inverse` (both QR_BLOCK apart).  Returns the smallest pivot, not above 0 where it broke
 *  down. */
static double FN(block_factor)(int width, const real *c, ptrdiff_t ld, real *r, real *inverse)
{
    double smallest = INFINITY;
    for (int j = 0; j < width; j++) {
        for (int i = 0; i <= j; i++) {
            r[i * QR_BLOCK + j] = c[j * ld + i];
        }
    }
    for (int j = 0; j < width; j++) {
        real *const row = r + j * QR_BLOCK;
        const double pivot = (double)row[j];
        if (!(pivot > 0)) {
            return -1;
        }
        smallest = pivot < smallest ? pivot : smallest;
        const real scale = (real)(1 / sqrt(pivot));
        for (int k = j; k < width; k++) {
            row[k] *= scale;
        }
        for (int i = j + 1; i < width; i++) {
            real *const restrict below = r + i * QR_BLOCK;
            const real t = row[i];
            for (int k = i; k < width; k++) {
                below[k] -= t * row[k];
            }
        }
    }
    memset(inverse, 0, (size_t)(QR_BLOCK * QR_BLOCK) * sizeof *inverse);
    for (int j = 0; j < width; j++) { /* column j of R^-1, from its diagonal up */
        real *const restrict x = inverse + j * QR_BLOCK;
        x[j] = 1;
        for (int i = j; i >= 0; i--) {
            real sum = x[i];
            for (int k = i + 1; k <= j; k++) {
                sum -= r[i * QR_BLOCK + k] * x[k];
            }
            x[i] = sum / r[i * QR_BLOCK + i];
        }
    }
    return smallest;
}

/** Rows k .. k + width of the trailing part, whose columns begin at `at`, less what the rows above
 *  make of them. */
static void FN(update_panel)(const frgi_qr_workspace *work, int k, int width, real *at)
{
    enum { COLUMNS = 512 };
    const int n = small_int(work->x.n), left = n - k;
#pragma omp parallel for schedule(dynamic, 1) num_threads(work->x.team) if (work->x.team > 1)
    for (int j = 0; j < (k > 0 ? left : 0); j += COLUMNS) {
        const int columns = left - j < COLUMNS ? left - j : COLUMNS;
        real *const to = at + (ptrdiff_t)j * n;
        GEMM('T', 'N', width, columns, k, -1, at, n, to, n, 1, to + k, n);
    }
}

/** gram -> R in its upper triangle, inverses of the diagonal blocks in `inverse`; the smallest
 *  pivot. */
static double FN(cholesky)(const frgi_qr_workspace *work)
{
    const int n = small_int(work->x.n);
    real *const c = work->gram, *const panel = work->panel;
    real r[QR_BLOCK * QR_BLOCK];
    double smallest = INFINITY;
    for (int k = 0; k < n; k += QR_BLOCK) {
        const int width = n - k < QR_BLOCK ? n - k : QR_BLOCK, right = n - k - width;
        real *const at = c + (ptrdiff_t)k * n, *const inverse =
                                                   (real *)work->inverse + k * QR_BLOCK;
        FN(update_panel)(work, k, width, at);
        const double pivot = FN(block_factor)(width, at + k, n, r, inverse);
        if (!(pivot > 0)) {
            return pivot;
        }
        smallest = pivot < smallest ? pivot : smallest;
        for (int j = 0; j < width; j++) {
            for (int i = 0; i <= j; i++) {
                at[(ptrdiff_t)j * n + k + i] = r[i * QR_BLOCK + j];
            }
        }
        real *const beside = at + (ptrdiff_t)width * n + k;
        for (int j = 0; j < right; j++) {
            memcpy(panel + (ptrdiff_t)j * QR_BLOCK, beside + (ptrdiff_t)j * n,
                   (size_t)width * sizeof *panel);
        }
        if (right > 0) {
            GEMM('T', 'N', width, right, width, 1, inverse, QR_BLOCK, panel, QR_BLOCK, 0, beside,
                 n);
        }
    }
    return smallest;
}

/** Rows from .. of  q <- q R^-1. */
static void FN(trsm_rows)(const frgi_qr_workspace *work, real *q, int from, int rows)
{
    const int n = small_int(work->x.n), ld = small_int(work->x.ld);
    const real *const c = work->gram;
    real *const panel = (real *)work->panel + from;
    for (int k = 0; k < n; k += QR_BLOCK) {
        const int width = n - k < QR_BLOCK ? n - k : QR_BLOCK;
        real *const at = q + (ptrdiff_t)k * ld + from;
        if (k > 0) {
            GEMM('N', 'N', rows, width, k, -1, q + from, ld, c + (ptrdiff_t)k * n, n, 1, at, ld);
        }
        for (int j = 0; j < width; j++) {
            memcpy(panel + (ptrdiff_t)j * ld, at + (ptrdiff_t)j * ld, (size_t)rows * sizeof *panel);
        }
        GEMM('N', 'N', rows, width, width, 1, panel, ld, (real *)work->inverse + k * QR_BLOCK,
             QR_BLOCK, 0, at, ld);
    }
}

/** q <- q R^-1 in place. */
static void FN(trsm)(const frgi_qr_workspace *work, real *q)
{
    enum { ROWS = 512 };
    const int m = small_int(work->x.m);
#pragma omp parallel for schedule(dynamic, 1) num_threads(work->x.team) if (work->x.team > 1)
    for (int i = 0; i < m; i += ROWS) {
        FN(trsm_rows)(work, q, i, m - i < ROWS ? m - i : ROWS);
    }
}

/** q <- q U in place, U the upper triangle of gram. */
static void FN(multiply)(const frgi_qr_workspace *work, real *q)
{
    const int m = small_int(work->x.m), n = small_int(work->x.n), ld = small_int(work->x.ld);
    real *const c = work->gram, *const panel = work->panel;
    for (int k = (n - 1) / QR_BLOCK * QR_BLOCK; k >= 0; k -= QR_BLOCK) {
        const int width = n - k < QR_BLOCK ? n - k : QR_BLOCK;
        real *const at = q + (ptrdiff_t)k * ld;
        for (int j = 0; j < width; j++) {
            for (int i = j + 1; i < width; i++) {
                c[(ptrdiff_t)(k + j) * n + k + i] = 0;
            }
        }
        memcpy(panel, at, (size_t)((ptrdiff_t)width * ld) * sizeof *panel);
        GEMM('N', 'N', m, width, width, 1, panel, ld, c + (ptrdiff_t)k * n + k, n, 0, at, ld);
        if (k > 0) {
            GEMM('N', 'N', m, width, k, 1, q, ld, c + (ptrdiff_t)k * n, n, 1, at, ld);
        }
    }
}

/** Two steps of inverse iteration, x <- (R'R)^-1 x / norm(x): an estimate of norm(R^-1)^2 from
 *  below. */
static double FN(inverse_norm)(const frgi_qr_workspace *work)
{
    const int n = small_int(work->x.n);
    real *const x = work->panel;
    double norm = sqrt((double)n), next = 0;
    for (int i = 0; i < n; i++) {
        x[i] = __builtin_popcount((unsigned)i) % 2 ? -1 : 1;
    }
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < n; i++) {
            x[i] = (real)((double)x[i] / norm);
        }
        TRSV('T', n, work->gram, n, x);
        TRSV('N', n, work->gram, n, x);
        next = 0;
        for (int i = 0; i < n; i++) {
            next += (double)x[i] * (double)x[i];
        }
        next = norm = sqrt(next);
    }
    return next;
}

/** gram <- F = Q'Q - I; norm(F) of the whole, and the largest entry. */
static double FN(defect)(const frgi_qr_workspace *work, const real *q, double *largest)
{
    const ptrdiff_t n = work->x.n;
    real *const c = work->gram;
    double sum = 0, max_abs = 0;
    FN(form_gram)(work, q);
    for (ptrdiff_t j = 0; j < n; j++) {
        c[j * n + j] -= 1;
        for (ptrdiff_t i = 0; i <= j; i++) {
            const double f = fabs((double)c[j * n + i]);
            sum += (i < j ? 2 : 1) * f * f;
            max_abs = f <= max_abs ? max_abs : f;
        }
    }
    *largest = max_abs;
    return sqrt(sum);
}

static double FN(verify)(const frgi_qr_workspace *work)
{
    double largest;
    (void)FN(defect)(work, work->q, &largest);
    return largest;
}

/** The first pass on the columns of `other`; false: it broke down. */
static bool FN(first_pass)(frgi_qr_workspace *work, bool forced, bool *shifted, bool *suffices,
                           frg_qr_report *report)
{
    const ptrdiff_t n = work->x.n;
    real *const c = work->gram, *const q = work->other;
    FN(form_gram)(work, q);
    for (ptrdiff_t j = 0; j < n; j++) {
        c[j * n + j] = 1;
    }
    double pivot = FN(cholesky)(work);
    report->passes = 1;
    *suffices = pivot >= ONE_PASS_PIVOT && FN(inverse_norm)(work) <= ONE_PASS_INVERSE;
    if (!forced && !*suffices) {
        return false;
    }
    *shifted = !(pivot >= TWO_PASS_PIVOT);
    if (*shifted) {
        report->flags |= FRG_QR_SHIFTED;
        FN(form_gram)(work, q);
        for (ptrdiff_t j = 0; j < n; j++) {
            c[j * n + j] = (real)(1 + 20 * (double)n * UNIT);
        }
        if (!(FN(cholesky)(work) > 0)) {
            return false;
        }
    }
    FN(trsm)(work, q);
    return true;
}

/** The columns of x.a to norm 1, and a copy of them in `other`; false: one is zero. */
static bool FN(unit_columns)(const frgi_qr_ops *ops, const frgi_qr_workspace *work)
{
    const ptrdiff_t n = work->x.n, ld = work->x.ld;
    for (ptrdiff_t j = 0; j < n; j++) {
        if (work->scales[j] == 0) {
            return false;
        }
        const double scale = 1 / sqrt(work->norm2[j]);
        work->scales[j] *= scale;
        work->norm2[j] = ops->scale(work->x.rows, scale, (real *)work->x.a + j * ld);
    }
    memcpy(work->other, work->x.a, (size_t)(n * ld) * sizeof(real));
    return true;
}

/** The passes after the first, F = Q'Q - I:  Q <- Q (I - triu(F, 1) - diag(F) / 2) where F is
 *  small, Q <- Q R^-1, I + F = R'R elsewhere.  true: Q is orthonormal to ortho_tol. */
static bool FN(further_passes)(const frgi_qr_workspace *work, double ortho_tol, bool shifted,
                               frg_qr_report *report)
{
    const ptrdiff_t n = work->x.n;
    while (report->passes < MOST_PASSES) {
        double largest;
        const double norm = FN(defect)(work, work->other, &largest);
        if (largest <= ortho_tol / 4) {
            return true;
        }
        report->passes++;
        real *const f = work->gram;
        if (norm <= FIRST_ORDER) {
            for (ptrdiff_t j = 0; j < n; j++) {
                for (ptrdiff_t i = 0; i < j; i++) {
                    f[j * n + i] = -f[j * n + i];
                }
                f[j * n + j] = 1 - f[j * n + j] / 2;
            }
            FN(multiply)(work, work->other);
            if (norm * norm + 2 * UNIT * sqrt((double)n) <= ortho_tol) {
                return true;
            }
            continue;
        }
        if (!(norm <= CHOLESKY_AGAIN) && !shifted) {
            return false;
        }
        shifted = false;
        for (ptrdiff_t j = 0; j < n; j++) {
            f[j * n + j] += 1;
        }
        if (!(FN(cholesky)(work) > 0)) {
            return false;
        }
        FN(trsm)(work, work->other);
    }
    return false;
}

/** R = Q'A: its diagonal gives the pivots, the whole of it is kept where it is wanted. */
static void FN(cholesky_r)(const frgi_qr_workspace *work)
{
    const ptrdiff_t n = work->x.n, ld = work->x.ld;
    real *const diagonal = work->x.diagonal;
    for (ptrdiff_t j = 0; j < n; j++) {
        const real *const q = (real *)work->other + j * ld, *const a = (real *)work->x.a + j * ld;
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (ptrdiff_t i = 0; i < work->x.rows; i++) {
            sum += q[i] * a[i];
        }
        diagonal[j] = sum;
    }
    if (work->r) {
        const int m = small_int(work->x.m), count = small_int(n), apart = small_int(ld);
        real *const r = work->r;
        GEMM('T', 'N', count, count, m, 1, work->other, apart, work->x.a, apart, 0, r, count);
        for (ptrdiff_t j = 0; j < n; j++) {
            for (ptrdiff_t i = 0; i < n; i++) {
                r[j * n + i] = i > j ? 0 : (real)((double)r[j * n + i] / work->scales[j]);
            }
        }
    }
}

/** true: `other` holds Q and report->passes says how; false: x.a is as it was, but for the
 *  scaling. */
static bool FN(cholesky_passes)(const frgi_qr_ops *ops, frgi_qr_workspace *work,
                                const frgi_qr_request *request, bool forced, frg_qr_report *report)
{
    bool shifted = false, suffices = false;
    bool done =
        FN(unit_columns)(ops, work) && FN(first_pass)(work, forced, &shifted, &suffices, report);
    if (done && !(suffices && request->ortho_tol >= 1e-5)) {
        done = FN(further_passes)(work, request->ortho_tol, shifted, report);
    }
    if (!done) {
        report->flags |= forced ? FRG_QR_FELL_BACK : 0u;
        return false;
    }
    FN(cholesky_r)(work);
    report->method = FRG_QR_CHOLESKY;
    work->q = work->other;
    return true;
}

/** r <- R of the unscaled matrix, from the upper triangle of x.a. */
static void FN(take_r)(const frgi_qr_workspace *work)
{
    const ptrdiff_t n = work->x.n;
    real *const r = work->r;
    for (ptrdiff_t j = 0; j < n; j++) {
        const real *const a = (const real *)work->x.a + j * work->x.ld;
        const double unscale = work->scales[j] == 0 ? 0 : 1 / work->scales[j];
        for (ptrdiff_t i = 0; i < n; i++) {
            r[j * n + i] = i > j ? 0 : (real)((double)a[i] * unscale);
        }
    }
}

static void FN(vendor)(frgi_qr_workspace *work)
{
    const int m = small_int(work->x.m), n = small_int(work->x.n), ld = small_int(work->x.ld);
    real *const tau = work->inverse, *const diagonal = work->x.diagonal, *const a = work->x.a;
    GEQRF(m, n, a, ld, tau, work->panel);
    for (int j = 0; j < n; j++) {
        diagonal[j] = a[(ptrdiff_t)j * ld + j];
    }
    if (work->r) {
        FN(take_r)(work);
    }
    ORGQR(m, n, a, ld, tau, work->panel);
    work->q = a;
}

/** Pivots, rank and signs: R_jj >= 0; where it is rounding alone (|R_jj| <= u norm of the column),
 *  its sign is dropped and the largest entry of the column of Q is made positive instead. */
static void FN(fix_signs)(frgi_qr_workspace *work, frg_qr_report *report)
{
    const ptrdiff_t m = work->x.m, n = work->x.n;
    const real *const diagonal = work->x.diagonal;
    const double noise = 4 * (double)(n + 16) * UNIT;
    report->pivot = INFINITY;
    for (ptrdiff_t j = 0; j < n; j++) {
        real *const q = (real *)work->q + j * work->x.ld;
        real *const r = work->r ? (real *)work->r + j * n + j : NULL;
        const double d = (double)diagonal[j];
        const double kept = work->norm2[j] > 0 ? d * d / work->norm2[j] : 0;
        const double pivot = work->scales[j] == 0 ? 0 : kept;
        bool flip = d < 0;
        report->pivot = pivot < report->pivot ? pivot : report->pivot;
        report->rank += pivot > noise * noise;
        report->flags |= pivot > noise * noise ? 0u : FRG_QR_DEFICIENT;
        if (kept <= UNIT * UNIT) {
            ptrdiff_t max_abs = 0;
            for (ptrdiff_t i = 1; i < m; i++) {
                max_abs = fabs((double)q[i]) > fabs((double)q[max_abs]) ? i : max_abs;
            }
            flip = q[max_abs] < 0;
        }
        for (ptrdiff_t i = 0; flip && i < m; i++) {
            q[i] = -q[i];
        }
        for (ptrdiff_t k = 0; flip && r && k < n - j; k++) {
            r[k * n] = -r[k * n];
        }
        if (r && *r < 0) {
            *r = -*r;
        }
    }
}
