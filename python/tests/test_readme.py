"""The examples of README.md, the package's page in the index: each prints what stands below it."""

import contextlib
import io
import math
import os
import pathlib
import re
import tempfile
import unittest

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
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


class Readme(unittest.TestCase):
    def test_examples_print_what_stands_below(self):
        page = README.read_text(encoding="utf-8")
        examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
        # no program without what it prints
        self.assertEqual((len(examples), page.count("```python")), (4, 4))
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)  # data lie in the package: nothing is read from the checkout
            try:
                for code, printed in examples:
                    said = io.StringIO()
                    with contextlib.redirect_stdout(said):
                        exec(compile(code, str(README), "exec"), {"__name__": "__main__"})
                    got, want = said.getvalue().split(), printed.split()
                    with self.subTest(code.splitlines()[-1]):
                        alike = len(got) == len(want) and all(map(same, got, want))
                        self.assertTrue(alike, f"{said.getvalue()}\nREADME:\n{printed}")
            finally:
                os.chdir(here)

    def test_the_picture_is_there(self):
        for name in re.findall(r"!\[[^]]+\]\(([^)]+)\)", README.read_text(encoding="utf-8")):
            self.assertLess((README.parent / name).stat().st_size, 60000, name)


if __name__ == "__main__":
    unittest.main()
