// SPDX-License-Identifier: Apache-2.0
// Measures the cost of cached memory through the same functions that a program calls. Runs in a slice, on a fake GPU
// in growth mode:
//   cuslice run --per-process --fake 1xh200 --limit 64GiB --allocator growth --free WHEN --
//       cuslice_bench_cached <the fake driver's libcuda.so.1> WHEN
#include <algorithm>
#include <cstdio>
#include <random>
#include <string>

#include "tests/bench/figure.h"
#include "tests/bench/heaps.h"
#include "tests/bench/on_threads.h"
#include "tests/bench/traces.h"
#include "tests/bench/two_drivers.h"

namespace {

using namespace cuslice::bench;

std::string when;  // strict or deferred, which begins each line

void pairs(const Driver& driver, size_t bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        must(driver.free(take(driver, bytes)), "cuMemFree");
}

std::string size_name(size_t bytes) {
    return bytes < 1 << 10   ? std::to_string(bytes) + " B"
           : bytes < 1 << 20 ? std::to_string(bytes >> 10) + " KiB"
                             : std::to_string(bytes >> 20) + " MiB";
}

// Prints the time of a pair. Under strict, where each free asks the driver to wait for the GPU, that wait is taken
// off.
void print_pair(const std::string& name, const Comparison& sides, double wait, double target) {
    if (when == "strict")
        print({when + ": " + name + ", less the driver's own wait", sides.ours - wait, "ns", Bound::at_most, target,
               sides});
    else
        print({when + ": " + name, sides.ours, "ns", Bound::at_most, target, sides});
}

double wait_alone(const TwoDrivers& drivers) {
    const auto wait = [&](size_t n) {
        for (size_t i = 0; i < n; i++)
            must(drivers.raw.synchronize(), "cuCtxSynchronize");
    };
    return compare(201, 1000, 1000, wait, wait).raw;
}

void by_size(const TwoDrivers& drivers, double wait) {
    for (const size_t bytes : {512ul, 4096ul, 65'536ul, 100ul << 10, 1ul << 20, 64ul << 20}) {
        const auto side = [bytes](const Driver& driver) {
            return [&driver, bytes](size_t n) { pairs(driver, bytes, n); };
        };
        const Comparison sides = compare(301, 1000, 20'000, side(drivers.raw), side(drivers.ours));
        print_pair("cached pair of " + size_name(bytes), sides, wait, bytes <= 65'536 ? 20 : 60);
    }
}

// A program's heap in the middle of its life: live blocks of any size, and as many holes.
void among_others(const TwoDrivers& drivers, double wait) {
    std::mt19937_64 random(5);
    std::vector<CUdeviceptr> live, holes;
    for (int i = 0; i < 10'000; i++) {
        live.push_back(take(drivers.ours, 1 + random() % (256 << 10)));
        holes.push_back(take(drivers.ours, 1 + random() % (256 << 10)));
    }
    for (const CUdeviceptr hole : holes)
        must(drivers.ours.free(hole), "cuMemFree");
    for (const size_t bytes : {4096ul, 200ul << 10}) {
        const auto side = [bytes](const Driver& driver) {
            return [&driver, bytes](size_t n) { pairs(driver, bytes, n); };
        };
        const Comparison sides = compare(301, 1000, 20'000, side(drivers.raw), side(drivers.ours));
        print_pair("pair of " + size_name(bytes) + " among 10,000 live and 10,000 holes", sides, wait,
                   bytes <= 65'536 ? 20 : 60);
    }
    for (const CUdeviceptr block : live)
        must(drivers.ours.free(block), "cuMemFree");
}

void among_a_million(const TwoDrivers& drivers, double wait) {
    std::vector<CUdeviceptr> live(1'000'000);
    for (CUdeviceptr& block : live)
        block = take(drivers.ours, 4096);
    const auto side = [](const Driver& driver) { return [&driver](size_t n) { pairs(driver, 4096, n); }; };
    print_pair("pair of 4 KiB among 1,000,000 live", compare(301, 1000, 20'000, side(drivers.raw), side(drivers.ours)),
               wait, 20);
    for (const CUdeviceptr block : live)
        must(drivers.ours.free(block), "cuMemFree");
}

void threads_side_by_side(const TwoDrivers& drivers) {
    constexpr size_t kPairs = 20'000;
    for (const size_t bytes : {4096ul, 1ul << 20}) {
        std::vector<double> one, two, eight;
        const auto work = [&](unsigned) { pairs(drivers.ours, bytes, kPairs); };
        for (int round = 0; round < 51; round++) {
            one.push_back(on_threads(drivers, drivers.ours, 1, work));
            two.push_back(on_threads(drivers, drivers.ours, 2, work));
            if (round % 5 == 0)
                eight.push_back(on_threads(drivers, drivers.ours, 8, work));
        }
        const std::string name = when + ": pairs of " + size_name(bytes) + ", throughput over that of one thread: ";
        const bool small = bytes <= 65'536;
        print({name + "2 threads", 2 * median(one) / median(two), "×", small ? Bound::at_least : Bound::none, 1.8, {}});
        print({name + "8 threads on 2 cores", 8 * median(one) / median(eight), "×", Bound::none, 0, {}});
    }
}

// Held on the GPU by the driver's own account, while the program does what a training would.
void physical_peak(const TwoDrivers& drivers) {
    const Trace trace = training(60, 30, 7);
    std::vector<CUdeviceptr> blocks(blocks_of(trace));
    size_t free = 0, total = 0, before = 0;
    must(drivers.raw.memory_info(&before, &total), "cuMemGetInfo");
    size_t least = before, least_of_half = before, done = 0;
    for (const Operation& operation : trace) {
        CUdeviceptr& block = blocks[operation.block];
        if (!operation.bytes) {
            must(drivers.ours.free(block), "cuMemFree");
            block = 0;
        } else {
            block = take(drivers.ours, operation.bytes);
            must(drivers.raw.memory_info(&free, &total), "cuMemGetInfo");
            least = std::min(least, free);
        }
        if (++done == trace.size() / 2)
            least_of_half = least;
    }
    const double ratio = static_cast<double>(before - least) / static_cast<double>(peak_of(trace));
    print({when + ": training, made up: the most that the driver held, of the most live",
           ratio,
           "×",
           Bound::at_most,
           1.25,
           {}});
    print({when + ": training, made up: more held by the driver after half of it",
           static_cast<double>(least_of_half - least) / (1 << 20),
           "MiB",
           Bound::at_most,
           0,
           {}});
    for (const CUdeviceptr block : blocks)
        if (block)
            must(drivers.ours.free(block), "cuMemFree");
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: %s <path of the driver beneath cuslice> strict|deferred\n", arguments[0]);
        return 64;
    }
    when = arguments[2];
    if (!pin(0))
        return 1;
    const TwoDrivers drivers = open_two_drivers(arguments[1]);
    if (!limit_in_force(drivers)) {
        std::fputs("bench: the limit was not in force, so the figures mean nothing\n", stderr);
        return 1;
    }
    physical_peak(drivers);  // first, while nothing is cached
    const double wait = wait_alone(drivers);
    print({"the driver's wait for an idle GPU", wait, "ns", Bound::none, 0, {}});
    by_size(drivers, wait);
    among_others(drivers, wait);
    among_a_million(drivers, wait);
    threads_side_by_side(drivers);
    for (const Heap& heap : heaps()) {
        // By turns, as everything else.
        std::vector<double> raw, ours;
        for (int round = 0; round < 11; round++) {
            raw.push_back(heap.run(drivers, drivers.raw));
            ours.push_back(heap.run(drivers, drivers.ours));
        }
        print({when + ": " + heap.name, median(ours), "ns", Bound::none, 0, Comparison{median(raw), median(ours)}});
    }
}
