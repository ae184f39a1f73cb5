# SPDX-License-Identifier: Apache-2.0
"""Warp: arrays on each GPU, and a kernel."""

from filling import MIB, attempt, fill, main, tell


def body():
    import warp

    @warp.kernel
    def double(values: warp.array(dtype=float)):
        values[warp.tid()] = values[warp.tid()] * 2.0

    warp.init()
    gpus = warp.get_cuda_devices()
    tell(gpus=[{"name": gpu.name, "total": gpu.total_memory / MIB} for gpu in gpus])
    for number, gpu in enumerate(gpus):
        fill(
            number,
            lambda size: warp.empty(size, dtype=warp.uint8, device=gpu),
            lambda error: "allocate" in str(error) or "memory" in str(error),
        )
        attempt("a kernel", lambda: warp.launch(double, dim=32, inputs=[warp.empty(32, dtype=float, device=gpu)], device=gpu))


main(body)
