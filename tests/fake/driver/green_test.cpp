// SPDX-License-Identifier: Apache-2.0
// Green contexts: how multiprocessors are split, and a context on a part of them.

#include <atomic>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

const Environment one_h100 = {{"CUSLICE_FAKE", "h100"}};  // 132 multiprocessors
constexpr size_t context_bytes = 520 * MiB;

CUdevResource all_of(const Report& report, CUdevice device = 0) {
    CUdevResource all{};
    EXPECT_EQUAL(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    return all;
}

CUgreenCtx green_of(const Report& report, CUdevResource resource) {
    CUdevResourceDesc description = nullptr;
    CUgreenCtx green = nullptr;
    EXPECT_EQUAL(cuDevResourceGenerateDesc(&description, &resource, 1), CUDA_SUCCESS);
    EXPECT_EQUAL(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
    return green;
}

CUcontext context_of(const Report& report, CUgreenCtx green) {
    CUcontext context = nullptr;
    EXPECT_EQUAL(cuCtxFromGreenCtx(&context, green), CUDA_SUCCESS);
    return context;
}

std::atomic<bool> released{false};

void CUDA_CB hold_until_released(void*) {
    while (!released)
        std::this_thread::yield();
}

}  // namespace

TEST_CASE("multiprocessors are split into equal groups as each architecture allows, and the rest is left") {
    struct Case {
        const char* profile;
        unsigned least, size, groups, left;
        unsigned flags = 0;
    };
    const Case cases[] = {
        {"h100", 0, 8, 16, 4},     {"h100", 9, 16, 8, 4},
        {"h100", 132, 0, 0, 0},    {"h100", 3, 4, 33, 0, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING},
        {"a100-40g", 1, 4, 27, 0}, {"a100-40g", 13, 14, 7, 10},
        {"t4", 1, 2, 20, 0}};
    for (const Case& one : cases) {
        CAPTURE(one.profile, one.least);
        CHECK(in_child({{"CUSLICE_FAKE", one.profile}}, [&](const Report& report) {
                  EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
                  const CUdevResource all = all_of(report);
                  std::vector<CUdevResource> groups(64);
                  CUdevResource left{};
                  unsigned count = 0;
                  const CUresult result =
                      cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr, one.flags, one.least);
                  if (one.groups == 0) {  // 132 are no whole number of eights
                      EXPECT_EQUAL(result, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
                      return;
                  }
                  EXPECT_EQUAL(result, CUDA_SUCCESS);
                  EXPECT_EQUAL(count, one.groups);
                  count = 64;
                  EXPECT_EQUAL(cuDevSmResourceSplitByCount(groups.data(), &count, &all, &left, one.flags, one.least),
                               CUDA_SUCCESS);
                  EXPECT_EQUAL(count, one.groups);
                  for (unsigned i = 0; i < count; i++)
                      EXPECT_EQUAL(groups[i].sm.smCount, one.size);
                  EXPECT_EQUAL(left.sm.smCount, one.left);
                  EXPECT_EQUAL(static_cast<int>(left.type), one.left == 0 ? 0 : 1);
              }) == "");
    }
}

TEST_CASE("resources that don't belong together, or came from nowhere, are refused") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xh100,laptop-2g"}}, [](const Report& report) {
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              CUdevResource all = all_of(report), second = all_of(report, 1), groups[2] = {}, again[2] = {}, left{};
              CUdevResourceDesc description = nullptr;
              unsigned two = 2;
              EXPECT_EQUAL(cuDeviceGetDevResource(2, &left, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(cuDeviceGetDevResource(3, &left, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_DEVICE);
              EXPECT_EQUAL(cuDeviceGetDevResource(0, &left, CU_DEV_RESOURCE_TYPE_INVALID),
                           CUDA_ERROR_INVALID_RESOURCE_TYPE);
              EXPECT_EQUAL(cuDevSmResourceSplitByCount(groups, &two, &all, &left, 0, 133), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuDevSmResourceSplitByCount(groups, &two, &all, &left, 0, 32), CUDA_SUCCESS);
              EXPECT_EQUAL(left.sm.smCount, 68U);
              EXPECT_EQUAL(cuDevSmResourceSplitByCount(again, &two, &groups[0], nullptr, 0, 8),
                           CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
              EXPECT_EQUAL(cuDevSmResourceSplitByCount(again, &two, &all, nullptr, 0, 32), CUDA_SUCCESS);
              EXPECT_EQUAL(cuDevSmResourceSplitByCount(again, &two, &all, nullptr,
                                                       CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE, 32),
                           CUDA_ERROR_NOT_SUPPORTED);
              CUdevResource made_up{};
              made_up.type = CU_DEV_RESOURCE_TYPE_SM;
              EXPECT_EQUAL(cuDevResourceGenerateDesc(&description, &made_up, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuDevResourceGenerateDesc(&description, groups, 0), CUDA_ERROR_INVALID_VALUE);
              for (const CUdevResource& other : {second, all, again[1], groups[0]}) {
                  CUdevResource pair[2] = {groups[0], other};
                  EXPECT_EQUAL(cuDevResourceGenerateDesc(&description, pair, 2),
                               CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
              }
              CUdevResource together[3] = {groups[0], groups[1], left};
              EXPECT_EQUAL(cuDevResourceGenerateDesc(&description, together, 3), CUDA_SUCCESS);
              CUgreenCtx green = nullptr;
              EXPECT_EQUAL(cuGreenCtxCreate(&green, description, 0, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGreenCtxCreate(&green, description, 1, CU_GREEN_CTX_DEFAULT_STREAM),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGreenCtxCreate(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
              CUdevResource own{};
              EXPECT_EQUAL(cuGreenCtxGetDevResource(green, &own, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
              EXPECT_EQUAL(own.sm.smCount, 132U);
          }) == "");
}

TEST_CASE("a green context is the primary context with a part of the GPU, charged for itself") {
    CHECK(in_child(one_h100, [](const Report& report) {
              const CUcontext primary = use_device(report);
              const size_t free = free_bytes();
              CUdevResource all = all_of(report), groups[2] = {}, own{};
              unsigned two = 2;
              EXPECT_EQUAL(cuDevSmResourceSplitByCount(groups, &two, &all, nullptr, 0, 16), CUDA_SUCCESS);
              const CUgreenCtx green = green_of(report, groups[0]), other = green_of(report, groups[1]);
              EXPECT_EQUAL(free_bytes(), free - 2 * context_bytes);
              const CUcontext context = context_of(report, green);
              EXPECT(context != primary && context == context_of(report, green));
              EXPECT_EQUAL(cuCtxGetDevResource(context, &own, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
              EXPECT_EQUAL(own.sm.smCount, 16U);
              EXPECT_EQUAL(cuCtxGetDevResource(primary, &own, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
              EXPECT_EQUAL(own.sm.smCount, 132U);
              EXPECT_EQUAL(cuCtxDestroy(context), CUDA_ERROR_INVALID_CONTEXT);

              unsigned long long id = 0, other_id = 0;
              EXPECT_EQUAL(cuGreenCtxGetId(nullptr, &id), CUDA_ERROR_INVALID_CONTEXT);
              EXPECT_EQUAL(cuCtxSetCurrent(context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGreenCtxGetId(nullptr, &id), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGreenCtxGetId(other, &other_id), CUDA_SUCCESS);
              EXPECT(id != other_id);
              CUdeviceptr block = 0;
              CUcontext current = nullptr, owner = nullptr;
              EXPECT_EQUAL(cuCtxGetCurrent(&current), CUDA_SUCCESS);
              EXPECT(current == context);
              EXPECT_EQUAL(cuMemAlloc(&block, 10 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, block), CUDA_SUCCESS);
              EXPECT(owner == primary);
              EXPECT_EQUAL(cuGreenCtxDestroy(green), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_CONTEXT);
              EXPECT_EQUAL(cuMemAlloc(&block, 512), CUDA_ERROR_CONTEXT_IS_DESTROYED);
              // Its allocations are the primary context's.
              EXPECT_EQUAL(cuCtxSetCurrent(primary), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free - context_bytes - 10 * MiB);
              EXPECT_EQUAL(cuMemFree(block), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGreenCtxDestroy(other), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
          }) == "");
}

TEST_CASE("a green context retains the primary context; a reset ends both") {
    CHECK(in_child(one_h100, [](const Report& report) {
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              unsigned flags = 0;
              int active = 0;
              const CUgreenCtx green = green_of(report, all_of(report));
              EXPECT_EQUAL(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
              EXPECT_EQUAL(active, 1);
              EXPECT_EQUAL(cuGreenCtxDestroy(green), CUDA_SUCCESS);
              EXPECT_EQUAL(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
              EXPECT_EQUAL(active, 0);

              const CUcontext primary = use_device(report);
              const size_t free = free_bytes();
              const CUgreenCtx stale = green_of(report, all_of(report));
              const CUcontext context = context_of(report, stale);
              EXPECT_EQUAL(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
              use_device(report);
              EXPECT_EQUAL(free_bytes(), free);
              CUstream stream = nullptr;
              EXPECT_EQUAL(cuGreenCtxStreamCreate(&stream, stale, CU_STREAM_NON_BLOCKING, 0),
                           CUDA_ERROR_INVALID_CONTEXT);
              EXPECT_EQUAL(cuGreenCtxDestroy(stale), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSetCurrent(primary), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
          }) == "");
}

TEST_CASE("streams of a green context are known as its own, and end with it") {
    CHECK(in_child(one_h100, [](const Report& report) {
              const CUcontext primary = use_device(report);
              const CUgreenCtx green = green_of(report, all_of(report));
              const CUcontext context = context_of(report, green);
              CUstream stream = nullptr, plain = nullptr;
              CUcontext of = nullptr;
              CUgreenCtx of_green = nullptr;
              EXPECT_EQUAL(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_DEFAULT, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, -100), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&plain, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamGetGreenCtx(stream, &of_green), CUDA_SUCCESS);
              EXPECT(of_green == green);
              EXPECT_EQUAL(cuStreamGetCtx_v2(stream, &of, &of_green), CUDA_SUCCESS);
              EXPECT(of == primary && of_green == green);
              EXPECT_EQUAL(cuStreamGetGreenCtx(plain, &of_green), CUDA_SUCCESS);
              EXPECT(of_green == nullptr);
              EXPECT_EQUAL(cuCtxPushCurrent(context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamGetGreenCtx(nullptr, &of_green), CUDA_SUCCESS);
              EXPECT(of_green == green);
              EXPECT_EQUAL(cuStreamGetCtx_v2(CU_STREAM_PER_THREAD, &of, &of_green), CUDA_ERROR_INVALID_HANDLE);
              CUdeviceptr block = 0;
              unsigned value = 0;
              EXPECT_EQUAL(cuMemAlloc(&block, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32Async(block, 7, 1, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoHAsync(&value, block, 4, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(value, 7U);
              EXPECT_EQUAL(cuCtxPopCurrent(&of), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGreenCtxDestroy(green), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32Async(block, 7, 1, stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
              EXPECT_EQUAL(cuStreamDestroy(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
              EXPECT_EQUAL(cuStreamDestroy(plain), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("access to a green context's memory is access to its primary context's") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xh100"}}, [](const Report& report) {
              const CUcontext primary = use_device(report);
              const CUcontext green = context_of(report, green_of(report, all_of(report)));
              use_device(report, 1);
              EXPECT_EQUAL(cuCtxEnablePeerAccess(green, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxEnablePeerAccess(primary, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
              EXPECT_EQUAL(cuCtxDisablePeerAccess(primary), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxDisablePeerAccess(green), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
          }) == "");
}

TEST_CASE("a green context's event waits for its own streams and no others") {
    CHECK(in_child(one_h100, [](const Report& report) {
              use_device(report);
              const CUgreenCtx busy_green = green_of(report, all_of(report)), green = green_of(report, all_of(report));
              CUstream busy = nullptr, idle = nullptr;
              CUevent event = nullptr, other = nullptr;
              EXPECT_EQUAL(cuGreenCtxStreamCreate(&busy, busy_green, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGreenCtxStreamCreate(&idle, green, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventCreate(&event, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventCreate(&other, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchHostFunc(busy, hold_until_released, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGreenCtxRecordEvent(busy_green, event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGreenCtxRecordEvent(green, other), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventSynchronize(other), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
              EXPECT_EQUAL(cuStreamQuery(idle), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGreenCtxWaitEvent(green, event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamQuery(idle), CUDA_ERROR_NOT_READY);
              released = true;
              EXPECT_EQUAL(cuStreamSynchronize(idle), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGreenCtxRecordEvent(green, nullptr), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}
