#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies qemu-aarch64 without its own answer for /proc/self/stat.

    scripts/qemu_start_time.py QEMU COPY

qemu-user answers some files of /proc/self itself. The start time in its /proc/self/stat is when the emulator began (qemu
10.0, linux-user/syscall.c, open_self_stat), and other processes read the kernel's, some hundredths of a second before: so
no emulated process is known to others by its pid and start time, by which cuslice tells a process from a later one with
the same pid. The kernel's own file is right. In the copy, the entry `stat` in qemu's table of such files has the name of
another entry, so that it is never found.
"""
from __future__ import annotations

import os
import pathlib
import struct
import sys

TABLE = ["maps", "smaps", "stat", "auxv", "cmdline"]
ENTRY = 24  # bytes: a name, and two functions
LOADED, DYNAMIC = 1, 2  # program headers
RELOCATIONS, RELOCATIONS_SIZE = 7, 8  # DT_RELA, DT_RELASZ
RELATIVE = 8  # R_X86_64_RELATIVE
RELOCATION = "<QQq"


def fail(why: str) -> None:
    sys.exit(f"qemu_start_time: {sys.argv[1]}: {why}")


def headers(image: bytes) -> list[tuple[int, int, int, int]]:
    """Each program header's type, place in the file, address, and size in the file."""
    start, size, count = struct.unpack_from("<Q", image, 32)[0], *struct.unpack_from("<HH", image, 54)
    all_ = [struct.unpack_from("<IIQQQQ", image, start + i * size) for i in range(count)]
    return [(kind, place, address, length) for kind, _, place, address, _, length in all_]


def rename_stat(image: bytearray) -> None:
    if image[:4] != b"\x7fELF":
        fail("is no program")
    segments = [each[1:] for each in headers(image) if each[0] == LOADED]

    def place_of(address: int) -> int | None:
        return next((place + address - at for place, at, size in segments if at <= address < at + size), None)

    def text_at(address: int) -> str | None:
        place = place_of(address)
        return None if place is None else image[place : place + 16].split(b"\0")[0].decode("latin-1")

    dynamic = next((each[1:] for each in headers(image) if each[0] == DYNAMIC), None)
    if dynamic is None:
        fail("has no relocations, as a program has that can be loaded anywhere")
    tags = dict(struct.unpack_from("<QQ", image, dynamic[0] + i) for i in range(0, dynamic[2], 16))
    places = {}  # of the relocation, by the address that it is for
    for place in range(first := place_of(tags[RELOCATIONS]), first + tags[RELOCATIONS_SIZE], struct.calcsize(RELOCATION)):
        address, kind, _ = struct.unpack_from(RELOCATION, image, place)
        if kind == RELATIVE:
            places[address] = place

    def value(address: int) -> int | None:
        return struct.unpack_from(RELOCATION, image, places[address])[2] if address in places else None

    def names(table: int) -> list[str | None]:
        values = [value(table + i * ENTRY) for i in range(len(TABLE))]
        return [None if each is None else text_at(each) for each in values]

    tables = [each for each in places if text_at(value(each)) == TABLE[0] and names(each) == TABLE]
    if len(tables) != 1:
        fail(f"has {len(tables)} tables of files with the entries {' '.join(TABLE)}, where one is known")
    stat, other = (tables[0] + TABLE.index(name) * ENTRY for name in ("stat", "smaps"))
    struct.pack_into(RELOCATION, image, places[stat], stat, RELATIVE, value(other))


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: scripts/qemu_start_time.py QEMU COPY")
    image = bytearray(pathlib.Path(sys.argv[1]).read_bytes())
    rename_stat(image)
    # Another run may be using the one that is there.
    copy = pathlib.Path(sys.argv[2])
    fresh = copy.with_name(f"{copy.name}.{os.getpid()}")
    fresh.write_bytes(image)
    fresh.chmod(0o755)
    fresh.rename(copy)


if __name__ == "__main__":
    main()
