// SPDX-License-Identifier: Apache-2.0
// A folder of a test's own, and processes that take part in a lease there.
#pragma once

#include <memory>

#include "policy/base/kernel_clock.h"
#include "policy/lease/process_lease.h"
#include "policy/lease/published.h"
#include "tests/policy/ledger/place.h"

namespace cuslice::tests {

inline constexpr uint64_t kMillisecond = lease::kMillisecond;

// Short, as tests wait for them.
inline constexpr lease::Terms kShortTerms{.quantum = 5 * kMillisecond, .patience = 60 * kMillisecond};
// Longer than anybody may wait for a lease of those terms: the holder's turn, its patience, and a machine with much to
// do.
inline constexpr uint64_t kLongEnough = 5000 * kMillisecond;

inline uint64_t now() { return kernel_clock(CLOCK_MONOTONIC); }

// One process in a job.
struct LeasePlace {
    bool open(const LedgerFolder& folder) { return process.open(folder.path.c_str(), kShortTerms, &failure); }
    bool join(const LedgerFolder& folder, uint64_t job, uint32_t weight = 50) {
        if (!open(folder))
            return false;
        return process.lease().join(job, {.gpu = process.lease().number_of_gpu(kUuid), .weight = weight});
    }
    lease::Answer acquire() { return process.lease().acquire(now() + kLongEnough); }

    lease::ProcessLease process;
    lease::LedgerError failure;
};

// Too large for a stack under a sanitizer.
inline std::unique_ptr<LeasePlace> lease_place() { return std::make_unique<LeasePlace>(); }

// The file, to be read.
struct ReadLease {
    explicit ReadLease(const LedgerFolder& folder) {
        ledger::UserFolder where;
        where.user = where.owner = geteuid();
        where.path = folder.path.c_str();
        there = lease::open_lease_to_read(where, &open, nullptr);
        uint64_t seen = 0;
        whole = there && lease::read_current(*open.file, state.get(), &seen) && lease::is_whole(*state);
    }
    ~ReadLease() { lease::close_lease(&open); }
    ReadLease(const ReadLease&) = delete;
    ReadLease& operator=(const ReadLease&) = delete;
    unsigned jobs() const {
        unsigned count = 0;
        for (const lease::Job& job : state->jobs)
            count += !lease::is_free(job);
        return count;
    }
    unsigned members() const {
        unsigned count = 0;
        for (const lease::Member& member : state->members)
            count += !lease::is_free(member);
        return count;
    }
    unsigned holders() const {
        unsigned count = 0;
        for (const lease::Job& job : state->jobs)
            count += lease::holds(job);
        return count;
    }

    bool there = false, whole = false;
    lease::OpenLease open;
    std::unique_ptr<lease::State> state = std::make_unique<lease::State>();
};

}  // namespace cuslice::tests
