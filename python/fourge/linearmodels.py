"""fourge under linearmodels: its models and results, our demeaning.

>>> from linearmodels.iv import AbsorbingLS
>>> from fourge.linearmodels import demeaning
>>> with demeaning():
...     fit = AbsorbingLS(data.y, data[["x"]], absorb=data[["firm", "worker"]]).fit()

Within the block :func:`demeaning` our solver takes effects out for ``AbsorbingLS`` (by either of
its methods, with weights and interactions of categories), for ``PanelOLS`` (``use_lsmr`` too;
``use_lsdv`` asks for dummies, which stay theirs), and for their other panel models, as far as
these demean.  Absorbed continuous variables are refused by name.  A model that has absorbed its
variables before keeps them.

Without ``absorb_options`` the tolerance is ours, 1e-10 of the audit, where LSMR stops at 1e-8 of
its own test.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _options, errors, fe
from ._blocks import Blocks
from ._hints import hint as _hint

__all__ = ["demeaning"]

#: What is replaced, each with the arguments that we know: (module, owner, name, arguments).
_known = (
    ("linearmodels.iv.absorbing", "", "lsmr_annihilate",
     ["x", "y", "use_cache", "x_hash", "lsmr_options"]),
    ("linearmodels.iv.absorbing", "AbsorbingLS", "_first_time_fit",
     ["self", "use_cache", "absorb_options", "method"]),
    ("linearmodels.panel.data", "PanelData", "demean",
     ["self", "group", "weights", "return_panel", "low_memory"]),
    ("linearmodels.panel.data", "PanelData", "general_demean", ["self", "groups", "weights"]),
    ("linearmodels.panel.model", "PanelOLS", "_lsmr_path", ["self"]),
    ("linearmodels.panel.model", "PanelOLS", "_choose_twoway_algo", ["self"]),
    ("pyhdfe", "", "create", None),
)


def _holders() -> dict[str, tuple[Any, Callable[..., Any]]]:
    """{name: (what holds it, their function)}."""
    try:
        import linearmodels
        import linearmodels.iv.absorbing
        import linearmodels.panel.model
        import pyhdfe
    except ImportError as e:
        raise ImportError("fourge.linearmodels needs linearmodels: pip install linearmodels") from e
    found = {}
    for module, owner, name, arguments in _known:
        holder = pyhdfe if module == "pyhdfe" else linearmodels
        for part in [*module.split(".")[1:], *([owner] if owner else [])]:
            holder = getattr(holder, part, None)
        theirs = getattr(holder, name, None)
        if theirs is None or arguments not in (None, list(inspect.signature(theirs).parameters)):
            raise errors.Unsupported(
                f"linearmodels {linearmodels.__version__} demeans in another way than 7.1, which "
                f"this version of fourge knows ({'.'.join(filter(None, (module, owner, name)))})")
        found[name] = holder, theirs
    return found


#: the AbsorbingLS that is absorbing its variables
_absorbing: contextvars.ContextVar[Any] = contextvars.ContextVar("absorbing", default=None)


def _demean(block: tuple[dict[str, Any], list[Any]], columns: Any, factors: Sequence[Any],
            weights: Any = None, asked: Mapping[str, Any] | None = None) -> np.ndarray:
    """What is left of the columns, and the report kept."""
    options, reports = block
    codes = [np.unique(np.asarray(f), return_inverse=True)[1].reshape(-1) for f in factors]
    w = None if weights is None else np.asarray(weights, dtype=np.float64).reshape(-1)
    left, report = fe.demean(np.asarray(columns, dtype=np.float64), np.column_stack(codes), w,
                             **{**(asked or {}), **options})
    reports.append(report)
    return left


def _factors(model: Any) -> list[Any]:
    """The categories that an AbsorbingLS absorbs, one array of codes each."""
    from linearmodels.iv.absorbing import category_product

    absorbed, crossed = model._absorb_inter, model._interaction_list
    slopes = [str(name) for inter in (absorbed, *crossed) for name in inter.cont]
    if slopes:
        raise errors.Unsupported(
            f"absorb: {', '.join(slopes)}: continuous variables are not absorbed inside "
            "fourge.linearmodels.demeaning(): add them to exog, or fit this model outside the block")
    return [absorbed.cat[name].cat.codes for name in absorbed.cat] + [
        category_product(inter.cat).cat.codes for inter in crossed]


def _absorbed(block: Any, model: Any, columns: np.ndarray, asked: Mapping[str, Any]) -> np.ndarray:
    """Residuals of columns that come, and go, times the square root of the weights."""
    weights = model.weights.ndarray if model._is_weighted else None
    root = 1.0 if weights is None else np.sqrt(weights)
    return root * _demean(block, columns / root, _factors(model), weights, asked)


def _asked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of scipy's lsmr in ours."""
    other = sorted(set(options) - {"atol", "btol", "maxiter"})
    if other:
        raise errors.Unsupported(
            f"absorb_options: {', '.join(other)}: inside fourge.linearmodels.demeaning() there are "
            "atol, btol and maxiter; the block's own options are those of fourge.fe.demean")
    asked: dict[str, Any] = {}
    if "atol" in options or "btol" in options:
        asked["tol"] = max(options.get("atol", 1e-8), options.get("btol", 1e-8))
    if options.get("maxiter") is not None:
        asked["max_iter"] = options["maxiter"]
    return asked


class _Residualizer:
    """What of pyhdfe's algorithms AbsorbingLS uses."""

    def __init__(self, block: Any, model: Any):
        self._block, self._model = block, model

    def residualize(self, matrix: np.ndarray) -> np.ndarray:
        return _absorbed(self._block, self._model, matrix, {})


def _of_absorbing(theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Our functions for AbsorbingLS."""

    @functools.wraps(theirs["_first_time_fit"])
    def first_time_fit(self, use_cache, absorb_options, method):
        token = _absorbing.set(self)
        try:
            return theirs["_first_time_fit"](self, use_cache, absorb_options, method)
        finally:
            _absorbing.reset(token)

    @functools.wraps(theirs["lsmr_annihilate"])
    def lsmr_annihilate(x, y, use_cache=True, x_hash=None, **lsmr_options):
        block, model = _blocks.current(), _absorbing.get()
        if block is None or model is None:
            return theirs["lsmr_annihilate"](x, y, use_cache, x_hash, **lsmr_options)
        return _absorbed(block, model, y, _asked(lsmr_options))

    @functools.wraps(theirs["create"])
    def create(ids, *args, **options):
        block, model = _blocks.current(), _absorbing.get()
        if block is None or model is None:
            return theirs["create"](ids, *args, **options)
        other = sorted(set(options) - {"drop_singletons"})
        if other:
            raise errors.Unsupported(
                f"absorb_options: {', '.join(other)}: pyhdfe does not run inside "
                "fourge.linearmodels.demeaning(), whose own options are those of fourge.fe.demean")
        return _Residualizer(block, model)

    return {"_first_time_fit": first_time_fit, "lsmr_annihilate": lsmr_annihilate, "create": create}


def _of_panel(theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Our functions for panels."""

    def within(panel, block, factors, weights):
        """A frame of what is left, times the square root of the weights."""
        w = None if weights is None else weights.values2d
        frame = panel.dataframe
        left = _demean(block, frame, factors, w)
        return type(frame)(left if w is None else np.sqrt(w) * left, index=frame.index,
                           columns=frame.columns)

    @functools.wraps(theirs["demean"])
    def demean(self, group="entity", weights=None, return_panel=True, low_memory=False):
        block = _blocks.current()
        named = {"entity": (0,), "time": (1,), "both": (0, 1)}.get(str(group).lower())
        if block is None or named is None or not self.nvar:
            return theirs["demean"](self, group, weights, return_panel, low_memory)
        self._check_index(*named)
        ids = (self.entity_ids, self.time_ids)
        frame = within(self, block, [ids[level] for level in named], weights)
        return type(self)(frame) if return_panel else np.asarray(frame)

    @functools.wraps(theirs["general_demean"])
    def general_demean(self, groups, weights=None):
        block = _blocks.current()
        if block is None or not self.nvar:
            return theirs["general_demean"](self, groups, weights)
        groups = groups if isinstance(groups, type(self)) else type(self)(groups)
        return type(self)(within(self, block, groups.values2d.T, weights))

    @functools.wraps(theirs["_lsmr_path"])
    def lsmr_path(self):
        block = _blocks.current()
        if block is None or not self._has_effect:
            return theirs["_lsmr_path"](self)
        factors = [self.dependent.entity_ids] * self.entity_effects
        factors += [self.dependent.time_ids] * self.time_effects
        factors += list(self._other_effect_cats.values2d.T) if self.other_effects else []
        w = self.weights.values2d
        both = np.column_stack((self.dependent.values2d, self.exog.values2d)).astype(np.float64)
        left, mean = _demean(block, both, factors, w), w.T @ both / w.sum()
        if self.has_constant:
            left += mean
        root, out = np.sqrt(w), both - left
        bar = root * mean[:, :1] if self.has_constant else np.array(0.0)
        return root * left[:, :1], root * left[:, 1:], bar, out[:, :1], out[:, 1:]

    @functools.wraps(theirs["_choose_twoway_algo"])
    def choose_twoway_algo(self):
        return theirs["_choose_twoway_algo"](self) if _blocks.current() is None else False

    return {"demean": demean, "general_demean": general_demean, "_lsmr_path": lsmr_path,
            "_choose_twoway_algo": choose_twoway_algo}


def _replace() -> Callable[[], None]:
    """Puts our functions where theirs are held; what undoes it."""
    holders = _holders()
    theirs = {name: function for name, (_, function) in holders.items()}

    def put(functions):
        for name, (holder, _) in holders.items():
            setattr(holder, name, functions[name])

    put({**_of_absorbing(theirs), **_of_panel(theirs)})
    return lambda: put(theirs)


_blocks = Blocks("linearmodels", _replace)


@_options.takes(fe.demean, without=("x", "fixed_effects", "weights", "out", "plan"))
@contextlib.contextmanager
def demeaning(**options: Any) -> Iterator[list[dict[str, Any]]]:
    """Within the block linearmodels demeans with fourge, in this thread and in others that are in
    no block of their own.

    Releases whose functions have other signatures than those of 7.1 are refused.

    Parameters
    ----------
    **options
        Of :func:`fourge.fe.demean`: ``method``, ``tol``, ``threads``, ...; they stand over the
        ``atol``, ``btol`` and ``maxiter`` of AbsorbingLS's ``absorb_options``.

    Yields
    ------
    list
        One report of :func:`fourge.fe.demean` for each call.
    """
    _options.check(demeaning, options)
    with _blocks.enter(dict(options)) as reports:
        yield reports


_hint(globals())
