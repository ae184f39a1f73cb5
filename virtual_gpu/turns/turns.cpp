// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/turns/turns.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "policy/base/cancellation.h"
#include "policy/base/kernel_clock.h"
#include "policy/lease/figures.h"
#include "policy/lease/job_id.h"
#include "virtual_gpu/cache/threads.h"
#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/virtual_gpu.h"
#include "virtual_gpu/turns/gate.h"

namespace cuslice {

namespace {

// A launch waits no longer than this, whatever the lease says.
constexpr uint64_t kLongest = 60'000 * lease::kMillisecond;
constexpr uint32_t kLookAgain = 10 * lease::kMillisecond;
// For room in the queue, as long as others wait for the end of what is in it.
constexpr uint64_t kPatience = lease::Terms{}.patience;
constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();

uint64_t job_of_process() { return lease::job_id(gpu_state().sharing.job(0).view()); }

constinit lease::Gate not_yet{0}, none{lease::kOpen};

}  // namespace

extern "C" {
constinit std::atomic<lease::Gate*> cuslice_gate{&not_yet};
}

bool Turns::open_lease() {
    lease::LedgerError why;
    lease_.lease().show_gate_in(cuslice_gate);
    if (lease_.open(gpu_state().sharing.folder.c_str(), terms(), &why))
        return true;
    give_up(why);
    return false;
}

lease::Terms Turns::terms() const { return {.quantum = gpu_state().sharing.quantum}; }

void Turns::give_up(const lease::LedgerError& why) {
    phase_.store(Phase::left);
    cuslice_gate.store(&none);
    services.failed(why);
}

void Turns::start() {
    {
        const DisablingLockGuard lock(mutex_);
        if (phase_.load() != Phase::not_yet || !open_lease())
            return;
        phase_.store(Phase::joined);
    }
    services.use_all();
    const DisablingLockGuard lock(mutex_);
    if (!used_)  // it has no share of those that it uses so far
        cuslice_gate.store(&none);
}

void Turns::use(const VirtualGpu& gpu) {
    const Slice::Time& time = gpu.slice().time;
    if (!time.weight)
        return;
    if (!has_started())
        start();
    if (phase_.load() != Phase::joined)
        return;
    const DisablingLockGuard lock(mutex_);
    lease::Lease& lease = lease_.lease();
    const uint32_t number = lease.number_of_gpu(gpu.identity().uuid);
    if (number != lease::kNoPlace && (used_ & lease::bit(number)))
        return;
    const lease::Share share{.gpu = number, .weight = time.weight, .cap = time.cap};
    const bool is_first = !used_;
    if (number == lease::kNoPlace || !(is_first ? lease.join(job_of_process(), share) : lease.set_share(share)))
        return say_no_room(gpu);
    used_ |= lease::bit(number);
    gpus_.store(static_cast<unsigned>(std::popcount(used_)));
    if (!is_first)
        return;
    passed_at_ = lease.gate();
    if (!has_thread_)
        start_thread();
}

void Turns::start_thread() {
    has_thread_ = start_background_thread(run, this);
    if (has_thread_)
        return services.started();
    leave();
    lease::LedgerError why;
    ledger::set_text(&why, "no thread can be started that passes the lease on");
    services.failed(why);
}

void Turns::await_turn() {
    calls_.fetch_add(1);
    if (is_resting_.load() && is_resting_.exchange(false))
        lease_.lease().nudge();
    uint64_t without_room = 0;
    while (phase_.load() == Phase::joined) {
        const uint64_t gate = lease_.lease().gate();
        if (lease::is_open(gate)) {
            if (!lease::goes_on_at_once(gate) && !has_room())
                await_room(&without_room);
            else if (enter())
                return;
            continue;
        }
        const lease::Answer answer = lease_.lease().acquire(kernel_clock(CLOCK_MONOTONIC) + kLongest);
        if (answer.reason != lease::Reason::none)
            services.answered(answer);
        if (!answer.granted)
            break;
    }
    under_way_.fetch_add(1);
}

// The thread that passes the lease on looks for launches under way once the gate is closed, or is about to be: it finds
// this one, or this thread finds that.
bool Turns::enter() {
    under_way_.fetch_add(1);
    if (lease_.lease().held() && !is_passing_.load())
        return true;
    under_way_.fetch_sub(1);
    return false;
}

void Turns::say_no_room(const VirtualGpu& gpu) {
    lease::LedgerError why;
    ledger::set_text(&why, "the lease has no place for another GPU, job or process, or is damaged: %s has none",
                     gpu.identity().uuid);
    services.failed(why);
}

bool Turns::has_room() const { return submitted_.load() < allowed_.load() && !is_passing_.load(); }

// Queued work that takes so long may wait for this very launch. `*since`: when there was no room first; 0: there was.
// The thread may have been about to rest when this launch called it.
void Turns::await_room(uint64_t* since) {
    const uint64_t now = kernel_clock(CLOCK_MONOTONIC);
    *since = *since ? *since : now;
    if (now - *since >= kPatience)
        return set_allowed(kAll);
    const uint32_t seen = room_.now();
    if (has_room() || !lease_.lease().held())
        return;
    room_.wait_for(seen, kLookAgain);
    if (!has_room())
        lease_.lease().nudge();
}

void Turns::set_allowed(uint64_t launch) {
    allowed_.store(launch);
    room_.happened();
}

void Turns::submitted() {
    const uint64_t launches = submitted_.fetch_add(1) + 1;
    uint64_t marked = marked_.load();
    const bool due = launches >= marked + step_.load() && !lease::goes_on_at_once(lease_.lease().gate());
    if (due && marked_.compare_exchange_strong(marked, launches)) {
        const DisableCancellation uncancelled;
        work_.mark(launches);
    }
    under_way_.fetch_sub(1);
    calls_.fetch_sub(1);
}

bool Turns::times_on(const VirtualGpu& gpu, Times* times) {
    const Scratch<lease::State> state;
    if (phase_.load() != Phase::joined || !state || !lease_.lease().read(&*state))
        return false;
    const uint64_t id = job_of_process(), now = kernel_clock(CLOCK_MONOTONIC);
    const auto named = [&](const lease::Gpu& one) { return std::strcmp(one.uuid, gpu.identity().uuid) == 0; };
    const auto number =
        static_cast<uint32_t>(std::find_if(state->gpus, state->gpus + lease::kGpus, named) - state->gpus);
    for (const lease::Job& job : state->jobs) {
        if (job.id != id || number == lease::kGpus || !lease::uses(job, number))
            continue;
        *times = {job.claims[number].weight, lease::had_until(job, number, now), lease::waited_until(job, now)};
        return true;
    }
    return false;
}

void Turns::end() {
    if (phase_.load() == Phase::joined)
        services.ends();
    leave();
    await_thread();
}

// Where it may be in the driver. The program may have it wait there.
void Turns::await_thread() {
    constexpr unsigned kTries = 10;
    for (unsigned i = 0; i < kTries && is_looking_.load(); i++) {
        const uint32_t seen = looked_.now();
        if (is_looking_.load())
            looked_.wait_for(seen, kLookAgain);
    }
}

void Turns::leave() {
    const bool was_in = phase_.exchange(Phase::left) == Phase::joined;
    cuslice_gate.store(&none);
    room_.happened();
    if (!was_in)
        return;
    lease_.lease().nudge();
    lease_.lease().leave();
}

void Turns::forget() {
    if (phase_.exchange(Phase::left) != Phase::not_yet)
        lease_.forget();
    is_looking_.store(false);
    cuslice_gate.store(&none);
}

}  // namespace cuslice
