/* gw_assign.tmpl.h - the assignment of rows to columns of least cost, by shortest augmenting paths (Jonker and Volgenant
 * 1987); included once for floats and once for doubles.
 *
 * Duals of columns v alone are kept; that of row i is min_j c_ij - v_j, which the columns that rows have attain at all times.
 *
 *     cold: v_j = min_i c_ij (column reduction)
 *     each row takes its least c_ij - v_j where that is free            O(n^2)
 *     two rounds of row reduction: a row takes its least from whoever has it, and v falls by what the second least is above
 *     each row that is left: Dijkstra over the columns, by dense looks at rows, v moved along the tree, augment
 *
 * A look at a row is one pass over n reals.  The next assignment begins with the v of this one: where costs have moved little
 * few rows are left over.  Rounding makes duals inexact, never the assignment incomplete: every round of the last part
 * assigns one row.
 *
 * Text parameters: real, vec (LANES reals), mask (the same of integers), whole (such an integer), AN(name), VN(name): a function of gw_lanes.h.
 */

INLINE vec AN(at)(const real *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

/** The first place where x is `least`, which is there. */
INLINE int64_t AN(find)(const real *x, real least)
{
    const vec bound = (vec){} + least;
    int64_t j = 0;
    while (VN(less)(bound, AN(at)(x + j)) == (1u << LANES) - 1) {
        j += LANES;
    }
    while (x[j] > least) {
        j++;
    }
    return j;
}

static int64_t AN(two)(const void *cost, const void *dual, int64_t ld, double least[2])
{
    const real *const c = cost, *const v = dual;
    vec first = (vec){} + (real)FRGI_ASSIGN_FAR, second = first;
    for (int64_t j = 0; j < ld; j += LANES) {
        const vec t = AN(at)(c + j) - AN(at)(v + j);
        second = VN(smaller)(second, VN(larger)(first, t));
        first = VN(smaller)(first, t);
    }
    real best = first[0], next = (real)FRGI_ASSIGN_FAR;
    for (int l = 1; l < LANES; l++) {
        best = first[l] < best ? first[l] : best;
    }
    int64_t at = 0;
    const vec bound = (vec){} + best;
    while (VN(less)(bound, AN(at)(c + at) - AN(at)(v + at)) == (1u << LANES) - 1) {
        at += LANES;
    }
    while (c[at] - v[at] > best) {
        at++;
    }
    for (int l = 0; l < LANES; l++) { /* of the lane that has it the second */
        const real other = l == at % LANES ? second[l] : first[l];
        next = other < next ? other : next;
    }
    least[0] = (double)best;
    least[1] = (double)next;
    return at;
}

/** key_j <- min(key_j, c_j - open_j - less), from_j <- row where it falls; the place of the least key, *least. */
INLINE int64_t AN(relax)(const real *c, const real *open, int64_t ld, real less, whole row,
                         real *key, whole *from, real *least)
{
    const mask rows = (mask){} + row;
    vec low = (vec){} + (real)FRGI_ASSIGN_FAR;
    for (int64_t j = 0; j < ld; j += LANES) {
        const vec t = AN(at)(c + j) - AN(at)(open + j) - less, k = AN(at)(key + j);
        low = VN(smaller)(low, VN(smaller)(t, k));
        if (VN(less)(t, k)) {
            const mask falls = t < k;
            const vec now = VN(smaller)(t, k);
            mask f;
            memcpy(&f, from + j, sizeof f);
            f = (falls & rows) | (~falls & f);
            memcpy(key + j, &now, sizeof now);
            memcpy(from + j, &f, sizeof f);
        }
    }
    real best = low[0];
    for (int l = 1; l < LANES; l++) {
        best = low[l] < best ? low[l] : best;
    }
    *least = best;
    return AN(find)(key, best);
}

/** v_j <- min_i c_ij. */
static void AN(reduce_columns)(frgi_assign *a, const frgi_costs *c)
{
    real *const v = a->v;
    memcpy(v, c->at, (size_t)a->n * sizeof *v);
    for (int64_t i = 1; i < a->n; i++) {
        const real *const row = (const real *)c->at + i * c->ld;
        for (int64_t j = 0; j < a->n; j++) {
            v[j] = row[j] < v[j] ? row[j] : v[j];
        }
    }
}

static void AN(take)(frgi_assign *a, int64_t i, int64_t j)
{
    a->column[i] = (int32_t)j;
    a->row[j] = (int32_t)i;
}

/** Rows take what is free and least; those that are left, in a->waiting. */
static int64_t AN(first_come)(frgi_assign *a, const frgi_costs *c)
{
    int64_t left = 0;
    for (int64_t i = 0; i < a->n; i++) {
        double least[2];
        const int64_t j = AN(two)((const real *)c->at + i * c->ld, a->v, a->ld, least);
        if (a->row[j] < 0) {
            AN(take)(a, i, j);
        } else {
            a->waiting[left++] = (int32_t)i;
        }
    }
    a->scans += a->n;
    return left;
}

/** One round over the `left` rows that wait; how many wait after it.  A row that is put out of its column goes on at once where
 *  v fell, `most` times in all. */
static int64_t AN(row_reduction)(frgi_assign *a, const frgi_costs *c, int64_t left)
{
    real *const v = a->v;
    int64_t next = 0, kept = 0, most = 4 * left + 64;
    while (next < left) {
        const int64_t i = a->waiting[next++];
        double least[2];
        const int64_t j = AN(two)((const real *)c->at + i * c->ld, v, a->ld, least);
        const int64_t before = a->row[j];
        const real lower = v[j] - (real)(least[1] - least[0]);
        const bool falls = lower < v[j] && least[1] < FRGI_ASSIGN_FAR / 2;
        a->scans++;
        if (before >= 0 && !falls) { /* as good for both: it waits for the paths */
            a->waiting[kept++] = (int32_t)i;
            continue;
        }
        v[j] = falls ? lower : v[j];
        AN(take)(a, i, j);
        if (before >= 0) {
            a->column[before] = -1;
            if (most-- > 0) {
                a->waiting[--next] = (int32_t)before;
            } else {
                a->waiting[kept++] = (int32_t)before;
            }
        }
    }
    return kept;
}

/** Assigns row `start` by the shortest path to a free column. */
static void AN(augment)(frgi_assign *a, const frgi_costs *c, int64_t start)
{
    real *const v = a->v, *const open = a->open, *const key = a->key;
    whole *const from = a->from;
    int64_t scanned = 0, i = start, j;
    real least = 0, less = 0;
    for (int64_t q = 0; q < a->ld; q++) {
        key[q] = (real)FRGI_ASSIGN_FAR;
    }
    for (;;) {
        j = AN(relax)((const real *)c->at + i * c->ld, open, a->ld, less, (whole)i, key, from,
                      &least);
        a->scans++;
        i = a->row[j];
        if (i < 0) {
            break;
        }
        a->scanned[scanned++] = (int32_t)j;
        less = ((const real *)c->at)[i * c->ld + j] - v[j] - least;
        open[j] = -(real)FRGI_ASSIGN_FAR; /* neither chosen nor lowered again */
        key[j] = (real)FRGI_ASSIGN_FAR;
        v[j] += least; /* less the length of the whole path, below */
    }
    for (int64_t q = 0; q < scanned; q++) {
        const int64_t column = a->scanned[q];
        v[column] -= least;
        open[column] = v[column];
    }
    do {
        i = from[j];
        const int64_t next = a->column[i];
        AN(take)(a, i, j);
        j = next;
    } while (i != start);
}

static void AN(solve)(frgi_assign *a, const frgi_costs *c)
{
    real *const v = a->v;
    for (int64_t i = 0; i < a->n; i++) {
        a->column[i] = a->row[i] = -1;
    }
    if (!a->warm) {
        AN(reduce_columns)(a, c);
    }
    for (int64_t j = a->n; j < a->ld; j++) {
        v[j] = -(real)FRGI_ASSIGN_FAR;
    }
    int64_t left = AN(first_come)(a, c);
    for (int round = 0; round < 2 && left > 0; round++) {
        left = AN(row_reduction)(a, c, left);
    }
    memcpy(a->open, v, (size_t)a->ld * sizeof *v);
    for (int64_t q = 0; q < left; q++) {
        AN(augment)(a, c, a->waiting[q]);
    }
    a->warm = true;
}

static void AN(halve)(const frgi_costs *c, frgi_costs *out)
{
    for (int64_t i = 0; i < out->rows; i++) {
        const real *const from = (const real *)c->at + 2 * i * c->ld;
        real *const to = (real *)out->at + i * out->ld;
        for (int64_t j = 0; j < out->columns; j++) {
            to[j] = from[2 * j];
        }
    }
}

/** v_j <- min over the rows of the half of c_pj - u_p. */
static void AN(extend)(frgi_assign *a, const frgi_costs *c)
{
    const frgi_assign *const h = a->half;
    real *const v = a->v;
    for (int64_t j = 0; j < a->n; j++) {
        v[j] = (real)FRGI_ASSIGN_FAR;
    }
    for (int64_t p = 0; p < h->n; p++) {
        const real *const row = (const real *)c->at + 2 * p * c->ld;
        double least[2];
        AN(two)((const real *)a->part.at + p * a->part.ld, h->v, h->ld, least);
        const real u = (real)least[0];
        for (int64_t j = 0; j < a->n; j++) {
            v[j] = row[j] - u < v[j] ? row[j] - u : v[j];
        }
    }
}
