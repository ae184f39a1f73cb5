// SPDX-License-Identifier: Apache-2.0
// Reads the cache statistics of a running process (policy/stats/).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/text/json.h"
#include "policy/stats/layout.h"

namespace cuslice::cli {

/// One GPU's, of one moment.
struct GpuStats {
    std::string uuid, name;
    uint32_t mode = 0;
    unsigned contexts = 0;
    uint64_t milliseconds = 0;  // since they were written
    Statistics statistics;
};

struct ProcessStats {
    /// Empty if `gpus` are what the process says; else why there is nothing.
    std::string failure;
    std::string command;
    std::vector<std::string> command_line;  // see cli/text/command_line.h
    std::vector<GpuStats> gpus;
};

/// One of the figures that are counted in bytes, and what it is called.
struct NamedTally {
    const char* name;
    const Tally Statistics::*tally;
};
inline constexpr NamedTally kTallies[] = {{"allocated", &Statistics::allocated},
                                          {"requested", &Statistics::requested},
                                          {"active", &Statistics::active},
                                          {"reserved", &Statistics::reserved}};

/// "growth", or "?" for a mode that this version doesn't know.
std::string mode_of(const GpuStats& gpu);
/// The mode that is called so; one that mode_of() doesn't know for any other text.
uint32_t mode_called(std::string_view name);
Json json_of(const GpuStats& gpu);

/// Asks for a process by its id as it is seen from here, also if it is in a container that shares `folder`. What is
/// read is of that very process and of the program that it runs now: neither of another one that had the same id, nor
/// of what it was before an exec.
ProcessStats read_stats(const std::string& folder, int pid);

}  // namespace cuslice::cli
