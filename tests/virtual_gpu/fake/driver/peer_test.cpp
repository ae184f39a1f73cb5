#include "tests/catch.h"
#include "tests/virtual_gpu/fake/driver/gpu.h"

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
