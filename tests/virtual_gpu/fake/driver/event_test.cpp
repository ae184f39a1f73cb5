#include <atomic>
#include <thread>

#include "tests/catch.h"
#include "tests/virtual_gpu/fake/driver/gpu.h"

using namespace fake_test;

namespace {

std::atomic<bool> released{false};

void CUDA_CB hold_until_released(void*) {
    while (!released) std::this_thread::yield();
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
              for (CUevent* one : {&never, &event, &later}) EXPECT_EQUAL(cuEventCreate(one, 0), CUDA_SUCCESS);
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
