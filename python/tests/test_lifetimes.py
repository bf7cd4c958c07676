"""What outlives what, and whose turn it is: cycles, functions that are held, strings that are lent, callbacks that raise,
objects that several calls read, waits that Ctrl-C ends, warnings of other threads."""

import _thread
import gc
import subprocess
import sys
import threading
import time
import unittest
import warnings
import weakref

import numpy as np

from fourge import _fourge, errors, fe, gp, gw, soap

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
KERNEL = "1*rbf(l=1) + noise(0.1)"


class Cycles(unittest.TestCase):
    """An owner whose method is the function that its object calls: the collector finds both."""

    def check(self, make):
        class Owner:
            def look(self, *_):
                return False

        owner = Owner()
        owner.made = make(owner)
        gone = weakref.ref(owner)
        del owner
        gc.collect()
        self.assertIsNone(gone())

    def test_progress(self):
        y, codes = X[:, 0].copy(), np.arange(60) % 5
        for make in (
            lambda o: gp.GP(X, y, KERNEL, progress=o.look),
            lambda o: fe.feols("y ~ x | f", {"y": y, "x": X[:, 1], "f": codes}, progress=o.look),
            lambda o: gw.align(X, X, k=3, max_iter=2, progress=o.look),
            lambda o: gw.transport(np.eye(3), progress=o.look, max_iter=3),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.check(make)

    def test_frequency(self):
        self.check(lambda o: soap.SOAP([np.zeros((3, 2), np.float32)], precondition_frequency=lambda t, o=o: 5))


class Held(unittest.TestCase):
    def test_frequencies_that_were_replaced(self):
        """A scheduler that changes a group at every step leaves one function behind, not one a step."""
        w, g = np.zeros((3, 2), np.float32), np.ones((3, 2), np.float32)
        frequency = lambda t: 2
        opt = soap.SOAP([w], precondition_frequency=frequency, threads=1)
        opt.step([g])
        before = sys.getrefcount(frequency)
        for step in range(20):
            opt.param_groups[0]["lr"] = 1e-3 / (step + 1)
            opt.step([g])
        self.assertEqual(sys.getrefcount(frequency), before)

    def test_names_of_any_sequence(self):
        """A sequence that makes its words when it is asked keeps none of them."""
        class Names:
            def __len__(self):
                return 2

            def __getitem__(self, i):
                return "".join(["ab"[i]] * 40 if i < 2 else [][i])

        want = gp.GP(X, X[:, 0], "1*on(2; rbf) + noise", threads=1).log_likelihood()
        for names in (Names(), np.array(["a" * 40, "b" * 40]), ("a" * 40, "b" * 40)):
            process = gp.GP(X, X[:, 0], f"1*on({'b' * 40}; rbf) + noise", columns=names, threads=1)
            self.assertEqual(process.log_likelihood(), want)

    def test_effects_after_a_fit_that_was_stopped(self):
        """The fit that has the effects takes the place of the first one only when it is there."""
        codes = np.arange(60) % 5
        fit = fe.feols("y ~ x | f", {"y": X[:, 0].copy(), "x": X[:, 1].copy(), "f": codes})
        real = _fourge.Fe

        def stopped(*_):
            raise KeyboardInterrupt

        try:
            fe._fourge.Fe = stopped
            with self.assertRaises(KeyboardInterrupt):
                fit.fixef()
        finally:
            fe._fourge.Fe = real
        self.assertEqual(set(fit.fixef()), {"f"})

    def test_effects_while_another_thread_makes_them(self):
        codes = np.arange(60) % 5
        fit = fe.feols("y ~ x | f", {"y": X[:, 0].copy(), "x": X[:, 1].copy(), "f": codes})
        real, nested = _fourge.Fe, []

        def slow(*call):
            if not nested:  # another thread asks while the fit is made
                nested.append(None)
                thread = threading.Thread(target=lambda: nested.append(set(fit.fixef())))
                thread.start()
                thread.join()
            return real(*call)

        try:
            fe._fourge.Fe = slow
            self.assertEqual(set(fit.fixef()), {"f"})
        finally:
            fe._fourge.Fe = real
        self.assertEqual(nested[1:], [{"f"}])


class Callbacks(unittest.TestCase):
    """The first look of a fresh context comes at once; the second not before 50 ms."""

    @staticmethod
    def runs(progress):
        y, codes = X[:, 0].copy(), np.arange(60) % 5
        two = np.stack([codes, np.arange(60) % 7], 1)
        frame = {"y": y, "x": X[:, 1].copy(), "f": codes, "g": two[:, 1]}
        chain = (60, 60), np.arange(0, 121, 2), np.stack([np.arange(60), (np.arange(60) + 1) % 60], 1).ravel(), np.tile([1.0, 0.5], 60)
        far = np.sqrt(((X[:, None] - X) ** 2).sum(-1))
        more = {"progress": progress, "threads": 1}
        return {
            "fe.lsmr": lambda: fe.lsmr(chain, y, **more),
            "fe.demean": lambda: fe.demean(X, two, method="cg", **more),
            "fe.feols": lambda: fe.feols("y ~ x | f + g", frame, method="cg", **more),
            "gp.fit": lambda: gp.GP(X, y, KERNEL, **more).fit(),
            "gw.align": lambda: gw.align(X, X, distance="euclidean", **more),
            "gw.transport": lambda: gw.transport(far, tol=0.0, **more),
        }

    def test_exceptions(self):
        class Stop(Exception):
            pass

        def fail(*_):
            raise Stop

        for name, run in self.runs(fail).items():
            with self.subTest(name), self.assertRaises(Stop):
                run()
        for name, run in self.runs(lambda *_: np.zeros(2)).items():  # an answer that is neither true nor false
            with self.subTest(name), self.assertRaisesRegex(ValueError, "ambiguous"):
                run()

    def test_a_stop_leaves_a_marked_result_or_none(self):
        y, far = X[:, 0].copy(), np.sqrt(((X[:, None] - X) ** 2).sum(-1))
        stop = lambda *_: True
        for name, run in self.runs(stop).items():
            with self.subTest(name), warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                try:
                    found = run()
                except (errors.Stopped, ValueError) as e:
                    self.assertIn("stopped", str(e))
                    continue
                out = found[1] if isinstance(found, tuple) else found
                report = out if isinstance(out, dict) else getattr(out, "report", None) or out.result
                self.assertTrue(report.get("status") == "FRG_INTERRUPTED" or report.get("converged") is False,
                                f"{report} {seen}")

        def fresh():
            process = gp.GP(X, y, KERNEL, threads=1)
            process._context = _fourge.Context({}, stop)
            process._gp = _fourge.Gp(process._context, X, y, KERNEL, {}, None, None, None, None)
            return process

        graph = lambda: gw.Graph(_fourge.Graph.knn(_fourge.Context({}, stop), X, {"k": 3}))
        for name, call in {
            "value": lambda: fresh().value(), "gradient": lambda: fresh().gradient(x=True), "information": lambda: fresh().information(),
            "loo": lambda: fresh().loo(latent=True), "folds": lambda: fresh().folds(np.arange(60) % 5), "predict": lambda: fresh().predict(X),
            "sample": lambda: fresh().sample(X, 2), "fantasies": lambda: fresh().fantasies(X[None, :1], X[None, :1, :1], X),
            "append": lambda: fresh().append(X[:1], y[:1]).predict(X), "paths": lambda: graph().paths(), "landmarks": lambda: graph().landmarks(3)[1],
            "barycenter": lambda: _fourge.gw_barycenter(_fourge.Context({}, stop), [far], [None], None, None, None, {}, np.empty((5, 5))),
        }.items():
            with self.subTest(name):
                try:
                    found = call()
                except errors.Stopped as e:
                    self.assertIn("stopped", str(e))
                    continue
                for part in found if isinstance(found, tuple) else (found,):  # it did not look before it was done
                    values = part.values() if isinstance(part, dict) else [part]
                    self.assertTrue(all(np.all(np.isfinite(v)) for v in values if not isinstance(v, (str, dict)) ), name)

    def test_ctrl_c(self):
        def fail(*_):
            raise KeyboardInterrupt

        for name, run in self.runs(fail).items():
            with self.subTest(name), self.assertRaises(KeyboardInterrupt):
                run()

    def test_a_frequency_that_raises(self):
        w = [np.zeros((3, 2), np.float32), np.zeros((2, 2), np.float32)]
        fail = lambda t: 1 // 0
        opt = soap.SOAP([{"params": w[:1]}, {"params": w[1:]}], precondition_frequency=fail)
        with self.assertRaises(ZeroDivisionError):
            for _ in range(3):
                opt.step([np.ones((3, 2), np.float32), np.ones((2, 2), np.float32)])

    def test_in_another_interpreter(self):
        """A callback runs where the call came from, and its exception comes back there."""
        code = ("try:\n    import _xxsubinterpreters as s\nexcept ImportError:\n    print('done'); raise SystemExit\n"
                "import sys\nfrom fourge import _fourge\ni = s.create()\n"
                "s.run_string(i, 'import sys; sys.path[:] = ' + repr(sys.path) + '''\nfrom array import array\nfrom fourge import _fourge\n"
                "import sys\nsys.mark = 1\nseen = []\ndef look(*a):\n    seen.append(sys.mark)\n    raise KeyError('mine')\n"
                "x = array(\"d\", range(40))\ncost = memoryview(array(\"d\", range(36))).cast(\"B\").cast(\"d\", (6, 6))\n"
                "solver = _fourge.Sinkhorn(_fourge.Context({}, look), cost, None, None, {\"tol\": 0.0})\n"
                "try:\n    solver.run()\nexcept KeyError as e:\n    seen.append(str(e))\n"
                "assert len(seen) == 2, seen\n''')\ns.destroy(i)\nprint('done')\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)


class Turns(unittest.TestCase):
    def refused_within(self, run, call):
        """`call` out of a callback of `run`, whose first look comes at once, is refused as one in use."""
        seen = []

        def look(*_):
            try:
                call()
            except errors.Internal as e:
                seen.append(str(e))
            return True

        try:
            run(look)
        except (ValueError, errors.Error):  # there is no plan of a run that was stopped
            pass
        self.assertEqual(len(seen), 1)
        self.assertIn("in use", seen[0])

    def test_graphs_of_an_alignment(self):
        """What an alignment reads is in use while it runs: a graph sorts its nodes when it is first needed."""
        graph = gw.Graph.knn(X, 3)
        self.refused_within(lambda look: gw.align(graph, gw.Graph.knn(X, 4), progress=look, threads=1), lambda: graph.paths([0]))

    def test_alignments_of_an_embedding(self):
        graph = gw.Graph.knn(X, 3)
        found = gw.align(X, X, k=3, max_iter=2)
        out, query = np.zeros((60, 2)), (graph._graph, found._solver, np.zeros((60, 2)))
        embed = lambda look: _fourge.gw_embed(_fourge.Context({}, look), graph._graph, out, [query], {})
        self.refused_within(embed, lambda: found.rows(0, 1))
        self.refused_within(embed, lambda: graph.paths([0]))

    def test_two_that_share_both_ways(self):
        """Runs on the same two graphs, in the one order and in the other: neither waits for the other for ever."""
        a, b = gw.Graph.knn(X, 3), gw.Graph.knn(X[:40], 3)
        results = []
        work = lambda x, y: results.append(gw.align(x, y, max_iter=3, threads=1).report["energy"])
        threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in [(a, b), (b, a)] * 4]
        for t in threads:
            t.start()
        for t in threads:
            t.join(100)
        self.assertEqual(len(results), 8)

    def test_ctrl_c_ends_a_wait(self):
        """The main thread waits for another one's call of the same object; Ctrl-C ends the wait, not the call."""
        process = gp.GP(X, X[:, 0], KERNEL, threads=1)
        running, go_on = threading.Event(), threading.Event()

        def hold(*_):
            running.set()
            go_on.wait(100)
            return False

        process._context = _fourge.Context({}, hold)
        process._gp = _fourge.Gp(process._context, X, X[:, 0], KERNEL, {}, None, None, None, None)
        other = threading.Thread(target=process.fit)
        other.start()
        self.assertTrue(running.wait(100))
        stop = threading.Timer(0.3, _thread.interrupt_main)
        give_up = threading.Timer(60, go_on.set)
        give_up.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                stop.start()
                process.log_likelihood()
                time.sleep(1)
            self.assertFalse(go_on.is_set())
        finally:
            give_up.cancel()
            go_on.set()
            other.join()
        self.assertTrue(np.isfinite(process.log_likelihood()))

    def test_warnings_are_of_the_thread(self):
        """A warning waits for the thread whose call had it, whoever asks first and whatever is called in between."""
        process = gp.GP(X, X[:, 0], KERNEL, threads=1)
        out, elsewhere = np.empty(3), []
        process._gp.predict(X[:3], False, 1e6, None, None, out, None, None, None)  # all variances are below the floor
        thread = threading.Thread(target=lambda: elsewhere.append((process.value(), process._context.warnings())))
        thread.start()
        thread.join()
        self.assertEqual(elsewhere[0][1], [])
        self.assertEqual(len(process._context.warnings()), 1)
        self.assertEqual(process._context.warnings(), [])


if __name__ == "__main__":
    unittest.main()
