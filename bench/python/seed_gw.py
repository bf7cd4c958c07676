"""The tables of the sampled Gromov-Wasserstein seed: seed_gw.py [--device cpu|cuda|opencl] [--over N] [--sides NAMES]
       [--parts rows,quality,sinkhorn,pieces,large]

    rows      its six alignments: the two noisy curves of gw_peers.py (400 x 500 by each distance, 4000 x 5000 by landmarks)
              and clouds of normal numbers (2000 x 2500, 5000 x 6000); torchgw and ours
    quality   |rho| of the 400 x 500 curve with float64 and with float32 loops
    sinkhorn  100 forced iterations of 5001 x 6001 and of 10001 x 12001 in f32, u16 (ours) and f64, in the log domain: plain
              torch (two logsumexp an iteration, from a cost on its device) and ours, from a cost in memory
    pieces    ours alone: what sampling took of an alignment; rows of a plan; all shortest paths with one and two threads
              beside SciPy's; 50 and 100 steps over the cache of distances
    large     the curves with 45000 points each by landmarks; in no run that does not name it

On OpenCL ours alone.  --sides: those of torchgw, torch and fourge that are named.  --over N: an N-th of the points, to try the script where there is no GPU.
torchgw is timed as it is installed (its licence is non-commercial: nothing of it is read or copied).  Whole calls from points
in memory to a plan, best of three after one that warms up, or once where that takes more than LIMIT seconds.  rho is
Spearman's of the true order of the curve and of the matches' (curves alone).
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
import common  # noqa: E402
from gw_peers import spiral, swiss_roll  # noqa: E402

import numpy as np  # noqa: E402

CURVES = ((400, 500, "dijkstra", {"max_iter": 200}), (400, 500, "precomputed", {"max_iter": 200}),
          (400, 500, "landmark", {"max_iter": 200, "n_landmarks": 20}), (4000, 5000, "landmark", {"max_iter": 300}))
CLOUDS = ((2000, 2500, "precomputed", {"max_iter": 100}), (5000, 6000, "precomputed", {"max_iter": 100}))


def ranks(x):
    """Places in the order of size; those of equal numbers are their mean."""
    _, group, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[group]


def rho(order, other, match):
    return {"rho": round(float(abs(np.corrcoef(ranks(order), ranks(other[np.asarray(match)]))[0, 1])), 4)}


def clouds(n, m):
    return tuple(np.random.default_rng(seed).normal(size=(k, d)).astype(np.float32) for seed, k, d in ((0, n, 3), (1, m, 5)))


OVER, SIDES = 1, set()


def torchgw(x, y, device, mode, k, options):
    from torchgw import sampled_gw

    plan = sampled_gw(x, y, distance_mode=mode, k=k, M=80, epsilon=0.005, device=device, **options)
    return lambda: np.asarray(plan.cpu() if hasattr(plan, "cpu") else plan).argmax(1)


def fourge(x, y, device, mode, k, options):
    from fourge import gw

    more = {"landmarks": options["n_landmarks"]} if "n_landmarks" in options else {}
    if device != "cpu":
        more |= {"device": device, "mode": "sampled"}
    found = gw.align(x, y, distance=mode, k=k, anchors=80, epsilon=0.005, max_iter=options["max_iter"], anneal="none", **more)
    return found.argmax


def attempt(bench, what, run, wait, repeats=3, judge=lambda out: {}):
    """One line: figures and what `judge` says of the result, or why there are none."""
    try:
        figures, out = common.timed(run, repeats, wait)
        common.report(bench=bench, **what, **figures, **judge(out))
    except Exception as problem:  # a peer that is not there or fails loses its line alone
        common.report(bench=bench, **what, note=f"{type(problem).__name__}: {problem}"[:200])


def sides(device):
    if "torchgw" in SIDES:
        yield "torchgw", torchgw
    if "fourge" in SIDES:
        yield "fourge", fourge


def rows(device, wait, tables=((CURVES, 5, None), (CLOUDS, 30, clouds))):
    for cases, k, points in tables:
        for n, m, mode, options in ((n // OVER, m // OVER, mode, options) for n, m, mode, options in cases):
            (x, s), (y, t) = zip(points(n, m), (None, None)) if points else (spiral(n), swiss_roll(m))
            what = {"n": n, "m": m, "mode": mode, "device": device}
            for peer, align in sides(device):
                attempt("seed_gw_rows", {**what, "peer": peer}, lambda: align(x, y, device, mode, k, options), wait,
                        judge=(lambda match: rho(s, t, match())) if s is not None else lambda match: {})


def large(device, wait):
    rows(device, wait, ((((45000, 45000, "landmark", {"max_iter": 300, "n_landmarks": 50}),), 5, None),))


def quality(device, wait):
    (x, s), (y, t) = spiral(400 // OVER), swiss_roll(500 // OVER)
    for mixed in (False, True) if "torchgw" in SIDES else ():
        what = {"n": 400, "m": 500, "mode": "precomputed", "device": device, "loop": "f32" if mixed else "f64"}
        attempt("seed_gw_quality", {**what, "peer": "torchgw"},
                lambda: torchgw(x, y, device, "precomputed", 5, {"max_iter": 200, "mixed_precision": mixed}), wait, 1,
                lambda match: rho(s, t, match()))
    if "fourge" in SIDES:
        attempt("seed_gw_quality", {"n": 400, "m": 500, "mode": "precomputed", "device": device, "loop": "f32", "peer": "fourge"},
                lambda: fourge(x, y, device, "precomputed", 5, {"max_iter": 200}), wait, 1, lambda match: rho(s, t, match()))
    common.report(bench="seed_gw_quality", loop="f64", peer="fourge", device=device, note="not run")


def forced_torch(c, iterations):
    """u <- eps (log a - LSE_j((v - C) / eps)) and the same for v, from zeros."""
    import torch

    n, m = c.shape
    k = -c / 0.05
    u, v = torch.zeros(n, dtype=c.dtype, device=c.device), torch.zeros(m, dtype=c.dtype, device=c.device)
    for _ in range(iterations):
        u = -np.log(n) - torch.logsumexp(k + v, 1)
        v = -np.log(m) - torch.logsumexp(k + u[:, None], 0)
    return u, v


def passes_torch(cost, device, what, wait):
    import torch

    c = torch.as_tensor(cost).to(device)
    attempt("seed_gw_sinkhorn", {**what, "peer": "torch"}, lambda: forced_torch(c, 100), wait, 1)


def passes_fourge(cost, device, what, wait):
    def run():
        from fourge import gw

        there = {} if device == "cpu" else {"device": device}
        return gw.transport(cost, epsilon=0.05, tol=0, max_iter=100, accel="none", cost_store=what["dtype"], round=False, **there)

    attempt("seed_gw_sinkhorn", {**what, "peer": "fourge"}, run, wait, 1,
            lambda found: {"passes_seconds": float(f"{found.report['seconds']['total'] - found.report['seconds']['build']:.4g}")})


def sinkhorn(device, wait):
    for n, m in ((5001 // OVER, 6001 // OVER), (10001 // OVER, 12001 // OVER)):
        made = np.random.default_rng(0).random((n, m), dtype=np.float32)
        for dtype in ("f32", "u16", "f64"):
            cost = made.astype(np.float64) if dtype == "f64" else made
            what = {"n": n, "m": m, "dtype": dtype, "iterations": 100, "device": device}
            if "fourge" in SIDES:
                passes_fourge(cost, device, what, wait)
            if dtype != "u16" and "torch" in SIDES:
                passes_torch(cost, device, what, wait)


def pieces(device, wait):
    if device != "cpu":
        common.report(bench="seed_gw_pieces", device=device, peer="fourge", note="not run: of the cpu alone")
        return
    from fourge import gw
    from scipy.sparse.csgraph import dijkstra
    from sklearn.neighbors import kneighbors_graph

    x, y = clouds(2000, 2500)
    found = gw.align(x, y, distance="precomputed", k=30, anchors=80, epsilon=0.005, anneal="none", max_iter=100, min_iter=100,
                     multiscale="off")
    seconds = {k: found.report["seconds"][k] for k in ("sample", "total")}
    common.report(bench="seed_gw_pieces", piece="sampling", n=2000, m=2500, steps=100, peer="fourge",
                  seconds=seconds["sample"], of=seconds["total"])
    attempt("seed_gw_pieces", {"piece": "plan rows", "n": 2000, "m": 2500, "peer": "fourge"}, lambda: found.rows(0, 2000), wait)
    for n, m, steps in ((500, 600, 50), (1000, 1200, 100)):
        x, y = spiral(n)[0], swiss_roll(m)[0]
        attempt("seed_gw_pieces", {"piece": "cache", "n": n, "m": m, "steps": steps, "peer": "fourge"},
                lambda: gw.align(x, y, distance="dijkstra", k=5, anchors=80, epsilon=0.005, max_iter=steps, min_iter=steps,
                                 multiscale="off"), wait)
    points = swiss_roll(5000)[0]
    theirs = kneighbors_graph(points, 15, mode="distance")
    theirs = theirs.maximum(theirs.T)
    attempt("seed_gw_pieces", {"piece": "paths", "n": 5000, "k": 15, "peer": "scipy"}, lambda: dijkstra(theirs), wait)
    for threads in (1, 2):
        graph = gw.Graph.knn(points, 15, threads=threads)
        attempt("seed_gw_pieces", {"piece": "paths", "n": 5000, "k": 15, "peer": f"fourge, {threads} threads"}, graph.paths, wait)


PARTS = {"rows": rows, "quality": quality, "sinkhorn": sinkhorn, "pieces": pieces, "large": large}


def main():
    global OVER, SIDES
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cpu", "cuda", "opencl"), default="cpu")
    parser.add_argument("--parts", default="rows,quality,sinkhorn,pieces")
    parser.add_argument("--sides", default="torchgw,torch,fourge")
    parser.add_argument("--over", type=int, default=1)
    o = parser.parse_args()
    OVER = o.over
    SIDES = set(o.sides.split(",")) - (set() if o.device != "opencl" else {"torchgw", "torch"})
    if o.device == "cpu":
        import torch

        torch.set_num_threads(common.THREADS)
    for part in o.parts.split(","):
        PARTS[part](o.device, common.waiter(o.device))


if __name__ == "__main__":
    main()
