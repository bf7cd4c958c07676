"""Peers on sampled Gromov-Wasserstein: python gw_peers.py small|large FOLDER [PART...]; FOLDER keeps the inputs
as .npy, a part is align, paths, sinkhorn or cache.  Times are of whole calls, best of three after one that warms up; a first
call of more than LIMIT seconds (600) stays the only one.

Two noisy curves, a spiral in the plane and a roll in space, whose points come in order of their angle; and clouds
of normal numbers. torchgw is installed and timed as it is (its licence is non-commercial: nothing of it is read
or copied); a peer that is not installed is left out. POT gives entropic Sinkhorn, SciPy all-pairs shortest paths.
"""
import common
import pathlib
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")


def curve(n, seed):
    rng = np.random.default_rng(seed)
    radius, angle = np.linspace(0.3, 1.0, n), np.linspace(0, 9, n)
    e = rng.normal(size=(2, n)) * 0.05
    return (radius + e[0]) * np.cos(angle), (radius + e[1]) * np.sin(angle), angle, rng


def spiral(n, seed=0):
    x, y, angle, _ = curve(n, seed)
    return np.c_[x, y].astype(np.float32), angle


def swiss_roll(m, seed=1):
    x, y, angle, rng = curve(m, seed)
    z = rng.uniform(size=m)
    return np.c_[x, z, y].astype(np.float32), angle


def align(n, m, mode, **options):
    import torch
    from scipy.stats import spearmanr
    from torchgw import sampled_gw

    torch.set_num_threads(common.THREADS)
    (x, s), (y, t) = spiral(n), swiss_roll(m)
    figures, plan = common.timed(
        lambda: sampled_gw(x, y, distance_mode=mode, k=5, M=80, epsilon=0.005, **options))
    rho = abs(spearmanr(s, t[np.asarray(plan).argmax(1)])[0])
    common.report(bench="gw_align", n=n, m=m, mode=mode, peer="torchgw", **figures, rho=round(rho, 4))


def cost(n, m):
    return np.random.default_rng(0).random((n, m), dtype=np.float32)


def sinkhorn(n, m, iterations=10):
    """Potentials from a cost in memory by forced iterations; ten, ten times their time for a hundred."""
    import ot
    import torch

    torch.set_num_threads(common.THREADS)
    c = torch.tensor(cost(n, m))
    p, q = torch.full((n,), 1 / n), torch.full((m,), 1 / m)
    figures, _ = common.timed(
        lambda: ot.bregman.sinkhorn_log(p, q, c, 0.05, numItermax=iterations, stopThr=0, warn=False))
    figures["seconds"] *= 100 / iterations
    common.report(bench="gw_sinkhorn_100_iterations", n=n, m=m, peer="pot_log_torch_f32", **figures)


def shortest_paths(m, k):
    from scipy.sparse.csgraph import dijkstra
    from sklearn.neighbors import kneighbors_graph

    graph = kneighbors_graph(swiss_roll(m)[0], k, mode="distance")
    graph = graph.maximum(graph.T)
    figures, _ = common.timed(lambda: dijkstra(graph))
    common.report(bench="gw_apsp", n=m, k=k, peer="scipy", **figures)


def attempt(run, *args, **options):
    try:
        run(*args, **options)
    except ImportError as missing:
        common.report(bench="gw", peer=str(missing.name), note="not installed")


def save_inputs(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for n in (400, 500, 1000, 2000, 4000, 20000):
        np.save(folder / f"spiral{n}.npy", spiral(n)[0])
    for m in (500, 600, 1200, 2500, 5000, 25000):
        np.save(folder / f"roll{m}.npy", swiss_roll(m)[0])
    np.save(folder / "cost5001x6001.npy", cost(5001, 6001))
    for n, d, seed in ((2000, 3, 0), (2500, 5, 1), (5000, 3, 0), (6000, 5, 1)):
        np.save(folder / f"normal{n}.npy", np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        save_inputs(pathlib.Path(sys.argv[2]))
    parts = sys.argv[3:] or ["align", "paths", "sinkhorn", "cache"]
    for mode in ("dijkstra", "precomputed", "landmark") if "align" in parts else ():
        attempt(align, 400, 500, mode, alpha=0.8, max_iter=200, **({"n_landmarks": 20} if mode == "landmark" else {}))
    if "paths" in parts:
        attempt(shortest_paths, 5000, 15)
        attempt(shortest_paths, 5000, 30)
    if "sinkhorn" in parts:
        attempt(sinkhorn, 5001, 6001)
    if "cache" in parts:
        attempt(align, 500, 600, "dijkstra", max_iter=50)
        attempt(align, 1000, 1200, "dijkstra", max_iter=100)
    if "large" in sys.argv[1:2]:
        attempt(align, 2000, 2500, "dijkstra", max_iter=100)
        attempt(align, 4000, 5000, "landmark", max_iter=300, mixed_precision=True)
