// SPDX-License-Identifier: Apache-2.0
// Pairs of calls from several processes at once: the functions of cuslice against those of the driver beneath it, by
// turns.
//   cuslice run --fake 1xh200 --limit 64GiB -- cuslice_bench_processes <the fake driver's libcuda.so.1> WHAT
// WHAT stands before each figure's name, such as "in one job".
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/figure.h"
#include "tests/bench/two_drivers.h"

namespace {

using namespace cuslice::bench;

constexpr int kRounds = 9;
constexpr unsigned kMost = 32;
constexpr size_t kPairs = 10'000, kBytes = 65536;

// State that the processes of one measurement share.
struct Meeting {
    std::atomic<unsigned> arrived{0}, round{0};
    int64_t starts[kMost], ends[kMost];
    double took[2][kRounds];  // nanoseconds a pair, by side and round

    // Returns once `count` have come.
    void wait_for(unsigned count) {
        const unsigned now = round.load();
        if (arrived.fetch_add(1) + 1 == count) {
            arrived = 0;
            round++;
        } else {
            while (round.load() == now)
                sched_yield();
        }
    }
};

// One of `count`, on a core of its own as far as there are so many.
void take_part(Meeting& meeting, const char* path, unsigned number, unsigned count) {
    if (!pin(number % std::thread::hardware_concurrency()))
        must(CUDA_ERROR_UNKNOWN, "pinning a process");
    const TwoDrivers drivers = open_two_drivers(path);
    for (int round = -1; round < kRounds; round++) {  // the first is for caches and branch predictors
        for (int turn = 0; turn < 2; turn++) {
            const int side = (round + 1 + turn) % 2;  // 0: raw, 1: ours
            const Driver& driver = side == 0 ? drivers.raw : drivers.ours;
            meeting.wait_for(count);
            meeting.starts[number] = now_ns();
            for (size_t i = 0; i < kPairs; i++)
                must(driver.free(take(driver, kBytes)), "cuMemFree");
            meeting.ends[number] = now_ns();
            meeting.wait_for(count);
            if (number != 0 || round < 0)
                continue;
            const auto first = *std::min_element(meeting.starts, meeting.starts + count);
            const auto last = *std::max_element(meeting.ends, meeting.ends + count);
            meeting.took[side][round] = static_cast<double>(last - first) / static_cast<double>(kPairs);
        }
    }
}

// False if a process didn't come to its end.
bool measure(const char* path, const std::string& what, unsigned count) {
    void* const memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    auto* const meeting = new (memory) Meeting;
    std::vector<pid_t> children;
    for (unsigned i = 0; i < count; i++) {
        const pid_t child = fork();
        if (child == 0) {
            take_part(*meeting, path, i, count);
            _exit(0);
        }
        children.push_back(child);
    }
    // The others would wait for ever for one that has ended early.
    bool all = true;
    for (unsigned i = 0; i < count; i++) {
        int status = 0;
        if (wait(&status) > 0 && status == 0)
            continue;
        for (const pid_t child : children)
            if (all)
                kill(child, SIGKILL);
        all = false;
    }
    if (all) {
        double least[2];
        for (int side = 0; side < 2; side++)
            least[side] = *std::min_element(meeting->took[side], meeting->took[side] + kRounds);
        print({what + ": alloc+free, of the driver's own: " + std::to_string(count) +
                   (count == 1 ? " process" : " processes"),
               least[1] / least[0], "×", Bound::none, 0, Comparison{least[0], least[1]}});
    }
    munmap(memory, sizeof(Meeting));
    return all;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: %s <path of the driver beneath cuslice> WHAT\n", arguments[0]);
        return 64;
    }
    for (const unsigned processes : {1u, 8u, kMost}) {
        std::fflush(stdout);
        if (measure(arguments[1], arguments[2], processes))
            continue;
        std::fputs("bench: a process ended early, so there is no figure\n", stderr);
        return 1;
    }
    return 0;
}
