#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long `cuslice plot` takes to read a recording and make a page of it, and how much memory: a training of several
threads on two GPUs, made up, in both forms, without Python's stacks and with them.

  plot.py [ROWS [FOLDER]]                      default: 1,000,000; FOLDER is for the recordings, 140 bytes a row
"""

import pathlib
import random
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests/plot")]
from made import Compact, Row, header_of, stack_of  # noqa: E402

GPUS = ("GPU-830cff1a-1f2e-4a55-9c0b-3a0b1c2d3e4f", "GPU-5f01aa77-22bb-4c11-8d10-99aabbccddee")
LIMITS = (8 << 30, 6 << 30)
SIZES = (512, 1024, 1536, 4096, 96 << 10, 600 << 10, 2 << 20, 3 << 20, 6 << 20, 24 << 20)
NOON = 20_000 * 86_400_000_000 + 43_200_000_000
AT_ONCE = 10_000
LEAST_WITH_STACK = 1 << 20  # bytes
LAYERS = tuple(
    (
        "<module> (train.py:33)",
        "train (train.py:12)",
        *["_call_impl (torch/nn/modules/module.py:1553)", "forward (torch/nn/modules/container.py:219)"] * 5,
        f"forward (model.py:{line})",
    )
    for line in range(100)
)

READ = """
import resource, sys, time
sys.path.insert(0, sys.argv[1])
from cuslice import plot_page, plot_text, recordings
begun, processor = time.monotonic(), time.process_time()
followed = recordings.replay([sys.argv[2]], [])
gpus = followed.gpus()
plot_page.page(followed, gpus, plot_text.heading_of(followed, gpus, None, sys.argv[2:]), [])
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print(f"{time.monotonic() - begun:.1f} s, {time.process_time() - processor:.1f} s of processor time, {most} MiB")
"""


def training(count):
    chance, time, fresh = random.Random(1), NOON, 0x7F3A40000000
    held, live, unused = [600 << 20] * 2, ([], []), {size: [] for size in SIZES}
    for number in range(count):
        at, thread = chance.getrandbits(1), 81_200 + chance.getrandbits(2)
        time += chance.randrange(1, 40)
        when = time - (chance.randrange(30) if number % 50 == 0 else 0)
        blocks = live[at]
        known = {"gpu": GPUS[at], "limit": LIMITS[at], "thread": thread}
        if number % 20_000 == 19_999:
            yield Row(when, "allocate failure", 0, 9 << 30, held=held[at], stack=LAYERS[0], **known)
        elif blocks and (chance.random() < 0.5 or len(blocks) > 6000 or held[at] + (64 << 20) > LIMITS[at]):
            address, size = blocks.pop(chance.randrange(max(0, len(blocks) - 40), len(blocks)))
            yield Row(when, "free", address, size, held=held[at], **known)
            held[at] -= size
            unused[size].append(address)
        else:
            size = chance.choice(SIZES)
            if not unused[size]:
                unused[size].append(fresh)
                fresh += size
            blocks.append((unused[size].pop(), size))
            held[at] += size
            stack = chance.choice(LAYERS) if size >= LEAST_WITH_STACK else ()
            yield Row(when, "allocate", *blocks[-1], held=held[at], stack=stack, **known)


def write(csv, trace, count, with_stacks):
    compact = Compact(NOON)
    csv.write(header_of("Program", *["Stack"] * with_stacks))
    for row in training(count):
        made = row if with_stacks else row._replace(stack=())
        csv.write(made.csv("", *[stack_of(made)] * with_stacks))
        compact.add(made)
        if len(compact.data) > 24 * AT_ONCE:
            trace.write(compact.data)
            compact.data.clear()
    trace.write(compact.data)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        names = [f"{folder}/a.csv", f"{folder}/a.trace"]
        for with_stacks in (False, True):
            with open(names[0], "w") as csv, open(names[1], "wb") as trace:
                write(csv, trace, count, with_stacks)
            for name in names:
                size = pathlib.Path(name).stat().st_size / count
                reading = [sys.executable, "-B", "-c", READ, SOURCE / "python", name]
                done = subprocess.run(reading, text=True, stdout=subprocess.PIPE, check=True)
                form = pathlib.Path(name).suffix + (" with stacks" if with_stacks else "")
                print(f"{form}  {count:,} rows of {size:.1f} bytes: {done.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
