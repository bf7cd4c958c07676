"""The SOAP optimizer on NumPy arrays: Adam in the eigenbasis of Shampoo's factors.

>>> opt = SOAP({"w": w, "b": b}, lr=3e-3)
>>> opt.step({"w": grad_w, "b": grad_b})

The arrays are changed in place and stay yours.  ``fourge.torch.SOAP`` is the same for torch.  Vyas et al. (2024); the
formulas stand in ``fourge/soap.h``.
"""

from __future__ import annotations

import difflib
import itertools
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from . import _fourge, _options, errors
from ._arrays import CONTEXT_OPTIONS, context, warn, warn_once
from ._hints import hint
from ._summary import Summary

__all__ = ["SOAP", "defaults"]

#: Names that other packages have for options.
ALIASES = {
    "adaptive_update_tolerance": "adaptive_tolerance",
    "normalize_grads": "normalize_update",
    "normalize_gradient": "normalize_update",
    "max_precondition_dim": "max_precond_dim",
}
_PRECISIONS = ("highest", "high", "medium")
_IN_F32 = "products and factorisations have the accuracy of float32, which is 'highest'"
#: Keywords of other packages that have nothing to act on here: the values that ask for what is done anyway, all values
#: that there are (None: any), and what is done instead of the others, which is said once a process.
ELSEWHERE = {
    "use_batched_qr": ((True, None), (True, False, None), "all factors are factored in one call, each with the bits that it has alone"),
    "batched_qr_num_streams": ((1, None), None, "a CPU has no streams; threads=... says how many factors are worked on at a time"),
    "stream_list": ((None,), None, "a CPU has no streams; threads=... says how many factors are worked on at a time"),
    "fp32_matmul_prec": (("highest",), _PRECISIONS, _IN_F32),
    "qr_fp32_matmul_prec": (("highest",), _PRECISIONS, _IN_F32),
}
#: Options of every context of which a step takes no notice.
OF_CONTEXTS = {
    "seed": ((None,), None, "a step draws nothing from it; rounding_seed=... is the seed of stochastic_rounding"),
    "time_limit": ((None, 0, 0.0), None, "a step that has begun comes to its end; the limit ends the waiting for a pipe alone"),
}
#: Read when a parameter is added, fixed from then on.
LAYOUT = ("precondition_1d", "max_precond_dim", "block_dim", "merge_dims", "merge_rule", "order", "use_kl_shampoo",
          "moment2_order", "warmup_v")
#: Whose names and conventions an exported state has, in the order of ``frg_soap_layout``.
LAYOUTS = ("emerging", "emerging-0.4", "nikhilvyas", "pytorch_optimizer")
_TYPES = (np.float16, np.float32, np.float64)


def defaults(profile: str = "emerging") -> dict[str, Any]:
    """All options of a group with the values that they have under a profile.

    Profiles are "emerging" (NVIDIA Emerging-Optimizers 0.2), "emerging-0.4" and "nikhilvyas"; they differ in
    conventions as well, see ``fourge/soap.h``.

    Length and direction of the update: lr, betas, eps, weight_decay; weight_decay_method ("decoupled", "decoupled-after",
    "independent", "l2", "palm"); nesterov; maximize; correct_bias, correct_shampoo_beta_bias (None: as correct_bias);
    max_update_rms (0: off, longer updates are shortened to it); normalize_update (to a root mean square of 1);
    trace_normalization; denom_floor (0: off, keeps rounding residues out of the first updates).

    Factors and bases: shampoo_beta (None: the second of betas); precondition_frequency (a number, a function of the step, or
    rows of (from step, frequency)); precondition_warmup_steps (refreshed at each of these); adam_warmup_steps (plain Adam
    before); stagger (factors take turns); refresh_async; power_iter_steps; use_eigh; use_adaptive_criteria, adaptive_tolerance,
    adaptive_scope ("parameter", "factor") and adaptive_form ("diagonal", "offdiagonal"): a basis that still fits is not refreshed;
    use_kl_shampoo and kl_init ("reference", "unit"); sort_when ("before_qr", "after_qr"); moment2_order ("follow", "rank", "rotate");
    order ("grad_first", "update_first"); warmup_v ("keep", "reset", "rotate"); moment1_basis ("auto", "eigen", "original");
    qr_method ("auto", "householder", "cholesky", "vendor"); ridge_c; ortho_tol.

    Layout: precondition_1d (parameters of one axis have a factor too); max_precond_dim (10000: a longer axis has no factor, its
    basis is I; None or -1: none is too long; 0: plain Adam); block_dim (longer axes in blocks, those beyond max_precond_dim
    with None alone); merge_dims (neighbouring axes are joined up to max_precond_dim) and merge_rule ("left", "fan_in", "stacked").

    Besides: nonfinite ("skip", "error", "propagate": a gradient that is not finite); stochastic_rounding, rounding_seed.

    Other packages' names: adaptive_update_tolerance (adaptive_tolerance), normalize_grads and normalize_gradient
    (normalize_update), max_precondition_dim (max_precond_dim), data_format ("channels_first" alone).
    """
    group = _fourge.Soap(_fourge.Context({"threads": 1}), profile, None, None).get_group(0)
    beta1, beta2 = group.pop("beta1"), group.pop("beta2")
    correct = group["correct_shampoo_beta_bias"]
    return {"lr": group.pop("lr"), "betas": (beta1, beta2), **group, "correct_shampoo_beta_bias": None if correct < 0 else bool(correct)}


def not_done(rows: Mapping[str, tuple[Sequence[Any], Sequence[Any] | None, str]], options: Mapping[str, Any]) -> None:
    """A warning, once a process, for every option among `rows` whose value asks for something that is not done;
    BadArgument for a value that is none."""
    for key, (usual, values, instead) in rows.items():
        value = options.get(key, usual[0])
        if values is not None and value not in values:
            raise errors.BadArgument(f"{key} is {value!r}, expected one of {values}")
        if value not in usual:
            warn_once(f"soap: {key}", f"{key}={value!r} has no effect: {instead}")


def is_option(key: str, known: Iterable[str]) -> bool:
    """Is `key` an option, or one misspelt?"""
    return key in ELSEWHERE or key == "data_format" or bool(difflib.get_close_matches(key, [*known, *ALIASES], 1, 0.85))


def named(options: Mapping[str, Any], known: Iterable[str], fixed_data_format: str = "channels_first") -> dict[str, Any]:
    """The options under their own names; TypeError for one that is not there."""
    out = {}
    not_done(ELSEWHERE, options)
    for key, value in options.items():
        if key in ELSEWHERE:
            continue
        if key == "data_format":
            if value != fixed_data_format:
                raise errors.Unsupported(f"data_format={value!r}: arrays are taken as {fixed_data_format}; permute the weight")
            continue
        name = ALIASES.get(key, key)
        if name not in known:
            near = difflib.get_close_matches(key, [*known, *ALIASES], 1)
            raise TypeError(f"there is no option {key!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        out[name] = value
    return out


def _frequency(value) -> tuple[int, Callable[[int], int] | None]:
    """The number, or the function that a callable or a table of (from step, frequency) stands for."""
    if callable(value):
        return 1, lambda t: int(value(t))
    try:
        if isinstance(value, (list, tuple)):
            rows = sorted((_whole(t), _whole(f)) for t, f in value)
            return 1, lambda t, first=rows[0][1]: next((f for at, f in reversed(rows) if at <= t), first)
        return _whole(value), None
    except (TypeError, ValueError, IndexError):
        raise errors.BadArgument(f"precondition_frequency is {value!r}: expected a whole number of steps, rows (from step, frequency), "
                                 "or a function of the step") from None


def _whole(x) -> int:
    if int(x) != x:
        raise ValueError(x)
    return int(x)


class Engine:
    """The handle with its groups; what the classes for NumPy and torch have in common."""

    def __init__(self, profile: str, context_: Any):
        self.profile, self.context = profile, context_
        self.handle: Any = None  # a _fourge.Soap from the first group on
        self._last: list[tuple[Any, ...]] = []
        self._known = tuple(defaults(profile))
        self._values = operator.itemgetter(*self._known)

    @property
    def report(self) -> dict[str, Any]:
        return {} if self.handle is None else self.handle.report()

    def _translated(self, values: tuple[Any, ...]) -> tuple[dict[str, Any], Callable[[int], int] | None]:
        o = dict(zip(self._known, values))
        try:
            o["beta1"], o["beta2"] = o.pop("betas")
        except (TypeError, ValueError):
            raise errors.BadArgument("betas: expected two numbers") from None
        o["lr"] = float(o["lr"])
        o["shampoo_beta"] = -1 if o["shampoo_beta"] is None else o["shampoo_beta"]
        o["max_precond_dim"] = -1 if o["max_precond_dim"] is None else o["max_precond_dim"]
        correct = o["correct_shampoo_beta_bias"]
        o["correct_shampoo_beta_bias"] = -1 if correct is None else int(correct)
        o["weight_decay_method"] = str(o["weight_decay_method"]).replace("_", "-")
        o["precondition_frequency"], function = _frequency(o["precondition_frequency"])
        return o, function

    def add_group(self, group: Mapping[str, Any]) -> int:
        last = self._values(group)
        options, function = self._translated(last)
        if self.handle is None:
            self.handle = _fourge.Soap(self.context, self.profile, options, function)
        else:
            self.handle.add_group(self.profile, options, function)
        self._last.append(last)
        return len(self._last) - 1

    def attach(self, group: Mapping[str, Any], params: Iterable[Any], names: Iterable[str]) -> None:
        """A group with its parameters.  Where one is refused the handle keeps the group and those before it."""
        number = self.add_group(group)
        for w, name in zip(params, names):
            self.handle.add_param(number, w, name)

    def moved_to(self, other: Engine, names: Sequence[str]) -> Engine:
        """`other`, which has the parameters `names`, the first ones of this, with their states."""
        for i, name in enumerate(names):
            other.handle.load_param(i, self.handle.save_param(i), name)
        return other

    def _take(self, groups: Sequence[Mapping[str, Any]]) -> None:
        for i, group in enumerate(groups):
            now = self._values(group)
            if now != self._last[i]:
                self.handle.set_group(i, *self._translated(now))
                self._last[i] = now

    def estimate(self, groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        self._take(groups)
        return self.handle.estimate()

    def step(self, groups: Sequence[Mapping[str, Any]], gradients: list[Any]) -> None:
        self._take(groups)
        if self.handle.prepare():  # slow steps are warned of before they begin
            warn(self.context)
        if self.handle.step(gradients):
            warn(self.context)

    # ---- state by the names of other packages ----

    def _part(self, id_: int, key: str) -> np.ndarray | None:
        shape = self.handle.state_shape(id_, key)
        if not shape:
            return None
        out = np.empty(shape, np.float32)
        self.handle.state_get(id_, key, out)
        return out

    def export(self, id_: int, shape: tuple[int, ...], group: Mapping[str, Any]) -> dict[str, Any]:
        """step, exp_avg, exp_avg_sq (in the bases) and the factors as the profile's package lays them out."""
        step = np.empty(1, np.int64)
        self.handle.state_get(id_, "step", step)
        out: dict[str, Any] = {"step": int(step[0])}
        stacked = len(shape) == 3 and group["merge_dims"] and group["merge_rule"] == "stacked"
        shape = self.handle.state_shape(id_, "exp_avg") if stacked else shape
        for key in ("exp_avg", "exp_avg_sq"):
            out[key] = np.empty(shape, np.float32)
            self.handle.state_get(id_, key, out[key])
        if group["block_dim"]:
            for kind in ("GG", "Q"):
                for axis in range(len(shape)):
                    for block in self._blocks(id_, axis):
                        out[f"{kind}.{axis}.{block}"] = self._part(id_, f"{kind}.{axis}.{block}")
        elif self.profile == "emerging-0.4" and len(shape) == 2:
            out |= {k: self._part(id_, k) for k in ("L", "R", "Q_L", "Q_R", "eigvals_L", "eigvals_R")}
        else:
            for kind in ("GG", "Q"):
                parts = [self._part(id_, f"{kind}.{axis}") for axis in range(max(len(shape), 1))]
                while group["merge_dims"] and len(parts) > 1 and parts[-1] is None:
                    parts.pop()
                out[kind] = parts
        return out

    def restore_all(self, state: Mapping[Any, Mapping[str, Any]], groups: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
        """The saved states of parameters by their numbers, in any of the layouts: GG and Q, L and R, or GG.axis.block;
        ``groups`` are the saved ones.  What does not fit changes nothing."""
        group_of = [g for g in groups for _ in g["params"]]
        if not any(state.values()) and not any(k in g for g in groups for k in ("shampoo_beta", "precondition_frequency")):
            raise errors.Mismatch("the saved groups are of another optimizer: they have neither 'shampoo_beta' nor "
                                  f"'precondition_frequency'; {_BEGIN_ANEW}")
        parts = {int(i): _parts_of(s, group_of[int(i)], names[int(i)]) for i, s in state.items() if s}
        for i, part in parts.items():
            self._check_factors(i, part, names[i])
        before = self.handle.save()
        try:
            for i in range(len(names)):
                self.handle.reset(i)  # what the file has nothing of starts anew
            for i, part in parts.items():
                self._restore(i, part, group_of[i].get("adam_warmup_steps", 0))
        except Exception:
            self.handle.load(before, "state")
            raise

    def _blocks(self, id_: int, axis: int) -> Iterable[int]:
        return itertools.takewhile(lambda b: self.handle.state_shape(id_, f"GG.{axis}.{b}"), itertools.count())

    def _check_factors(self, id_: int, parts: Mapping[str, Any], name: str) -> None:
        """Every factor of the parameter is among the saved parts: a step would go on with zeros for one that is not."""
        saved = {{"L": "GG.0", "R": "GG.1"}.get(k, k) for k in parts}
        saved = {k if k.count(".") == 2 else k + ".0" for k in saved if k.startswith("GG.")}
        for axis in range(4):
            for block in self._blocks(id_, axis):
                if not saved:
                    raise errors.Mismatch(f"the saved state of {name} has no factors, it is of Adam or its like; {_BEGIN_ANEW}")
                if f"GG.{axis}.{block}" not in saved:
                    raise errors.Mismatch(f"the saved state of {name} has no factor {block} of axis {axis}, which is kept here: it is of another "
                                          "max_precond_dim, precondition_1d, merge_dims or block_dim")

    def _restore(self, id_: int, parts: Mapping[str, Any], warmup: int) -> None:
        is_basis = lambda k: k.startswith("Q")
        for key in sorted(parts, key=lambda k: (not is_basis(k), k == "step", k.startswith("exp_avg"))):  # moments are set in the bases
            early = parts["step"][0] <= warmup  # I stands where there is no basis yet
            if not (is_basis(key) and early and np.array_equal(parts[key], np.eye(len(parts[key])))):
                self.handle.state_set(id_, key, parts[key])


_BEGIN_ANEW = ("do not load it but begin SOAP anew, with adam_warmup_steps=N if its first N steps are to be Adam's while "
               "factors form")
_FACTOR_KEYS = ("L", "R", "Q_L", "Q_R", "eigvals_L", "eigvals_R")


def _parts_of(state: Mapping[str, Any], group: Mapping[str, Any], name: str) -> dict[str, np.ndarray]:
    """What a state has that is not empty, by the library's names; ``group`` is the saved one."""
    moment = "exp_avg"
    if "step" not in state and "step" in group:  # pytorch_optimizer: the group counts, with the first step, and the
        state = {**state, "step": group["step"] - 1}  # first moment is in the parameter's own coordinates
        moment = "exp_avg.plain"
    missing = [k for k in ("step", "exp_avg", "exp_avg_sq") if k not in state]
    if missing:
        raise errors.Mismatch(f"the saved state of {name} has no {missing[0]!r}; it has {sorted(map(str, state))}")
    parts = {k: v for k, v in state.items() if k.startswith(("GG.", "Q.")) or k in _FACTOR_KEYS}
    for kind in ("GG", "Q"):
        parts |= {f"{kind}.{axis}": part for axis, part in enumerate(state.get(kind) or [])}
    parts = {k: v for k, v in parts.items() if v is not None and np.size(v)} | {moment: state["exp_avg"], "exp_avg_sq": state["exp_avg_sq"]}
    out = {k: np.asarray(v, np.float32, order="C") for k, v in parts.items()}  # a number stays one, without an axis
    for k, v in out.items():
        if not np.isfinite(v).all():
            raise errors.Mismatch(f"the saved state of {name} has an entry in {k} that is infinite in float32 or not a number")
    return {**out, "step": np.array([int(state["step"])], np.int64)}


def _groups_of(params: Any) -> list[dict[str, Any]]:
    if isinstance(params, Mapping):
        return [{"params": list(params.values()), "names": list(params)}]
    params = list(params)
    if not params:
        raise errors.BadArgument("params: there are no parameters")
    return [dict(g) for g in params] if isinstance(params[0], Mapping) else [{"params": params}]


class SoapSummary(Summary):
    """What an optimizer shows of itself: its groups, what they take, the last step."""

    _engine: Engine
    param_groups: list[dict[str, Any]]

    def _facts(self) -> tuple[str, list[tuple[str, Any]], tuple[list[str], list[list[Any]]]]:
        keys = ("lr", "betas", "shampoo_beta", "eps", "weight_decay", "precondition_frequency")
        size = lambda a: a.size if isinstance(a, np.ndarray) else a.numel()
        rows = [[f"group {i}", len(g["params"]), sum(size(a) for a in g["params"]), *(g[k] for k in keys)]
                for i, g in enumerate(self.param_groups)]
        takes, last = self.estimate(), self._engine.report
        facts = {"factors": takes["factors"], "largest order": takes["largest_factor"], "axes too long": takes["long_axes"],
                 "state": f"{takes['state_bytes'] / 1e6:.3g} MB"}
        facts |= {k: last[k] for k in ("updated", "nonfinite", "due", "skipped", "seconds") if k in last}
        return f"SOAP, profile {self._engine.profile}", list(facts.items()), (["", "arrays", "numbers", *keys], rows)

    def estimate(self) -> dict[str, Any]:
        """Memory and time of the steps, before the first one or between two; nothing is taken or done for it.

        parameters, numbers, factors; long_axes (too long for a factor, see ``max_precond_dim``); largest_factor, its order, with
        largest_of, the parameter, and largest_axis; state_bytes (moments, factors, bases), bytes (with the workspaces of the
        threads) and step_peak_bytes (the most, in the next step); estimated_seconds of the next step, estimated_refresh_seconds of a later one
        that refreshes every basis, estimated_plain_seconds of one that refreshes none: guesses, within a factor of three on
        an idle machine.  A first step of more than a second is warned of before it begins.
        """
        return self._engine.estimate(self.param_groups)


class SOAP(SoapSummary):
    """SOAP over NumPy arrays.

    Parameters
    ----------
    params : mapping of names to arrays, list of arrays, or list of groups ``{"params": [...], "lr": ...}``
        float16, float32 or float64, writable, any strides, at most 4 axes; changed in place by every step.
    lr, betas, shampoo_beta, eps, weight_decay : numbers
        None: the profile's value.
    profile : "emerging", "emerging-0.4" or "nikhilvyas"
        Whose defaults and conventions.
    threads, seed, memory_limit, time_limit
        Of the computation; results are the same bits for any number of threads.  No step takes notice of seed and
        time_limit: one that is given is warned of.
    **options
        Of :func:`defaults`, for all groups; among them ``stochastic_rounding`` (float16 parameters are rounded by chance,
        so that the mean is right; by name, step and ``rounding_seed`` alone) and ``refresh_async`` (the bases are made
        while the next gradients are; the same bits; for "nikhilvyas" alone, and arrays must stay as they are).
        Keywords of other packages with nothing here to act on (``use_batched_qr``, ``batched_qr_num_streams``,
        ``stream_list``, ``fp32_matmul_prec``, ``qr_fp32_matmul_prec``) warn, once a process, of what is done instead of
        the value given.

    ``param_groups`` holds the groups; what is changed there counts from the next step on.  ``report`` tells what the
    last step did (``long_axes``: axes longer than ``max_precond_dim``, which have no factor), ``estimate()`` what steps take.  Raises :class:`fourge.errors.BadArgument` naming the option or parameter.
    """

    @_options.takes(_options.Soap)
    def __init__(self, params: Any, lr: float | None = None, betas: tuple[float, float] | None = None,
                 shampoo_beta: float | None = None, eps: float | None = None, weight_decay: float | None = None, *,
                 profile: str = "emerging", **options: Unpack[_options.Soap]):
        given = {"lr": lr, "betas": betas, "shampoo_beta": shampoo_beta, "eps": eps, "weight_decay": weight_decay}
        self._context_options = {k: v for k, v in options.items() if k in CONTEXT_OPTIONS}
        not_done(OF_CONTEXTS, self._context_options)
        self._engine = Engine(profile, context(options))
        self.defaults = defaults(profile)
        self.defaults |= named(options, self.defaults) | {k: v for k, v in given.items() if v is not None}
        self.param_groups: list[dict[str, Any]] = []
        self._params: list[np.ndarray] = []
        self._names: list[str] = []
        for group in _groups_of(params):
            self.add_param_group(group)

    def __repr__(self) -> str:
        return f"SOAP({len(self._params)} arrays in {len(self.param_groups)} groups, profile {self._engine.profile!r})"

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Adds a group; what it leaves out has the values given at the start."""
        group = dict(group)
        arrays, names = list(group.pop("params")), group.pop("names", None)
        names = names or [f"param.{len(self._params) + i}" for i in range(len(arrays))]
        known = {id(p) for p in self._params}
        for a, name in zip(arrays, names):
            if id(a) in known:
                raise errors.BadArgument(f"{name} is among the parameters twice")
            known.add(id(a))
            if not isinstance(a, np.ndarray) or a.dtype not in _TYPES or not a.flags.writeable or a.ndim > 4:
                what = f"{a.dtype} array of shape {a.shape}" if isinstance(a, np.ndarray) else type(a).__name__
                raise errors.BadArgument(f"{name}: expected a writable array of floats with at most 4 axes, got {what}")
        group = {"params": arrays, **self.defaults, **named(group, self.defaults)}
        try:
            self._engine.attach(group, arrays, names)
        except Exception:
            if self._params:  # without those of the group that the handle has taken
                engine, shift = Engine(self._engine.profile, self._engine.context), 0
                for g in self.param_groups:
                    engine.attach(g, g["params"], self._names[shift:])
                    shift += len(g["params"])
                self._engine = self._engine.moved_to(engine, self._names)
            raise
        self.param_groups.append(group)
        self._params += arrays
        self._names += names

    @property
    def report(self) -> dict[str, Any]:
        """What the last step did: updated, nonfinite, due, skipped, householder, orthogonality, seconds, ..."""
        return self._engine.report

    def step(self, gradients: Any) -> dict[str, Any]:
        """One step.

        Parameters
        ----------
        gradients : list with one array or None a parameter, or mapping of names to arrays
            Of the parameters' shapes, float16, float32 or float64; a parameter without gradient is left alone, one
            with a gradient that is not finite as well (counted in ``report["nonfinite"]``).
        """
        if isinstance(gradients, Mapping):
            extra = set(gradients) - set(self._names)
            if extra:
                raise errors.BadArgument(f"there is no parameter {sorted(extra)[0]!r}; there are {self._names}")
            gradients = [gradients.get(name) for name in self._names]
        self._engine.step(self.param_groups, list(gradients))
        return self.report

    def state_dict(self) -> dict[str, Any]:
        """The state by the names of other packages, and all of it as bytes, with which a run goes on to the bit."""
        group_of = [g for g in self.param_groups for _ in g["params"]]
        state = {i: self._engine.export(i, p.shape, group_of[i]) for i, p in enumerate(self._params)}
        groups, first = [], 0
        for g in self.param_groups:
            groups.append({**g, "params": list(range(first, first + len(g["params"])))})
            first += len(g["params"])
        return {"state": state, "param_groups": groups, "fourge": self._engine.handle.save()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes `state_dict`, of this class (to the bit) or of another package (GG and Q, or L and R).

        One that does not fit, or that has no factors for a parameter that has some here (Adam's), raises
        :class:`fourge.errors.Mismatch` and changes nothing.
        """
        saved = state_dict["param_groups"]
        if [len(g["params"]) for g in saved] != [len(g["params"]) for g in self.param_groups]:
            raise errors.Mismatch("the saved groups have other numbers of parameters")
        if "fourge" in state_dict:
            self._engine.handle.load(state_dict["fourge"], "state_dict")
        else:
            self._engine.restore_all(state_dict["state"], saved, self._names)
        for mine, theirs in zip(self.param_groups, saved):
            update_group(mine, theirs)

    def save(self, path: Any) -> None:
        """The whole state in one checked file at `path`."""
        self._engine.handle.save(os.fsdecode(path))

    def load(self, path: Any) -> None:
        """A state of :meth:`save` at `path`; one that does not fit, or is damaged, changes nothing."""
        with open(path, "rb") as file:
            self._engine.handle.load(file.read(), os.fsdecode(path))

    def export(self, path: Any, layout: str = "emerging") -> None:
        """The state for another package: an .npz archive whose ``state.ID.PART`` is ``state_dict()["state"][ID][PART]``
        there (elements of lists: ``state.ID.GG.0``).

        Parameters
        ----------
        path : path of the file, which appears whole or not at all
        layout : "emerging", "emerging-0.4", "nikhilvyas" or "pytorch_optimizer"
            The package whose names and conventions the arrays have.
        """
        self._engine.handle.export(os.fsdecode(path), _layout(layout))

    def import_(self, path: Any, layout: str = "emerging") -> None:
        """Takes such an archive at `path`, in `layout`, of :meth:`export` or of ``numpy.savez`` on another package's state; ID may be the
        parameter's name.  The run goes on with the same numbers up to rounding.  One that does not fit raises
        :class:`fourge.errors.Mismatch` and changes nothing."""
        self._engine.handle.import_(os.fsdecode(path), _layout(layout))

    def save_param(self, name: str) -> bytes:
        """The state of the parameter `name`: so a run goes on, to the bit, with its parameters dealt to other optimizers."""
        return self._engine.handle.save_param(self._id_of(name))

    def load_param(self, name: str, state: bytes) -> None:
        """A state of :meth:`save_param` for the parameter of that name; one that does not fit changes nothing."""
        self._engine.handle.load_param(self._id_of(name), state, name)

    def _id_of(self, name: str) -> int:
        if name not in self._names:
            raise errors.BadArgument(f"there is no parameter {name!r}; there are {self._names}")
        return self._names.index(name)

    def __getstate__(self) -> dict[str, Any]:
        return {"profile": self._engine.profile, "options": self._context_options, "defaults": self.defaults,
                "groups": self.param_groups, "names": self._names, "bytes": self._engine.handle.save()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._context_options, self.defaults = state["options"], state["defaults"]
        self._engine = Engine(state["profile"], context(dict(self._context_options)))
        self.param_groups, self._params, self._names = [], [], []
        names = list(state["names"])
        for group in state["groups"]:
            self.add_param_group({**group, "names": [names.pop(0) for _ in group["params"]]})
        self._engine.handle.load(state["bytes"], "pickled state")


def _layout(name: str) -> int:
    if name not in LAYOUTS:
        raise errors.BadArgument(f"layout is {name!r}, expected one of {LAYOUTS}")
    return LAYOUTS.index(name)


def update_group(mine: dict[str, Any], theirs: Mapping[str, Any]) -> None:
    """Options of a saved group, under whatever names, over those of a group; the layout stays."""
    for key, value in theirs.items():
        name = ALIASES.get(key, key)
        if name in mine and name not in LAYOUT and name != "params":
            mine[name] = tuple(value) if name == "betas" else value


hint(globals())
