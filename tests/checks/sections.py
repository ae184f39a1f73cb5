#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where a driver function is handled: in the shim, where GPUs are split, and in the fake GPU. The rule is that the file's name
begins with the section of NVIDIA's driver API manual that the function is in, which is its group in cuda.h:

  shim/driver/hooks_SECTION*.cpp   virtual_gpu/split/SECTION*.cpp   fake/driver/entry_SECTION*.cpp

  sections.py SOURCE_FOLDER CUDA_INCLUDE             fails on a function that is handled in a file of another name
  sections.py SOURCE_FOLDER CUDA_INCLUDE FUNCTION    says where this one is handled
"""
import collections
import pathlib
import re
import sys

# The words for groups of cuda.h whose own name, in small letters, isn't the section's.
WORDS = {
    "CTX": "context", "PRIMARY_CTX": "primary_context", "GREEN_CONTEXTS": "green_context", "MEM": "memory",
    "VA": "virtual_memory", "MALLOC_ASYNC": "stream_ordered", "EXTRES_INTEROP": "external", "EXEC": "execution",
    "PEER_ACCESS": "peer", "TEXOBJECT": "texture", "SURFOBJECT": "surface", "INITIALIZE": "init", "VERSION": "init",
    "DRIVER_ENTRY_POINT": "entry_point",
}  # fmt: skip
# Where cuda.h has a function in another group than its kin.
WITH_THEIR_KIN = {
    "cuDeviceGetByPCIBusId": "device", "cuDeviceGetPCIBusId": "device", "cuDeviceGetDefaultMemPool": "stream_ordered",
    "cuDeviceGetMemPool": "stream_ordered", "cuDeviceSetMemPool": "stream_ordered",
}  # fmt: skip
PLACES = {
    "shim": ("shim/driver", "hooks_", r"^CUSLICE_(?:HOOK(?:_\w+)?|CHECKED)\((cu\w+)"),
    "split": ("virtual_gpu/split", "", r"^CUSLICE_SPLIT(?:_FORM)?\((cu\w+)"),
    "fake": ("fake/driver", "entry_", r"^(?:CUSLICE_(?:ENTRY|STREAM)(?:_\w+)?\(|CUresult CUDAAPI )(cu\w+)"),
}


def base(symbol):
    """cuMemcpy_v2_ptds → cuMemcpy"""
    return re.sub(r"(_v\d)?(_ptsz|_ptds)?$", "", symbol)


def sections(header):
    """function → section, for those that cuda.h declares in a group"""
    found, groups, named = dict(WITH_THEIR_KIN), [], None
    for one in re.finditer(r"\\defgroup CUDA_(\w+)|@\{|@\}|^(?:__CUDA_DEPRECATED )?CUresult CUDAAPI\s+(cu\w+)\(", header, re.M):
        if one[1]:
            named = one[1].removesuffix("_DEPRECATED")
        elif one[0] == "@{":
            groups.append(named)
        elif one[0] == "@}":
            groups.pop()
        elif groups:
            found.setdefault(base(one[2]), WORDS.get(groups[-1], groups[-1].lower()))
    return found


def handlers(root):
    """(function, place) → names of files"""
    found = collections.defaultdict(set)
    for place, (folder, _, pattern) in PLACES.items():
        for path in (root / folder).glob("*.cpp"):
            for symbol in re.findall(pattern, path.read_text(), re.M):
                found[base(symbol), place].add(path.relative_to(root))
    return found


def main():
    root, include = map(pathlib.Path, sys.argv[1:3])
    section = sections((include / "cuda.h").read_text())
    files = handlers(root)
    if len(sys.argv) > 3:
        for place in PLACES:
            print(f"{place}: {' '.join(map(str, files.get((base(sys.argv[3]), place), ['–'])))}")
        return
    wrong = []
    for (function, place), paths in sorted(files.items()):
        start = PLACES[place][1] + section.get(function, "")
        wrong += [f"{path}: {function} belongs into {start}*.cpp" for path in paths if not path.name.startswith(start)]
    print("\n".join(wrong) or f"{len(files)} functions are handled in the files of their sections")
    sys.exit(1 if wrong else 0)


main()
