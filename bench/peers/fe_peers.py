"""Peers on fixed-effects demeaning: python fe_peers.py ROWS [OUT_DIR] (OUT_DIR keeps the inputs as .npy).

Prints seconds and the audited error of every peer: the largest weighted level mean of a demeaned
column over the column's standard deviation. Slow peers are left out above 200 000 rows with SLOW=0, and
all but those named in PEER (one or more, with commas) where that is set.
"""
import common
import os
import pathlib
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")


def simple_or_difficult(n, kind, seed=1):
    rng = np.random.default_rng(seed)
    years, people = 10, round(n / 10)
    firms = max(1, round(people / 23))
    rows = np.arange(n)
    person, year = rows // years, rows % years
    firm = rng.integers(0, firms, n) if kind == "simple" else rows % firms
    x1 = rng.normal(size=n)
    x2 = x1**2
    y = x1 + 0.05 * x2 + rng.normal(size=firms)[firm] + rng.normal(size=people)[person] + rng.normal(size=years)[year]
    return np.column_stack([y + rng.normal(size=n), x1, x2]), (person, year, firm)


def worker_firm(n, seed=1, periods=8, move=0.05):
    """Workers who move rarely, and only to neighbouring firms: a badly connected graph."""
    rng = np.random.default_rng(seed)
    workers = n // periods
    firms = workers // 20
    firm = np.empty((workers, periods), int)
    firm[:, 0] = rng.integers(0, firms, workers)
    for t in range(1, periods):
        moves = rng.random(workers) < move
        firm[:, t] = np.where(moves, (firm[:, t - 1] + rng.integers(-3, 4, workers)) % firms, firm[:, t - 1])
    worker, year = np.repeat(np.arange(workers), periods), np.tile(np.arange(periods), workers)
    firm = firm.ravel()
    x = rng.normal(size=(len(firm), 2))
    y = x.sum(1) + rng.normal(size=workers)[worker] + rng.normal(size=firms)[firm] + rng.normal(size=len(firm))
    return np.column_stack([y, x]), (worker, year, firm)


def audit(columns, effects):
    worst = 0.0
    for code in effects:
        size = np.bincount(code)
        for column in columns.T:
            mean = np.bincount(code, column) / np.maximum(size, 1)
            worst = max(worst, np.abs(mean[size > 0]).max() / max(column.std(), 1e-300))
    return worst


def main():
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    out_dir = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    slow = os.environ.get("SLOW", "0") == "1" or n <= 200_000
    import torch
    import within
    from pyfixest.core.demean import demean as rust_map, demean_within
    from pyfixest.estimation.torch.demean_torch_ import demean_torch_cpu

    torch.set_num_threads(common.THREADS)
    for design in ("simple", "difficult", "worker_firm"):
        x, (unit, year, firm) = worker_firm(n) if design == "worker_firm" else simple_or_difficult(n, design)
        for label, effects in (("2fe", (unit, firm)), ("3fe", (unit, year, firm))):
            codes = np.column_stack(effects)
            if out_dir:
                folder = out_dir / f"{design}_{label}"
                folder.mkdir(parents=True, exist_ok=True)
                np.save(folder / "columns.npy", np.ascontiguousarray(x))
                np.save(folder / "codes.npy", np.ascontiguousarray(codes.astype(np.int32)))
            weights, x_f = np.ones(len(x)), np.asfortranarray(x)
            c32, c64 = np.asfortranarray(codes.astype(np.uint32)), codes.astype(np.uint64)
            peers = {
                "within_adaptive": lambda: within.solve_batch(c32, x_f).demeaned,
                "pyfixest_within": lambda: demean_within(x, c32, weights, 1e-8, 1000)[0],
            }
            if design == "simple" or slow:
                peers["pyfixest_rust_map"] = lambda: rust_map(x, c64, weights, 1e-8, 10_000)[0]
                peers["pyfixest_torch_cpu"] = lambda: demean_torch_cpu(x, c64, weights, 1e-8, 10_000)[0]
            for peer, run in ((k, v) for k, v in peers.items() if k in os.environ.get("PEER", k).split(",")):
                seconds, demeaned = common.best_of(run, 2)
                common.report(bench="fe", design=design, effects=label, n=len(x), columns=x.shape[1], peer=peer,
                              seconds=round(seconds, 4), audit=float(f"{audit(np.asarray(demeaned), effects):.1e}"))


if __name__ == "__main__":
    main()
