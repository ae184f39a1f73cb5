# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: each takes memory of every GPU that a package shows it until that is refused,
gives all of it back, takes some again, and tells it as lines of JSON. They know nothing of cuslice.

  {"gpus": [{"name": …, "total": MiB}, …]}                     the GPUs as the package shows them
  {"device": 0, "got": MiB, "error": "…", "oom": true}            what one gave, and what the package raised then
  {"device": 0, "again": MiB}                                     what could be had after all was given back
  {"did": "a kernel", "error": ""}                             what else was tried
  {"failed": "…"}                                              the error that ended the program
"""

import gc
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from telling import MIB, first_words, tell  # noqa: E402

# The one GPU that a package uses, of those that it is shown. Only the program itself can choose a partition.
if "COMPAT_GPU" in os.environ:
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["COMPAT_GPU"]

STEPS = (64, 8)  # MiB
MOST = 8192  # MiB: more than any GPU of these runs has


def main(body):
    """Runs it, and tells the error that it ends with."""
    try:
        body()
    except BaseException as error:  # pylint: disable=broad-except
        tell(failed=first_words(error))
        sys.exit(1)


def fill(gpu, take, oom, give_back=gc.collect, steps=STEPS):
    """`take(bytes)` returns something that holds them; `oom(error)` says whether an error tells of too little memory;
    `give_back()` is called when nothing holds them any more."""
    kept, got, error = [], 0, None
    for step in steps:
        while got < MOST:
            try:
                kept.append(take(step * MIB))
                got += step
            except Exception as caught:  # pylint: disable=broad-except
                # Without its frames, which hold what was taken.
                error = caught.with_traceback(None)
                break
        if error is None or not oom(error):
            break
    tell(device=gpu, got=got, error=first_words(error) if error else "", oom=bool(error) and bool(oom(error)))
    error = None
    kept.clear()
    gc.collect()
    give_back()
    # In blocks as before: a package's own pool may be of regions that it never joins.
    blocks = got // 2 // steps[0]
    if blocks:
        kept = [take(steps[0] * MIB) for _ in range(blocks)]
        tell(device=gpu, again=blocks * steps[0])
        kept.clear()
        give_back()


def attempt(did, call):
    """Tells whether something that needs more than memory came to its end."""
    try:
        call()
        tell(did=did, error="")
    except Exception as error:  # pylint: disable=broad-except
        tell(did=did, error=first_words(error))
