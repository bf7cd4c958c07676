"""Regressions beside pyfixest: py_regress.py [ROWS [JOB...]]; JOB of gravity, iv, wild, csw (default: all).

gravity  Poisson, exporter-year, importer-year and pair effects: 447 000 rows at ROWS = 447000 (spec "Gravity"), iid errors
iv       two-stage least squares, one endogenous regressor, two instruments, two effects, HC1 errors
wild     wild cluster bootstrap, ROWS / 10 rows, 50 clusters, 9999 Rademacher draws (1000 below 1e5 rows);
         the peer is wildboottest through pyfixest, where it is installed
csw      ten models by csw times three outcomes, two effects: one call, thirty calls, and the peer's own

Frames are made before the clock starts, pandas' for both sides; each call is the whole one, from frame to table.  Before a time
is printed the estimates are compared: with the peer's, and thirty calls' with the one's.  ROWS is 1e6 but for gravity, which takes
0.447 of it.  LIMIT, THREADS, MACHINE as in peers/common.py.
"""
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
from common import report, timed  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from fourge import fe  # noqa: E402

warnings.filterwarnings("ignore")


def gravity_frame(rows):
    """Trade ~ Poisson(exp(-0.5 + effects + 0.3 rta)): C countries, 20 years, no trade with oneself."""
    rng = np.random.default_rng(1)
    years = 20
    countries = max(3, round(0.5 + (rows / years + 0.25) ** 0.5))
    e, m, t = (a.ravel() for a in np.meshgrid(np.arange(countries), np.arange(countries), np.arange(years), indexing="ij"))
    e, m, t = (a[e != m] for a in (e, m, t))
    pair = e * countries + m
    starts = np.where(rng.random(countries**2) < 0.15, rng.integers(0, years, countries**2), years)
    rta = (t >= starts[pair]).astype(float)
    effect = rng.normal(size=(2, countries, years))
    mean = np.exp(-0.5 + effect[0, e, t] + effect[1, m, t] + rng.normal(size=countries**2)[pair] + 0.3 * rta)
    return pd.DataFrame({"trade": rng.poisson(mean).astype(float), "rta": rta, "exp_year": e * years + t, "imp_year": m * years + t,
                         "pair": pair})


def panel_frame(n):
    """Rows of n / 10 units and their firms, with regressors x1 .. x10, an endogenous one, and instruments."""
    rng = np.random.default_rng(2)
    units = max(n // 10, 2)
    firms = max(units // 23, 2)
    unit, firm = np.arange(n) % units, rng.integers(0, firms, n)
    x, z, hidden = rng.normal(size=(10, n)), rng.normal(size=(2, n)), rng.normal(size=n)
    both = rng.normal(size=units)[unit] + rng.normal(size=firms)[firm]
    d = z.sum(0) + 0.5 * x[0] + hidden + both + rng.normal(size=n)
    frame = {"unit": unit, "firm": firm, "d": d, "z1": z[0], "z2": z[1], "cluster": np.arange(n) % 50}
    for k in range(3):
        frame[f"y{k + 1}"] = x.sum(0) / (k + 1) + 0.7 * d + hidden + both + rng.normal(size=n)
    return pd.DataFrame(frame | {f"x{j + 1}": x[j] for j in range(10)})


def apart(a, b):
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b)) / np.maximum(np.abs(np.asarray(b)), 1e-3)))


def beside(job, rows, ours, theirs, tolerance, values=lambda fit: np.asarray(fit.coef()), **more):
    """Both sides' times; no line of a side that misses the other's estimates by more than `tolerance`."""
    figures, mine = timed(ours)
    report(bench="py_regress", job=job, rows=rows, side="fourge", **more, **figures)
    if theirs is None:
        return mine
    peer, its = timed(theirs)
    distance = apart(values(its), values(mine))
    if not distance <= tolerance:
        raise SystemExit(f"{job}: the estimates are {distance:.3g} apart")
    report(bench="py_regress", job=job, rows=rows, side="pyfixest", **more, apart=distance,
           ratio=float(f"{peer['seconds'] / figures['seconds']:.3g}"), **peer)
    return mine


def gravity(n, pf):
    data = gravity_frame(0.447 * n)
    formula = "trade ~ rta | exp_year + imp_year + pair"
    fit = beside("gravity", len(data), lambda: fe.fepois(formula, data, vcov="iid"), lambda: pf.fepois(formula, data, vcov="iid"), 1e-5)
    mu, y = fit.glm_values("response"), data["trade"].to_numpy()
    used = ~np.isnan(mu)
    worst = max(np.abs(np.bincount(c[used], (y - mu)[used]) / np.maximum(np.bincount(c[used], y[used]), 1)).max()
                for c in (data[name].to_numpy() for name in ("exp_year", "imp_year", "pair")))
    if not worst <= 1e-6:
        raise SystemExit(f"gravity: a level's outcomes and means differ by {worst:.3g} of the outcomes")


def iv(n, pf):
    data = panel_frame(n)
    formula, peer = "y1 ~ x1 | unit + firm | d ~ z1 + z2", "y1 ~ x1 | unit + firm | d ~ z1 + z2"
    by_name = lambda fit: [fit.coef()["d"], fit.coef()["x1"]]
    beside("iv", n, lambda: fe.feols(formula, data, vcov="hc1"), lambda: pf.feols(peer, data, vcov="HC1"), 1e-5, by_name)


def wild(n, pf):
    rows = n // 10
    data = panel_frame(rows)
    draws = 9999 if rows >= 100_000 else 1000
    formula = "y1 ~ x1 + x2 + x3 | cluster"
    mine = beside("wild", rows, lambda: fe.feols(formula, data, vcov=f"wild=cluster,{draws}"), None, 0, draws=draws, clusters=50)
    p = mine.pvalue()["x1"]
    if not 0 <= p <= 1:
        raise SystemExit(f"wild: p is {p}")
    try:
        import wildboottest  # noqa: F401
    except ImportError:
        return
    fit = pf.feols(formula, data, vcov={"CRV1": "cluster"})
    figures, out = timed(lambda: fit.wildboottest(param="x1", reps=draws, seed=1))
    if abs(out["Pr(>|t|)"] - p) > 4 / draws**0.5:
        raise SystemExit(f"wild: p {p} and {out['Pr(>|t|)']}")
    report(bench="py_regress", job="wild", rows=rows, side="wildboottest, one coefficient", draws=draws, clusters=50, **figures)


def csw(n, pf):
    data = panel_frame(n)
    names = ", ".join(f"x{j + 1}" for j in range(10))
    effects, outcomes = "unit + firm", ("y1", "y2", "y3")
    ours, peer = f"c(y1, y2, y3) ~ csw({names}) | {effects}", f"y1 + y2 + y3 ~ csw({names}) | {effects}"
    single = [f"{y} ~ {' + '.join(f'x{j + 1}' for j in range(k))} | {effects}" for y in outcomes for k in range(1, 11)]
    together, fits = timed(lambda: list(fe.feols(ours, data, vcov="iid")))
    one, alone = timed(lambda: [fe.feols(f, data, vcov="iid") for f in single], repeats=1)
    same = lambda fits: {(f.result["depvar"], len(f.coef())): np.asarray(f.coef()) for f in fits}
    if len(fits) != 30 or same(fits).keys() != same(alone).keys():
        raise SystemExit(f"csw: {len(fits)} models")
    distance = max(apart(same(fits)[k], same(alone)[k]) for k in same(alone))
    if not distance <= 1e-8:
        raise SystemExit(f"csw: the estimates of one call and of thirty are {distance:.3g} apart")
    report(bench="py_regress", job="csw", rows=n, side="fourge", models=30, **together)
    report(bench="py_regress", job="csw", rows=n, side="fourge, thirty calls", models=30,
           ratio=float(f"{one['seconds'] / together['seconds']:.3g}"), **one)
    theirs, its = timed(lambda: pf.feols(peer, data, vcov="iid").to_list(), repeats=1)
    peers = {(f._depvar, len(f.coef())): np.asarray(f.coef()) for f in its}
    distance = max(apart(peers[k], v) for k, v in same(fits).items())
    if not distance <= 1e-5:
        raise SystemExit(f"csw: the estimates are {distance:.3g} apart from pyfixest's")
    report(bench="py_regress", job="csw", rows=n, side="pyfixest", models=30, apart=distance,
           ratio=float(f"{theirs['seconds'] / together['seconds']:.3g}"), **theirs)


JOBS = {"gravity": gravity, "iv": iv, "wild": wild, "csw": csw}


def main(n, jobs):
    import pyfixest as pf

    for job in jobs:
        JOBS[job](n, pf)


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000, sys.argv[2:] or list(JOBS))
