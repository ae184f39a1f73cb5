// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/footprint_polling.h"

namespace cuslice {

namespace {

// Polls back off after so many in a row without a change.
constexpr unsigned kPollsAtOnce = 16;
// After so many, others of the GPU are taken to move CUDA's figure all the time: it isn't compared any more.
constexpr unsigned kBusyGpu = 1024;
constexpr int64_t kInterval = 1000, kShortInterval = 100;  // milliseconds

}  // namespace

// A program that takes and gives back the same memory all the time, and takes nothing else, need not pay for a poll
// each time: after a few that found nothing they come in intervals, or when more is in use than at the last one. Where
// CUDA's own figure can't tell that, the intervals are short.
FootprintPolling::Answer FootprintPolling::ask(bool far_from_limit, int64_t now) {
    if (far_from_limit && asked_at_.load(std::memory_order_relaxed) == now)
        return Answer::no;
    asked_at_.store(now, std::memory_order_relaxed);
    const unsigned vain = vain_polls_.load(std::memory_order_relaxed);
    if (vain < kPollsAtOnce)
        return Answer::yes;
    const bool known = unseen_.load(std::memory_order_relaxed) != kUnknown;
    const bool compares = known && vain < kBusyGpu;
    const int64_t since = now - polled_at_.load(std::memory_order_relaxed);
    if (since >= (compares ? kInterval : kShortInterval))
        return Answer::yes;
    if (!compares || !one_of(kTimesCompared, vain_requests_.load(std::memory_order_relaxed)))
        return Answer::no;
    return Answer::if_unseen_changed;
}

void FootprintPolling::polled(bool found, uint64_t unseen, int64_t now) {
    polled_at_.store(now, std::memory_order_relaxed);
    unseen_.store(unseen, std::memory_order_relaxed);
    vain_polls_.store(found ? 0 : vain_polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (found)
        vain_requests_.store(0, std::memory_order_relaxed);
}

}  // namespace cuslice
