"""Regenerates data/*.csv from the packages they come from: python tools/make_data.py [--julia FOLDER] [--check]

statsmodels, linearmodels, scikit-learn and matplotlib carry their tables inside their wheels. The two tables of FixedEffectModels.jl
come from the folder `dataset` of a checkout of it; without --julia they are left as they are.
--check compares with the files that are there and writes nothing.
"""
import argparse
import io
import pathlib
import sys
import warnings

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).resolve().parent.parent / "data"


def grunfeld():
    from statsmodels.datasets import grunfeld as source

    table = source.load_pandas().data[["invest", "value", "capital", "firm", "year"]].copy()
    table["year"] = table["year"].astype("int64")
    return table


def wage_panel():
    from linearmodels.datasets import wage_panel as source

    return source.load()


def munnell():
    from linearmodels.datasets import munnell as source

    return source.load()


def jobtraining():
    from linearmodels.datasets import jobtraining as source

    return source.load()


def diabetes():
    from sklearn.datasets import load_diabetes as source

    loaded = source(as_frame=True)  # the ten inputs centred and scaled to unit norm
    return loaded.data.assign(target=loaded.target)


def co2():
    from statsmodels.datasets import co2 as source

    weekly = source.load_pandas().data["co2"]
    monthly = weekly.resample("MS").mean()  # over the weeks measured; months without any stay empty
    year, month = monthly.index.year, monthly.index.month
    return pd.DataFrame({"year": year, "month": month, "time": year + (month - 0.5) / 12, "co2": monthly.to_numpy()})


def terrain():
    from matplotlib.cbook import get_sample_data

    with get_sample_data("jacksboro_fault_dem.npz") as source:
        height = source["elevation"][::5, ::5]
    row, column = np.indices(height.shape).reshape(2, -1)
    cell = 5 / 1200  # degrees: every fifth of 3 seconds of arc
    return pd.DataFrame({"east": (column * cell).round(6), "south": (row * cell).round(6), "height": height.ravel()})


def julia(folder, name):
    table = pd.read_csv(folder / f"{name}.csv")
    return table.rename(columns=str.lower)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--julia", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    tables = {make.__name__: make() for make in (grunfeld, wage_panel, munnell, jobtraining, diabetes, co2, terrain)}
    if options.julia:
        tables["cigar"] = julia(options.julia, "Cigar")
        tables["empluk"] = julia(options.julia, "EmplUK")
    different = 0
    for name, table in tables.items():
        # Floats are written with the shortest digits that read back to the same double; missing values are empty.
        text = io.StringIO()
        table.to_csv(text, index=False, lineterminator="\n")
        path = HERE / f"{name}.csv"
        same = path.exists() and path.read_text() == text.getvalue()
        if options.check:
            different += not same
        else:
            path.write_text(text.getvalue())
        print(f"{path.name}: {len(table)} rows, {len(table.columns)} columns, {'same' if same else 'differs'}")
    sys.exit(1 if different else 0)


main()
