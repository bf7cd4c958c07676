"""Event studies and difference in differences, against pyfixest 0.60.0's numbers on a panel that is a formula.

pyfixest's demeaner stops at 1e-6; where its answer is that of a few exact steps, as on the full panel, 1e-9 of the estimates'
size is left to rounding.
"""

import itertools
import os
import tempfile
import unittest
import warnings

import numpy as np

from fourge import _fourge, _frame, errors, fe

NAMES = {"yname": "y", "idname": "unit", "tname": "year", "gname": "g"}


def panel(full=True):
    """30 units in ten years, a quarter of them never treated, some rows missing where it is not full."""
    rows = []
    for i in range(30):
        g = (0, 2003, 2005, 2007)[i % 4]
        for t in range(2000, 2010):
            if full or (i * 5 + t * 3) % 23:
                x, treat = ((i * 613 + t * 977 + i * t * 17) % 503) / 503, int(0 < g <= t)
                noise = ((i * 7919 + t * 104729 + i * t * 31) % 1009) / 1009 - 0.5
                y = 0.3 * (i % 7) + 0.1 * (t - 2000) + 0.5 * x + treat * (1 + 0.25 * (t - g) + 0.1 * (i % 3)) + noise
                rows.append((i, t, g, i % 11, treat, t - g if g else -1, x, y))
    columns = zip("unit year g state treat rel x y".split(), zip(*rows))
    return {name: np.array(values) for name, values in columns}


def philox(seed, stream, index, step):
    """Four words of Philox4x32-10 (Salmon et al. 2011) of the key (seed, stream) and the counter (index, step)."""
    low = 0xFFFFFFFF
    mixed = (seed + stream * 0x9E3779B97F4A7C15) % 2**64
    key, c = [mixed & low, mixed >> 32], [index & low, index >> 32, step & low, step >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ key[0], q & low, (p >> 32) ^ c[3] ^ key[1], p & low]
        key = [(key[0] + 0x9E3779B9) & low, (key[1] + 0xBB67AE85) & low]
    return c


def permuted(values, seed, draw, strata=None):
    """The values in the order of a draw of ritest: Fisher and Yates' shuffle from the last one down, stratum after stratum, which are
    numbered as they come."""
    out, strata = np.array(values), np.zeros(len(values)) if strata is None else np.asarray(strata)
    places = np.concatenate([np.flatnonzero(strata == s) for s in dict.fromkeys(strata.tolist())])
    begins = [int(np.flatnonzero(strata[places] == strata[p])[0]) for p in places]
    for i in range(len(out) - 1, 0, -1):
        word = philox(seed, 0x72697465, draw, i)
        k = begins[i] + ((word[0] << 32 | word[1]) * (i - begins[i] + 1) >> 64)
        out[places[i]], out[places[k]] = out[places[k]], out[places[i]]
    return out


class Studies(unittest.TestCase):
    def check(self, fit, term, estimate, std_error, tolerance=1e-6):
        np.testing.assert_allclose((fit.coef()[term], fit.se()[term]), (estimate, std_error), rtol=tolerance, atol=tolerance)

    def test_event_study(self):
        data = panel(full=False)
        self.check(fe.event_study(data, **NAMES), "is_treated", 1.3285377995807, 0.110219920214809)
        self.check(fe.event_study(data, **NAMES, estimator="did2s"), "is_treated", 1.70495987839919, 0.0928048163054728)
        fit = fe.event_study(data, **NAMES, estimator="saturated", att=False)
        self.check(fit, "year::-7", -0.204564339957656, 0.198477645983297)
        self.check(fit, "year::6", 2.54008111761384, 0.19253648188597)
        self.assertEqual([e["time"] for e in fit.result["events"] if e["term"] is None], [-1])
        self.assertEqual(fe.event_study(data, **NAMES, estimator="saturated").terms, ["ATT"])
        twfe = fe.event_study(data, **NAMES, xfml="x", cluster="state", att=False)
        direct = fe.feols("y ~ i(rel, ref=-1) + x | unit + year", data, {"CRV1": "state"})
        np.testing.assert_array_equal(twfe.se(), direct.se())

    def test_did2s(self):
        data = panel(full=False)
        fit = fe.did2s(data, "y", "~ 0 | unit + year", "~ i(treat)", "treat", "state")
        self.check(fit, "treat::1", 1.70495987839919, 0.0690694474483463)
        self.assertEqual(fit.result["two_stage"], {"first_stage": "treat ~ 0 | unit + year", "n": int(np.sum(data["treat"] == 0))})
        fit = fe.did2s(data, "y", "~ x | unit + year", "~ i(rel, ref=-1)", "treat", "state")
        self.check(fit, "rel::5", 2.35943006269366, 0.139615672715147)
        weighted = fe.did2s({**data, "w": 1 + (data["unit"] * 3 + data["year"]) % 4}, "y", "~ x | unit + year", "~ i(rel, ref=-1)", "treat",
                            "state", weights="w")
        self.check(weighted, "rel::5", 2.33153756308029, 0.1452175280236)

    def test_lpdid(self):
        wanted = {-3: (-0.0462911027462, 0.10290966881), -2: (-0.00612046176737, 0.109423796972), 0: (1.08600660977, 0.0876856235587),
                  1: (1.31977834711, 0.107205508581), 2: (1.61580516953, 0.112297469022), 3: (2.01621400657, 0.137395099116)}
        found = fe.lpdid(panel(), **NAMES, pre_window=-3, post_window=3, att=False)
        self.assertEqual(list(found.fits), list(wanted))
        for h, (estimate, std_error) in wanted.items():
            np.testing.assert_allclose((found.coef()[h], found.se()[h]), (estimate, std_error), rtol=0, atol=1e-9)
        self.assertEqual(found.tidy()["N"], [120, 150, 180, 150, 120, 91])
        self.assertEqual(found.tidy("pyfixest")["Coefficient"][0], "time_to_treatment::-3")
        pooled = fe.lpdid(panel(), **NAMES, post_window=3, xfml="x")
        np.testing.assert_allclose((pooled.coef()[0], pooled.se()[0]), (1.5641717985, 0.113990856496), rtol=0, atol=1e-9)

    def test_lpdid_mean(self):
        """Reweighted, the estimate is the mean over the treated units of their change less that of the untreated, from the mean of
        some or of all periods before."""
        data = panel()
        y, cohort = data["y"].reshape(30, 10), data["g"].reshape(30, 10)[:, 0]
        first = np.where(cohort > 0, cohort - 2000, 99)
        for pmd, h in itertools.product((1, 3, "max"), (-1, 0, 2)):
            found = fe.lpdid(data, **NAMES, pre_window=-1, post_window=2, att=False, reweight=True, pmd=pmd)
            effects = []
            for t in (3, 5, 7):
                base = y[:, (0 if pmd == "max" else t - pmd):t].mean(axis=1)
                change = y[:, t + h] - base
                effects += list(change[first == t] - change[first > t + max(h, 0)].mean())
            if pmd == 1 and h == -1:
                self.assertNotIn(h, found.fits)
                continue
            self.assertAlmostEqual(found.coef()[h], np.mean(effects), delta=1e-9)
            self.assertEqual(found.fits[h].terms, ["treat_diff"])
        for pmd in (0, "all", True):
            with self.assertRaisesRegex(ValueError, "pmd="):
                fe.lpdid(data, **NAMES, pmd=pmd)
        with self.assertRaisesRegex(errors.BadArgument, "pmd=8: no unit"):
            fe.lpdid(data, **NAMES, pmd=8)

    def test_gaps(self):
        """An outcome that is missing at t + h drops its row; the order of the rows does not matter."""
        data = panel()
        kept = np.flatnonzero((data["unit"] != 1) | (data["year"] != 2005))
        short = {name: values[kept] for name, values in data.items()}
        count = lambda d: fe.lpdid(d, **NAMES, pre_window=-2, post_window=2, att=False).tidy()["N"]
        mixed = {name: values[np.argsort(np.sin(np.arange(len(values))))] for name, values in short.items()}
        self.assertEqual(count(short), count(mixed))
        # unit 1 is treated in 2003: of -2, 0, 1, 2 only the last wants its outcome of 2005
        self.assertEqual(np.subtract(count(data), count(short)).tolist(), [0, 0, 0, 1])

    def same(self, one, other):
        """The same terms, estimates and errors, to rounding."""
        self.assertEqual(one.terms, other.terms)
        np.testing.assert_allclose((one.coef(), one.se()), (other.coef(), other.se()), rtol=1e-10, atol=1e-12)

    def test_never_treated(self):
        """A missing cohort, one after the last period and 0 are the same; without a warning."""
        data = panel()
        for value in (np.nan, 3000.0, np.inf):
            other = {**data, "g": np.where(data["g"] == 0, value, data["g"])}
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for estimator, att in itertools.product(("twfe", "did2s", "saturated"), (True, False)):
                    study = lambda d: fe.event_study(d, **NAMES, estimator=estimator, att=att)
                    self.same(study(other), study(data))
                self.same(fe.lpdid(other, **NAMES, post_window=2).fits[0], fe.lpdid(data, **NAMES, post_window=2).fits[0])
        given = fe.lpdid({**data, "g": np.where(data["g"] == 0, 5, data["g"])}, **NAMES, post_window=2, never_treated=5)
        self.same(given.fits[0], fe.lpdid(data, **NAMES, post_window=2).fits[0])

    def test_always_treated(self):
        """They are left out by each estimator, and counted; a cohort in a gap of the calendar is not taken for never treated."""
        data = panel()
        early = {**data, "g": np.where(data["unit"] % 7 == 3, 1999, data["g"])}
        without = {name: values[early["g"] != 1999] for name, values in data.items()}
        studies = [lambda d, e=e: fe.event_study(d, **NAMES, estimator=e) for e in ("twfe", "did2s", "saturated")]
        for study in (*studies, lambda d: fe.lpdid(d, **NAMES, post_window=2).fits[0]):
            with self.assertWarnsRegex(UserWarning, "FRG-FE-155.* 40 rows of 4 units") as caught:
                found = study(early)
            self.assertEqual(os.path.basename(caught.filename), "test_did.py")
            self.same(found, study(without))
        gap = {name: values[data["year"] != 2005] for name, values in data.items()}
        self.assertEqual([study(gap).nobs for study in studies[:2]], [270, 270])
        with self.assertRaisesRegex(errors.BadData, "period 2005 .* write 2006"):
            studies[2](gap)
        with self.assertRaisesRegex(errors.BadData, "cohort 2005 has no row at 2004"):
            studies[2]({name: values[(data["year"] != 2004) | (data["g"] != 2005)] for name, values in data.items()})

    def test_subset(self):
        """Cohorts are sorted by the rows of the subset: the same as of the data without the others, without a warning of those."""
        data = panel()
        early = {**data, "g": np.where(data["unit"] % 7 == 3, 1999, data["g"]), "kept": (data["unit"] % 7 != 3) & (data["year"] < 2008)}
        without = {name: values[early["kept"]] for name, values in early.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for estimator, att in itertools.product(("twfe", "did2s", "saturated"), (True, False)):
                study = lambda d, **options: fe.event_study(d, **NAMES, estimator=estimator, att=att, **options)
                self.same(study(early, subset="kept"), study(without))
            units = {name: values[data["unit"] % 7 != 3] for name, values in early.items()}
            for options in ({}, {"reweight": True}):
                found = fe.lpdid(early, **NAMES, att=False, subset="unit != 3 & unit != 10 & unit != 17 & unit != 24", **options)
                wanted = fe.lpdid(units, **NAMES, att=False, **options)
                self.assertEqual((list(found.fits), found.coef(), found.se()), (list(wanted.fits), wanted.coef(), wanted.se()))
            # 2007 begins behind the rows in use: those units are controls as long as they are untreated
            late = fe.lpdid(data, **NAMES, att=False, subset="year < 2007")
            self.assertEqual(max(late.fits), 3)
        for call in (fe.event_study, fe.lpdid):
            with self.assertRaisesRegex((errors.BadData, KeyError), "gone"):
                call(data, **NAMES, subset="gone > 1")
            with self.assertRaisesRegex(errors.BadData, "FRG-FE-068"):
                call(data, **NAMES, subset="year < 2003")

    def test_names(self):
        """Columns with the names of ours are read where they are meant, and the terms keep their names."""
        data = panel()
        data |= {"is_treated": data["state"], "rel_time": data["state"], "first_treated": data["x"], "change": data["x"], "treat_diff": data["state"]}
        for estimator, att in itertools.product(("twfe", "did2s", "saturated"), (True, False)):
            study = lambda d=data, **options: fe.event_study(d, **{**NAMES, **options}, estimator=estimator, att=att)
            wanted = study(cluster="state", xfml="x")
            self.assertIn(wanted.terms[0], ("is_treated", "ATT", "rel_time::-7", "year::-7"))
            self.same(study(cluster="rel_time", xfml="x"), wanted)
            self.same(study(xfml="x").vcov({"CRV1": "is_treated"}), wanted.vcov({"CRV1": "state"}))
            self.same(study({**data, "is_treated": data["y"]}, yname="is_treated"), study())
        projected = lambda x, by: fe.lpdid(data, **NAMES, post_window=2, xfml=x, vcov={"CRV1": by}).fits[0]
        found, wanted = projected("change", "treat_diff"), projected("x", "state")
        self.assertEqual(found.terms, ["treat_diff", "change"])
        np.testing.assert_array_equal((found.coef(), found.se()), (wanted.coef(), wanted.se()))
        for call, name in ((fe.event_study, "is_treated"), (fe.lpdid, "treat_diff")):
            with self.assertRaisesRegex(errors.BadArgument, name):
                call(data, **NAMES, xfml=f"x + {name}")

    def test_sources(self):
        """A file is read as feols reads it."""
        data = panel()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "panel.csv")
            rows = zip(*(data[name].tolist() for name in data))
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(",".join(map(str, row)) + "\n" for row in (data, *rows))
            for estimator in ("twfe", "did2s", "saturated"):
                study = lambda d: fe.event_study(d, **NAMES, xfml="x", cluster="state", estimator=estimator, subset="state > 1", weights="year")
                self.same(study(path), study(data))
            self.same(fe.lpdid(path, **NAMES, post_window=2, vcov="hetero").fits[0], fe.lpdid(data, **NAMES, post_window=2, vcov="hetero").fits[0])
            drawn = lambda d: fe.feols("y ~ treat + x | year", d).ritest("x", reps=5)["statistics"]
            np.testing.assert_allclose(drawn(path), drawn(data), rtol=1e-10)
            table = _frame.table(_fourge.Context({}), {"late": data["treat"] == 1, "word": data["treat"].astype(str)}, ["late", "word"])
            found = _frame.loaded(_fourge.Context({}), table, ["late", "word"])
            self.assertEqual({type(value) for value in found["late"]}, {bool})  # a factor in formulas, as it was
            self.assertEqual(np.asarray(found["word"]).tolist(), data["treat"].astype(str).tolist())
            with self.assertRaisesRegex(errors.BadData, "no column 'gone'"):
                fe.event_study(path, "y", "unit", "gone", "g")

    def test_other_calendars(self):
        """Every other year -2 is the reference; local projections say what they lack; dates are refused."""
        data = panel()
        data |= {"year": 2 * data["year"] - 2000, "g": np.where(data["g"] > 0, 2 * data["g"] - 2000, 0)}
        once = panel()
        for estimator in ("twfe", "did2s", "saturated"):
            study = lambda d: fe.event_study(d, **NAMES, estimator=estimator, att=False)
            with self.assertWarnsRegex(UserWarning, "reference is the relative period -2"):
                found = study(data)
            wanted = study(once)
            self.assertEqual([2 * int(term.split("::")[1]) for term in wanted.terms], [int(term.split("::")[1]) for term in found.terms])
            np.testing.assert_allclose((found.coef(), found.se()), (wanted.coef(), wanted.se()), rtol=1e-9, atol=1e-11)
        with self.assertRaisesRegex(errors.BadData, "'year' that follow each other; the least distance is 2"):
            fe.lpdid(data, **NAMES)
        dates = {**once, "year": (once["year"] - 1970).astype("datetime64[Y]").astype("datetime64[D]")}
        for call in (fe.event_study, fe.lpdid):
            with self.assertRaisesRegex(errors.BadData, "FRG-FE-065.*'year' holds dates"):
                call(dates, **NAMES)

    def test_refused(self):
        data = panel()
        words = {**data, "g": np.array(["a", "b"], object)[data["g"] % 2]}
        for call in (fe.event_study, fe.lpdid):
            with self.assertRaisesRegex(errors.BadData, "FRG-FE-065.*'g' holds words"):
                call(words, **NAMES)
            with self.assertRaisesRegex(errors.BadData, "FRG-FE-066"):
                call({**data, "g": np.full(300, 1999)}, **NAMES)
            with self.assertRaisesRegex(errors.BadData, "FRG-FE-068"):
                call({**data, "g": np.zeros(300)}, **NAMES)
            with self.assertRaisesRegex(KeyError, "no column 'gone'"):
                call(data, "y", "unit", "gone", "g")
            with self.assertRaisesRegex(TypeError, "no names of columns"):
                call(np.zeros(3), "y", "unit", "year", "g")
        with self.assertRaisesRegex(KeyError, "no column 'gone'"):
            fe.lpdid(data, "y", "gone", "year", "g")
        with self.assertRaisesRegex(errors.BadData, "FRG-FE-030.*of one unit at time 2000"):
            fe.lpdid({name: np.append(values, values[0]) for name, values in data.items()}, **NAMES)
        with self.assertRaisesRegex(errors.BadArgument, "post_window=9: .* -7 .. 6"):
            fe.lpdid(data, **NAMES, post_window=9)
        with self.assertRaisesRegex(ValueError, "estimator='cs'"):
            fe.event_study(data, **NAMES, estimator="cs")
        with self.assertRaisesRegex(ValueError, "second_stage='treat'"):
            fe.did2s(data, "y", "~ 0 | unit", "treat", "treat", "unit")
        with self.assertRaisesRegex(errors.BadData, "FRG-FE-068"):
            fe.did2s(data, "y", "~ 0 | unit", "~ rel", "rel", "unit")
        with self.assertRaisesRegex(errors.BadData, "FRG-FE-067"):
            fe.feols("y ~ sunab(g, year, ref.p=-20) | unit + year", data)

    def test_ritest(self):
        """Each statistic is that of a regression on the same permutation; of eight rows with four treated all 70 are drawn, and the
        share is that of all of them within four of its standard errors."""
        data = panel()
        random = np.random.default_rng(3)
        data["lot"] = random.permutation(np.arange(30) % 2)[data["unit"]]
        data["y"] = np.where(data["unit"] == 4, np.nan, data["y"])
        fit = fe.feols("y ~ lot + x | year", data, {"CRV1": "unit"}, weights="state", subset="state > 1")
        used = (data["unit"] != 4) & (data["state"] > 1)
        _, first, of = np.unique(data["unit"][used].astype(str), return_index=True, return_inverse=True)
        order = np.argsort(np.argsort(first))  # groups are numbered as they come
        wanted = []
        for draw in range(70):
            lot = np.full(300, np.nan)
            lot[used] = permuted(data["lot"][used][np.sort(first)], 5, draw)[order[of]]
            wanted.append(fe.feols("y ~ lot + x | year", {**data, "lot": lot}, {"CRV1": "unit"}, weights="state").tstat()["lot"])
        found = fit.ritest("lot", cluster="unit", reps=70, type="randomization-t", seed=5)
        np.testing.assert_allclose(found["statistics"], wanted, rtol=1e-9, atol=1e-9)
        self.assertEqual(found["p_value"], np.mean(np.abs(wanted) >= abs(fit.tstat()["lot"])))
        wanted = []
        for draw in range(12):
            x = np.full(300, np.nan)
            x[used] = permuted(data["x"][used], 2, draw, data["g"][used])
            wanted.append(fe.feols("y ~ lot + x | year", {**data, "x": x}, weights="state").coef()["x"])
        np.testing.assert_allclose(fit.ritest("x", strata="g", reps=12, seed=2)["statistics"], wanted, rtol=1e-9, atol=1e-9)

        small = {"y": np.array([0.3, 1.9, 2.5, 2.6, 0.1, 3.0, 1.2, 0.4]), "d": np.array([0, 1, 1, 1, 0, 1, 0, 0])}
        small["y"][5] = 0.2
        mean = lambda treated: np.mean(small["y"][treated]) - np.mean(np.delete(small["y"], treated))
        every = [mean(list(c)) for c in itertools.combinations(range(8), 4)]
        exact = np.mean(np.abs(every) >= abs(mean(np.flatnonzero(small["d"]))) - 1e-12)
        found = fe.feols("y ~ d", small).ritest("d", reps=1280)
        self.assertLess(abs(found["p_value"] - exact), 4 * np.sqrt(exact * (1 - exact) / 1280))

        for message, call in (("'year' is not one regressor of", lambda: fit.ritest("year")), ("type='t'", lambda: fit.ritest("lot", type="t")),
                              ("reps=0", lambda: fit.ritest("lot", reps=0)), ("not the same in all rows", lambda: fit.ritest("x", cluster="unit")),
                              ("lies in several strata of 'year'", lambda: fit.ritest("lot", cluster="unit", strata="year"))):
            with self.assertRaisesRegex(ValueError, message):
                call()

    def test_ritest_terms(self):
        """A logical is its number, under either name; what is no term of the one stage that is permuted is refused by name."""
        data = panel()
        data |= {"late": data["treat"] == 1, "z": data["x"] + np.sin(np.arange(300))}
        of = lambda name, column: fe.feols(f"y ~ {column} | unit", data).ritest(name, reps=5)
        wanted = of("treat", "treat")
        for name in ("late", "lateTRUE"):
            found = of(name, "late")
            self.assertEqual(found["term"], "lateTRUE")
            np.testing.assert_allclose((found["estimate"], *found["statistics"]), (wanted["estimate"], *wanted["statistics"]), rtol=1e-10)
        with self.assertRaisesRegex(errors.BadArgument, "'z' is not one regressor of"):
            fe.feols("y ~ treat | unit | x ~ z", data).ritest("z")
        with self.assertWarnsRegex(UserWarning, "FRG-FE-104"):
            dropped = fe.feols("y ~ x + g | unit", data)
        with self.assertRaisesRegex(errors.BadArgument, "'g' was dropped"):
            dropped.ritest("g")
        with self.assertRaisesRegex(errors.Unsupported, "two stages"):
            fe.did2s(data, "y", "~ 0 | unit + year", "~ treat", "treat", "unit").ritest("treat")

    def test_plot(self):
        try:
            import matplotlib
        except ImportError:
            self.skipTest("matplotlib is not installed")
        matplotlib.use("Agg")
        fit = fe.event_study(panel(), **NAMES, estimator="saturated", att=False)
        ax = fe.iplot(fit)
        self.assertIn((-1, 0), [tuple(np.ravel(line.get_xydata())) for line in ax.lines])


if __name__ == "__main__":
    unittest.main()
