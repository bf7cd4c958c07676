"""Exact Gaussian processes: likelihood, gradient, fit, prediction.

Kernels are expressions: ``"1.7*rbf(ard) + noise(0.1)"``; a number in front is a variance, ``noise`` the variance of observations.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any, Unpack

import numpy as np

from . import _fourge, _options, errors
from ._arrays import CONTEXT_OPTIONS, Report, array, context, moved_seconds, outside, seconds, warn
from ._hints import hint
from ._summary import Summary

__all__ = ["GP", "load", "evaluate_batch", "fit_batch", "invquad_logdet"]


def _pair(x: Any, y: Any, x_name: str = "x", y_name: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """Both in one type: float64 where they differ."""
    x, y = array(x, x_name), array(y, y_name)
    return (x, y) if x.dtype == y.dtype else (x.astype(np.float64), y.astype(np.float64))


def _doubles(values: Any, name: str) -> Any:
    return None if values is None else np.ascontiguousarray(array(values, name), np.float64)


class _Named(Mapping[str, Any]):
    """What each parameter has by its name, one number or an array with one for each entry; items can be set."""

    def __init__(self, model: GP, get: Callable[[dict[str, Any]], Any], set_: Callable[[str, Any], Any]):
        self._model, self._get, self._set = model, get, set_

    def __getitem__(self, name: str) -> Any:
        found = self._model._entries(name)
        one = [self._get(p) for p in found]
        return one[0] if found[0]["entry"] < 0 else np.array(one)

    def __setitem__(self, name: str, value: Any) -> None:
        self._set(name, value)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(p["name"] for p in self._model.parameters))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))


_REMEDIES = {"FRG_MAX_ITER": "raise max_iter or max_evaluations", "FRG_TIME_LIMIT": "raise time_limit",
             "FRG_STALLED": "more may be won from other places: raise starts", "FRG_INTERRUPTED": "fit again from here"}


_MOVED_VALUE = {**moved_seconds("build", "factor", "inverse", "gradient"), "jitter_tries": "report['jitter']['tries']",
                "scale": "report['profiled_scale'], which is there with profile_scale=True"}
_MOVED_FIT = {
    **moved_seconds("total"), "value": "the report itself", "ended": "report['optimizer']['ended']",
    "iterations": "report['optimizer']['iterations']", "values": "report['optimizer']['evaluations']['value']",
    "gradients": "report['optimizer']['evaluations']['gradient']", "failures": "report['optimizer']['evaluations']['failed']",
    "gradient_norm": "report['optimizer']['gradient_norm']", "best_start": "report['optimizer']['best_start']",
    "trace": "report['optimizer']['trace']", "starts": "report['optimizer']['start_results']"}


def _label(p: dict[str, Any]) -> str:
    return p["name"] if p["entry"] < 0 else f"{p['name']}[{p['entry']}]"


def _by_name(parameters: list[dict[str, Any]], key: str, names: set[str]) -> dict[str, Any]:
    """{name: value, name of a vector: [values]} of those in `names`."""
    out: dict[str, Any] = {}
    for p in parameters:
        if p["name"] in names:
            out[p["name"]] = p[key] if p["entry"] < 0 else [*out.get(p["name"], ()), p[key]]
    return out


class GP(Summary):
    """A Gaussian process with its data.

    Parameters
    ----------
    x : (n, d) or (n,) array
    y : (n,) or (n, q) array
        Several columns share one kernel.
    kernel : str
        ``rbf matern12 matern32 matern52 rq periodic linear poly cosine sm const white``, sums, products, variances in
        front, ``on(column; kernel)``, ``noise(v)``; a value left out is set from the data, ``l=@rbf.l`` follows a parameter
        that stands before it.
    mean : str, default="const"
        ``"zero"``, ``"const"``, ``"const(v)"`` (``"const(v!)"`` stays at v), ``"linear"``: a constant and a slope an input,
        ``"profiled"`` or ``"profiled(linear)"``: estimated in closed form, ``"values"``: those of `mean_values`.
    reml : bool, default=False
        The restricted likelihood, with a profiled mean.
    profile_scale : bool, default=False
        The kernel and its noise are known up to a factor, which is estimated in closed form: ``value()["profiled_scale"]``.
    priors : str, optional
        As ``"rbf.l=gamma(3,6); noise=lognormal(-4,1)"``, on the values; gamma, lognormal, normal, halfnormal, halfcauchy,
        invgamma, uniform, smoothbox, horseshoe, loguniform.
    prior_jacobian : bool, default=False
        Whether the mode is that of the raw parameters instead.
    preset : {"none", "gpytorch", "botorch", "sklearn"}, default="none"
        Transforms, starts, bounds and priors of another package.
    precision : {"f64", "f32", "mixed"}, default="f64"
        f32: sums in float64; an answer that is not good enough is an error.  mixed: the value of f64 to the bit, the inverse in
        float32 where the gradient is estimated to be within 1e-5 of its largest component, in float64 elsewhere
        (``value()["promoted"]``, and a warning).
    auto_promote : bool, default=False
        Do again in float64 what float32 is not good enough for.
    accuracy : float, default=1e-3
        What float32 must reach in the likelihood, relative to its size.
    storage : {"auto", "full", "packed"}, default="auto"
        packed takes half the memory of full and computes the kernel twice.
    jitter : {"relative", "gpytorch", "none"}, default="relative"
        What is done with a covariance that is not positive definite: a growing addition to its diagonal, told by a warning,
        relative to it or GPyTorch's; or an error.
    nan : {"error", "mask"}, default="error"
        NaN in y is an error, or the row is left out and counted in ``report["n_masked"]``.
    mean_values, noise_variances, noise_groups : (n,) arrays, optional
    columns : list of str, optional
        Names for ``on()``; without, those of a frame, else x1, x2, ...
    progress : callable or True, optional
        ``progress(solver, phase, done, total, residual, target, seconds)``; a true answer stops the call.  True shows a bar.
    device
        "cpu", "cuda:i" or "opencl:i"; None is that of the environment's FOURGE_DEVICE.  What does not run there is refused by name.
    threads, seed, memory_limit, time_limit
        Of the computation.

    Raises :class:`fourge.errors.BadArgument` with the column of the expression, :class:`fourge.errors.BadData` with row and
    column, :class:`fourge.errors.OutOfMemory` with what would fit, :class:`fourge.errors.NotPositiveDefinite` with the pivot.
    """

    @_options.takes(_options.Process, "context", "gp")
    def __init__(self, x: Any, y: Any, kernel: str, *, mean_values: Any = None, noise_variances: Any = None,
                 noise_groups: Any = None, columns: list[str] | None = None,
                 progress: Callable[..., Any] | bool | None = None, **options: Unpack[_options.Process]):
        _options.check(GP.__init__, options)
        if not isinstance(kernel, str):
            raise TypeError(f"kernel: expected an expression as '1.7*rbf(ard) + noise(0.1)', a str, got {type(kernel).__name__}; "
                            "fourge.sklearn takes scikit-learn's kernels, fourge.gpytorch GPyTorch's")
        if isinstance(columns, str):
            raise TypeError("columns: expected a list of names, got a str")
        if columns is None and hasattr(x, "columns") and all(isinstance(name, str) for name in x.columns):
            columns = list(x.columns)
        if noise_groups is not None and np.asarray(noise_groups).dtype.kind not in "iu":
            raise TypeError(f"noise_groups: expected integer codes, got {np.asarray(noise_groups).dtype}")
        self._settings = dict(options)
        self._context = context(options, progress)
        x, y = _pair(x, y)
        each = lambda a, t, name: None if a is None else np.ascontiguousarray(array(a, name) if t is np.float64 else a, dtype=t)
        self._gp = _fourge.Gp(self._context, x[:, None] if x.ndim == 1 else x, y, kernel, options,
                              each(mean_values, np.float64, "mean_values"), each(noise_variances, np.float64, "noise_variances"),
                              each(noise_groups, np.int32, "noise_groups"), None if columns is None else list(columns))
        warn(self._context)

    def _facts(self):
        r, heads = self.report, ["parameter", "value", "std. error", "lower", "upper", ""]
        rows = [[_label(p), *(float(p[k]) for k in ("value", "std_error", "lower", "upper")), "fixed" * p["fixed"]] for p in self.parameters]
        facts = [("points", r["n"]), ("columns", ", ".join(r["columns"])), ("outputs", r["q"]), ("precision", r["precision"]), ("bytes", r["bytes"])]
        return f"Gaussian process, {r['kernel']}", facts, (heads, rows)

    def __repr__(self):
        r = self.report
        return f"GP({r['kernel']}; {r['n']} points, {r['d']} columns)"

    @property
    def report(self) -> dict[str, Any]:
        """n, d, q, columns, kernel with its current values, storage, precision, bytes."""
        return self._gp.report()

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """One dict a parameter: name, entry, value, lower, upper, fixed, active, std_error, tied (the number of the
        one that it follows, or -1)."""
        return self._gp.parameters()

    @property
    def theta(self) -> np.ndarray:
        """The parameters' values; assign to change them."""
        return np.array([p["value"] for p in self.parameters])

    @theta.setter
    def theta(self, values: Any) -> None:
        self._gp.update(np.ascontiguousarray(array(values, "theta"), dtype=np.float64))

    @property
    def values(self) -> _Named:
        """The parameters' values by name, an array for those with entries; ``gp.values["rbf.l"] = 0.3`` changes one."""
        return _Named(self, lambda p: p["value"], lambda name, value: self.set({name: value}))

    @property
    def bounds(self) -> _Named:
        """The bounds of a fit by name, (lower, upper) or an array with a row for each entry;
        ``gp.bounds["rbf.l"] = 0.1, 5`` changes them."""
        return _Named(self, lambda p: (p["lower"], p["upper"]), lambda name, value: self.set(bounds={name: value}))

    def set(self, values: Mapping[str, Any] | None = None, *, bounds: Mapping[str, Any] | None = None, **named: Any) -> GP:
        """Other values and bounds for parameters, by their names.

        Parameters
        ----------
        values : dict, optional
            ``{"rbf.l": 0.3, "noise": 0.1}``: a number for all entries of a parameter, or one for each.
        bounds : dict, optional
            ``{"rbf.l": (0.1, 5)}``: lower and upper for all entries, or a pair for each, (entries, 2); None for one that stays.
        **named
            Values of names that are Python's, as ``noise=0.1``.

        All of them or none: :class:`fourge.errors.BadArgument` for a value outside of its bounds, KeyError, which lists the
        names, for one that is not there.  Tied parameters take one value, and keep bounds of their own.
        """
        values, bounds = {**(values or {}), **named}, dict(bounds or {})
        self._gp.set([change for name in dict.fromkeys([*values, *bounds])
                      for change in self._changes(name, values.get(name), bounds.get(name))])
        return self

    def _entries(self, name: str) -> list[dict[str, Any]]:
        found = [p for p in self.parameters if p["name"] == name]
        if not found:
            raise KeyError(f"there is no parameter {name!r}; there are {list(dict.fromkeys(p['name'] for p in self.parameters))}")
        return found

    def _changes(self, name: str, value: Any, bounds: Any) -> list[tuple[Any, ...]]:
        """As the extension takes them, one tuple an entry; NaN stays."""
        found = len(self._entries(name))
        value = np.full(found, np.nan) if value is None else _doubles(value, name)
        pair = [np.nan if v is None else v for v in bounds] if bounds is not None and np.ndim(bounds) == 1 else bounds
        pair = np.full(2, np.nan) if pair is None else _doubles(pair, f"bounds of {name}")
        if value.shape not in ((), (1,), (found,)) or pair.shape not in ((2,), (found, 2)):
            raise errors.BadArgument(f"{name} has {found} entries: expected a value or {found}, bounds (2,) or ({found}, 2); got "
                                     f"shapes {value.shape} and {pair.shape}")
        value, pair = np.broadcast_to(value, (found,)), np.broadcast_to(pair, (found, 2))
        return [(name, i, float(value[i]), *map(float, pair[i])) for i in range(found)]

    def fix(self, name: str, fixed: bool = True) -> GP:
        """Holds all entries of the parameter `name` at their values, or lets go of them with `fixed` false."""
        self._entries(name)
        for i, p in enumerate(self.parameters):
            if p["name"] == name:
                self._gp.fix(i, fixed)
        return self

    def tie(self, name: str, to: str | None, *, entry: int | None = None, to_entry: int | None = None) -> GP:
        """Parameter `name` follows parameter `to` from here on, or goes its own way again (None).

        It takes the other's value at once, and a fit moves both as one.  Entries of vectors are tied one by one; without
        `entry` all those of `name`, to `to_entry` or to the entries of the same numbers.
        """
        p = self.parameters
        mine = [i for i, x in enumerate(p) if x["name"] == name and entry in (None, x["entry"])]
        theirs = [i for i, x in enumerate(p) if x["name"] == to and to_entry in (None, x["entry"])]
        if not mine or (to is not None and not theirs):
            raise KeyError(f"there is no parameter {name if not mine else to!r} with that entry; there are "
                           f"{sorted({x['name'] for x in p})}")
        if to is not None and len(theirs) not in (1, len(mine)):
            raise errors.BadArgument(f"tie: {name!r} has {len(mine)} entries, {to!r} {len(theirs)}; give to_entry")
        for k, i in enumerate(mine):
            self._gp.tie(i, -1 if to is None else theirs[k if len(theirs) > 1 else 0])
        return self

    def value(self) -> dict[str, Any]:
        """The log likelihood at the current parameters, with its certificates: a dict under the keys of the JSON of ``fourge gp
        value --no-gradient``, and the positions ``pivot`` (where the factor failed before jitter, or -1) and ``closest`` (the two
        nearest rows, where they were sought)."""
        begin = time.perf_counter()
        v = self._gp.value()
        took = time.perf_counter() - begin
        warn(self._context)
        return Report({"status": v["status"], **self._value_report(v, self.parameters, took)}, v, _MOVED_VALUE)

    def _value_report(self, v: dict[str, Any], parameters: list[dict[str, Any]], took: float) -> dict[str, Any]:
        """What value and fit have in common, of the library's `v` and the seconds that it `took`."""
        r = self.report
        out = {"kernel": r["kernel"], "n": r["n"], "d": r["d"], "outputs": r["q"], "n_masked": r["n_masked"],
               "columns": r["columns"], "dtype": r["precision"]}
        out |= {k: v[k] for k in ("log_likelihood", "log_prior", "per_point")}
        out["parameters"] = _by_name(parameters, "value", {p["name"] for p in parameters})
        tied = {_label(p): _label(parameters[p["tied"]]) for p in parameters if p["tied"] >= 0}
        out |= ({"tied": tied} if tied else {}) | ({"profiled_scale": v["scale"]} if self._settings.get("profile_scale") or v["scale"] != 1 else {})
        out["jitter"] = {"value": v["jitter"], "tries": v["jitter_tries"]}
        out |= {k: v[k] for k in ("trace_residual", "error_estimate", "promoted", "storage", "pivot", "closest")}
        return out | {"seconds": {**seconds(v), "total": took}}

    def log_likelihood(self) -> float:
        """The log likelihood at the current parameters, without the prior."""
        out = self._gp.value()["log_likelihood"]
        warn(self._context)
        return out

    def gradient(self, x: bool = False, y: bool = False) -> Any:
        """Gradient of log likelihood and log prior, per log of a positive parameter, per value of a mean.

        With x or y true, a tuple with the gradients with respect to the data follows.
        """
        r = self.report
        g = np.empty(len(self.parameters))
        dx = np.empty((r["n"], r["d"])) if x else None
        dy: Any = np.empty((r["n"], r["q"])) if y else None
        self._gp.gradient(g, dx, dy)
        warn(self._context)
        extra = [a for a in (dx, dy[:, 0] if y and r["q"] == 1 else dy) if a is not None]
        return (g, *extra) if extra else g

    def information(self) -> np.ndarray:
        """Average information matrix of the parameters (Gilmour, Thompson and Cullis 1995)."""
        p = len(self.parameters)
        out = np.empty(p * p)
        self._gp.information(out)
        warn(self._context)
        return out.reshape(p, p)

    def loo(self, gradient: bool = False, latent: bool = False) -> dict[str, Any]:
        """Leave-one-out: that of :meth:`value`, with mean (n,) or (n, q), variance (n,) (noise included), log_density and rmse.

        Under the keys of the JSON of ``fourge gp loo``: with `latent` also its latent_variance (n,), that of the function alone, neither
        noise nor jitter; with `gradient` the array of the derivatives of log_density, in the order of :attr:`parameters`.
        Rasmussen and Williams (2006), 5.4.2.
        """
        begin = time.perf_counter()
        out = self._left_out(self._gp.loo, gradient)
        if latent:
            out["latent_variance"] = np.empty(self.report["n"])
            self._gp.loo_latent(out["latent_variance"])
        v = self._gp.value()
        return {"status": v["status"], **self._value_report(v, self.parameters, time.perf_counter() - begin), **out}

    def folds(self, codes: Any, gradient: bool = False) -> dict[str, Any]:
        """K-fold by one inverse: rows with one code in `codes`, (n,) integers 0 .. F - 1, are predicted together from all others.

        A dict as of :meth:`loo`, with its gradient where `gradient` is true; log_density is that of each fold's rows together, summed over the folds.  Codes are
        those of the rows that are kept (``nan="mask"`` leaves rows out).
        """
        codes = np.asarray(codes)
        if codes.dtype.kind not in "iu":
            raise TypeError(f"codes: expected integer codes, got {codes.dtype}")
        if codes.shape != (self.report["n"],) or (codes.size and not 0 <= codes.min() <= codes.max() < len(codes)):
            raise errors.BadArgument(f"codes: expected {self.report['n']} codes, 0 to at most {self.report['n'] - 1}")
        codes = np.ascontiguousarray(codes, np.int32)
        return self._left_out(lambda *out: self._gp.folds(codes, *out), gradient)

    def _left_out(self, call: Callable[..., tuple[float, float]], gradient: bool) -> dict[str, Any]:
        r = self.report
        mean, variance = np.empty(r["n"] * r["q"]), np.empty(r["n"])
        g = np.empty(len(self.parameters)) if gradient else None
        log_density, rmse = call(mean, variance, g)
        warn(self._context)
        mean = mean if r["q"] == 1 else mean.reshape(r["n"], r["q"])
        out = {"mean": mean, "variance": variance, "log_density": log_density, "rmse": rmse}
        return out | ({"gradient": g} if gradient else {})

    @_options.takes(_options.ProcessFit, "gp_fit")
    def fit(self, *, checkpoint: str | PathLike[str] | None = None, checkpoint_every: float = 60.0,
            resume: bool | str | PathLike[str] = False, **options: Unpack[_options.ProcessFit]) -> dict[str, Any]:
        """Maximises log likelihood and prior over the free parameters, from their current values and within their bounds.

        Parameters
        ----------
        optimizer : {"auto", "ai", "lbfgsb", "adam"}, default="auto"
            ai: a trust region on the average information, which auto takes from 200 points on and up to 64 parameters; else
            L-BFGS-B.
        max_iter : int, default=200
            Iterations of a start; of adam the steps.
        max_evaluations : int, default=0
            Likelihoods that each start may ask for, 0: no limit.
        tol : float, default=1e-5
            The largest projected gradient a point at which a fit has converged.
        learning_rate : float, default=0.1
            Of adam.
        starts : int, default=1
            The first is where the parameters are; those whose values the data gave begin at likelier ones, tried on at most 160
            points, where a lengthscale or a period is among them.  The others come from priors, bounds that the text gives, and
            distances of the points; the best one is kept.
        standardize : bool, default=True
            Means are searched in standard deviations of y.
        standard_errors : bool, default=True
            Whether ``parameters`` have them afterwards, from the average information.
        checkpoint : path, optional
            The fit writes its state there every `checkpoint_every` seconds, and when it is stopped (Ctrl-C, time_limit).
        resume : path or bool
            Goes on from that state to the bits of a fit that was not stopped; True: from `checkpoint` where that is there.
            The data, the expression, the starting values, the options and the seed must be those of the state; threads
            need not.  A stopped fit leaves its best values in the process: make the process anew, or set them back.

        Returns
        -------
        dict
            Under the keys of the JSON of ``fourge gp fit`` (its gradient is that of :meth:`gradient`).  That of :meth:`value` where the fit ended, and
            status: ``"FRG_OK"``, ``"FRG_MAX_ITER"``, ``"FRG_STALLED"`` where no way on was found although more is promised (more
            starts may help), ``"FRG_INTERRUPTED"`` or ``"FRG_TIME_LIMIT"``; optimizer, a dict: name, ended (by which test it has
            converged, ``"gradient"``, ``"gain"`` (a full step promises next to none) or ``"rounding"`` (less than the likelihood
            is known to)), status, iterations, evaluations (value, gradient, failed), gradient_norm, starts (their number),
            best_start, starts_reached (how many ended within 0.01 of the best), next_optimum (how far below it the best of the
            others ended, nan where there is none), start_choice (a dict: likelihoods (values) of how many of the points chose the
            first start), start_results (what became of each: status, objective, iterations, values, gradients, failures) and trace
            (one dict an iterate of the best start); standard_errors by name; active_bounds, one dict each: parameter, bound,
            value.

        A fit that did not converge warns with :class:`fourge.errors.NotConverged`.  One that was stopped keeps the best point that
        it has seen; log_likelihood is nan where that was before its first value.
        """
        _options.check(GP.fit, options)
        if resume is True:
            if checkpoint is None:
                raise errors.BadArgument("resume=True takes a checkpoint to go on from")
            resume = checkpoint if os.path.exists(checkpoint) else False
        out = self._gp.fit(options, None if checkpoint is None else os.fsdecode(checkpoint), float(checkpoint_every),
                           None if resume is False else os.fsdecode(resume))  # type: ignore[arg-type]
        warn(self._context)
        report = self._fit_report(out, options)
        if out["status"] != "FRG_OK":
            warnings.warn(f"the fit ended with {out['status']} (iterations: {out['iterations']}) before it converged, at the log "
                          f"likelihood {out['log_likelihood']:.6g}: {_REMEDIES.get(out['status'], 'fit again')}",
                          errors.NotConverged, stacklevel=outside())
        return report

    def _fit_report(self, f: dict[str, Any], options: Mapping[str, Any]) -> Report:
        p = self.parameters
        v = {**f["value"], "log_likelihood": f["log_likelihood"]}
        out = {"status": f["status"], **self._value_report(v, p, f["total_seconds"])}
        out["optimizer"] = {
            "name": f["optimizer"], "ended": f["ended"], "status": f["status"], "iterations": f["iterations"],
            "evaluations": {"value": f["values"], "gradient": f["gradients"], "failed": f["failures"]},
            "gradient_norm": f["gradient_norm"], "starts": options.get("starts", 1), "best_start": f["best_start"],
            "starts_reached": f["starts_reached"], "next_optimum": f["next_optimum"],
            "start_choice": {"values": f["choice_values"], "points": f["choice_points"]},
            "start_results": f["starts"], "trace": f["trace"]}
        out["standard_errors"] = _by_name(p, "std_error", {one["name"] for one in p if not one["fixed"]})
        out["active_bounds"] = [{"parameter": _label(one), "bound": "lower" if one["active"] < 0 else "upper",
                                 "value": one["value"]} for one in p if one["active"]]
        return Report(out, {**v, **f}, {**_MOVED_VALUE, **_MOVED_FIT})

    def _fit(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """The report, and the warnings as (code, message) for a caller that has names of its own."""
        return self._gp.fit(options, None, 0.0, None), self._context.warnings()

    def predict(self, x: Any, *, observed: bool = False, return_std: bool = False, return_var: bool = False,
                return_cov: bool = False, variance_floor: float = 0.0, mean_values: Any = None) -> Any:
        """Mean at new points and what else is asked for, of the function or, with `observed`, of an observation: noise and white(...) are in.

        Parameters
        ----------
        x : (m, d) or (m,) array
        return_std, return_var, return_cov : bool
            Whether standard deviations (m,), variances (m,) and the covariance (m, m) follow, in this order.
        variance_floor : float
            Variances below become that, with a warning.
        mean_values : (m,) array
            The mean at x, of a process that was given the `mean_values` of its data.

        Returns
        -------
        (m,) mean, (m, q) with q outputs, or a tuple that begins with it
        """
        x = array(x, "x")
        x = x[:, None] if x.ndim == 1 else x
        r, m = self.report, len(x)
        mean = np.empty((m, r["q"])) if r["q"] > 1 else np.empty(m)
        variance: Any = np.empty(m) if return_std or return_var else None
        cov: Any = np.empty((m, m)) if return_cov else None
        self._gp.predict(x, observed, variance_floor, _doubles(mean_values, "mean_values"), mean, variance, cov, None, None)
        warn(self._context)
        extra = [np.sqrt(variance)] if return_std else []
        extra += [variance] if return_var else []
        extra += [cov] if return_cov else []
        return (mean, *extra) if extra else mean

    def predict_gradient(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """(d mean / dx, d variance / dx), both (m, d), at x, (m, d)."""
        x = array(x, "x")
        x = x[:, None] if x.ndim == 1 else x
        a, b = np.empty(x.shape), np.empty(x.shape)
        self._gp.predict(x, False, 0.0, None, None, None, None, a, b)
        warn(self._context)
        return a, b

    def fantasies(self, x: Any, y: Any, at: Any, *, observed: bool = False,
                  noise_variances: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Predictions as they would be after observing candidates; the process stays as it is.

        Parameters
        ----------
        x : (sets, m, d) array
            Alternative sets of m candidates.
        y : (sets, m, s) array; (sets, m, s, q) with q outputs
            s alternative outcomes of each set.
        at : (t, d) array
        noise_variances : (sets, m) array, optional
            Known variances of the candidates, where the process has such.
        observed : bool
            Variances of an observation.

        Returns
        -------
        (mean, variance)
            (sets, t, s), or (sets, t, s, q), and (sets, t): the variance does not depend on y.
        """
        x, y, at = array(x, "x"), array(y, "y"), array(at, "at")
        q = self.report["q"]
        axes = 4 if q > 1 else 3
        if x.ndim != 3 or at.ndim != 2 or y.ndim != axes or y.shape[:2] != x.shape[:2] or y.shape[3:] != (q,) * (axes - 3):
            raise errors.BadArgument(f"expected x (sets, m, d), y (sets, m, s{', q' if q > 1 else ''}) and at (t, d), got shapes "
                                     f"{x.shape}, {y.shape} and {at.shape}")
        v = _doubles(noise_variances, "noise_variances")
        if v is not None and v.shape not in (x.shape[:2], (x.shape[0] * x.shape[1],)):
            raise errors.BadArgument(f"noise_variances has shape {v.shape}, x has {x.shape[0]} sets of {x.shape[1]} candidates")
        v = None if v is None else v.reshape(-1)
        mean, variance = np.empty((len(x), len(at), *y.shape[2:])), np.empty((len(x), len(at)))
        flat = lambda a: a.reshape(*a.shape[:2], int(np.prod(a.shape[2:])))  # the outputs of an outcome lie side by side
        self._gp.fantasies(x, flat(y), at, observed, v, flat(mean), variance)
        warn(self._context)
        return mean, variance

    def sample(self, x: Any, count: int, *, prior: bool = False, observed: bool = False, mean_values: Any = None) -> np.ndarray:
        """(count, m) joint draws at x, (m, d), or (count, m, q) with q outputs; the same for the same seed, whatever the threads.

        Of the posterior, or of the `prior`; of the function, or with `observed` of observations.  A process that was given
        the `mean_values` of its data needs those at x, (m,)."""
        x = array(x, "x")
        x = x[:, None] if x.ndim == 1 else x
        q = self.report["q"]
        if count < 0:
            raise errors.BadArgument(f"count is {count}, it must be >= 0")
        out = np.empty((count, len(x), q) if q > 1 else (count, len(x)))
        given = _doubles(mean_values, "mean_values")
        if (given is None) == self.report["given_mean"]:
            raise errors.BadArgument("mean_values are those of the points x, for a process that was given those of its data, and needed there")
        self._gp.sample(x, prior, observed, out)
        warn(self._context)
        if given is not None:
            out += given[:, None] if q > 1 else given
        return out

    def append(self, x: Any, y: Any, noise_variances: Any = None) -> GP:
        """Adds the points x, (m, d), with observations y, (m,) or (m, q), and where the process has known noise its
        `noise_variances`, (m,); the parameters stay."""
        x, y = _pair(x, y)
        x = x[:, None] if x.ndim == 1 else x
        v = _doubles(noise_variances, "noise_variances")
        self._gp.append(x, y, v)
        warn(self._context)
        return self

    def remove(self, i: int) -> GP:
        """Removes point i."""
        self._gp.remove(i)
        warn(self._context)
        return self

    def update_y(self, y: Any) -> GP:
        """Replaces the observations by y, (n,) or (n, q); the factor stays."""
        self._gp.update_y(array(y, "y"))
        warn(self._context)
        return self

    def update_noise(self, i: int, variance: float) -> GP:
        """The known noise variance of point i becomes another: a rank-one update, O((n - i)^2).

        For processes that were made with ``noise_variances``.
        """
        self._gp.update_noise(i, variance)
        warn(self._context)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Data, expression, parameters and factor in one checked file at `path`."""
        self._gp.save(os.fsdecode(path))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are files of :meth:`save`; a function for progress is not in them."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "process")
            self.save(path)
            with open(path, "rb") as file:
                return _from_bytes, (file.read(), {k: v for k, v in self._settings.items() if k in CONTEXT_OPTIONS})


def _from_bytes(saved: bytes, options: dict[str, Any]) -> GP:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "process")
        with open(path, "wb") as file:
            file.write(saved)
        return load(path, **options)


@_options.takes(_options.Context, "context")
def load(path: str | PathLike[str], **options: Unpack[_options.Context]) -> GP:
    """A process from the file of :meth:`GP.save` at `path`; it predicts to the bit what the saved one did.

    threads, seed, memory_limit, time_limit: of the computations to come.  Raises :class:`fourge.errors.FileError` or :class:`fourge.errors.Error` for a file that is not there or damaged."""
    _options.check(load, options)
    gp = GP.__new__(GP)
    gp._settings = dict(options)
    gp._context = context(options)
    gp._gp = _fourge.Gp.load(gp._context, os.fsdecode(path))
    return gp


def _problems(problems: Any, theta: Any) -> list[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    out = []
    problems = list(problems)
    each = [None] * len(problems) if theta is None else list(theta)
    if len(each) != len(problems):
        raise errors.BadArgument(f"theta: expected {len(problems)}, one a problem, got {len(each)}")
    for i, (problem, start) in enumerate(zip(problems, each)):
        if not isinstance(problem, (tuple, list)) or len(problem) != 2:
            raise TypeError(f"problems[{i}]: expected a pair (x, y), got {type(problem).__name__}")
        x, y = _pair(problem[0], problem[1], f"problems[{i}]: x", f"problems[{i}]: y")
        start = None if start is None else np.ascontiguousarray(array(start, f"theta[{i}]"), np.float64)
        out.append((x[:, None] if x.ndim == 1 else x, y, start))
    return out


def _many(problems, kernel, theta, columns, progress, gradient, fit, options):
    if not isinstance(kernel, str):
        raise TypeError(f"kernel: expected an expression, a str, got {type(kernel).__name__}")
    c = context(options, progress)
    found = _fourge.gp_many(c, _problems(problems, theta), kernel, options, None if columns is None else list(columns),
                            gradient, fit)
    late = sum(one["status"] in ("FRG_INTERRUPTED", "FRG_TIME_LIMIT") for one in found)
    if late:
        warnings.warn(f"the call was stopped: {late} of {len(found)} problems are not done; see their status", errors.NotConverged, stacklevel=outside())
    for one in found:
        for key in ("gradient", "theta"):
            value = one.pop(key)
            if value is not None:
                one[key] = np.frombuffer(value).copy()
    return found


@_options.takes(_options.Process, "context", "gp", without=("seed",))
def evaluate_batch(problems: Any, kernel: str, *, theta: Any = None, gradient: bool = False, columns: Any = None,
                   progress: Callable[..., Any] | bool | None = None,
                   **options: Unpack[_options.Process]) -> list[dict[str, Any]]:
    """Log likelihoods of many independent processes with one expression, in one call.

    Up to about 128 points a lane of a vector register holds a process, above that a core does.

    Parameters
    ----------
    problems : list of (x, y)
        x (n, d) or (n,), y (n,); n and d may differ.
    kernel : str
        As in :class:`GP`; a value left out is set from each problem's data.
    theta : list of arrays or None, optional
        Parameters of each problem, in the order of :attr:`GP.parameters`.
    gradient : bool
        Whether gradients are wanted, per log of a positive parameter.
    columns : list of str, optional
    progress : callable or True, optional
    **options
        Of :class:`GP`, for all, but seed: nothing here is random.

    Returns
    -------
    list of dict
        One a problem: status, message, warnings, log_likelihood, log_prior, jitter, ..., and gradient.  One that failed
        says so in its status and message and disturbs no other; the others' bits do not depend on it.
    """
    _options.check(evaluate_batch, options)
    return _many(problems, kernel, theta, columns, progress, gradient, None, options)


@_options.takes(_options.Process, "context", "gp")
def fit_batch(problems: Any, kernel: str, *, theta: Any = None, columns: Any = None,
              progress: Callable[..., Any] | bool | None = None, fit: dict[str, Any] | None = None,
              **options: Unpack[_options.Process]) -> list[dict[str, Any]]:
    """Fits many independent processes with one expression, in one call.

    Parameters
    ----------
    problems, kernel, columns, progress, **options
        As in :func:`evaluate_batch`.
    theta : list of arrays or None, optional
        Where each begins.
    fit : dict, optional
        Options of :meth:`GP.fit`.

    Returns
    -------
    list of dict
        As :func:`evaluate_batch`, at the optimum, with theta: the fitted parameters.
    """
    _options.check(fit_batch, options)
    _options.check(GP.fit, fit or {})
    return _many(problems, kernel, theta, columns, progress, False, dict(fit or {}), options)


@_options.takes(_options.Unseeded, "context")
def invquad_logdet(k: Any, r: Any, *, inverse: bool = False, **options: Unpack[_options.Unseeded]) -> tuple[np.ndarray, ...]:
    """r' K^-1 r and log det K for each matrix of a batch.

    Parameters
    ----------
    k : (..., n, n) array, float64 or float32; only the lower triangle is read
    r : (..., n) array of the same type
    inverse : bool
        Whether K^-1 is wanted as well.

    Returns
    -------
    (inv_quad, logdet, a) or (inv_quad, logdet, a, inverse), a = K^-1 r.

    Raises :class:`fourge.errors.BrokeDown` where float32 may be wrong by more than a thousandth of abs(ell) + 1 in
    ``ell = -1/2 (inv_quad + logdet + n log 2 pi)``: convert both arrays to float64.  In float64 a bound on that error above
    abs(ell) is a warning.  threads, memory_limit, time_limit: of the computation.  :class:`fourge.errors.NotPositiveDefinite` names the member and the row, both from 0.
    """
    _options.check(invquad_logdet, options)
    k, r = array(k, "k"), array(r, "r")
    if k.ndim < 2 or k.shape[-1] != k.shape[-2] or r.shape != k.shape[:-1] or r.dtype != k.dtype:
        raise errors.BadArgument(f"expected k (..., n, n) and r (..., n) of one type, got {k.dtype}{k.shape} and {r.dtype}{r.shape}")
    inv_quad, logdet = np.empty(k.shape[:-2]), np.empty(k.shape[:-2])
    a = np.empty(r.shape, r.dtype)
    inv: Any = np.empty(k.shape, k.dtype) if inverse else None
    outputs: Any = inv_quad, logdet, a, inv
    if k.ndim > 4:  # the library takes two axes of a batch
        n = k.shape[-1]
        k, r, *outputs = (None if v is None else v.reshape(-1, *((n,) * inner)) for v, inner in
                          ((k, 2), (r, 1), (inv_quad, 0), (logdet, 0), (a, 1), (inv, 2)))
    c = context(options)
    _fourge.invquad_logdet(c, k, r, *outputs)
    warn(c)
    return (inv_quad, logdet, a, inv) if inverse else (inv_quad, logdet, a)


hint(globals())
