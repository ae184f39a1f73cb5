// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/siblings.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "policy/base/cancellation.h"
#include "policy/base/kernel_clock.h"

namespace cuslice {

constinit std::atomic<bool> Siblings::any_joined_{false};

void Siblings::open(const Slice& slice, PhysicalGpu& physical, Budget& budget, const LoweredLimit& lowered,
                    bool (*start_nvml)()) {
    slice_ = &slice;
    physical_ = &physical;
    budget_ = &budget;
    lowered_ = &lowered;
    start_nvml_ = start_nvml;
}

bool Siblings::join(const SharingPlan& plan, const char* uuid, bool caches, Refusal* refusal) {
    const bool is_part = physical_->is_split();
    // The whole GPU's accounts cover its partitions' memory in use, group and rule: a partition leaves these out.
    const auto in_use = [](void* self) {
        const PhysicalGpu& physical = *static_cast<PhysicalGpu*>(self);
        return physical.is_split() ? 0 : physical.used_by_all();
    };
    SharingPlan own = plan;
    if (is_part)
        own.group.clear(), own.rule.clear();
    GpuSharing::Slice shared{uuid,
                             physical_->total(),
                             slice_->job_limit,
                             slice_->group_limit,
                             slice_->rule_limit,
                             slice_->outer_limits,
                             slice_->ceiling_for_all};
    if (is_part)
        shared.outer_limits = {};
    SharedBudget* outer = is_part ? &physical_->sharing().budget() : nullptr;
    if (!sharing_.join(own, shared, outer, in_use, physical_, refusal))
        return false;
    if (caches && joined())
        publish_reclaimable(0);
    return true;
}

bool Siblings::share_budget(const SharingPlan& plan) {
    if (std::exchange(shares_budget_, true))
        return false;
    if (joined()) {
        budget_->share(sharing_.budget());
        any_joined_.store(true, std::memory_order_relaxed);
    }
    const bool has_job = plan.job_count != 0 || slice_->job_limit == ledger::kNoLimitBytes;
    process_limit_.store(has_job ? Budget::kUnlimited : slice_->job_limit, std::memory_order_relaxed);
    return true;
}

void Siblings::forget() {
    is_member_.store(false, std::memory_order_relaxed);
    shares_budget_ = false;
    sharing_.forget();
    physical_->sharing().forget();
}

uint64_t Siblings::room(uint64_t used) const {
    const uint64_t total = physical_->total();
    return std::min(sharing_.budget().room(), used < total ? total - used : 0);
}

bool Siblings::trim_requested_now() {
    follow_file();
    const uint32_t now = sharing_.budget().wanted();
    return requests_seen_.load(std::memory_order_relaxed) != now && requests_seen_.exchange(now) != now;
}

// The others give back what they have cached at their next slow step, or when their own thread looks. A process that
// does neither is not waited for long, and not again soon after as long as nothing has changed there.
bool Siblings::wait(uint64_t bytes, bool (*fits)(void*), void* asked) {
    constexpr int kTries = 100;
    constexpr long kPause = 2'000'000;   // nanoseconds
    constexpr int64_t kNotAgain = 1000;  // milliseconds
    uint64_t state = 0;
    // One may have given back since the last charge was refused, and then there is nobody left to ask.
    if (!sharing_.budget().want(Budget::charged(bytes), &state))
        return fits(asked);
    requests_seen_.store(sharing_.budget().wanted(), std::memory_order_relaxed);
    const bool in_vain = waited_for_.load(std::memory_order_relaxed) == state;
    if (in_vain && coarse_milliseconds() < no_wait_until_.load(std::memory_order_relaxed))
        return false;
    for (int i = 0; i < kTries; i++) {
        timespec pause{0, kPause};
        nanosleep(&pause, nullptr);
        if (fits(asked))
            return true;
    }
    sharing_.budget().want(Budget::charged(bytes), &state);
    waited_for_.store(state, std::memory_order_relaxed);
    no_wait_until_.store(coarse_milliseconds() + kNotAgain, std::memory_order_relaxed);
    return false;
}

// Apart from the hooks, which it would make too large to be inlined in each other.
GivenBack Siblings::given_back() { return {sharing_, *physical_, *budget_, process_limit(), start_nvml_}; }

void Siblings::follow_file() {
    if (!joined() || !sharing_.budget().retired())
        return;
    const DisableCancellation locked;
    take_back_dead();
}

}  // namespace cuslice
