"""Modules named after a package say what to install where that is missing; nothing else of fourge needs it."""

import subprocess
import sys
import unittest

BLOCKED = ("sklearn", "torch", "gpytorch", "linear_operator", "pyfixest", "linearmodels", "docx", "matplotlib", "pandas", "polars", "tqdm")
START = f"import sys\nfor name in {BLOCKED}: sys.modules[name] = None\n"


def run(code):
    return subprocess.run([sys.executable, "-c", START + code], capture_output=True, text=True)


class Missing(unittest.TestCase):
    def test_messages(self):
        for code, remedy in (
            ("import fourge.sklearn", "pip install scikit-learn"),
            ("import fourge.torch", "pip install torch"),
            ("import fourge.gpytorch", "pip install"),
            ("import fourge.pyfixest as p\nwith p.demeaning(): pass", "pip install pyfixest"),
            ("import fourge.linearmodels as p\nwith p.demeaning(): pass", "pip install linearmodels"),
            ("from fourge import fe\nfe.coefplot(fe.feols('y ~ x', {'y': [1.0, 2, 4], 'x': [1.0, 3, 2]}))", "pip install matplotlib"),
            ("from fourge import fe\nfe.etable(fe.feols('y ~ x', {'y': [1.0, 2, 4], 'x': [1.0, 3, 2]}), 'docx')", "pip install python-docx"),
            ("from fourge import fe\nfe.etable(fe.feols('y ~ x', {'y': [1.0, 2, 4], 'x': [1.0, 3, 2]}), 'df')", "pip install pandas"),
        ):
            done = run(code)
            self.assertEqual(done.returncode, 1, code)
            last = done.stderr.strip().splitlines()[-1]
            self.assertTrue(last.startswith("ImportError") and remedy in last, f"{code}: {last}")

    def test_the_rest_needs_numpy_alone(self):
        code = """
import pkgutil, fourge
from fourge import fe, gp, soap
fe.feols("y ~ x", {"y": [1.0, 2, 4], "x": [1.0, 3, 2]}).summary()
print(fourge.__dir__())
"""
        done = run(code)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
