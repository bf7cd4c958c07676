"""fourge under pyfixest: its formulas, estimators and tables, our demeaning.

>>> import pyfixest as pf
>>> from fourge.pyfixest import demeaning
>>> with demeaning():
...     fit = pf.feols("y ~ x | firm + worker", data)

pyfixest's releases accept their own demeaners alone, so :func:`demeaning` replaces the one function through which
every estimator demeans (feols, fepois, feglm, IV, several estimations), and puts it back when the last block ends.
Releases whose function has another signature are refused.

What pyfixest's demeaner asks for is done: ``fixef_tol`` (of LSMR the larger of ``fixef_atol`` and ``fixef_btol``) is the
tolerance of our audit, ``fixef_maxiter`` the most steps of an iteration, ``precision="float32"`` is ``dtype="mixed"``
(float32 inside, refined to the same tolerance), and a device that is not the CPU raises.  Where pyfixest's own solver
would have built a preconditioner, ``fit.preconditioner`` is that preconditioner, built by pyfixest: ours is not used, and
not made to be handed on.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _options, errors, fe

__all__ = ["BACKENDS", "demeaning"]

#: What pyfixest's names of backends become here.
BACKENDS = {
    "auto": "cpu",
    "cpu": "cpu",
    "torch": "cpu",  # torch chooses the device there; this build has the CPU alone
    "torch_cpu": "cpu",
    "torch_mps": "opencl",
    "torch_cuda": "cuda",
    "torch_cuda32": "cuda",
}

_lock = threading.Lock()
#: (options, reports) of all threads, in the order in which they were entered
_blocks: list[tuple[dict[str, Any], list[Any]]] = []
_own: contextvars.ContextVar[tuple[dict[str, Any], list[Any]] | None] = contextvars.ContextVar(
    "the block that this thread or task is in", default=None)
_put_back: list[Callable[[], Any]] = []  # what ends the replacement

_module = "pyfixest.estimation.internals.demean_"
_arguments = ["x", "flist", "weights", "demeaner", "cached_preconditioner"]


def _original():
    try:
        import pyfixest
    except ImportError as e:
        raise ImportError("fourge.pyfixest needs pyfixest: pip install pyfixest") from e
    version = getattr(pyfixest, "__version__", "unknown")
    pyfixest.feols  # loads the estimators, which hold the function under their own names
    function = getattr(sys.modules.get(_module), "dispatch_demean", None)
    if function is None or list(inspect.signature(function).parameters) != _arguments:
        raise errors.Unsupported(f"pyfixest {version} demeans in another way than 0.60, which this version of fourge knows")
    return function


def _preconditioner(flist, weights, demeaner, cached):
    """What pyfixest's LSMR would give back beside its solution, by pyfixest itself: a step on a column of zeros."""
    if demeaner.kind != "lsmr" or demeaner.backend != "within" or flist.ndim == 1 or flist.shape[1] == 1:
        return None
    from pyfixest.core.demean import Preconditioner, demean_within

    wanted = "additive" if demeaner.preconditioner == "auto" else demeaner.preconditioner
    if isinstance(wanted, str) and cached is not None and cached.variant.lower() == wanted:
        return cached
    if not isinstance(wanted, Preconditioner) and wanted == "off":
        return None
    zeros = np.zeros((len(flist), 1))
    return demean_within(zeros, flist.astype(np.uint32), weights, maxiter=1, preconditioner=wanted)[2]


def _replace():
    """Puts our function where theirs is held."""
    original = _original()
    holders = [m for m in list(sys.modules.values()) if getattr(m, "dispatch_demean", None) is original]

    def ours(x, flist, weights, demeaner, cached_preconditioner=None):
        block = _own.get() or (_blocks[-1] if _blocks else None)  # a thread that was started within a block is in none
        if block is None:
            return original(x, flist, weights, demeaner, cached_preconditioner)
        options, reports = block
        flist = np.asarray(flist)
        w = None if weights is None else np.asarray(weights, dtype=np.float64).reshape(-1)
        built = _preconditioner(flist, w, demeaner, cached_preconditioner)
        columns = [np.unique(f, return_inverse=True)[1].reshape(-1) for f in flist.T]
        out, report = fe.demean(x, np.column_stack(columns), w, **{**fe._asked(demeaner), **options})
        reports.append(report)
        return out, report["status"] == "FRG_OK", built

    def put_back():
        for m in holders:
            m.dispatch_demean = original

    for m in holders:
        m.dispatch_demean = ours
    _put_back.append(put_back)


@_options.takes(fe.demean, without=("x", "fixed_effects", "weights", "out"))
@contextlib.contextmanager
def demeaning(backend: str = "auto", **options: Any) -> Iterator[list[dict[str, Any]]]:
    """Within the block pyfixest demeans with fourge, in this thread and in others that are in no block of their own.

    Parameters
    ----------
    backend : str
        One of :data:`BACKENDS`.  "cuda" and "opencl" need a device that this build does not have and raise
        :class:`fourge.errors.NoDevice`; nothing falls back to the CPU in silence.
    **options
        Of :func:`fourge.fe.demean`: ``method``, ``threads``, ...; ``tol``, ``max_iter`` and ``dtype`` stand over what
        pyfixest's demeaner asks for.

    Yields
    ------
    list
        One report of :func:`fourge.fe.demean` for each call.
    """
    _options.check(demeaning, options)
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r}: expected one of {list(BACKENDS)}")
    if BACKENDS[backend] != "cpu":
        raise errors.NoDevice(f"backend={backend!r} needs the device '{BACKENDS[backend]}', which this build does not have")
    block: tuple[dict[str, Any], list[Any]] = {**options}, []
    with _lock:
        if not _blocks:
            _replace()
        _blocks.append(block)
    token = _own.set(block)
    try:
        yield block[1]
    finally:
        with _lock:
            _blocks[:] = [b for b in _blocks if b is not block]
            if not _blocks:
                _put_back.pop()()
        with contextlib.suppress(ValueError):  # the block ends in another task than it began in
            _own.reset(token)
