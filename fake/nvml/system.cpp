// SPDX-License-Identifier: Apache-2.0
// The library itself and the machine.

#include <cstdio>

#include "fake/nvml/answer.h"
#include "fake/spec/machine.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

struct Meaning {
    nvmlReturn_t code;
    const char* text;
};
constexpr Meaning kMeanings[] = {
    {NVML_SUCCESS, "The operation was successful"},
    {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
    {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
    {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
    {NVML_ERROR_ALREADY_INITIALIZED, "Already Initialized"},
    {NVML_ERROR_NOT_FOUND, "Not Found"},
    {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    {NVML_ERROR_INSUFFICIENT_POWER, "Insufficient External Power"},
    {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {NVML_ERROR_TIMEOUT, "Timeout"},
    {NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue"},
    {NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
    {NVML_ERROR_CORRUPTED_INFOROM, "Corrupted infoROM"},
    {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
    {NVML_ERROR_RESET_REQUIRED, "GPU requires restart"},
    {NVML_ERROR_OPERATING_SYSTEM, "The operating system has blocked the request."},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "RM has detected an NVML/RM version mismatch."},
    {NVML_ERROR_IN_USE, "In use by another client"},
    {NVML_ERROR_MEMORY, "Insufficient Memory"},
    {NVML_ERROR_NO_DATA, "No data"},
    {NVML_ERROR_VGPU_ECC_NOT_SUPPORTED,
     "The requested vgpu operation is not available on target device, because ECC is enabled"},
    {NVML_ERROR_INSUFFICIENT_RESOURCES, "Ran out of critical resources, other than memory"},
    {NVML_ERROR_FREQ_NOT_SUPPORTED, "Frequency not supported"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "The provided version is invalid/unsupported"},
    {NVML_ERROR_DEPRECATED, "The requested functionality has been deprecated"},
    {NVML_ERROR_NOT_READY, "The system is not ready for the request"},
    {NVML_ERROR_GPU_NOT_FOUND, "No GPUs were found"},
    {NVML_ERROR_INVALID_STATE, "Resource not in correct state to perform requested operation"},
    {NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, "Reset not supported for given device/parameters"},
    {NVML_ERROR_UNKNOWN, "Unknown Error"},
};

nvmlReturn_t started() { return nvml_state().started() ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED; }

/// The CUDA release before the driver's version.
std::string nvml_version() {
    return std::to_string(driver_spec().release_cuda_version() / 1000) + "." + driver_spec().version;
}

nvmlReturn_t give_cuda_version(int* version) {
    if (version == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = driver_spec().cuda_version();  // documented to work before nvmlInit
    return NVML_SUCCESS;
}

}  // namespace

CUSLICE_NVML(nvmlInit) { return nvmlInit_v2(); }
CUSLICE_NVML(nvmlInit_v2) { return nvmlInitWithFlags(0); }
CUSLICE_NVML(nvmlInitWithFlags, flags) { return answered(nvml_state().start(flags)); }
CUSLICE_NVML(nvmlShutdown) { return nvml_state().stop(); }

const char* nvmlErrorString(nvmlReturn_t code) {
    for (const Meaning& meaning : kMeanings) {
        if (meaning.code == code)
            return meaning.text;
    }
    return "Unknown Error";
}

CUSLICE_NVML(nvmlSystemGetDriverVersion, out, size) {
    CUSLICE_TRY(started());
    return copy_text(driver_spec().version, out, size);
}

CUSLICE_NVML(nvmlSystemGetNVMLVersion, out, size) {
    CUSLICE_TRY(started());
    return copy_text(nvml_version(), out, size);
}

CUSLICE_NVML(nvmlSystemGetCudaDriverVersion, version) { return give_cuda_version(version); }
CUSLICE_NVML(nvmlSystemGetCudaDriverVersion_v2, version) { return give_cuda_version(version); }

CUSLICE_NVML(nvmlSystemGetProcessName, pid, out, size) {
    CUSLICE_TRY(started());
    if (out == nullptr || size == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    char path[40], name[4096];
    std::snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    std::FILE* file = std::fopen(path, "re");
    if (file == nullptr)
        return NVML_ERROR_NOT_FOUND;
    const size_t read = std::fread(name, 1, sizeof name - 1, file);
    std::fclose(file);
    name[read] = '\0';  // the arguments are separated by zeros: what is left is the program
    std::snprintf(out, size, "%s", name);
    return NVML_SUCCESS;
}

CUSLICE_NVML(nvmlUnitGetCount, count) {
    CUSLICE_TRY(started());
    if (count == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    return give(count, 0);
}
