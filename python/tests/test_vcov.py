"""Standard errors beside iid, HC1 and clusters: every spelling against the peers' numbers in tests/golden/vcov.tsv."""

import csv
import pathlib
import unittest

import numpy as np
from test_fe import read_csv

from fourge import errors, fe, pyfixest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPELLINGS = {
    "nw=state,year,2": ["NW(2) ~ state + year", "newey_west(2) ~ state+year"], "dk=year,2": ["DK(2) ~ year", "dk=year,lag=2"],
    "crv3=firm": [{"CRV3": "firm"}], "cr2=firm": [{"CR2": "firm"}, "CR2 ~ firm"], "cr3=firm": [{"CR3": "firm"}],
    "hc2": ["HC2"], "hc3": ["HC3", "hc3,leverage=exact"], "wild=firm": [{"wild": "firm"}, "wild=firm,9999"],
}


def golden():
    """{(data, formula, vcov, dof): {(quantity, term): (value, tolerance)}}."""
    cases = {}
    with open(ROOT / "tests" / "golden" / "vcov.tsv") as f:
        for line in csv.reader(f, delimiter="\t"):
            if line[0] != "id":
                case = cases.setdefault((line[1][5:], line[2], line[3], line[8]), {})
                case[line[10], line[11]] = float(line[12]), float(line[13]) if len(line) > 13 else 0
    return cases


class Vcov(unittest.TestCase):
    def test_golden(self):
        for (data, formula, spec, dof), wanted in golden().items():
            if data == "munnell.csv":  # has no year
                continue
            for spelling in SPELLINGS.get(spec, [spec]):
                with self.subTest(data, formula=formula, vcov=spelling):
                    fit = fe.feols(formula, read_csv(data), spelling, **({"dof": dof} if dof == "naive" else {}))
                    shown = fit.result["vcovs"][0]
                    table = {c["term"]: c for c in fit._shown["coefficients"]}
                    for (quantity, term), (value, tolerance) in wanted.items():
                        got = (shown["df_t"] if quantity == "df_t" else
                               shown["df"][list(table).index(term)] if quantity == "df" else table[term][quantity])
                        self.assertAlmostEqual(got, value, delta=1e-6 * abs(value) + tolerance)

    def test_pyfixest(self):
        cigar, kwargs = read_csv("cigar.csv"), {"lag": 2, "time_id": "year", "panel_id": "state"}
        wanted = golden()
        formula = "sales ~ price | state + year"
        for vcov, spec in (("NW", "nw=state,year,2"), ("DK", "dk=year,2")):
            fit = pyfixest.feols(formula, cigar, vcov, vcov_kwargs=kwargs, fixef_tol=1e-10)
            value, _ = wanted["cigar.csv", formula, spec, "naive"]["std_error", "price"]
            np.testing.assert_allclose(np.asarray(fit.se()), value, rtol=1e-6)
            again = pyfixest.feols(formula, cigar, fixef_tol=1e-10).vcov(vcov, vcov_kwargs=kwargs)
            np.testing.assert_array_equal(np.asarray(again.se()), np.asarray(fit.se()))
            self.assertIn(vcov, repr(fit))
        with self.assertRaisesRegex(errors.Unsupported, "full model"):
            pyfixest.feols(formula, cigar, "HC3")

    def test_what_was_used_is_told(self):
        cigar = read_csv("cigar.csv")
        specs = ["hac=state,year", "hc3,leverage=approx,draws=64", "jackknife=state", "wild=state,99,weights=webb",
                 {"CR2": "state"}]
        fit = fe.feols("sales ~ price | state + year", cigar, specs)
        hac, hc3, jackknife, wild, cr2 = fit.result["vcovs"]
        self.assertEqual((hac["lag"], hac["kernel"], hac["df_t"]), (2, "bartlett", 29))
        self.assertEqual((hc3["leverage"], hc3["reps"]), ("approx", 64))
        self.assertTrue(0 < hc3["leverage_error"] < 0.1 and 0 < hc3["leverage_max"] < 1)
        self.assertEqual((jackknife["type"], jackknife["df_t"]), ("jackknife", 45))
        self.assertEqual((wild["weights"], wild["reps"]), ("webb", 99))
        self.assertEqual(len(cr2["df"]), 1)
        self.assertNotIn("lag", cr2)
        self.assertIn("hac=state,year", str(fit))

    def test_refusals(self):
        cigar = read_csv("cigar.csv")
        twice = {name: np.concatenate([column, column[:1]]) for name, column in cigar.items()}
        for data, vcov, says in (
            (cigar, "nw=state", "2 variables"), (twice, "nw=state,year", "rows 1 and 1381"), (cigar, "conley=price,ndi,10", "latitude"),
            (cigar, "conley=pop,ndi", "cutoff"), (cigar, "hc2,draws=9", "draws"), (cigar, "jackknife=none", "none"),
        ):
            with self.subTest(vcov), self.assertRaisesRegex((errors.Error, KeyError), says):
                fe.feols("sales ~ price | state", data, vcov)


if __name__ == "__main__":
    unittest.main()
