"""fourge.linalg.qr on tensors, beside torch.linalg.qr."""

import unittest

import torch

from fourge import errors, linalg


class Qr(unittest.TestCase):
    def test_against_torch(self):
        """The same shapes, types and names; the same factors up to signs."""
        generator = torch.Generator().manual_seed(0)
        for shape in ((5, 3), (3, 5), (4, 4), (2, 3, 6, 2)):
            for mode in ("reduced", "complete", "r"):
                a = torch.randn(shape, generator=generator, dtype=torch.float64)
                want, got = torch.linalg.qr(a, mode), linalg.qr(a, mode)
                with self.subTest(f"{shape} {mode}"):
                    self.assertEqual((got.Q.shape, got.R.shape), (want.Q.shape, want.R.shape))
                    self.assertEqual((got.Q.dtype, got.R.dtype), (a.dtype, a.dtype))
                    torch.testing.assert_close(got.R.abs(), want.R.abs(), rtol=1e-10, atol=1e-10)
                    if mode == "reduced":
                        torch.testing.assert_close(got.Q @ got.R, a)
                        torch.testing.assert_close(got.Q.abs(), want.Q.abs(), rtol=1e-10, atol=1e-10)

    def test_types(self):
        for dtype, tol in ((torch.float32, 1e-5), (torch.float16, 4e-3), (torch.bfloat16, 4e-2)):
            a = torch.randn(7, 4, generator=torch.Generator().manual_seed(1)).to(dtype)
            q, r = linalg.qr(a)
            self.assertEqual((q.dtype, r.dtype), (dtype, dtype))
            torch.testing.assert_close(q.float() @ r.float(), a.float(), rtol=tol, atol=4 * tol)
        a = torch.randn(6, 8, generator=torch.Generator().manual_seed(1)).T
        torch.testing.assert_close(torch.matmul(*linalg.qr(a)), a)
        found = linalg.qr([torch.eye(3), torch.ones(2, 4, 2)])
        self.assertEqual([f.Q.shape for f in found], [(3, 3), (2, 4, 2)])

    def test_refusals(self):
        with self.assertRaisesRegex(errors.Unsupported, r"A requires a gradient.*detach"):
            linalg.qr(torch.eye(3, requires_grad=True))
        with self.assertRaisesRegex(TypeError, "A: .*meta.*CPU"):
            linalg.qr(torch.empty(3, 3, device="meta"))
        with self.assertRaisesRegex(TypeError, "A: .*complex"):
            linalg.qr(torch.eye(3, dtype=torch.complex64))


if __name__ == "__main__":
    unittest.main()
