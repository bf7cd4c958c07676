"""The Gaussian-process module, with NumPy alone."""

import pathlib
import tempfile
import unittest
import warnings

import numpy as np

from fourge import errors, gp


def problem(n=40, d=2):
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(n, d))
    return x, np.sin(6 * x[:, 0]) + 0.1 * rng.normal(size=n)


def dense(x, y, theta):
    """By definition: log likelihood of scale * rbf(ard) + noise with zero mean."""
    s, l, v = theta[0], theta[1:-1], theta[-1]
    z = x / l
    k = s * np.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(2)) + v * np.eye(len(x))
    sign, logdet = np.linalg.slogdet(k)
    return -0.5 * y @ np.linalg.solve(k, y) - 0.5 * logdet - 0.5 * len(x) * np.log(2 * np.pi)


class Process(unittest.TestCase):
    def setUp(self):
        self.x, self.y = problem()
        self.gp = gp.GP(self.x, self.y, "1.5*rbf(l=[0.3,0.8]) + noise(0.05)", mean="zero")

    def test_profiled_scale(self):
        """f r'R^-1 r / n, and the process whose numbers are multiplied by it: the same value and predictions."""
        model = gp.GP(self.x, self.y, "1.5*rbf(l=[0.3,0.8]) + noise(0.05)", mean="zero", profile_scale=True)
        value, f = model.value(), model.value()["profiled_scale"]
        self.assertNotIn("profiled_scale", self.gp.value())
        np.testing.assert_allclose(value["log_likelihood"], dense(self.x, self.y, f * model.theta * np.r_[1, 0, 0, 1]
                                                                  + model.theta * np.r_[0, 1, 1, 0]), rtol=1e-11)
        plain = gp.GP(self.x, self.y, f"{f * 1.5:.17g}*rbf(l=[0.3,0.8]) + noise({f * 0.05:.17g})", mean="zero")
        for got, want in zip(model.predict(self.x[:5] + 0.01, return_std=True),
                             plain.predict(self.x[:5] + 0.01, return_std=True)):
            np.testing.assert_allclose(got, want, rtol=1e-9)
        self.assertEqual([p["fixed"] for p in model.parameters], [True, False, False, False])

    def test_warnings_of_every_call(self):
        """Two equal points without noise: jitter is said wherever a factor is made, and which points they are."""
        x, y = np.array([[0.0], [0.0], [1.0]]), np.array([1.0, 1.0, 2.0])
        for call in (lambda p: p.value(), lambda p: p.log_likelihood(), lambda p: p.gradient(), lambda p: p.loo(),
                     lambda p: p.predict([[0.5]]), lambda p: p.sample([[0.5]], 1), lambda p: p.predict_gradient([[0.5]])):
            with self.assertWarnsRegex(UserWarning, "jitter.*rows 0 and 1") as seen:
                call(gp.GP(x, y, "1*rbf(l=1)"))
            self.assertEqual(seen.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual(gp.GP(x, y, "1*rbf(l=1)").value()["closest"], (0, 1))

    def test_mean_values(self):
        """Those of the data come off y; those of the new points are asked for and added to means and draws."""
        m, new, there = np.sin(self.x[:, 0]), self.x[:4] + 0.01, np.arange(4.0)
        kernel = "1.5*rbf(l=[0.3,0.8]) + noise(0.05)"
        given, zero = gp.GP(self.x, self.y, kernel, mean="values", mean_values=m), gp.GP(self.x, self.y - m, kernel, mean="zero")
        np.testing.assert_allclose(given.predict(new, mean_values=there), zero.predict(new) + there, rtol=1e-12)
        np.testing.assert_allclose(given.sample(new, 3, mean_values=there), zero.sample(new, 3) + there, rtol=1e-12)
        for wrong in (lambda: given.predict(new), lambda: given.sample(new, 1), lambda: zero.predict(new, mean_values=there),
                      lambda: zero.sample(new, 1, mean_values=there)):
            with self.assertRaisesRegex(errors.BadArgument, "mean_values"):
                wrong()

    def test_value_and_gradient(self):
        """The definition, and its central differences in log theta: step 1e-5 leaves about 1e-8 relative."""
        theta = self.gp.theta
        np.testing.assert_allclose(self.gp.log_likelihood(), dense(self.x, self.y, theta), rtol=1e-11)
        step = 1e-5
        want = [
            (dense(self.x, self.y, theta * np.exp(step * e)) - dense(self.x, self.y, theta * np.exp(-step * e))) / (2 * step)
            for e in np.eye(len(theta))
        ]
        np.testing.assert_allclose(self.gp.gradient(), want, rtol=1e-6, atol=1e-6)

    def test_data_gradients(self):
        g, dx, dy = self.gp.gradient(x=True, y=True)
        theta, step = self.gp.theta, 1e-6
        for i, k in ((0, 0), (7, 1)):
            x = self.x.copy()
            x[i, k] += step
            up = dense(x, self.y, theta)
            x[i, k] -= 2 * step
            np.testing.assert_allclose(dx[i, k], (up - dense(x, self.y, theta)) / (2 * step), rtol=1e-5)
        y = self.y.copy()
        y[3] += step
        np.testing.assert_allclose(dy[3], (dense(self.x, y, theta) - dense(self.x, self.y, theta)) / step, rtol=1e-3)

    def test_starts(self):
        """What became of each: the best is the report's."""
        process = gp.GP(self.x, self.y, "scale*rbf(l=in(0.05,5)) + noise(in(1e-3,1))", seed=3, threads=1)
        report = process.fit(starts=4)
        results = report["optimizer"]["start_results"]
        self.assertEqual((len(results), report["optimizer"]["starts"]), (4, 4))
        best = results[report["optimizer"]["best_start"]]
        self.assertEqual(best["status"], "FRG_OK")
        self.assertEqual(best["objective"], max(s["objective"] for s in results if s["status"] == "FRG_OK"))
        self.assertAlmostEqual(best["objective"], report["log_likelihood"], places=6)
        optimizer, ends = report["optimizer"], [s["objective"] for s in results]
        lower = [v for v in ends if v < max(ends) - 0.01]
        self.assertEqual(optimizer["starts_reached"], sum(v >= max(ends) - 0.01 for v in ends))
        np.testing.assert_equal(optimizer["next_optimum"], max(ends) - max(lower) if lower else np.nan)

    def test_first_start(self):
        """What the data gave is chosen from, and what was given is not."""
        fit = lambda kernel: gp.GP(self.x, self.y, kernel).fit()["optimizer"]["start_choice"]
        self.assertEqual(fit("1*rbf(l=0.5) + noise(0.1)"), {"values": 0, "points": 0})
        chosen = fit("scale*rbf + noise")
        self.assertEqual(chosen["points"], min(len(self.y), 160))
        self.assertGreater(chosen["values"], 5)

    def stopped(self, path, **options):
        """A fit that ends at its first look, which a fresh context has at once, and leaves its state."""
        process = gp.GP(self.x, self.y, "scale*matern52(ard) + noise", progress=lambda *a: True)
        return process.fit(checkpoint=path, checkpoint_every=0, starts=2, **options)

    def test_a_stopped_fit_goes_on_to_the_same_bits(self):
        kernel, keys = "scale*matern52(ard) + noise", ("iterations", "evaluations", "gradient_norm", "best_start", "start_results")

        def fit(y=self.y, **options):
            process = gp.GP(self.x, y, kernel)
            found = process.fit(starts=2, **{"max_iter": 30, **options})
            return {"theta": list(process.theta), "log_likelihood": found["log_likelihood"], **{k: found["optimizer"][k] for k in keys}}

        for optimizer in ("ai", "lbfgsb", "adam"):
            want = fit(optimizer=optimizer)
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "fit.state")
                again = lambda: fit(optimizer=optimizer, checkpoint=path, checkpoint_every=1e9, resume=True)
                self.assertEqual(again(), want)
                self.assertFalse(path.exists())
                self.assertEqual(self.stopped(path, optimizer=optimizer, max_iter=30)["status"], "FRG_INTERRUPTED")
                self.assertEqual(fit(optimizer=optimizer, resume=str(path)), want)
                self.assertEqual(again(), want)
                with self.assertRaises(errors.Mismatch):
                    fit(optimizer=optimizer, max_iter=29, resume=path)
                with self.assertRaisesRegex(errors.Mismatch, "data"):
                    fit(self.y + 1, optimizer=optimizer, resume=path)
        with self.assertRaisesRegex(ValueError, "checkpoint"):
            fit(resume=True)
        with self.assertRaisesRegex(OSError, "nowhere"):
            fit(resume="/nowhere/fit.state")

    def test_ties(self):
        process = gp.GP(self.x, self.y, "1*rbf(l=0.2) + 1*matern32(l=0.7) + noise(0.1)", mean="zero")
        process.tie("matern32.l", "rbf.l")
        values = {p["name"]: p["value"] for p in process.parameters}
        self.assertEqual(values["matern32.l"], values["rbf.l"])
        process.fit(max_iter=5)
        values = {p["name"]: p["value"] for p in process.parameters}
        self.assertEqual(values["matern32.l"], values["rbf.l"])
        self.assertNotEqual(values["rbf.l"], 0.2)
        self.assertEqual({p["name"]: p["tied"] for p in process.tie("matern32.l", None).parameters}["matern32.l"], -1)
        vector = gp.GP(self.x, self.y, "1*rbf(l=[0.2,0.3]) + noise(0.1)").tie("rbf.l", "rbf.l", entry=1, to_entry=0)
        self.assertEqual([p["value"] for p in vector.parameters if p["name"] == "rbf.l"], [0.2, 0.2])
        for says, call in ((KeyError, lambda: process.tie("l", "rbf.l")), (KeyError, lambda: process.tie("rbf.l", "l")),
                           (ValueError, lambda: process.tie("rbf.l", "rbf.l"))):
            with self.assertRaises(says):
                call()

    def test_noise_and_observations_replaced(self):
        """As a process that is made anew with them."""
        v = np.full(len(self.x), 0.1)
        process = gp.GP(self.x, self.y, "1*rbf(l=0.3)", noise_variances=v, mean="zero")
        process.log_likelihood()
        v[3] = 0.5
        process.update_noise(3, 0.5).update_y(self.y + 1)
        want = gp.GP(self.x, self.y + 1, "1*rbf(l=0.3)", noise_variances=v, mean="zero")
        np.testing.assert_allclose(process.log_likelihood(), want.log_likelihood(), rtol=1e-11)
        np.testing.assert_allclose(process.predict(self.x[:4]), want.predict(self.x[:4]), rtol=1e-10)
        with self.assertRaisesRegex(ValueError, "noise"):
            process.update_noise(3, -1.0)

    def test_types_that_differ(self):
        want = gp.GP(self.x.astype(np.float32).astype(float), self.y, "1*rbf(l=0.3) + noise(0.1)")
        mixed = gp.GP(self.x.astype(np.float32), self.y, "1*rbf(l=0.3) + noise(0.1)")
        self.assertEqual(mixed.log_likelihood(), want.log_likelihood())
        self.assertEqual(mixed.append(self.x[:1].astype(np.float32) + 1, self.y[:1]).report["n"], len(self.x) + 1)

    def test_names_of_columns_of_any_kind(self):
        want = gp.GP(self.x, self.y, "1*on(2; rbf) + noise", columns=["a", "b"]).log_likelihood()
        self.assertEqual(gp.GP(self.x, self.y, "1*on(b; rbf) + noise", columns=("a", "b")).log_likelihood(), want)

        class Frame:
            columns = "a", "b"

            def __array__(frame, dtype=None, copy=None):
                return self.x

        self.assertEqual(gp.GP(Frame(), self.y, "1*on(b; rbf) + noise").log_likelihood(), want)

    def test_fit_ends_where_the_gradient_does(self):
        before = self.gp.log_likelihood()
        report = self.gp.fit()
        self.assertGreater(report["log_likelihood"], before)
        self.assertEqual(report["status"], "FRG_OK")
        free = [p["active"] == 0 for p in self.gp.parameters]
        self.assertLess(np.abs(self.gp.gradient()[free]).max() / len(self.y), 1e-4)
        self.assertGreater(len(report["optimizer"]["trace"]), 2)

    def test_prediction(self):
        theta, new = self.gp.theta, np.array([[0.2, 0.4], [0.9, 0.1]])
        z, w = self.x / theta[1:-1], new / theta[1:-1]
        k = theta[0] * np.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(2)) + theta[-1] * np.eye(len(z))
        c = theta[0] * np.exp(-0.5 * ((w[:, None] - z[None]) ** 2).sum(2))
        mean, std, cov = self.gp.predict(new, return_std=True, return_cov=True)
        np.testing.assert_allclose(mean, c @ np.linalg.solve(k, self.y), rtol=1e-10)
        np.testing.assert_allclose(std**2, theta[0] - np.diag(c @ np.linalg.solve(k, c.T)), rtol=1e-8)
        np.testing.assert_allclose(np.diag(cov), std**2, rtol=1e-8)
        _, observed = self.gp.predict(new, observed=True, return_var=True)
        np.testing.assert_allclose(observed, std**2 + theta[-1], rtol=1e-10)
        g, _ = self.gp.predict_gradient(new)
        h = 1e-6
        moved = [self.gp.predict(new + h * e) - self.gp.predict(new - h * e) for e in np.eye(2)]
        np.testing.assert_allclose(g, np.column_stack(moved) / (2 * h), rtol=1e-5, atol=1e-7)

    def test_leave_one_out_is_refits(self):
        loo = self.gp.loo()
        theta = self.gp.theta
        for i in (0, 11):
            keep = np.arange(len(self.y)) != i
            other = gp.GP(self.x[keep], self.y[keep], "1.5*rbf(l=[0.3,0.8]) + noise(0.05)", mean="zero")
            np.testing.assert_array_equal(other.theta, theta)
            mean, var = other.predict(self.x[i : i + 1], observed=True, return_var=True)
            np.testing.assert_allclose(loo["mean"][i], mean[0], rtol=1e-9)
            np.testing.assert_allclose(loo["variance"][i], var[0], rtol=1e-9)

    def test_folds_and_latent_variances(self):
        """Folds are refits without them; the gradient is that of the summed density, by central differences."""
        codes = np.arange(40) % 7
        found = self.gp.folds(codes, gradient=True)

        def by_definition(theta):
            s, l, v = theta[0], theta[1:-1], theta[-1]
            z = self.x / l
            k = s * np.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(2)) + v * np.eye(40)
            mean, variance, density = np.empty(40), np.empty(40), 0.0
            for f in range(7):
                b, o = np.flatnonzero(codes == f), np.flatnonzero(codes != f)
                half = np.linalg.solve(k[np.ix_(o, o)], k[np.ix_(o, b)])
                mean[b], cov = half.T @ self.y[o], k[np.ix_(b, b)] - k[np.ix_(b, o)] @ half
                variance[b], r = np.diag(cov), self.y[b] - mean[b]
                density -= 0.5 * (r @ np.linalg.solve(cov, r) + np.linalg.slogdet(cov)[1] + len(b) * np.log(2 * np.pi))
            return mean, variance, density

        theta, step = self.gp.theta, 1e-5
        mean, variance, density = by_definition(theta)
        np.testing.assert_allclose(found["mean"], mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found["variance"], variance, rtol=1e-9)
        np.testing.assert_allclose(found["log_density"], density, rtol=1e-9)
        np.testing.assert_allclose(found["rmse"], np.sqrt(np.mean((self.y - mean) ** 2)), rtol=1e-9)
        want = [(by_definition(theta * np.exp(step * e))[2] - by_definition(theta * np.exp(-step * e))[2]) / (2 * step)
                for e in np.eye(4)]
        np.testing.assert_allclose(found["gradient"], want, rtol=1e-6, atol=1e-6)
        single, loo = self.gp.folds(np.arange(40)), self.gp.loo(latent=True)
        np.testing.assert_allclose(single["mean"], loo["mean"], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(loo["latent_variance"], loo["variance"] - theta[-1], rtol=1e-12, atol=1e-14)
        for bad in (codes - 1, codes[:-1], codes + 40):
            with self.assertRaises(errors.BadArgument):
                self.gp.folds(bad)
        with self.assertRaises(TypeError):
            self.gp.folds(codes / 2)

    def test_fits_say_what_ended_them(self):
        x = np.linspace(0, 1, 12)
        for options, ended in (({}, ("gradient", "gain")), ({"optimizer": "adam", "max_iter": 2}, ("steps",)), ({"max_iter": 1}, ("",))):
            self.assertIn(gp.GP(x, np.sin(6 * x), "rbf(l=0.1) + noise").fit(**options)["optimizer"]["ended"], ended)

    def test_noise_variances_of_fantasies(self):
        x, y = np.linspace(0, 1, 12)[:, None].repeat(2, 1), np.linspace(0, 1, 12)
        process = gp.GP(x, y, "rbf(l=1)", noise_variances=np.full(12, 0.1))
        candidates, outcomes, v = x[:6].reshape(2, 3, 2) + 0.01, np.ones((2, 3, 1)), np.arange(1.0, 7.0).reshape(2, 3)
        mean, variance = process.fantasies(candidates, outcomes, x[:2], noise_variances=v)
        flat = process.fantasies(candidates, outcomes, x[:2], noise_variances=v.ravel())
        np.testing.assert_array_equal(mean, flat[0])
        np.testing.assert_array_equal(variance, flat[1])
        with self.assertRaises(errors.BadArgument):
            process.fantasies(candidates, outcomes, x[:2], noise_variances=v.T)

    def test_fantasies_are_appends(self):
        """Of two outputs: every set and outcome as append and predict give it, the process as it was."""
        rng = np.random.default_rng(4)
        kernel, y = "1.5*rbf(l=[0.3,0.8]) + noise(0.05)", np.column_stack([self.y, self.x[:, 1]])
        one = gp.GP(self.x, y, kernel, mean="zero")
        x, outcomes, at = rng.uniform(size=(3, 2, 2)), rng.normal(size=(3, 2, 4, 2)), rng.uniform(size=(5, 2))
        mean, variance = one.fantasies(x, outcomes, at, observed=True)
        for i, k in ((0, 0), (2, 3)):
            other = gp.GP(self.x, y, kernel, mean="zero").append(x[i], outcomes[i, :, k])
            want, var = other.predict(at, observed=True, return_var=True)
            np.testing.assert_allclose(mean[i, :, k], want, rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(variance[i], var, rtol=1e-9)
        self.assertEqual(one.report["n"], 40)
        m, _ = self.gp.fantasies(x, outcomes[..., 0], at)
        np.testing.assert_allclose(m, mean[..., 0], rtol=1e-9, atol=1e-10)
        with self.assertRaisesRegex(errors.BadArgument, "sets, m, s, q"):
            one.fantasies(x, outcomes[..., 0], at)

    def test_limits_and_floors(self):
        report = gp.GP(self.x, self.y, "rbf(ard) + noise").fit(max_evaluations=3)
        self.assertEqual((report["status"], report["optimizer"]["evaluations"]["value"] <= 3), ("FRG_MAX_ITER", True))
        variance = self.gp.predict(self.x, return_var=True)[1]
        floor = np.median(variance)
        with self.assertWarns(UserWarning):
            found = self.gp.predict(self.x, return_var=True, variance_floor=floor)[1]
        np.testing.assert_array_equal(found, np.maximum(variance, floor))

    def test_ties(self):
        """A lengthscale that follows another one stays equal to it, and a fit moves both."""
        one = gp.GP(self.x, self.y, "1.5*rbf(l=0.3)*matern32(l=@rbf.l) + noise(0.05)", mean="zero")
        names = [p["name"] for p in one.parameters]
        l, m = names.index("rbf.l"), names.index("matern32.l")
        self.assertEqual([p["tied"] for p in one.parameters], [l if i == m else -1 for i in range(len(names))])
        before = one.theta
        one.fit()
        self.assertEqual(one.theta[l], one.theta[m])
        self.assertNotEqual(one.theta[l], before[l])
        with self.assertRaises(errors.BadArgument):
            one.theta = np.where(np.arange(len(names)) == m, 2.0, one.theta)

    def test_updates_and_files(self):
        more_x, more_y = problem(44)
        grown = gp.GP(more_x[:40], more_y[:40], "1.5*rbf(l=[0.3,0.8]) + noise(0.05)", mean="zero")
        grown.append(more_x[40:], more_y[40:])
        whole = gp.GP(more_x, more_y, "1.5*rbf(l=[0.3,0.8]) + noise(0.05)", mean="zero")
        np.testing.assert_allclose(grown.predict(self.x), whole.predict(self.x), rtol=1e-9, atol=1e-10)
        for _ in range(4):
            grown.remove(40)
        self.assertEqual(grown.report["n"], 40)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.frg"
            self.gp.save(path)
            np.testing.assert_array_equal(gp.load(path).predict(self.x), self.gp.predict(self.x))
            path.write_bytes(path.read_bytes()[:-5])
            with self.assertRaises(errors.BadData):
                gp.load(path)

    def test_samples(self):
        a = gp.GP(self.x, self.y, "1.5*rbf(l=[0.3,0.8]) + noise(0.05)", seed=3).sample(self.x[:5], 2000)
        b = gp.GP(self.x, self.y, "1.5*rbf(l=[0.3,0.8]) + noise(0.05)", seed=3, threads=1).sample(self.x[:5], 2000)
        np.testing.assert_array_equal(a, b)
        mean, std = gp.GP(self.x, self.y, "1.5*rbf(l=[0.3,0.8]) + noise(0.05)").predict(self.x[:5], return_std=True)
        np.testing.assert_allclose(a.mean(0), mean, atol=4.5 * std.max() / np.sqrt(2000))  # 4.5 sigma

    def test_values_and_bounds_by_name(self):
        """Set by name: what the expression would have said; nothing changes where one of them is refused."""
        m = self.gp
        self.assertEqual(list(m.values), ["scale", "rbf.l", "noise"])
        m.set({"rbf.l": [0.2, 0.9], "scale": 2}, noise=0.1, bounds={"rbf.l": [(0.1, 1), (0.2, 2)], "noise": (None, 0.5)})
        said = gp.GP(self.x, self.y, "2*rbf(l=[0.2 in(0.1,1),0.9 in(0.2,2)]) + noise(0.1)", mean="zero")
        self.assertEqual(m.value()["log_likelihood"], said.value()["log_likelihood"])
        np.testing.assert_array_equal(m.bounds["rbf.l"], [(0.1, 1), (0.2, 2)])
        self.assertEqual(m.bounds["noise"], (said.bounds["noise"][0], 0.5))
        m.values["rbf.l"] = 0.5
        np.testing.assert_array_equal(m.values["rbf.l"], [0.5, 0.5])
        m.bounds["scale"] = 1, 3
        with self.assertRaisesRegex(errors.BadArgument, r"rbf.l\[1\] is 7"):
            m.set({"scale": 2.5, "rbf.l": [0.5, 7]})
        self.assertEqual(m.values["scale"], 2)
        for wrong in (lambda: m.set(rbf=1), lambda: m.values["l"], lambda: m.set(bounds={"l": (1, 2)}), lambda: m.fix("l")):
            with self.assertRaisesRegex(KeyError, r"\['scale', 'rbf.l', 'noise'\]"):
                wrong()
        for wrong in (lambda: m.set({"rbf.l": [1, 2, 3]}), lambda: m.set(bounds={"rbf.l": (1, 2, 3)})):
            with self.assertRaisesRegex(errors.BadArgument, "rbf.l has 2 entries"):
                wrong()

    def test_bounds_are_told_in_one_line(self):
        with self.assertWarnsRegex(UserWarning, "2 parameters ended at a bound: ") as seen:
            gp.GP(self.x, self.y, "1.5!*rbf(l=[0.3 in(0.29,0.3),0.8 in(0.79,0.8)]) + noise(0.05!)", mean="zero").fit()
        self.assertEqual(len(seen.warnings), 1)

    def test_fixing(self):
        self.gp.fix("rbf.l").fit()
        np.testing.assert_array_equal(self.gp.theta[1:3], [0.3, 0.8])
        with self.assertRaises(KeyError):
            self.gp.fix("matern.l")

    def test_errors(self):
        with self.assertRaises(errors.BadArgument) as e:
            gp.GP(self.x, self.y, "rfb(ard)")
        self.assertIn("rbf", str(e.exception))
        with self.assertRaises(errors.BadData):
            gp.GP(self.x, np.full(40, np.nan), "rbf")
        with self.assertRaises(TypeError):
            gp.GP(self.x, self.y, "rbf", lengthscale=1)
        with self.assertRaises(errors.BadArgument):
            self.gp.theta = -np.ones(4)
        with self.assertRaises(errors.NotPositiveDefinite):
            gp.invquad_logdet(-np.eye(3), np.ones(3))


class DenseCore(unittest.TestCase):
    def test_against_numpy(self):
        rng = np.random.default_rng(2)
        a = rng.normal(size=(2, 3, 6, 6))
        k = a @ a.swapaxes(-1, -2) + 6 * np.eye(6)
        r = rng.normal(size=(2, 3, 6))
        iq, ld, alpha, inv = gp.invquad_logdet(k, r, inverse=True)
        np.testing.assert_allclose(ld, np.linalg.slogdet(k)[1], rtol=1e-12)
        np.testing.assert_allclose(alpha, np.linalg.solve(k, r[..., None])[..., 0], rtol=1e-10)
        np.testing.assert_allclose(iq, (r * alpha).sum(-1), rtol=1e-12)
        np.testing.assert_allclose(inv, np.linalg.inv(k), rtol=1e-9, atol=1e-12)



class Batch(unittest.TestCase):
    """Many processes in one call, each as it is alone."""

    KERNEL = "1*rbf(l=0.3) + noise(0.1)"

    def setUp(self):
        self.problems = [problem(n, 2) for n in (5, 12, 12, 40, 150)] + [problem(9, 1)]

    def test_values_and_gradients(self):
        theta = [None, np.array([0.2, 2.0, 0.4, 0.3])] + [None] * 4
        theta[1] = gp.GP(*self.problems[1], self.KERNEL).theta * 1.3
        found = gp.evaluate_batch(self.problems, self.KERNEL, theta=theta, gradient=True)
        self.assertEqual(len(found), len(self.problems))
        for (x, y), start, one in zip(self.problems, theta, found):
            alone = gp.GP(x, y, self.KERNEL)
            if start is not None:
                alone.theta = start
            self.assertEqual((one["status"], one["message"]), ("FRG_OK", ""))
            np.testing.assert_allclose(one["log_likelihood"], alone.log_likelihood(), rtol=1e-10)
            np.testing.assert_allclose(one["gradient"], alone.gradient(), rtol=1e-7, atol=1e-8)

    def test_fits(self):
        found = gp.fit_batch(self.problems, self.KERNEL, fit={"max_iter": 100})
        for (x, y), one in zip(self.problems, found):
            alone = gp.GP(x, y, self.KERNEL)
            alone.theta = one["theta"]
            np.testing.assert_allclose(one["log_likelihood"], alone.log_likelihood(), rtol=1e-9)
            self.assertGreaterEqual(one["log_likelihood"], gp.GP(x, y, self.KERNEL).log_likelihood())

    def test_one_that_fails_disturbs_no_other(self):
        x, y = self.problems[1]
        bad = x.copy()
        bad[3, 1] = np.nan
        want = gp.evaluate_batch(self.problems, self.KERNEL)
        found = gp.evaluate_batch([*self.problems, (bad, y), (x, y[:3])], self.KERNEL)
        self.assertEqual([one["log_likelihood"] for one in found[:-2]], [one["log_likelihood"] for one in want])
        self.assertEqual([one["status"] for one in found[-2:]], ["FRG_BAD_DATA", "FRG_BAD_ARG"])
        self.assertIn("row 3", found[-2]["message"])
        self.assertNotIn("gradient", found[0])
        self.assertEqual(gp.evaluate_batch([], self.KERNEL), [])

    def test_refusals(self):
        x, y = self.problems[0]
        for says, call in (
            (r"problems\[0\]", lambda: gp.evaluate_batch([x], self.KERNEL)), (r"problems\[1\]: y", lambda: gp.fit_batch([(x, y), (x, None)], self.KERNEL)),
            ("theta", lambda: gp.evaluate_batch([(x, y)], self.KERNEL, theta=[])), ("theta of problem 0", lambda: gp.evaluate_batch([(x, y)], self.KERNEL, theta=[[1.0]])),
            ("kernel", lambda: gp.evaluate_batch([(x, y)], 3)), ("columns", lambda: gp.evaluate_batch([(x, y)], self.KERNEL, columns=["a"])),
            ("'steps'", lambda: gp.fit_batch([(x, y)], self.KERNEL, fit={"steps": 3})), ("expression|kernel", lambda: gp.evaluate_batch([(x, y)], "rbf(")),
        ):
            with self.subTest(says), self.assertRaisesRegex((TypeError, ValueError), says):
                call()


class Steps(unittest.TestCase):
    def test_a_step_is_a_value(self):
        """The short call for loops: other parameters and observations in one."""
        rng = np.random.default_rng(3)
        x, y, theta = rng.random((12, 2)), rng.normal(size=(2, 12)), np.array([1.2, 0.5, 0.3, 0.1])
        kernel = "1.5*rbf(l=0.7) + noise(0.2)"
        one, other, g = gp.GP(x, y[0], kernel), gp.GP(x, y[1], kernel), np.empty(4)
        other.theta = theta
        self.assertEqual(one._gp.step(y[1], theta, g, None, None), other.log_likelihood())
        np.testing.assert_array_equal(g, other.gradient())
        self.assertEqual(one._gp.step(y[1], theta, None, None, None), other.log_likelihood())
        for message, bad in (("theta", (y[1], theta[:3], None)), ("gradient", (y[1], theta, g[:2])), ("y", (y[1, :5], theta, None)),
                             ("scale", (y[1], -theta, None))):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                one._gp.step(*bad, None, None)

    def test_a_fit_that_ends_early_warns(self):
        x = np.linspace(0, 1, 40)
        model = gp.GP(x, np.sin(6 * x), "scale*rbf + noise(0.1)")
        with self.assertWarnsRegex(errors.NotConverged, "FRG_MAX_ITER .iterations: 1.*raise max_iter"):
            self.assertEqual(model.fit(max_iter=1)["status"], "FRG_MAX_ITER")
        x = np.linspace(0, 1, 1000)
        model = gp.GP(x, np.sin(6 * x), "scale*rbf + noise(0.1)", time_limit=1e-9)
        before = model.theta
        with self.assertWarnsRegex(errors.NotConverged, "FRG_TIME_LIMIT.*raise time_limit"):
            told = model.fit(optimizer="adam")
        self.assertTrue(np.isnan(told["log_likelihood"]))  # not 0: none was computed
        np.testing.assert_array_equal(model.theta, before)

    def test_a_negative_seed_is_refused(self):
        for seed in (-1, np.int64(-3)):
            with self.assertRaisesRegex(errors.BadArgument, f"seed: expected 0 or more, got {seed}"):
                gp.GP(np.arange(4.0), np.arange(4.0), "rbf + noise", seed=seed)


if __name__ == "__main__":
    unittest.main()
