// SPDX-License-Identifier: Apache-2.0
// Functions that an older NVML hasn't, of those that cuslice or its tests use. The release is the one that brought
// them, or the first after the newest that is known to lack them (NVIDIA's 535, by its symbol table).

#include <algorithm>
#include <cstring>

#include "fake/hidden_symbols.h"
#include "fake/spec/machine.h"

namespace cuslice::fake {
namespace {

struct Since {
    const char* symbol;
    unsigned branch;
};
constexpr Since kNewer[] = {
    {"nvmlDeviceGetMemoryInfo_v2", 510},
    {"nvmlDeviceGetComputeRunningProcesses_v3", 510},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3", 510},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v3", 510},
    {"nvmlDeviceGetRunningProcessDetailList", 535},
    {"nvmlDeviceGetPciInfoExt", 545},
    {"nvmlDeviceGetTemperatureV", 545},
    {"nvmlDeviceGetHandleByUUIDV", 545},
    {"nvmlDeviceGetProcessesUtilizationInfo", 545},
};

bool is_hidden(const char* symbol) {
    const auto* found = std::find_if(std::begin(kNewer), std::end(kNewer),
                                     [&](const Since& one) { return std::strcmp(one.symbol, symbol) == 0; });
    return found != std::end(kNewer) && found->branch > driver_spec().branch();
}

[[gnu::constructor]] void hide_newer_functions() {
    const auto last = std::max_element(std::begin(kNewer), std::end(kNewer),
                                       [](const Since& a, const Since& b) { return a.branch < b.branch; });
    if (driver_spec().branch() < last->branch)
        hide_symbols(is_hidden);
}

}  // namespace
}  // namespace cuslice::fake
