// CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER.

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "virtual_gpu/fake/driver/state.h"

namespace cuslice::fake {
namespace {

std::uint64_t speed(const GpuSpec& gpu) { return gpu.multiprocessors * gpu.cores_per_multiprocessor * gpu.clock; }

/// Position of the GPU that an item names, or -1: an index, or a UUID's beginning that only one GPU has.
int position(const MachineSpec& machine, const std::string& item) {
    if (item.rfind("GPU-", 0) == 0) {
        int found = -1;
        for (std::size_t i = 0; i < machine.size(); i++) {
            if (uuid_text(machine[i].uuid).compare(0, item.size(), item) != 0) continue;
            if (found >= 0) return -1;
            found = static_cast<int>(i);
        }
        return found;
    }
    char* end = nullptr;
    const long index = std::strtol(item.c_str(), &end, 10);
    // NVIDIA's driver reads a number as atoi does: what follows the digits is ignored.
    return end != item.c_str() && index >= 0 && static_cast<std::size_t>(index) < machine.size()
               ? static_cast<int>(index)
               : -1;
}

}  // namespace

MachineSpec visible_gpus(const MachineSpec& machine, const char* visible, const char* order) {
    MachineSpec ordered = machine;
    if (order == nullptr || std::strcmp(order, "PCI_BUS_ID") != 0) {
        std::stable_sort(ordered.begin(), ordered.end(),
                         [](const GpuSpec& a, const GpuSpec& b) { return speed(a) > speed(b); });
    }
    if (visible == nullptr) return ordered;
    MachineSpec chosen;
    std::string text = visible;
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t comma = std::min(text.find(',', start), text.size());
        const int at = position(ordered, text.substr(start, comma - start));
        if (at < 0) break;
        const GpuSpec& gpu = ordered[static_cast<std::size_t>(at)];
        for (const GpuSpec& other : chosen) {
            if (other.uuid == gpu.uuid) return {};
        }
        chosen.push_back(gpu);
        start = comma + 1;
    }
    return chosen;
}

}  // namespace cuslice::fake
