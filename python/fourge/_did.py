"""Difference in differences: what ``fourge.fe`` has under pyfixest's names, each a regression or several of :func:`fourge.fe.feols`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _fourge, _frame, errors
from ._arrays import outside

if TYPE_CHECKING:
    from .fe import Fit


class Beside(Mapping[str, Any]):
    """Columns beside those of `data`, which are not copied."""

    def __init__(self, data: Any, more: dict[str, Any]):
        self._data, self._more = data, more

    def __getitem__(self, name: str) -> Any:
        return self._more[name] if name in self._more else self._data[name]

    def __contains__(self, name: object) -> bool:
        return name in self._more or name in names(self._data)

    def __iter__(self) -> Iterator[str]:
        return iter([*names(self._data), *self._more])

    def __len__(self) -> int:
        return len(names(self._data)) + len(self._more)


def names(data: Any) -> list[str]:
    """The names of the columns of a frame or a mapping."""
    found = getattr(data, "column_names", None) or getattr(data, "columns", None)
    if found is None:
        found = data.dtype.names if isinstance(data, np.ndarray) else data
    if found is None:
        raise TypeError("data: an array has no names of columns; give {name: column, ...}")
    return [str(name) for name in found]


def present(data: Any, name: str, what: str) -> None:
    """Raises where the data have no such column."""
    if name not in names(data):
        raise KeyError(f"{what}: the data have no column '{name}'; there are {names(data)[:20]}")


def numbers(data: Any, name: str, what: str) -> np.ndarray:
    """(n,) float64: a column of numbers, NaN where one is missing; `what` stands in messages."""
    present(data, name, what)
    array, labels = _frame.column(name, data[name])
    if labels is not None or is_date(data[name]):
        holds = "words" if labels is not None else "dates"
        raise errors.BadData(f"{what}: '{name}' holds {holds}; give numbers, of periods such as the year or the number of the month, of cohorts "
                             "the period of the first treatment", "FRG-FE-065", name)
    if array.dtype == np.int32:  # logicals, -1 is missing
        return np.where(array < 0, np.nan, array)
    return array.astype(np.float64)


def is_date(values: Any) -> bool:
    """Are they moments or spans of time?"""
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values).dtype.kind in "mM"


#: A name that formulas take without backticks.
PLAIN_NAME = re.compile(r"[^\W\d][\w.]*|\.(?:[^\W\d][\w.]*)?")


def quoted(name: str) -> str:
    """The name as formulas have it."""
    return name if PLAIN_NAME.fullmatch(name) else f"`{name}`"


#: A name as formulas have it, in backticks or without.
NAME = re.compile(r"`[^`]*`|[^\W\d][\w.]*")


def words(*texts: Any) -> set[str]:
    """The names in formulas and covariances; of None none."""
    return {word.strip("`") for text in texts if text is not None for word in NAME.findall(str(text))}


def unused(name: str, taken: set[str]) -> str:
    """`name`, with underscores behind it until it is none of those that are taken."""
    while name in taken:
        name += "_"
    return name


def rename(rows: list[dict[str, Any]], shown: dict[str, str]) -> None:
    """Calls the terms of some columns, and those of their levels, as the result is documented to have them."""
    for row in rows:
        head, colons, level = (row["term"] or "").partition("::")
        if head in shown:
            row["term"] = shown[head] + colons + level


def reference(last: float, what: str) -> float:
    """The relative period that the others are compared with, of which it warns where that is not -1."""
    if last != -1:
        warnings.warn(f"{what}: no treated unit has a row one period before its treatment; the reference is the relative period {last:g}, the last one "
                      "before it", UserWarning, stacklevel=outside())
    return last


def table_of(context: Any, data: Any, given: dict[str, Any], subset: str | None, what: str) -> Any:
    """A table of the columns that are given and of those of the data that `subset` reads."""
    read = [] if subset is None else _fourge.fe_columns(context, f"{quoted(next(iter(given)))} ~ 1", ["iid"], {"subset": subset})
    for name in read:
        if name not in given:
            present(data, name, what)
            given[name] = data[name]
    return _frame.table(context, given, list(given))


def study(context: Any, data: Any, names: tuple[str, str, str], subset: str | None, calendar: bool) -> tuple[dict[str, np.ndarray], float]:
    """The columns of an event study of the columns `names`, unit, period and cohort, (n,) each: whether a row is treated, the periods since
    then, the cohort as sunab() reads it; and the reference (``frg_event_study``)."""
    unit, time, cohort = names
    given = {time: numbers(data, time, "event_study"), cohort: numbers(data, cohort, "event_study")}
    present(data, unit, "event_study")
    given.setdefault(unit, data[unit])
    table = table_of(context, data, given, subset, "event_study")
    columns = {name: np.empty(len(given[time])) for name in ("is_treated", "rel_time", "first_treated")}
    asked = {"unit": unit, "time": time, "cohort": cohort, "calendar": calendar}
    if subset is not None:
        asked["subset"] = subset
    return columns, _fourge.event_study(context, table, asked, *columns.values())


def projections(context: Any, data: Any, names: tuple[str, str, str, str], xfml: str | None,
                options: dict[str, Any]) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """The columns of local projections of the columns `names`, outcome, unit, period and cohort: whose treatment begins, and by horizon
    the change of the outcome since the period before, missing in rows that are not compared."""
    y, unit, time, cohort = names
    columns = {time: numbers(data, time, "lpdid"), cohort: numbers(data, cohort, "lpdid"), y: numbers(data, y, "lpdid")}
    present(data, unit, "lpdid")
    columns.setdefault(unit, data[unit])
    table = table_of(context, data, columns, options.get("subset"), "lpdid")
    found = _fourge.lpdid(context, f"{quoted(y)} ~ {xfml or 1}", table, {**options, "panel": f"`{unit}`,`{time}`", "cohort": cohort})
    return np.frombuffer(found["treatment"]), {h: np.frombuffer(values) for h, values in found["outcomes"]}


class LocalProjections:
    """What :func:`fourge.fe.lpdid` returns: `fits`, {horizon: Fit}, and their estimates in one table."""

    def __init__(self, fits: dict[int, Fit]):
        self.fits = dict(sorted(fits.items()))

    def tidy(self, style: str = "broom") -> dict[str, list[Any]]:
        """{column: values} with a row for each horizon, as of :meth:`fourge.fe.Fit.tidy`, and N, the rows of each."""
        out: dict[str, list[Any]] = {}
        for horizon, fit in self.fits.items():
            table = fit.tidy(style)
            at = fit.terms.index("treat_diff")
            first = next(iter(table))
            for key, values in table.items():
                name = f"time_to_treatment::{horizon}" if len(self.fits) > 1 else values[at]
                out.setdefault(key, []).append(name if key == first else values[at])
            out.setdefault("N", []).append(fit.nobs)
        return out

    def coef(self) -> dict[int, float]:
        """{horizon: estimate}."""
        return {h: float(fit.coef()["treat_diff"]) for h, fit in self.fits.items()}

    def se(self) -> dict[int, float]:
        """{horizon: standard error}."""
        return {h: float(fit.se()["treat_diff"]) for h, fit in self.fits.items()}

    def __repr__(self) -> str:
        rows = [f"{h:>4}  {self.coef()[h]:.6g}  ({self.se()[h]:.6g})" for h in self.fits]
        return "Local projections: horizon, estimate, std. error\n" + "\n".join(rows)


def ritest(fit: Fit, name: str, cluster: str | None, strata: str | None, reps: int, type: str, seed: int) -> dict[str, Any]:
    """What :meth:`fourge.fe.Fit.ritest` returns."""
    kinds = {"randomization-c": "estimate", "randomization-t": "t"}
    if type not in kinds:
        raise ValueError(f"type={type!r}: expected one of {list(kinds)}")
    if reps < 1:
        raise ValueError(f"reps={reps}: expected at least 1")
    columns = {key: column for key, column in (("cluster", cluster), ("strata", strata)) if column is not None}
    for column in columns.values():
        fit._read(f"cluster={quoted(column)}")
    outer, options = fit._call[4:6]
    statistics = np.empty(reps)
    asked = {"variable": name, "reps": reps, "statistic": kinds[type], "seed": seed, **columns}
    found = fit._fit.ritest([fit._shown["spec"]], {**outer, "ssc": fit._shown["ssc"]}, options, asked, statistics)
    return {"term": found["term"], "estimate": found["estimate"], "p_value": found["p_value"], "std_error": found["std_error"],
            "reps": reps, "statistics": statistics}
