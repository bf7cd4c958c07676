"""Autograd functions against torch's own."""

import os
import random
import threading
import unittest

import numpy as np
import torch

import fourge.gp
from fourge import errors
from fourge.torch import inv_quad_logdet


def problem(*batch, n, dtype=torch.float64):
    torch.manual_seed(n)
    a = torch.randn(*batch, n, n, dtype=dtype)
    return a @ a.mT + n * torch.eye(n, dtype=dtype), torch.randn(*batch, n, dtype=dtype)


def symmetric(k, r):
    return inv_quad_logdet((k + k.mT) / 2, r)


class InvQuadLogdet(unittest.TestCase):
    def test_small_calls_share_a_context(self):
        """Of a thread of its own, with torch's number of threads, anew after a fork; large ones have one that ends with them."""
        at = lambda: fourge.torch._context_for(2500)
        first, seen = at(), []
        self.assertIs(at(), first)
        self.assertIsNot(fourge.torch._context_for(10**6), first)
        other = threading.Thread(target=lambda: seen.append(at()))
        other.start()
        other.join()
        self.assertIsNot(seen[0], first)
        threads = torch.get_num_threads()
        torch.set_num_threads(threads + 1)
        self.assertIsNot(at(), first)
        torch.set_num_threads(threads)
        k, r = 2 * torch.eye(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
        child = os.fork()
        if child == 0:  # the same numbers, and no wait for threads that are not there
            os._exit(not (abs(inv_quad_logdet(k, r)[0].item() - 1.5) < 1e-15))
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_gradcheck(self):
        """n = 1 .. 8, batches (2, 3), and r without the first axis of k's batch."""
        for n in range(1, 9):
            k, r = problem(2, 3, n=n)
            inputs = k.requires_grad_(), r[0].clone().requires_grad_()
            self.assertTrue(torch.autograd.gradcheck(symmetric, inputs))

    def test_second_derivatives(self):
        for n in (1, 3):
            k, r = problem(2, 1, n=n)
            self.assertTrue(torch.autograd.gradgradcheck(symmetric, (k.requires_grad_(), r[0].clone().requires_grad_())))

    def test_any_number_of_axes(self):
        """Batches of 0 to 6 axes, either side broadcast: every member is what it is alone, derivatives are sums of theirs."""
        draw = random.Random(7)
        for axes in range(7):
            for _ in range(4):
                batch = [draw.randint(1, 3) for _ in range(axes)]
                ks, rs = ([1 if draw.random() < 0.3 else b for b in batch][draw.randint(0, axes):] for _ in range(2))
                n = draw.randint(1, 5)
                k, r = problem(*ks, n=n)[0].requires_grad_(), problem(*rs, n=n)[1].requires_grad_()
                with self.subTest(k=tuple(k.shape), r=tuple(r.shape)):
                    iq, ld = inv_quad_logdet(k, r)
                    shape = torch.broadcast_shapes(k.shape[:-2], r.shape[:-1])
                    self.assertEqual((iq.shape, ld.shape), (shape, shape))
                    want_iq = (r * (torch.linalg.inv(k) @ r.unsqueeze(-1)).squeeze(-1)).sum(-1)
                    want = torch.logdet(k).expand(shape), want_iq
                    for got, theirs in zip((ld, iq), want):
                        torch.testing.assert_close(got, theirs, rtol=1e-10, atol=1e-10)
                    mine = torch.autograd.grad(2 * iq.sum() + ld.sum(), (k, r))
                    theirs = torch.autograd.grad(2 * want[1].sum() + want[0].sum(), (k, r))
                    torch.testing.assert_close(mine[0], (theirs[0] + theirs[0].mT) / 2, rtol=1e-9, atol=1e-9)
                    torch.testing.assert_close(mine[1], theirs[1], rtol=1e-9, atol=1e-9)
        a = problem(2, 1, 3, 2, n=4)
        for got, want in zip(fourge.gp.invquad_logdet(*a, inverse=True), (*inv_quad_logdet(*a), None, torch.linalg.inv(a[0]))):
            if want is not None:
                np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)

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


if __name__ == "__main__":
    unittest.main()
