"""``fourge`` and ``python -m fourge``: the program that lies in the package."""

import os
import pathlib
import subprocess
import sys


def main() -> int:
    """Runs the program with the command line's arguments and returns its exit code.

    Where a process can become another (not on Windows) it does, and nothing is returned.
    """
    name = "fourge.exe" if os.name == "nt" else "fourge"
    command = [str(pathlib.Path(__file__).with_name("bin") / name), *sys.argv[1:]]
    if os.name == "nt":
        return subprocess.run(command).returncode
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
