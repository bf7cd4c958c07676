"""Regenerates data/*.csv from the packages they come from: python tools/make_data.py [--plm FOLDER] [--check]

statsmodels, linearmodels and scikit-learn carry their tables inside their wheels. The two tables of R's plm come from the folder
that holds its .rda files (Debian: apt-get download r-cran-plm; dpkg -x r-cran-plm_*.deb x;
--plm x/usr/lib/R/site-library/plm/data); without --plm they are left as they are. Reading them needs `rdata`.
--check compares with the files that are there and writes nothing.
"""
import argparse
import io
import pathlib
import sys
import warnings

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


def plm(folder, name, integers):
    import rdata

    table = rdata.read_rda(folder / f"{name}.rda")[name]
    for column in integers:
        assert (table[column] == table[column].astype("int64")).all()
        table[column] = table[column].astype("int64")
    return table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plm", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    tables = {make.__name__: make() for make in (grunfeld, wage_panel, munnell, jobtraining, diabetes, co2)}
    if options.plm:
        tables["cigar"] = plm(options.plm, "Cigar", ["state", "year"])
        tables["empluk"] = plm(options.plm, "EmplUK", ["firm", "year", "sector"])
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
