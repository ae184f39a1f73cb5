// SPDX-License-Identifier: Apache-2.0
// A model of a table of allocations, which a table is compared with.
#pragma once

#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

#include "policy/budget/allocation.h"
#include "tests/catch.h"

namespace cuslice::tests {

inline bool same(const Allocation& a, const Allocation& b) {
    return a.address == b.address && a.bytes == b.bytes && a.context == b.context && a.gpu == b.gpu && a.kind == b.kind;
}

using AllocationModel = std::unordered_map<uint64_t, Allocation>;

inline void collect(const Allocation& allocation, void* argument) {
    static_cast<std::vector<Allocation>*>(argument)->push_back(allocation);
}

// Every allocation once, with every field, and nothing else.
template <typename Table>
void check_same(const Table& table, const AllocationModel& model) {
    std::vector<Allocation> all;
    table.for_each(collect, &all);
    REQUIRE(all.size() == model.size());
    AllocationModel seen;
    for (const Allocation& allocation : all) {
        const auto expected = model.find(allocation.address);
        REQUIRE(expected != model.end());
        REQUIRE(same(allocation, expected->second));
        REQUIRE(seen.emplace(allocation.address, allocation).second);
    }
}

inline Allocation random_allocation(std::mt19937_64& random, uint64_t address) {
    return {address, (random() >> 28) * Allocation::kUnit, static_cast<uint16_t>(1 + random() % 5),
            static_cast<uint8_t>(random() % 64), static_cast<uint8_t>(random() % 32)};
}

}  // namespace cuslice::tests
