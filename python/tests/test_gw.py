"""Alignment, Sinkhorn and graphs, with NumPy alone."""

import _thread
import pathlib
import tempfile
import threading
import time
import unittest
import warnings

import numpy as np

from fourge import errors, gw


def distances(x):
    return np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))


def pair(n=60, seed=0):
    """A cloud, and the same one turned, lifted into three dimensions and shuffled: target[order[i]] is source i."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) * [1.0, 0.4]
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]
    order = rng.permutation(n)
    y = np.empty((n, 3))
    y[order] = x @ q
    return x, y, order


class Align(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")

    def test_dtype_of_an_alignment(self):
        """Energies of doubles are those of the plan: a copy that is not rounded to floats has none but the rounding of sums."""
        x = np.random.default_rng(4).standard_normal((140, 2))
        order = np.random.default_rng(5).permutation(140)
        found = gw.align(x, x[order], distance="euclidean", dtype="f64")
        self.assertEqual((found.report["dtype"], found.report["mode"]), ("f64", "vertex"))
        self.assertEqual(gw.align(x, x[order], distance="euclidean").report["dtype"], "f32")
        self.assertLess(abs(found.report["energy"]), 140 * 2.0**-52 * 2 * 16)  # distances below 8: squares, both sides
        np.testing.assert_array_equal(order[found.plan().argmax(1)], np.arange(140))

    def test_a_turned_cloud_is_found(self):
        x, y, order = pair()
        found = gw.align(x, y, distance="euclidean", mode="exact", epsilon=0.005, seed=1)
        self.assertLess(found.report["energy"], 0.02 * distances(x).mean() ** 2)
        self.assertGreater((found.argmax() == order).mean(), 0.9)
        self.assertIn("60 x 60", repr(found))

    def test_consumers_agree_with_the_plan(self):
        x, y, _ = pair(40)
        a = np.linspace(1, 2, 40)
        found = gw.align(x, y, a=a, distance="euclidean", epsilon=0.01)
        p = found.plan()
        np.testing.assert_allclose(p.sum(1), a / a.sum(), atol=1e-12)
        np.testing.assert_allclose(p.sum(0), 1 / 40, atol=1e-12)
        np.testing.assert_array_equal(found.rows(3, 9), p[3:9])
        np.testing.assert_array_equal(found.rows(0, 40, np.float32), p.astype(np.float32))
        index, value = found.top(3)
        np.testing.assert_array_equal(np.sort(p, 1)[:, ::-1][:, :3], value)
        np.testing.assert_array_equal(np.take_along_axis(p, index, 1), value)
        starts, columns, values = found.sparse(0.002)
        dense = np.zeros_like(p)
        dense[np.repeat(np.arange(40), np.diff(starts)), columns] = values
        np.testing.assert_array_equal(dense, np.where(p >= 0.002, p, 0))
        v = np.random.default_rng(0).normal(size=(40, 2))
        np.testing.assert_allclose(found.apply(v), p @ v, atol=1e-14)
        np.testing.assert_allclose(found.apply(v[:, 0], transposed=True), p.T @ v[:, 0], atol=1e-14)
        labels = np.array(["a", "b", "c", ""] * 10)
        found_labels, share = found.labels(labels)
        masses = np.stack([p[:, labels == s].sum(1) for s in "abc"], 1)
        np.testing.assert_array_equal(found_labels, np.array(list("abc"))[masses.argmax(1)])
        np.testing.assert_allclose(share, masses.max(1) / masses.sum(1), atol=1e-12)
        np.testing.assert_allclose(gw.energy(found.distances(0), found.distances(1), p), found.report["energy"], rtol=1e-5)
        self.assertEqual([len(f) for f in found.potentials], [40, 40])

    def test_verdict(self):
        x = np.arange(10) + 0.02 * np.arange(10) ** 2  # its mirror image is nearly the same
        options = {"distance": "euclidean", "mode": "exact", "anneal": "none", "epsilon": 1e-4}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = gw.align(x, x, start=np.eye(10)[::-1], **options)
        r = found.report
        self.assertTrue(any("FRG-GW-108" in str(w.message) and w.category is errors.NotConverged and "start_from vertex" in str(w.message) for w in told), told)
        self.assertEqual((r["reason"], r["status"], r["verdict"]), ("beaten", "FRG_STALLED", "another start is lower"))
        self.assertAlmostEqual(r["energy"], r["sharpened_energy"] + r["blur"])
        self.assertLess(r["other_energy"], 1e-3 * r["sharpened_energy"])
        r = gw.align(x, x, start=np.eye(10), **options).report
        self.assertEqual((r["reason"], r["verdict"]), ("converged_change", "no other start is lower"))

    def test_verdict_in_the_unit_of_the_batch(self):
        """Distances are divided by the largest of each step: what is said of the plan is the same in every unit, and J in none."""
        x, y, _ = pair(30)
        said = []
        for unit in (1.0, 2.0**14, 2.0**27):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", errors.NotConverged)
                r = gw.align(x * unit, y * unit, distance="euclidean", mode="sampled", scale="batch_max", max_iter=60, n_start=1).report
            said.append((r["verdict"], r["reason"]))
            self.assertTrue(np.isnan(r["objective"]))
        self.assertEqual(said[0], said[1])
        self.assertEqual(said[0], said[2])

    def test_energies_of_a_fused_alignment(self):
        """E is that of the plan in the units of the data in every mode, J what is minimised."""
        x, y, _ = pair(12)
        cost = np.random.default_rng(0).random((12, 12))
        for mode in ("vertex", "exact"):
            found = gw.align(x, 3 * y, linear=cost, linear_weight=0.3, distance="euclidean", mode=mode)
            c, d, p, r = found.distances(0), found.distances(1), found.plan(), found.report
            np.testing.assert_allclose(r["energy"], gw.energy(c, d, p), rtol=1e-5)
            np.testing.assert_allclose(r["gw_distance"], np.sqrt(r["energy"]))
            j = 0.7 * gw.energy(c / c.max(), d / d.max(), p) + 0.6 * (cost * p).sum()
            np.testing.assert_allclose(r["objective"], j + 2 * r["epsilon_end"] * (p * np.log(np.maximum(p, 1e-300)) - p).sum(), rtol=1e-5)

    def test_stationary(self):
        """Plans whose marginals are relaxed or partial: what a step on exact costs says of them."""
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
        for how in ({"rho_source": 10.0, "rho_target": 10.0}, {"rho_target": 10.0}, {"mass": 0.99}):
            r = gw.align(x, y, distance="euclidean", epsilon=0.05, **how).report
            self.assertEqual((r["status"], r["verdict"]), ("FRG_OK", "the plan is stationary"))
            self.assertGreaterEqual(r["step_gain"], 0)
            with self.assertWarnsRegex(errors.NotConverged, "FRG-GW-109: a step on exact costs is lower"):
                r = gw.align(x, y, distance="euclidean", epsilon=1e-5, **how).report
            self.assertEqual((r["reason"], r["status"], r["verdict"]), ("not_confirmed", "FRG_STALLED", "a step from the plan is lower"))

    def test_potentials_of_an_earlier_alignment(self):
        x, y, _ = pair(40)
        how = {"distance": "euclidean", "mode": "exact", "epsilon": 0.01, "anneal": "none", "max_iter": 1, "min_iter": 0}
        first = gw.align(x, y, **how)
        f, g = first.potentials
        again = gw.align(x, y, potentials=(f, g), **how)
        self.assertLess(again.report["inner_iterations"], first.report["inner_iterations"])
        np.testing.assert_allclose(again.plan(), first.plan(), atol=2 * 1e-4)
        with self.assertRaisesRegex(errors.BadArgument, "potentials: f: expected 40 potentials"):
            gw.align(x, y, potentials=(f[:-1], g), **how)

    def test_bits_do_not_depend_on_threads(self):
        x, y, _ = pair(50)
        plans = [gw.align(x, y, k=8, mode="sampled", seed=3, threads=t).plan() for t in (1, 2, 3)]
        np.testing.assert_array_equal(plans[0], plans[1])
        np.testing.assert_array_equal(plans[0], plans[2])
        self.assertFalse(np.array_equal(plans[0], gw.align(x, y, k=8, mode="sampled", seed=4).plan()))

    def test_names_of_the_peer(self):
        x, y, _ = pair(50)
        ours = gw.align(x, y, distance="landmark", mode="sampled", landmarks=9, anchors=33, damping=0.8, k=7, epsilon=0.02, min_iter=10, seed=2)
        plan, report = gw.sampled_gw(x, y, distance_mode="landmark", n_landmarks=9, M=33, alpha=0.8, k=7, epsilon=0.02,
                                     min_iter_before_converge=10, seed=2, s_shared=50, mixed_precision=True, log=True)
        np.testing.assert_array_equal(plan, ours.plan())
        self.assertEqual(report["outer_iterations"], ours.report["outer_iterations"])
        c, d = distances(x), distances(y)
        np.testing.assert_array_equal(gw.sampled_gw(dist_source=c, dist_target=d, max_iter=5),
                                      gw.align(c, d, distance="matrix", mode="sampled", max_iter=5).plan())
        g, h = gw.Graph.knn(x, 7), gw.Graph.knn(y, 7)
        np.testing.assert_array_equal(gw.sampled_gw(graph_source=g, graph_target=h, max_iter=5),
                                      gw.align(g, h, mode="sampled", max_iter=5).plan())
        linear = np.random.default_rng(0).uniform(size=(50, 50))
        np.testing.assert_array_equal(gw.sampled_gw(x, y, k=7, fgw_alpha=0.5, C_linear=linear, max_iter=5),
                                      gw.align(x, y, k=7, linear=linear, linear_weight=0.5, mode="sampled", max_iter=5).plan())
        relaxed = gw.sampled_gw(x, y, k=7, semi_relaxed=True, rho=0.002)
        np.testing.assert_allclose(relaxed.sum(1), 1 / 50, atol=1e-4)
        self.assertGreater(np.abs(relaxed.sum(0) - 1 / 50).max(), 1e-4)
        near = gw.sampled_gw(x, x, T_init=np.eye(50) / 50, distance_mode="euclidean", mode="exact", max_iter=3, anneal="none")
        self.assertGreater((near.argmax(1) == np.arange(50)).mean(), 0.5)  # from a b' the cloud may be turned over
        for bad in ({"rho": 1.0}, {"semi_relaxed": True, "rho": 1.0, "rho_a": 1.0}, {"dist_source": c}):
            with self.assertRaises(errors.BadArgument):
                gw.sampled_gw(x, y, **bad)

    def test_scale_linear(self):
        """Divided by its largest |value|, 4, a cost is the one whose largest value is 1, to the bit."""
        x, y, _ = pair(30)
        cost = np.random.default_rng(0).uniform(size=(30, 30))
        cost[2, 3] = 1
        run = lambda c, **more: gw.align(x, y, k=7, linear=c, linear_weight=0.5, mode="sampled", max_iter=5, **more).plan()
        np.testing.assert_array_equal(run(4 * cost, scale_linear="max"), run(cost))
        self.assertFalse(np.array_equal(run(cost), run(4 * cost)))

    def test_landmark_metrics(self):
        """By definition, of the paths to the landmarks of the same graph."""
        x, y, _ = pair(30)
        z = gw.Graph.knn(x, 7).landmarks(5)[1].astype(float)
        gap, total = np.abs(z[:, None] - z[None]), z[:, None] + z[None]
        lower, upper = gap.max(2), total.min(2)
        np.fill_diagonal(upper, 0)
        want = {"l2": np.sqrt((gap**2).sum(2)), "lower": lower, "upper": upper, "mid": (lower + upper) / 2}
        for metric, d in want.items():
            found = gw.align(x, y, k=7, distance="landmark", landmarks=5, landmark_metric=metric, mode="sampled", max_iter=2)
            np.testing.assert_allclose(found.distances(0), d, rtol=1e-5, atol=1e-6, err_msg=metric)

    def test_lazy_distances(self):
        x, y, _ = pair(30)
        run = lambda **more: gw.align(x, y, k=7, distance="precomputed", mode="sampled", max_iter=5, **more)
        whole, lazy = run(), run(lazy=True)
        np.testing.assert_array_equal(lazy.distances(0), whole.distances(0))
        np.testing.assert_allclose(lazy.plan().sum(1), 1 / 30, atol=1e-12)

    def test_low_rank(self):
        x, y, _ = pair(50)
        found = gw.align(x, y, k=7, rank=6, max_iter=30)
        q, w, h = found.factors
        self.assertEqual((q.shape, w.shape, h.shape), ((50, 6), (50, 6), (6,)))
        np.testing.assert_allclose(found.plan(), q / h @ w.T, atol=1e-6)  # consumers see it in float32, rounded
        np.testing.assert_allclose(q.sum(1), 1 / 50, atol=1e-5)
        self.assertIsNone(gw.align(x, y, k=7, mode="sampled", max_iter=3).factors)
        np.testing.assert_array_equal(gw.sampled_lowrank_gw(x, y, rank=6, k=7, max_iter=30), found.plan())
        with self.assertRaises(errors.Unsupported):
            gw.sampled_lowrank_gw(x, y, semi_relaxed=True)

    def test_preset(self):
        """What is named stands above a preset: passes a step."""
        x, y, _ = pair(30)
        one = gw.align(x, y, k=7, preset="torchgw", max_inner=1, max_iter=60, epsilon=1.0).report
        self.assertEqual(one["inner_iterations"], one["outer_iterations"])
        all_of_it = gw.align(x, y, k=7, preset="torchgw", max_iter=60).report
        self.assertGreater(all_of_it["inner_iterations"], 2 * all_of_it["outer_iterations"])

    def test_types(self):
        """float32 where all arrays that are given are."""
        c = distances(np.arange(6.0)[:, None])
        a, m = np.full(6, 1 / 6), np.random.default_rng(0).random((6, 6))
        for kind in (np.float32, np.float64):
            args = [v.astype(kind) for v in (a, a, m)]
            self.assertEqual(gw.sinkhorn(*args, 0.1).dtype, kind)
            self.assertEqual(gw.entropic_gromov_wasserstein(c.astype(kind), c.astype(kind), epsilon=0.5).dtype, kind)
        self.assertEqual(gw.sinkhorn(a, a, m.astype(np.float32), 0.1).dtype, np.float64)

    def test_mass(self):
        """Histograms of one sum, which the plan has: counts, as POT takes them, without a word.  Sums that differ are refused."""
        rng = np.random.default_rng(3)
        m, a, b = rng.random((6, 8)), rng.integers(1, 9, 6).astype(float), rng.integers(1, 9, 8).astype(float)
        b *= a.sum() / b.sum()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plan, log = gw.sinkhorn(a, b, m, 0.1, log=True)
        np.testing.assert_allclose(plan.sum(1), a, rtol=1e-7)
        np.testing.assert_allclose(plan.sum(0), b, rtol=1e-7)
        np.testing.assert_allclose(log["u"][:, None] * np.exp(-m / 0.1) * log["v"], plan, rtol=1e-7)
        with self.assertRaisesRegex(errors.BadData, "source weights sum to"):
            gw.sinkhorn(2 * a, b, m, 0.1)

    def test_sums(self):
        """Sums that differ are refused where marginals hold; one that is not 1 is said once; the drop-in whose peer divides by
        the sums does so."""
        c, d = distances(np.arange(6.0)[:, None]), distances(np.arange(5.0)[:, None])
        a, b = np.arange(1.0, 7), np.arange(2.0, 7)  # 21 and 20
        plan = {"distance": "matrix", "mode": "exact", "epsilon": 0.05}
        with self.assertRaisesRegex(errors.BadData, "source weights sum to 21, the target weights to 20"):
            gw.align(c, d, a=a, b=b, **plan)
        for weights in ({"a": a}, {"a": a, "b": 1.05 * b}):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                gw.align(c, d, **weights, **plan)
            self.assertEqual(sum("divided" in str(w.message) for w in said), 1)
        self.assertAlmostEqual(gw.align(c, d, a=a, b=b, mode="sampled", distance="matrix", rho_target=1.0).report["mass"], 21, delta=4)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*divided")
            self.assertAlmostEqual(gw.sampled_gw(None, None, a, b, dist_source=c, dist_target=d).sum(), 1)
        with self.assertRaisesRegex(errors.BadData, "sum of p is 21 and that of q 20"):
            gw.entropic_gromov_wasserstein(c, d, a, b, epsilon=0.5)

    def test_floor(self):
        """Tolerances that no arithmetic reaches: the reason, and the size of what rounding leaves."""
        c, d = distances(np.array([0.0, 1, 2.5, 4.2, 7])[:, None]), distances(np.array([0.0, 1.1, 2.3, 4.5, 6.6])[:, None])
        cost = np.random.default_rng(0).random((5, 6))
        found = gw.transport(cost, epsilon=0.1, tol=1e-300, max_iter=10**6, cost_store="f64").report
        self.assertEqual(found["status"], "FRG_STALLED")
        self.assertTrue(0 < found["rounding_floor"] < 1e-13 and not found["converged"], found["rounding_floor"])
        self.assertLessEqual(found["iterations"], 2000)
        found = gw.align(c, d, distance="matrix", mode="exact", epsilon=0.2, anneal="none", tol=1e-300, marginal_tol=1e-300,
                         polish_tol=1e-300, max_iter=10**6, max_inner=10**6, polish_passes=10**6).report
        self.assertEqual((found["reason"], found["status"]), ("rounding_floor", "FRG_STALLED"))
        self.assertTrue(0 <= found["rounding_floor"] < 1e-5)
        self.assertLessEqual(found["inner_iterations"], 2000)
        with self.assertWarnsRegex(errors.NotConverged, "rounding leaves no less"):
            gw.sinkhorn(None, None, cost, 0.1, stopThr=1e-300)

    def test_rows_without_mass(self):
        """No column is the largest of a row without mass."""
        a = np.array([0.5, 0, 0.5])
        found = gw.transport(np.random.default_rng(0).random((3, 4)), a, None, epsilon=0.1)
        self.assertEqual(found.argmax()[1], -1)
        self.assertTrue((found.argmax()[[0, 2]] >= 0).all())

    def test_refusals(self):
        x, y, _ = pair(20)
        with self.assertRaises(errors.BadData) as caught:
            gw.energy(distances(x), distances(y), np.full((20, len(y)), np.nan))
        self.assertEqual(caught.exception.where, "plan, row 1, column 1")
        with self.assertRaises(errors.BadArgument):
            gw.align(x, y, k=30)
        with self.assertRaisesRegex(TypeError, "epsilonn"):
            gw.align(x, y, epsilonn=1)
        with self.assertRaisesRegex(ValueError, "distance"):
            gw.align(x, y, distance="taxi")
        with self.assertRaisesRegex(ValueError, "a: expected 20"):
            gw.align(x, y, a=np.ones(3))
        bad = x.copy()
        bad[3, 1] = np.nan
        with self.assertRaises((errors.BadData, errors.BadArgument)):
            gw.align(bad, y, k=5)
        with self.assertRaises(errors.BadArgument):
            gw.align(gw.Graph.knn(x, 5), y)
        with self.assertRaises((errors.BadData, errors.BadArgument)):
            gw.align(-distances(x), distances(y), distance="matrix")

    def test_progress_and_stop(self):
        x, y, _ = pair(300)
        seen = []

        def look(solver, phase, done, total, residual, target, seconds):
            seen.append((solver, done))
            return len(seen) >= 3

        found = gw.align(x, y, distance="euclidean", max_iter=100000, min_iter=100000, tol=0, progress=look)
        self.assertEqual(len(seen), 3)
        self.assertEqual(found.report["reason"], "cancelled")

    def test_ctrl_c(self):
        x, y, _ = pair(300)
        began = time.monotonic()
        stop = threading.Timer(0.3, _thread.interrupt_main)
        with self.assertRaises(KeyboardInterrupt):
            stop.start()
            gw.align(x, y, distance="euclidean", max_iter=10**9, min_iter=10**9, tol=0)
        self.assertLess(time.monotonic() - began, 20)  # a busy machine; a run that cannot be stopped goes on for days


class Bounds(unittest.TestCase):
    def test_lower_bound(self):
        """Below the energy of any plan, 0 between equal spaces, and between two points each by hand."""
        x, y, _ = pair(30)
        c, d = distances(x), distances(1.3 * y)
        found = gw.align(c, d, distance="matrix", mode="exact", epsilon=0.005)
        bound = gw.lower_bound(c, d)
        self.assertTrue(0 < bound <= found.report["energy"])
        self.assertLess(gw.lower_bound(c, c), 1e-12)
        self.assertLess(gw.lower_bound(c, distances(y)), 1e-12)
        # two points at distance s with weights 1/4, 3/4 against one at distance 0: eccentricities s sqrt(3/4), s sqrt(1/4)
        two, one = np.array([[0, 2.0], [2, 0]]), np.zeros((1, 1))
        self.assertAlmostEqual(gw.lower_bound(two, one, a=[0.25, 0.75]), 4 * (0.25 * 0.75 + 0.75 * 0.25))
        with self.assertRaisesRegex(ValueError, "a: expected 2"):
            gw.lower_bound(two, one, a=[1.0])
        with self.assertRaises((errors.BadArgument, errors.BadData)):
            gw.lower_bound(np.ones((2, 3)), one)

    def test_barycenter(self):
        """Of one space given twice it is that space (up to entropy); between two scaled copies it lies between."""
        warnings.simplefilter("ignore")
        x, _, _ = pair(12)
        c = distances(x)
        out, report = gw.barycenter([c, c], 12, start=c, epsilon=1e-3)
        self.assertLess(np.abs(out - c).max(), 0.1 * c.max())
        between, report = gw.barycenter([c, 3 * c], 12, weights=[None, np.full(12, 1 / 12)], shares=[0.5, 0.5], start=2 * c, epsilon=1e-3)
        np.testing.assert_allclose(np.median(between[c > 0] / c[c > 0]), 2, atol=0.1)
        self.assertEqual(set(report), {"iterations", "change", "energy", "converged", "inner_iterations", "rounding_floor"})
        with self.assertWarns(errors.NotConverged):
            gw.barycenter([c, 2 * c], 7, max_iter=1)
        for bad in ({"weights": [None]}, {"shares": [1.0]}, {"p": np.ones(3)}, {"start": np.ones((2, 2))}):
            with self.assertRaises((errors.BadArgument, errors.BadData)):
                gw.barycenter([c, c], 5, **bad)
        with self.assertRaisesRegex(TypeError, "epsilom"):
            gw.barycenter([c], 5, epsilom=1)
        with self.assertRaises((errors.BadArgument, errors.BadData)):
            gw.barycenter([], 5)
        start, _ = gw.barycenter([c, c], 5, max_iter=1)
        np.testing.assert_allclose(gw.entropic_gromov_barycenters(5, [c, c], epsilon=0.1, init_C=start, max_iter=300),
                                   gw.barycenter([c, c], 5, epsilon=0.05 / c.max() ** 2, start=start, max_iter=300, tol=1e-9)[0], atol=1e-4)


class States(unittest.TestCase):
    """Alignments that were stopped go on to the same bits."""

    def setUp(self):
        rng = np.random.default_rng(2)
        self.x, self.y = rng.normal(size=(60, 2)), rng.normal(size=(50, 3))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "run.state")

    def align(self, **options):
        return gw.align(self.x, self.y, distance="euclidean", max_iter=40, min_iter=40, tol=0.0, multiscale="off", **options)

    def stopped(self):
        """A run that ends at its first look, which a fresh context has at once, after a few states."""
        found = self.align(progress=lambda *a: True, checkpoint=self.path, checkpoint_every=0)
        self.assertEqual((found.report["status"], found.report["reason"]), ("FRG_INTERRUPTED", "cancelled"))

    def test_goes_on_to_the_same_bits(self):
        want = self.align()
        self.stopped()
        for threads in (1, 2):
            found = self.align(resume=self.path, threads=threads)
            self.assertEqual(found.report["energy"], want.report["energy"])
            np.testing.assert_array_equal(found.plan(), want.plan())

    def test_on_a_device(self):
        """What lies there is saved and taken up: the bits of a run that was not stopped.  Another device is refused with both names."""
        there = dict(device="opencl", mode="sampled", store_plan=True, scale="batch_max")
        try:
            want = self.align(**there)
        except errors.NoDevice as e:
            self.skipTest(str(e))
        found = self.align(progress=lambda *a: True, checkpoint=self.path, checkpoint_every=0, **there)
        self.assertEqual((found.report["status"], found.report["reason"]), ("FRG_INTERRUPTED", "cancelled"))
        found = self.align(resume=self.path, **there)
        self.assertEqual(found.report["energy"], want.report["energy"])
        np.testing.assert_array_equal(found.plan(), want.plan())
        with self.assertRaisesRegex(errors.Mismatch, "run on opencl: .*this run is on the cpu"):
            self.align(resume=self.path, **dict(there, device="cpu"))
        for option in ({"cost_store": "fly"}, {"auto_store": True}):
            with self.assertRaisesRegex(errors.Unsupported, next(iter(option))):
                self.align(device="opencl", mode="sampled", **option)

    def test_a_job_that_is_started_again(self):
        """resume=True: from the checkpoint where it is there, else from the start."""
        want = self.align().plan()
        again = lambda: self.align(checkpoint=str(self.path), checkpoint_every=1e9, resume=True)
        np.testing.assert_array_equal(again().plan(), want)
        self.assertFalse(self.path.exists())
        self.stopped()
        np.testing.assert_array_equal(again().plan(), want)

    def test_ctrl_c_leaves_a_state(self):
        def stop(*_):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.align(progress=stop, checkpoint=self.path, checkpoint_every=1e9)
        np.testing.assert_array_equal(self.align(resume=self.path).plan(), self.align().plan())

    def test_stopped_before_there_is_a_plan(self):
        """By one thread: of several, the first alone asks, and the others may leave it no paths to ask between."""
        with self.assertRaisesRegex(errors.Stopped, "stopped"):
            gw.align(self.x, self.y, k=5, progress=lambda *a: True, threads=1)

    def test_refusals(self):
        with self.assertRaisesRegex(OSError, "nowhere"):
            self.align(resume="/nowhere/run.state")
        with self.assertRaisesRegex(OSError, "nowhere"):
            self.align(checkpoint="/nowhere/run.state", checkpoint_every=0)
        with self.assertRaisesRegex(ValueError, "checkpoint"):
            self.align(resume=True)
        self.stopped()
        with self.assertRaises(errors.Mismatch):
            gw.align(self.y, self.x, distance="euclidean", resume=self.path)

    def test_a_damaged_state(self):
        """The one before it is taken, with a warning; where that is damaged as well, it is refused."""
        self.stopped()
        before = pathlib.Path(f"{self.path}~")
        self.assertTrue(before.exists())
        self.path.write_bytes(self.path.read_bytes()[:100])
        with self.assertWarns(UserWarning):
            found = self.align(resume=self.path)
        np.testing.assert_array_equal(found.plan(), self.align().plan())
        before.write_bytes(b"")
        with self.assertRaises(errors.Error):
            self.align(resume=self.path)


class Derivatives(unittest.TestCase):
    """Through a plan, by differences: a step of 1e-5 and passes that end at 1e-12 leave 1e-6."""

    def test_plan(self):
        rng = np.random.default_rng(0)
        cost, g = rng.uniform(size=(7, 5)), rng.normal(size=(7, 5))
        a = rng.uniform(0.5, 1, 7)
        a /= a.sum()
        run = lambda m, w: gw.transport(m, w, epsilon=0.2, tol=1e-13, max_iter=100000, cost_store="f64", round=False)
        found = run(cost, a)
        by_cost, by_a, by_b = found.vjp(g)
        h = 1e-5
        for i, j in ((0, 0), (3, 4), (6, 2)):
            step = np.zeros_like(cost)
            step[i, j] = h
            wanted = ((g * run(cost + step, a).plan()).sum() - (g * run(cost - step, a).plan()).sum()) / (2 * h)
            self.assertAlmostEqual(by_cost[i, j], wanted, delta=1e-6)
        step = np.zeros(7)
        step[1], step[5] = h, -h
        wanted = ((g * run(cost, a + step).plan()).sum() - (g * run(cost, a - step).plan()).sum()) / (2 * h)
        self.assertAlmostEqual(by_a[1] - by_a[5], wanted, delta=1e-6)
        self.assertEqual(by_b.shape, (5,))
        np.testing.assert_allclose(found.vjp(g, "frozen")[0], -found.plan() * g / 0.2, atol=1e-12)
        np.testing.assert_allclose(found.vjp(g, "unrolled")[0], by_cost, atol=1e-6)
        with self.assertRaisesRegex(ValueError, "grad_mode"):
            found.vjp(g, "backward")
        with self.assertRaises(errors.BadArgument):
            found.vjp(g[:3])
        with self.assertRaises(errors.Unsupported):
            gw.transport(cost, rho_target=1.0).vjp(g)

    def test_objective(self):
        """The dual's value is that of the plan, whose marginals are off by 1e-13, and its derivatives are the plan and the potentials."""
        rng = np.random.default_rng(1)
        cost, a, h = rng.uniform(size=(7, 5)), np.full(7, 1 / 7), 1e-5
        run = lambda m, w: gw.transport(m, w, epsilon=0.2, tol=1e-13, max_iter=100000, cost_store="f64", round=False)
        found = run(cost, a)
        plan = found.plan()
        self.assertAlmostEqual(found.objective, (plan * (cost + 0.2 * (np.log(plan) - 1))).sum(), delta=1e-11)
        self.assertEqual(found.objective, found.report["objective"])
        step = np.zeros((7, 5))
        step[3, 2] = h  # rounding of the values over h, and h^2
        self.assertAlmostEqual((run(cost + step, a).objective - run(cost - step, a).objective) / (2 * h), plan[3, 2], delta=1e-9)
        moved = np.array([h, -h, 0, 0, 0, 0, 0])
        f = found.potentials[0]
        self.assertAlmostEqual((run(cost, a + moved).objective - run(cost, a - moved).objective) / (2 * h), f[0] - f[1], delta=1e-7)
        for relaxed in ({"rho_source": 1.0}, {"mass": 0.5}):
            with self.assertRaisesRegex(errors.Unsupported, "sinkhorn_unbalanced2"):
                gw.transport(cost, **relaxed).objective


class Embedding(unittest.TestCase):
    def test_twins_lie_together(self):
        warnings.simplefilter("ignore")
        x, y, order = pair(60)
        found = gw.align(x, y, distance="euclidean", mode="exact", epsilon=0.005, seed=1)
        self.assertGreater((found.argmax() == order).mean(), 0.9)
        anchor, (query,) = gw.joint_embedding(y, [(x, found)], out_dim=3, lam=1e4, k=8)  # the plan above the graphs
        self.assertEqual((anchor.shape, query.shape), ((60, 3), (60, 3)))
        for j in range(3):
            self.assertGreater(abs(np.corrcoef(anchor[found.argmax(), j], query[:, j])[0, 1]), 0.95)
        self.assertTrue((anchor[np.abs(anchor).argmax(0), np.arange(3)] > 0).all())
        with self.assertRaises(TypeError):
            gw.joint_embedding(y, [(x, found)], k=8, colour=1)
        with self.assertRaises(errors.BadArgument):
            gw.joint_embedding(y[:30], [(x, found)], k=8)


class Sinkhorn(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(3)
        self.cost = rng.uniform(size=(12, 9))
        self.a = rng.uniform(0.5, 1, 12)
        self.a /= self.a.sum()

    def test_marginals_and_form(self):
        """P has both marginals and is exp((f + g - C) / reg): that is the definition."""
        plan, log = gw.sinkhorn(self.a, [], self.cost, 0.1, log=True)
        np.testing.assert_allclose(plan.sum(1), self.a, atol=2e-9)
        np.testing.assert_allclose(plan.sum(0), 1 / 9, atol=2e-9)
        np.testing.assert_allclose(plan, np.exp(log["log_u"][:, None] + log["log_v"] - self.cost / 0.1), rtol=1e-6)
        again, warm = gw.sinkhorn(self.a, None, self.cost, 0.1, warmstart=log["warmstart"], log=True)
        self.assertLess(warm["niter"], log["niter"])
        np.testing.assert_allclose(again, plan, atol=1e-8)

    def test_relaxed_and_early(self):
        found = gw.transport(self.cost, self.a, epsilon=0.1, rho_target=0.5)
        self.assertGreater(np.abs(found.plan().sum(0) - 1 / 9).max(), 1e-3)
        with self.assertWarns(errors.NotConverged):
            gw.sinkhorn(self.a, None, self.cost, 1e-3, numItermax=2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gw.sinkhorn(self.a, None, self.cost, 1e-3, numItermax=2, warn=False)

    def test_refusals(self):
        with self.assertRaises((errors.BadData, errors.BadArgument)):
            gw.transport(np.full((3, 3), np.nan))
        with self.assertRaises(errors.BadArgument):
            gw.transport(self.cost, epsilon=-1)


class Graphs(unittest.TestCase):
    def test_paths(self):
        """A ring of 6 with a chord: lengths by hand."""
        starts, targets = [0, 2, 3, 4, 5, 6, 6], [1, 3, 2, 3, 4, 5]
        g = gw.Graph.csr(starts, targets, [1.0, 1.5, 1, 1, 1, 1])
        self.assertEqual(g.report["n"], 6)
        np.testing.assert_array_equal(g.paths([0])[0], [0, 1, 2, 1.5, 2.5, 3.5])
        np.testing.assert_array_equal(g.paths(), g.paths().T)

    def test_arcs_landmarks_and_files(self):
        """The ring again: from node 0 the farthest is 5 (3.5), then 2 (2 from 0, 1.5 from 5)."""
        starts, targets = [0, 2, 3, 4, 5, 6, 6], [1, 3, 2, 3, 4, 5]
        g = gw.Graph.csr(starts, targets, [1.0, 1.5, 1, 1, 1, 1])
        nodes, lengths = g.landmarks(3)
        np.testing.assert_array_equal(nodes, [0, 5, 2])
        np.testing.assert_array_equal(lengths, g.paths(nodes).T)
        self.assertEqual(gw.landmark_bounds(lengths[1], lengths[4]), (3.0, 3.0))  # 4 - 1 by node 5, 1 + 2 by node 2
        self.assertEqual(g.paths([1])[0, 4], 3)
        self.assertEqual(len(gw.Graph.csr([0, 1, 1], [1], [0.0]).landmarks(2)[0]), 1)  # the other is at distance 0
        at, to, length = g.arcs()
        again = gw.Graph.csr(at, to, length, directed=True)
        np.testing.assert_array_equal(again.paths(), g.paths())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "ring.txt")
            path.write_text("".join(f"{i} {j} {w}\n" for i, j, w in ((0, 1, 1), (0, 3, 1.5), (1, 2, 1), (2, 3, 1), (3, 4, 1), (4, 5, 1))))
            np.testing.assert_array_equal(gw.Graph.read(path).paths(), g.paths())
            path.write_text("0 x 1\n")
            with self.assertRaises(errors.BadData):
                gw.Graph.read(path)
        with self.assertRaises(errors.FileError):
            gw.Graph.read("/nowhere/ring.txt")
        with self.assertRaises(errors.BadArgument):
            g.landmarks(0)

    def test_meshes(self):
        """A square of two triangles: its sides are 1, the diagonal that both share sqrt(2)."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "square.off"
            path.write_text("OFF\n4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2\n3 0 2 3\n")
            points, edges = gw.read_mesh(path)
            np.testing.assert_array_equal(points, [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
            self.assertEqual(sorted(map(tuple, np.sort(edges, 1).tolist())), [(0, 1), (0, 2), (0, 2), (0, 3), (1, 2), (2, 3)])
            graph = gw.Graph.mesh(path)
            root = np.sqrt(2)
            np.testing.assert_allclose(graph.paths(), [[0, 1, root, 1], [1, 0, 1, 2], [root, 1, 0, 1], [1, 2, 1, 0]], rtol=1e-6)
            path.write_text("OFF\n2 0 0\n0 0 0\n1 0 0\n")
            self.assertEqual(gw.read_mesh(path)[1].shape, (0, 2))
            with self.assertRaises(errors.BadArgument):
                gw.Graph.mesh(path)
            path.write_text("OFF\n4 2 0\n0 0 zero\n")
            with self.assertRaisesRegex(errors.BadData, "zero") as refused:
                gw.read_mesh(path)
            self.assertIn(":3", refused.exception.where)

    def test_neighbours(self):
        x = np.random.default_rng(0).normal(size=(30, 2))
        d = distances(x)
        near = gw.Graph.knn(x, 3, stitch=False)
        np.fill_diagonal(d, np.inf)
        wanted = np.zeros((30, 30), bool)
        np.put_along_axis(wanted, np.argsort(d, 1)[:, :3], True, 1)
        self.assertEqual(near.report["arcs"], (wanted | wanted.T).sum())
        with self.assertRaises(errors.BadArgument):
            gw.Graph.knn(x, 30)


if __name__ == "__main__":
    unittest.main()
