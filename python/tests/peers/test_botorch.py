"""fourge as an optimizer of BoTorch, and BoTorch's batches of outputs inside fast_mll."""

import importlib.util
import unittest
import warnings

import gpytorch
import torch

from fourge import errors
from fourge.gpytorch import fast_mll, fit_mll

if importlib.util.find_spec("botorch") is None:
    raise unittest.SkipTest("botorch is not installed")
import botorch
from botorch.cross_validation import batch_cross_validation, gen_loo_cv_folds
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize, Warp

ABOUT = f"botorch {botorch.__version__}, gpytorch {gpytorch.__version__}"


def problem(outputs=1, n=25, **more):
    torch.manual_seed(3)
    x = 10 * torch.rand(n, 2, dtype=torch.float64)
    y = torch.stack([torch.sin(0.5 * (k + 1) * x[:, 0]) + 0.1 * torch.randn(n) for k in range(outputs)], -1)
    model = SingleTaskGP(x, y, **more)
    return gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)


def value(mll):
    mll.train()
    out = mll(mll.model(*mll.model.train_inputs), mll.model.train_targets)
    mll.eval()
    return out.sum().item()


class Fits(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")

    def test_as_optimizer(self):
        """At least as good as BoTorch's own L-BFGS-B to 1e-4 per point, at points and targets transformed by the model."""
        for name, more in {"plain": {}, "transforms": {"input_transform": Normalize(2), "outcome_transform": Standardize(1)}}.items():
            with self.subTest(name, about=ABOUT):
                ours, theirs = problem(**more), problem(**more)
                self.assertIs(fit_gpytorch_mll(ours, optimizer=fit_mll), ours)
                self.assertFalse(ours.training)
                fit_gpytorch_mll(theirs)
                self.assertGreater(value(ours), value(theirs) - 1e-4)

    def test_best_of_attempts(self):
        """pick_best_of_all_attempts reads the report's fval, which is BoTorch's loss."""
        mll = problem()
        report = fit_mll(mll)
        self.assertAlmostEqual(-report.fval, value(mll), delta=1e-8)
        fit_gpytorch_mll(mll, optimizer=fit_mll, max_attempts=2, pick_best_of_all_attempts=True)
        self.assertGreater(value(mll), -report.fval - 1e-4)

    def test_options(self):
        mll = problem()
        fit_gpytorch_mll(mll, optimizer=fit_mll, optimizer_kwargs={"method": "lbfgsb", "max_iter": 200})
        with self.assertRaisesRegex(errors.Unsupported, "input transform"):
            fit_mll(problem(input_transform=Warp(2, [0, 1])))

    def test_cross_validation_in_a_batch(self):
        """Folds, batches and outputs are axes of one batch: the posteriors at the points left out are BoTorch's, by all ways."""
        ways = {"untouched": {"fused": False}, "fused": {}, "dense": {"fused": False, "dense_from": 1}}
        for axes, outputs, noise in (((), 1, False), ((2,), 2, False), ((2,), 2, True), ((2, 1), 2, True)):
            torch.manual_seed(0)
            x = torch.rand(*axes, 6, 2, dtype=torch.float64)
            y = torch.cat([torch.sin(6 * x[..., :1]), torch.cos(4 * x[..., 1:])], -1)[..., :outputs]
            folds = gen_loo_cv_folds(x, y, torch.full_like(y, 0.01) if noise else None)
            run = lambda: batch_cross_validation(SingleTaskGP, gpytorch.mlls.ExactMarginalLogLikelihood, folds,
                                                 fit_args={"optimizer_kwargs": {"options": {"maxiter": 5}}})
            want = run().posterior.mean
            for way, settings in ways.items():
                if way == "fused" and noise:
                    continue  # known noises of a batch are the dense way's
                with self.subTest(axes=axes, outputs=outputs, noise=noise, way=way, about=ABOUT):
                    fast_mll.stats.clear()
                    with fast_mll(**settings):
                        got = run().posterior.mean
                    self.assertEqual(list(fast_mll.stats), [way])
                    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)  # five steps of L-BFGS-B

    def test_outputs_are_a_batch_in_one_call(self):
        mll = problem(3)
        fast_mll.stats.clear()
        want = value(mll)
        with fast_mll():
            got = value(mll)
        self.assertLess(abs(got - want), 1e-9 * abs(want))
        self.assertEqual(dict(fast_mll.stats), {"fused": 1})


if __name__ == "__main__":
    unittest.main()
