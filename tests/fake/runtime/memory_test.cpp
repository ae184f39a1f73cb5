// SPDX-License-Identifier: Apache-2.0
// Memory: allocating, running out, giving back; pools, managed and host memory.

#include <cstring>

#include "tests/fake/runtime/scenario.h"

using namespace cuslice::tests;

namespace {

constexpr size_t mib = 1 << 20;

size_t free_bytes() {
    size_t free = 0;
    size_t total = 0;
    REQUIRE(RT(cudaMemGetInfo)(&free, &total) == cudaSuccess);
    CHECK(free <= total);
    return free;
}

}  // namespace

SCENARIO_IN_CHILD("what is freed is free again") {
    const size_t before = free_bytes();
    void* pointer = nullptr;
    REQUIRE(RT(cudaMalloc)(&pointer, 100 * mib) == cudaSuccess);
    CHECK(before - free_bytes() == 100 * mib);
    CHECK(RT(cudaFree)(pointer) == cudaSuccess);
    CHECK(free_bytes() == before);
    CHECK(RT(cudaFree)(pointer) == cudaErrorInvalidValue);
    CHECK(RT(cudaFree)(nullptr) == cudaSuccess);
}

SCENARIO_IN_CHILD("no bytes are success and no memory") {
    void* pointer = &pointer;
    CHECK(RT(cudaMalloc)(&pointer, 0) == cudaSuccess);
    CHECK(pointer == nullptr);
    CHECK(RT(cudaMalloc)(nullptr, 1) == cudaErrorInvalidValue);
    void* ordered = &ordered;
    CHECK(RT(cudaMallocAsync)(&ordered, 0, nullptr) == cudaSuccess);
    CHECK(ordered == nullptr);
    CHECK(RT(cudaFreeAsync)(ordered, nullptr) == cudaSuccess);
}

SCENARIO_IN_CHILD("a full device refuses and goes on", Machine{.spec = "1xlaptop-2g"}) {
    void* all = nullptr;
    void* more = &more;
    CHECK(RT(cudaMalloc)(&all, size_t{1} << 60) == cudaErrorMemoryAllocation);
    CHECK(RT(cudaGetLastError)() == cudaErrorMemoryAllocation);
    REQUIRE(RT(cudaMalloc)(&all, free_bytes() / (2 * mib) * (2 * mib)) == cudaSuccess);
    CHECK(RT(cudaMalloc)(&more, 4 * mib) == cudaErrorMemoryAllocation);
    CHECK(RT(cudaFree)(all) == cudaSuccess);
    CHECK(RT(cudaMalloc)(&more, 4 * mib) == cudaSuccess);
}

SCENARIO_IN_CHILD("rows are padded to a pitch") {
    void* pointer = nullptr;
    size_t pitch = 0;
    REQUIRE(RT(cudaMallocPitch)(&pointer, &pitch, 1001, 7) == cudaSuccess);
    CHECK(pitch >= 1001);
    CHECK(pitch % 32 == 0);
    cudaPitchedPtr box{};
    REQUIRE(RT(cudaMalloc3D)(&box, {100, 8, 9}) == cudaSuccess);
    CHECK(box.xsize == 100);
    CHECK(box.ysize == 8);
    CHECK(RT(cudaMemset3D)(box, 5, {100, 8, 9}) == cudaSuccess);
    unsigned char last = 0;
    const char* corner = static_cast<char*>(box.ptr) + (8 * 8 + 7) * box.pitch + 99;
    CHECK(RT(cudaMemcpy)(&last, corner, 1, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(last == 5);
    // More rows a slice than there are, though not more than the box has in all.
    CHECK(RT(cudaMemset3D)(box, 5, {100, 9, 8}) == cudaErrorInvalidValue);
}

SCENARIO_IN_CHILD("host memory is known to the device") {
    void* host = nullptr;
    void* seen = nullptr;
    unsigned flags = 0;
    REQUIRE(RT(cudaHostAlloc)(&host, mib, cudaHostAllocMapped | cudaHostAllocPortable) == cudaSuccess);
    std::memset(host, 3, mib);
    CHECK(RT(cudaHostGetFlags)(&flags, host) == cudaSuccess);
    CHECK((flags & cudaHostAllocMapped) != 0);
    CHECK(RT(cudaHostGetDevicePointer)(&seen, host, 0) == cudaSuccess);
    CHECK(RT(cudaFreeHost)(host) == cudaSuccess);
    CHECK(RT(cudaFreeHost)(nullptr) == cudaSuccess);
    std::vector<char> own(mib);
    CHECK(RT(cudaHostGetDevicePointer)(&seen, own.data(), 0) == cudaErrorInvalidValue);
    CHECK(RT(cudaHostRegister)(own.data(), own.size(), cudaHostRegisterDefault) == cudaSuccess);
    CHECK(RT(cudaHostRegister)(own.data() + 4096, 100, 0) == cudaErrorHostMemoryAlreadyRegistered);
    CHECK(RT(cudaFreeHost)(own.data()) == cudaErrorInvalidValue);
    CHECK(RT(cudaHostUnregister)(own.data()) == cudaSuccess);
    CHECK(RT(cudaHostUnregister)(own.data()) == cudaErrorHostMemoryNotRegistered);
}

SCENARIO_IN_CHILD("managed memory is read and written by the host") {
    int* shared = nullptr;
    int back = 0;
    REQUIRE(RT(cudaMallocManaged)(reinterpret_cast<void**>(&shared), mib, cudaMemAttachGlobal) == cudaSuccess);
    shared[7] = 4711;
    CHECK(RT(cudaMemcpy)(&back, shared + 7, sizeof back, cudaMemcpyDefault) == cudaSuccess);
    CHECK(back == 4711);
    int where = 0;
    CHECK(RT(cudaMemRangeGetAttribute)(&where, sizeof where, cudaMemRangeAttributePreferredLocation, shared, mib) ==
          cudaSuccess);
    CHECK(where == cudaInvalidDeviceId);
    CHECK(RT(cudaFree)(shared) == cudaSuccess);
}

SCENARIO_IN_CHILD("a pool gives and keeps memory") {
    cudaMemPool_t pool = nullptr;
    cudaStream_t stream = nullptr;
    void* pointer = nullptr;
    REQUIRE(RT(cudaStreamCreate)(&stream) == cudaSuccess);
    REQUIRE(RT(cudaDeviceGetDefaultMemPool)(&pool, 0) == cudaSuccess);
    unsigned long long threshold = 64 * mib;
    REQUIRE(RT(cudaMemPoolSetAttribute)(pool, cudaMemPoolAttrReleaseThreshold, &threshold) == cudaSuccess);
    REQUIRE(RT(cudaMallocAsync)(&pointer, 10 * mib, stream) == cudaSuccess);
    CHECK(RT(cudaMemsetAsync)(pointer, 1, 10 * mib, stream) == cudaSuccess);
    CHECK(RT(cudaFreeAsync)(pointer, stream) == cudaSuccess);
    CHECK(RT(cudaStreamSynchronize)(stream) == cudaSuccess);
    unsigned long long used = 1;
    CHECK(RT(cudaMemPoolGetAttribute)(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess);
    CHECK(used == 0);
    CHECK(RT(cudaMemPoolTrimTo)(pool, 0) == cudaSuccess);
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 1};
    cudaMemPool_t own = nullptr;
    REQUIRE(RT(cudaMemPoolCreate)(&own, &properties) == cudaSuccess);
    REQUIRE(RT(cudaMallocFromPoolAsync)(&pointer, mib, own, stream) == cudaSuccess);
    CHECK(RT(cudaFreeAsync)(pointer, stream) == cudaSuccess);
    CHECK(RT(cudaStreamSynchronize)(stream) == cudaSuccess);
    CHECK(RT(cudaMemPoolDestroy)(own) == cudaSuccess);
}

SCENARIO_IN_CHILD("a reset leaves the device that was set and lets its context go") {
    void* pointer = nullptr;
    REQUIRE(RT(cudaSetDevice)(1) == cudaSuccess);
    REQUIRE(RT(cudaDeviceReset)() == cudaSuccess);
    REQUIRE(RT(cudaMalloc)(&pointer, mib) == cudaSuccess);
    cudaPointerAttributes attributes{};
    REQUIRE(RT(cudaPointerGetAttributes)(&attributes, pointer) == cudaSuccess);
    CHECK(attributes.device == 1);
    // The runtime holds the primary context once, not once more for each reset.
    void* const release = driver_function("cuDevicePrimaryCtxRelease");
    void* const state = driver_function("cuDevicePrimaryCtxGetState");
    REQUIRE(release != nullptr);
    REQUIRE(state != nullptr);
    CHECK(reinterpret_cast<int (*)(int)>(release)(1) == 0);
    unsigned flags = 0;
    int active = 1;
    CHECK(reinterpret_cast<int (*)(int, unsigned*, int*)>(state)(1, &flags, &active) == 0);
    CHECK(active == 0);
}

SCENARIO_IN_CHILD("a reset gives everything back and the device can be used again") {
    void* pointer = nullptr;
    const size_t before = free_bytes();
    REQUIRE(RT(cudaMalloc)(&pointer, 300 * mib) == cudaSuccess);
    REQUIRE(RT(cudaDeviceReset)() == cudaSuccess);
    CHECK(RT(cudaGetLastError)() == cudaSuccess);
    int device = -1;
    CHECK(RT(cudaGetDevice)(&device) == cudaSuccess);
    CHECK(device == 0);
    CHECK(free_bytes() == before);
    CHECK(RT(cudaFree)(pointer) == cudaErrorInvalidValue);
    CHECK(RT(cudaMalloc)(&pointer, mib) == cudaSuccess);
    CHECK(RT(cudaDeviceReset)() == cudaSuccess);
    CHECK(RT(cudaDeviceReset)() == cudaSuccess);
}

SCENARIO_IN_CHILD("pools are of a place and a kind of memory") {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypeManaged;
    properties.location = {cudaMemLocationTypeDevice, 0};
    cudaMemPool_t pool = nullptr;
    void* memory = nullptr;
    cudaPointerAttributes attributes{};
    REQUIRE(RT(cudaMemPoolCreate)(&pool, &properties) == cudaSuccess);
    REQUIRE(RT(cudaMallocFromPoolAsync)(&memory, mib, pool, nullptr) == cudaSuccess);
    CHECK(RT(cudaPointerGetAttributes)(&attributes, memory) == cudaSuccess);
    CHECK(attributes.type == cudaMemoryTypeManaged);
    CHECK(RT(cudaFreeAsync)(memory, nullptr) == cudaSuccess);
    if (runtime_major() < 13)
        return;
    cudaMemPool_t standard = nullptr, current = nullptr;
    cudaMemLocation host{cudaMemLocationTypeHost, 0}, device{cudaMemLocationTypeDevice, 0};
    CHECK(RT(cudaMemGetDefaultMemPool)(&standard, &host, cudaMemAllocationTypePinned) == cudaSuccess);
    CHECK(RT(cudaMemGetMemPool)(&current, &host, cudaMemAllocationTypePinned) == cudaSuccess);
    CHECK(standard == current);
    CHECK(RT(cudaMemSetMemPool)(&device, cudaMemAllocationTypeManaged, pool) == cudaSuccess);
    CHECK(RT(cudaMemSetMemPool)(&host, cudaMemAllocationTypeManaged, pool) == cudaErrorInvalidValue);
    CHECK(RT(cudaMemGetMemPool)(&current, &device, cudaMemAllocationTypeManaged) == cudaSuccess);
    CHECK(current == pool);
}
