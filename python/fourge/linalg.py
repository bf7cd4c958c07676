"""Linear algebra of many small matrices: QR factorisations in one call.

>>> q, r = qr(a)               # (m, n) or (..., m, n), as torch.linalg.qr and numpy.linalg.qr have them
>>> found = qr([a, b, c])      # matrices of any shapes, in one call

Formulas and accuracy: ``fourge/qr.h``.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Unpack

import numpy as np

from . import _fourge, _options, errors
from ._arrays import array, context, outside
from ._hints import hint

__all__ = ["QR", "qr"]

_MODES = ("reduced", "complete", "r")


class QR(NamedTuple):
    """A factorisation A = Q R; the names are those of torch and NumPy."""

    Q: Any
    R: Any


def _is_tensor(x: Any) -> bool:
    return type(x).__module__.split(".")[0] == "torch"


def _taken(a: Any, name: str) -> np.ndarray:
    """(..., m, n) of float16, float32 or float64; bfloat16 tensors become float32."""
    if _is_tensor(a):
        if a.requires_grad:
            raise errors.Unsupported(f"{name} requires a gradient, which qr does not have; detach() it, or take torch.linalg.qr")
        if str(a.dtype) == "torch.bfloat16":
            a = a.float()
    kind = getattr(a, "dtype", None)
    a = np.asarray(a) if kind == np.float16 else array(a, name)
    if a.ndim < 2 or 0 in a.shape[-2:]:
        raise errors.BadArgument(f"{name}: expected a matrix (m, n) or a stack (..., m, n) of them, m and n >= 1, got shape {a.shape}")
    return a


class _Stack:
    """One argument: the stack that is factored, and how the answer is made of its factors."""

    def __init__(self, a: np.ndarray, mode: str):
        self.a, self.mode = a, mode
        m, n = a.shape[-2:]
        work = a.reshape(-1, m, n)
        if m < n:  # the first m columns decide Q
            work = work[..., :m]
        elif mode == "complete" and m > n:  # columns of zeros are completed to an orthonormal basis
            work = np.concatenate([work, np.zeros((len(work), m, m - n), a.dtype)], -1)
        k = work.shape[-1]
        self.work, self.q = work, np.empty(work.shape, a.dtype)
        self.r = np.empty((len(work), k, k), np.float64 if a.dtype == np.float64 else np.float32)

    def answer(self) -> QR:
        m, n = self.a.shape[-2:]
        lead, q, r = self.a.shape[:-2], self.q, self.r.astype(self.a.dtype, copy=False)
        if m < n:
            rest = np.swapaxes(q, -1, -2) @ self.a.reshape(-1, m, n)[..., m:]
            r = np.concatenate([r, rest], -1)
        elif self.mode == "complete" and m > n:
            r = r[..., :n]
        r = r.reshape(*lead, *r.shape[1:])
        return QR(q[:0].reshape(0) if self.mode == "r" else q.reshape(*lead, *q.shape[1:]), r)


def _like(a: np.ndarray, given: Any) -> Any:
    if not _is_tensor(given):
        return a
    import torch

    return torch.from_numpy(a).to(given.dtype)


@_options.takes(_options.Qr, "context", "qr")
def qr(A: Any, mode: str = "reduced", *, return_reports: bool = False, **options: Unpack[_options.Qr]) -> Any:
    """A = Q R with orthonormal columns of Q, and R upper triangular with a diagonal >= 0.

    Parameters
    ----------
    A : (m, n) or (..., m, n) array or tensor on the CPU, or a list of such of any shapes
        float16, bfloat16, float32 or float64; 16-bit numbers are computed in float32.  All matrices of a call are
        factored together, each with the same bits as alone, whatever the threads.
    mode : "reduced", "complete" or "r"
        As torch.linalg.qr and numpy.linalg.qr: Q (..., m, k) and R (..., k, n) with k = min(m, n); Q (..., m, m); R alone,
        with an empty Q.
    return_reports : bool
        True: the second of a pair is a list with a dict for each matrix: method, passes, pivot, orthogonality
        (max \\|Q'Q - I\\| as far as `verify` looks), rank (columns that do not depend on those before), nonfinite, deficient.
    **options
        method ("auto", "householder", "cholesky", "vendor"), verify ("none", "probe", "full"), ortho_tol, and threads,
        memory_limit.

    Returns
    -------
    QR, or a list of them
        Of A's type.  The signs differ from LAPACK's, whose R may have a negative diagonal.  A matrix with a NaN or an
        infinity gives NaN and a warning; columns that depend on others give an orthonormal completion.

    Raises :class:`fourge.errors.BadArgument` naming the matrix, :class:`fourge.errors.Unsupported` for tensors that require
    gradients.  Blocked Householder: Schreiber and Van Loan (1989); Cholesky QR: Yamamoto et al. (2015).
    """
    if mode not in _MODES:
        raise ValueError(f"mode={mode!r}: expected one of {list(_MODES)}")
    _options.check(qr, options)
    many = isinstance(A, (list, tuple)) and any(np.ndim(a) >= 2 for a in A) and not (
        len({np.shape(a) for a in A}) == 1 and not any(hasattr(a, "dtype") for a in A))
    given = list(A) if many else [A]
    c = context(options)
    stacks = [_Stack(_taken(a, f"A[{i}]" if many else "A"), mode) for i, a in enumerate(given)]
    reports = _fourge.qr(c, [(s.work, s.q, s.r) for s in stacks], options)
    bad = sum(report["nonfinite"] for report in reports)
    if bad:
        warnings.warn(f"{bad} of {len(reports)} matrices have a NaN or an infinity: their Q and R are NaN", stacklevel=outside())
    out = [QR(*(_like(x, a) for x in s.answer())) for s, a in zip(stacks, given)]
    answer = out if many else out[0]
    return (answer, reports) if return_reports else answer


hint(globals())
