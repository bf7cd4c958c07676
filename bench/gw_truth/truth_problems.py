"""Alignment problems with a known answer: what gw_truth.py runs on.

A family is a function of a random generator, a size and its parameters that gives a :class:`Problem`; its name says all of
them, so that the name alone makes the data again.  Distances are scaled so that the largest of both sides is 1.

SETS names what is run: `quick` (minutes), `full` (hours, with n up to 3000), `large` (5000 and 20000 points) and `aside`,
which has other seeds, sizes and parameters than the others and which nothing may be tuned on.
"""
from __future__ import annotations

import csv
import dataclasses
import functools
import importlib.util
import itertools
import pathlib
import warnings
import zlib
from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

DIGITS = pathlib.Path(__file__).parents[2] / "data" / "digits.csv"


@dataclasses.dataclass
class Problem:
    """Two metric spaces and what is known of them.

    x, y are points whose Euclidean distances C and D are (None for others).  An origin (m,) says of which source each target
    is the image, -1 of none; a row i is matched where the origin of its largest entry is of the class of i, by any one of the
    origins (one for every symmetry of the space).  coordinates are numbers of both sides whose order a plan should keep."""

    c: np.ndarray | None = None
    d: np.ndarray | None = None
    x: np.ndarray | None = None
    y: np.ndarray | None = None
    a: np.ndarray | None = None
    b: np.ndarray | None = None
    origins: list[np.ndarray] = dataclasses.field(default_factory=list)
    classes: np.ndarray | None = None
    labels: tuple[np.ndarray, np.ndarray] | None = None
    coordinates: tuple[np.ndarray, np.ndarray] | None = None
    name: str = ""
    family: str = ""

    def __post_init__(self):
        if self.c is None and len(self.x) <= DENSE:
            self.c, self.d = cdist(self.x, self.x), cdist(self.y, self.y)
        if self.c is not None:
            most = max(self.c.max(), self.d.max())
            self.c, self.d = self.c / most, self.d / most
        else:
            most = max(np.ptp(self.x, 0).max(), np.ptp(self.y, 0).max())
        if self.x is not None:
            self.x, self.y = self.x / most, self.y / most
        n, m = self.shape
        self.a = np.full(n, 1 / n) if self.a is None else self.a / self.a.sum()
        self.b = np.full(m, 1 / m) if self.b is None else self.b / self.b.sum()

    @property
    def shape(self):
        return (len(self.x), len(self.y)) if self.c is None else (len(self.c), len(self.d))

    @property
    def square(self):
        """Whether plans that are vertices are permutations."""
        n, m = self.shape
        return n == m and np.ptp(self.a) == 0 and np.ptp(self.b) == 0


#: Above this many points the distances of points are not formed.
DENSE = 6000
FAMILIES: dict[str, Callable[..., Problem]] = {}


def family(make):
    FAMILIES[make.__name__] = make
    return make


def make(name: str) -> Problem:
    """The problem of a name "family:key=value,...": n and seed are among the keys, others the family's parameters."""
    kind, _, rest = name.partition(":")
    options = dict(word.split("=", 1) for word in rest.split(","))
    values = {key: number(value) for key, value in options.items()}
    seed = values.pop("seed")
    # the noise of one parameter's problem is not that of another's
    rng = np.random.default_rng([seed, zlib.crc32(",".join(f"{k}={v}" for k, v in options.items() if k not in ("seed",)).encode())])
    problem = FAMILIES[kind](rng, **values)
    problem.name, problem.family = name, kind
    return problem


def number(word: str):
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word


# ---- clouds --------------------------------------------------------------------------------------------------------


def axes(d):
    return 0.65 ** np.arange(d)


def moved(rng, points, noise):
    """A copy in another order, with normal noise of `noise` times the widest axis; and its origin."""
    order = rng.permutation(len(points))
    return points[order] + noise * points.std(0).max() * rng.standard_normal(points.shape), order


@family
def cloud(rng, n, d=3, noise=0.02):
    """A normal cloud and its nearly isometric copy."""
    x = rng.standard_normal((n, d)) * axes(d)
    y, order = moved(rng, x, noise)
    return Problem(x=x, y=y, origins=[order])


@family
def mixture(rng, n, d=3, noise=0.02, k=5):
    """Clusters of unequal size."""
    which = np.sort(rng.choice(k, n, p=rng.dirichlet(np.full(k, 2.0))))
    x = rng.standard_normal((k, d))[which] * 2 + rng.standard_normal((n, d)) * rng.uniform(0.1, 0.5, (k, d))[which]
    y, order = moved(rng, x, noise)
    return Problem(x=x, y=y, origins=[order], labels=(which, which[order]))


@family
def cropped(rng, n, d=3, noise=0.02, keep=0.75):
    """The copy lacks the points at one end of the widest axis."""
    x = rng.standard_normal((n, d)) * axes(d)
    y, order = moved(rng, x, noise)
    kept = np.argsort(x[order, 0])[: round(keep * n)]
    kept = rng.permutation(kept)
    return Problem(x=x, y=y[kept], origins=[order[kept]])


@family
def outliers(rng, n, d=3, noise=0.02, share=0.05):
    """The copy has further points, far from all others."""
    x = rng.standard_normal((n, d)) * axes(d)
    y, order = moved(rng, x, noise)
    extra = max(round(share * n), 1)
    y, order = np.r_[y, rng.uniform(-4, 4, (extra, d))], np.r_[order, np.full(extra, -1)]
    mixed = rng.permutation(len(y))
    return Problem(x=x, y=y[mixed], origins=[order[mixed]])


@family
def weighted(rng, n, d=3, noise=0.02):
    """Points of unequal weight, kept by the copy."""
    x = rng.standard_normal((n, d)) * axes(d)
    y, order = moved(rng, x, noise)
    a = rng.dirichlet(np.full(n, 2.0))
    return Problem(x=x, y=y, a=a, b=a[order], origins=[order])


@family
def split(rng, n, d=3, noise=0.02, copies=2):
    """Every point has several images."""
    x = rng.standard_normal((n, d)) * axes(d)
    y, order = moved(rng, np.repeat(x, copies, 0), noise)
    return Problem(x=x, y=y, origins=[order // copies])


def bent(u, v):
    """An L-shaped sheet bent in space: no symmetry."""
    return np.c_[np.cos(2 * u) * (1 + 0.3 * v), np.sin(2 * u), v + 0.4 * u**2]


@family
def density(rng, n, power=2.0):
    """Two samples of one surface whose densities differ; n and 4 n / 5 points."""
    m = 4 * n // 5
    u, v = rng.random(n), rng.random(n)
    s, t = rng.random(m) ** power, rng.random(m)
    return Problem(x=bent(2 * u, v), y=bent(2 * s, t), coordinates=(u, s))


@family
def samples(rng, n, d=3):
    """Two samples of one law, n and 4 n / 5 points: no truth but the energy."""
    x, y = rng.standard_normal((n, d)) * axes(d), rng.standard_normal((4 * n // 5, d)) * axes(d)
    return Problem(x=x, y=y, coordinates=(x[:, 0], y[:, 0]))


@family
def independent(rng, n, d=3):
    """Two clouds that have nothing in common."""
    return Problem(x=rng.standard_normal((n, d)), y=rng.standard_normal((n, d)))


@family
def tiny(rng, n, kind="clouds"):
    """Problems small enough for all permutations."""
    if kind == "clouds":
        return Problem(x=rng.standard_normal((n, 2)), y=rng.standard_normal((n, 2)))
    if kind == "copy":
        x = rng.standard_normal((n, 2))
        y, order = moved(rng, x, 0.05)
        return Problem(x=x, y=y, origins=[order])
    c, d = rng.random((n, n)), rng.random((n, n))  # kind == "random": no metric
    c, d = c + c.T, d + d.T
    np.fill_diagonal(c, 0)
    np.fill_diagonal(d, 0)
    return Problem(c=c, d=d)


# ---- curves and surfaces by geodesics ------------------------------------------------------------------------------


def geodesics(points, k):
    """Shortest paths through the graph of the k nearest neighbours, whose components are joined at their nearest points."""
    n = len(points)
    lengths, nearest = cKDTree(points).query(points, k + 1)
    rows = np.repeat(np.arange(n), k)
    graph = coo_matrix((lengths[:, 1:].ravel() + 1e-12, (rows, nearest[:, 1:].ravel())), (n, n)).tocsr()
    graph = graph.maximum(graph.T)
    count, part = connected_components(graph)
    while count > 1:
        inside = np.flatnonzero(part == 0)
        outside = np.flatnonzero(part != 0)
        away, index = cKDTree(points[outside]).query(points[inside])
        i = away.argmin()
        ends = inside[i], outside[index[i]]
        edge = csr_matrix(([away[i] + 1e-12] * 2, (ends, ends[::-1])), (n, n))
        graph = graph.maximum(edge)
        count, part = connected_components(graph)
    return dijkstra(graph)


def rolled(flat, turns):
    """A sheet of length 1 rolled up along a spiral r = angle, without stretching."""
    table = 1.5 * np.pi + np.linspace(0, turns * 2 * np.pi, 20000)
    length = (table * np.sqrt(1 + table**2) + np.arcsinh(table)) / 2
    length -= length[0]
    angle = np.interp(flat[:, 0], length / length[-1], table)
    return np.c_[angle * np.cos(angle) / length[-1], flat[:, 1], angle * np.sin(angle) / length[-1]]


@family
def swiss(rng, n, noise=0.01, k=8, height=0.08):
    """A flat sheet rolled twice with different winding, the same points of it."""
    flat = np.c_[rng.random(n), height * rng.random(n)]
    x = rolled(flat, 1.0)
    y, order = moved(rng, rolled(flat, 1.5), noise / 10)
    return Problem(c=geodesics(x, k), d=geodesics(y, k), origins=[order], coordinates=(flat[:, 0], flat[order, 0]))


@family
def spiral(rng, n, noise=0.05, k=5):
    """The seed's problem: a noisy spiral in the plane and a roll in space, n and 5 n / 4 points in order of their angle."""
    def curve(count):
        radius, angle = np.linspace(0.3, 1.0, count), np.linspace(0, 9, count)
        e = rng.normal(size=(2, count)) * noise
        return (radius + e[0]) * np.cos(angle), (radius + e[1]) * np.sin(angle), angle

    m = n + n // 4
    x, y, s = curve(n)
    u, v, t = curve(m)
    return Problem(c=geodesics(np.c_[x, y], k), d=geodesics(np.c_[u, rng.random(m), v], k), coordinates=(s, t))


def limb(along, around, base, length, bend, width):
    """Points of a tube of the given length that starts at `base` and whose axis turns by `bend` towards z."""
    s = along * length
    turn = bend / length
    out, up = (np.sin(turn * s) / turn, (1 - np.cos(turn * s)) / turn) if bend else (s, 0 * s)
    angle = np.arctan2(base[1], base[0])
    tilt = turn * s
    side = width * np.cos(around)
    rise = width * np.sin(around)
    radial = out - rise * np.sin(tilt)
    return np.c_[base[0] + radial * np.cos(angle) - side * np.sin(angle), base[1] + radial * np.sin(angle) + side * np.cos(angle),
                 up + rise * np.cos(tilt)]


@family
def hand(rng, n, bend=1.2, k=8, limbs=5, noise=0.0):
    """A sphere with tubes of different lengths, stretched and bent: two poses of one surface, nearly isometric."""
    lengths = np.linspace(0.8, 2.0, limbs)
    which = rng.choice(limbs + 1, n, p=np.r_[2.0, lengths] / (2.0 + lengths.sum()))
    along, around = rng.random(n), rng.uniform(0, 2 * np.pi, n)
    z = rng.uniform(-1, 1, n)
    round_ = 0.6 * np.c_[np.sqrt(1 - z**2) * np.cos(around), np.sqrt(1 - z**2) * np.sin(around), z]
    poses = []
    for bends in (np.zeros(limbs), bend * rng.uniform(0.5, 1.0, limbs)):
        points = round_.copy()
        for i in range(limbs):
            here = which == i
            angle = 2 * np.pi * (i + 0.15 * i**1.5) / (limbs + 1.5)
            points[here] = limb(along[here], around[here], 0.55 * np.array([np.cos(angle), np.sin(angle)]), lengths[i], bends[i], 0.15)
        poses.append(points)
    y, order = moved(rng, poses[1], noise)
    return Problem(c=geodesics(poses[0], k), d=geodesics(y, k), origins=[order], labels=(which, which[order]))


@family
def sheet(rng, n, k=8):
    """An L-shaped sheet, flat and rolled into a part of a cylinder: isometric."""
    flat = rng.random((4 * n, 2)) * [2.0, 1.0]
    flat = flat[~((flat[:, 0] > 0.7) & (flat[:, 1] > 0.45))][:n]
    order = rng.permutation(n)
    bent_ = np.c_[np.sin(flat[:, 0] * 1.5) / 1.5, flat[:, 1], (1 - np.cos(flat[:, 0] * 1.5)) / 1.5][order]
    return Problem(c=geodesics(np.c_[flat, np.zeros(n)], k), d=geodesics(bent_, k), origins=[order])


# ---- symmetric shapes ----------------------------------------------------------------------------------------------


def symmetries(points, maps):
    """The permutations that the linear maps do to the points."""
    tree, out = cKDTree(points), []
    for g in maps:
        away, index = tree.query(points @ np.asarray(g).T)
        if away.max() < 1e-9 and len(np.unique(index)) == len(points):
            out.append(index)
    return out


def signed_axes(d):
    for order in itertools.permutations(range(d)):
        for signs in itertools.product((1, -1), repeat=d):
            yield np.eye(d)[list(order)] * np.array(signs)[:, None]


def turns(k):
    for i in range(k):
        c, s = np.cos(2 * np.pi * i / k), np.sin(2 * np.pi * i / k)
        yield np.array([[c, -s], [s, c]])
        yield np.array([[c, s], [s, -c]])


@family
def symmetric(rng, n, shape="ring", noise=0.002, k=4):
    """A regular polygon, a square or cubic lattice, a box, or k turned copies of one cloud."""
    if shape == "ring":
        angle = 2 * np.pi * np.arange(n) / n
        x, maps = np.c_[np.cos(angle), np.sin(angle)], turns(n)
    elif shape in ("square", "cube", "box"):
        d = 2 if shape == "square" else 3
        side = round(n ** (1 / d))
        sides = [side, side, side][:d] if shape != "box" else [side + 1, side, side - 1]
        x = np.stack(np.meshgrid(*[np.arange(s) - (s - 1) / 2 for s in sides], indexing="ij"), -1).reshape(-1, d)
        maps = signed_axes(d)
    else:  # blades
        part = rng.standard_normal((n // k, 2)) * [0.5, 0.2] + [1.5, 0.3]
        x = np.concatenate([part @ g.T for g in list(turns(k))[::2]])
        maps = turns(k)
    found = symmetries(x, maps)
    y, order = moved(rng, x, noise)
    return Problem(x=x, y=y, origins=[g[order] for g in found])


# ---- graphs --------------------------------------------------------------------------------------------------------


def rewired(rng, edges, n, share, near=None):
    """Some edges are taken away and as many put elsewhere, between nodes that `near` allows."""
    keep = rng.random(len(edges)) >= share
    kept = set(map(tuple, edges[keep]))
    while len(kept) < len(edges):
        i, j = sorted(rng.integers(n, size=2))
        if i != j and (near is None or near(i, j)):
            kept.add((int(i), int(j)))
    return np.array(sorted(kept))


def adjacency(edges, n, weights=None):
    out = np.zeros((n, n))
    out[edges[:, 0], edges[:, 1]] = 1 if weights is None else weights
    return np.maximum(out, out.T)


def hops(matrix):
    """Shortest paths, one more than the longest where there is none."""
    out = dijkstra(csr_matrix(matrix))
    out[np.isinf(out)] = out[np.isfinite(out)].max() + 1
    return out


def twins(matrix):
    """Nodes with one neighbour in common with others of that kind, and with no other neighbour, are not told apart."""
    ids = np.arange(len(matrix))
    leaves = np.flatnonzero((matrix > 0).sum(1) == 1)
    for leaf in leaves:
        parent = matrix[leaf].argmax()
        ids[leaf] = next(i for i in leaves if matrix[i].argmax() == parent and matrix[i].max() == matrix[leaf].max())
    return ids


def relabelled(rng, first, second, of):
    """The problem of two weighted adjacency matrices of the same nodes; `of` says which distances."""
    order = rng.permutation(len(first))
    ways = {"hops": hops, "adjacency": np.array}
    return Problem(c=ways[of](first), d=ways[of](second)[np.ix_(order, order)], origins=[order], classes=twins(first))


@family
def blocks(rng, n, k=4, inside=0.4, outside=0.03, share=0.02, of="hops"):
    """A stochastic block graph with blocks of unequal size, some edges rewired."""
    which = np.sort(rng.choice(k, n, p=np.arange(1, k + 1) / (k * (k + 1) / 2)))
    p = np.where(which[:, None] == which, inside, outside)
    edges = np.argwhere(np.triu(rng.random((n, n)) < p, 1))
    problem = relabelled(rng, adjacency(edges, n), adjacency(rewired(rng, edges, n, share), n), of)
    problem.labels = which, which[problem.origins[0]]
    return problem


@family
def geometric(rng, n, degree=8, share=0.02, of="hops"):
    """Points of a square joined below a distance, some edges rewired, below twice that distance."""
    points = rng.random((n, 2))
    radius = np.sqrt(degree / (np.pi * n))
    edges = np.array(sorted(cKDTree(points).query_pairs(radius)))
    other = rewired(rng, edges, n, share, lambda i, j: np.linalg.norm(points[i] - points[j]) < 2 * radius)
    return relabelled(rng, adjacency(edges, n), adjacency(other, n), of)


@family
def tree(rng, n, noise=0.05, unit=0):
    """A random recursive tree; its lengths are random and differ by `noise` in the copy, or all 1."""
    edges = np.array([(rng.integers(i), i) for i in range(1, n)])
    lengths = np.ones(n - 1) if unit else rng.uniform(0.5, 1.5, n - 1)
    copy = lengths if unit else lengths * (1 + noise * rng.standard_normal(n - 1).clip(-3, 3))
    return relabelled(rng, adjacency(edges, n, lengths), adjacency(edges, n, copy), "hops")


@family
def grid(rng, n, noise=0.02, unit=0):
    """The square grid as a graph: lengths of 1 with its eight symmetries, or random ones."""
    side = round(n**0.5)
    n = side * side
    ids = np.arange(n).reshape(side, side)
    edges = np.r_[np.c_[ids[:, :-1].ravel(), ids[:, 1:].ravel()], np.c_[ids[:-1].ravel(), ids[1:].ravel()]]
    lengths = np.ones(len(edges)) if unit else rng.uniform(0.5, 1.5, len(edges))
    copy = lengths if unit else lengths * (1 + noise * rng.standard_normal(len(edges)))
    problem = relabelled(rng, adjacency(edges, n, lengths), adjacency(edges, n, copy), "hops")
    if unit:
        places = np.stack(np.divmod(np.arange(n), side), 1) - (side - 1) / 2
        problem.origins = [g[problem.origins[0]] for g in symmetries(places, signed_axes(2))]
    return problem


# ---- data ----------------------------------------------------------------------------------------------------------


@functools.cache
def digits():
    with open(DIGITS) as file:
        table = np.array(list(csv.reader(file))[1:], float)
    return table[:, :-1], table[:, -1].astype(int)


def principal(matrix, count):
    centred = matrix - matrix.mean(0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    return u[:, :count] * s[:count]


def measured(problem_x, problem_y, distance):
    """Euclidean distances of the rows, 1 on the mean of each side, or 1 less their correlations."""
    if distance == "euclidean":
        return {side: rows / cdist(rows, rows).mean() for side, rows in (("x", problem_x), ("y", problem_y))}
    return {"c": cdist(problem_x, problem_x, "correlation"), "d": cdist(problem_y, problem_y, "correlation")}


@family
def pixels(rng, n=0, distance="euclidean", share=0.5):
    """The pixels that vary, by two parts of the images."""
    images, _ = digits()
    mixed = rng.permutation(len(images))
    cut = round(share * len(images))
    first, second = images[mixed[:cut]].T, images[mixed[cut:]].T
    alive = (first.std(1) > 0.3) & (second.std(1) > 0.3)
    order = rng.permutation(alive.sum())
    first, second = first[alive] / np.sqrt(first.shape[1]), second[alive][order] / np.sqrt(second.shape[1])
    return Problem(**measured(first, second, distance), origins=[order])


@family
def images(rng, n, distance="euclidean"):
    """Images of digits by the two colours of a chessboard of their pixels."""
    pixels_, labels = digits()
    chosen = rng.permutation(len(pixels_))[:n]
    black = np.indices((8, 8)).sum(0).ravel() % 2 == 0
    order = rng.permutation(n)
    x, y = pixels_[chosen][:, black], pixels_[chosen][order][:, ~black]
    return Problem(**measured(x, y, distance), origins=[order], labels=(labels[chosen], labels[chosen][order]))


@family
def cells(rng, n, k=6, genes=300, distance="euclidean", depth=1.0):
    """Simulated cells in two assays: counts of genes and openness of peaks, of one latent state, in clusters of unequal size."""
    which = rng.choice(k, n, p=rng.dirichlet(np.full(k, 1.0)))
    centres, spread = 1.5 * rng.standard_normal((k, 6)), rng.uniform(0.2, 0.7, (k, 6))
    state = centres[which] + spread[which] * rng.standard_normal((n, 6))
    rates = np.exp(0.5 * state @ rng.standard_normal((6, genes)) + rng.standard_normal(genes) - 0.5)
    counts = rng.poisson(depth * rates)
    size = counts.sum(1, keepdims=True).clip(1)
    expressed = np.log1p(counts / size * np.median(size))
    chance = 1 / (1 + np.exp(-0.7 * state @ rng.standard_normal((6, 2 * genes)) + 1))
    opened = (rng.random(chance.shape) < chance).astype(float)
    order = rng.permutation(n)
    return Problem(**measured(principal(expressed, 20), principal(opened, 20)[order], distance), origins=[order],
                   labels=(which, which[order]))


@family
def pbmc(rng, n=700, distance="euclidean", components=20):
    """700 blood cells, 765 genes (scanpy's pbmc68k_reduced, BSD-3; where scanpy is installed): two halves of the genes."""
    import anndata

    spec = importlib.util.find_spec("scanpy")
    if spec is None:
        raise ModuleNotFoundError("scanpy", name="scanpy")
    warnings.simplefilter("ignore", FutureWarning)  # of its old format
    data = anndata.read_h5ad(pathlib.Path(spec.origin).parent / "datasets" / "10x_pbmc68k_reduced.h5ad")
    matrix, labels = np.asarray(data.X, float), np.asarray(data.obs["bulk_labels"].cat.codes)
    genes, chosen = rng.permutation(matrix.shape[1]), rng.permutation(len(matrix))[:n]
    half = len(genes) // 2
    order = rng.permutation(len(chosen))
    x, y = (principal(matrix[chosen][:, g], components) for g in (genes[:half], genes[half:]))
    return Problem(**measured(x, y[order], distance), origins=[order], labels=(labels[chosen], labels[chosen][order]))


# ---- what is run ---------------------------------------------------------------------------------------------------

#: (family, sizes, lists of parameters): every combination, with `seeds` each.
QUICK = [
    ("cloud", (20, 100, 300), {"d": (2, 3, 10), "noise": (0, 0.02, 0.1)}),
    ("mixture", (250,), {"noise": (0.02,)}),
    ("cropped", (100, 300), {}),
    ("outliers", (100, 300), {}),
    ("weighted", (100,), {}),
    ("split", (100,), {}),
    ("density", (200,), {}),
    ("samples", (200,), {}),
    ("independent", (40,), {"d": (2, 3)}),
    ("tiny", (5, 7), {"kind": ("clouds", "copy", "random")}),
    ("swiss", (200,), {}),
    ("spiral", (400,), {}),
    ("hand", (200,), {}),
    ("sheet", (200,), {}),
    ("symmetric", (64,), {"shape": ("ring", "square", "cube", "blades")}),
    ("blocks", (100,), {"share": (0, 0.05), "of": ("hops", "adjacency")}),
    ("geometric", (150,), {"share": (0, 0.02)}),
    ("tree", (150,), {"unit": (0, 1)}),
    ("grid", (144,), {"unit": (0, 1)}),
    ("pixels", (0,), {"distance": ("euclidean", "correlation")}),
    ("images", (200,), {}),
    ("cells", (300,), {"distance": ("euclidean", "correlation")}),
    ("pbmc", (300,), {}),
]
FULL = [
    ("cloud", (20, 50, 100, 300, 700, 1200), {"d": (2, 3, 5, 10), "noise": (0, 0.02, 0.05, 0.1)}),
    ("cloud", (3000,), {"noise": (0.02, 0.1)}),
    ("mixture", (100, 250, 1000), {"noise": (0.02, 0.1)}),
    ("cropped", (100, 400, 1000), {"keep": (0.5, 0.75, 0.9)}),
    ("outliers", (100, 300, 1000), {"share": (0.05, 0.1)}),
    ("weighted", (100, 400), {"noise": (0.02, 0.1)}),
    ("split", (100, 300), {"noise": (0.02, 0.1)}),
    ("density", (100, 400, 1000), {"power": (1.5, 2.0)}),
    ("samples", (100, 400, 1000), {"d": (2, 3, 5)}),
    ("independent", (20, 40, 80, 200), {"d": (2, 3, 5)}),
    ("tiny", (4, 5, 6, 7), {"kind": ("clouds", "copy", "random")}),
    ("swiss", (200, 400, 1000), {"noise": (0, 0.05)}),
    ("spiral", (400, 1000), {}),
    ("hand", (200, 500, 1500), {"bend": (0.5, 1.5)}),
    ("sheet", (200, 500, 1500), {}),
    ("symmetric", (64, 216, 400), {"shape": ("ring", "square", "cube", "box", "blades")}),
    ("blocks", (60, 150, 400), {"share": (0, 0.02, 0.05), "of": ("hops", "adjacency")}),
    ("geometric", (100, 200, 500), {"share": (0, 0.02, 0.05), "of": ("hops", "adjacency")}),
    ("tree", (100, 300, 800), {"unit": (0, 1)}),
    ("grid", (100, 400, 900), {"unit": (0, 1)}),
    ("pixels", (0,), {"distance": ("euclidean", "correlation")}),
    ("images", (200, 600, 1500), {"distance": ("euclidean", "correlation")}),
    ("cells", (200, 600, 1500), {"distance": ("euclidean", "correlation")}),
    ("pbmc", (300, 700), {"distance": ("euclidean", "correlation")}),
]
LARGE = [
    ("cloud", (5000, 20000), {"noise": (0.02,)}),
    ("cropped", (5000,), {}),
    ("mixture", (5000,), {}),
    ("samples", (5000,), {}),
    ("swiss", (5000,), {}),
    ("hand", (5000,), {}),
]
#: Nothing is tuned on these.
ASIDE = [
    ("cloud", (30, 150, 450, 900), {"d": (2, 4, 7), "noise": (0.01, 0.04, 0.08)}),
    ("mixture", (180, 600), {"d": (4,), "k": (3, 9), "noise": (0.05,)}),
    ("cropped", (140, 500), {"d": (2, 4), "keep": (0.6, 0.85)}),
    ("outliers", (140, 500), {"d": (2, 5), "share": (0.03, 0.2)}),
    ("weighted", (150,), {"d": (2, 6), "noise": (0.05,)}),
    ("split", (80,), {"d": (2,), "copies": (3,), "noise": (0.03,)}),
    ("density", (150, 600), {"power": (1.2, 3.0)}),
    ("samples", (150, 600), {"d": (4, 8)}),
    ("independent", (30, 60, 150), {"d": (4, 7)}),
    ("tiny", (4, 5, 6, 7), {"kind": ("clouds", "copy", "random")}),
    ("swiss", (300, 600), {"height": (0.05, 0.1), "k": (10,)}),
    ("spiral", (500, 800), {"noise": (0.02, 0.08)}),
    ("hand", (150, 800), {"limbs": (3, 7), "bend": (1.0,)}),
    ("sheet", (150, 800), {"k": (12,)}),
    ("symmetric", (49, 125, 343), {"shape": ("ring", "square", "cube", "box")}),
    ("symmetric", (60, 210), {"shape": ("blades",), "k": (3, 5)}),
    ("blocks", (80, 240), {"k": (3, 7), "share": (0.01, 0.08), "of": ("hops", "adjacency")}),
    ("geometric", (120, 320), {"degree": (6, 12), "share": (0.01, 0.03)}),
    ("tree", (80, 400), {"noise": (0.02, 0.15)}),
    ("grid", (81, 225), {"noise": (0.1,)}),
    ("pixels", (0,), {"share": (0.3, 0.7)}),
    ("images", (150, 800), {}),
    ("cells", (250, 900), {"k": (3, 12), "depth": (0.5,)}),
    ("pbmc", (400,), {"components": (10, 40)}),
]
#: Lists and seeds of a set; those of `aside` are no other set's.
SETS = {"quick": (QUICK, (0,)), "full": (FULL, (1,)), "large": (LARGE, (0,)), "aside": (ASIDE, (9001,))}


def names(which: str) -> Iterator[str]:
    """The names of the problems of a set."""
    lists, seeds = SETS[which]
    for kind, sizes, parameters in lists:
        for n, *values in itertools.product(sizes, *parameters.values()):
            words = [f"n={n}", *(f"{k}={v}" for k, v in zip(parameters, values))]
            for seed in seeds:
                yield f"{kind}:{','.join(words)},seed={seed}"
