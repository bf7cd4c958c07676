"""Rows beyond memory from what other packages make in batches: one batch at a time, and the bits of the whole table."""

import pathlib
import tempfile
import unittest
import warnings
import weakref

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from fourge import _arrays, errors, fe

N, BATCH = 60_000, 3000
RNG = np.random.default_rng(3)
WORDS = np.array([f"w{i}" for i in range(300)], dtype=object)
TABLE = pa.table({"y": RNG.normal(size=N), "x": RNG.normal(size=N), "p": RNG.integers(0, 2000, N), "a b": WORDS[RNG.integers(0, 300, N)]})
FORMULA = "y ~ x | p + `a b`"
SPOOL = {"spool": ".", "memory_limit": 1 << 20}


class Producer:
    """Batches of TABLE, and how many of them somebody holds: the memory of each is an array with a finalizer."""

    def __init__(self):
        self.made = self.held = self.most = 0

    def gone(self):
        self.held -= 1

    def batches(self):
        for batch in TABLE.to_batches(max_chunksize=BATCH):
            memory = batch.column("x").to_numpy().copy()
            weakref.finalize(memory, self.gone)
            self.made += 1
            self.held += 1
            self.most = max(self.most, self.held)
            x = pa.Array.from_buffers(pa.float64(), len(batch), [None, pa.py_buffer(memory)])
            del memory
            made = pa.record_batch([batch.column(0), x, batch.column(2), batch.column(3)], schema=TABLE.schema)
            del x
            yield made
            del made

    def reader(self):
        return pa.RecordBatchReader.from_batches(TABLE.schema, self.batches())


class Beyond(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name + "/rows.parquet"
        self.want = fe.feols(FORMULA, TABLE, vcov={"CRV1": "a b"})

    def same(self, data, **options):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            got = fe.feols(FORMULA, data, vcov={"CRV1": "a b"}, **options)
        np.testing.assert_array_equal(got.coef(), self.want.coef())
        np.testing.assert_array_equal(got.vcov(), self.want.vcov())
        np.testing.assert_array_equal(got.resid(), self.want.resid())
        self.assertEqual(any("FRG-CORE-170" in str(w.message) for w in said), "spool" in options)

    def test_one_batch_at_a_time(self):
        producer = Producer()
        self.same(producer.reader(), **SPOOL)
        self.assertEqual((producer.made, producer.most, producer.held), (N // BATCH, 1, 0))

    def test_counts_and_several_models(self):
        """Rows of a level are anywhere here."""
        table = TABLE.append_column("n", pa.array(np.arange(N) * 7919 % 5))
        for fit, formula in ((fe.fepois, "n ~ x | p + `a b`"), (fe.feols, "c(y, n) ~ csw(x, exp(x)) | p + `a b`")):
            with warnings.catch_warnings(record=True):
                warnings.simplefilter("always")
                many = [[m] if fit is fe.fepois else list(m) for m in (fit(formula, table), fit(formula, table, **SPOOL))]
            self.assertEqual(len(many[0]), 1 if fit is fe.fepois else 4)
            for want, got in zip(*many):
                np.testing.assert_array_equal(got.coef(), want.coef())
                np.testing.assert_array_equal(got.vcov(), want.vcov())
                np.testing.assert_array_equal(got.resid(), want.resid())

    def test_in_memory(self):
        producer = Producer()
        self.same(producer.reader())
        self.assertEqual((producer.made, producer.held), (N // BATCH, 0))

    def test_lazy(self):
        pyarrow.parquet.write_table(TABLE, self.path, row_group_size=4 * BATCH)
        makers = {"polars": lambda: pl.scan_parquet(self.path), "pyarrow": lambda: pa.dataset.dataset(self.path),
                  "duckdb": lambda: duckdb.sql(f"select *, y + x as other from '{self.path}'")}
        for name, make in makers.items():
            with self.subTest(name):
                self.same(make(), **SPOOL)
                with self.assertRaises(errors.BadData) as e:
                    fe.feols("y ~ xx", make())
                self.assertEqual(e.exception.code, "FRG-IO-008")
                self.assertIn("'x'", str(e.exception))

    def test_producer_fails(self):
        def broken():
            yield TABLE.to_batches(max_chunksize=BATCH)[0]
            raise OSError("the source is gone")

        with self.assertRaisesRegex(errors.BadData, "the source is gone"):
            fe.feols(FORMULA, pa.RecordBatchReader.from_batches(TABLE.schema, broken()), **SPOOL)

    def test_reader_twice(self):
        reader = TABLE.to_reader()
        fe.feols("y ~ x", reader)
        with self.assertRaisesRegex(errors.BadData, "FRG-FE-002.*gives its batches once"):
            fe.feols("y ~ x", reader)

    def test_how_folder_and_limit_are_written(self):
        self.same(TABLE, spool=pathlib.Path("."), memory_limit="1M")
        for limit in ("lots", "1X", "", "1e400", "-1M"):
            with self.subTest(limit), self.assertRaisesRegex(errors.BadArgument, "memory_limit"):
                fe.feols("y ~ x", TABLE, memory_limit=limit)
        self.assertEqual([_arrays.bytes_of(w) for w in ("200M", "1.5kib", " 2GB ", "4096", "1e3", ".5K")], [200 << 20, 1536, 2 << 30, 4096, 1000, 512])

    def test_folder_of_no_use(self):
        """Whether or not something has to lie there."""
        for folder in (self.path + "/none", "/dev/null", ""):
            with self.subTest(folder), self.assertRaises(errors.FileError) as e:
                fe.feols("y ~ x", TABLE, spool=folder)
            self.assertEqual(e.exception.code, "FRG-IO-003")

    def test_least_integer(self):
        """-2^63 stands for a missing value; null is one, in one batch or several, with nulls beside it or none."""
        least = -2**63
        for values in ([1, 2, least, 4, 5], [1, None, least, 4, 5]):
            one = pa.table({"y": [1.0, 2, 3, 5, 4], "x": pa.array(values, pa.int64())})
            for table in (one, pa.concat_tables([one, one])):
                with self.assertRaises(errors.BadData) as e:
                    fe.feols("y ~ x", table)
                self.assertIn("column 'x', row 3: -9223372036854775808", str(e.exception))
        self.assertTrue(np.isfinite(fe.feols("y ~ x", pa.table({"y": [1.0, 2, 3, 5], "x": [1, None, 3, least + 1]})).coef()).all())

    def test_column_that_is_not_there(self):
        with self.assertRaisesRegex(errors.BadData, "the data have no column 'nope'"):
            fe.feols("y ~ nope", TABLE)
