/* csv_dictionary.c - strings to codes in order of first appearance, whoever parses which block.
 *
 * While the blocks of a segment are parsed the dictionary is only read.  A string that it lacks
 * gets a code of the block (-2, -3, ... in order of appearance in it).  After the segment the
 * blocks' new strings are put into the dictionary block by block, which is file order, and these
 * codes are replaced.  So the codes depend on the file alone, and a column whose strings are all
 * known costs one look-up a row.
 *
 * Tables: open addressing with linear probing, at most half full; a slot keeps 32 bits of the hash,
 * so that a string is compared about once.  The hash folds 64 x 64 -> 128 bit products (as wyhash
 * and xxh3 do).
 */
#include <string.h>

#include "io/csv.h"

enum { SLOTS_LEAST = 64, STARTS_LEAST = 32, TEXT_LEAST = 256 };

struct frgi_slot {
    uint32_t tag;  /* high half of the hash */
    int32_t code1; /* code + 1; 0: free */
};

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    const unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline uint64_t load(const char *s, size_t n)
{
    uint64_t x = 0;
    memcpy(&x, s, n);
    return x;
}

uint64_t frgi_hash(const char *s, int64_t n)
{
    const uint64_t k0 = 0x9e3779b97f4a7c15, k1 = 0xe7037ed1a0b428db;
    uint64_t h = (uint64_t)n * k1;
    for (; n > 8; s += 8, n -= 8) {
        h = fold(h ^ load(s, 8), k0);
    }
    /* up to 8 bytes are left, put together of overlapping loads */
    uint64_t last;
    if (n == 8) {
        last = load(s, 8);
    } else if (n >= 4) {
        last = load(s, 4) | load(s + n - 4, 4) << 32;
    } else if (n > 0) {
        last = (uint64_t)(unsigned char)s[0] | (uint64_t)(unsigned char)s[n / 2] << 8 |
               (uint64_t)(unsigned char)s[n - 1] << 16;
    } else {
        last = 0;
    }
    return fold(h ^ last, k1) ^ k0;
}

static bool is_label(const frgi_dictionary *d, int32_t code, const char *s, int64_t n)
{
    const char *const label = d->text + d->starts[code];
    const int64_t end = code + 1 < d->count ? d->starts[code + 1] : d->used;
    return end - d->starts[code] - 1 == n && memcmp(label, s, (size_t)n) == 0;
}

/** The slot of the string, or the free one where it belongs. */
static struct frgi_slot *find_slot(const frgi_dictionary *d, const char *s, int64_t n,
                                   uint64_t hash)
{
    const uint32_t tag = (uint32_t)(hash >> 32);
    const int64_t mask = d->n_slots - 1;
    for (int64_t at = (int64_t)hash & mask;; at = (at + 1) & mask) {
        struct frgi_slot *const slot = &d->slots[at];
        if (slot->code1 == 0 || (slot->tag == tag && is_label(d, slot->code1 - 1, s, n))) {
            return slot;
        }
    }
}

int32_t frgi_dictionary_find(const frgi_dictionary *d, const char *s, int64_t n, uint64_t hash)
{
    return d->n_slots ? find_slot(d, s, n, hash)->code1 - 1 : -1;
}

/** The smallest of least, 2 least, 4 least, ... that is enough. */
static int64_t doubled_capacity(int64_t least, int64_t enough)
{
    while (least < enough) {
        least *= 2;
    }
    return least;
}

static frg_status grow_slots(frgi_dictionary *d, frg_context *ctx, int64_t n_slots)
{
    struct frgi_slot *slots;
    TRY(NEW0(ctx, &slots, n_slots, "dictionary of a column"));
    DROP(ctx, &d->slots);
    d->slots = slots;
    d->n_slots = n_slots;
    for (int64_t code = 0; code < d->count;
         code++) { /* all different: the first free slot is theirs */
        const int64_t end = code + 1 < d->count ? d->starts[code + 1] : d->used;
        const char *const s = d->text + d->starts[code];
        const uint64_t hash = frgi_hash(s, end - d->starts[code] - 1);
        int64_t at = (int64_t)hash & (n_slots - 1);
        while (slots[at].code1) {
            at = (at + 1) & (n_slots - 1);
        }
        slots[at] = (struct frgi_slot){.tag = (uint32_t)(hash >> 32), .code1 = (int32_t)code + 1};
    }
    return FRG_OK;
}

frg_status frgi_dictionary_reserve(frgi_dictionary *d, frg_context *ctx, int64_t count,
                                   int64_t bytes)
{
    const int64_t strings = d->count + count, text = d->used + bytes + count;
    if (strings > INT32_MAX - 2) {
        FAIL(ctx, E_UNSUPPORTED, "a column has more than %d different strings", INT32_MAX - 2);
    }
    if (text > d->text_capacity) {
        const int64_t capacity = doubled_capacity(TEXT_LEAST, text);
        TRY(GROW(ctx, &d->text, capacity, "strings of a column"));
        d->text_capacity = capacity;
    }
    if (strings > d->starts_capacity) {
        const int64_t capacity = doubled_capacity(STARTS_LEAST, strings);
        TRY(GROW(ctx, &d->starts, capacity, "strings of a column"));
        d->starts_capacity = capacity;
    }
    if (2 * strings > d->n_slots) {
        TRY(grow_slots(d, ctx, doubled_capacity(SLOTS_LEAST, 2 * strings)));
    }
    return FRG_OK;
}

int32_t frgi_dictionary_put(frgi_dictionary *d, const char *s, int64_t n, uint64_t hash)
{
    struct frgi_slot *const slot = find_slot(d, s, n, hash);
    if (slot->code1 == 0) {
        d->starts[d->count] = d->used;
        memcpy(d->text + d->used, s, (size_t)n);
        d->text[d->used + n] = '\0';
        d->used += n + 1;
        d->count++;
        *slot = (struct frgi_slot){.tag = (uint32_t)(hash >> 32), .code1 = (int32_t)d->count};
    }
    return slot->code1 - 1;
}

void frgi_dictionary_free(frgi_dictionary *d, frg_context *ctx)
{
    DROP(ctx, &d->text);
    DROP(ctx, &d->starts);
    DROP(ctx, &d->slots);
    *d = (frgi_dictionary){0};
}

/* ---- a column of a block --------------------------------------------------------------------- */

/** The block's number of a string that the dictionary lacks.  The same string written with and
 *  without quotes may get two numbers; the dictionary makes them one. */
static int64_t put_fresh(const frgi_csv_index *x, const frgi_cell_text *t, uint64_t hash,
                         frgi_fresh *fresh, int64_t *count, frgi_encode_scratch *scratch)
{
    const int64_t mask = scratch->n_slots - 1;
    for (int64_t at = (int64_t)hash & mask;; at = (at + 1) & mask) {
        const uint32_t k = scratch->slots[at];
        if (k == 0) {
            fresh[*count] = (frgi_fresh){.hash = hash,
                                         .start = (uint32_t)(t->s - x->text),
                                         .count = (uint32_t)t->n,
                                         .doubled = t->doubled};
            scratch->slots[at] = (uint32_t)++ * count;
            return *count - 1;
        }
        const frgi_fresh *const f = &fresh[k - 1];
        if (f->hash == hash && f->count == t->n && f->doubled == t->doubled &&
            memcmp(x->text + f->start, t->s, (size_t)t->n) == 0) {
            return k - 1;
        }
    }
}

/** Zeroes the slots that `count` fresh strings took: all, or those from each one's home to a free
 *  one. */
static void clear_slots(frgi_encode_scratch *scratch, const frgi_fresh *fresh, int64_t count)
{
    if (count > scratch->n_slots / 16) {
        memset(scratch->slots, 0, (size_t)scratch->n_slots * sizeof *scratch->slots);
        return;
    }
    const int64_t mask = scratch->n_slots - 1;
    for (int64_t k = 0; k < count; k++) {
        int64_t at = (int64_t)fresh[k].hash & mask;
        while (scratch->slots[at]) {
            scratch->slots[at] = 0;
            at = (at + 1) & mask;
        }
    }
}

int64_t frgi_cells_encode(const frgi_cells *c, const frgi_dictionary *d, int32_t *out,
                          frgi_fresh *fresh, frgi_encode_scratch *scratch, int64_t *n_missing,
                          int64_t *broken)
{
    int64_t count = 0, missing = 0;
    *broken = -1;
    for (ptrdiff_t r = 0; r < c->index->rows && *broken < 0; r++) {
        const char *s, *e;
        frgi_cell_at(c, r, &s, &e);
        const frgi_cell_text t = frgi_cell_unquote(s, e);
        if (t.broken) {
            *broken = r;
            break;
        }
        if (!t.doubled && frgi_cell_is_missing(c->rules, t.s, t.n)) {
            out[r] = FRG_MISSING_CODE;
            missing++;
            continue;
        }
        const char *text = t.s;
        int64_t n = t.n;
        if (t.doubled) {
            n = frgi_cell_copy(&t, scratch->cell);
            text = scratch->cell;
        }
        const uint64_t hash = frgi_hash(text, n);
        out[r] = frgi_dictionary_find(d, text, n, hash);
        if (out[r] < 0) {
            out[r] = (int32_t)(-2 - put_fresh(c->index, &t, hash, fresh, &count, scratch));
        }
    }
    clear_slots(scratch, fresh, count);
    *n_missing = missing;
    return *broken < 0 ? count : -1;
}
