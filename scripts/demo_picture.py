#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/demo.svg, the README's picture:  demo_picture.py BUILD [--check]

Two of the samples, called a and b, which take all the memory that they can get, run at the same time on a fake RTX 4090:
once as they are, once under `cuslice run`. The bars end at what NVML, which nvidia-smi asks, says of each process then; a
process without cuslice asks it. The errors are the programs' and cuslice's own. The picture moves: bars grow, and what
is said comes when they are full. It shows its end to who wants no motion, and where nothing moves.
--check runs them as well, and fails if the picture is another.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs/images"))
sys.dont_write_bytecode = True
import draw

PICTURE = ROOT / "docs/demo.svg"
GPU = "1xrtx4090"
SAMPLES = {"a": "driver_fill", "b": "runtime_fill"}
SHARES = {"a": "0.6", "b": "0.4"}

# The loop: memory is taken in blocks, then stays; what is said is there once the bars are full.
MOTION = """
@media (prefers-reduced-motion:no-preference){
.grows{transform-box:fill-box;transform-origin:left;animation:grows 12s infinite}
.comes{animation:comes 12s infinite}}
@keyframes grows{0%{transform:scaleX(0);animation-timing-function:steps(30,end)}
30%,97%{transform:scaleX(1);opacity:1}100%{transform:scaleX(1);opacity:0}}
@keyframes comes{0%,30%{opacity:0}33%,97%{opacity:1}100%{opacity:0}}""".replace("\n", "")

# Prints [name, {pid: MiB}] of GPU 0.
ASK_NVML = """
import ctypes, json
class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]
nvml, gpu, count = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), ctypes.c_uint(16)
name, list_of = ctypes.create_string_buffer(96), (Process * 16)()
for call, arguments in (("nvmlInit_v2", []), ("nvmlDeviceGetHandleByIndex_v2", [0, ctypes.byref(gpu)]),
                        ("nvmlDeviceGetName", [gpu, name, 96]),
                        ("nvmlDeviceGetComputeRunningProcesses_v3", [gpu, ctypes.byref(count), list_of])):
    assert getattr(nvml, call)(*arguments) == 0, call
print(json.dumps([name.value.decode(), {p.pid: p.bytes / 2**20 for p in list_of[:count.value]}]))
"""


class Machine:
    """A fake GPU of its own, and the programs that run on it."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        for name, sample in SAMPLES.items():
            shutil.copy(build / "samples" / sample, f"{folder}/{name}")
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("CUSLICE_", "CUDA_", "LD_"))}
        self.environment |= {"CUSLICE_FAKE": GPU, "CUSLICE_FAKE_DIR": folder, "CUSLICE_DIR": folder,
                             "LD_LIBRARY_PATH": str(build / "lib/cuslice/fake")}

    def nvml(self):
        """The GPU's name, and pid → MiB."""
        return json.loads(subprocess.check_output([sys.executable, "-c", ASK_NVML], env=self.environment))

    @contextlib.contextmanager
    def program(self, name, options=()):
        """Yields a running program once it holds all it can get, or has failed; its stderr is in `said`."""
        words = [f"./{name}", "--json", "--hold-stdin"]
        if options:
            words = [str(self.build / "bin/cuslice"), "run", *options, "--", *words]
        with tempfile.TemporaryFile("w+") as errors:
            child = subprocess.Popen(words, cwd=self.folder, env=self.environment, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=errors)
            child.full = json.loads(child.stdout.readline() or "null")
            errors.seek(0)
            child.said = errors.read()
            try:
                yield child
            finally:
                child.stdin.close()
                child.wait(60)
                child.stdout.close()


def together(build, sliced):
    """Both programs at once: the GPU's name and size, each program's MiB (None: it failed), and what each said."""
    with contextlib.ExitStack() as running:
        folder = running.enter_context(tempfile.TemporaryDirectory(prefix="cuslice-demo-"))
        machine = Machine(build, folder)
        children = {name: running.enter_context(machine.program(name, ["--fraction", share] if sliced else []))
                    for name, share in SHARES.items()}
        gpu, held = machine.nvml()
        figures = {name: held[str(child.pid)] if child.full else None for name, child in children.items()}
        if len(held) != sum(child.full is not None for child in children.values()):
            sys.exit(f"NVML lists {len(held)} processes")
        total = children["a"].full["total"] / 2**20  # without what the driver keeps for itself
        return gpu, total, figures, {name: child.said.strip() for name, child in children.items()}


def gib(mib):
    return f"{mib / 1024:.1f} GiB"


def picture(build):
    gpu, total, alone, said = together(build, sliced=False)
    _, _, sliced, said_sliced = together(build, sliced=True)
    if alone["a"] is None or alone["b"] is not None or None in sliced.values():
        sys.exit(f"these runs show something else: {alone} {said}, {sliced} {said_sliced}")
    refusal = re.search(r"tried to allocate .*? in use \(", said_sliced["a"])[0][:-2]
    failure = said["b"].splitlines()[0].removeprefix(f"{SAMPLES['b']}: ")

    width, left, tall = 860, 30, 50

    def wide(size):
        return round(size * (width - 2 * left) / total, 1)

    p = draw.Picture(width, 330, "What two unmodified programs hold of one GPU, without cuslice and with it")
    p.rules = MOTION
    p.text(left, 34, "Two programs on one GPU. Each takes all the memory it can get.", "bold", "start")
    p.text(left, 53, f"The bars end at what NVML (nvidia-smi) lists for each process, on a fake {gpu}", "small",
           "start", "faint")

    p.text(left, 90, "Without cuslice", "bold", "start")
    p.box(left, 98, wide(total), tall, fill="theirs", round_by=0)
    p.box(left, 98, wide(alone["a"]), tall, fill="used", stroke="held", round_by=0, moves="grows")
    p.text(left + wide(alone["a"] / 2), 128, f"a  {gib(alone['a'])} of {gib(total)}", "comes")
    p.text(left, 168, f"b  ends: {failure}", "small comes", "start", "limit")

    p.text(left, 212, "With cuslice", "bold", "start")
    p.box(left, 220, wide(total), tall, fill="theirs", round_by=0)
    x = left
    for name, share in SHARES.items():
        p.box(x, 220, wide(sliced[name]), tall, fill="ours", stroke="ours-line", round_by=0, moves="grows")
        middle = round(x + wide(sliced[name] / 2), 1)
        p.text(middle, 242, f"{name}  {gib(sliced[name])}", "comes")
        p.text(middle, 260, f"cuslice run --fraction {share} -- ./{name}", "small", colour="faint")
        x = round(x + wide(float(share) * total), 1)
        p.path([(x, 214), (x, 276)], colour="limit", dashed=True)
    p.text(left, 296, "Beyond its slice, each gets CUDA_ERROR_OUT_OF_MEMORY, and stderr says why:",
           "small comes", "start")
    p.text(left, 314, f"cuslice: out of memory on GPU 0 ({gpu}): … {refusal} …", "small comes", "start", "limit")
    return p.svg()


def main():
    drawn = picture(pathlib.Path(sys.argv[1]).resolve())
    if sys.argv[2:] != ["--check"]:
        PICTURE.write_text(drawn)
    elif PICTURE.read_text() != drawn:
        sys.exit("docs/demo.svg shows another run: draw it again with scripts/demo_picture.py BUILD and commit it")


if __name__ == "__main__":
    main()
