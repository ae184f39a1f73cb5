# SPDX-License-Identifier: Apache-2.0
"""Whether the fake GPU's cuBLAS, cuBLASLt and cuDNN have every name of the genuine ones that a package brought along:

  library_names.py FAKE_FOLDER SITE_PACKAGES
"""

import pathlib
import subprocess
import sys

from checks import check, finish

LIBRARIES = [f"lib{name}.so.{major}" for major in (12, 13) for name in ("cublas", "cublasLt")] + ["libcudnn.so.9"]


def names(library):
    """What a library exports, each with its version."""
    lines = subprocess.check_output(["nm", "-D", "--defined-only", library], text=True).splitlines()
    return {line.split()[-1].replace("@@", "@") for line in lines if "@" in line}


def main():
    """One line for each library that is there."""
    fake, packages = map(pathlib.Path, sys.argv[1:])
    found = [path for name in LIBRARIES for path in packages.glob(f"nvidia/*/lib/{name}")]
    check(len(found) >= 3, "the package's libraries", [path.name for path in found])
    for path in found:
        genuine = names(path)
        missing = sorted(genuine - names(fake / path.name))
        check(len(genuine) > 100 and not missing, path.name, f"{len(genuine)} names, of which {missing} are missing")
    finish()


if __name__ == "__main__":
    main()
