#!/usr/bin/env python3
"""How long a stop takes: stops.py PROGRAM [TRIALS [NAME ...]], a JSON line for each command.

A command is run once to its end and then TRIALS times (200) with SIGINT after a random part of that time; seconds are from the
signal to the end of the process, those of runs that were done before the signal do not count.  within: the share that ended in
0.1 s.  again: the same for the second of two signals, 20 ms apart, which ends at once.  Needs a quiet machine.
"""

import array
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

LIMIT, LONGEST = 0.1, 20.0  # of a stop; of the part of a run that signals fall into

COMMANDS = {
    "demean": "demean --columns difficult6/columns.npy --codes difficult6/codes.npy --out r.npy",
    "demean lsmr": "demean --columns simple6/columns.npy --codes simple6/codes.npy --out r.npy --method lsmr",
    "demean, 1e7 rows": "demean --columns simple7/columns.npy --codes simple7/codes.npy --out r.npy",
    "gw paths": "gw paths points.npy --out p.npy",
    "gw paths, dense": "gw paths dense.npy --k 900 --out p.npy",
    "gp fit": "gp fit gp.csv --y y --kernel scale*rbf(ard)+noise --starts 4",
    "soap bench": "soap bench",
    "soap train": "soap train digits --steps 300",
    "demean, 400 MB": "demean --columns difficult6/columns.npy --codes difficult6/codes.npy --out r.npy"
                      " --memory-limit 400M",
}


def write_points(path, rng, n):
    """n points of 3 normal coordinates, a NumPy file."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({n}, 3), }}"
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        array.array("d", (rng.gauss(0, 1) for _ in range(3 * n))).tofile(file)


def make_data(program, folder, names):
    """The inputs of the commands; panels DESIGN6 and DESIGN7 of 1e6 and 1e7 rows where a command of names reads them."""
    for panel in ("difficult6", "simple6", "simple7"):
        if any(panel in COMMANDS[name] for name in names):
            words = f"simulate {panel[:-1]} --rows 1e{panel[-1]} --seed 4 --out {panel} -q"
            subprocess.run([program, *words.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    rng = random.Random(1)
    write_points(os.path.join(folder, "points.npy"), rng, 6000)
    write_points(os.path.join(folder, "dense.npy"), rng, 3000)
    with open(os.path.join(folder, "gp.csv"), "w") as file:
        file.write("a,b,y\n" + "".join(f"{rng.random():.6f},{rng.random():.6f},{rng.random():.6f}\n" for _ in range(1500)))


def start(words, folder):
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def whole_time(words, folder):
    began = time.monotonic()
    run = start(words, folder)
    try:
        run.wait(LONGEST)
    except subprocess.TimeoutExpired:
        run.kill()
    code = run.wait()
    if code not in (0, -signal.SIGKILL):
        raise SystemExit(f"{' '.join(words)}: exit code {code}")
    return time.monotonic() - began


def stop_time(words, folder, delay, signals):
    """Seconds from the last signal to the end; None where the run was done before it."""
    run = start(words, folder)
    time.sleep(delay)
    for number in range(signals):
        if number:
            time.sleep(0.02)  # two that wait for a process to be scheduled are one
        if run.poll() is not None:
            return None
        sent = time.monotonic()
        run.send_signal(signal.SIGINT)
    run.wait()
    return time.monotonic() - sent


def measure(words, folder, trials):
    whole = whole_time(words, folder)
    line = {"whole": round(whole, 3)}
    for name, signals in (("stop", 1), ("again", 2)):
        delays = (random.uniform(0.02, 0.95 * whole) for _ in range(trials))
        seconds = sorted(s for s in (stop_time(words, folder, d, signals) for d in delays) if s is not None)
        if seconds:
            line[name] = {"trials": len(seconds), "median": round(seconds[len(seconds) // 2], 4),
                          "p99": round(seconds[int(0.99 * (len(seconds) - 1))], 4), "most": round(seconds[-1], 4),
                          "within": round(sum(s <= LIMIT for s in seconds) / len(seconds), 3)}
    return line


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    program, trials = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    names = sys.argv[3:] or list(COMMANDS)
    random.seed(1)
    os.environ.setdefault("FOURGE_DATA", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))
    with tempfile.TemporaryDirectory() as folder:
        make_data(program, folder, names)
        for name in names:
            words = [program, *COMMANDS[name].split(), "-q"]
            print(json.dumps({"command": name, **measure(words, folder, trials)}), flush=True)


if __name__ == "__main__":
    main()
