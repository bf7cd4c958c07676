/* assign.tmpl.h - the assignment of rows to columns of least cost, by shortest augmenting paths
 * (Jonker and Volgenant 1987); included once for floats and once for doubles.
 *
 * Duals of columns v alone are kept; that of row i is min_j c_ij - v_j, which the columns that rows
 * have attain at all times.
 *
 *     cold: v_j = min_i c_ij (column reduction)
 *     each row takes its least c_ij - v_j where that is free            O(n^2)
 *     two rounds of row reduction: a row takes its least from whoever has it, and v falls by
 *         what the second least is above
 *     each row that is left: Dijkstra over the columns, by dense looks at rows, v moved along the
 *         tree, augment
 *
 * A look at a row is one pass over n reals; of many columns the last part has lists of the least
 * ones of each row, and looks at all where the path goes further than they do.  The next assignment
 * begins with the v of this one: where costs have moved little few rows are left over.  Rounding
 * makes duals inexact, never the assignment incomplete: every round of the last part assigns one
 * row.
 *
 * Template parameters: real, vec (LANES reals), mask (the same of integers), whole (such an
 * integer), AN(name), VN(name): a function of lanes.h.
 */

INLINE vec AN(at)(const real *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE real AN(least_lane)(vec low)
{
    real best = low[0];
    for (int l = 1; l < LANES; l++) {
        best = low[l] < best ? low[l] : best;
    }
    return best;
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
    const real best = AN(least_lane)(first);
    real next = (real)FRGI_ASSIGN_FAR;
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

/** Of each class of columns, those of equal j mod FRGI_ASSIGN_NEAR, the one of least c_j - v_j (-1:
 *  there is none) into at, and its cost. */
static void AN(near)(const void *cost, const void *dual, int64_t ld, int32_t *at, void *costs)
{
    enum { VECTORS = FRGI_ASSIGN_NEAR / LANES };
    const real *const c = cost, *const v = dual;
    vec low[VECTORS];
    mask from[VECTORS];
    for (int q = 0; q < VECTORS; q++) {
        low[q] = (vec){} + (real)FRGI_ASSIGN_FAR;
        from[q] = (mask){} - 1;
    }
    for (int64_t j = 0; j < ld; j += LANES) {
        const int q = (int)(j / LANES % VECTORS);
        const vec t = AN(at)(c + j) - AN(at)(v + j);
        const mask falls = t < low[q];
        low[q] = VN(smaller)(low[q], t);
        from[q] = (falls & (whole)(j - q * LANES)) | (~falls & from[q]);
    }
    for (int k = 0; k < FRGI_ASSIGN_NEAR; k++) {
        const whole first = from[k / LANES][k % LANES];
        at[k] = first < 0 ? -1 : (int32_t)first + k;
        ((real *)costs)[k] = first < 0 ? (real)FRGI_ASSIGN_FAR : c[at[k]];
    }
}

/** The place k of the least costs_k - v_at(k). */
static int AN(nearest_of)(const int32_t *at, const void *costs, const void *dual)
{
    const real *const c = costs, *const v = dual;
    real t[FRGI_ASSIGN_NEAR], least = (real)FRGI_ASSIGN_FAR;
    for (int k = 0; k < FRGI_ASSIGN_NEAR; k++) {
        t[k] = c[k] - v[at[k] < 0 ? 0 : at[k]];
    }
    for (int k = 0; k < FRGI_ASSIGN_NEAR; k++) {
        least = t[k] < least ? t[k] : least;
    }
    int first = 0;
    while (t[first] > least) {
        first++;
    }
    return first;
}

/** key_j <- min(key_j, c_j - open_j - less), from_j <- row where it falls; the place of the least
 *  key, *least. */
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
    *least = AN(least_lane)(low);
    return AN(find)(key, *least);
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

/** One round over the `left` rows that wait; how many wait after it.  A row that is put out of its
 *  column goes on at once where v fell, `most` times in all. */
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

/** Rows on the path that ends in column j take the columns behind them. */
static void AN(turn)(frgi_assign *a, const whole *from, int64_t start, int64_t j)
{
    int64_t i;
    do {
        i = from[j];
        const int64_t next = a->column[i];
        AN(take)(a, i, j);
        j = next;
    } while (i != start);
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
        open[j] = -2 * (real)FRGI_ASSIGN_FAR; /* neither chosen nor lowered again */
        key[j] = (real)FRGI_ASSIGN_FAR;
        v[j] += least; /* less the length of the whole path, below */
    }
    for (int64_t q = 0; q < scanned; q++) {
        const int64_t column = a->scanned[q];
        v[column] -= least;
        open[column] = v[column];
    }
    AN(turn)(a, from, start, j);
}

/* ---- lists of columns ---- */

/** The least of x over whole vectors. */
INLINE real AN(least_of)(const real *x, int64_t count)
{
    vec low = (vec){} + (real)FRGI_ASSIGN_FAR;
    for (int64_t j = 0; j < count; j += LANES) {
        low = VN(smaller)(low, AN(at)(x + j));
    }
    return AN(least_lane)(low);
}

INLINE real AN(least_of_block)(const real *key, int64_t ld, int64_t block)
{
    const int64_t first = block * FRGI_ASSIGN_BLOCK, left = ld - first;
    return AN(least_of)(key + first, left < FRGI_ASSIGN_BLOCK ? left : FRGI_ASSIGN_BLOCK);
}

/** The order of a few reals. */
INLINE void AN(sort_few)(real *x, int count)
{
    for (int q = 1; q < count; q++) {
        const real now = x[q];
        int at = q;
        for (; at > 0 && x[at - 1] > now; at--) {
            x[at] = x[at - 1];
        }
        x[at] = now;
    }
}

/** Columns with c_j - v_j <= most into the list of row i; false: it has no room for them. */
static bool AN(collect)(frgi_assign *a, const real *c, int64_t i, real most)
{
    const real *const v = a->v;
    int32_t *const list = a->lists.column + i * FRGI_ASSIGN_LIST;
    real *const cost = (real *)a->lists.cost + i * FRGI_ASSIGN_LIST;
    const vec bound = (vec){} + most;
    int32_t count = 0;
    for (int64_t j = 0; j < a->ld; j += LANES) {
        unsigned in = ~VN(less)(bound, AN(at)(c + j) - AN(at)(v + j)) & ((1u << LANES) - 1);
        for (; in; in &= in - 1) {
            const int64_t at = j + __builtin_ctz(in);
            if (count == FRGI_ASSIGN_LIST) {
                return false;
            }
            list[count] = (int32_t)at;
            cost[count++] = c[at];
        }
    }
    a->lists.length[i] = count;
    ((real *)a->lists.bound)[i] = most;
    return true;
}

/** Lists the columns of row i that are least by c_ij - v_j: 44 of them on average, up to the least
 *  of half of 64 classes of columns. Duals only fall until the next problem, so that what is not
 *  listed stays above the bound. */
static void AN(make_list)(frgi_assign *a, const frgi_costs *cost, int64_t i)
{
    enum { VECTORS = FRGI_ASSIGN_LIST / LANES };
    const real *const c = frgi_costs_row(cost, i), *const v = a->v;
    vec low[VECTORS];
    real least[FRGI_ASSIGN_LIST];
    for (int q = 0; q < VECTORS; q++) {
        low[q] = (vec){} + (real)FRGI_ASSIGN_FAR;
    }
    for (int64_t j = 0; j < a->ld; j += LANES) {
        vec *const to = &low[j / LANES % VECTORS];
        *to = VN(smaller)(*to, AN(at)(c + j) - AN(at)(v + j));
    }
    memcpy(least, low, sizeof least);
    AN(sort_few)(least, FRGI_ASSIGN_LIST);
    a->lists.length[i] = FRGI_ASSIGN_NO_LIST;
    for (int rank = FRGI_ASSIGN_LIST / 2; rank > 0; rank /= 2) {
        if (AN(collect)(a, c, i, least[rank - 1])) {
            return;
        }
    }
}

/** What a path needs beside keys: the least key of each block of columns, and rows whose columns
 *  were looked at by their lists alone, with the least key that the others can have. */
typedef struct {
    real *low;
    int64_t blocks, rows;
    int32_t *row;
    real *less, *others, least_other;
} AN(front);

/** Keys of all columns by row i, and the least ones of blocks. */
static void AN(relax_all)(frgi_assign *a, const frgi_costs *c, int64_t i, real less, AN(front) * f)
{
    real unused;
    real *const key = a->key;
    (void)AN(relax)(frgi_costs_row(c, i), a->open, a->ld, less, (whole)i, key, a->from, &unused);
    a->scans++;
    for (int64_t b = 0; b < f->blocks; b++) {
        f->low[b] = AN(least_of_block)(key, a->ld, b);
    }
}

/** The same of those in its list. */
static void AN(relax_list)(frgi_assign *a, int64_t i, real less, AN(front) * f)
{
    const int32_t *const list = a->lists.column + i * FRGI_ASSIGN_LIST;
    const real *const cost = (const real *)a->lists.cost + i * FRGI_ASSIGN_LIST;
    const real *const open = a->open;
    real *const key = a->key;
    whole *const from = a->from;
    for (int32_t q = 0; q < a->lists.length[i]; q++) {
        const int32_t j = list[q];
        const real t = cost[q] - open[j] - less;
        if (t < key[j]) {
            key[j] = t;
            from[j] = (whole)i;
            real *const low = &f->low[j / FRGI_ASSIGN_BLOCK];
            *low = t < *low ? t : *low;
        }
    }
    f->row[f->rows] = (int32_t)i;
    f->less[f->rows] = less;
    f->others[f->rows] = ((const real *)a->lists.bound)[i] - less;
    f->least_other = f->others[f->rows] < f->least_other ? f->others[f->rows] : f->least_other;
    f->rows++;
}

static void AN(visit)(frgi_assign *a, const frgi_costs *c, int64_t i, real less, AN(front) * f)
{
    if (a->lists.length[i] == FRGI_ASSIGN_UNLISTED) {
        AN(make_list)(a, c, i);
        a->scans += 2;
    }
    if (a->lists.length[i] == FRGI_ASSIGN_NO_LIST) {
        AN(relax_all)(a, c, i, less, f);
    } else {
        AN(relax_list)(a, i, less, f);
    }
}

/** The row whose columns that are not listed could be nearest is looked at as a whole. */
static void AN(widen)(frgi_assign *a, const frgi_costs *c, AN(front) * f)
{
    int64_t at = 0;
    for (int64_t q = 0; q < f->rows; q++) {
        at = f->others[q] < f->others[at] ? q : at;
    }
    const int64_t i = f->row[at];
    const real less = f->less[at];
    f->rows--;
    f->row[at] = f->row[f->rows];
    f->less[at] = f->less[f->rows];
    f->others[at] = f->others[f->rows];
    f->least_other = (real)FRGI_ASSIGN_FAR;
    for (int64_t q = 0; q < f->rows; q++) {
        f->least_other = f->others[q] < f->least_other ? f->others[q] : f->least_other;
    }
    AN(relax_all)(a, c, i, less, f);
}

/** The column of least key, once none that is not listed can be nearer. */
static int64_t AN(nearest)(frgi_assign *a, const frgi_costs *c, AN(front) * f, real *least)
{
    for (;;) {
        *least = AN(least_of)(f->low, f->blocks);
        if (*least <= f->least_other || f->rows == 0) {
            const int64_t block = AN(find)(f->low, *least);
            const real *const key = (const real *)a->key + block * FRGI_ASSIGN_BLOCK;
            return block * FRGI_ASSIGN_BLOCK + AN(find)(key, *least);
        }
        AN(widen)(a, c, f);
    }
}

/** AN(augment) by lists. */
static void AN(augment_by_lists)(frgi_assign *a, const frgi_costs *c, int64_t start)
{
    real *const v = a->v, *const open = a->open, *const key = a->key, *const at = a->lists.reached;
    whole *const from = a->from;
    AN(front)
    f = {.low = a->lists.least,
         .blocks = (a->ld + FRGI_ASSIGN_BLOCK - 1) / FRGI_ASSIGN_BLOCK,
         .row = a->lists.row,
         .less = a->lists.less,
         .others = a->lists.others,
         .least_other = (real)FRGI_ASSIGN_FAR};
    int64_t scanned = 0, i = start, j;
    real least = 0, less = 0;
    for (int64_t q = 0; q < a->ld; q++) {
        key[q] = (real)FRGI_ASSIGN_FAR;
    }
    for (int64_t b = 0; b < f.blocks + LANES; b++) { /* whole vectors of them are looked at */
        f.low[b] = (real)FRGI_ASSIGN_FAR;
    }
    for (;;) {
        AN(visit)(a, c, i, less, &f);
        j = AN(nearest)(a, c, &f, &least);
        i = a->row[j];
        if (i < 0) {
            break;
        }
        less = ((const real *)c->at)[i * c->ld + j] - v[j] - least;
        at[scanned] = least;
        a->scanned[scanned++] = (int32_t)j;
        open[j] = -2 * (real)FRGI_ASSIGN_FAR; /* neither chosen nor lowered again */
        key[j] = (real)FRGI_ASSIGN_FAR;
        f.low[j / FRGI_ASSIGN_BLOCK] = AN(least_of_block)(key, a->ld, j / FRGI_ASSIGN_BLOCK);
    }
    for (int64_t q = 0; q < scanned; q++) {
        const int64_t column = a->scanned[q];
        v[column] += at[q] - least;
        open[column] = v[column];
    }
    AN(turn)(a, from, start, j);
}

static int64_t AN(begin)(frgi_assign *a, const frgi_costs *c)
{
    real *const v = a->v;
    for (int64_t j = 0; j < a->n && a->warm && a->moved; j++) {
        const real costs = ((const real *)c->at)[a->row[j] * c->ld + j];
        v[j] += (costs - ((const real *)a->paid)[j]) / 2;
    }
    for (int64_t i = 0; i < a->n; i++) {
        a->column[i] = a->row[i] = -1;
    }
    if (!a->warm) {
        AN(reduce_columns)(a, c);
    }
    for (int64_t j = a->n; j < a->ld; j++) {
        v[j] = -2 * (real)FRGI_ASSIGN_FAR;
    }
    return AN(first_come)(a, c);
}

/** Rows from place q on that wait take the columns that are free, in order: of a run that is
 *  stopped nobody uses the assignment, which is one all the same. */
static void AN(take_what_is_free)(frgi_assign *a, int64_t q, int64_t left)
{
    int64_t j = 0;
    for (; q < left; q++) {
        while (a->row[j] >= 0) {
            j++;
        }
        AN(take)(a, a->waiting[q], j);
    }
}

static void AN(finish)(frgi_assign *a, const frgi_costs *c, int64_t left)
{
    for (int round = 0; round < 2 && left > 0; round++) {
        left = AN(row_reduction)(a, c, left);
    }
    memcpy(a->open, a->v, (size_t)a->ld * sizeof(real));
    for (int64_t i = 0; a->lists.column && i < a->n; i++) {
        a->lists.length[i] = FRGI_ASSIGN_UNLISTED;
    }
    for (int64_t q = 0; q < left; q++) {
        if (frgi_stopped(a->ctx) != FRG_OK) {
            AN(take_what_is_free)(a, q, left);
            break;
        }
        if (a->lists.column) {
            AN(augment_by_lists)(a, c, a->waiting[q]);
        } else {
            AN(augment)(a, c, a->waiting[q]);
        }
    }
    for (int64_t j = 0; j < a->n; j++) {
        ((real *)a->paid)[j] = ((const real *)c->at)[a->row[j] * c->ld + j];
    }
    a->warm = true;
}

static void AN(coarsen)(const frgi_costs *c, frgi_costs *out)
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
    const frgi_assign *const h = a->coarse;
    real *const v = a->v;
    for (int64_t j = 0; j < a->n; j++) {
        v[j] = (real)FRGI_ASSIGN_FAR;
    }
    for (int64_t p = 0; p < h->n; p++) {
        const real *const row = (const real *)c->at + 2 * p * c->ld;
        double least[2];
        AN(two)((const real *)a->coarse_costs.at + p * a->coarse_costs.ld, h->v, h->ld, least);
        const real u = (real)least[0];
        for (int64_t j = 0; j < a->n; j++) {
            v[j] = row[j] - u < v[j] ? row[j] - u : v[j];
        }
    }
}
