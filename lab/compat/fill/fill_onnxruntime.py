# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime: values on each GPU, and a model of one addition."""

import ctypes

from filling import attempt, fill, main, tell


def body():
    import numpy
    import onnx
    import onnxruntime

    onnxruntime.preload_dlls()
    shape = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in ("x", "y")]
    node = onnx.helper.make_node("Add", ["x", "x"], ["y"])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "sum", shape[:1], shape[1:]), ir_version=8,
                                   opset_imports=[onnx.helper.make_opsetid("", 17)])  # fmt: skip
    # It lists no GPUs by itself, but takes their numbers.
    cuda, found = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(found)):
        raise RuntimeError("no GPU")
    tell(gpus=[{}] * found.value)
    for gpu in range(found.value):
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")

        def session():
            made = onnxruntime.InferenceSession(
                model.SerializeToString(),
                options,
                providers=[("CUDAExecutionProvider", {"device_id": gpu, "arena_extend_strategy": "kSameAsRequested"})],
            )
            if "CUDAExecutionProvider" not in made.get_providers():
                raise RuntimeError(f"the session falls back to {made.get_providers()}")
            made.run(None, {"x": numpy.ones(4, numpy.float32)})

        attempt("a session", session)
        fill(
            gpu,
            lambda size: onnxruntime.OrtValue.ortvalue_from_shape_and_type([size], numpy.uint8, "cuda", gpu),
            lambda error: "allocate memory" in str(error) or "out of memory" in str(error),
        )


main(body)
