"""The program's JSON and the package's results have the same keys, of the same types, on the same small problems."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import warnings

import numpy as np

from fourge import fe, gp, gw

# What an envelope of the program's own says: the run of a process, not its result (spec/cli.md section 1).
ENVELOPE = {"schema", "version", "peak_bytes", "warnings", "device", "threads", "seed"}
FILES = {"read", "write"}  # the parts of `seconds` in which the program handles its files
# Positions, which count from 0 here; the program's messages name rows of its file.
POSITIONS = {"pivot", "closest"}


def program():
    """The program: FOURGE_PROGRAM, else that of the build tree that the package is imported from, else that on the path."""
    beside = pathlib.Path(gp.__file__).resolve().parents[2] / "fourge"
    return os.environ.get("FOURGE_PROGRAM") or (str(beside) if beside.is_file() else shutil.which("fourge"))


def kind(value):
    """The type as JSON has it; numbers are one type, and null is a number that is not finite."""
    if isinstance(value, bool):
        return "bool"
    if value is None or isinstance(value, (int, float)):
        return "number"
    return {str: "text", dict: "object"}.get(type(value), "list")


def shape(value, path=""):
    """{path: type} of all that `value` holds; the members of a list are one path."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    out = {path: kind(value)}
    for key, one in value.items() if isinstance(value, dict) else (("[]", one) for one in value) if isinstance(value, list) else ():
        if not key.endswith("_note"):  # beside a null, the reason
            out |= shape(one, f"{path}.{key}")
    return out


class Keys(unittest.TestCase):
    def setUp(self):
        if program() is None:
            self.skipTest("there is no program beside the package")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.random = np.random.default_rng(5)

    def run_program(self, *arguments):
        done = subprocess.run([program(), *arguments, "--format", "json", "-q"], cwd=self.folder.name, capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        out = json.loads(done.stdout)
        self.assertLessEqual(ENVELOPE, set(out))
        for key in ENVELOPE:
            del out[key]
        for key in FILES & set(out["seconds"]):
            del out["seconds"][key]
        return out

    def same(self, ours, theirs):
        ours = {k: v for k, v in ours.items() if k not in POSITIONS | ENVELOPE}
        self.assertEqual(shape(ours), shape(theirs))

    def file(self, name, array):
        np.save(os.path.join(self.folder.name, name), array)
        return array

    def table(self):
        x = np.sort(self.random.random((30, 2)), axis=0)
        y = np.sin(6 * x[:, 0]) + 0.1 * self.random.normal(size=30)
        np.savetxt(os.path.join(self.folder.name, "data.csv"), np.c_[y, x], "%.17g", ",", header="y,a,b", comments="")
        return x, y

    def test_align(self):
        x, y = self.file("x.npy", self.random.normal(size=(30, 2))), self.file("y.npy", self.random.normal(size=(25, 2)))
        for options in ({}, {"mode": "sampled", "anneal": "iter"}, {"rank": 3}, {"multiscale": "on"}, {"mode": "vertex"}):
            with self.subTest(options):
                words = [w for k, v in options.items() for w in ("--" + k, str(v))]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.same(gw.align(x, y, k=5, max_iter=20, **options).report,
                              self.run_program("gw", "align", "x.npy", "y.npy", "--k", "5", "--max-iter", "20", *words))

    def test_sinkhorn(self):
        cost = self.file("c.npy", self.random.random((12, 9)))
        theirs = self.run_program("gw", "sinkhorn", "c.npy", "--epsilon", "0.1", "--tol", "1e-6")
        ours = gw.transport(cost, epsilon=0.1, tol=1e-6).report
        self.same(ours, theirs)
        for key in ("epsilon", "iterations", "column_error", "cost", "status"):
            self.assertEqual(ours[key], theirs[key])

    def test_gp(self):
        x, y = self.table()
        kernels = "1*rbf(ard) + noise(0.1)", "2*rbf(l=0.3!) + noise(0.1!)", "1*rbf(l=0.5) + 1*rbf(l=@rbf.l) + noise(0.1)"
        for kernel in kernels:
            for extra, words in (({}, ()), ({"mean": "profiled", "profile_scale": True}, ("--mean", "profiled", "--profile-scale"))):
                with self.subTest(kernel, **extra):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        process = gp.GP(x, y, kernel, columns=["a", "b"], **extra)
                        value, fit = process.value(), process.fit(starts=2)
                    ask = lambda what, *more: self.run_program("gp", what, "data.csv", "--y", "y", "--kernel", kernel, *words, *more)
                    self.same(value, ask("value", "--no-gradient"))
                    theirs = ask("fit", "--starts", "2")
                    del theirs["gradient"]  # GP.gradient() has it
                    self.same(fit, theirs)

    def test_loo(self):
        x, y = self.table()
        for kernel in ("1*rbf(ard) + noise(0.1)", "2*rbf(l=0.3!) + noise(0.1!)"):
            with self.subTest(kernel):
                ours = gp.GP(x, y, kernel, columns=["a", "b"]).loo(latent=True)
                theirs = self.run_program("gp", "loo", "data.csv", "--y", "y", "--kernel", kernel, "--no-gradient")
                self.same(ours, theirs)
                for key in ("log_density", "rmse", "log_likelihood"):
                    self.assertEqual(ours[key], theirs[key])

    def test_demean(self):
        x = self.file("X.npy", self.random.normal(size=(300, 2)))
        codes = self.file("C.npy", np.column_stack([self.random.integers(0, 20, 300), self.random.integers(0, 15, 300)]))
        theirs = self.run_program("demean", "--columns", "X.npy", "--codes", "C.npy", "--out", "R.npy")
        ours = fe.demean(x, codes)[1]
        self.same(ours, theirs)
        for key in set(ours) - {"seconds", "parts"}:
            self.assertEqual(ours[key], theirs[key], key)
        wide = np.column_stack([np.repeat(np.arange(300), 2), ((np.arange(600) + 1) % 600) // 2])  # a ring beside units of 60 rows
        codes = self.file("C.npy", np.vstack([wide, 300 + np.column_stack([np.repeat(np.arange(300), 60), self.random.integers(0, 300, 18000)])]))
        x = self.file("X.npy", self.random.normal(size=(len(codes), 2)))
        self.same(fe.demean(x, codes)[1], self.run_program("demean", "--columns", "X.npy", "--codes", "C.npy", "--out", "R.npy"))

    def test_fe(self):
        n = 200
        data = {"y": self.random.normal(size=n), "x": self.random.normal(size=n), "a": self.random.integers(0, 9, n), "b": self.random.integers(0, 8, n)}
        data["x"][3] = np.nan
        data["flat"] = data["a"] * 2.0
        rows = "\n".join(",".join("" if v != v else repr(v) for v in row) for row in zip(*(v.tolist() for v in data.values())))
        with open(os.path.join(self.folder.name, "panel.csv"), "w") as file:
            file.write(",".join(data) + "\n" + rows + "\n")
        for formula, vcov, options in (("y ~ x + flat | a + b", ["iid"], {}), ("y ~ x", ["hetero", "cluster=a"], {}),
                                       ("y ~ x | a + b", ["cluster=a+b"], {"connected": "largest", "subset": "b < 7"}),
                                       ("y ~ 1 | a", ["iid"], {}), ("y ~ x | a + b", ["iid"], {"method": "cg", "max_iter": 1})):
            with self.subTest(formula, **options):
                words = [w for k, v in options.items() for w in ("--" + k.replace("_", "-"), str(v))]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ours = fe.feols(formula, data, vcov, **options).result
                theirs = self.run_program("fe", formula, "panel.csv", *(w for v in vcov for w in ("--vcov", v)), *words)
                self.same(ours, theirs)
                self.assertEqual([ours[k] for k in ("n", "n_dropped", "k", "r2", "absorbed", "fixed_effects", "dropped_terms")],
                                 [theirs[k] for k in ("n", "n_dropped", "k", "r2", "absorbed", "fixed_effects", "dropped_terms")])

    def test_moved(self):
        """A name of before is found, with a warning that says where it is now; a wrong one is not."""
        report = gw.transport(self.random.random((4, 5)), epsilon=0.1).report
        fit = gp.GP(*self.table(), "1*rbf + noise").fit()
        line = fe.feols("y ~ z | x", {"y": self.random.random(20), "z": self.random.random(20), "x": np.arange(20) % 5}).result
        for old, now, place in ((lambda: report["total_seconds"], report["seconds"]["total"], "seconds"),
                                (lambda: fit["values"], fit["optimizer"]["evaluations"]["value"], "evaluations"),
                                (lambda: fit["starts"], fit["optimizer"]["start_results"], "start_results"),
                                (lambda: line["n_missing"], line["n_dropped"]["missing"], "result.'n_missing'. is now result.'n_dropped'"),
                                (lambda: line["converged"], True, "solver"), (lambda: line["factors"], {"x": 5}, "fixed_effects"),
                                (lambda: fit["jitter_tries"], fit["jitter"]["tries"], "jitter")):
            with self.assertWarnsRegex(DeprecationWarning, place):
                self.assertEqual(old(), now)
        with self.assertRaises(KeyError):
            report["seconds_total"]
