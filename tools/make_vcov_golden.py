"""Makes tests/golden/vcov.tsv, standard errors of peers: python tools/make_vcov_golden.py

From the tables in data/, with the columns of tests/golden/README.md:

    nw, dk, crv3   pyfixest (its K counts levels: dof naive)
    hc2, hc3       statsmodels' OLS on dummies, whose hat matrix is that of the full model
    wild           wildboottest, all sign vectors of eleven firms
    cr2, cr3       clubSandwich on lm with dummies, with Satterthwaite's degrees of freedom, by
                   tools/make_vcov_golden.R, whose lines stand behind these

Needs pyfixest, statsmodels, wildboottest and pandas, and Rscript with clubSandwich.  No random numbers are used.
"""
import pathlib
import subprocess
import warnings

import pandas as pd
import pyfixest
import statsmodels.formula.api as smf
from wildboottest.wildboottest import wildboottest

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = {name: pd.read_csv(ROOT / "data" / f"{name}.csv") for name in ("cigar", "empluk", "grunfeld", "munnell")}
COLUMNS = ["id", "data", "formula", "vcov", "weights", "weights_kind", "ssc", "singletons", "dof", "peer", "quantity", "term", "value"]
for table in TABLES.values():  # pyfixest sorts units by number
    for column in list(table.columns):
        table[column + "_code"] = pd.factorize(table[column])[0]
lines = ["\t".join(COLUMNS)]


def emit(name, formula, vcov, dof, peer, quantity, values, tolerance=""):
    for term, value in values:
        lines.append("\t".join([f"{name}:{formula.replace(' ', '')}:{vcov}", f"data/{name}.csv", formula, vcov, "-", "-", "-", "drop", dof, peer, quantity, term, f"{value:.17g}", *tolerance.split()]))


def coefficients(fit):
    return [(term.replace("Intercept", "(Intercept)"), value) for term, value in fit.items()]


for name, formula, unit, time, lag in (
    ("cigar", "sales ~ price | state + year", "state", "year", 2),
    ("cigar", "sales ~ price + pimin", "state", "year", 5),
    ("grunfeld", "invest ~ value + capital | firm + year", "firm", "year", 3),
    ("empluk", "wage ~ emp | firm + year", "firm", "year", 1),
):
    for kind, spec in (("NW", f"nw={unit},{time},{lag}"), ("DK", f"dk={time},{lag}")):
        fit = pyfixest.feols(formula, TABLES[name], vcov=kind, vcov_kwargs={"lag": lag, "time_id": time, "panel_id": unit + "_code"}, fixef_tol=1e-10, fixef_maxiter=100000)
        emit(name, formula, spec, "naive", "pyfixest", "std_error", coefficients(fit.se()))
        emit(name, formula, spec, "naive", "pyfixest", "df_t", [("-", fit._df_t)])

for name, formula, cluster in (
    ("cigar", "sales ~ price | state + year", "state"),
    ("cigar", "sales ~ price + pimin | year", "state"),
    ("grunfeld", "invest ~ value + capital | firm + year", "firm"),
    ("grunfeld", "invest ~ value + capital", "firm"),
    ("munnell", "GSP ~ P_CAP + PC | ST_ABB + YR", "ST_ABB"),
):
    fit = pyfixest.feols(formula, TABLES[name], vcov={"CRV3": cluster}, fixef_tol=1e-10, fixef_maxiter=100000)
    emit(name, formula, f"crv3={cluster}", "naive", "pyfixest", "std_error", coefficients(fit.se()))

for name, formula, dummies in (
    ("cigar", "sales ~ price | state + year", "sales ~ price + C(state) + C(year)"),
    ("empluk", "wage ~ emp | firm + year", "wage ~ emp + C(firm) + C(year)"),
    ("empluk", "wage ~ emp | firm", "wage ~ emp + C(firm)"),
    ("grunfeld", "invest ~ value + capital", "invest ~ value + capital"),
):
    for kind in ("HC2", "HC3"):
        fit = smf.ols(dummies, TABLES[name]).fit(cov_type=kind, use_t=True)
        kept = [(term, value) for term, value in coefficients(fit.bse) if not term.startswith("C(")]
        if "|" in formula:
            kept = [(term, value) for term, value in kept if term != "(Intercept)"]
        emit(name, formula, kind.lower(), "any", "statsmodels", "std_error", kept)
        emit(name, formula, kind.lower(), "any", "statsmodels", "df_t", [("-", fit.df_resid)])

table = TABLES["grunfeld"]
model = smf.ols("invest ~ value + capital + C(year)", table)
for term in ("value", "capital"):
    found = wildboottest(model, param=term, cluster=pd.factorize(table.firm)[0], B=9999, weights_type="rademacher", impose_null=True,
                         bootstrap_type="11", seed=1, show=False)
    emit("grunfeld", "invest ~ value + capital | year", "wild=firm", "naive", "wildboottest", "statistic", [(term, float(found["statistic"].iloc[0]))])
    emit("grunfeld", "invest ~ value + capital | year", "wild=firm", "naive", "wildboottest", "p_value", [(term, float(found["p-value"].iloc[0]))],
         "0.0009765626")  # the two sign vectors that give t itself count here, there by chance

more = subprocess.run(["Rscript", ROOT / "tools" / "make_vcov_golden.R"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
(ROOT / "tests" / "golden" / "vcov.tsv").write_text("\n".join(lines) + "\n" + more)
