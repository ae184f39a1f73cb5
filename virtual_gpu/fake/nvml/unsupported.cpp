// Every function of nvml_functions.def, weak: those that no other file here defines answer ERROR_NOT_SUPPORTED. They
// need no signature: all return a code, and the caller cleans up its arguments. Those that NVIDIA documents for Windows
// alone answer so on every Linux, and nothing is said of them.

#include <algorithm>
#include <string_view>

#include "virtual_gpu/fake/nvml/log.h"

namespace {

constexpr std::string_view for_windows[] = {"nvmlDeviceGetDriverModel", "nvmlDeviceGetDriverModel_v2",
                                            "nvmlDeviceSetDriverModel"};

constexpr bool is_for_windows(std::string_view name) {
    return std::find(std::begin(for_windows), std::end(for_windows), name) != std::end(for_windows);
}

}  // namespace

#define CUSLICE_NVML_FUNCTION(name)                                     \
    extern "C" __attribute__((weak, visibility("default"))) int name(); \
    extern "C" int name() {                                             \
        static constinit std::atomic<bool> said{is_for_windows(#name)}; \
        return cuslice::fake::nvml_unsupported(#name, said);            \
    }
#include "virtual_gpu/driver/nvml_functions.def"
#undef CUSLICE_NVML_FUNCTION
