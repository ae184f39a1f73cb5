// SPDX-License-Identifier: Apache-2.0
// Watchers of GPUs' accounts, for NVML before CUDA has started: one for each UUID.
#include "shim/process/watchers.h"

#include <set>
#include <string>

#include "shim/process/process.h"
#include "tests/catch.h"

using namespace cuslice;

TEST_CASE("a GPU's watcher is the same each time, and its own, as long as there are any") {
    std::set<GpuSharing*> all;
    const auto uuid = [](int i) { return "GPU-" + std::to_string(i); };
    for (int i = 0; i < Process::kMaxGpus; i++) {
        GpuSharing* watcher = watcher_of(uuid(i).c_str());
        REQUIRE(watcher);
        CHECK(watcher_of(uuid(i).c_str()) == watcher);
        CHECK(all.insert(watcher).second);
    }
    CHECK(watcher_of("GPU-one-more") == nullptr);
    CHECK(watcher_of("GPU-1") == watcher_of(uuid(1).c_str()));
}
