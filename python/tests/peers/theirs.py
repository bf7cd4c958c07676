"""Runs test files of a peer, with ours in its place and without, and says what each test did.

A plugin that has a function acted() says by it how often ours did the work; outcomes() gives that number as "acted".
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import fourge

HEAD = """
import sys
sys.path.insert(0, {package!r})

def acted():
    return 0

def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"ACTED {{acted()}}")

"""


def sources(name, version):
    """Where tools/build.sh has unpacked the tests of a peer's source package; None where it has not."""
    folder = pathlib.Path(sys.prefix, "sources", f"{name}-{version}")
    return folder if folder.is_dir() else None


def outcomes(files, plugin="", root=None):
    """{outcome: names} of the tests in `files`, in an interpreter that runs the text `plugin` first; and "acted".

    Names begin with the file's path below `root`, where they can import from (without: the first one's folder, where they
    cannot); options of the files' own project do not count."""
    below = root or files[0].parent
    paths = [*([str(root)] if root else []), os.environ.get("PYTHONPATH", "")]
    with tempfile.TemporaryDirectory() as folder:
        package = str(pathlib.Path(fourge.__file__).parents[1])
        pathlib.Path(folder, "with_ours.py").write_text(HEAD.format(package=package) + plugin)
        pathlib.Path(folder, "pytest.ini").write_text("[pytest]\n")
        out = subprocess.run([sys.executable, "-m", "pytest", "-rA", "-q", "--no-header", "--tb=no", "-W", "ignore", "-p", "no:cacheprovider",
                              "-c", f"{folder}/pytest.ini", "--rootdir", str(below), "-p", "with_ours", *map(str, files)],
                             cwd=below, capture_output=True, text=True,
                             env={**os.environ, "PYTHONPATH": os.pathsep.join([folder, *paths])}).stdout
    found = {}
    for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR|XPASS|XFAIL) (\S.*?)(?: - .*)?$", out, re.M):
        found.setdefault(outcome, set()).add(name)
    if not found:
        raise RuntimeError("no test ran:\n" + out[-2000:])
    return found | {"acted": int(re.search(r"^ACTED (\d+)$", out, re.M)[1])}
