# SPDX-License-Identifier: Apache-2.0
"""JAX's own options, and cuslice's from outside:

  jax_rows.py CUSLICE PYTHON [ROW…]      a ROW is a function below, without row_

What is held is read from the fake driver's books.
"""

import sys

from checks import check, finish
from slices import DEVICE_FILES, HERE, Slices

MOST_LOST = 300  # MiB that a slice may cost beside its context
T4_MIB, T4_CONTEXT = 15109.75, 104
slices = None


def run(fake, options, *words, **variables):
    """A program of jax_programs.py."""
    return slices.run(fake, options.split(), [HERE / "jax_programs.py", *words], **variables)


def top(seen):
    """The most that was held of any GPU."""
    return round(max(seen.peaks(), default=0), 1)


def row_fraction():
    """XLA_PYTHON_CLIENT_MEM_FRACTION and its newer name, and --fraction."""
    for name in "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION":
        own = run("1xt4", "", "take", **{name: ".4"})
        check(
            top(own) > 0.4 * T4_MIB,
            f"{name}=.4: the context comes on top",
            f"{own.one('pool')} MiB in the pool, {top(own)} held",
        )
        inside = run("1xt4", "--limit 4GiB", "take", **{name: ".5"})
        check(inside.one("pool") == 2048, f"{name}=.5 in a slice of 4 GiB is kept", f"{inside.one('pool')}")
    seen = run("1xt4", "--fraction 0.4", "take")
    check(
        top(seen) <= 0.4 * T4_MIB + 1 and seen.one("pool", 0) >= 0.4 * T4_MIB - T4_CONTEXT - MOST_LOST,
        "--fraction 0.4",
        f"{seen.one('pool')} in the pool, {top(seen)} held",
    )
    seen = run("1xt4", "--limit 4GiB --no-framework-env", "take")
    check(seen.one("pool") == 3072, "--no-framework-env: JAX's own 75% of the slice", f"{seen.one('pool')}")


def row_growth():
    """XLA_PYTHON_CLIENT_PREALLOCATE=false and --allocator growth."""
    own = run("1xt4", "", "steps", "64", "128", "256", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    seen = run("1xt4", "--allocator growth", "steps", "64", "128", "256")
    check(len(own.all("held")) == 5, "the pool grows, and keeps what is deleted", f"{own.all('held')}")
    check(
        max(abs(a[0] - b[0]) for a, b in zip(own.all("held"), seen.all("held"))) <= 64,
        "--allocator growth grows alike",
        f"{seen.all('held')}",
    )


def row_allocators():
    """Each of JAX's allocators fills a slice, and is refused within it."""
    for name, least in ("default", 600), ("platform", 750), ("cuda_async", 700), ("bfc", 600):
        seen = run("1xt4", "--limit 1GiB", "everything", XLA_PYTHON_CLIENT_ALLOCATOR=name)
        check(
            seen.one("got", 0) >= least and top(seen) <= 1024 and "RESOURCE_EXHAUSTED" in seen.one("error", ""),
            f"{name} in 1 GiB",
            f"{seen.one('got')} MiB in arrays, {top(seen)} held, {seen.one('error', '')[:90]}",
        )
    seen = run("1xt4", "--limit 1GiB", "steps", "256", "256", XLA_PYTHON_CLIENT_ALLOCATOR="platform")
    held = [figure[0] for figure in seen.all("held")]
    # A context takes 104 MiB there, and XLA's handles of libraries the little that their modules take.
    taken = [figure - held[0] for figure in held[:3]]
    check(held[0] <= 112 and taken == [0, 256, 512], "platform: nothing is taken before it is needed", f"{held}")


def row_parts():
    """The parts of a split are devices; arrays are laid out over them."""
    for parts in 2, 4:
        seen = run("1xt4", f"--split 0={parts}", "parallel")
        check(
            seen.one("devices") == parts == seen.one("shards") and seen.one("same"),
            f"{parts} parts: an array in shards over them",
            seen.told[:2],
        )
        for name in "pmap", "shard_map", "psum":
            check_ended(seen, name, f"{parts} parts: {name}")
    seen = run("1xt4", "--split 0=4", "take")
    limits = seen.one("limits", [0])
    check(
        len(limits) == 4 and min(limits) >= T4_MIB / 4 - T4_CONTEXT - MOST_LOST,
        "four parts: the pool of each",
        f"{limits}",
    )


def row_operations():
    """What has to be compiled: it ends, or stops at the line that docs/fake-gpu.md names."""
    seen = run("1xt4", "--limit 4GiB", "operations")
    check(len(seen.told) == 11, "all are tried", len(seen.told))
    for line in seen.told:
        check_ended(seen, line["operation"], line["operation"])
    check(NOT_COMPUTED in seen.error, "it is said that results were not computed", last_words(seen))


def row_training():
    """A training loop under jit, whole and in a part: it ends, and says that nothing was computed."""
    for fake, options in ("1xt4", "--limit 1GiB"), ("1xh200", "--limit 4GiB"), ("1xt4", "--split 0=2"):
        seen = run(fake, options, "train")
        check(
            seen.one("steps") == 20 and seen.status == 0 and NOT_COMPUTED in seen.error,
            f"20 steps, {fake} {options}",
            f"{seen.one('error', 'ends')}; {last_words(seen)}",
        )
    seen = run("1xt4", "--limit 1GiB --fake-kernels error", "train")
    check("NOT_SUPPORTED" in seen.one("error", ""), "--fake-kernels error refuses it", seen.one("error", "ends")[:200])


def check_ended(seen, name, what):
    """An operation ends, unless it needs a library that isn't there."""
    error = next((line["error"] for line in seen.told if line.get("operation") == name), "not tried")
    if name in STOPS:
        check(STOPS[name] in error, f"{what} stops by name", error[-160:])
    else:
        check(error == "", f"{what} ends", error[-160:] or "no error")


def last_words(seen):
    """What the fake GPU says at the process's end."""
    return next((line for line in reversed(seen.error.splitlines()) if NOT_COMPUTED in line), "nothing is said of it")


NOT_COMPUTED = "results were not computed"
# cuDNN, cuFFT, cuSOLVER and NCCL
STOPS = {"conv": "CUDNN_STATUS_NOT_SUPPORTED", "fft": "cuFFT", "inv": "cuSolver", "psum": "NCCL"}

if __name__ == "__main__":
    slices = Slices(*sys.argv[1:3], before=DEVICE_FILES)
    for row in sys.argv[3:] or [name[4:] for name in globals() if name.startswith("row_")]:
        print(f"--- {globals()['row_' + row].__doc__}", flush=True)
        globals()["row_" + row]()
    slices.close()
    finish()
