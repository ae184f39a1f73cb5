// SPDX-License-Identifier: Apache-2.0
// AllocationTable against std::unordered_map.
#include "policy/budget/allocation_table.h"

#include <map>
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

TEST_CASE("an allocation comes back with every field, once") {
    const auto table = std::make_unique<AllocationTable>();
    const Allocation most{~0ull, (1ull << 44) - 512, 65535, 63, 31};
    const Allocation least{512, 0, 0, 0, 0};
    REQUIRE(table->insert(most));
    REQUIRE(table->insert(least));
    CHECK(same(table->erase(most.address), most));
    CHECK(same(table->erase(least.address), least));
    CHECK(table->erase(most.address).address == 0);
    CHECK(table->erase(4096).address == 0);
    CHECK(table->erase(0).address == 0);
}

TEST_CASE("an empty table has nothing to find, to visit or to erase") {
    const auto table = std::make_unique<AllocationTable>();
    check_same(*table, {});
    std::vector<Allocation> ended;
    table->erase_context(7, collect, &ended);
    CHECK(ended.empty());
    CHECK(table->erase(512).address == 0);
}

TEST_CASE("a free that is under way finds its own record, not that of the address's next user") {
    const auto table = std::make_unique<AllocationTable>();
    const Allocation first{512, 1024, 1, 2, 3}, second{512, 2048, 4, 5, 6}, third{512, 4096, 7, 8, 9};
    REQUIRE(table->insert(first));
    REQUIRE(table->insert(second));
    SECTION("one at a time") {
        CHECK(same(table->erase(512), first));
        CHECK(same(table->erase(512), second));
    }
    SECTION("two frees under way at once") {
        REQUIRE(table->insert(third));
        const Allocation one = table->erase(512), other = table->erase(512);
        CHECK((same(one, first) ? same(other, second) : same(one, second) && same(other, first)));
        CHECK(same(table->erase(512), third));
    }
    SECTION("with others in the same 4 KiB, and in all places") {
        for (uint64_t i = 2; i < 5000; i++)
            REQUIRE(table->insert({i * 512, 512, 1, 1, 1}));
        CHECK(same(table->erase(512), first));
        CHECK(same(table->erase(512), second));
    }
    CHECK(table->erase(512).address == 0);
}

TEST_CASE("random operations agree with unordered_map", "[slow][fuzz]") {
    // How many addresses there are decides what is tried: few collide often, many make the table grow and stay sparse.
    const auto addresses = GENERATE(as<uint64_t>(), 64, 3000, 100'000);
    const auto step = GENERATE(as<uint64_t>(), 16, 512, 4096, 64 << 10, 2 << 20);
    std::mt19937_64 random(addresses ^ step);
    const auto table = std::make_unique<AllocationTable>();
    Model model;
    for (int i = 0; i < 400'000; ++i) {
        const uint64_t address = 0x7f0000000000 + random() % addresses * step;
        const unsigned what = random() % 100'000;
        if (what < 50'000 && !model.contains(address)) {
            const Allocation allocation = random_allocation(random, address);
            if (!table->insert(allocation))
                FAIL("no memory");
            model[address] = allocation;
        } else if (what < 99'999) {
            const auto expected = model.find(address);
            const Allocation erased = table->erase(address);
            if (!same(erased, expected == model.end() ? Allocation{} : expected->second))
                FAIL("step " << i);
            if (expected != model.end())
                model.erase(expected);
        } else {
            check_same(*table, model);
        }
    }
    check_same(*table, model);
}

TEST_CASE("addresses of every kind keep their records apart, and so do sizes") {
    const auto table = std::make_unique<AllocationTable>();
    std::mt19937_64 random(3);
    Model model;
    for (const uint64_t begin : {0x200000ull, 0x7f0000000000ull, 0xffffffe00000ull, 0x1000000000000ull})
        for (const uint64_t offset : {0, 8, 256, 512, 1024, 3584, 4096, 4608, 65536, 66048, 1 << 20, 1 << 21})
            for (const uint64_t bytes : {0ull, 512ull, (1ull << 41) - 512, 1ull << 41, (1ull << 44) - 512}) {
                const uint64_t address = begin + offset;
                if (model.contains(address)) {
                    REQUIRE(same(table->find(address), model[address]));
                    REQUIRE(same(table->erase(address), model[address]));
                    REQUIRE(table->find(address).address == 0);
                }
                model[address] = random_allocation(random, address);
                model[address].bytes = bytes;
                REQUIRE(table->insert(model[address]));
            }
    check_same(*table, model);
    for (const auto& [address, allocation] : model)
        CHECK(same(table->erase(address), allocation));
    check_same(*table, {});
}

TEST_CASE("whatever is freed meanwhile, each free finds the oldest record of its address") {
    // All in one 4 KiB: a second address, the same one again, and one that is too large for a word.
    std::mt19937_64 random(17);
    const auto table = std::make_unique<AllocationTable>();
    std::map<uint64_t, std::vector<Allocation>> model;
    for (int i = 0; i < 200'000; ++i) {
        const uint64_t address = 0x40000000 + random() % 6 * 512;
        std::vector<Allocation>& there = model[address];
        if (random() % 2 && there.size() < 2) {
            Allocation allocation = random_allocation(random, address);
            allocation.bytes >>= random() % 2 * 8;
            allocation.bytes = allocation.bytes / 512 * 512;
            REQUIRE(table->insert(allocation));
            there.push_back(allocation);
        } else {
            const Allocation erased = table->erase(address);
            REQUIRE(same(erased, there.empty() ? Allocation{} : there.front()));
            if (!there.empty())
                there.erase(there.begin());
        }
        REQUIRE(same(table->find(address), there.empty() ? Allocation{} : there.front()));
    }
}

TEST_CASE("the end of a context takes its allocations, each once, and no others") {
    const auto table = std::make_unique<AllocationTable>();
    std::mt19937_64 random(11);
    Model model;
    for (uint64_t i = 1; i <= 20'000; ++i) {
        const Allocation allocation = random_allocation(random, i * 512);
        REQUIRE(table->insert(allocation));
        model[allocation.address] = allocation;
    }
    for (uint16_t context = 0; context <= 6; ++context) {
        std::vector<Allocation> ended;
        table->erase_context(context, collect, &ended);
        Model gone;
        for (const Allocation& allocation : ended) {
            REQUIRE(allocation.context == context);
            REQUIRE(same(allocation, model.at(allocation.address)));
            REQUIRE(gone.emplace(allocation.address, allocation).second);
        }
        CHECK(ended.empty() == (context == 0 || context == 6));
        for (const auto& [address, allocation] : gone)
            model.erase(address);
        check_same(*table, model);
    }
    CHECK(model.empty());
}

TEST_CASE("the kind of a live allocation can change, and nothing else of it") {
    const auto table = std::make_unique<AllocationTable>();
    const Allocation before{4096, 1024, 5, 63, 31};
    REQUIRE(table->insert(before));
    CHECK(table->change_kind(4096, 2));
    CHECK_FALSE(table->change_kind(8192, 2));
    CHECK(same(table->erase(4096), {4096, 1024, 5, 63, 2}));
    CHECK_FALSE(table->change_kind(4096, 2));
}

}  // namespace
}  // namespace cuslice
