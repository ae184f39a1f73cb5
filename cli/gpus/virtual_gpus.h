// SPDX-License-Identifier: Apache-2.0
// Applies `split` to the GPUs that a program gets: checks it before the program starts, and hands it on. Does nothing
// where nothing is split.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/gpus/machine.h"
#include "cli/gpus/selection.h"
#include "cli/launch/environment.h"
#include "config/config_error.h"
#include "config/split/plan.h"

namespace cuslice::cli {

class VirtualGpus {
  public:
    /// `environment` is the program's to be. Inside a launcher that has split GPUs CUDA_VISIBLE_DEVICES counts virtual
    /// ones; otherwise indices in it become UUIDs (settle_visible).
    VirtualGpus(const Settings& settings, Environment& environment);

    /// The environment in which a driver shows the GPUs that there are to choose from.
    const Environment& physical() const { return physical_; }

    /// Inside a launcher that has split GPUs: what CUDA_VISIBLE_DEVICES leaves of its virtual GPUs. Those behind them
    /// are the ones to choose from: it narrows `machine`.
    void look_outside(Machine& machine);

    /// Splits the GPUs that were selected, and of `any` leaves those that can be split so. Where there is no driver to
    /// ask nothing is known, and the library says it. False if they can't be split as it is wanted, or are split
    /// otherwise already.
    bool plan(Machine& machine, Selection& selection, ConfigError& error);

    /// Shows the program what was selected (show_selection). With a split the driver's list is the library's to know,
    /// and CUDA_VISIBLE_DEVICES is gone, but for what it has selected among an outer launcher's virtual GPUs.
    void show(Environment& environment, const Selection& selection) const;

    /// The GPU behind a UUID, and the part of it, or all of it.
    struct Behind {
        Gpu gpu;
        VirtualPart part;
    };
    /// None where nothing is split, or nothing is called so.
    std::optional<Behind> behind(const Selection& selection, const std::string& uuid) const;

  private:
    struct Planned {
        std::vector<Gpu> gpus;
        std::vector<GpuIdentity> physical;
        VirtualParts parts;
        std::vector<GpuIdentity> identities;  // of the parts
    };
    static bool split(const Settings& settings, const std::vector<Gpu>& gpus, Planned& planned, ConfigError& error);
    bool refuse_second_split(ConfigError& error) const;
    std::string carry_on(const Planned& inner) const;

    const Settings& settings_;
    Environment physical_;
    /// An outer launcher's settings; none if it has split nothing.
    std::unique_ptr<Settings> outer_settings_;
    /// Its list of GPUs, what somebody has set CUDA_VISIBLE_DEVICES to since, and what that leaves.
    std::string chosen_;
    std::optional<std::string> own_;
    Planned outer_;
    std::optional<VirtualParts> seen_;
    /// A driver was asked.
    bool known_ = false;
};

}  // namespace cuslice::cli
