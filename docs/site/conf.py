"""Sphinx's settings for the reference site; tools/docs.sh lays out what it reads, and runs it."""

import re
import sys
import unittest.mock

import fourge

project = "fourge"
author = "The fourge contributors"
copyright = "The fourge contributors"
version = release = fourge.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "hawkmoth"]
myst_heading_anchors = 4  # so that links to sections are checked
napoleon_custom_sections = [("Writes", "params_style")]

# The headers as tools/docs_headers.py writes them.
hawkmoth_root = "include"
hawkmoth_clang = ["-Iinclude"]
hawkmoth_compiler = "gcc"
hawkmoth_autoconf = ["stdinc"]

# What modules are named after; it need not be there to read them.
autodoc_mock_imports = [
    "anndata",
    "linear_operator",
    "linearmodels",
    "marginaleffects",
    "matplotlib",
    "pandas",
    "polars",
    "pyfixest",
    "scipy",
    "sklearn",
    "torch",
]
autodoc_default_options = {"members": True, "inherited-members": False, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings tell the types

highlight_language = "none"  # formulas; blocks of code name their language
default_role = "code"  # `name` in a docstring is a parameter

toc_object_entries = False  # they double the time of the build; the index has them
html_theme = "furo"
html_title = f"fourge {version}"
html_show_sphinx = False
html_copy_source = False


def stand_in(**classes):
    """A module with the classes and methods that fourge.gpytorch looks up when it is imported."""
    module = unittest.mock.MagicMock()
    for name, methods in classes.items():
        place, _, cls = name.partition("__")
        setattr(getattr(module, place), cls, type(cls, (), dict.fromkeys(methods)))
    return module


sys.modules["gpytorch"] = stand_in(
    distributions__MultivariateNormal=["__init__", "log_prob"],
    means__ConstantMean=["forward"],
    mlls__ExactMarginalLogLikelihood=["forward"],
    lazy__LazyEvaluatedKernelTensor=["_size"],
)


def end_sections(app, what, name, obj, options, lines):
    """A paragraph behind a list of parameters is none of them: napoleon needs a heading there."""
    out, in_section = [], False
    for line, after in zip(lines, [*lines[1:], ""]):
        if re.fullmatch(r"-{3,}", after):
            in_section = True
        elif in_section and out and not out[-1] and line[:1].strip():
            out += ["Notes", "-----"]
            in_section = False
        out.append(line)
    lines[:] = out


def setup(app):
    app.connect("autodoc-process-docstring", end_sections, priority=400)  # before napoleon
