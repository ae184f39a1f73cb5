// SPDX-License-Identifier: Apache-2.0
// Lists the machine's GPUs: asks NVML and, where that isn't enough, the driver, whose start takes a second on
// machines with many GPUs. A child process asks, so that the launcher neither loads them nor hangs with them.
#pragma once

#include <string>

#include "cli/gpus/gpus.h"
#include "cli/launch/environment.h"
#include "cli/launch/installation.h"
#include "config/gpu_selector.h"
#include "config/settings.h"

namespace cuslice::cli {

/// All that NVML has: the GPUs in PCI order, whose `ordinal` is their index, and in place of one that MIG divides its
/// instances, with -1. If there are more than `most` they are only counted. Sensors take NVML some milliseconds, and
/// are read only where they are asked for.
Gpus query_nvml(const Environment& environment, const Settings& settings, const Installation& installation, size_t most,
                bool with_sensors = false);

/// All GPUs that the driver has, in PCI order, whatever CUDA_VISIBLE_DEVICES says; without the library.
Gpus query_driver(const Environment& environment, const Settings& settings, const Installation& installation);

/// The driver's GPUs that CUDA_VISIBLE_DEVICES leaves, without the library. `ordinal` is the place in this list.
Gpus query_visible(const Environment& environment, const Settings& settings, const Installation& installation);

/// GPUs that a program started with `environment` would see.
Gpus query_as_program(Environment environment, const Installation& installation);

/// The child's side: what the driver in this file says, in this very process; or libcuslice.so in its place, if it is
/// to be as programs see it and that is preloaded.
Gpus read_gpus(const std::string& driver_file, bool as_programs);

/// The child's side of query_nvml().
Gpus read_nvml(const std::string& nvml_file, size_t most, bool with_sensors);

/// How settings name this GPU, if `index` is its place in PCI order.
GpuIdentity identity_of(const Gpu& gpu, int index);

}  // namespace cuslice::cli
