// SPDX-License-Identifier: Apache-2.0
// Events between processes.

#include <atomic>
#include <thread>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/peer_process.h"

using namespace fake_test;

namespace {

constexpr unsigned between = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;

void CUDA_CB wait_for_peer(void* peer) { static_cast<const Peer*>(peer)->receive<int>(); }

/// Makes an event, tells its handle, and records it behind work that lasts until the other process says a word.
void record_slowly(const Report& report, const Peer& peer) {
    use_device(report);
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUipcEventHandle handle;
    EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT_EQUAL(cuEventCreate(&event, between), CUDA_SUCCESS);
    EXPECT_EQUAL(cuIpcGetEventHandle(&handle, event), CUDA_SUCCESS);
    EXPECT_EQUAL(cuLaunchHostFunc(stream, wait_for_peer, const_cast<Peer*>(&peer)), CUDA_SUCCESS);
    EXPECT_EQUAL(cuEventRecord(event, stream), CUDA_SUCCESS);
    peer.send(handle);
    EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
    // The other records it next.
    peer.receive<int>();
    EXPECT_EQUAL(cuEventSynchronize(event), CUDA_SUCCESS);
    peer.send(cuEventQuery(event));
    peer.receive<int>();
}

}  // namespace

TEST_CASE("an event that another process records is waited for, and the other way round") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const Peer owner([&](const Peer& peer) { record_slowly(report, peer); });
              const auto handle = owner.receive<CUipcEventHandle>();
              use_device(report);
              CUevent event = nullptr;
              CUstream stream = nullptr;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuIpcOpenEventHandle(&event, handle), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
              EXPECT_EQUAL(cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
              owner.send(1);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventSynchronize(event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(event, stream), CUDA_SUCCESS);
              owner.send(1);
              EXPECT_EQUAL(owner.receive<CUresult>(), CUDA_SUCCESS);
              float milliseconds = 0;
              EXPECT_EQUAL(cuEventElapsedTime(&milliseconds, event, event), CUDA_ERROR_INVALID_HANDLE);
              CUipcEventHandle again;
              EXPECT_EQUAL(cuIpcGetEventHandle(&again, event), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuEventDestroy(event), CUDA_SUCCESS);
              owner.send(1);
              owner.wait();
              EXPECT_EQUAL(cuIpcOpenEventHandle(&event, handle), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}

TEST_CASE("nobody waits for ever for a process that was killed before its event") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const Peer owner([&](const Peer& peer) { record_slowly(report, peer); });
              const auto handle = owner.receive<CUipcEventHandle>();
              const CUcontext context = use_device(report);
              CUevent event = nullptr;
              CUstream stream = nullptr;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuIpcOpenEventHandle(&event, handle), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxWaitEvent(context, event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
              owner.kill();
              EXPECT_EQUAL(cuEventQuery(event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventSynchronize(event), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("an event is shared only if it was made for that") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUevent event = nullptr, plain = nullptr;
              CUipcEventHandle handle{};
              int supported = 0;
              EXPECT_EQUAL(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(supported, 1);
              EXPECT_EQUAL(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuIpcOpenEventHandle(&event, handle), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuIpcGetEventHandle(&handle, plain), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuIpcGetEventHandle(&handle, nullptr), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(cuEventCreate(&event, between), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuIpcGetEventHandle(&handle, event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuIpcOpenEventHandle(&plain, handle), CUDA_ERROR_INVALID_CONTEXT);
              CUstream stream = nullptr;
              CUgraph graph = nullptr;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(event, stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
              EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_SUCCESS);
          }) == "");
}
