// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "tests/policy/allocator/test_backing.h"

namespace cuslice {

// A GPU's memory and its work, made up: addresses that nobody touches, and a clock of what the GPU has come past.
struct MadeUpMemory {
    uint64_t limit = 64ull << 30;    // what the budget allows
    uint64_t physical = 1ull << 46;  // what the driver has
    uint64_t unaligned = 0;          // added to every address
    bool capturing = false;
    int sync_error = 0;
    int failure = 0;                  // the driver's answer to whoever asks for a segment
    bool takes_nothing_back = false;  // the driver
    bool no_fences = false;
    bool instant = true;  // the GPU is always done
    bool keep_marked = false;
    std::atomic<bool> wanted{false};  // somebody else needs what is idle
    TestAllocator* asked = nullptr;   // for its statistics, whenever they have changed
    Statistics last;

    uint64_t held = 0, peak = 0, next = 1ull << 40;
    unsigned asked_for = 0, takes = 0, attempts = 0, returns = 0, fences = 0, quiesces = 0, threads = 0, changes = 0;
    std::map<uint64_t, uint64_t> live;
    std::set<Fence> pending;
    std::set<uint64_t> forgotten;
    std::mutex mutex;

    BackingTable backing() {
        BackingTable b;
        b.self = this;
        b.take = [](void* self, uint64_t bytes, AllocationError* denied) { return of(self).take(bytes, denied); };
        b.give_back = [](void* self, uint64_t address, uint64_t bytes) { return of(self).give_back(address, bytes); };
        b.room = [](void* self) {
            std::lock_guard lock(of(self).mutex);
            return of(self).limit - of(self).held;
        };
        b.quiesce = [](void* self, uint64_t, bool) {
            MadeUpMemory& m = of(self);
            std::lock_guard lock(m.mutex);
            if (m.capturing)
                return kNotNow;
            m.quiesces++;
            m.pending.clear();
            return m.sync_error;
        };
        b.in_context = [](void*) { return 0; };
        b.fence = [](void* self, uint64_t) -> Fence {
            MadeUpMemory& m = of(self);
            std::lock_guard lock(m.mutex);
            if (m.capturing || m.no_fences)
                return 0;
            const Fence fence = ++m.fences;
            if (!m.instant)
                m.pending.insert(fence);
            return fence;
        };
        b.past = [](void* self, uint64_t, Fence* fence) {
            MadeUpMemory& m = of(self);
            std::lock_guard lock(m.mutex);
            *fence = 0;
            if (m.capturing || m.no_fences)
                return false;
            m.fences++;
            if (m.instant)
                return true;
            *fence = m.fences;
            m.pending.insert(*fence);
            return false;
        };
        b.passed = [](void* self, Fence fence, bool wait) {
            MadeUpMemory& m = of(self);
            std::lock_guard lock(m.mutex);
            if (m.capturing)
                return false;
            if (wait)
                m.pending.erase(fence);
            return m.pending.count(fence) == 0;
        };
        b.drop_fence = [](void* self, Fence fence) { of(self).pending.erase(fence); };
        b.capturing = [](void* self) { return of(self).capturing; };
        b.wanted = [](void* self) { return of(self).wanted.exchange(false); };
        b.forget = [](void* self, uint64_t address) {
            of(self).forgotten.insert(address);
            return !of(self).keep_marked;
        };
        b.thread_began = [](void* self) { __atomic_add_fetch(&of(self).threads, 1, __ATOMIC_RELAXED); };
        b.changed = [](void* self) {
            MadeUpMemory& m = of(self);
            __atomic_add_fetch(&m.changes, 1, __ATOMIC_RELAXED);
            if (m.asked)
                m.last = m.asked->statistics();
        };
        return b;
    }

  private:
    static MadeUpMemory& of(void* self) { return *static_cast<MadeUpMemory*>(self); }
    uint64_t take(uint64_t bytes, AllocationError* denied) {
        std::lock_guard lock(mutex);
        asked_for++;
        if (bytes > limit - held) {
            denied->by = AllocationError::By::limit;
            denied->over_limit = {bytes, held, limit, 0};
            return 0;
        }
        if (failure) {
            denied->by = AllocationError::By::failure;
            denied->error = failure;
            return 0;
        }
        if (bytes > physical - held) {
            denied->by = AllocationError::By::driver;
            denied->error = kOutOfMemory;
            return 0;
        }
        held += bytes;
        peak = held > peak ? held : peak;
        takes++;
        const uint64_t address = next + unaligned;
        next += bytes + (64 << 20);
        live[address] = bytes;
        return address;
    }
    bool give_back(uint64_t address, uint64_t bytes) {
        std::lock_guard lock(mutex);
        attempts++;
        if (takes_nothing_back)
            return false;
        if (live.at(address) != bytes)
            throw "given back with another size";
        live.erase(address);
        held -= bytes;
        returns++;
        return true;
    }
};

// A map is large, and never given back: one for all tests, as there is one in a process.
inline TestAllocator::Map& shared_map() {
    static TestAllocator::Map map;
    return map;
}

// An allocator on a made-up GPU, for one test. This thread's caches of it end with it.
struct Allocator {
    MadeUpMemory memory;
    TestAllocator& allocator = *new TestAllocator;  // threads may hold on to it
    AllocationError denied;
    int error = 0;

    explicit Allocator(TestAllocator::Options options = {}, uint64_t limit = 64ull << 30) {
        memory.limit = limit;
        allocator.open(memory.backing(), shared_map(), options);
    }
    ~Allocator() {
        allocator.close();
        TestAllocator::thread_ends();
        delete &allocator;
    }
    uint64_t allocate(uint64_t bytes) { return allocator.allocate(bytes, &denied); }
    TestAllocator::Freed free(uint64_t address) { return TestAllocator::free(shared_map(), address, &error); }
    static bool holds(uint64_t address, uint64_t bytes) { return shared_map().holds(address, bytes); }
    TestAllocator::Found find(uint64_t address) { return TestAllocator::find(shared_map(), address); }
};

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;
constexpr TestAllocator::Options kDeferred{TestAllocator::Reuse::deferred, false};

}  // namespace cuslice
