"""What a call from Python costs beside the work: tiny inputs, so that nearly all of the time is overhead.

    PYTHONPATH=build/python PEERS/bin/python bench/python/py_calls.py

Each figure is the median of batches of 200 calls, in microseconds; `fresh` makes a context in every call, as the plain
functions do, `again` calls an object that is there.  Where `build/bench_calls` was built (cmake --build build --target
bench_calls), `library_microseconds` is the same call through the C interface, in the same run, and `overhead_microseconds`
what Python adds.  `import` is a fresh interpreter with and without fourge.
Where torch is installed, a step of fourge.torch.SOAP over one parameter and the library's own part of it; `--interrupt`
measures instead how soon after Ctrl-C each solver has ended (limit: 200 ms).
"""
import _thread
import json
import pathlib
import subprocess
import sys
import threading
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
from common import report  # noqa: E402

import numpy as np  # noqa: E402


import fourge  # noqa: E402
from fourge import _fourge, fe, gp, gw, soap  # noqa: E402


def microseconds(call, batches=15, repeats=200):
    call()
    times = []
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        times.append((time.perf_counter() - start) / repeats * 1e6)
    return sorted(times)[batches // 2]


def in_c():
    """{call: microseconds} of the same calls in C; empty where the program was not built."""
    program = pathlib.Path(fourge.__file__).parents[2] / "bench_calls"
    if not program.exists():
        return {}
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line["call"]: line["microseconds"] for line in map(json.loads, lines)}


def start_up(code):
    times = []
    for _ in range(11):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def interrupts():
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python/tests"))
    from test_steady import CtrlC

    warnings.simplefilter("ignore")
    at = []
    for name, run in CtrlC.long_runs().items():
        threading.Timer(0.5, lambda: (at.append(time.perf_counter()), _thread.interrupt_main())).start()
        try:
            run()
        except KeyboardInterrupt:
            report(bench="py_calls", interrupt=name, milliseconds=round((time.perf_counter() - at[-1]) * 1e3, 1))


if "--interrupt" in sys.argv:
    interrupts()
    sys.exit()
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
weights, slope = np.ones((3, 3), np.float32), np.ones((3, 3), np.float32)
small = np.abs(x[:, :1] - x[:, 0])
optimizer = soap.SOAP([weights], precondition_frequency=10**6, threads=1)
graph = gw.Graph.knn(x, 2, threads=1)
sent = gw.transport(small, epsilon=0.5, threads=1)
CALLS |= {
    "GP.gradient n=4, again": process.gradient,
    "GP.loo n=4, again": process.loo,
    "fe.lsmr 4 x 2, fresh": lambda: fe.lsmr(((4, 2), [0, 2, 4, 6, 8], [0, 1] * 4, x.ravel()), x[:, 0], threads=1),
    "gw.transport 4 x 4, fresh": lambda: gw.transport(small, epsilon=0.5, max_iter=1, threads=1),
    "gw.energy 4 x 4, fresh": lambda: gw.energy(small, small, np.full((4, 4), 1 / 16), threads=1),
    "Graph.paths 4 nodes, again": graph.paths,
    "Transport.rows 4 x 4, again": sent.plan,
    "soap.SOAP.step 3 x 3, again": lambda: optimizer.step([slope]),
}
warnings.simplefilter("ignore")
library = in_c()
for name, call in CALLS.items():
    us = microseconds(call)
    more = {"library_microseconds": library[name], "overhead_microseconds": round(us - library[name], 2)} if name in library else {}
    report(bench="py_calls", call=name, microseconds=round(us, 2), **more)
bare, ours = start_up("pass"), start_up("import fourge")
report(bench="py_calls", call="import fourge", milliseconds=round((ours - bare) * 1e3, 1), interpreter_ms=round(bare * 1e3, 1))
try:
    import torch
except ImportError:
    sys.exit()
from fourge.torch import SOAP  # noqa: E402

torch.set_num_threads(1)
parameter = torch.nn.Parameter(torch.ones(4, 4))
parameter.grad = torch.ones(4, 4)
mine, peer = SOAP([parameter], precondition_frequency=10, threads=1), torch.optim.SGD([parameter], lr=0.0)
inside = []
for _ in range(2000):
    mine.step()
    inside.append(mine.report["seconds"])
report(bench="py_calls", call="torch.SOAP.step 4 x 4, again", microseconds=round(microseconds(mine.step), 2),
       library_microseconds=round(sorted(inside)[1000] * 1e6, 2))
report(bench="py_calls", call="torch.optim.SGD.step 4 x 4, for scale", microseconds=round(microseconds(peer.step), 2))
