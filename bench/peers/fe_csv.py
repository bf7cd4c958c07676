"""A whole regression from a CSV file, by the peers: python fe_csv.py FILE [--make ROWS] [--design NAME] [options]

Model: y on x1..x5 with the effects unit and firm, standard errors clustered by firm (--formula and --cluster change
it). Prints one line for every reader and every demeaner of pyfixest, then the fastest pair. --make writes the file
first: one of the designs of fe_peers.py with five covariates.
"""
import common
import argparse
import pathlib
import warnings

import numpy as np

from fe_peers import simple_or_difficult, worker_firm

warnings.filterwarnings("ignore")


def make(path, rows, design):
    import pyarrow
    import pyarrow.csv

    maker = worker_firm if design == "worker_firm" else lambda n: simple_or_difficult(n, design)
    columns, (unit, year, firm) = maker(rows)
    n = len(columns)
    rng = np.random.default_rng(5)
    covariates = rng.normal(size=(n, 5))
    y = columns[:, 0] + covariates @ np.array([1.0, 0.5, 0.25, -0.5, 0.1])
    table = {"unit": unit, "firm": firm, "year": year, "y": y}
    table |= {f"x{j + 1}": covariates[:, j] for j in range(5)}
    pyarrow.csv.write_csv(pyarrow.table(table), path)


def readers(path):
    import pandas
    import polars

    return {
        "pandas": lambda: pandas.read_csv(path),
        "pandas_pyarrow": lambda: pandas.read_csv(path, engine="pyarrow"),
        "polars": lambda: polars.read_csv(path),
    }


def demeaners():
    import importlib.util

    import pyfixest

    out = {
        "rust_map": pyfixest.MapDemeaner(fixef_tol=1e-8),
        "within": pyfixest.LsmrDemeaner(),
        "within_diagonal": pyfixest.LsmrDemeaner(preconditioner="diagonal"),
    }
    if importlib.util.find_spec("numba"):
        out["numba_map"] = pyfixest.MapDemeaner(fixef_tol=1e-8, backend="numba")
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--make", type=float)
    parser.add_argument("--design", default="simple", choices=("simple", "difficult", "worker_firm"))
    parser.add_argument("--formula", default="y ~ x1 + x2 + x3 + x4 + x5 | unit + firm")
    parser.add_argument("--cluster", default="firm")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--demeaners", help="names, with commas (default: all)")
    options = parser.parse_args()
    if options.make:
        make(options.file, int(options.make), options.design)
    import pyfixest

    best, frames = None, {}
    reading = {}
    for name, read in readers(options.file).items():
        reading[name], frames[name] = common.best_of(read, options.repeats)
        common.report(bench="csv_read", file=options.file.name, n=len(frames[name]), peer=name,
                      seconds=round(reading[name], 4))
    quickest = {"pandas": min(("pandas", "pandas_pyarrow"), key=reading.get), "polars": "polars"}
    chosen = demeaners()
    if options.demeaners:
        chosen = {name: chosen[name] for name in options.demeaners.split(",")}
    for reader in quickest.values():
        for name, demeaner in chosen.items():
            def fit():
                return pyfixest.feols(options.formula, frames[reader], vcov={"CRV1": options.cluster}, demeaner=demeaner,
                                      copy_data=False, store_data=False, lean=True)

            try:
                seconds, model = common.best_of(fit, options.repeats)
            except ValueError as error:  # pyfixest raises where a demeaner does not converge
                common.report(bench="fe_csv", file=options.file.name, reader=reader, demeaner=name, error=str(error))
                continue
            figures = dict(bench="fe_csv", file=options.file.name, n=len(frames[reader]), reader=reader, demeaner=name,
                           read=round(reading[reader], 4), fit=round(seconds, 4),
                           seconds=round(reading[reader] + seconds, 4), x1=float(model.coef().iloc[0]),
                           x1_std_error=float(model.se().iloc[0]))
            common.report(**figures)
            if best is None or figures["seconds"] < best["seconds"]:
                best = figures
    common.report(**{**best, "bench": "fe_csv_best"})


if __name__ == "__main__":
    main()
