// SPDX-License-Identifier: Apache-2.0
// The caches of a process's contexts, on a driver that a test makes up.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/virtual_gpu/made_up_driver.h"
#include "virtual_gpu/cache/caches.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice::tests {

inline constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30, kHeadroom = 16 * kMiB;

inline Slice slice_of(AllocatorMode mode) {
    Slice made;
    made.limited = true;
    made.limit = kGiB;
    made.own_headroom = true;
    made.headroom = kHeadroom;
    made.allocator = mode;
    return made;
}

/// A GPU and its caches. Threads may hold on to them: they stay.
struct MadeUpProcess {
    Caches caches;
    PhysicalGpu physical;
    VirtualGpu gpu;

    static MadeUpProcess& make() {
        static auto* all = new std::vector<MadeUpProcess*>;  // at exit, too, something points to them
        return *all->emplace_back(new MadeUpProcess);
    }
};

/// Two contexts of a GPU, of which the first one is current in this thread.
struct CachesScene {
    explicit CachesScene(AllocatorMode mode = AllocatorMode::growth) {
        char name[] = "/tmp/cuslice-test-XXXXXX";
        folder = mkdtemp(name);
        GpuState& state = gpu_state();
        state.sharing.folder.assign(folder);
        state.reclaimer = &caches;
        state.start_nvml = [] { return false; };
        state.look_for_ended = [](VirtualGpu&) {};
        process.physical.open({}, 2 * kGiB);
        gpu.open(0, {}, process.physical, "made up", slice_of(mode));
        one = driver.make(context(1));
        other = driver.make(context(2));
        MadeUpDriver::stack() = {context(1)};
    }
    ~CachesScene() {
        for (const uintptr_t number : {1, 2, 3, 4})
            end(context(number));
        ContextAllocator::thread_ends();
        gpu_state().reclaimer = nullptr;
        gpu_state().sharing.folder.clear();
        std::filesystem::remove_all(folder);
    }
    /// As hooks do: cuslice forgets the context and what was in it.
    void end(CUcontext context) {
        caches.context_ended(context);
        const auto release = [](const Allocation& freed, void* of) {
            static_cast<VirtualGpu*>(of)->budget().release(freed.bytes);
        };
        if (const Contexts::Id id = gpu_state().contexts.known_id(context))
            gpu_state().allocations.erase_context(id, release, &gpu);
        driver.end(context);
    }
    ContextAllocator& of(Contexts::Id id) {
        ContextAllocator* allocator = caches.of(gpu, id);
        REQUIRE(allocator);
        return *allocator;
    }
    uint64_t take(ContextAllocator& allocator, uint64_t bytes) {
        const uint64_t address = allocator.allocate(bytes, &denied);
        REQUIRE(address);
        return address;
    }
    ContextAllocator::Freed free(uint64_t address) { return ContextAllocator::free(caches.map(), address, &error); }
    /// Nothing is charged, held, recorded or in flight.
    void check_nothing() {
        CHECK(gpu.budget().used() == 0);
        CHECK(gpu.budget().settled(gpu.budget().snapshot()));
        CHECK(driver.memory.empty());
        unsigned recorded = 0;
        gpu_state().allocations.for_each([](const Allocation&, void* count) { ++*static_cast<unsigned*>(count); },
                                         &recorded);
        CHECK(recorded == 0);
        CHECK(MadeUpDriver::stack() == std::vector<CUcontext>{context(1)});
    }

    MadeUpProcess& process = MadeUpProcess::make();
    Caches& caches = process.caches;
    VirtualGpu& gpu = process.gpu;
    MadeUpDriver driver;
    std::string folder;
    Contexts::Id one = 0, other = 0;
    AllocationError denied;
    int error = 0;
};

}  // namespace cuslice::tests
