"""One line of bench/results/fe_csv.jsonl from what `fourge fe --format json` wrote: python fe_csv_line.py JSON FILE"""
import json
import pathlib
import sys

with open(sys.argv[1]) as text:
    fit = json.load(text)
seconds, first = fit["seconds"], fit["coefficients"][0]
assert fit["solver"]["converged"]
print(json.dumps({
    "bench": "fe_csv", "peer": "fourge", "version": fit["version"], "file": pathlib.Path(sys.argv[2]).name,
    "n": fit["n"], "threads": fit["threads"], "read": round(seconds["read"], 4), "fit": round(seconds["total"], 4),
    "seconds": round(seconds["read"] + seconds["total"], 4), "x1": first["estimate"],
    "x1_std_error": first["std_error"], "audit": max(fit["solver"]["audit"])}))
