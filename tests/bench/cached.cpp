// What cached memory costs, through the same functions that a program calls. Runs there, on a fake GPU in growth mode:
//   cuslice run --per-process --fake 1xh200 --limit 64GiB --allocator growth --free WHEN --
//       cuslice_bench_cached <the fake driver's libcuda.so.1> WHEN
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <random>
#include <string>
#include <thread>

#include "tests/bench/figure.h"
#include "tests/bench/traces.h"
#include "tests/bench/two_drivers.h"

namespace {

using namespace cuslice::bench;

std::string when;  // strict or deferred, which begins each line

CUdeviceptr take(const Driver& driver, std::size_t bytes) {
    CUdeviceptr block;
    must(driver.allocate(&block, bytes), "cuMemAlloc");
    return block;
}

void pairs(const Driver& driver, std::size_t bytes, std::size_t n) {
    for (std::size_t i = 0; i < n; i++) must(driver.free(take(driver, bytes)), "cuMemFree");
}

std::string size_name(std::size_t bytes) {
    return bytes < 1 << 10   ? std::to_string(bytes) + " B"
           : bytes < 1 << 20 ? std::to_string(bytes >> 10) + " KiB"
                             : std::to_string(bytes >> 20) + " MiB";
}

// What a pair takes, and what of it is the driver's wait for the GPU, which strict asks for in each free.
void print_pair(const std::string& name, const Comparison& sides, double wait, double target) {
    if (when == "strict")
        print({when + ": " + name + ", less the driver's own wait", sides.ours - wait, "ns", Bound::at_most, target,
               sides});
    else
        print({when + ": " + name, sides.ours, "ns", Bound::at_most, target, sides});
}

double wait_alone(const TwoDrivers& drivers) {
    const auto wait = [&](std::size_t n) {
        for (std::size_t i = 0; i < n; i++) must(drivers.raw.synchronize(), "cuCtxSynchronize");
    };
    return compare(201, 1000, 1000, wait, wait).raw;
}

void by_size(const TwoDrivers& drivers, double wait) {
    for (const std::size_t bytes : {512ul, 4096ul, 65'536ul, 100ul << 10, 1ul << 20, 64ul << 20}) {
        const auto side = [bytes](const Driver& driver) {
            return [&driver, bytes](std::size_t n) { pairs(driver, bytes, n); };
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
    for (const CUdeviceptr hole : holes) must(drivers.ours.free(hole), "cuMemFree");
    for (const std::size_t bytes : {4096ul, 200ul << 10}) {
        const auto side = [bytes](const Driver& driver) {
            return [&driver, bytes](std::size_t n) { pairs(driver, bytes, n); };
        };
        const Comparison sides = compare(301, 1000, 20'000, side(drivers.raw), side(drivers.ours));
        print_pair("pair of " + size_name(bytes) + " among 10,000 live and 10,000 holes", sides, wait,
                   bytes <= 65'536 ? 20 : 60);
    }
    for (const CUdeviceptr block : live) must(drivers.ours.free(block), "cuMemFree");
}

void among_a_million(const TwoDrivers& drivers, double wait) {
    std::vector<CUdeviceptr> live(1'000'000);
    for (CUdeviceptr& block : live) block = take(drivers.ours, 4096);
    const auto side = [](const Driver& driver) { return [&driver](std::size_t n) { pairs(driver, 4096, n); }; };
    print_pair("pair of 4 KiB among 1,000,000 live", compare(301, 1000, 20'000, side(drivers.raw), side(drivers.ours)),
               wait, 20);
    for (const CUdeviceptr block : live) must(drivers.ours.free(block), "cuMemFree");
}

// Nanoseconds from the first thread's first operation to the last thread's last; `work(thread)` is one thread's.
template <typename Work>
double on_threads(const TwoDrivers& drivers, unsigned count, Work work) {
    std::atomic<unsigned> ready{0};
    std::vector<std::int64_t> starts(count), ends(count);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < count; t++) {
        threads.emplace_back([&, t] {
            if (!pin(t % std::thread::hardware_concurrency())) must(CUDA_ERROR_UNKNOWN, "pinning a thread");
            must(drivers.ours.set_current(drivers.context), "cuCtxSetCurrent");
            ready++;
            while (ready.load() < count) std::this_thread::yield();
            starts[t] = now_ns();
            work(t);
            ends[t] = now_ns();
        });
    }
    for (std::thread& thread : threads) thread.join();
    return static_cast<double>(*std::max_element(ends.begin(), ends.end()) -
                               *std::min_element(starts.begin(), starts.end()));
}

void threads_side_by_side(const TwoDrivers& drivers) {
    constexpr std::size_t kPairs = 20'000;
    for (const std::size_t bytes : {4096ul, 1ul << 20}) {
        std::vector<double> one, two, eight;
        const auto work = [&](unsigned) { pairs(drivers.ours, bytes, kPairs); };
        for (int round = 0; round < 51; round++) {
            one.push_back(on_threads(drivers, 1, work));
            two.push_back(on_threads(drivers, 2, work));
            if (round % 5 == 0) eight.push_back(on_threads(drivers, 8, work));
        }
        const std::string name = when + ": pairs of " + size_name(bytes) + ", throughput over that of one thread: ";
        const bool small = bytes <= 65'536;
        print({name + "2 threads", 2 * median(one) / median(two), "×", small ? Bound::at_least : Bound::none, 1.8, {}});
        print({name + "8 threads on 2 cores", 8 * median(one) / median(eight), "×", Bound::none, 0, {}});
    }
}

// One thread allocates and hands on, the other frees (xmalloc-test).
void producer_and_consumer(const TwoDrivers& drivers) {
    constexpr unsigned kSlots = 4096, kBlocks = 200'000;
    std::vector<double> rounds;
    for (int round = 0; round < 11; round++) {
        std::vector<std::atomic<CUdeviceptr>> slots(kSlots);
        const auto work = [&](unsigned thread) {
            for (unsigned i = 0; i < kBlocks; i++) {
                std::atomic<CUdeviceptr>& slot = slots[i % kSlots];
                if (thread == 0) {
                    while (slot.load(std::memory_order_relaxed)) std::this_thread::yield();
                    slot.store(take(drivers.ours, 512 + i % 64 * 512), std::memory_order_release);
                } else {
                    CUdeviceptr block;
                    while (!(block = slot.load(std::memory_order_acquire))) std::this_thread::yield();
                    slot.store(0, std::memory_order_release);
                    must(drivers.ours.free(block), "cuMemFree");
                }
            }
        };
        rounds.push_back(on_threads(drivers, 2, work) / kBlocks);
    }
    print({when + ": one thread allocates, another frees: a block", median(rounds), "ns", Bound::none, 0, {}});
}

// Each thread replaces random ones of its blocks, and hands all of them to the next thread now and then (larson).
void larson(const TwoDrivers& drivers) {
    constexpr unsigned kThreads = 2, kBlocks = 1000, kTurns = 10, kReplaced = 5000;
    std::vector<double> rounds;
    for (int round = 0; round < 11; round++) {
        std::vector<std::vector<CUdeviceptr>> sets(kThreads, std::vector<CUdeviceptr>(kBlocks));
        std::atomic<unsigned> arrived{0};
        for (auto& set : sets)
            for (CUdeviceptr& block : set) block = take(drivers.ours, 8192);
        const double took = on_threads(drivers, kThreads, [&](unsigned thread) {
            std::mt19937_64 random(thread);
            for (unsigned turn = 0; turn < kTurns; turn++) {
                auto& set = sets[(thread + turn) % kThreads];
                for (unsigned i = 0; i < kReplaced; i++) {
                    CUdeviceptr& block = set[random() % kBlocks];
                    must(drivers.ours.free(block), "cuMemFree");
                    block = take(drivers.ours, 512 + random() % 65'000);
                }
                arrived++;
                while (arrived.load() < kThreads * (turn + 1)) std::this_thread::yield();
            }
        });
        rounds.push_back(took / kTurns / kReplaced);
        for (auto& set : sets)
            for (const CUdeviceptr block : set) must(drivers.ours.free(block), "cuMemFree");
    }
    print(
        {when + ": larson, 2 threads, up to 64 KiB: a replacement of each", median(rounds), "ns", Bound::none, 0, {}});
}

// Held on the GPU by the driver's own account, while the program does what a training would.
void physical_peak(const TwoDrivers& drivers) {
    const Trace trace = training(60, 30, 7);
    std::vector<CUdeviceptr> blocks(blocks_of(trace));
    std::size_t free = 0, total = 0, before = 0;
    must(drivers.raw.memory_info(&before, &total), "cuMemGetInfo");
    std::size_t least = before, least_of_half = before, done = 0;
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
        if (++done == trace.size() / 2) least_of_half = least;
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
        if (block) must(drivers.ours.free(block), "cuMemFree");
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: %s <path of the driver beneath cuslice> strict|deferred\n", arguments[0]);
        return 64;
    }
    when = arguments[2];
    if (!pin(0)) return 1;
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
    producer_and_consumer(drivers);
    larson(drivers);
}
