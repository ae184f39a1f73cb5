// SPDX-License-Identifier: Apache-2.0
// Places in a lease's value, and a value with garbage.
#include "policy/lease/steps.h"

#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "tests/catch.h"
#include "tests/policy/lease/table.h"

using namespace cuslice::lease;
using namespace cuslice::tests;

TEST_CASE("the last process of a job takes the job with it") {
    Table table;
    const uint32_t one = table.add(50), other = table.add(50);
    table.wants(one);
    table.wants(other);
    leave(*table.state, one, table.now);
    CHECK(table.open(other));
    CHECK(is_free(table.job(0)));
}

TEST_CASE("tables that are full say so") {
    Table table;
    for (uint64_t id = 1; id <= kJobs; id++)
        CHECK(place_of_job(*table.state, id) != kNoPlace);
    CHECK(place_of_job(*table.state, kJobs + 1) == kNoPlace);
    Member self{};
    for (uint32_t i = 0; i < kMembers; i++) {
        self.presence = i + 1;
        CHECK(enter(*table.state, 0, self) != kNoPlace);
    }
    CHECK(enter(*table.state, 0, self) == kNoPlace);
    for (uint32_t gpu = 0; gpu < kGpus; gpu++)
        CHECK(number_of_gpu(*table.state, ("GPU-" + std::to_string(gpu)).c_str()) == gpu);
    CHECK(number_of_gpu(*table.state, "GPU-0") == 0);
    CHECK(number_of_gpu(*table.state, "GPU-more") == kNoPlace);
}

TEST_CASE("steps leave what is whole, and garbage is told from it or does no harm") {
    std::mt19937 random(1);
    Table table;
    const uint32_t one = table.add(50, bit(0) | bit(3)), other = table.add(20);
    table.wants(one);
    table.wants(other);
    REQUIRE(is_whole(*table.state));
    const auto damaged = std::make_unique<State>();
    unsigned told = 0;
    constexpr unsigned kRounds = 5000;
    for (unsigned i = 0; i < kRounds; i++) {
        *damaged = *table.state;
        auto* const words = reinterpret_cast<uint64_t*>(damaged.get());
        for (int n = 0; n < 3; n++)
            words[random() % (sizeof(State) / sizeof *words)] ^= 1ull << random() % 64;
        if (!is_whole(*damaged)) {
            told++;
            continue;
        }
        for (uint32_t member : {one, other}) {
            want(*damaged, member, table.now);
            pass(*damaged, member, table.now);
        }
        schedule(*damaged, table.now + 1000 * kMillisecond);
        next_event(*damaged, table.now, kQuantum);
    }
    CHECK(told > 0);
    CHECK(told < kRounds);
    memset(static_cast<void*>(damaged.get()), 0xff, sizeof *damaged);
    CHECK_FALSE(is_whole(*damaged));
}
