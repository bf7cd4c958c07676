/* dta_strls.c - the long strings of a file of formats 117 and later, looked at before ReadStat
 * hands them on: it ends them where it finds a NUL, and binary ones have none.
 *
 *     <strls> {"GSO" v o t n contents} </strls>     v: variable, 4 bytes; o: row, 4 or 8; t: 129
 *                                                   binary, 130 text; n: bytes, 4
 */
#include "io/io.h"

#if FOURGE_READSTAT
#include <string.h>

#include "io/dta.h"

typedef struct {
    const char *at, *end;
    bool big; /* the highest byte comes first */
} cursor;

/** The next number of `width` bytes; the cursor has them. */
static uint64_t take_number(cursor *c, int width)
{
    uint64_t x = 0;
    for (int i = 0; i < width; i++) {
        const uint64_t byte = (unsigned char)c->at[c->big ? i : width - 1 - i];
        x = x << 8 | byte;
    }
    c->at += width;
    return x;
}

static bool begins(const cursor *c, const char *tag)
{
    const size_t n = strlen(tag);
    return (size_t)(c->end - c->at) >= n && memcmp(c->at, tag, n) == 0;
}

/** Puts the cursor behind <strls>, which the eleventh number of the map tells the place of. */
static bool find_section(cursor *c, const char *bytes, int64_t count)
{
    enum { MAP_PLACES = 14, STRLS = 10 };
    const char *const order = memmem(bytes, (size_t)count, "<byteorder>MSF", 14);
    const char *const map = memmem(bytes, (size_t)count, "<map>", 5);
    *c = (cursor){.at = map, .end = bytes + count, .big = order != NULL && order < map};
    if (!map || c->end - map < 5 + 8 * MAP_PLACES) {
        return false;
    }
    c->at = map + 5 + 8 * STRLS;
    const uint64_t place = take_number(c, 8);
    if (place > (uint64_t)count) {
        return false;
    }
    c->at = bytes + place;
    if (!begins(c, "<strls>")) {
        return false;
    }
    c->at += strlen("<strls>");
    return true;
}

frg_status frgi_dta_check_strls(frg_context *ctx, const char *bytes, int64_t count, int version,
                                const char *file)
{
    cursor c;
    const int row_bytes = version < 118 ? 4 : 8, head = 3 + 4 + row_bytes + 1 + 4;
    bool sound = find_section(&c, bytes, count);
    while (sound && begins(&c, "GSO") && c.end - c.at >= head) {
        c.at += 3;
        const uint64_t variable = take_number(&c, 4), row = take_number(&c, row_bytes);
        c.at++;
        const uint64_t n = take_number(&c, 4);
        sound = n <= (uint64_t)(c.end - c.at);
        if (sound && (n == 0 || c.at[n - 1] != '\0')) {
            frgi_at(ctx, "%s", file);
            FAIL(ctx, E_FILE_TYPE,
                 "row %llu of column %llu of '%s' is a binary strL; leave the columns of strL out",
                 (unsigned long long)row, (unsigned long long)variable, file);
        }
        c.at += sound ? n : 0;
    }
    if (!sound || !begins(&c, "</strls>")) {
        frgi_at(ctx, "%s", file);
        FAIL(ctx, E_FORMAT, "the long strings of '%s' do not follow Stata's format", file);
    }
    return FRG_OK;
}
#endif
