"""Every entry point: memory and reference counts over many calls, 8 threads at once, calls out of callbacks, Ctrl-C.

FOURGE_TEST_CALLS sets the number of calls, 1000 without; 10000 take some minutes.
"""

import _thread
import gc
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time
import unittest
import warnings

import numpy as np

from fourge import _fourge, errors, fe, gp, gw, linalg, soap

CALLS = int(os.environ.get("FOURGE_TEST_CALLS", "1000"))
THREADS = 8
LOST = 64 * (CALLS // 2)


class Entries:
    """name -> a call with small inputs that returns numbers; `inputs` are what reference counts are looked at of."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        one = {"threads": 1}
        self.x, self.y = rng.normal(size=(8, 2)), rng.normal(size=8)
        self.codes = np.array([0, 0, 1, 1, 2, 2, 0, 1], np.int32)
        self.k = np.array([[2.0, 0.5], [0.5, 1.0]])
        self.c = np.sqrt(((self.x[:, None] - self.x) ** 2).sum(-1))
        frame = {"y": self.y, "x": self.x[:, 0], "f": self.codes}
        fit = fe.feols("y ~ x | f", frame, **one)
        pair = fe.feols("y ~ x | f + g", frame | {"g": self.codes[::-1].copy()}, **one)
        process = gp.GP(self.x, self.y, "1*rbf(l=1) + noise(0.1)", **one)
        known = gp.GP(self.x, self.y, "1*rbf(l=1)", noise_variances=np.full(8, 0.1), **one)
        path = str(pathlib.Path(folder, "process"))
        process.save(path)
        moved = gp.load(path, **one)
        theta = process.theta
        graph = gw.Graph.knn(self.x, 3, **one)
        found = gw.align(self.c, self.c, distance="matrix", mode="exact", max_iter=3, epsilon=0.05, **one)
        moved_mass = gw.transport(self.c, epsilon=0.5, **one)
        low = gw.align(self.x, self.x, k=3, rank=2, max_iter=3, **one)
        weights = rng.normal(size=(3, 3)).astype(np.float32)
        slope = np.ones((3, 3), np.float32)

        def step():
            opt = soap.SOAP([weights.copy()], lr=1e-2, **one)
            opt.step([slope])
            opt.step([slope])
            state = opt.state_dict()
            opt.load_state_dict(state)
            opt.load_param("param.0", opt.save_param("param.0"))
            return opt.param_groups[0]["params"][0]

        def refused(call, kind=Exception):
            try:
                call()
            except kind as e:
                return len(str(e))
            raise AssertionError("it was taken")

        def evaluate():
            process.theta = theta
            return process.log_likelihood()

        def appended():
            p = gp.GP(self.x, self.y, "1*rbf(l=1) + noise(0.1)", **one)
            p.append(self.x[:1] + 1, self.y[:1]).remove(8)
            return p.log_likelihood()

        def tied():
            p = gp.GP(self.x, self.y, "1*rbf(l=1) + 1*matern32(l=2)", noise_variances=np.full(8, 0.1), **one)
            return p.tie("matern32.l", "rbf.l").update_noise(2, 0.2).update_y(self.y + 1).log_likelihood()

        def kept():
            state = str(pathlib.Path(folder, f"state {threading.get_ident()}"))
            gw.align(self.c, self.c, distance="matrix", max_iter=2, checkpoint=state, checkpoint_every=0, **one)
            return gw.align(self.c, self.c, distance="matrix", max_iter=2, resume=state, **one).plan()

        sparse = (8, 2), np.arange(0, 17, 2), np.tile([0, 1], 8), self.x.ravel()
        self.calls = {
            "fe.demean": lambda: fe.demean(self.x, self.codes, **one)[0],
            "fe.lsmr": lambda: fe.lsmr(sparse, self.y, **one)[0],
            "fe.feols": lambda: fe.feols("y ~ x | f", frame, vcov="hetero", **one).coef(),
            "Fit": lambda: (fit.vcov("iid").se(), fit.resid(), pair.connected_sets(), fit.predict(), fit.predict({"x": self.x[:, 0], "f": self.codes}),
                            list(fit.fixef()), fit.wald_test()["statistic"], fit.tidy()["estimate"], fit.etable(), str(fit)),
            "gp.GP": lambda: gp.GP(self.x, self.y, "1*rbf(l=1) + noise(0.1)", **one).theta,
            "GP.value": evaluate,
            "GP.gradient": lambda: process.gradient(x=True, y=True),
            "GP.information": process.information,
            "GP.loo": lambda: process.loo(gradient=True)["gradient"],
            "GP.folds": lambda: (process.folds(self.codes, gradient=True)["gradient"], process.loo(latent=True)["latent_variance"]),
            "GP.fantasies": lambda: process.fantasies(self.x[None, :2], self.x[None, :2], self.x[:3]),
            "GP.predict": lambda: process.predict(self.x[:2], return_cov=True, return_std=True),
            "GP.predict_gradient": lambda: process.predict_gradient(self.x[:2]),
            "GP.sample": lambda: process.sample(self.x[:2], 3),
            "GP.append": appended,
            "GP, ties and noise": tied,
            "gp.evaluate_batch": lambda: [p["gradient"] for p in gp.evaluate_batch([(self.x, self.y), (self.x[:3], self.y[:3])], "1*rbf + noise", gradient=True, **one)],
            "gp.fit_batch": lambda: [p["theta"] for p in gp.fit_batch([(self.x, self.y)] * 2, "1*rbf + noise", fit={"max_iter": 2}, **one)],
            "linalg.qr": lambda: linalg.qr([self.k, self.x], **one)[1],
            "gw.align, states": kept,
            "GP.fit": lambda: gp.GP(self.x, self.y, "1*rbf + noise", **one).fit(max_iter=2)["log_likelihood"],
            "GP, noise": lambda: (known.log_likelihood(), moved.predict(self.x[:1]), repr(known), known.parameters[0]["value"]),
            "gp.invquad_logdet": lambda: gp.invquad_logdet(self.k, self.y[:2], inverse=True, **one),
            "Graph": lambda: (gw.Graph.knn(self.x, 3, **one).report["arcs"], graph.paths([0, 3]), graph.landmarks(3)[1], graph.arcs()[2]),
            "gw.align": lambda: gw.align(self.c, self.c, distance="matrix", max_iter=2, **one).plan(),
            "Alignment": lambda: (found.rows(0, 2), found.top(2)[1], found.sparse(0.01)[2], found.apply(self.y), found.labels(list("aabbccdd"))[1],
                                  found.potentials, found.distances(1), found.vjp(self.c)[0], found.marginals["mass"], low.factors),
            "gw.transport": lambda: gw.transport(self.c, epsilon=0.5, max_iter=5, **one).potentials,
            "Transport": lambda: (moved_mass.plan(), moved_mass.argmax()),
            "gw.energy": lambda: (gw.energy(self.c, self.c, np.eye(8) / 8), gw.lower_bound(self.c, 2 * self.c)),
            "gw.barycenter": lambda: gw.barycenter([self.c, self.c], 3, max_iter=2, max_outer=2, **one)[0],
            "gw.joint_embedding": lambda: gw.joint_embedding(self.x, [(self.x, found)], k=3, **one)[0],
            "gw.sinkhorn": lambda: gw.sinkhorn([], [], self.c, 1.0, numItermax=5, warn=False, log=True)[0],
            "soap.SOAP": step,
            "errors": lambda: [refused(lambda: gw.align(self.x, self.x, k=80)), refused(lambda: fe.demean(self.x, self.codes[:3])),
                               refused(lambda: gp.GP(self.x, self.y, "rbf(")), refused(lambda: fe.feols("y ~ z", frame)),
                               refused(lambda: gw.transport(self.c * np.nan)), refused(lambda: process.fit(colour=1))],
        }
        self.inputs = [self.x, self.y, self.codes, self.k, self.c, weights, slope, theta]
        self.shared = [process, known, moved, fit, pair, graph, found, moved_mass, low]


def numbers(value):
    """What a call returned, as one array."""
    if isinstance(value, (tuple, list)):
        return np.concatenate([numbers(v) for v in value]) if value else np.zeros(0)
    if isinstance(value, str):
        return np.array([len(value)], float)
    return np.ravel(np.asarray(value, float))


def resident():
    while gc.collect():  # what a collection lets go of may be in cycles of its own
        pass
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(call):
    """Bytes that the process gains in CALLS // 2 calls: the median of five such rounds, since pages that the system
    joins to a huge one or a heap that is cut anew come once in a while, and what a call loses comes in every round."""
    for _ in range(CALLS // 5):
        call()
    marks = [resident()]
    for _ in range(5):
        for _ in range(CALLS // 2):
            call()
        marks.append(resident())
    return statistics.median(b - a for a, b in zip(marks, marks[1:]))


def at_once(work):
    """work(i) in 8 threads, i = 0 .. 7, which begin together."""
    ready = threading.Barrier(THREADS)

    def begin(i):
        ready.wait()
        work(i)

    threads = [threading.Thread(target=begin, args=(i,)) for i in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


class Steady(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.entries = Entries(folder.name)

    def test_memory_and_references(self):
        """64 bytes lost in each call are LOST in a round."""
        held = self.entries.inputs + [_fourge.Context, _fourge.Gp, _fourge.Gw, None]
        for name, call in self.entries.calls.items():
            with self.subTest(name):
                call()
                counts = [sys.getrefcount(o) for o in held[:-1]]
                self.assertLess(growth(call), LOST, name)
                self.assertEqual([sys.getrefcount(o) for o in held[:-1]], counts, name)

    def test_growth_is_seen(self):
        lost = [bytes(64) for _ in range(200_000)]  # what tests before have left free takes nothing of what is lost below
        self.assertGreaterEqual(growth(lambda: (np.ones(8).sum(), lost.append(bytes(64)))), LOST)

    def test_threads(self):
        """8 threads call everything, each in an order of its own, on objects that they share; numbers stay the same
        up to the order of sums, which what a process has at hand decides."""
        calls = self.entries.calls
        wanted = {name: numbers(call()) for name, call in calls.items()}
        wrong = []

        def work(seed):
            order = np.random.default_rng(seed)
            for _ in range(3):
                for name in order.permutation(list(calls)):
                    try:
                        np.testing.assert_allclose(numbers(calls[name]()), wanted[name], rtol=1e-12, atol=1e-14)
                    except BaseException as e:  # noqa: BLE001
                        wrong.append(f"{name}: {e!r}")

        at_once(work)
        self.assertEqual(wrong, [])

    def test_readers_of_one_plan(self):
        """8 threads read one plan at once, all in different orders: its rows are made in scratch that it owns."""
        c, y, labels = self.entries.c, self.entries.y, list("aabbccdd")
        for seed in range(10):
            found = gw.align(c, c, distance="matrix", mode="exact", max_iter=3, epsilon=0.05, threads=1)
            reads = [lambda: found.rows(0, 2), lambda: found.top(2)[1], lambda: found.sparse(0.01)[2], lambda: found.apply(y),
                     lambda: found.labels(labels)[1], lambda: found.potentials, lambda: found.distances(1), lambda: found.vjp(c)[0]]
            wanted = [numbers(read()) for read in reads]
            wrong = []

            def work(i):
                order = np.random.default_rng([seed, i])
                for _ in range(20):
                    wrong.extend(k for k in order.permutation(len(reads)) if not np.array_equal(numbers(reads[k]()), wanted[k]))

            at_once(work)
            self.assertEqual(wrong, [])

    def test_a_call_out_of_a_callback(self):
        """Of the object that is at work: refused, where it would wait for itself."""
        x = np.random.default_rng(0).normal(size=(200, 2))
        y, seen = x[:, 0], []
        process = None

        def look(*_):
            try:
                process.log_likelihood()
            except errors.Internal as e:
                seen.append(str(e))
            return True

        process = gp.GP(x, y, "1*rbf + noise", progress=look, threads=1)
        deadline = time.monotonic() + 60
        while not seen and time.monotonic() < deadline:  # it is asked 20 times a second
            process.fit(max_iter=200)
            process.theta = process.theta * 1.5
        self.assertIn("in use", seen[0])


class CtrlC(unittest.TestCase):
    """Each solver ends with KeyboardInterrupt; left alone they would run for hours.  py_calls.py measures how soon."""

    @staticmethod
    def long_runs():
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(1200, 3)), rng.normal(size=1200)
        far = np.sqrt(((x[:, None] - x) ** 2).sum(-1))
        forever = 10**9
        two = np.stack([np.arange(200000), (np.arange(200000) + 1) % 200000], 1).ravel()
        ring = (200000, 200000), np.arange(0, 400001, 2), two, np.tile([1.0, 1.0000001], 200000)
        f, g = (np.tile(np.concatenate(v), 2) for v in ((two[::2], two[::2]), two.reshape(-1, 2).T))  # a ring of units, links twice
        noise = rng.normal(size=len(f))
        return {
            "fe.lsmr": lambda: fe.lsmr(ring, rng.normal(size=200000), atol=0.0, btol=0.0, cond_limit=0.0, max_iter=forever),
            "fe.demean": lambda: fe.demean(noise[:, None], np.stack([f, g], 1), method="cg", tol=1e-300, max_iter=forever),
            "fe.feols": lambda: fe.feols("y ~ 1 | f + g", {"y": noise, "f": f, "g": g}, method="cg", tol=1e-300, max_iter=forever),
            "gp.fit": lambda: gp.GP(x, y, "1*rbf(ard) + 1*matern32 + noise").fit(optimizer="adam", tol=1e-300, max_iter=forever),
            "gw.align": lambda: gw.align(x, x, distance="euclidean", max_iter=forever, min_iter=forever, tol=0.0),
            "gw.align, low rank": lambda: gw.align(x, x, k=8, rank=10, max_iter=forever, min_iter=forever, tol=0.0),
            "gw.transport": lambda: gw.transport(far, epsilon=1e-3, tol=0.0, max_iter=forever),
            "gw.barycenter": lambda: gw.barycenter([far, far], 400, tol=0.0, max_iter=forever, outer_tol=0.0, max_outer=forever),
        }

    def test_interrupt(self):
        for name, run in self.long_runs().items():
            with self.subTest(name):
                stop = threading.Timer(0.5, _thread.interrupt_main)
                began = time.monotonic()
                try:
                    with self.assertRaises(KeyboardInterrupt), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        stop.start()  # in here: outside, one that comes early would end all tests
                        run()
                finally:
                    stop.cancel()
                self.assertLess(time.monotonic() - began, 30)


if __name__ == "__main__":
    unittest.main()
