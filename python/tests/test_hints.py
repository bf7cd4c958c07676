"""Keywords that a function has not got are answered with the nearest, in every public function and method of the package."""

import inspect
import unittest
import warnings

import numpy as np

from fourge import errors, fe, gp, gw, linalg, pot, soap


def callables(module):
    """(name, function) of the public functions, and of the methods of public classes that are functions."""
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value):
            yield f"{module.__name__}.{name}", value
        elif inspect.isclass(value) and value.__module__.startswith("fourge."):
            for key in dir(value):
                method = inspect.getattr_static(value, key)
                if not key.startswith("_") and inspect.isfunction(method):
                    yield f"{module.__name__}.{name}.{key}", method


class Hints(unittest.TestCase):
    def test_every_function(self):
        tried = 0
        for module in (fe, gp, gw, linalg, pot, soap):
            for name, function in callables(module):
                parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
                takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
                if not parameters or takes_any or not hasattr(function, "__wrapped__"):
                    self.assertTrue(not parameters or takes_any or hasattr(function, "_takes"), name)  # whose own check is in test_keywords
                    continue
                key = max((p.name for p in parameters), key=len)
                with self.subTest(name):
                    near = rf"did you mean '{key}'" if len(key) > 3 else "did you mean|there are"
                    with self.assertRaisesRegex(TypeError, f"unexpected keyword argument '{key}_'[;.] (?i:{near})"):
                        function(**{key + "_": 1})
                    tried += 1
        self.assertGreater(tried, 50)

    def test_errors_from_within(self):
        """Stay as they are, and so does one of a call that the function makes; warnings name the caller's line."""
        fit = fe.feols("y ~ x", {"y": np.arange(5.0) ** 2, "x": np.arange(5.0)})
        with self.assertRaisesRegex(TypeError, "there is no option 'tpye'; did you mean 'type'"):
            fit.etable(tpye="md")
        with self.assertRaises(ValueError):
            fit.tidy(style="none")
        with self.assertRaises(errors.BadArgument):
            soap.SOAP([np.ones((2, 2))]).step({"none": None})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fe.demean(np.random.default_rng(0).normal(size=(60, 1)), np.c_[np.arange(60) // 2, (np.arange(60) + 1) // 2], method="cg",
                      precond="off", max_iter=1)
        self.assertEqual({w.filename for w in caught}, {__file__})
