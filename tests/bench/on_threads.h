// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/bench/timing.h"
#include "tests/bench/two_drivers.h"

namespace cuslice::bench {

// Runs work(thread) on `count` threads at once, each on a core of its own as far as there are so many, with the context
// current for `driver`. Returns nanoseconds from the first one's first operation to the last one's last.
template <typename Work>
double on_threads(const TwoDrivers& drivers, const Driver& driver, unsigned count, Work work) {
    std::atomic<unsigned> ready{0};
    std::vector<int64_t> starts(count), ends(count);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < count; t++) {
        threads.emplace_back([&, t] {
            if (!pin(t % std::thread::hardware_concurrency()))
                must(CUDA_ERROR_UNKNOWN, "pinning a thread");
            must(driver.set_current(drivers.context), "cuCtxSetCurrent");
            ready++;
            while (ready.load() < count)
                std::this_thread::yield();
            starts[t] = now_ns();
            work(t);
            ends[t] = now_ns();
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    return static_cast<double>(*std::max_element(ends.begin(), ends.end()) -
                               *std::min_element(starts.begin(), starts.end()));
}

}  // namespace cuslice::bench
