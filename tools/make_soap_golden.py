#!/usr/bin/env python3
"""Trajectories of pytorch_optimizer's SOAP for tests/golden/soap.txt: python make_soap_golden.py > FILE.

Each case: a line `case NAME m n steps lr b1 b2 shampoo eps wd frequency`, the starting W, then for each step the
gradient and W after it, numbers in 9 digits. shampoo_beta is set explicitly (None would mean beta2 there). eps is
far above rounding residues, so that the trajectory does not depend on signs of noise. The bases of a matrix that is
not square contain a null space at first, which any orthonormal vectors may span; W does not depend on it while P
vanishes there, and differs between programs afterwards: cases are square, or one-sided by max_precondition_dim.
"""
import importlib.metadata
import sys

import torch
from pytorch_optimizer import SOAP

torch.set_default_dtype(torch.float32)
torch.set_num_threads(1)


def numbers(tensor):
    return " ".join(f"{x:.9g}" for x in tensor.flatten().tolist())


def case(name, m, n, steps, lr=0.1, betas=(0.95, 0.95), shampoo=0.9, eps=0.05, wd=0.01, frequency=2, limit=10000,
         bias=True):
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    w = torch.nn.Parameter(torch.randn(m, n, generator=generator))
    optimizer = SOAP([w], lr=lr, betas=betas, shampoo_beta=shampoo, eps=eps, weight_decay=wd, weight_decouple=True,
                     precondition_frequency=frequency, max_precondition_dim=limit, correct_bias=bias,
                     normalize_gradient=False, precondition_1d=False, merge_dims=False)
    print(f"case {name} {m} {n} {steps} {lr} {betas[0]} {betas[1]} {shampoo} {eps} {wd} {frequency} {limit} {int(bias)}")
    print(numbers(w.detach()))
    for _ in range(steps):
        w.grad = torch.randn(m, n, generator=generator)
        print(numbers(w.grad))
        optimizer.step()
        print(numbers(w.detach()))


if __name__ == "__main__":
    print(f"# pytorch_optimizer {importlib.metadata.version('pytorch_optimizer')}, torch {torch.__version__}, "
          f"python {sys.version.split()[0]}")
    case("square", 6, 6, 8)
    case("every_step", 5, 5, 6, frequency=1)
    case("no_decay", 5, 5, 6, wd=0.0)
    case("one_sided", 4, 9, 6, limit=5)
    case("plain", 3, 4, 6, limit=2)
    case("no_bias", 5, 5, 6, bias=False)
