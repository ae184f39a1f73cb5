// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "config/config_error.h"
#include "config/settings.h"
#include "config/visible.h"
#include "virtual_gpu/driver/nvml.h"

namespace cuslice {

// The physical GPUs that a program may use, where some of them are split: those that were chosen for it, in that order,
// else all of the host in PCI order. CUDA_VISIBLE_DEVICES takes none away: it selects among what they are split into.
// CUDA and NVML are both shown what this list is split into, so that they agree whichever is asked first.
struct ProgramGpus {
    static constexpr size_t kMax = GpuPlaces::kMax;

    size_t count = 0;
    bool chosen = false;  // false: all of the host
    GpuIdentity identities[kMax];
    uint64_t totals[kMax] = {};       // CUDA's bytes, as far as NVML knows them
    nvmlDevice_t handles[kMax] = {};  // the real NVML's

    std::span<const GpuIdentity> all() const& { return {identities, count}; }
    std::span<const GpuIdentity> all() && = delete;
    // The place of the one with this UUID; -1 if it isn't there.
    int find(const char* uuid) const;

    // Asks NVML, which has to be loaded. False, with `error`, if a setting fits none of the GPUs. Once.
    bool read(const Settings& settings, const char* const* environment, ConfigError& error);

  private:
    void add(std::string_view uuid, std::span<const GpuIdentity> host);
};

}  // namespace cuslice
