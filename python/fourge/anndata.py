"""Alignment of two AnnData objects, by what lies in ``obsm`` or ``X``.

>>> import fourge.anndata
>>> fourge.anndata.align(rna, atac, use_rep="X_pca", labels="cell_type", key_added="gw")
>>> rna.obs["gw_match"], rna.obs["gw_cell_type"]

Nothing is imported from anndata: any object with ``obs``, ``obsm``, ``uns``, ``X`` and ``obs_names`` will do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from . import _options, errors, gw

__all__ = ["align"]


def _points(data: Any, use_rep: str | None, name: str) -> np.ndarray:
    """The matrix that use_rep names; None: X_pca where it is there, else X."""
    if use_rep is None:
        use_rep = "X_pca" if "X_pca" in data.obsm else "X"
    if use_rep == "X":
        x = data.X
    elif use_rep in data.obsm:
        x = data.obsm[use_rep]
    else:
        raise errors.BadArgument(f"{name}: use_rep={use_rep!r} is neither 'X' nor in obsm, which has {sorted(data.obsm)}")
    x = x.toarray() if hasattr(x, "toarray") else x
    return np.ascontiguousarray(x, np.float32 if getattr(x, "dtype", None) == np.float32 else np.float64)


def _plain(value: Any) -> Any:
    """A number or a text that is written into a file as it is."""
    return value.item() if isinstance(value, np.generic) else value


@_options.takes(gw.align, without=("x", "y", "a", "b"))
def align(a: Any, b: Any, use_rep: str | tuple[str, str] | None = None, *, key_added: str = "gw", n_matches: int = 5,
          labels: str | Iterable[str] = (), weights: tuple[str | None, str | None] = (None, None), copy: bool = False,
          **options: Any) -> Any:
    """Aligns the observations of `a` with those of `b` and writes the matches into `a`.

    Parameters
    ----------
    a, b : AnnData
    use_rep : str or two of them, optional
        Key of ``obsm``, or "X"; one for both or one each.  None: "X_pca" where it is there, else "X".
    key_added : str
        Beginning of the names of what is written.
    n_matches : int
        Matches of each observation that are kept.
    labels : str or several
        Columns of ``b.obs`` that are transferred.
    weights : (str or None, str or None)
        Columns of ``a.obs`` and ``b.obs`` with weights of the observations.
    copy : bool
        True: writes into a copy of `a`, and returns it.
    **options
        Of :func:`fourge.gw.align`: k, epsilon, distance, seed, threads, progress, ...

    Writes
    ------
    ``a.obs[key_match]``
        Name of the best match in `b`; ``a.obs[key_share]``: its share of the observation's mass.
    ``a.obs[key_LABEL]``, ``a.obs[key_LABEL_share]``
        Transferred labels, and their shares of the labelled mass.
    ``a.obsm[key_index]``, ``a.obsm[key_mass]``
        (n, n_matches) positions in `b` (int64) and masses (float64), falling.
    ``a.uns[key]``
        The report with energy and reason of the end, and the options.

    Returns
    -------
    fourge.gw.Alignment, or with ``copy`` (copy, Alignment).
    """
    _options.check(align, options)
    for data, name in ((a, "a"), (b, "b")):
        if not hasattr(data, "obsm"):
            raise TypeError(f"{name}: expected an AnnData object, got {type(data).__name__}; fourge.gw.align takes arrays")
    reps = use_rep if isinstance(use_rep, (tuple, list)) else (use_rep, use_rep)
    if len(reps) != 2:
        raise errors.BadArgument(f"use_rep: expected a key or two, got {len(reps)}")
    labels = [labels] if isinstance(labels, str) else list(labels)
    for column, data, name in [(c, b, "b") for c in labels] + [(w, d, n) for w, d, n in zip(weights, (a, b), "ab") if w]:
        if column not in data.obs:
            raise errors.BadArgument(f"{name}.obs has no column {column!r}")
    x, y = _points(a, reps[0], "a"), _points(b, reps[1], "b")
    wanted = {k: v for k, v in options.items() if isinstance(v, (str, int, float, bool))}
    mass = [np.asarray(d.obs[w], np.float64) if w else None for d, w in zip((a, b), weights)]
    found = gw.align(x, y, a=mass[0], b=mass[1], **options)
    a = a.copy() if copy else a
    index, value = found.top(min(n_matches, len(y)))
    rows = found.apply(np.ones(len(y)))
    share = np.divide(value[:, 0], rows, out=np.zeros(len(x)), where=rows > 0)
    a.obs[f"{key_added}_match"] = np.asarray(b.obs_names, object)[index[:, 0]]
    a.obs[f"{key_added}_share"] = share
    for column in labels:
        a.obs[f"{key_added}_{column}"], a.obs[f"{key_added}_{column}_share"] = found.labels(b.obs[column])
    a.obsm[f"{key_added}_index"], a.obsm[f"{key_added}_mass"] = index, value
    a.uns[key_added] = {"report": {k: _plain(v) for k, v in found.report.items() if v is not None},
                        "options": wanted, "use_rep": [str(r) for r in reps]}
    return (a, found) if copy else found
