"""fourge.gw beside POT, and with torch tensors."""

import unittest
import warnings

import numpy as np
import ot
import torch

from fourge import errors, gw, pot


def problem(n=30, m=36, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, 2)), rng.normal(size=(m, 3))
    c, d = (np.linalg.norm(v[:, None] - v, axis=-1) for v in (x, y))
    p, q = rng.uniform(0.5, 1, n), rng.uniform(0.5, 1, m)
    return c, d, p / p.sum(), q / q.sum()


class Pot(unittest.TestCase):
    def test_entropic(self):
        """The same fixed point from the same start; both stop where the plan changes by less than 1e-7 of itself."""
        c, d, p, q = problem()
        for epsilon in (0.5, 1.0):
            want, log = ot.gromov.entropic_gromov_wasserstein(c, d, p, q, epsilon=epsilon, log=True)
            plan, ours = gw.entropic_gromov_wasserstein(c, d, p, q, epsilon=epsilon, log=True)
            np.testing.assert_allclose(plan, want, atol=1e-6)
            np.testing.assert_allclose(ours["gw_dist"], log["gw_dist"], rtol=1e-5)

    def test_entropic_masses(self):
        """Weights of another common sum than 1."""
        c, d, p, q = problem(12, 14)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solver failed")  # POT's, wherever the sum is not 1
            for size in (0.5, 3.0):
                want, log = ot.gromov.entropic_gromov_wasserstein(c, d, size * p, size * q, epsilon=2 * size, log=True)
                plan, ours = pot.entropic_gromov_wasserstein(c, d, size * p, size * q, epsilon=2 * size, log=True)
                np.testing.assert_allclose(plan, want, atol=1e-6 * size)
                np.testing.assert_allclose(ours["gw_dist"], log["gw_dist"], rtol=1e-5)

    def test_ties(self):
        """Small graphs, whose gradients have equal entries: POT divides a row among them and stays at saddles, so that ours is lower in
        three of four that differ, and in all."""
        lower = higher = total = 0
        for seed in range(100):
            rng = np.random.default_rng(seed)
            n, m = rng.integers(3, 7, 2)
            c, d = (np.triu(rng.random((k, k)) < rng.uniform(0.3, 0.8), 1).astype(float) for k in (n, m))
            c, d = c + c.T, d + d.T + seed % 2 * np.eye(m)
            _, theirs = ot.gromov.semirelaxed_gromov_wasserstein(c, d, log=True, max_iter=300)
            plan, ours = pot.semirelaxed_gromov_wasserstein(c, d, log=True)
            np.testing.assert_allclose(plan.sum(1), 1 / n, rtol=1e-13)
            difference = ours["srgw_dist"] - theirs["srgw_dist"]
            lower, higher, total = lower + (difference < -1e-9), higher + (difference > 1e-9), total + difference
        self.assertGreater(lower, 3 * higher)
        self.assertLess(total, 0)

    def test_without_entropy(self):
        """POT's plans from its start: the same steps, whose linear problems have one vertex here (real numbers)."""
        for seed in range(3):
            c, d, p, q = problem(seed=seed)
            linear = np.random.default_rng(seed).uniform(size=(30, 36))
            turned = np.random.default_rng(seed).permutation(30)
            skew = c + 0.3 * np.random.default_rng(9).uniform(size=c.shape)
            for name, arguments, options in (
                    ("gromov_wasserstein", (c, d, p, q), {}), ("gromov_wasserstein", (c, d, p, q), {"armijo": True}),
                    ("gromov_wasserstein", (skew, d, p, q), {}), ("gromov_wasserstein", (c + 0.1, d + 0.1, p, q, "kl_loss"), {}),
                    ("gromov_wasserstein", (c, c[np.ix_(turned, turned)]), {}), ("gromov_wasserstein", (c, d, p, q), {"alpha_max": 0.5}),
                    ("fused_gromov_wasserstein", (linear, c, d, p, q), {"alpha": 0.3}),
                    ("semirelaxed_gromov_wasserstein", (c, d, p), {}), ("partial_gromov_wasserstein", (c, d, p, q, 0.7), {})):
                want, theirs = getattr(ot.gromov, name)(*arguments, log=True, **options)
                plan, ours = getattr(pot, name)(*arguments, log=True, **options)
                np.testing.assert_allclose(plan, want, atol=1e-9, err_msg=name)
                np.testing.assert_allclose(ours["loss"], theirs["loss"], rtol=1e-9, atol=1e-12)
                self.assertLessEqual(theirs.keys() - {"warning", "result_code", "cost"}, ours.keys())

    def test_inside_faces(self):
        """Matrices whose optima lie inside faces, where POT takes up to thousands of steps: never more than it, a tenth in all, and no
        higher value.  Weights are random, as uniform ones of n != m let two vertices have one cost, and POT takes the other."""
        steps = np.zeros(2)
        for seed in range(30):
            rng = np.random.default_rng(seed)
            n, m = rng.integers(5, 25, 2)
            c, d = (x + x.T if seed % 3 else x for x in (rng.random((k, k)) for k in (n, m)))
            p, q = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
            _, theirs = ot.gromov.gromov_wasserstein(c, d, p, q, log=True)
            _, ours = pot.gromov_wasserstein(c, d, p, q, log=True)
            self.assertLessEqual(len(ours["loss"]), len(theirs["loss"]))
            self.assertLess(ours["gw_dist"], theirs["gw_dist"] * (1 + 1e-12))
            steps += len(ours["loss"]), len(theirs["loss"])
        self.assertLess(10 * steps[0], steps[1])

    def test_values_at_a_plan(self):
        """Values and gradients of POT's, which are those at the plan held fixed."""
        c, d, p, q = problem()
        linear = np.random.default_rng(2).uniform(size=(30, 36))
        for name, given in (("gromov_wasserstein2", (c, d, p, q)), ("fused_gromov_wasserstein2", (linear, c, d, p, q)),
                            ("semirelaxed_fused_gromov_wasserstein2", (linear, c, d, p)),
                            ("partial_fused_gromov_wasserstein2", (linear, c, d, p, q))):
            for loss in ("square_loss", "kl_loss"):
                found = []
                for module in (ot.gromov, pot):
                    inputs = [torch.from_numpy(v + 0.1 * (v.ndim == 2)).requires_grad_() for v in given]
                    more = {"alpha": torch.tensor(0.4, dtype=torch.float64, requires_grad=True)} if "fused" in name else {}
                    value = getattr(module, name)(*inputs, loss_fun=loss, **more)
                    value.backward()
                    found.append([value.detach(), *(t.grad for t in [*inputs, *more.values()])])
                for ours, theirs in zip(*found[::-1]):
                    if theirs is not None:  # POT has none of p and q in the last two
                        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8, err_msg=f"{name} {loss}")

    def test_proximal(self):
        c, d, p, q = problem()
        linear = np.random.default_rng(2).uniform(size=(30, 36))
        for options in ({"epsilon": 2.0, "solver": "PPA", "max_iter": 50}, {"epsilon": 1.0, "loss_fun": "kl_loss"}):
            want = ot.gromov.entropic_gromov_wasserstein(c + 0.1, d + 0.1, p, q, **options)
            np.testing.assert_allclose(pot.entropic_gromov_wasserstein(c + 0.1, d + 0.1, p, q, **options), want, atol=1e-6)
            want = ot.gromov.entropic_fused_gromov_wasserstein(linear, c + 0.1, d + 0.1, p, q, alpha=0.4, **options)
            np.testing.assert_allclose(pot.entropic_fused_gromov_wasserstein(linear, c + 0.1, d + 0.1, p, q, alpha=0.4, **options), want, atol=1e-6)

    def test_partial(self):
        _, _, p, q = problem()
        cost = np.random.default_rng(1).uniform(size=(30, 36))
        np.testing.assert_allclose(pot.partial_wasserstein(p, q, cost, 0.6), ot.partial.partial_wasserstein(p, q, cost, 0.6), atol=1e-12)
        want = ot.partial.entropic_partial_wasserstein(p, q, cost, 0.1, 0.6, numItermax=20000)
        np.testing.assert_allclose(pot.entropic_partial_wasserstein(p, q, cost, 0.1, 0.6, numItermax=20000), want, atol=1e-9)

    def test_sinkhorn(self):
        cost = np.random.default_rng(1).uniform(size=(30, 36))
        _, _, p, q = problem()
        for reg in (0.1, 0.02):
            want = ot.sinkhorn(p, q, cost, reg, method="sinkhorn_log", stopThr=1e-13, numItermax=20000)
            np.testing.assert_allclose(gw.sinkhorn(p, q, cost, reg, numItermax=20000), want, atol=1e-9)

    def test_unbalanced(self):
        """KL penalties of both marginals relative to the product: POT's unbalanced Sinkhorn with the same reference."""
        cost = np.random.default_rng(1).uniform(size=(10, 12))
        p, q = np.full(10, 0.1), np.full(12, 1 / 12)
        want = ot.unbalanced.sinkhorn_unbalanced(p, q, cost, 0.1, 0.5, stopThr=1e-14, numItermax=20000, reg_type="kl")
        found = gw.transport(cost, p, q, epsilon=0.1, rho_source=0.5, rho_target=0.5, reference="product", tol=0,
                             max_iter=3000, cost_store="f64", round=False)
        np.testing.assert_allclose(found.plan(), want, atol=1e-7)

    def test_gradients(self):
        """The envelope's 2 C p p' - 2 P D P', as POT's gromov_wasserstein2 has it, at POT's plan."""
        arrays = problem()
        c, d, p, q = (torch.from_numpy(v) for v in arrays)
        plan = ot.gromov.entropic_gromov_wasserstein(*arrays, epsilon=1.0)
        c.requires_grad_(), d.requires_grad_()
        (2 * gw.entropic_gromov_wasserstein2(c, d, p, q, epsilon=1.0)).backward()
        both = (arrays[0], arrays[1], arrays[2], plan, c.grad), (arrays[1], arrays[0], arrays[3], plan.T, d.grad)
        for mine, other, weights, t, got in both:
            want = 2 * (2 * mine * np.outer(weights, weights) - 2 * t @ other @ t.T)
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-7)
        # Of p and q against differences of the energy with its entropy, along changes that keep the sums, 1 or 2.  Plans are good to
        # 1e-7 and h is 1e-4 of an entry of 0.02 or more: 1e-3 of the largest derivative.
        for size in (1.0, 2.0):
            weights = [torch.from_numpy(size * v).requires_grad_() for v in arrays[2:]]
            gw.entropic_gromov_wasserstein2(c.detach(), d.detach(), *weights, epsilon=1.0).backward()
            for k, w in enumerate(weights):
                got, scale = w.grad.numpy(), float(w.grad.abs().max())
                self.assertLess(abs(got @ w.detach().numpy()), 1e-6 * scale * size)  # marginals hold to 2e-8
                for i, j in ((0, 5), (3, 20)):
                    values = []
                    for sign in (1, -1):
                        moved = [v.detach().numpy().copy() for v in weights]
                        moved[k][[i, j]] += sign * 1e-4 * size * np.array([1, -1])
                        value, log = gw.entropic_gromov_wasserstein2(arrays[0], arrays[1], *moved, epsilon=1.0, log=True)
                        t = log["T"]
                        values.append(value + (t * (np.log(t) - 1)).sum())
                    self.assertAlmostEqual(got[i] - got[j], (values[0] - values[1]) / (2e-4 * size), delta=1e-3 * scale)

    def test_gradients_of_the_objective(self):
        """The envelope's, against differences: values are good to 1e-13, so that h = 1e-5 leaves 1e-8 and h^2."""
        rng = np.random.default_rng(2)
        cost, a = torch.from_numpy(rng.uniform(size=(7, 5))).requires_grad_(), torch.from_numpy(rng.uniform(0.5, 1, 7)).requires_grad_()
        settings = {"epsilon": 0.2, "tol": 1e-13, "max_iter": 100000, "cost_store": "f64"}

        def value(cost, a):  # of sums that are not 1, which are divided out and warned of
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return gw.transport(cost, a, **settings).objective

        out = value(cost, a)
        self.assertEqual((out.shape, out.dtype), ((), torch.float64))
        (3 * out).backward()
        h, plain = 1e-5, (cost.detach().numpy(), a.detach().numpy())
        for which, at, got in ((0, (2, 3), cost.grad), (0, (6, 0), cost.grad), (1, 4, a.grad)):
            sides = []
            for sign in (1, -1):
                moved = [v.copy() for v in plain]
                moved[which][at] += sign * h
                sides.append(value(*moved))
            self.assertAlmostEqual(float(got[at]), 3 * (sides[0] - sides[1]) / (2 * h), delta=1e-6)
        self.assertIsInstance(value(*plain), float)
        single = cost.detach().float().requires_grad_()
        value(single, None).backward()
        self.assertEqual(single.grad.dtype, torch.float32)
        self.assertAlmostEqual(float(single.grad.sum()), 1, delta=1e-6)
        with self.assertRaisesRegex(errors.Unsupported, "first derivative"):
            torch.autograd.grad(value(cost, a), cost, create_graph=True)

    def test_gradients_through_a_plan(self):
        """By differences of the last step, which starts at the plan that was found: what is differentiated."""
        c, d, p, q = problem(9, 8)
        linear = np.random.default_rng(1).uniform(size=(9, 8))
        g = torch.randn(9, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        fixed = {"mode": "exact", "anneal": "none", "alpha": 1.0, "max_inner": 3000, "marginal_tol": 2e-8, "polish": False,
                 "round": False, "multiscale": "off", "lambda_ema_beta": 0.0, "min_iter_before_converge": 0, "epsilon": 0.05, "fgw_alpha": 0.3}
        start = gw.sampled_gw(None, None, p, q, dist_source=c, dist_target=d, C_linear=linear, tol=1e-7, max_iter=200, **fixed)
        inputs = [torch.from_numpy(v).requires_grad_() for v in (c, d, linear, p, q)]

        def loss(c, d, linear, p, q, **more):
            plan = gw.sampled_gw(None, None, p, q, dist_source=c, dist_target=d, C_linear=linear, T_init=start, max_iter=1,
                                 **fixed, **more)
            return (g * torch.as_tensor(plan)).sum()

        loss(*inputs, differentiable=True).backward()
        h = 1e-3  # marginals are good to 2e-8, costs to 6e-8: 1e-4 of noise, and h^2
        largest = [np.unravel_index(v.argmax(), v.shape) for v in (c, d)]
        for which, places in ((0, ((1, 4), (7, 2))), (1, ((0, 5), (2, 6))), (2, ((2, 2), (8, 1)))):
            for i, j in places:
                self.assertNotIn((i, j), largest + [x[::-1] for x in largest])  # the scale would move
                step = np.zeros_like((c, d, linear)[which])
                step[i, j] = h
                if which < 2:
                    step[j, i] = h
                values = [[v.detach().numpy() + (sign * step if k == which else 0) for k, v in enumerate(inputs)] for sign in (1, -1)]
                wanted = float(loss(*values[0]) - loss(*values[1])) / (2 * h)
                got = inputs[which].grad
                got = float(got[i, j] + got[j, i]) if which < 2 else float(got[i, j])
                self.assertAlmostEqual(got, wanted, delta=2e-3 * max(1, abs(wanted)))
        for which in (3, 4):  # weights are normalised: one that moves alone
            step = np.zeros(len(inputs[which]))
            step[2] = h
            values = [[v.detach().numpy() + (sign * step if k == which else 0) for k, v in enumerate(inputs)] for sign in (1, -1)]
            wanted = float(loss(*values[0]) - loss(*values[1])) / (2 * h)
            self.assertAlmostEqual(float(inputs[which].grad[2]), wanted, delta=1e-2 * max(1, abs(wanted)))

    def test_what_carries_gradients(self):
        x, y = torch.randn(20, 2, requires_grad=True), torch.randn(22, 3)
        plan = gw.sampled_gw(x, y, distance_mode="euclidean", differentiable=True, epsilon=0.05, max_iter=30)
        (plan * torch.randn(20, 22)).sum().backward()
        self.assertTrue(torch.isfinite(x.grad).all() and x.grad.abs().max() > 0)
        self.assertEqual(plan.dtype, torch.float32)
        frozen = gw.sampled_gw(x.detach(), y, k=6, C_linear=torch.rand(20, 22, requires_grad=True), fgw_alpha=0.5, grad_mode="frozen",
                               differentiable=True, semi_relaxed=True, rho=0.5, max_iter=5)
        frozen.sum().backward()
        with self.assertWarnsRegex(UserWarning, "gradient is zero"):
            gw.sampled_gw(x.detach(), y, k=6, differentiable=True, max_iter=3)
        for bad in ({"distance_mode": "dijkstra"}, {"preset": "torchgw", "distance_mode": "euclidean"}, 
                    {"semi_relaxed": True, "rho": 1.0, "distance_mode": "euclidean"}):
            with self.assertRaises(errors.Unsupported):
                gw.sampled_gw(x, y, k=6, differentiable=True, max_iter=3, **bad)
        with self.assertRaises(errors.Unsupported):
            gw.sampled_lowrank_gw(x, y, k=6, rank=3, differentiable=True)
        loss = gw.sampled_gw(x, y, distance_mode="euclidean", differentiable=True, epsilon=0.05, max_iter=5).square().sum()
        with self.assertRaises(errors.Unsupported):
            torch.autograd.grad(loss, x, create_graph=True)

    def test_unrolled(self):
        """Relaxed marginals: the derivative in a linear cost against differences of the whole run."""
        rng = np.random.default_rng(4)
        c, d, p, q = problem(9, 8)
        cost, weight = torch.from_numpy(rng.uniform(size=(9, 8))).requires_grad_(), torch.from_numpy(rng.normal(size=(9, 8)))

        def loss(m):
            plan = gw.sampled_gw(None, None, p, q, dist_source=c, dist_target=d, C_linear=m, fgw_alpha=1.0, differentiable=True,
                                 grad_mode="unrolled", semi_relaxed=True, rho=0.7, epsilon=0.1, anneal="none", alpha=1.0,
                                 max_iter=3, max_inner=400, marginal_tol=1e-10, round=False, polish=False, multiscale="off", cost_store="f32")
            return (plan * weight).sum()

        loss(cost).backward()
        h = 1e-2
        for i, j in ((0, 0), (4, 7), (8, 3)):
            with torch.no_grad():
                step = torch.zeros_like(cost)
                step[i, j] = h
            wanted = float(loss((cost + step).detach()) - loss((cost - step).detach())) / (2 * h)
            self.assertAlmostEqual(float(cost.grad[i, j]), wanted, delta=2e-3 * max(abs(wanted), float(cost.grad.abs().max())))

    def test_barycenters(self):
        """Of the same start and entropy, to what POT's rounds leave."""
        c, d, p, q = problem(12, 14)
        start = c[:10, :10].copy()
        want = ot.gromov.entropic_gromov_barycenters(10, [c, d], [p, q], ot.unif(10), [0.4, 0.6], epsilon=2.0, init_C=start,
                                                     max_iter=200, tol=1e-9)
        got = gw.entropic_gromov_barycenters(10, [c, d], [p, q], None, [0.4, 0.6], epsilon=2.0, init_C=start, max_iter=200, tol=1e-9)
        np.testing.assert_allclose(got, want, atol=1e-4 * want.max())

    def test_gradients_of_sinkhorn(self):
        """POT's, which go through its passes, where these have settled; those of weights along changes that keep both sums
        equal, and of both at once: sums of 3, too."""
        rng = np.random.default_rng(0)
        arrays = 3 * rng.dirichlet(np.ones(6)), 3 * rng.dirichlet(np.ones(8)), rng.random((6, 8))
        loss = torch.from_numpy(rng.normal(size=(6, 8)))
        grads = []
        for sinkhorn, exact in ((ot.sinkhorn, {"stopThr": 1e-13, "numItermax": 10000}), (gw.sinkhorn, {"stopThr": 1e-11})):
            a, b, m = (torch.from_numpy(v.copy()).requires_grad_() for v in arrays)
            plan = sinkhorn(a, b, m, 0.1, **exact)
            self.assertTrue(plan.requires_grad)
            (plan * loss).sum().backward()
            both = a.grad @ a.detach() + b.grad @ b.detach()
            grads.append([m.grad, a.grad - a.grad.mean(), b.grad - b.grad.mean(), both])
        for ours, theirs in zip(*grads[::-1]):
            np.testing.assert_allclose(ours, theirs, atol=1e-7 * max(1, float(theirs.abs().max())))
        with torch.no_grad():
            self.assertFalse(gw.sinkhorn(a, b, m, 0.1).requires_grad)

    def test_plans_without_gradients_are_refused(self):
        c = torch.rand(6, 6, dtype=torch.float64)
        c = (c + c.T).fill_diagonal_(0).requires_grad_()
        with self.assertRaisesRegex(errors.Unsupported, "detach"):
            gw.entropic_gromov_wasserstein(c, c, epsilon=1.0)
        with torch.no_grad():
            gw.entropic_gromov_wasserstein(c, c, epsilon=1.0)
        self.assertTrue(gw.entropic_gromov_wasserstein2(c, c, epsilon=1.0).requires_grad)

    def test_tensors(self):
        c, d, p, q = (torch.from_numpy(v) for v in problem())
        plan = gw.entropic_gromov_wasserstein(c, d, p, q, epsilon=1.0, max_iter=5)
        self.assertIsInstance(plan, torch.Tensor)
        x, y = torch.randn(30, 2), torch.randn(36, 3)
        self.assertIsInstance(gw.sampled_gw(x, y, k=6, max_iter=5), torch.Tensor)
        self.assertIsInstance(gw.sinkhorn(p, q, torch.rand(30, 36), 0.1), torch.Tensor)


if __name__ == "__main__":
    unittest.main()
