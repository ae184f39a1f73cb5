// SPDX-License-Identifier: Apache-2.0
#pragma once
// Description of one fake GPU: the values of its profile, after the overrides of the user's file. Plain data; read
// once when the library starts and never changed.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fake/spec/driver_spec.h"

namespace cuslice::fake {

using Uuid = std::array<unsigned char, 16>;

struct PciAddress {
    unsigned domain = 0, bus = 0, device = 0;
    bool operator==(const PciAddress&) const = default;
};

/// Sizes are bytes, clocks MHz, power watts, times nanoseconds.
struct GpuSpec {
    std::string profile;  // the profile's file name without .toml
    std::string name;     // as cuDeviceGetName and nvidia-smi show it
    Uuid uuid{};
    PciAddress pci;
    int index = 0;  // position in PCI order, NVML's index

    uint64_t memory = 0;       // what cuDeviceTotalMem reports
    uint64_t reserved = 0;     // kept by the driver for itself: NVML's total is memory + reserved
    uint64_t context = 0;      // charged for each context
    uint64_t module = 0;       // charged for each loaded module, beside its variables
    uint64_t lazy_load = 0;    // charged at the first launch of each function
    uint64_t block_chunk = 0;  // cuMemAlloc takes memory in steps of this; 0: to the byte
    uint64_t pool_chunk = 0;   // memory pools grow in steps of this

    int major = 0, minor = 0;  // compute capability
    uint64_t multiprocessors = 0;
    uint64_t cores_per_multiprocessor = 0;
    uint64_t clock = 0, memory_clock = 0;
    uint64_t memory_bus_width = 0;  // bits
    uint64_t l2_cache = 0;
    uint64_t copy_engines = 0;
    uint64_t power_limit = 0;
    uint64_t pcie_generation = 0, pcie_width = 0;
    uint64_t pci_device_id = 0;  // device << 16 | vendor
    std::string brand;           // geforce, tesla, nvidia, quadro, titan
    bool ecc = false;
    bool nvlink = false;        // peers see each other through NVLink
    bool fan = false;           // false: passively cooled, NVML's fan functions are not supported
    bool integrated = false;    // its memory is the host's
    bool foreign_code = false;  // kernels that nvcc made for other GPUs alone are taken for its own

    // Where work takes time (fake/time/): how long contexts with kernels take turns, what a change costs, and how long
    // a launch and the record of an event, in a stream or in a context, keep the calling thread.
    uint64_t time_slice = 0, context_switch = 0, launch_time = 0, record_time = 0, context_record_time = 0;
    uint64_t time_slice_spread = 0;  // percent by which a slice is longer or shorter at most

    std::vector<std::string> mig;  // the profiles of its MIG instances, "1g.18gb"; none: MIG is not enabled
    bool is_instance = false;      // it is a MIG instance itself (mig.h)
    unsigned gpu_instance = 0, compute_instance = 0;  // of an instance

    /// 90 of 9.0.
    int capability() const { return major * 10 + minor; }

    DriverSpec driver;  // the machine's: every GPU of it has the same
};

/// The machine: every fake GPU in PCI order.
using MachineSpec = std::vector<GpuSpec>;

/// "GPU-5f1c0a3e-…", as nvidia-smi writes it.
std::string uuid_text(const Uuid& uuid);

/// The same of a GPU, or "MIG-5f1c0a3e-…" of an instance.
std::string uuid_text(const GpuSpec& gpu);

/// A random-looking UUID (version 4), always the same for the same text, that is_fake_uuid() knows as fake.
Uuid made_up_uuid(const std::string& text);

/// "0000:81:00.0", the form of cuDeviceGetPCIBusId.
std::string pci_text(const PciAddress& pci);

/// Reads "81:00.0", "0000:81:00", "00000000:81:00.0"; false if it is none of these.
bool parse_pci(const std::string& text, PciAddress& pci);

/// Reads "GPU-5f1c0a3e-…" in full, with or without GPU-; false if it is not one.
bool parse_uuid(const std::string& text, Uuid& uuid);

}  // namespace cuslice::fake
