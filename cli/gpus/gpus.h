// SPDX-License-Identifier: Apache-2.0
// The GPUs of a machine as NVML or the driver lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cuslice::cli {

/// A GPU's load and state as NVML tells them; nothing of what it doesn't.
struct Sensors {
    std::optional<unsigned> busy;               // percent of the last moments in which a kernel ran
    std::optional<unsigned> temperature;        // °C
    std::optional<uint64_t> power, most_power;  // milliwatts
};

struct Gpu {
    /// The position in the answer: the CUDA ordinal, or in the driver's own view the index in PCI order.
    int ordinal = 0;
    std::string name;
    std::string uuid;
    std::string pci;
    /// Bytes, as cuDeviceTotalMem tells, or as NVML does of the same memory; 0 where NVML alone was asked and doesn't
    /// tell.
    uint64_t total = 0;
    /// Bytes, as NVML tells without a context; nothing where there is no NVML.
    std::optional<uint64_t> free;
    /// The memory is the host's: NVML has no figure of it, so that the program can't be shown parts of it.
    bool host_memory = false;
    /// Nothing unless they were asked for.
    Sensors sensors = {};
};

struct Gpus {
    /// Why there is no answer; empty if there is one.
    std::string failure;
    std::vector<Gpu> list;
    /// How many there are: more than the list has where they were only to be counted.
    size_t count = 0;
    /// There was no answer in time: whoever asks the same kernel again waits again.
    bool hung = false;
};

}  // namespace cuslice::cli
