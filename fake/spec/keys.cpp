// SPDX-License-Identifier: Apache-2.0
#include "fake/spec/keys.h"

#include <cctype>
#include <cmath>
#include <cstdlib>

#include "fake/units.h"

namespace cuslice::fake {
namespace {

struct Unit {
    const char* name;
    uint64_t bytes;
};
constexpr Unit kUnits[] = {{"KiB", kKiB},      {"MiB", kMiB},         {"GiB", kGiB}, {"TiB", kTiB}, {"K", kKiB},
                           {"M", kMiB},        {"G", kGiB},           {"T", kTiB},   {"KB", 1000},  {"MB", 1000000},
                           {"GB", 1000000000}, {"TB", 1000000000000}, {"B", 1}};

}  // namespace

const std::vector<Key>& keys() {
    using S = GpuSpec;
    using enum KeyKind;
    static const auto* all = new std::vector<Key>{
        {"profile", Profile, {}, 0, 0, true, "the profile that this GPU starts from; required in [[gpu]]"},
        {"count", Copies, {}, 1, 64, true, "so many GPUs like this one (1 to 64; not together with uuid or pci)"},
        {"uuid",
         Identity,
         {},
         0,
         0,
         true,
         "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx; default: derived from profile, "
         "memory and position"},
        {"pci", Pci, {}, 0, 0, true, "PCI address such as 0000:81:00.0; default: derived from the position"},
        {"name", Text, &S::name, 0, 0, false, "the device's name"},
        {"brand", Brand, &S::brand, 0, 0, false, "geforce, tesla, nvidia, quadro or titan"},
        {"memory", Size, &S::memory, 16 * kMiB, 4 * kTiB, false, "total memory, as cuDeviceTotalMem reports it"},
        {"reserved", Size, &S::reserved, 0, 64 * kGiB, false,
         "what the driver keeps for itself; NVML's total is memory + reserved"},
        {"context", Size, &S::context, 0, kTiB, false, "charged for each context"},
        {"module", Size, &S::module, 0, kTiB, false, "charged for each loaded module, beside its variables"},
        {"lazy-load", Size, &S::lazy_load, 0, kTiB, false, "charged at the first launch of each function"},
        {"block-chunk", Size, &S::block_chunk, 0, 64 * kMiB, false,
         "cuMemAlloc takes memory in steps of this; 0 is to the byte"},
        {"pool-chunk", Size, &S::pool_chunk, 64 * kKiB, 64 * kGiB, false, "memory pools grow in steps of this"},
        {"compute-capability", Capability, {}, 0, 0, false, "such as \"8.0\""},
        {"multiprocessors", Count, &S::multiprocessors, 1, 1024, false, "number of multiprocessors"},
        {"cores-per-multiprocessor", Count, &S::cores_per_multiprocessor, 1, 1024, false, "CUDA cores in each"},
        {"clock", Count, &S::clock, 1, 10000, false, "highest multiprocessor clock, MHz"},
        {"memory-clock", Count, &S::memory_clock, 1, 50000, false, "highest memory clock, MHz"},
        {"memory-bus-width", Count, &S::memory_bus_width, 8, 65536, false, "width of the memory bus in bits"},
        {"l2-cache", Size, &S::l2_cache, 0, kGiB, false, "size of the second-level cache"},
        {"copy-engines", Count, &S::copy_engines, 0, 16, false, "asynchronous copy engines"},
        {"power-limit", Count, &S::power_limit, 1, 100000, false, "highest power, watts"},
        {"pcie-generation", Count, &S::pcie_generation, 1, 7, false, "highest PCI Express generation"},
        {"pcie-width", Count, &S::pcie_width, 1, 32, false, "PCI Express lanes"},
        {"pci-device-id", Count, &S::pci_device_id, 0, 0xffffffff, false, "device << 16 | vendor, as NVML reports it"},
        {"ecc", Flag, &S::ecc, 0, 0, false, "whether the memory is error-correcting"},
        {"nvlink", Flag, &S::nvlink, 0, 0, false, "whether peers of the same profile are linked by NVLink"},
        {"fan", Flag, &S::fan, 0, 0, false, "whether it has a fan that NVML can read"},
        {"integrated", Flag, &S::integrated, 0, 0, false,
         "whether its memory is the host's: NVML tells no figure of it"},
        {"foreign-code", Flag, &S::foreign_code, 0, 0, false,
         "whether kernels that nvcc made for other GPUs alone are taken for its own"},
        {"time-slice", Duration, &S::time_slice, 1000, 10'000'000'000, false,
         "how long a context's kernels run while another context's wait, such as \"2ms\""},
        {"time-slice-spread", Count, &S::time_slice_spread, 0, 90, true,
         "percent by which a time slice is longer or shorter at most, evenly spread"},
        {"context-switch", Duration, &S::context_switch, 0, 1'000'000'000, false, "what such a change takes"},
        {"launch-time", Duration, &S::launch_time, 0, 1'000'000'000, false,
         "how long a launch keeps the calling thread, where work takes time"},
        {"record-time", Duration, &S::record_time, 0, 1'000'000'000, false, "the same of an event's record"},
        {"context-record-time", Duration, &S::context_record_time, 0, 1'000'000'000, false,
         "the same of cuCtxRecordEvent"},
        {"mig", Instances, {}, 0, 0, true, "the MIG instances that it is divided into, such as [\"1g.18gb\"]"},
    };
    return *all;
}

const Key* find_key(const std::string& name) {
    for (const Key& key : keys()) {
        if (name == key.name)
            return &key;
    }
    return nullptr;
}

std::string known_keys(bool in_profile) {
    std::string list;
    for (const Key& key : keys()) {
        if (in_profile && key.of_gpu_only)
            continue;
        if (!list.empty())
            list += ", ";
        list += key.name;
    }
    return list;
}

bool parse_size(const std::string& text, uint64_t& bytes, std::string& why) {
    if (text == "0") {
        bytes = 0;
        return true;
    }
    const char* start = text.c_str();
    char* end = nullptr;
    const bool digit = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
    const double number = digit ? std::strtod(start, &end) : 0;
    if (!digit || !std::isfinite(number)) {
        why = "\"" + text + "\" is not a size; write a number and a unit, such as \"2002MiB\" or \"80GB\"";
        return false;
    }
    while (*end == ' ')
        end++;
    if (*end == '\0') {
        why = text + " bytes? A size needs its unit: did you mean \"" + text + "MiB\"?";
        return false;
    }
    for (const Unit& unit : kUnits) {
        if (std::string(end) != unit.name)
            continue;
        const double product = number * static_cast<double>(unit.bytes);
        if (product >= 0x1p62) {
            why = "\"" + text + "\" is more than any GPU has";
            return false;
        }
        bytes = static_cast<uint64_t>(product);
        return true;
    }
    why = "\"" + std::string(end) +
          "\" is no unit; use KiB, MiB, GiB, TiB (powers of 1024) or KB, MB, GB, TB (powers of 1000)";
    return false;
}

}  // namespace cuslice::fake
