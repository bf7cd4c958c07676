"""Every keyword of fourge.gw acts, raises, or says what is done instead; keywords.py says how the rows are read.

Rows come in dictionaries that several functions share, and of() gives them to a function:

    GRAPHS      of functions whose distances come from points and graphs
    LINEAR      of functions that take a cost for each pair
    alignment(**sampled)    of everything that aligns; `sampled` is what makes a function draw pairs, where it does not by itself
    transported(**square)   of everything that does Sinkhorn's iteration on a cost

A new keyword of all of these gets one row there, a new function gets an of() with the dictionaries whose keywords it takes and rows
for its own (a later row of the same keyword stands instead).  A keyword that means nothing in a mode gets a row with raises() and
that mode."""

import os
import tempfile
import unittest

import numpy as np

from fourge import anndata, errors, gw
from keywords import SMALL, Rows, Table, asked, cures, main, passes, raises, silences, threads, warns, watch, writes

rows = Rows()
of = rows.of

LATE = (1e-9, raises("time limit", errors.Stopped))
ASKED = (watch, asked())

# ---- data ----

draw = np.random.default_rng(1)
X, Y = draw.normal(size=(12, 2)), draw.normal(size=(14, 3))
C, D = (np.sqrt(((p[:, None] - p) ** 2).sum(-1)) for p in (X, Y))
A, B = (np.arange(1.0, n + 1) / (n * (n + 1) / 2) for n in (12, 14))
COST = np.abs(draw.normal(size=(12, 14)))
PLAN = draw.random(size=(12, 14))
PLAN /= PLAN.sum()
FAR = draw.normal(size=(600, 2))
WIDE = np.sqrt(((FAR[:, None] - FAR) ** 2).sum(-1))
FOLDER = tempfile.TemporaryDirectory()


def written(name, text):
    path = os.path.join(FOLDER.name, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


MESH = written("a.off", "OFF\n4 2 0\n0 0 0\n1 0 0\n0 1 0\n1 1 0\n3 0 1 2\n3 1 2 3\n")
OTHER = written("b.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n")
ARCS, FEWER = written("a.txt", "0 1 2.0\n1 2 1.0\n2 0 4.0\n"), written("b.txt", "0 1 5.0\n1 2 1.0\n")
CHAIN = written("c.txt", "".join(f"{i} {i + 1}\n" for i in range(700)))
ROPE = written("c.off", "OFF\n600 599 0\n" + "".join(f"{i} 0 0\n" for i in range(600)) + "".join(f"2 {i} {i + 1}\n" for i in range(599)))

# ---- what is looked at ----


def plan_of(found):
    """Of an alignment, of a plan, and of either with a log."""
    if isinstance(found, tuple):
        return found[1].get("T", found[0])
    return found.plan() if hasattr(found, "plan") else found


def reported(key):
    """A number of the report that says what was done."""
    return lambda found: (found[1] if isinstance(found, tuple) else found.report)[key]


def paths(graph):
    return graph.paths()


# ---- graphs ----

NEIGHBOURS = gw.Graph.knn(FAR, 5)
FAR_ARCS = dict(zip(("starts", "targets"), NEIGHBOURS.arcs()))


def unseeded(**far):
    """Rows of limits and threads, of a graph of which `far` makes a larger one; they hold for its paths too."""
    return {"memory_limit": (100, raises("memory", errors.OutOfMemory)), "threads": (3, threads(then=paths), far),
            "time_limit": (1e-9, raises("time limit", errors.Stopped, then=paths), {**far, "threads": 1})}


of(gw.Graph.knn, {"points": X, "k": 3}, **unseeded(points=FAR), points=(X[:9], paths), k=(4, paths),
   k_clamp=(True, cures("k is|k=", then=paths), {"k": 40}), stitch=(False, lambda graph: graph.report["components"], {"k": 1}))
STARTS, ENDS = np.array([0, 1, 2, 3]), np.array([1, 2, 0])
of(gw.Graph.csr, {"starts": STARTS, "targets": ENDS}, **unseeded(**FAR_ARCS), starts=(np.array([0, 2, 2, 3]), paths),
   targets=(np.array([1, 2, 1]), paths), weights=(np.array([1.0, 2, 3]), paths), directed=(True, paths))


class Sparse:
    """As much of a SciPy matrix as is looked at."""

    def __init__(self, graph):
        self.indptr, self.indices, self.data = graph.arcs()
        self.shape = (len(self.indptr) - 1,) * 2

    def tocsr(self):
        return self


of(gw.Graph.of, {"matrix": Sparse(gw.Graph.knn(X, 3))}, **unseeded(matrix=Sparse(NEIGHBOURS)),
   matrix=(Sparse(gw.Graph.knn(X, 4)), paths))
of(gw.Graph.read, {"path": ARCS}, **unseeded(path=CHAIN), path=(FEWER, paths), directed=(True, paths))
of(gw.Graph.mesh, {"path": MESH}, **unseeded(path=ROPE), path=(OTHER, paths))
of(gw.Graph.landmarks, {"count": 3}, lambda: gw.Graph.knn(X, 3), count=(4, list))
of(gw.Graph.paths, {}, lambda: gw.Graph.knn(X, 3), sources=([0], len))
of(gw.read_mesh, {"path": MESH}, path=(OTHER, list), memory_limit=(100, raises("memory", errors.OutOfMemory)))
of(gw.energy, {"c": C, "d": D, "plan": PLAN}, c=(2 * C, float), d=(2 * D, float), plan=(np.outer(A, B), float),
   memory_limit=SMALL, threads=(3, threads(), {"c": WIDE, "d": WIDE, "plan": np.eye(600)}),
   time_limit=(*LATE, {"c": WIDE, "d": WIDE, "plan": np.eye(600)}))
of(gw.lower_bound, {"c": C, "d": D}, c=(2 * C, float), d=(2 * D, float), a=(A, float), b=(B, float), memory_limit=SMALL,
   threads=(3, threads(), {"c": WIDE, "d": WIDE}), time_limit=(*LATE, {"c": WIDE, "d": WIDE}))
of(gw.landmark_bounds, {"z": C[:, 0], "w": C[:, 1]}, z=(C[:, 2], list), w=(C[:, 2], list))

# ---- alignments ----

GRAPHS = {
    "k": (9, plan_of, {"k": 3, "distance": "dijkstra"}), "k_clamp": (True, cures("k is|k="), {"k": 40, "distance": "dijkstra"}),
    "stitch": (False, plan_of, {"k": 1, "distance": "dijkstra"}), "landmarks": (3, plan_of, {"k": 3, "distance": "landmark"}),
    "landmark_metric": ("lower", plan_of, {"k": 3, "landmarks": 3, "distance": "landmark"}),
    "lazy": (True, reported("peak_bytes"), {"k": 3, "distance": "precomputed"}),
    "cache_rows": (3, reported("peak_bytes"), {"k": 3, "distance": "dijkstra"}),
}


def alignment(bare=False, **sampled):
    """Rows of everything that aligns; `sampled` is what makes a function draw pairs where it does not by itself, `bare` where it has
    no schedule, scale, polish and rounding by itself."""
    on = lambda **more: {**sampled, **more}
    return {
        "threads": (3, threads(), on()), "seed": (5, plan_of, on()), "memory_limit": SMALL,
        "device": ("cuda:99", raises("cuda:99", errors.NoDevice)),
        "time_limit": (1e-9, warns("TIME_LIMIT"), on()), "mode": ("exact" if not sampled else "sampled", plan_of),
        "anneal": ("iter" if bare else "none", plan_of, on()), "max_inner": (9, plan_of, on()),
        "marginal_tol": (1.0, plan_of, on()), "mass": (0.5, plan_of, on()),
        "reference": ("product", plan_of, on(rho_source=1.0, rho_target=1.0)),
        "scale": ("fixed" if bare else "none", plan_of, on()), "sampling": ("multinomial", plan_of, on()),
        "n_start": (2, reported("starts"), on(max_iter=200)), "fine_steps": (9, plan_of, on(multiscale="on")),
        "polish": (bare, plan_of, on()), "round": (bare, plan_of, on()), "polish_tol": (1e-9, plan_of, on(polish=True)),
        "polish_passes": (1, plan_of, on(polish=True, polish_tol=1e-12)), "cost_store": ("fly", plan_of, on()),
        "rank": (3, plan_of, on()), "lr_max_iter": (1, plan_of, on(rank=3)), "lr_dykstra_max_iter": (1, plan_of, on(rank=3)),
        "preset": ("torchgw", plan_of, on()), "store_plan": (True, plan_of, on(**DAMPED if bare else {})),
        "diag_exact": (True, plan_of, on(mass=0.5)),
        "auto_store": (True, passes("as f32 need"), on(cost_store="f32", memory_limit=LITTLE)),
        "dtype": ("f64", raises("dtype f64", kind=errors.Unsupported), on()),
        "start_from": ("profiles", reported("started_from"), on()), "anchors": (7, plan_of, on()),
        "damping": (0.3, plan_of, on()), "min_iter": (90, plan_of, on(max_iter=200)), "rho_source": (1.0, plan_of, on()),
        "rho_target": (1.0, plan_of, on()), "lambda_ema_beta": (0.5 if bare else 0.0, plan_of, on(tol=0.0, max_iter=90)),
        "multiscale": ("on", plan_of, on()), "n_coarse": (5, plan_of, on(multiscale="on")),
    }




def little():
    """The least limit of memory under which costs are computed on the fly where they may be."""
    met = False
    for limit in range(10000, 1000000, 400):
        try:
            gw.align(X, Y, distance="euclidean", cost_store="f32", auto_store=True, threads=1, memory_limit=limit)
        except errors.OutOfMemory as e:
            now = "as f32 need" in str(e)
            if met and not now:
                return limit
            met = now
    raise AssertionError("costs as f32 were never too large")


LITTLE = little()
DAMPED = {"damping": 0.5}
LINEAR = {
    "linear_weight": (0.5, plan_of, {"linear": COST}),
    "scale_linear": ("max", plan_of, {"linear": 100 * COST, "linear_weight": 0.5}),
}
LONGER = {"max_iter": (5, plan_of), "tol": (0.5, plan_of, {"anneal": "none", "max_iter": 90}), "epsilon": (0.1, plan_of)}
of(gw.align, {"x": X, "y": Y, "distance": "euclidean", "epsilon": 0.02, "threads": 1}, **GRAPHS, **alignment(), **LINEAR,
   **LONGER, x=(X**3, plan_of), y=(Y**3, plan_of), a=(A, plan_of), b=(B, plan_of),
   linear=(COST, cures("linear"), {"linear_weight": 0.5}), start=(PLAN, plan_of), potentials=((A, B), plan_of), progress=ASKED,
   checkpoint=("state", writes("state"), {"checkpoint_every": 0.0}),
   checkpoint_every=(0.0, writes("state"), {"checkpoint": "state"}), resume=("nowhere", raises("nowhere")),
   distance=("dijkstra", plan_of, {"k": 3}))


FOUND = gw.align(X, Y, distance="euclidean", epsilon=0.02, max_iter=30)


def found():
    return FOUND


of(gw.Alignment.distances, {}, found, side=(1, len))
of(gw.Alignment.plan, {}, found, dtype=(np.float32, plan_of))
of(gw.Alignment.rows, {"first": 0, "last": 3}, found, first=(1, len), last=(4, len), dtype=(np.float32, plan_of))
of(gw.Alignment.top, {}, found, k=(2, list))
of(gw.Alignment.sparse, {"threshold": 0.01}, found, threshold=(0.05, list))
of(gw.Alignment.apply, {"v": np.ones(14)}, found, v=(np.arange(14.0), plan_of), transposed=(True, raises("12")))
of(gw.Alignment.labels, {"labels": list("aabbccddeeffgg")}, found, labels=(list("abababababcccc"), list))
of(gw.Alignment.vjp, {"g": COST}, found, g=(2 * COST, list), grad_mode=("frozen", list))

CARRIED = gw.transport(COST, epsilon=0.1, threads=1)


def carried():
    return CARRIED


of(gw.Transport.plan, {}, carried, dtype=(np.float32, plan_of), out=(np.zeros((12, 14), np.float32), plan_of))
of(gw.Transport.rows, {"first": 0, "last": 3}, carried, first=(1, len), last=(4, len), dtype=(np.float32, plan_of),
   out=(np.zeros((3, 14), np.float32), plan_of))

POINTS = {"distance_mode": "euclidean", "epsilon": 0.02}
RENAMED = {
    "X_source": (X**3, plan_of), "X_target": (Y**3, plan_of), "p": (A, plan_of), "q": (B, plan_of),
    "distance_mode": ("dijkstra", plan_of, {"k": 3}),
    "dist_source": (C, plan_of, {"X_source": None, "dist_source": 2 * C**2, "X_target": None, "dist_target": D, "distance_mode": None}),
    "dist_target": (D**2, plan_of, {"X_source": None, "dist_source": C, "X_target": None, "dist_target": D, "distance_mode": None}),
    "graph_source": (gw.Graph.knn(X, 3), plan_of, {"X_source": None, "graph_source": gw.Graph.knn(X, 5), "X_target": None,
         "graph_target": gw.Graph.knn(Y, 3), "distance_mode": None}),
    "graph_target": (gw.Graph.knn(Y, 3), plan_of, {"X_source": None, "graph_source": gw.Graph.knn(X, 5), "X_target": None,
         "graph_target": gw.Graph.knn(Y, 5), "distance_mode": None}),
    "n_landmarks": (3, plan_of, {"k": 3, "distance_mode": "landmark"}),
    "landmark_metric": ("lower", plan_of, {"k": 3, "n_landmarks": 3, "distance_mode": "landmark"}),
    "fgw_alpha": (0.5, plan_of, {"C_linear": COST}), "C_linear": (COST, cures("linear"), {"fgw_alpha": 0.5}),
    "s_shared": (50, warns()), "M": (7, plan_of), "alpha": (0.3, plan_of), "min_iter_before_converge": (300, plan_of),
    "mixed_precision": (False, warns()), "T_init": (PLAN, plan_of), "verbose": (True, asked()), "verbose_every": (5, warns()),
    "log": (False, lambda out: isinstance(out, tuple)), "progress": ASKED,
    "scale_linear": ("max", plan_of, {"C_linear": 100 * COST, "fgw_alpha": 0.5}), "multiscale": (True, plan_of),
    "n_coarse": (5, plan_of, {"multiscale": True}), "lambda_ema_beta": (0.0, plan_of, {"tol": 0.0, "max_iter": 90}),
}


def without(rows, *names):
    return {keyword: row for keyword, row in rows.items() if keyword not in names}


def with_points(rows):
    """Rows of functions that say distance_mode and not distance."""
    renamed = lambda more: {"distance_mode" if k == "distance" else k: v for k, v in more.items()}
    return {keyword: (*row[:2], *map(renamed, row[2:])) for keyword, row in rows.items()}


OTHER_NAMES = ("anchors", "damping", "min_iter", "rho_source", "rho_target", "multiscale", "n_coarse", "lambda_ema_beta")
SAMPLED = {**with_points(without(GRAPHS, "landmarks")), **without(alignment(), *OTHER_NAMES), **LONGER, **RENAMED}
HALF = {"reference": ("product", plan_of, {"semi_relaxed": True, "rho_a": 1.0, "rho_b": 1.0})}
of(gw.sampled_gw, {"X_source": X, "X_target": Y, "log": True, "threads": 1, **POINTS},
   **{**SAMPLED, **HALF, "fine_steps": (9, plan_of, {"multiscale": True})}, semi_relaxed=(True, plan_of),
   rho=(3.0, plan_of, {"semi_relaxed": True}), rho_a=(3.0, plan_of, {"semi_relaxed": True, "rho_b": 1.0}),
   rho_b=(3.0, plan_of, {"semi_relaxed": True, "rho_a": 1.0}))
of(gw.sampled_lowrank_gw, {"X_source": X, "X_target": Y, "log": True, "threads": 1, "rank": 3, **POINTS},
   **{**without(SAMPLED, *gw._NOT_OF_LOW_RANK), "rank": (2, plan_of), "tol": (0.5, plan_of)})

# ---- barycenters, embeddings, transport ----

MIDDLE = {
    "p": (np.arange(1.0, 6) / 15, list), "epsilon": (0.3, list), "max_iter": (1, list), "tol": (10.0, list),
    "max_outer": (1, list), "outer_tol": (10.0, list), "max_inner": (1, list), "threads": (3, threads()), "memory_limit": SMALL,
    "time_limit": LATE,
}
of(gw.barycenter, {"spaces": [C, D], "size": 5, "threads": 1, "max_outer": 4}, **MIDDLE, spaces=([C, 2 * D], list),
   size=(4, list), weights=([A, B], list), shares=([0.9, 0.1], list), start=(C[:5, :5], list), progress=ASKED)
of(gw.joint_embedding, {"anchor": Y, "queries": [(X, FOUND)], "k": 3, "threads": 1}, anchor=(Y**3, list),
   queries=([(X**3, FOUND)], list), out_dim=(1, list), lam=(9.0, list), tol=(0.5, list), k=(5, list), threads=(3, threads()),
   seed=(5, list), memory_limit=SMALL, time_limit=LATE)

def transported(**square):
    """Rows of everything that does Sinkhorn's iteration; `square` makes the cost 100 x 100."""
    return {
        "threads": (3, threads()), "memory_limit": SMALL, "time_limit": (1e-9, warns("TIME_LIMIT")),
        "device": ("cuda:99", raises("cuda:99", errors.NoDevice)),
        "cost_store": ("u16", plan_of), "domain": ("kernel", plan_of), "kernel_store": ("bf16", plan_of, {"domain": "kernel"}),
        "accel": ("none", plan_of), "rho_source": (1.0, plan_of), "rho_target": (1.0, plan_of),
        "reference": ("product", plan_of, {"rho_source": 1.0, "rho_target": 1.0}), "mass": (0.5, plan_of),
        "round": (True, plan_of),
        "auto_store": (True, cures("as f64 need"), {**square, "cost_store": "f64", "memory_limit": 200000}),
    }


SQUARE = np.abs(FAR[:100, :1] - FAR[:100, 1])
of(gw.transport, {"cost": COST, "threads": 1}, **{**transported(cost=SQUARE), "round": (False, plan_of)},
   cost=(2 * COST, plan_of), a=(A, plan_of), b=(B, plan_of), start=((A, B), plan_of), progress=ASKED, epsilon=(0.3, plan_of),
   tol=(0.1, plan_of), max_iter=(1, plan_of))



# ---- fourge.anndata ----


class Cells:
    """What fourge.anndata asks of an AnnData object."""

    def __init__(self, x, mark, copied=False):
        self.X, self.obs_names, self.uns, self.copied = x, [f"{mark}{i}" for i in range(len(x))], {}, copied
        self.obs = {"kind": np.array(list("abc"))[np.arange(len(x)) % 3], "weight": np.arange(1.0, len(x) + 1)}
        self.obsm = {"X_pca": x, "X_other": x**3}

    def copy(self):
        return Cells(self.X, "a", copied=True)


HERE = {}


def cells():
    """Both sides anew, the first one kept to be looked at."""
    HERE["a"] = Cells(X, "a")
    return {"a": HERE["a"], "b": Cells(Y, "b"), "distance": "euclidean", "epsilon": 0.02, "threads": 1}


ALIGNED = {**GRAPHS, **alignment(), **LINEAR, **LONGER}
of(anndata.align, cells, **ALIGNED, a=(Cells(X**3, "a"), plan_of), b=(Cells(Y**3, "b"), plan_of), use_rep=("X_other", plan_of),
   key_added=("best", lambda found: sorted(HERE["a"].obs)), n_matches=(2, lambda found: HERE["a"].obsm["gw_index"]),
   labels=("kind", lambda found: sorted(HERE["a"].obs)), weights=(("weight", None), plan_of),
   copy=(True, lambda found: isinstance(found, tuple)), linear=(COST, cures("linear"), {"linear_weight": 0.5}),
   start=(PLAN, plan_of), potentials=((A, B), plan_of), progress=ASKED,
   checkpoint=("state", writes("state"), {"checkpoint_every": 0.0}),
   checkpoint_every=(0.0, writes("state"), {"checkpoint": "state"}), resume=("nowhere", raises("nowhere")),
   distance=("dijkstra", plan_of, {"k": 3}))


class OfKeywords(Table, unittest.TestCase):
    rows, modules, file = rows, (gw, anndata), __file__
    elsewhere = {"gw.sampled_gw(differentiable=)", "gw.sampled_gw(grad_mode=)"}  # need torch


if __name__ == "__main__":
    main(rows)
