"""Golden numbers of the gw room from POT: python make_gw_golden.py > ../tests/golden/gw.txt

POT hands twice our linearised cost to Sinkhorn, so its epsilon is twice ours. Unbalanced transport: POT's KL
regularisation (reference a b') and penalties on both sides, which is our reference "product".
"""
import numpy as np
import ot


def show(name, a):
    a = np.atleast_2d(np.asarray(a, float))
    print(name, *a.shape)
    for row in a:
        print(*(repr(float(v)) for v in row))


def main():
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(25, 3))
    c, d = ot.dist(x, x, "euclidean"), ot.dist(y, y, "euclidean")
    c, d = c / c.max(), d / d.max()
    a, b = rng.uniform(0.5, 1.5, 20), rng.uniform(0.5, 1.5, 25)
    a, b = a / a.sum(), b / b.sum()
    for name, value in (("c", c), ("d", d), ("a", a), ("b", b)):
        show(name, value)
    for i, epsilon in enumerate((0.05, 0.02)):
        plan, log = ot.gromov.entropic_gromov_wasserstein(c, d, a, b, "square_loss", epsilon=2 * epsilon, max_iter=5000,
                                                          tol=1e-12, log=True, numItermax=10000, stopThr=1e-13)
        show(f"gw_epsilon{i}", epsilon)
        show(f"gw_plan{i}", plan)
        show(f"gw_energy{i}", log["gw_dist"])
    cost = rng.uniform(size=(20, 25))
    show("cost", cost)
    show("sinkhorn", ot.bregman.sinkhorn_log(a, b, cost, 0.05, numItermax=20000, stopThr=1e-14))
    show("emd", ot.emd2(a, b, cost))
    show("unbalanced", ot.unbalanced.sinkhorn_unbalanced(a, b, cost, 0.05, 0.3, reg_type="kl", numItermax=20000, stopThr=1e-14))


if __name__ == "__main__":
    main()
