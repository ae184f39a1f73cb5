// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuslice::bench {

// CLOCK_MONOTONIC, in nanoseconds.
int64_t now_ns();

// Keeps the calling thread on one core, the one with this place among those that the process may use. False where there
// are fewer.
bool pin(unsigned place);

// The cycle counter, with everything before it done. Costs about 10 ns, where the clock takes 20.
inline uint64_t ticks() {
#if defined(__x86_64__)
    unsigned core;
    const uint64_t now = __builtin_ia32_rdtscp(&core);
    __builtin_ia32_lfence();
#elif defined(__aarch64__)
    uint64_t now;
    asm volatile("isb\n mrs %0, cntvct_el0\n isb" : "=r"(now) : : "memory");
#endif
    return now;
}

// Nanoseconds a tick, measured once.
double ns_per_tick();

// Ticks between two ticks() with nothing between them.
uint64_t empty_interval();

// The smallest of the values that at least `share` of them do not exceed, for any number of values.
double percentile(std::vector<double> values, double share);
inline double median(const std::vector<double>& values) { return percentile(values, 0.5); }

// The two sides of a comparison, in the unit of what was measured.
struct Comparison {
    double raw = 0, ours = 0;                                     // medians of the rounds
    double extra = 0;                                             // median of the rounds' differences
    double raw_p99 = 0, ours_p99 = 0, raw_max = 0, ours_max = 0;  // of single operations
};

// Measures two ways to do the same, by turns, so that whatever else the machine does meets both: `rounds` rounds in
// which each is run for `operations` operations, one way first and then the other first. Then `singles` operations of
// each, one at a time and by turns of 1000, for what a mean does not show. raw(n) and ours(n) do n operations; what
// they need for them and should not be measured, prepare(n) does before.
template <typename Raw, typename Ours>
Comparison compare(int rounds, size_t operations, size_t singles, Raw raw, Ours ours) {
    const auto prepare = [](auto& run, size_t n) {
        if constexpr (requires { run.prepare(n); })
            run.prepare(n);
    };
    const auto batch = [&](auto& run) {
        prepare(run, operations);
        const int64_t start = now_ns();
        run(operations);
        return static_cast<double>(now_ns() - start) / static_cast<double>(operations);
    };
    batch(raw), batch(ours);  // pages, caches, branch predictors
    std::vector<double> raw_rounds, ours_rounds, extra;
    for (int round = 0; round < rounds; round++) {
        const bool raw_first = round % 2 == 0;
        const double one = raw_first ? batch(raw) : batch(ours);
        const double other = raw_first ? batch(ours) : batch(raw);
        raw_rounds.push_back(raw_first ? one : other);
        ours_rounds.push_back(raw_first ? other : one);
        extra.push_back(ours_rounds.back() - raw_rounds.back());
    }
    Comparison result{median(raw_rounds), median(ours_rounds), median(extra)};

    std::vector<double> raw_single, ours_single;
    const auto one_by_one = [&](auto& run, std::vector<double>& into) {
        prepare(run, 1000);
        for (int i = 0; i < 1000; i++) {
            const uint64_t start = ticks();
            run(1);
            const uint64_t took = ticks() - start, empty = empty_interval();
            into.push_back(took > empty ? static_cast<double>(took - empty) * ns_per_tick() : 0);
        }
    };
    for (size_t done = 0; done < singles; done += 1000)
        one_by_one(raw, raw_single), one_by_one(ours, ours_single);
    result.raw_p99 = percentile(raw_single, 0.99), result.ours_p99 = percentile(ours_single, 0.99);
    result.raw_max = percentile(raw_single, 1), result.ours_max = percentile(ours_single, 1);
    return result;
}

}  // namespace cuslice::bench
