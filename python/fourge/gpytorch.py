"""fourge under GPyTorch: exact marginal likelihoods with one factor and one inverse, and whole fits in C.

>>> from fourge.gpytorch import fast_mll
>>> with fast_mll():
...     loss = -mll(model(train_x), train_y)
...     loss.backward()

Two levels.  Kernels that fourge knows (Scale, RBF, Matern, RQ, Periodic, Linear, Polynomial, Constant, sums and products
of them, with ARD and active_dims) over one set of points with one noise or fixed noises are evaluated in C from points
and parameters; torch holds no n x n tensor.  What else is dense goes through :func:`fourge.torch.inv_quad_logdet`.
Structured operators, batches too large for ``max_cholesky_size``, other devices and types stay with GPyTorch.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import functools
import inspect
import threading
import weakref
from typing import Any

try:
    import gpytorch
    import linear_operator.operators as operators
except ImportError as e:
    raise ImportError("fourge.gpytorch needs gpytorch: pip install gpytorch") from e
import numpy as np
import torch

from . import errors
from .gp import GP
from .torch import inv_quad_logdet

__all__ = ["fast_mll", "fit_mll", "use_torch_tensors"]

_K = gpytorch.kernels


class _Unknown(Exception):
    """A module that the library has no word for; its text names it."""


# ---- modules as an expression ------------------------------------------------------------------------------------


class _Leaf:
    """A parameter of a module: where it is read and written, and its bounds."""

    def __init__(self, module, name, raw, constraint):
        self.module, self.name, self.raw, self.constraint = module, name, raw, constraint

    @property
    def value(self):
        return getattr(self.module, self.name)

    def write(self, values):
        raw = getattr(self.module, self.raw)
        values = torch.as_tensor(values, dtype=raw.dtype).reshape(raw.shape)
        with torch.no_grad():
            raw.copy_(values if self.constraint is None else self.constraint.inverse_transform(values))


class _Expression:
    """Text of a kernel, with a number of its own in every place, so that places are found again in the process."""

    def __init__(self, kernel, d, bounds):
        self.leaves: list[_Leaf] = []
        self.numbers: list[float] = []
        self.d, self.bounds, self.within = d, bounds, False
        self.text = self.of(kernel)

    def number(self, leaf):
        """One place; with the constraint's bounds where they are asked for."""
        self.numbers.append(0.5 + 0.0078125 * len(self.numbers))
        text = repr(self.numbers[-1])
        c = leaf.constraint
        if self.bounds and c is not None:
            low, high = float(c.lower_bound.max()), float(c.upper_bound.min())
            if np.isfinite(high) or (low > 0 and leaf.raw != "raw_noise"):
                self.numbers[-1] = low + (min(high, low + 1) - low) * (0.25 + 0.0078125 * (len(self.numbers) % 64))
                text = f"{self.numbers[-1]!r}in({low!r},{min(high, 1e300)!r})"
        return text

    def leaf(self, module, name, vector=False):
        raw = "raw_" + name
        leaf = _Leaf(module, name, raw, module.constraint_for_parameter_name(raw))
        n = leaf.value.numel()
        if n > 1 and not vector:
            raise _Unknown(f"{type(module).__name__} with {n} values of {name}")
        self.leaves.append(leaf)
        numbers = [self.number(leaf) for _ in range(n)]
        return numbers[0] if n == 1 else "[" + ",".join(numbers) + "]"

    def of(self, k, direct=False):
        """Text of a kernel; `direct`: it is called by its parent's forward, which has chosen the columns."""
        if len(k.batch_shape):
            raise _Unknown("a batch of kernels")
        inside = _TEXTS.get(type(k))
        if inside is None:
            raise _Unknown(type(k).__name__)
        if k.active_dims is None or direct:
            return inside(self, k)
        if self.within:
            raise _Unknown("columns chosen among chosen ones")
        self.within = True
        text = inside(self, k)
        self.within = False
        return f"on({','.join(f'c{int(c)}' for c in k.active_dims)}; {text})"


def _matern(e, k):
    word = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}.get(k.nu)
    if word is None:
        raise _Unknown(f"MaternKernel with nu={k.nu}")
    return f"{word}(l={e.leaf(k, 'lengthscale', True)})"


def _scale(e, k):
    return f"{e.leaf(k, 'outputscale')}*({e.of(k.base_kernel, direct=True)})"


def _polynomial(e, k):
    return f"poly(q={int(k.power)}, c={e.leaf(k, 'offset')})"


_TEXTS = {
    _K.ScaleKernel: _scale,
    _K.RBFKernel: lambda e, k: f"rbf(l={e.leaf(k, 'lengthscale', True)})",
    _K.MaternKernel: _matern,
    _K.RQKernel: lambda e, k: f"rq(l={e.leaf(k, 'lengthscale', True)}, alpha={e.leaf(k, 'alpha')})",
    _K.PeriodicKernel: lambda e, k: f"periodic(l={e.leaf(k, 'lengthscale')}, p={e.leaf(k, 'period_length')}, form=gpytorch)",
    _K.LinearKernel: lambda e, k: f"linear(v={e.leaf(k, 'variance', True)})",
    _K.PolynomialKernel: _polynomial,
    _K.ConstantKernel: lambda e, k: f"const({e.leaf(k, 'constant')})",
    _K.AdditiveKernel: lambda e, k: "(" + " + ".join(e.of(x) for x in k.kernels) + ")",
    _K.ProductKernel: lambda e, k: " * ".join("(" + e.of(x) + ")" for x in k.kernels),
}


def _places(process, numbers):
    """For every place of the expression its parameter in the process."""
    values = np.array([p["value"] for p in process.parameters])
    order = [int(np.abs(values - x).argmin()) for x in numbers]
    if len(set(order)) != len(numbers):
        raise _Unknown("parameters that share a place")
    return order


# ---- level 1: everything in C ------------------------------------------------------------------------------------


class _Fused:
    """A process that stands for kernel, points and noise; parameters and y are set before every evaluation."""

    def __init__(self, kernel, x, noise, dtype):
        expression = _Expression(kernel, x.shape[1], bounds=False)
        text, numbers = expression.text, list(expression.numbers)
        self.learns_noise = noise is None
        if self.learns_noise:
            numbers.append(0.25)
            text += " + noise(0.25in(1e-300,1e300))"
        self.x, self.noise = x, noise
        self.gp = GP(x, np.zeros(len(x), dtype), text, mean="zero", noise_variances=noise,
                     jitter="gpytorch", precision="f32" if dtype == np.float32 else "f64", auto_promote=dtype == np.float32,
                     preset="gpytorch", columns=[f"c{i}" for i in range(x.shape[1])])
        self.lower = np.array([p["lower"] for p in self.gp.parameters])
        self.order = np.array(_places(self.gp, numbers))
        if len(self.order) != len(self.gp.parameters):
            raise _Unknown("a kernel with parameters of its own")
        self.leaves = expression.leaves
        self.lock = threading.Lock()

    def fits(self, x, noise):
        return x.shape == self.x.shape and x.dtype == self.x.dtype and np.array_equal(x, self.x) and (
            self.learns_noise if noise is None else not self.learns_noise and np.array_equal(noise, self.noise))

    def evaluate(self, theta, r, wants):
        with self.lock:
            t = np.empty(len(theta))
            t[self.order] = theta
            if (t <= self.lower).any():
                raise _Unknown("a parameter below the smallest that the library takes")
            self.gp._gp.update_y(r)
            self.gp._gp.update(t)
            if not any(wants):
                return self.gp._gp.value()["log_likelihood"], None, None, None
            g = np.empty(len(t))
            dx = np.empty(self.x.shape) if wants[0] else None
            dr = np.empty(r.shape) if wants[1] else None
            value = self.gp._gp.gradient(g, dx, dr)["log_likelihood"]
            return value, dx, dr, (g / t)[self.order]  # the library's are per logarithm


class _LogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fused, x, r, theta):
        wants = ctx.needs_input_grad[1:]
        value, dx, dr, dtheta = fused.evaluate(theta.detach().double().numpy(), r.detach().numpy(), wants)
        tensor = lambda a, like: None if a is None else torch.from_numpy(a).to(like.dtype)
        ctx.parts = tensor(dx, x), tensor(dr, r), tensor(dtheta, theta)
        return torch.tensor(value, dtype=r.dtype)

    @staticmethod
    def backward(ctx, g):
        if torch.is_grad_enabled():
            raise errors.Unsupported("fast_mll has a first derivative alone; do not ask for create_graph")
        return None, *(None if p is None or not w else g * p for p, w in zip(ctx.parts, ctx.needs_input_grad[1:]))


# ---- level 1 from above: the marginal likelihood of an ExactGP -----------------------------------------------------
#
# What GPyTorch itself does around a small likelihood costs more than the likelihood.  A tree of modules that was
# understood once is read at its raw parameters: value = transform(raw), d value / d raw in closed form.


def _softplus(raw):
    # log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), its derivative 1 / (1 + e^-x); torch takes x itself above 20
    small = np.exp(-np.abs(raw))
    value, slope = np.maximum(raw, 0) + np.log1p(small), np.where(raw < 0, small, 1.0) / (1 + small)
    if raw.max() > 20:
        value, slope = np.where(raw > 20, raw, value), np.where(raw > 20, 1.0, slope)
    return value, slope


def _sigmoid(raw):
    value = 1 / (1 + np.exp(-np.clip(raw, -700, 700)))
    return value, value * (1 - value)


_TRANSFORMS = {
    gpytorch.constraints.constraints.softplus: _softplus,
    torch.nn.functional.softplus: _softplus,
    torch.sigmoid: _sigmoid,
    torch.exp: lambda raw: (np.exp(raw), np.exp(raw)),
}


class _Link:
    """One leaf: where its raw values lie, and the constraint's map."""

    def __init__(self, leaf):
        self.parameters, self.name = leaf.module._parameters, leaf.raw
        c = leaf.module.constraint_for_parameter_name(leaf.raw)  # the one of now
        self.parameter = self.parameters.get(self.name)
        if type(self.parameter) is not torch.nn.Parameter:
            raise _Unknown("a parameter that is not torch's")
        self.values = self.parameter.detach().numpy().ravel()  # a view: parameters are dense where they are this small
        self.pointer, self.shape, self.dtype = self.parameter.data_ptr(), self.parameter.shape, self.parameter.dtype
        if not np.shares_memory(self.values, self.parameter.detach().numpy()):
            raise _Unknown("a parameter with strides")
        self.map, self.low, self.width = None, 0.0, 1.0
        self.bounds = [] if c is None else [(c._buffers, key, c._buffers[key], c._buffers[key]._version) for key in c._buffers]
        if c is None or not c.enforced:
            return
        known = {gpytorch.constraints.Positive, gpytorch.constraints.GreaterThan, gpytorch.constraints.Interval}
        self.map = _TRANSFORMS.get(c._transform)
        if type(c) not in known or self.map is None or c.lower_bound.numel() > 1 or c.upper_bound.numel() > 1:
            raise _Unknown(f"a constraint {c}")
        self.low = float(c.lower_bound)
        if type(c) is gpytorch.constraints.Interval:
            self.width = float(c.upper_bound) - self.low


class _Prepared:
    """An ExactMarginalLogLikelihood with its process; `holds` tells whether its modules are still the same."""

    def __init__(self, mll, kernel, fused):
        self.fused, self.kernel = fused, kernel
        modules, self.seen = list(mll.modules()), (None, 0)
        self.trees = [(m._modules, tuple(m._modules.values())) for m in modules]
        self.below = [(m._modules, tuple(m._modules.values())) for m in kernel.modules()]
        self.kernels = [(m, self._settings(m)) for m in kernel.modules() if isinstance(m, _K.Kernel)]
        self.terms = [d for m in modules for d in (getattr(m, "_priors", None), getattr(m, "_added_loss_terms", None)) if d is not None]
        noise = mll.likelihood.noise_covar
        self.links = [_Link(leaf) for leaf in (*fused.leaves, _Leaf(noise, "noise", "raw_noise", noise.raw_noise_constraint))]
        self.raws = [link.parameter for link in self.links]
        self.bounds = [b for link in self.links for b in link.bounds]
        ends = np.cumsum([len(link.values) for link in self.links])
        self.places = [slice(int(end) - len(link.values), int(end)) for link, end in zip(self.links, ends)]
        self.low, self.width = (np.concatenate([np.full(len(link.values), getattr(link, k)) for link in self.links])
                                for k in ("low", "width"))
        self.maps = [(f, np.concatenate([np.full(len(link.values), link.map is f) for link in self.links]))
                     for f in {link.map for link in self.links}]
        self.kinds = list(zip(self.places, (link.shape for link in self.links), (link.dtype for link in self.links)))
        if ends[-1] != len(fused.order):
            raise _Unknown("a noise of its own for every point")

    @staticmethod
    def _settings(kernel):
        columns = kernel._buffers.get("active_dims")
        more = kernel.__dict__
        return columns, None if columns is None else columns._version, more.get("nu"), more.get("power")

    def at(self, x):
        """Whether the process has these points; a tensor that was compared before and has not changed since has."""
        last, version = self.seen
        if last is not None and last() is x and x._version == version:
            return True
        same = self.fused.fits(x.detach().numpy(), None)
        self.seen = (weakref.ref(x), x._version) if same else (None, 0)
        return same

    def holds(self):
        return self.kernel_holds(self.trees) and self.parameters_hold()

    def kernel_holds(self, trees):
        for modules, children in trees:
            if tuple(modules.values()) != children:
                return False
        for m, known in self.kernels:
            now = self._settings(m)
            if now[0] is not known[0] or now[1:] != known[1:]:
                return False
        return True

    def parameters_hold(self):
        for link in self.links:
            p = link.parameter
            if link.parameters.get(link.name) is not p or p.data_ptr() != link.pointer or p.shape != link.shape:
                return False
        return all(buffers.get(key) is b and b._version == version for buffers, key, b, version in self.bounds)

    @property
    def plain(self):
        """No priors and no added terms."""
        return not any(d and any(v is not None for v in d.values()) for d in self.terms)

    def values(self):
        """(values, d values / d raw) of all parameters."""
        raw = np.concatenate([link.values for link in self.links], dtype=np.float64)
        value, slope = raw, np.ones(len(raw))
        for f, where in self.maps:
            if f is not None:
                y, dy = f(raw)
                value, slope = (y, dy) if len(self.maps) == 1 else (np.where(where, y, value), np.where(where, dy, slope))
        return self.low + self.width * value, self.width * slope


def _constant_under(loc):
    """The parameter that a constant mean was expanded from, or None."""
    fn = loc.grad_fn
    for name in ("ExpandBackward0", "UnsqueezeBackward0"):
        if fn is None or fn.name() != name or len(fn.next_functions) != 1:
            return None
        fn = fn.next_functions[0][0]
    found = getattr(fn, "variable", None)
    return found if found is not None and found.numel() == 1 and not loc._backward_hooks and not loc.retains_grad else None


class _Marginal(torch.autograd.Function):
    """share log N(target; mean, K + noise); mean: a constant's parameter, or the values at all points."""

    @staticmethod
    def forward(ctx, value, parts, share, kinds, x, target, mean, *raws):
        ctx.parts, ctx.share, ctx.kinds, ctx.mean = parts, share, kinds, (mean.shape, mean.dtype)
        return torch.tensor(value * share, dtype=target.dtype)

    @staticmethod
    def backward(ctx, g):
        if torch.is_grad_enabled():
            raise errors.Unsupported("fast_mll has a first derivative alone; do not ask for create_graph")
        scale, needs, (dx, dr, dtheta), (shape, dtype) = g.item() * ctx.share, ctx.needs_input_grad[4:], ctx.parts, ctx.mean
        tensor = lambda a, kind: torch.from_numpy(a) if kind is torch.float64 else torch.from_numpy(a).to(kind)
        dmean = None
        if needs[2]:
            dmean = -scale * dr if len(shape) == 1 and shape[0] == len(dr) else np.full(shape, -scale * dr.sum())
            dmean = tensor(dmean, dtype)
        out = [None, None, None, None, tensor(scale * dx, dtype) if needs[0] else None, tensor(scale * dr, dtype) if needs[1] else None, dmean]
        if dtheta is not None:
            dtheta = scale * dtheta
        for (place, shape, kind), wanted in zip(ctx.kinds, needs[3:]):
            out.append(tensor(dtheta[place], kind).view(shape) if wanted else None)
        return tuple(out)


_prepared: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()


def _marginal_value(mll, normal, target):
    """(log likelihood, whether it is divided by n already); _Unknown where something is not one of the library's."""
    if type(normal) is not _Normal:
        raise _Unknown(type(normal).__name__)
    lazy, loc = normal.lazy_covariance_matrix, normal.loc
    if target.shape != loc.shape or target.dtype != loc.dtype or loc.ndim != 1 or not target.is_cpu:
        raise _Unknown("targets of another shape or type")
    x, prepared = _points(lazy), _prepared.get(mll)
    if prepared is None or prepared.kernel is not lazy.kernel or not prepared.holds() or not prepared.at(x):
        prepared = _prepare(mll, lazy, np.float32 if loc.dtype == torch.float32 else np.float64)
    plain, constant, raws = prepared.plain, _constant_under(loc), prepared.raws
    mean, r = loc if constant is None else constant, target.detach().numpy() - loc.detach().numpy()
    graph = torch.is_grad_enabled()
    theta, slope = prepared.values()
    wants = (graph and x.requires_grad, graph and (target.requires_grad or mean.requires_grad),
             graph and any([p.requires_grad for p in raws]))
    value, dx, dr, dtheta = prepared.fused.evaluate(theta, r, wants)
    share = 1 / len(r) if plain else 1.0
    parts = dx, dr, None if dtheta is None else dtheta * slope
    return _Marginal.apply(value, parts, share, prepared.kinds, x, target, mean, *raws), plain


def _prepare(mll, lazy, dtype):
    noise = getattr(mll.likelihood, "noise_covar", None)
    if (type(mll.likelihood) is not gpytorch.likelihoods.GaussianLikelihood
            or type(noise) is not gpytorch.likelihoods.noise_models.HomoskedasticNoise or noise.raw_noise.numel() != 1):
        raise _Unknown(type(mll.likelihood).__name__)
    prepared = _Prepared(mll, lazy.kernel, _fused_at(lazy, None, dtype))
    with _cache_lock:
        _prepared[mll] = _by_kernel[id(lazy.kernel)] = prepared
    return prepared


_by_kernel: "weakref.WeakValueDictionary[int, Any]" = weakref.WeakValueDictionary()  # alive as long as its likelihood


def _lazy_size(self):
    """The shape of a covariance of a kernel that is known to have no batch."""
    known = _by_kernel.get(id(self.kernel)) if _settings.get() is not None else None
    if known is None or known.kernel is not self.kernel or self.x1.ndim != 2 or self.x2.ndim != 2 or self.last_dim_is_batch or not known.kernel_holds(known.below):
        return _original_size(self)
    return torch.Size((self.x1.shape[0], self.x2.shape[0]))


_cache: "collections.OrderedDict[int, tuple[Any, Any]]" = collections.OrderedDict()
_cache_lock = threading.Lock()
_CACHED = 8


def _structure(kernel):
    """What makes an expression of a kernel another one: modules, columns, numbers of values."""
    return tuple((id(k), type(k).__name__, None if k.active_dims is None else tuple(map(int, k.active_dims)),
                  getattr(k, "nu", None), getattr(k, "power", None), tuple(p.shape for p in k.parameters(recurse=False)))
                 for k in kernel.modules() if isinstance(k, _K.Kernel))


def _fused_of(kernel, x, noise, dtype):
    """The process of the last calls with this kernel, or a new one."""
    key, structure = id(kernel), _structure(kernel)
    with _cache_lock:
        kept = _cache.pop(key, None)
    if kept is None or kept[0] is not kernel or kept[1] != structure or not kept[2].fits(x, noise):
        kept = kernel, structure, _Fused(kernel, x.copy(), None if noise is None else noise.copy(), dtype)
    with _cache_lock:
        _cache[key] = kept
        while len(_cache) > _CACHED:
            _cache.popitem(last=False)
    return kept[2]


def _points(lazy):
    """The points of a covariance that was not evaluated yet."""
    if type(lazy).__name__ != "LazyEvaluatedKernelTensor" or lazy.last_dim_is_batch or lazy.params or lazy.x1.ndim != 2:
        raise _Unknown(type(lazy).__name__)
    if lazy.x1 is lazy.x2:
        return lazy.x1
    if not torch.equal(lazy.x1, lazy.x2):
        raise _Unknown("a covariance between two sets of points")
    return (lazy.x1 + lazy.x2) / 2


def _fused_at(lazy, noise, dtype):
    """The process of a covariance: its points have the kernel's columns already, so that these are left out."""
    kernel, kept = lazy.kernel, lazy.kernel.active_dims
    kernel.active_dims = None
    try:
        return _fused_of(kernel, lazy.x1.detach().numpy(), noise, dtype)
    finally:
        kernel.active_dims = kept


def _fused_value(r, covar):
    """log N(r; 0, covar) at level 1; _Unknown where it is not one of the library's."""
    if type(covar) is not operators.AddedDiagLinearOperator or r.ndim != 1:
        raise _Unknown(type(covar).__name__)
    lazy, diagonal = covar._linear_op, covar._diag_tensor
    x = _points(lazy)
    noise, learned = None, []
    if type(diagonal) is operators.ConstantDiagLinearOperator:
        learned = [diagonal.diag_values.reshape(-1)]
    elif type(diagonal) is operators.DiagLinearOperator and not diagonal._diag.requires_grad:
        noise = diagonal._diag.detach().double().expand(len(r)).contiguous().numpy()
    else:
        raise _Unknown("a noise that is learned for every point")
    dtype = np.float32 if r.dtype == torch.float32 else np.float64
    fused = _fused_at(lazy, noise, dtype)
    theta = torch.cat([leaf.value.reshape(-1) for leaf in fused.leaves] + learned)
    return _LogLikelihood.apply(fused, x, r, theta)


# ---- level 2: dense matrices ---------------------------------------------------------------------------------------

_DENSE = {
    operators.DenseLinearOperator, operators.DiagLinearOperator, operators.ConstantDiagLinearOperator,
    operators.AddedDiagLinearOperator, operators.SumLinearOperator, operators.PsdSumLinearOperator,
    operators.ConstantMulLinearOperator, operators.MulLinearOperator, operators.RootLinearOperator,
    operators.LowRankRootLinearOperator, operators.MatmulLinearOperator, operators.BatchRepeatLinearOperator,
}


def _is_dense(op):
    return type(op) in _DENSE and all(_is_dense(a) for a in op._args if isinstance(a, operators.LinearOperator))


def _dense_value(diff, covar):
    covar = covar.evaluate_kernel()
    if not _is_dense(covar):
        raise _Unknown(type(covar).__name__)
    inv_quad, logdet = inv_quad_logdet(covar.to_dense(), diff)
    return -0.5 * (inv_quad + logdet + diff.shape[-1] * np.log(2 * np.pi))


# ---- the patch -------------------------------------------------------------------------------------------------------

_settings: contextvars.ContextVar[tuple[bool, bool] | None] = contextvars.ContextVar("fourge_fast_mll", default=None)
_patch_lock = threading.Lock()
_patched = 0
_Normal = gpytorch.distributions.MultivariateNormal
_original = _Normal.__dict__["log_prob"]
_Mll = gpytorch.mlls.ExactMarginalLogLikelihood
_original_mll = _Mll.__dict__["forward"]
_Lazy = gpytorch.lazy.LazyEvaluatedKernelTensor
_original_size = _Lazy.__dict__["_size"]


@functools.cache
def _check_version():
    found = getattr(gpytorch, "__version__", "unknown")
    good = (list(inspect.signature(_original).parameters) == ["self", "value"]
            and {"loc", "lazy_covariance_matrix"} <= set(_original.__code__.co_names)
            and list(inspect.signature(_original_mll).parameters)[:3] == ["self", "function_dist", "target"]
            and hasattr(_Mll, "_add_other_terms")
            and hasattr(gpytorch.settings.fast_computations, "log_prob")
            and hasattr(operators.LinearOperator, "evaluate_kernel"))
    if not good:
        raise errors.Unsupported(f"gpytorch {found} computes log_prob in another way than 1.15, which this version of fourge knows")


def _log_prob(self, value):
    setting = _settings.get()
    if setting is None or gpytorch.settings.fast_computations.log_prob.off():
        return _original(self, value)
    fused, exact = setting
    loc, n = self.loc, self.loc.shape[-1]
    if (not loc.is_cpu or loc.dtype not in (torch.float32, torch.float64) or value.dtype != loc.dtype
            or (n > gpytorch.settings.max_cholesky_size.value() and not exact)):
        fast_mll.stats["untouched"] += 1
        return _original(self, value)
    if self._validate_args:
        self._validate_sample(value)
    diff, covar = value - loc, self.lazy_covariance_matrix
    if fused:
        try:
            out = _fused_value(diff, covar)
            fast_mll.stats["fused"] += 1
            return out
        except (_Unknown, errors.BadArgument, errors.NotPositiveDefinite, errors.BadData):
            pass  # the dense way or GPyTorch's own says what is wrong with it
    try:
        out = _dense_value(diff, covar)
        fast_mll.stats["dense"] += 1
        return out
    except (_Unknown, errors.NotPositiveDefinite, errors.BadArgument):
        fast_mll.stats["untouched"] += 1
        return _original(self, value)


def _mll_forward(self, function_dist, target, *params, **kwargs):
    setting = _settings.get()
    loc = getattr(function_dist, "loc", None)
    if (setting is None or not setting[0] or params or kwargs or loc is None or not loc.is_cpu
            or loc.dtype not in (torch.float32, torch.float64) or gpytorch.settings.fast_computations.log_prob.off()
            or gpytorch.settings.observation_nan_policy.value() != "ignore"
            or (loc.shape[-1] > gpytorch.settings.max_cholesky_size.value() and not setting[1])):
        return _original_mll(self, function_dist, target, *params, **kwargs)
    try:
        value, done = _marginal_value(self, function_dist, target)
    except (_Unknown, errors.BadArgument, errors.NotPositiveDefinite, errors.BadData):
        return _original_mll(self, function_dist, target)  # by way of log_prob
    fast_mll.stats["fused"] += 1
    return value if done else self._add_other_terms(value, params).div_(function_dist.event_shape.numel())


class fast_mll(contextlib.ContextDecorator):
    """Within the block ``MultivariateNormal.log_prob``, and so every exact marginal likelihood, is fourge's.

    Parameters
    ----------
    fused : bool, default True
        False: only the dense way, in torch's tensors.
    exact : bool, default False
        True: sizes above ``gpytorch.settings.max_cholesky_size`` as well, which GPyTorch would solve by conjugate
        gradients.

    Values agree with GPyTorch's to 1e-10 relative in float64 (1e-4 in float32), gradients to 1e-8 (1e-3).  Blocks nest,
    belong to the thread or task that enters them, and end with exceptions too.  ``fast_mll.stats`` counts the calls by
    way: "fused", "dense", "untouched".  A second derivative is refused.

    Raises :class:`fourge.errors.Unsupported` for releases of gpytorch that compute in another way.
    """

    stats: "collections.Counter[str]" = collections.Counter()

    def __init__(self, *, fused: bool = True, exact: bool = False):
        self._setting, self._tokens = (fused, exact), []

    def __enter__(self):
        global _patched
        _check_version()
        with _patch_lock:
            if _patched == 0:
                _Normal.log_prob, _Mll.forward, _Lazy._size = _log_prob, _mll_forward, _lazy_size
            _patched += 1
        self._tokens.append(_settings.set(self._setting))
        return fast_mll.stats

    def __exit__(self, *exception):
        global _patched
        _settings.reset(self._tokens.pop())
        with _patch_lock:
            _patched -= 1
            if _patched == 0:
                _Normal.log_prob, _Mll.forward, _Lazy._size = _original, _original_mll, _original_size
        return False

    def _recreate_cm(self):
        return fast_mll(fused=self._setting[0], exact=self._setting[1])


def use_torch_tensors(state: bool = True) -> contextlib.AbstractContextManager:
    """The dense way alone, as ``gpytorch.settings.use_torch_tensors`` was proposed."""
    return fast_mll(fused=False) if state else contextlib.nullcontext()


# ---- fits --------------------------------------------------------------------------------------------------------------

_PRIORS = {
    "GammaPrior": ("gamma", "concentration", "rate"),
    "NormalPrior": ("normal", "loc", "scale"),
    "LogNormalPrior": ("lognormal", "loc", "scale"),
    "UniformPrior": ("uniform", "low", "high"),
}


def _prior_text(prior):
    found = _PRIORS.get(type(prior).__name__)
    if found is None:
        raise errors.Unsupported(f"fit_mll knows no prior {type(prior).__name__}; it knows {sorted(_PRIORS)}")
    word, *names = found
    return f"{word}({', '.join(repr(float(getattr(prior, n))) for n in names)})"


def _mean_leaves(mean, d):
    """The word for the mean, and its parameters with the number of their values."""
    kind = type(mean)
    if kind is gpytorch.means.ZeroMean:
        return "zero", []
    if kind is gpytorch.means.ConstantMean:
        return "const", [_Leaf(mean, "constant", "raw_constant", getattr(mean, "raw_constant_constraint", None))]
    if kind is gpytorch.means.LinearMean:
        leaves = [_Leaf(mean, "weights", "weights", None)]
        if mean.bias is None:
            raise errors.Unsupported("fit_mll takes a LinearMean with its bias")
        return "linear", [_Leaf(mean, "bias", "bias", None), *leaves]
    raise errors.Unsupported(f"fit_mll knows no mean {kind.__name__}; it knows ZeroMean, ConstantMean and LinearMean")


def _noise_leaf(likelihood, n):
    """(fixed variances or None, leaf or None)."""
    if type(likelihood) is gpytorch.likelihoods.GaussianLikelihood:
        noise = likelihood.noise_covar
        return None, _Leaf(noise, "noise", "raw_noise", noise.raw_noise_constraint)
    if type(likelihood) is gpytorch.likelihoods.FixedNoiseGaussianLikelihood and likelihood.second_noise_covar is None:
        return likelihood.noise.detach().double().expand(n).contiguous().numpy(), None
    raise errors.Unsupported(f"fit_mll knows no likelihood {type(likelihood).__name__} of this kind; it knows "
                             "GaussianLikelihood and FixedNoiseGaussianLikelihood without additional noise")


def fit_mll(model: Any, likelihood: Any = None, *, method: str = "auto", threads: int = 0, seed: int = 0,
            **options: Any) -> dict[str, Any]:
    """Maximises the exact marginal likelihood and the priors over all parameters, and writes them into the model.

    Parameters
    ----------
    model : gpytorch.models.ExactGP with ``mean_module`` and ``covar_module``, or an ExactMarginalLogLikelihood
    likelihood : the model's, if it is not given
    method : "auto", "ai" (average information), "lbfgsb" or "adam"
    **options
        max_iter, tol, learning_rate, starts, standard_errors: as :meth:`fourge.gp.GP.fit`.

    Returns
    -------
    dict
        log_likelihood, gradient_norm, iterations, status, trace, ...; see :meth:`fourge.gp.GP.fit`.

    Constraints are bounds of the search, parameters that require no gradient stay.  Raises
    :class:`fourge.errors.Unsupported` naming the module, mean, likelihood or prior that the library has no word for.
    """
    if isinstance(model, gpytorch.mlls.ExactMarginalLogLikelihood):
        model, likelihood = model.model, model.likelihood
    likelihood = model.likelihood if likelihood is None else likelihood
    x, y = model.train_inputs[0], model.train_targets
    if len(model.train_inputs) != 1 or x.ndim > 2 or y.ndim != 1:
        raise errors.Unsupported("fit_mll takes one array of inputs (n, d) and targets (n,)")
    if not x.is_cpu:
        raise errors.NoDevice(f"the training inputs are on {x.device}; this build of fourge has the CPU alone")
    x, y = x.reshape(len(y), -1).detach().double().numpy(), y.detach().double().numpy()
    try:
        expression = _Expression(model.covar_module, x.shape[1], bounds=True)
    except _Unknown as e:
        raise errors.Unsupported(f"fit_mll knows no {e}") from None
    mean, mean_leaves = _mean_leaves(model.mean_module, x.shape[1])
    fixed_noise, noise = _noise_leaf(likelihood, len(y))
    leaves, text, numbers = list(expression.leaves), expression.text, list(expression.numbers)
    if noise is not None:
        low, high = float(noise.constraint.lower_bound), float(noise.constraint.upper_bound)
        numbers.append(low + 0.25 * (min(high, low + 1) - low))
        text += f" + noise({numbers[-1]!r}in({low!r},{min(high, 1e300)!r}))"
        leaves.append(noise)
    make = lambda **more: GP(x, y, text, mean=mean, noise_variances=fixed_noise, preset="gpytorch", threads=threads,
                             seed=seed, columns=[f"c{i}" for i in range(x.shape[1])], **more)
    process = make()
    order = _places(process, numbers)
    names = [p["name"] for p in process.parameters]
    leaves += mean_leaves
    order += [i for i, name in enumerate(names) if name == "mean"]
    counts = [leaf.value.numel() for leaf in leaves]
    if sum(counts) != len(order) or len(order) != len(names):
        raise errors.Unsupported("fit_mll: the kernel has parameters of its own")
    places = [order[sum(counts[:i]):sum(counts[:i + 1])] for i in range(len(leaves))]

    def place_of(module, name):
        return next((p for leaf, p in zip(leaves, places) if leaf.module is module and name in (leaf.name, leaf.raw)), None)

    priors = []
    for full, module, prior, closure, _ in model.named_priors():
        target = place_of(module, full.rsplit(".", 1)[-1].removesuffix("_prior"))
        if target is None:
            raise errors.Unsupported(f"fit_mll: the prior {full} is not on a parameter of a known kernel, noise or mean")
        priors.append(f"{names[target[0]]}={_prior_text(prior)}")
    if priors:
        process = make(priors="; ".join(priors))
    theta = process.theta
    for leaf, place in zip(leaves, places):
        theta[place] = leaf.value.detach().double().reshape(-1).numpy()
        if not getattr(leaf.module, leaf.raw).requires_grad:
            for i in place:
                process._gp.fix(i, True)
    process.theta = theta
    report = process.fit(optimizer=method, **options)
    theta = process.theta
    for leaf, place in zip(leaves, places):
        if getattr(leaf.module, leaf.raw).requires_grad:
            leaf.write(theta[place])
    return report
