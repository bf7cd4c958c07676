"""The typed stub says what the extension has: no name is missing on either side."""

import ast
import pathlib
import unittest

import fourge
from fourge import _fourge

STUB = pathlib.Path(fourge.__file__).with_name("_fourge.pyi")


def names_of(body):
    """{name: names within, for a class, those of its bases included; None for a function} of what a stub declares."""
    out = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            bases = [out[b.id] for b in node.bases if isinstance(b, ast.Name) and b.id in out]
            out[node.name] = set(names_of(node.body)).union(*bases) - {"__new__"}
        elif isinstance(node, ast.FunctionDef):
            out[node.name] = None
    return out


class Stub(unittest.TestCase):
    def test_names(self):
        declared = names_of(ast.parse(STUB.read_text(encoding="utf-8")).body)
        declared = {n: members for n, members in declared.items() if not n.startswith("_")}
        public = {n for n in dir(_fourge) if not n.startswith("_")}
        self.assertEqual(set(declared), public)
        for name, members in declared.items():
            if members is not None:
                self.assertEqual({n for n in dir(getattr(_fourge, name)) if not n.startswith("_")}, members, name)

    def test_everything_is_documented(self):
        for name in dir(_fourge):
            if not name.startswith("_"):
                self.assertTrue(getattr(_fourge, name).__doc__, name)
        for module in ("fe", "gp"):
            for name in getattr(fourge, module).__all__:
                self.assertTrue(getattr(getattr(fourge, module), name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
