"""The pages of examples/ with the peers: both sides of every row.  FOURGE_STORE_PAGES=1 keeps theirs for the test
that has NumPy alone."""

import importlib.util
import pathlib
import sys
import unittest

import pandas as pd

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import pages  # noqa: E402


class Pages(unittest.TestCase):
    def page(self, name, rows, **start):
        found = pages.run(name, dict(start), dict(start))
        self.assertGreaterEqual(len(found), rows)
        return found

    def test_from_pyfixest(self):
        found = self.page("from_pyfixest.md", 20, data=pd.read_csv(pages.ROOT / "data" / "grunfeld.csv"))
        pages.store("from_pyfixest.md", found)

    def test_from_scikit_learn(self):
        self.page("from_scikit_learn.md", 25)

    def test_from_torch(self):
        self.page("from_torch.md", 19)

    @unittest.skipUnless(importlib.util.find_spec("gpytorch"), "gpytorch is not installed")
    def test_from_gpytorch(self):
        self.page("from_gpytorch.md", 7)

    @unittest.skipUnless(importlib.util.find_spec("botorch"), "botorch is not installed")
    def test_from_botorch(self):
        self.page("from_botorch.md", 2)

    def test_from_pot(self):
        pages.store("from_pot.md", self.page("from_pot.md", 25))


if __name__ == "__main__":
    unittest.main()
