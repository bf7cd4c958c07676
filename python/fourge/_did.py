"""Difference in differences: what ``fourge.fe`` has under pyfixest's names, each a regression or several of :func:`fourge.fe.feols`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _frame, errors
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


def treated(time: np.ndarray, first: np.ndarray) -> np.ndarray:
    """(n,) float64: 1 from the first treatment on, 0 before it; NaN where one is missing."""
    return np.where(np.isnan(time) | np.isnan(first), np.nan, time >= first)


def controls(treatment: np.ndarray, what: str, which: str = "") -> None:
    """Raises where there is nothing to compare."""
    if not np.any(treatment == 0):
        raise errors.BadData(f"{what}: every row is treated; there are no untreated observations to compare with", "FRG-FE-066")
    if not np.any(treatment == 1):
        raise errors.BadData(f"{what}: no row is treated{which}", "FRG-FE-068")


def cohorts(time: np.ndarray, first: np.ndarray, units: Any, what: str) -> np.ndarray:
    """(n,): the first treatment, infinite for those that are not treated within the data, NaN for cohorts that have no period before
    it, of which it warns: they are compared with none."""
    first = np.where(first > np.nanmax(time, initial=-np.inf), np.inf, first)
    controls(treated(time, first), what)
    values, of = np.unique(first, return_inverse=True)
    begin = np.full(len(values), np.inf)
    np.fmin.at(begin, of, time)
    always = np.isfinite(first) & (begin >= values)[of]
    if always.any():
        count = len(np.unique(np.asarray(units)[always].astype(str)))
        warnings.warn(f"FRG-FE-155: {what}: {np.sum(always)} rows of {count} units that are treated from their cohort's first period on are left "
                      "out: nothing tells what they were before", UserWarning, stacklevel=outside())
    first = np.where(always, np.nan, first)
    controls(treated(time, first), what, " of the units with a period before their treatment")
    return first


def reference(since: np.ndarray, what: str) -> float:
    """The relative period that the others are compared with: the last one before the treatment, of which it warns where that is not -1."""
    if np.any(since == -1):
        return -1.0
    last = float(np.max(since[since < 0]))
    warnings.warn(f"{what}: no treated unit has a row one period before its treatment; the reference is the relative period {last:g}, the last one "
                  "before it", UserWarning, stacklevel=outside())
    return last


def calendar(time: np.ndarray, first: np.ndarray, last: float, what: str) -> np.ndarray:
    """(n,): the cohorts as sunab() reads them, the never treated in no period; each treated one has rows at the relative period `last`."""
    known = first[np.isfinite(first)]
    gone = known[~np.isin(known, time)]
    if len(gone):
        after = np.min(time[time > gone[0]])
        raise errors.BadData(f"{what}: no row is of the period {gone[0]:g} in which a cohort's treatment begins, and estimator='saturated' would take "
                             f"it for never treated; write {after:g}, the next period that is there, or take estimator='twfe' or 'did2s'")
    bare = np.setdiff1d(known, first[time - first == last])
    if len(bare):
        raise errors.BadData(f"{what}: the cohort {bare[0]:g} has no row at {bare[0] + last:g}, which is what estimator='saturated' compares it with; "
                             "leave its rows out, or take estimator='twfe' or 'did2s'")
    return np.where(np.isinf(first), np.nanmax(time) + 1, first)


class Panel:
    """Rows by unit and time: what a column is `h` periods later."""

    def __init__(self, units: Any, time: np.ndarray, what: str):
        known, self._what = ~np.isnan(time), what
        if np.any(time[known] != np.rint(time[known])):
            raise errors.BadData(f"{what}: a time is no whole number", "FRG-FE-011")
        codes = np.unique(np.asarray(units).astype(str), return_inverse=True)[1]
        low, high = (time[known].min(), time[known].max()) if known.any() else (0, 0)
        self._span = int(high - low) + 1
        self._keys = np.where(known, codes * (2.0 * self._span) + (time - low), -1).astype(np.int64)
        self._order = np.argsort(self._keys, kind="stable")
        self._sorted = self._keys[self._order]
        twice = np.flatnonzero((np.diff(self._sorted) == 0) & (self._sorted[1:] >= 0))
        if len(twice):
            row = int(self._order[twice[0]])
            raise errors.BadData(f"{what}: unit {np.asarray(units)[row]} has two rows at time {time[row]:g}", "FRG-FE-030")

    def check_steps(self, name: str) -> None:
        """Raises where no unit has rows in two periods that follow each other."""
        apart = np.diff(self._sorted[self._sorted >= 0])
        if len(apart) and not np.any(apart == 1):
            raise errors.BadData(f"{self._what}: no unit has rows at two times '{name}' that follow each other; the least distance is {np.min(apart)}: "
                                 "number the periods 1, 2, 3, and the cohorts with them")

    def later(self, values: np.ndarray, h: int) -> np.ndarray:
        """(n,): the values of the row of the same unit `h` periods later, NaN where there is none."""
        if abs(h) >= self._span:
            return np.full(len(values), np.nan)
        wanted = self._keys + h
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        found = (self._sorted[at] == wanted) & (self._keys >= 0)
        return np.where(found, values[self._order[at]], np.nan)


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


# ---- randomisation inference ----------------------------------------------------------------------------------------

#: Permuted columns that are demeaned together: the models of one call share plan and columns.
BLOCK = 64


def permuted(fml: str, name: str) -> tuple[str, str]:
    """The formula before and behind the one place where the column `name` stands, as a term by itself."""
    found = [m for m in NAME.finditer(fml) if m[0].strip("`") == name]
    alone = len(found) == 1 and re.search(r"[~+]\s*$", fml[:found[0].start()]) and re.match(r"\s*([+|]|$)", fml[found[0].end():])
    if not alone:
        raise errors.BadArgument(f"resampvar={name!r}: expected a column that is one term of {fml!r}, and stands nowhere else in it")
    return fml[:found[0].start()], fml[found[0].end():]


def permutations(values: np.ndarray, groups: np.ndarray | None, used: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Endless: the values with those of the rows in use, or of their groups, in random order; NaN in other rows."""
    random, out = np.random.default_rng(seed), np.full(len(values), np.nan)
    if groups is None:
        while True:
            out[used] = random.permutation(values[used])
            yield out.copy()
    _, first, of = np.unique(groups[used].astype(str), return_index=True, return_inverse=True)
    each = values[used][first]
    if np.any(each[of] != values[used]):
        raise errors.BadData("cluster: the variable that is permuted is not the same in all rows of a cluster", "FRG-FE-068")
    while True:
        out[used] = random.permutation(each)[of]
        yield out.copy()


def resampled(fit: Fit, name: str, data: Any) -> tuple[str, dict[str, Any]]:
    """The column that is permuted, which a logical's term has with TRUE behind it, and the row of its coefficient."""
    if name not in names(data) and name.endswith("TRUE"):
        name = name.removesuffix("TRUE")
    logical = name in names(data) and _frame.column(name, data[name])[0].dtype == np.int32 and f"{name}FALSE" not in fit.terms
    term = f"{name}TRUE" if logical else name
    permuted(fit.result["formula"], name)
    if term not in fit.terms:
        gone = [d["term"] for d in fit.result["dropped_terms"]]
        why = "was dropped from the regression" if term in gone else "is no term of the second stage" if "first_stage" in fit.result else "is no term"
        raise errors.BadArgument(f"resampvar={name!r}: it {why}; there are {fit.terms}")
    return name, next(c for c in fit._shown["coefficients"] if c["term"] == term)


def ritest(fit: Fit, name: str, cluster: str | None, reps: int, type: str, seed: int) -> dict[str, Any]:
    """What :meth:`fourge.fe.Fit.ritest` returns."""
    keys = {"randomization-c": "estimate", "randomization-t": "statistic"}
    if type not in keys:
        raise ValueError(f"type={type!r}: expected one of {list(keys)}")
    if reps < 1:
        raise ValueError(f"reps={reps}: expected at least 1")
    if "two_stage" in fit.result:
        raise errors.Unsupported("ritest: the fit has two stages, and a permutation would act in the second one alone, with the first stage's rows "
                                 "those of the true treatment; permute it in the data and call did2s for each")
    other = [] if cluster is None or cluster in fit._names else [cluster]
    source = fit._data if other or _frame.at_hand(fit._data) else fit._call[2]  # a stream gives its rows once
    data = _frame.loaded(fit._call[0], source, [*fit._names, *other])
    name, shown = resampled(fit, name, data)
    before, behind = permuted(fit.result["formula"], name)
    values, used = numbers(data, name, "ritest"), ~np.isnan(fit.resid())
    groups = None if cluster is None else np.asarray(data[cluster])
    draws = permutations(values, groups, used, seed)
    found: list[float] = []
    while len(found) < reps:
        more = {f"{name} {k}": next(draws) for k in range(min(BLOCK, reps - len(found)))}
        terms = ", ".join(f"`{one}`" for one in more)
        fits = fit._with_formula(f"{before}{f'sw({terms})' if len(more) > 1 else terms}{behind}", Beside(data, more))
        drawn = [c[keys[type]] for one in fits for c in one["coefficients"] if c["term"] in more]
        found += drawn
        if len(drawn) != len(more):
            raise errors.BadData("ritest: a permuted variable is collinear with the effects or the other regressors", "FRG-FE-006")
    statistics = np.array(found)
    p = float(np.mean(np.abs(statistics) >= abs(shown[keys[type]]) * (1 - 1e-12)))
    return {"term": shown["term"], "estimate": shown["estimate"], "p_value": p, "std_error": float(np.sqrt(p * (1 - p) / reps)), "reps": reps,
            "statistics": statistics}
