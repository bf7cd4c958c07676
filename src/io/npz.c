/* npz.c - NumPy's archives: a zip file (APPNOTE 6.3) of .npy members, stored or deflated.
 *
 * The central directory at the end is followed, as every reader does; what the local headers repeat
 * has to agree with it, and its entries have to fill it, so that a changed bit either is refused or
 * changes nothing that is used. Sizes of 64 bits are read from their extra field.  A member's
 * declared size is checked against the archive (stored) or against its compressed size (1000 times)
 * before it is allocated, and its CRC after.  Encrypted and split archives are refused.
 */
#include <string.h>
#include <zlib.h>

#include "io/io.h"

enum {
    END_BYTES = 22,       /* end of central directory */
    COMMENT_MOST = 65535, /* behind it */
    LOCATOR_BYTES = 20,   /* in front of it, for 64 bits */
    END64_BYTES = 56,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    STORED = 0,
    DEFLATED = 8,
    RAW_WINDOW = -15
};
#define WIDE UINT32_C(0xffffffff) /* "see the extra field" */

typedef struct {
    frg_context *ctx;
    const char *name;
    const unsigned char *bytes;
    uint64_t count;
} archive;

typedef struct {
    const char *name;
    uint64_t name_length;
    unsigned method, flags;
    uint32_t crc;
    uint64_t packed, unpacked, local;
} member;

static uint64_t number(const unsigned char *p, int bytes)
{
    uint64_t x = 0;
    for (int i = bytes - 1; i >= 0; i--) {
        x = x << 8 | p[i];
    }
    return x;
}

static bool fits(const archive *a, uint64_t at, uint64_t bytes)
{
    return at <= a->count && bytes <= a->count - at;
}

static frg_status malformed(const archive *a, const char *why)
{
    frgi_at(a->ctx, "%s", a->name);
    FAIL(a->ctx, E_FORMAT, "'%s' is no sound npz archive: %s", a->name, why);
}

/** Where the central directory lies and how many entries it has. */
typedef struct {
    uint64_t at, bytes, entries;
} directory;

static frg_status find_directory(const archive *a, directory *d)
{
    uint64_t end = a->count;
    const uint64_t least =
        a->count > END_BYTES + COMMENT_MOST ? a->count - END_BYTES - COMMENT_MOST : 0;
    for (uint64_t i = a->count - END_BYTES; a->count >= END_BYTES && end == a->count; i--) {
        if (memcmp(a->bytes + i, "PK\5\6", 4) == 0 &&
            i + END_BYTES + number(a->bytes + i + 20, 2) == a->count) {
            end = i;
        }
        if (i == least) {
            break;
        }
    }
    if (end == a->count) {
        frgi_at(a->ctx, "%s", a->name);
        FAIL(a->ctx, E_TRUNCATED, "'%s' has no directory at its end", a->name);
    }
    const unsigned char *const e = a->bytes + end;
    *d = (directory){number(e + 16, 4), number(e + 12, 4), number(e + 10, 2)};
    bool one_disk =
        number(e + 4, 2) == 0 && number(e + 6, 2) == 0 && number(e + 8, 2) == d->entries;
    if (end >= LOCATOR_BYTES && memcmp(e - LOCATOR_BYTES, "PK\6\7", 4) == 0) {
        const uint64_t end64 = number(e - LOCATOR_BYTES + 8, 8);
        if (!fits(a, end64, END64_BYTES) || memcmp(a->bytes + end64, "PK\6\6", 4) != 0) {
            return malformed(a, "its 64-bit directory is not where it should be");
        }
        const unsigned char *const w = a->bytes + end64;
        *d = (directory){number(w + 48, 8), number(w + 40, 8), number(w + 32, 8)};
        one_disk =
            number(w + 16, 4) == 0 && number(w + 20, 4) == 0 && number(w + 24, 8) == d->entries;
    }
    return one_disk ? FRG_OK : malformed(a, "it is a part of several, or its directory is damaged");
}

/** The 64-bit values of the extra field replace those that did not fit, in their order. */
static bool read_wide(const unsigned char *extra, uint64_t length, member *m)
{
    uint64_t *const values[3] = {&m->unpacked, &m->packed, &m->local};
    while (length >= 4) {
        const uint64_t id = number(extra, 2), bytes = number(extra + 2, 2);
        if (bytes > length - 4) {
            return false;
        }
        for (uint64_t v = 0, at = 0; id == 1 && v < 3; v++) {
            if (*values[v] == WIDE) {
                if (at + 8 > bytes) {
                    return false;
                }
                *values[v] = number(extra + 4 + at, 8);
                at += 8;
            }
        }
        extra += 4 + bytes;
        length -= 4 + bytes;
    }
    return true;
}

static frg_status read_entry(const archive *a, uint64_t *at, member *m)
{
    const unsigned char *const p = fits(a, *at, ENTRY_BYTES) ? a->bytes + *at : NULL;
    if (!p || memcmp(p, "PK\1\2", 4) != 0) {
        return malformed(a, "its directory has fewer entries than it says");
    }
    *m = (member){.flags = (unsigned)number(p + 8, 2),
                  .method = (unsigned)number(p + 10, 2),
                  .crc = (uint32_t)number(p + 16, 4),
                  .packed = number(p + 20, 4),
                  .unpacked = number(p + 24, 4),
                  .name_length = number(p + 28, 2),
                  .local = number(p + 42, 4),
                  .name = (const char *)p + ENTRY_BYTES};
    const uint64_t extra = number(p + 30, 2), comment = number(p + 32, 2);
    const uint64_t length = ENTRY_BYTES + m->name_length + extra + comment;
    if (!fits(a, *at, length) || !read_wide(p + ENTRY_BYTES + m->name_length, extra, m)) {
        return malformed(a, "an entry of its directory is cut off");
    }
    *at += length;
    return FRG_OK;
}

/** Whether the local header at p says of the member what the directory does.  A writer that did not
 *  know sizes and checksum beforehand (bit 3 of the flags) has left them 0. */
static bool agrees(const unsigned char *p, const member *m)
{
    member l = {.packed = number(p + 18, 4), .unpacked = number(p + 22, 4), .local = 0};
    const uint64_t name = number(p + 26, 2), extra = number(p + 28, 2);
    if (number(p + 6, 2) != m->flags || number(p + 8, 2) != m->method || name != m->name_length ||
        memcmp(p + LOCAL_BYTES, m->name, (size_t)name) != 0 ||
        !read_wide(p + LOCAL_BYTES + name, extra, &l)) {
        return false;
    }
    const uint32_t crc = (uint32_t)number(p + 14, 4);
    const bool later = (m->flags & 8) && crc == 0 && l.packed == 0 && l.unpacked == 0;
    return later || (crc == m->crc && l.packed == m->packed && l.unpacked == m->unpacked);
}

/** The member's packed bytes. */
static frg_status find_bytes(const archive *a, const member *m, const unsigned char **bytes)
{
    const unsigned char *const p = fits(a, m->local, LOCAL_BYTES) ? a->bytes + m->local : NULL;
    if (!p || memcmp(p, "PK\3\4", 4) != 0) {
        return malformed(a, "a member is not where the directory says");
    }
    const uint64_t skip = LOCAL_BYTES + number(p + 26, 2) + number(p + 28, 2);
    if (!fits(a, m->local, skip) || !fits(a, m->local + skip, m->packed)) {
        frgi_at(a->ctx, "%s", a->name);
        FAIL(a->ctx, E_TRUNCATED, "'%s': the member '%.*s' is cut off", a->name,
             (int)m->name_length, m->name);
    }
    *bytes = p + skip;
    if (!agrees(p, m)) {
        frgi_at(a->ctx, "%s", a->name);
        FAIL(a->ctx, E_FORMAT, "'%s': the head of the member '%.*s' differs from the directory",
             a->name, (int)m->name_length, m->name);
    }
    return FRG_OK;
}

static frg_status refuse(const archive *a, const member *m, frgi_error id, const char *why)
{
    frgi_at(a->ctx, "%s", a->name);
    FAIL(a->ctx, id, "'%s': the member '%.*s' %s", a->name, (int)m->name_length, m->name, why);
}

static frg_status check_member(const archive *a, const member *m)
{
    const uint64_t n = m->name_length;
    if (!frgi_is_utf8(m->name, (int64_t)n)) {
        return malformed(a, "the name of a member is not UTF-8");
    }
    if (n < 5 || memcmp(m->name + n - 4, ".npy", 4) != 0) {
        return refuse(a, m, E_FILE_TYPE, "is no .npy array");
    }
    if (m->flags & 1) {
        return refuse(a, m, E_FILE_TYPE, "is encrypted");
    }
    if (m->method != STORED && m->method != DEFLATED) {
        return refuse(a, m, E_FILE_TYPE, "is neither stored nor deflated");
    }
    if (m->method == STORED && m->packed != m->unpacked) {
        return refuse(a, m, E_FORMAT, "is stored with two different sizes");
    }
    const bool sane = m->unpacked <= INT64_MAX / 2 &&
                      frgi_expansion_is_sane((int64_t)m->packed, (int64_t)m->unpacked);
    frgi_warn_of_expansion(a->ctx, a->name, (int64_t)m->packed, sane ? (int64_t)m->unpacked : 0);
    return sane ? FRG_OK : refuse(a, m, E_EXPANSION, "says that it expands more than 1000 times");
}

/** Inflates exactly m->unpacked bytes. */
static frg_status inflate_all(const archive *a, const member *m, const unsigned char *from,
                              char *to)
{
    z_stream z = {.zalloc = frgi_zlib_alloc, .zfree = frgi_zlib_free, .opaque = a->ctx};
    if (inflateInit2(&z, RAW_WINDOW) != Z_OK) {
        return FRG_NO_MEMORY; /* the allocator has said so */
    }
    uint64_t in = m->packed, out = m->unpacked;
    int code = Z_OK;
    z.next_in = (z_const Bytef *)from;
    z.next_out = (Bytef *)to;
    while (code == Z_OK) { /* zlib counts in unsigned int */
        const uInt give = in < (1u << 30) ? (uInt)in : 1u << 30;
        const uInt space = out < (1u << 30) ? (uInt)out : 1u << 30;
        z.avail_in = give;
        z.avail_out = space;
        code = inflate(&z, Z_NO_FLUSH);
        in -= give - z.avail_in;
        out -= space - z.avail_out;
    }
    inflateEnd(&z);
    if (code == Z_MEM_ERROR) {
        return FRG_NO_MEMORY;
    }
    return code == Z_STREAM_END && out == 0 ? FRG_OK
                                            : malformed(a, "a member does not inflate to its size");
}

static frg_status check_crc(const archive *a, const member *m, const void *bytes)
{
    const uint32_t crc = (uint32_t)crc32_z(0, bytes, (z_size_t)m->unpacked);
    return crc == m->crc ? FRG_OK : malformed(a, "a member's checksum (CRC-32) is wrong");
}

static frg_status parse_member(const archive *a, const member *m, frg_npy **out)
{
    const unsigned char *packed = NULL;
    TRY(check_member(a, m));
    TRY(find_bytes(a, m, &packed));
    if (m->method == STORED) {
        TRY(check_crc(a, m, packed));
        return frgi_npy_parse_bytes(out, a->ctx, (const char *)packed, (int64_t)m->unpacked,
                                    a->name);
    }
    char *bytes;
    TRY(NEW(a->ctx, &bytes, m->unpacked, "member of an archive"));
    frg_status status = inflate_all(a, m, packed, bytes);
    if (status == FRG_OK) {
        status = check_crc(a, m, bytes);
    }
    if (status == FRG_OK) {
        status = frgi_npy_parse_bytes(out, a->ctx, bytes, (int64_t)m->unpacked, a->name);
    }
    DROP(a->ctx, &bytes);
    return status;
}

/** The member's array, under its name without ".npy", to whoever takes it. */
static frg_status hand_over(const archive *a, const member *m, frgi_npz_taker take, void *to)
{
    frg_npy *array;
    TRY(parse_member(a, m, &array));
    char *stem;
    frg_status status = frgi_strdup(a->ctx, &stem, m->name, (size_t)m->name_length - 4);
    if (status < 0) {
        frg_npy_destroy(array);
        return status;
    }
    status = take(to, stem, array);
    DROP(a->ctx, &stem);
    return status;
}

frg_status frgi_npz_each(frg_context *ctx, const char *bytes, int64_t count, const char *name,
                         frgi_npz_taker take, void *to)
{
    const archive a = {
        .ctx = ctx, .name = name, .bytes = (const unsigned char *)bytes, .count = (uint64_t)count};
    directory d = {0};
    TRY(find_directory(&a, &d));
    uint64_t at = d.at;
    for (uint64_t i = 0; i < d.entries; i++) {
        member m;
        TRY(read_entry(&a, &at, &m));
        TRY(hand_over(&a, &m, take, to));
    }
    return at - d.at == d.bytes
               ? FRG_OK
               : malformed(&a, "its directory has more or fewer entries than it says");
}

/* ---- as a table ------------------------------------------------------------------------------ */

typedef struct {
    frg_context *ctx;
    const char *name;
    frg_table *table;
} columns;

static frg_status add_columns(void *to, const char *stem, frg_npy *array)
{
    columns *const c = to;
    return frgi_npy_to_columns(&c->table, c->ctx, array, stem, stem, c->name);
}

frg_status frgi_npz_parse(frg_table **out, frg_context *ctx, const char *bytes, int64_t count,
                          const char *name)
{
    *out = NULL;
    columns c = {ctx, name, NULL};
    const frg_status status = frgi_npz_each(ctx, bytes, count, name, add_columns, &c);
    if (status < 0) {
        frg_table_destroy(c.table);
        return status;
    }
    if (!c.table) {
        return malformed(&(archive){.ctx = ctx, .name = name}, "it holds no arrays");
    }
    *out = c.table;
    return FRG_OK;
}
