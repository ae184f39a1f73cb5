// SPDX-License-Identifier: Apache-2.0
// How long a refusal takes where another process of the job has cached memory: one that could not make room, however
// much it gave back; and one that could. The other is a child of this program's, and stands still with 1 GiB in its
// cache.
//   cuslice run --fake 1xh200 --limit 4GiB --allocator growth -- cuslice_bench_refusals <the fake driver's
//   libcuda.so.1>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/bench/figure.h"
#include "tests/bench/two_drivers.h"

namespace {

using namespace cuslice::bench;

constexpr size_t kGiB = 1 << 30;
constexpr int kRounds = 7, kRefusals = 20;

// Fills its cache, says so, and does nothing until its input ends.
int be_sibling(const char* path) {
    const TwoDrivers drivers = open_two_drivers(path);
    std::vector<CUdeviceptr> blocks;
    for (int i = 0; i < 64; i++)
        blocks.push_back(take(drivers.ours, kGiB / 64));
    for (const CUdeviceptr block : blocks)
        must(drivers.ours.free(block), "cuMemFree");
    std::puts("ready");
    std::fflush(stdout);
    return std::getchar() == EOF ? 0 : 1;
}

struct Sibling {
    explicit Sibling(char** arguments) {
        int in[2], out[2];
        if (pipe(in) != 0 || pipe(out) != 0)
            must(CUDA_ERROR_UNKNOWN, "making a pipe");
        child = fork();
        if (child == 0) {
            dup2(in[0], 0), dup2(out[1], 1);
            for (const int end : {in[0], in[1], out[0], out[1]})
                close(end);
            execl("/proc/self/exe", arguments[0], arguments[1], "sibling", nullptr);
            _exit(127);
        }
        close(in[0]), close(out[1]);
        input = in[1];
        char byte = 0;
        if (read(out[0], &byte, 1) != 1)
            must(CUDA_ERROR_UNKNOWN, "starting the other process");
        close(out[0]);
    }
    ~Sibling() {
        close(input);
        waitpid(child, nullptr, 0);
    }
    int input = -1;
    pid_t child = -1;
};

// Milliseconds of one request that must be refused.
double refused(const Driver& driver, size_t bytes) {
    CUdeviceptr block = 0;
    const int64_t start = now_ns();
    const CUresult result = driver.allocate(&block, bytes);
    const double took = static_cast<double>(now_ns() - start) / 1e6;
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        must(CUDA_ERROR_UNKNOWN, "being refused");
    return took;
}

// By turns: the driver refuses what no GPU has, cuslice what the limit doesn't allow.
void measure(const TwoDrivers& drivers, const char* name, size_t bytes) {
    std::vector<double> rounds[2], singles[2];
    for (int number = 0; number < kRounds; number++) {
        for (int turn = 0; turn < 2; turn++) {
            const int side = (number + turn) % 2;
            std::vector<double> took;
            for (int i = 0; i < kRefusals; i++)
                took.push_back(side == 0 ? refused(drivers.raw, 1024 * kGiB) : refused(drivers.ours, bytes));
            rounds[side].push_back(median(took));
            singles[side].insert(singles[side].end(), took.begin(), took.end());
        }
    }
    Comparison sides{median(rounds[0]), median(rounds[1]), 0};
    sides.raw_p99 = percentile(singles[0], 0.99), sides.ours_p99 = percentile(singles[1], 0.99);
    sides.raw_max = percentile(singles[0], 1), sides.ours_max = percentile(singles[1], 1);
    print({name, sides.ours, "ms", Bound::at_most, 2, sides});
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 3 && std::strcmp(arguments[2], "sibling") == 0)
        return be_sibling(arguments[1]);
    if (count != 2) {
        std::fprintf(stderr, "usage: %s <path of the driver beneath cuslice>\n", arguments[0]);
        return 64;
    }
    const TwoDrivers drivers = open_two_drivers(arguments[1]);
    const Sibling sibling(arguments);
    // More than the whole limit; and more than is left of it with all that the other has cached.
    measure(drivers, "a sibling caches: a refusal of 32 GiB under 4 GiB", 32 * kGiB);
    const CUdeviceptr held = take(drivers.ours, kGiB);
    measure(drivers, "a sibling caches: a refusal of 3 GiB with 1 GiB of its own held", 3 * kGiB);
    must(drivers.ours.free(held), "cuMemFree");
}
