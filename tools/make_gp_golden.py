"""Writes tests/golden/gp.tsv: Gaussian processes at fixed parameters, by scikit-learn: python tools/make_gp_golden.py

Log marginal likelihoods and their gradients per log parameter, from GaussianProcessRegressor with optimizer=None and
gradients from `log_marginal_likelihood(theta, eval_gradient=True)`. scikit-learn orders parameters by its own tree, so
every case names, for each of scikit-learn's thetas, the parameter of fourge's expression that it is. Rows of PROVENANCE.tsv begin with "gp.".

Data: `sine` is x = 1, 3, 5, 6, 7, 8 and y = x sin x; `diabetes` is data/diabetes.csv with the target centred and
divided by its population standard deviation; `diabetes:N` its first N rows, standardised by the whole.
"""
import datetime
import importlib.metadata
import pathlib
import platform

import numpy as np
import pandas as pd
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF, ConstantKernel, DotProduct, ExpSineSquared, Matern, RationalQuadratic, WhiteKernel)

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests" / "golden"


def scale(v):
    return ConstantKernel(v)


def ard(length, d=10):
    return [length] * d


ARD = [f"l[{k + 1}]" for k in range(10)]
SPREAD = [0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.1, 0.09, 0.4]


def listed(values):
    return "[" + ",".join(f"{v:g}" for v in values) + "]"


# id, data, known noise variance, fourge's expression, scikit-learn's kernel, our names of its thetas ("-": not compared)
CASES = [
    ("sine.rbf", "sine", 1e-10, "rbf(l=1)", RBF(1.0), ["rbf.l"]),
    ("sine.matern52", "sine", 0, "2*matern52(l=1.5) + noise(0.1)",
     scale(2) * Matern(1.5, nu=2.5) + WhiteKernel(0.1), ["scale", "matern52.l", "noise"]),
    ("sine.matern32", "sine", 0, "2*matern32(l=1.5) + noise(0.1)",
     scale(2) * Matern(1.5, nu=1.5) + WhiteKernel(0.1), ["scale", "matern32.l", "noise"]),
    ("sine.matern12", "sine", 0, "2*matern12(l=1.5) + noise(0.1)",
     scale(2) * Matern(1.5, nu=0.5) + WhiteKernel(0.1), ["scale", "matern12.l", "noise"]),
    ("sine.rq", "sine", 0, "2*rq(l=1.5, alpha=0.7) + noise(0.1)",
     scale(2) * RationalQuadratic(1.5, 0.7) + WhiteKernel(0.1), ["scale", "rq.alpha", "rq.l", "noise"]),
    ("sine.periodic", "sine", 0, "2*periodic(l=1.5, p=3) + noise(0.1)",
     scale(2) * ExpSineSquared(1.5, 3) + WhiteKernel(0.1), ["scale", "periodic.l", "periodic.p", "noise"]),
    ("sine.linear", "sine", 0, "const(0.6) + linear(v=1) + noise(0.1)",
     DotProduct(0.6**0.5) + WhiteKernel(0.1), ["-", "noise"]),
    ("diabetes.rbf", "diabetes", 0, "1*rbf(l=0.1) + noise(0.5)",
     scale(1) * RBF(0.1) + WhiteKernel(0.5), ["scale", "rbf.l", "noise"]),
    ("diabetes.rbf_ard", "diabetes", 0, f"1*rbf(l={listed(ard(0.1))}) + noise(0.5)",
     scale(1) * RBF(ard(0.1)) + WhiteKernel(0.5), ["scale", *[f"rbf.{k}" for k in ARD], "noise"]),
    ("diabetes.matern52_ard", "diabetes", 0, f"1*matern52(l={listed(ard(0.2))}) + noise(0.5)",
     scale(1) * Matern(ard(0.2), nu=2.5) + WhiteKernel(0.5), ["scale", *[f"matern52.{k}" for k in ARD], "noise"]),
    ("diabetes.matern32_ard", "diabetes:150", 0, f"1.3*matern32(l={listed(SPREAD)}) + noise(0.4)",
     scale(1.3) * Matern(SPREAD, nu=1.5) + WhiteKernel(0.4), ["scale", *[f"matern32.{k}" for k in ARD], "noise"]),
    ("diabetes.matern12_ard", "diabetes:150", 0, f"1.3*matern12(l={listed(SPREAD)}) + noise(0.4)",
     scale(1.3) * Matern(SPREAD, nu=0.5) + WhiteKernel(0.4), ["scale", *[f"matern12.{k}" for k in ARD], "noise"]),
    ("diabetes.rq", "diabetes:150", 0, "0.8*rq(l=0.15, alpha=1.7) + noise(0.6)",
     scale(0.8) * RationalQuadratic(0.15, 1.7) + WhiteKernel(0.6), ["scale", "rq.alpha", "rq.l", "noise"]),
    ("diabetes.sum", "diabetes:150", 0, "0.9*rbf(l=0.12) + 0.4*matern12(l=0.3) + noise(0.5)",
     scale(0.9) * RBF(0.12) + scale(0.4) * Matern(0.3, nu=0.5) + WhiteKernel(0.5),
     ["scale", "rbf.l", "scale2", "matern12.l", "noise"]),
    ("diabetes.product", "diabetes:150", 0, "0.9*rbf(l=0.2)*rq(l=0.25, alpha=1.2) + noise(0.5)",
     scale(0.9) * RBF(0.2) * RationalQuadratic(0.25, 1.2) + WhiteKernel(0.5),
     ["scale", "rbf.l", "rq.alpha", "rq.l", "noise"]),
]


def load(name):
    if name == "sine":
        x = np.array([1.0, 3, 5, 6, 7, 8])
        return x[:, None], x * np.sin(x)
    table = pd.read_csv(ROOT / "data" / "diabetes.csv").to_numpy()
    y = (table[:, -1] - table[:, -1].mean()) / table[:, -1].std()
    rows = int(name.split(":")[1]) if ":" in name else len(y)
    return table[:rows, :-1], y[:rows]


def main():
    lines = ["\t".join(["id", "data", "known_noise", "kernel", "quantity", "term", "value"])]
    for name, data, known, ours, kernel, names in CASES:
        x, y = load(data)
        model = GaussianProcessRegressor(kernel, alpha=known, optimizer=None).fit(x, y)
        value, gradient = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
        assert len(names) == len(gradient), name
        rows = [("value", "-", value)] + [("gradient", n, g) for n, g in zip(names, gradient) if n != "-"]
        lines += ["\t".join([name, data, repr(known), ours, q, t, repr(float(v))]) for q, t, v in rows]
        print(name, value, [float(f"{g:.10f}") for g in gradient])
    (OUT / "gp.tsv").write_text("\n".join(lines) + "\n")
    versions = {p: importlib.metadata.version(p) for p in ("scikit-learn", "numpy", "scipy", "pandas")}
    ours = {"command": "python tools/make_gp_golden.py", "date": datetime.date.today().isoformat(),
            "python": platform.python_version(), **versions, "seed": "none (no random numbers)",
            "cases": len(CASES), "rows": len(lines) - 1, "files": "gp.tsv"}
    path = OUT / "PROVENANCE.tsv"
    kept = [line for line in path.read_text().splitlines() if not line.startswith("gp.")]
    path.write_text("\n".join(kept + [f"gp.{k}\t{v}" for k, v in ours.items()]) + "\n")


main()
