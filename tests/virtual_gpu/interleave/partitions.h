// SPDX-License-Identifier: Apache-2.0
// A process whose GPU is split, on a made-up driver, and threads that meet in the contexts of its partitions.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "tests/interleave/explore.h"
#include "tests/virtual_gpu/interleave/made_up_primaries.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice::tests {

/// Three virtual GPUs: two partitions of GPU 0, and all of GPU 1. Each run leaves them without a context.
struct Partitions {
    using Bodies = std::vector<Schedule::Body>;
    static constexpr int kCount = 3;
    static constexpr uint64_t kMiB = 1 << 20, kLimit = 32 * kMiB;  // bytes of each

    Partitions();
    ~Partitions();
    Partitions(const Partitions&) = delete;
    Partitions& operator=(const Partitions&) = delete;

    /// A thread of the program's, which begins and ends without a current context.
    Schedule::Body thread(std::function<void()> body);

    // As hooks do.
    /// Current then, in this thread.
    CUcontext create(int partition);
    /// The same, and current nowhere.
    CUcontext create_aside(int partition);
    /// False if it has ended.
    bool destroy(CUcontext context);
    /// To the current one.
    CUcontext attach();
    /// Gives up a use of the current one.
    bool detach(CUcontext context);
    CUcontext retain(int partition);
    void release(int partition);
    void reset(int partition);
    /// In the current context; 0: it is refused.
    uint64_t allocate(uint64_t bytes);
    void free(uint64_t address);

    static bool push(CUcontext context);
    static CUcontext pop();
    static CUcontext current();
    /// -1: there is none, or it has ended.
    static int partition_of(CUcontext context);
    static int current_partition();
    /// It is this thread's current context, and on this partition.
    void expect_current(CUcontext context, int partition) {
        expect(current() == context);
        expect(current_partition() == partition);
    }

    /// Is current for a while.
    void use(CUcontext context, int partition) {
        expect(push(context));
        expect_current(context, partition);
        expect(pop() == context);
    }

    CUstream make_stream();
    void destroy_stream(CUstream stream);
    static CUcontext context_of(CUstream stream);

    void expect(bool right) {
        if (!right)
            good = false;
    }
    /// Nothing was wrong, and nothing is left.
    void check();
    /// Bytes that are charged to all.
    static uint64_t charged();

    MadeUpGpu driver;
    MadeUpPrimaries primaries;
    std::atomic<bool> good{true};

  private:
    using EndOfContext = CUresult (*)(CUcontext);
    bool end(CUcontext context, EndOfContext call);
};

}  // namespace cuslice::tests
