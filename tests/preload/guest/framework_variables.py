# SPDX-License-Identifier: Apache-2.0
# Reads variables as JAX does, when Python starts, and as TensorFlow does, by getenv once cuInit has returned:
# "PREALLOCATE FRACTION GROWTH RESERVE". With words NAME=VALUE (or NAME, to remove it) it changes its environment after
# cuInit and begins anew as a process that inherits the rest.
import ctypes
import os
import sys

jax = [os.environ.get(name, "none") for name in ("XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION")]
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p

if sys.argv[1:]:
    for name, equals, value in (word.partition("=") for word in sys.argv[1:]):
        libc.setenv(name.encode(), value.encode(), 1) if equals else libc.unsetenv(name.encode())
    os.execv(sys.executable, [sys.executable, __file__])

names = (b"TF_FORCE_GPU_ALLOW_GROWTH", b"TF_DEVICE_MIN_SYS_MEMORY_IN_MB")
print(*jax, *((libc.getenv(name) or b"none").decode() for name in names))
