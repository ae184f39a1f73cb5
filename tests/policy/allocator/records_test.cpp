// SPDX-License-Identifier: Apache-2.0
#include "policy/allocator/records.h"

#include <set>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"

using cuslice::Records;
using cuslice::tests::NoMemory;

namespace {

struct Record {
    Record* next = nullptr;
    int number = 77;
    char rest[1000] = {};
};

}  // namespace

TEST_CASE("without memory there is no record, none is counted, and later there is one") {
    Records<Record> records;
    {
        const NoMemory none;
        CHECK(records.take() == nullptr);
    }
    CHECK(records.memory() == 0);
    Record* const one = records.take();
    REQUIRE(one);
    const size_t had = records.memory();
    records.give_back(one);
    const NoMemory none;
    CHECK(records.take() == one);  // for what was given back no memory is needed
    CHECK(records.memory() == had);
}

TEST_CASE("a record is as new, though it was used before, and nobody else's") {
    Records<Record> records;
    std::set<Record*> all;
    for (int i = 0; i < 200; i++) {
        Record* const record = records.take();
        REQUIRE(record);
        CHECK(record->number == 77);
        CHECK(record->next == nullptr);
        record->number = i;
        CHECK(all.insert(record).second);
    }
    CHECK(records.memory() >= 200 * sizeof(Record));
    const size_t had = records.memory();
    for (Record* record : all)
        records.give_back(record);
    for (size_t i = 0; i < all.size(); i++) {
        Record* const record = records.take();
        CHECK(record->number == 77);
        CHECK(all.count(record) == 1);
    }
    CHECK(records.memory() == had);
}
