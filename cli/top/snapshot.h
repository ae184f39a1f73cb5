// SPDX-License-Identifier: Apache-2.0
// The data behind `cuslice top`: all that is known of a machine's GPUs at one moment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cli/gpus/gpus.h"
#include "cli/ledger/holders.h"
#include "cli/ledger/read_stats.h"
#include "config/settings.h"

namespace cuslice::cli::top {

/// The last moments of a GPU, the oldest first, from 0 to 1.
struct Moments {
    std::vector<double> used, busy;  // memory in use, and the load
};

/// One GPU of the machine.
struct GpuLoad {
    Gpu gpu;
    /// Bytes that the settings in effect give a program here, and where that comes from; nothing without a limit.
    std::optional<uint64_t> limit;
    std::string origin;
    /// Empty but in a live view.
    Moments moments = {};
};

/// The GPU or partition that a ledger's UUID belongs to.
struct Place {
    int index = -1;                // of the GPU, in PCI order
    std::optional<int> partition;  // of a virtual GPU: which of the GPU's partitions, from 0
};

/// One process's caches on one GPU.
struct Cache {
    int pid = 0;
    std::string command;
    GpuStats stats;
    std::vector<std::string> command_line = {};
};

/// A job or a group on one GPU: UUID, user, kind and name.
using AccountName = std::tuple<std::string, unsigned, std::string, std::string>;
AccountName account_of(const Holder& holder);

struct Snapshot {
    /// The time of day, as it is shown; empty where none is.
    std::string clock;
    /// False: the GPUs were asked for and have not answered yet.
    bool gpus_known = true;
    /// Why no GPU can be listed; empty if they can.
    std::string gpus_failure;
    std::vector<GpuLoad> gpus;
    std::map<std::string, Place> places;  // by UUID
    Holders holders;
    std::vector<Cache> caches;  // by pid and GPU
    /// Answers of the machine that was looked at, if it is another one: users by their names, and
    /// reserved_beyond_use() by UUID.
    std::map<unsigned, std::string> users;
    std::map<std::string, uint64_t> beyond;

    /// The user's name, or the number where nobody has it.
    std::string user_called(unsigned user) const;
    /// Bytes that jobs and groups have reserved on a GPU and don't use yet.
    uint64_t reserved_beyond_use(const std::string& uuid) const;
};

/// Looks at the ledgers and caches in `folder`. `gpus` is what the machine has answered; null: nothing yet. Of other
/// users' caches nothing is known.
Snapshot take_snapshot(const Settings& settings, const std::string& folder, const Gpus* gpus);

/// The one document of `cuslice top --json`.
Json json_of(const Snapshot& snapshot);
/// The same in one line, all of ASCII.
std::string json_line(const Json& document);
/// Reads a document of `cuslice top --json`, which may hold anything, as another machine has written it. Returns
/// nothing if it is no such document, or of a version that isn't known here. Cuts long names off.
std::optional<Snapshot> parse_snapshot(const Json& document);

/// "12:34:56"
std::string time_of_day();

}  // namespace cuslice::cli::top
