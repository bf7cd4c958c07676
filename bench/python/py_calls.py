"""What a call from Python costs beside the work: tiny inputs, so that nearly all of the time is overhead.

    PYTHONPATH=build/python PEERS/bin/python bench/python/py_calls.py

Each figure is the median of batches of 200 calls, in microseconds; `fresh` makes a context in every call, as the plain
functions do, `again` calls an object that is there.  `import` is a fresh interpreter with and without fourge.
"""
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
from common import report  # noqa: E402

import numpy as np  # noqa: E402


from fourge import _fourge, fe, gp  # noqa: E402


def microseconds(call, batches=15, repeats=200):
    call()
    times = []
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        times.append((time.perf_counter() - start) / repeats * 1e6)
    return sorted(times)[batches // 2]


def start_up(code):
    times = []
    for _ in range(11):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


context = _fourge.Context({"threads": 1}, None)
k, r = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, 2.0])
q, ld, a = np.empty(()), np.empty(()), np.empty(2)
x = np.arange(8.0).reshape(4, 2)
codes = np.array([0, 0, 1, 1], dtype=np.int32)
process = gp.GP(x, x[:, 0], "1*rbf(l=1) + noise(0.1)", threads=1)
theta = process.theta
point = x[:1]


def evaluate():
    process.theta = theta  # what is known of the value is forgotten
    return process.log_likelihood()


np.testing.assert_allclose(gp.invquad_logdet(k, r)[1], np.log(1.75))
CALLS = {
    "context": lambda: _fourge.Context({"threads": 1}, None),
    "extension invquad_logdet, again": lambda: _fourge.invquad_logdet(context, k, r, q, ld, a, None),
    "gp.invquad_logdet, fresh": lambda: gp.invquad_logdet(k, r, threads=1),
    "GP.log_likelihood n=4, again": evaluate,
    "GP.predict one point, again": lambda: process.predict(point),
    "fe.demean 4 rows, fresh": lambda: fe.demean(x, codes, threads=1),
    "numpy.linalg.slogdet, the peer of a small call": lambda: np.linalg.slogdet(k),
}
for name, call in CALLS.items():
    report(bench="py_calls", call=name, microseconds=round(microseconds(call), 2))
bare, ours = start_up("pass"), start_up("import fourge")
report(bench="py_calls", call="import fourge", milliseconds=round((ours - bare) * 1e3, 1), interpreter_ms=round(bare * 1e3, 1))
