/* npz_write.c - arrays into NumPy's archive: a zip file (APPNOTE 6.3) of stored .npy members.
 *
 * Sizes and places are written with 64 bits throughout, so that there is one way for small and
 * large archives.  The checksum of a member stands before its bytes, which are therefore passed
 * over twice. */
#include <string.h>
#include <zlib.h>

#include "io/npy.h"

#define WIDE   UINT32_C(0xffffffff) /* "see the extra field" */
#define UTF_8  0x0800
#define DAY_1  0x0021 /* 1 January 1980: the same arrays are the same bytes */
#define NEEDED 45     /* version 4.5: 64-bit sizes */

typedef struct {
    char *name;
    uint32_t crc;
    uint64_t bytes, local;
} entry;

struct frgi_npz_writer {
    frg_context *ctx;
    frgi_writer *out;
    uint64_t at;
    entry *entries;
    int64_t n, capacity;
};

/* ---- records --------------------------------------------------------------------------------- */

typedef struct {
    unsigned char bytes[96];
    size_t count;
} record;

typedef struct {
    int bytes;
    uint64_t value;
} field;

static void append(record *r, const char *signature, size_t n, const field fields[])
{
    if (signature) {
        memcpy(r->bytes + r->count, signature, 4);
        r->count += 4;
    }
    for (size_t i = 0; i < n; i++) {
        for (int b = 0; b < fields[i].bytes; b++) {
            r->bytes[r->count++] = (unsigned char)(fields[i].value >> (8 * b));
        }
    }
}
#define APPEND(r, signature, ...)                                                                  \
    append(r, signature, sizeof((field[]){__VA_ARGS__}) / sizeof(field),                           \
           (const field[]){__VA_ARGS__})

static frg_status put(frgi_npz_writer *w, const void *bytes, size_t count)
{
    TRY(frgi_writer_put(w->out, bytes, count));
    w->at += count;
    return FRG_OK;
}

/** ".npy" behind the name. */
static frg_status put_name(frgi_npz_writer *w, const entry *e)
{
    TRY(put(w, e->name, strlen(e->name)));
    return put(w, ".npy", 4);
}

static uint64_t name_bytes(const entry *e)
{
    return strlen(e->name) + 4;
}

static frg_status put_local(frgi_npz_writer *w, const entry *e)
{
    record r = {.count = 0}, extra = {.count = 0};
    APPEND(&r, "PK\3\4", {2, NEEDED}, {2, UTF_8}, {2, 0}, {2, 0}, {2, DAY_1}, {4, e->crc},
           {4, WIDE}, {4, WIDE}, {2, name_bytes(e)}, {2, 20});
    APPEND(&extra, NULL, {2, 1}, {2, 16}, {8, e->bytes}, {8, e->bytes});
    TRY(put(w, r.bytes, r.count));
    TRY(put_name(w, e));
    return put(w, extra.bytes, extra.count);
}

static frg_status put_entry(frgi_npz_writer *w, const entry *e)
{
    record r = {.count = 0}, extra = {.count = 0};
    APPEND(&r, "PK\1\2", {2, NEEDED}, {2, NEEDED}, {2, UTF_8}, {2, 0}, {2, 0}, {2, DAY_1},
           {4, e->crc}, {4, WIDE}, {4, WIDE}, {2, name_bytes(e)}, {2, 28}, {2, 0}, {2, 0}, {2, 0},
           {4, 0}, {4, WIDE});
    APPEND(&extra, NULL, {2, 1}, {2, 24}, {8, e->bytes}, {8, e->bytes}, {8, e->local});
    TRY(put(w, r.bytes, r.count));
    TRY(put_name(w, e));
    return put(w, extra.bytes, extra.count);
}

static frg_status put_directory(frgi_npz_writer *w)
{
    const uint64_t start = w->at, n = (uint64_t)w->n;
    for (int64_t i = 0; i < w->n; i++) {
        TRY(put_entry(w, &w->entries[i]));
    }
    const uint64_t end = w->at;
    record wide = {.count = 0}, tail = {.count = 0};
    APPEND(&wide, "PK\6\6", {8, 44}, {2, NEEDED}, {2, NEEDED}, {4, 0}, {4, 0}, {8, n}, {8, n},
           {8, end - start}, {8, start});
    APPEND(&tail, "PK\6\7", {4, 0}, {8, end}, {4, 1});
    APPEND(&tail, "PK\5\6", {2, 0}, {2, 0}, {2, 0xffff}, {2, 0xffff}, {4, WIDE}, {4, WIDE}, {2, 0});
    TRY(put(w, wide.bytes, wide.count));
    return put(w, tail.bytes, tail.count);
}

/* ---- the calls ------------------------------------------------------------------------------- */

frg_status frgi_npz_open(frgi_npz_writer **out, frg_context *ctx, const char *path)
{
    *out = NULL;
    frgi_npz_writer *w = NULL;
    TRY(NEW0(ctx, &w, 1, "an archive"));
    w->ctx = ctx;
    const frg_status status = frgi_writer_open(&w->out, ctx, path);
    if (status < 0) {
        DROP(ctx, &w);
        return status;
    }
    *out = w;
    return FRG_OK;
}

static frg_status new_entry(frgi_npz_writer *w, const char *name, entry **out)
{
    if (w->n == w->capacity) {
        TRY(GROW(w->ctx, &w->entries, 2 * w->capacity + 16, "an archive"));
        w->capacity = 2 * w->capacity + 16;
    }
    entry *const e = &w->entries[w->n];
    *e = (entry){.local = w->at};
    TRY(frgi_strdup(w->ctx, &e->name, name, strlen(name)));
    w->n++;
    *out = e;
    return FRG_OK;
}

frg_status frgi_npz_add(frgi_npz_writer *w, const char *name, const frg_array *a)
{
    char header[NPY_HEADER_BYTES];
    const size_t head = (size_t)frgi_npy_header(a, false, header);
    size_t body = frg_sizeof(a->dtype);
    for (int d = 0; d < a->ndim; d++) {
        body *= (size_t)a->shape[d];
    }
    entry *e;
    TRY(new_entry(w, name, &e));
    e->bytes = head + body;
    const unsigned char *const bytes = (const unsigned char *)frgi_array_base(a);
    uLong crc = crc32_z(0, (const unsigned char *)header, head);
    crc = body > 0 ? crc32_z(crc, bytes, body) : crc; /* NULL would start it anew */
    e->crc = (uint32_t)crc;
    TRY(put_local(w, e));
    TRY(put(w, header, head));
    return put(w, bytes, body);
}

static void drop(frgi_npz_writer **w)
{
    frg_context *const ctx = (*w)->ctx;
    for (int64_t i = 0; i < (*w)->n; i++) {
        DROP(ctx, &(*w)->entries[i].name);
    }
    DROP(ctx, &(*w)->entries);
    DROP(ctx, w);
}

frg_status frgi_npz_commit(frgi_npz_writer **w)
{
    frg_status status = put_directory(*w);
    if (status < 0) {
        frgi_writer_abandon(&(*w)->out);
    } else {
        status = frgi_writer_commit(&(*w)->out);
    }
    drop(w);
    return status;
}

void frgi_npz_abandon(frgi_npz_writer **w)
{
    if (*w) {
        frgi_writer_abandon(&(*w)->out);
        drop(w);
    }
}
