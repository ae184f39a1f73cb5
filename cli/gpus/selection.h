// SPDX-License-Identifier: Apache-2.0
// Selects the GPUs that the setting `gpus` gives a program.
#pragma once

#include <vector>

#include "cli/gpus/machine.h"
#include "cli/launch/environment.h"
#include "config/config_error.h"
#include "config/settings.h"
#include "config/visible.h"

namespace cuslice::cli {

struct Selection {
    enum class How {
        untouched,  // nothing is set, or it has been applied already: the program sees what it would see anyhow
        listed,     // `gpus`, in this order
        any,        // one of `gpus`
        open        // there is no driver here to ask: the library says it at the program's first CUDA call
    };
    How how = How::untouched;
    /// `ordinal` is the index in PCI order. Where `split`, also of an untouched selection: all that are visible.
    std::vector<Gpu> gpus;
    /// These GPUs, or some of them, are split (virtual_gpus.h).
    bool split = false;
};

/// Under a launcher: indices that somebody has put into CUDA_VISIBLE_DEVICES since count in the list that was chosen
/// then, as they do for a program. From here on they are UUIDs.
void settle_visible(Environment& environment);

/// Reads `gpus` against the machine and what CUDA_VISIBLE_DEVICES leaves of it in `environment`.
bool select_gpus(const Settings& settings, const Environment& environment, Machine& machine, Selection& selection,
                 ConfigError& error);

/// Settles a selection of `any` on this GPU.
void select_one(Selection& selection, const Gpu& gpu);

/// Their UUIDs, as CUDA_VISIBLE_DEVICES takes them.
VisibleText list_of(const std::vector<Gpu>& gpus);

/// Makes what was selected the GPUs that a program sees, in this order: CUDA_VISIBLE_DEVICES for the driver, and for
/// the library the list in which the program's own indices count. Where that is known: `any` is not, before the job has
/// found room. Where GPUs are split VirtualGpus does it.
void show_selection(Environment& environment, const Selection& selection);

}  // namespace cuslice::cli
