"""Rows beyond memory beside other packages: beyond_peers.py PROGRAM FOLDER PERSONS PERIODS LIMIT [ADDRESS_SPACE].

A balanced panel of PERSONS x PERIODS rows, w = 1 from a period on that is the person's own, y = effects + w + noise.  Each job is a
process of its own and says beta of  y ~ w | person + period  with iid errors, seconds and the peak of its memory:

    fourge           the columns in an .npz under --memory-limit LIMIT, effects absorbed row by row
    fourge in memory the same without a limit
    pyfixest         feols on a pandas frame of the same columns, read from the .npz (reading is timed, as it is for fourge)
    duckreg mundlak, duckreg demeaning   DuckMundlak and DuckDoubleDemeaning (memory_limit LIMIT in DuckDB) on a table of a database
                     file, which is made beforehand and not timed; both are exact for a balanced panel alone

ADDRESS_SPACE: bytes that pyfixest may map (ulimit -v), to see where it fails.  duckreg: pip install duckreg.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import time

program, folder, limit = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[5]
persons, periods = int(float(sys.argv[3])), int(sys.argv[4])
address_space = int(float(sys.argv[6])) if len(sys.argv) > 6 else None
table, base = folder / "panel.npz", folder / "panel.db"


def write():
    import duckdb
    import numpy as np

    draw = np.random.default_rng(1)
    person = np.repeat(np.arange(persons), periods)
    period = np.tile(np.arange(periods), persons)
    w = (period >= draw.integers(periods // 2, 2 * periods, persons)[person]).astype(np.int64)
    y = draw.standard_normal(persons)[person] + draw.standard_normal(periods)[period] + w + draw.standard_normal(len(w))
    columns = {"y": y, "w": w, "person": person, "period": period}
    np.savez(table, **columns)
    with duckdb.connect(str(base)) as db:
        arrays = dict(columns)  # noqa: F841 (DuckDB finds it by name)
        db.execute("CREATE TABLE data AS SELECT * FROM arrays")


def fourge(*more):
    line = [program, "fe", "y ~ w | person + period", str(table), "--format", "json", *more]
    found = json.loads(subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)
    return {"beta": found["coefficients"][0]["estimate"], "se": found["coefficients"][0]["std_error"]}


def pyfixest():
    if address_space:
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    import numpy as np
    import pandas as pd
    import pyfixest as pf

    start = time.perf_counter()
    with np.load(table) as columns:
        fit = pf.feols("y ~ w | person + period", pd.DataFrame(dict(columns)), vcov="iid", copy_data=False, lean=True)
    return {"beta": float(fit.coef().iloc[0]), "se": float(fit.se().iloc[0]), "seconds": time.perf_counter() - start}


def duckreg(kind):
    import duckreg as peer

    options = {"db_name": str(base), "table_name": "data", "unit_col": "person", "time_col": "period", "seed": 1, "n_bootstraps": 0}
    start = time.perf_counter()
    if kind == "mundlak":
        model = peer.DuckMundlak(outcome_var="y", covariates=["w"], **options)
    else:
        model = peer.DuckDoubleDemeaning(outcome_var="y", treatment_var="w", **options)
    model.conn.execute(f"SET memory_limit='{limit}B'")
    model.fit()
    import numpy as np

    return {"point_estimate": np.ravel(model.point_estimate).tolist(), "beta": float(np.ravel(model.point_estimate)[1]),
            "compressed_rows": len(getattr(model, "df_compressed", ())), "seconds": time.perf_counter() - start}


JOBS = {
    "fourge": lambda: fourge("--memory-limit", limit, "--spool", str(folder)),
    "fourge in memory": fourge,
    "pyfixest": pyfixest,
    "duckreg mundlak": lambda: duckreg("mundlak"),
    "duckreg demeaning": lambda: duckreg("demeaning"),
}


def in_child(do):
    """do() in a process of its own: what it says, seconds, processor time and the largest process of that child."""
    reading, writing = os.pipe()
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        try:
            said = do()
        except BaseException as failure:  # the line says it
            said = {"failed": f"{type(failure).__name__}: {failure}"[:300]}
        usage = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
        cost = {"peak_bytes": max(u.ru_maxrss for u in usage) * 1024, "cpu_seconds": sum(u.ru_utime + u.ru_stime for u in usage)}
        os.write(writing, json.dumps(cost | (said or {})).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return {"wall_seconds": time.perf_counter() - start} | (json.loads(text) if text else {"failed": f"ended with status {status}"})


try:
    in_child(write)
    for name, do in JOBS.items():
        print(json.dumps({"job": "beyond_peers", "what": name, "persons": persons, "periods": periods, "limit": limit,
                          "table_bytes": table.stat().st_size, "load": os.getloadavg()[0]} | in_child(do)), flush=True)
finally:
    for left in (table, base, folder / "panel.db.wal"):
        left.unlink(missing_ok=True)
