"""Small sets of real data that lie in the package.

>>> from fourge import datasets, fe
>>> fe.feols("invest ~ value + capital | firm + year", datasets.load("grunfeld"))

Who collected each, where from and under which licence stands in ``README.md`` of their folder,
:data:`FOLDER`.
"""

from __future__ import annotations

import csv
import pathlib

import numpy as np

from . import errors

__all__ = ["FOLDER", "load", "names", "path"]

#: The folder of the files.
FOLDER = pathlib.Path(__file__).with_name("data")


def names() -> list[str]:
    """The tables that :func:`load` reads."""
    return sorted(p.stem for p in FOLDER.glob("*.csv"))


def path(name: str) -> pathlib.Path:
    """Where a set's file lies.

    ``name`` is one of :func:`names`, or a file's whole name ("shakespeare.txt").  Raises
    errors.BadArgument for another.
    """
    for file in (FOLDER / f"{name}.csv", FOLDER / name):
        if name and file.parent == FOLDER and file.is_file():
            return file
    known = ", ".join(names())
    raise errors.BadArgument(f"name: there is no data set '{name}'; there are {known}")


def _column(cells: list[str]) -> np.ndarray:
    """int64 where every cell is a whole number, float64 where all are numbers or empty, else text."""
    for convert in (int, float):
        try:
            return np.array([convert(c) if c or convert is int else np.nan for c in cells])
        except ValueError:
            pass
    return np.array(cells)


def load(name: str) -> dict[str, np.ndarray]:
    """A table as {column: array of its n rows}, which ``fourge.fe`` takes as it is.

    ``name`` is one of :func:`names`.  Columns of whole numbers are int64, of other numbers float64
    with NaN for an empty cell, all others text.  ``pandas.DataFrame(load(name))`` makes it a frame.
    Raises errors.BadArgument where there is no such table.
    """
    if name not in names():
        known = ", ".join(names())
        raise errors.BadArgument(f"name: there is no table '{name}'; there are {known}")
    with open(path(name), newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {column: _column([row[k] for row in rows]) for k, column in enumerate(header)}
