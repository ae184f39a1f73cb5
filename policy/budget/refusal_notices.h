#pragma once
#include <atomic>
#include <cstdint>

namespace cuslice {

// Which of a GPU's refusals are shown. The one that ends a program is not the first: frameworks give their caches back
// when they are refused, and try again. And programs that try sizes are refused all the time. So a refusal is shown if
// it differs from the one that was shown last, as long as there were few, and otherwise after a pause. Thread-safe,
// takes no lock; two threads at the same moment may show one too many.
class RefusalNotices {
  public:
    static constexpr std::uint64_t kPause = 10'000'000'000;  // nanoseconds
    static constexpr std::uint64_t kAtOnce = 4;              // in a pause, where each differs from the one before

    struct Refused {
        std::uint64_t what = 0;   // which function; for comparison only
        std::uint64_t bytes = 0;  // asked for
    };

    // True if this one is to be shown. `now` is in nanoseconds and never 0.
    bool shows(const Refused& refused, std::uint64_t now);
    // How many were not shown since the last that was, whose line says it.
    std::uint64_t take_hidden() { return hidden_.exchange(0, std::memory_order_relaxed); }

    // At the program's end: whether it was refused something a moment ago that is not what was shown last, and what.
    bool ended_by(std::uint64_t now, Refused* last) const;

  private:
    std::atomic<std::uint64_t> what_{0}, bytes_{0};  // what was shown last
    // When so many will have been shown that another one may be: each shown moves it by a share of the pause.
    std::atomic<std::uint64_t> spent_until_{0}, shown_at_{0};
    std::atomic<std::uint64_t> hidden_{0}, hidden_at_{0}, hidden_what_{0}, hidden_bytes_{0};
};

}  // namespace cuslice
