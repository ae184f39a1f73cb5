# SPDX-License-Identifier: Apache-2.0
"""Names of GPUs by their UUIDs, which are all that recordings have: of this machine's GPUs, and of fake ones."""

from __future__ import annotations

import glob
import os
import re
import struct
from typing import Dict, Iterator, Tuple

# A file for each GPU, of NVIDIA's kernel driver: no library is loaded, and no GPU is woken up.
INFORMATION = "/proc/driver/nvidia/gpus/*/information"
PROFILES = ("../fake/profiles", "../../fake/profiles")  # of an installation, and of the sources
MOST_FAKE = 64  # of one kind, in a fake machine
BITS = (1 << 64) - 1
MIB = 1 << 20


def name_of(uuid: str) -> str:
    """ "Tesla T4"; empty where nothing here knows this GPU, as of another machine's or a partition."""
    if not re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", uuid):
        return ""
    return real_name(uuid) or (fake_name(uuid) if is_fake(uuid) else "")


def text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""


def real_name(uuid: str) -> str:
    for path in sorted(glob.glob(INFORMATION)):
        said: Dict[str, str] = dict(re.findall(r"(?m)^([^:\n]+):[ \t]*(.*?)[ \t]*$", text_of(path)))
        if said.get("GPU UUID") == uuid:
            return said.get("Model", "")
    return ""


def seal(first: bytes) -> int:
    """The last six bytes of a fake GPU's UUID, of the first ten: config/uuid/fake.h."""
    value = 0x66616B6520475055
    for byte in first:
        value = (value ^ byte) * 0x100000001B3 & BITS
        value ^= value >> 29
    return (value ^ value >> 17) & (1 << 48) - 1


def is_fake(uuid: str) -> bool:
    octets = bytes.fromhex(uuid[4:].replace("-", ""))
    return int.from_bytes(octets[10:], "big") == seal(octets[:10])


def mixed(text: str, seed: int) -> int:
    value = 0xCBF29CE484222325 ^ seed
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & BITS
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & BITS
    return value ^ value >> 33


def made_up(text: str) -> str:
    """The first 18 digits that a fake GPU gets of its profile, memory and place: fake/spec/identity.cpp."""
    octets = bytearray(struct.pack("<QQ", mixed(text, 1), mixed(text, 2)))
    octets[6] = octets[6] & 0x0F | 0x40
    octets[8] = octets[8] & 0x3F | 0x80
    digits = octets.hex()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}"


def profiles() -> Iterator[Tuple[str, str, int]]:
    """The fake GPUs that are built in: profile, name, bytes of memory."""
    beside = os.path.dirname(os.path.abspath(__file__))
    for folder in PROFILES:
        for path in sorted(glob.glob(os.path.join(glob.escape(beside), folder, "*.toml"))):
            text = text_of(path)
            name = re.search(r'(?m)^name *= *"([^"\n]*)"', text)
            memory = re.search(r'(?m)^memory *= *"([0-9.]+)(MiB|GiB)"', text)
            if name and memory:
                unit = MIB if memory[2] == "MiB" else MIB << 10
                yield os.path.splitext(os.path.basename(path))[0], name[1], round(float(memory[1]) * unit)


def fake_name(uuid: str) -> str:
    for profile, name, memory in profiles():
        for place in range(MOST_FAKE):
            if uuid.startswith(made_up(f"{profile}/{memory}/{place}")):
                return f"{name} (fake)"
    return ""
