"""pyarrow's CSV reader on a file: python csv_pyarrow.py FILE [THREADS [REPEATS [BLOCK]]]

Reads the whole file into memory, as a file (page cache warm after the first call), and prints the best time for
blocks of 1, 4 and 16 MB, or of BLOCK bytes.
"""
import common
import pathlib
import sys

import pyarrow
import pyarrow.csv

path = pathlib.Path(sys.argv[1])
threads = int(sys.argv[2]) if len(sys.argv) > 2 else common.THREADS
repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 3
blocks = [int(sys.argv[4])] if len(sys.argv) > 4 else [1 << 20, 1 << 22, 1 << 24]
pyarrow.set_cpu_count(threads)
pyarrow.set_io_thread_count(threads)
for block in blocks:
    options = pyarrow.csv.ReadOptions(use_threads=threads > 1, block_size=block)
    seconds, table = common.best_of(lambda: pyarrow.csv.read_csv(path, read_options=options), repeats)
    size = path.stat().st_size
    common.report(**{"bench": "csv_read", "peer": "pyarrow", "threads": threads, "file": path.name, "bytes": size,
                     "rows": table.num_rows, "columns": table.num_columns, "block": block,
                     "seconds": round(seconds, 4), "gigabytes_per_second": round(size / seconds / 1e9, 3)})
