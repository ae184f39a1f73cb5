// SPDX-License-Identifier: Apache-2.0
// Checks the GPUs that a program would see, and that the settings fit them, as `cuslice run` does before it starts
// one.
#include "cli/doctor/checks.h"
#include "cli/gpus/selection.h"
#include "cli/gpus/unseen_gpus.h"
#include "cli/gpus/virtual_gpus.h"
#include "cli/launch/program_environment.h"
#include "config/resolve.h"
#include "config/visible.h"

namespace cuslice::cli::doctor {
namespace {

bool settings_fit(const Setup& setup, Machine& machine, VirtualGpus& virtual_gpus, Selection& selection,
                  ConfigError& error) {
    std::vector<GpuIdentity> identities;
    for (const Gpu& gpu : machine.all().list)
        identities.push_back(identity_of(gpu, gpu.ordinal));
    if (!check_against(setup.settings, identities, true, error))
        return false;
    virtual_gpus.look_outside(machine);
    const Environment& physical = virtual_gpus.physical();
    return select_gpus(setup.settings, physical, machine, selection, error) &&
           check_seen(setup.settings, physical, machine, selection, error) &&
           virtual_gpus.plan(machine, selection, error);
}

}  // namespace

void check_gpus(Setup& setup, Findings& findings) {
    if (!setup.configured || !setup.driver_answers)
        return;
    Environment environment = setup.asking_driver();
    VirtualGpus virtual_gpus(setup.settings, environment);
    Machine machine(virtual_gpus.physical(), setup.settings, setup.installation);
    const size_t there = machine.all().list.size();
    setup.gpus_there = there;
    const auto visible = virtual_gpus.physical().get(kCudaVisible);
    if (there != 0 && visible && machine.allowed().empty())
        return findings.problem(
            "gpus-hidden",
            std::string(kCudaVisible) + "=" + *visible + " leaves none of the " + std::to_string(there) + " GPUs",
            "Unset it, or name GPUs by their UUIDs as cuslice devices shows them");
    Selection selection;
    ConfigError error;
    if (!settings_fit(setup, machine, virtual_gpus, selection, error))
        return findings.problem("gpus", message_of(error), "cuslice devices shows the GPUs and their names");
    const bool chosen = selection.split || selection.how != Selection::How::untouched;
    const size_t seen = chosen ? selection.gpus.size() : machine.allowed().size();
    setup.gpus_seen = seen;
    findings.ok("gpus", "the settings fit; a program gets " + std::to_string(seen) + " of " + std::to_string(there));
}

}  // namespace cuslice::cli::doctor
