// SPDX-License-Identifier: Apache-2.0
// Jobs that have a share of a GPU's time, as this user's lease says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/ledger/holder.h"
#include "cli/text/json.h"

namespace cuslice::cli {

/// One job's share of one GPU. Times are in nanoseconds.
struct JobTime {
    std::string gpu;  // UUID
    unsigned user = 0;
    uint64_t number = 0;  // in the lease
    /// The job's name, or its number's digits where nobody tells the name.
    std::string name;
    uint32_t share = 0, cap = 0;  // percent
    /// With what holds now. It waits for all its GPUs at once.
    uint64_t had = 0, waited = 0;
    /// "idle", "waits", "runs"; "ends" once its turn is over.
    std::string state;
    /// Its processes, and the command of the first one.
    std::vector<int> pids;
    std::vector<std::string> command_line;
    /// The part of the time since the last look that it had; nothing but in a live view.
    std::optional<double> recent;
};

/// Reads this user's lease in `folder`; nothing where there is none. Jobs whose processes have ended are left out.
/// Names are those of `holding`'s jobs, or what the processes' environment says.
std::vector<JobTime> read_job_times(const std::string& folder, const std::vector<Holder>& holding);

Json json_of(const JobTime& job);
/// Reads such an object, which may hold anything; throws an exception of the standard library if it is none.
JobTime read_job_time(const Json& row);

/// "12.3 s", "45 min": of nanoseconds.
std::string time_text(uint64_t nanoseconds);
/// "30%", and "-" of a cap that is none.
std::string share_text(uint32_t percent);
std::string cap_text(uint32_t percent);

}  // namespace cuslice::cli
