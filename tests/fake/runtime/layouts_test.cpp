// SPDX-License-Identifier: Apache-2.0
// Structures that differ between 11, 12 and 13: each function writes its own size and not a byte more.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "fake/runtime/device_properties.h"
#include "tests/fake/runtime/registered.h"

using namespace cuslice::tests;
using cuslice::fake::DeviceProperties12;

namespace {

constexpr unsigned char canary = 0xa5;

/// How many bytes from the front on `write` has written, whatever was there before.
template <class Write>
size_t bytes_written(Write write) {
    alignas(16) std::array<unsigned char, 2048> once;
    alignas(16) std::array<unsigned char, 2048> again;
    once.fill(canary);
    again.fill(static_cast<unsigned char>(~canary));
    REQUIRE(write(once.data()) == cudaSuccess);
    REQUIRE(write(again.data()) == cudaSuccess);
    size_t end = 0;
    for (size_t i = 0; i < once.size(); ++i) {
        if (once[i] != canary || again[i] != static_cast<unsigned char>(~canary))
            end = i + 1;
    }
    // A byte that a structure has and nobody writes would show the canary.
    CHECK(std::equal(once.begin(), once.begin() + static_cast<long>(end), again.begin()));
    return end;
}

using GetProperties = cudaError_t (*)(void*, int);
using GetAttributes = cudaError_t (*)(void*, const void*);

}  // namespace

SCENARIO_IN_CHILD("device properties have the size of their version") {
    const auto get = reinterpret_cast<GetProperties>(runtime_function("cudaGetDeviceProperties"));
    const size_t plain = bytes_written([&](void* place) { return get(place, 0); });
    if (runtime_major() == 13) {
        CHECK(plain == 1008);
        return;
    }
    CHECK(plain == 728);
    if (runtime_major() == 11)
        return;
    const auto get_v2 = reinterpret_cast<GetProperties>(runtime_function("cudaGetDeviceProperties_v2"));
    CHECK(bytes_written([&](void* place) { return get_v2(place, 0); }) == 1032);
    // The older layout is the beginning of the newer one.
    DeviceProperties12 older{};
    DeviceProperties12 newer{};
    REQUIRE(get(&older, 2) == cudaSuccess);
    REQUIRE(get_v2(&newer, 2) == cudaSuccess);
    CHECK(std::equal(reinterpret_cast<char*>(&older), reinterpret_cast<char*>(&older) + 728,
                     reinterpret_cast<char*>(&newer)));
    CHECK(newer.memoryPoolsSupported == 1);
    CHECK(newer.clockRate > 0);
}

SCENARIO_IN_CHILD("pointer attributes have the size of their version") {
    void* pointer = nullptr;
    REQUIRE(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    const auto get = reinterpret_cast<GetAttributes>(runtime_function("cudaPointerGetAttributes"));
    CHECK(bytes_written([&](void* place) { return get(place, pointer); }) == (runtime_major() < 13 ? 24u : 88u));
}

SCENARIO_IN_CHILD("a kernel's attributes have the size of their version") {
    const Registered code;
    const auto get = reinterpret_cast<GetAttributes>(runtime_function("cudaFuncGetAttributes"));
    CHECK(bytes_written([&](void* place) { return get(place, &code.fill); }) == (runtime_major() == 11 ? 56u : 144u));
}

SCENARIO_IN_CHILD("a texture's description has the size of its version") {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.desc = RT(cudaCreateChannelDesc)(32, 0, 0, 0, cudaChannelFormatKindFloat);
    resource.res.linear.sizeInBytes = 4096;
    REQUIRE(RT(cudaMalloc)(&resource.res.linear.devPtr, 4096) == cudaSuccess);
    // The description at the end of a page that nothing follows: what is behind it may not be read.
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t size = runtime_major() == 11 ? 68 : 72;
    void* const pages = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    auto* const end = static_cast<char*>(pages) + page;
    REQUIRE(::mprotect(end, page, PROT_NONE) == 0);
    const auto* const how = reinterpret_cast<const cudaTextureDesc*>(end - size);
    cudaTextureObject_t texture = 0;
    REQUIRE(RT(cudaCreateTextureObject)(&texture, &resource, how, nullptr) == cudaSuccess);
    using GetTexture = cudaError_t (*)(void*, cudaTextureObject_t);
    const auto told = [&](const char* name) {
        const auto get = reinterpret_cast<GetTexture>(runtime_function(name));
        return bytes_written([&](void* place) { return get(place, texture); });
    };
    CHECK(told("cudaGetTextureObjectTextureDesc") == size);
    if (runtime_major() == 11)
        CHECK(told("cudaGetTextureObjectTextureDesc_v2") == 72);
}

SCENARIO_IN_CHILD("a pointer tells what it is") {
    const auto inspect = [](const void* pointer) {
        cudaPointerAttributes found{};
        REQUIRE(RT(cudaPointerGetAttributes)(&found, pointer) == cudaSuccess);
        return found;
    };
    void* device = nullptr;
    void* host = nullptr;
    void* managed = nullptr;
    int own = 0;
    REQUIRE(RT(cudaMalloc)(&device, 4096) == cudaSuccess);
    REQUIRE(RT(cudaMallocHost)(&host, 4096) == cudaSuccess);
    REQUIRE(RT(cudaMallocManaged)(&managed, 4096, cudaMemAttachGlobal) == cudaSuccess);
    CHECK(inspect(static_cast<char*>(device) + 100).type == cudaMemoryTypeDevice);
    CHECK(inspect(static_cast<char*>(device) + 100).devicePointer == static_cast<char*>(device) + 100);
    CHECK(inspect(device).hostPointer == nullptr);
    CHECK(inspect(host).type == cudaMemoryTypeHost);
    CHECK(inspect(host).hostPointer == host);
    CHECK(inspect(managed).type == cudaMemoryTypeManaged);
    CHECK(inspect(managed).devicePointer == managed);
    CHECK(inspect(&own).type == cudaMemoryTypeUnregistered);
    CHECK(inspect(&own).hostPointer == &own);
    CHECK(RT(cudaGetLastError)() == cudaSuccess);
}
