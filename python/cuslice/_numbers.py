# SPDX-License-Identifier: Apache-2.0
"""Numbers that no two living processes of a user have on one GPU, for the identities of their virtual GPUs."""

from __future__ import annotations

import fcntl
import os
import stat
from typing import List, Optional, Sequence

#: A GPU has so many partitions with identities of their own: docs/virtual-gpus.md.
COUNT = 64


def _folder(parent: str) -> str:
    """A folder of this user's alone. Raises RuntimeError where it is another user's, or others can use it."""
    path = os.path.join(parent, f"cuslice-numbers-{os.geteuid()}")
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise RuntimeError(f"cuslice: {path}: not a folder of this user's alone; who owns it, or root, can remove it")
    return path


class GpuNumbers:
    """The number that this process has, on one GPU or several. The kernel gives it back when the process ends."""

    def __init__(self, parent: str) -> None:
        """`parent` is a folder that the user's processes share, and that is emptied when the machine starts."""
        self._parent = parent
        self._files: List[int] = []

    def take(self, gpus: Sequence[str]) -> int:
        """The lowest number that is free on all of these GPUs, which are named as files may be; one that was taken
        before is given back. Raises RuntimeError if there is none, OSError if the folder can't be written."""
        self.give_back()
        folder = _folder(self._parent)
        for gpu in gpus:
            self._files.append(os.open(os.path.join(folder, gpu), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        for number in range(COUNT):
            if self._lock(number):
                return number
        self.give_back()
        raise RuntimeError(f"cuslice: {COUNT} virtual GPUs of this user are in use on GPU {','.join(gpus)} already")

    def _lock(self, number: int) -> bool:
        """A lock on the byte of this number: a process's own, so that no child keeps it."""
        taken: Optional[int] = None
        for place, file in enumerate(self._files):
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            except (BlockingIOError, PermissionError):
                taken = place
                break
        for file in self._files[:taken] if taken is not None else []:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, number)
        return taken is None

    def give_back(self) -> None:
        while self._files:
            os.close(self._files.pop())
