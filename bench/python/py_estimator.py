"""The estimator of scikit-learn: py_estimator.py [N...]; likelihood with gradient, and a whole fit, ours beside theirs.

The kernel is 1.0 * RBF(5 lengthscales) + WhiteKernel on 5 columns.  Both sides begin at the same parameters; the lines say
at which likelihood they end.
"""
import pathlib
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
from common import best_of, report  # noqa: E402

import numpy as np  # noqa: E402
from sklearn.gaussian_process import GaussianProcessRegressor as Theirs  # noqa: E402
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel  # noqa: E402

from fourge.sklearn import GaussianProcessRegressor as Ours  # noqa: E402

warnings.simplefilter("ignore")
for n in [int(a) for a in sys.argv[1:]] or [100, 500]:
    rng = np.random.default_rng(n)
    X = rng.uniform(-1, 1, size=(n, 5))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)
    kernel = ConstantKernel(1.0) * RBF([1.0] * 5) + WhiteKernel(0.1)
    for name, kind in (("fourge", Ours), ("sklearn", Theirs)):
        model = kind(kernel, optimizer=None).fit(X, y)
        theta = [kernel.theta + d for d in (0.1, 0.2)]
        turn = iter(range(1000))
        seconds, value = best_of(lambda: model.log_marginal_likelihood(theta[next(turn) % 2], eval_gradient=True), 4)
        report(bench="py_estimator", job="step", n=n, d=5, peer=name, seconds=round(seconds, 6))
        start = time.perf_counter()
        fit = kind(kernel).fit(X, y)
        seconds = time.perf_counter() - start
        if seconds < 1:  # theirs take seconds, once is enough
            seconds, fit = best_of(lambda: kind(kernel).fit(X, y), 4)
        report(bench="py_estimator", job="fit", n=n, d=5, peer=name, seconds=round(seconds, 5),
               log_likelihood=float(fit.log_marginal_likelihood_value_))
