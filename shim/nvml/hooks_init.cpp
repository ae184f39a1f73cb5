// Initialisation: where there is no NVML, or the configuration is bad, it fails here, in NVML's own words.
#include "shim/nvml/load.h"
#include "virtual_gpu/driver/nvml_table.h"

CUSLICE_NVML_HOOK(nvmlInit)
CUSLICE_NVML_HOOK(nvmlInit_v2)
CUSLICE_NVML_HOOK(nvmlInitWithFlags)
CUSLICE_NVML_HOOK(nvmlErrorString)

using namespace cuslice;

namespace {

// What NVML says of its initialisation is what the program is told, each time that it asks.
template <typename Call>
nvml::Return initialised(Call call) {
    if (const nvml::Return loaded = nvml_ready(); loaded != nvml::SUCCESS) return loaded;
    if (const nvml::Return result = call(); result != nvml::SUCCESS) return result;
    const nvml::Return fits = virtual_nvml_ready();
    if (fits != nvml::SUCCESS) CUSLICE_REAL_NVML(nvmlShutdown)();
    return fits;
}

}  // namespace

nvml::Return CUSLICE_NVML_HOOKED(nvmlInit)() {
    return initialised([] { return CUSLICE_REAL_NVML(nvmlInit)(); });
}

nvml::Return CUSLICE_NVML_HOOKED(nvmlInit_v2)() {
    return initialised([] { return CUSLICE_REAL_NVML(nvmlInit_v2)(); });
}

nvml::Return CUSLICE_NVML_HOOKED(nvmlInitWithFlags)(unsigned flags) {
    return initialised([flags] { return CUSLICE_REAL_NVML(nvmlInitWithFlags)(flags); });
}

// The one function that returns text, which a caller prints: there must be some also without a library to ask.
const char* CUSLICE_NVML_HOOKED(nvmlErrorString)(nvml::Return result) {
    if (nvml_ready() == nvml::SUCCESS)
        if (void* real = physical_nvml_slot(NvmlFunction::nvmlErrorString)) {
            const InsideNvml inside;
            return reinterpret_cast<nvml::functions::nvmlErrorString*>(real)(result);
        }
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
