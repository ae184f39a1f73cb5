// SPDX-License-Identifier: Apache-2.0
// How much memory the caching allocator needs for what a program holds. Of its own code alone, with made-up memory: no
// GPU, no clock.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "tests/bench/figure.h"
#include "tests/bench/traces.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace {

using namespace cuslice;
using namespace cuslice::bench;

// Figures of an allocator after a trace; all zero if memory ran out.
struct Outcome {
    bool passed = false;
    uint64_t held = 0;         // bytes of segments, at most
    unsigned takes = 0;        // segments taken
    unsigned takes_later = 0;  // of them, in the second half of the trace
    unsigned calls = 0;        // segments taken and given back
    unsigned calls_later = 0;  // of them, in the second half of the trace
    double own_a_block = 0;    // bytes of the allocator's own records for each live block, at the end
};

Outcome replay(const Trace& trace, uint64_t limit, const TestAllocator::Options& options) {
    Outcome outcome;
    Allocator a(options, limit);
    AllocationError denied;
    if (options.preallocate)
        a.allocator.top_up(&denied);
    std::vector<uint64_t> blocks(blocks_of(trace));
    size_t live = 0, done = 0;
    unsigned takes_first = 0, calls_first = 0;
    for (const Operation& operation : trace) {
        uint64_t& block = blocks[operation.block];
        if (operation.bytes) {
            if (!(block = a.allocate(operation.bytes)))
                return outcome;
            live++;
        } else {
            if (a.free(block) != TestAllocator::Freed::done)
                return outcome;
            live--;
        }
        if (++done == trace.size() / 2) {
            takes_first = a.memory.takes;
            calls_first = a.memory.takes + a.memory.returns;
        }
    }
    const uint64_t own = a.allocator.statistics().own_memory;
    const unsigned calls = a.memory.takes + a.memory.returns;
    return {true,
            a.memory.peak,
            a.memory.takes,
            a.memory.takes - takes_first,
            calls,
            calls - calls_first,
            static_cast<double>(own) / static_cast<double>(std::max<size_t>(live, 1))};
}

// The smallest limit, in whole segments' steps, under which the whole trace passes.
uint64_t smallest_limit(const Trace& trace, const TestAllocator::Options& options, uint64_t enough) {
    constexpr uint64_t kStep = 2 * kMiB;
    uint64_t low = peak_of(trace) / kStep, high = enough / kStep;
    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        if (replay(trace, middle * kStep, options).passed)
            high = middle;
        else
            low = middle + 1;
    }
    return high * kStep;
}

double waste(uint64_t live, uint64_t reserved) {
    return 100 - 100 * static_cast<double>(live) / static_cast<double>(reserved);
}

constexpr uint64_t kPlenty = 1ull << 42, kSeeds = 21;
constexpr TestAllocator::Options kGrowth{}, kPrealloc{TestAllocator::Reuse::strict, true};

void of_random(uint64_t most_mib, size_t operations, Bound bound, double target) {
    // The middle of some programs: one is much like another, but for the last few blocks.
    std::vector<double> growth, prealloc, deferred, unlimited;
    for (uint64_t seed = 1; seed <= kSeeds; seed++) {
        const Trace trace = random_allocations(most_mib * kMiB, operations, seed);
        const uint64_t live = peak_of(trace), enough = replay(trace, kPlenty, kGrowth).held;
        unlimited.push_back(waste(live, enough));
        growth.push_back(waste(live, smallest_limit(trace, kGrowth, enough)));
        deferred.push_back(waste(live, smallest_limit(trace, kDeferred, 2 * enough)));
        prealloc.push_back(waste(live, smallest_limit(trace, kPrealloc, 2 * enough)));
    }
    const std::string what =
        "random allocations up to " + std::to_string(most_mib) + " MiB, " + std::to_string(operations) + ": ";
    print({what + "waste in the smallest slice, growth", median(growth), "%", bound, target, {}});
    print({what + "the same, growth and deferred", median(deferred), "%", bound, target, {}});
    print({what + "the same, prealloc", median(prealloc), "%", bound, target, {}});
    print({what + "waste of growth that nothing limits", median(unlimited), "%", Bound::none, 0, {}});
}

void of_training() {
    const Trace trace = training(60, 30, 7);
    const uint64_t live = peak_of(trace);
    const Outcome free = replay(trace, kPlenty, kGrowth);
    const std::string what = "training, made up, lengths vary: ";
    print({what + "waste in the smallest slice, growth",
           waste(live, smallest_limit(trace, kGrowth, free.held)),
           "%",
           Bound::at_most,
           5,
           {}});
    print({what + "the most held, of the most live",
           static_cast<double>(free.held) / static_cast<double>(live),
           "×",
           Bound::at_most,
           1.25,
           {}});
    print({what + "segments taken, of which after half",
           static_cast<double>(free.takes_later),
           "",
           Bound::at_most,
           0,
           {}});
    print({what + "segments taken", static_cast<double>(free.takes), "", Bound::none, 0, {}});
}

// Threads that hold up to `each` bytes in blocks of up to 64 KiB, and a few of up to 450 KiB: what is held at most, of
// what is live at most. Whichever thread is faster makes little difference to it.
void of_threads(unsigned count, uint64_t each, Bound bound, double target) {
    Allocator a;
    std::barrier together(count);
    std::atomic<uint64_t> live{0}, most_live{0};
    std::vector<std::thread> threads;
    for (unsigned who = 0; who < count; who++)
        threads.emplace_back([&, who] {
            struct Held {
                uint64_t address, bytes;
            };
            std::mt19937_64 random(who);
            std::vector<Held> held;
            uint64_t mine = 0;
            AllocationError denied;
            int error = 0;
            const auto give_back = [&](size_t k) {
                TestAllocator::free(shared_map(), held[k].address, &error);
                mine -= held[k].bytes, live -= held[k].bytes;
                held[k] = held.back();
                held.pop_back();
            };
            for (int i = 0; i < 3000; i++) {
                const uint64_t bytes = 1 + random() % (random() % 16 ? 64 * kKiB : 450 * kKiB);
                while (mine + bytes > each && !held.empty())
                    give_back(random() % held.size());
                held.push_back({a.allocator.allocate(bytes, &denied), bytes});
                mine += bytes;
                const uint64_t now = live += bytes;
                for (uint64_t most = most_live; most < now && !most_live.compare_exchange_weak(most, now);) {
                }
            }
            together.arrive_and_wait();
            while (!held.empty())
                give_back(0);
            TestAllocator::thread_ends();
        });
    for (std::thread& thread : threads)
        thread.join();
    print({std::to_string(count) + " threads with " + std::to_string(each / kKiB) +
               " KiB each: the most held, of the most live",
           static_cast<double>(a.memory.peak) / static_cast<double>(most_live),
           "×",
           bound,
           target,
           {}});
}

int of_recorded(const char* file) {
    Trace trace;
    std::string why;
    std::ifstream text(file);
    if (!text || !read_recorded(text, trace, why) || trace.empty()) {
        std::fprintf(stderr, "waste: %s: %s\n", file,
                     !text         ? "cannot be read"
                     : why.empty() ? "no allocations"
                                   : why.c_str());
        return 1;
    }
    const Outcome free = replay(trace, kPlenty, kGrowth);
    const uint64_t live = peak_of(trace), enough = free.held;
    const std::string what = std::string(file) + ": ";
    const auto say = [&](const char* of, uint64_t bytes) {
        print({what + of, waste(live, bytes), "%", Bound::none, 0, {}});
    };
    print({what + "allocations and frees", static_cast<double>(trace.size()), "", Bound::none, 0, {}});
    print({what + "live at its peak", static_cast<double>(live) / kMiB, "MiB", Bound::none, 0, {}});
    say("waste in the smallest slice, growth", smallest_limit(trace, kGrowth, enough));
    say("the same, growth and deferred", smallest_limit(trace, kDeferred, 2 * enough));
    say("the same, prealloc", smallest_limit(trace, kPrealloc, 2 * enough));
    say("waste of growth that nothing limits", enough);
    const auto tell = [&](const char* of, double value, const char* unit) {
        print({what + "growth that nothing limits: " + of, value, unit, Bound::none, 0, {}});
    };
    tell("the most held, of the most live", static_cast<double>(enough) / static_cast<double>(live), "×");
    tell("segments taken and given back", free.calls, "");
    tell("the same, after half", free.calls_later, "");
    return 0;
}

}  // namespace

// Without arguments the figures of the benchmark; with --trace FILE those of a program that was recorded.
int main(int count, char** arguments) {
    if (count == 3 && std::string(arguments[1]) == "--trace")
        return of_recorded(arguments[2]);
    if (count != 1)
        return std::fprintf(stderr, "usage: %s [--trace FILE]\n", arguments[0]), 64;
    for (const size_t operations : {1'000u, 10'000u, 100'000u}) {
        // The targets are for 10,000, as what they were taken from.
        const bool asked = operations == 10'000;
        of_random(1, operations, asked ? Bound::at_most : Bound::none, 3);
        of_random(4, operations, asked ? Bound::at_most : Bound::none, 3);
        of_random(64, operations, asked ? Bound::at_most : Bound::none, 10);
        if (operations < 100'000)
            of_random(4096, operations, Bound::none, 0);
    }
    of_training();
    of_threads(1, 2 * kMiB, Bound::none, 0);
    of_threads(64, 2 * kMiB, Bound::at_most, 1.5);
    of_threads(64, 512 * kKiB, Bound::at_most, 2);
    of_threads(256, 512 * kKiB, Bound::at_most, 1.5);
    const Outcome many = replay(random_allocations(64 << 10, 100'000, 3), kPlenty, kGrowth);
    print({"the allocator's own memory for each of 46,000 live blocks up to 64 KiB",
           many.own_a_block,
           "bytes",
           Bound::none,
           0,
           {}});
    const Outcome larger = replay(random_allocations(kMiB, 30'000, 3), kPlenty, kGrowth);
    print({"the same, of 13,800 up to 1 MiB", larger.own_a_block, "bytes", Bound::none, 0, {}});
}
