// SPDX-License-Identifier: Apache-2.0
// Looks at a lease from outside, by its file and by the account of the fake GPUs: how long jobs wait, who holds GPUs
// without work, and who has had how much.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fake/time/reader.h"
#include "policy/lease/lease_file.h"
#include "policy/ledger/folder_presence.h"
#include "tests/policy/lease/six_jobs.h"
#include "tests/turns/running_player.h"

namespace cuslice::tests {

inline constexpr uint64_t kMillisecond = lease::kMillisecond;

using Players = std::vector<std::unique_ptr<RunningPlayer>>;

class Observer {
  public:
    static constexpr unsigned kJobs = SixJobs::kJobs, kGpus = SixJobs::kGpus;
    /// Folders of the leases and of the fake GPUs' account, and the GPUs' UUIDs in their order.
    Observer(std::string leases, std::string books, Words uuids);
    ~Observer();
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;

    /// The name that a job's processes give it.
    static std::string name_of(unsigned job) { return "job" + std::to_string(job); }

    /// To be called every few milliseconds.
    void look(const Players& players, const SixJobs& jobs);
    /// Something was done to a process, by which others may be held up.
    void note_fault();
    /// This thread got no core for so long, and so may the programs.
    void note_late(uint64_t nanoseconds) { late_ += nanoseconds; }
    /// Nanoseconds of kernels that each job's players have had of each GPU so far.
    struct Had {
        uint64_t of[kGpus][kJobs] = {};
    };
    Had had(const Players& players);

    uint64_t looks = 0, waits = 0;  // with a value, and those in which a job waited
    uint64_t worst_wait_over = 0;   // than what is allowed
    double worst_wait_part = 0;     // of it
    uint64_t worst_idle = 0;        // of a holder without work that another waits for

  private:
    struct Wait {
        uint64_t since = 0;          // as the lease says; another one: a new wait
        uint64_t late = 0;           // `late_` then
        int64_t credit[kGpus] = {};  // when it was first seen
    };
    bool read();
    const lease::Job* find(unsigned job) const;
    unsigned lease_number(unsigned gpu) const;
    void look_at_waiting(unsigned number, const lease::Job& job, const SixJobs& jobs, uint64_t now);
    void look_at_holder(unsigned number, const lease::Job& job, uint64_t busy, uint64_t now);
    uint64_t faults_in(uint64_t last, uint64_t now) const;

    const std::string books_;
    const Words uuids_;
    const std::string leases_;
    ledger::FolderPresence folder_;
    lease::OpenLease open_;
    fake::TimeReader account_;
    std::unique_ptr<lease::State> state_ = std::make_unique<lease::State>();
    std::vector<uint64_t> faults_;  // their times
    uint64_t late_ = 0;             // in all
    Wait waits_[kJobs];
    uint64_t busy_[kJobs] = {}, idle_since_[kJobs] = {};
};

}  // namespace cuslice::tests
