// SPDX-License-Identifier: Apache-2.0
// AllocationHash against std::unordered_map.
#include "policy/budget/allocation_hash.h"

#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/budget/allocation_model.h"

namespace cuslice {
namespace {

using namespace tests;
using Model = AllocationModel;

// Addresses whose home is among the last buckets, so that their cluster wraps round to the beginning. The hash is the
// table's own; should it change, this test is no less right, but tries what the random one tries already.
std::vector<uint64_t> colliding(unsigned count) {
    std::vector<uint64_t> found;
    for (uint64_t address = 512; found.size() < count; address += 512) {
        const uint64_t hash = (address >> 4) * 0x9e3779b97f4a7c15ull;
        if ((hash >> 26 & 31) >= 29)
            found.push_back(address);
    }
    return found;
}

TEST_CASE("clusters that wrap round the end of the table lose nothing when parts of them go") {
    const std::vector<uint64_t> addresses = colliding(40);
    for (unsigned seed = 0; seed < 2000; ++seed) {
        std::mt19937_64 random(seed);
        const auto table = std::make_unique<AllocationHash>();
        Model model;
        for (const uint64_t address : addresses) {
            const Allocation allocation = random_allocation(random, address);
            REQUIRE(table->insert(allocation));
            model[address] = allocation;
        }
        if (seed % 2 == 0) {
            for (int i = 0; i < 30; ++i) {
                const uint64_t address = addresses[random() % addresses.size()];
                table->erase(address);
                model.erase(address);
            }
        } else {
            const auto context = static_cast<uint16_t>(1 + random() % 5);
            std::vector<Allocation> ended;
            table->erase_context(context, collect, &ended);
            size_t expected = 0;
            for (auto it = model.begin(); it != model.end();) {
                const bool gone = it->second.context == context;
                expected += gone;
                it = gone ? model.erase(it) : std::next(it);
            }
            REQUIRE(ended.size() == expected);
        }
        check_same(*table, model);
    }
}

}  // namespace
}  // namespace cuslice
