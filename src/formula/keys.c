/* keys.c - dense codes: tables over small ranges, a hash table for the rest.
 *
 * Every key is first turned into 64 bits: an integer (also a whole number stored as double) as
 * itself, any other double as its bits, text and booleans as the code they have.  A table over
 * [least, greatest] serves when it is at most RANGE_FACTOR n long; it costs one pass for the range
 * and one for the codes.
 */
#include "formula/keys.h"

#include <math.h>
#include <string.h>

#include "formula/program.h"

enum { CHUNK = 1 << 14, SLOTS = 1024, RANGE_FACTOR = 4, RANGE_ALWAYS = 4096 };

typedef struct {
    int64_t least, greatest;
    bool whole; /* every key is an integer */
    bool finite;
    bool rounded; /* a double of 2^53 or more, where neighbours round to one value */
} range;

/** A pass along the keys of `count` columns. */
static void pass_begins(frg_context *ctx, int count, int64_t n)
{
    frgi_pass_begins(ctx, "table", "keys", n * count * (int64_t)sizeof(int64_t));
}

/** Reported CHUNK by CHUNK: the first SLOTS of one are done. */
static void did_slots(frg_context *ctx, int64_t begin)
{
    if (begin % CHUNK == 0) {
        frgi_pass_did(ctx, CHUNK * (int64_t)sizeof(int64_t));
    }
}

/** Keys begin .. begin + n - 1 as 64 bits; whole doubles as integers where `whole`. */
static void fetch(const frg_column *c, bool whole, const int64_t *rows, int64_t begin, int64_t n,
                  int64_t *out)
{
    const int64_t *const at = rows ? rows + begin : NULL;
    if (c->kind == FRG_INTEGER) {
        for (ptrdiff_t i = 0; i < n; i++) {
            out[i] = c->integers[at ? at[i] : begin + i];
        }
    } else if (c->kind != FRG_NUMBER) {
        for (ptrdiff_t i = 0; i < n; i++) {
            out[i] = c->codes[at ? at[i] : begin + i];
        }
    } else {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double v = c->numbers[at ? at[i] : begin + i] + 0.0; /* -0 becomes 0 */
            if (whole) {
                out[i] = (int64_t)v;
            } else {
                memcpy(&out[i], &v, sizeof v);
            }
        }
    }
}

static range range_of_chunk(const frg_column *c, const int64_t *rows, int64_t begin, int64_t n)
{
    range r = {.least = INT64_MAX, .greatest = INT64_MIN, .whole = true, .finite = true};
    if (c->kind == FRG_NUMBER) {
        double least = INFINITY, greatest = -INFINITY;
        for (ptrdiff_t i = begin; i < begin + n; i++) {
            const double v = c->numbers[rows ? rows[i] : i];
            least = v < least ? v : least;
            greatest = v > greatest ? v : greatest;
            r.whole &= v == rint(v);
        }
        r.finite = isfinite(least) && isfinite(greatest);
        r.rounded = r.finite && (least <= -0x1p53 || greatest >= 0x1p53);
        r.whole &= least > -0x1p62 && greatest < 0x1p62;
        if (r.whole) {
            r.least = (int64_t)least;
            r.greatest = (int64_t)greatest;
        }
        return r;
    }
    int64_t keys[SLOTS];
    for (int64_t at = begin; at < begin + n; at += SLOTS) {
        const int64_t m = begin + n - at < SLOTS ? begin + n - at : SLOTS;
        fetch(c, true, rows, at, m, keys);
        for (ptrdiff_t i = 0; i < m; i++) {
            r.least = keys[i] < r.least ? keys[i] : r.least;
            r.greatest = keys[i] > r.greatest ? keys[i] : r.greatest;
        }
    }
    return r;
}

/** Least, greatest and "all of them" do not depend on the order in which the chunks come. */
static range range_of(frg_context *ctx, const frg_column *c, const int64_t *rows, int64_t n)
{
    range r = {.least = INT64_MAX, .greatest = INT64_MIN, .whole = true, .finite = true};
    if (c->kind == FRG_BOOL || c->kind == FRG_CATEGORY) {
        r.least = 0;
        r.greatest = c->kind == FRG_BOOL ? 1 : c->n_labels - 1;
        return r;
    }
    pass_begins(ctx, 1, n);
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(ctx, n))
    for (int64_t begin = 0; begin < n; begin += CHUNK) {
        const int64_t m = n - begin < CHUNK ? n - begin : CHUNK;
        const range s = range_of_chunk(c, rows, begin, m);
        frgi_pass_did(ctx, m * (int64_t)sizeof(int64_t));
#pragma omp critical(frgi_range)
        {
            r.least = s.least < r.least ? s.least : r.least;
            r.greatest = s.greatest > r.greatest ? s.greatest : r.greatest;
            r.whole &= s.whole;
            r.finite &= s.finite;
            r.rounded |= s.rounded;
        }
    }
    return r;
}

/** Codes through a table of the range, all entries -1 at the start. */
static int64_t encode_by_table(frg_context *ctx, const frg_column *c, range r, const int64_t *rows,
                               int64_t n, int32_t *table, int32_t *codes)
{
    int64_t keys[SLOTS];
    int32_t count = 0;
    memset(table, 0xff, sizeof *table * (size_t)(r.greatest - r.least + 1));
    for (int64_t begin = 0; begin < n; begin += SLOTS) {
        const int64_t m = n - begin < SLOTS ? n - begin : SLOTS;
        fetch(c, r.whole, rows, begin, m, keys);
        for (ptrdiff_t i = 0; i < m; i++) {
            int32_t *const slot = &table[keys[i] - r.least];
            if (*slot < 0) {
                *slot = count++;
            }
            codes[begin + i] = *slot;
        }
        did_slots(ctx, begin);
    }
    return count;
}

/* ---- hash table ------------------------------------------------------------------------------ */

typedef struct {
    uint64_t key;
    int32_t code; /* -1: free */
} entry;

typedef struct {
    frg_context *ctx;
    entry *entries;
    uint64_t mask;
    int64_t count;
} hash_table;

/** The finaliser of MurmurHash3. */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
    return x ^ (x >> 33);
}

static frg_status hash_resize(hash_table *h, uint64_t slots)
{
    entry *fresh;
    TRY(NEW(h->ctx, &fresh, slots, "a table of keys"));
    memset(fresh, 0xff, sizeof *fresh * slots);
    for (uint64_t i = 0; h->entries && i <= h->mask; i++) {
        if (h->entries[i].code < 0) {
            continue;
        }
        uint64_t slot = scramble(h->entries[i].key) & (slots - 1);
        while (fresh[slot].code >= 0) {
            slot = (slot + 1) & (slots - 1);
        }
        fresh[slot] = h->entries[i];
    }
    DROP(h->ctx, &h->entries);
    h->entries = fresh;
    h->mask = slots - 1;
    return FRG_OK;
}

static frg_status hash_code(hash_table *h, uint64_t key, int32_t *code)
{
    uint64_t slot = scramble(key) & h->mask;
    while (h->entries[slot].code >= 0 && h->entries[slot].key != key) {
        slot = (slot + 1) & h->mask;
    }
    if (h->entries[slot].code >= 0) {
        *code = h->entries[slot].code;
        return FRG_OK;
    }
    if (h->count == INT32_MAX) {
        FAIL(h->ctx, E_TOO_BIG, "a key has more than %d levels", INT32_MAX);
    }
    *code = (int32_t)h->count++;
    h->entries[slot] = (entry){.key = key, .code = *code};
    return 2 * (uint64_t)h->count > h->mask ? hash_resize(h, 2 * (h->mask + 1)) : FRG_OK;
}

static frg_status encode_by_hash(frg_context *ctx, const frg_column *c, bool whole,
                                 const int64_t *rows, int64_t n, int32_t *codes, int64_t *n_levels)
{
    hash_table h = {.ctx = ctx};
    int64_t keys[SLOTS];
    frg_status status;
    TRY_TO(done, hash_resize(&h, SLOTS));
    for (int64_t begin = 0; begin < n; begin += SLOTS) {
        const int64_t m = n - begin < SLOTS ? n - begin : SLOTS;
        fetch(c, whole, rows, begin, m, keys);
        for (ptrdiff_t i = 0; i < m; i++) {
            TRY_TO(done, hash_code(&h, (uint64_t)keys[i], &codes[begin + i]));
        }
        did_slots(ctx, begin);
    }
    *n_levels = h.count;
done:
    DROP(ctx, &h.entries);
    return status;
}

/* ---- columns --------------------------------------------------------------------------------- */

static bool fits_table(range r, int64_t n)
{
    const uint64_t length = (uint64_t)r.greatest - (uint64_t)r.least;
    return r.whole && r.least <= r.greatest && length < (uint64_t)n * RANGE_FACTOR + RANGE_ALWAYS &&
           length < INT32_MAX;
}

/** The first key of a column of doubles that is infinite or, `rounded`, of 2^53 or more. */
static frg_status refuse_key(frg_context *ctx, const frg_column *c, const int64_t *rows, int64_t n,
                             bool rounded)
{
    const double limit = rounded ? 0x1p53 : HUGE_VAL;
    int64_t i = 0;
    while (i < n - 1 && fabs(c->numbers[rows ? rows[i] : i]) < limit) {
        i++;
    }
    const long long row = (rows ? rows[i] : i) + 1;
    frgi_at(ctx, "%s:%lld", c->name, row);
    if (rounded) {
        FAIL(ctx, E_TYPE,
             "column '%s', row %lld: a key of 2^53 or more as a double, which rounds neighbours "
             "to one level; give it as int64 or as text",
             c->name, row);
    }
    FAIL(ctx, E_NOT_FINITE, "column '%s', row %lld: an infinite value is no key", c->name, row);
}

frg_status frgi_keys_encode(frg_context *ctx, frgi_key_job jobs[], int count, const int64_t *rows,
                            int64_t n)
{
    enum { MOST = 64 };
    range ranges[MOST];
    int32_t *tables[MOST] = {0};
    frg_status status = FRG_OK;
    if (count > MOST)
        FAIL(ctx, E_BUG, "%d keys at once", count);
    frgi_log(ctx, 2, "the keys of %d column%s are numbered", count, count == 1 ? "" : "s");
    for (int k = 0; k < count; k++) {
        const frg_column *const c = jobs[k].column;
        ranges[k] = range_of(ctx, c, rows, n);
        const bool labels = c->kind == FRG_CATEGORY || c->kind == FRG_BOOL;
        if ((!ranges[k].finite || ranges[k].rounded) && n > 0) {
            TRY_TO(done, refuse_key(ctx, c, rows, n, ranges[k].finite));
        }
        if (n > 0 && (labels || fits_table(ranges[k], n))) {
            TRY_TO(done, NEW(ctx, &tables[k], ranges[k].greatest - ranges[k].least + 1,
                             "a table of keys"));
        }
    }
    pass_begins(ctx, count, n);
#pragma omp parallel for schedule(dynamic, 1) num_threads(count > 1 ? frgi_pass_threads(ctx, n) : 1)
    for (int k = 0; k < count; k++) {
        if (tables[k]) {
            jobs[k].n_levels =
                encode_by_table(ctx, jobs[k].column, ranges[k], rows, n, tables[k], jobs[k].codes);
        }
    }
    for (int k = 0; k < count; k++) {
        if (!tables[k]) {
            TRY_TO(done, encode_by_hash(ctx, jobs[k].column, ranges[k].whole, rows, n,
                                        jobs[k].codes, &jobs[k].n_levels));
        }
    }
done:
    for (int k = 0; k < count; k++) {
        DROP(ctx, &tables[k]);
    }
    return status;
}

frg_status frgi_keys_join(frg_context *ctx, int64_t n, int32_t *codes, int64_t *n_levels,
                          const int32_t *other, int64_t other_levels)
{
    if ((double)*n_levels * (double)other_levels < (double)(n * RANGE_FACTOR + RANGE_ALWAYS)) {
        int32_t *table, count = 0;
        const size_t length = (size_t)(*n_levels * other_levels);
        TRY(NEW(ctx, &table, length, "a table of joint keys"));
        memset(table, 0xff, sizeof *table * length);
        for (ptrdiff_t i = 0; i < n; i++) {
            int32_t *const slot = &table[codes[i] * other_levels + other[i]];
            if (*slot < 0) {
                *slot = count++;
            }
            codes[i] = *slot;
        }
        *n_levels = count;
        DROP(ctx, &table);
        return FRG_OK;
    }
    hash_table h = {.ctx = ctx};
    frg_status status;
    TRY_TO(done, hash_resize(&h, SLOTS));
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint64_t key = (uint64_t)(uint32_t)codes[i] << 32 | (uint32_t)other[i];
        TRY_TO(done, hash_code(&h, key, &codes[i]));
    }
    *n_levels = h.count;
done:
    DROP(ctx, &h.entries);
    return status;
}

frg_status frgi_keys_compact(frg_context *ctx, int64_t n, int32_t *codes, int64_t *n_levels)
{
    int32_t *table, count = 0;
    TRY(NEW(ctx, &table, *n_levels, "a table of keys"));
    memset(table, 0xff, sizeof *table * (size_t)*n_levels);
    for (ptrdiff_t i = 0; i < n; i++) {
        int32_t *const slot = &table[codes[i]];
        if (*slot < 0) {
            *slot = count++;
        }
        codes[i] = *slot;
    }
    *n_levels = count;
    DROP(ctx, &table);
    return FRG_OK;
}

void frgi_keys_first(int64_t n, const int32_t *codes, int64_t n_levels, int64_t *first)
{
    int64_t next = 0; /* codes count up, so that a new one is always `next` */
    for (int64_t i = 0; i < n && next < n_levels; i++) {
        if (codes[i] == next) {
            first[next++] = i;
        }
    }
}

/* ---- joint categories ------------------------------------------------------------------------ */

bool frgi_key_is(const frgi_key *a, const frgi_key *b)
{
    return a->n == b->n && memcmp(a->columns, b->columns, (size_t)a->n * sizeof *a->columns) == 0;
}

frg_status frgi_key_find(frgi_key *key, frg_context *ctx, const frgi_syntax *s,
                         const frgi_key_spec *spec, const char *name, const frg_table *table)
{
    *key = (frgi_key){.name = name, .n = spec->n};
    for (int i = 0; i < spec->n; i++) {
        TRY(frgi_column_find(&key->columns[i], ctx, s, spec->node[i], 0, table));
    }
    return FRG_OK;
}

frg_status frgi_key_codes(frg_context *ctx, const frgi_key keys[], int count, const int64_t *rows,
                          int64_t n, int32_t *codes, int64_t levels[])
{
    frgi_key_job jobs[FRGI_EFFECTS];
    int32_t *other = NULL;
    frg_status status;
    for (int k = 0; k < count; k++) {
        jobs[k] = (frgi_key_job){.column = keys[k].columns[0], .codes = codes + k * n};
    }
    TRY(frgi_keys_encode(ctx, jobs, count, rows, n));
    for (int k = 0; k < count; k++) {
        levels[k] = jobs[k].n_levels;
        for (int i = 1; i < keys[k].n; i++) {
            if (!other) {
                TRY(NEW(ctx, &other, n, "codes"));
            }
            frgi_key_job job = {.column = keys[k].columns[i], .codes = other};
            TRY_TO(done, frgi_keys_encode(ctx, &job, 1, rows, n));
            TRY_TO(done, frgi_keys_join(ctx, n, codes + k * n, &levels[k], other, job.n_levels));
        }
    }
    status = FRG_OK;
done:
    DROP(ctx, &other);
    return status;
}

/* ---- lists of keys --------------------------------------------------------------------------- */

/** The place of the key of the same columns; l->n: there is none. */
static int place_of(const frgi_key_list *l, const frgi_key *key)
{
    int k = 0;
    while (k < l->n && !frgi_key_is(&l->keys[k], key)) {
        k++;
    }
    return k;
}

frg_status frgi_key_list_add(frgi_key_list *l, frg_context *ctx, const frgi_key *key)
{
    if (place_of(l, key) < l->n) {
        return FRG_OK;
    }
    TRY(GROW(ctx, &l->keys, l->n + 1, "keys"));
    TRY(GROW(ctx, &l->levels, l->n + 1, "keys"));
    l->keys[l->n++] = *key;
    return FRG_OK;
}

void frgi_key_list_without(frgi_key_list *l, const frgi_key *key)
{
    const int at = place_of(l, key);
    if (at < l->n) {
        l->n--;
        memmove(&l->keys[at], &l->keys[at + 1], (size_t)(l->n - at) * sizeof *l->keys);
    }
}

frg_status frgi_key_list_number(frgi_key_list *l, frg_context *ctx, const int64_t *rows, int64_t n)
{
    TRY(NEW(ctx, &l->codes, l->n * n, "codes of keys"));
    l->rows = n;
    for (int k = 0; k < l->n; k += FRGI_EFFECTS) {
        const int count = l->n - k < FRGI_EFFECTS ? l->n - k : FRGI_EFFECTS;
        TRY(frgi_key_codes(ctx, l->keys + k, count, rows, n, l->codes + k * n, l->levels + k));
    }
    return FRG_OK;
}

const int32_t *frgi_key_list_find(const frgi_key_list *l, const frgi_key *key, int64_t *levels)
{
    const int at = l->codes ? place_of(l, key) : l->n;
    if (at == l->n) {
        return NULL;
    }
    *levels = l->levels[at];
    return l->codes + at * l->rows;
}

frg_status frgi_key_list_codes(const frgi_key_list *l, frg_context *ctx, const frgi_key *key,
                               const int64_t *rows, int64_t n, int32_t *codes, int64_t *levels)
{
    const int32_t *const there = frgi_key_list_find(l, key, levels);
    if (!there) {
        return frgi_key_codes(ctx, key, 1, rows, n, codes, levels);
    }
    memcpy(codes, there, (size_t)n * sizeof *codes);
    return FRG_OK;
}

void frgi_key_list_destroy(frgi_key_list *l, frg_context *ctx)
{
    DROP(ctx, &l->keys);
    DROP(ctx, &l->codes);
    DROP(ctx, &l->levels);
    l->n = 0;
}
