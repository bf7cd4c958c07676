/* fe_modular.c - the exact rank of D for three and more effects, in integers and a prime field.
 *
 * Notation: the first row of each eliminated level eliminates it, so that rank D = n_elim + rank
 * Delta, where Delta has for every row i of an eliminated level, i0 being the eliminated level's
 * first,
 *
 *     (e_f(i) - e_f(i0)) + (s(i) - s(i0)),     f the larger of the other factors, s = sum of the
 *                                              small ones' e
 *
 * Union-find on the levels of f with offsets: e_l = e_parent + offset_l, an integer vector over the
 * T levels of the small factors.  A row that joins two trees adds one to the rank and defines an
 * offset.  Any row leaves a vector of Z^T, 0 where it joined; these are eliminated modulo the prime
 * 2^61 - 1, where the rank of integer vectors is at most the rational one, and less only if the
 * prime divides their minors.  The search for more ends at sum (m_q - 1) over the small factors,
 * which no such vector can exceed.  Where many vectors in turn were dependent, the others are tried
 * by their product with a random y that is orthogonal to the vectors so far, two gathers a row: an
 * independent one has the product 0 with probability 1 / p.
 *
 * Cost: n T at most for the offsets, T^2 a vector that is eliminated; most designs reach the bound
 * after a few hundred rows.  Memory: 8 T bytes a level of f.  Not for T > SMALL_LEVELS: there is
 * fe_sparse_rank.c.
 */
#include <string.h>

#include "fe/fe_graph.h"
#include "fe/fe_runs.h"
#include "sparse/prime.h"

enum { SMALL_LEVELS = 256, DEPENDENT_LIMIT = 64 };
static const int64_t OFFSETS_MOST = (int64_t)1 << 24;

typedef struct {
    const fe_rows *g;
    int large;          /* place of f among the remaining factors */
    int32_t first;      /* its first reduced unknown */
    int64_t levels;     /* of f */
    int64_t width;      /* T */
    int64_t bound;      /* no more vectors can be independent */
    int64_t rank;       /* of the vectors so far */
    double work;        /* multiply-adds done */
    double work_most;   /* and allowed */
    int32_t *parent;    /* levels */
    int32_t *size;      /* levels: of the tree of a root */
    int64_t *offset;    /* levels x T */
    int32_t *small;     /* R: place of a reduced unknown among the T */
    int64_t *vector;    /* T */
    uint64_t *reduced;  /* T */
    uint64_t *basis;    /* T x T: row j has its first entry, 1, at column j, or is empty */
    unsigned char *has; /* T */
    uint64_t *y;        /* T: orthogonal to the basis */
    uint64_t *product;  /* levels: y' offset */
} elimination;

/** Eliminates m->vector by the basis and adds what is left of it. */
static void eliminate(elimination *m)
{
    const int64_t t = m->width;
    for (int64_t j = 0; j < t; j++) {
        const int64_t v = m->vector[j] % (int64_t)FRGI_PRIME;
        m->reduced[j] = v < 0 ? (uint64_t)v + FRGI_PRIME : (uint64_t)v;
    }
    for (int64_t j = 0; j < t; j++) {
        const uint64_t lead = m->reduced[j];
        uint64_t *row = m->basis + j * t;
        if (lead == 0) {
            continue;
        }
        m->work += (double)t;
        if (!m->has[j]) {
            const uint64_t scale = frgi_prime_inverse(lead);
            for (int64_t k = j; k < t; k++) {
                row[k] = frgi_prime_times(m->reduced[k], scale);
            }
            m->has[j] = 1;
            m->rank++;
            return;
        }
        const uint64_t minus = frgi_prime_minus(lead);
        for (int64_t k = j; k < t; k++) {
            m->reduced[k] = frgi_prime_plus(m->reduced[k], frgi_prime_times(minus, row[k]));
        }
    }
}

/* ---- trees ----------------------------------------------------------------------------------- */

static void add(int64_t *to, const int64_t *from, int64_t t, int64_t sign)
{
    for (int64_t j = 0; j < t; j++) {
        to[j] += sign * from[j];
    }
}

/** The root of l; l's offset is then from it, or from a child of it. */
static int32_t find_root(elimination *m, int32_t l)
{
    while (m->parent[m->parent[l]] != m->parent[l]) {
        const int32_t up = m->parent[l];
        add(m->offset + l * m->width, m->offset + up * m->width, m->width, 1);
        m->work += (double)m->width;
        m->parent[l] = m->parent[up];
    }
    return m->parent[l];
}

/** vector <- s(i) - s(first) */
static void small_difference(const elimination *m, const int32_t *row, const int32_t *first)
{
    memset(m->vector, 0, (size_t)m->width * sizeof *m->vector);
    for (int q = 0; q < m->g->n_remaining; q++) {
        if (q != m->large) {
            m->vector[m->small[row[q]]]++;
            m->vector[m->small[first[q]]]--;
        }
    }
}

/** Row `row` against the first of its eliminated level; returns 1 when it joins two trees. */
static int join_row(elimination *m, const int32_t *row, const int32_t *first)
{
    const int32_t a = row[m->large] - m->first, b = first[m->large] - m->first;
    if (a == b) {
        return 0;
    }
    const int32_t root_a = find_root(m, a), root_b = find_root(m, b);
    if (root_a == root_b) {
        return 0;
    }
    /* e_a + s(i) - e_b - s(first), from the roots: offsets of roots are 0 */
    small_difference(m, row, first);
    add(m->vector, m->offset + a * m->width, m->width, 1);
    add(m->vector, m->offset + b * m->width, m->width, -1);
    m->work += 3 * (double)m->width;
    const bool below = m->size[root_a] <= m->size[root_b]; /* the smaller tree: paths stay short */
    const int32_t low = below ? root_a : root_b, high = below ? root_b : root_a;
    add(m->offset + low * m->width, m->vector, m->width, below ? -1 : 1);
    m->parent[low] = high;
    m->size[high] += m->size[low];
    return 1;
}

/** Offsets from the roots themselves. */
static void flatten(elimination *m)
{
    for (int32_t l = 0; l < m->levels; l++) {
        find_root(m, l);
    }
}

/* ---- vectors that are left ------------------------------------------------------------------- */

/** Eliminates what row `row` leaves; returns whether it was independent. */
static bool take_row(elimination *m, const int32_t *row, const int32_t *first)
{
    const int64_t before = m->rank;
    const int32_t a = row[m->large] - m->first, b = first[m->large] - m->first;
    small_difference(m, row, first);
    if (a != b) {
        add(m->vector, m->offset + a * m->width, m->width, 1);
        add(m->vector, m->offset + b * m->width, m->width, -1);
    }
    eliminate(m);
    m->work += 3 * (double)m->width;
    return m->rank > before;
}

/** A random y orthogonal to the basis, from the last column to the first, and its products with the
 *  offsets. */
static void draw(elimination *m)
{
    const int64_t t = m->width;
    for (int64_t j = t - 1; j >= 0; j--) {
        uint32_t word[4];
        frgi_philox(0, 0x72616e6b, (uint64_t)j, (uint64_t)m->rank, word);
        m->y[j] = m->has[j] ? 0 : ((uint64_t)word[0] << 32 | word[1]) % FRGI_PRIME;
        for (int64_t k = j + 1; m->has[j] && k < t; k++) {
            const uint64_t term = frgi_prime_times(m->basis[j * t + k], m->y[k]);
            m->y[j] = frgi_prime_plus(m->y[j], frgi_prime_minus(term));
        }
    }
    for (int64_t l = 0; l < m->levels; l++) {
        const int64_t *const offset = m->offset + l * t;
        uint64_t sum = 0;
        for (int64_t j = 0; j < t; j++) {
            const int64_t o = offset[j] % (int64_t)FRGI_PRIME;
            const uint64_t term = frgi_prime_times((uint64_t)(o < 0 ? -o : o), m->y[j]);
            sum = frgi_prime_plus(sum, o < 0 ? frgi_prime_minus(term) : term);
        }
        m->product[l] = sum;
    }
    m->work += (double)(m->levels * t);
}

/** y' (e_f(i) + s(i)), up to a constant of the tree. */
static uint64_t product_of(const elimination *m, const int32_t *row)
{
    uint64_t sum = m->product[row[m->large] - m->first];
    for (int q = 0; q < m->g->n_remaining; q++) {
        if (q != m->large) {
            sum = frgi_prime_plus(sum, m->y[m->small[row[q]]]);
        }
    }
    return sum;
}

/** Where the search for independent vectors stands. */
typedef struct {
    int64_t dependent; /* vectors, in turn */
    bool drawn;        /* rows are tried by their products */
} search;

/** The rank of what the rows of g leave. */
static void take_rows(elimination *m, const fe_rows *g, search *at)
{
    const int64_t limit = m->width > DEPENDENT_LIMIT ? m->width : DEPENDENT_LIMIT;
    int64_t dependent = at->dependent;
    bool drawn = at->drawn;
    for (int64_t u = 0; u < g->n_elim && m->rank < m->bound && m->work <= m->work_most; u++) {
        const int32_t *const first = g->index + g->elim_start[u] * g->n_remaining, *row = first;
        uint64_t want = drawn ? product_of(m, first) : 0;
        for (int64_t i = g->elim_start[u] + 1; i < g->elim_start[u + 1]; i++) {
            row += g->n_remaining;
            if (drawn && product_of(m, row) == want) {
                continue;
            }
            drawn = false;
            dependent = take_row(m, row, first) ? 0 : dependent + 1;
            if (dependent == limit) {
                draw(m);
                drawn = true;
                dependent = 0;
                want = product_of(m, first);
            }
        }
    }
    *at = (search){dependent, drawn};
}

/** Joins the trees along the rows of g; returns how many pairs were joined, at most `most`. */
static int64_t join_rows(elimination *m, const fe_rows *g, int64_t most)
{
    int64_t joined = 0;
    for (int64_t u = 0; u < g->n_elim && joined < most && m->work <= m->work_most; u++) {
        const int32_t *first = g->index + g->elim_start[u] * g->n_remaining;
        for (int64_t i = g->elim_start[u] + 1; i < g->elim_start[u + 1]; i++) {
            joined += join_row(m, g->index + i * g->n_remaining, first);
        }
    }
    return joined;
}

/** *joined <- the pairs that all rows join, then m->rank. */
static frg_status take_all(elimination *m, frg_context *ctx, int64_t *joined)
{
    fe_runs runs = frgi_fe_runs(m->g, ctx);
    for (const fe_rows *w;
         *joined < m->levels - 1 && m->work <= m->work_most && (w = frgi_fe_runs_next(&runs));) {
        *joined += join_rows(m, w, m->levels - 1 - *joined);
    }
    const frg_status status = frgi_fe_runs_close(&runs);
    if (status != FRG_OK) {
        return status;
    }
    flatten(m);
    search at = {0};
    runs = frgi_fe_runs(m->g, ctx);
    for (const fe_rows *w;
         m->rank < m->bound && m->work <= m->work_most && (w = frgi_fe_runs_next(&runs));) {
        take_rows(m, w, &at);
    }
    return frgi_fe_runs_close(&runs);
}

/* ---- the count ------------------------------------------------------------------------------- */

/** Chooses f and numbers the small factors' levels; false where there are too many. */
static bool shape(const fe_rows *g, elimination *m)
{
    *m = (elimination){.g = g, .large = -1};
    for (int q = 0, r = 0; q < g->n_factors; q++) {
        if (q == g->elim_factor) {
            continue;
        }
        const fe_factor *f = &g->factor[q];
        m->width += f->levels;
        m->bound += f->levels - 1;
        if (m->large < 0 || f->levels > m->levels) {
            m->large = r;
            m->levels = f->levels;
            m->first = (int32_t)f->first;
        }
        r++;
    }
    m->width -= m->levels;
    m->bound -= m->levels - 1;
    return m->large >= 0 && g->n_remaining >= 2 && m->width <= SMALL_LEVELS &&
           m->levels * m->width <= OFFSETS_MOST;
}

static void lay_out(frgi_arena *a, elimination *m)
{
    m->parent = TAKE(a, int32_t, m->levels);
    m->size = TAKE(a, int32_t, m->levels);
    m->offset = TAKE(a, int64_t, m->levels * m->width);
    m->small = TAKE(a, int32_t, m->g->n_reduced);
    m->vector = TAKE(a, int64_t, m->width);
    m->reduced = TAKE(a, uint64_t, m->width);
    m->basis = TAKE(a, uint64_t, m->width * m->width);
    m->has = TAKE(a, unsigned char, m->width);
    m->y = TAKE(a, uint64_t, m->width);
    m->product = TAKE(a, uint64_t, m->levels);
}

static void prepare(const elimination *m)
{
    int32_t next = 0;
    for (int64_t l = 0; l < m->levels; l++) {
        m->parent[l] = (int32_t)l;
        m->size[l] = 1;
    }
    for (int64_t l = 0; l < m->g->n_reduced; l++) {
        m->small[l] = l >= m->first && l < m->first + m->levels ? -1 : next++;
    }
    memset(m->offset, 0, (size_t)(m->levels * m->width) * sizeof *m->offset);
    memset(m->has, 0, (size_t)m->width);
}

frg_status frgi_fe_modular_rank(const fe_rows *g, frg_context *ctx, double work_most, int64_t *rank)
{
    *rank = -1;
    elimination m;
    if (!shape(g, &m)) {
        return FRG_OK;
    }
    frgi_arena memory = {0};
    lay_out(&memory, &m);
    TRY(frgi_arena_open(&memory, ctx, "exact rank of the effects"));
    lay_out(&memory, &m);
    m.work_most = work_most;
    prepare(&m);
    int64_t joined = 0;
    const frg_status status = take_all(&m, ctx, &joined);
    *rank = status == FRG_OK && m.work <= work_most ? g->n_elim + joined + m.rank : -1;
    frgi_arena_close(&memory, ctx);
    return status;
}
