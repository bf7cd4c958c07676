"""Runs the pages of python/examples: "from their library to ours", whose code is executable.

A page is Markdown.  A block of Python that begins with ``# theirs`` or ``# ours`` runs in the one or the other of two
namespaces, any other block in both; a row ``| `theirs` | `ours` | 1e-8 |`` of a table evaluates both sides and asks
for numbers that agree to the tolerance (``-``: that they run).  Where the peer is not installed, numbers stored beside
the pages (numbers.json, made by the tests of peers/) stand in for it.
"""

import contextlib
import io
import json
import os
import pathlib
import re
import warnings

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "examples"
ROOT = FOLDER.parents[1]
STORED = FOLDER / "numbers.json"


def parse(text):
    """[("both" | "theirs" | "ours", code)] and [("row", theirs, ours, tolerance)] in the order of the page."""
    out, lines = [], iter(text.splitlines())
    for line in lines:
        if line.startswith("```python"):
            code = []
            for inner in lines:
                if inner.startswith("```"):
                    break
                code.append(inner)
            head = code[0].strip() if code else ""
            side = {"# theirs": "theirs", "# ours": "ours"}.get(head.split(":")[0], "both")
            out.append((side, "\n".join(code)))
        elif m := re.fullmatch(r"\| `(.+?)` \| `(.+?)` \| (\S+) \|", line.strip()):
            out.append(("row", m[1].replace(r"\|", "|"), m[2].replace(r"\|", "|"), m[3]))
    return out


def numbers(value):
    """Whatever it is as a flat array of floats."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return np.concatenate([numbers(v) for v in value]) if len(value) else np.empty(0)
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    return np.asarray(value, dtype=np.float64).reshape(-1)


def run(name, theirs, ours):
    """Runs a page.  `theirs` and `ours` are the namespaces to begin with; theirs None means that the peer is not here.
    Returns the rows' numbers of the reference; raises what a block raises, and AssertionError where a row differs."""
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    known, found, row = stored.get(name, []), [], 0
    here = os.getcwd()
    os.chdir(ROOT)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            for side, *what in parse((FOLDER / name).read_text(encoding="utf-8")):
                if side != "row":
                    for space, wanted in ((theirs, "theirs"), (ours, "ours")):
                        if space is not None and side in ("both", wanted):
                            exec(compile(what[0], name, "exec"), space)
                    continue
                left, right, tolerance = what
                got = eval(compile(right, name, "eval"), ours)
                want = eval(compile(left, name, "eval"), theirs) if theirs is not None else None
                if tolerance != "-":
                    want = numbers(want) if theirs is not None else np.array(known[row])
                    found.append(want.tolist())
                    row += 1
                    np.testing.assert_allclose(numbers(got), want, rtol=float(tolerance), atol=float(tolerance),
                                               err_msg=f"{name}: {left} | {right}")
    finally:
        os.chdir(here)
    return found


def store(name, found):
    """Keeps the numbers of a page, rounded to what the tolerances need, where FOURGE_STORE_PAGES is set."""
    if os.environ.get("FOURGE_STORE_PAGES"):
        stored = json.loads(STORED.read_text()) if STORED.exists() else {}
        stored[name] = [[float(f"{v:.12g}") for v in row] for row in found]
        STORED.write_text(json.dumps(dict(sorted(stored.items())), separators=(",", ":")).replace("],[", "],\n[") + "\n")
