// SPDX-License-Identifier: Apache-2.0
// The set-up that doctor examines: the one in which `cuslice run` would start a program with the same command line.
#pragma once

#include <string>
#include <string_view>

#include "cli/gpus/fake_check.h"
#include "cli/gpus/machine.h"
#include "cli/launch/installation.h"
#include "cli/launch/program.h"
#include "cli/settings/invocation.h"
#include "config/settings.h"

namespace cuslice::cli::doctor {

struct Setup {
    explicit Setup(const Invocation& from) : invocation(from), environment(from.environment) {}

    const Invocation& invocation;
    /// The program's, before the launcher changes it.
    const Environment& environment;

    /// The settings were understood: `settings` holds them.
    bool configured = false;
    Settings settings;
    /// The library is where it belongs: `installation` says where.
    bool installed = false;
    Installation installation;
    /// The driver has answered.
    bool driver_answers = false;
    /// GPUs that the machine has, and how many of them a program sees; 0 where that isn't known.
    size_t gpus_there = 0, gpus_seen = 0;
    /// The program that was named and found; an empty path otherwise.
    Program program;

    /// One of the machine's own files, as "/etc/ld.so.preload".
    std::string machine_file(const std::string& path) const { return invocation.system_root + path; }
    /// As the one who asks a driver has to have it, to find the one that the program will find.
    Environment asking_driver() const;
};

/// The line of a refused setting, without the name of cuslice before it and a full stop behind it.
std::string message_of(const ConfigError& error);

/// "580.95.05", as the kernel's module has it; empty where there is none.
std::string kernel_driver_version(const Setup& setup);

/// PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h: the host's own pid namespace, on every machine.
inline constexpr std::string_view kHostsNamespace = "pid:[4026531836]";
/// This process's; empty where it can't be read.
std::string pid_namespace(const Setup& setup);

/// Its text; empty where it can't be read.
std::string text_of(const std::string& path);

}  // namespace cuslice::cli::doctor
