/* io_help.h - for the tests of src/io: tables as text, bytes of gzip and zip files, temporary
 * files. */
#ifndef FOURGE_IO_HELP_H
#define FOURGE_IO_HELP_H

#include <zlib.h>

#include "fault.h"
#include "fourge/table.h"

/* ---- tables ---------------------------------------------------------------------------------- */

/** FNV-1a over everything a table says, values by their bits. */
TEST_UNUSED static uint64_t table_hash(const frg_table *t)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const int64_t rows = frg_table_rows(t);
    fault_hash(&hash, &rows, sizeof rows);
    for (int64_t i = 0; i < frg_table_columns(t); i++) {
        const frg_column *const c = frg_table_column(t, i);
        const size_t n = (size_t)rows;
        fault_hash(&hash, c->name, strlen(c->name) + 1);
        fault_hash(&hash, &c->kind, sizeof c->kind);
        fault_hash(&hash, &c->n_missing, sizeof c->n_missing);
        fault_hash(&hash, c->numbers ? (const void *)c->numbers : "", c->numbers ? 8 * n : 0);
        fault_hash(&hash, c->integers ? (const void *)c->integers : "", c->integers ? 8 * n : 0);
        fault_hash(&hash, c->codes ? (const void *)c->codes : "", c->codes ? 4 * n : 0);
        for (int64_t k = 0; k < c->n_labels; k++)
            fault_hash(&hash, c->labels[k], strlen(c->labels[k]) + 1);
    }
    return hash;
}

/** The table as "name:kind value value ...|name:kind ...": kind n i b c, missing values "?", codes
 *  with their labels, all in one static-free buffer of the caller. */
TEST_UNUSED static const char *table_text(const frg_table *t, char *to, size_t room)
{
    size_t used = 0;
    to[0] = '\0';
    for (int64_t i = 0; t && i < frg_table_columns(t) && used + 100 < room; i++) {
        const frg_column *const c = frg_table_column(t, i);
        used += (size_t)snprintf(to + used, room - used, "%s%s:%c", i ? "|" : "", c->name,
                                 "nibc"[c->kind]);
        for (int64_t r = 0; r < c->n && used + 100 < room; r++) {
            char *const at = to + used;
            const size_t left = room - used;
            int n;
            if (c->numbers)
                n = c->numbers[r] != c->numbers[r] ? snprintf(at, left, " ?")
                                                   : snprintf(at, left, " %.17g", c->numbers[r]);
            else if (c->integers)
                n = c->integers[r] == FRG_MISSING_INTEGER
                        ? snprintf(at, left, " ?")
                        : snprintf(at, left, " %" PRId64, c->integers[r]);
            else if (c->codes[r] < 0)
                n = snprintf(at, left, " ?");
            else if (c->kind == FRG_BOOL)
                n = snprintf(at, left, " %d", (int)c->codes[r]);
            else
                n = snprintf(at, left, " %d=%s", (int)c->codes[r], c->labels[c->codes[r]]);
            used += (size_t)n;
        }
    }
    return to;
}

TEST_UNUSED static frg_status parse_text(frg_table **t, frg_context *ctx, const char *text,
                                         const frg_table_opts *o)
{
    return frg_table_parse(t, ctx, text, (int64_t)strlen(text), "t.csv", o);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

typedef struct {
    unsigned char *data;
    size_t count, room;
} byte_string;

TEST_UNUSED static void add_bytes(byte_string *b, const void *bytes, size_t count)
{
    if (b->count + count > b->room) {
        b->room = 2 * (b->count + count) + 64;
        b->data = realloc(b->data, b->room);
        if (!b->data)
            abort();
    }
    if (count)
        memcpy(b->data + b->count, bytes, count);
    b->count += count;
}

/** `width` bytes, the lowest first. */
TEST_UNUSED static void add_number(byte_string *b, uint64_t x, int width)
{
    for (int i = 0; i < width; i++)
        add_bytes(b, &(unsigned char){(unsigned char)(i < 8 ? x >> 8 * i : 0)}, 1);
}

TEST_UNUSED static void drop_bytes(byte_string *b)
{
    free(b->data);
    *b = (byte_string){0};
}

/** Deflates; window 31 makes a gzip member, -15 a raw stream. */
TEST_UNUSED static void add_deflated(byte_string *b, const void *bytes, size_t count, int window)
{
    z_stream z;
    memset(&z, 0, sizeof z);
    if (deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    const size_t most = deflateBound(&z, count) + 64;
    unsigned char *out = malloc(most);
    if (!out)
        abort();
    z.next_in = (z_const Bytef *)bytes;
    z.avail_in = (uInt)count;
    z.next_out = out;
    z.avail_out = (uInt)most;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    add_bytes(b, out, most - z.avail_out);
    deflateEnd(&z);
    free(out);
}

TEST_UNUSED static void add_gzip(byte_string *b, const char *text)
{
    add_deflated(b, text, strlen(text), 31);
}

/** The frame of RFC 8878, 3.1.1: magic; descriptor 0xa0 (one segment, four bytes of size); size; raw
 *  blocks of at most `most` bytes, each of three bytes of header: last + 2 type + 8 size. */
TEST_UNUSED static void add_zstd_bytes(byte_string *b, const void *bytes, size_t n, size_t most)
{
    add_number(b, 0xfd2fb528, 4);
    add_number(b, 0xa0, 1);
    add_number(b, n, 4);
    for (size_t at = 0, k; at == 0 || at < n; at += k) {
        k = n - at < most ? n - at : most;
        add_number(b, (at + k == n) | k << 3, 3);
        add_bytes(b, (const char *)bytes + at, k);
        if (k == 0)
            break;
    }
}

TEST_UNUSED static void add_zstd(byte_string *b, const char *text, size_t most)
{
    add_zstd_bytes(b, text, strlen(text), most);
}

/** A member of a zip archive, for add_zip. */
typedef struct {
    const char *name;
    const void *bytes;
    size_t count;
    bool deflated, wide; /* wide: sizes in the 64-bit field, behind one of times if deflated */
} zip_member;

TEST_UNUSED static void add_zip(byte_string *b, const zip_member *members, int n)
{
    byte_string directory = {0};
    for (int i = 0; i < n; i++) {
        const zip_member *const m = &members[i];
        const size_t at = b->count, name = strlen(m->name);
        byte_string packed = {0};
        if (m->deflated)
            add_deflated(&packed, m->bytes, m->count, -15);
        else
            add_bytes(&packed, m->bytes, m->count);
        const uint32_t crc = (uint32_t)crc32(0, m->bytes, (uInt)m->count);
        for (int central = 0; central < 2; central++) {
            byte_string *const to = central ? &directory : b;
            const uint64_t wide = UINT32_MAX;
            add_bytes(to, central ? "PK\1\2" : "PK\3\4", 4);
            if (central)
                add_number(to, 45, 2);
            add_number(to, 45, 2);
            add_number(to, 0, 2);
            add_number(to, m->deflated ? 8 : 0, 2);
            add_number(to, 0, 4);
            add_number(to, crc, 4);
            add_number(to, m->wide ? wide : packed.count, 4);
            add_number(to, m->wide ? wide : m->count, 4);
            add_number(to, name, 2);
            const bool timed = m->wide && m->deflated;
            add_number(to, timed ? 29 : m->wide ? 20 : 0, 2);
            if (central) {
                add_number(to, 0, 10);
                add_number(to, at, 4);
            }
            add_bytes(to, m->name, name);
            if (timed) {
                add_number(to, 0x5455, 2);
                add_number(to, 5, 2);
                add_number(to, 0x1234567801, 5);
            }
            if (m->wide) {
                add_number(to, 1, 2);
                add_number(to, 16, 2);
                add_number(to, m->count, 8);
                add_number(to, packed.count, 8);
            }
        }
        add_bytes(b, packed.data, packed.count);
        drop_bytes(&packed);
    }
    const size_t at = b->count;
    add_bytes(b, directory.data, directory.count);
    add_bytes(b, "PK\5\6", 4);
    add_number(b, 0, 4);
    add_number(b, (uint64_t)n, 2);
    add_number(b, (uint64_t)n, 2);
    add_number(b, directory.count, 4);
    add_number(b, at, 4);
    add_number(b, 0, 2);
    drop_bytes(&directory);
}

/** An .npy file of version 1, 2 or 3 with this header dictionary and these elements. */
TEST_UNUSED static void add_npy(byte_string *b, int version, const char *header, const void *bytes,
                                size_t count)
{
    add_bytes(b, "\x93NUMPY", 6);
    add_number(b, (uint64_t)version, 1);
    add_number(b, 0, 1);
    add_number(b, strlen(header) + 1, version == 1 ? 2 : 4);
    add_bytes(b, header, strlen(header));
    add_bytes(b, "\n", 1);
    add_bytes(b, bytes, count);
}

/* ---- files ----------------------------------------------------------------------------------- */

TEST_UNUSED static bool write_file(const char *path, const void *bytes, size_t count)
{
    FILE *const f = fopen(path, "wb");
    const bool fine = f && fwrite(bytes, 1, count, f) == count;
    return (!f || fclose(f) == 0) && fine;
}

#endif
