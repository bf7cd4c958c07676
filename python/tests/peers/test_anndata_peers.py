"""fourge.anndata with anndata itself: what is written survives a file."""

import pathlib
import tempfile
import unittest

import anndata as ad
import numpy as np
import pandas as pd

from fourge import anndata


class Peer(unittest.TestCase):
    def test_write_and_read(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(40, 3))
        a = ad.AnnData(x, obs=pd.DataFrame(index=[f"a{i}" for i in range(40)]))
        b = ad.AnnData(np.zeros((40, 2)), obs=pd.DataFrame({"kind": pd.Categorical(["u", "v"] * 20)}, index=[f"b{i}" for i in range(40)]))
        b.obsm["X_pca"] = x.astype(np.float32)
        anndata.align(a, b, labels=["kind"], k=6, max_iter=20)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.h5ad"
            a.write_h5ad(path)
            back = ad.read_h5ad(path)
        self.assertEqual(list(back.obs["gw_match"]), list(a.obs["gw_match"]))
        self.assertEqual(list(back.obs["gw_kind"]), list(a.obs["gw_kind"]))
        np.testing.assert_array_equal(back.obsm["gw_index"], a.obsm["gw_index"])
        np.testing.assert_array_equal(back.obsm["gw_mass"], a.obsm["gw_mass"])
        self.assertEqual(back.uns["gw"]["report"]["energy"], a.uns["gw"]["report"]["energy"])


if __name__ == "__main__":
    unittest.main()
