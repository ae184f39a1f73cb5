// SPDX-License-Identifier: Apache-2.0
// Measures the cost of the host ledger: reserving alone, against another process, among a thousand idle ones, and
// after another's death.
//   cuslice_bench_ledger <empty folder for the ledger>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/bench/figure.h"
#include "tests/bench/ledger_place.h"

namespace cuslice::bench {
namespace {

constexpr int kRounds = 501, kSingles = 100'000, kIdle = 1000, kRaces = 1'000'000;
constexpr size_t kOperations = 2000;

// Nanoseconds: the median round's mean, and single pairs' p50 and p99.
struct Cost {
    double reserve = 0, pair = 0, p50 = 0, p99 = 0;
};

Cost measure(Place& place) {
    std::vector<double> reserves, pairs, singles;
    for (int round = 0; round < kRounds; round++) {
        int64_t start = now_ns();
        for (size_t i = 0; i < kOperations; i++)
            if (!place.membership.reserve(kBytes, 0, nullptr))
                std::abort();
        reserves.push_back(static_cast<double>(now_ns() - start) / kOperations);
        for (size_t i = 0; i < kOperations; i++)
            place.membership.change(-kBytes);
        start = now_ns();
        for (size_t i = 0; i < kOperations; i++)
            place.pair();
        pairs.push_back(static_cast<double>(now_ns() - start) / kOperations);
    }
    for (int i = 0; i < kSingles; i++) {
        const uint64_t start = ticks();
        place.pair();
        const uint64_t took = ticks() - start, empty = empty_interval();
        singles.push_back(took > empty ? static_cast<double>(took - empty) * ns_per_tick() : 0);
    }
    return {median(reserves), median(pairs), percentile(singles, 0.5), percentile(singles, 0.99)};
}

// Two processes ask for 5 each where there are 8, as often as possible at the same moment.
void race() {
    struct Shared {
        std::atomic<int> here, round, both, neither;
        std::atomic<bool> granted[2];
    };
    auto* shared =
        static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const auto meet = [shared] {
        const int round = shared->round.load();
        if (shared->here.fetch_add(1) == 1) {
            shared->here = 0;
            shared->round++;
        }
        for (unsigned spins = 0; shared->round.load() == round; spins++)
            if (spins > 2000)
                sched_yield();
    };
    constexpr uint64_t kGiB = 1ull << 30;
    const auto run = [&](unsigned who) {
        Place place;
        place.join("race", 8 * kGiB);
        meet();
        for (int i = 0; i < kRaces; i++) {
            shared->granted[who] = place.membership.reserve(5 * kGiB, 0, nullptr);
            meet();
            if (who == 0) {
                shared->both += shared->granted[0] && shared->granted[1];
                shared->neither += !shared->granted[0] && !shared->granted[1];
            }
            meet();
            if (shared->granted[who])
                place.membership.change(-static_cast<int64_t>(5 * kGiB));
            meet();
        }
    };
    const pid_t other = fork();
    if (other == 0) {
        pin(1);
        run(1);
        _exit(0);
    }
    run(0);
    waitpid(other, nullptr, 0);
    print({"ledger: two of 5 GiB under 8 GiB, 1,000,000 rounds: both granted",
           static_cast<double>(shared->both),
           "",
           Bound::at_most,
           0,
           {}});
    print({"ledger: the same: both refused", static_cast<double>(shared->neither), "", Bound::at_most, 0, {}});
}

}  // namespace
}  // namespace cuslice::bench

int main(int count, char** arguments) {
    using namespace cuslice::bench;
    if (count != 2) {
        std::fprintf(stderr, "usage: %s <folder>\n", arguments[0]);
        return 64;
    }
    Place::folder = arguments[1];
    if (!pin(0))
        return 1;
    static Place place;
    place.join("bench", kCapacity);
    const Cost alone = measure(place);
    print({"ledger: reserve, alone", alone.reserve, "ns", Bound::at_most, 15, {}});
    print({"ledger: reserve and give back, alone", alone.pair, "ns", Bound::none, 0, {}});

    const pid_t other = beside(1, [](auto begun) {
        static Place own;
        own.join("bench", kCapacity);
        begun();
        for (;;)
            own.pair();
    });
    const Cost contended = measure(place);
    end(other);
    print({"ledger: reserve, with another process", contended.reserve, "ns", Bound::at_most, 100, {}});
    print({"ledger: pair with another process, p50", contended.p50, "ns", Bound::none, 0, {}});
    print({"ledger: pair with another process, p99", contended.p99, "ns", Bound::none, 0, {}});

    std::vector<pid_t> idle;
    for (int i = 0; i < kIdle; i++)
        idle.push_back(beside(0, [](auto begun) {
            static Place own;
            own.join("bench", kCapacity);
            begun();
            pause();
        }));
    const Cost among = measure(place);
    print(
        {"ledger: pair among 1000 idle members, of that alone", among.pair / alone.pair, "×", Bound::at_most, 1.1, {}});
    for (const pid_t child : idle)
        end(child);
    race();
    measure_kills();
    return 0;
}
