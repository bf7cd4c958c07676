"""Gromov-Wasserstein: alignment of two spaces by the distances inside them, Sinkhorn, graphs.

>>> found = align(x, y, k=10)              # points in spaces of any dimensions
>>> found.argmax(), found.report["energy"]

For n x m plans P with marginals a and b the energy is ``sum (C_ik - D_jl)^2 P_ij P_kl``, without a root or 1/2.  The
plan is never stored: rows, matches and products are made when they are asked for.  :func:`sampled_gw` has the names of
TorchGW; functions under POT's names are those of :mod:`fourge.pot`.  Formulas and sources: ``fourge/gw.h``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from os import PathLike, fsdecode, fspath, path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from . import _fourge, _options, _there, errors
from ._arrays import Report, array, context, moved_seconds, outside, seconds, warn, warn_once
from ._frame import is_missing
from ._hints import hint
from ._kept import KeptPlan
from ._summary import Summary

__all__ = ["Alignment", "Graph", "Transport", "align", "barycenter", "energy", "joint_embedding", "landmark_bounds",
           "lower_bound", "read_mesh", "sampled_gw", "sampled_lowrank_gw", "transport"]


def _matrix(x: Any, name: str) -> np.ndarray:
    x = array(x, name)
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2:
        raise errors.BadArgument(f"{name}: expected a matrix, got shape {x.shape}")
    return x


def _vector(v: Any, name: str, n: int, what: str) -> np.ndarray | None:
    if v is None:
        return None
    v = np.ascontiguousarray(array(v, name), np.float64)
    if v.size == 0:
        return None
    if v.shape != (n,):
        raise errors.BadArgument(f"{name}: expected {n} {what}, got shape {v.shape}")
    return v


def _weights(w: Any, name: str, n: int) -> np.ndarray | None:
    return _vector(w, name, n, "weights")


def _share(w: Any, name: str) -> Any:
    """Weights divided by their sum, which is left to the library where it is no positive number."""
    if w is None:
        return None
    w = np.asarray(array(w, name), np.float64)
    if w.size == 0:
        return None
    total = w.sum()
    return w / total if 0 < total < np.inf else w


def _vector_beside(context_: Any, cost: Any, v: Any, name: str, n: int, what: str) -> Any:
    """A vector for a solver: float64 in host memory, or the view of one on the device of the cost."""
    there = _there.find(v, name)
    if there is None:
        return _vector(v, name, n, what)
    if there.shape != (n,):
        raise errors.BadArgument(f"{name}: expected {n} {what}, got shape {there.shape}")
    return there.beside(context_, cost, name, "the cost")


class _Sides:
    """What an alignment is given on a device: `first`, the side whose queue the work is in; None where both are in host memory."""

    def __init__(self, x: Any, y: Any, options: dict[str, Any], progress: Any):
        self.found = {name: _there.find(v, name) for name, v in (("x", x), ("y", y)) if not isinstance(v, Graph)}
        first: tuple[str, Any] = next(((k, t) for k, t in self.found.items() if t is not None), ("x", None))
        self.whose, self.first = first
        self.context = context(options, progress) if self.first is None else _there.context(self.first, self.whose, options, progress)
        self.fetched = [0, 0]  # vectors, bytes

    def matrix(self, v: Any, name: str) -> Any:
        """A matrix in host memory, or the view of one on the device; a vector is a column."""
        there = self.found[name] if name in self.found else _there.find(v, name)
        if there is None:
            return _matrix(v, name)
        if len(there.shape) not in (1, 2):
            raise errors.BadArgument(f"{name}: expected a matrix, got shape {there.shape}")
        view = there.view if there is self.first else there.beside(self.context, self.first, name, self.whose)
        return _there.matrix(view)

    def vector(self, v: Any, name: str, n: int, what: str) -> np.ndarray | None:
        """A vector in host memory, of one on the device a copy, which is counted."""
        there = _there.find(v, name)
        if there is None:
            return _vector(v, name, n, what)
        out, size = there.fetch(self.context, self.first, name, self.whose, (n, what))
        self.fetched = [self.fetched[0] + 1, self.fetched[1] + size]
        return out

    def count(self, report: Report) -> Report:
        """The copies of vectors in the report's counts."""
        report["device_waits"] += self.fetched[0]
        report["device_bytes_out"] += self.fetched[1]
        return report


def _is_tensor(x: Any) -> bool:
    return type(x).__module__.split(".")[0] == "torch"


def _like(a: np.ndarray, *inputs: Any) -> Any:
    """In the inputs' type: a torch tensor where one of them is one, float32 where all of them are."""
    if {str(x.dtype).rpartition(".")[2] for x in inputs if hasattr(x, "dtype")} == {"float32"}:
        a = a.astype(np.float32)
    if any(_is_tensor(x) for x in inputs):
        import torch

        return torch.from_numpy(a)
    return a


def _wants_graph(*inputs: Any) -> bool:
    """Whether torch would have a derivative of what is made of them."""
    wanted = [x for x in inputs if _is_tensor(x) and x.requires_grad]
    if not wanted:
        return False
    import torch

    return torch.is_grad_enabled()


class Graph:
    """Nodes and arcs of length >= 0.

    ``Graph.knn(points, k)`` joins each point with its nearest ones, ``Graph.csr(starts, targets, weights)`` takes
    compressed rows, ``Graph.of(matrix)`` a SciPy sparse matrix.
    All take threads, memory_limit, time_limit: of the computation.
    """

    def __init__(self, handle: Any):
        self._graph = handle
        self._report: dict[str, Any] | None = None

    def __copy__(self) -> Graph:
        return self  # nothing changes it

    def __deepcopy__(self, memo: Any) -> Graph:
        return self

    def __reduce__(self) -> Any:
        """A pickle has the arcs and the report; what is made of it has the same arcs."""
        return _graph_of, (*self.arcs(), self.report)

    @classmethod
    @_options.takes(_options.Unseeded, "context")
    def knn(cls, points: Any, k: int = 30, *, k_clamp: bool = False, stitch: bool = True, **options: Unpack[_options.Unseeded]) -> Graph:
        """The k nearest neighbours of each of the (n, d) points, exact; `stitch` joins components, `k_clamp` takes as many
        neighbours as there are where k is more."""
        _options.check(cls.knn, options)
        more = {"k": k, "k_clamp": k_clamp, "stitch": stitch}
        c = context(options)
        return cls(_fourge.Graph.knn(c, _matrix(points, "points"), more))

    @classmethod
    @_options.takes(_options.Unseeded, "context")
    def csr(cls, starts: Any, targets: Any, weights: Any = None, *, directed: bool = False, **options: Unpack[_options.Unseeded]) -> Graph:
        """Node i has the arcs targets[starts[i]:starts[i + 1]] of lengths weights (None: all 1), that is
        arrays (n + 1,), (arcs,) and (arcs,); unless `directed` each goes
        both ways."""
        _options.check(cls.csr, options)
        c = context(options)
        w = None if weights is None else np.ascontiguousarray(weights, np.float64)
        return cls(_fourge.Graph.csr(c, np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(targets, np.int64), w,
                                     directed))

    @classmethod
    @_options.takes(_options.Unseeded, "context")
    def of(cls, matrix: Any, **options: Unpack[_options.Unseeded]) -> Graph:
        """A SciPy sparse matrix of lengths."""
        matrix = matrix.tocsr()
        return cls.csr(matrix.indptr, matrix.indices, matrix.data, **options)

    @classmethod
    @_options.takes(_options.Unseeded, "context")
    def read(cls, path: str | PathLike[str], *, directed: bool = False, **options: Unpack[_options.Unseeded]) -> Graph:
        """The file at `path`: Matrix Market, or lines "from to [weight]" with nodes counted from 0; `directed` as in :meth:`csr`."""
        _options.check(cls.read, options)
        c = context(options)
        return cls(_fourge.Graph.read(c, fspath(path), directed))

    @classmethod
    @_options.takes(_options.Unseeded, "context")
    def mesh(cls, path: str | PathLike[str], **options: Unpack[_options.Unseeded]) -> Graph:
        """The edges of the OFF, OBJ or PLY file at `path` with their lengths; see :func:`read_mesh`."""
        _options.check(cls.mesh, options)
        c = context(options)
        return cls(_fourge.Graph.mesh(c, fspath(path)))

    def arcs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(starts, targets, lengths) in compressed rows: int64, int32, float32; an undirected edge is two arcs."""
        starts, targets, weights = self._graph.arcs()
        return np.frombuffer(starts, np.int64), np.frombuffer(targets, np.int32), np.frombuffer(weights, np.float32)

    def landmarks(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """(nodes, lengths): node 0, then always the one farthest from those chosen; (L,) and the (n, L) paths to them.

        L is less than `count` where all others are at distance 0 of one.  De Silva and Tenenbaum (2004)."""
        n = self.report["n"]
        if count < 1:
            raise errors.BadArgument(f"count is {count}, it must be >= 1")
        nodes, out = np.empty(count, np.int64), np.empty((n, count), np.float32)
        found = self._graph.landmarks(nodes, out)
        return nodes[:found], out[:, :found]

    @property
    def report(self) -> dict[str, Any]:
        """n, arcs, components, stitched, directed."""
        return dict(self._report) if self._report else self._graph.report()

    def paths(self, sources: Sequence[int] | None = None) -> np.ndarray:
        """(sources, n) lengths of shortest paths, infinite where there is none; sources None: from all nodes."""
        n = self.report["n"]
        if sources is not None:
            if np.size(sources) and np.asarray(sources).dtype.kind not in "iu":
                raise TypeError(f"sources: expected numbers of nodes, got {np.asarray(sources).dtype}")
            sources = np.ascontiguousarray(sources, np.int64)  # type: ignore[assignment]
        out = np.empty((n if sources is None else len(sources), n), np.float32)
        self._graph.paths(sources, out)
        return out


@_options.takes(_options.Read, "context")
def read_mesh(path: str | PathLike[str], **options: Unpack[_options.Read]) -> tuple[np.ndarray, np.ndarray]:
    """(points, edges) of the OFF, OBJ or PLY file at `path` (ascii or binary): (n, 3) float64 and (e, 2) int32.

    Edges are the sides of the faces and the edges of the file, in its order, twice where two faces meet; a file without
    faces is a cloud of points and has none.  :meth:`Graph.mesh` makes a graph of them.  memory_limit: of the reading.
    """
    _options.check(read_mesh, options)
    c = context(options)
    points, ends = _fourge.mesh_read(c, fspath(path))
    return np.frombuffer(points).reshape(-1, 3).copy(), np.frombuffer(ends, np.int32).reshape(-1, 2).copy()


def _graph_of(starts: np.ndarray, targets: np.ndarray, weights: np.ndarray, report: dict[str, Any]) -> Graph:
    """A graph of a pickle: an undirected one gets each edge once, from its lower node."""
    if not report["directed"]:
        nodes = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        once = nodes <= targets
        starts = np.concatenate([[0], np.cumsum(np.bincount(nodes[once], minlength=len(starts) - 1))])
        targets, weights = targets[once], weights[once]
    graph = Graph.csr(starts, targets, weights, directed=report["directed"])
    graph._report = report
    return graph


class _Plan(Summary):
    """A transport plan P (n x m) that is made of its solver when it is asked for.

    Copies share the solver, which nothing changes.  A pickle has the plan (its entries that are not 0, the factors of one of low
    rank), the potentials, the marginals and the report; distances and :meth:`vjp` stay with the original."""

    _solver: Any
    report: dict[str, Any]

    def __copy__(self) -> Any:
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.report = copy(self.report)
        return other

    def __deepcopy__(self, memo: Any) -> Any:
        other = self.__copy__()
        other.report = deepcopy(self.report, memo)
        return other

    def __reduce__(self) -> Any:
        kept = self._solver if isinstance(self._solver, KeptPlan) else KeptPlan(self._solver)
        return type(self), (kept, self.report)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        r = self._solver.plan()
        return r["n"], r["m"]

    def _facts(self) -> tuple[str, list[tuple[str, Any]], tuple[list[str], list[list[Any]]]]:
        r = self.report
        keys = ("energy", "energy_standard_error", "lower_bound", "sharpened_energy", "other_energy", "verdict", "gw_distance", "cost",
                "column_error", "reason", "outer_iterations", "iterations", "converged", "status", "mass")
        facts = [(key.replace("_", " "), r[key]) for key in keys if r.get(key) is not None]
        facts += [(f"marginal error, {side}", float(r["marginal_error"][side])) for side in ("source", "target")]
        facts.append(("seconds", float(r["seconds"]["total"])))
        return f"{type(self).__name__}, {r['n']} x {r['m']}", facts, ([], [])

    @property
    def marginals(self) -> dict[str, Any]:
        """mass and errors of the plan's marginals, before and after rounding."""
        return self._solver.plan()

    def plan(self, dtype: Any = np.float64) -> np.ndarray:
        """All of it, (n, m), in `dtype`, float64 or float32."""
        return self.rows(0, self.shape[0], dtype)

    def rows(self, first: int, last: int, dtype: Any = np.float64) -> np.ndarray:
        """Rows first .. last - 1, in `dtype`."""
        out = np.empty((max(last - first, 0), self.shape[1]), dtype)
        self._solver.rows(first, last, out)
        return out

    def top(self, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """(columns, masses), both (n, k): the largest entries of every row, falling."""
        n = self.shape[0]
        if k < 1:
            raise errors.BadArgument(f"k is {k}, it must be >= 1")
        index, value = np.empty(n * k, np.int64), np.empty(n * k)
        self._solver.top(k, index, value)
        return index.reshape(n, k), value.reshape(n, k)

    def argmax(self) -> np.ndarray:
        """(n,) columns of the largest entries; -1 for a row without mass."""
        index, value = self.top(1)
        return np.where(value[:, 0] > 0, index[:, 0], -1)

    def sparse(self, threshold: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(starts, columns, masses) of the entries >= threshold, for ``scipy.sparse.csr_matrix((masses, columns,
        starts), shape)``."""
        if threshold != threshold:
            raise errors.BadArgument("threshold is nan")
        starts = np.empty(self.shape[0] + 1, np.int64)
        self._solver.sparse(threshold, starts, None, None)
        columns, values = np.empty(starts[-1], np.int32), np.empty(starts[-1])
        self._solver.sparse(threshold, starts, columns, values)
        return starts, columns, values

    def apply(self, v: Any, transposed: bool = False) -> np.ndarray:
        """P v, or P' v with `transposed`; v has one or two axes."""
        v = np.ascontiguousarray(v, np.float64)
        wide = v[:, None] if v.ndim == 1 else v
        out = np.empty((self.shape[1 if transposed else 0], wide.shape[1]))
        self._solver.apply(wide, transposed, out)
        return out[:, 0] if v.ndim == 1 else out

    def labels(self, labels: Any) -> tuple[np.ndarray, np.ndarray]:
        """For every source the label with the most mass among its targets, and that label's share of the row.

        labels: (m,) of any type; None, NaN and "" are no labels.  Rows without labelled mass get None (NaN for numbers).
        """
        labels = np.asarray(labels)
        known = np.array([not is_missing(x) and x != "" for x in labels.tolist()], bool)
        names, codes = np.unique(labels[known], return_inverse=True)
        all_codes = np.full(len(labels), -1, np.int32)
        all_codes[known] = codes
        n = self.shape[0]
        if len(labels) != self.shape[1]:
            raise errors.BadArgument(f"labels: expected {self.shape[1]}, one a target, got {len(labels)}")
        out, share = np.empty(n, np.int32), np.empty(n)
        self._solver.labels(all_codes, max(len(names), 1), out, share)
        found = np.full(n, None, object)
        found[out >= 0] = names[out[out >= 0]]
        return (found if (out < 0).any() else found.astype(names.dtype)), share

    def vjp(self, g: Any, grad_mode: str = "implicit") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(dLoss/dCost (n, m), dLoss/da (n,), dLoss/db (m,)) for g = dLoss/dP, (n, m).

        The cost is that of the last linearisation, in scaled units; derivatives of weights are centred.  grad_mode:
        "implicit" (of the fixed point: exact for a converged balanced plan), "unrolled" (of the passes that were done,
        converged or not; weights of relaxed and partial plans as they are; rounding is left out) or "frozen" (potentials
        held fixed).  Raises :class:`fourge.errors.Unsupported` for relaxed and partial plans with "implicit", and for low rank.
        """
        n, m = self.shape
        out, a, b = np.empty((n, m)), np.empty(n), np.empty(m)
        self._solver.vjp(np.ascontiguousarray(_matrix(g, "g"), np.float64), {"grad_mode": grad_mode}, out, a, b)
        return out, a, b

    def _potentials(self) -> tuple[np.ndarray, np.ndarray]:
        n, m = self.shape
        f, g = np.empty(n), np.empty(m)
        self._solver.potentials(f, g)
        return f, g


class Alignment(_Plan):
    """What :func:`align` found.  ``report`` holds what the JSON of ``fourge gw align`` does, under the same keys:
    energy, its standard error, marginal_error, iterations, seconds, peak_bytes and the reason of the end among them; plans are read by
    the methods."""

    def __init__(self, solver: Any, report: dict[str, Any]):
        self._solver, self.report = solver, report

    def __repr__(self) -> str:
        r = self.report
        return f"Alignment({r['n']} x {r['m']}, energy {r['energy']:.5g}, {r['reason']})"

    @property
    def potentials(self) -> tuple[np.ndarray, np.ndarray]:
        """f (n,) and g (m,) of the last linearisation, scaled cost units."""
        return self._potentials()

    @property
    def factors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Q (n, rank), W (m, rank) and h (rank,) of a plan Q diag(1/h) W' of low rank; None for others."""
        rank = self._solver.factors()
        if rank == 0:
            return None
        (n, m), h = self.shape, np.empty(rank)
        q, w = np.empty(n * rank), np.empty(m * rank)
        self._solver.factors(q, w, h)
        return q.reshape(n, rank), w.reshape(m, rank), h

    def distances(self, side: int = 0) -> np.ndarray:
        """The distances in use, (n, n) for side 0 or (m, m) for side 1."""
        if side not in (0, 1):
            raise errors.BadArgument(f"side is {side!r}: 0 is the source, 1 the target")
        n = self.shape[side]
        out = np.empty((n, n))
        self._solver.distances(side, out)
        return out


class Transport(_Plan):
    """What :func:`transport` found: ``report`` holds what the JSON of ``fourge gw sinkhorn`` does, under the same keys: iterations,
    cost, column_error (relative to the mass, what tol is compared with) and marginal_error, ``{"source", "target"}``, of the
    plan among them; P by the methods."""

    _context: Any = None
    _there: Any = None  # the cost, where it lies on a device
    _given: tuple[Any, ...] = ()  # cost, a and b

    def __init__(self, solver: Any, report: dict[str, Any]):
        self._solver, self.report = solver, report

    def __repr__(self) -> str:
        r = self.report
        return f"Transport({r['n']} x {r['m']}, cost {r['cost']:.5g}, {r['iterations']} iterations)"

    @property
    def potentials(self) -> tuple[Any, Any]:
        """f (n,) and g (m,) of P = exp((f + g - C) / epsilon); of a cost on a device arrays of its library there."""
        if self._there is None or (f := self._there.empty(self.shape[:1], np.float64)) is None:
            return self._potentials()
        g = self._there.empty(self.shape[1:], np.float64)
        to = [_there.find(x, "the potentials", True) for x in (f, g)]
        with _there.behind(self._context, to[0]):
            self._solver.potentials(*(x.within(self._there, "a potential") for x in to))
        return f, g

    @property
    def objective(self) -> Any:
        """The least ``<C, P> + epsilon sum P (log P - 1)`` between the weights as they are normalised: ``report["objective"]``, from the
        potentials.  Where the cost or weights are tensors of torch that require gradients a scalar tensor that carries them, by the
        envelope theorem: P in the cost, written where the cost lies, and ``(f - <f, a>) / sum(a)`` in a, likewise in b, of sums as they
        are given.  A first derivative alone; :class:`fourge.errors.Unsupported` for relaxed and partial marginals."""
        if self.report["objective"] != self.report["objective"]:
            raise errors.Unsupported("the objective of relaxed or partial marginals: leave rho_source, rho_target and mass out, or take "
                                     "fourge.pot.sinkhorn_unbalanced2, whose value has gradients")
        if not _wants_graph(*self._given):
            return self.report["objective"]
        from .torch import _transport_value

        return _transport_value(self, *self._given)

    def plan(self, dtype: Any = np.float64, out: Any = None) -> Any:
        """All of it, (n, m), in `dtype`, float64 or float32, or in the array `out`, as :meth:`rows` has them."""
        return self.rows(0, self.shape[0], dtype, out)

    def rows(self, first: int, last: int, dtype: Any = np.float64, out: Any = None) -> Any:
        """Rows first .. last - 1, in `dtype`.  Of a cost on a device an array of its library there (torch, CuPy, Numba, pyopencl; of
        others NumPy's); or `out`, an array of the shape and of either type, in host memory or on the device, which is written in place."""
        if out is None and self._there is not None:
            out = self._there.empty((max(last - first, 0), self.shape[1]), dtype)
        if out is None:
            return super().rows(first, last, dtype)
        there = _there.find(out, "out", True)
        if there is None:
            self._solver.rows(first, last, out.detach().numpy() if _is_tensor(out) else out)
            return out
        view = there.within(self._there, "out")
        with _there.behind(self._context, there):
            self._solver.rows(first, last, view)
        return out


_OF_VERTEX = ("starts_agree", "next_energy", "vertex", "symmetric")  # the mode's alone
_MOVED = moved_seconds("graph", "distances", "build", "inner", "sample", "polish", "total")


def _run(solver: Any, context_: Any) -> Report:
    """The run's report and what its plan's marginals are, under the keys of the program's JSON."""
    found = solver.run()
    warn(context_)
    if found["status"] == "FRG_TIME_LIMIT":
        warnings.warn("FRG_TIME_LIMIT: the plan is that of the last step", errors.NotConverged, stacklevel=outside())
    plan = solver.plan()
    left_out = () if found.get("starts_agree") else _OF_VERTEX
    report = {"n": plan["n"], "m": plan["m"],
              **{k: v for k, v in found.items() if not k.endswith("_seconds") and k not in left_out}}
    report["mass"] = plan["mass"]
    report["marginal_error"] = {"source": plan["source_error"], "target": plan["target_error"]}
    report["marginal_error_before_rounding"] = {"source": plan["source_before"], "target": plan["target_before"]}
    report["seconds"] = seconds(found)
    report["peak_bytes"] = context_.peak_bytes()
    return Report(report, found, _MOVED)


def _side(x: Any, name: str, sides: _Sides) -> tuple[Any, int]:
    if isinstance(x, Graph):
        return x._graph, x.report["n"]
    if hasattr(x, "tocsr"):
        if x.shape[0] != x.shape[1]:
            raise errors.BadArgument(f"{name}: a sparse matrix holds the lengths of a graph, n x n, got {x.shape}; of points give "
                                     f"{name}.toarray()")
        return (g := Graph.of(x))._graph, g.report["n"]
    x = sides.matrix(x, name)
    return x, x[5][0] if isinstance(x, tuple) else len(x)


@_options.takes(_options.Align, "context", "gw")
def align(x: Any, y: Any, *, a: Any = None, b: Any = None, linear: Any = None, start: Any = None,
          potentials: tuple[Any, Any] | None = None, progress: Any = None, checkpoint: str | PathLike[str] | None = None,
          checkpoint_every: float = 60.0, resume: bool | str | PathLike[str] = False,
          **options: Unpack[_options.Align]) -> Alignment:
    """Aligns two sets of points, distance matrices or graphs.

    Parameters
    ----------
    x, y : (n, d) and (m, e) arrays, :class:`Graph` objects, or SciPy sparse matrices of lengths
        float32 and float64 are taken as they are; with ``distance="matrix"`` they are the distances.  Arrays on a device, as
        :func:`transport` takes them, are computed with there: distances stay where they are, and the host gets the rows that it asks
        for; points, linear, start, a, b and potentials may lie there, too, and are copied from there once.
        ``device_bytes_out`` has every copy.  Plan and potentials are arrays of NumPy.
    a, b : (n,) and (m,) weights, optional
        Uniform without; normalised to sum 1 where the marginals are not relaxed.
    linear : (n, m) array, optional
        A cost for each pair, of weight ``linear_weight`` (0 without, where a warning says that it has no effect).
    start : (n, m) array, optional
        The plan to start from.
    potentials : pair of (n,) and (m,) arrays, optional
        (f, g) of an earlier alignment, where the passes of the first step begin; either may be None.
    progress : bool or function
        True shows a bar (tqdm where it is installed).
    checkpoint : path, optional
        The run writes its state there every `checkpoint_every` seconds, and when it is stopped (Ctrl-C, time_limit).
    resume : path or bool
        Goes on from that state to the bits of a run that was not stopped; True: from `checkpoint` where that is there.  The
        data, the options and the seed must be those of the state, and the device of its kind, model and driver; threads
        need not.
    **options
        distance ("auto", "landmark", "dijkstra", "precomputed", "euclidean", "matrix", "graph"), mode ("auto", "sampled",
        "exact", "landmark", "vertex"; the report's ``mode`` and ``mode_reason`` say which was taken, and why).  "vertex":
        no sampling and no entropy, many starts raced by energy, each by conditional gradient to a plan of n + m - 1
        entries at most; what it has no part in, epsilon and anchors among them, is refused; its report has
        next_energy, starts_agree, vertex and symmetric.  "auto": vertex for up to 30000 points a side of
        equal weights, 5000 others, unless an option is named that it has no part in, at whatever value, or a plan or
        potentials to start from, or marginals do not hold; else sampled.  k 30, k_clamp (as many neighbours as there are), stitch (components are joined, True), landmarks 50, anchors 80, epsilon 0.001, anneal, damping 0.9, max_iter 500,
        min_iter 20, tol 1e-5, max_inner, marginal_tol, mass, rho_source, rho_target, reference, linear_weight,
        lambda_ema_beta, scale, sampling, multiscale, n_coarse, n_start, fine_steps, polish, round, polish_tol,
        polish_passes, cost_store ("auto", "f32", "fly"), cache_rows, rank (0: no bound), lr_max_iter, lr_dykstra_max_iter,
        preset ("torchgw"; what is named besides stands above it),
        scale_linear ("none"; "max": `linear` divided by its largest absolute value), landmark_metric ("l2", "lower", "upper",
        "mid"), start_from ("auto": of several starts one from the plan between the distributions of each point's distances,
        "product": none, "profiles": that alone, "vertex": the plan of that mode, without annealing, which "auto" is where the
        mode "auto" takes sampled because of an option and there are up to 1e6 pairs of points; the report's ``started_from``
        names the one that went on, ``vertex_energy`` is that of the vertex it began at), lazy (precomputed distances row by row as they are needed), store_plan
        (the averaged plan is kept), diag_exact (row and column terms from the plan's marginals), auto_store (on the fly where
        memory has no room for "f32"), dtype ("auto": float32, and float64 for the costs of up to 130 points a side in the mode
        vertex; "f32"; "f64": costs and distances, with distance "euclidean" or "matrix" in the mode vertex, up to 6000 points a
        side; the report's ``dtype`` says which it was), device ("cpu", "cuda:i", "opencl:i", None: that of
        FOURGE_DEVICE; what does not run there is refused by name), and threads, seed, memory_limit, time_limit.

    Of plans of the modes with entropy the report has ``sharpened_energy`` (conditional gradient from the plan, without the blur
    of epsilon), ``blur`` (what the energy is above it), ``other_energy`` (from starts that know nothing of the plan) and
    ``verdict``: "another start is lower" comes with the reason "beaten", a warning and the remedy, mode="vertex" or
    start_from="vertex"; "not compared: ..." says why there is none.  Above 630 points a side (170 of unequal numbers or
    weights) the other starts are raced on ``verdict_points`` points a side, and the best goes on on all of them where the plan
    is another; "other plans are as low on a sample" says that the sample does not tell near symmetries.  Where marginals are
    relaxed or partial, up to 630 points a side, ``verdict`` is "the plan is stationary" or "a step from the plan is lower", by
    ``step_gain`` (scaled cost units: what a step on the costs of all pairs gains): the latter comes with the reason
    "not_confirmed" and a warning.  ``device_launches``, ``device_waits``, ``device_bytes_in`` and ``device_bytes_out`` count the
    kernels, the waits for them and the bytes copied there and back of an alignment on a device, and are 0 on the cpu;
    ``host_steps`` has the steps that were left to the host beside it, calls by name.

    Raises :class:`fourge.errors.BadArgument` and :class:`fourge.errors.BadData` naming the argument, row and column.
    Ctrl-C stops the run; the seed alone decides the bits, whatever the threads.
    """
    _options.check(align, options)
    sides = _Sides(x, y, options, progress)  # type: ignore[arg-type]
    (source, n), (target, m) = _side(x, "x", sides), _side(y, "y", sides)
    graphs = isinstance(source, _fourge.Graph), isinstance(target, _fourge.Graph)
    if graphs[0] != graphs[1]:
        raise errors.BadArgument("x and y: expected two graphs or two arrays, got one of each")
    if graphs[0]:
        options = {"distance": "graph", **options}
    weights = sides.vector(a, "a", n, "weights"), sides.vector(b, "b", m, "weights")
    f, g = (None, None) if potentials is None else potentials
    f, g = sides.vector(f, "potentials: f", n, "potentials"), sides.vector(g, "potentials: g", m, "potentials")
    cost, plan = (None if v is None else sides.matrix(v, name) for v, name in ((linear, "linear"), (start, "start")))
    with _there.behind(sides.context, sides.first):
        solver = _fourge.Gw(sides.context, source, target, *weights, cost, options)
        if plan is not None:
            solver.start(plan)
        if potentials is not None:
            solver.start_potentials(f, g)
        if resume is True:
            if checkpoint is None:
                raise errors.BadArgument("resume=True takes a checkpoint to go on from")
            resume = checkpoint if path.exists(checkpoint) else False
        if resume is not False:
            solver.resume(fsdecode(resume))  # type: ignore[arg-type]
        if checkpoint is not None:
            solver.keep(fsdecode(checkpoint), float(checkpoint_every))
        return Alignment(solver, sides.count(_run(solver, sides.context)))


@_options.takes(_options.Transport, "context", "sinkhorn")
def transport(cost: Any, a: Any = None, b: Any = None, *, start: tuple[Any, Any] | None = None, progress: Any = None,
              **options: Unpack[_options.Transport]) -> Transport:
    """Entropic optimal transport for an (n, m) cost by Sinkhorn's iteration.

    Options: epsilon 0.05 (cost units), tol 1e-6 (L1 error of the marginals relative to the mass), max_iter 1000,
    cost_store ("auto", "f32", "u16", "u16r", "fly", "f64"), domain, kernel_store, accel, rho_source, rho_target, reference,
    mass, round, auto_store (a smaller cost_store where memory has no room for it), device, and threads, memory_limit, time_limit.
    A cost on a device (torch's CUDA tensors, CuPy, Numba, pyopencl; float32 or float64) is read there in place, in its own stream or
    queue, and must not change while the plan is in use; a, b and start may lie there, too, contiguous and of either type.  The plan
    and the potentials are then arrays of the same library on that device.  The report's ``device_launches``, ``device_waits``,
    ``device_bytes_in`` and ``device_bytes_out`` count the kernels, the waits for them and the bytes copied there and back, those of
    weights among them, and are 0 on the cpu.
    Fixed point (u16, u16r) and bf16 kernels end in passes over the cost as it is given, which the plan is of.  a (n,), b (m,):
    weights, uniform without.  start: potentials (f, g) to begin with.  progress: as in :func:`align`.
    """
    _options.check(transport, options)
    given = cost, a, b
    there = _there.find(cost, "cost")
    if there is None:
        cost = _matrix(cost, "cost")
        c = context(options, progress)
    elif len(there.shape) == 2:
        c = _there.context(there, "cost", options, progress)
    else:
        raise errors.BadArgument(f"cost: expected a matrix, got shape {there.shape}")
    n, m = cost.shape if there is None else there.shape
    a, b = _vector_beside(c, there, a, "a", n, "weights"), _vector_beside(c, there, b, "b", m, "weights")
    f, g = (None, None) if start is None else start
    f, g = _vector_beside(c, there, f, "start: f", n, "potentials"), _vector_beside(c, there, g, "start: g", m, "potentials")
    with _there.behind(c, there):
        solver = _fourge.Sinkhorn(c, cost if there is None else there.view, a, b, options)
        if start is not None:
            solver.start(f, g)
        report = _run(solver, c)
    found = Transport(solver, report)
    found._context, found._there, found._given = c, there, given
    return found


@_options.takes(_options.Unseeded, "context")
def energy(c: Any, d: Any, plan: Any, **options: Unpack[_options.Unseeded]) -> float:
    """sum (C_ik - D_jl)^2 P_ij P_kl for distances c (n, n) and d (m, m) and an (n, m) plan; threads, memory_limit, time_limit: of the computation."""
    _options.check(energy, options)
    ctx = context(options)
    c, d, p = (np.ascontiguousarray(_matrix(v, name), np.float64) for v, name in ((c, "c"), (d, "d"), (plan, "plan")))
    return _fourge.gw_energy(ctx, c, d, p)


@_options.takes(_options.Unseeded, "context")
def lower_bound(c: Any, d: Any, a: Any = None, b: Any = None, **options: Unpack[_options.Unseeded]) -> float:
    """A bound of the energy of every plan from below, for distances c (n, n) and d (m, m) with weights a and b.

    Transport in one dimension between the eccentricities ``sqrt(sum_k C_ik^2 a_k)``: Memoli (2011), the first bound.
    threads, memory_limit, time_limit: of the computation.
    """
    _options.check(lower_bound, options)
    ctx = context(options)
    c, d = _matrix(c, "c"), _matrix(d, "d")
    return _fourge.gw_lower_bound(ctx, c, _weights(a, "a", len(c)), d, _weights(b, "b", len(d)))


def landmark_bounds(z: Any, w: Any) -> tuple[float, float]:
    """(lower, upper) bounds of the path between two nodes from their paths z and w to the same L landmarks:
    ``max |z - w| <= length <= min (z + w)``."""
    return _fourge.gw_landmark_bounds(np.ascontiguousarray(z, np.float32), np.ascontiguousarray(w, np.float32))


@_options.takes(_options.Barycenter, "context", "barycenter")
def barycenter(spaces: Sequence[Any], size: int, *, weights: Sequence[Any] | None = None, shares: Any = None, p: Any = None,
               start: Any = None, progress: Callable[..., Any] | bool | None = None,
               **options: Unpack[_options.Barycenter]) -> tuple[np.ndarray, dict[str, Any]]:
    """The distances of the space of `size` points that is nearest to all of `spaces`.

    Minimises ``sum_s share_s E(P_s)`` over distances and plans, with entropy of strength epsilon, in turn: Peyre, Cuturi
    and Solomon (2016).

    Parameters
    ----------
    spaces : list of (n_s, n_s) distances
    weights : list of (n_s,) weights or None, optional
    shares : (number of spaces,), optional
        Equal without.
    p : (size,) weights of the points, optional
    start : (size, size) distances, optional
        Without: those of the first space at points spread over it.
    progress : callable or True, optional
        As in :func:`align`.
    **options
        epsilon 5e-3 (units of the largest distance of all spaces), max_iter 100, tol 1e-5, max_outer 100,
        outer_tol 1e-6, max_inner 300, and threads, memory_limit, time_limit.

    Returns
    -------
    (size, size) distances, dict with iterations, change, energy, converged, inner_iterations, rounding_floor (the smallest
    change, where rounding keeps it from tol)
        One that did not settle is returned and warned of (:class:`fourge.errors.NotConverged`).
    """
    _options.check(barycenter, options)
    if spaces is None or size < 1:
        raise errors.BadArgument("spaces: expected a list of distances" if spaces is None else f"size is {size}, it must be >= 1")
    ctx = context(options, progress)
    arrays = [_matrix(s, f"spaces[{i}]") for i, s in enumerate(spaces)]
    given = [None] * len(arrays) if weights is None else list(weights)
    if len(given) != len(arrays):
        raise errors.BadArgument(f"weights: expected {len(arrays)}, one a space, got {len(given)}")
    given = [_weights(w, f"weights[{i}]", len(c)) for i, (w, c) in enumerate(zip(given, arrays))]
    out = np.empty((size, size))
    report = _fourge.gw_barycenter(ctx, arrays, given, _weights(shares, "shares", len(arrays)), _weights(p, "p", size),
                                   None if start is None else _matrix(start, "start"), options, out)
    warn(ctx)
    if not report["converged"]:
        floor = report["rounding_floor"]
        less = "" if floor != floor else ", which is what rounding leaves"
        warnings.warn(f"the distances still change by {report['change']:.2g} after {report['iterations']} rounds{less}",
                      errors.NotConverged, stacklevel=outside())
    return out, report


@_options.takes(_options.Context, "context")
def joint_embedding(anchor: Any, queries: Sequence[tuple[Any, Alignment]], *, out_dim: int = 2, lam: float = 1.0,
                    tol: float = 1e-8, k: int = 30, **options: Unpack[_options.Context]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Coordinates of several sets in one space, by their graphs and their alignments with one of them.

    Parameters
    ----------
    anchor : (m, e) points or :class:`Graph`
    queries : list of (points or Graph, :class:`Alignment` of these with the anchor)
        Of points the graph of the k nearest neighbours is taken.
    out_dim : int
        Columns wanted; small sets have fewer.
    lam : float
        Weight of the plans beside the graphs.
    tol : float
        Of the linear systems, relative.
    threads, seed, memory_limit, time_limit
        Of the computation.

    Returns
    -------
    (m, out_dim) array of the anchor, list of (n_q, out_dim) arrays of the queries.
    """
    _options.check(joint_embedding, options)
    c = context(options)
    graph_of = lambda x: (x if isinstance(x, Graph) else Graph.of(x) if hasattr(x, "tocsr") else Graph.knn(x, k))._graph
    center, sets = graph_of(anchor), []
    for points, found in queries:
        if not isinstance(found, Alignment):
            raise TypeError(f"queries: expected pairs of points and an Alignment, got {type(found).__name__}")
        graph = graph_of(points)
        sets.append((graph, found._solver, np.zeros((graph.report()["n"], out_dim))))
    out = np.zeros((center.report()["n"], out_dim))
    columns = _fourge.gw_embed(c, center, out, sets, {"dimensions": out_dim, "lambda": lam, "tol": tol})
    warn(c)
    return out[:, :columns], [s[2][:, :columns] for s in sets]


# ---- under TorchGW's names -----------------------------------------------------------------------------------------


def _one_side(x: Any, dist: Any, graph: Any, side: str) -> tuple[Any, str]:
    given = [(v, kind) for v, kind in ((dist, "matrix"), (graph, "graph"), (x, "points")) if v is not None]
    if not given:
        raise errors.BadArgument(f"the {side}: expected points, dist_{side} or graph_{side}")
    return given[0]


@_options.takes(_options.Sampled, "context", "gw")
def sampled_gw(X_source: Any = None, X_target: Any = None, p: Any = None, q: Any = None, *, distance_mode: str | None = None,
               dist_source: Any = None, dist_target: Any = None, graph_source: Any = None, graph_target: Any = None,
               n_landmarks: int = 50, fgw_alpha: float = 0.0, C_linear: Any = None, s_shared: int | None = None,
               M: int = 80, alpha: float = 0.9, max_iter: int = 500, tol: float = 1e-5, epsilon: float = 1e-3, k: int = 30,
               min_iter_before_converge: int | None = None, semi_relaxed: bool = False, rho: float | None = None,
               rho_a: float | None = None, rho_b: float | None = None, multiscale: bool | None = None,
               n_coarse: int | None = None, lambda_ema_beta: float | None = None, mixed_precision: bool = True,
               differentiable: bool = False, grad_mode: str = "implicit", T_init: Any = None, verbose: bool = False, verbose_every: int = 20,
               log: bool = False, **options: Unpack[_options.Sampled]) -> Any:
    """The (n, m) plan of an alignment, under TorchGW's names; torch tensors in, torch tensor out.

    X_source (n, d) and X_target (m, e) are points, p (n,) and q (m,) their weights; max_iter, tol, epsilon, k, n_coarse and
    lambda_ema_beta are those of :func:`align`.

    ===========================  ======================================================================================
    distance_mode                ``distance``: "dijkstra", "precomputed", "landmark", "euclidean"
    dist_source, dist_target     distance matrices in place of points; ``graph_source``, ``graph_target``: graphs
    n_landmarks, M, alpha        ``landmarks``, ``anchors``, ``damping``
    fgw_alpha, C_linear          ``linear_weight`` and ``linear``: 0 is Gromov-Wasserstein alone
    rho (target), rho_a, rho_b   KL penalties, with ``semi_relaxed``; rho excludes the others
    min_iter_before_converge     ``min_iter``
    multiscale                   None: where n m > 1e6
    differentiable, grad_mode    True: the tensor carries gradients, see below; "implicit", "unrolled", "frozen"
    T_init, seed                 plan to start from; of the draws (0)
    s_shared, mixed_precision    warn where given, once a process: the first has no effect in the other package either
                                 (``mass=`` moves a part); costs are float32 and sums float64 whatever the second is: plans
                                 in float64 are those of ``align(mode="vertex", dtype="f64")``
    verbose                      a bar, which moves by itself: ``verbose_every`` warns where it is not 20
    device                       "cpu", "cuda:i", "opencl:i", or None: that of FOURGE_DEVICE
    log                          True: (plan, report)
    ===========================  ======================================================================================

    Other options are those of :func:`align`, mode "sampled" without; ``preset="torchgw"`` sets its schedule and sampling as well.

    With ``differentiable=True`` a loss of the plan has gradients in dist_source, dist_target, C_linear, p, q, and in
    points with ``distance_mode="euclidean"``: of Sinkhorn's fixed point for the last linearised cost, taken at the plan
    that is returned.  Earlier steps, the scale of the distances, neighbours and anchors carry none, and rounding is left
    out.  Relaxed and partial plans need ``grad_mode="unrolled"`` (of the passes that were done) or "frozen" (potentials held
    fixed, inexact); low rank is refused.
    """
    _options.check(sampled_gw, options)
    _not_done("s_shared", s_shared, (None,), "mass=... moves a part of the mass")
    _not_done("mixed_precision", mixed_precision, (True,), "costs are float32 and sums float64; align(mode=\"vertex\", dtype=\"f64\") has float64")
    _not_done("verbose_every", verbose_every, (20,), "verbose=True shows a bar, which moves by itself")
    if options.get("device") is not None:
        options["device"] = str(options["device"])  # a torch.device, too
    for name, v in (("X_source", X_source), ("X_target", X_target), ("dist_source", dist_source), ("dist_target", dist_target), ("p", p),
                    ("q", q), ("C_linear", C_linear), ("T_init", T_init)):
        if v is not None and (there := _there.find(v, name)) is not None:
            raise TypeError(f"{name} lies on {there.device}, and the tensor that is returned would lie in host memory: give a copy there, as "
                            ".cpu() and .get() make it, or take fourge.gw.align, which reads it in place")
    source, kind = _one_side(X_source, dist_source, graph_source, "source")
    target, other = _one_side(X_target, dist_target, graph_target, "target")
    if kind != other:
        raise errors.BadArgument(f"the source is given by {kind}, the target by {other}: expected the same for both")
    if rho is not None and (rho_a is not None or rho_b is not None):
        raise errors.BadArgument("rho is the target's penalty: give it or rho_a and rho_b")
    if (rho is not None or rho_a is not None or rho_b is not None) and not semi_relaxed:
        raise errors.BadArgument("rho, rho_a and rho_b take semi_relaxed=True")
    named: dict[str, Any] = {"landmarks": n_landmarks, "linear_weight": fgw_alpha, "anchors": M, "damping": alpha, "max_iter": max_iter,
             "tol": tol, "epsilon": epsilon, "k": k, "mode": "sampled"}
    if kind == "points":
        named |= {} if distance_mode is None else {"distance": distance_mode}
    else:
        named["distance"] = kind
    if semi_relaxed:
        penalties = (None, 1.0 if rho is None else rho) if rho_a is None and rho_b is None else (rho_a, rho_b)
        named |= {key: v for key, v in zip(("rho_source", "rho_target"), penalties) if v is not None}
    optional: dict[str, Any] = {"min_iter": min_iter_before_converge, "n_coarse": n_coarse, "lambda_ema_beta": lambda_ema_beta,
                "multiscale": {None: None, True: "on", False: "off"}.get(multiscale, multiscale)}
    named |= {key: v for key, v in optional.items() if v is not None}
    balanced = not semi_relaxed and not options.get("mass") and not any(key in options for key in ("rho_source", "rho_target"))
    weights = {"a": _share(p, "p"), "b": _share(q, "q")} if balanced else {"a": p, "b": q}
    found = align(source, target, **weights, linear=C_linear, start=T_init, progress=verbose or options.pop("progress", None),
                  **{**named, **options})
    if differentiable:
        from .torch import _gw_plan

        plan = _gw_plan(found, kind, source, target, C_linear, p, q, grad_mode, {**named, **options})
    else:
        plan = _like(found.plan(), X_source, X_target, dist_source, dist_target)
    return (plan, found.report) if log else plan


#: Keywords of sampled_gw that a plan of low rank has no use for.
_NOT_OF_LOW_RANK = (
    "semi_relaxed", "rho", "rho_a", "rho_b", "differentiable", "grad_mode", "mode", "mass", "reference", "max_inner", "marginal_tol", "sampling",
    "polish", "polish_tol", "polish_passes", "cost_store", "auto_store", "store_plan", "diag_exact", "start_from", "multiscale", "n_coarse",
    "fine_steps", "lambda_ema_beta")


@_options.takes(sampled_gw, without=_NOT_OF_LOW_RANK)
def sampled_lowrank_gw(X_source: Any = None, X_target: Any = None, p: Any = None, q: Any = None, *, rank: int = 20,
                       lr_max_iter: int = 5, lr_dykstra_max_iter: int = 50, **options: Any) -> Any:
    """:func:`sampled_gw` with plans of bounded rank, in memory O((n + m)(rank + M)) but for the plan that is returned;
    ``align(..., rank=20).factors`` returns the factors alone.  X_source, X_target, p, q and other keywords are those of :func:`sampled_gw`;
    lr_max_iter and lr_dykstra_max_iter bound the steps on the factors and the passes of their projection; ``semi_relaxed`` is
    refused."""
    for name, why in (("semi_relaxed", "have both marginals"), ("differentiable", "carry no gradients")):
        if options.get(name):
            raise errors.Unsupported(f"{name}=True: plans of low rank {why}")
    _options.check(sampled_lowrank_gw, options)
    return sampled_gw(X_source, X_target, p, q, rank=rank, lr_max_iter=lr_max_iter, lr_dykstra_max_iter=lr_dykstra_max_iter,
                      **options)


def _not_done(key: str, value: Any, usual: Sequence[Any], instead: str) -> None:
    """A warning, once a process, of a value of another package's keyword that asks for something that is not done."""
    if value not in usual:
        warn_once(f"gw: {key}", f"{key}={value!r} has no effect: {instead}")


# ---- under POT's names ---------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from .pot import entropic_gromov_barycenters as entropic_gromov_barycenters
    from .pot import entropic_gromov_wasserstein as entropic_gromov_wasserstein
    from .pot import entropic_gromov_wasserstein2 as entropic_gromov_wasserstein2
    from .pot import gromov_wasserstein as gromov_wasserstein
    from .pot import sinkhorn as sinkhorn

_OF_POT = frozenset(("entropic_gromov_barycenters", "entropic_gromov_wasserstein", "entropic_gromov_wasserstein2",
                     "gromov_wasserstein", "sinkhorn"))


def __getattr__(name: str) -> Any:
    """The names that :mod:`fourge.pot` has now, which imports this module."""
    if name in _OF_POT:
        from . import pot

        return getattr(pot, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_OF_POT])


hint(globals())
