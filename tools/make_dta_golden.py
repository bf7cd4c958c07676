"""Writes tests/golden/stata_*.dta by pandas and tests/golden/stata.tsv, what pandas reads of them.

    python tools/make_dta_golden.py        (with pandas; the versions used are in the table's first line)

One line a column: file, column, kind (n, i, c) and the cells; a category's cells are the first 16
letters of its labels, "?" is missing.
"""

from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden"


def frame():
    wage = np.array([1.5, np.nan, 2.25, 1e100, -3.0])
    return pd.DataFrame({
        "firm": np.array([3, 1, 3, 2, 1], dtype=np.int32),
        "age": np.array([30, -100, 99, 0, 41], dtype=np.int8),
        "pay": np.array([30000, -100, 99, 0, 32740], dtype=np.int16),
        "wage": wage,
        "share": np.array([0.5, 0.25, np.nan, 1.0, 0.0], dtype=np.float32),
        "name": ["Jos\u00e9", "", "Ann", "Jos\u00e9", "Zo\u00eb"],
        "sector": pd.Categorical(["farm", "mine", "farm", "bank", None], categories=["farm", "mine", "bank"]),
        "day": pd.to_datetime(["1960-01-02", "2024-02-29", "1959-12-31", "2000-01-01", "1960-01-01"]),
    })


def cells(column, labels):
    """Kind and cells, of a column as the file has it and, where it has labels, with them."""
    if labels is not None:
        return "c", ["?" if pd.isna(v) else str(v) for v in labels]
    if column.dtype.kind in "iu":
        return "i", [str(v) for v in column]
    if column.dtype.kind == "f":
        return "n", ["?" if np.isnan(v) else format(float(v), ".17g") for v in column]
    return "c", ["?" if v == "" else v for v in column]


def main():
    lines = [f"# pandas {pd.__version__}, numpy {np.__version__}; made by tools/make_dta_golden.py"]
    for version in (114, 117, 118, 119):
        path = FOLDER / f"stata_{version}.dta"
        data = frame()
        long = {}
        if version >= 117:
            data["note"] = ["a long note " * 200, "", "b", "a long note " * 200, "c"]
            long = {"convert_strl": ["note"]}
        data.to_stata(path, version=version, write_index=False, convert_dates={"day": "td"},
                         time_stamp=pd.Timestamp("2020-01-01"), byteorder="big" if version == 114 else "little", **long)
        raw = pd.read_stata(path, convert_categoricals=False, convert_dates=False, preserve_dtypes=True)
        labelled = pd.read_stata(path, convert_categoricals=True, convert_dates=False)
        for name in raw:
            if name == "note" and version == 119:
                continue  # refused by name
            has_labels = isinstance(labelled[name].dtype, pd.CategoricalDtype)
            kind, values = cells(raw[name], labelled[name] if has_labels else None)
            values = [v[:16] for v in values]
            lines.append("\t".join([path.name, name, kind, *values]))
    (FOLDER / "stata.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


main()
