# SPDX-License-Identifier: Apache-2.0
"""A worker_process_setup_hook of a user's: it runs when no GPU is leased yet."""

import os


def setup():
    os.environ["SEEN_BY_HOOK"] = os.environ.get("CUSLICE_GPUS", "")
