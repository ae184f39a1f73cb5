# SPDX-License-Identifier: Apache-2.0
"""cuda.core: buffers of each GPU's own memory resource, and a kernel that NVRTC compiles."""

from filling import MIB, attempt, fill, main, tell


def body():
    from cuda.bindings import driver
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    gpus = Device.get_all_devices()
    shown = []
    for gpu in gpus:
        gpu.set_current()
        shown.append({"name": gpu.name, "total": driver.cuDeviceTotalMem(gpu.device_id)[1] / MIB})
    tell(gpus=shown)
    for number, gpu in enumerate(gpus):
        gpu.set_current()
        stream = gpu.create_stream()
        fill(
            number,
            lambda size: gpu.allocate(size, stream=stream),
            lambda error: "OUT_OF_MEMORY" in str(error),
            stream.sync,
        )

        def compiled():
            options = ProgramOptions(arch=f"sm_{gpu.arch}")
            program = Program('extern "C" __global__ void nothing() {}', code_type="c++", options=options)
            kernel = program.compile("cubin", name_expressions=("nothing",)).get_kernel("nothing")
            launch(stream, LaunchConfig(grid=1, block=32), kernel)
            stream.sync()

        attempt("a kernel", compiled)


main(body)
