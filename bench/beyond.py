"""Regressions beyond memory, beside the same in memory: beyond.py PROGRAM FOLDER ROWS LIMIT [npz|npy|csv] [unsorted] [no-memory].

Writes ROWS of a panel (10 rows a person, a firm for 20 persons, 2 % of the rows elsewhere; two columns and two effects) into FOLDER, as an
archive of columns, one matrix of float64, or text (by pyarrow); fits y ~ x | person + firm with clusters by firm under --memory-limit
LIMIT, and, but for `no-memory`, without it; the results have to be the same but for times and sizes.  The page cache is dropped first.
Prints JSON lines: seconds, the peak of the process by getrusage, bytes that went to and from the disk, the time that reading the file
once takes, and `read_ratio`, seconds over that time times the bytes that the run read in all (the file where that is more).  The files
are deleted at the end; ROWS of 1e8 take 3.2 GB (npz, npy) or about 5 GB (csv), and twice that while they are made.
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import zipfile

import numpy as np

program, folder, rows, limit = sys.argv[1], pathlib.Path(sys.argv[2]), int(float(sys.argv[3])), sys.argv[4]
words = sys.argv[5:]
kind = next((w for w in words if w in ("npz", "npy", "csv")), "npz")
unsorted, in_memory = "unsorted" in words, "no-memory" not in words
path = folder / f"beyond.{kind}"
formula = "c1 ~ c2 | c3 + c4" if kind == "npy" else "y ~ x | p + f"
cluster = "c4" if kind == "npy" else "f"
CHUNK = 1 << 20


def chunks():
    """{name: values} of CHUNK rows each, the same for every kind of file."""
    draw = np.random.default_rng(1)
    persons, firms = max(rows // 10, 2), max(rows // 200, 2)
    firm_of = draw.integers(0, firms, persons, dtype=np.int32)
    for begin in range(0, rows, CHUNK):
        i = np.arange(begin, min(begin + CHUNK, rows))
        p = i % persons if unsorted else i * persons // rows
        f = firm_of[p].astype(np.int64)
        moved = draw.random(len(i)) < 0.02
        f[moved] = draw.integers(0, firms, int(moved.sum()))
        x = draw.standard_normal(len(i)) + 0.1 * (p % 7)
        yield begin, {"y": 2 * x + p % 11 + f % 5 + draw.standard_normal(len(i)), "x": x, "p": p, "f": f}


def write_npz():
    dtypes = {"y": np.float64, "x": np.float64, "p": np.int64, "f": np.int64}
    parts = {name: folder / f"beyond-{name}.npy" for name in dtypes}
    arrays = {name: np.lib.format.open_memmap(part, "w+", dtypes[name], (rows,)) for name, part in parts.items()}
    for begin, chunk in chunks():
        for name, values in chunk.items():
            arrays[name][begin : begin + len(values)] = values
    arrays.clear()
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.write(part, f"{name}.npy")
            part.unlink()


def write_npy():
    matrix = np.lib.format.open_memmap(path, "w+", np.float64, (rows, 4), fortran_order=True)
    for begin, chunk in chunks():
        for k, values in enumerate(chunk.values()):
            matrix[begin : begin + len(values), k] = values


def write_csv():
    import pyarrow
    import pyarrow.csv

    writer = None
    for _, chunk in chunks():
        table = pyarrow.table(chunk)
        writer = writer or pyarrow.csv.CSVWriter(path, table.schema)
        writer.write(table)
    writer.close()


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


def fit(more):
    drop_from_cache()
    line = [program, "fe", formula, str(path), "--vcov", f"cluster={cluster}", "--format", "json", *more]
    start = time.perf_counter()
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    result = json.loads(child.stdout.read())
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{line} ended with {status}")
    return result, {"seconds": time.perf_counter() - start, "cpu_seconds": usage.ru_utime + usage.ru_stime,
                    "peak_bytes": usage.ru_maxrss * 1024, "bytes_in": usage.ru_inblock * 512, "bytes_out": usage.ru_oublock * 512,
                    "audit": max(result["solver"]["audit"]), "phases": result["seconds"]}


def numbers(result):
    """What has to be the same: all but times, sizes and warnings."""
    solver = {k: v for k, v in result["solver"].items() if not k.endswith("_bytes")}
    return {k: v for k, v in result.items() if k not in ("seconds", "peak_bytes", "warnings")} | {"solver": solver}


def job():
    size = path.stat().st_size
    about = {"job": "beyond", "rows": rows, "kind": kind, "order": "unsorted" if unsorted else "sorted", "file_bytes": size,
             "load": os.getloadavg()[0]}
    found, cost = fit(["--memory-limit", limit, "--spool", str(folder)])
    once = read_seconds()
    ratio = cost["seconds"] / (once * max(cost["bytes_in"], size) / size)
    print(json.dumps(about | {"limit": limit, "read_seconds": once, "read_ratio": ratio, **cost}), flush=True)
    if in_memory:
        other, cost = fit([])
        print(json.dumps(about | {"limit": None, "same_bits": numbers(found) == numbers(other), **cost}), flush=True)


try:
    writer = os.fork()  # what this process holds would count as a peak of its children
    if writer == 0:
        {"npz": write_npz, "npy": write_npy, "csv": write_csv}[kind]()
        os._exit(0)
    if os.waitpid(writer, 0)[1]:
        sys.exit("the data could not be written")
    job()
finally:
    for left in (path, *(folder / f"beyond-{name}.npy" for name in "yxpf")):
        left.unlink(missing_ok=True)
