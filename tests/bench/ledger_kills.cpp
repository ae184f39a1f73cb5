// SPDX-License-Identifier: Apache-2.0
// A process is killed somewhere in its loop, and another wants what it held.
#include <random>

#include "tests/bench/figure.h"
#include "tests/bench/ledger_place.h"

namespace cuslice::bench {
namespace {

constexpr int kKills = 500;
constexpr uint64_t kGiB = 1ull << 30, kLimit = 8 * kGiB, kMax = 5 * kGiB;
constexpr double kTarget = 10;  // ms

// Milliseconds from the signal to the reservation. Nothing waits for the kernel to be done with the dead: a refusal
// takes the dead ones' bytes back and tries again, as an allocation's does, again and again.
double reserve_after_kill(Place& place, pid_t victim) {
    const int64_t start = now_ns();
    kill(victim, SIGKILL);
    while (!place.membership.reserve(kMax, 0, nullptr)) {
        place.ledger.take_back_dead();
        if (now_ns() - start > 10'000'000'000) {
            std::fprintf(stderr, "bench: what a killed process held does not come back\n");
            std::exit(1);
        }
    }
    const auto took = static_cast<double>(now_ns() - start) / 1e6;
    waitpid(victim, nullptr, 0);
    return took;
}

}  // namespace

void measure_kills() {
    static Place place;
    place.join("kills", kLimit);
    std::vector<double> times;
    std::mt19937 random(1);
    for (int i = 0; i < kKills; i++) {
        // It holds 5 GiB of 8 all the time, so that nobody gets as much before it is dead.
        const pid_t victim = beside(1, [](auto begun) {
            static Place own;
            own.join("kills", kLimit);
            if (!own.membership.reserve(kMax, 0, nullptr))
                _exit(1);
            begun();
            for (;;)
                own.pair();
        });
        usleep(random() % 2000);
        times.push_back(reserve_after_kill(place, victim));
        place.membership.change(-static_cast<int64_t>(kMax));
    }
    const std::string name = "ledger: a killed process's bytes had by another, ";
    print({name + "p50", percentile(times, 0.5), "ms", Bound::at_most, kTarget, {}});
    print({name + "p99", percentile(times, 0.99), "ms", Bound::at_most, kTarget, {}});
    print({name + "max of " + std::to_string(kKills), percentile(times, 1), "ms", Bound::at_most, kTarget, {}});
}

}  // namespace cuslice::bench
