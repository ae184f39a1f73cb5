#!/usr/bin/env python3
"""Looks over what scripts/release.sh made.

  packages.py SOURCE_FOLDER DIST

Each package is unpacked, and its tree is held against objects.py: every file needs no symbol newer than GLIBC_2.17,
and so on. Nothing of NVIDIA's is in any, all have the same programs and libraries, the wheel's record and size are
right, and the checksums and the bill of materials are of what is there.
"""

import base64
import configparser
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "genuine"))
import nothing_shipped  # noqa: E402

LARGEST_WHEEL = 10 * 1000 * 1000
wrong = []


def expect(condition, message):
    if not condition:
        wrong.append(message)


def unpacked_wheel(path, to):
    """The tree as pip would lay it below the environment's prefix."""
    expect(path.stat().st_size <= LARGEST_WHEEL, f"{path.name}: {path.stat().st_size} bytes, more than {LARGEST_WHEEL}")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        record = next(name for name in names if name.endswith(".dist-info/RECORD"))
        listed = dict(line.split(",", 1) for line in archive.read(record).decode().splitlines())
        expect(sorted(listed) == sorted(names), f"{path.name}: RECORD lists {sorted(set(listed) ^ set(names))} wrongly")
        missing = {"cuslice/__init__.py", "cuslice/py.typed", "cuslice/pytest_plugin.py"} - set(names)
        expect(not missing, f"{path.name}: has no {sorted(missing)}")
        points = configparser.ConfigParser()
        points.read_string(archive.read(record.replace("RECORD", "entry_points.txt")).decode())
        expect(
            dict(points["pytest11"]) == {"cuslice": "cuslice.pytest_plugin"},
            f"{path.name}: pytest doesn't find its plugin",
        )
        for name in names:
            content = archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            expect(
                name == record or listed.get(name) == f"sha256={digest},{len(content)}",
                f"{path.name}: {name} is not as recorded",
            )
            inner = re.sub(r"^[^/]+\.data/data/", "", re.sub(r"^[^/]+\.data/scripts/", "bin/", name))
            place = to / (inner if inner != name else f"site-packages/{name}")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            mode = archive.getinfo(name).external_attr >> 16 & 0o777
            place.chmod(mode)
            expect(
                (mode == 0o755) == (inner.startswith("bin/") or inner.endswith(("/watch", "/cuslice-demo"))),
                f"{path.name}: {name} has mode {mode:o}",
            )
    return to


def unpacked_tarball(path, to):
    with tarfile.open(path) as archive:
        archive.extractall(to)
    tops = list(to.iterdir())
    expect(len(tops) == 1, f"{path.name}: unpacks to {[top.name for top in tops]}, not to one folder")
    return tops[0]


def unpacked_deb(path, to):
    """Without dpkg: a .deb is an ar archive of two tarballs."""
    content, place = path.read_bytes(), 8
    expect(content.startswith(b"!<arch>\n"), f"{path.name}: is no .deb")
    to.mkdir()
    while place < len(content):
        name, size = content[place : place + 16].decode().strip().rstrip("/"), int(content[place + 48 : place + 58])
        if name.startswith(("data.", "control.")):
            inner = to / name
            inner.write_bytes(content[place + 60 : place + 60 + size])
            with tarfile.open(inner) as archive:
                archive.extractall(to / name.split(".")[0])
            inner.unlink()
        place += 60 + size + size % 2
    scripts = {"preinst", "postinst", "prerm", "postrm", "triggers", "shlibs"} & {
        inner.name for inner in (to / "control").iterdir()
    }
    # CPack gives a package with libraries the trigger of ldconfig, which finds nothing of ours.
    expect(not scripts - {"triggers", "shlibs"}, f"{path.name}: runs {sorted(scripts)} when it is installed or removed")
    outside = [inner for inner in (to / "data").iterdir() if inner.name != "usr"]
    expect(not outside, f"{path.name}: installs outside of /usr: {outside}")
    # A folder that ldconfig scans, and so everybody's.
    shared = [inner.name for inner in (to / "data/usr/lib").iterdir() if inner.name != "cuslice"]
    expect(not shared, f"{path.name}: has {shared} in /usr/lib")
    return to / "data/usr"


def look_at(source, package, tree):
    done = subprocess.run(
        [sys.executable, source / "tests/checks/objects.py", source, "--tree", tree], text=True, stdout=subprocess.PIPE
    )
    expect(done.returncode == 0, f"{package.name}: {done.stdout.strip()}")
    nothing_shipped.look(package.name, nothing_shipped.files(tree), wrong)
    for needed in (
        "bin/cuslice",
        "lib/cuslice/fake/profiles/t4.toml",
        "include/cuslice.h",
        "share/doc/cuslice/LICENSE",
        "lib/cuslice/python/plot.py",
        "lib/cuslice/python/recordings.py",
        "share/doc/cuslice/THIRD-PARTY.txt",
    ):
        expect((tree / needed).is_file(), f"{package.name}: has no {needed}")
    return {
        path.relative_to(tree): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in nothing_shipped.files(tree)
        if "site-packages" not in path.parts
        and not (path.name in ("libcuda.so", "libnvidia-ml.so") and path.parent.name == "fake")
    }


def main():
    source, dist = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    packages = {ending: sorted(dist.glob(f"*{ending}")) for ending in (".whl", ".tar.gz", ".deb", ".spdx.json")}
    for ending, paths in packages.items():
        expect(len(paths) == 1, f"{dist}: {len(paths)} files end with {ending}, not one")
    if wrong:
        sys.exit("\n".join(wrong))
    wheel, tarball, deb, bill = (paths[0] for paths in packages.values())

    sums = dict(reversed(line.split("  ", 1)) for line in (dist / "SHA256SUMS").read_text().splitlines())
    there = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in dist.iterdir() if path.name != "SHA256SUMS"
    }
    expect(sums == there, f"SHA256SUMS: {sorted(set(sums.items()) ^ set(there.items()))}")

    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        trees = {
            package: unpack(package, folder / package.suffix[1:])
            for package, unpack in ((wheel, unpacked_wheel), (tarball, unpacked_tarball), (deb, unpacked_deb))
        }
        contents = {package: look_at(source, package, tree) for package, tree in trees.items()}
        for package in (wheel, deb):
            expect(
                contents[package] == contents[tarball],
                f"{package.name}: its files differ from the tarball's: "
                f"{sorted({str(name) for name, _ in set(contents[package].items()) ^ set(contents[tarball].items())})}",
            )
        document = json.loads(bill.read_text())
        billed = {
            pathlib.Path(entry["fileName"]): entry["checksums"][1]["checksumValue"] for entry in document["files"]
        }
        expect(billed == contents[tarball], f"{bill.name}: lists other files than the tarball has")
        linked = {
            entry["relatedSpdxElement"]
            for entry in document["relationships"]
            if entry["relationshipType"] == "STATIC_LINK"
        }
        named = {
            entry["SPDXID"]
            for entry in document["packages"]
            if entry["licenseDeclared"] != "NOASSERTION" and entry["versionInfo"]
        }
        expect(
            len(linked) >= 3 and linked <= named,
            f"{bill.name}: what is linked in is {sorted(linked)}, with licences {sorted(named)}",
        )
        files = sum(len(nothing_shipped.files(tree)) for tree in trees.values())
    finally:
        shutil.rmtree(folder)
    print("\n".join(wrong) or f"{len(trees)} packages with {files} files, all as they should be")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
