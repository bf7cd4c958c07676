"""The examples of README.md, the package's page in the index, and of docs/tutorials print what stands below.

An example is a block ```python; what it prints is the block ```text that follows, or nothing.  The
examples of README.md stand for themselves; those of a tutorial go on from one another.
"""

import contextlib
import io
import math
import os
import pathlib
import re
import tempfile
import unittest
import warnings

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
TUTORIALS = README.parents[1] / "docs/tutorials"
# What a tutorial may go without.
PEERS = ("anndata", "torch")
# Other CPU levels round otherwise, and tables show up to six digits: the last but one may move.
TOLERANCE = 1e-4


def same(a, b):
    """Two words: equal but for numbers, which are within TOLERANCE or one of the last digit."""
    number = r"-?\d+\.?\d*(?:e[+-]?\d+)?"
    if re.sub(number, "#", a) != re.sub(number, "#", b):
        return False
    for x, y in zip(re.findall(number, a), re.findall(number, b)):
        places = len(y.partition(".")[2]) if "e" not in y else 300
        if not math.isclose(float(x), float(y), rel_tol=TOLERANCE, abs_tol=1.01 * 10.0**-places):
            return False
    return True


def examples(page):
    """[(code, what it prints)]."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    assert len(found) == text.count("```python"), page
    return found


def output(code, page, names):
    """What the code prints, run in the namespace `names`, in an empty folder: data lie in the package."""
    said = io.StringIO()
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
        os.chdir(folder)
        try:
            exec(compile(code, str(page), "exec"), names)
        finally:
            os.chdir(here)
    return said.getvalue()


class Pages(unittest.TestCase):
    def check(self, code, printed, page, names):
        said = output(code, page, names)
        got, want = said.split(), printed.split()
        alike = len(got) == len(want) and all(map(same, got, want))
        last = code.splitlines()[-1]
        self.assertTrue(alike, f"{page.name}, the block ending in {last!r}:\n{said}\nthe page:\n{printed}")


class Readme(Pages):
    def test_examples_print_what_stands_below(self):
        found = examples(README)
        # no program without what it prints
        self.assertEqual([bool(printed) for _, printed in found], [True] * 4)
        for code, printed in found:
            with self.subTest(code.splitlines()[-1]):
                self.check(code, printed, README, {"__name__": "__main__"})

    def test_the_picture_is_there(self):
        for name in re.findall(r"!\[[^]]+\]\(([^)]+)\)", README.read_text(encoding="utf-8")):
            self.assertLess((README.parent / name).stat().st_size, 60000, name)


class Tutorials(Pages):
    def run_page(self, name):
        page = TUTORIALS / name
        if not page.exists():
            self.skipTest("the tutorials are not beside these tests")
        names, found = {"__name__": "__main__"}, examples(page)
        self.assertGreaterEqual(sum(bool(printed) for _, printed in found), 4)
        for number, (code, printed) in enumerate(found, 1):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # said of what a page shows on purpose
                    self.check(code, printed, page, names)
            except ImportError as e:
                if e.name not in PEERS and getattr(e.__cause__, "name", None) not in PEERS:
                    raise
                self.skipTest(f"blocks {number} to {len(found)} of {len(found)}: {e}")

    def test_economist(self):
        self.run_page("economist.md")

    def test_gaussian_processes(self):
        self.run_page("gaussian_processes.md")

    def test_single_cell(self):
        self.run_page("single_cell.md")

    def test_training(self):
        self.run_page("training.md")

    def test_every_tutorial_is_run(self):
        run = {name.removeprefix("test_") for name in dir(self) if name.startswith("test_")}
        self.assertLessEqual({page.stem for page in TUTORIALS.glob("*.md")}, run)


if __name__ == "__main__":
    unittest.main()
