#!/usr/bin/env python3
"""Writes the constant tables of src/report and src/io: powers of ten and five, display widths.

    python3 tools/make_number_tables.py pow10  > src/report/report_pow10.def
    python3 tools/make_number_tables.py pow5   > src/io/decimal_pow5.def
    python3 tools/make_number_tables.py widths > src/report/report_widths.def

pow10:  g(k) = ceil(10^k / 2^(e - 127)), e = floor(log2 10^k), k = -292 .. 324, as two 64-bit halves: the
        multipliers of Schubfach (Giulietti 2020).
pow5:   the first 128 bits of 5^q, q = -342 .. 308, cut off; of 5^q >= 2^-64, q = -27 .. -1, plus one unit, so
        that exact halves come out as the test for ties in src/io/decimal.h expects them (Lemire 2021).
widths: ranges of code points of width 0 and 2, from Python's unicodedata.  Unassigned code points may
        fall into either range, which keeps the tables short.
"""
import sys
import unicodedata
from fractions import Fraction


def pow10():
    print("/* report_pow10.def - 10^k for k = -292 .. 324, rounded up to 128 bits, high half first.")
    print(" * Written by tools/make_number_tables.py. */")
    for k in range(-292, 325):
        e = (k * 1741647) >> 19
        x = Fraction(10) ** k / Fraction(2) ** (e - 127)
        g = -((-x.numerator) // x.denominator)
        assert 1 << 127 <= g < 1 << 128
        print("{0x%016xu, 0x%016xu}," % (g >> 64, g & (1 << 64) - 1), end="\n" if k % 2 else " ")
    print()


def pow5():
    print("/* decimal_pow5.def - the first 128 bits of 5^q for q = -342 .. 308, high half first.")
    print(" * Written by tools/make_number_tables.py. */")
    for q in range(-342, 309):
        x = 5**q if q >= 0 else 2**1151 // 5**-q
        bits = x.bit_length()
        g = (x << 128 >> bits) + (-27 <= q < 0)
        print("{0x%016xu, 0x%016xu}," % (g >> 64, g & (1 << 64) - 1), end="\n" if q % 2 else " ")
    print()


def ranges(inside, free):
    """Maximal runs of inside(c) or free(c) that start and end inside, as (first, last)."""
    out, first, last = [], None, None
    for c in range(0x300, 0x110000):
        if inside(c):
            first = c if first is None else first
            last = c
        elif first is not None and not free(c):
            out.append((first, last))
            first = None
    if first is not None:
        out.append((first, last))
    return out


def widths():
    def category(c):
        return unicodedata.category(chr(c))

    def free(c):
        return category(c) == "Cn" and not 0x20000 <= c < 0x40000

    def zero(c):
        return category(c) in ("Mn", "Me", "Cf") or 0x1160 <= c <= 0x11FF

    def wide(c):
        return (unicodedata.east_asian_width(chr(c)) in "WF" and not zero(c)) or 0x20000 <= c < 0x3FFFE

    print("/* report_widths.def - ranges of code points, first and last, of display width 0 (WIDTH_ZERO) and")
    print(" * 2 (WIDTH_TWO); Unicode %s.  Written by tools/make_number_tables.py. */" % unicodedata.unidata_version)
    for name, inside in (("WIDTH_ZERO", zero), ("WIDTH_TWO", wide)):
        print("#ifdef " + name)
        line = ""
        for a, b in ranges(inside, free):
            item = "{0x%x, 0x%x}," % (a, b)
            if len(line) + len(item) > 98:
                print(line.rstrip())
                line = ""
            line += item + " "
        print(line.rstrip())
        print("#endif")


{"pow10": pow10, "pow5": pow5, "widths": widths}[sys.argv[1]]()
