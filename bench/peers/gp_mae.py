"""Held-out errors after the same Adam steps: python gp_mae.py PROGRAM [N ...]

PROGRAM is fourge.  GPyTorch's stock model and `fourge gp predict --fit --preset gpytorch` take 50 steps of Adam with
learning rate 0.1 from the same start on the first N rows of the inputs of gp_peers.py and predict the 1000 rows behind
them; one line of both mean absolute errors a size and type, and how far apart they are.
"""
import common
import csv
import io
import pathlib
import subprocess
import sys
import tempfile

import gpytorch
import numpy as np
import torch

from gp_peers import DIMS, inputs, stock_model

HELD_OUT, STEPS, RATE = 1000, 50, 0.1
NAMES = [f"x{k + 1}" for k in range(DIMS)]


def write(path, x, y=None):
    columns = x if y is None else np.column_stack([x, y])
    np.savetxt(path, columns, delimiter=",", fmt="%.17g", comments="",
               header=",".join(NAMES + ([] if y is None else ["y"])))


def ours(program, x, y, new, dtype):
    with tempfile.TemporaryDirectory() as folder:
        data, at = pathlib.Path(folder, "data.csv"), pathlib.Path(folder, "new.csv")
        write(data, x, y)
        write(at, new)
        out = subprocess.run(
            [program, "gp", "predict", data, at, "--y", "y", "--kernel", "scale*rbf + noise", "--fit", "--preset",
             "gpytorch", "--optimizer", "adam", "--max-iter", str(STEPS), "--learning-rate", str(RATE),
             "--standardize", "no", "--standard-errors", "no", "--dtype", dtype, "--format", "csv", "-q"],
            capture_output=True, text=True, check=True).stdout
    return np.array([float(row["mean"]) for row in csv.DictReader(io.StringIO(out))])


def theirs(x, y, new, dtype):
    to = {"f64": torch.float64, "f32": torch.float32}[dtype]
    x, y, new = (torch.tensor(v, dtype=to) for v in (x, y, new))
    model, loss = stock_model(x, y)
    step = torch.optim.Adam(model.parameters(), lr=RATE)
    with gpytorch.settings.fast_computations(False, False, False), gpytorch.settings.max_cholesky_size(10**9):
        for _ in range(STEPS):
            step.zero_grad()
            loss().backward()
            step.step()
        model.eval()
        with torch.no_grad():
            return model(new).mean.numpy().astype(float)


def main():
    for rows in [int(n) for n in sys.argv[2:]] or [50, 100, 500, 1000]:
        x, y = (v[: rows + HELD_OUT] for v in inputs(10_000))
        for dtype in ("f64", "f32"):
            errors = [np.abs(mean - y[rows:]).mean()
                      for mean in (ours(sys.argv[1], x[:rows], y[:rows], x[rows:], dtype),
                                   theirs(x[:rows], y[:rows], x[rows:], dtype))]
            common.report(bench="gp", job="mae", n=rows, held_out=HELD_OUT, d=DIMS, dtype=dtype, steps=STEPS,
                          mae_fourge=errors[0], mae_gpytorch=errors[1],
                          relative_difference=abs(errors[0] / errors[1] - 1), gpytorch=gpytorch.__version__)


main()
