"""fourge in torch: the SOAP optimizer and autograd functions, on CPU tensors; the objective of a transport on CUDA's, too."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Unpack

try:
    import torch
except ImportError as e:
    raise ImportError("fourge.torch needs torch: pip install torch") from e
import numpy as np
from torch.autograd import _profiler_enabled
from torch.autograd.graph import increment_version
from torch.optim.optimizer import _global_optimizer_post_hooks as _global_post_hooks
from torch.optim.optimizer import _global_optimizer_pre_hooks as _global_pre_hooks
from torch.utils.dlpack import to_dlpack

from . import _fourge, _options, errors, soap
from ._arrays import CONTEXT_OPTIONS, context, warn

__all__ = ["SOAP", "inv_quad_logdet"]


_here = threading.local()  # a context that calls over small matrices share: one a thread, as calls on a context take turns
_SMALL = 1 << 16  # numbers of the matrices up to which it is kept: what it holds is a few times as much


def _context_for(count):
    """A context for matrices of `count` numbers: making one takes 15 to 30 microseconds, as long as 60 rows are factored.

    A new one after a fork, or where torch was given another number of threads."""
    if count > _SMALL:
        return _fourge.Context()
    key = os.getpid(), torch.get_num_threads()
    if getattr(_here, "key", None) != key:
        _here.context, _here.key = _fourge.Context(), key
    return _here.context


def _numpy(t):
    return t.detach().numpy()


def _derivatives(inverse, a, g_inv_quad, g_logdet):
    """dK = g_logdet K^-1 - g_inv_quad a a' and dr = 2 g_inv_quad a in torch's operations, which have derivatives of their own
    and take many g at once."""
    g_iq, g_ld = (torch.zeros(a.shape[:-1], dtype=a.dtype) if g is None else g for g in (g_inv_quad, g_logdet))
    scaled = g_iq.unsqueeze(-1) * a
    return g_ld.unsqueeze(-1).unsqueeze(-1) * inverse - scaled.unsqueeze(-1) * a.unsqueeze(-2), 2 * scaled


class _InvQuadLogdet(torch.autograd.Function):
    @staticmethod
    def forward(ctx, k, r):
        batch, n = k.shape[:-2], k.shape[-1]
        if r.shape[:-1] != batch:  # torch.broadcast_shapes alone takes 10 microseconds
            batch = torch.broadcast_shapes(batch, r.shape[:-1])
        k_all, r_all = k.expand(*batch, n, n), r.expand(*batch, n)
        inv_quad, logdet = (torch.empty(batch, dtype=torch.float64) for _ in range(2))
        a = torch.empty(r_all.shape, dtype=k.dtype)
        inverse = torch.empty(k_all.shape, dtype=k.dtype) if ctx.needs_input_grad[0] else None
        if k_all.numel():
            c = _context_for(k_all.numel())
            _fourge.invquad_logdet(c, _one_batch(k_all, 2), _one_batch(r_all, 1), _one_batch(inv_quad, 0), _one_batch(logdet, 0),
                                   _one_batch(a, 1), None if inverse is None else _one_batch(inverse, 2))
            warn(c, stacklevel=4)
        elif n == 0:
            inv_quad.zero_(), logdet.zero_()
        ctx.save_for_backward(a, inverse, k, r)
        return inv_quad.to(k.dtype), logdet.to(k.dtype)

    @staticmethod
    def backward(ctx, g_inv_quad, g_logdet):
        a, inverse, k, r = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph: what is kept carries no graph
            inverse = torch.cholesky_inverse(torch.linalg.cholesky(k))
            found = _derivatives(inverse, (inverse @ r.unsqueeze(-1)).squeeze(-1), g_inv_quad, g_logdet)
        else:
            try:
                found = _InvQuadLogdet.pull(ctx, a, inverse, g_inv_quad, g_logdet)
            except RuntimeError:  # is_grads_batched: many g in one tensor, which has no memory of its own
                found = _derivatives(k.new_zeros(()) if inverse is None else inverse, a, g_inv_quad, g_logdet)
        return tuple(None if not w else d if d.shape == t.shape else d.sum_to_size(t.shape)
                     for d, t, w in zip(found, (k, r), ctx.needs_input_grad))

    @staticmethod
    def pull(ctx, a, inverse, g_inv_quad, g_logdet):
        """dK and dr by the library, None where not wanted."""
        g_iq, g_ld = (None if g is None else np.ascontiguousarray(_numpy(g), dtype=np.float64).reshape(-1)
                      for g in (g_inv_quad, g_logdet))
        dk = torch.empty_like(inverse) if ctx.needs_input_grad[0] else None
        dr = torch.empty_like(a) if ctx.needs_input_grad[1] else None
        if a.numel():
            kept, to_k = (None if t is None else _one_batch(t, 2) for t in (inverse, dk))
            _fourge.invquad_logdet_backward(_context_for(kept.size if kept is not None else a.numel()), kept, _one_batch(a, 1), g_iq, g_ld, to_k,
                                            None if dr is None else _one_batch(dr, 1))
        return dk, dr


def _one_batch(t, inner):
    """The numbers of t with its batch as one axis at most, as the library takes it; a copy only where strides forbid a view."""
    return _numpy(t if t.ndim <= inner + 1 else t.reshape(-1, *t.shape[t.ndim - inner:]))


def inv_quad_logdet(k: torch.Tensor, r: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(r' K^-1 r, log det K) with gradients by one factor and one inverse.

    Parameters
    ----------
    k : (..., n, n) tensor, float32 or float64, on the CPU; symmetric positive definite, its lower triangle is read
    r : (..., n) tensor of the same type; batch shapes, of any number of axes, broadcast

    In float32 a likelihood -1/2 (r' K^-1 r + log det K + n log 2 pi) that may be wrong by more than a thousandth of its size
    + 1 raises :class:`fourge.errors.BrokeDown`; in float64 a bound on its error above its size is a warning.

    The gradient is the symmetric ``g_logdet K^-1 - g_inv_quad a a'`` with ``a = K^-1 r``, and ``2 g_inv_quad a``.
    Derivatives of the gradient (``create_graph=True``) are torch's own, through its Cholesky factor.
    """
    for name, t in (("k", k), ("r", r)):
        if not isinstance(t, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(t).__name__}; fourge.gp.invquad_logdet takes arrays")
        if t.device.type != "cpu":
            raise errors.NoDevice(f"{name} is on {t.device}; this build has the CPU alone")
        if t.dtype not in (torch.float32, torch.float64) or t.dtype != k.dtype:
            raise errors.BadArgument(f"{name} is {t.dtype}: expected float32 or float64, the same for both")
    if k.ndim < 2 or k.shape[-1] != k.shape[-2] or r.ndim < 1 or r.shape[-1] != k.shape[-1]:
        raise errors.BadArgument(f"expected k (..., n, n) and r (..., n), got {tuple(k.shape)} and {tuple(r.shape)}")
    return _InvQuadLogdet.apply(k, r)


#: Keywords of torch's optimizers, as those in ``fourge.soap.ELSEWHERE``.
_ELSEWHERE = {
    "foreach": ((None,), (True, False, None), "all parameters of all groups are stepped in one call"),
    "fused": ((None,), (True, False, None), "all parameters of all groups are stepped in one call"),
}


def _refuse_graphs(options):
    if options.get("differentiable"):
        raise errors.Unsupported("differentiable=True: the step carries no graph")
    if options.get("capturable"):
        raise errors.Unsupported("capturable=True: there are no CUDA graphs on a CPU, and this build has the CPU alone")


class SOAP(soap.SoapSummary, torch.optim.Optimizer):
    """SOAP (Vyas et al. 2024): Adam in the eigenbasis of Shampoo's factors, all factors in one batched call.

    Parameters
    ----------
    params : iterable of parameters, of (name, parameter) or of groups
        float32, float64, bfloat16 or float16 tensors on the CPU with at most 4 axes, used where they lie.
    lr, betas, shampoo_beta, eps, weight_decay : numbers
        None: the profile's, 1e-3 (nikhilvyas: 3e-3), (0.9, 0.95), 0.95, 1e-8, 0.01.
    profile : "emerging", "emerging-0.4" or "nikhilvyas"
        Whose defaults and conventions: NVIDIA Emerging-Optimizers 0.2 and 0.4, nikhilvyas/SOAP.
    maximize : bool
    threads, seed, memory_limit, time_limit
        Of the computation; results are the same bits for any number of threads.  No step takes notice of seed and
        time_limit: one that is given is warned of.
    foreach, fused : None
        One call steps all parameters in any case; a value that is given is warned of, once a process.
    capturable, differentiable : False
        True is refused: there are no graphs of devices on a CPU, and a step carries none of autograd's.
    **options
        Of :func:`fourge.soap.defaults`: ``nesterov``, ``weight_decay_method``, ``precondition_frequency`` (a number,
        a function of the step or rows of (from step, frequency)), ``adam_warmup_steps``, ``precondition_1d``,
        ``max_precond_dim``, ``merge_dims``, ``use_eigh``, ``power_iter_steps``, ``use_adaptive_criteria``,
        ``max_update_rms``, ``use_kl_shampoo``, ...  Of other packages ``use_batched_qr``, ``batched_qr_num_streams``,
        ``stream_list``, ``fp32_matmul_prec`` and ``qr_fp32_matmul_prec`` warn, once a process, of what is done instead of a
        value that is not: factors are factored in one call, with float32's accuracy.

    Every option can be given per group and changed in ``param_groups`` between steps, as schedulers do.  The state lies
    in the library; ``state_dict()`` exports it under the names of the profile's package and, under "fourge", as bytes
    with which a run goes on to the bit; ``load_state_dict`` takes these and the layouts of the other packages.
    ``report`` is a dict of what the last step did, ``estimate()`` tells the memory and time of steps before the first,
    ``summary()`` prints both.  A network goes in whole: axes longer than ``max_precond_dim`` (10000), as those of an
    embedding, have no factor and are counted in ``report["long_axes"]``; a first step of more than a second is warned of
    before it begins.

    A gradient with NaN or infinity leaves its parameter as it is and is counted in ``report["nonfinite"]``
    (``nonfinite="error"`` or ``"propagate"`` change that).

    Raises :class:`fourge.errors.NoDevice` for tensors that are not on the CPU, :class:`fourge.errors.BadArgument`
    naming an option out of range, TypeError for one that is not there.
    """

    @_options.takes(_options.SoapOfTorch)
    def __init__(self, params: Iterable[Any], lr: float | None = None, betas: tuple[float, float] | None = None,
                 shampoo_beta: float | None = None, eps: float | None = None, weight_decay: float | None = None, *,
                 profile: str = "emerging", foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
                 **options: Unpack[_options.SoapOfTorch]):
        _refuse_graphs({"differentiable": differentiable, "capturable": capturable})
        soap.not_done(_ELSEWHERE, {"foreach": foreach, "fused": fused})
        self._profile = profile
        self._context_options = {k: options.pop(k) for k in CONTEXT_OPTIONS if k in options}  # type: ignore[misc]
        all_options = soap.defaults(profile)
        given = {"lr": lr, "betas": betas, "shampoo_beta": shampoo_beta, "eps": eps, "weight_decay": weight_decay}
        all_options |= soap.named(options, all_options) | {k: v for k, v in given.items() if v is not None}
        all_options["maximize"] = maximize
        soap.not_done(soap.OF_CONTEXTS, self._context_options)
        self._start()
        super().__init__(params, all_options)

    def _start(self):
        self._engine = soap.Engine(self._profile, context(dict(self._context_options)))
        self._params, self._pointers, self._names, self._shapes = [], [], [], []

    def _attach(self, group):
        """The parameters of a group into the handle."""
        names = group.get("param_names") or [f"param.{len(self._params) + i}" for i in range(len(group["params"]))]
        known = {id(p) for p in self._params}
        for name, p in zip(names, group["params"]):
            if id(p) in known:
                raise errors.BadArgument(f"{name} is among the parameters twice")
            known.add(id(p))
            if not p.is_cpu:
                raise errors.NoDevice(f"{name} is on {p.device}; this build of fourge has the CPU alone: move the model "
                                      "there with .cpu(), or keep another optimizer for it")
            if p.dtype not in (torch.float32, torch.float64, torch.bfloat16, torch.float16) or p.layout != torch.strided:
                raise errors.BadArgument(f"{name} is {p.dtype}, {p.layout}: expected a dense tensor of float32, float64, "
                                         "bfloat16 or float16")
            if p.ndim > 4:
                raise errors.BadArgument(f"{name} has {p.ndim} axes, at most 4 are taken: register a view of it with axes "
                                         "merged, or leave it to another optimizer")
        number = self._engine.add_group(group)
        for name, p in zip(names, group["params"]):
            self._engine.handle.add_param(number, to_dlpack(p.detach()), name)
            self._params.append(p)
            self._names.append(name)
            self._shapes.append(p.shape)
            self._pointers.append(p.data_ptr())

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if isinstance(param_group, dict) and self._known:
            _refuse_graphs(param_group)
            soap.not_done(_ELSEWHERE, param_group)
            theirs = {k: v for k, v in param_group.items() if not soap.is_option(k, self._known)}  # notes of trainers
            own = {k: v for k, v in param_group.items() if k not in theirs}
            param_group = {k: v for k, v in theirs.items() if k not in _ELSEWHERE} | soap.named(own, self._known)
        super().add_param_group(param_group)
        before, names = self._engine, list(self._names)
        try:
            self._attach(self.param_groups[-1])
        except Exception:
            self.param_groups.pop()
            if names:  # without those of the group that the handle has taken
                self._start()
                for group in self.param_groups:
                    self._attach(group)
                before.moved_to(self._engine, names)
            raise

    @property
    def _known(self):
        return self._engine._known

    @property
    def report(self) -> dict[str, Any]:
        """What the last step did: updated, nonfinite, due, skipped, householder, orthogonality, seconds, ..."""
        return self._engine.report

    def _moved(self):
        """Parameters lie elsewhere now (p.data was replaced): the same state over the new places."""
        for p, name, shape in zip(self._params, self._names, self._shapes):
            if p.shape != shape:
                raise errors.BadArgument(f"{name} has shape {tuple(p.shape)} now, it had {tuple(shape)}, which its state has: give it the "
                                         "old shape back, or make a new optimizer")
        state = self._engine.handle.save()
        before = self._engine, self._params, self._pointers, self._names, self._shapes
        self._start()
        try:
            for group in self.param_groups:
                self._attach(group)
            self._engine.handle.load(state, "state")
        except Exception:
            self._engine, self._params, self._pointers, self._names, self._shapes = before
            raise

    def _step(self, closure=None):
        loss = None
        if closure is not None:
            if self._profile == "emerging-0.4":
                raise ValueError("the profile emerging-0.4 takes no closure")
            with torch.enable_grad():
                loss = closure()
        gradients, changed, moved = [], [], False
        for p, pointer in zip(self._params, self._pointers):
            g = p.grad
            if p.data_ptr() != pointer:
                moved = True
            if g is not None:
                if g.layout is not torch.strided:
                    raise RuntimeError("SOAP does not support sparse gradients")
                if g.is_neg():  # DLPack would lose the sign
                    g = g.resolve_neg()
                g = to_dlpack(g.detach() if g.requires_grad else g)
                changed.append(p)
            gradients.append(g)
        if moved:
            self._moved()
        self._engine.step(self.param_groups, gradients)
        if changed:
            increment_version(changed)  # as for every change in place: a graph that has kept the old values refuses
        return loss

    _step_seen = torch.optim.Optimizer.profile_hook_step(_step)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step over all parameters that have a gradient; the closure's value, if there is one."""
        if (self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks or _global_pre_hooks or _global_post_hooks
                or _profiler_enabled()):
            return self._step_seen() if closure is None else self._step_seen(closure)
        return self._step(closure)

    step.hooked = True  # type: ignore[attr-defined]  # torch would wrap it with hooks and a profile range, 20 microseconds, whether anyone looks or not

    # ---- state ----

    def state_dict(self) -> dict[str, Any]:
        """The state by the names of the profile's package, the groups, and under "fourge" all of it as bytes."""
        tensor = lambda v: torch.empty(0) if v is None else torch.from_numpy(v) if isinstance(v, np.ndarray) else v
        number = 0
        for group in self.param_groups:
            for p in group["params"]:
                state = self._engine.export(number, tuple(p.shape), group)
                self.state[p] = {k: [tensor(x) for x in v] if isinstance(v, list) else tensor(v) for k, v in state.items()}
                number += 1
        try:
            out = super().state_dict()
        finally:
            self.state.clear()
        return out | {"fourge": torch.frombuffer(bytearray(self._engine.handle.save()), dtype=torch.uint8)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what :meth:`state_dict` gave (to the bit) or a checkpoint of another package: GG and Q, or L and R.

        One that does not fit, or that has no factors for a parameter that has some here (Adam's), raises
        :class:`fourge.errors.Mismatch` and changes nothing.
        """
        taken: dict[str, Any] = {}
        mine = self.param_groups  # type: ignore[has-type]

        def take(_, given):  # the state goes to the library, in f32, whatever the parameters' types are
            taken.update(given)
            return {**given, "state": {}}

        handle = self.register_load_state_dict_pre_hook(take)
        self._taken: Any = taken
        try:
            super().load_state_dict(state_dict)
        except Exception:
            self.param_groups = mine
            raise
        finally:
            handle.remove()
            self._taken = None

    def save_param(self, param: torch.Tensor | str) -> bytes:
        """The state of one parameter, which is given by itself or by its name (``param_names`` of the group, param.0, ...).

        So a run goes on, to the bit, with its parameters dealt to other optimizers, as sharded trainers do.
        """
        return self._engine.handle.save_param(self._id_of(param))

    def load_param(self, param: torch.Tensor | str, state: bytes) -> None:
        """A state of :meth:`save_param` for the parameter `param`; one that does not fit changes nothing and raises
        :class:`fourge.errors.Mismatch`."""
        number = self._id_of(param)
        self._engine.handle.load_param(number, state, self._names[number])

    def _id_of(self, param):
        if isinstance(param, str):
            if param not in self._names:
                raise errors.BadArgument(f"there is no parameter {param!r}; there are {self._names}")
            return self._names.index(param)
        found = [i for i, p in enumerate(self._params) if p is param]
        if not found:
            raise errors.BadArgument("param: expected one of the parameters of this optimizer, or its name")
        return found[0]

    def __getstate__(self):
        return {**super().__getstate__(), "_profile": self._profile, "_context_options": self._context_options,
                "_bytes": self._engine.handle.save()}

    def __setstate__(self, state):
        if "_bytes" in state:  # of a copy or a pickle
            state = dict(state)
            saved = state.pop("_bytes")
            super().__setstate__(state)
            self._start()
            for group in self.param_groups:
                self._attach(group)
            self._engine.handle.load(saved, "pickled state")
            return
        mine = self.param_groups
        super().__setstate__(state)
        for group, saved in zip(mine, state["param_groups"]):
            full = {k: v for k, v in group.items() if k in self._known}
            soap.update_group(full, saved)
            saved.update(full)
        if "fourge" in self._taken:
            self._engine.handle.load(self._taken["fourge"].numpy().tobytes(), "state_dict")
        else:
            parts = {i: {k: _arrays_of(v) for k, v in part.items()} for i, part in self._taken["state"].items()}
            self._engine.restore_all(parts, self._taken["param_groups"], self._names)


def _arrays_of(value):
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", torch.float32).numpy()
    return [_arrays_of(v) for v in value] if isinstance(value, (list, tuple)) else value


def _first_derivative(what):
    """Refuses a backward pass that is to have derivatives of its own: gradients made by the library carry no graph."""
    if torch.is_grad_enabled():
        raise errors.Unsupported(f"{what} a first derivative alone; do not ask for create_graph")


def _kinds(*tensors):
    """What :func:`_gradients` has to know of the inputs; of None it is None."""
    return [None if t is None else (t.dtype, t.shape) for t in tensors]


def _gradients(arrays, kinds, wanted):
    """The gradients as tensors of the inputs' types and shapes, None where none is wanted."""
    return [torch.as_tensor(a).to(kind[0]).reshape(kind[1]) if wants else None for a, kind, wants in zip(arrays, kinds, wanted)]


def _totals(*weights):
    """What weights were divided by; uniform ones, None, sum to 1."""
    return [1.0 if w is None else float(w.sum()) for w in weights]


def _of_total(gradient, marginal, total, common=0.0):
    """The gradient in weights w that are divided by their sum from that in w / sum w, which counts up to a constant: (x - <x, m> + common)
    / sum w, m the marginal of the plan with the sum 1."""
    return (gradient - gradient @ marginal / marginal.sum() + common) / total


class _Value(torch.autograd.Function):
    """A value whose gradients are known."""

    @staticmethod
    def forward(ctx, value, gradients, *tensors):
        ctx.gradients, ctx.inputs = gradients, _kinds(*tensors)
        return value

    @staticmethod
    def backward(ctx, g):
        _first_derivative("values at a plan have")
        found = _gradients(ctx.gradients, ctx.inputs, ctx.needs_input_grad[2:])
        return None, None, *(None if x is None else g.to(x.dtype) * x for x in found)


def _value_at(value, like, pairs):
    """A scalar of the type of `like`; pairs: (tensor, the value's gradient in it)."""
    like = like if isinstance(like, torch.Tensor) and like.is_floating_point() else pairs[0][0]
    return _Value.apply(like.detach().new_tensor(value), [a for _, a in pairs], *(t for t, _ in pairs))


class _TransportValue(torch.autograd.Function):
    """The least <C, P> + epsilon sum P (log P - 1).  By the envelope theorem its derivatives are P in C, written where the cost lies, and the
    potentials in the weights, of which sums are divided out: (f - <f, a>) / sum a."""

    @staticmethod
    def forward(ctx, cost, a, b, found):
        ctx.found, ctx.cost_shape, ctx.as_cost = found, cost.shape, {"dtype": cost.dtype, "device": cost.device}
        ctx.save_for_backward(a, b)
        return cost.new_tensor(found.report["objective"])

    @staticmethod
    def backward(ctx, g):
        _first_derivative("the objective has")
        out = [None, None, None]
        if ctx.needs_input_grad[0]:
            plan = torch.empty(ctx.found.shape, **ctx.as_cost)
            out[0] = ctx.found.plan(out=plan).mul_(g).reshape(ctx.cost_shape)
        if any(ctx.needs_input_grad[1:3]):
            for i, (x, w) in enumerate(zip(ctx.found.potentials, ctx.saved_tensors)):
                if ctx.needs_input_grad[1 + i]:
                    x, wide = torch.as_tensor(x).to(w.device), w.double()
                    mean = torch.where(wide > 0, wide * x, 0.0).sum() / wide.sum()
                    out[1 + i] = (g.to(x) * (x - mean) / wide.sum()).to(w.dtype)
        return *out, None


def _transport_value(found, cost, a, b):
    """The objective of `found` with gradients in the cost and the weights."""
    cost, a, b = (t if t is None else torch.as_tensor(t) for t in (cost, a, b))
    return _TransportValue.apply(cost if cost.is_floating_point() else cost.double(), a, b, found)


class _SinkhornPlan(torch.autograd.Function):
    """The plan of a transport: gradients of the settled iteration, or of its passes where marginals are partial or relaxed.

    Balanced weights are normalised before and the plan has their mass after, for which each side answers by half.
    """

    @staticmethod
    def forward(ctx, cost, a, b, found, size, balanced):
        ctx.found, ctx.size, ctx.balanced = found, size, balanced
        ctx.inputs, ctx.sums = _kinds(cost, a, b), _totals(a, b)
        ctx.same_mass = balanced and all(abs(s - size) <= 1e-6 * size for s in ctx.sums)
        ctx.plan = size * found.plan()
        return torch.from_numpy(ctx.plan).to(cost.dtype)

    @staticmethod
    def backward(ctx, g):
        _first_derivative("sinkhorn has")
        g = _numpy(g).astype(np.float64)
        out = [*ctx.found.vjp(ctx.size * g, "implicit" if ctx.balanced else "unrolled")]
        if ctx.balanced:
            follows = (g * ctx.plan).sum() / 2 if ctx.same_mass else 0.0
            for i, marginal in enumerate((ctx.plan.sum(1), ctx.plan.sum(0))):
                out[1 + i] = _of_total(out[1 + i], marginal, ctx.sums[i], follows)
        return *_gradients(out, ctx.inputs, ctx.needs_input_grad), None, None, None


def _sinkhorn_plan(found, cost, a, b, size, balanced):
    """The plan of `found` with gradients in the cost and the weights."""
    cost = torch.as_tensor(cost)
    a, b = (torch.as_tensor(t) if t is not None and len(t) else None for t in (a, b))
    return _SinkhornPlan.apply(cost, a, b, found, size, balanced)


class _GwPlan(torch.autograd.Function):
    """The plan of an alignment; the gradients are those of the cost it was had from, at the plan held fixed:

        L_ij = (1 - theta) sum_kl (C_ik - D_jl)^2 P_kl + theta M_ij,    V = dLoss/dL
        dLoss/dC = 2 (1 - theta) (C .* (V 1) r' - V D P'),   dLoss/dD alike,   dLoss/dM = theta V

    in units of the largest distances (scale="fixed"), symmetric parts; r and c are the marginals of P.  Weights are
    normalised before, so that their gradients are those of the normalised ones, projected and divided by the sum.
    """

    @staticmethod
    def forward(ctx, c, d, linear, p, q, found, mode, theta, scaled):
        plan = found.plan()
        ctx.found, ctx.mode, ctx.theta, ctx.scaled = found, mode, theta, scaled
        ctx.inputs, ctx.sums = _kinds(c, d, linear, p, q), _totals(p, q)
        ctx.plan = plan
        like = next(t for t in (c, d, linear, p, q) if t is not None)
        return torch.from_numpy(plan).to(like.dtype)

    @staticmethod
    def backward(ctx, g):
        _first_derivative("sampled_gw has")
        plan, wants = ctx.plan, ctx.needs_input_grad
        v, da, db = ctx.found.vjp(g.double(), ctx.mode)
        out = [None] * 5
        if wants[0] or wants[1]:
            sides = [ctx.found.distances(side) for side in (0, 1)]
            units = [s.max() if ctx.scaled and s.max() > 0 else 1.0 for s in sides]
            c, d = (s / u for s, u in zip(sides, units))
            for i, (w, own, other, at) in enumerate(((v, c, d, plan), (v.T, d, c, plan.T))):
                if wants[i]:
                    whole = own * w.sum(1)[:, None] * at.sum(1) - w @ other @ at.T
                    out[i] = (1 - ctx.theta) / units[i] * (whole + whole.T)
        if wants[2]:
            out[2] = ctx.theta * v
        for i, (x, marginal) in enumerate(((da, plan.sum(1)), (db, plan.sum(0)))):
            if wants[3 + i]:
                out[3 + i] = _of_total(x, marginal, ctx.sums[i])
        return *_gradients(out, ctx.inputs, wants), None, None, None, None


def _euclidean(x):
    return torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")


def _gw_plan(found, kind, source, target, linear, p, q, mode, options):
    """The plan of `found` with gradients; options: those of the alignment."""
    if mode not in ("implicit", "unrolled", "frozen"):
        raise ValueError(f"grad_mode={mode!r}: expected 'implicit', 'unrolled' or 'frozen'")
    scale = "batch_max" if options.get("preset") == "torchgw" else "fixed"
    scale = options.get("scale", scale)
    if scale == "batch_max":
        raise errors.Unsupported("scale='batch_max' with differentiable=True: costs have no scale of their own; take scale='fixed'")
    if mode == "implicit" and any(np.isfinite(options.get(k, np.inf)) for k in ("rho_source", "rho_target")):
        raise errors.Unsupported("semi_relaxed=True with grad_mode='implicit'; take 'unrolled', or 'frozen', which is inexact")
    if mode == "implicit" and options.get("mass"):
        raise errors.Unsupported("mass with grad_mode='implicit'; take 'unrolled', or 'frozen', which is inexact")
    tensors = [t if isinstance(t, torch.Tensor) else None for t in (source, target, linear, p, q)]
    if kind == "points":
        if options.get("distance") == "euclidean":
            tensors[:2] = [None if t is None else _euclidean(t.reshape(len(t), -1)) for t in tensors[:2]]
        elif any(t is not None and t.requires_grad for t in tensors[:2]):
            raise errors.Unsupported(f"distance_mode={options.get('distance')!r} with differentiable=True: gradients reach points "
                                     "with distance_mode='euclidean' alone; give dist_source and dist_target, or detach the points")
        else:
            tensors[:2] = None, None
    elif kind == "graph":
        tensors[:2] = None, None
    theta = options.get("linear_weight", 0.0)
    wants = [t is not None and t.requires_grad for t in tensors]
    if not any(wants[:2]) and not any(wants[3:]) and theta == 0:
        warnings.warn("differentiable=True: the gradient is zero: fgw_alpha is 0 and neither distances nor weights require one",
                      stacklevel=3)
    if found.report["epsilon_end"] < 1e-4:
        warnings.warn(f"differentiable=True with epsilon {found.report['epsilon_end']:.2g}: gradients of nearly hard plans are "
                      "large and noisy", stacklevel=3)
    if not any(t is not None for t in tensors):
        return torch.from_numpy(found.plan())
    return _GwPlan.apply(*tensors, found, mode, theta, scale == "fixed")
