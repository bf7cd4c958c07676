"""Tables, summaries and names of regressions, with NumPy alone; the plots are tested beside matplotlib."""

import html.parser
import importlib.util
import pathlib
import tempfile
import unittest
import warnings

import numpy as np

from fourge import errors, fe


def data():
    rng = np.random.default_rng(3)
    n = 200
    g, t = rng.integers(0, 8, n), rng.integers(2000, 2005, n)
    a, b = rng.normal(size=(2, n))
    return {"y_1": 2 * a - 0.1 * b + g + rng.normal(size=n), "a": a, "b|c": b, "b": b, "g": g, "t": t}


class Tables(unittest.TestCase):
    def setUp(self):
        d = data()
        self.fits = [fe.feols("y_1 ~ a", d), fe.feols("y_1 ~ a + b | g + t", d, vcov={"CRV1": "g"})]

    def lines(self, **options):
        return [line.split() for line in fe.etable(self.fits, **options).splitlines() if not line.startswith("-")]

    def test_first_stages(self):
        d = data() | {"z": np.random.default_rng(4).normal(size=200)}
        d["a"] = d["a"] + d["z"]
        fit = fe.feols("y_1 ~ b | g | a ~ z", d)
        row = next(line for line in fe.etable([self.fits[0], fit]).splitlines() if line.startswith("First-stage F"))
        self.assertEqual(row.split()[2:], ["-", f"{fit.result['first_stage']['tests'][0]['f'][0]:.3f}"])
        self.assertNotIn("First-stage", fe.etable(self.fits))

    def test_numbers(self):
        """Every number of the table is the fit's."""
        rows = self.lines(digits=5, coef_fmt="b [ci_l, ci_u] \n t p se")
        one, two = (f._shown["coefficients"] for f in self.fits)
        self.assertEqual(rows[:2], [["y_1", "y_1"], ["(1)", "(2)"]])
        at = [r[0] for r in rows].index("a")
        a_one, a_two = next(c for c in one if c["term"] == "a"), two[0]
        shown = lambda c: [f"{c['estimate']:.5f}", f"[{c['conf_low']:.5f},", f"{c['conf_high']:.5f}]"]
        self.assertEqual(rows[at][1:], shown(a_one) + shown(a_two))
        self.assertEqual(rows[at + 1], [f"{c[k]:.5f}" for c in (a_one, a_two) for k in ("statistic", "p_value", "std_error")])
        self.assertIn(["g", "-", "x"], rows)
        self.assertIn(["Observations", "200", "200"], rows)
        self.assertIn(["S.E.", "type", "iid", "by:", "g"], rows)
        self.assertIn(["R2", "Within", "-", f"{self.fits[1].result['r2_within']:.5f}"], rows)

    def test_which_and_what_names(self):
        terms = lambda **o: [r[0] for r in self.lines(coef_fmt="b", **o)][2:]
        self.assertEqual(terms(keep=["^b$", "a"], show_fe=False)[:2], ["b", "a"])
        self.assertNotIn("b", terms(drop="b"))
        self.assertEqual(terms(keep="b", exact_match=True)[0], "b")
        rows = self.lines(coef_fmt="b", labels={"a": "Alpha", "y_1": "Outcome"}, felabels={"g": "Group"}, model_heads=["L", "R"],
                          fe_present="yes", fe_absent="no", notes="A note")
        self.assertEqual(rows[:2], [["Outcome", "Outcome"], ["L", "R"]])
        self.assertIn(["Group", "no", "yes"], rows)
        self.assertEqual(rows[-1], ["A", "note"])

    def test_stars_only_when_asked(self):
        self.assertNotIn("*", fe.etable(self.fits))
        text = fe.etable(self.fits, signif_code=[0.001, 0.01, 0.05])
        p = self.fits[1].pvalue()
        self.assertLess(p[0], 0.001)
        self.assertIn(f"{self.fits[1].coef()[0]:.3f}***", text)
        self.assertIn("* p < 0.05, ** p < 0.01, *** p < 0.001", text)

    def test_markdown_and_tex_escape(self):
        md = fe.etable(self.fits, "md", labels={"b": "b|c"}, signif_code=[0.001, 0.01, 0.05]).splitlines()
        self.assertTrue(all(line.count("|") - line.count("\\|") == 4 for line in md if line.startswith("|")))
        self.assertIn("\\*\\*\\*", "".join(md))
        tex = fe.etable(self.fits, "tex", labels={"a": "50% of a_b & {c}"})
        self.assertIn(r"50\% of a\_b \& \{c\}", tex)
        self.assertIn(r"y\_1", tex)
        body = [line for line in tex.splitlines() if line.endswith(r"\\")]
        self.assertTrue(all(line.replace(r"\&", "").count("&") == 2 for line in body))
        self.assertEqual((tex.count(r"\begin"), tex.count(r"\end")), (1, 1))

    def test_html_is_well_formed(self):
        class Parser(html.parser.HTMLParser):
            def __init__(self):
                super().__init__()
                self.open, self.words, self.rows = [], [], 0

            def handle_starttag(self, tag, attributes):
                self.rows += tag == "tr"
                if tag != "br":
                    self.open.append(tag)

            def handle_endtag(self, tag):
                assert self.open.pop() == tag

            def handle_data(self, text):
                self.words.append(text)

        parser = Parser()
        parser.feed(fe.etable(self.fits, "html", labels={"a": "<script>a&b"}))
        self.assertEqual(parser.open, [])
        self.assertIn("<script>a&b", parser.words)
        self.assertEqual(parser.rows, 2 + 3 + 2 + 4)
        self.assertIn("<table", self.fits[0]._repr_html_())

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.tex"
            text = fe.etable(self.fits, "tex", file_name=path)
            self.assertEqual(path.read_text(), text + "\n")

    def test_refusals(self):
        for options in ({"type": "gt"}, {"coef_fmt": "b (stderr)"}, {"model_heads": ["one"]}):
            with self.assertRaises(ValueError):
                fe.etable(self.fits, **options)
        with self.assertRaises(TypeError):
            fe.etable(["y ~ x"])

    def test_not_converged_is_said(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.NotConverged)
            fit = fe.feols("y_1 ~ a | g + t", data(), method="cg", precond="off", max_iter=1)
        self.assertFalse(fit.result["solver"]["converged"])
        self.assertIn("Not converged: (2)", fe.etable([self.fits[0], fit]))


class Names(unittest.TestCase):
    def test_tidy(self):
        fit = fe.feols("y_1 ~ a + b | g", data(), level=0.9)
        broom = fit.tidy()
        self.assertEqual(list(broom), ["term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high"])
        self.assertEqual(broom["term"], ["a", "b"])
        np.testing.assert_array_equal(broom["estimate"], fit.coef())
        theirs = fit.tidy("pyfixest")
        self.assertEqual(list(theirs), ["Coefficient", "Estimate", "Std. Error", "t value", "Pr(>|t|)", "5.0%", "95.0%"])
        np.testing.assert_array_equal(theirs["95.0%"], fit.confint()[:, 1])
        with self.assertRaises(ValueError):
            fit.tidy("stata")

    def test_glance_and_augment(self):
        d = data()
        fit = fe.feols("y_1 ~ a + b | g", d)
        self.assertEqual(fit.glance()["nobs"], 200)
        both = fit.augment()
        np.testing.assert_allclose(both[".fitted"] + both[".resid"], d["y_1"], atol=1e-12)
        np.testing.assert_allclose(fit.glance()["rmse"], np.sqrt(np.mean(both[".resid"] ** 2)), rtol=1e-12)

    def test_summary(self):
        d = data()
        d["y_1"] = np.where(np.arange(200) == 5, np.nan, d["y_1"])
        d["twice"] = 2 * d["a"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = str(fe.feols("y_1 ~ a + twice | g + t", d, vcov={"CRV1": "g+t"}))
        for part in ("Dep. Var.: y_1", "Observations: 199 (dropped: 1 for missing values)", "g: 8,  t: 5",
                     "Clustered (g, t)", "Pr(>|t|)", "twice: dropped, collinear", "Within R2: "):
            self.assertIn(part, text)


class Plots(unittest.TestCase):
    @unittest.skipIf(importlib.util.find_spec("matplotlib"), "matplotlib is here; peers/test_plots.py")
    def test_without_matplotlib(self):
        with self.assertRaisesRegex(ImportError, "pip install matplotlib"):
            fe.coefplot(fe.feols("y_1 ~ a", data()))


if __name__ == "__main__":
    unittest.main()
