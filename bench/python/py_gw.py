"""Entropic Gromov-Wasserstein of two metrics in memory: py_gw.py [N...]; ours (`fourge.gw`) beside POT and OTT.

The Euclidean distances of the two noisy curves of gw_peers.py, n and 1.25 n points, over the mean of each; uniform weights,
float64, exact costs, epsilon 0.01 of POT's, which is twice OTT's and that of `fourge.gw.align`.  Every side steps
until its own tolerance of 1e-7; each line has the energy of the plan that came out and its largest error of a
marginal over the mean weight, computed here in the same way for all.  POT and OTT are left out where they are not installed.
"""
import importlib.util
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
from common import report, timed  # noqa: E402
from gw_peers import spiral, swiss_roll  # noqa: E402

import numpy as np  # noqa: E402

import fourge.gw as ours  # noqa: E402

EPSILON, STEPS, TOL = 0.01, 500, 1e-7


def metric(points):
    points = points.astype(float)
    out = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    return out / out.mean()


def energy(c, d, plan):
    """sum_ijkl (C_ik - D_jl)^2 P_ij P_kl, by the marginals that the plan has."""
    p, q = plan.sum(1), plan.sum(0)
    return p @ c**2 @ p + q @ d**2 @ q - 2 * np.sum((c @ plan @ d) * plan)


def pot(c, d):
    import ot

    return ot.gromov.entropic_gromov_wasserstein(c, d, epsilon=EPSILON, max_iter=STEPS, tol=TOL, symmetric=True)


def fourge(c, d):
    return ours.entropic_gromov_wasserstein(c, d, epsilon=EPSILON, max_iter=STEPS, tol=TOL, symmetric=True)


def ott_solver():
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    from ott.geometry.geometry import Geometry
    from ott.problems.quadratic.quadratic_problem import QuadraticProblem
    from ott.solvers.linear.sinkhorn import Sinkhorn
    from ott.solvers.quadratic.gromov_wasserstein import GromovWasserstein

    solver = GromovWasserstein(Sinkhorn(threshold=1e-6, max_iterations=2000), epsilon=EPSILON / 2, max_iterations=STEPS,
                               threshold=TOL)
    align = jax.jit(lambda a, b: solver(QuadraticProblem(Geometry(a), Geometry(b))).matrix)
    return lambda c, d: align(jnp.asarray(c), jnp.asarray(d)).block_until_ready()


for n in [int(a) for a in sys.argv[1:]] or [400, 1000, 2000]:
    m = n + n // 4
    c, d = metric(spiral(n)[0]), metric(swiss_roll(m)[0])
    sides = {"fourge": fourge}
    if importlib.util.find_spec("ot"):
        sides["POT"] = pot
    if importlib.util.find_spec("ott"):
        sides["OTT"] = ott_solver()
    for peer, run in sides.items():
        figures, plan = timed(lambda: run(c, d), 3 if n <= 400 else 1)
        plan = np.asarray(plan, float)
        error = max(abs(plan.sum(1) * n - 1).max(), abs(plan.sum(0) * m - 1).max())
        report(bench="py_gw", n=n, m=m, epsilon=EPSILON, peer=peer, **figures, energy=round(energy(c, d, plan), 8),
               marginal_error=float(f"{error:.1e}"))
