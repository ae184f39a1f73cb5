// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/lease.h"

#include <algorithm>

#include "policy/lease/change.h"
#include "policy/lease/members.h"
#include "policy/lease/queue.h"
#include "policy/lease/schedule.h"

namespace cuslice::lease {

namespace {

// A gate that was not shown because its process was killed before is shown by whoever looks next. Nobody sleeps for
// more quanta than these beyond its place in the queue.
constexpr uint64_t kMostAsleep = 2;

Reason reason_of(Changed changed) {
    switch (changed) {
        case Changed::yes:
            return Reason::none;
        case Changed::refused:
            return Reason::no_place;
        case Changed::damaged:
            return Reason::damaged;
        case Changed::crowded:
            return Reason::crowded;
    }
    return Reason::none;
}

}  // namespace

const char* text_of(Reason reason) {
    switch (reason) {
        case Reason::none:
            return "";
        case Reason::holder_ended:
            return "has ended";
        case Reason::holder_stopped:
            return "is stopped";
        case Reason::holder_overdue:
            return "has work on the GPU that does not end";
        case Reason::deadline:
            return "the lease was not passed on in time";
        case Reason::damaged:
            return "the lease's file is damaged";
        case Reason::no_place:
            return "the lease's file does not know this process any more";
        case Reason::crowded:
            return "the lease's file changes all the time";
    }
    return "";
}

void Lease::attach(File& file, Surroundings& surroundings, const Member& self) {
    const DisablingLockGuard lock(mutex_);
    file_ = &file;
    surroundings_ = &surroundings;
    self_ = self;
}

bool Lease::is_in() const { return place_ != kNoPlace; }

// A file may lose its place, by a write of somebody else's or by a mistake about its life.
template <typename Step>
Reason Lease::do_step(Step step) {
    const bool in = is_in();
    const Changed changed = change(*file_, state_, self_.presence, *surroundings_, [&] {
        const bool has_place = !in || state_.members[place_].presence == self_.presence;
        if (has_place)
            step();
        return has_place;
    });
    return reason_of(changed);
}

void Lease::stand_at(Gate& gate) {
    gate_.store(&gate, std::memory_order_relaxed);
    if (shown_in_)
        shown_in_->store(&gate);
}

void Lease::open_for_good() {
    stand_at(no_gate_);
    place_ = kNoPlace;
}

uint32_t Lease::number_of_gpu(const char* uuid) {
    const DisablingLockGuard lock(mutex_);
    uint32_t number = kNoPlace;
    const Reason reason = do_step([&] { number = lease::number_of_gpu(state_, uuid); });
    return reason == Reason::none ? number : kNoPlace;
}

bool Lease::join(uint64_t job, const Share& share) {
    const DisablingLockGuard lock(mutex_);
    if (is_in() || job == 0 || share.gpu >= kGpus)
        return false;
    uint64_t seen = 0;
    if (read_current(*file_, &state_, &seen) && is_whole(state_))
        take_out_ended(Members::all);
    uint32_t place = kNoPlace;
    const Reason reason = do_step([&] {
        const uint32_t index = place_of_job(state_, job);
        place = index == kNoPlace ? kNoPlace : enter(state_, index, self_);
        if (place != kNoPlace)
            take_share(state_, index, share.gpu, share.weight, share.cap, surroundings_->now());
    });
    if (reason != Reason::none || place == kNoPlace)
        return false;
    place_ = place;
    stand_at(file_->gates[place]);
    return true;
}

bool Lease::set_share(const Share& share) {
    const DisablingLockGuard lock(mutex_);
    if (!is_in() || share.gpu >= kGpus)
        return false;
    const Reason reason = do_step([&] {
        const uint32_t job = state_.members[place_].job;
        take_share(state_, job, share.gpu, share.weight, share.cap, surroundings_->now());
    });
    return reason == Reason::none;
}

void Lease::leave() {
    const DisablingLockGuard lock(mutex_);
    if (!is_in())
        return;
    do_step([&] { lease::leave(state_, place_, surroundings_->now()); });
    open_for_good();
}

void Lease::forget() {
    const DisablingLockGuard lock(mutex_);
    open_for_good();
    file_ = nullptr;
}

void Lease::charge(uint32_t gpu, uint64_t nanoseconds) {
    const DisablingLockGuard lock(mutex_);
    if (gpu < kGpus)
        charged_[gpu] += nanoseconds;
}

void Lease::pass() {
    const DisablingLockGuard lock(mutex_);
    if (!is_in())
        return;
    do_step([&] {
        for (uint32_t gpu = 0; gpu < kGpus; gpu++)
            report(state_, place_, gpu, charged_[gpu]);
        lease::pass(state_, place_, surroundings_->now());
    });
    std::fill(charged_, charged_ + kGpus, 0);
}

bool Lease::read(State* into) {
    const DisablingLockGuard lock(mutex_);
    uint64_t seen = 0;
    return file_ && read_current(*file_, into, &seen) && is_whole(*into);
}

// Asks the kernel, so outside of the step: `state_` is of a moment ago, and each is looked up again in there.
void Lease::take_out_ended(Members members) {
    for (uint32_t i = 0; i < kMembers; i++) {
        const Member member = state_.members[i];
        const bool asked = members == Members::all || member.busy || member.wants;
        if (is_free(member) || !asked || i == place_ || surroundings_->condition_of(member) != Condition::ended)
            continue;
        if (is_holder(state_, member))
            note_passed_by(Reason::holder_ended, state_.jobs[member.job], member);
        do_step([&] {
            if (state_.members[i].presence == member.presence)
                lease::leave(state_, i, surroundings_->now());
        });
        surroundings_->forget(member.presence);
    }
}

// A quantum later where it is this process itself: who waits for it is first, and says it.
Reason Lease::why_overdue(const Job& job, const Member& member, uint64_t now) {
    const uint64_t lead = member.presence == self_.presence ? state_.terms.quantum : 0;
    const uint64_t waited = elapsed(job.closed + lead, now);
    if (waited < state_.terms.quantum)
        return Reason::none;
    if (surroundings_->condition_of(member) == Condition::stopped)
        return Reason::holder_stopped;
    return waited < state_.terms.patience ? Reason::none : Reason::holder_overdue;
}

void Lease::pass_by_overdue() {
    const uint64_t now = surroundings_->now();
    for (uint32_t i = 0; i < kMembers; i++) {
        const Member member = state_.members[i];
        const Job job = state_.jobs[member.job];
        if (!is_holder(state_, member) || job.phase != Phase::closing)
            continue;
        const Reason reason = why_overdue(job, member, now);
        if (reason == Reason::none)
            continue;
        note_passed_by(reason, job, member);
        do_step([&] {
            const Job& same = state_.jobs[member.job];
            if (same.id == job.id && same.phase == Phase::closing && same.closed == job.closed)
                pass_by(state_, member.job, now);
        });
    }
}

uint64_t Lease::next_look(uint64_t now) const {
    const uint64_t quantum = state_.terms.quantum;
    const uint64_t next = next_event(state_, now, kMostAsleep * quantum);
    // The first in the queue looks for all. Each of the others stands in for those before it.
    return next + place_in_queue(state_, state_.jobs[state_.members[place_].job]) * quantum;
}

uint64_t Lease::look() {
    const DisablingLockGuard lock(mutex_);
    const uint64_t now = surroundings_->now();
    if (!is_in() || do_step([&] { schedule(state_, surroundings_->now()); }) != Reason::none)
        return now + kMostAsleep * kMostQuantum;
    take_out_ended(Members::taking_part);
    pass_by_overdue();
    return next_look(now);
}

void Lease::note_passed_by(Reason reason, const Job& job, const Member& member) {
    passed_by_ = {true, reason, job.id, member.pid};
    is_any_passed_by_.store(true);
}

Answer Lease::take_passed_by() {
    const Answer answer = passed_by_;
    passed_by_ = {};
    is_any_passed_by_.store(false);
    return answer;
}

// Another thread of this process may have passed the holder by. Without the lock where none has: that thread wakes at
// the same time as this one, and looks.
Answer Lease::let_in() {
    if (!is_any_passed_by_.load())
        return {};
    const DisablingLockGuard lock(mutex_);
    return take_passed_by();
}

bool Lease::fail(Reason reason, Answer* answer) {
    *answer = {false, reason, 0, 0};
    if (reason == Reason::damaged || reason == Reason::no_place)
        open_for_good();
    return true;
}

bool Lease::try_acquire(uint64_t deadline, Answer* answer, Pause* pause) {
    const DisablingLockGuard lock(mutex_);
    *answer = {};
    if (!is_in())
        return true;
    const uint64_t now = surroundings_->now();
    Reason reason = do_step([&] { want(state_, place_, now); });
    if (reason == Reason::none && !is_open(state_.members[place_].gate)) {
        take_out_ended(Members::taking_part);
        pass_by_overdue();
    }
    if (reason == Reason::none && is_open(state_.members[place_].gate)) {
        *answer = take_passed_by();
        return true;
    }
    if (reason == Reason::none && now >= deadline) {
        do_step([&] { stop_wanting(state_, place_, now); });
        reason = Reason::deadline;
    }
    if (reason != Reason::none)
        return fail(reason, answer);
    *pause = {state_.members[place_].gate, std::min(deadline, next_look(now))};
    return false;
}

Answer Lease::acquire(uint64_t deadline) {
    Answer answer;
    Pause pause;
    while (!try_acquire(deadline, &answer, &pause)) {
        await_change(pause.shown, pause.until);
        // Its opener has entered the turn for this process.
        if (held())
            return let_in();
    }
    return answer;
}

void Lease::await_change(uint64_t shown, uint64_t until) {
    surroundings_->sleep(*gate_.load(std::memory_order_relaxed), shown, until);
}

}  // namespace cuslice::lease
