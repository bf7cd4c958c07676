"""Peers on demeaning problems that lie in folders: python fe_graphs.py FOLDER [FOLDER ...]

Each folder holds columns.npy (n, p) and codes.npy (n, Q), as fe_peers.py and `fourge simulate` write them. Prints
the figures of fe_peers.py. Every peer runs in a process of its own and is stopped after LIMIT seconds (default 120),
which is printed as well, because some graphs take the slower ones hours. SLOW=0 leaves those out altogether.
"""
import common
import multiprocessing
import os
import pathlib
import sys
import warnings

import numpy as np

from fe_peers import audit

warnings.filterwarnings("ignore")
LIMIT = float(os.environ.get("LIMIT", "120"))
PEERS = ["within_adaptive", "pyfixest_within"]
if os.environ.get("SLOW", "1") != "0":
    PEERS += ["pyfixest_rust_map", "pyfixest_torch_cpu"]


def runner(peer, x, codes):
    weights = np.ones(len(x))
    if peer == "within_adaptive":
        import within

        c32, x_f = np.asfortranarray(codes.astype(np.uint32)), np.asfortranarray(x)
        return lambda: (within.solve_batch(c32, x_f).demeaned, None)
    if peer == "pyfixest_torch_cpu":
        import torch
        from pyfixest.estimation.torch.demean_torch_ import demean_torch_cpu

        torch.set_num_threads(common.THREADS)
        c64 = codes.astype(np.uint64)
        return lambda: demean_torch_cpu(x, c64, weights, 1e-8, 10_000)
    from pyfixest.core.demean import demean, demean_within

    if peer == "pyfixest_within":
        c32 = np.asfortranarray(codes.astype(np.uint32))
        return lambda: demean_within(x, c32, weights, 1e-8, 1000)[:2]
    c64 = codes.astype(np.uint64)
    return lambda: demean(x, c64, weights, 1e-8, 10_000)


def measure(folder, peer, pipe):
    x = np.ascontiguousarray(np.load(folder / "columns.npy"), dtype=np.float64)
    codes = np.load(folder / "codes.npy")
    figures = {"n": len(x), "columns": x.shape[1], "peer": peer}
    try:
        seconds, (demeaned, converged) = common.best_of(runner(peer, x, codes), 2)
        figures["seconds"] = round(seconds, 4)
        figures["audit"] = float(f"{audit(np.asarray(demeaned), list(codes.T)):.1e}")
        if converged is not None:
            figures["converged"] = bool(converged)
    except Exception as error:  # a peer that refuses a graph is a figure too
        figures["error"] = f"{type(error).__name__}: {error}"[:200]
    pipe.send(figures)


def main():
    spawn = multiprocessing.get_context("spawn")
    for folder in map(pathlib.Path, sys.argv[1:]):
        for peer in PEERS:
            receive, send = spawn.Pipe(duplex=False)
            child = spawn.Process(target=measure, args=(folder, peer, send))
            child.start()
            send.close()
            figures = {"peer": peer, "stopped_after": LIMIT}
            if receive.poll(LIMIT):
                try:
                    figures = receive.recv()
                except EOFError:
                    figures = {"peer": peer, "error": "the process ended without an answer"}
            else:
                child.kill()
            child.join()
            common.report(bench="fe", design=folder.name, **figures)


if __name__ == "__main__":
    main()
