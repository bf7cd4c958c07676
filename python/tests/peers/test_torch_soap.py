"""fourge.torch.SOAP inside torch, and beside pytorch_optimizer."""

import contextlib
import copy
import inspect
import io
import os
import tempfile
import unittest
import warnings

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from fourge import _arrays, errors, soap
from fourge.torch import SOAP


def model(dtype=torch.float32):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.Tanh(), torch.nn.Linear(9, 3)).to(dtype)


def train(net, opt, steps, seed=1):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        x, y = torch.randn(16, 6, generator=generator), torch.randn(16, 3, generator=generator)
        dtype = next(net.parameters()).dtype
        opt.zero_grad()
        torch.nn.functional.mse_loss(net(x.to(dtype)), y.to(dtype)).backward()
        opt.step()
    return [p.detach().clone() for p in net.parameters()]


class Equal(unittest.TestCase):
    def same(self, a, b):
        for x, y in zip(a, b):
            self.assertTrue(torch.equal(x, y))

    def test_bits_of_the_numpy_class(self):
        net = model()
        arrays = [p.detach().numpy().copy() for p in net.parameters()]
        ours = SOAP(net.parameters(), 0.01, precondition_frequency=2)
        theirs = soap.SOAP(arrays, 0.01, precondition_frequency=2)
        for step in range(5):
            opt_before = [p.data_ptr() for p in net.parameters()]
            train_grads(net, step)
            theirs.step([p.grad.numpy() for p in net.parameters()])
            ours.step()
            self.assertEqual(opt_before, [p.data_ptr() for p in net.parameters()])
        self.same([p.detach() for p in net.parameters()], [torch.from_numpy(a) for a in arrays])

    def test_pytorch_optimizer(self):
        """Both in float32 with eps = 0.05: 3e-3 lr a step, derived in tests/unit/test_soap_golden.c.  Square weights:
        the first factor of another has a null space, in which every basis is right."""
        from pytorch_optimizer import SOAP as Peer

        settings = dict(lr=0.05, betas=(0.95, 0.95), eps=0.05, weight_decay=0.01, precondition_frequency=2)
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 6))
        nets = net, copy.deepcopy(net)
        ours = SOAP(nets[0].parameters(), profile="nikhilvyas", **settings)
        theirs = Peer(nets[1].parameters(), **settings)
        for step in range(1, 13):
            train_grads(nets[0], step)
            for p, q in zip(*(n.parameters() for n in nets)):
                q.grad = p.grad.clone()
            ours.step()
            theirs.step()
            for p, q in zip(*(n.parameters() for n in nets)):
                torch.testing.assert_close(p, q, rtol=0, atol=3e-3 * 0.05 * step + 1e-6)

    def test_merged_axes_of_pytorch_optimizer(self):
        """Axes join up to max_precond_dim, there and here: 4 x 3 x 12 and 3 x 4 x 2 x 6 become 12 x 12, 6 x 2 x 3 x 1 becomes 6 x 6,
        and the 9 of 4 x 9 is too long for a factor of 6.  Square as above, with its tolerance.  (Where all axes become one, pytorch_optimizer 4.1 reshapes to [1] and fails.)"""
        from pytorch_optimizer import SOAP as Peer

        settings = dict(lr=0.05, betas=(0.95, 0.95), eps=0.05, weight_decay=0.01, precondition_frequency=2, merge_dims=True)
        for limit, shapes, factors in ((12, ((4, 3, 12), (3, 4, 2, 6)), ([12, 12], [12, 12])), (6, ((6, 2, 3, 1), (4, 9)), ([6, 6], [4]))):
            torch.manual_seed(0)
            mine = [torch.nn.Parameter(torch.randn(*shape)) for shape in shapes]
            their = [torch.nn.Parameter(p.detach().clone()) for p in mine]
            ours = SOAP(mine, profile="nikhilvyas", max_precond_dim=limit, **settings)
            theirs = Peer(their, max_precondition_dim=limit, **settings)
            for step in range(1, 8):
                for p, q in zip(mine, their):
                    p.grad = torch.randn(p.shape)
                    q.grad = p.grad.clone()
                ours.step()
                theirs.step()
                for p, q in zip(mine, their):
                    torch.testing.assert_close(p, q, rtol=0, atol=3e-3 * 0.05 * step + 1e-6)
            for one, sizes in zip(ours.state_dict()["state"].values(), factors):
                self.assertEqual([len(k) for k in one["GG"]], sizes)
            self.assertEqual(ours.report["long_axes"], int(limit == 6))

    def test_checkpoints_of_pytorch_optimizer(self):
        """Its state goes on here, from state_dict and from an archive of its arrays; an archive exported here goes on
        there.  One refresh every two steps and eps = 0.05: the tolerance of the test above, from the step of the change
        on; where the first bases are taken over, no null space is left to chance."""
        from pytorch_optimizer import SOAP as Peer

        settings = dict(lr=0.05, betas=(0.95, 0.95), eps=0.05, weight_decay=0.01, precondition_frequency=2)
        torch.manual_seed(1)
        net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Linear(4, 3))
        theirs = Peer(net.parameters(), **settings)
        for step in range(1, 6):
            train_grads(net, step)
            theirs.step()
        nets = [copy.deepcopy(net) for _ in range(2)]
        loaded = SOAP(nets[0].parameters(), profile="nikhilvyas", **settings)
        loaded.load_state_dict(theirs.state_dict())
        arrays = [p.detach().numpy() for p in nets[1].parameters()]
        imported = soap.SOAP(arrays, profile="nikhilvyas", **settings)
        flat = {"param_groups.0.step": np.array(theirs.state_dict()["param_groups"][0]["step"])}
        for i, state in theirs.state_dict()["state"].items():
            for key in ("exp_avg", "exp_avg_sq"):
                flat[f"state.{i}.{key}"] = state[key].numpy()
            for key in ("GG", "Q"):
                flat |= {f"state.{i}.{key}.{axis}": m.numpy() for axis, m in enumerate(state[key]) if len(m)}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state.npz")
            np.savez(path, **flat)
            imported.import_(path, "pytorch_optimizer")
            imported.export(path, "pytorch_optimizer")
            with np.load(path) as file:
                back = {name: file[name] for name in file.files}
        other = copy.deepcopy(net)
        again = Peer(other.parameters(), **settings)
        state = copy.deepcopy(theirs.state_dict())
        state["param_groups"][0]["step"] = int(back["param_groups.0.step"])
        for i, part in state["state"].items():
            part |= {key: torch.from_numpy(back[f"state.{i}.{key}"]) for key in ("exp_avg", "exp_avg_sq")}
            part |= {key: [torch.from_numpy(back[f"state.{i}.{key}.{a}"]) if len(m) else [] for a, m in enumerate(part[key])]
                     for key in ("GG", "Q")}
            self.assertEqual(part["shampoo_beta"] or 0.95, float(back[f"state.{i}.shampoo_beta"]))
            self.assertEqual(part["precondition_frequency"], int(back[f"state.{i}.precondition_frequency"]))
        again.load_state_dict(state)
        for step in range(6, 12):
            train_grads(net, step)
            grads = [p.grad.clone() for p in net.parameters()]
            for n in (nets[0], other):
                for p, g in zip(n.parameters(), grads):
                    p.grad = g.clone()
            theirs.step()
            again.step()
            loaded.step()
            imported.step([g.numpy() for g in grads])
            for p, q, r, s in zip(net.parameters(), nets[0].parameters(), arrays, other.parameters()):
                for x in (q.detach(), torch.from_numpy(r), s.detach()):
                    torch.testing.assert_close(p.detach(), x, rtol=0, atol=3e-3 * 0.05 * (step - 5) + 1e-6)

    def test_a_language_model(self):
        """An embedding of 50000 x 64 and the output layer of as many words go in whole: their long axes have no factor, the
        others have, and the step is that of a group whose longer axes were named."""
        words, width = 50000, 64
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Embedding(words, width), torch.nn.Linear(width, width), torch.nn.Tanh(),
                                  torch.nn.Linear(width, words, bias=False))
        other = copy.deepcopy(net)
        opt, named = SOAP(net.parameters(), lr=1e-3), SOAP(other.parameters(), lr=1e-3, max_precond_dim=width)
        told = opt.estimate()
        self.assertEqual((told["factors"], told["long_axes"], told["largest_factor"]), (4, 2, width))
        self.assertEqual(opt.report.get("long_axes"), 0)
        numbers = sum(p.numel() for p in net.parameters())
        self.assertEqual(told["numbers"], numbers)
        # moments, four factors and bases of 64 x 64, their eigenvalues and orders, rounded up to 64 bytes each
        self.assertLessEqual(8 * numbers + 8 * 4 * width**2, told["state_bytes"])
        self.assertLess(told["state_bytes"], 8 * numbers + 8 * 4 * width**2 + 4096)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(2):
                x = torch.randint(0, words, (16,))
                for n, o in ((net, opt), (other, named)):
                    o.zero_grad()
                    torch.nn.functional.cross_entropy(n(x), x).backward()
                    o.step()
        self.assertEqual((opt.report["updated"], opt.report["long_axes"], opt.report["due"]), (4, 2, 4))
        self.same((p.detach() for p in net.parameters()), (p.detach() for p in other.parameters()))
        self.assertEqual(opt.state_dict()["state"][0]["GG"][0].numel(), 0)

    def test_slow_steps_are_told_before(self):
        """An axis of 3000 has a factor: a step takes more than a second on one thread, which is said before it begins, once."""
        p = torch.nn.Parameter(torch.zeros(3000, 2))
        opt = SOAP([p], threads=1)
        self.assertGreater(opt.estimate()["estimated_refresh_seconds"], 1)
        p.grad = torch.full_like(p, float("nan"))  # is left alone: nothing of the size is computed
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            opt.step()
            opt.step()
        said = [str(w.message) for w in caught if "FRG-SOAP-103" in str(w.message)]
        self.assertEqual(len(said), 1)
        self.assertRegex(said[0], r"will take about .* s.*order 3000 \(axis 0 of 'param.0'\)")
        self.assertEqual(opt.report["updated"], 0)
        self.assertEqual(SOAP([torch.nn.Parameter(torch.zeros(3000, 2))], max_precond_dim=2999).estimate()["largest_factor"], 2)

    def test_summary(self):
        opt = SOAP(model().parameters(), lr=0.125)
        self.assertIn("largest order", opt._repr_html_())
        with contextlib.redirect_stdout(io.StringIO()) as text:
            opt.summary()
        self.assertIn("0.125", text.getvalue())
        self.assertIn("Parameter Group 0", repr(opt))  # as torch's

    def test_adamw_where_no_axis_has_a_factor(self):
        nets = model(), model()
        a = train(nets[0], SOAP(nets[0].parameters(), 0.01, (0.9, 0.99), max_precond_dim=0, weight_decay=0.1), 10)
        b = train(nets[1], torch.optim.AdamW(nets[1].parameters(), 0.01, (0.9, 0.99), weight_decay=0.1), 10)
        for x, y in zip(a, b):
            torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-6)

    def test_types(self):
        """float64 weights follow the float32 state.  Those of 16 bits are rounded, and so were their gradients, which
        moves single entries by a step of lr where a factor has a null space: on average three steps are within lr."""
        for dtype, most in ((torch.float64, 1e-6), (torch.bfloat16, 0.01), (torch.float16, 0.01)):
            net, reference = model(dtype), model()
            opt, other = SOAP(net.parameters(), 0.01, eps=0.05), SOAP(reference.parameters(), 0.01, eps=0.05)
            for step in range(3):
                train_grads(reference, step)
                for p, q in zip(net.parameters(), reference.parameters()):
                    p.grad = q.grad.to(dtype)
                opt.step()
                other.step()
            for p, q in zip(net.parameters(), reference.parameters()):
                self.assertLess((p.float() - q).abs().mean(), most)


def train_grads(net, seed):
    generator = torch.Generator().manual_seed(seed)
    for p in net.parameters():
        p.grad = torch.randn(p.shape, generator=generator).to(p.dtype)


class Torch(unittest.TestCase):
    same = Equal.same

    def test_resume(self):
        """torch.save, weights_only load: the same bits; without our bytes the same up to rounding."""
        net = model()
        opt = SOAP(net.parameters(), 0.01, precondition_frequency=3)
        train(net, opt, 4)
        file = io.BytesIO()
        torch.save(opt.state_dict(), file)
        file.seek(0)
        saved = torch.load(file, weights_only=True)
        nets = [copy.deepcopy(net) for _ in range(2)]
        others = [SOAP(n.parameters(), 0.5, precondition_frequency=3) for n in nets]
        others[0].load_state_dict(saved)
        self.assertEqual(others[0].param_groups[0]["lr"], 0.01)
        others[1].load_state_dict({k: v for k, v in saved.items() if k != "fourge"})
        want = train(net, opt, 5)
        self.same(train(nets[0], others[0], 5), want)
        for x, y in zip(train(nets[1], others[1], 5), want):
            torch.testing.assert_close(x, y, rtol=0, atol=1e-4)

    def test_layout_of_the_stacked_package(self):
        net = torch.nn.Sequential(torch.nn.Linear(6, 5, bias=False), torch.nn.Linear(5, 3, bias=False))
        opt = SOAP(net.parameters(), 0.01, profile="emerging-0.4")
        train(net, opt, 3)
        saved = opt.state_dict()
        state = saved["state"]
        self.assertEqual(state[0]["Q_L"].shape, (5, 5))
        self.assertEqual(state[0]["eigvals_R"].shape, (6,))
        other = SOAP((copied := copy.deepcopy(net)).parameters(), 0.01)
        other.load_state_dict({"state": state, "param_groups": saved["param_groups"]})
        again = other.state_dict()["state"][0]
        self.assertEqual(again["step"], 3)
        torch.testing.assert_close(again["exp_avg"], state[0]["exp_avg"])
        torch.testing.assert_close(again["Q"][0], state[0]["Q_L"])
        train(copied, other, 1)

    def test_single_parameters(self):
        """Dealt to two optimizers, a run goes on to the bit; parameters are given by themselves or by their names."""
        net = model()
        opt = SOAP(net.named_parameters(), 0.01, precondition_frequency=2)
        train(net, opt, 3)
        other = copy.deepcopy(net)
        mine, theirs = list(net.parameters()), list(other.named_parameters())
        parts = [SOAP(theirs[:1], 0.01, precondition_frequency=2), SOAP(theirs[1:], 0.01, precondition_frequency=2)]
        for k, (name, p) in enumerate(theirs):
            part = parts[k > 0]
            part.load_param(p if k % 2 else name, opt.save_param(mine[k] if k % 2 else name))
        for k, (p, (_, q)) in enumerate(zip(mine, theirs)):
            p.grad = q.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(k))
        opt.step()
        for part in parts:
            part.step()
        self.same(mine, [p for _, p in theirs])
        state = opt.save_param(mine[0])
        with self.assertRaises(errors.Mismatch):
            opt.load_param(mine[1], state)
        for bad in ("nothing", torch.zeros(3), 0):
            with self.assertRaisesRegex(ValueError, "param"):
                opt.save_param(bad)

    def test_deepcopy(self):
        net = model()
        opt = SOAP(net.parameters(), 0.01)
        train(net, opt, 3)
        net2, opt2 = copy.deepcopy((net, opt))
        self.same(train(net, opt, 3), train(net2, opt2, 3))

    def test_groups_and_schedulers(self):
        net = model()
        opt = SOAP([{"params": net[0].parameters(), "lr": 0.0}, {"params": net[2].parameters()}], lr=0.01)
        kept = [p.detach().clone() for p in net[0].parameters()]
        train(net, opt, 2)
        self.same(kept, [p.detach() for p in net[0].parameters()])
        scheduler = torch.optim.lr_scheduler.StepLR(opt, 1, gamma=0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # opt.step() ran before the scheduler was made
            scheduler.step()
        kept = [p.detach().clone() for p in net.parameters()]
        train(net, opt, 1)
        self.same(kept, [p.detach() for p in net.parameters()])
        extra = torch.nn.Parameter(torch.ones(2, 2))
        opt.add_param_group({"params": [extra], "lr": 0.1, "normalize_grads": True})
        self.assertTrue(opt.param_groups[2]["normalize_update"])
        extra.grad = torch.eye(2)
        opt.step()
        self.assertFalse(torch.equal(extra.detach(), torch.ones(2, 2)))

    def test_closure_hooks_and_names(self):
        net = model()
        opt = SOAP(net.named_parameters(), lr=0.01)
        seen = []
        opt.register_step_pre_hook(lambda *_: seen.append("pre"))
        opt.register_step_post_hook(lambda *_: seen.append("post"))
        x = torch.randn(4, 6)

        def closure():
            opt.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            return loss

        self.assertGreater(opt.step(closure).item(), 0)
        self.assertEqual(seen, ["pre", "post"])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            net[0].weight.grad.fill_(float("nan"))
            opt.step()
        self.assertIn("0.weight", str(caught[0].message))
        with self.assertRaises(ValueError):
            SOAP(net.parameters(), profile="emerging-0.4").step(closure)

    def test_grad_scaler(self):
        net, plain = model(), model()
        opt, other = SOAP(net.parameters(), 0.01), SOAP(plain.parameters(), 0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        x = torch.randn(8, 6)
        plain(x).square().mean().backward()
        other.step()
        scaler.scale(net(x).square().mean()).backward()
        scaler.step(opt)
        scaler.update()
        self.same([p.detach() for p in net.parameters()], [p.detach() for p in plain.parameters()])
        kept = [p.detach().clone() for p in net.parameters()]
        net[0].weight.grad.fill_(float("inf"))
        scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
        scaler.scale(torch.ones(()))
        scaler.step(opt)
        self.same(kept, [p.detach() for p in net.parameters()])

    def test_parameters_that_move(self):
        """p.data replaced between steps: the state stays, the new memory is changed."""
        net, other = model(), model()
        opts = SOAP(net.parameters(), 0.01), SOAP(other.parameters(), 0.01)
        train(net, opts[0], 2)
        train(other, opts[1], 2)
        for p in net.parameters():
            p.data = p.data.clone()
        self.same(train(net, opts[0], 2), train(other, opts[1], 2))

    def test_what_is_refused_leaves_the_optimizer(self):
        """A group of which a parameter is refused, and p.data of another shape."""
        a, b = (torch.nn.Parameter(torch.randn(s, s)) for s in (4, 3))
        opt = SOAP([a], lr=0.1)
        a.grad = torch.randn(4, 4)
        opt.step()
        with self.assertRaisesRegex(errors.BadArgument, "shares memory"):
            opt.add_param_group({"params": [torch.nn.Parameter(torch.randn(3, 3)), torch.nn.Parameter(a.detach()[:2])]})
        opt.add_param_group({"params": [b]})
        opt.param_groups[1]["lr"] = 0.0
        before, b.grad = b.detach().clone(), torch.randn(3, 3)
        opt.step()
        self.assertTrue(torch.equal(b, before))  # by the options of its own group
        self.assertEqual([s["step"] for s in opt.state_dict()["state"].values()], [2, 1])
        kept = a.data
        a.data, a.grad = torch.randn(5, 4), None
        with self.assertRaisesRegex(errors.BadArgument, r"param.0 has shape \(5, 4\) now, it had \(4, 4\)"):
            opt.step()
        a.data = kept.clone()
        opt.step()
        self.assertEqual([s["step"] for s in opt.state_dict()["state"].values()], [2, 2])

    def test_no_gradient_no_change_and_odd_shapes(self):
        shapes = [(), (0,), (5,), (2, 3, 4), (4, 3, 2, 2), (7, 1)]
        params = [torch.nn.Parameter(torch.ones(s)) for s in shapes]
        frozen = torch.nn.Parameter(torch.ones(3, 3))
        opt = SOAP([*params, frozen], lr=0.1, precondition_1d=True)
        for _ in range(3):
            for p in params:
                p.grad = torch.randn(p.shape)
            opt.step()
        self.assertTrue(torch.equal(frozen.detach(), torch.ones(3, 3)))
        for p in params:
            self.assertTrue(torch.isfinite(p).all())
            self.assertFalse(p.numel() and torch.equal(p.detach(), torch.ones(p.shape)))
        wide = torch.nn.Parameter(torch.ones(6, 4).t())  # not contiguous
        opt = SOAP([wide], lr=0.1)
        wide.grad = torch.randn(4, 6)
        opt.step()
        self.assertFalse((wide == 1).any())

    def test_gradients_that_are_negated_views(self):
        torch.manual_seed(0)
        view, moved = torch.randn(4, 3, dtype=torch.complex64).conj().imag, []
        self.assertTrue(view.is_neg())
        for gradient in (view, view.resolve_neg()):
            p = torch.nn.Parameter(torch.ones(4, 3))
            p.grad = gradient
            SOAP([p], lr=0.1).step()
            moved.append(p.detach())
        self.assertTrue(torch.equal(*moved))

    def test_maximize(self):
        p, q = (torch.nn.Parameter(torch.ones(3, 3)) for _ in range(2))
        p.grad, q.grad = torch.eye(3), -torch.eye(3)
        SOAP([p], lr=0.1, maximize=True).step()
        SOAP([q], lr=0.1).step()
        self.assertTrue(torch.equal(p.detach(), q.detach()))

    def test_refusals(self):
        net = model()
        with self.assertRaisesRegex(errors.NoDevice, "meta"):
            SOAP([torch.nn.Parameter(torch.ones(2, 2, device="meta"))])
        with self.assertRaisesRegex(errors.BadArgument, "complex64"):
            SOAP([torch.nn.Parameter(torch.ones(2, 2, dtype=torch.complex64))])
        with self.assertRaisesRegex(errors.BadArgument, "5 axes"):
            SOAP([torch.nn.Parameter(torch.ones(1, 1, 1, 1, 1))])
        with self.assertRaisesRegex(TypeError, "nesterov"):
            SOAP(net.parameters(), nestorov=True)
        with self.assertRaisesRegex(ValueError, "eps"):
            SOAP(net.parameters(), eps=-1)
        for options in ({"differentiable": True}, {"capturable": True}):
            with self.assertRaisesRegex(errors.Unsupported, next(iter(options))):
                SOAP(net.parameters(), **options)
            with self.assertRaisesRegex(errors.Unsupported, next(iter(options))):
                SOAP([{"params": net.parameters(), **options}])
        for word in ("nestrov", "weight_decays"):
            with self.assertRaisesRegex(TypeError, word):
                SOAP([{"params": net.parameters(), word: 0.1}])
        self.assertEqual(SOAP([{"params": net.parameters(), "lr_scale": 0.5}]).param_groups[0]["lr_scale"], 0.5)
        embedding = torch.nn.Embedding(4, 3, sparse=True)
        opt = SOAP(embedding.parameters())
        embedding(torch.tensor([1])).sum().backward()
        with self.assertRaisesRegex(RuntimeError, "sparse"):
            opt.step()
        opt = SOAP(net.parameters())
        with self.assertRaises(ValueError):
            opt.param_groups[0]["lr"] = -1.0
            train(net, opt, 1)
        with self.assertRaises(ValueError):
            SOAP(net.parameters()).load_state_dict(SOAP([torch.nn.Parameter(torch.ones(2))]).state_dict())

    def test_keywords_that_have_nothing_to_act_on(self):
        """Each is warned of, once a process, with what is done instead; in groups too."""
        made = lambda at: {"init": lambda **o: SOAP(model().parameters(), **o),
                           "group": lambda **o: SOAP([{"params": model().parameters(), **o}])}[at]
        for at in ("init", "group"):
            _arrays._warned.clear()
            for key, value, text in (("foreach", True, "one call"), ("fused", False, "one call"), ("use_batched_qr", False, "one call"),
                                     ("fp32_matmul_prec", "high", "float32"), ("qr_fp32_matmul_prec", "medium", "float32"),
                                     ("batched_qr_num_streams", 2, "streams")):
                with self.assertWarnsRegex(UserWarning, f"{key}={value!r}.*{text}"):
                    made(at)(**{key: value})
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    opt = made(at)(**{key: value})
                self.assertNotIn(key, opt.param_groups[0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _arrays._warned.clear()
            SOAP(model().parameters(), foreach=None, fused=None, capturable=False, use_batched_qr=True)
        with self.assertRaisesRegex(ValueError, "fused"):
            SOAP(model().parameters(), fused="yes")

    def test_the_signature_has_no_others(self):
        """Those of the NumPy class, which python/tests/test_soap.py goes over, and torch's, which the tests here do."""
        both = {"params", "options", *inspect.signature(soap.SOAP).parameters}
        self.assertEqual(set(inspect.signature(SOAP).parameters) - both,
                         {"foreach", "capturable", "differentiable", "fused"})

    def test_states_of_other_optimizers(self):
        """They are refused by name, with the remedy; groups and state stay.  Where no axis has a factor AdamW's goes on."""
        for kind, text in ((torch.optim.Adam, "0.weight has no factors.*begin SOAP anew"), (torch.optim.AdamW, "0.weight has no factors"),
                           (torch.optim.SGD, "another optimizer"), (torch.optim.RMSprop, "has no 'exp_avg'.*square_avg")):
            net = model()
            other = kind(net.named_parameters(), lr=0.5)
            train(net, other, 2)
            opt = SOAP(net.named_parameters(), 0.01)
            train(net, opt, 2)
            before = opt.state_dict()
            with self.assertRaisesRegex(errors.Mismatch, text):
                opt.load_state_dict(other.state_dict())
            self.assertTrue(torch.equal(opt.state_dict()["fourge"], before["fourge"]))
            self.assertEqual(opt.state_dict()["param_groups"], before["param_groups"])
            train(net, opt, 1)
        nets = model(), model()
        adam = torch.optim.AdamW(nets[0].parameters(), 0.01, weight_decay=0.1)
        train(nets[0], adam, 3)
        opt = SOAP(nets[1].parameters(), max_precond_dim=0)
        nets[1].load_state_dict(nets[0].state_dict())
        opt.load_state_dict(adam.state_dict())
        for x, y in zip(train(nets[0], adam, 4), train(nets[1], opt, 4)):
            torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-6)

    def test_memory_is_steady(self):
        p = torch.nn.Parameter(torch.ones(3, 2))
        opt = SOAP([p], lr=1e-3)
        p.grad = torch.ones(3, 2)
        opt.step()
        held = opt._engine.context.bytes_held(), len(opt._engine.handle.save())
        for _ in range(2000):
            opt.step()
        self.assertEqual(held, (opt._engine.context.bytes_held(), len(opt._engine.handle.save())))


class Watched(unittest.TestCase):
    """What torch wraps around a step is there when someone looks."""

    def setUp(self):
        self.p = torch.nn.Parameter(torch.randn(3, 4))
        self.p.grad = torch.randn(3, 4)
        self.opt = SOAP([self.p])

    def test_hooks(self):
        seen = []
        handles = [self.opt.register_step_pre_hook(lambda o, a, k: seen.append(("pre", len(a)))),
                   self.opt.register_step_post_hook(lambda o, a, k: seen.append(("post", len(a)))),
                   register_optimizer_step_pre_hook(lambda o, a, k: seen.append(("all", len(a))))]
        self.opt.step()
        self.assertEqual(seen, [("all", 1), ("pre", 1), ("post", 1)])
        self.assertEqual(self.opt.step(lambda: 3), 3)
        self.assertEqual(seen[3:], [("all", 2), ("pre", 2), ("post", 2)])
        for h in handles:
            h.remove()
        self.opt.step()
        self.assertEqual(len(seen), 6)

        class Mine(SOAP):
            def step(self, closure=None):
                seen.append("mine")
                return super().step(closure)

        mine = Mine([self.p])
        mine.step()
        mine.step()
        self.assertEqual(seen[6:], ["mine", "mine"])

    def test_profile_range(self):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            self.opt.step()
        self.assertIn("Optimizer.step#SOAP.step", {e.key for e in profile.key_averages()})

    def test_a_kept_graph_sees_the_change(self):
        y = (self.p * self.p).sum()
        self.opt.step()
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.backward()


if __name__ == "__main__":
    unittest.main()
