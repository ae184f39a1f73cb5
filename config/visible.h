// SPDX-License-Identifier: Apache-2.0
// The GPUs that a program sees, and their order: CUDA_VISIBLE_DEVICES as CUDA reads it, and the key `gpus`, which
// refuses what CUDA passes over in silence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "config/config_error.h"
#include "config/gpu_selector.h"
#include "config/text.h"

namespace cuslice {

inline constexpr std::string_view kCudaVisible = "CUDA_VISIBLE_DEVICES";
inline constexpr std::string_view kCudaOrder = "CUDA_DEVICE_ORDER";

/// Any one GPU, whichever has most room.
inline constexpr std::string_view kAnyGpu = "any";
/// All that are visible: the same as no setting, but it beats those of lower priority.
inline constexpr std::string_view kAllGpus = "all";
/// True for an empty list and `none`.
constexpr bool names_no_gpu(std::string_view gpus) { return gpus.empty() || gpus == "none"; }

/// Places in a list of GPUs, in the order in which a program sees them.
class GpuPlaces {
  public:
    static constexpr size_t kMax = 64;

    /// False, and nothing is added, if it is there already or there is no more room.
    bool add(size_t place);
    void clear() { count_ = 0; }
    std::span<const uint8_t> view() const& { return {places_, count_}; }
    std::span<const uint8_t> view() && = delete;

  private:
    uint8_t places_[kMax] = {};
    size_t count_ = 0;
};

/// A list of whole UUIDs, as CUDA_VISIBLE_DEVICES takes it.
using VisibleText = FixedText<GpuPlaces::kMax * sizeof(GpuIdentity::uuid)>;
void append_visible(VisibleText& list, std::string_view uuid);

/// The GPUs out of `gpus`, in CUDA's own order, that CUDA makes visible if CUDA_VISIBLE_DEVICES is `variable`; all if
/// it is not set (a null view). CUDA's rules: the list ends at the first item that names nothing or is not of the
/// first one's kind (index or UUID), a number is read as far as it goes, a GPU named twice leaves none. Pure.
GpuPlaces read_cuda_list(std::string_view variable, std::span<const GpuIdentity> gpus);
/// True if it leaves none because a GPU is named twice, for which cuInit has an answer of its own. Pure.
bool names_gpu_twice(std::string_view variable, std::span<const GpuIdentity> gpus);

/// True if the list begins with a number, so that its meaning depends on what it counts in.
bool counts_gpus(std::string_view variable);

/// `chosen` is the list of UUIDs that was chosen for a program, `variable` what CUDA_VISIBLE_DEVICES is now (a null
/// view: not set). True if it has to become `list`: indices count in the chosen list, and without the variable all of
/// it is visible. UUIDs, an empty list, and what CUDA can't read mean the same wherever they are read, and stay. Pure.
bool count_in_chosen(std::string_view chosen, std::string_view variable, VisibleText& list);

/// Where GPUs are split: what the program, or who started it, has put into CUDA_VISIBLE_DEVICES (`variable`) since the
/// list `chosen` of physical GPUs was made for it, to be read against virtual GPUs; a null view if nobody has. The
/// chosen list itself is nobody's choice: a launcher that split nothing left it there for the driver. Pure.
std::string_view own_list(std::string_view chosen, std::string_view variable);

/// Reads the value of `gpus`: a list of GPUs, each named once, a range of indices (0-2) standing for each of them;
/// nothing at all or `none`; `all`; or `any`. Pure.
bool parse_gpus(std::string_view text, Reason& why);

/// A setting of `gpus`, and the GPUs that it is to be read against.
struct GpusQuestion {
    /// Where the value came from, and the value: what parse_gpus takes, and not `any`.
    std::string_view origin;
    std::string_view value;
    /// All that there are.
    std::span<const GpuIdentity> gpus;
    /// Places in `gpus`: what CUDA_VISIBLE_DEVICES leaves of them.
    GpuPlaces allowed;
    /// CUDA_VISIBLE_DEVICES itself, for messages; a null view if it is not set.
    std::string_view variable;
};

/// The places in `gpus` that the value names, in its order. Refused: a name that fits no GPU or several, two names for
/// one GPU, and a GPU that CUDA_VISIBLE_DEVICES does not leave. Pure.
bool resolve_gpus(const GpusQuestion& question, GpuPlaces& chosen, ConfigError& error);

/// Says that nothing is left to choose from for `any`. Returns false.
bool refuse_any(const GpusQuestion& question, ConfigError& error);

}  // namespace cuslice
