// CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER.

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "virtual_gpu/fake/driver/state.h"

namespace cuslice::fake {
namespace {

std::uint64_t speed(const GpuSpec& gpu) { return gpu.multiprocessors * gpu.cores_per_multiprocessor * gpu.clock; }

bool is_name(const std::string& item) { return item.rfind("GPU-", 0) == 0 || item.rfind("MIG-", 0) == 0; }

/// Position of the GPU that an item names, or -1: an index, or a UUID's beginning that only one GPU has. No fake GPU is
/// divided, so a MIG device is none of them.
int position(const MachineSpec& machine, const std::string& item) {
    if (is_name(item)) {
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

std::string trim(const std::string& text) {
    constexpr const char* kSpaces = " \t\n\v\f\r";
    const std::size_t first = text.find_first_not_of(kSpaces);
    return first == text.npos ? "" : text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
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
    const std::string text = visible;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t comma = std::min(text.find(',', start), text.size());
        const std::string item = trim(text.substr(start, comma - start));
        // A list of indices ends at the first UUID, and the other way round.
        const int at = is_name(item) == is_name(trim(text)) ? position(ordered, item) : -1;
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
