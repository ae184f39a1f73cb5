#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs the Helm chart of integrations/helm/cuslice, as `helm package` does:  chart.py OUT_FOLDER

In the sources the chart is of no version, and takes the image `latest`; here it becomes one of the project's version,
with the image of that. The same chart makes the same bytes: SOURCE_DATE_EPOCH is the time of each member.
"""

import gzip
import io
import os
import pathlib
import re
import sys
import tarfile

import changelog

CHART = changelog.ROOT / "integrations/helm/cuslice"


def filled(text, version):
    """Chart.yaml with the version that it is packed with."""
    for key in ("version", "appVersion"):
        text, count = re.subn(rf"^{key}: .*$", f'{key}: "{version}"', text, flags=re.M)
        if count != 1:
            sys.exit(f"chart: Chart.yaml has {count} lines of {key}, not one")
    return text


def pack(out, version):
    """Writes the archive and returns its path."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"cuslice-{version}.tgz"
    when = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, when) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for member in sorted(one for one in CHART.rglob("*") if one.is_file()):
                content = member.read_bytes()
                if member.name == "Chart.yaml":
                    content = filled(content.decode(), version).encode()
                entry = tarfile.TarInfo(f"cuslice/{member.relative_to(CHART)}")
                entry.size, entry.mtime, entry.mode = len(content), when, 0o644
                archive.addfile(entry, io.BytesIO(content))
    return path


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("chart: a folder is needed", file=sys.stderr)
        sys.exit(64)
    print(pack(pathlib.Path(sys.argv[1]), changelog.version()))
