"""POT's functions of transport and Gromov-Wasserstein, under POT's names and with its arguments, on arrays of NumPy and torch.

>>> plan = gromov_wasserstein(C1, C2, p, q)
>>> loss = fused_gromov_wasserstein2(M, C1, C2, p, q, alpha=0.3)     # with gradients where tensors require them

For a loss L and plans T (n x m) the energy is E(T) = sum_ijkl L(C1_ik, C2_jl) T_ij T_kl, that of a fused problem
(1 - alpha) <M, T> + alpha E(T).  Losses fall into L(a, b) = f1(a) + f2(b) - h1(a) h2(b):

    "square_loss"   (a - b)^2               f1 = a^2           f2 = b^2   h1 = a   h2 = 2 b
    "kl_loss"       a log(a / b) - a + b    f1 = a log a - a   f2 = b     h1 = a   h2 = log b

so that a gradient takes two products of matrices (Peyre, Cuturi and Solomon 2016).  Without entropy it is a conditional gradient with
exact line search (Vayer, Chapel, Flamary, Tavenard and Courty 2019) whose linear problems :func:`emd` solves; with entropy the
linearised problems are Sinkhorn's.  All is in double; arrays of integers count as such.

What is common: C1 is (n, n), C2 (m, m), M (n, m), p (n,), q (m,), uniform without; ``symmetric=None`` looks at the matrices; results
have the type of the inputs, ``verbose`` prints the losses, ``log=True`` returns (result, dict) with POT's keys.  Functions that end
in 2 return the value, whose torch gradients are those at the plan held fixed.  Those with entropy take
device, threads, memory_limit, time_limit (of a step), the others memory_limit.
Not here: BAPG, dictionaries, co-optimal transport, quantized, low-rank and unbalanced Gromov-Wasserstein, barycenters of fused
problems; ``fourge.gw.align`` has a rank, relaxed marginals and partial mass of its own.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np

from . import _fourge, _options, errors, gw
from ._arrays import array, context, outside
from ._arrays import warn as _warn_of
from ._descent import descend, say
from ._hints import hint
from .gw import _is_tensor, _like, _matrix, _not_done, _wants_graph

__all__ = ["emd", "emd2", "entropic_fused_gromov_wasserstein", "entropic_fused_gromov_wasserstein2",
           "entropic_gromov_barycenters", "entropic_gromov_wasserstein", "entropic_gromov_wasserstein2",
           "entropic_partial_gromov_wasserstein", "entropic_partial_gromov_wasserstein2", "entropic_partial_wasserstein",
           "entropic_semirelaxed_fused_gromov_wasserstein", "entropic_semirelaxed_fused_gromov_wasserstein2",
           "entropic_semirelaxed_gromov_wasserstein", "entropic_semirelaxed_gromov_wasserstein2", "fused_gromov_wasserstein",
           "fused_gromov_wasserstein2", "gromov_barycenters", "gromov_wasserstein", "gromov_wasserstein2",
           "partial_fused_gromov_wasserstein", "partial_fused_gromov_wasserstein2", "partial_gromov_wasserstein",
           "partial_gromov_wasserstein2", "partial_wasserstein", "partial_wasserstein2", "semirelaxed_fused_gromov_wasserstein",
           "semirelaxed_fused_gromov_wasserstein2", "semirelaxed_gromov_wasserstein", "semirelaxed_gromov_wasserstein2", "sinkhorn",
           "sinkhorn2", "sinkhorn_unbalanced", "sinkhorn_unbalanced2"]

_TINY = 1e-18  # what POT adds to arguments of logarithms
_SETTLED = 1e-7  # change of a plan, relative to its norm, that the passes inside of a step may leave
_MISSED = 1e-6  # of the mass of a partial plan, that is not told

#: f1, f2, h1, h2 of a loss, and the derivatives of f1, f2 and h2 (that of h1 is 1).
_LOSSES: dict[str, tuple[Callable[[np.ndarray], Any], ...]] = {
    "square_loss": (np.square, np.square, lambda a: a, lambda b: 2 * b, lambda a: 2 * a, lambda b: 2 * b, lambda b: 2.0),
    "kl_loss": (lambda a: a * np.log(a + _TINY) - a, lambda b: b, lambda a: a, lambda b: np.log(b + _TINY),
                lambda a: np.log(a + _TINY) + a / (a + _TINY) - 1, lambda b: 1.0, lambda b: 1 / (b + _TINY)),
}


# ---- arguments and answers -----------------------------------------------------------------------------------------


def _real(x: Any, name: str) -> np.ndarray:
    return np.ascontiguousarray(_matrix(x, name), np.float64)


def _checked(x: np.ndarray, name: str, least: float = -np.inf) -> np.ndarray:
    """x, whose entries are finite and no less than `least`."""
    if not np.isfinite(x).all():
        raise errors.BadData(f"{name} has an entry that is infinite or not a number")
    if (x < least).any():
        raise errors.BadData(f"{name} has an entry of {x.min():.3g}, expected {least:g} or more")
    return x


def _positive(value: Any, name: str) -> float:
    number = _number(value)
    if not 0 < number < np.inf:
        raise errors.BadArgument(f"{name} is {number:g}: expected a number > 0")
    return number


def _steps(value: Any, name: str, least: int = 0) -> int:
    if not least <= value < np.inf:
        raise errors.BadArgument(f"{name} is {value}: expected {least} or more steps")
    return int(value)


def _is_empty(w: Any) -> bool:
    return w is None or len(w) == 0


def _histogram(w: Any, name: str, n: int) -> np.ndarray:
    """Weights as they are; uniform ones of sum 1 without."""
    if n == 0:
        raise errors.BadArgument(f"{name}: there are no points to weight")
    if _is_empty(w):
        return np.full(n, 1 / n)
    w = np.ascontiguousarray(array(w, name), np.float64)
    if w.shape != (n,):
        raise errors.BadArgument(f"{name}: expected {n} weights, got shape {w.shape}")
    if not 0 < _checked(w, name, 0).sum() < np.inf:
        raise errors.BadData(f"{name} sums to {w.sum():g}")
    return w


def _marginals(p: Any, q: Any, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights of one sum: it need not be 1."""
    mine = _histogram(p, "p", n), _histogram(q, "q", m)
    of_p, of_q = (float(w.sum()) for w in mine)
    if abs(of_p - of_q) > 1e-6 * max(of_p, of_q):
        raise errors.BadData(f"the sum of p is {of_p:g} and that of q {of_q:g}: give weights of equal sums (uniform ones have 1), or take "
                             "partial_gromov_wasserstein or semirelaxed_gromov_wasserstein")
    return mine


def _number(x: Any) -> float:
    return float(x.detach()) if _is_tensor(x) else float(x)


def _scalar(value: float, like: Any) -> Any:
    if not _is_tensor(like):
        return value
    return like.detach().new_tensor(value, dtype=like.dtype if like.is_floating_point() else like.double().dtype)


def _value(value: float, like: Any, *pairs: tuple[Any, Any]) -> Any:
    """A scalar of the inputs' type; pairs: (input, the value's gradient in it), which count where torch wants them."""
    if not _wants_graph(*(x for x, _ in pairs)):
        return _scalar(value, like)
    from .torch import _value_at

    return _value_at(value, like, [(x, g) for x, g in pairs if _is_tensor(x)])


def _typed(found: dict[str, Any], like: Any) -> dict[str, Any]:
    """Arrays and values of a log in the inputs' type."""
    return {k: _like(v, like) if isinstance(v, np.ndarray) else _scalar(v, like) if isinstance(v, float) else v for k, v in found.items()}


def _warm(warmstart: bool | None) -> None:
    _not_done("warmstart", warmstart, (None, True), "the passes of a step begin where those of the last ended, with the same plan")


def _dummies(nb_dummies: int, thres: float = 1) -> None:
    _not_done("nb_dummies", nb_dummies, (1,), "one dummy point a side is exact")
    _not_done("thres", thres, (1,), "it is not in use in POT either")


def _no_graph(name: str, *inputs: Any) -> None:
    if _wants_graph(*inputs):
        raise errors.Unsupported(f"{name} carries no gradients: detach its arguments, or take {name}2, whose value has them, "
                                 "or fourge.gw.sampled_gw(..., differentiable=True)")


def _choice(value: Any, name: str, choices: Sequence[str]) -> str:
    if not isinstance(value, str) or value.lower() not in choices:
        raise errors.BadArgument(f"{name}={value!r} is unknown: there are {', '.join(map(repr, choices))}")
    return value.lower()


# ---- the quadratic problem -----------------------------------------------------------------------------------------


class _Quadratic:
    """(1 - alpha) <M, T> + alpha E(T), its gradient and what a step from T along S makes of it."""

    def __init__(self, C1: Any, C2: Any, loss_fun: str, symmetric: bool | None, M: Any = None, alpha: Any = 1.0):
        self.c, self.d = _real(C1, "C1"), _real(C2, "C2")
        for x, name in ((self.c, "C1"), (self.d, "C2")):
            if x.shape[0] != x.shape[1]:
                raise errors.BadArgument(f"{name}: expected a square matrix, got shape {x.shape}")
            if len(x) == 0:
                raise errors.BadArgument(f"{name} has no points")
            _checked(x, name, 0 if str(loss_fun).lower() == "kl_loss" else -np.inf)
        self.loss = _LOSSES[_choice(loss_fun, "loss_fun", tuple(_LOSSES))]
        f1, f2, h1, h2 = self.loss[:4]
        self.f1, self.f2, self.h1, self.h2 = f1(self.c), f2(self.d), h1(self.c), h2(self.d)
        self.alpha = _number(alpha)
        if not 0 <= self.alpha <= 1:
            raise errors.BadArgument(f"alpha is {self.alpha:g}: expected a number from 0 to 1")
        self.linear = None if M is None else _checked(_real(M, "M"), "M")
        if self.linear is not None and self.linear.shape != (len(self.c), len(self.d)):
            raise errors.BadArgument(f"M: expected shape {(len(self.c), len(self.d))}, got {self.linear.shape}")
        if symmetric is None:
            symmetric = all(np.allclose(x, x.T, atol=1e-10) for x in (self.c, self.d))
        self.symmetric = bool(symmetric)

    def costs(self, t: np.ndarray) -> np.ndarray:
        """K(T) with E(T) = <K(T), T>: K_ij = sum_kl L(C1_ik, C2_jl) T_kl."""
        return (self.f1 @ t.sum(1))[:, None] + self.f2 @ t.sum(0) - self.h1 @ t @ self.h2.T

    def gradients(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """K(T), and the gradient of E: K and the same of transposed matrices."""
        k = self.costs(t)
        if self.symmetric:
            return k, 2 * k
        return k, k + (self.f1.T @ t.sum(1))[:, None] + self.f2.T @ t.sum(0) - self.h1.T @ t @ self.h2

    def with_linear(self, quadratic: Any, t: Any) -> Any:
        """What M adds: to a number of the plan t, or to a gradient (t = 1)."""
        if self.linear is None:
            return quadratic
        return (1 - self.alpha) * (np.sum(self.linear * t) if np.ndim(quadratic) == 0 else self.linear) + self.alpha * quadratic

    def value(self, t: np.ndarray) -> float:
        return float(self.with_linear(np.sum(self.costs(t) * t), t))

    def gradient(self, t: np.ndarray) -> np.ndarray:
        return self.with_linear(self.gradients(t)[1], 1)

    def parts(self, t: np.ndarray) -> tuple[float, float]:
        """<M, T> and E(T)."""
        return 0.0 if self.linear is None else float(np.sum(self.linear * t)), float(np.sum(self.costs(t) * t))

    def of_inputs(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        """Gradients in C1, C2, M and alpha at the plan T held fixed."""
        r, s = t.sum(1), t.sum(0)
        df1, df2, dh2 = self.loss[4:]
        share = 1.0 if self.linear is None else self.alpha
        of_c = df1(self.c) * np.outer(r, r) - t @ self.h2 @ t.T
        of_d = df2(self.d) * np.outer(s, s) - dh2(self.d) * (t.T @ self.h1 @ t)
        linear, quadratic = self.parts(t)
        return share * of_c, share * of_d, (1 - self.alpha) * t, np.array(quadratic - linear)


def _mirror(problem: _Quadratic, start: np.ndarray, project: Callable[[np.ndarray, np.ndarray], np.ndarray], max_iter: int, tol: float,
            verbose: bool) -> tuple[np.ndarray, dict[str, Any]]:
    """T <- project(gradient at T) until T changes by less than tol (Frobenius), which is looked at in every tenth step.

    Where the last step changes it by more, and by more than rounding may, a warning says so."""
    t, changes = start, []
    before = t
    for step in range(max_iter):
        before, t = t, project(problem.gradient(t), t)
        if step % 10 == 0:
            changes.append(float(np.linalg.norm(t - before)))
            say(verbose, step, changes[-1])
            if changes[-1] <= tol:
                break
    last = float(np.linalg.norm(t - before))
    if last > max(tol, _SETTLED * float(np.linalg.norm(t))):
        warnings.warn(f"after {max_iter} steps the plan still changes by {last:.2g}, tol is {tol:g}: more steps, or a larger epsilon or reg, "
                      "may end at a stationary one", errors.NotConverged, stacklevel=outside())
    return t, {"err": changes}


# ---- transport -----------------------------------------------------------------------------------------------------


def _emd(cost: np.ndarray, a: np.ndarray, b: np.ndarray, options: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
    plan, f, g = np.empty(cost.shape), np.empty(len(a)), np.empty(len(b))
    c = context(dict(options))
    report = _fourge.emd(c, np.ascontiguousarray(cost), a, b, plan, f, g)
    _warn_of(c)
    shift = (f[a > 0].mean() - g[b > 0].mean()) / 2  # POT's choice among the duals that differ by a constant
    warning = None if report["optimal"] else "the most pivots were done before the optimum was reached"
    return plan, {"cost": float(report["cost"]), "u": f - shift, "v": g + shift, "warning": warning,
                  "result_code": int(report["optimal"])}


@_options.takes(_options.Read, "context")
def emd(a: Any, b: Any, M: Any, log: bool = False, **options: Unpack[_options.Read]) -> Any:
    """``ot.emd``: a vertex of least <M, P> over P 1 = a, P' 1 = b, (n, m), by assignment or network simplex in double.

    a (n,) and b (m,) have equal sums, uniform without; M (n, m) any finite costs.  The plan carries no gradients.  With
    ``log=True``: (plan, dict with "cost", "u", "v": duals u_i + v_j <= M_ij, "warning", "result_code").  POT's numItermax
    and numThreads are not needed.
    """
    _options.check(emd, options)
    cost = _real(M, "M")
    plan, found = _emd(cost, _histogram(a, "a", cost.shape[0]), _histogram(b, "b", cost.shape[1]), dict(options))
    out = _like(plan, M, a, b)
    return (out, _typed(found, M)) if log else out


@_options.takes(emd)
def emd2(a: Any, b: Any, M: Any, log: bool = False, return_matrix: bool = False, **options: Any) -> Any:
    """``ot.emd2``: the cost of :func:`emd`'s plan, with the gradients u and v, centred, in a and b, and P in M; its parameters.

    ``return_matrix`` puts the plan into the log, as "G".  Several histograms as columns of b (m, k) give k costs.
    """
    _options.check(emd2, options)
    if np.ndim(b) > 1:
        each = [emd2(a, b[:, k], M, log, return_matrix, **options) for k in range(b.shape[1])]
        return each if log else _stack(each, M)
    plan, found = emd(a, b, M, log=True, **options)
    u, v = (np.asarray(array(found[k])) for k in "uv")
    cost = _value(_number(found["cost"]), M, (M, array(plan)), (a, u - u.mean()), (b, v - v.mean()))
    return (cost, found | ({"G": plan} if return_matrix else {})) if log else cost


def _stack(values: list[Any], like: Any) -> Any:
    if any(_is_tensor(v) for v in values):
        import torch

        return torch.stack([torch.as_tensor(v) for v in values])
    return _like(np.array(values, np.float64), like)


_SINKHORNS = ("sinkhorn", "sinkhorn_log", "greenkhorn", "sinkhorn_stabilized", "sinkhorn_epsilon_scaling")


def _mass(a: Any, b: Any) -> float:
    """What both histograms hold; 1 where both are left to be uniform, or what they hold is no positive number."""
    sums = [float(np.sum(array(w, "weights"), dtype=np.float64)) for w in (a, b) if not _is_empty(w)]
    return sums[0] if sums and 0 < sums[0] < np.inf else 1.0


def _shares(a: Any, b: Any, size: float) -> list[Any]:
    """The histograms divided by what they hold."""
    return [w if _is_empty(w) or size == 1 else np.asarray(array(w, "weights"), np.float64) / size for w in (a, b)]


def _is_balanced(settings: dict[str, Any]) -> bool:
    return not settings.get("mass") and not any(np.isfinite(settings.get(k, np.inf)) for k in ("rho_source", "rho_target"))


@_options.takes(_options.Sinkhorn, "context", "sinkhorn")
def sinkhorn(a: Any, b: Any, M: Any, reg: float, method: str = "sinkhorn", numItermax: int = 1000, stopThr: float = 1e-9,
             verbose: bool = False, log: bool = False, warn: bool = True, warmstart: Any = None, tau: float = 1e5,
             **options: Unpack[_options.Sinkhorn]) -> Any:
    """``ot.sinkhorn``: the (n, m) plan of least <M, P> + reg sum P (log P - 1) between a (n,) and b (m,), for a cost M (n, m).

    Other options are those of :func:`fourge.gw.transport`.  At most numItermax passes; ``verbose`` shows a bar,
    ``warn=False`` says nothing of a run that did not settle.  With b (m, k), k histograms, the costs <M, P> of their plans,
    (k,), as in POT.

    Every method of POT's ("sinkhorn", "sinkhorn_log", "greenkhorn", "sinkhorn_stabilized", "sinkhorn_epsilon_scaling") is
    solved in logarithms, in float64.  ``stopThr`` is compared with the L1 error of the marginals relative to the mass.
    ``tau``, where POT's stabilised passes renew their scalings, is not needed.  reg = 0 is :func:`emd`'s problem, and a
    warning.  The plan has the mass of a and b; sums that differ, which no plan has, are refused.  Of torch tensors that
    require gradients the plan carries those of the settled iteration. With ``log=True``: (plan, dict with "err", "niter",
    "log_u", "log_v", "u", "v", "warmstart").
    """
    _options.check(sinkhorn, options)
    _not_done("method", _choice(method, "method", _SINKHORNS), _SINKHORNS[:2],
              "every method is Sinkhorn's iteration in logarithms, which is stable for every reg")
    _not_done("tau", tau, (1e5,), "scalings are in logarithms and never renewed")
    if np.ndim(b) > 1:
        return _sinkhorn_of_many(a, b, M, reg, log, warmstart, method=method, numItermax=numItermax, stopThr=stopThr, verbose=verbose,
                                 warn=warn, **options)
    if reg == 0:
        return _without_entropy(a, b, M, log)
    reg = _positive(reg, "reg")
    cost = _real(M, "M")
    start: Any = None if warmstart is None else tuple(reg * np.asarray(array(w, "warmstart"), np.float64) for w in warmstart)
    settings: dict[str, Any] = {"epsilon": reg, "tol": stopThr, "max_iter": int(numItermax), "cost_store": "f64", "round": False}
    settings |= options
    balanced = _is_balanced(settings)
    size = _mass(a, b) if balanced else 1.0
    with warnings.catch_warnings():
        if not warn:
            warnings.simplefilter("ignore")
        found = gw.transport(cost, *_shares(a, b, size), start=start, progress=verbose, **settings)
    if _wants_graph(M, a, b):
        from .torch import _sinkhorn_plan

        plan = _sinkhorn_plan(found, M, a, b, size, balanced)
    else:
        plan = _like(size * found.plan(), M, a, b)
    if warn and not found.report["converged"]:
        floor = found.report["rounding_floor"]
        less = "" if floor != floor else "; rounding leaves no less"
        warnings.warn(f"the marginals differ by {found.report['column_error']:.2g} after {found.report['iterations']} passes, stopThr is "
                      f"{stopThr:g}{less}", errors.NotConverged, stacklevel=outside())
    if not log:
        return plan
    f, g = (v + reg * np.log(size) / 2 for v in found.potentials)
    return plan, {"err": [found.report["column_error"]], "niter": found.report["iterations"],
                  **{k: _like(v, M, a, b) for k, v in _scalings(f / reg, g / reg).items()},
                  "warmstart": (_like(f / reg, M, a, b), _like(g / reg, M, a, b))}


def _without_entropy(a: Any, b: Any, M: Any, log: bool) -> Any:
    """Of reg = 0, where POT's scalings are not numbers."""
    warnings.warn("reg is 0: the plan without entropy, emd's, which has no scalings u and v", stacklevel=outside())
    plan, found = emd(a, b, M, log=True)
    return (plan, {"err": [0.0], "niter": 0, "cost": found["cost"]}) if log else plan


def _scalings(log_u: np.ndarray, log_v: np.ndarray) -> dict[str, np.ndarray]:
    with np.errstate(over="ignore"):
        return {"log_u": log_u, "log_v": log_v, "u": np.exp(log_u), "v": np.exp(log_v)}


def _sinkhorn_of_many(a: Any, b: Any, M: Any, reg: float, log: bool, warmstart: Any, **options: Any) -> Any:
    """The costs of as many plans as b has columns."""
    starts: list[Any] = [None] * b.shape[1] if warmstart is None else [(u, v) for u, v in zip(*(np.asarray(w).T for w in warmstart))]
    each = [sinkhorn(a, b[:, k], M, reg, log=True, warmstart=starts[k], **options) for k in range(b.shape[1])]
    costs = _stack([(plan * M).sum() for plan, _ in each], M)
    if not log:
        return costs
    sides = {k: _like(np.stack([array(found[k]) for _, found in each], 1), M, a, b) for k in ("log_u", "log_v", "u", "v")}
    return costs, {"err": [max(found["err"][0] for _, found in each)], "niter": max(found["niter"] for _, found in each), **sides,
                   "warmstart": (sides["log_u"], sides["log_v"])}


@_options.takes(sinkhorn)
def sinkhorn2(a: Any, b: Any, M: Any, reg: float, method: str = "sinkhorn", numItermax: int = 1000, stopThr: float = 1e-9,
              verbose: bool = False, log: bool = False, warn: bool = False, warmstart: Any = None, tau: float = 1e5, **options: Any) -> Any:
    """``ot.sinkhorn2``: the cost <M, P> of :func:`sinkhorn`'s plan, without the entropy, or (k,) of k histograms in b; its parameters.

    Gradients flow through the plan.  With ``log=True``: (cost, dict as in :func:`sinkhorn`).
    """
    _options.check(sinkhorn2, options)
    _choice(method, "method", ("sinkhorn", "sinkhorn_log", "sinkhorn_stabilized"))
    out, found = sinkhorn(a, b, M, reg, method, numItermax, stopThr, verbose, True, warn, warmstart, tau, **options)
    cost = out if np.ndim(b) > 1 else (M * out).sum()
    return (cost, found) if log else cost


_UNBALANCED = ("sinkhorn", "sinkhorn_stabilized", "sinkhorn_translation_invariant", "sinkhorn_reg_scaling")


def _penalties(reg_m: Any) -> tuple[float, float]:
    given = [_number(x) for x in reg_m] if np.ndim(reg_m) > 0 or isinstance(reg_m, (tuple, list)) else [_number(reg_m)]
    if len(given) not in (1, 2):
        raise ValueError(f"reg_m: expected a number or two, got {len(given)}")
    for r in given:
        if not r > 0:
            raise errors.BadArgument(f"reg_m is {r:g}: expected a number > 0, or infinity")
    return given[0], given[-1]


def _divergence(x: np.ndarray, y: np.ndarray) -> float:
    """KL(x | y) = sum x log(x / y) - x + y."""
    return float(np.sum(x * np.log(np.maximum(x, 1e-300) / np.maximum(y, 1e-300)) - x + y))


@_options.takes(_options.Unseeded, "context")
def sinkhorn_unbalanced(a: Any, b: Any, M: Any, reg: float, reg_m: Any, method: str = "sinkhorn", reg_type: str = "kl", c: Any = None,
                        warmstart: Any = None, numItermax: int = 1000, stopThr: float = 1e-6, verbose: bool = False,
                        log: bool = False, **options: Unpack[_options.Unseeded]) -> Any:
    """``ot.unbalanced.sinkhorn_unbalanced``: the (n, m) plan of least

        <M, P> + reg KL(P | c) + reg_m1 KL(P 1 | a) + reg_m2 KL(P' 1 | b),      KL(x | y) = sum x log(x / y) - x + y

    reg_m: a number or two, infinite for a side that holds; c (n, m): a b' without, ones with ``reg_type="entropy"``; M (n,
    m).  With b (m, k) the costs <M, P> of k plans (reference: ones, as in POT).  Every method of POT's is the
    translation-invariant iteration in logarithms (Sejourne, Vialard and Peyre 2022); ``stopThr`` is the largest change of a
    potential / reg.  Of torch tensors that require gradients the plan carries those of its passes.  With ``log=True``:
    (plan, dict with "err", "logu", "logv", "cost", "total_cost").
    """
    _options.check(sinkhorn_unbalanced, options)
    _choice(method, "method", _UNBALANCED)
    kind = _choice(reg_type, "reg_type", ("kl", "entropy"))
    penalties, reg = _penalties(reg_m), _positive(reg, "reg")
    if np.ndim(b) > 1:
        return _unbalanced_of_many(a, b, M, reg, reg_m, method, warmstart, numItermax, stopThr, verbose, log, **options)
    cost = _real(M, "M")
    n, m = cost.shape
    mine = _histogram(a, "a", n), _histogram(b, "b", m)
    reference = np.ones((n, m)) if kind == "entropy" else np.outer(*mine) if c is None else _real(c, "c")
    plain = kind == "kl" and c is None
    shifted = None if kind == "entropy" or plain else cost - reg * np.log(np.maximum(reference, 1e-300))
    if shifted is not None and _wants_graph(M, a, b):
        raise errors.Unsupported("c with tensors that require gradients: detach them, or leave c out")
    start: Any = None if warmstart is None else tuple(reg * np.asarray(array(w, "warmstart"), np.float64) for w in warmstart)
    balanced = bool(np.isinf(penalties).all())
    size = _mass(*mine) if balanced else 1.0
    settings: dict[str, Any] = {"epsilon": reg, "tol": stopThr, "max_iter": int(numItermax), "cost_store": "f64", "round": False,
                                "rho_source": penalties[0], "rho_target": penalties[1],
                                "reference": "product" if plain and not balanced else "counting"}
    settings |= options
    found = gw.transport(cost if shifted is None else shifted, *_shares(*mine, size), start=start, progress=verbose,
                         **settings)
    if _wants_graph(M, a, b):
        from .torch import _sinkhorn_plan

        plan = _sinkhorn_plan(found, M, a, b, size, balanced)
    else:
        plan = _like(size * found.plan(), M, a, b)
    if not log:
        return plan
    p = array(plan)
    total = float(np.sum(p * cost)) + reg * _divergence(p, reference) + sum(
        r * _divergence(p.sum(1 - side), mine[side]) for side, r in enumerate(penalties) if np.isfinite(r))
    f, g = (v / reg - (np.log(np.maximum(w, 1e-300)) if plain else 0) for v, w in zip(found.potentials, mine))
    return plan, {"err": [found.report["column_error"]], "logu": _like(f, M, a, b), "logv": _like(g, M, a, b),
                  "cost": (plan * M).sum(), "total_cost": _scalar(total, M)}


def _unbalanced_of_many(a: Any, b: Any, M: Any, reg: float, reg_m: Any, method: str, warmstart: Any, numItermax: int, stopThr: float,
                        verbose: bool, log: bool, **options: Any) -> Any:
    starts: list[Any] = [None] * b.shape[1] if warmstart is None else [(u, v) for u, v in zip(*(np.asarray(w).T for w in warmstart))]
    each = [sinkhorn_unbalanced(a, b[:, k], M, reg, reg_m, method, "entropy", None, starts[k], numItermax, stopThr, verbose,
                                True, **options) for k in range(b.shape[1])]
    costs = _stack([found["cost"] for _, found in each], M)
    sides = {k: _like(np.stack([array(found[k]) for _, found in each], 1), M, a, b) for k in ("logu", "logv")}
    return (costs, {"err": [max(found["err"][0] for _, found in each)], **sides}) if log else costs


@_options.takes(sinkhorn_unbalanced)
def sinkhorn_unbalanced2(a: Any, b: Any, M: Any, reg: float, reg_m: Any, method: str = "sinkhorn", reg_type: str = "kl", c: Any = None,
                         warmstart: Any = None, returnCost: str = "linear", numItermax: int = 1000, stopThr: float = 1e-6,
                         verbose: bool = False, log: bool = False, **options: Any) -> Any:
    """``ot.unbalanced.sinkhorn_unbalanced2``: <M, P> of :func:`sinkhorn_unbalanced`'s plan, or with ``returnCost="total"`` the whole
    objective as it stands there, where POT leaves the masses of the divergences, -x + y, out; its parameters; k values for b (m, k),
    linear ones."""
    _options.check(sinkhorn_unbalanced2, options)
    which = _choice(returnCost, "returnCost", ("linear", "total"))
    out, found = sinkhorn_unbalanced(a, b, M, reg, reg_m, method, reg_type, c, warmstart, numItermax, stopThr, verbose, True, **options)
    value = out if np.ndim(b) > 1 else found["cost" if which == "linear" else "total_cost"]
    return (value, found) if log else value


# ---- partial transport ---------------------------------------------------------------------------------------------


def _share(m: Any, a: np.ndarray, b: np.ndarray) -> float:
    """The mass to carry: all that both sides have without."""
    most = float(min(a.sum(), b.sum()))
    m = most if m is None else _number(m)
    if not 0 <= m <= most * (1 + 1e-12):
        raise errors.BadArgument(f"m is {m:g}: expected a mass from 0 to {most:g}, the smaller sum of the weights")
    return min(m, most)


def _within(plan: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rows that have more than a, and columns that have more than b, by rounding too, are scaled down to just below it."""
    for axis, most in ((1, a), (0, b)):
        sums = plan.sum(axis)
        over = np.where(sums > most, most / np.maximum(sums, 1e-300) * (1 - 1e-15), 1.0)
        plan = plan * (over[:, None] if axis else over)
    return plan


def _partial_emd(cost: np.ndarray, a: np.ndarray, b: np.ndarray, m: float, options: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
    """P 1 <= a, P' 1 <= b, sum P = m: one dummy point a side takes what stays, at a cost of 0, and both none from each other."""
    n, k = cost.shape
    wide = np.zeros((n + 1, k + 1))
    wide[:n, :k] = cost
    wide[n, k] = 2 * max(float(np.abs(cost).max()), 1e-300) * (1 + n + k)
    plan, found = _emd(wide, np.append(a, b.sum() - m), np.append(b, a.sum() - m), options)
    return _within(plan[:n, :k], a, b), found | {"u": found["u"][:n], "v": found["v"][:k]}


@_options.takes(_options.Read, "context")
def partial_wasserstein(a: Any, b: Any, M: Any, m: float | None = None, nb_dummies: int = 1, log: bool = False,
                        **options: Unpack[_options.Read]) -> Any:
    """``ot.partial.partial_wasserstein``: the plan of least <M, P> over P 1 <= a, P' 1 <= b, sum P = m; (n, m) plan of a cost M.

    a (n,), b (m,): weights, uniform without; m: the mass, by default all that the smaller side has (POT without m solves
    its Lagrangian, which carries nothing at a positive cost).  One dummy point a side is enough: ``nb_dummies`` is
    accepted.  With ``log=True``: (plan, dict with "cost", "partial_w_dist", "u", "v").
    """
    _options.check(partial_wasserstein, options)
    _dummies(nb_dummies)
    cost = _checked(_real(M, "M"), "M")
    mine = _histogram(a, "a", cost.shape[0]), _histogram(b, "b", cost.shape[1])
    plan, found = _partial_emd(cost, *mine, _share(m, *mine), dict(options))
    out = _like(plan, M, a, b)
    return (out, _typed(found | {"partial_w_dist": float(np.sum(plan * cost))}, M)) if log else out


@_options.takes(partial_wasserstein)
def partial_wasserstein2(a: Any, b: Any, M: Any, m: float | None = None, nb_dummies: int = 1, log: bool = False, **options: Any) -> Any:
    """``ot.partial.partial_wasserstein2``: the cost of :func:`partial_wasserstein`'s plan, with the gradient P in M; its parameters.
    With ``log=True``: (cost, dict with the plan "T")."""
    _options.check(partial_wasserstein2, options)
    _dummies(nb_dummies)
    plan, found = partial_wasserstein(a, b, M, m, nb_dummies, True, **options)
    value = _value(_number(found["partial_w_dist"]), M, (M, array(plan)))
    return (value, found | {"T": plan}) if log else value


def _log_sum(x: np.ndarray, axis: int) -> np.ndarray:
    most = x.max(axis, keepdims=True)
    return np.log(np.exp(x - most).sum(axis)) + most.squeeze(axis)


def _partial_sinkhorn(cost: np.ndarray, a: np.ndarray, b: np.ndarray, reg: float, m: float, passes: int, tol: float) -> np.ndarray:
    """P = exp(s + u_i + v_j - M_ij / reg) with u, v <= 0, in turn the largest that keep the rows below a and the columns below b, and
    s for the mass: ascent of the dual, whose projections are those of Benamou, Carlier, Cuturi, Nenna and Peyre (2015)."""
    with np.errstate(divide="ignore"):
        log_a, log_b, log_m = np.log(a), np.log(b), np.log(m)
    kernel = -cost / reg
    u, v = np.where(a > 0, 0.0, -np.inf), np.where(b > 0, 0.0, -np.inf)
    s = log_m - _log_sum(_log_sum((kernel + v)[a > 0], 1) + u[a > 0], 0)
    for _ in range(passes):
        before = u[a > 0], v[b > 0]
        u[a > 0] = np.minimum(0, (log_a - s)[a > 0] - _log_sum((kernel + v)[a > 0], 1))
        columns = _log_sum((kernel + u[:, None])[:, b > 0], 0)
        v[b > 0] = np.minimum(0, log_b[b > 0] - s - columns)
        s = log_m - _log_sum(columns + v[b > 0], 0)
        if max(np.abs(u[a > 0] - before[0]).max(), np.abs(v[b > 0] - before[1]).max()) <= tol:
            break
    return _within(np.exp(s + u[:, None] + v + kernel), a, b)  # what is left of the passes, and rounding


def _say_missing(plan: np.ndarray, m: float) -> None:
    """Rows and columns of a plan whose passes have not settled were cut to what there is."""
    carried = float(plan.sum())
    if carried < m * (1 - _MISSED):
        warnings.warn(f"the passes did not settle: the plan carries {carried:.6g}, m is {m:.6g}; more passes (numItermax) or a larger reg carry "
                      "it all", errors.NotConverged, stacklevel=outside())


def entropic_partial_wasserstein(a: Any, b: Any, M: Any, reg: float, m: float | None = None, method: str = "sinkhorn",
                                 numItermax: int = 1000, stopThr: float = 1e-100, verbose: bool = False, log: bool = False) -> Any:
    """``ot.partial.entropic_partial_wasserstein``: least <M, P> + reg sum P (log P - 1) over P 1 <= a, P' 1 <= b, sum P = m; (n, m).

    a (n,), b (m,), M (n, m); m: the mass, all that the smaller side has without.  In logarithms for every method of POT's
    ("sinkhorn", "sinkhorn_log"): at most numItermax passes, until no scaling changes by more than the factor 1 + stopThr;
    ``verbose`` is accepted. The plan carries no gradients.  With ``log=True``: (plan, dict with "partial_w_dist").
    """
    _choice(method, "method", ("sinkhorn", "sinkhorn_log"))
    cost = _checked(_real(M, "M"), "M")
    mine = _histogram(a, "a", cost.shape[0]), _histogram(b, "b", cost.shape[1])
    mass = _share(m, *mine)
    plan = _partial_sinkhorn(cost, *mine, _positive(reg, "reg"), mass, _steps(numItermax, "numItermax"), stopThr)
    _say_missing(plan, mass)
    out = _like(plan, M, a, b)
    return (out, {"err": [], "partial_w_dist": _scalar(float(np.sum(plan * cost)), M)}) if log else out


# ---- Gromov-Wasserstein --------------------------------------------------------------------------------------------


def _start(G0: Any, product: np.ndarray, marginals: Sequence[np.ndarray | None] = ()) -> np.ndarray:
    """The plan to start from, whose marginals have to be right, those that are given."""
    if G0 is None:
        return product
    g = _checked(_real(G0, "G0"), "G0", 0)
    if g.shape != product.shape:
        raise errors.BadArgument(f"G0: expected shape {product.shape}, got {g.shape}")
    for axis, wanted in zip((1, 0), marginals):
        if wanted is not None and not np.allclose(g.sum(axis), wanted, atol=1e-8):
            raise errors.BadArgument(f"G0: its {('columns', 'rows')[axis]} sum to other weights than "
                                     f"{'pq'[1 - axis]}, by {np.abs(g.sum(axis) - wanted).max():.2g}")
    return g


def _of_integers(*inputs: Any) -> None:
    """POT's warning for matrices of integers, whose plan it casts to their type; ours is one of floats."""
    if any(str(getattr(x, "dtype", "")).rpartition(".")[2].startswith(("int", "uint")) for x in inputs):
        warnings.warn("the matrices are of integers; the plan is one of floats, where POT casts it to their type", stacklevel=outside())


def _balanced(M: Any, C1: Any, C2: Any, p: Any, q: Any, loss_fun: str, symmetric: bool | None, alpha: Any, armijo: bool, G0: Any,
              max_iter: Any, tol_rel: float, tol_abs: float, alpha_min: float | None, alpha_max: float | None, verbose: bool,
              options: dict[str, Any], warn: bool = True) -> tuple[_Quadratic, np.ndarray, dict[str, Any]]:
    problem = _Quadratic(C1, C2, loss_fun, symmetric, M, alpha)
    mine = _marginals(p, q, len(problem.c), len(problem.d))
    _of_integers(C1, C2)
    start = _start(G0, np.outer(*mine) / mine[1].sum(), mine)
    plan, found = descend(problem, start, lambda cost: _emd(cost, *mine, options), _steps(max_iter, "max_iter"), tol_rel, tol_abs,
                          armijo, (alpha_min, alpha_max), verbose, warn)
    return problem, plan, found


@_options.takes(_options.Read, "context")
def gromov_wasserstein(C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss", symmetric: bool | None = None,
                       log: bool = False, armijo: bool = False, G0: Any = None, max_iter: float = 1e4, tol_rel: float = 1e-9,
                       tol_abs: float = 1e-9, alpha_min: float | None = None, alpha_max: float | None = None, verbose: bool = False,
                       **options: Unpack[_options.Read]) -> Any:
    """``ot.gromov.gromov_wasserstein``: a stationary plan of E(T) = sum L(C1_ik, C2_jl) T_ij T_kl, mostly a vertex.

    C1 (n, n), C2 (m, m) of any kind, symmetric or not; p (n,), q (m,) of equal sums; loss_fun "square_loss" or "kl_loss";
    symmetric: None looks; G0 (n, m): the plan to start from, p q' without; max_iter steps at most, whose losses ``verbose``
    prints, and a warning then.  POT's method, from the same start: conditional gradient with an exact line search
    (``armijo``: POT's backtracking), steps clipped to alpha_min and alpha_max, until a step gains less than tol_rel of the
    value or less than tol_abs.  Where the line search is exact and a step to an earlier vertex, or the last of n + m new
    ones, gains less than 1e-4 of the value, mass is exchanged between these vertices besides.  Where POT's steps zigzag
    between few vertices, these then end after a tenth of them, at a plan that is lower by that much or at another; in a face
    of many dimensions, as of C1 and -C2 positive definite, they are lower after as many steps, and max_iter may still be
    what ends them. Where several vertices have one cost, POT may take another. One start finds a local optimum:
    :func:`fourge.gw.align` with ``mode="vertex"`` races many. Returns the plan, which carries no gradients (nor does
    POT's), with ``log=True`` (plan, dict with "gw_dist", "loss" of every step, "u" and "v" of the last linear problem,
    "gap" <dE(T), T - V> to its vertex V, "reason": "tolerance", or the gap or the gain is rounding, "stationary" and
    "rounding", or "max_iter").
    """
    _options.check(gromov_wasserstein, options)
    _, plan, found = _balanced(None, C1, C2, p, q, loss_fun, symmetric, 1.0, armijo, G0, max_iter, tol_rel, tol_abs, alpha_min, alpha_max,
                               verbose, dict(options))
    out = _like(plan, C1, C2)
    return (out, _typed(found | {"gw_dist": found["loss"][-1]}, C1)) if log else out


@_options.takes(gromov_wasserstein)
def gromov_wasserstein2(C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss", symmetric: bool | None = None,
                        log: bool = False, armijo: bool = False, G0: Any = None, max_iter: float = 1e4, tol_rel: float = 1e-9,
                        tol_abs: float = 1e-9, **options: Any) -> Any:
    """``ot.gromov.gromov_wasserstein2``: E of :func:`gromov_wasserstein`'s plan; its parameters, C1 (n, n), C2 (m, m), p, q.

    Gradients in C1 and C2 are those at the plan T held fixed (the envelope theorem), for "square_loss" 2 C1 .* p p' - 2 T
    C2 T'; in p and q the duals of the last linear problem, centred.  With ``log=True``: (value, dict with the plan "T").
    """
    _options.check(gromov_wasserstein2, options)
    problem, plan, found = _balanced(None, C1, C2, p, q, loss_fun, symmetric, 1.0, armijo, G0, max_iter, tol_rel, tol_abs,
                                     options.pop("alpha_min", None), options.pop("alpha_max", None), options.pop("verbose", False), options)
    of_c, of_d, _, _ = problem.of_inputs(plan)
    value = _value(found["loss"][-1], C1, (C1, of_c), (C2, of_d), (p, found["u"] - found["u"].mean()),
                   (q, found["v"] - found["v"].mean()))
    return (value, _typed(found, C1) | {"gw_dist": value, "T": _like(plan, C1, C2)}) if log else value


@_options.takes(_options.Read, "context")
def fused_gromov_wasserstein(M: Any, C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss",
                             symmetric: bool | None = None, alpha: float = 0.5, armijo: bool = False, G0: Any = None, log: bool = False,
                             max_iter: float = 1e4, tol_rel: float = 1e-9, tol_abs: float = 1e-9, alpha_min: float | None = None,
                             alpha_max: float | None = None, verbose: bool = False, **options: Unpack[_options.Read]) -> Any:
    """``ot.gromov.fused_gromov_wasserstein``: a stationary plan of (1 - alpha) <M, T> + alpha E(T); M (n, m) costs between points.

    Other parameters, the method and what is returned are those of :func:`gromov_wasserstein`; "fgw_dist" in the log is the
    value.
    """
    _options.check(fused_gromov_wasserstein, options)
    _, plan, found = _balanced(M, C1, C2, p, q, loss_fun, symmetric, alpha, armijo, G0, max_iter, tol_rel, tol_abs, alpha_min, alpha_max,
                               verbose, dict(options))
    out = _like(plan, M, C1, C2)
    return (out, _typed(found | {"fgw_dist": found["loss"][-1]}, M)) if log else out


@_options.takes(fused_gromov_wasserstein)
def fused_gromov_wasserstein2(M: Any, C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss",
                              symmetric: bool | None = None, alpha: Any = 0.5, armijo: bool = False, G0: Any = None, log: bool = False,
                              max_iter: float = 1e4, tol_rel: float = 1e-9, tol_abs: float = 1e-9, **options: Any) -> Any:
    """``ot.gromov.fused_gromov_wasserstein2``: the value of :func:`fused_gromov_wasserstein`'s plan; M (n, m) and its other parameters.

    Gradients as in :func:`gromov_wasserstein2`, in M ((1 - alpha) T) and in alpha (a tensor: E - <M, T>) besides.  With
    ``log=True``: (value, dict with the plan "T", "lin_loss" and "quad_loss").
    """
    _options.check(fused_gromov_wasserstein2, options)
    problem, plan, found = _balanced(M, C1, C2, p, q, loss_fun, symmetric, alpha, armijo, G0, max_iter, tol_rel, tol_abs,
                                     options.pop("alpha_min", None), options.pop("alpha_max", None), options.pop("verbose", False), options)
    value = _fused_value(problem, plan, found["loss"][-1], M, C1, C2, alpha, (p, found["u"] - found["u"].mean()),
                         (q, found["v"] - found["v"].mean()))
    return (value, _typed(found | _losses(problem, plan), M) | {"fgw_dist": value, "T": _like(plan, M, C1, C2)}) if log else value


def _fused_value(problem: _Quadratic, plan: np.ndarray, value: float, M: Any, C1: Any, C2: Any, alpha: Any, *more: tuple[Any, Any]) -> Any:
    of_c, of_d, of_m, of_alpha = problem.of_inputs(plan)
    return _value(value, C1 if M is None else M, (C1, of_c), (C2, of_d), (M, of_m), (alpha, of_alpha), *more)


def _losses(problem: _Quadratic, plan: np.ndarray) -> dict[str, Any]:
    linear, quadratic = problem.parts(plan)
    return {"lin_loss": (1 - problem.alpha) * linear, "quad_loss": problem.alpha * quadratic}


# ---- with entropy --------------------------------------------------------------------------------------------------


def _entropic(M: Any, C1: Any, C2: Any, p: Any, q: Any, loss_fun: str, epsilon: float, symmetric: bool | None, alpha: Any, G0: Any,
              max_iter: Any, tol: float, solver: str, verbose: bool, numItermax: int, stopThr: float, options: dict[str, Any],
              ) -> tuple[_Quadratic, np.ndarray, dict[str, Any]]:
    """Steps T <- the entropic plan of the cost gradient(T), less epsilon log T for "PPA"; Sinkhorn begins with the last potentials."""
    proximal = _choice(solver, "solver", ("pgd", "ppa")) == "ppa"
    problem = _Quadratic(C1, C2, loss_fun, symmetric, M, alpha)
    given = _marginals(p, q, len(problem.c), len(problem.d))
    epsilon, size = _positive(epsilon, "epsilon"), given[0].sum()
    mine = tuple(w / w.sum() for w in given)
    kept: dict[str, Any] = {"start": None}

    def project(gradient: np.ndarray, t: np.ndarray) -> np.ndarray:
        cost = gradient - epsilon * np.log(np.maximum(t, 1e-300)) if proximal else gradient
        found = gw.transport(cost, *mine, start=kept["start"], epsilon=epsilon, tol=stopThr, max_iter=int(numItermax), cost_store="f64",
                             round=False, **options)
        kept["start"] = None if proximal else found.potentials
        kept["potentials"] = found.potentials
        return size * found.plan()

    start = _start(G0, size * np.outer(*mine))
    plan, found = _mirror(problem, start, project, _steps(max_iter, "max_iter"), tol, verbose)
    return problem, plan, found | {"potentials": kept.get("potentials", (np.zeros(len(mine[0])), np.zeros(len(mine[1])))), "weights": mine}


def _entropic_value(problem: _Quadratic, plan: np.ndarray, found: dict[str, Any], M: Any, C1: Any, C2: Any, p: Any, q: Any,
                    alpha: Any) -> Any:
    """With the gradients of value + epsilon sum T (log T - 1) at the plan: in p and q the potentials, centred."""
    more = [(given, f - f @ w) for given, f, w in zip((p, q), found["potentials"], found["weights"])]
    return _fused_value(problem, plan, problem.value(plan), M, C1, C2, alpha, *more)


@_options.takes(_options.Unseeded, "context")
def entropic_gromov_wasserstein(C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss", epsilon: float = 0.1,
                                symmetric: bool | None = None, G0: Any = None, max_iter: int = 1000, tol: float = 1e-9,
                                solver: str = "PGD", warmstart: bool | None = None, verbose: bool = False, log: bool = False,
                                numItermax: int = 1000, stopThr: float = 1e-9, **options: Unpack[_options.Unseeded]) -> Any:
    """``ot.gromov.entropic_gromov_wasserstein``: a stationary plan of E(T) + epsilon sum T (log T - 1), or by ``solver="PPA"`` of E.

    C1 (n, n), C2 (m, m), symmetric or not; p, q of equal sums, uniform without; G0 (n, m) a plan to start from; loss_fun
    and ``symmetric`` as in :func:`gromov_wasserstein`; max_iter steps at most, whose changes ``verbose`` prints,
    until the plan changes by less than tol (Frobenius, every tenth step).  A step is the entropic plan of the linearised
    cost ("PGD"), less epsilon log T ("PPA": proximal steps, whose limit has no blur), with numItermax passes at most until
    the marginals are right to stopThr.  POT's epsilon is twice that of :func:`fourge.gw.align`.  Passes begin with the
    potentials of the step before: ``warmstart=False`` warns.  The plan carries no gradients: tensors that require them
    raise :class:`fourge.errors.Unsupported`.  With ``log=True``: (plan, dict with "gw_dist", E of the plan, and "err").
    """
    _options.check(entropic_gromov_wasserstein, options)
    _warm(warmstart)
    _no_graph("entropic_gromov_wasserstein", C1, C2, p, q, G0)
    problem, plan, found = _entropic(None, C1, C2, p, q, loss_fun, epsilon, symmetric, 1.0, G0, max_iter, tol, solver, verbose, numItermax,
                                     stopThr, dict(options))
    out = _like(plan, C1, C2)
    return (out, {"err": found["err"], "gw_dist": _scalar(problem.value(plan), C1)}) if log else out


@_options.takes(entropic_gromov_wasserstein)
def entropic_gromov_wasserstein2(C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss", epsilon: float = 0.1,
                                 symmetric: bool | None = None, G0: Any = None, max_iter: int = 1000, tol: float = 1e-9,
                                 solver: str = "PGD", warmstart: bool | None = None, verbose: bool = False, log: bool = False,
                                 numItermax: int = 1000, stopThr: float = 1e-9, **options: Any) -> Any:
    """``ot.gromov.entropic_gromov_wasserstein2``: E of :func:`entropic_gromov_wasserstein`'s plan, without the entropy; its parameters.

    C1 (n, n), C2 (m, m), p (n,), q (m,).  For torch tensors a scalar whose backward fills the gradients of C1, C2, p and q
    at the plan held fixed: those of the energy with its entropy (the envelope theorem); of p and q, whose sums are equal,
    those along changes that keep them. With ``log=True``: (value, dict with the plan "T").
    """
    _options.check(entropic_gromov_wasserstein2, options)
    _warm(warmstart)
    problem, plan, found = _entropic(None, C1, C2, p, q, loss_fun, epsilon, symmetric, 1.0, G0, max_iter, tol, solver, verbose, numItermax,
                                     stopThr, options)
    value = _entropic_value(problem, plan, found, None, C1, C2, p, q, 1.0)
    return (value, {"err": found["err"], "gw_dist": value, "T": _like(plan, C1, C2)}) if log else value


@_options.takes(_options.Unseeded, "context")
def entropic_fused_gromov_wasserstein(M: Any, C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss",
                                      epsilon: float = 0.1, symmetric: bool | None = None, alpha: float = 0.5, G0: Any = None,
                                      max_iter: int = 1000, tol: float = 1e-9, solver: str = "PGD", warmstart: bool | None = None,
                                      verbose: bool = False, log: bool = False, numItermax: int = 1000, stopThr: float = 1e-9,
                                      **options: Unpack[_options.Unseeded]) -> Any:
    """``ot.gromov.entropic_fused_gromov_wasserstein``: (1 - alpha) <M, T> + alpha E(T) + epsilon sum T (log T - 1), M (n, m) costs.

    Other parameters, the method and what is returned are those of :func:`entropic_gromov_wasserstein`; "fgw_dist" in the
    log."""
    _options.check(entropic_fused_gromov_wasserstein, options)
    _warm(warmstart)
    _no_graph("entropic_fused_gromov_wasserstein", M, C1, C2, p, q, G0)
    problem, plan, found = _entropic(M, C1, C2, p, q, loss_fun, epsilon, symmetric, alpha, G0, max_iter, tol, solver, verbose, numItermax,
                                     stopThr, dict(options))
    out = _like(plan, M, C1, C2)
    return (out, {"err": found["err"], "fgw_dist": _scalar(problem.value(plan), M)}) if log else out


@_options.takes(entropic_fused_gromov_wasserstein)
def entropic_fused_gromov_wasserstein2(M: Any, C1: Any, C2: Any, p: Any = None, q: Any = None, loss_fun: str = "square_loss",
                                       epsilon: float = 0.1, symmetric: bool | None = None, alpha: Any = 0.5, G0: Any = None,
                                       max_iter: int = 1000, tol: float = 1e-9, solver: str = "PGD", warmstart: bool | None = None,
                                       verbose: bool = False, log: bool = False, numItermax: int = 1000, stopThr: float = 1e-9,
                                       **options: Any) -> Any:
    """``ot.gromov.entropic_fused_gromov_wasserstein2``: the value, without the entropy, of :func:`entropic_fused_gromov_wasserstein`'s
    plan; its parameters, M (n, m).  Gradients as in :func:`entropic_gromov_wasserstein2`, in M and alpha besides.  With
    ``log=True``: (value, dict with the plan "T", "lin_loss", "quad_loss")."""
    _options.check(entropic_fused_gromov_wasserstein2, options)
    _warm(warmstart)
    problem, plan, found = _entropic(M, C1, C2, p, q, loss_fun, epsilon, symmetric, alpha, G0, max_iter, tol, solver, verbose, numItermax,
                                     stopThr, options)
    value = _entropic_value(problem, plan, found, M, C1, C2, p, q, alpha)
    if not log:
        return value
    return value, {"err": found["err"], "fgw_dist": value, "T": _like(plan, M, C1, C2), **_typed(_losses(problem, plan), M)}


# ---- one marginal free ---------------------------------------------------------------------------------------------


def _rows_to_least(p: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, dict[str, Any]]]:
    """A vertex: of several least entries of a row the first has its mass (POT divides it among them)."""
    def vertex(cost: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        v = np.zeros(cost.shape)
        v[np.arange(len(p)), cost.argmin(1)] = p
        return v, {}

    return vertex


def _semirelaxed(M: Any, C1: Any, C2: Any, p: Any, loss_fun: str, symmetric: bool | None, alpha: Any, G0: Any,
                 ) -> tuple[_Quadratic, np.ndarray, np.ndarray]:
    problem = _Quadratic(C1, C2, loss_fun, symmetric, M, alpha)
    mine = _histogram(p, "p", len(problem.c))
    if isinstance(G0, str):
        if _choice(G0, "G0", ("product", "random_product", "random", "fluid", "fluid_soft", "spectral", "spectral_soft", "kmeans",
                              "kmeans_soft")) != "product":
            raise errors.Unsupported(f"G0={G0!r}: give a plan, or take 'product'")
        G0 = None
    return problem, mine, _start(G0, np.outer(mine, np.full(len(problem.d), 1 / len(problem.d))), (mine, None))


def _semirelaxed_plan(M: Any, C1: Any, C2: Any, p: Any, loss_fun: str, symmetric: bool | None, alpha: Any, G0: Any, max_iter: Any,
                      tol_rel: float, tol_abs: float, armijo: bool, bounds: tuple[float | None, float | None], verbose: bool,
                      ) -> tuple[_Quadratic, np.ndarray, dict[str, Any]]:
    problem, mine, start = _semirelaxed(M, C1, C2, p, loss_fun, symmetric, alpha, G0)
    plan, found = descend(problem, start, _rows_to_least(mine), _steps(max_iter, "max_iter"), tol_rel, tol_abs, armijo, bounds,
                          verbose)
    return problem, plan, found


def semirelaxed_gromov_wasserstein(C1: Any, C2: Any, p: Any = None, loss_fun: str = "square_loss", symmetric: bool | None = None,
                                   log: bool = False, G0: Any = None, max_iter: float = 1e4, tol_rel: float = 1e-9,
                                   tol_abs: float = 1e-9, random_state: Any = 0, verbose: bool = False,
                                   armijo: bool = False, alpha_min: float | None = None, alpha_max: float | None = None) -> Any:
    """``ot.gromov.semirelaxed_gromov_wasserstein``: a stationary plan of E(T) over T 1 = p, columns' sums free; (n, m).

    C1 (n, n), C2 (m, m), p (n,); G0: a plan with the rows' sums p, "product" or None (p times uniform); POT's other names
    of starts are refused, and ``random_state`` is accepted for them.  Conditional gradient: each row goes to the least
    entry of its gradient, the first of several (Vincent-Cuaz and others 2022; POT divides it among them).
    Other parameters are those of :func:`gromov_wasserstein`; with ``log=True`` (plan, dict with "srgw_dist", "loss").
    """
    _, plan, found = _semirelaxed_plan(None, C1, C2, p, loss_fun, symmetric, 1.0, G0, max_iter, tol_rel, tol_abs, armijo,
                                             (alpha_min, alpha_max), verbose)
    out = _like(plan, C1, C2)
    return (out, _typed(found | {"srgw_dist": found["loss"][-1]}, C1)) if log else out


def semirelaxed_gromov_wasserstein2(C1: Any, C2: Any, p: Any = None, loss_fun: str = "square_loss", symmetric: bool | None = None,
                                    log: bool = False, G0: Any = None, max_iter: float = 1e4, tol_rel: float = 1e-9,
                                    tol_abs: float = 1e-9, random_state: Any = 0, verbose: bool = False,
                                    armijo: bool = False, alpha_min: float | None = None, alpha_max: float | None = None) -> Any:
    """``ot.gromov.semirelaxed_gromov_wasserstein2``: E of :func:`semirelaxed_gromov_wasserstein`'s plan, with gradients in C1 (n, n) and
    C2 (m, m) at the plan; its parameters.  With ``log=True``: (value, dict with the plan "T")."""
    problem, plan, found = _semirelaxed_plan(None, C1, C2, p, loss_fun, symmetric, 1.0, G0, max_iter, tol_rel, tol_abs, armijo,
                                             (alpha_min, alpha_max), verbose)
    value = _fused_value(problem, plan, found["loss"][-1], None, C1, C2, 1.0)
    return (value, _typed(found, C1) | {"srgw_dist": value, "T": _like(plan, C1, C2)}) if log else value


def semirelaxed_fused_gromov_wasserstein(M: Any, C1: Any, C2: Any, p: Any = None, loss_fun: str = "square_loss",
                                         symmetric: bool | None = None, alpha: float = 0.5, G0: Any = None, log: bool = False,
                                         max_iter: float = 1e4, tol_rel: float = 1e-9, tol_abs: float = 1e-9, random_state: Any = 0,
                                         verbose: bool = False,
                                         armijo: bool = False, alpha_min: float | None = None, alpha_max: float | None = None) -> Any:
    """``ot.gromov.semirelaxed_fused_gromov_wasserstein``: (1 - alpha) <M, T> + alpha E(T) over T 1 = p, M (n, m); otherwise as
    :func:`semirelaxed_gromov_wasserstein`, "srfgw_dist" in the log."""
    _, plan, found = _semirelaxed_plan(M, C1, C2, p, loss_fun, symmetric, alpha, G0, max_iter, tol_rel, tol_abs, armijo,
                                             (alpha_min, alpha_max), verbose)
    out = _like(plan, M, C1, C2)
    return (out, _typed(found | {"srfgw_dist": found["loss"][-1]}, M)) if log else out


def semirelaxed_fused_gromov_wasserstein2(M: Any, C1: Any, C2: Any, p: Any = None, loss_fun: str = "square_loss",
                                          symmetric: bool | None = None, alpha: Any = 0.5, G0: Any = None, log: bool = False,
                                          max_iter: float = 1e4, tol_rel: float = 1e-9, tol_abs: float = 1e-9, random_state: Any = 0,
                                          verbose: bool = False,
                                          armijo: bool = False, alpha_min: float | None = None, alpha_max: float | None = None) -> Any:
    """``ot.gromov.semirelaxed_fused_gromov_wasserstein2``: the value of :func:`semirelaxed_fused_gromov_wasserstein`'s plan, M (n, m), with
    gradients in M, C1, C2 and alpha at the plan.  With ``log=True``: (value, dict with "T", "lin_loss", "quad_loss")."""
    problem, plan, found = _semirelaxed_plan(M, C1, C2, p, loss_fun, symmetric, alpha, G0, max_iter, tol_rel, tol_abs, armijo,
                                             (alpha_min, alpha_max), verbose)
    value = _fused_value(problem, plan, found["loss"][-1], M, C1, C2, alpha)
    return (value, _typed(found | _losses(problem, plan), M) | {"srfgw_dist": value, "T": _like(plan, M, C1, C2)}) if log else value


def _entropic_semirelaxed(M: Any, C1: Any, C2: Any, p: Any, loss_fun: str, epsilon: float, symmetric: bool | None, alpha: Any, G0: Any,
                          max_iter: Any, tol: float, verbose: bool) -> tuple[_Quadratic, np.ndarray, dict[str, Any]]:
    """Mirror descent: T <- T .* exp(-gradient / epsilon), rows scaled to p; what is kept is log T, in which no row vanishes."""
    problem, mine, start = _semirelaxed(M, C1, C2, p, loss_fun, symmetric, alpha, G0)
    epsilon, max_iter = _positive(epsilon, "epsilon"), _steps(max_iter, "max_iter")
    with np.errstate(divide="ignore"):
        log_t = np.log(np.where(start.sum(1, keepdims=True) > 0, start, 1.0))

    def project(gradient: np.ndarray, _: np.ndarray) -> np.ndarray:
        nonlocal log_t
        log_t = log_t - gradient / epsilon
        log_t = log_t - _log_sum(log_t, 1)[:, None]
        shares = np.exp(log_t)
        return shares * (mine / shares.sum(1))[:, None]

    plan, found = _mirror(problem, start, project, max_iter, tol, verbose)
    return problem, plan, found


def entropic_semirelaxed_gromov_wasserstein(C1: Any, C2: Any, p: Any = None, loss_fun: str = "square_loss", epsilon: float = 0.1,
                                            symmetric: bool | None = None, G0: Any = None, max_iter: float = 1e4, tol: float = 1e-9,
                                            log: bool = False, verbose: bool = False, random_state: Any = 0) -> Any:
    """``ot.gromov.entropic_semirelaxed_gromov_wasserstein``: mirror descent on E(T) over T 1 = p, (n, m), steps of 1 / epsilon.

    C1 (n, n), C2 (m, m), p (n,); at most max_iter steps, until the plan changes by less than tol (Frobenius); G0 and
    ``random_state`` as in :func:`semirelaxed_gromov_wasserstein`.  With ``log=True``: (plan, dict with "srgw_dist",
    "err")."""
    problem, plan, found = _entropic_semirelaxed(None, C1, C2, p, loss_fun, epsilon, symmetric, 1.0, G0, max_iter, tol, verbose)
    out = _like(plan, C1, C2)
    return (out, found | {"srgw_dist": _scalar(problem.value(plan), C1)}) if log else out


def entropic_semirelaxed_gromov_wasserstein2(C1: Any, C2: Any, p: Any = None, loss_fun: str = "square_loss", epsilon: float = 0.1,
                                             symmetric: bool | None = None, G0: Any = None, max_iter: float = 1e4, tol: float = 1e-9,
                                             log: bool = False, verbose: bool = False, random_state: Any = 0) -> Any:
    """``ot.gromov.entropic_semirelaxed_gromov_wasserstein2``: E of :func:`entropic_semirelaxed_gromov_wasserstein`'s plan, with
    gradients in C1 (n, n) and C2 (m, m) at the plan.  With ``log=True``: (value, dict with the plan "T")."""
    problem, plan, found = _entropic_semirelaxed(None, C1, C2, p, loss_fun, epsilon, symmetric, 1.0, G0, max_iter, tol, verbose)
    value = _fused_value(problem, plan, problem.value(plan), None, C1, C2, 1.0)
    return (value, found | {"srgw_dist": value, "T": _like(plan, C1, C2)}) if log else value


def entropic_semirelaxed_fused_gromov_wasserstein(M: Any, C1: Any, C2: Any, p: Any = None, loss_fun: str = "square_loss",
                                                  symmetric: bool | None = None, epsilon: float = 0.1, alpha: float = 0.5, G0: Any = None,
                                                  max_iter: float = 1e4, tol: float = 1e-9, log: bool = False, verbose: bool = False,
                                                  random_state: Any = 0) -> Any:
    """``ot.gromov.entropic_semirelaxed_fused_gromov_wasserstein``: the same of (1 - alpha) <M, T> + alpha E(T), M (n, m); otherwise as
    :func:`entropic_semirelaxed_gromov_wasserstein`, with "srfgw_dist", "lin_loss", "quad_loss" in the log."""
    problem, plan, found = _entropic_semirelaxed(M, C1, C2, p, loss_fun, epsilon, symmetric, alpha, G0, max_iter, tol, verbose)
    out = _like(plan, M, C1, C2)
    return (out, found | _typed(_losses(problem, plan) | {"srfgw_dist": problem.value(plan)}, M)) if log else out


def entropic_semirelaxed_fused_gromov_wasserstein2(M: Any, C1: Any, C2: Any, p: Any = None, loss_fun: str = "square_loss",
                                                   symmetric: bool | None = None, epsilon: float = 0.1, alpha: Any = 0.5, G0: Any = None,
                                                   max_iter: float = 1e4, tol: float = 1e-9, log: bool = False, verbose: bool = False,
                                                   random_state: Any = 0) -> Any:
    """``ot.gromov.entropic_semirelaxed_fused_gromov_wasserstein2``: the value of
    :func:`entropic_semirelaxed_fused_gromov_wasserstein`'s plan, M (n, m), with gradients in M, C1, C2 and alpha at the
    plan.  With ``log=True``: (value, dict with the plan "T")."""
    problem, plan, found = _entropic_semirelaxed(M, C1, C2, p, loss_fun, epsilon, symmetric, alpha, G0, max_iter, tol, verbose)
    value = _fused_value(problem, plan, problem.value(plan), M, C1, C2, alpha)
    return (value, found | _typed(_losses(problem, plan), M) | {"srfgw_dist": value, "T": _like(plan, M, C1, C2)}) if log else value


# ---- a part of the mass --------------------------------------------------------------------------------------------


def _partial(M: Any, C1: Any, C2: Any, p: Any, q: Any, m: Any, loss_fun: str, symmetric: bool | None, alpha: Any, G0: Any,
             ) -> tuple[_Quadratic, tuple[np.ndarray, np.ndarray], float, np.ndarray]:
    problem = _Quadratic(C1, C2, loss_fun, symmetric, M, alpha)
    mine = _histogram(p, "p", len(problem.c)), _histogram(q, "q", len(problem.d))
    mass = _share(m, *mine)
    _of_integers(C1, C2)
    start = _start(G0, np.outer(*mine) * (mass / (mine[0].sum() * mine[1].sum())))
    if abs(start.sum() - mass) > 1e-8 * max(mass, 1):
        raise errors.BadArgument(f"G0: it carries {start.sum():.9g}, m is {mass:.9g}; give G0 * (m / G0.sum())")
    if any((start.sum(1 - side) > mine[side] + 1e-8).any() for side in (0, 1)):
        raise errors.BadArgument("G0: a row or column has more mass than its point, p or q")
    return problem, mine, mass, start


def _partial_plan(M: Any, C1: Any, C2: Any, p: Any, q: Any, m: Any, loss_fun: str, symmetric: bool | None, alpha: Any, G0: Any,
                  numItermax: Any, tol: float, verbose: bool, warn: bool, options: dict[str, Any],
                  ) -> tuple[_Quadratic, np.ndarray, dict[str, Any]]:
    problem, mine, mass, start = _partial(M, C1, C2, p, q, m, loss_fun, symmetric, alpha, G0)
    plan, found = descend(problem, start, lambda cost: _partial_emd(cost, *mine, mass, options), _steps(numItermax, "numItermax"), tol, 0.0,
                          verbose=verbose, warn=warn)
    return problem, _within(plan, *mine), found


@_options.takes(_options.Read, "context")
def partial_gromov_wasserstein(C1: Any, C2: Any, p: Any = None, q: Any = None, m: float | None = None, loss_fun: str = "square_loss",
                               nb_dummies: int = 1, G0: Any = None, thres: float = 1, numItermax: float = 1e4, tol: float = 1e-8,
                               symmetric: bool | None = None, warn: bool = True, log: bool = False, verbose: bool = False,
                               **options: Unpack[_options.Read]) -> Any:
    """``ot.gromov.partial_gromov_wasserstein``: a stationary plan of E(T) over T 1 <= p, T' 1 <= q, sum T = m; (n, m).

    C1 (n, n), C2 (m, m), p (n,), q (m,); m: the mass, all that the smaller side has without; G0: a plan to start from, p q'
    scaled without. Conditional gradient as in :func:`gromov_wasserstein`, whose linear problems are those of
    :func:`partial_wasserstein` (Chapel, Alaya and Gasso 2020), numItermax steps at most until one gains less than tol of
    the value.  Other ``nb_dummies`` and ``thres`` warn: one dummy point a side is exact.  With ``log=True``:
    (plan, dict with "partial_gw_dist", "loss", "u", "v").
    """
    _options.check(partial_gromov_wasserstein, options)
    _dummies(nb_dummies, thres)
    _, plan, found = _partial_plan(None, C1, C2, p, q, m, loss_fun, symmetric, 1.0, G0, numItermax, tol, verbose, warn, dict(options))
    out = _like(plan, C1, C2)
    return (out, _typed(found | {"partial_gw_dist": found["loss"][-1]}, C1)) if log else out


@_options.takes(partial_gromov_wasserstein)
def partial_gromov_wasserstein2(C1: Any, C2: Any, p: Any = None, q: Any = None, m: float | None = None, loss_fun: str = "square_loss",
                                nb_dummies: int = 1, G0: Any = None, thres: float = 1, numItermax: float = 1e4, tol: float = 1e-7,
                                symmetric: bool | None = None, warn: bool = False, log: bool = False, verbose: bool = False,
                                **options: Any) -> Any:
    """``ot.gromov.partial_gromov_wasserstein2``: E of :func:`partial_gromov_wasserstein`'s plan, with gradients in C1 (n, n) and C2
    (m, m) at the plan; its parameters.  With ``log=True``: (value, dict with the plan "T")."""
    _options.check(partial_gromov_wasserstein2, options)
    _dummies(nb_dummies, thres)
    problem, plan, found = _partial_plan(None, C1, C2, p, q, m, loss_fun, symmetric, 1.0, G0, numItermax, tol, verbose, warn, options)
    value = _fused_value(problem, plan, found["loss"][-1], None, C1, C2, 1.0)
    return (value, _typed(found, C1) | {"partial_gw_dist": value, "T": _like(plan, C1, C2)}) if log else value


@_options.takes(_options.Read, "context")
def partial_fused_gromov_wasserstein(M: Any, C1: Any, C2: Any, p: Any = None, q: Any = None, m: float | None = None,
                                     loss_fun: str = "square_loss", alpha: float = 0.5, nb_dummies: int = 1, G0: Any = None,
                                     thres: float = 1, numItermax: float = 1e4, tol: float = 1e-8, symmetric: bool | None = None,
                                     warn: bool = True, log: bool = False, verbose: bool = False,
                                     **options: Unpack[_options.Read]) -> Any:
    """``ot.gromov.partial_fused_gromov_wasserstein``: the same of (1 - alpha) <M, T> + alpha E(T), M (n, m); otherwise as
    :func:`partial_gromov_wasserstein`, "partial_fgw_dist" in the log."""
    _options.check(partial_fused_gromov_wasserstein, options)
    _dummies(nb_dummies, thres)
    _, plan, found = _partial_plan(M, C1, C2, p, q, m, loss_fun, symmetric, alpha, G0, numItermax, tol, verbose, warn, dict(options))
    out = _like(plan, M, C1, C2)
    return (out, _typed(found | {"partial_fgw_dist": found["loss"][-1]}, M)) if log else out


@_options.takes(partial_fused_gromov_wasserstein)
def partial_fused_gromov_wasserstein2(M: Any, C1: Any, C2: Any, p: Any = None, q: Any = None, m: float | None = None,
                                      loss_fun: str = "square_loss", alpha: Any = 0.5, nb_dummies: int = 1, G0: Any = None,
                                      thres: float = 1, numItermax: float = 1e4, tol: float = 1e-7, symmetric: bool | None = None,
                                      warn: bool = False, log: bool = False, verbose: bool = False, **options: Any) -> Any:
    """``ot.gromov.partial_fused_gromov_wasserstein2``: the value of :func:`partial_fused_gromov_wasserstein`'s plan, M (n, m), with
    gradients in M, C1, C2 and alpha at the plan.  With ``log=True``: (value, dict with "T", "lin_loss", "quad_loss")."""
    _options.check(partial_fused_gromov_wasserstein2, options)
    _dummies(nb_dummies, thres)
    problem, plan, found = _partial_plan(M, C1, C2, p, q, m, loss_fun, symmetric, alpha, G0, numItermax, tol, verbose, warn, options)
    value = _fused_value(problem, plan, found["loss"][-1], M, C1, C2, alpha)
    return (value, _typed(found | _losses(problem, plan), M) | {"partial_fgw_dist": value, "T": _like(plan, M, C1, C2)}) if log else value


def entropic_partial_gromov_wasserstein(C1: Any, C2: Any, p: Any = None, q: Any = None, reg: float = 1.0, m: float | None = None,
                                        loss_fun: str = "square_loss", G0: Any = None, numItermax: int = 1000, tol: float = 1e-7,
                                        symmetric: bool | None = None, log: bool = False, verbose: bool = False) -> Any:
    """``ot.gromov.entropic_partial_gromov_wasserstein``: E(T) + reg sum T (log T - 1) over T 1 <= p, T' 1 <= q, sum T = m; (n, m).

    C1 (n, n), C2 (m, m), p (n,), q (m,), m: the mass, all that the smaller side has without.  A step is
    :func:`entropic_partial_wasserstein` of the linearised cost; numItermax of them at most until the plan changes by less
    than tol (Frobenius, every tenth step).  With ``log=True``: (plan, dict with "partial_gw_dist", "err").
    """
    problem, mine, mass, start = _partial(None, C1, C2, p, q, m, loss_fun, symmetric, 1.0, G0)
    reg = _positive(reg, "reg")
    plan, found = _mirror(problem, start, lambda cost, _: _partial_sinkhorn(cost, *mine, reg, mass, 1000, 1e-12),
                          _steps(numItermax, "numItermax"), tol, verbose)
    _say_missing(plan, mass)
    out = _like(plan, C1, C2)
    return (out, found | {"partial_gw_dist": _scalar(problem.value(plan), C1)}) if log else out


def entropic_partial_gromov_wasserstein2(C1: Any, C2: Any, p: Any = None, q: Any = None, reg: float = 1.0, m: float | None = None,
                                         loss_fun: str = "square_loss", G0: Any = None, numItermax: int = 1000, tol: float = 1e-7,
                                         symmetric: bool | None = None, log: bool = False, verbose: bool = False) -> Any:
    """``ot.gromov.entropic_partial_gromov_wasserstein2``: E, without the entropy, of :func:`entropic_partial_gromov_wasserstein`'s plan; C1
    (n, n), C2 (m, m) and its other parameters.  With ``log=True``: (value, dict with the plan "T")."""
    plan, found = entropic_partial_gromov_wasserstein(C1, C2, p, q, reg, m, loss_fun, G0, numItermax, tol, symmetric, True, verbose)
    return (found["partial_gw_dist"], found | {"T": plan}) if log else found["partial_gw_dist"]


# ---- barycenters ---------------------------------------------------------------------------------------------------


def _first_distances(N: int, init_C: Any, random_state: Any) -> np.ndarray:
    """Those given, or squared distances of N random points in the plane, POT's start from the same seed."""
    if init_C is not None:
        return _real(init_C, "init_C")
    rng = random_state if hasattr(random_state, "randn") else np.random.RandomState(0 if random_state is None else random_state)
    x = rng.randn(N, 2)
    c = ((x[:, None] - x) ** 2).sum(-1)
    return c / c.max()


def _barycenter_of(plans: list[np.ndarray], spaces: list[np.ndarray], shares: np.ndarray, p: np.ndarray, loss_fun: str) -> np.ndarray:
    """The distances of least sum_s share_s E(T_s): means weighted by the plans, of logarithms for "kl_loss"."""
    means = sum(w * t @ (c if loss_fun == "square_loss" else np.log(np.maximum(c, 1e-16))) @ t.T for w, t, c in zip(shares, plans, spaces))
    means = means / np.outer(p, p)
    return means if loss_fun == "square_loss" else np.exp(means)


def _barycenter(N: int, Cs: Sequence[Any], ps: Any, p: Any, lambdas: Any, loss_fun: str, max_iter: int, tol: float, stop_criterion: str,
                init_C: Any, random_state: Any, verbose: bool, plan_of: Callable[..., tuple[np.ndarray, float]],
                ) -> tuple[np.ndarray, dict[str, Any]]:
    """In turn plans for the distances and distances for the plans (Peyre, Cuturi and Solomon 2016)."""
    by_loss = _choice(stop_criterion, "stop_criterion", ("barycenter", "loss")) == "loss"
    _choice(loss_fun, "loss_fun", tuple(_LOSSES))
    if any(isinstance(x, list) for x in [*Cs, *(ps if ps is not None else ())]):
        raise errors.BadArgument("Cs and ps are lists of arrays: give arrays, not lists of lists")
    spaces = [_checked(_real(c, f"Cs[{s}]"), f"Cs[{s}]") for s, c in enumerate(Cs)]
    weights = [_histogram(None if ps is None else ps[s], f"ps[{s}]", len(c)) for s, c in enumerate(spaces)]
    mine, shares = _histogram(p, "p", N), _histogram(lambdas, "lambdas", len(spaces))
    c, max_iter = _checked(_first_distances(N, init_C, random_state), "init_C"), _steps(max_iter, "max_iter", 1)
    found: dict[str, list[float]] = {"err": [], "loss": []}
    plans: list[Any] = [None] * len(spaces)
    for step in range(max_iter):
        each = [plan_of(c, d, mine, w, before) for d, w, before in zip(spaces, weights, plans)]
        plans = [t for t, _ in each]
        found["loss"].append(sum(value for _, value in each))
        before, c = c, _barycenter_of(plans, spaces, shares, mine, loss_fun)
        last = found["loss"][-2] if step else 1e15
        found["err"].append(abs(found["loss"][-1] - last) / last if by_loss and last else float(np.linalg.norm(c - before)))
        say(verbose, step, found["err"][-1])
        if found["err"][-1] <= tol:
            break
    like = Cs[0]
    return _like(c, *Cs), {"err": found["err"], **({"loss": found["loss"]} if by_loss else {}), "T": [_like(t, like) for t in plans],
                           "p": _like(mine, like)}


@_options.takes(_options.Read, "context")
def gromov_barycenters(N: int, Cs: Sequence[Any], ps: Sequence[Any] | None = None, p: Any = None, lambdas: Any = None,
                       loss_fun: str = "square_loss", symmetric: bool | None = True, armijo: bool = False, max_iter: int = 1000,
                       tol: float = 1e-9, stop_criterion: str = "barycenter", warmstartT: bool = False, verbose: bool = False,
                       log: bool = False, init_C: Any = None, random_state: Any = None, **options: Unpack[_options.Read]) -> Any:
    """``ot.gromov.gromov_barycenters``: (N, N) distances of least sum_s lambdas_s E(T_s), T_s (N, n_s) the plans to all spaces.

    Cs: (n_s, n_s) arrays, ps their weights, p (N,) those of the barycenter, lambdas the shares of the spaces, uniform
    without; init_C (N, N) where to start, else distances of random points in the plane from random_state (None: seed 0,
    where POT draws anew).  max_iter rounds of :func:`gromov_wasserstein` (``armijo``, ``symmetric``; tol_rel 1e-5, as in
    POT) until the distances change by less than tol, or with ``stop_criterion="loss"`` the loss by less than that share.
    ``warmstartT`` begins with the plans of the last round.  With ``log=True``: (C, dict with "err", "T", "p").
    """
    _options.check(gromov_barycenters, options)

    def plan_of(c: np.ndarray, d: np.ndarray, mine: np.ndarray, w: np.ndarray, before: Any) -> tuple[np.ndarray, float]:
        _, plan, found = _balanced(None, c, d, mine, w, loss_fun, symmetric, 1.0, armijo, before if warmstartT else None, max_iter,
                                   1e-5, 0.0, None, None, False, dict(options), warn=False)
        return plan, found["loss"][-1]

    c, found = _barycenter(N, Cs, ps, p, lambdas, loss_fun, max_iter, tol, stop_criterion, init_C, random_state, verbose, plan_of)
    return (c, found) if log else c


@_options.takes(_options.Unseeded, "context")
def entropic_gromov_barycenters(N: int, Cs: Sequence[Any], ps: Sequence[Any] | None = None, p: Any = None, lambdas: Any = None,
                                loss_fun: str = "square_loss", epsilon: float = 0.1, symmetric: bool | None = True,
                                max_iter: int = 1000, tol: float = 1e-9, stop_criterion: str = "barycenter", warmstartT: bool = False,
                                verbose: bool = False, log: bool = False, init_C: Any = None, random_state: Any = None,
                                solver: str = "PGD", **options: Unpack[_options.Unseeded]) -> Any:
    """``ot.gromov.entropic_gromov_barycenters``: the same with plans of :func:`entropic_gromov_wasserstein` at epsilon; (N, N).

    Cs: (n_s, n_s) arrays; parameters and the log are those of :func:`gromov_barycenters` but for ``armijo``; ``solver`` is
    "PGD" or "PPA"; plans are those of steps until they change by less than 1e-4, as in POT.  :func:`fourge.gw.barycenter`
    is the same in C, for square losses alone.
    """
    _options.check(entropic_gromov_barycenters, options)

    def plan_of(c: np.ndarray, d: np.ndarray, mine: np.ndarray, w: np.ndarray, before: Any) -> tuple[np.ndarray, float]:
        problem, plan, _ = _entropic(None, c, d, mine, w, loss_fun, epsilon, symmetric, 1.0, before if warmstartT else None, max_iter, 1e-4,
                                     solver, False, 1000, 1e-9, dict(options))
        return plan, problem.value(plan)

    c, found = _barycenter(N, Cs, ps, p, lambdas, loss_fun, max_iter, tol, stop_criterion, init_C, random_state, verbose, plan_of)
    return (c, found) if log else c


# ---- what the parameters are ---------------------------------------------------------------------------------------

_PARAMETERS = {
    'a': '(n,) weights of the source, uniform without (None or [])',
    'b': '(m,) weights of the target; (m, k): k histograms, where that is taken',
    'M': '(n, m) costs between points',
    'C1': '(n, n) matrix of the source',
    'C2': '(m, m) matrix of the target',
    'p': '(n,) weights of the source (of a barycenter: (N,)), uniform without',
    'q': '(m,) weights of the target, uniform without',
    'N': 'points of the barycenter',
    'Cs': 'list of (n_s, n_s) arrays',
    'ps': 'list of (n_s,) weights, uniform without',
    'lambdas': 'shares of the spaces, equal without',
    'init_C': '(N, N) where to start',
    'random_state': 'seed or RandomState of random starts',
    'loss_fun': '"square_loss" or "kl_loss"',
    'symmetric': 'True, False, or None: the matrices are looked at',
    'alpha': 'weight of E, 0 to 1',
    'm': 'the mass that is carried, all that the smaller side has without',
    'epsilon': 'strength of the entropy',
    'reg': 'strength of the entropy',
    'reg_m': 'a penalty for both marginals, or a pair',
    'reg_type': '"kl" or "entropy"',
    'c': '(n, m) reference of the entropy',
    'G0': '(n, m) plan to start from, the product of the weights without',
    'armijo': 'True: backtracking instead of the exact line search',
    'max_iter': 'steps (rounds of a barycenter) at most',
    'numItermax': 'steps, or passes of Sinkhorn, at most',
    'tol_rel': 'ends where a step gains less than this share of the value',
    'tol_abs': 'ends where a step gains less',
    'tol': 'ends at a smaller change',
    'stopThr': 'ends the passes at a smaller error',
    'alpha_min': 'least length of a step',
    'alpha_max': 'largest length of a step',
    'solver': '"PGD" or "PPA"',
    'method': "POT's name of a way, see above",
    'warmstart': 'pair of potentials / reg to start from; of entropic Gromov-Wasserstein None: False warns, as steps always begin with the last potentials',
    'warmstartT': 'True: a round begins with the plans of the last',
    'stop_criterion': '"barycenter" or "loss"',
    'nb_dummies': 'one is exact: another number warns, once a process',
    'thres': 'without effect, as in POT; another value warns',
    'warn': 'False says nothing of a run that did not settle',
    'tau': 'passes are in logarithms: another value warns, once a process',
    'returnCost': '"linear" or "total"',
    'return_matrix': 'True puts the plan into the log',
    'verbose': 'shows the progress',
    'log': 'True returns (result, dict)',
    'threads': 'of the computation',
    'device': '"cpu", "cuda:i" or "opencl:i"; what does not run there is refused',
    'memory_limit': 'bytes',
    'time_limit': 'seconds',
}


def _describe(function: Any) -> None:
    """Appends what the parameters are to a docstring, one place for all functions."""
    names = list(inspect.signature(function).parameters)
    rows = "".join(f"{name}\n    {_PARAMETERS[name]}\n" for name in names if name in _PARAMETERS)
    function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\nParameters\n----------\n{rows}"


for _name in __all__:
    _describe(globals()[_name])


hint(globals())
