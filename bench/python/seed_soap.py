"""The tables of the SOAP seed (Emerging-Optimizers' pull request 118): seed_soap.py [--device cpu|cuda] [--hidden 1024]
       [--mlp 4096] [--layers 12] [--steps]

The 96 factors of a 12-layer transformer, orders 3h, h, h, h, f, h, h, f a layer, each K Q of one power iteration, by

    torch_sequential   torch.linalg.qr, factor after factor: the seed's old way
    torch_batched      torch.linalg.qr on one stack for each order: its new way
    fourge_sequential  fourge.linalg.qr, factor after factor (cpu)
    fourge_batched     one call (cpu)

and with --steps whole steps of pytorch_optimizer's SOAP beside ours (cpu).  One run, cold, where a first takes more than
LIMIT seconds (common.timed), else the best of two after it.  `orthogonality` is max |Q'Q - I| of all factors, computed here.
On cuda our rows say "not run": there is no such code.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
import common  # noqa: E402

import torch  # noqa: E402


def factors(orders, device):
    """K Q: a covariance of Gaussian gradients of a power law's scales times the basis of the step before."""
    generator = torch.Generator(device).manual_seed(0)
    made = {}
    for n in set(orders):
        g = torch.randn(n, n, generator=generator, device=device) / torch.arange(1, n + 1, device=device)
        basis = torch.linalg.qr(torch.randn(n, n, generator=generator, device=device))[0]
        made[n] = (g @ g.T) @ basis
    return [made[n].clone() for n in orders]


def torch_sequential(matrices):
    return [torch.linalg.qr(a)[0] for a in matrices]


def torch_batched(matrices):
    places = {}
    for i, a in enumerate(matrices):
        places.setdefault(a.shape, []).append(i)
    out = [None] * len(matrices)
    for where in places.values():
        for i, q in zip(where, torch.linalg.qr(torch.stack([matrices[i] for i in where]))[0]):
            out[i] = q
    return out


def fourge_sequential(matrices):
    from fourge import linalg

    return [linalg.qr(a).Q for a in matrices]


def fourge_batched(matrices):
    from fourge import linalg

    return [each.Q for each in linalg.qr(matrices)]


def orthogonality(qs):
    return max((q.T @ q - torch.eye(len(q), device=q.device)).abs().max().item() for q in qs)


def steps(o, peer, make):
    """Median of the steps behind two that warm up, as soap_peers.py takes it."""
    h, f = o.hidden, o.mlp
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(0.02 * torch.randn(shape)) for shape in [(3 * h, h), (h, h), (f, h), (h, f)] * o.layers]
    optimizer = make(parameters)
    generator = torch.Generator().manual_seed(1)
    times = []
    for _ in range(5):
        for p in parameters:
            p.grad = 1e-3 * torch.randn(p.shape, generator=generator)
        figures, _ = common.timed(optimizer.step, 0)
        times.append(figures["seconds"])
    common.report(bench="seed_soap_step", hidden=h, mlp=f, layers=o.layers, frequency=1, device=o.device, peer=peer,
                  seconds=sorted(times[2:])[1], repeats=3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--mlp", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--steps", action="store_true")
    o = parser.parse_args()
    h, f = o.hidden, o.mlp
    if o.device == "cpu":
        torch.set_num_threads(common.THREADS)
    what = {"hidden": h, "mlp": f, "layers": o.layers, "factors": 8 * o.layers, "device": o.device}
    matrices = factors([3 * h, h, h, h, f, h, h, f] * o.layers, o.device)
    for run in (torch_sequential, torch_batched, fourge_sequential, fourge_batched):
        if o.device != "cpu" and run.__name__.startswith("fourge"):
            common.report(bench="seed_soap_qr", **what, peer=run.__name__, note="not run")
            continue
        figures, qs = common.timed(lambda: run(matrices), 2, common.waiter(o.device))
        common.report(bench="seed_soap_qr", **what, peer=run.__name__, **figures, orthogonality=float(f"{orthogonality(qs):.1e}"))
    if o.steps and o.device == "cpu":
        import pytorch_optimizer

        import fourge.torch

        steps(o, "pytorch_optimizer", lambda p: pytorch_optimizer.SOAP(p, lr=1e-3, precondition_frequency=1))
        steps(o, "fourge", lambda p: fourge.torch.SOAP(p, lr=1e-3, precondition_frequency=1))


if __name__ == "__main__":
    main()
