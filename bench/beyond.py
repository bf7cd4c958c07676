"""What runs beyond memory, beside the same in memory: beyond.py PROGRAM FOLDER ROWS LIMIT [npz|npy|csv] [unsorted|shuffled] [no-memory] [WHAT].

Writes ROWS of a panel (10 rows a person, a firm for 20 persons, 2 % of the rows elsewhere; two columns and two effects) into FOLDER, as an
archive of columns, one matrix of float64, or text (by pyarrow), by person, by turns (unsorted) or in random order, and runs on it, WHAT:

    fe       y ~ x | person + firm with clusters by firm
    poisson  the same of a count that is hardly ever 0
    models   two outcomes by one and by two regressors, four fits in one call
    hc2      exact leverages, of persons and 500 regions
    demean   the two columns and both codes as arrays of their own (whatever kind is asked for)

under --memory-limit LIMIT, and, but for `no-memory`, without it; the results have to be the same but for times and sizes.  The page cache
is dropped first.  Prints JSON lines: seconds, the peak of the process by getrusage, faults of pages, bytes that went to and from the disk,
the time that reading the file once takes, and `read_ratio`, seconds over that time times the bytes that the run read in all (the file where
that is more).  The files are deleted at the end; ROWS of 1e8 take 3.2 GB (npz, npy) or about 5 GB (csv), and twice that while they are made.
"""

import hashlib
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
what = next((w for w in words if w in ("fe", "poisson", "models", "hc2", "demean")), "fe")
kind = "npy" if what == "demean" else next((w for w in words if w in ("npz", "npy", "csv")), "npz")
order, in_memory = next((w for w in words if w in ("unsorted", "shuffled")), "sorted"), "no-memory" not in words
path = folder / f"beyond.{kind}"
codes_path, out = folder / "beyond-codes.npy", folder / "beyond-out.npy"
y, x, p, f = ("c1", "c2", "c3", "c4") if kind == "npy" else "yxpf"
JOBS = {"fe": [f"{y} ~ {x} | {p} + {f}", "--vcov", f"cluster={f}"],
        "poisson": [f"{y} ~ {x} | {p} + {f}", "--vcov", f"cluster={f}", "--family", "poisson"],
        "models": [f"c({y}, {x} * {y}) ~ csw({x}, exp({x})) | {p} + {f}", "--vcov", f"cluster={f}"],
        "hc2": [f"{y} ~ {x} | {p} + {f}", "--vcov", "hc2"]}
CHUNK = 1 << 20


def chunks():
    """{name: values} of CHUNK rows each, the same for every kind of file."""
    draw = np.random.default_rng(1)
    persons, firms = max(rows // 10, 2), max(rows // 200, 2)
    firm_of = draw.integers(0, firms, persons, dtype=np.int32)
    place = draw.permutation(rows) if order == "shuffled" else None
    for begin in range(0, rows, CHUNK):
        i = np.arange(begin, min(begin + CHUNK, rows))
        p = i % persons if order == "unsorted" else (i if place is None else place[i]) * persons // rows
        f = firm_of[p].astype(np.int64)
        moved = draw.random(len(i)) < 0.02
        f[moved] = draw.integers(0, firms, int(moved.sum()))
        x = draw.standard_normal(len(i)) + 0.1 * (p % 7)
        y = 2 * x + p % 11 + f % 5 + draw.standard_normal(len(i))
        if what == "poisson":
            y = draw.poisson(np.exp(3 + 0.2 * x + 0.1 * (p % 11) - 0.1 * (f % 5))).astype(np.float64)
        yield begin, {"y": y, "x": x, "p": p, "f": f % 500 if what == "hc2" else f}


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


def write_arrays():
    columns = np.lib.format.open_memmap(path, "w+", np.float64, (rows, 2))
    codes = np.lib.format.open_memmap(codes_path, "w+", np.int32, (rows, 2))
    for begin, chunk in chunks():
        end = begin + len(chunk["y"])
        columns[begin:end, 0], columns[begin:end, 1] = chunk["y"], chunk["x"]
        codes[begin:end, 0], codes[begin:end, 1] = chunk["p"], chunk["f"]


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


def line_of(more):
    if what == "demean":
        return [program, "demean", "--columns", str(path), "--codes", str(codes_path), "--out", str(out), "--format", "json", *more]
    return [program, "fe", JOBS[what][0], str(path), *JOBS[what][1:], "--format", "json", *more]


def run(more):
    drop_from_cache()
    line = line_of(more)
    start = time.perf_counter()
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    result = json.loads(child.stdout.read())
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{line} ended with {status}")
    cost = {"seconds": time.perf_counter() - start, "cpu_seconds": usage.ru_utime + usage.ru_stime, "system_seconds": usage.ru_stime,
            "peak_bytes": usage.ru_maxrss * 1024, "faults": usage.ru_minflt, "faults_of_disk": usage.ru_majflt,
            "bytes_in": usage.ru_inblock * 512, "bytes_out": usage.ru_oublock * 512}
    models = result.get("models", [result])
    audits = [a for m in models for a in (m["audit"] if what == "demean" else m["solver"]["audit"])]
    if what == "demean":
        with open(out, "rb") as file:
            result["values"] = hashlib.file_digest(file, "sha256").hexdigest()
    return result, cost | {"audit": max(audits), "phases": result.get("seconds")}


def numbers(result):
    """What has to be the same: all but times, sizes and warnings."""
    if isinstance(result, dict):
        return {k: numbers(v) for k, v in result.items() if k not in ("seconds", "warnings") and not k.endswith("_bytes")}
    return [numbers(v) for v in result] if isinstance(result, list) else result


def job():
    size = path.stat().st_size
    about = {"job": "beyond", "what": what, "rows": rows, "kind": kind, "order": order, "file_bytes": size,
             "load": os.getloadavg()[0]}
    found, cost = run(["--memory-limit", limit, "--spool", str(folder)])
    once = read_seconds()
    ratio = cost["seconds"] / (once * max(cost["bytes_in"], size) / size)
    print(json.dumps(about | {"limit": limit, "read_seconds": once, "read_ratio": ratio, **cost}), flush=True)
    if in_memory:
        other, cost = run([])
        print(json.dumps(about | {"limit": None, "same_bits": numbers(found) == numbers(other), **cost}), flush=True)


try:
    writer = os.fork()  # what this process holds would count as a peak of its children
    if writer == 0:
        write = {"npz": write_npz, "npy": write_npy, "csv": write_csv}[kind]
        write_arrays() if what == "demean" else write()
        os._exit(0)
    if os.waitpid(writer, 0)[1]:
        sys.exit("the data could not be written")
    job()
finally:
    for left in (path, codes_path, out, *(folder / f"beyond-{name}.npy" for name in "yxpf")):
        left.unlink(missing_ok=True)
