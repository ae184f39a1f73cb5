// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace cuslice {

// Facts that decide under which pid NVML's lists name this process.
struct PidFacts {
    unsigned own = 0;        // getpid()
    unsigned outermost = 0;  // the first number of NSpid in /proc/self/status: the pid where that /proc was mounted
    bool first_namespace = false;  // whether this is the host's own pid namespace
    unsigned driver = 0;           // major version; 0: not known
};

// The pid under which NVML lists this process; 0 if that can't be known. From driver 545 on its lists are in the
// caller's pid namespace (pid_vnr in NVIDIA's open kernel modules, kernel-open/nvidia/os-interface.c), before in the
// host's: there a process in a container is known by its own pid only if the container has the host's /proc or its
// namespace. A number that happens to be in the list is no proof: it may be another process's.
unsigned pid_in_nvml(const PidFacts& facts);

// "NSpid:\t4711\t12\n" anywhere in the text of a status file → 4711; 0 if there is no such line.
unsigned outermost_pid(std::string_view status);

// The facts about this process, no more of them than pid_in_nvml() needs: most processes are in the first pid
// namespace, and the kernel takes longer over a status file than over all else that is asked here. Needs NVML,
// initialised, for the driver's version.
PidFacts pid_facts();

}  // namespace cuslice
