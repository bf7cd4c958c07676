"""Problems of the starts' benchmark: inputs, outputs and a kernel, which the three packages get in their own words.

A kernel is a tuple: (name,) of a leaf, ("scale", k), ("sum", k, ...), ("product", k, ...); noise is added to all.  y is
standardised and its mean is zero to everybody, so that all maximise the same function.  Sunspots come from statsmodels, where
it is installed; everything else from data/ or from a seeded generator.
"""
from __future__ import annotations

import csv
import pathlib

import numpy as np

DATA = pathlib.Path(__file__).resolve().parent.parent.parent / "data"


def column(file, *names):
    with open(DATA / file) as text:
        rows = [row for row in csv.DictReader(text) if all(row[name] for name in names)]
    return [np.array([float(row[name]) for row in rows]) for name in names]


def scaled(*leaf):
    return ("scale", leaf)


# ---- data ----------------------------------------------------------------------------------------------------------


def sunspots():
    import statsmodels

    file = pathlib.Path(statsmodels.__file__).parent / "datasets" / "sunspots" / "sunspots.csv"
    table = np.loadtxt(file, delimiter=",", skiprows=1)
    return table[:, :1], table[:, 1]


def co2(every=1, since=0):
    x, y = column("co2.csv", "time", "co2")
    keep = x >= since
    return x[keep][::every, None], y[keep][::every]


def diabetes(n=442):
    names = "age sex bmi bp s1 s2 s3 s4 s5 s6".split()
    *x, y = column("diabetes.csv", *names, "target")
    return np.stack(x, 1)[:n], y[:n]


def terrain(n=300):
    x0, x1, y = column("terrain.csv", "east", "south", "height")
    rows = np.random.default_rng(7).choice(len(y), n, replace=False)
    return np.stack([x0, x1], 1)[rows], y[rows]


# ---- generated -----------------------------------------------------------------------------------------------------


def draw(kernel, x, noise, seed):
    """A draw of a process with the covariance kernel(distances)."""
    rng = np.random.default_rng(seed)
    d = np.sqrt(((x[:, None] - x[None]) ** 2).sum(2))
    root = np.linalg.cholesky(kernel(d) + 1e-8 * np.eye(len(x)))  # one sign, whichever LAPACK
    return root @ rng.standard_normal(len(x)) + noise * rng.standard_normal(len(x))


def uniform(n, d, seed, top=1.0):
    return np.random.default_rng(1000 + seed).uniform(0, top, (n, d))


def noisy_sine(n=120, top=10.0, period=0.8, noise=0.15, seed=0):
    x = np.sort(uniform(n, 1, seed, top), 0)
    return x, np.sin(2 * np.pi * x[:, 0] / period) + noise * np.random.default_rng(seed).standard_normal(n)


def two_lengths(n=200, seed=1):
    x = np.sort(uniform(n, 1, seed, 10.0), 0)
    return x, draw(lambda d: np.exp(-0.5 * (d / 3) ** 2) + 0.2 * np.exp(-0.5 * (d / 0.12) ** 2), x, 0.05, seed)


def idle(n=120, d=6, seed=2):
    x = uniform(n, d, seed)
    return x, np.sin(9 * x[:, 0]) + 2 * (x[:, 1] - 0.5) ** 2 + 0.05 * np.random.default_rng(seed).standard_normal(n)


def rough(n=150, seed=3):
    x = np.sort(uniform(n, 1, seed, 100.0), 0)
    return x, draw(lambda d: np.exp(-d / 4), x, 0.1, seed)


def small(n=15, seed=4):
    x = np.sort(uniform(n, 1, seed, 5.0), 0)
    return x, np.sin(2 * x[:, 0]) + 0.05 * np.random.default_rng(seed).standard_normal(n)


def trend_and_period(n=140, seed=5):
    x = np.sort(uniform(n, 1, seed, 12.0), 0)
    t = x[:, 0]
    return x, 0.08 * t**2 + 0.7 * np.sin(2 * np.pi * t) + 0.1 * np.random.default_rng(seed).standard_normal(n)


def offset_line(n=80, seed=6):
    x = 1000 + np.sort(uniform(n, 1, seed, 10.0), 0)
    t = x[:, 0] - 1005
    return x, 0.8 * t + np.sin(2.2 * t) + 0.1 * np.random.default_rng(seed).standard_normal(n)


def clusters(n=160, seed=7):
    rng = np.random.default_rng(seed)
    x = np.sort((rng.integers(0, 8, n) * 50.0 + rng.exponential(1.0, n)))[:, None]
    return x, draw(lambda d: (1 + np.sqrt(3) * d / 0.6) * np.exp(-np.sqrt(3) * d / 0.6), x, 0.1, seed)


def many_scales(n=150, seed=8):
    x = np.sort(uniform(n, 1, seed, 10.0), 0)
    return x, draw(lambda d: (1 + (d / 0.5) ** 2 / 0.4) ** -0.2, x, 0.05, seed)


def friedman(n=150, d=8, seed=9):
    x = uniform(n, d, seed)
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, y + 0.5 * np.random.default_rng(seed).standard_normal(n)


def slow_cycle(n=120, seed=10):
    x = np.sort(np.concatenate([uniform(n // 2, 1, seed, 30.0), 45 + uniform(n - n // 2, 1, seed + 1, 30.0)]), 0)
    t = x[:, 0]
    y = (1 + 0.01 * t) * np.sin(2 * np.pi * t / 13.0 + 0.02 * t) ** 3
    return x, y + 0.1 * np.random.default_rng(seed).standard_normal(n)


def two_periods(n=150, seed=11):
    x = np.sort(uniform(n, 1, seed, 20.0), 0)
    t = x[:, 0]
    return x, np.sin(2 * np.pi * t / 3.1) + 0.6 * np.sin(2 * np.pi * t / 0.77) + 0.1 * np.random.default_rng(seed).standard_normal(n)


def wells(n=60, seed=12):
    x = uniform(n, 2, seed, 10.0)
    return x, np.sin(x[:, 0]) * np.cos(0.4 * x[:, 1]) + 0.02 * np.random.default_rng(seed).standard_normal(n)


RBF, M12, M32, M52, RQ, PER = ("rbf",), ("matern12",), ("matern32",), ("matern52",), ("rq",), ("periodic",)

PROBLEMS = {  # name: (data, kernel)
    "sunspots": (sunspots, scaled("matern52")),
    "noisy sine": (noisy_sine, ("scale", ("product", RBF, PER))),
    "co2": (lambda: co2(2), ("sum", scaled("rbf"), ("scale", ("product", RBF, PER)), scaled("rq"))),
    "diabetes": (diabetes, scaled("rbf", "ard")),
    "terrain": (terrain, scaled("matern32", "ard")),
    "two lengthscales": (two_lengths, ("sum", scaled("rbf"), scaled("rbf"))),
    "idle columns": (idle, scaled("rbf", "ard")),
    "rough": (rough, scaled("matern12")),
    "small": (small, scaled("rbf")),
    "trend and period": (trend_and_period, ("sum", scaled("rbf"), scaled("periodic"))),
    "offset line": (offset_line, ("sum", scaled("rbf"), ("scale", ("linear",)), ("const",))),
    "clusters": (clusters, scaled("matern32")),
    "many scales": (many_scales, scaled("rq")),
    "friedman": (friedman, scaled("matern52", "ard")),
    "slow cycle": (slow_cycle, ("scale", ("product", RBF, PER))),
}
ASIDE = {  # one of these, "fast sine", was missed by a first version of the starts and then mended
    "co2 since 1985": (lambda: co2(1, 1985), ("sum", scaled("rbf"), scaled("periodic"))),
    "two periods": (two_periods, ("sum", scaled("periodic"), scaled("periodic"))),
    "wells": (wells, scaled("matern52", "ard")),
    "diabetes 150": (lambda: diabetes(150), scaled("matern32")),
    "fast sine": (lambda: noisy_sine(80, 50.0, 1.7, 0.3, 13), ("scale", ("product", RBF, PER))),
}
SETS = {"tuned": PROBLEMS, "aside": ASIDE}


def make(name):
    data, kernel = {**PROBLEMS, **ASIDE}[name]
    x, y = data()
    return np.ascontiguousarray(x), (y - y.mean()) / y.std(), kernel


def unit_cube(x, kernel):
    """x within [0, 1]: each column by itself under lengthscales of its own, else all by one factor; not shifted where a term is linear."""
    text = str(kernel)
    spans = np.ptp(x, 0) if "ard" in text else np.ptp(x, 0).max()
    return (x if "linear" in text else x - x.min(0)) / spans


# ---- the three languages -------------------------------------------------------------------------------------------


def fourge_text(k):
    kind, *rest = k
    if kind == "scale":
        return f"scale*{fourge_text(rest[0])}" if rest[0][0] not in ("sum",) else f"scale*({fourge_text(rest[0])})"
    if kind in ("sum", "product"):
        return (" + " if kind == "sum" else "*").join(map(fourge_text, rest))
    return f"{kind}(ard)" if rest == ["ard"] else kind


def sklearn_kernel(k, d):
    from sklearn.gaussian_process import kernels as sk

    kind, *rest = k
    if kind == "scale":
        return sk.ConstantKernel() * sklearn_kernel(rest[0], d)
    if kind in ("sum", "product"):
        out = sklearn_kernel(rest[0], d)
        for other in rest[1:]:
            out = out + sklearn_kernel(other, d) if kind == "sum" else out * sklearn_kernel(other, d)
        return out
    length = np.ones(d) if rest == ["ard"] else 1.0
    if kind.startswith("matern"):
        return sk.Matern(length, nu={"12": 0.5, "32": 1.5, "52": 2.5}[kind[6:]])
    return {"rbf": lambda: sk.RBF(length), "rq": sk.RationalQuadratic, "periodic": sk.ExpSineSquared, "const": sk.ConstantKernel,
            "linear": lambda: sk.DotProduct(sigma_0=1e-5, sigma_0_bounds="fixed")}[kind]()


def gpytorch_kernel(k, d):
    import gpytorch.kernels as gk

    kind, *rest = k
    if kind == "scale":
        return gk.ScaleKernel(gpytorch_kernel(rest[0], d))
    if kind in ("sum", "product"):
        out = gpytorch_kernel(rest[0], d)
        for other in rest[1:]:
            out = out + gpytorch_kernel(other, d) if kind == "sum" else out * gpytorch_kernel(other, d)
        return out
    ard = {"ard_num_dims": d} if rest == ["ard"] else {}
    if kind.startswith("matern"):
        return gk.MaternKernel(nu={"12": 0.5, "32": 1.5, "52": 2.5}[kind[6:]], **ard)
    return {"rbf": gk.RBFKernel, "rq": gk.RQKernel, "periodic": gk.PeriodicKernel, "const": gk.ConstantKernel,
            "linear": gk.LinearKernel}[kind](**ard)
