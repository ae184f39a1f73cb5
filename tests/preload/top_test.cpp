// SPDX-License-Identifier: Apache-2.0
// cuslice top on a machine with jobs: what ps and stats say of them, beside the GPUs.
#include "tests/preload/device.h"
#include "tests/preload/machine.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

Json top(const Machine& machine) {
    const Outcome outcome = run({kLaunch, "top", "--json", "--fake", machine.fake}, machine.outside());
    CHECK(outcome.err.empty());
    REQUIRE(outcome.exit_code == 0);
    return Json::parse(outcome.out);
}

}  // namespace

TEST_CASE("top shows jobs, partitions, waiters and caches of the GPUs that they are on") {
    const Machine machine("2xlaptop-2g");
    auto cached = machine.start({"--gpus", "0", "--limit", "1GiB", "--allocator", "growth"});
    use_device(*cached);
    REQUIRE(cached->code("alloc a " + std::to_string(100 * kMiB)) == kSuccess);
    auto split = machine.start({"--gpus", "1", "--split", "1=2"});
    REQUIRE(split->code("init") == kSuccess);
    REQUIRE(split->code("retain 1") == kSuccess);
    auto waits = machine.start({"--gpus", "0", "--fraction", "0.9", "--wait"});
    REQUIRE(soon([&] { return top(machine)["waiting"].size() == 1; }));

    const Json now = top(machine);
    REQUIRE(now["gpus"].size() == 2);
    CHECK(now["gpus"][0]["uuid"] == machine.uuids[0]);
    CHECK(now["gpus"][0]["total"] == 2002 * kMiB);
    // The only process there uses the bytes that the driver has on record, and has reserved the rest of its limit.
    const uint64_t used = now["gpus"][0]["used"];
    CHECK(used == machine.held(*cached, 0).used);
    CHECK(now["gpus"][0]["reserved_beyond_use"] == kGiB - used);

    uint64_t of_parts = 0;
    bool whole = false, job = false;
    for (const Json& row : now["processes"]) {
        job = job || (row["pid"] == cached->pid() && row["index"] == 0 && row["partition"].is_null() &&
                      row["used"] == used && row["limit"] == kGiB);
        if (row["pid"] != split->pid())
            continue;
        CHECK(row["index"] == 1);
        whole = whole || row["partition"].is_null();
        if (!row["partition"].is_null())
            of_parts |= uint64_t{1} << row["partition"].get<unsigned>();
    }
    CHECK(job);
    CHECK(whole);
    CHECK(of_parts == 0b11);
    CHECK(now["waiting"][0]["index"] == 0);
    REQUIRE(now["caches"].size() == 1);
    CHECK(now["caches"][0]["pid"] == cached->pid());
    CHECK(now["caches"][0]["index"] == 0);
    CHECK(now["caches"][0]["allocated"]["current"] == 100 * kMiB);

    const std::string frame = run({kLaunch, "top", "--fake", machine.fake}, machine.outside()).out;
    for (const char* part : {"cuslice top: 2 GPUs, 2 jobs, 1 waiting\n", "\n1/0 ", "\n1/1 ", "\nWAITING", "\nCACHES"})
        CHECK(frame.find(part) != frame.npos);
}

}  // namespace cuslice::tests
