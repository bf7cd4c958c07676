"""pyfixest with our demeaning beside pyfixest alone."""

import sys
import threading
import unittest
import warnings

import numpy as np
import pandas as pd
import pyfixest as pf

from fourge import errors
from fourge.pyfixest import demeaning

FORMULAS = [
    f"{y} ~ {x} | {f}"
    for y in ("y", "log(p)")
    for x in ("x1", "x1 + x2", "x1 * x2", "i(year, ref=2000) + x1")
    for f in ("firm", "firm + worker", "firm^region + worker", "firm + worker + year")
] + [
    "y + p ~ x1 | firm + worker",
    "y ~ x1 + csw(x2, x3) | firm + worker",
    "y ~ x2 | csw0(firm, worker)",
    "y ~ sw(x1, x2) | firm + year",
    "y ~ x2 | firm + worker | x1 ~ x3",
    "y ~ 1 | firm + worker | x1 ~ x3",
    "y ~ i(region, x1) | firm + worker",
    "y ~ x1 + C(region) | firm + year",
]


def panel():
    rng = np.random.default_rng(1)
    n = 1500
    d = pd.DataFrame(
        {
            "firm": rng.integers(0, 80, n),
            "worker": rng.integers(0, 200, n),
            "year": rng.integers(2000, 2006, n),
            "region": rng.choice(["north", "south", "east"], n),
            "x2": rng.normal(size=n),
            "x3": rng.normal(size=n),
            "w": rng.uniform(0.5, 2, n),
        }
    )
    d["x1"] = d.x3 + rng.normal(size=n)
    d["y"] = d.x1 - 0.5 * d.x2 + np.sin(d.firm) + np.cos(d.worker) + rng.normal(size=n)
    d["p"] = np.exp(0.1 * d.y)
    d["count"] = rng.poisson(np.exp(0.3 * d.x2 + 0.2 * np.sin(d.firm)))
    d.loc[rng.choice(n, 20, False), "x1"] = np.nan
    return d


def models(fit):
    return fit.to_list() if hasattr(fit, "to_list") else [fit]


class Backend(unittest.TestCase):
    def compare(self, call, rtol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = models(call())
            with demeaning() as reports:
                got = models(call())
        self.assertTrue(reports)
        for a, b in zip(want, got, strict=True):
            if len(a.coef()):
                np.testing.assert_allclose(b.coef(), a.coef(), rtol=rtol, atol=rtol)
                np.testing.assert_allclose(b.se(), a.se(), rtol=rtol, atol=rtol)

    def test_blocks_that_overlap(self):
        """Blocks of several threads end in any order; pyfixest has its own function back after the last, not before."""
        data = panel()
        fit = lambda: pf.feols("y ~ x1 | firm + worker", data).coef().iloc[0]
        want = fit()
        module = sys.modules["pyfixest.estimation.internals.demean_"]
        theirs = module.dispatch_demean
        first, second = demeaning(), demeaning(tol=1e-6)
        a = first.__enter__()
        self.assertAlmostEqual(fit(), want, places=6)
        within = threading.Thread(target=fit)
        within.start()
        within.join()
        b = second.__enter__()
        self.assertEqual((len(a), len(b)), (2, 0))
        first.__exit__(None, None, None)
        self.assertIsNot(module.dispatch_demean, theirs)
        self.assertAlmostEqual(fit(), want, places=4)
        self.assertEqual((len(a), len(b)), (2, 1))
        second.__exit__(None, None, None)
        self.assertIs(module.dispatch_demean, theirs)
        fit()
        self.assertEqual((len(a), len(b)), (2, 1))

    def test_formulas(self):
        """40 formulas: 1e-8, with pyfixest's own demeaner at 1e-12."""
        self.assertEqual(len(FORMULAS), 40)
        data = panel()
        exact = pf.MapDemeaner(fixef_tol=1e-12, fixef_maxiter=100000)
        for formula in FORMULAS:
            with self.subTest(formula):
                self.compare(lambda f=formula: pf.feols(f, data, vcov={"CRV1": "firm"}, demeaner=exact), 1e-8)

    def test_weights(self):
        data = panel()
        exact = pf.MapDemeaner(fixef_tol=1e-12, fixef_maxiter=100000)
        self.compare(lambda: pf.feols("y ~ x1 + x2 | firm + worker", data, weights="w", demeaner=exact), 1e-8)

    def test_poisson(self):
        """Reweighted steps: as near as the outer iteration's tolerance, 1e-8."""
        data = panel()
        exact = pf.MapDemeaner(fixef_tol=1e-12, fixef_maxiter=100000)
        self.compare(lambda: pf.fepois("count ~ x2 | firm + year", data, demeaner=exact, iwls_tol=1e-10), 1e-7)

    def test_back_in_place(self):
        from pyfixest.estimation.internals import demean_

        before = demean_.dispatch_demean
        with self.assertRaises(ZeroDivisionError), demeaning():
            self.assertIsNot(demean_.dispatch_demean, before)
            raise ZeroDivisionError
        self.assertIs(demean_.dispatch_demean, before)

    def test_backends(self):
        data = panel()
        for name in ("torch_cuda", "torch_cuda32", "torch_mps"):
            with self.subTest(name):
                try:
                    with demeaning(name) as reports:
                        pf.feols("y ~ x2 | firm + worker", data)
                except errors.NoDevice as e:
                    self.assertIn(f"backend='{name}' needs the device", str(e))
                else:
                    self.assertIn("lsmr rows on a device", reports[0]["method"])
        with self.assertRaises(ValueError), demeaning("numba"):
            pass
        for name in ("torch", "torch_cpu"):
            with demeaning(name):
                pass

    def test_what_the_demeaner_asks_for(self):
        """Tolerance and steps of pyfixest's demeaner rule; options of the block stand over them; devices are not changed."""
        data = panel()

        def steps(demeaner, **options):
            with demeaning(method="cg", **options) as reports:
                pf.feols("y ~ x2 | firm + worker", data, demeaner=demeaner)
            return max(max(r["iterations"]) for r in reports)

        loose, tight = pf.MapDemeaner(fixef_tol=1e-3), pf.MapDemeaner(fixef_tol=1e-10)
        self.assertLess(2 * steps(loose), steps(tight))
        self.assertEqual(steps(pf.LsmrDemeaner(fixef_atol=1e-10, fixef_btol=1e-3)), steps(loose))
        self.assertEqual(steps(loose, tol=1e-10), steps(tight))
        few = pf.MapDemeaner(fixef_maxiter=3)
        with self.assertRaisesRegex(ValueError, "Demeaning failed after 3 iterations"), warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.NotConverged)
            steps(few)
        self.assertGreater(steps(few, max_iter=1000), 3)
        on_cuda = pf.LsmrDemeaner(backend="torch", device="cuda")
        with self.assertRaisesRegex(errors.NoDevice, "cuda"), demeaning():
            pf.feols("y ~ x2 | firm + worker", data, demeaner=on_cuda)
        with self.assertRaisesRegex(ValueError, "means method='lsmr', but method='cg'"):
            steps(on_cuda)
        with demeaning(method="cg") as reports:
            pf.feols("y ~ x2 | firm + worker", data, demeaner=pf.LsmrDemeaner(backend="torch", device="cpu", precision="float32"))
        self.assertIn("float32", reports[0]["method"])

    def test_preconditioner(self):
        """Where pyfixest's LSMR has one, so has the fit, and it may be used again, by pyfixest too."""
        data = panel()
        fit = lambda f="firm + worker", **o: pf.feols(f"y ~ x1 | {f}", data, demeaner=pf.LsmrDemeaner(backend="within", **o))
        alone = fit()
        with demeaning():
            ours = fit()
            self.assertIsInstance(ours.preconditioner, pf.Preconditioner)
            self.assertEqual((ours.preconditioner.variant, ours.preconditioner.nrows),
                             (alone.preconditioner.variant, alone.preconditioner.nrows))
            self.assertEqual(fit(preconditioner="diagonal").preconditioner.variant.lower(), "diagonal")
            again = fit(preconditioner=ours.preconditioner)
            np.testing.assert_array_equal(again.coef(), ours.coef())
            self.assertEqual(again.preconditioner.nrows, ours.preconditioner.nrows)
            self.assertIsNone(fit(preconditioner="off").preconditioner)
            self.assertIsNone(fit("firm").preconditioner)
            with self.assertRaises(ValueError):  # of another design
                fit("firm + year", preconditioner=ours.preconditioner)
        np.testing.assert_allclose(fit(preconditioner=ours.preconditioner).coef(), alone.coef(), rtol=1e-6)

    def test_demeaners_in_feols(self):
        """fe.feols takes pyfixest's typed demeaners."""
        from fourge import fe

        data = {k: np.asarray(v) for k, v in panel().items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = lambda **o: fe.feols("y ~ x1 | firm + worker", data, **o).coef()
            np.testing.assert_array_equal(fit(demeaner=pf.MapDemeaner(fixef_tol=1e-4)), fit(tol=1e-4, max_iter=10000))
            with self.assertRaises(errors.NoDevice):
                fit(demeaner=pf.LsmrDemeaner(backend="cupy", device="cuda"))


if __name__ == "__main__":
    unittest.main()
