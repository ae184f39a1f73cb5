"""Folders of tests."""

import shutil
import time


def remove(folder, seconds=60):
    """Removes a folder into which processes of the test still write as they end."""
    end = time.monotonic() + seconds
    while True:
        try:
            return shutil.rmtree(folder)
        except FileNotFoundError:
            if not folder.exists():
                return None
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(0.05)
