# SPDX-License-Identifier: Apache-2.0
"""What is to be drawn of rows, as slowly and plainly as can be: everything is kept, and thinned out at the end."""

from cuslice import recordings
from cuslice.recording_blocks import Block, key_of
from made import stack_of

MOST_MOMENTS, MOST_REFUSALS, MOST_LISTED = 900, 200, 10


class Gpu:
    def __init__(self):
        self.processes, self.moments, self.refusals = set(), [], []
        self.live, self.held_by, self.limit = [0] * len(recordings.CLASSES), {}, -1
        self.blocks = []

    def change(self, size, sign):
        at = next(i for i, (most, _) in enumerate(recordings.CLASSES) if size <= most)
        self.live[at] += sign * size

    def begin(self, block):
        self.change(block.size, 1)
        self.blocks.append(block)

    def end(self, block, time):
        self.change(block.size, -1)
        self.blocks.remove(block)
        block.ended = time

    def note(self, time):
        held = sum(self.held_by.values()) if self.held_by else -1
        largest = sorted(self.blocks, key=lambda block: -block.size)[:MOST_LISTED]
        self.moments.append((time, tuple(self.live), held, self.limit, tuple(largest)))


def follow(files):
    """GPUs by their names, of the rows of several processes."""
    gpus, blocks = {}, [{} for _ in files]
    ends = [max(row.time for row in rows) if len(files) > 1 else float("inf") for rows in files]
    rows = []
    for process, those in enumerate(files):
        time = 0
        for row in those:
            time = max(time, row.time)
            rows.append((time, process, row))
    for number, (time, process, row) in enumerate(sorted(rows, key=lambda row: row[:2])):
        gpu = gpus.setdefault(row.gpu, Gpu())
        gpu.processes.add(process)
        changed = [gpu]

        def forget(blocks=blocks[process], address=row.address, changed=changed, time=time):
            if address in blocks:
                block, owner = blocks.pop(address)
                owner.end(block, time)
                if owner not in changed:
                    changed.append(owner)

        if row.action == "allocate failure":
            gpu.refusals.append(recordings.Refusal(time, row.size, 1, row.thread, row.stack))
        else:
            forget()
        if row.action == "allocate":
            stack = stack_of(row).encode()
            block = Block(row.size, key_of(process, row.address), (row.thread, row.stream, stack), number, time)
            blocks[process][row.address] = block, gpu
            gpu.begin(block)
        if row.limit >= 0:
            gpu.limit = row.limit
        if row.held >= 0:
            gpu.held_by[process] = row.held
            over = [other for other in gpu.held_by if ends[other] < time]
            while over and sum(gpu.held_by.values()) > gpu.limit >= 0:
                ended = over.pop(0)
                for block, owner in blocks[ended].values():
                    owner.end(block, time)
                blocks[ended].clear()
                for one in gpus.values():
                    one.held_by.pop(ended, None)
                changed = gpus.values()
        for one in changed:
            one.note(time)
    return gpus


def kept_moments(moments, first, last):
    if len(moments) <= MOST_MOMENTS:
        return moments
    length = max(1, (last - first) // (MOST_MOMENTS // 3) + 1)
    stretches = {}
    for i, (time, *_) in enumerate(moments):
        stretches.setdefault((time - first) // length, []).append(i)
    kept = set()
    for those in stretches.values():
        kept |= {max(those, key=lambda i: sum(moments[i][1])), max(those, key=lambda i: moments[i][2]), those[-1]}
    return [moments[i] for i in sorted(kept)]


def kept_refusals(refusals, first, last):
    if len(refusals) <= MOST_REFUSALS:
        return refusals
    length = max(1, (last - first) // MOST_REFUSALS + 1)
    stretches = {}
    for refusal in refusals:
        stretches.setdefault((refusal.time - first) // length, []).append(refusal)
    largest = [(max(those, key=lambda refusal: refusal.size), len(those)) for those in stretches.values()]
    return [refusal._replace(requests=count) for refusal, count in largest]


def drawn(files):
    """The same as recordings.replay(...).gpus(), of rows whose times count from one midnight."""
    gpus = follow(files)
    times = [row.time for rows in files for row in rows]
    first, last = min(rows[0].time for rows in files), max(times)
    return [
        recordings.Gpu(
            name,
            len(gpu.processes),
            [recordings.Moment(*moment) for moment in kept_moments(gpu.moments, first, last)],
            kept_refusals(gpu.refusals, first, last),
            len(gpu.refusals),
            max(sum(live) for _, live, *_ in gpu.moments),
            max(held for _, _, held, *_ in gpu.moments),
            max(limit for _, _, _, limit, _ in gpu.moments),
            len(gpu.moments) > MOST_MOMENTS,
            0,
        )
        for name, gpu in gpus.items()
    ]
