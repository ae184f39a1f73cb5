# SPDX-License-Identifier: Apache-2.0
"""RMM: its device buffers, on the first GPU and on the others."""

from filling import MIB, fill, main, tell


def body():
    import rmm
    from cuda.bindings import driver

    driver.cuInit(0)
    count = driver.cuDeviceGetCount()[1]
    tell(gpus=[{"total": driver.cuDeviceTotalMem(gpu)[1] / MIB} for gpu in range(count)])
    rmm.reinitialize(pool_allocator=False, devices=list(range(count)))
    for gpu in range(count):
        driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(gpu)[1])
        fill(gpu, lambda size: rmm.DeviceBuffer(size=size), lambda error: isinstance(error, MemoryError))


main(body)
