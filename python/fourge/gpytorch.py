"""fourge under GPyTorch: exact marginal likelihoods with one factor and one inverse, and whole fits in C.

>>> from fourge.gpytorch import fast_mll
>>> with fast_mll():
...     loss = -mll(model(train_x), train_y)
...     loss.backward()

Two levels.  Kernels that fourge knows (Scale, RBF, Matern, RQ, Periodic, Linear, Polynomial, Constant, sums and products
of them, with ARD and active_dims) over one set of points with one noise or fixed noises are evaluated in C from points
and parameters; torch holds no n x n tensor.  A batch of such kernels (``batch_shape``, several outputs of a BoTorch model)
is one call, where its mean is constant and neither points nor targets need a derivative.  What else is dense goes through
:func:`fourge.torch.inv_quad_logdet`.
Structured operators, batches too large for ``max_cholesky_size``, other devices and types stay with GPyTorch.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import functools
import inspect
import math
import operator
import threading
import weakref
from array import array
from typing import Any, NamedTuple

try:
    import gpytorch
    import linear_operator.operators as operators
except ImportError as e:
    raise ImportError("fourge.gpytorch needs gpytorch: pip install gpytorch") from e
import numpy as np
import torch

from . import _fourge, _options, errors
from ._arrays import Report, warn_once
from .gp import GP
from .torch import inv_quad_logdet

__all__ = ["fast_mll", "fit_mll", "use_torch_tensors"]

_K = gpytorch.kernels


class _Unknown(Exception):
    """A module that the library has no word for; its text names it."""


# ---- modules as an expression ------------------------------------------------------------------------------------


# (1 + d / (2 alpha))^-alpha loses alpha eps in float32 and is off exp(-d/2) by d^2 / (8 alpha): equal at alpha^2 = 1 / (8 eps)
_RQ_ALPHA = 1024.0
_LOWEST = 1e-300  # where a constraint has no lower bound above 0


class _Leaf:
    """A parameter of a module: where it is read and written, and its bounds."""

    def __init__(self, module, name, raw, constraint):
        self.module, self.name, self.raw, self.constraint = module, name, raw, constraint

    @property
    def value(self):
        return getattr(self.module, self.name)

    def bounds(self, i, n):
        """Of value i of n, which is positive."""
        c = self.constraint
        low, high = (float(b.expand(n)[i] if b.numel() == 1 else b.reshape(-1)[i]) for b in (c.lower_bound, c.upper_bound))
        if type(self.module) is _K.RQKernel and self.name == "alpha" and self.value.dtype == torch.float32:
            high = min(high, _RQ_ALPHA)
        return max(low, _LOWEST), high

    def is_at(self, other):
        """Whether both are one parameter under one constraint."""
        return getattr(self.module, self.raw) is getattr(other.module, other.raw) and repr(self.constraint) == repr(other.constraint)

    def write(self, values):
        raw = getattr(self.module, self.raw)
        values = torch.as_tensor(values, dtype=raw.dtype).reshape(raw.shape)
        with torch.no_grad():
            raw.copy_(values if self.constraint is None else self.constraint.inverse_transform(values))


class _Expression:
    """Text of a kernel, with a number of its own in every place, so that places are found again in the process."""

    def __init__(self, kernel, d, bounds, batch=torch.Size()):
        self.leaves: list[_Leaf] = []
        self.numbers: list[float] = []
        self.d, self.bounds, self.batch, self.within = d, bounds, batch, False
        self.text = self.of(kernel)

    def number(self, leaf, i, n):
        """The place of value i of n; with the constraint's bounds where they are asked for."""
        self.numbers.append(0.5 + 0.0078125 * len(self.numbers))
        text = repr(self.numbers[-1])
        if self.bounds and leaf.constraint is not None:
            low, high = leaf.bounds(i, n)
            if np.isfinite(high) or (low > _LOWEST and leaf.raw != "raw_noise"):
                self.numbers[-1] = low + (min(high, low + 1) - low) * (0.25 + 0.0078125 * (len(self.numbers) % 64))
                text = f"{self.numbers[-1]!r}in({low!r},{min(high, 1e300)!r})"
        return text

    def leaf(self, module, name, vector=False):
        raw = "raw_" + name
        leaf = _Leaf(module, name, raw, module.constraint_for_parameter_name(raw))
        n = leaf.value.numel() // (module._batch_shape.numel() if self.batch else 1)
        if n > 1 and not vector:
            raise _Unknown(f"{type(module).__name__} with {n} values of {name}")
        self.leaves.append(leaf)
        numbers = [self.number(leaf, i, n) for i in range(n)]
        return numbers[0] if n == 1 else "[" + ",".join(numbers) + "]"

    def of(self, k, direct=False):
        """Text of a kernel; `direct`: it is called by its parent's forward, which has chosen the columns."""
        if k._batch_shape not in (torch.Size(), self.batch):
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


class _Words:
    """What a kernel is called in the library, and where its parameters are in a process.

    leaves are followed by the learned noise (`noise` is None) and a learned constant mean (mean="const"): `order` has
    the place of each of their values in the process.
    """

    def __init__(self, kernel, x, noise, dtype, mean, batch=torch.Size()):
        d = x.shape[-1]
        expression = _Expression(kernel, d, bounds=False, batch=batch)
        text, numbers = expression.text, list(expression.numbers)
        if noise is None:
            numbers.append(0.25)
            text += " + noise(0.25in(1e-300,1e300))"
        f32 = dtype == np.float32
        self.text, self.leaves, self.columns = text, expression.leaves, [f"c{i}" for i in range(d)]
        self.options = {"mean": mean, "jitter": "gpytorch", "precision": "f32" if f32 else "f64", "auto_promote": f32,
                        "preset": "gpytorch"}
        self.gp = GP(x, np.zeros(len(x), dtype), text, noise_variances=noise, columns=self.columns, **self.options)
        parameters = self.gp.parameters
        self.order = _places(self.gp, numbers) + [i for i, p in enumerate(parameters) if p["name"] == "mean"]
        if len(self.order) != len(parameters):
            raise _Unknown("a kernel with parameters of its own")
        self.lower = [p["lower"] for p in parameters]
        self.logarithmic = [p["name"] != "mean" for p in parameters]  # the library's derivatives are by logarithms there

    def checked(self, theta):
        """Parameters in the order of the process, of one process or a row each; _Unknown where one is too small."""
        if (theta <= np.array(self.lower)).any():
            raise _Unknown("a parameter below the smallest that the library takes")
        return theta


class _Fused(_Words):
    """A process that stands for kernel, points and noise; parameters and y are set before every evaluation."""

    def __init__(self, kernel, x, noise, dtype, mean="zero"):
        super().__init__(kernel, x, noise, dtype, mean)
        self.learns_noise, self.x, self.noise = noise is None, x, noise
        self.count, self.lock = len(self.order), threading.Lock()

    def fits(self, x, noise):
        return x.shape == self.x.shape and x.dtype == self.x.dtype and np.array_equal(x, self.x) and (
            self.learns_noise if noise is None else not self.learns_noise and np.array_equal(noise, self.noise))

    def evaluate(self, theta, y, wants):
        """(log likelihood, its derivatives by x, y and parameters), the last a list; None each where not wanted.

        Everything about parameters is Python's own numbers: there are few, and NumPy takes longer to begin.
        """
        t, order = array("d", self.lower), self.order
        for place, value in zip(order, theta):
            t[place] = value
        if any(map(operator.le, t, self.lower)):
            raise _Unknown("a parameter below the smallest that the library takes")
        if not any(wants):
            with self.lock:
                return self.gp._gp.step(y, t, None, None, None), None, None, None
        g = array("d", self.lower)
        dx = np.empty(self.x.shape) if wants[0] else None
        dy = np.empty(y.shape) if wants[1] else None
        with self.lock:
            value = self.gp._gp.step(y, t, g, dx, dy)
        return value, dx, dy, [g[i] / t[i] if self.logarithmic[i] else g[i] for i in order]


class _Known(torch.autograd.Function):
    """A value, in a tuple, with its derivatives by the tensors that follow: pull(g) is a list of these, times g.

    again() is the same value by GPyTorch, for derivatives of derivatives (create_graph).
    """

    @staticmethod
    def forward(ctx, value, pull, again, *tensors):
        ctx.pull, ctx.again, ctx.tensors, ctx.versions = pull, again, tensors, [t._version for t in tensors]
        return value[0].clone()

    @staticmethod
    def backward(ctx, g):
        wants = ctx.needs_input_grad[3:]
        if torch.is_grad_enabled():
            return None, None, None, *_by_gpytorch(ctx, g, wants)
        return None, None, None, *(d if want else None for d, want in zip(ctx.pull(g), wants))


def _by_gpytorch(ctx, g, wants):
    """The derivatives by the tensors of a value that was known, as functions of these."""
    if [t._version for t in ctx.tensors] != ctx.versions:
        raise RuntimeError("fast_mll: points, targets or parameters were changed in place between value and derivative")
    with _setting_of(None):
        value = ctx.again()
    found = iter(torch.autograd.grad(value, [t for t, want in zip(ctx.tensors, wants) if want], g, create_graph=True, allow_unused=True))
    return [next(found) if want else None for want in wants]


# ---- level 1 from above: the marginal likelihood of an ExactGP -----------------------------------------------------
#
# What GPyTorch itself does around a small likelihood costs more than the likelihood.  A tree of modules that was
# understood once is read at its raw parameters: value = transform(raw), d value / d raw in closed form.


def _softplus(raw):
    # log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), its derivative 1 / (1 + e^-x); torch takes x itself above 20
    if raw > 20:
        return raw, 1.0
    small = math.exp(-abs(raw))
    return max(raw, 0.0) + math.log1p(small), (small if raw < 0 else 1.0) / (1 + small)


def _sigmoid(raw):
    value = 1 / (1 + math.exp(min(max(-raw, -700.0), 700.0)))
    return value, value * (1 - value)


def _exp(raw):
    value = math.exp(raw)
    return value, value


def _identity(raw):
    return raw, 1.0


_Interval = gpytorch.constraints.Interval  # of all constraints
_TRANSFORMS = {
    gpytorch.constraints.constraints.softplus: _softplus,
    torch.nn.functional.softplus: _softplus,
    torch.sigmoid: _sigmoid,
    torch.exp: _exp,
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
        self.pointer, self.shape = self.parameter.data_ptr(), self.parameter.shape
        if not np.shares_memory(self.values, self.parameter.detach().numpy()):
            raise _Unknown("a parameter with strides")
        self.map, self.low, self.width = _identity, 0.0, 1.0
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

    def __init__(self, mll, kernel, fused, mean):
        self.mll, self.fused, self.kernel, self.mean = weakref.ref(mll), fused, kernel, mean
        modules, self.seen, self.targets = list(mll.modules()), (None, 0), (None, 0, None)
        self.trees, self.below = self._children(mll), self._children(kernel)
        self.kernels = [(m, self._settings(m)) for m in kernel.modules() if isinstance(m, _K.Kernel)]
        self.terms = [d for m in modules for d in (getattr(m, "_priors", None), getattr(m, "_added_loss_terms", None)) if d is not None]
        noise = mll.likelihood.noise_covar
        self.links = [_Link(leaf) for leaf in (*fused.leaves, _Leaf(noise, "noise", "raw_noise", noise.raw_noise_constraint))]
        self.raws, self.kinds, at = tuple(link.parameter for link in self.links), [], 0
        for link in self.links:
            self.kinds.append((slice(at, at + len(link.values)), link.shape, link.values.dtype))
            at += len(link.values)
        self.bounds = [b for link in self.links for b in link.bounds]
        if at + (mean == "const") != fused.count:
            raise _Unknown("a noise of its own for every point")

    @staticmethod
    def _children(root):
        return [(m._modules, tuple(m._modules.values())) for m in root.modules() if not isinstance(m, _Interval)]

    @staticmethod
    def _settings(kernel):
        columns = kernel._buffers.get("active_dims")
        return columns, None if columns is None else columns._version, kernel.__dict__.get("nu"), kernel.__dict__.get("power")

    def at(self, x):
        """Whether the process has these points; a tensor that was compared before and has not changed since has."""
        last, version = self.seen
        if last is not None and last() is x and x._version == version:
            return True
        same = self.fused.fits(x.detach().numpy(), None)
        self.seen = (weakref.ref(x), x._version) if same else (None, 0)
        return same

    def observed(self, target):
        """The memory of the targets: kept, as asking torch for it costs more than reading it."""
        last, pointer, view = self.targets
        if last is None or last() is not target or target.data_ptr() != pointer:
            view = target.detach().numpy()
            self.targets = weakref.ref(target), target.data_ptr(), view
        return view

    def holds(self):
        return self.kernel_holds(self.trees) and self.parameters_hold()

    def kernel_holds(self, trees):
        for modules, children in trees:
            if tuple(modules.values()) != children:
                return False
        for m, (columns, version, nu, power) in self.kernels:
            now, own = m._buffers.get("active_dims"), m.__dict__
            if now is not columns or (now is not None and now._version != version) or own.get("nu") != nu or own.get("power") != power:
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
        values, slopes = [], []
        for link in self.links:
            for raw in link.values.tolist():
                value, slope = link.map(raw)
                values.append(link.low + link.width * value)
                slopes.append(link.width * slope)
        return values, slopes


def _constant_under(loc):
    """The parameter that a constant mean was expanded from, or None."""
    fn = loc.grad_fn
    if fn is None or fn.name() != "ExpandBackward0":
        return None
    fn = fn.next_functions[0][0]
    if fn is not None and fn.name() == "UnsqueezeBackward0":
        fn = fn.next_functions[0][0]
    found = getattr(fn, "variable", None)
    return found if found is not None and found.numel() == 1 and not loc._backward_hooks and not loc.retains_grad else None


class _Marginal(torch.autograd.Function):
    """A value whose derivatives are known: by whole tensors (their arrays), then by raw parameters (Python's numbers).

    known: value, its type, [array of each tensor], [derivative of each number], [(where, shape, type) of each parameter].
    again: as of _Known.
    """

    @staticmethod
    def forward(ctx, known, again, *tensors):
        ctx.known, ctx.again, ctx.tensors, ctx.versions = known, again, tensors, [t._version for t in tensors]
        return torch.scalar_tensor(known[0], dtype=known[1])

    @staticmethod
    def backward(ctx, g):
        needs = ctx.needs_input_grad
        if torch.is_grad_enabled():
            return None, None, *_by_gpytorch(ctx, g, needs[2:])
        _, _, arrays, slopes, kinds = ctx.known
        try:
            scale, many = g.item(), False
        except RuntimeError:  # is_grads_batched
            scale, many = 1.0, True
        out = [None, None]
        for a in arrays:
            out.append(torch.from_numpy(a * a.dtype.type(scale)))
        flat = np.array([scale * slope for slope in slopes])
        for where, shape, kind in kinds:
            part = flat[where].reshape(shape)
            out.append(torch.from_numpy(part if kind == part.dtype else part.astype(kind)) if needs[len(out)] else None)
        return tuple(g * t if many and t is not None else t for t in out)


_prepared: dict[int, Any] = {}  # by the number of a likelihood, until that ends


def _marginal_value(mll, normal, target):
    """(log likelihood, whether it is divided by n already); _Unknown where something is not one of the library's."""
    if type(normal) is not _Normal:
        raise _Unknown(type(normal).__name__)
    lazy, loc = normal._covar if normal._islazy else None, normal.loc
    if target.shape != loc.shape or target.dtype != loc.dtype or loc.ndim != 1 or not target.is_cpu:
        raise _Unknown("targets of another shape or type")
    x, constant = _points(lazy), _constant_under(loc)
    word = "zero" if constant is None else "const"
    prepared = _prepared.get(id(mll))
    if (prepared is None or prepared.mll() is not mll or prepared.kernel is not lazy.kernel or prepared.mean != word
            or not prepared.holds() or not prepared.at(x)):
        prepared = _prepare(mll, lazy, np.float32 if loc.dtype == torch.float32 else np.float64, word)
    raws, kinds, (theta, slopes) = prepared.raws, prepared.kinds, prepared.values()
    observed = prepared.observed(target)
    graph, tensors, wants = torch.is_grad_enabled(), [], [False, False, False]
    if constant is None:
        observed = observed - loc.detach().numpy()
    else:  # a parameter of the process as well, the last one
        raws, kinds = (*raws, constant), (*kinds, (slice(len(theta), None), constant.shape, observed.dtype))
        theta.append(constant.item())
        slopes.append(1.0)
    for i, t in enumerate((x, target, loc if constant is None else None)):
        if graph and t is not None and t.requires_grad:
            tensors.append(t)
            wants[i] = True
    by_raws = graph and any([p.requires_grad for p in raws])
    value, dx, dy, dtheta = prepared.fused.evaluate(theta, observed, (wants[0], wants[1] or wants[2], by_raws))
    plain = prepared.plain
    share = 1 / len(observed) if plain else 1.0
    if not (tensors or by_raws):
        return torch.scalar_tensor(value * share, dtype=target.dtype), plain
    arrays = [(sign * share * a).astype(observed.dtype, copy=False) for a, sign, want in zip((dx, dy, dy), (1, 1, -1), wants) if want]
    slopes = [share * a * b for a, b in zip(dtheta, slopes)]

    def again():
        return _original_mll(mll, normal, target) if plain else mll.likelihood(normal).log_prob(target)

    return _Marginal.apply((value * share, target.dtype, arrays, slopes, kinds), again, *tensors, *raws), plain


def _prepare(mll, lazy, dtype, mean):
    noise = getattr(mll.likelihood, "noise_covar", None)
    if (type(mll.likelihood) is not gpytorch.likelihoods.GaussianLikelihood
            or type(noise) is not gpytorch.likelihoods.noise_models.HomoskedasticNoise or noise.raw_noise.numel() != 1):
        raise _Unknown(type(mll.likelihood).__name__)
    prepared = _Prepared(mll, lazy.kernel, _fused_at(lazy, None, dtype, mean), mean)
    with _cache_lock:
        if id(mll) not in _prepared or _prepared[id(mll)].mll() is not mll:
            weakref.finalize(mll, _prepared.pop, id(mll), None).atexit = False
        _prepared[id(mll)] = _by_kernel[id(lazy.kernel)] = prepared
    return prepared


_by_kernel: "weakref.WeakValueDictionary[int, Any]" = weakref.WeakValueDictionary()  # alive as long as its likelihood


def _lazy_size(self):
    """The shape of a covariance of a kernel that is known to have no batch."""
    known = _by_kernel.get(id(self.kernel)) if _settings.get() is not None else None
    if known is None or known.kernel is not self.kernel or self.x1.ndim != 2 or self.x2.ndim != 2 or self.last_dim_is_batch or not known.kernel_holds(known.below):
        return _original_size(self)
    return torch.Size((self.x1.shape[0], self.x2.shape[0]))


_cache: "collections.OrderedDict[Any, tuple[Any, Any, Any]]" = collections.OrderedDict()
_cache_lock = threading.Lock()
_CACHED = 8


def _structure(kernel):
    """What makes an expression of a kernel another one: modules, columns, numbers of values."""
    return tuple((id(k), type(k).__name__, None if k.active_dims is None else tuple(map(int, k.active_dims)),
                  getattr(k, "nu", None), getattr(k, "power", None), tuple(p.shape for p in k.parameters(recurse=False)))
                 for k in kernel.modules() if isinstance(k, _K.Kernel))


def _kept(kernel, kind, fits, make):
    """What was made of this kernel in the last calls, where it still fits, or a new one."""
    key, structure = (id(kernel), kind), _structure(kernel)
    with _cache_lock:
        kept = _cache.pop(key, None)
    if kept is None or kept[0] is not kernel or kept[1] != structure or not fits(kept[2]):
        kept = kernel, structure, make()
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


@contextlib.contextmanager
def _without_columns(kernel):
    """The points of a covariance have the columns of its kernel already: these are left out of the expression."""
    kept, kernel.active_dims = kernel.active_dims, None
    try:
        yield
    finally:
        kernel.active_dims = kept


def _fused_at(lazy, noise, dtype, mean="zero"):
    """The process of a covariance."""
    x = lazy.x1.detach().numpy()
    with _without_columns(lazy.kernel):
        return _kept(lazy.kernel, mean, lambda fused: fused.fits(x, noise),
                     lambda: _Fused(lazy.kernel, x.copy(), None if noise is None else noise.copy(), dtype, mean))


def _parameters_of(leaves):
    """(values of all leaves in a row, with a graph of its own, the raw tensors below, each once)."""
    raws = {id(raw): raw for raw in (getattr(leaf.module, leaf.raw) for leaf in leaves)}
    with torch.enable_grad():
        return [leaf.value for leaf in leaves], list(raws.values())


def _fused_value(normal, value):
    """log N(value; normal) at level 1; _Unknown where the covariance is not one of the library's."""
    r, covar = value - normal.loc, normal.lazy_covariance_matrix
    if type(covar) is not operators.AddedDiagLinearOperator or r.ndim != 1:
        raise _Unknown(type(covar).__name__)
    lazy, diagonal = covar._linear_op, covar._diag_tensor
    x = _points(lazy)
    noise, learned = None, []
    if type(diagonal) is operators.ConstantDiagLinearOperator:
        learned = [diagonal.diag_values]
    elif type(diagonal) is operators.DiagLinearOperator and not diagonal._diag.requires_grad:
        noise = diagonal._diag.detach().double().expand(len(r)).contiguous().numpy()
    else:
        raise _Unknown("a noise that is learned for every point")
    fused = _fused_at(lazy, noise, np.float32 if r.dtype == torch.float32 else np.float64)
    values, raws = _parameters_of(fused.leaves)
    with torch.enable_grad():
        theta = torch.cat([v.reshape(-1) for v in values + learned])
    raws += learned
    graph = torch.is_grad_enabled()
    wants = [graph and x.requires_grad, graph and r.requires_grad, graph and any(t.requires_grad for t in raws)]
    found, dx, dr, dtheta = fused.evaluate(theta.tolist(), r.detach().numpy(), wants)
    out = torch.tensor(found, dtype=r.dtype)
    tensors = [t for t, want in ((x, wants[0]), (r, wants[1])) if want]
    derivatives = [torch.as_tensor(d, dtype=r.dtype) for d, want in ((dx, wants[0]), (dr, wants[1])) if want]
    if wants[2]:
        raws = [t for t in raws if t.requires_grad]
        slopes = torch.autograd.grad(theta, raws, torch.as_tensor(dtheta, dtype=theta.dtype), retain_graph=True, allow_unused=True)
        derivatives += [torch.zeros_like(t) if d is None else d for d, t in zip(slopes, raws)]
        tensors += raws
    if not tensors:
        return out
    again = lambda: _original(_Normal(torch.zeros_like(r.detach()), covar), r)
    return _Known.apply((out,), lambda g: [g * d for d in derivatives], again, *tensors)


# ---- level 1 of a batch: all members in one call -------------------------------------------------------------------


def _batch_evaluated(words, x, y, theta, wanted):
    """(log N(y; mean, K + noise) of every member, its derivatives or None); theta: a row of parameters each, in the
    order of the words."""
    t = np.empty(theta.shape)
    t[:, words.order] = theta
    members = [(x if x.ndim == 2 else x[i], *rows) for i, rows in enumerate(zip(y, words.checked(t)))]
    found = _fourge.gp_many(_fourge.Context(), members, words.text, words.options, words.columns, wanted, None)
    for member, result in enumerate(found):
        if result["status"] != "FRG_OK":
            raise errors.from_status(result["status"], result["message"], "", f"member {member + 1}", "")
    values = torch.tensor([result["log_likelihood"] for result in found], dtype=torch.float64)
    if not wanted:
        return values, None
    g = np.frombuffer(b"".join(result["gradient"] for result in found)).reshape(t.shape)
    slopes = np.divide(g, t, out=g.copy(), where=words.logarithmic)  # a mean of 0 is per value
    return values, torch.from_numpy(slopes[:, words.order])


def _batch_value(normal, value):
    """log N(value; normal) of the members of a batch of kernels; _Unknown where one is not the library's."""
    loc, covar = normal.loc, normal.lazy_covariance_matrix
    if type(covar) is not operators.AddedDiagLinearOperator:
        raise _Unknown(type(covar).__name__)
    lazy, diagonal, batch, n = covar._linear_op, covar._diag_tensor, covar.batch_shape, loc.shape[-1]
    if type(lazy).__name__ != "LazyEvaluatedKernelTensor" or lazy.last_dim_is_batch or lazy.params:
        raise _Unknown(type(lazy).__name__)
    x, kernel = lazy.x1, lazy.kernel
    if (x is not lazy.x2 and not torch.equal(x, lazy.x2)) or value.ndim > loc.ndim or loc.shape[:-1] != batch:
        raise _Unknown("a covariance between two sets of points, or targets of another shape")
    if x.requires_grad or value.requires_grad or (loc.requires_grad and loc.stride(-1) != 0):
        raise _Unknown("derivatives by points, by targets or by a mean that is not constant, in a batch")
    if type(diagonal) is not operators.ConstantDiagLinearOperator:
        raise _Unknown("a noise of its own for every point, in a batch")
    mean, dtype = "const" if loc.requires_grad else "zero", np.float32 if loc.dtype == torch.float32 else np.float64
    points = (x if x.ndim == 2 else x.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:])).numpy()
    y = (value.expand(loc.shape) if mean == "const" else value - loc).detach().reshape(-1, n).numpy()
    first = points.reshape(-1, points.shape[-1])[:2]  # a process for its words
    with _without_columns(kernel):
        words = _kept(kernel, (mean, batch, dtype), lambda words: len(words.columns) == x.shape[-1],
                      lambda: _Words(kernel, first.copy(), None, dtype, mean, batch))
    values, tensors = _parameters_of(words.leaves)
    with torch.enable_grad():
        columns = [v.reshape(len(y) if leaf.module._batch_shape else 1, -1).expand(len(y), -1) for v, leaf in zip(values, words.leaves)]
        columns.append(diagonal.diag_values.expand(*batch, 1).reshape(-1, 1))
        columns += [loc[..., :1].reshape(-1, 1)] if mean == "const" else []
        theta = torch.cat(columns, 1).double()
    tensors = [t for t in (*tensors, diagonal.diag_values, loc) if torch.is_grad_enabled() and t.requires_grad]
    found, slopes = _batch_evaluated(words, points, y, theta.detach().numpy(), bool(tensors))
    out = found.to(loc.dtype).reshape(batch)
    if not tensors:
        return out

    def pull(g):
        return torch.autograd.grad(theta, tensors, g.reshape(-1, 1) * slopes, retain_graph=True, allow_unused=True)

    return _Known.apply((out,), pull, lambda: _original(normal, value), *tensors)


# ---- level 2: dense matrices ---------------------------------------------------------------------------------------

_DENSE = {
    operators.DenseLinearOperator, operators.DiagLinearOperator, operators.ConstantDiagLinearOperator,
    operators.AddedDiagLinearOperator, operators.SumLinearOperator, operators.PsdSumLinearOperator,
    operators.ConstantMulLinearOperator, operators.MulLinearOperator, operators.RootLinearOperator,
    operators.LowRankRootLinearOperator, operators.MatmulLinearOperator, operators.BatchRepeatLinearOperator,
}


def _is_dense(op):
    return type(op) in _DENSE and all(_is_dense(a) for a in op._args if isinstance(a, operators.LinearOperator))


def _dense_value(normal, value):
    """log N(value; normal) of a dense covariance, in torch's tensors."""
    diff, covar = value - normal.loc, normal.lazy_covariance_matrix.evaluate_kernel()
    if not _is_dense(covar):
        raise _Unknown(type(covar).__name__)
    if diff.shape[:-1].numel() > covar.batch_shape.numel():
        raise _Unknown("more targets than covariances")  # GPyTorch factors each once
    inv_quad, logdet = inv_quad_logdet(covar.to_dense(), diff)
    return -0.5 * (inv_quad + logdet + diff.shape[-1] * np.log(2 * np.pi))


# ---- the patch -------------------------------------------------------------------------------------------------------


class _Setting(NamedTuple):
    """What a block asks for."""

    fused: bool
    exact: bool
    dense_from: int


_settings: contextvars.ContextVar[_Setting | None] = contextvars.ContextVar("fourge_fast_mll", default=None)


@contextlib.contextmanager
def _setting_of(setting):
    token = _settings.set(setting)
    try:
        yield
    finally:
        _settings.reset(token)


_patch_lock = threading.Lock()
_patched = 0
_Normal = gpytorch.distributions.MultivariateNormal
_original = _Normal.__dict__["log_prob"]
_Mll = gpytorch.mlls.ExactMarginalLogLikelihood
_original_mll = _Mll.__dict__["forward"]
_Lazy = gpytorch.lazy.LazyEvaluatedKernelTensor
_original_size = _Lazy.__dict__["_size"]
_original_init = _Normal.__dict__["__init__"]
_original_constant = gpytorch.means.ConstantMean.__dict__["forward"]


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


@functools.cache
def _knows_init():
    """Whether a normal distribution is made as 1.15 makes it, so that its parts can be set without torch's shapes."""
    return set(_original_init.__code__.co_names) & _SLOW_NAMES == _SLOW_NAMES


_SLOW_NAMES = {"_islazy", "loc", "_covar", "_MultivariateNormal__unbroadcasted_scale_tril", "_validate_args", "broadcast_shapes"}


def _normal_init(self, mean, covariance_matrix, validate_args=False):
    """One normal over points, without the 20 microseconds of torch.broadcast_shapes."""
    if (validate_args or _settings.get() is None or type(covariance_matrix) is not _Lazy or type(mean) is not torch.Tensor
            or mean.ndim != 1 or len(covariance_matrix.shape) != 2 or not _knows_init()):
        return _original_init(self, mean, covariance_matrix, validate_args)
    self._islazy, self.loc, self._covar, self._validate_args = True, mean, covariance_matrix, validate_args
    self._MultivariateNormal__unbroadcasted_scale_tril = None
    torch.distributions.Distribution.__init__(self, torch.Size(), mean.shape, validate_args=False)


def _constant_mean(self, x):
    """A constant at all points, without torch.broadcast_shapes as well."""
    raw = self._parameters.get("raw_constant")
    if _settings.get() is None or raw is None or raw.ndim or "raw_constant_constraint" in self._modules:
        return _original_constant(self, x)
    return raw.expand(x.shape[:-1])


def _is_factored(n, exact):
    """Whether GPyTorch would factor a matrix of order n: by its size, or, as BoTorch has it, always."""
    return exact or n <= gpytorch.settings.max_cholesky_size.value() or gpytorch.settings.fast_computations.log_prob.off()


def _tell(what, text):
    warn_once(f"gpytorch: {what}", f"{text} (said once)")


def _left_alone(normal, value, setting):
    """Whether the block leaves this normal to GPyTorch, whatever its covariance is; says why."""
    loc, n = normal.loc, normal.loc.shape[-1]
    if not loc.is_cpu or loc.dtype not in (torch.float32, torch.float64) or value.dtype != loc.dtype:
        _tell("type", f"fast_mll: {loc.dtype} on {loc.device}, targets of {value.dtype}: left to GPyTorch; float32 and float64 on the CPU are taken")
        return True
    if not _is_factored(n, setting.exact):
        _tell("size", f"fast_mll: n = {n} is above gpytorch.settings.max_cholesky_size, {gpytorch.settings.max_cholesky_size.value()}: left to "
              "GPyTorch and its conjugate gradients; fast_mll(exact=True) or a larger setting factors")
        return True
    return False


_EXPECTED = _Unknown, errors.NotPositiveDefinite, errors.BadArgument, errors.BadData, OverflowError


def _tried(way, compute, *arguments):
    """What compute gives, counted; None where the next way has to."""
    try:
        out = compute(*arguments)
    except _EXPECTED:
        return None  # GPyTorch adds its jitter, or says what is wrong with it
    except Exception as e:  # what works outside of the block works inside
        _tell(type(e).__name__, f"fast_mll: the way {way!r} failed and the next one is taken: {e}")
        return None
    fast_mll.stats[way] += 1
    return out


def _log_prob(self, value):
    setting = _settings.get()
    if setting is None:
        return _original(self, value)
    if not _left_alone(self, value, setting):
        if self._validate_args:
            self._validate_sample(value)
        out = _tried("fused", _fused_value if self.loc.ndim == value.ndim == 1 else _batch_value, self, value) if setting.fused else None
        if out is None and self.loc.shape[-1] >= setting.dense_from:
            out = _tried("dense", _dense_value, self, value)
        if out is not None:
            return out
    fast_mll.stats["untouched"] += 1
    return _original(self, value)


def _mll_forward(self, function_dist, target, *params, **kwargs):
    setting = _settings.get()
    loc = getattr(function_dist, "loc", None)
    if (setting is None or not setting.fused or params or kwargs or loc is None or not loc.is_cpu
            or loc.dtype not in (torch.float32, torch.float64)
            or gpytorch.settings.observation_nan_policy.value() != "ignore" or not _is_factored(loc.shape[-1], setting.exact)):
        return _original_mll(self, function_dist, target, *params, **kwargs)
    found = _tried("fused", _marginal_value, self, function_dist, target)
    if found is None:
        return _original_mll(self, function_dist, target)  # by way of log_prob
    value, done = found
    return value if done else self._add_other_terms(value, params).div_(function_dist.event_shape.numel())


_PATCHES = [
    (_Normal, "log_prob", _log_prob, _original),
    (_Normal, "__init__", _normal_init, _original_init),
    (_Mll, "forward", _mll_forward, _original_mll),
    (_Lazy, "_size", _lazy_size, _original_size),
    (gpytorch.means.ConstantMean, "forward", _constant_mean, _original_constant),
]


#: Order from which the dense way is faster than GPyTorch's own: bench/python/py_torch.py sizes, a tie at 20, 1.1x at 50.
DENSE_FROM = 50


class fast_mll(contextlib.ContextDecorator):
    """Within the block ``MultivariateNormal.log_prob``, and so every exact marginal likelihood, is fourge's.

    Parameters
    ----------
    state : bool, default True
        False: within the block everything is GPyTorch's again, inside of another block too.
    fused : bool, default True
        False: only the dense way, in torch's tensors.
    exact : bool, default False
        True: sizes above ``gpytorch.settings.max_cholesky_size`` as well, which GPyTorch would solve by conjugate
        gradients.  Where ``fast_computations.log_prob`` is off, which BoTorch makes the default, GPyTorch factors
        every size, and so does the block.
    dense_from : int, default 50
        The order from which a matrix goes the dense way; smaller ones are left to GPyTorch, which is as fast there.
        Kernels that the library evaluates itself gain from the first point on, and have no such number.

    Values agree with GPyTorch's to 1e-10 relative in float64 (1e-4 in float32), gradients to 1e-8 (1e-3); second and
    higher derivatives are GPyTorch's own.  What the library cannot compute, or fails at, GPyTorch computes.  Blocks nest,
    belong to the thread or task that enters them, and end with exceptions too.  ``fast_mll.stats`` counts the calls by
    way: "fused", "dense", "untouched".  A block that leaves a model to GPyTorch for its size or its type warns of it,
    once a process.

    Raises :class:`fourge.errors.Unsupported` for releases of gpytorch that compute in another way.
    """

    stats: "collections.Counter[str]" = collections.Counter()

    def __init__(self, state: bool = True, *, fused: bool = True, exact: bool = False, dense_from: int = DENSE_FROM) -> None:
        self._setting = _Setting(fused, exact, dense_from) if state else None
        self._tokens: list[Any] = []

    @classmethod
    def on(cls) -> bool:
        """Whether a block is entered here."""
        return _settings.get() is not None

    @classmethod
    def off(cls) -> bool:
        """Whether GPyTorch computes everything itself here."""
        return not cls.on()

    @classmethod
    def is_default(cls) -> bool:
        """Whether it is as without any block: off."""
        return cls.off()

    def __enter__(self):
        global _patched
        _check_version()
        with _patch_lock:
            if _patched == 0:
                for owner, name, ours, _ in _PATCHES:
                    setattr(owner, name, ours)
            _patched += 1
        self._tokens.append(_settings.set(self._setting))
        return fast_mll.stats

    def __exit__(self, *exception):
        global _patched
        _settings.reset(self._tokens.pop())
        with _patch_lock:
            _patched -= 1
            if _patched == 0:
                for owner, name, _, theirs in _PATCHES:
                    setattr(owner, name, theirs)
        return False

    def _recreate_cm(self):
        twin = type(self)(False)
        twin._setting = self._setting
        return twin


class use_torch_tensors(fast_mll):
    """The dense way alone, ``gpytorch.settings.use_torch_tensors`` as it was proposed to GPyTorch.

    Parameters
    ----------
    state : bool, default True
        False switches off within the block, inside of other blocks too.
    dense_from : int, default 50
        As of :class:`fast_mll`.

    After ``import fourge.gpytorch`` it is in ``gpytorch.settings`` under this name, unless GPyTorch has its own there.
    """

    def __init__(self, state: bool = True, *, dense_from: int = DENSE_FROM) -> None:
        super().__init__(state, fused=False, dense_from=dense_from)


if not hasattr(gpytorch.settings, "use_torch_tensors"):
    gpytorch.settings.use_torch_tensors = use_torch_tensors


# ---- fits --------------------------------------------------------------------------------------------------------------

_PRIORS = {
    "GammaPrior": ("gamma", "concentration", "rate"),
    "NormalPrior": ("normal", "loc", "scale"),
    "LogNormalPrior": ("lognormal", "loc", "scale"),
    "UniformPrior": ("uniform", "low", "high"),
}


def _prior_text(prior, where):
    found = _PRIORS.get(type(prior).__name__)
    if found is None:
        raise errors.Unsupported(f"fit_mll knows no prior {type(prior).__name__}; it knows {sorted(_PRIORS)}")
    word, *names = found
    if any(torch.as_tensor(getattr(prior, n)).numel() > 1 for n in names):
        raise errors.Unsupported(f"fit_mll: the prior {where} has numbers of its own for every entry; give all entries one prior")
    return f"{word}({', '.join(repr(float(getattr(prior, n))) for n in names)})"


def _mean_leaves(mean, d):
    """The word for the mean, and its parameters with the number of their values."""
    kind = type(mean)
    if kind is gpytorch.means.ZeroMean:
        return "zero", []
    if kind is gpytorch.means.ConstantMean:
        if getattr(mean, "raw_constant_constraint", None) is not None:
            raise errors.Unsupported("fit_mll: the constraint of a ConstantMean; means have no bounds here")
        return "const", [_Leaf(mean, "constant", "raw_constant", None)]
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


class FitReport(Report):
    """The report of a fit, with the names that BoTorch reads."""

    @property
    def fval(self) -> float:
        """The negative of what was maximised, per point."""
        return -(self["log_likelihood"] + self["log_prior"]) / self["n"]


def _is_kernel_at(normal, kernel, x):
    """Whether the covariance is the kernel at x.  A covariance is not lazy within lazily_evaluate_kernels(False), which
    GPyTorch sets for all threads while one of them evaluates a kernel."""
    lazy, columns = getattr(normal, "_covar", None), kernel.active_dims
    if type(lazy) is _Lazy:
        return lazy.kernel is kernel and torch.equal(lazy.x1, x if columns is None else x.index_select(-1, columns))
    with torch.no_grad():
        return torch.allclose(normal.covariance_matrix, kernel(x).to_dense(), rtol=1e-5, atol=0)


def _training_points(model):
    """The points that the kernel sees; Unsupported where the model's forward is not its mean and its kernel at these."""
    x = model.train_inputs[0]
    x = x.unsqueeze(-1) if x.ndim == 1 else x
    transform = getattr(model, "transform_inputs", None)  # BoTorch's: applied in forward while training
    if transform is not None:
        if any(p.requires_grad for p in getattr(model, "input_transform", torch.nn.Module()).parameters()):
            raise errors.Unsupported("fit_mll: an input transform with parameters of its own")
        x = transform(x)
    training = model.training
    try:
        normal = model.train()(*model.train_inputs)
    finally:
        model.train(training)
    if not _is_kernel_at(normal, model.covar_module, x) or not torch.equal(normal.loc, model.mean_module(x)):
        raise errors.Unsupported(f"fit_mll: the forward of {type(model).__name__} is not mean_module and covar_module at its inputs")
    return x


@_options.takes(GP.fit, without=("self", "optimizer", "checkpoint", "checkpoint_every", "resume"))
def fit_mll(model: Any, likelihood: Any = None, *, method: str = "auto", threads: int = 0, seed: int = 0, closure: Any = None,
            **options: Any) -> FitReport:
    """Maximises the exact marginal likelihood and the priors over all parameters, and writes them into the model.

    Parameters
    ----------
    model : gpytorch.models.ExactGP with ``mean_module`` and ``covar_module``, or an ExactMarginalLogLikelihood
    likelihood : the model's, if it is not given
    method : "auto", "ai" (average information), "lbfgsb" or "adam"
    threads : 0 takes the cores this process may use; the numbers are the same for any
    seed : of the further starts that `starts` asks for
    closure : not called, which a warning says, once a process: the likelihood and the priors are what is maximised.  As an
        optimizer of BoTorch, ``fit_gpytorch_mll(mll, optimizer=fit_mll)``, it may be given one.
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
    if closure is not None and not callable(closure):
        raise TypeError("closure: expected a function, as BoTorch passes one")
    if closure is not None:
        _tell("closure", "fit_mll maximises the exact marginal likelihood with its priors; the closure is not called")
    x, y = _training_points(model).reshape(len(y), -1).detach().double().numpy(), y.detach().double().numpy()
    try:
        expression = _Expression(model.covar_module, x.shape[1], bounds=True)
    except _Unknown as e:
        raise errors.Unsupported(f"fit_mll knows no {e}") from None
    mean, mean_leaves = _mean_leaves(model.mean_module, x.shape[1])
    fixed_noise, noise = _noise_leaf(likelihood, len(y))
    leaves, text, numbers = list(expression.leaves), expression.text, list(expression.numbers)
    if noise is not None:
        low, high = noise.bounds(0, 1)
        numbers.append(low + 0.25 * (min(high, low + 1) - low))
        text += f" + noise({numbers[-1]!r}in({low!r},{min(high, 1e300)!r}))"
        leaves.append(noise)
    make = lambda **more: GP(x, y, text, mean=mean, noise_variances=fixed_noise, preset="gpytorch", threads=threads,
                             seed=seed, columns=[f"c{i}" for i in range(x.shape[1])], **more)
    process = make()
    try:
        order = _places(process, numbers)
    except _Unknown as e:
        raise errors.Unsupported(f"fit_mll: {e}") from None
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
        priors.append(f"{names[target[0]]}={_prior_text(prior, full)}")
    if priors:
        process = make(priors="; ".join(priors))
    theta = process.theta
    for k, (leaf, place) in enumerate(zip(leaves, places)):
        first = next(j for j, other in enumerate(leaves) if getattr(other.module, other.raw) is getattr(leaf.module, leaf.raw))
        if first < k:  # one parameter in two places of the tree
            if not leaf.is_at(leaves[first]):
                raise errors.Unsupported(f"fit_mll: one parameter is {leaves[first].name} and {leaf.name} under two constraints")
            for i, to in zip(place, places[first]):
                process._gp.tie(i, to)
        theta[place] = leaf.value.detach().double().reshape(-1).numpy()
        if not getattr(leaf.module, leaf.raw).requires_grad:
            for i in place:
                process._gp.fix(i, True)
    process.theta = theta
    chosen: dict[str, Any] = {"optimizer": method, **options}
    report: Any = process.fit(**chosen)
    theta = process.theta
    for leaf, place in zip(leaves, places):
        if getattr(leaf.module, leaf.raw).requires_grad:
            leaf.write(theta[place])
    at = process._gp.value()
    return FitReport({**report, "n": len(y), "log_likelihood": at["log_likelihood"], "log_prior": at["log_prior"]}, *report.moved)
