#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks over what scripts/release.sh made.

  packages.py SOURCE_FOLDER DIST

Each package is unpacked, and its tree is held against objects.py: every file needs no symbol newer than GLIBC_2.17,
and so on. What is compiled is for the processor that the package is named after. Nothing of NVIDIA's is in any, all
packages for a processor have the same files, and those for another the same but for what is compiled. The wheel's
record and size are right, the checksums and the bills of materials are of what is there, and PAGE names the newest
symbol that each file needs. The source distribution has what a build needs, and the chart the release's version.
"""

import base64
import configparser
import email
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

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "lab/genuine"))
import nothing_shipped  # noqa: E402
import objects  # noqa: E402

PAGE = "docs/results/tests/installations.md"
LARGEST_WHEEL = 10 * 1000 * 1000
# By processor: the end of its packages' names, Debian's word for it, its number in an ELF file, and
# the largest page that its kernels may have, in bytes.
MACHINES = {"x86_64": ("amd64", 62, 4096), "aarch64": ("arm64", 183, 65536)}
# Offsets in an ELF file of 64 bits: of the program headers' first byte, of the size of one, and of their number.
PROGRAM_HEADERS = ((32, 8), (54, 2), (56, 2))
# Names of a release's other files, the version being VERSION.
SOURCES, CHART = "cuslice-VERSION.tar.gz", "cuslice-VERSION.tgz"
ALSO = ("cuslice-gpu-check-VERSION.tar.gz", *(f"cuslice-VERSION-oci-{machine}.tar" for machine in MACHINES))
wrong = []
# The paths of programs; all else is read, or mapped.
PROGRAMS = r"^bin/|/(?:watch|timekeeper|cuslice-demo|nvidia-smi|samples/towers_\w+)$"


def expect(condition, message):
    if not condition:
        wrong.append(message)


def endings(machine):
    """What the names of a processor's packages end with: wheel, tarball, .deb, bill of materials."""
    ends = (f"_{machine}.whl", f"-linux-{machine}.tar.gz", f"_{MACHINES[machine][0]}.deb")
    return (*ends, f"-linux-{machine}.spdx.json")


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
        tags = re.findall(r"^Tag: py3-none-(\S+)$", archive.read(record.replace("RECORD", "WHEEL")).decode(), re.M)
        expect(".".join(tags) == path.stem.split("-")[-1], f"{path.name}: is marked as for {tags}")
        points = configparser.ConfigParser()
        points.read_string(archive.read(record.replace("RECORD", "entry_points.txt")).decode())
        expect(
            dict(points["pytest11"]) == {"cuslice": "cuslice.pytest_plugin"},
            f"{path.name}: pytest doesn't find its plugin",
        )
        look_at_metadata(path, archive.read(record.replace("RECORD", "METADATA")).decode())
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
                (mode == 0o755) == bool(re.search(PROGRAMS, inner)),
                f"{path.name}: {name} has mode {mode:o}",
            )
    return to


def look_at_metadata(path, text):
    """An index can show the description, and pip knows the extras."""
    metadata = email.message_from_string(text)
    description = metadata.get_payload()
    expect(len(description) > 1000, f"{path.name}: its description has {len(description)} characters")
    # Brackets in code are no links.
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", description, flags=re.M | re.S)
    targets = re.findall(r"\]\(([^)]*)\)|(?:src|href|srcset)=[\"']([^\"']*)", prose)
    relative = [target for pair in targets for target in pair if target and not re.match(r"https?://", target)]
    expect(not relative, f"{path.name}: links of the description lead nowhere in an index: {relative}")
    expect(
        metadata.get_all("Provides-Extra") == ["plot"],
        f"{path.name}: has the extras {metadata.get_all('Provides-Extra')}",
    )
    expect(metadata["Version"] == path.name.split("-")[1], f"{path.name}: is of version {metadata['Version']}")


def look_at_sources(path, folder):
    """The source distribution has all that pip builds with, and nothing that was built."""
    tree = unpacked_tarball(path, folder)
    for needed in (
        "pyproject.toml",
        "PKG-INFO",
        "CMakeLists.txt",
        "LICENSE",
        "README.md",
        "scripts/packaging/backend.py",
    ):
        expect((tree / needed).is_file(), f"{path.name}: has no {needed}")
    strangers = {"build", "dist", "lab", "tests", ".git"} & {inner.name for inner in tree.iterdir()}
    expect(not strangers, f"{path.name}: has {sorted(strangers)}")
    nothing_shipped.look(path.name, nothing_shipped.files(tree), wrong)


def look_at_chart(path, folder):
    """The chart is of the version in its name, with the image of that."""
    tree = unpacked_tarball(path, folder)
    version = path.stem.split("-")[1]
    stated = re.findall(r'^(version|appVersion): "(.*)"$', (tree / "Chart.yaml").read_text(), re.M)
    expect(stated == [("version", version), ("appVersion", version)], f"{path.name}: says that it is of {stated}")


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
    marked = re.findall(r"^Architecture: (.*)$", (to / "control/control").read_text(), re.M)
    expect(marked == [path.stem.split("_")[-1]], f"{path.name}: is marked as for {marked}")
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


def look_at_machine(package, tree, machine):
    """Whether what is compiled is for a processor, and could be mapped on each of its kernels."""
    number, page = MACHINES[machine][1:]
    for path in nothing_shipped.files(tree):
        content = path.read_bytes()
        if not content.startswith(b"\x7fELF"):
            continue
        expect(content[18:20] == number.to_bytes(2, "little"), f"{package.name}: {path.name} is not for {machine}")
        begin, size, count = (int.from_bytes(content[at : at + width], "little") for at, width in PROGRAM_HEADERS)
        loads = [content[at : at + size] for at in range(begin, begin + size * count, size)]
        aligned = [int.from_bytes(load[48:56], "little") for load in loads if load[:4] == b"\1\0\0\0"]
        expect(
            aligned and min(aligned) >= page,
            f"{package.name}: {path.name}: parts lie at multiples of {sorted(aligned)}, not of pages of {page}",
        )


def newest_symbols(tree):
    """Of each compiled file, the newest version of the C library's symbols that it needs, as PAGE has it."""
    newest = {path: max(objects.versions(path), default=None) for path in objects.elf_files(tree)}
    return {
        str(path.relative_to(tree)): ".".join(map(str, version)) if version else "none"
        for path, version in newest.items()
    }


def look_at_symbols(page, machine, tree):
    """Whether the page's table has each file with the version that it needs."""
    column = list(MACHINES).index(machine) + 1
    rows = re.findall(r"^\| `((?:bin|lib)/\S+)` \| (\S+) \| (\S+) \|$", page, re.M)
    documented = {row[0]: row[column] for row in rows}
    for name in sorted(set(documented) | set(found := newest_symbols(tree))):
        said, is_so = documented.get(name, "no row"), found.get(name, "no file")
        expect(said == is_so, f"{PAGE}: {name} on {machine}: {said}, and it is {is_so}")


def look_at(source, package, tree, machine):
    look_at_machine(package, tree, machine)
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
        *(f"lib/cuslice/python/{name}.py" for name in ("plot", "plot_page", "plot_text", "plot_vega", "gpu_names")),
        *(f"lib/cuslice/python/plot_page{name}" for name in (".css", ".js", "_chart.js", "_words.js")),
        *(f"lib/cuslice/python/{name}.py" for name in ("plot_stacks", "recordings", "recording_blocks")),
        *(f"lib/cuslice/python/{name}.py" for name in ("recording_compact", "recording_csv", "recording_moments")),
        *(f"lib/cuslice/python/{name}.py" for name in ("recording_rows", "recording_stacks")),
        "share/doc/cuslice/THIRD-PARTY.txt",
    ):
        expect((tree / needed).is_file(), f"{package.name}: has no {needed}")
    return {
        path.relative_to(tree): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in nothing_shipped.files(tree)
        if "site-packages" not in path.parts
        and not (path.name in ("libcuda.so", "libnvidia-ml.so") and path.parent.name == "fake")
    }


def look_at_processor(source, machine, packages, folder):
    """The packages of one processor: their common files with their checksums, and how many files there are in all."""
    wheel, tarball, deb, bill = packages
    folder.mkdir()
    trees = {
        package: unpack(package, folder / package.suffix[1:])
        for package, unpack in ((wheel, unpacked_wheel), (tarball, unpacked_tarball), (deb, unpacked_deb))
    }
    contents = {package: look_at(source, package, tree, machine) for package, tree in trees.items()}
    for package in (wheel, deb):
        expect(
            contents[package] == contents[tarball],
            f"{package.name}: its files differ from the tarball's: "
            f"{sorted({str(name) for name, _ in set(contents[package].items()) ^ set(contents[tarball].items())})}",
        )
    look_at_symbols((source / PAGE).read_text(), machine, trees[tarball])
    document = json.loads(bill.read_text())
    billed = {pathlib.Path(entry["fileName"]): entry["checksums"][1]["checksumValue"] for entry in document["files"]}
    expect(billed == contents[tarball], f"{bill.name}: lists other files than the tarball has")
    linked = {
        entry["relatedSpdxElement"] for entry in document["relationships"] if entry["relationshipType"] == "STATIC_LINK"
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
    compiled = {
        path.relative_to(trees[tarball])
        for path in nothing_shipped.files(trees[tarball])
        if path.read_bytes().startswith(b"\x7fELF")
    }
    common = {name: None if name in compiled else digest for name, digest in contents[tarball].items()}
    # Parts of the compiler's library are linked in, other ones by processor.
    common.pop(pathlib.Path("share/doc/cuslice/THIRD-PARTY.txt"), None)
    return common, sum(len(nothing_shipped.files(tree)) for tree in trees.values())


def main():
    source, dist = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    released = {}
    for machine in MACHINES:
        packages = [sorted(dist.glob(f"cuslice*{ending}")) for ending in endings(machine)]
        if any(packages):
            expect(all(len(paths) == 1 for paths in packages), f"{dist}: {machine}: not one of each: {packages}")
            released[machine] = [paths[0] for paths in packages if paths]
    expect(released, f"{dist}: there are no packages")
    if wrong:
        sys.exit("\n".join(wrong))

    sums = dict(reversed(line.split("  ", 1)) for line in (dist / "SHA256SUMS").read_text().splitlines())
    there = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in dist.iterdir() if path.name != "SHA256SUMS"
    }
    expect(sums == there, f"SHA256SUMS: {sorted(set(sums.items()) ^ set(there.items()))}")
    version = next(iter(released.values()))[0].name.split("-")[1]
    sources, chart, *also = (dist / name.replace("VERSION", version) for name in (SOURCES, CHART, *ALSO))
    expect(sources.exists() and chart.exists(), f"{dist}: {sources.name} and {chart.name} aren't both there")
    known = {path.name for packages in [*released.values(), [sources, chart, *also]] for path in packages}
    strangers = set(there) - known
    expect(not strangers, f"{dist}: {sorted(strangers)} belong to no release of {version}")
    if wrong:
        sys.exit("\n".join(wrong))

    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        look_at_sources(sources, folder / "sources")
        look_at_chart(chart, folder / "chart")
        looked = {
            machine: look_at_processor(source, machine, packages, folder / machine)
            for machine, packages in released.items()
        }
    finally:
        shutil.rmtree(folder)
    commons = [common for common, _ in looked.values()]
    for machine, common in zip(looked, commons):
        differing = {str(name) for name, _ in set(common.items()) ^ set(commons[0].items())}
        expect(not differing, f"{machine}: has other files than {next(iter(looked))}: {sorted(differing)}")
    files = sum(number for _, number in looked.values())
    packed = f"{3 * len(looked)} packages for {' and '.join(looked)} with {files} files"
    print("\n".join(wrong) or f"{packed}, all as they should be")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
