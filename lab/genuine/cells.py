# SPDX-License-Identifier: Apache-2.0
"""The matrix: the programs that each genuine library is run with, and the settings of cuslice that each of them is run under.

A cell is one program under one setting. It must end with the status and the output that the program has without cuslice, but
for lines of cuslice's own on standard error. Behind the fake driver a setting changes what a program gets; what it may change
stands here, and what was really taken is read from the fake's books.
"""
import dataclasses
import difflib
import json
import pathlib
import re
import sys

import catalogue

HERE = pathlib.Path(__file__).parent
LIMIT = "2GiB"
NONE = "none"  # no driver at all


@dataclasses.dataclass(frozen=True)
class Setting:
    name: str
    environment: tuple = ()
    words: tuple = ()  # those after `cuslice run`; without any the library is preloaded by hand


SETTINGS = (
    Setting("preloaded"),
    Setting("limit", (("CUSLICE_LIMIT", LIMIT),)),
    Setting("growth", (("CUSLICE_LIMIT", LIMIT), ("CUSLICE_ALLOCATOR", "growth"))),
    Setting("gpus", (), ("--gpus", "0")),
    Setting("split", (), ("--split", "0=2")),
    Setting("job", (), ("--limit", LIMIT)),
)

# Without NVML cuslice takes no index for a GPU to be split. The fake's UUIDs follow from profile and place.
FIRST_FAKE_GPU = "GPU-f9859788-3006-4d00-a248-dd632703aa8d"

# The same, and what the first GPU's memory and the number of GPUs are then on two fake GPUs. `beside`: MiB that each
# process is charged on the other part of the same GPU: its share, three fifths, of a context of 520 MiB.
FAKE_SETTINGS = (
    (Setting("preloaded"), {}),
    (Setting("limit", (("CUSLICE_LIMIT", LIMIT),)), {"total": 2048}),
    (Setting("growth", (("CUSLICE_LIMIT", LIMIT), ("CUSLICE_ALLOCATOR", "growth"))), {"total": 2048}),
    (Setting("gpus", (), ("--gpus", "1")), {"count": 1}),
    (Setting("split", (), ("--split", f"{FIRST_FAKE_GPU}=2GiB+3GiB")), {"count": 3, "total": 2048, "beside": 312}),
    (Setting("job", (), ("--limit", LIMIT)), {"total": 2048}),
    (Setting("group", (), ("--group", "matrix", "--group-limit", LIMIT)), {"total": 2048}),
)


@dataclasses.dataclass(frozen=True)
class Program:
    """What is run natively once, and then under each setting."""
    item: str  # the item under test
    name: str
    command: tuple
    files: tuple  # those of the item that the program must have loaded, natively and under cuslice
    expects: str  # what its own output says where there is no GPU: a native run without it proves nothing
    driver: str = ""  # the item that has the driver's user space: the same one for a driver
    items: tuple = ()  # others that it needs
    probe: tuple = ()  # source, library and way, if it has to be compiled
    fake: bool = False  # runs on the fake driver

    def needs(self):
        return tuple(name for name in dict.fromkeys((self.item, self.driver, *self.items)) if name and name != NONE)


def probe(item, source, soname, expects, driver):
    for way in "linked", "opened":
        behind = "" if driver == item else f", {driver}"
        yield Program(item, f"{source}.c {way}{behind}", (), (soname,), expects, driver, probe=(source, soname, way))


def driver_programs(item):
    python, folder = sys.executable, catalogue.cache() / item
    yield from probe(item, "driver", "libcuda.so.1", r"^cuInit 100$", item)
    yield from probe(item, "nvml", "libnvidia-ml.so.1", r"^nvmlInit_v2 9$", item)
    management = dict(item=item, files=("libnvidia-ml.so.1",), driver=item)
    for words in (), ("-L",), ("-q",):
        yield Program(name=" ".join(("nvidia-smi", *words)), command=(folder / "nvidia-smi", *words),
                      expects="^NVIDIA-SMI has failed", **management)
    programs = HERE / "programs"
    yield Program(name="nvmlInit by ctypes (PyTorch's way)", command=(python, programs / "nvml_by_ctypes.py"),
                  expects="^nvmlInit 9 -1$", **management)
    yield Program(name="pynvml", command=(python, programs / "nvml_by_pynvml.py"), items=("python",),
                  expects="^nvmlInit NVMLError_DriverNotLoaded", **management)
    yield Program(name="gpustat", command=(python, "-m", "gpustat"), items=("python",), expects="Driver Not Loaded", **management)
    yield Program(item, "NVML behind the fake driver, one process", (1,), ("libnvidia-ml.so.1",), r"^nvmlInit_v2 9$", item,
                  probe=("context", "libcuda.so.1", "opened"), fake=True)
    yield Program(item, "NVML behind the fake driver, two processes", (2,), ("libnvidia-ml.so.1",), r"^nvmlInit_v2 9$", item,
                  probe=("context", "libcuda.so.1", "opened"), fake=True)


# The probe of each other item: its source, the library that it opens, and what it says without a GPU.
LIBRARIES = {
    "cudart-11.8": ("cudart", "libcudart.so.11.0", r"^cudaGetDeviceCount (35|100)$"),
    "cudart-12": ("cudart", "libcudart.so.12", r"^cudaGetDeviceCount (35|100)$"),
    "cudart-13": ("cudart", "libcudart.so.13", r"^cudaGetDeviceCount (35|100)$"),
    "cupti-11.8": ("cupti", "libcupti.so.11.8", r"^cuptiSubscribe (15|999)$"),
    "cupti-12": ("cupti", "libcupti.so.12", r"^cuptiSubscribe (15|999)$"),
    "cupti-13": ("cupti", "libcupti.so.13", r"^cuptiSubscribe (15|999)$"),
    "nvrtc-11.8": ("nvrtc", "libnvrtc.so.11.2", r"^nvrtcCompileProgram 0$"),
    "nvrtc-13": ("nvrtc", "libnvrtc.so.13", r"^nvrtcCompileProgram 0$"),
    "cublas-11.8": ("cublas", "libcublas.so.11", r"^cublasCreate_v2 1$"),
    "cublas-13": ("cublas", "libcublas.so.13", r"^cublasCreate_v2 1$"),
    "cudnn-9": ("cudnn", "libcudnn.so.9", r"^cudnnCreate 1001$"),
    "nccl-2": ("nccl", "libnccl.so.2", r"^ncclCommInitAll 1$"),
}


def programs_of(item):
    if item.family == "driver":
        yield from driver_programs(item.name)
    elif item.name in LIBRARIES:
        for driver in ("driver-535", "driver-555", *([NONE] if item.family == "runtime" else [])):
            yield from probe(item.name, *LIBRARIES[item.name], driver)


def programs():
    return [program for item in catalogue.ITEMS for program in programs_of(item)]


def settings_of(program):
    return [setting for setting, _ in FAKE_SETTINGS] if program.fake else list(SETTINGS)


@dataclasses.dataclass(frozen=True)
class Difference:
    """What cuslice changes on purpose: replacements in the native status, output and errors, for some cells."""
    why: str
    programs: str  # a pattern of "item | program"
    settings: tuple
    changes: tuple  # (pattern, replacement) of the text that text_of() makes


DIFFERENCES = (
    Difference("`--gpus` with an index, on a machine on which NVML does not start: `cuInit` answers `CUDA_ERROR_INVALID_VALUE` (1), as "
               "for every setting that can't be obeyed, and a line names the setting. Natively it is `CUDA_ERROR_NO_DEVICE` (100; in a "
               "forked child 304 from driver 550 on). Only NVML tells which GPU an index means, and cuslice doesn't start the driver "
               "with a guess. The runtime hands the status on, except where it finds the driver too old first.",
               r"^driver-\d+ \| driver\.c |^cupti-.* \| cupti\.c |^cudart-1(1\.8|2) \| .*, driver-", ("gpus",),
               ((r"^cuInit (100|304)$", "cuInit 1"), (r"^(cuda\w+) 100$", r"\1 1"),
                (r"no CUDA-capable device is detected$", "invalid argument"))),
)
assert len(DIFFERENCES) <= 5, "a difference more is one to mend"


def documented(program, setting):
    """The difference that is documented for a cell; nothing if there is none."""
    for difference in DIFFERENCES:
        if setting.name in difference.settings and re.search(difference.programs, f"{program.item} | {program.name}"):
            return difference
    return None


def without_our_lines(err):
    return re.sub(r"^cuslice: .*\n", "", err, flags=re.M)


def natively_expected(program, outcome):
    """Why the native run proves nothing, or nothing."""
    if not re.search(program.expects, outcome.out + outcome.err, re.M):
        return f"natively, {program.expects} is not in its output"
    return ""


def differences(program, setting, native, sliced):
    """What is not as it should be, as lines; none if all is."""
    return behind_the_fake(program, setting, native, sliced) if program.fake else as_natively(program, setting, native, sliced)


def text_of(outcome):
    return f"status {outcome.status}\n{outcome.out}\nerrors:\n{without_our_lines(outcome.err)}"


def as_natively(program, setting, native, sliced):
    """The native text, with just the changes that are documented: one that no longer shows is a mistake as well."""
    expected = text_of(native)
    for pattern, replacement in getattr(documented(program, setting), "changes", ()):
        expected = re.sub(pattern, replacement, expected, flags=re.M)
    found = text_of(sliced)
    if found == expected:
        return []
    return list(difflib.unified_diff(expected.splitlines(), found.splitlines(), "expected", "under cuslice", "", "", 0, ""))


def behind_the_fake(program, setting, native, sliced):
    """Statuses as natively; totals, counts and refusals as the setting says; and no more taken than that, by the books."""
    changed = dict(FAKE_SETTINGS)[setting]
    expected, books = native.out.split("[\n")[0], sliced.out.split("[\n")[-1]
    if "count" in changed:
        expected = re.sub(r"^(cuDeviceGetCount 0:) \d+$", rf"\1 {changed['count']}", expected, flags=re.M)
    if "total" in changed:
        expected = re.sub(r"total \d+ MiB", f"total {changed['total']} MiB", expected)
        expected = expected.replace("blocks: all, then 0", "blocks: not all, then 2")
    problems = []
    if (native.status, sliced.status) != (0, 0):
        problems.append(f"status: natively {native.status}, under cuslice {sliced.status}: {sliced.err}")
    if sliced.out.split("[\n")[0] != expected:
        problems.append(f"output: expected {expected!r}, was {sliced.out!r}; errors {sliced.err!r}")
    rows = [] if problems else json.loads("[" + books)
    taken = sum(row["peak"] for row in rows) >> 20
    if not problems and len(rows) != program.command[0]:
        problems.append(f"the books name {len(rows)} processes, not {program.command[0]}")
    # A limit without a job is each process's own.
    apart = program.command[0] if setting.name in ("limit", "growth") else 1
    if taken > changed.get("total", taken) * apart + changed.get("beside", 0) * len(rows):
        problems.append(f"{taken} MiB were taken, by the books")
    return problems
