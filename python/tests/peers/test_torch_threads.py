"""SOAP in a training loop whose network has threads of its own."""

import os
import subprocess
import sys
import unittest

# Threads that steps have started; the one of torch's gradients is there before.
LOOP = """
import os, sys
import torch
from fourge.torch import SOAP

order = int(sys.argv[1])
torch.set_num_threads(1)  # whose pool would serve both where both have the same libgomp
net = torch.nn.Sequential(torch.nn.Linear(order, order), torch.nn.Tanh(), torch.nn.Linear(order, order))
x = torch.randn(512, order)
for _ in range(2):
    net(x).square().mean().backward()
count = lambda: len(os.listdir("/proc/self/task"))
before = count()
optimizer = SOAP(net.parameters(), lr=1e-3, precondition_frequency=1, threads=2)
for _ in range(4):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
print(count() - before)
"""


@unittest.skipUnless(os.path.isdir("/proc/self/task"), "threads are counted in /proc")
class Threads(unittest.TestCase):
    def started(self, order):
        """Threads that four steps of two layers of that order have started."""
        run = subprocess.run([sys.executable, "-c", LOOP, str(order)], check=True, capture_output=True, text=True,
                             env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        return int(run.stdout.split()[-1])

    def test_small_layers_start_no_thread(self):
        """A second pool of threads beside torch's makes both wait for each other: 39 ms a step in place of 14 were seen."""
        self.assertEqual(self.started(32), 0)

    def test_large_layers_do(self):
        """What is counted is there to be counted."""
        self.assertEqual(self.started(512), 1)


if __name__ == "__main__":
    unittest.main()
