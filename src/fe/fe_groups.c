/* fe_groups.c - see fe_groups.h.
 *
 * Equal eliminated levels are found by a hash of their rows in open addressing; the eliminated
 * levels that are the first of their groups, in ascending order, do not depend on the number of
 * threads.  Threads list stretches of the groups and write each level's list from where the
 * threads before them end, so that lists ascend for any number of them.
 */
#include "fe/fe_groups.h"

#include "fe/fe_runs.h"

#include <omp.h>
#include <string.h>

enum {
    SAMPLE = 512,
    MAX_THREADS = 16 /* that merge; more would read the hashes more often than they save */
};

/* ---- hashing an eliminated level's rows ------------------------------------------------------ */

/** Two independent 64-bit sums over the rows: equal for equal multisets of rows; for different ones
 *  with probability 2^-128 a pair, which no number of eliminated levels that fits a memory makes
 *  likely. */
typedef struct {
    uint64_t a, b;
    uint32_t rows;
    bool alone; /* all rows have the same sparse unknown, and there is one sparse factor */
} elim_hash;

/** Finaliser of MurmurHash3 with other constants (Stafford's variant 13). */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static inline bool stands_alone(const fe_split *s, const fe_rows *g, int64_t begin, int64_t end)
{
    const int32_t *index = g->index + s->sparse[0];
    const int64_t remaining = g->n_remaining;
    int64_t i = begin + 1;
    while (s->n_sparse == 1 && i < end && index[i * remaining] == index[begin * remaining]) {
        i++;
    }
    return s->n_sparse == 1 && i >= end;
}

static elim_hash hash_elim(const fe_split *s, const fe_rows *g, int64_t u)
{
    const int64_t begin = g->elim_start[u], end = g->elim_start[u + 1];
    elim_hash h = {.rows = (uint32_t)(end - begin), .alone = stands_alone(s, g, begin, end)};
    for (int64_t i = begin; !h.alone && i < end; i++) {
        const int32_t *index = g->index + i * g->n_remaining;
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

/** Distinct values of a sparse unknown among the eliminated level's rows, for short eliminated
 *  levels; rows for long ones. */
static double distinct_estimate(const fe_split *s, const fe_rows *g, int64_t u)
{
    const int64_t begin = g->elim_start[u], rows = g->elim_start[u + 1] - begin;
    if (rows > 64) {
        return (double)rows;
    }
    int distinct = 0;
    for (int64_t i = 0; i < rows; i++) {
        for (int q = 0; q < s->n_sparse; q++) {
            const int32_t l = g->index[(begin + i) * g->n_remaining + s->sparse[q]];
            int seen = 0;
            for (int64_t j = 0; j < i && !seen; j++) {
                seen = g->index[(begin + j) * g->n_remaining + s->sparse[q]] == l;
            }
            distinct += !seen;
        }
    }
    return distinct;
}

/** A sample of the eliminated levels, in ascending order of them. */
typedef struct {
    int64_t elim;
    int draw;        /* its place in the sequence of draws */
    double distinct; /* 0: the level contributes nothing */
} sampled;

static int compare_sampled(const void *a, const void *b, const void *user)
{
    (void)user;
    const sampled *x = a, *y = b;
    return x->elim != y->elim ? (x->elim < y->elim ? -1 : 1) : x->draw - y->draw;
}

static int64_t draw_sample(const fe_rows *g, uint64_t seed, sampled *at)
{
    const int64_t sample = g->n_elim < SAMPLE ? g->n_elim : SAMPLE;
    for (int64_t i = 0; i < sample; i++) {
        double v[2];
        frgi_uniforms(seed, 0, (uint64_t)i, 0, v);
        at[i] = (sampled){.elim = i, .draw = (int)i};
        at[i].elim = sample == g->n_elim ? i : (int64_t)(v[0] * (double)g->n_elim);
    }
    if (sample < g->n_elim) {
        frgi_sort(at, sample, sizeof *at, compare_sampled, NULL);
    }
    return sample;
}

/** Reads the sample; *contributing and *repeats: levels with sparse unknowns, and pairs of them
 *  with equal rows. */
static frg_status read_sample(const fe_split *s, frg_context *ctx, int64_t sample, sampled *at,
                              int *contributing, int *repeats)
{
    elim_hash seen[SAMPLE];
    int64_t i = 0;
    *contributing = *repeats = 0;
    fe_runs runs = frgi_fe_runs(s->g, ctx);
    for (const fe_rows *w; i < sample && (w = frgi_fe_runs_next(&runs));) {
        for (; i < sample && at[i].elim < w->at.elim + w->n_elim; i++) {
            const int64_t u = at[i].elim - w->at.elim;
            const elim_hash h = hash_elim(s, w, u);
            if (h.alone) {
                continue;
            }
            for (int j = 0; j < *contributing; j++) {
                *repeats += seen[j].a == h.a && seen[j].b == h.b;
            }
            seen[(*contributing)++] = h;
            at[i].distinct = distinct_estimate(s, w, u);
        }
    }
    return frgi_fe_runs_close(&runs);
}

frg_status frgi_fe_groups_estimate(const fe_rows *g, frg_context *ctx, double *products)
{
    const fe_split s = frgi_fe_split_factors(g);
    sampled at[SAMPLE];
    double squares[SAMPLE], sum = 0;
    int contributing, repeats;
    const int64_t sample = draw_sample(g, frg_seed(ctx), at);
    const frg_status status = read_sample(&s, ctx, sample, at, &contributing, &repeats);
    *products = 0;
    if (status != FRG_OK || contributing == 0) {
        return status;
    }
    for (int64_t i = 0; i < sample; i++) {
        squares[at[i].draw] = at[i].distinct * at[i].distinct;
    }
    for (int64_t i = 0; i < sample; i++) {
        sum += squares[i];
    }
    const double levels = (double)g->n_elim * contributing / (double)sample;
    /* m draws from k equal groups show m^2 / 2k equal pairs */
    const double groups = repeats > 0 ? 0.5 * contributing * contributing / repeats : levels;
    *products = sum / contributing * (groups < levels ? groups : levels);
    return FRG_OK;
}

/* ---- merging eliminated levels into groups -------------------------------------------------- */

typedef struct {
    uint64_t a;   /* of the group's eliminated levels; b is looked up where a is equal */
    int64_t elim; /* the first of the group, -1: free */
} slot;

/** Which of `n_threads` threads owns a group: the leading digits of its hash say. */
static inline int thread_of(const elim_hash *h, int n_threads)
{
    return h->alone ? -1 : (int)((h->a >> 32) * (uint64_t)n_threads >> 32);
}

/** times[u] <- the eliminated levels whose rows are those of u, where u is the first of them, for
 *  the groups of one thread.  The table has `capacity` slots, a power of two. */
static void merge_share(const elim_hash *hash, int64_t n_elim, int thread, int n_threads,
                        slot *table, int64_t capacity, uint32_t *times)
{
    const uint64_t mask = (uint64_t)(capacity - 1);
    for (int64_t i = 0; i < capacity; i++) {
        table[i].elim = -1;
    }
    for (int64_t u = 0; u < n_elim; u++) {
        if (u + FE_ELIM_AHEAD < n_elim &&
            thread_of(&hash[u + FE_ELIM_AHEAD], n_threads) == thread) {
            __builtin_prefetch(&table[hash[u + FE_ELIM_AHEAD].a & mask], 1);
        }
        if (thread_of(&hash[u], n_threads) != thread) {
            continue;
        }
        uint64_t i = hash[u].a & mask;
        while (table[i].elim >= 0 &&
               (table[i].a != hash[u].a || hash[table[i].elim].b != hash[u].b)) {
            i = (i + 1) & mask;
        }
        if (table[i].elim < 0) {
            table[i] = (slot){hash[u].a, u};
        }
        times[table[i].elim]++;
    }
}

/** hash[u] of all eliminated levels of g, and how many of them each thread owns more. */
static void hash_levels(const fe_split *s, const fe_rows *g, int n_threads, elim_hash *hash,
                        int64_t *counts)
{
    int64_t counted[MAX_THREADS][MAX_THREADS] = {
        {0}}; /* by the thread that hashes and the one that merges */
#pragma omp parallel num_threads(n_threads)
    {
        int64_t mine[MAX_THREADS] = {0};
#pragma omp for schedule(static)
        for (int64_t u = 0; u < g->n_elim; u++) {
            hash[u] = hash_elim(s, g, u);
            if (!hash[u].alone) {
                mine[thread_of(&hash[u], n_threads)]++;
            }
        }
        memcpy(counted[omp_get_thread_num()], mine, sizeof mine);
    }
    for (int t = 0; t < n_threads; t++) {
        for (int p = 0; p < n_threads; p++) {
            counts[p] += counted[t][p];
        }
    }
}

static frg_status hash_all(frg_context *ctx, const fe_split *s, int n_threads, elim_hash *hash,
                           int64_t *counts)
{
    fe_runs runs = frgi_fe_runs(s->g, ctx);
    for (const fe_rows *w; (w = frgi_fe_runs_next(&runs));) {
        hash_levels(s, w, n_threads, hash + w->at.elim, counts);
    }
    return frgi_fe_runs_close(&runs);
}

/** Threads find groups apart; the eliminated levels that are the first of their groups do not
 *  depend on their number. */
static frg_status merge_levels(frg_context *ctx, const fe_split *s, int threads, fe_groups *c)
{
    const int64_t n_elim = s->g->n_elim;
    const int n_threads = threads < MAX_THREADS ? threads : MAX_THREADS;
    int64_t counts[MAX_THREADS] = {0}, capacity[MAX_THREADS], first[MAX_THREADS], slots = 0;
    elim_hash *hash = NULL;
    slot *table = NULL;
    uint32_t *times = NULL;
    frg_status status;
    TRY_TO(done, NEW(ctx, &hash, n_elim, "hashes of the eliminated levels"));
    TRY_TO(done, NEW0(ctx, &times, n_elim, "groups of eliminated levels"));
    int64_t contributing = 0;
    status = hash_all(ctx, s, n_threads, hash, counts);
    if (status != FRG_OK) {
        goto done;
    }
    for (int p = 0; p < n_threads; p++) {
        capacity[p] = 16;
        while (capacity[p] < 2 * counts[p]) {
            capacity[p] *= 2;
        }
        first[p] = slots;
        slots += capacity[p];
        contributing += counts[p];
    }
    TRY_TO(done, NEW(ctx, &table, slots, "groups of eliminated levels"));
    TRY_TO(done, NEW(ctx, &c->elim, contributing + 1, "groups of eliminated levels"));
    TRY_TO(done, NEW(ctx, &c->times, contributing + 1, "groups of eliminated levels"));
    TRY_TO(done, NEW(ctx, &c->rows, contributing + 1, "groups of eliminated levels"));
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
    for (int p = 0; p < n_threads; p++) {
        merge_share(hash, n_elim, p, n_threads, table + first[p], capacity[p], times);
    }
    for (int64_t u = 0; u < n_elim && c->n < contributing;
         u++) { /* without a jump that depends on times */
        c->elim[c->n] = u;
        c->times[c->n] = times[u];
        c->rows[c->n] = hash[u].rows;
        c->n += times[u] > 0;
    }
done:
    DROP(ctx, &hash);
    DROP(ctx, &table);
    DROP(ctx, &times);
    return status;
}

/* ---- the groups' counts, and the inverted lists ---------------------------------------------- */

/** Members of one group, in order of first appearance; place[level] marks those seen (group +
 *  1). */
static int64_t list_members(const fe_split *s, const fe_rows *g, int64_t elim, int64_t tag,
                            int64_t *seen, int32_t *place, fe_member *out)
{
    int64_t count = 0;
    for (int64_t i = g->elim_start[elim]; i < g->elim_start[elim + 1]; i++) {
        const double w = g->weight ? g->weight[i] : 1;
        for (int q = 0; q < s->n_sparse; q++) {
            const int32_t l = g->index[i * g->n_remaining + s->sparse[q]];
            if (seen[l] != tag) {
                seen[l] = tag;
                place[l] = (int32_t)count;
                out[count++] = (fe_member){l, 0};
            }
            out[place[l]].count += w;
        }
    }
    return count;
}

/** N_u, added in the order in which a level's count is: a level on all rows has exactly this
 *  count. */
static double elim_weight(const fe_rows *g, int64_t elim)
{
    double total_weight = 0;
    for (int64_t i = g->elim_start[elim]; i < g->elim_start[elim + 1]; i++) {
        total_weight += g->weight ? g->weight[i] : 1;
    }
    return total_weight;
}

/** The groups that one thread lists. */
typedef struct {
    int64_t begin, end;
    int64_t next;     /* the first that is not listed yet */
    int64_t first;    /* where its members go */
    int64_t capacity; /* members at most */
    int64_t *seen;    /* n_reduced: markers; then where its groups go in each level's list */
    int32_t *place;   /* n_reduced */
} share;

/** Copies the rows of group c. */
static void keep_rows(const fe_rows *g, int64_t elim, int64_t c, fe_groups *m)
{
    const int64_t from = g->elim_start[elim], to = m->kept_start[c];
    memcpy(m->kept_index + to * g->n_remaining, g->index + from * g->n_remaining,
           m->rows[c] * (size_t)g->n_remaining * sizeof *g->index);
    if (g->weight) {
        memcpy(m->kept_weight + to, g->weight + from, m->rows[c] * sizeof *g->weight);
    }
}

/** Members of those groups of the share whose first eliminated levels lie in the window. */
static void list_share(const fe_split *s, const fe_rows *w, fe_groups *m, share *p)
{
    const fe_rows *const g = w;
    const int64_t base = w->at.elim, end = base + g->n_elim;
    int64_t c = p->next, first = p->first;
    for (; c < p->end && m->elim[c] < end; c++) {
        const int64_t u = m->elim[c] - base;
        if (c + 2 * FE_ELIM_AHEAD < p->end && m->elim[c + 2 * FE_ELIM_AHEAD] < end) {
            /* the first members of successive groups are some levels apart */
            const int64_t soon = m->elim[c + FE_ELIM_AHEAD] - base,
                          later = m->elim[c + 2 * FE_ELIM_AHEAD] - base;
            __builtin_prefetch(&g->index[g->elim_start[soon] * g->n_remaining], 0);
            __builtin_prefetch(&g->elim_start[later], 0);
            __builtin_prefetch(&g->elim_inverse[later], 0);
        }
        const int64_t count = list_members(s, g, u, c + 1, p->seen, p->place, m->members + first);
        m->of[c] = (fe_group_sums){.start = first,
                                   .end = first + count,
                                   .factor = m->times[c] * g->elim_inverse[u],
                                   .total_weight = elim_weight(g, u)};
        first += count;
        if (m->kept_start) {
            keep_rows(g, u, c, m);
        }
    }
    p->next = c;
    p->first = first;
}

/** seen[l] <- how many of the share's groups have level l. */
static void count_share(const fe_split *s, const fe_groups *m, const share *p)
{
    memset(p->seen, 0, (size_t)s->g->n_reduced * sizeof *p->seen);
    for (int64_t j = p->begin < p->end ? m->of[p->begin].start : p->first; j < p->first; j++) {
        p->seen[m->members[j].level]++;
    }
}

/** Room for the rows of the groups, where these are read once more. */
static frg_status keep_groups(frg_context *ctx, const fe_split *s, fe_groups *m)
{
    if (!s->g->source || s->n_sparse <= 1) {
        return FRG_OK;
    }
    int64_t rows = 0;
    TRY(NEW(ctx, &m->kept_start, m->n, "rows of the groups"));
    for (int64_t c = 0; c < m->n; c++) {
        m->kept_start[c] = rows;
        rows += m->rows[c];
    }
    TRY(NEW(ctx, &m->kept_index, rows * s->g->n_remaining, "rows of the groups"));
    if (s->g->weighted) {
        TRY(NEW(ctx, &m->kept_weight, rows, "rows of the groups"));
    }
    return FRG_OK;
}

/** Members of all groups, window after window. */
static frg_status list_shares(frg_context *ctx, const fe_split *s, fe_groups *m, int n_threads,
                              share *work)
{
    fe_runs runs = frgi_fe_runs(s->g, ctx);
    for (const fe_rows *w; (w = frgi_fe_runs_next(&runs));) {
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
        for (int t = 0; t < n_threads; t++) {
            list_share(s, w, m, &work[t]);
        }
    }
    return frgi_fe_runs_close(&runs);
}

/** Members and inverted lists of all groups; threads list stretches of the groups. */
static frg_status list_groups(frg_context *ctx, const fe_split *s, int threads, fe_groups *m)
{
    const fe_rows *g = s->g;
    const int64_t n = m->n;
    int64_t first[MAX_THREADS + 1] = {0};
    share work[MAX_THREADS] = {{0}};
    const int n_threads = threads < MAX_THREADS ? threads : MAX_THREADS;
    frg_status status;
    for (int t = 0; t < n_threads; t++) {
        work[t] = (share){.begin = n * t / n_threads, .end = n * (t + 1) / n_threads};
        work[t].next = work[t].begin;
        TRY_TO(done, NEW0(ctx, &work[t].seen, g->n_reduced, "markers"));
        TRY_TO(done, NEW(ctx, &work[t].place, g->n_reduced, "markers"));
    }
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
    for (int t = 0; t < n_threads; t++) {
        for (int64_t c = work[t].begin; c < work[t].end; c++) {
            work[t].capacity += (int64_t)m->rows[c] * s->n_sparse;
        }
    }
    for (int t = 0; t < n_threads; t++) {
        work[t].first = first[t];
        first[t + 1] = first[t] + work[t].capacity;
    }
    TRY_TO(done, NEW(ctx, &m->of, n, "groups"));
    TRY_TO(done, NEW(ctx, &m->members, first[n_threads], "group members"));
    TRY_TO(done, NEW(ctx, &m->level_start, g->n_reduced + 1, "groups of levels"));
    TRY_TO(done, keep_groups(ctx, s, m));
    status = list_shares(ctx, s, m, n_threads, work);
    if (status != FRG_OK) {
        goto done;
    }
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
    for (int t = 0; t < n_threads; t++) {
        count_share(s, m, &work[t]);
    }
    int64_t used = 0;
    for (int64_t l = 0; l < g->n_reduced; l++) {
        m->level_start[l] = used;
        for (int t = 0; t < n_threads; t++) {
            const int64_t count = work[t].seen[l];
            work[t].seen[l] = used;
            used += count;
        }
    }
    m->level_start[g->n_reduced] = used;
    TRY_TO(done, NEW(ctx, &m->level_group, used, "groups of levels"));
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
    for (int t = 0; t < n_threads; t++) {
        for (int64_t c = work[t].begin; c < work[t].end; c++) {
            for (int64_t j = m->of[c].start; j < m->of[c].end; j++) {
                m->level_group[work[t].seen[m->members[j].level]++] = (int32_t)c;
            }
        }
    }
done:
    for (int t = 0; t < n_threads; t++) {
        DROP(ctx, &work[t].seen);
        DROP(ctx, &work[t].place);
    }
    return status;
}

frg_status frgi_fe_groups_create(fe_groups *m, frg_context *ctx, const fe_split *s, int threads)
{
    m->levels = s->g->n_reduced;
    const frg_status status = merge_levels(ctx, s, threads, m);
    return status == FRG_OK ? list_groups(ctx, s, threads, m) : status;
}

void frgi_fe_groups_destroy(fe_groups *m, frg_context *ctx)
{
    DROP(ctx, &m->elim);
    DROP(ctx, &m->times);
    DROP(ctx, &m->rows);
    DROP(ctx, &m->kept_start);
    DROP(ctx, &m->kept_index);
    DROP(ctx, &m->kept_weight);
    DROP(ctx, &m->of);
    DROP(ctx, &m->members);
    DROP(ctx, &m->level_start);
    DROP(ctx, &m->level_group);
}
