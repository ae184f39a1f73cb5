// SPDX-License-Identifier: Apache-2.0
// One pair of calls, again and again, and how many nanoseconds it took: what scripts/bench_pairs.py counts the
// instructions of. Runs under cuslice, on a fake GPU with a limit:
//   cuslice run --fake 1xh200 --limit 64GiB -- cuslice_bench_pair <the fake driver's libcuda.so.1> KIND BYTES PAIRS
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/bench/timing.h"
#include "tests/bench/two_drivers.h"

namespace {

using namespace cuslice::bench;

template <typename Pair>
double nanoseconds(size_t pairs, Pair pair) {
    for (int i = 0; i < 1000; i++)
        pair();  // pages, caches, branch predictors; cached memory
    const int64_t start = now_ns();
    for (size_t i = 0; i < pairs; i++)
        pair();
    return static_cast<double>(now_ns() - start) / static_cast<double>(pairs);
}

// The same, each pair timed by itself: the median, which the few long ones don't show in.
template <typename Pair>
double median_nanoseconds(size_t pairs, Pair pair) {
    for (int i = 0; i < 1000; i++)
        pair();
    const uint64_t empty = empty_interval();
    std::vector<double> times;
    times.reserve(pairs);
    for (size_t i = 0; i < pairs; i++) {
        const uint64_t start = ticks();
        pair();
        const uint64_t took = ticks() - start;
        times.push_back(took > empty ? static_cast<double>(took - empty) * ns_per_tick() : 0);
    }
    return median(times);
}

double measure(const Driver& driver, const std::string& kind, size_t bytes, size_t pairs) {
    if (kind == "alloc")
        return nanoseconds(pairs, [&] { must(driver.free(take(driver, bytes)), "cuMemFree"); });
    if (kind == "median")
        return median_nanoseconds(pairs, [&] { must(driver.free(take(driver, bytes)), "cuMemFree"); });
    if (kind == "async")
        return nanoseconds(pairs, [&] {
            CUdeviceptr block = 0;
            must(driver.allocate_async(&block, bytes, nullptr), "cuMemAllocAsync");
            must(driver.free_async(block, nullptr), "cuMemFreeAsync");
        });
    if (kind == "info")
        return nanoseconds(pairs, [&] {
            size_t free = 0, total = 0;
            must(driver.memory_info(&free, &total), "cuMemGetInfo");
        });
    std::fprintf(stderr, "bench: no such kind of pair: %s\n", kind.c_str());
    std::exit(64);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 5) {
        std::fprintf(stderr, "usage: %s <path of the driver beneath cuslice> alloc|median|async|info BYTES PAIRS\n",
                     arguments[0]);
        return 64;
    }
    if (!pin(0))
        return 1;
    const TwoDrivers drivers = open_two_drivers(arguments[1]);
    if (!limit_in_force(drivers)) {
        std::fputs("bench: the limit was not in force, so the figures mean nothing\n", stderr);
        return 1;
    }
    std::printf("%.2f\n", measure(drivers.ours, arguments[2], std::strtoull(arguments[3], nullptr, 10),
                                  std::strtoull(arguments[4], nullptr, 10)));
}
