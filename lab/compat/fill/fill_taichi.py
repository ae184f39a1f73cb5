# SPDX-License-Identifier: Apache-2.0
"""Taichi: arrays on the one GPU that it uses. It loads its core with RTLD_DEEPBIND."""

from filling import attempt, fill, main, tell


def body():
    import taichi

    taichi.init(arch=taichi.cuda, offline_cache=False)
    if taichi.lang.impl.current_cfg().arch != taichi.cuda:
        raise RuntimeError("taichi.init(arch=taichi.cuda) falls back to the CPU")
    tell(gpus=[{}])

    @taichi.kernel
    def nothing(values: taichi.types.ndarray()):
        for place in values:
            values[place] = 1

    fill(
        0,
        lambda size: taichi.ndarray(taichi.u8, shape=(size,)),
        lambda error: "OUT_OF_MEMORY" in str(error) or "out of memory" in str(error).lower(),
        taichi.sync,
    )
    attempt("a kernel", lambda: (nothing(taichi.ndarray(taichi.u8, shape=(32,))), taichi.sync()))


main(body)
