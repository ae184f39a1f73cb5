// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

TEST_CASE("peers can be reached where they can, and access is enabled once") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xa100-40g,1xt4"}}, [](const Report& report) {
              const CUcontext second = use_device(report, 1);
              const CUcontext third = use_device(report, 2);
              const CUcontext first = use_device(report, 0);
              int can = -1, value = -1;
              EXPECT_EQUAL(cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(can, 1);
              EXPECT_EQUAL(cuDeviceCanAccessPeer(&can, 0, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(can, 0);
              EXPECT_EQUAL(cuDeviceCanAccessPeer(&can, 0, 2), CUDA_SUCCESS);
              EXPECT_EQUAL(can, 0);
              EXPECT_EQUAL(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 0, 1),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(value, 1);
              EXPECT_EQUAL(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0),
                           CUDA_ERROR_INVALID_DEVICE);
              EXPECT_EQUAL(cuCtxDisablePeerAccess(second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
              EXPECT_EQUAL(cuCtxEnablePeerAccess(second, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
              EXPECT_EQUAL(cuCtxEnablePeerAccess(third, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
              EXPECT_EQUAL(cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_INVALID_CONTEXT);
              EXPECT_EQUAL(cuCtxDisablePeerAccess(second), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("mapped memory is open to the GPUs that cuMemSetAccess names, and enabled peers aren't among them") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xa100-40g"}}, [](const Report& report) {
              const CUcontext second = use_device(report, 1);
              const CUcontext first = use_device(report, 0);
              CUmemAllocationProp prop{};
              prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
              prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
              CUmemGenericAllocationHandle handle = 0;
              CUdeviceptr mapped = 0, own = 0;
              int value = 0;
              EXPECT_EQUAL(cuMemAddressReserve(&mapped, 2 * MiB, 0, 0, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemCreate(&handle, 2 * MiB, &prop, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemMap(mapped, 2 * MiB, 0, handle, 0), CUDA_SUCCESS);
              CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
              EXPECT_EQUAL(cuMemSetAccess(mapped, 2 * MiB, &access, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&own, 2 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxEnablePeerAccess(second, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32(mapped, 1, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemcpyDtoH(&value, mapped, 4), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemcpyDtoD(own, mapped, 4), CUDA_ERROR_INVALID_VALUE);
              // A copy between peers reaches for each end from the end's own GPU.
              EXPECT_EQUAL(cuMemcpyPeer(own, first, mapped, second, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyPeer(own, second, mapped, first, 4), CUDA_ERROR_INVALID_VALUE);
              CUDA_MEMCPY3D_PEER box{};
              box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
              box.srcDevice = mapped;
              box.dstDevice = own;
              box.srcContext = second;
              box.dstContext = first;
              box.WidthInBytes = box.Height = box.Depth = 1;
              EXPECT_EQUAL(cuMemcpy3DPeer(&box), CUDA_SUCCESS);
              box.srcContext = first;
              EXPECT_EQUAL(cuMemcpy3DPeer(&box), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuCtxSetCurrent(second), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32(mapped, 7, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSetCurrent(first), CUDA_SUCCESS);
              access.location.id = 0;
              access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
              EXPECT_EQUAL(cuMemSetAccess(mapped, 2 * MiB, &access, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoH(&value, mapped, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(value, 7);
              EXPECT_EQUAL(cuMemsetD32(mapped, 1, 1), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}
