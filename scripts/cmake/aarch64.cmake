# SPDX-License-Identifier: Apache-2.0
# The toolchain of the preset aarch64: Debian's cross compiler, and qemu-user for what the build runs of itself.
# scripts/test_aarch64.sh uses it.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Its C library lies outside the folders where an aarch64 machine has it.
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64-static;-L;/usr/aarch64-linux-gnu")
