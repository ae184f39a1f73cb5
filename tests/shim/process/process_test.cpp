// SPDX-License-Identifier: Apache-2.0
// The settings decide whether a process counts, caches and records.
#include "shim/process/process.h"

#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

TEST_CASE("without a limit or a recording nothing is counted") {
    const Within within({{"CUSLICE_LIMIT", ""}, {"CUSLICE_HEADROOM", ""}}, "1xt4");
    if (!within)
        return;
    CHECK_FALSE(process().limits_anything());
    CHECK(process().features() == Process::kReady);
}

TEST_CASE("a limit caches nothing and records nothing by itself") {
    const Within within;
    if (!within)
        return;
    CHECK(process().limits_anything());
    CHECK(process().features() == Process::kReady);
    CHECK(process().gpu_count() == 8);
    CHECK(process().gpu_of(7) == &process().gpu(7));
    CHECK(process().gpu_of(8) == nullptr);
    CHECK(process().gpu_of(-1) == nullptr);
}

TEST_CASE("a recording counts, and caches nothing") {
    const Within within({{"CUSLICE_LIMIT", ""}, {"CUSLICE_HEADROOM", ""}, {"CUSLICE_RECORD", "rows.csv"}}, "1xt4");
    if (!within)
        return;
    CHECK(process().limits_anything());
    CHECK(process().features() == (Process::kReady | Process::kRecording));
    process().stop_recording();
    CHECK(process().features() == Process::kReady);
}

TEST_CASE("a cache and a recording are there together, and the cache stays when the recording ends") {
    const Within within(kCached);
    if (!within)
        return;
    CHECK(process().features() == (Process::kReady | Process::kCaching | Process::kRecording));
    process().stop_recording();
    CHECK(process().features() == (Process::kReady | Process::kCaching));
}
