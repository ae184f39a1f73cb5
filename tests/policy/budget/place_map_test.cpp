// SPDX-License-Identifier: Apache-2.0
#include "policy/budget/place_map.h"

#include <map>
#include <memory>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/rounds.h"

namespace cuslice {
namespace {

TEST_CASE("addresses of 4 KiB have one word, but a boundary of 64 KiB or 2 MiB has its own") {
    const auto map = std::make_unique<PlaceMap>();
    std::map<PlaceMap::Word*, std::vector<uint64_t>> words;
    for (const uint64_t region : {0x200000ull, 0x7fffffe00000ull, 0xffffffe00000ull})
        for (const uint64_t offset : {0, 512, 3584, 4096, 65024, 65536, 66048, 69632, 2096640}) {
            PlaceMap::Word* const made = map->make(region + offset);
            CHECK(made == map->find(region + offset));
            words[made].push_back(region + offset);
        }
    CHECK(words.size() == 24);
    for (const auto& [word, addresses] : words) {
        REQUIRE(word);
        CHECK(word->load() == 0);
        for (const uint64_t address : addresses)
            CHECK(address >> 12 == addresses.front() >> 12);
    }
}

TEST_CASE("what nobody has made isn't there") {
    const auto map = std::make_unique<PlaceMap>();
    CHECK(map->find(0x7f0000000000) == nullptr);
    REQUIRE(map->make(0x7f0000000000));
    CHECK(map->find(0x7f0000000200) == nullptr);
    CHECK(map->find(0x7f0000010000) == nullptr);
    CHECK(map->find(0x6f0000000000) == nullptr);
}

TEST_CASE("every word that was written is visited once, with the address where it begins") {
    const auto map = std::make_unique<PlaceMap>();
    std::map<uint64_t, uint64_t> written;
    for (uint64_t i = 1; i < 3000; i++) {
        const uint64_t address = i * 0x9e3779b97f4a7c15ull % PlaceMap::kEnd / 4096 * 4096 << i % 3 * 5;
        if (address >= PlaceMap::kEnd)
            continue;
        map->make(address)->store(i);
        written[address] = i;
    }
    std::map<uint64_t, uint64_t> seen;
    map->for_each([&](const PlaceMap::Word& word, uint64_t begin) {
        if (word.load())
            CHECK(seen.emplace(begin, word.load()).second);
    });
    CHECK(seen == written);
}

TEST_CASE("threads that make the same words get the same ones") {
    const auto map = std::make_unique<PlaceMap>();
    std::vector<PlaceMap::Word*> made[4];
    tests::on_threads(4, [&](unsigned thread) {
        for (uint64_t i = 1; i < 4000; i++)
            made[thread].push_back(map->make(i << 12 << i % 2 * 9));
    });
    for (unsigned thread = 1; thread < 4; thread++)
        CHECK(made[thread] == made[0]);
}

}  // namespace
}  // namespace cuslice
