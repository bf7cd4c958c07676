#!/usr/bin/env python3
"""The table of tools/coverage.sh, from gcovr's JSON: coverage_table.py coverage.json [ROOM...]

A row a room (a folder of src, or cli): lines, the share of them that ran, the arms of branches, the share of them that was
taken, and the same for the arms of TRY and TRY_TO by themselves.  The arm of a TRY that returns hands on a failure which is
counted where it arises; most can be reached by fault injection alone, and there are as many of them as of calls.  All other
arms count, also those of REQUIRE and FAIL: each is a mistake of a caller that some test should make.  A line that is compiled
several times (templates, CPU levels) counts once; an arm of it is taken when it was taken in one of them.

With rooms, the lines that did not run and the arms that were not taken are listed besides, a line each: FILE:LINE lines or arms.
"""
import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRY = re.compile(r"\bTRY(?:_TO)?\(")


def room_of(path):
    parts = pathlib.PurePath(path).parts
    return parts[1] if parts[0] == "src" else parts[0]


def arms(line, text):
    """Counts of the arms of a line, those of TRY's own test apart: it comes last, after those of its argument."""
    counts = [b["count"] for b in line["branches"]]
    return (counts[:-2], counts[-2:]) if TRY.search(text) else (counts, [])


def main():
    rows = collections.defaultdict(lambda: [0] * 6)
    listed = sys.argv[2:]
    for file in sorted(json.load(open(sys.argv[1]))["files"], key=lambda f: f["file"]):
        room, text = room_of(file["file"]), (ROOT / file["file"]).read_text().splitlines()
        for line in file["lines"]:
            if line.get("gcovr/noncode"):
                continue
            number = line["line_number"]
            plain, handed = arms(line, text[number - 1])
            figures = (1, line["count"] > 0, len(plain), sum(c > 0 for c in plain), len(handed), sum(c > 0 for c in handed))
            for where in (room, "all"):
                rows[where] = [a + b for a, b in zip(rows[where], figures)]
            if room in listed and not line["count"]:
                print(f"{file['file']}:{number} line: {text[number - 1].strip()}")
            elif room in listed and figures[2] > figures[3]:
                print(f"{file['file']}:{number} {figures[2] - figures[3]} of {figures[2]} arms: {text[number - 1].strip()}")
    print("| room | lines | run | arms of branches | taken | arms of TRY | taken |\n|---|---|---|---|---|---|---|")
    share = lambda part, of: f"{100 * part / of:.1f} %" if of else ""
    for where in sorted(rows, key=lambda r: (r == "all", r)):
        n = rows[where]
        print(f"| {where} | {n[0]} | {share(n[1], n[0])} | {n[2]} | {share(n[3], n[2])} | {n[4]} | {share(n[5], n[4])} |")


if __name__ == "__main__":
    main()
