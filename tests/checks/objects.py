#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at the objects that get into other people's processes, and at those that lend their names.

  objects.py SOURCE_FOLDER LIBRARY_FOLDER
  objects.py SOURCE_FOLDER --tree TREE    an installation that is released: more holds there, and of every file

- The preloaded objects need no symbol version newer than GLIBC_2.17 (an unmet one ends every program that is started) and nothing
  but the C library and each other.
- They carry the names they should, and the first finds the second by DT_RPATH (LD_LIBRARY_PATH would win over DT_RUNPATH).
- The library exports what the lists say, dlopen, dlmopen, its mark, and what include/cuslice.h declares, and nothing else.
- The stub for /etc/ld.so.preload has no name, exports dlopen alone, and the loader has nothing to run in it.
- In a tree that is released every program and library needs no symbol version newer than that, and nothing but the C library's
  parts and what lies beside it: no C++ library, whichever compiler it was.
"""
import argparse
import pathlib
import re
import subprocess
import sys

NEWEST = (2, 17)
# Libraries that make up the C library 2.17. Newer ones have all of it in libc.so.6, and the others as empty names.
C_LIBRARY = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "libm.so.6", "librt.so.1", "ld-linux-x86-64.so.2",
             "ld-linux-aarch64.so.1"}
wrong = []


def expect(condition, message):
    if not condition:
        wrong.append(message)


def run(*command):
    return subprocess.check_output([str(part) for part in command], text=True)


def dynamic(path):
    """The dynamic section as {tag: [values]}."""
    tags = {}
    for tag, value in re.findall(r"\((NEEDED|SONAME|RPATH|RUNPATH)\).*\[(.*)\]", run("readelf", "-d", "-W", path)):
        tags.setdefault(tag, []).append(value)
    return tags


def versions(path):
    return {tuple(int(n) for n in v.split(".")) for v in re.findall(r"Name: GLIBC_([0-9.]+)", run("readelf", "-V", "-W", path))}


def relocated_pages(path):
    """How many pages the loader writes to: each is a page of every program that the library is loaded into."""
    rows = re.findall(r"^([0-9a-f]{12,16}) .*R_(?:X86_64|AARCH64)_", run("readelf", "-r", "-W", path), re.MULTILINE)
    return len({int(offset, 16) >> 12 for offset in rows})


def exports(path):
    # A local one is no export, though GNU's linker puts a hidden _end among the dynamic symbols of aarch64.
    lines = subprocess.run(["nm", "-D", "--defined-only", "--extern-only", path], check=True, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    # Some linkers list the version nodes themselves, as absolute symbols.
    return {line.split()[-1].split("@")[0] for line in lines.stdout.splitlines() if line.split()[-2] != "A"}


def needed_names(path):
    return {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--undefined-only", path).splitlines()}


def listed(path, pattern):
    return set(re.findall(pattern, path.read_text(), re.M))


def elf_files(tree):
    files = [path for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink()]
    return [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]


def check_tree(tree):
    """What must hold of every compiled file of a release."""
    files = elf_files(tree)
    own = {path.name for path in files} | {"libcuda.so.1"}
    # Not ours to bring: a program has one of the two runtimes.
    runtimes = {"libcudart.so.12", "libcudart.so.13"}
    expect(len(files) >= 13, f"{tree}: {len(files)} programs and libraries; this check is blind")
    for path in files:
        newer = sorted(v for v in versions(path) if v > NEWEST)
        expect(not newer, f"{path.name}: needs GLIBC_{newer}, newer than {NEWEST}")
        foreign = set(dynamic(path).get("NEEDED", [])) - C_LIBRARY - own - runtimes
        expect(not foreign, f"{path.name}: needs {sorted(foreign)}")
    return len(files)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=pathlib.Path)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("libraries", type=pathlib.Path, nargs="?")
    where.add_argument("--tree", type=pathlib.Path)
    words = parser.parse_args()
    source, libraries = words.source, words.libraries or words.tree / "lib/cuslice"
    files = check_tree(words.tree) if words.tree else 0
    library, management, driver_facade = (libraries / name for name in ("libcuslice.so", "libnvidia-ml.so.1", "libcuda.so"))

    # Newer headers give these other names, which older C libraries lack: seen only where one of those headers is.
    for path in (library, libraries / "libcuslice-runtime.so", libraries / "libcuslice-redirect.so",
                 libraries / "libcuslice-audit.so"):
        readers = {name for name in needed_names(path) if re.search(r"strto(u?l|u?ll|u?imax)$|scanf$", name)}
        expect(not readers, f"{path.name}: reads numbers by {sorted(readers)}; config/number.h does without")

    for path in (library, management, driver_facade):
        newer = sorted(v for v in versions(path) if v > NEWEST)
        # A facade has nothing that could need one.
        expect(bool(versions(path)) == (path == library), f"{path.name}: needs {versions(path) or 'no'} symbol versions")
        expect(not newer, f"{path.name}: needs GLIBC_{newer}, newer than {NEWEST}")
        if path != driver_facade:
            expect("RUNPATH" not in dynamic(path), f"{path.name}: has a RUNPATH")

    tags = dynamic(library)
    expect(tags["SONAME"] == ["libcuda.so.1"], f"libcuslice.so: SONAME {tags['SONAME']}")
    expect(tags.get("RPATH") == ["$ORIGIN"], f"libcuslice.so: RPATH {tags.get('RPATH')}")
    needed = {"libnvidia-ml.so.1", "libc.so.6"}
    expect(set(tags["NEEDED"]) == needed, f"libcuslice.so: needs {tags['NEEDED']}, not {sorted(needed)}")
    for facade in (management, driver_facade):
        tags = dynamic(facade)
        expect(tags["SONAME"] == [facade.name], f"facade {facade.name}: SONAME {tags['SONAME']}")
        expect("libcuda.so.1" in tags["NEEDED"], f"facade {facade.name}: does not need libcuslice.so (as libcuda.so.1)")
        expect(exports(facade) == {"cuslice_marker"}, f"facade {facade.name}: has functions of its own")
    # By its own folder it shows where the loader's default ones begin.
    expect(dynamic(driver_facade).get("RUNPATH") == ["$ORIGIN"], f"libcuda.so: RUNPATH {dynamic(driver_facade).get('RUNPATH')}")

    # The stub is in every program of a machine: no name, no thread-local memory, nothing that the loader runs at its start, and
    # nothing that it would have to look for.
    stub = libraries / "libcuslice-preload.so"
    tags, sections = dynamic(stub), run("readelf", "-S", "-l", "-W", stub)
    # By its own folder it finds where the loader's default ones begin, as the facade does.
    expect(tags == {"NEEDED": ["libc.so.6"], "RUNPATH": ["$ORIGIN"]}, f"{stub.name}: {tags}")
    expect(exports(stub) == {"dlopen"}, f"{stub.name}: exports {sorted(exports(stub))}")
    # zig's clang, which releases are built with, makes a sixth more of it than GCC.
    most = 28 if words.tree else 24
    expect(stub.stat().st_size <= most * 1024, f"{stub.name}: {stub.stat().st_size} bytes, more than {most} KiB")
    expect(not re.search(r"\.tdata|\.tbss|^ *TLS ", sections, re.M), f"{stub.name}: has thread-local memory")
    expect(not re.search(r"\.init|\.ctors", sections), f"{stub.name}: has a constructor")
    expect(max(versions(stub)) <= NEWEST, f"{stub.name}: needs GLIBC_{versions(stub)}")
    weak = {"cuInit", "nvmlInit_v2", "cuslice_marker", "__libc_stack_end"}
    needs = {line.split()[-1].split("@")[0]: line.split()[-2] for line in run("nm", "-D", "--undefined-only", stub).splitlines()}
    expect({name for name, kind in needs.items() if kind in "wv"} == weak and set(needs) - weak == {"dl_iterate_phdr"},
           f"{stub.name}: needs {needs}")

    # They stand in every program that is started with the option, and lend nobody a name.
    for name, has in (("redirect", {"cuslice_redirect_first_call"}), ("audit", {"la_version", "la_objopen"})):
        path = libraries / f"libcuslice-{name}.so"
        expect(dynamic(path).get("NEEDED") == ["libc.so.6"], f"{path.name}: needs {dynamic(path).get('NEEDED')}")
        expect("SONAME" not in dynamic(path) and exports(path) == has, f"{path.name}: exports {sorted(exports(path))}")
        expect(max(versions(path)) <= NEWEST, f"{path.name}: needs GLIBC_{versions(path)}")

    # The runtime shim and its facades: their names are the runtime's, and no SONAME is.
    runtime = source / "shim/runtime/functions.def"
    has, other = r", (?:same|form)", r", \w+"
    of = {v: listed(runtime, r"^CUSLICE_RUNTIME\((\w+)" + columns + r"\)$")
          for v, columns in (("11", has + other + other), ("12", other + has + other), ("13", other + other + has))}
    sonames = {"11": "libcudart.so.11.0", "12": "libcudart.so.12", "13": "libcudart.so.13"}
    shim = libraries / "libcuslice-runtime.so"
    wanted = set().union(*of.values(), (f"cuslice_runtime_{v}" for v in of))
    expect(exports(shim) == wanted, f"{shim.name}: exports {sorted(exports(shim) ^ wanted)}")
    # A caller that names no version finds each of them, and one alone.
    named = [line.split()[-1].split("@@")[0] for line in run("nm", "-D", "--defined-only", shim).splitlines() if "@@" in line]
    expect(sorted(named) == sorted(set().union(*of.values())), f"{shim.name}: names without a default version, or with two")
    for path in (shim, *(libraries / f"libcuslice-cudart{v}.so" for v in of)):
        newer = sorted(v for v in versions(path) if v > NEWEST)
        expect(not newer, f"{path.name}: needs GLIBC_{newer}, newer than {NEWEST}")
        names = dynamic(path).get("SONAME", [])
        expect(not [name for name in names if name.startswith("libcu") and not name.startswith("libcuslice")],
               f"{path.name}: SONAME {names}")
    for v, names in of.items():
        front = libraries / f"libcuslice-cudart{v}.so"
        expect(exports(front) == names, f"{front.name}: exports {sorted(exports(front) ^ names)}")
        expect(sonames[v] in dynamic(front)["NEEDED"], f"{front.name}: does not need the runtime")

    functions = source / "virtual_gpu/driver"
    driver = listed(functions / "functions.def", r"^CUSLICE_FUNCTION\((\w+),")
    management = listed(functions / "nvml_functions.def", r"^CUSLICE_NVML_FUNCTION\((\w+),")
    expect(len(driver) >= 674, f"functions.def: {len(driver)} functions, fewer than CUDA 13.0 has")
    should = driver | management | {"dlopen", "dlmopen", "pthread_cancel", "pthread_setcanceltype", "cuslice_enter_1",
                                    "cuslice_get_slice", "cuslice_marker", "cuslice_memory_stats", "cuslice_set_slice",
                                    "cuslice_split_view"}
    there = exports(library)
    expect(not should - there, f"libcuslice.so: does not export {sorted(should - there)[:10]}")
    expect(not there - should, f"libcuslice.so: exports too much: {sorted(there - should)[:10]}")
    pages = relocated_pages(library)
    expect(0 < pages <= 20, f"libcuslice.so: the loader writes addresses into {pages} pages, of 20 at most")
    fake = exports(libraries / "fake/libcuda.so.1")
    expect(not driver - fake, f"fake libcuda.so.1: does not export {sorted(driver - fake)[:10]}")
    expect("cuslice_marker" not in fake, "fake libcuda.so.1: passes itself off as cuslice")
    replaced = [*sonames.values(), *(f"lib{name}.so.{v}" for v in of for name in ("cublas", "cublasLt")), "libcudnn.so.9"]
    for name in ("libcuda.so.1", "libnvidia-ml.so.1", *replaced):
        expect(dynamic(libraries / "fake" / name)["SONAME"] == [name], f"fake {name}: carries another name")
    for name in replaced:
        needed = dynamic(libraries / "fake" / name).get("NEEDED", [])
        expect(not [one for one in needed if "stdc++" in one or one.startswith("libcu")], f"fake {name}: needs {needed}")
    for name in ("libcuda.so", "libnvidia-ml.so"):
        link = libraries / "fake" / name
        # A wheel can't hold links: there, a library that needs the other lends the name.
        lent = (words.tree and not link.is_symlink() and dynamic(link).get("SONAME") == [name] and not exports(link)
                and dynamic(link).get("NEEDED", [""])[0] == name + ".1")
        expect(lent or (link.is_symlink() and str(link.readlink()) == name + ".1"), f"fake {name}: is no link to {name}.1")

    tree = f", and {files} files that need nothing newer than GLIBC_2.17" if files else ""
    print("\n".join(wrong) if wrong else f"{len(there)} exported symbols, all as they should be{tree}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
