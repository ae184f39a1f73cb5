// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/sample_ptx.h"

using namespace fake_test;

namespace {

std::atomic<bool> released{false};

void CUDA_CB hold_until_released(void*) {
    while (!released)
        std::this_thread::yield();
}

}  // namespace

TEST_CASE("an event is complete when what was before it is") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUstream busy = nullptr, waiting = nullptr;
              CUevent never = nullptr, event = nullptr, later = nullptr;
              CUdeviceptr pointer = 0;
              float milliseconds = -1;
              int* value = nullptr;  // page-locked: a copy to any other memory would wait
              EXPECT_EQUAL(cuMemAllocHost(reinterpret_cast<void**>(&value), sizeof *value), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              for (CUevent* one : {&never, &event, &later})
                  EXPECT_EQUAL(cuEventCreate(one, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(never), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchHostFunc(busy, hold_until_released, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32Async(pointer, 3, 1, busy), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(event, busy), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
              EXPECT_EQUAL(cuStreamWaitEvent(waiting, event, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoHAsync(value, pointer, 4, waiting), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
              EXPECT_EQUAL(cuEventRecord(later, busy), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventElapsedTime(&milliseconds, event, later), CUDA_ERROR_NOT_READY);
              released = true;
              EXPECT_EQUAL(cuEventSynchronize(event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(waiting), CUDA_SUCCESS);
              EXPECT_EQUAL(*value, 3);
              EXPECT_EQUAL(cuEventSynchronize(later), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventElapsedTime(&milliseconds, event, later), CUDA_SUCCESS);
              EXPECT(milliseconds >= 0);
              EXPECT_EQUAL(cuEventElapsedTime(&milliseconds, never, later), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}

TEST_CASE("there is no time between events of two GPUs") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xt4"}}, [](const Report& report) {
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              CUcontext context = nullptr;
              CUevent first[2] = {}, second[2] = {};
              float milliseconds = -1;
              for (const int gpu : {0, 1}) {
                  EXPECT_EQUAL(cuDevicePrimaryCtxRetain(&context, gpu), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuCtxSetCurrent(context), CUDA_SUCCESS);
                  for (CUevent* one : {&first[gpu], &second[gpu]}) {
                      EXPECT_EQUAL(cuEventCreate(one, 0), CUDA_SUCCESS);
                      EXPECT_EQUAL(cuEventRecord(*one, nullptr), CUDA_SUCCESS);
                      EXPECT_EQUAL(cuEventSynchronize(*one), CUDA_SUCCESS);
                  }
              }
              EXPECT_EQUAL(cuEventElapsedTime(&milliseconds, first[0], first[1]), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(milliseconds, -1.0F);
              EXPECT_EQUAL(cuEventElapsedTime(&milliseconds, first[0], second[0]), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventElapsedTime(&milliseconds, first[1], second[1]), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("a context's event waits for all its streams") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              CUstream busy = nullptr, other = nullptr;
              CUevent event = nullptr;
              EXPECT_EQUAL(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchHostFunc(busy, hold_until_released, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxRecordEvent(context, event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
              EXPECT_EQUAL(cuCtxWaitEvent(context, event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
              released = true;
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("the events of an idle context are reached at once, and have their times") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              CUevent before = nullptr, after = nullptr;
              float milliseconds = -1;
              for (CUevent* one : {&before, &after}) {
                  EXPECT_EQUAL(cuEventCreate(one, 0), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuCtxRecordEvent(context, *one), CUDA_SUCCESS);
              }
              EXPECT_EQUAL(cuEventSynchronize(after), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventElapsedTime(&milliseconds, before, after), CUDA_SUCCESS);
              EXPECT(milliseconds >= 0);
          }) == "");
}

TEST_CASE("work between two events takes at least 2 microseconds a piece, in a graph too") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUmodule module = nullptr;
              CUfunction kernel = nullptr;
              CUstream stream = nullptr;
              CUgraph graph = nullptr;
              CUgraphExec exec = nullptr;
              CUdeviceptr word = 0;
              CUevent before = nullptr, after = nullptr;
              EXPECT_EQUAL(cuModuleLoadData(&module, sample_ptx), CUDA_SUCCESS);
              EXPECT_EQUAL(cuModuleGetFunction(&kernel, module, "bounded"), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&word, 4), CUDA_SUCCESS);
              for (CUevent* one : {&before, &after})
                  EXPECT_EQUAL(cuEventCreate(one, 0), CUDA_SUCCESS);
              const auto launch = [&] {
                  EXPECT_EQUAL(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), CUDA_SUCCESS);
              };
              const auto fill = [&] { EXPECT_EQUAL(cuMemsetD32Async(word, 1, 1, stream), CUDA_SUCCESS); };
              EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
              for (int i = 0; i < 50; i++)
                  launch();
              EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
              const auto least = [&](int rounds, double milliseconds, const auto& work) {
                  for (int i = 0; i < rounds; i++) {
                      float elapsed = 0;
                      EXPECT_EQUAL(cuEventRecord(before, stream), CUDA_SUCCESS);
                      work();
                      EXPECT_EQUAL(cuEventRecord(after, stream), CUDA_SUCCESS);
                      EXPECT_EQUAL(cuEventSynchronize(after), CUDA_SUCCESS);
                      EXPECT_EQUAL(cuEventElapsedTime(&elapsed, before, after), CUDA_SUCCESS);
                      EXPECT(static_cast<double>(elapsed) >= milliseconds);
                  }
              };
              least(100, 0.002, launch);
              least(100, 0.002, fill);
              least(20, 0.1, [&] { EXPECT_EQUAL(cuGraphLaunch(exec, stream), CUDA_SUCCESS); });
          }) == "");
}
