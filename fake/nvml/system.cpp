// The library itself and the machine.

#include <cstdio>

#include "fake/nvml/answer.h"
#include "fake/spec/machine.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

struct Meaning {
    Return code;
    const char* text;
};
constexpr Meaning meanings[] = {
    {SUCCESS, "The operation was successful"},
    {ERROR_UNINITIALIZED, "Uninitialized"},
    {ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    {ERROR_NOT_SUPPORTED, "Not Supported"},
    {ERROR_NO_PERMISSION, "Insufficient Permissions"},
    {ERROR_ALREADY_INITIALIZED, "Already Initialized"},
    {ERROR_NOT_FOUND, "Not Found"},
    {ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    {ERROR_INSUFFICIENT_POWER, "Insufficient External Power"},
    {ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {ERROR_TIMEOUT, "Timeout"},
    {ERROR_IRQ_ISSUE, "Interrupt Request Issue"},
    {ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
    {ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
    {ERROR_CORRUPTED_INFOROM, "Corrupted infoROM"},
    {ERROR_GPU_IS_LOST, "GPU is lost"},
    {ERROR_RESET_REQUIRED, "GPU requires restart"},
    {ERROR_OPERATING_SYSTEM, "The operating system has blocked the request."},
    {ERROR_LIB_RM_VERSION_MISMATCH, "RM has detected an NVML/RM version mismatch."},
    {ERROR_IN_USE, "In use by another client"},
    {ERROR_MEMORY, "Insufficient Memory"},
    {ERROR_NO_DATA, "No data"},
    {ERROR_VGPU_ECC_NOT_SUPPORTED,
     "The requested vgpu operation is not available on target device, because ECC is enabled"},
    {ERROR_INSUFFICIENT_RESOURCES, "Ran out of critical resources, other than memory"},
    {ERROR_FREQ_NOT_SUPPORTED, "Frequency not supported"},
    {ERROR_ARGUMENT_VERSION_MISMATCH, "The provided version is invalid/unsupported"},
    {ERROR_DEPRECATED, "The requested functionality has been deprecated"},
    {ERROR_NOT_READY, "The system is not ready for the request"},
    {ERROR_GPU_NOT_FOUND, "No GPUs were found"},
    {ERROR_INVALID_STATE, "Resource not in correct state to perform requested operation"},
    {ERROR_RESET_TYPE_NOT_SUPPORTED, "Reset not supported for given device/parameters"},
    {ERROR_UNKNOWN, "Unknown Error"},
};

Return started() { return nvml_state().started() ? SUCCESS : ERROR_UNINITIALIZED; }

/// The CUDA release before the driver's version.
std::string nvml_version() { return std::to_string(driver_spec().cuda_version() / 1000) + "." + driver_spec().version; }

Return give_cuda_version(int* version) {
    if (version == nullptr) return ERROR_INVALID_ARGUMENT;
    *version = driver_spec().cuda_version();  // documented to work before nvmlInit
    return SUCCESS;
}

}  // namespace

CUSLICE_NVML(nvmlInit);
CUSLICE_NVML(nvmlInit_v2);
Return nvmlInit() { return nvmlInit_v2(); }
CUSLICE_NVML(nvmlInitWithFlags);
Return nvmlInit_v2() { return nvmlInitWithFlags(0); }
Return nvmlInitWithFlags(unsigned flags) { return answered(nvml_state().start(flags)); }
CUSLICE_NVML(nvmlShutdown);
Return nvmlShutdown() { return nvml_state().stop(); }

CUSLICE_NVML(nvmlErrorString);
const char* nvmlErrorString(Return code) {
    for (const Meaning& meaning : meanings) {
        if (meaning.code == code) return meaning.text;
    }
    return "Unknown Error";
}

CUSLICE_NVML(nvmlSystemGetDriverVersion);
Return nvmlSystemGetDriverVersion(char* out, unsigned size) {
    const Return bad = started();
    return bad != SUCCESS ? bad : copy_text(driver_spec().version, out, size);
}

CUSLICE_NVML(nvmlSystemGetNVMLVersion);
Return nvmlSystemGetNVMLVersion(char* out, unsigned size) {
    const Return bad = started();
    return bad != SUCCESS ? bad : copy_text(nvml_version(), out, size);
}

CUSLICE_NVML(nvmlSystemGetCudaDriverVersion);
Return nvmlSystemGetCudaDriverVersion(int* version) { return give_cuda_version(version); }
CUSLICE_NVML(nvmlSystemGetCudaDriverVersion_v2);
Return nvmlSystemGetCudaDriverVersion_v2(int* version) { return give_cuda_version(version); }

CUSLICE_NVML(nvmlSystemGetProcessName);
Return nvmlSystemGetProcessName(unsigned pid, char* out, unsigned size) {
    if (started() != SUCCESS) return ERROR_UNINITIALIZED;
    if (out == nullptr || size == 0) return ERROR_INVALID_ARGUMENT;
    char path[40], name[4096];
    std::snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    std::FILE* file = std::fopen(path, "re");
    if (file == nullptr) return ERROR_NOT_FOUND;
    const std::size_t read = std::fread(name, 1, sizeof name - 1, file);
    std::fclose(file);
    name[read] = '\0';  // the arguments are separated by zeros: what is left is the program
    std::snprintf(out, size, "%s", name);
    return SUCCESS;
}

CUSLICE_NVML(nvmlUnitGetCount);
Return nvmlUnitGetCount(unsigned* count) {
    if (started() != SUCCESS) return ERROR_UNINITIALIZED;
    if (count == nullptr) return ERROR_INVALID_ARGUMENT;
    *count = 0;
    return SUCCESS;
}
