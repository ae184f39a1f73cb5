# SPDX-License-Identifier: Apache-2.0
"""DALI: tensors that are copied to each GPU."""

from filling import MIB, fill, main, tell


def body():
    import numpy
    from cuda.bindings import driver
    from nvidia.dali import fn, pipeline_def

    driver.cuInit(0)
    count = driver.cuDeviceGetCount()[1]
    tell(gpus=[{"total": driver.cuDeviceTotalMem(gpu)[1] / MIB} for gpu in range(count)])
    for gpu in range(count):

        def take(size):
            @pipeline_def(batch_size=1, num_threads=1, device_id=gpu, prefetch_queue_depth=1)
            def copied():
                return fn.external_source(lambda: [numpy.empty(size, numpy.uint8)]).gpu()

            pipeline = copied()
            pipeline.build()
            return pipeline, pipeline.run()

        fill(gpu, take, lambda error: "Can't allocate" in str(error), steps=(64,))


main(body)
