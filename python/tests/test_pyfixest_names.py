"""fourge.pyfixest.feols without pyfixest, and without pandas too: the shape of what it gives, its
formulas, its refusals."""

import copy
import importlib.util
import io
import pickle
import unittest
import warnings
from contextlib import redirect_stdout

import numpy as np
from fourge import datasets, errors, fe
from fourge import pyfixest as pf

PANDAS = importlib.util.find_spec("pandas") is not None
COLUMNS = ["Estimate", "Std. Error", "t value", "Pr(>|t|)", "2.5%", "97.5%"]
DATA = dict(datasets.load("grunfeld"))
DATA["size"] = np.array(
    ["big" if v > 400 else "middle" if v > 100 else "small" for v in DATA["value"]]
)
DATA["late"] = np.asarray(DATA["year"]) > 1944
FML = "invest ~ value + capital | firm + year"


def terms(fml, **options):
    return pf.feols(fml, DATA, **options)._coefnames


class Shape(unittest.TestCase):
    def setUp(self):
        self.fit = pf.feols(FML, DATA)

    def test_columns(self):
        """By name, by position, and as numbers, with pandas and without."""
        for column in (self.fit.coef(), self.fit.se(), self.fit.tstat(), self.fit.pvalue()):
            self.assertEqual(len(column), 2)
            place = column.iloc if PANDAS else column
            self.assertEqual(column["capital"], place[1])
            self.assertEqual(list(column.index if PANDAS else column.names), ["value", "capital"])
        np.testing.assert_array_equal(self.fit.coef(), self.fit.fit.coef())
        np.testing.assert_allclose(self.fit.coef() / self.fit.se(), self.fit.tstat(), rtol=1e-15)

    def test_tidy(self):
        table = self.fit.tidy()
        self.assertEqual(list(table), COLUMNS if PANDAS else ["Coefficient", *COLUMNS])
        if PANDAS:
            self.assertEqual(
                (table.index.name, list(table.index)), ("Coefficient", ["value", "capital"])
            )
        self.assertEqual(list(self.fit.tidy(alpha=0.1))[-2:], ["5.0%", "95.0%"])
        with self.assertRaisesRegex(ValueError, "alpha=5"):
            self.fit.tidy(5)

    def test_confint(self):
        """Another level is that of a fit which was given it, under the covariance that is shown."""
        np.testing.assert_array_equal(
            np.column_stack([np.asarray(self.fit.confint()[c]) for c in COLUMNS[-2:]]),
            self.fit.fit.confint(),
        )
        want = fe.feols(FML, DATA, {"CRV1": "firm"}, level=0.9, collin="fixest").confint()
        found = self.fit.vcov({"CRV1": "firm"}).confint(0.1, keep=["cap", "val"])
        self.assertEqual(list(found), ["5.0%", "95.0%"])
        np.testing.assert_allclose(
            np.column_stack([np.asarray(found[c]) for c in found]), want[::-1], rtol=1e-13
        )
        self.assertEqual(len(self.fit.confint(drop="value")["2.5%"]), 1)
        with self.assertRaisesRegex(ValueError, "no coefficient matches"):
            self.fit.confint(keep="val", exact_match=True)

    def test_rows(self):
        """Residuals and predictions are of the rows that were used."""
        data = DATA | {"value": np.where(np.arange(220) == 3, np.nan, DATA["value"])}
        fit = pf.feols(FML, data)
        self.assertEqual((len(fit.resid()), len(fit.predict()), fit._N), (219, 219, 219))
        np.testing.assert_allclose(
            fit.resid() + fit.predict(), np.delete(DATA["invest"], 3), atol=1e-11
        )
        new = fit.predict({k: v[:5] for k, v in data.items()})
        np.testing.assert_array_equal(np.isnan(new), np.arange(5) == 3)
        np.testing.assert_allclose(new[:3], fit.predict()[:3], rtol=1e-9)

    def test_fixef(self):
        """Sorted, the first level of the second factor left out, and with the terms they make the
        fitted values."""
        found = self.fit.fixef()
        self.assertEqual(list(found), ["C(firm)", "C(year)"])
        self.assertEqual(list(found["C(firm)"]), sorted(set(map(str, DATA["firm"]))))
        self.assertEqual(list(found["C(year)"]), [str(y) for y in range(1936, 1955)])
        b = self.fit.coef()
        effects = [
            found["C(firm)"][str(f)] + found["C(year)"].get(str(y), 0)
            for f, y in zip(DATA["firm"], DATA["year"])
        ]
        np.testing.assert_allclose(
            np.asarray(DATA["value"]) * b["value"]
            + np.asarray(DATA["capital"]) * b["capital"]
            + effects,
            self.fit.predict(),
            atol=1e-8,
        )
        turned = pf.feols(FML, {k: v[::-1] for k, v in DATA.items()}).fixef()
        for name, levels in found.items():
            np.testing.assert_allclose(
                [turned[name][k] for k in levels], list(levels.values()), atol=1e-8
            )

    def test_another_covariance(self):
        other = copy.copy(self.fit)
        before = np.asarray(self.fit.se())
        self.assertIs(other.vcov("hetero"), other)
        self.assertGreater(np.max(np.abs(other.se() - before)), 1e-4)
        np.testing.assert_array_equal(self.fit.se(), before)
        self.assertEqual(other._vcov.shape, (2, 2))
        np.testing.assert_allclose(np.sqrt(np.diag(other._vcov)), other.se(), rtol=1e-14)

    def test_pickle(self):
        again = pickle.loads(pickle.dumps(self.fit))
        np.testing.assert_array_equal(again.se(), self.fit.se())
        np.testing.assert_array_equal(again.vcov("HC1").se(), self.fit.vcov("HC1").se())

    def test_summary(self):
        with redirect_stdout(io.StringIO()) as out:
            self.fit.summary(digits=4)
        for part in (
            "Dep. var.: invest, Fixed effects: firm + year",
            "Inference: iid",
            "Observations: 220",
            f"{self.fit.coef()['value']:.4f}",
        ):
            self.assertIn(part, out.getvalue())
        self.assertIn("CRV1 (firm)", repr(self.fit.vcov({"CRV1": "firm"})))

    def test_wald(self):
        """F of all coefficients, as pyfixest has it; of anything else chi2, which is told."""
        whole = self.fit.wald_test()
        np.testing.assert_allclose(
            whole["statistic"], self.fit.fit.wald_test()["statistic"], rtol=1e-14
        )
        with self.assertWarnsRegex(UserWarning, "chi2"):
            one = self.fit.wald_test(np.array([1.0, 0.0]))
        np.testing.assert_allclose(one["statistic"], self.fit.tstat()["value"] ** 2, rtol=1e-12)


class Dialect(unittest.TestCase):
    def test_terms(self):
        for fml, names in (
            ("invest ~ value", ["Intercept", "value"]),
            ("invest ~ value^2 + value**3", ["Intercept", "value"]),
            ("invest ~ I(value**2) + log(capital)", ["Intercept", "I(value ** 2)", "log(capital)"]),
            ("invest ~ size", ["Intercept", "size[T.middle]", "size[T.small]"]),
            ("invest ~ 0 + size", ["size[big]", "size[middle]", "size[small]"]),
            (
                "invest ~ size:capital",
                ["Intercept", "size[big]:capital", "size[middle]:capital", "size[small]:capital"],
            ),
            (
                "invest ~ size*capital | firm",
                [
                    "size[T.middle]",
                    "size[T.small]",
                    "capital",
                    "size[T.middle]:capital",
                    "size[T.small]:capital",
                ],
            ),
            ("invest ~ C(size) + late | firm", ["C(size)[T.middle]", "C(size)[T.small]", "late"]),
            ("invest ~ i(size, ref='big') | firm", ["size::middle", "size::small"]),
        ):
            with self.subTest(fml):
                self.assertEqual(terms(fml), names)

    def test_powers(self):
        """x**2 outside calls is x, with the numbers of x; effects keep their interactions."""
        np.testing.assert_array_equal(
            pf.feols("invest ~ value**2 | firm^late", DATA).coef(),
            pf.feols("invest ~ value | firm^late", DATA).coef(),
        )
        for fml in ("invest ~ (value + capital)**2", "invest ~ log(value)^2 + capital"):
            with self.assertRaisesRegex(errors.Unsupported, "power behind parentheses"):
                pf.feols(fml, DATA)

    def test_rank(self):
        """K counts levels, as pyfixest does; dof="auto" counts the rank."""
        fml = "invest ~ value | firm + firm^late"
        naive, exact = pf.feols(fml, DATA), pf.feols(fml, DATA, dof="auto")
        self.assertEqual((naive.fit.result["k"], exact.fit.result["k"]), (1 + 11 + 22 - 1, 1 + 22))
        np.testing.assert_allclose(
            naive.se() * np.sqrt(220 - 33), exact.se() * np.sqrt(220 - 23), rtol=1e-12
        )

    def test_ssc(self):
        fit = lambda **o: np.asarray(pf.feols("invest ~ value | firm", DATA, "HC1", **o).se())
        np.testing.assert_allclose(fit(), fit(ssc=pf.ssc()), rtol=0)
        np.testing.assert_allclose(
            fit(ssc=pf.ssc(G_adj=False)), fit(), rtol=0
        )  # HC1 has no G in pyfixest
        np.testing.assert_allclose(
            fit(ssc=pf.ssc(k_adj=False)) * np.sqrt(220 / (220 - 12)), fit(), rtol=1e-13
        )
        np.testing.assert_allclose(fit(ssc={"adj": False}), fit(ssc=pf.ssc(k_adj=False)), rtol=0)
        with self.assertRaisesRegex(ValueError, "'k_adjust' is none of"):
            fit(ssc={"k_adjust": False})


class Refusals(unittest.TestCase):
    def test_keywords(self):
        """What cannot act raises by its name."""
        for name, value in (
            ("vcov_kwargs", {"lag": 2}),  # without NW or DK
            ("drop_intercept", True),
            ("store_data", False),
            ("lean", True),
            ("solver", "jax"),
            ("demeaner_backend", "rust"),
            ("use_compression", True),
            ("reps", 99),
            ("context", {}),
            ("split", "firm"),
            ("fsplit", "firm"),
        ):
            with self.subTest(name), self.assertRaisesRegex(errors.Unsupported, f"^{name}="):
                pf.feols(FML, DATA, **{name: value})
        with self.assertRaises(errors.NoDevice):
            pf.feols(FML, DATA, demeaner_backend="cupy")
        with self.assertRaisesRegex(TypeError, "did you mean 'weights'"):
            pf.feols(FML, DATA, weigths="value")

    def test_what_is_not_built(self):
        for fml in (
            "invest + value ~ capital",
            "invest ~ sw(value, capital)",
        ):
            with self.subTest(fml), self.assertRaises(errors.Unsupported):
                pf.feols(fml, DATA)
        for vcov in ("HC3", {"CRV5": "firm"}):
            with self.subTest(vcov), self.assertRaises(errors.Unsupported):
                pf.feols(FML, DATA, vcov)
        with self.assertRaisesRegex(TypeError, "vcov: expected a name"):
            pf.feols(FML, DATA, ["iid"])
        fit = pf.feols(FML, DATA)
        for call in (
            lambda: fit.vcov("iid", data=DATA),
            lambda: fit.predict(se_fit=True),
            lambda: fit.predict(DATA, atol=1e-9),
            lambda: fit.confint(joint=True),
            lambda: fit.confint(seed=1),
            lambda: fit.fixef(btol=1e-9),
        ):
            self.assertRaises(errors.Unsupported, call)
        for name, hint in (("coefplot", "fit.fit.coefplot"), ("wildboottest", "demeaning")):
            with self.assertRaisesRegex(AttributeError, hint):
                getattr(fit, name)
        with self.assertRaisesRegex(AttributeError, "fepois.*demeaning"):
            pf.fepois  # noqa: B018

    def test_a_variance_that_was_not_positive_is_told(self):
        with self.assertWarnsRegex(UserWarning, "which pyfixest does not do"):
            fit = pf.feols("invest ~ i(year, ref=1935) | firm", DATA, {"CRV1": "firm + late"})
        self.assertEqual(list(fit.tidy())[-1], "97.5%")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fit.vcov("iid")


if __name__ == "__main__":
    unittest.main()
