"""fourge under pyfixest: its formulas, estimators and tables, our demeaning; and its ``feols``.

>>> import pyfixest as pf
>>> from fourge.pyfixest import demeaning
>>> with demeaning():
...     fit = pf.feols("y ~ x | firm + worker", data)

pyfixest's releases accept their own demeaners alone, so :func:`demeaning` replaces the one function through which
every estimator demeans (feols, fepois, feglm, IV, several estimations), and puts it back when the last block ends.
Releases whose function has another signature are refused.

What pyfixest's demeaner asks for is done: ``fixef_tol`` (of LSMR the larger of ``fixef_atol`` and ``fixef_btol``) is the
tolerance of our audit, ``fixef_maxiter`` the most steps of an iteration, ``precision="float32"`` is ``dtype="mixed"``
(float32 inside, refined to the same tolerance), and a device that is not the CPU raises.  Where pyfixest's own solver
would have built a preconditioner, ``fit.preconditioner`` is that preconditioner, built by pyfixest: ours is not used, and
not made to be handed on.

>>> import fourge.pyfixest as pf
>>> fit = pf.feols("y ~ x | firm + worker", data, vcov={"CRV1": "firm"})
>>> fit.coef()["x"], fit.tidy().loc["x", "Std. Error"]

:func:`feols` is the regression of :mod:`fourge.fe` with pyfixest's signature, defaults, names of
terms and results, as objects of pandas where pandas is installed.  It needs neither of both.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from . import _fourge, _options, errors, fe
from ._arrays import outside as _outside
from ._blocks import Blocks
from ._hints import hint as _hint
from ._tables import chosen, remarks

__all__ = ["BACKENDS", "demeaning", "feols", "ssc", "Fit"]

#: What pyfixest's names of backends become here.
BACKENDS = {
    "auto": "cpu",
    "cpu": "cpu",
    "torch": "cpu",  # torch chooses the device there
    "torch_cpu": "cpu",
    "torch_mps": "opencl",
    "torch_cuda": "cuda",
    "torch_cuda32": "cuda",
}

_module = "pyfixest.estimation.internals.demean_"
_arguments = ["x", "flist", "weights", "demeaner", "cached_preconditioner"]


def _original():
    try:
        import pyfixest
    except ImportError as e:
        raise ImportError("fourge.pyfixest needs pyfixest: pip install pyfixest") from e
    version = getattr(pyfixest, "__version__", "unknown")
    pyfixest.feols  # loads the estimators, which hold the function under their own names
    function = getattr(sys.modules.get(_module), "dispatch_demean", None)
    if function is None or list(inspect.signature(function).parameters) != _arguments:
        raise errors.Unsupported(f"pyfixest {version} demeans in another way than 0.60, which this version of fourge knows")
    return function


def _preconditioner(flist, weights, demeaner, cached):
    """What pyfixest's LSMR would give back beside its solution, by pyfixest itself: a step on a column of zeros."""
    if demeaner.kind != "lsmr" or demeaner.backend != "within" or flist.ndim == 1 or flist.shape[1] == 1:
        return None
    from pyfixest.core.demean import Preconditioner, demean_within

    wanted = "additive" if demeaner.preconditioner == "auto" else demeaner.preconditioner
    if isinstance(wanted, str) and cached is not None and cached.variant.lower() == wanted:
        return cached
    if not isinstance(wanted, Preconditioner) and wanted == "off":
        return None
    zeros = np.zeros((len(flist), 1))
    return demean_within(zeros, flist.astype(np.uint32), weights, maxiter=1, preconditioner=wanted)[2]


def _replace():
    """Puts our function where theirs is held; what undoes it."""
    original = _original()
    holders = [m for m in list(sys.modules.values()) if getattr(m, "dispatch_demean", None) is original]

    def ours(x, flist, weights, demeaner, cached_preconditioner=None):
        block = _blocks.current()
        if block is None:
            return original(x, flist, weights, demeaner, cached_preconditioner)
        options, reports = block
        flist = np.asarray(flist)
        w = None if weights is None else np.asarray(weights, dtype=np.float64).reshape(-1)
        built = _preconditioner(flist, w, demeaner, cached_preconditioner)
        columns = [np.unique(f, return_inverse=True)[1].reshape(-1) for f in flist.T]
        out, report = fe.demean(x, np.column_stack(columns), w, **{**fe._asked(demeaner, options), **options})
        reports.append(report)
        return out, report["status"] == "FRG_OK", built

    def put_back():
        for m in holders:
            m.dispatch_demean = original

    for m in holders:
        m.dispatch_demean = ours
    return put_back


_blocks = Blocks("pyfixest", _replace)


@_options.takes(fe.demean, without=("x", "fixed_effects", "weights", "out", "plan"))
@contextlib.contextmanager
def demeaning(backend: str = "auto", **options: Any) -> Iterator[list[dict[str, Any]]]:
    """Within the block pyfixest demeans with fourge, in this thread and in others that are in no block of their own.

    Parameters
    ----------
    backend : str
        One of :data:`BACKENDS`.  "torch_cuda" is LSMR in double on CUDA, "torch_cuda32" in float there, "torch_mps" in float
        on OpenCL, each to the same tolerance: ValueError beside another device, method or dtype, and
        :class:`fourge.errors.NoDevice` where there is no such device: nothing falls back to the CPU in silence.
    **options
        Of :func:`fourge.fe.demean`: ``method``, ``threads``, ...; ``tol``, ``max_iter`` and ``dtype`` stand over what
        pyfixest's demeaner asks for.

    Yields
    ------
    list
        One report of :func:`fourge.fe.demean` for each call.
    """
    _options.check(demeaning, options)
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r}: expected one of {list(BACKENDS)}")
    elsewhere = fe._demeaners_elsewhere.get(backend)
    there: dict[str, Any] = {}
    if elsewhere:
        there = fe._elsewhere(f"backend={backend!r}", *elsewhere, options)
    with _blocks.enter({**there, **options}) as reports:
        yield reports


# ---- feols ---------------------------------------------------------------------------------------

#: Keywords that cannot act here: pyfixest's default, which is what is done, and what there is
#: instead of another value.
_settled: dict[str, tuple[Any, str]] = {
    "drop_intercept": (False, "write '- 1' or '0 +' into the formula"),
    "store_data": (
        True,
        "a fit holds the data that it was given, for another covariance and for predictions",
    ),
    "lean": (False, "a fit keeps what its methods need"),
    "solver": (
        "scipy.linalg.solve",
        "the normal equations are solved by a Cholesky factor of our own",
    ),
    "demeaner_backend": (None, "fourge's own solvers demean; method= chooses among them"),
    "use_compression": (False, "every row is used, with the same estimates"),
    "reps": (100, "fourge.fe.feols has vcov='wild=firm,9999'"),
    "context": (None, "formulas see the columns of the data alone"),
    "split": (None, "fit each part of the data"),
    "fsplit": (None, "fit each part of the data, and all of them"),
    "data": (None, "clusters are columns of the data that the fit was given"),
    "se_fit": (False, "standard errors of predictions are not built"),
    "interval": (None, "intervals of predictions are not built"),
    "atol": (1e-6, "effects are solved to the tolerance of the fit"),
    "btol": (1e-6, "effects are solved to the tolerance of the fit"),
    "joint": (False, "simultaneous intervals are not built"),
}


def _refuse(**given: Any) -> None:
    """Unsupported for the first value that is not what is done."""
    for name, value in given.items():
        done, instead = _settled[name]
        if not (value is done or (type(value) is type(done) and value == done)):
            raise errors.Unsupported(f"{name}={repr(value)[:40]}: {instead}")


def _alone(name: str, value: Any, default: Any, other: str) -> None:
    """Unsupported for what acts in pyfixest beside an option alone that is refused."""
    if value != default:
        raise errors.Unsupported(f"{name}={value!r} goes with {other}, which is not built")


_power = re.compile(r"\s*(?:\*\*|\^)\s*\d+")


def _dialect(fml: str) -> str:
    """A formula of pyfixest in ours: ``x**2`` and ``x^2`` outside calls are the term x in
    formulaic's grammar."""
    if not isinstance(fml, str):
        raise TypeError(f"fml: expected a formula, a str, got {type(fml).__name__}")
    outcomes = fe._outcomes(fml)
    if outcomes:
        raise errors.Unsupported(
            f"fml: {' + '.join(outcomes)} are {len(outcomes)} regressions: call feols for each "
            f"outcome, or write I({' + '.join(outcomes)}) for their sum"
        )
    left, tilde, right = fml.partition("~")
    terms, bar, effects = right.partition("|")
    depth, out = 0, [""]
    for text in re.split(r"(`[^`]*`|[()])", terms):
        depth += (text == "(") - (text == ")")
        if depth == 0 and out[-1] == ")" and _power.match(text):
            raise errors.Unsupported(
                "fml: a power behind parentheses is none in pyfixest, which reads interactions "
                "or the term alone: write them as a*b, and a power as I(x**2)"
            )
        out.append(text if depth or text.startswith("`") else _power.sub("", text))
    return left + tilde + "".join(out) + bar + effects


def _python(text: str) -> str:
    """An expression as formulaic writes it, I(x^2) as I(x ** 2)."""
    try:
        return ast.unparse(ast.parse(text.replace("^", "**"), mode="eval"))
    except SyntaxError:
        return text


def _piece(text: str, columns: Sequence[str]) -> tuple[str, str]:
    """What stands between the colons of a term as (column or expression, level): no level where it
    is a number."""
    expression = re.match(r"(?!C\()\w+\(.*\)$", text)
    if text not in columns and not expression:
        for name in sorted([*columns, *(f"C({name})" for name in columns)], key=len, reverse=True):
            if text.startswith(name) and text[len(name) : len(name) + 1] not in ":^":
                return name, text[len(name) :]
    return text, ""


def _names(terms: Sequence[str], columns: Sequence[str], absorbed: bool) -> list[str]:
    """Our names of terms in pyfixest's words: (Intercept) is Intercept, regionb region[T.b],
    flagTRUE flag, I(x^2) I(x ** 2).

    The T. says that the category lacks a level, as it does where the term without it is in the
    formula, too; the intercept is where effects take it out, and a category that stands first
    without it has all of its levels."""
    pieces = {
        term: [_piece(text, columns) for text in re.split("(?<!:):(?!:)", term)]
        for term in terms
        if term != "(Intercept)"
    }
    groups = [frozenset(name for name, _ in p) for p in pieces.values()]
    whole = (
        set()
        if absorbed or "(Intercept)" in terms
        else {next((p[0][0] for p in pieces.values() if len(p) == 1 and p[0][1]), None)}
    )

    def word(name: str, level: str, group: frozenset[str]) -> str:
        if not level:
            return name if "::" in name else _python(name)
        if level in ("TRUE", "FALSE"):
            return name if level == "TRUE" else f"{name}[False]"
        rest = group - {name}
        lacks = name not in whole if not rest else rest in groups
        return f"{name}[{'T.' * lacks}{level}]"

    named = {
        term: ":".join(word(*one, group) for one in p)
        for (term, p), group in zip(pieces.items(), groups)
    }
    return [named.get(term, "Intercept") for term in terms]


def ssc(
    k_adj: bool = True,
    k_fixef: Literal["none", "nonnested", "full"] = "nonnested",
    G_adj: bool = True,
    G_df: Literal["conventional", "min"] = "min",
) -> dict[str, str | bool]:
    """The small-sample rule of :func:`feols`, as ``pyfixest.ssc()``: what it returns is taken as
    well.

    Parameters
    ----------
    k_adj : bool
        (n - 1) / (n - K) times the covariance.
    k_fixef : {"none", "nonnested", "full"}
        Which effects count in K: none, those that are not nested in a cluster, all.
    G_adj : bool
        G / (G - 1) times a clustered covariance of G clusters.
    G_df : {"conventional", "min"}
        Of several clusters each has its own G, or all have the smallest.
    """
    return {"k_adj": k_adj, "k_fixef": k_fixef, "G_adj": G_adj, "G_df": G_df}


_default_ssc = ssc()


def _covariance(
    vcov: str | Mapping[str, str] | None, rule: Mapping[str, Any], kwargs: Any = None
) -> tuple[str, str]:
    """Our names of a covariance and of its small-sample rule.  HC1's factor is n / (n - K) in
    pyfixest, under k_adj alone; here, as in fixest, (n - 1) / (n - K) under k_adj and n / (n - 1)
    under G_adj."""
    if not isinstance(vcov, (str, Mapping, type(None))):
        raise TypeError(f"vcov: expected a name or {{'CRV1': 'a+b'}}, got {vcov!r}")
    spec = fe._spec(vcov, kwargs)
    if spec in ("hc2", "hc3"):
        raise errors.Unsupported(
            f"vcov={vcov!r}: pyfixest scales it by n / (n - k) and refuses effects; fourge.fe.feols "
            "has it with leverages of the full model and without a factor"
        )
    rule = {**rule, "cluster.adj": rule["adj"]} if spec == "hc1" else rule
    return spec, ",".join(f"{key}={str(value).lower()}" for key, value in rule.items())


def _tell_projected(fit: fe.Fit) -> None:
    if fit._shown["projected"]:
        warnings.warn(
            "a variance of the clustered covariance was not positive: its negative eigenvalues "
            "were set to 0 (Cameron, Gelbach and Miller 2011), which pyfixest does not do",
            UserWarning,
            stacklevel=_outside(),
        )


@_options.takes(_options.Solver, "context", "demean", "fe")
def feols(
    fml: str,
    data: Any,
    vcov: str | Mapping[str, str] | None = None,
    vcov_kwargs: Any = None,
    weights: str | None = None,
    ssc: Mapping[str, Any] | None = None,
    fixef_rm: Literal["singleton", "none"] = "singleton",
    collin_tol: float = 1e-9,
    drop_intercept: bool = False,
    copy_data: bool = True,
    store_data: bool = True,
    lean: bool = False,
    weights_type: Literal["aweights", "fweights"] = "aweights",
    solver: str = "scipy.linalg.solve",
    demeaner: Any = None,
    demeaner_backend: str | None = None,
    fixef_tol: float | None = None,
    fixef_maxiter: int | None = None,
    use_compression: bool = False,
    reps: int = 100,
    context: Any = None,
    seed: int | None = None,
    split: str | None = None,
    fsplit: str | None = None,
    *,
    dof: Literal["auto", "naive", "firstpair", "pairwise", "exact"] = "naive",
    progress: Callable[..., Any] | bool | None = None,
    **options: Unpack[_options.Solver],
) -> Fit:
    """pyfixest's ``feols`` by fourge: its signature, defaults and numbers, its names of terms,
    results as objects of pandas.

    ``feols("Y ~ X1 + X2 | f1 + f2", data, vcov={"CRV1": "f1"})``

    Where effects depend on each other beyond one level each (nested ones, three and more,
    components apart) pyfixest counts levels in K of the small-sample rule, :func:`fourge.fe.feols`
    their rank; `dof` "naive" is pyfixest's count and the default here, "auto" the rank.  Errors
    differ by the root of the ratio of n - K.  Where weights are frequencies, a level whose one row
    stands for several is no singleton here, and is dropped by pyfixest.

    Parameters
    ----------
    fml : str
        One outcome, terms, effects.  ``x**2`` and ``x^2`` outside calls are the term x, as in
        pyfixest; the square is ``I(x**2)``.  Several outcomes, ``sw()`` and ``csw()``, instruments:
        :class:`fourge.errors.Unsupported`; inside :func:`demeaning` pyfixest fits them.
    data : frame or mapping
        As :func:`fourge.fe.feols` takes them.
    vcov : str or dict, optional
        ``"iid"`` (the default), ``"hetero"``, ``"HC1"``, ``{"CRV1": "a+b"}``, ``{"CRV3": "a"}``, or
        ``"NW"`` and ``"DK"`` with vcov_kwargs.
    vcov_kwargs : dict, optional
        Of ``"NW"`` and ``"DK"``: lag, time_id, panel_id.
    weights : str, optional
        A column.
    weights_type : {"aweights", "fweights"}
        Analytic weights, or frequencies.
    ssc : dict, optional
        Of :func:`ssc`, or of pyfixest's.
    fixef_rm : {"singleton", "none"}
        Whether rows that are alone in a level are dropped.
    collin_tol : float
        Of the pivots of X'WX in the units of the data, as in pyfixest.
    demeaner, fixef_tol, fixef_maxiter
        As in :func:`fourge.fe.feols`, whose tolerance is pyfixest's or tighter where none is given.
    copy_data : bool
        Nothing of the data is ever written, with either value.
    seed : int, optional
        Of fourge's computation; pyfixest's is that of a bootstrap, which there is not.
    demeaner_backend
        A name of a device, as in :func:`fourge.fe.feols`; another raises
        :class:`fourge.errors.Unsupported`.
    drop_intercept, store_data, lean, solver
        Taken at pyfixest's defaults, which are what is done; another value raises
        :class:`fourge.errors.Unsupported`, with what there is instead.
    use_compression, reps, context, split, fsplit
        As these.
    dof, method, precond, dtype, cond_limit, block, fill_cap, fused, max_sweeps
        fourge's own, as in :func:`fourge.fe.feols`.
    device, threads, memory_limit, time_limit, progress
        fourge's own, as in :func:`fourge.fe.feols`.

    Returns
    -------
    Fit
        A fit that did not converge is returned and warned of (:class:`fourge.errors.NotConverged`).
    """
    _options.check(feols, options)
    fml = _dialect(fml)
    if len(fe._fourge.fe_expand(fe._context({}, None), fml)) > 1:
        raise errors.Unsupported(
            f"{fml!r} stands for several models: fourge.fe.feols fits them, and pyfixest inside demeaning()"
        )
    _refuse(
        drop_intercept=drop_intercept,
        store_data=store_data,
        lean=lean,
        solver=solver,
        use_compression=use_compression,
        reps=reps,
        context=context,
        split=split,
        fsplit=fsplit,
    )
    if demeaner_backend not in fe._demeaners_elsewhere:
        _refuse(demeaner_backend=demeaner_backend)
    if not isinstance(copy_data, bool):
        raise TypeError(f"copy_data: expected a bool, got {copy_data!r}")
    rule = fe._rule(fe._ssc({**_default_ssc, **(ssc or {})}))
    spec, small = _covariance(vcov, rule, vcov_kwargs)
    asked: Any = {
        "weights": weights,
        "weights_type": weights_type,
        "ssc": small,
        "fixef_rm": fixef_rm,
        "collin_tol": collin_tol,
        "collin": "fixest",
        "demeaner": demeaner,
        "demeaner_backend": demeaner_backend,
        "fixef_tol": fixef_tol,
        "fixef_maxiter": fixef_maxiter,
        "seed": seed,
        "dof": dof,
        **options,
    }
    asked = {key: value for key, value in asked.items() if value is not None}
    bound = (
        ("FRG-FE-107",) if dof == "naive" else ()
    )  # that the count is no rank is what was asked for
    fit = fe._feols(fml, data, spec, progress, asked, bound)
    _tell_projected(fit)
    return Fit(fit, rule)


def _ordered(levels: Iterable[str]) -> list[str]:
    try:
        return sorted(levels, key=float)
    except ValueError:
        return sorted(levels)


def _pandas() -> Any:
    """pandas, or None where it is not installed."""
    try:
        import pandas
    except ImportError:
        return None
    return pandas


class Fit:
    """A fitted regression, as :func:`feols` returns it, with pyfixest's names.

    What it gives are objects of pandas, indexed by the terms; without pandas arrays whose entries
    have the terms' names, and dicts of columns.  ``fit`` is the :class:`fourge.fe.Fit`, with all
    that fourge tells of it.  Of pyfixest's attributes there are ``_N``, ``_k``, ``_df_t``,
    ``_vcov``, ``_coefnames``, ``_depvar``, ``_fml``, ``_r2``, ``_adj_r2``, ``_r2_within``,
    ``_rmse``.
    """

    def __init__(self, fit: fe.Fit, rule: Mapping[str, Any]):
        r = fit.result
        self.fit, self._rule = fit, rule
        self._fml, self._depvar, self._N = r["formula"], r["depvar"], r["n"]
        self._r2, self._adj_r2, self._r2_within, self._rmse = (
            r["r2"],
            r["r2_adjusted"],
            r["r2_within"],
            r["rmse"],
        )
        right = self._fml.partition("~")[2].partition("|")[0]
        columns = _fourge.fe_columns(fit._call[0], "1 ~" + right, ["iid"], None)
        self._coefnames = _names(fit.terms, list(dict.fromkeys(columns)), bool(r["fixed_effects"]))
        self._k = len(self._coefnames)

    def __copy__(self) -> Fit:
        other = Fit.__new__(Fit)
        other.__dict__.update(self.__dict__, fit=copy(self.fit))
        return other

    @property
    def _vcov(self) -> np.ndarray:
        return self.fit.vcov()

    @property
    def _df_t(self) -> float:
        return self.fit._shown["df_t"]

    def _column(self, label: str) -> Any:
        table = self.tidy()
        return table[label] if _pandas() else fe.Coefficients(table[label], self._coefnames)

    def coef(self) -> Any:
        """Estimates: a Series indexed by the terms."""
        return self._column("Estimate")

    def se(self) -> Any:
        """Standard errors under the covariance of the fit: a Series."""
        return self._column("Std. Error")

    def tstat(self) -> Any:
        """t statistics: a Series."""
        return self._column("t value")

    def pvalue(self) -> Any:
        """Two-sided p-values of the t distribution: a Series."""
        return self._column("Pr(>|t|)")

    def tidy(self, alpha: float = 0.05) -> Any:
        """A DataFrame indexed by ``Coefficient``, with the columns ``Estimate``, ``Std. Error``,
        ``t value``, ``Pr(>|t|)``, ``2.5%`` and ``97.5%``; without pandas a dict of these columns,
        Coefficient first.

        Parameters
        ----------
        alpha : float
            1 less the level of the interval, after which its columns are named.  Another one than
            0.05 is the same regression once more.
        """
        if not 0 < alpha < 1:
            raise ValueError(f"alpha={alpha!r}: expected a number between 0 and 1")
        table = self.fit._with_level(1 - alpha).tidy("pyfixest")
        table = {
            name: self._coefnames if name == "Coefficient" else values
            for name, values in table.items()
            if name != "projected"
        }
        pandas = _pandas()
        return pandas.DataFrame(table).set_index("Coefficient") if pandas else table

    def confint(
        self,
        alpha: float = 0.05,
        keep: Any = None,
        drop: Any = None,
        exact_match: bool = False,
        joint: bool = False,
        seed: int | None = None,
        reps: int = 10_000,
    ) -> Any:
        """A DataFrame of intervals, indexed by the terms; without pandas {column: values}.

        Parameters
        ----------
        alpha : float
            As in :meth:`tidy`.
        keep, drop : str or list of str, optional
            Regular expressions of terms (whole names with `exact_match`).
        exact_match : bool
            Whether they are whole names.
        joint, seed, reps
            Simultaneous intervals are not built: True is refused, as are the other two beside it.
        """
        _refuse(joint=joint)
        _alone("seed", seed, None, "joint=True")
        _alone("reps", reps, 10_000, "joint=True")
        table = self.tidy(alpha)
        terms = chosen(self._coefnames, keep, drop, exact_match)
        if not terms:
            raise ValueError(f"no coefficient matches keep and drop; there are {self._coefnames}")
        low, high = [name for name in table if re.fullmatch(r"[\d.]+%", str(name))]
        if _pandas():
            return table.loc[terms, [low, high]].rename_axis(None)
        rows = [self._coefnames.index(term) for term in terms]
        return {name: [table[name][row] for row in rows] for name in (low, high)}

    def vcov(self, vcov: str | Mapping[str, str], vcov_kwargs: Any = None, data: Any = None) -> Fit:
        """The same fit under another covariance from here on, and the fit itself is returned;
        ``_vcov`` is the matrix.

        Parameters
        ----------
        vcov : str or dict
            As in :func:`feols`.
        vcov_kwargs : dict, optional
            As in :func:`feols`.
        data
            Refused, unless it is None.
        """
        _refuse(data=data)
        self.fit.vcov(*_covariance(vcov, self._rule, vcov_kwargs))
        _tell_projected(self.fit)
        return self

    def _used(self, rows: np.ndarray) -> np.ndarray:
        return rows[~np.isnan(rows)]

    def resid(self) -> np.ndarray:
        """Residuals of the rows that were used; ``fit.fit.resid()`` has one for each row of the
        data."""
        return self._used(self.fit.resid())

    def predict(
        self,
        newdata: Any = None,
        atol: float = 1e-6,
        btol: float = 1e-6,
        type: Literal["link", "response"] = "link",
        se_fit: bool = False,
        interval: Any = None,
        alpha: float = 0.05,
    ) -> np.ndarray:
        """Fitted values of the rows that were used, or predictions.

        Parameters
        ----------
        newdata : frame or mapping, optional
            A prediction for each row, NaN where a value is missing or a level was not in the fit.
        type : {"link", "response"}
            Both are the same of a linear model.
        atol, btol, se_fit, interval, alpha
            Taken at their defaults alone.
        """
        if type not in ("link", "response"):
            raise ValueError(f"type={type!r}: expected 'link' or 'response'")
        _refuse(atol=atol, btol=btol, se_fit=se_fit, interval=interval)
        _alone("alpha", alpha, 0.05, "interval='prediction'")
        return self._used(self.fit.predict()) if newdata is None else self.fit.predict(newdata)

    def fixef(self, atol: float = 1e-6, btol: float = 1e-6) -> dict[str, dict[str, float]]:
        """{"C(factor)": {level: effect}}, numbers by size and words sorted, without the first level
        of every factor but the first, whose effect is 0.

        Where levels are in several components, or more is free, pyfixest's effects are the shortest
        vector; here they are what :meth:`fourge.fe.Fit.fixef` has, less those of the first levels.

        Parameters
        ----------
        atol, btol
            Taken at their defaults alone.
        """
        _refuse(atol=atol, btol=btol)
        if not self.fit.result["fixed_effects"]:
            raise ValueError("the regression has no fixed effects")
        found = {
            name: {level: effects[level] for level in _ordered(effects)}
            for name, effects in self.fit.fixef().items()
        }
        first, *others = found.values()
        for effects in others:
            zero = effects.pop(next(iter(effects)))
            effects.update((level, v - zero) for level, v in effects.items())
            first.update((level, v + zero) for level, v in first.items())
        return {f"C({name})": effects for name, effects in found.items()}

    def wald_test(self, R: Any = None, q: Any = None, distribution: str = "F") -> Any:
        """``statistic`` and ``pvalue`` of R b = q, a Series; without pandas a dict.  As in pyfixest
        F is for all coefficients at 0 alone, anything else becomes chi2 with a warning.  Its second
        degrees of freedom are those of the t statistics.

        Parameters
        ----------
        R : (k,) or (restrictions, k) array, optional
            Without, each coefficient, the intercept too, is tested to be zero.
        q : number or (restrictions,) array, optional
            Zeros without.
        distribution : {"F", "chi2"}
        """
        identity = np.eye(self._k)
        restrictions = identity if R is None else np.atleast_2d(np.asarray(R, np.float64))
        if distribution == "F" and not (
            np.array_equal(restrictions, identity) and (q is None or not np.any(q))
        ):
            warnings.warn(
                "wald_test: the distribution is chi2, as R is not the identity or q not zero",
                UserWarning,
                stacklevel=_outside(),
            )
            distribution = "chi2"
        test = self.fit.wald_test(restrictions, q, distribution)
        found = {key: test[key] for key in ("statistic", "pvalue")}
        pandas = _pandas()
        return pandas.Series(found) if pandas else found

    @_options.takes(fe.Fit.etable)
    def etable(self, type: str = "text", **options: Any) -> Any:
        """:meth:`fourge.fe.Fit.etable` as a `type` of "text", "md", "tex", "html", "docx" or "df", with its
        keywords and fourge's names of terms; several fits: ``fe.etable([fit.fit, ...])``."""
        _options.check(Fit.etable, options)
        return self.fit.etable(type, **options)

    def summary(self, digits: int = 3) -> None:
        """Prints the table of coefficients and what it rests on.

        Parameters
        ----------
        digits : int
            After the point.
        """
        print(self._text(digits))

    def _text(self, digits: int = 3) -> str:
        r, shown = self.fit.result, self.fit._shown
        effects = " + ".join(self.fit._factors)
        names = {"hc1": "HC1", "cluster": "CRV1", "crv3": "CRV3", "nw": "NW", "dk": "DK"}
        kind = names.get(shown["type"], shown["type"])
        if shown["clusters"] and shown["type"] in ("cluster", "crv3"):
            kind += f" ({' + '.join(shown['clusters'])})"
        lines = [
            "Estimation: OLS",
            f"Dep. var.: {self._depvar}" + f", Fixed effects: {effects}" * bool(effects),
            f"Inference: {kind}",
            f"Observations: {self._N}",
            "",
        ]
        table = self.fit.tidy("pyfixest")
        show = lambda column: [f"{v:.{digits}f}" for v in column]
        table.pop("projected", None)  # a remark says it
        columns = [
            [name, *(self._coefnames if name == "Coefficient" else show(values))]
            for name, values in table.items()
        ]
        widths = [max(map(len, column)) for column in columns]
        lines += [
            "  ".join(c.rjust(w) if k else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths)))
            for row in zip(*columns)
        ]
        lines += [
            *remarks(self.fit),
            *(f"{d['term']}: dropped, {d['reason']}" for d in r["dropped_terms"]),
            "---",
        ]
        within = f" R2 Within: {self._r2_within:.{digits}f}" * bool(effects)
        lines.append(f"RMSE: {self._rmse:.{digits}f} R2: {self._r2:.{digits}f}{within}")
        if not r["solver"]["converged"]:
            lines.append("NOT CONVERGED: see fit.result['solver']")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self._text()

    def _repr_html_(self) -> str:
        return self.fit._repr_html_()

    if not TYPE_CHECKING:  # to which this would be any name at all

        def __getattr__(self, name):
            if name.startswith("__") or name == "fit":  # of a copy that is being made
                raise AttributeError(name)
            more = (
                f"fit.fit.{name} is there"
                if hasattr(self.fit, name)
                else "pyfixest's own fits have what pyfixest has, inside demeaning()"
            )
            raise AttributeError(f"a fit of fourge.pyfixest has no {name!r}; {more}")


if not TYPE_CHECKING:

    def __getattr__(name):
        if name in ("fepois", "feglm", "quantreg", "did2s", "event_study", "lpdid"):
            raise AttributeError(
                f"fourge.pyfixest has no {name}: pyfixest's own, inside demeaning(), "
                "demeans with fourge"
            )
        raise AttributeError(f"module 'fourge.pyfixest' has no attribute {name!r}")


_hint(globals())
