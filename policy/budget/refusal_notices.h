// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/base/relaxed.h"

namespace cuslice {

/// How a refusal is to be told.
enum class Notice : uint8_t {
    line,    // at the level `warn`
    detail,  // at `info`: a program that asks for ever smaller sizes until one fits
    none,    // at `debug`
};

// Chooses the refusals of a GPU that are shown. The one that ends a program is not the first: frameworks give their
// caches back when they are refused, and try again. And programs that try sizes are refused all the time. So a
// refusal is shown if it differs from the one that was shown last, as long as there were few, and otherwise after a
// pause. A smaller request of the same function tells nothing new before memory has been freed. Thread-safe, takes no
// lock; two threads at the same moment may show one too many.
class RefusalNotices {
  public:
    static constexpr uint64_t kPause = 10'000'000'000;  // nanoseconds
    static constexpr uint64_t kAtOnce = 4;              // in a pause, where each differs from the one before

    struct Refused {
        uint64_t what = 0;   // which function; for comparison only
        uint64_t bytes = 0;  // asked for
        uint64_t used = 0;   // bytes in use
        uint64_t frees = 0;  // how often memory has been freed until now; for comparison only
    };

    /// `now` is in nanoseconds and never 0.
    Notice judge(const Refused& refused, uint64_t now);
    /// Counts one that is not logged.
    void hide(const Refused& refused, uint64_t now);
    /// How many were hidden since the last that was shown, whose line says it.
    uint64_t take_hidden() { return hidden_.exchange(0, std::memory_order_relaxed); }

    /// At the program's end: whether it was refused something a moment ago that is not what was shown last, and what.
    bool ended_by(uint64_t now, Refused* last) const;

  private:
    // The last one that was shown, or hidden.
    struct Last {
        Relaxed<uint64_t> what, bytes, used, frees, at;

        void set(const Refused& refused, uint64_t now);
        bool equals(const Refused& refused) const;
    };
    bool probes(const Refused& refused) const;
    bool takes_turn(uint64_t now);

    Last shown_last_, hidden_last_;
    std::atomic<uint64_t> asked_bytes_{0};  // by the last refused request
    // When so many will have been shown that another one may be: each shown moves it by a share of the pause.
    std::atomic<uint64_t> spent_until_{0};
    std::atomic<uint64_t> hidden_{0};
};

}  // namespace cuslice
