"""Both rooms and the regressions on cores that others use too: py_busy.py [--jobs J,J] [--policies P,P] [--spinners S,S] [--seconds S].

Jobs: `align`, a Gromov-Wasserstein alignment of 300 and 350 points as by default, `sampled` the same by entropic iterations;
`fit`, the Gaussian process of the tour on data/co2.csv; `feols`, twelve regressions in one call from a frame of 1e6 rows.
Policies, of how OpenMP's threads wait at the end of a loop: `default` (no variable set: what `import fourge` chooses),
`runtime` (what GCC's runtime does by itself, 300000 turns and then sleep, so in programs that link the library), `active`
and `passive` (OMP_WAIT_POLICY).  Beside them 0 or 2 processes spin.  Each setting is a process of its own, which is warm
before its calls are timed for so many seconds; the policies take turns, twice.  Bits are compared: they hang neither on the
policy nor on the load.  `idle_ratio` is the best call over the better of active and passive with nobody beside; `share_ratio`
the median call beside spinning processes over its share, that time times (threads + spinning) / cores.
"""
import argparse
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "bench" / "peers"))
from common import THREADS, report  # noqa: E402

import fourge  # noqa: E402, F401  before NumPy, which may load GCC's runtime itself, as Debian's does: it would spin for long
import numpy as np  # noqa: E402

VARIABLES = {"default": {}, "runtime": {"GOMP_SPINCOUNT": "300000"}, "active": {"OMP_WAIT_POLICY": "active"},
             "passive": {"OMP_WAIT_POLICY": "passive"}}
TURNS = 2
KERNEL = "4000*rbf(l=60) + 6*rbf(l=90)*periodic(l=1.3, p=1!) + 0.4*matern32(l=1) + noise(0.05)"


def align(**options):
    from fourge import gw

    rng = np.random.default_rng(3)
    x, turns = rng.normal(size=(300, 3)), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    y = np.vstack([x[rng.permutation(300)] @ turns, rng.normal(size=(50, 3))])
    return lambda: gw.align(x, y, distance="euclidean", threads=THREADS, **options).plan()


def fit():
    from fourge import gp

    data = np.genfromtxt(root / "data" / "co2.csv", delimiter=",", skip_header=1)
    data = data[~np.isnan(data[:, 3])]

    def call():
        model = gp.GP(data[:, 2:3], data[:, 3], KERNEL, threads=THREADS)
        model.fit()
        return model.theta

    return call


def feols():
    from fourge import fe

    rng, n = np.random.default_rng(1), 1_000_000
    x, a, b = rng.normal(size=(3, n)), np.arange(n) // 10, rng.integers(0, 1000, n)
    y = x.sum(0) + rng.normal(size=n // 10)[a] + rng.normal(size=1000)[b] + rng.normal(size=n)
    frame = {"y": y, "z": y + x[0], "x1": x[0], "x2": x[1], "x3": x[2], "a": a, "b": b}
    formulas = [f"{left} ~ {right} | {effects}" for left in ("y", "z") for right in ("x1", "x1 + x2", "x1 + x2 + x3")
                for effects in ("a", "a + b")]
    return lambda: np.concatenate([np.asarray(fe.feols(f, frame, threads=THREADS).coef()) for f in formulas])


JOBS = {"align": align, "sampled": lambda: align(mode="sampled"), "fit": fit, "feols": feols}


def timed(job, seconds):
    """(best, median, digest) of the calls that this process makes."""
    call, times = JOBS[job](), []
    digest = hashlib.sha256(np.ascontiguousarray(call()).tobytes()).hexdigest()
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times), statistics.median(times), digest


def in_process(job, policy, spinners, seconds):
    environment = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")} | VARIABLES[policy]
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(spinners)]
    try:
        out = subprocess.run([sys.executable, __file__, "--call", job, "--seconds", str(seconds)], check=True, env=environment,
                             stdout=subprocess.PIPE, text=True).stdout
    finally:
        for process in spinning:
            process.kill()
            process.wait()
    return json.loads(out.splitlines()[-1])


def table(job, policies, spinners, seconds):
    seen = {(count, policy): [] for count in spinners for policy in policies}
    for _ in range(TURNS):
        for count, policy in seen:
            seen[count, policy].append(in_process(job, policy, count, seconds))
    assert len({digest for runs in seen.values() for _, _, digest in runs}) == 1, f"{job}: settings end with different bits"
    best = {key: min(b for b, _, _ in runs) for key, runs in seen.items()}
    median = {key: statistics.median(m for _, m, _ in runs) for key, runs in seen.items()}
    alone = min((best[0, p] for p in ("active", "passive") if (0, p) in best), default=None)
    for count, policy in seen:
        figures = {"seconds": float(f"{best[count, policy]:.3g}"), "median": float(f"{median[count, policy]:.3g}")}
        if alone and count == 0:
            figures["idle_ratio"] = round(best[count, policy] / alone, 3)
        elif alone:
            share = alone * (THREADS + count) / (os.cpu_count() or 1)
            figures["share_ratio"] = round(median[count, policy] / share, 2)
        report(bench="py_busy", job=job, policy=policy, spinning=count, **figures)


def words(text):
    return text.split(",")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--jobs", type=words, default=list(JOBS))
    arguments.add_argument("--policies", type=words, default=list(VARIABLES))
    arguments.add_argument("--spinners", type=words, default=["0", "2"])
    arguments.add_argument("--seconds", type=float, default=3.0)
    arguments.add_argument("--call", help=argparse.SUPPRESS)
    asked = arguments.parse_args()
    if asked.call:
        print(json.dumps(timed(asked.call, asked.seconds)))
    else:
        for name in asked.jobs:
            table(name, asked.policies, [int(count) for count in asked.spinners], asked.seconds)
