"""progress=True: a bar of tqdm where it is installed, a line on a terminal where it is not; both end with the call."""

import io
import sys
import types
import unittest
from unittest import mock

import numpy as np

from fourge import gp, gw

X = np.random.default_rng(0).normal(size=(60, 2))


class Bar:
    """As much of tqdm as is used."""

    made = []

    def __init__(self, total=None, desc="", leave=True):
        self.total, self.desc, self.leave, self.n, self.text, self.open = total, desc, leave, 0, "", True
        Bar.made.append(self)

    def update(self, n):
        self.n += n

    def set_postfix_str(self, text):
        self.text = text

    def close(self):
        self.open = False


class Progress(unittest.TestCase):
    def setUp(self):
        Bar.made = []

    def calls(self):
        """Each with a fresh context, whose first look comes at once; what is returned lives on."""
        yield "gw", gw.align(X, X, distance="euclidean", max_iter=5, progress=True)
        process = gp.GP(X, X[:, 0], "1*rbf(l=1) + noise", progress=True)
        process.fit(max_iter=3)
        yield "gp", process

    def test_tqdm(self):
        auto = types.ModuleType("tqdm.auto")
        auto.tqdm = Bar
        with mock.patch.dict(sys.modules, {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": auto}):
            for solver, alive in self.calls():
                with self.subTest(solver):
                    self.assertTrue(Bar.made and alive is not None)
                    for bar in Bar.made:
                        self.assertTrue(bar.desc.startswith(solver))
                        self.assertFalse(bar.open)
                        self.assertFalse(bar.leave)
                        self.assertNotIn("nan", bar.text)
                    Bar.made.clear()

    def test_a_terminal_without_tqdm(self):
        screen = io.StringIO()
        screen.isatty = lambda: True
        with mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None}), mock.patch.object(sys, "stderr", screen):
            for solver, alive in self.calls():
                with self.subTest(solver):
                    lines = screen.getvalue().split("\r")
                    screen.seek(0)
                    screen.truncate()
                    self.assertIn(f"{solver} ", lines[1])
                    self.assertNotIn("nan", lines[1])
                    self.assertEqual((lines[-2].strip(), lines[-1]), ("", ""))  # the line is wiped
                    self.assertIsNotNone(alive)

    def test_no_terminal_and_no_tqdm(self):
        screen = io.StringIO()
        with mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None}), mock.patch.object(sys, "stderr", screen):
            for _ in self.calls():
                pass
        self.assertEqual(screen.getvalue(), "")

    def test_a_bar_ends_with_a_call_that_failed(self):
        auto = types.ModuleType("tqdm.auto")
        auto.tqdm = Bar

        def fail(self, text):
            raise KeyboardInterrupt

        with mock.patch.dict(sys.modules, {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": auto}):
            with mock.patch.object(Bar, "set_postfix_str", fail), self.assertRaises(KeyboardInterrupt):
                gw.align(X, X, distance="euclidean", max_iter=5, progress=True)
        self.assertEqual([bar.open for bar in Bar.made], [False])

    def test_what_else_is_refused(self):
        with self.assertRaisesRegex(TypeError, "progress"):
            gw.align(X, X, k=3, progress="yes")


if __name__ == "__main__":
    unittest.main()
