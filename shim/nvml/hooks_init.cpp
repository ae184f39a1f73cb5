// Initialisation: where there is no NVML, or the configuration is bad, it fails here, in NVML's own words.
#include "shim/nvml/load.h"
#include "virtual_gpu/driver/nvml_table.h"

CUSLICE_NVML_HOOK(nvmlInit)
CUSLICE_NVML_HOOK(nvmlInit_v2)
CUSLICE_NVML_HOOK(nvmlInitWithFlags)
CUSLICE_NVML_HOOK(nvmlErrorString)

using namespace cuslice;

nvml::Return nvmlInit() {
    const nvml::Return loaded = nvml_ready();
    return loaded == nvml::SUCCESS ? CUSLICE_REAL_NVML(nvmlInit)() : loaded;
}

nvml::Return nvmlInit_v2() {
    const nvml::Return loaded = nvml_ready();
    return loaded == nvml::SUCCESS ? CUSLICE_REAL_NVML(nvmlInit_v2)() : loaded;
}

nvml::Return nvmlInitWithFlags(unsigned flags) {
    const nvml::Return loaded = nvml_ready();
    return loaded == nvml::SUCCESS ? CUSLICE_REAL_NVML(nvmlInitWithFlags)(flags) : loaded;
}

// The one function that returns text, which a caller prints: there must be some also without a library to ask.
const char* nvmlErrorString(nvml::Return result) {
    if (nvml_ready() == nvml::SUCCESS)
        if (void* real = cuslice_nvml_slots[static_cast<std::size_t>(NvmlFunction::nvmlErrorString)])
            return reinterpret_cast<nvml::functions::nvmlErrorString*>(real)(result);
    switch (result) {
        case nvml::SUCCESS:
            return "The operation was successful";
        case nvml::ERROR_INVALID_ARGUMENT:
            return "A supplied argument is invalid";
        case nvml::ERROR_LIBRARY_NOT_FOUND:
            return "A shared library couldn't be found or loaded";
        case nvml::ERROR_FUNCTION_NOT_FOUND:
            return "Local version of NVML doesn't implement this function";
        default:
            return "Unknown error";
    }
}
