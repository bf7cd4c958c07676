"""fourge: fixed effects, Gaussian processes, Gromov-Wasserstein and SOAP, computed in C.

Submodules are imported when they are first used: ``fourge.fe``.

Threads that have done their share of a loop spin for about 0.1 ms and sleep then, which suits idle and busy machines alike;
OMP_WAIT_POLICY or GOMP_SPINCOUNT in the environment, set before the import, say otherwise.  Where Debian's NumPy is in use,
import fourge first: its BLAS loads the same OpenMP runtime, which then spins for milliseconds on busy machines.
"""

import importlib
import os

# GCC's OpenMP runtime, which comes with the package, reads this when it is loaded, and then never again; by itself it spins
# for 3 to 15 ms.  The variable goes again, so that no other library and no child process sees it.
_waits = "GOMP_SPINCOUNT" not in os.environ and "OMP_WAIT_POLICY" not in os.environ
if _waits:
    os.environ["GOMP_SPINCOUNT"] = "2000"
try:
    from . import _fourge
finally:
    if _waits:
        del os.environ["GOMP_SPINCOUNT"]

from . import errors

_version = _fourge.version

__version__ = _version()[0]
_submodules = ("anndata", "datasets", "fe", "gp", "gpytorch", "gw", "linalg", "linearmodels", "marginaleffects", "pot", "pyfixest", "sklearn", "soap", "torch")
__all__ = ["errors", *_submodules]


def __getattr__(name):
    if name in _submodules:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'fourge' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_submodules])
