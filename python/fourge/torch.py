"""fourge in torch: autograd functions on CPU tensors."""

import numpy as np
import torch

from . import _fourge, errors

__all__ = ["inv_quad_logdet"]


def _numpy(t):
    return t.detach().numpy()


class _InvQuadLogdet(torch.autograd.Function):
    @staticmethod
    def forward(ctx, k, r):
        batch, n = torch.broadcast_shapes(k.shape[:-2], r.shape[:-1]), k.shape[-1]
        k_all, r_all = k.expand(*batch, n, n), r.expand(*batch, n)
        inv_quad, logdet = np.empty(batch), np.empty(batch)
        a = torch.empty(*batch, n, dtype=k.dtype)
        inverse = torch.empty(*batch, n, n, dtype=k.dtype) if ctx.needs_input_grad[0] else None
        if k_all.numel():
            _fourge.invquad_logdet(_fourge.Context(), _numpy(k_all), _numpy(r_all), inv_quad, logdet, _numpy(a),
                                   None if inverse is None else _numpy(inverse))
        elif n == 0:
            inv_quad[...] = logdet[...] = 0
        ctx.save_for_backward(a, inverse)
        ctx.shapes = k.shape, r.shape
        return tuple(torch.from_numpy(np.asarray(v)).to(k.dtype) for v in (inv_quad, logdet))

    @staticmethod
    def backward(ctx, g_inv_quad, g_logdet):
        if torch.is_grad_enabled():  # create_graph: the inverse that is kept carries no graph
            raise errors.Unsupported("inv_quad_logdet has a first derivative alone; do not ask for create_graph")
        a, inverse = ctx.saved_tensors
        g_iq = None if g_inv_quad is None else np.ascontiguousarray(_numpy(g_inv_quad), dtype=np.float64)
        g_ld = None if g_logdet is None else np.ascontiguousarray(_numpy(g_logdet), dtype=np.float64)
        dk = torch.empty_like(inverse) if ctx.needs_input_grad[0] else None
        dr = torch.empty_like(a) if ctx.needs_input_grad[1] else None
        if a.numel():
            _fourge.invquad_logdet_backward(_fourge.Context(), None if inverse is None else _numpy(inverse), _numpy(a),
                                            g_iq, g_ld, None if dk is None else _numpy(dk),
                                            None if dr is None else _numpy(dr))
        k_shape, r_shape = ctx.shapes
        return (None if dk is None else dk.sum_to_size(k_shape)), (None if dr is None else dr.sum_to_size(r_shape))


def inv_quad_logdet(k, r):
    """(r' K^-1 r, log |K|) with gradients by one factor and one inverse.

    Parameters
    ----------
    k : (..., n, n) tensor, float32 or float64, on the CPU; symmetric positive definite, its lower triangle is read
    r : (..., n) tensor of the same type; batch shapes broadcast

    The gradient is the symmetric ``g_logdet K^-1 - g_inv_quad a a'`` with ``a = K^-1 r``, and ``2 g_inv_quad a``.  A
    second derivative is refused.
    """
    for name, t in (("k", k), ("r", r)):
        if t.device.type != "cpu":
            raise errors.NoDevice(f"{name} is on {t.device}; this build has the CPU alone")
        if t.dtype not in (torch.float32, torch.float64) or t.dtype != k.dtype:
            raise errors.BadArgument(f"{name} is {t.dtype}: expected float32 or float64, the same for both")
    if k.ndim < 2 or k.shape[-1] != k.shape[-2] or r.ndim < 1 or r.shape[-1] != k.shape[-1]:
        raise errors.BadArgument(f"expected k (..., n, n) and r (..., n), got {tuple(k.shape)} and {tuple(r.shape)}")
    return _InvQuadLogdet.apply(k, r)
