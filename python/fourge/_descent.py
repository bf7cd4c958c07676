"""Conditional gradient on a quadratic problem J: the iteration of those functions of :mod:`fourge.pot` that have no entropy.

    V = argmin <dJ(T), V>,    T <- T + t (V - T),    t in [0, 1] where J(T + t (V - T)) is least          (Frank and Wolfe 1956)

Where J is concave t is 1, and T goes from vertex to vertex.  Elsewhere the least plan may lie inside a face.  Steps come near it in
ever smaller zigzags between the same few vertices, and the gap <dJ(T), T - V> falls like 1 / steps.  So the vertices on the way are
kept, T = sum_a w_a V_a.  Once V is one of them and a step gains less than LITTLE of J, mass goes from the vertex that is worst to
first order to the best one, until that gains nothing (pairwise steps: Lacoste-Julien and Jaggi 2015).  It takes no linear problem:

    J(w) = l' w + w' A w / 2,    l_a = (1 - alpha) <M, V_a>,    A_ab = alpha <dE(V_a), V_b>

Before, and where J is concave, steps are those of the plain iteration.  At most n + m vertices are kept, whose exchanges cost a step
some (n + m)^2: a face may have (n - 1)(m - 1) dimensions, and where one is so large that vertices never come back, as of definite C1 and
-C2, what has gathered is exchanged and becomes the first vertex of the next n + m.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import errors
from ._arrays import outside

if TYPE_CHECKING:
    from .pot import _Quadratic

LITTLE = 1e-4  # of J: an earlier exchange may lead to another, higher optimum
SMALL = 1e-9  # of J: the end is near, and exchanges go on to it
EXCHANGES = 2  # a vertex and step, before
LAST = 2000
UNIT = 2.0**-52


def say(verbose: bool, step: int, loss: float) -> None:
    if verbose:
        print(f"{step:5d}|{loss:12.6e}")


def length(slope: float, curve: float, armijo: bool, bounds: tuple[float | None, float | None]) -> float:
    """The t in [0, 1] where slope t + curve t^2 is least.  armijo: .99 where that gains 1e-4 of what the slope promises, else the
    least of the parabola through it, which is the function itself."""
    t = min(1.0, max(0.0, -slope / (2 * curve))) if curve > 0 else float(slope + curve < 0)
    if armijo and slope + 0.99 * curve <= 1e-4 * slope:
        t = 0.99
    low, high = bounds
    t = t if low is None else max(t, low)
    return t if high is None else min(t, high)


class _Mixture:
    """T = sum_a w_a V_a of at most n + m vertices, and J as a quadratic in w.  V_0, the plan that it began with, may be any."""

    def __init__(self, problem: _Quadratic, v: np.ndarray, gradient: np.ndarray):
        self.problem, self.first = problem, v
        self.count, most, width = 0, sum(v.shape), sum(v.shape) + 1  # a vertex has less than n + m entries, or one more of partial mass
        self.numbers: dict[bytes, int] = {}  # by the places of a vertex
        self.places, self.masses = np.zeros((most, width), np.intp), np.zeros((most, width))  # in the plan; V_0 is in `first`
        self.weights, self.linear, self.products = np.zeros(most), np.zeros(most), np.zeros((most, most))
        self.add(v, gradient)
        self.weights[0] = 1.0

    @property
    def full(self) -> bool:
        return self.count == len(self.weights)

    def find(self, v: np.ndarray) -> int | None:
        """The number of V, where it is one of V_a."""
        at = np.flatnonzero(v)
        a = self.numbers.get(at.tobytes())
        if a is None:
            return None
        mass = self.first.ravel()[at] if a == 0 else self.masses[a, : len(at)]
        return a if np.allclose(mass, v.ravel()[at], rtol=0, atol=1e-14) else None

    def add(self, v: np.ndarray, gradient: np.ndarray) -> int:
        """A further V_a with dE(V_a), of no weight yet; its number."""
        a, at = self.count, np.flatnonzero(v)
        self.count += 1
        self.numbers[at.tobytes()] = a
        if a > 0:
            self.places[a, : len(at)], self.masses[a, : len(at)] = at, v.ravel()[at]
        share, m = (1.0, None) if self.problem.linear is None else (self.problem.alpha, self.problem.linear)
        column = share * (gradient.ravel()[self.places[: a + 1]] * self.masses[: a + 1]).sum(1)
        column[0] = share * np.sum(gradient * self.first)
        self.products[a, : a + 1] = self.products[: a + 1, a] = column
        self.linear[a] = 0.0 if m is None else (1 - share) * np.sum(m * v)
        return a

    def move(self, v: np.ndarray, gradient: np.ndarray, size: float) -> bool:
        """T <- T + size (V - T); whether an exchange is due: V was part of T before, or there is room for no further one."""
        a = self.find(v)
        known = a is not None and self.weights[a] > 0
        a = self.add(v, gradient) if a is None else a
        self.weights *= 1 - size
        self.weights[a] += size
        return known or self.full

    def exchange(self, most: int) -> None:
        """w_worst to w_best, as far as J falls, while it does and `most` times; vertices of no weight but V_0 are left out behind it."""
        w, products = self.weights[: self.count], self.products[: self.count, : self.count]
        slopes = self.linear[: self.count] + products @ w
        least = 4 * UNIT * float(np.abs(slopes).max())
        for _ in range(most):
            worst, best = int(np.argmax(np.where(w > 0, slopes, -np.inf))), int(np.argmin(slopes))
            slope = float(slopes[best] - slopes[worst])
            if slope >= -least:
                break
            curve = float(products[worst, worst] + products[best, best] - 2 * products[worst, best])
            part = min(float(w[worst]), -slope / curve) if curve > 0 else float(w[worst])
            w[worst] = 0.0 if part == w[worst] else w[worst] - part
            w[best] += part
            slopes += part * (products[best] - products[worst])
        self.keep(np.union1d(0, np.flatnonzero(w)))

    def keep(self, kept: np.ndarray) -> None:
        k, new = len(kept), {int(a): i for i, a in enumerate(kept)}
        self.numbers = {key: new[a] for key, a in self.numbers.items() if a in new}
        for x in (self.places, self.masses, self.weights, self.linear):
            x[:k], x[k:] = x[kept], 0
        self.products[:k, :k] = self.products[np.ix_(kept, kept)]
        self.count = k

    def plan(self) -> np.ndarray:
        w = self.weights[: self.count]
        t = np.bincount(self.places[: self.count].ravel(), (w[:, None] * self.masses[: self.count]).ravel(), self.first.size)
        return t.reshape(self.first.shape) + w[0] * self.first


def descend(problem: _Quadratic, start: np.ndarray, vertex: Callable[[np.ndarray], tuple[np.ndarray, dict[str, Any]]], max_iter: int,
            tol_rel: float, tol_abs: float, armijo: bool = False, bounds: tuple[float | None, float | None] = (None, None),
            verbose: bool = False, warn: bool = True) -> tuple[np.ndarray, dict[str, Any]]:
    """From the plan `start`; V = vertex(dJ(T)).  Weights are exchanged where the line search is exact and free.

    Behind it "loss" of every step, "gap" of the last, and as its "reason" what came first: "tolerance", a step gained less than
    tol_rel of J or less than tol_abs; "stationary", the gap is rounding; "rounding", the gain is; "max_iter".
    """
    t = start
    k, gradient = problem.gradients(t)
    losses = [float(problem.with_linear(np.sum(k * t), t))]
    say(verbose, 0, losses[0])
    found: dict[str, Any] = {}
    free, reason, gap = bounds == (None, None), "max_iter", float("inf")
    mixture = _Mixture(problem, t, gradient) if free and not armijo else None
    if max_iter == 0:  # the linear problem at the start, and no step
        full = problem.with_linear(gradient, 1)
        v, found = vertex(full)
        gap = float(np.sum(full * (t - v)))
        reason = "stationary" if gap <= 4 * UNIT * float(np.abs(full).max() * t.sum()) else reason
    for step in range(1, max_iter + 1):
        full = problem.with_linear(gradient, 1)
        v, found = vertex(full)
        s = v - t
        of_s, gradient_of_s = problem.gradients(s)
        slope, curve = float(np.sum(full * s)), (1.0 if problem.linear is None else problem.alpha) * float(np.sum(of_s * s))
        size = length(slope, curve, armijo, bounds)
        gain, gap = -size * (slope + size * curve), -slope
        if size == 1:
            t = v  # a vertex has its zeros
            gradient = gradient + gradient_of_s
            mixture = mixture and _Mixture(problem, v, gradient)
        elif mixture and mixture.move(v, gradient + gradient_of_s, size) and gain < LITTLE * abs(losses[-1]):
            mixture.exchange(LAST if gain < SMALL * abs(losses[-1]) else EXCHANGES * mixture.count)
            t = mixture.plan()
            k, gradient = problem.gradients(t)
            gain = losses[-1] - float(problem.with_linear(np.sum(k * t), t))
        else:
            t = t + size * s
            gradient = gradient + size * gradient_of_s
        if mixture and mixture.full:
            mixture = _Mixture(problem, t, gradient)
        losses.append(losses[-1] - gain)
        say(verbose, step, losses[-1])
        rounding = UNIT * float(np.abs(full).max() * t.sum())
        if gap <= 4 * rounding and abs(gain) <= rounding:
            reason = "stationary"
        elif abs(gain) < tol_abs or abs(gain) < tol_rel * abs(losses[-1]):
            reason = "tolerance"
        elif gain == 0 or (free and gain <= 0):
            reason = "rounding"
        if reason != "max_iter":
            break
    losses[-1] = problem.value(t)
    if warn and reason == "max_iter":
        warnings.warn(f"{max_iter:g} steps were taken, whose gap to a stationary plan is still {gap:.2g}: more steps or another start G0 "
                      "may end at one", errors.NotConverged, stacklevel=outside())
    return t, {"loss": losses, "gap": gap, "reason": reason, **found}
