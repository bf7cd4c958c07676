"""What objects show of themselves, copies and pickles of them, entries by their names."""

import contextlib
import copy
import html.parser
import io
import pickle
import re
import unittest
import warnings

import numpy as np

from fourge import errors, fe, gp, gw, soap

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
DATA = {"y": X[:, 0], "y2": X[:, 0] ** 2, "x": X[:, 1]}


class Balanced(html.parser.HTMLParser):
    """The tags that are open."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise AssertionError(tag)

    def handle_data(self, data):
        self.words.append(data)


class Shown(unittest.TestCase):
    def test_summaries(self):
        """The same words and numbers as lines and in HTML, whose tags close."""
        process = gp.GP(X, X[:, 0], "1.25*rbf(l=2) + noise(0.1)")
        found = gw.align(X, X, distance="euclidean", epsilon=0.02, max_iter=5)
        opt = soap.SOAP({"w": np.ones((3, 2), np.float32)}, lr=0.125)
        energy = f"{found.report['energy']:.5g}"
        for thing, says in ((process, ("1.25", "rbf.l", "12")), (found, (energy, found.report["reason"], "12 x 12")),
                            (gw.transport(np.ones((3, 4))), ("3 x 4", "cost")), (opt, ("0.125", "emerging", "group 0"))):
            with self.subTest(type(thing).__name__):
                text = io.StringIO()
                with contextlib.redirect_stdout(text):
                    thing.summary()
                page = Balanced(thing._repr_html_())
                self.assertEqual(page.open, [])
                for word in says:
                    self.assertIn(word, text.getvalue())
                    self.assertIn(word, " ".join(page.words))
                self.assertNotIn("object at", repr(thing))

    def test_html_is_escaped(self):
        process = gp.GP(X, X[:, 0], "1*on(<b>; rbf(l=1)) + noise(0.1)".replace("<b>", "a"), columns=["a", "<b>"])
        self.assertIn("&lt;b&gt;", process._repr_html_())


def ways(thing):
    """(name, what comes of it) of each way to have another one."""
    yield "copy", copy.copy(thing)
    yield "deepcopy", copy.deepcopy(thing)
    yield "pickle", pickle.loads(pickle.dumps(thing))
    yield "pickle of a pickle", pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(thing))))


class Copies(unittest.TestCase):
    def same_plan(self, one, other):
        """Entries, potentials and the report to the bit; sums over float64 up to their rounding."""
        plan = one.plan()
        np.testing.assert_array_equal(other.plan(), plan)
        np.testing.assert_array_equal(other.rows(1, 3, np.float32), one.rows(1, 3, np.float32))
        for a, b in zip((*other.top(2), other.argmax(), *other.sparse(0.01)), (*one.top(2), one.argmax(), *one.sparse(0.01))):
            np.testing.assert_array_equal(a, b)
        try:
            potentials = one.potentials
        except errors.Unsupported as e:  # a vertex has none
            with self.assertRaisesRegex(errors.Unsupported, re.escape(str(e))):
                other.potentials
        else:
            for a, b in zip(other.potentials, potentials):
                np.testing.assert_array_equal(a, b)
        n, m = one.shape
        for v, transposed in ((np.arange(2.0 * m).reshape(m, 2), False), (np.arange(1.0, n + 1), True)):
            np.testing.assert_allclose(other.apply(v, transposed), one.apply(v, transposed), rtol=1e-13)
        labels = np.array(["a", "b", "", "c"] * m)[:m]
        for a, b in zip(other.labels(labels), one.labels(labels)):
            if a.dtype.kind in "OU":
                np.testing.assert_array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=1e-13)
        self.assertEqual(other.marginals, one.marginals)
        np.testing.assert_equal(dict(other.report), dict(one.report))
        self.assertEqual((repr(other), other._repr_html_()), (repr(one), one._repr_html_()))

    def test_plans(self):
        rough = RNG.normal(size=(14, 3))
        exact = {"distance": "euclidean", "mode": "exact", "epsilon": 0.05, "max_iter": 5}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one of low rank is near the product
            low = gw.align(X, rough, **exact | {"mode": "sampled", "rank": 3})
        for kind, found in (("dense", gw.align(X, rough, **exact)), ("a vertex", gw.align(X, X, distance="euclidean")), ("low rank", low),
                            ("transport", gw.transport(abs(rough)))):
            for way, other in ways(found):
                with self.subTest(f"{kind}, {way}"):
                    self.assertIs(type(other), type(found))
                    if kind == "low rank":
                        for a, b in zip(other.factors, found.factors):
                            np.testing.assert_array_equal(a, b)
                        np.testing.assert_allclose(other.plan(), found.plan(), rtol=1e-12, atol=1e-18)
                        continue
                    self.same_plan(found, other)
                    if way.startswith("pickle"):
                        with self.assertRaisesRegex(errors.Unsupported, "pickled"):
                            other.vjp(np.ones(found.shape))
                    elif kind == "dense":
                        np.testing.assert_array_equal(other.distances(1), found.distances(1))
        kept = len(pickle.dumps(gw.align(rough, rough, distance="euclidean"))), len(pickle.dumps(gw.align(rough, rough, **exact)))
        self.assertLess(kept[0], kept[1])  # a vertex has 27 entries of 196

    def test_a_copy_has_its_report(self):
        found = gw.transport(np.ones((3, 3)))
        other = copy.deepcopy(found)
        other.report["marginal_error"]["source"] = 5.0
        self.assertNotEqual(found.report["marginal_error"]["source"], 5.0)

    def test_graphs(self):
        directed = gw.Graph.csr([0, 2, 3, 3], [1, 2, 2], [1.0, 5.0, 2.5], directed=True)
        for graph in (gw.Graph.knn(X, 3), directed):
            for way, other in ways(graph):
                with self.subTest(way):
                    for a, b in zip(other.arcs(), graph.arcs()):
                        np.testing.assert_array_equal(a, b)
                    np.testing.assert_array_equal(other.paths(), graph.paths())
                    self.assertEqual(other.report, graph.report)
        np.testing.assert_array_equal(gw.Graph.csr(*graph.arcs(), directed=True).paths(), graph.paths())

    def test_fits(self):
        """A pickle has the columns that were read; what was not asked for before is of the same regression once more."""
        data = {**DATA, "f": np.arange(12) % 3, "g": np.array(list("aabbccabcabc")), "unread": object()}
        fit = fe.feols("y ~ x | f + g", data, level=0.9, threads=1)
        for way, other in ways(fit):
            with self.subTest(way):
                self.assertEqual(other.tidy(), fit.tidy())
                self.assertEqual(dict(other.result), dict(fit.result))
                np.testing.assert_array_equal(other.resid(), fit.resid())
                np.testing.assert_array_equal(other.vcov(), fit.vcov())
                self.assertEqual(other.fixef(), fit.fixef())
                new = {"x": X[:4, 1], "f": np.arange(4) % 3, "g": np.array(list("abca"))}
                np.testing.assert_array_equal(other.predict(new), fit.predict(new))
                np.testing.assert_array_equal(other.vcov("HC1").se(), copy.copy(fit).vcov("HC1").se())
                self.assertEqual(fit._shown["type"], "iid")  # the copy's covariance is its own
                with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'"):
                    other.nothing


class Names(unittest.TestCase):
    def test_entries(self):
        fit = fe.feols("y ~ x", DATA)
        for values in (fit.coef(), fit.se(), fit.tstat(), fit.pvalue()):
            self.assertEqual(values["x"], values[1])
            self.assertEqual(values["(Intercept)"], values[0])
            self.assertEqual(type(values[0]), np.float64)
            self.assertEqual(type(2 * values), np.ndarray)
            for other in (copy.deepcopy(values), pickle.loads(pickle.dumps(values))):
                self.assertEqual(other["x"], values[1])
        with self.assertRaisesRegex(KeyError, "no term 'xx'; did you mean 'x'"):
            fit.coef()["xx"]

    def test_a_sum_on_the_left(self):
        with self.assertWarnsRegex(UserWarning, r"y \+ y2 on the left is one outcome.*pyfixest fits 2.*I\(y \+ y2\)"):
            sums = fe.feols("y + y2 ~ x", DATA)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for fml in ("I(y + y2) ~ x", "log(y2 + 1) ~ x", "y + 1 ~ x"):
                fit = fe.feols(fml, DATA)
                if fml[0] == "I":
                    np.testing.assert_array_equal(fit.coef(), sums.coef())

    def test_a_power(self):
        """x**2 is the square, as in fixest, and told to be no square in pyfixest; within a call it is one in both."""
        want = fe.feols("y ~ I(x^2)", DATA).coef()
        for fml, name in (("y ~ x**2", "x"), ("y ~ x ** 2 | f", "x"), ("y2**2 ~ x", "y2")):
            with self.assertWarnsRegex(UserWarning, rf"{name}\*\*2 is the power, I\({name}\^2\).*pyfixest.*read it as {name}: write I"):
                fit = fe.feols(fml, {**DATA, "f": np.arange(12) % 3})
            if fml == "y ~ x**2":
                np.testing.assert_array_equal(fit.coef(), want)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for fml in ("y ~ I(x**2)", "y ~ x^2", "y ~ I((x + y2)**2)"):
                fe.feols(fml, DATA)

    def test_hints_name_no_file(self):
        for call in (lambda: fe.feols("y ~ offset(x)", DATA), lambda: fe.feols("y ~ x", DATA, vcov={"CRV5": "x"})):
            with self.assertRaises(errors.Unsupported) as caught:
                call()
            self.assertNotIn(".md", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
