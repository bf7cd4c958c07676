"""The benchmark of starts: how far one fit ends below the best log likelihood that anything has found.

    PYTHONPATH=build/python PEERS/bin/python bench/gp_starts/gp_starts.py run tuned                  JSON lines
    ... gp_starts.py run tuned aside --only sunspots,co2 --ways one,five,sklearn,botorch             a part
    ... gp_starts.py best tuned aside                                                                30 starts of ours and of scikit-learn's
    ... gp_starts.py fold FILE...                                                                    raises best.json to what lines have
    ... gp_starts.py table FILE...                                                                   problems down, ways across

Ways: `one` and `five` are fourge's fit with as many starts, `sklearn` GaussianProcessRegressor with 10 restarts (bounds 1e-5 .. 1e5),
`botorch` its fit of an exact process (inputs in the unit cube, no priors), and `ours30`, `sklearn30` serve `best`.  Every run is a process
of its own.  The log likelihood of all is that of the standardised y with mean zero and learned noise; a peer's is recomputed from the
covariance at its parameters, with NumPy, in the units that it saw.  Evaluations are likelihoods: of ours those of the fit, and beside them (start_choice) those
on part of the points that chose the start; botorch's are not counted.  `best.json` has the largest log likelihood known of each problem and who found it.
"""
from __future__ import annotations

import argparse
import json
import multiprocessing
import pathlib
import sys
import time
import warnings

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "peers")]
import common  # noqa: E402

import numpy as np  # noqa: E402

import start_problems as problems  # noqa: E402

BEST = here / "best.json"
NEAR = 0.01


# ---- ways ----------------------------------------------------------------------------------------------------------


def density(k, y):
    """log N(y; 0, k)."""
    l = np.linalg.cholesky(k)
    z = np.linalg.solve(l, y)
    return float(-0.5 * z @ z - np.log(np.diag(l)).sum() - 0.5 * len(y) * np.log(2 * np.pi))


def ours(starts):
    def run(x, y, kernel):
        import fourge.gp

        gp = fourge.gp.GP(x, y, problems.fourge_text(kernel) + " + noise", mean="zero")
        report = gp.fit(starts=starts, standard_errors=False)
        optimizer = report["optimizer"]
        more = {key: optimizer[key] for key in ("start_choice", "optimum") if key in optimizer}
        return report["log_likelihood"], optimizer["evaluations"]["value"], {"status": report["status"], "kernel": gp.report["kernel"], **more}

    return run


def sklearn_with(restarts):
    def run(x, y, kernel):
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import WhiteKernel

        calls = 0

        class Counted(GaussianProcessRegressor):
            def log_marginal_likelihood(self, *args, **kwargs):
                nonlocal calls
                calls += 1
                return super().log_marginal_likelihood(*args, **kwargs)

        model = Counted(problems.sklearn_kernel(kernel, x.shape[1]) + WhiteKernel(), n_restarts_optimizer=restarts, random_state=0)
        model.fit(x, y)
        return density(model.kernel_(x) + 1e-10 * np.eye(len(y)), y), calls, {"kernel": str(model.kernel_)}

    return run


def botorch(x, y, kernel):
    import gpytorch
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.likelihoods import GaussianLikelihood

    torch.set_default_dtype(torch.float64)
    unit = torch.as_tensor(problems.unit_cube(x, kernel))
    model = SingleTaskGP(unit, torch.as_tensor(y)[:, None], likelihood=GaussianLikelihood(), outcome_transform=None,
                         covar_module=problems.gpytorch_kernel(kernel, x.shape[1]), mean_module=gpytorch.means.ZeroMean())
    mll = gpytorch.ExactMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll)
    with torch.no_grad():
        k = model.covar_module(unit).to_dense().numpy() + model.likelihood.noise.item() * np.eye(len(y))
    return density(k, y), None, {}


WAYS = {"one": ours(1), "five": ours(5), "sklearn": sklearn_with(10), "botorch": botorch, "ours30": ours(30), "sklearn30": sklearn_with(30)}


def one(name, way):
    warnings.simplefilter("ignore")
    x, y, kernel = problems.make(name)
    start = time.perf_counter()
    value, calls, more = WAYS[way](x, y, kernel)
    return {"n": len(y), "d": x.shape[1], "log_likelihood": float(f"{value:.9g}"), "evaluations": calls,
            "seconds": float(f"{time.perf_counter() - start:.3g}"), **more}


# ---- runs ----------------------------------------------------------------------------------------------------------


def inside(pipe, arguments):
    try:
        pipe.send(one(*arguments))
    except Exception as error:  # what a peer cannot do is a line too
        pipe.send({"note": f"{type(error).__name__}: {error}"[:300]})


def apart(*arguments, timeout):
    """The figures of one run in a process of its own."""
    mine, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=inside, args=(theirs, arguments))
    process.start()
    theirs.close()
    try:
        found = mine.recv() if mine.poll(timeout) else {"note": f"more than {timeout:g} s"}
    except EOFError:
        found = {"note": "the process died"}
    process.kill()
    process.join()
    return found


def chosen(args):
    for which in args.what:
        for name in problems.SETS[which]:
            if not args.only or name in args.only:
                yield which, name


def run(args):
    """JSON lines of each problem and way."""
    for which, name in chosen(args):
        for way in args.ways:
            print(json.dumps({"set": which, "problem": name, "way": way, "machine": common.MACHINE,
                              **apart(name, way, timeout=args.timeout)}), flush=True)


def best(args):
    """Raises best.json by many starts."""
    for _, name in chosen(args):
        for way in ("ours30", "sklearn30"):
            keep(name, way, apart(name, way, timeout=args.timeout).get("log_likelihood"))


def fold(args):
    """Raises best.json to what the lines have."""
    for line in lines(args.files):
        keep(line["problem"], line["way"], line.get("log_likelihood"))


def read_best():
    return json.loads(BEST.read_text()) if BEST.exists() else {}


def keep(name, way, value):
    known = read_best()
    if value is not None and np.isfinite(value) and value > known.get(name, {"log_likelihood": -np.inf})["log_likelihood"]:
        known[name] = {"log_likelihood": value, "by": way}
        BEST.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(known[k])}" for k in sorted(known)) + "\n}\n")


def lines(files):
    for file in files:
        with open(file) as text:
            yield from (json.loads(line) for line in text if line.strip())


def cell(line, top):
    if line is None or "log_likelihood" not in line:
        return "failed" if line else "", False
    behind = top - line["log_likelihood"]
    hit = behind <= NEAR
    return f"{'**' if hit else ''}{-behind:.2f}{'**' if hit else ''}, {'-' if line['evaluations'] is None else line['evaluations']}, {line['seconds']:.2g} s", hit


def table(args):
    """Log likelihood less the best known, evaluations, seconds; bold within 0.01."""
    known, runs = read_best(), {}
    for line in lines(args.files):
        runs.setdefault((line["set"], line["problem"]), {})[line["way"]] = line
    ways = [way for way in WAYS if any(way in found for found in runs.values())]
    print("| problem | best | " + " | ".join(ways) + " |\n" + "|---" * (len(ways) + 2) + "|")
    hits = {}
    for (which, name), found in runs.items():
        tops = [line["log_likelihood"] for line in found.values() if "log_likelihood" in line]
        top = max([known.get(name, {"log_likelihood": -np.inf})["log_likelihood"], *tops])
        cells = {way: cell(found.get(way), top) for way in ways}
        for way, (_, hit) in cells.items():
            hits[which, way] = hits.get((which, way), 0) + hit
        print(f"| {name}{' (aside)' if which == 'aside' else ''} | {top:.2f} | " + " | ".join(text for text, _ in cells.values()) + " |")
    for which in dict.fromkeys(which for which, _ in runs):
        count = sum(w == which for w, _ in runs)
        print(f"| within {NEAR}, {which} ({count}) | | " + " | ".join(str(hits[which, way]) for way in ways) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    words = lambda text: text.split(",")  # noqa: E731
    for work, where in ((run, "what"), (best, "what"), (fold, "files"), (table, "files")):
        command = commands.add_parser(work.__name__, help=work.__doc__)
        command.add_argument(where, nargs="+", choices=problems.SETS if where == "what" else None)
        command.add_argument("--only", type=words, default=[], help="names of problems")
        command.add_argument("--ways", type=words, default=["one", "five", "sklearn", "botorch"], help=", ".join(WAYS))
        command.add_argument("--timeout", type=float, default=600, help="seconds a run may take")
        command.set_defaults(work=work)
    args = parser.parse_args()
    args.work(args)


if __name__ == "__main__":
    main()
