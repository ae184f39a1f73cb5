# SPDX-License-Identifier: Apache-2.0
"""Recordings with Python's stacks, of each CPython that is installed:

  python_stacks_test.py BUILD

The program looks at its own frames where it allocates, and both have to be the same.
"""
import csv
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

BUILD = pathlib.Path(sys.argv[1]).resolve()
del sys.argv[1:2]
LAUNCHER = BUILD / "bin/cuslice"
KNOWN = [(3, minor) for minor in range(8, 14)]
MIB = 1 << 20
PROGRAM = r"""
import asyncio, ctypes, json, sys, threading

cuda, locked = ctypes.CDLL("libcuda.so.1"), ctypes.PyDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
seen = []

def look():
    frame, frames = sys._getframe(1), []
    while frame:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    seen.append(frames[::-1])

class Modèle:
    def forward(self, size, library=cuda):
        cuda.cuCtxSetCurrent(context)
        look(); library.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size))

def deep(steps, size, library=cuda):
    if steps:
        return deep(steps - 1, size, library)
    Modèle().forward(size, library)

def generated(size):
    yield deep(0, size)

async def awaited(size):
    await asyncio.sleep(0)
    deep(0, size)

MIB = 1 << 20
deep(3, 1 * MIB)
deep(3, 2 * MIB, locked)
deep(0, 1 << 50)
list(generated(4 * MIB))
asyncio.new_event_loop().run_until_complete(awaited(5 * MIB))
worker = threading.Thread(target=deep, args=(1, 6 * MIB))
worker.start()
worker.join()
for name in "/odd/a,b;\"c\n%.py", "/é/日本/\U0001f40d.py", "/bytes/\udcff.py", "/x/" + "y" * 900 + "/z.py":
    exec(compile("deep(0, 7 * MIB)", name, "exec"))
exec(compile("\n" * 70000 + "deep(0, 8 * MIB)", "/x/lib/python3.99/site-packages/p/q.py", "exec"))
look(); max([1], key=lambda _: deep(0, 9 * MIB))
seen.pop(-2)
sys.setrecursionlimit(5000)
deep(300, 10 * MIB)
deep(1000, 11 * MIB)
cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(MIB - 1))
json.dump(seen, open(sys.argv[1], "w"))
"""


def interpreters():
    """The path of each version, by its version. None may be there, but the one that runs this is."""
    names = ["python3", *(f"python3.{minor}" for minor in range(8, 20))]
    paths = [sys.executable, *filter(None, map(shutil.which, names))]
    paths += map(str, pathlib.Path.home().glob(".pyenv/versions/3*/bin/python3"))
    found = {}
    ask = "import json, platform, sys; json.dump([sys.version_info[:3], platform.python_implementation()], sys.stdout)"
    for path in paths:
        said = subprocess.run([path, "-c", ask], capture_output=True, text=True)
        version, kind = json.loads(said.stdout) if said.returncode == 0 else (None, "")
        if kind == "CPython":
            found.setdefault(tuple(version), path)
    return found


def compact_stacks(path):
    """The stack of each event of a recording in the compact form."""
    records = list(struct.iter_unpack("<BBHIIIQ", path.read_bytes()))[2:]
    stacks, text = [], b""
    for record in records:
        kind, place, _, length, *rest = record
        if kind == 10:
            text += struct.pack("<IIQ", *rest)[: length - len(text)]
        elif kind & 15 in (1, 2, 3):
            stacks.append(text.decode())
            text = b""
    return stacks


def frames_of(stack):
    """A stack as the program has it: function, file and line of each frame."""
    frames = []
    for text in stack.split(";"):
        function, place = text[:-1].split(" (", 1) if text.endswith(")") else (text, ":0")
        file, line = place.rsplit(":", 1)
        frames.append([urllib.parse.unquote(function), urllib.parse.unquote(file), int(line)])
    return frames


def shortened(frame):
    """The same of a frame that the program has seen."""
    function, file, line = frame
    for folder in "/site-packages/", "/dist-packages/":
        file = file.rsplit(folder, 1)[-1]
    if "/lib/python3." in file:
        file = "python3." + file.rsplit("/lib/python3.", 1)[1]
    file = file[-200:].encode("utf-8", "replace").decode()
    return [function, file, line]


class Stacks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "program.py"
        self.program.write_text(PROGRAM, encoding="utf-8")

    def recorded(self, python, name, options=("--record-stacks",)):
        record = self.folder / name
        record.unlink(missing_ok=True)
        told = self.folder / "seen.json"
        words = [LAUNCHER, "run", "--fake", "1xt4", f"--record={record}", *options, "--", python, self.program, told]
        done = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return record, json.loads(told.read_text())

    def check(self, stacks, seen):
        *some, deep, deeper, small = stacks
        *expected, all_of_deep, all_of_deeper = [list(map(shortened, frames)) for frames in seen]
        self.assertEqual([frames_of(stack) for stack in some], expected)
        self.check_cut(deep, all_of_deep, True)
        self.check_cut(deeper, all_of_deeper, False)
        self.assertEqual(small, "")

    def check_cut(self, stack, frames, begins):
        """Frames in the middle have no room; of more than 512 the outermost ones aren't known."""
        shown = frames_of(stack)
        gap = shown.index(["…", "", 0])
        self.assertLessEqual(len(stack.encode()), 2400)
        self.assertEqual(gap > 10, begins)
        self.assertGreater(len(shown) - gap, 10)
        self.assertEqual(shown[:gap], frames[:gap])
        self.assertEqual(shown[gap + 1 :], frames[gap + 1 - len(shown) :])

    def test_rows_have_the_frames_that_the_program_sees_itself_and_small_blocks_have_none(self):
        for version, python in interpreters().items():
            with self.subTest(version):
                record, seen = self.recorded(python, "a.csv")
                with open(record, newline="", encoding="utf-8") as file:
                    stacks = [row["Stack"] for row in csv.DictReader(file)]
                if version[:2] not in KNOWN:
                    self.assertFalse(any(stacks))
                    continue
                self.check(stacks, seen)
                record, seen = self.recorded(python, "a.trace")
                self.check(compact_stacks(record), seen)

    def test_without_the_option_no_row_has_a_stack(self):
        record, _ = self.recorded(sys.executable, "a.csv", [])
        self.assertNotIn("Stack", record.read_text().splitlines()[0])
        record, _ = self.recorded(sys.executable, "a.trace", [])
        self.assertFalse(any(compact_stacks(record)))


if __name__ == "__main__":
    unittest.main()
