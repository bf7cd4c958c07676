"""The ways to align that gw_truth.py runs: ours, those of peers, and plain descents that search for the best known energy.

A way takes a Problem and gives a plan, dense or sparse.  Peers get the distance matrices where they take them; POT's low-rank
way takes points and minimises another energy (of squared distances), its quantised way points where there are some.
"""
from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix, issparse

from truth_problems import Problem

# ---- energies ------------------------------------------------------------------------------------------------------


def rounded(plan, a, b):
    """The plan with the marginals a and b: Altschuler, Weed and Rigollet (2017), algorithm 2.  For sparse ones what is left to
    give is given to the entries that are there, row by row."""
    rows, columns = (np.asarray(plan.sum(k)).ravel() for k in (1, 0))
    if np.abs(rows - a).sum() + np.abs(columns - b).sum() < 1e-9:
        return plan
    if issparse(plan):
        return plan.multiply((a / np.maximum(rows, 1e-300))[:, None]).tocsr()
    plan = np.clip(plan, 0, None)
    plan = plan * np.minimum(1, a / np.maximum(plan.sum(1), 1e-300))[:, None]
    plan = plan * np.minimum(1, b / np.maximum(plan.sum(0), 1e-300))
    u, v = np.clip(a - plan.sum(1), 0, None), np.clip(b - plan.sum(0), 0, None)
    return plan + np.outer(u, v) / max(u.sum(), 1e-300) if u.sum() > 0 else plan


def energy(problem: Problem, plan) -> float:
    """sum (C_ik - D_jl)^2 P_ij P_kl of a plan of the problem's marginals."""
    if problem.c is None:
        return energy_of_points(problem, plan)
    c, d, a, b = problem.c, problem.d, problem.a, problem.b
    if issparse(plan):
        plan = plan.toarray()
    return float(a @ c**2 @ a + b @ d**2 @ b - 2 * np.sum((c @ plan @ d) * plan))


def energy_of_points(problem: Problem, plan, block=500) -> float:
    """The same without the matrices, for sparse plans, by their own marginals: blocks of rows of (C P - P D)."""
    from scipy.spatial.distance import cdist

    plan = csr_matrix(plan)
    x, y = problem.x, problem.y
    a, b = (np.asarray(plan.sum(k)).ravel() for k in (1, 0))
    total = 0.0
    for first in range(0, len(x), block):
        rows = slice(first, first + block)
        c = cdist(x[rows], x)
        total += a[rows] @ c**2 @ a
        moved = np.asarray(plan.T @ c.T).T  # (C P)[rows]
        part = plan[rows].tocoo()
        for lo in range(0, len(part.data), 2000):
            i, j, p = part.row[lo:lo + 2000], part.col[lo:lo + 2000], part.data[lo:lo + 2000]
            total -= 2 * p @ np.einsum("ij,ij->i", moved[i], cdist(y[j], y))
    for first in range(0, len(y), block):
        columns = slice(first, first + block)
        total += b[columns] @ cdist(y[columns], y) ** 2 @ b
    return float(total)


# ---- the search for the best known ---------------------------------------------------------------------------------


def linear(problem: Problem, cost):
    """A vertex that minimises <cost, P>."""
    if problem.square:
        rows, columns = linear_sum_assignment(cost)
        plan = np.zeros_like(cost)
        plan[rows, columns] = problem.a[0]
        return plan
    import ot

    return ot.emd(problem.a, problem.b, cost, numItermax=2_000_000)


def descend(problem: Problem, plan, steps=500):
    """Frank-Wolfe with the exact line search, to a plan that no linear step mends."""
    c, d = problem.c, problem.d
    turned = c @ plan @ d
    for _ in range(steps):
        vertex = linear(problem, -turned)
        other = c @ vertex @ d
        slope = -4 * np.sum(turned * (vertex - plan))
        curve = -2 * np.sum((other - turned) * (vertex - plan))
        if slope > -1e-13:
            break
        t = 1.0 if curve <= 0 else min(1.0, -slope / (2 * curve))
        if curve <= 0 and slope + curve >= 0:
            break
        plan, turned = plan + t * (vertex - plan), turned + t * (other - turned)
        if -(slope * t + curve * t * t) < 1e-12:
            break
    return plan


def profile_start(problem: Problem, count=64):
    """The second lower bound: an assignment between the distributions of each point's distances.  Memoli (2011)."""
    grid = (np.arange(count) + 0.5) / count
    sides = []
    for matrix, weights in ((problem.c, problem.a), (problem.d, problem.b)):
        order = np.argsort(matrix, 1)
        sorted_ = np.take_along_axis(matrix, order, 1)
        mass = np.cumsum(weights[order], 1)
        index = np.minimum((mass[:, None, :] < grid[None, :, None] - 1e-12).sum(2), matrix.shape[1] - 1) if len(matrix) <= 300 else \
            np.stack([np.searchsorted(row, grid - 1e-12) for row in mass]).clip(0, matrix.shape[1] - 1)
        sides.append(np.take_along_axis(sorted_, index, 1))
    p, q = sides
    return linear(problem, (p**2).sum(1)[:, None] + (q**2).sum(1) - 2 * p @ q.T)


def annealed(problem: Problem, levels=20, passes=20):
    """Entropic steps on the exact gradient from the product plan, epsilon from the spread of the costs to a hundredth of it."""
    c, d, a, b = problem.c, problem.d, problem.a, problem.b
    plan = np.outer(a, b)
    g = np.zeros(len(b))
    first = None
    for level in range(levels):
        cost = -2 * c @ plan @ d
        first = first or cost.std()
        epsilon = max(first, 1e-12) * 0.01 ** (level / (levels - 1))
        for _ in range(passes):
            z = (g - cost) / epsilon
            f = -epsilon * (np.log(np.exp(z - z.max(1, keepdims=True)).sum(1)) + z.max(1)) + epsilon * np.log(a)
            z = (f[:, None] - cost) / epsilon
            g = -epsilon * (np.log(np.exp(z - z.max(0)).sum(0)) + z.max(0)) + epsilon * np.log(b)
        plan = np.exp((f[:, None] + g - cost) / epsilon)
    return rounded(plan, a, b)


def random_start(problem: Problem, seed: int):
    """By turns a random vertex and a random coupling of full support."""
    rng = np.random.default_rng([seed, 77])
    cost = rng.standard_normal(problem.shape)
    if seed % 2:
        return linear(problem, cost)
    plan = np.exp(2 * cost)
    for _ in range(100):
        plan *= (problem.a / plan.sum(1))[:, None]
        plan *= problem.b / plan.sum(0)
    return rounded(plan, problem.a, problem.b)


def true_plan(problem: Problem):
    """The plan of the known answer where each row has one image and each image a row, else None."""
    if problem.square and problem.origins and (problem.origins[0] >= 0).all():
        plan = np.zeros(problem.shape)
        plan[problem.origins[0], np.arange(problem.shape[1])] = problem.a[0]
        return plan
    if problem.origins and problem.shape[0] == problem.shape[1] and (problem.origins[0] >= 0).all():  # weights that go along
        plan = np.zeros(problem.shape)
        plan[problem.origins[0], np.arange(problem.shape[1])] = problem.b
        return plan
    return None


def starts(problem: Problem, count: int):
    """(word, plan) of `count` starts: the product, the profiles, the annealed plan, then random ones."""
    yield "product", np.outer(problem.a, problem.b)
    if count > 1:
        yield "profiles", profile_start(problem)
    if count > 2:
        yield "annealed", annealed(problem)
    for seed in range(3, count):
        yield f"random {seed}", random_start(problem, seed)


# ---- ours ----------------------------------------------------------------------------------------------------------


def align(problem: Problem, **options):
    import fourge.gw

    if problem.c is None or options.get("mode") == "landmark":
        scale = {} if options.get("mode") in ("auto", "vertex") else {"scale": "none"}  # these two have none
        found = fourge.gw.align(problem.x, problem.y, a=problem.a, b=problem.b, distance="euclidean", **scale, **options)
    else:
        found = fourge.gw.align(problem.c, problem.d, a=problem.a, b=problem.b, distance="matrix", **options)
    n, m = problem.shape
    if n <= 6000:
        return found.plan(), found.report
    first, columns, masses = found.sparse(1e-3 / (n * m) ** 0.5)
    return csr_matrix((masses, columns, first), (n, m)), found.report


def mode(name):
    return lambda problem: align(problem, mode=name)


def ours_gromov(problem: Problem):
    import fourge.gw

    return fourge.gw.gromov_wasserstein(problem.c, problem.d, problem.a, problem.b)


# ---- peers ---------------------------------------------------------------------------------------------------------


def pot(problem: Problem):
    import ot

    return ot.gromov.gromov_wasserstein(problem.c, problem.d, problem.a, problem.b)


def pot_best_of_ten(problem: Problem):
    """The product plan and nine random starts; the least energy."""
    import ot

    best = None
    for seed in range(10):
        start = None if seed == 0 else random_start(problem, 100 + seed)
        plan, log = ot.gromov.gromov_wasserstein(problem.c, problem.d, problem.a, problem.b, G0=start, log=True)
        if best is None or log["gw_dist"] < best[0]:
            best = log["gw_dist"], plan
    return best[1]


def pot_entropic(solver, epsilon, steps):
    def run(problem: Problem):
        import ot

        return ot.gromov.entropic_gromov_wasserstein(problem.c, problem.d, problem.a, problem.b, epsilon=epsilon, solver=solver,
                                                     max_iter=steps)

    return run


def square(x, y):
    return (x - y) ** 2


def pot_sampled(problem: Problem):
    import ot

    return ot.gromov.sampled_gromov_wasserstein(problem.c, problem.d, problem.a, problem.b, square, nb_samples_grad=100,
                                                epsilon=0.1, random_state=0)


def pot_pointwise(problem: Problem):
    import ot

    plan = ot.gromov.pointwise_gromov_wasserstein(problem.c, problem.d, problem.a, problem.b, square, random_state=0)
    return plan.toarray() if issparse(plan) else plan


def pot_bapg(problem: Problem):
    import ot

    return ot.gromov.BAPG_gromov_wasserstein(problem.c, problem.d, problem.a, problem.b, epsilon=0.5)


def pot_quantised(problem: Problem):
    """A tenth of the points as representatives."""
    import ot

    n, m = problem.shape
    parts = max(n // 10, 4), max(m // 10, 4)
    if problem.x is not None:
        plan = ot.gromov.quantized_fused_gromov_wasserstein_samples(problem.x, problem.y, *parts, problem.a, problem.b)[2]
    else:
        plan = ot.gromov.quantized_fused_gromov_wasserstein(problem.c, problem.d, *parts, problem.a, problem.b, part_method="random",
                                                            random_state=0)[2]
    return plan


def pot_low_rank(problem: Problem):
    import ot

    q, r, g = ot.gromov.lowrank_gromov_wasserstein_samples(problem.x, problem.y, problem.a, problem.b)
    return np.asarray(q) / np.asarray(g) @ np.asarray(r).T


def torchgw(problem: Problem):
    from torchgw import sampled_gw

    if problem.c is None:
        return np.asarray(sampled_gw(problem.x, problem.y, distance_mode="landmark"))
    return np.asarray(sampled_gw(dist_source=problem.c, dist_target=problem.d, p=problem.a, q=problem.b, distance_mode="precomputed"),
                      float)


#: Way: (run, points at most, whether it needs points).
WAYS = {
    "auto": (mode("auto"), 20000, False),
    "vertex": (mode("vertex"), 20000, False),
    "exact": (mode("exact"), 5000, False),
    "sampled": (mode("sampled"), 20000, False),
    "landmark": (mode("landmark"), 20000, True),
    "ours_gromov": (ours_gromov, 2000, False),
    "pot": (pot, 3000, False),
    "pot10": (pot_best_of_ten, 700, False),
    "pot_entropic": (pot_entropic("PGD", 5e-3, 1000), 1500, False),
    "pot_ppa": (pot_entropic("PPA", 1e-2, 50), 700, False),
    "pot_bapg": (pot_bapg, 300, False),
    "pot_sampled": (pot_sampled, 300, False),
    "pot_pointwise": (pot_pointwise, 1500, False),
    "pot_quantised": (pot_quantised, 5000, False),
    "pot_low_rank": (pot_low_rank, 20000, True),
    "torchgw": (torchgw, 20000, False),
    "profiles": (lambda p: descend(p, profile_start(p)), 3000, False),
    "annealed": (lambda p: descend(p, annealed(p)), 1500, False),
}
OURS = ("auto", "vertex", "exact", "sampled", "landmark", "ours_gromov")
DEFAULT = [name for name in WAYS if name != "torchgw"]


def quiet(run, problem: Problem):
    """(plan, what the way reports, the classes of its warnings)."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        plan = run(problem)
    plan, report = plan if isinstance(plan, tuple) else (plan, {})
    return plan, report, sorted({type(w.message).__name__ for w in said})
