"""What objects show of themselves, copies and pickles of them or what is kept instead, entries by their names."""

import contextlib
import copy
import html.parser
import io
import pickle
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


class Copies(unittest.TestCase):
    def test_what_is_kept_instead(self):
        found = gw.align(X, X, distance="euclidean", epsilon=0.02, max_iter=5)
        for thing, says in ((found, "plan"), (gw.transport(np.ones((3, 3))), "plan"), (gw.Graph.knn(X, 3), "Graph.csr"),
                            (fe.feols("y ~ x", DATA), "tidy")):
            for way in (pickle.dumps, copy.copy, copy.deepcopy):
                with self.subTest(f"{type(thing).__name__}, {way.__name__}"):
                    with self.assertRaisesRegex(TypeError, f"not pickled or copied.*{says}"):
                        way(thing)
        report = pickle.loads(pickle.dumps(found.report))
        self.assertEqual(report["energy"], found.report["energy"])

    def test_a_graph_of_its_arcs(self):
        graph = gw.Graph.knn(X, 3)
        np.testing.assert_array_equal(gw.Graph.csr(*graph.arcs(), directed=True).paths(), graph.paths())


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

    def test_hints_name_no_file(self):
        for call in (lambda: fe.feols("c(y, y2) ~ x", DATA), lambda: fe.feols("y ~ x", DATA, vcov="HC3")):
            with self.assertRaises(errors.Unsupported) as caught:
                call()
            self.assertNotIn(".md", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
