"""Every keyword of every public signature acts, raises, or says what is done instead: the rows, and how they are read.

    of(fe.feols, {"fml": "y ~ x | f", "data": PANEL},       the call that the rows change, by its keywords
       method=("lsmr", lambda fit: fit.result["solver"]),   keyword = (another value, how it shows)
       tol=(1e-2, iterations, {"method": "cg"}),            ..., and what both calls are given besides
       weights=[("w", estimates), ("none", raises())])      several rows

A method has its object made by the third argument, and is told by it where it returns None; what is given as keywords may be a
function that makes them anew, for what a call changes.  How it shows is a function of what the call returns, whose value is
another one then, or one of

    raises(WORDS, KIND)    only the changed call raises: KIND, in WORDS (without: the keyword's name)
    cures(WORDS)           only the call without raises
    passes(WORDS)          only the call without raises in WORDS, though the other may raise what comes later
    warns(WORDS)           only the changed call warns
    silences(WORDS)        only the call without warns
    writes(NAME)           only the changed call leaves a file of that name in the current folder
    prints(WORDS)          only the changed call prints that
    asked()                the value, which is `watch`, is called, or True, which shows a bar
    threads(N)             N threads enter a parallel region, as the OpenMP runtime tells, and one with threads=1
    Same(REASON, SHOW)     the same numbers by contract; SHOW is the evidence that it acts

`then`, a keyword of each of these, is a function that is called with the result within the run: what an object does later.

The echo of a setting is no effect: functions take numbers of the result, or what it says was done.  A keyword of a signature without a
row is a failure, and a row of a keyword that is not there.
"""

import contextlib
import inspect
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import numpy as np

from fourge import _arrays, _progress, errors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from test_stubs import functions_of, parameters_of  # noqa: E402


def name_of(function):
    """'fe.feols', 'gp.GP.fit', by where a function was defined."""
    return f"{function.__module__.removeprefix('fourge.')}.{function.__qualname__.removesuffix('.__init__')}"


# ---- runs ----

seen = []


def watch(*what):
    """A function for progress."""
    seen.append(what)


class Run:
    """What a call did: value, error, warnings, printed, files, asked."""

    def __init__(self, function, options, then):
        self.value = self.error = None
        _arrays._warned.clear()
        seen.clear()
        text, before, bar = io.StringIO(), os.getcwd(), _progress.Bar.__call__
        _progress.Bar.__call__ = watch
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as told, contextlib.redirect_stdout(text):
            warnings.simplefilter("always")
            os.chdir(folder)
            try:
                self.value = then(function(**options))
            except Exception as e:  # noqa: BLE001
                self.error = e
            finally:
                os.chdir(before)
                _progress.Bar.__call__ = bar
            self.files = {str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*") if p.is_file()}
        self.warnings, self.printed, self.asked = [str(w.message) for w in told], text.getvalue(), len(seen)


def plain(value):
    """A value that can be compared: two that are equal hold the same numbers."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    return repr(value)


# ---- how it shows ----

def itself(value):
    return value


class Shows:
    """What has to be seen; `seen` is told the keyword, and both runs."""

    def __init__(self, words=None, *, then=itself):
        self.words, self.then = words, then

    def seen(self, keyword, before, after):
        raise NotImplementedError

    def quiet(self, *runs):
        return next((f"it raised {r.error!r}" for r in runs if r.error is not None), None)


class differs(Shows):
    """The value of `then` is another one."""

    def seen(self, keyword, before, after):
        return self.quiet(before, after) or ("the same value: " + repr(before.value)[:200]) * (plain(before.value) == plain(after.value))


class raises(Shows):
    def __init__(self, words=None, kind=Exception, *, then=itself):
        super().__init__(words, then=then)
        self.kind = kind

    def seen(self, keyword, before, after):
        fits = isinstance(after.error, self.kind) and re.search(self.words or keyword, str(after.error))
        expected = f"expected {self.kind.__name__} in words of {self.words or keyword!r}, got {after.error!r}"
        return self.quiet(before) or ("" if fits else expected)


class cures(raises):
    def seen(self, keyword, before, after):
        return super().seen(keyword, after, before)


class passes(raises):
    """Whatever comes after: another error may."""

    def seen(self, keyword, before, after):
        met = lambda run: isinstance(run.error, self.kind) and re.search(self.words or keyword, str(run.error))
        return "" if met(before) and not met(after) else f"with {after.error!r}, without {before.error!r}"


class warns(Shows):
    def seen(self, keyword, before, after):
        told = lambda run: any(re.search(self.words or keyword, text) for text in run.warnings)
        got = f"warned of {after.warnings}, without of {before.warnings}"
        return self.quiet(before, after) or ("" if told(after) and not told(before) else got)


class silences(warns):
    def seen(self, keyword, before, after):
        return super().seen(keyword, after, before)


class writes(Shows):
    def seen(self, keyword, before, after):
        got = f"wrote {after.files}, without {before.files}"
        return self.quiet(before, after) or ("" if self.words in after.files - before.files else got)


class prints(Shows):
    def seen(self, keyword, before, after):
        told = lambda run: re.search(self.words, run.printed)
        return self.quiet(before, after) or ("" if told(after) and not told(before) else f"printed {after.printed!r}")


class asked(Shows):
    def seen(self, keyword, before, after):
        return self.quiet(before, after) or ("" if after.asked and not before.asked else "it was not called")


class threads(Shows):
    """Looked at by Table.test_threads, in a process where the OpenMP runtime tells."""

    def __init__(self, count=3, *, then=itself):
        super().__init__(then=then)
        self.count = count


class Same(Shows):
    """Numbers are the same by contract, for a `reason`; `show` is the evidence."""

    def __init__(self, reason, show):
        super().__init__(then=show.then)
        self.reason, self.show = reason, show
        self.seen = show.seen


#: What a limit of memory does everywhere.
SMALL = (1000, raises("memory", errors.OutOfMemory))


# ---- the table ----

class Row:
    def __init__(self, name, function, base, maker, keyword, value, show, more=None):
        self.name, self.keyword, self.function, self.base, self.maker = name, keyword, function, base, maker
        self.value, self.show, self.more = value, show if isinstance(show, Shows) else differs(then=show), more or {}

    def __str__(self):
        return f"{self.name}({self.keyword}={self.value!r:.60}{', ' * bool(self.given())}{', '.join(map(str, self.given()))})"

    def given(self):
        return self.more() if callable(self.more) else self.more

    def run(self, **options):
        base = self.base() if callable(self.base) else self.base
        owner = None if self.maker is None else self.maker()
        function = self.function if owner is None else self.function.__get__(owner)
        return Run(function, {**base, **self.given(), **options}, lambda found: self.show.then(owner if found is None else found))


class Rows(list):
    """The rows of a file's table."""

    def of(self, function, base, maker=None, /, **rows):
        function = getattr(function, "__func__", function) if maker else function
        for keyword, given in rows.items():
            for row in given if isinstance(given, list) else [given]:
                self.append(Row(name_of(function), function, base, maker, keyword, *row))


def missing_rows(rows, modules, elsewhere, beside):
    """Keywords of signatures without a row, and rows of keywords that are not there; the functions and keywords `elsewhere`
    have rows in
    another table, and those of `beside` are another table's."""
    have = {(row.name, row.keyword) for row in rows}
    have -= {(name, keyword) for name, keyword in have if {name, f"{name}({keyword}=)"} & beside}
    offered = [function for module in modules for _, function, _ in functions_of(module) if hasattr(function, "__module__")]
    functions = {name_of(function): function for function in offered}
    known = {(name, keyword) for name, function in functions.items() for keyword in parameters_of(function)
             if not {name, f"{name}({keyword}=)"} & elsewhere}
    return [f"no row: {n}({k}=)" for n, k in sorted(known - have)] + [f"there is no {n}({k}=)" for n, k in sorted(have - known)]


#: What a process is told whose runs of rows show their threads, and how they do.
_TELLS = {"OMP_DISPLAY_AFFINITY": "TRUE", "OMP_AFFINITY_FORMAT": "thread %n of %N", "OMP_WAIT_POLICY": "passive"}


def show_threads(rows):
    """Runs the rows of threads, each in a thread of its own, whose pool is new; writes marks between what OpenMP tells."""
    os.write(2, b"\nend of 0: None\n")
    for row in [row for row in rows if isinstance(row.show, threads)]:
        for count in (1, row.value):
            run = []
            one = threading.Thread(target=lambda: run.append(row.run(**{row.keyword: count})))
            one.start()
            one.join()
            os.write(2, f"\nend of {count}: {run[0].error!r}\n".encode())


class Table:
    """The tests of a file's rows, beside unittest.TestCase."""

    rows: Rows
    modules: tuple
    file: str
    elsewhere = beside = frozenset()

    def test_every_keyword_has_a_row(self):
        wrong = missing_rows(self.rows, self.modules, self.elsewhere, self.beside)
        self.assertFalse(wrong, "\n".join(wrong))

    def test_rows(self):
        held = {}
        for row in self.rows:
            if isinstance(row.show, threads):
                continue
            with self.subTest(str(row)):
                given = tuple((k, v if isinstance(v, (str, float, int)) else id(v)) for k, v in row.given().items())
                key = row.name, id(row.base), id(row.show.then), given
                before = held[key] = held.get(key) or row.run()
                wrong = row.show.seen(row.keyword, before, row.run(**{row.keyword: row.value}))
                self.assertFalse(wrong, wrong)

    def test_threads(self):
        rows = [row for row in self.rows if isinstance(row.show, threads)]
        done = subprocess.run([sys.executable, self.file, "--threads"], capture_output=True, text=True, check=False,
                              env={**os.environ, **_TELLS})
        runs = re.split(r"\nend of \d+: (.*)\n", done.stderr)
        self.assertEqual((done.returncode, len(runs)), (0, 4 * len(rows) + 3), done.stderr[-2000:])
        for i, row in enumerate(rows):
            with self.subTest(str(row)):
                one, of_one, many, of_many = runs[4 * i + 2:4 * i + 6]
                most = lambda text: max(map(int, re.findall(r"thread \d+ of (\d+)", text)), default=1)
                self.assertEqual((of_one, of_many, most(one), most(many)), ("None", "None", 1, row.show.count))


def main(rows):
    """Of a file with a table: its tests, or its rows of threads."""
    if sys.argv[1:] == ["--threads"]:
        show_threads(rows)
    else:
        unittest.main()
