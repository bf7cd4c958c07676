"""Writes tests/golden/lsmr.txt: small least-squares problems with the answers of SciPy's lsmr.

    python3 tools/make_lsmr_golden.py > tests/golden/lsmr.txt

Needs numpy and scipy.  One problem:

    problem NAME m n nnz damp atol btol conlim maxiter
    starts, columns, values, b                    one line each
    result istop itn normr normar norma conda normx
    x                                             one line

Stops are chosen well inside: the tolerance lies a factor of two or more between the tests of two iterations,
so that rounding cannot move the stop by one (checked here).
"""
import numpy as np
import scipy
from scipy.sparse import csr_matrix, random as sparse_random
from scipy.sparse.linalg import lsmr


def line(values):
    print(" ".join(repr(v.item() if hasattr(v, "item") else v) for v in values))


def history(a, b, damp, count):
    """t1 and t2 after each iteration."""
    out = []
    for k in range(1, count + 1):
        _, _, _, normr, normar, norma, _, _ = lsmr(a, b, damp=damp, atol=0, btol=0, conlim=0, maxiter=k)
        out.append((normr / np.linalg.norm(b), normar / (norma * normr) if norma * normr else 0.0))
    return out


def problem(name, a, b, damp=0.0, atol=1e-10, btol=1e-10, conlim=0.0, maxiter=1000):
    a = csr_matrix(a)
    a.sort_indices()
    x, istop, itn, normr, normar, norma, conda, normx = lsmr(
        a, b, damp=damp, atol=atol, btol=btol, conlim=conlim, maxiter=maxiter)
    if istop == 2:
        t2 = [h[1] for h in history(a, b, damp, itn)]
        assert t2[-1] < atol / 2 and min(t2[:-1]) > 2 * atol, (name, t2[-2:], atol)
    print("problem", name, *a.shape, a.nnz, damp, atol, btol, conlim, maxiter)
    line(a.indptr)
    line(a.indices)
    line(a.data)
    line(b)
    print("result", istop, itn, *(repr(float(v)) for v in (normr, normar, norma, conda, normx)))
    line(x)


def main():
    rng = np.random.default_rng(20260801)
    print(f"# SciPy {scipy.__version__} (scipy.sparse.linalg.lsmr), numpy {np.__version__};")
    print("# python3 tools/make_lsmr_golden.py > tests/golden/lsmr.txt")
    a = sparse_random(40, 15, density=0.3, random_state=rng, data_rvs=rng.standard_normal)
    b = rng.standard_normal(40)
    problem("overdetermined", a, b, atol=1e-8)
    problem("damped", a, b, damp=0.7, atol=1e-8)
    problem("consistent", a, a @ rng.standard_normal(15), btol=1e-9)
    problem("few-iterations", a, b, maxiter=4)
    wide = sparse_random(12, 30, density=0.4, random_state=rng, data_rvs=rng.standard_normal)
    problem("underdetermined", wide, rng.standard_normal(12), btol=1e-9)
    dummies = np.zeros((60, 13))
    for i in range(60):
        dummies[i, i % 7] = dummies[i, 7 + (i * i // 3) % 6] = 1
    problem("two-factors", dummies, rng.standard_normal(60), atol=1e-9)
    graded = rng.standard_normal((50, 10)) @ np.diag(np.logspace(0, -1.5, 10))
    problem("condition-limit", graded, rng.standard_normal(50), conlim=4.0, atol=1e-14, btol=1e-14)


main()
