"""The fixed-effects module, with NumPy alone; frames of other packages where they are installed."""

import csv
import gzip
import importlib.util
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock
import warnings

import numpy as np

import fourge
from fourge import _fourge, errors, fe

ROOT = pathlib.Path(__file__).resolve().parents[2]


def read_csv(name):
    """A data file as {column: array}; columns of numbers become float64."""
    with open(ROOT / "data" / name, newline="") as f:
        rows = list(csv.reader(f))
    out = {}
    for k, column in enumerate(rows[0]):
        values = [row[k] for row in rows[1:]]
        try:
            out[column] = np.array([float(v) for v in values])
        except ValueError:
            out[column] = np.array(values)
    out["year"] = out["year"].astype(np.int64)
    return out


def golden(case):
    """{(quantity, term): value} of a case of grunfeld.tsv, made from pyfixest."""
    with open(ROOT / "tests" / "golden" / "grunfeld.tsv", newline="") as f:
        return {
            (r["quantity"], r["term"]): float(r["value"])
            for r in csv.DictReader(f, delimiter="\t")
            if r["id"] == case and r["quantity"] in ("estimate", "std_error")
        }


def golden_cases():
    with open(ROOT / "tests" / "golden" / "grunfeld.tsv", newline="") as f:
        rows = {r["id"]: r for r in csv.DictReader(f, delimiter="\t")}
    return [r for r in rows.values() if r["weights"] == "-" and r["ssc"] == "-" and r["singletons"] == "-"]


def group_means(x, g):
    return (np.bincount(g, x) / np.bincount(g))[g]


class Feols(unittest.TestCase):
    def test_repaired_covariances_and_counts(self):
        """No error without a variance; every table marks a repaired matrix, and says where K is not fixest's."""
        i = np.arange(16)
        x = np.where(i < 8, 1.0, -1.0)
        data = {"y": np.where((i // 4 + i) % 2, 1, -1) * (1 + 0.01 * i) + x / 2, "x": x, "a": i // 4, "b": i % 4}
        with self.assertWarnsRegex(UserWarning, "not positive"):
            fit = fe.feols("y ~ x", data, "~a+b")
        self.assertTrue(np.isnan(fit.se()).all() and np.isnan(fit.pvalue()).all() and np.isnan(fit.confint()).all())
        self.assertEqual(fit.tidy()["projected"], [True, True])
        for text in (str(fit), *(fit.etable(t) for t in ("text", "md", "tex", "html"))):
            self.assertIn("\u2020 a variance was not positive", text)
            self.assertIn("NA", text)
        plain = fit.vcov("iid")
        self.assertNotIn("projected", plain.tidy())
        self.assertNotIn("\u2020", str(plain) + plain.etable())
        j = np.arange(120)
        nested = {"y": j * j % 11, "x": j**3 % 13, "town": j % 12, "state": j % 12 % 4, "year": j % 5}
        exact, naive = (fe.feols("y ~ x | town + state + year", nested, dof=dof) for dof in ("auto", "naive"))
        k, theirs = exact.result["vcovs"][0]["k"], exact.result["vcovs"][0]["k_naive"]
        self.assertEqual((k, theirs), (1 + 12 + 5 - 1, 1 + 12 + 4 + 5 - 2))
        self.assertEqual(naive.result["vcovs"][0]["k"], theirs)
        ratio = np.sqrt((120 - k) / (120 - theirs))
        np.testing.assert_allclose(naive.se(), ratio * exact.se(), rtol=1e-9)
        for text in (str(exact), exact.etable()):
            self.assertIn(f"count {theirs}, with {ratio:.6g} times", text)
        self.assertNotIn("fixest", str(naive))

    def test_names_with_spaces(self):
        """A cluster is found by its name however it is quoted: the errors are those of the same data under short names."""
        rng = np.random.default_rng(3)
        data = {"y": rng.normal(size=90), "x": rng.normal(size=90), "state name": np.arange(90) % 9, "b": np.arange(90) % 7}
        short = {name.replace("state name", "s"): column for name, column in data.items()}
        for specs, plain in (
            (({"CRV1": "state name"}, {"CRV1": ["state name"]}, {"CRV1": "`state name`"}, "~`state name`", "~ state name ",
              "cluster=`state name`"), "cluster=s"),
            (({"CRV1": "state name+b"}, {"CRV1": ["state name", "b"]}, {"CRV1": "b + `state name`"}, "~`state name` + b"), "cluster=s+b"),
            (({"CRV1": "state name^b"}, "~`state name`^b"), "cluster=s^b"),
        ):
            want = fe.feols("y ~ x | s", short, plain).se()
            for spec in specs:
                with self.subTest(spec):
                    np.testing.assert_array_equal(fe.feols("y ~ x | `state name`", data, spec).se(), want)
                    np.testing.assert_array_equal(fe.feols("y ~ x | `state name`", data).vcov(spec).se(), want)
        with self.assertRaisesRegex(ValueError, "backtick is not closed"):
            fe.feols("y ~ x", data, {"CRV1": "`state name"})

    def test_leave_out(self):
        draw = np.random.default_rng(5)
        worker, firm = np.repeat(np.arange(60), 4), (np.arange(240) * 7 // 2 % 11) % 5
        data = {"y": draw.normal(size=240) + firm, "x": draw.normal(size=240), "worker": worker, "firm": firm}
        plain = fe.feols("y ~ x | worker + firm", data)
        found = plain.leave_out()
        again = fe.feols("y ~ x | worker + firm", data, connected="match").leave_out()
        strip = lambda d: {k: v for k, v in d.items() if k != "seconds"}
        self.assertEqual(strip(found), strip(again))
        self.assertEqual((found["unit"], found["n_second"], found["leverage"]), ("match", 5, "exact"))
        effects = fe.feols("y ~ x | worker + firm", data, connected="match").fixef()
        rows = np.array([effects["firm"][str(f)] for f in firm])
        if found["n"] == 240:
            self.assertAlmostEqual(found["plug_in"]["second"], rows.var(), 10)
        self.assertLess(found["corrected"]["second"], found["plug_in"]["second"])
        approx = plain.leave_out(leverage="approx", draws=400)
        for part in ("first", "second", "covariance"):
            self.assertLess(abs(approx["corrected"][part] - found["corrected"][part]), 4.5 * approx["corrected_error"][part])
            self.assertGreater(found["sampling_error"][part], 0)
        none = plain.leave_out(leave_out="none")
        self.assertNotIn("corrected", none)
        with self.assertRaisesRegex(errors.BadData, "has 1"):
            fe.feols("y ~ x | worker", data).leave_out()
        with self.assertRaisesRegex(ValueError, "draws"):
            plain.leave_out(draws=1)
        with self.assertWarnsRegex(UserWarning, "'firm', taken for the workers, has 5 levels.*write | worker \\+ firm"):
            fe.feols("y ~ x | firm + worker", data).leave_out(leave_out="none")

    def test_connected_sets(self):
        """Workers 0, 1, 2 meet at firms 0 and 1 (six rows), workers 3, 4 at firm 2 (four): sets by hand.  The fit of the
        largest is the fit of its rows."""
        worker = np.array([0, 0, 3, 1, 1, 3, 2, 4, 2, 4])
        firm = np.array([0, 1, 2, 0, 1, 2, 1, 2, 0, 2])
        sets = np.array([1, 1, 2, 1, 1, 2, 1, 2, 1, 2], np.int32)
        rng = np.random.default_rng(6)
        data = {"y": rng.normal(size=10), "x": rng.normal(size=10), "worker": worker, "firm": firm}
        full = fe.feols("y ~ x | worker + firm", data)
        np.testing.assert_array_equal(full.connected_sets(), sets)
        self.assertEqual(full.result["n_dropped"]["disconnected"], 0)
        self.assertNotIn("connected_sets", full.result)
        largest = fe.feols("y ~ x | worker + firm", data, connected="largest")
        r = largest.result
        self.assertEqual((r["n"], r["n_dropped"]["disconnected"], r["connected_sets"]), (6, 4, 2))
        np.testing.assert_array_equal(largest.connected_sets(), np.where(sets == 1, 1, 0))
        np.testing.assert_array_equal(np.isnan(largest.resid()), sets != 1)
        alone = fe.feols("y ~ x | worker + firm", {n: v[sets == 1] for n, v in data.items()})
        np.testing.assert_allclose(largest.coef(), alone.coef(), rtol=1e-10)
        np.testing.assert_allclose(largest.se(), alone.se(), rtol=1e-8)
        self.assertIn("4 for the largest connected set", str(largest))
        with self.assertRaises(ValueError):
            fe.feols("y ~ x | worker", data).connected_sets()
        with self.assertRaisesRegex(ValueError, "connected"):
            fe.feols("y ~ x | worker + firm", data, connected="most")

    def test_golden(self):
        """Every plain case of the golden file: 1e-8 for estimates, 1e-6 for standard errors."""
        data = read_csv("grunfeld.csv")
        seen = 0
        for case in golden_cases():
            fit = fe.feols(case["formula"], data, vcov=case["vcov"])
            want = golden(case["id"])
            for term, b, s in zip(fit.terms, fit.coef(), fit.se()):
                if ("estimate", term) in want:
                    np.testing.assert_allclose(b, want["estimate", term], rtol=1e-8, err_msg=case["id"])
                    seen += 1
                if ("std_error", term) in want:
                    np.testing.assert_allclose(s, want["std_error", term], rtol=1e-6, err_msg=case["id"])
        self.assertGreater(seen, 10)

    def test_formula_of_the_dummies(self):
        """Two-way effects equal least squares with all dummies."""
        rng = np.random.default_rng(1)
        n = 300
        a, b = rng.integers(0, 12, n), rng.integers(0, 9, n)
        x = rng.normal(size=(n, 2))
        y = x @ [1.5, -2.0] + a - 0.3 * b + rng.normal(size=n)
        dummies = np.column_stack([x, np.eye(12)[a], np.eye(9)[b][:, 1:]])
        want = np.linalg.lstsq(dummies, y, rcond=None)[0][:2]
        fit = fe.feols("y ~ u + v | a + b", {"y": y, "u": x[:, 0], "v": x[:, 1], "a": a, "b": b})
        np.testing.assert_allclose(fit.coef(), want, rtol=1e-9)
        residual = y - dummies @ np.linalg.lstsq(dummies, y, rcond=None)[0]
        np.testing.assert_allclose(fit.resid(), residual, atol=1e-9)
        np.testing.assert_allclose(fit.fitted() + fit.resid(), y, atol=1e-12)

    def test_strings_and_missing(self):
        """Strings are categories, None and NaN are missing, rows are counted."""
        data = {
            "y": np.array([1.0, 2, 3, 4, np.nan, 6, 7]),
            "x": np.array([0.5, 1, 2, 2, 1, 5, 3.0]),
            "g": np.array(["a", "b", "a", None, "b", "b", "a"], dtype=object),
        }
        fit = fe.feols("y ~ x | g", data)
        self.assertEqual(fit.result["n_dropped"]["missing"], 2)
        self.assertEqual(fit.result["fixed_effects"], [{"name": "g", "levels": 2}])
        self.assertEqual(list(np.isnan(fit.resid())), [False, False, False, True, True, False, False])

    def test_booleans(self):
        """A logical is named by its truth, as fixest does, whatever holds it."""
        y, h = np.array([1.0, 2, 4, 3, 5, 9]), np.array([False, True, True, False, True, False])
        missing = np.array([False, True, True, False, None, False], dtype=object)
        both = np.array(list(zip(y, h)), dtype=[("y", "f8"), ("h", "?")])
        for data in ({"y": y, "h": h}, {"y": y, "h": h.tolist()}, {"y": y, "h": h.astype(object)}, {"y": y, "h": missing}, both):
            fit = fe.feols("y ~ h", data)
            self.assertEqual(fit.terms, ["(Intercept)", "hTRUE"])
            full = fe.feols("y ~ 0 + h", data)
            self.assertEqual(full.terms, ["hFALSE", "hTRUE"])
            np.testing.assert_allclose(full.predict({"h": np.array([True, False])}), full.coef()[::-1], rtol=1e-14)
            used = np.array([v is not None for v in data["h"]])
            truth = np.array([bool(v) for v in data["h"]])
            np.testing.assert_allclose(fit.coef()[1], y[used & truth].mean() - y[used & ~truth].mean(), rtol=1e-12)

    def test_vcov_after_the_fit(self):
        data = read_csv("grunfeld.csv")
        one = fe.feols("invest ~ value + capital | firm", data, vcov="hetero")
        two = fe.feols("invest ~ value + capital | firm", data).vcov("hetero")
        np.testing.assert_array_equal(one.se(), two.se())
        np.testing.assert_array_equal(np.sqrt(np.diag(one.vcov())), one.se())
        clustered = fe.feols("invest ~ value + capital | firm", data).vcov({"CRV1": "year"})  # which the formula does not name
        np.testing.assert_array_equal(clustered.se(), fe.feols("invest ~ value + capital | firm", data, vcov="cluster=year").se())
        with self.assertRaisesRegex(KeyError, "yaer.*year"):
            clustered.vcov("cluster=yaer")
        grown = {name: list(values) for name, values in data.items()}
        fit = fe.feols("invest ~ value | firm", grown)
        for values in grown.values():
            values.append(values[0])
        with self.assertRaisesRegex(errors.BadData, "cluster=year.*rows"):
            fit.vcov("cluster=year")
        several = fe.feols("invest ~ value | firm", data, vcov=["iid", {"CRV1": "firm"}])
        self.assertEqual([v["spec"] for v in several.result["vcovs"]], ["iid", "cluster=firm"])
        self.assertEqual(several.result["vcovs"][1]["clusters"], {"firm": 11})

    def test_effects_and_prediction(self):
        data = read_csv("grunfeld.csv")
        fit = fe.feols("invest ~ value + capital | firm + year", data)
        effects = fit.fixef()
        self.assertEqual(len(effects["firm"]), 11)
        part = {k: v[:5] for k, v in data.items() if k != "invest"}
        np.testing.assert_allclose(fit.predict(part), fit.fitted()[:5], rtol=1e-9)
        by_hand = np.array([effects["firm"][f] + effects["year"][str(t)] for f, t in zip(part["firm"], part["year"])])
        by_hand = by_hand + fit.coef() @ [part["value"], part["capital"]]
        np.testing.assert_allclose(by_hand, fit.fitted()[:5], rtol=1e-9)
        part["firm"] = np.array(["nobody"] * 5)
        with self.assertWarns(UserWarning):
            self.assertTrue(np.isnan(fit.predict(part)).all())

    def test_tests_of_the_covariance_shown(self):
        """The summary has the first stage under the covariance of its errors, or names the one that it is under."""
        fit = fe.feols("invest ~ 1 | firm | value ~ capital", read_csv("grunfeld.csv"), ["iid", "hc1"])
        first = {t["vcov"]: f"F = {t['f'][0]:.5g}" for t in fit.result["first_stage"]["tests"]}
        self.assertNotEqual(first["iid"], first["hc1"])
        self.assertIn("on capital: " + first["iid"], fit._text())
        self.assertIn("on capital: " + first["hc1"], fit.vcov("hc1")._text())
        self.assertIn("on capital under iid: " + first["iid"], fit.vcov("cluster=firm")._text())

    def test_glance_of_a_family(self):
        fit = fe.fepois("invest ~ value | firm", read_csv("grunfeld.csv"))
        glance = fit.glance()
        self.assertEqual([glance[k] for k in ("pseudo.r.squared", "logLik", "AIC")],
                         [fit.result[k] for k in ("pseudo_r2", "log_likelihood", "aic")])

    def test_negative_binomial(self):
        """The score of theta, with digammas of whole numbers, is 0; the text has theta; less than Poisson's dispersion is warned of."""
        data = read_csv("wage_panel.csv")
        fit = fe.fenegbin("hours ~ union | year", data, vcov={"CRV1": "nr"})
        theta, error, mu, y = fit.result["theta"], fit.result["theta_std_error"], fit.fitted(), data["hours"]
        harmonic = np.concatenate([[0.0], np.cumsum(1 / (theta + np.arange(max(y))))])
        score = np.sum(harmonic[np.asarray(y, int)] + np.log(theta / (theta + mu)) + (mu - y) / (mu + theta))
        self.assertLess(abs(score) * error, 1e-6)
        self.assertIn(f"Theta: {theta:.5g} ({error:.5g})", str(fit))
        same = fe.feglm("hours ~ union | year", data, "negbin", theta=theta)
        np.testing.assert_allclose(same.coef(), fit.coef(), rtol=1e-6)
        self.assertAlmostEqual(fit.result["aic"] - same.result["aic"], 2, places=5)
        self.assertNotIn("theta", fe.fepois("hours ~ union | year", data).result)
        with self.assertWarnsRegex(UserWarning, "FRG-FE-166"):
            self.assertEqual(fe.fenegbin("educ ~ union | year", data).result["theta"], np.inf)

    def test_levels_beyond_doubles(self):
        """Whole numbers above 2^53 are levels of their own in predictions, references and the order of levels, as below."""
        rng = np.random.default_rng(3)
        small = {"y": rng.normal(size=60), "x": rng.normal(size=60), "f": rng.integers(0, 6, 60)}
        large = {**small, "f": small["f"] + 2**60}
        for formula in ("y ~ x | f", "y ~ x + i(f)", "y ~ x | f^f"):
            np.testing.assert_array_equal(fe.feols(formula, large).predict(large), fe.feols(formula, small).predict(small))
        self.assertEqual(fe.feols("y ~ i(f)", large).terms[1:], [f"f::{2**60 + level}" for level in range(1, 6)])
        kept = fe.feols(f"y ~ i(f, ref={2**60 + 3})", large)
        np.testing.assert_array_equal(kept.coef(), fe.feols("y ~ i(f, ref=3)", small).coef())
        fit = fe.feols("y ~ x | f", large)
        with self.assertWarnsRegex(UserWarning, "1 rows have a level"):
            self.assertTrue(np.isnan(fit.predict({"x": np.ones(2), "f": np.array([2**60, 2**60 + 6])})[1]))
        with self.assertRaisesRegex(errors.BadData, "subset: column 'f', row [0-9]+: .* is above 2.53"):
            fe.feols("y ~ x", large, subset=f"f == {2**60 + 3}")

    def test_predictions_without_values(self):
        """A column of words that has no value, and is read as numbers then, makes no prediction, and no error."""
        data = {"y": np.arange(8.0) ** 2, "x": np.arange(8.0), "g": np.array(list("aabbccab"))}
        for formula in ("y ~ x + g", "y ~ x + i(g)", "y ~ x | g"):
            fit = fe.feols(formula, data)
            for rows in (0, 3):
                none = {"x": np.ones(rows), "g": np.full(rows, None)}
                self.assertTrue(np.isnan(fit.predict(none)).all())
                self.assertEqual(fit.predict(none).shape, (rows,))
                self.assertEqual(fit.regressors(none).shape, (rows, len(fit.terms)))
            with self.assertRaisesRegex(errors.BadData, "'g'"):
                fit.predict({"x": np.ones(2), "g": np.array([np.nan, 1.0])})

    def test_columns_of_predictions(self):
        """New data have the offset's and the panel's columns; outcome and instruments may be absent."""
        data = read_csv("grunfeld.csv")
        without = lambda *names: {k: v for k, v in data.items() if k not in names}
        count = fe.fepois("invest ~ value | year", data, offset="log(capital)")
        np.testing.assert_allclose(count.predict(without("invest")), count.fitted(), rtol=1e-8)
        with self.assertRaisesRegex(KeyError, "capital"):
            count.predict(without("invest", "capital"))
        lagged = fe.feols("invest ~ l(value) | firm", data, panel="firm,year")
        np.testing.assert_allclose(lagged.predict(without("invest")), lagged.fitted(), rtol=1e-9)
        iv = fe.feols("invest ~ 1 | firm | value ~ capital", data)
        np.testing.assert_allclose(iv.predict(without("invest", "capital")), iv.fitted(), rtol=1e-9)
        with tempfile.TemporaryDirectory() as folder:  # a file, which the library reads
            path = os.path.join(folder, "new.csv")
            with open(path, "w") as file:
                csv.writer(file).writerows([["firm", "value"], *zip(data["firm"], data["value"])])
            np.testing.assert_allclose(iv.predict(path), iv.fitted(), rtol=1e-9)
        with self.assertRaisesRegex(KeyError, "value"):
            iv.predict(without("invest", "value"))

    def test_frames(self):
        """The same bits from every frame that is installed."""
        data = read_csv("grunfeld.csv")
        want = fe.feols("invest ~ value + capital | firm + year", data).coef()
        tried = 0
        for package, frame in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")):
            if importlib.util.find_spec(package):
                made = getattr(importlib.import_module(package), frame)(data)
                got = fe.feols("invest ~ value + capital | firm + year", made).coef()
                np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=package)
                tried += 1
        if not tried:
            self.skipTest("neither pandas, polars nor pyarrow is installed")

    def test_paths(self):
        """The same bits from a file of each kind, as a name or a Path; under a memory limit by itself from the disk."""
        data = {k: v for k, v in read_csv("grunfeld.csv").items() if k in ("invest", "value", "capital", "year")}
        formula = "invest ~ value + capital | year"
        want = fe.feols(formula, data)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            text = "".join(",".join(map(repr, map(float, row))) + "\n" for row in zip(*data.values()))
            (path / "g.csv").write_text(",".join(data) + "\n" + text)
            (path / "g.csv.gz").write_bytes(gzip.compress((path / "g.csv").read_bytes()))
            np.savez(path / "g.npz", **data)
            np.save(path / "g.npy", np.column_stack([data["invest"], data["value"]]))
            for name in ("g.csv", "g.csv.gz", "g.npz"):
                for given in (path / name, str(path / name)):
                    np.testing.assert_array_equal(fe.feols(formula, given).coef(), want.coef(), err_msg=name)
            np.testing.assert_array_equal(fe.feols("c1 ~ c2", path / "g.npy").coef(), fe.feols("invest ~ value", data).coef())
            fit = pickle.loads(pickle.dumps(fe.feols(formula, path / "g.npz")))
            np.testing.assert_array_equal(fit.resid(), want.resid())
            np.testing.assert_array_equal(fit.predict(path / "g.csv"), want.predict(data))
            with self.assertRaisesRegex(errors.BadData, "did you mean 'value'"):
                fe.feols("invest ~ valu", path / "g.csv")
            with open(path / "long.csv", "w") as f:
                f.write("y,x,a\n" + "".join(f"{i * i % 1009},{i % 97},{i // 40}\n" for i in range(60000)))
            free = fe.feols("y ~ x | a", path / "long.csv")
            with unittest.mock.patch.dict("os.environ", TMPDIR="."), self.assertWarnsRegex(UserWarning, "FRG-CORE-170.* in '.'"):
                np.testing.assert_array_equal(fe.feols("y ~ x | a", path / "long.csv", memory_limit=8 << 20).coef(), free.coef())
            with self.assertRaises(errors.FileError):
                fe.feols("y ~ x", path / "none.csv", memory_limit=8 << 20)

    def test_progress_of_files(self):
        """The bytes of a file that is read."""
        told = []
        n = 1_100_000
        with tempfile.TemporaryDirectory() as folder:
            matrix = np.column_stack([np.arange(n) * 7 % 1013, np.arange(n) % 89]).astype(np.float64)
            np.save(folder + "/m.npy", matrix)
            size = pathlib.Path(folder + "/m.npy").stat().st_size
            fe.feols("c1 ~ c2", folder + "/m.npy", progress=lambda *a, **k: told.append((a, k)) and None)
            done = [a[2] for a, _ in told if a[:2] == ("table", "read")]
            self.assertEqual({a[3] for a, _ in told if a[:2] == ("table", "read")}, {size})
            self.assertEqual(done, sorted(done))
            self.assertTrue(done and 0 < done[0] and done[-1] <= size)  # the later ones a tenth of a second apart

    def test_file_that_is_cut_off(self):
        """While a fit uses it: the numbers are those of a copy, as a fault would take the interpreter with it."""
        n = np.arange(30_000)
        matrix = np.asfortranarray(np.column_stack([n * 7 % 1013, n % 89, n // 30]).astype(np.float64))
        phases = []
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "m.npy")
            np.save(path, matrix)
            want = fe.feols("c1 ~ c2 | c3", path).coef()

            def cut(solver, phase, *_):
                phases.append((solver, phase))
                if phase == "rows":
                    os.truncate(path, 200)

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                np.testing.assert_array_equal(fe.feols("c1 ~ c2 | c3", path, spool=folder, memory_limit=1 << 20, progress=cut).coef(), want)
            self.assertIn(("fe", "rows"), phases)
            self.assertEqual(path.stat().st_size, 200)

    def test_errors(self):
        data = read_csv("grunfeld.csv")
        with self.assertRaises(KeyError) as e:
            fe.feols("invest ~ valu", data)
        self.assertIn("valu", str(e.exception))
        with self.assertRaises(errors.BadArgument) as e:
            fe.feols("invest ~ (value", data)
        self.assertEqual(e.exception.code, "FRG-FE-001")
        with self.assertRaises(errors.Unsupported):
            fe.feols("invest ~ value | firm | capital ~ year", data, vcov={"CRV3": "firm"})
        with self.assertRaises(TypeError) as e:
            fe.feols("invest ~ value", data, tolerance=1)
        self.assertIn("tolerance", str(e.exception))
        with self.assertRaises(ValueError):
            fe.feols("invest ~ value | firm", data, method="newton")
        with self.assertRaises(ValueError):
            fe.feols("y ~ x", {"y": np.zeros(3), "x": np.zeros(4)})
        with self.assertRaises(errors.OutOfMemory):
            fe.feols("invest ~ value | firm", data, memory_limit=1000)

    def test_not_converged_is_said(self):
        n = 2000  # an even cycle: the slowest graph for its size
        codes = np.repeat(np.arange(n), 2)  # each edge twice: degrees of freedom are left
        t = np.arange(2.0 * n)
        data = {"y": np.cos(t), "x": np.sin(7.0 * t), "a": codes // 2, "b": ((codes + 1) % n) // 2}
        with self.assertWarns(errors.NotConverged):
            fit = fe.feols("y ~ x | a + b", data, method="lsmr", max_iter=3)
        self.assertFalse(fit.result["solver"]["converged"])
        self.assertIn("NOT CONVERGED", str(fit))


class Devices(unittest.TestCase):
    def test_backends(self):
        """pyfixest's names of devices: LSMR there, with the numbers of the CPU, or NoDevice by that name.  Each column's level means
        are within 1e-10 of its deviation on both, its distance from the solution within 1e3 of these: coefficients within 1e-6."""
        rng = np.random.default_rng(5)
        data = {"x": rng.normal(size=400), "f": rng.integers(0, 40, 400), "g": rng.integers(0, 9, 400)}
        data["y"] = data["x"] + data["f"] % 7 + rng.normal(size=400)
        data["z"] = rng.normal(size=400)
        here, sloped = (fe.feols(fml, data).coef() for fml in ("y ~ x | f + g", "y ~ x | f[z] + g"))
        names = {"torch_cuda": "float64", "torch_cuda32": "float32", "torch_mps": "float32", "cupy": "float64"}
        for name, dtype in names.items():
            with self.subTest(name):
                try:
                    there = fe.feols("y ~ x | f + g", data, demeaner_backend=name)
                except errors.NoDevice as e:
                    self.assertIn(f"demeaner_backend='{name}' needs the device", str(e))
                    continue
                method = there.result["solver"]["method"]
                self.assertIn("lsmr rows on a device", method)
                self.assertEqual("float32" in method, dtype == "float32")
                self.assertTrue(there.result["converged"])
                np.testing.assert_allclose(there.coef(), here, rtol=1e-6)
                there = fe.feols("y ~ x | f[z] + g", data, demeaner_backend=name)
                self.assertIn("lsmr rows on a device", there.result["solver"]["method"])
                np.testing.assert_allclose(there.coef(), sloped, rtol=1e-6)
                with self.assertRaisesRegex(errors.Unsupported, "without fixed effects"):
                    fe.feols("y ~ x", data, demeaner_backend=name)
                with self.assertRaisesRegex(errors.Unsupported, "varying slopes by another method than lsmr"):
                    fe.feols("y ~ x | f[z] + g", data, device="opencl" if name == "torch_mps" else "cuda")

    def test_generalised(self):
        """A Poisson model whose plan on a device is given other weights at every step: the coefficients of the CPU, by the choice of
        auto on both; steps end at a deviance that changes by 1e-8 of itself."""
        rng = np.random.default_rng(6)
        data = {"x": rng.normal(size=600), "f": rng.integers(0, 50, 600), "g": rng.integers(0, 9, 600)}
        data["y"] = rng.poisson(np.exp(0.3 * data["x"] + 0.05 * data["g"])).astype(float)
        try:
            there = fe.fepois("y ~ x | f + g", data, device="opencl")
        except errors.NoDevice as e:
            self.skipTest(str(e))
        solver, here = there.result["solver"], fe.fepois("y ~ x | f + g", data)
        self.assertIn("on a device", solver["method"])
        self.assertIn(solver["passes_on"], ("opencl:0", "cpu"))
        counts = ("device_launches", "device_waits", "device_bytes_in", "device_bytes_out")
        for key in counts:
            self.assertGreater(solver[key], 0, key)
        self.assertEqual([here.result["solver"][k] for k in ("passes_on", *counts, "host_steps")], ["cpu", 0, 0, 0, 0, {}])
        self.assertGreater(solver["host_steps"]["rows: order, index, weights"], 1)  # the weights of every step
        np.testing.assert_allclose(there.coef(), here.coef(), rtol=1e-6)

    def test_contradicted(self):
        """A name of a device beside another device, method or arithmetic is refused by both, also where there is no such device."""
        data = {"x": [1.0, 2, 3, 5, 4, 7], "f": [1, 1, 2, 2, 3, 3], "y": [1.0, 3, 2, 4, 6, 5]}
        wrong = {"device": "cpu", "method": "cg", "dtype": "f32"}
        for name, place in {"torch_mps": "opencl", "torch_cuda": "cuda"}.items():
            means = {"device": place, "method": "lsmr", "dtype": "mixed" if name == "torch_mps" else "f64"}
            for key, value in wrong.items():
                with self.subTest(f"{name}, {key}"):
                    says = f"demeaner_backend='{name}' means {key}='{means[key]}', but {key}='{value}' is given"
                    with self.assertRaisesRegex(ValueError, says):
                        fe.feols("y ~ x | f", data, demeaner_backend=name, **{key: value})
                    with self.assertRaisesRegex(ValueError, says):
                        fe.feols("y ~ x | f", data, **{key: value}, demeaner_backend=name)


class Plans(unittest.TestCase):
    def test_of_a_fit(self):
        """Made and written by the first fit, read by one of other regressors, whose numbers are those without a file; what a fit does
        later leaves the file alone."""
        draw = np.random.default_rng(3)
        data = {"y": draw.normal(size=300), "x": draw.normal(size=300), "f": draw.integers(0, 30, 300), "g": draw.integers(0, 20, 300),
                "h": draw.integers(0, 9, 300)}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.plan")
            made = fe.feols("y ~ 1 | f + g", data, plan=path)
            read = fe.feols("y ~ x | f + g", data, plan=path)
            self.assertEqual(made.result["plan"], {"file": str(path), "read": False, "written": True})
            self.assertEqual(read.result["plan"], {"file": str(path), "read": True, "written": False})
            alone = fe.feols("y ~ x | f + g", data)
            self.assertNotIn("plan", alone.result)
            np.testing.assert_array_equal((read.coef(), read.se()), (alone.coef(), alone.se()))
            with self.assertRaisesRegex(errors.Mismatch, "other codes"):
                fe.feols("y ~ x | f + g", data, plan=path, subset="h > 2")
            with self.assertRaisesRegex(errors.BadArgument, "one model"):
                fe.feols("y ~ sw0(x) | f + g", data, plan=path)
            path.unlink()
            read.vcov({"CRV1": "h"})
            pickle.loads(pickle.dumps(read)).resid()
            self.assertFalse(path.exists())
            with self.assertRaisesRegex(errors.Unsupported, "method lsmr"):
                fe.feols("y ~ x | f + g", data, plan=path, method="lsmr")
        with self.assertWarnsRegex(RuntimeWarning, "plan: FRG-IO-003: cannot create"):
            kept = fe.feols("y ~ x | f + g", data, plan="missing/x.plan")
        self.assertFalse(kept.result["plan"]["written"])
        np.testing.assert_array_equal(kept.coef(), alone.coef())


class Demean(unittest.TestCase):
    def test_one_factor_is_group_means(self):
        rng = np.random.default_rng(2)
        x, g = rng.normal(size=(500, 3)), rng.integers(0, 40, 500)
        want = np.column_stack([c - group_means(c, g) for c in x.T])
        got, report = fe.demean(x, g)
        np.testing.assert_allclose(got, want, atol=1e-13)
        self.assertTrue(all(report["converged"]))

    def test_a_plan_that_cannot_be_written(self):
        x, g = np.arange(12.0), np.arange(12) % 5
        codes = np.column_stack([g, np.arange(12) // 4])
        with self.assertWarnsRegex(RuntimeWarning, "plan: cannot create"):
            got, _ = fe.demean(x, codes, plan="missing/x.plan")
        np.testing.assert_array_equal(got, fe.demean(x, codes)[0])

    def test_report_of_a_plan(self):
        """Made and written by the first call, read by the second, with its bits; a plan that cannot be written is not."""
        draw = np.random.default_rng(3)
        x, codes = draw.normal(size=(300, 2)), draw.integers(0, 20, (300, 2))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.plan")
            first, made = fe.demean(x, codes, plan=path)
            again, read = fe.demean(x, codes, plan=path)
        np.testing.assert_array_equal(first, again)
        self.assertEqual(made["plan"], {"file": str(path), "read": False, "written": True})
        self.assertEqual(read["plan"], {"file": str(path), "read": True, "written": False})
        self.assertNotIn("plan", fe.demean(x, codes)[1])
        with self.assertWarns(RuntimeWarning):
            self.assertFalse(fe.demean(x, codes, plan="missing/x.plan")[1]["plan"]["written"])

    def test_tolerance_of_float32(self):
        """A tolerance that float32 columns cannot reach is said, and the report has the one they were judged by."""
        draw = np.random.default_rng(4)
        x, codes = draw.normal(size=(300, 2)).astype(np.float32), draw.integers(0, 20, (300, 2))
        for method in ("lsmr", "map"):
            with self.assertWarnsRegex(UserWarning, "FRG-FE-105: tol was raised from 1e-10 to 4.8e-07"):
                report = fe.demean(x, codes, method=method)[1]
            self.assertEqual(report["tol"], 4 * np.finfo(np.float32).eps)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertEqual(fe.demean(x.astype(float), codes, method=method)[1]["tol"], 1e-10)
        with self.assertWarnsRegex(UserWarning, "from 1e-10 to 3.6e-07"):
            fit = fe.feols("y ~ x | f", {"y": x[:, 0], "x": x[:, 1], "f": codes[:, 0]}, dtype="f32")
        self.assertEqual(fit.result["solver"]["tol"], 3.6e-7)

    def test_parts(self):
        """A ring beside units of 60 firms each: two components that are solved apart, in feols and in demean."""
        rng, p, units = np.random.default_rng(9), 300, 300
        a = np.concatenate([np.repeat(np.arange(p), 2), p + np.repeat(np.arange(units), 60)])
        b = np.concatenate([((np.arange(2 * p) + 1) % (2 * p)) // 2, p + rng.integers(0, units, 60 * units)])
        x = rng.normal(size=(len(a), 2))
        report = fe.demean(x, np.column_stack([a, b]))[1]
        self.assertEqual([q["method"] for q in report["parts"]], ["direct", "cg rows"])
        self.assertEqual([q["n"] for q in report["parts"]], [2 * p, 60 * units])
        self.assertEqual([q["components"] for q in report["parts"]], [1, 1])
        worst = max(report["audit"])
        self.assertAlmostEqual(max(q["audit"] for q in report["parts"]) / worst, 1, places=5)
        result = fe.feols("y ~ x | a + b", {"y": x[:, 0], "x": x[:, 1], "a": a, "b": b}).result
        self.assertEqual([q["n"] for q in result["solver"]["parts"]], [2 * p, 60 * units])
        self.assertEqual(result["absorbed"]["components"], 2)
        self.assertEqual(fe.demean(x, a)[1]["parts"], [])

    def test_layouts_and_types(self):
        """Fortran order, strided and offset views, float32, in place, integer types of the codes."""
        rng = np.random.default_rng(3)
        x, codes = rng.normal(size=(400, 2)), rng.integers(0, 15, size=(400, 2))
        want, _ = fe.demean(x, codes)
        np.testing.assert_array_equal(fe.demean(np.asfortranarray(x), codes.astype(np.int16))[0], want)
        wide = np.zeros((800, 5))
        wide[::2, 1:4:2] = x
        np.testing.assert_array_equal(fe.demean(wide[::2, 1:4:2], codes)[0], want)
        np.testing.assert_allclose(fe.demean(x.astype(np.float32), codes)[0], want, atol=3e-6)
        fe.demean(x, codes, out=x)
        np.testing.assert_array_equal(x, want)

    def test_weights(self):
        """Weight 2 is a repeated row."""
        rng = np.random.default_rng(4)
        x, codes = rng.normal(size=60), rng.integers(0, 5, size=(60, 2))
        w = np.where(np.arange(60) % 3 == 0, 2.0, 1.0)
        rows = np.repeat(np.arange(60), w.astype(int))
        got, _ = fe.demean(x, codes, w)
        np.testing.assert_allclose(got[rows], fe.demean(x[rows], codes[rows])[0], atol=1e-9)

    def test_errors(self):
        x = np.zeros((4, 1))
        with self.assertRaises(TypeError):
            fe.demean(x, np.zeros(4))
        with self.assertRaises(errors.BadData):
            fe.demean(x, np.array([0, 1, -1, 0]))
        with self.assertRaises(errors.BadArgument):
            fe.demean(x, np.zeros(3, dtype=int))
        x[2] = np.nan
        with self.assertRaises(errors.BadData):
            fe.demean(x, np.zeros(4, dtype=int))

    def test_threads_at_once(self):
        """Eight threads with contexts of their own get the bits of one."""
        rng = np.random.default_rng(5)
        x, codes = rng.normal(size=(3000, 2)), rng.integers(0, 60, size=(3000, 2))
        want, _ = fe.demean(x, codes, threads=1)
        wrong = []

        def work():
            for _ in range(5):
                if not np.array_equal(fe.demean(x, codes, threads=1)[0], want):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_memory_is_steady(self):
        """10 000 calls: no object of Python is left over.  That no page of the process is, test_steady.py shows."""
        x, codes = np.ones((20, 1)), np.arange(20)[:, None] % 4

        def calls(n):
            for _ in range(n):
                fe.demean(x, codes, threads=1)

        calls(500)
        objects = sys.getallocatedblocks()
        calls(9500)
        self.assertLess(sys.getallocatedblocks() - objects, 200)

    def test_interrupt(self):
        """Ctrl-C and the progress function stop a run; the data stay as they were."""
        n = 40000
        codes = np.arange(n)
        two = np.column_stack([codes // 2, ((codes + 1) % n) // 2])
        x = np.cos(codes)
        kept = x.copy()

        def stop(*_):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            fe.demean(x, two, out=x, method="lsmr", max_iter=10**7, progress=stop)
        np.testing.assert_array_equal(x, kept)
        signal.signal(signal.SIGALRM, lambda *_: stop())
        with self.assertRaises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            fe.demean(x, two, method="lsmr", max_iter=10**7)


    def test_progress(self):
        """progress=True shows a bar of tqdm where that is installed; here of a stand-in, and of none."""
        shown = []

        class Bar:
            def __init__(self, total, desc, leave):
                self.n = 0
                shown.append(["open", desc])

            def update(self, by):
                self.n += by

            def set_postfix_str(self, text):
                shown.append([self.n, text])

            def close(self):
                shown.append(["close"])

        n = 4000
        codes = np.column_stack([np.arange(n) // 2, ((np.arange(n) + 1) % n) // 2])
        solve = lambda progress: fe.demean(np.cos(np.arange(n)), codes, method="lsmr", max_iter=100, progress=progress)
        tqdm = types.ModuleType("tqdm.auto")
        tqdm.tqdm = Bar
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with unittest.mock.patch.dict(sys.modules, {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": tqdm}):
                solve(True)
            with unittest.mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None}):
                solve(True)
            solve(False)
        self.assertEqual((shown[0][0], shown[-1]), ("open", ["close"]))
        self.assertRegex(shown[1][1], r"e[-+]\d\d of ")
        with self.assertRaisesRegex(TypeError, "progress"):
            solve("yes")


class Lsmr(unittest.TestCase):
    def test_least_squares(self):
        rng = np.random.default_rng(6)
        dense = rng.normal(size=(40, 12)) * (rng.uniform(size=(40, 12)) < 0.4)
        indptr = np.concatenate([[0], np.cumsum((dense != 0).sum(1))])
        rows, columns = np.nonzero(dense)
        b = rng.normal(size=(40, 3))
        x, reports = fe.lsmr((dense.shape, indptr, columns, dense[rows, columns]), b, atol=1e-14, btol=1e-14)
        np.testing.assert_allclose(x, np.linalg.lstsq(dense, b, rcond=None)[0], atol=1e-9)
        self.assertEqual({r["stop"] for r in reports}, {2})

    def test_damping(self):
        """damp acts on x itself whether columns are scaled or not: the rows [A; damp I] of a dense solver."""
        rng = np.random.default_rng(7)
        dense = rng.normal(size=(40, 12)) * 10.0 ** -(np.arange(12) / 4)  # columns of norms 1 to 1/560
        b, damp = rng.normal(size=(40, 3)), 0.3
        indptr, columns = np.arange(41) * 12, np.tile(np.arange(12), 40)
        want = np.linalg.lstsq(np.vstack([dense, damp * np.eye(12)]), np.vstack([b, np.zeros((12, 3))]), rcond=None)[0]
        for precond in ("none", "diagonal"):
            x, reports = fe.lsmr((dense.shape, indptr, columns, dense.ravel()), b, atol=1e-14, btol=1e-14, damp=damp, precond=precond)
            # ||A'r|| <= 1e-14 ||A|| ||r|| and a condition number of [A; damp I] below 50
            np.testing.assert_allclose(x, want, atol=1e-10)
            self.assertEqual({r["stop"] for r in reports}, {2})


class Package(unittest.TestCase):
    def test_version(self):
        self.assertEqual(fourge.__version__, _fourge.version()[0])
        with self.assertRaises(AttributeError):
            fourge.nothing

    def test_errors_pickle(self):
        import pickle

        e = pickle.loads(pickle.dumps(errors.BadData("m", "FRG-FE-004", "row 1", "h")))
        self.assertEqual((e.code, e.where, e.hint), ("FRG-FE-004", "row 1", "h"))

    def test_import_takes_no_numpy(self):
        code = "import sys, fourge; sys.exit('numpy' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code]).returncode, 0)

    def test_warnings_are_not_lost(self):
        data = {"y": np.arange(6.0), "x": np.arange(6.0) * 2, "z": np.arange(6.0) ** 2, "g": np.array([0, 0, 0, 1, 1, 1])}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fe.feols("y ~ z + z2 | g", {**data, "z2": 3 * data["z"]})
        self.assertTrue(any("FRG-FE-104" in str(w.message) for w in caught))



class Wald(unittest.TestCase):
    def setUp(self):
        self.fit = fe.feols("invest ~ value + capital | firm", read_csv("grunfeld.csv"), vcov={"CRV1": "firm"})

    def by_definition(self, R, q):
        b, v = self.fit.coef(), self.fit.vcov()
        d = np.atleast_2d(R) @ b - q
        return d @ np.linalg.solve(np.atleast_2d(R) @ v @ np.atleast_2d(R).T, d)

    def test_against_the_definition(self):
        for R, q in (([1.0, 0.0], 0), ([[1.0, 0.0], [0.0, 1.0]], 0), ([[1.0, -2.0]], 0.3), (np.array([[1, 1], [1, -1]]), [0.1, -0.2])):
            w = self.by_definition(np.array(R, float), q)
            found = self.fit.wald_test(R, q)
            np.testing.assert_allclose(found["statistic"], w / len(np.atleast_2d(R)), rtol=1e-10)
            self.assertEqual((found["df1"], found["df2"]), (len(np.atleast_2d(R)), 10))
            np.testing.assert_allclose(self.fit.wald_test(R, q, "chi2")["statistic"], w, rtol=1e-10)
        one = self.fit.wald_test([1.0, 0.0])
        np.testing.assert_allclose(one["pvalue"], self.fit.pvalue()[0], rtol=1e-9)

    def test_by_names_and_under_another_covariance(self):
        both = self.fit.wald_test()
        self.assertEqual(both["df1"], 2)
        np.testing.assert_allclose(both["statistic"], self.fit.glance()["statistic"], rtol=1e-12)
        np.testing.assert_allclose(self.fit.wald_test(keep="val")["statistic"], self.fit.tstat()[0] ** 2, rtol=1e-12)
        np.testing.assert_allclose(self.fit.wald_test(drop="val")["statistic"], self.fit.tstat()[1] ** 2, rtol=1e-12)
        for spec in ("hetero", "iid", "hetero"):
            self.fit.vcov(spec)
            np.testing.assert_allclose(self.fit.wald_test()["statistic"], self.by_definition(np.eye(2), 0) / 2, rtol=1e-10)
        self.fit.fixef()  # fits once more
        np.testing.assert_allclose(self.fit.wald_test()["statistic"], self.by_definition(np.eye(2), 0) / 2, rtol=1e-10)
        plain = fe.feols("invest ~ value + capital", read_csv("grunfeld.csv"))
        self.assertEqual(plain.wald_test()["df1"], 2)

    def test_refusals(self):
        for says, call in (
            ("R: .*shape", lambda: self.fit.wald_test([1.0])), ("R: ", lambda: self.fit.wald_test("value")), ("q: ", lambda: self.fit.wald_test([1, 0], [1, 2])),
            ("distribution", lambda: self.fit.wald_test(distribution="t")), ("depend", lambda: self.fit.wald_test([[1, 0], [2, 0]])),
            ("no term", lambda: self.fit.wald_test(keep="zzz")), ("keep", lambda: self.fit.wald_test([1, 0], keep="value")), ("finite", lambda: self.fit.wald_test([np.nan, 0])),
        ):
            with self.subTest(says), self.assertRaisesRegex((TypeError, ValueError), says):
                call()


if __name__ == "__main__":
    unittest.main()
