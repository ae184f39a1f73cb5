// SPDX-License-Identifier: Apache-2.0
// Measures the time that cached memory saves where the driver's calls take as long as they have been seen to take on
// a GPU. Runs on a fake GPU with such delays, in growth mode:
//   CUSLICE_FAKE_INJECT=delay:… cuslice run --per-process --fake 1xh200 --limit 64GiB --allocator growth --free WHEN --
//       cuslice_bench_delayed <the fake driver's libcuda.so.1> WHEN
#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/figure.h"
#include "tests/bench/on_threads.h"
#include "tests/bench/traces.h"
#include "tests/bench/two_drivers.h"

namespace {

using namespace cuslice::bench;

void by_size(const TwoDrivers& drivers, const std::string& when) {
    for (const size_t bytes : {4096ul, 1ul << 20, 64ul << 20}) {
        const auto side = [bytes](const Driver& driver) {
            return [&driver, bytes](size_t n) {
                for (size_t i = 0; i < n; i++)
                    must(driver.free(take(driver, bytes)), "cuMemFree");
            };
        };
        const Comparison sides = compare(11, 100, 1000, side(drivers.raw), side(drivers.ours));
        const std::string size =
            bytes < 1 << 20 ? std::to_string(bytes >> 10) + " KiB" : std::to_string(bytes >> 20) + " MiB";
        print({when + ", delays: cached pair of " + size, sides.ours, "ns", Bound::none, 0, sides});
        print({when + ", delays: the driver's pair of " + size + " takes",
               sides.raw / sides.ours,
               "×",
               Bound::none,
               0,
               {}});
    }
}

// Threads that allocate from a pool at the same time: whether the driver works for all of them at once.
void from_pool(const TwoDrivers& drivers, const std::string& when) {
    constexpr unsigned kThreads = 8;
    constexpr int kPairs = 50;
    const auto run = [&](const Driver& driver) {
        return on_threads(drivers, driver, kThreads, [&](unsigned) {
            for (int i = 0; i < kPairs; i++) {
                CUdeviceptr block = 0;
                must(driver.allocate_async(&block, 65536, nullptr), "cuMemAllocAsync");
                must(driver.free_async(block, nullptr), "cuMemFreeAsync");
            }
        });
    };
    std::vector<double> times;
    for (int round = 0; round < 7; round++) {
        const double raw = run(drivers.raw);
        times.push_back(run(drivers.ours) / raw);
    }
    print({when + ", delays: 8 threads in cuMemAllocAsync take, of the driver's time",
           median(times),
           "×",
           Bound::at_most,
           1.2,
           {}});
}

double replay(const Driver& driver, const Trace& trace) {
    std::vector<CUdeviceptr> blocks(blocks_of(trace));
    const int64_t start = now_ns();
    for (const Operation& operation : trace) {
        CUdeviceptr& block = blocks[operation.block];
        if (operation.bytes) {
            block = take(driver, operation.bytes);
        } else {
            must(driver.free(block), "cuMemFree");
            block = 0;
        }
    }
    const int64_t end = now_ns();
    for (const CUdeviceptr block : blocks)
        if (block)
            must(driver.free(block), "cuMemFree");
    return static_cast<double>(end - start) / static_cast<double>(trace.size()) / 1000;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: %s <path of the driver beneath cuslice> strict|deferred\n", arguments[0]);
        return 64;
    }
    const std::string when = arguments[2];
    if (!pin(0))
        return 1;
    const TwoDrivers drivers = open_two_drivers(arguments[1]);
    if (!limit_in_force(drivers)) {
        std::fputs("bench: the limit was not in force, so the figures mean nothing\n", stderr);
        return 1;
    }
    // With nothing cached yet: the segments that it takes are part of it.
    const Trace trace = training(4, 4, 7);
    Comparison sides;
    sides.ours = replay(drivers.ours, trace), sides.raw = replay(drivers.raw, trace);
    print({when + ", delays: 4 steps of training, made up: an operation", sides.ours, "us", Bound::none, 0, sides});
    by_size(drivers, when);
    from_pool(drivers, when);
}
