// SPDX-License-Identifier: Apache-2.0
// Attributes noted for blocks: numbers that no other allocation has, and whether others may hold the memory. A note
// for which there is no memory leaves nothing behind.
#include "virtual_gpu/cache/block_attributes.h"

#include <memory>
#include <set>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/policy/allocator/made_up_memory.h"
#include "tests/policy/rounds.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

struct Scene {
    uint64_t block(uint64_t bytes = 4096) {
        const uint64_t address = memory.allocate(bytes);
        REQUIRE(address);
        return address;
    }
    uint64_t id(uint64_t block, uint16_t context = 1) { return attributes->buffer_id(shared_map(), block, context); }
    bool exported(uint64_t block, uint16_t context = 1) { return attributes->exported(shared_map(), block, context); }

    Allocator memory;
    std::unique_ptr<BlockAttributes> attributes = std::make_unique<BlockAttributes>();
};

}  // namespace

TEST_CASE("what there is no memory to note is not noted, and can be noted later") {
    Scene scene;
    const uint64_t block = scene.block();
    {
        const NoMemory none;
        CHECK(scene.id(block) == 0);
        CHECK_FALSE(scene.exported(block));
    }
    CHECK(scene.attributes->forget(block));
    CHECK(scene.id(block) != 0);
    CHECK(scene.exported(block));
    CHECK_FALSE(scene.attributes->forget(block));
}

TEST_CASE("of an address at which no block begins nothing is noted") {
    Scene scene;
    const uint64_t block = scene.block();
    const uint64_t none = GENERATE_COPY(block + 512, uint64_t{1} << 30);
    CHECK(scene.id(none) == 0);
    CHECK_FALSE(scene.exported(none));
    CHECK(scene.attributes->forget(none));
    scene.memory.free(block);
    CHECK(scene.id(block) == 0);
    CHECK(scene.attributes->forget(block));
}

TEST_CASE("a block's number is its own as long as it lives, and no other block's afterwards") {
    Scene scene;
    const uint64_t small = scene.block(), large = scene.block(8 << 20);
    const uint64_t first = scene.id(small), second = scene.id(large);
    CHECK(first != 0);
    CHECK(second != 0);
    CHECK(first != second);
    CHECK(scene.id(small) == first);
    CHECK(scene.id(large) == second);
    CHECK(scene.attributes->forget(small));
    const uint64_t again = scene.id(small);  // another block at the same address
    CHECK(again != 0);
    CHECK(again != first);
    CHECK(again != second);
}

TEST_CASE("a block whose memory others may hold says so once it is free, whatever else was noted of it") {
    Scene scene;
    const uint64_t plain = scene.block(), before = scene.block(), after = scene.block();
    const uint64_t number = scene.id(before);
    CHECK(scene.exported(before));
    CHECK(scene.id(before) == number);
    CHECK(scene.exported(after));
    CHECK(scene.exported(after));
    CHECK(scene.id(after) != 0);
    CHECK(scene.id(plain) != 0);
    CHECK(scene.attributes->forget(plain));
    CHECK_FALSE(scene.attributes->forget(before));
    CHECK_FALSE(scene.attributes->forget(after));
    CHECK(scene.attributes->forget(after));  // forgotten
}

TEST_CASE("a context's end takes the attributes of its blocks, and no other") {
    Scene scene;
    const uint64_t one = scene.block(), other = scene.block();
    CHECK(scene.exported(one, 1));
    CHECK(scene.exported(other, 2));
    const uint64_t number = scene.id(other, 2);
    scene.attributes->context_ended(1);
    CHECK(scene.attributes->forget(one));
    CHECK(scene.id(other, 2) == number);
    CHECK_FALSE(scene.attributes->forget(other));
}

TEST_CASE("an allocator asks after a noted block when it is freed, and after no other") {
    Scene scene;
    const uint64_t noted = scene.block(), plain = scene.block();
    REQUIRE(scene.id(noted));
    scene.memory.free(plain);
    CHECK(scene.memory.memory.forgotten.empty());
    scene.memory.free(noted);
    CHECK(scene.memory.memory.forgotten == std::set<uint64_t>{noted});
}

TEST_CASE("threads that ask for numbers get different ones for different blocks") {
    Scene scene;
    constexpr unsigned kThreads = 4, kBlocks = 200;
    std::vector<std::vector<uint64_t>> blocks(kThreads), numbers(kThreads);
    for (auto& own : blocks)
        for (unsigned i = 0; i < kBlocks; i++)
            own.push_back(scene.block());
    const uint64_t shared = scene.block();
    const uint64_t number = scene.id(shared);
    std::atomic<unsigned> differs{0};
    on_threads(kThreads, [&](unsigned t) {
        for (const uint64_t block : blocks[t]) {
            numbers[t].push_back(scene.id(block));
            scene.exported(block);
            if (scene.id(shared) != number)
                differs++;
        }
    });
    std::set<uint64_t> all{0, number};
    for (const auto& own : numbers)
        all.insert(own.begin(), own.end());
    CHECK(all.size() == kThreads * kBlocks + 2);
    CHECK(differs == 0);
    for (const uint64_t block : blocks[0])
        CHECK_FALSE(scene.attributes->forget(block));
}
