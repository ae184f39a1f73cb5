// SPDX-License-Identifier: Apache-2.0
// Properties that the driver reports of its devices.

#include <algorithm>
#include <cstring>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

TEST_CASE("names, memory, identities and addresses come from the profile") {
    CHECK(in_child({{"CUSLICE_FAKE", "laptop-2g,laptop-2g"}}, [](const Report& report) {
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              char name[64], pci[2][32];
              size_t bytes = 0;
              CUuuid uuid[2];
              for (int i = 0; i < 2; i++) {
                  CUdevice device = -1;
                  EXPECT_EQUAL(cuDeviceGet(&device, i), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuDeviceGetName(name, sizeof name, device), CUDA_SUCCESS);
                  EXPECT_EQUAL(std::string(name), "NVIDIA GeForce 940MX");
                  EXPECT_EQUAL(cuDeviceTotalMem(&bytes, device), CUDA_SUCCESS);
                  EXPECT_EQUAL(bytes, 2002 * MiB);
                  EXPECT_EQUAL(cuDeviceGetUuid(&uuid[i], device), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuDeviceGetPCIBusId(pci[i], sizeof pci[i], device), CUDA_SUCCESS);
                  CUdevice same = -1;
                  EXPECT_EQUAL(cuDeviceGetByPCIBusId(&same, pci[i]), CUDA_SUCCESS);
                  EXPECT_EQUAL(same, device);
              }
              EXPECT(std::memcmp(&uuid[0], &uuid[1], sizeof uuid[0]) != 0);
              EXPECT(std::strcmp(pci[0], pci[1]) != 0);
              EXPECT_EQUAL(cuDeviceGetName(name, 7, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(std::string(name), "NVIDIA");
              CUdevice device = -1;
              EXPECT_EQUAL(cuDeviceGetByPCIBusId(&device, "0000:ff:00.0"), CUDA_ERROR_INVALID_DEVICE);
              EXPECT_EQUAL(cuDeviceGetByPCIBusId(&device, "nonsense"), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("every attribute of the header is answered, and no other") {
    CHECK(in_child({{"CUSLICE_FAKE", "h200,a100-40g,t4,laptop-2g"}}, [](const Report& report) {
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              const auto value = [&](CUdevice_attribute attribute, CUdevice device) {
                  int number = -7;
                  EXPECT_EQUAL(cuDeviceGetAttribute(&number, attribute, device), CUDA_SUCCESS);
                  return number;
              };
              for (CUdevice device = 0; device < 4; device++) {
                  for (int i = 1; i <= 147; i++)
                      EXPECT(value(static_cast<CUdevice_attribute>(i), device) >= -1);
                  int number = 0;
                  for (const int i : {0, -1, 148, 10000}) {
                      EXPECT_EQUAL(cuDeviceGetAttribute(&number, static_cast<CUdevice_attribute>(i), device),
                                   CUDA_ERROR_INVALID_VALUE);
                  }
                  // Attributes that depend on each other.
                  EXPECT(value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device) <=
                         value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, device));
                  EXPECT(value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device) <=
                         value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
                  EXPECT_EQUAL(value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device) % 32, 0);
                  CUdevprop properties;
                  EXPECT_EQUAL(cuDeviceGetProperties(&properties, device), CUDA_SUCCESS);
                  EXPECT_EQUAL(properties.clockRate, value(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device));
                  EXPECT_EQUAL(properties.maxThreadsPerBlock, value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device));
              }
              EXPECT_EQUAL(value(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), 132);
              EXPECT_EQUAL(value(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0), 9);
              EXPECT_EQUAL(value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 1), 164 << 10);
              EXPECT_EQUAL(value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2), 1024);
              EXPECT_EQUAL(value(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 3), 5);
              EXPECT_EQUAL(value(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 3), 0);
              EXPECT_EQUAL(value(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0), 1);
              EXPECT_EQUAL(value(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1), 0);
          }) == "");
}

TEST_CASE("an ordinal that isn't there is refused everywhere") {
    CHECK(in_child(one_t4, [](const Report& report) {
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              int number = 0;
              unsigned flags = 0;
              size_t bytes = 0;
              char text[64];
              CUdevice device = 0;
              CUuuid uuid;
              CUcontext context = nullptr;
              CUmemoryPool pool = nullptr;
              for (const int bad : {1, 2, -1, 1000000}) {
                  EXPECT_EQUAL(cuDeviceGet(&device, bad), CUDA_ERROR_INVALID_DEVICE);
                  EXPECT_EQUAL(cuDeviceGetName(text, sizeof text, bad), CUDA_ERROR_INVALID_DEVICE);
                  EXPECT_EQUAL(cuDeviceTotalMem(&bytes, bad), CUDA_ERROR_INVALID_DEVICE);
                  EXPECT_EQUAL(cuDeviceGetUuid(&uuid, bad), CUDA_ERROR_INVALID_DEVICE);
                  EXPECT_EQUAL(cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, bad),
                               CUDA_ERROR_INVALID_DEVICE);
                  EXPECT_EQUAL(cuDeviceGetPCIBusId(text, sizeof text, bad), CUDA_ERROR_INVALID_DEVICE);
                  EXPECT_EQUAL(cuDevicePrimaryCtxRetain(&context, bad), CUDA_ERROR_INVALID_DEVICE);
                  EXPECT_EQUAL(cuDevicePrimaryCtxRelease(bad), CUDA_ERROR_INVALID_DEVICE);
                  EXPECT_EQUAL(cuDevicePrimaryCtxReset(bad), CUDA_ERROR_INVALID_DEVICE);
                  EXPECT_EQUAL(cuDevicePrimaryCtxGetState(bad, &flags, &number), CUDA_ERROR_INVALID_DEVICE);
                  EXPECT_EQUAL(cuCtxCreate(&context, nullptr, 0, bad), CUDA_ERROR_INVALID_DEVICE);
                  EXPECT_EQUAL(cuDeviceGetDefaultMemPool(&pool, bad), CUDA_ERROR_INVALID_DEVICE);
                  EXPECT_EQUAL(cuDeviceCanAccessPeer(&number, 0, bad), CUDA_ERROR_INVALID_DEVICE);
              }
              EXPECT_EQUAL(cuDeviceGetCount(nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuDeviceTotalMem(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}
