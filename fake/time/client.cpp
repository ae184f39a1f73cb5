// SPDX-License-Identifier: Apache-2.0
#include "fake/time/client.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "fake/books/liveness.h"
#include "fake/log_line.h"
#include "fake/time/futex.h"
#include "fake/time/start_keeper.h"

namespace cuslice::fake {
namespace {

// For a timekeeper that starts, a millisecond each.
constexpr int kNaps = 10'000, kNapsOfOne = 500;
constexpr Time kNap = 100'000'000;  // between two looks whether it lives

}  // namespace

bool TimeClient::join(const std::string& folder, bool is_virtual, std::string& error) {
    if (!mapping_.open_lock(folder, error))
        return false;
    for (int nap = 0; nap < kNaps; nap++) {
        if (meet(folder, is_virtual, error))
            return true;
        // One that was started and isn't there yet is given a moment.
        if (error.empty() && nap % kNapsOfOne == 0 && !mapping_.keeper_lives())
            start_keeper(folder, is_virtual, error);
        if (!error.empty())
            return false;
        usleep(1000);
    }
    error = "the fake GPU's timekeeper doesn't start: " + keeper_path();
    return false;
}

/// One try; false without an error: not yet.
bool TimeClient::meet(const std::string& folder, bool is_virtual, std::string& error) {
    if (!mapping_.open(folder))
        return false;
    if (this->is_virtual() != is_virtual) {
        error = "CUSLICE_FAKE_CLOCK: another process of this fake machine has the other clock";
        return false;
    }
    if (claim_process() && mapping_->header.closed == 0)
        return true;
    if (process_ != kNone) {
        mapping_->processes[process_].state = TimeState::unused;
        mapping_.unlock(1 + static_cast<off_t>(process_));
        process_ = kNone;
    } else {
        error = "the fake machine has no room for one more process whose work takes time";
    }
    mapping_.close();
    return false;
}

bool TimeClient::claim_process() {
    for (uint32_t number = 0; number < kTimeProcesses; number++) {
        TimedProcess& process = mapping_->processes[number];
        const off_t byte = 1 + static_cast<off_t>(number);
        if (process.state != TimeState::unused || !mapping_.lock(byte))
            continue;
        // Another one may have come and gone in between.
        if (process.state != TimeState::unused) {
            mapping_.unlock(byte);
            continue;
        }
        process.pid = getpid();
        process.start_time = process_start_time(getpid());
        process.mapped_at = reinterpret_cast<uintptr_t>(&*mapping_);
        process.state = TimeState::open;
        process_ = number;
        return true;
    }
    return false;
}

void TimeClient::leave() {
    if (process_ == kNone)
        return;
    mapping_->processes[process_].state = TimeState::closing;
    mapping_->header.contexts_rung++;
    ring(mapping_->header);
}

// --- Contexts and streams -----------------------------------------------------------------------------------------

uint32_t TimeClient::find_gpu(const GpuSpec& gpu) {
    const std::string uuid = uuid_text(gpu);
    for (uint32_t number = 0; number < kTimeGpus; number++) {
        TimedGpu& entry = mapping_->gpus[number];
        uint32_t claim = 0;
        if (entry.claim.compare_exchange_strong(claim, 1)) {
            std::strncpy(entry.uuid, uuid.c_str(), sizeof entry.uuid - 1);
            entry.timing = {static_cast<uint32_t>(gpu.multiprocessors), static_cast<uint32_t>(gpu.copy_engines),
                            gpu.time_slice, gpu.context_switch, static_cast<uint32_t>(gpu.time_slice_spread)};
            entry.claim = 2;
            return number;
        }
        for (int nap = 0; entry.claim == 1 && nap < 1000; nap++)
            usleep(100);
        if (uuid == entry.uuid)
            return number;
    }
    return kNone;
}

uint32_t TimeClient::open_context(const GpuSpec& gpu) {
    const uint32_t where = find_gpu(gpu);
    if (where == kNone)
        return kNone;
    for (uint32_t tries = 0; tries < kTimeContexts; tries++) {
        const uint32_t number = mapping_->header.contexts_claimed++ % kTimeContexts;
        TimedContext& context = mapping_->contexts[number];
        uint32_t unclaimed = 0;
        if (!context.process.compare_exchange_strong(unclaimed, process_ + 1))
            continue;
        context.gpu = where;
        context.pid = getpid();
        for (size_t engine = 0; engine < kEngines; engine++) {
            context.busy[engine] = 0;
            for (BusySpans::Span& span : context.spans[engine].spans)
                span.busy = 0;
        }
        context.state = TimeState::open;
        return number;
    }
    return kNone;
}

void TimeClient::close_context(uint32_t context) {
    if (context == kNone)
        return;
    mapping_->contexts[context].state = TimeState::closing;
    mapping_->header.contexts_rung++;
    ring(mapping_->header);
}

uint32_t TimeClient::open_stream(uint32_t context) {
    for (uint32_t number = 0; context != kNone && number < kTimeStreams; number++) {
        TimedStream& stream = mapping_->streams[number];
        uint32_t unclaimed = 0;
        if (stream.context.load(std::memory_order_relaxed) != 0 ||
            !stream.context.compare_exchange_strong(unclaimed, context + 1))
            continue;
        if (!mapping_.take_room(mapping_->rings[number])) {
            stream.context = 0;
            return kNone;
        }
        stream.state = TimeState::open;
        return number;
    }
    return kNone;
}

void TimeClient::close_stream(uint32_t stream) {
    mapping_->streams[stream].state = TimeState::closing;
    touch(stream);
}

// --- Work ---------------------------------------------------------------------------------------------------------

Time TimeClient::now() const { return is_virtual() ? mapping_->header.now.load() : monotonic_time(); }

/// The timekeeper looks at the stream when it next looks at any.
void TimeClient::touch(uint32_t stream) {
    std::atomic<uint64_t>& word = mapping_->header.rung[stream / 64];
    const uint64_t bit = uint64_t{1} << stream % 64;
    if ((word.load() & bit) == 0)
        word.fetch_or(bit);
}

void TimeClient::wait_for_room(uint32_t stream) {
    const uint64_t ticket = mapping_->streams[stream].submitted + 1;
    if (ticket > kTimeWork)
        wait({stream, ticket - kTimeWork});
}

uint64_t TimeClient::submit(uint32_t number, const Work& work) {
    TimedStream& stream = mapping_->streams[number];
    const uint64_t ticket = stream.submitted + 1;
    TimedWork& entry = mapping_->rings[number].of(ticket);
    entry.time = now();
    entry.duration = work.duration;
    entry.after_stream = work.after.stream;
    entry.after_ticket = work.after.ticket;
    entry.multiprocessors = static_cast<uint16_t>(work.multiprocessors);
    entry.engine = work.engine;
    entry.held = work.held;
    stream.submitted = ticket;
    touch(number);
    return ticket;
}

void TimeClient::release(StreamPoint point) {
    TimedStream& stream = mapping_->streams[point.stream];
    stream.released_at = now();
    stream.released = point.ticket;
    touch(point.stream);
    ring(mapping_->header);
}

bool TimeClient::reached(StreamPoint point) const {
    return lost_ || mapping_->streams[point.stream].reached >= point.ticket;
}

Time TimeClient::reached_at(StreamPoint point) const { return mapping_->rings[point.stream].of(point.ticket).time; }

/// From now on the timekeeper sees to it that the point is reached in time.
void TimeClient::want(StreamPoint point) {
    TimedStream& stream = mapping_->streams[point.stream];
    uint64_t wanted = stream.wanted;
    while (wanted == 0 || wanted > point.ticket) {
        if (!stream.wanted.compare_exchange_weak(wanted, point.ticket))
            continue;
        touch(point.stream);
        ring(mapping_->header);
        return;
    }
}

void TimeClient::sleep_on(TimedStream& stream, uint32_t seen) {
    futex_wait(stream.wake, seen, kNap);
    if (stream.wake != seen || mapping_.keeper_lives())
        return;
    if (!lost_.exchange(true))
        write_line(
            "cuslice fake GPU: the fake GPU's timekeeper has been killed: from now on work takes no time in this "
            "process");
}

void TimeClient::wait(StreamPoint point) {
    TimedStream& stream = mapping_->streams[point.stream];
    while (!reached(point)) {
        const uint32_t seen = stream.wake;
        want(point);
        if (!reached(point))
            sleep_on(stream, seen);
    }
}

bool TimeClient::look(StreamPoint point) {
    if (reached(point))
        return true;
    TimedStream& stream = mapping_->streams[point.stream];
    const uint32_t seen = stream.wake;
    want(point);
    if (!reached(point) && is_virtual())
        sleep_on(stream, seen);
    return reached(point);
}

}  // namespace cuslice::fake
