"""What gw.align refuses, warns of, or takes as it is: a line for each of the specification's bad inputs."""

import unittest
import warnings

import numpy as np

from fourge import errors, gw

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(12, 3)), rng.normal(size=(9, 2))
C, D = (np.sqrt(((z[:, None] - z) ** 2).sum(-1)) for z in (X, Y))
L, A, B = rng.random((12, 9)), np.full(12, 1 / 12), np.full(9, 1 / 9)
LINE = gw.Graph.csr([0, 1, 2, 2], [1, 2], directed=True)
NAN, INF = np.nan, np.inf


def but(array, index, value):
    """The array with another value at one place."""
    array = array.copy()
    array[index] = value
    return array


def matrices(x=C, y=D, **options):
    return gw.align(x, y, **{"distance": "matrix", "max_iter": 3, "threads": 1} | options)


def points(x=X, y=Y, **options):
    return gw.align(x, y, **{"k": 3, "max_iter": 3, "threads": 1} | options)


BadArgument, BadData, Unsupported, NoMemory = errors.BadArgument, errors.BadData, errors.Unsupported, errors.OutOfMemory
REFUSED = [
    # sizes and shapes
    (BadArgument, "source data are 0 x 0", lambda: matrices(np.zeros((0, 0)))),
    (BadArgument, "target data are 0 x 0", lambda: matrices(y=np.zeros((0, 0)))),
    (BadArgument, "source distances are 12 x 5", lambda: matrices(C[:, :5])),
    (BadArgument, "a: expected 12 weights", lambda: matrices(a=np.ones(5))),
    (BadArgument, "linear cost is 9 x 12, 12 x 9", lambda: matrices(linear=L.T, linear_weight=0.5)),
    (BadArgument, "plan is 9 x 12, 12 x 9", lambda: matrices(start=L.T)),
    (BadArgument, "source distances are 12 x 3", lambda: points(distance="matrix")),
    (TypeError, "x: expected an array", lambda: points(None)),
    # values that are no numbers, with the first of them
    (BadData, "coordinate is nan (points, row 4, column 2)", lambda: points(but(X, (3, 1), NAN))),
    (BadData, "coordinate is inf (points, row 4, column 2)", lambda: points(but(X, (3, 1), INF))),
    (BadData, "weight is nan (source, value 3)", lambda: matrices(a=but(A, 2, NAN), b=B)),
    (BadData, "weight is inf (target, value 2)", lambda: matrices(a=A, b=but(B, 1, INF))),
    (BadData, "cost is inf (linear, row 2, column 2)", lambda: matrices(linear=but(L, (1, 1), INF), linear_weight=0.5)),
    (BadData, "distance is nan (source, row 2, column 3)", lambda: matrices(but(C, (1, 2), NAN))),
    (BadData, "entry is nan", lambda: matrices(start=but(L, (1, 1), NAN))),
    # weights, distances and plans below zero, or zero in all
    (BadData, "weight is -0.1 (source, value 3)", lambda: matrices(a=but(A, 2, -0.1), b=B)),
    (BadData, "the target weights to 2", lambda: matrices(a=A, b=2 * B)),
    (Unsupported, "source graph is directed", lambda: gw.align(LINE, LINE)),
    (BadData, "source sums to 0", lambda: matrices(a=0 * A, b=B)),
    (BadData, "distance is -1 (target, row 1, column 2)", lambda: matrices(y=but(D, (0, 1), -1))),
    (BadData, "entry is -", lambda: matrices(start=-L)),
    (BadData, "plan is zero", lambda: matrices(start=0 * L)),
    # options out of their range
    *[(BadArgument, f"k is {k}, it must be >= 1", lambda k=k: points(k=k)) for k in (0, -1)],
    *[(BadArgument, "12 points have 1 to 11 neighbours", lambda k=k: points(k=k)) for k in (12, 50)],
    *[(BadArgument, f"anchors is {r}", lambda r=r: matrices(mode="sampled", anchors=r)) for r in (0, -3)],
    *[(BadArgument, "damping is ", lambda v=v: matrices(damping=v)) for v in (0, -0.1, 1.5, NAN)],
    *[(BadArgument, "linear_weight is ", lambda v=v: matrices(linear=L, linear_weight=v)) for v in (-0.1, 1.5, NAN)],
    (BadArgument, "linear_weight is 0.5 without a linear cost", lambda: matrices(linear_weight=0.5)),
    *[(BadArgument, "lambda_ema_beta is ", lambda v=v: matrices(lambda_ema_beta=v)) for v in (-0.1, 1.5, NAN)],
    *[(BadArgument, "rho_source is ", lambda v=v: matrices(rho_source=v)) for v in (0, -1, NAN)],
    *[(BadArgument, "mass is ", lambda v=v: matrices(mass=v)) for v in (-1, 1.5, NAN)],
    (BadArgument, "rank is -1", lambda: points(rank=-1)),
    (BadArgument, "epsilon is nan", lambda: matrices(epsilon=NAN)),
    (ValueError, "threads", lambda: matrices(threads=-1)),
    # what does not go together, and what there is no room for
    *[(Unsupported, "low rank with partial mass, relaxed", lambda o=o: points(rank=3, **o)) for o in ({"rho_source": 1.0}, {"mass": 0.5})],
    (Unsupported, "derivatives of a plan of low rank", lambda: points(rank=3).vjp(L)),
    (NoMemory, "bytes", lambda: points(np.repeat(X, 200, 0), np.repeat(Y, 200, 0), cost_store="f32", memory_limit=10**7)),
]
WARNED = [
    ("were divided by", lambda: matrices(a=2 * A, b=2 * B)),
    ("on the diagonal", lambda: matrices(but(C, (4, 4), 0.3))),
    ("not symmetric", lambda: matrices(but(C, (1, 2), C[1, 2] + 1))),
    ("linear_weight is 0", lambda: matrices(linear=L)),
]


class Inputs(unittest.TestCase):
    def test_refused(self):
        for kind, words, call in REFUSED:
            with self.subTest(words), self.assertRaises(kind) as refusal:
                call()
            self.assertIn(words, str(refusal.exception))

    def test_warned(self):
        for words, call in WARNED:
            with self.subTest(words), warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                self.assertEqual(call().report["status"], "FRG_OK")
                self.assertIn(words, " ".join(str(w.message) for w in said))

    def test_equal_points(self):
        """Distances 0 on both sides: the product plan, and the reason said."""
        found = points(np.ones((12, 3)), np.ones((9, 2)))
        self.assertEqual(found.report["reason"], "degenerate")
        np.testing.assert_allclose(found.plan(), np.full((12, 9), 1 / 108), rtol=1e-14)

    def test_one_point(self):
        """Its plan is the other side's weights, without a step."""
        found = matrices(np.zeros((1, 1)), b=np.arange(1, 10) / 45)
        self.assertEqual(found.report["outer_iterations"], 0)
        np.testing.assert_allclose(found.plan()[0], np.arange(1, 10) / 45, rtol=1e-14)

    def test_no_threads_named(self):
        np.testing.assert_array_equal(matrices(threads=0).plan(), matrices(threads=1).plan())


if __name__ == "__main__":
    unittest.main()
