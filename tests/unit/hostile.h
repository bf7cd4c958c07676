/* hostile.h - names that want to break out of every format. */
#ifndef FOURGE_HOSTILE_H
#define FOURGE_HOSTILE_H

#include "test.h"

enum { HOSTILE_NAMES = 500, HOSTILE_ROOM = 1 << 17 };

static const char *const hostile_parts[] = {
    "<script>alert(1)</script>",
    "</td></table>",
    "<!--",
    "]]>",
    "\" onload=\"x",
    "'",
    "&amp;",
    "&lt",
    "\\input{/etc/passwd}",
    "\\",
    "}",
    "{",
    "$x$",
    "%",
    "#",
    "^^41",
    "~",
    "_",
    "--",
    "``",
    "\\\\[2cm]",
    "*",
    "[a](b)",
    "|",
    "\\|",
    "`",
    "**",
    "!",
    "\x1b[31m",
    "\x1b]0;t\x07",
    "\n",
    "\r\n",
    "\t",
    "\x01",
    "\x7f",
    "\xc2\x9b",
    "\xe2\x80\xae",
    "\xe2\x81\xa6",
    "\xe2\x80\xa8",
    "\xef\xbb\xbf",
    "\xf3\xa0\x81\x81",
    "\xff",
    "\xc0\xaf",
    "\xed\xa0\x80",
    "\xf4\x90\x80\x80",
    "\xe2\x82",
    "\xef\xbf\xbf",
    "e\xcc\x81",
    "\xe6\x97\xa5\xe6\x9c\xac",
    "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac",
    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d",
    ",",
    "\"",
    "\"\"",
    "=cmd|' /C calc'!A0",
    "+1",
    "-2",
    "@x",
    "1.",
    "# h",
    "- x",
    "%s%n%d",
    "a b",
    "log_wage",
    "",
    " ",
    "x",
};

/** Name i: a few parts in random order; two of them are 64 KiB long. */
TEST_UNUSED static void hostile_name(int i, char *out)
{
    enum { PARTS = sizeof hostile_parts / sizeof *hostile_parts };
    const size_t least = i % 250 == 249 ? 1 << 16 : 0;
    size_t length = 0;
    for (int64_t k = 0; k < 1 + i % 6 || length < least; k++) {
        const char *const part = hostile_parts[i < PARTS && k == 0 ? i : test_below(PARTS)];
        length += (size_t)sprintf(out + length, "%s", part);
    }
}

/** Decodes UTF-8 by the table of RFC 3629; -1 where it is broken, and *p passes the broken part
 *  alone. */
TEST_UNUSED static int32_t strict_utf8(const unsigned char **p)
{
    static const struct {
        unsigned char lead, lead_to, second, second_to, more;
    } rows[] = {
        {0x00, 0x7f, 0, 0, 0},       {0xc2, 0xdf, 0x80, 0xbf, 1}, {0xe0, 0xe0, 0xa0, 0xbf, 2},
        {0xe1, 0xec, 0x80, 0xbf, 2}, {0xed, 0xed, 0x80, 0x9f, 2}, {0xee, 0xef, 0x80, 0xbf, 2},
        {0xf0, 0xf0, 0x90, 0xbf, 3}, {0xf1, 0xf3, 0x80, 0xbf, 3}, {0xf4, 0xf4, 0x80, 0x8f, 3}};
    static const unsigned char mask[] = {0x7f, 0x1f, 0x0f, 0x07};
    const unsigned char *s = *p;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (s[0] < rows[r].lead || s[0] > rows[r].lead_to)
            continue;
        int32_t c = s[0] & mask[rows[r].more];
        for (int i = 1; i <= rows[r].more; i++) {
            const unsigned char from = i == 1 ? rows[r].second : 0x80,
                                to = i == 1 ? rows[r].second_to : 0xbf;
            if (s[i] < from || s[i] > to) {
                *p = s + i;
                return -1;
            }
            c = c << 6 | (s[i] & 0x3f);
        }
        *p = s + 1 + rows[r].more;
        return c;
    }
    *p = s + 1;
    return -1;
}

/** Would it drive a terminal or turn a line around? */
TEST_UNUSED static bool acts(int32_t c)
{
    return (c < 0x20 && c != '\n') || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x61c ||
           c == 0x2028 || c == 0x2029 || c == 0xfeff || (c >= 0xe0000 && c <= 0xe007f);
}

/** Valid UTF-8 without characters that act, line feeds apart. */
TEST_UNUSED static bool harmless(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        const int32_t c = strict_utf8(&p);
        if (c < 0 || acts(c))
            return false;
    }
    return true;
}

/** Is `text` what `name` becomes when each broken part is replaced by U+FFFD and nothing else
 *  changes? */
TEST_UNUSED static bool same_but_broken(const char *text, const char *name)
{
    const unsigned char *t = (const unsigned char *)text, *n = (const unsigned char *)name;
    while (*n && *t) {
        const int32_t want = strict_utf8(&n), got = strict_utf8(&t);
        if (got != (want < 0 ? 0xfffd : want))
            return false;
    }
    return !*n && !*t;
}

#endif
