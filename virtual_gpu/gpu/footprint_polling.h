// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "policy/base/relaxed.h"

namespace cuslice {

/// When to poll a GPU's driver footprint: once the allocations have grown by the margin that is set aside for the
/// driver, from wherever they were at their lowest since the last poll. Where polls keep finding nothing, they back
/// off. No figure is read here. Sizes are in bytes, times in milliseconds of one clock.
///
/// Thread-safe. Where threads race, one poll more or less may come of it.
class alignas(64) FootprintPolling {
  public:
    /// A figure that CUDA can't tell.
    static constexpr uint64_t kUnknown = ~0ull;

    enum class Mark { moved, near, passed };
    enum class Answer { no, yes, if_unseen_changed };

    /// True if reach() is to be called before `bytes` are charged on top of `used`. Every reservation asks.
    bool at_mark(uint64_t used, uint64_t bytes) const {
        const uint64_t mark = mark_.load(std::memory_order_relaxed);
        if (used > mark || bytes > mark - used || mark - used > margin()) [[unlikely]]
            return true;
        return false;
    }
    /// `passed`: the driver is to be polled first. `near`: only if that is worth while; less was in use meanwhile, and
    /// the allocations have grown since. `moved`: no; the mark now counts from `used`. `at_most`: of `bytes`, those
    /// that the GPU could have.
    Mark reach(uint64_t used, uint64_t bytes, uint64_t at_most) {
        note_use(used + at_most);
        const uint64_t mark = mark_.load(std::memory_order_relaxed);
        const uint64_t lowest = used + margin();
        const auto passes = [&](uint64_t limit) { return used > limit || bytes > limit - used; };
        if (!passes(std::min(mark, lowest))) {
            mark_.store(lowest, std::memory_order_relaxed);
            return Mark::moved;
        }
        return passes(mark) ? Mark::passed : Mark::near;
    }
    /// The driver has been polled for so many bytes that are about to be charged.
    void advance(uint64_t bytes) { mark_.fetch_add(bytes, std::memory_order_relaxed); }

    /// To ask ask() costs something, too. A program that has been doing the same for long, so that nothing was found
    /// hundreds of times in a row, is to ask every eighth time.
    bool due() {
        const unsigned vain = vain_requests_ + 1;
        vain_requests_ = vain;
        return one_of(kTimesAsked, vain);
    }
    /// True if a poll is worth while. Far from the limit one question in a tick of the clock is enough.
    ///
    /// A program that takes and gives back the same memory all the time, and takes nothing else, need not pay for a
    /// poll each time: after a few that found nothing they come in intervals, or when more is in use than at the last
    /// one. Where CUDA's own figure can't tell that, the intervals are short.
    Answer ask(bool far_from_limit, int64_t now) {
        if (far_from_limit && asked_at_ == now)
            return Answer::no;
        asked_at_ = now;
        const bool compares = unseen_ != kUnknown && vain_polls_ < kBusyGpu;
        const int64_t interval = compares ? kInterval : kShortInterval;
        if (vain_polls_ < kPollsAtOnce || now - polled_at_ >= interval)
            return Answer::yes;
        return compares && one_of(kTimesCompared, vain_requests_) ? Answer::if_unseen_changed : Answer::no;
    }
    /// True if `unseen` isn't what it was at the last poll: bytes in use on the GPU and not charged here.
    bool changed(uint64_t unseen) const { return unseen != unseen_; }
    /// The driver has been polled. `found`: its footprint was another one than before.
    void polled(bool found, uint64_t unseen, int64_t now) {
        polled_at_ = now;
        unseen_ = unseen;
        vain_polls_ = found ? 0 : vain_polls_ + 1;
        if (found)
            vain_requests_ = 0;
    }

    /// The footprint has been read while `used` bytes were charged: `margin` more are granted before it is polled
    /// again.
    void restart(uint64_t used, uint64_t margin) {
        note_use(used);
        margin_ = margin;
        mark_.store(used + margin, std::memory_order_relaxed);
    }
    uint64_t margin() const { return margin_; }
    /// The most bytes that have been charged so far, or up to the margin more.
    uint64_t most_used() const { return most_used_ + margin(); }

    /// The footprint has become smaller: it is to be read before anybody sees a figure or is refused.
    void set_stale() { stale_.store(true, std::memory_order_relaxed); }
    bool stale() const { return stale_.load(std::memory_order_relaxed); }
    bool take_stale() { return stale_.exchange(false, std::memory_order_relaxed); }

  private:
    // Polls back off after so many in a row without a change.
    static constexpr unsigned kPollsAtOnce = 16;
    // After so many, others of the GPU are taken to move CUDA's figure all the time: it isn't compared any more.
    static constexpr unsigned kBusyGpu = 1024;
    static constexpr int64_t kInterval = 1000, kShortInterval = 100;  // milliseconds
    // After so many times that nothing was found, one time of these is worth asking the clock, and CUDA.
    static constexpr unsigned kLong = 256, kTimesAsked = 8, kTimesCompared = 64;
    static constexpr bool one_of(unsigned times, unsigned vain) { return vain < kLong || vain % times == 0; }

    void note_use(uint64_t bytes) {
        if (bytes > most_used_)
            most_used_ = bytes;
    }

    std::atomic<uint64_t> mark_{0};    // bytes in use from which on the footprint is polled
    Relaxed<uint64_t> margin_;         // bytes granted after which it is
    Relaxed<uint64_t> most_used_;      // of what was charged when somebody looked
    Relaxed<uint64_t> unseen_;         // at the last poll
    Relaxed<unsigned> vain_polls_;     // in a row, that found the footprint as it was
    Relaxed<unsigned> vain_requests_;  // in a row, for a poll, since one found something
    Relaxed<int64_t> polled_at_;
    Relaxed<int64_t> asked_at_;
    std::atomic<bool> stale_{false};
};

}  // namespace cuslice
