"""linearmodels with our demeaning beside linearmodels alone."""

import threading
import unittest
import unittest.mock
import warnings

import linearmodels
import numpy as np
import pandas as pd
import pyhdfe
from linearmodels.iv import absorbing
from linearmodels.panel.data import PanelData
from linearmodels.panel.model import PanelOLS, RandomEffects

from fourge import errors
from fourge.linearmodels import demeaning

ABSORB = ["firm", "worker"]


def rows(n=1500):
    rng = np.random.default_rng(3)
    d = pd.DataFrame({"firm": rng.integers(0, 60, n), "worker": rng.integers(0, 200, n), "sector": rng.integers(0, 4, n),
                      "x1": rng.normal(size=n), "x2": rng.normal(size=n), "w": rng.uniform(0.5, 2, n)})
    d["x1"] += np.sin(d.worker)
    d["y"] = d.x1 - 0.5 * d.x2 + np.sin(d.firm) + np.cos(d.worker) + rng.normal(size=n)
    d.loc[rng.choice(n, 20, False), "x2"] = np.nan
    return d.astype({name: "category" for name in ("firm", "worker", "sector")})


def panel():
    """120 units in 12 periods, a fifth of the rows missing."""
    rng = np.random.default_rng(4)
    d = pd.DataFrame({"unit": np.repeat(np.arange(120), 12), "year": np.tile(np.arange(2000, 2012), 120)})
    d = d[rng.random(len(d)) > 0.2].reset_index(drop=True)
    for name in ("x1", "x2"):
        d[name] = rng.normal(size=len(d)) + np.sin(d.unit) + 0.1 * (d.year - 2000)
    d["y"] = d.x1 - 0.5 * d.x2 + np.cos(d.unit) + np.sin(d.year) + rng.normal(size=len(d))
    d["region"], d["one"], d["w"] = d.unit % 7 + (d.year > 2005), 1.0, rng.uniform(0.5, 2, len(d))
    return d.set_index(["unit", "year"])


class Backend(unittest.TestCase):
    def compare(self, call, rtol):
        """Their numbers at rtol of each, and ours was called (of PanelOLS for its R2, too)."""
        want = call()
        with demeaning() as reports:
            got = call()
        self.assertTrue(reports)
        self.assertTrue(all(all(r["converged"]) for r in reports))
        for name in ("params", "std_errors", "resids"):
            a, b = (np.asarray(getattr(r, name)) for r in (want, got))
            np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol * np.abs(a).max(), err_msg=name)
        for name in ("rsquared", "df_model", "df_resid", "total_ss"):
            np.testing.assert_allclose(getattr(got, name), getattr(want, name), rtol=rtol, err_msg=name)
        return want, got

    def test_absorbing(self):
        """Both of their methods, at 1e-12 of theirs; a pair of categories, weights, a constant, clusters."""
        d = rows()
        lsmr = {"method": "lsmr", "absorb_options": {"atol": 1e-13, "btol": 1e-13, "maxiter": 10000}}
        kept = d.x2.notna()
        for name, absorb, model, fit in (
            ("pyhdfe", ABSORB, {}, {}),
            ("lsmr", ABSORB, {}, lsmr),
            ("clusters", ABSORB, {}, {"cov_type": "clustered", "clusters": d.firm[kept].cat.codes, "debiased": True}),
            ("weights", ABSORB, {"weights": d.w}, lsmr),
            ("one effect", ["firm"], {"weights": d.w}, lsmr),
            ("pair", ["worker"], {"interactions": [absorbing.Interaction(cat=d[["firm", "sector"]])]}, lsmr),
        ):
            for columns in (["x1", "x2"], ["one", "x1", "x2"]):
                with self.subTest(name, columns=columns):
                    exog = d.assign(one=1.0)[columns]
                    make = lambda: absorbing.AbsorbingLS(d.y, exog, absorb=d[absorb], drop_absorbed=True, **model).fit(use_cache=False, **fit)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        self.compare(make, 2e-7)

    def test_panel(self):
        d = panel()
        for model, fit in (
            ({"entity_effects": True}, {}),
            ({"time_effects": True}, {"cov_type": "clustered", "cluster_entity": True}),
            ({"entity_effects": True, "time_effects": True}, {"cov_type": "robust"}),
            ({"entity_effects": True, "time_effects": True}, {"low_memory": True}),
            ({"entity_effects": True, "other_effects": d[["region"]]}, {}),
            ({"entity_effects": True, "time_effects": True}, {"use_lsmr": True}),
        ):
            for weights in (None, d[["w"]]):
                for columns in (["x1", "x2"], ["one", "x1", "x2"]):
                    with self.subTest(model=sorted(model), fit=fit, weighted=weights is not None, columns=columns):
                        self.compare(lambda: PanelOLS(d.y, d[columns], weights=weights, **model).fit(**fit), 1e-7)

    def test_other_models(self):
        """What else of theirs demeans runs on ours; what asks for dummies has them, and its R2 of ours."""
        d = panel()
        self.compare(lambda: RandomEffects(d.y, d[["one", "x1", "x2"]]).fit(), 1e-9)
        self.compare(lambda: PanelOLS(d.y, d[["x1"]], entity_effects=True).fit(use_lsdv=True), 1e-12)

    def test_frames(self):
        """What PanelData.demean gives: shapes, labels, arrays, weights, and its own errors."""
        data = PanelData(panel()[["x1", "x2"]])
        weights = PanelData(panel()[["w"]])
        with demeaning():
            for group in ("entity", "time", "both", "Both"):
                ours = data.demean(group)
                np.testing.assert_array_equal(data.demean(group, return_panel=False), ours.values2d)
                pd.testing.assert_index_equal(ours.index, data.index)
                self.assertEqual(ours.vars, data.vars)
            # weighted means are zero: sum of sqrt(w) * (sqrt(w) * (x - mean))
            left = data.demean("entity", weights=weights).dataframe * np.sqrt(weights.values2d)
            self.assertLess(np.abs(left.groupby(level=0).sum()).to_numpy().max(), 1e-12)
            with self.assertRaisesRegex(ValueError, "group"):
                data.demean("firm")

    def test_back_in_place(self):
        held = lambda: (PanelData.demean, PanelData.general_demean, PanelOLS._lsmr_path, PanelOLS._choose_twoway_algo,
                        absorbing.AbsorbingLS._first_time_fit, absorbing.lsmr_annihilate, pyhdfe.create)
        before = held()
        with self.assertRaises(ZeroDivisionError), demeaning():
            self.assertTrue(all(a is not b for a, b in zip(before, held())))
            raise ZeroDivisionError
        self.assertEqual(before, held())
        first, second = demeaning(), demeaning(tol=1e-6)
        a = first.__enter__()
        b = second.__enter__()
        first.__exit__(None, None, None)
        self.assertIsNot(PanelData.demean, before[2])
        fit = lambda: PanelOLS(panel().y, panel()[["x1"]], entity_effects=True).fit()
        within = threading.Thread(target=fit)
        within.start()
        within.join()
        calls = len(b)
        self.assertGreater(calls, 0)
        self.assertEqual(len(a), 0)
        second.__exit__(None, None, None)
        fit()
        self.assertEqual((before, len(b)), (held(), calls))

    def test_what_their_options_ask_for(self):
        d = rows()

        def steps(options, **block):
            with demeaning(method="cg", **block) as reports:
                absorbing.AbsorbingLS(d.y, d[["x1"]], absorb=d[ABSORB]).fit(method="lsmr", absorb_options=options)
            return max(reports[0]["iterations"])

        self.assertLess(steps({"atol": 1e-3, "btol": 1e-8}), steps({}))
        self.assertEqual(steps({"atol": 1e-3}, tol=1e-10), steps({}))
        with self.assertWarns(errors.NotConverged):
            self.assertEqual(steps({"maxiter": 2}), 2)
        with self.assertRaisesRegex(errors.Unsupported, "damp: inside"):
            steps({"damp": 1.0})
        with self.assertRaisesRegex(errors.Unsupported, "residualize_method: pyhdfe does not run"), demeaning():
            absorbing.AbsorbingLS(d.y, d[["x1"]], absorb=d[ABSORB]).fit(absorb_options={"residualize_method": "map"})
        with self.assertRaises(TypeError), demeaning(tolerance=1e-8):
            pass

    def test_slopes_are_refused(self):
        d = rows().dropna()
        for model in ({"absorb": d[["firm", "x2"]]},
                      {"absorb": d[["firm"]], "interactions": absorbing.Interaction(cat=d[["worker"]], cont=d[["x2"]])}):
            with self.assertRaisesRegex(errors.Unsupported, "x2: continuous variables are not absorbed"), demeaning():
                absorbing.AbsorbingLS(d.y, d[["x1"]], **model).fit()

    def test_others_keep_pyhdfe(self):
        """pyhdfe outside of AbsorbingLS is pyhdfe."""
        d = rows()
        ids = np.column_stack([d[name].cat.codes for name in ABSORB])
        with demeaning() as reports:
            out = pyhdfe.create(ids, drop_singletons=False).residualize(d[["y"]].to_numpy())
        self.assertEqual((reports, out.shape), ([], (len(d), 1)))

    def test_other_releases_are_refused(self):
        with unittest.mock.patch.object(PanelData, "demean", lambda self, group: None), unittest.mock.patch.object(
                linearmodels, "__version__", "99"):
            with self.assertRaisesRegex(errors.Unsupported, r"linearmodels 99 demeans in another way than 7.1.*PanelData.demean"):
                demeaning().__enter__()


if __name__ == "__main__":
    unittest.main()
