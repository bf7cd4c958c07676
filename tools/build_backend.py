"""Build backend of the Python package: scikit-build-core's, which writes the commit into an sdist.

The file COMMIT lies in the root of the sdist alone, and CMakeLists.txt reads it before it asks git;
so what is built from an sdist says its commit where there is no git, too.
"""

import pathlib
import subprocess

from scikit_build_core.build import *  # noqa: F403
from scikit_build_core.build import build_sdist as _build_sdist

COMMIT = pathlib.Path(__file__).resolve().parents[1] / "COMMIT"


def commit():
    """The checkout's commit, 12 digits, with "+" where tracked files differ; "unknown" without git."""
    command = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]
    try:
        said = subprocess.run(command, cwd=COMMIT.parent, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return said.stdout.strip() or "unknown"


def build_sdist(sdist_directory, config_settings=None):
    """scikit-build-core's, with COMMIT in the root while it packs; one that is there stays."""
    made = not COMMIT.exists()
    if made:
        COMMIT.write_text(commit() + "\n", encoding="ascii")
    try:
        return _build_sdist(sdist_directory, config_settings)
    finally:
        if made:
            COMMIT.unlink()
