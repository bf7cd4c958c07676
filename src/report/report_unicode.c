/* report_unicode.c - UTF-8 of unknown quality: decoding, display width, and which characters to
 * show.
 *
 * Column names and file names come from strangers.  Bytes that are not UTF-8 read as U+FFFD, one
 * for each maximal broken part (Unicode 15, section 3.9).  Characters that would steer a terminal,
 * a bidirectional layout or a parser instead of being seen are `hidden` here, and the writers print
 * them as \x1b, \u202e.
 */
#include <string.h>

#include "core/search.h"
#include "report/report_parts.h"

typedef struct {
    int32_t first, last;
} range;

#define WIDTH_ZERO
static const range zero_wide[] = {
#include "report/report_widths.def"
};
#undef WIDTH_ZERO

#define WIDTH_TWO
static const range two_wide[] = {
#include "report/report_widths.def"
};
#undef WIDTH_TWO

/** Controls, line and paragraph separators, bidi marks, invisible operators, byte-order marks, tags
 *  and noncharacters.  The joiners U+200C and U+200D are not here: scripts and emoji need them. */
static const range hidden_ranges[] = {
    {0x01, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},     {0x180e, 0x180e}, {0x200b, 0x200b},
    {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},   {0xfdd0, 0xfdef}, {0xfeff, 0xfeff},
    {0xfff9, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe007f},
};

#define COUNT(a) ((ptrdiff_t)(sizeof(a) / sizeof((a)[0])))

static int ends_before(const void *a, const void *c, const void *unused)
{
    (void)unused;
    return ((const range *)a)->last < *(const int32_t *)c ? -1 : 1;
}

static bool among(const range *table, ptrdiff_t count, int32_t c)
{
    const int64_t at = frgi_count_before(table, count, sizeof *table, &c, ends_before, NULL);
    return at < count && table[at].first <= c;
}

int32_t frgi_utf8_next(const char **s)
{
    const unsigned char *const p = (const unsigned char *)*s;
    int32_t c = p[0];
    if (c < 0x80) {
        *s += c != 0;
        return c;
    }
    /* the second byte's range keeps out overlong forms, surrogates and what lies above U+10FFFF */
    int length = 1;
    unsigned low = 0x80, high = 0xbf;
    if (c >= 0xc2 && c <= 0xdf) {
        length = 2;
        c &= 0x1f;
    } else if (c >= 0xe0 && c <= 0xef) {
        length = 3;
        low = c == 0xe0 ? 0xa0 : 0x80;
        high = c == 0xed ? 0x9f : 0xbf;
        c &= 0x0f;
    } else if (c >= 0xf0 && c <= 0xf4) {
        length = 4;
        low = c == 0xf0 ? 0x90 : 0x80;
        high = c == 0xf4 ? 0x8f : 0xbf;
        c &= 0x07;
    } else {
        *s += 1;
        return 0xfffd;
    }
    for (int i = 1; i < length; i++) {
        if (p[i] < low || p[i] > high) {
            *s += i;
            return 0xfffd;
        }
        c = c << 6 | (p[i] & 0x3f);
        low = 0x80;
        high = 0xbf;
    }
    *s += length;
    return c;
}

bool frgi_utf8_hidden(int32_t c)
{
    return among(hidden_ranges, COUNT(hidden_ranges), c) || (c & 0xfffe) == 0xfffe;
}

int frgi_utf8_width(int32_t c)
{
    if (c < 0x300)
        return c >= 0x20 && c != 0x7f;
    if (among(zero_wide, COUNT(zero_wide), c))
        return 0;
    return among(two_wide, COUNT(two_wide), c) ? 2 : 1;
}

int64_t frgi_text_width(const char *s, size_t length)
{
    int64_t width = 0;
    for (const char *const end = s + length; s < end && *s;)
        width += frgi_utf8_width(frgi_utf8_next(&s));
    return width;
}
