"""Docstrings and annotations of the modules that need their package: see test_stubs."""

import importlib
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import test_stubs


class Documentation(unittest.TestCase):
    check = test_stubs.Documentation.check

    def test_every_parameter_is_named_and_has_a_type(self):
        for name in ("gpytorch", "marginaleffects", "sklearn", "torch"):
            self.check(importlib.import_module(f"fourge.{name}"))


if __name__ == "__main__":
    unittest.main()
