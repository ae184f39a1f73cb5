// Which GPUs there are: asked of a driver in a child process, so that the launcher neither loads a driver nor becomes
// the program of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/environment.h"
#include "cli/installation.h"
#include "config/gpu_selector.h"
#include "config/settings.h"

namespace cuslice::cli {

struct Gpu {
    /// The position in the answer: the CUDA ordinal, or in the driver's own view the index in PCI order.
    int ordinal = 0;
    std::string name;
    std::string uuid;
    std::string pci;
    /// Bytes, as cuDeviceTotalMem tells.
    std::uint64_t total = 0;
    /// Bytes, as NVML tells without a context; nothing where there is no NVML.
    std::optional<std::uint64_t> free;
};

struct Gpus {
    /// Why there is no answer; empty if there is one.
    std::string failure;
    std::vector<Gpu> list;
};

/// All GPUs that the driver has, in PCI order, whatever CUDA_VISIBLE_DEVICES says; without the library.
Gpus query_driver(const Environment& environment, const Settings& settings, const Installation& installation);

/// Those of them that CUDA_VISIBLE_DEVICES leaves, without the library. `ordinal` is the place in this list.
Gpus query_visible(const Environment& environment, const Settings& settings, const Installation& installation);

/// What a program would see that is started with `environment`.
Gpus query_as_program(Environment environment, const Installation& installation);

/// The child's side: what the driver in one file and the NVML in another say, in this very process.
Gpus read_gpus(const std::string& driver_file, const std::string& nvml_file);

/// How settings name this GPU, if `index` is its place in PCI order.
GpuIdentity identity_of(const Gpu& gpu, int index);

}  // namespace cuslice::cli
