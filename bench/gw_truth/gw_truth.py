"""The truth benchmark of Gromov-Wasserstein: problems with a known answer, ours beside the peers.

    PYTHONPATH=build/python PEERS/bin/python bench/gw_truth/gw_truth.py run quick                    minutes; JSON lines
    ... gw_truth.py run quick --only cloud,swiss --ways auto,vertex,pot --timeout 60                 a part
    ... gw_truth.py run "cloud:n=100,d=3,noise=0.02,seed=0" --ways auto                              one problem
    ... gw_truth.py best quick full                                                                   writes gw_truth/best.json
    ... gw_truth.py table bench/results/gw_truth.jsonl                                                a summary by family
    ... gw_truth.py misses FILE --ways auto                                                           what is above the best
    ... gw_truth.py fold FILE                                                                         lowers best.json to what lines have
    ... gw_truth.py names aside                                                                       problems of a set

PEERS is the environment of tools/peers.txt; torchgw and scanpy (for its 700 cells) are used where they are installed, the
former only where --ways names it.  Every run is a process of its own with two threads, after a small one
that warms up; a run below a second is done three times and the best is its time.  Lines say E, that of the product plan, the
share of points matched, FOSCTTM (the share of wrong targets nearer than the true one: 0 is right, .5 chance), the share of labels
transferred, the rank correlation of a coordinate, seconds, those of the processor (of both threads: what can be compared on a busy
machine), peak memory, the machine's load, and how far the plan's marginals were off before they were made right for E.  `best.json` holds the least energy that a descent from the truth and 50 starts of three descents found (an own
Frank-Wolfe, POT's and fourge's gromov_wasserstein; fewer above 150 points, as said there), or, where "starts" is empty, that of a
line that `fold` took; `table` compares with it and with all lines of the file.  A plan counts as best within 1 %
or 1e-6 of the product plan's energy, whichever is more.
"""
from __future__ import annotations

import argparse
import collections
import itertools
import json
import multiprocessing
import os
import pathlib
import resource
import subprocess
import sys
import time

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "peers")]
os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "1")  # seconds of every import
import common  # noqa: E402

import numpy as np  # noqa: E402

import truth_methods as methods  # noqa: E402
import truth_problems as problems  # noqa: E402

BEST = here / "best.json"
SETS = problems.SETS


# ---- figures -------------------------------------------------------------------------------------------------------


def largest(plan):
    return np.asarray(plan.argmax(1)).ravel()


def matched(problem, target):
    classes = np.arange(problem.shape[0]) if problem.classes is None else problem.classes
    shares = []
    for origin in problem.origins:
        known = np.zeros(problem.shape[0], bool)
        known[origin[origin >= 0]] = True
        got = origin[target]
        shares.append(((got >= 0) & (classes[got] == classes))[known].mean())
    return max(shares)


def foscttm(problem, plan):
    """Of the row i spread over the targets by its plan: the share of targets nearer than its true one."""
    spread = plan @ problem.d / problem.a[:, None]
    shares = []
    for origin in problem.origins[:8]:
        columns = np.flatnonzero(origin >= 0)
        rows = origin[columns]
        shares.append((spread[rows] < spread[rows, columns][:, None] - 1e-12).mean())
    return min(shares)


def quality(problem, plan):
    from scipy.stats import spearmanr

    out, target = {}, largest(plan)
    if problem.origins:
        out["matched"] = matched(problem, target)
        if problem.d is not None:
            out["foscttm"] = foscttm(problem, plan)
    if problem.labels:
        out["labels"] = (problem.labels[0] == problem.labels[1][target]).mean()
    if problem.coordinates:
        out["rho"] = abs(spearmanr(problem.coordinates[0], problem.coordinates[1][target])[0])
    return {key: round(float(value), 4) for key, value in out.items()}


def product_energy(problem):
    if problem.c is None:
        return None
    return methods.energy(problem, np.outer(problem.a, problem.b))


def number(value):
    return None if value is None else float(f"{value:.9g}")


def one(name, way, seed):
    """The figures of one way on one problem."""
    run = methods.WAYS[way][0]
    methods.quiet(run, problems.make("cloud:n=20,d=3,noise=0.02,seed=0"))  # imports, threads
    problem = problems.make(name)
    seconds = cpu = float("inf")
    for _ in range(3):
        start, spent = time.perf_counter(), time.process_time()
        plan, report, said = methods.quiet(run, problem)
        took = time.perf_counter() - start
        seconds, cpu = min(seconds, took), min(cpu, time.process_time() - spent)
        if took > 1:
            break
    n, m = problem.shape
    marginal = max(np.abs(np.asarray(plan.sum(1)).ravel() - problem.a).max() * n, np.abs(np.asarray(plan.sum(0)).ravel() - problem.b).max() * m)
    plan = methods.rounded(plan, problem.a, problem.b)
    notes = {"warnings": said} if said else {}
    for key in ("reason", "started_from"):
        if key in report:
            notes[key] = report[key]
    return {"n": n, "m": m, "seconds": float(f"{seconds:.4g}"), "cpu_seconds": float(f"{cpu:.4g}"), "energy": number(methods.energy(problem, plan)),
            "product": number(product_energy(problem)), **quality(problem, plan), "marginal": float(f"{marginal:.1e}"),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "load": round(os.getloadavg()[0], 1), **notes}


def into(pipe, work, *args):
    try:
        pipe.send(work(*args))
    except ModuleNotFoundError as missing:
        pipe.send({"note": f"{missing.name} is not installed"})
    except Exception as error:  # noqa: BLE001: a peer's failure is a figure
        pipe.send({"note": f"{type(error).__name__}: {str(error)[:200]}"})


def apart(work, *args, timeout):
    """work(*args) in a process of its own, not one of a fork: in those fourge computes by one thread."""
    ours, theirs = multiprocessing.Pipe(False)
    child = multiprocessing.get_context("spawn").Process(target=into, args=(theirs, work, *args))
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(timeout) else {"note": f"over {timeout:g} s"}
    except EOFError:
        return {"note": "the process ended without an answer"}
    finally:
        child.kill()
        child.join()


# ---- commands ------------------------------------------------------------------------------------------------------


def chosen(words, only):
    for word in words:
        for name in problems.names(word) if word in SETS else [word]:
            if not only or name.partition(":")[0] in only:
                yield (word if word in SETS else next((s for s in SETS if name in set(problems.names(s))), "none")), name


def size(name):
    n = int(name.partition("n=")[2].partition(",")[0])
    return n or 64


def has_points(name):
    return problems.make(name).x is not None


def level():
    return os.environ.get("FOURGE_ISA") or "as found"


def commit():
    """Of the library: COMMIT where it was built from another than the checkout has."""
    if os.environ.get("COMMIT"):
        return os.environ["COMMIT"]
    out = subprocess.run(["git", "-C", str(here), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    return out.stdout.strip() or None


def run(args):
    fixed = {"bench": "gw_truth", "command": " ".join(["gw_truth.py", *sys.argv[1:]]), "isa": level(), "commit": commit()}
    for which, name in chosen(args.what, args.only):
        points = apart(has_points, name, timeout=600)
        if isinstance(points, dict):
            common.report(**fixed, set=which, problem=name, **points)
            continue
        for way in args.ways:
            _, most, wants = methods.WAYS[way]
            if size(name) > (args.most or most) or wants and not points:
                continue
            figures = apart(one, name, way, 0, timeout=args.timeout)
            common.report(**fixed, set=which, family=name.partition(":")[0], problem=name, way=way, **figures)


def all_permutations(problem):
    c, d, n = problem.c, problem.d, problem.shape[0]
    return min(float(((c - d[np.ix_(p, p)]) ** 2).sum()) / n**2 for p in map(list, itertools.permutations(range(n))))


def search(name, counts):
    """The least energy of the starts that counts names for each descent, and who found it."""
    problem = problems.make(name)
    tries = []

    def note(who, plan):
        tries.append((methods.energy(problem, methods.rounded(plan, problem.a, problem.b)), who))

    truth = methods.true_plan(problem)
    if truth is not None:
        note("truth", methods.descend(problem, truth))
    descents = {"descent": methods.descend, "POT": from_pot, "fourge": from_ours}
    for number_, (word, start) in enumerate(methods.starts(problem, max(counts.values()))):
        for kind, count in counts.items():
            if number_ < count:
                note(f"{kind} from {word}", descents[kind](problem, start))
    if problem.square and problem.shape[0] <= 7:
        tries.append((all_permutations(problem), "all permutations"))
    best, who = min(tries)
    near = sum(e <= 1.01 * best + 1e-6 * product_energy(problem) for e, _ in tries)
    return {"energy": number(best), "by": who, "starts": counts, "reached": f"{near} of {len(tries)}",
            "product": number(product_energy(problem)), "truth": number(tries[0][0]) if truth is not None else None}


def from_pot(problem, start):
    import ot

    return ot.gromov.gromov_wasserstein(problem.c, problem.d, problem.a, problem.b, G0=start, max_iter=500)


def from_ours(problem, start):
    import fourge.gw

    return fourge.gw.gromov_wasserstein(problem.c, problem.d, problem.a, problem.b, G0=start)


def read_best():
    return json.loads(BEST.read_text()) if BEST.exists() else {}


def starts_of(n, args):
    """Of each descent: 50 up to 150 points, 20 up to 300, fewer above."""
    count = args.starts or (50 if n <= 150 else 20 if n <= 300 else 10 if n <= 500 else 3)
    return {"descent": count, "POT": count if n <= 1000 else 1, "fourge": count if args.ours is None else min(args.ours, count)}


def best(args):
    """Searches where best.json has nothing, or a line's energy alone; with --again everywhere."""
    for _, name in chosen(args.what, args.only):
        if size(name) > 3000 or read_best().get(name, {}).get("starts") and not args.again:
            continue
        found = apart(search, name, starts_of(size(name), args), timeout=args.timeout)
        if "energy" in found:
            keep(name, found)
        else:
            print(name, found, file=sys.stderr)


def keep(name, new):
    """Into best.json: the lower energy, and the counts of the longer search."""
    known = read_best()
    old = known.get(name)
    if old and old["energy"] < new["energy"]:
        new = {**new, "energy": old["energy"], "by": old["by"]}
    if old and sum(old["starts"].values()) > sum(new["starts"].values()):
        new["starts"], new["reached"] = old["starts"], old["reached"]
    known[name] = new
    BEST.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(known[k])}" for k in sorted(known)) + "\n}\n")


def fold(args):
    """Lowers best.json to what the lines have, of plans whose marginals held before they were made right."""
    for line in lines(args.files):
        if line.get("energy") is not None and line["marginal"] < 1e-6 and (not args.set or line["set"] in args.set):
            new = {"energy": line["energy"], "by": line["way"], "starts": {}, "reached": None, "product": line["product"], "truth": None}
            old = read_best().get(line["problem"])
            if old is None or line["energy"] < old["energy"]:
                keep(line["problem"], {**(old or new), "energy": new["energy"], "by": new["by"]})


def lines(files):
    for file in files:
        with open(file) as text:
            for line in text:
                line = json.loads(line)
                if "problem" in line:
                    yield line


def gathered(args):
    """{problem: {way: its last line}}, {problem: least energy known}."""
    runs, least = collections.defaultdict(dict), {name: b["energy"] for name, b in read_best().items()}
    for line in lines(args.files):
        if args.set and line.get("set") not in args.set or "way" not in line:
            continue
        runs[line["problem"]][line["way"]] = line
        if line.get("energy") is not None and line["marginal"] < 1e-6:
            least[line["problem"]] = min(least.get(line["problem"], np.inf), line["energy"])
    return runs, least


def is_best(line, least):
    return line["energy"] <= 1.01 * least + 1e-6 * (line["product"] or 1)


def table(args):
    """By family and way: share of problems within 1 % of the best, mean of matched (or label, rho), geometric mean of seconds."""
    runs, least = gathered(args)
    ways = [w for w in methods.WAYS if any(w in r for r in runs.values()) and (not args.ways or w in args.ways)]
    families = list(dict.fromkeys(name.partition(":")[0] for name in runs))
    print("| family (problems) | " + " | ".join(ways) + " |\n|---|" + "---|" * len(ways))
    for kind in [*families, "all"]:
        inside = [name for name in runs if kind in ("all", name.partition(":")[0])]
        print(f"| {kind} ({len(inside)}) | " + " | ".join(cell([(runs[p].get(w), least.get(p)) for p in inside]) for w in ways) + " |")
    print("\nShare of problems within 1 % of the least energy known, mean share matched, geometric mean of seconds; * some failed "
          "or took too long and count as not within.")


def cell(entries):
    entries = [(line, e) for line, e in entries if line is not None]
    if not entries:
        return ""
    good = [(line, e) for line, e in entries if line.get("energy") is not None]
    reached = np.mean([line.get("energy") is not None and is_best(line, e) for line, e in entries])
    hits = [line.get("matched", line.get("rho")) for line, _ in good if line.get("matched", line.get("rho")) is not None]
    words = [f"{reached:.2f}", f"{np.mean(hits):.2f}" if hits else "-"]
    if good:
        words.append(f"{np.exp(np.mean([np.log(line['seconds']) for line, _ in good])):.2g}s")
    return " ".join(words) + ("*" if len(good) < len(entries) else "")


def misses(args):
    """Each problem where a way ends above the best, with the command that runs it again."""
    runs, least = gathered(args)
    for name, found in runs.items():
        for way in args.ways or ["auto"]:
            line = found.get(way)
            if line is None:
                continue
            if line.get("energy") is None:
                print(f"{way:12} {name}  {line.get('note')}")
            elif not is_best(line, least[name]):
                most = max(((r.get("matched", 0), w) for w, r in found.items() if r.get("energy") is not None), default=(0, ""))
                who = min((r["energy"], w) for w, r in found.items() if r.get("energy") is not None)
                print(f"{way:12} {name}  E {line['energy']:.6g}, best {least[name]:.6g} ({line['energy'] / max(least[name], 1e-300):.4g}x, "
                      f"{who[1]} {who[0]:.6g}); matched {line.get('matched', line.get('rho'))}, most {most[0]} by {most[1]}; {line['seconds']} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    words = lambda text: text.split(",")  # noqa: E731
    for work, where, more in ((run, "what", ()), (best, "what", ()), (table, "files", ()), (misses, "files", ()), (fold, "files", ()), (print_names, "what", ())):
        command = commands.add_parser(work.__name__.replace("print_", ""), help=work.__doc__)
        command.add_argument(where, nargs="+", help="sets (%s) or names of problems" % ", ".join(SETS) if where == "what" else "files of lines")
        command.add_argument("--only", type=words, default=[], help="families")
        command.add_argument("--ways", type=words, default=methods.DEFAULT if work is run else [], help=", ".join(methods.WAYS))
        command.add_argument("--timeout", type=float, default=600, help="seconds a run may take")
        command.add_argument("--most", type=int, help="points at most, in place of each way's own bound")
        command.add_argument("--starts", type=int, help="of each descent")
        command.add_argument("--ours", type=int, help="starts of fourge, where they shall be fewer")
        command.add_argument("--again", action="store_true", help="search also where best.json has the energy of a search")
        command.add_argument("--set", type=words, default=[], help="lines of these sets alone")
        command.set_defaults(work=work)
    args = parser.parse_args()
    args.work(args)


def print_names(args):
    for which, name in chosen(args.what, args.only):
        print(which, name)


if __name__ == "__main__":
    main()
