# SPDX-License-Identifier: Apache-2.0
"""`python -m cuslice`: the launcher that was installed with this package, wherever pip put it."""

import os
import sys

from cuslice._launcher import installed_launcher


def main() -> int:
    path = installed_launcher()
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
