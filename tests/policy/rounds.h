// SPDX-License-Identifier: Apache-2.0
// Threads that meet at the beginning and at the end of every round, for races that need to be run many times.
#pragma once

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace cuslice::tests {

class Meeting {
  public:
    explicit Meeting(unsigned threads) : threads_(threads) {}

    /// Returns when all threads are here. Spins first: on a machine with a core for each, nobody sleeps through the
    /// race.
    void wait() {
        const unsigned round = round_.load();
        if (here_.fetch_add(1) + 1 == threads_) {
            here_.store(0);
            round_.fetch_add(1);
            return;
        }
        for (unsigned spins = 0; round_.load() == round; ++spins)
            if (spins > 200)
                std::this_thread::yield();
    }

  private:
    const unsigned threads_;
    std::atomic<unsigned> here_{0}, round_{0};
};

// A sanitized process takes so many times as long to fork, and has so many more instructions.
#if defined(__SANITIZE_THREAD__)
inline constexpr int kSlower = 20, kInstructions = 1000;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr int kSlower = 20, kInstructions = 20;
#else
inline constexpr int kSlower = 1, kInstructions = 6;
#endif

/// How often: `usual` in a test run, less under a sanitizer, `full` where CUSLICE_TEST_FULL is set.
inline int rounds(int usual, int full) {
    return std::getenv("CUSLICE_TEST_FULL") ? full : usual / kSlower + (usual % kSlower != 0);
}

/// One in this many instructions is tried in one situation; 1, which is each, where CUSLICE_TEST_FULL is set.
inline int instruction_step() { return std::getenv("CUSLICE_TEST_FULL") ? 1 : kInstructions; }

/// Runs work(thread) on so many threads, all at once, and waits for them.
inline void on_threads(unsigned threads, const std::function<void(unsigned)>& work) {
    Meeting start(threads);
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; ++i)
        running.emplace_back([&, i] {
            start.wait();
            work(i);
        });
    for (std::thread& thread : running)
        thread.join();
}

}  // namespace cuslice::tests
