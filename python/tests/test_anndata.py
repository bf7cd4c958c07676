"""Alignment of AnnData-like objects, with NumPy alone."""

import copy
import unittest

import numpy as np

from fourge import anndata, errors


class Data:
    """What fourge.anndata asks of an AnnData object."""

    def __init__(self, x, names, obs=None):
        self.X, self.obs_names, self.obs, self.obsm, self.uns = x, names, dict(obs or {}), {}, {}

    def copy(self):
        return copy.deepcopy(self)


def pair(n=60):
    """A bent curve with three kinds along it, and the same one turned and shuffled: order[i] is source i's twin."""
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 1, n)) ** 2
    x = np.column_stack([t, 0.3 * t**2])
    q = np.linalg.qr(rng.normal(size=(4, 4)))[0][:2]
    order = rng.permutation(n)
    y = np.empty((n, 4))
    y[order] = x @ q
    kinds = np.array(["early", "middle", "late"])[np.minimum((t * 3).astype(int), 2)]
    twin = np.empty(n, object)
    twin[order] = kinds
    a = Data(x, [f"a{i}" for i in range(n)], {"weight": np.full(n, 1 / n)})
    b = Data(np.zeros((n, 1)), [f"b{i}" for i in range(n)], {"kind": twin})
    b.obsm["X_pca"] = y
    return a, b, order, kinds


class Align(unittest.TestCase):
    settings = {"distance": "euclidean", "mode": "exact", "epsilon": 0.005}

    def test_matches_and_labels(self):
        a, b, order, kinds = pair()
        found = anndata.align(a, b, labels="kind", **self.settings)
        self.assertGreater((a.obs["gw_kind"] == kinds).mean(), 0.9)
        self.assertTrue(((0 < a.obs["gw_kind_share"]) & (a.obs["gw_kind_share"] <= 1 + 1e-12)).all())
        position = np.array([int(name[1:]) for name in a.obs["gw_match"]])
        np.testing.assert_array_equal(position, found.argmax())
        place = np.empty(60)
        place[order] = np.arange(60)
        self.assertGreater(np.corrcoef(place[position], np.arange(60))[0, 1], 0.95)
        self.assertEqual(a.obsm["gw_index"].shape, (60, 5))
        np.testing.assert_allclose(a.obs["gw_share"], a.obsm["gw_mass"][:, 0] * 60, rtol=1e-9)
        self.assertEqual(a.uns["gw"]["report"]["n"], 60)
        self.assertEqual(a.uns["gw"]["options"]["distance"], "euclidean")

    def test_copy_keys_and_weights(self):
        a, b, _, _ = pair()
        other, found = anndata.align(a, b, ("X", "X_pca"), key_added="m", n_matches=2, weights=("weight", None), copy=True,
                                     **self.settings)
        self.assertNotIn("m_match", a.obs)
        self.assertEqual(other.obsm["m_mass"].shape, (60, 2))
        self.assertEqual(found.shape, (60, 60))

    def test_refusals(self):
        a, b, _, _ = pair()
        for bad in ({"use_rep": "X_umap"}, {"labels": "sort"}, {"weights": ("w", None)}, {"use_rep": ("X",)}):
            with self.assertRaises(errors.BadArgument):
                anndata.align(a, b, **bad)
        self.assertEqual(a.uns, {})


if __name__ == "__main__":
    unittest.main()
