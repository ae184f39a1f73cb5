// SPDX-License-Identifier: Apache-2.0
// Threads of which one runs at a time, in an order that a number decides: what goes wrong once goes wrong again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace cuslice::tests {

/// Runs functions in threads. One runs until it waits, ends, or comes to a step before which another goes on instead.
/// Steps are the atomic operations of code that is built for it (tests/interleave/CMakeLists.txt), in runs of odd
/// numbers all its loads and stores; the number says before which of them. All are in one order, as on a machine that
/// reorders nothing.
class Schedule {
  public:
    using Body = std::function<void()>;

    /// As many threads as there are functions in a run at most. They stay, and with them what they keep for themselves.
    explicit Schedule(unsigned threads);
    ~Schedule();
    Schedule(const Schedule&) = delete;
    Schedule& operator=(const Schedule&) = delete;

    /// Returns once all have ended. In runs 0 and 1 each thread goes on until it waits or ends; the others have one to
    /// four changes at places that are drawn. Where no thread can go on, the process ends by SIGABRT, with a line that
    /// names the number. The calling thread waits.
    void run(uint64_t number, std::span<const Body> bodies);

    /// Steps that the last run took.
    uint64_t steps() const;

    struct State;  // its own

  private:
    std::unique_ptr<State> state_;
};

}  // namespace cuslice::tests
