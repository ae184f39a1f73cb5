# SPDX-License-Identifier: Apache-2.0
"""Uses of the package as people write them, for a checker of types: it is to find those that are marked, and no other.

Read by typing_test.py; never run.
"""

import pathlib
import subprocess

import cuslice
from cuslice.fake import Holder

PROGRAM = ["python", "train.py"]

done = cuslice.run(PROGRAM, limit="4GiB", check=True)
cuslice.run([pathlib.Path("a.out"), "8"], limit={0: 4 << 30, "GPU-5f": "1GiB"}, capture_output=True, text=True)
cuslice.run(PROGRAM, limt="4GiB")  # wrong: no such parameter
cuslice.run(PROGRAM, gpus=[0, 1], wait=30, timeout=3600)
cuslice.run(PROGRAM, gpus=[0.5])  # wrong: no GPU
cuslice.popen(PROGRAM, fraction=0.25, wait=True, log=pathlib.Path("log"), record=pathlib.Path("run.csv"))
cuslice.popen(PROGRAM, fraction=0.25, wait=[30])  # wrong: no time
cuslice.popen(PROGRAM, shell=True)  # wrong: not taken
cuslice.popen(PROGRAM, idle_release={0: 0.5}, per_process=True, group_limit="2GiB")
cuslice.popen(PROGRAM, per_process=2)  # wrong: neither yes nor no
process = cuslice.popen(PROGRAM, split="1GiB+rest", stdout=subprocess.PIPE, cwd=pathlib.Path("/tmp"))
print(process.pid, done.returncode)
for gpu in cuslice.limit():
    print(gpu.device, gpu.can_allocate or 0, gpu.usable + gpu.limit)
    print(gpu.can_alocate)  # wrong: no such field
print([one.requested.peak for one in cuslice.stats()], cuslice.stats(process.pid)[0].gpu)
with cuslice.FakeMachine(pathlib.Path("lab.toml")) as machine:
    machine.fail("cuMemAlloc", 3, result="CUDA_ERROR_OUT_OF_MEMORY", onwards=True)
    machine.fail("cuMemAlloc", "3")  # wrong: no number
    machine.delay("*", 0.001)
    machine.run(["./a.out"], limit="1GiB", input=b"", capture_output=True)
    machine.run(["./a.out"], fake="1xt4")  # wrong: the machine's
    held: int = machine.held(gpu=0, pid=process.pid)
    holder: Holder = machine.holders()[0]
with cuslice.forward_log("cuslice", level="info") as log:
    log.poll()
cuslice.forward_log(interval="1s")  # wrong: no number of seconds
cuslice.ensure(limit="4GiB", summary=True)
cuslice.ensure(limt="4GiB")  # wrong: no such parameter
cuslice.slice("4GiB")
cuslice.slice(4.5)  # wrong: no size
with cuslice.slice(1 << 30, gpu=0) as mine:
    print(mine.bytes + cuslice.own_slices()[0].used)


@cuslice.slice("2GiB")
def train(steps: int) -> float:
    return steps / 2


print(train(3) + 1)
train("3")  # wrong: no number
