// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/handles.h"
#include "tests/catch.h"

#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

using namespace cuslice::fake;

namespace {

struct Thing {
    int number = 0;
};
using Things = HandleTable<Thing, struct Opaque*, HandleKind::Event>;

// A table lives as long as its process, as the driver's do.
Things& new_table() {
    static auto& all = *new std::vector<Things*>;
    return *all.emplace_back(new Things);
}

}  // namespace

TEST_CASE("handles are found while they live and never after") {
    Things& things = new_table();
    std::set<Opaque*> ever;
    for (int i = 0; i < 10000; i++) {
        const auto [handle, thing] = things.create(Thing{i});
        REQUIRE(ever.insert(handle).second);
        REQUIRE(things.find(handle) == thing);
        REQUIRE(thing->number == i);
        if (i % 3 != 0)
            continue;
        REQUIRE(things.destroy(handle));
        REQUIRE(things.find(handle) == nullptr);
        REQUIRE_FALSE(things.destroy(handle));
    }
    size_t live = 0;
    things.each([&](Opaque* handle, Thing& thing) {
        live++;
        CHECK(things.find(handle) == &thing);
    });
    CHECK(live == 10000 - 3334);
}

TEST_CASE("numbers that are no handles are not found") {
    Things& things = new_table();
    const auto bits = reinterpret_cast<uint64_t>(things.create().first);
    for (const uint64_t change : {1ULL, 8ULL, 16ULL, 1ULL << 28, 1ULL << 48, 1ULL << 60}) {
        CHECK(things.find(reinterpret_cast<Opaque*>(bits ^ change)) == nullptr);
    }
    CHECK(bits >> 48 != 0);  // not an address: touching it faults
}

TEST_CASE("threads create and destroy at once") {
    Things& things = new_table();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 5000; i++) {
                const auto handle = things.create(Thing{t}).first;
                const Thing* found = things.find(handle);
                if (found == nullptr || found->number != t || !things.destroy(handle))
                    std::abort();
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    SUCCEED();
}
