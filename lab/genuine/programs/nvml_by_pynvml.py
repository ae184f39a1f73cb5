# SPDX-License-Identifier: Apache-2.0
"""NVML by NVIDIA's own module for Python, each call that monitoring programs begin with."""
import pynvml


def show(name, *arguments):
    try:
        print(name, getattr(pynvml, name)(*arguments), flush=True)
    except pynvml.NVMLError as error:
        print(name, type(error).__name__, error, flush=True)


for name in "nvmlInit", "nvmlInitWithFlags", "nvmlDeviceGetCount", "nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion", "nvmlShutdown":
    show(name, *([0] if name == "nvmlInitWithFlags" else []))
show("nvmlDeviceGetHandleByIndex", 0)
show("nvmlSystemGetProcessName", 1)
show("nvmlInit")
