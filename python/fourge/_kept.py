"""A transport plan that has left its solver: what a pickle of an alignment or a transport holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import errors

_ROWS = 256  # that are looked at together


class KeptPlan:
    """The numbers of an n x m plan, its potentials and marginals, with the methods of the extension's solvers that read them.

    Entries are compressed rows where less than half of them are not 0, the factors of a plan of low rank, or all of them.  Reading
    gives the bits of the solver; sums (:meth:`apply`, shares of labels) are equal up to rounding.
    """

    def __init__(self, solver: Any):
        self.marginals = solver.plan()
        self.n, self.m = n, m = self.marginals["n"], self.marginals["m"]
        self.f, self.g = np.empty(n), np.empty(m)
        self.without: errors.Error | None = None
        try:
            solver.potentials(self.f, self.g)
        except (errors.BadArgument, errors.Unsupported) as e:  # plans without entropy and of low rank have none
            self.without = e
        rank = solver.factors() if hasattr(solver, "factors") else 0
        self.low_rank = (np.empty(n * rank), np.empty(m * rank), np.empty(rank)) if rank else None
        self.starts: Any = np.empty(n + 1, np.int64)
        self.columns: Any = None
        self.values: Any = None
        if self.low_rank:
            solver.factors(*self.low_rank)
            return
        least = np.nextafter(0.0, 1.0)
        solver.sparse(least, self.starts, None, None)
        if 2 * self.starts[-1] < n * m:
            self.columns, self.values = np.empty(self.starts[-1], np.int32), np.empty(self.starts[-1])
            solver.sparse(least, self.starts, self.columns, self.values)
        else:
            self.values = np.empty((n, m))
            solver.rows(0, n, self.values)

    def plan(self) -> dict[str, Any]:
        return dict(self.marginals)

    def _dense(self, first: int, last: int) -> np.ndarray:
        if self.low_rank:
            q, w, h = (a.reshape(-1, len(self.low_rank[2])) for a in self.low_rank)
            return (q[first:last] / h) @ w.T
        if self.columns is None:
            return self.values[first:last]
        out = np.zeros((last - first, self.m))
        at = slice(self.starts[first], self.starts[last])
        out[np.repeat(np.arange(last - first), np.diff(self.starts[first:last + 1])), self.columns[at]] = self.values[at]
        return out

    def _chunks(self) -> Any:
        for first in range(0, self.n, _ROWS):
            last = min(first + _ROWS, self.n)
            yield slice(first, last), self._dense(first, last)

    def rows(self, first: int, last: int, out: np.ndarray) -> None:
        if not 0 <= first <= last <= self.n:
            raise errors.BadArgument(f"rows {first} .. {last} of a plan of {self.n}")
        for at in range(first, last, _ROWS):
            end = min(at + _ROWS, last)
            out[at - first:end - first] = self._dense(at, end)

    def top(self, k: int, index: np.ndarray, value: np.ndarray) -> None:
        if k > self.m:
            raise errors.BadArgument(f"k is {k}, the plan has {self.m} columns")
        index, value = index.reshape(self.n, k), value.reshape(self.n, k)
        for at, p in self._chunks():
            index[at] = np.argsort(-p, axis=1, kind="stable")[:, :k]
            value[at] = np.take_along_axis(p, index[at], 1)

    def sparse(self, threshold: float, starts: np.ndarray, columns: np.ndarray | None, values: np.ndarray | None) -> None:
        starts[0] = 0
        for at, p in self._chunks():
            row, column = np.nonzero(p >= threshold)
            starts[at.start + 1:at.stop + 1] = starts[at.start] + np.cumsum(np.bincount(row, minlength=len(p)))
            if columns is not None and values is not None:
                to = slice(starts[at.start], starts[at.stop])
                columns[to], values[to] = column, p[row, column]

    def apply(self, v: np.ndarray, transposed: bool, out: np.ndarray) -> None:
        if len(v) != (self.n if transposed else self.m):
            raise errors.BadArgument(f"v has {len(v)} rows, the plan is {self.n} x {self.m}")
        out[...] = 0
        for at, p in self._chunks():
            if transposed:
                out += p.T @ v[at]
            else:
                out[at] = p @ v

    def labels(self, codes: np.ndarray, count: int, out: np.ndarray, share: np.ndarray) -> None:
        member = np.zeros((self.m, count))
        member[np.flatnonzero(codes >= 0), codes[codes >= 0]] = 1
        for at, p in self._chunks():
            mass = p @ member
            total = mass.sum(1)
            out[at] = np.where(total > 0, mass.argmax(1), -1)
            share[at] = np.divide(mass.max(1), total, out=np.zeros(len(p)), where=total > 0)

    def potentials(self, f: np.ndarray, g: np.ndarray) -> None:
        if self.without:
            raise self.without
        f[:], g[:] = self.f, self.g

    def factors(self, *to: np.ndarray) -> int:
        for a, kept in zip(to, self.low_rank or ()):
            a[:] = kept
        return len(self.low_rank[2]) if self.low_rank else 0

    def _gone(self, *args: Any) -> None:
        raise errors.Unsupported("this plan was pickled: it has its entries, potentials and report; distances and derivatives are the "
                                 "original's, or of another run")

    vjp = distances = _gone
