#!/usr/bin/env python3
"""Tests of the tests: changes one operator, constant or statement of a room at a time and runs the room's tests.

    tools/mutants.py ROOM... [--count 100] [--seed 1] [--only FILE:LINE] [--tests PART...]
                     [--folder build-mutants]

ROOM is a folder of src, or cli.  The candidates of a room are all changes of the kinds below, outside comments,
strings and preprocessor lines; --seed draws --count of them that compile, the same ones from the same sources.  --only
takes all candidates of one line instead, --tests the tests alone whose names contain one of the parts.

    operator    + and -, * and /, < and <=, > and >=, == and !=, && and ||, += and -=
    constant    a whole number n becomes n + 1, another number is doubled
    statement   a call or an assignment that stands alone on its line is dropped

A copy of the committed tree in FOLDER is built for the plain CPU level alone; the tests of a room are the programs
whose sources include its headers, those of cli the cases of tests/cli and the table of options.  A change is caught when
one of them fails, crashes, or takes ten times its time.  One JSON line for each change, those that no test catches with
"caught": null; the last line counts.  The exit status is 1 where less than 90 % of a room's changes are caught.  A room
takes an hour or two.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WANTED = 0.9
SWAPS = [("+=", "-="), ("-=", "+="), ("==", "!="), ("!=", "=="), ("<=", "<"), (">=", ">"), ("&&", "||"), ("||", "&&"),
         ("+", "-"), ("-", "+"), ("*", "/"), ("/", "*"), ("<", "<="), (">", ">=")]
# The public headers of a room, where they are not include/fourge/ROOM.h, and what else tests it: fourge.h stands in every test.
HEADERS = {"core": ["checkpoint.h"], "io": ["table.h", "mesh.h", "arrow.h"], "linalg": ["qr.h"], "sparse": ["fe.h"],
           "formula": ["fe.h"], "regress": ["fe.h"]}
OTHER_TESTS = {"core": ["test_files_fault", "test_io_fault", "test_demean_fault", "test_arrow", "test_table"]}
NUMBER = re.compile(r"(?<![\w.])(\d+\.?\d*(?:[eE][-+]?\d+)?f?)(?![\w.])")
ALONE = re.compile(r"\s*(?!return|goto|break|continue|else|case|default|typedef|static|const|struct|double|float|real|int|char|"
                   r"size_t|u?int\d+_t|frg_\w+ |frgi_\w+ )[\w\]\[>.()*-]+(?:\(.*\)| [-+*/|&]?= .*);\s*$")


def code_alone(text):
    """The text with comments, strings and preprocessor lines blanked, every character in its place."""
    blank = lambda found: re.sub(r"[^\n]", " ", found.group())
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def doubled(number):
    if number.isdigit():
        return str(int(number) + 1)
    return f"(2 * {number})"


def changes_of(path):
    """(line, what, text of the changed file) for every candidate of a file."""
    text = (ROOT / path).read_text()
    begin = 0
    for number, line in enumerate(code_alone(text).splitlines(), 1):
        for old, new in SWAPS:
            for found in re.finditer(rf"(?<= ){re.escape(old)}(?= )", line):
                at = begin + found.start()
                yield number, f"{old} -> {new}", text[:at] + new + text[at + len(old):]
        for found in NUMBER.finditer(line) if "enum" not in line else ():
            at, old = begin + found.start(), found.group()
            yield number, f"{old} -> {doubled(old)}", text[:at] + doubled(old) + text[at + len(old):]
        if ALONE.match(line):
            yield number, "dropped", text[:begin] + ";" + text[begin + len(line):]
        begin += len(line) + 1


def sources_of(room):
    folder = ROOT / "cli" if room == "cli" else ROOT / "src" / room
    return sorted(p.relative_to(ROOT).as_posix() for p in folder.glob("*.[ch]"))


def tests_of(room):
    """Names of the programs whose sources include a header of the room, themselves or by a header of the tests; of cli
    those of its cases, which command_of tells from programs."""
    if room == "cli":
        return sorted(p.name for p in (ROOT / "tests/cli/cases").glob("*.case")) + ["run_option_tests.py"]
    public = "|".join(re.escape(h) for h in HEADERS.get(room, [f"{room}.h"]))
    wanted = re.compile(rf'#include "(?:{room}/|(?:fourge/)?(?:{public})")')
    includes = lambda path: wanted.search(path.read_text()) is not None
    shared = [h.name for h in [*(ROOT / "tests").glob("*.h"), *(ROOT / "tests").glob("*/*.h")] if includes(h)]
    programs = [*(ROOT / "tests").glob("*/test_*.c"), *(ROOT / "tests").glob("fuzz/fuzz_*.c")]
    names = lambda path: {pathlib.Path(n).name for n in re.findall(r'#include "([^"]+)"', path.read_text())}
    chosen = [p for p in programs if includes(p) or names(p) & set(shared) or p.stem in OTHER_TESTS.get(room, ())]
    return sorted(p.stem.replace("fuzz_", "replay_") for p in chosen)


class Build:
    def __init__(self, folder):
        self.tree, self.out = folder / "tree", folder / "out"
        shutil.rmtree(self.tree, ignore_errors=True)
        self.tree.mkdir(parents=True)
        files = subprocess.run(["git", "-C", ROOT, "archive", "HEAD"], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", self.tree], input=files, check=True)
        subprocess.run(["cmake", "-S", self.tree, "-B", self.out, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O1",
                        "-DFOURGE_CPU_LEVELS=plain", "-DFOURGE_TESTS=ON"], check=True, capture_output=True)

    def make(self, tests):
        targets = sorted({t if "." not in t else "fourge_program" for t in tests})
        return subprocess.run(["cmake", "--build", self.out, "-j", str(os.cpu_count() or 1), "--target", *targets],
                              capture_output=True).returncode == 0

    def command_of(self, test):
        cli = self.tree / "tests/cli"
        if test.endswith(".case"):
            return ["bash", cli / "run_cli_tests.sh", self.out / "fourge", cli / "cases" / test]
        if test.endswith(".py"):
            return [sys.executable, cli / test, self.out / "fourge"]
        return [self.out / test, *(["--seed", "1"] if test.startswith("test_") else [])]

    def run(self, test, limit):
        """Seconds, or None where it failed or took longer."""
        began = time.monotonic()
        try:
            done = subprocess.run(self.command_of(test), capture_output=True, timeout=limit,
                                  env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        except subprocess.TimeoutExpired:
            return None
        return time.monotonic() - began if done.returncode == 0 else None


def caught_by(build, path, text, tests, seconds):
    """Name of the test that caught a change, None where none did, False where it does not compile."""
    target = build.tree / path
    kept = target.read_text()
    try:
        target.write_text(text)
        if not build.make(tests):
            return False
        return next((t for t in tests if build.run(t, 10 + 10 * seconds[t]) is None), None)
    finally:
        target.write_text(kept)


def examine(room, build, options):
    candidates = [(path, *change) for path in sources_of(room) for change in changes_of(path)]
    if options.only:
        candidates = [c for c in candidates if f"{c[0]}:{c[1]}".endswith(options.only)]
    else:
        random.Random(f"{room} {options.seed}").shuffle(candidates)
    tests = [t for t in tests_of(room) if any(part in t for part in options.tests)]
    if not tests:
        sys.exit(f"mutants.py: no test of {room} has {' or '.join(options.tests)} in its name")
    if not build.make(tests):
        sys.exit(f"mutants.py: the tests of {room} do not build: {', '.join(tests)}")
    seconds = {t: build.run(t, 600) for t in tests}
    for test in [t for t in tests if seconds[t] is None]:
        print(json.dumps({"room": room, "test": test, "note": "left out: it fails without a change"}), flush=True)
    tests = sorted((t for t in tests if seconds[t] is not None), key=lambda t: seconds[t])
    counted = caught = 0
    for path, line, what, text in candidates:
        if counted == options.count and not options.only:
            break
        by = caught_by(build, path, text, tests, seconds)
        if by is False:
            continue
        if by:
            tests = [by] + [t for t in tests if t != by]  # the next change is near in kind
        counted += 1
        caught += by is not None
        print(json.dumps({"room": room, "place": f"{path}:{line}", "change": what, "caught": by}), flush=True)
    print(json.dumps({"room": room, "candidates": len(candidates), "changes": counted, "caught": caught}), flush=True)
    return caught >= WANTED * counted


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rooms", nargs="+")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--tests", nargs="+", default=[""])
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build-mutants")
    options = parser.parse_args()
    for room in options.rooms:
        if not sources_of(room):
            sys.exit(f"mutants.py: no room {room}")
    build = Build(options.folder)
    fine = [examine(room, build, options) for room in options.rooms]
    sys.exit(not all(fine))


if __name__ == "__main__":
    main()
