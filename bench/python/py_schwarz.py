"""Preconditioners of the demeaner on three and four effects: py_schwarz.py [ROWS [DESIGN ...]]

Three columns, one thread: the choice of `auto` beside blocks ("ac"), pairs ("schwarz") and the diagonal. Seconds are of the
processor, the least of two calls, set-up included. A way that does not converge in 1000 steps, or is stopped after LIMIT
seconds (600), has "converged": false.
"""
import pathlib
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
from common import LIMIT, report  # noqa: E402

import numpy as np  # noqa: E402

from fourge import fe  # noqa: E402

WAYS = {"auto": {}, "ac": {"precond": "ac"}, "schwarz": {"precond": "schwarz"}, "diag": {"method": "cg", "precond": "diag"}}


def movers(rng, workers, firms, move, reach):
    """Eight periods of workers who change the firm with probability `move`, to one at most `reach` away (None: any)."""
    firm = np.empty((workers, 8), int)
    firm[:, 0] = rng.integers(0, firms, workers)
    for t in range(1, 8):
        to = rng.integers(0, firms, workers) if reach is None else (firm[:, t - 1] + rng.integers(-reach, reach + 1, workers)) % firms
        firm[:, t] = np.where(rng.random(workers) < move, to, firm[:, t - 1])
    return np.repeat(np.arange(workers), 8), firm.ravel(), np.tile(np.arange(8), workers)


def worker_firm_year(n, rng):
    return movers(rng, n // 8, n // 160, 0.05, 3)


def worker_firm_occupation_year(n, rng):
    worker, firm, year = movers(rng, n // 8, n // 40, 0.02, None)
    return worker, firm, (firm * 7 + rng.integers(0, 3, len(firm))) % (n // 100), year


def difficult(n, rng):
    rows = np.arange(n)
    return rows // 10, rows % 10, rows % round(n / 230)


def firm_product_month(n, rng):
    firm = rng.integers(0, n // 30, n)
    return firm, (firm % 2000 + rng.geometric(0.3, n)) % 2000, rng.integers(0, 240, n)


def firm_product_quarter(n, rng):
    """Firms, products by month, firms by period."""
    firm, product, month = firm_product_month(n, rng)
    return firm, product * 240 + month, firm * 12 + month // 20


def gravity(n, rng):
    countries = 130
    exporter, importer, year = np.meshgrid(np.arange(countries), np.arange(countries), np.arange(max(4, n // countries**2)), indexing="ij")
    kept = (exporter != importer) & (rng.random(exporter.shape) < 0.7)
    exporter, importer, year = exporter[kept], importer[kept], year[kept]
    return exporter * 1000 + year, importer * 1000 + year, exporter * countries + importer


def three_chains(n, rng):
    rows = np.arange(n)
    return rows // 6, (rows + 2) // 5, (rows + 1) // 7


def nested(n, rng):
    worker, firm, year = movers(rng, n // 8, n // 160, 0.05, 3)
    return worker, firm, firm // 10, year * 50 + firm // 40 % 50


def path_and_random(n, rng):
    """Two effects that are one long path, and levels of a third that meet any of it."""
    rows = np.arange(n)
    return rng.integers(0, n // 3, n), rows // 6, (rows + 3) // 6


def grid_and_random(n, rng):
    side = int((n / 6) ** 0.5)
    node = rng.integers(0, side * side, n)
    return rng.integers(0, n // 3, n), node, (node + rng.choice([0, 1, side], n)) % (side * side)


def patient_doctor_clinic(n, rng, months=0):
    """Patients go to any doctor; a tenth of the doctors works in two clinics, which are neighbours."""
    doctors, clinics = n // 50, n // 250
    doctor, home = rng.integers(0, doctors, n), rng.integers(0, clinics, doctors)
    second = (home + 1 + rng.integers(0, 3, doctors)) % clinics
    clinic = np.where((doctor < doctors // 10) & (rng.random(n) < 0.3), second[doctor], home[doctor])
    return (rng.integers(0, n // 4, n), doctor, clinic) + ((rng.integers(0, months, n),) if months else ())


def patient_doctor_clinic_month(n, rng):
    return patient_doctor_clinic(n, rng, 36)


def household_store_product(n, rng):
    household, stores = rng.integers(0, n // 6, n), n // 600
    usual = rng.integers(0, stores, n // 6)[household]
    store = np.where(rng.random(n) < 0.9, usual, rng.integers(0, stores, n))
    return household, store, (store // 5 * 7 + rng.geometric(0.02, n)) % (n // 60)


DESIGNS = [worker_firm_year, worker_firm_occupation_year, difficult, firm_product_month, firm_product_quarter, gravity, three_chains,
           nested, path_and_random, grid_and_random, patient_doctor_clinic, patient_doctor_clinic_month, household_store_product]


def measure(x, codes, options):
    seconds = []
    for _ in range(2):
        start = time.process_time()
        _, found = fe.demean(x, codes, threads=1, time_limit=LIMIT, **options)
        seconds.append(time.process_time() - start)
    return {"method": found["method"], "iterations": max(found["iterations"]), "converged": all(found["converged"]),
            "cpu_seconds": float(f"{min(seconds):.3g}"), "bytes": found["plan_bytes"]}


def main(n=300_000, *names):
    warnings.simplefilter("ignore")  # of columns that do not converge: the line says so
    for design in DESIGNS:
        if names and design.__name__ not in names:
            continue
        rng = np.random.default_rng(1)
        codes = np.column_stack([np.unique(c, return_inverse=True)[1] for c in design(n, rng)]).astype(np.int32)
        x = rng.normal(size=(len(codes), 3)) + sum(rng.normal(size=(c.max() + 1, 3))[c] for c in codes.T)
        levels = [int(c.max()) + 1 for c in codes.T]
        for way, options in WAYS.items():
            report(bench="py_schwarz", design=design.__name__, n=len(codes), levels=levels, way=way, threads=1, **measure(x, codes, options))


if __name__ == "__main__":
    main(*[int(float(a)) for a in sys.argv[1:2]], *sys.argv[2:])
