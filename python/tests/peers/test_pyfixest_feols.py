"""fourge.pyfixest.feols beside pyfixest's own: names of terms, tables, fits and effects."""

import inspect
import itertools
import unittest
import warnings

import numpy as np
import pandas as pd
import pyfixest as pf

import fourge.pyfixest as ours
from fourge import fe

#: Terms of every kind; effects that are crossed, nested, three, interacted.
FORMULAS = (
    "y ~ x1 + x2",
    "y ~ x1**2 + x2",
    "y ~ x1^2",
    "y ~ I(x1**2) + exp(x2/10)",
    "log(p) ~ x1*x2",
    "y ~ x1:x2 - 1",
    "y ~ region*x1",
    "y ~ region:x1",
    "y ~ 0 + region",
    "y ~ 0 + region + cat",
    "y ~ region | year",
    "y ~ cat + flag*x1",
    "y ~ flag | firm",
    "y ~ C(year):x1",
    "y ~ C(year) + x1 | firm",
    "y ~ i(year, ref=2000) | firm",
    "y ~ i(region, x1)",
    "y ~ x1 | firm + year",
    "y ~ x1 + x2 | firm + worker + year",
    "y ~ x1 | firm + firm^region",
    "y ~ x1 | firm^year + worker",
)
COVARIANCES = (None, "hetero", {"CRV1": "firm"}, {"CRV1": "firm + worker"})
OPTIONS = (
    {},
    {"weights": "w"},
    {"weights": "count", "weights_type": "fweights", "fixef_rm": "none"},
    {"ssc": pf.ssc(k_adj=False)},
    {"ssc": pf.ssc(k_fixef="full", G_df="conventional")},
    {"ssc": pf.ssc(k_fixef="none", G_adj=False)},
    {"fixef_rm": "none"},
)
NUMBERS = ("_N", "_k", "_df_t", "_r2", "_adj_r2", "_r2_within", "_rmse")
TIGHT = {"atol": 1e-12, "btol": 1e-12}  # of their LSQR for effects
EXACT = pf.MapDemeaner(fixef_tol=1e-12, fixef_maxiter=100000)


def panel():
    rng = np.random.default_rng(2)
    n = 600
    d = pd.DataFrame(
        {
            "firm": rng.integers(0, 40, n),
            "worker": rng.integers(0, 70, n),
            "year": rng.integers(2000, 2005, n),
            "region": rng.choice(["north", "south", "east"], n),
            "cat": pd.Categorical(rng.integers(0, 3, n)),
            "flag": rng.random(n) < 0.4,
            "x1": rng.normal(size=n),
            "x2": rng.normal(size=n),
            "w": rng.uniform(0.5, 2, n),
            "count": rng.integers(1, 4, n),
        }
    )
    d.loc[0, "worker"] = 999  # alone in its level
    d["y"] = d.x1 - 0.5 * d.x2 + np.sin(d.firm) + np.cos(d.worker) + rng.normal(size=n)
    d["p"] = np.exp(0.1 * d.y)
    d.loc[rng.choice(n, 9, False), "x1"] = np.nan
    return d


class Feols(unittest.TestCase):
    def same(self, theirs, ours):
        """1e-7: theirs is demeaned to 1e-12, whose error of an effect is larger by what the graph
        of effects multiplies it."""
        want, got = theirs.tidy(), ours.tidy()
        self.assertEqual(
            (list(got.index), list(got), got.index.name),
            (list(want.index), list(want), want.index.name),
        )
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)
        for name in NUMBERS:
            np.testing.assert_allclose(
                getattr(ours, name), getattr(theirs, name, np.nan), rtol=1e-9, err_msg=name
            )
        for name in ("coef", "se", "tstat", "pvalue"):
            a, b = getattr(theirs, name)(), getattr(ours, name)()
            self.assertEqual((type(b), b.name, list(b.index)), (type(a), a.name, list(a.index)))
        pd.testing.assert_frame_equal(ours.confint(0.1), theirs.confint(0.1), rtol=1e-7)

    def test_tables(self):
        """Every formula and covariance, plain and with two of the options that change errors, by
        turns."""
        data, compared = panel(), 0
        for k, (fml, vcov, turn) in enumerate(itertools.product(FORMULAS, COVARIANCES, range(3))):
            options = OPTIONS[k % len(OPTIONS)] if turn else {}
            with self.subTest(fml, vcov=vcov, **options), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = pf.feols(fml, data, vcov, demeaner=EXACT, **options)
                fit = ours.feols(fml, data, vcov, **options)
                if fit.fit._shown[
                    "projected"
                ]:  # a variance that is not positive, which pyfixest leaves as it is
                    continue
                self.same(theirs, fit)
                compared += 1
        self.assertGreater(compared, 230)

    def test_rows_and_effects(self):
        data = panel()
        theirs, fit = (
            f("y ~ x1 + x2 | firm + year", data, demeaner=EXACT) for f in (pf.feols, ours.feols)
        )
        for name in ("resid", "predict"):
            a, b = getattr(theirs, name)(), getattr(fit, name)()
            self.assertEqual((type(b), b.shape), (type(a), a.shape))
            np.testing.assert_allclose(b, a, atol=1e-8)
        new = data.assign(year=data.year.where(data.index != 5, 1900))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_allclose(
                fit.predict(new), theirs.predict(new, **TIGHT), rtol=1e-7, atol=1e-7
            )
        want, got = theirs.fixef(**TIGHT), fit.fixef()
        self.assertEqual(
            {k: list(v) for k, v in got.items()}, {k: list(v) for k, v in want.items()}
        )
        for name, levels in want.items():
            np.testing.assert_allclose(
                list(got[name].values()), list(levels.values()), rtol=1e-7, atol=1e-7
            )

    def test_another_covariance(self):
        data = panel()
        theirs, fit = (
            f("y ~ x1 + x2 | firm + year", data, demeaner=EXACT, ssc=pf.ssc(k_adj=False))
            for f in (pf.feols, ours.feols)
        )
        for vcov in ("HC1", {"CRV1": "worker"}, "iid"):
            self.same(theirs.vcov(vcov), fit.vcov(vcov))
            np.testing.assert_allclose(fit._vcov, theirs._vcov, rtol=1e-7)

    def test_wald(self):
        data = panel()
        theirs, fit = (
            f("y ~ x1 + x2 | firm", data, {"CRV1": "firm"}, demeaner=EXACT)
            for f in (pf.feols, ours.feols)
        )
        for R, q, which in (
            (None, None, "F"),
            (np.eye(2), None, "chi2"),
            (np.array([[1.0, -1.0]]), np.array([0.1]), "F"),
        ):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                want, got = theirs.wald_test(R, q, which), fit.wald_test(R, q, which)
            self.assertEqual(list(got.index), list(want.index))
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-12)
            self.assertEqual(len(told), 2 * (q is not None))

    def test_defaults_and_signature(self):
        """Every keyword of pyfixest's signatures is there, in its place and with its default."""
        for theirs, mine in (
            (pf.feols, ours.feols),
            (pf.estimation.Feols.vcov, ours.Fit.vcov),
            (pf.estimation.Feols.confint, ours.Fit.confint),
            (pf.estimation.Feols.predict, ours.Fit.predict),
            (pf.estimation.Feols.tidy, ours.Fit.tidy),
            (pf.estimation.Feols.fixef, ours.Fit.fixef),
            (pf.estimation.Feols.wald_test, ours.Fit.wald_test),
        ):
            want = [(p.name, p.default) for p in inspect.signature(theirs).parameters.values()]
            got = [(p.name, p.default) for p in inspect.signature(mine).parameters.values()]
            self.assertEqual(got[: len(want)], want)
        self.assertEqual(ours.ssc(), pf.ssc())

    def test_collinear(self):
        """The pivots are measured in the units of the data, as theirs: a regressor of tiny numbers
        is dropped by both."""
        data = panel().assign(tiny=lambda d: 1e-7 * d.x2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.same(
                pf.feols("y ~ x1 + tiny | firm", data, demeaner=EXACT),
                ours.feols("y ~ x1 + tiny | firm", data),
            )
        self.assertIn("tiny", fe.feols("y ~ x1 + tiny | firm", data).terms)


if __name__ == "__main__":
    unittest.main()
