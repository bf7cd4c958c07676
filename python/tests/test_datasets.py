"""The data that lie in the package, and the program in it."""

import subprocess
import sys
import unittest

import numpy as np

import fourge
from fourge import datasets, errors, fe


class Datasets(unittest.TestCase):
    def test_every_table_has_its_columns(self):
        self.assertGreaterEqual(len(datasets.names()), 8)
        for name in datasets.names():
            with self.subTest(name):
                table = datasets.load(name)
                header, *lines = datasets.path(name).read_text(encoding="utf-8").splitlines()
                self.assertEqual(list(table), header.split(","))
                self.assertEqual({len(column) for column in table.values()}, {len(lines)})

    def test_types(self):
        grunfeld, co2 = datasets.load("grunfeld"), datasets.load("co2")
        self.assertEqual([grunfeld[k].dtype.kind for k in ("invest", "firm", "year")], ["f", "U", "i"])
        self.assertEqual(np.isnan(co2["co2"]).sum(), 5)  # data/README.md: five months without a measurement
        self.assertEqual(len(fe.feols("invest ~ value | firm", grunfeld).resid()), 220)

    def test_names_that_are_none(self):
        for call in (datasets.load, datasets.path):
            for name in ("nowhere", "../data/grunfeld", ""):
                with self.subTest(name), self.assertRaisesRegex(errors.BadArgument, "grunfeld"):
                    call(name)
        with self.assertRaisesRegex(errors.BadArgument, "no table"):
            datasets.load("shakespeare.txt")
        self.assertTrue(datasets.path("shakespeare.txt").is_file())

    def test_each_file_has_its_licence(self):
        words = (datasets.FOLDER / "README.md").read_text(encoding="utf-8")
        for file in datasets.FOLDER.iterdir():
            if not file.name.startswith(("README", "LICENSE")):
                self.assertIn(f"| `{file.name}` |", words)


class Program(unittest.TestCase):
    def run_it(self, *arguments):
        return subprocess.run([sys.executable, "-m", "fourge", *arguments], capture_output=True, text=True, cwd="/")

    def test_version_and_exit_codes(self):
        done = self.run_it("--version")
        self.assertEqual((done.returncode, done.stdout.split()[:2]), (0, ["fourge", fourge.__version__]))
        self.assertEqual(self.run_it("nonsense").returncode, 2)

    def test_it_computes_what_the_module_does(self):
        formula = "invest ~ value + capital | firm + year"
        done = self.run_it("fe", formula, str(datasets.path("grunfeld")), "--format", "csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(repr(float(fe.feols(formula, datasets.load("grunfeld")).coef()["value"]))[:8], done.stdout)


if __name__ == "__main__":
    unittest.main()
