"""Fits of fourge in marginaleffects: predictions, comparisons, slopes, hypotheses.

>>> import marginaleffects as me
>>> from fourge import fe
>>> from fourge.marginaleffects import model
>>> fit = fe.feols("y ~ x * z | firm", data, vcov={"CRV1": "firm"})
>>> me.avg_slopes(model(fit), variables="x", by="z")

marginaleffects knows packages by name and takes others by its class of adapters alone, so that a fit
goes in as ``model(fit)``.

Fixed effects are taken as they were estimated: slopes, contrasts and hypotheses of a linear model do
not depend on them; standard errors of its predictions are those of the regressors' part alone.  So
they are of all but hypotheses on coefficients where a generalised linear model has fixed effects; a
warning says so there.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from . import _fourge, errors, fe
from ._arrays import outside as _outside
from ._hints import hint as _hint

try:
    import polars as pl
    from marginaleffects.classes import ModelAbstract, ModelVault
except ImportError as e:
    raise ImportError("fourge.marginaleffects needs marginaleffects: "
                      "pip install marginaleffects") from e

__all__ = ["model"]


def _log_odds(p: np.ndarray) -> np.ndarray:
    return np.log(p / (1 - p))


def _logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _same(x: np.ndarray) -> np.ndarray:
    return x


def _links() -> dict[str, tuple[Any, Any]]:
    """{link: (it, its inverse)}."""
    from scipy.special import ndtr, ndtri  # which marginaleffects needs, too

    return {"identity": (_same, _same), "log": (np.log, np.exp), "logit": (_log_odds, _logistic),
            "probit": (ndtri, ndtr), "inverse": (np.reciprocal, np.reciprocal)}


def _column(found: tuple[int, bytes, list[str] | None], used: np.ndarray, ordered: bool) -> Any:
    """A column that the library gives back, in the rows that were used, as polars has it: words sorted, as :func:`fourge.fe.feols`
    has them, but for those of an ordered category."""
    kind, values, labels = found
    a = np.frombuffer(values, dtype=(np.float64, np.int64, np.int32, np.int32)[kind])[used]
    if labels is not None:
        words = np.array(labels, dtype=object)[a]
        return pl.Series(list(words), dtype=pl.Enum(sorted(set(words), key=labels.index if ordered else None)))
    return pl.Series(a == 1) if kind == 2 else pl.Series(a)


class _Names:
    """Which columns the parts of a formula read."""

    def __init__(self, fit: fe.Fit):
        context, outer = fit._call[0], fit._call[4]
        beside = {key: outer[key] for key in ("offset", "panel") if outer.get(key) is not None}
        read = lambda fml, more=None: list(dict.fromkeys(
            _fourge.fe_columns(context, fml, ["iid"], more)))
        left, right = fit.result["formula"].split("~", 1)
        parts = right.rsplit("~", 1)[0].split("|")
        instruments = "first_stage" in fit.result
        effects = parts[1] if len(parts) > 1 + instruments else ""
        self.response = read(f"1 ~ {left}")
        self.regressors = [*read(f"1 ~ {parts[0]}"),
                           *(read(f"1 ~ {parts[-1]}") if instruments else [])]
        plain = re.sub(r"\[[^\]]*\]+", "", effects)
        self.factors = read(f"1 ~ 1 | {plain}") if plain.strip() else []
        slopes = read(f"1 ~ 1 | {effects}") if plain.strip() else []
        #: those of i(x) and factor(x)
        self.categories = re.findall(r"\b(?:i|factor)\(\s*(\w+)", right)
        self.others = [*slopes, *(read("1 ~ 1", beside) if beside else [])]


class _Model(ModelAbstract):  # type: ignore[misc]
    """A fit, as marginaleffects asks for one."""

    def __init__(self, fit: fe.Fit):
        names = self._names = _Names(fit)
        used = ~np.isnan(fit.resid())
        columns, ordered = fit._call[2].columns(), fit._call[2].ordered()
        known = list(dict.fromkeys([*names.response, *names.regressors, *names.factors,
                                    *names.others]))
        data = pl.DataFrame({name: _column(found, used, name in ordered) for name, found in columns.items()})
        # marginaleffects takes names out of the formula, which is not ours, as fixest's are no formulaic's
        quoted = [name if name.isidentifier() else f"`{name}`" for name in known]
        super().__init__(fit, ModelVault(
            modeldata=data, variable_names=known, package="fourge",
            formula=f"{quoted[0]} ~ " + " + ".join(quoted[1:] or ["1"])))
        for name in {*names.factors, *names.categories}:
            self.set_variable_type(name, "character")

    @property
    def df_resid(self) -> float:
        """Degrees of freedom of the t statistics, infinite for z."""
        return float(self.model._shown["df_t"])

    def find_response(self) -> str | None:
        return self._names.response[0] if self._names.response else None

    def find_predictors(self) -> list[str]:
        return list(dict.fromkeys(self._names.regressors))

    def get_coef(self) -> np.ndarray:
        return np.asarray(self.model.coef())

    def get_coefnames(self) -> np.ndarray:
        return np.array(self.model.terms)

    get_coef_names = get_coefnames

    def get_vcov(self, vcov: bool | str | Mapping[str, str] = True) -> np.ndarray | None:
        if vcov is False or vcov is None:
            return None
        return (self.model if vcov is True else copy(self.model).vcov(vcov)).vcov()

    def get_exog(self, newdata: Any) -> np.ndarray:
        """Regressors, and behind them what effects and offset add to the linear predictor."""
        fit = self.model
        if "family" in fit.result and fit.result["fixed_effects"]:
            warnings.warn(
                "the standard errors take the fixed effects for known, which those of a "
                f"{fit.result['family']} model depend on: ask for vcov=False",
                UserWarning, stacklevel=_outside())
        x = fit.regressors(newdata)
        link = _links()[fit.result.get("link", "identity")][0]
        return np.column_stack((x, link(fit.predict(newdata)) - x @ self.get_coef()))

    def get_predict(self, params: np.ndarray, newdata: np.ndarray) -> Any:
        mean = _links()[self.model.result.get("link", "identity")][1]
        values = mean(newdata[:, :-1] @ np.asarray(params) + newdata[:, -1])
        return pl.DataFrame({"rowid": np.arange(len(values), dtype=np.int32), "estimate": values})


def model(fit: fe.Fit) -> Any:
    """A fit as marginaleffects takes it: ``marginaleffects.slopes(model(fit))``.

    Parameters
    ----------
    fit : fourge.fe.Fit
        Of :func:`fourge.fe.feols`, ``feiv``, ``feglm``, ``fepois`` or ``fenegbin``.  Means over cohorts, which
        ``sunab()`` shows, have no columns and are refused where regressors are asked for.

    Returns
    -------
    marginaleffects.classes.ModelAbstract
        Its rows are those that the fit used, its categories of :class:`polars.Enum`.  ``vcov`` of
        marginaleffects takes the names and dicts of :func:`fourge.fe.feols`.
    """
    if not isinstance(fit, fe.Fit):
        raise TypeError(f"fit: expected a Fit of fourge.fe, got {type(fit).__name__}")
    if "two_stage" in fit.result:
        raise errors.Unsupported("a fit in two stages has predictions of its second stage alone: "
                                 "marginaleffects would take them for those of the outcome")
    return _Model(fit)


_hint(globals())
