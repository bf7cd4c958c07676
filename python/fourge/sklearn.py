"""Gaussian processes for scikit-learn: its estimator and its kernels, our likelihood, fit and prediction.

>>> from fourge.sklearn import GaussianProcessRegressor          # was: from sklearn.gaussian_process import ...
>>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
>>> model = GaussianProcessRegressor(1.0 * RBF() + WhiteKernel(), normalize_y=True).fit(X, y)

Kernels of scikit-learn become expressions of ``fourge/gp.h``, with their bounds and fixed values:

====================================  ==========================================
``ConstantKernel``                    ``const``, or the variance in front
``WhiteKernel``                       ``noise`` in the outermost sum, ``white``
``RBF``, ``Matern`` (nu 1/2, 3/2,     ``rbf``, ``matern12``, ``matern32``,
5/2, infinity)                        ``matern52``
``RationalQuadratic``                 ``rq``
``ExpSineSquared``, one column        ``periodic``
``DotProduct``, and a power of it     ``linear + const``, ``poly``
``Sum``, ``Product``                  ``+``, ``*``
====================================  ==========================================

Everything else (``PairwiseKernel``, other exponents and nu, classes of your own, also over sequences and graphs) is
evaluated by the kernel itself, K and its derivatives, and factored here; the optimiser is then SciPy's L-BFGS-B.

One evaluation of value and gradient takes n^3 flop and n^2 numbers whatever the number of parameters, where
scikit-learn takes n^2 numbers more for each.  Reference: Rasmussen and Williams (2006), algorithm 2.1.
"""

import functools
import numbers
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import errors
from .gp import GP, invquad_logdet

try:
    from scipy.optimize import minimize
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import kernels
    from sklearn.utils import check_random_state
    from sklearn.utils._param_validation import Interval, StrOptions
    from sklearn.utils.validation import validate_data
except ImportError as e:
    raise ImportError("fourge.sklearn needs scikit-learn 1.6 or newer: pip install scikit-learn") from e

__all__ = ["GaussianProcessRegressor", "expression"]

# ---- kernels as expressions ---------------------------------------------------------------------------------------

_LEAVES = {
    kernels.RBF: ("rbf", {"l": "length_scale"}),
    kernels.RationalQuadratic: ("rq", {"l": "length_scale", "alpha": "alpha"}),
    kernels.ExpSineSquared: ("periodic", {"l": "length_scale", "p": "periodicity"}),
    kernels.ConstantKernel: ("const", {"v": "constant_value"}),
    kernels.WhiteKernel: ("white", {"v": "noise_level"}),
}
_MATERN = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52", np.inf: "rbf"}
_ZEROS = {kernels.ConstantKernel: "constant_value", kernels.WhiteKernel: "noise_level"}


class _NoExpression(errors.Unsupported):
    """A kernel that the library cannot write down; it is called instead."""


_SLACK = 1e-12  # bounds pass through a logarithm and back
_WIDEST = (1e-250, 1e250)


class _Term:
    """A piece of an expression: its text, and for each of its parameters, in the order of the text, the start, the
    place in scikit-learn's theta (None: fixed) and the power by which it depends on that hyperparameter."""

    def __init__(self, text, parameters=()):
        self.text, self.parameters = text, list(parameters)

    @classmethod
    def join(cls, text, terms):
        return cls(text.join(t.text for t in terms), [p for t in terms for p in t.parameters])

    def wrapped(self, before, after):
        return _Term(before + self.text + after, self.parameters)


def _number(value, bounds, place, power, bounded):
    """One value of the expression and its parameter; `bounded`: within the kernel's bounds, which it is moved to."""
    value = float(value) ** power
    if value == 0 and not (place is not None and bounded):
        raise _NoExpression("a hyperparameter of 0 has no logarithm; a fixed 0 is left out where it is the sigma_0 of a "
                                 "DotProduct, or a WhiteKernel or ConstantKernel that is added")
    if place is None:
        return _Term(f"{value!r}! in({value / 2!r},{value * 2!r})", [(value, None, power)])
    low, high = min(_WIDEST[0], value), max(_WIDEST[1], value)
    if bounded:
        low = max(float(bounds[0]) ** power * (1 - _SLACK), low)
        high = min(float(bounds[1]) ** power * (1 + _SLACK), high)
        value = min(max(value, low), high)
    return _Term(f"{value!r} in({low!r},{high!r})", [(value, place, power)])


def _vanishes(kernel, name):
    """Is this hyperparameter held at 0?"""
    return getattr(kernel, name) == 0 and all(h.fixed for h in kernel.hyperparameters)


class _Translation:
    """Walks a kernel in the order of its theta."""

    def __init__(self, kernel, columns, bounded):
        self.columns, self.bounded, self.place = columns, bounded, 0
        terms = self.terms(kernel)
        alone = [t.text.startswith("white(") and "*" not in t.text for t in terms]
        noise = alone.index(True) if len(terms) > 1 and any(alone) else None
        if noise is not None:  # in the outermost sum it is noise, whose parameter comes last
            t = terms.pop(noise)
            terms.append(_Term(t.text.replace("white(v=", "noise(", 1), t.parameters))
        whole = _Term.join(" + ", terms)
        self.text = whole.text
        self.starts = np.array([value for value, _, _ in whole.parameters])
        self.free = np.array([i for i, (_, place, _) in enumerate(whole.parameters) if place is not None], dtype=int)
        self.places = np.array([whole.parameters[i][1] for i in self.free], dtype=int)
        self.powers = np.array([whole.parameters[i][2] for i in self.free], dtype=float)

    def values(self, theta):
        """Our parameters at scikit-learn's theta."""
        out = self.starts.copy()
        out[self.free] = np.exp(self.powers * np.asarray(theta, dtype=float)[self.places])
        return out

    def theta(self, values):
        """scikit-learn's theta at our parameters."""
        out = np.empty(len(self.free))
        out[self.places] = np.log(np.asarray(values)[self.free]) / self.powers
        return out

    def gradient(self, ours):
        """The gradient with respect to theta of one with respect to the logarithms of our parameters."""
        out = np.empty(len(self.free))
        out[self.places] = self.powers * ours[self.free]
        return out

    def terms(self, kernel):
        """The terms of a sum, one for anything else."""
        if type(kernel) is kernels.Sum:
            there = [k for k in (kernel.k1, kernel.k2) if not (type(k) in _ZEROS and _vanishes(k, _ZEROS[type(k)]))]
            if there:
                return [t for k in there for t in self.terms(k)]
        factors = self.factors(kernel)
        front = next((i for i, f in enumerate(factors) if len(factors) > 1 and f.text.startswith("const(v=")), None)
        if front is not None:  # a variance in front, which is what the fast kernels know
            f = factors.pop(front)
            factors.insert(0, _Term(f.text[len("const(v=") : -1], f.parameters))
        return [_Term.join("*", factors)]

    def factors(self, kernel):
        if type(kernel) is kernels.Product:
            return self.factors(kernel.k1) + self.factors(kernel.k2)
        if type(kernel) is kernels.Sum:
            return [_Term.join(" + ", self.terms(kernel)).wrapped("(", ")")]
        if type(kernel) is kernels.Exponentiation:
            return [self.power(kernel)]
        if type(kernel) is kernels.DotProduct:
            if _vanishes(kernel, "sigma_0"):
                return [_number(1, None, None, 1, False).wrapped("linear(v=", ")")]
            c = self.values_of(kernel)["sigma_0"](2)
            return [_Term(f"(linear(v={_number(1, None, None, 1, False).text}) + const(v={c.text}))",
                          [(1.0, None, 1), *c.parameters])]
        return [self.leaf(kernel)]

    def leaf(self, kernel):
        kind = type(kernel)
        if kind is kernels.Matern:
            if kernel.nu not in _MATERN:
                raise _NoExpression(f"Matern with nu={kernel.nu} is not built; there are nu 0.5, 1.5, 2.5 and inf")
            word, arguments = _MATERN[kernel.nu], {"l": "length_scale"}
        elif kind in _LEAVES:
            word, arguments = _LEAVES[kind]
        else:
            raise _NoExpression(f"the kernel {kernel!r} has no expression here; there are Sum, Product, DotProduct and its "
                                     f"powers, Matern, {', '.join(k.__name__ for k in _LEAVES)}")
        if kind is kernels.ExpSineSquared and self.columns != 1:
            raise _NoExpression("ExpSineSquared takes the distance over all columns of X; ours, a product over columns, "
                                     f"is the same for one column alone, and X has {self.columns}")
        values = self.values_of(kernel)
        pieces = [values[name](1).wrapped(f"{word_}=", "") for word_, name in arguments.items()]
        return _Term.join(", ", pieces).wrapped(f"{word}(", ")")

    def power(self, kernel):
        q = kernel.exponent
        if type(kernel.kernel) is not kernels.DotProduct or q != int(q) or q < 1:
            raise _NoExpression(f"{kernel!r}: of powers there are DotProduct() ** 1, 2, 3, ...")
        c = self.values_of(kernel.kernel)["sigma_0"](2)
        return c.wrapped(f"poly(q={int(q)}, c=", ")")

    def values_of(self, kernel):
        """{hyperparameter: function of a power -> its term}; counts the places in theta."""
        out = {}
        for h in kernel.hyperparameters:
            entries = np.atleast_1d(getattr(kernel, h.name))
            many = h.n_elements > 1
            places = [None] * len(entries) if h.fixed else range(self.place, self.place + len(entries))
            self.place += 0 if h.fixed else len(entries)
            bounds = [None] * len(entries) if h.fixed else np.broadcast_to(np.atleast_2d(h.bounds), (len(entries), 2))

            def term(power, entries=entries, places=places, bounds=bounds, many=many):
                each = [_number(v, b, p, power, self.bounded) for v, b, p in zip(entries, bounds, places)]
                joined = _Term.join(", ", each)
                return joined.wrapped("[", "]") if many else joined

            out[h.name] = term
        return out


class _Written:
    """An expression of ours instead of a kernel of scikit-learn; theta are the logarithms of its free parameters."""

    def __init__(self, text):
        self.text, self.starts = text, None

    def known(self, process):
        """Fills in what only the process knows: starts and what is free."""
        parameters = process.parameters
        self.starts = np.array([p["value"] for p in parameters])
        self.followers = np.array([i for i, p in enumerate(parameters) if p["tied"] >= 0], dtype=int)
        self.leaders = np.array([parameters[i]["tied"] for i in self.followers], dtype=int)
        self.free = np.array([i for i, p in enumerate(parameters) if not p["fixed"] and p["tied"] < 0], dtype=int)
        self.places, self.powers = np.arange(len(self.free)), np.ones(len(self.free))
        self.limits = np.array([[p["lower"], p["upper"]] for p in parameters])
        self.bounds = np.log(self.limits[self.free])

    def values(self, theta):
        """A bound that went through a logarithm and back is the bound."""
        out = _Translation.values(self, theta)
        near = self.limits * [1 - _SLACK, 1 + _SLACK]
        out = np.where((out >= near[:, 0]) & (out <= near[:, 1]), np.clip(out, *self.limits.T), out)
        out[self.followers] = out[self.leaders]
        return out

    def gradient(self, ours):
        """What follows a parameter moves with it."""
        whole = np.array(ours, dtype=float)
        np.add.at(whole, self.leaders, whole[self.followers])
        return _Translation.gradient(self, whole)

    theta = _Translation.theta


def _has_expression(kernel, X):
    """Whether the library evaluates this kernel itself."""
    if not kernel.requires_vector_input:
        return False
    try:
        _Translation(kernel, np.asarray(X).shape[1], True)
    except _NoExpression:
        return False
    return True


class _Same:
    """The map of a process whose parameters are scikit-learn's theta."""

    def values(self, theta):
        return np.asarray(theta, dtype=np.float64)

    gradient = values


class _Called:
    """A process whose kernel is called: K and dK / d theta are Python's, factor, inverse and likelihood the library's.

        log N(y; 0, K) summed over the columns of y,   d / d theta_k = 1/2 sum_ij (q^-1 A A' - K^-1)_ij q dK_ijk,   A = K^-1 Y
    """

    def __init__(self, kernel, X, y, alpha, threads):
        self.kernel, self.X, self.alpha, self.threads = clone(kernel), X, np.asarray(alpha, dtype=np.float64), threads
        self.y = y.reshape(len(y), -1)

    @property
    def theta(self):
        return self.kernel.theta

    @theta.setter
    def theta(self, theta):
        self.kernel.theta = theta

    def _solved(self, inverse=False):
        """(log |K|, K^-1 Y, K^-1 or None)."""
        k = np.array(self.kernel(self.X), dtype=np.float64)
        k[np.diag_indices(len(k))] += self.alpha
        first, logdet, a, *rest = invquad_logdet(k, self.y[:, 0].copy(), inverse=inverse or self.y.shape[1] > 1, threads=self.threads)
        a = a[:, None] if self.y.shape[1] == 1 else rest[0] @ self.y
        return float(logdet), a, rest[0] if rest else None

    def weights(self):
        return self._solved()[1]

    def _value(self, logdet, a):
        n, q = self.y.shape
        return float(-0.5 * (np.sum(self.y * a) + q * (logdet + n * np.log(2 * np.pi))))

    def log_likelihood(self):
        logdet, a, _ = self._solved()
        return self._value(logdet, a)

    def gradient(self):
        _, a, inverse = self._solved(inverse=True)
        _, dk = self.kernel(self.X, eval_gradient=True)
        return 0.5 * np.einsum("ij,ijk->k", a @ a.T - self.y.shape[1] * inverse, dk)

    def predict(self, X, return_var=False, return_cov=False):
        """As of fourge.gp.GP; variances below 0 by rounding are 0."""
        _, a, inverse = self._solved(inverse=return_var or return_cov)
        cross = self.kernel(X, self.X)
        mean = (cross @ a).reshape(-1) if a.shape[1] == 1 else cross @ a
        if return_cov:
            return mean, self.kernel(X) - cross @ inverse @ cross.T
        if return_var:
            return mean, np.maximum(self.kernel.diag(X) - np.sum((cross @ inverse) * cross, axis=1), 0.0)
        return mean


def _lbfgsb(objective, start, bounds):
    """scikit-learn's optimiser, for kernels that are called."""
    found = minimize(objective, start, method="L-BFGS-B", jac=True, bounds=bounds)
    if not found.success:
        warnings.warn(f"the fit stopped early: {found.message}", ConvergenceWarning, stacklevel=6)
    return found.x, found.fun


def expression(kernel: Any, columns: int = 1) -> str:
    """The expression of ``fourge/gp.h`` that a kernel of scikit-learn becomes, with its bounds.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    columns : int
        Columns of X; matters for ``ExpSineSquared``.

    Raises
    ------
    fourge.errors.Unsupported
        Where there is none.
    """
    return _Translation(kernel, columns, True).text


def _white(kernel, X):
    """What WhiteKernels add to the variances at X, which scikit-learn's predictions include."""
    if isinstance(kernel, kernels.WhiteKernel):
        return np.full(len(X), kernel.noise_level)
    if isinstance(kernel, kernels.Sum):
        return _white(kernel.k1, X) + _white(kernel.k2, X)
    if isinstance(kernel, kernels.Product):
        a, b = kernel.k1.diag(X), kernel.k2.diag(X)
        return a * b - (a - _white(kernel.k1, X)) * (b - _white(kernel.k2, X))
    return np.zeros(len(X))


def _check_alpha(alpha, rows):
    """One value >= 0, or one a row."""
    values = np.asarray(alpha)
    if values.shape not in ((), (1,), (rows,)):
        raise ValueError("alpha must be a scalar or an array with same number of entries as y: expected a scalar or one value a "
                         f"row of y ({rows}), got {' x '.join(map(str, values.shape))}")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise ValueError(f"alpha: expected numbers >= 0, entry {wrong[0]} is {values.flat[wrong[0]]}")


def _moments(y):
    """Mean and standard deviation of each target, 1 for one that is constant to rounding, however small its values."""
    size = np.abs(y).max(axis=0)
    unit = np.where(size > 0, size, 1.0)  # squares of what is tiny or huge are not numbers
    spread = np.std(y / unit, axis=0)
    spread = np.where(spread > 10 * np.finfo(spread.dtype).eps, spread * unit, 1.0)
    return np.atleast_1d(np.mean(y / unit, axis=0) * unit), np.atleast_1d(spread)


# ---- the estimator ------------------------------------------------------------------------------------------------

_locks = threading.Lock()


def _alone(method):
    """One thread at a time uses the process of an estimator; threads that predict with one model wait for each other."""

    @functools.wraps(method)
    def locked(self, *args, **kwargs):
        with _locks:
            lock = self.__dict__.setdefault("_lock", threading.RLock())
        with lock:
            return method(self, *args, **kwargs)

    return locked


class GaussianProcessRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Gaussian process regression with the interface of ``sklearn.gaussian_process.GaussianProcessRegressor``.

    Parameters
    ----------
    kernel : kernel of scikit-learn, str or None, default=None
        Of any class; one without an expression is called, and takes the memory of its own derivatives.  None is ``ConstantKernel() * RBF()``.  A string is an expression of ours, ``"2*matern52(ard) + noise(0.1)"``;
        predictions are then of the function, without its noise.
    alpha : float or (n,) array >= 0, default=1e-10
        Added to the diagonal of the covariance of the training points.
    optimizer : {"fmin_l_bfgs_b", "ai", "adam", "auto"}, callable or None, default="fmin_l_bfgs_b"
        The first is the library's own L-BFGS-B, "ai" its trust region on the average information; a callable is
        called as scikit-learn does, ``optimizer(obj_func, theta, bounds) -> (theta, value)``; None keeps the kernel.
    n_restarts_optimizer : int, default=0
        Further starts, uniform within the bounds of theta, drawn as scikit-learn draws them.
    normalize_y : bool, default=False
        Each target is centred and divided by its standard deviation before the fit; results are in its own units.
    copy_X_train : bool, default=True
        False: the arrays of the fit are kept as they are, and must not change.
    n_targets : int or None, default=None
        Targets of draws and predictions before a fit, 1 where None; a fit with others is refused.
    random_state : int, RandomState or None, default=None
        Of the starts that n_restarts_optimizer draws.
    precision : {"f64", "mixed", "f32"}, default="f64"
        As of :class:`fourge.gp.GP`.
    threads : int, default=0
        0 takes the cores this process may use; the numbers are the same for any.

    Attributes
    ----------
    X_train_, y_train_ : arrays
        As scikit-learn has them, `y_train_` normalised.
    kernel_ : kernel or str
        With the parameters fitted.
    log_marginal_likelihood_value_ : float
    alpha_, L_ : arrays
        K^-1 y and the factor of K; computed when first asked for, prediction does not need them.
    fit_report_ : dict
        The report of the best start (:meth:`fourge.gp.GP.fit`); of optimisers of the library.

    Raises
    ------
    fourge.errors.Unsupported
        optimizer="ai" or "adam", or another precision than "f64", with a kernel that has no expression (in ``fit``).
    numpy.linalg.LinAlgError
        The covariance is not positive definite; no jitter is added but `alpha`.
    """

    _parameter_constraints: dict = {
        "kernel": [None, kernels.Kernel, str],
        "alpha": [Interval(numbers.Real, 0, None, closed="left"), np.ndarray],
        "optimizer": [StrOptions({"fmin_l_bfgs_b", "ai", "adam", "auto"}), callable, None],
        "n_restarts_optimizer": [Interval(numbers.Integral, 0, None, closed="left")],
        "normalize_y": ["boolean"],
        "copy_X_train": ["boolean"],
        "n_targets": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "precision": [StrOptions({"f64", "mixed", "f32"})],
        "threads": [Interval(numbers.Integral, 0, None, closed="left")],
    }

    def __init__(self, kernel: Any = None, *, alpha: Any = 1e-10, optimizer: str | Callable | None = "fmin_l_bfgs_b",
                 n_restarts_optimizer: int = 0, normalize_y: bool = False, copy_X_train: bool = True, n_targets: int | None = None,
                 random_state: Any = None, precision: str = "f64", threads: int = 0):
        self.kernel = kernel
        self.alpha = alpha
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.normalize_y = normalize_y
        self.copy_X_train = copy_X_train
        self.n_targets = n_targets
        self.random_state = random_state
        self.precision = precision
        self.threads = threads

    # ---- fit ----

    @_alone
    def fit(self, X: Any, y: Any) -> "GaussianProcessRegressor":
        """Fits the kernel's parameters to X (n, d) and y (n,) or (n, q); returns self."""
        self._validate_params()
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, **self._shape_of_points())
        targets = y.shape[1] if y.ndim > 1 else 1
        if self.n_targets is not None and targets != self.n_targets:
            raise ValueError("The number of targets seen in `y` is different from the parameter `n_targets`: "
                             f"{targets} != {self.n_targets}")
        _check_alpha(self.alpha, len(y))
        self._y_train_mean, self._y_train_std = np.zeros(targets), np.ones(targets)
        if self.normalize_y:
            self._y_train_mean, self._y_train_std = _moments(y)
            y = (y - self._y_train_mean) / self._y_train_std
        self.X_train_ = np.copy(X) if self.copy_X_train else X
        self.y_train_ = np.copy(y) if self.copy_X_train else y
        kernel = kernels.ConstantKernel() * kernels.RBF() if self.kernel is None else self.kernel
        self.kernel_ = kernel if isinstance(kernel, str) else clone(kernel)
        self._cached = None
        try:
            self._fit_parameters(check_random_state(self.random_state))
        except errors.NotPositiveDefinite as e:
            raise np.linalg.LinAlgError(
                f"The kernel, {self.kernel_}, is not returning a positive definite matrix. Try gradually increasing the 'alpha' "
                f"parameter of your GaussianProcessRegressor estimator.", str(e)) from e
        return self

    def _shape_of_points(self):
        """What scikit-learn checks of X: rows of numbers, or whatever a kernel takes that asks for no vectors."""
        vectors = self.kernel is None or isinstance(self.kernel, str) or self.kernel.requires_vector_input
        return {"ensure_2d": True, "dtype": "numeric"} if vectors else {"ensure_2d": False, "dtype": None}

    def _fit_parameters(self, rng):
        process, map_ = self._process()
        theta = map_.theta(process.theta) if isinstance(self.kernel_, str) else self.kernel_.theta
        if self.optimizer is None or len(theta) == 0:
            self._settle(theta, self._process(theta)[0].log_likelihood())
            return
        bounds = map_.bounds if isinstance(self.kernel_, str) else self.kernel_.bounds
        if self.n_restarts_optimizer and not np.isfinite(bounds).all():
            raise ValueError("n_restarts_optimizer > 0 requires that all bounds are finite")
        starts = [theta] + [rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(self.n_restarts_optimizer)]
        best = None
        for number, start in enumerate(starts):
            try:
                found = self._optimise(start, bounds)
            except errors.NotPositiveDefinite:
                if number == 0:
                    raise
                continue  # a start where the covariance has no factor, as scikit-learn's of likelihood -inf
            if best is None or found[1] > best[1]:
                best = found
        if best[2] is not None:
            self.fit_report_ = best[2]
            if best[2]["status"] != "FRG_OK":
                warnings.warn(f"the fit stopped early ({best[2]['status']}): see fit_report_; n_restarts_optimizer makes other "
                              "starts", ConvergenceWarning, stacklevel=4)
            for told in best[3]:
                warnings.warn(told, UserWarning, stacklevel=4)
        self._settle(best[0], best[1])
        if hasattr(self.kernel_, "_check_bounds_params"):
            self.kernel_._check_bounds_params()

    def _optimise(self, start, bounds):
        """(theta, log likelihood, report, warnings) from one start."""
        own = isinstance(self._process()[0], _Called)  # the library's optimisers need an expression
        if own and self.optimizer in ("ai", "adam"):
            raise errors.Unsupported(f"optimizer={self.optimizer!r} with {self.kernel_!r}, which has no expression; take "
                                     "'fmin_l_bfgs_b' or a function")
        if own or callable(self.optimizer):
            def objective(theta, eval_gradient=True):
                if not eval_gradient:
                    return -self.log_marginal_likelihood(theta)
                value, gradient = self.log_marginal_likelihood(theta, eval_gradient=True)
                return -value, -gradient

            theta, value = (self.optimizer if callable(self.optimizer) else _lbfgsb)(objective, start, bounds=bounds)
            if own and not np.isfinite(value):
                self._process(theta)[0].log_likelihood()  # says what is wrong
            return np.asarray(theta), -float(value), None, []
        process, map_ = self._process(np.clip(start, *bounds.T))  # a start beyond a bound begins at it, as SciPy's does
        name = "lbfgsb" if self.optimizer == "fmin_l_bfgs_b" else self.optimizer
        with_bounds = isinstance(self.kernel_, str)  # kernels of scikit-learn tell of their bounds by their own names
        report, told = process._fit({"optimizer": name, "tol": 1e-7, "standard_errors": False})
        told = [f"{code}: {text}" for code, text in told if with_bounds or code != "FRG-GP-106"]
        return np.clip(map_.theta(process.theta), *bounds.T), report["log_likelihood"], report, told

    def _settle(self, theta, value):
        """Makes theta the fitted one."""
        self._theta = np.array(theta, dtype=float)
        if isinstance(self.kernel_, str):
            self.kernel_ = self._process(self._theta)[0].report["kernel"]
        else:
            self.kernel_.theta = self._theta
        self.log_marginal_likelihood_value_ = np.float64(value)

    # ---- the process: a cache, made anew from the arrays where it is not there ----

    def __getstate__(self):
        state = super().__getstate__().copy()
        state.pop("_cached", None)
        state.pop("_lock", None)
        return state

    def _process(self, theta=None):
        """(process, map) at theta, at the kernel's own parameters where theta is None."""
        cached = getattr(self, "_cached", None)
        if cached is None:
            cached = self._cached = self._create(True)
        process, map_ = cached
        if theta is not None:
            values = map_.values(theta)
            if not np.array_equal(values, process.theta):
                try:
                    process.theta = values
                except errors.BadArgument:  # out of the bounds, which scikit-learn allows where nothing is fitted
                    if isinstance(self.kernel_, str) or not np.isfinite(theta).all():
                        raise
                    process, map_ = self._cached = self._create(False)
                    process.theta = values
        return process, map_

    def _create(self, bounded):
        written = isinstance(self.kernel_, str)
        if not written and not _has_expression(self.kernel_, self.X_train_):
            if self.precision != "f64":
                raise errors.Unsupported(f"precision={self.precision!r} with {self.kernel_!r}, which has no expression; take 'f64'")
            called = _Called(self.kernel_, self.X_train_, np.asarray(self.y_train_, dtype=np.float64), self.alpha, self.threads)
            return called, _Same()
        X = np.asarray(self.X_train_, dtype=np.float64)
        map_ = _Written(self.kernel_) if written else _Translation(self.kernel_, X.shape[1], bounded)
        if not written:
            self.kernel_(X[:1])  # scikit-learn's own words where it has lengthscales for other columns than X has
        noise = np.broadcast_to(np.asarray(self.alpha, dtype=np.float64), len(X))
        process = GP(X, np.asarray(self.y_train_, dtype=np.float64), map_.text, mean="zero", noise_variances=noise,
                     jitter="none", precision=self.precision, threads=self.threads)
        if written:
            map_.known(process)
        return process, map_

    @property
    @_alone
    def alpha_(self) -> np.ndarray:
        """K^-1 y, (n,) or (n, q)."""
        self._check_fitted("alpha_")
        process = self._process(self._theta)[0]
        if isinstance(process, _Called):
            return process.weights().reshape(self.y_train_.shape)
        return -process.gradient(y=True)[1].reshape(self.y_train_.shape)

    @property
    def L_(self) -> np.ndarray:
        """The lower factor of K + alpha I, (n, n), by NumPy from the kernel of scikit-learn."""
        self._check_fitted("L_")
        if isinstance(self.kernel_, str):
            raise AttributeError("L_ is there for kernels of scikit-learn alone")
        k = np.asarray(self.kernel_(self.X_train_), dtype=np.float64)
        return np.linalg.cholesky(k + np.diag(np.broadcast_to(np.asarray(self.alpha, dtype=np.float64), len(k))))

    def _check_fitted(self, name):
        if not hasattr(self, "_theta"):
            raise AttributeError(f"{name} is there after fit")

    # ---- after the fit ----

    @_alone
    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """The log marginal likelihood at theta (logarithms of the free parameters), of the fit where theta is None;
        with `eval_gradient` the pair of it and its gradient.  -inf where the covariance has no factor.  Without
        `clone_kernel` the fitted kernel takes theta, as scikit-learn's does."""
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None: eval_gradient needs theta")
            return self.log_marginal_likelihood_value_
        theta = np.asarray(theta, dtype=float)
        count = len(self._process()[1].places if isinstance(self.kernel_, str) else self.kernel_.theta)
        if theta.shape != (count,):
            raise ValueError(f"theta: expected {count} values, got {' x '.join(map(str, theta.shape)) or 'a scalar'}")
        if not clone_kernel and not isinstance(self.kernel_, str):
            self.kernel_.theta = theta
        try:
            process, map_ = self._process(theta)
            value = np.float64(process.log_likelihood())
            return (value, map_.gradient(process.gradient())) if eval_gradient else value
        except errors.NotPositiveDefinite:
            return (-np.inf, np.zeros_like(theta)) if eval_gradient else -np.inf

    @_alone
    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The mean at X (m, d) and, where asked, standard deviations or the joint covariance; before a fit of the prior.

        Returns
        -------
        mean : (m,) or (m, q)
        std : (m,) or (m, q), where return_std
        cov : (m, m) or (m, m, q), where return_cov
            With kernels of scikit-learn both include what its WhiteKernels say, as scikit-learn's do.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        X = validate_data(self, X, reset=False, **self._shape_of_points())
        if not hasattr(self, "_theta"):
            return self._predict_prior(X, return_std, return_cov)
        process, _ = self._process(self._theta)
        own = isinstance(process, _Called)
        out = process.predict(X if own else np.asarray(X, dtype=np.float64), return_var=return_std, return_cov=return_cov)
        mean = out[0] if return_std or return_cov else out
        scale = self._y_train_std
        mean = (scale * mean.reshape(len(X), -1) + self._y_train_mean).reshape(mean.shape)
        if not (return_std or return_cov):
            return mean
        white = 0 if own or isinstance(self.kernel_, str) else _white(self.kernel_, X)
        spread = out[1] + (np.diag(np.broadcast_to(white, len(X))) if return_cov else white)
        spread = np.multiply.outer(spread, scale**2) if return_cov else np.multiply.outer(np.sqrt(spread), scale)
        return mean, spread[..., 0] if spread.shape[-1] == 1 else spread

    def _predict_prior(self, X, return_std, return_cov):
        kernel = kernels.ConstantKernel() * kernels.RBF() if self.kernel is None else self.kernel
        if isinstance(kernel, str):
            raise AttributeError("predictions of the prior need a kernel of scikit-learn; fit the estimator first")
        targets = self.n_targets or 1
        mean = np.zeros((len(X), targets))
        mean = mean[:, 0] if targets == 1 else mean
        if not (return_std or return_cov):
            return mean
        spread = kernel(X) if return_cov else np.sqrt(kernel.diag(X))
        return mean, spread if targets == 1 else np.repeat(spread[..., None], targets, axis=-1)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """(m, n_samples) or (m, q, n_samples) joint draws at X (m, d), of the normals that scikit-learn takes from
        `random_state`."""
        rng = check_random_state(random_state)
        mean, cov = self.predict(X, return_cov=True)
        if mean.ndim == 1:
            return rng.multivariate_normal(mean, cov, n_samples).T
        draws = [rng.multivariate_normal(mean[:, k], cov[..., k], n_samples).T for k in range(mean.shape[1])]
        return np.stack(draws, axis=1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
