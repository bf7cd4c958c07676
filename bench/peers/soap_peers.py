"""Peers on the SOAP step: python soap_peers.py HIDDEN MLP [LAYERS [STEPS]].

Four matrices a layer, (3h, h), (h, h), (f, h), (h, f), Gaussian gradients of size 1e-3, a refresh at every step.
AdamW is the floor. The first two steps warm up; seconds are the median of the others.  pytorch_optimizer and
Emerging-Optimizers (not on the package index; Python 3.12; torch.compile needs a C++ compiler) where they are installed.
"""
import common
import importlib.util
import statistics
import sys
import time

import torch

torch.set_num_threads(common.THREADS)
hidden, mlp = int(sys.argv[1]), int(sys.argv[2])
layers = int(sys.argv[3]) if len(sys.argv) > 3 else 12
steps = int(sys.argv[4]) if len(sys.argv) > 4 else 6


def parameters():
    torch.manual_seed(0)
    shapes = [(3 * hidden, hidden), (hidden, hidden), (mlp, hidden), (hidden, mlp)] * layers
    return [torch.nn.Parameter(0.02 * torch.randn(shape)) for shape in shapes]


def measure(peer, make):
    params = parameters()
    optimizer = make(params)
    generator = torch.Generator().manual_seed(1)
    times = []
    for _ in range(steps):
        for p in params:
            p.grad = 1e-3 * torch.randn(p.shape, generator=generator)
        start = time.perf_counter()
        optimizer.step()
        times.append(time.perf_counter() - start)
    common.report(bench="soap_step", hidden=hidden, mlp=mlp, layers=layers, frequency=1, peer=peer,
                  seconds=round(statistics.median(times[2:]), 4))


measure("adamw", lambda p: torch.optim.AdamW(p, lr=1e-3))
if importlib.util.find_spec("pytorch_optimizer"):
    from pytorch_optimizer import SOAP as Theirs

    measure("pytorch_optimizer_soap", lambda p: Theirs(p, lr=1e-3, precondition_frequency=1))
if importlib.util.find_spec("emerging_optimizers"):
    from emerging_optimizers.legacy_soap import SOAP as Emerging  # refreshes at every step

    measure("emerging_optimizers_soap", lambda p: Emerging(p, lr=1e-3))
