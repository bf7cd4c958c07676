"""fourge.linalg.qr: NumPy's shapes and modes, signs of our own, many shapes in one call."""

import unittest
import warnings

import numpy as np

from fourge import errors, linalg

RNG = np.random.default_rng(0)
SHAPES = [(1, 1), (5, 3), (3, 3), (3, 5), (40, 7), (130, 64)]


def eye(q):
    return np.eye(q.shape[-1]) + 0 * q[..., :1, :1]


class Qr(unittest.TestCase):
    def check(self, a, found, tol):
        q, r = found
        k = r.shape[-2]
        self.assertEqual((q.dtype, r.dtype), (a.dtype, a.dtype))
        np.testing.assert_allclose(np.swapaxes(q, -1, -2).astype(float) @ q, eye(q), atol=tol)
        np.testing.assert_allclose(q.astype(float) @ r, a, atol=tol * 20)
        np.testing.assert_array_equal(r[..., :, :k], np.triu(r[..., :, :k]))
        self.assertTrue((np.diagonal(r, axis1=-2, axis2=-1) >= -tol).all())

    def test_modes(self):
        for dtype, tol in ((np.float64, 1e-13), (np.float32, 1e-5)):
            for shape in SHAPES:
                for lead in ((), (4,), (2, 3)):
                    a = RNG.normal(size=(*lead, *shape)).astype(dtype)
                    for mode in ("reduced", "complete", "r"):
                        with self.subTest(f"{dtype.__name__} {a.shape} {mode}"):
                            want = [np.shape(x) for x in np.linalg.qr(a, mode)] if mode != "r" else [(0,), np.linalg.qr(a, "r").shape]
                            q, r = found = linalg.qr(a, mode)
                            self.assertEqual([q.shape, r.shape], want)
                            if mode != "r":
                                self.check(a, found, tol)
                            else:
                                np.testing.assert_array_equal(r, linalg.qr(a).R)

    def test_against_numpy(self):
        """The same up to signs, which make a matrix of full rank's factors unique."""
        for shape in SHAPES:
            a = RNG.normal(size=(3, *shape))
            q, r = np.linalg.qr(a)
            signs = np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
            found = linalg.qr(a)
            np.testing.assert_allclose(found.Q, q * signs[..., None, :], atol=1e-12)
            np.testing.assert_allclose(found.R, r * signs[..., :, None], atol=1e-12)

    def test_many_shapes_in_one_call(self):
        """Each has the bits that it has alone."""
        matrices = [RNG.normal(size=s) for s in SHAPES] + [RNG.normal(size=(2, 6, 4)).astype(np.float32)]
        found, reports = linalg.qr(matrices, return_reports=True)
        self.assertEqual(len(reports), len(SHAPES) + 2)
        for a, one in zip(matrices, found):
            alone = linalg.qr(a, threads=1)
            np.testing.assert_array_equal(one.Q, alone.Q)
            np.testing.assert_array_equal(one.R, alone.R)
        self.assertEqual(linalg.qr([]  + [np.eye(2)])[0].R.tolist(), [[1, 0], [0, 1]])

    def test_views_and_half(self):
        a = RNG.normal(size=(8, 12))
        for v in (a.T, a[::2, ::3], np.asfortranarray(a), a[::-1]):
            self.check(v, linalg.qr(v), 1e-13)
        half = RNG.normal(size=(6, 4)).astype(np.float16)
        self.check(half, linalg.qr(half), 4e-3)
        np.testing.assert_array_equal(linalg.qr([[1, 2], [3, 4]]).Q, linalg.qr(np.array([[1.0, 2], [3, 4]])).Q)

    def test_rank(self):
        a = RNG.normal(size=(9, 4))
        a[:, 2] = a[:, 0] - a[:, 1]
        (q, r), (report,) = linalg.qr(a, return_reports=True, verify="full")
        self.assertEqual((report["rank"], report["deficient"]), (3, True))
        self.assertLess(report["orthogonality"], 1e-13)
        np.testing.assert_allclose(q @ r, a, atol=1e-13)

    def test_not_a_number(self):
        a = RNG.normal(size=(3, 4, 4))
        a[1, 2, 2] = np.nan
        with self.assertWarnsRegex(UserWarning, "1 of 3"):
            q, r = linalg.qr(a)
        self.assertEqual(np.isnan(r).any((1, 2)).tolist(), [False, True, False])

    def test_refusals(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for says, call in (
                ("mode", lambda: linalg.qr(np.eye(2), "full")), ("A: .*shape", lambda: linalg.qr(np.zeros(3))),
                ("A: .*shape", lambda: linalg.qr(np.zeros((0, 3)))), ("A: .*complex", lambda: linalg.qr(np.eye(2) + 0j)),
                (r"A\[1\]: ", lambda: linalg.qr([np.eye(2), np.zeros(3)])), ("method='lapack'.*vendor", lambda: linalg.qr(np.eye(2), method="lapack")),
                ("no option 'tol'", lambda: linalg.qr(np.eye(2), tol=1)), ("ortho_tol='x'", lambda: linalg.qr(np.eye(2), ortho_tol="x")),
            ):
                with self.subTest(says), self.assertRaisesRegex((TypeError, ValueError), says):
                    call()
        self.assertTrue(issubclass(errors.BadArgument, ValueError))


if __name__ == "__main__":
    unittest.main()
