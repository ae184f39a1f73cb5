# SPDX-License-Identifier: Apache-2.0
"""What a framework's check tells its watcher: the Python side of report.h, and of management.h through ctypes."""
import ctypes
import os

MIB = 1 << 20
_socket = int(os.environ.get("CHECK_WATCHER", "-1"))


def tell(key, value):
    line = f"{key} {value}\n".encode()
    os.write(_socket if _socket >= 0 else 1, line)


def held():
    """Says that everything is allocated now, and waits until the watcher has read what it wanted."""
    if _socket < 0:
        return
    tell("held", 1)
    if not os.read(_socket, 1):
        raise SystemExit("the watcher is gone")


def counted():
    """What cuslice counts against the limit on the first GPU that it limits, to the byte; None without cuslice."""

    # Version 2, whose `used` is without what is set aside for the driver.
    class Memory(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint)] + [
            (name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")
        ]

    if not hasattr(ctypes.CDLL("libcuda.so.1"), "cuslice_marker"):
        return None
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device, memory = ctypes.c_void_p(), Memory(version=ctypes.sizeof(Memory) | 2 << 24)
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)):
        return None
    return None if nvml.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(memory)) else memory.used


def take_all(allocate, is_refusal, least=2 * MIB, most=int(os.environ.get("CHECK_MOST", 8192 * MIB))):
    """Allocates blocks of 64 MiB, then ever smaller ones, until even one of `least` bytes is refused. Returns the
    blocks; tells what it got and how it was refused."""
    blocks, got, refusal = [], 0, "not refused"
    size = 64 * MIB
    while size >= least:
        while got + size <= most:
            try:
                blocks.append(allocate(size))
            except Exception as error:  # each framework has a class of its own
                if not is_refusal(error):
                    raise
                refusal = type(error).__name__
                break
            got += size
        size //= 2
    tell("got", got)
    tell("refused", refusal)
    used = counted()
    if used is not None:
        tell("counted", used)
    return blocks


def finish(problems, left_out=""):
    """`problems`: what was wrong, as texts; none is right. `left_out`: what could not be tried here, and why."""
    problems = [p for p in problems if p]
    right = f"right ({left_out})" if left_out else "right"
    tell("result", "wrong: " + "; ".join(problems) if problems else right)
    raise SystemExit(1 if problems else 0)
