#!/usr/bin/env python3
"""Writes docs/coverage.md: of every function that a CUDA driver exports, whether it passes through, is checked or is hooked,
and how it is counted.

  generate_coverage.py [--check]

The functions and their routes come from virtual_gpu/driver/functions.def, the hooks' files from
shim/driver/hooks_*.cpp. What a file does with its calls, and which functions take memory without being hooked, is said
here and checked against both: a hook without an explanation, or an explanation without a function, is an error. --check
writes nothing and fails if the page is old.
"""
import collections
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/coverage.md"

# What a file of hooks does with its calls.
HOW = {
    "context": "the driver footprint is measured around the call. A context, or a larger limit of one, that does not fit is"
    " undone and refused. The end of a context gives back every allocation in it",
    "device": "answers with the slice",
    "entry_point": "asks the driver, and replaces the pointer that comes back by the hook's, if there is one",
    "external": "opening another process's memory is measured, since its owner pays for it, and undone and refused if the"
    " driver counts it here and it does not fit",
    "graph": "what an instance's allocation nodes need is charged before it is launched or uploaded, or the launch is"
    " refused. What the device then keeps for graphs counts like a memory pool's reserved bytes",
    "graph_node": "a node that copies or fills is checked as the copy or memset is, when it is given its parameters",
    "green_context": "the driver footprint is measured around the call. A green context that does not fit is undone and"
    " refused. Its allocations are the primary context's, and end with the last use of that",
    "init": "opens the GPUs and works out each one's slice; fails if a setting is wrong",
    "memory": "charged before the driver is asked, at the size asked for in steps of 512 bytes, until it is freed. Where"
    " the GPU's `allocator` caches, cuMemAlloc_v2 is served by a cache, and the cache's segments are charged instead",
    "memory_array": "charged with its elements before the driver is asked, until it is destroyed; padding is measured with"
    " the driver footprint",
    "memory_copy": "refused if it begins in a cache's segment and is not within one block of the program's, as the driver"
    " refuses a copy past an allocation's end",
    "memory_info": "answers with the slice, and for a block of a cache as for an allocation",
    "memory_ipc": "exported memory stays charged after its free until the driver's figure says that no other process holds"
    " it. Opening another process's memory is measured, since its owner pays for it, and undone and refused if the driver"
    " counts it here and it does not fit",
    "memory_set": "the same check for a memset",
    "module": "the variables that its image names are charged before the driver is asked. Then the driver footprint is"
    " measured, and a module that does not fit is undone and refused",
    "multicast": "memory that is bound stays charged until it is unbound or the object is gone. What the driver takes for"
    " the object itself is measured when a device is added, and after a binding noticed at the next measurement",
    "stream": "takes no memory. Noted, because caches may neither wait for the GPU nor record events while a stream is"
    " captured",
    "stream_ordered": "charged before the driver is asked; then the pool's reserved bytes count. They are read again before"
    " a refusal. An imported pointer is measured, and undone and refused if the driver counts it here and it does not fit",
    "unified": "takes no memory. For a block of a cache the driver's answer is corrected to that for an allocation, and a"
    " block that is about to be pinned is not used again",
    "virtual_memory": "charged from cuMemCreate until the last handle and the last mapping are gone; what was bound to a"
    " sparse array or exported, until the driver's figure says that it is gone; what is imported is measured, and undone"
    " and refused if the driver counts it here and it does not fit",
}
HOW |= {"library": HOW["module"], "primary_context": HOW["context"]}

# Functions that pass through although they can take memory on the GPU, or make the driver take it.
UNCOUNTED = {
    "Memory of graphics APIs": ["cuGraphicsMapResources"],
    "Streams of green contexts": ["cuGreenCtxStreamCreate"],
    "Taken by the driver for itself: kernels loaded at their first use, local memory": [
        "cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuModuleGetFunction", "cuLibraryGetKernel",
        "cuKernelGetFunction", "cuLibraryGetModule", "cuStreamCreate", "cuStreamCreateWithPriority"],
}  # fmt: skip

HEAD = """# What is caught, and what is counted

*`scripts/generate_coverage.py` writes this page from the list of the driver's functions. A test
fails when the page is out of date.*

`libcuslice.so` exports {total} functions of the CUDA driver; forms for per-thread default streams and
old forms count each by itself. {hooked} are hooked, {checked} are checked, {passed} pass through.

- A function that **passes through** is the driver's own pointer for programs that ask
  `cuGetProcAddress`, and one jump for programs that call the exported symbol.
- A **checked** function passes through, too, unless the settings have some GPU's memory cached
  ([the allocator](allocator.md)).
- Functions of a newer driver that are not listed here reach programs through `cuGetProcAddress`,
  not through `dlsym` ([boundaries](boundaries.md)).

"""

UNCOUNTED_HEAD = """
## Not counted at the call

These can take memory on the GPU and pass through in this version. Where NVML lists the process,
cuslice notices what they took at the next measurement (a refusal, a context or module call, or when
the allocations have grown by the headroom), and the allocations after it have that much less. Where
NVML doesn't, it is not counted.

| what | functions |
|---|---|
"""

ROW = re.compile(r"^CUSLICE_FUNCTION\((\w+), (\w+), (\d+), (\w+), (\w+), \w+\)", re.M)


def fail(message):
    sys.exit(f"generate_coverage.py: {message}")


def since(version):
    return f"{version // 1000}.{version % 1000 // 10}" if version else "–"


def hook_files():
    """symbol → the word in its file's name"""
    files = {}
    for path in sorted((ROOT / "shim/driver").glob("hooks_*.cpp")):
        word = path.stem.removeprefix("hooks_")
        symbols = re.findall(r"^CUSLICE_(?:HOOK(?:_\w+)?|CHECKED)\((cu\w+)[,)]", path.read_text(), re.M)
        if symbols and word not in HOW:
            fail(f"say in HOW what {path.name} does with its calls")
        files.update(dict.fromkeys(symbols, word))
    for word in HOW:
        if word not in files.values():
            fail(f"HOW explains hooks_{word}.cpp, which has no hooks")
    return files


def by_file(title, rows, files):
    text = f"## {title}\n\n| what happens | functions, with the CUDA version that brought each form |\n|---|---|\n"
    symbols = collections.defaultdict(list)
    for symbol, _, version, _, _ in rows:
        symbols[HOW[files[symbol]]].append(f"`{symbol}` {since(int(version))}")
    for how, forms in symbols.items():
        text += f"| {how} | {', '.join(forms)} |\n"
    return text


def page():
    rows = ROW.findall((ROOT / "virtual_gpu/driver/functions.def").read_text())
    files = hook_files()
    hooked, checked, passed = ([row for row in rows if row[4] == route] for route in ("hook", "checked", "pass"))
    for symbol, *_, route in hooked + checked:
        if symbol not in files:
            fail(f"{symbol} has the route `{route}`, but no hooks_*.cpp defines it")
    text = HEAD.format(total=len(rows), hooked=len(hooked), checked=len(checked), passed=len(passed))
    text += by_file("Hooked", hooked, files) + "\n" + by_file("Checked where memory is cached", checked, files)

    text += UNCOUNTED_HEAD
    passing = collections.defaultdict(list)
    for symbol, name, version, stream, _ in passed:
        passing[name].append((symbol, since(int(version))))
    for what, names in UNCOUNTED.items():
        for name in names:
            if name not in passing:
                fail(f"UNCOUNTED has {name}, which does not pass through")
        text += f"| {what} | {', '.join(f'`{name}`' for name in names)} |\n"

    text += "\n## Passes through\n\n| function | exported forms, with the CUDA version that brought each |\n|---|---|\n"
    for name, forms in sorted(passing.items()):
        text += f"| `{name}` | {', '.join(f'`{symbol}` {version}' for symbol, version in forms)} |\n"
    return text


def main():
    new = page()
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(new)
        return
    old = PAGE.read_text() if PAGE.exists() else ""
    if old != new:
        before, after = old.splitlines(True), new.splitlines(True)
        sys.stdout.writelines(difflib.unified_diff(before, after, "docs/coverage.md", "as it should be", n=0))
        fail("docs/coverage.md is old: run scripts/generate_coverage.py and commit the page")


main()
