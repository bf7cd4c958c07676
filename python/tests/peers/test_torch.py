"""Autograd functions against torch's own."""

import unittest

import torch

from fourge import errors
from fourge.torch import inv_quad_logdet


def problem(*batch, n, dtype=torch.float64):
    torch.manual_seed(n)
    a = torch.randn(*batch, n, n, dtype=dtype)
    return a @ a.mT + n * torch.eye(n, dtype=dtype), torch.randn(*batch, n, dtype=dtype)


def symmetric(k, r):
    return inv_quad_logdet((k + k.mT) / 2, r)


class InvQuadLogdet(unittest.TestCase):
    def test_gradcheck(self):
        """n = 1 .. 8, batches (2, 3), and r without the first axis of k's batch."""
        for n in range(1, 9):
            k, r = problem(2, 3, n=n)
            inputs = k.requires_grad_(), r[0].clone().requires_grad_()
            self.assertTrue(torch.autograd.gradcheck(symmetric, inputs))

    def test_against_torch(self):
        for dtype, rtol in ((torch.float64, 1e-10), (torch.float32, 2e-4)):
            k, r = problem(4, n=30, dtype=dtype)
            ours, theirs = k.clone().requires_grad_(), k.clone().requires_grad_()
            iq, ld = inv_quad_logdet(ours, r)
            want_ld = torch.logdet(theirs)
            want_iq = (r * torch.linalg.solve(theirs, r)).sum(-1)
            torch.testing.assert_close(ld, want_ld, rtol=rtol, atol=rtol)
            torch.testing.assert_close(iq, want_iq, rtol=rtol, atol=rtol)
            (ld.sum() + 2 * iq.sum()).backward()
            (want_ld.sum() + 2 * want_iq.sum()).backward()
            symmetrised = (theirs.grad + theirs.grad.mT) / 2
            torch.testing.assert_close(ours.grad, symmetrised, rtol=10 * rtol, atol=10 * rtol)

    def test_layouts(self):
        k, r = problem(n=12)
        want = inv_quad_logdet(k, r)
        wide = torch.zeros(24, 24, dtype=k.dtype)
        wide[::2, ::2] = k
        for got in (inv_quad_logdet(wide[::2, ::2], r), inv_quad_logdet(k.mT, r), inv_quad_logdet(k.expand(3, 12, 12), r)):
            for g, w in zip(got, want):
                torch.testing.assert_close(g, w.expand(g.shape), rtol=1e-12, atol=1e-12)

    def test_k_is_not_touched_and_empty_batches_pass(self):
        k, r = problem(n=5)
        kept = k.clone()
        inv_quad_logdet(k, r)
        self.assertTrue(torch.equal(k, kept))
        iq, ld = inv_quad_logdet(k.expand(0, 5, 5), r)
        self.assertEqual((iq.shape, ld.shape), ((0,), (0,)))

    def test_refusals(self):
        k, r = problem(n=3)
        for bad in (k.half(), k.to(torch.complex64)):
            with self.assertRaises(errors.BadArgument):
                inv_quad_logdet(bad, r)
        with self.assertRaises(errors.NotPositiveDefinite):
            inv_quad_logdet(-k, r)
        k.requires_grad_()
        with self.assertRaises(errors.Unsupported):
            torch.autograd.grad(inv_quad_logdet(k, r)[1], k, create_graph=True)


if __name__ == "__main__":
    unittest.main()
