"""Regressions beyond memory, beside the same in memory: beyond.py PROGRAM FOLDER ROWS LIMIT [unsorted] [no-memory].

Writes ROWS of a panel (10 rows a person, a firm for 20 persons, 2 % of the rows elsewhere) as FOLDER/beyond.npz, fits
y ~ x | person + firm with clusters by firm under --memory-limit LIMIT, and, but for `no-memory`, without it; the results have to be
the same but for times and sizes.  Prints JSON lines: seconds, peak of the process by getrusage, and what reading the file once takes.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

program, folder, rows, limit = sys.argv[1], pathlib.Path(sys.argv[2]), int(float(sys.argv[3])), sys.argv[4]
unsorted, in_memory = "unsorted" in sys.argv[5:], "no-memory" not in sys.argv[5:]
path = folder / "beyond.npz"


def write():
    draw = np.random.default_rng(1)
    persons, firms = max(rows // 10, 2), max(rows // 200, 2)
    p = np.arange(rows) % persons if unsorted else np.arange(rows) * persons // rows
    f = draw.integers(0, firms, persons)[p]
    moved = draw.random(rows) < 0.02
    f[moved] = draw.integers(0, firms, int(moved.sum()))
    x = draw.standard_normal(rows) + 0.1 * (p % 7)
    y = 2 * x + p % 11 + f % 5 + draw.standard_normal(rows)
    np.savez(path, y=y, x=x, p=p, f=f)


def drop_from_cache():
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)


def read_seconds():
    drop_from_cache()
    start, block = time.perf_counter(), bytearray(1 << 24)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(block):
            pass
    return time.perf_counter() - start


def fit(words):
    drop_from_cache()
    line = [program, "fe", "y ~ x | p + f", str(path), "--vcov", "cluster=f", "--format", "json", *words]
    start = time.perf_counter()
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    result = json.loads(child.stdout.read())
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{line} ended with {status}")
    return result, {"seconds": time.perf_counter() - start, "cpu_seconds": usage.ru_utime + usage.ru_stime,
                    "peak_bytes": usage.ru_maxrss * 1024, "audit": max(result["solver"]["audit"]), "phases": result["seconds"]}


def numbers(result):
    """What has to be the same: all but times, sizes and warnings."""
    solver = {k: v for k, v in result["solver"].items() if not k.endswith("_bytes")}
    return {k: v for k, v in result.items() if k not in ("seconds", "peak_bytes", "warnings")} | {"solver": solver}


writer = os.fork()  # what this process holds would count as a peak of its children
if writer == 0:
    write()
    os._exit(0)
os.waitpid(writer, 0)
about = {"job": "beyond", "rows": rows, "order": "unsorted" if unsorted else "sorted", "file_bytes": path.stat().st_size}
found, cost = fit(["--memory-limit", limit, "--spool", str(folder)])
print(json.dumps(about | {"limit": limit, "read_seconds": read_seconds(), **cost}), flush=True)
if in_memory:
    other, cost = fit([])
    print(json.dumps(about | {"limit": None, "same_bits": numbers(found) == numbers(other), **cost}), flush=True)
path.unlink()
