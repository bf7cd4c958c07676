"""What a host program does around the package: forks, threads, locales.  Results keep their bits."""

import hashlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

from fourge import fe, gp, gw


def digest():
    """A hash of the bits of one result of each kind."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 3))
    y = x @ [1.5, -2.25, 0.125] + rng.normal(size=400)
    flist = rng.integers(0, 20, size=(400, 2))
    demeaned, _ = fe.demean(x, flist)
    process = gp.GP(x[:60], y[:60], "1.5*rbf(l=0.75) + noise(0.05)")
    plan = gw.align(x[:40], x[10:50], epsilon=0.05, seed=3)
    parts = [demeaned, np.float64(process.log_likelihood()), plan.plan()]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def put_digest(queue):
    queue.put(digest())


class Hosts(unittest.TestCase):
    def test_after_a_fork(self):
        """The child of a process whose threads have computed already."""
        want = digest()
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        children = [context.Process(target=put_digest, args=(queue,)) for _ in range(2)]
        for child in children:
            child.start()
        for child in children:
            child.join(600)
            if child.is_alive():
                child.kill()
                self.fail("the child computes without end")
            self.assertEqual(child.exitcode, 0)
        self.assertEqual([queue.get(), queue.get()], [want, want])

    def test_sixteen_threads(self):
        want, got = digest(), []
        threads = [threading.Thread(target=lambda: got.append(digest())) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(got, [want] * 16)

    def test_locales(self):
        """Decimal commas (German), and an i whose capital is another letter (Turkish)."""
        want = digest()
        with tempfile.TemporaryDirectory() as folder:
            for name, check in (("de_DE", "locale.localeconv()['decimal_point'] == ','"), ("tr_TR", "True")):
                made = os.path.join(folder, name + ".UTF-8")
                try:
                    result = subprocess.run(["localedef", "-i", name, "-f", "UTF-8", made], capture_output=True, text=True)
                except FileNotFoundError:
                    self.skipTest("there is no localedef to make locales with")
                if not os.path.isdir(made):
                    self.skipTest(f"localedef cannot make {name}: {result.stderr.strip()}")
                program = (f"import locale, sys\ntry: locale.setlocale(locale.LC_ALL, '{name}.UTF-8')\n"
                           f"except locale.Error: sys.exit(print('not there'))\nassert {check}\n"
                           "import test_hosts; print(test_hosts.digest())")
                environment = {**os.environ, "LOCPATH": folder,
                               "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
                got = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
                if got.stdout.strip() == "not there":
                    self.skipTest(f"what localedef makes of {name} is no locale here: {result.stderr.strip()[:200]}")
                self.assertEqual(got.stdout.strip(), want, got.stderr)


if __name__ == "__main__":
    unittest.main()
