// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/visible.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "fake/items.h"
#include "fake/spec/mig.h"

namespace cuslice::fake {
namespace {

uint64_t speed(const GpuSpec& gpu) { return gpu.multiprocessors * gpu.cores_per_multiprocessor * gpu.clock; }

bool is_name(const std::string& item) { return item.rfind("GPU-", 0) == 0 || item.rfind("MIG-", 0) == 0; }

/// True if the name is the UUID or its beginning; hexadecimal digits match in either case.
bool begins(const std::string& uuid, const std::string& name) {
    constexpr size_t kKind = 4;  // GPU- or MIG-
    const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
    return uuid.compare(0, kKind, name, 0, kKind) == 0 && name.size() <= uuid.size() &&
           std::equal(name.begin() + kKind, name.end(), uuid.begin() + kKind, same);
}

/// Position of the GPU that an item names, or -1: an index, or a UUID's beginning that only one GPU has.
int position(const MachineSpec& machine, const std::string& item, size_t indices) {
    if (is_name(item)) {
        int found = -1;
        for (size_t i = 0; i < machine.size(); i++) {
            if (!begins(uuid_text(machine[i]), item))
                continue;
            if (found >= 0)
                return -1;
            found = static_cast<int>(i);
        }
        return found;
    }
    char* end = nullptr;
    const long index = std::strtol(item.c_str(), &end, 10);
    // NVIDIA's driver reads a number as atoi does: what follows the digits is ignored.
    return end != item.c_str() && index >= 0 && static_cast<size_t>(index) < indices ? static_cast<int>(index) : -1;
}

std::string trim(const std::string& text) {
    constexpr const char* kSpaces = " \t\n\v\f\r";
    const size_t first = text.find_first_not_of(kSpaces);
    return first == text.npos ? "" : text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

/// GPUs that are divided as CUDA shows them: a process sees one instance, the first, and then no other GPU.
MachineSpec with_instances(const MachineSpec& chosen) {
    for (const GpuSpec& gpu : chosen) {
        if (gpu.is_instance)
            return {gpu};
        if (!gpu.mig.empty())
            return {instances_of(gpu).front()};
    }
    return chosen;
}

/// The GPUs in the order of their indices, and behind them all instances: those have no index, and are found by name.
MachineSpec with_named_instances(MachineSpec ordered) {
    MachineSpec all = std::move(ordered);
    for (size_t i = 0, gpus = all.size(); i < gpus; i++) {
        for (GpuSpec& instance : instances_of(all[i]))
            all.push_back(std::move(instance));
    }
    return all;
}

}  // namespace

MachineSpec visible_gpus(const MachineSpec& machine, const char* visible, const char* order, bool* repeated) {
    MachineSpec ordered = machine;
    if (order == nullptr || std::strcmp(order, "PCI_BUS_ID") != 0) {
        std::stable_sort(ordered.begin(), ordered.end(),
                         [](const GpuSpec& a, const GpuSpec& b) { return speed(a) > speed(b); });
    }
    if (visible == nullptr)
        return with_instances(ordered);
    const size_t indices = ordered.size();
    ordered = with_named_instances(std::move(ordered));
    MachineSpec chosen;
    for (const std::string& untrimmed : items_of(visible)) {
        const std::string item = trim(untrimmed);
        // A list of indices ends at the first UUID, and the other way round.
        const int at = is_name(item) == is_name(trim(visible)) ? position(ordered, item, indices) : -1;
        if (at < 0)
            break;
        const GpuSpec& gpu = ordered[static_cast<size_t>(at)];
        for (const GpuSpec& other : chosen) {
            if (other.uuid != gpu.uuid)
                continue;
            if (repeated != nullptr)
                *repeated = true;
            return {};
        }
        chosen.push_back(gpu);
    }
    return with_instances(chosen);
}

}  // namespace cuslice::fake
