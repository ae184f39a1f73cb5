// SPDX-License-Identifier: Apache-2.0
/* A program with a section for device code, as nvcc makes it. */
__attribute__((section(".nv_fatbin"), used)) static const char device_code[16] = "device code";

int main(void) { return 0; }
