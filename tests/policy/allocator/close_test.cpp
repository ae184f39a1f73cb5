// SPDX-License-Identifier: Apache-2.0
// The end of an allocator's context while a thread is in there, on another's account: what that thread has in its hands
// is nobody's any more, and must not come back.
#include <set>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace cuslice {
namespace {

/// Its context ends, and it is another one's, when the GPU is asked next.
struct Ends {
    explicit Ends(TestAllocator::Options how) : options(how), a(how) {
        a.allocator.close();
        open();
    }
    void open() {
        BackingTable backing = a.memory.backing();
        ends = this;
        passed = backing.passed;
        backing.passed = [](void* self, Fence fence, bool wait) {
            ends->end_if_armed();
            return ends->passed(self, fence, wait) || ends->over;
        };
        end_in_questions(backing);
        a.memory.live.clear();
        a.memory.held = 0;
        a.memory.next = 1ull << 40;  // the same addresses as before
        a.allocator.open(backing, shared_map(), options);
    }
    // Not there, where the test is laid over what was before.
    template <typename B>
    void end_in_questions(B& backing) {
        if constexpr (requires { backing.past; }) {
            past = backing.past;
            quiesce = backing.quiesce;
            backing.past = [](void* self, uint64_t address, Fence* fence) {
                ends->end_if_armed();
                return ends->past(self, address, fence) || ends->over;
            };
            backing.quiesce = [](void* self, uint64_t address, bool for_program) {
                if (!for_program)
                    ends->end_if_armed();
                return ends->quiesce(self, address, for_program);
            };
        }
    }
    void end_if_armed() {
        if (!armed)
            return;
        armed = false;
        over = true;
        a.allocator.close();
        open();
        for (int i = 0; i < 100; i++)
            mine.insert(a.allocate(bytes));
        REQUIRE(mine.size() == 100);
    }
    /// Checks that the allocator hands out no address that is still in use.
    void check() {
        REQUIRE(over);
        const Statistics now = a.allocator.statistics();
        CHECK(now.allocated.current <= now.reserved.current);
        for (int i = 0; i < 1000; i++) {
            const uint64_t address = a.allocate(bytes);
            REQUIRE(address);
            CHECK(mine.insert(address).second);
        }
        for (const uint64_t address : mine)
            CHECK(a.free(address) == TestAllocator::Freed::done);
    }

    static inline Ends* ends = nullptr;
    TestAllocator::Options options;
    Allocator a;
    bool (*passed)(void*, Fence, bool) = nullptr;
    bool (*past)(void*, uint64_t, Fence*) = nullptr;
    int (*quiesce)(void*, uint64_t, bool) = nullptr;
    bool armed = false, over = false;
    uint64_t bytes = 0;
    std::set<uint64_t> mine;
};

TEST_CASE("what a thread that trims has in its hands when the context ends doesn't come back") {
    Ends scene(kDeferred);
    scene.bytes = GENERATE(512u, 40'000u, 300'000u, 5'000'000u);
    const bool waits = GENERATE(true, false);
    CAPTURE(scene.bytes, waits);
    std::set<uint64_t> old;
    for (int i = 0; i < 300; i++)
        old.insert(scene.a.allocate(scene.bytes));
    scene.a.memory.instant = false;
    for (const uint64_t address : old)
        scene.a.free(address);
    scene.a.memory.instant = true;
    scene.armed = true;
    if (waits)
        scene.a.allocator.trim(~0ull);
    else
        scene.a.allocator.help_out();
    scene.check();
}

TEST_CASE("what was deferred during a capture doesn't come back after its context has ended") {
    Ends scene({});
    scene.bytes = GENERATE(512u, 40'000u, 300'000u, 5'000'000u);
    CAPTURE(scene.bytes);
    std::set<uint64_t> old;
    for (int i = 0; i < 300; i++)
        old.insert(scene.a.allocate(scene.bytes));
    scene.a.memory.capturing = true;
    for (const uint64_t address : old)
        scene.a.free(address);
    scene.a.memory.capturing = false;
    scene.armed = true;
    scene.a.allocator.trim(~0ull);
    scene.check();
}

}  // namespace
}  // namespace cuslice
