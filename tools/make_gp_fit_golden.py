"""Writes tests/golden/gp_fit.txt: the largest log marginal likelihoods of fits: python tools/make_gp_fit_golden.py

Kernels and their gradients are scikit-learn's, the likelihood is written out in NumPy (Rasmussen and Williams 2006, eq. 5.8
and 5.9), and SciPy's L-BFGS-B maximises it over the logarithms of the parameters, at tolerances far below what the tests
compare, from the start that the test has and from eight others around it; the best is written.  A constant mean is profiled:
m = 1'K^-1 y / 1'K^-1 1.  Rows of PROVENANCE.tsv begin with "gp_fit.".

Data: `diabetes` is data/diabetes.csv with the target centred and divided by its population standard deviation (`diabetes.y`:
as it is); `plane` are the 30 points of test_gp_fit.c's case "jitter of trials".
"""
import datetime
import importlib.metadata
import pathlib
import platform

import numpy as np
import pandas as pd
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic, WhiteKernel

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests" / "golden"
BOUNDS = (1e-5, 1e5)


class Linear:
    """v x'z + s [x = z], with the parts of scikit-learn's interface that are used here."""

    theta = np.log([1.0, 1.0])

    def with_theta(self, theta):
        self.now = np.exp(theta)
        return self

    def matrices(self, x):
        product, unit = x @ x.T, np.eye(len(x))
        v, s = self.now
        return v * product + s * unit, np.stack([v * product, s * unit], axis=2)


class Theirs:
    def __init__(self, kernel):
        self.kernel, self.theta = kernel, kernel.theta

    def with_theta(self, theta):
        self.now = self.kernel.clone_with_theta(theta)
        return self

    def matrices(self, x):
        return self.now(x, eval_gradient=True)


def likelihood(theta, kernel, x, y, constant):
    """The negative log likelihood and its gradient per logarithm of a parameter."""
    k, dk = kernel.with_theta(theta).matrices(x)
    try:
        l = cholesky(k, lower=True)
    except np.linalg.LinAlgError:
        return 1e25, np.zeros_like(theta)
    one = np.ones(len(y))
    r = y - (one @ cho_solve((l, True), y)) / (one @ cho_solve((l, True), one)) if constant else y
    a = cho_solve((l, True), r)
    value = -0.5 * r @ a - np.log(np.diag(l)).sum() - 0.5 * len(y) * np.log(2 * np.pi)
    w = np.outer(a, a) - cho_solve((l, True), np.eye(len(y)))
    return -value, -0.5 * np.einsum("ij,ijk->k", w, dk)


def best(kernel, x, y, constant):
    start, rng = kernel.theta, np.random.default_rng(0)
    starts = [start] + [start + rng.normal(size=start.shape) for _ in range(8)]
    ends = [minimize(likelihood, s, (kernel, x, y, constant), jac=True, method="L-BFGS-B",
                     bounds=[tuple(np.log(BOUNDS))] * len(s),
                     options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-9}) for s in starts]
    return max(-end.fun for end in ends)


def scaled(kernel):
    return Theirs(ConstantKernel(1.0, BOUNDS) * kernel + WhiteKernel(0.5, BOUNDS))


def plane():
    i = np.arange(1, 31)
    x = np.column_stack([np.fmod(i * np.sqrt(2) + 1.7, 1), np.fmod(i * np.sqrt(3) + 1.7, 1)])
    return x, 100 * (np.sin(6 * x[:, 0]) + 3 * x[:, 1])


def main():
    table = pd.read_csv(ROOT / "data" / "diabetes.csv").to_numpy(float)
    x, raw = table[:, :10], table[:, 10]
    y = (raw - raw.mean()) / raw.std()
    cases = {
        "rbf": (scaled(RBF(0.1, BOUNDS)), x, y, False),
        "rq": (scaled(RationalQuadratic(0.2, 1.0, BOUNDS, BOUNDS)), x, y, False),
        "matern52_ard": (scaled(Matern([0.2] * 10, BOUNDS, nu=2.5)), x, y, False),
        "rbf_ard": (scaled(RBF([0.1] * 10, BOUNDS)), x, y, False),
        "rbf_ard_const": (scaled(RBF([0.1] * 10, BOUNDS)), x, y, True),
        "linear_const": (Linear(), *plane(), True),
    }
    values = {name: best(*case) for name, case in cases.items()}
    # of the target as it is: n log of the deviation less
    values["rbf_ard_const"] -= len(raw) * np.log(raw.std())
    (OUT / "gp_fit.txt").write_text("".join(f"{name} 1 1\n{float(value)!r}\n" for name, value in values.items()))
    told = {"command": "python tools/make_gp_fit_golden.py", "date": datetime.date.today().isoformat(), "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("scikit-learn", "scipy", "numpy")}, "files": "gp_fit.txt"}
    kept = [line for line in (OUT / "PROVENANCE.tsv").read_text().splitlines() if not line.startswith("gp_fit.")]
    (OUT / "PROVENANCE.tsv").write_text("\n".join(kept + [f"gp_fit.{key}\t{value}" for key, value in told.items()]) + "\n")


if __name__ == "__main__":
    main()
