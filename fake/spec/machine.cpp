// SPDX-License-Identifier: Apache-2.0
#include "fake/spec/machine.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "fake/items.h"
#include "fake/spec/library_path.h"
#include "fake/spec/reader.h"

namespace cuslice::fake {
namespace {

constexpr size_t kMostGpus = 64;

/// A UUID that depends on the profile, the memory and the position alone.
Uuid derive_uuid(const GpuSpec& gpu) {
    return made_up_uuid(gpu.profile + "/" + std::to_string(gpu.memory) + "/" + std::to_string(gpu.index));
}

bool give_identities(MachineSpec& machine, std::string& error) {
    for (size_t i = 0; i < machine.size(); i++) {
        machine[i].index = static_cast<int>(i);
        if (machine[i].pci == PciAddress{})
            machine[i].pci = {0, static_cast<unsigned>(4 + 3 * i), 0};
        if (machine[i].uuid == Uuid{})
            machine[i].uuid = derive_uuid(machine[i]);
        for (size_t j = 0; j < i; j++) {
            if (machine[j].uuid == machine[i].uuid)
                error = "two GPUs have the uuid " + uuid_text(machine[i].uuid);
            if (machine[j].pci == machine[i].pci)
                error = "two GPUs have the PCI address " + pci_text(machine[i].pci);
        }
    }
    // NVML and nvidia-smi count in PCI order, whatever order the file has.
    std::stable_sort(machine.begin(), machine.end(), [](const GpuSpec& a, const GpuSpec& b) {
        return std::tie(a.pci.domain, a.pci.bus, a.pci.device) < std::tie(b.pci.domain, b.pci.bus, b.pci.device);
    });
    for (size_t i = 0; i < machine.size(); i++)
        machine[i].index = static_cast<int>(i);
    return error.empty();
}

/// One item of the list: [N x]profile.
bool read_item(const std::string& item, const std::string& folder, MachineSpec& machine, std::string& error) {
    size_t digits = 0;
    while (digits < item.size() && item[digits] >= '0' && item[digits] <= '9')
        digits++;
    uint64_t copies = 1;
    std::string name = item;
    if (digits > 0 && digits < item.size() && (item[digits] == 'x' || item[digits] == 'X')) {
        copies = digits <= 4 ? std::strtoull(item.c_str(), nullptr, 10) : kMostGpus + 1;
        name = item.substr(digits + 1);
    }
    if (copies < 1 || copies > kMostGpus) {
        error = "'" + item + "' asks for " + item.substr(0, digits) + " GPUs; 1 to 64 are possible";
        return false;
    }
    GpuSpec gpu;
    if (name.empty()) {
        error = "'" + item + "' names no profile; write it as 2xt4. The profiles are: " + known_profiles(folder);
        return false;
    }
    if (!read_profile(folder, name, gpu, error))
        return false;
    machine.insert(machine.end(), copies, gpu);
    return true;
}

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

}  // namespace

bool parse_machine(const std::string& spec, const std::string& folder, MachineSpec& machine, std::string& error) {
    machine.clear();
    error.clear();
    const std::string text = trimmed(spec);
    if (text.empty()) {
        error = "no fake GPU is named; write it as 2xa100-40g,1xt4 or as the path of a TOML file. The profiles are: " +
                known_profiles(folder);
        return false;
    }
    if (text.find('/') != std::string::npos || text.ends_with(".toml")) {
        if (!read_machine_file(folder, text, machine, error))
            return false;
    } else {
        for (const std::string& untrimmed : items_of(text)) {
            const std::string item = trimmed(untrimmed);
            if (item.empty()) {
                error = "'" + text + "' has an empty item; write it as 2xa100-40g,1xt4";
                return false;
            }
            if (!read_item(item, folder, machine, error))
                return false;
        }
    }
    if (machine.size() > kMostGpus) {
        error = "'" + text + "' asks for " + std::to_string(machine.size()) + " GPUs; 64 are possible";
        return false;
    }
    return give_identities(machine, error);
}

std::string profile_folder() { return library_folder() + "/profiles"; }

bool machine_from_environment(MachineSpec& machine, std::string& error) {
    const char* spec = std::getenv("CUSLICE_FAKE");
    if (spec == nullptr) {
        error =
            "CUSLICE_FAKE is not set; set it to the GPUs to show, such as 1xt4 or 2xa100-40g,1xt4. The profiles are: " +
            known_profiles(profile_folder());
        return false;
    }
    if (!parse_machine(spec, profile_folder(), machine, error)) {
        error = "CUSLICE_FAKE: " + error;
        return false;
    }
    return true;
}

const DriverSpec& driver_spec() {
    static const DriverSpec usual;
    if (std::getenv("CUSLICE_FAKE") == nullptr)
        return usual;
    static const auto* one = [] {
        std::string unused;
        MachineSpec machine;
        return new DriverSpec(machine_from_environment(machine, unused) ? machine.front().driver : DriverSpec{});
    }();
    return *one;
}

}  // namespace cuslice::fake
