"""Makes tests/golden/*.tsv from the tables in data/: python tools/make_golden.py [CASE ...]

Every case is computed twice: by pyfixest (its alternating projections to
a step of 1e-13, or the smallest power of ten that its columns can reach) and, with no code in common, by dense dummies here:
an orthonormal basis of the dummies from a Householder QR of their independent columns, projection applied twice,
the covariance formulas written out, the rank by singular values. Some are computed a third time by statsmodels with
dummies. What is written is pyfixest's number where pyfixest has the feature, else the dense one; the column `peer`
says which. agreement.tsv holds the largest relative differences, and a case that differs by more than 1e-9 in an
estimate or 1e-8 in a standard error stops the run. With CASE names nothing is written; those cases are printed.

Needs numpy, scipy, pandas, pyfixest and statsmodels. No random numbers are used. PYTHONHASHSEED is fixed because
pyfixest 0.60.0 keeps the effects of a formula in a set.
"""
import os
import sys

if os.environ.get("PYTHONHASHSEED") != "0":
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import datetime
import importlib.metadata
import itertools
import pathlib
import platform
import warnings

import numpy as np
import pandas as pd
import pyfixest
import scipy.linalg
import scipy.stats
import statsmodels.api as sm

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests" / "golden"
TABLES = {path.stem: pd.read_csv(path) for path in sorted((ROOT / "data").glob("*.csv"))}
TOLERANCES = (1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8)
COLUMNS = ["id", "data", "formula", "vcov", "weights", "weights_kind", "ssc", "singletons", "dof", "peer",
           "quantity", "term", "value"]
SSC = {"adj": "true", "fixef": "nonnested", "cluster.adj": "true", "cluster.df": "min"}


# ---- the models -----------------------------------------------------------------------------------------------------
# name: (table, left side, [(term as fixest names it, function of the table)], [effects], options)
# An effect is a tuple of key columns, or (keys, slope, with intercept) for a varying slope. The intercept is added
# where there is no effect.

def col(name):
    return name, lambda t: t[name]


def log(name):
    return f"log({name})", lambda t: np.log(t[name])


def square(name):
    return f"I({name}^2)", lambda t: t[name] ** 2


def times(a, b):
    return f"{a}:{b}", lambda t: t[a] * t[b]


def levels(name, ref=None, by=None):
    def terms(table):
        found = sorted(table[name].unique())
        kept = [level for level in found if level != (found[0] if ref is None and by is None else ref)]
        return [(f"{name}::{level}" + (f":{by}" if by else ""),
                 lambda t, level=level: (t[name] == level) * (t[by] if by else 1.0)) for level in kept]

    return terms


F, Y = ("firm",), ("year",)
MODELS = {
    # Grunfeld: string keys, 11 x 20, balanced
    "grunfeld_ols": ("grunfeld", "invest ~ value + capital", col("invest"), [col("value"), col("capital")], []),
    "grunfeld_firm": ("grunfeld", "invest ~ value + capital | firm", col("invest"), [col("value"), col("capital")], [F]),
    "grunfeld_twoway": ("grunfeld", "invest ~ value + capital | firm + year", col("invest"),
                        [col("value"), col("capital")], [F, Y]),
    "grunfeld_capital": ("grunfeld", "invest ~ capital | firm + year", col("invest"), [col("capital")], [F, Y]),
    "grunfeld_log": ("grunfeld", "log(invest) ~ log(value) + log(capital) | firm", log("invest"),
                     [log("value"), log("capital")], [F]),
    "grunfeld_square": ("grunfeld", "invest ~ value + I(value^2) + capital | year", col("invest"),
                        [col("value"), square("value"), col("capital")], [Y]),
    "grunfeld_i_ref": ("grunfeld", 'invest ~ value + i(firm, ref="IBM")', col("invest"),
                       [col("value"), levels("firm", "IBM")], []),
    "grunfeld_star": ("grunfeld", "invest ~ value*capital | firm + year", col("invest"),
                      [col("value"), col("capital"), times("value", "capital")], [F, Y]),
    "grunfeld_slope": ("grunfeld", "invest ~ value | firm[capital] + year", col("invest"), [col("value")],
                       [(F, "capital", True), Y]),
    "grunfeld_only_slope": ("grunfeld", "invest ~ value | firm[[capital]] + year", col("invest"), [col("value")],
                            [(F, "capital", False), Y]),
    # Wages: 545 x 8, balanced, integer keys
    "wage_ols": ("wage_panel", "lwage ~ educ + exper + I(exper^2) + union + married", col("lwage"),
                 [col("educ"), col("exper"), square("exper"), col("union"), col("married")], []),
    "wage_person": ("wage_panel", "lwage ~ exper + expersq + union + married | nr", col("lwage"),
                    [col("exper"), col("expersq"), col("union"), col("married")], [("nr",)]),
    "wage_twoway": ("wage_panel", "lwage ~ expersq + union + married + hours | nr + year", col("lwage"),
                    [col("expersq"), col("union"), col("married"), col("hours")], [("nr",), Y]),
    "wage_threeway": ("wage_panel", "lwage ~ expersq + union + married | nr + year + occupation", col("lwage"),
                      [col("expersq"), col("union"), col("married")], [("nr",), Y, ("occupation",)]),
    "wage_joint": ("wage_panel", "lwage ~ expersq + union + married | nr + occupation^year", col("lwage"),
                   [col("expersq"), col("union"), col("married")], [("nr",), ("occupation", "year")]),
    "wage_cells": ("wage_panel", "lwage ~ union + hours | nr^occupation + year", col("lwage"),
                   [col("union"), col("hours")], [("nr", "occupation"), Y]),
    "wage_i_ref": ("wage_panel", "lwage ~ union + i(occupation, ref=5) | nr + year", col("lwage"),
                   [col("union"), levels("occupation", 5)], [("nr",), Y]),
    "wage_i_first": ("wage_panel", "lwage ~ union + i(occupation) | nr + year", col("lwage"),
                     [col("union"), levels("occupation")], [("nr",), Y]),
    "wage_i_by": ("wage_panel", "lwage ~ i(year, union, ref=1980) + married | nr", col("lwage"),
                  [levels("year", 1980, "union"), col("married")], [("nr",)]),
    "wage_star": ("wage_panel", "lwage ~ union*married + exper:educ | nr + year", col("lwage"),
                  [col("union"), col("married"), times("union", "married"), times("exper", "educ")], [("nr",), Y]),
    "wage_collinear": ("wage_panel", "lwage ~ exper + union + educ + black | nr + year", col("lwage"),
                       [col("union")], [("nr",), Y]),
    "wage_occupation": ("wage_panel", "lwage ~ educ + union + black + hisp | occupation + year", col("lwage"),
                        [col("educ"), col("union"), col("black"), col("hisp")], [("occupation",), Y]),
    "wage_slope": ("wage_panel", "lwage ~ union + married | nr[exper]", col("lwage"), [col("union"), col("married")],
                   [(("nr",), "exper", True)]),
    # States: string keys, 48 x 17
    "munnell_ols": ("munnell", "log(GSP) ~ log(P_CAP) + log(PC) + log(EMP) + UNEMP", log("GSP"),
                    [log("P_CAP"), log("PC"), log("EMP"), col("UNEMP")], []),
    "munnell_twoway": ("munnell", "log(GSP) ~ log(P_CAP) + log(PC) + log(EMP) + UNEMP | ST_ABB + YR", log("GSP"),
                       [log("P_CAP"), log("PC"), log("EMP"), col("UNEMP")], [("ST_ABB",), ("YR",)]),
    "munnell_same": ("munnell", "log(GSP) ~ log(P_CAP) + UNEMP | STATE + ST_ABB + YR", log("GSP"),
                     [log("P_CAP"), col("UNEMP")], [("STATE",), ("ST_ABB",), ("YR",)]),
    "munnell_trend": ("munnell", "log(GSP) ~ log(PC) + UNEMP | ST_ABB[YR] + YR", log("GSP"), [log("PC"), col("UNEMP")],
                      [(("ST_ABB",), "YR", True), ("YR",)]),
    # Job training: missing cells, singletons, unbalanced
    "training_ols": ("jobtraining", "lscrap ~ grant + union + lemploy", col("lscrap"),
                     [col("grant"), col("union"), col("lemploy")], []),
    "training_twoway": ("jobtraining", "hrsemp ~ grant + grant_1 + lemploy | fcode + year", col("hrsemp"),
                        [col("grant"), col("grant_1"), col("lemploy")], [("fcode",), Y]),
    "training_scrap": ("jobtraining", "lscrap ~ grant + grant_1 + lsales | fcode + year", col("lscrap"),
                       [col("grant"), col("grant_1"), col("lsales")], [("fcode",), Y]),
    "training_cells": ("jobtraining", "lavgsal ~ lemploy + lsales | fcode + union^year", col("lavgsal"),
                       [col("lemploy"), col("lsales")], [("fcode",), ("union", "year")]),
    # Cigarettes (46 x 30) and UK firms (140, unbalanced)
    "cigar_ols": ("cigar", "sales ~ price", col("sales"), [col("price")], []),
    "cigar_state": ("cigar", "sales ~ price | state", col("sales"), [col("price")], [("state",)]),
    "cigar_twoway": ("cigar", "sales ~ price | state + year", col("sales"), [col("price")], [("state",), Y]),
    "cigar_pimin": ("cigar", "sales ~ price + pimin | state", col("sales"), [col("price"), col("pimin")], [("state",)]),
    "cigar_slope": ("cigar", "sales ~ price | state[year]", col("sales"), [col("price")], [(("state",), "year", True)]),
    "cigar_only_slope": ("cigar", "sales ~ price | state[[year]]", col("sales"), [col("price")],
                         [(("state",), "year", False)]),
    "cigar_full": ("cigar", "log(sales) ~ log(price) + log(ndi) + log(pimin) | state + year", log("sales"),
                   [log("price"), log("ndi"), log("pimin")], [("state",), Y]),
    "empluk_firm": ("empluk", "wage ~ emp | firm", col("wage"), [col("emp")], [F]),
    "empluk_twoway": ("empluk", "wage ~ emp | firm + year", col("wage"), [col("emp")], [F, Y]),
    "empluk_sector": ("empluk", "log(emp) ~ log(wage) + log(capital) + log(output) | firm + sector^year", log("emp"),
                      [log("wage"), log("capital"), log("output")], [F, ("sector", "year")]),
}


def case(model, vcov="iid", weights=None, kind="analytic", ssc="", singletons="drop"):
    return model, vcov, weights, kind, ssc, singletons


CASES = []
for _model, _vcovs in {
    "grunfeld_ols": "iid hc1 cluster=firm cluster=year cluster=firm+year",
    "grunfeld_firm": "iid hc1 cluster=firm cluster=year cluster=firm+year",
    "grunfeld_twoway": "iid hc1 cluster=firm cluster=year cluster=firm+year",
    "grunfeld_capital": "iid cluster=firm",
    "grunfeld_log": "iid hc1 cluster=firm",
    "grunfeld_square": "iid hc1 cluster=year",
    "grunfeld_i_ref": "iid hc1",
    "grunfeld_star": "iid cluster=firm",
    "grunfeld_slope": "iid hc1",
    "grunfeld_only_slope": "iid hc1",
    "wage_ols": "iid hc1 cluster=nr cluster=nr+year cluster=nr+occupation cluster=nr+occupation+exper "
                "cluster=nr+occupation+exper+educ",
    "wage_person": "iid hc1 cluster=nr cluster=nr+year",
    "wage_twoway": "iid hc1 cluster=nr cluster=occupation cluster=nr+year cluster=nr+occupation+year",
    "wage_threeway": "iid hc1 cluster=nr cluster=occupation cluster=nr+occupation",
    "wage_joint": "iid hc1 cluster=nr cluster=year",
    "wage_cells": "iid hc1 cluster=nr",
    "wage_i_ref": "iid cluster=nr",
    "wage_i_first": "iid cluster=nr",
    "wage_i_by": "iid cluster=nr",
    "wage_star": "iid cluster=nr",
    "wage_collinear": "iid cluster=nr",
    "wage_occupation": "iid hc1 cluster=occupation cluster=nr cluster=nr+occupation cluster=nr+occupation+year",
    "wage_slope": "iid hc1 cluster=nr",
    "munnell_ols": "iid hc1 cluster=STATE cluster=STATE+YR",
    "munnell_twoway": "iid hc1 cluster=ST_ABB cluster=YR cluster=ST_ABB+YR",
    "munnell_same": "iid cluster=ST_ABB",
    "munnell_trend": "iid hc1",
    "training_ols": "iid hc1 cluster=fcode",
    "training_twoway": "iid hc1 cluster=fcode cluster=fcode+year",
    "training_scrap": "iid hc1 cluster=fcode",
    "training_cells": "iid hc1 cluster=fcode cluster=year",
    "cigar_ols": "iid hc1 cluster=state cluster=state+year",
    "cigar_state": "iid hc1 cluster=state cluster=year cluster=state+year",
    "cigar_twoway": "iid hc1 cluster=state cluster=year cluster=state+year",
    "cigar_pimin": "iid cluster=state",
    "cigar_slope": "iid hc1 cluster=state",
    "cigar_only_slope": "iid hc1 cluster=state",
    "cigar_full": "iid hc1 cluster=state cluster=state+year",
    "empluk_firm": "iid hc1 cluster=firm",
    "empluk_twoway": "iid hc1 cluster=firm cluster=sector cluster=firm+year",
    "empluk_sector": "iid hc1 cluster=firm cluster=sector",
}.items():
    CASES += [case(_model, vcov) for vcov in _vcovs.split()]
for _model, _weights, _vcovs in (
    ("grunfeld_twoway", "value", "iid hc1 cluster=firm cluster=firm+year"),
    ("wage_ols", "hours", "iid hc1 cluster=nr"),
    ("wage_twoway", "educ", "iid hc1 cluster=nr cluster=nr+year"),
    ("wage_threeway", "educ", "iid cluster=nr"),
    ("munnell_twoway", "EMP", "iid hc1 cluster=ST_ABB"),
    ("cigar_twoway", "pop", "iid hc1 cluster=state"),
    ("cigar_slope", "pop", "iid hc1"),
    ("empluk_twoway", "output", "iid hc1 cluster=firm"),
):
    CASES += [case(_model, vcov, _weights) for vcov in _vcovs.split()]
CASES += [case("wage_twoway", vcov, "educ", "frequency") for vcov in ("iid", "hc1", "cluster=nr")]
CASES += [case("grunfeld_ols", "iid", "year", "frequency")]
for _model, _one, _two in (("grunfeld_twoway", "cluster=firm", "cluster=firm+year"),
                           ("wage_twoway", "cluster=nr", "cluster=nr+occupation"),
                           ("wage_threeway", "cluster=nr", "cluster=nr+occupation"),
                           ("training_twoway", "cluster=fcode", "cluster=fcode+year")):
    CASES += [case(_model, _one, ssc=s) for s in ("fixef=none", "fixef=full", "adj=false", "cluster.adj=false",
                                                  "adj=false,cluster.adj=false")]
    CASES += [case(_model, _two, ssc=s) for s in ("cluster.df=conventional", "fixef=full",
                                                  "fixef=none,cluster.df=conventional")]
    # pyfixest ties n / (n - 1) of hc1 to `adj`, fixest and we to `cluster.adj`: they agree where both are one
    CASES += [case(_model, "hc1", ssc=s) for s in ("fixef=none", "adj=false,cluster.adj=false")]
    CASES += [case(_model, "iid", ssc=s) for s in ("fixef=none", "adj=false")]
for _model in ("training_twoway", "training_scrap", "training_cells", "wage_cells"):
    CASES += [case(_model, vcov, singletons="keep") for vcov in ("iid", "hc1", f"cluster={'nr' if _model[0] == 'w' else 'fcode'}")]

# Fixed effects and in-sample predictions are written for these (iid) cases; see README.md for the normalisation.
EFFECTS = {"grunfeld_firm", "grunfeld_twoway", "munnell_twoway", "cigar_twoway", "empluk_twoway", "wage_threeway"}
FITTED = {"grunfeld_twoway", "grunfeld_ols", "training_scrap"}


# ---- dense computation ----------------------------------------------------------------------------------------------
def codes(table, keys):
    return table.groupby(list(keys), sort=False).ngroup().to_numpy()


def used(model, vcov, weights, singletons):
    """The rows used: (table, rows dropped because of missing cells, singletons dropped)."""
    name, formula, left, right, effects = MODELS[model]
    table = TABLES[name]
    cells = set()
    for word in table.columns:
        if word in formula.replace("(", " ").replace(")", " ").replace("^", " ").replace("*", " ").replace(
                ":", " ").replace(",", " ").replace("[", " ").replace("]", " ").replace("+", " ").split():
            cells.add(word)
    if vcov.startswith("cluster="):
        cells |= set(vcov[8:].split("+"))
    if weights:
        cells.add(weights)
    kept = table.dropna(subset=sorted(cells))
    missing = len(table) - len(kept)
    before = len(kept)
    while singletons == "drop" and effects:
        alone = np.zeros(len(kept), bool)
        for effect in effects:
            code = codes(kept, effect[0] if isinstance(effect[0], tuple) else effect)
            alone |= np.bincount(code)[code] == 1
        if not alone.any():
            break
        kept = kept[~alone]
    return kept, missing, before - len(kept)


def dense(model, vcov, weights, kind, ssc, singletons, exact=False):
    name, _, left, right, effects = MODELS[model]
    t, missing, alone = used(model, vcov, weights, singletons)
    rows = len(t)
    w = t[weights].to_numpy(float) if weights else np.ones(rows)
    n = int(w.sum()) if kind == "frequency" else rows
    terms = [term for part in right for term in (part(t) if callable(part) else [part])]
    y = np.asarray(left[1](t), float)
    x = np.column_stack([np.asarray(make(t), float) for _, make in terms]) if terms else np.empty((rows, 0))
    names = [term for term, _ in terms]
    spanned = any(not isinstance(effect[0], tuple) or effect[2] for effect in effects)
    if not spanned:  # slopes alone do not span the constant
        x, names = np.column_stack([np.ones(rows), x]), ["(Intercept)", *names]
    root = np.sqrt(w)
    y_in, x_in = y.copy(), x.copy()
    blocks, coded, naive = [], [], 0
    for effect in effects:
        keys, slope, intercept = effect if isinstance(effect[0], tuple) else (effect, None, True)
        code = codes(t, keys)
        hot = np.eye(code.max() + 1)[code]
        if intercept:
            blocks.append(hot)
            naive += hot.shape[1] - (1 if coded else 0)
        if slope:
            z = t[slope].to_numpy(float)
            blocks.append(hot * z[:, None])
            naive += hot.shape[1]
        coded.append((keys, code, slope))
    rank = 0
    if blocks:
        d = root[:, None] * np.column_stack(blocks)
        norm = np.linalg.norm(d, axis=0)
        d = d[:, norm > 0] / norm[norm > 0]
        q, r, _ = scipy.linalg.qr(d, mode="economic", pivoting=True)
        rank = int((np.abs(np.diag(r)) > 1e-9 * np.abs(r[0, 0])).sum())
        q = q[:, :rank]

        def project(v):
            for _ in range(3):
                v = v - q @ (q.T @ v)
            return v

        y_in = project(root * y) / root
        x_in = project(root[:, None] * x) / root[:, None]
    scale = np.linalg.norm(root[:, None] * x_in, axis=0)
    qx, rx = np.linalg.qr(root[:, None] * x_in / scale)
    beta = np.linalg.solve(rx, qx.T @ (root * y_in)) / scale
    inverse = np.linalg.inv(rx)
    bread = inverse @ inverse.T / np.outer(scale, scale)
    k = x.shape[1]
    e = y_in - x_in @ beta
    rules = {**SSC, **dict(part.split("=") for part in ssc.split(",") if part)}
    score = (w * e)[:, None] * x_in if kind == "analytic" else (np.sqrt(w) * e)[:, None] * x_in
    clusters = vcov[8:].split("+") if vcov.startswith("cluster=") else []
    # pyfixest counts levels; where it has no say (varying slopes) and where asked, the rank itself is counted
    exact = exact or any(slope for _, _, slope in coded)
    full = k + (rank if exact else naive)
    groups = {c: t.groupby(c, sort=False).ngroup().to_numpy() for c in clusters}
    nested, sizes = 0, 0
    for keys, code, slope in coded:
        size = (code.max() + 1)
        if any(len(set(zip(code, g))) == size for g in groups.values()):
            nested += 1
            sizes += size * (2 if slope else 1)
    if rules["fixef"] == "none":
        counted = k
    elif rules["fixef"] == "full" or not clusters or not nested:
        counted = full
    else:
        counted = k + spanned if nested == len(coded) else full - (sizes - nested)
    adj = rules["adj"] == "true"
    rss = float((w * e * e).sum())
    if vcov == "iid":
        v = bread * rss / (n - counted if adj else n - 1)
        df = n - counted
    elif vcov == "hc1":
        v = bread @ (score.T @ score) @ bread * ((n - 1) / (n - counted) if adj else 1.0)
        v = v * (n / (n - 1) if rules["cluster.adj"] == "true" else 1.0)
        df = n - counted
    else:
        score = (w * e)[:, None] * x_in
        smallest = min(g.max() + 1 for g in groups.values())
        v = np.zeros((k, k))
        for size in range(1, len(clusters) + 1):
            for some in itertools.combinations(clusters, size):
                g = codes(t, some)
                sums = np.zeros((g.max() + 1, k))
                np.add.at(sums, g, score)
                many = smallest if rules["cluster.df"] == "min" else g.max() + 1
                factor = (many / (many - 1) if rules["cluster.adj"] == "true" else 1.0) * ((n - 1) / (n - counted) if adj else 1.0)
                v += (-1) ** (size + 1) * factor * bread @ (sums.T @ sums) @ bread
        df = smallest - 1
    values, vectors = np.linalg.eigh(v)
    negative = float(min(values.min() / values.max(), 0.0))
    if clusters[1:] and np.diag(v).min() < 0:  # as fixest; eigenvalues alone leave it as it is
        v = vectors * np.maximum(values, 0.0) @ vectors.T
    mean = (w * y).sum() / w.sum()
    tss = float((w * (y - mean) ** 2).sum())
    slopes = list(range(k)) if spanned else list(range(1, k))
    vs = v[np.ix_(slopes, slopes)]
    out = {
        "estimate": dict(zip(names, beta)),
        "std_error": dict(zip(names, np.sqrt(np.diag(v)))),
        "n": n, "missing": missing, "singleton": alone, "k": k, "k_full": full, "k_counted": counted, "df_t": df,
        "absorbed_rank": rank, "absorbed_naive": naive, "rss": rss,
        "r2": 1 - rss / tss,
        "r2_adjusted": 1 - (rss / (n - full)) / (tss / (n - 1)),
        "rmse": (rss / n) ** 0.5,
        "wald_f": float(beta[slopes] @ np.linalg.solve(vs, beta[slopes]) / len(slopes)) if rss > 0 and np.any(vs) else float("nan"),
        "negative": negative, "exact": exact,
    }
    if effects:
        out["r2_within"] = 1 - rss / float((w * y_in**2).sum())
    out |= {f"clusters:{c}": int(g.max() + 1) for c, g in groups.items()}
    out["fitted"] = dict(zip(t.index + 1, y - e))
    out["residual"] = dict(zip(t.index + 1, e))
    if effects and all(slope is None for _, _, slope in coded):
        out["effects"] = recover(t, coded, y - e - x @ beta)
    out["covariance"] = {(a, b): v[i, j] for i, a in enumerate(names) for j, b in enumerate(names) if j <= i}
    return out


def recover(t, coded, total):
    """Effects whose first level (in the order of the rows) is 0 from the second factor on; needs a connected table."""
    hot = [np.eye(code.max() + 1)[code] for _, code, _ in coded]
    wanted = np.column_stack([hot[0], *(h[:, 1:] for h in hot[1:])])
    if np.linalg.matrix_rank(wanted) < wanted.shape[1]:
        return {}
    alpha = np.linalg.lstsq(wanted, total, rcond=None)[0]
    alpha += np.linalg.lstsq(wanted, total - wanted @ alpha, rcond=None)[0]
    out, at = {}, 0
    for index, (keys, code, _) in enumerate(coded):
        first = t.drop_duplicates(list(keys))
        for level in range(code.max() + 1):
            label = "^".join(keys) + "::" + "^".join(str(first[key].iloc[level]) for key in keys)
            if index and level == 0:
                out[label] = 0.0
            else:
                out[label] = alpha[at]
                at += 1
    return out


# ---- the peers ------------------------------------------------------------------------------------------------------
def by_pyfixest(model, vcov, weights, kind, ssc, singletons):
    name, formula, _, _, effects = MODELS[model]
    clusters = vcov[8:].split("+") if vcov.startswith("cluster=") else []
    if any(isinstance(effect[0], tuple) for effect in effects) or len(clusters) > 2:
        return None, "not offered"
    rules = {**SSC, **dict(part.split("=") for part in ssc.split(",") if part)}
    left, _, fixed = formula.partition("|")
    left = left.replace("^", "**") + ("|" + fixed if fixed else "")
    table = TABLES[name].copy()
    table.index = range(len(table))
    for tolerance in TOLERANCES:  # an absolute step: columns with large numbers cannot reach the smallest
        try:
            fit = pyfixest.feols(
                left, table, vcov={"iid": "iid", "hc1": "HC1"}.get(vcov) or {"CRV1": "+".join(clusters)}, weights=weights,
                weights_type={"analytic": "aweights", "frequency": "fweights"}[kind],
                ssc=pyfixest.ssc(k_adj=rules["adj"] == "true", k_fixef=rules["fixef"],
                                 G_adj=rules["cluster.adj"] == "true", G_df=rules["cluster.df"]),
                fixef_rm="singleton" if singletons == "drop" else "none",
                demeaner=pyfixest.MapDemeaner(fixef_tol=tolerance, fixef_maxiter=10_000))
            break
        except ValueError as error:
            if "Demeaning failed" not in str(error):
                raise
    tidy = fit.tidy()
    tidy.index = [str(i).replace("Intercept", "(Intercept)").replace(" ** ", "^") for i in tidy.index]
    keys = {"estimate": "Estimate", "std_error": "Std. Error", "statistic": "t value", "p_value": "Pr(>|t|)",
            "conf_low": "2.5%", "conf_high": "97.5%"}
    out = {ours: dict(zip(tidy.index, tidy[theirs].astype(float))) for ours, theirs in keys.items()}
    out["dropped"] = list(fit._collin_vars)
    out |= {"n": int(fit._N), "df_t": int(fit._df_t), "k_counted": int(fit._df_k), "r2": float(fit._r2),
            "r2_adjusted": float(fit._adj_r2), "rmse": float(fit._rmse)}
    if effects:
        out["r2_within"] = float(fit._r2_within)
    if model in EFFECTS and vcov == "iid" and not weights and not ssc:
        out["effects"] = {f"{factor.strip()[2:-1].strip()}::{level}": value
                          for factor, found in fit.fixef(1e-14, 1e-14).items() for level, value in found.items()}
    out["covariance"] = {(a, b): fit._vcov[i, j] for i, a in enumerate(tidy.index) for j, b in enumerate(tidy.index) if j <= i}
    return out, "pyfixest"


def by_statsmodels(model, vcov, weights, kind, ssc, singletons):
    """Estimates and standard errors with dummies, where statsmodels' own correction is one of ours."""
    name, _, left, right, effects = MODELS[model]
    one_way = vcov.startswith("cluster=") and "+" not in vcov
    plain = vcov in ("iid", "hc1") and not ssc or one_way and (ssc == "fixef=full" or not effects and not ssc)
    if not plain or kind != "analytic" or any(isinstance(effect[0], tuple) for effect in effects):
        return None
    t, _, _ = used(model, vcov, weights, singletons)
    terms = [term for part in right for term in (part(t) if callable(part) else [part])]
    x = np.column_stack([np.asarray(make(t), float) for _, make in terms])
    dummies = [np.ones((len(t), 1))]
    for effect in effects:
        code = codes(t, effect)
        dummies.append(np.eye(code.max() + 1)[code][:, 1:])
    d = np.column_stack([x, *dummies])
    if np.linalg.matrix_rank(d / np.linalg.norm(d, axis=0)) < d.shape[1]:
        return None
    kwargs = {"cov_type": {"iid": "nonrobust", "hc1": "HC1"}.get(vcov, "cluster")}
    if one_way:
        kwargs["cov_kwds"] = {"groups": codes(t, [vcov[8:]])}
    fit = sm.WLS(np.asarray(left[1](t), float), d, weights=t[weights].to_numpy(float) if weights else 1.0).fit(method="qr", **kwargs)
    names = [term for term, _ in terms]
    return {"estimate": dict(zip(names, fit.params)), "std_error": dict(zip(names, fit.bse))}


def effects_apart(ours, theirs):
    """The largest difference between two sets of effects once each factor starts at 0, over the spread of ours."""
    worst = 0.0
    factors = {term.split("::")[0] for term in ours}
    for factor in factors:
        labels = [term for term in ours if term.split("::")[0] == factor]
        # pyfixest leaves out a reference level, whose effect is 0
        a = np.array([ours[term] for term in labels])
        b = np.array([theirs.get(term, 0.0) for term in labels])
        worst = max(worst, np.abs((a - a[0]) - (b - b[0])).max() / max(np.ptp(a), 1e-300))
    return float(worst)


def apart(a, b, floor=0.0):
    """The largest relative difference of two dictionaries with the same keys."""
    worst = 0.0
    for key in b:
        scale = max(abs(a[key]), abs(b[key]), floor)
        worst = max(worst, abs(a[key] - b[key]) / scale if scale > 0 else 0.0)
    return worst


# ---- writing --------------------------------------------------------------------------------------------------------
def text(value):
    return str(int(value)) if isinstance(value, (int, np.integer)) else repr(float(value))


def identity(model, vcov, weights, kind, ssc, singletons):
    parts = [model, vcov.replace("cluster=", "cl-").replace("+", "-")]
    if weights:
        parts.append(("w-" if kind == "analytic" else "fw-") + weights)
    if ssc:
        parts.append(ssc.replace("cluster.", "g").replace("=", "-").replace(",", "-"))
    if singletons == "keep":
        parts.append("keep")
    return ".".join(parts)


def run(one, exact=False):
    model, vcov, weights, kind, ssc, singletons = one
    name, formula, _, _, effects = MODELS[model]
    own = dense(*one, exact)
    theirs, peer = (None, "dense") if exact else by_pyfixest(*one)
    third = None if exact else by_statsmodels(*one)
    notes = []
    own_only = theirs is None
    shown = {key: dict(value) if isinstance(value, dict) else value for key, value in own.items()}
    agreement = {"id": identity(*one) + (".exact" if exact else ""), "pyfixest_estimate": "", "pyfixest_std_error": "", "pyfixest_fit": "", "pyfixest_effects": "",
                 "statsmodels_estimate": "", "statsmodels_std_error": ""}
    if theirs:
        if set(theirs["estimate"]) != set(own["estimate"]):
            raise SystemExit(f"{agreement['id']}: terms {sorted(theirs['estimate'])} and {sorted(own['estimate'])}")
        order = list(theirs["estimate"])
        shown["estimate"] = {term: own["estimate"][term] for term in order}
        agreement["pyfixest_estimate"] = apart(theirs["estimate"], own["estimate"])
        agreement["pyfixest_std_error"] = apart(theirs["std_error"], own["std_error"])
        agreement["pyfixest_fit"] = apart({q: theirs[q] for q in ("r2", "r2_adjusted", "rmse")}, {q: own[q] for q in ("r2", "r2_adjusted", "rmse")})
        if "effects" in theirs:
            agreement["pyfixest_effects"] = effects_apart(own["effects"], theirs["effects"])
        for q in ("n", "df_t", "k_counted"):
            if theirs[q] != own[q]:
                notes.append(f"{q}: pyfixest {theirs[q]}, dense {own[q]}")
        if agreement["pyfixest_estimate"] > 1e-9 or agreement["pyfixest_std_error"] > 1e-8:
            notes.append(f"differs: estimate {agreement['pyfixest_estimate']:.1e}, se {agreement['pyfixest_std_error']:.1e}")
        else:
            shown |= {q: theirs[q] for q in ("estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high", "covariance")}
        for q in ("r2", "r2_adjusted", "r2_within", "rmse"):
            if q in theirs and abs(theirs[q] - own[q]) <= 1e-10 * max(1.0, abs(own[q])):
                shown[q] = theirs[q]
            elif q in theirs:
                notes.append(f"{q}: pyfixest {theirs[q]!r}, dense {own[q]!r}")
            exact_p = {term: 2 * scipy.stats.t.sf(abs(own["estimate"][term] / own["std_error"][term]), own["df_t"])
                       for term in own["estimate"]}
            if max(abs(exact_p[term] - shown["p_value"][term]) for term in exact_p) > 1e-12:
                notes.append("differs: p values")
            # pyfixest subtracts from 1, which leaves no digits in the tail
            shown["p_value"] = {term: exact_p[term] for term in shown["estimate"]}
            shown["dropped"] = {str(term): 1 for term in theirs["dropped"]}
    if own_only or "statistic" not in shown:
        peer = "dense"
        t_value = {term: own["estimate"][term] / own["std_error"][term] for term in own["estimate"]}
        quantile = scipy.stats.t.ppf(0.975, own["df_t"])
        shown["statistic"] = t_value
        shown["p_value"] = {term: 2 * scipy.stats.t.sf(abs(t_value[term]), own["df_t"]) for term in t_value}
        shown["conf_low"] = {term: own["estimate"][term] - quantile * own["std_error"][term] for term in t_value}
        shown["conf_high"] = {term: own["estimate"][term] + quantile * own["std_error"][term] for term in t_value}
    if third:
        mine = {q: {term: own[q][term] for term in third[q]} for q in third}
        agreement["statsmodels_estimate"] = apart(third["estimate"], mine["estimate"])
        agreement["statsmodels_std_error"] = apart(third["std_error"], mine["std_error"])
        if agreement["statsmodels_estimate"] > 1e-8 or agreement["statsmodels_std_error"] > 1e-8:
            notes.append("statsmodels differs")
    if own["negative"] < -1e-15 and "+" in vcov:
        notes.append(f"negative eigenvalue ({own['negative']:.1e} of the largest), set to 0 where a variance is negative")
    agreement["notes"] = "; ".join(notes)
    dof = "any" if own["absorbed_rank"] == own["absorbed_naive"] else "exact" if own["exact"] else "naive"
    head = [agreement["id"], f"data/{name}.csv", formula, vcov, weights or "-", kind if weights else "-", ssc or "-",
            singletons if effects else "-", dof, peer]
    rows = []
    for quantity in ("estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"):
        rows += [[*head, quantity, term, text(value)] for term, value in shown[quantity].items()]
    rows += [[*head, "dropped", term, "1"] for term in shown.get("dropped", {})]
    rows += [[*head, "covariance", f"{a},{b}", text(value)] for (a, b), value in shown["covariance"].items()]
    for quantity in ("n", "missing", "singleton", "k", "k_full", "k_counted", "df_t", "absorbed_rank", "absorbed_naive",
                     "rss", "r2", "r2_adjusted", "r2_within", "rmse", "wald_f", *[q for q in shown if q.startswith("clusters:")]):
        if quantity in shown:
            rows.append([*head, *((quantity.split(":") + ["-"])[:2]), text(shown[quantity])])
    if vcov == "iid" and not ssc and not weights and singletons == "drop" and not exact:
        if model in EFFECTS:
            rows += [[*head, "effect", term, text(value)] for term, value in own["effects"].items()]
        if model in FITTED:
            rows += [[*head, "fitted", row, text(value)] for row, value in own["fitted"].items()]
            rows += [[*head, "residual", row, text(value)] for row, value in own["residual"].items()]
    return name, rows, agreement


# ---- published figures ----------------------------------------------------------------------------------------------
# (model, vcov, weights, quantity, term, figure). Estimates and standard errors with 12 or more digits are those that
# FixedEffectModels.jl's tests state to equal Stata's reg, areg and reghdfe to their printed digits, worked out again
# with 40-digit decimals from the same table under fixest's corrections; the others are as printed by that package.
PUBLISHED = [
    ("cigar_ols", "iid", None, "estimate", "(Intercept)", "139.734463980617"),
    ("cigar_ols", "iid", None, "estimate", "price", "-0.229746885934852"),
    ("cigar_ols", "iid", None, "std_error", "(Intercept)", "1.52126940347587"),
    ("cigar_ols", "iid", None, "std_error", "price", "0.0188963004571669"),
    ("cigar_ols", "iid", None, "r2", "-", "0.0969"),
    ("cigar_ols", "iid", None, "r2_adjusted", "-", "0.09622618"),
    ("cigar_ols", "iid", None, "wald_f", "-", "147.82425"),
    ("cigar_ols", "hc1", None, "std_error", "(Intercept)", "1.68679060243523"),
    ("cigar_ols", "hc1", None, "std_error", "price", "0.0167042139477691"),
    ("cigar_ols", "cluster=state", None, "std_error", "(Intercept)", "5.92384029108581"),
    ("cigar_ols", "cluster=state", None, "std_error", "price", "0.0379227923247834"),
    ("cigar_ols", "cluster=state+year", None, "std_error", "(Intercept)", "6.19636212619449"),
    ("cigar_ols", "cluster=state+year", None, "std_error", "price", "0.0403468767995783"),
    ("cigar_state", "iid", None, "estimate", "price", "-0.209840204484109"),
    ("cigar_state", "iid", None, "std_error", "price", "0.00980028722024757"),
    ("cigar_state", "iid", None, "wald_f", "-", "458.45825"),
    ("cigar_state", "hc1", None, "std_error", "price", "0.0110005327861189"),
    ("cigar_state", "cluster=state", None, "std_error", "price", "0.0357497894504128"),
    ("cigar_state", "cluster=state", None, "k_counted", "-", "2"),
    ("cigar_state", "cluster=year", None, "std_error", "price", "0.0220563241430065"),
    ("cigar_state", "cluster=year", None, "k_counted", "-", "47"),
    ("cigar_state", "cluster=state+year", None, "std_error", "price", "0.0405334735382941"),
    ("cigar_twoway", "iid", None, "estimate", "price", "-1.08471167716248"),
    ("cigar_twoway", "iid", None, "std_error", "price", "0.0755484678809918"),
    ("cigar_twoway", "iid", None, "k_counted", "-", "76"),
    ("cigar_twoway", "iid", None, "rss", "-", "227755.247307631"),
    ("cigar_twoway", "iid", None, "r2", "-", "0.828038337977096"),
    ("cigar_twoway", "iid", None, "r2_adjusted", "-", "0.818147904961975"),
    ("cigar_twoway", "iid", None, "r2_within", "-", "0.13650798139611"),
    ("cigar_twoway", "iid", None, "rmse", "-", "12.8467908164215"),
    ("cigar_twoway", "hc1", None, "std_error", "price", "0.0918453476389424"),
    ("cigar_twoway", "cluster=state", None, "std_error", "price", "0.246028974518505"),
    ("cigar_twoway", "cluster=state", None, "k_counted", "-", "31"),
    ("cigar_twoway", "cluster=year", None, "std_error", "price", "0.194951635640979"),
    ("cigar_twoway", "cluster=year", None, "k_counted", "-", "47"),
    ("cigar_twoway", "cluster=state+year", None, "std_error", "price", "0.297456355378147"),
    ("cigar_twoway", "cluster=state+year", None, "k_counted", "-", "2"),
    ("cigar_twoway", "iid", "pop", "estimate", "price", "-0.887940962263522"),
    ("cigar_twoway", "iid", "pop", "std_error", "price", "0.0457132143039437"),
    ("cigar_twoway", "hc1", "pop", "std_error", "price", "0.0635107881403179"),
    ("cigar_twoway", "cluster=state", "pop", "std_error", "price", "0.0990036329732994"),
    ("cigar_twoway", "cluster=state", "pop", "k_counted", "-", "31"),
    ("cigar_slope", "iid", None, "estimate", "price", "-0.534701850671091"),
    ("cigar_slope", "iid", None, "std_error", "price", "0.015371826047629"),
    ("cigar_slope", "iid", None, "k_counted", "-", "93"),
    ("cigar_slope", "hc1", None, "std_error", "price", "0.0176115346999107"),
    ("cigar_slope", "cluster=state", None, "std_error", "price", "0.0497640310645086"),
    ("cigar_slope", "cluster=state", None, "k_counted", "-", "2"),
    ("cigar_slope", "iid", "pop", "estimate", "price", "-0.461085492769817"),
    ("cigar_slope", "iid", "pop", "std_error", "price", "0.0115637922887305"),
    ("cigar_slope", "hc1", "pop", "std_error", "price", "0.0180661387614662"),
    ("cigar_only_slope", "iid", None, "estimate", "(Intercept)", "13.993028174622104"),
    ("cigar_only_slope", "iid", None, "estimate", "price", "-0.5804357763515606"),
    ("cigar_pimin", "iid", None, "r2", "-", "0.77472"),
    ("cigar_pimin", "iid", None, "r2_adjusted", "-", "0.766768"),
    ("empluk_firm", "iid", None, "estimate", "emp", "-0.119812700172061"),
    ("empluk_firm", "iid", None, "std_error", "emp", "0.031102815776939"),
    ("empluk_firm", "hc1", None, "std_error", "emp", "0.0509423339669724"),
    ("empluk_firm", "cluster=firm", None, "std_error", "emp", "0.0635871914399454"),
    ("empluk_twoway", "iid", None, "estimate", "emp", "-0.0468333372113793"),
    ("empluk_twoway", "iid", None, "std_error", "emp", "0.0291227208386926"),
    ("empluk_twoway", "iid", None, "k_counted", "-", "149"),
    ("empluk_twoway", "hc1", None, "std_error", "emp", "0.0333402503350741"),
    ("empluk_twoway", "cluster=firm", None, "std_error", "emp", "0.0421851753216126"),
    ("empluk_twoway", "cluster=firm", None, "k_counted", "-", "10"),
    ("empluk_twoway", "iid", "output", "estimate", "emp", "-0.0434754721881278"),
    ("grunfeld10_capital", "cluster=firm", None, "std_error", "capital", "0.06328129"),
    ("tiny_ols", "iid", None, "estimate", "(Intercept)", "-0.65"),
    ("tiny_ols", "iid", None, "estimate", "b", "0.35"),
    ("tiny_c", "iid", None, "estimate", "b", "0.5"),
]


def published():
    """published.tsv: the columns of the other files and the tolerance, one unit of the last digit printed."""
    folder = {"grunfeld10": "tests/golden", "tiny": "tests/golden"}
    TABLES["grunfeld10"] = TABLES["grunfeld"].iloc[:200]
    TABLES["tiny"] = pd.DataFrame({"a": [1, 2, 3, 4], "b": [5, 7, 11, 13], "c": [1, 1, 2, 2]})
    for name in folder:
        TABLES[name].to_csv(OUT / f"{name}.csv", index=False, lineterminator="\n")
    MODELS["grunfeld10_capital"] = ("grunfeld10", *MODELS["grunfeld_capital"][1:])
    MODELS["tiny_ols"] = ("tiny", "a ~ b", col("a"), [col("b")], [])
    MODELS["tiny_c"] = ("tiny", "a ~ b | c", col("a"), [col("b")], [("c",)])
    lines = ["\t".join([*COLUMNS, "tolerance"])]
    found = {}
    for model, vcov, weights, quantity, term, figure in PUBLISHED:
        one = case(model, vcov, weights)
        if one not in found:
            found[one] = dense(*one)
        own = found[one][quantity] if term == "-" else found[one][quantity][term]
        decimals = len(figure.split(".")[1]) if "." in figure else None
        tolerance = 0.0 if decimals is None else 10.0**-decimals
        # the 40-digit figures were cut to 15 significant digits; allow for rounding on both sides
        tolerance = tolerance + (0.0 if decimals is None else 1e-13 * abs(float(figure)))
        if abs(own - float(figure)) > max(tolerance * 1.0001, 5e-13 * abs(float(figure))):
            print("published", model, vcov, weights, quantity, term, figure, "dense", repr(own))
        name, formula = MODELS[model][:2]
        lines.append("\t".join([
            "published." + identity(*one), f"{folder.get(name, 'data')}/{name}.csv", formula, vcov, weights or "-",
            "analytic" if weights else "-", "-", "drop" if MODELS[model][4] else "-", "any", "published", quantity, term,
            figure, f"{tolerance:.1e}"]))
    (OUT / "published.tsv").write_text("\n".join(lines) + "\n")


def main():
    wanted = sys.argv[1:]
    files, agreements, bad = {}, [], 0
    seen = set()
    for one in CASES:
        if identity(*one) in seen or wanted and not any(identity(*one).startswith(w) for w in wanted):
            continue
        seen.add(identity(*one))
        name, rows, agreement = run(one)
        files.setdefault(name, []).extend(rows)
        agreements.append(agreement)
        if rows[0][8] == "naive" and one[1] in ("iid", "hc1") and not one[4] and not one[2]:
            _, more, other = run(one, exact=True)
            files[name].extend(more)
            agreements.append(other)
        if agreement["notes"]:
            print(agreement["id"], "|", agreement["notes"], flush=True)
        bad += "differs" in agreement["notes"]
        if wanted:
            print(*("\t".join(map(str, row)) for row in rows), sep="\n")
    if wanted:
        return
    OUT.mkdir(parents=True, exist_ok=True)
    published()
    versions = {p: importlib.metadata.version(p) for p in ("pyfixest", "statsmodels", "numpy", "scipy", "pandas")}
    for name, rows in files.items():
        lines = ["\t".join(COLUMNS)] + ["\t".join(map(str, row)) for row in rows]
        (OUT / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    keys = list(agreements[0])
    short = [[f"{a[k]:.1e}" if isinstance(a[k], float) else str(a[k]) for k in keys] for a in agreements]
    (OUT / "agreement.tsv").write_text("\n".join("\t".join(row) for row in [keys, *short]) + "\n")
    provenance = OUT / "PROVENANCE.tsv"
    others = [line for line in provenance.read_text().splitlines() if line.startswith(("gp.", "glm."))]
    provenance.write_text("\n".join([f"{k}\t{v}" for k, v in {
        "command": "python tools/make_golden.py", "date": datetime.date.today().isoformat(),
        "python": platform.python_version(), **versions, "seed": "none (no random numbers)", "PYTHONHASHSEED": "0",
        "cases": len(agreements), "rows": sum(map(len, files.values())),
        "files": " ".join(f"{name}.tsv" for name in files)}.items()] + others) + "\n")
    print(len(agreements), "cases,", bad, "disagree")
    sys.exit(1 if bad else 0)


main()
