"""What is written down is what there is: the typed stub and the extension, docstrings and parameters, annotations."""

import ast
import importlib
import inspect
import pathlib
import re
import sys
import typing
import unittest

import fourge
from fourge import _fourge, fe, gp, gw, linalg, soap

STUB = pathlib.Path(fourge.__file__).with_name("_fourge.pyi")
MODULES = ("anndata", "datasets", "fe", "gp", "gw", "linalg", "linearmodels", "pot", "pyfixest", "soap")
MADE_BY_THE_PACKAGE = ("Alignment", "Fit", "Graph", "Transport")  # their constructors are nobody else's


def members_of(body):
    """{name: {method: arguments}} for the classes of a stub, those of their bases included; {name: arguments} for functions."""
    out = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            out[node.name] = {}
            for base in node.bases:
                out[node.name] |= out.get(base.id, {}) if isinstance(base, ast.Name) else {}
            out[node.name] |= {n: a for n, a in members_of(node.body).items() if n != "__new__"}
        elif isinstance(node, ast.FunctionDef):
            out[node.name] = [a.arg for a in node.args.args if a.arg not in ("self", "cls")]
    return out


def documented(doc, name):
    """The most arguments that a docstring has as "name(a, b)"; None where it has none."""
    forms = [[a.split("=")[0].strip() for a in form.split(",") if a.strip()] for form in re.findall(rf"\b{name}\(([^()]*)\)", doc)]
    return max(forms, key=len, default=None)


def functions_of(module):
    """(name, function, docstring) of what a module offers, the methods of its classes among them."""
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing):
            if name not in MADE_BY_THE_PACKAGE:
                yield name, thing.__init__, inspect.getdoc(thing)
            members = {k: v for base in reversed(thing.__mro__) if base.__module__ == thing.__module__ for k, v in vars(base).items()}
            for method, value in members.items():
                if not method.startswith("_") and not (value is None or isinstance(value, str)):
                    value = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
                    if callable(value):
                        yield f"{name}.{method}", value, inspect.getdoc(value)
        elif callable(thing):
            yield name, thing, inspect.getdoc(thing)


def whole_doc(module, name, doc, steps=2):
    """The docstring, with its class's and those of the functions that it names: there the options that it hands on may stand."""
    named = re.findall(r":(?:func|meth|class):`~?(?:fourge\.)?([\w.]+)`", doc)
    for other in [name.split(".")[0], *named]:
        owner = fourge if other.split(".")[0] in fourge.__all__ else module
        for part in other.split("."):
            owner = getattr(owner, part, None)
        found = inspect.getdoc(owner) if owner is not None else None
        doc += whole_doc(sys.modules.get(getattr(owner, "__module__", None), module), other, found, steps - 1) if found and steps else ""
    return doc


def parameters_of(function):
    return {n: p for n, p in inspect.signature(function).parameters.items()
            if n not in ("self", "cls", "frame") and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}


class Stub(unittest.TestCase):
    def test_names(self):
        declared = members_of(ast.parse(STUB.read_text(encoding="utf-8")).body)
        declared = {n: members for n, members in declared.items() if not n.startswith("_")}
        public = {n for n in dir(_fourge) if not n.startswith("_")}
        self.assertEqual(set(declared), public)
        for name, members in declared.items():
            if isinstance(members, dict):
                self.assertEqual({n for n in dir(getattr(_fourge, name)) if not n.startswith("_")}, set(members), name)

    def test_arguments(self):
        """Where the C side writes "name(a, b)", the stub has these; every call with too many is refused."""
        declared = members_of(ast.parse(STUB.read_text(encoding="utf-8")).body)
        compared = 0
        for name, members in declared.items():
            if name.startswith("_"):
                continue
            for method, arguments in (members.items() if isinstance(members, dict) else [(name, members)]):
                owner = getattr(_fourge, name)
                function = getattr(owner, method) if isinstance(members, dict) else owner
                doc = inspect.getdoc(function)
                self.assertTrue(doc, f"{name}.{method}")
                written = documented(doc, method)
                if written is not None:
                    compared += 1
                    with self.subTest(f"{name}.{method}"):
                        self.assertEqual(written, arguments)
        self.assertGreater(compared, 40)


class Options(unittest.TestCase):
    """The options in the signatures are those of the library's structs, with their defaults and their words."""

    CALLS = (
        (fe.feols, ("context", "demean", "fe")), (fe.demean, ("context", "demean")), (fe.lsmr, ("context", "lsmr")),
        (gp.GP, ("context", "gp")), (gp.GP.fit, ("gp_fit",)), (gp.load, ("context",)), (gp.evaluate_batch, ("context", "gp")),
        (gp.fit_batch, ("context", "gp")), (gw.align, ("context", "gw")), (gw.transport, ("context", "sinkhorn")),
        (gw.barycenter, ("context", "barycenter")), (gw.Graph.knn, ("context", "graph")), (linalg.qr, ("context", "qr")))
    NOT_TAKEN = {"fe.demean": {"dof"}, "gp.evaluate_batch": {"seed"}, "linalg.qr": {"seed", "time_limit"}}
    UNSEEDED = {"fe.lsmr", "gw.barycenter", "gw.transport", "gw.Graph.knn"}
    #: These are refused on another device than the cpu, which FOURGE_DEVICE alone can name.
    ON_THE_CPU = {"fe.lsmr", "gp.load", "gw.barycenter", "gw.Graph.knn", "linalg.qr"}

    #: What fe.feglm, fe.fepois and fe.fenegbin take alone.
    OF_FAMILIES = {"family", "link", "offset", "glm_tol", "glm_iter", "separation", "theta"}

    def test_structs(self):
        known = _fourge.options()
        for call, names in self.CALLS:
            where = f"{call.__module__.split('.')[-1]}.{call.__qualname__}"
            parameters = inspect.signature(call).parameters
            left_out = self.NOT_TAKEN.get(where, set()) | ({"seed"} if where in self.UNSEEDED else set())
            left_out |= {"device"} if where in self.ON_THE_CPU else set()
            left_out |= self.OF_FAMILIES if where == "fe.feols" else {"spool"}
            for name in names:
                for option, (default, choices) in known[name].items():
                    with self.subTest(where, option=option):
                        self.assertEqual(option in parameters, option not in left_out)
                        if option in left_out:
                            continue
                        p = parameters[option]
                        self.assertEqual(p.default, default)
                        if choices:
                            self.assertEqual(list(typing.get_args(p.annotation)), choices)
            self.assertFalse([p for p in parameters.values() if p.kind is p.VAR_KEYWORD])

    def test_optimizer(self):
        parameters = inspect.signature(soap.SOAP).parameters
        self.assertLessEqual(set(soap.defaults()) | set(soap.ALIASES) | set(soap.ELSEWHERE) | set(_fourge.options()["context"]) - {"device", "spool"}, set(parameters))

    def test_names_that_are_none(self):
        """The nearest name, of a function's own and of those that it hands on."""
        x = [[0.0], [1.0]]
        for call, near in ((lambda: gw.align(x, x, epsilonn=1), "epsilon"), (lambda: gw.align(x, x, chekpoint="a"), "checkpoint"),
                           (lambda: gw.energy(x, x, x, thread=2), "threads"), (lambda: linalg.qr(x, verfy="full"), "verify"),
                           (lambda: gp.load("nowhere", treads=1), "threads"), (lambda: gw.Graph.knn(x, stich=True), "stitch"),
                           (lambda: gp.GP(x, [0.0, 1.0], "rbf", noise_variance=1), "noise_variances"),
                           (lambda: gw.sampled_gw(x, x, landmarks=3), "n_landmarks"),
                           (lambda: gp.fit_batch([(x, [0.0, 1.0])], "rbf", fit={"maxiter": 2}), "max_iter"),
                           (lambda: fe.demean(x, [0, 0], weigths=1), "weights"), (lambda: soap.SOAP([], nesterow=True), "nesterov")):
            with self.subTest(near), self.assertRaisesRegex(TypeError, f"there is no option .*did you mean '({near})'"):
                call()


class Documentation(unittest.TestCase):
    def check(self, module):
        self.assertTrue(module.__doc__ and module.__all__)
        for name in module.__all__:
            self.assertTrue(hasattr(module, name), name)
        for name, function, doc in functions_of(module):
            where = f"{module.__name__}.{name}"
            with self.subTest(where):
                self.assertTrue(doc)
                whole = whole_doc(module, name, doc)
                for parameter, p in parameters_of(function).items():
                    handed_on = parameter in getattr(function, "_takes", ())
                    self.assertRegex(whole if handed_on else doc, rf"\b{re.escape(parameter)}\b", f"{where}: {parameter}")
                    self.assertIsNot(p.annotation, p.empty, f"{where}: {parameter}")
                if not name[0].isupper() or "." in name:
                    self.assertIsNot(inspect.signature(function).return_annotation, inspect.Signature.empty, where)

    def test_every_parameter_is_named_and_has_a_type(self):
        for name in MODULES:
            self.check(importlib.import_module(f"fourge.{name}"))

    def test_options_of_a_process_are_explained(self):
        """Each option that the extension takes stands in the docstring with its values, not in a header alone."""
        for names, doc in ((_fourge.options()["gp"], gp.GP.__doc__), (_fourge.options()["gp_fit"], gp.GP.fit.__doc__)):
            self.assertGreater(len(names), 7)
            for name in names:
                self.assertRegex(doc, rf"(?m)^ +{name} : ")

    def test_arrays_have_shapes(self):
        """A parameter that is an array says its axes: (n,), (n, d), (m, n) and the like stand in the docstring."""
        arrays = {"x", "y", "a", "b", "c", "d", "C1", "C2", "M", "A", "R", "plan", "cost", "points", "weights", "linear", "start", "k", "r", "g", "codes"}
        for module in MODULES[:-1]:
            if module in ("anndata", "linearmodels", "pyfixest"):
                continue
            for name, function, doc in functions_of(importlib.import_module(f"fourge.{module}")):
                given = {n for n, p in parameters_of(function).items() if p.annotation == "Any"}
                if arrays & given:
                    with self.subTest(f"{module}.{name}"):
                        self.assertRegex(doc, r"\([A-Za-z0-9., _+]*,[A-Za-z0-9 ,_+]*\)|\(\.\.\., ", f"{module}.{name}")

    def test_exceptions(self):
        for name, kind in vars(fourge.errors).items():
            if inspect.isclass(kind) and kind.__module__ == "fourge.errors":
                self.assertTrue(inspect.getdoc(kind), name)
        self.assertIn("Exception", fourge.errors.__doc__.title())

    def test_all_modules_are_in_the_table(self):
        files = {p.stem for p in STUB.parent.glob("*.py") if not p.stem.startswith("_")}
        self.assertEqual(files, set(fourge.__all__))
        self.assertEqual(files - set(MODULES) - {"errors"}, {"gpytorch", "marginaleffects", "sklearn", "torch"})  # peers/test_stubs_peers has these
        self.assertNotIn("torch", {m for m in sys.modules if m.startswith("torch.")})


if __name__ == "__main__":
    unittest.main()
