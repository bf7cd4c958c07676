"""linearmodels on our demeaning beside its own: py_linearmodels.py [ROWS [REPEATS]]

Models with two effects, workers of eight periods and firms drawn anew in each: AbsorbingLS by pyhdfe and by LSMR, PanelOLS
with units and periods, and with units and firms.  Seconds are of the processor, the least of REPEATS (3), from frames to
results with homoskedastic errors.  Every line of ours says how far its estimates are from theirs.
"""
import contextlib
import pathlib
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
from common import report  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from linearmodels.iv import AbsorbingLS  # noqa: E402
from linearmodels.panel import PanelOLS  # noqa: E402

from fourge.linearmodels import demeaning  # noqa: E402


def frame(n):
    rng = np.random.default_rng(1)
    worker, firm = np.arange(n) // 8, rng.integers(0, n // 25, n)
    x = rng.normal(size=(2, n))
    y = x[0] + 0.5 * x[1] + np.sin(firm) + np.cos(worker) + rng.normal(size=n)
    return pd.DataFrame({"worker": worker, "year": np.arange(n) % 8, "firm": firm, "x1": x[0], "x2": x[1], "y": y})


def models(d):
    effects, x = d[["worker", "firm"]].astype("category"), d[["x1", "x2"]]
    panel = d.set_index(["worker", "year"])
    within = lambda **effects: PanelOLS(panel.y, panel[["x1", "x2"]], entity_effects=True, **effects).fit()
    return {
        "AbsorbingLS, pyhdfe": lambda: AbsorbingLS(d.y, x, absorb=effects).fit(use_cache=False),
        "AbsorbingLS, lsmr": lambda: AbsorbingLS(d.y, x, absorb=effects).fit(use_cache=False, method="lsmr"),
        "PanelOLS, worker and year": lambda: within(time_effects=True),
        "PanelOLS, worker and firm": lambda: within(other_effects=panel[["firm"]]),
    }


def main(n=100_000, repeats=3):
    warnings.simplefilter("ignore")
    for job, call in models(frame(n)).items():
        found = {}
        for side, block in (("linearmodels", contextlib.nullcontext), ("fourge", demeaning)):
            seconds = []
            for _ in range(repeats):
                with block():
                    start = time.process_time()
                    fit = call()
                    seconds.append(time.process_time() - start)
            found[side] = min(seconds), np.asarray(fit.params)
        apart = float(np.abs(found["fourge"][1] - found["linearmodels"][1]).max())
        for side, (cpu, _) in found.items():
            more = {"apart": apart, "ratio": round(found["linearmodels"][0] / cpu, 2)} if side == "fourge" else {}
            report(bench="py_linearmodels", job=job, rows=n, side=side, cpu_seconds=round(cpu, 3), repeats=repeats, **more)


if __name__ == "__main__":
    main(*(int(float(a)) for a in sys.argv[1:]))
