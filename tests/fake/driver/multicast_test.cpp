// SPDX-License-Identifier: Apache-2.0
// Multicast objects: a team of GPUs, and memory that lives as long as it is bound.

#include <atomic>
#include <thread>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/sleeping.h"

using namespace fake_test;
using cuslice::tests::await_sleep, cuslice::tests::this_thread;

namespace {

const Environment two_h100 = {{"CUSLICE_FAKE", "2xh100"}};

CUmemGenericAllocationHandle object_of(const Report& report, size_t size, unsigned devices) {
    CUmulticastObjectProp prop{};
    prop.numDevices = devices;
    prop.size = size;
    CUmemGenericAllocationHandle object = 0;
    EXPECT_EQUAL(cuMulticastCreate(&object, &prop), CUDA_SUCCESS);
    return object;
}

CUmemGenericAllocationHandle memory_on(const Report& report, int device, size_t size) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQUAL(cuMemCreate(&handle, size, &prop, 0), CUDA_SUCCESS);
    return handle;
}

CUdeviceptr mapped(const Report& report, CUmemGenericAllocationHandle handle, size_t size) {
    CUdeviceptr at = 0;
    EXPECT_EQUAL(cuMemAddressReserve(&at, size, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQUAL(cuMemMap(at, size, 0, handle, 0), CUDA_SUCCESS);
    return at;
}

}  // namespace

TEST_CASE("a GPU without NVLink switches has no multicast objects, and says so") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              int supported = -1;
              EXPECT_EQUAL(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(supported, 0);
              CUmulticastObjectProp prop{};
              prop.numDevices = 1;
              prop.size = 2 * MiB;
              CUmemGenericAllocationHandle object = 0;
              EXPECT_EQUAL(cuMulticastCreate(&object, &prop), CUDA_ERROR_NOT_SUPPORTED);
          }) == "");
    CHECK(in_child(two_h100, [](const Report& report) {
              use_device(report);
              int supported = 0;
              EXPECT_EQUAL(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(supported, 1);
          }) == "");
}

TEST_CASE("memory that is bound stays until it is unbound, or its object is released and unmapped") {
    CHECK(in_child(two_h100, [](const Report& report) {
              use_device(report);
              const size_t free = free_bytes();
              const CUmemGenericAllocationHandle object = object_of(report, 8 * MiB, 2);
              for (int device : {0, 1})
                  EXPECT_EQUAL(cuMulticastAddDevice(object, device), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
              const CUmemGenericAllocationHandle a = memory_on(report, 0, 4 * MiB), b = memory_on(report, 0, 6 * MiB);
              const CUmemGenericAllocationHandle other = memory_on(report, 1, 4 * MiB);
              EXPECT_EQUAL(cuMulticastBindMem(object, 0, a, 2 * MiB, 2 * MiB, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMulticastBindMem(object, 0, other, 0, 4 * MiB, 0), CUDA_SUCCESS);
              const CUdeviceptr at = mapped(report, b, 6 * MiB);
              EXPECT_EQUAL(cuMulticastBindAddr(object, 4 * MiB, at + 2 * MiB, 4 * MiB, 0), CUDA_SUCCESS);
              for (CUmemGenericAllocationHandle memory : {a, b, other})
                  EXPECT_EQUAL(cuMemRelease(memory), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemUnmap(at, 6 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free - 10 * MiB);
              EXPECT_EQUAL(cuMulticastUnbind(object, 0, 0, 2 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free - 6 * MiB);
              const CUdeviceptr object_at = mapped(report, object, 8 * MiB);
              EXPECT_EQUAL(cuMemRelease(object), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMulticastUnbind(object, 0, 4 * MiB, 4 * MiB), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(free_bytes(), free - 6 * MiB);
              const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
              EXPECT_EQUAL(cuMemSetAccess(object_at, 8 * MiB, &access, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD8(object_at, 1, 16), CUDA_ERROR_NOT_SUPPORTED);
              CUmemGenericAllocationHandle again = 0;
              EXPECT_EQUAL(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(object_at)), CUDA_SUCCESS);
              EXPECT_EQUAL(again, object);
              EXPECT_EQUAL(cuMemRelease(again), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemUnmap(object_at, 8 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
              EXPECT_EQUAL(cuMemRelease(object), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("whoever binds or maps waits until the team is complete") {
    CHECK(in_child(two_h100, [](const Report& report) {
              use_device(report);
              const CUmemGenericAllocationHandle object = object_of(report, 2 * MiB, 2);
              const CUmemGenericAllocationHandle memory = memory_on(report, 0, 2 * MiB);
              EXPECT_EQUAL(cuMulticastAddDevice(object, 0), CUDA_SUCCESS);
              std::atomic<bool> bound{false};
              std::atomic<pid_t> binds{0}, maps{0};
              std::thread waiting([&] {
                  binds = this_thread();
                  EXPECT_EQUAL(cuMulticastBindMem(object, 0, memory, 0, 2 * MiB, 0), CUDA_SUCCESS);
                  bound = true;
              });
              while (!binds)
                  std::this_thread::yield();
              await_sleep(binds);
              EXPECT(!bound);
              EXPECT_EQUAL(cuMulticastAddDevice(object, 1), CUDA_SUCCESS);
              waiting.join();
              EXPECT(bound);
              // An object that is released meanwhile lets go of them.
              const CUmemGenericAllocationHandle second = object_of(report, 2 * MiB, 2);
              std::thread mapping([&] {
                  CUdeviceptr at = 0;
                  EXPECT_EQUAL(cuMemAddressReserve(&at, 2 * MiB, 0, 0, 0), CUDA_SUCCESS);
                  maps = this_thread();
                  EXPECT_EQUAL(cuMemMap(at, 2 * MiB, 0, second, 0), CUDA_ERROR_INVALID_VALUE);
              });
              while (!maps)
                  std::this_thread::yield();
              await_sleep(maps);
              EXPECT_EQUAL(cuMemRelease(second), CUDA_SUCCESS);
              mapping.join();
          }) == "");
}

TEST_CASE("what can't be of a team or bound is refused") {
    CHECK(in_child(two_h100, [](const Report& report) {
              use_device(report);
              CUmulticastObjectProp prop{};
              CUmemGenericAllocationHandle handle = 0;
              size_t granularity = 0;
              prop.numDevices = 2;
              EXPECT_EQUAL(cuMulticastGetGranularity(&granularity, &prop, CU_MULTICAST_GRANULARITY_MINIMUM),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(granularity, 2 * MiB);
              for (const size_t size : {size_t{0}, MiB}) {
                  prop.size = size;
                  EXPECT_EQUAL(cuMulticastCreate(&handle, &prop), CUDA_ERROR_INVALID_VALUE);
              }
              prop.size = 2 * MiB;
              prop.numDevices = 3;
              EXPECT_EQUAL(cuMulticastCreate(&handle, &prop), CUDA_ERROR_INVALID_VALUE);
              prop.numDevices = 1;
              prop.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
              EXPECT_EQUAL(cuMulticastCreate(&handle, &prop), CUDA_ERROR_NOT_SUPPORTED);
              const CUmemGenericAllocationHandle object = object_of(report, 4 * MiB, 1);
              EXPECT_EQUAL(cuMulticastAddDevice(object, 2), CUDA_ERROR_INVALID_DEVICE);
              EXPECT_EQUAL(cuMulticastAddDevice(object, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMulticastAddDevice(object, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMulticastAddDevice(object, 1), CUDA_ERROR_INVALID_VALUE);
              const CUmemGenericAllocationHandle memory = memory_on(report, 0, 4 * MiB);
              const CUmemGenericAllocationHandle other = memory_on(report, 1, 4 * MiB);
              EXPECT_EQUAL(cuMulticastAddDevice(memory, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMulticastBindMem(object, 0, other, 0, 4 * MiB, 0), CUDA_ERROR_INVALID_DEVICE);
              EXPECT_EQUAL(cuMulticastBindMem(object, 0, object, 0, 4 * MiB, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMulticastBindMem(object, MiB, memory, 0, 2 * MiB, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMulticastBindMem(object, 2 * MiB, memory, 0, 4 * MiB, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMulticastBindMem(object, 0, memory, 2 * MiB, 4 * MiB, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMulticastBindMem(object, 0, memory, 0, 4 * MiB, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMulticastBindMem(object, 0, memory, 0, 4 * MiB, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMulticastBindMem(object, 2 * MiB, memory, 0, 2 * MiB, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMulticastUnbind(object, 0, 0, 2 * MiB), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMulticastUnbind(object, 1, 0, 4 * MiB), CUDA_ERROR_INVALID_VALUE);
              CUdeviceptr block = 0;
              EXPECT_EQUAL(cuMemAlloc(&block, 4 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMulticastBindAddr(object, 0, block, 4 * MiB, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemAllocAsync(&block, 4 * MiB, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMulticastBindAddr(object, 0, block, 4 * MiB, 0), CUDA_ERROR_NOT_SUPPORTED);
          }) == "");
}
