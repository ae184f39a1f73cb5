// SPDX-License-Identifier: Apache-2.0
// A process with contexts on a made-up GPU, and threads that meet in them.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "tests/interleave/explore.h"
#include "tests/virtual_gpu/interleave/made_up_gpu.h"
#include "virtual_gpu/cache/caches.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice::tests {

inline constexpr uint64_t kMiB = 1 << 20, kHeadroom = 16 * kMiB, kLimit = 64 * kMiB;
/// Bytes that can be had within the limit, beside what is kept free.
inline constexpr uint64_t kRoom = kLimit - kHeadroom;

/// State of a process that stays for all runs, as threads and locks hold on to it: each run leaves it empty.
struct Process {
    Caches caches;
    PhysicalGpu physical[3];
    VirtualGpu strict, deferred, measured;  // the last one's footprint of the driver is read

    static Process& get();

  private:
    Process();
};

using Bodies = std::vector<Schedule::Body>;

/// A GPU with a context, `one`: the process's only one, where nothing begins `other`.
struct Scene {
    using Freed = ContextAllocator::Freed;
    explicit Scene(VirtualGpu& on, MadeUpGpu::Modes modes = MadeUpGpu::Modes::none);
    explicit Scene(FreeMode mode = FreeMode::deferred, MadeUpGpu::Modes modes = MadeUpGpu::Modes::none)
        : Scene(mode == FreeMode::strict ? Process::get().strict : Process::get().deferred, modes) {}
    ~Scene();
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;

    /// A thread of the program's with its current context, and the end of that thread.
    static Schedule::Body thread(CUcontext current, std::function<void()> body);

    /// As hooks do.
    Contexts::Id begin(CUcontext context);
    void end(CUcontext context);
    void begin_capture(CUstream stream);
    void end_capture(CUstream stream);

    ContextAllocator& cache_of(CUcontext context);
    /// A block of the program's; 0: it is refused.
    uint64_t allocate(ContextAllocator& of, uint64_t bytes);
    void free(uint64_t block);
    /// The same of memory of the driver's, in this thread's context.
    uint64_t allocate_directly(uint64_t bytes);
    void free_directly(uint64_t address);
    /// Work of the context's touches a block, which is then freed.
    void use_and_free(CUcontext context, uint64_t block, uint64_t bytes) {
        driver.launch(context, block, bytes);
        free(block);
    }

    void expect(bool right) {
        if (!right)
            good = false;
    }
    /// Nothing was wrong, and what is charged is what is in use: once nobody has a block what the driver has by itself.
    void check();

    static constexpr uintptr_t kOne = 1, kOther = 2;
    const CUcontext one = context(kOne), other = context(kOther);
    Process& process = Process::get();
    Caches& caches = process.caches;
    VirtualGpu& gpu;
    MadeUpGpu driver;
    std::atomic<bool> good{true};
};

struct TwoContexts : Scene {
    explicit TwoContexts(FreeMode mode = FreeMode::deferred) : Scene(mode) { begin(other); }
};

}  // namespace cuslice::tests
