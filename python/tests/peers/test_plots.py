"""Coefficient plots, and tables as frames, beside matplotlib, pandas and pyfixest."""

import unittest

import matplotlib
import numpy as np
import pandas as pd
import pyfixest as pf

from fourge import errors, fe

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402


def panel():
    rng = np.random.default_rng(3)
    n = 300
    d = pd.DataFrame({"g": rng.integers(0, 9, n), "year": rng.integers(2000, 2005, n), "a": rng.normal(size=n), "b": rng.normal(size=n)})
    return d.assign(y=2 * d.a + d.g + rng.normal(size=n), kind=np.array(["x", "y", "z"])[rng.integers(0, 3, n)])


def numbers(values):
    """matplotlib keeps what errorbar was given as objects."""
    return np.asarray(values, dtype=float)


class Plots(unittest.TestCase):
    def tearDown(self):
        plt.close("all")

    def test_coefplot(self):
        d = panel()
        fits = [fe.feols("y ~ a + b | g", d), fe.feols("y ~ b | g", d)]
        ax = fe.coefplot(fits, labels={"a": "Alpha"})
        self.assertEqual([t.get_text() for t in ax.get_yticklabels()], ["Alpha", "b"])
        np.testing.assert_allclose(numbers(ax.containers[0].lines[0].get_xdata()), fits[0].coef())
        low, high = (numbers(ax.containers[0].lines[1][k].get_xdata()) for k in (0, 1))
        np.testing.assert_allclose(np.column_stack([low, high]), fits[0].confint())
        own = plt.figure().add_subplot()
        self.assertIs(fits[1].coefplot(ax=own, coord_flip=False, title="T"), own)
        np.testing.assert_allclose(numbers(own.containers[0].lines[0].get_ydata()), fits[1].coef())
        with self.assertRaises(ValueError):
            fe.coefplot(fits, keep="nothing")

    def test_iplot(self):
        d = panel()
        fit = fe.feols("y ~ i(year, ref=2002) + a | g", d)
        ax = fit.iplot()
        np.testing.assert_array_equal(numbers(ax.containers[0].lines[0].get_xdata()), [2000, 2001, 2003, 2004])
        np.testing.assert_array_equal(numbers(ax.containers[0].lines[0].get_ydata()), fit.coef()[:4])
        self.assertEqual([(x, y) for line in ax.lines for x, y in [line.get_xydata()[-1]] if line.get_marker() == "x"], [(2002, 0)])
        words = fe.feols("y ~ i(kind, ref='x') | g", d).iplot()
        self.assertEqual({t.get_text() for t in words.get_xticklabels()}, {"x", "y", "z"})
        several = fe.feols("y ~ i(year, ref=c(2001, 2002)) | g", d).iplot()
        crosses = [line.get_xydata().tolist() for line in several.lines if line.get_marker() == "x"]
        self.assertEqual(crosses, [[[2001, 0]], [[2002, 0]]])
        d["kind"] = np.array(["the first", "y", "z"])[np.searchsorted(["x", "y", "z"], d["kind"])]
        words = fe.feols("y ~ i(kind, ref=c('the first', \"z\")) | g", d).iplot()
        self.assertEqual([t.get_text() for t in words.get_xticklabels()], ["y", "the first", "z"])
        with self.assertRaises(errors.BadArgument):
            fe.feols("y ~ a | g", d).iplot()


class Frames(unittest.TestCase):
    def test_tidy_is_pyfixest(self):
        """Names, order and numbers: 1e-8 for what does not depend on p-values' tails."""
        d = panel()
        ours = pd.DataFrame(fe.feols("y ~ a + b | g", d, vcov={"CRV1": "g"}).tidy("pyfixest")).set_index("Coefficient")
        theirs = pf.feols("y ~ a + b | g", d, vcov={"CRV1": "g"}).tidy()
        self.assertEqual(list(ours.columns), list(theirs.columns))
        self.assertEqual(list(ours.index), list(theirs.index))
        np.testing.assert_allclose(ours["Estimate"], theirs["Estimate"], rtol=1e-7)
        np.testing.assert_allclose(ours["Std. Error"], theirs["Std. Error"], rtol=1e-6)
        np.testing.assert_allclose(ours["Pr(>|t|)"], theirs["Pr(>|t|)"], rtol=1e-4)

    def test_frame(self):
        d = panel()
        fits = [fe.feols("y ~ a", d), fe.feols("y ~ a + b | g", d)]
        frame = fe.etable(fits, "df")
        self.assertEqual(frame.loc[("coef", "b")].tolist()[0], "")
        self.assertEqual(frame.loc[("fe", "g")].tolist(), ["-", "x"])
        self.assertEqual(frame.loc[("stats", "Observations")].tolist(), ["300", "300"])
        self.assertEqual(fe.etable(fits[0], "df").index.levels[0].tolist(), ["coef", "stats"])


if __name__ == "__main__":
    unittest.main()
