// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "config/settings.h"
#include "config/text.h"
#include "policy/base/mutex.h"
#include "policy/budget/budget.h"
#include "policy/ledger/ledger.h"
#include "policy/ledger/refusal.h"
#include "virtual_gpu/gpu/slice.h"

namespace cuslice {

using ledger::Refusal;

// With whom this process shares its slices: the jobs it is part of, a group, and a rule.
struct SharingPlan {
    static constexpr unsigned kMaxJobs = 3;
    FixedText<64> jobs[kMaxJobs];  // outermost first
    unsigned job_count = 0;
    bool begins_job = false;  // its own, or its container's: nobody else has begun one
    bool launched = false;    // by cuslice run, also where that has begun no job
    unsigned depth = 0;       // jobs in all; of more than kMaxJobs the outermost are kept
    FixedText<1024> made_in;  // "@UUID=id" for each ledger in which the launcher made the outermost
    FixedText<64> group;
    FixedText<64> rule;  // the account, see Settings::shared_rule()
    FixedText<512> folder;
    uint64_t wait = 0;          // milliseconds; kForEver
    uint64_t context_kind = 0;  // of contexts that this process makes, see context_kind.h
    uint64_t quantum = 0;       // nanoseconds; mean length of a turn, where time is shared

    bool any() const { return job_count != 0 || !group.empty() || !rule.empty(); }
    // The name of a job. One without a name here is this process's alone, and is called after it, also in a forked
    // child.
    FixedText<64> job(unsigned number) const;
    // For people.
    std::string_view rule_name() const { return slice(rule, 0, rule.view().find('@')); }
};

SharingPlan plan_sharing(const Settings& settings, const char* const* environment);

// The id of this GPU's ledger in which the launcher made the outermost job; 0 if it made it in none.
uint64_t ledger_of_job(std::string_view made_in, std::string_view uuid);

// One GPU's part in it. Thread-safe.
class GpuSharing {
  public:
    struct Slice {
        const char* uuid;
        uint64_t capacity;                            // bytes
        uint64_t job_limit;                           // bytes; kNoLimitBytes: the job's own is not limited
        uint64_t group_limit;                         // bytes; kNoLimitBytes: whatever the group's is
        uint64_t rule_limit = ledger::kNoLimitBytes;  // bytes; kNoLimitBytes: the rule has none on this GPU
        OuterLimits outer_limits = {};
        uint64_t ceiling_for_all = ledger::kNoLimitBytes;  // bytes; what the system's file lets anybody have
    };

    // Before the first context on the GPU: opens the ledger and joins every account, the first time. False if the slice
    // is refused, also where a limit is shared and there is no ledger to be had: `refusal` says why.
    // `in_use(argument)`: bytes that everybody holds on the GPU, 0 if that is not known.
    // What is charged to the accounts is charged to those of `outer`, too; it may be null.
    bool join(const SharingPlan& plan, const Slice& slice, SharedBudget* outer, uint64_t (*in_use)(void*),
              void* argument, Refusal* refusal);

    // Reads what the accounts hold, and who is in them, whether this process has joined them or only watches. False
    // if there are none.
    bool watch(const SharingPlan& plan, const char* uuid, ledger::Watched* watched);

    // The limit of the plan's group, in bytes, whether this process has joined it or not; kNoLimitBytes: there is none.
    uint64_t group_limit(const SharingPlan& plan, const char* uuid);

    /// The fewest bytes that a first context of this kind has taken, as far as this user's processes have seen; 0: none
    /// has. `kind` isn't 0.
    uint64_t least_context(uint64_t kind) const { return joined() ? ledger_.least_context(kind) : 0; }
    void note_context(uint64_t kind, uint64_t bytes) {
        if (joined())
            ledger_.note_context(kind, bytes);
    }

    bool joined() const { return budget_.joined(); }
    SharedBudget& budget() { return budget_; }
    const SharedBudget& budget() const { return budget_; }
    // Takes back what dead members held. True if there was something.
    bool take_back_dead() { return joined() && ledger_.opened() && ledger_.take_back_dead(); }
    // The same before a figure is shown, which programs may ask for all the time: ten times a second at most.
    void take_back_dead_now_and_then() {
        if (joined())
            take_back_dead_each_tenth();
    }

    // In a forked child: all of it is the parent's.
    void forget();

  private:
    void take_back_dead_each_tenth();  // of a second
    enum class State : int { not_yet, done };

    bool try_join(const SharingPlan& plan, const Slice& slice, uint64_t in_use, Refusal* refusal)
        CUSLICE_REQUIRES(mutex_);

    Mutex mutex_{LockRank::joining};  // over joining
    std::atomic<State> state_{State::not_yet};
    std::atomic<int64_t> looked_{0};                  // when the dead were looked for last: tenths of a second
    unsigned joined_ CUSLICE_GUARDED_BY(mutex_) = 0;  // accounts so far
    ledger::Ledger ledger_;
    SharedBudget budget_;
};

}  // namespace cuslice
