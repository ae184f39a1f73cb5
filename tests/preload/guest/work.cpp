// SPDX-License-Identifier: Apache-2.0
// Work that a GPU has been given and has not done, and streams that are being captured.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/preload/guest/guest.h"
#include "tests/preload/guest/refusal_check.h"

namespace guest {
namespace {

std::atomic<bool> let_go{false}, gave_up{false}, done{false};

// Until this program says so. What would wait for ever is to end all the same, and say that it did not get that far.
void hold(void*) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!let_go && !gave_up) {
        if (std::chrono::steady_clock::now() > end)
            gave_up = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

CUresult begin_newer(Program& p, CUstream stream, CUstreamCaptureMode mode) {
    void* found = nullptr;
    CUresult result = p.driver.cuGetProcAddress_v2("cuStreamBeginFakeRecapture", &found, 14000, 0, nullptr);
    if (result != CUDA_SUCCESS || !found)
        return CUDA_ERROR_NOT_FOUND;
    result = reinterpret_cast<CUresult (*)(CUstream, CUstreamCaptureMode)>(found)(stream, mode);
    if (result == CUDA_SUCCESS)
        capture_begins();
    return result;
}

}  // namespace

CUresult exchange_mode(Program& p, CUstreamCaptureMode* mode) {
    void* found = nullptr;
    const CUresult result =
        p.driver.cuGetProcAddress_v2("cuThreadExchangeStreamCaptureMode", &found, 10010, 0, nullptr);
    if (result != CUDA_SUCCESS || !found)
        return CUDA_ERROR_NOT_FOUND;
    return reinterpret_cast<CUresult (*)(CUstreamCaptureMode*)>(found)(mode);
}

CUstreamCaptureMode mode_of(const std::string& word) {
    return word == "relaxed" ? CU_STREAM_CAPTURE_MODE_RELAXED
           : word == "local" ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                             : CU_STREAM_CAPTURE_MODE_GLOBAL;
}

void add_work_commands(Commands& commands) {
    // hold STREAM: what comes after waits until `letgo`, which says whether it still does
    commands["hold"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuLaunchHostFunc(p.streams.at(w.at(0)), hold, nullptr));
    };
    commands["letgo"] = [](Program&, const Words&) {
        let_go = true;
        return answer(CUDA_SUCCESS, gave_up ? 0 : 1);
    };
    // work STREAM: some, and `worked` says whether it is done
    commands["work"] = [](Program& p, const Words& w) {
        done = false;
        return answer(p.driver.cuLaunchHostFunc(
            p.streams.at(w.at(0)), [](void*) { done = true; }, nullptr));
    };
    commands["worked"] = [](Program&, const Words&) { return answer(CUDA_SUCCESS, done ? 1 : 0); };
    // peer NAME: the current context may use that one's memory
    commands["peer"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuCtxEnablePeerAccess(p.contexts.at(w.at(0)), 0));
    };
    // begin STREAM global|local|relaxed [newer]: a capture, by a function that is newer than any known one
    commands["begin"] = [](Program& p, const Words& w) {
        const CUstream stream = p.streams.at(w.at(0));
        return answer(w.size() > 2 ? begin_newer(p, stream, mode_of(w.at(1)))
                                   : p.driver.cuStreamBeginCapture_v2(stream, mode_of(w.at(1))));
    };
    // capturemode: how this thread treats captures of others
    commands["capturemode"] = [](Program& p, const Words&) {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        CUresult result = exchange_mode(p, &mode);
        const int was = mode;
        if (result == CUDA_SUCCESS)
            result = exchange_mode(p, &mode);
        return answer(result, was);
    };
    commands["end"] = [](Program& p, const Words& w) {
        CUgraph graph = nullptr;
        const CUresult result = p.driver.cuStreamEndCapture(p.streams.at(w.at(0)), &graph);
        if (graph)
            p.driver.cuGraphDestroy(graph);
        return answer(result);
    };
}

}  // namespace guest
