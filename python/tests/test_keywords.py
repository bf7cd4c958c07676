"""Every keyword of fourge.fe, gp, linalg and soap acts, raises, or says what is done instead; keywords.py says how the rows are read.
The rows of gw are in test_keywords_gw.py, those of modules that need a peer in peers/test_keywords_peers.py."""

import os
import tempfile
import types
import unittest

import numpy as np

from fourge import errors, fe, gp, linalg, soap
from keywords import SMALL, Rows, Same, Table, asked, cures, differs, main, prints, raises, threads, warns, watch, writes

rows = Rows()
of = rows.of

#: What a call does with a moment of time: it says so and returns what it has, or raises.
SAYS_LATE = (1e-9, warns("FRG-CORE-012|FRG_TIME_LIMIT"))
LATE = (1e-9, raises("time limit", errors.Stopped))
ASKED = (watch, asked())

# ---- fe ----

N = 300
draw = np.random.default_rng(1)
PANEL = {
    "f": np.arange(N) * 7 % 41, "g": np.arange(N) * 5 % 23 + np.arange(N) // 100 * 23, "h": np.arange(N) % 9,
    "x": draw.normal(size=N), "z": draw.normal(size=N), "w": 1.0 + np.arange(N) % 4,
    "alone": np.where(np.arange(N) < 3, np.arange(N), 3),
}
PANEL["late"] = np.arange(N) % 7 // 5
PANEL["flat"] = PANEL["x"] + 1e-4 * draw.normal(size=N)
PANEL["y"] = PANEL["x"] + PANEL["f"] / 9 + draw.normal(size=N)
PART = np.where(np.arange(N) < 60, 0, 10)
SETS = PANEL | {"f": PART + np.arange(N) % 5, "g": PART + np.arange(N) % 7}
FAR = 30000
LONG = {
    "f": np.arange(FAR) * 7919 % 900, "g": np.arange(FAR) * 104729 % 811, "x": draw.normal(size=FAR),
    "y": draw.normal(size=FAR),
}


def estimates(fit):
    return fit.coef()


def errors_of(fit):
    return fit.se()


def solved(fit):
    return fit.result["solver"]["iterations"]


def len_of(fit):
    return len(fit) if isinstance(fit, list) else 0


def left_out(fit):
    return fit.result["n_dropped"]


def demeaner(**more):
    given = {"kind": "lsmr", "fixef_atol": 1e-3, "fixef_btol": 1e-3, "fixef_maxiter": 900, "backend": "torch", "device": "cpu",
             "precision": "float64", "local_size": None}
    return types.SimpleNamespace(**{**given, **more})


LSMR = {"method": "lsmr"}
NOWHERE = ("cuda:99", raises("cuda:99", errors.NoDevice))
WAYS = {
    "method": ("lsmr", lambda fit: fit.result["solver"]["method"]), "precond": ("off", solved, {"method": "cg"}),
    "dtype": ("f32", lambda fit: fit.result["solver"]["audit"]), "tol": (1e-2, solved, LSMR),
    "max_iter": (1, warns("FRG-FE-101"), LSMR), "cond_limit": (1.0001, solved, LSMR),
    "block": (1, lambda fit: fit.result["solver"]["plan_bytes"]), "fill_cap": (100, raises("fill_cap"), {"method": "direct"}),
    "seed": (5, solved, {"method": "cg", "precond": "ac"}), "device": NOWHERE,
    "fused": ("on", raises("fused", errors.BadArgument)), "max_sweeps": (1, warns("FRG-FE-101"), {"method": "map"}),
}


def estimator(make, limit=8 << 20):
    """The rows that feols, feiv, feglm, fepois and fenegbin share; make(right) is a formula with that right side."""
    alone, flat = make("x | alone"), make("x + flat | f")
    return dict(
        **WAYS, fml=(make("z | f"), estimates), data=(SETS, estimates), vcov=[("hetero", errors_of), ({"CRV1": "h"}, errors_of)],
        progress=ASKED, threads=(3, threads(), {"data": LONG, "fml": make("x | f + g")}), memory_limit=SMALL, time_limit=SAYS_LATE,
        dof=("naive", lambda fit: fit.result["k"], {"data": SETS}), ssc=[("adj=false", errors_of), ({"k_adj": False}, errors_of)],
        weights=("w", estimates), weights_kind=("frequency", lambda fit: fit.nobs, {"weights": "w"}), subset=("h < 4", left_out),
        keep_singletons=(True, left_out, {"fml": alone}), collin_tol=(0.99999, estimates, {"fml": flat}),
        collin=("fixest", estimates, {"fml": flat, "collin_tol": 1e-6}),
        connected=("largest", left_out, {"data": SETS}), level=(0.5, lambda fit: fit.confint()),
        keep_effects=(True, cures("not kept", then=lambda fit: fit._fit.effects())), fixef_tol=(1e-2, solved, LSMR),
        fixef_maxiter=(1, warns("FRG-FE-101"), LSMR), fixef_rm=("none", left_out, {"fml": alone}),
        weights_type=("fweights", lambda fit: fit.nobs, {"weights": "w"}),
        demeaner=[(demeaner(), solved, LSMR), (demeaner(), warns()), (demeaner(device="cuda"), raises(kind=errors.NoDevice))],
        demeaner_backend=[("numba", warns()), ("torch_cuda", raises(kind=errors.NoDevice))], solver=("scipy.linalg.solve", warns()),
        lean=(True, warns()), copy_data=(True, warns()), store_data=(False, warns()), use_compression=(True, warns()),
        spool=(".", warns("FRG-CORE-170"), {"data": LONG, "fml": make("x | f + g"), "memory_limit": limit}),
        untrusted=(True, raises("untrusted=True is of files", kind=TypeError)),
        first_stage=("late ~ x | h", raises("first_stage beside"), {"fml": make("late"), "vcov": "hc1"}),
        plan=("p.plan", writes("p.plan")), split=("h", len_of, {"fml": make("x")}), fsplit=("h", len_of, {"fml": make("x")}), panel=("g", raises("UNIT,TIME")),
        split_value=("1", len_of, {"fml": make("x"), "split": "h"}), reps=(9, raises()),
        vcov_kwargs=({"lag": 3, "time_id": "h"}, cures("dk takes 1 variable"), {"vcov": "DK"}),
        drop_intercept=(True, raises()), i_ref1=(1, raises()), context=({"c": 1}, raises()))


def linear(right):
    return f"y ~ {right}"


def instrumented(right):
    return f"y ~ {right} | I(x^2) ~ I(x^3) + exp(x/2)"


def positive(right):
    return f"exp(y/3) ~ {right}"


GLM = dict(link=("log", estimates, {"family": "gamma"}), offset=("x*z/9", estimates), glm_tol=(0.5, lambda fit: fit.result["glm_iterations"]),
           glm_iter=(2, warns("FRG-FE-124")), theta=(2.0, raises("theta")), separation=("none", left_out, {"fml": "I((h > 2)*exp(y/3)) ~ x | h"}))
of(fe.feols, {"fml": linear("x + z | f + g"), "data": PANEL}, **{**estimator(linear, 4 << 20), "first_stage": ("late ~ x | h", estimates, {"fml": linear("late"), "vcov": "hc1"}),
   "vcov": [("hetero", errors_of), ({"CRV1": "h"}, errors_of), ("HC3", errors_of), ({"CR2": "h"}, errors_of)]})
of(fe.feiv, {"fml": instrumented("x + z | f + g"), "data": PANEL}, **{**estimator(instrumented), "collin_tol": (0.99999, raises("collinear"), {"fml": instrumented("x + flat | f")})})
POSITIVE = {**estimator(positive), "plan": ("p.plan", raises("weights of a family")), "time_limit": LATE, **GLM}
of(fe.feglm, {"fml": positive("x + z | f + g"), "data": PANEL}, **POSITIVE, family=("gamma", estimates))
of(fe.fenegbin, {"fml": positive("x + z | f + g"), "data": PANEL}, **{**POSITIVE, "link": ("logit", raises("link")), "theta": (2.0, estimates)})
of(fe.fepois, {"fml": positive("x + z | f + g"), "data": PANEL}, **{**POSITIVE, "link": ("logit", raises("link"))})


def study(units):
    """Units in ten years with cohorts 2003, 2005 and 2007, a quarter never treated."""
    unit, year = np.repeat(np.arange(units), 10), np.tile(np.arange(2000, 2010), units)
    g = np.array([0, 2003, 2005, 2007])[unit % 4]
    out = {"unit": unit, "year": year, "g": g, "state": unit % 11, "treat": ((g > 0) & (year >= g)).astype(int), "x": draw.normal(size=len(unit))}
    return out | {"y": out["treat"] + out["x"] / 2 + draw.normal(size=len(unit)), "y2": draw.normal(size=len(unit)), "w": 1.0 + year % 3,
                  "half": unit // 2, "g2": np.where(g == 2003, 2004, g), "late": ((g > 0) & (year > g)).astype(int), "year2": year + 1}


STUDY = study(30)
BEGIN = {"data": STUDY, "yname": "y", "idname": "unit", "tname": "year", "gname": "g"}
SHARED = dict(data=({**STUDY, "y": STUDY["y2"]}, list), yname=("y2", list), progress=ASKED, threads=(3, threads(), {"data": study(4000)}),
              memory_limit=SMALL, ssc=("adj=true,cluster.adj=false", list), weights=("w", list), subset=("year > 2001", list))


def shown(rows, by):
    """The rows with their functions told how to make a list of the fit."""
    return {k: (v[0], by, *v[2:]) if v[1] is list else v for k, v in rows.items()}


def table_of(fit):
    return list(fit.tidy().values())


of(fe.did2s, {"data": STUDY, "yname": "y", "first_stage": "~ 0 | unit + year", "second_stage": "~ treat", "treatment": "treat", "cluster": "state"},
   **shown({**SHARED, "ssc": ("cluster.adj=true", list)}, table_of), time_limit=SAYS_LATE, level=(0.5, table_of), first_stage=("~ x | unit + year", estimates),
   second_stage=("~ i(year)", lambda fit: fit.terms), treatment=("late", estimates), cluster=("unit", errors_of))
of(fe.event_study, BEGIN, **shown(SHARED, table_of), time_limit=SAYS_LATE, level=(0.5, table_of), idname=("half", estimates, {"cluster": "state"}),
   tname=("year2", estimates), gname=("g2", estimates), xfml=("x", lambda fit: fit.terms), cluster=("state", errors_of), estimator=("did2s", estimates),
   att=(False, lambda fit: fit.terms))
of(fe.lpdid, BEGIN, **shown(SHARED, table_of), time_limit=(1e-9, lambda found: found.fits[0].result["status"]), level=(0.5, table_of), idname=("half", raises("of one unit")),
   tname=("year2", table_of), gname=("g2", table_of), vcov=("hetero", table_of), pre_window=(-2, table_of, {"att": False}),
   post_window=(2, table_of), never_treated=(2005, warns("FRG-FE-155")), att=(False, table_of), xfml=("x", table_of),
   reweight=(True, table_of), pmd=("max", table_of))
of(fe.Fit.glm_values, {}, lambda: fe.fepois(positive("x | f"), PANEL), what=("pearson", list))


def made(out):
    return out[0]


def iterated(out):
    return out[1]["iterations"]


X, CODES = np.column_stack([PANEL["x"], PANEL["z"]]), np.column_stack([PANEL["f"], PANEL["g"]])
OUT = np.empty_like(X)
FAR_X, FAR_CODES = LONG["x"], np.column_stack([LONG["f"], LONG["g"]])
of(fe.demean, lambda: {"x": X.copy(), "fixed_effects": CODES}, x=(-X, made), fixed_effects=(CODES[:, :1], made),
   weights=(PANEL["w"], made), out=(OUT, lambda pair: pair[0] is OUT), plan=("p.plan", writes("p.plan")), progress=ASKED,
   threads=(3, threads(), {"x": FAR_X, "fixed_effects": FAR_CODES}), memory_limit=SMALL, time_limit=SAYS_LATE,
   seed=(5, made, {"method": "cg", "precond": "ac"}), method=("lsmr", lambda out: out[1]["method"]),
   precond=("off", iterated, {"method": "cg"}), dtype=("f32", made), tol=(1e-2, iterated, LSMR),
   max_iter=(1, warns("FRG_MAX_ITER"), LSMR), cond_limit=(1.0001, iterated, LSMR), block=(1, lambda out: out[1]["plan_bytes"]),
   fill_cap=(100, raises(), {"method": "direct"}), fused=("off", raises("fused", errors.BadArgument)), device=NOWHERE,
   max_sweeps=(1, warns("FRG_MAX_ITER"), {"method": "map"}))

PLACES = np.arange(3 * N) * 7 % 60
SPARSE = (N, 60), np.arange(0, 3 * N + 1, 3), PLACES, draw.normal(size=3 * N) * 10.0 ** (PLACES % 4)
WIDE = (FAR, 3), np.arange(0, 3 * FAR + 1, 3), np.tile([0, 1, 2], FAR), draw.normal(size=3 * FAR)
of(fe.lsmr, {"A": SPARSE, "b": PANEL["y"]}, A=((*SPARSE[:3], 2 * SPARSE[3]), made), b=(PANEL["x"], made), progress=ASKED,
   memory_limit=SMALL, threads=(3, threads(), {"A": WIDE, "b": np.ones(FAR)}), time_limit=SAYS_LATE, atol=(0.5, iterated),
   btol=(1.0, iterated), cond_limit=(1.0001, lambda out: out[1]["stop"]), damp=(10.0, made), max_iter=(1, iterated),
   block=(1, Same("a column's bits do not hang on its neighbours", cures("memory")), {"b": np.tile(X, 40), "memory_limit": 80000}),
   precond=("diagonal", iterated))

FIT = fe.feols("y ~ x + z | f + g", PANEL)
OTHER = fe.feols("y ~ x", PANEL)


def fit():
    return fe.feols("y ~ x + z | f + g", PANEL)


def fits():
    return fe.feols("y ~ x + z | f + sw0(g)", PANEL)


TABLES = {
    "type": ("md", str), "digits": (5, str), "signif_code": ([0.9, 0.95, 0.99], str), "coef_fmt": ("b [se]", str),
    "keep": ("x", str), "drop": ("x", str), "exact_match": (True, str, {"keep": "(x)"}), "labels": ({"x": "Dose"}, str),
    "felabels": ({"f": "Firm"}, str), "show_fe": (False, str), "fe_present": ("yes", str), "notes": ("of today", str),
    "file_name": ("table.txt", writes("table.txt")), "model_heads": (["Ours"], str),
}
of(fe.etable, {"fits": [FIT]}, **TABLES, fits=([OTHER], str), fe_absent=("no", str, {"fits": [FIT, OTHER]}))
of(fe.Fit.etable, {}, fit, **TABLES)
of(fe.Fits.etable, {}, fits, **{**TABLES, "model_heads": (["Ours", "Theirs"], str)}, fe_absent=("no", str))
of(fe.Fits.vcov, {"spec": "iid"}, fits, spec=("hetero", lambda all: all[1].se()), ssc=("adj=false", lambda all: all[1].se()))
of(fe.Fits.summary, {}, fits, digits=(9, prints(f"{FIT.coef()[0]:.9g}")))
of(fe.Fit.vcov, {"spec": "iid"}, fit, spec=("hetero", errors_of), ssc=("adj=false", errors_of),
   vcov_kwargs=({"time_id": "h"}, cures("dk takes 1 variable"), {"spec": "DK"}))
of(fe.Fit.wald_test, {}, fit, R=(np.array([[1.0, 0.0]]), dict), q=(1.0, dict), distribution=("chi2", dict), keep=("x", dict),
   drop=("x", dict))
LOT = fe.feols("y ~ late + x", PANEL)
of(fe.Fit.ritest, {"resampvar": "late", "reps": 70}, lambda: LOT, resampvar=("x", dict), reps=(9, dict), type=("randomization-t", dict), seed=(1, dict),
   cluster=("h", raises("not the same in all rows")), strata=("h", dict))
MOVERS = {"y": (np.arange(240) * 7919 % 1009 / 1009), "worker": np.repeat(np.arange(60), 4), "firm": (np.arange(240) * 7 // 2 % 11) % 5}
of(fe.Fit.leave_out, {}, lambda: fe.feols("y ~ 1 | worker + firm", MOVERS), leave_out=("observation", lambda found: found["corrected"]),
   leverage=("approx", lambda found: found["corrected"]), draws=(50, lambda found: found["corrected"], {"leverage": "approx"}))
of(fe.Fit.tidy, {}, fit, style=("pyfixest", list))
of(fe.Fit.regressors, {"newdata": PANEL}, fit, newdata=({k: v[:9] for k, v in PANEL.items()}, np.asarray))
of(fe.Fit.predict, {}, fit, newdata=({k: v[:9] for k, v in PANEL.items()}, np.asarray))
of(fe.Fit.summary, {}, fit, digits=(9, prints(f"{FIT.coef()[0]:.9g}")))


# ---- gp ----

P = draw.normal(size=(30, 2))
WAVE = np.sin(P[:, 0]) + 0.1 * draw.normal(size=30)
GAP = np.where(np.arange(30) == 4, np.nan, WAVE)
KERNEL = "1.5*rbf(l=2) + noise(0.1)"
NOISE = np.full(30, 0.2)
SINGULAR = "1*rbf(l=2000)"
BIG, BIG_Y = draw.normal(size=(700, 2)), draw.normal(size=700)


def value(process):
    return process.value()["log_likelihood"]


def prior(process):
    return process.value()["log_prior"]


def fitted(process):
    process.fit(max_iter=3)
    return process.theta


OPEN = {"kernel": "scale*rbf + noise"}
PROCESS = {
    "device": NOWHERE, "memory_limit": SMALL, "mean": ("zero", value), "reml": (True, value, {"mean": "profiled"}), "profile_scale": (True, value),
    "priors": ("rbf.l=gamma(3,6)", prior), "prior_jacobian": (True, prior, {"priors": "rbf.l=gamma(3,6)"}),
    "preset": ("sklearn", value, OPEN), "precision": ("f32", value),
    "storage": ("packed", lambda process: process.report["bytes"]),
    "auto_promote": (True, cures("float32|f32", then=value), {"precision": "f32", "accuracy": 1e-12}),
    "accuracy": (1e-12, raises("float32|f32", then=value), {"precision": "f32"}),
    "jitter": ("none", raises("pivot", then=value), {"kernel": SINGULAR}), "nan": ("mask", cures("nan|NaN|row"), {"y": GAP}),
}
of(gp.GP, {"x": P, "y": WAVE, "kernel": KERNEL}, **PROCESS, x=(P + P**2, value), y=(P[:, 1], value),
   kernel=("1*matern32", value), mean_values=(WAVE / 2, cures("mean_values", then=value), {"mean": "values"}),
   noise_variances=(NOISE, value), noise_groups=(np.arange(30) % 2, value, {"kernel": "1.5*rbf(l=2)"}),
   columns=(["a", "b"], cures("column", then=value), {"kernel": "1*on(b; rbf(l=1)) + noise(0.1)"}),
   progress=(watch, asked(then=fitted), OPEN), threads=(3, threads(then=value), {"x": BIG, "y": BIG_Y}),
   seed=(5, lambda process: process.sample(P[:3], 2)), time_limit=(1e-9, warns("FRG_TIME_LIMIT", then=fitted), OPEN))


def process(x=P, y=WAVE, kernel=KERNEL, **options):
    return gp.GP(x, y, kernel, **options)


def values(process):
    return process.theta


def known():
    return process(kernel="1*rbf(l=1)", noise_variances=NOISE)


def given():
    return process(mean="values", mean_values=WAVE / 2)


def waves():
    return process(kernel="scale*rbf(ard) + noise")


of(gp.GP.set, {}, process, values=({"rbf.l": 0.3}, values), bounds=({"rbf.l": (0.1, 5)}, lambda process: process.bounds["rbf.l"]))
of(gp.GP.fix, {"name": "rbf.l"}, waves, name=("noise", fitted), fixed=(False, fitted))
of(gp.GP.tie, {"name": "rbf.l", "to": None}, lambda: process(kernel="1*rbf(ard) + 1*matern32(ard, l=[2, 3]) + noise(0.1)"),
   name=("matern32.l", fitted, {"to": "scale"}), to=("matern32.l", values),
   entry=(1, values, {"to": "matern32.l", "to_entry": 0}), to_entry=(1, values, {"to": "matern32.l"}))
of(gp.GP.gradient, {}, process, x=(True, len), y=(True, len))
of(gp.GP.loo, {}, process, gradient=(True, lambda out: "gradient" in out), latent=(True, lambda out: "latent_variance" in out))
of(gp.GP.folds, {"codes": np.arange(30) % 3}, process, codes=(np.arange(30) % 4, lambda out: out["mean"]),
   gradient=(True, lambda out: "gradient" in out))


def variance(out):
    return out[1]


def optimum(report):
    return report["log_likelihood"]


def steps(report):
    return report["optimizer"]["iterations"]


of(gp.GP.fit, {}, waves, checkpoint=("state", writes("state"), {"checkpoint_every": 0.0}),
   checkpoint_every=(0.0, writes("state"), {"checkpoint": "state"}), resume=("nowhere", raises("nowhere|cannot be opened")),
   optimizer=("adam", steps), max_iter=(1, steps), tol=(0.5, steps),
   learning_rate=(0.01, optimum, {"optimizer": "adam", "max_iter": 5}),
   starts=(3, lambda r: len(r["optimizer"]["start_results"])),
   standardize=(False, lambda r: r["optimizer"]["trace"], {"optimizer": "lbfgsb", "max_iter": 3}),
   standard_errors=(False, lambda r: r["standard_errors"]), max_evaluations=(2, lambda r: r["optimizer"]["evaluations"]))
of(gp.GP.predict, {"x": P[:4]}, process, x=(P[4:8], np.asarray),
   observed=(True, variance, {"return_var": True}), return_std=(True, len), return_var=(True, len),
   return_cov=(True, len), variance_floor=(9.0, variance, {"return_var": True}), mean_values=(np.ones(4), raises("mean")))
of(gp.GP.predict_gradient, {"x": P[:4]}, process, x=(P[4:8], list))
of(gp.GP.fantasies, {"x": P[None, :2] + 1, "y": np.ones((1, 2, 1)), "at": P[:3]}, process, x=(P[None, 2:4] + 1, list),
   y=(np.zeros((1, 2, 1)), list), at=(P[3:6], list), observed=(True, list), noise_variances=(np.ones((1, 2)), raises("noise")))
of(gp.GP.sample, {"x": P[:3], "count": 2}, process, x=(P[3:6], np.asarray), count=(3, len), prior=(True, np.asarray),
   observed=(True, np.asarray), mean_values=(np.ones(3), raises()))
of(gp.GP.append, {"x": P[:1] + 1, "y": WAVE[:1]}, process, x=(P[1:2] + 1, value), y=(WAVE[1:2], value),
   noise_variances=(NOISE[:1], raises("noise")))
of(gp.GP.remove, {"i": 0}, process, i=(1, value))
of(gp.GP.update_y, {"y": WAVE}, process, y=(-P[:, 1], value))
of(gp.GP.update_noise, {"i": 0, "variance": 0.3}, known, i=(1, value), variance=(0.4, value))
of(gp.GP.save, {"path": "a"}, process, path=("b", writes("b")))

SAVED = tempfile.TemporaryDirectory()
MODEL, OTHER_MODEL = f"{SAVED.name}/a", f"{SAVED.name}/b"
process().save(MODEL)
process(BIG, BIG_Y).save(OTHER_MODEL)
of(gp.load, {"path": MODEL}, path=(OTHER_MODEL, value),
   threads=(3, threads(then=lambda p: p.predict(BIG)), {"path": OTHER_MODEL}),
   seed=(5, lambda process: process.sample(P[:3], 2)), memory_limit=SMALL,
   time_limit=(1e-9, raises("time limit", errors.Stopped, then=lambda process: process.predict(BIG))))


def likelihoods(found):
    return [one["log_likelihood"] for one in found]


def priors(found):
    return [one["log_prior"] for one in found]


def states(found):
    return [one["status"] for one in found]


def messages(found):
    return [one["message"] for one in found]


LIST = [(P, WAVE), (P[:9], WAVE[:9])]
MANY = {
    "device": NOWHERE, "problems": (LIST[1:], likelihoods), "memory_limit": SMALL, "mean": ("zero", likelihoods),
    "reml": (True, likelihoods, {"mean": "profiled"}), "profile_scale": (True, likelihoods), "progress": ASKED,
    "precision": ("f32", likelihoods), "auto_promote": (True, states, {"precision": "f32", "accuracy": 1e-12}),
    "accuracy": (1e-12, states, {"precision": "f32"}),
    "jitter": ("none", states, {"kernel": "1.0!*rbf(l=2000!)", "mean": "zero"}),
    "nan": ("mask", states, {"problems": [(P, GAP)]}), "time_limit": (1e-9, states),
    "storage": ("packed", lambda found: [one["storage"] for one in found]), "threads": (3, threads(), {"problems": LIST * 20}),
    "columns": (["a", "b"], cures("column", then=likelihoods), {"kernel": "1*on(b; rbf(l=1)) + noise(0.1)"}),
}
of(gp.evaluate_batch, {"problems": LIST, "kernel": KERNEL}, **MANY, kernel=("1*matern32", likelihoods),
   theta=([[1.0, 1.0, 1.0, 1.0], None], likelihoods), gradient=(True, lambda found: "gradient" in found[0]),
   priors=("rbf.l=gamma(3,6)", priors), prior_jacobian=(True, priors, {"priors": "rbf.l=gamma(3,6)"}),
   preset=("sklearn", likelihoods, OPEN))
FEW = {"fit": {"max_iter": 2}}
of(gp.fit_batch, {"problems": LIST, "kernel": KERNEL, **FEW}, **MANY, kernel=("1*matern32", likelihoods),
   theta=([[1.0, 1.0, 1.0, 1.0], None], likelihoods), fit=({"max_iter": 1}, likelihoods),
   seed=(5, likelihoods, {"kernel": "scale*rbf + noise", "theta": [[1e-3, 50.0, 2.0, 3.0]] * 2, "fit": {"starts": 5, "max_iter": 1}}),
   priors=("rbf.l=gamma(3,6)", priors), prior_jacobian=(True, likelihoods, {"priors": "rbf.l=gamma(3,6)"}),
   preset=("sklearn", likelihoods, OPEN))

GRAM = P @ P.T + np.eye(30)
LARGE = np.eye(600)
of(gp.invquad_logdet, {"k": GRAM, "r": WAVE}, k=(2 * GRAM, list), r=(2 * WAVE, list), inverse=(True, len),
   threads=(3, threads(), {"k": LARGE, "r": np.ones(600)}), memory_limit=SMALL,
   time_limit=(*LATE, {"k": LARGE, "r": np.ones(600)}))

# ---- linalg ----

A = draw.normal(size=(2, 9, 6))
CLOSE = np.vander(np.linspace(0.5, 1, 90), 6)
of(linalg.qr, {"A": A}, A=(2 * A, list), mode=("complete", list), return_reports=(True, lambda out: isinstance(out[1], list)),
   method=("cholesky", lambda out: out[1][0]["method"], {"return_reports": True}),
   verify=("full", lambda out: out[1][0]["orthogonality"], {"return_reports": True}),
   ortho_tol=(0.9, lambda out: out[1][0]["passes"], {"return_reports": True, "method": "cholesky", "A": CLOSE}),
   threads=(2, threads(2), {"A": draw.normal(size=(8, 96, 96)).astype(np.float32)}), memory_limit=SMALL)

# ---- soap ----

WEIGHTS = draw.normal(size=(6, 4)).astype(np.float32)
CONV = draw.normal(size=(4, 3, 2, 2)).astype(np.float32)
VECTOR = draw.normal(size=5).astype(np.float32)


def parameters():
    return {"w": WEIGHTS.copy(), "c": CONV.copy(), "v": VECTOR.copy()}


def held(opt):
    return [a for group in opt.param_groups for a in group["params"]]


def step(opt, gradients):
    """A step of an optimizer of arrays, or of torch's parameters."""
    if not hasattr(opt, "zero_grad"):
        return opt.step(gradients)
    for a, g in zip(held(opt), gradients):
        a.grad = a.detach().new_tensor(g)
    return opt.step()


def trained(opt, count=8):
    """The parameters after some steps along slopes that turn."""
    for t in range(count):
        rng = np.random.default_rng(t)
        step(opt, [rng.normal(size=tuple(a.shape)).astype(np.float32) * (1 + t) for a in held(opt)])
    return [a.detach().numpy().copy() if hasattr(a, "detach") else a.copy() for a in held(opt)]


def joined(opt):
    """The most threads that a step leaves at work when it returns."""
    there = lambda: len(os.listdir("/proc/self/task"))
    before, most = there(), 0
    for _ in range(8):
        trained(opt, 1)
        most = max(most, there() - before)
    return most > 0


def large():
    return {"params": [np.eye(400, dtype=np.float32)], "profile": "nikhilvyas", "precondition_frequency": 1, "threads": 1}


SLOW, ADAPT = {"precondition_frequency": 3}, {"use_adaptive_criteria": True, "adaptive_tolerance": 0.05}


def matrix(dtype=np.float32, **more):
    return lambda: {"params": {"w": WEIGHTS.astype(dtype)}, **more}


STEPS = dict(  # of fourge.torch.SOAP as well
   lr=(0.1, trained),
   betas=((0.5, 0.9), trained), shampoo_beta=(0.1, trained), eps=(0.1, trained), weight_decay=(0.5, trained),
   profile=("nikhilvyas", trained),
   threads=(3, threads(then=trained), {"params": [draw.normal(size=(256, 256)).astype(np.float32) for _ in range(4)]}),
   seed=(5, warns()), memory_limit=SMALL, time_limit=(1.0, warns()), weight_decay_method=("l2", trained, {"weight_decay": 0.5}),
   nesterov=(True, trained), correct_bias=(False, trained),
   correct_shampoo_beta_bias=(False, trained, matrix(use_kl_shampoo=True)), max_update_rms=(0.1, trained),
   normalize_update=(True, trained), trace_normalization=(True, trained), denom_floor=(1e5, trained),
   precondition_frequency=[(5, trained), (lambda step: 5, trained), ([(0, 2), (4, 5)], trained)],
   precondition_warmup_steps=(5, trained, {"precondition_frequency": 6}), adam_warmup_steps=(4, trained),
   stagger=(True, trained, SLOW),
   refresh_async=(True, Same("bases that are made beside the caller's work have the bits that they have without", differs(then=joined)),
                  large),
   power_iter_steps=(3, trained), use_eigh=(True, trained), use_adaptive_criteria=(True, trained, {"adaptive_tolerance": 0.5}),
   adaptive_tolerance=(1.5, trained, ADAPT), adaptive_scope=("factor", trained, ADAPT),
   adaptive_form=("offdiagonal", trained, {"use_adaptive_criteria": True, "adaptive_tolerance": 0.3}),
   use_kl_shampoo=(True, trained, matrix()), kl_init=("unit", trained, matrix(use_kl_shampoo=True)),
   sort_when=("after_qr", trained, {"precondition_frequency": 2}), moment2_order=("rank", trained),
   order=("update_first", trained), warmup_v=("reset", trained, {"adam_warmup_steps": 4}),
   moment1_basis=("original", trained, {"profile": "nikhilvyas", "moment1_basis": "eigen"}), qr_method=("vendor", trained),
   ridge_c=(1e8, trained), ortho_tol=(0.5, trained, {"qr_method": "cholesky"}),
   nonfinite=("error", raises("finite", then=lambda opt: step(opt, [np.full(tuple(a.shape), np.nan, np.float32) for a in held(opt)]))),
   precondition_1d=(True, trained), max_precond_dim=(4, trained), block_dim=(3, trained), merge_dims=(True, trained),
   merge_rule=("stacked", trained, {"merge_dims": True}), stochastic_rounding=(True, trained, matrix(np.float16)),
   rounding_seed=(5, trained, matrix(np.float16, stochastic_rounding=True)), adaptive_update_tolerance=(1.5, trained, ADAPT),
   normalize_grads=(True, trained), normalize_gradient=(True, trained), max_precondition_dim=(4, trained),
   use_batched_qr=(False, warns()), batched_qr_num_streams=(2, warns()), stream_list=([1], warns()),
   fp32_matmul_prec=("high", warns()), qr_fp32_matmul_prec=("high", warns()), data_format=("channels_last", raises()),
   maximize=(True, trained))
of(soap.SOAP, lambda: {"params": parameters()}, **STEPS, params=({"w": -WEIGHTS}, trained))


def optimizer():
    opt = soap.SOAP(parameters())
    trained(opt, 3)
    return opt


optimizer().export(f"{SAVED.name}/emerging.npz")
optimizer().save(f"{SAVED.name}/state")
soap.SOAP(parameters()).save(f"{SAVED.name}/first")
soap.SOAP(parameters()).export(f"{SAVED.name}/first.npz")
SLOPES = [np.ones_like(a) for a in parameters().values()]
AFTER = optimizer()
trained(AFTER, 2)


def arrays_of(_):
    """What is in the archive a."""
    with np.load("a") as archive:
        return {k: archive[k] for k in archive.files}


of(soap.defaults, {}, profile=("nikhilvyas", dict))
of(soap.SOAP.add_param_group, lambda: {"group": {"params": [VECTOR.copy()]}}, optimizer,
   group=({"params": [VECTOR.copy()], "lr": 0.5}, trained))
of(soap.SOAP.step, {"gradients": SLOPES}, optimizer, gradients=([None, *SLOPES[1:]], lambda report: report["updated"]))
of(soap.SOAP.load_state_dict, {"state_dict": optimizer().state_dict()}, optimizer, state_dict=(AFTER.state_dict(), trained))
of(soap.SOAP.save, {"path": "a"}, optimizer, path=("b", writes("b")))
of(soap.SOAP.load, {"path": f"{SAVED.name}/state"}, optimizer, path=(f"{SAVED.name}/first", trained))
of(soap.SOAP.export, {"path": "a"}, optimizer, path=("b", writes("b")), layout=("nikhilvyas", arrays_of))
of(soap.SOAP.import_, {"path": f"{SAVED.name}/emerging.npz"}, optimizer, path=(f"{SAVED.name}/first.npz", trained),
   layout=("pytorch_optimizer", raises("steps")))
of(soap.SOAP.save_param, {"name": "w"}, optimizer, name=("v", len))
of(soap.SOAP.load_param, {"name": "w", "state": optimizer().save_param("w")}, optimizer, name=("v", raises("shape")),
   state=(AFTER.save_param("w"), trained))


class OfKeywords(Table, unittest.TestCase):
    rows, modules, file = rows, (fe, gp, linalg, soap), __file__
    elsewhere = {"_tables.coefplot", "_tables.iplot", "fe.Fit.coefplot", "fe.Fit.iplot"}  # need matplotlib


if __name__ == "__main__":
    main(rows)
