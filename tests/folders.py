# SPDX-License-Identifier: Apache-2.0
"""Folders of tests."""

import shutil
import time


def remove(folder, seconds=60):
    """Removes a folder into which processes of the test still write as they end."""
    end = time.monotonic() + seconds
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
