// SPDX-License-Identifier: Apache-2.0
// Attributes that the driver reports of a pointer.

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

TEST_CASE("the middle of a block leads to its base, size, context and device") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xt4"}}, [](const Report& report) {
              const CUcontext context = use_device(report, 1);
              CUdeviceptr pointer = 0, other = 0, base = 0;
              size_t size = 0;
              EXPECT_EQUAL(cuMemAlloc(&pointer, 1000), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&other, 1000), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemGetAddressRange(&base, &size, pointer + 999), CUDA_SUCCESS);
              EXPECT_EQUAL(base, pointer);
              EXPECT_EQUAL(size, size_t{1000});
              EXPECT_EQUAL(cuMemGetAddressRange(&base, &size, pointer + 1000), CUDA_ERROR_NOT_FOUND);
              CUcontext owner = nullptr;
              unsigned type = 0;
              int ordinal = -1;
              unsigned long long id = 0, other_id = 0;
              bool managed = true;
              void* host = nullptr;
              EXPECT_EQUAL(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer + 1), CUDA_SUCCESS);
              EXPECT(owner == context);
              EXPECT_EQUAL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer), CUDA_SUCCESS);
              EXPECT_EQUAL(type, unsigned{CU_MEMORYTYPE_DEVICE});
              EXPECT_EQUAL(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer), CUDA_SUCCESS);
              EXPECT_EQUAL(ordinal, 1);
              EXPECT_EQUAL(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer), CUDA_SUCCESS);
              EXPECT(!managed);
              EXPECT_EQUAL(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer), CUDA_SUCCESS);
              EXPECT_EQUAL(cuPointerGetAttribute(&other_id, CU_POINTER_ATTRIBUTE_BUFFER_ID, other), CUDA_SUCCESS);
              EXPECT(id != other_id);
              EXPECT_EQUAL(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemFree(pointer), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&other, 1000), CUDA_SUCCESS);
              EXPECT_EQUAL(other, pointer);  // the address again, but another buffer
              EXPECT_EQUAL(cuPointerGetAttribute(&other_id, CU_POINTER_ATTRIBUTE_BUFFER_ID, other), CUDA_SUCCESS);
              EXPECT(id != other_id);
          }) == "");
}

TEST_CASE("another GPU's memory has a device pointer here only where its context is a peer of this one") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xt4"}}, [](const Report& report) {
              const CUcontext first = use_device(report, 0);
              CUdeviceptr memory = 0, seen = 0;
              EXPECT_EQUAL(cuMemAlloc(&memory, 1000), CUDA_SUCCESS);
              EXPECT_EQUAL(cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory + 7), CUDA_SUCCESS);
              EXPECT_EQUAL(seen, memory + 7);
              const CUcontext second = use_device(report, 1);
              unsigned access = 9;
              EXPECT_EQUAL(cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, memory), CUDA_SUCCESS);
              EXPECT_EQUAL(access, unsigned{CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE});
              EXPECT_EQUAL(cuCtxEnablePeerAccess(first, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory), CUDA_SUCCESS);
              EXPECT_EQUAL(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, memory), CUDA_SUCCESS);
              EXPECT_EQUAL(access, unsigned{CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE});
              // One direction is not the other.
              CUdeviceptr other = 0;
              EXPECT_EQUAL(cuMemAlloc(&other, 1000), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSetCurrent(first), CUDA_SUCCESS);
              EXPECT_EQUAL(cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, other),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuCtxSetCurrent(second), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxDisablePeerAccess(first), CUDA_SUCCESS);
              EXPECT_EQUAL(cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory),
                           CUDA_ERROR_INVALID_CONTEXT);
          }) == "");
}

TEST_CASE("several attributes at once give defaults for what isn't known") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              int local = 0, ordinal = 5;
              unsigned type = 5;
              CUcontext context = reinterpret_cast<CUcontext>(5);
              CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                             CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
              void* answers[] = {&context, &type, &ordinal};
              const auto address = reinterpret_cast<CUdeviceptr>(&local);
              EXPECT_EQUAL(cuPointerGetAttributes(3, asked, answers, address), CUDA_SUCCESS);
              EXPECT(context == nullptr);
              EXPECT_EQUAL(type, 0U);
              EXPECT_EQUAL(ordinal, -2);
              EXPECT_EQUAL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
                           CUDA_ERROR_INVALID_VALUE);
              asked[0] = static_cast<CUpointer_attribute>(99);
              EXPECT_EQUAL(cuPointerGetAttributes(3, asked, answers, address), CUDA_ERROR_INVALID_VALUE);
              void* host = nullptr;
              EXPECT_EQUAL(cuMemAllocHost(&host, 100), CUDA_SUCCESS);
              EXPECT_EQUAL(
                  cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(host)),
                  CUDA_SUCCESS);
              EXPECT_EQUAL(type, unsigned{CU_MEMORYTYPE_HOST});
          }) == "");
}
