// SPDX-License-Identifier: Apache-2.0
// Reads from the ledgers of all users who holds, has reserved and waits for how much of which GPU.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/ledger/holder.h"
#include "cli/ledger/job_times.h"
#include "cli/text/json.h"
#include "policy/ledger/queue.h"

namespace cuslice::cli {

/// One process that waits for a slice of a GPU.
struct WaitingProcess {
    std::string gpu;
    ledger::Waiter waiter;
    unsigned position = 0, past = 0;
    std::vector<std::string> command_line;  // the launcher's
};

/// The most that a job has held on one GPU.
struct JobPeak {
    std::string gpu;
    unsigned user = 0;
    uint64_t peak = 0, limit = 0;  // bytes; a limit of ledger::kNoLimitBytes is none
    bool ended = false;            // nobody is in the job any more
};

/// Contents of a folder's ledgers at one moment.
struct Holders {
    std::vector<Holder> holding;                 // by GPU, user, account and pid
    std::vector<WaitingProcess> waiting;         // by GPU and place in the queue
    std::vector<JobTime> times;                  // of this user, by GPU and name
    std::map<std::string, uint64_t> capacities;  // of each GPU that has a ledger, in bytes, by UUID
    std::vector<std::string> failures;           // what could not be looked at, and why
    bool own_failed = false;                     // it is of this user's ledgers
};

/// Reads all ledgers in `folder`. What this user's own dead processes held is taken back first; of other users' files
/// only the living are shown. Waits for a ledger's lock for half a second at most.
Holders read_holders(const std::string& folder);

/// Peaks of this user's jobs of this name, and for root of everybody's, from the ledgers in `folder`; by GPU and
/// user. A ledger remembers a job that has ended until another job takes its place. If it has several jobs of the
/// name, the highest peak counts. Adds what could not be read to `failures`. Changes nothing.
std::vector<JobPeak> read_peaks(const std::string& folder, const std::string& name, std::vector<std::string>& failures);

/// The same without fake GPUs, which exist for the programs alone that were started on them.
Holders without_fakes(Holders found);

Json json_of(const JobPeak& peak);
Json json_of(const WaitingProcess& waiting);

}  // namespace cuslice::cli
