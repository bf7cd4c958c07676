"""fourge: fixed effects, Gaussian processes, Gromov-Wasserstein and SOAP, computed in C.

Submodules are imported when they are first used: ``fourge.fe``.
"""

import importlib

from . import errors
from ._fourge import version as _version

__version__ = _version()[0]
_submodules = ("anndata", "datasets", "fe", "gp", "gpytorch", "gw", "linalg", "pot", "pyfixest", "sklearn", "soap", "torch")
__all__ = ["errors", *_submodules]


def __getattr__(name):
    if name in _submodules:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'fourge' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_submodules])
