# SPDX-License-Identifier: Apache-2.0
"""nvtop, in a terminal, while another process of the same job holds all memory that it gets: what it draws."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

from filling import main, tell
from holding import Holder

SECONDS = 6


def screen(command):
    """What a program draws in a terminal of 200 columns until it is asked to end, without what moves the cursor."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", LINES="50", COLUMNS="200")
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    drawn, end = b"", time.monotonic() + SECONDS
    try:
        while (left := end - time.monotonic()) > 0:
            if select.select([terminal], [], [], left)[0]:
                drawn += os.read(terminal, 1 << 16)
    except OSError:  # it has ended
        pass
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    ended = not os.WIFSIGNALED(status)
    drawn = re.sub(rb"\x1b(\[[0-9;]*m|[()][A-Z0-9])", b"", drawn)  # colours change within words
    text = re.sub(rb"\x1b(\[[0-9;?]*[A-Za-z]|[=>])", b" ", drawn).decode(errors="replace")
    return ended, text


def body():
    with Holder() as (pid, got):
        ended, text = screen([sys.argv[1]])
        if ended:
            raise RuntimeError(f"nvtop ended by itself: {' '.join(text.split())[-300:]}")
        names = re.findall(r"Device \d+ *\[([^]]+)\]", text)
        figures = re.findall(r"([\d.]+)(Mi|Gi)/([\d.]+)(Mi|Gi)", text)
        unit = {"Mi": 1, "Gi": 1024}
        shown = [(float(used) * unit[a], float(total) * unit[b]) for used, a, total, b in figures]
        count = len(got)
        if len(names) < count or len(shown) < count:
            raise RuntimeError(f"nvtop draws {' '.join(text.split())[:300]}")
        tell(gpus=[{"name": name, "total": total} for name, (_, total) in zip(names[:count], shown)])
        for gpu in range(count):
            tell(device=gpu, shown=shown[gpu][0], holds=got[gpu], listed=str(pid) in text)


main(body)
