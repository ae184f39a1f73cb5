"""`python -m cuslice`: the launcher that was installed with this package, wherever pip put it."""

import os
import sys
from importlib.metadata import PackageNotFoundError, files


def launcher() -> str:
    """The path of bin/cuslice, from pip's record of what it installed; "" if there is none."""
    try:
        installed = files("cuslice") or []
    except PackageNotFoundError:
        return ""
    for path in installed:
        if path.parts[-2:] == ("bin", "cuslice"):
            # Not the symbolic links' target: the libraries are found from the launcher itself.
            return os.path.normpath(str(path.locate()))
    return ""


def main() -> int:
    path = launcher()
    if not path:
        print("cuslice: the launcher is not installed with this package; install cuslice's wheel", file=sys.stderr)
        return 127
    try:
        os.execv(path, [path, *sys.argv[1:]])
    except OSError as error:
        print(f"cuslice: {path}: {error.strerror}", file=sys.stderr)
        return 126


if __name__ == "__main__":
    sys.exit(main())
