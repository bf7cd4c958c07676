"""Conditional gradient on a quadratic problem J: the iteration of those functions of :mod:`fourge.pot` that have no entropy.

    V = argmin <dJ(T), V>,    T <- T + t (V - T),    t in [0, 1] where J(T + t (V - T)) is least          (Frank and Wolfe 1956)

Where J is concave t is 1, and T goes from vertex to vertex.  Elsewhere the least plan may lie inside a face.  Steps come near it in
ever smaller zigzags between the same few vertices, and the gap <dJ(T), T - V> falls like 1 / steps.  So the vertices on the way are
kept, T = sum_a w_a V_a.  Once V is one of them and a step gains less than LITTLE of J, mass goes from the vertex that is worst to
first order to the best one, until that gains nothing (pairwise steps: Lacoste-Julien and Jaggi 2015).  It takes no linear problem:

    J(w) = l' w + w' A w / 2,    l_a = (1 - alpha) <M, V_a>,    A_ab = alpha <dE(V_a), V_b>

Before, and where J is concave, steps are those of the plain iteration.
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
EXCHANGES = 2000
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
    """T = sum_a w_a V_a, and J as a quadratic in w."""

    def __init__(self, problem: _Quadratic, v: np.ndarray, gradient: np.ndarray):
        self.problem, self.shape = problem, v.shape
        self.vertices: list[tuple[np.ndarray, np.ndarray]] = []  # places in the plan, and what stands there
        self.weights, self.linear, self.products = np.zeros(0), np.zeros(0), np.zeros((0, 0))
        self.add(v, gradient)
        self.weights[0] = 1.0

    def add(self, v: np.ndarray, gradient: np.ndarray) -> int:
        """A further V_a with dE(V_a), of no weight yet, or the one that it is; its number."""
        at = np.flatnonzero(v)
        mass = v.ravel()[at]
        for a, (places, masses) in enumerate(self.vertices):
            if np.array_equal(places, at) and np.allclose(masses, mass, rtol=0, atol=1e-14):
                return a
        share, m = (1.0, None) if self.problem.linear is None else (self.problem.alpha, self.problem.linear.ravel())
        self.vertices.append((at, mass))
        column = share * np.array([gradient.ravel()[places] @ masses for places, masses in self.vertices])
        self.products = np.block([[self.products, column[:-1, None]], [column]])
        self.linear = np.append(self.linear, 0.0 if m is None else (1 - share) * (m[at] @ mass))
        self.weights = np.append(self.weights, 0.0)
        return len(self.weights) - 1

    def move(self, a: int, size: float) -> bool:
        """w <- w + size (e_a - w); whether V_a was part of the plan before."""
        known = bool(self.weights[a] > 0)
        self.weights *= 1 - size
        self.weights[a] += size
        return known

    def exchange(self) -> None:
        """w_worst to w_best, as far as J falls, while it does; vertices of no weight are left out behind it."""
        w, products = self.weights, self.products
        slopes = self.linear + products @ w
        least = 4 * UNIT * float(np.abs(slopes).max())
        for _ in range(EXCHANGES):
            worst, best = int(np.argmax(np.where(w > 0, slopes, -np.inf))), int(np.argmin(slopes))
            slope = float(slopes[best] - slopes[worst])
            if slope >= -least:
                break
            curve = float(products[worst, worst] + products[best, best] - 2 * products[worst, best])
            part = min(float(w[worst]), -slope / curve) if curve > 0 else float(w[worst])
            w[worst] = 0.0 if part == w[worst] else w[worst] - part
            w[best] += part
            slopes += part * (products[best] - products[worst])
        kept = w > 0
        self.weights, self.linear, self.products = w[kept], self.linear[kept], products[np.ix_(kept, kept)]
        self.vertices = [v for v, has in zip(self.vertices, kept) if has]

    def plan(self) -> np.ndarray:
        t = np.zeros(self.shape)
        for (places, masses), w in zip(self.vertices, self.weights):
            t.ravel()[places] += w * masses
        return t


def descend(problem: _Quadratic, start: np.ndarray, vertex: Callable[[np.ndarray], tuple[np.ndarray, dict[str, Any]]], max_iter: Any,
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
    for step in range(1, max(int(max_iter), 1) + 1):
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
        elif mixture and mixture.move(mixture.add(v, gradient + gradient_of_s), size) and gain < LITTLE * abs(losses[-1]):
            mixture.exchange()
            t = mixture.plan()
            k, gradient = problem.gradients(t)
            gain = losses[-1] - float(problem.with_linear(np.sum(k * t), t))
        else:
            t = t + size * s
            gradient = gradient + size * gradient_of_s
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
