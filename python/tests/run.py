"""Runs tests and prints TAP: python run.py [FOLDER BELOW THIS ONE [PART OF A NAME]]; `peers` needs the peers installed."""

import importlib.metadata
import pathlib
import signal
import sys
import unittest

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and wait for ever
here = pathlib.Path(__file__).parent / (sys.argv[1] if len(sys.argv) > 1 else ".")
pattern = sys.argv[2] if len(sys.argv) > 2 else ""


def cases(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases(item)
        elif pattern in item.id():
            yield item


PEERS = ("numpy", "pandas", "polars", "pyarrow", "duckdb", "pyfixest", "linearmodels", "python-docx", "torch", "gpytorch", "botorch", "pytorch_optimizer", "scikit-learn",
         "POT", "anndata", "matplotlib", "pyopencl", "tqdm", "abi3audit")


def versions():
    """The peers that are installed, as 'name version'."""
    for name in PEERS:
        try:
            yield f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            pass


found = list(cases(unittest.defaultTestLoader.discover(str(here))))
print(f"1..{len(found)}")
print("# peers: " + ", ".join(versions()))
failed = 0
for number, case in enumerate(found, 1):
    result = unittest.TestResult()
    case.run(result)
    name = case.id()
    for _, trace in result.failures + result.errors:
        print("".join("# " + line + "\n" for line in trace.splitlines()), end="")
    if result.skipped:
        print(f"ok {number} - {name} # SKIP {result.skipped[0][1]}")
    elif result.wasSuccessful():
        print(f"ok {number} - {name}")
    else:
        failed += 1
        print(f"not ok {number} - {name}")
    sys.stdout.flush()
print(f"{len(found) - failed} passed, {failed} failed")
sys.exit(failed > 0)
