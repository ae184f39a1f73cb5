// SPDX-License-Identifier: Apache-2.0
/* A driver with a GPU and an NVML, as much as the launcher asks. Each fails as a variable has it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int number_of(const char* variable) {
    const char* const value = getenv(variable);
    return value ? atoi(value) : 0;
}

EXPORT int cuInit(unsigned flags) { return (void)flags, number_of("STUB_CUINIT"); }
EXPORT int cuGetErrorName(int error, const char** name) {
    *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : error == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : 0;
    return 0;
}
/* As many as a variable has it, of which CUDA_VISIBLE_DEVICES leaves the one whose number it begins with. */
EXPORT int cuDeviceGetCount(int* count) {
    const char* const visible = getenv("CUDA_VISIBLE_DEVICES");
    const int there = getenv("STUB_GPUS") ? number_of("STUB_GPUS") : 1;
    const int known = !visible || (visible[0] >= '0' && visible[0] <= '9' && atoi(visible) < there);
    *count = !known ? 0 : visible ? 1 : there;
    return *count == 0 ? 100 : 0;
}
EXPORT int cuDeviceGet(int* device, int ordinal) { return *device = number_of("CUDA_VISIBLE_DEVICES") + ordinal, 0; }
EXPORT int cuDeviceGetName(char* name, int size, int device) {
    return (void)device, snprintf(name, (size_t)size, "Stub"), 0;
}
EXPORT int cuDeviceGetUuid_v2(void* uuid, int device) { return memset(uuid, 0x50 + device, 16), 0; }
EXPORT int cuDeviceGetPCIBusId(char* text, int size, int device) {
    return snprintf(text, (size_t)size, "0000:8%d:00.0", device), 0;
}
EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int device) { return (void)device, *bytes = (size_t)8 << 30, 0; }

EXPORT int nvmlInit_v2(void) {
    if (getenv("STUB_NVML_HANGS"))
        sleep(60);
    return number_of("STUB_NVML");
}
EXPORT const char* nvmlErrorString(int error) {
    return error == 18 ? "Driver/library version mismatch" : "Unknown Error";
}
EXPORT int nvmlDeviceGetCount_v2(unsigned* count) { return *count = 0, 0; }
