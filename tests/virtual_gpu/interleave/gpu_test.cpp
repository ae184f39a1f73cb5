// SPDX-License-Identifier: Apache-2.0
// Threads that meet in what is charged to a GPU, and in what is known of memory: nothing passes the limit, and nothing
// is lost.
#include <array>

#include "tests/virtual_gpu/interleave/scene.h"
#include "virtual_gpu/cache/publisher.h"
#include "virtual_gpu/gpu/driver_steps.h"
#include "virtual_gpu/gpu/unlisted_memory.h"
#include "virtual_gpu/split/handle_registry.h"

namespace cuslice::tests {
namespace {

// A thread frees memory of the driver's while another gets its address, as there is room for one of them.
struct AddressComesAgain : TwoContexts {
    Bodies bodies() {
        const uint64_t held = allocate_directly(kMost);
        return {thread(one, [this, held] { free_directly(held); }),
                thread(one,
                       [this] {
                           for (int i = 0; i < 2; i++)
                               take_and_free();
                       }),
                thread(other, [this] { take_and_free(); })};
    }
    void take_and_free() {
        if (const uint64_t address = allocate_directly(kMost))
            free_directly(address);
    }
    static constexpr uint64_t kMost = 40 * kMiB;
};

// The program lowers its limit while a thread reserves and another measures: once it is lowered it holds.
struct LoweredLimit : Scene {
    Bodies bodies() {
        free(allocate(cache_of(one), 20 * kMiB));
        return {thread(one,
                       [this] {
                           lower_limit(gpu, kHeadroom + 8 * kMiB);
                           lowered = true;
                       }),
                thread(one,
                       [this] {
                           for (int i = 0; i < 3; i++) {
                               const bool was_lowered = lowered;
                               if (!gpu.reserve(20 * kMiB, nullptr))
                                   continue;
                               expect(!was_lowered);
                               gpu.budget().roll_back(20 * kMiB);
                           }
                       }),
                thread(one, [this] { gpu.refresh(); })};
    }
    void check() {
        REQUIRE_FALSE(gpu.reserve(20 * kMiB, nullptr));
        lower_limit(gpu, ~0ull);
        REQUIRE(gpu.room() == kRoom - gpu.budget().used());
        Scene::check();
    }
    std::atomic<bool> lowered{false};
};

// The driver's footprint is read while it changes, and while a thread takes all that it leaves: none of that is counted
// twice, so that it always fits.
struct Footprint : Scene {
    Footprint() : Scene(Process::get().measured) {
        driver.take(kContext);
        if (!gpu.measured())
            DriverSteps(gpu).charge_unseen_context();
    }
    Bodies bodies() {
        return {thread(one,
                       [this] {
                           for (int i = 0; i < 2; i++) {
                               const uint64_t address = allocate_directly(kRoom - kContext - kMore);
                               expect(address != 0);
                               free_directly(address);
                           }
                       }),
                thread(one,
                       [this] {
                           for (int i = 0; i < 2; i++) {
                               gpu.refresh();
                               expect(gpu.driver_footprint() <= kContext + kMore);
                           }
                       }),
                thread(one, [this] {
                    driver.take(kMore);
                    gpu.refresh();
                    driver.take(-static_cast<int64_t>(kMore));
                    gpu.driver_gave_back();
                })};
    }
    static constexpr uint64_t kContext = 8 * kMiB, kMore = 4 * kMiB;
};

// The last handle of an allocation is released while its last mapping is undone: it ends once.
struct LastOfPhysicalMemory {
    static constexpr PhysicalMemory::Handle kHandle = 7;
    static constexpr uint64_t kBytes = 4 * kMiB, kAddress = 1ull << 41;

    LastOfPhysicalMemory() { made = memory.created(kHandle, kBytes, 0) && memory.mapped(kAddress, kBytes, kHandle); }
    Bodies bodies() {
        return {[this] {
                    released = true;
                    const PhysicalMemory::Change change = memory.release(kHandle);
                    memory.release_done(change, counted());
                },
                [this] {
                    unmapped = true;
                    PhysicalMemory::Unmapping gone;
                    memory.unmap(kAddress, kBytes, &gone);
                    memory.unmap_done(&gone, counted());
                },
                [this] {
                    uint64_t allocations = 0;
                    const uint64_t held = memory.held_on(0, &allocations);
                    expect(held == allocations * kBytes && allocations <= 1);
                }};
    }
    PhysicalMemory::OnFreed counted() {
        const auto count = [](void* self, int, uint64_t bytes, PhysicalMemory::Kept) {
            auto& situation = *static_cast<LastOfPhysicalMemory*>(self);
            situation.expect(situation.released && situation.unmapped);
            situation.freed += bytes;
        };
        return {count, this};
    }
    void check() {
        uint64_t allocations = 0;
        REQUIRE(made);
        REQUIRE(good);
        REQUIRE(freed == kBytes);
        REQUIRE(memory.held_on(0, &allocations) == 0);
        REQUIRE(allocations == 0);
    }
    PhysicalMemory& memory = gpu_state().physical_memory;
    void expect(bool right) {
        if (!right)
            good = false;
    }
    std::atomic<uint64_t> freed{0};
    std::atomic<bool> released{false}, unmapped{false}, good{true};
    bool made = false;
};

// A block of another process is opened in one thread and closed in another, as often.
struct OpenedAndClosed {
    static constexpr CUdeviceptr kBase = 1ull << 41, kBlock = kBase + kMiB;

    Bodies bodies() {
        const auto body = [this] {
            if (!blocks.opened(kBlock, kMiB, 4096))
                good = false;
            const uint64_t bytes = blocks.bytes_at(kBlock);
            const CUdeviceptr base = blocks.closed(kBlock);
            if (bytes != 4096 || base != kBase)
                good = false;
        };
        return {body, body, [this] {
                    const uint64_t bytes = blocks.bytes_at(kBlock);
                    if (bytes != 0 && bytes != 4096)
                        good = false;
                }};
    }
    void check() {
        REQUIRE(good);
        REQUIRE(blocks.bytes_at(kBlock) == 0);
        REQUIRE(blocks.closed(kBlock) == kBlock);
    }
    IpcBlocks& blocks = Process::get().caches.ipc_blocks();
    std::atomic<bool> good{true};
};

// A block is exported while its context ends: nothing is noted of whoever has the address next.
struct ExportedAsItEnds : TwoContexts {
    Bodies bodies() {
        block = allocate(cache_of(other), kMiB);
        const ContextAllocator::Found found = ContextAllocator::find(caches.map(), block);
        return {thread(one, [this, found] { caches.exported(found); }), thread(other, [this] { end(other); })};
    }
    void check() {
        REQUIRE(caches.block_attributes().forget(block));
        Scene::check();
    }
    uint64_t block = 0;
};

// Two threads ask for a block's number, and one of them exports it: the number is one, and the export is known.
struct Numbered : Scene {
    Bodies bodies() {
        block = allocate(cache_of(one), kMiB);
        const ContextAllocator::Found found = ContextAllocator::find(caches.map(), block);
        return {thread(one, [this] { first = number(); }), thread(one, [this, found] {
                    expect(caches.exported(found));
                    second = number();
                })};
    }
    uint64_t number() {
        return caches.block_attributes().buffer_id(caches.map(), block, gpu_state().contexts.known_id(one));
    }
    void check() {
        REQUIRE(first != 0);
        REQUIRE(first == second);
        REQUIRE_FALSE(caches.block_attributes().forget(block));
        free(block);
        Scene::check();
    }
    uint64_t block = 0, first = 0, second = 0;
};

// Memory is released that another process keeps, while a thread asks whether NVML's figure may lack any: from then on
// it does.
struct KeptByOthers {
    Bodies bodies() {
        return {[this] {
                    const uint64_t before = memory.begin(0);
                    begun = true;
                    {
                        const LockGuard lock(mutex);
                        memory.keep(kBytes, budget, before);
                    }
                    memory.end();
                },
                [this] {
                    const bool was_begun = begun;
                    lacked = memory.any() || !was_begun;
                }};
    }
    void check() {
        REQUIRE(lacked);
        REQUIRE(memory.bytes() == kBytes);
    }
    static constexpr uint64_t kBytes = 4 * kMiB;
    UnlistedMemory memory;
    Budget budget;
    Mutex mutex{LockRank::driver_footprint};
    std::atomic<bool> begun{false};
    bool lacked = false;
};

// A process's file of figures can't be made, while a thread asks for the reason: there is none yet, or all of it.
struct Unpublished {
    Bodies bodies() {
        return {[this] { publisher.open("/proc/cuslice"); },
                [this] {
                    first = publisher.failure();
                    whole = !first || first->text[0] != '\0';
                }};
    }
    void check() {
        const stats::LedgerError* const later = publisher.failure();
        const stats::LedgerError* const told = first ? first : later;
        REQUIRE(!(first && later));
        REQUIRE(told);
        REQUIRE(whole);
    }
    Publisher publisher;
    const stats::LedgerError* first = nullptr;
    bool whole = false;
};

// Two partitions use a pool that is nobody's yet: it is one's, and both know whose.
struct Claimed {
    Claimed() { good = handle_registry().add(this, HandleKind::pool, HandleOwner::kUnclaimed, 0); }
    ~Claimed() { handle_registry().remove(this, HandleKind::pool); }
    Claimed(const Claimed&) = delete;
    Claimed& operator=(const Claimed&) = delete;

    Bodies bodies() {
        const auto body = [this](int device) {
            owners[static_cast<size_t>(device)] = handle_registry().claim(this, device);
        };
        return {[body] { body(0); }, [body] { body(1); }};
    }
    void check() {
        REQUIRE(good);
        REQUIRE(owners[0].known);
        REQUIRE(owners[0].device == owners[1].device);
        REQUIRE_FALSE(handle_registry().find(this, HandleKind::pool).is_unclaimed());
    }
    std::array<HandleOwner, 2> owners;
    bool good = false;
};

}  // namespace

TEST_CASE("interleaved: memory is freed while other threads get its address") { explore<AddressComesAgain>(); }
TEST_CASE("interleaved: the program lowers its limit beside reservations and measurements") { explore<LoweredLimit>(); }
TEST_CASE("interleaved: the driver's footprint is read beside allocations that just fit") { explore<Footprint>(); }
TEST_CASE("interleaved: the last handle and the last mapping of memory go at once") { explore<LastOfPhysicalMemory>(); }
TEST_CASE("interleaved: another process's block is opened and closed in two threads") { explore<OpenedAndClosed>(); }
TEST_CASE("interleaved: a block is exported while its context ends") { explore<ExportedAsItEnds>(); }
TEST_CASE("interleaved: two threads ask for a block's number and one exports it") { explore<Numbered>(); }
TEST_CASE("interleaved: memory that others keep is released as a thread asks whether NVML lacks any") {
    explore<KeptByOthers>();
}
TEST_CASE("interleaved: the reason for which no figures are published is asked for as it is found") {
    explore<Unpublished>();
}
TEST_CASE("interleaved: two partitions use a pool that is nobody's yet") { explore<Claimed>(); }

}  // namespace cuslice::tests
