// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a program's calls under cuslice. Runs in a slice, on a fake GPU with a limit; `job`: the limit
// is shared; `split`: the GPU is split.
//   cuslice run --per-process --fake 1xh200 --limit 64GiB -- cuslice_bench_calls <the fake driver's libcuda.so.1>
#include "tests/bench/calls.h"

#include <cstdio>
#include <cstring>

int main(int count, char** arguments) {
    using namespace cuslice::bench;
    const bool in_a_job = count == 3 && std::strcmp(arguments[2], "job") == 0;
    const bool split = count == 3 && std::strcmp(arguments[2], "split") == 0;
    if (count != 2 && !in_a_job && !split) {
        std::fprintf(stderr, "usage: %s <path of the driver beneath cuslice> [job|split]\n", arguments[0]);
        return 64;
    }
    if (!pin(0))
        return 1;
    const TwoDrivers drivers = open_two_drivers(arguments[1]);

    double refused = limit_in_force(drivers);
    if (in_a_job) {
        measure_pairs_in_job(drivers);
    } else if (split) {
        measure_split(drivers);
    } else {
        measure_calls(drivers);
        measure_pairs(drivers);
    }
    refused += limit_in_force(drivers);
    print({in_a_job ? "in a job: requests past the limit refused, of 2"
           : split  ? "split: requests past the limit refused, of 2"
                    : "requests past the limit refused, of 2",
           refused,
           "",
           Bound::at_least,
           2,
           {}});
    if (refused == 2)
        return 0;
    std::fputs("bench: the limit was not in force, so the figures mean nothing\n", stderr);
    return 1;
}
