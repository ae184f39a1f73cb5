// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/bench/calls.h"

namespace cuslice::bench {

namespace {

// Rounds of about 0.1 ms: most of them then fall between two interrupts, and the median is of undisturbed ones.
constexpr int kRounds = 501;
constexpr size_t kSingles = 100'000;
constexpr size_t kOperations = 1000;
// Two threads need both cores undisturbed at once, so theirs are more and a little longer.
constexpr int kThreadRounds = 301;
constexpr size_t kThreadOperations = 2000;
constexpr size_t kBytes = 4096;

CUdeviceptr take(const Driver& driver) {
    CUdeviceptr block;
    must(driver.allocate(&block, kBytes), "cuMemAlloc");
    return block;
}

void pairs(const Driver& driver, size_t n) {
    for (size_t i = 0; i < n; i++)
        must(driver.free(take(driver)), "cuMemFree");
}

// Allocates and frees what was allocated last.
auto newest(const Driver& driver) {
    return [&driver](size_t n) { pairs(driver, n); };
}

// Frees any of the live ones, and allocates another in its place. Both sides do it to the same ones: the fake driver
// hands out next what was freed last, so the block comes back at its address and cuslice's record of it stays true.
// Each side has random numbers of its own, or the second would find in the caches what the first has just touched.
class RandomVictim {
  public:
    RandomVictim(const Driver& driver, const std::vector<CUdeviceptr>& live, uint64_t seed)
        : driver_(driver), live_(live), random_(seed) {}

    // Draws the victims beforehand: our own list of a million would be a miss of the cache in every pair.
    void prepare(size_t n) {
        victims_.clear();
        for (size_t i = 0; i < n; i++) {
            random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;  // Marsaglia's xorshift
            victims_.push_back(live_[random_ % live_.size()]);
        }
    }
    void operator()(size_t n) {
        for (size_t i = 0; i < n; i++) {
            const CUdeviceptr victim = victims_.back();
            victims_.pop_back();
            must(driver_.free(victim), "cuMemFree");
            if (take(driver_) != victim)
                must(CUDA_ERROR_UNKNOWN, "getting back the block that was freed last");
        }
    }

  private:
    const Driver& driver_;
    const std::vector<CUdeviceptr>& live_;
    uint64_t random_;
    std::vector<CUdeviceptr> victims_;
};

// As many pairs from each of several threads at once, each on a core of its own; nanoseconds from the first thread's
// first to the last thread's last, over the pairs of one.
double pairs_of_threads(const TwoDrivers& drivers, const Driver& driver, unsigned threads) {
    std::atomic<unsigned> ready{0};
    std::vector<int64_t> starts(threads), ends(threads);
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads; t++) {
        workers.emplace_back([&, t] {
            if (!pin(t))
                must(CUDA_ERROR_UNKNOWN, "pinning a thread to a core of its own");
            must(driver.set_current(drivers.context), "cuCtxSetCurrent");
            pairs(driver, 100);
            ready++;
            while (ready.load() < threads)
                std::this_thread::yield();
            starts[t] = now_ns();
            pairs(driver, kThreadOperations);
            ends[t] = now_ns();
        });
    }
    for (std::thread& worker : workers)
        worker.join();
    int64_t first = starts[0], last = ends[0];
    for (unsigned t = 1; t < threads; t++)
        first = std::min(first, starts[t]), last = std::max(last, ends[t]);
    return static_cast<double>(last - first) / static_cast<double>(kThreadOperations);
}

void measure_two_threads(const TwoDrivers& drivers) {
    std::vector<double> one[2], two[2], extra;
    for (int round = 0; round < kThreadRounds; round++) {
        for (int turn = 0; turn < 2; turn++) {
            const int side = (round + turn) % 2;  // 0: raw, 1: ours
            const Driver& driver = side == 0 ? drivers.raw : drivers.ours;
            one[side].push_back(pairs_of_threads(drivers, driver, 1));
            two[side].push_back(pairs_of_threads(drivers, driver, 2));
        }
        extra.push_back(two[1].back() - two[0].back());
    }
    // The target is for one thread: the driver's own lock, which both meet, decides here.
    print_extra("alloc+free: over raw, 0 live, 2 threads", {median(two[0]), median(two[1]), median(extra)}, "ns",
                Bound::none, 0);
    print({"throughput of 2 threads over that of 1: raw driver", 2 * median(one[0]) / median(two[0]), "×", {}, 0, {}});
    print({"throughput of 2 threads over that of 1: cuslice", 2 * median(one[1]) / median(two[1]), "×", {}, 0, {}});
}

}  // namespace

void measure_pairs_in_job(const TwoDrivers& drivers) {
    const Comparison last = compare(kRounds, kOperations, kSingles, newest(drivers.raw), newest(drivers.ours));
    print_extra("in a job: alloc+free over raw, 0 live, newest", last, "ns", Bound::at_most, 100);
}

void measure_pairs(const TwoDrivers& drivers) {
    std::vector<CUdeviceptr> blocks;
    double with_none = 0;
    for (const size_t live : {0, 1000, 10'000, 1'000'000}) {
        while (blocks.size() < live)
            blocks.push_back(take(drivers.ours));
        const std::string after = ", " + std::to_string(live) + " live";
        const Comparison last = compare(kRounds, kOperations, kSingles, newest(drivers.raw), newest(drivers.ours));
        print_extra("alloc+free: over raw" + after + ", newest", last, "ns", Bound::at_most, 100);
        if (live == 0) {
            with_none = last.extra;
            continue;
        }
        const Comparison any =
            compare(kRounds, kOperations, kSingles, RandomVictim(drivers.raw, blocks, 88172645463325252),
                    RandomVictim(drivers.ours, blocks, 2463534242));
        const bool most = live == 1'000'000;
        print_extra("alloc+free: over raw" + after + ", random victim", any, "ns", most ? Bound::none : Bound::at_most,
                    100);
        if (!most)
            continue;
        print({"newest: over raw, of that with 0 live" + after, last.extra / with_none, "×", Bound::at_most, 1.5, {}});
        print({"random victim: over raw, of newest with 0 live" + after,
               any.extra / with_none,
               "×",
               Bound::at_most,
               3,
               {}});
    }
    for (const CUdeviceptr block : blocks)
        must(drivers.ours.free(block), "cuMemFree");
    measure_two_threads(drivers);
}

}  // namespace cuslice::bench
