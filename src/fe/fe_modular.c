/* fe_modular.c - the exact rank of D for three and more effects, in integers and a prime field.
 *
 * Letters: the units are eliminated by a row of each, so that rank D = n_units + rank Delta, where Delta has
 * for every row i of a unit, i0 being the unit's first,
 *
 *     (e_f(i) - e_f(i0)) + (s(i) - s(i0)),     f the larger of the other factors, s = sum of the small ones' e
 *
 * Union-find on the levels of f with offsets: e_l = e_parent + offset_l, an integer vector over the T levels of
 * the small factors.  A row that joins two trees adds one to the rank and defines an offset.  A row within a
 * tree leaves a vector of Z^T; these are eliminated modulo the prime 2^61 - 1, where the rank of integer
 * vectors is at most the rational one, and less only if the prime divides their minors.  The search for more
 * ends at sum (m_q - 1) over the small factors, which no such vector can exceed.
 *
 * Cost: n T at most for the offsets, T^2 a vector that is eliminated; most designs reach the bound after a few
 * hundred rows.  Memory: 8 T bytes a level of f.  Not for T > SMALL_LEVELS: the caller has the sparse factor.
 */
#include <string.h>

#include "fe/fe_graph.h"

enum { SMALL_LEVELS = 256 };
static const uint64_t PRIME = ((uint64_t)1 << 61) - 1;
static const int64_t OFFSETS_MOST = (int64_t)1 << 24;
static const double WORK_MOST = 2e9; /* multiply-adds */

typedef unsigned __int128 wide;

/* ---- vectors over the prime field --------------------------------------------------------------- */

static uint64_t times(uint64_t a, uint64_t b)
{
    const wide product = (wide)a * b;
    const uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

static uint64_t inverse_of(uint64_t a)
{
    uint64_t result = 1;
    for (uint64_t e = PRIME - 2; e > 0; e >>= 1) { /* Fermat */
        result = e & 1 ? times(result, a) : result;
        a = times(a, a);
    }
    return result;
}

typedef struct {
    const fe_rows *g;
    int large;          /* place of f among the rest */
    int32_t first;      /* its first coefficient */
    int64_t levels;     /* of f */
    int64_t width;      /* T */
    int64_t bound;      /* no more vectors can be independent */
    int64_t rank;       /* of the vectors so far */
    double work;        /* done */
    int32_t *parent;    /* levels */
    int32_t *size;      /* levels: of the tree of a root */
    int64_t *offset;    /* levels x T */
    int32_t *small;     /* R: place of a coefficient among the T */
    int64_t *vector;    /* T */
    uint64_t *reduced;  /* T */
    uint64_t *basis;    /* T x T: row j has its first entry, 1, at column j, or is empty */
    unsigned char *has; /* T */
    unsigned char
        *seen; /* T x T: pairs of levels already eliminated, where one small factor is alone */
} field;

/** Eliminates m->vector by the basis and adds what is left of it. */
static void eliminate(field *m)
{
    const int64_t t = m->width;
    for (int64_t j = 0; j < t; j++) {
        const int64_t v = m->vector[j] % (int64_t)PRIME;
        m->reduced[j] = v < 0 ? (uint64_t)v + PRIME : (uint64_t)v;
    }
    for (int64_t j = 0; j < t; j++) {
        const uint64_t lead = m->reduced[j];
        uint64_t *row = m->basis + j * t;
        if (lead == 0) {
            continue;
        }
        m->work += (double)t;
        if (!m->has[j]) {
            const uint64_t scale = inverse_of(lead);
            for (int64_t k = j; k < t; k++) {
                row[k] = times(m->reduced[k], scale);
            }
            m->has[j] = 1;
            m->rank++;
            return;
        }
        const uint64_t minus = PRIME - lead;
        for (int64_t k = j; k < t; k++) {
            const uint64_t sum = m->reduced[k] + times(minus, row[k]);
            m->reduced[k] = sum >= PRIME ? sum - PRIME : sum;
        }
    }
}

/* ---- trees -------------------------------------------------------------------------------------- */

static void add(int64_t *to, const int64_t *from, int64_t t, int64_t sign)
{
    for (int64_t j = 0; j < t; j++) {
        to[j] += sign * from[j];
    }
}

/** The root of l; l's offset is then from it, or from a child of it. */
static int32_t climb(field *m, int32_t l)
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
static void small_difference(const field *m, const int32_t *row, const int32_t *first)
{
    memset(m->vector, 0, (size_t)m->width * sizeof *m->vector);
    for (int q = 0; q < m->g->n_rest; q++) {
        if (q != m->large) {
            m->vector[m->small[row[q]]]++;
            m->vector[m->small[first[q]]]--;
        }
    }
}

/** Has a row of the same pair of levels come before?  Only where the vector is made of that pair alone. */
static bool repeats(const field *m, const int32_t *row, const int32_t *first)
{
    if (m->g->n_rest != 2) {
        return false;
    }
    const int other = 1 - m->large;
    const int64_t pair = m->small[row[other]] * m->width + m->small[first[other]];
    const bool before = m->seen[pair];
    m->seen[pair] = 1;
    return before;
}

/** Row `row` against the first of its unit; returns 1 when it joins two trees. */
static int take_row(field *m, const int32_t *row, const int32_t *first)
{
    const int32_t a = row[m->large] - m->first, b = first[m->large] - m->first;
    if (a == b) {
        if (m->rank < m->bound && !repeats(m, row, first)) {
            small_difference(m, row, first);
            eliminate(m);
        }
        return 0;
    }
    const int32_t root_a = climb(m, a), root_b = climb(m, b);
    if (root_a == root_b && m->rank == m->bound) {
        return 0;
    }
    /* e_a + s(i) - e_b - s(first), from the roots: offsets of roots are 0 */
    small_difference(m, row, first);
    add(m->vector, m->offset + a * m->width, m->width, 1);
    add(m->vector, m->offset + b * m->width, m->width, -1);
    m->work += 3 * (double)m->width;
    if (root_a == root_b) {
        eliminate(m);
        return 0;
    }
    const bool below = m->size[root_a] <= m->size[root_b]; /* the smaller tree: paths stay short */
    const int32_t low = below ? root_a : root_b, high = below ? root_b : root_a;
    add(m->offset + low * m->width, m->vector, m->width, below ? -1 : 1);
    m->parent[low] = high;
    m->size[high] += m->size[low];
    return 1;
}

/* ---- the count ---------------------------------------------------------------------------------- */

/** Chooses f and numbers the small factors' levels; false where there are too many. */
static bool shape(const fe_rows *g, field *m)
{
    *m = (field){.g = g, .large = -1};
    for (int q = 0, r = 0; q < g->n_factors; q++) {
        if (q == g->unit_factor) {
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
    return m->large >= 0 && g->n_rest >= 2 && m->width <= SMALL_LEVELS &&
           m->levels * m->width <= OFFSETS_MOST;
}

static void lay_out(frgi_arena *a, field *m)
{
    m->parent = TAKE(a, int32_t, m->levels);
    m->size = TAKE(a, int32_t, m->levels);
    m->offset = TAKE(a, int64_t, m->levels * m->width);
    m->small = TAKE(a, int32_t, m->g->n_coef);
    m->vector = TAKE(a, int64_t, m->width);
    m->reduced = TAKE(a, uint64_t, m->width);
    m->basis = TAKE(a, uint64_t, m->width * m->width);
    m->has = TAKE(a, unsigned char, m->width);
    m->seen = TAKE(a, unsigned char, m->width * m->width);
}

static void prepare(const field *m)
{
    int32_t next = 0;
    for (int64_t l = 0; l < m->levels; l++) {
        m->parent[l] = (int32_t)l;
        m->size[l] = 1;
    }
    for (int64_t l = 0; l < m->g->n_coef; l++) {
        m->small[l] = l >= m->first && l < m->first + m->levels ? -1 : next++;
    }
    memset(m->offset, 0, (size_t)(m->levels * m->width) * sizeof *m->offset);
    memset(m->has, 0, (size_t)m->width);
    memset(m->seen, 0, (size_t)(m->width * m->width));
}

frg_status frgi_fe_modular_rank(const fe_rows *g, frg_context *ctx, int64_t *rank)
{
    *rank = -1;
    field m;
    if (!shape(g, &m)) {
        return FRG_OK;
    }
    frgi_arena memory = {0};
    lay_out(&memory, &m);
    TRY(frgi_arena_open(&memory, ctx, "exact rank of the effects"));
    lay_out(&memory, &m);
    prepare(&m);
    int64_t joined = 0;
    for (int64_t u = 0; u < g->n_units && m.work <= WORK_MOST; u++) {
        const int32_t *first = g->index + g->unit_start[u] * g->n_rest;
        for (int64_t i = g->unit_start[u] + 1; i < g->unit_start[u + 1]; i++) {
            joined += take_row(&m, g->index + i * g->n_rest, first);
        }
    }
    *rank = m.work <= WORK_MOST ? g->n_units + joined + m.rank : -1;
    frgi_arena_close(&memory, ctx);
    return FRG_OK;
}
