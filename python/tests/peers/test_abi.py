"""The extension keeps to the stable ABI of Python 3.11, as abi3audit reads its symbols."""

import importlib.util
import pathlib
import subprocess
import sys
import unittest

from fourge import _fourge


class StableAbi(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("abi3audit"), "abi3audit is not installed")
    def test_abi3audit(self):
        path = pathlib.Path(_fourge.__file__)
        self.assertTrue(path.name.endswith(".abi3.so"))
        command = [sys.executable, "-m", "abi3audit", "--strict", "--assume-minimum-abi3", "3.11", str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
