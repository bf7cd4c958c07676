"""The tables of the LSMR seed (pyfixest's pull request 1220): seed_fe.py [--device cpu|cuda|opencl] [--rows 1e4,...]
       [--columns 1,5,10] [--dtypes f64,f32] [--designs simple,difficult] [--sides ...]

One line for each design (person, year and firm: three effects), number of rows, number of columns k, type and side:

    torch_eager            pyfixest's LSMR on torch, a column at a time, scalars in Python: the seed's old way
    torch_compiled         the same with torch.compile on its scalar steps: its new way on CUDA
    torch_batched          all columns in one call
    torch_batched_compiled
    pyfixest_rust_map, within_adaptive    (cpu, f64)
    fourge_lsmr, fourge    the seed's algorithm, and what `auto` takes; on a device its scalars are computed there
    fourge_cg, fourge_lsmr_eager    on a device: conjugate gradients; LSMR with its scalars on the host

OpenCL has no side of torch's.
From arrays in memory to arrays in memory, set-up included, best of two after one that warms up (common.timed).  pyfixest runs
at its tolerance of 1e-8, ours to its own test: an audit of 1e-10 in f64, 3.6e-7 in f32.  `audit` is the largest level mean
over the column's standard deviation, computed here in double from the result; of ours, `method` says what ran and where.
"""
import argparse
import functools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
import common  # noqa: E402
from fe_peers import audit, simple_or_difficult  # noqa: E402

import numpy as np  # noqa: E402

TOL, STEPS = 1e-8, 10_000


def torch_modules():
    """pyfixest's torch modules, which need torch and NumPy alone; without the packages of its tables where those are missing."""
    import importlib.util
    import types

    try:
        import pyfixest.estimation  # noqa: F401
    except ImportError:
        root = pathlib.Path(importlib.util.find_spec("pyfixest").origin).parent
        for name in ("pyfixest", "pyfixest.estimation"):
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__path__ = [str(root.joinpath(*name.split(".")[1:]))]
    from pyfixest.estimation.torch import demean_torch_, lsmr_torch

    return demean_torch_, lsmr_torch


def torch_way(device, compiled, batched):
    """pyfixest's own demeaner with its dispatch held to one way."""
    import torch

    theirs, solvers = torch_modules()

    def run(x, codes):
        theirs._should_use_batched_lsmr = lambda *_: batched
        theirs.lsmr_torch = functools.partial(solvers.lsmr_torch, use_compile=compiled)
        theirs.lsmr_torch_batched = functools.partial(solvers.lsmr_torch_batched, use_compile=compiled)
        dtype = torch.float64 if x.dtype == np.float64 else torch.float32
        with torch.no_grad():
            return theirs._demean_torch_on_device_impl(x, codes, None, TOL, STEPS, torch.device(device), dtype)[0]

    return run


def rust_map(x, codes):
    from pyfixest.core.demean import demean

    return demean(x, codes, np.ones(len(x)), TOL, STEPS)[0]


def within_adaptive(x, codes):
    import within

    return within.solve_batch(np.asfortranarray(codes.astype(np.uint32)), np.asfortranarray(x)).demeaned


def fourge_way(**options):
    from fourge import fe

    def run(x, codes):
        tol = {} if x.dtype == np.float64 else {"dtype": "f32", "tol": 3.6e-7}
        out, report = fe.demean(x, codes, **options, **tol)
        run.says = {"method": report["method"], "steps": max(report["iterations"])}
        return out

    return run


def sides(device, dtype):
    if device != "opencl":
        yield "torch_eager", lambda: torch_way(device, False, False)
        yield "torch_compiled", lambda: torch_way(device, True, False)
        yield "torch_batched", lambda: torch_way(device, False, True)
        yield "torch_batched_compiled", lambda: torch_way(device, True, True)
    if device == "cpu" and dtype == "f64":
        yield "pyfixest_rust_map", lambda: rust_map
        yield "within_adaptive", lambda: within_adaptive
    there = {} if device == "cpu" else {"device": device}
    yield "fourge", lambda: fourge_way(**there)
    yield "fourge_lsmr", lambda: fourge_way(method="lsmr", **there)
    if there:
        yield "fourge_cg", lambda: fourge_way(method="cg", **there)
        yield "fourge_lsmr_eager", lambda: fourge_way(method="lsmr", fused="off", **there)


def line(run, x, codes, effects, device):
    """The figures of one side, or why there are none."""
    try:
        way = run()
        figures, out = common.timed(lambda: way(x, codes), 2, common.waiter(device))
    except Exception as problem:  # a peer that cannot do a case loses that line alone
        return {"note": f"{type(problem).__name__}: {problem}"[:200]}
    return {**figures, "audit": float(f"{audit(np.asarray(out, float), effects):.1e}"), **getattr(way, "says", {})}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cpu", "cuda", "opencl"), default="cpu")
    parser.add_argument("--rows", default="1e4,1e5,5e5,1e6,2e6,5e6")
    parser.add_argument("--columns", default="1,5,10")
    parser.add_argument("--dtypes", default="f64,f32")
    parser.add_argument("--designs", default="simple,difficult")
    parser.add_argument("--sides", help="those whose names are in this list alone")
    o = parser.parse_args()
    if o.device == "cpu":
        import torch

        torch.set_num_threads(common.THREADS)
    for rows in (int(float(r)) for r in o.rows.split(",")):
        for design in o.designs.split(","):
            y, effects = simple_or_difficult(rows, design)
            codes = np.column_stack(effects).astype(np.uint64)
            for k in (int(c) for c in o.columns.split(",")):
                noise = np.random.default_rng(2).normal(size=(rows, k))
                for dtype in o.dtypes.split(","):
                    x = np.ascontiguousarray(y[:, :1] + noise, dtype={"f64": np.float64, "f32": np.float32}[dtype])
                    for name, run in sides(o.device, dtype):
                        if o.sides and name not in o.sides.split(","):
                            continue
                        common.report(bench="seed_fe", design=design, n=rows, k=k, dtype=dtype, device=o.device, peer=name,
                                      **line(run, x, codes, effects, o.device))


if __name__ == "__main__":
    main()
