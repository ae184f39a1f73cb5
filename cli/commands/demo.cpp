// SPDX-License-Identifier: Apache-2.0
// cuslice demo: runs a program that fills its slice (cli/demo/fill_slice.cpp).
#include <unistd.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/gpus/machine.h"
#include "cli/settings/launcher_settings.h"
#include "cli/text/exit_codes.h"
#include "cli/text/report.h"
#include "config/resolve.h"
#include "config/split/plan.h"

namespace cuslice::cli {
namespace {

// Enough to see, and little on a GPU that others use.
constexpr const char* kLimit = "1GiB";
// A GPU of which that is half.
constexpr const char* kFake = "laptop-2g";

bool limits(const Settings& settings) {
    return splits_any(settings) ||
           std::ranges::any_of(settings.entries(), [](const Entry& entry) { return is_amount(entry.key); });
}

bool no_gpu(const Launch& launch, const Environment& environment) {
    if (find(launch.settings, Key::fake) || find(launch.settings, Key::driver))
        return false;
    Machine machine(environment, launch.settings, launch.installation);
    const Gpus& all = machine.all();
    return !all.hung && (!all.failure.empty() || all.list.empty());
}

// Bytes of each GPU that the program sees, by its ordinal; none where it counts other GPUs than the machine does.
std::string sizes(const Launch& launch, const Environment& environment) {
    std::string list;
    if (find(launch.settings, Key::gpus) || splits_any(launch.settings))
        return list;
    Machine machine(environment, launch.settings, launch.installation);
    if (machine.hung() || !machine.all().failure.empty())
        return list;
    for (const Gpu& gpu : machine.in_order())
        list.append(list.empty() ? "" : ",").append(std::to_string(gpu.total));
    return list;
}

}  // namespace

int run_demo(const Invocation& invocation) {
    ConfigError error;
    Launch launch;
    if (!load_launch(launch, invocation, error))
        return fail(error, kConfig);
    const std::string program = launch.installation.demo;
    if (::access(program.c_str(), X_OK) != 0)
        return fail(program + ": no such program: this installation is not whole", kNotFound);
    Invocation run = invocation;
    if (!limits(launch.settings))
        run.arguments.flags.push_back({Key::limit, kLimit});
    if (no_gpu(launch, invocation.environment)) {
        run.arguments.flags.push_back({Key::fake, kFake});
        warn(std::string("no NVIDIA driver or GPU is here: this is a fake GPU, as with --fake ") + kFake);
    }
    Launch complete;
    if (!load_launch(complete, run, error))
        return fail(error, kConfig);
    run.arguments.program = {program};
    if (const std::string list = sizes(complete, run.environment); !list.empty())
        run.arguments.program.push_back("--whole=" + list);
    if (run.arguments.json)
        run.arguments.program.emplace_back("--json");
    return run_program(run);
}

}  // namespace cuslice::cli
