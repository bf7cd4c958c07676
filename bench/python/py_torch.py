"""fourge inside torch: py_torch.py [N...]; a step of GPyTorch with and without fast_mll, a step of SOAP beside its peer.

gpytorch: value and backward of ExactMarginalLogLikelihood, ScaleKernel(RBFKernel), float64, on the inputs of gp_peers.py;
at 50 points besides with five lengthscales.
sizes: from which order each way of fast_mll pays: value and backward by GPyTorch, "fused" and "dense", CPU time of the
process, medians of seven turns of all three.
soap: one step over the matrices of soap_peers.py (hidden 128, mlp 512, 3 layers), a refresh of the bases at every step,
beside pytorch_optimizer's SOAP.
Where build/bench_gp and build/fourge were built, the same step in C comes from them in the same run: c_ratio is the peer's
time over that of C, of_c the share of it that is left in Python.
"""
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
from common import THREADS, best_of, report  # noqa: E402

import gpytorch  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

import fourge  # noqa: E402
import gp_peers  # noqa: E402
from fourge.gpytorch import fast_mll  # noqa: E402
from fourge.torch import SOAP  # noqa: E402

warnings.simplefilter("ignore")
torch.set_num_threads(THREADS)
BUILD = pathlib.Path(fourge.__file__).parents[2]


def in_c(program, *arguments):
    """The JSON line of a program of the build; None where it was not built."""
    if not (BUILD / program).exists():
        return None
    out = subprocess.run([BUILD / program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def beside_c(mine, theirs, c):
    if c is None:
        return {}
    return {"c_seconds": c, "c_ratio": round(theirs / c, 2), "of_c": round(c / mine, 3)}


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, lengthscales):
        super().__init__(x, y, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=lengthscales))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def gaussian_process(n, lengthscales=1):
    all_x, all_y = gp_peers.inputs(10_000)
    x, y = torch.tensor(all_x[:n]), torch.tensor(all_y[:n])
    model = Model(x, y, None if lengthscales == 1 else lengthscales).double().train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)

    def step():
        model.zero_grad()
        value = -mll(model(x), y)
        value.backward()
        return value.item()

    repeats = 200 if n <= 100 else 100 if n <= 500 else 20 if n <= 1000 else 5
    with gpytorch.settings.max_cholesky_size(10**9):
        with fast_mll():
            mine, value = best_of(step, repeats)
        theirs, want = best_of(step, repeats)
    assert abs(value - want) < 1e-9 * abs(want), (value, want)
    c = None
    if lengthscales == 1:
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/gp_x.npy", all_x)
            np.save(f"{folder}/gp_y.npy", all_y)
            c = in_c("bench_gp", "--job", "step", "--dtype", "f64", "--n", n, "--threads", THREADS, "--repeat", max(repeats, 5), "--data", folder)
    row = {"bench": "py_torch", "job": "fast_mll", "n": n, "lengthscales": lengthscales}
    report(**row, peer="gpytorch", seconds=round(theirs, 6))
    report(**row, peer="fourge", seconds=round(mine, 6), ratio=round(theirs / mine, 2), **beside_c(mine, theirs, c and c["seconds"]))


def sizes():
    ways = {"gpytorch": contextlib.nullcontext, "fused": fast_mll, "dense": lambda: fast_mll(fused=False, dense_from=1)}
    all_x, all_y = gp_peers.inputs(10_000)
    for n in (1, 5, 20, 50, 100, 200, 400):
        x, y = torch.tensor(all_x[:n]), torch.tensor(all_y[:n])
        model = Model(x, y, None).double().train()
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)

        def step():
            model.zero_grad()
            value = -mll(model(x), y)
            value.backward()
            return value.item()

        seconds, values, repeats = {way: [] for way in ways}, {}, 20 if n <= 100 else 5
        for _ in range(7):
            for way, block in ways.items():
                with block():
                    values[way] = step()
                    begun = time.process_time()
                    for _ in range(repeats):
                        step()
                    seconds[way].append((time.process_time() - begun) / repeats)
        assert all(abs(v - values["gpytorch"]) <= 1e-9 * abs(v) for v in values.values()), values
        times = {way: statistics.median(v) for way, v in seconds.items()}
        report(bench="py_torch", job="sizes", n=n, clock="cpu", **{way: round(t, 6) for way, t in times.items()},
               fused_ratio=round(times["gpytorch"] / times["fused"], 2), dense_ratio=round(times["gpytorch"] / times["dense"], 2))


def soap(hidden=128, mlp=512, layers=3, steps=8):
    from pytorch_optimizer import SOAP as Peer

    shapes = [(3 * hidden, hidden), (hidden, hidden), (mlp, hidden), (hidden, mlp)] * layers

    def measure(make):
        torch.manual_seed(0)
        params = [torch.nn.Parameter(0.02 * torch.randn(shape)) for shape in shapes]
        optimizer, times, inside = make(params), [], []
        for _ in range(steps):
            for p in params:
                p.grad = 1e-3 * torch.randn(p.shape)
            start = time.perf_counter()
            optimizer.step()
            times.append(time.perf_counter() - start)
            inside.append(getattr(optimizer, "report", {}).get("seconds", 0.0))
        return statistics.median(times[2:]), statistics.median(inside[2:])

    theirs, _ = measure(lambda p: Peer(p, lr=1e-3, precondition_frequency=1))
    mine, inside = measure(lambda p: SOAP(p, lr=1e-3, precondition_frequency=1, threads=THREADS))
    c = in_c("fourge", "soap", "bench", "--layers", layers, "--hidden", hidden, "--mlp", mlp, "--steps", steps - 2, "--warmup", 2,
             "--gradients", "gaussian", "--threads", THREADS, "--format", "json")
    row = {"bench": "py_torch", "job": "soap", "hidden": hidden, "mlp": mlp, "layers": layers}
    report(**row, peer="pytorch_optimizer", seconds=round(theirs, 5))
    report(**row, peer="fourge", seconds=round(mine, 5), library_seconds=round(inside, 5), ratio=round(theirs / mine, 2),
           **beside_c(mine, theirs, c and c["median_step_seconds"]))


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["50", "500", "1000", "2000", "soap"]
    for word in wanted:
        if word in ("soap", "sizes"):
            {"soap": soap, "sizes": sizes}[word]()
            continue
        gaussian_process(int(word))
        if int(word) == 50:
            gaussian_process(50, 5)
