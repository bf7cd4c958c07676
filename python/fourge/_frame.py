"""Data frames and mappings as tables of the library."""

import difflib
import os

import numpy as np

from . import _arrays, _fourge, errors


def _categories(a, missing, order=None):
    """Codes and labels of any values, the labels sorted or in the order given; -1 where values are missing."""
    words = np.array([str(v) for v in a[~missing]])
    labels, codes = np.unique(words, return_inverse=True)
    if order is not None:
        codes = np.array([order.index(w) for w in labels], dtype=np.int32)[codes]
    out = np.full(len(a), -1, dtype=np.int32)
    out[~missing] = codes
    return out, [str(w) for w in labels] if order is None else order


def is_missing(v):
    return v is None or type(v).__name__ in ("NAType", "NaTType") or (isinstance(v, (float, np.floating, np.datetime64)) and v != v)


def _word(category):
    """The label of a category; whole numbers without a point, as in formulas: i(x, ref=1)."""
    return str(int(category)) if isinstance(category, float) and category.is_integer() else str(category)


def column(name, values):
    """The array that a column is, int32 for booleans, and its labels where it is one of categories."""
    if hasattr(values, "columns"):
        raise TypeError(f"{len(values.columns)} columns are named '{name}': give them names of their own")
    coded = getattr(values, "cat", values)  # of a pandas series, or a pandas Categorical itself
    if hasattr(coded, "codes") and hasattr(coded, "categories"):
        return np.asarray(coded.codes, dtype=np.int32), [_word(c) for c in coded.categories]
    if hasattr(values, "detach"):
        values = values.detach()
        if str(getattr(values, "device", "cpu")) != "cpu":
            raise TypeError(f"column '{name}' is on {values.device}: move it to the CPU's memory first, with .cpu()")
    dtype = getattr(values, "dtype", None)
    order = list(dtype.categories) if type(dtype).__name__ == "Enum" else None  # of polars
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ma.MaskedArray):
        values = np.where(np.ma.getmaskarray(values), None, values.data.astype(object))
    a = np.asarray(values)
    if a.ndim != 1:
        raise TypeError(f"column '{name}': expected one axis, got {a.ndim}")
    kind = a.dtype.kind
    if kind == "b":
        return a.astype(np.int32), None
    if kind == "O":
        missing = np.array([is_missing(v) for v in a], dtype=bool)
        if not missing.all() and all(isinstance(v, (bool, np.bool_)) for v in a[~missing]):
            return np.where(missing, -1, a).astype(np.int32), None
        if all(isinstance(v, (int, float, np.number, np.bool_)) and not isinstance(v, np.complexfloating) for v in a[~missing]):
            a = np.where(missing, np.nan, a).astype(np.float64) if missing.any() else np.array(a.tolist())
            kind = a.dtype.kind
    if kind == "f":
        return np.ascontiguousarray(a, dtype=np.float64), None
    if kind in "iu" and not (a.dtype == np.uint64 and a.size and int(a.max()) > np.iinfo(np.int64).max):
        whole = np.ascontiguousarray(a, dtype=np.int64)
        if whole.size and whole.min() == np.iinfo(np.int64).min:
            raise errors.BadData(f"column '{name}', row {int(whole.argmin()) + 1}: {whole.min()} stands for a missing value here; make it "
                                 "None or NaN, or the column one of float64", "FRG-IO-005")
        return whole, None
    if kind in "mM":  # counts of their unit, as of Arrow; NaT is -2^63, a missing one
        return np.ascontiguousarray(a, dtype=a.dtype.newbyteorder("=")).view(np.int64), None
    if kind in "OUSu":
        return _categories(a, np.array([is_missing(v) for v in a], dtype=bool), order)
    raise TypeError(f"column '{name}': the type {a.dtype} is not taken")


def _narrowed(frame, columns):
    """The columns of a pandas frame that are asked for, as pyarrow converts all that it is given, and categories as words,
    which is what the library has, in their order, which Arrow keeps where it is said to mean something."""
    if not all(name in frame for name in columns):
        return frame
    frame = frame[columns]
    for name in columns:
        values = frame[name]
        if hasattr(values, "cat") and hasattr(values.cat, "categories"):
            if not all(isinstance(c, str) for c in values.cat.categories):
                values = values.cat.rename_categories(_word)
            frame = frame.assign(**{name: values.cat.as_ordered()})
    return frame


def _chosen(columns, present):
    """The columns that are asked for where all are there; else None, for all: the library names the one that is not."""
    return list(columns) if set(columns) <= set(present) else None


def _is_lazy(data):
    return hasattr(data, "collect_batches")  # a LazyFrame of polars


def _is_dataset(data):
    return hasattr(data, "scanner") and hasattr(data, "schema")  # of pyarrow


def _is_relation(data):
    return type(data).__name__ == "DuckDBPyRelation"


def _in_batches(data, columns):
    """What gives the columns of `data` batch by batch, of those that have nothing yet but how to make them; else `data`."""
    if _is_lazy(data):
        wanted = _chosen(columns, data.collect_schema().names())
        return (data if wanted is None else data.select(wanted)).collect_batches(lazy=True)
    if _is_dataset(data):
        return data.scanner(columns=_chosen(columns, data.schema.names)).to_reader()
    if _is_relation(data) and _chosen(columns, data.columns):
        return data.select(*('"' + name.replace('"', '""') + '"' for name in columns))
    return data


def _stream(data, columns):
    """An Arrow stream of `data`, None where these have none."""
    data = _in_batches(data, columns)
    if not hasattr(data, "__arrow_c_stream__"):
        return None
    if not hasattr(data, "iloc"):
        return data.__arrow_c_stream__()
    try:  # pandas
        return _narrowed(data, columns).__arrow_c_stream__()
    except (ImportError, NotImplementedError, TypeError, ValueError):  # no pyarrow, or values that it does not convert
        return None


def is_path(data):
    """Is it the name of a file?"""
    return isinstance(data, (str, bytes, os.PathLike))


class Untrusted(os.PathLike):
    """The path of a file whose maker may mean harm: what is foreign in it is decoded by a process with limits, whenever it is read."""

    def __init__(self, path):
        if not is_path(path):
            raise TypeError(f"untrusted=True is of files: data is a {type(path).__name__}, and read already")
        self._path = os.fspath(path)

    def __fspath__(self):
        return self._path

    def __repr__(self):
        return f"Untrusted({self._path!r})"


def with_spool(data, options):
    """`options`, and the folder for rows beyond memory_limit, as the program has it: that of TMPDIR, or /var/tmp, where
    `data` is a file.  A stream may have no end, and would fill the disk: there spool has to be given."""
    limited = _arrays.bytes_of(options.get("memory_limit")) and options.get("spool") is None and is_path(data) and os.path.isfile(data)
    return {**options, "spool": os.environ.get("TMPDIR") or "/var/tmp"} if limited else options


def table(context, data, columns):
    """A table of the named columns of `data`: anything with ``__arrow_c_stream__`` (polars, pyarrow, DuckDB,
    pandas with pyarrow installed), the path of a file, or a mapping of names to 1-D arrays."""
    if isinstance(data, _fourge.Table):
        return data
    if is_path(data):
        return _fourge.Table.read(context, data, columns, isinstance(data, Untrusted))
    capsule = _stream(data, columns)
    if capsule is not None:
        found = _fourge.Table.from_arrow(context, capsule, columns)
        if found.rows() == 0 and hasattr(data, "read_next_batch"):
            raise errors.BadData(f"no rows are left in the {type(data).__name__}: a reader gives its batches once and serves one fit; "
                                 "make a new one, or keep its table (read_all())", "FRG-FE-002")
        return found
    if hasattr(data, "collect") and not hasattr(data, "keys"):
        raise TypeError(f"data: a {type(data).__name__} has no values yet; collect() it first")
    if isinstance(data, np.ndarray) and data.dtype.names:
        data = {name: data[name] for name in data.dtype.names}
    if isinstance(data, np.ndarray):
        raise TypeError("data: an array has no names of columns; give {name: column, ...}")
    if not hasattr(data, "__getitem__") or not hasattr(data, "__contains__") or isinstance(data, (list, tuple)):
        raise TypeError(f"data: expected a frame or a mapping of names to arrays, got {type(data).__name__}")
    present = [c for c in columns if c in data]
    absent = [c for c in columns if c not in data]
    if absent:
        near = difflib.get_close_matches(absent[0], [str(name) for name in data], 1)
        raise KeyError(f"the data have no column '{absent[0]}'; " + (f"did you mean '{near[0]}'?" if near else f"there are {list(data)[:20]}"))
    arrays = {name: column(name, data[name]) for name in present}
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


class Coded:
    """A column of words by their codes, -1 for a missing one; the categories keep their order."""

    def __init__(self, codes, categories):
        self.codes, self.categories = codes, categories

    def __array__(self, dtype=None, copy=None):
        return np.array([*self.categories, None], dtype=object)[self.codes]


def _values(kind, values, labels):
    """A column that the library gives back as :func:`column` takes it, logicals as such."""
    a = arrays({"": (kind, values, None)})[""]
    return Coded(a, labels) if labels is not None else np.array([False, True, None], dtype=object)[a] if kind == 2 else a


def at_hand(data):
    """Is data[name] a column?  Not of paths, nor of what has nothing yet but how to make its rows."""
    if is_path(data) or isinstance(data, _fourge.Table) or _is_lazy(data) or _is_dataset(data) or _is_relation(data):
        return False
    return hasattr(data, "keys") or hasattr(data, "columns") or not hasattr(data, "__arrow_c_stream__")


def loaded(context, data, columns):
    """`data`, or {name: values} of the columns named where they are not at hand."""
    if at_hand(data):
        return data
    return {name: _values(*found) for name, found in table(context, data, columns).columns().items()}


def narrow(data, names):
    """The columns `names` of what :func:`table` takes, in a form that can be pickled: of frames a frame, of mappings a mapping, of what
    exports an Arrow stream alone a table of pyarrow.  A path stays one."""
    if is_path(data):
        return data
    if isinstance(data, _fourge.Table):
        raise TypeError("a fit of a Table is not pickled: keep coef(), vcov() and tidy(), or fit a frame or a mapping")
    if isinstance(data, np.ndarray):  # with names
        return data[list(names)]
    if hasattr(data, "keys") and not hasattr(data, "columns"):
        return {name: data[name] for name in names}
    if hasattr(data, "select") and type(data).__module__.split(".")[0] in ("polars", "pyarrow"):
        return data.select(list(names))
    if hasattr(data, "loc") and hasattr(data, "columns"):
        return data[list(names)]
    try:
        import pyarrow
    except ImportError as e:
        raise TypeError(f"a fit of {type(data).__name__} is pickled with its columns as a table of pyarrow: pip install pyarrow, or keep coef(), "
                        "vcov() and tidy()") from e
    return pyarrow.RecordBatchReader.from_stream(data).read_all().select(list(names))
