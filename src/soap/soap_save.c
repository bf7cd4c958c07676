/* soap_save.c - the whole state in a file, and back.
 *
 *     "FRGSOAP1" | byte order u32 | parameters i64 | each: shape, layout, counters, m, v, factors |
 *     checksum u64
 *
 * Numbers are those of the machine (the second field tells its byte order), moments in the basis
 * they are stored in, so that a resumed run has the same bits.  A load goes over the bytes twice:
 * first it checks everything against the handle, then it copies, so that a file that is wrong
 * anywhere changes nothing.  The checksum is FNV-1a over words of 8 bytes. */
#include <string.h>

#include "soap/soap_state.h"

static const char MAGIC[8] = {'F', 'R', 'G', 'S', 'O', 'A', 'P', '1'};
static const uint32_t BYTE_ORDER = 0x01020304;

typedef struct {
    uint64_t hash, word;
    int held; /* bytes of word */
} checksum;

static void hash_bytes(checksum *c, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    while (count > 0 && (c->held > 0 || count < 8)) {
        c->word |= (uint64_t)*at++ << (8 * c->held++);
        count--;
        if (c->held == 8) {
            c->hash = (c->hash ^ c->word) * UINT64_C(0x100000001b3);
            c->word = 0;
            c->held = 0;
        }
    }
    for (; count >= 8; count -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        c->hash = (c->hash ^ word) * UINT64_C(0x100000001b3);
    }
    while (count > 0) {
        c->word |= (uint64_t)*at++ << (8 * c->held++);
        count--;
    }
}

static uint64_t hash_end(const checksum *c)
{
    return (c->hash ^ c->word ^ (uint64_t)c->held) * UINT64_C(0x100000001b3);
}

static const checksum HASH_START = {UINT64_C(0xcbf29ce484222325), 0, 0};

/* ---- one text for measuring, writing, checking and copying ----------------------------------- */

/** What goes over the state: to a writer, or against bytes. */
typedef struct {
    frg_context *ctx;
    bool writes;
    frgi_writer *writer; /* writing: to a file, */
    char *to;            /* or to memory; both NULL: bytes are counted alone */
    int64_t count;
    checksum sum;
    const char *at, *end; /* reading */
    bool copies;          /* the second pass of a load */
    const char *name;
} stream;

static frg_status put(stream *s, const void *bytes, size_t count)
{
    if (s->to) {
        memcpy(s->to + s->count, bytes, count);
    }
    s->count += (int64_t)count;
    return s->writer ? frgi_writer_put(s->writer, bytes, count) : FRG_OK;
}

/** Bytes of the state itself. */
static frg_status body(stream *s, void *bytes, size_t count)
{
    if (s->writes) {
        hash_bytes(&s->sum, bytes, count);
        return put(s, bytes, count);
    }
    if ((size_t)(s->end - s->at) < count) {
        FAIL(s->ctx, E_STATE, "'%s' ends before the state does", s->name);
    }
    if (s->copies) {
        memcpy(bytes, s->at, count);
    } else {
        hash_bytes(&s->sum, s->at, count);
    }
    s->at += count;
    return FRG_OK;
}

/** Bytes that must be the handle's own. */
static frg_status same(stream *s, const void *bytes, size_t count, const char *what,
                       const char *param)
{
    if (s->writes) {
        hash_bytes(&s->sum, bytes, count);
        return put(s, bytes, count);
    }
    if ((size_t)(s->end - s->at) < count || memcmp(s->at, bytes, count) != 0) {
        FAIL(s->ctx, E_STATE, "'%s': %s%s%s%s is not that of this optimizer", s->name, what,
             param ? " of '" : "", param ? param : "", param ? "'" : "");
    }
    if (!s->copies) {
        hash_bytes(&s->sum, s->at, count);
    }
    s->at += count;
    return FRG_OK;
}

typedef struct {
    int64_t step, generation, m_generation, exponent, started;
} counters;

static frg_status check_counters(const stream *s, const char *param, const counters *c)
{
    const bool sound = c->step >= 0 && c->generation >= 0 &&
                       (c->m_generation == 0 || c->m_generation == c->generation) &&
                       c->exponent >= -400 && c->exponent <= 400 &&
                       (c->started == 0 || c->started == 1);
    if (!sound) {
        FAIL(s->ctx, E_STATE, "'%s': the counters of '%s' are out of range", s->name, param);
    }
    return FRG_OK;
}

/** Every slot stands once in an order. */
static frg_status check_order(const stream *s, const soap_param *p, int64_t n)
{
    bool *seen = NULL, once = true;
    TRY(NEW0(s->ctx, &seen, n, "the order of columns"));
    for (int64_t i = 0; i < n && once; i++) {
        int32_t slot;
        memcpy(&slot, s->at + (size_t)i * sizeof slot, sizeof slot);
        once = slot >= 0 && slot < n && !seen[slot];
        seen[once ? slot : 0] = true;
    }
    DROP(s->ctx, &seen);
    if (!once) {
        FAIL(s->ctx, E_STATE, "'%s': the places of columns in '%s' are no permutation", s->name,
             p->name);
    }
    return FRG_OK;
}

static frg_status walk_factor(stream *s, const soap_param *p, soap_factor *f)
{
    const int64_t where[3] = {f->axis, f->at, f->size};
    const size_t n = (size_t)f->size;
    TRY(same(s, where, sizeof where, "a factor", p->name));
    TRY(body(s, f->k, n * n * sizeof *f->k));
    TRY(body(s, f->q, n * n * sizeof *f->q));
    TRY(body(s, f->lambda, n * sizeof *f->lambda));
    if (!s->writes && !s->copies && (size_t)(s->end - s->at) >= n * sizeof *f->order) {
        TRY(check_order(s, p, (int64_t)n));
    }
    TRY(body(s, f->order, n * sizeof *f->order));
    int64_t again = f->decompose_again;
    TRY(body(s, &again, sizeof again));
    if (s->copies) {
        f->decompose_again = again != 0;
    }
    return FRG_OK;
}

static frg_status walk_param(stream *s, soap_param *p)
{
    int64_t shape[2 + 2 * FRG_MAX_DIM] = {p->w.ndim, p->n_factors};
    for (int d = 0; d < p->w.ndim; d++) {
        shape[2 + d] = p->w.shape[d];
    }
    for (int d = 0; d < p->axes; d++) {
        shape[2 + FRG_MAX_DIM + d] = p->dims[d];
    }
    TRY(same(s, shape, sizeof shape, "the shape", p->name));
    counters c = {p->step, p->generation, p->m_generation, p->exponent, p->started};
    const char *const before = s->at;
    TRY(body(s, &c, sizeof c));
    if (!s->writes) {
        memcpy(&c, before, sizeof c);
        TRY(check_counters(s, p->name, &c));
    }
    if (s->copies) {
        p->step = c.step;
        p->generation = c.generation;
        p->m_generation = c.m_generation;
        p->exponent = (int)c.exponent;
        p->started = c.started != 0;
    }
    const size_t bytes = (size_t)p->count * sizeof *p->m;
    TRY(body(s, p->m, bytes));
    TRY(body(s, p->v, bytes));
    for (int i = 0; i < p->n_factors; i++) {
        TRY(walk_factor(s, p, &p->factors[i]));
    }
    return FRG_OK;
}

/** Parameters `first` .. first + count - 1: all of them, or one. */
typedef struct {
    int64_t first, count;
} range;

static range all_of(const frg_soap *soap)
{
    return (range){0, soap->n_params};
}

static frg_status walk(stream *s, frg_soap *soap, range which)
{
    TRY(same(s, MAGIC, sizeof MAGIC, "the version", NULL));
    TRY(same(s, &BYTE_ORDER, sizeof BYTE_ORDER, "the byte order", NULL));
    TRY(same(s, &which.count, sizeof which.count, "the number of parameters", NULL));
    for (int64_t i = 0; i < which.count; i++) {
        TRY(walk_param(s, soap->params[which.first + i]));
    }
    return FRG_OK;
}

/** The state and its checksum. */
static frg_status write_all(stream *s, frg_soap *soap, range which)
{
    TRY(walk(s, soap, which));
    const uint64_t sum = hash_end(&s->sum);
    return put(s, &sum, sizeof sum);
}

static frg_status to_bytes(frg_soap *soap, range which, void *bytes, int64_t capacity,
                           int64_t *count)
{
    REQUIRE(soap->ctx, count, "count is NULL");
    TRY(frgi_soap_open(soap));
    stream s = {.ctx = soap->ctx, .writes = true};
    TRY(write_all(&s, soap, which));
    REQUIRE(soap->ctx, !bytes || capacity >= s.count, "room for %lld bytes, the state has %lld",
            (long long)capacity, (long long)s.count);
    if (bytes) {
        s = (stream){.ctx = soap->ctx, .writes = true, .to = bytes, .sum = HASH_START};
        TRY(write_all(&s, soap, which));
    }
    *count = s.count;
    return FRG_OK;
}

static frg_status from_bytes(frg_soap *soap, range which, const void *bytes, int64_t count,
                             const char *name)
{
    REQUIRE(soap->ctx, (bytes || count == 0) && count >= 0, "bytes is %s, count is %lld",
            bytes ? "given" : "NULL", (long long)count);
    TRY(frgi_soap_open(soap));
    stream s = {.ctx = soap->ctx,
                .sum = HASH_START,
                .at = bytes,
                .end = (const char *)bytes + count,
                .name = name ? name : "state"};
    TRY(walk(&s, soap, which));
    uint64_t sum;
    if (s.end - s.at != (ptrdiff_t)sizeof sum) {
        FAIL(soap->ctx, E_STATE, "'%s' has %lld bytes after the state, expected a checksum of 8",
             s.name, (long long)(s.end - s.at));
    }
    memcpy(&sum, s.at, sizeof sum);
    if (sum != hash_end(&s.sum)) {
        FAIL(soap->ctx, E_STATE, "'%s': the checksum does not fit, the file was damaged", s.name);
    }
    s.at = bytes;
    s.copies = true;
    return walk(&s, soap, which);
}

/* ---- the calls ------------------------------------------------------------------------------- */

frg_status frg_soap_save(frg_soap *soap, const char *path)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    REQUIRE(soap->ctx, path, "path is NULL");
    TRY(frgi_soap_open(soap));
    stream s = {.ctx = soap->ctx, .writes = true, .sum = HASH_START, .name = path};
    frg_status status;
    TRY(frgi_writer_open(&s.writer, soap->ctx, path));
    TRY_TO(failed, write_all(&s, soap, all_of(soap)));
    return frgi_writer_commit(&s.writer);
failed:
    frgi_writer_abandon(&s.writer);
    return status;
}

frg_status frg_soap_save_bytes(frg_soap *soap, void *bytes, int64_t capacity, int64_t *count)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    return to_bytes(soap, all_of(soap), bytes, capacity, count);
}

frg_status frg_soap_load_bytes(frg_soap *soap, const void *bytes, int64_t count, const char *name)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    return from_bytes(soap, all_of(soap), bytes, count, name);
}

frg_status frg_soap_save_param(frg_soap *soap, int64_t id, void *bytes, int64_t capacity,
                               int64_t *count)
{
    TRY(frgi_soap_check_id(soap, id));
    return to_bytes(soap, (range){id, 1}, bytes, capacity, count);
}

frg_status frg_soap_load_param(frg_soap *soap, int64_t id, const void *bytes, int64_t count,
                               const char *name)
{
    TRY(frgi_soap_check_id(soap, id));
    return from_bytes(soap, (range){id, 1}, bytes, count, name);
}

frg_status frg_soap_load(frg_soap *soap, const char *path)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    REQUIRE(soap->ctx, path, "path is NULL");
    frgi_run_begins(soap->ctx);
    char *bytes = NULL;
    size_t count = 0;
    frg_status status = frgi_read_file(soap->ctx, path, &bytes, &count);
    if (status == FRG_OK) {
        status = frg_soap_load_bytes(soap, bytes, (int64_t)count, path);
    }
    DROP(soap->ctx, &bytes);
    return status;
}
