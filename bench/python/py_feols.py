"""feols on a polars frame beside pyfixest: py_feols.py ROWS [DESIGN [WHO...]]

DESIGN is simple (default; individual and year) or worker_firm; WHO are fourge and pyfixest's demeaners (default: all
that are installed): default, within, within_diagonal.  Ours is the whole call from the frame to the table of
coefficients with errors clustered by the first effect; theirs has a pandas frame, which it asks for.  Every line says how far
the estimates are from ours and what our audit of theirs is.
"""
import pathlib
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
from common import report  # noqa: E402

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402

from fourge import fe  # noqa: E402


def frame(n, design):
    rng = np.random.default_rng(1)
    if design == "simple":
        a, b = np.arange(n) // 10, np.arange(n) % 10
    else:
        a, year = np.arange(n) // 8, np.arange(n) % 8
        firms = max(n // 160, 2)
        moves = np.where(rng.random(n) < 0.05, rng.integers(-3, 4, n), 0)
        moves[year == 0] = rng.integers(0, firms, (year == 0).sum())
        steps = np.cumsum(moves)
        b = (steps - np.repeat((steps - moves)[year == 0], np.bincount(a))) % firms
    x = rng.normal(size=(3, n))
    y = x.sum(0) + rng.normal(size=a.max() + 1)[a] + rng.normal(size=b.max() + 1)[b] + rng.normal(size=n)
    return pl.DataFrame({"y": y, "x1": x[0], "x2": x[1], "x3": x[2], "a": a.astype(np.int64), "b": b.astype(np.int64)})


def main(n, design, who):
    data = frame(n, design)
    formula = "y ~ x1 + x2 + x3 | a + b"
    want, ours = None, None
    for name in who:
        if name == "fourge":
            call = lambda: fe.feols(formula, data, vcov={"CRV1": "a"})
        else:
            import pyfixest as pf

            d = data.to_pandas()
            options = {} if name == "default" else {"demeaner": {"within": pf.LsmrDemeaner(), "within_diagonal":
                                                                 pf.LsmrDemeaner(preconditioner="diagonal")}[name]}
            call = lambda: pf.feols(formula, d, vcov={"CRV1": "a"}, fixef_rm="singleton", **options)
        times = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(3 if n <= 1_000_000 else 2 if name == "fourge" else 1):
                start = time.perf_counter()
                fit = call()
                times.append(time.perf_counter() - start)
        b = np.asarray(fit.coef())
        figures = {"seconds": round(min(times), 4)}
        if name == "fourge":
            want, ours = b, min(times)
            figures |= {"audit": max(fit.result["solver"]["audit"]), "method": fit.result["solver"]["method"]}
        elif want is not None:
            figures |= {"distance": float(np.abs(b - want).max()), "ratio": round(min(times) / ours, 2)}
        report(bench="py_feols", design=design, n=n, peer=name, **figures)


if __name__ == "__main__":
    main(int(float(sys.argv[1])), sys.argv[2] if len(sys.argv) > 2 else "simple",
         sys.argv[3:] or ["fourge", "default", "within", "within_diagonal"])
