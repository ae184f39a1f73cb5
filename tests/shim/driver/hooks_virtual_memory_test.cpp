// SPDX-License-Identifier: Apache-2.0
// Physical memory that another process may hold on to.
#include <unistd.h>

#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr size_t kBytes = 64 << 20;

CUmemGenericAllocationHandle create(CUmemAllocationHandleType type) {
    CUmemAllocationProp wish{};
    wish.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wish.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    wish.requestedHandleTypes = type;
    CUmemGenericAllocationHandle made = 0;
    REQUIRE(cuMemCreate(&made, kBytes, &wish, 0) == CUDA_SUCCESS);
    return made;
}

/// Addresses that are reserved for one block.
CUdeviceptr reserve() {
    CUdeviceptr address = 0;
    REQUIRE(cuMemAddressReserve(&address, kBytes, 0, 0, 0) == CUDA_SUCCESS);
    return address;
}

}  // namespace

TEST_CASE("exported memory counts until the driver has it back, and what could not be exported until its release") {
    const Within within;
    if (!within)
        return;
    Within::use(0);
    const uint64_t before = Within::used(0);
    const CUmemGenericAllocationHandle kept = create(CU_MEM_HANDLE_TYPE_NONE);
    CHECK(Within::used(0) == before + kBytes);
    int file = -1;
    CHECK(cuMemExportToShareableHandle(&file, kept, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS);
    CHECK(cuMemRelease(kept) == CUDA_SUCCESS);
    CHECK(Within::used(0) == before);

    const CUmemGenericAllocationHandle shared = create(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    REQUIRE(cuMemExportToShareableHandle(&file, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS);
    CHECK(cuMemRelease(shared) == CUDA_SUCCESS);
    CHECK(Within::used(0) == before + kBytes);
    CHECK(close(file) == 0);
}

TEST_CASE("a mapping holds its memory when the handle is gone, and one that was refused doesn't") {
    const Within within;
    if (!within)
        return;
    Within::use(0);
    const uint64_t before = Within::used(0);
    const CUmemGenericAllocationHandle memory = create(CU_MEM_HANDLE_TYPE_NONE);
    const CUdeviceptr address = reserve();
    CHECK(cuMemMap(2 << 20, kBytes, 0, memory, 0) != CUDA_SUCCESS);  // not reserved
    REQUIRE(cuMemMap(address, kBytes, 0, memory, 0) == CUDA_SUCCESS);
    CHECK(cuMemRelease(memory) == CUDA_SUCCESS);
    CHECK(Within::used(0) == before + kBytes);
    CHECK(cuMemUnmap(address, kBytes) == CUDA_SUCCESS);
    CHECK(Within::used(0) == before);
    CHECK(cuMemAddressFree(address, kBytes) == CUDA_SUCCESS);
}

TEST_CASE("a handle that was asked for by its address is one more to release, and a refused one isn't") {
    const Within within;
    if (!within)
        return;
    Within::use(0);
    const uint64_t before = Within::used(0);
    const CUmemGenericAllocationHandle memory = create(CU_MEM_HANDLE_TYPE_NONE);
    CUmemGenericAllocationHandle same = 0, none = 0;
    const CUdeviceptr address = reserve();
    REQUIRE(cuMemMap(address, kBytes, 0, memory, 0) == CUDA_SUCCESS);
    REQUIRE(cuMemRetainAllocationHandle(&same, reinterpret_cast<void*>(address)) == CUDA_SUCCESS);
    CHECK(same == memory);
    CHECK(cuMemUnmap(address, kBytes) == CUDA_SUCCESS);
    CHECK(cuMemRetainAllocationHandle(&none, reinterpret_cast<void*>(address)) != CUDA_SUCCESS);
    CHECK(cuMemRelease(memory) == CUDA_SUCCESS);
    CHECK(Within::used(0) == before + kBytes);
    CHECK(cuMemRelease(same) == CUDA_SUCCESS);
    CHECK(Within::used(0) == before);
    CHECK(cuMemAddressFree(address, kBytes) == CUDA_SUCCESS);
}
