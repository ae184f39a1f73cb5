# SPDX-License-Identifier: Apache-2.0
"""The recipes of the pages about TensorFlow's GPU options: TensorFlow's own option, and cuslice from outside.

  tensorflow_rows.py CUSLICE PYTHON [ROW…]      a ROW is a function below, without row_

What is held is read from the fake driver's books.
"""

import subprocess
import sys
import time

from checks import check, finish
from slices import HERE, Slices

LIBRARY_PART, MOST_LOST = (
    192,
    300,
)  # MiB: what is left to libraries at most, and what a slice may cost beside its context
CONTEXT = {"1xlaptop-2g": 300, "1xt4": 104, "1xh200": 520}  # MiB
slices = None


def run(fake, options, *words, **variables):
    """A program of tensorflow_programs.py."""
    return slices.run(fake, options.split(), [HERE / "tensorflow_programs.py", *words], **variables)


def pool(seen):
    """What TensorFlow's pools took of the GPUs, in MiB."""
    return [round(size, 1) for size in seen.all("pool")]


def top(seen):
    """The most that was held of any GPU."""
    return round(max(seen.peaks(), default=0), 1)


def row_everything():
    """R1: nearly all of every visible GPU; and a slice of it, of which hardly anything is lost."""
    own = run("1xlaptop-2g", "", "take")
    check(top(own) > 0.85 * 2002, "as it is, TensorFlow takes nearly all", f"{pool(own)} MiB, {top(own)} of 2002 held")
    for fake, limit in ("1xlaptop-2g", 1024), ("1xt4", 4096), ("1xh200", 2048), ("1xh200", 2650):
        seen = run(fake, f"--limit {limit}MiB", "take")
        least = limit - CONTEXT[fake] - MOST_LOST
        check(
            pool(seen)[0] >= least and top(seen) <= limit,
            f"{fake} --limit {limit}MiB: {least} MiB or more for tensors",
            f"{pool(seen)}, {top(seen)} held",
        )


def row_fraction():
    """R2: per_process_gpu_memory_fraction, and --fraction or --limit."""
    for fake, total in ("1xlaptop-2g", 2002), ("1xt4", 15109):
        own = run(fake, "", "session", "gpu_options { per_process_gpu_memory_fraction: 0.4 }")
        seen = run(fake, "--fraction 0.4", "take")
        check(
            top(own) > 0.4 * total,
            f"{fake}: a fraction of 0.4 in the program is more of the GPU",
            f"{top(own)} of {total} held",
        )
        check(
            top(seen) <= 0.4 * total + 1,
            f"{fake}: --fraction 0.4 is not",
            f"{top(seen)} held, {pool(seen)} for tensors",
        )
        least = 0.4 * total - CONTEXT[fake] - MOST_LOST
        check(pool(seen)[0] >= least, f"{fake}: and leaves TensorFlow {least:.0f} MiB or more", f"{pool(seen)}")
        limit = int(0.4 * total)
        same = run(fake, f"--limit {limit}MiB+context", "take")
        check(
            pool(same)[0] >= limit - 1 and top(same) <= limit + CONTEXT[fake] + 1,
            f"{fake}: --limit {limit}MiB+context is as TensorFlow's 0.4",
            f"{top(same)} held, {pool(same)} for tensors",
        )


def row_three_processes():
    """R3: two at 0.4 fit, three don't."""
    words = [HERE / "tensorflow_programs.py", "session", "", "64", "60"]
    first = [
        subprocess.Popen(
            **slices.start("1xt4", ["--fraction", "0.4"], words), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    for program in first:
        while '"largest"' not in program.stdout.readline():
            pass
    third = run("1xt4", "--fraction 0.4", "take")
    for program in first:
        program.kill()
        program.communicate()
    time.sleep(1)
    check(
        third.status == 75 and "--wait" in third.error,
        "the third of three at 0.4 is refused before it starts",
        f"exit {third.status}: {third.error.strip().splitlines()[-1][:160] if third.error.strip() else ''}",
    )


def row_each_gpu():
    """R4: the fraction is one for all GPUs."""
    own = run("2xt4", "", "session", "gpu_options { per_process_gpu_memory_fraction: 0.4 }")
    seen = run("2xt4", "--limit 0=4GiB,1=8GiB --gpus 1,0", "take")
    check(len(set(own.one("limits"))) == 1, "TensorFlow's fraction is the same on all", own.one("limits"))
    check(
        7000 < pool(seen)[0] < 8192 and 3000 < pool(seen)[1] < 4096, "--limit 0=4GiB,1=8GiB --gpus 1,0", f"{pool(seen)}"
    )


def row_growth():
    """R5, R6, R7: growth, alone, with a limit, and on one GPU."""
    own = run("1xlaptop-2g", "", "growth")
    seen = run("1xlaptop-2g", "--allocator growth", "growth", "unset")
    check(
        own.all("held") == seen.all("held") and len(own.all("held")) == 5,
        "growth is the same to the MiB",
        f"{own.all('held')}, {seen.all('held')}",
    )
    alone = run("1xlaptop-2g", "--allocator growth --no-framework-env", "growth", "unset")
    check(
        min(sum(alone.all("held"), [])) > 1500,
        "--no-framework-env: TensorFlow takes its pool at once",
        f"{alone.all('held')}",
    )
    both = run("1xlaptop-2g", "--limit 1024MiB --allocator growth", "growth", "unset")
    check(top(both) <= 1024, "growth and a limit", f"{both.all('held')}")
    own = run("2xt4", "", "growth", "first")
    check("cannot differ" in own.one("error", ""), "TensorFlow: growth is the same for all GPUs", own.one("error"))
    seen = run("2xt4", "--allocator 0=growth", "growth", "unset")
    check(max(seen.one("held", [9999])) < 200, "--allocator 0=growth: it grows on all GPUs", f"{seen.all('held')}")


def row_choice():
    """R8, R9: which GPUs, and in which order."""
    fake = "1xt4,1xl4,1xa100-40g"
    for what, seen, want in (
        (
            "CUDA_VISIBLE_DEVICES=1,0",
            run(fake, "", "names", CUDA_VISIBLE_DEVICES="1,0", CUDA_DEVICE_ORDER="PCI_BUS_ID"),
            ["NVIDIA L4", "Tesla T4"],
        ),
        ("--gpus 1,0", run(fake, "--gpus 1,0", "names"), ["NVIDIA L4", "Tesla T4"]),
        ("0, set by the program under --gpus 1,0", run(fake, "--gpus 1,0", "choose", "0"), ["NVIDIA L4"]),
        (
            "1, set by the program under --split 1=3 --gpus 1",
            run(fake, "--split 1=3 --gpus 1", "choose", "1"),
            ["NVIDIA L4"],
        ),
        ("--gpus with an empty list", slices.run(fake, ["--gpus", ""], [HERE / "tensorflow_programs.py", "names"]), []),
    ):
        check(seen.one("names") == want, what, f"{seen.one('names')}")
    own = run("2xt4", "", "visible", "1")
    check(
        own.one("devices") == 1 and len(own.one("held")) == 1,
        "set_visible_devices opens one of two GPUs",
        own.one("held"),
    )
    own = run("2xt4", "", "session", 'gpu_options { visible_device_list: "1,0" }')
    check(len(own.one("limits")) == 2, "visible_device_list", own.one("limits"))
    wrong = run("2xt4", "--gpus 1,2", "names")
    check(
        wrong.status == 78,
        "--gpus of a GPU that isn't there is refused",
        wrong.ours()[-1][:120] if wrong.ours() else wrong.status,
    )


def row_logical():
    """R10, R11, R12: logical devices, parts, and logical devices in a slice."""
    own = run("1xlaptop-2g", "", "limits", "1024")
    seen = run("1xlaptop-2g", "--limit 1024MiB", "take")
    check(top(own) >= 1300, "memory_limit=1024: the context comes on top", f"{top(own)} held")
    check(top(seen) <= 1024, "--limit 1024MiB: it doesn't", f"{top(seen)} held, {pool(seen)} for tensors")
    beside = run("1xlaptop-2g", "--limit 1024MiB+context", "take")
    check(
        pool(beside)[0] >= pool(own)[0] and top(beside) <= top(own),
        "--limit 1024MiB+context: as memory_limit=1024, all of it for tensors",
        f"{pool(beside)} of {pool(own)}, {top(beside)} of {top(own)} held",
    )
    own = run("1xlaptop-2g", "", "limits", "1024", "1024")
    check(
        own.created() == [1024, 1024] and pool(own)[1] < 700,
        "two logical devices of 1024 are promised, and not there",
        f"created {own.created()}, got {pool(own)}",
    )
    own = run("1xlaptop-2g", "", "limits", "2048", "2048")
    check(
        pool(own)[1] < 100,
        "of two of 2048, the second has hardly anything",
        f"created {own.created()}, got {pool(own)}",
    )
    seen = run("1xlaptop-2g", "--split 0=2048MiB+2048MiB", "take")
    check(
        seen.status == 78, "--split 0=2048MiB+2048MiB is refused", seen.ours()[-1][:120] if seen.ours() else seen.status
    )
    seen = run("1xh200", "--limit 4GiB", "limits", "1024", "1024")
    check(
        pool(seen) == [1024, 1024],
        "logical devices in a slice that has room for them",
        f"{pool(seen)}, {top(seen)} held",
    )
    seen = run("1xt4", "--limit 1GiB", "limits", "1024")
    check(
        top(seen) <= 1024 and seen.ours(),
        "one of 1024 in a slice of 1024",
        f"{pool(seen)}, {top(seen)} held, {len(seen.ours())} lines",
    )


def row_parts():
    """R13: one GPU as many. Equal parts are equal, and lose at most 300 MiB."""
    for fake, options, share in (
        ("1xh200", "--limit 24GiB --split 0=8", 3072),
        ("1xlaptop-2g", "--split 0=2", 1000 - 300 // 2),  # less its share of the context
        ("1xt4", "--split 0=3", 5036),
    ):
        seen = run(fake, options, "take")
        got = pool(seen)
        check(len(got) == seen.one("devices") and seen.status == 0, f"{fake} {options}: TensorFlow's devices", len(got))
        check(
            min(got) >= share - MOST_LOST,
            f"{fake} {options}: each part gives its share - {MOST_LOST} MiB, or more",
            f"{got}",
        )
        check(
            max(got) - min(got) <= 2,
            f"{fake} {options}: equal parts differ by 2 MiB at most",
            f"{max(got) - min(got):.1f}",
        )


def row_mirrored():
    """R14: MirroredStrategy, on TensorFlow's own logical devices and on parts."""
    own = run("1xt4", "", "mirrored", "one", "2048", "2048")
    check(own.one("sums") == 2, "ReductionToOneDevice on two logical devices", own.told)
    for how in "hierarchical", "one":
        for parts in 1, 2, 3:
            seen = run("1xt4", f"--split 0={parts}" if parts > 1 else "--limit 4GiB", "mirrored", how)
            check(
                seen.one("sums") == parts == seen.one("replicas") == len(seen.one("places", [])),
                f"MirroredStrategy, {how}, {parts} virtual GPUs",
                f"{seen.one('places')} {seen.one('error', '')}",
            )
    seen = run("1xt4", "--split 0=2", "mirrored", "default")
    check(
        "NCCL" in seen.one("error", ""),
        "as it is, it chooses NCCL, which the fake GPU doesn't have",
        seen.one("error", "no error")[:160],
    )


def row_towers():
    """R15, R16: devices by name, the placement log, and soft placement."""
    for parts in 1, 2, 3:
        seen = run("1xt4", f"--split 0={parts}" if parts > 1 else "--limit 4GiB", "towers")
        places = seen.one("places", [])
        check(
            [place[-1] for place in places] == [str(number) for number in range(parts)] and seen.one("same"),
            f"variables and copies on {parts} virtual GPUs by name",
            f"{places}",
        )
        check(all(f"GPU:{number}" in seen.error for number in range(parts)), "the placement log names them", f"{parts}")
    seen = run("1xt4", "--limit 4GiB", "soft")
    check(
        "InvalidArgumentError" in seen.told[0].get("error", "") and seen.told[1].get("result") == "ab",
        "soft placement is as without a slice",
        seen.told[1],
    )


def row_wrong_words():
    """R17: a wrong word is an error, here and there."""
    seen = run("1xt4", "", "wrong_field")
    check("allow_grouth" in seen.one("error", ""), "ConfigProto(allow_grouth=True)", seen.one("error"))
    seen = run("1xt4", "--allocator grouth", "names")
    check(seen.status == 78, "--allocator grouth", seen.ours()[-1][:120] if seen.ours() else seen.status)


def row_libraries():
    """R18: what needs NVIDIA's libraries stops at a line of TensorFlow's, and the rest ends."""
    seen = run("1xt4", "--limit 4GiB", "operations")
    errors = {line["operation"]: line["error"] for line in seen.told}
    for name in "add", "cast", "zeros", "relu", "reduce_sum", "random", "sort", "matmul", "softmax", "jit":
        check(errors.get(name) == "", f"{name} ends", errors.get(name))
    for name, says in ("conv2d", "CUDNN_STATUS_NOT_SUPPORTED"), ("fft", "cuFFT"):
        check(says in errors.get(name, ""), f"{name} stops", errors.get(name))
    check(
        "cuslice fake GPU: cudnnBackendCreateDescriptor is not supported" in seen.error,
        "what cuDNN lacks is named",
        [line for line in seen.error.splitlines() if "cudnn" in line and line.startswith("cuslice fake GPU:")],
    )
    check(
        "kernels are checked, not run" in seen.error,
        "it is said that kernels were skipped",
        [line[:160] for line in seen.error.splitlines() if line.startswith("cuslice fake GPU:") and "kernel" in line],
    )


# GPUOptions' other fields: each ends, and holds no more than the slice.
FIELDS = (
    "allocator_type: 'BFC'",
    "deferred_deletion_bytes: 1048576",
    "polling_active_delay_usecs: 10",
    "polling_inactive_delay_msecs: 1",
    "force_gpu_compatible: true",
    "per_process_gpu_memory_fraction: 0.9",
    "experimental { num_virtual_devices_per_gpu: 2 }",
    "experimental { use_unified_memory: true }",
    "per_process_gpu_memory_fraction: 2.0",
    "experimental { num_dev_to_dev_copy_streams: 2 }",
    "experimental { collective_ring_order: '0' }",
    "experimental { timestamped_allocator: true }",
    "experimental { timestamped_allocator: true kernel_tracker_max_interval: 8 kernel_tracker_max_bytes: 1024 "
    "kernel_tracker_max_pending: 8 }",
    "experimental { internal_fragmentation_fraction: 0.1 }",
    "experimental { use_cuda_malloc_async: true }",
    "experimental { disallow_retry_on_allocation_failure: true }",
    "experimental { gpu_host_mem_limit_in_mb: 64 }",
    "experimental { gpu_host_mem_disallow_growth: true }",
    "experimental { gpu_system_memory_size_in_mb: 100 }",
    "experimental { populate_pjrt_gpu_client_creation_info: true }",
    "experimental { node_id: 0 }",
    "experimental { stream_merge_options { merge_host_to_device_stream: true } }",
    "experimental { virtual_devices { memory_limit_mb: 1024 memory_limit_mb: 1024 priority: 0 priority: -1 } }",
    "experimental { virtual_devices { memory_limit_mb: 256 memory_limit_mb: 512 device_ordinal: 2 device_ordinal: 1 } }",
)


def row_fields():
    """Every other field of GPUOptions, in a slice."""
    for field in FIELDS:
        seen = run("1xt4", "--limit 4GiB", "session", "gpu_options { " + field + " }")
        check(
            seen.status == 0 and seen.one("largest") == 64 and top(seen) <= 4096,
            field,
            f"limits {seen.one('limits')}, {top(seen)} held {seen.one('error', '')}",
        )
    seen = run("2xt4", "--limit 4GiB", "session", "device_count { key: 'GPU' value: 1 }")
    check(len(seen.one("limits", [])) == 1, "device_count", f"{seen.one('limits')}, held {seen.one('held')}")
    for name, value in (
        ("TF_GPU_ALLOCATOR", "cuda_malloc_async"),
        ("TF_PER_DEVICE_MEMORY_LIMIT_MB", "512"),
        ("TF_FORCE_UNIFIED_MEMORY", "1"),
        ("TF_GPU_HOST_MEM_LIMIT_IN_MB", "64"),
    ):
        seen = run("1xt4", "--limit 4GiB", "session", "", **{name: value})
        check(
            seen.status == 0 and top(seen) <= 4096, f"{name}={value}", f"limits {seen.one('limits')}, {top(seen)} held"
        )
    for value, least in ("0", 3900), ("500", 3400):
        seen = run("1xt4", "--limit 4GiB", "take", TF_DEVICE_MIN_SYS_MEMORY_IN_MB=value)
        check(least <= pool(seen)[0] <= least + 150, f"TF_DEVICE_MIN_SYS_MEMORY_IN_MB={value} is kept", f"{pool(seen)}")


def row_training():
    """A training loop by hand ends, eager, as a graph and compiled by XLA."""
    for options in "--limit 4GiB", "--split 0=2":
        check_training(run("1xt4", options, "train"), "steps", 15, f"a training loop, {options}")


def row_keras():
    """Keras' simplest example on one GPU, where XLA compiles it, and on the parts of a split, where it doesn't: it ends."""
    for options, how in ("--limit 4GiB", ()), ("--split 0=2", ("one",)), ("--split 0=3", ("hierarchical",)):
        seen = run("1xt4", options, "fit", *how)
        check(seen.one("built") and top(seen) <= 15109, f"a model, {options} {' '.join(how)}", f"{top(seen)} held")
        check_training(seen, "epochs", 2, f"fit, {options} {' '.join(how)}")


def check_training(seen, key, count, what):
    """It came to its end, and it is said there that nothing was computed."""
    said = [line for line in seen.error.splitlines() if "results were not computed" in line]
    check(
        seen.one(key) == count and seen.status == 0 and len(said) == 1,
        what,
        f"{'ends' if seen.one(key) == count else seen.one('error', 'no error')[-200:]}; {said}",
    )


if __name__ == "__main__":
    slices = Slices(*sys.argv[1:3])
    for row in sys.argv[3:] or [name[4:] for name in globals() if name.startswith("row_")]:
        print(f"--- {globals()['row_' + row].__doc__}", flush=True)
        globals()["row_" + row]()
    slices.close()
    finish()
