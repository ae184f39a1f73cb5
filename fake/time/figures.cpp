// SPDX-License-Identifier: Apache-2.0
#include "fake/time/figures.h"

#include <algorithm>

namespace cuslice::fake {
namespace {

void add_to(BusySpans& spans, Time begin, Time end) {
    for (Time at = begin; at < end;) {
        const Time number = at / kTimeSpan, next = std::min(end, (number + 1) * kTimeSpan);
        BusySpans::Span& span = spans.spans[number % kTimeSpans];
        if (span.number != number) {
            span.busy = 0;
            span.number = number;
        }
        span.busy = span.busy + (next - at);
        at = next;
    }
}

}  // namespace

void TimeFigures::add(uint32_t context, Engine engine, Time begin, Time end) {
    const auto index = static_cast<size_t>(engine);
    TimedContext& had = file_.contexts[context];
    const uint32_t gpu = had.gpu;
    had.busy[index] = had.busy[index] + (end - begin);
    add_to(had.spans[index], begin, end);
    add_to(file_.gpus[gpu].busy[index], begin, end);
    TimedTurn& latest = latest_[gpu][index];
    if (latest.end == begin && latest.context == context && latest.pid == had.pid) {
        latest.end = end;
        return;
    }
    write(latest);
    latest = {context, static_cast<uint32_t>(engine), had.pid, gpu, begin, end};
}

void TimeFigures::write(const TimedTurn& turn) {
    if (turn.end == 0)
        return;
    const uint64_t number = file_.header.turns;
    file_.turn[number % kTimeTurns] = turn;
    file_.header.turns = number + 1;
}

void TimeFigures::flush() {
    for (auto& engines : latest_) {
        for (TimedTurn& latest : engines) {
            write(latest);
            latest = {};
        }
    }
}

Time busy_within(const BusySpans& spans, Time end, Time length) {
    const Time begin = end - std::min({end, length, kTimeKept});
    Time busy = 0;
    for (Time number = begin / kTimeSpan; number * kTimeSpan < end; number++) {
        const BusySpans::Span& span = spans.spans[number % kTimeSpans];
        if (span.number != number)
            continue;
        const Time before = begin - std::min(begin, number * kTimeSpan);
        busy += span.busy * (kTimeSpan - before) / kTimeSpan;
    }
    return busy;
}

}  // namespace cuslice::fake
