// SPDX-License-Identifier: Apache-2.0
// Copies of every shape and direction, between devices too.

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "tests/fake/runtime/scenario.h"

using namespace cuslice::tests;

namespace {

std::vector<unsigned char> numbered(size_t count) {
    std::vector<unsigned char> bytes(count);
    std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
    return bytes;
}

unsigned char* device_memory(size_t bytes) {
    void* pointer = nullptr;
    REQUIRE(RT(cudaMalloc)(&pointer, bytes) == cudaSuccess);
    return static_cast<unsigned char*>(pointer);
}

}  // namespace

SCENARIO_IN_CHILD("bytes go to the device and come back") {
    const std::vector<unsigned char> sent = numbered(100000);
    std::vector<unsigned char> back(sent.size());
    unsigned char* const one = device_memory(sent.size());
    unsigned char* const two = device_memory(sent.size());
    const auto copy = RT(cudaMemcpy);
    CHECK(copy(one, sent.data(), sent.size(), cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(copy(two, one, sent.size(), cudaMemcpyDeviceToDevice) == cudaSuccess);
    CHECK(copy(back.data(), two, sent.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(back == sent);
    back.assign(back.size(), 0);
    CHECK(copy(back.data(), two, sent.size(), cudaMemcpyDefault) == cudaSuccess);
    CHECK(back == sent);
    back.assign(back.size(), 0);
    CHECK(copy(back.data(), sent.data(), sent.size(), cudaMemcpyHostToHost) == cudaSuccess);
    CHECK(back == sent);
    CHECK(copy(one, sent.data(), 0, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(copy(back.data(), sent.data(), 1, static_cast<cudaMemcpyKind>(5)) == cudaErrorInvalidMemcpyDirection);
    // A direction that the addresses contradict, and a range that ends beyond the allocation.
    CHECK(copy(back.data(), sent.data(), 16, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(copy(one, sent.data(), 64 << 20, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
}

SCENARIO_IN_CHILD("copies on a stream arrive by its end") {
    const std::vector<unsigned char> sent = numbered(4096);
    std::vector<unsigned char> back(sent.size());
    unsigned char* const one = device_memory(sent.size());
    cudaStream_t stream = nullptr;
    REQUIRE(RT(cudaStreamCreateWithFlags)(&stream, cudaStreamNonBlocking) == cudaSuccess);
    for (const char* form : {"cudaMemcpyAsync", "cudaMemcpyAsync_ptsz"}) {
        back.assign(back.size(), 0);
        const auto copy = reinterpret_cast<decltype(&::cudaMemcpyAsync)>(runtime_function(form));
        CHECK(copy(one, sent.data(), sent.size(), cudaMemcpyHostToDevice, stream) == cudaSuccess);
        CHECK(copy(back.data(), one, sent.size(), cudaMemcpyDeviceToHost, stream) == cudaSuccess);
        CHECK(RT(cudaStreamSynchronize)(stream) == cudaSuccess);
        CHECK(back == sent);
    }
}

SCENARIO_IN_CHILD("rows are copied without what lies between them") {
    constexpr size_t width = 100;
    constexpr size_t height = 5;
    const std::vector<unsigned char> sent = numbered(width * height);
    std::vector<unsigned char> back(256 * height, 9);
    void* pitched = nullptr;
    size_t pitch = 0;
    REQUIRE(RT(cudaMallocPitch)(&pitched, &pitch, width, height) == cudaSuccess);
    CHECK(RT(cudaMemset2D)(pitched, pitch, 0, width, height) == cudaSuccess);
    CHECK(RT(cudaMemcpy2D)(pitched, pitch, sent.data(), width, width, height, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(RT(cudaMemcpy2D)(back.data(), 256, pitched, pitch, width, height, cudaMemcpyDeviceToHost) == cudaSuccess);
    for (size_t row = 0; row < height; ++row) {
        CHECK(std::equal(&back[row * 256], &back[row * 256 + width], &sent[row * width]));
        CHECK(back[row * 256 + width] == 9);
    }
    CHECK(RT(cudaMemcpy2D)(back.data(), width - 1, pitched, pitch, width, height, cudaMemcpyDeviceToHost) ==
          cudaErrorInvalidPitchValue);
}

SCENARIO_IN_CHILD("a box is copied out of a larger one") {
    cudaPitchedPtr box{};
    REQUIRE(RT(cudaMalloc3D)(&box, {64, 8, 4}) == cudaSuccess);
    REQUIRE(RT(cudaMemset3D)(box, 1, {64, 8, 4}) == cudaSuccess);
    const std::vector<unsigned char> sent = numbered(16 * 3 * 2);
    std::vector<unsigned char> back(sent.size());
    cudaMemcpy3DParms in{};
    in.srcPtr = {const_cast<unsigned char*>(sent.data()), 16, 16, 3};
    in.dstPtr = box;
    in.dstPos = {5, 2, 1};
    in.extent = {16, 3, 2};
    in.kind = cudaMemcpyHostToDevice;
    CHECK(RT(cudaMemcpy3D)(&in) == cudaSuccess);
    cudaMemcpy3DParms out{};
    out.srcPtr = box;
    out.srcPos = {5, 2, 1};
    out.dstPtr = {back.data(), 16, 16, 3};
    out.extent = {16, 3, 2};
    out.kind = cudaMemcpyDeviceToHost;
    CHECK(RT(cudaMemcpy3D)(&out) == cudaSuccess);
    CHECK(back == sent);
    unsigned char beside = 0;
    CHECK(RT(cudaMemcpy)(&beside, static_cast<char*>(box.ptr) + (8 + 2) * box.pitch + 4, 1, cudaMemcpyDeviceToHost) ==
          cudaSuccess);
    CHECK(beside == 1);
    in.dstPtr.ptr = nullptr;
    CHECK(RT(cudaMemcpy3D)(&in) == cudaErrorInvalidValue);
    CHECK(RT(cudaMemcpy3D)(nullptr) == cudaErrorInvalidValue);
}

SCENARIO_IN_CHILD("bytes go from one device to another") {
    const std::vector<unsigned char> sent = numbered(5000);
    std::vector<unsigned char> back(sent.size());
    unsigned char* const here = device_memory(sent.size());
    REQUIRE(RT(cudaSetDevice)(1) == cudaSuccess);
    unsigned char* const there = device_memory(sent.size());
    CHECK(RT(cudaMemcpy)(here, sent.data(), sent.size(), cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(RT(cudaMemcpyPeer)(there, 1, here, 0, sent.size()) == cudaSuccess);
    CHECK(RT(cudaMemcpy)(back.data(), there, sent.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(back == sent);
    CHECK(RT(cudaMemcpyPeer)(there, 9, here, 0, sent.size()) == cudaErrorInvalidDevice);
    int able = -1;
    CHECK(RT(cudaDeviceCanAccessPeer)(&able, 1, 0) == cudaSuccess);
    if (able == 1) {
        CHECK(RT(cudaDeviceEnablePeerAccess)(0, 0) == cudaSuccess);
        CHECK(RT(cudaDeviceEnablePeerAccess)(0, 0) == cudaErrorPeerAccessAlreadyEnabled);
        CHECK(RT(cudaDeviceDisablePeerAccess)(0) == cudaSuccess);
    }
}
