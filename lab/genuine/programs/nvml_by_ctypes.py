# SPDX-License-Identifier: Apache-2.0
"""NVML as PyTorch asks it for the number of GPUs: by ctypes, nvmlInit first, and without a GPU it goes on without NVML."""
import ctypes

library = ctypes.CDLL("libnvidia-ml.so.1")
count = ctypes.c_int(-1)
for name, arguments in ("nvmlInit", ()), ("nvmlDeviceGetCount_v2", (ctypes.byref(count),)), ("nvmlInit", ()):
    print(name, getattr(library, name)(*arguments), count.value, flush=True)
