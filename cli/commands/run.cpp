// SPDX-License-Identifier: Apache-2.0
// cuslice run: becomes the program.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/commands.h"
#include "cli/gpus/context_room.h"
#include "cli/gpus/fake_machine.h"
#include "cli/gpus/framework_environment.h"
#include "cli/gpus/gpu_query.h"
#include "cli/gpus/machine.h"
#include "cli/gpus/selection.h"
#include "cli/gpus/slice_room.h"
#include "cli/gpus/unseen_gpus.h"
#include "cli/gpus/virtual_gpus.h"
#include "cli/launch/driver_folders.h"
#include "cli/launch/program.h"
#include "cli/launch/program_environment.h"
#include "cli/launch/record_check.h"
#include "cli/launch/sanitizer_environment.h"
#include "cli/launch/static_runtime.h"
#include "cli/ledger/group_notice.h"
#include "cli/ledger/job.h"
#include "cli/ledger/unserved.h"
#include "cli/settings/launcher_settings.h"
#include "cli/settings/program_hints.h"
#include "cli/text/exit_codes.h"
#include "cli/text/report.h"
#include "config/resolve.h"

namespace cuslice::cli {
namespace {

// Starting a driver costs some hundred milliseconds on a machine with GPUs: only where it can find a mistake.
bool names_a_gpu(const Settings& settings) {
    for (const Entry& entry : settings.entries()) {
        const bool ours = entry.rank.source != Source::other_tools && entry.rank.source != Source::cgroup;
        if (ours && entry.selector.kind != GpuSelector::Kind::every)
            return true;
    }
    return false;
}

// A setting for one GPU can be wrong in a way that only the list of GPUs shows. Where there is no driver here, as on a
// login node, nothing is known, and the library says it at the program's first CUDA call.
bool check_gpus(const Settings& settings, Machine& machine, ConfigError& error) {
    if (!names_a_gpu(settings))
        return true;
    const Gpus& gpus = machine.all();
    if (!gpus.failure.empty() || gpus.list.empty())
        return true;
    std::vector<GpuIdentity> identities;
    for (const Gpu& gpu : gpus.list)
        identities.push_back(identity_of(gpu, gpu.ordinal));
    return check_against(settings, identities, true, error);
}

// The slices that frameworks are told of. None where nobody knows, as there is no driver here: then the library in the
// program tells what it still can.
std::vector<SliceRoom> rooms_for_frameworks(const Environment& environment, const Launch& launch, Machine& machine,
                                            const Selection& selection) {
    if (selection.how == Selection::How::open || !wants_reserve_variables(environment, launch.settings))
        return {};
    const bool chosen = selection.split || selection.how != Selection::How::untouched;
    if (!chosen && (machine.hung() || !machine.all().failure.empty()))
        return {};
    const std::vector<Gpu>& seen = chosen ? selection.gpus : machine.allowed();
    return slice_rooms(launch.settings, launch.contexts, seen);
}

// Returns only if the program could not be started.
int become(const std::string& path, std::vector<std::string> words, Environment& environment) {
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::vector<char*> lines = environment.pointers();
    report_start();
    ::execve(path.c_str(), arguments.data(), lines.data());
    if (errno == ENOEXEC) {
        // A script without #!: a shell runs it itself.
        std::string shell = "/bin/sh";
        std::string script = path;
        arguments[0] = script.data();
        arguments.insert(arguments.begin(), shell.data());
        ::execve(shell.c_str(), arguments.data(), lines.data());
    }
    // The file is there, so what is missing can only be its interpreter: 126, as a shell's.
    return fail(words[0] + ": cannot be started: " + std::strerror(errno), kNotStarted);
}

}  // namespace

int run_program(const Invocation& invocation) {
    ConfigError error;
    Launch launch;
    if (!load_launch(launch, invocation, error) || !check_record(launch.settings, invocation.environment, error)) {
        return fail(error, kConfig);
    }
    const Settings& settings = launch.settings;
    const Installation& installation = launch.installation;
    const std::vector<std::string>& words = invocation.arguments.program;
    Environment environment = invocation.environment;
    if (!enter_fake_machine(environment, settings, error))
        return fail(error, kConfig);
    add_fake_programs(environment, settings, installation);
    VirtualGpus virtual_gpus(settings, environment);
    // A program that can't be started is reported later. It is looked up here as its search path may lead to a driver
    // of its own.
    const Program program = find_program(words[0], environment);
    Environment asking_driver = virtual_gpus.physical();
    if (program.exit_code == 0)
        search_as(started_file(program.path), asking_driver);
    Machine machine(asking_driver, settings, installation);
    Selection selection;
    if (!check_gpus(settings, machine, error))
        return fail(error, kConfig);
    virtual_gpus.look_outside(machine);
    if (!select_gpus(settings, virtual_gpus.physical(), machine, selection, error) ||
        !check_seen(settings, virtual_gpus.physical(), machine, selection, error) ||
        !virtual_gpus.plan(machine, selection, error) ||
        !prepare_environment(environment, settings, installation, error)) {
        return fail(error, kConfig);
    }
    virtual_gpus.show(environment, selection);
    // Settings first: 78 says that nothing about the program has been looked at.
    if (program.exit_code != 0)
        return fail(program.message + suggest_program(words[0], program.exit_code, environment), program.exit_code);
    add_sanitizer_variables(environment, started_file(program.path));
    const Reach reach = look_at_reach(program.path);
    const std::string command = program.path.substr(program.path.find_last_of('/') + 1);
    // One line is enough for a client: it doesn't matter if the library reaches it.
    const std::string client = explain_client(words);
    const std::string& notice = client.empty() ? reach.why_not : client;
    if (!notice.empty())
        warn(notice);
    if (const std::string misplaced = explain_misplaced(settings, invocation.arguments);
        client.empty() && !misplaced.empty())
        warn(misplaced);
    warn_unserved(invocation.environment);
    if (!settings.unreachable_file().empty() && log_for(settings).level != LogLevel::warn)
        warn(std::string(settings.unreachable_file()) + ": skipped: a folder on its path can't be entered");
    // Where the library doesn't come, there is no split to be seen either, and the line above has said so.
    if (selection.split && reach.why_not.empty() && !redirects_runtime(settings) &&
        carries_static_runtime(program.path))
        warn(program.path +
             ": is linked with the static CUDA runtime, which sees each split GPU as one, with the memory "
             "of its first partition. Start it with --redirect-runtime=program, or relink it with nvcc -cudart shared: "
             "NVCC_APPEND_FLAGS=\"-cudart shared\" make");
    const bool nccl_sees_parts = redirects_libraries(settings);
    if (const std::string ranks = explain_ranks(command, words, environment);
        selection.split && !nccl_sees_parts && !ranks.empty())
        warn(ranks);
    warn_too_small(settings, launch.contexts, machine, selection);
    Environment asking = environment;
    if (selection.split)
        asking.set(kCudaVisible, list_of(selection.gpus));
    tell_group(asking, settings, machine);
    if (const int refused = start_job(environment, settings, machine, selection, command); refused != 0)
        return refused;
    warn_too_large(settings, machine, selection);
    virtual_gpus.show(environment, selection);
    tell_frameworks(environment, settings, rooms_for_frameworks(environment, launch, machine, selection));
    if (reach.fatal)
        remove_preload(environment);
    return become(program.path, words, environment);
}

}  // namespace cuslice::cli
