/* fe_schur.c - sampling, merging and assembling; letters and formulas in fe_schur.h.
 *
 * Row f of S is gathered from the classes that contain f (Gustavson's row-wise product: a marker array takes
 * the sparse sums), so rows are independent of one another and any number of threads gives the same bits.
 * Classes keep their counts once (lists `member`) and an inverted list tells each level its classes.
 *
 * The diagonal is sum_u c (N_u - c) / N_u, of terms >= 0: a level that only ever stands alone gets exactly
 * 0 and is seen as such, where N_l - sum c^2 / N_u would leave rounding of either sign.
 */
#include "fe/fe_schur.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum {
    SAMPLE = 512,
    BORDER_LEVELS = 256,
    MAX_STRIP_COPIES_BYTES = 64 << 20,
    MOST_PARTS =
        16 /* threads that merge units; more would read the hashes more often than they save */
};

/* ---- the border --------------------------------------------------------------------------------- */

static int64_t rest_levels(const fe_rows *g, int r)
{
    return g->factor[r < g->unit_factor ? r : r + 1].levels;
}

static int64_t rest_first(const fe_rows *g, int r)
{
    return g->factor[r < g->unit_factor ? r : r + 1].first;
}

/** Small factors, as long as a larger one is left to be sparse, and no strip is larger than the rows. */
bool frgi_fe_in_border(const fe_rows *g, int r)
{
    const int64_t levels = rest_levels(g, r);
    if (levels > BORDER_LEVELS || 4 * levels > g->n_coef || levels * g->n_coef > 2 * g->n + 4096) {
        return false;
    }
    int64_t small = 0;
    for (int q = 0; q < g->n_rest; q++) {
        small += rest_levels(g, q) <= levels ? rest_levels(g, q) : 0;
    }
    return small <= BORDER_LEVELS && 2 * small <= g->n_coef;
}

/** Which rest factors are sparse and which form the border; positions in the row's coefficients. */
typedef struct {
    const fe_rows *g;
    int n_sparse, n_small;
    int sparse[64], small[64];
    int64_t width; /* T: levels of the border */
    int64_t small_offset
        [64]; /* of a small factor's levels within the strip, less their first coefficient */
} split;

static split split_factors(const fe_rows *g)
{
    split s = {.g = g};
    for (int r = 0; r < g->n_rest; r++) {
        if (frgi_fe_in_border(g, r)) {
            s.small_offset[s.n_small] = s.width - rest_first(g, r);
            s.small[s.n_small++] = r;
            s.width += rest_levels(g, r);
        } else {
            s.sparse[s.n_sparse++] = r;
        }
    }
    return s;
}

/* ---- hashing a unit's rows ---------------------------------------------------------------------- */

/** Two independent 64-bit sums over the rows: equal for equal multisets of rows; for different ones with
 *  probability 2^-128 a pair, which no number of units that fits a memory makes likely. */
typedef struct {
    uint64_t a, b;
    bool alone; /* all rows have the same sparse coefficient, and there is one sparse factor */
} unit_hash;

/** Finaliser of MurmurHash3 with other constants (Stafford's variant 13). */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static inline bool stands_alone(const split *s, int64_t begin, int64_t end)
{
    const int32_t *index = s->g->index + s->sparse[0];
    const int64_t rests = s->g->n_rest;
    int64_t i = begin + 1;
    while (s->n_sparse == 1 && i < end && index[i * rests] == index[begin * rests]) {
        i++;
    }
    return s->n_sparse == 1 && i >= end;
}

static unit_hash hash_unit(const split *s, int64_t u)
{
    const fe_rows *g = s->g;
    const int64_t begin = g->unit_start[u], end = g->unit_start[u + 1];
    unit_hash h = {.alone = stands_alone(s, begin, end)};
    for (int64_t i = begin; !h.alone && i < end; i++) {
        const int32_t *index = g->index + i * g->n_rest;
        uint64_t key = (uint64_t)(uint32_t)index[s->sparse[0]];
        for (int q = 1; q < s->n_sparse; q++) {
            key = mix(key) + (uint64_t)(uint32_t)index[s->sparse[q]];
        }
        if (g->weight) {
            uint64_t bits;
            memcpy(&bits, &g->weight[i], sizeof bits);
            key = mix(key) ^ bits;
        }
        const uint64_t x = mix(key + UINT64_C(0x9E3779B97F4A7C15)); /* mix(0) is 0 */
        h.a += x;
        h.b += (x ^ x >> 29) * UINT64_C(0x9E3779B97F4A7C15);
    }
    return h;
}

/** Distinct values of a sparse coefficient among the unit's rows, for short units; rows for long ones. */
static double distinct_estimate(const split *s, int64_t u)
{
    const fe_rows *g = s->g;
    const int64_t begin = g->unit_start[u], rows = g->unit_start[u + 1] - begin;
    if (rows > 64) {
        return (double)rows;
    }
    int distinct = 0;
    for (int64_t i = 0; i < rows; i++) {
        for (int q = 0; q < s->n_sparse; q++) {
            const int32_t l = g->index[(begin + i) * g->n_rest + s->sparse[q]];
            int seen = 0;
            for (int64_t j = 0; j < i && !seen; j++) {
                seen = g->index[(begin + j) * g->n_rest + s->sparse[q]] == l;
            }
            distinct += !seen;
        }
    }
    return distinct;
}

double frgi_fe_schur_estimate(const fe_rows *g, uint64_t seed)
{
    const split s = split_factors(g);
    unit_hash seen[SAMPLE];
    const int64_t sample = g->n_units < SAMPLE ? g->n_units : SAMPLE;
    double products = 0;
    int contributing = 0, repeats = 0;
    for (int64_t i = 0; i < sample; i++) {
        double v[2];
        frgi_uniforms(seed, 0, (uint64_t)i, 0, v);
        const int64_t u = sample == g->n_units ? i : (int64_t)(v[0] * (double)g->n_units);
        const unit_hash h = hash_unit(&s, u);
        if (h.alone) {
            continue;
        }
        for (int j = 0; j < contributing; j++) {
            repeats += seen[j].a == h.a && seen[j].b == h.b;
        }
        seen[contributing++] = h;
        const double d = distinct_estimate(&s, u);
        products += d * d;
    }
    if (contributing == 0) {
        return 0;
    }
    const double units = (double)g->n_units * contributing / (double)sample;
    /* m draws from k equal classes show m^2 / 2k equal pairs */
    const double classes = repeats > 0 ? 0.5 * contributing * contributing / repeats : units;
    return products / contributing * (classes < units ? classes : units);
}

/* ---- merging units into classes ----------------------------------------------------------------- */

typedef struct {
    int64_t n;
    int64_t *unit; /* the first of each class, ascending */
    double *times; /* how many units it stands for */
} class_list;

typedef struct {
    uint64_t a;   /* of the class's units; b is looked up where a is equal */
    int64_t unit; /* the first of the class, -1: free */
} slot;

enum { UNITS_AHEAD = 16 }; /* slots and classes are fetched so many before they are looked at */

/** Which of `parts` threads looks after a class: the leading digits of its hash say. */
static inline int part_of(const unit_hash *h, int parts)
{
    return h->alone ? -1 : (int)((h->a >> 32) * (uint64_t)parts >> 32);
}

/** times[u] <- the units whose rows are those of u, where u is the first of them, for the classes of one part.
 *  The table has `room` slots, a power of two. */
static void merge_part(const unit_hash *hash, int64_t n_units, int part, int parts, slot *table,
                       int64_t room, uint32_t *times)
{
    const uint64_t mask = (uint64_t)(room - 1);
    for (int64_t i = 0; i < room; i++) {
        table[i].unit = -1;
    }
    for (int64_t u = 0; u < n_units; u++) {
        if (u + UNITS_AHEAD < n_units && part_of(&hash[u + UNITS_AHEAD], parts) == part) {
            __builtin_prefetch(&table[hash[u + UNITS_AHEAD].a & mask], 1);
        }
        if (part_of(&hash[u], parts) != part) {
            continue;
        }
        uint64_t i = hash[u].a & mask;
        while (table[i].unit >= 0 &&
               (table[i].a != hash[u].a || hash[table[i].unit].b != hash[u].b)) {
            i = (i + 1) & mask;
        }
        if (table[i].unit < 0) {
            table[i] = (slot){hash[u].a, u};
        }
        times[table[i].unit]++;
    }
}

/** hash[u] of all units, and how many of them each part looks after. */
static void hash_units(const split *s, int parts, unit_hash *hash, int64_t *counts)
{
    int64_t counted[MOST_PARTS][MOST_PARTS] = {{0}}; /* by thread and part */
#pragma omp parallel num_threads(parts)
    {
        int64_t mine[MOST_PARTS] = {0};
#pragma omp for schedule(static)
        for (int64_t u = 0; u < s->g->n_units; u++) {
            hash[u] = hash_unit(s, u);
            if (!hash[u].alone) {
                mine[part_of(&hash[u], parts)]++;
            }
        }
        memcpy(counted[omp_get_thread_num()], mine, sizeof mine);
    }
    for (int t = 0; t < parts; t++) {
        for (int p = 0; p < parts; p++) {
            counts[p] += counted[t][p];
        }
    }
}

/** Threads find classes apart; the units that are the first of their classes do not depend on their number. */
static frg_status merge_units(frg_context *ctx, const split *s, int threads, class_list *c)
{
    const int64_t n_units = s->g->n_units;
    const int parts = threads < MOST_PARTS ? threads : MOST_PARTS;
    int64_t counts[MOST_PARTS] = {0}, room[MOST_PARTS], first[MOST_PARTS], slots = 0;
    unit_hash *hash = NULL;
    slot *table = NULL;
    uint32_t *times = NULL;
    frg_status status;
    TRY_TO(done, NEW(ctx, &hash, n_units, "unit hashes"));
    TRY_TO(done, NEW0(ctx, &times, n_units, "classes of units"));
    hash_units(s, parts, hash, counts);
    int64_t contributing = 0;
    for (int p = 0; p < parts; p++) {
        room[p] = 16;
        while (room[p] < 2 * counts[p]) {
            room[p] *= 2;
        }
        first[p] = slots;
        slots += room[p];
        contributing += counts[p];
    }
    TRY_TO(done, NEW(ctx, &table, slots, "classes of units"));
    TRY_TO(done, NEW(ctx, &c->unit, contributing + 1, "classes of units"));
    TRY_TO(done, NEW(ctx, &c->times, contributing + 1, "classes of units"));
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int p = 0; p < parts; p++) {
        merge_part(hash, n_units, p, parts, table + first[p], room[p], times);
    }
    for (int64_t u = 0; u < n_units && c->n < contributing;
         u++) { /* without a jump that depends on times */
        c->unit[c->n] = u;
        c->times[c->n] = times[u];
        c->n += times[u] > 0;
    }
done:
    DROP(ctx, &hash);
    DROP(ctx, &table);
    DROP(ctx, &times);
    return status;
}

/* ---- the classes' counts, and the inverted lists ------------------------------------------------ */

typedef struct {
    int32_t level;
    double count; /* c_u(level) */
} member;

typedef struct {
    int64_t start, end; /* its members */
    double factor;      /* times / N_u */
    double mass;        /* N_u */
} class_sums;

typedef struct {
    class_list classes;
    class_sums *of; /* classes */
    member *members;
    int64_t levels;       /* n_coef */
    int64_t *level_start; /* levels + 1 */
    int32_t *level_class; /* classes of each level, ascending */
} incidence;

static void incidence_destroy(frg_context *ctx, incidence *m)
{
    DROP(ctx, &m->classes.unit);
    DROP(ctx, &m->classes.times);
    DROP(ctx, &m->of);
    DROP(ctx, &m->members);
    DROP(ctx, &m->level_start);
    DROP(ctx, &m->level_class);
}

/** Members of one class, in order of first appearance; place[level] marks those seen (class + 1). */
static int64_t list_members(const split *s, int64_t unit, int64_t tag, int64_t *seen,
                            int32_t *place, member *out)
{
    const fe_rows *g = s->g;
    int64_t count = 0;
    for (int64_t i = g->unit_start[unit]; i < g->unit_start[unit + 1]; i++) {
        const double w = g->weight ? g->weight[i] : 1;
        for (int q = 0; q < s->n_sparse; q++) {
            const int32_t l = g->index[i * g->n_rest + s->sparse[q]];
            if (seen[l] != tag) {
                seen[l] = tag;
                place[l] = (int32_t)count;
                out[count++] = (member){l, 0};
            }
            out[place[l]].count += w;
        }
    }
    return count;
}

/** N_u, added in the order in which a level's count is: a level on all rows has exactly this count. */
static double unit_mass(const fe_rows *g, int64_t unit)
{
    double mass = 0;
    for (int64_t i = g->unit_start[unit]; i < g->unit_start[unit + 1]; i++) {
        mass += g->weight ? g->weight[i] : 1;
    }
    return mass;
}

/** The classes that one thread lists. */
typedef struct {
    int64_t begin, end;
    int64_t room;   /* members at most */
    int64_t *seen;  /* n_coef: markers; then where its classes go in each level's list */
    int32_t *place; /* n_coef */
} share;

/** Members of the share's classes, from `first` on; seen[l] <- how many of these classes have level l. */
static void list_share(const split *s, incidence *m, const share *p, int64_t first)
{
    const fe_rows *g = s->g;
    for (int64_t c = p->begin; c < p->end; c++) {
        const int64_t u = m->classes.unit[c];
        const int64_t count = list_members(s, u, c + 1, p->seen, p->place, m->members + first);
        m->of[c] = (class_sums){.start = first,
                                .end = first + count,
                                .factor = m->classes.times[c] * g->unit_inverse[u],
                                .mass = unit_mass(g, u)};
        first += count;
    }
    memset(p->seen, 0, (size_t)g->n_coef * sizeof *p->seen);
    for (int64_t j = p->begin < p->end ? m->of[p->begin].start : first; j < first; j++) {
        p->seen[m->members[j].level]++;
    }
}

/** Members and inverted lists of all classes; threads list stretches of the classes. */
static frg_status list_classes(frg_context *ctx, const split *s, int threads, incidence *m)
{
    const fe_rows *g = s->g;
    const int64_t n = m->classes.n;
    int64_t first[MOST_PARTS + 1] = {0};
    share part[MOST_PARTS] = {{0}};
    const int parts = threads < MOST_PARTS ? threads : MOST_PARTS;
    frg_status status;
    for (int t = 0; t < parts; t++) {
        part[t] = (share){.begin = n * t / parts, .end = n * (t + 1) / parts};
        TRY_TO(done, NEW0(ctx, &part[t].seen, g->n_coef, "markers"));
        TRY_TO(done, NEW(ctx, &part[t].place, g->n_coef, "markers"));
    }
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int t = 0; t < parts; t++) {
        for (int64_t c = part[t].begin; c < part[t].end; c++) {
            const int64_t u = m->classes.unit[c];
            part[t].room += (g->unit_start[u + 1] - g->unit_start[u]) * s->n_sparse;
        }
    }
    for (int t = 0; t < parts; t++) {
        first[t + 1] = first[t] + part[t].room;
    }
    TRY_TO(done, NEW(ctx, &m->of, n, "classes"));
    TRY_TO(done, NEW(ctx, &m->members, first[parts], "class members"));
    TRY_TO(done, NEW(ctx, &m->level_start, g->n_coef + 1, "classes of levels"));
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int t = 0; t < parts; t++) {
        list_share(s, m, &part[t], first[t]);
    }
    int64_t used = 0;
    for (int64_t l = 0; l < g->n_coef; l++) {
        m->level_start[l] = used;
        for (int t = 0; t < parts; t++) {
            const int64_t count = part[t].seen[l];
            part[t].seen[l] = used;
            used += count;
        }
    }
    m->level_start[g->n_coef] = used;
    TRY_TO(done, NEW(ctx, &m->level_class, used, "classes of levels"));
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int t = 0; t < parts; t++) {
        for (int64_t c = part[t].begin; c < part[t].end; c++) {
            for (int64_t j = m->of[c].start; j < m->of[c].end; j++) {
                m->level_class[part[t].seen[m->members[j].level]++] = (int32_t)c;
            }
        }
    }
done:
    for (int t = 0; t < parts; t++) {
        DROP(ctx, &part[t].seen);
        DROP(ctx, &part[t].place);
    }
    return status;
}

/* ---- rows of S ---------------------------------------------------------------------------------- */

/** A sparse row under construction. */
typedef struct {
    int64_t *seen; /* n_coef: the row (+ 1) that last touched the level */
    double *sum;   /* n_coef */
    int32_t *list; /* n_coef: levels touched */
    int64_t count;
} accumulator;

static inline void add_entry(accumulator *a, int64_t row, int32_t level, double v)
{
    if (a->seen[level] != row + 1) {
        a->seen[level] = row + 1;
        a->sum[level] = 0;
        a->list[a->count++] = level;
    }
    a->sum[level] += v;
}

static double count_of(const incidence *m, int64_t c, int32_t level)
{
    int64_t j = m->of[c].start;
    while (m->members[j].level != level) {
        j++;
    }
    return m->members[j].count;
}

/** Joint appearance of two sparse factors in the rows of a class: + w times for each other level. */
static void add_joint(const split *s, accumulator *a, int64_t unit, double times, int32_t level)
{
    const fe_rows *g = s->g;
    for (int64_t i = g->unit_start[unit]; i < g->unit_start[unit + 1]; i++) {
        const int32_t *index = g->index + i * g->n_rest;
        int mine = -1;
        for (int q = 0; q < s->n_sparse; q++) {
            mine = index[s->sparse[q]] == level ? q : mine;
        }
        for (int q = 0; mine >= 0 && q < s->n_sparse; q++) {
            if (q != mine) {
                add_entry(a, level, index[s->sparse[q]], times * (g->weight ? g->weight[i] : 1));
            }
        }
    }
}

/** Fetches the sums of a class of the level 2 UNITS_AHEAD further, and the members of one UNITS_AHEAD further. */
static inline void fetch_classes(const incidence *m, int64_t k, int64_t end)
{
    if (k + 2 * UNITS_AHEAD < end) {
        __builtin_prefetch(&m->of[m->level_class[k + 2 * UNITS_AHEAD]], 0);
    }
    if (k + UNITS_AHEAD < end) {
        __builtin_prefetch(&m->members[m->of[m->level_class[k + UNITS_AHEAD]].start], 0);
    }
}

/** Row `level` of the sparse part: the diagonal comes first in the list. */
static void gather_row(const split *s, const incidence *m, accumulator *a, int32_t level)
{
    const int64_t all = m->level_start[m->levels]; /* the next rows' classes follow */
    a->count = 0;
    add_entry(a, level, level, 0);
    for (int64_t k = m->level_start[level]; k < m->level_start[level + 1]; k++) {
        const int64_t c = m->level_class[k];
        fetch_classes(m, k, all);
        const double mine = count_of(m, c, level), mass = m->of[c].mass;
        for (int64_t j = m->of[c].start; j < m->of[c].end; j++) {
            const member *o = &m->members[j];
            add_entry(a, level, o->level,
                      o->level == level ? m->of[c].factor * mine * (mass - mine)
                                        : -m->of[c].factor * mine * o->count);
        }
        if (s->n_sparse > 1) {
            add_joint(s, a, m->classes.unit[c], m->classes.times[c], level);
        }
    }
}

static void sort_levels(int32_t *list, int64_t n)
{
    /* shell sort: rows are short, or almost ascending already */
    for (int64_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (int64_t i = gap; i < n; i++) {
            const int32_t v = list[i];
            int64_t j = i;
            for (; j >= gap && list[j - gap] > v; j -= gap) {
                list[j] = list[j - gap];
            }
            list[j] = v;
        }
    }
}

/* ---- the border's strips ------------------------------------------------------------------------ */

/** Strip of one level: entries towards the T border levels.  Rows 0 .. n_coef-1 are the sparse levels'
 *  strips, and the border's own block is kept apart (T x T). */
typedef struct {
    double *strip; /* n_coef x T */
    double *block; /* T x T */
} border_sums;

/** The pattern of the units in hand: their small levels row by row, and as counts. */
typedef struct {
    double *t;           /* T: counts t_u */
    const int32_t *rows; /* of the unit that set it */
    int64_t n;
    double inverse; /* sum of 1 / N_u over the units that shared it */
    double *
        before; /* n_coef: sum of a strip over one small factor when the pattern was set; NULL: strips
                       are updated row by row */
} pattern;

static inline int64_t small_level(const split *s, const int32_t *index, int q)
{
    return index[s->small[q]] + s->small_offset[q];
}

/** Do the rows of unit u show the small levels of the pattern?  Weights make every unit its own. */
static inline bool same_pattern(const split *s, int64_t u, const pattern *p)
{
    const fe_rows *g = s->g;
    const int64_t begin = g->unit_start[u], n = g->unit_start[u + 1] - begin;
    const int32_t *index = g->index + begin * g->n_rest;
    if (n != p->n || g->weight) {
        return false;
    }
    int32_t differ = 0;
    for (int q = 0; q < s->n_small; q++) {
        for (int64_t i = s->small[q]; i < n * g->n_rest; i += g->n_rest) {
            differ |= p->rows[i] ^ index[i];
        }
    }
    return differ == 0;
}

static void set_pattern(const split *s, int64_t u, pattern *p)
{
    const fe_rows *g = s->g;
    p->rows = g->index + g->unit_start[u] * g->n_rest;
    p->n = g->unit_start[u + 1] - g->unit_start[u];
    p->inverse = 0;
    memset(p->t, 0, (size_t)s->width * sizeof *p->t);
    for (int64_t i = 0; i < p->n; i++) {
        for (int q = 0; q < s->n_small; q++) {
            p->t[small_level(s, p->rows + i * g->n_rest, q)] +=
                g->weight ? g->weight[g->unit_start[u] + i] : 1;
        }
    }
}

/** Sum of strip l over the levels of the first small factor: in the course of a pattern it grows by the
 *  rows of level l. */
static double strip_rows(const split *s, const border_sums *b, int64_t l)
{
    const double *row = b->strip + l * s->width;
    double sum = 0;
    for (int64_t j = 0; j < rest_levels(s->g, s->small[0]); j++) {
        sum += row[j];
    }
    return sum;
}

/** Takes - sum_u t_u t_u' / N_u into the block and - sum_u c_u t_u' / N_u into the strips.  Units of one
 *  pattern have equal N_u, so that the latter is - (rows of the level) t' / N_u. */
static void close_pattern(const split *s, pattern *p, border_sums *b)
{
    const int64_t t = s->width;
    for (int64_t i = 0; i < t; i++) {
        for (int64_t j = 0; p->t[i] != 0 && j < t; j++) {
            b->block[i * t + j] -= p->inverse * p->t[i] * p->t[j];
        }
    }
    for (int64_t l = 0; p->before && p->n > 0 && l < s->g->n_coef; l++) {
        const double rows = rint(strip_rows(s, b, l) - p->before[l]);
        if (rows == 0) {
            continue;
        }
        const double c = rows / (double)p->n;
        for (int64_t j = 0; j < t; j++) {
            b->strip[l * t + j] -= c * p->t[j];
        }
        p->before[l] = strip_rows(s, b, l);
    }
}

/** Are there so few changes of pattern over the units that each may take a pass over the strips? */
static bool few_patterns(const split *s, int64_t first, int64_t last)
{
    const fe_rows *g = s->g;
    const int64_t most = (g->unit_start[last] - g->unit_start[first]) / g->n_coef;
    pattern p = {.n = -1};
    int64_t count = 0;
    for (int64_t u = first; u < last && count <= most; u++) {
        if (!same_pattern(s, u, &p)) {
            p.rows = g->index + g->unit_start[u] * g->n_rest;
            p.n = g->unit_start[u + 1] - g->unit_start[u];
            count++;
        }
    }
    return count <= most;
}

/** One row of unit u: + w where a small level meets another level, - w t_u / N_u in the strips. */
static void border_row(const split *s, const int32_t *index, double w, double part,
                       const pattern *p, border_sums *b)
{
    const int64_t t = s->width;
    for (int q = 0; q < s->n_sparse; q++) {
        const int32_t l = index[s->sparse[q]];
        double *restrict row = b->strip + l * t;
        for (int64_t j = 0; !p->before && j < t; j++) {
            row[j] -= part * p->t[j];
        }
        for (int k = 0; k < s->n_small; k++) {
            row[small_level(s, index, k)] += w;
        }
    }
    for (int q = 0; q < s->n_small; q++) {
        for (int k = 0; k < s->n_small; k++) {
            if (k != q) {
                b->block[small_level(s, index, q) * t + small_level(s, index, k)] += w;
            }
        }
    }
}

/** The same for all rows of a unit where patterns are few and there is one small factor. */
static inline void count_unit(const split *s, int64_t u, border_sums *b)
{
    const fe_rows *g = s->g;
    double *restrict strip = b->strip + s->small_offset[0];
    const int64_t rests = g->n_rest, t = s->width;
    for (int q = 0; q < s->n_sparse; q++) {
        const int32_t *index = g->index + g->unit_start[u] * rests;
        const int sparse = s->sparse[q], small = s->small[0];
        for (int64_t i = g->unit_start[u]; i < g->unit_start[u + 1]; i++, index += rests) {
            __builtin_prefetch(strip + index[FE_ROWS_AHEAD * rests + sparse] * t +
                                   index[FE_ROWS_AHEAD * rests + small],
                               1);
            strip[index[sparse] * t + index[small]] += 1;
        }
    }
}

/** Returns whether patterns are few; if only_few, nothing is done where they are not. */
static bool border_of_units(const split *s, int64_t first, int64_t last, bool only_few, double *t,
                            double *before, border_sums *b)
{
    const fe_rows *g = s->g;
    const bool few = few_patterns(s, first, last);
    if (only_few && !few) {
        return false;
    }
    pattern p = {.t = t, .n = -1, .before = few ? before : NULL};
    for (int64_t u = first; u < last; u++) {
        if (!same_pattern(s, u, &p)) {
            close_pattern(s, &p, b);
            set_pattern(s, u, &p);
        }
        p.inverse += g->unit_inverse[u];
        if (few && s->n_small == 1) {
            count_unit(s, u, b);
            continue;
        }
        for (int64_t i = g->unit_start[u]; i < g->unit_start[u + 1]; i++) {
            const double w = g->weight ? g->weight[i] : 1;
            border_row(s, g->index + i * g->n_rest, w, w * g->unit_inverse[u], &p, b);
        }
    }
    close_pattern(s, &p, b);
    return few;
}

/** Strips and block of all units: a copy a chunk where copies are small, added in chunk order.  only_few: the
 *  strips are NULL where some chunk has many patterns. */
static frg_status gather_border(frg_context *ctx, const split *s, bool only_few, border_sums *out)
{
    const fe_rows *g = s->g;
    const int64_t t = s->width, strip = g->n_coef * t, size = strip + t * t;
    const size_t bytes = frgi_mul((size_t)(size * g->n_chunks), sizeof(double));
    const int64_t copies = bytes <= MAX_STRIP_COPIES_BYTES ? g->n_chunks : 1;
    double *sums = NULL, *pattern_room = NULL;
    bool *few = NULL, all_few = true;
    frg_status status;
    *out = (border_sums){0};
    TRY_TO(done, NEW(ctx, &few, copies, "border patterns"));
    TRY_TO(done, NEW0(ctx, &sums, size * copies, "border of the Schur complement"));
    TRY_TO(done, NEW0(ctx, &pattern_room, (t + g->n_coef) * copies, "border patterns"));
#pragma omp parallel for num_threads(frg_threads(ctx)) schedule(static, 1) if (copies > 1)
    for (int64_t k = 0; k < copies; k++) {
        border_sums b = {sums + k * size, sums + k * size + strip};
        double *room = pattern_room + k * (t + g->n_coef);
        few[k] = border_of_units(s, copies > 1 ? g->chunk_unit[k] : 0,
                                 copies > 1 ? g->chunk_unit[k + 1] : g->n_units, only_few, room,
                                 room + t, &b);
    }
    for (int64_t k = 0; k < copies; k++) {
        all_few = all_few && few[k];
    }
    if (only_few && !all_few) {
        DROP(ctx, &sums);
        goto done;
    }
    for (int64_t k = 1; k < copies; k++) {
        for (int64_t j = 0; j < size; j++) {
            sums[j] += sums[k * size + j];
        }
    }
    for (int q = 0; q < s->n_small; q++) { /* a small level meets itself on each of its rows */
        for (int64_t l = 0; l < rest_levels(g, s->small[q]); l++) {
            const int64_t level = rest_first(g, s->small[q]) + l,
                          place = level + s->small_offset[q];
            sums[strip + place * t + place] += g->level_weight[level];
        }
    }
    *out = (border_sums){sums, sums + strip};
done:
    if (status < 0) {
        DROP(ctx, &sums);
    }
    DROP(ctx, &pattern_room);
    DROP(ctx, &few);
    return status;
}

/* ---- assembly ----------------------------------------------------------------------------------- */

/** One thread's accumulators. */
static frg_status accumulator_create(frg_context *ctx, accumulator *a, int64_t n)
{
    TRY(NEW0(ctx, &a->seen, n, "row accumulator"));
    TRY(NEW(ctx, &a->sum, n, "row accumulator"));
    TRY(NEW(ctx, &a->list, n, "row accumulator"));
    return FRG_OK;
}

static void accumulator_destroy(frg_context *ctx, accumulator *a)
{
    DROP(ctx, &a->seen);
    DROP(ctx, &a->sum);
    DROP(ctx, &a->list);
}

/** Where a border coefficient sits in the strip, or -1 for a sparse one. */
static int64_t strip_place(const split *s, int32_t level)
{
    for (int q = 0; q < s->n_small; q++) {
        const int64_t first = rest_first(s->g, s->small[q]);
        if (level >= first && level < first + rest_levels(s->g, s->small[q])) {
            return level + s->small_offset[q];
        }
    }
    return -1;
}

/** Row `level` of S into a: sparse part, then the border; or the dense row of a border level. */
static void whole_row(const split *s, const incidence *m, const border_sums *b, const fe_schur *out,
                      accumulator *a, int32_t level)
{
    const int64_t place = s->width > 0 ? strip_place(s, level) : -1, t = s->width;
    if (place < 0) {
        gather_row(s, m, a, level);
        for (int64_t j = 0; j < t; j++) {
            add_entry(a, level, out->border[j], b->strip[level * t + j]);
        }
        return;
    }
    a->count = 0;
    for (int64_t l = 0; l < s->g->n_coef; l++) {
        const int64_t other = strip_place(s, (int32_t)l);
        add_entry(a, level, (int32_t)l,
                  other < 0 ? b->strip[l * t + place] : b->block[place * t + other]);
    }
}

/** Differences of counts that cancel leave rounding: it is taken for the 0 that it stands for, so that a
 *  null pivot is seen as one. */
static void clean_row(const fe_rows *g, accumulator *a, int32_t level)
{
    const double mine = g->level_weight[level];
    for (int64_t j = 0; j < a->count; j++) {
        const int32_t o = a->list[j];
        const double other = g->level_weight[o], scale = mine < other ? mine : other;
        if (fabs(a->sum[o]) <= (o == level ? 1e-13 : 1e-14) * scale) {
            a->sum[o] = 0;
        }
    }
}

/** Entries that row l has at most: itself, the border, the other members of its classes. */
static double bound_row(const split *s, const incidence *m, int64_t l)
{
    const double n = (double)s->g->n_coef;
    double length = 1 + (double)s->width;
    for (int64_t k = m->level_start[l]; k < m->level_start[l + 1]; k++) {
        const int64_t c = m->level_class[k];
        length += (double)(m->of[c].end - m->of[c].start - 1);
    }
    return length > n || (s->width > 0 && strip_place(s, (int32_t)l) >= 0) ? n : length;
}

/** Bounds of the rows' lengths, summed: bound[l] is where row l may begin. */
static double bound_rows(const split *s, const incidence *m, int threads, int64_t *bound)
{
    const int64_t n = s->g->n_coef;
    double total = 0;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t l = 0; l < n; l++) {
        bound[l] = (int64_t)bound_row(s, m, l); /* at most n */
    }
    for (int64_t l = 0; l <= n; l++) {
        const double length = l < n ? (double)bound[l] : 0;
        bound[l] = total < 9e18 ? (int64_t)total : INT64_MAX;
        total += length;
    }
    return total;
}

/** Rows in parallel, each into its bound; then they are moved together. */
static frg_status write_rows(frg_context *ctx, const split *s, const incidence *m,
                             const border_sums *b, int threads, fe_schur *out)
{
    accumulator *a = NULL;
    int64_t *length = NULL;
    frg_status status;
    TRY_TO(done, NEW0(ctx, &a, threads, "row accumulators"));
    for (int t = 0; t < threads; t++) {
        TRY_TO(done, accumulator_create(ctx, &a[t], out->n));
    }
    TRY_TO(done, NEW(ctx, &length, out->n, "row lengths"));
    TRY_TO(done, NEW(ctx, &out->columns, out->starts[out->n], "Schur complement"));
    TRY_TO(done, NEW(ctx, &out->values, out->starts[out->n], "Schur complement"));
    TRY_TO(done, NEW0(ctx, &out->inverse_diag, out->n, "Schur complement"));
#pragma omp parallel for num_threads(threads) schedule(dynamic, 64) if (threads > 1)
    for (int64_t l = 0; l < out->n; l++) {
        accumulator *mine = &a[omp_get_thread_num()];
        whole_row(s, m, b, out, mine, (int32_t)l);
        clean_row(s->g, mine, (int32_t)l);
        sort_levels(mine->list, mine->count);
        for (int64_t j = 0; j < mine->count; j++) {
            out->columns[out->starts[l] + j] = mine->list[j];
            out->values[out->starts[l] + j] = mine->sum[mine->list[j]];
        }
        length[l] = mine->count;
        out->inverse_diag[l] = mine->sum[l] > 0 ? 1 / mine->sum[l] : 0;
    }
    int64_t used = 0;
    for (int64_t l = 0; l < out->n; l++) {
        const int64_t from = out->starts[l];
        if (from > used) {
            memmove(out->columns + used, out->columns + from,
                    (size_t)length[l] * sizeof *out->columns);
            memmove(out->values + used, out->values + from,
                    (size_t)length[l] * sizeof *out->values);
        }
        out->starts[l] = used;
        used += length[l];
    }
    out->starts[out->n] = used;
done:
    for (int t = 0; a && t < threads; t++) {
        accumulator_destroy(ctx, &a[t]);
    }
    DROP(ctx, &a);
    DROP(ctx, &length);
    return status;
}

static frg_status list_border(frg_context *ctx, const split *s, int32_t **out)
{
    int32_t *border;
    TRY(NEW(ctx, &border, s->width, "border"));
    for (int q = 0; q < s->n_small; q++) {
        for (int64_t l = 0; l < rest_levels(s->g, s->small[q]); l++) {
            const int64_t level = rest_first(s->g, s->small[q]) + l;
            border[level + s->small_offset[q]] = (int32_t)level;
        }
    }
    *out = border;
    return FRG_OK;
}

frg_status frgi_fe_schur_border(const fe_rows *g, frg_context *ctx, int *large, int64_t *width,
                                int32_t **level, double **strip, double **block)
{
    const split s = split_factors(g);
    *width = 0;
    if (s.n_sparse != 1 || s.n_small == 0 || g->weight) {
        return FRG_OK;
    }
    border_sums b;
    TRY(list_border(ctx, &s, level));
    TRY(gather_border(ctx, &s, true, &b));
    if (!b.strip) {
        return FRG_OK;
    }
    *large = s.sparse[0];
    *strip = b.strip;
    *block = b.block;
    *width = s.width;
    return FRG_OK;
}

frg_status frgi_fe_schur_create(fe_schur *out, frg_context *ctx, const fe_rows *g, size_t byte_cap)
{
    const split s = split_factors(g);
    incidence m = {0};
    border_sums b = {0};
    frg_status status;
    out->n = g->n_coef;
    /* arrays of all levels a thread, as long as they do not outweigh the rows */
    const int64_t worth = g->n_chunks > 1 ? 1 + g->n / (out->n + 1) : 1;
    const int threads = worth < frg_threads(ctx) ? (int)worth : frg_threads(ctx);
    TRY_TO(done, merge_units(ctx, &s, threads, &m.classes));
    m.levels = g->n_coef;
    TRY_TO(done, list_classes(ctx, &s, threads, &m));
    out->classes = m.classes.n;
    TRY_TO(done, NEW(ctx, &out->starts, out->n + 1, "Schur complement"));
    const double bytes = 12 * bound_rows(&s, &m, threads, out->starts);
    if (bytes > (double)byte_cap) {
        status = frgi_fail(ctx, E_TOO_BIG, __FILE__, __LINE__,
                           "the Schur complement could take %.3g bytes, %zu are allowed", bytes,
                           byte_cap);
        goto done;
    }
    out->n_border = s.width;
    TRY_TO(done, list_border(ctx, &s, &out->border));
    if (s.width > 0) {
        TRY_TO(done, gather_border(ctx, &s, false, &b));
    }
    TRY_TO(done, write_rows(ctx, &s, &m, &b, threads, out));
done:
    DROP(ctx, &b.strip);
    incidence_destroy(ctx, &m);
    if (status < 0) {
        frgi_fe_schur_destroy(out, ctx);
    }
    return status;
}

void frgi_fe_schur_destroy(fe_schur *s, frg_context *ctx)
{
    DROP(ctx, &s->starts);
    DROP(ctx, &s->columns);
    DROP(ctx, &s->values);
    DROP(ctx, &s->inverse_diag);
    DROP(ctx, &s->border);
    *s = (fe_schur){0};
}

size_t frgi_fe_schur_bytes(const fe_schur *s)
{
    return s->starts ? (size_t)(s->starts[s->n] * 12 + s->n * 16) : 0;
}
