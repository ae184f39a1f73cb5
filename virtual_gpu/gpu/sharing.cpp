// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/sharing.h"

#include <time.h>

#include <algorithm>
#include <iterator>

#include "config/container_group.h"
#include "config/handover.h"
#include "config/load.h"
#include "config/number.h"
#include "config/resolve.h"
#include "policy/base/cancellation.h"
#include "policy/ledger/process_identity.h"
#include "virtual_gpu/gpu/context_kind.h"

namespace cuslice {

namespace {

constexpr uint64_t kPoll = 100;  // milliseconds between two looks while waiting

bool may_fit_soon(const Refusal& refusal, uint64_t capacity) {
    return refusal.how == ledger::Joined::refused && ledger::may_be_charged_soon(refusal, capacity);
}

// The limit of one of the jobs: of the process's own, or of one around it, which may not have begun on this GPU. Of
// more jobs than accounts are joined, not all limits are handed on.
uint64_t limit_of_job(const SharingPlan& plan, unsigned job, const GpuSharing::Slice& slice) {
    if (job + 1 == plan.job_count)
        return slice.job_limit;
    static_assert(std::size(OuterLimits{}.bytes) == SharingPlan::kMaxJobs - 1);
    return plan.depth <= SharingPlan::kMaxJobs ? slice.outer_limits.bytes[plan.job_count - 2 - job]
                                               : ledger::kNoLimitBytes;
}

bool limits_any_job(const SharingPlan& plan, const GpuSharing::Slice& slice) {
    for (unsigned job = 0; job < plan.job_count; job++)
        if (limit_of_job(plan, job, slice) != ledger::kNoLimitBytes)
            return true;
    return false;
}

void sleep_milliseconds(uint64_t count) {
    const timespec pause{static_cast<time_t>(count / 1000), static_cast<long>(count % 1000 * 1'000'000)};
    nanosleep(&pause, nullptr);
}

}  // namespace

SharingPlan plan_sharing(const Settings& settings, const char* const* environment) {
    SharingPlan plan;
    plan.group = group_name(settings);
    plan.context_kind = context_kind(environment);
    if (const Entry* wait = find(settings, Key::wait))
        plan.wait = wait->number;
    plan.quantum = share_quantum_of(settings);
    plan.rule.assign(settings.shared_rule());
    plan.folder = sharing_folder(settings, variable(environment, kFakeFolderVariable));
    std::string_view jobs = variable(environment, kJobVariable);
    while (!jobs.empty()) {
        const size_t comma = std::min(jobs.find(','), jobs.size());
        std::string_view job = jobs.substr(0, comma);
        const std::string_view name = job.substr(0, job.find('@'));
        job.remove_prefix(name.size());
        if (plan.job_count == 0)
            plan.made_in.assign(job);
        plan.depth++;
        if (plan.job_count < SharingPlan::kMaxJobs)
            plan.jobs[plan.job_count++].assign(name);
        jobs.remove_prefix(std::min(comma + 1, jobs.size()));
    }
    plan.launched = !variable(environment, kHandOver).empty();
    plan.begins_job = plan.job_count == 0 && admits_at_first_context(settings);
    if (plan.begins_job) {
        plan.job_count = plan.depth = 1;
        if (shares_container(settings))
            plan.jobs[0].assign(plan.group);
    }
    return plan;
}

// Also in another container a process has another name. The launcher's have one hyphen.
FixedText<64> SharingPlan::job(unsigned number) const {
    if (!jobs[number].empty())
        return jobs[number];
    const ledger::ProcessIdentity self = ledger::this_process();
    FixedText<64> name;
    name.append(static_cast<unsigned>(self.pid), "-", self.start_time);
    name.append("-", self.pid_namespace);
    return name;
}

uint64_t ledger_of_job(std::string_view made_in, std::string_view uuid) {
    constexpr size_t kDigits = 16;
    while (!made_in.empty()) {
        made_in.remove_prefix(1);  // the @
        std::string_view one = made_in.substr(0, made_in.find('@'));
        made_in.remove_prefix(one.size());
        const size_t equals = one.find('=');
        if (one.substr(0, equals) != uuid)
            continue;
        one.remove_prefix(uuid.size());
        if (one.size() != 1 + kDigits)
            continue;
        one.remove_prefix(1);
        uint64_t id = 0;
        for (const char digit : one)
            id = id * 16 + digit_value(digit);
        return id;
    }
    return 0;
}

namespace {

bool has_rule(const SharingPlan& plan, const GpuSharing::Slice& slice) {
    return !plan.rule.empty() && slice.rule_limit != ledger::kNoLimitBytes;
}

// The account of one of the jobs, outermost first, then the group's, then the rule's. `job`: the job's name.
ledger::Request request_for(const SharingPlan& plan, const GpuSharing::Slice& slice, unsigned account,
                            const FixedText<64>& job) {
    const bool is_job = account < plan.job_count;
    const bool is_group = account == plan.job_count && !plan.group.empty();
    ledger::Request request;
    request.inner = account != 0 || !is_job;
    if (is_job) {
        request.name = job.c_str();
        request.limit = limit_of_job(plan, account, slice);
    } else if (is_group) {
        request.kind = ledger::AccountKind::group;
        request.name = plan.group.c_str();
        request.limit = slice.group_limit;
    } else {
        request.kind = ledger::AccountKind::rule;
        request.name = plan.rule.c_str();
        request.limit = slice.rule_limit;
    }
    const bool reserves = !request.inner && request.limit != ledger::kNoLimitBytes;
    request.reserved = reserves ? request.limit : 0;
    return request;
}

}  // namespace

bool GpuSharing::try_join(const SharingPlan& plan, const Slice& slice, uint64_t in_use, Refusal* refusal) {
    const uint64_t made_in = plan.job_count ? ledger_of_job(plan.made_in.view(), slice.uuid) : 0;
    const bool group = !plan.group.empty();
    const bool rule = has_rule(plan, slice);
    // Alone it would have a limit of its own in place of the shared one, or none.
    const bool closed = rule || group || made_in || limits_any_job(plan, slice);
    refusal->failure = {};
    if (!ledger_.open(plan.folder.c_str(), slice.uuid, slice.capacity, false, &refusal->failure)) {
        refusal->how = closed ? ledger::Joined::unreachable : ledger::Joined::unavailable;
        return !closed;
    }
    ledger_.believes_others(slice.ceiling_for_all);
    if (rule)
        ledger_.reserves_under(plan.rule.c_str(), slice.rule_limit);
    refusal->how = ledger::Joined::unavailable;
    refusal->rebuilt = ledger_.found() == ledger::Found::rebuilt;
    const unsigned accounts = plan.job_count + (group ? 1 : 0) + (rule ? 1 : 0);
    for (; joined_ < accounts; joined_++) {
        const FixedText<64> job = joined_ < plan.job_count ? plan.job(joined_) : FixedText<64>();
        ledger::Request request = request_for(plan, slice, joined_, job);
        if (!request.inner)
            request.made_in = made_in;
        refusal->asked = request.reserved;
        refusal->how =
            budget_.join(ledger_, request, in_use, &refusal->committed, &refusal->available, &refusal->failure);
        if (refusal->how == ledger::Joined::refused || refusal->how == ledger::Joined::lost)
            return false;
        if (refusal->how != ledger::Joined::unavailable)
            continue;
        if (closed)
            refusal->how = ledger::Joined::unreachable;
        return !closed;
    }
    return true;
}

// Asks NVML for the memory in use, and waits for other jobs, without the lock.
bool GpuSharing::join(const SharingPlan& plan, const Slice& slice, SharedBudget* outer, uint64_t (*in_use)(void*),
                      void* argument, Refusal* refusal) {
    refusal->how = ledger::Joined::yes;
    if (!plan.any()) {
        const DisablingLockGuard lock(mutex_);
        if (outer && outer->joined() && !budget_.joined())
            budget_.lies_in(*outer);
        return true;
    }
    for (uint64_t waited = 0;; waited += kPoll) {
        if (state_.load(std::memory_order_acquire) == State::done)
            return true;
        refusal->in_use = in_use(argument);
        {
            const DisablingLockGuard lock(mutex_);
            if (state_.load(std::memory_order_relaxed) == State::done)
                return true;
            if (try_join(plan, slice, refusal->in_use, refusal)) {
                ledger_.leave_queue();  // where it goes on without a reservation
                if (outer && outer->joined())
                    budget_.lies_in(*outer);
                state_.store(State::done, std::memory_order_release);
                return true;
            }
            refusal->waiting = plan.wait != 0;
            refusal->launched = plan.launched;
            if (waited < plan.wait && refusal->how == ledger::Joined::refused) {
                ledger_.queue_up(refusal->asked, nullptr);
            } else if (waited >= ledger::kSettles || !may_fit_soon(*refusal, slice.capacity)) {
                ledger_.leave_queue();
                return false;
            }
        }
        sleep_milliseconds(kPoll);
    }
}

// The file stays open: closing it would give up the place that this process may have in it, or take later.
bool GpuSharing::watch(const SharingPlan& plan, const char* uuid, ledger::Watched* watched) {
    if (!plan.any())
        return false;
    const bool open = ledger_.opened() || ledger_.open_existing(plan.folder.c_str(), uuid, nullptr);
    if (!open)
        return false;
    bool any = false;
    const auto watch = [&](ledger::AccountKind kind, const FixedText<64>& name) {
        any |= ledger_.watch(kind, name.c_str(), watched);
    };
    for (unsigned i = 0; i < plan.job_count; i++)
        watch(ledger::AccountKind::job, plan.job(i));
    if (!plan.group.empty())
        watch(ledger::AccountKind::group, plan.group);
    if (!plan.rule.empty())
        watch(ledger::AccountKind::rule, plan.rule);
    return any;
}

uint64_t GpuSharing::group_limit(const SharingPlan& plan, const char* uuid) {
    ledger::GroupTerms terms;
    if (plan.group.empty())
        return ledger::kNoLimitBytes;
    const bool open = ledger_.opened() || ledger_.open_existing(plan.folder.c_str(), uuid, nullptr);
    if (!open)
        return ledger::kNoLimitBytes;
    return ledger_.look_at_group(plan.group.c_str(), &terms) ? terms.limit : ledger::kNoLimitBytes;
}

void GpuSharing::take_back_dead_each_tenth() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const int64_t tenth = now.tv_sec * 10 + now.tv_nsec / 100'000'000;
    if (looked_.load(std::memory_order_relaxed) == tenth || looked_.exchange(tenth, std::memory_order_relaxed) == tenth)
        return;
    const DisableCancellation locked;
    take_back_dead();
}

void GpuSharing::forget() {
    DisablingLockGuard lock(mutex_);
    joined_ = 0;
    state_.store(State::not_yet, std::memory_order_release);
    budget_.forget();
    ledger_.forget();
}

}  // namespace cuslice
