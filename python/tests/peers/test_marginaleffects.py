"""Fits in marginaleffects, against the delta method written out.  Its release 0.6.0 does not run with polars 2, which the
peers' environment has: skipped there."""

import importlib.metadata
import unittest
import warnings

import numpy as np

from fourge import errors, fe

try:
    import marginaleffects as me
    import polars as pl

    from fourge.marginaleffects import model
except ImportError:
    me = None
VERSIONS = {name: importlib.metadata.version(name) for name in ("marginaleffects", "polars")} if me else {}
RUNS = me and not (VERSIONS["polars"].startswith("2.") and VERSIONS["marginaleffects"] == "0.6.0")


def data(n=400):
    rng = np.random.default_rng(5)
    d = {"x": rng.normal(size=n), "z": rng.normal(size=n), "g": rng.choice(["a", "b", "c"], n).astype(object),
         "firm": rng.integers(0, 12, n), "a b": rng.normal(size=n)}
    d["y"] = d["x"] * (1 + 0.5 * d["z"]) + (d["g"] == "b") + np.sin(d["firm"]) + rng.normal(size=n)
    d["w"] = d["x"] + rng.normal(size=n)
    d["count"] = rng.poisson(np.exp(0.3 * d["x"]))
    d["y"][::50] = np.nan
    return d


@unittest.skipUnless(RUNS, "no marginaleffects, or one that does not run with the polars installed")
class Protocol(unittest.TestCase):
    def check(self, found, estimates, gradient, fit, rtol=1e-5):
        """Estimates; standard errors sqrt(g' V g); finite differences of theirs are good for 1e-5."""
        table = getattr(found, "data", found)
        np.testing.assert_allclose(table["estimate"], estimates, rtol=rtol, atol=1e-9)
        g = np.atleast_2d(gradient)
        np.testing.assert_allclose(table["std_error"], np.sqrt(np.einsum("ij,jk,ik->i", g, fit.vcov(), g)), rtol=max(rtol, 1e-4))
        return table

    def test_slopes(self):
        d = data()
        for right in ("x * z + factor(g)", "x * z | firm", "x * z + `a b` | firm + g"):
            with self.subTest(right):
                fit = fe.feols(f"y ~ {right}", d, vcov={"CRV1": "firm"})
                b, names = fit.coef(), fit.terms
                z = d["z"][~np.isnan(d["y"])]
                g = np.array([(t == "x") + z.mean() * (t == "x:z") for t in names], float)
                table = self.check(me.avg_slopes(model(fit), variables="x"), g @ b, g, fit)
                # t with the clusters' degrees of freedom, as the fit has it
                low = table["estimate"][0] - table["conf_low"][0]
                one = (fit.confint()[0, 1] - fit.confint()[0, 0]) / 2 / fit.se()[0]
                self.assertAlmostEqual(low / table["std_error"][0], one, places=9)
                each = me.slopes(model(fit), variables="x", eps_vcov=1.0)  # linear: a long step is exact
                rows = np.array([[(t == "x") + v * (t == "x:z") for t in names] for v in z], float)
                self.check(each, rows @ b, rows, fit)

    def test_order_of_words(self):
        """Words are sorted, whatever comes first in the data; an ordered category stays as it is."""
        d = data()
        order = np.concatenate([np.flatnonzero(d["g"] == word) for word in "cba"])
        d = {key: values[order] for key, values in d.items()}
        contrasts = lambda g: set(me.avg_comparisons(model(fe.feols("y ~ x + g", d | {"g": g})), variables="g").data["contrast"])
        self.assertEqual(contrasts(d["g"]), {"b - a", "c - a"})
        self.assertEqual(contrasts(pl.Series(d["g"].tolist(), dtype=pl.Enum(["b", "a", "c"]))), {"a - b", "c - b"})

    def test_contrasts_and_predictions(self):
        d = data()
        fit = fe.feols("y ~ x + factor(g)", d, vcov="hc1")
        b = fit.coef()
        found = me.avg_comparisons(model(fit), variables="g")
        self.check(found, [b["g::b"], b["g::c"]] if "g::b" in fit.terms else b[-2:], np.eye(4)[-2:], fit)
        new = pl.DataFrame({"x": [0.0, 1.0], "g": ["a", "c"], "y": [0.0, 0.0]}).with_columns(pl.col("g").cast(pl.Enum(["a", "b", "c"])))
        x = np.array([[1, 0, 0, 0], [1, 1, 0, 1]], float)
        self.check(me.predictions(model(fit), newdata=new), x @ b, x, fit)
        np.testing.assert_array_equal(fit.regressors(new), x)
        everyone = getattr(me.predictions(model(fit)), "data", None)
        everyone = me.predictions(model(fit)) if everyone is None else everyone
        np.testing.assert_allclose(everyone["estimate"], fit.fitted()[~np.isnan(d["y"])], rtol=1e-12)

    def test_hypotheses(self):
        d = data()
        fit = fe.feols("y ~ x + z | firm", d)
        self.check(me.hypotheses(model(fit), hypothesis="b0 - 2 * b1 = 0"), fit.coef() @ [1, -2], [1, -2], fit)
        robust = fe.feols("y ~ x + z | firm", d, vcov="hc1")
        self.check(me.hypotheses(model(fit), hypothesis="b0 = 0", vcov="hc1"), robust.coef()[0], [1, 0], robust)
        self.assertEqual(fit._shown["type"], "iid")

    def test_instruments(self):
        d = data()
        fit = fe.feols("y ~ z | firm | x ~ w", d)
        g = [float(t == "x") for t in fit.terms]
        self.check(me.avg_slopes(model(fit), variables="x"), fit.coef()["x"], g, fit)

    def test_poisson(self):
        """mu' = b mu, averaged; with effects a warning."""
        d = data()
        fit = fe.fepois("count ~ x + z", d)
        mu, x = fit.fitted(), np.column_stack((np.ones(400), d["x"], d["z"]))
        b = fit.coef()
        gradient = b[1] * (mu[:, None] * x).mean(0) + mu.mean() * np.array([0.0, 1, 0])
        self.check(me.avg_slopes(model(fit), variables="x"), b[1] * mu.mean(), gradient, fit, rtol=1e-3)
        with self.assertWarnsRegex(UserWarning, "take the fixed effects for known"):
            me.avg_slopes(model(fe.fepois("count ~ x | firm", d)), variables="x")

    def test_refusals(self):
        d = data()
        with self.assertRaisesRegex(TypeError, "expected a Fit of fourge.fe, got dict"):
            model({})
        d["year"] = np.arange(400) % 8
        d["cohort"] = np.where(d["firm"] < 6, 4, 99)
        d["treated"] = (d["year"] >= d["cohort"]).astype(float)
        with self.assertRaisesRegex(errors.Unsupported, "two stages"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model(fe.did2s(d, "y", "~ 0 | firm + year", "~ treated", "treated", "firm"))


class Regressors(unittest.TestCase):
    def test_new_data(self):
        """Columns of terms in their order, effects without; rows of unseen levels are NaN, and columns with a missing value."""
        d = data()
        fit = fe.feols("y ~ x * z + factor(g) | firm", d)
        new = {"x": [1.0, 2.0, np.nan], "z": [3.0, -1.0, 0.0], "g": ["b", "d", "a"]}
        with self.assertWarnsRegex(UserWarning, "1 rows have a level"):
            x = fit.regressors({**new, "firm": [0, 0, 0]})
        self.assertEqual(x.shape, (3, len(fit.terms)))
        want = {"x": 1.0, "z": 3.0, "x:z": 3.0}
        np.testing.assert_array_equal(x[0], [want.get(t, float(t.endswith("b"))) for t in fit.terms])
        self.assertTrue(np.isnan(x[1]).all())
        np.testing.assert_array_equal(np.isnan(x[2]), ["x" in t for t in fit.terms])

    def test_means_are_refused(self):
        d = data()
        d["year"], d["cohort"] = np.arange(400) % 8, np.where(d["firm"] < 6, 4, 99)
        fit = fe.feols("y ~ sunab(cohort, year) | firm + year", d)
        with self.assertRaisesRegex(errors.BadArgument, "no_agg=TRUE"):
            fit.regressors(d)


if __name__ == "__main__":
    unittest.main()
