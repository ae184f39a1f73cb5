# SPDX-License-Identifier: Apache-2.0
"""The library's lines as records of `logging`."""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
import threading
from types import TracebackType
from typing import Optional, Type, Union

from cuslice._launcher import ask, rows

_REFUSAL = re.compile(r"out of memory on GPU (\d+) \(.*?\): (\w+) tried to allocate ")


class LogForwarder:
    """Reads the file of the library's lines until stop() is called. A context manager, too."""

    def __init__(self, path: str, logger: logging.Logger, others: int, folder: Optional[str], interval: float) -> None:
        self.path = path
        self._logger = logger
        self._others = others
        self._folder = folder
        self._interval = interval
        self._rest = b""
        self._place = os.path.getsize(path) if os.path.exists(path) else 0
        self._reading = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cuslice-log", daemon=True)
        self._thread.start()

    def poll(self) -> None:
        """Makes records of what has been written until now. May be called from any thread."""
        with self._reading:
            try:
                with open(self.path, "rb") as file:
                    file.seek(self._place)
                    new = file.read()
            except FileNotFoundError:
                return
            self._place += len(new)
            *lines, self._rest = (self._rest + new).split(b"\n")
            for line in lines:
                self._record(line.decode(errors="replace"))

    def stop(self) -> None:
        """Makes records of the rest, and ends the reading. Lines that come later are lost."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._thread.join()
        self.poll()
        if self._folder is not None:
            os.environ.pop("CUSLICE_LOG", None)
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> "LogForwarder":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            self.poll()

    def _record(self, line: str) -> None:
        text = line[9:] if line.startswith("cuslice: ") else line
        refusal = _REFUSAL.match(text)
        if refusal:
            extra = {"gpu": int(refusal.group(1)), "function": refusal.group(2)}
            self._logger.warning("%s", text, extra=extra)
        elif text:
            self._logger.log(self._others, "%s", text)


def forward_log(
    logger: Union[str, logging.Logger] = "cuslice", *, level: str = "warn", interval: float = 0.2
) -> LogForwarder:
    """From now on, what the library says becomes records of `logger` instead of lines on stderr.

    Call it before the process starts CUDA: the library looks then where its log is. Child processes that are started
    afterwards are forwarded too. `level` is that of the key `log`: "warn", "info" or "debug". A refusal is a WARNING,
    with the attributes `gpu` (as CUDA counts it) and `function` (such as "cuMemAlloc_v2"); any other line has the
    level that is asked for, of `logging`. A thread looks for new lines each `interval` seconds.

    Where the log is set to a file already, that one is read from its end on, with whatever others write there. Raises
    RuntimeError where an option of `cuslice run` sends it to stderr: an option can't be overruled from inside.
    """
    if level not in ("warn", "info", "debug"):
        raise ValueError(f"level: {level}: warn, info or debug")
    others = {"warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}[level]
    target = logging.getLogger(logger) if isinstance(logger, str) else logger
    setting = next(row for row in rows(ask(["config", "--json"]), "settings") if row["key"] == "log")
    before, _, path = str(setting["value"] or "").partition(":")
    if path:
        return LogForwarder(path, target, others, None, interval)
    if setting["source"] == "flag":
        raise RuntimeError(f"{setting['origin']} {before} sends the log to stderr: leave it out, or add a file to it")
    folder = tempfile.mkdtemp(prefix="cuslice-log-")
    path = os.path.join(folder, "log")
    os.environ["CUSLICE_LOG"] = f"{level}:{path}"
    return LogForwarder(path, target, others, folder, interval)
