// SPDX-License-Identifier: Apache-2.0
// Pairs of calls from several threads at once: the functions of cuslice against those of the driver beneath it, by
// turns.
//   cuslice run --fake 1xh200 --limit 64GiB -- cuslice_bench_threads <the fake driver's libcuda.so.1> WHAT
// WHAT stands before each figure's name, such as "in a job".
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/figure.h"
#include "tests/bench/on_threads.h"

namespace {

using namespace cuslice::bench;

constexpr int kRounds = 9;
constexpr size_t kPairs = 20'000, kBytes = 65536;

void allocate(const Driver& driver) { must(driver.free(take(driver, kBytes)), "cuMemFree"); }

void allocate_async(const Driver& driver) {
    CUdeviceptr block = 0;
    must(driver.allocate_async(&block, kBytes, nullptr), "cuMemAllocAsync");
    must(driver.free_async(block, nullptr), "cuMemFreeAsync");
}

using Pair = void (*)(const Driver&);

// Nanoseconds that a pair takes each thread: from the first thread's first pair to the last thread's last, divided by
// the pairs of one thread.
double round(const TwoDrivers& drivers, const Driver& driver, unsigned threads, Pair pair) {
    return on_threads(drivers, driver, threads,
                      [&](unsigned) {
                          for (size_t i = 0; i < kPairs; i++)
                              pair(driver);
                      }) /
           static_cast<double>(kPairs);
}

// The same with each pair timed by itself: what all threads saw.
void single_pairs(const TwoDrivers& drivers, const Driver& driver, unsigned threads, Pair pair,
                  std::vector<double>& into) {
    const uint64_t empty = empty_interval();
    std::vector<std::vector<double>> all(threads);
    on_threads(drivers, driver, threads, [&](unsigned t) {
        all[t].reserve(kPairs);
        for (size_t i = 0; i < kPairs; i++) {
            const uint64_t start = ticks();
            pair(driver);
            const uint64_t took = ticks() - start;
            all[t].push_back(took > empty ? static_cast<double>(took - empty) * ns_per_tick() : 0);
        }
    });
    for (const std::vector<double>& one : all)
        into.insert(into.end(), one.begin(), one.end());
}

void measure(const TwoDrivers& drivers, const std::string& name, unsigned threads, Pair pair, double most) {
    std::vector<double> rounds[2], singles[2];
    for (int number = -1; number < kRounds; number++) {  // the first is for caches and branch predictors
        double took[2];
        for (int turn = 0; turn < 2; turn++) {
            const int side = (number + 1 + turn) % 2;  // 0: raw, 1: ours
            const Driver& driver = side == 0 ? drivers.raw : drivers.ours;
            took[side] = round(drivers, driver, threads, pair);
            if (number >= 0)
                single_pairs(drivers, driver, threads, pair, singles[side]);
        }
        if (number < 0)
            continue;
        for (int side = 0; side < 2; side++)
            rounds[side].push_back(took[side]);
    }
    // The least of the rounds: whatever else the machine does makes both longer.
    const auto least = [](const std::vector<double>& all) { return *std::min_element(all.begin(), all.end()); };
    Comparison sides{least(rounds[0]), least(rounds[1]), 0};
    sides.raw_p99 = percentile(singles[0], 0.99), sides.ours_p99 = percentile(singles[1], 0.99);
    sides.raw_max = percentile(singles[0], 1), sides.ours_max = percentile(singles[1], 1);
    print({name + ", of the driver's own: " + std::to_string(threads) + (threads == 1 ? " thread" : " threads"),
           sides.ours / sides.raw, "×", most == 0 ? Bound::none : Bound::at_most, most, sides});
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: %s <path of the driver beneath cuslice> WHAT\n", arguments[0]);
        return 64;
    }
    const TwoDrivers drivers = open_two_drivers(arguments[1]);
    const bool before = limit_in_force(drivers);
    const std::string what = arguments[2];
    for (const unsigned threads : {1, 2, 4, 8})
        measure(drivers, what + ": alloc+free", threads, allocate, 0);
    for (const unsigned threads : {1, 2, 4, 8})
        measure(drivers, what + ": cuMemAllocAsync and its free", threads, allocate_async, threads == 8 ? 1.2 : 0);
    if (before && limit_in_force(drivers))
        return 0;
    std::fputs("bench: the limit was not in force, so the figures mean nothing\n", stderr);
    return 1;
}
