// SPDX-License-Identifier: Apache-2.0
// Reserved addresses, physical memory, mappings.

#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

CUmemAllocationProp on_device_0() {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return prop;
}

const CUmemAccessDesc read_write = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

}  // namespace

TEST_CASE("physical memory is charged until its handle and its mapping are both gone") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              const CUmemAllocationProp prop = on_device_0();
              CUmemGenericAllocationHandle handle = 0, again = 0;
              CUdeviceptr range = 0;
              size_t granularity = 0;
              EXPECT_EQUAL(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(granularity, 2 * MiB);
              EXPECT_EQUAL(cuMemAddressReserve(&range, 8 * MiB, 0, 0, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), before);
              EXPECT_EQUAL(cuMemCreate(&handle, MiB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemCreate(&handle, 4 * MiB, &prop, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), 4 * MiB);
              EXPECT_EQUAL(cuMemMap(range + 2 * MiB, 4 * MiB, 0, handle, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemMap(range + 4 * MiB, 4 * MiB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemRelease(handle), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(before - free_bytes(), 4 * MiB);
              EXPECT_EQUAL(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range + 3 * MiB)), CUDA_SUCCESS);
              EXPECT_EQUAL(again, handle);
              EXPECT_EQUAL(cuMemAddressFree(range, 8 * MiB), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemUnmap(range + 2 * MiB, 4 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), 4 * MiB);
              EXPECT_EQUAL(cuMemRelease(again), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), before);
              EXPECT_EQUAL(cuMemAddressFree(range, 8 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAddressFree(range, 8 * MiB), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("mapped memory is reached with access and not without, across mappings, wherever it is mapped") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const CUmemAllocationProp prop = on_device_0();
              CUmemGenericAllocationHandle first = 0, second = 0;
              CUdeviceptr range = 0;
              std::vector<unsigned char> in(3 * MiB), out(in.size());
              for (size_t i = 0; i < in.size(); i++)
                  in[i] = static_cast<unsigned char>(i * 13);
              EXPECT_EQUAL(cuMemAddressReserve(&range, 8 * MiB, 0, 0, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemCreate(&first, 2 * MiB, &prop, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemCreate(&second, 2 * MiB, &prop, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemMap(range, 2 * MiB, 0, first, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemMap(range + 2 * MiB, 2 * MiB, 0, second, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyHtoD(range, in.data(), 16), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemSetAccess(range, 4 * MiB, &read_write, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemSetAccess(range, 3 * MiB, &read_write, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemcpyHtoD(range + 512, in.data(), in.size()), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoH(out.data(), range + 512, out.size()), CUDA_SUCCESS);
              EXPECT(in == out);
              EXPECT_EQUAL(cuMemcpyHtoD(range + 2 * MiB, in.data(), in.size()), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemUnmap(range, 4 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoH(out.data(), range + 512, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemMap(range + 4 * MiB, 2 * MiB, 0, first, 0), CUDA_SUCCESS);
              const CUmemAccessDesc read_only = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
              EXPECT_EQUAL(cuMemSetAccess(range + 4 * MiB, 2 * MiB, &read_only, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoH(out.data(), range + 4 * MiB + 512, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(int{out[0]}, int{in[0]});
              EXPECT_EQUAL(cuMemcpyHtoD(range + 4 * MiB, in.data(), 1), CUDA_ERROR_INVALID_VALUE);
              unsigned long long flags = 0;
              EXPECT_EQUAL(cuMemGetAccess(&flags, &read_only.location, range + 5 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(flags, 1ULL);
          }) == "");
}

TEST_CASE("physical memory has no address of its own that a program could use") {
    CHECK(in_child({{"CUSLICE_FAKE", "laptop-2g"}}, [](const Report& report) {
              use_device(report);
              const CUmemAllocationProp prop = on_device_0();
              CUmemGenericAllocationHandle handle = 0;
              EXPECT_EQUAL(cuMemCreate(&handle, size_t{4} << 30, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
              CUmemAllocationProp exportable = prop;
              exportable.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
              EXPECT_EQUAL(cuMemCreate(&handle, 2 * MiB, &exportable, 0), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(cuMemCreate(&handle, 2 * MiB, &prop, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(handle), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}
