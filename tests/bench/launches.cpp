// SPDX-License-Identifier: Apache-2.0
// Launches of a kernel, one at a time, and how many nanoseconds each took, as a median: what
// tests/bench/launch_costs.py counts the instructions of. Or another program on the same GPU, until its input ends.
//   cuslice_bench_launches measure LAUNCHES
//   cuslice_bench_launches idle        one launch
//   cuslice_bench_launches busy        one after the other
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/timing.h"
#include "tests/turns/kernels.h"

namespace {

using namespace cuslice::bench;
using cuslice::tests::KernelStream;
using cuslice::tests::LaunchingDriver;

constexpr char kKernel[] = "launched";

// By single launches: the few that wait for a turn don't count.
double median_nanoseconds(KernelStream& stream, size_t launches) {
    const uint64_t empty = empty_interval();
    std::vector<double> times;
    times.reserve(launches);
    for (size_t i = 0; i < launches; i++) {
        const uint64_t start = ticks();
        stream.launch(1);
        const uint64_t took = ticks() - start;
        times.push_back(took > empty ? static_cast<double>(took - empty) * ns_per_tick() : 0);
    }
    return median(times);
}

bool input_ends(int milliseconds) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, milliseconds) != 0;
}

// With a share the library has one of its own, and the fake driver's locks take longer in a process of two threads than
// in one: so each side has two.
void start_idle_thread() {
    const auto sleep = [] { pause(); };
    std::thread(sleep).detach();
}

int be_beside(KernelStream& stream, bool busy) {
    stream.launch(1);
    stream.finish();
    std::puts("ready");
    std::fflush(stdout);
    if (!busy)
        return input_ends(-1) ? 0 : 1;
    while (!input_ends(0)) {
        stream.launch(1);
        stream.end_batch();
    }
    return 0;
}

}  // namespace

int main(int count, char** words) {
    const std::string what = count > 1 ? words[1] : "";
    const bool measures = what == "measure" && count == 3;
    if (!measures && what != "idle" && what != "busy") {
        std::fprintf(stderr, "usage: %s measure LAUNCHES | idle | busy\n", words[0]);
        return 64;
    }
    const LaunchingDriver driver;
    KernelStream stream(driver, 0, kKernel);
    if (!measures)
        return be_beside(stream, what == "busy");
    start_idle_thread();
    stream.launch(1000);  // pages, caches, branch predictors
    std::printf("%.2f\n", median_nanoseconds(stream, std::strtoull(words[2], nullptr, 10)));
}
