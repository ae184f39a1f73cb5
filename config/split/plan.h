// SPDX-License-Identifier: Apache-2.0
// Virtual GPUs: how the GPUs that a program may use are cut into several, each with memory and an identity of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "config/config_error.h"
#include "config/gpu_selector.h"
#include "config/settings.h"
#include "config/split/value.h"

namespace cuslice {

/// One virtual GPU: a part of a GPU that is split, or a whole one that is not.
struct VirtualPart {
    uint8_t gpu = 0;                   // place in the list of GPUs that was split
    uint8_t part = 0;                  // which of the GPU's parts, from 0, as they are written
    uint8_t parts = 1;                 // into how many it is split; 1 with `split` false: not at all
    bool split = false;                // false: its memory and its identity are the GPU's own
    uint64_t bytes = 0;                // of a part: its limit
    bool plus_context = false;         // of a part: its share of the context comes on top of that
    std::optional<int> priority = {};  // of a part: of streams that the program gives none
    // For a part: the number that its identity is made of, if one other than `part` is written.
    std::optional<uint8_t> written_number = {};

    unsigned number() const { return written_number ? *written_number : part; }
};

/// The virtual GPUs of a process, in the order in which the program counts them.
class VirtualParts {
  public:
    static constexpr size_t kMax = kMaxParts;

    /// False, and nothing is added, if there is no more room.
    bool add(const VirtualPart& part);
    std::span<const VirtualPart> view() const& { return {parts_, count_}; }
    std::span<const VirtualPart> view() && = delete;

  private:
    VirtualPart parts_[kMax];
    size_t count_ = 0;
};

/// True if the settings split any GPU, whether or not the machine has it.
bool splits_any(const Settings& settings);

/// Plans the virtual GPUs that the settings make of `gpus`, whose memory is `totals` bytes. Where any GPU's parts
/// have places, all must; they come first in that order, those with the same place as they are written, and whole
/// GPUs after them. Refused: parts that are more than the GPU's slice together (with `oversubscribe`: any of them
/// alone), or less than kMinPart each; more virtual GPUs than VirtualParts::kMax. Pure.
bool plan_split(const Settings& settings, std::span<const GpuIdentity> gpus, std::span<const uint64_t> totals,
                VirtualParts& parts, ConfigError& error);
/// Equal parts are multiples of this, which is what a driver hands out.
inline constexpr uint64_t kEqualPartStep = 2ull << 20;

/// The virtual GPUs that CUDA_VISIBLE_DEVICES leaves visible, by CUDA's own rules (read_cuda_list); all of them if it
/// is not set (a null view). `identities` are those of `parts`, in the same order. Pure.
VirtualParts visible_parts(std::span<const GpuIdentity> identities, const VirtualParts& parts,
                           std::string_view cuda_visible_devices);

}  // namespace cuslice
