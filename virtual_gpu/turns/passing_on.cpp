// SPDX-License-Identifier: Apache-2.0
// The thread that passes the lease on: early, where nothing is queued and somebody waits, or once what is queued has
// run out after the turn. While nobody waits it sleeps.
#include <sys/prctl.h>

#include <algorithm>
#include <new>

#include "policy/base/kernel_clock.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/relaxed_captures.h"
#include "virtual_gpu/turns/turns.h"

namespace cuslice {

namespace {

constexpr uint64_t kMicrosecond = 1000;
// Between two questions to the GPU: while a turn's work runs out, while others wait, and while they may come to. No
// sleep is shorter: with 5 us, other threads on the same core, such as those that feed the GPU, waited for up to 3 ms
// (Linux 6.18, 2 cores).
constexpr uint64_t kOften = 20 * kMicrosecond, kPoll = 50 * kMicrosecond, kSeldom = 1000 * kMicrosecond;
// Parts of a turn that may be queued, twice that at most. A program that pauses waits for what is queued each time that
// it is back.
constexpr uint64_t kDepths = 2, kDepthsWanted = 10, kDepthsForLender = 50;
// So long a GPU is idle before the lease is passed on early: a program that launches one kernel after the other leaves
// it idle for moments.
constexpr uint64_t kGrace = 50 * kMicrosecond;
// Between two looks for the file. Nothing else is due here while nobody waits: whoever comes to changes the gate.
constexpr uint64_t kFileLook = 1'000'000 * kMicrosecond;
// From a change of the gate to this thread's work: a launch that was let in has the core first, and room for so long.
constexpr uint64_t kSettled = 300 * kMicrosecond;
// Without a launch for so long, work that can't be marked is waited for.
constexpr uint64_t kQuiet = 1000 * kMicrosecond;
// A launch that isn't submitted so long after all others have run out was left by a longjmp.
constexpr uint64_t kLeft = 50'000 * kMicrosecond;

uint64_t now_monotonic() { return kernel_clock(CLOCK_MONOTONIC); }

uint64_t depths_for(uint64_t gate) {
    if (lease::has_lender(gate))
        return kDepthsForLender;
    return lease::is_wanted(gate) ? kDepthsWanted : kDepths;
}

}  // namespace

void* Turns::run(void* self) {
    // For this thread's sleeps alone.
    prctl(PR_SET_TIMERSLACK, 1);
    // Never ended: the driver may have taken itself down by then.
    alignas(RelaxedCaptures) static unsigned char relaxed[sizeof(RelaxedCaptures)];
    new (relaxed) RelaxedCaptures;
    static_cast<Turns*>(self)->pass_on();
    return nullptr;
}

void Turns::pass_on() {
    for (;;) {
        is_looking_.store(true);
        const bool joined = phase_.load() == Phase::joined;
        const uint64_t now = now_monotonic();
        const uint64_t until = joined ? look(now) : now;
        is_looking_.store(false);
        looked_.happened();
        if (!joined)
            return;
        if (until > now)
            lease_.lease().await_change(shown_, std::max(until, now_monotonic() + kOften));
    }
}

uint64_t Turns::look(uint64_t now) {
    look_for_file(now);
    return look_after(now);
}

// A job that stays in a file which was removed, or replaced, would have its turns beside everybody's.
void Turns::look_for_file(uint64_t now) {
    if (now < next_look_for_file_)
        return;
    next_look_for_file_ = now + kFileLook;
    if (!lease_.is_lost())
        return;
    {
        const DisablingLockGuard lock(mutex_);
        lease::LedgerError why;
        used_ = 0;
        if (phase_.load() == Phase::joined && !lease_.open_again(terms(), &why))
            give_up(why);
    }
    services.use_all();
}

// Returns when it is to be called again, if the gate doesn't change before.
uint64_t Turns::look_after(uint64_t now) {
    lease::Lease& lease = lease_.lease();
    uint64_t gate = lease.gate();
    if (gate != shown_) {
        due_ = settled_ = now + kSettled;
    } else if (now >= due_) {
        due_ = lease.look();
        gate = lease.gate();
    }
    shown_ = gate;
    if (lease::is_open(gate))
        return look_after_open(gate, now);
    // It may have been open since, and nobody here has seen it.
    if (gate != passed_at_)
        return look_after_closed(now);
    return now + kFileLook;
}

uint64_t Turns::look_after_open(uint64_t gate, uint64_t now) {
    is_closing_ = false;
    if (lease::goes_on_at_once(gate)) {
        is_bounded_ = has_first_ = false;
        return now + kFileLook;
    }
    depth_.set_target(gpu_state().sharing.quantum / depths_for(gate), gpus_.load());
    if (!is_bounded_ && now < settled_)
        return settled_;
    if (!is_bounded_)
        begin_bound(now);
    make_room(now);
    if (!lease::is_wanted(gate))
        return rest(now, lease::has_lender(gate) ? kPoll : kSeldom);
    if (is_idle(now) && pass_early())
        return now;
    return std::min(due_, now + kPoll);
}

// Nobody waits, but may come to. Where nothing is queued the next launch calls this thread.
uint64_t Turns::rest(uint64_t now, uint64_t poll) {
    is_resting_.store(through_ == submitted_.load() && !work_.any());
    if (through_ == submitted_.load())
        return now + kFileLook;
    is_resting_.store(false);
    return std::min(due_, now + poll);
}

void Turns::begin_bound(uint64_t now) {
    is_bounded_ = true;
    quiet_since_ = 0;
    if (has_first_)
        looked_at_ = 0;
    else
        begin_among_others(now);
    has_first_ = false;
}

// Until now there were none, and nothing has been marked.
void Turns::begin_among_others(uint64_t now) {
    looked_at_ = now;
    work_.drop();
    const uint64_t submitted = submitted_.load();
    allow_first(submitted);
    marked_.store(submitted);
    through_ = submitted - 1;  // as is not known yet
    work_.mark(submitted);
    room_.happened();
}

void Turns::allow_first(uint64_t submitted) {
    depth_.begin(submitted);
    step_.store(depth_.step());
    allowed_.store(depth_.allowed());
}

void Turns::note_passed(uint64_t launch) {
    through_ = launch;
    depth_.passed(launch, looked_at_, now_monotonic());
    step_.store(depth_.step());
    set_allowed(depth_.allowed());
}

void Turns::make_room(uint64_t now) {
    const std::optional<uint64_t> passed = work_.passed();
    const uint64_t submitted = submitted_.load();
    if (passed)
        note_passed(*passed);
    if (!work_.any() && through_ != submitted && !work_.mark(submitted))
        make_room_unmarked(submitted, now);
    looked_at_ = now;
}

// A capture goes on, whose launches are none, or the driver has no marks.
void Turns::make_room_unmarked(uint64_t submitted, uint64_t now) {
    const bool is_quiet = quiet_since_ && now - quiet_since_ >= kQuiet;
    if ((is_quiet || !QueuedWork::can_mark()) && work_.wait_for_all())
        note_passed(submitted);
    else
        set_allowed(submitted + depth_.step());
}

bool Turns::is_idle(uint64_t now) {
    const uint64_t submitted = submitted_.load();
    const uint32_t under_way = under_way_.load();
    if (quiet_launch_ != submitted || quiet_under_way_ != under_way || !quiet_since_) {
        quiet_launch_ = submitted;
        quiet_under_way_ = under_way;
        quiet_since_ = now;
        return false;
    }
    const uint64_t quiet = now - quiet_since_;
    const bool is_through = through_ == submitted && !work_.any();
    return is_through && (calls_.load() == 0 ? quiet >= kGrace : quiet >= kLeft);
}

// False: a launch has begun meanwhile.
bool Turns::pass_early() {
    is_passing_.store(true);
    const bool is_unused = under_way_.load() == quiet_under_way_ && submitted_.load() == through_;
    if (is_unused)
        pass();
    is_passing_.store(false);
    room_.happened();
    return is_unused;
}

// The mark stands behind all launches but those under way, of which one more mark is behind.
bool Turns::has_run_out(uint64_t now) {
    if (!is_closing_) {
        is_closing_ = true;
        ran_out_at_ = 0;
        work_.drop();
        are_all_marked_ = mark_all();
    }
    work_.passed();
    if (work_.any())
        return false;
    if (are_all_marked_)
        return true;
    are_all_marked_ = mark_all();
    ran_out_at_ = ran_out_at_ ? ran_out_at_ : now;
    return now - ran_out_at_ >= kLeft;
}

// True if no launch is under way that the mark may not stand behind.
bool Turns::mark_all() {
    const bool all_submitted = under_way_.load() == 0;
    if (!work_.mark(submitted_.load()) && !work_.any())
        work_.wait_for_all();
    return all_submitted;
}

uint64_t Turns::look_after_closed(uint64_t now) {
    if (!has_run_out(now))
        return now + kOften;
    pass();
    return now;
}

// The next turn's first launches needn't wait for this thread.
void Turns::pass() {
    allow_first(submitted_.load());
    has_first_ = true;
    lease_.lease().pass();
    passed_at_ = lease_.lease().gate();
    is_bounded_ = false;
    is_closing_ = false;
    work_.drop();
    room_.happened();
}

}  // namespace cuslice
