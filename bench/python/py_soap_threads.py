"""Steps of fourge.torch.SOAP in a training loop: py_soap_threads.py [BATCH]; alone, beside torch's threads, and both waiting passively.

The network is two square layers of each order in ORDERS, tanh between them; torch computes its gradients with THREADS threads
before each step, in "beside", or they lie there from the start, in "alone".  Both programs have a pool of OpenMP's
threads, which after work spin for some milliseconds (OMP_WAIT_POLICY unset) or sleep at once (passive): where they spin
against each other a step takes many times as long.  A mode is a process of its own, as the policy is read at start; modes
take turns, and a figure is the median of their median steps.  `ratio` is that over the step alone with one thread.
Every mode ends with the same bits of the parameters, which is checked before a figure is printed.
"""
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
from common import THREADS, report  # noqa: E402

ORDERS, STEPS, WARM, TURNS = (64, 128, 256), 24, 4, 3


def steps(order, batch, threads, beside):
    """(median seconds of a step, digest of the parameters after all)."""
    import torch

    from fourge.torch import SOAP

    torch.set_num_threads(THREADS if beside else 1)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(order, order), torch.nn.Tanh(), torch.nn.Linear(order, order))
    optimizer = SOAP(net.parameters(), lr=1e-3, precondition_frequency=1, threads=threads)
    x, generator, times = torch.randn(batch, order), torch.Generator().manual_seed(1), []
    for _ in range(STEPS):
        if beside:
            net(x).square().mean().backward()  # torch's threads have just been at work
        for p in net.parameters():
            p.grad = 1e-3 * torch.randn(p.shape, generator=generator)  # the same in all modes, whatever torch's threads do
        start = time.perf_counter()
        optimizer.step()
        times.append(time.perf_counter() - start)
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest()
    return statistics.median(times[WARM:]), digest


def in_process(order, batch, threads, beside, passive):
    environment = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    if passive:
        environment["OMP_WAIT_POLICY"] = "passive"
    out = subprocess.run([sys.executable, __file__, "--mode", json.dumps([order, batch, threads, beside])], check=True, env=environment,
                         capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def table(order, batch):
    modes = [(threads, beside, passive) for beside in (False, True) for threads in sorted({1, THREADS}) for passive in (False, True)]
    seen = {mode: [] for mode in modes}
    for _ in range(TURNS):
        for mode in modes:
            seen[mode].append(in_process(order, batch, *mode))
    assert len({digest for runs in seen.values() for _, digest in runs}) == 1, "the modes end with different parameters"
    seconds = {mode: statistics.median(s for s, _ in runs) for mode, runs in seen.items()}
    for mode in modes:
        threads, beside, passive = mode
        report(bench="py_soap_threads", order=order, batch=batch, soap_threads=threads, torch_threads=THREADS if beside else 1,
               beside=beside, passive=passive, seconds=float(f"{seconds[mode]:.3g}"), turns=TURNS,
               ratio=round(seconds[mode] / seconds[1, False, False], 2))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--mode"]:
        print(json.dumps(steps(*json.loads(sys.argv[2]))))
    else:
        for n in ORDERS:
            table(n, int(sys.argv[1]) if len(sys.argv) > 1 else 512)
