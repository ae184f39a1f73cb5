#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds what of others is in a build, and writes it down: a bill of materials (SPDX 2.3, JSON) and the licences' texts.

    parts.py BUILD_FOLDER TREE SBOM NOTICES

Nothing here is typed in but where to look. Which headers were compiled in, ninja's record of dependencies knows;
their versions and licences are what the headers themselves say; and what zig links into a file shows in the files of
TREE.
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass, field

# Where a library says which version it is: the macros of major, minor and patch.
VERSION_MACROS = (
    ("CLI11_VERSION_{}", ("MAJOR", "MINOR", "PATCH")),
    ("NLOHMANN_JSON_VERSION_{}", ("MAJOR", "MINOR", "PATCH")),
    ("TOML_LIB_{}", ("MAJOR", "MINOR", "PATCH")),
)
# Texts that only a file with this part of zig's runtime has, and the part's folder in zig's lib/.
ZIG_PARTS = {"libcxx": b"St3__1", "libcxxabi": b"libc++abi: ", "libunwind": b"libunwind: "}


# Names of libraries whose headers lie in a folder of another name.
NAMES = {"CLI": "CLI11", "nlohmann": "nlohmann-json"}


@dataclass
class Part:
    name: str
    version: str
    licence: str  # an SPDX expression
    relation: str  # of the part to cuslice, in SPDX's words
    copyrights: list = field(default_factory=list)
    text: str = ""  # the licence's
    comment: str = ""


def cache(build, name):
    found = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return found[1] if found else ""


def used_headers(build):
    """Every file that a compiled file of the build includes, from outside of the sources."""
    said = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, text=True, stdout=subprocess.PIPE).stdout
    paths = {pathlib.Path(line.strip()) for line in said.splitlines() if line.startswith("    ")}
    return {path if path.is_absolute() else build / path for path in paths}


def read(path):
    return path.read_text(errors="replace")


def version_of(texts):
    for pattern, parts in VERSION_MACROS:
        found = [re.search(rf"#\s*define\s+{pattern.format(part)}\s+(\d+)", texts) for part in parts]
        if all(found):
            return ".".join(match[1] for match in found)
    raise SystemExit("parts: a library's headers don't say which version it is")


def copyrights_of(texts):
    found = set(re.findall(r"(Copyright \(c\) [^\n]*\S|SPDX-FileCopyrightText: [^\n]*\S)", texts))
    return sorted(line.rstrip(" *|") for line in found)


def licence_text(headers):
    """The text that the package which the headers are from has, a distribution's or the Python index's."""
    header = min(headers).resolve()
    owner = (
        subprocess.run(["dpkg-query", "-S", header], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if pathlib.Path("/usr/bin/dpkg-query").exists()
        else None
    )
    if owner and owner.returncode == 0:
        return read(pathlib.Path("/usr/share/doc", owner.stdout.split(":")[0], "copyright"))
    for folder in list(header.parents)[:5]:
        for pattern in ("LICENSE*", "COPYING*", "*.dist-info/licenses/**/LICENSE*"):
            for path in sorted(folder.glob(pattern)):
                if path.is_file():
                    return read(path)
    raise SystemExit(f"parts: no licence text lies near {header}")


def header_libraries(build):
    """One part for each folder of build/headers of which something was compiled in."""
    used, parts = used_headers(build), []
    for folder in sorted((build / "headers").iterdir()):
        # By the link's name or by what it leads to: compilers differ.
        headers = [path for path in used if {folder, folder.resolve()} & set(path.parents)]
        if not headers:
            continue
        texts = "\n".join(read(path) for path in headers)
        licences = sorted(set(re.findall(r"SPDX-License-Identifier: ([\w.+-]+(?: (?:AND|OR|WITH) [\w.+-]+)*)", texts)))
        if not licences:
            raise SystemExit(f"parts: {folder.name}: its headers don't name their licence")
        parts.append(
            Part(
                NAMES.get(folder.name, folder.name),
                version_of(texts),
                " AND ".join(licences),
                "STATIC_LINK",
                copyrights_of(texts),
                licence_text(headers),
                f"from its headers alone; {len(headers)} of them are compiled in",
            )
        )
    cuda = [path for path in used if "nvidia" in path.parts or path.name in ("cuda.h", "nvml.h")]
    for path in cuda:
        number = re.search(r"^#define CUDA_VERSION (\d+)", read(path), re.M)
        if number:
            version = f"{int(number[1]) // 1000}.{int(number[1]) % 1000 // 10}"
            parts.append(
                Part(
                    "CUDA headers",
                    version,
                    "NOASSERTION",
                    "BUILD_TOOL_OF",
                    comment="declarations that the build reads; nothing of them is contained",
                )
            )
    return parts


def zig_parts(zig, glibc, files):
    """What zig links into a file by itself: its C++ library and what that needs."""
    library = zig.parent / "lib"
    version = subprocess.run([zig, "version"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    number = re.search(r"define _LIBCPP_VERSION (\d+)", read(library / "libcxx/include/__config"))[1]
    llvm = ".".join(str(int(part)) for part in (number[:-4], number[-4:-2], number[-2:]))
    parts = [Part("zig", version, "MIT", "BUILD_TOOL_OF", comment="compiler and linker")]
    licences = sorted(zig.parent.parent.glob("ziglang-*.dist-info/licenses/ziglang"))
    if not licences:
        licences = [zig.parent]

    def text(inner):
        return next((read(folder / inner) for folder in licences if (folder / inner).is_file()), "")

    contents = [path.read_bytes() for path in files]
    found = [name for name, mark in ZIG_PARTS.items() if any(mark in content for content in contents)]
    for name in found:
        parts.append(
            Part(
                f"LLVM {name}",
                llvm,
                "Apache-2.0 WITH LLVM-exception",
                "STATIC_LINK",
                text=text(f"lib/{name}/LICENSE.TXT"),
            )
        )
    parts.append(
        Part(
            "zig compiler_rt",
            version,
            "MIT",
            "STATIC_LINK",
            text=text("LICENSE"),
            comment="what code of the compiler calls where the processor has no instruction",
        )
    )
    parts.append(
        Part(
            "GNU C library, startup objects",
            glibc,
            "LGPL-2.1-or-later WITH GCC-exception-2.0",
            "STATIC_LINK",
            comment="crt1 of programs, whose licence lets it be linked into anything; the library is the system's",
        )
    )
    return parts


def elf_files(tree):
    return [
        path
        for path in sorted(tree.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"
    ]


def spdx(version, parts, tree):
    def identifier(name):
        return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", name)

    when = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    own = identifier("cuslice")
    packages = [
        {
            "name": "cuslice",
            "SPDXID": own,
            "versionInfo": version,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": True,
            "licenseInfoFromFiles": ["NOASSERTION"],
            "licenseConcluded": "Apache-2.0",
            "licenseDeclared": "Apache-2.0",
            "copyrightText": "NOASSERTION",
        }
    ]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": own}]
    for part in parts:
        package = {
            "name": part.name,
            "SPDXID": identifier(part.name),
            "versionInfo": part.version,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION",
            "licenseDeclared": part.licence,
            "copyrightText": "\n".join(part.copyrights) or "NOASSERTION",
        }
        if part.comment:
            package["comment"] = part.comment
        packages.append(package)
        one, other = (own, identifier(part.name)) if part.relation == "STATIC_LINK" else (identifier(part.name), own)
        relations.append({"spdxElementId": one, "relationshipType": part.relation, "relatedSpdxElement": other})
    files = []
    for path in sorted(tree.rglob("*")):
        if path.is_file() and not path.is_symlink():
            name = str(path.relative_to(tree))
            content = path.read_bytes()
            files.append(
                {
                    "fileName": f"./{name}",
                    "SPDXID": identifier(f"File-{name}"),
                    "licenseConcluded": "NOASSERTION",
                    "licenseInfoInFiles": ["NOASSERTION"],
                    "copyrightText": "NOASSERTION",
                    "checksums": [
                        {"algorithm": algorithm.upper(), "checksumValue": hashlib.new(algorithm, content).hexdigest()}
                        for algorithm in ("sha1", "sha256")
                    ],
                }
            )
            relations.append(
                {"spdxElementId": own, "relationshipType": "CONTAINS", "relatedSpdxElement": files[-1]["SPDXID"]}
            )
    # SPDX's own sum over a package: of its files' sums, sorted.
    sums = "".join(sorted(entry["checksums"][0]["checksumValue"] for entry in files))
    packages[0]["packageVerificationCode"] = {"packageVerificationCodeValue": hashlib.sha1(sums.encode()).hexdigest()}
    digest = hashlib.sha256(json.dumps([packages, files]).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"cuslice-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/cuslice-{version}-{digest[:32]}",
        "creationInfo": {"created": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: cuslice-scripts-release"]},
        "packages": packages,
        "files": files,
        "relationships": relations,
    }


def notices(parts):
    said = ["What cuslice's programs and libraries contain of others, and under which licences."]
    for part in parts:
        if part.relation == "STATIC_LINK":
            said.append(
                "\n".join(
                    ("=" * 78, f"{part.name} {part.version}: {part.licence}", *part.copyrights, "", part.text.strip())
                ).strip()
            )
    return "\n\n".join(said) + "\n"


def main():
    build, tree, sbom, out = map(pathlib.Path, sys.argv[1:])
    build = build.absolute()
    parts = header_libraries(build)
    if cache(build, "CUSLICE_ZIG"):
        parts += zig_parts(pathlib.Path(cache(build, "CUSLICE_ZIG")), cache(build, "CUSLICE_GLIBC"), elf_files(tree))
    out.write_text(notices(parts))
    sbom.write_text(json.dumps(spdx(cache(build, "CMAKE_PROJECT_VERSION"), parts, tree), indent=1) + "\n")
    print(*(f"{part.name} {part.version} ({part.licence})" for part in parts), sep="\n")


if __name__ == "__main__":
    main()
