"""fourge inside torch: py_torch.py [N...]; a step of GPyTorch with and without fast_mll, a step of SOAP beside its peer.

gpytorch: value and backward of ExactMarginalLogLikelihood, ScaleKernel(RBFKernel(5 lengthscales)), float64.
soap: one step over six matrices of 256 x 256 with a refresh of the bases, beside pytorch_optimizer's SOAP.
"""
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
from common import THREADS, best_of, report  # noqa: E402

import gpytorch  # noqa: E402
import torch  # noqa: E402

from fourge.gpytorch import fast_mll  # noqa: E402
from fourge.torch import SOAP  # noqa: E402

warnings.simplefilter("ignore")
torch.set_num_threads(THREADS)


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y):
        super().__init__(x, y, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def gaussian_process(n):
    torch.manual_seed(n)
    x = torch.rand(n, 5, dtype=torch.float64)
    y = torch.sin(6 * x[:, 0]) + 0.1 * torch.randn(n, dtype=torch.float64)
    model = Model(x, y).double().train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)

    def step():
        model.zero_grad()
        value = -mll(model(x), y)
        value.backward()
        return value.item()

    repeats = 200 if n <= 100 else 30 if n <= 500 else 6
    with fast_mll():
        mine, value = best_of(step, repeats)
    theirs, want = best_of(step, repeats)
    assert abs(value - want) < 1e-9 * abs(want), (value, want)
    report(bench="py_torch", job="fast_mll", n=n, peer="fourge", seconds=round(mine, 6))
    report(bench="py_torch", job="fast_mll", n=n, peer="gpytorch", seconds=round(theirs, 6), ratio=round(theirs / mine, 2))


def soap(side=256, count=6):
    from pytorch_optimizer import SOAP as Peer

    def stepper(make):
        torch.manual_seed(0)
        params = [torch.nn.Parameter(torch.randn(side, side)) for _ in range(count)]
        for p in params:
            p.grad = torch.randn(side, side)
        opt = make(params)
        opt.step()
        return opt.step

    settings = {"lr": 1e-3, "betas": (0.95, 0.95), "precondition_frequency": 1}
    mine, _ = best_of(stepper(lambda p: SOAP(p, profile="nikhilvyas", **settings)), 3)
    theirs, _ = best_of(stepper(lambda p: Peer(p, **settings)), 3)
    report(bench="py_torch", job="soap", side=side, count=count, peer="fourge", seconds=round(mine, 5))
    report(bench="py_torch", job="soap", side=side, count=count, peer="pytorch_optimizer", seconds=round(theirs, 5), ratio=round(theirs / mine, 2))


for n in [int(a) for a in sys.argv[1:]] or [50, 500, 1000]:
    gaussian_process(n)
soap()
