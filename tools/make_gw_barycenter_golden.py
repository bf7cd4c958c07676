#!/usr/bin/env python3
"""Writes tests/golden/gw_barycenter.txt on standard output: a barycenter of two spaces by POT.

POT's gradient carries a factor 2, so its epsilon is twice ours; at 0.05 its barycenter collapses to a constant.
"""
import numpy as np
import ot
from scipy.spatial.distance import cdist

EPSILON = 0.01


def show(name, a):
    print(name, *a.shape)
    for row in a:
        print(*(repr(float(v)) for v in row))


def main():
    rng = np.random.default_rng(5)
    x, y = rng.uniform(size=(6, 2)), rng.uniform(size=(8, 2))
    one, two = cdist(x, x), cdist(y, y)
    most = max(one.max(), two.max())
    one, two = one / most, two / most
    z = rng.uniform(size=(5, 2))
    start = cdist(z, z) / most
    c = ot.gromov.entropic_gromov_barycenters(
        5, [one, two], [np.full(6, 1 / 6), np.full(8, 1 / 8)], np.full(5, 1 / 5), [0.3, 0.7], "square_loss", 2 * EPSILON,
        symmetric=True, max_iter=300, tol=1e-12, init_C=start, stop_criterion="barycenter", solver="PGD")
    for name, value in (("bary_one", one), ("bary_two", two), ("bary_start", start), ("bary", c)):
        show(name, value)


if __name__ == "__main__":
    main()
