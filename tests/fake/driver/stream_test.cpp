// SPDX-License-Identifier: Apache-2.0
// Streams: host functions run, order is kept, and nothing that must wait goes ahead.

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

/// A host function that holds its stream until it is let go.
struct Gate {
    std::atomic<bool> open{false}, passed{false};
    static void CUDA_CB run(void* data) {
        auto& gate = *static_cast<Gate*>(data);
        while (!gate.open)
            std::this_thread::yield();
        gate.passed = true;
    }
};

struct Log {
    std::vector<int> entries;
    std::mutex lock;
    struct Entry {
        Log* log;
        int number;
    };
    static void CUDA_CB run(void* data) {
        const auto& entry = *static_cast<Entry*>(data);
        const std::lock_guard hold(entry.log->lock);
        entry.log->entries.push_back(entry.number);
    }
};

}  // namespace

TEST_CASE("a host function does not hold up the caller, only what comes after it in its stream") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUstream busy = nullptr, other = nullptr;
              CUdeviceptr pointer = 0;
              Gate gate;
              int value = 7, before = -1, after = -1;
              EXPECT_EQUAL(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32(pointer, 0, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchHostFunc(busy, Gate::run, &gate), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyHtoDAsync(pointer, &value, 4, busy), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamQuery(busy), CUDA_ERROR_NOT_READY);
              EXPECT_EQUAL(cuStreamQuery(other), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoHAsync(&before, pointer, 4, other), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(other), CUDA_SUCCESS);
              EXPECT_EQUAL(before, 0);
              gate.open = true;
              EXPECT_EQUAL(cuStreamSynchronize(busy), CUDA_SUCCESS);
              EXPECT(gate.passed);
              EXPECT_EQUAL(cuMemcpyDtoH(&after, pointer, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(after, 7);
          }) == "");
}

TEST_CASE("the legacy stream and blocking streams wait for each other") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUstream blocking = nullptr;
              CUdeviceptr pointer = 0;
              Gate gate;
              int value = 0;
              EXPECT_EQUAL(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchHostFunc(blocking, Gate::run, &gate), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32Async(pointer, 5, 1, blocking), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
              EXPECT_EQUAL(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
              std::thread opener([&] {
                  std::this_thread::sleep_for(std::chrono::milliseconds(20));
                  gate.open = true;
              });
              EXPECT_EQUAL(cuMemcpyDtoH(&value, pointer, 4), CUDA_SUCCESS);  // legacy stream: after the fill
              EXPECT_EQUAL(value, 5);
              opener.join();
              Gate second;
              EXPECT_EQUAL(cuLaunchHostFunc(nullptr, Gate::run, &second), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32Async(pointer, 6, 1, blocking), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
              second.open = true;
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamQuery(blocking), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("what is submitted to one stream runs in its order") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUstream stream = nullptr;
              Log log;
              std::vector<Log::Entry> entries;
              for (int i = 0; i < 500; i++)
                  entries.push_back({&log, i});
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              for (auto& entry : entries)
                  EXPECT_EQUAL(cuLaunchHostFunc(stream, Log::run, &entry), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
              EXPECT_EQUAL(log.entries.size(), size_t{500});
              for (size_t i = 0; i < log.entries.size(); i++)
                  EXPECT_EQUAL(log.entries[i], static_cast<int>(i));
          }) == "");
}

TEST_CASE("callbacks are told their stream, and destroying a busy stream lets it finish", "[at once]") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUstream stream = nullptr;
              static CUstream told;
              Gate gate;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamAddCallback(
                               stream, [](CUstream it, CUresult, void*) { told = it; }, nullptr, 0),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
              EXPECT(told == stream);
              EXPECT_EQUAL(cuLaunchHostFunc(stream, Gate::run, &gate), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamDestroy(stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
              gate.open = true;
              while (!gate.passed)
                  std::this_thread::yield();
          }) == "");
}

TEST_CASE("streams say what they are") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              CUstream stream = nullptr;
              unsigned flags = 7;
              int priority = 7;
              unsigned long long id = 0, default_id = 0;
              CUcontext owner = nullptr;
              CUdevice device = -1;
              EXPECT_EQUAL(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
              EXPECT_EQUAL(priority, -5);
              EXPECT_EQUAL(cuStreamGetFlags(stream, &flags), CUDA_SUCCESS);
              EXPECT_EQUAL(flags, unsigned{CU_STREAM_NON_BLOCKING});
              EXPECT_EQUAL(cuStreamGetId(stream, &id), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamGetId(nullptr, &default_id), CUDA_SUCCESS);
              EXPECT(id != default_id);
              EXPECT_EQUAL(cuStreamGetCtx(stream, &owner), CUDA_SUCCESS);
              EXPECT(owner == context);
              EXPECT_EQUAL(cuStreamGetDevice(stream, &device), CUDA_SUCCESS);
              EXPECT_EQUAL(device, 0);
              EXPECT_EQUAL(cuStreamCreate(&stream, 2), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("what is set on a stream is kept if it can be, and copied") {
    CHECK(in_child({{"CUSLICE_FAKE", "h200"}}, [](const Report& report) {
              use_device(report);
              CUstream stream = nullptr, other = nullptr;
              CUstreamAttrValue value{}, found{};
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              value.accessPolicyWindow.num_bytes = MiB;
              value.accessPolicyWindow.hitRatio = 0.5F;
              value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
              value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
              constexpr auto window = CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW;
              EXPECT_EQUAL(cuStreamSetAttribute(stream, window, &value), CUDA_SUCCESS);
              value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_PERSISTING;
              EXPECT_EQUAL(cuStreamSetAttribute(stream, window, &value), CUDA_ERROR_INVALID_VALUE);
              value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_NORMAL;
              value.accessPolicyWindow.num_bytes = size_t{1} << 40;
              EXPECT_EQUAL(cuStreamSetAttribute(stream, window, &value), CUDA_ERROR_INVALID_VALUE);
              value.syncPolicy = CU_SYNC_POLICY_SPIN;
              EXPECT_EQUAL(cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
                           CUDA_SUCCESS);
              value.priority = -3;
              EXPECT_EQUAL(cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuStreamSetAttribute(stream, window, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuStreamCopyAttributes(other, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamGetAttribute(other, window, &found), CUDA_SUCCESS);
              EXPECT_EQUAL(found.accessPolicyWindow.num_bytes, MiB);
              EXPECT_EQUAL(found.accessPolicyWindow.hitProp, CU_ACCESS_PROPERTY_PERSISTING);
              EXPECT_EQUAL(cuStreamGetAttribute(other, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &found),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(found.syncPolicy, CU_SYNC_POLICY_SPIN);
              int priority = 0;
              EXPECT_EQUAL(cuStreamGetPriority(other, &priority), CUDA_SUCCESS);
              EXPECT_EQUAL(priority, -3);
              EXPECT_EQUAL(cuStreamDestroy(other), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCopyAttributes(other, stream), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}
