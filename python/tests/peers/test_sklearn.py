"""The scikit-learn estimator beside scikit-learn's own."""

import concurrent.futures
import pickle
import unittest
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor as Theirs
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from fourge import errors
from fourge.sklearn import GaussianProcessRegressor, expression

KERNELS = [
    ConstantKernel(1.7) * RBF(0.6) + WhiteKernel(0.1),
    ConstantKernel(0.8) * RBF([0.6, 1.3]) + WhiteKernel(0.05),
    ConstantKernel(2.0, "fixed") * Matern(0.7, nu=0.5) + WhiteKernel(0.2),
    Matern([0.7, 2.0], nu=1.5) + ConstantKernel(0.5) + WhiteKernel(0.2),
    Matern(0.7, nu=2.5) * ConstantKernel(0.4) + WhiteKernel(0.2),
    Matern(0.7, nu=np.inf) + WhiteKernel(0.2, "fixed"),
    RationalQuadratic(0.8, 1.4) * (ConstantKernel(0.5) + DotProduct(0.9)) + WhiteKernel(0.3),
    DotProduct(1.2) ** 2 + RBF(0.5) + WhiteKernel(0.3),
    DotProduct(1.2, "fixed") + WhiteKernel(0.3) * ConstantKernel(0.6),
    RBF(0.5) + WhiteKernel(0.3) * DotProduct(0.6),
    (RBF(0.5) + WhiteKernel(0.1)) * (Matern(1.0) + WhiteKernel(0.2)),
    ConstantKernel(2.0) * ConstantKernel(0.3) * RBF(1.0) + WhiteKernel(0.1) + WhiteKernel(0.2),
]


class Own(RBF):
    """A kernel of a user's: its class has no expression."""


CALLED = [1.3 * (RBF(0.7) ** 2) + WhiteKernel(0.1), Matern(0.8, nu=0.7) + WhiteKernel(0.2), PairwiseKernel(metric="rbf", gamma=0.7) + WhiteKernel(0.3),
          2.0 * Own([0.7, 1.1]) + WhiteKernel(0.1), Exponentiation(1.0 * RBF(0.6), 0.5) + WhiteKernel(0.1)]


def problem(n=60, d=2, q=None):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, size=(n, d))
    y = np.sin(3 * X[:, 0]) + X[:, -1] + 0.3 * rng.normal(size=n)
    return X, y if q is None else np.column_stack([y * (k + 1) + k for k in range(q)])


def both(kernel, X, y, **options):
    """The two estimators with the same kernel; what theirs warns of (bounds, convergence) is not the matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianProcessRegressor(kernel, **options).fit(X, y), Theirs(kernel, **options).fit(X, y)


class Estimator(unittest.TestCase):
    def test_check_estimator(self):
        for kernel in (None, 1.0 * RBF() + WhiteKernel(), "1*rbf(l=1) + noise(0.1)"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = check_estimator(GaussianProcessRegressor(kernel), on_fail=None)
            self.assertEqual([(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"], [])
            self.assertGreater(sum(r["status"] == "passed" for r in results), 40)

    def test_numbers(self):
        """Likelihood, gradient, prediction at the same parameters: rounding apart (K + alpha has a condition below 1e5)."""
        X, y = problem()
        new = problem(7)[0] + 0.1
        for kernel in KERNELS:
            with self.subTest(str(kernel)):
                ours, theirs = both(kernel, X, y, optimizer=None)
                theta = kernel.theta + np.linspace(-0.3, 0.4, len(kernel.theta))
                for at in (kernel.theta, theta):
                    value, gradient = ours.log_marginal_likelihood(at, eval_gradient=True)
                    want, slope = theirs.log_marginal_likelihood(at, eval_gradient=True)
                    np.testing.assert_allclose(value, want, rtol=1e-10)
                    np.testing.assert_allclose(gradient, slope, rtol=1e-7, atol=1e-7)
                for flag in ("return_std", "return_cov"):
                    for a, b in zip(ours.predict(new, **{flag: True}), theirs.predict(new, **{flag: True})):
                        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
                np.testing.assert_allclose(ours.alpha_, theirs.alpha_, rtol=1e-8, atol=1e-8)
                np.testing.assert_allclose(ours.L_, theirs.L_, rtol=1e-9, atol=1e-12)

    def test_kernels_that_are_called(self):
        """As test_numbers, one and three targets; and fits, which end where theirs do."""
        new = problem(7)[0] + 0.1
        for kernel in CALLED:
            for q in (None, 3):
                X, y = problem(q=q)
                with self.subTest(str(kernel), q=q):
                    ours, theirs = both(kernel, X, y, optimizer=None, normalize_y=True)
                    value, gradient = ours.log_marginal_likelihood(kernel.theta + 0.2, eval_gradient=True)
                    want, slope = theirs.log_marginal_likelihood(kernel.theta + 0.2, eval_gradient=True)
                    self.assertIs(type(value), np.float64)
                    np.testing.assert_allclose(value, want, rtol=1e-10)
                    np.testing.assert_allclose(gradient, slope, rtol=1e-7, atol=1e-7)
                    for flag in ("return_std", "return_cov"):
                        for a, b in zip(ours.predict(new, **{flag: True}), theirs.predict(new, **{flag: True})):
                            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
                    np.testing.assert_allclose(ours.alpha_, theirs.alpha_, rtol=1e-8, atol=1e-8)
                    np.testing.assert_allclose(ours.L_, theirs.L_, rtol=1e-9, atol=1e-12)
            X, y = problem(30)
            ours, theirs = both(kernel, X, y)
            self.assertGreater(ours.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_ - 1e-6)
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours)).predict(X), ours.predict(X))

    def test_types(self):
        """Float64 whatever X is, as theirs."""
        X, y = problem(30)
        for kind in (np.float32, np.float64, np.int32):
            model = GaussianProcessRegressor(KERNELS[0], optimizer=None, alpha=np.float32(0.1)).fit((10 * X).astype(kind), y)
            self.assertIs(type(model.log_marginal_likelihood_value_), np.float64)
            self.assertEqual((model.L_.dtype, model.alpha_.dtype), (np.float64, np.float64))

    def test_periodic(self):
        X, y = problem(d=1)
        kernel = 1.3 * ExpSineSquared(1.1, 2.2) + WhiteKernel(0.3)
        ours, theirs = both(kernel, X, y, optimizer=None)
        np.testing.assert_allclose(
            ours.log_marginal_likelihood(kernel.theta, eval_gradient=True)[1],
            theirs.log_marginal_likelihood(kernel.theta, eval_gradient=True)[1], rtol=1e-7, atol=1e-7)
        X, y = problem()
        # over two columns it is called, and no covariance but for the noise
        ours, theirs = both(kernel + WhiteKernel(100.0), X, y, optimizer=None)
        np.testing.assert_allclose(ours.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_, rtol=1e-10)

    def test_fits(self):
        """Of kernels with one maximum in reach ours ends where theirs does, or higher."""
        X, y = problem()
        for kernel in KERNELS[:6]:
            with self.subTest(str(kernel)):
                ours, theirs = both(kernel, X, y, normalize_y=True)
                self.assertGreater(ours.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_ - 1e-4)
                np.testing.assert_allclose(ours.log_marginal_likelihood(ours.kernel_.theta), ours.log_marginal_likelihood_value_)
                np.testing.assert_allclose(ours.predict(X[:5]), theirs.predict(X[:5]), atol=2e-2)
                self.assertAlmostEqual(ours.score(X, y), theirs.score(X, y), delta=1e-2)

    def test_starts_beyond_bounds(self):
        """They begin at the bound, as SciPy's do, and the fit keeps to the bounds of every parameter."""
        X, y = problem(30)
        for kernel in (RBF(5.0, (0.1, 0.2)) + WhiteKernel(0.1), RBF(1.0, (0.1, 0.2)) + WhiteKernel(0.1, (1e-5, 1e-3)),
                       RBF(0.05, (0.1, 0.2)) + WhiteKernel(0.125, (0.5, 1))):
            with self.subTest(str(kernel)), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ours, theirs = both(kernel, X, y)
                np.testing.assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, atol=1e-3)
                self.assertTrue(np.all(np.clip(ours.kernel_.theta, *kernel.bounds.T) == ours.kernel_.theta))
                kept = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
                np.testing.assert_array_equal(kept.kernel_.theta, kernel.theta)

    def test_restarts_are_theirs(self):
        X, y = problem(30)
        kernel = 1.0 * RBF(50.0, (1e-2, 1e3)) + WhiteKernel(1.0)
        ours, theirs = both(kernel, X, y, n_restarts_optimizer=3, random_state=4)
        self.assertGreater(ours.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_ - 1e-4)
        again = GaussianProcessRegressor(kernel, n_restarts_optimizer=3, random_state=4).fit(X, y)
        np.testing.assert_array_equal(again.kernel_.theta, ours.kernel_.theta)

    def test_optimizers(self):
        X, y = problem()
        kernel = KERNELS[0]
        want = GaussianProcessRegressor(kernel).fit(X, y).log_marginal_likelihood_value_

        def halves(objective, theta, bounds):
            value, gradient = objective(theta)
            self.assertEqual((gradient.shape, bounds.shape), ((3,), (3, 2)))
            self.assertEqual(objective(theta, eval_gradient=False), value)
            return theta / 2, objective(theta / 2)[0]

        for optimizer in ("ai", "auto"):
            fit = GaussianProcessRegressor(kernel, optimizer=optimizer).fit(X, y)
            self.assertAlmostEqual(fit.log_marginal_likelihood_value_, want, delta=1e-4)
            self.assertEqual(fit.fit_report_["status"], "FRG_OK")
        fit = GaussianProcessRegressor(kernel, optimizer=halves).fit(X, y)
        np.testing.assert_allclose(fit.kernel_.theta, kernel.theta / 2)
        far = kernel.theta + [-25, 0, 0]  # outside of the bounds
        theirs = Theirs(kernel, optimizer=None).fit(X, y)
        np.testing.assert_allclose(fit.log_marginal_likelihood(far), theirs.log_marginal_likelihood(far), rtol=1e-9)
        np.testing.assert_allclose(fit.predict(X[:3]), fit.predict(X[:3]))

    def test_several_targets(self):
        X, y = problem(q=3)
        ours, theirs = both(KERNELS[0], X, y, normalize_y=True, optimizer=None)
        np.testing.assert_allclose(ours.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_, rtol=1e-10)
        for flag in ("return_std", "return_cov"):
            for a, b in zip(ours.predict(X[:4], **{flag: True}), theirs.predict(X[:4], **{flag: True})):
                self.assertEqual(a.shape, b.shape)
                np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
        self.assertEqual(ours.sample_y(X[:4], 5).shape, theirs.sample_y(X[:4], 5).shape)

    def test_prior_and_samples(self):
        X, y = problem()
        for a, b in zip(GaussianProcessRegressor(KERNELS[0]).predict(X, return_std=True), Theirs(KERNELS[0]).predict(X, return_std=True)):
            np.testing.assert_allclose(a, b)
        ours, theirs = both(KERNELS[0], X, y, optimizer=None)
        # The draws go through a decomposition of the covariance, whose vectors are theirs to rounding over gaps.
        np.testing.assert_allclose(ours.sample_y(X[:3], 4, random_state=5), theirs.sample_y(X[:3], 4, random_state=5), rtol=1e-6)

    def test_alpha_by_row(self):
        X, y = problem()
        alpha = np.linspace(0.01, 0.5, len(y))
        ours, theirs = both(1.0 * RBF(), X, y, alpha=alpha, optimizer=None)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)
        with self.assertRaises(ValueError):
            GaussianProcessRegressor(alpha=alpha[:3]).fit(X, y)

    def test_in_their_company(self):
        """clone, pickle, pipeline, search."""
        X, y = problem()
        model = GaussianProcessRegressor(KERNELS[0], alpha=1e-6).fit(X, y)
        self.assertEqual(str(clone(model).get_params()), str(GaussianProcessRegressor(KERNELS[0], alpha=1e-6).get_params()))
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        search = GridSearchCV(
            make_pipeline(StandardScaler(), GaussianProcessRegressor(normalize_y=True)),
            {"gaussianprocessregressor__kernel": [1.0 * RBF() + WhiteKernel(), "1*matern52(l=1) + noise(0.1)"]}, cv=2,
        ).fit(X, y)
        self.assertGreater(search.best_score_, 0.5)

    def test_threads_at_once(self):
        X, y = problem()
        model = GaussianProcessRegressor(KERNELS[0]).fit(X, y)
        want = model.predict(X, return_std=True)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for got in pool.map(lambda _: model.predict(X, return_std=True), range(80)):
                np.testing.assert_array_equal(got, want)

    def test_expressions(self):
        X, y = problem()
        model = GaussianProcessRegressor("1*rbf(l=[1,1]) + noise(0.1)").fit(X, y)
        want = GaussianProcessRegressor(1.0 * RBF([1.0, 1.0]) + WhiteKernel(0.1)).fit(X, y)
        self.assertAlmostEqual(model.log_marginal_likelihood_value_, want.log_marginal_likelihood_value_, delta=1e-5)
        self.assertIn("rbf(l=[", model.kernel_)
        self.assertEqual(len(model.log_marginal_likelihood(np.zeros(4), eval_gradient=True)[1]), 4)
        self.assertEqual(expression(ConstantKernel(2.0, (0.25, 8.0)) * RBF(0.5, "fixed")), "2.0 in(0.24999999999975,8.000000000008)*rbf(l=0.5! in(0.25,1.0))")

    def test_followers(self):
        X, y = problem(30)
        model = GaussianProcessRegressor("2*rbf(l=0.5) + matern32(l=@rbf.l) + noise(0.1)", n_restarts_optimizer=2, random_state=0).fit(X, y)
        theta = np.log([2.0, 0.5, 1.0])
        value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
        for i in range(len(theta)):
            step = np.eye(len(theta))[i] * 1e-5
            numeric = (model.log_marginal_likelihood(theta + step) - model.log_marginal_likelihood(theta - step)) / 2e-5
            self.assertAlmostEqual(gradient[i], numeric, delta=1e-5 * (1 + abs(numeric)))

    def test_held_at_zero(self):
        X, y = problem(30)
        for kernel in (DotProduct(0.0, "fixed") + WhiteKernel(0.1), RBF(0.5) + WhiteKernel(0.1) + ConstantKernel(0.0, "fixed"),
                       RBF(0.5) + WhiteKernel(0.0, "fixed")):
            with self.subTest(repr(kernel)):
                want = Theirs(kernel, alpha=1e-3).fit(X, y).log_marginal_likelihood_value_
                got = GaussianProcessRegressor(kernel, alpha=1e-3).fit(X, y).log_marginal_likelihood_value_
                self.assertGreater(got, want - 1e-4 * (1 + abs(want)))
        ours, theirs = both(DotProduct(0.0, "fixed") ** 2 + WhiteKernel(0.1), X, y, optimizer=None)
        np.testing.assert_allclose(ours.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_, rtol=1e-10)

    def test_refusals(self):
        X, y = problem(10)
        for options in ({"optimizer": "ai"}, {"optimizer": "adam"}, {"precision": "f32"}, {"precision": "mixed"}):
            with self.subTest(options), self.assertRaisesRegex(errors.Unsupported, "no expression"):
                GaussianProcessRegressor(RBF() ** 2 + WhiteKernel(), **options).fit(X, y)
        with self.assertRaisesRegex(np.linalg.LinAlgError, "positive definite"):
            GaussianProcessRegressor(-1.0 * Own()).fit(X, y)
        with self.assertRaises(errors.Unsupported):
            expression(Own())
        twice = np.vstack([X, X])
        with self.assertRaisesRegex(np.linalg.LinAlgError, "increasing the 'alpha'"):
            GaussianProcessRegressor(RBF(), alpha=0.0, optimizer=None).fit(twice, np.concatenate([y, y]))
        with self.assertRaises(errors.BadArgument):
            GaussianProcessRegressor("rfb").fit(X, y)
        with self.assertRaises(RuntimeError):
            GaussianProcessRegressor().fit(X, y).predict(X, return_std=True, return_cov=True)
        for alpha, says in ((np.full(9, 0.1), "one value a row of y \\(10\\), got 9"), (np.ones((10, 1)), "got 10 x 1"),
                            (-np.ones(10), "entry 0 is -1"), (np.full(10, np.nan), "entry 0 is nan")):
            with self.assertRaisesRegex(ValueError, f"alpha.*{says}"):
                GaussianProcessRegressor(alpha=alpha).fit(X, y)
        with self.assertRaisesRegex(ValueError, r"same number of dimensions as data \(3!=2\)"):
            GaussianProcessRegressor(RBF([1.0, 1.0, 1.0])).fit(X, y)
        for kernel in (RBF() + WhiteKernel(0.1), "1!*rbf(l=1) + noise(0.1)"):
            model = GaussianProcessRegressor(kernel).fit(X, y)
            for theta in ([0.0], [0.0, 0.0, 0.0], 0.0):
                with self.subTest(theta), self.assertRaisesRegex(ValueError, "theta: expected 2 values"):
                    model.log_marginal_likelihood(theta)

    def test_any_unit_of_y(self):
        """Powers of two move no mantissa: the same predictions, however small or large y is; what is constant stays so."""
        X, y = problem(20, q=2)
        kernel = 1.0 * RBF() + WhiteKernel(0.1)
        for targets in (y[:, 0], y):
            want, spread = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, targets).predict(X, return_std=True)
            for unit in (2.0**-1000, 2.0**-500, 2.0**500, 2.0**1000):
                got = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, targets * unit).predict(X, return_std=True)
                np.testing.assert_array_equal(got[0] / unit, want)
                np.testing.assert_array_equal(got[1] / unit, spread)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for constant in (0.0, 0.1, 1e-300, 1e300):
                model = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, np.full(20, constant))
                np.testing.assert_allclose(model.predict(X), constant, rtol=1e-12)

    def test_warnings_once(self):
        """A bound is told once, by scikit-learn's name of the parameter; with an expression, by ours; of the best start alone."""
        X, y = problem(20)
        for kernel, said in ((1.0 * RBF() + WhiteKernel(0.1, (10.0, 20.0)), ["ConvergenceWarning"]),
                             ("1*rbf(l=1) + noise(in(10,20))", ["UserWarning"])):
            with self.subTest(repr(kernel)), warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=1).fit(X, y)
            self.assertEqual([w.category.__name__ for w in told if "noise" in str(w.message)], said)
            self.assertEqual({w.filename for w in told if w.category is UserWarning}, {__file__} if "User" in said[0] else set())


if __name__ == "__main__":
    unittest.main()
