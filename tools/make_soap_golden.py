#!/usr/bin/env python3
"""Trajectories of other packages' SOAP for tests/golden: python make_soap_golden.py pytorch_optimizer > soap.txt,
python make_soap_golden.py emerging > soap_emerging.txt (Emerging-Optimizers: SOAP, and StackedSoap, which has KL weights).

Each case: a line `case NAME axes sizes steps ...` with the options below it, the starting W, then for each step the
gradient and W after it, numbers in 9 digits. shampoo_beta is set explicitly (None would mean beta2 in pytorch_optimizer).
eps is far above rounding residues, so that the trajectory does not depend on signs of noise. The bases of a matrix that is
not square contain a null space at first, which any orthonormal vectors may span; W does not depend on it while P
vanishes there, and differs between programs afterwards: cases are square, stacks that become square, or one-sided by
max_precondition_dim.
"""
import importlib.metadata
import sys

import torch

torch.set_default_dtype(torch.float32)
torch.set_num_threads(1)


def numbers(tensor):
    return " ".join(f"{x:.9g}" for x in tensor.flatten().tolist())


def trajectory(name, shape, steps, options, make):
    """W after every step of the optimizer that `make` gives; options: what the line of the case goes on with."""
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    w = torch.nn.Parameter(torch.randn(*shape, generator=generator))
    optimizer = make([w])
    print("case", name, len(shape), *shape, steps, *options)
    print(numbers(w.detach()))
    for _ in range(steps):
        w.grad = torch.randn(*shape, generator=generator)
        print(numbers(w.grad))
        optimizer.step()
        print(numbers(w.detach()))


def pytorch_optimizer(name, shape, steps, lr=0.1, betas=(0.95, 0.95), shampoo=0.9, eps=0.05, wd=0.01, frequency=2,
                      limit=10000, bias=True):
    from pytorch_optimizer import SOAP
    trajectory(name, shape, steps, (lr, *betas, shampoo, eps, wd, frequency, limit, int(bias)),
               lambda w: SOAP(w, lr=lr, betas=betas, shampoo_beta=shampoo, eps=eps, weight_decay=wd, weight_decouple=True,
                              precondition_frequency=frequency, max_precondition_dim=limit, correct_bias=bias,
                              normalize_gradient=False, precondition_1d=False, merge_dims=False))


def emerging(name, shape, steps, lr=0.1, betas=(0.9, 0.95), shampoo=0.9, eps=0.05, wd=0.01, kl=False, stacked=False):
    from emerging_optimizers.legacy_soap.soap import SOAP
    from emerging_optimizers.legacy_soap.stacked_soap import StackedSoap
    common = {"lr": lr, "betas": betas, "shampoo_beta": shampoo, "eps": eps, "weight_decay": wd}
    trajectory(name, shape, steps, (lr, *betas, shampoo, eps, wd, int(kl or stacked)),
               lambda w: StackedSoap(w, **common) if stacked else SOAP(w, **common, use_kl_shampoo=kl,
                                                                       qr_fp32_matmul_prec="highest"))


def provenance(package):
    print(f"# {package} {importlib.metadata.version(package)}, torch {torch.__version__}, python {sys.version.split()[0]}")


if __name__ == "__main__" and sys.argv[1:] == ["pytorch_optimizer"]:
    provenance("pytorch_optimizer")
    pytorch_optimizer("square", (6, 6), 8)
    pytorch_optimizer("every_step", (5, 5), 6, frequency=1)
    pytorch_optimizer("no_decay", (5, 5), 6, wd=0.0)
    pytorch_optimizer("one_sided", (4, 9), 6, limit=5)
    pytorch_optimizer("plain", (3, 4), 6, limit=2)
    pytorch_optimizer("no_bias", (5, 5), 6, bias=False)
elif __name__ == "__main__" and sys.argv[1:] == ["emerging"]:
    provenance("emerging-optimizers")
    emerging("square", (6, 6), 8)
    emerging("no_decay", (5, 5), 6, wd=0.0)
    emerging("kl", (6, 6), 8, kl=True)
    emerging("stack_of_wide", (2, 3, 6), 8, stacked=True)
    emerging("stack_of_tall", (2, 6, 3), 8, stacked=True)
elif __name__ == "__main__":
    sys.exit(__doc__)
