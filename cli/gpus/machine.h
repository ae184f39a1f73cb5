// SPDX-License-Identifier: Apache-2.0
// The GPUs of the machine, as far as one command has to know them. Each question costs the start of NVML or a driver,
// so it is asked when the answer is needed, and once. NVML is asked first: a driver's start takes long, and only what
// NVML can't tell is asked of it.
#pragma once

#include <optional>
#include <span>

#include "cli/gpus/gpu_query.h"
#include "cli/launch/environment.h"
#include "cli/launch/installation.h"
#include "config/settings.h"

namespace cuslice::cli {

class Machine {
  public:
    Machine(const Environment& environment, const Settings& settings, const Installation& installation);

    /// All of them, in PCI order, which is how `ordinal` counts them. A MIG instance stands in its GPU's place, with
    /// -1.
    const Gpus& all();
    /// The same with what their sensors say.
    Gpus all_with_sensors() const;
    /// GPUs that CUDA_VISIBLE_DEVICES leaves, in its order; `ordinal` is the place in PCI order, -1 for a MIG
    /// instance. None where the driver sees none.
    const std::vector<Gpu>& allowed();
    /// The same in the order in which CUDA counts them, also where the variable is not set.
    const std::vector<Gpu>& in_order();
    /// The only one that a program would see; nothing if there are several. Less is asked for this than for the others.
    std::optional<Gpu> only();
    /// The GPUs that an answer has named so far: as allowed() has them, or all. Asks nothing.
    std::span<const Gpu> known() const;
    /// True once a question was given up, as nothing answered in time.
    bool hung() const { return all_ && all_->hung; }
    /// From here on these are all that there are to choose from, by their UUIDs, and CUDA_VISIBLE_DEVICES says so.
    void narrow(std::string_view uuids);
    /// The one that a UUID or the beginning of one brings up, although it is not listed (MIG of drivers before 470).
    std::optional<Gpu> unlisted(const std::string& uuid);
    /// Asks again how much memory is free on each of `gpus`.
    void refresh(std::vector<Gpu>& gpus);

  private:
    Gpus ask_all(size_t most, bool with_sensors = false) const;
    const std::vector<Gpu>& ask_visible();
    std::optional<std::vector<Gpu>> read_variable();

    Environment environment_;
    const Settings& settings_;
    const Installation& installation_;
    std::optional<Gpus> all_;
    std::optional<std::vector<Gpu>> allowed_, in_order_;
};

}  // namespace cuslice::cli
