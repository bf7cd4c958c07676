"""The modules that are named after peers: memory and references over many calls, 8 threads at once.

FOURGE_TEST_CALLS sets the number of calls, 200 without."""

import os
import pathlib
import sys
import unittest
import warnings

import anndata
import gpytorch
import numpy as np
import pandas as pd
import pyfixest as pf
import torch
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import fourge.anndata
from fourge import gw, linalg
from fourge.gpytorch import fast_mll, fit_mll
from fourge.pyfixest import demeaning
from fourge.sklearn import GaussianProcessRegressor
from fourge.torch import SOAP, inv_quad_logdet

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from test_steady import at_once, resident  # noqa: E402

CALLS = int(os.environ.get("FOURGE_TEST_CALLS", "200"))


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Entries:
    """name -> a call with small inputs that returns numbers; pyfixest's own calls are slow, a tenth of them is made."""

    slow = ("pyfixest", "gpytorch.fit_mll", "anndata.align")

    def __init__(self):
        rng = np.random.default_rng(0)
        self.x, self.y = rng.normal(size=(12, 2)), rng.normal(size=12)
        k = torch.from_numpy(np.eye(12) + 0.1)
        t = torch.from_numpy(self.x)
        frame = pd.DataFrame({"y": self.y, "x": self.x[:, 0], "f": np.arange(12) % 3, "g": np.arange(12) % 2})
        far = torch.cdist(t, t)
        self.inputs = [self.x, self.y, k, t, far]

        def torch_soap():
            w = torch.nn.Parameter(torch.ones(3, 2))
            opt = SOAP([w], lr=1e-2, threads=1)
            for _ in range(2):
                w.grad = torch.full((3, 2), 0.5)
                opt.step()
            opt.load_state_dict(opt.state_dict())
            opt.load_param(w, opt.save_param("param.0"))
            return w.detach().numpy()

        def logdet():
            a, r = k.clone().requires_grad_(), torch.from_numpy(self.y).requires_grad_()
            sum(inv_quad_logdet(a, r)).backward()
            return [a.grad.numpy(), r.grad.numpy()]

        def likelihood(step):
            likelihood_ = gpytorch.likelihoods.GaussianLikelihood().double()
            model = Model(t, torch.from_numpy(self.y), likelihood_).double()
            return step(model, gpytorch.mlls.ExactMarginalLogLikelihood(likelihood_, model))

        def fast(model, mll):
            with fast_mll():
                value = mll(model(t), torch.from_numpy(self.y))
                value.backward()
            return value.item()

        def aligned():
            a, b = (anndata.AnnData(self.x.astype(np.float32)) for _ in range(2))
            fourge.anndata.align(a, b, use_rep="X", k=3, max_iter=2, n_matches=2, threads=1)
            return a.obsm["gw_mass"]

        def regression():
            with demeaning(threads=1):
                return pf.feols("y ~ x | f + g", frame).coef().to_numpy()

        def through_a_plan():
            c = far.clone().requires_grad_()
            plan = gw.sampled_gw(dist_source=c, dist_target=far, differentiable=True, epsilon=0.05, max_iter=3, threads=1)
            (plan * far).sum().backward()
            return c.grad.numpy()

        self.calls = {
            "torch.SOAP": torch_soap,
            "torch.inv_quad_logdet": logdet,
            "linalg.qr": lambda: linalg.qr(t, threads=1).R.numpy(),
            "gw.sampled_gw, differentiable": through_a_plan,
            "gpytorch.fast_mll": lambda: likelihood(fast),
            "gpytorch.fit_mll": lambda: likelihood(lambda model, mll: fit_mll(mll, max_iter=2, threads=1)["log_likelihood"]),
            "sklearn": lambda: GaussianProcessRegressor(RBF() + WhiteKernel(), optimizer=None, threads=1).fit(self.x, self.y).predict(self.x),
            "anndata.align": aligned,
            "pyfixest": regression,
        }


def numbers(value):
    return np.concatenate([numbers(v) for v in value]) if isinstance(value, (tuple, list)) else np.ravel(np.asarray(value, float))


class Steady(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        self.entries = Entries()

    def test_memory_and_references(self):
        """Peers keep caches that grow in steps: the least of three rounds is what counts, 256 bytes a call and half a megabyte."""
        inputs = self.entries.inputs
        for name, call in self.entries.calls.items():
            with self.subTest(name):
                calls = max(CALLS // 10, 5) if name in self.entries.slow else CALLS
                for _ in range(max(calls // 4, 3)):
                    call()
                resident()
                counts, grown = [sys.getrefcount(o) for o in inputs], []
                for _ in range(3):
                    before = resident()
                    for _ in range(calls):
                        call()
                    grown.append(resident() - before)
                self.assertLess(min(grown), 256 * calls + (1 << 19), f"{name}: {grown}")
                self.assertEqual([sys.getrefcount(o) for o in inputs], counts, name)

    def test_threads(self):
        """8 threads call everything, each in an order of its own; numbers stay the same."""
        calls = self.entries.calls
        wanted = {name: numbers(call()) for name, call in calls.items()}
        wrong = []

        def work(seed):
            for name in np.random.default_rng(seed).permutation(list(calls)):
                try:
                    np.testing.assert_allclose(numbers(calls[name]()), wanted[name], rtol=1e-9, atol=1e-12)
                except BaseException as e:  # noqa: BLE001
                    wrong.append(f"{name}: {e!r}"[:300])

        at_once(work)
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
