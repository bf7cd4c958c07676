"""The optimizer's module, with NumPy alone."""

import inspect
import pathlib
import pickle
import tempfile
import unittest
import warnings

import numpy as np

from fourge import _arrays, errors, soap

golden = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "soap.txt"


def gradients(rng, arrays):
    return [rng.normal(size=a.shape).astype(np.float32) for a in arrays]


def weights(rng):
    return [rng.normal(size=s).astype(np.float32) for s in ((6, 4), (4,), (3, 2, 5))]


class Soap(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(5)

    def test_trajectories_of_pytorch_optimizer(self):
        """Both sides compute in float32; 3e-3 lr a step is the bound derived in tests/unit/test_soap_golden.c."""
        lines = golden.read_text().splitlines()[1:]
        at = cases = 0
        while at < len(lines):
            word, _, _, m, n, steps, lr, b1, b2, beta, eps, decay, f, limit, bias = lines[at].split()
            self.assertEqual(word, "case")
            shape = int(m), int(n)
            row = lambda i: np.array(lines[i].split(), np.float32).reshape(shape)
            w = row(at + 1)
            opt = soap.SOAP([w], float(lr), (float(b1), float(b2)), float(beta), float(eps), float(decay),
                            profile="nikhilvyas", precondition_frequency=int(f), max_precond_dim=int(limit),
                            correct_bias=bias == "1")
            for t in range(1, int(steps) + 1):
                opt.step([row(at + 2 * t)])
                np.testing.assert_allclose(w, row(at + 2 * t + 1), rtol=0, atol=3e-3 * float(lr) * t + 1e-6)
            at += 2 + 2 * int(steps)
            cases += 1
        self.assertEqual(cases, 6)

    def test_without_factors_it_is_adamw(self):
        """In float64 by definition; float32 state leaves 1e-6 relative a step."""
        w = self.rng.normal(size=(5, 3))
        want, m, v = w.copy(), 0, 0
        opt = soap.SOAP([w], 0.01, (0.9, 0.99), max_precond_dim=0, weight_decay=0.1)
        for t in range(1, 9):
            g = self.rng.normal(size=w.shape)
            opt.step([g])
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            want -= 0.01 * 0.1 * want
            want -= 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
        np.testing.assert_allclose(w, want, atol=8e-6 * 0.01 * 8)

    def test_state_goes_on_to_the_bit(self):
        a = weights(self.rng)
        one = soap.SOAP(a, 0.01, precondition_frequency=3)
        for _ in range(4):
            one.step(gradients(self.rng, a))
        b, c, d = ([x.copy() for x in a] for _ in range(3))
        two, three, four = (soap.SOAP(x, 0.5, precondition_frequency=3) for x in (b, c, d))
        state = pickle.loads(pickle.dumps(one.state_dict()))
        two.load_state_dict(state)
        self.assertEqual(two.param_groups[0]["lr"], 0.01)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "state.frg"
            one.save(path)
            three.load(path)
            three.param_groups[0]["lr"] = 0.01
            path.write_bytes(path.read_bytes()[:-3])
            with self.assertRaises(errors.Mismatch):
                three.load(path)
        del state["fourge"]  # by the names of the other packages: the same up to rounding
        four.load_state_dict(state)
        for _ in range(5):
            g = gradients(self.rng, a)
            for opt in (one, two, three, four):
                opt.step(g)
        for x, y, z, u in zip(a, b, c, d):
            np.testing.assert_array_equal(x, y)
            np.testing.assert_array_equal(x, z)
            np.testing.assert_allclose(x, u, atol=1e-4)

    def test_parameters_move_between_optimizers(self):
        """Two optimizers deal their parameters anew and go on to the bit of one that holds both."""
        start = {"a": self.rng.normal(size=(4, 3)).astype(np.float32), "b": self.rng.normal(size=(5,)).astype(np.float32)}
        make = lambda names: soap.SOAP({n: start[n].copy() for n in names}, 0.01, precondition_frequency=2)
        weights_of = lambda opt: dict(zip(opt._names, opt._params))
        whole, first, second = make("ab"), make("a"), make("b")
        for t in range(6):
            if t == 3:
                taken = {"a": first.save_param("a"), "b": second.save_param("b")}
                now = weights_of(first) | weights_of(second)
                first, second = make("b"), make("a")
                for opt in (first, second):
                    for name, w in weights_of(opt).items():
                        opt.load_param(name, taken[name])
                        w[...] = now[name]
            g = {n: self.rng.normal(size=w.shape).astype(np.float32) for n, w in start.items()}
            for opt in (whole, first, second):
                opt.step({n: g[n] for n in opt._names})
        for name, w in (weights_of(first) | weights_of(second)).items():
            np.testing.assert_array_equal(w, weights_of(whole)[name])
        with self.assertRaises(errors.Mismatch):
            whole.load_param("a", taken["b"])
        with self.assertRaisesRegex(errors.BadArgument, "'c'"):
            whole.save_param("c")

    def test_export_and_import(self):
        """numpy.load reads what is exported, numpy.savez writes what is imported: the run goes on up to rounding."""
        parts = {"emerging": {"step", "exp_avg", "exp_avg_sq", "GG.0", "GG.1", "Q.0", "Q.1"},
                 "emerging-0.4": {"step", "exp_avg", "exp_avg_sq", "L", "R", "Q_L", "Q_R", "eigvals_L", "eigvals_R"}}
        for layout, names in parts.items():
            with tempfile.TemporaryDirectory() as folder:
                start = [self.rng.normal(size=(5, 4)).astype(np.float32)]
                a, path = [w.copy() for w in start], pathlib.Path(folder) / "state.npz"
                one = soap.SOAP(a, 0.01, eps=0.05)
                for _ in range(4):
                    one.step(gradients(self.rng, a))
                one.export(path, layout)
                with np.load(path) as file:
                    arrays = {name: file[name] for name in file.files}
                self.assertEqual({f"state.0.{n}" for n in names}, set(arrays))
                self.assertEqual(arrays["state.0.step"], 4)
                q = arrays["state.0.Q_L" if layout == "emerging-0.4" else "state.0.Q.0"]
                np.testing.assert_allclose(q.T @ q, np.eye(5), atol=1e-5)
                np.savez_compressed(path, **{n: v.astype(np.float64) if v.ndim else v for n, v in arrays.items()})
                b = [w.copy() for w in a]
                two = soap.SOAP(b, 0.01, eps=0.05)
                two.import_(path, layout)
                for _ in range(3):
                    g = gradients(self.rng, a)
                    one.step(g)
                    two.step(g)
                np.testing.assert_allclose(a[0], b[0], atol=1e-4)
                before = two.state_dict()["fourge"]
                np.savez(path, **{n: v[:-1] if v.ndim else v for n, v in arrays.items()})
                with self.assertRaises(errors.Mismatch):
                    two.import_(path, layout)
                self.assertEqual(two.state_dict()["fourge"], before)
                with self.assertRaisesRegex(errors.BadArgument, "heavyball"):
                    two.export(path, "heavyball")

    def test_refresh_between_steps(self):
        """The same bits as within them, and a state saved in between is the same."""
        results = []
        for later in (False, True):
            rng, a = np.random.default_rng(7), weights(np.random.default_rng(8))
            opt = soap.SOAP(a, 0.01, profile="nikhilvyas", precondition_frequency=2, refresh_async=later, threads=2)
            for _ in range(7):
                opt.step(gradients(rng, a))
            results.append((a, opt._engine.handle.save_param(0)))
        for x, y in zip(results[0][0], results[1][0]):
            np.testing.assert_array_equal(x, y)
        self.assertEqual(results[0][1], results[1][1])
        with self.assertRaisesRegex(errors.Unsupported, "nikhilvyas"):
            soap.SOAP(weights(self.rng), refresh_async=True)

    def test_rounding_by_chance(self):
        """Adam's first step is lr: 1 - 1e-4 lies between 1 and 1 - 2^-11 of float16, and is one of them so that the mean
        is right, within 4.5 standard errors; to the nearest nothing moves."""
        n, lr, unit = 4096, 1e-4, 2.0**-11

        def stepped(**options):
            w = np.ones(n, np.float16)
            soap.SOAP({"w": w}, lr, max_precond_dim=0, weight_decay=0.0, **options).step([np.ones(n, np.float32)])
            return w.astype(float)

        np.testing.assert_array_equal(stepped(), 1.0)
        w = stepped(stochastic_rounding=True, rounding_seed=3)
        self.assertEqual(set(w), {1.0, 1.0 - unit})
        share = lr / unit
        np.testing.assert_allclose(w.mean(), 1 - lr, atol=4.5 * unit * np.sqrt(share * (1 - share) / n))
        np.testing.assert_array_equal(stepped(stochastic_rounding=True, rounding_seed=3, threads=1), w)
        self.assertFalse(np.array_equal(stepped(stochastic_rounding=True, rounding_seed=4), w))

    def test_layouts_of_state(self):
        a = [self.rng.normal(size=(4, 3)).astype(np.float32)]
        for profile, keys in (("emerging", {"GG", "Q"}), ("emerging-0.4", {"L", "R", "Q_L", "Q_R", "eigvals_L", "eigvals_R"})):
            opt = soap.SOAP(a, profile=profile)
            opt.step(gradients(self.rng, a))
            state = opt.state_dict()["state"][0]
            self.assertEqual(set(state), {"step", "exp_avg", "exp_avg_sq"} | keys)
            self.assertEqual(state["step"], 1)
            q = state["Q"][0] if "Q" in state else state["Q_L"]
            np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-5)
        stack = [self.rng.normal(size=(2, 5, 3)).astype(np.float32)]  # two matrices side by side: 5 x 6
        opt = soap.SOAP(stack, profile="emerging-0.4")
        opt.step(gradients(self.rng, stack))
        state = opt.state_dict()
        self.assertEqual(state["state"][0]["exp_avg"].shape, (5, 6))
        self.assertEqual([state["state"][0][k].shape for k in ("L", "Q_R")], [(5, 5), (6, 6)])
        again = soap.SOAP([stack[0].copy()], profile="emerging-0.4")
        again.load_state_dict(state)
        np.testing.assert_array_equal(again.state_dict()["state"][0]["exp_avg"], state["state"][0]["exp_avg"])
        one = soap.SOAP([np.ones(3, np.float32)])
        self.assertEqual(one.state_dict()["state"][0]["GG"], [None])

    def test_state_of_joined_axes(self):
        """Stacks in every profile, and blocks of axes that were merged, go out and in again."""
        for shape, options in (((2, 3, 4), {"merge_rule": "stacked"}), ((4, 6, 5), {"max_precond_dim": 24, "block_dim": 6})):
            a = [self.rng.normal(size=shape).astype(np.float32)]
            opt = soap.SOAP(a, merge_dims=True, **options)
            opt.step(gradients(self.rng, a))
            saved = {k: v for k, v in opt.state_dict().items() if k != "fourge"}
            b = [a[0].copy()]
            again = soap.SOAP(b, merge_dims=True, **options)
            again.load_state_dict(saved)
            g = gradients(self.rng, a)
            opt.step(g)
            again.step(g)
            np.testing.assert_allclose(b[0], a[0], rtol=0, atol=1e-6)  # lr 1e-3, bases and factors to the bit

    def test_a_load_replaces_everything(self):
        """A state of an earlier step, without our bytes, gives what it gives to a new optimizer: nothing of what was there
        stays, neither the bases of the later one nor the state of a parameter that the file has not."""
        def run(before):
            rng, a = np.random.default_rng(3), [np.ones((4, 4), np.float32), np.ones((3, 3), np.float32)]
            opt = soap.SOAP(a, 1e-2, adam_warmup_steps=5)
            for _ in range(before):
                opt.step([rng.normal(size=x.shape).astype(np.float32) for x in a])
            return opt, a

        opt, a = run(2)
        saved = {k: v for k, v in opt.state_dict().items() if k != "fourge"}
        del saved["state"][1]
        results = []
        for before in (0, 3, 8):
            opt, b = run(before)
            b[0][:], b[1][:] = a[0], a[1]
            opt.load_state_dict(saved)
            rng = np.random.default_rng(4)
            for _ in range(2):
                opt.step([rng.normal(size=x.shape).astype(np.float32) for x in b])
            results.append(np.concatenate([x.ravel() for x in b]))
        np.testing.assert_array_equal(results[1], results[0])
        np.testing.assert_array_equal(results[2], results[0])

    def test_bases_that_are_the_identity(self):
        """Gradients whose singular directions are the axes have I for bases, which are bases: a load goes on."""
        a = [np.zeros((3, 3), np.float32)]
        opt = soap.SOAP(a, 1e-2, precondition_frequency=5)
        opt.step([np.diag([3, 2, 1]).astype(np.float32)])
        saved = {k: v for k, v in opt.state_dict().items() if k != "fourge"}
        b = [a[0].copy()]
        again = soap.SOAP(b, 1e-2, precondition_frequency=5)
        again.load_state_dict(saved)
        g = self.rng.normal(size=(3, 3)).astype(np.float32)
        opt.step([g])
        again.step([g])
        self.assertEqual(again.report["due"], 0)
        np.testing.assert_allclose(b[0], a[0], rtol=0, atol=1e-6)

    def test_groups_names_and_schedules(self):
        a = {"w": np.ones((3, 3), np.float32), "b": np.ones(3, np.float32)}
        opt = soap.SOAP(a, lr=0.1)
        opt.step({"w": np.eye(3, dtype=np.float32)})
        self.assertFalse((a["w"] == 1).all())
        self.assertTrue((a["b"] == 1).all())
        with self.assertRaises(errors.BadArgument):
            opt.step({"c": a["b"]})
        x, y = np.ones((2, 2), np.float32), np.ones((2, 2), np.float32)
        opt = soap.SOAP([{"params": [x]}, {"params": [y], "lr": 0.0}], lr=0.1)
        g = [np.eye(2, dtype=np.float32)] * 2
        opt.step(g)
        self.assertTrue((y == 1).all())
        kept = x.copy()
        opt.param_groups[0]["lr"] = 0.0
        opt.step(g)
        np.testing.assert_array_equal(x, kept)

    def test_frequencies(self):
        """A number, a function and a table that say the same give the same bits."""
        asked = []

        def function(t):
            asked.append(t)
            return 1 if t < 3 else 2

        results = []
        for f in (function, [(0, 1), (3, 2)], ((3, 2), (0, 1))):
            rng, a = np.random.default_rng(1), [np.ones((3, 4), np.float32)]
            opt = soap.SOAP(a, precondition_frequency=f)
            for _ in range(7):
                opt.step(gradients(rng, a))
            results.append(a[0])
        self.assertEqual(sorted(set(asked)), list(range(7)))
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])

        def fails(t):
            raise KeyError("mine")

        opt = soap.SOAP([np.ones((2, 2), np.float32)], precondition_frequency=fails)
        with self.assertRaisesRegex(KeyError, "mine"):
            opt.step([np.ones((2, 2), np.float32)])

    def test_threads_and_strides(self):
        results = []
        for threads, strided in ((1, False), (3, False), (2, True)):
            rng = np.random.default_rng(2)
            w = np.ones((2 * 7, 3 * 5), np.float32)[::2, ::3] if strided else np.ones((7, 5), np.float32)
            opt = soap.SOAP([w], threads=threads)
            for _ in range(4):
                opt.step(gradients(rng, [w]))
            results.append(np.array(w))
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_allclose(results[0], results[2], atol=1e-6)  # W - lr D with and without contraction

    def test_not_finite(self):
        w = np.ones((3, 3), np.float32)
        opt = soap.SOAP([w])
        bad = np.full((3, 3), np.nan, np.float32)
        with self.assertWarnsRegex(UserWarning, "param.0"):
            self.assertEqual(opt.step([bad])["nonfinite"], 1)
        self.assertTrue((w == 1).all())
        with self.assertRaises(errors.BadData):
            soap.SOAP([w], nonfinite="error").step([bad])

    def test_refusals(self):
        w = np.ones((3, 3), np.float32)
        with self.assertRaisesRegex(TypeError, "did you mean 'nesterov'"):
            soap.SOAP([w], nestrov=True)
        with self.assertRaisesRegex(ValueError, "lr"):
            soap.SOAP([w], lr=-1)
        with self.assertRaisesRegex(ValueError, "profile"):
            soap.SOAP([w], profile="nv")
        with self.assertRaisesRegex(ValueError, "betas"):
            soap.SOAP([w], betas=0.9)
        with self.assertRaisesRegex(ValueError, "param.0.*int64"):
            soap.SOAP([np.ones((3, 3), int)])
        fixed = w.copy()
        fixed.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "writable"):
            soap.SOAP([fixed])
        with self.assertRaises(ValueError):
            soap.SOAP([w]).step([np.ones((2, 3), np.float32)])
        with self.assertRaises(ValueError):
            soap.SOAP([w]).step([])
        with self.assertRaises(errors.Unsupported):
            soap.SOAP([w], data_format="channels_last")
        with self.assertRaises(errors.Mismatch):
            soap.SOAP([w]).load_state_dict({"state": {0: {"step": 1}}, "param_groups": [{"params": [0]}]})

    def test_a_refused_group_leaves_nothing(self):
        """The step after it, and a group added after it, are those of an optimizer that has never seen it."""
        w = weights(self.rng)[0]
        beside, later = w.copy(), [np.ones((3, 3), np.float32) for _ in range(2)]
        opts = soap.SOAP({"w": w}, lr=0.1), soap.SOAP({"w": beside}, lr=0.1)
        first = gradients(self.rng, [w])
        for opt in opts:
            opt.step(first)
        with self.assertRaisesRegex(errors.BadArgument, "y shares memory"):
            opts[0].add_param_group({"params": [np.ones((2, 2), np.float32), w[:2]], "names": ["x", "y"]})
        for opt, a in zip(opts, later):
            opt.add_param_group({"params": [a], "names": ["later"], "lr": 0.2})
        both = gradients(self.rng, [w, later[0]])
        for opt in opts:
            opt.step(both)
        np.testing.assert_array_equal(w, beside)
        np.testing.assert_array_equal(*later)

    def test_frequencies_that_are_none(self):
        for bad in (2.5, [], [(0, 1.5)], [3], "often", None):
            with self.assertRaisesRegex(errors.BadArgument, "precondition_frequency is"):
                soap.SOAP([np.ones((3, 3), np.float32)], precondition_frequency=bad)

    def test_layouts_of_numbers(self):
        """A parameter without axes, and a state that float32 does not hold."""
        w = np.array(2.0, np.float32), np.array(2.0, np.float32)
        opts = [soap.SOAP([a], lr=0.1) for a in w]
        opts[0].step([np.float32(0.5).reshape(())])
        w[1][...] = w[0]
        state = opts[0].state_dict()
        del state["fourge"]
        opts[1].load_state_dict(state)
        for opt in opts:
            opt.step([np.float32(0.25).reshape(())])
        self.assertEqual(*w)
        state["state"][0]["exp_avg_sq"] = np.array(np.inf, np.float32)
        with self.assertRaisesRegex(errors.Mismatch, "param.0 has an entry in exp_avg_sq"):
            opts[1].load_state_dict(state)

    def test_states_that_have_no_place(self):
        """Moments without factors (Adam's), or with those of other axes: named, with the remedy, and nothing has changed."""
        w = self.rng.normal(size=(4, 3)).astype(np.float32)
        opt = soap.SOAP({"w": w, "b": np.ones(3, np.float32)}, 0.01)
        opt.step([np.ones((4, 3), np.float32), np.ones(3, np.float32)])
        before, groups = opt.state_dict()["fourge"], [{"params": [0, 1], "lr": 0.5, "betas": (0.9, 0.999), "amsgrad": False}]
        moments = lambda shape: {"step": 7, "exp_avg": np.ones(shape, np.float32), "exp_avg_sq": np.ones(shape, np.float32)}
        bias, one = moments(3), {"GG": [np.eye(4), None], "Q": [np.eye(4), None]}
        for state, text in (
            ({1: bias, 0: moments((4, 3))}, "state of w has no factors, it is of Adam.*begin SOAP anew, with adam_warmup_steps"),
            ({1: bias, 0: moments((4, 3)) | one}, "state of w has no factor 0 of axis 1.*max_precond_dim"),
            ({1: bias, 0: moments((4, 3)) | {"L": np.eye(4)}}, "state of w has no factor 0 of axis 1"),
            ({1: bias, 0: {"step": 1, "momentum_buffer": np.ones((4, 3))}}, "state of w has no 'exp_avg'; it has .*momentum_buffer"),
            ({1: bias, 0: moments((4, 3)) | {"GG": [np.eye(4), np.eye(2)]}}, "GG.1"),
            ({}, "groups are of another optimizer.*shampoo_beta"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                opt.load_state_dict({"state": state, "param_groups": groups})
            self.assertEqual(opt.state_dict()["fourge"], before)
            self.assertEqual(opt.param_groups[0]["lr"], 0.01)
        free = soap.SOAP([w], max_precond_dim=0)  # without factors it is AdamW, whose state goes on
        free.load_state_dict({"state": {0: moments((4, 3))}, "param_groups": [{"params": [0], "lr": 0.5}]})
        self.assertEqual(free.state_dict()["state"][0]["step"], 7)
        self.assertEqual(free.param_groups[0]["lr"], 0.5)


#: An option: another value than the default, and the options beside which it has something to act on.
OTHER_VALUES = {
    "lr": (0.02, {}),
    "betas": ((0.8, 0.9), {}),
    "shampoo_beta": (0.5, {}),
    "eps": (1.0, {}),
    "weight_decay": (0.2, {}),
    "profile": ("emerging-0.4", {}),
    "weight_decay_method": ("l2", {}),
    "nesterov": (True, {}),
    "maximize": (True, {}),
    "correct_bias": (False, {}),
    "correct_shampoo_beta_bias": (False, {}),
    "max_update_rms": (0.1, {}),
    "normalize_update": (True, {}),
    "trace_normalization": (True, {}),
    "denom_floor": (1e6, {}),
    "precondition_frequency": (2, {}),
    "precondition_warmup_steps": (3, {"precondition_frequency": 4}),
    "adam_warmup_steps": (3, {}),
    "stagger": (True, {"precondition_frequency": 3}),
    "refresh_async": (True, {"profile": "nikhilvyas", "precondition_frequency": 1}),
    "power_iter_steps": (3, {}),
    "use_eigh": (True, {}),
    "use_adaptive_criteria": (True, {"adaptive_tolerance": 0.1}),
    "adaptive_tolerance": (0.1, {"use_adaptive_criteria": True}),
    "adaptive_scope": ("factor", {"use_adaptive_criteria": True, "adaptive_tolerance": 0.02}),
    "adaptive_form": ("offdiagonal", {"use_adaptive_criteria": True, "adaptive_tolerance": 0.1}),
    "use_kl_shampoo": (True, {"matrices": True}),
    "kl_init": ("unit", {"use_kl_shampoo": True, "matrices": True}),
    "sort_when": ("after_qr", {"moment2_order": "rank"}),
    "moment2_order": ("rotate", {}),
    "order": ("update_first", {}),
    "warmup_v": ("reset", {"adam_warmup_steps": 3}),
    "moment1_basis": ("eigen", {}),
    "qr_method": ("vendor", {}),
    "ridge_c": (1e8, {}),
    "ortho_tol": (1e-7, {"qr_method": "cholesky"}),
    "nonfinite": ("propagate", {}),
    "precondition_1d": (True, {}),
    "max_precond_dim": (5, {}),
    "block_dim": (3, {}),
    "merge_dims": (True, {}),
    "merge_rule": ("fan_in", {"merge_dims": True, "max_precond_dim": 10}),
    "stochastic_rounding": (True, {}),
    "rounding_seed": (5, {"stochastic_rounding": True}),
    # of the context
    "threads": (3, {}),
    "seed": (5, {}),
    "memory_limit": (1, {}),
    "time_limit": (1.0, {}),
    # of other packages
    "use_batched_qr": (False, {}),
    "batched_qr_num_streams": (4, {}),
    "stream_list": ([object()], {}),
    "fp32_matmul_prec": ("high", {}),
    "qr_fp32_matmul_prec": ("medium", {}),
    "data_format": ("channels_last", {}),
    "adaptive_update_tolerance": (0.1, {"use_adaptive_criteria": True}),
    "normalize_grads": (True, {}),
    "normalize_gradient": (True, {}),
    "max_precondition_dim": (5, {}),
}


def outcome(matrices=False, **options):
    """The parameters (or those with two axes) after six steps of which one has NaN, the memory held, and what the reports
    say of the refreshes."""
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=shape).astype(kind) for shape, kind in
              (((6, 4), np.float32), ((5,), np.float32), ((2, 3, 4), np.float32), ((4, 4), np.float16))]
    arrays = [a for a in arrays if a.ndim == 2 or not matrices]
    opt = soap.SOAP(arrays, **{"lr": 0.05, **options})
    done = []
    for step in range(6):
        grads = gradients(rng, arrays)
        if step == 5:
            grads[0][0, 0] = np.nan
        report = opt.step(grads)
        done.append({k: v for k, v in report.items() if not k.endswith("seconds") and k != "orthogonality"})
    return [a.tobytes() for a in arrays], opt._engine.context.bytes_held(), done


class Keywords(unittest.TestCase):
    """Each keyword acts, or is refused, or is warned of with what is done instead: none is taken and forgotten."""

    def setUp(self):
        _arrays._warned.clear()

    def outcome(self, options):
        """What came out, in words where it was refused or warned of."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = outcome(**options)
            except errors.Error as e:
                return str(e)
        told = [str(w.message) for w in caught if "no effect" in str(w.message)]
        return told or result

    def test_the_table_has_all(self):
        named = set(inspect.signature(soap.SOAP).parameters) - {"params", "options"}
        self.assertEqual(set(OTHER_VALUES), named | {*soap.defaults()} | {*soap.ELSEWHERE} | {*soap.ALIASES, "data_format"}
                         | {*_arrays.CONTEXT_OPTIONS} - {"device", "spool"})

    def test_every_one_acts_or_is_refused(self):
        for key, (value, beside) in OTHER_VALUES.items():
            with self.subTest(key):
                usual = self.outcome(beside)
                self.assertIsInstance(usual, tuple)
                self.assertEqual(self.outcome(beside), usual)
                self.assertNotEqual(self.outcome({**beside, key: value}), usual)

    def test_what_is_not_done_is_said_once(self):
        w = [np.ones((3, 3), np.float32)]
        for key, text in (("use_batched_qr", "use_batched_qr=False.*one call"), ("batched_qr_num_streams", "streams"),
                          ("stream_list", "streams"), ("fp32_matmul_prec", "float32"), ("qr_fp32_matmul_prec", "float32"),
                          ("seed", "rounding_seed"), ("time_limit", "comes to its end")):
            with self.assertWarnsRegex(UserWarning, text) as seen:
                soap.SOAP(w, **{key: OTHER_VALUES[key][0]})
            self.assertEqual(seen.filename, __file__)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                soap.SOAP(w, **{key: OTHER_VALUES[key][0]})
        _arrays._warned.clear()
        with warnings.catch_warnings():  # what is done anyway
            warnings.simplefilter("error")
            soap.SOAP(w, use_batched_qr=True, batched_qr_num_streams=1, stream_list=None, fp32_matmul_prec="highest",
                      qr_fp32_matmul_prec="highest", data_format="channels_first")
        for key, value in (("use_batched_qr", "no"), ("fp32_matmul_prec", "f32"), ("qr_fp32_matmul_prec", None)):
            with self.assertRaisesRegex(ValueError, key):
                soap.SOAP(w, **{key: value})

    def test_what_leaves_the_other_nothing_is_refused(self):
        w = [np.ones((3, 3), np.float32)]
        for key, options in (("nesterov", {"profile": "nikhilvyas", "nesterov": True}),
                             ("adam_warmup_steps", {"profile": "nikhilvyas", "adam_warmup_steps": 2}),
                             ("ROTATE", {"use_eigh": True, "moment2_order": "rotate"}),
                             ("power_iter_steps", {"use_eigh": True, "power_iter_steps": 2}),
                             ("refresh_async", {"refresh_async": True})):
            with self.assertRaisesRegex(errors.Unsupported, key):
                soap.SOAP(w, **options)

    def test_names_of_other_packages(self):
        w = np.ones((3, 3), np.float32)
        opt = soap.SOAP([w], normalize_grads=True, adaptive_update_tolerance=1e-4)
        self.assertTrue(opt.param_groups[0]["normalize_update"])
        self.assertEqual(opt.param_groups[0]["adaptive_tolerance"], 1e-4)


if __name__ == "__main__":
    unittest.main()
