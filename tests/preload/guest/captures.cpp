// SPDX-License-Identifier: Apache-2.0
// Streams that are captured while other threads allocate and free.
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/guest/guest.h"

namespace guest {
namespace {

struct Wrong {
    std::atomic<unsigned> captures{0}, frees{0}, allocations{0};
};

// A capture of another thread's forbids what this one does, unless that is global and this thread's mode is too.
void allow_captures(Program& p, CUstreamCaptureMode of_others) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (of_others == CU_STREAM_CAPTURE_MODE_GLOBAL)
        exchange_mode(p, &mode);
}

// Holds some blocks of up to `largest` bytes at a time, and exchanges them for others.
struct Blocks {
    Program& p;
    size_t largest;
    Wrong& wrong;
    std::mt19937 random{1};
    CUdeviceptr held[6] = {};

    void exchange_one() {
        CUdeviceptr& block = held[random() % 6];
        if (block == 0) {
            wrong.allocations += p.driver.cuMemAlloc_v2(&block, 1 + random() % largest) != CUDA_SUCCESS;
        } else {
            wrong.frees += p.driver.cuMemFree_v2(block) != CUDA_SUCCESS;
            block = 0;
        }
    }
    void free_all() {
        for (CUdeviceptr& block : held) {
            if (block != 0)
                wrong.frees += p.driver.cuMemFree_v2(block) != CUDA_SUCCESS;
            block = 0;
        }
    }
};

// In a stream of its own each time, or in the thread's default stream.
void capture(Program& p, CUstreamCaptureMode mode, bool per_thread, Wrong& wrong) {
    CUstream stream = CU_STREAM_PER_THREAD;
    CUgraph graph = nullptr;
    if (!per_thread && p.driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
        wrong.captures++;
        return;
    }
    const bool begun = p.driver.cuStreamBeginCapture_v2(stream, mode) == CUDA_SUCCESS;
    const bool ended = begun && p.driver.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS;
    wrong.captures += !ended;
    if (graph != nullptr)
        p.driver.cuGraphDestroy(graph);
    if (!per_thread)
        p.driver.cuStreamDestroy_v2(stream);
}

}  // namespace

void add_capture_commands(Commands& commands) {
    // captures TIMES relaxed|local|global own|perthread LARGEST [CONTEXT]: one thread captures so often, in CONTEXT if
    // it is named, while two others allocate blocks of up to LARGEST bytes and free them. How many captures, frees and
    // allocations went wrong.
    commands["captures"] = [](Program& p, const Words& w) {
        Wrong wrong;
        std::atomic<bool> over{false};
        const CUstreamCaptureMode mode = mode_of(w.at(1));
        const CUcontext context = w.size() > 4 ? p.contexts.at(w[4]) : p.current;
        std::vector<std::thread> workers;
        for (int i = 0; i < 2; ++i)
            workers.emplace_back([&] {
                Blocks blocks{p, number(w.at(3)), wrong};
                p.driver.cuCtxSetCurrent(p.current);
                allow_captures(p, mode);
                while (!over)
                    blocks.exchange_one();
                blocks.free_all();
            });
        std::thread captures([&] {
            p.driver.cuCtxSetCurrent(context);
            for (size_t i = 0; i < number(w.at(0)); ++i)
                capture(p, mode, w.at(2) == "perthread", wrong);
        });
        captures.join();
        over = true;
        for (std::thread& worker : workers)
            worker.join();
        return answer(CUDA_SUCCESS, wrong.captures.load(), wrong.frees.load(), wrong.allocations.load());
    };
    // exchange TIMES LARGEST MODE: allocates blocks of up to LARGEST bytes and frees them, so often, while streams may
    // be captured in this mode. How many frees and allocations went wrong.
    commands["exchange"] = [](Program& p, const Words& w) {
        Wrong wrong;
        std::thread worker([&] {
            Blocks blocks{p, number(w.at(1)), wrong};
            p.driver.cuCtxSetCurrent(p.current);
            allow_captures(p, mode_of(w.at(2)));
            for (size_t i = 0; i < number(w.at(0)); ++i)
                blocks.exchange_one();
            blocks.free_all();
        });
        worker.join();
        return answer(CUDA_SUCCESS, wrong.frees.load(), wrong.allocations.load());
    };
}

}  // namespace guest
