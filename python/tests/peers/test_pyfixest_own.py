"""pyfixest's own tests of its estimators and demeaners, inside demeaning() and outside.

No package of the index has them: FOURGE_PYFIXEST_TESTS names a folder that holds `tests` of pyfixest's repository at the
release that is installed.  Their files need pyhdfe, jax and pytest-benchmark besides, which tools/peers.txt has not.
"""

import importlib.metadata
import importlib.util
import os
import pathlib
import unittest

from theirs import outcomes

VERSION = importlib.metadata.version("pyfixest")
ROOT = os.environ.get("FOURGE_PYFIXEST_TESTS")

#: Tests that pass with the original, by version and file.
COUNTS = {"0.60.0": {"test_api.py": 50, "test_demean.py": 68}}
#: Tests of pyfixest: why they cannot pass.  They ask for an error after one iteration, by which ours has demeaned
#: exactly: it eliminates one factor and factors the rest.
EXCEPTIONS = {
    "test_api.py": set(),
    "test_demean.py": {f"test_demean_model_maxiter_convergence_failure[{k}]" for k in ("numba", "jax", "rust", "lsmr_scipy", "lsmr_torch_cpu")}
    | {"test_feols_integration_maxiter"},
}
PLUGIN = """
from fourge.pyfixest import demeaning

held = demeaning()
reports = held.__enter__()

def acted():
    return len(reports)
"""


@unittest.skipIf(any(importlib.util.find_spec(n) is None for n in ("pytest", "pyhdfe", "jax", "pytest_benchmark")),
                 "they need pytest, pyhdfe, jax and pytest-benchmark")
@unittest.skipIf(ROOT is None, f"FOURGE_PYFIXEST_TESTS names no folder with the tests of pyfixest {VERSION}")
class TheirTests(unittest.TestCase):
    def compared(self, name):
        """Passed tests of a file with the original and with ours, and how often ours demeaned."""
        file = pathlib.Path(ROOT, "tests", name)
        theirs, ours = outcomes([file], root=ROOT), outcomes([file], PLUGIN, ROOT)
        self.assertEqual(len(theirs["PASSED"]), COUNTS[VERSION][name])
        missed = {test.partition("::")[2] for test in theirs["PASSED"] - ours["PASSED"]}
        self.assertEqual(missed, EXCEPTIONS[name])
        self.assertGreater(ours["acted"], 0)

    def test_api(self):
        self.compared("test_api.py")

    def test_demean(self):
        self.compared("test_demean.py")


if __name__ == "__main__":
    unittest.main()
