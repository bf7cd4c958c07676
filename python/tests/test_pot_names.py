"""fourge.pot against definitions: transport over all permutations, energies by four loops, gradients by differences."""

import itertools
import unittest
import warnings
from unittest import mock

import numpy as np

from fourge import _descent, errors, pot


def problem(n=7, m=6, seed=0, symmetric=True):
    """Positive matrices, a linear cost, and weights."""
    rng = np.random.default_rng(seed)
    c, d = rng.uniform(0.2, 1, (n, n)), rng.uniform(0.2, 1, (m, m))
    if symmetric:
        c, d = c + c.T, d + d.T
    return c, d, rng.uniform(size=(n, m)), rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))


LOSSES = {"square_loss": lambda a, b: (a - b) ** 2, "kl_loss": lambda a, b: a * np.log(a / b) - a + b}


def energy(c, d, t, loss):
    """sum L(C_ik, D_jl) T_ij T_kl, all of it."""
    return np.einsum("ikjl,ij,kl->", LOSSES[loss](c[:, :, None, None], d[None, None]), t, t)


def gradient(c, d, t, loss):
    whole = LOSSES[loss](c[:, :, None, None], d[None, None])
    return np.einsum("ikjl,kl->ij", whole, t) + np.einsum("kilj,kl->ij", whole, t)


class Transport(unittest.TestCase):
    def test_assignment(self):
        cost = np.random.default_rng(0).normal(size=(6, 6))
        plan, log = pot.emd([], [], cost, log=True)
        best = min(sum(cost[i, j] for i, j in enumerate(p)) for p in itertools.permutations(range(6))) / 6
        self.assertAlmostEqual(log["cost"], best, places=14)
        self.assertAlmostEqual(np.sum(plan * cost), best, places=14)

    def test_duals_prove_it(self):
        """Feasible duals of the plan's own cost: both are optimal; weights of 0 and of another mass than 1 too."""
        for n, m, seed in ((1, 4, 0), (9, 1, 1), (12, 17, 2), (20, 20, 3)):
            rng = np.random.default_rng(seed)
            a, b, cost = rng.uniform(size=n), rng.uniform(size=m), rng.normal(size=(n, m))
            a[1::4] = b[1::5] = 0
            b *= 3 / b.sum()
            a *= 3 / a.sum()
            plan, log = pot.emd(a, b, cost, log=True)
            np.testing.assert_allclose(plan.sum(1), a, atol=1e-14)
            np.testing.assert_allclose(plan.sum(0), b, atol=1e-14)
            self.assertLessEqual(np.count_nonzero(plan), n + m - 1)
            self.assertLess((np.add.outer(log["u"], log["v"]) - cost).max(), 1e-13)
            self.assertAlmostEqual(log["u"] @ a + log["v"] @ b, np.sum(plan * cost), places=12)

    def test_what_is_refused(self):
        cost = np.ones((3, 2))
        with self.assertRaisesRegex(errors.BadData, "sum"):
            pot.emd([1.0, 1, 1], [1.0, 1], cost)
        for bad in (np.nan, np.inf):
            with self.assertRaises(errors.BadData) as caught:
                pot.emd([], [], np.array([[bad, 1.0]]))
            self.assertEqual(caught.exception.where, "cost, row 1, column 1")
        for call in (lambda: pot.sinkhorn([], [], cost, 1, method="foo"), lambda: pot.sinkhorn2([], [], cost, 1, method="greenkhorn"),
                     lambda: pot.gromov_wasserstein(np.eye(2), np.eye(2), loss_fun="l1"),
                     lambda: pot.entropic_gromov_wasserstein(np.eye(2), np.eye(2), solver="SGD"),
                     lambda: pot.partial_wasserstein([], [], cost, m=2), lambda: pot.partial_wasserstein([], [], cost, m=-1),
                     lambda: pot.gromov_wasserstein(np.eye(2), np.eye(2), G0=np.eye(2)),
                     lambda: pot.gromov_wasserstein(np.ones((2, 3)), np.eye(2)),
                     lambda: pot.sinkhorn_unbalanced([], [], cost, 1, 1, reg_type="l2")):
            with self.assertRaises(ValueError):
                call()
        with self.assertRaises(TypeError):
            pot.gromov_wasserstein(np.eye(2), np.eye(2), epsilonn=1)

    def test_several_histograms(self):
        rng = np.random.default_rng(1)
        cost, b = rng.uniform(size=(5, 4)), rng.dirichlet(np.ones(4), 3).T
        each = [np.sum(cost * pot.sinkhorn([], b[:, k], cost, 0.1)) for k in range(3)]
        np.testing.assert_allclose(pot.sinkhorn([], b, cost, 0.1), each, rtol=1e-12)
        np.testing.assert_allclose(pot.sinkhorn2([], b, cost, 0.1), each, rtol=1e-12)
        self.assertAlmostEqual(pot.sinkhorn2([], b[:, 0], cost, 0.1), each[0], places=12)
        costs, log = pot.sinkhorn([], b, cost, 0.1, log=True)
        self.assertEqual((log["u"].shape, log["v"].shape), ((5, 3), (4, 3)))

    def test_without_entropy(self):
        cost = np.random.default_rng(1).uniform(size=(5, 5))
        with self.assertWarnsRegex(UserWarning, "reg is 0"):
            np.testing.assert_array_equal(pot.sinkhorn([], [], cost, 0), pot.emd([], [], cost))

    def test_partial(self):
        """m of the mass: of two points a side by hand; the entropic one has the conditions of its optimum."""
        cost = np.array([[0.0, 1.0], [2.0, 5.0]])
        plan = pot.partial_wasserstein([0.5, 0.5], [0.5, 0.5], cost, m=0.75)
        np.testing.assert_allclose(plan, [[0.25, 0.25], [0.25, 0]], atol=1e-15)
        self.assertAlmostEqual(pot.partial_wasserstein2([0.5, 0.5], [0.5, 0.5], cost, m=0.75), 0.75)
        _, _, cost, a, b = problem(6, 5)
        plan = pot.entropic_partial_wasserstein(a, b, cost, 0.1, m=0.6)
        self.assertAlmostEqual(plan.sum(), 0.6, places=12)
        self.assertTrue((plan.sum(1) <= a).all() and (plan.sum(0) <= b).all())
        scaled = np.log(plan) + cost / 0.1  # s + u_i + v_j, u and v zero where a row or column is not full
        u, v = scaled - scaled.mean(1, keepdims=True), scaled - scaled.mean(0)
        np.testing.assert_allclose(u, np.broadcast_to(u[0], u.shape), atol=1e-9)
        np.testing.assert_allclose(v, np.broadcast_to(v[:, :1], v.shape), atol=1e-9)
        rows, columns = scaled.mean(1), scaled.mean(0)
        for sums, most, level in ((plan.sum(1), a, rows), (plan.sum(0), b, columns)):
            free = sums < most * (1 - 1e-6)
            self.assertTrue(free.any())
            np.testing.assert_allclose(level[free], level.max(), atol=1e-9)
        np.testing.assert_allclose(pot.entropic_partial_wasserstein(a, b, cost, 0.1), pot.sinkhorn(a, b, cost, 0.1), atol=1e-8)

    def test_unbalanced(self):
        """P = c exp((f + g - M) / reg) with sums a exp(-f / reg_m1), b exp(-g / reg_m2)."""
        _, _, cost, a, b = problem(6, 5)
        c = np.random.default_rng(3).uniform(0.5, 1, cost.shape)
        for kind, given, reference in (("kl", None, np.outer(a, b)), ("entropy", None, np.ones_like(cost)), ("kl", c, c)):
            plan, log = pot.sinkhorn_unbalanced(a, b, cost, 0.2, (1.0, 3.0), reg_type=kind, c=given, stopThr=1e-12, log=True)
            np.testing.assert_allclose(plan, reference * np.exp(np.add.outer(log["logu"], log["logv"]) - cost / 0.2), rtol=1e-9)
            np.testing.assert_allclose(plan.sum(1), a * np.exp(-0.2 * log["logu"] / 1.0), rtol=1e-8)
            np.testing.assert_allclose(plan.sum(0), b * np.exp(-0.2 * log["logv"] / 3.0), rtol=1e-8)
            self.assertAlmostEqual(pot.sinkhorn_unbalanced2(a, b, cost, 0.2, (1.0, 3.0), reg_type=kind, c=given, stopThr=1e-12),
                                   np.sum(plan * cost), places=10)


class Gromov(unittest.TestCase):
    def test_stationary(self):
        """The value by four loops, and no vertex is lower on the linearised cost, which the gradient by four loops has."""
        for symmetric, loss, alpha in itertools.product((True, False), LOSSES, (1.0, 0.4)):
            c, d, m, p, q = problem(symmetric=symmetric)
            plan, log = pot.fused_gromov_wasserstein(m, c, d, p, q, loss, alpha=alpha, log=True, tol_rel=1e-13, tol_abs=1e-13)
            value = (1 - alpha) * np.sum(m * plan) + alpha * energy(c, d, plan, loss)
            self.assertAlmostEqual(log["fgw_dist"], value, places=12)
            self.assertAlmostEqual(log["loss"][-1], value, places=12)
            self.assertTrue(all(np.diff(log["loss"]) <= 1e-14))
            full = (1 - alpha) * m + alpha * gradient(c, d, plan, loss)
            # a gap g and a curvature h gain g^2 / 4h at least, h below 4: steps end where that is 1e-13, at g of 1.3e-6
            self.assertLess(np.sum(full * plan) - pot.emd2(p, q, full), 1.3e-5)
            np.testing.assert_allclose(plan.sum(1), p, atol=1e-14)

    def test_copies(self):
        """A vertex: of a permuted copy the permutation, from the product."""
        rng = np.random.default_rng(5)
        x, turn = rng.normal(size=(20, 3)), rng.permutation(20)
        c = np.linalg.norm(x[:, None] - x, axis=-1)
        plan, log = pot.gromov_wasserstein(c, c[np.ix_(turn, turn)], log=True)
        self.assertEqual(plan.argmax(1).tolist(), np.argsort(turn).tolist())
        self.assertEqual(np.count_nonzero(plan), 20)
        self.assertAlmostEqual(log["gw_dist"], 0, places=12)
        self.assertTrue({"u", "v", "loss", "gw_dist"} <= log.keys())

    def test_unreachable_tolerance(self):
        """E is concave for distances of points: every step falls to another vertex, so that there is a last one, whatever is asked for,
        on rings of equal distances too, whose turns have one value; else the steps asked for are the most."""
        rng = np.random.default_rng(11)
        circle = np.exp(2j * np.pi * np.arange(12) / 12)
        rings = np.abs(circle[:, None] - circle)
        pairs = [(rings, rings[::-1, ::-1] * (1 + 1e-15))]
        for n in (5, 9, 20):
            x, y = rng.normal(size=(n, 2)), rng.normal(size=(n + 1, 2))
            pairs.append(tuple(np.linalg.norm(z[:, None] - z, axis=-1) for z in (x, y)))
        for c, d in pairs:
            for armijo in (False, True):
                _, log = pot.gromov_wasserstein(c, d, armijo=armijo, log=True, max_iter=1e6, tol_rel=1e-300, tol_abs=1e-300)
                self.assertLess(len(log["loss"]), 2000)
        _, log = pot.gromov_wasserstein(*(z + z.T for z in rng.random((2, 8, 8))), log=True, max_iter=300, tol_rel=1e-300, tol_abs=1e-300)
        self.assertLessEqual(len(log["loss"]), 301)

    def test_inside_faces(self):
        """Matrices of random numbers, symmetric or not, whose optima lie inside faces: no tolerance, and the end is a stationary plan by
        its own gradient, to the rounding of its terms: entries of 1, sums of some tens of them."""
        for seed in range(10):
            c, d, m, p, q = problem(5 + 3 * seed, 9 + seed, seed, seed % 2 == 0)
            alpha = 1.0 if seed < 6 else 0.6
            plan, log = pot.fused_gromov_wasserstein(m, c, d, p, q, alpha=alpha, log=True, tol_rel=1e-300, tol_abs=1e-300)
            full = (1 - alpha) * m + alpha * gradient(c, d, plan, "square_loss")
            self.assertLess(np.sum(full * plan) - pot.emd2(p, q, full), 1e-13)
            self.assertIn(log["reason"], ("stationary", "rounding"))
            self.assertLess(abs(log["gap"]), 1e-13)
            self.assertLess(len(log["loss"]), 100)
            self.assertLess(np.diff(log["loss"]).max(), 100 * 2.0**-52)  # less than 100 sums of values below 1
            np.testing.assert_allclose(plan.sum(1), p, atol=1e-14)
            np.testing.assert_allclose(plan.sum(0), q, atol=1e-14)
            self.assertGreaterEqual(plan.min(), 0)

    def test_large_faces(self):
        """C and -D definite: J is convex, and its optimum inside a face of (n - 1)(m - 1) dimensions, where no vertex comes back.  At most
        n + m are kept, J falls in every step, and below the 76.382517276331 of 300 plain steps (POT 0.9.7's too; 6000 of ours
        end at 76.3267765).  It is above its least by no more than the gap."""
        rng = np.random.default_rng(0)
        c, d = (x @ x.T for x in (rng.normal(size=(n, n)) for n in (25, 17)))
        kept = []

        class Counted(_descent._Mixture):
            def move(self, *step):
                due = super().move(*step)
                kept.append(self.count)
                return due

        with mock.patch.object(_descent, "_Mixture", Counted), self.assertWarns(errors.NotConverged):
            plan, log = pot.gromov_wasserstein(c, -d, log=True, max_iter=300)
        self.assertEqual(max(kept), 25 + 17)
        self.assertLess(np.diff(log["loss"]).max(), 1e-12)
        self.assertLess(log["gw_dist"], 76.382517276331 - 0.03)
        self.assertLess(log["gw_dist"] - 76.3267765, log["gap"])
        self.assertAlmostEqual(log["gw_dist"], energy(c, -d, plan, "square_loss"), places=11)
        np.testing.assert_allclose(plan.sum(0), 1 / 17, atol=1e-14)
        np.testing.assert_allclose(plan.sum(1), 1 / 25, atol=1e-14)

    def test_reasons(self):
        c, d, m, p, q = problem(9, 9)
        with self.assertWarnsRegex(errors.NotConverged, "2 steps were taken"):
            _, log = pot.gromov_wasserstein(c, d, p, q, log=True, max_iter=2)
        self.assertEqual(log["reason"], "max_iter")
        _, log = pot.gromov_wasserstein(c, d, p, q, log=True, tol_rel=0.1)
        self.assertEqual(log["reason"], "tolerance")
        with self.assertWarns(errors.NotConverged):
            pot.partial_gromov_wasserstein(c, d, p, q, m=0.7, numItermax=2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pot.partial_gromov_wasserstein(c, d, p, q, m=0.7, numItermax=2, warn=False)

    def test_steps(self):
        c, d, m, p, q = problem()
        for armijo in (False, True):
            short = pot.gromov_wasserstein(c, d, p, q, armijo=armijo, alpha_max=0.25, max_iter=1)
            start = np.outer(p, q)
            vertex = pot.emd(p, q, gradient(c, d, start, "square_loss"))
            np.testing.assert_allclose(short, start + 0.25 * (vertex - start), atol=1e-14)

    def test_other_marginals(self):
        c, d, m, p, q = problem()
        plan, log = pot.semirelaxed_fused_gromov_wasserstein(m, c, d, p, alpha=0.6, log=True)
        np.testing.assert_allclose(plan.sum(1), p, atol=1e-14)
        full = 0.4 * m + 0.6 * gradient(c, d, plan, "square_loss")
        self.assertLess(np.sum(full * plan) - full.min(1) @ p, 1e-6)
        self.assertAlmostEqual(log["srfgw_dist"], 0.4 * np.sum(m * plan) + 0.6 * energy(c, d, plan, "square_loss"), places=12)
        plan, log = pot.partial_fused_gromov_wasserstein(m, c, d, p, q, m=0.7, alpha=0.6, log=True)
        self.assertAlmostEqual(plan.sum(), 0.7, places=12)
        self.assertTrue((plan.sum(1) <= p + 1e-14).all() and (plan.sum(0) <= q + 1e-14).all())
        full = 0.4 * m + 0.6 * gradient(c, d, plan, "square_loss")
        self.assertLess(np.sum(full * plan) - pot.partial_wasserstein2(p, q, full, m=0.7), 1e-6)

    def test_with_entropy(self):
        """The fixed point of PGD: T = exp((f + g - gradient) / epsilon); PPA's limit has no blur: stationary without entropy."""
        for symmetric, loss in itertools.product((True, False), LOSSES):
            c, d, m, p, q = problem(symmetric=symmetric)
            plan = pot.entropic_fused_gromov_wasserstein(m, c, d, p, q, loss, epsilon=0.5, alpha=0.7)
            rest = np.log(plan) + (0.3 * m + 0.7 * gradient(c, d, plan, loss)) / 0.5
            rest = rest - rest.mean(1, keepdims=True)
            np.testing.assert_allclose(rest, np.broadcast_to(rest.mean(0), rest.shape), atol=1e-6)
            plan, log = pot.entropic_gromov_wasserstein(c, d, p, q, loss, epsilon=0.5, solver="PPA", log=True, max_iter=3000)
            full = gradient(c, d, plan, loss)
            self.assertLess(np.sum(full * plan) - pot.emd2(p, q, full), 1e-4)
            self.assertAlmostEqual(log["gw_dist"], energy(c, d, plan, loss), places=12)
        plan = pot.entropic_semirelaxed_gromov_wasserstein(c, d, p, epsilon=0.5)
        np.testing.assert_allclose(plan.sum(1), p, atol=1e-14)

    def test_barycenters(self):
        """Of one space, from it: itself; kl_loss means logarithms."""
        c, *_ = problem(symmetric=True)
        for loss in LOSSES:
            got, log = pot.gromov_barycenters(7, [c], init_C=c, loss_fun=loss, log=True, max_iter=20)
            order = log["T"][0].argmax(1)
            np.testing.assert_allclose(got, c[np.ix_(order, order)], rtol=1e-12)
        two = [pot.gromov_barycenters(4, [c, 2 * c], max_iter=5) for _ in range(2)]
        np.testing.assert_array_equal(*two)

    def test_integers(self):
        c = np.arange(16).reshape(4, 4) % 5
        with self.assertWarnsRegex(UserWarning, "integers"):
            plan = pot.gromov_wasserstein(c + c.T, c + c.T)
        self.assertAlmostEqual(plan.sum(), 1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pot.gromov_wasserstein((c + c.T).astype(np.float32), (c + c.T).astype(np.float32))


if __name__ == "__main__":
    unittest.main()
