"""Data frames and mappings as tables of the library."""

import numpy as np

from . import _fourge


def _column(name, values):
    """The array that a column is, and its labels where it is one of categories."""
    if hasattr(values, "cat"):  # a pandas categorical
        values = values.cat
        return values.codes.to_numpy(dtype=np.int32), [str(c) for c in values.categories]
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    a = np.asarray(values)
    if a.ndim != 1:
        raise TypeError(f"column '{name}': expected one axis, got {a.ndim}")
    if a.dtype.kind == "f":
        return np.ascontiguousarray(a, dtype=np.float64), None
    if a.dtype.kind in "iub":
        return np.ascontiguousarray(a, dtype=np.int64), None
    if a.dtype.kind in "mM":
        return np.ascontiguousarray(a).view(np.int64), None
    if a.dtype.kind in "OUS":
        missing = np.array([v is None or v != v for v in a], dtype=bool)
        words = np.array(["" if m else str(v) for v, m in zip(a, missing)])
        labels, codes = np.unique(words[~missing], return_inverse=True)
        out = np.full(len(a), -1, dtype=np.int32)
        out[~missing] = codes
        return out, [str(w) for w in labels]
    raise TypeError(f"column '{name}': the type {a.dtype} is not taken")


def table(context, data, columns):
    """A table of the named columns of `data`: anything with ``__arrow_c_stream__`` (polars, pyarrow, DuckDB,
    pandas with pyarrow installed), or a mapping of names to 1-D arrays."""
    if isinstance(data, _fourge.Table):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        try:
            capsule = data.__arrow_c_stream__()
        except ImportError:  # pandas without pyarrow
            capsule = None
        if capsule is not None:
            return _fourge.Table.from_arrow(context, capsule, columns)
    present = [c for c in columns if c in data]
    absent = [c for c in columns if c not in data]
    if absent:
        raise KeyError(f"the data have no column '{absent[0]}'; there are {list(data)[:20]}")
    arrays = {name: _column(name, data[name]) for name in present}
    rows = {len(a) for a, _ in arrays.values()}
    if len(rows) > 1:
        raise ValueError("the columns have different lengths: " + str({n: len(a) for n, (a, _) in arrays.items()}))
    out = _fourge.Table(context, rows.pop() if rows else 0)
    for name, (array, labels) in arrays.items():
        out.add(name, array, labels)
    return out


def arrays(columns):
    """{name: array} of what the library gives back as {name: (kind, bytes, labels)}."""
    out = {}
    for name, (kind, values, labels) in columns.items():
        a = np.frombuffer(values, dtype=(np.float64, np.int64, np.int32, np.int32)[kind])
        if labels is not None:
            a = np.array([*labels, None], dtype=object)[a]
        out[name] = a
    return out
