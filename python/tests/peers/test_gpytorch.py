"""fourge under GPyTorch: marginal likelihoods and gradients with and without, fits."""

import contextlib
import copy
import gc
import math
import threading
import unittest
import warnings
import weakref

import gpytorch
import torch

import fourge.gpytorch
from fourge import errors
from fourge.gpytorch import fast_mll, fit_mll, use_torch_tensors

K, M, L = gpytorch.kernels, gpytorch.means, gpytorch.likelihoods


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, kernel, mean=None):
        super().__init__(x, y, likelihood)
        self.mean_module, self.covar_module = mean or M.ConstantMean(), kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Warped(K.RBFKernel):
    """A kernel of a user's."""

    def forward(self, x1, x2, diag=False, **params):
        return super().forward(x1.sqrt(), x2.sqrt(), diag=diag, **params)


def data(n=40, d=3, dtype=torch.float64):
    torch.manual_seed(2)
    x = torch.rand(n, d, dtype=dtype)
    return x, torch.sin(6 * x[:, 0]) + 0.1 * torch.randn(n, dtype=dtype)


def problem(kernel, mean=None, likelihood=None, n=40, dtype=torch.float64):
    x, y = data(n, dtype=dtype)
    likelihood = likelihood or L.GaussianLikelihood()
    model = Model(x, y, likelihood, kernel, mean).to(dtype)
    torch.manual_seed(4)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn(p.shape, dtype=dtype))
    model.train()
    likelihood.train()
    return gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)


def value_and_gradients(mll):
    model = mll.model
    model.zero_grad()
    value = mll(model(model.train_inputs[0]), model.train_targets)
    value.sum().backward()
    return value.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]


def noisy(n=40, **more):
    return L.FixedNoiseGaussianLikelihood(torch.linspace(0.05, 0.2, n, dtype=torch.float64), **more)


CASES = {  # name: (way, mll)
    "rbf": ("fused", lambda: problem(K.RBFKernel())),
    "scale rbf ard": ("fused", lambda: problem(K.ScaleKernel(K.RBFKernel(ard_num_dims=3)))),
    "matern12": ("fused", lambda: problem(K.ScaleKernel(K.MaternKernel(0.5)))),
    "matern32, zero mean": ("fused", lambda: problem(K.ScaleKernel(K.MaternKernel(1.5)), M.ZeroMean())),
    "matern52 ard, linear mean": ("fused", lambda: problem(K.ScaleKernel(K.MaternKernel(2.5, ard_num_dims=3)), M.LinearMean(3))),
    "rq": ("fused", lambda: problem(K.ScaleKernel(K.RQKernel()))),
    "periodic of a column": ("fused", lambda: problem(K.ScaleKernel(K.PeriodicKernel(active_dims=[1])))),
    "linear and constant": ("fused", lambda: problem(K.LinearKernel() + K.ConstantKernel() + K.RBFKernel())),
    "sum over columns": ("fused", lambda: problem(K.ScaleKernel(K.RBFKernel(active_dims=[0, 2], ard_num_dims=2))
                                                  + K.ScaleKernel(K.MaternKernel(1.5, active_dims=[1])))),
    "product": ("fused", lambda: problem(K.ScaleKernel(K.RBFKernel(active_dims=[0])) * K.RQKernel(active_dims=[1, 2]))),
    "scaled sum": ("fused", lambda: problem(K.ScaleKernel(K.RBFKernel() + K.PolynomialKernel(2)))),
    "fixed noise": ("fused", lambda: problem(K.ScaleKernel(K.RBFKernel()), likelihood=noisy())),
    "fixed and learned noise": ("dense", lambda: problem(K.RBFKernel(), likelihood=noisy(learn_additional_noise=True))),
    "cosine": ("dense", lambda: problem(K.ScaleKernel(K.CosineKernel()) + K.RBFKernel())),
    "a user's kernel": ("dense", lambda: problem(K.ScaleKernel(Warped()))),
    "a batch": ("fused", lambda: problem(K.ScaleKernel(K.RBFKernel(batch_shape=torch.Size([2])), batch_shape=torch.Size([2])),
                                         M.ConstantMean(batch_shape=torch.Size([2])),
                                         L.GaussianLikelihood(batch_shape=torch.Size([2])))),
    "priors": ("fused", lambda: problem(K.ScaleKernel(K.RBFKernel(lengthscale_prior=gpytorch.priors.GammaPrior(3.0, 6.0))))),
}


class FastMll(unittest.TestCase):
    def setUp(self):
        fast_mll.stats.clear()
        warnings.simplefilter("ignore")

    def compare(self, mll, rtol, atol, **settings):
        want, gradients = value_and_gradients(mll)
        with fast_mll(**{"dense_from": 1} | settings):
            got, ours = value_and_gradients(mll)
        torch.testing.assert_close(got, want, rtol=rtol[0], atol=1e-300)
        self.assertEqual(len(ours), len(gradients))
        for a, b in zip(ours, gradients):
            torch.testing.assert_close(a, b, rtol=rtol[1], atol=atol)

    def test_values_and_gradients(self):
        """Both sides factor in float64; values of order 1 here, gradients compared to 1e-8 absolute and relative."""
        for name, (way, make) in CASES.items():
            with self.subTest(name):
                fast_mll.stats.clear()
                self.compare(make(), (1e-10, 1e-8), 1e-8)
                self.assertEqual(dict(fast_mll.stats), {way: 1})

    def test_the_dense_way_alone(self):
        for name, (_, make) in CASES.items():
            with self.subTest(name):
                fast_mll.stats.clear()
                self.compare(make(), (1e-10, 1e-8), 1e-8, fused=False)
                self.assertEqual(dict(fast_mll.stats), {"dense": 1})

    def test_float32(self):
        for kernel in (K.ScaleKernel(K.RBFKernel()), K.ScaleKernel(K.MaternKernel(1.5))):
            self.compare(problem(kernel, dtype=torch.float32), (1e-4, 1e-3), 1e-4)
        self.assertEqual(dict(fast_mll.stats), {"fused": 2})

    def test_gradients_of_points_and_targets(self):
        grads = []
        for fast in (False, True):
            mll = problem(K.ScaleKernel(K.RBFKernel(ard_num_dims=3)))
            x, y = mll.model.train_inputs[0].clone().requires_grad_(), mll.model.train_targets.clone().requires_grad_()
            mll.model.set_train_data(x, y)
            with fast_mll() if fast else use_torch_tensors(False):
                mll(mll.model(x), y).backward()
            grads.append((x.grad, y.grad))
        self.assertEqual(dict(fast_mll.stats), {"fused": 1})
        for a, b in zip(*grads):
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)

    def test_training(self):
        """The same steps of Adam end at the same parameters; points and noise are kept between steps."""
        ends = []
        for fast in (False, True):
            mll = problem(K.ScaleKernel(K.MaternKernel(2.5, ard_num_dims=3)))
            opt = torch.optim.Adam(mll.parameters(), lr=0.1)
            with fast_mll() if fast else use_torch_tensors(False):
                for _ in range(30):
                    opt.zero_grad()
                    loss = -mll(mll.model(mll.model.train_inputs[0]), mll.model.train_targets)
                    loss.backward()
                    opt.step()
            ends.append([p.detach().clone() for p in mll.parameters()])
        for a, b in zip(*ends):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)

    def test_what_stays_with_gpytorch(self):
        structured = problem(K.ScaleKernel(K.GridInterpolationKernel(K.RBFKernel(), grid_size=8, num_dims=1, active_dims=[0])))
        with gpytorch.settings.max_cholesky_size(10), gpytorch.settings.fast_computations(log_prob=True), fast_mll():
            value_and_gradients(structured)  # conjugate gradients with random probes
            value_and_gradients(problem(K.RBFKernel()))
        self.assertEqual(dict(fast_mll.stats), {"untouched": 2})
        with gpytorch.settings.max_cholesky_size(10), gpytorch.settings.fast_computations(log_prob=False), fast_mll():
            value_and_gradients(problem(K.RBFKernel()))  # what BoTorch makes the default: a factor at every size
        self.assertEqual(fast_mll.stats.pop("fused"), 1)
        with gpytorch.settings.max_cholesky_size(10), fast_mll(exact=True):
            value_and_gradients(problem(K.RBFKernel()))
        self.assertEqual(fast_mll.stats["fused"], 1)

    def test_singular_matrices_get_their_jitter(self):
        def make():
            x, y = torch.zeros(12, 2, dtype=torch.float64), torch.zeros(12, dtype=torch.float64)
            likelihood = L.FixedNoiseGaussianLikelihood(torch.full((12,), 1e-20, dtype=torch.float64))
            model = Model(x, y, likelihood, K.RBFKernel()).double()
            return gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model.train())

        with gpytorch.settings.min_fixed_noise(double_value=1e-20):
            value, _ = value_and_gradients(make())
            with fast_mll():
                ours, _ = value_and_gradients(make())
        self.assertTrue(torch.isfinite(ours))
        # K = 1 1' in float64; the first jitter, 1e-8, makes |K| = s^11 (12 + s) with s = 1e-8, and at y = 0 the value per point is
        # -(log|K| + 12 log 2 pi) / 24.  Each of the 11 small pivots is off by 12 u / s of itself: 11 / 24 * 12 * 1.1e-16 / 1e-8.
        want, bound = -(11 * math.log(1e-8) + math.log(12) + 12 * math.log(2 * math.pi)) / 24, 6.1e-8
        self.assertLess(abs(value.item() - want), bound)
        self.assertLess(abs(ours.item() - want), bound)

    def test_blocks(self):
        """Nested, left by exceptions, and other threads."""
        from gpytorch.distributions import MultivariateNormal

        before = MultivariateNormal.log_prob
        with self.assertRaises(KeyError), fast_mll():
            with fast_mll(fused=False):
                pass
            value_and_gradients(CASES["rbf"][1]())
            thread = threading.Thread(target=lambda: value_and_gradients(CASES["rbf"][1]()))
            thread.start()
            thread.join()
            raise KeyError
        self.assertEqual(dict(fast_mll.stats), {"fused": 1})
        self.assertIs(MultivariateNormal.log_prob, before)

        @fast_mll()
        def decorated():
            return value_and_gradients(CASES["rbf"][1]())

        decorated()
        decorated()
        self.assertEqual(fast_mll.stats["fused"], 3)

    def test_derivatives_of_derivatives(self):
        """Gradient and one product with the Hessian by create_graph, by both ways, are GPyTorch's; so are batches of gradients.

        Of kernels with an RBFKernel of one lengthscale GPyTorch 1.15's own Hessian is wrong, and so is ours.
        """
        for name in ("scale rbf ard", "matern52 ard, linear mean", "rq", "periodic of a column", "fixed and learned noise", "a batch"):
            found = []
            for block in (contextlib.nullcontext, fast_mll, lambda: fast_mll(fused=False, dense_from=1)):
                torch.manual_seed(0)  # a LinearMean begins at random
                mll = CASES[name][1]()
                parameters = list(mll.parameters())
                with block():
                    value = mll(mll.model(mll.model.train_inputs[0]), mll.model.train_targets).sum()
                gradients = torch.autograd.grad(value, parameters, create_graph=True, allow_unused=True)
                gradients = [g for g in gradients if g is not None]
                torch.manual_seed(1)
                along = sum((g * torch.randn_like(g)).sum() for g in gradients)
                products = torch.autograd.grad(along, parameters, retain_graph=True, allow_unused=True)
                weights = torch.tensor([1.0, -2.0], dtype=value.dtype)
                batched = torch.autograd.grad(value, parameters, weights, is_grads_batched=True, allow_unused=True)
                batched = [g for g in batched if g is not None]
                for many, one in zip(batched if block is not contextlib.nullcontext else [], gradients):
                    torch.testing.assert_close(many, torch.stack([one, -2 * one]).detach(), rtol=1e-9, atol=1e-10)
                found.append([g.detach() for g in (*gradients, *products) if g is not None])
            for ours in found[1:]:
                with self.subTest(name):
                    self.assertEqual(len(ours), len(found[0]))
                    for a, b in zip(ours, found[0]):
                        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-7)

    def test_changes_in_place_before_a_second_derivative(self):
        mll = CASES["rbf"][1]()
        with fast_mll():
            value = mll(mll.model(mll.model.train_inputs[0]), mll.model.train_targets)
        with torch.no_grad():
            mll.model.covar_module.raw_lengthscale.add_(1.0)
        with self.assertRaisesRegex(RuntimeError, "changed in place"):
            torch.autograd.grad(value, list(mll.parameters()), create_graph=True)

    def test_switches(self):
        """Off inside of on, and on inside of that; under gpytorch.settings, with the names of a flag of GPyTorch."""
        flag = gpytorch.settings.use_torch_tensors
        run = lambda: value_and_gradients(CASES["rbf"][1]())
        self.assertTrue(flag.off() and flag.is_default() and not flag.on())
        with flag(dense_from=1):
            self.assertTrue(flag.on() and not flag.off())
            run()
            self.assertEqual(dict(fast_mll.stats), {"dense": 1})
            with flag(False):
                self.assertTrue(flag.off())
                run()
                self.assertEqual(dict(fast_mll.stats), {"dense": 1})
                with fast_mll():
                    run()
                    with fast_mll(False):
                        run()
                self.assertEqual(dict(fast_mll.stats), {"dense": 1, "fused": 1})
            run()
            self.assertEqual(dict(fast_mll.stats), {"dense": 2, "fused": 1})

        @flag(False)
        def off():
            run()

        with fast_mll():
            off()
        self.assertEqual(dict(fast_mll.stats), {"dense": 2, "fused": 1})

    def test_sizes_of_the_dense_way(self):
        """Smaller matrices than dense_from, 50 unless it is given, are GPyTorch's; n = 40 here."""
        for settings, way in (({}, "untouched"), ({"dense_from": 40}, "dense"), ({"dense_from": 41}, "untouched")):
            with self.subTest(settings):
                fast_mll.stats.clear()
                with use_torch_tensors(**settings):
                    value_and_gradients(CASES["rbf"][1]())
                self.assertEqual(dict(fast_mll.stats), {way: 1})

    def test_what_is_left_alone_is_said_once(self):
        fourge._arrays._warned.clear()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with fast_mll(), gpytorch.settings.max_cholesky_size(10), gpytorch.settings.fast_computations(log_prob=True):
                for _ in range(3):
                    value_and_gradients(CASES["rbf"][1]())
        said = [str(w.message) for w in told if "fast_mll" in str(w.message)]
        self.assertEqual(len(said), 1)
        self.assertRegex(said[0], "n = 40 is above gpytorch.settings.max_cholesky_size, 10.*exact=True")

    def test_a_refused_value_is_gpytorchs(self):
        """log N(y; K + 1e-4 I) of 200 points in float32, of -4.5e5 and a bound of 4e3, ten times what is allowed."""
        x = torch.linspace(0, 1, 200)[:, None]
        likelihood = L.GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(1e-5))
        model = Model(x, torch.sin(20 * x[:, 0]), likelihood, K.ScaleKernel(K.RBFKernel())).train()
        likelihood.noise, model.covar_module.base_kernel.lengthscale = 1e-4, 1.0
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        want, gradients = value_and_gradients(mll)
        fourge._arrays._warned.clear()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with fast_mll(fused=False):
                for _ in range(3):
                    got, ours = value_and_gradients(mll)
                    torch.testing.assert_close([got, *ours], [want, *gradients], rtol=0, atol=0)
        self.assertEqual(dict(fast_mll.stats), {"untouched": 3})
        said = [str(w.message) for w in told if "fast_mll" in str(w.message)]
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said[0], "'dense' failed.*FRG-GP-010")

    def test_batches_of_any_number_of_axes(self):
        """A mean with its own axes, targets with more of them, kernels that only the dense way takes."""
        b = torch.Size([2, 1, 3, 2])
        for name, kernel, way in (("a user's", lambda b: Warped(batch_shape=b), "dense"), ("known", rbf, "fused")):
            with self.subTest(name):
                fast_mll.stats.clear()
                self.compare(batch(b, kernel, n=6), (1e-10, 1e-8), 1e-8)
                self.assertEqual(dict(fast_mll.stats), {way: 1})
        normal = gpytorch.distributions.MultivariateNormal(torch.zeros(6, dtype=torch.float64), 2 * torch.eye(6, dtype=torch.float64))
        targets = torch.randn(2, 3, 1, 2, 6, dtype=torch.float64)
        want = normal.log_prob(targets)
        fast_mll.stats.clear()
        with fast_mll(dense_from=1):
            torch.testing.assert_close(normal.log_prob(targets), want)
        self.assertEqual(dict(fast_mll.stats), {"untouched": 1})  # one factor for all targets is GPyTorch's

    def test_functional_transforms(self):
        """torch.func over the parameters, which no autograd function of ours takes: GPyTorch's way, and said."""
        mll = CASES["scale rbf ard"][1]()
        parameters = {k: v.detach() for k, v in mll.named_parameters()}
        x, y = mll.model.train_inputs[0], mll.model.train_targets

        class Whole(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.mll = mll

            def forward(self):
                return self.mll(self.mll.model(x), y)

        whole = Whole()
        value = lambda p: torch.func.functional_call(whole, {f"mll.{k}": v for k, v in p.items()}, ())
        want = torch.func.grad(value)(parameters)
        with fast_mll():
            got = torch.func.grad(value)(parameters)
        for name in want:
            torch.testing.assert_close(got[name], want[name], rtol=1e-8, atol=1e-10)


def batch(b, kernel, mean=None, likelihood=None, x=None, y=None, n=20, dtype=torch.float64):
    """A likelihood over a batch of shape b whose parameters all differ; kernel: of its batch shape."""
    b = torch.Size(b)
    torch.manual_seed(5)
    x = torch.rand(n, 3, dtype=dtype) if x is None else x
    y = torch.randn(*b, n, dtype=dtype) if y is None else y
    likelihood = likelihood or L.GaussianLikelihood(batch_shape=b)
    model = Model(x, y, likelihood, kernel(b), mean or M.ConstantMean(batch_shape=b)).to(dtype).train()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn(p.shape, dtype=dtype))
    return gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)


def rbf(b):
    return K.ScaleKernel(K.RBFKernel(batch_shape=b, ard_num_dims=3), batch_shape=b)


TWO = torch.Size([2])
BATCHES = {  # name: (way, mll)
    "points of their own": ("fused", lambda: batch([4], rbf, x=torch.rand(4, 20, 3, dtype=torch.float64))),
    "points in common": ("fused", lambda: batch([3], rbf)),
    "two axes": ("fused", lambda: batch([2, 3], rbf, x=torch.rand(2, 3, 20, 3, dtype=torch.float64))),
    "one member": ("fused", lambda: batch([1], rbf)),
    "larger than a lane": ("fused", lambda: batch([2], rbf, n=140)),
    "a parameter in common": ("fused", lambda: batch([2], lambda b: K.ScaleKernel(K.RBFKernel(), batch_shape=b))),
    "sum of chosen columns": ("fused", lambda: batch([2], lambda b: K.RBFKernel(batch_shape=b, active_dims=[0, 2], ard_num_dims=2)
                                                     + K.ScaleKernel(K.MaternKernel(1.5, batch_shape=b, active_dims=[1]), batch_shape=b))),
    "columns of the whole": ("fused", lambda: batch([2], lambda b: K.RBFKernel(batch_shape=b, active_dims=[1]))),
    "zero mean": ("fused", lambda: batch([2], rbf, M.ZeroMean(batch_shape=TWO))),
    "one noise": ("fused", lambda: batch([2], rbf, likelihood=L.GaussianLikelihood())),
    "known noise": ("dense", lambda: batch([2], rbf, likelihood=noisy(20))),
    "priors": ("fused", lambda: batch([2], lambda b: K.ScaleKernel(
        K.RBFKernel(batch_shape=b, lengthscale_prior=gpytorch.priors.GammaPrior(3.0, 6.0)), batch_shape=b))),
    "linear mean": ("dense", lambda: batch([2], rbf, M.LinearMean(3, batch_shape=TWO))),
    "targets with a derivative": ("dense", lambda: batch([2], rbf, y=torch.randn(2, 20, dtype=torch.float64).requires_grad_())),
}


class Batches(unittest.TestCase):
    """Members of a batch in one call of the library."""

    def setUp(self):
        warnings.simplefilter("ignore")

    def test_values_and_gradients(self):
        for name, (way, make) in BATCHES.items():
            with self.subTest(name):
                fast_mll.stats.clear()
                FastMll.compare(self, make(), (1e-10, 1e-8), 1e-8)
                self.assertEqual(dict(fast_mll.stats), {way: 1})

    def test_weights_of_members(self):
        """A derivative of its own for each member's value."""
        grads = []
        for block in (contextlib.nullcontext, fast_mll):
            mll = BATCHES["points in common"][1]()
            with block():
                value = mll(mll.model(mll.model.train_inputs[0]), mll.model.train_targets)
            (value * torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)).sum().backward()
            grads.append([p.grad for p in mll.parameters()])
        for a, b in zip(*grads):
            torch.testing.assert_close(b, a, rtol=1e-8, atol=1e-10)

    def test_a_mean_of_zero(self):
        """Where every ConstantMean begins: its derivative is per value, and nothing is divided by it."""
        mll = BATCHES["points in common"][1]()
        for p in mll.model.mean_module.parameters():
            p.data.zero_()
        with fast_mll(), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            mll(mll.model(mll.model.train_inputs[0]), mll.model.train_targets).sum().backward()
        FastMll.compare(self, mll, (1e-10, 1e-8), 1e-8)

    def test_float32(self):
        fast_mll.stats.clear()
        FastMll.compare(self, batch([3], rbf, dtype=torch.float32), (1e-4, 1e-3), 1e-4)
        self.assertEqual(dict(fast_mll.stats), {"fused": 1})

    def test_changed_kernels_are_seen(self):
        mll = batch([2], lambda b: K.ScaleKernel(K.MaternKernel(2.5, batch_shape=b), batch_shape=b))
        FastMll.compare(self, mll, (1e-10, 1e-8), 1e-8)
        mll.model.covar_module.base_kernel.nu = 1.5
        FastMll.compare(self, mll, (1e-10, 1e-8), 1e-8)
        mll.model.covar_module.base_kernel = K.RBFKernel(batch_shape=TWO).double()
        FastMll.compare(self, mll, (1e-10, 1e-8), 1e-8)

    def test_a_member_that_is_singular(self):
        """It goes the dense way with its jitter, and the others with it."""
        x = torch.rand(2, 20, 3, dtype=torch.float64)
        x[1] = 0.5
        mll = batch([2], rbf, x=x, likelihood=L.FixedNoiseGaussianLikelihood(torch.full((20,), 1e-14, dtype=torch.float64)))
        mll.model.covar_module.base_kernel.raw_lengthscale.data.fill_(-3)
        with fast_mll():
            value = mll(mll.model(x), mll.model.train_targets)
        self.assertTrue(torch.isfinite(value).all())


class Prepared(unittest.TestCase):
    """The likelihood that was understood once: whatever is changed afterwards is seen."""

    def setUp(self):
        warnings.simplefilter("ignore")

    def same(self, mll, x, y):
        results = []
        for block in (contextlib.nullcontext, fast_mll):
            mll.zero_grad()
            with block():
                value = mll(mll.model(x), y)
                (3 * value).backward()
            results.append((value.item(), {n: None if p.grad is None else p.grad.clone() for n, p in mll.named_parameters()}))
        (want, wanted), (got, gradients) = results
        self.assertLess(abs(got - want), 1e-10 * abs(want) + 1e-12)
        self.assertEqual(set(gradients), set(wanted))
        for name, g in wanted.items():
            if g is None:
                self.assertIsNone(gradients[name], name)
            else:
                torch.testing.assert_close(gradients[name], g, rtol=1e-8, atol=1e-10, msg=lambda m: f"{name}: {m}")

    def test_changes_between_steps(self):
        torch.manual_seed(0)
        x, y = torch.rand(30, 2, dtype=torch.float64), torch.randn(30, dtype=torch.float64)
        model = Model(x, y, L.GaussianLikelihood(), K.ScaleKernel(K.RBFKernel(ard_num_dims=2))).double().train()
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        kernel = model.covar_module

        def data():
            kernel.raw_outputscale.data = torch.tensor(0.7, dtype=torch.float64)

        def new():
            kernel.base_kernel.raw_lengthscale = torch.nn.Parameter(torch.tensor([[0.3, 25.0]], dtype=torch.float64))

        def interval():
            kernel.base_kernel.register_constraint("raw_lengthscale", gpytorch.constraints.Interval(0.1, 3.0).double())

        def bound():
            kernel.base_kernel.raw_lengthscale_constraint.upper_bound.fill_(5.0)

        def exponential():
            kernel.register_constraint("raw_outputscale", gpytorch.constraints.Positive(torch.exp, torch.log).double())

        def less():
            kernel.register_constraint("raw_outputscale", gpytorch.constraints.LessThan(4.0).double())

        def constant():
            model.mean_module.register_constraint("raw_constant", gpytorch.constraints.Positive().double())

        def linear():
            model.mean_module = gpytorch.means.LinearMean(2).double()

        def prior():
            kernel.register_prior("outputscale_prior", gpytorch.priors.GammaPrior(2.0, 0.5), "outputscale")

        def base():
            kernel.base_kernel = K.MaternKernel(1.5).double()

        def twin():
            kernel.base_kernel = K.MaternKernel(1.5).double()
            kernel.base_kernel.lengthscale = 0.2

        def smooth():
            kernel.base_kernel.nu = 2.5

        def frozen():
            kernel.raw_outputscale.requires_grad_(False)

        def points():
            x.mul_(1.1)

        def more_noise():
            model.likelihood.noise_covar.raw_noise.data.add_(1.0)

        def targets():
            y.data = y.data * 2

        def targets_in_place():
            y.data.mul_(0.7)

        self.same(mll, x, y)
        for change in (targets, targets_in_place, data, more_noise, new, interval, bound, exponential, less, constant, linear, prior, base, twin, smooth, points, frozen):
            with self.subTest(change.__name__):
                change()
                self.same(mll, x, y)
                self.same(mll, x, y)
        model.likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.full((30,), 0.2, dtype=torch.float64))
        mll.likelihood = model.likelihood
        self.same(mll, x, y)
        kernel.base_kernel = K.RBFKernel(batch_shape=torch.Size([2])).double()
        with fast_mll():
            self.assertEqual(model(x).batch_shape, torch.Size([2]))  # shapes of a covariance are not remembered either

    def test_nothing_is_kept(self):
        x, y = torch.rand(20, 2, dtype=torch.float64), torch.randn(20, dtype=torch.float64)
        model = Model(x, y, L.GaussianLikelihood(), K.RBFKernel()).double().train()
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        with fast_mll():
            mll(model(x), y).backward()
        prepared = weakref.ref(fourge.gpytorch._prepared[id(mll)])
        del mll
        gc.collect()
        self.assertIsNone(prepared())

    def test_without_a_graph(self):
        x, y = torch.rand(20, 2, dtype=torch.float64), torch.randn(20, dtype=torch.float64)
        model = Model(x, y, L.GaussianLikelihood(), K.RBFKernel()).double().train()
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        want = mll(model(x), y).item()
        with fast_mll(), torch.no_grad():
            value = mll(model(x), y)
        self.assertFalse(value.requires_grad)
        self.assertLess(abs(value.item() - want), 1e-10 * abs(want))


class Fit(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")

    def test_ends_where_gpytorch_has_no_gradient(self):
        for name in ("scale rbf ard", "matern52 ard, linear mean", "sum over columns", "fixed noise", "priors"):
            with self.subTest(name):
                mll = CASES[name][1]()
                before, _ = value_and_gradients(mll)
                report = fit_mll(mll)
                after, gradients = value_and_gradients(mll)
                self.assertGreater(after, before)
                flat = torch.cat([g.reshape(-1) for g in gradients])
                self.assertLess(flat.abs().max(), 2e-3)  # per point; lengthscales that run to infinity end earlier
                self.assertIn(report["status"], ("FRG_OK", "FRG_STALLED", "FRG_MAX_ITER"))

    def test_beside_adam(self):
        mll = problem(K.ScaleKernel(K.RBFKernel()))
        other = copy.deepcopy(mll)
        fit_mll(mll.model)
        opt = torch.optim.Adam(other.parameters(), lr=0.1)
        for _ in range(300):
            opt.zero_grad()
            loss = -other(other.model(other.model.train_inputs[0]), other.model.train_targets)
            loss.backward()
            opt.step()
        self.assertGreater(value_and_gradients(mll)[0], value_and_gradients(other)[0] - 1e-4)

    def test_what_is_fixed_stays(self):
        mll = problem(K.ScaleKernel(K.RBFKernel()))
        mll.model.covar_module.base_kernel.raw_lengthscale.requires_grad_(False)
        kept = mll.model.covar_module.base_kernel.lengthscale.item()
        fit_mll(mll)
        self.assertEqual(mll.model.covar_module.base_kernel.lengthscale.item(), kept)

    def test_constraints_are_bounds(self):
        kernel = K.RBFKernel(lengthscale_constraint=gpytorch.constraints.Interval(0.05, 0.1))
        mll = problem(K.ScaleKernel(kernel))
        fit_mll(mll)
        self.assertTrue(0.0499 <= kernel.lengthscale.item() <= 0.1001)

    def test_bounds_of_every_entry(self):
        """Each entry ends within its own bounds, at one only where the likelihood falls inside; LessThan begins at 0."""
        C = gpytorch.constraints
        kernel = K.RBFKernel(ard_num_dims=3, lengthscale_constraint=C.Interval(torch.tensor([0.1, 0.1, 0.1]), torch.tensor([0.15, 9.0, 9.0])))
        mll = problem(K.ScaleKernel(kernel))
        fit_mll(mll)
        first, *others = kernel.lengthscale.reshape(-1).tolist()
        self.assertAlmostEqual(first, 0.15, places=4)
        self.assertTrue(all(x > 0.15 for x in others))
        less = K.RBFKernel(lengthscale_constraint=C.LessThan(0.1))
        mll = problem(K.ScaleKernel(less))
        less.lengthscale = 0.05
        fit_mll(mll)
        self.assertAlmostEqual(less.lengthscale.item(), 0.1, places=4)

    def test_one_module_in_two_places(self):
        """Its parameter is one: the likelihood of the report is that of the model, and no gradient is left."""
        k = K.RBFKernel()
        mll = problem(K.ScaleKernel(k) + K.ScaleKernel(K.ProductKernel(k, K.PeriodicKernel(active_dims=[1]))))
        report = fit_mll(mll, tol=1e-7)
        value, gradients = value_and_gradients(mll)
        self.assertAlmostEqual(report["log_likelihood"] / len(mll.model.train_targets), value.item(), places=7)
        self.assertLess(max(g.abs().max().item() for g in gradients), 1e-4)

    def test_alpha_stays_where_float32_knows_it(self):
        kernel = K.RQKernel()
        mll = problem(kernel, dtype=torch.float32)
        report = fit_mll(mll)
        self.assertLessEqual(kernel.alpha.item(), 1024.1)
        self.assertAlmostEqual(report["log_likelihood"] / 40, value_and_gradients(mll)[0].item(), delta=2e-2)

    def test_a_forward_of_its_own_is_refused(self):
        class Twice(Model):
            def forward(self, x):
                return super().forward(2 * x)

        x, y = data()
        with self.assertRaisesRegex(errors.Unsupported, "Twice"):
            fit_mll(Twice(x, y, L.GaussianLikelihood(), K.RBFKernel()).double())
        with gpytorch.settings.lazily_evaluate_kernels(False), self.assertRaisesRegex(errors.Unsupported, "Twice"):
            fit_mll(Twice(x, y, L.GaussianLikelihood(), K.RBFKernel()).double())

    def test_kernels_that_are_not_lazy(self):
        """GPyTorch sets this for all threads while one of them evaluates a kernel."""
        ends = []
        for lazy in (True, False):
            with gpytorch.settings.lazily_evaluate_kernels(lazy):
                ends.append(fit_mll(problem(K.ScaleKernel(K.RBFKernel())))["log_likelihood"])
        self.assertEqual(*ends)

    def test_refusals(self):
        with self.assertRaisesRegex(errors.Unsupported, "Warped"):
            fit_mll(problem(Warped()))
        with self.assertRaisesRegex(errors.Unsupported, "Horseshoe"):
            fit_mll(problem(K.RBFKernel(lengthscale_prior=gpytorch.priors.HorseshoePrior(0.1))))
        with self.assertRaisesRegex(errors.Unsupported, "ConstantMean"):
            fit_mll(problem(K.RBFKernel(), M.ConstantMean(constant_constraint=gpytorch.constraints.Interval(0.5, 0.6))))
        prior = gpytorch.priors.GammaPrior(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([6.0, 6.0, 6.0]))
        with self.assertRaisesRegex(errors.Unsupported, "lengthscale_prior"):
            fit_mll(problem(K.RBFKernel(ard_num_dims=3, lengthscale_prior=prior)))


if __name__ == "__main__":
    unittest.main()
