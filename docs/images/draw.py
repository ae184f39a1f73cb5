#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of the documents, as SVG, into its own folder:  draw.py [--check]

They are text with a background of their own, and change their colours where the reader's theme is dark.
"""
import html
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent
LIGHT = {"back": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "line": "#8c959f", "ours": "#ddf4ff",
         "ours-line": "#0969da", "theirs": "#f6f8fa", "used": "#9ec5a0", "held": "#1a7f37", "limit": "#cf222e",
         "spare": "#dafbe1"}  # fmt: skip
DARK = {"back": "#0d1117", "ink": "#e6edf3", "faint": "#9198a1", "line": "#6e7681", "ours": "#10243e",
        "ours-line": "#4493f8", "theirs": "#161b22", "used": "#2f6f3a", "held": "#3fb950", "limit": "#f85149",
        "spare": "#12261e"}  # fmt: skip


def colours(theme):
    rules = [f".back,.{name}-fill{{fill:{theme[name]}}}" if name == "back" else f".{name}-fill{{fill:{theme[name]}}}"
             for name in theme]
    return "".join(rules + [f".{name}-stroke{{stroke:{theme[name]}}}" for name in theme])


class Picture:
    def __init__(self, width, height, title):
        self.size, self.title, self.parts, self.rules = (width, height), title, [], ""

    def box(self, x, y, width, height, fill="theirs", stroke="line", dashed=False, round_by=6, moves=""):
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{round_by}"'
                          f' class="{f"{fill}-fill {stroke}-stroke {moves}".strip()}"{dash}/>')

    def text(self, x, y, words, kind="", anchor="middle", colour="ink"):
        self.parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="{colour}-fill {kind}">'
                          f"{html.escape(words)}</text>")

    def labelled(self, x, y, width, height, lines, **how):
        """A box with a first line in bold and fainter ones below it."""
        self.box(x, y, width, height, **how)
        top = y + height / 2 - (len(lines) - 1) * 8 + 4.5
        for i, line in enumerate(lines):
            self.text(x + width / 2, top + i * 16, line, "bold" if i == 0 else "small", colour="faint" if i else "ink")

    def path(self, points, colour="line", fill=None, width=1.5, dashed=False, arrow=False):
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        tip = ' marker-end="url(#tip)"' if arrow else ""
        where = " ".join(f"{'L' if i else 'M'}{x:g} {y:g}" for i, (x, y) in enumerate(points))
        paint = f"{fill}-fill none-stroke" if fill else f"hollow {colour}-stroke"
        self.parts.append(f'<path d="{where}" class="{paint}" stroke-width="{width}"{dash}{tip}/>')

    def arrow(self, *points, **how):
        self.path(points, arrow=True, **how)

    def svg(self):
        width, height = self.size
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{html.escape(self.title)}</title>",
            "<style>text{font:13px 'DejaVu Sans',Helvetica,Arial,sans-serif}.bold{font-weight:bold}.small{font-size:12px}"
            f".hollow,.hollow-fill{{fill:none}}.none-stroke{{stroke:none}}{colours(LIGHT)}"
            f"@media (prefers-color-scheme:dark){{{colours(DARK)}}}{self.rules}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
            ' orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" class="line-fill"/></marker></defs>',
            f'<rect width="{width}" height="{height}" rx="8" class="back-fill"/>',
            *self.parts, "</svg>", ""])  # fmt: skip


def where_the_shim_sits():
    p = Picture(800, 430, "Where the shim sits: between the program and the driver, in the program's process")
    p.box(20, 20, 540, 320, fill="back", dashed=True)
    p.text(36, 42, "the program's process", anchor="start", colour="faint", kind="small")
    p.labelled(40, 56, 500, 44, ["program", "python train.py, ./a.out"])
    p.labelled(40, 132, 260, 44, ["CUDA runtime, cuBLAS, NCCL …", "NVIDIA's, unchanged"])
    p.box(40, 208, 420, 48, fill="ours", stroke="ours-line")
    p.text(56, 228, "libcuslice.so", "bold", anchor="start")
    p.text(56, 246, "loaded as libcuda.so.1", "small", anchor="start", colour="faint")
    for x, name, what in ((220, "hook", "counts"), (298, "stub", "one jump"), (376, "NVML", "the slice")):
        p.labelled(x, 213, 74, 38, [name, what], fill="back", stroke="ours-line", round_by=4)
    p.labelled(40, 288, 500, 40, ["NVIDIA's driver (libcuda.so.1), or the fake GPU's"])
    p.labelled(40, 372, 500, 40, ["kernel driver, GPU"])
    p.arrow((160, 100), (160, 132))
    p.arrow((330, 100), (330, 208))
    p.text(338, 130, "driver API", "small", "start", "faint")
    p.arrow((160, 176), (160, 208))
    p.arrow((250, 256), (250, 288))
    p.arrow((160, 256), (160, 288))
    p.arrow((300, 166), (500, 166), (500, 288))
    p.text(492, 184, "not hooked:", "small", "end", "faint")
    p.text(492, 199, "the driver's own pointer", "small", "end", "faint")
    p.arrow((290, 328), (290, 372))
    p.labelled(600, 56, 180, 62, ["cuslice run", "sets LD_PRELOAD,", "becomes the program"], fill="ours", stroke="ours-line")
    p.arrow((600, 78), (540, 78))
    p.labelled(600, 201, 180, 62, ["ledger", "a file in /dev/shm:", "who holds how much"], fill="ours", stroke="ours-line")
    p.path([(460, 232), (600, 232)], arrow=True)
    p.labelled(600, 320, 180, 48, ["other processes", "of the job, of other users"])
    p.arrow((690, 320), (690, 263))
    return p


def who_shares_a_limit():
    p = Picture(800, 330, "Who shares a limit: a job's processes, the programs of a group, or one process")
    p.box(20, 20, 760, 230, fill="back")
    p.text(36, 42, "GPU 0", "bold", "start")

    def process(x, y, name):
        p.box(x, y, 96, 30, fill="theirs", round_by=15)
        p.text(x + 48, y + 20, name, "small")

    p.box(40, 60, 230, 170, fill="ours", stroke="ours-line")
    p.text(56, 82, "job, 0.4 of the GPU", "bold", "start")
    for x, y, name in ((56, 100, "train.py"), (158, 100, "worker 1"), (56, 140, "worker 2"), (158, 140, "worker 3")):
        process(x, y, name)
    p.text(56, 200, "one limit for the program and all", "small", "start", "faint")
    p.text(56, 216, "that it starts, reserved beforehand", "small", "start", "faint")

    p.box(290, 52, 300, 186, fill="back", stroke="held", dashed=True)
    p.text(306, 72, "group lab, 16 GiB together", "bold", "start")
    p.box(306, 84, 130, 86, fill="ours", stroke="ours-line")
    p.text(316, 104, "job, 8 GiB", "bold", "start")
    process(323, 122, "serve.py")
    p.box(446, 84, 130, 86, fill="ours", stroke="ours-line")
    p.text(456, 104, "job, 12 GiB", "bold", "start")
    process(463, 122, "serve.py")
    p.text(306, 196, "one limit for all programs of a user", "small", "start", "faint")
    p.text(306, 212, "that name it, beside their jobs' limits", "small", "start", "faint")

    p.text(606, 82, "process, 2 GiB", "bold", "start")
    process(606, 100, "a.out")
    p.text(606, 162, "a limit of its own:", "small", "start", "faint")
    p.text(606, 178, "--per-process, or", "small", "start", "faint")
    p.text(606, 194, "LD_PRELOAD alone", "small", "start", "faint")

    p.labelled(40, 272, 720, 40, ["one ledger for each user and GPU; jobs of all users see each other's reservations"],
               fill="ours", stroke="ours-line")  # fmt: skip
    for x in (155, 440):
        p.arrow((x, 250), (x, 272))
    return p


def steps(x, y, width, height, levels, top):
    """The corners of a line that is at levels[i] for an equal time each."""
    points, wide = [], width / len(levels)
    for i, level in enumerate(levels):
        at = y + height - level / top * height
        points += [(round(x + i * wide, 1), round(at, 1)), (round(x + (i + 1) * wide, 1), round(at, 1))]
    return points


def modes_over_time():
    p = Picture(800, 300, "What direct, growth and prealloc hold over time, for the same program")
    used = [0, 0.4, 1.4, 2.4, 3.2, 2.2, 1.2, 2.6, 4.2, 3.0, 1.8, 0.4, 0.4, 0.4]
    growth = [0, 0.6, 1.6, 2.6, 3.4, 3.4, 3.4, 3.4, 4.4, 4.4, 4.4, 4.4, 0.8, 0.8]
    prealloc = [0, 5.2, 5.2, 5.2, 5.2, 5.2, 5.2, 5.2, 5.2, 5.2, 5.2, 5.2, 5.2, 5.2]
    held = {"direct": [0.001 + level for level in used], "growth": growth, "prealloc": prealloc}
    says = {"direct": "what the program holds", "growth": "freed memory stays; idle goes back",
            "prealloc": "the slice, from the start"}  # fmt: skip
    top, y, height, width = 6.2, 60, 160, 220
    for i, mode in enumerate(held):
        x = 40 + i * 255
        p.text(x, 30, mode, "bold", "start")
        p.text(x, 47, says[mode], "small", "start", "faint")
        area = steps(x, y, width, height, used, top)
        p.path([(x, y + height), *area, (x + width, y + height)], fill="used")
        p.path(steps(x, y, width, height, held[mode], top), colour="held", width=2.5)
        limit = y + height - 5.7 / top * height
        p.path([(x, limit), (x + width, limit)], colour="limit", dashed=True)
        p.path([(x, y - 4), (x, y + height), (x + width + 6, y + height)])
        p.text(x + width, y + height + 16, "time", "small", "end", "faint")
    p.box(40, 258, 16, 12, fill="used", stroke="used", round_by=2)
    p.text(62, 268, "in the program's blocks", "small", "start")
    p.path([(230, 264), (256, 264)], colour="held", width=2.5)
    p.text(262, 268, "held: what nvidia-smi shows, less the context", "small", "start")
    p.path([(560, 264), (586, 264)], colour="limit", dashed=True)
    p.text(592, 268, "limit", "small", "start")
    p.text(40, 289, "A sketch, not a measurement.", "small", "start", "faint")
    return p


def one_gpu_in_four():
    p = Picture(800, 310, "One GPU split in four: the program sees four GPUs, the driver one")
    p.text(40, 34, "what the program sees", "bold", "start")
    p.text(40, 292, "what the driver sees", "bold", "start")
    for i in range(4):
        x = 40 + i * 184
        p.labelled(x, 48, 168, 64, [f"GPU {i}", "a UUID, a PCI id,", "a limit of its own"], fill="ours", stroke="ours-line")
        p.arrow((x + 84, 112), (x + 84, 170))
        p.box(x, 170, 168, 64, fill="spare", stroke="held", round_by=0)
        p.text(x + 84, 207, f"partition {i}", "small")
        p.box(x, 170, 12, 64, fill="used", stroke="held", round_by=0)
    p.text(400, 134, "cuslice translates", "small", colour="faint")
    p.text(400, 150, "devices and handles", "small", colour="faint")
    p.box(30, 160, 740, 108, fill="hollow", stroke="line")
    p.text(40, 256, "GPU 0: one device, one context (shaded), of which each partition is charged its share", "small", "start", "faint")
    p.text(758, 256, "--split 0=4", "small", "end")
    return p


def what_a_limit_is_on():
    """The figures are those of a fake H200, which docs/configuration.md shows as well."""
    p = Picture(800, 250, "What a limit of 4 GiB is on, and a limit of 4 GiB and the context")
    left, scale = 40, 700 / 4616

    def bar(y, words, limit, parts):
        p.text(left, y - 12, words, "bold", "start")
        x = left
        for size, lines, fill in parts:
            p.labelled(round(x, 1), y, round(size * scale, 1), 46, lines, fill=fill, round_by=0)
            x += size * scale
        start, end = limit
        start, end = left + start * scale, left + end * scale
        p.path([(start, y + 54), (start, y + 60), (end, y + 60), (end, y + 54)], colour="limit")
        p.text((start + end) / 2, y + 76, "the limit", "small", colour="limit")

    context = (520, ["context", "520 MiB"], "theirs")
    bar(44, "--limit 4GiB", (0, 4096), [context, (3511, ["the program and CUDA's libraries", "at most 3511 MiB"], "used"),
                                        (65, [], "spare")])  # fmt: skip
    p.text(left + 4110 * scale, 64, "headroom", "small", "start", "faint")
    p.text(left + 4110 * scale, 80, "65 MiB", "small", "start", "faint")
    bar(160, "--limit 4GiB+context", (520, 4616), [context, (4096, ["the program", "at most 4096 MiB"], "used")])
    p.text(760, 148, "CUDA's libraries come on top as well", "small", "end", "faint")
    return p


PICTURES = {
    "limit": what_a_limit_is_on,
    "shim": where_the_shim_sits,
    "sharing": who_shares_a_limit,
    "modes": modes_over_time,
    "split": one_gpu_in_four,
}


def main():
    for name, draw in PICTURES.items():
        path, new = FOLDER / f"{name}.svg", draw().svg()
        if sys.argv[1:] != ["--check"]:
            path.write_text(new)
        elif not path.exists() or path.read_text() != new:
            sys.exit(f"docs/images/{name}.svg is old: run docs/images/draw.py and commit it")


if __name__ == "__main__":
    main()
