"""POT's own tests of its transport and Gromov-Wasserstein, with our functions in the places of its.

No package of the index has all of them with their fixtures: FOURGE_POT_TESTS names a checkout of its repository (MIT licence) at
the release that is installed.  What passes with POT is counted here and not run again: it takes six minutes.
"""

import importlib.metadata
import importlib.util
import os
import pathlib
import unittest

from theirs import outcomes

VERSION = importlib.metadata.version("POT")
ROOT = os.environ.get("FOURGE_POT_TESTS")
FILES = ("gromov/test_gw.py", "gromov/test_bregman.py", "gromov/test_semirelaxed.py", "gromov/test_partial.py", "test_bregman.py",
         "test_partial.py", "unbalanced/test_sinkhorn.py")

#: Tests of FILES that pass with POT, by version.
COUNTS = {"0.9.7.post1": 26 + 31 + 24 + 12 + 162 + 25 + 152}
BOTH = "numpy", "torch"
WAYS = "sinkhorn", "sinkhorn_stabilized", "sinkhorn_reg_scaling", "sinkhorn_translation_invariant"
#: Tests of POT that cannot pass.
EXCEPTIONS = {
    # a plan between matrices of integers is cast to integers, which are all 0
    *(f"gromov/test_gw.py::test_{kind}_integer_warnings[{x}]" for kind in ("gromov", "fgw") for x in BOTH),
    # options that POT has not either, and takes without a word: init_Cb, n_dummies
    *(f"gromov/test_bregman.py::test_gromov_entropic_barycenter[{x}]" for x in BOTH),
    *(f"gromov/test_partial.py::test_partial_{kind}gromov_wasserstein[{x}]" for kind in ("", "fused_") for x in BOTH),
    # starts by names: of networkx's communities, scikit-learn's clusters and at random
    *(f"gromov/test_semirelaxed.py::test_{kind}[{x}]" for x in BOTH
      for kind in ("semirelaxed_gromov", "semirelaxed_fgw", "entropic_semirelaxed_gromov", "entropic_semirelaxed_fgw")),
    # the plan of entropic partial transport carries no gradients
    "test_partial.py::test_entropic_partial_wasserstein_gradient",
    # the bits of another function of POT's
    *(f"test_partial.py::test_entropic_partial_wasserstein_method_sinkhorn_log_matches_logscale[{reg}]" for reg in ("1.0", "0.05")),
    # infinite penalties of marginals whose sums differ: there is no such plan, and it is refused
    *(f"unbalanced/test_sinkhorn.py::test_unbalanced_relaxation_parameters{kind}[{x}-{way}-inf{more}]" for x in BOTH for way in WAYS
      for kind, more in (("", ""), ("_pair", "-inf"))),
}
PLUGIN = """
import functools
import ot, ot.bregman, ot.gromov, ot.partial, ot.unbalanced
from fourge import pot

calls = []

def counted(function):
    @functools.wraps(function)
    def call(*arguments, **options):
        calls.append(function)
        return function(*arguments, **options)
    return call

for name in pot.__all__:
    ours = counted(getattr(pot, name))
    for module in (ot, ot.bregman, ot.gromov, ot.partial, ot.unbalanced, ot.lp):
        if hasattr(module, name):
            setattr(module, name, ours)

def acted():
    return len(calls)
"""


@unittest.skipIf(importlib.util.find_spec("pytest") is None, "pytest is not installed")
@unittest.skipIf(ROOT is None, f"FOURGE_POT_TESTS names no checkout of POT {VERSION}")
class TheirTests(unittest.TestCase):
    def test_their_tests(self):
        folder = pathlib.Path(ROOT, "test")
        found = outcomes([folder / f for f in FILES], PLUGIN, folder)
        self.assertEqual(found.get("FAILED", set()) | found.get("ERROR", set()), EXCEPTIONS)
        self.assertEqual(len(found["PASSED"]), COUNTS[VERSION] - len(EXCEPTIONS))
        self.assertGreater(found["acted"], 500)


if __name__ == "__main__":
    unittest.main()
