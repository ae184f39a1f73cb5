// SPDX-License-Identifier: Apache-2.0
#include "fake/time/model.h"

#include <algorithm>
#include <tuple>

namespace cuslice::fake {

void TimeModel::add_gpu(uint32_t number, const GpuTiming& timing) {
    if (number >= gpus_.size())
        gpus_.resize(number + 1);
    Gpu& gpu = gpus_[number];
    gpu.timing = timing;
    gpu.free = timing.multiprocessors;
}

void TimeModel::add_context(uint32_t context, uint32_t gpu) {
    if (context >= contexts_.size())
        contexts_.resize(context + 1);
    contexts_[context].gpu = gpu;
    gpus_[gpu].contexts.push_back(context);
}

void TimeModel::end_context(uint32_t context) {
    Gpu& gpu = gpus_[contexts_[context].gpu];
    for (uint32_t number = 0; number < streams_.size(); number++) {
        if (streams_[number].context != context)
            continue;
        drop_work(number);
        remove_stream(number);
    }
    if (gpu.current == context)
        gpu.current = kNone;
    std::erase(gpu.contexts, context);
    contexts_[context] = {};
    settle();
}

void TimeModel::add_stream(uint32_t number, uint32_t context, uint64_t tickets) {
    if (number >= streams_.size())
        streams_.resize(number + 1);
    Stream& stream = streams_[number];
    stream.context = context;
    stream.reached = stream.submitted = tickets;
}

void TimeModel::remove_stream(uint32_t stream) { streams_[stream].context = kNone; }

void TimeModel::submit(uint32_t number, const Work& work) {
    Stream& stream = streams_[number];
    if (stream.work.empty())
        busy_.push_back(number);
    stream.work.push_back(work);
    stream.submitted++;
}

void TimeModel::release(StreamPoint point, Time when) {
    Stream& stream = streams_[point.stream];
    if (point.ticket <= stream.released)
        return;
    stream.released = point.ticket;
    stream.released_at = when;
    if (stream.head == Head::runs && stream.end == kNever && !is_held(stream))
        stream.end = std::max(now_, when);
}

void TimeModel::advance(Time to) {
    settle();
    for (Time next = next_event(); next <= to; next = next_event()) {
        now_ = std::max(now_, next);
        settle();
    }
    now_ = std::max(now_, to);
}

bool TimeModel::reached(StreamPoint point) const {
    return point.ticket == 0 || (point.stream < streams_.size() && streams_[point.stream].reached >= point.ticket);
}

Time TimeModel::next_event() const {
    Time next = kNever;
    for (const uint32_t number : busy_) {
        const Stream& stream = streams_[number];
        if (stream.head == Head::runs)
            next = std::min(next, stream.end);
        else if (stream.head == Head::waits && reached(stream.work.front().after))
            next = std::min(next, std::max(now_, stream.work.front().submitted));
    }
    for (const Gpu& gpu : gpus_) {
        if (gpu.current == kNone || contexts_[gpu.current].kernels == 0)
            continue;
        if (gpu.switched > now_)
            next = std::min(next, gpu.switched);
        else if (has_rival(gpu))
            next = std::min(next, std::max(now_, gpu.slice_end));
    }
    return next;
}

Time TimeModel::earliest(StreamPoint point) const {
    const Stream& stream = streams_[point.stream];
    if (stream.reached >= point.ticket)
        return now_;
    const auto pieces = std::min<uint64_t>(point.ticket - stream.reached, stream.work.size());
    Time at = stream.head == Head::runs ? stream.end : now_ + stream.work.front().duration;
    for (uint64_t i = 0; i < pieces; i++) {
        const Work& work = stream.work[i];
        if (work.held && stream.released <= stream.reached + i)
            return kNever;
        if (i > 0)
            at = std::max(at, work.submitted) + work.duration;
    }
    return at;
}

// --- What happens now ---------------------------------------------------------------------------------------------

void TimeModel::settle() {
    begin_heads();
    bool changed = false;
    do {
        for (Gpu& gpu : gpus_) {
            give_turns(gpu);
            start_kernels(gpu);
            start_copies(gpu);
        }
        changed = end_heads();
        changed = begin_heads() || changed;
    } while (changed);
}

bool TimeModel::can_start(const Stream& stream) const {
    const Work& work = stream.work.front();
    return work.submitted <= now_ && reached(work.after);
}

bool TimeModel::begin_heads() {
    bool changed = false;
    // A stream without more work is replaced by the last one.
    for (size_t i = 0; i < busy_.size();) {
        const uint32_t number = busy_[i];
        Stream& stream = streams_[number];
        if (stream.head != Head::waits || !can_start(stream)) {
            i++;
            continue;
        }
        changed = true;
        const Engine engine = engine_of(gpu_of(stream), stream.work.front());
        if (engine == Engine::none) {
            start(stream);
            if (stream.end <= now_)
                end_head(number);  // the next piece is at this place, or another stream
            continue;
        }
        stream.head = Head::ready;
        stream.ready_at = now_;
        if (engine == Engine::compute)
            contexts_[stream.context].kernels++;
        i++;
    }
    return changed;
}

void TimeModel::start(Stream& stream) {
    const Work& work = stream.work.front();
    stream.head = Head::runs;
    if (!work.held)
        stream.end = now_ + work.duration;
    else
        stream.end = is_held(stream) ? kNever : std::max(now_, stream.released_at);
}

bool TimeModel::end_heads() {
    bool changed = false;
    for (size_t i = 0; i < busy_.size();) {
        const uint32_t number = busy_[i];
        const Stream& stream = streams_[number];
        const bool ends = stream.head == Head::runs && stream.end <= now_;
        if (ends)
            end_head(number);
        changed = changed || ends;
        if (i < busy_.size() && busy_[i] == number)
            i++;
    }
    return changed;
}

/// Takes a stream's head off its engine, whether it has ended or not.
void TimeModel::leave_engine(uint32_t number) {
    Stream& stream = streams_[number];
    Gpu& gpu = gpu_of(stream);
    const Work& work = stream.work.front();
    const Engine engine = engine_of(gpu, work);
    if (stream.head == Head::waits || engine == Engine::none)
        return;
    if (engine == Engine::compute) {
        contexts_[stream.context].kernels--;
        if (stream.head != Head::runs)
            return;
        gpu.free += width(gpu, work);
        if (gpu.free == gpu.timing.multiprocessors)
            tell_busy(gpu);
        return;
    }
    CopyEngine& copies = gpu.copies[static_cast<size_t>(engine)];
    if (stream.head != Head::runs)
        return;
    listener_.on_busy(stream.context, work.engine, copies.since, now_);
    copies.stream = kNone;
}

void TimeModel::end_head(uint32_t number) {
    leave_engine(number);
    Stream& stream = streams_[number];
    stream.work.pop_front();
    stream.reached++;
    stream.head = Head::waits;
    stream.end = kNever;
    if (stream.work.empty()) {
        *std::ranges::find(busy_, number) = busy_.back();
        busy_.pop_back();
    }
    listener_.on_reached({number, stream.reached}, now_);
}

void TimeModel::drop_work(uint32_t number) {
    Stream& stream = streams_[number];
    if (stream.work.empty())
        return;
    leave_engine(number);
    stream.work.clear();
    stream.reached = stream.submitted;
    stream.head = Head::waits;
    std::erase(busy_, number);
    listener_.on_reached({number, stream.reached}, now_);
}

// --- Engines ------------------------------------------------------------------------------------------------------

Engine TimeModel::engine_of(const Gpu& gpu, const Work& work) {
    if (work.engine == Engine::none || work.engine == Engine::compute)
        return work.engine;
    if (gpu.timing.copy_engines == 0)
        return Engine::compute;
    return gpu.timing.copy_engines == 1 ? Engine::copy_in : work.engine;
}

uint32_t TimeModel::width(const Gpu& gpu, const Work& work) {
    return std::clamp(work.multiprocessors, 1U, gpu.timing.multiprocessors);
}

/// The order of heads that are ready: of those since the same moment, the one that was submitted first comes first.
bool TimeModel::is_before(uint32_t one, uint32_t other) const {
    const Stream &left = streams_[one], &right = streams_[other];
    return std::tuple(left.ready_at, left.work.front().submitted, one) <
           std::tuple(right.ready_at, right.work.front().submitted, other);
}

/// The ready head on this engine that was ready first; of kernels, those of the current context.
uint32_t TimeModel::first_ready(const Gpu& gpu, Engine engine) const {
    uint32_t first = kNone;
    for (const uint32_t number : busy_) {
        const Stream& stream = streams_[number];
        const bool here = &gpus_[contexts_[stream.context].gpu] == &gpu &&
                          (engine != Engine::compute || stream.context == gpu.current);
        if (!here || stream.head != Head::ready || engine_of(gpu, stream.work.front()) != engine)
            continue;
        if (first == kNone || is_before(number, first))
            first = number;
    }
    return first;
}

bool TimeModel::has_rival(const Gpu& gpu) const {
    return std::ranges::any_of(
        gpu.contexts, [&](uint32_t context) { return context != gpu.current && contexts_[context].kernels > 0; });
}

/// The next context in turn with kernels, after the current one; that one itself comes last.
uint32_t TimeModel::next_context(const Gpu& gpu) const {
    const auto current = std::ranges::find(gpu.contexts, gpu.current);
    const auto first = current == gpu.contexts.end() ? 0 : static_cast<size_t>(current - gpu.contexts.begin()) + 1;
    for (size_t i = 0; i < gpu.contexts.size(); i++) {
        const uint32_t context = gpu.contexts[(first + i) % gpu.contexts.size()];
        if (contexts_[context].kernels > 0)
            return context;
    }
    return kNone;
}

void TimeModel::give_turns(Gpu& gpu) {
    const bool goes_on = gpu.current != kNone && contexts_[gpu.current].kernels > 0;
    if (goes_on)
        align_slice(gpu);
    if (goes_on && gpu.slice_end > now_)
        return;
    const uint32_t next = next_context(gpu);
    if (next == kNone)
        return;
    if (goes_on && next == gpu.current) {
        gpu.slice_end = now_ + next_slice(gpu);
        return;
    }
    if (goes_on)
        preempt(gpu);
    const bool same = gpu.current == next || gpu.current == kNone;
    gpu.current = next;
    gpu.switched = now_ + (same ? 0 : gpu.timing.context_switch);
    gpu.slice_end = gpu.switched + next_slice(gpu);
}

Time TimeModel::next_slice(Gpu& gpu) {
    const Time most = gpu.timing.slice * gpu.timing.slice_spread / 100;
    gpu.drawn = gpu.drawn * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX generator
    return gpu.timing.slice - most + (gpu.drawn >> 33) % (2 * most + 1);
}

/// Slices go on while nobody waits: the next one to come waits for the end of one.
void TimeModel::align_slice(Gpu& gpu) const {
    if (gpu.slice_end >= now_)
        return;
    const Time past = now_ - gpu.slice_end;
    gpu.slice_end += (past + gpu.timing.slice - 1) / gpu.timing.slice * gpu.timing.slice;
}

/// Kernels of the current context stand still, with what is left of them.
void TimeModel::preempt(Gpu& gpu) {
    for (const uint32_t number : busy_) {
        Stream& stream = streams_[number];
        if (stream.context != gpu.current || stream.head != Head::runs)
            continue;
        Work& work = stream.work.front();
        if (engine_of(gpu, work) != Engine::compute)
            continue;
        if (!work.held)
            work.duration = stream.end - now_;
        stream.head = Head::ready;
        stream.end = kNever;
    }
    gpu.free = gpu.timing.multiprocessors;
    tell_busy(gpu);
}

void TimeModel::start_kernels(Gpu& gpu) {
    if (gpu.current == kNone || gpu.switched > now_)
        return;
    for (;;) {
        const uint32_t number = first_ready(gpu, Engine::compute);
        if (number == kNone)
            return;
        Stream& stream = streams_[number];
        const uint32_t wanted = width(gpu, stream.work.front());
        // A wide kernel isn't overtaken by narrow ones that come later.
        if (wanted > gpu.free)
            return;
        gpu.free -= wanted;
        start(stream);
        if (gpu.busy_since == kNever)
            gpu.busy_since = now_;
    }
}

void TimeModel::start_copies(Gpu& gpu) {
    for (const Engine engine : {Engine::copy_in, Engine::copy_out}) {
        CopyEngine& copies = gpu.copies[static_cast<size_t>(engine)];
        if (copies.stream != kNone)
            continue;
        const uint32_t number = first_ready(gpu, engine);
        if (number == kNone)
            continue;
        copies = {number, now_};
        start(streams_[number]);
    }
}

void TimeModel::tell_all_busy() {
    for (Gpu& gpu : gpus_) {
        const bool computes = gpu.busy_since != kNever;
        tell_busy(gpu);
        if (computes)
            gpu.busy_since = now_;
        for (CopyEngine& copies : gpu.copies) {
            if (copies.stream == kNone)
                continue;
            const Stream& stream = streams_[copies.stream];
            listener_.on_busy(stream.context, stream.work.front().engine, copies.since, now_);
            copies.since = now_;
        }
    }
}

/// The current context runs no kernel from now on.
void TimeModel::tell_busy(Gpu& gpu) {
    if (gpu.busy_since == kNever)
        return;
    if (now_ > gpu.busy_since)
        listener_.on_busy(gpu.current, Engine::compute, gpu.busy_since, now_);
    gpu.busy_since = kNever;
}

}  // namespace cuslice::fake
