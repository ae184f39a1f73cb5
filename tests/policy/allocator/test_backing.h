// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/allocator/caching_allocator.h"

namespace cuslice {

// CUresults that a made-up driver answers with: this part of the product knows no header of CUDA's.
constexpr int kOutOfMemory = 2, kIllegalAddress = 700, kLaunchFailed = 719, kStreamCaptureUnsupported = 900;

// A backing that tests put together of functions: see Backing. All of them are given `self`.
struct BackingTable {
    void* self = nullptr;
    uint64_t (*take)(void* self, uint64_t bytes, AllocationError* denied) = nullptr;
    bool (*give_back)(void* self, uint64_t address, uint64_t bytes) = nullptr;
    uint64_t (*room)(void* self) = nullptr;
    int (*quiesce)(void* self, uint64_t address, bool for_program) = nullptr;
    int (*in_context)(void* self) = nullptr;
    Fence (*fence)(void* self, uint64_t address) = nullptr;
    bool (*past)(void* self, uint64_t address, Fence* fence) = nullptr;
    bool (*passed)(void* self, Fence fence, bool wait) = nullptr;
    void (*drop_fence)(void* self, Fence fence) = nullptr;
    bool (*capturing)(void* self) = [](void*) { return false; };
    bool (*wanted)(void* self) = nullptr;
    bool (*forget)(void* self, uint64_t address) = nullptr;
    void (*thread_began)(void* self) = nullptr;
    void (*changed)(void* self) = [](void*) {};
};

// The one kind of backing that allocators of tests have, whatever is in its table.
struct TestBacking {
    BackingTable table;

    uint64_t take(uint64_t bytes, AllocationError* denied) { return table.take(table.self, bytes, denied); }
    bool give_back(uint64_t address, uint64_t bytes) { return table.give_back(table.self, address, bytes); }
    uint64_t room() { return table.room(table.self); }
    int quiesce(uint64_t address, bool for_program) { return table.quiesce(table.self, address, for_program); }
    int in_context() { return table.in_context(table.self); }
    Fence fence(uint64_t address) { return table.fence(table.self, address); }
    bool past(uint64_t address, Fence* fence) { return table.past(table.self, address, fence); }
    bool passed(Fence fence, bool wait) { return table.passed(table.self, fence, wait); }
    void drop_fence(Fence fence) { table.drop_fence(table.self, fence); }
    bool capturing() { return table.capturing(table.self); }
    bool wanted() { return table.wanted(table.self); }
    bool forget(uint64_t address) { return table.forget(table.self, address); }
    void thread_began() { table.thread_began(table.self); }
    void changed() { table.changed(table.self); }
};

extern template class CachingAllocator<TestBacking>;

// An allocator whose backing may be another one each time that it is opened.
class TestAllocator : private TestBacking, public CachingAllocator<TestBacking> {
  public:
    TestAllocator() : CachingAllocator(static_cast<TestBacking&>(*this)) {}
    void open(const BackingTable& backing, Map& map, const Options& options) {
        table = backing;
        CachingAllocator::open(map, options);
    }
};

}  // namespace cuslice
