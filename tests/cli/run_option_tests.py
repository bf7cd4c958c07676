"""Every option of the program acts or is refused: run_option_tests.py PROGRAM [PART OF A ROW]; prints TAP.

tests/cli/options.table has a row for each option of each command:

    line NAME :: WORDS                           a line that the rows below speak of
    LINES :: OPTION :: WHAT DIFFERS [:: WORDS]   beside these lines; WORDS are added to both runs
    untried COMMAND :: OPTION ... :: REASON      options of a command that no row tries

LINES are names of lines, one after the other, or `all` and names after a minus; `all` has no line with a slash.  Each run is in a folder of its own with
the inputs of make_inputs.  WHAT DIFFERS is one of

    json KEYS         values of the result in JSON whose path matches KEYS, of the line with the option and without it
    text PATTERN      standard output or error matches with the option and not without it
    says PATTERN      the same, where the line alone is not run
    silent PATTERN    the other way round
    file NAME         a file that the line alone does not write
    changed NAME      the contents of a file that both write
    status N          the exit status
    threads N         as many threads enter a parallel region, as the OpenMP runtime tells, and without it one
    refused PATTERN   an error that names the option and matches

The echo of a setting is no effect: rows name keys that are results or tell what was done.  The list of options is the
program's own (--options-json): one without a row, or a row without an option, is a failure.
"""

import concurrent.futures
import gzip
import json
import math
import os
import pathlib
import random
import re
import shlex
import struct
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).parent
program = str(pathlib.Path(sys.argv[1]).resolve())
part = sys.argv[2] if len(sys.argv) > 2 else ""


# ---- inputs ----

def write_npy(path, kind, shape, values):
    descr = {"d": "<f8", "q": "<i8"}[kind]
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    head += " " * (-(11 + len(head)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}{kind}", *values))


def write_csv(path, names, rows):
    path.write_text("\n".join([",".join(names)] + [",".join(map(str, row)) for row in rows]) + "\n")


def make_inputs(folder):
    draw = random.Random(1)
    rows = []
    for i in range(400):
        a, b = draw.randrange(60), draw.randrange(50)
        x, z = draw.gauss(0, 1) + a / 40, draw.gauss(0, 1)
        rows.append([round(x + 0.5 * z + a / 20 - b / 30 + draw.gauss(0, 1), 6), round(x, 6), round(z, 6), f"a{a}", f"b{b}", a % 7,
                     1 + i % 3, round(1 + 1e-5 * x, 12)])
    names = ["y", "x", "z", "a", "b", "g", "w", "flat"]
    rows += [[1.0, 0.5, 0.25, "lone", "b1", 1, 1, 1.0]]
    write_csv(folder / "panel.csv", names, rows)
    (folder / "panel.dat").write_text((folder / "panel.csv").read_text().replace(",", "\t"))
    (folder / "semi.csv").write_text((folder / "panel.csv").read_text().replace(",", ";"))
    write_csv(folder / "gaps.csv", names, [[-99 if i % 9 == 0 else r[0]] + r[1:] for i, r in enumerate(rows)])
    # two sets of workers and firms that nothing joins
    write_csv(folder / "sets.csv", ["y", "x", "a", "b"], [[draw.gauss(0, 1), draw.gauss(0, 1), 4 * (i % 3 == 0) + draw.randrange(4),
                                                            3 * (i % 3 == 0) + draw.randrange(3)] for i in range(90)])
    wave = [[round(i / 10, 3), i % 3, round(math.sin(i / 3) + 0.1 * draw.gauss(0, 1), 5), round(math.cos(i / 3), 5), round(0.01 + 0.01 * (i % 4), 3)]
            for i in range(40)]
    write_csv(folder / "wave.csv", ["x", "z", "y", "y2", "v"], wave)
    write_csv(folder / "waves.csv", ["x", "y"], [[i / 10, round(math.sin(i / 3) + 0.1 * draw.gauss(0, 1), 5)] for i in range(500)])
    (folder / "wave.dat").write_text((folder / "wave.csv").read_text().replace(",", "\t"))
    (folder / "wavesemi.csv").write_text((folder / "wave.csv").read_text().replace(",", ";"))
    (folder / "waveonly.csv").write_text((folder / "wave.csv").read_text().split("\n", 1)[1])
    write_csv(folder / "wavegap.csv", ["x", "z", "y"], [row[:2] + ["" if i == 7 else row[2]] for i, row in enumerate(wave)])
    write_csv(folder / "waveodd.csv", ["x", "z", "y"], [row[:2] + ["-99" if i == 7 else row[2]] for i, row in enumerate(wave)])
    write_csv(folder / "new.csv", ["x", "z"], [[round(0.05 + i / 7, 4), i % 3] for i in range(6)])
    (folder / "list").write_text("wave.csv\nwave.csv\n")
    (folder / "listgap").write_text("wavegap.csv\nwave.csv\n")
    n, m = 30, 26
    points = [[draw.gauss(0, 1), draw.gauss(0, 1)] for _ in range(n)]
    others = [[draw.gauss(0, 1), draw.gauss(0, 0.5), draw.gauss(0, 0.2)] for _ in range(m)]
    for name, p in (("points", points), ("others", others)):
        (folder / f"{name}.csv").write_text("".join(",".join(f"{v:.5f}" for v in row) + "\n" for row in p))
    (folder / "points.dat").write_text((folder / "points.csv").read_text().replace(",", "\t"))
    for name in ("panel", "wave", "points"):
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress((folder / f"{name}.csv").read_bytes(), mtime=0))
    (folder / "semi_points.csv").write_text((folder / "points.csv").read_text().replace(",", ";"))
    (folder / "gap_points.csv").write_text("none,0.5\n" + (folder / "points.csv").read_text())
    (folder / "arcs.txt").write_text("".join(f"{i} {(i + 1) % 8} {1 + i}\n" for i in range(8)))
    write_npy(folder / "cost.npy", "d", (n, m), [abs(draw.gauss(0, 1)) for _ in range(n * m)])
    write_npy(folder / "wide.npy", "d", (n, m), [draw.random() * 400 for _ in range(n * m)])
    write_npy(folder / "plan.npy", "d", (n, m), [draw.random() / (n * m) for _ in range(n * m)])
    write_npy(folder / "product.npy", "d", (n, m), [1 / (n * m)] * (n * m))
    write_npy(folder / "potentials.npy", "d", (n + m,), [draw.gauss(0, 0.1) for _ in range(n + m)])
    write_npy(folder / "u.npy", "d", (n,), [(1 + i) / (n * (n + 1) / 2) for i in range(n)])
    write_npy(folder / "v.npy", "d", (m,), [(1 + i) / (m * (m + 1) / 2) for i in range(m)])
    write_npy(folder / "nodes.npy", "q", (3,), [0, 4, 9])
    write_npy(folder / "X.npy", "d", (400, 3), [draw.gauss(0, 1) for _ in range(1200)])
    write_npy(folder / "C.npy", "q", (400, 2), [draw.randrange(60) if i % 2 else draw.randrange(50) for i in range(800)])
    write_npy(folder / "XL.npy", "d", (30000, 2), [draw.gauss(0, 1) for _ in range(60000)])
    write_npy(folder / "CL.npy", "q", (30000, 2), [draw.randrange(900) for _ in range(60000)])
    write_csv(folder / "treated.csv", ["y", "unit", "time", "treat"], [[draw.gauss(0, 1), u, t, int(u > 3 and t > u)]
                                                                     for u in range(8) for t in range(9)])
    write_csv(folder / "study.csv", ["y", "unit", "time", "first"], [[draw.gauss(0, 1), u, t, (0, 4, 6)[u % 3]] for u in range(12) for t in range(9)])
    write_csv(folder / "long.csv", ["y", "x", "a", "b"], [[draw.random(), draw.random(), draw.randrange(900), draw.randrange(800)] for _ in range(20000)])
    write_npy(folder / "W.npy", "d", (400,), [1 + draw.random() for _ in range(400)])
    write_npy(folder / "large.npy", "d", (300, 300), [abs(draw.gauss(0, 1)) for _ in range(90000)])
    write_npy(folder / "members.npy", "d", (8, 96, 96), [draw.random() - 0.5 for _ in range(8 * 96 * 96)])
    write_npy(folder / "A.npy", "d", (2, 9, 6), [draw.gauss(0, 1) for _ in range(108)])
    counts = []  # level 3 of a has no outcome but 0
    for i in range(300):
        x, x2, a = draw.gauss(0, 1), draw.random(), draw.randrange(8)
        mean = math.exp(0.4 * x + 0.2 * a + x2)
        counts.append([0 if a == 3 else sum(draw.random() < mean / 20 for _ in range(20)), round(mean * draw.expovariate(1) + 0.01, 6),
                       round(x, 6), round(x2, 6), a])
    write_csv(folder / "counts.csv", ["c", "p", "x", "x2", "a"], counts)


# ---- runs ----

class Run:
    def __init__(self, words, inputs, environment):
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(inputs):
                os.link(os.path.join(inputs, name), os.path.join(folder, name))
            done = subprocess.run([program] + words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
            self.status, self.out, self.error = done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
            self.files = {p: (pathlib.Path(folder) / p).read_bytes() for p in self.new_files(folder, inputs)}

    @staticmethod
    def new_files(folder, inputs):
        found = [str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*") if p.is_file()]
        return [p for p in found if not os.path.exists(os.path.join(inputs, p))]


def flat(value, path=""):
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return {path: value}
    return {k: v for key, item in items for k, v in flat(item, f"{path}.{key}" if path else str(key)).items()}


def results(text):
    """The paths of the values of all JSON objects of a run."""
    values = {}
    for i, line in enumerate([text] if text.count("\n{") == 0 else text.splitlines()):
        values.update(flat(json.loads(line), str(i) if i else ""))
    return values


class Table:
    def __init__(self, path):
        self.lines, self.rows, self.untried = {}, [], set()
        for text in path.read_text().splitlines():
            cells = [cell.strip() for cell in text.split("::")]
            if text.strip() == "" or text.startswith("#"):
                continue
            if cells[0].startswith("line "):
                self.lines[cells[0].split()[1]] = shlex.split(cells[1])
            elif cells[0].startswith("untried "):
                self.untried |= {(cells[0].split()[1], option.lstrip("-")) for option in cells[1].split()}
            else:
                self.rows += [(name, cells[1], cells[2], cells[3] if len(cells) > 3 else "") for name in self.names(cells[0].split())]

    def names(self, words):
        if words[0] != "all":
            return words
        without = {word.lstrip("-") for word in words[1:]}
        return [name for name in self.lines if "/" not in name and name not in without]


# ---- what differs ----

BASE = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "OPENBLAS_", "FOURGE_"))}
BASE |= {"OMP_WAIT_POLICY": "passive", "NO_COLOR": "", "TERM": "xterm", "LC_ALL": "C.UTF-8", "FOURGE_DATA": str(here.parent.parent / "data")}
TELLS = {"OMP_DISPLAY_AFFINITY": "TRUE", "OMP_AFFINITY_FORMAT": "thread %n of %N"}


def check(row, lines, run):
    """None, or what is wrong."""
    name, option, criterion, more = row
    kind, _, what = criterion.partition(" ")
    base = lines[name] + shlex.split(more)
    changed = base + shlex.split(option) if base[0] != "resume" else ["resume"] + shlex.split(option) + base[1:]
    if kind == "json":
        base, changed = base + ["--format", "json"], changed + ["--format", "json"]
    if kind == "threads":
        base, one = None, run(base + ["--threads", "1"], True)
        other = run(changed, True)
        seen = {int(n) for n in re.findall(r"thread \d+ of (\d+)", other.error)}
        return None if max(seen, default=1) == int(what) and "of 2" not in one.error else f"threads {seen}"
    after = run(changed)
    before = after if kind in ("says", "refused") else run(base)
    said, said_before = after.out + after.error, before.out + before.error
    if kind not in ("refused", "says", "status", "text", "silent") and (after.status not in (0, 1) or before.status not in (0, 1)):
        return f"status {before.status}, {after.status}: {before.error}{after.error}"
    if kind == "json":
        a, b = ({k: v for k, v in results(r.out).items() if re.search(what, k)} for r in (before, after))
        if a == b:
            one, two = results(before.out), results(after.out)
            moved = [k for k in {**one, **two} if one.get(k) != two.get(k) and "seconds" not in k]
            return f"no change, but of {moved[:12]}" if a else f"there is no {what}"
        return None
    verdicts = {"text": lambda: re.search(what, said) and not re.search(what, said_before),
                "says": lambda: re.search(what, said),
                "silent": lambda: re.search(what, said_before) and not re.search(what, said),
                "file": lambda: after.files.get(what) and what not in before.files,
                "changed": lambda: what in before.files and what in after.files and after.files[what] != before.files[what],
                "status": lambda: after.status == int(what) != before.status,
                "refused": lambda: after.status > 1 and shlex.split(option)[0].split("=")[0] in after.error and re.search(what, after.error)}
    if verdicts[kind]():
        return None
    return f"status {after.status}, files {sorted(after.files)}, said: {said[:600]}"


def missing_rows(table, commands):
    """Options of the program without a row, and rows of options that it has not got."""
    known = {(name, option["name"]) for name, command in commands.items() for option in command["options"] if option["built"]}
    letters = {option["letter"]: option["name"] for command in commands.values() for option in command["options"] if "letter" in option}
    words = [(table.lines[name][0], shlex.split(option)[0]) for name, option, _, _ in table.rows]
    have = {(command, word[2:] if word.startswith("--") else letters[word[1:]]) for command, word in words} | table.untried
    return [f"no row for fourge {c} --{o}" for c, o in sorted(known - have)] + [f"fourge {c} has no --{o}" for c, o in sorted(have - known)]


def later_rows(table, commands):
    """Options that are recognised and not built are refused."""
    lines = {words[0]: name for name, words in reversed(table.lines.items())}
    return [(lines[name], f"--{option['name']} word", "refused not built", "") for name, command in commands.items()
            for option in command["options"] if not option["built"]]


def main():
    listed = json.loads(subprocess.run([program, "help", "--options-json"], capture_output=True, check=True).stdout)
    commands = {c["name"]: c for c in listed["commands"]}
    table = Table(here / "options.table")
    table.rows += later_rows(table, commands)
    with tempfile.TemporaryDirectory() as folder:
        make_inputs(pathlib.Path(folder))
        held = {}

        def run(words, tells=False):
            key = (tuple(words), tells)
            if key not in held:
                held[key] = Run(words, folder, BASE | TELLS if tells else BASE)
            return held[key]

        def verdict(row):
            try:
                return check(row, table.lines, run)
            except Exception as e:  # a run that is no JSON, or takes too long
                return f"{type(e).__name__}: {e}"

        rows = [row for row in table.rows if part in " ".join(row)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            wrong = list(pool.map(verdict, rows))
    names = [f"{name}: {option} -> {what}{' with ' + more if more else ''}" for name, option, what, more in rows]
    if not part:
        names.append("every option has a row")
        table.rows = [row for row in table.rows if row[2] != "refused not built"]
        wrong.append("\n".join(missing_rows(table, commands)) or None)
    print(f"1..{len(names)}")
    for i, (name, error) in enumerate(zip(names, wrong)):
        print(f"{'not ok' if error else 'ok'} {i + 1} - {name}")
        for line in (error or "").splitlines():
            print(f"#   {line}")
    failed = sum(error is not None for error in wrong)
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
