"""Fixed effects: regressions, demeaning, LSMR.

The formulas, the tests of convergence and the options are those of ``fourge/fe.h``; formulas follow R's fixest.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Unpack

import numpy as np

from . import _did, _fourge, _frame, _options, _there, errors
from ._arrays import CONTEXT_OPTIONS as _CONTEXT_OPTIONS
from ._arrays import Report as _Report
from ._arrays import array as _array
from ._arrays import context as _context
from ._arrays import moved_seconds as _moved_seconds
from ._arrays import on_cpu as _on_cpu
from ._arrays import outside as _outside
from ._arrays import seconds as _seconds
from ._arrays import warn_once as _warn_once
from ._arrays import warn as _warn
from ._hints import hint as _hint
from ._tables import chosen, coefplot, etable, iplot, remarks

__all__ = ["feols", "feiv", "fepois", "fenegbin", "feglm", "did2s", "event_study", "lpdid", "demean", "lsmr", "etable", "coefplot", "iplot", "Fit", "Fits"]

_fit_options = ("ssc", "weights", "weights_kind", "subset", "keep_singletons", "collin_tol", "collin", "connected", "level",
                "keep_effects", "split", "fsplit", "split_value", "panel", "first_stage", "family", "link", "offset", "glm_tol", "glm_iter",
                "separation", "theta")


#: A name in backticks, what joins names, and other names.
_cluster_tokens = re.compile(r"`[^`]*`|[+^]|[^`+^]+")


def _clusters(text):
    """'state name^year + firm' -> '`state name`^year+firm': names that are none of the grammar's go into backticks."""
    if text.count("`") % 2:
        raise ValueError(f"vcov: a backtick is not closed in {text!r}")
    words = [word.strip() for word in _cluster_tokens.findall(text)]
    return "".join(w if w in ("+", "^") or w.startswith("`") else _did.quoted(w) for w in words if w)


#: pyfixest's and clubSandwich's names of what clusters, and ours.
_clustered = {"CRV1": "cluster", "CRV3": "crv3", "CR2": "cr2", "CR3": "cr3", "jackknife": "jackknife", "wild": "wild"}
#: fixest's formulas: NW(2) ~ unit + time, DK ~ time, conley(100) ~ lat + lon, CR2 ~ firm.
_called = re.compile(r"([A-Za-z]\w*)\s*(?:\(([^()]*)\))?\s*~(.*)", re.DOTALL)


def _serial(kind, kwargs):
    """pyfixest's vcov_kwargs: {"lag": 2, "time_id": "year", "panel_id": "unit"} -> ours."""
    known = {"lag", "time_id", "panel_id"}
    if not isinstance(kwargs, Mapping) or set(kwargs) - known:
        raise errors.Unsupported(f"vcov_kwargs={kwargs!r}: {kind} takes {', '.join(sorted(known))}")
    wanted = ("panel_id", "time_id") if kind == "NW" else ("time_id",)
    absent = [key for key in wanted if kwargs.get(key) is None]
    if absent:
        raise errors.BadArgument(f"vcov_kwargs: {kind} needs {' and '.join(absent)}")
    lag = [] if kwargs.get("lag") is None else [f"lag={kwargs['lag']}"]
    return f"{kind.lower()}=" + ",".join([_clusters(str(kwargs[key])) for key in wanted] + lag)


def _of_formula(vcov):
    """NW(2) ~ unit + time -> nw=unit,time,2; None: no such formula."""
    found = _called.fullmatch(vcov.strip())
    if not found:
        return None
    kind, value, names = found.groups()
    kind = {"newey_west": "nw", "crv1": "cluster"}.get(kind.lower(), kind.lower())
    if kind == "cluster":
        return "cluster=" + _clusters(names)
    columns = [_clusters(name) for name in re.split(r"\+(?=(?:[^`]*`[^`]*`)*[^`]*$)", names)]
    return f"{kind}=" + ",".join(columns + ([value.strip()] if value and value.strip() else []))


def _spec(vcov, kwargs=None):
    """fixest's and pyfixest's ways to name a covariance -> ours."""
    if vcov in ("NW", "DK") and kwargs is not None:
        return _serial(vcov, kwargs)
    if kwargs is not None:
        raise errors.Unsupported(f"vcov_kwargs={kwargs!r}: they are for vcov=\"NW\" and \"DK\"")
    if vcov is None:
        return "iid"
    if isinstance(vcov, dict):
        if len(vcov) != 1:
            raise ValueError(f"vcov: expected one covariance, {{'CRV1': 'a+b'}}, got {vcov!r}; several are a list of them")
        (kind, clusters), = vcov.items()
        clusters = "+".join(map(str, clusters)) if isinstance(clusters, (list, tuple)) else str(clusters)
        if kind not in _clustered:
            raise errors.Unsupported(f"vcov {kind!r} is not known; there are {', '.join(_clustered)}, as in {{'CRV1': 'a+b'}}")
        return f"{_clustered[kind]}=" + _clusters(clusters)
    if not isinstance(vcov, str):
        raise TypeError(f"vcov: expected a name, {{'CRV1': 'a+b'}} or a list of these, got {vcov!r}")
    if vcov.startswith("~"):  # fixest's formula
        return "cluster=" + _clusters(vcov[1:])
    return _of_formula(vcov) or ("hc1" if vcov == "hetero" else vcov.lower() if vcov.isalnum() else vcov)  # IID, HC1


#: pyfixest's names of options -> ours, with a table of values where these differ.
_aliases = {
    "fixef_tol": ("tol", None),
    "fixef_maxiter": ("max_iter", None),
    "fixef_rm": ("keep_singletons", {"singleton": False, "singletons": False, "none": True}),
    "weights_type": ("weights_kind", {"aweights": "analytic", "fweights": "frequency"}),
}
#: pyfixest's options that cannot act here: the values that ask for what is done anyway, and what is done.
_settled = {
    "copy_data": ((False,), "the data are read where they are and not changed"),
    "store_data": ((True,), "a fit holds the data that it was given"),
    "lean": ((False,), "a fit keeps what its methods need"),
    "use_compression": ((False,), "every row is used, with the same estimates"),
    "solver": ((), "the normal equations are solved by a Cholesky factor"),
}
_absent = {
    "reps": "a wild bootstrap is vcov='wild=firm,9999'", "drop_intercept": "write '- 1' or '0 +' into the formula",
    "i_ref1": "write i(var, ref=level) into the formula", "context": "formulas see the columns of the data alone",
}
_demeaners_on_cpu = ("rust", "numba", "jax", "within", "rust-cg", "scipy", "torch", "torch_cpu")
#: pyfixest's names of LSMR on a device -> where it runs here, and its arithmetic.
_demeaners_elsewhere = {"torch_cuda": ("cuda", "f64"), "torch_cuda32": ("cuda", "mixed"), "torch_mps": ("opencl", "mixed"),
                        "cupy": ("cuda", "f64"), "cupy32": ("cuda", "mixed"), "cupy64": ("cuda", "f64")}


def _elsewhere(asked, place, dtype, given):
    """Our options for LSMR on that device.  By the name of what was asked for: ValueError where a given option asks for something
    else, NoDevice where there is no such device."""
    ours = {"device": place, "method": "lsmr", "dtype": dtype}
    for key, value in ours.items():
        other = given.get(key)
        if other not in (None, value) and not (key == "device" and str(other).startswith(f"{value}:")):
            raise ValueError(f"{asked} means {key}={value!r}, but {key}={other!r} is given, too: leave one of the two out")
    place = given.get("device") or place
    try:
        _fourge.Context({"device": place})
    except errors.NoDevice as e:
        raise errors.NoDevice(f"{asked} needs the device {place!r}: {e}; leave it out for the CPU") from None
    return {**ours, "device": place}


def _asked(demeaner, given):
    """Our options for what one of pyfixest's typed demeaners asks for, beside the given ones."""
    lsmr = getattr(demeaner, "kind", None) == "lsmr"
    if not lsmr and getattr(demeaner, "kind", None) != "map":
        raise TypeError(f"demeaner: expected pyfixest's MapDemeaner or LsmrDemeaner, got {type(demeaner).__name__}")
    asked = {"tol": max(demeaner.fixef_atol, demeaner.fixef_btol) if lsmr else demeaner.fixef_tol,
             "max_sweeps" if given.get("method") == "map" else "max_iter": demeaner.fixef_maxiter}
    if lsmr and demeaner.backend != "within":
        if demeaner.precision == "float32":
            asked["dtype"] = "mixed"
        if demeaner.device not in ("auto", "cpu"):
            name = "torch_mps" if demeaner.device == "mps" else "torch_cuda32" if "dtype" in asked else "torch_cuda"
            asked |= _elsewhere(f"demeaner: device={demeaner.device!r}", *_demeaners_elsewhere[name], given)
    if lsmr and demeaner.local_size is not None:
        _warn_once("local_size", "local_size is of pyfixest's own LSMR: fourge's solvers have no such window")
    return asked


def _demeaner_backend(name, given):
    """Our options for pyfixest's name of a device, beside the given ones; for the others it says once whose demeaner it is."""
    if name in _demeaners_elsewhere:
        return _elsewhere(f"demeaner_backend={name!r}", *_demeaners_elsewhere[name], given)
    if name not in _demeaners_on_cpu:
        raise ValueError(f"demeaner_backend={name!r}: expected one of {[*_demeaners_on_cpu, *_demeaners_elsewhere]}")
    _warn_once("demeaner_backend", f"demeaner_backend={name!r}: fourge's own solvers demean, on the CPU; `method` chooses among them")
    return {}


def _translated(options):
    """pyfixest's options under our names."""
    out = {}
    for key, value in options.items():
        if value is None:
            continue
        if key in _aliases:
            name, values = _aliases[key]
            if values is not None and value not in values:
                raise ValueError(f"{key}={value!r}: expected one of {list(values)}")
            out[name] = value if values is None else values[value]
        elif key == "demeaner":
            if "fixef_tol" in options or "fixef_maxiter" in options:
                raise ValueError("demeaner has a tolerance and a number of steps: give it, or fixef_tol and fixef_maxiter")
            _warn_once(key, "demeaner: its tolerance, steps, precision and device are taken; the solvers are fourge's own")
            out = {**_asked(value, options), **out}
        elif key == "demeaner_backend":
            out = {**_demeaner_backend(value, options), **out}
        elif key in _absent:
            if value is not False and value != {}:
                raise errors.Unsupported(f"{key}={value!r}: {_absent[key]}")
        elif key in _settled:
            same, what = _settled[key]
            if value not in same:
                _warn_once(key, f"{key}={value!r} changes nothing: {what}")
        else:
            out[key] = _ssc(value) if key == "ssc" and isinstance(value, Mapping) else value
    return out


def _ssc(given):
    """What pyfixest's ``ssc()`` returns, under its present and former names, as a rule of ours."""
    names = {"k_adj": "adj", "adj": "adj", "k_fixef": "fixef", "fixef_k": "fixef", "G_adj": "cluster.adj", "cluster_adj": "cluster.adj",
             "G_df": "cluster.df", "cluster_df": "cluster.df"}
    unknown = [key for key in given if key not in names]
    if unknown:
        raise ValueError(f"ssc: {unknown[0]!r} is none of {list(names)}")
    return ",".join(f"{names[key]}={str(value).lower()}" for key, value in given.items())


def _outer_text(text):
    """What stands in no parentheses."""
    before = None
    while text != before:
        before, text = text, re.sub(r"\([^()]*\)", "", text)
    return text


def _tell_power(fml):
    """A warning of x**2 in no call, which the grammars read differently: fixest as I(x^2), formulaic as the term x by itself."""
    for name, power in re.findall(r"([^\W\d][\w.]*)\s*\*\*\s*(\d+)", _outer_text(fml.split("|", 1)[0])):
        warnings.warn(f"{name}**{power} is the power, I({name}^{power}), as in fixest; pyfixest's formulas read it as {name}: write "
                      f"I({name}**{power}), which is the power in both", UserWarning, stacklevel=_outside())


def _outcomes(fml):
    """The names with plus signs between them on the left, which pyfixest fits one by one; none
    where there is one outcome."""
    left = _outer_text(fml.split("~", 1)[0]) if "~" in fml else ""
    names = [word.strip() for word in left.split("+")]
    return names if len(names) > 1 and all(_did.PLAIN_NAME.fullmatch(word) for word in names) else []


def _tell_sum(fml):
    """A warning of several outcomes, which are their sum here."""
    names = _outcomes(fml)
    if names:
        left = fml.split("~", 1)[0]
        warnings.warn(f"{left.strip()} on the left is one outcome, the sum, as in fixest; pyfixest fits {len(names)} regressions: call "
                      f"feols for each outcome, or write I({left.strip()})", UserWarning, stacklevel=_outside())


def __getattr__(name):
    if name == "quantreg":
        raise AttributeError(f"fourge.fe has no {name} yet: pyfixest's {name} inside fourge.pyfixest.demeaning() demeans with fourge")
    raise AttributeError(f"module 'fourge.fe' has no attribute {name!r}")


@_options.takes(_options.Feols, "context", "demean", "fe")
def feols(fml: str, data: Any, vcov: str | Mapping[str, str] | Sequence[Any] = "iid", *,
          progress: Callable[..., Any] | bool | None = None, **options: Unpack[_options.Feols]) -> Fit:
    """Linear regression with fixed effects, ordinary or weighted least squares.

    ``feols("y ~ x1 + i(year, ref=2000) | firm^industry + worker", data, vcov={"CRV1": "firm"})``

    Parameters
    ----------
    fml : str
        fixest's grammar: ``y ~ x | f1 + f2``, ``i()``, ``^``, ``f[x]``, ``:``, ``*``, ``I()``, ``log exp sqrt abs``; a last part
        ``endogenous ~ instruments`` makes it two-stage least squares (:func:`feiv`).  Several models:
        ``c(y1, y2)``, and among regressors and effects ``sw() sw0() csw() csw0() mvsw()``.  ``x^2`` and
        ``x**2`` are ``I(x^2)``, as in fixest; in pyfixest both are the term ``x``, so that the second is warned of.
    data : frame, path or mapping
        Anything that exports an Arrow stream (polars, pyarrow, DuckDB, pandas with pyarrow); the path of a file that the program
        reads (csv, tsv, txt, npy and Stata's dta, plain, .gz or .zst, and npz); or names -> 1-D arrays.  Lazy frames of polars, data sets of pyarrow and
        relations of DuckDB are computed in batches; what gives its batches once (a RecordBatchReader) serves one fit.
        Only the columns that the formula names are read. Categories keep their order (pandas' categoricals, polars' Enum);
        words are sorted. Dates and times are whole numbers, counts of their unit since 1970; as words they are categories.
    vcov : str, dict or list of them
        ``"iid"``, ``"hetero"``/``"HC1"``, ``"HC2"``, ``"HC3"`` (``"hc3,leverage=approx"`` where the exact ones take too long),
        ``"cluster=a+b"``, ``"~a+b"`` or ``{"CRV1": "a+b"}``; ``{"CR2": "a"}``, ``{"CR3": "a"}``, ``{"CRV3": "a"}`` (pyfixest's),
        ``{"jackknife": "a"}``; ``{"wild": "a"}`` or ``"wild=a,9999,weights=webb"``, whose p values and intervals are a bootstrap's;
        ``"nw=unit,time,2"``/``"NW(2) ~ unit + time"``, ``"dk=time,2"``/``"DK(2) ~ time"``, ``"hac=unit,time"``;
        ``"conley=lat,lon,100"``/``"conley(100) ~ lat + lon"``, ``kernel=bartlett`` behind a comma.  Several come from one fit.
        A name with spaces stands in backticks; in the dict and after the tilde it may stand without, too.
    ssc, weights, weights_kind, subset, keep_singletons, collin_tol, collin, connected, level, keep_effects
        As in ``frg_fe_opts``.
    split, fsplit, split_value : str, optional
        A column: a model for the rows of each of its levels; `fsplit` has one of all rows before them.  `split_value` is the one
        level of `split` that is meant.
    panel : str, optional
        "unit,time": what lags ``l(x, k)``, leads ``f(x, k)`` and differences ``d(x, k)`` in the formula go by; ``l(x, 1:3)`` is three
        terms.  Times are whole numbers, and a lag is missing where the unit has no row at that time.
    first_stage : str, optional
        "treat ~ x | unit + time": two-stage difference in differences, as of :func:`did2s`.
    method, precond, dtype, tol, max_iter, max_sweeps, cond_limit, block, fill_cap, fused, dof
        As in ``frg_demean_opts``; cond_limit goes with method="lsmr", fused with that on a device, max_sweeps
        in max_iter's place with method="map".  dof: how the rank of the effects, a part of K, is counted: "auto" counts it exactly where
        that is cheap, also for nested effects; fixest and pyfixest count the levels, which is "naive".  Where that makes
        another K, tables have a note.
    fixef_tol, fixef_maxiter, fixef_rm, weights_type, ssc (a dict of ``pyfixest.ssc()``)
        pyfixest's names for tol, max_iter, keep_singletons and weights_kind.
    demeaner, demeaner_backend, solver, lean, copy_data, store_data, use_compression
        pyfixest's, too.  Of a demeaner the tolerance, the steps, the precision and the device are taken.  ``"torch_cuda"``,
        ``"torch_cuda32"`` and ``"torch_mps"``, or a demeaner's device, are LSMR in double on CUDA, in float there, and in float on
        OpenCL, to the same tolerance: ValueError beside another device, method or dtype,
        :class:`fourge.errors.NoDevice` where there is no such device.  A value that would have pyfixest do something else than what
        is done here warns, once a process, of what is done.
    vcov_kwargs : dict
        pyfixest's, for ``"NW"`` and ``"DK"``: lag, time_id, panel_id.
    plan : path, optional
        A file with the solver of an earlier fit of the same rows, effects, weights, options and seed: the same bits without ordering
        and factor, whatever the regressors.  Where there is none it is written; ``result["plan"]`` says which.  Of another fit's:
        :class:`fourge.errors.Mismatch`.  Of one model by least squares with effects; method "lsmr", "mlsmr" or "map", varying slopes, a
        family and first_stage have none (:class:`fourge.errors.Unsupported`).
    reps, drop_intercept, i_ref1, context
        pyfixest's, which are refused with what to write instead.
    device
        "cpu", "cuda:i" or "opencl:i"; None is that of the environment's FOURGE_DEVICE.  There the effects are taken out, with
        method="cg" or "lsmr"; all else is computed here.  What does not run there is refused by name.
    threads, seed, memory_limit, time_limit
        Of the computation; threads 0 takes the cores this process may use; memory_limit is a number of bytes, or "200M", "2G".
    spool : str or path, optional
        A folder on a disk, which has to be there, for arrays beyond memory_limit (by itself half of the machine's memory), as
        ``frg_context_opts.spool``: the process is kept within the limit, and the numbers are those of a fit in memory, to
        the bit.  A stream is read batch by batch then, none held while the next one is made; what `data` itself holds is not
        moved, and an .npy file is copied there before it is used.  By itself $TMPDIR or /var/tmp where memory_limit is given and `data` is the path of a file; else without it what
        is beyond memory_limit is an error.
    untrusted : bool, default=False
        Who made the file that `data` names may mean harm: what is dta, npz or compressed is decoded by a process with limits, now and
        whenever the fit reads it again, and its crash is :class:`fourge.errors.BadData`.
    progress : callable or True, optional
        ``progress(solver, phase, done, total, residual, target, seconds)``; a true answer stops the fit.  done and total are
        steps of the phase, or bytes of a file or of what a pass along the rows goes along, reported each tenth of a second.  True
        shows a bar, by tqdm where it is installed.

    Returns
    -------
    Fit, or Fits where the formula or `split` makes several models
        A fit that did not converge is returned and warned of (:class:`fourge.errors.NotConverged`).
    """
    if not isinstance(fml, str):
        raise TypeError(f"fml: expected a formula, a str, got {type(fml).__name__}")
    _options.check(feols, options)
    _tell_sum(fml)
    _tell_power(fml)
    return _feols(fml, data, vcov, progress, options)


def _many(call, data, names):
    """The models that a call stands for, each with the call of its own."""
    context, fml, table, vcovs, outer, asked = call
    found = Fits()
    for one in _fourge.fe_many(*call):
        result = one.result()
        mine = {k: v for k, v in outer.items() if k not in ("split", "fsplit", "split_value")}
        if result["split_name"] is not None:
            mine |= {"split": result["split_name"], "split_value": result["split_value"]}
        found.append(Fit((context, result["formula"], table, vcovs, mine, asked), one, data, names))
    return found
@_options.takes(_options.Feols, "context", "demean", "fe")
def feiv(fml: str, data: Any, vcov: str | Mapping[str, str] | Sequence[Any] = "iid", *,
         progress: Callable[..., Any] | bool | None = None, **options: Unpack[_options.Feols]) -> Fit:
    """:func:`feols` of a formula that has instruments, ``y ~ x | f1 + f2 | endogenous ~ instruments``; one that has none is refused.

    Two-stage least squares.  ``result["first_stage"]`` has the first stages (coefficients, partial R2), and under ``tests``, for
    each covariance of the fit, their F, Kleibergen and Paap's rk F and LM, the effective F of Montiel Olea and Pflueger, Sargan's
    or Hansen's test, and Anderson and Rubin's with the set of values that it does not reject; ``cragg_donald_f`` and
    ``wu_hausman_f`` are those of iid errors.  fml, data, vcov, progress and the options are those of :func:`feols`.  Raises :class:`fourge.errors.BadData` where nothing is identified.
    """
    if not isinstance(fml, str):
        raise TypeError(f"fml: expected a formula, a str, got {type(fml).__name__}")
    if "~" not in fml.split("|")[-1] or "|" not in fml:
        raise ValueError(f"fml: {fml!r} has no instruments; write y ~ x | f | endogenous ~ instruments")
    return feols(fml, data, vcov, progress=progress, **options)


@_options.takes(_options.Study, "context", "fe")
def did2s(data: Any, yname: str, first_stage: str, second_stage: str, treatment: str, cluster: str, *,
          progress: Callable[..., Any] | bool | None = None, **options: Unpack[_options.Study]) -> Fit:
    """Two-stage difference in differences (Gardner 2022).

    ``did2s(data, "y", "~ x | unit + year", "~ i(rel_year, ref=-1)", "treat", "state")``

    The first stage ``y = x b + D alpha`` is fitted where `treatment` is 0, and the second regresses ``y - x b - D alpha`` of all rows
    on what `second_stage` says, without an intercept.  The covariance is that of both stages together, clustered, without a
    small-sample factor: ``sum_g s_g s_g'`` of the scores ``w (e x - u z)``, u the first stage's residuals (``frg_fe_opts.first_stage``).

    Parameters
    ----------
    data, progress, threads, memory_limit, time_limit, ssc, weights, subset, level
        As in :func:`feols`; what it has beside goes by its option `first_stage`.
    yname, treatment, cluster : str
        Columns; `treatment` is 0 or 1.
    first_stage, second_stage : str
        Formulas of fixest's that begin with a tilde; effects stand in the first.  A constant is left out of the second, and ``i()``
        without ``ref=`` loses its first level, as in pyfixest.

    Returns
    -------
    Fit
        Its ``result["two_stage"]`` says what the first stage was, and how many rows it had.
    """
    _options.check(did2s, options)
    for name, formula in (("first_stage", first_stage), ("second_stage", second_stage)):
        if not isinstance(formula, str) or not formula.strip().startswith("~"):
            raise ValueError(f"{name}={formula!r}: expected a formula that begins with ~")
    return feols(f"{_did.quoted(yname)} {second_stage}", data, {"CRV1": cluster},
                 first_stage=f"{_did.quoted(treatment)} {first_stage}", progress=progress, **options)


@_options.takes(_options.Study, "context", "fe")
def event_study(data: Any, yname: str, idname: str, tname: str, gname: str, xfml: str | None = None, cluster: str | None = None,
                estimator: str = "twfe", att: bool = True, *, progress: Callable[..., Any] | bool | None = None,
                **options: Unpack[_options.Study]) -> Fit:
    """The effect of a treatment that begins at different times, by one of three estimators.

    Parameters
    ----------
    data, progress, threads, memory_limit, time_limit, ssc, weights, subset, level
        As in :func:`feols`.
    yname, idname, tname, gname : str
        Columns: the outcome, the unit, the period and the period of the first treatment, numbers.  Never treated are units whose
        `gname` is missing (None, NaN) or 0 and less, and, within the data, those whose `gname` is later than the last period.
        Cohorts without a period before their treatment are left out, with a warning that counts them: nothing tells what they
        were before.  Rows outside `subset` decide nothing.
    xfml : str, optional
        Further regressors, "x1 + x2".
    cluster : str, optional
        What the errors are clustered by; the unit without.
    estimator : "twfe", "did2s" or "saturated"
        Two-way effects of unit and period; :func:`did2s`; ``sunab()``, a coefficient for each cohort and period, averaged.
    att : bool, default=True
        One effect, of all treated rows (``is_treated``, ``ATT``); False: one for each period relative to the treatment (``rel_time::1``,
        of ``sunab()`` under the name of the period), the last before it being the reference: -1, or, with a warning, the last
        relative period that the data have, -2 of a panel of every other year.  (pyfixest's "twfe" and
        "did2s" have no other than the first, and its "saturated" the cohorts' own.)

    Returns
    -------
    Fit

    Of a path, a lazy frame and a stream the columns that are named are read into memory.  Columns of `data` may have the names of the
    terms, but not stand in `xfml` then.  "saturated" refuses a cohort whose treatment begins in a period that no row has, or that has no row at the reference; "did2s" leaves out,
    and warns of, single units without an untreated row, too.
    """
    _options.check(event_study, options)
    if estimator not in ("twfe", "did2s", "saturated"):
        raise ValueError(f"estimator={estimator!r}: expected 'twfe', 'did2s' or 'saturated'")
    data = _of_study(data, (yname, idname, tname, gname), xfml, {"CRV1": cluster or idname}, options)
    saturated = estimator == "saturated"
    context = _context(dict(options))
    more, last = _did.study(context, data, (idname, tname, gname), options.get("subset"), saturated)
    _warn(context)
    last = -1.0 if att and not saturated else _did.reference(last, "event_study")
    more = {name: more[name] for name in (("first_treated",) if saturated else ("is_treated", "rel_time"))}
    if not saturated and _did.words(xfml) & set(more):
        raise errors.BadArgument(f"xfml={xfml!r}: is_treated and rel_time are what the result calls the effects; give that column another name")
    taken = {*_did.names(data), *_did.words(yname, idname, tname, gname, xfml, cluster, options.get("weights"), options.get("subset"))}
    columns = {name: _did.unused(name, taken) for name in more}
    y, unit, period = (_did.quoted(name) for name in (yname, idname, tname))
    beside = f" + {xfml}" if xfml else ""
    table = _did.Beside(data, {columns[name]: values for name, values in more.items()})
    if saturated:
        effect = f"sunab({columns['first_treated']}, {period}, ref.p={last:.17g}, att={str(att).upper()})"
    else:
        effect = columns["is_treated"] if att else f"i({columns['rel_time']}, ref={last:.17g})"
    if estimator == "did2s":
        right = f"~ 0 + {effect}" if att else f"~ {effect}"
        fit = did2s(table, yname, f"~ {xfml or 0} | {unit} + {period}", right + beside, columns["is_treated"], cluster or idname,
                    progress=progress, **options)
    else:
        fit = feols(f"{y} ~ {effect}{beside} | {unit} + {period}", table, {"CRV1": cluster or idname}, progress=progress, **options)
    return fit._shows({column: name for name, column in columns.items()})


def _of_study(data, names, xfml, vcov, options):
    """The data of a study; of a path, a lazy frame or a stream the columns that it reads."""
    if _frame.at_hand(data):
        return data
    context = _context(dict(options))
    y, *others = (_did.quoted(name) for name in names)
    outer = {k: options[k] for k in ("weights", "subset") if options.get(k) is not None}
    read = _fourge.fe_columns(context, f"{y} ~ {xfml or 1} | {' + '.join(others)}", [_spec(vcov)], outer)
    return _frame.loaded(context, data, list(dict.fromkeys(read)))


@_options.takes(_options.Study, "context", "fe")
def lpdid(data: Any, yname: str, idname: str, tname: str, gname: str, vcov: str | Mapping[str, str] | None = None,
          pre_window: int | None = None, post_window: int | None = None, never_treated: float = 0, att: bool = True,
          xfml: str | None = None, reweight: bool = False, pmd: int | str = 1, *, progress: Callable[..., Any] | bool | None = None,
          **options: Unpack[_options.Study]) -> _did.LocalProjections:
    """Local projections (Dube, Girardi, Jorda and Taylor 2023): for each horizon h a regression

    ``y_{t+h} - y_{t-1} = b_h (D_t - D_{t-1}) + x c + period effects``

    of the rows that begin their treatment and of those that are untreated at t + h (of h < 0: at t).

    Parameters
    ----------
    data, progress, threads, memory_limit, time_limit, ssc, weights, subset, level
        As in :func:`feols`.
    yname, idname, tname, gname, xfml
        As in :func:`event_study`.
    vcov : str or dict, optional
        As in :func:`feols`; clustered by the unit without.
    pre_window, post_window : int, optional
        The first and the last horizon; without, those of the data.  -1 is the reference.
    never_treated : number, default=0
        The value of `gname` of units that are never treated; those whose `gname` is missing are so in any case.
    att : bool, default=True
        One regression, of the mean of the outcomes from t to t + `post_window`; False: one for each horizon.
    reweight : bool, default=False
        Every treated row counts alike, where least squares weights the differences of the periods by ``n1 n0 / (n1 + n0)`` of their
        treated and untreated rows.  ``c`` and the effects of the periods are those of the untreated rows, ``b_h`` is the mean of what
        is left of the treated (the authors' regression adjustment; Stata's ``rw``); errors are of both steps, as of :func:`did2s`.
    pmd : int or "max", default=1
        Changes are from the mean of so many periods before t, of all that there are ("max"), in place of ``y_{t-1}``; horizon -1 is
        estimated then, too.

    Returns
    -------
    LocalProjections
        ``fits``, {horizon: Fit}, ``tidy()``, ``coef()`` and ``se()``; the term of each is ``treat_diff``.  Outcomes at other times are
        looked up in all rows, those outside `subset` among them.  An outcome that the unit has not at
        that time is missing; where periods are missing pyfixest takes the next row instead.  Raises :class:`fourge.errors.BadData` where no unit
        has rows in two successive periods.
    """
    _options.check(lpdid, options)
    data = _of_study(data, (yname, idname, tname, gname), xfml, vcov, options)
    if "treat_diff" in _did.words(xfml):
        raise errors.BadArgument(f"xfml={xfml!r}: treat_diff is what the result calls the effect; give that column another name")
    windows = {"pre_window": pre_window, "post_window": post_window}
    if pmd != "max" and (isinstance(pmd, (bool, str)) or pmd < 1):
        raise ValueError(f"pmd={pmd!r}: expected a number of periods, 1 or more, or 'max'")
    asked = {"never_treated": never_treated, "pooled": att, "pmd": 0 if pmd == "max" else pmd,
             **{name: h for name, h in {**windows, "subset": options.get("subset")}.items() if h is not None}}
    context = _context(dict(options))
    begins, changes = _did.projections(context, data, (yname, idname, tname, gname), xfml, asked)
    _warn(context)
    taken = {*_did.names(data), *_did.words(tname, xfml, vcov, options.get("weights"), options.get("subset"))}
    effect, outcome = (_did.unused(name, taken) for name in ("treat_diff", "change"))
    right = f"{xfml or 1} | {_did.quoted(tname)}"
    formula = f"{outcome} ~ 0 + {effect}" if reweight else f"{outcome} ~ {effect} + {right}"
    stages = {"first_stage": f"{effect} ~ {right}"} if reweight else {}

    def project(change):
        table = _did.Beside(data, {effect: begins, outcome: change})
        return feols(formula, table, vcov or {"CRV1": idname}, progress=progress, **stages, **options)._shows({effect: "treat_diff"})

    return _did.LocalProjections({h: project(change) for h, change in changes.items()})


@_options.takes(_options.Feglm, "context", "demean", "fe")
def feglm(fml: str, data: Any, family: str = "poisson", vcov: str | Mapping[str, str] | Sequence[Any] = "iid", *,
          progress: Callable[..., Any] | bool | None = None, **options: Unpack[_options.Feglm]) -> Fit:
    """Generalised linear model with fixed effects, by iteratively reweighted least squares.

    ``feglm("y ~ x | f1 + f2", data, family="logit", vcov={"CRV1": "f1"})``

    Parameters
    ----------
    fml, data, vcov, progress
        As in :func:`feols`; without instruments.
    family : "poisson", "logit", "probit", "gaussian", "gamma" or "negbin"
        Of the outcome: y >= 0; 0 or 1; any; y > 0; y >= 0 with the variance mu + mu**2 / theta.
    link : str
        Of the mean: "auto" is log, logit, probit, identity, inverse and log; gamma has "log", too.
    theta : float
        Of family "negbin"; 0, the default: by maximum likelihood (``result["theta"]``, ``result["theta_std_error"]``).
    offset : str
        An expression of the data's columns that is added to the linear predictor, as in ``"log(population)"``.
    glm_tol, glm_iter
        The relative change of the deviance that ends the iteration, and how many there are at most.
    separation : "auto", "levels" or "none"
        Which rows that are predicted perfectly are left out (``result["separated_rows"]``): those of levels of effects whose outcomes
        are all 0 (or, binary, all 1), and those that a combination of regressors and effects finds (the iterated rectifier of
        Correia, Guimaraes and Zylkin 2019), or the first alone, or none.
    **options
        As in :func:`feols`.

    Returns
    -------
    Fit
        ``result`` has family, link, deviance, log_likelihood, pseudo_r2, aic, bic and more; residuals are y - mu and fitted values mu
        (:meth:`Fit.glm_values` has others).  Errors of poisson, negbin, logit and probit are compared with the normal distribution.
    """
    if not isinstance(fml, str):
        raise TypeError(f"fml: expected a formula, a str, got {type(fml).__name__}")
    families = ["poisson", "logit", "probit", "gaussian", "gamma", "negbin"]
    if family not in families:
        raise ValueError(f"family={family!r}: expected one of {families}; ols is feols")
    _options.check(feglm, options)
    _tell_sum(fml)
    _tell_power(fml)
    return _feols(fml, data, vcov, progress, {**options, "family": family})


@_options.takes(_options.Feglm, "context", "demean", "fe")
def fepois(fml: str, data: Any, vcov: str | Mapping[str, str] | Sequence[Any] = "iid", *,
           progress: Callable[..., Any] | bool | None = None, **options: Unpack[_options.Feglm]) -> Fit:
    """Poisson regression with fixed effects: :func:`feglm` of family "poisson"; fml, data, vcov, progress and options as there."""
    _options.check(fepois, options)
    return feglm(fml, data, "poisson", vcov, progress=progress, **options)


@_options.takes(_options.Feglm, "context", "demean", "fe")
def fenegbin(fml: str, data: Any, vcov: str | Mapping[str, str] | Sequence[Any] = "iid", *,
             progress: Callable[..., Any] | bool | None = None, **options: Unpack[_options.Feglm]) -> Fit:
    """Negative binomial regression with fixed effects, Var y = mu + mu**2 / theta: :func:`feglm` of family "negbin"; fml, data, vcov,
    progress and options as there.

    ``result["theta"]`` is estimated together with the coefficients, unless ``theta=`` gives it.  Standard errors are of the expected
    information, in which theta and coefficients do not meet, as MASS's ``glm.nb`` has them; fixest's ``fenegbin`` and statsmodels
    take the observed one of both together.  Of outcomes no more dispersed than Poisson's theta is infinite, with the warning
    FRG-FE-166, and the answer is that of :func:`fepois`.
    """
    _options.check(fenegbin, options)
    return feglm(fml, data, "negbin", vcov, progress=progress, **options)


def _feols(fml, data, vcov, progress, options, expected=()):
    """feols of a formula in fixest's grammar and options that are its own; no warning of the codes
    `expected`."""
    asked: dict[str, Any] = _frame.with_spool(data, _translated(options))
    if asked.pop("untrusted", False):
        data = _frame.Untrusted(data)
    of_context = {k: asked[k] for k in _CONTEXT_OPTIONS if k in asked}
    context = _context(asked, progress)
    if options.get("spool") is not None:
        context.check_spool()
    plan, _ = _plan_file(asked.pop("plan", None))
    outer = {k: asked.pop(k) for k in _fit_options if k in asked}
    kwargs = asked.pop("vcov_kwargs", None)
    vcovs = [_spec(v, kwargs) for v in (vcov if isinstance(vcov, (list, tuple)) else [vcov])]
    names = list(dict.fromkeys(_fourge.fe_columns(context, fml, vcovs, outer)))
    call = (context, fml, _frame.table(context, data, names), vcovs, outer, asked)
    splits = (outer.get("split") and not outer.get("split_value")) or outer.get("fsplit")
    if splits or len(_fourge.fe_expand(context, fml)) > 1:
        if plan is not None:
            raise errors.BadArgument("plan: a file holds the solver of one model; give each its own")
        found: Any = _many(call, data, names)
    else:
        found = Fit(call, _fourge.Fe(*call), data, names) if plan is None else _planned(call, plan, data, names)
    _warn(context, expected=expected)
    for one in found if isinstance(found, Fits) else [found]:
        one._context_options = of_context
    return found


def _planned(call, plan, data, names):
    """The fit by the solver in the file `plan`, which is written where it was not there; what the fit does later leaves it alone."""
    context, fml, table, vcovs, outer, asked = call
    one = _fourge.Fe(context, fml, table, vcovs, {**outer, "plan": plan}, asked)
    fit = Fit(call, one, data, names)
    read = one.result()["plan_read"]
    written = not read and fit.result["status"] not in ("FRG_INTERRUPTED", "FRG_TIME_LIMIT")
    if written:
        try:
            one.save_plan(plan)
        except errors.Error as e:
            warnings.warn(f"plan: {e}", RuntimeWarning, stacklevel=_outside())
            written = False
    fit.result["plan"] = {"file": plan, "read": read, "written": written}
    return fit


#: What the report says of the plan.
_plan_facts = ("levels", "plan_bytes", "factor_bytes", "passes_on", "device_launches", "device_waits", "device_bytes_in", "device_bytes_out", "host_steps", "tol")

#: What the audit says of a column.
_certificates = ("iterations", "audit", "gradient", "absorbed", "error_bound", "converged")


def _of_columns(columns, keys):
    """Lists of what each column has, one for each of `keys`, as the program's JSON has them."""
    return {key: [one[key] for one in columns] for key in keys}


_moved_result = {
    **_moved_seconds("encode", "solve", "vcov", "total", name="result"),
    **{f"n_{why}": f"result['n_dropped'][{why!r}]" for why in ("missing", "subset", "zero_weight", "uncompared", "singleton", "disconnected")},
    "n_groups": "result['connected_sets'], which is there with connected='largest', 'match' and 'observation'", "rank": "result['absorbed']['rank']",
    "rank_method": "result['absorbed']['method']", "n_components": "result['absorbed']['components']",
    "factors": "result['fixed_effects'], a list of names and levels", "dropped": "result['dropped_terms']",
    "columns": "result['solver'], a list for each key, in the order of result['solver']['columns']",
    "parts": "result['solver']['parts']", "converged": "result['solver']['converged']",
}


def _rule(ssc):
    """'adj=true,fixef=nonnested,...' as a dict."""
    words = (word.split("=", 1) for word in ssc.split(","))
    return {key: {"true": True, "false": False}.get(value, value) for key, value in words}


def _covariance(v):
    """A covariance without its matrix and table."""
    used = {k: v[k] for k in ("lag", "kernel", "cutoff", "leverage", "leverage_max", "leverage_error", "weights", "reps", "df")}
    none = {"lag": -1, "reps": 0}
    used = {k: x for k, x in used.items() if x is not None and x == x and x != none.get(k)}
    return {**{k: v[k] for k in ("spec", "type", "clusters", "df_t", "k", "k_naive")}, "ssc": _rule(v["ssc"]), "projected": v["projected"], **used}


def _result(found):
    """What the library `found` under the keys of the JSON of ``fourge fe``."""
    first = found["vcovs"][0]
    why = ("missing", "subset", "zero_weight", "uncompared", "singleton", "disconnected")
    out = {k: found[k] for k in ("status", "formula", "depvar", "n", "n_rows")}
    glm = found["glm"] or {}
    out["n_dropped"] = {**{k: found[f"n_{k}"] for k in why}, "separated": len(glm.get("separated_rows", ()))}
    out["singleton_rounds"] = found["singleton_rounds"]
    out |= {"connected_sets": found["n_groups"]} if found["n_groups"] else {}
    out |= {"sample": {"split": found["split_name"], "value": found["split_value"]}} if found["split_name"] is not None else {}
    out |= {"coefficients": first["coefficients"], "dropped_terms": found["dropped"], "vcov": _covariance(first), "k": first["k"]}
    out["vcovs"] = [{**_covariance(v), "std_errors": [c["std_error"] for c in v["coefficients"]], "wald_f": v["wald_f"]}
                    for v in found["vcovs"]]
    out["fixed_effects"] = [{"name": name, "levels": levels} for name, levels in found["factors"].items()]
    out["absorbed"] = {"rank": found["rank"], "method": found["rank_method"], "components": found["n_components"]}
    out |= {k: found[k] for k in ("df_residual", "r2", "r2_adjusted", "r2_within", "rmse", "rss", "tss")}
    out["wald_f"] = first["wald_f"]
    at = [c["term"] for c in first["coefficients"]]
    events = [{"time": e["time"], "term": at[e["coefficient"]] if e["coefficient"] >= 0 else None} for e in found["events"]]
    out |= {"events": events} if events else {}
    out |= {"two_stage": {"first_stage": found["first_stage"], "n": found["n_first_stage"]}} if found["first_stage"] else {}
    out |= {"first_stage": found["iv"]} if found["iv"] else {}
    out |= glm
    columns, solver = found["columns"], found["solver"]
    out["solver"] = {"method": solver["method"], "converged": found["converged"], "columns": list(columns),
                     **_of_columns(columns.values(), ("iterations", "audit", "gradient", "error_bound")), "parts": found["parts"],
                     **{k: solver[k] for k in _plan_facts}}
    return _Report({**out, "seconds": _seconds(found)}, found, _moved_result, "result")


def _instruments(first, spec):
    """Lines of the first stages and tests, under the covariance `spec`; under the first of the fit, which is named then, where
    the fit was not asked for `spec`."""
    tests = next((t for t in first["tests"] if t["vcov"] == spec), first["tests"][0])
    under = "" if tests["vcov"] == spec else f" under {tests['vcov']}"
    lines = [f"First stage of {stage['endogenous']} on {', '.join(first['instruments'])}{under}: F = {f:.5g}, p = {p:.4g}"
             for stage, f, p in zip(first["stages"], tests["f"], tests["p_value"])]
    lines.append(f"Kleibergen-Paap{under} rk F: {tests['kleibergen_paap_f']:.5g}  rk LM: {tests['kleibergen_paap_lm']:.5g}  "
                 f"Wu-Hausman: F = {first['wu_hausman_f']:.5g}, p = {first['wu_hausman_p']:.4g}")
    if tests["overidentification_df"]:
        name = "Sargan" if tests["vcov"] == "iid" else "Hansen J"
        lines.append(f"{name}{under}: {tests['overidentification']:.5g}, p = {tests['overidentification_p']:.4g}")
    return lines


class Coefficients(np.ndarray):
    """An array whose entries have names, too: ``a["x"]``, ``a.names``."""

    names: list[str] | None = None

    def __new__(cls, values, names):
        self = np.asarray(values, np.float64).view(cls)
        self.names = list(names)
        return self

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return np.asarray(self)[key]
        names = self.names or []
        if key not in names:
            near = difflib.get_close_matches(key, names, 1)
            raise KeyError(f"there is no term {key!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are {names}"))
        return np.asarray(self)[names.index(key)]

    def __array_finalize__(self, other):
        self.names = getattr(other, "names", None) if other is not None and other.shape == self.shape else None

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return np.asarray(array)[()] if return_scalar or array.ndim == 0 else np.asarray(array)

    def __reduce__(self):
        return Coefficients, (np.asarray(self).tolist(), self.names or [])


class Fit:
    """A fitted regression, as :func:`feols` returns it.

    ``result`` holds what the JSON of ``fourge fe`` does, under the same keys: the coefficients, the fit, what was dropped
    (``n_dropped``, ``dropped_terms``), the covariances (``vcovs``), and under ``solver`` the method, the memory, the certificate
    of every column (lists in the order of ``columns``), and the components of the graph of effects that were solved apart
    (``parts``, as in :func:`demean`)."""

    _kept: tuple[Any, ...]  # of a copy from a pickle, which makes _fit and _call of it where they are asked for

    def __init__(self, call: Any, fit: Any, data: Any, names: list[str]):
        self._call, self._fit, self._data, self._names = call, fit, data, names
        self._outer: dict[str, Any] = call[4]
        self._context_options: dict[str, Any] = {}
        self._vcovs: dict[Any, dict[str, Any]] = {}
        self._names_shown: dict[str, str] = {}
        found = fit.result()
        self.result, self._shown = _result(found), found["vcovs"][0]

    def __copy__(self) -> Fit:
        other = Fit.__new__(Fit)
        other.__dict__.update(self.__dict__)
        other._vcovs = dict(self._vcovs)
        return other

    def __deepcopy__(self, memo: Any) -> Fit:
        other = self.__copy__()
        other.result = deepcopy(self.result, memo)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """A pickle has the results and the columns of the data that were read, of which a fit that is asked for more (residuals,
        effects, another covariance, predictions) makes the same regression once more."""
        _, fml, _, vcovs, outer, options = self.__dict__["_call"] if "_call" in self.__dict__ else (None, *self._kept)
        gone = ("_call", "_fit", "_kept", "_data")
        return {**{k: v for k, v in self.__dict__.items() if k not in gone}, "_data": _frame.narrow(self._data, self._names),
                "_kept": (fml, None, vcovs, outer, options)}

    def _again(self) -> tuple[Any, Any]:
        """The fit of a copy, or of one from a pickle, once more, and the call that it was."""
        fml, _, vcovs, outer, options = self._kept
        context = _context(dict(self._context_options))
        call = (context, fml, _frame.table(context, self._data, self._names), vcovs, outer, options)
        fit = _fourge.Fe(*call)
        self._fit, self._call = fit, call  # the fit first, as below
        return fit, call

    @functools.cached_property
    def _fit(self) -> Any:
        return self._again()[0]

    @functools.cached_property
    def _call(self) -> Any:
        return self._again()[1]

    @property
    def nobs(self) -> int:
        """Rows used; the sum of frequency weights."""
        return self.result["n"]

    @property
    def _factors(self) -> dict[str, int]:
        """{fixed effect: its levels}."""
        return {one["name"]: one["levels"] for one in self.result["fixed_effects"]}

    @property
    def r2(self) -> float:
        """1 - RSS / TSS; ``result`` has r2_adjusted, r2_within, rmse, rss, tss, df_residual and more."""
        return self.result["r2"]

    def _coefficients(self, key):
        return Coefficients([c[key] for c in self._shown["coefficients"]], self.terms)

    @property
    def terms(self) -> list[str]:
        """Names of the coefficients."""
        return [c["term"] for c in self._shown["coefficients"]]

    def coef(self) -> Coefficients:
        """Estimates, in the order of `terms`; ``coef()["x"]`` is that of a term, as of :meth:`se`, :meth:`tstat` and :meth:`pvalue`."""
        return self._coefficients("estimate")

    def se(self) -> Coefficients:
        """Standard errors under the covariance shown."""
        return self._coefficients("std_error")

    def tstat(self) -> Coefficients:
        """t statistics."""
        return self._coefficients("statistic")

    def pvalue(self) -> Coefficients:
        """Two-sided p-values, of the t distribution with the covariance's degrees of freedom."""
        return self._coefficients("p_value")

    def confint(self) -> np.ndarray:
        """(k, 2): the interval of the level that the fit was given."""
        return np.column_stack([self._coefficients("conf_low"), self._coefficients("conf_high")])

    def vcov(self, spec: str | Mapping[str, str] | None = None, ssc: str | None = None, vcov_kwargs: Mapping[str, Any] | None = None) -> Any:
        """Without `spec`, the covariance matrix shown (k x k); with it, the same fit under another covariance
        from here on, and the fit itself is returned.  `ssc` is its small-sample rule, "adj=true,fixef=nonnested" and the like;
        that of the fit without; `vcov_kwargs` as in :func:`feols`.  A cluster that was not read with the fit is read now, from the `data` that it was given,
        with the same regression once more."""
        if spec is None:
            k = len(self._shown["coefficients"])
            return np.frombuffer(self._shown["matrix"]).reshape(k, k).copy()
        key = _spec(spec, vcov_kwargs), ssc
        if key not in self._vcovs:  # the library keeps each that it is asked for
            self._read(key[0])
            self._vcovs[key] = self._fit.vcov(*key)
            _did.rename(self._vcovs[key]["coefficients"], self._names_shown)
        self._shown = self._vcovs[key]
        return self

    def _shows(self, names):
        """The fit itself, which calls the terms of columns by other names from here on, {column: name}."""
        self._names_shown = {column: name for column, name in names.items() if column != name}
        for rows in (self._shown["coefficients"], self.result["dropped_terms"], self.result.get("events", ())):
            _did.rename(rows, self._names_shown)
        return self

    def _read(self, spec):
        """Takes the columns that a covariance names and the table lacks into it."""
        context, fml, table, vcovs, outer, options = self._call
        names = list(dict.fromkeys([*self._names, *_fourge.fe_columns(context, fml, [spec], outer)]))
        if len(names) == len(self._names) or table is self._data:
            return
        table = _frame.table(context, self._data, names)
        if table.rows() != self.result["n_rows"]:
            raise errors.BadData(f"{spec}: the data have {table.rows()} rows now, the fit read {self.result['n_rows']}; "
                                 "name the cluster in the vcov of feols, which takes a list of them")
        call = (context, fml, table, vcovs, outer, options)
        self._fit, self._call, self._names = _fourge.Fe(*call), call, names

    def wald_test(self, R: Any = None, q: Any = None, distribution: str = "F", *, keep: Any = None,
                  drop: Any = None) -> dict[str, float]:
        """A joint test of the restrictions R b = q under the covariance shown.

        ``W = (R b - q)' (R V R')^-1 (R b - q)``, and ``F = W / df1``.  Wooldridge (2010), 4.2.3.

        Parameters
        ----------
        R : (k,) or (restrictions, k) array, optional
            k as `terms`.  Without, each of the terms that `keep` and `drop` leave is tested to be zero, all of them but
            the intercept where these are not given.
        q : number or (restrictions,) array, optional
            Zeros without.
        distribution : "F" or "chi2"
        keep, drop : str or list of str, optional
            Regular expressions of terms, as in :func:`etable`; not beside R.

        Returns
        -------
        dict
            statistic (F, or W), pvalue, df1, and df2 (of F; infinite for chi2).

        Raises :class:`fourge.errors.BadArgument` for restrictions that depend on each other.
        """
        if distribution not in ("F", "chi2"):
            raise ValueError(f"distribution={distribution!r}: expected 'F' or 'chi2'")
        if R is not None and (keep is not None or drop is not None):
            raise errors.BadArgument("keep and drop name the terms that are tested: give them or R")
        terms = self.terms
        if R is None:
            left = chosen([t for t in terms if keep is not None or t != "(Intercept)"], keep, drop, False)
            if not left:
                raise errors.BadArgument(f"no term is left to test; there are {terms}")
            R = np.array([[float(t == name) for t in terms] for name in left])
        R = np.atleast_2d(np.ascontiguousarray(_array(R, "R"), np.float64))
        if R.ndim != 2 or R.shape[1] != len(terms):
            raise errors.BadArgument(f"R: expected (restrictions, {len(terms)}), a column for each of {terms}, got shape {R.shape}")
        if q is not None:
            q = np.ascontiguousarray(np.broadcast_to(_array(q, "q"), len(R)) if np.ndim(q) == 0 else _array(q, "q"), np.float64)
            if q.shape != (len(R),):
                raise errors.BadArgument(f"q: expected {len(R)} values, one a restriction, got shape {q.shape}")
        test = self._fit.wald(self._shown["spec"], self._shown["ssc"], R, q)
        if distribution == "chi2":
            return {"statistic": test["wald"], "pvalue": test["p_chi2"], "df1": test["df1"], "df2": float("inf")}
        return {"statistic": test["f"], "pvalue": test["p_f"], "df1": test["df1"], "df2": test["df2"]}

    def ritest(self, resampvar: str, cluster: str | None = None, reps: int = 1000, type: str = "randomization-c", seed: int = 0,
               strata: str | None = None) -> dict[str, Any]:
        """Randomisation inference: how often a permuted `resampvar` does as much as it did itself (Fisher 1935).

        Parameters
        ----------
        resampvar : str
            A column that is one term of the formula, such as a treatment that was drawn by lot; a logical one with or without the
            TRUE of its term.
        cluster : str, optional
            The column of groups that it was drawn for; it is permuted between them, else between the rows in use.
        reps : int, default=1000
            Permutations.  Each is a regression; they share one plan and are demeaned together, 64 at a time.
        type : "randomization-c" or "randomization-t"
            What is compared: estimates, or t statistics under the covariance shown.
        seed : int, default=0
            Of the permutations (``frg_fe_ritest``, whose draws are those of ``fourge fe --ritest`` of the same seed).
        strata : str, optional
            The column of strata that it was drawn within: it is permuted in each of them alone.  A group of `cluster` lies in one.

        Returns
        -------
        dict
            ``p_value``, the share of permutations whose statistic is at least as large in size, ``std_error``, that share's
            ``sqrt(p (1 - p) / reps)``, ``statistics`` (reps,), ``term``, ``estimate`` and ``reps``.  (pyfixest draws the values anew
            with equal chances where this permutes them.)

        Raises :class:`fourge.errors.Unsupported` of a fit in two stages (:func:`did2s`), whose first stage would keep the true treatment, and
        :class:`fourge.errors.BadArgument` of a column that is no term, such as an instrument.
        """
        return _did.ritest(self, resampvar, cluster, strata, reps, type, seed)

    def tidy(self, style: str = "broom") -> dict[str, list[Any]]:
        """{column: values} of the coefficient table, under the names of `style`, "broom" or "pyfixest"; ``pandas.DataFrame(fit.tidy())``
        and ``polars.DataFrame(fit.tidy())`` make frames of it.  Where the covariance had to be made positive (several clusters)
        a column ``projected`` says so, and a coefficient whose variance was not positive has NaN errors."""
        level = self._outer.get("level", 0.95)
        low, high = f"{50 * (1 - level):.1f}%", f"{50 * (1 + level):.1f}%"
        names = {
            "broom": ("term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high"),
            "pyfixest": ("Coefficient", "Estimate", "Std. Error", "t value", "Pr(>|t|)", low, high),
        }
        if style not in names:
            raise ValueError(f"style={style!r}: expected one of {list(names)}")
        keys = ("term", "estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high")
        table = {n: [c[k] for c in self._shown["coefficients"]] for n, k in zip(names[style], keys)}
        return {**table, "projected": [True] * len(self.terms)} if self._shown["projected"] else table

    def glance(self) -> dict[str, Any]:
        """{name: value} of the whole fit, under broom's names; of a generalised linear model also what it has in place of R2."""
        r = self.result
        glm = {"pseudo.r.squared": "pseudo_r2", "deviance": "deviance", "null.deviance": "null_deviance", "logLik": "log_likelihood",
               "AIC": "aic", "BIC": "bic"}
        return {"r.squared": r["r2"], "adj.r.squared": r["r2_adjusted"], "within.r.squared": r["r2_within"],
                "rmse": r["rmse"], "statistic": self._shown["wald_f"], "df.residual": r["df_residual"], "nobs": r["n"],
                **({name: r[key] for name, key in glm.items()} if "family" in r else {})}

    def augment(self) -> dict[str, np.ndarray]:
        """{name: array} with ``.fitted`` and ``.resid`` for the rows of the data, NaN where a row was dropped."""
        residuals, fitted = self._residuals()
        return {".fitted": fitted, ".resid": residuals}

    @_options.takes(etable, without=("fits", "fe_absent"))
    def etable(self, type: str = "text", **options: Any) -> Any:
        """:func:`etable` of this fit, as a `type` of "text", "md", "tex", "html", "docx" or "df"; it lacks no fixed effect, so that there is
        no fe_absent."""
        _options.check(Fit.etable, options)
        return etable(self, type, **options)

    @_options.takes(coefplot, without=("fits",))
    def coefplot(self, **options: Any) -> Any:
        """:func:`coefplot` of this fit."""
        _options.check(Fit.coefplot, options)
        return coefplot(self, **options)

    @_options.takes(iplot, without=("fits",))
    def iplot(self, **options: Any) -> Any:
        """:func:`iplot` of this fit."""
        _options.check(Fit.iplot, options)
        return iplot(self, **options)

    def resid(self) -> np.ndarray:
        """Residuals for the rows of the data, NaN where a row was dropped."""
        return self._residuals()[0]

    def fitted(self) -> np.ndarray:
        """Fitted values for the rows of the data, NaN where a row was dropped."""
        return self._residuals()[1]

    def glm_values(self, what: str = "link") -> np.ndarray:
        """A value of each row of the data of a fit by :func:`feglm`, NaN where a row was dropped; `what`: "link" (the linear predictor),
        "response" (mu), the residuals "working", "pearson" and "deviance", or "weight", that of the last least squares."""
        names = ("link", "response", "working", "pearson", "deviance", "weight")
        if what not in names:
            raise ValueError(f"what={what!r}: expected one of {list(names)}")
        out = np.empty(self.result["n_rows"])
        self._fit.glm_values(names.index(what), out)
        return out

    def _residuals(self):
        out = np.empty((2, self.result["n_rows"]))
        self._fit.residuals(out[0], out[1])
        return out

    def fixef(self) -> dict[str, dict[str, float]]:
        """{factor: {level: effect}}; the first level of every factor but the first is 0 in each component.

        Where three and more factors, or slopes, leave more free, as many further levels are 0, in their order.  Warns where
        even so the effects are not unique.
        """
        columns = _frame.arrays(self._with_effects().effects())
        if not np.all(columns["identified"]):
            warnings.warn("the effects are not unique: differences between levels of a factor may be the solver's", stacklevel=_outside())
        out: dict[str, dict[str, float]] = {}
        for factor, level, effect in zip(columns["factor"], columns["level"], columns["effect"]):
            out.setdefault(str(factor), {})[str(level)] = float(effect)
        return out

    def connected_sets(self) -> np.ndarray:
        """(rows,) int32: the connected set of each row of the data in the graph of the first two effects.

        1 is the set with the most rows, 2 the next, 0 a row that was dropped.  Effects of different sets cannot be
        compared with each other: Abowd, Creecy and Kramarz (2002).  ``connected="largest"`` fits on set 1 alone; "match" and
        "observation" on the largest set that stays connected without any one match or row (:meth:`leave_out`).
        """
        out = np.empty(self.result["n_rows"], np.int32)
        self._fit.groups(out)
        return out

    @_options.takes(_options.LeaveOut, "leave_out")
    def leave_out(self, **options: Unpack[_options.LeaveOut]) -> dict[str, Any]:
        """Leave-out variance components of two effects, a worker's and a firm's (Kline, Saggio and Soelvsten 2020).

        ``feols("wage ~ experience | worker + firm", data, connected="match").leave_out()``

        The variances of both effects over the rows, and their covariance, are biased by the effects' own errors: upwards, and mostly
        downwards.  ``corrected`` takes off what variances of the errors, estimated without the match or the row that they are of, say
        that bias is, and holds for errors of any variances; ``homoscedastic`` (Andrews et al. 2008) supposes that all have one.  The
        regressors' part is taken off the outcome first, as known.  Workers come first in the formula: the rows of one
        who has one match are left out one by one also where matches are.

        Parameters
        ----------
        leave_out : "match", "observation" or "none"
            A match, all rows of a worker at a firm, whose errors may depend on each other; a row; or nothing: the plug-in and the
            homoscedastic estimates alone.  The rows have to be connected without any one of them: where the fit was not made with
            ``connected="match"`` (or "observation", "largest") it is made once more for this, of fewer rows perhaps, `n`.
        leverage : "auto", "exact" or "approx"
            By a direct factor, or by random projections; "auto" is exact up to 4096 firms.
        draws : int, default=200
            Random projections.

        Returns
        -------
        dict
            ``plug_in``, ``homoscedastic`` and ``corrected``, each with ``first`` (the variance of the first effect), ``second``,
            ``covariance``, ``correlation`` and ``explained``, their share of ``outcome_variance``; ``corrected_error`` and
            ``homoscedastic_error`` are the errors that random projections add.  ``sampling_error`` has standard errors of ``corrected``
            over samples, by leaving each unit out: an upper bound, the mean of whose squares is at least the variance.

        Raises :class:`fourge.errors.BadData` for other fits, and where nobody moves.
        """
        _options.check(Fit.leave_out, options)
        what = options.get("leave_out", "match")
        found = self._connected_for(what).leave_out(options)
        _warn(self._call[0])
        return found

    def _connected_for(self, what):
        """The fit with its effects, of rows that are connected without any one of `what`."""
        enough = {"match": ("match",), "observation": ("observation", "match"), "none": ("largest", "observation", "match")}.get(what, ())
        if self._outer.get("connected", "all") in enough or not enough or len(self._factors) != 2:
            return self._with_effects()
        context, fml, table, vcovs, outer, options = self._call
        return _fourge.Fe(context, fml, table, vcovs, {**outer, "connected": enough[0], "keep_effects": True}, options)

    def _with_effects(self):
        """The fit with its fixed effects kept: the same regression once more where they were not."""
        if not self._call[4].get("keep_effects") and self.result["fixed_effects"]:
            call = (*self._call[:4], {**self._call[4], "keep_effects": True}, *self._call[5:])
            fit = _fourge.Fe(*call)
            self._fit, self._call = fit, call  # the fit first: another thread looks at the call
        return self._fit

    def _with_level(self, level):
        """The same regression with intervals of another level, under the covariance shown."""
        if level == self._outer.get("level", 0.95):
            return self
        context, fml, table, vcovs, outer, options = self._call
        call = (context, fml, table, vcovs, {**outer, "level": level}, options)
        other = Fit(call, _fourge.Fe(*call), self._data, self._names)
        return other.vcov(self._shown["spec"], self._shown["ssc"])

    def predict(self, newdata: Any = None) -> np.ndarray:
        """Fitted values, or predictions for the rows of `newdata` (NaN where a level was not in the fit).

        It has the columns of the regressors, the effects, the offset and the panel; outcome and instruments may be absent.
        """
        if newdata is None:
            return self.fitted()
        table = self._new_table(newdata)
        out = np.empty(table.rows())
        self._tell_unseen(self._with_effects().predict(table, out))
        return out

    def regressors(self, newdata: Any) -> np.ndarray:
        """(rows, k): the regressors of `newdata`, which is as in :meth:`predict`, a column for each of `terms`; NaN in rows with a level
        that was not in the fit, and in columns that a missing value is in.  Fixed effects have no columns.  The means that ``sunab()`` shows are refused."""
        table = self._new_table(newdata)
        out = np.empty((len(self.terms), table.rows()))
        self._tell_unseen(self._fit.regressors(table, out))
        return out.T

    def _tell_unseen(self, unseen):
        if unseen:
            warnings.warn(f"{unseen} rows have a level that the fit has not seen", stacklevel=_outside())

    def _new_table(self, newdata):
        """The columns of other data that predictions read."""
        context, outer = self._call[0], self._call[4]
        beside = {key: outer[key] for key in ("offset", "panel") if outer.get(key) is not None}
        columns = lambda right: list(dict.fromkeys(_fourge.fe_columns(context, "1 ~" + right, ["iid"], beside)))
        right = self.result["formula"].split("~", 1)[1]
        try:
            return _frame.table(context, newdata, columns(right))
        except (KeyError, errors.BadData):  # of a mapping; of the library, a column that is not there among others
            if "first_stage" not in self.result:
                raise
            right, endogenous = right.rsplit("~", 1)[0].rsplit("|", 1)
            return _frame.table(context, newdata, list(dict.fromkeys(columns(right) + columns(endogenous))))

    def summary(self, digits: int = 5) -> None:
        """Prints what fixest prints, to `digits` digits: the table of coefficients with what the fit rests on."""
        print(self._text(digits))

    def _text(self, digits=5):
        r, shown = self.result, self._shown
        words = {"missing": "missing values", "subset": "the subset", "zero_weight": "zero weights",
                 "uncompared": "lack of untreated ones", "singleton": "singletons",
                 "disconnected": "the largest connected set", "separated": "perfect prediction"}
        without = ", ".join(f"{n} for {words[why]}" for why, n in r["n_dropped"].items() if n)
        first = r.get("first_stage")
        stages = r.get("two_stage")
        kind = f"GLM ({r['family']}, {r['link']})" if "family" in r else "TSLS" if first else "DID2S" if stages else "OLS"
        lines = [f"{kind} estimation, Dep. Var.: {r['depvar']}", f"Observations: {r['n']}" + (f" (dropped: {without})" if without else "")]
        lines += [f"First stage: {stages['first_stage']}, {stages['n']} untreated rows"] if stages else []
        if self._factors:
            lines.append("Fixed-effects: " + ",  ".join(f"{name}: {levels}" for name, levels in self._factors.items()))
        names = {"iid": "IID", "hc1": "Heteroskedasticity-robust", "cluster": f"Clustered ({', '.join(shown['clusters'])})"}
        lines.append(f"Standard-errors: {names.get(shown['type'], shown['spec'])}")
        letter = "z" if shown["df_t"] == float("inf") else "t"
        head = ["", "Estimate", "Std. Error" + " \u2020" * shown["projected"], f"{letter} value", f"Pr(>|{letter}|)"]
        show = lambda x: "NA" if x != x else f"{x:.{digits}g}"
        least = 1 / shown["reps"] if shown["type"] == "wild" else 0  # of a bootstrap none of whose draws was so far out
        show_p = lambda p: f"<{show(least)}" if p < least else show(p)
        cells = [[c["term"], *(show(c[k]) for k in ("estimate", "std_error", "statistic")), show_p(c["p_value"])]
                 for c in shown["coefficients"]]
        widths = [max(len(row[k]) for row in [head, *cells]) for k in range(5)]
        lines += [" ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths))) for row in [head, *cells]]
        lines += remarks(self)
        lines += [f"{d['term']}: dropped, {d['reason']}" for d in r["dropped_terms"]]
        if "theta" in r:
            error = f" ({show(r['theta_std_error'])})" if r["theta_std_error"] == r["theta_std_error"] else ""
            lines.append(f"Theta: {show(r['theta'])}{error}")
        if "family" in r:
            lines += ["---", f"Deviance: {r['deviance']:.8g}  Log-likelihood: {r['log_likelihood']:.8g}  Pseudo R2: {r['pseudo_r2']:.6g}  "
                      f"BIC: {r['bic']:.8g}"]
        else:
            lines += ["---", f"RMSE: {r['rmse']:.6g}  R2: {r['r2']:.6g}  Adj. R2: {r['r2_adjusted']:.6g}"
                      + (f"  Within R2: {r['r2_within']:.6g}" if self._factors else "")]
        lines += _instruments(first, shown["spec"]) if first else []
        if not r["solver"]["converged"]:
            lines.append("NOT CONVERGED: see result['solver']")
        return "\n".join(lines)

    def __str__(self):
        return self._text()

    __repr__ = __str__

    def _repr_html_(self):
        return etable(self, "html")


class Fits(list[Fit]):
    """The models of one call of :func:`feols`, in their order: samples, then effects, then outcomes, then regressors, the last
    changing fastest.  A list whose text is the table of all of them."""

    @_options.takes(etable, without=("fits",))
    def etable(self, type: str = "text", **options: Any) -> Any:
        """:func:`etable` of the models, as a `type` of "text", "md", "tex", "html" or "df"."""
        _options.check(Fits.etable, options)
        return etable(self, type, **options)

    def _shows(self, names):
        """The models, each of which calls the terms of columns by other names, {column: name}."""
        for fit in self:
            fit._shows(names)
        return self

    def vcov(self, spec: str | Mapping[str, str], ssc: str | None = None) -> Fits:
        """All models under another covariance `spec` from here on, by the small-sample rule `ssc`."""
        for fit in self:
            fit.vcov(spec, ssc)
        return self

    def summary(self, digits: int = 5) -> None:
        """Prints the summary of each model, to `digits` digits."""
        for fit in self:
            fit.summary(digits)

    def __str__(self):
        return etable(self)

    __repr__ = __str__

    def _repr_html_(self):
        return etable(self, "html")


def _is_missing(v):
    return v is None or type(v).__name__ in ("NAType", "NaTType") or (isinstance(v, (float, np.floating)) and v != v)


def _codes(fixed_effects):
    _on_cpu(fixed_effects, "fixed_effects")
    a = np.asarray(fixed_effects)
    if a.ndim == 1:
        a = a[:, None]
    if a.dtype.kind == "O":
        missing = np.argwhere([[_is_missing(v) for v in row] for row in a])
        if len(missing):
            row, column = missing[0]
            raise ValueError(f"fixed effects: row {row} of column {column} is missing; leave such rows out first")
    if a.dtype.kind in "OUSb" and a.ndim == 2:  # words: numbered in their order
        a = np.column_stack([np.unique(c.astype(str), return_inverse=True)[1] for c in a.T])
    if a.dtype == np.int32:
        return a
    if a.dtype.kind not in "iu":
        raise TypeError(f"fixed effects: expected integer codes, got {a.dtype}; number the levels first (np.unique)")
    if a.size and a.max() > np.iinfo(np.int32).max:
        raise ValueError("fixed effects: a code is larger than an int32 holds; number the levels from 0")
    return a.astype(np.int32, copy=False)


def _plan_file(plan):
    """The path of a plan, or None, and whether the file is there."""
    return (None, False) if plan is None else (os.fspath(plan), os.path.exists(plan))


def _demean_report(found, n):
    """What the library `found` of n rows under the keys of the JSON of ``fourge demean``."""
    times = _seconds(found)
    return {"n": n, "columns": len(found["columns"]), "method": found["method"], "status": found["status"],
            **_of_columns(found["columns"], _certificates), "parts": found["parts"], **{k: found[k] for k in _plan_facts},
            "seconds": {**times, "total": sum(times.values())}}


def _writable(out, x):
    """`out` in host memory as an array that can take what is left of x."""
    target = _array(out, "out")
    if target.shape != x.shape or not target.flags.writeable or not np.may_share_memory(target, out):
        raise errors.BadArgument(f"out: expected a writable array of shape {x.shape} and floats, got {target.shape}")
    return target


def _beside(x, out):
    """`out`, or a new array of its library beside `x` on a device, and what is known of it there: None of one in host memory."""
    if out is None:
        out = x.empty(x.shape, x.dtype)
    if out is None:
        raise errors.BadArgument(f"x: how to make an array beside a {type(x.x).__module__}.{type(x.x).__name__} on {x.device} is not known: "
                                 "give out=, x itself or an array of any library there")
    found = _there.find(out, "out", True)
    if found is not None:
        if (found.shape, found.dtype) != (x.shape, x.dtype):
            raise errors.BadArgument(f"out: expected {x.dtype} of shape {x.shape}, as x, got {found.dtype} of shape {found.shape}")
        if found.repeats():
            raise errors.BadArgument("out: its strides bring several of its elements to one place; give an array without")
        if found.clashes(x):
            raise errors.BadArgument("out: a part of x lies in it: give x itself, or an array apart from it")
    return out, found


def _columns(a):
    """(n, p) of (n,)"""
    return a[:, None] if a.ndim == 1 else a


@_options.takes(_options.Demean, "context", "demean")
def demean(x: Any, fixed_effects: Any, weights: Any = None, *, out: Any = None, plan: str | os.PathLike[str] | None = None,
           progress: Callable[..., Any] | bool | None = None, **options: Unpack[_options.Demean]) -> tuple[Any, dict[str, Any]]:
    """What is left of the columns of `x` when all group means are taken out.

    Solves ``min || W^(1/2) (x - D alpha) ||`` for each column and returns ``x - D alpha``.

    Parameters
    ----------
    x : (n,) or (n, p) array, float64 or float32
        A tensor of torch on the CPU works as well (it is not copied).  An array on a device (torch's CUDA tensors, CuPy, Numba,
        pyopencl, DLPack of CUDA) is demeaned there, in its own stream or queue, of any strides that do not run backwards, and no
        column of it is copied: by the methods "auto", "cg" and "lsmr" where the device has double;
        :class:`fourge.errors.BadArgument` or :class:`fourge.errors.Unsupported` says what else takes a copy in host memory.
    fixed_effects : (n,) or (n, Q) integer codes >= 0, or words
        In host memory, where levels are numbered; TypeError for those on a device.
    weights : (n,) float64 >= 0, optional
        In host memory, or beside an x on a device, without gaps: a copy goes over.
    out : array like x, optional
        May be x itself; written when the result is there, so that an exception (Ctrl-C, too) leaves it as it was.  Beside an x on
        a device it is written in place, has x's type and shape and is x or apart from it: what is refused leaves it as it was, but an
        exception from Ctrl-C or `progress`, or a device that fails, leaves columns of which some are demeaned.  One in host
        memory gets a copy.
    plan : path, optional
        A file with the solver of an earlier call for the same effects, weights, options and seed: the same bits without ordering and
        factor.  Where there is none it is written.  Of another call's: :class:`fourge.errors.Mismatch`; method "lsmr", "mlsmr" or "map",
        and graphs whose components are solved apart, have none (:class:`fourge.errors.Unsupported`).
    progress : callable or True, optional
        As in :func:`feols`.
    **options
        Of :func:`feols`: method, precond, dtype, tol, max_iter, ..., device, threads, memory_limit, time_limit.

    Returns
    -------
    (array, dict)
        The residual in x's type and shape (of an x on a device in its library and on that device; of a library other than torch, CuPy,
        Numba and pyopencl `out` is needed), and the report, under the keys of the JSON of ``fourge demean``: n, columns (their
        number), method, status, the lists iterations, audit, gradient, absorbed, error_bound and converged with an entry
        for each column, parts, levels, plan_bytes, factor_bytes, passes_on (the device that has computed residuals and their audit, or
        "cpu"), device_launches, device_waits, device_bytes_in and device_bytes_out (kernels, waits for them and bytes copied there and
        back, 0 on the cpu), host_steps (of a plan on a device, the steps that were left to the host: calls by name), tol and seconds.  ``tol`` is the one that columns were judged by: where float32
        cannot reach the one asked for, what it can reach, with a warning.  With a `plan` also ``plan``: its ``file``, and whether the
        solver was ``read`` from it, or made and ``written``.  ``parts`` is a list of the components of the graph that were solved
        apart, with ``n`` (rows), ``levels``, ``components``, ``method``, ``iterations`` and ``audit`` of each.
    """
    there = _there.find(x, "x")
    x = _array(x, "x") if there is None else there
    if len(x.shape) not in (1, 2):
        raise errors.BadArgument(f"x: expected (n,) or (n, p), got shape {x.shape}")
    if "dof" in options:
        raise TypeError("demean() takes no dof, the rule for the rank in a regression's standard errors: it is feols'")
    _options.check(demean, options)
    context = _context(options, progress) if there is None else _there.context(there, "x", options, progress)
    result, beside = (out, None) if there is None else _beside(there, out)
    target = _writable(out, x) if out is not None and beside is None else None
    if beside is None:
        result = np.empty_like(x if there is None else target, x.dtype)
    sent, fetched = None if there is None else _there.find(weights, "weights"), 0
    if sent is not None:
        weights, fetched = sent.fetch(context, there, "weights", "x", (x.shape[0], "values"))
    w = None if weights is None else np.ascontiguousarray(_array(weights, "weights"), dtype=np.float64)
    codes = _codes(fixed_effects)
    for name, rows in (("fixed_effects", len(codes)), ("weights", x.shape[0] if w is None else w.size)):
        if rows != x.shape[0]:
            raise errors.BadArgument(f"{name}: expected a row for each of the {x.shape[0]} of x, got {rows}")
    to = _columns(result) if beside is None else _there.matrix(beside.beside(context, there, "out", "x"))
    path, kept = _plan_file(plan)
    with _there.behind(context, there):
        found = _fourge.demean(context, _columns(x) if there is None else _there.matrix(x.view), codes, w, to, options, path, kept)
    _warn(context)
    report = _demean_report(found, x.shape[0])
    report["device_waits"] += sent is not None
    report["device_bytes_out"] += fetched
    report |= {} if plan is None else {"plan": {"file": path, "read": kept, "written": found["plan_written"]}}
    if report["status"] != "FRG_OK":
        warnings.warn(f"{report['status']}: a column did not converge; see the report", errors.NotConverged, stacklevel=_outside())
    if target is not None:
        target[...] = result
        result = out
    return result, report


@_options.takes(_options.Lsmr, "context", "lsmr")
def lsmr(A: Any, b: Any, *, progress: Callable[..., Any] | bool | None = None, **options: Unpack[_options.Lsmr]) -> tuple[np.ndarray, Any]:
    """LSMR (Fong and Saunders 2011) for ``min ||A x - b||^2 + damp^2 ||x||^2``, all columns of b at once.

    Parameters
    ----------
    A : SciPy sparse matrix, or a tuple (shape, indptr, indices, data) of its compressed rows
    b : (m,) or (m, p)
    atol, btol, cond_limit, damp, max_iter, block, precond
        As in ``frg_lsmr_opts``.  ``precond="diagonal"`` scales the columns of ``[A; damp I]`` to unit norm while it iterates;
        ``damp`` acts on x with and without it, so that the solution is the same.
    progress : callable or True, optional
        As in :func:`feols`.

    Returns
    -------
    (x, reports)
        Reports one a column: ``stop`` (SciPy's istop codes), ``iterations``, ``norm_r``, ``norm_ar``, ..., and
        ``status`` of the whole run.  One that was stopped is returned and warned of.
    """
    if isinstance(A, tuple):
        (m, n), indptr, indices, data = A
    else:
        A = A.tocsr()
        (m, n), indptr, indices, data = A.shape, A.indptr, A.indices, A.data
    if "seed" in options:
        raise TypeError("lsmr() takes no seed: nothing in it is random")
    _options.check(lsmr, options)
    b = np.asarray(_array(b, "b"), dtype=np.float64)
    context = _context(options, progress)
    columns = b[:, None] if b.ndim == 1 else b
    x = np.empty((n, columns.shape[1]))
    status, reports = _fourge.lsmr(context, m, n, np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(indices, np.int32),
                                   np.ascontiguousarray(data, np.float64), columns, x, options)
    for report in reports:
        report["status"] = status
    if status in ("FRG_INTERRUPTED", "FRG_TIME_LIMIT"):
        warnings.warn(f"{status}: the solution is that of the last iteration", errors.NotConverged, stacklevel=_outside())
    return (x[:, 0], reports[0]) if b.ndim == 1 else (x, reports)


_hint(globals())
