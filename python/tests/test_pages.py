"""The pages of examples/ with NumPy alone: ours against the stored numbers of theirs."""

import sys
import pathlib
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import pages  # noqa: E402
from test_fe import read_csv  # noqa: E402


class Pages(unittest.TestCase):
    def test_from_pyfixest(self):
        self.assertGreaterEqual(len(pages.run("from_pyfixest.md", None, {"data": read_csv("grunfeld.csv")})), 20)

    def test_from_pot(self):
        self.assertGreaterEqual(len(pages.run("from_pot.md", None, {})), 25)


if __name__ == "__main__":
    unittest.main()
