// SPDX-License-Identifier: Apache-2.0
#include "fake/time/keeper.h"

#include <sched.h>

#include <algorithm>
#include <bit>

#include "fake/books/liveness.h"
#include "fake/time/futex.h"
#include "fake/time/sleepers.h"

namespace cuslice::fake {
namespace {

constexpr Time kLook = 50'000'000;    // between two looks whether processes live
constexpr Time kAlone = 300'000'000;  // without a process
constexpr Time kShort = 60'000;       // sleeps end up to so late, so they are asked to end so early

}  // namespace

Timekeeper::Timekeeper(TimeMapping& mapping)
    : mapping_(mapping), file_(*mapping), figures_(file_), model_(*this), alone_since_(monotonic_time()) {}

void Timekeeper::on_reached(StreamPoint point, Time when) {
    TimedStream& stream = file_.streams[point.stream];
    file_.rings[point.stream].of(point.ticket).time = when;
    stream.reached = point.ticket;
    uint64_t wanted = stream.wanted;
    if (wanted != 0 && wanted <= point.ticket && stream.wanted.compare_exchange_strong(wanted, 0))
        futex_raise(stream.wake);
}

void Timekeeper::on_busy(uint32_t context, Engine engine, Time begin, Time end) {
    figures_.add(context, engine, begin, end);
}

Time Timekeeper::clock() const { return file_.header.is_virtual != 0 ? file_.header.now.load() : monotonic_time(); }

void Timekeeper::run() {
    for (;;) {
        // Work that is submitted while the rest is taken is of later.
        const Time now = clock();
        take_all();
        model_.advance(now);
        end_streams();
        tell_figures();
        look_after_processes();
        if (nobody_is_left())
            break;
        const Time wanted = next_wanted();
        if (file_.header.is_virtual != 0 && wanted != kNever)
            pass_virtual_time(wanted);
        else
            sleep_until(wanted);
    }
    figures_.flush();
}

// --- News from processes ------------------------------------------------------------------------------------------

void Timekeeper::take_all() {
    for (uint32_t word = 0; word < kTimeStreams / 64; word++) {
        std::atomic<uint64_t>& rung = file_.header.rung[word];
        if (rung.load(std::memory_order_relaxed) == 0)
            continue;
        for (uint64_t bits = rung.exchange(0); bits != 0; bits &= bits - 1)
            take_work(word * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
    }
    look_at_contexts();  // their work was earlier than their end
}

void Timekeeper::take_work(uint32_t number) {
    TimedStream& stream = file_.streams[number];
    const uint32_t context = stream.context - 1;
    if (context >= kTimeContexts)
        return;
    const uint32_t gpu = file_.contexts[context].gpu;
    if (!has_gpu_[gpu])
        model_.add_gpu(gpu, file_.gpus[gpu].timing);
    has_gpu_[gpu] = true;
    if (!model_.has_context(context))
        model_.add_context(context, gpu);
    if (!model_.has_stream(number))
        model_.add_stream(number, context, stream.reached);
    streams_used_ = std::max(streams_used_, number + 1);
    const uint64_t submitted = stream.submitted;
    for (uint64_t ticket = model_.submitted(number) + 1; ticket <= submitted; ticket++) {
        const TimedWork& work = file_.rings[number].of(ticket);
        model_.submit(number, {work.engine,
                               work.held,
                               work.multiprocessors,
                               work.duration,
                               work.time,
                               {work.after_stream, work.after_ticket}});
    }
    const uint64_t released = stream.released;
    if (released != 0)
        model_.release({number, released}, stream.released_at);
    if (stream.state == TimeState::closing && std::ranges::find(closing_, number) == closing_.end())
        closing_.push_back(number);
}

/// A stream is closed while it has work, too, and is there until that is done.
void Timekeeper::end_streams() {
    std::erase_if(closing_, [&](uint32_t number) {
        TimedStream& stream = file_.streams[number];
        // Its context may have ended, and the stream be another one's.
        if (stream.state != TimeState::closing)
            return true;
        if (stream.reached != stream.submitted)
            return false;
        model_.remove_stream(number);
        stream.state = TimeState::unused;
        stream.context = 0;
        return true;
    });
}

void Timekeeper::look_at_contexts() {
    const uint32_t rung = file_.header.contexts_rung;
    if (rung == contexts_seen_)
        return;
    contexts_seen_ = rung;
    for (uint32_t number = 0; number < kTimeContexts; number++) {
        if (file_.contexts[number].state == TimeState::closing)
            end_context(number);
    }
    processes_seen_ = 0;
}

void Timekeeper::end_context(uint32_t number) {
    model_.advance(clock());
    if (model_.has_context(number))
        model_.end_context(number);
    for (TimedStream& stream : file_.streams) {
        if (stream.context != number + 1)
            continue;
        stream.reached = stream.submitted.load();
        futex_raise(stream.wake);
        stream.state = TimeState::unused;
        stream.context = 0;
    }
    file_.contexts[number].state = TimeState::ended;
    file_.contexts[number].process = 0;
}

void Timekeeper::look_after_processes() {
    const Time now = monotonic_time();
    if (now - processes_seen_ < kLook)
        return;
    processes_seen_ = now;
    for (uint32_t number = 0; number < kTimeProcesses; number++) {
        TimedProcess& process = file_.processes[number];
        const TimeState state = process.state;
        const OwnerIdentity owner{process.pid, process.start_time, process.mapped_at};
        const bool ended =
            state == TimeState::closing ||
            (state == TimeState::open && life_of_owner(owner, 1 + static_cast<off_t>(number), mapping_.lock_file(),
                                                       mapping_.inode()) == Life::Ended);
        if (ended)
            end_process(number);
        if (process.state != TimeState::unused)
            alone_since_ = now;
    }
}

void Timekeeper::end_process(uint32_t number) {
    for (uint32_t context = 0; context < kTimeContexts; context++) {
        if (file_.contexts[context].process == number + 1)
            end_context(context);
    }
    file_.processes[number].state = TimeState::unused;
}

bool Timekeeper::nobody_is_left() {
    if (monotonic_time() - alone_since_ < kAlone)
        return false;
    // A process that has come since sees the mark, or is seen.
    file_.header.closed = 1;
    const bool left = std::ranges::any_of(
        file_.processes, [](const TimedProcess& process) { return process.state != TimeState::unused; });
    if (left)
        file_.header.closed = 0;
    return !left;
}

// --- Time ---------------------------------------------------------------------------------------------------------

void Timekeeper::tell_figures() {
    const uint32_t asked = file_.header.figures_asked;
    if (asked == file_.header.figures_told)
        return;
    model_.tell_all_busy();
    figures_.flush();
    file_.header.figures_told = asked - 1;
    futex_raise(file_.header.figures_told);
}

/// When the next of what is waited for can be reached.
Time Timekeeper::next_wanted() {
    Time next = kNever;
    const Time event = model_.next_event();
    for (uint32_t number = 0; number < streams_used_; number++) {
        const uint64_t wanted = file_.streams[number].wanted;
        if (wanted == 0 || !model_.has_stream(number))
            continue;
        next = std::min(next, std::max(model_.earliest({number, wanted}), event));
    }
    return next;
}

void Timekeeper::sleep_until(Time wanted) {
    const Time now = clock();
    if (wanted <= now)
        return;
    if (wanted - now < kShort) {
        sched_yield();
        return;
    }
    TimeHeader& header = file_.header;
    const uint32_t seen = header.bell;
    header.sleeping = 1;
    const bool news = std::ranges::any_of(header.rung, [](const auto& word) { return word.load() != 0; }) ||
                      header.contexts_rung != contexts_seen_ || header.figures_asked != header.figures_told;
    if (!news)
        futex_wait(header.bell, seen, std::min(wanted - now - kShort, kLook));
    header.sleeping = 0;
}

uint64_t Timekeeper::sleeps_of_all() const {
    uint64_t sum = 0;
    for (const TimedProcess& process : file_.processes) {
        if (process.state != TimeState::open)
            continue;
        const uint64_t one = sleeps_of(process.pid);
        if (one == 0)
            return 0;
        sum += one;
    }
    return sum;
}

bool Timekeeper::everybody_sleeps() const {
    const uint64_t before = sleeps_of_all();
    return before != 0 && sleeps_of_all() == before;
}

/// The virtual clock goes on when nobody else does: each thread of each process sleeps, and has done so since a moment
/// ago.
void Timekeeper::pass_virtual_time(Time wanted) {
    if (!everybody_sleeps()) {
        sched_yield();
        return;
    }
    take_all();
    if (next_wanted() == wanted)
        file_.header.now = std::max(file_.header.now.load(), wanted);
}

}  // namespace cuslice::fake
