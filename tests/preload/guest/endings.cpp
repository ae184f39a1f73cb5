// SPDX-License-Identifier: Apache-2.0
// Contexts that end while other threads of the program are at work in theirs.
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/guest/guest.h"

namespace guest {
namespace {

// Numbers of failures: calls that found no memory, and all others.
struct Wrong {
    std::atomic<unsigned> short_of_memory{0}, others{0};

    // True if it succeeded.
    bool count(CUresult result) {
        if (result != CUDA_SUCCESS)
            (result == CUDA_ERROR_OUT_OF_MEMORY ? short_of_memory : others)++;
        return result == CUDA_SUCCESS;
    }
    void count_other_than(const Program& p, CUcontext expected) {
        CUcontext now = nullptr;
        others += p.driver.cuCtxGetCurrent(&now) != CUDA_SUCCESS || now != expected;
    }
};

// A thread that works in its own context while others end theirs.
void pairs_until(Program& p, size_t largest, const std::atomic<bool>& over, Wrong& wrong) {
    std::mt19937 random(1);
    wrong.count(p.driver.cuCtxSetCurrent(p.current));
    while (!over) {
        CUdeviceptr block = 0;
        const bool made = wrong.count(p.driver.cuMemAlloc_v2(&block, 1 + random() % largest));
        wrong.count_other_than(p, p.current);
        if (made)
            wrong.count(p.driver.cuMemFree_v2(block));
    }
}

// Contexts of a thread's own, begun, used and ended so often, each with a block that ends with it.
void short_lives(Program& p, size_t times, CUdevice device, bool primary, Wrong& wrong) {
    const Driver& d = p.driver;
    for (size_t i = 0; i < times; ++i) {
        CUcontext context = nullptr;
        CUdeviceptr block = 0, left = 0;
        if (!wrong.count(primary ? d.cuDevicePrimaryCtxRetain(&context, device)
                                 : d.cuCtxCreate_v2(&context, 0, device)))
            continue;
        wrong.count(d.cuCtxSetCurrent(context));
        if (wrong.count(d.cuMemAlloc_v2(&block, 1 << 20)))
            wrong.count(d.cuMemFree_v2(block));
        wrong.count(d.cuMemAlloc_v2(&left, 30000));
        wrong.count_other_than(p, context);
        if (primary)
            wrong.count(d.cuCtxSetCurrent(nullptr));
        wrong.count(primary ? d.cuDevicePrimaryCtxRelease_v2(device) : d.cuCtxDestroy_v2(context));
    }
}

// How a context ends.
enum class End { destroy, release, reset };

// Contexts of a device, begun, used and ended so often. While it lives, each also works on a block of another thread's,
// so that whoever frees memory of that block's GPU has to wait for it.
void lives_of(Program& p, size_t times, CUdevice device, End how, CUdeviceptr others, Wrong& wrong) {
    const Driver& d = p.driver;
    for (size_t i = 0; i < times; ++i) {
        CUcontext context = nullptr;
        CUdeviceptr block = 0, left = 0;
        unsigned word = 0;
        const bool own = how == End::destroy;
        if (!wrong.count(own ? d.cuCtxCreate_v2(&context, 0, device) : d.cuDevicePrimaryCtxRetain(&context, device)))
            continue;
        wrong.count(d.cuCtxSetCurrent(context));
        if (wrong.count(d.cuMemAlloc_v2(&block, 1 << 20)))
            wrong.count(d.cuMemFree_v2(block));
        wrong.count(d.cuMemAlloc_v2(&left, 30000));
        wrong.count(d.cuMemcpyDtoH_v2(&word, others, sizeof word));
        wrong.count_other_than(p, context);
        if (own) {
            wrong.count(d.cuCtxDestroy_v2(context));
            continue;
        }
        wrong.count(d.cuCtxSetCurrent(nullptr));
        if (how == End::reset)
            wrong.count(d.cuDevicePrimaryCtxReset_v2(device));
        wrong.count(d.cuDevicePrimaryCtxRelease_v2(device));
    }
}

// A thread that looks at the memory of all, and needs more than there is: what others keep idle is given back for it.
void needs_until(Program& p, const std::atomic<bool>& over, Wrong& wrong) {
    wrong.count(p.driver.cuCtxSetCurrent(p.current));
    while (!over) {
        size_t free = 0, total = 0;
        CUdeviceptr block = 0;
        wrong.count(p.driver.cuMemGetInfo_v2(&free, &total));
        const CUresult result = p.driver.cuMemAlloc_v2(&block, total);
        if (result == CUDA_SUCCESS)
            wrong.others++;
        if (result != CUDA_ERROR_OUT_OF_MEMORY)
            wrong.count(result);
        wrong.count_other_than(p, p.current);
    }
}

End end_of(const std::string& how) {
    return how == "destroy" ? End::destroy : how == "release" ? End::release : End::reset;
}

}  // namespace

void add_ending_commands(Commands& commands) {
    // endings TIMES LARGEST: two threads allocate and free in the current context, while two others begin and end so
    // many contexts on the same device and on device 1; how many calls went wrong, and how many found no memory
    commands["endings"] = [](Program& p, const Words& w) {
        Wrong wrong;
        std::atomic<bool> over{false};
        std::vector<std::thread> workers, enders;
        for (int i = 0; i < 2; ++i)
            workers.emplace_back([&] { pairs_until(p, number(w.at(1)), over, wrong); });
        enders.emplace_back([&] { short_lives(p, number(w.at(0)), 0, false, wrong); });
        enders.emplace_back([&] { short_lives(p, number(w.at(0)), 1, true, wrong); });
        for (std::thread& thread : enders)
            thread.join();
        over = true;
        for (std::thread& thread : workers)
            thread.join();
        return answer(CUDA_SUCCESS, wrong.others.load(), wrong.short_of_memory.load());
    };
    // streams TIMES: a thread makes, captures and destroys so many streams, while two others allocate and free and a
    // third one needs more memory than there is; how many calls went wrong, and how many found no memory
    commands["streams"] = [](Program& p, const Words& w) {
        Wrong wrong;
        std::atomic<bool> over{false};
        std::vector<std::thread> workers;
        for (int i = 0; i < 2; ++i)
            workers.emplace_back([&] { pairs_until(p, 100000, over, wrong); });
        workers.emplace_back([&] { needs_until(p, over, wrong); });
        for (size_t i = 0; i < number(w.at(0)); ++i) {
            CUstream stream = nullptr;
            CUgraph graph = nullptr;
            if (!wrong.count(p.driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
                continue;
            wrong.count(p.driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
            // Every second one is destroyed while it is captured.
            if (i % 2 == 0 && wrong.count(p.driver.cuStreamEndCapture(stream, &graph)))
                wrong.count(p.driver.cuGraphDestroy(graph));
            wrong.count(p.driver.cuStreamDestroy_v2(stream));
        }
        over = true;
        for (std::thread& thread : workers)
            thread.join();
        return answer(CUDA_SUCCESS, wrong.others.load(), wrong.short_of_memory.load());
    };
    // visits TIMES destroy|release|reset: as `endings`, where what is done in the contexts that end can touch the
    // memory of the others, and a third thread needs more memory than there is
    commands["visits"] = [](Program& p, const Words& w) {
        Wrong wrong;
        std::atomic<bool> over{false};
        std::vector<std::thread> workers, enders;
        CUdeviceptr block = 0;
        wrong.count(p.driver.cuMemAlloc_v2(&block, 4096));
        const End how = end_of(w.at(1));
        for (int i = 0; i < 2; ++i)
            workers.emplace_back([&] { pairs_until(p, 100000, over, wrong); });
        workers.emplace_back([&] { needs_until(p, over, wrong); });
        enders.emplace_back([&] { lives_of(p, number(w.at(0)), 1, how, block, wrong); });
        enders.emplace_back([&] { lives_of(p, number(w.at(0)), 0, End::destroy, block, wrong); });
        for (std::thread& thread : enders)
            thread.join();
        over = true;
        for (std::thread& thread : workers)
            thread.join();
        wrong.count(p.driver.cuMemFree_v2(block));
        return answer(CUDA_SUCCESS, wrong.others.load(), wrong.short_of_memory.load());
    };
}

}  // namespace guest
