"""fourge.pot where rows nearly vanish, entries tie and masses differ from 1, and what it refuses by name."""

import unittest
import warnings

import numpy as np

from fourge import errors, pot

C, D = np.array([[0.0, 29], [29, 0]]), np.array([[0.0, 40, 13], [40, 0, 16], [13, 16, 0]])
RING = np.abs(np.exp(2j * np.pi * np.arange(4) / 4)[:, None] - np.exp(2j * np.pi * np.arange(4) / 4))
P, Q, M = np.full(2, 1 / 2), np.full(3, 1 / 3), np.ones((2, 3))
NAN, NONE = np.full(2, np.nan), np.zeros((0, 0))
BadArgument, BadData = errors.BadArgument, errors.BadData


def zeroed(m):
    m = m.copy()
    m[0, 1] = np.nan
    return m


class Plans(unittest.TestCase):
    def test_rows_far_below_the_others(self):
        """Gradients of hundreds of epsilons: no row loses its mass, and the fixed point is that of the multiplicative steps."""
        for p in (None, [0.25, 0.75], [1.0, 0.0], [3.0, 2.0]):
            plan, log = pot.entropic_semirelaxed_gromov_wasserstein(C, D, p, max_iter=40, log=True)
            np.testing.assert_allclose(plan.sum(1), P if p is None else p, rtol=1e-14)
            fused = pot.entropic_semirelaxed_fused_gromov_wasserstein(M, C, D, p, alpha=0.9, max_iter=40)
            np.testing.assert_allclose(fused.sum(1), P if p is None else p, rtol=1e-14)
            value = pot.entropic_semirelaxed_gromov_wasserstein2(C, D, p, max_iter=40)
            square = np.einsum("ikjl,ij,kl->", (C[:, :, None, None] - D[None, None]) ** 2, plan, plan)
            self.assertAlmostEqual(value, square, delta=1e-9 * max(square, 1))
            self.assertAlmostEqual(log["srgw_dist"], value, delta=1e-9 * max(square, 1))

    def test_ties(self):
        """Of the ring and of equal matrices, whose gradients have equal entries: a plan whose rows are right, and no lower vertex."""
        for c, d in ((RING, RING), (np.ones((5, 5)), np.eye(4)), (np.eye(5), np.ones((3, 3))), (np.kron(RING, np.ones((2, 2))), RING)):
            plan, log = pot.semirelaxed_gromov_wasserstein(c, d, log=True)
            np.testing.assert_allclose(plan.sum(1), 1 / len(c), rtol=1e-13)
            self.assertAlmostEqual(pot.semirelaxed_gromov_wasserstein2(c, d), log["srgw_dist"], places=13)
            fused = pot.semirelaxed_fused_gromov_wasserstein(np.zeros((len(c), len(d))), c, d, alpha=0.5)
            np.testing.assert_allclose(fused.sum(1), 1 / len(c), rtol=1e-13)
            self.assertLess(log["gap"], 1e-7)
        for seed in range(30):
            rng = np.random.default_rng(seed)
            c, d = (np.triu(rng.random((k, k)) < 0.5, 1).astype(float) for k in rng.integers(3, 9, 2))
            _, log = pot.semirelaxed_gromov_wasserstein(c + c.T, d + d.T + seed % 2 * np.eye(len(d)), log=True)
            self.assertIn(log["reason"], ("tolerance", "stationary", "rounding"))

    def test_masses(self):
        """Plans keep what both weights hold."""
        for size in (0.5, 1.0, 3.0):
            for solver in ("PGD", "PPA"):
                plan = pot.entropic_gromov_wasserstein(C, D, size * P, size * Q, epsilon=500.0, solver=solver, max_iter=20)
                np.testing.assert_allclose(plan.sum(1), size * P, rtol=1e-6)
                np.testing.assert_allclose(plan.sum(0), size * Q, rtol=1e-6)
            fused = pot.entropic_fused_gromov_wasserstein(M, C, D, size * P, size * Q, epsilon=500.0, max_iter=20)
            np.testing.assert_allclose(fused.sum(), size, rtol=1e-6)
        # E of three times the mass is nine times as large: epsilon of three times the size has three times the plan
        one = pot.entropic_gromov_wasserstein(C, D, P, Q, epsilon=500.0)
        three = pot.entropic_gromov_wasserstein(C, D, 3 * P, 3 * Q, epsilon=1500.0)
        np.testing.assert_allclose(three, 3 * one, rtol=1e-6)

    def test_partial_sums_hold_in_floating_point(self):
        """No row has more than p and no column more than q, not by a rounding either, as POT's tests ask."""
        for seed in range(12):
            random = np.random.default_rng(seed)
            x, y = random.normal(size=(14, 2)), random.normal(size=(11, 3))
            c, d = (np.linalg.norm(z[:, None] - z, axis=2) for z in (x, y))
            p, q = (w / w.sum() for w in (random.uniform(0.5, 1.5, 14), random.uniform(0.5, 1.5, 11)))
            cost = np.linalg.norm(x[:, None] - y[:, :2], axis=2)
            for plan in (pot.partial_gromov_wasserstein(c, d, p, q, 2 / 3), pot.partial_wasserstein(p, q, cost, 2 / 3)):
                self.assertTrue((plan.sum(1) <= p).all() and (plan.sum(0) <= q).all(), seed)
                self.assertAlmostEqual(plan.sum(), 2 / 3, 13)

    def test_no_steps(self):
        """0 steps are the start, G0 where it is given, and the gap there."""
        p = np.array([0.3, 0.7])
        start = np.array([[0.1, 0.1, 0.1], [0.2, 0.2, 0.3]])
        q = start.sum(0)
        for given, wanted in ((None, np.outer(p, q)), (start, start)):
            with self.assertWarnsRegex(errors.NotConverged, "0 steps were taken"):
                plan, log = pot.gromov_wasserstein(C, D, p, q, G0=given, max_iter=0, log=True)
            np.testing.assert_allclose(plan, wanted, rtol=1e-15)
            self.assertEqual(len(log["loss"]), 1)
            self.assertGreater(log["gap"], 0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = pot.gromov_wasserstein2(C, D, p, q, G0=given, max_iter=0)
                self.assertAlmostEqual(value, log["gw_dist"], places=12)
                np.testing.assert_allclose(pot.semirelaxed_gromov_wasserstein(C, D, p, G0=given, max_iter=0).sum(1), p, rtol=1e-14)
                partial = pot.partial_gromov_wasserstein(C, D, p, q, G0=given, numItermax=0)  # 1e-15 less where a sum is above p or q
                np.testing.assert_allclose(partial, wanted, rtol=3e-15)
        _, log = pot.gromov_wasserstein(C, D, max_iter=0, log=True)  # the product of uniform weights: every plan has this gradient's value
        self.assertEqual(log["reason"], "stationary")

    def test_not_settled(self):
        """Steps and passes that end before the plan has settled say so, and name what they were asked for."""
        rng = np.random.default_rng(0)
        c, d = (np.abs(x - x.T) for x in rng.normal(size=(2, 8, 1)))
        for solve in (pot.entropic_gromov_wasserstein, pot.entropic_semirelaxed_gromov_wasserstein):
            with self.assertWarnsRegex(errors.NotConverged, "after 1 steps the plan still changes"):
                solve(c, d, epsilon=0.5, max_iter=1)
        with self.assertWarnsRegex(errors.NotConverged, "the passes did not settle: the plan carries"):
            plan = pot.entropic_partial_wasserstein(None, None, np.tile(np.arange(8.0), (8, 1)), 1e-2, 0.9)  # all to the first
        self.assertLess(plan.sum(), 0.8)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pot.entropic_gromov_wasserstein(c, d, epsilon=5.0)
            np.testing.assert_allclose(pot.entropic_partial_wasserstein(None, None, c, 0.5, 0.9).sum(), 0.9, rtol=1e-6)

    def test_derivatives_of_losses(self):
        """df1, df2 and dh2 are those of f1, f2 and h2, at small entries too."""
        for f1, f2, _, h2, df1, df2, dh2 in pot._LOSSES.values():
            for x in (1e-17, 3e-16, 1e-15, 1e-8, 0.3, 7.0):
                h = 1e-5 * x
                for f, df in ((f1, df1), (f2, df2), (h2, dh2)):
                    wanted = (f(np.float64(x + h)) - f(np.float64(x - h))) / (2 * h)
                    self.assertLess(abs(df(x) - wanted), 1e-8 * (abs(wanted) + abs(f(np.float64(x))) / h * 1e-7))


REFUSED = [
    # a plan to start from that carries another mass
    *[(BadArgument, "G0: it carries 0.25, m is 0.5; give G0", lambda f=f: f(C, D, m=0.5, G0=np.full((len(C), len(D)), 0.25 / len(C) / len(D)))) for f in (
        pot.partial_gromov_wasserstein, pot.entropic_partial_gromov_wasserstein)],
    # sums that differ
    *[(BadData, "sum of p is 2 and that of q 1", lambda f=f: f(C, D, 2 * P, Q)) for f in (
        pot.entropic_gromov_wasserstein, pot.entropic_gromov_wasserstein2, pot.gromov_wasserstein, pot.gromov_wasserstein2)],
    (BadData, "sum of p is 1 and that of q 1.001", lambda: pot.entropic_fused_gromov_wasserstein(M, C, D, P, 1.001 * Q)),
    (BadData, "sum of p is 2 and that of q 1", lambda: pot.gromov_wasserstein(C, D, 2 * P, Q, max_iter=0)),
    # weights
    *[(BadData, "p has an entry that is infinite or not a number", lambda f=f: f(C, D, NAN)) for f in (
        pot.gromov_wasserstein, pot.entropic_gromov_wasserstein, pot.semirelaxed_gromov_wasserstein,
        pot.entropic_semirelaxed_gromov_wasserstein, pot.partial_gromov_wasserstein, pot.entropic_partial_gromov_wasserstein)],
    *[(BadData, "p has an entry of -0.2, expected 0 or more", lambda f=f: f(C, D, np.array([-0.2, 1.2]))) for f in (
        pot.semirelaxed_gromov_wasserstein, pot.entropic_semirelaxed_gromov_wasserstein, pot.entropic_partial_gromov_wasserstein)],
    *[(BadData, "p sums to 0", lambda f=f: f(C, D, 0 * P, 0 * Q)) for f in (
        pot.gromov_wasserstein, pot.entropic_gromov_wasserstein, pot.entropic_partial_gromov_wasserstein)],
    (BadData, "a has an entry that is infinite", lambda: pot.entropic_partial_wasserstein(NAN, Q, M, 0.1)),
    *[(BadArgument, "C1 has no points", lambda f=f: f(NONE, D)) for f in (
        pot.gromov_wasserstein, pot.semirelaxed_gromov_wasserstein, pot.entropic_gromov_wasserstein, pot.partial_gromov_wasserstein)],
    (BadArgument, "C2 has no points", lambda: pot.semirelaxed_gromov_wasserstein(C, NONE)),
    (BadArgument, "a: there are no points", lambda: pot.emd([], [], NONE)),
    # matrices
    (BadData, "M has an entry that is infinite", lambda: pot.entropic_semirelaxed_fused_gromov_wasserstein(zeroed(M), C, D)),
    (BadData, "M has an entry that is infinite", lambda: pot.fused_gromov_wasserstein(zeroed(M), C, D)),
    (BadData, "M has an entry that is infinite", lambda: pot.entropic_partial_wasserstein(P, Q, zeroed(M), 0.1)),
    (BadData, "C1 has an entry that is infinite", lambda: pot.gromov_wasserstein(zeroed(C), D)),
    (BadData, "C2 has an entry that is infinite", lambda: pot.gromov_wasserstein(C, zeroed(D))),
    (BadData, "Cs[1] has an entry that is infinite", lambda: pot.gromov_barycenters(2, [C, zeroed(D)])),
    (BadData, "C1 has an entry of -29", lambda: pot.gromov_wasserstein(-C, D, loss_fun="kl_loss")),
    (BadData, "C2 has an entry of -40", lambda: pot.semirelaxed_gromov_wasserstein(C, -D, loss_fun="KL_loss")),
    # numbers
    *[(BadArgument, f"{name} is {x:g}", lambda f=f, name=name, x=x: f(C, D, P, **{name: x})) for x in (0.0, -1.0, np.nan) for f, name in (
        (pot.entropic_gromov_wasserstein, "epsilon"), (pot.entropic_semirelaxed_gromov_wasserstein, "epsilon"),
        (pot.entropic_partial_gromov_wasserstein, "reg"))],
    *[(BadArgument, f"reg is {x:g}", lambda x=x: pot.entropic_partial_wasserstein(P, Q, M, x)) for x in (0.0, -1.0, np.nan)],
    *[(BadArgument, f"reg is {x:g}", lambda x=x: pot.sinkhorn(P, Q, M, x)) for x in (-1.0, np.nan)],
    *[(BadArgument, f"reg is {x:g}", lambda x=x: pot.sinkhorn_unbalanced(P, Q, M, x, 1.0)) for x in (0.0, -1.0, np.nan)],
    *[(BadArgument, f"reg_m is {x:g}", lambda x=x: pot.sinkhorn_unbalanced(P, Q, M, 1.0, (1.0, x))) for x in (0.0, -1.0, np.nan)],
    *[(BadArgument, f"m is {x:g}", lambda x=x: pot.entropic_partial_gromov_wasserstein(C, D, P, Q, m=x)) for x in (-1.0, np.nan, 2.0)],
    *[(BadArgument, f"alpha is {x:g}", lambda f=f, x=x: f(M, C, D, alpha=x)) for x in (-1.0, 1.5, np.nan) for f in (
        pot.fused_gromov_wasserstein, pot.fused_gromov_wasserstein2, pot.semirelaxed_fused_gromov_wasserstein,
        pot.entropic_fused_gromov_wasserstein, pot.partial_fused_gromov_wasserstein)],
    *[(BadArgument, f"{name} is {x}", lambda f=f, name=name, x=x: f(C, D, **{name: x})) for x in (-3, np.nan, np.inf) for f, name in (
        (pot.gromov_wasserstein, "max_iter"), (pot.semirelaxed_gromov_wasserstein, "max_iter"),
        (pot.entropic_gromov_wasserstein, "max_iter"), (pot.partial_gromov_wasserstein, "numItermax"),
        (pot.entropic_partial_gromov_wasserstein, "numItermax"))],
    (BadArgument, "max_iter is 0", lambda: pot.gromov_barycenters(2, [C, D], max_iter=0)),
    # starts
    *[(BadData, "G0 has an entry of -0.1", lambda f=f: f(C, D, P, G0=np.array([[-0.1, 0.4, 0.2], [13 / 30, -2 / 30, 4 / 30]]))) for f in (
        pot.gromov_wasserstein, pot.entropic_gromov_wasserstein, pot.semirelaxed_gromov_wasserstein, pot.partial_gromov_wasserstein,
        pot.entropic_semirelaxed_gromov_wasserstein)],
    (BadArgument, "G0: expected shape (2, 3)", lambda: pot.entropic_gromov_wasserstein(C, D, G0=np.ones((3, 2)) / 6)),
    (BadArgument, "G0: expected shape (2, 3)", lambda: pot.partial_gromov_wasserstein(C, D, G0=np.ones((3, 2)) / 6)),
]


class Refusals(unittest.TestCase):
    def test_refused(self):
        for k, (kind, words, call) in enumerate(REFUSED):
            with self.subTest(words, k=k), self.assertRaises(kind) as refusal:
                call()
            self.assertIn(words, str(refusal.exception))


if __name__ == "__main__":
    unittest.main()
