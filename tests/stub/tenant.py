# SPDX-License-Identifier: Apache-2.0
# A program of somebody who shares a machine: takes memory of the GPU, gives rights up, and tries what would change or
# hold up what others have. Answers lines.
import ctypes
import fcntl
import glob
import mmap
import os
import struct
import sys

LEDGERS = "/run/cuslice"
OFD_SETLK = 37

gpu = {}
kept = []  # descriptors, mappings and blocks, as long as it lives


def init():
    cuda = gpu["cuda"] = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    result = cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    return result or cuda.cuCtxSetCurrent(context)


def total():
    size = ctypes.c_size_t()
    return f"{gpu['cuda'].cuDeviceTotalMem_v2(ctypes.byref(size), 0)} {size.value}"


def fill(size):
    result = granted = 0
    while result == 0:
        block = ctypes.c_ulonglong()
        result = gpu["cuda"].cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(int(size)))
        if result == 0:
            granted += 1
            gpu.setdefault("blocks", []).append(block)
    return f"{result} {granted}"


def freeall():
    blocks = gpu.pop("blocks", [])
    return max((gpu["cuda"].cuMemFree_v2(block) for block in blocks), default=0)


def drop(user):
    os.setgroups([])
    os.setresgid(int(user), int(user), int(user))
    os.setresuid(int(user), int(user), int(user))
    return 0


def tried(action, *arguments):
    try:
        action(*arguments)
    except (OSError, ValueError):
        return 0
    return 1


def damage_file(descriptor):
    size = os.fstat(descriptor).st_size
    return sum(
        (
            tried(os.ftruncate, descriptor, 0),
            tried(os.ftruncate, descriptor, size + 4096),
            tried(os.pwrite, descriptor, b"\xff" * 64, 0),
            tried(os.posix_fallocate, descriptor, 0, size + 4096),
            tried(mmap.mmap, descriptor, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE),
        )
    )


def damage():
    """How many ways there were to change what lies in the ledgers' folder, by descriptors that were inherited."""
    changed = 0
    device = os.stat(LEDGERS).st_dev
    for descriptor in range(3, 1024):
        try:
            if os.fstat(descriptor).st_dev != device:
                continue
        except OSError:
            continue
        name = os.readlink(f"/proc/self/fd/{descriptor}") if os.access("/proc/self/fd", os.X_OK) else "?"
        # The file by which this process itself shows that it lives is its own.
        if not name.endswith(".alive"):
            changed += damage_file(descriptor)
    return changed


def hold():
    """Every lock that a reader can take on every file of the folder, for good. How many files could be opened."""
    opened = 0
    lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
    for name in glob.glob(LEDGERS + "/*"):
        for kind in ("process", "open file", "flock", "shared flock", "lease", "mapping"):
            try:
                descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
            except OSError:
                break
            kept.append(descriptor)
            opened += kind == "process"
            if kind == "process":
                tried(fcntl.fcntl, descriptor, fcntl.F_SETLK, lock)
            elif kind == "open file":
                tried(fcntl.fcntl, descriptor, OFD_SETLK, lock)
            elif kind == "flock":
                tried(fcntl.flock, descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            elif kind == "shared flock":
                tried(fcntl.flock, descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            elif kind == "lease":
                tried(fcntl.fcntl, descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            else:
                tried(lambda: kept.append(mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ)))
    return opened


def write_over(name):
    """As many ways to change a file of the folder by its name as there are."""
    changed = tried(os.truncate, name, 0) + tried(os.rename, name, name + ".away") + tried(os.unlink, name)
    for flags in (os.O_RDWR, os.O_WRONLY, os.O_WRONLY | os.O_TRUNC):
        changed += tried(os.open, name, flags)
    return changed


def write_over_others():
    names = [name for name in glob.glob(LEDGERS + "/*") if os.lstat(name).st_uid != os.getuid()]
    return f"{sum(write_over(name) for name in names)} {len(names)}"


def forge(kind):
    """Its user's own ledgers, written over as they lie there."""
    others = [name for name in glob.glob(LEDGERS + "/*.ledger") if os.stat(name).st_uid != os.getuid()]
    done = 0
    for name in glob.glob(LEDGERS + f"/{os.getuid()}-*.ledger"):
        size = os.stat(name).st_size
        if kind == "copied":
            with open(others[0], "rb") as other:
                text = other.read(size)
        elif kind == "claims":
            with open(name, "rb") as own:
                words = own.read(1 << 16)
            # Every number that could be of bytes becomes more than the GPU has.
            text = b"".join(
                struct.pack("Q", 1 << 45) if 1 << 20 <= struct.unpack("Q", word)[0] < 1 << 40 else word
                for word in (words[at : at + 8] for at in range(0, len(words), 8))
            )
        else:
            text = (b"\xff" if kind == "ones" else b"\0") * min(size, 1 << 18)
        with open(name, "r+b") as own:
            own.write(text)
        done += 1
    return done


COMMANDS = {
    "init": init, "retain": lambda gpu: 0, "current": lambda gpu: 0, "total": lambda gpu: total(), "fill": fill, "freeall": freeall, "drop": drop, "damage": damage, "hold": hold,
    "write-over": write_over_others, "forge": forge, "pid": os.getpid,
}  # fmt: skip

for line in sys.stdin:
    command, *arguments = line.split()
    try:
        print(COMMANDS[command](*arguments), flush=True)
    except OSError as error:
        print(f"-1 {error}".replace("\n", " "), flush=True)
