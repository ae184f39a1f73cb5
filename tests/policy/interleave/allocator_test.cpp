// SPDX-License-Identifier: Apache-2.0
// Threads that meet in one caching allocator, in any order.
#include <atomic>
#include <mutex>
#include <set>

#include "tests/interleave/explore.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace cuslice {
namespace {

using tests::explore;
using tests::Schedule;
using Freed = TestAllocator::Freed;
using Bodies = std::vector<Schedule::Body>;

constexpr uint64_t kSmall = 4096;

// Each thread gives back what it keeps at its end, as a thread's destructor does.
Schedule::Body thread(std::function<void()> body) {
    return [body = std::move(body)] {
        body();
        TestAllocator::thread_ends();
    };
}

// One allocator for all runs, as what it has taken of the kernel stays: each opens and closes it.
TestAllocator& the_allocator() {
    static TestAllocator& one = *new TestAllocator;
    return one;
}

struct Scene {
    explicit Scene(TestAllocator::Options options = {}, uint64_t limit = 64 * kMiB) {
        memory.limit = limit;
        the_allocator().open(memory.backing(), shared_map(), options);
    }
    ~Scene() {
        the_allocator().close();
        TestAllocator::thread_ends();
    }
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;

    uint64_t allocate(uint64_t bytes) {
        AllocationError denied;
        return the_allocator().allocate(bytes, &denied);
    }
    Freed free(uint64_t address) {
        int error = 0;
        return TestAllocator::free(shared_map(), address, &error);
    }
    /// All is free: nothing is counted as allocated, and all segments can be given back.
    void check_empty() {
        REQUIRE(the_allocator().statistics().allocated.current == 0);
        the_allocator().trim(~0ull);
        REQUIRE(memory.held == 0);
        REQUIRE(memory.live.empty());
    }

    void expect(bool right) {
        if (!right)
            good = false;
    }

    MadeUpMemory memory;
    std::atomic<bool> good{true};
};

// Blocks that are somebody's.
class Live {
  public:
    /// False: it is somebody's already, or none.
    bool add(uint64_t block) {
        const std::lock_guard lock(mutex_);
        return block && blocks_.insert(block).second;
    }
    void remove(uint64_t block) {
        const std::lock_guard lock(mutex_);
        blocks_.erase(block);
    }

  private:
    std::mutex mutex_;
    std::set<uint64_t> blocks_;
};

// Blocks of one size, or of several, by two threads that free their own.
template <uint64_t... kSizes>
struct TwoAllocate : Scene {
    TwoAllocate() = default;
    explicit TwoAllocate(TestAllocator::Options options) : Scene(options) {}
    Bodies bodies() {
        const auto body = [this] {
            std::vector<uint64_t> mine;
            for (const uint64_t bytes : {kSizes...}) {
                mine.push_back(allocate(bytes));
                expect(live.add(mine.back()));
            }
            for (const uint64_t block : mine) {
                live.remove(block);
                expect(free(block) == Freed::done);
            }
        };
        return {thread(body), thread(body)};
    }
    void check() {
        REQUIRE(good);
        check_empty();
    }
    Live live;
};
struct TwoAllocateSmall : TwoAllocate<kSmall, kSmall, kSmall> {};
struct TwoAllocateLarge : TwoAllocate<kMiB, kMiB, 5 * kMiB> {};
struct TwoAllocateDeferred : TwoAllocate<kSmall, kMiB, kSmall> {
    TwoAllocateDeferred() : TwoAllocate(kDeferred) {}
};

// Two threads free one block: one of them has freed it.
template <uint64_t kBytes>
struct FreedTwice : Scene {
    Bodies bodies() {
        block = allocate(kBytes);
        const auto body = [this] {
            const Freed freed = free(block);
            done += freed == Freed::done;
            wrong += freed == Freed::invalid || freed == Freed::not_ours;
        };
        return {thread(body), thread(body)};
    }
    void check() {
        REQUIRE(block != 0);
        REQUIRE(done == 1);
        REQUIRE(wrong == 1);
        check_empty();
    }
    uint64_t block = 0;
    std::atomic<int> done{0}, wrong{0};
};

// A thread allocates and frees while another gives back what is idle.
struct Trimmed : Scene {
    Bodies bodies() {
        return {thread([this] {
                    for (const uint64_t bytes : {kSmall, kMiB, kSmall}) {
                        const uint64_t block = allocate(bytes);
                        expect(block && free(block) == Freed::done);
                    }
                }),
                thread([this] {
                    the_allocator().trim(~0ull);
                    the_allocator().trim(kMiB);
                })};
    }
    void check() {
        REQUIRE(good);
        check_empty();
    }
};

// A thread takes blocks that it keeps while another takes them away from it, and allocates the same size.
struct TakenAway : Scene {
    Bodies bodies() {
        return {thread([this] {
                    const uint64_t one = allocate(kSmall), other = allocate(kSmall);
                    expect(free(one) == Freed::done && free(other) == Freed::done);
                    hold(4, [] {});
                }),
                thread([this] { hold(3, [] { the_allocator().trim(~0ull); }); })};
    }
    template <typename Before>
    void hold(int count, Before before) {
        std::vector<uint64_t> mine;
        for (int i = 0; i < count; i++) {
            before();
            mine.push_back(allocate(kSmall));
            expect(live.add(mine.back()));
        }
        for (const uint64_t block : mine) {
            live.remove(block);
            expect(free(block) == Freed::done);
        }
    }
    void check() {
        REQUIRE(good);
        check_empty();
    }
    Live live;
};

// At the limit: a thread needs what another one keeps, or frees.
struct AtTheLimit : Scene {
    AtTheLimit() : Scene({}, 8 * kMiB) {}
    Bodies bodies() {
        held = allocate(6 * kMiB);
        return {thread([this] { expect(free(held) == Freed::done); }), thread([this] {
                    const uint64_t block = allocate(5 * kMiB);
                    expect(!block || free(block) == Freed::done);
                }),
                thread([this] {
                    const uint64_t block = allocate(kSmall);
                    expect(!block || free(block) == Freed::done);
                })};
    }
    void check() {
        REQUIRE(held != 0);
        REQUIRE(good);
        REQUIRE(memory.peak <= 8 * kMiB);
        REQUIRE(allocate(8 * kMiB) != 0);  // nothing of it is lost
    }
    uint64_t held = 0;
};

// A thread ends with blocks in its caches while others take them away, and look.
struct EndsWhileTrimmed : Scene {
    Bodies bodies() {
        return {thread([this] {
                    const uint64_t one = allocate(kSmall), large = allocate(kMiB);
                    expect(one && large && free(one) == Freed::done && free(large) == Freed::done);
                }),
                thread([this] { the_allocator().trim(~0ull); }), thread([this] {
                    const Statistics seen = the_allocator().statistics();
                    expect(seen.allocated.current <= kSmall + kMiB);
                })};
    }
    void check() {
        REQUIRE(good);
        check_empty();
    }
};

// Blocks wait for the GPU in one thread while another asks for what has been passed.
struct Deferred : Scene {
    Deferred() : Scene(kDeferred) { memory.instant = false; }
    Bodies bodies() {
        one = allocate(kMiB);
        other = allocate(kMiB);
        return {thread([this] { expect(free(one) == Freed::done); }), thread([this] {
                    expect(free(other) == Freed::done);
                    the_allocator().trim(~0ull);
                }),
                thread([this] {
                    const uint64_t block = allocate(kMiB);
                    expect(block && free(block) == Freed::done);
                })};
    }
    void check() {
        REQUIRE(good);
        check_empty();
    }
    uint64_t one = 0, other = 0;
};

}  // namespace

TEST_CASE("interleaved: two threads allocate and free small blocks") { explore<TwoAllocateSmall>(); }
TEST_CASE("interleaved: two threads allocate and free large blocks") { explore<TwoAllocateLarge>(); }
TEST_CASE("interleaved: two threads allocate and free blocks that wait for the GPU") { explore<TwoAllocateDeferred>(); }
TEST_CASE("interleaved: of two threads that free one small block one has freed it") { explore<FreedTwice<kSmall>>(); }
TEST_CASE("interleaved: of two threads that free one large block one has freed it") { explore<FreedTwice<kMiB>>(); }
TEST_CASE("interleaved: of two threads that free one huge block one has freed it") { explore<FreedTwice<20 * kMiB>>(); }
TEST_CASE("interleaved: a thread allocates and frees while another gives back what is idle") { explore<Trimmed>(); }
TEST_CASE("interleaved: a thread takes blocks that it keeps while another takes them away") { explore<TakenAway>(); }
TEST_CASE("interleaved: a thread asks at the limit for what another frees, and nothing is lost") {
    explore<AtTheLimit>();
}
TEST_CASE("interleaved: a thread ends while others take its caches away, and look") { explore<EndsWhileTrimmed>(); }
TEST_CASE("interleaved: blocks wait for the GPU while others ask for what it has passed") { explore<Deferred>(); }

}  // namespace cuslice
