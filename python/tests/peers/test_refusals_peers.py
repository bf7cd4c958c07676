"""Frames and tensors in every dress: taken as they are meant, or refused by name."""

import unittest
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import torch

from fourge import errors, fe, gp
from fourge.torch import SOAP, inv_quad_logdet

N = 40
RNG = np.random.default_rng(0)
DATA = {"y": RNG.normal(size=N), "x": RNG.normal(size=N), "f": np.arange(N) % 5}
WORDS = [str(v) for v in DATA["f"]]


def coef(data):
    return fe.feols("y ~ x | f", data).coef()


class Frames(unittest.TestCase):
    def same(self, cases, want):
        for name, data in cases.items():
            with self.subTest(name):
                np.testing.assert_allclose(coef(data), want, rtol=1e-12)

    def test_taken(self):
        p, l, t = pd.DataFrame(DATA), pl.DataFrame(DATA), pa.table(DATA)
        halves = [pa.DictionaryArray.from_arrays(pa.array(DATA["f"][:20].astype("i1")), pa.array(list("01234"))),
                  pa.DictionaryArray.from_arrays(pa.array((4 - DATA["f"][20:]).astype("i1")), pa.array(list("43210")))]
        self.same({
            "pandas": p, "categories": p.assign(f=pd.Categorical(WORDS)), "string": p.assign(f=pd.array(WORDS, dtype="string")),
            "arrow types": p.assign(x=pd.array(DATA["x"], dtype="float64[pyarrow]")), "times": p.assign(f=pd.to_datetime(DATA["f"], unit="D", utc=True)),
            "polars": l, "enum": l.with_columns(f=pl.col("f").cast(pl.String).cast(pl.Enum(list("01234")))),
            "polars categories": l.with_columns(f=pl.col("f").cast(pl.String).cast(pl.Categorical)),
            "chunks": pa.concat_tables([t.slice(0, 7), t.slice(7, 0), t.slice(7)]), "a batch": t.to_batches()[0],
            "dictionaries that differ": t.set_column(2, "f", pa.chunked_array(halves)),
            "string views": t.set_column(2, "f", pa.array(WORDS).cast(pa.string_view())),
            "series": {k: p[k] for k in DATA}, "polars series": {k: l[k] for k in DATA},
            "polars series of categories": {**DATA, "f": l["f"].cast(pl.String).cast(pl.Categorical)},
            "DuckDB": duckdb.connect().from_arrow(t), "a stream": t.to_reader(), "DuckDB's stream": duckdb.connect().from_arrow(t).to_arrow_reader(100),
            "large strings": t.set_column(2, "f", pa.array(WORDS, pa.large_string())), "dates": t.set_column(2, "f", pa.array(DATA["f"].astype("M8[D]"))),
            "large dictionary": t.set_column(2, "f", pa.array(WORDS, pa.large_string()).dictionary_encode()),
            "durations": l.with_columns(f=pl.duration(days=pl.col("f"))), "times of day": l.with_columns(f=pl.time(hour=pl.col("f"))),
            "dates of polars": l.with_columns(f=pl.date(2000, 1, 1 + pl.col("f"))), "booleans as words": l.with_columns(f=pl.col("f").cast(pl.Int8)),
            "tensors": {k: torch.tensor(v) for k, v in DATA.items()} | {"x": torch.tensor(DATA["x"], requires_grad=True)},
        }, coef(DATA))

    def test_pandas(self):
        """What pyarrow does not convert, or converts to a type that the library has not; columns that no one asked for."""
        p = pd.DataFrame(DATA)
        junk = p.assign(z=[{} if i % 2 else "z" for i in range(N)])
        self.same({
            "categories that are numbers": p.assign(f=p.f.astype("category")),
            "categories that are not used": p.assign(f=pd.Categorical(p.f, categories=range(-3, 9))),
            "whole floats": p.assign(f=pd.Categorical(p.f.astype(float))), "intervals": p.assign(f=pd.cut(p.f, range(-1, 5))),
            "dates": p.assign(f=pd.Categorical(pd.to_datetime(p.f, unit="D"))),
            "words and numbers": p.assign(f=p.f.astype(object).where(p.f > 0, "zero")), "big-endian": p.assign(x=DATA["x"].astype(">f8")),
            "an odd column": junk, "a name twice": pd.concat([junk, junk[["z"]]], axis=1), "a name that is a number": p.rename_axis(columns=3).assign(**{"3": 1}),
        }, coef(DATA))
        terms = fe.feols("y ~ i(f, ref=1)", p.assign(f=pd.Categorical(p.f.astype(float)))).terms
        self.assertEqual(terms, ["(Intercept)", "f::0", "f::2", "f::3", "f::4"])
        with self.assertRaisesRegex(TypeError, "2 columns are named 'x'"):
            coef(pd.concat([p, p[["x"]]], axis=1))

    def test_order(self):
        """Categories that have an order keep it, and the first is what the others are compared with; words do not."""
        words = list("ba" * 15 + "cb" * 5)
        make = lambda values: pd.DataFrame({**DATA, "f": values})
        terms = lambda data: fe.feols("y ~ i(f)", data).terms[1:]
        for ordered in (False, True):
            values = pd.Categorical(words, categories=["none", "c", "b", "a"], ordered=ordered)
            for data in (make(values), {**DATA, "f": pd.Series(values)}, {**DATA, "f": values}):
                self.assertEqual(terms(data), ["f::b", "f::a"])
        ten = pd.Categorical([{"a": 2, "b": 10, "c": 1}[w] for w in words])
        self.assertEqual(terms(make(ten)), ["f::2", "f::10"])
        enum = pl.Series(words, dtype=pl.Enum(["none", "c", "b", "a"]))
        for data in (pl.DataFrame({**DATA, "f": enum}), {**DATA, "f": enum}):
            self.assertEqual(terms(data), ["f::b", "f::a"])
        coded = pa.array(words).dictionary_encode()
        for data in (make(words), {**DATA, "f": words}, pl.DataFrame({**DATA, "f": pl.Series(words, dtype=pl.Categorical)}), pa.table({**DATA, "f": coded})):
            self.assertEqual(terms(data), ["f::b", "f::c"])

    def test_booleans(self):
        h = DATA["f"] > 2
        for data in ({**DATA, "h": h}, {**DATA, "h": pd.Series(h)}, {**DATA, "h": pl.Series(h)}, pd.DataFrame({**DATA, "h": h}), pl.DataFrame({**DATA, "h": h}),
                     {**DATA, "h": torch.tensor(h)}, pd.DataFrame({**DATA, "h": pd.array([None, *h[1:]], dtype="boolean")}),
                     {**DATA, "h": pd.array([None, *h[1:]], dtype="boolean")}):
            self.assertEqual(fe.feols("y ~ h", data).terms, ["(Intercept)", "hTRUE"])

    def test_decimals(self):
        """DuckDB's literals and sums are decimals."""
        cents = np.round(DATA["x"], 2)
        want = coef({**DATA, "x": cents})
        t, l = pa.table({**DATA, "x": cents}), pl.DataFrame({**DATA, "x": cents})
        self.same({
            "polars": l.with_columns(x=pl.col("x").cast(pl.Decimal(20, 2))), "DuckDB": duckdb.connect().from_arrow(t).project("y, x::decimal(9, 2) x, f"),
            "128 bits": t.set_column(1, "x", pa.array(cents).cast(pa.decimal128(30, 2))), "64 bits": t.set_column(1, "x", pa.array(cents).cast(pa.decimal128(12, 2)).cast(pa.decimal64(12, 2))),
        }, want)
        self.same({"null": l.with_columns(x=pl.when(pl.int_range(pl.len()) > 0).then("x").cast(pl.Decimal(20, 2)))},
                  coef({k: v[1:] for k, v in {**DATA, "x": cents}.items()}))
        with self.assertRaisesRegex(errors.Unsupported, "'x'.*d:50,2,256.*cast the column"):
            coef(t.set_column(1, "x", pa.array(cents).cast(pa.decimal128(30, 2)).cast(pa.decimal256(50, 2))))

    def test_missing(self):
        p = pd.DataFrame(DATA)
        self.same({
            "category": p.assign(f=pd.Categorical([None] + WORDS[1:])), "Int64": p.assign(f=pd.array([None, *DATA["f"][1:]], dtype="Int64")),
            "Float64": p.assign(x=pd.array([None, *DATA["x"][1:]], dtype="Float64")), "object": p.assign(f=[None] + WORDS[1:]),
            "series of Int64": {**DATA, "f": pd.Series([None, *DATA["f"][1:]], dtype="Int64")},
            "polars": pl.DataFrame({**DATA, "x": [None, *DATA["x"][1:]]}),
            "polars series": {**DATA, "x": pl.Series([None, *DATA["x"][1:]])},
        }, coef(p.iloc[1:]))

    def test_refused(self):
        l = pl.DataFrame(DATA)
        for says, data in (("collect", l.lazy()), ("'x'", l.with_columns(x=pl.struct("x"))), ("'x'", l.with_columns(x=pl.concat_list("x", "x"))),
                           ("'f'", l.with_columns(f=pl.col("f").cast(pl.Int128))),
                           ("no column 'y'", pd.DataFrame({("a", "y"): [1.0]}))):
            with self.subTest(says), self.assertRaisesRegex((TypeError, ValueError, NotImplementedError, KeyError), says):
                coef(data)


class Tensors(unittest.TestCase):
    def test_arrays(self):
        x = torch.randn(20, 2, dtype=torch.float64)
        make = lambda x: gp.GP(x, np.zeros(20), "1*rbf(l=1) + noise(0.1)").log_likelihood()
        want = make(x.numpy())
        for taken in (x.clone().requires_grad_(), x.t().contiguous().t(), pd.DataFrame(x.numpy()), pl.DataFrame(x.numpy())):
            self.assertEqual(make(taken), want)
        self.assertEqual(make(x.bfloat16()), make(x.bfloat16().double()))
        negative = torch.complex(x, -x).conj().imag  # a view with a flag for its sign
        self.assertTrue(negative.is_neg())
        self.assertEqual(make(negative), want)
        for refused in (x.to("meta"), x.to(torch.complex64), x.to_sparse()):
            with self.assertRaisesRegex(TypeError, "^x: "):
                make(refused)

    def test_soap(self):
        new = lambda *a, **k: torch.nn.Parameter(torch.zeros(*a, **k))
        for says, params in (("complex", [new(3, dtype=torch.complex64)]), ("meta", [new(3, device="meta")]),
                             ("sparse", [torch.nn.Parameter(torch.zeros(3, 3).to_sparse())]), ("twice", [p := new(3), p]), ("axes", [new(1, 1, 1, 1, 1)]),
                             ("stride", [torch.zeros(3).expand(3, 3).requires_grad_()])):
            with self.subTest(says), warnings.catch_warnings(), self.assertRaisesRegex(errors.Error, says):
                warnings.simplefilter("ignore")
                SOAP(params)

    def test_inv_quad_logdet(self):
        for kind, k in ((TypeError, np.eye(3)), (errors.BadArgument, torch.eye(3).half()), (errors.NoDevice, torch.eye(3, device="meta"))):
            with self.assertRaisesRegex(kind, "k"):
                inv_quad_logdet(k, torch.ones(3))


if __name__ == "__main__":
    unittest.main()
